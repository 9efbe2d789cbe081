/* SPDX-License-Identifier: MIT */
/*
 * merkle/kernel.h - private: what one SHA-256 kernel must offer.
 *
 * To add a kernel, write merkle/kernel_NAME.c, declare it below and give it a
 * row in plan.c's table; the test runs every row that the CPU can.
 */
#ifndef MERKLE_KERNEL_H
#define MERKLE_KERNEL_H

#include "merkle/hash.h"

/** Most lanes of any kernel. */
#define VERITY_MAX_LANES 16

/**
 * verity_kernel_fn - hash exactly row->lanes blocks of h->len bytes
 *
 * Digests of 32 bytes go to @out back to back.  @h->alg is SHA-256.  Must not
 * block, or read a byte outside the blocks.
 *
 * Return: 0, or -ENOMEM (libcrypto only).
 */
typedef int verity_kernel_fn(const struct verity_hasher *h,
			     const void *const *blocks, uint8_t *out);

struct verity_kernel {
	const char *name;
	uint32_t needs; /* VERITY_CPU_* without which it must not be called */
	unsigned int lanes; /* blocks a call, 1 to VERITY_MAX_LANES */
	verity_kernel_fn *run;
};

/** The rows compiled in for this architecture, ended by a NULL name. */
extern const struct verity_kernel verity_kernels[];

/** FIPS 180-4, 4.2.2 and 5.3.3. */
extern const uint32_t verity_sha256_k[64];
extern const uint32_t verity_sha256_h0[8];

/**
 * VERITY_EACH() - a statement for each of up to four streams, @i constant
 *
 * Not a loop: compilers must see constant indices before they decide what
 * lives in a register, and clang unrolls too late for that.
 */
#define VERITY_EACH(n, i, statement)                                           \
	do {                                                                   \
		VERITY_FOR_(0, i, statement);                                  \
		if ((n) > 1)                                                   \
			VERITY_FOR_(1, i, statement);                          \
		if ((n) > 2)                                                   \
			VERITY_FOR_(2, i, statement);                          \
		if ((n) > 3)                                                   \
			VERITY_FOR_(3, i, statement);                          \
	} while (0)
#define VERITY_FOR_(at, i, statement)                                          \
	do {                                                                   \
		const size_t i = at;                                           \
		statement;                                                     \
	} while (0)

#ifdef __x86_64__
verity_kernel_fn verity_shani_x1, verity_shani_x2, verity_shani_x3,
	verity_shani_x4;
verity_kernel_fn verity_hybrid_x4;
verity_kernel_fn verity_avx2_x8;
verity_kernel_fn verity_avx512_x16;
#endif

#ifdef __aarch64__
verity_kernel_fn verity_armv8_x1, verity_armv8_x2, verity_armv8_x4;
#endif

/* kernel_evp.c */
verity_kernel_fn verity_evp_x1;

/**
 * verity_evp_init() - absorb the salt into libcrypto's context, h->evp
 *
 * Return: 0, -ENOMEM, or -ENOPKG.
 */
int verity_evp_init(struct verity_hasher *h,
		    const struct verity_params *params);

/** verity_evp_fini() - free what init made; a zeroed struct is allowed */
void verity_evp_fini(struct verity_hasher *h);

/**
 * verity_evp_blocks() - verity_hash_blocks() by libcrypto, for any algorithm
 */
int verity_evp_blocks(const struct verity_hasher *h, const void *const *blocks,
		      size_t n, uint8_t *out);

#endif /* MERKLE_KERNEL_H */
