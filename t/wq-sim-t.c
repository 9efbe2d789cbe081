/* SPDX-License-Identifier: MIT */
/*
 * Pools on a made-up machine of four little and two big CPUs, under a simulated
 * clock: what the placement decisions lead to.
 */
#include "t/tap.h"
#include "wq/sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define US 1000u
#define MS 1000000u

/* CPUs 0 to 3 are little, 4 and 5 big. */
enum { LITTLE = 0, BIG = 4, CPUS = 6, WAKE = 30 * US };
static const char machine[] = "cpu 0 cache=0 capacity=400\n"
			      "cpu 1 cache=0 capacity=400\n"
			      "cpu 2 cache=0 capacity=400\n"
			      "cpu 3 cache=0 capacity=400\n"
			      "cpu 4 cache=1 capacity=1024\n"
			      "cpu 5 cache=1 capacity=1024\n";

static struct wq_topo *topo;
static struct wq_sim sim;
static struct wq_sim_result result;

/* No switch on, and what waits is left where it is. */
static void fresh(void)
{
	memset(&sim, 0, sizeof(sim));
	sim.topo = topo;
	sim.wake_ns = WAKE;
	sim.place.migration_cost_ns = UINT64_MAX;
	sim.place.balance_ns = 1 * MS;
	sim.place.busy_factor = 16;
	sim.place.spread_ns = 50 * US;
	sim.place.budget_ns = 1 * MS;
}

static void run(unsigned int switches, struct wq_sim_job *jobs, size_t nr)
{
	sim.place.switches = switches;
	if (wq_sim_run(&sim, jobs, nr, &result) < 0)
		bail("the simulation refuses its input");
}

static void test_wake(void)
{
	struct wq_sim_job jobs[] = {
		{ .arrive_ns = 5 * US, .cpu = BIG, .work_ns = 100 * US },
		{ .arrive_ns = 6 * US, .cpu = BIG, .work_ns = 100 * US },
	};

	fresh();
	run(0, jobs, 2);
	is_uint(jobs[0].start_ns, 5 * US + WAKE,
		"an idle CPU begins once its worker is awake");
	is_uint(jobs[1].start_ns, jobs[0].end_ns,
		"one that is at work goes on with the next job");
	is_uint(result.ready_ns, WAKE + jobs[1].start_ns - 6 * US,
		"what both waited is summed up");
}

/* A long job and a short one on little CPUs, of unknown length. */
static void test_misfit(void)
{
	struct wq_sim_job jobs[] = {
		{ .cpu = 0, .work_ns = 4 * MS, .block_ns = 50 * US },
		{ .cpu = 1, .work_ns = 100 * US, .block_ns = 50 * US },
	};
	uint64_t without;

	fresh();
	run(0, jobs, 2);
	without = jobs[0].end_ns;
	is_uint(jobs[0].splits, 0, "without kick-misfit a long job stays");
	run(WQ_PLACE_KICK_MISFIT, jobs, 2);
	is_uint(jobs[0].splits, 1, "kick-misfit: it is cut once");
	is_uint(jobs[0].first_cpu, 0, "having begun where it was queued");
	is_uint(jobs[0].last_cpu, BIG, "it ends on a big CPU");
	ok(jobs[0].end_ns < without, "sooner than without");
	is_uint(jobs[1].splits, 0, "a short job is not moved");
	is_uint(jobs[1].last_cpu, 1, "but ends where it was queued");
	is_uint(result.work_ns, 4 * MS + 100 * US, "and all work is done once");
	jobs[0].block_ns = 0;
	run(WQ_PLACE_KICK_MISFIT, jobs, 2);
	is_uint(jobs[0].splits, 0, "a job without borders is not cut");
}

/* A job turns out too long after 312.5 us of work, a little CPU doing 400/1024
 * a nanosecond.  What was left then took end - moved - WAKE on a big one. */
