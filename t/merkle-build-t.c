/* SPDX-License-Identifier: MIT */
/* time-limit: 120
 * However a file is handed to the builder, in whatever pieces, parts and
 * holes, its tree and digest are those that hashing block by block gives. */
#include "merkle/build.h"
#include "merkle/desc.h"
#include "t/data.h"
#include "t/tap.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed = 88172645463325252;

static void *must(void *p)
{
	if (!p)
		bail("out of memory");
	return p;
}

static uint8_t *some_data(size_t size)
{
	uint8_t *data = must(malloc(size + 1));

	pattern(data, size);
	return data;
}

/* The model: libcrypto, one block at a time, one whole level at a time. */
struct model {
	struct verity_params p;
	uint64_t size;
	uint8_t root[VERITY_MAX_DIGEST];
	uint8_t *tree; /* root level first */
	size_t tree_len;
};

static void hash_one(const struct verity_params *p, const uint8_t *block,
		     uint8_t *out)
{
	size_t salt_len =
		p->salt_size ? (p->alg == VERITY_SHA256 ? 64 : 128) : 0;
	uint8_t *all = must(calloc(1, salt_len + VERITY_MAX_BLOCK));

	memcpy(all, p->salt, p->salt_size);
	memcpy(all + salt_len, block, p->block_size);
	if (!EVP_Digest(all, salt_len + p->block_size, out, NULL,
			p->alg == VERITY_SHA256 ? EVP_sha256() : EVP_sha512(),
			NULL))
		bail("libcrypto cannot hash");
	free(all);
}

/* Zero-pad @len bytes to blocks; Return: how many. */
static size_t pad(const struct verity_params *p, uint8_t **data, size_t len)
{
	size_t n = (len + p->block_size - 1) / p->block_size;

	*data = must(realloc(*data, n * p->block_size + 1));
	memset(*data + len, 0, n * p->block_size - len);
	return n;
}

static void model_init(struct model *m, const struct verity_params *p,
		       const uint8_t *data, size_t size)
{
	size_t ds = verity_digest_size(p->alg), bs = p->block_size, n;
	uint8_t *level = must(malloc(size + 1));

	*m = (struct model){ *p, size, { 0 }, must(malloc(1)), 0 };
	memcpy(level, data, size);
	n = pad(p, &level, size);
	while (n > 1) {
		uint8_t *above = must(malloc(n * ds));

		for (size_t i = 0; i < n; i++)
			hash_one(p, level + i * bs, above + i * ds);
		free(level);
		level = above;
		n = pad(p, &level, n * ds);
		m->tree = must(realloc(m->tree, m->tree_len + n * bs));
		memmove(m->tree + n * bs, m->tree, m->tree_len);
		memcpy(m->tree, level, n * bs);
		m->tree_len += n * bs;
	}
	if (n)
		hash_one(p, level, m->root);
	free(level);
}

/* What the emit function was given, each block where it belongs. */
struct image {
	const struct model *m;
	uint8_t *tree;
	uint64_t next[VERITY_MAX_LEVELS + 1], blocks;
	bool disorder;
	int calls, fail_at; /* 0: never */
};

static int keep(void *arg, unsigned int level, uint64_t index, size_t count,
		const void *blocks)
{
	struct image *im = arg;
	const uint8_t *from = blocks;
	uint32_t bs = im->m->p.block_size;
	uint64_t at = 0;

	if (++im->calls == im->fail_at)
		return -EIO;
	if (level > VERITY_MAX_LEVELS)
		return -ERANGE;
	im->disorder |= im->next[level] != index;
	im->next[level] = index + count;
	im->blocks += count;
	for (; count; count--, index++, from += bs) {
		if (verity_tree_offset(&im->m->p, im->m->size, level, index,
				       &at))
			return -ERANGE;
		memcpy(im->tree + at, from, bs);
	}
	return 0;
}

/* As many blocks as there are, and all bytes right: each came once. */
static bool image_right(const struct image *im)
{
	return im->blocks * im->m->p.block_size == im->m->tree_len &&
	       !memcmp(im->tree, im->m->tree, im->m->tree_len);
}

/* @im: NULL for no emit function */
static struct verity_build *begin(const struct model *m, struct image *im)
{
	struct verity_build *b;

	if (verity_build_new(&m->p, im ? keep : NULL, im, &b))
		bail("no builder");
	if (im) {
		im->m = m;
		im->tree = must(malloc(m->tree_len + 1));
		memset(im->tree, 0xee, m->tree_len);
	}
	return b;
}

