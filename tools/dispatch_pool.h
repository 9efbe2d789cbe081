/* SPDX-License-Identifier: MIT */
/*
 * tools/dispatch_pool.h - a pool of bench-dispatch with its workers on the CPUs
 * that they should have.  Layer: tools.
 *
 * Not to be used by two threads.  Errors are negative errno.
 */
#ifndef TOOLS_DISPATCH_POOL_H
#define TOOLS_DISPATCH_POOL_H

#include "tools/peer.h"

struct dispatch_pool {
	const struct peer *peer;
	struct peer_place place;
	void *pool; /* the peer's */
};

/**
 * dispatch_open() - a pool of @peer
 *
 * Each thread of a pool that does not place its own is found with a job, which
 * moves the thread: some live on from the pool before, and have its CPUs.  The
 * calling thread may run on all of @place->workers when this returns.
 *
 * Return: 0; -ETIMEDOUT: so many threads did not come; what the pool gave.
 * With an error the pool may be left open, and the program should end.
 */
int dispatch_open(struct dispatch_pool *p, const struct peer *peer,
		  const struct peer_place *place);

/** dispatch_finish() - all jobs have run; each can be queued again */
void dispatch_finish(struct dispatch_pool *p);

/** dispatch_close() - after dispatch_finish() */
void dispatch_close(struct dispatch_pool *p);

#endif /* TOOLS_DISPATCH_POOL_H */
