/* SPDX-License-Identifier: MIT */
/*
 * tools/store.h - files that appear whole or not at all.  Layer: tools.
 *
 * The bytes go into a file without a name (O_TMPFILE) where the file system
 * has that, so that a killed process leaves nothing behind; else into one
 * named STORE_TMP_PREFIX, the process and a number, which the next run takes
 * away.
 */
#ifndef TOOLS_STORE_H
#define TOOLS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_TMP_PREFIX ".verity-tmp."

struct store {
	int dir;      /* the caller's */
	int fd;       /* write here; -1 when not open */
	char tmp[64]; /* "" while the file has no name; relative to dir */
};
#define STORE_INIT                                                             \
	{                                                                      \
		-1, -1, ""                                                     \
	}

/**
 * store_begin() - make the new file
 * @dir: holds the bytes meanwhile, and what the final name is relative to
 *
 * Return: 0 or a negative errno.
 */
int store_begin(struct store *s, int dir);

/**
 * store_flush() - have errors of writing come out now, before there is a name
 * @durable: fsync too
 *
 * Return: 0 or a negative errno.
 */
int store_flush(struct store *s, bool durable);

/**
 * store_commit() - give the file its name, in place of what was there
 * @name: its path below the directory given to store_begin(); no symlink in
 *   it is followed
 * @durable: fsync the file before; without it the caller makes many files
 *   durable together
 *
 * Flushes first.  The name itself is durable after store_sync_dir(): a call of
 * its own, since the file is in place when that fails.
 *
 * Return: 0; or a negative errno, and what was there before stays.
 */
int store_commit(struct store *s, const char *name, bool durable);

/** store_abort() - take it all back; nothing to do after a commit */
void store_abort(struct store *s);

/** store_write() - write all of it at @pos; Return: 0 or a negative errno */
int store_write(int fd, const void *buf, size_t len, uint64_t pos);

/**
 * store_open_parent() - open the directory that @path lies in, below @dir
 * @name: set to the last component, which points into @path
 *
 * A symlink on the way is not followed, and what is done by way of the
 * descriptor stays below @dir if one is put there later.
 *
 * Return: a descriptor or a negative errno.
 */
int store_open_parent(int dir, const char *path, const char **name);

/** store_parents() - make the directories that @path lies in, below @dir;
 * -ELOOP or -ENOTDIR when a symlink is in the way */
int store_parents(int dir, const char *path);

/** store_sync_dir() - fsync the directory that holds @path, below @dir */
int store_sync_dir(int dir, const char *path);

/** store_sweep() - remove what killed runs left in @dir itself, which is the
 * caller's alone: regular files named as store_begin() names them */
void store_sweep(int dir);

/** store_sweep_dead() - the same where others may be at work: theirs are
 * locked, and stay */
void store_sweep_dead(int dir);

#endif /* TOOLS_STORE_H */
