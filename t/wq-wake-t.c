/* SPDX-License-Identifier: MIT */
/* time-limit: 120
 *
 * Who is woken, where workers run, and when local-first spreads.
 */
#define WQ_BENCH /* as what it is linked with */
#include "t/tap.h"
#include "t/wq_help.h"
#include "wq/pool.h" /* wq_point, and the lock that no wake may hold */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct wq_pools *pools;
static struct wq *wq;

struct item {
	struct wq_work work; /* first */
	_Atomic int tid;
	_Atomic int cpu;
	cpu_set_t mask;
	uint64_t spin_ns;
};

static _Atomic unsigned int ran;

static void look(struct wq_work *work)
{
	struct item *item = (struct item *)work;
	uint64_t end = wq_mono_ns() + item->spin_ns;

	atomic_store(&item->tid, (int)gettid());
	atomic_store(&item->cpu, sched_getcpu());
	sched_getaffinity(0, sizeof(item->mask), &item->mask);
	while (wq_mono_ns() < end)
		;
	atomic_fetch_add(&ran, 1);
}

static void init(struct item *item, uint64_t spin_ns)
{
	wq_work_init(&item->work, look, 0);
	item->spin_ns = spin_ns;
	atomic_store(&item->tid, 0);
}

static uint64_t wakes(void)
{
	struct wq_cpu_stats stats;
	uint64_t sum = 0;

	for (size_t i = 0; !wq_cpu_stats(pools, i, &stats); i++)
		sum += stats.wakes;
	return sum;
}

static _Atomic unsigned int held, woken;

/* At each wake: the lock can be taken, so it was not held. */
static void at_wake(enum wq_point point)
{
	if (point != WQ_POINT_WAKE)
		return;
	atomic_fetch_add(&woken, 1);
	if (pthread_mutex_trylock(&pools->lock))
		atomic_fetch_add(&held, 1);
	else
		pthread_mutex_unlock(&pools->lock);
}

static void test_rules(const char *mode)
{
	unsigned int n = wq_help_scale(300);
	static struct item item[64];
	uint64_t before;

	pools = wq_help_open(NULL, mode, NULL, &wq);
	wq_help_sleep(20);
	atomic_store(&held, 0);
	wq_point = at_wake;
	before = wakes();
	for (unsigned int i = 0; i < n; i++) {
		init(&item[0], 0);
		wq_queue(wq, &item[0].work);
		wq_flush(wq);
		wq_help_sleep(1);
	}
	ok(wakes() - before <= n, "%s: at most one wake an enqueue", mode);
	ok(wakes() - before >= n / 2, "and one when the worker sleeps");
	before = wakes();
	for (unsigned int i = 0; i < 64; i++) {
		init(&item[i], 20000);
		wq_queue(wq, &item[i].work);
	}
	wq_flush(wq);
	ok(wakes() - before <= 64, "never more than there are jobs");
	wq_point = NULL;
	is_uint(atomic_load(&held), 0, "and none under a lock");
	wq_help_close(pools, wq);
}

/* Both workers of two CPUs come for a burst, though each enqueue may find the
 * first one on its way. */
static void test_chain(void)
{
	static struct item item[40];
	int first = 0, other = 0;

	pools = wq_help_open(NULL, "unbound:system", NULL, &wq);
	wq_help_sleep(20);
	for (unsigned int i = 0; i < 40; i++) {
		init(&item[i], 2000000);
		wq_queue_on(wq_help_cpu(pools, 0), wq, &item[i].work);
	}
	wq_flush(wq);
	first = atomic_load(&item[0].tid);
	for (unsigned int i = 0; i < 40; i++)
		other += atomic_load(&item[i].tid) != first;
	if (wq_pools_topo(pools)->nr < 2)
		skip(1, "one CPU has one worker");
	else
		ok(other > 0,
		   "a burst brings all workers (%d of 40 jobs were "
		   "not the first's)",
		   other);
	wq_help_close(pools, wq);
}

