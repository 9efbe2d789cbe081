/* SPDX-License-Identifier: MIT */
/* tools/sum.h - plain SHA-256 of a stream, by libcrypto.  Layer: tools. */
#ifndef TOOLS_SUM_H
#define TOOLS_SUM_H

#include <stddef.h>
#include <stdint.h>

struct sum; /* one stream; one thread at a time */

/** sum_new() - Return: to be freed by sum_free(), or NULL without memory */
struct sum *sum_new(void);

/** sum_add(), sum_end() - Return: 0 or -ENOMEM; @out has 32 bytes */
int sum_add(struct sum *s, const void *data, size_t len);
int sum_end(struct sum *s, uint8_t *out);

/** sum_free() - NULL is allowed */
void sum_free(struct sum *s);

/**
 * sum_file() - the first @size bytes of an open file
 *
 * Return: 0; -ENODATA when it is shorter; -EINTR; or an errno.
 */
int sum_file(int fd, uint64_t size, uint8_t *out);

#endif /* TOOLS_SUM_H */
