/* SPDX-License-Identifier: MIT */
/*
 * tools/peer_wq.c - our own pools, as bench-dispatch sees them: with their
 * stamps on, as the daemon runs them.  Layer: tools.
 *
 * They place their workers themselves, one a CPU.
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

static const char *version(void)
{
	return "verityd's wq";
}

static int open_mode(struct wq_mode mode, const struct peer_place *place,
		     void **out)
{
	struct wq_config config = { .mode = mode,
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

	return open_mode(mode, place, out);
}

static int open_unbound(const struct peer_place *place, void **out)
{
	struct wq_mode mode = { .binding = WQ_UNBOUND,
				.scope = WQ_SCOPE_SYSTEM };

	return open_mode(mode, place, out);
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
	.version = version,
	.open = open_bound,
	.prepare = prepare,
	.submit = submit,
	.finish = finish,
	.close = close_pool,
};

const struct peer peer_wq_unbound = {
	.name = "wq",
	.version = version,
	.open = open_unbound,
	.prepare = prepare,
	.submit = submit,
	.finish = finish,
	.close = close_pool,
};
