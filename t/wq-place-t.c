/* SPDX-License-Identifier: MIT */
/*
 * Placement: pure decisions, and pools on a made-up machine of two big and four
 * little CPUs under a simulated clock.
 */
#include "t/tap.h"
#include "wq/sim.h"

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
	ok(wq_place_fits(&place, &view, LITTLE, 312 * US),
	   "a job of 80 %% of the budget on its CPU fits");
	ok(!wq_place_fits(&place, &view, LITTLE, 313 * US),
	   "a job of more than 80 %% does not");
	ok(wq_place_fits(&place, &view, BIG, 800 * US), "a big CPU takes more");
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

static struct wq_sim_result result;

static void simulate(struct wq_sim_job *jobs, size_t nr,
		     const unsigned int *lost)
{
	struct wq_sim sim = { .topo = topo,
			      .place = place,
			      .lost_permille = lost,
			      .wake_ns = 30 * US };

	if (wq_sim_run(&sim, jobs, nr, &result) < 0)
		bail("the simulation refuses its input");
}

/* A long job and a short one, both queued on little CPUs, not known before. */
static void test_sim_misfit(void)
{
	struct wq_sim_job jobs[] = {
		{ .cpu = 0, .work_ns = 4 * MS, .block_ns = 50 * US },
		{ .cpu = 1, .work_ns = 100 * US, .block_ns = 50 * US },
	};
	uint64_t without;

	fresh();
	simulate(jobs, 2, NULL);
	without = jobs[0].end_ns;
	is_uint(jobs[0].splits, 0, "without kick-misfit a long job stays");
	place.switches = WQ_PLACE_KICK_MISFIT;
	simulate(jobs, 2, NULL);
	is_uint(jobs[0].splits, 1, "with it, it is cut once");
	is_uint(jobs[0].first_cpu, 0, "it began where it was queued");
	is_uint(jobs[0].last_cpu, BIG, "and ended on a big CPU");
	ok(jobs[0].end_ns < without, "sooner than without");
	is_uint(jobs[1].splits, 0, "the short job was not moved");
	is_uint(jobs[1].last_cpu, 1, "but ended where it was queued");
}

/* Found within a balance period of having turned out too long: after 312.5 us
 * of work, of which a little CPU does 400/1024 a nanosecond. */
static void test_sim_in_time(void)
{
	struct wq_sim_job job = { .work_ns = 100 * MS, .block_ns = 10 * US };
	uint64_t turned = 313 * US * 1024ull / 400 + 30 * US, moved;

	fresh();
	place.switches = WQ_PLACE_KICK_MISFIT;
	simulate(&job, 1, NULL);
	/* What was left when it was moved took end - moved - 30 us there; the
	 * rest, at 400/1024 of the speed, the time before that. */
	moved = (job.end_ns - job.work_ns) * 1024 / (1024 - 400);
	ok(moved >= turned && moved <= turned + place.balance_ns,
	   "a misfit is moved within one balance period") ||
		(diag("turned out at %llu ns, moved at %llu ns",
		      (unsigned long long)turned, (unsigned long long)moved),
		 0);
}

static void test_sim_steal(void)
{
	struct wq_sim_job jobs[12];
	uint64_t late;

	for (size_t i = 0; i < 12; i++)
		jobs[i] = (struct wq_sim_job){ .cpu = 0, .work_ns = 100 * US };
	fresh();
	place.balance_ns = 10 * US;
	place.migration_cost_ns = 100 * MS;
	simulate(jobs, 12, NULL);
	is_uint(result.steals, 0, "nothing waits migration_cost_ns: no steal");
	late = result.makespan_ns;
	place.migration_cost_ns = 500 * US;
	simulate(jobs, 12, NULL);
	ok(result.steals > 0, "with the kernel's 500 us some are stolen");
	ok(result.makespan_ns < late, "and all are done sooner");
	for (size_t i = 0; i < 12; i++)
		if (jobs[i].stolen && jobs[i].start_ns < 500 * US)
			late = 0;
	ok(late, "none that waited less");
	late = result.makespan_ns;
	place.migration_cost_ns = 0;
	simulate(jobs, 12, NULL);
	ok(result.makespan_ns < late, "with 0 as the mail has it, sooner yet");
}

