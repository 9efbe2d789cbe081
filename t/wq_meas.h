/* SPDX-License-Identifier: MIT */
/*
 * t/wq_meas.h - what tests of wq share that look at where a job runs.
 *
 * Only for what is linked with wq-bench.a and has WQ_BENCH defined.
 */
#ifndef T_WQ_MEAS_H
#define T_WQ_MEAS_H

#include "t/wq_help.h"
#include "wq/pool.h"

/**
 * struct wq_seen - an item that notes who ran it, and where
 * @spin_ns: how long it computes
 * @tid, @cpu: of the thread; @home: CPU of its worker's queue, -1 if inline
 * @mask: of the thread
 * @ran: how often
 */
struct wq_seen {
	struct wq_work work; /* first */
	uint64_t spin_ns;
	_Atomic int tid;
	_Atomic int cpu;
	_Atomic int home;
	cpu_set_t mask;
	_Atomic unsigned int ran;
};

void wq_seen_init(struct wq_seen *seen, unsigned int class, uint64_t spin_ns);

/** wq_seen_on() - initialize, run in the pool of @cpu and wait */
void wq_seen_on(struct wq *wq, struct wq_seen *seen, int cpu, uint64_t spin_ns);

/** wq_meas_flush() - the same as wq_flush(), but bail() when it takes minutes */
void wq_meas_flush(struct wq *wq);

/**
 * wq_meas_wakes(), wq_meas_recalls(), wq_meas_queued() - over all CPUs; the
 * first without the second
 */
uint64_t wq_meas_wakes(struct wq_pools *pools);
uint64_t wq_meas_recalls(struct wq_pools *pools);
uint64_t wq_meas_queued(struct wq_pools *pools);

/** wq_meas_pin() - the calling thread, to @cpu; false when that is refused */
bool wq_meas_pin(int cpu);

#endif /* T_WQ_MEAS_H */
