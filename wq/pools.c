/* SPDX-License-Identifier: MIT */
#include "wq/pool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MILLI UINT64_C(1000000)

void wq_say(struct wq_pools *pools, const char *fmt, ...)
{
	char line[512];
	va_list args;

	if (!pools->config.say)
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	pools->config.say(pools->config.arg, line);
}

static void say_lat(void *arg, const char *line)
{
	wq_say(arg, "%s", line);
}

/* What zero means. */
static void defaults(struct wq_config *config)
{
	static const char *const job = "job";

	if (!config->classes) {
		config->classes = 1;
		config->class_names = &job;
	}
	if (!config->hist_bytes)
		config->hist_bytes = (size_t)64 << 20;
	if (!config->ring)
		config->ring = 1024;
	if (!config->hog_ns)
		config->hog_ns = 10 * MILLI;
	if (!config->stall_ns)
		config->stall_ns = 30000 * MILLI;
	if (!config->place.balance_ns)
		config->place.balance_ns = MILLI;
	if (!config->place.busy_factor)
		config->place.busy_factor = 16;
	if (!config->trace_events)
		config->trace_events = 4096;
}

static int check(const struct wq_config *config, struct wq_error *err)
{
	if (config->classes > WQ_CLASSES_MAX)
		return wq_fail(err, EINVAL,
			       "%u classes were asked for; at most %d are "
			       "possible",
			       config->classes, WQ_CLASSES_MAX);
	if (config->ring < 2 || config->ring > 1u << 20 ||
	    config->ring & (config->ring - 1))
		return wq_fail(
			err, EINVAL,
			"a ring of %u jobs was asked for; a power of two "
			"from 2 to 1048576 is possible",
			config->ring);
#ifndef WQ_BENCH
	if (config->exclusive_lock)
		return wq_fail(
			err, ENOTSUP,
			"the exclusive lock is only in benchmark builds");
#endif
	return 0;
}

/* The CPUs that were asked for, all of which must be usable. */
static int choose_cpus(const struct wq_config *config, cpu_set_t *cpus,
		       struct wq_error *err)
{
	char asked[80], possible[80];
	cpu_set_t usable, both;
	int code = wq_sched_mask(0, &usable);

	if (code)
		return wq_fail(err, -code, "cannot read the affinity mask: %s",
			       strerror(-code));
	*cpus = config->cpus ? *config->cpus : usable;
	if (config->topo && !config->cpus) {
		CPU_ZERO(cpus);
		for (size_t i = 0; i < config->topo->nr; i++)
			CPU_SET(config->topo->cpu[i].cpu, cpus);
	}
	CPU_AND(&both, cpus, &usable);
	if (CPU_COUNT(cpus) && CPU_EQUAL(&both, cpus))
		return 0;
	wq_cpulist_format(cpus, asked, sizeof(asked));
	wq_cpulist_format(&usable, possible, sizeof(possible));
	return wq_fail(err, EINVAL,
		       "CPUs %s were asked for; this process may use %s",
		       *asked ? asked : "(none)", possible);
}

static int find_topo(struct wq_pools *pools, struct wq_error *err)
{
	const struct wq_topo *topo = pools->config.topo;
	int code;

	if (topo && pools->config.cpus)
		return wq_fail(err, EINVAL,
			       "a topology and a list of CPUs were asked for; "
			       "one of them is possible");
	code = choose_cpus(&pools->config, &pools->cpus, err);
	if (code)
		return code;
	if (!topo) {
		code = wq_topo_read("/sys", &pools->cpus, &pools->own_topo,
				    err);
		topo = pools->own_topo;
	}
	if (code)
		return code;
	pools->topo = topo;
	pools->nr = topo->nr;
	/* A CPU of the mask may have gone since. */
	CPU_ZERO(&pools->cpus);
	for (size_t i = 0; i < topo->nr; i++)
		CPU_SET(topo->cpu[i].cpu, &pools->cpus);
	return 0;
}

