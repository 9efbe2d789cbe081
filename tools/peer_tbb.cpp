/* SPDX-License-Identifier: MIT */
/*
 * tools/peer_tbb.cpp - oneTBB's task_arena::enqueue() for bench-dispatch.
 * Layer: tools.
 *
 * Its threads start with the first job of the process and serve every arena
 * from then on, so a new pool here is a new arena before the same threads.  To
 * end them with tbb::finalize() can hang (2021.8, on one CPU).
 */
#include "tools/peer.h"

#include <cerrno>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/version.h>

namespace
{

const char *version()
{
	return "oneTBB " TBB_VERSION_STRING ", task_arena::enqueue";
}

int open_pool(const struct peer_place *, void **out)
{
	try {
		/* It counts the thread that queues, which never works here. */
		static tbb::global_control limit(
			tbb::global_control::max_allowed_parallelism,
			PEER_THREADS + 1);
		auto *arena = new tbb::task_arena(PEER_THREADS, 0);

		arena->initialize();
		*out = arena;
		return 0;
	} catch (...) {
		return -ENOMEM;
	}
}

void submit(void *pool, struct peer_job *job)
{
	static_cast<tbb::task_arena *>(pool)->enqueue([job] { job->run(job); });
}

void close_pool(void *pool)
{
	delete static_cast<tbb::task_arena *>(pool);
}

} // namespace

const struct peer peer_tbb = { "tbb",     version, PEER_THREADS,
			       open_pool, nullptr, submit,
			       nullptr,   nullptr, close_pool };
