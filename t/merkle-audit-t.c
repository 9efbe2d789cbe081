/* SPDX-License-Identifier: MIT */
/* An audit finds just the damage that is there, in data and tree, says which
 * of the two it is, and goes on behind it. */
#include "merkle/audit.h"
#include "t/data.h"
#include "t/memseal.h"
#include "t/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BLOCKS = 2100, MAX_TREE = 128, MAX_FOUND = 64 };

/* A sealed file in memory, how its blocks can be read, and what was found. */
struct sealed {
	size_t size, bs;
	uint8_t *data, *tree; /* data zero-filled to whole blocks */
	struct verity_tree t;
	int data_err[MAX_BLOCKS], tree_err[MAX_TREE];
	struct verity_finding found[MAX_FOUND];
	size_t count;
	size_t stop_after; /* findings; 0: never */
	uint64_t known;    /* index of a level 1 block stepped over */
	unsigned int data_reads;
};

static struct sealed s;

static int read_data(void *arg, uint64_t index, size_t n, uint8_t *buf)
{
	(void)arg;
	s.data_reads++;
	for (size_t i = 0; i < n; i++)
		if (s.data_err[index + i])
			return s.data_err[index + i];
	memcpy(buf, s.data + index * s.bs, n * s.bs);
	return 0;
}

static int read_tree(void *arg, unsigned int level, uint64_t index,
		     uint8_t *buf)
{
	uint64_t slot = s.t.geom.first[level] + index;

	(void)arg;
	if (s.tree_err[slot])
		return s.tree_err[slot];
	memcpy(buf, s.tree + slot * s.bs, s.bs);
	return 0;
}

static int known(void *arg, unsigned int level, uint64_t index,
		 const uint8_t *want)
{
	(void)want;
	(void)arg;
	return level == 1 && index == s.known;
}

static int found(void *arg, const struct verity_finding *f)
{
	(void)arg;
	if (s.count == MAX_FOUND)
		bail("more findings than there is room for");
	s.found[s.count++] = *f;
	return s.count == s.stop_after ? -ECANCELED : 0;
}

static int run(void)
{
	struct verity_audit a = { read_data, read_tree, NULL, found, NULL };

	if (s.known != UINT64_MAX)
		a.known = known;
	s.count = 0;
	s.data_reads = 0;
	return verity_audit_run(&s.t, &a);
}

static void seal(uint32_t alg, uint32_t bs, size_t size)
{
	struct memseal m = { .p = { alg, bs, 1, { 0x33 } },
			     .size = size,
			     .room = MAX_TREE * (size_t)bs,
			     .stride = bs };

	memset(&s, 0, sizeof(s));
	s.size = size;
	s.bs = bs;
	s.known = UINT64_MAX;
	s.data = calloc(MAX_BLOCKS, bs);
	s.tree = calloc(MAX_TREE, bs);
	if (!s.data || !s.tree)
		bail("out of memory");
	pattern(s.data, size);
	m.data = s.data;
	m.tree = s.tree;
	memseal(&m);
	memseal_tree(&m, &s.t);
}

static void unseal(void)
{
	verity_tree_fini(&s.t);
	free(s.data);
	free(s.tree);
}

/* Damage that can be taken back by doing it again. */
static void flip_data(uint64_t block)
{
	s.data[block * s.bs + block % s.bs] ^= 4;
}

static void flip_tree(unsigned int level, uint64_t index)
{
	s.tree[geom_offset(&s.t.geom, level, index) + 9] ^= 8;
}

static int *tree_err(unsigned int level, uint64_t index)
{
	return &s.tree_err[s.t.geom.first[level] + index];
}

/* What a finding must be: its place, and the bytes that it is about. */
struct due {
	enum verity_damage kind;
	unsigned int level;
	uint64_t index;
	unsigned int size; /* of the digests that it shows */
};

static bool is_due(const struct verity_finding *f, const struct due *d)
{
	const struct verity_geom *g = &s.t.geom;
	unsigned int lg = d->level * g->arity_lg;
	uint64_t pos =
		d->level ? geom_offset(g, d->level, d->index) : d->index * s.bs;
	uint64_t len = s.bs;

	if (d->kind == VERITY_UNPROVEN) {
		pos = (d->index << lg) * s.bs;
		len = (1ULL << lg) * s.bs;
	}
	if (d->kind != VERITY_BAD_TREE && len > s.size - pos)
		len = s.size - pos;
	return f->kind == d->kind &&
	       f->level == (d->kind == VERITY_UNPROVEN ? 0 : d->level) &&
	       f->pos == pos && f->len == len && f->what.size == d->size &&
	       f->what.level == d->level && f->what.index == d->index &&
	       (!d->size || memcmp(f->what.want, f->what.got, d->size) != 0);
}

