/* SPDX-License-Identifier: MIT */
#include "wq/trace_private.h"

#include "wq/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Atomic unsigned int wq_trace_recording;

int wq_trace_new(size_t events, struct wq_trace **out)
{
	struct wq_trace *trace;

	if (events < 64 || events & (events - 1))
		return -EINVAL;
	trace = calloc(1, sizeof(*trace));
	if (!trace)
		return -ENOMEM;
	wq_clock_init();
	trace->events = events;
	pthread_mutex_init(&trace->lock, NULL);
	*out = trace;
	return 0;
}

static void free_ring(struct wq_trace_ring *ring)
{
	wq_kstate_close(&ring->kstate);
	free(ring);
}

void wq_trace_free(struct wq_trace *trace)
{
	struct wq_trace_ring *ring, *next;

	if (!trace)
		return;
	wq_trace_stop(trace);
	for (ring = trace->rings; ring; ring = next) {
		next = ring->next;
		free_ring(ring);
	}
	pthread_mutex_destroy(&trace->lock);
	free(trace);
}

/* Under the lock, which is all that changes it. */
static bool is_on(const struct wq_trace *trace)
{
	return atomic_load_explicit(&trace->gen, memory_order_relaxed) & 1;
}

/* Under the lock. */
static void open_states(struct wq_trace *trace, struct wq_trace_ring *ring)
{
	const char *hint = "";
	int err;

	if (!ring->states || ring->closed)
		return;
	err = wq_kstate_open(&ring->kstate, ring->tid);
	/* A thread that has ended has no states, and needs no excuse. */
	if (!err || err == -ESRCH || *trace->no_states)
		return;
	if (err == -EACCES || err == -EPERM)
		hint = " (kernel.perf_event_paranoid above 2, a seccomp filter "
		       "or no memory left to lock)";
	snprintf(trace->no_states, sizeof(trace->no_states),
		 "perf_event_open: %s%s", strerror(-err), hint);
}

struct wq_trace_ring *wq_trace_ring(struct wq_trace *trace, pid_t tid,
				    const char *name, bool states)
{
	size_t words = trace->events * WQ_EV_WORDS;
	struct wq_trace_ring *ring;

	ring = calloc(1, sizeof(*ring) + words * sizeof(ring->word[0]));
	if (!ring)
		return NULL;
	ring->trace = trace;
	ring->tid = tid;
	ring->states = states;
	ring->kstate.fd = -1;
	snprintf(ring->name, sizeof(ring->name), "%s", name);
	pthread_mutex_lock(&trace->lock);
	ring->next = trace->rings;
	trace->rings = ring;
	if (is_on(trace))
		open_states(trace, ring);
	pthread_mutex_unlock(&trace->lock);
	return ring;
}

/* Nothing of the last recording, or of the one that goes on.  A ring's gen is
 * odd, or 0 when it was never used. */
static bool is_empty(const struct wq_trace *trace,
		     const struct wq_trace_ring *ring)
{
	uint64_t gen = atomic_load(&trace->gen);

	return !ring->kstate.map && atomic_load(&ring->gen) != ((gen - 1) | 1);
}

/* Drop the closed rings: all, or those that hold nothing.  Under the lock. */
static void drop_closed(struct wq_trace *trace, bool all)
{
	struct wq_trace_ring **link = &trace->rings;

	while (*link) {
		struct wq_trace_ring *ring = *link;

		if (!ring->closed || (!all && !is_empty(trace, ring))) {
			link = &ring->next;
			continue;
		}
		*link = ring->next;
		free_ring(ring);
	}
}

void wq_trace_ring_close(struct wq_trace_ring *ring)
{
	struct wq_trace *trace;

	if (!ring)
		return;
	trace = ring->trace;
	pthread_mutex_lock(&trace->lock);
	ring->closed = true;
	if (!trace->writing)
		drop_closed(trace, false);
	pthread_mutex_unlock(&trace->lock);
}

/* Of some tries, the one in which least passed between two looks. */
static struct wq_moment moment(void)
{
	struct wq_moment best = { 0 };
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 16; i++) {
		uint64_t before = wq_mono_ns();
		uint64_t now = wq_stamp();
		uint64_t took = wq_mono_ns() - before;

		if (took >= least)
			continue;
		least = took;
		best.stamp = now;
		best.mono = before + took / 2;
	}
	return best;
}

int wq_trace_start(struct wq_trace *trace, struct wq_error *err)
{
	struct wq_trace_ring *ring;
	int code = 0;

	pthread_mutex_lock(&trace->lock);
	if (is_on(trace) || trace->writing) {
		pthread_mutex_unlock(&trace->lock);
		return wq_fail(err, EBUSY,
			       "a trace is being recorded or written");
	}
	drop_closed(trace, true);
	*trace->no_states = '\0';
	for (ring = trace->rings; ring; ring = ring->next) {
		wq_kstate_close(&ring->kstate);
		open_states(trace, ring);
	}
	trace->begun = moment();
	atomic_fetch_add(&trace->gen, 1);
	if (*trace->no_states) {
		code = 1; /* no errno: it records */
		wq_fail(err, code, "trace without scheduler states: %s",
			trace->no_states);
	}
	atomic_fetch_add(&wq_trace_recording, 1);
	pthread_mutex_unlock(&trace->lock);
	return code;
}

void wq_trace_stop(struct wq_trace *trace)
{
	struct wq_trace_ring *ring;

	pthread_mutex_lock(&trace->lock);
	if (is_on(trace)) {
		atomic_fetch_sub(&wq_trace_recording, 1);
		atomic_fetch_add(&trace->gen, 1);
		trace->ended = moment();
		for (ring = trace->rings; ring; ring = ring->next)
			wq_kstate_stop(&ring->kstate);
	}
	pthread_mutex_unlock(&trace->lock);
}

void wq_trace_add(struct wq_trace_ring *ring, enum wq_event event,
		  uint64_t stamp, uint64_t id, uint64_t a)
{
	/* Relaxed: who sees a start or a stop late has an event less or more,
	 * and the writer can bear that a ring changes as it reads. */
	uint64_t gen =
		atomic_load_explicit(&ring->trace->gen, memory_order_relaxed);
	_Atomic uint64_t *word;
	uint64_t head;

	/* The flag was another recorder's. */
	if (!(gen & 1))
		return;
	if (atomic_load_explicit(&ring->gen, memory_order_relaxed) != gen) {
		atomic_store_explicit(&ring->head, 0, memory_order_relaxed);
		/* Release: who sees this recording sees its head. */
		atomic_store_explicit(&ring->gen, gen, memory_order_release);
	}
	head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	word = &ring->word[(head & (ring->trace->events - 1)) * WQ_EV_WORDS];
	/* No event while it changes.  The stores behind are releases, so that
	 * who reads one of them and then this word finds it changed; they pair
	 * with the loads in read_event(). */
	atomic_store_explicit(&word[WQ_EV_KIND], 0, memory_order_relaxed);
	atomic_store_explicit(&word[WQ_EV_STAMP], stamp ? stamp : wq_stamp(),
			      memory_order_release);
	atomic_store_explicit(&word[WQ_EV_ID], id, memory_order_release);
	atomic_store_explicit(&word[WQ_EV_A], a, memory_order_release);
	atomic_store_explicit(&word[WQ_EV_KIND], WQ_EV_TAG(head) | event,
			      memory_order_release);
	/* Release: pairs with the load in look(). */
	atomic_store_explicit(&ring->head, head + 1, memory_order_release);
}
