/* SPDX-License-Identifier: MIT */
/*
 * tools/spread.h - run independent jobs on several threads.  Layer: tools.
 */
#ifndef TOOLS_SPREAD_H
#define TOOLS_SPREAD_H

#include <stdint.h>

#define SPREAD_MAX 256 /* threads */

/** spread_cpus() - Return: the CPUs this process may use, 1 to SPREAD_MAX */
unsigned int spread_cpus(void);

/**
 * spread_run() - run @jobs jobs, each once
 * @threads: at most; the calling thread is worker 0
 * @fn: called as fn(arg, worker, job), in increasing order of jobs on each
 *   worker; an error stops the handing out of further jobs
 *
 * Return: 0; the first error that a job gave; or -EINTR when spread_stop()
 * was called.
 */
int spread_run(unsigned int threads, uint64_t jobs,
	       int (*fn)(void *arg, unsigned int worker, uint64_t job),
	       void *arg);

/** A queue from one producer to all workers. */
struct feed;

/**
 * spread_feed() - run jobs while they are still being found
 * @produce: called once, on the calling thread; hands jobs over with
 *   feed_put(), and an error ends everything
 * @consume: called as consume(arg, worker, job) on any thread, in no order;
 *   the calling thread joins in when it has produced all.  At the end it is
 *   called once more on each thread, with a job of NULL, to let go of what that
 *   worker keeps: descriptors are each thread's own, so no other can close
 *   them, and what @produce opens after the start only the caller sees
 *
 * Return: as spread_run().
 */
int spread_feed(unsigned int threads,
		int (*produce)(void *arg, struct feed *feed),
		int (*consume)(void *arg, unsigned int worker, void *job),
		void *arg);

/**
 * feed_put() - hand one job over; not NULL
 *
 * Return: 0, -ENOMEM, or the error that a worker gave: produce no more.
 */
int feed_put(struct feed *feed, void *job);

/** spread_stop() - hand out no more jobs; async-signal-safe, for good */
void spread_stop(int signal);

/** spread_stopped() - Return: the signal given to spread_stop(), or 0 */
int spread_stopped(void);

/** spread_catch() - let SIGINT and SIGTERM call spread_stop(); a second one
 * ends the process at once */
void spread_catch(void);

#endif /* TOOLS_SPREAD_H */
