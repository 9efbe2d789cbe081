/* SPDX-License-Identifier: MIT */
/*
 * wq/trace_private.h - private: rings of events, and of scheduler states.
 */
#ifndef WQ_TRACE_PRIVATE_H
#define WQ_TRACE_PRIVATE_H

#include "wq/trace.h"

#include <pthread.h>

enum { WQ_EV_STAMP, WQ_EV_ID, WQ_EV_A, WQ_EV_KIND, WQ_EV_WORDS };

/** struct wq_kstate - the kernel's records of one thread; closed: @fd is -1 */
struct wq_kstate {
	int fd;
	void *map;
	size_t size;
};

/** struct wq_switched - a thread came onto a CPU, or went off it */
struct wq_switched {
	uint64_t ns; /* CLOCK_MONOTONIC */
	uint32_t cpu;
	bool in;
	bool preempted; /* off, but still runnable */
};

/** wq_kstate_open() - record the states of @tid from now on
 * Return: 0 or a negative errno. */
int wq_kstate_open(struct wq_kstate *k, pid_t tid);
void wq_kstate_close(struct wq_kstate *k);

/**
 * wq_kstate_read() - what was recorded, oldest first; the caller frees *out
 * @lost: set when the ring was full: what came later is missing
 *
 * Return: how many, or -ENOMEM.
 */
long wq_kstate_read(struct wq_kstate *k, struct wq_switched **out, bool *lost);

/*
 * How fields are protected:
 * I: set before others can see the ring.  A: atomic.  L: trace->lock.
 * O: the owner's; others read it when it rests or not at all.
 */
struct wq_trace_ring {
	struct wq_trace *trace;     /* I */
	struct wq_trace_ring *next; /* I */
	pid_t tid;                  /* I */
	bool states;                /* I */
	bool closed;                /* L */
	char name[32];              /* I */
	struct wq_kstate kstate;    /* L */
	_Atomic uint64_t gen;       /* A: of the recording it holds */
	_Atomic uint64_t head;      /* A: events ever added; owner writes */
	_Atomic uint64_t word[];    /* A: relaxed; published by @head */
};

struct wq_trace {
	size_t events;        /* I: a ring; a power of two */
	_Atomic uint64_t gen; /* A: counts recordings */
	pthread_mutex_t lock;
	struct wq_trace_ring *rings; /* L */
	bool on;                     /* L */
	uint64_t stopped;            /* L: stamp */
	char no_states[160];         /* L: why there are none, or "" */
};

#endif /* WQ_TRACE_PRIVATE_H */
