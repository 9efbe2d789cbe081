/* SPDX-License-Identifier: MIT */
#include "tools/dispatch_spin.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#define MAX_SPINNERS 2

struct spinner {
	pthread_t thread;
	clockid_t clock;
	cpu_set_t cpu;
	int err; /* written before @ready is posted */
	sem_t ready;
};

static struct spinner spinners[MAX_SPINNERS];
static unsigned int count;
static _Atomic bool stop;

static void *spin(void *arg)
{
	struct spinner *s = arg;
	struct sched_param none = { 0 };

	if (sched_setaffinity(0, sizeof(s->cpu), &s->cpu) ||
	    sched_setscheduler(0, SCHED_IDLE, &none))
		s->err = -errno;
	sem_post(&s->ready);
	/* Relaxed: nothing else is handed over. */
	while (!s->err && !atomic_load_explicit(&stop, memory_order_relaxed))
#if defined(__x86_64__)
		__builtin_ia32_pause();
#elif defined(__aarch64__)
		__asm__ volatile("yield");
#else
		;
#endif
	return NULL;
}

/* With an error the thread, if there is one, is still dispatch_unspin()'s. */
static int start(int cpu)
{
	struct spinner *s = &spinners[count];
	int err;

	CPU_ZERO(&s->cpu);
	CPU_SET(cpu, &s->cpu);
	s->err = 0;
	sem_init(&s->ready, 0, 0);
	err = pthread_create(&s->thread, NULL, spin, s);
	if (err) {
		sem_destroy(&s->ready);
		return -err;
	}
	count++;
	while (sem_wait(&s->ready)) /* EINTR */
		;
	return s->err ? s->err : -pthread_getcpuclockid(s->thread, &s->clock);
}

int dispatch_spin(const cpu_set_t *cpus)
{
	int err = 0;

	if (CPU_COUNT(cpus) > MAX_SPINNERS)
		return -EINVAL;
	atomic_store(&stop, false);
	for (int cpu = 0; !err && cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, cpus))
			err = start(cpu);
	if (err)
		dispatch_unspin();
	return err;
}

void dispatch_unspin(void)
{
	atomic_store(&stop, true);
	for (; count > 0; count--) {
		pthread_join(spinners[count - 1].thread, NULL);
		sem_destroy(&spinners[count - 1].ready);
	}
}

static uint64_t read_ns(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The process's clock takes a running thread's time as of its last tick, up to
 * 10 ms ago, but for threads whose own clocks were read: so those come first. */
uint64_t dispatch_cpu_ns(void)
{
	uint64_t less = 0;

	for (unsigned int i = 0; i < count; i++)
		less += read_ns(spinners[i].clock);
	less += read_ns(CLOCK_THREAD_CPUTIME_ID);
	return read_ns(CLOCK_PROCESS_CPUTIME_ID) - less;
}
