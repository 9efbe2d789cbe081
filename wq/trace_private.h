/* SPDX-License-Identifier: MIT */
/*
 * wq/trace_private.h - private: rings of events, and what is read from them.
 *
 *	rings of events ---.
 *			    > items, sorted by time > packets > file
 *	rings of switches -'
 */
#ifndef WQ_TRACE_PRIVATE_H
#define WQ_TRACE_PRIVATE_H

#include "wq/kstate.h"
#include "wq/trace.h"

#include <pthread.h>

/* --- trace.c: the rings --- */

/* The words of an event; the last has the kind in its low byte, and above it
 * which event of the recording this is, counted from 1. */
enum { WQ_EV_STAMP, WQ_EV_ID, WQ_EV_A, WQ_EV_KIND, WQ_EV_WORDS };

#define WQ_EV_TAG(n) (((uint64_t)(n) + 1) << 8)

/* Both clocks at one moment. */
struct wq_moment {
	uint64_t stamp;
	uint64_t mono; /* CLOCK_MONOTONIC, ns */
};

/*
 * How fields are protected:
 * I: set before others can see the ring.  L: trace->lock.
 * W: as L, but while trace->writing is set the writer reads without.
 * O: the owner writes, and the writer reads; see wq_trace_add().
 */
struct wq_trace_ring {
	struct wq_trace *trace;     /* I */
	struct wq_trace_ring *next; /* W */
	pid_t tid;                  /* I */
	bool states;                /* I */
	bool closed;                /* L */
	char name[32];              /* I */
	struct wq_kstate kstate;    /* W */
	_Atomic uint64_t gen;       /* O: the recording that it holds */
	_Atomic uint64_t head;      /* O: events ever added in it */
	_Atomic uint64_t word[];    /* O: trace->events times WQ_EV_WORDS */
};

/* @gen is odd while recording; each start and each stop counts it up. */
struct wq_trace {
	size_t events;        /* I: slots of a ring; a power of two */
	_Atomic uint64_t gen; /* written under L, read by owners of rings */
	pthread_mutex_t lock;
	struct wq_trace_ring *rings; /* L: newest first */
	bool writing;                /* L: no ring goes, no recording starts */
	struct wq_moment begun, ended; /* W */
	char no_states[160];           /* W: the first reason, or "" */
};

/* --- trace_items.c: what the rings hold, in order --- */

struct wq_trace_item {
	uint64_t ns;
	uint64_t id, a;  /* as of the event; of a switch @a is the CPU */
	uint64_t flow;   /* counted from 1, or 0: no arrow */
	uint32_t order;  /* as found */
	uint32_t thread; /* whose ring, see wq_trace_items->thread */
	uint32_t issuer; /* of a start that has an arrow: where it comes from */
	uint8_t kind;    /* enum wq_event, or wq_switch_kind if @kernel */
	bool kernel;
	bool open; /* an end that we put in, as the job still ran */
};

struct wq_trace_thread {
	const struct wq_trace_ring *ring;
	uint64_t end; /* events that were there when it was looked at */
	struct wq_switched *switched;
	long nr_switched;
	enum wq_state state; /* as far as the file is written */
	uint32_t cpu;
};

struct wq_trace_items {
	struct wq_trace_thread *thread; /* oldest ring first */
	size_t nr_threads;
	struct wq_trace_item *item;
	size_t nr;
	uint64_t flows;
	uint64_t overwritten, states_overwritten;
};

/** wq_trace_items() - all of the recording; trace->writing is set
 * Return: 0 or -ENOMEM; wq_trace_items_free() in either case. */
int wq_trace_items(struct wq_trace *trace, struct wq_trace_items *items);
void wq_trace_items_free(struct wq_trace_items *items);

/** wq_trace_ns() - the CLOCK_MONOTONIC time of a stamp of this recording */
uint64_t wq_trace_ns(const struct wq_trace *trace, uint64_t stamp);

#endif /* WQ_TRACE_PRIVATE_H */
