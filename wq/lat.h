/* SPDX-License-Identifier: MIT */
/*
 * wq/lat.h - where the time of each job went.
 *
 *    t1          t2      eligible     t4           t6           t7
 *     |-enqueue--|--- queue ---|-wake--|--dispatch--|----run-----|
 *     |<------------- ready-queue latency ---------->|
 *
 * t1 is taken just before the job is published, t2 immediately before the
 * store that makes it visible.  The claiming worker adds: free, when it was
 * done with its previous job; t4, back from the futex, if it slept; t5,
 * claimed; t6, the last thing before the job's function; t7, the first after.
 *
 *	base      the latest of t2, free and eligible
 *	enqueue   t2 - t1
 *	queue     base - t2
 *	wake      t4 - base if the worker slept and t4 is later, else 0
 *	dispatch  t6 - base - wake
 *	ready     t6 - t1, the sum of the four
 *
 * "eligible" is when a job that its queue held back (max_active, an ordered
 * queue, its own earlier run) was let through: 0 for all others.
 *
 * A span that comes out negative, because counters of two CPUs differ, is 0
 * and is counted; the parts are taken one after the other from clamped times,
 * so that they add up to ready all the same.
 *
 * One writer (a worker, or a thread that runs jobs inline) owns one struct
 * wq_lat_writer.  Memory for a mode is made by wq_lat_prepare() before the
 * mode is used; recording never allocates.
 */
#ifndef WQ_LAT_H
#define WQ_LAT_H

#include "wq/error.h"
#include "wq/hist.h"
#include "wq/mode.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WQ_CLASSES_MAX 16
#define WQ_WORST       64
#define WQ_UNSAMPLED   UINT64_MAX

enum wq_part {
	WQ_PART_ENQUEUE,
	WQ_PART_QUEUE,
	WQ_PART_WAKE,
	WQ_PART_DISPATCH,
	WQ_PART_READY,
	WQ_PART_RUN,
	WQ_PART_RUN_DELAY, /* of wake, on a run queue: 1 wake in 64 */
	WQ_PART_PREEMPT,   /* of run, on a run queue: the same jobs */
	WQ_PARTS,
};

/** wq_part_name() - "enqueue", "queue", ..., "run_delay", "preempt" */
const char *wq_part_name(enum wq_part part);

/**
 * struct wq_job - the record of one job, as its worker leaves it
 * @id: unique among the jobs in flight
 * @t0: when its input was complete, as the caller stamped it, or 0
 * @t1, @t2, @eligible, @free, @t4, @t5, @t6, @t7: ticks, see above; 0 is never
 * @run_delay: ns that the worker was runnable but not running between being
 *	woken and running, and
 * @preempt: the same while the job ran; WQ_UNSAMPLED mostly
 * @depth: jobs that were still waiting where this one was claimed
 * @queued_epoch, @started_epoch: how often the mode had been switched then
 *	(a worker that has not changed over yet may start a job that was queued
 *	just after a switch: then @started_epoch is one less)
 * @queued_mode, @started_mode: indices of the modes then
 * @issue_cpu, @start_cpu, @end_cpu: where; -1 is unknown
 * @worker: which worker; -1 is inline
 * @class: the caller's
 */
struct wq_job {
	uint64_t id;
	uint64_t t0, t1, t2, eligible, free, t4, t5, t6, t7;
	uint64_t run_delay, preempt;
	uint32_t depth;
	uint32_t queued_epoch, started_epoch;
	uint8_t queued_mode, started_mode;
	uint8_t class;
	int16_t issue_cpu, start_cpu, end_cpu;
	int16_t worker;
};

/** struct wq_parts - in ticks, by enum wq_part, up to WQ_PART_RUN */
struct wq_parts {
	uint64_t tick[WQ_PART_RUN + 1];
};

/**
 * wq_job_parts() - take a job apart
 * @back: counted up for each span that was negative
 */
void wq_job_parts(const struct wq_job *job, struct wq_parts *out,
		  uint64_t *back);

