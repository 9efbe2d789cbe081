/* SPDX-License-Identifier: MIT */
/*
 * Caches of objects: the figures of the binder mail of 2019, counted in pages;
 * pages really go back; and objects lie where they should.
 */
#include "wq/slab.h"

#include "t/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEN(array) (sizeof(array) / sizeof((array)[0]))

#define OBJECTS 403 /* of the mail, */
#define ACTIVE  194 /* of which so many were in use, */
#define SIZE    312 /* of so many bytes */
#define FILL    0xa5

static size_t page;

static struct wq_cache *new_cache(size_t size, size_t align, unsigned int mag)
{
	struct wq_cache_config config = {
		.name = "test", .size = size, .align = align, .magazine = mag
	};
	struct wq_cache *cache;

	if (wq_cache_new(&config, &cache))
		bail("no cache of %zu bytes", size);
	return cache;
}

static struct wq_cache_stats stats_of(struct wq_cache *cache)
{
	struct wq_cache_stats stats;

	wq_cache_stats(cache, &stats);
	return stats;
}

static void take(struct wq_cache *cache, void **object, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		object[i] = wq_cache_alloc(cache);
		if (!object[i])
			bail("no memory");
		memset(object[i], (int)i, 8);
	}
}

/* Put until @left of @n are in use, spread over all as a workload does it. */
static void put_all_but(struct wq_cache *cache, void **object, size_t n,
			size_t left)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if ((i + 1) * left / n > kept) {
			object[kept++] = object[i];
			continue;
		}
		wq_cache_put(cache, object[i]);
	}
}

/* The column of the row that has the name in the header; "" for none. */
static const char *column(const struct wq_cache_stats *stats, const char *name)
{
	static char cell[64];
	char head[512], row[512], *h, *r, *hs = NULL, *rs = NULL;

	cell[0] = '\0';
	wq_cache_slabinfo(stats, true, head, sizeof(head));
	wq_cache_slabinfo(stats, false, row, sizeof(row));
	h = strtok_r(head + 1, " ", &hs);
	r = strtok_r(row, " ", &rs);
	for (; h && r;
	     h = strtok_r(NULL, " ", &hs), r = strtok_r(NULL, " ", &rs))
		if (strcmp(h, name) == 0)
			snprintf(cell, sizeof(cell), "%s", r);
	return !h && !r ? cell : "(unlike columns)";
}

static void test_mail(void)
{
	struct wq_cache *cache = new_cache(SIZE, 8, 0);
	void *object[OBJECTS];
	struct wq_cache_stats s;

	if (page != 4096) {
		skip(12, "the mail's pages have 4096 bytes");
		wq_cache_free(cache);
		return;
	}
	take(cache, object, OBJECTS);
	s = stats_of(cache);
	ok(s.objsize == 312 && s.objperslab == 13 && s.pagesperslab == 1,
	   "13 objects of 312 bytes share a page with no bookkeeping in it");
	put_all_but(cache, object, OBJECTS, ACTIVE);
	s = stats_of(cache);
	is_uint(s.active_objs, ACTIVE, "194 objects are in use");
	is_uint(s.num_objs, OBJECTS, "of the 403 that there is room for");
	is_uint(s.num_slabs, 31, "in 31 slabs");
	is_uint(s.bytes, 126976, "which are 126,976 bytes");
	ok(s.pages == 31 && s.grows == 31, "31 pages, each made once");
	ok(s.utilisation > 47.66 && s.utilisation < 47.68,
	   "of which 47.67 %% are in use");
	is_str(column(&s, "util"), "48%", "that is printed as 48 %%");
	is_str(column(&s, "bytes"), "126976", "beside the bytes");
	is_str(column(&s, "active_objs"), "194", "and the objects");
	is_str(column(&s, "misses"), "1", "in columns that have names");
	is_str(s.name, "test", "after the cache's name");
	for (size_t i = 0; i < ACTIVE; i++)
		wq_cache_put(cache, object[i]);
	wq_cache_free(cache);
}

static void test_aligned(void)
{
	struct wq_cache *cache = new_cache(SIZE, 0, 0);
	struct wq_cache_stats s;
	void *object = wq_cache_alloc(cache);

	s = stats_of(cache);
	ok(s.objsize == 320 && s.objperslab == page / 320 &&
		   (page != 4096 || s.objperslab == 12),
	   "aligned to cache lines they have 320 bytes, and 12 fit");
	is_uint(s.pagesperslab, 1, "in a page");
	wq_cache_put(cache, object);
	wq_cache_free(cache);
}

