/* SPDX-License-Identifier: MIT */
/*
 * merkle/plan.h - private: which kernel to call for how many blocks.
 *
 * Layer: merkle.
 */
#ifndef MERKLE_PLAN_H
#define MERKLE_PLAN_H

#include "merkle/kernel.h"

/** Most rows of verity_kernels[] on any architecture. */
#define VERITY_MAX_KERNELS 12

/** Indices are those of verity_kernels[].  Immutable once it is made. */
struct verity_plan {
	uint32_t features;             /* VERITY_CPU_* that may be used */
	size_t probe_len;              /* of the blocks that were timed */
	double ns[VERITY_MAX_KERNELS]; /* of a full call; 0: not usable */
	uint8_t first[VERITY_HASH_BATCH +
		      1]; /* with n blocks left, call this */
	uint8_t bulk;     /* the cheapest per block */
};

/**
 * verity_plan_make() - time the kernels and choose
 * @features: from verity_cpu_features()
 * @probe: what to hash for it; probe->len is at most 4096, best 1024
 *
 * Return: 0, or -ENOMEM.
 */
int verity_plan_make(struct verity_plan *plan, uint32_t features,
		     const struct verity_hasher *probe);

/**
 * verity_plan_run() - hash @n blocks of SHA-256 as planned
 *
 * Return: 0, or -ENOMEM.
 */
int verity_plan_run(const struct verity_plan *plan,
		    const struct verity_hasher *h, const void *const *blocks,
		    size_t n, uint8_t *out);

/** verity_plan_row() - what verity_hash_row() tells of the @i'th kernel */
int verity_plan_row(const struct verity_plan *plan, size_t i,
		    struct verity_hash_row *out);

#endif /* MERKLE_PLAN_H */
