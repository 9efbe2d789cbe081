/* SPDX-License-Identifier: MIT */
/* A tree has the levels, sizes and offsets that counting by hand gives, and
 * no parameter or size out of range gets a tree. */
#include "merkle/geom.h"
#include "t/complaint.h"
#include "t/data.h"
#include "t/tap.h"

#include <errno.h>
#include <string.h>

#define KIB(n) (1024ULL * (n))
#define MIB(n) (KIB(1024) * (n))
#define GIB(n) (MIB(1024) * (n))
#define TIB(n) (GIB(1024) * (n))

enum { RANDOM_SIZES = 60, SIZES = 12 + RANDOM_SIZES };

static uint64_t seed = 0x9e3779b97f4a7c15;

/* Counted by division, level by level; no shifts, no shortcuts. */
struct model {
	unsigned int levels;
	uint64_t count[80]; /* blocks of each level */
};

static uint64_t div_up(uint64_t n, uint64_t by)
{
	return n / by + (n % by != 0);
}

static void count_model(struct model *m, const struct verity_params *p,
			uint64_t size)
{
	uint64_t arity = p->block_size / verity_digest_size(p->alg);

	m->levels = 0;
	m->count[0] = div_up(size, p->block_size);
	while (m->count[m->levels] > 1) {
		m->count[m->levels + 1] = div_up(m->count[m->levels], arity);
		m->levels++;
	}
}

/* Everything above a level comes before it. */
static uint64_t model_offset(const struct model *m, uint32_t block_size,
			     unsigned int level, uint64_t index)
{
	uint64_t before = index;

	for (unsigned int l = level + 1; l <= m->levels; l++)
		before += m->count[l];
	return before * block_size;
}

static bool same_counts(const struct verity_geom *g, const struct model *m)
{
	if (g->levels != m->levels)
		return false;
	for (unsigned int l = 0; l <= m->levels; l++)
		if (g->blocks[l] != m->count[l])
			return false;
	return true;
}

static bool same_offset(const struct verity_geom *g, const struct model *m,
			const struct verity_params *p, unsigned int level,
			uint64_t index)
{
	uint64_t want = model_offset(m, p->block_size, level, index), got = 0;

	return !verity_tree_offset(p, g->data_size, level, index, &got) &&
	       got == want && geom_offset(g, level, index) == want;
}

static bool same_offsets(const struct verity_geom *g, const struct model *m,
			 const struct verity_params *p)
{
	for (unsigned int l = 1; l <= m->levels; l++) {
		uint64_t last = m->count[l] - 1;

		if (!same_offset(g, m, p, l, 0) ||
		    !same_offset(g, m, p, l, last) ||
		    !same_offset(g, m, p, l, last ? rnd(&seed) % last : 0))
			return false;
	}
	return true;
}

/* The bytes in each of a file's blocks add up to the file. */
static bool same_lengths(const struct verity_geom *g)
{
	uint64_t last = g->blocks[0] - 1;

	if (!g->data_size)
		return true;
	return (last == 0 || geom_block_len(g, 0) == g->block_size) &&
	       last * g->block_size + geom_block_len(g, last) == g->data_size;
}

static bool same_slots(const struct verity_geom *g)
{
	uint64_t arity = g->block_size / g->digest_size, at = rnd(&seed) >> 1;

	return geom_slot(g, 0) == 0 &&
	       geom_slot(g, arity - 1) == g->block_size - g->digest_size &&
	       geom_slot(g, arity) == 0 &&
	       geom_slot(g, at) == at % arity * g->digest_size;
}

/* The edges first; then sizes of every order of magnitude. */
static uint64_t nth_size(size_t i, uint64_t bs, uint64_t arity)
{
	const uint64_t two = bs * arity, three = two * arity;
	const uint64_t edges[] = { 0,       1,         bs - 1,  bs,
				   bs + 1,  3 * bs,    two - 1, two,
				   two + 1, three - 1, three,   three + 1 };

	_Static_assert(LEN(edges) + RANDOM_SIZES == SIZES, "count them");
	return i < LEN(edges) ? edges[i] : rnd(&seed) >> (1 + i % 60);
}

enum { COUNTS, TOTALS, OFFSETS, LENGTHS, LIMITS, RULES };

