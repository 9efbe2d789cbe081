/* SPDX-License-Identifier: MIT */
/*
 * tools/peer_glib.c - GLib's GThreadPool for bench-dispatch.  Layer: tools.
 *
 * Exclusive: its threads start with it.  With none kept unused for the next
 * pool they also end with it.
 */
#include "tools/peer.h"

#include <errno.h>
#include <glib.h>
#include <stdio.h>

static const char *version(void)
{
	static char text[48];

	snprintf(text, sizeof(text), "GLib %u.%u.%u, GThreadPool",
		 glib_major_version, glib_minor_version, glib_micro_version);
	return text;
}

static void run(gpointer data, gpointer unused)
{
	struct peer_job *job = data;

	(void)unused;
	job->run(job);
}

static int open_pool(const struct peer_place *place, void **out)
{
	GError *why = NULL;
	GThreadPool *pool;

	(void)place;
	g_thread_pool_set_max_unused_threads(0);
	pool = g_thread_pool_new(run, NULL, PEER_THREADS, TRUE, &why);
	if (why) { /* no thread, or too few */
		g_error_free(why);
		if (pool)
			g_thread_pool_free(pool, TRUE, TRUE);
		return -EAGAIN;
	}
	*out = pool;
	return 0;
}

/* Its error can only be one of starting threads, which all run. */
static void submit(void *pool, struct peer_job *job)
{
	g_thread_pool_push(pool, job, NULL);
}

static void close_pool(void *pool)
{
	g_thread_pool_free(pool, FALSE, TRUE);
}

const struct peer peer_glib = {
	.name = "glib",
	.version = version,
	.threads = PEER_THREADS,
	.open = open_pool,
	.submit = submit,
	.close = close_pool,
};
