/* SPDX-License-Identifier: MIT */
/*
 * Using a cache: what is put on another CPU is counted, malloc may take the
 * cache's place, misuse aborts, and nothing is lost without memory.
 */
#include "wq/sched.h"
#include "wq/slab.h"

#include "t/tap.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEN(array) (sizeof(array) / sizeof((array)[0]))

#define SIZE 312

static struct wq_cache *new_cache(size_t size, size_t align, unsigned int mag)
{
	struct wq_cache_config config = {
		.name = "test", .size = size, .align = align, .magazine = mag
	};
	struct wq_cache *cache;

	if (wq_cache_new(&config, &cache))
		bail("no cache of %zu bytes", size);
	return cache;
}

static struct wq_cache_stats stats_of(struct wq_cache *cache)
{
	struct wq_cache_stats stats;

	wq_cache_stats(cache, &stats);
	return stats;
}

static void take(struct wq_cache *cache, void **object, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		object[i] = wq_cache_alloc(cache);
		if (!object[i])
			bail("no memory");
		memset(object[i], (int)i, 8);
	}
}

struct there {
	struct wq_cache *cache;
	void **object;
	size_t n;
	int cpu, code;
};

static int bind_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return wq_sched_affinity(0, &set, NULL);
}

static void *put_there(void *arg)
{
	struct there *t = arg;

	t->code = bind_to(t->cpu);
	for (size_t i = 0; i < t->n; i++)
		wq_cache_put(t->cache, t->object[i]);
	return NULL;
}

/* The first two CPUs of the mask; the second is -1 when there is one only. */
static void two_cpus(const cpu_set_t *own, int cpu[2])
{
	int n = 0;

	cpu[0] = cpu[1] = -1;
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, own))
			cpu[n++] = i;
}

static uint64_t remote_after(struct wq_cache *cache, int from, int to)
{
	void *object[100];
	struct there t = { cache, object, LEN(object), to, 0 };
	pthread_t thread;

	if (bind_to(from))
		bail("not bound");
	take(cache, object, LEN(object));
	if (pthread_create(&thread, NULL, put_there, &t))
		bail("no thread");
	pthread_join(thread, NULL);
	if (t.code)
		bail("thread not bound");
	return stats_of(cache).remote_frees;
}

static void test_remote(void)
{
	struct wq_cache *cache = new_cache(SIZE, 0, 0);
	cpu_set_t own;
	int cpu[2];

	if (wq_sched_mask(0, &own))
		bail("no affinity mask");
	two_cpus(&own, cpu);
	is_uint(remote_after(cache, cpu[0], cpu[0]), 0,
		"what another thread of the CPU puts is not remote");
	if (cpu[1] < 0) {
		skip(2, "there is one CPU only");
	} else {
		is_uint(remote_after(cache, cpu[0], cpu[1]), 100,
			"what is put on another CPU is");
		is_uint(remote_after(cache, cpu[1], cpu[1]), 100,
			"and objects that came back over there no more");
	}
	is_uint(stats_of(cache).active_objs, 0, "all are back");
	sched_setaffinity(0, sizeof(own), &own);
	wq_cache_free(cache);
}

static void test_malloc(void)
{
	struct wq_cache_config config = { .name = "plain",
					  .size = SIZE,
					  .use_malloc = true };
	struct wq_cache_stats s;
	struct wq_cache *cache;
	void *object[100];
	bool aligned = true;

	is_int(wq_cache_new(&config, &cache), 0, "malloc may be used instead");
	take(cache, object, LEN(object));
	for (size_t i = 0; i < LEN(object); i++)
		aligned = aligned && (uintptr_t)object[i] % 64 == 0;
	ok(aligned, "its objects are aligned");
	s = stats_of(cache);
	ok(s.use_malloc && s.active_objs == 100 && s.num_objs == 100 &&
		   s.objsize == 320 && s.num_slabs == 0 && s.bytes == 0,
	   "and counted, without slabs");
	for (size_t i = 0; i < LEN(object); i++)
		wq_cache_put(cache, object[i]);
	wq_cache_put(cache, NULL);
	ok(wq_cache_shrink(cache) == 0 && stats_of(cache).active_objs == 0,
	   "it has nothing to shrink");
	wq_cache_free(cache);
}

static void free_in_use(bool use_malloc)
{
	struct wq_cache_config config = { .name = "test",
					  .size = SIZE,
					  .use_malloc = use_malloc };
	struct wq_cache *cache;

	if (wq_cache_new(&config, &cache) || !wq_cache_alloc(cache))
		_exit(1);
	wq_cache_free(cache);
}

static void free_slabs(void)
{
	free_in_use(false);
}

static void free_plain(void)
{
	free_in_use(true);
}

static void put_twice(void)
{
	struct wq_cache *cache = new_cache(SIZE, 0, 0);
	void *object = wq_cache_alloc(cache);

	wq_cache_put(cache, object);
	wq_cache_put(cache, object);
}

/* Return: whether it aborts with a line that has the cache's name. */
static bool aborts(void (*what)(void))
{
	struct rlimit none = { 0, 0 };
	char line[200] = "";
	int ends[2], status;
	pid_t pid;

	if (pipe(ends) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &none);
		dup2(ends[1], STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		what();
		_exit(0);
	}
	close(ends[1]);
	if (pid < 0 || read(ends[0], line, sizeof(line) - 1) < 0)
		line[0] = '\0';
	close(ends[0]);
	return pid > 0 && waitpid(pid, &status, 0) == pid &&
	       WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT &&
	       strstr(line, "cache test: ");
}

static void test_bugs(void)
{
	struct wq_cache *cache = new_cache(SIZE, 0, 0);

	ok(aborts(free_slabs), "a cache with an object in use is not freed");
	ok(aborts(free_plain), "nor is one that uses malloc");
	ok(aborts(put_twice), "an object cannot be put twice");
	wq_cache_put(cache, NULL);
	is_uint(stats_of(cache).active_objs, 0, "no object may be put");
	wq_cache_free(cache);
	wq_cache_free(NULL);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static int without_memory(void)
{
	return 2; /* the sanitizers would be without it, too */
}
#else
/* Return: 0 when all held, 2 when memory does not end, else 1. */
static int without_memory(void)
{
	struct wq_cache *cache = new_cache(65536, 0, 4);
	struct rlimit few = { 0, 0 };
	void *object[2048];
	size_t n = 0, again;

	few.rlim_cur = few.rlim_max = 64 << 20;
	if (setrlimit(RLIMIT_AS, &few) < 0)
		return 2;
	while (n < LEN(object) && (object[n] = wq_cache_alloc(cache)) != NULL)
		n++;
	if (n == LEN(object))
		return 2; /* 128 MiB in 64: the limit is not followed */
	if (stats_of(cache).active_objs != n)
		return 1;
	for (size_t i = 0; i < n; i++)
		wq_cache_put(cache, object[i]);
	if (stats_of(cache).active_objs)
		return 1;
	wq_cache_shrink(cache);
	for (again = 0; again < n; again++)
		if (!(object[again] = wq_cache_alloc(cache)))
			return 1;
	return 0;
}
#endif

static void test_without_memory(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(without_memory());
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		bail("no child");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		skip(1, "memory cannot be limited here");
	else
		is_int(status, 0,
		       "without memory there is no object, and none is lost");
}

int main(void)
{
	plan(4 + 4 + 4 + 1);
	test_remote();
	test_malloc();
	test_bugs();
	test_without_memory();
	return done();
}