/* One check: the audit goes through and finds just these, in this order. */
static void finds(const struct due *due, size_t n, const char *what)
{
	int err = run();
	bool same = !err && s.count == n;

	for (size_t i = 0; i < n && same; i++)
		same = is_due(&s.found[i], &due[i]);
	ok(same, "%s", what);
	if (same)
		return;
	diag("status %d, %zu findings, want %zu", err, s.count, n);
	for (size_t i = 0; i < s.count; i++)
		diag("kind %d level %u pos %llu len %llu; %u digests",
		     (int)s.found[i].kind, s.found[i].level,
		     (unsigned long long)s.found[i].pos,
		     (unsigned long long)s.found[i].len, s.found[i].what.size);
}

#define FINDS(what, ...)                                                       \
	finds((const struct due[]){ __VA_ARGS__ },                             \
	      sizeof((const struct due[]){ __VA_ARGS__ }) /                    \
		      sizeof(struct due),                                      \
	      what)

/* 3 levels of 32: 2083 data blocks, 66 leaves, 3 above, the root. */
static void test_data(void)
{
	finds(NULL, 0, "a sound file has no findings");
	flip_data(0);
	flip_data(1000);
	flip_data(2082);
	FINDS("each bad data block is found, the short last one too",
	      { VERITY_BAD_DATA, 0, 0, 32 }, { VERITY_BAD_DATA, 0, 1000, 32 },
	      { VERITY_BAD_DATA, 0, 2082, 32 });
	flip_data(0);
	flip_data(2082);
	s.data_err[999] = -ENODATA;
	s.data_err[1001] = -EIO;
	FINDS("missing and unreadable data is told apart from bad data",
	      { VERITY_MISSING, 0, 999, 0 }, { VERITY_BAD_DATA, 0, 1000, 32 },
	      { VERITY_UNREADABLE, 0, 1001, 0 });
	flip_data(1000);
	s.data_err[999] = 0;
	s.data_err[1001] = 0;
}

static void test_tree(void)
{
	for (unsigned int l = 1; l <= 3; l++)
		for (int missing = 0; missing < 3; missing++) {
			uint64_t at = s.t.geom.blocks[l] - 1;

			if (!missing)
				flip_tree(l, at);
			else
				*tree_err(l, at) =
					missing == 1 ? -ENODATA : -EIO;
			FINDS("a bad or missing hash block over good data is "
			      "only that",
			      { VERITY_BAD_TREE, l, at, missing ? 0 : 32 });
			if (!missing)
				flip_tree(l, at);
			*tree_err(l, at) = 0;
		}
	flip_tree(3, 0);
	flip_tree(1, 40);
	FINDS("so are two of different levels, not one over the other",
	      { VERITY_BAD_TREE, 3, 0, 32 }, { VERITY_BAD_TREE, 1, 40, 32 });
	flip_tree(3, 0);
	flip_tree(1, 40);
}

static void test_both(void)
{
	flip_tree(1, 2);
	flip_data(100);
	FINDS("bad data elsewhere does not touch a bad hash block",
	      { VERITY_BAD_TREE, 1, 2, 32 }, { VERITY_BAD_DATA, 0, 100, 32 });
	flip_data(100);
	flip_data(64);
	FINDS("bad data under a bad leaf leaves all under it unproven",
	      { VERITY_BAD_TREE, 1, 2, 32 }, { VERITY_UNPROVEN, 1, 2, 0 });
	flip_data(64);
	s.data_err[65] = -ENODATA;
	FINDS("so does missing data under a bad leaf",
	      { VERITY_BAD_TREE, 1, 2, 32 }, { VERITY_UNPROVEN, 1, 2, 0 });
	s.data_err[65] = 0;
	flip_tree(1, 2);
	flip_tree(2, 0);
	flip_data(3);
	FINDS("bad data under good leaves does not hinder those above",
	      { VERITY_BAD_TREE, 2, 0, 32 }, { VERITY_BAD_DATA, 0, 3, 32 });
	flip_data(3);
	flip_tree(2, 0);
	flip_tree(1, 65);
	flip_data(2080);
	FINDS("what is unproven ends with the file",
	      { VERITY_BAD_TREE, 1, 65, 32 }, { VERITY_UNPROVEN, 1, 65, 0 });
	flip_tree(1, 65);
	flip_data(2080);
}

