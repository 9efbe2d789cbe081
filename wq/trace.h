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
 * wake.  What wakes it otherwise leaves no stamp, and so no time in which it
 * was runnable.  Where perf is not allowed the states are left out and a note
 * in the file says so; they are never made up from sums.
 *
 * Times in the file are CLOCK_MONOTONIC.  Stamps are turned into it between
 * the start and the stop of the recording, where both clocks are read side by
 * side: the rate that wq/clock.h found at first is off by about 1 us a second.
 */
#ifndef WQ_TRACE_H
#define WQ_TRACE_H

#include "wq/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A job's id is 0 where there is none, and then no arrow leads to it.  An id
 * may be used again once its job has started.  A queueing that is stamped
 * later than the start that it led to, as the publisher was held up in
 * between, is shown at the time of that start.
 */
enum wq_event {
	WQ_EVENT_QUEUE, /* a job was published;           id, a: class */
	WQ_EVENT_START, /* a job begins on this thread;   id, a: class */
	WQ_EVENT_END,   /* it ended;                      id */
	WQ_EVENT_WAKE,  /* this thread wakes thread @a (a tid) */
	WQ_EVENT_MODE,  /* the mode was switched;         a: its index */
};

/** struct wq_trace - the recorder; one for a set of pools */
struct wq_trace;

/** struct wq_trace_ring - one thread's; NULL where it does not record */
struct wq_trace_ring;

/**
 * wq_trace_new() - with nothing recorded yet, and off
 * @events: a ring holds so many, a power of two from 64 on
 *
 * Return: 0, -EINVAL or -ENOMEM.
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
/**
 * wq_trace_ring_close() - its thread ends and must not use it any more
 *
 * What it recorded stays until the next start; a ring without is freed at
 * once.  NULL is allowed.
 */
void wq_trace_ring_close(struct wq_trace_ring *ring);

/**
 * wq_trace_start() - begin to record, forgetting what was there
 *
 * Return: 0; 1 when it records but scheduler states cannot be had, with the
 * reason in @err; -EBUSY when it records already, or is being written.
 */
int wq_trace_start(struct wq_trace *trace, struct wq_error *err);
/** wq_trace_stop() - nothing happens when it does not record */
void wq_trace_stop(struct wq_trace *trace);

/** wq_trace_recording - how many recorders are on; the job path looks at it */
extern _Atomic unsigned int wq_trace_recording;

/** wq_trace_add() - what wq_trace_event() does while some recorder is on */
void wq_trace_add(struct wq_trace_ring *ring, enum wq_event event,
		  uint64_t stamp, uint64_t id, uint64_t a);

/**
 * wq_trace_event() - the owner of @ring only; free when off
 * @stamp: of wq/clock.h, or 0 for now
 */
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

/**
 * struct wq_trace_names - what numbers are called in the file
 * @classes: of jobs; one without a name is called "job"
 * @mode: may be NULL, and may return NULL
 */
struct wq_trace_names {
	const char *const *classes;
	size_t nr_classes;
	const char *(*mode)(unsigned int index);
};

/**
 * struct wq_trace_written - what the file holds
 * @flows: jobs of which both queueing and start are there
 * @states: beginnings of scheduler states
 * @overwritten, @states_overwritten: older events and context switches that
 *	the rings had no room for
 * @no_states: why threads have no states, or NULL; lives until the next start
 */
struct wq_trace_written {
	uint64_t bytes;
	uint64_t jobs;
	uint64_t flows;
	uint64_t states;
	uint64_t overwritten;
	uint64_t states_overwritten;
	const char *no_states;
};

/**
 * wq_trace_write() - the rings as a Perfetto file; recording must be stopped
 * @path: made anew, mode 0600; removed again when writing fails, unless it is
 *	no file but a device or a pipe
 * @out: only on success
 *
 * Return: 0; -EBUSY while recording or being written; -ENOMEM; what open(2) and
 * write(2) say.
 */
int wq_trace_write(struct wq_trace *trace, const char *path,
		   const struct wq_trace_names *names,
		   struct wq_trace_written *out, struct wq_error *err);

#endif /* WQ_TRACE_H */
