/* SPDX-License-Identifier: MIT */
#include "wq/sched.h"
#include "wq/slab_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SIZE ((size_t)64 << 10)

static bool good(const struct wq_cache_config *c)
{
	size_t align = c->align ? c->align : 64;

	return c->name && *c->name && !strpbrk(c->name, " \t\n") &&
	       c->size >= 1 && c->size <= MAX_SIZE && align >= 1 &&
	       align <= 4096 && !(align & (align - 1)) && c->magazine <= 4096;
}

static void destroy(struct wq_cache *cache)
{
	for (uint32_t i = 0; cache->table && i < cache->magazines; i++)
		free(atomic_load(&cache->table[i]));
	wq_slab_unmap(cache);
	pthread_mutex_destroy(&cache->lock);
	free(cache->table);
	free(cache->cpu);
	free(cache);
}

int wq_cache_new(const struct wq_cache_config *config, struct wq_cache **out)
{
	size_t align = config->align ? config->align : 64;
	struct wq_cache *cache;

	if (!good(config))
		return -EINVAL;
	cache = aligned_alloc(64, (sizeof(*cache) + 63) & ~(size_t)63);
	if (!cache)
		return -ENOMEM;
	memset(cache, 0, sizeof(*cache));
	pthread_mutex_init(&cache->lock, NULL);
	cache->config = *config;
	cache->config.align = align;
	cache->objsize = (config->size + align - 1) & ~(align - 1);
	cache->magazine = config->magazine ? config->magazine : 32;
	cache->cpus = (size_t)sysconf(_SC_NPROCESSORS_CONF);
	cache->cpu = aligned_alloc(64, cache->cpus * sizeof(*cache->cpu));
	cache->table = calloc(WQ_MAGAZINES, sizeof(*cache->table));
	if (!cache->cpu || !cache->table || !wq_slab_plan(cache)) {
		destroy(cache);
		return -ENOMEM;
	}
	memset(cache->cpu, 0, cache->cpus * sizeof(*cache->cpu));
	*out = cache;
	return 0;
}

/* What each magazine counted, and what went past them. */
static void sum(struct wq_cache *cache, uint64_t *gets, uint64_t *puts,
		uint64_t *remote)
{
	uint32_t n = atomic_load(&cache->magazines);

	/* Puts first: what is put was got before. */
	*puts = atomic_load(&cache->puts);
	*remote = atomic_load(&cache->remote);
	for (uint32_t i = 0; i < n && i < WQ_MAGAZINES; i++) {
		struct wq_magazine *mag = atomic_load(&cache->table[i]);

		if (!mag)
			continue;
		*puts += atomic_load(&mag->puts);
		*remote += atomic_load(&mag->remote);
	}
	*gets = atomic_load(&cache->gets);
	for (uint32_t i = 0; i < n && i < WQ_MAGAZINES; i++) {
		struct wq_magazine *mag = atomic_load(&cache->table[i]);

		if (mag)
			*gets += atomic_load(&mag->gets);
	}
}

void wq_cache_free(struct wq_cache *cache)
{
	uint64_t gets, puts, remote;

	if (!cache)
		return;
	sum(cache, &gets, &puts, &remote);
	if (gets != puts) {
		fprintf(stderr, "wq_cache_free: %llu objects of %s are out\n",
			(unsigned long long)(gets - puts), cache->config.name);
		abort();
	}
	destroy(cache);
}

static struct wq_cache_cpu *here(struct wq_cache *cache, int *cpu)
{
	*cpu = wq_cpu_now();
	return &cache->cpu[(size_t)(*cpu < 0 ? 0 : *cpu) % cache->cpus];
}

/* The CPU's magazine, which is ours until it is put back; or NULL. */
static struct wq_magazine *grab(struct wq_cache *cache,
				struct wq_cache_cpu *cpu)
{
	/* Acquire: what the thread before us left in it. */
	struct wq_magazine *mag = atomic_exchange_explicit(
		&cpu->loaded, NULL, memory_order_acquire);