static void test_sim_busy_factor(void)
{
	struct wq_sim_job jobs[30];
	uint64_t often;

	for (size_t i = 0; i < 30; i++)
		jobs[i] = (struct wq_sim_job){ .cpu = i % CPUS,
					       .work_ns = 2 * MS };
	fresh();
	place.migration_cost_ns = 100 * MS;
	place.busy_factor = 1;
	simulate(jobs, 30, NULL);
	often = result.scans;
	place.busy_factor = 16;
	simulate(jobs, 30, NULL);
	ok(result.scans * 4 < often,
	   "busy_factor 16: busy CPUs look at others far less often than with "
	   "1 (%llu against %llu)",
	   (unsigned long long)result.scans, (unsigned long long)often);
}

/* Known jobs, all queued on CPU 0, under one switch and under none. */
static uint64_t makespan(unsigned int switches, const unsigned int *lost)
{
	struct wq_sim_job jobs[24];

	for (size_t i = 0; i < 24; i++)
		jobs[i] = (struct wq_sim_job){ .cpu = 0,
					       .work_ns = 200 * US,
					       .known = true };
	place.switches = switches;
	simulate(jobs, 24, lost);
	return result.makespan_ns;
}

static void test_sim_switches(void)
{
	static const unsigned int lost[CPUS] = { 0, 0, 0, 0, 900, 900 };
	uint64_t none;

	fresh();
	place.migration_cost_ns = 100 * MS;
	none = makespan(0, NULL);
	ok(makespan(WQ_PLACE_LEAST_LOADED, NULL) < none,
	   "least-loaded alone spreads what select would pile up");
	ok(makespan(WQ_PLACE_FORCE_BALANCE, NULL) < none,
	   "force-balance alone takes it away again");
	none = makespan(WQ_PLACE_LEAST_LOADED, lost);
	ok(makespan(WQ_PLACE_LEAST_LOADED | WQ_PLACE_ORIG_CAPACITY, lost) >
		   none,
	   "orig-capacity trusts big CPUs that interrupts have taken");
	none = makespan(WQ_PLACE_FORCE_BALANCE, NULL);
	ok(makespan(WQ_PLACE_FORCE_BALANCE | WQ_PLACE_OVER_NOT_IDLE, NULL) >=
		   none,
	   "over-not-idle never balances more");
}

static void test_sim_same(void)
{
	struct wq_sim_job a[20], b[20];
	struct wq_sim_result first;

	fresh();
	place.switches = WQ_PLACE_ALL;
	memset(a, 0, sizeof(a));
	for (size_t i = 0; i < 20; i++) {
		a[i].arrive_ns = i * 37 * US;
		a[i].cpu = i * 5 % CPUS;
		a[i].work_ns = (1 + i * 7 % 11) * 90 * US;
		a[i].block_ns = 30 * US;
		a[i].known = i % 3 == 0;
	}
	memcpy(b, a, sizeof(b));
	simulate(a, 20, NULL);
	first = result;
	simulate(b, 20, NULL);
	is_mem(a, b, sizeof(a), "the same input gives the same run");
	is_mem(&first, &result, sizeof(first), "and the same result");
	for (size_t i = 0; i < 20; i++)
		if (a[i].end_ns < a[i].start_ns + a[i].work_ns ||
		    a[i].start_ns < a[i].arrive_ns)
			first.makespan_ns = 0;
	ok(first.makespan_ns, "no job takes less time than its work");
	a[3].arrive_ns = 0;
	{
		struct wq_sim sim = { .topo = topo, .place = place };

		is_int(wq_sim_run(&sim, a, 20, &result), -22,
		       "jobs out of order are refused");
	}
}

static void test_names(void)
{
	is_str(wq_place_switch_name(WQ_PLACE_KICK_MISFIT), "kick-misfit",
	       "a switch has a name");
	is_str(wq_place_switch_name(WQ_PLACE_OVER_NOT_IDLE), "over-not-idle",
	       "the last one too");
	is_str(wq_place_switch_name(3), NULL, "two together have none");
}

int main(void)
{
	char path[] = "/tmp/wq-place-XXXXXX";
	struct wq_error why;
	int fd = mkstemp(path);

	plan(56);
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
	test_sim_misfit();
	test_sim_in_time();
	test_sim_steal();
	test_sim_busy_factor();
	test_sim_switches();
	test_sim_same();
	test_names();
	wq_topo_free(topo);
	return done();
}
