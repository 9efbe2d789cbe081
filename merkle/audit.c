/* SPDX-License-Identifier: MIT */
/* A depth-first check of a whole file and its tree.  Layer: merkle. */
#include "merkle/audit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of data read at once. */
#define RUN_BYTES 262144U

struct walk {
	const struct verity_tree *t;
	const struct verity_audit *a;
	uint8_t *data; /* RUN_BYTES; owned, and what follows lies behind it */
	uint8_t *hash[VERITY_MAX_LEVELS + 1]; /* the block being visited */
	uint8_t *rebuilt;                     /* one block */
};

static int is_damage(int err)
{
	return err == -ENODATA || err == -EIO;
}

static int report(const struct walk *w, enum verity_damage kind,
		  unsigned int level, uint64_t index, const uint8_t *want,
		  const uint8_t *got)
{
	const struct verity_geom *g = &w->t->geom;
	struct verity_finding f = { .kind = kind, .level = level };

	f.pos = level ? geom_offset(g, level, index) : index << g->block_lg;
	f.len = level ? g->block_size : geom_block_len(g, index);
	verity_mismatch_set(&f.what, g, level, index, want, got);
	return w->a->found(w->a->arg, &f);
}

/* All data under a hash block that can not be trusted. */
static int report_unproven(const struct walk *w, unsigned int level,
			   uint64_t index)
{
	const struct verity_geom *g = &w->t->geom;
	struct verity_finding f = { .kind = VERITY_UNPROVEN };
	unsigned int lg = level * g->arity_lg + g->block_lg;
	uint64_t left;

	verity_mismatch_set(&f.what, g, level, index, NULL, NULL);
	f.pos = f.what.pos;
	left = g->data_size - f.pos;
	f.len = lg >= 63 || left < (1ULL << lg) ? left : 1ULL << lg;
	return w->a->found(w->a->arg, &f);
}

/* Read one block of any level. */
static int read_one(const struct walk *w, unsigned int level, uint64_t index,
		    uint8_t *buf)
{
	return level ? w->a->tree(w->a->arg, level, index, buf)
		     : w->a->data(w->a->arg, index, 1, buf);
}

static int hash_one(const struct walk *w, const uint8_t *block, uint8_t *out)
{
	const void *one = block;

	return verity_hash_blocks(&w->t->hasher, &one, 1, out);
}

/* How many blocks a hash block has below it. */
static size_t children(const struct verity_geom *g, unsigned int level,
		       uint64_t index)
{
	uint64_t left = g->blocks[level - 1] - (index << g->arity_lg);
	size_t arity = (size_t)1 << g->arity_lg;

	return left < arity ? (size_t)left : arity;
}

/* Rebuild a hash block from what is stored below it.  A block below that can
 * not be read leaves a hole, and the result will not lead to the root. */
static int rebuild(const struct walk *w, unsigned int level, uint64_t index)
{
	const struct verity_geom *g = &w->t->geom;
	size_t n = children(g, level, index);
	uint8_t *below = level > 1 ? w->hash[level - 1] : w->data;
	int err = 0;

	memset(w->rebuilt, 0, g->block_size);
	for (size_t i = 0; i < n && !err; i++) {
		err = read_one(w, level - 1, (index << g->arity_lg) + i, below);
		if (is_damage(err))
			err = 0;
		else if (!err)
			err = hash_one(w, below,
				       w->rebuilt + i * g->digest_size);
	}
	return err;
}

/* Read and hash a batch of data blocks. */
static int hash_data(const struct walk *w, uint64_t index, size_t n,
		     uint8_t *out)
{
	const void *block[VERITY_HASH_BATCH];
	int err = w->a->data(w->a->arg, index, n, w->data);

	for (size_t i = 0; i < n; i++)
		block[i] = w->data + (i << w->t->geom.block_lg);
	return err ? err : verity_hash_blocks(&w->t->hasher, block, n, out);
}

/* How many data blocks are read at once. */
static size_t batch(const struct verity_geom *g)
{
	size_t n = RUN_BYTES >> g->block_lg;

	return n < VERITY_HASH_BATCH ? n : VERITY_HASH_BATCH;
}

/* Build a hash block from the data alone; the levels between are built in the
 * places of blocks that are not visited yet. */
static int build(const struct walk *w, unsigned int level, uint64_t index,
		 uint8_t *out) /* NOLINT(misc-no-recursion) */
{
	const struct verity_geom *g = &w->t->geom;
	uint64_t first = index << g->arity_lg;
	size_t n = children(g, level, index), run = level > 1 ? 1 : batch(g);
	int err = 0;

	memset(out, 0, g->block_size);
	for (size_t i = 0; i < n && !err; i += run) {
		uint8_t *to = out + i * g->digest_size;

		if (run > n - i)
			run = n - i;
		if (level > 1) {
			err = build(w, level - 1, first + i,
				    w->hash[level - 1]);
			if (!err)
				err = hash_one(w, w->hash[level - 1], to);
		} else {
			err = hash_data(w, first + i, run, to);
		}
	}
	return err;
}

