/* SPDX-License-Identifier: MIT */
/* Levels and offsets of a Merkle tree, overflow-checked.  Layer: merkle. */
#include "merkle/geom.h"

#include "merkle/complain.h"

#include <errno.h>

static unsigned int log2_of(uint32_t power_of_two)
{
	return (unsigned int)__builtin_ctz(power_of_two);
}

int verity_params_check(const struct verity_params *params,
			struct verity_complaint *why)
{
	uint32_t bs = params->block_size;

	if (params->alg < VERITY_SHA256)
		return complain(why, -EINVAL, "hash algorithm", params->alg,
				RULE_LEAST, VERITY_SHA256);
	if (params->alg > VERITY_SHA512)
		return complain(why, -EINVAL, "hash algorithm", params->alg,
				RULE_MOST, VERITY_SHA512);
	if (bs < VERITY_MIN_BLOCK)
		return complain(why, -EINVAL, "block size", bs, RULE_LEAST,
				VERITY_MIN_BLOCK);
	if (bs > VERITY_MAX_BLOCK || (bs & (bs - 1)))
		return complain(why, -EINVAL, "block size", bs, RULE_POW2,
				VERITY_MAX_BLOCK);
	if (params->salt_size > VERITY_MAX_SALT)
		return complain(why, -EMSGSIZE, "salt size", params->salt_size,
				RULE_MOST, VERITY_MAX_SALT);
	return 0;
}

/* Count each level's blocks from the data up, until one block is left. */
static int count_levels(struct verity_geom *g, struct verity_complaint *why)
{
	uint64_t n = g->blocks[0];

	while (n > 1) {
		if (g->levels == VERITY_MAX_LEVELS)
			return complain(why, -EFBIG, "tree levels",
					g->levels + 1, RULE_MOST,
					VERITY_MAX_LEVELS);
		n = ((n - 1) >> g->arity_lg) + 1;
		g->blocks[++g->levels] = n;
	}
	return 0;
}

/* Lay the levels out root first.  The sum is below 2^63 / 512 * 2 blocks of
 * data, so it cannot wrap; the size in bytes can when arity is 8. */
static int place_levels(struct verity_geom *g, struct verity_complaint *why)
{
	for (unsigned int l = g->levels; l >= 1; l--) {
		g->first[l] = g->tree_blocks;
		g->tree_blocks += g->blocks[l];
	}
	if (g->tree_blocks > (VERITY_MAX_SIZE >> g->block_lg))
		return complain(why, -EFBIG, "tree blocks", g->tree_blocks,
				RULE_MOST, VERITY_MAX_SIZE >> g->block_lg);
	g->tree_size = g->tree_blocks << g->block_lg;
	return 0;
}

int verity_geom_init(struct verity_geom *out,
		     const struct verity_params *params, uint64_t size,
		     struct verity_complaint *why)
{
	struct verity_geom g = { .data_size = size };
	int err = verity_params_check(params, why);

	if (err)
		return err;
	if (size > VERITY_MAX_SIZE)
		return complain(why, -EFBIG, "file size", size, RULE_MOST,
				VERITY_MAX_SIZE);
	g.digest_size = verity_digest_size(params->alg);
	g.block_size = params->block_size;
	g.block_lg = log2_of(params->block_size);
	g.arity_lg = g.block_lg - log2_of(g.digest_size);
	g.blocks[0] = size ? ((size - 1) >> g.block_lg) + 1 : 0;
	err = count_levels(&g, why);
	if (!err)
		err = place_levels(&g, why);
	if (!err)
		*out = g;
	return err;
}

int verity_tree_offset(const struct verity_params *params, uint64_t size,
		       unsigned int level, uint64_t index, uint64_t *out)
{
	struct verity_geom g;
	int err = verity_geom_init(&g, params, size, NULL);

	if (err)
		return err;
	if (level < 1 || level > g.levels || index >= g.blocks[level])
		return -EINVAL;
	*out = geom_offset(&g, level, index);
	return 0;
}
