/* SPDX-License-Identifier: MIT */
#include "tools/dispatch_pool.h"

#include "wq/clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_NS UINT64_C(2000000000)

/* The jobs that find the threads: each waits for the others, so that no thread
 * runs two of them. */
static struct scout {
	struct peer_job job; /* first: the function gets the scout back */
	pid_t tid;
} scouts[PEER_THREADS];
static cpu_set_t target;
/* Counted up after a tid and @failed were written, read before they are. */
static _Atomic unsigned int came;
static _Atomic unsigned int gone; /* the same, and done with the job */
static _Atomic int failed;        /* a negative errno */

static void doze(void)
{
	struct timespec t = { .tv_nsec = 100000 };

	nanosleep(&t, NULL);
}

static void look(struct peer_job *job)
{
	struct scout *scout = (struct scout *)job;
	uint64_t began = wq_mono_ns();

	if (sched_setaffinity(0, sizeof(target), &target))
		atomic_store(&failed, -errno);
	scout->tid = gettid();
	atomic_fetch_add(&came, 1);
	while (atomic_load(&came) < PEER_THREADS &&
	       wq_mono_ns() - began < PATIENCE_NS)
		doze();
	atomic_fetch_add(&gone, 1);
}

/* Every scout runs in the end, after PATIENCE_NS each if they do not meet. */
static int place_threads(struct dispatch_pool *p)
{
	uint64_t began = wq_mono_ns();

	target = p->place.workers;
	atomic_store(&came, 0);
	atomic_store(&gone, 0);
	atomic_store(&failed, 0);
	memset(scouts, 0, sizeof(scouts));
	for (size_t i = 0; i < PEER_THREADS; i++) {
		scouts[i].job.run = look;
		if (p->peer->prepare)
			p->peer->prepare(p->pool, &scouts[i].job);
		p->peer->submit(p->pool, &scouts[i].job);
	}
	while (atomic_load(&gone) < PEER_THREADS) {
		if (wq_mono_ns() - began > PATIENCE_NS * 2 * PEER_THREADS)
			return -ETIMEDOUT;
		doze();
	}
	dispatch_finish(p);
	for (size_t i = 1; i < PEER_THREADS; i++)
		if (scouts[i].tid == scouts[0].tid)
			return -ETIMEDOUT;
	return atomic_load(&failed);
}

int dispatch_open(struct dispatch_pool *p, const struct peer *peer,
		  const struct peer_place *place)
{
	int err;

	p->peer = peer;
	p->place = *place;
	/* New threads have their creator's CPUs. */
	if (sched_setaffinity(0, sizeof(place->workers), &place->workers))
		return -errno;
	err = peer->open(place, &p->pool);
	if (err || !peer->threads)
		return err;
	return place_threads(p);
}

void dispatch_finish(struct dispatch_pool *p)
{
	if (p->peer->finish)
		p->peer->finish(p->pool);
}

void dispatch_close(struct dispatch_pool *p)
{
	p->peer->close(p->pool);
}
