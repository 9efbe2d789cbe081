/* SPDX-License-Identifier: MIT */
/*
 * tools/bench_wq.c - the program bench-wq: what the job path costs, piece by
 * piece: a queue call, the stamps, the lock that it does without, a switch.
 * Layer: tools.
 *
 * Each pair (stamps on and off, lock out and back in) is measured in turns in
 * one run; a difference is taken within a round, and its median counts.
 */
#include "tools/pools_load.h"
#include "tools/stats.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ITEMS      4096 /* queued at once; half of the ring */
#define MAX_ROUNDS 1000
#define NEVER      UINT64_C(1000000000000)

/* One set of pools whose CPUs' workers can be held. */
struct rig {
	struct wq_pools *pools;
	struct wq *wq;
	struct wq_work item[ITEMS];
	struct wq_work hold;
	sem_t held;
	sem_t go;
	int cpu;
};

static struct rig plain, bare, locked;
static double queue_on_ns[MAX_ROUNDS], queue_off_ns[MAX_ROUNDS];
static double queue_lock_ns[MAX_ROUNDS];
static double run_on_ns[MAX_ROUNDS], run_off_ns[MAX_ROUNDS];
static double run_lock_ns[MAX_ROUNDS];
static struct verity_json json;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "bench-wq: %s\n", what);
	exit(1);
}

static void nothing(struct wq_work *work)
{
	(void)work;
}

static void hold(struct wq_work *work)
{
	struct rig *rig =
		(struct rig *)((char *)work - offsetof(struct rig, hold));

	sem_post(&rig->held);
	while (sem_wait(&rig->go) < 0)
		;
}

static void open_rig(struct rig *rig, bool no_stamps, bool lock)
{
	struct wq_config config = { .mode = { .binding = WQ_BOUND },
				    .no_stamps = no_stamps,
				    .exclusive_lock = lock,
				    .ring = ITEMS * 2,
				    .hog_ns = NEVER,
				    .stall_ns = NEVER,
				    .handoff_ns = 1 };
	struct wq_attrs attrs = { .name = "bench" };
	const struct wq_topo *topo;
	struct wq_error why;

	if (wq_pools_new(&config, &rig->pools, &why) < 0 ||
	    wq_new(rig->pools, &attrs, &rig->wq, &why) < 0)
		die(why.text);
	/* The last CPU's worker; this thread runs on the first, if there are
	 * two. */
	topo = wq_pools_topo(rig->pools);
	rig->cpu = topo->cpu[topo->nr - 1].cpu;
	sem_init(&rig->held, 0, 0);
	sem_init(&rig->go, 0, 0);
	wq_work_init(&rig->hold, hold, 0);
	for (size_t i = 0; i < ITEMS; i++)
		wq_work_init(&rig->item[i], nothing, 0);
}

static void close_rig(struct rig *rig)
{
	wq_free(rig->wq);
	wq_pools_free(rig->pools);
	sem_destroy(&rig->held);
	sem_destroy(&rig->go);
}

/* Queue all items behind one that is held, then let them run.  @queue, @run:
 * nanoseconds an item. */
static void pass(struct rig *rig, double *queue, double *run)
{
	double began, queued, ended;

	wq_queue_on(rig->cpu, rig->wq, &rig->hold);
	while (sem_wait(&rig->held) < 0)
		;
	began = stats_now();
	for (size_t i = 0; i < ITEMS; i++)
		if (wq_queue_on(rig->cpu, rig->wq, &rig->item[i]) != 1)
			die("an item of the pass before still waits");
	queued = stats_now();
	sem_post(&rig->go);
	wq_flush(rig->wq);
	ended = stats_now();
	*queue = (queued - began) * 1e9 / ITEMS;
	*run = (ended - queued) * 1e9 / ITEMS;
}

static void line(const char *name, const double *samples, unsigned int rounds,
		 const char *unit)
{
	struct stats s = stats_of(samples, rounds);

	printf("wq.%s %.1f %s\nwq.%s.min %.1f %s\nwq.%s.max %.1f %s\n", name,
	       s.median, unit, name, s.min, unit, name, s.max, unit);
	stats_json(&json, name, samples, rounds);
}

/* On the calling thread: the whole job path without another CPU's cache. */
static double pass_inline(struct rig *rig)
{
	double began = stats_now();

	for (size_t i = 0; i < ITEMS; i++)
		wq_queue(rig->wq, &rig->item[i]);
	return (stats_now() - began) * 1e9 / ITEMS;
}

