/* SPDX-License-Identifier: MIT */
/* tools/input.h - open a regular file to read.  Layer: tools. */
#ifndef TOOLS_INPUT_H
#define TOOLS_INPUT_H

#include <sys/stat.h>

/**
 * input_open() - open @path, which must be a regular file
 *
 * Never waits: a FIFO or a terminal is refused, not opened for real.  Says
 * what is the matter itself.
 *
 * Return: a descriptor with *st filled in, or a negative errno.
 */
int input_open(const char *path, struct stat *st);

/** input_kind() - "a directory", "a FIFO", and so on */
const char *input_kind(mode_t mode);

#endif /* TOOLS_INPUT_H */
