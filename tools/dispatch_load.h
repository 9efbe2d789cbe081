/* SPDX-License-Identifier: MIT */
/*
 * tools/dispatch_load.h - what bench-dispatch gives the pools to do, and the
 * figures that come of it.  Layer: tools.
 *
 * Two loads, both queued by the calling thread:
 *
 *	idle   one empty job a millisecond by the clock; the workers sleep in
 *	       between
 *	burst  32 jobs of 10 us at once, 1.5 ms after the last of the burst
 *	       before ended
 *
 * A few jobs at the start of each are not counted.  Errors are negative errno.
 */
#ifndef TOOLS_DISPATCH_LOAD_H
#define TOOLS_DISPATCH_LOAD_H

#include "tools/dispatch_pool.h"

#define DISPATCH_MAX_JOBS   10000 /* of the idle load */
#define DISPATCH_MAX_BURSTS 2000  /* of the burst load */

/**
 * enum dispatch_figure - in microseconds
 *
 * P50, P99: from just before submit() until the job's first instruction, of
 * all jobs.  MAKESPAN: from the first submit() of a burst until its last job
 * has ended; the median.  CALL: how long submit() takes; the median; of a burst
 * the mean of its jobs.  CPU: CPU time of all threads but the issuer and the
 * spinners, a job, what the job itself computes included.
 */
enum dispatch_figure {
	DISPATCH_IDLE_P50,
	DISPATCH_IDLE_P99,
	DISPATCH_IDLE_CALL,
	DISPATCH_IDLE_CPU,
	DISPATCH_BURST_P50,
	DISPATCH_BURST_P99,
	DISPATCH_BURST_MAKESPAN,
	DISPATCH_BURST_CALL,
	DISPATCH_BURST_CPU,
	DISPATCH_FIGURES,
};

/** dispatch_figure_name() - "idle-p50" and so on */
const char *dispatch_figure_name(enum dispatch_figure figure);

/** struct dispatch_sample - @us: the figures of one pool in one round
 * @backward: jobs of which a later stamp, of another CPU, lies before an
 *	earlier one, taken as 0 */
struct dispatch_sample {
	double us[DISPATCH_FIGURES];
	uint64_t backward;
};

/** dispatch_calibrate() - once, while the machine is quiet */
void dispatch_calibrate(void);

/**
 * dispatch_idle(), dispatch_burst() - put a load on @p, and fill in its figures
 *
 * The caller may run only where @p->place.issuer says.
 *
 * Return: 0; -ETIMEDOUT: jobs did not run, and @p cannot be closed; -EXDEV: one
 * ran outside of @p->place.workers.
 */
int dispatch_idle(struct dispatch_pool *p, unsigned int jobs,
		  struct dispatch_sample *out);
int dispatch_burst(struct dispatch_pool *p, unsigned int bursts,
		   struct dispatch_sample *out);

#endif /* TOOLS_DISPATCH_LOAD_H */