static void compare(const struct verity_params *p, uint64_t size,
		    unsigned int wrong[RULES])
{
	struct verity_geom g;
	struct model m;
	uint64_t total;
	int err = verity_geom_init(&g, p, size, NULL);

	count_model(&m, p, size);
	wrong[LIMITS] += err != (m.levels > VERITY_MAX_LEVELS ? -EFBIG : 0);
	if (err)
		return;
	total = m.levels ? model_offset(&m, 1, 0, 0) : 0;
	wrong[COUNTS] += !same_counts(&g, &m);
	wrong[TOTALS] +=
		g.tree_blocks != total || g.tree_size != total * p->block_size;
	wrong[OFFSETS] += !same_offsets(&g, &m, p) || !same_slots(&g);
	wrong[LENGTHS] += !same_lengths(&g);
}

static void test_shape(uint32_t alg, uint32_t block_size)
{
	static const char *const rule[RULES] = {
		"every level has the blocks that division gives",
		"the tree is the sum of its levels",
		"the root comes first and each level follows the one above",
		"the blocks' bytes add up to the file",
		"more than 8 levels, and only those, are refused",
	};
	struct verity_params p = { alg, block_size, 0, { 0 } };
	uint64_t arity = block_size / verity_digest_size(alg);
	unsigned int wrong[RULES] = { 0 };

	for (size_t i = 0; i < SIZES; i++)
		compare(&p, nth_size(i, block_size, arity), wrong);
	for (size_t i = 0; i < RULES; i++)
		is_uint(wrong[i], 0, "%s/%u: %s", verity_alg_name(alg),
			block_size, rule[i]);
}

static const struct {
	uint64_t size;
	unsigned int levels;
	uint64_t blocks, bytes;
} published[] = {
	{ 0, 0, 0, 0 },
	{ 4096, 0, 0, 0 },
	{ 4097, 1, 1, 4096 },
	{ KIB(512), 1, 1, 4096 },
	{ MIB(64), 2, 129, 528384 },
	{ GIB(1), 3, 2065, 8458240 },
	{ GIB(10), 4, 20643, 84553728 },
	{ TIB(1), 4, 2113665, 8657571840 },
};

static void test_published(void)
{
	const struct verity_params p = VERITY_PARAMS_DEFAULT;
	struct verity_geom g;

	for (size_t i = 0; i < LEN(published); i++) {
		uint64_t size = published[i].size;

		if (verity_geom_init(&g, &p, size, NULL))
			bail("no shape for %llu", (unsigned long long)size);
		ok(g.levels == published[i].levels &&
			   g.tree_blocks == published[i].blocks &&
			   g.tree_size == published[i].bytes,
		   "%llu bytes have the published levels and tree",
		   (unsigned long long)size);
	}
}

/* The largest file of a shape, and the byte that is too much. */
static void test_limit(uint32_t alg, uint32_t bs, uint64_t most,
		       const char *field, uint64_t value, uint64_t limit)
{
	struct verity_params p = { alg, bs, 0, { 0 } };
	struct verity_complaint why = { 0 };
	struct verity_geom g, before;
	int err = verity_geom_init(&g, &p, most, NULL);

	ok(!err && g.levels == VERITY_MAX_LEVELS,
	   "%s/%u: %llu bytes have a tree of 8 levels", verity_alg_name(alg),
	   bs, (unsigned long long)most);
	memcpy(&before, &g, sizeof(g)); /* padding too */
	is_int(verity_geom_init(&g, &p, most + 1, &why), -EFBIG,
	       "%s/%u: one byte more is too big", verity_alg_name(alg), bs);
	ok(complaint_says(&why, field, value, "must be at most", limit),
	   "and the %s is named", field);
	is_mem(&g, &before, sizeof(g), "and the shape is not written");
}

static void test_limits(void)
{
	const uint64_t max = VERITY_MAX_SIZE;

	test_limit(VERITY_SHA256, 4096, max, "file size", max + 1, max);
	test_limit(VERITY_SHA512, 4096, 1ULL << 60, "tree levels", 9, 8);
	test_limit(VERITY_SHA512, 1024, TIB(4), "tree levels", 9, 8);
	test_limit(VERITY_SHA256, 1024, TIB(1024), "tree levels", 9, 8);
	test_limit(VERITY_SHA512, 512, GIB(8), "tree levels", 9, 8);
}

