/* SPDX-License-Identifier: MIT */
/*
 * merkle/hash.h - hash many equal blocks at once, with the best code at hand.
 *
 * Layer: merkle.  One block of a Merkle tree depends on no other, so the
 * primitive is a batch: several blocks go through the CPU side by side, in
 * vector lanes or as interleaved streams of the SHA instructions.
 */
#ifndef MERKLE_HASH_H
#define MERKLE_HASH_H

#include "merkle/verity.h"

/* Batches longer than this gain nothing; callers size their arrays by it. */
#define VERITY_HASH_BATCH 64

struct verity_kernel;

/**
 * struct verity_hasher - how blocks of one length are hashed
 *
 * Made once by verity_hasher_init(), then read-only: any number of threads
 * may hash with one hasher.
 */
struct verity_hasher {
	uint32_t alg;
	uint32_t digest_size; /* bytes */
	size_t len;           /* of each block; a multiple of 64 */

	/* SHA-256: the state after the padded salt, and the message schedule
	 * (plus round constants) of the one padding block, the same for every
	 * block of this length. */
	uint32_t midstate[8];
	uint32_t tail[64];

	/* libcrypto's, for SHA-512 and where no kernel serves: fetched once,
	 * with the salt absorbed.  Owned. */
	void *evp;
};

/**
 * verity_hasher_init() - prepare to hash blocks of @len bytes
 * @params: algorithm and salt; the salt is padded to the compression block
 *   and goes before every block, as fs-verity has it
 * @len: 64 to VERITY_MAX_BLOCK, a multiple of 64
 *
 * The first call in a process measures the kernels (verity_hash_setup()).
 *
 * Return: 0, -EINVAL for parameters out of range or a bad VERITY_CPU,
 * -EMSGSIZE for a salt too long, -ENOMEM, -ENOPKG when libcrypto has no such
 * algorithm.
 */
VERITY_MUST_CHECK int verity_hasher_init(struct verity_hasher *h,
					 const struct verity_params *params,
					 size_t len);

/** verity_hasher_fini() - free what init made; a zeroed struct is allowed */
void verity_hasher_fini(struct verity_hasher *h);

/**
 * verity_hash_blocks() - hash @n blocks of h->len bytes each
 * @blocks: where each one is; no alignment asked
 * @out: digest i goes to @out + i * h->digest_size
 *
 * Safe from any thread.  Blocks may change while they are hashed (a mapped
 * file): the digests are then those of some mix, never worse.
 *
 * Return: 0, or -ENOMEM (libcrypto only; the kernels cannot fail).
 */
VERITY_MUST_CHECK int verity_hash_blocks(const struct verity_hasher *h,
					 const void *const *blocks, size_t n,
					 uint8_t *out);

/**
 * verity_hash_bytes() - hash one buffer of any length, without salt
 *
 * Return: 0, -EINVAL, -ENOMEM or -ENOPKG.
 */
VERITY_MUST_CHECK int verity_hash_bytes(uint32_t alg, const void *data,
					size_t len, uint8_t *out);

/**
 * struct verity_hash_row - one kernel as `verityctl inspect --cpu` shows it
 */
struct verity_hash_row {
	const char *name;     /* "avx512-x16" */
	unsigned int lanes;   /* blocks hashed by one call */
	const char *lacks;    /* the feature it lacks or is barred, or NULL */
	double ns_per_kib;    /* measured, lanes full; 0 when it lacks one */
	unsigned int batches; /* of sizes 1..VERITY_HASH_BATCH that it begins */
	int bulk;             /* 1: chosen for long runs */
};

/**
 * verity_hash_setup() - choose the kernels for this process
 * @off: as for verity_cpu_features(); a library user need not call this, the
 *   first hasher then takes the environment's VERITY_CPU
 * @bad: the first unknown word of @off; may be NULL
 *
 * Each kernel that the CPU can run is timed, about 0.2 ms in all, and every
 * batch size gets the cheapest sequence of kernels.  The worth of SHA-NI
 * against AVX-512 differs by a factor of two between CPUs that have both, so
 * it is not written down here.  Idempotent; safe from any thread; the first
 * choice stays.
 *
 * Return: 0, -EINVAL for a bad @off, -ENOMEM or -ENOPKG.
 */
VERITY_MUST_CHECK int verity_hash_setup(const char *off, const char **bad);

/** verity_hash_row() - Return: 0, or -ENOENT past the last; after setup only */
int verity_hash_row(size_t i, struct verity_hash_row *out);

#endif /* MERKLE_HASH_H */
