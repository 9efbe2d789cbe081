/* SPDX-License-Identifier: MIT */
#include "tools/dispatch_load.h"

#include "tools/dispatch_spin.h"
#include "tools/pools_load.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	PERIOD_NS = 1000000, /* idle: from job to job */
	GAP_NS = 1500000,    /* burst: from the last job's end to the next */
	POLL_NS = 100000,
	BURST = 32,
	BURST_JOB_NS = 10000,
	WARM_JOBS = 16,
	WARM_BURSTS = 4,
	PATIENCE_S = 20,
	MAX_SAMPLES = DISPATCH_MAX_BURSTS * BURST,
};

_Static_assert(MAX_SAMPLES >= DISPATCH_MAX_JOBS, "either load's jobs fit");

static struct peer_job jobs[DISPATCH_MAX_JOBS + WARM_JOBS];
static double wait_us[MAX_SAMPLES];
static double call_us[DISPATCH_MAX_JOBS];
static double makespan_us[DISPATCH_MAX_BURSTS];

/* Jobs that have ended.  Counted up after a job's stamps were written, read
 * before they are. */
static _Atomic unsigned int done;

const char *dispatch_figure_name(enum dispatch_figure figure)
{
	static const char *const names[DISPATCH_FIGURES] = {
		[DISPATCH_IDLE_P50] = "idle-p50",
		[DISPATCH_IDLE_P99] = "idle-p99",
		[DISPATCH_IDLE_CALL] = "idle-call",
		[DISPATCH_IDLE_CPU] = "idle-cpu",
		[DISPATCH_BURST_P50] = "burst-p50",
		[DISPATCH_BURST_P99] = "burst-p99",
		[DISPATCH_BURST_MAKESPAN] = "burst-makespan",
		[DISPATCH_BURST_CALL] = "burst-call",
		[DISPATCH_BURST_CPU] = "burst-cpu",
	};

	return names[figure];
}

void dispatch_calibrate(void)
{
	wq_clock_init();
	load_calibrate();
}

static void work(struct peer_job *job)
{
	job->started = wq_stamp();
	job->cpu = sched_getcpu();
	if (job->compute_ns)
		load_compute(job->compute_ns);
	job->ended = wq_stamp();
	atomic_fetch_add_explicit(&done, 1, memory_order_release);
}

static void begin(struct dispatch_pool *p, unsigned int n, uint64_t compute_ns)
{
	memset(jobs, 0, n * sizeof(*jobs)); /* no page faults later */
	for (unsigned int i = 0; i < n; i++) {
		jobs[i].run = work;
		jobs[i].compute_ns = compute_ns;
		if (p->peer->prepare)
			p->peer->prepare(p->pool, &jobs[i]);
	}
	atomic_store(&done, 0);
}

static void submit(struct dispatch_pool *p, struct peer_job *job)
{
	job->enqueued = wq_stamp();
	p->peer->submit(p->pool, job);
}

static void pump(struct dispatch_pool *p)
{
	if (p->peer->pump)
		p->peer->pump(p->pool);
}

static void sleep_ns(long ns)
{
	struct timespec t = { .tv_nsec = ns };

	nanosleep(&t, NULL);
}

