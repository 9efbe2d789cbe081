/* SPDX-License-Identifier: MIT */
/*
 * merkle/cpu.c - find the instruction sets that may be used.  Layer: merkle.
 */
#include "merkle/cpu.h"

#include <errno.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif
#ifdef __aarch64__
#include <sys/auxv.h>
#endif

static const struct {
	const char *name;
	uint32_t bit;
} names[] = {
	{ "avx512", VERITY_CPU_AVX512 },
	{ "avx2", VERITY_CPU_AVX2 },
	{ "shani", VERITY_CPU_SHANI },
	{ "sha2", VERITY_CPU_SHA2 },
};

#if defined(__x86_64__)
/*
 * __builtin_cpu_supports() asks XGETBV too, so that registers which the
 * operating system does not save are never used.  Neither gcc 12 nor clang 14
 * has a name for the SHA extensions: bit 29 of EBX, leaf 7.
 */
static int has_shani(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1U << 29)) &&
	       __builtin_cpu_supports("sse4.1");
}

static uint32_t probe(void)
{
	uint32_t have = 0;

	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f") &&
	    __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512vl"))
		have |= VERITY_CPU_AVX512;
	if (__builtin_cpu_supports("avx2"))
		have |= VERITY_CPU_AVX2;
	if (has_shani())
		have |= VERITY_CPU_SHANI;
	return have;
}
#elif defined(__aarch64__)
static uint32_t probe(void)
{
	return getauxval(AT_HWCAP) & HWCAP_SHA2 ? VERITY_CPU_SHA2 : 0;
}
#else
static uint32_t probe(void)
{
	return 0;
}
#endif

/* Return: the bit called by the @len bytes of @word, "-" and a name, or 0. */
static uint32_t bit_barred(const char *word, size_t len)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (word[0] == '-' && strlen(names[i].name) == len - 1 &&
		    strncmp(names[i].name, word + 1, len - 1) == 0)
			return names[i].bit;
	return 0;
}

int verity_cpu_features(const char *off, uint32_t *out, const char **bad)
{
	uint32_t barred = 0, bit;
	const char *word = off;
	size_t len;

	while (word && *off) {
		len = strcspn(word, ",");
		bit = bit_barred(word, len);
		if (!bit) {
			if (bad)
				*bad = word;
			return -EINVAL;
		}
		barred |= bit;
		word = word[len] ? word + len + 1 : NULL;
	}
	*out = probe() & ~barred;
	return 0;
}

const char *verity_cpu_name(size_t i, uint32_t *bit)
{
	if (i >= sizeof(names) / sizeof(names[0]))
		return NULL;
	*bit = names[i].bit;
	return names[i].name;
}
