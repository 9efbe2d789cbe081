/* SPDX-License-Identifier: MIT */
/* Independent jobs on several threads, and how they are stopped.
 * Layer: tools. */
#include "tools/spread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

/* Set by a signal handler, read by workers; it guards no other data, so
 * relaxed is enough. */
static atomic_int stopped;

/* A: atomic.  I: set before the threads start. */
struct run {
	uint64_t jobs;          /* I */
	_Atomic(uint64_t) next; /* A: the first job not handed out */
	atomic_int err;         /* A: the first failure; 0 while there is none.
				 * Results are read after the join, which
				 * orders them, so relaxed is enough here. */
	int (*fn)(void *arg, unsigned int worker, uint64_t job); /* I */
	void *arg;                                               /* I */
};

struct worker {
	struct run *run;
	unsigned int number;
	pthread_t thread;
};

unsigned int spread_cpus(void)
{
	cpu_set_t set;
	int n;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	n = CPU_COUNT(&set);
	return n < 1 ? 1 : n > SPREAD_MAX ? SPREAD_MAX : (unsigned int)n;
}

void spread_stop(int signal)
{
	atomic_store_explicit(&stopped, signal, memory_order_relaxed);
}

int spread_stopped(void)
{
	return atomic_load_explicit(&stopped, memory_order_relaxed);
}

/* Whichever comes second, of the two, takes its default action. */
static void on_signal(int sig)
{
	spread_stop(sig);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
}

void spread_catch(void)
{
	/* No RESTART: a read from a pipe that never comes must end. */
	struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct run *r = w->run;
	int none = 0;

	while (!atomic_load_explicit(&r->err, memory_order_relaxed)) {
		uint64_t job;
		int err = -EINTR;

		job = atomic_fetch_add_explicit(&r->next, 1,
						memory_order_relaxed);
		if (job >= r->jobs)
			break;
		if (!spread_stopped())
			err = r->fn(r->arg, w->number, job);
		if (err)
			atomic_compare_exchange_strong_explicit(
				&r->err, &none, err, memory_order_relaxed,
				memory_order_relaxed);
	}
	return NULL;
}

int spread_run(unsigned int threads, uint64_t jobs,
	       int (*fn)(void *arg, unsigned int worker, uint64_t job),
	       void *arg)
{
	struct run r = { .jobs = jobs, .fn = fn, .arg = arg };
	struct worker w[SPREAD_MAX];
	unsigned int n = threads < SPREAD_MAX ? threads : SPREAD_MAX, started;

	if (n > jobs)
		n = (unsigned int)jobs;
	w[0] = (struct worker){ .run = &r };
	/* A thread that can not be had is not an error: fewer do the work. */
	for (started = 1; started < n; started++) {
		w[started] = (struct worker){ .run = &r, .number = started };
		if (pthread_create(&w[started].thread, NULL, work, &w[started]))
			break;
	}
	work(&w[0]);
	for (unsigned int i = 1; i < started; i++)
		pthread_join(w[i].thread, NULL);
	return atomic_load_explicit(&r.err, memory_order_relaxed);
}
