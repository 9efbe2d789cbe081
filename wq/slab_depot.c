/* SPDX-License-Identifier: MIT */
/*
 * Stacks of magazines.  The head has a tag that changes with every change, so
 * that a magazine that went and came back is not taken for one that stayed.
 * Magazines live as long as the cache: one that was popped a moment ago may
 * still be looked at.
 */
#include "wq/slab_private.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Of its 512 KiB only the pages that are used cost memory. */
static size_t table_bytes(const struct wq_cache *cache)
{
	return WQ_MAGAZINES * sizeof(*cache->table);
}

int wq_depot_init(struct wq_cache *cache)
{
	void *table = mmap(NULL, table_bytes(cache), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (table == MAP_FAILED)
		return -ENOMEM;
	cache->table = table;
	return 0;
}

void wq_depot_fini(struct wq_cache *cache)
{
	if (!cache->table)
		return;
	for (uint32_t i = 0; i < cache->magazines; i++)
		free(cache->table[i]);
	munmap(cache->table, table_bytes(cache));
}

bool wq_depot_at(const struct wq_cache *cache, uint32_t index,
		 const struct wq_magazine **mag)
{
	if (index >= atomic_load(&cache->magazines) || index >= WQ_MAGAZINES)
		return false;
	*mag = atomic_load(&cache->table[index]);
	return true;
}

static uint64_t with(uint64_t old, uint32_t top)
{
	return ((old >> 32) + 1) << 32 | top;
}

struct wq_magazine *wq_depot_pop(struct wq_cache *cache,
				 _Atomic uint64_t *stack)
{
	uint64_t head = atomic_load(stack);

	while ((uint32_t)head) {
		/* Acquire: pairs with the store in wq_depot_new(). */
		struct wq_magazine *mag =
			atomic_load_explicit(&cache->table[(uint32_t)head - 1],
					     memory_order_acquire);
		/* Relaxed: it may be another's by now, but then the tag
		 * differs and the exchange fails. */
		uint32_t below =
			atomic_load_explicit(&mag->below, memory_order_relaxed);

		/* Pairs with the exchange in wq_depot_push(): all that was in
		 * the magazine is ours to see. */
		if (atomic_compare_exchange_weak(stack, &head,
						 with(head, below)))
			return mag;
	}
	return NULL;
}

void wq_depot_push(_Atomic uint64_t *stack, struct wq_magazine *mag)
{
	uint64_t head = atomic_load(stack);

	do {
		/* Relaxed: the exchange below publishes it. */
		atomic_store_explicit(&mag->below, (uint32_t)head,
				      memory_order_relaxed);
	} while (!atomic_compare_exchange_weak(stack, &head,
					       with(head, mag->index + 1)));
}

/* Return: NULL without memory, or when the table is full. */
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
	/* Release: pairs with the load in wq_depot_pop(). */
	atomic_store_explicit(&cache->table[mag->index], mag,
			      memory_order_release);
	return mag;
}