/* Return: how many of the pages are in memory; none where nothing is mapped. */
static size_t resident(void *const *at, size_t n)
{
	unsigned char here;
	size_t pages = 0;

	for (size_t i = 0; i < n; i++) {
		void *start = (void *)((uintptr_t)at[i] & ~(page - 1));

		here = 0;
		if (mincore(start, page, &here) == 0)
			pages += here & 1;
	}
	return pages;
}

/* Of each slab one object is kept in @kept; each second slab is emptied. */
static void test_shrink(void)
{
	struct wq_cache *cache = new_cache(SIZE, 8, 0);
	unsigned int per = (unsigned int)(page / SIZE);
	void *object[31 * 13], *emptied[15], *left[16];
	size_t n = 31, e = 0, l = 0;
	struct wq_cache_stats s;

	if (per != 13) {
		skip(8, "slabs of this page size are not 13 objects");
		wq_cache_free(cache);
		return;
	}
	take(cache, object, n * 13);
	for (size_t i = 0; i < n * 13; i++) {
		bool even = i / 13 % 2 == 0;

		if (even && i % 13 == 5)
			left[l++] = object[i];
		else
			wq_cache_put(cache, object[i]);
		if (!even && i % 13 == 5)
			emptied[e++] = object[i];
	}
	ok(resident(emptied, e) == 15 && resident(left, l) == 16,
	   "what was used is in memory");
	is_uint(wq_cache_shrink(cache), 15 * page,
		"shrinking gives back each slab without an object in use");
	is_uint(resident(emptied, e), 0, "and their pages are gone");
	is_uint(resident(left, l), 16, "the other slabs' are not");
	s = stats_of(cache);
	ok(s.active_objs == 16 && s.num_slabs == 16 && s.bytes == 16 * page &&
		   s.shrinks == 1,
	   "the figures know it");
	is_uint(wq_cache_shrink(cache), 0, "there is nothing more to give");
	take(cache, object, 16 * 12);
	is_uint(stats_of(cache).num_slabs, 16,
		"free places are used before there are new slabs");
	for (size_t i = 0; i < 16 * 12; i++)
		wq_cache_put(cache, object[i]);
	for (size_t i = 0; i < l; i++)
		wq_cache_put(cache, left[i]);
	is_uint(wq_cache_shrink(cache), 16 * page, "in the end all goes back");
	wq_cache_free(cache);
}

static void test_shrink_mail(void)
{
	struct wq_cache *cache = new_cache(SIZE, 8, 0);
	void *object[OBJECTS];
	struct wq_cache_stats s;
	uint64_t before;
	size_t given;

	/* The first 194 stay: 15 slabs without a gap when 13 fit. */
	take(cache, object, OBJECTS);
	for (size_t i = ACTIVE; i < OBJECTS; i++)
		wq_cache_put(cache, object[i]);
	before = stats_of(cache).bytes;
	given = wq_cache_shrink(cache);
	s = stats_of(cache);
	ok(s.active_objs == ACTIVE && s.num_objs % s.objperslab == 0 &&
		   s.num_objs == (ACTIVE + s.objperslab - 1) / s.objperslab *
					 (uint64_t)s.objperslab,
	   "194 objects side by side need ceil(194 / 13) slabs after shrinking");
	ok(given && s.bytes + given == before, "the rest was given back");
	for (size_t i = 0; i < ACTIVE; i++)
		wq_cache_put(cache, object[i]);
	is_uint(wq_cache_shrink(cache), s.bytes, "and in the end all");
	s = stats_of(cache);
	ok(s.num_slabs == 0 && s.bytes == 0 && s.utilisation == 0,
	   "an empty cache has no slab");
	wq_cache_free(cache);
}

static void test_locked(void)
{
	struct wq_cache *cache = new_cache(SIZE, 8, 0);
	void *object = wq_cache_alloc(cache);
	void *start = (void *)((uintptr_t)object & ~(page - 1));

	wq_cache_put(cache, object);
	if (mlock(start, page) < 0 ||
	    madvise(start, page, MADV_DONTNEED) == 0) {
		skip(2, "memory cannot be locked here");
		wq_cache_free(cache);
		return;
	}
	ok(wq_cache_shrink(cache) == 0 && stats_of(cache).num_slabs == 1,
	   "locked memory is not given back, nor said to be");
	munlock(start, page);
	is_uint(wq_cache_shrink(cache), page, "but once it is unlocked");
	wq_cache_free(cache);
}

