/* SPDX-License-Identifier: MIT */
/*
 * Stacks of magazines.  The head has a tag that changes with every change, so
 * that a magazine that went and came back is not taken for one that stayed.
 */
#include "wq/slab_private.h"

#include <stdlib.h>

static uint64_t with(uint64_t old, uint32_t top)
{
	return ((old >> 32) + 1) << 32 | top;
}

static struct wq_magazine *at(struct wq_cache *cache, uint32_t number)
{
	/* Acquire: pairs with the store in wq_depot_new(). */
	return atomic_load_explicit(&cache->table[number - 1],
				    memory_order_acquire);
}

struct wq_magazine *wq_depot_pop(struct wq_cache *cache,
				 _Atomic uint64_t *stack)
{
	uint64_t head = atomic_load(stack);

	while ((uint32_t)head) {
		struct wq_magazine *mag = at(cache, (uint32_t)head);
		/* It may be gone by now: then the tag differs. */
		uint32_t below =
			atomic_load_explicit(&mag->below, memory_order_relaxed);

		if (atomic_compare_exchange_weak(stack, &head,
						 with(head, below)))
			return mag;
	}
	return NULL;
}

void wq_depot_push(struct wq_cache *cache, _Atomic uint64_t *stack,
		   struct wq_magazine *mag)
{
	uint64_t head = atomic_load(stack);

	(void)cache;
	do {
		atomic_store_explicit(&mag->below, (uint32_t)head,
				      memory_order_relaxed);
	} while (!atomic_compare_exchange_weak(stack, &head,
					       with(head, mag->index + 1)));
}

struct wq_magazine *wq_depot_new(struct wq_cache *cache)
{
	struct wq_magazine *mag;

	mag = calloc(1,
		     sizeof(*mag) + cache->magazine * sizeof(mag->object[0]));
	if (!mag)
		return NULL;
	mag->index = atomic_fetch_add(&cache->magazines, 1);
	if (mag->index >= WQ_MAGAZINES) {
		atomic_fetch_sub(&cache->magazines, 1);
		free(mag);
		return NULL;
	}
	atomic_store(&cache->table[mag->index], mag);
	return mag;
}
