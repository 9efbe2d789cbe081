/* SPDX-License-Identifier: MIT */
/* A cache's figures as a line of text. */
#include "wq/slab.h"

#include <inttypes.h>
#include <stdio.h>

int wq_cache_slabinfo(const struct wq_cache_stats *s, bool header, char *buf,
		      size_t size)
{
	if (header)
		return snprintf(
			buf, size,
			"# %-14s %11s %8s %7s %10s %12s %9s %7s %10s %5s %9s "
			"%7s %10s %7s %7s %7s",
			"name", "active_objs", "num_objs", "objsize",
			"objperslab", "pagesperslab", "num_slabs", "pages",
			"bytes", "util", "overhead", "remote", "depot_gets",
			"grows", "shrinks", "misses");
	return snprintf(buf, size,
			"%-16s %11" PRIu64 " %8" PRIu64 " %7zu %10u %12u "
			"%9" PRIu64 " %7" PRIu64 " %10" PRIu64 " %4.0f%% "
			"%9" PRIu64 " %7" PRIu64 " %10" PRIu64 " %7" PRIu64
			" %7" PRIu64 " %7" PRIu64,
			s->name, s->active_objs, s->num_objs, s->objsize,
			s->objperslab, s->pagesperslab, s->num_slabs, s->pages,
			s->bytes, s->utilisation, s->overhead, s->remote_frees,
			s->depot_gets, s->grows, s->shrinks, s->misses);
}
