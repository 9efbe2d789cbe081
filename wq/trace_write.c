/* SPDX-License-Identifier: MIT */
/*
 * The rings as a Perfetto file.
 *
 * Field numbers are those of protos/perfetto/trace: TracePacket timestamp 8,
 * trusted_packet_sequence_id 10, track_event 11, sequence_flags 13,
 * timestamp_clock_id 58, track_descriptor 60, clock_snapshot 6,
 * generic_kernel_task_state_event 117.
 */
#include "wq/clock.h"
#include "wq/perfetto.h"
#include "wq/trace_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CLOCK_ID_MONOTONIC = 3, CLOCK_ID_BOOTTIME = 6 };
enum { SLICE_BEGIN = 1, SLICE_END, INSTANT };
enum { STATE_RUNNABLE = 2, STATE_RUNNING, STATE_SLEEP };
enum { PROCESS_TRACK = 1, FIRST_TRACK = 16, SEQUENCE = 1 };

/* One thing that happened, of any ring. */
struct item {
	uint64_t ns;
	size_t order; /* among those of one time */
	struct wq_trace_ring *ring;
	uint64_t track;
	uint64_t id, a;
	int kind;  /* enum wq_event, or -1: @sw */
	bool open; /* an end that we made up, as the job still ran */
	struct wq_switched sw;
};

struct writer {
	struct wq_trace *trace;
	const struct wq_trace_names *names;
	struct wq_trace_written *out;
	struct item *item;
	size_t nr, room;
	struct wq_pb file, packet, inner, leaf;
	struct last {
		int state; /* the last one written, or 0 */
		uint32_t cpu;
	} * last; /* by ring number */
};

static struct item *add(struct writer *w, struct wq_trace_ring *ring,
			uint64_t track, int kind, uint64_t ns)
{
	struct item *more;

	if (w->nr == w->room) {
		size_t room = w->room ? 2 * w->room : 1024;

		more = realloc(w->item, room * sizeof(*more));
		if (!more)
			return NULL;
		w->item = more;
		w->room = room;
	}
	more = &w->item[w->nr];
	memset(more, 0, sizeof(*more));
	more->ns = ns;
	more->order = w->nr++;
	more->ring = ring;
	more->track = track;
	more->kind = kind;
	return more;
}

/* The events of one ring that make sense: an end needs its start, which may
 * have been overwritten; a start gets an end. */
static int collect(struct writer *w, struct wq_trace_ring *ring, uint64_t track)
{
	size_t events = w->trace->events;
	/* Acquire: pairs with the release in wq_trace_add(). */
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
	uint64_t first = head > events ? head - events : 0;
	unsigned int depth = 0;
	struct item *item;

	if (atomic_load(&ring->gen) != atomic_load(&w->trace->gen))
		return 0;
	w->out->overwritten += first;
	for (uint64_t i = first; i < head; i++) {
		_Atomic uint64_t *word =
			&ring->word[(i & (events - 1)) * WQ_EV_WORDS];
		int kind = (int)atomic_load_explicit(&word[WQ_EV_KIND],
						     memory_order_relaxed);

		if (kind == WQ_EVENT_END && !depth)
			continue;
		depth += kind == WQ_EVENT_START;
		depth -= kind == WQ_EVENT_END;
		item = add(w, ring, track, kind,
			   wq_stamp_to_mono(atomic_load_explicit(
				   &word[WQ_EV_STAMP], memory_order_relaxed)));
		if (!item)
			return -ENOMEM;
		item->id = atomic_load_explicit(&word[WQ_EV_ID],
						memory_order_relaxed);
		item->a = atomic_load_explicit(&word[WQ_EV_A],
					       memory_order_relaxed);
	}
	for (; depth; depth--) {
		item = add(w, ring, track, WQ_EVENT_END,
			   wq_stamp_to_mono(w->trace->stopped));
		if (!item)
			return -ENOMEM;
		item->open = true;
	}
	return 0;
}

static int collect_states(struct writer *w, struct wq_trace_ring *ring,
			  uint64_t track)
{
	struct wq_switched *list;
	bool lost = false;
	long n = wq_kstate_read(&ring->kstate, &list, &lost);

	if (lost && !w->out->no_states)
		w->out->no_states = "the last ones are missing: too many "
				    "context switches";
	for (long i = 0; i < n; i++) {
		struct item *item = add(w, ring, track, -1, list[i].ns);

		if (!item) {
			n = -ENOMEM;
			break;
		}
		item->sw = list[i];
	}
	free(list);
	return n < 0 ? (int)n : 0;
}