/* Check a batch of data blocks against their hashes. */
static int check_data(const struct walk *w, uint64_t index, size_t n,
		      const uint8_t *want)
{
	const struct verity_geom *g = &w->t->geom;
	uint8_t got[VERITY_HASH_BATCH * VERITY_MAX_DIGEST];
	int err = hash_data(w, index, n, got);

	if (is_damage(err)) {
		if (n == 1)
			return report(w,
				      err == -EIO ? VERITY_UNREADABLE
						  : VERITY_MISSING,
				      0, index, want, NULL);
		err = 0;
		for (size_t i = 0; i < n && !err; i++)
			err = check_data(w, index + i, 1,
					 want + i * g->digest_size);
		return err;
	}
	for (size_t i = 0; i < n && !err; i++) {
		size_t at = i * g->digest_size;

		if (memcmp(got + at, want + at, g->digest_size) != 0)
			err = report(w, VERITY_BAD_DATA, 0, index + i,
				     want + at, got + at);
	}
	return err;
}

/* Check all data under a leaf hash block. */
static int check_leaf(const struct walk *w, uint64_t index)
{
	const struct verity_geom *g = &w->t->geom;
	uint64_t at = index << g->arity_lg;
	size_t n = children(g, 1, index), run = batch(g);
	const uint8_t *want = w->hash[1];
	int err = 0;

	while (n && !err) {
		if (run > n)
			run = n;
		err = check_data(w, at, run, want);
		at += run;
		want += run * g->digest_size;
		n -= run;
	}
	return err;
}

/* Can a bad hash block be had from what is below it: from the blocks stored
 * there, or, when some of these are bad as well, from good data?
 * Return: 1 with it in w->rebuilt, 0, or an error. */
static int repair(const struct walk *w, unsigned int level, uint64_t index,
		  const uint8_t *want)
{
	uint8_t got[VERITY_MAX_DIGEST] = { 0 };
	uint32_t ds = w->t->geom.digest_size;
	int err = rebuild(w, level, index);

	if (!err)
		err = hash_one(w, w->rebuilt, got);
	if (err || memcmp(got, want, ds) == 0)
		return err ? err : 1;
	if (level == 1)
		return 0;
	err = build(w, level, index, w->rebuilt);
	if (is_damage(err))
		return 0;
	if (!err)
		err = hash_one(w, w->rebuilt, got);
	return err ? err : memcmp(got, want, ds) == 0;
}

/* Get a hash block that leads to the root into w->hash[level], repaired if
 * need be.  Return: 1 when it does, 0 when there is none, or an error. */
static int settle_block(const struct walk *w, unsigned int level,
			uint64_t index, const uint8_t *want)
{
	uint8_t got[VERITY_MAX_DIGEST] = { 0 };
	uint32_t ds = w->t->geom.digest_size;
	int err = w->a->tree(w->a->arg, level, index, w->hash[level]);
	int missing = is_damage(err);

	if (!err)
		err = hash_one(w, w->hash[level], got);
	if (!err && !memcmp(got, want, ds))
		return 1;
	if (!err || missing)
		err = report(w, VERITY_BAD_TREE, level, index, want,
			     missing ? NULL : got);
	if (!err)
		err = repair(w, level, index, want);
	if (err == 1)
		memcpy(w->hash[level], w->rebuilt, w->t->geom.block_size);
	return err;
}

/* Check a hash block and all below it.  The depth is the tree's: 8 at most. */
static int visit(const struct walk *w, unsigned int level, uint64_t index,
		 const uint8_t *want) /* NOLINT(misc-no-recursion) */
{
	const struct verity_geom *g = &w->t->geom;
	uint64_t first = index << g->arity_lg;
	size_t n = children(g, level, index);
	int err = settle_block(w, level, index, want);

	if (err == 0)
		return report_unproven(w, level, index);
	if (err < 0)
		return err;
	if (w->a->known && w->a->known(w->a->arg, level, index, want))
		return 0;
	if (level == 1)
		return check_leaf(w, index);
	err = 0;
	for (size_t i = 0; i < n && !err; i++)
		err = visit(w, level - 1, first + i,
			    w->hash[level] + i * g->digest_size);
	return err;
}

/* All of a walk's buffers in one piece. */
static int walk_init(struct walk *w, const struct verity_tree *t,
		     const struct verity_audit *a)
{
	size_t bs = t->geom.block_size;
	uint8_t *mem = malloc(RUN_BYTES + (t->geom.levels + 1) * bs);

	*w = (struct walk){ .t = t, .a = a, .data = mem };
	if (!mem)
		return -ENOMEM;
	w->rebuilt = mem + RUN_BYTES;
	for (unsigned int l = 1; l <= t->geom.levels; l++)
		w->hash[l] = w->rebuilt + l * bs;
	return 0;
}

int verity_audit_run(const struct verity_tree *t, const struct verity_audit *a)
{
	struct walk w;
	int err = walk_init(&w, t, a);

	if (!err && t->geom.levels)
		err = visit(&w, t->geom.levels, 0, t->root);
	else if (!err && t->geom.blocks[0])
		err = check_data(&w, 0, 1, t->root);
	free(w.data);
	return err;
}
