/* SPDX-License-Identifier: MIT */
/* Tree building: data in, hash blocks out, level by level.  Layer: merkle. */
#include "merkle/build.h"

#include "merkle/desc.h"
#include "merkle/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Room for hash blocks waiting at one level: a batch hashes faster than one. */
#define LEVEL_ROOM 65536U

/* Slots 1..VERITY_MAX_LEVELS hold hash blocks; the one above takes the root's
 * own hash. */
enum { SLOTS = VERITY_MAX_LEVELS + 2 };

/* One level's hash blocks, not yet hashed themselves. */
struct rank {
	uint8_t *buf;  /* room bytes, allocated on first use */
	size_t used;   /* bytes */
	uint64_t next; /* index of the block at buf[0] */
};

struct verity_build {
	struct verity_params params;
	struct verity_geom geom; /* of a file of one block: shape only */
	struct verity_hasher hasher;
	verity_emit_fn emit;
	void *arg;
	size_t room;     /* of each rank: whole blocks */
	uint64_t size;   /* bytes added since the last seek, and its offset */
	uint8_t *tail;   /* a data block not yet complete */
	size_t tail_len; /* bytes in it */
	int zeros;       /* zero[] is filled in */
	uint8_t zero[SLOTS][VERITY_MAX_DIGEST]; /* hash of an empty subtree
						 * of that many levels */
	struct rank rank[SLOTS];
};

static int push(struct verity_build *b, unsigned int level,
		const uint8_t *digests, uint64_t n);

void verity_split_init(struct verity_split *s, const struct verity_geom *g,
		       uint64_t min_bytes, uint64_t max_parts)
{
	uint64_t n = g->blocks[0];

	s->level = 0;
	s->parts = n;
	s->part_blocks = 1;
	while (s->parts > 1 && (s->parts > max_parts ||
				(s->part_blocks << g->block_lg) < min_bytes)) {
		s->level++;
		s->part_blocks <<= g->arity_lg;
		s->parts = g->blocks[s->level];
	}
}

int verity_build_new(const struct verity_params *params, verity_emit_fn emit,
		     void *arg, struct verity_build **out)
{
	struct verity_build *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	b->params = *params;
	b->emit = emit;
	b->arg = arg;
	err = verity_geom_init(&b->geom, params, params->block_size, NULL);
	if (err)
		goto out;
	b->room = LEVEL_ROOM > params->block_size ? LEVEL_ROOM
						  : params->block_size;
	err = verity_hasher_init(&b->hasher, params, params->block_size);
	if (err)
		goto out;
	b->tail = malloc(params->block_size);
	if (!b->tail) {
		err = -ENOMEM;
		goto out;
	}
	*out = b;
	b = NULL;
out:
	verity_build_free(b);
	return err;
}

void verity_build_free(struct verity_build *b)
{
	if (!b)
		return;
	for (unsigned int l = 0; l < SLOTS; l++)
		free(b->rank[l].buf);
	verity_hasher_fini(&b->hasher);
	free(b->tail);
	free(b);
}

void verity_build_seek(struct verity_build *b, uint64_t block)
{
	for (unsigned int l = 1; l < SLOTS; l++) {
		unsigned int lg = l * b->geom.arity_lg;

		b->rank[l].used = 0;
		b->rank[l].next = lg < 64 ? block >> lg : 0;
	}
	b->size = block << b->geom.block_lg;
	b->tail_len = 0;
}

static int rank_alloc(struct verity_build *b, unsigned int level)
{
	struct rank *r = &b->rank[level];

	if (!r->buf)
		r->buf = malloc(b->room);
	return r->buf ? 0 : -ENOMEM;
}

/* Is this hash block full of the hash of an empty subtree?  Asked only where
 * holes were added: it costs a pass over the block. */
static int all_zero_below(const struct verity_build *b, unsigned int level,
			  const uint8_t *block)
{
	size_t ds = b->geom.digest_size;

	return b->zeros && !memcmp(block, b->zero[level - 1], ds) &&
	       !memcmp(block, block + ds, b->geom.block_size - ds);
}

/* Hash @n whole hash blocks and hand the digests up. */
static int hash_up(struct verity_build *b, unsigned int level,
		   const uint8_t *blocks, size_t n)
{
	uint8_t digest[VERITY_HASH_BATCH * VERITY_MAX_DIGEST];
	const void *todo[VERITY_HASH_BATCH];
	int err;

	while (n && all_zero_below(b, level, blocks)) {
		err = push(b, level + 1, b->zero[level], 1);
		if (err)
			return err;
		blocks += b->geom.block_size;
		n--;
	}
	if (!n)
		return 0;
	for (size_t i = 0; i < n; i++)
		todo[i] = blocks + (i << b->geom.block_lg);
	err = verity_hash_blocks(&b->hasher, todo, n, digest);
	return err ? err : push(b, level + 1, digest, n);
}

