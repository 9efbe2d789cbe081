/* SPDX-License-Identifier: MIT */
#include "wq/slab_private.h"

#include <sys/mman.h>
#include <unistd.h>

/* A slab holds at least so many objects, if that takes no more than 16 pages. */
#define WANT_OBJECTS 8
#define MOST_PAGES   16

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t chunk_bytes(const struct wq_cache *cache)
{
	return cache->slab_bytes * WQ_SLOTS;
}

/* Of the bookkeeping at the start of a chunk. */
static size_t head_bytes(const struct wq_cache *cache)
{
	return sizeof(struct wq_chunk) +
	       (size_t)WQ_SLOTS * cache->objects * 2 * sizeof(uint16_t);
}

bool wq_slab_plan(struct wq_cache *cache)
{
	cache->pages = 1;
	while (cache->pages < MOST_PAGES &&
	       cache->pages * page_size() / cache->objsize < WANT_OBJECTS)
		cache->pages *= 2;
	while (cache->pages * page_size() < cache->objsize)
		cache->pages *= 2;
	cache->slab_bytes = cache->pages * page_size();
	cache->objects = (unsigned int)(cache->slab_bytes / cache->objsize);
	cache->first =
		(unsigned int)((head_bytes(cache) + cache->slab_bytes - 1) /
			       cache->slab_bytes);
	return cache->first < WQ_SLOTS;
}

static struct wq_chunk *chunk_of(const struct wq_cache *cache,
				 const void *object)
{
	uintptr_t mask = ~(uintptr_t)(chunk_bytes(cache) - 1);

	return (struct wq_chunk *)((uintptr_t)object & mask);
}

/* Where the object is: its slot, and its number there. */
static size_t place_of(const struct wq_cache *cache, const void *object,
		       size_t *slot)
{
	size_t at = (uintptr_t)object & (chunk_bytes(cache) - 1);

	*slot = at / cache->slab_bytes;
	return at % cache->slab_bytes / cache->objsize;
}

_Atomic int16_t *wq_slab_cpu(const struct wq_cache *cache, const void *object)
{
	struct wq_chunk *chunk = chunk_of(cache, object);
	size_t slot, n = place_of(cache, object, &slot);

	return &chunk->cpu[slot * cache->objects + n];
}

/* Memory of the size, aligned to it. */
static void *map_aligned(size_t size)
{
	char *map = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (map == MAP_FAILED)
		return NULL;
	before = (size - ((uintptr_t)map & (size - 1))) & (size - 1);
	if (before)
		munmap(map, before);
	munmap(map + before + size, size - before);
	return map + before;
}

static struct wq_chunk *new_chunk(struct wq_cache *cache)
{
	struct wq_chunk *chunk = map_aligned(chunk_bytes(cache));

	if (!chunk)
		return NULL;
	chunk->cpu = (_Atomic int16_t *)(chunk + 1);
	chunk->link =
		(uint16_t *)(chunk->cpu + (size_t)WQ_SLOTS * cache->objects);
	for (unsigned int i = 0; i < WQ_SLOTS; i++) {
		chunk->slab[i].chunk = chunk;
		chunk->slab[i].slot = (uint16_t)i;
	}
	chunk->next = cache->chunks;
	cache->chunks = chunk;
	return chunk;
}

static void link_slab(struct wq_cache *cache, struct wq_slab *slab)
{
	slab->next = cache->partial;
	slab->link = &cache->partial;
	if (slab->next)
		slab->next->link = &slab->next;
	cache->partial = slab;
}

static void unlink_slab(struct wq_slab *slab)
{
	*slab->link = slab->next;
	if (slab->next)
		slab->next->link = slab->link;
}

static uint16_t *links_of(const struct wq_cache *cache,
			  const struct wq_slab *slab)
{
	return &slab->chunk->link[(size_t)slab->slot * cache->objects];
}

static void open_slab(struct wq_cache *cache, struct wq_slab *slab)
{
	uint16_t *link = links_of(cache, slab);

	for (unsigned int i = 0; i < cache->objects; i++)
		link[i] = (uint16_t)(i + 1);
	slab->free = 0;
	slab->used = 0;
	slab->live = true;
	slab->chunk->live++;
	cache->slabs++;
	atomic_fetch_add(&cache->grows, 1);
	link_slab(cache, slab);
}

static struct wq_slab *grow(struct wq_cache *cache)
{
	struct wq_chunk *chunk = cache->chunks;

	while (chunk && chunk->live == WQ_SLOTS - cache->first)
		chunk = chunk->next;
	if (!chunk)
		chunk = new_chunk(cache);
	for (unsigned int i = cache->first; chunk && i < WQ_SLOTS; i++)
		if (!chunk->slab[i].live) {
			open_slab(cache, &chunk->slab[i]);
			return &chunk->slab[i];
		}
	return NULL;
}

void *wq_slab_take(struct wq_cache *cache)
{
	struct wq_slab *slab = cache->partial ? cache->partial : grow(cache);
	unsigned int n;

	if (!slab)
		return NULL;
	n = slab->free;
	slab->free = links_of(cache, slab)[n];
	if (++slab->used == cache->objects)
		unlink_slab(slab);
	return (char *)slab->chunk + slab->slot * cache->slab_bytes +
	       n * cache->objsize;
}

void wq_slab_give(struct wq_cache *cache, void *object)
{
	size_t slot, n = place_of(cache, object, &slot);
	struct wq_slab *slab = &chunk_of(cache, object)->slab[slot];

	if (slab->used == cache->objects)
		link_slab(cache, slab);
	links_of(cache, slab)[n] = slab->free;
	slab->free = (uint16_t)n;
	slab->used--;
}

/* Give the pages of an empty slab back; its address stays ours. */
static void close_slab(struct wq_cache *cache, struct wq_slab *slab)
{
	unlink_slab(slab);
	slab->live = false;
	slab->chunk->live--;
	cache->slabs--;
	madvise((char *)slab->chunk + slab->slot * cache->slab_bytes,
		cache->slab_bytes, MADV_DONTNEED);
}

size_t wq_slab_trim(struct wq_cache *cache)
{
	struct wq_slab *slab, *next;
	struct wq_chunk **link = &cache->chunks;
	size_t bytes = 0;

	for (slab = cache->partial; slab; slab = next) {
		next = slab->next;
		if (slab->used)
			continue;
		close_slab(cache, slab);
		bytes += cache->slab_bytes;
	}
	while (*link) {
		struct wq_chunk *chunk = *link;

		if (chunk->live) {
			link = &chunk->next;
			continue;
		}
		*link = chunk->next;
		munmap(chunk, chunk_bytes(cache));
	}
	return bytes;
}

void wq_slab_unmap(struct wq_cache *cache)
{
	struct wq_chunk *chunk, *next;

	for (chunk = cache->chunks; chunk; chunk = next) {
		next = chunk->next;
		munmap(chunk, chunk_bytes(cache));
	}
	cache->chunks = NULL;
}
