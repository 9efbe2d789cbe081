/* SPDX-License-Identifier: MIT */
/*
 * tools/stats.h - what the benchmarks share: the clock, what many samples come
 * to, and the file of JSON that keeps them all.  Layer: tools.
 */
#ifndef TOOLS_STATS_H
#define TOOLS_STATS_H

#include "merkle/json.h"

/** Most samples that are ever taken of one thing. */
#define STATS_MAX 1001

/** stats_now() - seconds on the monotonic clock, from no particular time */
double stats_now(void);

struct stats {
	double median; /* of an even number, the mean of the middle two */
	double min, max;
};

/** stats_of() - what @n samples come to; @n is 1 to STATS_MAX */
struct stats stats_of(const double *samples, size_t n);

/** stats_json() - add an array of @n samples, as taken */
void stats_json(struct verity_json *j, const char *key, const double *samples,
		size_t n);

/**
 * stats_save() - write the JSON and a newline to the file @path, in place of
 * what was there, and free its memory
 *
 * Return: 0, -ENOMEM, or what opening or writing gave.
 */
VERITY_MUST_CHECK int stats_save(struct verity_json *j, const char *path);

#endif /* TOOLS_STATS_H */
