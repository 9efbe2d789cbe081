/* SPDX-License-Identifier: MIT */
/*
 * merkle/hash.c - prepare to hash blocks of one length, and do so.
 *
 * Layer: merkle.  The kernels are in kernel_*.c, the choice in plan.c.
 */
#include "merkle/hash.h"

#include "merkle/cpu.h"
#include "merkle/plan.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Aligned for the kernels that load four or more at a time. */
_Alignas(64) const uint32_t verity_sha256_k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
	0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
	0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
	0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
	0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
	0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};

const uint32_t verity_sha256_h0[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372,
				       0xa54ff53a, 0x510e527f, 0x9b05688c,
				       0x1f83d9ab, 0x5be0cd19 };

/*
 * The choice of this process.  The exchange in publish() pairs with the
 * acquire load in current(): who sees the pointer sees the plan.  It is never
 * freed, since any thread may be using it.
 */
static _Atomic(struct verity_plan *) chosen;

static const struct verity_plan *current(void)
{
	return atomic_load_explicit(&chosen, memory_order_acquire);
}

/* Of two threads that measured, the first wins; the other's is dropped. */
static void publish(struct verity_plan *plan)
{
	struct verity_plan *none = NULL;

	if (!atomic_compare_exchange_strong(&chosen, &none, plan))
		free(plan);
}

static uint32_t ror(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

/* @w: 16 words of a message; becomes its schedule with the constants added. */
static void schedule(uint32_t w[64])
{
	uint32_t s0, s1;

	for (int i = 16; i < 64; i++) {
		s0 = ror(w[i - 15], 7) ^ ror(w[i - 15], 18) ^ w[i - 15] >> 3;
		s1 = ror(w[i - 2], 17) ^ ror(w[i - 2], 19) ^ w[i - 2] >> 10;
		w[i] = w[i - 16] + s0 + w[i - 7] + s1;
	}
	for (int i = 0; i < 64; i++)
		w[i] += verity_sha256_k[i];
}

/* s[] is a to h; what was h becomes a, and the caller turns the names. */
static void one_round(uint32_t s[8], uint32_t wk)
{
	uint32_t a = s[0], e = s[4];
	uint32_t t = s[7] + wk + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) +
		     ((e & s[5]) ^ (~e & s[6]));
	uint32_t maj = (a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]);

	memmove(s + 1, s, 7 * sizeof(*s));
	s[4] += t;
	s[0] = t + maj + (ror(a, 2) ^ ror(a, 13) ^ ror(a, 22));
}

static void compress(uint32_t state[8], uint32_t w[64])
{
	uint32_t s[8];

	schedule(w);
	memcpy(s, state, sizeof(s));
	for (int i = 0; i < 64; i++)
		one_round(s, w[i]);
	for (int i = 0; i < 8; i++)
		state[i] += s[i];
}

/* Big-endian words from bytes; salt[] beyond salt_size may hold anything. */
static void absorb_salt(uint32_t state[8], const struct verity_params *params)
{
	uint32_t w[64] = { 0 };

	for (uint32_t i = 0; i < params->salt_size; i++)
		w[i / 4] |= (uint32_t)params->salt[i] << (24 - 8 * (i % 4));
	compress(state, w);
}

/* What the kernels start from and end with, see struct verity_hasher. */
static void init_sha256(struct verity_hasher *h,
			const struct verity_params *params)
{
	size_t total = h->len;

	memcpy(h->midstate, verity_sha256_h0, sizeof(h->midstate));
	if (params->salt_size) {
		absorb_salt(h->midstate, params);
		total += 64;
	}
	h->tail[0] = 0x80000000;
	h->tail[15] = (uint32_t)(8 * total); /* VERITY_MAX_BLOCK bounds it */
	schedule(h->tail);
}

static int check(const struct verity_params *params, size_t len)
{
	if (params->alg != VERITY_SHA256 && params->alg != VERITY_SHA512)
		return -EINVAL;
	if (params->salt_size > VERITY_MAX_SALT)
		return -EMSGSIZE;
	if (len < 64 || len > VERITY_MAX_BLOCK || len % 64)
		return -EINVAL;
	return 0;
}

/* Everything but the choice of kernels, which itself hashes to measure.  @h is
 * zeroed. */
static int prepare(struct verity_hasher *h, const struct verity_params *params,
		   size_t len)
{
	h->alg = params->alg;
	h->digest_size = params->alg == VERITY_SHA512 ? 64 : 32;
	h->len = len;
	if (params->alg == VERITY_SHA256)
		init_sha256(h, params);
	return verity_evp_init(h, params);
}

static int choose(uint32_t features)
{
	static const struct verity_params params = VERITY_PARAMS_DEFAULT;
	struct verity_plan *plan = malloc(sizeof(*plan));
	struct verity_hasher probe = { 0 };
	int err;

	if (!plan)
		return -ENOMEM;
	err = prepare(&probe, &params, 1024);
	if (!err)
		err = verity_plan_make(plan, features, &probe);
	verity_hasher_fini(&probe);
	if (err)
		free(plan);
	else
		publish(plan);
	return err;
}

int verity_hash_setup(const char *off, const char **bad)
{
	uint32_t features;
	int err = verity_cpu_features(off, &features, bad);

	if (err || current())
		return err;
	return choose(features);
}

int verity_hash_row(size_t i, struct verity_hash_row *out)
{
	return verity_plan_row(current(), i, out);
}

int verity_hasher_init(struct verity_hasher *h,
		       const struct verity_params *params, size_t len)
{
	struct verity_hasher made = { 0 };
	int err = check(params, len);

	if (!err && !current())
		err = verity_hash_setup(secure_getenv("VERITY_CPU"), NULL);
	if (!err)
		err = prepare(&made, params, len);
	if (!err)
		*h = made;
	return err;
}

void verity_hasher_fini(struct verity_hasher *h)
{
	verity_evp_fini(h);
}

int verity_hash_blocks(const struct verity_hasher *h, const void *const *blocks,
		       size_t n, uint8_t *out)
{
	if (h->alg == VERITY_SHA256)
		return verity_plan_run(current(), h, blocks, n, out);
	return verity_evp_blocks(h, blocks, n, out);
}