/**
 * wq_job_why() - one line: why this job was slow
 *
 * Names the part that took most, what it says ("waited behind a running job",
 * "woken late: run queue", "woken late: CPU asleep", ...), the CPUs, and the
 * mode if it changed while the job waited.
 */
void wq_job_why(const struct wq_job *job, char *buf, size_t size);

/**
 * struct wq_lat_config
 * @bytes: all histograms together may take so much; 0 is 64 MiB
 * @classes: 1 to WQ_CLASSES_MAX
 * @topo: kept, not owned
 * @say: called with one line when memory is short and a coarser form is taken:
 *	first 5 bits an octave, then one histogram a worker instead of one a
 *	CPU and worker, last nothing (-ENOMEM); may be NULL
 */
struct wq_lat_config {
	size_t bytes;
	unsigned int classes;
	const struct wq_topo *topo;
	void (*say)(void *arg, const char *line);
	void *arg;
};

struct wq_lat;
struct wq_lat_writer;

int wq_lat_new(const struct wq_lat_config *config, struct wq_lat **out);
/** wq_lat_free() - and all its writers, which must rest; NULL is allowed */
void wq_lat_free(struct wq_lat *lat);

/**
 * wq_lat_writer_new() - for one more thread
 * @worker: what struct wq_job says of it
 *
 * The writer belongs to @lat.  A thread that ends gives it back with
 * wq_lat_writer_rest(); what it has recorded stays, and the next
 * wq_lat_writer_new() may hand it out again.
 *
 * Return: NULL when memory is out.
 */
struct wq_lat_writer *wq_lat_writer_new(struct wq_lat *lat, int worker);
void wq_lat_writer_rest(struct wq_lat_writer *writer);

/**
 * wq_lat_prepare() - memory for jobs that @writer will start in a mode
 * @cpus: where it may run then; a job started elsewhere is recorded under the
 *	entry of "elsewhere" (read with cpu -2)
 *
 * May be called while the writer records in that and other modes; idempotent,
 * and a larger @cpus later adds what is missing.  Takes a lock.
 *
 * Return: 0 or -ENOMEM, also for the bound.
 */
int wq_lat_prepare(struct wq_lat_writer *writer, unsigned int mode,
		   const cpu_set_t *cpus);

/** wq_lat_record() - the writer's; the mode must have been prepared, else the
 * job is counted as lost */
void wq_lat_record(struct wq_lat_writer *writer, const struct wq_job *job);

#define WQ_ANY       (-1)
#define WQ_ELSEWHERE (-2)

/**
 * wq_lat_read() - merge what was recorded
 * @mode, @class: or WQ_ANY
 * @cpu: where the jobs started, WQ_ANY, or WQ_ELSEWHERE
 * @sum: zeroed by this function, freed with wq_hist_sum_free() by the caller
 *
 * Return: 0 or -ENOMEM.
 */
int wq_lat_read(struct wq_lat *lat, int mode, int class, int cpu,
		enum wq_part part, struct wq_hist_sum *sum);

/** wq_lat_worst() - copy the worst jobs by ready latency, worst first
 * Return: how many, at most @max and WQ_WORST. */
size_t wq_lat_worst(struct wq_lat *lat, struct wq_job *out, size_t max);

/** wq_lat_reset() - forget what was recorded; writers may record meanwhile, and
 * what they record during the call may or may not be kept */
void wq_lat_reset(struct wq_lat *lat);

/**
 * struct wq_lat_stats
 * @jobs: recorded
 * @lost: not recorded, for want of memory
 * @backwards: spans that came out negative
 * @bytes, @limit: memory of all histograms, and its bound
 * @bits: precision of those made last
 * @per_cpu: false when memory was too short to keep started-on CPUs apart
 */
struct wq_lat_stats {
	uint64_t jobs;
	uint64_t lost;
	uint64_t backwards;
	size_t bytes;
	size_t limit;
	unsigned int bits;
	bool per_cpu;
};

void wq_lat_stats(struct wq_lat *lat, struct wq_lat_stats *out);

#endif /* WQ_LAT_H */