static const struct {
	struct verity_params p;
	int err;
	const char *field;
	uint64_t value;
	const char *rule;
	uint64_t limit;
} bad[] = {
	{ { 0, 4096, 0, { 0 } }, -EINVAL, "hash algorithm", 0, LEAST, 1 },
	{ { 3, 4096, 0, { 0 } }, -EINVAL, "hash algorithm", 3, MOST, 2 },
	{ { 1, 0, 0, { 0 } }, -EINVAL, "block size", 0, LEAST, 512 },
	{ { 1, 256, 0, { 0 } }, -EINVAL, "block size", 256, LEAST, 512 },
	{ { 1, 511, 0, { 0 } }, -EINVAL, "block size", 511, LEAST, 512 },
	{ { 1, 768, 0, { 0 } }, -EINVAL, "block size", 768, POW2, 65536 },
	{ { 1, 65535, 0, { 0 } }, -EINVAL, "block size", 65535, POW2, 65536 },
	{ { 1, 131072, 0, { 0 } }, -EINVAL, "block size", 131072, POW2, 65536 },
	{ { 1, 4096, 33, { 0 } }, -EMSGSIZE, "salt size", 33, MOST, 32 },
	{ { 2, 512, 512, { 0 } }, -EMSGSIZE, "salt size", 512, MOST, 32 }
};

static void test_bad_params(void)
{
	for (size_t i = 0; i < LEN(bad); i++) {
		struct verity_complaint why = { 0 };
		struct verity_geom g;

		is_int(verity_params_check(&bad[i].p, &why), bad[i].err,
		       "a %s of %llu is refused", bad[i].field,
		       (unsigned long long)bad[i].value);
		ok(complaint_says(&why, bad[i].field, bad[i].value, bad[i].rule,
				  bad[i].limit),
		   "and named");
		is_int(verity_geom_init(&g, &bad[i].p, 1, NULL), bad[i].err,
		       "it has no shape");
	}
}

static void test_offset_bounds(void)
{
	const struct verity_params p = VERITY_PARAMS_DEFAULT;
	struct verity_params odd = p;
	uint64_t at = 77, size = KIB(512) + 1; /* 129 blocks, 2 leaves, root */

	odd.block_size = 4095;
	is_int(verity_tree_offset(&p, size, 0, 0, &at), -EINVAL,
	       "a data block has no place in the tree");
	is_int(verity_tree_offset(&p, size, 3, 0, &at), -EINVAL,
	       "nor has a level above the root");
	is_int(verity_tree_offset(&p, size, 1, 2, &at), -EINVAL,
	       "nor a leaf past the last");
	is_int(verity_tree_offset(&p, size, 2, 1, &at), -EINVAL,
	       "nor a second root");
	is_int(verity_tree_offset(&p, 4096, 1, 0, &at), -EINVAL,
	       "nor any block of a one-block file's");
	is_int(verity_tree_offset(&p, 0, 1, 0, &at), -EINVAL,
	       "nor of an empty file's");
	is_int(verity_tree_offset(&odd, size, 1, 0, &at), -EINVAL,
	       "nor of parameters that no tree has");
	is_int(verity_tree_offset(&p, VERITY_MAX_SIZE + 1, 1, 0, &at), -EFBIG,
	       "nor of a file too big");
	is_uint(at, 77, "a refused offset is not written");
	is_int(verity_tree_offset(&p, size, 1, 1, &at), 0,
	       "the last leaf has one");
	is_uint(at, 8192, "and it is the tree's end but one block");
}

int main(void)
{
	enum { FIXED = 2 * 8 * RULES + 5 * 4 + 11 };

	plan(FIXED + LEN(published) + 3 * LEN(bad));
	for (uint32_t alg = VERITY_SHA256; alg <= VERITY_SHA512; alg++)
		for (uint32_t bs = VERITY_MIN_BLOCK; bs <= VERITY_MAX_BLOCK;
		     bs *= 2)
			test_shape(alg, bs);
	test_published();
	test_limits();
	test_bad_params();
	test_offset_bounds();
	return done();
}
