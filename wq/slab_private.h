/* SPDX-License-Identifier: MIT */
/*
 * wq/slab_private.h - private: magazines above, slabs below.
 *
 *	CPU ---- two magazines, taken and put back by atomic exchange
 *	          |  both empty or both full
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

#define WQ_SLOTS     64 /* a chunk; the bits of closed */
#define WQ_MAGAZINES 65536

/**
 * struct wq_magazine - free objects
 *
 * O: whoever took it from a CPU or a stack owns it.
 * C: counted by the owner, read by anyone; see wq_cache_stats().
 */
struct wq_magazine {
	uint32_t index;                      /* of the table; constant */
	_Atomic uint32_t below;              /* in its stack: index + 1 */
	uint32_t count;                      /* O */
	_Atomic uint64_t gets, puts, remote; /* C */
	void *object[];                      /* O */
};

/**
 * struct wq_slab - one slot of a chunk; under the lock
 *
 *	closed -> empty <-> partial <-> full        closed: no memory
 *	   ^--------'                               full: in no list
 */
struct wq_slab {
	struct wq_slab *next, **link;
	uint16_t used; /* objects that are not here */
	uint16_t free; /* the first object that is, unless all are used */
};

struct wq_chunk {
	struct wq_chunk *next;         /* L */
	uint64_t closed;               /* L: bits of slots without a slab */
	struct wq_slab slab[WQ_SLOTS]; /* L */
	/* L: the next free one, by slot and object. */
	uint16_t *link;
	/* Of an object in use, its CPU + 1; else 0.  Belongs to whoever has
	 * the object; atomic so that a double put is no data race. */
	_Atomic uint16_t *cpu;
};

struct wq_cache_cpu {
	_Alignas(64) struct wq_magazine *_Atomic loaded;
	struct wq_magazine *_Atomic previous;
	_Atomic uint64_t gets, puts; /* past the magazines: any thread adds */
};

/** struct wq_cache - unmarked: constant; A: atomic; L: under the lock */
struct wq_cache {
	struct wq_cache_config config;
	size_t objsize;
	size_t slab_bytes;
	uint64_t inverse;     /* 2^40 / objsize, rounded up */
	unsigned int shift;   /* lg of slab_bytes */
	unsigned int objects; /* a slab */
	unsigned int pages;   /* a slab */
	unsigned int first;   /* the first slot that is a slab */
	unsigned int magazine;
	int cpus;
	struct wq_cache_cpu *cpu;
	struct wq_magazine *_Atomic *table;  /* A */
	_Alignas(64) _Atomic uint64_t full;  /* A: tag << 32 | index + 1 */
	_Alignas(64) _Atomic uint64_t empty; /* A: the same */
	_Alignas(64) _Atomic uint32_t magazines;
	_Atomic uint64_t depot_gets, misses, grows, shrinks; /* A */
	pthread_mutex_t lock;
	struct wq_chunk *chunks;         /* L: all */
	struct wq_chunk *room;           /* L: where a closed slot was last */
	struct wq_slab *partly, *unused; /* L: with free objects; all free */
	uint64_t slabs, chunk_count;     /* L */
};

/* slab_pages.c */

/** wq_slab_plan() - choose the pages of a slab and what follows from them */
void wq_slab_plan(struct wq_cache *cache);

/** wq_slab_cpu() - where the CPU of an object in use is noted; without lock */
_Atomic uint16_t *wq_slab_cpu(const struct wq_cache *cache, const void *object);

/** wq_slab_take_locked() - an object, or NULL
 * @open: a new slab may be made for it; NULL then says that it takes a chunk */
void *wq_slab_take_locked(struct wq_cache *cache, bool open);
void wq_slab_give_locked(struct wq_cache *cache, void *object);

/** wq_slab_chunk() - map one more, and only then take the lock
 * Return: 0 or -ENOMEM. */
int wq_slab_chunk(struct wq_cache *cache);

/** wq_slab_trim() - without the lock, for which it waits
 * Return: the bytes of empty slabs that were given back. */
size_t wq_slab_trim(struct wq_cache *cache);

/** wq_slab_overhead_locked() - bytes of the chunks that are no slabs */
uint64_t wq_slab_overhead_locked(const struct wq_cache *cache);

/** wq_slab_unmap() - all; nobody uses the cache any more */
void wq_slab_unmap(struct wq_cache *cache);

/* slab_depot.c */

/** wq_depot_init() - the table.  Return: 0 or -ENOMEM. */
int wq_depot_init(struct wq_cache *cache);
/** wq_depot_fini() - also after an init that failed or never was; frees all
 * magazines, and nobody uses them any more */
void wq_depot_fini(struct wq_cache *cache);

/* The rest is lock-free and for any thread. */

/** wq_depot_at() - @mag is NULL for one that is just being made
 * Return: whether @index is one of the table. */
bool wq_depot_at(const struct wq_cache *cache, uint32_t index,
		 const struct wq_magazine **mag);
struct wq_magazine *wq_depot_pop(struct wq_cache *cache,
				 _Atomic uint64_t *stack);
void wq_depot_push(_Atomic uint64_t *stack, struct wq_magazine *mag);
struct wq_magazine *wq_depot_new(struct wq_cache *cache);

#endif /* WQ_SLAB_PRIVATE_H */
