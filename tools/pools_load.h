/* SPDX-License-Identifier: MIT */
/*
 * tools/pools_load.h - threads that queue jobs of a given length at a given
 * rate.  Layer: tools.
 */
#ifndef TOOLS_POOLS_LOAD_H
#define TOOLS_POOLS_LOAD_H

#include "wq/wq.h"

#include <stdbool.h>
#include <stdint.h>

/**
 * struct load - what to do; zero it first
 * @job_ns: how long a job computes
 * @gap_ns: from one burst of an issuer to its next, by the clock: a late burst
 *	does not shift those after it
 * @burst: jobs queued at once, 1 to 4096
 * @issuers: threads, 1 to 64
 * @topo: put issuer number i on its CPU number i; NULL leaves them free
 */
struct load {
	uint64_t job_ns;
	uint64_t gap_ns;
	unsigned int burst;
	unsigned int issuers;
	const struct wq_topo *topo;
};

/** struct load_result - @busy: jobs left out, as the one before still waited */
struct load_result {
	uint64_t queued;
	uint64_t done;
	uint64_t busy;
	double seconds;
};

struct load_run;

/**
 * load_start() - let the issuers loose on @wq
 * @load: kept until load_stop()
 *
 * Return: 0, -ENOMEM, or a negative errno of pthread_create().
 */
int load_start(const struct load *load, struct wq *wq, struct load_run **out);

/** load_stop() - end them, wait for the last job, count, and free */
void load_stop(struct load_run *run, struct load_result *out);

/** load_calibrate() - how fast load_compute() is here; before its first use */
void load_calibrate(void);

/** load_compute() - as much arithmetic as takes @ns when undisturbed */
void load_compute(uint64_t ns);

#endif /* TOOLS_POOLS_LOAD_H */
