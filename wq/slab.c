/* SPDX-License-Identifier: MIT */
/* Taking and putting objects: the magazines of each CPU. */
#include "wq/sched.h"
#include "wq/slab_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SIZE    ((size_t)64 << 10)
#define MIN_OBJSIZE 8

/* The caller's fault: rule out going on with two owners of one object. */
#define bug(cache, what, ...)                                                  \
	do {                                                                   \
		fprintf(stderr, "%s:%d: cache %s: " what "\n", __FILE__,       \
			__LINE__, (cache)->config.name, ##__VA_ARGS__);        \
		abort();                                                       \
	} while (0)

static bool good(const struct wq_cache_config *c)
{
	return c->name && *c->name && !strpbrk(c->name, " \t\n") &&
	       c->size >= 1 && c->size <= MAX_SIZE && c->align <= 4096 &&
	       !(c->align & (c->align - 1)) && c->magazine <= 4096;
}

static void destroy(struct wq_cache *cache)
{
	wq_depot_fini(cache);
	wq_slab_unmap(cache);
	pthread_mutex_destroy(&cache->lock);
	free(cache->cpu);
	free(cache);
}

/* Zeroed cache lines; @size is a multiple of them. */
static void *new_lines(size_t size)
{
	void *lines = aligned_alloc(64, size);

	return lines ? memset(lines, 0, size) : NULL;
}

int wq_cache_new(const struct wq_cache_config *config, struct wq_cache **out)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct wq_cache *cache;
	size_t size, align;

	if (!good(config))
		return -EINVAL;
	cache = new_lines(sizeof(*cache));
	if (!cache)
		return -ENOMEM;
	pthread_mutex_init(&cache->lock, NULL);
	size = config->size < MIN_OBJSIZE ? MIN_OBJSIZE : config->size;
	align = config->align ? config->align : 64;
	cache->config = *config;
	cache->config.align = align;
	cache->objsize = (size + align - 1) & ~(align - 1);
	cache->magazine = config->magazine ? config->magazine : 32;
	cache->cpus = cpus < 1 ? 1 : (int)cpus;
	cache->cpu = new_lines((size_t)cache->cpus * sizeof(*cache->cpu));
	if (!cache->cpu || wq_depot_init(cache)) {
		destroy(cache);
		return -ENOMEM;
	}
	wq_slab_plan(cache);
	*out = cache;
	return 0;
}

struct sums {
	uint64_t gets, puts, remote;
};

/* Puts first, each with acquire: pairs with count() and put_slow().  The get
 * before a put is then seen below, and no difference is negative. */
static void sum(struct wq_cache *cache, struct sums *out)
{
	const struct wq_magazine *mag;

	memset(out, 0, sizeof(*out));
	for (int i = 0; i < cache->cpus; i++)
		out->puts += atomic_load(&cache->cpu[i].puts);
	for (uint32_t i = 0; wq_depot_at(cache, i, &mag); i++) {
		if (!mag)
			continue;
		out->puts += atomic_load(&mag->puts);
		out->remote += atomic_load(&mag->remote);
	}
	for (int i = 0; i < cache->cpus; i++)
		out->gets += atomic_load(&cache->cpu[i].gets);
	for (uint32_t i = 0; wq_depot_at(cache, i, &mag); i++)
		out->gets += mag ? atomic_load(&mag->gets) : 0;
}

void wq_cache_free(struct wq_cache *cache)
{
	struct sums all;

	if (!cache)
		return;
	sum(cache, &all);
	if (all.gets != all.puts)
		bug(cache, "freed with %llu objects in use",
		    (unsigned long long)(all.gets - all.puts));
	destroy(cache);
}

/* The calling thread's CPU, as far as we have one for it. */
static int here(const struct wq_cache *cache)
{
	int cpu = wq_cpu_now();

	if (cpu < 0)
		return 0;
	return cpu < cache->cpus ? cpu : cpu % cache->cpus;
}

/* A CPU's magazine, which is ours from now on; or NULL. */
static struct wq_magazine *grab(struct wq_magazine *_Atomic *place)
{
	/* Acquire: what the thread before us left in it; see leave(). */
	return atomic_exchange_explicit(place, NULL, memory_order_acquire);
}

static void stow(struct wq_cache *cache, struct wq_magazine *mag)
{
	wq_depot_push(mag->count ? &cache->full : &cache->empty, mag);
}

