/* SPDX-License-Identifier: MIT */
/* time-limit: 180
 *
 * Where the time of each job went: the parts add up for every job, in every
 * mode, and a planted delay shows in its part and in no other.
 */
#define WQ_BENCH /* as what it is linked with */
#include "t/tap.h"
#include "t/wq_help.h"
#include "wq/pool.h" /* wq_point */

#include <stdlib.h>
#include <string.h>

#define JOBS  1000000u
#define BATCH 4096

static struct wq_pools *pools;
static struct wq *wq;
static struct wq_work item[BATCH];

static void nothing(struct wq_work *work)
{
	(void)work;
}

/* Queue @n jobs, some at a time, each when the one before it in its place has
 * run. */
static void load(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct wq_work *work = &item[i % BATCH];

		if (i % BATCH == 0)
			wq_flush(wq);
		wq_work_init(work, nothing, i % 2);
		wq_queue(wq, work);
	}
	wq_flush(wq);
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

	if (wq_pools_switch(pools, mode, NULL, &why) < 0) {
		skip(4, "%s", why.text);
		return;
	}
	load(n);
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
	is_uint(stats.lost, 0, "every job was recorded");
	ok(stats.bytes <= stats.limit, "within the bound of memory");
	wq_help_close(pools, wq);
}

/* The planted delay: far above what else happens. */
#define DELAY_NS 3000000u
#define PLANTED  31

static enum wq_point planted_at;

static void pause_ns(uint64_t ns)
{
	uint64_t end = wq_mono_ns() + ns;

	while (wq_mono_ns() < end)
		wq_help_sleep(1);
}

static void plant(enum wq_point point)
{
	if (point == planted_at)
		pause_ns(DELAY_NS);
}

static void long_job(struct wq_work *work)
{
	(void)work;
	pause_ns(DELAY_NS);
}

static uint64_t p50(enum wq_part part)
{
	struct wq_hist_sum sum = part_of(WQ_ANY, 0, WQ_ANY, part);
	uint64_t ns = wq_hist_quantile(&sum, 0.5);

	wq_hist_sum_free(&sum);
	return ns;
}

/* One job at a time to a worker that sleeps, or behind a long one. */
static void lone_jobs(bool behind)
{
	int cpu = wq_help_cpu(pools, 1);

	for (int i = 0; i < PLANTED; i++) {
		wq_work_init(&item[0], nothing, 0);
		wq_work_init(&item[1], long_job, 1);
		if (behind) {
			wq_queue_on(cpu, wq, &item[1]);
			while (!(wq_work_busy(&item[1]) & WQ_BUSY_RUNNING))
				sched_yield();
		} else {
			wq_help_sleep(2);
		}
		wq_queue_on(cpu, wq, &item[0]);
		wq_flush(wq);
	}
}

/* The delay is in @part and, but for a fifth of it, in no other of the four. */
static void check_planted(enum wq_part part, bool behind)
{
	uint64_t in = p50(part), limit = DELAY_NS / 5;

	/* Behind a job that sleeps for milliseconds, part of it has gone by. */
	ok(in >= (behind ? DELAY_NS / 2 : DELAY_NS),
	   "a delay planted in %s shows there", wq_part_name(part)) ||
		(diag("%llu ns", (unsigned long long)in), 0);
	for (int p = WQ_PART_ENQUEUE; p <= WQ_PART_DISPATCH; p++) {
		if (p == (int)part)
			continue;
		in = p50((enum wq_part)p);
		ok(in < limit, "and not in %s",
		   wq_part_name((enum wq_part)p)) ||
			(diag("%llu ns", (unsigned long long)in), 0);
	}
	ok(p50(WQ_PART_RUN) < limit, "nor in the run");
}

static void test_planted(enum wq_part part, int point)
{
	struct wq_config config = { .classes = 2 };
	struct wq_job worst[WQ_WORST];
	unsigned int named = 0;
	char why[256] = "";
	size_t n;

	pools = wq_help_open(&config, "bound", NULL, &wq);
	lone_jobs(false); /* warm up */
	wq_lat_reset(wq_pools_lat(pools));
	planted_at = (enum wq_point)point;
	wq_point = point < 0 ? NULL : plant;
	lone_jobs(point < 0);
	wq_point = NULL;
	check_planted(part, point < 0);
	n = wq_lat_worst(wq_pools_lat(pools), worst, WQ_WORST);
	for (size_t i = 0; i < n; i++) {
		wq_job_why(&worst[i], why, sizeof(why));
		named += strstr(why, wq_part_name(part)) != NULL;
	}
	ok(named > PLANTED / 2, "most of the planted are explained by %s",
	   wq_part_name(part)) ||
		(diag("%u; the last: %s", named, why), 0);
	wq_help_close(pools, wq);
}

int main(void)
{
	plan(4 * WQ_MODES + 2 + 4 * 6);
	test_modes();
	test_planted(WQ_PART_ENQUEUE, WQ_POINT_ENQUEUE);
	test_planted(WQ_PART_WAKE, WQ_POINT_WAKE);
	test_planted(WQ_PART_DISPATCH, WQ_POINT_DISPATCH);
	test_planted(WQ_PART_QUEUE, -1);
	return done();
}
