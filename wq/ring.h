/* SPDX-License-Identifier: MIT */
/*
 * wq/ring.h - private: a bounded queue for many producers and consumers.
 *
 * D. Vyukov's: each slot has a sequence number.  A slot whose number is the
 * tail may be filled; filled, it carries tail + 1; emptied, the number that the
 * tail will have one lap later.  A producer that is held up between taking its
 * slot and filling it holds up only those who would read past that slot.
 *
 * A job can be taken out of the middle: whoever exchanges slot->work for NULL
 * has it; a consumer that finds NULL goes on to the next.
 */
#ifndef WQ_RING_H
#define WQ_RING_H

#include "wq/wq.h"

#define WQ_LINE 128 /* two cache lines: the neighbour is prefetched */

struct wq_slot {
	_Atomic uint64_t seq;
	_Atomic(struct wq_work *) work;
	_Atomic uint64_t stamp; /* work->t2, for those who only look */
};

struct wq_ring {
	_Alignas(WQ_LINE) _Atomic uint64_t tail; /* producers */
	_Alignas(WQ_LINE) _Atomic uint64_t head; /* consumers */
	_Alignas(WQ_LINE) struct wq_slot *slot;  /* set by wq_ring_init() */
	uint64_t mask;
};

/** wq_ring_init() - @jobs: a power of two.  Return: 0 or -ENOMEM. */
int wq_ring_init(struct wq_ring *ring, unsigned int jobs);
void wq_ring_exit(struct wq_ring *ring);

/**
 * wq_ring_push() - publish @work, stamping its t2 if @stamp
 * @pos: its ticket, on success
 *
 * Return: false when the ring is full.  The last store is sequentially
 * consistent; see wq_list_push().
 */
bool wq_ring_push(struct wq_ring *ring, struct wq_work *work, bool stamp,
		  uint64_t *pos);

/** wq_ring_pop() - Return: the oldest job that can be had, or NULL */
struct wq_work *wq_ring_pop(struct wq_ring *ring, uint64_t *pos);

/** wq_ring_ready() - would wq_ring_pop() find a slot?  It may hold NULL. */
static inline bool wq_ring_ready(struct wq_ring *ring)
{
	uint64_t head = atomic_load(&ring->head);

	/* Pairs with the last store of wq_ring_push(). */
	return atomic_load(&ring->slot[head & ring->mask].seq) == head + 1;
}

/** wq_ring_depth() - jobs in it, with those that are just being put in */
static inline uint64_t wq_ring_depth(struct wq_ring *ring)
{
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	return tail > head ? tail - head : 0;
}

/** wq_ring_oldest() - Return: the stamp of the oldest job, or 0 */
static inline uint64_t wq_ring_oldest(struct wq_ring *ring)
{
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	struct wq_slot *slot = &ring->slot[head & ring->mask];

	if (atomic_load_explicit(&slot->seq, memory_order_acquire) != head + 1)
		return 0;
	return atomic_load_explicit(&slot->stamp, memory_order_relaxed);
}

/** wq_ring_take() - take @work out of @slot, if it is still there */
static inline bool wq_ring_take(struct wq_slot *slot, struct wq_work *work)
{
	return atomic_compare_exchange_strong(&slot->work, &work, NULL);
}

#endif /* WQ_RING_H */
