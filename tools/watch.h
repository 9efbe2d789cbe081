/* SPDX-License-Identifier: MIT */
/*
 * tools/watch.h - notice that a file changes while it is read.
 *
 * Layer: tools.  A read lease (fcntl(2), F_SETLEASE) is granted only while no
 * one has the file open for writing, and a writer who comes later has to wait
 * for us and is seen.  That binds all writers only where every write goes
 * through the file that was opened: on local file systems, but not on overlay,
 * FUSE or network ones, where others write below or elsewhere.  There, and
 * where the lease is not granted (another owner's file, a writer already
 * there), only the file's size, times and inode are compared, and a change
 * within one tick of the clock, or through a mapping, may be missed: the caller
 * says so.
 */
#ifndef TOOLS_WATCH_H
#define TOOLS_WATCH_H

#include <stdbool.h>
#include <sys/stat.h>

struct watch {
	struct stat st; /* as the file was at the beginning */
	bool lease;     /* held, and it binds all writers */
	int why;        /* else the negative errno; -EOPNOTSUPP: it would not */
	struct timespec begin;
};

/** watch_begin() - @fd is open for reading; Return: 0 or a negative errno */
int watch_begin(struct watch *w, int fd);

/**
 * watch_end() - does the file still have the bytes it had
 *
 * The lease ends when @fd is closed.  Under a lease younger than a second no
 * one can have written, and nothing is asked: most files of a tree are small.
 *
 * Return: 0; -ESTALE when it changed; or another errno.
 */
int watch_end(const struct watch *w, int fd);

/** watch_why() - Return: static words for the error that refused a lease */
const char *watch_why(int why);

/** watch_path() - does @path below @dir still lead to the file; a rename may
 * have put another in its place.  Return: as watch_end(). */
int watch_path(const struct watch *w, int dir, const char *path);

/** watch_same() - Return: whether both describe the same bytes, as far as
 * inode, size and times can tell */
bool watch_same(const struct stat *a, const struct stat *b);

#endif /* TOOLS_WATCH_H */