/* Of two that sleep, the one that went to sleep last is woken. */
static void test_last_first(void)
{
	static struct item first, second;
	unsigned int last = 0, tries = wq_help_scale(40);
	struct wq_hold *hold = calloc(1, sizeof(*hold));

	pools = wq_help_open(NULL, "unbound:system", NULL, &wq);
	if (wq_pools_topo(pools)->nr < 2) {
		skip(1, "one CPU has one worker");
		wq_help_close(pools, wq);
		free(hold);
		return;
	}
	for (unsigned int i = 0; i < tries; i++) {
		wq_help_hold(hold, false);
		wq_queue(wq, &hold->work);
		wq_help_until(&hold->held, 1);
		init(&first, 0);
		wq_queue(wq, &first.work); /* the other one */
		wq_flush_work(&first.work);
		wq_help_sleep(3); /* it sleeps again */
		wq_help_let_go(hold);
		wq_flush(wq);
		wq_help_sleep(3); /* the holder went to sleep last */
		init(&second, 0);
		wq_queue(wq, &second.work);
		wq_flush(wq);
		last += atomic_load(&second.tid) != atomic_load(&first.tid);
	}
	ok(last * 10 >= tries * 9,
	   "the worker that was idle last is woken "
	   "first (%u of %u)",
	   last, tries);
	wq_help_close(pools, wq);
	free(hold);
}

static void test_spin(void)
{
	struct wq_config config = { .spin_ns = 300000 };
	static struct item item[2000];
	unsigned int n = wq_help_scale(2000);

	pools = wq_help_open(&config, "unbound", NULL, &wq);
	atomic_store(&ran, 0);
	for (unsigned int i = 0; i < n; i++) {
		init(&item[i], 1000);
		wq_queue(wq, &item[i].work);
		if (i % 7 == 0)
			wq_help_sleep(1);
	}
	wq_flush(wq);
	is_uint(atomic_load(&ran), n, "with spinning on no job is lost");
	wq_help_close(pools, wq);
}

/* Is the mask of an item run for @cpu what the mode says? */
static bool mask_is(int cpu, int want, const char *mode)
{
	static struct item item;
	cpu_set_t set;

	init(&item, 0);
	wq_queue_on(cpu, wq, &item.work);
	wq_flush(wq);
	CPU_ZERO(&set);
	if (want < 0)
		set = pools->cpus;
	else
		CPU_SET(want, &set);
	if (CPU_EQUAL(&item.mask, &set))
		return true;
	diag("%s: the worker of cpu %d has another mask", mode, cpu);
	return false;
}

static void test_masks(void)
{
	struct wq_error why;
	size_t nr;
	bool right = true;

	pools = wq_help_open(NULL, "bound", NULL, &wq);
	nr = wq_pools_topo(pools)->nr;
	for (size_t i = 0; i < nr; i++)
		right &= mask_is(wq_help_cpu(pools, i), wq_help_cpu(pools, i),
				 "bound");
	ok(right, "bound: each worker is pinned to its CPU");
	wq_pools_switch(pools, wq_help_mode("unbound:cpu,strict"), NULL, &why);
	for (size_t i = 0; i < nr; i++)
		right &= mask_is(wq_help_cpu(pools, i), wq_help_cpu(pools, i),
				 "strict");
	ok(right, "unbound:cpu,strict: it never leaves its pod");
	wq_pools_switch(pools, wq_help_mode("unbound:system"), NULL, &why);
	ok(mask_is(wq_help_cpu(pools, 0), -1, "unbound"),
	   "unbound: it may run on all");
	wq_pools_switch(pools, wq_help_mode("local-first"), NULL, &why);
	/* Another worker may take the item when this one is slow to come. */
	right = false;
	for (int i = 0; i < 50 && !right; i++)
		right = mask_is(wq_help_cpu(pools, nr - 1),
				wq_help_cpu(pools, nr - 1), "local-first");
	ok(right, "local-first: pinned again");
	wq_help_close(pools, wq);
}

