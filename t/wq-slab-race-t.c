/* SPDX-License-Identifier: MIT */
/*
 * Many threads and one cache: no object is handed out twice, none is lost, what
 * is counted adds up while they work, and with objects in the magazines no
 * thread needs the lock.
 *
 * Each object in use is filled with a pattern that its first word begins.  Two
 * owners of one object would spoil each other's; under SAN=tsan they are a data
 * race besides.
 */
#include "wq/slab.h"
#include "wq/slab_private.h"

#include "t/tap.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LEN(array) (sizeof(array) / sizeof((array)[0]))

#define THREADS 6
#define HELD    40 /* objects that a thread has at most */
#define SHARED  16 /* places over which objects change threads */
#define ROUNDS  150000
#define WORDS   12
#define PUT     UINT64_C(0xdeaddeaddeaddead)

struct load {
	struct wq_cache *cache;
	bool shrinks; /* one thread shrinks all the time */
	_Atomic(uint64_t *) place[SHARED];
	_Atomic unsigned int spoiled, missing, odd;
	_Atomic bool done;
};

struct worker {
	struct load *load;
	pthread_t thread;
	uint64_t number;
	uint64_t *held[HELD];
	unsigned int count;
};

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void fill(uint64_t *object, uint64_t tag)
{
	for (uint64_t i = 0; i < WORDS; i++)
		object[i] = tag + i * UINT64_C(0x9e3779b97f4a7c15);
}

static bool whole(const uint64_t *object)
{
	for (uint64_t i = 1; i < WORDS; i++)
		if (object[i] != object[0] + i * UINT64_C(0x9e3779b97f4a7c15))
			return false;
	return object[0] != PUT;
}

static void put(struct load *load, uint64_t *object)
{
	if (!whole(object))
		load->spoiled++;
	for (size_t i = 0; i < WORDS; i++)
		object[i] = PUT;
	wq_cache_put(load->cache, object);
}

static void take(struct worker *w, uint64_t tag)
{
	uint64_t *object = wq_cache_alloc(w->load->cache);

	if (!object) {
		w->load->missing++;
		return;
	}
	fill(object, tag);
	w->held[w->count++] = object;
}

/* Of its own objects the thread gives one away, for what lay there. */
static void swap(struct worker *w, uint64_t random)
{
	unsigned int mine = (unsigned int)(random >> 8) % w->count;
	/* Acquire and release: as a queue would hand objects on. */
	uint64_t *object =
		atomic_exchange_explicit(&w->load->place[random % SHARED],
					 w->held[mine], memory_order_acq_rel);

	if (object)
		put(w->load, object);
	w->held[mine] = w->held[--w->count];
}

static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t random = w->number + 1;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t what = next(&random) % 8;

		if (!w->count || (what < 4 && w->count < HELD))
			take(w, w->number << 32 | i);
		else if (what < 5)
			swap(w, next(&random));
		else
			put(w->load, w->held[--w->count]);
		/* Bursts: full and empty magazines go over the depot. */
		if (i % 1000 == 999)
			while (w->count)
				put(w->load, w->held[--w->count]);
	}
	while (w->count)
		put(w->load, w->held[--w->count]);
	return NULL;
}

/* Beside the workers: shrinks if it is to, and looks at the figures. */
static void *watch(void *arg)
{
	struct timespec wait = { .tv_nsec = 50000 };
	struct load *load = arg;
	struct wq_cache_stats s;

	while (!load->done) {
		if (load->shrinks)
			wq_cache_shrink(load->cache);
		wq_cache_stats(load->cache, &s);
		/* Gets are counted a little later than puts: what came to be
		 * between is not bounded, but it is not negative either. */
		if (s.active_objs > UINT32_MAX || s.bytes > 64 << 20 ||
		    s.num_objs != (s.use_malloc ? s.active_objs
						: s.num_slabs * s.objperslab))
			load->odd++;
		nanosleep(&wait, NULL);
	}
	return NULL;
}