static void set_inline(struct rig *rig)
{
	struct wq_mode mode = { .binding = WQ_INLINE };
	struct wq_error why;

	if (wq_pools_switch(rig->pools, mode, NULL, &why) < 0)
		die(why.text);
}

static void measure_stamps(unsigned int rounds)
{
	static double on[MAX_ROUNDS], off[MAX_ROUNDS], more[MAX_ROUNDS];

	open_rig(&plain, false, false);
	open_rig(&bare, true, false);
	set_inline(&plain);
	set_inline(&bare);
	pass_inline(&plain);
	pass_inline(&bare);
	for (unsigned int r = 0; r < rounds; r++) {
		on[r] = pass_inline(&plain);
		off[r] = pass_inline(&bare);
		more[r] = on[r] - off[r];
	}
	/* t1 and t2 by the queuer; t5, t6 and t7 by the worker; t3 and t4 only
	 * where a worker is woken. */
	printf("wq.stamps 5 stamps\n");
	line("job-inline", on, rounds, "ns");
	line("job-inline-no-stamps", off, rounds, "ns");
	line("stamps-on-minus-off", more, rounds, "ns");
	close_rig(&plain);
	close_rig(&bare);
}

static void measure_path(unsigned int rounds)
{
	double queue, run;

	open_rig(&plain, false, false);
	open_rig(&bare, true, false);
	open_rig(&locked, false, true);
	pass(&plain, &queue, &run); /* warm up */
	pass(&bare, &queue, &run);
	pass(&locked, &queue, &run);
	for (unsigned int r = 0; r < rounds; r++) {
		pass(&plain, &queue_on_ns[r], &run_on_ns[r]);
		pass(&bare, &queue_off_ns[r], &run_off_ns[r]);
		pass(&locked, &queue_lock_ns[r], &run_lock_ns[r]);
	}
	close_rig(&plain);
	close_rig(&bare);
	close_rig(&locked);
	line("queue-no-wake", queue_on_ns, rounds, "ns");
	line("queue-no-wake-no-stamps", queue_off_ns, rounds, "ns");
	line("queue-no-wake-exclusive-lock", queue_lock_ns, rounds, "ns");
	line("run-on-other-cpu", run_on_ns, rounds, "ns");
	line("run-on-other-cpu-no-stamps", run_off_ns, rounds, "ns");
	line("run-on-other-cpu-exclusive-lock", run_lock_ns, rounds, "ns");
}

/* As many issuers as CPUs, each keeping its CPU's queue full: jobs a second,
 * where a lock is fought over. */
struct fight {
	struct rig *rig;
	size_t index;
	_Atomic bool *stop;
	uint64_t queued;
};

static void *fight(void *arg)
{
	struct fight *f = arg;
	const struct wq_topo *topo = wq_pools_topo(f->rig->pools);
	size_t share = ITEMS / topo->nr;
	struct wq_work *mine = &f->rig->item[f->index * share];
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(topo->cpu[f->index].cpu, &cpus);
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	while (!atomic_load(f->stop)) {
		uint64_t before = f->queued;

		for (size_t i = 0; i < share; i++)
			f->queued += wq_queue(f->rig->wq, &mine[i]) == 1;
		if (f->queued == before)
			sched_yield();
	}
	return NULL;
}

static double jobs_per_second(struct rig *rig)
{
	const struct wq_topo *topo = wq_pools_topo(rig->pools);
	struct timespec while_ = { .tv_nsec = 100000000 };
	struct fight f[16] = { 0 };
	size_t nr = topo->nr < 16 ? topo->nr : 16;
	_Atomic bool stop = false;
	pthread_t thread[16];
	uint64_t queued = 0;
	double began = stats_now();

	for (size_t i = 0; i < nr; i++) {
		f[i].rig = rig;
		f[i].index = i;
		f[i].stop = &stop;
		if (pthread_create(&thread[i], NULL, fight, &f[i]))
			die("no thread");
	}
	nanosleep(&while_, NULL);
	atomic_store(&stop, true);
	for (size_t i = 0; i < nr; i++) {
		pthread_join(thread[i], NULL);
		queued += f[i].queued;
	}
	wq_flush(rig->wq);
	return (double)queued / (stats_now() - began);
}

