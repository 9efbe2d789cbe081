/* SPDX-License-Identifier: MIT */
/*
 * merkle/build.h - build a tree in independent parts, and join them.
 *
 * Layer: merkle.  verity.h has the plain builder for one stream.  Here a file
 * is cut into parts of a whole subtree each, so that any number of threads
 * may build parts with a builder of their own, in any order; the parts'
 * digests, in order, are then joined:
 *
 *              [ root ]                      join
 *            /    |     \                      |
 *      [hash]  [hash]  [hash]  <- level split.level, one digest a part
 *      /....\  /....\  /...                    |
 *      part 0  part 1  part 2                build_part ... part_end
 */
#ifndef MERKLE_BUILD_H
#define MERKLE_BUILD_H

#include "merkle/geom.h"

struct verity_split {
	unsigned int level;   /* of the hash block that a part's digest is of;
			       * 0: the part is one data block */
	uint64_t part_blocks; /* data blocks in each part but the last */
	uint64_t parts;
};

/**
 * verity_split_init() - cut a file into parts
 * @min_bytes: of a part
 * @max_parts: bounds the memory for their digests; at least 1
 *
 * The smallest subtree that meets both bounds is taken; a file too small for
 * two parts gets one, an empty file none.
 */
void verity_split_init(struct verity_split *s, const struct verity_geom *g,
		       uint64_t min_bytes, uint64_t max_parts);

/**
 * verity_build_seek() - start anew at a data block
 * @block: a multiple of the part length, or 0 for the whole file
 *
 * What was added before is forgotten.
 */
void verity_build_seek(struct verity_build *b, uint64_t block);

/**
 * verity_build_zero() - add @len zero bytes, as from a hole
 *
 * The hash of a zero block, and of hash blocks over nothing but zero blocks,
 * is computed once.  Without an emit function whole empty subtrees cost one
 * step each.  Errors as verity_build_add().
 */
VERITY_MUST_CHECK int verity_build_zero(struct verity_build *b, uint64_t len);

/**
 * verity_build_part_end() - finish a part
 * @level: split.level
 * @out: the part's digest, digest_size bytes
 */
VERITY_MUST_CHECK int verity_build_part_end(struct verity_build *b,
					    unsigned int level, uint8_t *out);

/**
 * verity_build_join() - finish a file from the digests of all its parts
 * @digests: split.parts of them, in order, digest_size bytes apart
 * @root: digest_size bytes; all zero for an empty file
 *
 * Emits the hash blocks above the parts.  @b's earlier state is forgotten.
 */
VERITY_MUST_CHECK int verity_build_join(struct verity_build *b,
					const struct verity_geom *g,
					const struct verity_split *s,
					const uint8_t *digests, uint8_t *root);

#endif /* MERKLE_BUILD_H */
