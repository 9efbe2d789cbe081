/* SPDX-License-Identifier: MIT */
/* Climb to something known good, come down checking.  Layer: merkle. */
#include "merkle/verify.h"

#include <errno.h>
#include <string.h>

int verity_tree_init(struct verity_tree *t, const struct verity_desc *desc)
{
	int err = verity_geom_init(&t->geom, &desc->params, desc->data_size,
				   NULL);

	if (err)
		return err;
	memcpy(t->root, desc->root, sizeof(t->root));
	return verity_hasher_init(&t->hasher, &desc->params,
				  desc->params.block_size);
}

void verity_tree_fini(struct verity_tree *t)
{
	verity_hasher_fini(&t->hasher);
}

void verity_mismatch_set(struct verity_mismatch *why,
			 const struct verity_geom *g, unsigned int level,
			 uint64_t index, const uint8_t *want,
			 const uint8_t *got)
{
	unsigned int lg = level * g->arity_lg + g->block_lg;

	if (!why)
		return;
	memset(why, 0, sizeof(*why));
	why->pos = lg < 64 ? index << lg : 0;
	why->index = index;
	why->level = level;
	if (want)
		memcpy(why->want, want, g->digest_size);
	if (got)
		memcpy(why->got, got, g->digest_size);
	why->size = got ? g->digest_size : 0;
}

/* A level's index of the block that is over @index of @level, @up levels up */
static uint64_t parent_of(const struct verity_geom *g, uint64_t index,
			  unsigned int up)
{
	unsigned int lg = up * g->arity_lg;

	return lg < 64 ? index >> lg : 0;
}

/* One way up from a hash block, and down again. */
struct climb {
	const struct verity_tree *t;
	const struct verity_source *src;
	unsigned int level; /* where it begins */
	uint64_t index;
	struct verity_hblock chain[VERITY_MAX_LEVELS + 2]; /* by level */
	struct verity_mismatch *why;
};

/*
 * Fetch from the beginning up to the first copy marked good, or to the root's.
 *
 * The acquire pairs with the release in check_down().  The bytes were made
 * visible when the source handed the copy out and do not change after; the
 * mark only says that some thread has hashed them, so two threads that both
 * find it 0 both hash and both set it: twice the work, the same answer.
 *
 * Return: 0 with *top the level that needs no check, or an error.
 */
static int climb_up(struct climb *c, unsigned int *top)
{
	const struct verity_geom *g = &c->t->geom;
	unsigned int l;

	for (l = c->level; l <= g->levels; l++) {
		uint64_t at = parent_of(g, c->index, l - c->level);
		int err = c->src->fetch(c->src->arg, l, at, &c->chain[l]);

		if (err == -ENODATA) {
			verity_mismatch_set(c->why, g, l, at, NULL, NULL);
			return -EBADMSG;
		}
		if (err)
			return err;
		if (atomic_load_explicit(c->chain[l].good,
					 memory_order_acquire))
			break;
	}
	*top = l;
	return 0;
}

/* Check one fetched copy against the block above it, or against the root. */
static int check_down(struct climb *c, unsigned int level)
{
	const struct verity_geom *g = &c->t->geom;
	uint64_t index = parent_of(g, c->index, level - c->level);
	const void *block = c->chain[level].bytes;
	const uint8_t *want = c->t->root;
	uint8_t got[VERITY_MAX_DIGEST];
	int err = verity_hash_blocks(&c->t->hasher, &block, 1, got);

	if (err)
		return err;
	if (level < g->levels)
		want = c->chain[level + 1].bytes + geom_slot(g, index);
	if (memcmp(got, want, g->digest_size) != 0) {
		verity_mismatch_set(c->why, g, level, index, want, got);
		return -EBADMSG;
	}
	atomic_store_explicit(c->chain[level].good, 1, memory_order_release);
	return 0;
}

int verity_trusted_block(const struct verity_tree *t,
			 const struct verity_source *src, unsigned int level,
			 uint64_t index, struct verity_hblock *out,
			 struct verity_mismatch *why)
{
	struct climb c = {
		.t = t, .src = src, .level = level, .index = index, .why = why
	};
	unsigned int l;
	int err = climb_up(&c, &l);

	while (!err && l-- > level)
		err = check_down(&c, l);
	if (!err)
		*out = c.chain[level];
	return err;
}

/* Where the hashes of the data blocks from @index on are: the root of a file
 * of one block, else a trusted leaf.  *n is cut to the blocks it covers. */
static int wanted(const struct verity_tree *t, const struct verity_source *src,
		  uint64_t index, size_t *n, const uint8_t **out,
		  struct verity_mismatch *why)
{
	const struct verity_geom *g = &t->geom;
	size_t arity = (size_t)1 << g->arity_lg;
	size_t left = arity - (index & (arity - 1));
	struct verity_hblock leaf;
	int err;

	if (!g->levels) {
		*out = t->root;
		return 0;
	}
	err = verity_trusted_block(t, src, 1, index >> g->arity_lg, &leaf, why);
	if (err) {
		if (err == -EBADMSG && why)
			why->pos = index << g->block_lg;
		return err;
	}
	if (*n > left)
		*n = left;
	*out = leaf.bytes + geom_slot(g, index);
	return 0;
}

