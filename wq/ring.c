/* SPDX-License-Identifier: MIT */
#include "wq/ring.h"

#include <errno.h>
#include <stdlib.h>

int wq_ring_init(struct wq_ring *ring, unsigned int jobs)
{
	ring->slot = calloc(jobs, sizeof(*ring->slot));
	if (!ring->slot)
		return -ENOMEM;
	ring->mask = jobs - 1;
	for (uint64_t i = 0; i < jobs; i++)
		atomic_init(&ring->slot[i].seq, i);
	return 0;
}

void wq_ring_exit(struct wq_ring *ring)
{
	free(ring->slot);
	ring->slot = NULL;
}

/* Take the slot at the tail.  Return: NULL when there is none free. */
static struct wq_slot *reserve(struct wq_ring *ring, uint64_t *pos)
{
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	for (;;) {
		struct wq_slot *slot = &ring->slot[tail & ring->mask];
		/* Acquire: the consumer is done with the slot. */
		uint64_t seq =
			atomic_load_explicit(&slot->seq, memory_order_acquire);
		int64_t ahead = (int64_t)(seq - tail);

		/* A failed exchange sets the tail anew. */
		if (!ahead &&
		    atomic_compare_exchange_weak_explicit(
			    &ring->tail, &tail, tail + 1, memory_order_relaxed,
			    memory_order_relaxed)) {
			*pos = tail;
			return slot;
		}
		if (ahead < 0)
			return NULL;
		tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	}
}

bool wq_ring_push(struct wq_ring *ring, struct wq_work *work, bool stamp,
		  uint64_t *pos)
{
	struct wq_slot *slot = reserve(ring, pos);

	if (!slot)
		return false;
	atomic_store_explicit(&work->list, NULL, memory_order_relaxed);
	atomic_store_explicit(&work->slot, slot, memory_order_relaxed);
	if (stamp)
		work->t2 = wq_stamp();
	atomic_store_explicit(&slot->stamp, work->t2, memory_order_relaxed);
	/* From here on the job is not ours: wq_ring_take() may have it. */
	atomic_store_explicit(&slot->work, work, memory_order_release);
	/* Pairs with the acquire in claim() and, sequentially consistent, with
	 * wq_ring_ready(). */
	atomic_store(&slot->seq, *pos + 1);
	return true;
}

/* Take the slot at the head.  Return: NULL when none is filled. */
static struct wq_slot *claim(struct wq_ring *ring, uint64_t *pos)
{
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	for (;;) {
		struct wq_slot *slot = &ring->slot[head & ring->mask];
		/* Acquire: what was written to the job before it was pushed. */
		uint64_t seq =
			atomic_load_explicit(&slot->seq, memory_order_acquire);
		int64_t ahead = (int64_t)(seq - (head + 1));

		if (!ahead &&
		    atomic_compare_exchange_weak_explicit(
			    &ring->head, &head, head + 1, memory_order_relaxed,
			    memory_order_relaxed)) {
			*pos = head;
			return slot;
		}
		if (ahead < 0)
			return NULL;
		head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	}
}

struct wq_work *wq_ring_pop(struct wq_ring *ring, uint64_t *pos)
{
	for (;;) {
		struct wq_slot *slot = claim(ring, pos);
		struct wq_work *work;

		if (!slot)
			return NULL;
		work = atomic_exchange_explicit(&slot->work, NULL,
						memory_order_acq_rel);
		/* Release: the slot is free for the next lap. */
		atomic_store_explicit(&slot->seq, *pos + ring->mask + 1,
				      memory_order_release);
		if (work)
			return work;
	}
}
