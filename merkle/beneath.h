/* SPDX-License-Identifier: MIT */
/* merkle/beneath.h - open what lies below a directory, and nothing else.
 * Layer: merkle. */
#ifndef MERKLE_BENEATH_H
#define MERKLE_BENEATH_H

/**
 * verity_open_beneath() - open @path below @dir without following any symlink
 * @flags: O_CLOEXEC and O_NONBLOCK are added, so that a FIFO put in place of
 *   a file is not waited for
 *
 * openat2(2) with BENEATH, NO_SYMLINKS and NO_MAGICLINKS; only where the
 * kernel has no such call, component by component with O_NOFOLLOW.
 *
 * Return: a descriptor, or a negative errno (-ELOOP, -EXDEV for an escape).
 */
int verity_open_beneath(int dir, const char *path, int flags);

/** verity_open_cached() - the same if it needs no disk: for threads that must
 * not wait.  Return: -EAGAIN when it might; else as above. */
int verity_open_cached(int dir, const char *path, int flags);

#endif /* MERKLE_BENEATH_H */
