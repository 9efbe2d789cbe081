/* SPDX-License-Identifier: MIT */
/*
 * Every kernel, and the choice among them, gives libcrypto's digests: for each
 * block size, salt, batch size and alignment, reading nothing but the blocks.
 */
#include "merkle/cpu.h"
#include "merkle/plan.h"
#include "t/data.h"
#include "t/tap.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	MAX_BATCH = 200, /* past VERITY_HASH_BATCH, to reach the bulk kernel */
	MAX_DATA = VERITY_MAX_LANES * VERITY_MAX_BLOCK,
	SLACK = 64, /* for blocks that begin off a boundary */
};

static const size_t sizes[] = { 64,   256,  512,   1024,  2048,
				4096, 8192, 16384, 32768, 65536 };
static const uint32_t salts[] = { 0, 1, 16, 32 };
static const size_t offsets[] = { 0, 1, 3, 63 };

static uint8_t data[MAX_DATA + SLACK];
static uint32_t features; /* that VERITY_CPU leaves */

/* Nothing repeats, so that no block or word passes for another. */
static void fill(void)
{
	uint32_t x = 2463534242;

	for (size_t i = 0; i < sizeof(data); i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		data[i] = (uint8_t)x;
	}
}

static struct verity_params params_with(uint32_t alg, uint32_t salt_size)
{
	struct verity_params p = { .alg = alg, .salt_size = salt_size };

	/* All 32 bytes are set: those past salt_size must not matter. */
	for (uint32_t i = 0; i < VERITY_MAX_SALT; i++)
		p.salt[i] = (uint8_t)(0xa5 ^ (i * 7));
	return p;
}

static void init(struct verity_hasher *h, const struct verity_params *p,
		 size_t len)
{
	int err = verity_hasher_init(h, p, len);

	if (err)
		bail("verity_hasher_init: %s", strerror(-err));
}

/* The digest by libcrypto's plainest calls: padded salt, then the block. */
static void oracle(const struct verity_params *p, const void *block, size_t len,
		   uint8_t *out)
{
	uint8_t salt[128] = { 0 };
	int is_512 = p->alg == VERITY_SHA512;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	memcpy(salt, p->salt, p->salt_size);
	if (!ctx ||
	    !EVP_DigestInit(ctx, is_512 ? EVP_sha512() : EVP_sha256()) ||
	    !EVP_DigestUpdate(ctx, salt,
			      p->salt_size ? (is_512 ? 128 : 64) : 0) ||
	    !EVP_DigestUpdate(ctx, block, len) ||
	    !EVP_DigestFinal(ctx, out, NULL))
		bail("libcrypto failed");
	EVP_MD_CTX_free(ctx);
}

static bool right(const struct verity_params *p, const void *const *blocks,
		  size_t n, size_t len, const uint8_t *got)
{
	size_t size = p->alg == VERITY_SHA512 ? 64 : 32;
	uint8_t want[64];

	for (size_t i = 0; i < n; i++) {
		oracle(p, blocks[i], len, want);
		if (memcmp(got + i * size, want, size) == 0)
			continue;
		diag("block %zu of %zu, %zu bytes each", i, n, len);
		return false;
	}
	return true;
}

/* The last first, so that a kernel which ignores the pointers is found out. */
static void point(const void **blocks, size_t n, size_t len, size_t offset)
{
	size_t room = MAX_DATA / len;

	for (size_t i = 0; i < n; i++)
		blocks[i] = data + offset + (n - 1 - i) % room * len;
}

static bool kernel_right(const struct verity_kernel *k,
			 const struct verity_params *p, size_t len,
			 size_t offset)
{
	const void *blocks[VERITY_MAX_LANES];
	uint8_t got[VERITY_MAX_LANES * 32];
	struct verity_hasher h;
	bool good;

	init(&h, p, len);
	point(blocks, k->lanes, len, offset);
	good = k->run(&h, blocks, got) == 0 &&
	       right(p, blocks, k->lanes, len, got);
	verity_hasher_fini(&h);
	return good;
}

static void test_sizes(const struct verity_kernel *k)
{
	struct verity_params p;
	bool good;

	for (size_t s = 0; s < LEN(salts); s++) {
		p = params_with(VERITY_SHA256, salts[s]);
		good = true;
		for (size_t i = 0; good && i < LEN(sizes); i++)
			good = kernel_right(k, &p, sizes[i], 0);
		ok(good, "%s is right for every block size, salt of %u bytes",
		   k->name, salts[s]);
	}
}

static void test_offsets(const struct verity_kernel *k)
{
	struct verity_params p = params_with(VERITY_SHA256, 0);

	for (size_t i = 0; i < LEN(offsets); i++)
		ok(kernel_right(k, &p, 4096, offsets[i]) &&
			   kernel_right(k, &p, 256, offsets[i]),
		   "%s is right for blocks %zu bytes off a boundary", k->name,
		   offsets[i]);
}

