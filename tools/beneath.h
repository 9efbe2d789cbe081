/* SPDX-License-Identifier: MIT */
/* tools/beneath.h - open what lies below a directory, and nothing else.
 * Layer: tools. */
#ifndef TOOLS_BENEATH_H
#define TOOLS_BENEATH_H

/**
 * open_beneath() - open @path below @dir without following any symlink
 * @flags: O_CLOEXEC and O_NONBLOCK are added, so that a FIFO put in place of
 *   a file is not waited for
 *
 * openat2(2) with BENEATH, NO_SYMLINKS and NO_MAGICLINKS; only where the
 * kernel has no such call, component by component with O_NOFOLLOW.
 *
 * Return: a descriptor, or a negative errno (-ELOOP, -EXDEV for an escape).
 */
int open_beneath(int dir, const char *path, int flags);

#endif /* TOOLS_BENEATH_H */
