/* SPDX-License-Identifier: MIT */
#include "wq/lat_private.h"

#include "wq/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COARSE_BITS 5

int wq_lat_new(const struct wq_lat_config *config, struct wq_lat **out)
{
	struct wq_lat *lat;

	if (config->classes < 1 || config->classes > WQ_CLASSES_MAX)
		return -EINVAL;
	lat = calloc(1, sizeof(*lat));
	if (!lat)
		return -ENOMEM;
	lat->config = *config;
	if (!lat->config.bytes)
		lat->config.bytes = (size_t)64 << 20;
	lat->slots = config->topo->nr + 1;
	for (size_t cpu = 0; cpu < WQ_CPUS; cpu++) {
		int index = wq_topo_index(config->topo, (int)cpu);

		lat->slot_of[cpu] =
			(int16_t)(index < 0 ? (int)lat->slots - 1 : index);
	}
	lat->bits = WQ_HIST_BITS;
	lat->per_cpu = true;
	atomic_init(&lat->gen, 1);
	pthread_mutex_init(&lat->lock, NULL);
	*out = lat;
	return 0;
}

void wq_lat_free(struct wq_lat *lat)
{
	struct wq_lat_writer *w, *next;

	if (!lat)
		return;
	for (w = atomic_load(&lat->writers); w; w = next) {
		next = w->next;
		for (size_t i = 0; i < WQ_MODES * lat->slots; i++)
			free(atomic_load(&w->cell[i]));
		free(w);
	}
	pthread_mutex_destroy(&lat->lock);
	free(lat);
}

struct wq_lat_writer *wq_lat_writer_new(struct wq_lat *lat, int worker)
{
	struct wq_lat_writer *w;

	pthread_mutex_lock(&lat->lock);
	for (w = atomic_load(&lat->writers); w && !w->rests; w = w->next)
		;
	if (!w) {
		w = calloc(1, sizeof(*w) + WQ_MODES * lat->slots *
						   sizeof(w->cell[0]));
		if (w) {
			w->lat = lat;
			w->next = atomic_load(&lat->writers);
			/* Release: readers find the fields above. */
			atomic_store(&lat->writers, w);
		}
	}
	if (w) {
		w->worker = worker;
		w->rests = false;
	}
	pthread_mutex_unlock(&lat->lock);
	return w;
}

void wq_lat_writer_rest(struct wq_lat_writer *writer)
{
	pthread_mutex_lock(&writer->lat->lock);
	writer->rests = true;
	pthread_mutex_unlock(&writer->lat->lock);
}

/* Parts that are sampled, and so few, need no fine bins. */
static unsigned int bits_of(enum wq_part part, unsigned int bits)
{
	return part > WQ_PART_RUN ? COARSE_BITS : bits;
}

static size_t hist_size(enum wq_part part, unsigned int bits)
{
	return (wq_hist_bytes(bits_of(part, bits)) + 63) & ~(size_t)63;
}

static size_t cell_size(const struct wq_lat *lat, unsigned int bits)
{
	size_t bytes = 0;

	for (int p = 0; p < WQ_PARTS; p++)
		bytes += hist_size((enum wq_part)p, bits);
	return sizeof(struct wq_cell) + bytes * lat->config.classes;
}

static void empty_cell(struct wq_cell *cell, unsigned int classes)
{
	for (unsigned int class = 0; class < classes; class ++)
		for (int p = 0; p < WQ_PARTS; p++) {
			struct wq_hist *hist =
				wq_cell_hist(cell, class, (enum wq_part)p);

			wq_hist_init(hist, hist->bits);
		}
}

static struct wq_cell *make_cell(struct wq_lat *lat, unsigned int bits)
{
	size_t size = (cell_size(lat, bits) + 63) & ~(size_t)63;
	struct wq_cell *cell = aligned_alloc(64, size);

	if (!cell)
		return NULL;
	memset(cell, 0, sizeof(*cell));
	for (int p = 0; p < WQ_PARTS; p++) {
		cell->offset[p] = cell->stride;
		cell->stride += hist_size((enum wq_part)p, bits);
	}
	for (unsigned int class = 0; class < lat->config.classes; class ++)
		for (int p = 0; p < WQ_PARTS; p++)
			wq_hist_init(wq_cell_hist(cell, class, (enum wq_part)p),
				     bits_of((enum wq_part)p, bits));
	/* In use from the first job on; before it holds no count. */
	atomic_init(&cell->gen, atomic_load(&lat->gen));
	lat->bytes += size;
	return cell;
}