/* What an operator or a cpuset does from outside: every thread's mask. */
static void narrow(const cpu_set_t *cpus)
{
	struct wq_worker *w;

	for (w = atomic_load(&pools->all); w; w = w->next)
		if (w->has_thread)
			sched_setaffinity(w->stat.tid, sizeof(*cpus), cpus);
	pthread_setaffinity_np(pools->watcher, sizeof(*cpus), cpus);
}

static bool said_within(const char *words, unsigned int ms)
{
	for (unsigned int i = 0; i < ms / 10 && !wq_help_said(words); i++)
		wq_help_sleep(10);
	return wq_help_said(words);
}

static void test_lost(void)
{
	struct wq_cpu_stats stats;
	static struct item item;
	cpu_set_t one, all;
	int gone;

	pools = wq_help_open(NULL, "bound", NULL, &wq);
	if (wq_pools_topo(pools)->nr < 2 || wq_help_emulated()) {
		skip(6, "two CPUs are needed, not emulated ones");
		wq_help_close(pools, wq);
		return;
	}
	gone = wq_help_cpu(pools, 1);
	all = pools->cpus;
	CPU_ZERO(&one);
	CPU_SET(wq_help_cpu(pools, 0), &one);
	narrow(&one);
	ok(said_within("is offline or outside the cpuset: its pool is now "
		       "unbound",
		       8000),
	   "a CPU that is taken away is missed");
	wq_cpu_stats(pools, 1, &stats);
	ok(stats.lost, "its statistics say so");
	init(&item, 0);
	wq_queue_on(gone, wq, &item.work);
	wq_flush(wq);
	is_int(atomic_load(&item.cpu), wq_help_cpu(pools, 0),
	       "its jobs run elsewhere");
	pthread_setaffinity_np(pools->watcher, sizeof(all), &all);
	ok(said_within("is back", 8000), "a CPU that comes back is noticed");
	wq_cpu_stats(pools, 1, &stats);
	ok(!stats.lost, "its statistics say so");
	ok(mask_is(gone, gone, "bound"), "its worker is pinned to it again");
	wq_help_close(pools, wq);
}

static void test_prio(void)
{
	struct wq_prio five = { .nice = 5 }, now;
	struct wq_error why;
	struct wq_worker *w;
	unsigned int wrong = 0;
	static struct wq_hold hold;

	pools = wq_help_open(NULL, "bound", NULL, &wq);
	is_int(wq_pools_prio(pools, &five, &why), 0, "nice may be raised");
	wq_help_hold(&hold, true); /* brings a new worker */
	wq_queue(wq, &hold.work);
	wq_help_until(&hold.held, 1);
	wq_help_let_go(&hold);
	wq_flush(wq);
	for (w = atomic_load(&pools->all); w; w = w->next)
		if (w->has_thread && (wq_sched_prio_get(w->stat.tid, &now) ||
				      now.nice != 5 || now.fifo))
			wrong++;
	is_uint(wrong, 0, "and is read back from every worker, new ones too");
	five.nice = 20;
	is_int(wq_pools_prio(pools, &five, &why), -EINVAL, "20 is refused");
	ok(strstr(why.text, "nice 20 was asked for; -20 to 19"),
	   "in words that say what is possible");
	wq_help_close(pools, wq);
}

static void refused(struct wq_config *config, int code, const char *words)
{
	struct wq_pools *none;
	struct wq_error why = { "" };

	config->handoff_ns = 1;
	is_int(wq_pools_new(config, &none, &why), code, "refused");
	ok(strstr(why.text, words), "with '%s'", words) ||
		(diag("%s", why.text), 0);
}

static void test_config(void)
{
	struct wq_config cpus = { 0 }, ring = { .ring = 3 };
	struct wq_config classes = { .classes = 17 };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(1000, &set);
	is_uint(wq_capacity_left(1024, 30, 120), 768,
		"a CPU that lost a quarter of its time has three left");
	is_uint(wq_capacity_left(400, 120, 120), 1, "and never none");
	cpus.cpus = &set;
	refused(&cpus, -EINVAL, "CPUs 1000 were asked for; this process may");
	refused(&ring, -EINVAL, "a ring of 3 jobs was asked for; a power of");
	refused(&classes, -EINVAL, "17 classes were asked for; at most 16");
}

