/* SPDX-License-Identifier: MIT */
/* time-limit: 120
 *
 * Local-first: jobs stay where they were queued until that takes longer than
 * a hand-off; on unequal CPUs long ones go to a big one.
 */
#define WQ_BENCH /* as what it is linked with */
#include "t/tap.h"
#include "t/wq_meas.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MILLI  1000000ull
#define MINUTE (60000 * MILLI)

static struct wq_pools *pools;
static struct wq *wq;

/* Of jobs that are queued for the last CPU, one at a time or all at once: how
 * many did another CPU's worker run? */
static unsigned int spread(uint64_t handoff_ns, unsigned int jobs,
			   uint64_t spin_ns)
{
	struct wq_config config = { .handoff_ns = handoff_ns,
				    .hog_ns = MINUTE };
	static struct wq_seen seen[400];
	unsigned int away = 0;
	int cpu;

	pools = wq_help_open(&config, "local-first", NULL, &wq);
	cpu = wq_help_cpu(pools, pools->nr - 1);
	wq_help_sleep(10);
	/* The first tells how long such jobs take. */
	for (unsigned int i = 0; i < jobs; i++) {
		wq_seen_init(&seen[i], 0, spin_ns);
		wq_queue_on(cpu, wq, &seen[i].work);
		if (!spin_ns || !i)
			wq_meas_flush(wq);
	}
	wq_meas_flush(wq);
	for (unsigned int i = 0; i < jobs; i++) {
		if (atomic_load(&seen[i].ran) != 1)
			bail("a job ran %u times", atomic_load(&seen[i].ran));
		away += atomic_load(&seen[i].home) != cpu;
	}
	wq_help_close(pools, wq);
	return away;
}

static void test_spread(void)
{
	unsigned int jobs = wq_help_scale(400), away;
	cpu_set_t mine;

	sched_getaffinity(0, sizeof(mine), &mine);
	if (CPU_COUNT(&mine) < 2) {
		skip(4, "two CPUs are needed");
		return;
	}
	/* A CPU that others keep busy for longer than a hand-off is helped. */
	away = spread(5 * MILLI, jobs, 0);
	ok(away * 10 <= jobs,
	   "short jobs stay where they were queued (%u of %u did not)", away,
	   jobs);
	is_uint(spread(MINUTE, 50, 300000), 0,
		"so do long ones while a hand-off is thought to take a minute");
	away = spread(100000, 60, MILLI);
	ok(away > 5, "a backlog that takes longer is spread: %u of 60", away);
	away = spread(1000, 100, 100000);
	ok(away > 5,
	   "so is a shorter one when a hand-off costs nothing: "
	   "%u of 100",
	   away);
}

static void test_calibrated(void)
{
	struct wq_config config = { .mode = { .binding = WQ_LOCAL_FIRST } };
	struct wq_error why;
	uint64_t ns;

	if (wq_pools_new(&config, &pools, &why) < 0)
		bail("%s", why.text);
	ns = wq_pools_handoff_ns(pools);
	diag("a hand-off takes %llu ns", (unsigned long long)ns);
	if (pools->nr < 2)
		ok(ns > MINUTE, "one CPU hands nothing over");
	else
		ok(ns > 0 && ns < 1000 * MILLI, "a hand-off is measured");
	wq_pools_free(pools);
	config.handoff_ns = 12345;
	if (wq_pools_new(&config, &pools, &why) < 0)
		bail("%s", why.text);
	is_uint(wq_pools_handoff_ns(pools), 12345, "unless it was told");
	wq_pools_free(pools);
}

struct asker {
	struct wq_work work; /* first */
	int target;
	int home; /* whose worker asked */
};

static void ask(struct wq_work *work)
{
	struct asker *asker = (struct asker *)work;

	asker->target = wq_misfit(1000 * MILLI);
	asker->home = wq_running->home ? wq_running->home->cpu : -1;
}

static struct asker asked_on(int cpu)
{
	struct asker asker = { .target = -2 };

	wq_work_init(&asker.work, ask, 0);
	wq_queue_on(cpu, wq, &asker.work);
	wq_meas_flush(wq);
	return asker;
}

static void test_equal(void)
{
	struct wq_error why;
	struct asker asker;

	pools = wq_help_open(NULL, "local-first", NULL, &wq);
	is_int(wq_misfit(1000 * MILLI), -1, "outside of an item nothing moves");
	if (pools->unequal)
		skip(1, "these CPUs are not alike");
	else
		is_int(asked_on(wq_help_cpu(pools, 0)).target, -1,
		       "on equal CPUs an item may go on");
	wq_pools_switch(pools, wq_help_mode("bound"), NULL, &why);
	asker = asked_on(wq_help_cpu(pools, 0));
	is_int(asker.target, -1, "as it may in mode bound");
	wq_help_close(pools, wq);
}

