/* SPDX-License-Identifier: MIT */
/*
 * merkle/geom.h - the shape of a Merkle tree: levels, blocks, offsets.
 *
 * Layer: merkle.  Levels are numbered from the data up: level 0 is the data
 * blocks, level 1 the leaf hash blocks, level geom.levels the root block.  A
 * file of at most one block has no hash blocks, geom.levels is 0, and the
 * root hash is that block's.  On disk the root's level comes first.
 *
 *   level 2            [ root ]                    tree offset 0
 *   level 1      [ leaf ] [ leaf ] ...             tree offset 1 block
 *   level 0   [data][data] ... [data 0]            the file
 */
#ifndef MERKLE_GEOM_H
#define MERKLE_GEOM_H

#include "merkle/verity.h"

struct verity_geom {
	uint32_t digest_size;
	uint32_t block_size;
	unsigned int block_lg; /* log2 of block_size */
	unsigned int arity_lg; /* log2 of the hashes in a hash block */
	unsigned int levels;   /* of hash blocks, 0 to VERITY_MAX_LEVELS */
	uint64_t data_size;
	uint64_t tree_blocks;                   /* hash blocks in all levels */
	uint64_t tree_size;                     /* tree_blocks, in bytes */
	uint64_t blocks[VERITY_MAX_LEVELS + 1]; /* of each level */
	uint64_t first[VERITY_MAX_LEVELS + 1];  /* a hash level's first block,
						 * counted in tree order */
};

/**
 * verity_params_check() - are these parameters ones that a tree can have
 * @why: may be NULL
 *
 * Return: 0, -EINVAL, or -EMSGSIZE for a salt too long.
 */
VERITY_MUST_CHECK int verity_params_check(const struct verity_params *params,
					  struct verity_complaint *why);

/**
 * verity_geom_init() - the shape of the tree of a file
 * @size: of the file; up to VERITY_MAX_SIZE, every sum is overflow-checked
 *
 * Return: 0, -EINVAL or -EMSGSIZE for bad parameters, -EFBIG for a size
 * beyond VERITY_MAX_SIZE or one that needs more than VERITY_MAX_LEVELS.
 */
VERITY_MUST_CHECK int verity_geom_init(struct verity_geom *g,
				       const struct verity_params *params,
				       uint64_t size,
				       struct verity_complaint *why);

/** geom_offset() - bytes from the tree's start to a hash block; level >= 1 */
static inline uint64_t geom_offset(const struct verity_geom *g,
				   unsigned int level, uint64_t index)
{
	return (g->first[level] + index) << g->block_lg;
}

/** geom_slot() - where in its parent's block a block's hash lies, in bytes */
static inline size_t geom_slot(const struct verity_geom *g, uint64_t index)
{
	return (index & ((1U << g->arity_lg) - 1)) * g->digest_size;
}

/** geom_block_len() - bytes of the file that data block @index holds */
static inline size_t geom_block_len(const struct verity_geom *g, uint64_t index)
{
	uint64_t left = g->data_size - (index << g->block_lg);

	return left < g->block_size ? (size_t)left : g->block_size;
}

#endif /* MERKLE_GEOM_H */
