/* SPDX-License-Identifier: MIT */
/*
 * tools/peer_uv.c - libuv's uv_queue_work() for bench-dispatch.  Layer: tools.
 *
 * Its threads start with the first job of the process and never end, so a new
 * pool here is a new loop before the same threads.
 */
#include "tools/peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#define DIGITS(n)  DIGITS_(n)
#define DIGITS_(n) #n

_Static_assert(sizeof(uv_work_t) <= PEER_OWN, "a request fits into a job");

static const char *version(void)
{
	static char text[48];

	snprintf(text, sizeof(text), "libuv %s, uv_queue_work",
		 uv_version_string());
	return text;
}

static int open_pool(const struct peer_place *place, void **out)
{
	uv_loop_t *loop = malloc(sizeof(*loop));
	int err;

	(void)place;
	if (!loop)
		return -ENOMEM;
	/* Read at the first job.  libuv's errors are negative errno here. */
	err = setenv("UV_THREADPOOL_SIZE", DIGITS(PEER_THREADS), 1)
		      ? -ENOMEM
		      : uv_loop_init(loop);
	if (err) {
		free(loop);
		return err;
	}
	*out = loop;
	return 0;
}

static void prepare(void *pool, struct peer_job *job)
{
	uv_work_t *work = (uv_work_t *)job->own;

	(void)pool;
	work->data = job;
}

static void run(uv_work_t *work)
{
	struct peer_job *job = work->data;

	job->run(job);
}

static void after(uv_work_t *work, int status)
{
	(void)work;
	(void)status;
}

/* It fails only without a function to run. */
static void submit(void *pool, struct peer_job *job)
{
	uv_queue_work(pool, (uv_work_t *)job->own, run, after);
}

static void pump(void *pool)
{
	uv_run(pool, UV_RUN_NOWAIT);
}

/* Returns when no request is left. */
static void finish(void *pool)
{
	uv_run(pool, UV_RUN_DEFAULT);
}

static void close_pool(void *pool)
{
	if (uv_loop_close(
		    pool)) /* a request is left: finish() was not called */
		abort();
	free(pool);
}

const struct peer peer_uv = {
	.name = "uv",
	.version = version,
	.threads = PEER_THREADS,
	.open = open_pool,
	.prepare = prepare,
	.submit = submit,
	.pump = pump,
	.finish = finish,
	.close = close_pool,
};
