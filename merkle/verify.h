/* SPDX-License-Identifier: MIT */
/*
 * merkle/verify.h - check data blocks against a Merkle tree.
 *
 * Layer: merkle.  The walk is that of the kernel's fs/verity/verify.c: climb
 * from the leaf to a hash block already known to be good, or to the root, then
 * come down checking.
 */
#ifndef MERKLE_VERIFY_H
#define MERKLE_VERIFY_H

#include "merkle/desc.h"
#include "merkle/geom.h"
#include "merkle/hash.h"

#include <stdatomic.h>

/** What one file's blocks are checked against; read-only after init. */
struct verity_tree {
	struct verity_geom geom;
	struct verity_hasher hasher;
	uint8_t root[VERITY_MAX_DIGEST]; /* trusted */
};

/**
 * verity_tree_init() - take a descriptor that leads to a trusted digest
 *
 * Return: 0, or as verity_geom_init() and verity_hasher_init().
 */
VERITY_MUST_CHECK int verity_tree_init(struct verity_tree *t,
				       const struct verity_desc *desc);

/** verity_tree_fini() - a zeroed struct is allowed */
void verity_tree_fini(struct verity_tree *t);

/**
 * struct verity_hblock - a cached copy of one hash block
 *
 * The mark belongs to this copy: a block that is evicted and read again must
 * come with a mark of 0.
 */
struct verity_hblock {
	const uint8_t *bytes;   /* private memory that no one else writes */
	_Atomic(uint8_t) *good; /* 1: this copy leads to the root */
};

/** Where verity_verify() finds hash blocks. */
struct verity_source {
	/**
	 * @fetch: get a hash block; it must stay readable until the check
	 * returns.  Called from every thread that checks, no lock held.
	 * Return: 0; -ENODATA when the tree has no such bytes, which is a
	 * mismatch; or a negative errno that the check hands on.
	 */
	int (*fetch)(void *arg, unsigned int level, uint64_t index,
		     struct verity_hblock *out);
	void *arg;
};

/**
 * verity_verify() - check whole blocks of data
 * @pos: where @data begins in the file; a multiple of the block size
 * @len: a multiple of the block size; the file's last block zero-filled.
 *   Every block must exist.
 * @why: the first bad block, with -EBADMSG: all before why->pos are good.
 *   May be NULL.
 *
 * Safe from many threads on one tree.  Allocates nothing, but libcrypto may
 * where it does the hashing.
 *
 * Return: 0 when every block is good; -EBADMSG; -EINVAL for a bad @pos or
 * @len; -ENOMEM; or what the fetch function gave.
 */
VERITY_MUST_CHECK int verity_verify(const struct verity_tree *t,
				    const struct verity_source *src,
				    uint64_t pos, const void *data, size_t len,
				    struct verity_mismatch *why);

/**
 * struct verity_check - one of several pieces of data to check together
 * @tree, @src, @pos, @data, @len: as for verity_verify()
 * @result, @why: as it would have returned and filled in
 */
struct verity_check {
	const struct verity_tree *tree;
	const struct verity_source *src;
	uint64_t pos;
	const void *data;
	size_t len;
	int result;
	struct verity_mismatch why;
};

/**
 * verity_verify_many() - verity_verify() of each, with their blocks hashed side
 * by side
 *
 * Pieces of different files go into one batch where algorithm, block size and
 * salt are the same.  What one gives does not depend on the others.
 */
void verity_verify_many(struct verity_check *check, size_t n);

/**
 * verity_trusted_block() - get a hash block that leads to the root
 * @level: 1 to geom.levels
 *
 * Errors as verity_verify(); why->level and index are of the hash block that
 * failed, on the way from the root down.
 */
VERITY_MUST_CHECK int verity_trusted_block(const struct verity_tree *t,
					   const struct verity_source *src,
					   unsigned int level, uint64_t index,
					   struct verity_hblock *out,
					   struct verity_mismatch *why);

/** verity_mismatch_set() - fill in a report; @got NULL: the bytes are missing */
void verity_mismatch_set(struct verity_mismatch *why,
			 const struct verity_geom *g, unsigned int level,
			 uint64_t index, const uint8_t *want,
			 const uint8_t *got);

#endif /* MERKLE_VERIFY_H */