static int by_time(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static void end_packet(struct writer *w)
{
	wq_pb_uint(&w->packet, 10, SEQUENCE);
	wq_pb_message(&w->file, 1, &w->packet);
}

static void begin_packet(struct writer *w, uint64_t ns)
{
	wq_pb_uint(&w->packet, 8, ns);
	wq_pb_uint(&w->packet, 58, CLOCK_ID_MONOTONIC);
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* What our times mean. */
static void write_clocks(struct writer *w)
{
	wq_pb_uint(&w->leaf, 1, CLOCK_ID_MONOTONIC);
	wq_pb_uint(&w->leaf, 2, clock_ns(CLOCK_MONOTONIC));
	wq_pb_message(&w->inner, 1, &w->leaf);
	wq_pb_uint(&w->leaf, 1, CLOCK_ID_BOOTTIME);
	wq_pb_uint(&w->leaf, 2, clock_ns(CLOCK_BOOTTIME));
	wq_pb_message(&w->inner, 1, &w->leaf);
	wq_pb_uint(&w->inner, 2, CLOCK_ID_MONOTONIC);
	wq_pb_message(&w->packet, 6, &w->inner);
	wq_pb_uint(&w->packet, 13, 1); /* nothing before this matters */
	end_packet(w);
}

static void write_process(struct writer *w)
{
	wq_pb_uint(&w->leaf, 1, (uint64_t)getpid());
	wq_pb_string(&w->leaf, 6, program_invocation_short_name);
	wq_pb_uint(&w->inner, 1, PROCESS_TRACK);
	wq_pb_message(&w->inner, 3, &w->leaf);
	wq_pb_message(&w->packet, 60, &w->inner);
	end_packet(w);
}

static void write_thread(struct writer *w, const struct wq_trace_ring *ring,
			 uint64_t track)
{
	wq_pb_uint(&w->leaf, 1, (uint64_t)getpid());
	wq_pb_uint(&w->leaf, 2, (uint64_t)ring->tid);
	wq_pb_string(&w->leaf, 5, ring->name);
	wq_pb_uint(&w->inner, 1, track);
	wq_pb_uint(&w->inner, 5, PROCESS_TRACK);
	wq_pb_message(&w->inner, 4, &w->leaf);
	wq_pb_message(&w->packet, 60, &w->inner);
	end_packet(w);
}

static void annotate(struct writer *w, const char *name, uint64_t value)
{
	wq_pb_string(&w->leaf, 10, name);
	wq_pb_uint(&w->leaf, 3, value);
	wq_pb_message(&w->inner, 4, &w->leaf);
}

static const char *class_name(const struct writer *w, uint64_t class)
{
	return class < w->names->nr_classes ? w->names->classes[class] : "job";
}

static void write_event(struct writer *w, const struct item *item)
{
	int type = item->kind == WQ_EVENT_START ? SLICE_BEGIN
		   : item->kind == WQ_EVENT_END ? SLICE_END
						: INSTANT;

	begin_packet(w, item->ns);
	wq_pb_uint(&w->inner, 9, (uint64_t)type);
	wq_pb_uint(&w->inner, 11, item->track);
	switch (item->kind) {
	case WQ_EVENT_QUEUE:
		wq_pb_string(&w->inner, 23, "queue");
		wq_pb_fixed64(&w->inner, 47, item->id);
		annotate(w, "job", item->id);
		w->out->flows++;
		break;
	case WQ_EVENT_START:
		wq_pb_string(&w->inner, 23, class_name(w, item->a));
		wq_pb_fixed64(&w->inner, 48, item->id);
		annotate(w, "job", item->id);
		w->out->jobs++;
		break;
	case WQ_EVENT_END:
		if (item->open)
			annotate(w, "still running", 1);
		break;
	case WQ_EVENT_WAKE:
		wq_pb_string(&w->inner, 23, "wake");
		annotate(w, "thread", item->a);
		break;
	default:
		wq_pb_string(&w->inner, 23,
			     w->names->mode
				     ? w->names->mode((unsigned int)item->a)
				     : "mode");
	}
	wq_pb_message(&w->packet, 11, &w->inner);
	end_packet(w);
}

static void write_state(struct writer *w, uint64_t ns,
			const struct wq_trace_ring *ring, uint32_t cpu,
			int state)
{
	begin_packet(w, ns);
	wq_pb_uint(&w->inner, 1, cpu);
	wq_pb_string(&w->inner, 2, ring->name);
	wq_pb_uint(&w->inner, 3, (uint64_t)ring->tid);
	wq_pb_uint(&w->inner, 4, (uint64_t)state);
	wq_pb_message(&w->packet, 117, &w->inner);
	end_packet(w);
	w->out->states++;
}

/* The kernel's record; a state is not written twice in a row, as after records
 * that were lost. */
static void write_switched(struct writer *w, const struct item *item)
{
	struct last *last = &w->last[item->track - FIRST_TRACK];
	int state = item->sw.in          ? STATE_RUNNING
		    : item->sw.preempted ? STATE_RUNNABLE
					 : STATE_SLEEP;

	if (last->state != state)
		write_state(w, item->ns, item->ring, item->sw.cpu, state);
	last->state = state;
	last->cpu = item->sw.cpu;
}

/* Our wake of a thread that sleeps makes it runnable.  Of one that does not
 * sleep yet it changes nothing. */
static void write_woken(struct writer *w, const struct item *item)
{
	struct wq_trace_ring *ring = w->trace->rings;
	size_t i = 0;

	while (ring && (uint64_t)ring->tid != item->a) {
		ring = ring->next;
		i++;
	}
	if (!ring || w->last[i].state != STATE_SLEEP)
		return;
	w->last[i].state = STATE_RUNNABLE;
	/* Where it will run is not known yet: the CPU is the one it left. */
	write_state(w, item->ns, ring, w->last[i].cpu, STATE_RUNNABLE);
}

static void write_items(struct writer *w)
{
	for (size_t i = 0; i < w->nr; i++) {
		const struct item *item = &w->item[i];

		if (item->kind < 0) {
			write_switched(w, item);
			continue;
		}
		write_event(w, item);
		if (item->kind == WQ_EVENT_WAKE)
			write_woken(w, item);
	}
}

static void write_no_states(struct writer *w)
{
	char text[200];

	if (!w->out->no_states)
		return;
	snprintf(text, sizeof(text), "scheduler states: %s", w->out->no_states);
	begin_packet(w, wq_stamp_to_mono(w->trace->stopped));
	wq_pb_uint(&w->inner, 9, INSTANT);
	wq_pb_uint(&w->inner, 11, PROCESS_TRACK);
	wq_pb_string(&w->inner, 23, text);
	wq_pb_message(&w->packet, 11, &w->inner);
	end_packet(w);
}

/* All of the file, in memory.  Under the lock. */
static int build(struct writer *w)
{
	struct wq_trace_ring *ring;
	uint64_t track = FIRST_TRACK;
	size_t rings = 0;
	int err = 0;

	for (ring = w->trace->rings; ring; ring = ring->next)
		rings++;
	w->last = calloc(rings + 1, sizeof(*w->last));
	if (!w->last)
		return -ENOMEM;
	write_clocks(w);
	write_process(w);
	if (*w->trace->no_states)
		w->out->no_states = w->trace->no_states;
	for (ring = w->trace->rings; ring && !err; ring = ring->next) {
		write_thread(w, ring, track);
		err = collect(w, ring, track);
		if (!err)
			err = collect_states(w, ring, track);
		track++;
	}
	if (err)
		return err;
	if (w->nr)
		qsort(w->item, w->nr, sizeof(*w->item), by_time);
	write_items(w);
	write_no_states(w);
	w->out->bytes = w->file.len;
	return w->file.failed ? -ENOMEM : 0;
}

static int put_all(int fd, const uint8_t *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int save(const struct wq_pb *file, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct stat st = { 0 };
	int err;

	if (fd < 0)
		return -errno;
	err = fstat(fd, &st) < 0 ? -errno : 0;
	if (!err && S_ISREG(st.st_mode) && fchmod(fd, 0600) < 0)
		err = -errno;
	if (!err)
		err = put_all(fd, file->data, file->len);
	if (close(fd) < 0 && !err)
		err = -errno;
	/* Half a trace is none; but a device stays where it is. */
	if (err && S_ISREG(st.st_mode))
		unlink(path);
	return err;
}

int wq_trace_write(struct wq_trace *trace, const char *path,
		   const struct wq_trace_names *names,
		   struct wq_trace_written *out, struct wq_error *err)
{
	struct writer w = { .trace = trace, .names = names, .out = out };
	int code = -EBUSY;

	memset(out, 0, sizeof(*out));
	pthread_mutex_lock(&trace->lock);
	if (!trace->on)
		code = build(&w);
	pthread_mutex_unlock(&trace->lock);
	if (!code)
		code = save(&w.file, path);
	if (code)
		wq_fail(err, -code, "trace: %s",
			code == -EBUSY ? "still being recorded"
				       : strerror(-code));
	wq_pb_free(&w.file);
	wq_pb_free(&w.packet);
	wq_pb_free(&w.inner);
	wq_pb_free(&w.leaf);
	free(w.item);
	free(w.last);
	return code;
}
