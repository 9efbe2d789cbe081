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

/** spread_stop() - hand out no more jobs; async-signal-safe, for good */
void spread_stop(int signal);

/** spread_stopped() - Return: the signal given to spread_stop(), or 0 */
int spread_stopped(void);

/** spread_catch() - let SIGINT and SIGTERM call spread_stop(); a second one
 * ends the process at once */
void spread_catch(void);

#endif /* TOOLS_SPREAD_H */
