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
	trace->events = events;
	pthread_mutex_init(&trace->lock, NULL);
	*out = trace;
	return 0;
}

void wq_trace_free(struct wq_trace *trace)
{
	struct wq_trace_ring *ring, *next;

	if (!trace)
		return;
	wq_trace_stop(trace);
	for (ring = trace->rings; ring; ring = next) {
		next = ring->next;
		wq_kstate_close(&ring->kstate);
		free(ring);
	}
	pthread_mutex_destroy(&trace->lock);
	free(trace);
}

/* Under the lock. */
static void open_states(struct wq_trace *trace, struct wq_trace_ring *ring)
{
	int err;

	if (!ring->states || ring->closed)
		return;
	err = wq_kstate_open(&ring->kstate, ring->tid);
	if (err && !*trace->no_states)
		snprintf(trace->no_states, sizeof(trace->no_states),
			 "perf_event_open: %s; "
			 "/proc/sys/kernel/perf_event_paranoid must be 2 or "
			 "less",
			 strerror(-err));
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
	if (trace->on)
		open_states(trace, ring);
	pthread_mutex_unlock(&trace->lock);
	return ring;
}

void wq_trace_ring_close(struct wq_trace_ring *ring)
{
	if (!ring)
		return;
	pthread_mutex_lock(&ring->trace->lock);
	ring->closed = true;
	pthread_mutex_unlock(&ring->trace->lock);
}

/* Rings of threads that ended before this recording hold nothing of it. */
static void drop_closed(struct wq_trace *trace)
{
	struct wq_trace_ring **link = &trace->rings;

	while (*link) {
		struct wq_trace_ring *ring = *link;

		if (!ring->closed) {
			link = &ring->next;
			continue;
		}
		*link = ring->next;
		wq_kstate_close(&ring->kstate);
		free(ring);
	}
}

int wq_trace_start(struct wq_trace *trace, struct wq_error *err)
{
	struct wq_trace_ring *ring;
	int code = 0;

	pthread_mutex_lock(&trace->lock);
	if (trace->on) {
		pthread_mutex_unlock(&trace->lock);
		return wq_fail(err, EBUSY, "a trace is being recorded");
	}
	drop_closed(trace);
	*trace->no_states = '\0';
	for (ring = trace->rings; ring; ring = ring->next) {
		wq_kstate_close(&ring->kstate);
		open_states(trace, ring);
	}
	atomic_fetch_add(&trace->gen, 1);
	trace->on = true;
	if (*trace->no_states) {
		wq_fail(err, 1, "trace without scheduler states: %s",
			trace->no_states);
		code = 1;
	}
	atomic_fetch_add(&wq_trace_recording, 1);
	pthread_mutex_unlock(&trace->lock);
	return code;
}

void wq_trace_stop(struct wq_trace *trace)
{
	pthread_mutex_lock(&trace->lock);
	if (trace->on) {
		trace->on = false;
		trace->stopped = wq_stamp();
		atomic_fetch_sub(&wq_trace_recording, 1);
	}
	pthread_mutex_unlock(&trace->lock);
}

void wq_trace_add(struct wq_trace_ring *ring, enum wq_event event,
		  uint64_t stamp, uint64_t id, uint64_t a)
{
	uint64_t gen =
		atomic_load_explicit(&ring->trace->gen, memory_order_relaxed);
	uint64_t head;
	_Atomic uint64_t *word;

	/* The flag may be another recorder's: then this goes into a ring that
	 * nobody asks for, until the next start forgets it. */
	if (atomic_load_explicit(&ring->gen, memory_order_relaxed) != gen) {
		atomic_store_explicit(&ring->head, 0, memory_order_relaxed);
		atomic_store_explicit(&ring->gen, gen, memory_order_relaxed);
	}
	head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	word = &ring->word[(head & (ring->trace->events - 1)) * WQ_EV_WORDS];
	atomic_store_explicit(&word[WQ_EV_STAMP], stamp, memory_order_relaxed);
	atomic_store_explicit(&word[WQ_EV_ID], id, memory_order_relaxed);
	atomic_store_explicit(&word[WQ_EV_A], a, memory_order_relaxed);
	atomic_store_explicit(&word[WQ_EV_KIND], event, memory_order_relaxed);
	/* Release: pairs with the load in trace_write.c. */
	atomic_store_explicit(&ring->head, head + 1, memory_order_release);
}
