/* SPDX-License-Identifier: MIT */
/*
 * tools/peer.h - what bench-dispatch asks of a thread pool, ours or another's.
 * Layer: tools.
 *
 * One adaptor a file, tools/peer_NAME.c; only that file includes the pool's
 * own headers.  C++ includes this as well.
 *
 * One thread opens a pool, queues, and closes it; at most one pool of a peer is
 * open at a time.
 */
#ifndef TOOLS_PEER_H
#define TOOLS_PEER_H

#include <sched.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Threads of every peer's pool. */
#define PEER_THREADS 2

/** Bytes that a pool may keep in a job. */
#define PEER_OWN 256

/**
 * struct peer_job - one job
 * @own: the pool's, from prepare() on
 * @run: what a worker has to call, with the job, once a submit()
 * @enqueued, @started, @ended: ticks of wq_stamp(), for every pool alike
 * @compute_ns: how long @run computes
 * @cpu: where it started
 *
 * A multiple of a cache line, so that neighbours share none.
 */
struct peer_job {
	unsigned char own[PEER_OWN] __attribute__((aligned(64)));
	void (*run)(struct peer_job *job);
	uint64_t enqueued;
	uint64_t started;
	uint64_t ended;
	uint64_t compute_ns;
	int cpu;
};

/**
 * struct peer_place - which CPUs
 * @workers: all that the workers may run on
 * @issuer: the one that submit() will be called on, or -1: any of @workers
 */
struct peer_place {
	cpu_set_t workers;
	int issuer;
};

/**
 * struct peer - a kind of pool
 * @name: ends the lines of its figures
 * @version: of what it is, in words; may be called before open()
 * @threads: how many threads the caller has to find and to put on @workers; 0:
 *	the pool places its own
 * @open: 0 or a negative errno; writes *pool only on success
 * @prepare: of a job, once, before its first submit(); not timed; or NULL
 * @submit: queue the job; this is what is timed
 * @pump: give back what has ended, without waiting; not timed; or NULL
 * @finish: every job has run; return when each can be submitted again; or NULL
 * @close: every job has been finished
 */
struct peer {
	const char *name;
	const char *(*version)(void);
	unsigned int threads;
	int (*open)(const struct peer_place *place, void **pool);
	void (*prepare)(void *pool, struct peer_job *job);
	void (*submit)(void *pool, struct peer_job *job);
	void (*pump)(void *pool);
	void (*finish)(void *pool);
	void (*close)(void *pool);
};

extern const struct peer peer_wq_bound;   /* wq/, mode bound */
extern const struct peer peer_wq_unbound; /* wq/, mode unbound:system */
extern const struct peer peer_glib;       /* GThreadPool */
extern const struct peer peer_uv;         /* libuv's uv_queue_work() */
extern const struct peer peer_tbb;        /* oneTBB's task_arena::enqueue() */

#ifdef __cplusplus
}
#endif

#endif /* TOOLS_PEER_H */
