/* SPDX-License-Identifier: MIT */
/* Data passes only when it leads to the root, damage is told from its place,
 * and a hash block's mark spares the climb above it but nothing else. */
#include "merkle/verify.h"
#include "t/data.h"
#include "t/memseal.h"
#include "t/tap.h"

#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TREE_BLOCKS = 128, THREADS = 4 };

/* A sealed file in memory, and what fetch() gives for its hash blocks. */
struct sealed {
	struct verity_params p;
	size_t size, padded;
	uint8_t *data; /* zero-filled to whole blocks */
	uint8_t *tree;
	struct verity_tree t;
	struct verity_source src;
	_Atomic(uint8_t) good[MAX_TREE_BLOCKS];
	unsigned int fetches; /* when counting */
	bool counting;
	int64_t fail_slot; /* of the block that gives fail; < 0: none */
	int fail;
};

static uint64_t slot_of(const struct sealed *s, unsigned int level,
			uint64_t index)
{
	return s->t.geom.first[level] + index;
}

/* A gap after each block: hashes of the next one must not be found there. */
static uint8_t *hash_block(const struct sealed *s, unsigned int level,
			   uint64_t index)
{
	return s->tree + 2 * slot_of(s, level, index) * s->p.block_size;
}

static int fetch(void *arg, unsigned int level, uint64_t index,
		 struct verity_hblock *out)
{
	struct sealed *s = arg;
	uint64_t slot = slot_of(s, level, index);

	if (s->counting)
		s->fetches++;
	if (level < 1 || level > s->t.geom.levels ||
	    index >= s->t.geom.blocks[level])
		return -ERANGE;
	if ((int64_t)slot == s->fail_slot)
		return s->fail;
	out->bytes = hash_block(s, level, index);
	out->good = &s->good[slot];
	return 0;
}

static void clear_marks(struct sealed *s)
{
	for (size_t i = 0; i < MAX_TREE_BLOCKS; i++)
		atomic_store(&s->good[i], 0);
}

/* Each hash block with the gap behind it. */
static void seal(struct sealed *s)
{
	struct memseal m = { .p = s->p,
			     .data = s->data,
			     .size = s->size,
			     .tree = s->tree,
			     .room = MAX_TREE_BLOCKS * 2 *
				     (size_t)s->p.block_size,
			     .stride = 2 * (size_t)s->p.block_size };

	memseal(&m);
	memseal_tree(&m, &s->t);
}

static void sealed_init(struct sealed *s, uint32_t alg, uint32_t bs,
			size_t size)
{
	memset(s, 0, sizeof(*s));
	s->p = (struct verity_params){ alg, bs, 2, { 7, 9 } };
	s->size = size;
	s->padded = (size + bs - 1) / bs * bs;
	s->data = calloc(1, s->padded + 1);
	s->tree = calloc(MAX_TREE_BLOCKS, 2 * (size_t)bs);
	if (!s->data || !s->tree)
		bail("out of memory");
	pattern(s->data, size);
	s->src = (struct verity_source){ fetch, s };
	s->fail_slot = -1;
	seal(s);
	if (s->t.geom.tree_blocks > MAX_TREE_BLOCKS)
		bail("MAX_TREE_BLOCKS is too small");
}

static void sealed_fini(struct sealed *s)
{
	verity_tree_fini(&s->t);
	free(s->data);
	free(s->tree);
}

static int check(struct sealed *s, uint64_t pos, size_t len,
		 struct verity_mismatch *why)
{
	return verity_verify(&s->t, &s->src, pos, s->data + pos, len, why);
}

/* By libcrypto, not by the code under test. */
static void hash_one(const struct sealed *s, const uint8_t *block, uint8_t *out)
{
	size_t salt = s->p.alg == VERITY_SHA256 ? 64 : 128;
	uint8_t all[128 + 4096] = { 0 };

	memcpy(all, s->p.salt, s->p.salt_size);
	memcpy(all + salt, block, s->p.block_size);
	if (!EVP_Digest(all, salt + s->p.block_size, out, NULL,
			s->p.alg == VERITY_SHA256 ? EVP_sha256() : EVP_sha512(),
			NULL))
		bail("libcrypto cannot hash");
}

static void test_good(struct sealed *s, const char *name)
{
	size_t bs = s->p.block_size, n = s->padded / bs, bad = 0, step;

	step = n > 50 ? 37 : 1;
	for (size_t from = 0; from <= n; from += step)
		for (size_t to = from; to <= n; to += step) {
			clear_marks(s);
			bad += check(s, from * bs, (to - from) * bs, NULL) != 0;
		}
	is_uint(bad, 0, "%s: good data verifies, whatever the range", name);
	clear_marks(s);
	is_int(check(s, 0, s->padded, NULL), 0, "%s: all of it at once", name);
}