/* All homes but @home, nearest first. */
static void sort_near(struct wq_pools *pools, struct wq_home *home)
{
	size_t n = 0;

	for (int d = 0; d <= 5; d++)
		for (size_t k = 1; k < pools->nr; k++) {
			/* Starting behind oneself, so that not all turn to the
			 * same one first. */
			size_t i = (home->index + k) % pools->nr;

			if (wq_topo_distance(pools->topo, home->index, i) == d)
				home->near[n++] = (uint16_t)i;
		}
}

static int make_home(struct wq_pools *pools, size_t i)
{
	struct wq_home *home = &pools->home[i];
	int code = wq_ring_init(&home->ring, pools->config.ring);

	home->index = (uint16_t)i;
	home->cpu = pools->topo->cpu[i].cpu;
	home->capacity = pools->topo->cpu[i].capacity;
	atomic_store(&home->capacity_now, home->capacity);
	pools->unequal |= home->capacity != pools->topo->cpu[0].capacity;
	home->near = &pools->near[i * pools->nr];
	home->class = &pools->usual[i * pools->config.classes];
	sort_near(pools, home);
	return code;
}

static int make_homes(struct wq_pools *pools, struct wq_error *err)
{
	size_t bytes = pools->nr * sizeof(*pools->home);
	int code = 0;

	pools->home = aligned_alloc(WQ_LINE, bytes);
	pools->home_of = calloc(WQ_CPUS, sizeof(*pools->home_of));
	pools->near = calloc(pools->nr * pools->nr, sizeof(*pools->near));
	pools->usual = calloc(pools->nr * pools->config.classes,
			      sizeof(*pools->usual));
	if (!pools->home || !pools->home_of || !pools->near || !pools->usual)
		return wq_fail(err, ENOMEM, "no memory for the queues");
	memset(pools->home, 0, bytes);
	for (size_t i = 0; !code && i < pools->nr; i++)
		code = make_home(pools, i);
	/* A thread on a CPU that is not ours issues to one that is. */
	for (size_t cpu = 0; cpu < WQ_CPUS; cpu++) {
		int index = wq_topo_index(pools->topo, (int)cpu);

		pools->home_of[cpu] =
			(int16_t)(index < 0 ? (int)(cpu % pools->nr) : index);
	}
	return code ? wq_fail(err, ENOMEM, "no memory for the queues") : 0;
}

static int make_records(struct wq_pools *pools, struct wq_error *err)
{
	struct wq_lat_config lat = { .bytes = pools->config.hist_bytes,
				     .classes = pools->config.classes,
				     .topo = pools->topo,
				     .say = say_lat,
				     .arg = pools };
	int code = wq_trace_new(pools->config.trace_events, &pools->trace);

	if (!code && !pools->config.no_stamps)
		code = wq_lat_new(&lat, &pools->lat);
	return code ? wq_fail(err, -code, "cannot make the recorders: %s",
			      strerror(-code))
		    : 0;
}

static int measure(struct wq_pools *pools, struct wq_error *err)
{
	struct wq_config *config = &pools->config;
	int code = 0;

	if (!config->handoff_ns)
		code = wq_calibrate(&pools->cpus, &config->handoff_ns, err);
	if (code)
		return code;
	config->place.spread_ns = config->handoff_ns;
	if (!config->place.migration_cost_ns)
		config->place.migration_cost_ns = config->handoff_ns;
	if (!config->place.budget_ns)
		config->place.budget_ns = config->handoff_ns;
	pools->spread_ticks = wq_ns_to_ticks(config->handoff_ns);
	pools->spin_ticks = wq_ns_to_ticks(config->spin_ns);
	return 0;
}

