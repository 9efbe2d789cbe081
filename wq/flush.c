/* SPDX-License-Identifier: MIT */
/*
 * Waiting for items: flush, drain, flush_work.
 *
 * A workqueue counts, a home at a time, what was queued and what is done, in
 * one of two colours.  To flush is to change the colour of what is queued from
 * now on and to wait until all of the old colour is done (the kernel's scheme,
 * with two colours and one flush at a time).  A queuer that counted under the
 * old colour sees the change, takes its count back, and counts again; so
 * nothing of the old colour comes later.
 *
 * Done is summed before queued: if they are equal then at the time between,
 * nothing was under way.
 */
#include "wq/futex.h"
#include "wq/pool.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>

/* Whoever may have changed what a waiter waits for. */
static void tell_waiters(struct wq_pools *pools)
{
	/* After the change; a waiter counts itself first and looks then. */
	if (!atomic_load(&pools->waiters))
		return;
	atomic_fetch_add(&pools->events, 1);
	wq_futex_wake(&pools->events, INT_MAX);
}

uint8_t wq_count_in(struct wq_pools *pools, struct wq *wq, size_t home)
{
	struct wq_shard *shard = &wq->shard[home];

	for (;;) {
		uint32_t colour = atomic_load(&wq->colour);

		atomic_fetch_add(&shard->queued[colour], 1);
		if (atomic_load(&wq->colour) == colour)
			return (uint8_t)colour;
		atomic_fetch_add(&shard->done[colour], 1);
		tell_waiters(pools);
	}
}

void wq_count_out(struct wq_pools *pools, struct wq *wq, size_t home,
		  unsigned int colour)
{
	atomic_fetch_add(&wq->shard[home].done[colour], 1);
	tell_waiters(pools);
}

/* Return: whether it had to wait.  What an item waits for may stand behind it,
 * so that it blocks. */
bool wq_wait(struct wq_pools *pools, bool (*over)(void *arg), void *arg)
{
	bool waited = false;

	atomic_fetch_add(&pools->waiters, 1);
	for (;;) {
		uint32_t event = atomic_load(&pools->events);

		if (over(arg))
			break;
		if (!waited)
			wq_blocking_begin();
		waited = true;
		wq_futex_wait(&pools->events, event, UINT64_MAX);
	}
	if (waited)
		wq_blocking_end();
	atomic_fetch_sub(&pools->waiters, 1);
	return waited;
}

static bool none_left(struct wq *wq, unsigned int colour)
{
	uint64_t done = 0, queued = 0;

	for (size_t i = 0; i < wq->pools->nr; i++)
		done += atomic_load(&wq->shard[i].done[colour]);
	for (size_t i = 0; i < wq->pools->nr; i++)
		queued += atomic_load(&wq->shard[i].queued[colour]);
	return done == queued;
}

static bool old_gone(void *arg)
{
	struct wq *wq = arg;

	return none_left(wq, atomic_load(&wq->colour) ^ 1);
}

static bool own_item(const struct wq *wq)
{
	struct wq_worker *self = wq_running;

	return self &&
	       atomic_load_explicit(&self->wq, memory_order_relaxed) == wq;
}

int wq_flush(struct wq *wq)
{
	if (own_item(wq))
		return -EDEADLK;
	if (pthread_mutex_trylock(&wq->flushing)) {
		wq_blocking_begin();
		pthread_mutex_lock(&wq->flushing);
		wq_blocking_end();
	}
	atomic_fetch_xor(&wq->colour, 1);
	wq_wait(wq->pools, old_gone, wq);
	pthread_mutex_unlock(&wq->flushing);
	return 0;
}

int wq_drain(struct wq *wq)
{
	int err = 0;

	if (own_item(wq))
		return -EDEADLK;
	atomic_fetch_add(&wq->draining, 1);
	do {
		err = wq_flush(wq);
	} while (!err && !(none_left(wq, 0) && none_left(wq, 1)));
	atomic_fetch_sub(&wq->draining, 1);
	return err;
}

unsigned int wq_work_busy(struct wq_work *work)
{
	unsigned int busy = 0;
	struct wq_worker *last;

	if (atomic_load(&work->state) & WQ_PENDING)
		busy |= WQ_BUSY_PENDING;
	last = atomic_load(&work->last);
	if (last && (atomic_load(&last->current) & ~(WQ_AGAIN | WQ_LEAVES)) ==
			    (uintptr_t)work)
		busy |= WQ_BUSY_RUNNING;
	return busy;
}

/* One run of an item; @number: of WQ_BEGUN, which goes round. */
struct one_run {
	struct wq_work *work;
	uint16_t number;
};

static bool run_over(void *arg)
{
	const struct one_run *run = arg;
	uint32_t state = atomic_load(&run->work->state);
	int16_t later = (int16_t)(state / WQ_BEGUN - run->number);
	unsigned int busy = wq_work_busy(run->work);

	/* The next one begins when this one has ended; until this one begins
	 * the item is pending, or was taken back. */
	return later > 0 || !busy || (later == 0 && !(busy & WQ_BUSY_RUNNING));
}

int wq_flush_work(struct wq_work *work)
{
	struct wq_worker *last = atomic_load(&work->last);
	uint32_t state = atomic_load(&work->state);
	struct one_run run = { .work = work };
	struct wq *wq;

	if (last && last == wq_running && wq_work_busy(work) & WQ_BUSY_RUNNING)
		return -EDEADLK;
	if (!wq_work_busy(work))
		return 0;
	run.number =
		(uint16_t)(state / WQ_BEGUN + (state & WQ_PENDING ? 1 : 0));
	/* Whoever has made it pending says where in a moment. */
	while (!(wq = atomic_load(&work->wq)))
		sched_yield();
	wq_wait(last ? last->pools : wq->pools, run_over, &run);
	return 1;
}