static void test_in_time(void)
{
	struct wq_sim_job job = { .work_ns = 100 * MS, .block_ns = 10 * US };
	uint64_t turned = WAKE + UINT64_C(312500) * 1024 / 400, moved;

	fresh();
	run(WQ_PLACE_KICK_MISFIT, &job, 1);
	/* work = (moved - WAKE) * 400 / 1024 + (end - moved - WAKE) */
	moved = (job.end_ns - job.work_ns - WAKE - WAKE * 400ull / 1024) *
		1024 / (1024 - 400);
	ok(moved >= turned && moved <= turned + sim.place.balance_ns,
	   "a misfit is moved within one balance period") ||
		(diag("turned out at %llu ns, moved at %llu ns",
		      (unsigned long long)turned, (unsigned long long)moved),
		 0);
	ok(moved <= turned + 10 * US * 1024ull / 400 + US,
	   "at the next border of a block already");
}

/* Interrupts take most of one big CPU. */
static void test_orig_capacity(void)
{
	static const unsigned int lost[CPUS] = { [BIG] = 700 };
	struct wq_sim_job job = { .cpu = BIG, .work_ns = 500 * US, .known = 1 };
	uint64_t without;

	fresh();
	sim.lost_permille = lost;
	run(0, &job, 1);
	without = job.end_ns;
	is_uint(job.last_cpu, BIG + 1, "a CPU that lost its time is avoided");
	run(WQ_PLACE_ORIG_CAPACITY, &job, 1);
	is_uint(job.last_cpu, BIG, "orig-capacity: it is not");
	ok(job.end_ns > without, "and the job takes longer there");
}

enum { PILE = 24 };

/* All queued on CPU 0 at once.  Return: how many of them stay there. */
static unsigned int pile(unsigned int switches)
{
	struct wq_sim_job jobs[PILE];
	unsigned int stay = 0;

	memset(jobs, 0, sizeof(jobs));
	for (size_t i = 0; i < PILE; i++) {
		jobs[i].work_ns = 200 * US;
		jobs[i].known = true;
	}
	run(switches, jobs, PILE);
	for (size_t i = 0; i < PILE; i++)
		stay += jobs[i].first_cpu == LITTLE;
	return stay;
}

static void test_overload(void)
{
	uint64_t without;

	fresh();
	is_uint(pile(0), PILE - CPUS + 1,
		"a CPU that is over hands on to those that rest, and no more");
	without = result.makespan_ns;
	is_uint(result.steals, 0, "where nothing may be stolen");
	/* Of 4 x 400 and 2 x 1024, a little CPU's share is 2 or 3 of 24. */
	ok(pile(WQ_PLACE_LEAST_LOADED) <= 3 && result.makespan_ns < without,
	   "least-loaded: to all, and all are done sooner");
	is_uint(result.steals, 0, "without being stolen");
	ok(pile(WQ_PLACE_FORCE_BALANCE) < PILE - CPUS + 1 &&
		   result.makespan_ns < without,
	   "force-balance: they are taken from it, and done sooner");
	ok(result.steals > 0, "by being stolen though they are young");
}

/* The second job comes while the worker is being woken for the first. */
static void test_over_not_idle(void)
{
	struct wq_sim_job jobs[] = {
		{ .work_ns = 200 * US, .known = true },
		{ .arrive_ns = US, .work_ns = 200 * US, .known = true },
	};
	uint64_t without;

	fresh();
	run(0, jobs, 2);
	without = jobs[1].end_ns;
	is_uint(jobs[1].first_cpu, 1,
		"a CPU whose worker is being woken for a long job is over");
	run(WQ_PLACE_OVER_NOT_IDLE, jobs, 2);
	is_uint(jobs[1].first_cpu, 0, "over-not-idle: it is not yet");
	ok(jobs[1].end_ns > without, "and the job waits for the first one");
}

/* One job runs for long, the other waits behind it. */
static uint64_t stolen_at(uint64_t migration_cost_ns)
{
	struct wq_sim_job jobs[] = {
		{ .work_ns = 10 * MS },
		{ .work_ns = 10 * US },
	};

	sim.place.migration_cost_ns = migration_cost_ns;
	run(0, jobs, 2);
	if (jobs[1].stolen != result.steals)
		bail("a steal of no job");
	return jobs[1].stolen ? jobs[1].start_ns : UINT64_MAX;
}