static void run(struct load *load)
{
	struct worker w[THREADS];
	pthread_t watcher;

	memset(w, 0, sizeof(w));
	if (pthread_create(&watcher, NULL, watch, load))
		bail("no thread");
	for (size_t i = 0; i < THREADS; i++) {
		w[i].load = load;
		w[i].number = i;
		if (pthread_create(&w[i].thread, NULL, work, &w[i]))
			bail("no thread");
	}
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(w[i].thread, NULL);
	load->done = true;
	pthread_join(watcher, NULL);
}

static void hammer(const struct wq_cache_config *config, bool shrinks)
{
	struct load load = { .shrinks = shrinks };
	const char *name = config->name;
	struct wq_cache_stats s;

	if (wq_cache_new(config, &load.cache))
		bail("no cache");
	run(&load);
	is_uint(load.spoiled, 0, "%s: no object is in two hands", name);
	is_uint(load.missing, 0, "%s: there is always an object", name);
	is_uint(load.odd, 0, "%s: the figures add up meanwhile", name);
	for (size_t i = 0; i < SHARED; i++)
		if (load.place[i])
			put(&load, load.place[i]);
	wq_cache_stats(load.cache, &s);
	is_uint(s.active_objs, 0, "%s: in the end none is in use", name);
	wq_cache_shrink(load.cache);
	wq_cache_stats(load.cache, &s);
	is_uint(s.num_slabs, 0, "%s: and each is back in its slab", name);
	wq_cache_free(load.cache);
}

#define BYTES (WORDS * sizeof(uint64_t))

static void test_hammer(void)
{
	struct wq_cache_config config = { .name = "lines", .size = BYTES };

	hammer(&config, false);
	config.name = "shrunk";
	hammer(&config, true);
	config = (struct wq_cache_config){
		.name = "single", .size = BYTES, .align = 8, .magazine = 1
	};
	hammer(&config, true);
	config.name = "pairs";
	config.magazine = 2;
	hammer(&config, false);
	config = (struct wq_cache_config){ .name = "malloc",
					   .size = BYTES,
					   .use_malloc = true };
	hammer(&config, false);
}

struct steady {
	struct wq_cache *cache;
	_Atomic bool done, lost;
};

static void *go_steady(void *arg)
{
	struct steady *steady = arg;
	void *object[100];

	for (int i = 0; i < 1000; i++) {
		for (size_t j = 0; j < LEN(object); j++)
			if (!(object[j] = wq_cache_alloc(steady->cache)))
				steady->lost = true;
		for (size_t j = 0; j < LEN(object); j++)
			wq_cache_put(steady->cache, object[j]);
	}
	steady->done = true;
	return NULL;
}

/* As a thread would that stopped in the middle of alloc or put. */
static void hold_magazines(struct wq_cache *cache, bool hold)
{
	static struct wq_magazine *held[2 * CPU_SETSIZE];

	for (int i = 0; i < cache->cpus && i < CPU_SETSIZE; i++) {
		if (hold) {
			held[2 * i] =
				atomic_exchange(&cache->cpu[i].loaded, NULL);
			held[2 * i + 1] =
				atomic_exchange(&cache->cpu[i].previous, NULL);
			continue;
		}
		for (int j = 2 * i; j < 2 * i + 2; j++)
			if (held[j])
				wq_depot_push(held[j]->count ? &cache->full
							     : &cache->empty,
					      held[j]);
	}
}

/* 100 objects at a time are more than both magazines hold, so the depot has
 * its part in it. */
