/* SPDX-License-Identifier: MIT */
/*
 * wq/slab_private.h - private: magazines above, slabs below.
 *
 *	CPU ---- one magazine, taken and put back by atomic exchange
 *	          |  empty or full
 *	depot --- two stacks of magazines: with objects, and without
 *	          |  none with objects: the lock
 *	slabs --- objects of a page or a few, in chunks of 64 slots
 *
 * A chunk is aligned to its size, so an object's chunk follows from its
 * address.  What is known of its slabs lies in its first slots, so that a slab
 * is nothing but objects.
 */
#ifndef WQ_SLAB_PRIVATE_H
#define WQ_SLAB_PRIVATE_H

#include "wq/slab.h"

#include <pthread.h>
#include <stdatomic.h>

#define WQ_SLOTS     64
#define WQ_MAGAZINES 65536

/** struct wq_magazine - free objects; whoever took it owns all fields */
struct wq_magazine {
	uint32_t index;         /* of the table */
	_Atomic uint32_t below; /* in its stack: index + 1 */
	uint32_t count;
	_Atomic uint64_t gets, puts, remote; /* others read */
	void *object[];
};

/** struct wq_slab - one slot of a chunk; under the lock */
struct wq_slab {
	struct wq_slab *next, **link; /* of those with free objects */
	struct wq_chunk *chunk;
	uint16_t slot;
	uint16_t used; /* objects that are not here */
	uint16_t free; /* the first free object, or objects a slab */
	bool live;
};

struct wq_chunk {
	struct wq_chunk *next;
	unsigned int live; /* slabs */
	struct wq_slab slab[WQ_SLOTS];
	/* By slot and object: the next free one; which CPU took it (A: by the
	 * owner of the object). */
	uint16_t *link;
	_Atomic int16_t *cpu;
};

struct wq_cache {
	struct wq_cache_config config;
	size_t objsize;
	unsigned int objects; /* a slab */
	unsigned int pages;   /* a slab */
	size_t slab_bytes;
	unsigned int first; /* the first slot that is a slab */
	unsigned int magazine;
	size_t cpus;
	struct wq_cache_cpu {
		_Alignas(64) _Atomic(struct wq_magazine *) loaded;
	} * cpu;
	_Alignas(64) _Atomic uint64_t full;  /* tag << 32 | index + 1 */
	_Alignas(64) _Atomic uint64_t empty; /* the same */
	_Atomic(struct wq_magazine *) *table;
	_Atomic uint32_t magazines;
	_Atomic uint64_t gets, puts; /* without a magazine, or malloc */
	_Atomic uint64_t depot_gets, misses, remote, grows, shrinks;
	pthread_mutex_t lock; /* of all that follows */
	struct wq_chunk *chunks;
	struct wq_slab *partial; /* with free objects */
	uint64_t slabs;
};

/* slab_pages.c; all under the lock */
void *wq_slab_take(struct wq_cache *cache);
void wq_slab_give(struct wq_cache *cache, void *object);
size_t wq_slab_trim(struct wq_cache *cache);
void wq_slab_unmap(struct wq_cache *cache);

/* For an object in use, without the lock: where its CPU is noted. */
_Atomic int16_t *wq_slab_cpu(const struct wq_cache *cache, const void *object);
/* Choose the pages of a slab.  Return: false when no slab would fit. */
bool wq_slab_plan(struct wq_cache *cache);

/* slab_depot.c */
struct wq_magazine *wq_depot_pop(struct wq_cache *cache,
				 _Atomic uint64_t *stack);
void wq_depot_push(struct wq_cache *cache, _Atomic uint64_t *stack,
		   struct wq_magazine *mag);
struct wq_magazine *wq_depot_new(struct wq_cache *cache);

#endif /* WQ_SLAB_PRIVATE_H */
