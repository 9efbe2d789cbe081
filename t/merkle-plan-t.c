/* SPDX-License-Identifier: MIT */
/*
 * The choice of kernels: VERITY_CPU is read strictly, two threads may be the
 * first to need it, every batch size gets a kernel, and parameters out of
 * range are refused.
 */
#include "merkle/cpu.h"
#include "merkle/kernel.h"
#include "t/data.h"
#include "t/tap.h"

#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t features; /* that VERITY_CPU leaves */

/* Each with where its bad word begins; -1: there is none. */
static const struct {
	const char *off;
	int bad;
} words[] = {
	{ NULL, -1 },
	{ "", -1 },
	{ "-avx512", -1 },
	{ "-sha2", -1 },
	{ "-avx512,-avx2,-shani,-sha2", -1 },
	{ "-shani,-shani", -1 },
	{ "avx512", 0 },
	{ "-", 0 },
	{ "-avx51", 0 },
	{ "-avx5122", 0 },
	{ "-AVX2", 0 },
	{ "-avx2,nonsense", 6 },
	{ "-avx2, -shani", 6 },
	{ "-avx2,,-shani", 6 },
	{ "-avx2,", 6 },
	{ ",-avx2", 0 },
};

static void test_words(void)
{
	const char *off, *bad;
	uint32_t have;
	int err;

	for (size_t i = 0; i < LEN(words); i++) {
		off = words[i].off;
		bad = NULL;
		have = ~0U;
		err = verity_cpu_features(off, &have, &bad);
		if (words[i].bad < 0)
			ok(err == 0 && !bad, "VERITY_CPU may be '%s'",
			   off ? off : "(unset)");
		else
			ok(err == -EINVAL && bad == off + words[i].bad &&
				   have == ~0U,
			   "VERITY_CPU='%s' is refused, its bad word named",
			   off);
	}
}

static void test_barred(void)
{
	uint32_t all, bit, have;
	const char *name;
	char word[16];
	bool good = verity_cpu_features(NULL, &all, NULL) == 0;

	for (size_t i = 0; (name = verity_cpu_name(i, &bit)); i++) {
		snprintf(word, sizeof(word), "-%s", name);
		good = good && verity_cpu_features(word, &have, NULL) == 0 &&
		       have == (all & ~bit);
	}
	ok(good, "a feature named is off, and only that one");
}

/* Before anything was chosen: afterwards the environment is not read. */
static void test_bad_environment(void)
{
	struct verity_params p = VERITY_PARAMS_DEFAULT;
	const char *was = getenv("VERITY_CPU"), *bad = NULL;
	struct verity_hasher h;

	was = was ? strdup(was) : NULL;
	setenv("VERITY_CPU", "-avx2,-nonsense", 1);
	is_int(verity_hasher_init(&h, &p, 4096), -EINVAL,
	       "no hasher is made with a bad VERITY_CPU");
	is_int(verity_hash_setup("-avx2,-nonsense", &bad), -EINVAL,
	       "nor anything chosen");
	is_str(bad, "-nonsense", "the word is named");
	if (was)
		setenv("VERITY_CPU", was, 1);
	else
		unsetenv("VERITY_CPU");
	free((void *)was);
}

/* One block more than any kernel has lanes, so that the choice shows. */
enum { RACE_BLOCKS = VERITY_MAX_LANES + 1, RACE_LEN = 1024 };

static uint8_t data[RACE_BLOCKS][RACE_LEN];
static pthread_barrier_t barrier;

static bool hashes_right(const struct verity_hasher *h)
{
	uint8_t got[RACE_BLOCKS * 32], want[32];
	const void *blocks[RACE_BLOCKS];

	for (size_t i = 0; i < RACE_BLOCKS; i++)
		blocks[i] = data[i];
	if (verity_hash_blocks(h, blocks, RACE_BLOCKS, got))
		return false;
	for (size_t i = 0; i < RACE_BLOCKS; i++)
		if (!EVP_Digest(data[i], RACE_LEN, want, NULL, EVP_sha256(),
				NULL) ||
		    memcmp(got + 32 * i, want, 32) != 0)
			return false;
	return true;
}

/* Return: NULL, or something when the first use of the library went wrong. */
static void *first_user(void *unused)
{
	struct verity_params p = VERITY_PARAMS_DEFAULT;
	struct verity_hasher h;
	bool good;

	(void)unused;
	pthread_barrier_wait(&barrier);
	if (verity_hasher_init(&h, &p, RACE_LEN))
		return &barrier;
	good = hashes_right(&h);
	verity_hasher_fini(&h);
	return good ? NULL : &barrier;
}

static void test_race(void)
{
	pthread_t thread;
	void *mine, *other;

	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&thread, NULL, first_user, NULL))
		bail("no thread");
	mine = first_user(NULL);
	pthread_join(thread, &other);
	pthread_barrier_destroy(&barrier);
	ok(!mine && !other, "two threads may use the library first at once");
}

static void test_rows(void)
{
	struct verity_hash_row row;
	unsigned int batches = 0, bulks = 0;
	bool good = true;
	size_t i;

	for (i = 0; verity_hash_row(i, &row) == 0; i++) {
		good = good && strcmp(row.name, verity_kernels[i].name) == 0 &&
		       row.lanes == verity_kernels[i].lanes &&
		       !row.lacks == (row.ns_per_kib > 0) &&
		       !row.lacks == !(verity_kernels[i].needs & ~features);
		if (row.lacks && (row.batches || row.bulk))
			good = false;
		batches += row.batches;
		bulks += row.bulk == 1;
	}
	ok(good && !verity_kernels[i].name, "each kernel has its row");
	is_int(verity_hash_row(i, &row), -ENOENT, "no row is past the last");
	is_int(batches, VERITY_HASH_BATCH, "every batch size has its kernel");
	is_int(bulks, 1, "one kernel serves long runs");
	ok(verity_hash_setup(NULL, NULL) == 0, "setup may be repeated");
}

static void refuse(uint32_t alg, uint32_t salt_size, size_t len, int want,
		   const char *what)
{
	struct verity_params p = { .alg = alg, .salt_size = salt_size };
	struct verity_hasher h;

	is_int(verity_hasher_init(&h, &p, len), want, "%s is refused", what);
}

static void test_refusals(void)
{
	uint8_t out[64];

	refuse(0, 0, 4096, -EINVAL, "algorithm 0");
	refuse(3, 0, 4096, -EINVAL, "algorithm 3");
	refuse(VERITY_SHA256, 33, 4096, -EMSGSIZE, "a salt of 33 bytes");
	refuse(VERITY_SHA256, 0, 0, -EINVAL, "a block of no bytes");
	refuse(VERITY_SHA256, 0, 100, -EINVAL, "a block of 100 bytes");
	refuse(VERITY_SHA512, 0, 65536 + 64, -EINVAL, "a block too long");
	is_int(verity_hash_bytes(3, "", 0, out), -EINVAL,
	       "algorithm 3 is refused for bytes");
}

int main(void)
{
	plan(LEN(words) + 17);
	if (verity_cpu_features(getenv("VERITY_CPU"), &features, NULL))
		bail("bad VERITY_CPU");
	for (size_t i = 0; i < sizeof(data); i++)
		data[i / RACE_LEN][i % RACE_LEN] = (uint8_t)(i % 251);
	test_words();
	test_barred();
	test_bad_environment();
	test_race();
	test_rows();
	test_refusals();
	return done();
}
