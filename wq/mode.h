/* SPDX-License-Identifier: MIT */
/*
 * wq/mode.h - how jobs are bound to CPUs, and what that is called.
 *
 *	inline                      on the thread that queues
 *	bound                       by the pool of the CPU that queues
 *	unbound[:SCOPE][,strict]    by any CPU of the issuing CPU's pod
 *	local-first                 by the CPU that queues; by others once the
 *				    job or its backlog turns out long
 *
 * SCOPE is cpu, smt, cache, cache_shard, numa or system; system when left out.
 * Without strict a worker is only brought back to its pod when it starts to
 * work, and may be moved by the scheduler in between; with it, never.
 */
#ifndef WQ_MODE_H
#define WQ_MODE_H

#include "wq/topo.h"

enum wq_binding {
	WQ_INLINE,
	WQ_BOUND,
	WQ_LOCAL_FIRST,
	WQ_UNBOUND,
};

struct wq_mode {
	enum wq_binding binding;
	enum wq_scope scope; /* of WQ_UNBOUND */
	bool strict;         /* of WQ_UNBOUND */
};

/** WQ_MODES - modes are numbered from 0, for tables */
#define WQ_MODES (WQ_UNBOUND + 2 * WQ_SCOPES)

/** wq_mode_index(), wq_mode_at() - to the number and back */
unsigned int wq_mode_index(struct wq_mode mode);
struct wq_mode wq_mode_at(unsigned int index);

/** wq_mode_name() - as wq_mode_parse() takes it; static */
const char *wq_mode_name(unsigned int index);

/** wq_mode_parse() - Return: 0, or -EINVAL with what is possible in @err */
int wq_mode_parse(const char *text, struct wq_mode *out, struct wq_error *err);

#endif /* WQ_MODE_H */