/* Return: 0, the build's error, or -EBADMSG for a wrong result */
static int end(struct verity_build *b, const struct model *m)
{
	struct verity_desc d = { .params = m->p, .data_size = m->size };
	uint8_t raw[VERITY_DESC_SIZE], want_raw[VERITY_DESC_SIZE];
	struct verity_digest got, want;
	int err = verity_build_end(b, &got, raw);

	memcpy(d.root, m->root, sizeof(d.root));
	verity_desc_encode(&d, want_raw);
	if (err)
		return err;
	if (verity_desc_digest(want_raw, &want) ||
	    !verity_digest_equal(&got, &want) ||
	    memcmp(raw, want_raw, sizeof(raw)) != 0)
		return -EBADMSG;
	return 0;
}

enum cut { ONE, SEVEN, WHOLE, BLOCK_LESS_1, BLOCK_MORE_1, RANDOM, CUTS };

enum { DIGEST, TREE, ORDER, WITHOUT, RULES };

/* Return: as end() */
static int build(const struct model *m, struct image *im, const uint8_t *data,
		 enum cut cut)
{
	struct verity_build *b = begin(m, im);
	int err = verity_build_add(b, data, 0);

	for (size_t at = 0, n; at < m->size && !err; at += n) {
		const size_t left = m->size - at, bs = m->p.block_size;
		const size_t len[] = { 1,      7,      left,
				       bs - 1, bs + 1, rnd(&seed) % (4 * bs) };

		n = len[cut] < left ? len[cut] : left;
		err = verity_build_add(b, data + at, n);
	}
	if (!err)
		err = end(b, m);
	verity_build_free(b);
	return err;
}

static void stream(const struct model *m, const uint8_t *data, enum cut cut,
		   unsigned int wrong[RULES])
{
	struct image im = { 0 };

	wrong[DIGEST] += build(m, &im, data, cut) != 0;
	wrong[TREE] += !image_right(&im);
	wrong[ORDER] += im.disorder;
	free(im.tree);
	wrong[WITHOUT] += build(m, NULL, data, cut) != 0;
}

static void make_params(struct verity_params *p, uint32_t alg, uint32_t bs,
			uint32_t salt_size)
{
	*p = (struct verity_params){ alg, bs, salt_size, { 0 } };
	for (uint32_t i = 0; i < salt_size; i++)
		p->salt[i] = (uint8_t)(0xf0 + i);
}

static void test_stream(uint32_t alg, uint32_t bs, uint32_t salt_size)
{
	static const char *const rule[RULES] = {
		"the digest is that of hashing block by block",
		"each hash block is emitted once, with the right bytes",
		"a level's blocks come in order",
		"the digest needs no emit function",
	};
	const size_t arity = bs / verity_digest_size(alg), two = arity * bs;
	/* the edges, up to those where a level no longer fits in memory */
	const size_t room = 65536 * arity, three = two * arity;
	const size_t size[] = { 0,      1,        bs - 1,    bs,
				bs + 1, bs + two, two,       two + 1,
				room,   room + 1, three + 1, arity * room + 1 };
	const size_t cap = salt_size ? 140000 : 4400000;
	unsigned int wrong[RULES] = { 0 };
	uint8_t *data = some_data(cap);
	struct verity_params p;
	struct model m;

	make_params(&p, alg, bs, salt_size);
	for (size_t i = 0; i < LEN(size); i++) {
		if (size[i] > cap)
			continue;
		model_init(&m, &p, data, size[i]);
		/* small pieces only of small files */
		for (enum cut cut = size[i] < 20000 ? ONE : WHOLE; cut < CUTS;
		     cut++)
			stream(&m, data, cut, wrong);
		free(m.tree);
	}
	for (size_t i = 0; i < RULES; i++)
		is_uint(wrong[i], 0, "%s/%u, salt of %u: %s",
			verity_alg_name(alg), bs, salt_size, rule[i]);
	free(data);
}

/* Runs of zero bytes as holes, all else as data. */
static int feed(struct verity_build *b, const uint8_t *data, size_t len)
{
	int err = 0;

	for (size_t at = 0, n; at < len && !err; at += n) {
		bool hole = !data[at];

		for (n = 1; at + n < len && !data[at + n] == hole; n++)
			;
		err = hole ? verity_build_zero(b, n)
			   : verity_build_add(b, data + at, n);
	}
	return err;
}

