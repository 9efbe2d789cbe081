/* SPDX-License-Identifier: MIT */
/* time-limit: 120
 *
 * Who is woken, and how often, seen from outside.  Where workers run:
 * t/wq-affinity-t.c; when local-first spreads: t/wq-local-t.c.
 */
#define WQ_BENCH /* as what it is linked with */
#include "t/tap.h"
#include "t/wq_meas.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#define BURST 64

static struct wq_pools *pools;
static struct wq *wq;
static _Atomic unsigned int held, woken;

/* Not pthread_mutex_trylock(): others may hold the lock for a moment.  If who
 * wakes holds it, nobody ever gives it back. */
static bool lock_is_free(pthread_mutex_t *lock)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 2;
	if (pthread_mutex_timedlock(lock, &until))
		return false;
	pthread_mutex_unlock(lock);
	return true;
}

static void at_wake(enum wq_point point)
{
	if (point != WQ_POINT_WAKE)
		return;
	atomic_fetch_add(&woken, 1);
	/* Once is enough to know, and takes two seconds. */
	if (!atomic_load(&held) && !lock_is_free(&pools->lock))
		atomic_fetch_add(&held, 1);
}

/* Workers that sleep are woken once a job, one job at a time. */
static void lone_jobs(const char *mode)
{
	unsigned int n = wq_help_scale(300), more = 0, once = 0;
	struct wq_seen seen;

	for (unsigned int i = 0; i < n; i++) {
		uint64_t before = wq_meas_wakes(pools), wakes;

		wq_seen_on(wq, &seen, wq_help_cpu(pools, 0), 0);
		wq_help_sleep(1);
		wakes = wq_meas_wakes(pools) - before;
		more += wakes > 1;
		once += wakes == 1;
	}
	is_uint(more, 0, "%s: at most one wake an enqueue", mode);
	ok(once >= n / 2, "and one when the worker sleeps (%u of %u)", once, n);
}

static void test_rules(const char *mode)
{
	static struct wq_seen seen[BURST];
	uint64_t wakes, queued;

	wq_point = at_wake;
	atomic_store(&held, 0);
	atomic_store(&woken, 0);
	pools = wq_help_open(NULL, mode, NULL, &wq);
	wq_help_sleep(20);
	lone_jobs(mode);
	wakes = wq_meas_wakes(pools);
	for (unsigned int i = 0; i < BURST; i++) {
		wq_seen_init(&seen[i], 0, 20000);
		wq_queue(wq, &seen[i].work);
	}
	wq_meas_flush(wq);
	wakes = wq_meas_wakes(pools) - wakes;
	ok(wakes <= BURST, "a burst of %d: never more wakes than jobs", BURST);
	/* Local-first: a CPU that others keep busy is helped again. */
	diag("%s: %llu second calls", mode,
	     (unsigned long long)wq_meas_recalls(pools));
	if (strcmp(mode, "local-first") != 0)
		is_uint(wq_meas_recalls(pools), 0, "and no second call");
	queued = wq_meas_queued(pools);
	wakes = wq_meas_wakes(pools);
	ok(wakes <= queued, "nor in all: %llu wakes, %llu jobs",
	   (unsigned long long)wakes, (unsigned long long)queued);
	is_uint(atomic_load(&held), 0, "and none under the lock");
	/* The count goes up just behind the hook. */
	ok(atomic_load(&woken) > 0 &&
		   wq_meas_wakes(pools) <= atomic_load(&woken),
	   "each wake was looked at");
	wq_help_close(pools, wq);
	wq_point = NULL;
}

/* All workers come for a burst, though each enqueue may find the first one on
 * its way. */
static void test_burst(void)
{
	enum { JOBS = 40 };
	static struct wq_seen seen[JOBS];
	uint64_t before;
	int first, other = 0;

	pools = wq_help_open(NULL, "unbound:system", NULL, &wq);
	wq_help_sleep(20);
	before = wq_meas_wakes(pools);
	for (unsigned int i = 0; i < JOBS; i++) {
		wq_seen_init(&seen[i], 0, 2000000);
		wq_queue_on(wq_help_cpu(pools, 0), wq, &seen[i].work);
	}
	wq_meas_flush(wq);
	first = atomic_load(&seen[0].tid);
	for (unsigned int i = 0; i < JOBS; i++)
		other += atomic_load(&seen[i].tid) != first;
	if (wq_pools_topo(pools)->nr < 2) {
		skip(2, "one CPU has one worker");
	} else {
		ok(other > 0,
		   "a burst brings all workers: %d of %d jobs "
		   "were not the first one's",
		   other, JOBS);
		ok(wq_meas_wakes(pools) - before < JOBS / 2,
		   "which are woken once, not for each job");
	}
	wq_help_close(pools, wq);
}

