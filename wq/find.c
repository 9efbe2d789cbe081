/* SPDX-License-Identifier: MIT */
/*
 * Where a worker looks for its next job, and how much waits there.
 */
#include "wq/pool.h"

/* Now and then a worker looks at other queues first, so that a full queue of
 * its own does not starve them. */
#define OTHERS_FIRST 61

uint64_t wq_home_depth(struct wq_home *home)
{
	return wq_ring_depth(&home->ring) + !wq_list_empty(&home->overflow);
}

static bool ready(struct wq_home *home)
{
	return wq_ring_ready(&home->ring) || !wq_list_empty(&home->overflow);
}

/*
 * Move what overflowed into the ring, as much as it holds; the rest goes back.
 * While we hold the list others may think that nothing waits and go to sleep,
 * so the caller wakes them.
 */
static void refill(struct wq_home *home)
{
	struct wq_work *work = wq_list_take(&home->overflow);
	struct wq_work *next;
	uint64_t pos;

	for (; work; work = next) {
		next = work->next;
		if (!wq_ring_push(&home->ring, work, false, &pos))
			wq_list_push(&home->overflow, work);
	}
}

static struct wq_work *take(struct wq_worker *worker, struct wq_home *home,
			    uint64_t *id)
{
	struct wq_work *work;
	bool more = false;
	uint64_t pos = 0;

	if (!ready(home))
		return NULL;
	wq_exclude(worker->pools);
	work = wq_ring_pop(&home->ring, &pos);
	if (!work && !wq_list_empty(&home->overflow)) {
		refill(home);
		work = wq_ring_pop(&home->ring, &pos);
		more = true;
	}
	wq_include(worker->pools);
	if (more)
		wq_wake_more(worker);
	*id = wq_job_id(home, pos);
	return work;
}

static struct wq_work *take_others(struct wq_worker *worker, uint64_t *id,
				   struct wq_home **from)
{
	struct wq_pools *pools = worker->pools;
	struct wq_plan *plan = worker->plan;
	struct wq_work *work = NULL;

	if (worker->pod->nr_homes == 1)
		return NULL;
	for (size_t i = 0; !work && i + 1 < pools->nr; i++) {
		*from = &pools->home[worker->home->near[i]];
		if (plan->of[(*from)->index] == worker->pod && ready(*from))
			work = take(worker, *from, id);
	}
	return work;
}

/* Local-first: of a queue that its CPU will be too long about. */
static struct wq_work *steal(struct wq_worker *worker, uint64_t *id,
			     struct wq_home **from)
{
	struct wq_pools *pools = worker->pools;
	size_t thief = worker->home->index;
	struct wq_place_view view;
	struct wq_work *work;
	size_t victim;

	if (!wq_others_wait(worker))
		return NULL;
	wq_place_look(pools, worker->view, &view);
	victim = wq_place_victim(&pools->config.place, &view, thief);
	if (victim == thief)
		return NULL;
	*from = &pools->home[victim];
	work = take(worker, *from, id);
	if (work)
		wq_count(&worker->nr_stolen);
	return work;
}

struct wq_work *wq_find(struct wq_worker *worker, uint64_t *id, uint32_t *depth)
{
	struct wq_home *from = worker->home;
	struct wq_work *work = NULL;

	if (++worker->claims % OTHERS_FIRST == 0)
		work = take_others(worker, id, &from);
	if (!work) {
		from = worker->home;
		work = take(worker, from, id);
	}
	if (!work)
		work = take_others(worker, id, &from);
	if (!work && worker->plan->steal)
		work = steal(worker, id, &from);
	if (work)
		*depth = (uint32_t)wq_home_depth(from);
	return work;
}

bool wq_find_any(struct wq_worker *worker)
{
	struct wq_pod *pod = worker->pod;

	for (size_t i = 0; i < pod->nr_homes; i++)
		if (ready(&worker->pools->home[pod->home[i]]))
			return true;
	return false;
}

bool wq_others_wait(struct wq_worker *worker)
{
	struct wq_pools *pools = worker->pools;

	for (size_t i = 0; i < pools->nr; i++)
		if (&pools->home[i] != worker->home && ready(&pools->home[i]))
			return true;
	return false;
}
