/* SPDX-License-Identifier: MIT */
/*
 * wq/trace.h - what each thread did, as a Perfetto trace.
 *
 * Each thread that records has a ring of its own and overwrites its oldest
 * events.  While recording is off, an event costs one predicted branch.  The
 * file is a sequence of TracePackets (protos/perfetto/trace of Perfetto): a
 * slice for every job, on the track of its worker, joined by a flow to an
 * instant on the track of the thread that queued it; and, where the kernel
 * gives them, the states of the workers as GenericKernelTaskStateEvent.
 *
 * States come from context-switch records of perf_event_open(2), which a
 * process may read of its own threads where perf_event_paranoid is 2 or less.
 * A thread becomes runnable when we wake it: that time is our stamp of the
 * wake.  Where perf is not allowed the states are left out and a note in the
 * file says so; they are never made up from sums.
 */
#ifndef WQ_TRACE_H
#define WQ_TRACE_H

#include "wq/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum wq_event {
	WQ_EVENT_QUEUE, /* a job was published;           id, a: class */
	WQ_EVENT_START, /* a job begins on this thread;   id, a: class */
	WQ_EVENT_END,   /* it ended;                      id */
	WQ_EVENT_WAKE,  /* this thread woke thread @a (a tid) */
	WQ_EVENT_MODE,  /* the mode was switched;         a: its index */
};

/** struct wq_trace - the recorder; one for a set of pools */
struct wq_trace;

/** struct wq_trace_ring - one thread's; NULL where it does not record */
struct wq_trace_ring;

/**
 * wq_trace_new() - with nothing recorded yet, and off
 * @events: a ring holds so many, a power of two from 64 on
 */
int wq_trace_new(size_t events, struct wq_trace **out);
/** wq_trace_free() - and all rings; their threads must rest */
void wq_trace_free(struct wq_trace *trace);

/**
 * wq_trace_ring() - a ring for the thread @tid, or NULL when memory is out
 * @name: as the track is called, copied
 * @states: also record its scheduler states, if the kernel lets us
 */
struct wq_trace_ring *wq_trace_ring(struct wq_trace *trace, pid_t tid,
				    const char *name, bool states);
/** wq_trace_ring_close() - its thread ends; what it recorded stays */
void wq_trace_ring_close(struct wq_trace_ring *ring);

/**
 * wq_trace_start() - begin to record, forgetting what was there
 *
 * Return: 0; a positive number when it records but scheduler states cannot be
 * had, with the reason in @err; a negative errno when it does not record.
 */
int wq_trace_start(struct wq_trace *trace, struct wq_error *err);
void wq_trace_stop(struct wq_trace *trace);

/** struct wq_trace_on - the flag that the job path looks at */
extern _Atomic unsigned int wq_trace_recording;

void wq_trace_add(struct wq_trace_ring *ring, enum wq_event event,
		  uint64_t stamp, uint64_t id, uint64_t a);

/** wq_trace_event() - the owner of @ring only; free when off
 * @stamp: of wq/clock.h */
static inline void wq_trace_event(struct wq_trace_ring *ring,
				  enum wq_event event, uint64_t stamp,
				  uint64_t id, uint64_t a)
{
	/* Relaxed: an event more or less at the border is no harm. */
	if (__builtin_expect(atomic_load_explicit(&wq_trace_recording,
						  memory_order_relaxed) != 0,
			     0) &&
	    ring)
		wq_trace_add(ring, event, stamp, id, a);
}

/** struct wq_trace_names - what numbers are called in the file */
struct wq_trace_names {
	const char *const *classes;
	size_t nr_classes;
	const char *(*mode)(unsigned int index);
};

/** struct wq_trace_written - what the file holds */
struct wq_trace_written {
	uint64_t bytes;
	uint64_t jobs;
	uint64_t flows;
	uint64_t states;      /* 0 and @no_states where there are none */
	uint64_t overwritten; /* events that the rings had no room for */
	const char *no_states;
};

/**
 * wq_trace_write() - the rings as a Perfetto file; recording must be stopped
 * @path: made anew, mode 0600; removed again when writing fails
 *
 * Return: 0, -EBUSY while recording, or a negative errno.
 */
int wq_trace_write(struct wq_trace *trace, const char *path,
		   const struct wq_trace_names *names,
		   struct wq_trace_written *out, struct wq_error *err);

#endif /* WQ_TRACE_H */
