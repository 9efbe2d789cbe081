/* SPDX-License-Identifier: MIT */
/*
 * tools/hashfile.h - the digest and tree of one open file, on several cores.
 *
 * Layer: tools.  The joint of merkle's parts, windows and threads.
 */
#ifndef TOOLS_HASHFILE_H
#define TOOLS_HASHFILE_H

#include "merkle/build.h"

/** What to hash.  Zero what is not used. */
struct hashfile {
	struct verity_params params;
	int fd;
	uint64_t size;      /* from fstat; growth after it is ignored */
	uint64_t blocks512; /* st_blocks: fewer than the size means holes */
	unsigned int threads;
	verity_emit_fn emit; /* called from all threads at once; or NULL */
	void *emit_arg;
	uint8_t *digests; /* filled in: of each part, hashfile_split().parts
			   * times the digest's size; or NULL */
};

/**
 * hashfile_run() - read and hash the file
 * @desc: VERITY_DESC_SIZE bytes, or NULL
 *
 * Return: 0; -ENODATA when the file became shorter meanwhile; -EINTR when
 * interrupted; or another errno.
 */
int hashfile_run(const struct hashfile *h, struct verity_digest *digest,
		 uint8_t *desc);

/** hashfile_split() - how hashfile_run() cuts a file of that shape */
void hashfile_split(struct verity_split *s, const struct verity_geom *g);

/**
 * hashfile_stream() - the same for something that can only be read once
 * @emit: or NULL
 *
 * Return: 0, -EINTR, or another errno.
 */
int hashfile_stream(int fd, const struct verity_params *params,
		    verity_emit_fn emit, void *emit_arg,
		    struct verity_digest *digest, uint8_t *desc);

#endif /* TOOLS_HASHFILE_H */