static void test_steal(void)
{
	fresh();
	sim.place.balance_ns = 100 * US;
	is_uint(stolen_at(0), 100 * US,
		"migration_cost_ns 0: a job is stolen at the first look");
	is_uint(stolen_at(500000), 500 * US,
		"500000: at the first look after so long a wait");
	is_uint(stolen_at(500001), 600 * US, "a nanosecond more: at the next");
	is_uint(stolen_at(UINT64_MAX), UINT64_MAX, "endless: never");
	/* The looks of an idle CPU do not begin with the jobs. */
	struct wq_sim_job late[] = {
		{ .arrive_ns = 1234 * US, .work_ns = 10 * MS },
		{ .arrive_ns = 1234 * US, .work_ns = 10 * US },
	};
	sim.place.migration_cost_ns = 0;
	run(0, late, 2);
	is_uint(late[1].start_ns, 1300 * US, "looks keep their period");
	sim.place.migration_cost_ns = 500 * US;
	run(0, late, 2);
	is_uint(late[1].start_ns, 1800 * US,
		"and a wait begins when the job is queued");
}

/* All CPUs run one job for 64 ms, while one more waits that stays. */
static uint64_t scans(uint64_t busy_factor)
{
	struct wq_sim_job jobs[CPUS + 1];

	memset(jobs, 0, sizeof(jobs));
	for (size_t i = 0; i < CPUS; i++) {
		jobs[i].cpu = i;
		jobs[i].work_ns = i < BIG ? 25 * MS : 64 * MS;
	}
	jobs[CPUS].work_ns = 10 * US;
	sim.place.busy_factor = busy_factor;
	run(0, jobs, CPUS + 1);
	return result.scans;
}

static void test_busy_factor(void)
{
	fresh();
	is_uint(scans(1), 64 * CPUS,
		"busy_factor 1: busy CPUs look at others each period");
	is_uint(scans(16), 4 * CPUS, "16: as many times less often");
}

enum { MANY = 300 };

/* Jobs of all kinds, the same for the same @seed. */
static void make_many(struct wq_sim_job *jobs, uint32_t seed)
{
	uint64_t at = 0;

	memset(jobs, 0, MANY * sizeof(*jobs));
	for (size_t i = 0; i < MANY; i++) {
		seed = seed * 1664525 + 1013904223;
		at += (seed >> 8) % (60 * US);
		jobs[i].arrive_ns = at;
		jobs[i].cpu = (seed >> 16) % 7 ? (seed >> 20) % CPUS : 0;
		jobs[i].work_ns =
			1 + (seed >> 7) % (seed % 5 ? 90 * US : 3 * MS);
		jobs[i].block_ns = seed >> 30 ? 30 * US : 0;
		jobs[i].known = seed >> 25 & 1;
	}
}

/* A job that was not cut: does it take the time its CPU needs for it? */
static bool time_right(const struct wq_sim_job *j)
{
	unsigned int c = topo->cpu[j->last_cpu].capacity;
	uint64_t took = j->end_ns - j->start_ns, least;

	if (sim.lost_permille)
		c = c * (1000 - sim.lost_permille[j->last_cpu]) / 1000;
	least = wq_place_scale(j->work_ns, c);
	/* Each border may cost what is rounded: less than 1024/c + 1 ns. */
	return took >= least &&
	       took <= least + (j->block_ns ? j->work_ns / j->block_ns + 1
					    : 1) *
				       (WQ_CAPACITY / c + 2);
}

static bool apart(const struct wq_sim_job *a, const struct wq_sim_job *b)
{
	return a->last_cpu != b->last_cpu || a->end_ns <= b->start_ns ||
	       b->end_ns <= a->start_ns;
}

/* Is all as the jobs' own figures say, and no CPU in two places? */
static bool sound(const struct wq_sim_job *jobs)
{
	struct wq_sim_result sum = { .scans = result.scans };
	bool good = true;

	for (size_t i = 0; i < MANY; i++) {
		const struct wq_sim_job *j = &jobs[i];

		sum.work_ns += j->work_ns;
		sum.ready_ns += j->start_ns - j->arrive_ns;
		sum.steals += j->stolen;
		sum.splits += j->splits;
		if (j->end_ns > sum.makespan_ns)
			sum.makespan_ns = j->end_ns;
		good = good && j->start_ns >= j->arrive_ns &&
		       j->end_ns >= j->start_ns + j->work_ns;
		if (j->splits)
			continue;
		good = good && time_right(j);
		for (size_t k = 0; k < i; k++)
			good = good && (jobs[k].splits || apart(j, &jobs[k]));
	}
	return good && memcmp(&sum, &result, sizeof(sum)) == 0;
}