static void test_lock(void)
{
	struct wq_cache_config config = { .name = "steady", .size = BYTES };
	struct timespec wait = { .tv_nsec = 1000000 };
	struct wq_cache_stats before, after;
	struct steady s = { 0 };
	void *object[400];
	pthread_t thread;

	if (wq_cache_new(&config, &s.cache))
		bail("no cache");
	for (size_t i = 0; i < LEN(object); i++)
		object[i] = wq_cache_alloc(s.cache);
	for (size_t i = 0; i < LEN(object); i++)
		wq_cache_put(s.cache, object[i]);
	wq_cache_stats(s.cache, &before);
	hold_magazines(s.cache, true);
	pthread_mutex_lock(&s.cache->lock);
	if (pthread_create(&thread, NULL, go_steady, &s))
		bail("no thread");
	for (int i = 0; i < 20000 && !s.done; i++)
		nanosleep(&wait, NULL);
	ok(s.done, "a thread that finds objects in the depot waits for nobody");
	pthread_mutex_unlock(&s.cache->lock);
	hold_magazines(s.cache, false);
	pthread_join(thread, NULL);
	wq_cache_stats(s.cache, &after);
	ok(!s.lost && after.grows == before.grows && !after.active_objs,
	   "and no new slab");
	ok(after.depot_gets > before.depot_gets, "only the depot");
	wq_cache_free(s.cache);
}

/* What a thread saw before it slept: A on top.  Meanwhile A and B went, and A
 * came back; "B is next" must not be believed any more. */
static void test_tag(void)
{
	struct wq_cache_config config = { .name = "tag", .size = BYTES };
	struct wq_magazine *a, *b;
	struct wq_cache *cache;
	uint64_t seen;

	if (wq_cache_new(&config, &cache))
		bail("no cache");
	a = wq_depot_new(cache);
	b = wq_depot_new(cache);
	if (!a || !b)
		bail("no magazines");
	wq_depot_push(&cache->empty, b);
	wq_depot_push(&cache->empty, a);
	seen = cache->empty;
	ok(wq_depot_pop(cache, &cache->empty) == a &&
		   wq_depot_pop(cache, &cache->empty) == b &&
		   !wq_depot_pop(cache, &cache->empty),
	   "the depot gives each magazine once, the last first");
	wq_depot_push(&cache->empty, a);
	ok((uint32_t)cache->empty == (uint32_t)seen && cache->empty != seen,
	   "a magazine that went and came back is told from one that stayed");
	wq_depot_push(&cache->empty, b);
	wq_cache_free(cache);
}

/* In one CPU's hands a full and an empty magazine alternate: what goes over
 * the depot must not be more than one in so many objects. */
static void test_pair(void)
{
	struct wq_cache_config config = { .name = "edge", .size = BYTES };
	struct wq_cache_stats before, after;
	struct wq_cache *cache;
	cpu_set_t own, one;
	void *object[100];
	int cpu = sched_getcpu();

	CPU_ZERO(&one);
	CPU_SET(cpu < 0 ? 0 : cpu, &one);
	if (sched_getaffinity(0, sizeof(own), &own) < 0 ||
	    sched_setaffinity(0, sizeof(one), &one) < 0 ||
	    wq_cache_new(&config, &cache))
		bail("no cache, or no CPU to be bound to");
	for (size_t i = 0; i < LEN(object); i++)
		object[i] = wq_cache_alloc(cache);
	for (size_t i = 0; i < LEN(object); i++)
		wq_cache_put(cache, object[i]);
	/* From any fill of the magazines to the next edge, and over it. */
	wq_cache_stats(cache, &before);
	for (size_t edge = 0; edge < 64; edge++) {
		object[edge] = wq_cache_alloc(cache);
		for (size_t i = 0; i < 50; i++) {
			void *a = wq_cache_alloc(cache);
			void *b = wq_cache_alloc(cache);

			wq_cache_put(cache, a);
			wq_cache_put(cache, b);
		}
	}
	wq_cache_stats(cache, &after);
	ok(after.depot_gets - before.depot_gets <= 4,
	   "to and fro over a magazine's edge does not go to the depot");
	for (size_t i = 0; i < 64; i++)
		wq_cache_put(cache, object[i]);
	wq_cache_free(cache);
	sched_setaffinity(0, sizeof(own), &own);
}

int main(void)
{
	plan(5 * 5 + 3 + 2 + 1);
	test_hammer();
	test_lock();
	test_tag();
	test_pair();
	return done();
}