/* The smallest subtree that meets both bounds, by trying each. */
static bool split_right(const struct verity_split *s,
			const struct verity_geom *g, const uint64_t bound[2])
{
	uint64_t parts = g->blocks[0], n = 1;
	unsigned int l = 0;

	while (parts > 1 &&
	       (n * g->block_size < bound[0] || parts > bound[1])) {
		n *= g->block_size / g->digest_size;
		parts = g->blocks[++l];
	}
	return s->level == l && s->part_blocks == n && s->parts == parts;
}

static int build_part(struct verity_build *b, const struct model *m,
		      const struct verity_split *s, uint64_t part,
		      const uint8_t *data, uint8_t *digests)
{
	uint64_t from = part * s->part_blocks * m->p.block_size;
	uint64_t len = s->part_blocks * m->p.block_size;
	size_t ds = verity_digest_size(m->p.alg);
	int err;

	if (len > m->size - from)
		len = m->size - from;
	verity_build_seek(b, part * s->part_blocks);
	err = feed(b, data + from, len);
	return err ? err
		   : verity_build_part_end(b, s->level, digests + part * ds);
}

/* Any order: a stride that has no factor in common with the parts. */
static int build_parts(struct verity_build *b, const struct model *m,
		       const struct verity_split *s, const uint8_t *data,
		       uint8_t *digests)
{
	uint64_t at = s->parts / 2;
	int err = 0;

	for (uint64_t i = 0; i < s->parts && !err; i++) {
		at = (at + 7919) % s->parts;
		err = build_part(b, m, s, at, data, digests);
	}
	return err;
}

/* Return: do the parts join to the right root? */
static bool join(const struct model *m, struct image *im,
		 const struct verity_geom *g, const struct verity_split *s,
		 const uint8_t *data)
{
	uint8_t root[VERITY_MAX_DIGEST], digests[65536]; /* 1024 parts */
	struct verity_build *b = begin(m, im);
	bool right;

	memset(root, 0xee, sizeof(root));
	right = !build_parts(b, m, s, data, digests) &&
		!verity_build_join(b, g, s, digests, root) &&
		!memcmp(root, m->root, g->digest_size);
	verity_build_free(b);
	return right;
}

static void split_and_join(const struct model *m, const uint8_t *data,
			   const uint64_t bound[2], unsigned int wrong[RULES])
{
	struct verity_split s;
	struct verity_geom g;
	struct image im = { 0 };

	if (verity_geom_init(&g, &m->p, m->size, NULL))
		bail("no shape");
	verity_split_init(&s, &g, bound[0], bound[1]);
	wrong[ORDER] += m->size ? !split_right(&s, &g, bound) : s.parts != 0;
	wrong[DIGEST] += !join(m, &im, &g, &s, data);
	wrong[TREE] += !image_right(&im);
	free(im.tree);
	wrong[WITHOUT] += !join(m, NULL, &g, &s, data);
}

/* Data and holes by turns, their edges near those of blocks and subtrees. */
static uint8_t *holey(size_t size, size_t bs, size_t arity)
{
	uint8_t *data = some_data(size);
	const size_t unit[] = { 1, bs, bs * arity, bs * arity * arity };
	size_t at = 0, n;

	while (at < size) {
		n = unit[rnd(&seed) % LEN(unit)] * (1 + rnd(&seed) % 3) +
		    rnd(&seed) % 3;
		n = n - 1 < size - at ? n - 1 : size - at;
		if (rnd(&seed) % 2)
			memset(data + at, 0, n);
		at += n;
	}
	return data;
}

static void test_parts(uint32_t alg, uint32_t bs)
{
	static const char *const rule[RULES] = {
		"parts with holes, in any order, join to the same root",
		"and to the same tree, each block emitted once",
		"the smallest parts within the bounds are taken",
		"parts join to the same root without an emit function",
	};
	const size_t arity = bs / verity_digest_size(alg), two = arity * bs;
	const size_t edge[] = { 0, 1, bs, bs + 1, two, two + 1, 3 * two - 1 };
	const uint64_t bound[][2] = { { 1, 100000 },     { 1, 10 },
				      { two, 100000 },   { 0, 1 },
				      { 100000, 3 },     { UINT64_MAX, 5 },
				      { bs + 1, 100000 } };
	unsigned int wrong[RULES] = { 0 };
	struct verity_params p;
	struct model m;

	make_params(&p, alg, bs, 3);
	for (size_t i = 0; i < LEN(edge) + 25; i++) {
		size_t size = i < LEN(edge) ? edge[i] : rnd(&seed) % 300000;
		uint8_t *data = holey(size, bs, arity);

		model_init(&m, &p, data, size);
		for (size_t j = 0; j < LEN(bound); j++)
			split_and_join(&m, data, bound[j], wrong);
		free(m.tree);
		free(data);
	}
	for (size_t i = 0; i < RULES; i++)
		is_uint(wrong[i], 0, "%s/%u: %s", verity_alg_name(alg), bs,
			rule[i]);
}