static int start_workers(struct wq_pools *pools, struct wq_error *err)
{
	unsigned int mode = wq_mode_index(pools->config.mode);
	int code = wq_plan_need(pools, mode);

	if (code)
		return wq_fail(err, -code, "no memory for mode %s",
			       wq_mode_name(mode));
	atomic_store(&pools->mode, mode);
	for (size_t i = 0; i < pools->nr; i++) {
		struct wq_worker *worker;

		pthread_mutex_lock(&pools->lock);
		worker = wq_worker_alloc(pools);
		pthread_mutex_unlock(&pools->lock);
		if (!worker)
			return wq_fail(err, ENOMEM, "no memory for a worker");
		worker->home = &pools->home[i];
		atomic_store(&pools->home[i].primary, worker);
		atomic_store(&worker->role, WQ_PRIMARY);
		code = wq_worker_start(worker, err);
		if (code)
			return code;
	}
	return 0;
}

static int build(struct wq_pools *pools, struct wq_error *err)
{
	struct wq_mode mode = pools->config.mode;
	int code = check(&pools->config, err);

	if (!code)
		code = find_topo(pools, err);
	if (!code && mode.binding == WQ_UNBOUND)
		code = wq_scope_known(pools->topo, mode.scope, err);
	if (!code)
		code = make_homes(pools, err);
	if (!code)
		code = make_records(pools, err);
	if (!code)
		code = measure(pools, err);
	if (!code)
		code = start_workers(pools, err);
	/* Now all are there: set the mode once more, memory and all. */
	if (!code)
		code = wq_pools_switch(pools, mode, NULL, err);
	if (!code)
		code = wq_watch_start(pools, err);
	return code;
}

int wq_pools_new(const struct wq_config *config, struct wq_pools **out,
		 struct wq_error *err)
{
	struct wq_pools *pools = aligned_alloc(WQ_LINE, sizeof(*pools));
	int code;

	if (!pools)
		return wq_fail(err, ENOMEM, "no memory");
	memset(pools, 0, sizeof(*pools));
	wq_clock_init();
	pools->config = *config;
	pools->prio = config->prio;
	pools->exclusive = config->exclusive_lock;
	defaults(&pools->config);
	pthread_mutex_init(&pools->switching, NULL);
	pthread_mutex_init(&pools->lock, NULL);
	pthread_mutex_init(&pools->exclusive_lock, NULL);
	code = wq_self_init(pools);
	if (code)
		code = wq_fail(err, -code, "64 sets of pools are the most");
	else
		code = build(pools, err);
	if (code) {
		wq_pools_free(pools);
		return code;
	}
	*out = pools;
	return 0;
}

static void free_homes(struct wq_pools *pools)
{
	for (size_t i = 0; pools->home && i < pools->nr; i++)
		wq_ring_exit(&pools->home[i].ring);
	free(pools->near);
	free(pools->usual);
	free(pools->home);
	free(pools->home_of);
}

void wq_pools_free(struct wq_pools *pools)
{
	struct wq_worker *worker, *next;

	if (!pools)
		return;
	if (pools->queues) {
		fprintf(stderr, "wq_pools_free: workqueue %s is not free\n",
			pools->queues->name);
		abort();
	}
	atomic_store(&pools->stop, true);
	wq_watch_stop(pools);
	for (worker = atomic_load(&pools->all); worker; worker = worker->next)
		wq_worker_join(worker);
	wq_self_exit(pools);
	for (worker = atomic_load(&pools->all); worker; worker = next) {
		next = worker->next;
		wq_worker_free(worker);
	}
	for (size_t i = 0; i < WQ_MODES; i++)
		wq_plan_free(pools->plan[i]);
	free_homes(pools);
	wq_lat_free(pools->lat);
	wq_trace_free(pools->trace);
	wq_topo_free(pools->own_topo);
	pthread_mutex_destroy(&pools->switching);
	pthread_mutex_destroy(&pools->lock);
	pthread_mutex_destroy(&pools->exclusive_lock);
	free(pools);
}

struct wq_lat *wq_pools_lat(struct wq_pools *pools)
{
	return pools->lat;
}

struct wq_trace *wq_pools_trace(struct wq_pools *pools)
{
	return pools->trace;
}

const struct wq_topo *wq_pools_topo(const struct wq_pools *pools)
{
	return pools->topo;
}

uint64_t wq_pools_handoff_ns(const struct wq_pools *pools)
{
	return pools->config.handoff_ns;
}