static void say(struct wq_lat *lat, const char *what)
{
	char line[160];

	snprintf(line, sizeof(line), "latencies: %zu bytes are the bound: %s",
		 lat->config.bytes, what);
	if (lat->config.say)
		lat->config.say(lat->config.arg, line);
}

/* Does one more cell fit?  If not, take the next coarser form.  Under L.
 * Return: 0 with the bits to use, or -ENOMEM. */
static int find_room(struct wq_lat *lat, bool elsewhere, unsigned int *bits)
{
	for (;;) {
		*bits = elsewhere && lat->per_cpu ? COARSE_BITS : lat->bits;
		if (lat->bytes + cell_size(lat, *bits) <= lat->config.bytes)
			return 0;
		if (lat->bits > COARSE_BITS) {
			lat->bits = COARSE_BITS;
			say(lat, "5 bits an octave from now on");
		} else if (lat->per_cpu) {
			lat->per_cpu = false;
			say(lat, "CPUs are taken together from now on");
		} else {
			return -ENOMEM;
		}
		if (!elsewhere && !lat->per_cpu)
			return 1; /* there is a cell for all CPUs */
	}
}

static int need_cell(struct wq_lat_writer *w, unsigned int mode, size_t slot)
{
	_Atomic(struct wq_cell *) *place =
		&w->cell[mode * w->lat->slots + slot];
	unsigned int bits;
	struct wq_cell *cell;
	int code;

	if (atomic_load(place))
		return 0;
	code = find_room(w->lat, slot == w->lat->slots - 1, &bits);
	if (code)
		return code < 0 ? code : 0;
	cell = make_cell(w->lat, bits);
	if (!cell)
		return -ENOMEM;
	/* Release: pairs with the loads in wq_lat_record() and of readers. */
	atomic_store(place, cell);
	return 0;
}

int wq_lat_prepare(struct wq_lat_writer *writer, unsigned int mode,
		   const cpu_set_t *cpus)
{
	struct wq_lat *lat = writer->lat;
	int code;

	pthread_mutex_lock(&lat->lock);
	code = need_cell(writer, mode, lat->slots - 1);
	for (size_t i = 0; !code && i < lat->slots - 1; i++)
		if (lat->per_cpu &&
		    CPU_ISSET(lat->config.topo->cpu[i].cpu, cpus))
			code = need_cell(writer, mode, i);
	pthread_mutex_unlock(&lat->lock);
	return code;
}

static struct wq_cell *cell_of(struct wq_lat_writer *w,
			       const struct wq_job *job)
{
	struct wq_lat *lat = w->lat;
	_Atomic(struct wq_cell *) *row =
		&w->cell[job->started_mode * lat->slots];
	size_t slot = lat->slots - 1;
	struct wq_cell *cell;

	if (job->start_cpu >= 0 && job->start_cpu < WQ_CPUS)
		slot = (size_t)lat->slot_of[job->start_cpu];
	cell = atomic_load_explicit(&row[slot], memory_order_acquire);
	if (!cell)
		cell = atomic_load_explicit(&row[lat->slots - 1],
					    memory_order_acquire);
	return cell;
}

static void count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(
		counter,
		atomic_load_explicit(counter, memory_order_relaxed) + n,
		memory_order_relaxed);
}

