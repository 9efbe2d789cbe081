/* SPDX-License-Identifier: MIT */
/*
 * tools/dispatch_report.h - what bench-dispatch prints and saves: ours beside
 * the peers.  Layer: tools.
 *
 * The first pool is ours.  A round's ratio is ours to the best peer of that
 * round, which need not be the best of another.
 */
#ifndef TOOLS_DISPATCH_REPORT_H
#define TOOLS_DISPATCH_REPORT_H

#include "tools/dispatch_load.h"
#include "tools/stats.h"

#include <stdbool.h>

enum { DISPATCH_POOLS = 4, DISPATCH_MAX_ROUNDS = 1000 };

/**
 * struct dispatch_case - a set-up, and all that was measured with it
 * @setup: its name; @spin: with spinners
 * @limits: hold ratios against them, which are for two CPUs
 * @us: the samples, one a round
 */
struct dispatch_case {
	const char *setup;
	bool spin;
	bool limits;
	const struct peer *pools[DISPATCH_POOLS];
	unsigned int rounds;
	double us[DISPATCH_FIGURES][DISPATCH_POOLS][DISPATCH_MAX_ROUNDS];
};

/** dispatch_print() - a line for each figure of each pool, then the ratios
 * with what they should be */
void dispatch_print(const struct dispatch_case *c);

/** dispatch_json() - the same as objects, with all samples, into the array
 * that is open in @j */
void dispatch_json(struct verity_json *j, const struct dispatch_case *c);

#endif /* TOOLS_DISPATCH_REPORT_H */