static bool same_mismatch(const struct verity_mismatch *a,
			  const struct verity_mismatch *b)
{
	return a->pos == b->pos && a->index == b->index &&
	       a->level == b->level && a->size == b->size &&
	       !memcmp(a->want, b->want, sizeof(a->want)) &&
	       !memcmp(a->got, b->got, sizeof(a->got));
}

/* The report that is due for a block of any level, reached from a data
 * block; the undamaged hash is what the level above still holds. */
static void expect(const struct sealed *s, unsigned int level, uint64_t index,
		   uint64_t data_block, struct verity_mismatch *out)
{
	const struct verity_geom *g = &s->t.geom;
	const uint8_t *bytes = level ? hash_block(s, level, index)
				     : s->data + (index << g->block_lg);
	const uint8_t *want = s->t.root;

	if (level < g->levels)
		want = hash_block(s, level + 1, index >> g->arity_lg) +
		       geom_slot(g, index);
	*out = (struct verity_mismatch){ .pos = data_block << g->block_lg,
					 .index = index,
					 .level = level,
					 .size = g->digest_size };
	memcpy(out->want, want, g->digest_size);
	hash_one(s, bytes, out->got);
}

/* Check [from, to) in blocks, all marks cleared. */
static int fresh_check(struct sealed *s, uint64_t from, uint64_t to,
		       struct verity_mismatch *why)
{
	unsigned int lg = s->t.geom.block_lg;

	clear_marks(s);
	return check(s, from << lg, (size_t)((to - from) << lg), why);
}

/* Damage each data block in turn, at a byte that walks through it. */
static void test_bad_data(struct sealed *s, const char *name)
{
	uint64_t n = s->t.geom.blocks[0];
	unsigned int missed = 0, misplaced = 0, refused = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint8_t *byte = s->data + (i << s->t.geom.block_lg) +
				i * 7 % s->p.block_size;
		struct verity_mismatch why = { 0 }, want;

		*byte ^= 0x10;
		missed += fresh_check(s, 0, n, &why) != -EBADMSG;
		expect(s, 0, i, i, &want);
		misplaced += !same_mismatch(&why, &want);
		missed += fresh_check(s, i, i + 1, NULL) != -EBADMSG;
		refused += fresh_check(s, 0, i, NULL) != 0;
		refused += fresh_check(s, i + 1, n, NULL) != 0;
		*byte ^= 0x10;
	}
	is_uint(missed, 0, "%s: a damaged data block is refused", name);
	is_uint(misplaced, 0, "%s: its place and digests are told", name);
	is_uint(refused, 0, "%s: its neighbours verify", name);
}

/* Data blocks that lie under a hash block. */
static void under(const struct verity_geom *g, unsigned int level,
		  uint64_t index, uint64_t *from, uint64_t *to)
{
	unsigned int lg = level * g->arity_lg;

	*from = index << lg;
	*to = (index + 1) << lg;
	if (*to > g->blocks[0])
		*to = g->blocks[0];
}

enum { MISSED, MISPLACED, REFUSED, RULES };

/* One damaged hash block: every data block under it, and no other, is bad. */
static void check_around(struct sealed *s, unsigned int level, uint64_t index,
			 const struct verity_mismatch *due, unsigned int *wrong)
{
	uint64_t n = s->t.geom.blocks[0], from, to;

	under(&s->t.geom, level, index, &from, &to);
	for (uint64_t i = 0; i < n; i++) {
		struct verity_mismatch why = { 0 }, want = *due;
		int err = fresh_check(s, i, i + 1, &why);

		if (i < from || i >= to) {
			wrong[REFUSED] += err != 0;
			continue;
		}
		want.pos = i << s->t.geom.block_lg;
		wrong[MISSED] += err != -EBADMSG;
		wrong[MISPLACED] += !same_mismatch(&why, &want);
	}
	wrong[REFUSED] += fresh_check(s, 0, from, NULL) != 0;
	wrong[REFUSED] += fresh_check(s, to, n, NULL) != 0;
	wrong[MISSED] += fresh_check(s, 0, n, NULL) != -EBADMSG;
}

static void say_rules(const unsigned int *wrong, const char *name,
		      const char *what)
{
	is_uint(wrong[MISSED], 0, "%s: all under a %s hash block is refused",
		name, what);
	is_uint(wrong[MISPLACED], 0,
		"%s: the %s block and the data block are told", name, what);
	is_uint(wrong[REFUSED], 0, "%s: all not under it verifies", name);
}

