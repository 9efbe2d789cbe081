/* SPDX-License-Identifier: MIT */
/*
 * Affinity: what was set is read back, and what cannot be had is refused with
 * what was asked and what is possible, and the mask stays; and the scheduler's
 * figures of a thread.
 */
#include "wq/sched.h"

#include "t/tap.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LEN(array) (sizeof(array) / sizeof((array)[0]))

#define NOBODY  65534
#define NO_CPU  1000 /* within cpu_set_t; few machines have it */
#define BUSY_NS 200000000
#define NO_EXEC 99

static cpu_set_t own; /* that this process began with */

static int nth_cpu(const cpu_set_t *set, int n)
{
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, set) && n-- == 0)
			return cpu;
	return -1;
}

static cpu_set_t only(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (cpu >= 0)
		CPU_SET(cpu, &set);
	return set;
}

static bool mask_is(const cpu_set_t *want)
{
	cpu_set_t now;

	return wq_sched_mask(0, &now) == 0 && CPU_EQUAL(&now, want);
}

static void test_affinity(void)
{
	bool right = true, there = true;
	struct wq_error err = { "" };
	cpu_set_t set;
	int cpu;

	for (int i = 0; (cpu = nth_cpu(&own, i)) >= 0; i++) {
		set = only(cpu);
		right = right && wq_sched_affinity(0, &set, &err) == 0 &&
			mask_is(&set);
		there = there && wq_cpu_now() == cpu;
	}
	ok(right, "a thread can be bound to each CPU of the process");
	ok(there, "and then says that it is there");
	ok(wq_sched_affinity(0, &own, &err) == 0 && mask_is(&own),
	   "and freed again: a mask of today is no bound");
	is_str(err.text, "", "nothing was said");
}

static void refuse_mask(const cpu_set_t *set, const char *asked,
			const char *what)
{
	struct wq_error err = { "" };
	cpu_set_t bound = only(nth_cpu(&own, 0));

	sched_setaffinity(0, sizeof(bound), &bound);
	is_int(wq_sched_affinity(0, set, &err), -EINVAL, "%s is refused", what);
	ok(strstr(err.text, asked) && strstr(err.text, "it may use "),
	   "with what was asked and what is possible");
	if (!strstr(err.text, asked))
		diag("'%s' is not in '%s'", asked, err.text);
	ok(mask_is(&bound), "and the thread keeps its mask");
	is_int(wq_sched_affinity(0, set, NULL), -EINVAL,
	       "nobody needs to listen");
	sched_setaffinity(0, sizeof(own), &own);
}

static void test_affinity_refused(void)
{
	cpu_set_t none = only(-1), far = only(NO_CPU), mixed = only(NO_CPU);
	struct wq_error err = { "" };
	char asked[32];

	CPU_SET(nth_cpu(&own, 0), &mixed);
	snprintf(asked, sizeof(asked), "CPUs %d,%d were", nth_cpu(&own, 0),
		 NO_CPU);
	refuse_mask(&none, "CPUs (none) were", "a mask of no CPU");
	refuse_mask(&far, "CPUs 1000 were", "a CPU that does not exist");
	refuse_mask(&mixed, asked, "one that does not exist beside one");
	is_int(wq_sched_affinity(INT32_MAX, &own, &err), -ESRCH,
	       "a thread that does not exist is refused");
	ok(strstr(err.text, "2147483647"), "and named");
	is_int(wq_sched_mask(INT32_MAX, &none), -ESRCH, "nor has it a mask");
	is_int(CPU_COUNT(&none), 0, "and nothing is written");
}

struct busy {
	pthread_t thread;
	pthread_barrier_t *start;
	int cpu, code;
	uint64_t looks; /* at the clock */
	struct wq_thread_figures before, after;
};

