/* SPDX-License-Identifier: MIT */
/*
 * Unbound workers that were woken onto one CPU.
 *
 * Two workers woken in a row often land on the same CPU, since the scheduler
 * does not see the first one run yet, and stay there for a slice: the second
 * one stands on the run queue of the first while the CPU beside it falls idle.
 * A worker that has done a job, and finds that one that was called for the rest
 * has still not come, takes its own CPU away from that one for a moment: a
 * thread that waits on a run queue is moved by that at once.  On arrival it
 * takes its whole mask back, and may be moved as before.
 *
 * home->called goes from CALLED (by who wakes) to 0 (by who arrives), or over
 * MOVING to MOVED (by who helps) and then to 0.  Who arrives never waits while
 * there are jobs; it takes the mask back when it finds MOVED.
 */
#include "wq/pool.h"

#include <sched.h>

enum { HERE, CALLED, MOVING, MOVED };

void wq_call(struct wq_home *home)
{
	atomic_store_explicit(&home->called, CALLED, memory_order_relaxed);
}

static void take_back(struct wq_worker *worker)
{
	unsigned int mode = wq_word_mode(
		atomic_load_explicit(&worker->seen, memory_order_relaxed));
	cpu_set_t mask;

	wq_plan_mask(worker->pools, mode, worker->home, &mask);
	if (!atomic_load_explicit(&worker->home->lost, memory_order_relaxed))
		wq_sched_affinity(0, &mask, NULL);
}

bool wq_arrive(struct wq_worker *worker)
{
	_Atomic uint32_t *called = &worker->home->called;
	uint32_t state = CALLED;

	/* Acquire: pairs with the store of MOVED. */
	if (atomic_compare_exchange_strong(called, &state, HERE) ||
	    state == HERE)
		return true;
	if (state == MOVING)
		return false;
	take_back(worker);
	atomic_store(called, HERE);
	return true;
}

/* Take our CPU from the worker at @home, unless it is on its way already. */
static void move_away(struct wq_worker *worker, struct wq_home *home, int cpu)
{
	struct wq_pools *pools = worker->pools;
	uint32_t state = CALLED;
	cpu_set_t mask;

	if (!atomic_compare_exchange_strong(&home->called, &state, MOVING))
		return;
	wq_plan_mask(pools,
		     wq_word_mode(atomic_load_explicit(&worker->seen,
						       memory_order_relaxed)),
		     home, &mask);
	CPU_CLR(cpu, &mask);
	if (CPU_COUNT(&mask))
		sched_setaffinity(atomic_load(&home->primary)->stat.tid,
				  sizeof(mask), &mask);
	atomic_store(&home->called, MOVED);
}

void wq_unstack(struct wq_worker *worker)
{
	struct wq_pod *pod = worker->pod;
	int cpu = wq_cpu_now();

	if (cpu < 0 || cpu >= WQ_CPUS || !wq_find_any(worker))
		return;
	for (size_t i = 0; i < pod->nr_homes; i++) {
		struct wq_home *home = &worker->pools->home[pod->home[i]];

		if (home != worker->home &&
		    atomic_load_explicit(&home->called, memory_order_relaxed) ==
			    CALLED)
			move_away(worker, home, cpu);
	}
}