void wq_lat_record(struct wq_lat_writer *w, const struct wq_job *job)
{
	struct wq_cell *cell = cell_of(w, job);
	uint64_t gen = atomic_load_explicit(&w->lat->gen, memory_order_acquire);
	struct wq_parts parts;
	uint64_t back = 0;

	if (!cell) {
		count(&w->lost, 1);
		return;
	}
	if (atomic_load_explicit(&cell->gen, memory_order_relaxed) != gen) {
		empty_cell(cell, w->lat->config.classes);
		atomic_store_explicit(&cell->gen, gen, memory_order_release);
	}
	wq_job_parts(job, &parts, &back);
	for (int p = 0; p <= WQ_PART_RUN; p++)
		wq_hist_add(wq_cell_hist(cell, job->class, (enum wq_part)p),
			    wq_ticks_to_ns(parts.tick[p]));
	if (job->run_delay != WQ_UNSAMPLED)
		wq_hist_add(wq_cell_hist(cell, job->class, WQ_PART_RUN_DELAY),
			    job->run_delay);
	if (job->preempt != WQ_UNSAMPLED)
		wq_hist_add(wq_cell_hist(cell, job->class, WQ_PART_PREEMPT),
			    job->preempt);
	count(&w->jobs, 1);
	if (back)
		count(&w->backwards, back);
	wq_worst_note(w, job, parts.tick[WQ_PART_READY]);
}

/* Which cells a reader asked for. */
struct query {
	int mode, class, cpu;
	enum wq_part part;
};

static bool wanted(const struct wq_lat *lat, const struct query *q,
		   unsigned int mode, size_t slot)
{
	if (q->mode != WQ_ANY && (unsigned int)q->mode != mode)
		return false;
	if (q->cpu == WQ_ANY)
		return true;
	if (q->cpu == WQ_ELSEWHERE)
		return slot == lat->slots - 1;
	return slot < lat->slots - 1 &&
	       lat->config.topo->cpu[slot].cpu == q->cpu;
}

/* Go over the histograms that @q asks for: find the coarsest, or merge. */
static int walk_cell(struct wq_lat *lat, struct wq_cell *cell,
		     const struct query *q, struct wq_hist_sum *sum, bool merge)
{
	int code = 0;

	for (unsigned int c = 0; !code && c < lat->config.classes; c++) {
		struct wq_hist *hist = wq_cell_hist(cell, c, q->part);

		if ((q->class != WQ_ANY && (unsigned int)q->class != c) ||
		    !atomic_load_explicit(&hist->count, memory_order_relaxed))
			continue;
		if (merge)
			code = wq_hist_merge(sum, hist);
		else if (hist->bits < sum->bits)
			sum->bits = hist->bits;
	}
	return code;
}

static int walk(struct wq_lat *lat, const struct query *q,
		struct wq_hist_sum *sum, bool merge)
{
	uint64_t gen = atomic_load(&lat->gen);
	struct wq_lat_writer *w;
	int code = 0;

	for (w = atomic_load(&lat->writers); w; w = w->next)
		for (size_t i = 0; !code && i < WQ_MODES * lat->slots; i++) {
			struct wq_cell *cell = atomic_load(&w->cell[i]);

			if (cell && atomic_load(&cell->gen) == gen &&
			    wanted(lat, q, (unsigned int)(i / lat->slots),
				   i % lat->slots))
				code = walk_cell(lat, cell, q, sum, merge);
		}
	return code;
}

int wq_lat_read(struct wq_lat *lat, int mode, int class, int cpu,
		enum wq_part part, struct wq_hist_sum *sum)
{
	struct query q = {
		.mode = mode, .class = class, .cpu = cpu, .part = part
	};
	int code;

	memset(sum, 0, sizeof(*sum));
	sum->bits = bits_of(part, WQ_HIST_BITS);
	/* A cell that gets its first, coarser, counts between the two walks
	 * makes the second fail; then the first knows better. */
	do {
		wq_hist_sum_free(sum);
		walk(lat, &q, sum, false);
		code = walk(lat, &q, sum, true);
	} while (code == -EINVAL);
	return code;
}

void wq_lat_reset(struct wq_lat *lat)
{
	atomic_fetch_add(&lat->gen, 1);
}

void wq_lat_stats(struct wq_lat *lat, struct wq_lat_stats *out)
{
	struct wq_lat_writer *w;

	memset(out, 0, sizeof(*out));
	for (w = atomic_load(&lat->writers); w; w = w->next) {
		out->jobs += atomic_load(&w->jobs);
		out->lost += atomic_load(&w->lost);
		out->backwards += atomic_load(&w->backwards);
	}
	pthread_mutex_lock(&lat->lock);
	out->bytes = lat->bytes;
	out->limit = lat->config.bytes;
	out->bits = lat->bits;
	out->per_cpu = lat->per_cpu;
	pthread_mutex_unlock(&lat->lock);
}
