/* SPDX-License-Identifier: MIT */
/*
 * When a worker blocks or hogs its CPU, another takes its place at its home.
 */
#include "wq/futex.h"
#include "wq/pool.h"

#include <errno.h>

/* Threads beyond one a CPU; see MOST_WORKERS in gate.c. */
#define MOST_SPARES 512

/* Return: a spare, taken off the list, or NULL.  Under the lock. */
static struct wq_worker *pop_spare(struct wq_pools *pools)
{
	struct wq_worker *spare = pools->spares;

	if (spare)
		pools->spares = spare->next_spare;
	return spare;
}

static void push_spare(struct wq_pools *pools, struct wq_worker *spare)
{
	atomic_store(&spare->role, WQ_SPARE);
	spare->next_spare = pools->spares;
	pools->spares = spare;
}

/* Return: a new thread that waits to be called, or NULL. */
static struct wq_worker *new_spare(struct wq_pools *pools)
{
	struct wq_worker *spare = NULL;
	struct wq_error why = { "no more than 512 workers may wait" };
	int err = -EAGAIN;

	pthread_mutex_lock(&pools->lock);
	if (pools->nr_spares < MOST_SPARES) {
		spare = wq_worker_alloc(pools);
		pools->nr_spares += spare != NULL;
	}
	pthread_mutex_unlock(&pools->lock);
	if (spare) {
		atomic_store(&spare->role, WQ_SPARE);
		err = wq_worker_start(spare, &why);
	}
	if (err) {
		wq_say(pools, "no worker in place of one that blocks: %s",
		       why.text);
		return NULL;
	}
	return spare;
}

/* Tell a worker that runs an item that it will be none of the primaries when
 * that is over.  Return: false when it runs none any more. */
static bool mark(struct wq_worker *worker)
{
	uintptr_t current = atomic_load(&worker->current);

	while (current &&
	       !atomic_compare_exchange_weak(&worker->current, &current,
					     current | WQ_LEAVES))
		;
	return current != 0;
}

/* Put @spare in the place of @worker, if that still is a primary and, when the
 * watch asks, still runs an item: it might just be going to sleep. */
static bool relieve(struct wq_worker *worker, struct wq_worker *spare)
{
	struct wq_pools *pools = worker->pools;
	struct wq_home *home = worker->home;
	bool ok;

	pthread_mutex_lock(&pools->lock);
	ok = atomic_load(&worker->role) == WQ_PRIMARY &&
	     (worker == wq_running || mark(worker));
	if (ok) {
		spare->home = home;
		/* It lives by no mode yet: a switch waits for it. */
		atomic_store(&spare->seen, UINT64_MAX);
		atomic_store(&worker->role, WQ_DETACHED);
		atomic_store(&home->primary, spare);
	} else {
		push_spare(pools, spare);
	}
	pthread_mutex_unlock(&pools->lock);
	if (!ok)
		return false;
	/* Release: @spare->home.  It becomes a primary when it sees this. */
	atomic_store(&spare->spare_word, WQ_CALLED);
	wq_futex_wake(&spare->spare_word, 1);
	return true;
}

bool wq_replace(struct wq_worker *worker)
{
	struct wq_pools *pools = worker->pools;
	struct wq_worker *spare;

	pthread_mutex_lock(&pools->lock);
	spare = pop_spare(pools);
	pthread_mutex_unlock(&pools->lock);
	if (!spare)
		spare = new_spare(pools);
	WQ_POINT(WQ_POINT_REPLACE);
	return spare && relieve(worker, spare);
}

void wq_retire(struct wq_worker *worker)
{
	struct wq_pools *pools = worker->pools;

	pthread_mutex_lock(&pools->lock);
	push_spare(pools, worker);
	pthread_mutex_unlock(&pools->lock);
}

bool wq_spare_wait(struct wq_worker *worker)
{
	uint32_t word;

	for (;;) {
		word = atomic_load(&worker->spare_word);
		if (word)
			break;
		wq_futex_wait(&worker->spare_word, 0, UINT64_MAX);
	}
	/* Not by a plain store: WQ_ENDED may be set any time, and stays. */
	if (word != WQ_CALLED ||
	    !atomic_compare_exchange_strong(&worker->spare_word, &word, 0))
		return false;
	/* It knows nothing of the mode yet, nor of its new home. */
	worker->pod = NULL;
	worker->plan = NULL;
	worker->t4 = 0;
	worker->free = 0;
	atomic_store(&worker->role, WQ_PRIMARY);
	return true;
}

void wq_blocking_begin(void)
{
	struct wq_worker *self = wq_running;
	struct wq *wq;

	if (!self || self->blocking++)
		return;
	if (atomic_load(&self->role) == WQ_ISSUER)
		wq_run_elsewhere(self);
	if (atomic_load(&self->role) != WQ_PRIMARY)
		return;
	wq = atomic_load_explicit(&self->wq, memory_order_relaxed);
	if (wq_replace(self))
		atomic_fetch_add(&wq->cm_wakeups, 1);
	else if (atomic_load(&self->role) == WQ_PRIMARY)
		/* Else the watch has just done it. */
		atomic_fetch_add(&wq->mayday, 1);
}

void wq_blocking_end(void)
{
	struct wq_worker *self = wq_running;

	if (self && self->blocking)
		self->blocking--;
}
