/* SPDX-License-Identifier: MIT */
/*
 * wq/sim.h - pools on a made-up machine, under a simulated clock.
 *
 * A discrete-event simulation of local-first pools that takes every decision
 * from wq/place.h, as the real pools do.  The same input gives the same output
 * on every machine: no thread, no clock, no random number.
 */
#ifndef WQ_SIM_H
#define WQ_SIM_H

#include "wq/place.h"

/**
 * struct wq_sim_job - one job of the input, and what became of it
 * @arrive_ns: when it is queued; jobs are sorted by it
 * @cpu: on which CPU (an index into topo->cpu)
 * @work_ns: what it takes at capacity 1024
 * @block_ns: it can be cut at multiples of this; 0 cannot be cut
 * @known: its length is known beforehand, as for a job class seen before;
 *	otherwise it shows only as it runs
 *
 * @start_ns, @end_ns, @first_cpu, @last_cpu: out
 * @splits: out: how often the rest was moved to a bigger CPU
 * @stolen: out: how often it was taken by another CPU before it started
 */
struct wq_sim_job {
	uint64_t arrive_ns;
	size_t cpu;
	uint64_t work_ns;
	uint64_t block_ns;
	bool known;
	uint64_t start_ns;
	uint64_t end_ns;
	size_t first_cpu;
	size_t last_cpu;
	unsigned int splits;
	unsigned int stolen;
};

/**
 * struct wq_sim - the machine
 * @lost_permille: by CPU, the share of its capacity that interrupts take; NULL
 *	for none
 * @wake_ns: from waking a worker to its first instruction; the job waits in the
 *	queue meanwhile, and its CPU runs nothing
 */
struct wq_sim {
	const struct wq_topo *topo;
	struct wq_place place;
	const unsigned int *lost_permille;
	uint64_t wake_ns;
};

/**
 * struct wq_sim_result - of the whole run
 * @makespan_ns: when the last job ended
 * @work_ns: what all CPUs did, at capacity 1024: the sum over all jobs
 * @ready_ns: sum over all jobs of start - arrive
 * @scans: times a CPU looked for the work of others while some waited
 */
struct wq_sim_result {
	uint64_t makespan_ns;
	uint64_t work_ns;
	uint64_t ready_ns;
	uint64_t steals;
	uint64_t splits;
	uint64_t scans;
};

/**
 * wq_sim_run() - all of @jobs, from the first arrival to the last end
 * @jobs: their out fields are set on success
 * @out: set on success
 *
 * Return: 0; -EINVAL for jobs out of order, without work or on a CPU that is
 * not there, for a share lost of more than 1000, and for a @place without
 * balance_ns or busy_factor; -ENOMEM.
 */
int wq_sim_run(const struct wq_sim *sim, struct wq_sim_job *jobs, size_t nr,
	       struct wq_sim_result *out);

#endif /* WQ_SIM_H */