/* A file too big to hold: zero but for one byte. */
struct sparse {
	struct verity_params p;
	uint64_t size, at; /* of the byte that is 0x55; UINT64_MAX: none */
	uint8_t zero[VERITY_MAX_LEVELS + 1][VERITY_MAX_DIGEST];
};

/* The hash of a subtree; those that are whole and empty are known.  Counted
 * in blocks, since a root may span more than 2^64 bytes. */
static void sparse_hash(const struct sparse *s, unsigned int level,
			uint64_t index, uint8_t *out)
{
	size_t ds = verity_digest_size(s->p.alg);
	uint64_t bs = s->p.block_size, arity = bs / ds, span = 1;
	uint8_t *block = must(calloc(1, bs));

	for (unsigned int l = 1; l < level; l++)
		span *= arity;
	for (uint64_t i = 0; level && i < arity; i++) {
		uint64_t child = index * arity + i;

		if (child * span * bs >= s->size)
			break;
		if (s->at / bs / span != child &&
		    (child + 1) * span <= (s->size + bs - 1) / bs)
			memcpy(block + i * ds, s->zero[level - 1], ds);
		else
			sparse_hash(s, level - 1, child, block + i * ds);
	}
	if (!level && s->at / bs == index)
		block[s->at % bs] = 0x55;
	hash_one(&s->p, block, out);
	free(block);
}

static void sparse_model(struct sparse *s, struct model *m)
{
	size_t ds = verity_digest_size(s->p.alg);
	uint8_t *block = must(calloc(1, s->p.block_size));
	struct verity_geom g;

	for (unsigned int l = 0; l <= VERITY_MAX_LEVELS; l++) {
		hash_one(&s->p, block, s->zero[l]);
		for (size_t i = 0; i < s->p.block_size; i += ds)
			memcpy(block + i, s->zero[l], ds);
	}
	free(block);
	if (verity_geom_init(&g, &s->p, s->size, NULL))
		bail("no shape");
	*m = (struct model){ .p = s->p, .size = s->size };
	sparse_hash(s, g.levels, 0, m->root);
}

static void test_sparse(uint32_t alg, uint32_t bs, uint64_t size, uint64_t at)
{
	struct sparse s = { .size = size, .at = at };
	struct verity_build *b;
	struct model m;
	bool one = at < size;

	make_params(&s.p, alg, bs, 2);
	sparse_model(&s, &m);
	b = begin(&m, NULL);
	ok(!verity_build_zero(b, one ? at : size) &&
		   !verity_build_add(b, "\x55", one) &&
		   !verity_build_zero(b, one ? size - at - 1 : 0) &&
		   !end(b, &m),
	   "%s/%u: %llu bytes, all zero but at %llu, have the right digest",
	   verity_alg_name(alg), bs, (unsigned long long)size,
	   (unsigned long long)at);
	verity_build_free(b);
}

static const struct {
	uint32_t alg, bs;
	uint64_t size, at;
} big[] = { { VERITY_SHA256, 4096, INT64_MAX, UINT64_MAX },
	    { VERITY_SHA256, 4096, INT64_MAX, INT64_MAX - 1 },
	    { VERITY_SHA256, 4096, INT64_MAX, 1ULL << 62 },
	    { VERITY_SHA256, 4096, (1ULL << 61) + 12345, (1ULL << 60) - 1 },
	    { VERITY_SHA512, 65536, INT64_MAX, 1ULL << 40 },
	    { VERITY_SHA256, 65536, 1ULL << 60, 77 },
	    { VERITY_SHA512, 4096, 1ULL << 60, (1ULL << 59) + 4095 },
	    { VERITY_SHA256, 512, (1ULL << 40) - 1, 1ULL << 39 },
	    { VERITY_SHA512, 512, 1ULL << 33, UINT64_MAX },
	    { VERITY_SHA512, 512, (1ULL << 33) - 511, (1ULL << 33) - 600 } };