	if (!mag)
		atomic_fetch_add_explicit(&cache->misses, 1,
					  memory_order_relaxed);
	return mag;
}

static void stow(struct wq_cache *cache, struct wq_magazine *mag)
{
	wq_depot_push(cache, mag->count ? &cache->full : &cache->empty, mag);
}

static void put_back(struct wq_cache *cache, struct wq_cache_cpu *cpu,
		     struct wq_magazine *mag)
{
	struct wq_magazine *none = NULL;

	/* Release: pairs with grab().  Another thread may have been here. */
	if (!atomic_compare_exchange_strong_explicit(&cpu->loaded, &none, mag,
						     memory_order_release,
						     memory_order_relaxed))
		stow(cache, mag);
}

static void count(_Atomic uint64_t *counter)
{
	/* The magazine is ours; others only read. */
	atomic_store_explicit(
		counter,
		atomic_load_explicit(counter, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

/* Half a magazine of objects from the slabs. */
static void fill(struct wq_cache *cache, struct wq_magazine *mag)
{
	unsigned int want = (cache->magazine + 1) / 2;

	pthread_mutex_lock(&cache->lock);
	while (mag->count < want) {
		void *object = wq_slab_take(cache);

		if (!object)
			break;
		mag->object[mag->count++] = object;
	}
	pthread_mutex_unlock(&cache->lock);
}

/* A magazine with an object in it, in exchange for @mag, which has none or is
 * none; or NULL. */
static struct wq_magazine *loaded(struct wq_cache *cache,
				  struct wq_magazine *mag)
{
	struct wq_magazine *full = wq_depot_pop(cache, &cache->full);

	if (full) {
		atomic_fetch_add_explicit(&cache->depot_gets, 1,
					  memory_order_relaxed);
		if (mag)
			stow(cache, mag);
		return full;
	}
	if (!mag)
		mag = wq_depot_pop(cache, &cache->empty);
	if (!mag)
		mag = wq_depot_new(cache);
	if (!mag)
		return NULL;
	fill(cache, mag);
	if (mag->count)
		return mag;
	stow(cache, mag);
	return NULL;
}

static void *plain_alloc(struct wq_cache *cache)
{
	void *object = aligned_alloc(
		cache->config.align < 16 ? 16 : cache->config.align,
		(cache->objsize + 15) & ~(size_t)15);

	if (object)
		atomic_fetch_add_explicit(&cache->gets, 1,
					  memory_order_relaxed);
	return object;
}

void *wq_cache_alloc(struct wq_cache *cache)
{
	struct wq_cache_cpu *cpu;
	struct wq_magazine *mag;
	void *object;
	int now;

	if (cache->config.use_malloc)
		return plain_alloc(cache);
	cpu = here(cache, &now);
	mag = grab(cache, cpu);
	if (!mag || !mag->count)
		mag = loaded(cache, mag);
	if (!mag)
		return NULL;
	object = mag->object[--mag->count];
	count(&mag->gets);
	atomic_store_explicit(wq_slab_cpu(cache, object), (int16_t)now,
			      memory_order_relaxed);
	put_back(cache, cpu, mag);
	return object;
}

/* A magazine with room, in exchange for @mag, which has none or is none. */
static struct wq_magazine *roomy(struct wq_cache *cache,
				 struct wq_magazine *mag)
{
	if (mag)
		stow(cache, mag);
	mag = wq_depot_pop(cache, &cache->empty);
	return mag ? mag : wq_depot_new(cache);
}

/* Memory for one more magazine is out: straight to the slab. */
static void put_slow(struct wq_cache *cache, void *object)
{
	pthread_mutex_lock(&cache->lock);
	wq_slab_give(cache, object);
	pthread_mutex_unlock(&cache->lock);
	atomic_fetch_add_explicit(&cache->puts, 1, memory_order_relaxed);
}

void wq_cache_put(struct wq_cache *cache, void *object)
{
	struct wq_cache_cpu *cpu;
	struct wq_magazine *mag;
	int now;

	if (!object)
		return;
	if (cache->config.use_malloc) {
		free(object);
		atomic_fetch_add_explicit(&cache->puts, 1,
					  memory_order_relaxed);
		return;
	}
	cpu = here(cache, &now);
	mag = grab(cache, cpu);
	if (!mag || mag->count == cache->magazine)
		mag = roomy(cache, mag);
	if (!mag) {
		put_slow(cache, object);
		return;
	}
	if (atomic_load_explicit(wq_slab_cpu(cache, object),
				 memory_order_relaxed) != now)
		count(&mag->remote);
	mag->object[mag->count++] = object;
	count(&mag->puts);
	put_back(cache, cpu, mag);
}

/* Empty a magazine that is ours.  Under the lock. */
static void drain(struct wq_cache *cache, struct wq_magazine *mag)
{
	while (mag->count)
		wq_slab_give(cache, mag->object[--mag->count]);
}

size_t wq_cache_shrink(struct wq_cache *cache)
{
	struct wq_magazine *mag;
	size_t bytes;

	pthread_mutex_lock(&cache->lock);
	for (size_t i = 0; i < cache->cpus; i++) {
		mag = atomic_exchange(&cache->cpu[i].loaded, NULL);
		if (!mag)
			continue;
		drain(cache, mag);
		stow(cache, mag);
	}
	while ((mag = wq_depot_pop(cache, &cache->full)) != NULL) {
		drain(cache, mag);
		stow(cache, mag);
	}
	bytes = wq_slab_trim(cache);
	pthread_mutex_unlock(&cache->lock);
	if (bytes)
		atomic_fetch_add(&cache->shrinks, 1);
	return bytes;
}

void wq_cache_stats(struct wq_cache *cache, struct wq_cache_stats *out)
{
	uint64_t gets, puts, remote;

	memset(out, 0, sizeof(*out));
	sum(cache, &gets, &puts, &remote);
	out->name = cache->config.name;
	out->use_malloc = cache->config.use_malloc;
	out->active_objs = gets - puts;
	out->objsize = cache->objsize;
	out->remote_frees = remote;
	out->depot_gets = atomic_load(&cache->depot_gets);
	out->grows = atomic_load(&cache->grows);
	out->shrinks = atomic_load(&cache->shrinks);
	out->misses = atomic_load(&cache->misses);
	if (out->use_malloc) {
		out->num_objs = out->active_objs;
		return;
	}
	out->objperslab = cache->objects;
	out->pagesperslab = cache->pages;
	pthread_mutex_lock(&cache->lock);
	out->num_slabs = cache->slabs;
	pthread_mutex_unlock(&cache->lock);
	out->num_objs = out->num_slabs * cache->objects;
	out->pages = out->num_slabs * cache->pages;
	out->bytes = out->num_slabs * cache->slab_bytes;
	if (out->bytes)
		out->utilisation = 100.0 * (double)out->active_objs *
				   (double)cache->config.size /
				   (double)out->bytes;
}

int wq_cache_slabinfo(const struct wq_cache_stats *s, bool header, char *buf,
		      size_t size)
{
	if (header)
		return snprintf(buf, size,
				"%-20s %12s %10s %9s %12s %14s %9s %9s %12s "
				"%5s %8s",
				"name", "active_objs", "num_objs", "objsize",
				"objperslab", "pagesperslab", "num_slabs",
				"pages", "bytes", "util", "remote");
	return snprintf(
		buf, size,
		"%-20s %12llu %10llu %9zu %12u %14u %9llu %9llu %12llu "
		"%4.0f%% %8llu",
		s->name, (unsigned long long)s->active_objs,
		(unsigned long long)s->num_objs, s->objsize, s->objperslab,
		s->pagesperslab, (unsigned long long)s->num_slabs,
		(unsigned long long)s->pages, (unsigned long long)s->bytes,
		s->utilisation, (unsigned long long)s->remote_frees);
}