/* Return: @n pages, each between two that may not be touched. */
static uint8_t *guarded(size_t n, size_t page)
{
	uint8_t *p = mmap(NULL, (2 * n + 1) * page, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		bail("mmap failed");
	for (size_t i = 0; i < n; i++)
		if (mprotect(p + (2 * i + 1) * page, page,
			     PROT_READ | PROT_WRITE))
			bail("mprotect failed");
	return p;
}

/* Blocks fill the end of their pages, digests the end of another. */
static bool kernel_stays_inside(const struct verity_kernel *k, uint8_t *area,
				size_t page, size_t len)
{
	struct verity_params p = params_with(VERITY_SHA256, 0);
	const void *blocks[VERITY_MAX_LANES];
	uint8_t *out = area + 2 * page - (size_t)32 * k->lanes, *end;
	struct verity_hasher h;
	bool good;

	for (size_t i = 0; i < k->lanes; i++) {
		end = area + (2 * i + 4) * page;
		blocks[i] = memcpy(end - len, data + i * len, len);
	}
	init(&h, &p, len);
	good = k->run(&h, blocks, out) == 0 &&
	       right(&p, blocks, k->lanes, len, out);
	verity_hasher_fini(&h);
	return good;
}

static void test_guards(const struct verity_kernel *k)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = k->lanes + 1;
	uint8_t *area = guarded(pages, page);

	ok(kernel_stays_inside(k, area, page, page) &&
		   kernel_stays_inside(k, area, page, 256) &&
		   kernel_stays_inside(k, area, page, 64),
	   "%s touches no byte before or after blocks and digests", k->name);
	munmap(area, (2 * pages + 1) * page);
}

/* Return: whether @n blocks hash right, and nothing lies past the digests. */
static bool batch_right(const struct verity_hasher *h,
			const struct verity_plan *only,
			const struct verity_params *p, size_t n)
{
	static uint8_t got[MAX_BATCH * 64 + 1];
	const void *blocks[MAX_BATCH];
	size_t end = n * h->digest_size;
	int err;

	point(blocks, n, h->len, 1);
	got[end] = 0x5a;
	err = only ? verity_plan_run(only, h, blocks, n, got)
		   : verity_hash_blocks(h, blocks, n, got);
	return err == 0 && right(p, blocks, n, h->len, got) && got[end] == 0x5a;
}

/* A plan of one kernel only: its partial calls are padded right. */
static void test_alone(const struct verity_kernel *k)
{
	struct verity_params p = params_with(VERITY_SHA256, 16);
	struct verity_plan alone = { .features = features };
	struct verity_hasher h;
	bool good = true;

	alone.bulk = (uint8_t)(k - verity_kernels);
	memset(alone.first, alone.bulk, sizeof(alone.first));
	init(&h, &p, 512);
	for (size_t n = 0; good && n <= VERITY_HASH_BATCH + 2; n++)
		good = batch_right(&h, &alone, &p, n);
	ok(good, "%s serves every batch size by itself", k->name);
	verity_hasher_fini(&h);
}

enum { KERNEL_CHECKS = LEN(salts) + LEN(offsets) + 2 };

static void test_kernel(const struct verity_kernel *k)
{
	if (k->needs & ~features) {
		skip(KERNEL_CHECKS,
		     "%s needs what this CPU lacks or may not use", k->name);
		return;
	}
	test_sizes(k);
	test_offsets(k);
	test_guards(k);
	test_alone(k);
}

static void test_batches(size_t len)
{
	struct verity_params p = params_with(VERITY_SHA256, 0);
	struct verity_hasher h;

	init(&h, &p, len);
	for (size_t n = 1; n <= VERITY_HASH_BATCH; n++)
		ok(batch_right(&h, NULL, &p, n),
		   "a batch of %zu blocks of %zu bytes is right", n, len);
	verity_hasher_fini(&h);
}

static void test_odd_batches(uint32_t alg, uint32_t salt_size)
{
	static const size_t batches[] = { 0, 1, 3, 5, 17 };
	struct verity_params p = params_with(alg, salt_size);
	struct verity_hasher h;
	bool good = true;

	for (size_t i = 0; good && i < LEN(sizes); i++) {
		init(&h, &p, sizes[i]);
		for (size_t j = 0; good && j < LEN(batches); j++)
			good = batch_right(&h, NULL, &p, batches[j]);
		verity_hasher_fini(&h);
	}
	ok(good, "%s of every block size is right, salt of %u bytes",
	   alg == VERITY_SHA512 ? "SHA-512" : "SHA-256", salt_size);
}

static void test_long_batch(void)
{
	struct verity_params p = params_with(VERITY_SHA256, 32);
	struct verity_hasher h;

	init(&h, &p, 1024);
	ok(batch_right(&h, NULL, &p, VERITY_HASH_BATCH + 1) &&
		   batch_right(&h, NULL, &p, MAX_BATCH),
	   "a batch longer than VERITY_HASH_BATCH is right");
	verity_hasher_fini(&h);
}

static void test_bytes(uint32_t alg)
{
	struct verity_params p = params_with(alg, 0);
	const void *at = data;
	uint8_t got[64];
	bool good = true;

	for (size_t len = 0; good && len <= 300; len++)
		good = verity_hash_bytes(alg, data, len, got) == 0 &&
		       right(&p, &at, 1, len, got);
	ok(good, "bytes of any length hash right, algorithm %u", alg);
}

enum {
	BATCH_CHECKS = (size_t)2 * VERITY_HASH_BATCH + 2 * LEN(salts) + 1,
	BYTES_CHECKS = 2,
};

int main(void)
{
	unsigned int kernels = 0;

	while (verity_kernels[kernels].name)
		kernels++;
	plan(kernels * KERNEL_CHECKS + BATCH_CHECKS + BYTES_CHECKS);
	if (verity_cpu_features(getenv("VERITY_CPU"), &features, NULL))
		bail("bad VERITY_CPU");
	fill();
	for (unsigned int i = 0; i < kernels; i++)
		test_kernel(&verity_kernels[i]);
	test_batches(1024);
	test_batches(4096);
	for (size_t i = 0; i < LEN(salts); i++) {
		test_odd_batches(VERITY_SHA256, salts[i]);
		test_odd_batches(VERITY_SHA512, salts[i]);
	}
	test_long_batch();
	test_bytes(VERITY_SHA256);
	test_bytes(VERITY_SHA512);
	return done();
}
