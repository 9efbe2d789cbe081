/* SPDX-License-Identifier: MIT */
/*
 * tools/digest_out.h - where digest puts a tree and a descriptor.
 *
 * Layer: tools.  A regular file is replaced when all of the new one is
 * there, and stays as it was after a failure.  What is no regular file (a
 * FIFO, /dev/stdout, a symlink to anything) is written to in order, when
 * there is something whole to write.
 */
#ifndef TOOLS_DIGEST_OUT_H
#define TOOLS_DIGEST_OUT_H

#include "merkle/geom.h"
#include "tools/store.h"

struct outfile {
	const char *path; /* NULL: not asked for, and nothing is done */
	const char *name; /* its last component */
	int dir;          /* that holds the bytes meanwhile; owned */
	int fd;           /* pwrite(2) here; owned by the store when not
			   * direct */
	bool direct;
	struct store store;
};
#define OUTFILE_INIT(p)                                                        \
	{                                                                      \
		(p), NULL, -1, -1, false, STORE_INIT                           \
	}

/** outfile_open() - @input must not be the same file.  Says what fails.
 * Return: 0 or a negative errno. */
int outfile_open(struct outfile *o, int input);

/** outfile_flush() - have errors of writing come out while the old file is
 * still in place.  Says what fails.  Return: 0 or a negative errno. */
int outfile_flush(struct outfile *o);

/** outfile_commit() - put the bytes in place, after outfile_flush().  Says what
 * fails.  Return: 0 or a negative errno: an old file is as it was, unless the
 * message says that the new one is in place. */
int outfile_commit(struct outfile *o);

/** outfile_close() - after success or failure; nothing to do is fine */
void outfile_close(struct outfile *o);

/** A tree on its way into an outfile.  Begin with a zeroed struct. */
struct tree_out {
	struct outfile *file;
	/* Known from the start, or all zero for a stream: its levels then wait
	 * in files of their own until its size, and so their place, is
	 * known. */
	struct verity_geom geom;
	int spool[VERITY_MAX_LEVELS + 1]; /* 0: none yet; owned */
};

/** tree_out_emit() - a verity_emit_fn; any thread when geom is known */
int tree_out_emit(void *arg, unsigned int level, uint64_t index, size_t count,
		  const void *blocks);

/** tree_out_stream_emit() - a verity_emit_fn for one thread; geom.block_size
 * alone must be set */
int tree_out_stream_emit(void *arg, unsigned int level, uint64_t index,
			 size_t count, const void *blocks);

/** tree_out_arrange() - put a stream's levels in order, now that @g is known */
int tree_out_arrange(struct tree_out *t, const struct verity_geom *g);

/** tree_out_close() - free the spools */
void tree_out_close(struct tree_out *t);

#endif /* TOOLS_DIGEST_OUT_H */
