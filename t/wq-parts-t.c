/* SPDX-License-Identifier: MIT */
/* time-limit: 120
 *
 * Where the time of each job went: the parts add up for every job, in every
 * mode.  That each is the part it says to be: t/wq-plant-t.c.
 */
#define WQ_BENCH /* as what it is linked with */
#include "t/tap.h"
#include "t/wq_meas.h"

#include <string.h>

#define JOBS  1000000u
#define BATCH 4096

static struct wq_pools *pools;
static struct wq *wq;
static struct wq_work item[BATCH];
static uint64_t all; /* jobs in all modes */

static void nothing(struct wq_work *work)
{
	(void)work;
}

/* Queue @n jobs, some at a time, each when the one before it in its place has
 * run; every other one of class @other. */
static void load(unsigned int n, unsigned int other)
{
	for (unsigned int i = 0; i < n; i++) {
		struct wq_work *work = &item[i % BATCH];

		if (i % BATCH == 0)
			wq_meas_flush(wq);
		wq_work_init(work, nothing, i % 2 ? other : 0);
		wq_queue(wq, work);
	}
	wq_meas_flush(wq);
}

static struct wq_hist_sum part_of(int mode, int class, int cpu,
				  enum wq_part part)
{
	struct wq_hist_sum sum;

	if (wq_lat_read(wq_pools_lat(pools), mode, class, cpu, part, &sum) < 0)
		bail("no memory");
	return sum;
}

static uint64_t count_of(int mode, int class, int cpu, enum wq_part part)
{
	struct wq_hist_sum sum = part_of(mode, class, cpu, part);
	uint64_t n = sum.count, bins = 0;

	for (unsigned int i = 0; sum.bin && i < wq_hist_bins(sum.bits); i++)
		bins += sum.bin[i];
	wq_hist_sum_free(&sum);
	return bins == n ? n : UINT64_MAX;
}

/* The sums of the four parts are the sum of ready: each job's ticks add up
 * exactly (t/wq-lat-t.c), each part is then rounded down to nanoseconds. */
static bool sums_agree(int mode, unsigned int n)
{
	unsigned __int128 four = 0, ready;

	for (int p = WQ_PART_ENQUEUE; p <= WQ_PART_DISPATCH; p++) {
		struct wq_hist_sum sum =
			part_of(mode, WQ_ANY, WQ_ANY, (enum wq_part)p);

		four += sum.sum;
		wq_hist_sum_free(&sum);
	}
	{
		struct wq_hist_sum sum =
			part_of(mode, WQ_ANY, WQ_ANY, WQ_PART_READY);

		ready = sum.sum;
		wq_hist_sum_free(&sum);
	}
	return four <= ready && ready - four <= 4ull * n;
}

static void test_mode(unsigned int index)
{
	const struct wq_topo *topo = wq_pools_topo(pools);
	struct wq_mode mode = wq_mode_at(index);
	unsigned int n = wq_help_scale(JOBS), whole = 0;
	uint64_t by_class, by_cpu;
	struct wq_error why;

	if (mode.binding == WQ_UNBOUND &&
	    wq_scope_known(topo, mode.scope, &why) < 0) {
		skip(4, "%s", why.text);
		return;
	}
	if (wq_pools_switch(pools, mode, NULL, &why) < 0)
		bail("%s: %s", wq_mode_name(index), why.text);
	load(n, 1);
	all += n;
	ok(sums_agree((int)index, n),
	   "%s: enqueue + queue + wake + dispatch = ready over %u jobs",
	   wq_mode_name(index), n);
	for (int p = WQ_PART_ENQUEUE; p <= WQ_PART_RUN; p++)
		whole += count_of((int)index, WQ_ANY, WQ_ANY,
				  (enum wq_part)p) == n;
	is_uint(whole, 6, "each part has each job once");
	by_class = count_of((int)index, 0, WQ_ANY, WQ_PART_READY) +
		   count_of((int)index, 1, WQ_ANY, WQ_PART_READY);
	by_cpu = count_of((int)index, WQ_ANY, WQ_ELSEWHERE, WQ_PART_READY);
	for (size_t i = 0; i < topo->nr; i++)
		by_cpu += count_of((int)index, WQ_ANY, topo->cpu[i].cpu,
				   WQ_PART_READY);
	is_uint(by_class, n, "classes add up");
	is_uint(by_cpu, n, "CPUs add up");
}

static void test_modes(void)
{
	static const char *const names[] = { "even", "odd" };
	struct wq_config config = { .classes = 2, .class_names = names };
	struct wq_lat_stats stats;

	pools = wq_help_open(&config, "bound", NULL, &wq);
	for (unsigned int i = 0; i < WQ_MODES; i++)
		test_mode(i);
	wq_lat_stats(wq_pools_lat(pools), &stats);
	diag("%llu jobs", (unsigned long long)all);
	is_uint(stats.jobs, all, "each job of each mode was recorded");
	is_uint(stats.lost, 0, "and none was lost for want of memory");
	ok(stats.bytes <= stats.limit, "within the bound of memory");
	wq_help_close(pools, wq);
}

/* A job that waited behind a long one, among a thousand that did not. */
#define HELD_MS 50

static void test_worst(void)
{
	static const char *const names[] = { "usual", "planted" };
	struct wq_config config = { .classes = 2, .class_names = names };
	static struct wq_hold hold;
	struct wq_job worst[WQ_WORST];
	struct wq_parts parts;
	size_t n, planted = 0, wrong = 0, at = 0;
	struct wq_work work;
	uint64_t back = 0;
	char why[320];

	/* The holder stays in management, or a spare would take the job. */
	config.hog_ns = 60000000000ull;
	pools = wq_help_open(&config, "bound", NULL, &wq);
	load(500, 0);
	wq_help_hold(&hold, false);
	wq_queue_on(wq_help_cpu(pools, 0), wq, &hold.work);
	wq_help_until(&hold.held, 1);
	wq_work_init(&work, nothing, 1);
	wq_queue_on(wq_help_cpu(pools, 0), wq, &work);
	wq_help_sleep(HELD_MS);
	wq_help_let_go(&hold);
	wq_meas_flush(wq);
	load(500, 0);
	n = wq_lat_worst(wq_pools_lat(pools), worst, WQ_WORST);
	for (size_t i = 0; i < n; i++) {
		wq_job_parts(&worst[i], &parts, &back);
		wrong += parts.tick[WQ_PART_ENQUEUE] +
				 parts.tick[WQ_PART_QUEUE] +
				 parts.tick[WQ_PART_WAKE] +
				 parts.tick[WQ_PART_DISPATCH] !=
			 parts.tick[WQ_PART_READY];
		if (worst[i].class == 1) {
			planted++;
			at = i;
		}
	}
	is_uint(wrong, 0, "each of the %zu worst adds up to the tick", n);
	is_uint(planted, 1, "the planted job is among the worst, once");
	wq_job_why(&worst[at], why, sizeof(why));
	ok(strstr(why, " of it queue: behind a job that ran"),
	   "and is explained by the job before it") ||
		(diag("%s", why), 0);
	wq_job_parts(&worst[at], &parts, &back);
	ok(wq_ticks_to_ns(parts.tick[WQ_PART_QUEUE]) >= HELD_MS * 900000ull,
	   "with as long as that took");
	wq_help_close(pools, wq);
}

int main(void)
{
	plan(4 * WQ_MODES + 3 + 4);
	test_modes();
	test_worst();
	return done();
}
