/* SPDX-License-Identifier: MIT */
/*
 * Placement: pure decisions, on a made-up machine of two big and four little
 * CPUs.  What they lead to is in wq-sim-t.c.
 */
#include "t/tap.h"
#include "wq/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define US 1000u
#define MS 1000000u

/* CPUs 0 to 3 are little, 4 and 5 big. */
enum { LITTLE = 0, BIG = 4, CPUS = 6 };
static const char machine[] = "cpu 0 cache=0 capacity=400\n"
			      "cpu 1 cache=0 capacity=400\n"
			      "cpu 2 cache=0 capacity=400\n"
			      "cpu 3 cache=0 capacity=400\n"
			      "cpu 4 cache=1 capacity=1024\n"
			      "cpu 5 cache=1 capacity=1024\n";

static struct wq_topo *topo;
static struct wq_place_cpu cpu[CPUS];
static struct wq_place_view view;
static struct wq_place place;

/* All CPUs idle, nothing lost, knobs as below, no switch on. */
static void fresh(void)
{
	memset(cpu, 0, sizeof(cpu));
	for (size_t i = 0; i < CPUS; i++) {
		cpu[i].capacity_orig = topo->cpu[i].capacity;
		cpu[i].capacity = topo->cpu[i].capacity;
		cpu[i].usable = true;
		cpu[i].idle = true;
	}
	view.topo = topo;
	view.cpu = cpu;
	view.now_ns = 1000 * MS;
	memset(&place, 0, sizeof(place));
	place.migration_cost_ns = 500 * US;
	place.balance_ns = 1 * MS;
	place.busy_factor = 16;
	place.spread_ns = 50 * US;
	place.budget_ns = 1 * MS;
}

static void busy(size_t i, uint64_t left, unsigned int queued, uint64_t backlog)
{
	cpu[i].idle = false;
	cpu[i].running_left_ns = left;
	cpu[i].queued = queued;
	cpu[i].backlog_ns = backlog;
}

static size_t chosen(size_t issuer, uint64_t ns)
{
	return wq_place_select(&place, &view, issuer, ns);
}

static void test_fits(void)
{
	fresh();
	/* 1 ms less a fifth, at 400 of 1024: 312.5 us. */
	ok(wq_place_fits(&place, &view, LITTLE, 312500),
	   "a job of 80 %% of the budget on its CPU fits");
	ok(!wq_place_fits(&place, &view, LITTLE, 312501),
	   "a job of more than 80 %% does not");
	ok(wq_place_fits(&place, &view, BIG, 800000) &&
		   !wq_place_fits(&place, &view, BIG, 800001),
	   "a big CPU takes more");
	ok(!wq_place_fits(&place, &view, LITTLE, UINT64_MAX),
	   "a job without end does not");
	place.budget_ns = 0;
	ok(wq_place_fits(&place, &view, LITTLE, UINT64_MAX),
	   "unless there is no budget");
	place.budget_ns = 1 * MS;
	is_uint(chosen(LITTLE, 100 * US), LITTLE,
		"a job that fits stays on the CPU that queues it");
	is_uint(chosen(LITTLE, 500 * US), BIG,
		"one that does not goes to a big CPU that rests");
	cpu[BIG].usable = false;
	is_uint(chosen(LITTLE, 500 * US), BIG + 1, "not to one that is lost");
	cpu[LITTLE].usable = false;
	is_uint(chosen(LITTLE, 100 * US), LITTLE + 1,
		"what a lost CPU queues goes to the nearest");
}

static void test_orig(void)
{
	fresh();
	cpu[BIG].capacity = 300; /* interrupts take most of it */
	is_uint(chosen(BIG, 500 * US), BIG + 1,
		"current capacity counts by default");
	place.switches = WQ_PLACE_ORIG_CAPACITY;
	is_uint(chosen(BIG, 500 * US), BIG, "orig-capacity: original capacity");
}

static void test_least_loaded(void)
{
	fresh();
	for (size_t i = 0; i < CPUS; i++)
		busy(i, 100 * US, 1, 100 * US);
	cpu[3].running_left_ns = 10 * US;
	cpu[3].backlog_ns = 10 * US;
	is_uint(chosen(LITTLE, 10 * US), LITTLE,
		"all over: the job stays where it was queued");
	place.switches = WQ_PLACE_LEAST_LOADED;
	is_uint(chosen(LITTLE, 10 * US), 3,
		"least-loaded: it goes where it is done first");
}