/* Pools on a little CPU 0 and a big CPU 1, where nothing is moved but because
 * it does not fit.  Return: false: skip. */
static bool open_unequal(const char *mode, struct wq_topo **topo,
			 struct wq_error *why)
{
	static const char *const names[] = { "short", "long" };
	struct wq_config config = {
		.classes = 2,
		.class_names = names,
		.hog_ns = MINUTE,
		.handoff_ns = MINUTE,
		.place = { .switches = WQ_PLACE_KICK_MISFIT |
				       WQ_PLACE_ORIG_CAPACITY,
			   .migration_cost_ns = MINUTE,
			   .budget_ns = 8 * MILLI },
	};
	char path[] = "/tmp/wq-local-XXXXXX";
	FILE *f = fdopen(mkstemp(path), "w");
	bool there;

	if (!f || fputs("cpu 0 capacity=400\ncpu 1 capacity=1024\n", f) < 0 ||
	    fclose(f))
		bail("no file for a topology");
	if (wq_topo_load(path, topo, why) < 0)
		bail("%s", why->text);
	remove(path);
	config.topo = *topo;
	config.mode = wq_help_mode(mode);
	there = wq_pools_new(&config, &pools, why) == 0;
	if (!there)
		wq_topo_free(*topo);
	else if (wq_new(pools, &(struct wq_attrs){ .name = "unequal" }, &wq,
			why) < 0)
		bail("%s", why->text);
	return there;
}

static void test_misfit(void)
{
	struct wq_topo *topo;
	struct wq_error why;
	struct asker asker;

	if (!open_unequal("local-first", &topo, &why)) {
		skip(4, "%s", why.text);
		return;
	}
	asker = asked_on(0);
	is_int(asker.home, 0, "an item for the little CPU begins there");
	is_int(asker.target, 1, "and is told that its long rest fits the big");
	is_int(asked_on(1).target, -1, "one on the big CPU may go on");
	wq_pools_switch(pools, wq_help_mode("bound"), NULL, &why);
	is_int(asked_on(0).target, -1, "as may all in mode bound");
	wq_help_close(pools, wq);
	wq_topo_free(topo);
}

static int home_of(unsigned int class, uint64_t spin_ns, bool anywhere)
{
	struct wq_seen seen;

	wq_seen_init(&seen, class, spin_ns);
	if (anywhere)
		wq_queue(wq, &seen.work);
	else
		wq_queue_on(0, wq, &seen.work);
	wq_meas_flush(wq);
	return atomic_load(&seen.home);
}

/* From the little CPU: a job is placed by how long its class takes. */
static void test_place(void)
{
	unsigned int there = 0, here = 0;
	struct wq_topo *topo;
	struct wq_error why;
	cpu_set_t mine;

	sched_getaffinity(0, sizeof(mine), &mine);
	if (!open_unequal("local-first", &topo, &why)) {
		skip(3, "%s", why.text);
		return;
	}
	wq_meas_pin(0);
	/* 10 ms on the little CPU are 4 ms on the big one, which fit. */
	for (int i = 0; i < 4; i++) {
		home_of(0, 0, false);
		home_of(1, 10 * MILLI, false);
	}
	for (int i = 0; i < 5; i++) {
		here += home_of(0, 0, true) == 0;
		there += home_of(1, 10 * MILLI, true) == 1;
	}
	is_uint(here, 5, "a short job stays on the little CPU");
	is_uint(there, 5, "a job that is too long for it goes to the big one");
	wq_pools_switch(pools, wq_help_mode("bound"), NULL, &why);
	is_int(home_of(1, 0, true), 0, "but in mode bound none leaves");
	sched_setaffinity(0, sizeof(mine), &mine);
	wq_help_close(pools, wq);
	wq_topo_free(topo);
}

static void test_current_capacity(void)
{
	is_uint(wq_capacity_left(1024, 30, 120), 768,
		"a CPU that lost a quarter of its time has three left");
	is_uint(wq_capacity_left(400, 120, 120), 1, "and never none");
	is_uint(wq_capacity_left(400, 0, 0), 400, "one not looked at has all");
}

int main(void)
{
	plan(4 + 2 + 3 + 4 + 3 + 3);
	test_spread();
	test_calibrated();
	test_equal();
	test_misfit();
	test_place();
	test_current_capacity();
	return done();
}
