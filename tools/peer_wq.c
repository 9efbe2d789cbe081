/* SPDX-License-Identifier: MIT */
/*
 * tools/peer_wq.c - our own pools, as bench-dispatch sees them: with their
 * stamps on, as the daemon runs them.  Layer: tools.
 *
 * They place their workers themselves, one a CPU.  Bound workers ask for a
 * short slice, as wq/sched.h offers to anyone: the job then starts when it is
 * queued, not when the thread that queued it next sleeps.  WQ_BENCH_SLICE_US
 * in the environment sets another; 0 asks for none.
 */
#include "tools/peer.h"

#include "wq/wq.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct ours {
	struct wq_pools *pools;
	struct wq *wq;
};

/* In the job's own bytes. */
struct item {
	struct wq_work work;
	struct peer_job *job;
};

_Static_assert(sizeof(struct item) <= PEER_OWN, "an item fits in a job");

#define SLICE_US 100

static uint64_t slice_ns(void)
{
	const char *us = getenv("WQ_BENCH_SLICE_US");

	return (us ? strtoull(us, NULL, 10) : SLICE_US) * 1000;
}

static const char *bound_version(void)
{
	static char text[80];

	snprintf(text, sizeof(text), "verityd's wq, bound, slice %llu us",
		 (unsigned long long)slice_ns() / 1000);
	return text;
}

static const char *unbound_version(void)
{
	return "verityd's wq, unbound:system";
}

static int open_mode(struct wq_mode mode, uint64_t slice,
		     const struct peer_place *place, void **out)
{
	struct wq_config config = { .mode = mode,
				    .prio = { .slice_ns = slice },
				    .cpus = &place->workers,
				    .handoff_ns = 1 };
	struct wq_attrs attrs = { .name = "bench" };
	struct ours *o = calloc(1, sizeof(*o));
	struct wq_error why;
	int err;

	if (!o)
		return -ENOMEM;
	err = wq_pools_new(&config, &o->pools, &why);
	if (!err) {
		err = wq_new(o->pools, &attrs, &o->wq, &why);
		if (err)
			wq_pools_free(o->pools);
	}
	if (err) {
		fprintf(stderr, "bench-dispatch: %s\n", why.text);
		free(o);
		return err;
	}
	*out = o;
	return 0;
}

static int open_bound(const struct peer_place *place, void **out)
{
	struct wq_mode mode = { .binding = WQ_BOUND };

	return open_mode(mode, slice_ns(), place, out);
}

static int open_unbound(const struct peer_place *place, void **out)
{
	struct wq_mode mode = { .binding = WQ_UNBOUND,
				.scope = WQ_SCOPE_SYSTEM };

	return open_mode(mode, 0, place, out);
}

static void run(struct wq_work *work)
{
	struct peer_job *job = ((struct item *)work)->job;

	job->run(job);
}

static void prepare(void *pool, struct peer_job *job)
{
	struct item *item = (struct item *)job->own;

	(void)pool;
	wq_work_init(&item->work, run, 0);
	item->job = job;
}

static void submit(void *pool, struct peer_job *job)
{
	struct ours *o = pool;

	wq_queue(o->wq, &((struct item *)job->own)->work);
}

static void finish(void *pool)
{
	struct ours *o = pool;

	wq_flush(o->wq);
}

static void close_pool(void *pool)
{
	struct ours *o = pool;

	wq_free(o->wq);
	wq_pools_free(o->pools);
	free(o);
}

const struct peer peer_wq_bound = {
	.name = "wq",
	.version = bound_version,
	.open = open_bound,
	.prepare = prepare,
	.submit = submit,
	.finish = finish,
	.close = close_pool,
};

const struct peer peer_wq_unbound = {
	.name = "wq",
	.version = unbound_version,
	.open = open_unbound,
	.prepare = prepare,
	.submit = submit,
	.finish = finish,
	.close = close_pool,
};