/* Compare the computed hashes of @n blocks from @index on. */
static int compare(const struct verity_tree *t, const struct verity_source *src,
		   uint64_t index, size_t n, const uint8_t *got,
		   struct verity_mismatch *why)
{
	size_t ds = t->geom.digest_size;

	while (n) {
		const uint8_t *want;
		size_t run = n;
		int err = wanted(t, src, index, &run, &want, why);

		if (err)
			return err;
		for (size_t i = 0; i < run; i++)
			if (memcmp(got + i * ds, want + i * ds, ds) != 0) {
				verity_mismatch_set(why, &t->geom, 0, index + i,
						    want + i * ds,
						    got + i * ds);
				return -EBADMSG;
			}
		got += run * ds;
		index += run;
		n -= run;
	}
	return 0;
}

static int in_file(const struct verity_geom *g, uint64_t pos, size_t len)
{
	uint64_t mask = g->block_size - 1;
	uint64_t end = g->blocks[0] << g->block_lg;

	return !(pos & mask) && !(len & mask) && pos <= end && len <= end - pos;
}

static void check_blocks(const struct verity_check *c, size_t at, size_t n,
			 const void **block)
{
	const uint8_t *p = c->data;

	for (size_t i = 0; i < n; i++)
		block[i] = p + ((at + i) << c->tree->geom.block_lg);
}

/* Hash @n blocks from the piece's block @at on, and compare. */
static int check_run(struct verity_check *c, size_t at, size_t n)
{
	uint8_t got[VERITY_HASH_BATCH * VERITY_MAX_DIGEST];
	const void *block[VERITY_HASH_BATCH];
	int err;

	check_blocks(c, at, n, block);
	err = verity_hash_blocks(&c->tree->hasher, block, n, got);
	if (err)
		return err;
	return compare(c->tree, c->src, (c->pos >> c->tree->geom.block_lg) + at,
		       n, got, &c->why);
}

static size_t nr_blocks(const struct verity_check *c)
{
	return c->len >> c->tree->geom.block_lg;
}

static void check_one(struct verity_check *c)
{
	size_t n = nr_blocks(c), run;

	for (size_t at = 0; at < n && !c->result; at += run) {
		run = n - at < VERITY_HASH_BATCH ? n - at : VERITY_HASH_BATCH;
		c->result = check_run(c, at, run);
	}
}

/* Return: whether two trees' blocks may be hashed by one call. */
static int hash_alike(const struct verity_hasher *a,
		      const struct verity_hasher *b)
{
	if (a == b)
		return 1;
	return !a->evp && !b->evp && a->alg == b->alg && a->len == b->len &&
	       memcmp(a->midstate, b->midstate, sizeof(a->midstate)) == 0;
}

/* How many pieces from the first on fit one batch; at least 1. */
static size_t alike(const struct verity_check *c, size_t n)
{
	size_t blocks = nr_blocks(c), i;

	for (i = 1; i < n; i++) {
		blocks += nr_blocks(&c[i]);
		if (blocks > VERITY_HASH_BATCH ||
		    !hash_alike(&c->tree->hasher, &c[i].tree->hasher))
			break;
	}
	return i;
}

/* All blocks of these pieces fit one batch. */
static void check_batch(struct verity_check *c, size_t n)
{
	uint8_t got[VERITY_HASH_BATCH * VERITY_MAX_DIGEST];
	const void *block[VERITY_HASH_BATCH] = { NULL };
	size_t blocks = 0, at = 0;
	int err;

	for (size_t i = 0; i < n; i++) {
		check_blocks(&c[i], 0, nr_blocks(&c[i]), block + blocks);
		blocks += nr_blocks(&c[i]);
	}
	err = verity_hash_blocks(&c->tree->hasher, block, blocks, got);
	for (size_t i = 0; i < n; i++) {
		const struct verity_geom *g = &c[i].tree->geom;

		c[i].result = err;
		if (!err)
			c[i].result = compare(
				c[i].tree, c[i].src, c[i].pos >> g->block_lg,
				nr_blocks(&c[i]), got + at * g->digest_size,
				&c[i].why);
		at += nr_blocks(&c[i]);
	}
}

void verity_verify_many(struct verity_check *check, size_t n)
{
	size_t run;

	for (size_t i = 0; i < n; i += run) {
		struct verity_check *c = &check[i];

		run = 1;
		c->result =
			in_file(&c->tree->geom, c->pos, c->len) ? 0 : -EINVAL;
		if (c->result)
			continue;
		while (i + run < n &&
		       in_file(&check[i + run].tree->geom, check[i + run].pos,
			       check[i + run].len))
			run++;
		run = alike(c, run);
		if (run > 1)
			check_batch(c, run);
		else
			check_one(c);
	}
}

int verity_verify(const struct verity_tree *t, const struct verity_source *src,
		  uint64_t pos, const void *data, size_t len,
		  struct verity_mismatch *why)
{
	struct verity_check c = {
		.tree = t, .src = src, .pos = pos, .data = data, .len = len
	};

	verity_verify_many(&c, 1);
	if (c.result == -EBADMSG && why)
		*why = c.why;
	return c.result;
}
