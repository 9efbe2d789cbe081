/* SPDX-License-Identifier: MIT */
/*
 * wq/slab.h - object caches for job descriptors.
 *
 * Objects of one size, aligned to cache lines, cut from slabs of whole pages.
 * Each CPU has two magazines of free objects, the loaded and the previous one
 * (Bonwick and Adams, "Magazines and Vmem", USENIX 2001); a thread takes its
 * CPU's magazine by an atomic exchange, so that no thread waits for another,
 * and full and empty magazines go over a depot of lock-free stacks.  Only
 * growth and shrinking take a lock, and neither calls the kernel with it.
 *
 * All functions but new and free may be called by any thread at any time.  An
 * object that is put twice while it is free, or handed to another cache, is a
 * bug: the first aborts.
 */
#ifndef WQ_SLAB_H
#define WQ_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wq_cache;

/**
 * struct wq_cache_config
 * @name: kept by reference; without blanks, it is a column of slabinfo
 * @size: of an object, 1 to 64 KiB
 * @align: a power of two up to 4096; 0 is a cache line (64)
 * @use_malloc: take every object from aligned_alloc() and give it to free();
 *	statistics then know the objects only
 * @magazine: objects a magazine, up to 4096; 0 is 32; with 1 almost every put
 *	goes to the depot
 */
struct wq_cache_config {
	const char *name;
	size_t size;
	size_t align;
	bool use_malloc;
	unsigned int magazine;
};

/** wq_cache_new() - Return: 0, -EINVAL or -ENOMEM */
int wq_cache_new(const struct wq_cache_config *config, struct wq_cache **out);

/** wq_cache_free() - all objects must be back: aborts when one is not.  NULL is
 * allowed. */
void wq_cache_free(struct wq_cache *cache);

/** wq_cache_alloc() - Return: an object, not zeroed, or NULL */
void *wq_cache_alloc(struct wq_cache *cache);

/** wq_cache_put() - give one back, from any thread; NULL is allowed */
void wq_cache_put(struct wq_cache *cache, void *object);

/** wq_cache_shrink() - give back pages that hold no object in use
 *
 * What lies in the magazine of a thread that is just inside alloc or put is
 * left out, and so is memory that mlock() holds.
 *
 * Return: bytes given back. */
size_t wq_cache_shrink(struct wq_cache *cache);

/**
 * struct wq_cache_stats - the columns of /proc/slabinfo, and what they hide
 * @active_objs: handed out
 * @num_objs: there is room for
 * @objsize: bytes of one, with alignment; 8 at least
 * @objperslab, @pagesperslab, @num_slabs
 * @pages: of memory; @bytes: @pages times the page size
 * @utilisation: percent of @bytes that active objects fill with the size that
 *	was asked for
 * @overhead: bytes besides @bytes: what is known of slabs, and magazines
 * @remote_frees: objects put on another CPU than they were taken on
 * @depot_gets, @grows, @shrinks, @misses: magazines taken from the depot,
 *	slabs made, calls of shrink that freed some, and times that the CPU's
 *	magazine was in another thread's hands, or it had none yet
 *
 * Taken while other threads work, the figures may differ by what these just do;
 * @active_objs never is less than 0.  With @use_malloc only @active_objs,
 * @num_objs (the same) and @objsize are set.
 */
struct wq_cache_stats {
	const char *name;
	bool use_malloc;
	uint64_t active_objs;
	uint64_t num_objs;
	size_t objsize;
	unsigned int objperslab;
	unsigned int pagesperslab;
	uint64_t num_slabs;
	uint64_t pages;
	uint64_t bytes;
	double utilisation;
	uint64_t overhead;
	uint64_t remote_frees;
	uint64_t depot_gets;
	uint64_t grows;
	uint64_t shrinks;
	uint64_t misses;
};

void wq_cache_stats(struct wq_cache *cache, struct wq_cache_stats *out);

/** wq_cache_slabinfo() - one line in slabinfo's columns and ours, without a
 * newline; @header asks for the line that names them.  Return: what snprintf()
 * would. */
int wq_cache_slabinfo(const struct wq_cache_stats *stats, bool header,
		      char *buf, size_t size);

#endif /* WQ_SLAB_H */
