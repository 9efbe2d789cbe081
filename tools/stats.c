/* SPDX-License-Identifier: MIT */
/* tools/stats.c - what the benchmarks share.  Layer: tools. */
#include "tools/stats.h"

#include "tools/out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double stats_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct stats stats_of(const double *samples, size_t n)
{
	double sorted[STATS_MAX];

	memcpy(sorted, samples, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_value);
	return (struct stats){
		.median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2,
		.min = sorted[0],
		.max = sorted[n - 1],
	};
}

void stats_json(struct verity_json *j, const char *key, const double *samples,
		size_t n)
{
	verity_json_array(j, key);
	for (size_t i = 0; i < n; i++)
		verity_json_double(j, NULL, samples[i]);
	verity_json_end(j, ']');
}

static int save(const struct verity_text *text, const char *path)
{
	int fd, err;

	if (text->err)
		return text->err;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	err = write_full(fd, text->s, text->len);
	if (close(fd) && !err)
		err = -errno;
	return err;
}

int stats_save(struct verity_json *j, const char *path)
{
	int err;

	verity_text_put(&j->out, "\n", 1);
	err = save(&j->out, path);
	verity_json_free(j);
	return err;
}