static void test_over(void)
{
	fresh();
	cpu[LITTLE].queued = 1;
	cpu[LITTLE].backlog_ns = 100 * US;
	ok(wq_place_over(&place, &view, LITTLE),
	   "a CPU with a long backlog is over");
	place.switches = WQ_PLACE_OVER_NOT_IDLE;
	ok(!wq_place_over(&place, &view, LITTLE),
	   "over-not-idle: not if it runs nothing");
	cpu[LITTLE].idle = false;
	ok(wq_place_over(&place, &view, LITTLE), "but if it does");
	cpu[LITTLE].backlog_ns = 19 * US; /* 48.6 us there */
	ok(!wq_place_over(&place, &view, LITTLE),
	   "a backlog shorter than a hand-off is not over");
}

static void test_kick(void)
{
	fresh();
	busy(LITTLE, 900 * US, 0, 0);
	is_uint(wq_place_misfit(&place, &view, LITTLE, 900 * US), LITTLE,
		"no big CPU is woken for a misfit by default");
	place.switches = WQ_PLACE_KICK_MISFIT;
	is_uint(wq_place_misfit(&place, &view, LITTLE, 700 * US), BIG,
		"kick-misfit: the rest goes to a big CPU that rests");
	is_uint(wq_place_misfit(&place, &view, LITTLE, 200 * US), LITTLE,
		"a rest that fits stays");
	is_uint(wq_place_misfit(&place, &view, BIG, 5 * MS), BIG,
		"from the biggest CPU there is nowhere to go");
	place.switches = 0;
	busy(BIG, 20 * US, 0, 0);
	is_uint(wq_place_misfit(&place, &view, LITTLE, 900 * US), BIG,
		"a big CPU that is at work and not over takes it anyway");
}

static void test_steal(void)
{
	fresh();
	busy(LITTLE, 10 * US, 1, 10 * US);
	cpu[LITTLE].head_wait_ns = 500 * US - 1;
	is_uint(wq_place_victim(&place, &view, BIG), BIG,
		"a job that waited less than migration_cost_ns is left");
	cpu[LITTLE].head_wait_ns = 500 * US;
	is_uint(wq_place_victim(&place, &view, BIG), LITTLE,
		"one that waited so long is taken");
	cpu[LITTLE].head_wait_ns = 0;
	place.migration_cost_ns = 0;
	is_uint(wq_place_victim(&place, &view, BIG), LITTLE,
		"with migration_cost_ns 0 any is");
	place.migration_cost_ns = 500 * US;
	cpu[LITTLE].backlog_ns = 500 * US;
	is_uint(wq_place_victim(&place, &view, BIG), BIG,
		"a young job of an overloaded CPU is left too");
	place.switches = WQ_PLACE_FORCE_BALANCE;
	is_uint(wq_place_victim(&place, &view, BIG), LITTLE,
		"force-balance: it is taken");
}

static void test_due(void)
{
	fresh();
	cpu[BIG].balanced_ns = view.now_ns - 1 * MS;
	ok(wq_place_due(&place, &view, BIG), "an idle CPU looks each period");
	cpu[BIG].balanced_ns++;
	ok(!wq_place_due(&place, &view, BIG), "and not before");
	cpu[BIG].idle = false;
	cpu[BIG].balanced_ns = view.now_ns - 15 * MS;
	ok(!wq_place_due(&place, &view, BIG),
	   "a busy one looks busy_factor times less often");
	cpu[BIG].balanced_ns = view.now_ns - 16 * MS;
	ok(wq_place_due(&place, &view, BIG), "but it does");
	cpu[BIG].balanced_ns = view.now_ns;
	place.switches = WQ_PLACE_FORCE_BALANCE;
	ok(!wq_place_due(&place, &view, BIG),
	   "force-balance: no need while no CPU is over");
	busy(LITTLE, 0, 1, 500 * US);
	ok(wq_place_due(&place, &view, BIG), "at once when one is");
}

/* A CPU at work, too, may look for the work of others. */
static void test_busy_thief(void)
{
	fresh();
	place.migration_cost_ns = 0;
	busy(0, 100 * US, 3, 300 * US);
	busy(1, 100 * US, 2, 200 * US);
	is_uint(wq_place_victim(&place, &view, 1), 1,
		"a CPU at work takes nothing that would make it the later one");
	is_uint(wq_place_victim(&place, &view, 0), 0, "nor does the later one");
	cpu[1].queued = 1;
	cpu[1].backlog_ns = 100 * US - 1;
	is_uint(wq_place_victim(&place, &view, 1), 0,
		"it takes what is done sooner there");
	busy(0, 0, 2, 0);
	busy(1, 0, 1, 0);
	is_uint(wq_place_victim(&place, &view, 1), 1,
		"jobs of unknown length are counted the same way");
	cpu[0].queued = 3;
	is_uint(wq_place_victim(&place, &view, 1), 0, "two more are more");
	cpu[0].queued = 1;
	cpu[0].usable = false;
	cpu[0].head_wait_ns = 0;
	place.migration_cost_ns = UINT64_MAX;
	is_uint(wq_place_victim(&place, &view, BIG), 0,
		"what waits on a lost CPU is anybody's at once");
}

