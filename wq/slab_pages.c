/* SPDX-License-Identifier: MIT */
/* Slabs: where objects are cut from, and how their pages come and go. */
#include "wq/slab_private.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* A slab holds at least so many objects, if that takes no more than 16 pages,
 * and one at least. */
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

/* An object has 8 bytes at least, so the head's 4 for each take at most half
 * of a chunk, and slots are left. */
void wq_slab_plan(struct wq_cache *cache)
{
	cache->pages = 1;
	while (cache->pages < MOST_PAGES &&
	       cache->pages * page_size() / cache->objsize < WANT_OBJECTS)
		cache->pages *= 2;
	cache->slab_bytes = cache->pages * page_size();
	cache->shift = (unsigned int)__builtin_ctzll(cache->slab_bytes);
	cache->objects = (unsigned int)(cache->slab_bytes / cache->objsize);
	cache->inverse = (UINT64_C(1) << 40) / cache->objsize + 1;
	cache->first =
		(unsigned int)((head_bytes(cache) + cache->slab_bytes - 1) >>
			       cache->shift);
}

static uint64_t all_closed(const struct wq_cache *cache)
{
	return UINT64_MAX << cache->first;
}

/* Of anything in it: of an object, or of a struct wq_slab. */
static struct wq_chunk *chunk_of(const struct wq_cache *cache, const void *in)
{
	uintptr_t mask = ~(uintptr_t)(chunk_bytes(cache) - 1);

	return (struct wq_chunk *)((uintptr_t)in & mask);
}

/* Where the object is: its slot, and its number there.  The product is exact:
 * an offset is below 2^20 (16 pages of 64 KiB), the inverse is too large by
 * less than 1, and 2^20 times objsize is below 2^40. */
static unsigned int place_of(const struct wq_cache *cache, const void *object,
			     unsigned int *slot)
{
	uint64_t at = (uintptr_t)object & (chunk_bytes(cache) - 1);

	*slot = (unsigned int)(at >> cache->shift);
	at &= cache->slab_bytes - 1;
	return (unsigned int)(at * cache->inverse >> 40);
}

_Atomic uint16_t *wq_slab_cpu(const struct wq_cache *cache, const void *object)
{
	unsigned int slot, n = place_of(cache, object, &slot);

	return &chunk_of(cache, object)->cpu[slot * cache->objects + n];
}

static char *memory_of(const struct wq_cache *cache, const struct wq_slab *slab)
{
	struct wq_chunk *chunk = chunk_of(cache, slab);

	return (char *)chunk + (size_t)(slab - chunk->slab) * cache->slab_bytes;
}

static uint16_t *links_of(const struct wq_cache *cache,
			  const struct wq_slab *slab)
{
	struct wq_chunk *chunk = chunk_of(cache, slab);

	return &chunk->link[(size_t)(slab - chunk->slab) * cache->objects];
}

/* Memory of the size, aligned to it. */
static void *map_aligned(size_t size)
{
	char *map = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (map == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)map & (size - 1);
	if (before)
		munmap(map, before);
	munmap(map + before + size, size - before);
	return map + before;
}

int wq_slab_chunk(struct wq_cache *cache)
{
	struct wq_chunk *chunk = map_aligned(chunk_bytes(cache));
	size_t objects = (size_t)WQ_SLOTS * cache->objects;

	if (!chunk)
		return -ENOMEM;
	chunk->closed = all_closed(cache);
	chunk->cpu = (_Atomic uint16_t *)(chunk + 1);
	chunk->link = (uint16_t *)(chunk->cpu + objects);
	pthread_mutex_lock(&cache->lock);
	chunk->next = cache->chunks;
	cache->chunks = chunk;
	cache->room = chunk;
	cache->chunk_count++;
	pthread_mutex_unlock(&cache->lock);
	return 0;
}

static void link_slab(struct wq_slab **list, struct wq_slab *slab)
{
	slab->next = *list;
	slab->link = list;
	if (slab->next)
		slab->next->link = &slab->next;
	*list = slab;
}

static void unlink_slab(struct wq_slab *slab)
{
	*slab->link = slab->next;
	if (slab->next)
		slab->next->link = slab->link;
}

static struct wq_chunk *find_room(struct wq_cache *cache)
{
	struct wq_chunk *chunk = cache->room;

	if (chunk && chunk->closed)
		return chunk;
	for (chunk = cache->chunks; chunk && !chunk->closed;)
		chunk = chunk->next;
	cache->room = chunk;
	return chunk;
}

static struct wq_slab *open_slab(struct wq_cache *cache)
{
	struct wq_chunk *chunk = find_room(cache);
	struct wq_slab *slab;
	uint16_t *link;

