/* SPDX-License-Identifier: MIT */
#include "wq/clock.h"
#include "wq/lat.h"

#include <stdio.h>
#include <string.h>

static const char *const part_names[WQ_PARTS] = {
	"enqueue", "queue", "wake",      "dispatch",
	"ready",   "run",   "run_delay", "preempt",
};

const char *wq_part_name(enum wq_part part)
{
	return (unsigned int)part < WQ_PARTS ? part_names[part] : "?";
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* @time, but not before @from nor after @to; leaving that range for another
 * reason than the definition allows is counted. */
static uint64_t within(uint64_t time, uint64_t from, uint64_t to)
{
	time = time > to ? to : time;
	return time < from ? from : time;
}

void wq_job_parts(const struct wq_job *job, struct wq_parts *out,
		  uint64_t *back)
{
	uint64_t end = later(job->t6, job->t1);
	uint64_t t2 = within(job->t2, job->t1, end);
	uint64_t base = later(later(t2, job->free), job->eligible);
	uint64_t awake;

	/* Each stamp is at or after the one before it, but for counters that
	 * differ between CPUs. */
	*back += (job->t6 < job->t1) + (job->t2 < job->t1) +
		 (job->t2 > job->t6) + (base > end) + (job->t7 < job->t6);
	base = within(base, t2, end);
	awake = within(job->t4, base, end);
	out->tick[WQ_PART_ENQUEUE] = t2 - job->t1;
	out->tick[WQ_PART_QUEUE] = base - t2;
	out->tick[WQ_PART_WAKE] = awake - base;
	out->tick[WQ_PART_DISPATCH] = end - awake;
	out->tick[WQ_PART_READY] = end - job->t1;
	out->tick[WQ_PART_RUN] = later(job->t7, job->t6) - job->t6;
}

/* The part of the four that took longest. */
static enum wq_part longest(const struct wq_parts *parts)
{
	enum wq_part most = WQ_PART_ENQUEUE;

	for (int p = WQ_PART_QUEUE; p <= WQ_PART_DISPATCH; p++)
		if (parts->tick[p] > parts->tick[most])
			most = (enum wq_part)p;
	return most;
}

static const char *reason_of_queue(const struct wq_job *job)
{
	if (job->eligible && job->eligible >= job->free)
		return "held back by its workqueue";
	return "behind a job that ran";
}

static const char *reason_of_wake(const struct wq_job *job, uint64_t wake_ns)
{
	if (job->run_delay == WQ_UNSAMPLED)
		return "its worker woke late";
	if (job->run_delay > wake_ns / 2)
		return "its worker stood on a run queue";
	return "its worker's CPU was slow to wake";
}

static const char *reason(const struct wq_job *job, enum wq_part part,
			  uint64_t ns)
{
	switch (part) {
	case WQ_PART_ENQUEUE:
		return "slow to be queued: contention, or the queuer was "
		       "preempted";
	case WQ_PART_QUEUE:
		return reason_of_queue(job);
	case WQ_PART_WAKE:
		return reason_of_wake(job, ns);
	default:
		return "claimed, then its worker was slow or preempted";
	}
}

static double us(uint64_t ticks)
{
	return (double)wq_ticks_to_ns(ticks) / 1000;
}

void wq_job_why(const struct wq_job *job, char *buf, size_t size)
{
	struct wq_parts parts;
	enum wq_part most;
	uint64_t back = 0;
	char moved[96] = "";

	wq_job_parts(job, &parts, &back);
	most = longest(&parts);
	if (job->queued_epoch != job->started_epoch)
		snprintf(moved, sizeof(moved), ", queued in mode %s",
			 wq_mode_name(job->queued_mode));
	snprintf(buf, size,
		 "job %llx, class %u: ready after %.1f us, %.1f of it %s: %s "
		 "(cpu %d to %d, mode %s%s, %u behind it)",
		 (unsigned long long)job->id, job->class,
		 us(parts.tick[WQ_PART_READY]), us(parts.tick[most]),
		 wq_part_name(most),
		 reason(job, most, wq_ticks_to_ns(parts.tick[most])),
		 job->issue_cpu, job->start_cpu,
		 wq_mode_name(job->started_mode), moved, job->depth);
}
