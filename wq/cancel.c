/* SPDX-License-Identifier: MIT */
/*
 * Taking a waiting item back, wherever it is: handed to the worker that runs
 * it, in a slot of a ring, in a list, behind a gate.  While it is on its way
 * from one to the next it is in none, and we look again.
 */
#include "wq/pool.h"

#include <errno.h>
#include <sched.h>

/* Of a worker that runs the item and was to run it again. */
static bool from_runner(struct wq_work *work)
{
	struct wq_worker *last = atomic_load(&work->last);
	uintptr_t current;

	if (!last)
		return false;
	current = atomic_load(&last->current);
	while ((current & ~WQ_LEAVES) == ((uintptr_t)work | WQ_AGAIN))
		if (atomic_compare_exchange_weak(&last->current, &current,
						 current & ~WQ_AGAIN))
			return true;
	return false;
}

static bool from_slot(struct wq_work *work)
{
	struct wq_slot *slot = atomic_load(&work->slot);

	return slot && wq_ring_take(slot, work);
}

/* It is an overflow list, or holds those that an inline job left for later. */
bool wq_spill(struct wq_pools *pools, struct wq_list *list,
	      const struct wq_work *work)
{
	struct wq_work *item = wq_list_take(list);
	bool found = false;
	struct wq_work *next;

	for (; item; item = next) {
		struct wq_home *home = &pools->home[item->home];

		next = item->next;
		if (item == work) {
			found = true;
			continue;
		}
		wq_list_push(&home->overflow, item);
		/* As if it were just queued. */
		wq_wake(pools, home, 0, 0);
	}
	return found;
}

/* @active: whether the gate had let it through. */
static bool take_back(struct wq_pools *pools, struct wq_work *work,
		      bool *active)
{
	struct wq_work *let = NULL;
	struct wq_list *list;
	bool taken;

	*active = true;
	if (from_runner(work) || from_slot(work))
		return true;
	list = atomic_load(&work->list);
	if (!list)
		return false;
	if (!list->gate)
		return wq_spill(pools, list, work);
	*active = false;
	taken = wq_gate_take(list->gate, work, &let);
	wq_let(pools, let);
	return taken;
}

bool wq_cancel_work(struct wq_work *work)
{
	struct wq_pools *pools;
	uint8_t colour;
	size_t home;
	bool active;
	struct wq *wq;

	for (;;) {
		if (!(atomic_load(&work->state) & WQ_PENDING))
			return false;
		wq = atomic_load(&work->wq);
		if (wq && take_back(wq->pools, work, &active))
			break;
		sched_yield();
	}
	/* It may have run, and come here from another workqueue. */
	wq = atomic_load(&work->wq);
	pools = wq->pools;
	home = (size_t)work->home;
	colour = work->colour;
	if (wq->gated && active)
		wq_let(pools, wq_gate_done(&wq->gate[work->gate]));
	atomic_fetch_add_explicit(&wq->shard[home].cancelled, 1,
				  memory_order_relaxed);
	/* Not to be found when it is on its way to another. */
	atomic_store_explicit(&work->list, NULL, memory_order_relaxed);
	atomic_fetch_and(&work->state, ~WQ_PENDING);
	wq_count_out(pools, wq, home, colour);
	return true;
}

static bool not_running(void *arg)
{
	return !(wq_work_busy(arg) & WQ_BUSY_RUNNING);
}

int wq_cancel_work_sync(struct wq_work *work)
{
	struct wq_worker *last = atomic_load(&work->last);
	bool waited;

	if (last && last == wq_running && wq_work_busy(work) & WQ_BUSY_RUNNING)
		return -EDEADLK;
	atomic_fetch_add(&work->state, WQ_DISABLE);
	waited = wq_cancel_work(work);
	last = atomic_load(&work->last);
	if (last)
		wq_wait(last->pools, not_running, work);
	atomic_fetch_sub(&work->state, WQ_DISABLE);
	return waited;
}