static void test_bad_tree(struct sealed *s, const char *name)
{
	const struct verity_geom *g = &s->t.geom;
	unsigned int wrong[RULES] = { 0 };

	for (unsigned int l = 1; l <= g->levels; l++)
		for (uint64_t i = 0; i < g->blocks[l]; i++) {
			uint8_t *byte = hash_block(s, l, i) +
					(i * 31 + l) % g->block_size;
			struct verity_mismatch due;

			*byte ^= 1;
			expect(s, l, i, 0, &due);
			check_around(s, l, i, &due, wrong);
			*byte ^= 1;
		}
	say_rules(wrong, name, "damaged");
}

static void test_missing(struct sealed *s, const char *name)
{
	const struct verity_geom *g = &s->t.geom;
	unsigned int wrong[RULES] = { 0 };

	s->fail = -ENODATA;
	for (unsigned int l = 1; l <= g->levels; l++)
		for (uint64_t i = 0; i < g->blocks[l]; i++) {
			struct verity_mismatch due = { .index = i, .level = l };

			s->fail_slot = (int64_t)slot_of(s, l, i);
			check_around(s, l, i, &due, wrong);
		}
	s->fail_slot = -1;
	say_rules(wrong, name, "missing");
}

static void test_fetch_fails(struct sealed *s, const char *name)
{
	static const int errs[] = { -EIO, -ENOMEM, -EINTR, -ECANCELED };
	unsigned int other = 0, touched = 0;

	for (size_t i = 0; i < LEN(errs); i++)
		for (unsigned int l = 1; l <= s->t.geom.levels; l++) {
			struct verity_mismatch why = { .pos = 77 };

			s->fail = errs[i];
			s->fail_slot = (int64_t)slot_of(s, l, 0);
			other += fresh_check(s, 0, 1, &why) != errs[i];
			touched += why.pos != 77;
		}
	s->fail_slot = -1;
	is_uint(other, 0, "%s: an error of the fetch is handed on", name);
	is_uint(touched, 0, "%s: and reports no mismatch", name);
}

static unsigned int count_fetches(struct sealed *s, uint64_t block, int want)
{
	unsigned int lg = s->t.geom.block_lg;

	s->counting = true;
	s->fetches = 0;
	if (check(s, block << lg, (size_t)1 << lg, NULL) != want)
		s->fetches = 9999;
	s->counting = false;
	return s->fetches;
}

/* Marks save work and are believed; only sound copies get one. */
static void test_marks(struct sealed *s, const char *name)
{
	unsigned int levels = s->t.geom.levels;
	uint8_t *leaf = hash_block(s, 1, 0);
	_Atomic(uint8_t) *mark = &s->good[slot_of(s, 1, 0)];

	clear_marks(s);
	is_uint(count_fetches(s, 0, 0), levels,
		"%s: with no marks the climb goes to the root", name);
	is_uint(count_fetches(s, 1, 0), 1, "%s: with a marked leaf it stops",
		name);
	atomic_store(mark, 0);
	is_uint(count_fetches(s, 0, 0), 2,
		"%s: over a new copy of the leaf it stops at the parent", name);
	is_uint(atomic_load(mark), 1, "%s: and the new copy is marked", name);
	leaf[s->p.block_size - 1] ^= 1;
	is_uint(count_fetches(s, 0, 0), 1,
		"%s: a marked copy is not hashed again", name);
	atomic_store(mark, 0);
	is_uint(count_fetches(s, 0, -EBADMSG), 2,
		"%s: a bad copy without a mark is checked and refused", name);
	is_uint(atomic_load(mark), 0, "%s: and gets no mark", name);
	leaf[s->p.block_size - 1] ^= 1;
	is_uint(count_fetches(s, 0, 0), 2, "%s: the good copy heals it", name);
}

static void test_trusted_block(struct sealed *s, const char *name)
{
	const struct verity_geom *g = &s->t.geom;
	struct verity_mismatch why = { 0 }, due;
	unsigned int wrong = 0;

	for (unsigned int l = 1; l <= g->levels; l++) {
		struct verity_hblock h = { 0 };
		uint64_t last = g->blocks[l] - 1;

		clear_marks(s);
		wrong += verity_trusted_block(&s->t, &s->src, l, last, &h,
					      NULL) != 0 ||
			 h.bytes != hash_block(s, l, last) ||
			 atomic_load(h.good) != 1;
	}
	is_uint(wrong, 0, "%s: a hash block of any level can be had", name);
	s->tree[5] ^= 1;
	clear_marks(s);
	expect(s, g->levels, 0, 0, &due);
	ok(verity_trusted_block(&s->t, &s->src, 1, 0,
				&(struct verity_hblock){ 0 },
				&why) == -EBADMSG &&
		   same_mismatch(&why, &due),
	   "%s: not when the root block is bad, and that one is named", name);
	s->tree[5] ^= 1;
}