	if (!chunk)
		return NULL;
	slab = &chunk->slab[__builtin_ctzll(chunk->closed)];
	chunk->closed &= chunk->closed - 1;
	link = links_of(cache, slab);
	for (unsigned int i = 0; i < cache->objects; i++)
		link[i] = (uint16_t)(i + 1);
	slab->free = 0;
	slab->used = 0;
	link_slab(&cache->unused, slab);
	cache->slabs++;
	atomic_fetch_add_explicit(&cache->grows, 1, memory_order_relaxed);
	return slab;
}

/* Slabs that are in use already come first, so that others may get empty. */
void *wq_slab_take_locked(struct wq_cache *cache, bool open)
{
	struct wq_slab *slab = cache->partly ? cache->partly : cache->unused;
	unsigned int n;

	if (!slab && open)
		slab = open_slab(cache);
	if (!slab)
		return NULL;
	if (!slab->used) {
		unlink_slab(slab);
		link_slab(&cache->partly, slab);
	}
	n = slab->free;
	slab->free = links_of(cache, slab)[n];
	if (++slab->used == cache->objects)
		unlink_slab(slab);
	return memory_of(cache, slab) + n * cache->objsize;
}

void wq_slab_give_locked(struct wq_cache *cache, void *object)
{
	unsigned int slot, n = place_of(cache, object, &slot);
	struct wq_slab *slab = &chunk_of(cache, object)->slab[slot];

	if (slab->used == cache->objects)
		link_slab(&cache->partly, slab);
	links_of(cache, slab)[n] = slab->free;
	slab->free = (uint16_t)n;
	if (--slab->used)
		return;
	unlink_slab(slab);
	link_slab(&cache->unused, slab);
}

/* The pages of slabs in no list are given back.  Without the lock: nobody else
 * knows of them.  Return: those that the kernel left us, as it does with
 * locked memory. */
static struct wq_slab *drop_pages(const struct wq_cache *cache,
				  struct wq_slab **list)
{
	struct wq_slab *slab, *next, *kept = NULL, *dropped = NULL;

	for (slab = *list; slab; slab = next) {
		struct wq_slab **to = &dropped;

		next = slab->next;
		if (madvise(memory_of(cache, slab), cache->slab_bytes,
			    MADV_DONTNEED) < 0)
			to = &kept;
		slab->next = *to;
		*to = slab;
	}
	*list = dropped;
	return kept;
}

/* Return: the chunks without a slab, in no list any more. */
static struct wq_chunk *bare_chunks(struct wq_cache *cache)
{
	struct wq_chunk *chunk, **link = &cache->chunks, *bare = NULL;

	while ((chunk = *link) != NULL) {
		if (chunk->closed != all_closed(cache)) {
			link = &chunk->next;
			continue;
		}
		*link = chunk->next;
		chunk->next = bare;
		bare = chunk;
		cache->chunk_count--;
	}
	cache->room = cache->chunks;
	return bare;
}

static void unmap(const struct wq_cache *cache, struct wq_chunk *chunk)
{
	struct wq_chunk *next;

	for (; chunk; chunk = next) {
		next = chunk->next;
		munmap(chunk, chunk_bytes(cache));
	}
}

size_t wq_slab_trim(struct wq_cache *cache)
{
	struct wq_slab *slab, *next, *dropped, *kept;
	struct wq_chunk *bare;
	size_t bytes = 0;

	pthread_mutex_lock(&cache->lock);
	dropped = cache->unused;
	cache->unused = NULL;
	pthread_mutex_unlock(&cache->lock);

	kept = drop_pages(cache, &dropped);

	pthread_mutex_lock(&cache->lock);
	for (slab = kept; slab; slab = next) {
		next = slab->next;
		link_slab(&cache->unused, slab);
	}
	for (slab = dropped; slab; slab = next) {
		struct wq_chunk *chunk = chunk_of(cache, slab);

		next = slab->next;
		chunk->closed |= UINT64_C(1) << (slab - chunk->slab);
		cache->slabs--;
		bytes += cache->slab_bytes;
	}
	bare = bare_chunks(cache);
	pthread_mutex_unlock(&cache->lock);
	unmap(cache, bare);
	return bytes;
}

uint64_t wq_slab_overhead_locked(const struct wq_cache *cache)
{
	size_t page = page_size();

	return cache->chunk_count *
	       ((head_bytes(cache) + page - 1) / page * page);
}

void wq_slab_unmap(struct wq_cache *cache)
{
	unmap(cache, cache->chunks);
	cache->chunks = NULL;
}