static void measure_lock(unsigned int rounds)
{
	static double with[MAX_ROUNDS], without[MAX_ROUNDS], ratio[MAX_ROUNDS];

	open_rig(&plain, false, false);
	open_rig(&locked, false, true);
	for (unsigned int r = 0; r < rounds; r++) {
		without[r] = jobs_per_second(&plain) / 1e6;
		with[r] = jobs_per_second(&locked) / 1e6;
		ratio[r] = with[r] / without[r];
	}
	line("jobs-all-cpus", without, rounds, "M/s");
	line("jobs-all-cpus-exclusive-lock", with, rounds, "M/s");
	line("jobs-exclusive-lock-ratio", ratio, rounds, "x");
	close_rig(&plain);
	close_rig(&locked);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void quantiles(const char *name, double *us, unsigned int n)
{
	qsort(us, n, sizeof(*us), by_value);
	printf("wq.%s.p50 %.1f us\nwq.%s.p99 %.1f us\nwq.%s.max %.1f us\n",
	       name, us[n / 2], name, us[(size_t)n * 99 / 100], name,
	       us[n - 1]);
}

/* Switches in a row while every CPU has more jobs than it can do. */
static void measure_switches(unsigned int n)
{
	static const struct wq_mode modes[] = {
		{ .binding = WQ_BOUND },
		{ .binding = WQ_UNBOUND, .scope = WQ_SCOPE_SYSTEM },
		{ .binding = WQ_LOCAL_FIRST },
		{ .binding = WQ_UNBOUND,
		  .scope = WQ_SCOPE_CPU,
		  .strict = true },
	};
	struct load load = {
		.job_ns = 20000, .gap_ns = 500000, .burst = 32, .issuers = 2
	};
	double *drain = calloc(n, sizeof(*drain));
	double *pause = calloc(n, sizeof(*pause));
	struct load_result result;
	struct wq_switch cost;
	struct load_run *run;
	struct wq_error why;
	uint64_t moved = 0;

	open_rig(&plain, false, false);
	if (!drain || !pause || load_start(&load, plain.wq, &run) < 0)
		die("no memory");
	for (unsigned int i = 0; i < n; i++) {
		if (wq_pools_switch(plain.pools, modes[i % 4], &cost, &why) < 0)
			die(why.text);
		drain[i] = (double)cost.drain_ns / 1000;
		pause[i] = (double)cost.pause_ns / 1000;
		moved += cost.moved;
	}
	load_stop(run, &result);
	close_rig(&plain);
	printf("wq.switches %u switches\n", n);
	printf("wq.switch-jobs %llu jobs\n", (unsigned long long)result.done);
	printf("wq.switch-jobs-moved %llu jobs\n", (unsigned long long)moved);
	printf("wq.switch-jobs-lost %lld jobs\n",
	       (long long)(result.queued - result.done));
	quantiles("switch-drain", drain, n);
	quantiles("switch-pause", pause, n);
	free(drain);
	free(pause);
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "switches", required_argument, NULL, 's' },
		{ "json", required_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	unsigned long rounds = 51, switches = 10000;
	const char *path = NULL;
	int c, err = 0;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'r')
			rounds = strtoul(optarg, NULL, 10);
		else if (c == 's')
			switches = strtoul(optarg, NULL, 10);
		else if (c == 'j')
			path = optarg;
		else {
			fprintf(c == 'h' ? stdout : stderr,
				"usage: bench-wq [--rounds 7..1000] "
				"[--switches 1..1000000] [--json FILE]\n");
			return c == 'h' ? 0 : 2;
		}
	}
	if (optind < argc || rounds < 7 || rounds > MAX_ROUNDS || !switches ||
	    switches > 1000000) {
		fprintf(stderr, "bench-wq: see bench-wq --help\n");
		return 2;
	}
	load_calibrate();
	verity_json_object(&json, NULL);
	printf("# clock %s, %.1f MHz\n", wq_clock_name(),
	       (double)wq_clock.hz / 1e6);
	measure_stamps((unsigned int)rounds);
	measure_path((unsigned int)rounds);
	measure_lock((unsigned int)(rounds < 15 ? rounds : 15));
	measure_switches((unsigned int)switches);
	verity_json_end(&json, '}');
	if (path)
		err = stats_save(&json, path);
	else
		verity_json_free(&json);
	if (err)
		fprintf(stderr, "bench-wq: %s: %s\n", path, strerror(-err));
	if (fflush(stdout)) {
		fprintf(stderr, "bench-wq: standard output: %s\n",
			strerror(errno));
		err = -EIO;
	}
	return err ? 1 : 0;
}
