/* SPDX-License-Identifier: MIT */
/*
 * wq/kstate.h - private: when one of our threads ran, waited and slept.
 *
 * The kernel's side is a ring of context-switch records for each thread
 * (perf_event_open(2)).  It says when a thread came onto a CPU and when it went
 * off, asleep or only preempted; not when it was woken.  That is our own stamp
 * of the wake, put between the two by wq_state_woken().
 */
#ifndef WQ_KSTATE_H
#define WQ_KSTATE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum wq_switch_kind {
	WQ_SWITCH_IN,      /* onto a CPU */
	WQ_SWITCH_SLEEP,   /* off it, waiting for something */
	WQ_SWITCH_PREEMPT, /* off it, and could go on */
	WQ_SWITCH_EXIT,    /* the thread ended */
};

struct wq_switched {
	uint64_t ns; /* CLOCK_MONOTONIC */
	uint32_t cpu;
	enum wq_switch_kind kind;
};

/**
 * struct wq_kstate - the records of one thread, @tid
 * @fd: -1 where nothing is being recorded
 * @map: NULL where nothing was
 */
struct wq_kstate {
	int fd;
	pid_t tid;
	void *map;
	size_t size;
};

#define WQ_KSTATE_INIT                                                         \
	{                                                                      \
		.fd = -1                                                       \
	}

/**
 * wq_kstate_open() - record the thread @tid of this process from now on
 *
 * A full ring overwrites its oldest records.  WQ_TRACE_PERF=off in the
 * environment makes this fail as where perf is not allowed, for tests.
 *
 * Return: 0; -EACCES or -EPERM where the kernel does not let us; -ENOSYS;
 * -ESRCH when the thread has ended; another negative errno.
 */
int wq_kstate_open(struct wq_kstate *k, pid_t tid);
/** wq_kstate_stop() - no more; what there is stays until wq_kstate_close() */
void wq_kstate_stop(struct wq_kstate *k);
void wq_kstate_close(struct wq_kstate *k);

/**
 * wq_kstate_read() - what was recorded, newest first; after wq_kstate_stop()
 * @out: the caller frees it
 * @lost: counted up by the older records that were overwritten
 *
 * Return: how many, or -ENOMEM.
 */
long wq_kstate_read(const struct wq_kstate *k, struct wq_switched **out,
		    uint64_t *lost);

/* As GenericKernelTaskStateEvent counts them; perf does not tell one sleep from
 * the other. */
enum wq_state {
	WQ_STATE_NONE,
	WQ_STATE_RUNNABLE = 2,
	WQ_STATE_RUNNING = 3,
	WQ_STATE_SLEEP = 4,
	WQ_STATE_DEAD = 7,
};

/*
 * Return: the state that begins; WQ_STATE_NONE when none does, as the thread
 * is in it already, or nothing is known of where it was.
 */
enum wq_state wq_state_switched(enum wq_state was, enum wq_switch_kind kind);
/** wq_state_woken() - a wake of a thread that does not sleep changes nothing */
enum wq_state wq_state_woken(enum wq_state was);

#endif /* WQ_KSTATE_H */