/* Wait until every worker of an unbound:system pool sleeps, or soon will. */
static bool all_idle(void)
{
	struct wq_mode mode = wq_help_mode("unbound:system");
	struct wq_pod *pod = &pools->plan[wq_mode_index(mode)]->pod[0];

	for (int i = 0; i < 20000; i++) {
		size_t idle = 0;

		for (size_t k = 0; k < WQ_CPUS / 64; k++)
			idle += (size_t)__builtin_popcountll(
				atomic_load(&pod->idle[k]));
		if (idle == pools->nr)
			return true;
		wq_help_sleep(1);
	}
	return false;
}

/* Keep one worker busy until another one sleeps, then let it go: it is the
 * last to go to sleep.  Return: whether it got the next job. */
static bool last_came(struct wq_hold *hold)
{
	int cpu = wq_help_cpu(pools, 0);
	struct wq_seen first, second;
	struct wq_worker *holder;

	wq_help_hold(hold, false);
	wq_queue_on(cpu, wq, &hold->work);
	if (!wq_help_until(&hold->held, 1))
		bail("a lone job was not started");
	holder = atomic_load(&hold->work.last);
	wq_seen_init(&first, 0, 0);
	wq_queue_on(cpu, wq, &first.work);
	if (!wq_help_until(&first.ran, 1))
		bail("a job was not started beside another");
	wq_flush_work(&first.work);
	wq_help_sleep(3); /* it sleeps again */
	wq_help_let_go(hold);
	wq_meas_flush(wq);
	if (!all_idle())
		bail("workers do not go to sleep");
	wq_seen_on(wq, &second, cpu, 0);
	return atomic_load(&first.tid) != holder->stat.tid &&
	       atomic_load(&second.tid) == holder->stat.tid;
}

static void test_last_first(void)
{
	struct wq_config config = { .hog_ns = 60000000000ull };
	unsigned int last = 0, tries = wq_help_scale(40);
	static struct wq_hold hold;

	pools = wq_help_open(&config, "unbound:system", NULL, &wq);
	if (wq_pools_topo(pools)->nr < 2) {
		skip(1, "one CPU has one worker");
		wq_help_close(pools, wq);
		return;
	}
	for (unsigned int i = 0; i < tries; i++)
		last += last_came(&hold);
	/* One that others keep from sleeping for 3 ms is second to none. */
	ok(last * 10 >= tries * 9,
	   "the worker that went idle last is woken first (%u of %u)", last,
	   tries);
	wq_help_close(pools, wq);
}

static void test_spin(void)
{
	struct wq_config config = { .spin_ns = 300000 };
	static struct wq_seen seen[2000];
	unsigned int n = wq_help_scale(2000), ran = 0;

	pools = wq_help_open(&config, "unbound", NULL, &wq);
	for (unsigned int i = 0; i < n; i++) {
		wq_seen_init(&seen[i], 0, 1000);
		wq_queue(wq, &seen[i].work);
		if (i % 7 == 0)
			wq_help_sleep(1);
	}
	wq_meas_flush(wq);
	for (unsigned int i = 0; i < n; i++)
		ran += atomic_load(&seen[i].ran) == 1;
	is_uint(ran, n, "with spinning on each job runs once");
	wq_help_close(pools, wq);
}

static bool all_spin(void)
{
	struct wq_plan *bound = pools->plan[WQ_BOUND];

	for (int i = 0; i < 20000; i++) {
		size_t n = 0;

		for (size_t p = 0; p < bound->nr_pods; p++)
			n += atomic_load(&bound->pod[p].spinners);
		if (n == bound->nr_pods)
			return true;
		wq_help_sleep(1);
	}
	return false;
}

/* Workers that spin for seconds, one in each pod.  Before they looked at more
 * than jobs, a switch and the end waited until their time was over. */
static void test_long_spin(void)
{
	struct wq_config config = { .spin_ns = 8000000000ull };
	unsigned int n = wq_help_scale(200), ran = 0;
	uint64_t began, wakes;
	struct wq_switch cost = { .drain_ns = UINT64_MAX };
	struct wq_seen seen;
	struct wq_error why;

	pools = wq_help_open(&config, "bound", NULL, &wq);
	ok(all_spin(), "an idle worker of each pod spins");
	wakes = wq_meas_wakes(pools);
	for (unsigned int i = 0; i < n; i++) {
		wq_seen_on(wq, &seen, wq_help_cpu(pools, i), 0);
		ran += atomic_load(&seen.ran);
	}
	is_uint(ran, n, "and finds what is queued");
	is_uint(wq_meas_wakes(pools) - wakes, 0, "with no wake");
	wq_pools_switch(pools, wq_help_mode("bound"), &cost, &why);
	ok(cost.drain_ns < config.spin_ns / 2,
	   "a switch does not wait until it is tired of it");
	began = wq_mono_ns();
	wq_help_close(pools, wq);
	ok(wq_mono_ns() - began < config.spin_ns / 2, "nor does the end");
}

int main(void)
{
	plan(4 * 6 + 3 + 2 + 1 + 1 + 5);
	test_rules("bound");
	test_rules("unbound:system");
	test_rules("unbound:cpu,strict");
	test_rules("local-first");
	test_burst();
	test_last_first();
	test_spin();
	test_long_spin();
	return done();
}
