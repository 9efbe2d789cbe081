/* SPDX-License-Identifier: MIT */
/* merkle/cpu.h - which instruction sets may be used.  Layer: merkle. */
#ifndef MERKLE_CPU_H
#define MERKLE_CPU_H

#include <stddef.h>
#include <stdint.h>

/* AVX-512 means F, BW, VL and the operating system's leave to use them. */
#define VERITY_CPU_AVX512 (1U << 0)
#define VERITY_CPU_AVX2   (1U << 1)
#define VERITY_CPU_SHANI  (1U << 2)
#define VERITY_CPU_SHA2   (1U << 3) /* ARMv8 SHA-256 instructions */

/**
 * verity_cpu_features() - what this CPU has, less what the user switched off
 * @off: "-avx512,-shani", as in the environment's VERITY_CPU; NULL or "" for
 *   all.  Names of other architectures are known too, so that one setting
 *   serves a mixed fleet.
 * @out: VERITY_CPU_* bits
 * @bad: the first unknown word, pointing into @off, with -EINVAL; may be NULL
 *
 * Return: 0, or -EINVAL for a word that is not "-" and a known name.
 */
int verity_cpu_features(const char *off, uint32_t *out, const char **bad);

/** verity_cpu_name() - Return: the name of the @i'th feature, or NULL */
const char *verity_cpu_name(size_t i, uint32_t *bit);

#endif /* MERKLE_CPU_H */
