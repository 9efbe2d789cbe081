/* SPDX-License-Identifier: MIT */
#include "wq/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int check(const struct wq_attrs *attrs, struct wq_error *err)
{
	if (!attrs->name ||
	    strlen(attrs->name) >= sizeof(((struct wq *)0)->name))
		return wq_fail(err, EINVAL,
			       "a workqueue has a name of 1 to 31 bytes");
	if (attrs->max_active > WQ_MAX_ACTIVE)
		return wq_fail(
			err, EINVAL,
			"workqueue %s: max_active %u was asked for; 1 to "
			"%d is possible",
			attrs->name, attrs->max_active, WQ_MAX_ACTIVE);
	if (attrs->ordered && attrs->max_active > 1)
		return wq_fail(err, EINVAL,
			       "workqueue %s: max_active %u was asked for; an "
			       "ordered one has 1",
			       attrs->name, attrs->max_active);
	return 0;
}

static void destroy(struct wq *wq)
{
	pthread_mutex_destroy(&wq->flushing);
	free(wq->gate);
	free(wq->shard);
	free(wq);
}

int wq_new(struct wq_pools *pools, const struct wq_attrs *attrs,
	   struct wq **out, struct wq_error *err)
{
	uint32_t max = attrs->max_active ? attrs->max_active : WQ_DFL_ACTIVE;
	int code = check(attrs, err);
	struct wq *wq;

	if (code)
		return code;
	wq = calloc(1, sizeof(*wq));
	if (!wq)
		return wq_fail(err, ENOMEM, "no memory for a workqueue");
	wq->pools = pools;
	wq->ordered = attrs->ordered;
	/* It fits: check() has seen to that. */
	memcpy(wq->name, attrs->name, strlen(attrs->name));
	pthread_mutex_init(&wq->flushing, NULL);
	wq->shard = aligned_alloc(WQ_LINE, pools->nr * sizeof(*wq->shard));
	if (!wq->shard ||
	    wq_gates_init(wq, pools->nr, attrs->ordered ? 1 : max) < 0) {
		destroy(wq);
		return wq_fail(err, ENOMEM, "no memory for a workqueue");
	}
	memset(wq->shard, 0, pools->nr * sizeof(*wq->shard));
	pthread_mutex_lock(&pools->lock);
	wq->next = pools->queues;
	pools->queues = wq;
	pthread_mutex_unlock(&pools->lock);
	*out = wq;
	return 0;
}

void wq_free(struct wq *wq)
{
	struct wq **link;

	if (!wq)
		return;
	if (wq_drain(wq) < 0)
		abort(); /* from its own item: there is no way out */
	pthread_mutex_lock(&wq->pools->lock);
	for (link = &wq->pools->queues; *link != wq; link = &(*link)->next)
		;
	*link = wq->next;
	pthread_mutex_unlock(&wq->pools->lock);
	destroy(wq);
}