static void sleep_until(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* Until the first @n jobs have ended and can be queued again. */
static int finish(struct dispatch_pool *p, unsigned int n)
{
	uint64_t began = wq_mono_ns();

	while (atomic_load_explicit(&done, memory_order_acquire) < n) {
		if (wq_mono_ns() - began > PATIENCE_S * UINT64_C(1000000000))
			return -ETIMEDOUT;
		sleep_ns(POLL_NS);
	}
	dispatch_finish(p);
	for (unsigned int i = 0; i < n; i++)
		if (!CPU_ISSET(jobs[i].cpu, &p->place.workers))
			return -EXDEV;
	return 0;
}

static double us_since(uint64_t from, uint64_t to, uint64_t *backward)
{
	uint64_t ticks = wq_ticks_since(from, to, backward);

	return (double)wq_ticks_to_ns(ticks) / 1000;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void sort(double *samples, unsigned int n)
{
	qsort(samples, n, sizeof(*samples), by_value);
}

/* Of sorted samples: the least that @percent of them do not exceed. */
static double percentile(const double *sorted, unsigned int n,
			 unsigned int percent)
{
	return sorted[(n * percent + 99) / 100 - 1];
}

int dispatch_idle(struct dispatch_pool *p, unsigned int n,
		  struct dispatch_sample *out)
{
	uint64_t next, cpu = 0;
	int err;

	begin(p, WARM_JOBS + n, 0);
	next = wq_mono_ns();
	for (unsigned int i = 0; i < WARM_JOBS + n; i++) {
		next += PERIOD_NS;
		sleep_until(next);
		/* Whoever is a whole period late does not catch up. */
		if (wq_mono_ns() > next + PERIOD_NS)
			next = wq_mono_ns();
		if (i == WARM_JOBS)
			cpu = dispatch_cpu_ns();
		pump(p);
		submit(p, &jobs[i]);
		if (i >= WARM_JOBS)
			call_us[i - WARM_JOBS] = us_since(
				jobs[i].enqueued, wq_stamp(), &out->backward);
	}
	err = finish(p, WARM_JOBS + n);
	if (err)
		return err;
	cpu = dispatch_cpu_ns() - cpu;
	for (unsigned int i = 0; i < n; i++)
		wait_us[i] =
			us_since(jobs[WARM_JOBS + i].enqueued,
				 jobs[WARM_JOBS + i].started, &out->backward);
	sort(wait_us, n);
	sort(call_us, n);
	out->us[DISPATCH_IDLE_P50] = percentile(wait_us, n, 50);
	out->us[DISPATCH_IDLE_P99] = percentile(wait_us, n, 99);
	out->us[DISPATCH_IDLE_CALL] = percentile(call_us, n, 50);
	out->us[DISPATCH_IDLE_CPU] = (double)cpu / 1000 / n;
	return 0;
}

static void keep_burst(unsigned int nr, uint64_t submitted,
		       struct dispatch_sample *out)
{
	double last = 0;

	for (unsigned int i = 0; i < BURST; i++) {
		double end = us_since(jobs[0].enqueued, jobs[i].ended,
				      &out->backward);

		wait_us[nr * BURST + i] = us_since(
			jobs[i].enqueued, jobs[i].started, &out->backward);
		last = end > last ? end : last;
	}
	makespan_us[nr] = last;
	call_us[nr] =
		us_since(jobs[0].enqueued, submitted, &out->backward) / BURST;
}

static int one_burst(struct dispatch_pool *p, uint64_t *submitted)
{
	sleep_ns(GAP_NS);
	atomic_store(&done, 0);
	for (unsigned int i = 0; i < BURST; i++)
		submit(p, &jobs[i]);
	*submitted = wq_stamp();
	return finish(p, BURST);
}

int dispatch_burst(struct dispatch_pool *p, unsigned int n,
		   struct dispatch_sample *out)
{
	uint64_t submitted, cpu = 0;

	begin(p, BURST, BURST_JOB_NS);
	for (unsigned int i = 0; i < WARM_BURSTS + n; i++) {
		int err;

		if (i == WARM_BURSTS)
			cpu = dispatch_cpu_ns();
		err = one_burst(p, &submitted);
		if (err)
			return err;
		if (i >= WARM_BURSTS)
			keep_burst(i - WARM_BURSTS, submitted, out);
	}
	cpu = dispatch_cpu_ns() - cpu;
	sort(wait_us, n * BURST);
	sort(makespan_us, n);
	sort(call_us, n);
	out->us[DISPATCH_BURST_P50] = percentile(wait_us, n * BURST, 50);
	out->us[DISPATCH_BURST_P99] = percentile(wait_us, n * BURST, 99);
	out->us[DISPATCH_BURST_MAKESPAN] = percentile(makespan_us, n, 50);
	out->us[DISPATCH_BURST_CALL] = percentile(call_us, n, 50);
	out->us[DISPATCH_BURST_CPU] = (double)cpu / 1000 / (n * BURST);
	return 0;
}
