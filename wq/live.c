/* SPDX-License-Identifier: MIT */
/*
 * Local-first: what wq/place.h is told of the running pools.  All of it is
 * estimates, read while others work.
 */
#include "wq/pool.h"

/* A class's usual run time moves an eighth of the way to each new one. */
#define EWMA_SHIFT 3

uint64_t wq_usual_ns(struct wq_home *home, unsigned int class)
{
	return atomic_load_explicit(&home->class[class], memory_order_relaxed);
}

void wq_usual_note(struct wq_home *home, unsigned int class, uint64_t ns)
{
	/* At capacity 1024, so that CPUs can be compared. */
	uint64_t full = ns * home->capacity / WQ_CAPACITY;
	int64_t now = (int64_t)wq_usual_ns(home, class);
	int64_t next = full < UINT32_MAX ? (int64_t)full : UINT32_MAX;

	next = now ? now + (next - now) / (1 << EWMA_SHIFT) : next;
	/* Two workers of a home may overwrite each other: it is an estimate. */
	atomic_store_explicit(&home->class[class], (uint32_t)next,
			      memory_order_relaxed);
}

/* What is left of the running job at capacity 1024; a job that has outrun what
 * is usual is taken to be only half done. */
static uint64_t running_left(struct wq_pools *pools, struct wq_home *home)
{
	struct wq_worker *worker = atomic_load(&home->primary);
	uint64_t started =
		atomic_load_explicit(&worker->started, memory_order_relaxed);
	uint64_t usual, ran, back = 0;

	(void)pools;
	if (!started)
		return 0;
	ran = wq_ticks_to_ns(wq_ticks_since(started, wq_stamp(), &back));
	ran = ran * home->capacity / WQ_CAPACITY;
	usual = wq_usual_ns(home, atomic_load_explicit(&worker->class,
						       memory_order_relaxed));
	return usual > ran ? usual - ran : ran;
}

/* The jobs that wait, each taken to be as long as the last class was. */
static uint64_t waiting(struct wq_home *home)
{
	struct wq_worker *worker = atomic_load(&home->primary);

	return wq_home_depth(home) *
	       wq_usual_ns(home, atomic_load_explicit(&worker->class,
						      memory_order_relaxed));
}

uint64_t wq_home_backlog(struct wq_pools *pools, struct wq_home *home)
{
	uint64_t ns = running_left(pools, home) + waiting(home);

	return wq_ns_to_ticks(wq_place_scale(ns, home->capacity));
}

void wq_place_look(struct wq_pools *pools, struct wq_place_cpu *cpu,
		   struct wq_place_view *view)
{
	uint64_t now = wq_stamp(), back = 0;

	for (size_t i = 0; i < pools->nr; i++) {
		struct wq_home *home = &pools->home[i];
		uint64_t oldest = wq_ring_oldest(&home->ring);

		cpu[i].capacity_orig = home->capacity;
		cpu[i].capacity = atomic_load_explicit(&home->capacity_now,
						       memory_order_relaxed);
		cpu[i].usable = !atomic_load_explicit(&home->lost,
						      memory_order_relaxed);
		cpu[i].queued = (unsigned int)wq_home_depth(home);
		cpu[i].running_left_ns = running_left(pools, home);
		cpu[i].idle = !cpu[i].running_left_ns;
		cpu[i].head_wait_ns = oldest ? wq_ticks_to_ns(wq_ticks_since(
						       oldest, now, &back))
					     : 0;
		cpu[i].backlog_ns = waiting(home);
		cpu[i].balanced_ns = 0;
	}
	view->topo = pools->topo;
	view->cpu = cpu;
	view->now_ns = wq_ticks_to_ns(now);
}

size_t wq_place_new(struct wq_pools *pools, struct wq_worker *self, size_t home,
		    unsigned int class)
{
	struct wq_place_view view;

	if (!self || !self->view)
		return home;
	wq_place_look(pools, self->view, &view);
	return wq_place_select(&pools->config.place, &view, home,
			       wq_usual_ns(&pools->home[home], class));
}

int wq_misfit(uint64_t left_ns)
{
	struct wq_worker *self = wq_running;
	struct wq_place_view view;
	struct wq_pools *pools;
	size_t to;

	if (!self || !self->plan || !self->plan->steal ||
	    !self->pools->unequal || !self->view)
		return -1;
	pools = self->pools;
	wq_place_look(pools, self->view, &view);
	to = wq_place_misfit(&pools->config.place, &view, self->home->index,
			     left_ns);
	return to == self->home->index ? -1 : pools->home[to].cpu;
}