/* Little, middle and big; the middle one is the nearest. */
static void test_three_sizes(void)
{
	struct wq_topo three = *topo;
	int pod[WQ_SCOPES][3];

	fresh();
	three.nr = 3;
	/* Two CPUs of one cache, and one of the other. */
	for (int s = 0; s < WQ_SCOPES; s++) {
		pod[s][0] = topo->pod[s][0];
		pod[s][1] = topo->pod[s][1];
		pod[s][2] = topo->pod[s][BIG];
		three.pod[s] = pod[s];
	}
	view.topo = &three;
	cpu[0].capacity = cpu[0].capacity_orig = 300;
	cpu[1].capacity = cpu[1].capacity_orig = 500;
	cpu[2].capacity = cpu[2].capacity_orig = 1024;
	busy(0, 600 * US, 0, 0);
	place.switches = WQ_PLACE_KICK_MISFIT;
	is_uint(wq_place_misfit(&place, &view, 0, 300 * US), 1,
		"a rest goes to the nearest CPU where it fits");
	is_uint(wq_place_misfit(&place, &view, 0, 600 * US), 2,
		"past a nearer one where it does not");
	is_uint(wq_place_misfit(&place, &view, 0, 5 * MS), 1,
		"if it fits nowhere, to the nearest that is bigger");
}

/* One decision for each switch, in a situation where it matters. */

static size_t on_misfit(void)
{
	busy(LITTLE, 900 * US, 0, 0);
	return wq_place_misfit(&place, &view, LITTLE, 900 * US);
}

static size_t on_lost_capacity(void)
{
	cpu[BIG].capacity = 300;
	return chosen(BIG, 500 * US);
}

static size_t on_overload(void)
{
	for (size_t i = 0; i < CPUS; i++)
		busy(i, 100 * US, 1, 100 * US);
	cpu[3].running_left_ns = 10 * US;
	cpu[3].backlog_ns = 10 * US;
	return chosen(LITTLE, 10 * US);
}

static size_t on_young_jobs(void)
{
	busy(LITTLE, 100 * US, 5, 500 * US);
	return wq_place_victim(&place, &view, BIG);
}

static size_t on_wake(void)
{
	cpu[LITTLE].queued = 1;
	cpu[LITTLE].backlog_ns = 100 * US;
	return chosen(LITTLE, 10 * US);
}

static void test_alone(void)
{
	static size_t (*const decide[])(void) = {
		on_misfit,     on_lost_capacity, on_overload,
		on_young_jobs, on_wake,
	};
	static const struct {
		size_t off, on;
	} want[] = {
		{ LITTLE, BIG }, { BIG + 1, BIG },       { LITTLE, 3 },
		{ BIG, LITTLE }, { LITTLE + 1, LITTLE },
	};

	for (unsigned int d = 0; d < 5; d++) {
		fresh();
		is_uint(decide[d](), want[d].off, "decision %u without %s", d,
			wq_place_switch_name(1u << d));
		for (unsigned int s = 0; s < 5; s++) {
			fresh();
			place.switches = 1u << s;
			is_uint(decide[d](), s == d ? want[d].on : want[d].off,
				"%s alone %s it", wq_place_switch_name(1u << s),
				s == d ? "changes" : "leaves");
		}
		fresh();
		place.switches = WQ_PLACE_ALL & ~(1u << d);
		is_uint(decide[d](), want[d].off, "all but %s leave it",
			wq_place_switch_name(1u << d));
	}
}

static void test_names(void)
{
	static const char *const names[] = { "kick-misfit", "orig-capacity",
					     "least-loaded", "force-balance",
					     "over-not-idle" };

	for (unsigned int i = 0; i < 5; i++)
		is_str(wq_place_switch_name(1u << i), names[i],
		       "a switch has a name");
	is_str(wq_place_switch_name(0x20), NULL, "a bit too far has none");
	is_str(wq_place_switch_name(3), NULL, "nor have two together");
	is_str(wq_place_switch_name(0), NULL, "nor has none");
}

int main(void)
{
	char path[] = "/tmp/wq-place-XXXXXX";
	struct wq_error why;
	int fd = mkstemp(path);

	plan(85);
	if (fd < 0 || write(fd, machine, strlen(machine)) < 0)
		bail("cannot write %s", path);
	if (wq_topo_load(path, &topo, &why) < 0)
		bail("%s", why.text);
	close(fd);
	unlink(path);
	test_fits();
	test_orig();
	test_least_loaded();
	test_over();
	test_kick();
	test_steal();
	test_due();
	test_busy_thief();
	test_three_sizes();
	test_alone();
	test_names();
	wq_topo_free(topo);
	return done();
}
