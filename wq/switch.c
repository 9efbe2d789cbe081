/* SPDX-License-Identifier: MIT */
/*
 * A live switch.
 *
 * pools->mode is one word, epoch and mode.  Whoever queues reads it after the
 * job has become visible, and wakes among the workers of the plan it names.  A
 * switch stores the new word and then makes every worker look at it, change
 * over, and look for jobs by the new plan before it sleeps.  If a queuer still
 * reads the old word, its job was visible before the new one was stored, and
 * is found by those who look after that; else it wakes by the new plan.
 */
#include "wq/futex.h"
#include "wq/pool.h"

#include <errno.h>
#include <string.h>

/* Memory that every primary needs in the mode; on failure nothing changes. */
static int prepare(struct wq_pools *pools, unsigned int mode,
		   struct wq_error *err)
{
	int code = wq_plan_need(pools, mode);

	for (size_t i = 0; !code && i < pools->nr; i++)
		code = wq_worker_prepare(atomic_load(&pools->home[i].primary),
					 mode);
	if (code)
		return wq_fail(err, -code,
			       "no memory for mode %s: %zu bytes are the bound "
			       "of all histograms",
			       wq_mode_name(mode), pools->config.hist_bytes);
	return 0;
}

static bool all_changed(struct wq_pools *pools, uint64_t word)
{
	for (size_t i = 0; i < pools->nr; i++) {
		struct wq_worker *w = atomic_load(&pools->home[i].primary);

		if (atomic_load(&w->seen) != word)
			return false;
	}
	return true;
}

static void wait_all(struct wq_pools *pools, uint64_t word)
{
	for (;;) {
		uint32_t adopted = atomic_load(&pools->adopted);

		if (all_changed(pools, word))
			return;
		wq_futex_wait(&pools->adopted, adopted, UINT64_MAX);
	}
}

/* With @switching held. */
static void change(struct wq_pools *pools, uint64_t word, struct wq_switch *out)
{
	uint64_t began = wq_stamp(), back = 0, pause = 0;

	out->moved = 0;
	for (size_t i = 0; i < pools->nr; i++)
		out->moved += wq_home_depth(&pools->home[i]);
	atomic_store(&pools->mode, word);
	for (size_t i = 0; i < pools->nr; i++)
		wq_kick(&pools->home[i]);
	wait_all(pools, word);
	out->drain_ns =
		wq_ticks_to_ns(wq_ticks_since(began, wq_stamp(), &back));
	for (size_t i = 0; i < pools->nr; i++) {
		struct wq_worker *w = atomic_load(&pools->home[i].primary);
		uint64_t ticks = atomic_load(&w->pause);

		pause = ticks > pause ? ticks : pause;
	}
	out->pause_ns = wq_ticks_to_ns(pause);
}

int wq_pools_switch(struct wq_pools *pools, struct wq_mode mode,
		    struct wq_switch *out, struct wq_error *err)
{
	unsigned int index = wq_mode_index(mode);
	struct wq_worker *self = wq_self(pools);
	struct wq_switch cost;
	uint64_t word;
	int code = 0;

	if (self && atomic_load(&self->current))
		return wq_fail(err, EDEADLK,
			       "the mode cannot be switched from a work item");
	if (mode.binding == WQ_UNBOUND)
		code = wq_scope_known(pools->topo, mode.scope, err);
	if (code)
		return code;
	memset(&cost, 0, sizeof(cost));
	pthread_mutex_lock(&pools->switching);
	code = prepare(pools, index, err);
	if (!code) {
		word = atomic_load(&pools->mode);
		cost.from = wq_word_mode(word);
		cost.to = index;
		cost.epoch = wq_word_epoch(word) + 1;
		change(pools, (uint64_t)cost.epoch << 8 | index, &cost);
		if (pools->trace) {
			self = wq_issuer(pools);
			if (self)
				wq_trace_event(self->trace, WQ_EVENT_MODE,
					       wq_stamp(), 0, index);
		}
	}
	pthread_mutex_unlock(&pools->switching);
	if (!code && out)
		*out = cost;
	return code;
}

struct wq_mode wq_pools_mode(const struct wq_pools *pools)
{
	return wq_mode_at(
		wq_word_mode(atomic_load((_Atomic uint64_t *)&pools->mode)));
}

/* Set @prio for all threads; stop at the first that refuses. */
static int set_all(struct wq_pools *pools, const struct wq_prio *prio,
		   struct wq_error *err)
{
	struct wq_worker *w;
	int code = 0;

	for (w = atomic_load(&pools->all); w && !code; w = w->next)
		if (atomic_load(&w->born) && !w->born_error)
			code = wq_sched_prio(w->stat.tid, prio, err);
	return code;
}

/* What workers born from now on have. */
static void take_prio(struct wq_pools *pools, const struct wq_prio *prio)
{
	pthread_mutex_lock(&pools->lock);
	pools->prio = *prio;
	pthread_mutex_unlock(&pools->lock);
}

int wq_pools_prio(struct wq_pools *pools, const struct wq_prio *prio,
		  struct wq_error *err)
{
	struct wq_error more;
	struct wq_prio old;
	int code;

	pthread_mutex_lock(&pools->switching);
	old = pools->prio;
	take_prio(pools, prio);
	code = set_all(pools, prio, err);
	if (code) {
		take_prio(pools, &old);
		if (set_all(pools, &old, &more) < 0)
			wq_say(pools,
			       "priority: the old one cannot be "
			       "restored for all workers: %s",
			       more.text);
	}
	pthread_mutex_unlock(&pools->switching);
	return code;
}
