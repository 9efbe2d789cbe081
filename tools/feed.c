/* SPDX-License-Identifier: MIT */
/* Jobs run while they are being found.  Layer: tools. */
#include "tools/spread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

/* L: under lock.  I: set before the threads start. */
struct feed {
	pthread_mutex_t lock;
	pthread_cond_t more;      /* signalled for each job, and at the end */
	void **jobs;              /* L: [next, count) are waiting */
	size_t next, count, room; /* L */
	bool closed;              /* L: no more will come */
	int err;                  /* L: the first failure */
	int (*consume)(void *arg, unsigned int worker, void *job); /* I */
	void *arg;                                                 /* I */
};

struct eater {
	struct feed *feed;
	unsigned int number;
	pthread_t thread;
};

static int grow(struct feed *f)
{
	size_t room = f->room ? 2 * f->room : 1024;
	void *jobs;

	if (f->count < f->room)
		return 0;
	jobs = realloc(f->jobs, room * sizeof(*f->jobs));
	if (!jobs)
		return -ENOMEM;
	f->jobs = jobs;
	f->room = room;
	return 0;
}

int feed_put(struct feed *f, void *job)
{
	int err;

	pthread_mutex_lock(&f->lock);
	err = f->err ? f->err : grow(f);
	if (!err)
		f->jobs[f->count++] = job;
	pthread_cond_signal(&f->more);
	pthread_mutex_unlock(&f->lock);
	return spread_stopped() ? -EINTR : err;
}

/* Return: the next job, waiting for it; NULL when there is nothing to do */
static void *take(struct feed *f)
{
	void *job = NULL;

	pthread_mutex_lock(&f->lock);
	while (!f->err && !f->closed && f->next == f->count)
		pthread_cond_wait(&f->more, &f->lock);
	if (!f->err && f->next < f->count)
		job = f->jobs[f->next++];
	pthread_mutex_unlock(&f->lock);
	return job;
}

/* Keep the first failure, which ends the feed for all; or close it. */
static void finish(struct feed *f, int err)
{
	pthread_mutex_lock(&f->lock);
	if (!f->err)
		f->err = err;
	if (!err)
		f->closed = true;
	pthread_cond_broadcast(&f->more);
	pthread_mutex_unlock(&f->lock);
}

static void *eat(void *arg)
{
	struct eater *e = arg;
	void *job;

	while ((job = take(e->feed))) {
		int err = -EINTR;

		if (!spread_stopped())
			err = e->feed->consume(e->feed->arg, e->number, job);
		if (err)
			finish(e->feed, err);
	}
	(void)e->feed->consume(e->feed->arg, e->number, NULL);
	return NULL;
}

/* A thread that opens and closes a file every few microseconds gets a table of
 * descriptors of its own: in a shared one each use of a descriptor counts
 * references, and opening takes a lock.  Without it all works, but slower. */
static void *eat_apart(void *arg)
{
	/* The thread sanitizer takes equal numbers in two tables for one
	 * descriptor, and reports races between strangers. */
#ifndef __SANITIZE_THREAD__
	(void)unshare(CLONE_FILES);
#endif
	return eat(arg);
}

int spread_feed(unsigned int threads,
		int (*produce)(void *arg, struct feed *feed),
		int (*consume)(void *arg, unsigned int worker, void *job),
		void *arg)
{
	struct feed f = { .lock = PTHREAD_MUTEX_INITIALIZER,
			  .more = PTHREAD_COND_INITIALIZER,
			  .consume = consume,
			  .arg = arg };
	struct eater e[SPREAD_MAX] = { { .feed = &f } };
	unsigned int n = threads < SPREAD_MAX ? threads : SPREAD_MAX, started;

	/* A thread that can not be had is not an error: fewer do the work. */
	for (started = 1; started < n; started++) {
		e[started] = (struct eater){ .feed = &f, .number = started };
		if (pthread_create(&e[started].thread, NULL, eat_apart,
				   &e[started]))
			break;
	}
	finish(&f, produce(arg, &f));
	eat(&e[0]);
	for (unsigned int i = 1; i < started; i++)
		pthread_join(e[i].thread, NULL);
	free(f.jobs);
	return f.err;
}