static uint64_t mono(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void *be_busy(void *arg)
{
	struct busy *b = arg;
	struct wq_schedstat stat;
	cpu_set_t set = only(b->cpu);
	uint64_t end;

	b->code = wq_sched_affinity(0, &set, NULL);
	if (!b->code)
		b->code = wq_schedstat_open(&stat, gettid());
	pthread_barrier_wait(b->start);
	if (b->code)
		return NULL;
	b->code = wq_schedstat_read(&stat, &b->before);
	for (end = mono() + BUSY_NS; mono() < end;)
		b->looks++;
	if (!b->code)
		b->code = wq_schedstat_read(&stat, &b->after);
	wq_schedstat_close(&stat);
	return NULL;
}

/* Both are ready for 200 ms, and one CPU has 200 ms: what one runs, the other
 * waits.  A fourth of that leaves room for any scheduler. */
static void test_delay(void)
{
	pthread_barrier_t start;
	struct busy b[2];
	uint64_t run, delay;
	int code = 0;

	pthread_barrier_init(&start, NULL, 2);
	for (int i = 0; i < 2; i++) {
		memset(&b[i], 0, sizeof(b[i]));
		b[i].start = &start;
		b[i].cpu = nth_cpu(&own, 0);
		if (pthread_create(&b[i].thread, NULL, be_busy, &b[i]))
			bail("no thread");
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(b[i].thread, NULL);
		code = code ? code : b[i].code;
	}
	pthread_barrier_destroy(&start);
	if (code == -ENOENT) {
		skip(4, "this kernel has no schedstat");
		return;
	}
	is_int(code, 0, "two busy threads on one CPU read their figures");
	run = b[0].after.run_ns - b[0].before.run_ns + b[1].after.run_ns -
	      b[1].before.run_ns;
	delay = b[0].after.run_delay_ns - b[0].before.run_delay_ns +
		b[1].after.run_delay_ns - b[1].before.run_delay_ns;
	ok(delay > BUSY_NS / 4 && delay < 100ull * BUSY_NS,
	   "they wait for each other: run_delay grows");
	ok(run > BUSY_NS / 100 && run < 3ull * BUSY_NS, "and run meanwhile");
	ok(b[0].after.slices + b[1].after.slices >
			   b[0].before.slices + b[1].before.slices &&
		   b[0].after.involuntary + b[1].after.involuntary >
			   b[0].before.involuntary + b[1].before.involuntary,
	   "and are switched, not of their own will");
}

static void test_figures(void)
{
	struct timespec wait = { .tv_nsec = 1000000 };
	struct wq_thread_figures a = { 0 }, b = { 0 };
	struct wq_schedfields field = { 0 };
	struct wq_schedstat stat;
	cpu_set_t one = only(nth_cpu(&own, 0)), two = only(nth_cpu(&own, 1));

	if (wq_schedstat_open(&stat, gettid()) == -ENOENT) {
		skip(5, "this kernel has no schedstat");
		return;
	}
	sched_setaffinity(0, sizeof(one), &one);
	is_int(wq_schedstat_read(&stat, &a), 0, "a thread has its figures");
	for (int i = 0; i < 5; i++)
		nanosleep(&wait, NULL);
	ok(wq_schedstat_fields(&stat, &field) == 0 &&
		   wq_schedstat_read(&stat, &b) == 0 &&
		   field.run_ns >= a.run_ns && b.run_ns >= field.run_ns &&
		   field.slices >= a.slices + 5 && b.slices >= field.slices &&
		   b.run_delay_ns >= field.run_delay_ns,
	   "the short way and the long one agree");
	ok(b.voluntary >= a.voluntary + 5, "five sleeps are five switches");
	is_uint(b.migrations, a.migrations, "and no move for a bound thread");
	if (CPU_COUNT(&own) < 2 || !b.has_migrations) {
		skip(1, "one CPU, or a kernel that does not count migrations");
	} else {
		sched_setaffinity(0, sizeof(two), &two);
		wq_schedstat_read(&stat, &a);
		ok(a.migrations > b.migrations, "a move is counted");
	}
	sched_setaffinity(0, sizeof(own), &own);
	wq_schedstat_close(&stat);
}

static void *give_tid(void *tid)
{
	*(pid_t *)tid = gettid();
	return NULL;
}

static void test_stat_errors(void)
{
	struct timespec wait = { .tv_nsec = 1000000 };
	struct wq_thread_figures figures = { .slices = 77 };
	struct wq_schedfields field = { .slices = 77 };
	struct wq_schedstat stat;
	pthread_t thread;
	pid_t tid = 0;

	is_int(wq_schedstat_open(&stat, INT32_MAX), -ENOENT,
	       "a thread that does not exist has no figures");
	is_int(wq_schedstat_fields(&stat, &field), -EBADF,
	       "nothing is read from what is not open");
	is_int(wq_schedstat_read(&stat, &figures), -EBADF, "in neither way");
	ok(field.slices == 77 && figures.slices == 77, "nor written");
	wq_schedstat_close(&stat);
	wq_schedstat_close(&stat);
	is_int(stat.fd, -1, "and may be closed, twice too");
	if (pthread_create(&thread, NULL, give_tid, &tid))
		bail("no thread");
	pthread_join(thread, NULL);
	/* It is joined a little before the kernel is done with it. */
	for (int i = 0; i < 5000 && wq_schedstat_open(&stat, tid) == 0; i++) {
		wq_schedstat_close(&stat);
		nanosleep(&wait, NULL);
	}
	is_int(wq_schedstat_open(&stat, tid), -ENOENT,
	       "nor has one that has ended");
	wq_schedstat_close(&stat);
}

static void *read_cpus(void *bad)
{
	int cpu;

	for (int i = 0; i < 20000; i++) {
		cpu = wq_cpu_now();
		if (cpu < 0 || !CPU_ISSET(cpu, &own))
			atomic_fetch_add((_Atomic int *)bad, 1);
	}
	return NULL;
}

static void test_cpu_now(void)
{
	_Atomic int bad = 0;
	pthread_t thread[3];

	for (size_t i = 0; i < LEN(thread); i++)
		if (pthread_create(&thread[i], NULL, read_cpus, &bad))
			bail("no thread");
	for (size_t i = 0; i < LEN(thread); i++)
		pthread_join(thread[i], NULL);
	is_int(bad, 0, "each thread is always on a CPU of its mask");
}

/* In a process of its own: the C library reads its tunables at the start. */
static void test_without_rseq(const char *self)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
		execl("/proc/self/exe", self, "--cpus", NULL);
		_exit(NO_EXEC);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		bail("no child");
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_EXEC)
		skip(1, "an emulator cannot start this program once more");
	else
		is_int(status, 0, "the CPU is right without rseq too");
}

/* Return: 0 when the CPU is right after each move. */
static int only_cpus(void)
{
	cpu_set_t set;
	int cpu;

	for (int i = 0; (cpu = nth_cpu(&own, i)) >= 0; i++) {
		set = only(cpu);
		if (wq_sched_affinity(0, &set, NULL) || wq_cpu_now() != cpu)
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (wq_sched_mask(0, &own))
		bail("no affinity mask");
	if (argc > 1 && strcmp(argv[1], "--cpus") == 0)
		return only_cpus();
	plan(37);
	test_affinity();
	test_affinity_refused();
	test_delay();
	test_figures();
	test_stat_errors();
	test_cpu_now();
	test_without_rseq(argv[0]);
	return done();
}