/* Send a level's waiting blocks on; the last one may be short and is padded. */
static int flush(struct verity_build *b, unsigned int level)
{
	struct rank *r = &b->rank[level];
	size_t n = (r->used + b->geom.block_size - 1) >> b->geom.block_lg;
	uint64_t first = r->next;
	int err = 0;

	if (!n)
		return 0;
	memset(r->buf + r->used, 0, (n << b->geom.block_lg) - r->used);
	r->used = 0;
	r->next += n;
	if (b->emit)
		err = b->emit(b->arg, level, first, n, r->buf);
	for (size_t i = 0; i < n && !err; i += VERITY_HASH_BATCH)
		err = hash_up(b, level, r->buf + (i << b->geom.block_lg),
			      n - i < VERITY_HASH_BATCH ? n - i
							: VERITY_HASH_BATCH);
	return err;
}

/*
 * Add hashes to a level.  A full level is flushed only when more comes, so
 * that after the last hash of a file the root's level still holds its one
 * block, and the level above it stays empty until the end.
 */
static int push(struct verity_build *b, unsigned int level,
		const uint8_t *digests, uint64_t n)
{
	struct rank *r = &b->rank[level];
	size_t ds = b->geom.digest_size;
	int err;

	/* Above the highest level there is the root's own hash and no other. */
	if (level > VERITY_MAX_LEVELS && (r->used || n > 1))
		return -EFBIG;
	err = rank_alloc(b, level);
	for (; n && !err; n--, digests += ds) {
		if (r->used == b->room)
			err = flush(b, level);
		memcpy(r->buf + r->used, digests, ds);
		r->used += ds;
	}
	return err;
}

/* Hash whole data blocks straight into the leaf level. */
static int hash_data(struct verity_build *b, const uint8_t *data, uint64_t n)
{
	struct rank *r = &b->rank[1];
	size_t ds = b->geom.digest_size;
	const void *todo[VERITY_HASH_BATCH];
	int err = rank_alloc(b, 1);

	while (n && !err) {
		size_t fit;

		if (r->used == b->room)
			err = flush(b, 1);
		if (err)
			break;
		fit = (b->room - r->used) / ds;
		if (fit > n)
			fit = n;
		if (fit > VERITY_HASH_BATCH)
			fit = VERITY_HASH_BATCH;
		for (size_t i = 0; i < fit; i++)
			todo[i] = data + (i << b->geom.block_lg);
		err = verity_hash_blocks(&b->hasher, todo, fit,
					 r->buf + r->used);
		r->used += fit * ds;
		data += fit << b->geom.block_lg;
		n -= fit;
	}
	return err;
}

/* Count @len bytes in, refusing what no file can hold. */
static int grow(struct verity_build *b, uint64_t len)
{
	if (len > VERITY_MAX_SIZE - b->size)
		return -EFBIG;
	b->size += len;
	return 0;
}

/* Fill up the block begun earlier; Return: bytes taken */
static size_t fill_tail(struct verity_build *b, const uint8_t *data, size_t len)
{
	size_t want = b->geom.block_size - b->tail_len;

	if (len > want)
		len = want;
	if (data)
		memcpy(b->tail + b->tail_len, data, len);
	else
		memset(b->tail + b->tail_len, 0, len);
	b->tail_len += len;
	return len;
}

/* Hash the block begun earlier once it is whole. */
static int flush_tail(struct verity_build *b)
{
	if (b->tail_len < b->geom.block_size)
		return 0;
	b->tail_len = 0;
	return hash_data(b, b->tail, 1);
}

int verity_build_add(struct verity_build *b, const void *data, size_t len)
{
	const uint8_t *p = data;
	int err = grow(b, len);
	size_t took;

	if (!err && b->tail_len) {
		took = fill_tail(b, p, len);
		p += took;
		len -= took;
		err = flush_tail(b);
	}
	if (err)
		return err;
	took = len & ~(size_t)(b->geom.block_size - 1);
	err = hash_data(b, p, took >> b->geom.block_lg);
	if (!err)
		fill_tail(b, p + took, len - took);
	return err;
}

