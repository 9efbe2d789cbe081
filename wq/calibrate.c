/* SPDX-License-Identifier: MIT */
/*
 * What it costs to hand a job to a sleeping worker of another CPU: the median
 * of some wakes, from before the call to the first instruction there.
 */
#include "wq/futex.h"
#include "wq/pool.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 31
#define PAUSE  100000 /* ns between rounds, so that the other side sleeps */

struct side {
	cpu_set_t cpus;
	_Atomic uint32_t go;   /* futex: the round, or UINT32_MAX: leave */
	_Atomic uint32_t done; /* futex: the round that was answered */
	_Atomic uint64_t at;   /* when it was */
};

static void *answer(void *arg)
{
	struct side *side = arg;
	uint32_t round = 0;

	/* Unpinned the figure is that of the scheduler's choice. */
	wq_sched_affinity(0, &side->cpus, NULL);
	for (;;) {
		while (atomic_load(&side->go) == round)
			wq_futex_wait(&side->go, round, UINT64_MAX);
		round = atomic_load(&side->go);
		if (round == UINT32_MAX)
			return NULL;
		atomic_store(&side->at, wq_stamp());
		atomic_store(&side->done, round);
		wq_futex_wake(&side->done, 1);
	}
}

static uint64_t ask(struct side *side, uint32_t round)
{
	struct timespec pause = { .tv_nsec = PAUSE };
	uint64_t began, back = 0;

	nanosleep(&pause, NULL);
	began = wq_stamp();
	atomic_store(&side->go, round);
	wq_futex_wake(&side->go, 1);
	while (atomic_load(&side->done) != round)
		wq_futex_wait(&side->done, round - 1, UINT64_MAX);
	return wq_ticks_to_ns(
		wq_ticks_since(began, atomic_load(&side->at), &back));
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int wq_calibrate(const cpu_set_t *cpus, uint64_t *ns, struct wq_error *err)
{
	struct side side = { .cpus = *cpus };
	uint64_t took[ROUNDS];
	sigset_t all, old;
	pthread_t thread;
	int here = wq_cpu_now();
	int code;

	/* With one CPU there is nobody to hand to. */
	*ns = UINT64_MAX / 2;
	if (here >= 0 && here < WQ_CPUS)
		CPU_CLR(here, &side.cpus);
	if (!CPU_COUNT(&side.cpus) || CPU_COUNT(cpus) < 2)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	code = pthread_create(&thread, NULL, answer, &side);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (code)
		return wq_fail(err, code, "cannot measure a hand-off: %s",
			       strerror(code));
	for (uint32_t i = 0; i < ROUNDS; i++)
		took[i] = ask(&side, i + 1);
	atomic_store(&side.go, UINT32_MAX);
	wq_futex_wake(&side.go, 1);
	pthread_join(thread, NULL);
	qsort(took, ROUNDS, sizeof(took[0]), by_size);
	*ns = took[ROUNDS / 2] ? took[ROUNDS / 2] : 1;
	return 0;
}