/* A bad block over a bad one is built from the data, if that is good. */
static void test_both_levels(void)
{
	flip_tree(2, 0);
	flip_tree(1, 2);
	flip_data(2000);
	FINDS("a bad leaf under a bad block is found, and the rest goes on",
	      { VERITY_BAD_TREE, 2, 0, 32 }, { VERITY_BAD_TREE, 1, 2, 32 },
	      { VERITY_BAD_DATA, 0, 2000, 32 });
	flip_data(3);
	FINDS("with bad data below as well, all under it is unproven",
	      { VERITY_BAD_TREE, 2, 0, 32 }, { VERITY_UNPROVEN, 2, 0, 0 },
	      { VERITY_BAD_DATA, 0, 2000, 32 });
	flip_data(3);
	s.data_err[1023] = -EIO;
	FINDS("so it is with unreadable data", { VERITY_BAD_TREE, 2, 0, 32 },
	      { VERITY_UNPROVEN, 2, 0, 0 }, { VERITY_BAD_DATA, 0, 2000, 32 });
	s.data_err[1023] = 0;
	flip_data(2000);
	flip_tree(2, 0);
	flip_tree(1, 2);
	*tree_err(3, 0) = -EIO;
	*tree_err(2, 1) = -ENODATA;
	FINDS("a root is built from the data too", { VERITY_BAD_TREE, 3, 0, 0 },
	      { VERITY_BAD_TREE, 2, 1, 0 });
	flip_data(2000);
	FINDS("one beyond repair leaves the whole file unproven",
	      { VERITY_BAD_TREE, 3, 0, 0 }, { VERITY_UNPROVEN, 3, 0, 0 });
	flip_data(2000);
	*tree_err(3, 0) = 0;
	*tree_err(2, 1) = 0;
	finds(NULL, 0, "with all put right there are no findings");
}

static void test_known(void)
{
	unsigned int all = s.data_reads;

	s.known = 3;
	flip_data(96);
	flip_data(128);
	FINDS("what is known to be good is stepped over",
	      { VERITY_BAD_DATA, 0, 128, 32 });
	ok(s.data_reads < all, "and its data is not read");
	flip_data(96);
	flip_data(128);
	flip_tree(1, 3);
	FINDS("but its hash block must still lead to the root",
	      { VERITY_BAD_TREE, 1, 3, 32 });
	flip_tree(1, 3);
	s.known = UINT64_MAX;
}

static void test_ends(void)
{
	flip_data(5);
	flip_data(6);
	s.stop_after = 1;
	ok(run() == -ECANCELED && s.count == 1,
	   "an error of the found function ends the audit");
	s.stop_after = 0;
	flip_data(5);
	flip_data(6);
	s.data_err[700] = -ENOMEM;
	ok(run() == -ENOMEM && !s.count, "so does one that is not damage");
	s.data_err[700] = 0;
	*tree_err(1, 7) = -ECANCELED;
	ok(run() == -ECANCELED && !s.count, "also of the tree");
	*tree_err(1, 7) = 0;
}

static void test_small(void)
{
	seal(VERITY_SHA512, 4096, 0);
	finds(NULL, 0, "an empty file has no findings");
	unseal();
	seal(VERITY_SHA512, 4096, 100);
	finds(NULL, 0, "nor has a sound file of one block");
	flip_data(0);
	FINDS("bad data in one is found", { VERITY_BAD_DATA, 0, 0, 64 });
	s.data_err[0] = -ENODATA;
	FINDS("or missing", { VERITY_MISSING, 0, 0, 0 });
	s.data_err[0] = -EIO;
	FINDS("or unreadable", { VERITY_UNREADABLE, 0, 0, 0 });
	unseal();
	seal(VERITY_SHA256, 65536, 20 * 65536 - 1);
	flip_data(3);
	flip_data(4);
	flip_data(19);
	FINDS("blocks of 64 KiB are read a few at a time",
	      { VERITY_BAD_DATA, 0, 3, 32 }, { VERITY_BAD_DATA, 0, 4, 32 },
	      { VERITY_BAD_DATA, 0, 19, 32 });
	unseal();
}

int main(void)
{
	plan(3 + 10 + 5 + 6 + 3 + 3 + 6);
	seal(VERITY_SHA256, 1024, 2083 * 1024 - 30);
	if (s.t.geom.levels != 3 || s.t.geom.blocks[2] != 3)
		bail("not the shape that this test is about");
	test_data();
	test_tree();
	test_both();
	test_both_levels();
	test_known();
	test_ends();
	unseal();
	test_small();
	return done();
}