/* The opposite of grab(); or to the depot, when another thread of the CPU has
 * left one here since. */
static void leave(struct wq_cache *cache, struct wq_magazine *_Atomic *place,
		  struct wq_magazine *mag)
{
	struct wq_magazine *none = NULL;

	/* Release: pairs with grab(). */
	if (!atomic_compare_exchange_strong_explicit(place, &none, mag,
						     memory_order_release,
						     memory_order_relaxed))
		stow(cache, mag);
}

/* Of a magazine that is ours, so no read-modify-write.  Release: pairs with
 * sum(). */
static void count(_Atomic uint64_t *counter)
{
	uint64_t old = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, old + 1, memory_order_release);
}

static void add(_Atomic uint64_t *counter)
{
	/* Relaxed: a statistic. */
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* Up to half a magazine of objects from the slabs: so many as need no more
 * than one new slab.  Return: whether there is one. */
static bool fill(struct wq_cache *cache, struct wq_magazine *mag)
{
	unsigned int want = (cache->magazine + 1) / 2;
	void *object;

	do {
		pthread_mutex_lock(&cache->lock);
		while (mag->count < want) {
			object = wq_slab_take_locked(cache, !mag->count);
			if (!object)
				break;
			mag->object[mag->count++] = object;
		}
		pthread_mutex_unlock(&cache->lock);
		/* Again, as another thread may use up the chunk or trim it. */
	} while (!mag->count && wq_slab_chunk(cache) == 0);
	return mag->count;
}

/* A magazine with an object in it, for @mag, which is empty or NULL; or
 * NULL. */
static struct wq_magazine *with_object(struct wq_cache *cache,
				       struct wq_cache_cpu *cpu,
				       struct wq_magazine *mag)
{
	struct wq_magazine *other = grab(&cpu->previous), *full;

	if (!other || !other->count) {
		if (mag && other)
			stow(cache, other);
		else if (other)
			mag = other;
		full = wq_depot_pop(cache, &cache->full);
		if (full)
			add(&cache->depot_gets);
		other = full;
	}
	if (other) {
		if (mag)
			leave(cache, &cpu->previous, mag);
		return other;
	}
	if (!mag)
		mag = wq_depot_pop(cache, &cache->empty);
	if (!mag)
		mag = wq_depot_new(cache);
	if (!mag || fill(cache, mag))
		return mag;
	stow(cache, mag);
	return NULL;
}

static void *plain_alloc(struct wq_cache *cache)
{
	size_t align = cache->config.align < 16 ? 16 : cache->config.align;
	void *object = aligned_alloc(align, (cache->objsize + align - 1) &
						    ~(align - 1));

	if (object)
		add(&cache->cpu[here(cache)].gets);
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
	now = here(cache);
	cpu = &cache->cpu[now];
	mag = grab(&cpu->loaded);
	if (!mag)
		add(&cache->misses);
	if (!mag || !mag->count)
		mag = with_object(cache, cpu, mag);
	if (!mag)
		return NULL;
	object = mag->object[--mag->count];
	count(&mag->gets);
	/* Relaxed: read by whoever is handed the object. */
	atomic_store_explicit(wq_slab_cpu(cache, object), (uint16_t)(now + 1),
			      memory_order_relaxed);
	leave(cache, &cpu->loaded, mag);
	return object;
}

/* A magazine with room, for @mag, which has none or is NULL; or NULL. */
static struct wq_magazine *with_room(struct wq_cache *cache,
				     struct wq_cache_cpu *cpu,
				     struct wq_magazine *mag)
{
	struct wq_magazine *other = grab(&cpu->previous);

	if (other && other->count == cache->magazine) {
		stow(cache, other);
		other = NULL;
	}
	if (mag)
		leave(cache, &cpu->previous, mag);
	if (!other)
		other = wq_depot_pop(cache, &cache->empty);
	return other ? other : wq_depot_new(cache);
}

/* There is no memory for one more magazine: straight to the slab. */
static void put_slow(struct wq_cache *cache, struct wq_cache_cpu *cpu,
		     void *object)
{
	pthread_mutex_lock(&cache->lock);
	wq_slab_give_locked(cache, object);
	pthread_mutex_unlock(&cache->lock);
	/* Release: pairs with sum(). */
	atomic_fetch_add_explicit(&cpu->puts, 1, memory_order_release);
}

static void plain_put(struct wq_cache *cache, void *object)
{
	free(object);
	/* Release: pairs with sum(). */
	atomic_fetch_add_explicit(&cache->cpu[here(cache)].puts, 1,
				  memory_order_release);
}

/* Return: the CPU on which the object was taken, now that it is not in use. */
static int taken_on(struct wq_cache *cache, void *object)
{
	_Atomic uint16_t *cpu = wq_slab_cpu(cache, object);
	uint16_t was = atomic_load_explicit(cpu, memory_order_relaxed);

	if (!was)
		bug(cache, "%p was put twice, or is no object", object);
	atomic_store_explicit(cpu, 0, memory_order_relaxed);
	return was - 1;
}

void wq_cache_put(struct wq_cache *cache, void *object)
{
	struct wq_cache_cpu *cpu;
	struct wq_magazine *mag;
	int now, then;

	if (!object)
		return;
	if (cache->config.use_malloc) {
		plain_put(cache, object);
		return;
	}
	then = taken_on(cache, object);
	now = here(cache);
	cpu = &cache->cpu[now];
	mag = grab(&cpu->loaded);
	if (!mag)
		add(&cache->misses);
	if (!mag || mag->count == cache->magazine)
		mag = with_room(cache, cpu, mag);
	if (!mag) {
		put_slow(cache, cpu, object);
		return;
	}
	if (then != now)
		count(&mag->remote);
	mag->object[mag->count++] = object;
	count(&mag->puts);
	leave(cache, &cpu->loaded, mag);
}

/* All objects of a magazine that is ours go back to their slabs. */
static void drain(struct wq_cache *cache, struct wq_magazine *mag)
{
	if (!mag)
		return;
	pthread_mutex_lock(&cache->lock);
	while (mag->count)
		wq_slab_give_locked(cache, mag->object[--mag->count]);
	pthread_mutex_unlock(&cache->lock);
	stow(cache, mag);
}

size_t wq_cache_shrink(struct wq_cache *cache)
{
	struct wq_magazine *mag;
	size_t bytes;

	for (int i = 0; i < cache->cpus; i++) {
		drain(cache, grab(&cache->cpu[i].loaded));
		drain(cache, grab(&cache->cpu[i].previous));
	}
	while ((mag = wq_depot_pop(cache, &cache->full)) != NULL)
		drain(cache, mag);
	bytes = wq_slab_trim(cache);
	if (bytes)
		add(&cache->shrinks);
	return bytes;
}

/* Of memory that holds no object: chunk heads, magazines, what CPUs have. */
static uint64_t overhead_locked(const struct wq_cache *cache)
{
	size_t mag =
		sizeof(struct wq_magazine) + cache->magazine * sizeof(void *);

	return wq_slab_overhead_locked(cache) + cache->magazines * mag +
	       (size_t)cache->cpus * sizeof(*cache->cpu);
}

void wq_cache_stats(struct wq_cache *cache, struct wq_cache_stats *out)
{
	struct sums all;

	memset(out, 0, sizeof(*out));
	sum(cache, &all);
	out->name = cache->config.name;
	out->use_malloc = cache->config.use_malloc;
	out->active_objs = all.gets - all.puts;
	out->objsize = cache->objsize;
	if (out->use_malloc) {
		out->num_objs = out->active_objs;
		return;
	}
	out->objperslab = cache->objects;
	out->pagesperslab = cache->pages;
	pthread_mutex_lock(&cache->lock);
	out->num_slabs = cache->slabs;
	out->overhead = overhead_locked(cache);
	pthread_mutex_unlock(&cache->lock);
	out->num_objs = out->num_slabs * cache->objects;
	out->pages = out->num_slabs * cache->pages;
	out->bytes = out->num_slabs * cache->slab_bytes;
	if (out->bytes)
		out->utilisation = 100.0 * (double)out->active_objs *
				   (double)cache->config.size /
				   (double)out->bytes;
	out->remote_frees = all.remote;
	out->depot_gets = atomic_load(&cache->depot_gets);
	out->grows = atomic_load(&cache->grows);
	out->shrinks = atomic_load(&cache->shrinks);
	out->misses = atomic_load(&cache->misses);
}
