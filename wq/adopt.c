/* SPDX-License-Identifier: MIT */
/*
 * A worker changes over to the mode that is set: its pod, its mask.
 */
#include "wq/futex.h"
#include "wq/pool.h"

#include <errno.h>
#include <limits.h>

/* What is owed in the old pod.  Its other workers change over as well and look
 * for jobs when they do, so nobody there needs a wake. */
static void settle(struct wq_worker *worker)
{
	struct wq_home *help = atomic_exchange(&worker->help, NULL);

	if (help)
		atomic_fetch_sub(&help->helpers, 1);
	if (worker->woken)
		atomic_fetch_sub(&worker->pod->waking, 1);
	worker->woken = false;
}

static void take_mask(struct wq_worker *worker, unsigned int mode)
{
	struct wq_pools *pools = worker->pools;
	struct wq_home *home = worker->home;
	struct wq_error why;
	cpu_set_t mask;

	wq_plan_mask(pools, mode, home, &mask);
	if (atomic_load_explicit(&home->lost, memory_order_relaxed))
		mask = pools->cpus;
	if (!wq_sched_affinity(0, &mask, &why))
		return;
	/* The watch finds out whether the CPU is back; see watch.c. */
	if (!atomic_exchange(&home->lost, true))
		wq_say(pools, "cpu %d: %s: its pool is now unbound", home->cpu,
		       why.text);
	wq_sched_affinity(0, &pools->cpus, NULL);
}

static bool strayed(const struct wq_worker *worker)
{
	int cpu = wq_cpu_now();

	return cpu >= 0 && cpu < WQ_CPUS &&
	       !CPU_ISSET(cpu, &worker->pod->cpus) &&
	       !atomic_load_explicit(&worker->home->lost, memory_order_relaxed);
}

static bool may_stray(const struct wq_worker *worker)
{
	struct wq_mode mode = wq_mode_at(wq_word_mode(
		atomic_load_explicit(&worker->seen, memory_order_relaxed)));

	return mode.binding == WQ_UNBOUND && !mode.strict;
}

void wq_repatriate(struct wq_worker *worker)
{
	if (!may_stray(worker) || !strayed(worker))
		return;
	if (wq_sched_affinity(0, &worker->pod->cpus, NULL) < 0)
		return;
	wq_sched_affinity(0, &worker->pools->cpus, NULL);
	wq_count(&worker->nr_repatriated);
}

void wq_adopt(struct wq_worker *worker)
{
	struct wq_pools *pools = worker->pools;
	uint64_t began = wq_stamp(), back = 0;
	uint64_t word = atomic_load(&pools->mode);
	unsigned int mode = wq_word_mode(word);

	if (worker->pod)
		settle(worker);
	worker->plan = pools->plan[mode];
	worker->pod = worker->plan->of[worker->home->index];
	/* A primary's was prepared by the switch; this is for former spares. */
	if (wq_worker_prepare(worker, mode) < 0)
		wq_say(pools, "worker %d: no memory for its latencies",
		       worker->index);
	take_mask(worker, mode);
	worker->t4 = 0;
	atomic_store_explicit(&worker->pause,
			      wq_ticks_since(began, wq_stamp(), &back),
			      memory_order_relaxed);
	/* Release: the switch that waits for us reads what is above. */
	atomic_store(&worker->seen, word);
	atomic_fetch_add(&pools->adopted, 1);
	wq_futex_wake(&pools->adopted, INT_MAX);
}
