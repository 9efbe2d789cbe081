/* SPDX-License-Identifier: MIT */
#include "wq/pool.h"

#include <errno.h>
#include <string.h>

#ifdef WQ_BENCH
void (*_Atomic wq_point)(enum wq_point point);
#endif

void wq_work_init(struct wq_work *work, void (*fn)(struct wq_work *work),
		  unsigned int class)
{
	memset(work, 0, sizeof(*work));
	work->fn = fn;
	work->class = (uint8_t) class;
}

/* Give the item to the worker that runs it, if one does. */
static bool hand_over(struct wq_pools *pools, struct wq_work *work)
{
	/* Acquire is not needed: the pending bit that we set was cleared after
	 * both of what is read here were written. */
	struct wq_worker *last =
		atomic_load_explicit(&work->last, memory_order_relaxed);
	uintptr_t running;

	if (!last)
		return false;
	running = atomic_load(&last->current);
	if ((running & ~WQ_LEAVES) != (uintptr_t)work)
		return false;
	atomic_store_explicit(&work->slot, NULL, memory_order_relaxed);
	atomic_store_explicit(&work->list, NULL, memory_order_relaxed);
	if (pools->lat)
		work->t2 = wq_stamp();
	while (running && !atomic_compare_exchange_weak(
				  &last->current, &running, running | WQ_AGAIN))
		if ((running & ~WQ_LEAVES) != (uintptr_t)work)
			return false;
	return running != 0;
}

/* Return: whether the calling thread ran it, or will before it goes on. */
static bool publish_inline(struct wq_pools *pools, struct wq_work *work)
{
	struct wq_worker *self = wq_issuer(pools);

	/* A worker that queues while it drains what other modes left; or an
	 * inline job that blocks, perhaps until this one has run. */
	if (!self || self->blocking ||
	    atomic_load_explicit(&self->role, memory_order_relaxed) !=
		    WQ_ISSUER)
		return false;
	if (!self->ready && pools->lat) {
		if (wq_lat_prepare(self->lat, work->mode, &pools->cpus) < 0)
			return false;
		self->ready = true;
	}
	if (pools->lat && !work->eligible)
		work->t2 = wq_stamp();
	/* It rests in no gate any more, which may go before it does. */
	atomic_store_explicit(&work->list, NULL, memory_order_relaxed);
	wq_run_inline(self, work);
	return true;
}

static void note_queue(struct wq_pools *pools, uint64_t id, unsigned int class)
{
	struct wq_worker *self = wq_issuer(pools);

	if (self)
		wq_trace_event(self->trace, WQ_EVENT_QUEUE, wq_stamp(), id,
			       class);
}

/* Make the item visible to its home's workers, and see that one comes. */
static void enqueue(struct wq_pools *pools, struct wq_work *work)
{
	struct wq_home *home = &pools->home[work->home];
	unsigned int class = work->class;
	/* What waited already keeps the stamp of when it was first published. */
	bool stamp = pools->lat && !work->eligible;
	uint64_t t1 = work->t1, pos = 0;
	bool pushed = false;

	wq_exclude(pools);
	/* Behind what overflowed before, as far as that can be seen. */
	if (wq_list_empty(&home->overflow))
		pushed = wq_ring_push(&home->ring, work, stamp, &pos);
	if (!pushed) {
		atomic_fetch_add_explicit(&home->overflowed, 1,
					  memory_order_relaxed);
		if (stamp)
			work->t2 = wq_stamp();
		wq_list_push(&home->overflow, work);
	}
	wq_include(pools);
	if (atomic_load_explicit(&wq_trace_recording, memory_order_relaxed) &&
	    pushed)
		note_queue(pools, wq_job_id(home, pos), class);
	wq_wake(pools, home, pushed ? wq_job_id(home, pos) : 0, t1);
}

void wq_publish(struct wq_pools *pools, struct wq_work *work)
{
	uint64_t word = atomic_load(&pools->mode);
	unsigned int mode = wq_word_mode(word);

	work->mode = (uint8_t)mode;
	work->epoch = wq_word_epoch(word);
	WQ_POINT(WQ_POINT_ENQUEUE);
	if (hand_over(pools, work))
		return;
	if (wq_mode_at(mode).binding == WQ_INLINE &&
	    publish_inline(pools, work))
		return;
	enqueue(pools, work);
}

void wq_let(struct wq_pools *pools, struct wq_work *work)
{
	while (work) {
		struct wq_work *next = work->next;

		wq_publish(pools, work);
		work = next;
	}
}

/* Return: whether the item is ours to queue. */
static bool set_pending(struct wq_work *work)
{
	uint32_t state =
		atomic_load_explicit(&work->state, memory_order_relaxed);

	do {
		if (state % WQ_BEGUN)
			return false;
	} while (!atomic_compare_exchange_weak(&work->state, &state,
					       state | WQ_PENDING));
	return true;
}

/* May this thread queue on a workqueue that drains? */
static bool chained(const struct wq *wq)
{
	struct wq_worker *self = wq_running;

	return self &&
	       atomic_load_explicit(&self->wq, memory_order_relaxed) == wq;
}

static int queue_on(struct wq *wq, struct wq_work *work, size_t home, int cpu)
{
	struct wq_pools *pools = wq->pools;
	struct wq_gate *gate;

	if (atomic_load_explicit(&wq->draining, memory_order_relaxed) &&
	    !chained(wq))
		return -ESHUTDOWN;
	if (!set_pending(work))
		return 0;
	work->t1 = pools->lat ? wq_stamp() : 0;
	work->eligible = 0;
	atomic_store_explicit(&work->wq, wq, memory_order_relaxed);
	/* A worker of other pools may be gone, and cannot be running it. */
	if (work->pools != pools->id)
		atomic_store_explicit(&work->last, NULL, memory_order_relaxed);
	work->pools = pools->id;
	work->home = (int16_t)home;
	work->cpu = (int16_t)cpu;
	work->colour = wq_count_in(pools, wq, home);
	if (!wq->gated) {
		wq_publish(pools, work);
		return 1;
	}
	work->gate = wq_gate_for(wq, home);
	gate = &wq->gate[work->gate];
	wq_let(pools, wq_gate_push(gate, work, pools->lat != NULL));
	return 1;
}

int wq_queue(struct wq *wq, struct wq_work *work)
{
	struct wq_pools *pools = wq->pools;
	int cpu = wq_cpu_now();
	size_t home = (size_t)pools->home_of[cpu];

	if (pools->unequal) {
		uint64_t word = atomic_load_explicit(&pools->mode,
						     memory_order_relaxed);

		if (pools->plan[wq_word_mode(word)]->steal)
			home = wq_place_new(pools, wq_issuer(pools), home,
					    work->class);
	}
	return queue_on(wq, work, home, cpu);
}

int wq_queue_on(int cpu, struct wq *wq, struct wq_work *work)
{
	struct wq_pools *pools = wq->pools;

	if (cpu < 0 || cpu >= WQ_CPUS || !CPU_ISSET(cpu, &pools->cpus))
		return -EINVAL;
	return queue_on(wq, work, (size_t)pools->home_of[cpu], wq_cpu_now());
}