/* All jobs queued for one CPU: how many did its own worker not run? */
static unsigned int spread(uint64_t handoff_ns, unsigned int jobs,
			   uint64_t spin_ns)
{
	struct wq_config config = { .handoff_ns = handoff_ns };
	static struct item item[100];
	unsigned int away = 0;
	int own;

	pools = wq_help_open(&config, "local-first", NULL, &wq);
	wq_help_sleep(10);
	init(&item[0], spin_ns);
	wq_queue_on(wq_help_cpu(pools, 1), wq, &item[0].work);
	wq_flush(wq);
	own = atomic_load(&item[0].tid);
	for (unsigned int i = 0; i < jobs; i++) {
		init(&item[i], spin_ns);
		wq_queue_on(wq_help_cpu(pools, 1), wq, &item[i].work);
		if (!spin_ns)
			wq_help_sleep(1);
	}
	wq_flush(wq);
	for (unsigned int i = 0; i < jobs; i++)
		away += atomic_load(&item[i].tid) != own;
	wq_help_close(pools, wq);
	return away;
}

static void test_local_first(void)
{
	pools = wq_help_open(NULL, "local-first", NULL, &wq);
	is_int(wq_misfit(1000000000), -1,
	       "outside of an item nothing is moved");
	if (wq_pools_topo(pools)->nr < 2) {
		skip(3, "two CPUs are needed");
		wq_help_close(pools, wq);
		return;
	}
	wq_help_close(pools, wq);
	ok(spread(1000000000, 50, 0) == 0, "short jobs stay where they were "
					   "queued");
	ok(spread(1000000000, 50, 300000) == 0,
	   "so do long ones while a hand-off is thought to cost a second");
	ok(spread(50000, 50, 1000000) > 5,
	   "a backlog longer than a hand-off is spread");
}

/* CPUs of unequal capacity, as a made-up topology has them. */
static _Atomic int target;

static void ask(struct wq_work *work)
{
	(void)work;
	atomic_store(&target, wq_misfit(10000000));
}

static void test_misfit(void)
{
	struct wq_config config = {
		.place = { .switches = WQ_PLACE_KICK_MISFIT,
			   .budget_ns = 1000000 },
	};
	char path[] = "/tmp/wq-wake-XXXXXX";
	struct wq_work work;
	struct wq_error why;
	struct wq_topo *topo;
	FILE *f = fdopen(mkstemp(path), "w");

	if (!f || fputs("cpu 0 capacity=400\ncpu 1 capacity=1024\n", f) < 0 ||
	    fclose(f) || wq_topo_load(path, &topo, &why) < 0)
		bail("no topology");
	remove(path);
	config.topo = topo;
	config.mode.binding = WQ_LOCAL_FIRST;
	config.handoff_ns = 20000;
	if (wq_pools_new(&config, &pools, &why) < 0) {
		skip(2, "%s", why.text);
		wq_topo_free(topo);
		return;
	}
	wq_new(pools, &(struct wq_attrs){ .name = "misfit" }, &wq, &why);
	wq_work_init(&work, ask, 0);
	wq_queue_on(0, wq, &work);
	wq_flush(wq);
	is_int(atomic_load(&target), 1,
	       "a long item on a little CPU is told of the big one");
	wq_queue_on(1, wq, &work);
	wq_flush(wq);
	is_int(atomic_load(&target), -1, "one on the big CPU may go on");
	wq_help_close(pools, wq);
	wq_topo_free(topo);
}

int main(void)
{
	plan(12 + 3 + 4 + 6 + 4 + 8 + 4 + 2);
	test_rules("bound");
	test_rules("unbound");
	test_rules("local-first");
	test_chain();
	test_last_first();
	test_spin();
	test_masks();
	test_lost();
	test_prio();
	test_config();
	test_local_first();
	test_misfit();
	return done();
}