static int by_address(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t) * (void *const *)a;
	uintptr_t y = (uintptr_t) * (void *const *)b;

	return (x > y) - (x < y);
}

static bool filled(const unsigned char *object, size_t size)
{
	return object[0] == FILL && memcmp(object, object + 1, size - 1) == 0;
}

/* Objects that are aligned, do not overlap and can be filled. */
static bool fits(size_t size, size_t align, unsigned int mag)
{
	struct wq_cache *cache = new_cache(size, align, mag);
	struct wq_cache_stats s = stats_of(cache);
	size_t n = s.objperslab * 3 + 1, each = align ? align : 64;
	void **object = calloc(n, sizeof(*object));
	bool good = object && s.objsize >= size && s.objsize >= 8 &&
		    s.objsize % each == 0 && s.objperslab >= 1 &&
		    s.objperslab * s.objsize <= s.pagesperslab * page;

	/* No more pages than eight objects ask for. */
	good = good && (s.pagesperslab == 1 ||
			s.pagesperslab / 2 * page / s.objsize < 8);
	good = good && (s.objperslab >= 8 || s.pagesperslab >= 16);
	for (size_t i = 0; good && i < n; i++) {
		object[i] = wq_cache_alloc(cache);
		good = object[i] && (uintptr_t)object[i] % each == 0;
		if (good)
			memset(object[i], FILL, size);
	}
	if (good)
		qsort(object, n, sizeof(*object), by_address);
	for (size_t i = 1; good && i < n; i++)
		good = (char *)object[i - 1] + s.objsize <= (char *)object[i];
	for (size_t i = 0; good && i < n; i++)
		good = filled(object[i], size);
	s = stats_of(cache);
	good = good && s.num_slabs == 4 && s.active_objs == n;
	for (size_t i = 0; object && i < n; i++)
		wq_cache_put(cache, object[i]);
	good = good && wq_cache_shrink(cache) == s.bytes;
	wq_cache_free(cache);
	free(object);
	return good;
}

static void test_sizes(void)
{
	static const size_t size[] = { 1,    7,    8,     9,    64,   65,
				       312,  511,  512,   513,  1000, 4096,
				       4097, 9000, 65535, 65536 };
	static const size_t align[] = { 0, 1, 8, 64, 4096 };
	bool good;

	for (size_t i = 0; i < LEN(size); i++) {
		good = true;
		for (size_t j = 0; j < LEN(align); j++)
			good = good && fits(size[i], align[j], 0);
		ok(good && fits(size[i], 8, 1) && fits(size[i], 8, 4096),
		   "objects of %zu bytes lie aligned beside each other",
		   size[i]);
	}
}

static void refuse(const struct wq_cache_config *config, const char *what)
{
	struct wq_cache *cache = NULL;

	ok(wq_cache_new(config, &cache) == -EINVAL && !cache, "%s is refused",
	   what);
}

static void test_refusals(void)
{
	struct wq_cache_config c = { .name = "test", .size = 8 };

	c.size = 0;
	refuse(&c, "an object of no bytes");
	c.size = 65537;
	refuse(&c, "one over 64 KiB");
	c = (struct wq_cache_config){ .name = "test", .size = 8, .align = 24 };
	refuse(&c, "an alignment to 24 bytes");
	c.align = 8192;
	refuse(&c, "one to more than 4096");
	c = (struct wq_cache_config){ .name = NULL, .size = 8 };
	refuse(&c, "a cache without a name");
	c.name = "";
	refuse(&c, "an empty name");
	c.name = "two words";
	refuse(&c, "a name with a blank");
	c = (struct wq_cache_config){ .name = "t",
				      .size = 8,
				      .magazine = 4097 };
	refuse(&c, "a magazine of more than 4096");
}

int main(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	plan(12 + 2 + 8 + 4 + 2 + 16 + 8);
	test_mail();
	test_aligned();
	test_shrink();
	test_shrink_mail();
	test_locked();
	test_sizes();
	test_refusals();
	return done();
}
