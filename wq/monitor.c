/* SPDX-License-Identifier: MIT */
/*
 * Figures for those who look on.
 */
#include "wq/pool.h"

#include <errno.h>
#include <string.h>

void wq_stats(struct wq *wq, struct wq_stats *out)
{
	uint64_t ticks = 0;

	memset(out, 0, sizeof(*out));
	memcpy(out->name, wq->name, sizeof(out->name));
	/* Done before queued, so that @infl is never negative. */
	for (size_t i = 0; i < wq->pools->nr; i++) {
		struct wq_shard *shard = &wq->shard[i];

		out->total += atomic_load(&shard->done[0]) +
			      atomic_load(&shard->done[1]);
		out->cancelled += atomic_load(&shard->cancelled);
		ticks += atomic_load(&shard->ticks);
	}
	for (size_t i = 0; i < wq->pools->nr; i++) {
		struct wq_shard *shard = &wq->shard[i];

		out->infl += atomic_load(&shard->queued[0]) +
			     atomic_load(&shard->queued[1]);
	}
	out->infl -= out->total;
	out->cpu_ns = wq_ticks_to_ns(ticks);
	out->hogs = atomic_load(&wq->hogs);
	out->cm_wakeups = atomic_load(&wq->cm_wakeups);
	out->mayday = atomic_load(&wq->mayday);
}

static void add_figures(struct wq_thread_figures *sum,
			const struct wq_worker *worker)
{
	struct wq_thread_figures one;

	if (wq_schedstat_read(&worker->stat, &one) < 0)
		return;
	sum->run_ns += one.run_ns;
	sum->run_delay_ns += one.run_delay_ns;
	sum->slices += one.slices;
	sum->voluntary += one.voluntary;
	sum->involuntary += one.involuntary;
	sum->migrations += one.migrations;
	sum->has_migrations = sum->has_migrations || one.has_migrations;
}

static void add_worker(struct wq_cpu_stats *out, struct wq_worker *worker)
{
	out->workers++;
	out->started += atomic_load(&worker->nr_started);
	out->elsewhere += atomic_load(&worker->nr_elsewhere);
	out->idle_wakes += atomic_load(&worker->nr_idle_wakes);
	out->stolen += atomic_load(&worker->nr_stolen);
	out->repatriated += atomic_load(&worker->nr_repatriated);
	out->moved += atomic_load(&worker->nr_moved);
	add_figures(&out->threads, worker);
}

int wq_cpu_stats(struct wq_pools *pools, size_t index, struct wq_cpu_stats *out)
{
	struct wq_worker *worker;
	struct wq_home *home;

	if (index >= pools->nr)
		return -EINVAL;
	home = &pools->home[index];
	memset(out, 0, sizeof(*out));
	out->cpu = home->cpu;
	out->depth = wq_home_depth(home);
	out->queued = atomic_load(&home->ring.tail);
	out->overflowed = atomic_load(&home->overflowed);
	out->wakes = atomic_load(&home->wakes);
	out->recalls = atomic_load(&home->recalls);
	out->lost = atomic_load(&home->lost);
	/* The lock: a spare gets its home under it. */
	pthread_mutex_lock(&pools->lock);
	for (worker = atomic_load(&pools->all); worker; worker = worker->next)
		if (atomic_load(&worker->role) != WQ_ISSUER &&
		    worker->home == home)
			add_worker(out, worker);
	pthread_mutex_unlock(&pools->lock);
	return 0;
}

int wq_pools_calls(struct wq_pools *pools, struct wq_hist_sum *sum)
{
	struct wq_worker *w;
	int code = 0;

	memset(sum, 0, sizeof(*sum));
	sum->bits = WQ_HIST_BITS;
	for (w = atomic_load(&pools->all); w && !code; w = w->next)
		if (w->call_hist)
			code = wq_hist_merge(sum, w->call_hist);
	return code;
}

uint64_t wq_pools_t3(struct wq_pools *pools, uint64_t id)
{
	struct wq_worker *w;

	for (w = atomic_load(&pools->all); w; w = w->next)
		for (size_t i = 0; i < WQ_CALLS; i++)
			/* Acquire: pairs with the release of the id. */
			if (atomic_load(&w->calls.id[i]) == id)
				return atomic_load(&w->calls.t3[i]);
	return 0;
}