static void test_nothing_lost(void)
{
	static const unsigned int lost[CPUS] = { 0, 500, 0, 0, 0, 999 };
	static struct wq_sim_job jobs[MANY];
	uint64_t steals = 0, splits = 0;
	unsigned int good = 0;

	fresh();
	sim.place.migration_cost_ns = 100 * US;
	for (unsigned int s = 0; s <= WQ_PLACE_ALL; s++) {
		sim.lost_permille = s % 3 ? NULL : lost;
		sim.wake_ns = s % 5 ? WAKE : 0;
		make_many(jobs, 7 + s);
		run(s, jobs, MANY);
		good += sound(jobs);
		steals += result.steals;
		splits += result.splits;
	}
	is_uint(good, WQ_PLACE_ALL + 1,
		"under every set of switches all work is done, once");
	ok(steals > 100 && splits > 100,
	   "though jobs were stolen (%llu) and cut (%llu)",
	   (unsigned long long)steals, (unsigned long long)splits);
}

static void test_same(void)
{
	static struct wq_sim_job a[MANY], b[MANY];
	struct wq_sim_result first;

	fresh();
	sim.place.migration_cost_ns = 0;
	make_many(a, 99);
	make_many(b, 99);
	run(WQ_PLACE_ALL, a, MANY);
	first = result;
	run(WQ_PLACE_ALL, b, MANY);
	is_mem(a, b, sizeof(a), "the same input gives the same run");
	is_mem(&first, &result, sizeof(first), "and the same result");
	run(WQ_PLACE_ALL, b, MANY);
	is_mem(a, b, sizeof(a), "what a run put out is no input of the next");
}

/* @sim as it is, or @jobs, has one thing wrong. */
static void refused(struct wq_sim_job *jobs, const char *what)
{
	struct wq_sim_result was;

	memset(&was, 0x5a, sizeof(was));
	result = was;
	ok(wq_sim_run(&sim, jobs, 2, &result) == -EINVAL &&
		   memcmp(&result, &was, sizeof(was)) == 0,
	   "%s: refused, and no result", what);
	fresh();
	jobs[0] = jobs[1] = (struct wq_sim_job){ .work_ns = US };
}

static void test_refusals(void)
{
	static const unsigned int lost[CPUS] = { [3] = 1001 };
	struct wq_sim_job jobs[2] = { { .work_ns = US }, { .work_ns = US } };

	fresh();
	jobs[0].arrive_ns = 1;
	refused(jobs, "jobs out of order");
	jobs[1].work_ns = 0;
	refused(jobs, "a job without work");
	jobs[1].cpu = CPUS;
	refused(jobs, "a CPU that is not there");
	sim.lost_permille = lost;
	refused(jobs, "a CPU that lost more than all");
	sim.place.balance_ns = 0;
	refused(jobs, "no balance_ns");
	sim.place.busy_factor = 0;
	refused(jobs, "no busy_factor");
	run(0, jobs, 0);
	is_uint(result.makespan_ns, 0, "no jobs take no time");
}

int main(void)
{
	char path[] = "/tmp/wq-sim-XXXXXX";
	struct wq_error why;
	int fd = mkstemp(path);

	plan(46);
	if (fd < 0 || write(fd, machine, strlen(machine)) < 0 || close(fd))
		bail("cannot write %s", path);
	if (wq_topo_load(path, &topo, &why) < 0)
		bail("%s", why.text);
	unlink(path);
	test_wake();
	test_misfit();
	test_in_time();
	test_orig_capacity();
	test_overload();
	test_over_not_idle();
	test_steal();
	test_busy_factor();
	test_nothing_lost();
	test_same();
	test_refusals();
	wq_topo_free(topo);
	return done();
}