static void test_arguments(struct sealed *s, const char *name)
{
	size_t bs = s->p.block_size, end = s->padded;
	const struct {
		uint64_t pos;
		size_t len;
		int want;
		const char *what;
	} call[] = {
		{ 1, bs, -EINVAL, "a position within a block" },
		{ bs / 2, bs, -EINVAL, "one at half a block" },
		{ 0, 1, -EINVAL, "a length of less than a block" },
		{ 0, end - 1, -EINVAL, "one that ends within a block" },
		{ 0, end + bs, -EINVAL, "a block past the last" },
		{ end, bs, -EINVAL, "only a block past the last" },
		{ end + bs, 0, -EINVAL, "nothing, past the end" },
		{ 0 - (uint64_t)bs, bs, -EINVAL, "the last block of 2^64" },
		{ bs, 0 - bs, -EINVAL, "a length that wraps" },
		{ 0, 0, 0, "nothing, at the start" },
		{ end, 0, 0, "nothing, at the end" },
	};

	for (size_t i = 0; i < LEN(call); i++)
		is_int(verity_verify(&s->t, &s->src, call[i].pos, s->data,
				     call[i].len, NULL),
		       call[i].want, "%s: %s is %s", name, call[i].what,
		       call[i].want ? "refused" : "good");
}

/* The tail of the last block is zero, and nothing else. */
static void test_tail(struct sealed *s, const char *name)
{
	uint64_t n = s->t.geom.blocks[0];

	s->data[s->padded - 1] ^= 1;
	is_int(fresh_check(s, n - 1, n, NULL), -EBADMSG,
	       "%s: bytes past the end must be zero", name);
	s->data[s->padded - 1] ^= 1;
}

/* Threads that all climb at once, from different ends, over shared marks. */
struct job {
	struct sealed *s;
	unsigned int number, wrong;
	pthread_barrier_t *start;
};

static void *work(void *arg)
{
	struct job *j = arg;
	uint64_t n = j->s->t.geom.blocks[0];
	unsigned int lg = j->s->t.geom.block_lg;

	pthread_barrier_wait(j->start);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = (i * 7 + j->number * n / THREADS) % n;

		j->wrong += check(j->s, at << lg, (size_t)1 << lg, NULL) !=
			    (at == n / 2 ? -EBADMSG : 0);
	}
	return NULL;
}

static void test_threads(struct sealed *s, const char *name)
{
	uint64_t bad = s->t.geom.blocks[0] / 2;
	uint8_t *byte = s->data + (bad << s->t.geom.block_lg);
	pthread_t thread[THREADS];
	struct job job[THREADS];
	pthread_barrier_t start;
	unsigned int wrong = 0;

	*byte ^= 1;
	clear_marks(s);
	pthread_barrier_init(&start, NULL, THREADS);
	for (unsigned int i = 0; i < THREADS; i++) {
		job[i] = (struct job){ s, i, 0, &start };
		if (pthread_create(&thread[i], NULL, work, &job[i]))
			bail("no thread");
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		wrong += job[i].wrong;
	}
	pthread_barrier_destroy(&start);
	*byte ^= 1;
	is_uint(wrong, 0, "%s: %d threads over the same marks agree", name,
		THREADS);
}

static const struct {
	const char *name;
	uint32_t alg, bs;
	size_t size;
} shape[] = { { "2 levels", VERITY_SHA256, 1024, 40 * 1024 - 100 },
	      { "3 levels", VERITY_SHA256, 1024, 1030 * 1024 - 1 },
	      { "4 levels", VERITY_SHA512, 512, 520 * 512 - 7 } };

static void test_shape(struct sealed *s, const char *name)
{
	test_good(s, name);
	test_bad_data(s, name);
	test_bad_tree(s, name);
	test_missing(s, name);
	test_fetch_fails(s, name);
	test_marks(s, name);
	test_trusted_block(s, name);
	test_arguments(s, name);
	test_tail(s, name);
	test_threads(s, name);
}

enum { SHAPE_CHECKS = 2 + 3 + 3 + 3 + 2 + 8 + 2 + 11 + 1 + 1 };

int main(void)
{
	static struct sealed s;

	plan(LEN(shape) * SHAPE_CHECKS + 2 + 3 + 1 + 1);
	for (size_t i = 0; i < LEN(shape); i++) {
		sealed_init(&s, shape[i].alg, shape[i].bs, shape[i].size);
		test_shape(&s, shape[i].name);
		sealed_fini(&s);
	}
	sealed_init(&s, VERITY_SHA256, 1024, 1000);
	test_good(&s, "no tree");
	test_bad_data(&s, "no tree");
	test_tail(&s, "no tree");
	sealed_fini(&s);
	sealed_init(&s, VERITY_SHA512, 1024, 0);
	ok(!check(&s, 0, 0, NULL) && check(&s, 0, 1024, NULL) == -EINVAL,
	   "an empty file has no block to check");
	sealed_fini(&s);
	return done();
}