/* The hashes of empty subtrees: a zero block, then blocks full of the last. */
static int init_zeros(struct verity_build *b)
{
	size_t ds = b->geom.digest_size, bs = b->geom.block_size;
	uint8_t *block = b->tail; /* free to use: no block is begun here */
	const void *one = block;
	int err = 0;

	memset(block, 0, bs);
	for (unsigned int l = 0; l < SLOTS && !err; l++) {
		err = verity_hash_blocks(&b->hasher, &one, 1, b->zero[l]);
		for (size_t at = 0; at < bs; at += ds)
			memcpy(block + at, b->zero[l], ds);
	}
	b->zeros = !err;
	return err;
}

/* The levels of the largest empty subtree that begins at data block @at and
 * has at most @n blocks.  Its hash blocks must not be wanted by anyone. */
static unsigned int empty_levels(const struct verity_build *b, uint64_t at,
				 uint64_t n)
{
	unsigned int level = 0, lg = b->geom.arity_lg;

	while (!b->emit && level < VERITY_MAX_LEVELS && lg < 64 && n >> lg &&
	       !(at & ((1ULL << lg) - 1))) {
		level++;
		lg += b->geom.arity_lg;
	}
	return level;
}

static int zero_blocks(struct verity_build *b, uint64_t at, uint64_t n)
{
	int err = 0;

	while (n && !err) {
		unsigned int top = empty_levels(b, at, n);
		uint64_t span = 1ULL << (top * b->geom.arity_lg);

		/* Below @top every hash block is whole here: send them up so
		 * that order is kept, then step over the whole subtree. */
		for (unsigned int l = 1; l <= top && !err; l++) {
			err = flush(b, l);
			b->rank[l].next = (at + span) >> (l * b->geom.arity_lg);
		}
		if (!err)
			err = push(b, top + 1, b->zero[top], 1);
		at += span;
		n -= span;
	}
	return err;
}

int verity_build_zero(struct verity_build *b, uint64_t len)
{
	uint64_t start = b->size, whole;
	int err = grow(b, len);

	if (!err && b->tail_len) {
		size_t took = fill_tail(b, NULL,
					len < b->geom.block_size
						? (size_t)len
						: b->geom.block_size);

		start += took;
		len -= took;
		err = flush_tail(b);
	}
	whole = len >> b->geom.block_lg;
	if (!err && whole && !b->zeros)
		err = init_zeros(b);
	if (!err && whole)
		err = zero_blocks(b, start >> b->geom.block_lg, whole);
	if (!err)
		fill_tail(b, NULL, len & (b->geom.block_size - 1));
	return err;
}

/* Send everything below up to @level; its own hash is then alone above it. */
static int settle(struct verity_build *b, unsigned int level, uint8_t *out)
{
	int err = 0;

	for (unsigned int l = 1; l <= level && !err; l++)
		err = flush(b, l);
	if (err)
		return err;
	if (b->rank[level + 1].used != b->geom.digest_size)
		return -EINVAL; /* more, or less, than one subtree was added */
	memcpy(out, b->rank[level + 1].buf, b->geom.digest_size);
	return 0;
}

static int pad_tail(struct verity_build *b)
{
	if (!b->tail_len)
		return 0;
	fill_tail(b, NULL, b->geom.block_size - b->tail_len);
	return flush_tail(b);
}

int verity_build_part_end(struct verity_build *b, unsigned int level,
			  uint8_t *out)
{
	int err = pad_tail(b);

	return err ? err : settle(b, level, out);
}

int verity_build_join(struct verity_build *b, const struct verity_geom *g,
		      const struct verity_split *s, const uint8_t *digests,
		      uint8_t *root)
{
	int err;

	if (!s->parts) {
		memset(root, 0, g->digest_size);
		return 0;
	}
	verity_build_seek(b, 0);
	err = push(b, s->level + 1, digests, s->parts);
	for (unsigned int l = s->level + 1; l <= g->levels && !err; l++)
		err = flush(b, l);
	if (!err)
		memcpy(root, b->rank[g->levels + 1].buf, g->digest_size);
	return err;
}

int verity_build_end(struct verity_build *b, struct verity_digest *digest,
		     uint8_t *desc)
{
	struct verity_desc d = { .params = b->params, .data_size = b->size };
	uint8_t raw[VERITY_DESC_SIZE];
	struct verity_geom g;
	int err = verity_geom_init(&g, &b->params, b->size, NULL);

	if (!err && b->size)
		err = verity_build_part_end(b, g.levels, d.root);
	if (err)
		return err;
	verity_desc_encode(&d, raw);
	err = verity_desc_digest(raw, digest);
	if (!err && desc)
		memcpy(desc, raw, sizeof(raw));
	return err;
}