/* Grow a file by holes of @first and @second bytes; Return: the first error. */
static int grow(uint32_t alg, uint32_t bs, uint64_t first, uint64_t second)
{
	struct model m = { .p = { alg, bs, 0, { 0 } } };
	struct verity_build *b = begin(&m, NULL);
	struct verity_digest d;
	int err = verity_build_zero(b, first);

	if (!err)
		err = verity_build_zero(b, second);
	if (!err)
		err = verity_build_end(b, &d, NULL);
	verity_build_free(b);
	return err;
}

static const struct {
	uint32_t alg, bs;
	uint64_t first, second;
	int err;
	const char *name;
} grown[] = {
	{ 1, 4096, INT64_MAX, 0, 0, "2^63-1 bytes are a file" },
	{ 1, 4096, INT64_MAX, 1, -EFBIG, "one more is too big" },
	{ 1, 4096, 1ULL << 63, 0, -EFBIG, "so are 2^63 at once" },
	{ 1, 4096, 1, UINT64_MAX, -EFBIG, "a sum past 2^64 does not wrap" },
	{ 2, 4096, 1ULL << 60, 1, -EFBIG, "9 levels are too many" },
	{ 2, 512, INT64_MAX, 0, -EFBIG, "so are 18, and it is soon said" }
};

static void test_emit_fails(void)
{
	const size_t size = 1200000;
	struct image im = { 0 };
	int wrong = 0, late = 0, total;
	uint8_t *data = some_data(size);
	struct model m;

	model_init(&m, &(struct verity_params){ VERITY_SHA512, 512, 0, { 0 } },
		   data, size);
	ok(!build(&m, &im, data, WHOLE) && im.calls > 5,
	   "a build that emits more than once a level");
	total = im.calls;
	free(im.tree);
	for (int i = 1; i <= total; i++) {
		im = (struct image){ .fail_at = i };
		wrong += build(&m, &im, data, WHOLE) != -EIO;
		late += im.calls != i;
		free(im.tree);
	}
	is_int(wrong, 0, "ends with the error of whichever of them fails");
	is_int(late, 0, "and emits nothing after it");
	free(m.tree);
	free(data);
}

static void test_misuse(void)
{
	struct model m = { .p = { VERITY_SHA256, 1024, 0, { 0 } } };
	struct verity_build *b = begin(&m, NULL), *same = b;
	uint8_t out[VERITY_MAX_DIGEST];

	is_int(verity_build_part_end(b, 0, out), -EINVAL,
	       "a part of nothing has no digest");
	ok(!verity_build_zero(b, 33792) &&
		   verity_build_part_end(b, 1, out) == -EINVAL,
	   "nor has one of more than a subtree");
	m.p.block_size = 1000;
	is_int(verity_build_new(&m.p, NULL, NULL, &same), -EINVAL,
	       "odd block sizes get no builder");
	m.p = (struct verity_params){ VERITY_SHA256, 1024, 33, { 0 } };
	ok(verity_build_new(&m.p, NULL, NULL, &same) == -EMSGSIZE && same == b,
	   "nor do long salts, and none is written");
	verity_build_free(b);
	verity_build_free(NULL);
}

int main(void)
{
	enum { FIXED = 4 * RULES + 3 + 4 };
	static const uint32_t block[] = { 512, 1024, 4096, 65536 };
	static const uint32_t salt[] = { 0, 1, 32 };

	plan(FIXED + 2 * LEN(block) * LEN(salt) * RULES + LEN(big) +
	     LEN(grown));
	for (uint32_t alg = VERITY_SHA256; alg <= VERITY_SHA512; alg++)
		for (size_t i = 0; i < LEN(block) * LEN(salt); i++)
			test_stream(alg, block[i / LEN(salt)],
				    salt[i % LEN(salt)]);
	test_parts(VERITY_SHA256, 1024);
	test_parts(VERITY_SHA512, 512);
	test_parts(VERITY_SHA256, 4096);
	test_parts(VERITY_SHA512, 1024);
	for (size_t i = 0; i < LEN(big); i++)
		test_sparse(big[i].alg, big[i].bs, big[i].size, big[i].at);
	for (size_t i = 0; i < LEN(grown); i++)
		is_int(grow(grown[i].alg, grown[i].bs, grown[i].first,
			    grown[i].second),
		       grown[i].err, "%s", grown[i].name);
	test_emit_fails();
	test_misuse();
	return done();
}
