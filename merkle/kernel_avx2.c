/* SPDX-License-Identifier: MIT */
/*
 * merkle/kernel_avx2.c - SHA-256 of 8 blocks, one in each lane of AVX2.
 * Layer: merkle.
 *
 * For CPUs with neither SHA instructions nor AVX-512.  With both, as on a Zen
 * 4, it is no faster than libcrypto's SHA-NI code: bench-hash gives 1.03x with
 * gcc 12 and 1.08x with clang 14.  Rotates take three operations here, and 16
 * registers hold half of what there is to hold.
 */
#include "merkle/kernel.h"

#ifdef __x86_64__

#include <immintrin.h>

#define LANES_TARGET __attribute__((target("avx2")))

#define INLINE LANES_TARGET static inline __attribute__((always_inline))

typedef __m256i vec;

#define add(a, b) _mm256_add_epi32(a, b)
#define shr(a, n) _mm256_srli_epi32(a, n)
#define ror(a, n)                                                              \
	_mm256_or_si256(_mm256_srli_epi32(a, n), _mm256_slli_epi32(a, 32 - (n)))
#define all(x) _mm256_set1_epi32((int)(x))

INLINE vec xor3(vec a, vec b, vec c)
{
	return _mm256_xor_si256(_mm256_xor_si256(a, b), c);
}

INLINE vec choose(vec e, vec f, vec g)
{
	return _mm256_xor_si256(g, _mm256_and_si256(e, _mm256_xor_si256(f, g)));
}

/* One operation less than usual: next round's b ^ c is this round's a ^ b. */
INLINE vec majority(vec a, vec b, vec c)
{
	return _mm256_xor_si256(b, _mm256_and_si256(_mm256_xor_si256(a, b),
						    _mm256_xor_si256(b, c)));
}

INLINE vec swap_bytes(vec x)
{
	return _mm256_shuffle_epi8(
		x, _mm256_broadcastsi128_si256(_mm_set_epi64x(
			   0x0c0d0e0f08090a0b, 0x0405060700010203)));
}

/* Four rows; turns their 4x4 squares of words, one in each 128-bit half. */
INLINE void turn_squares(vec *r)
{
	vec ab_lo = _mm256_unpacklo_epi32(r[0], r[1]);
	vec ab_hi = _mm256_unpackhi_epi32(r[0], r[1]);
	vec cd_lo = _mm256_unpacklo_epi32(r[2], r[3]);
	vec cd_hi = _mm256_unpackhi_epi32(r[2], r[3]);

	r[0] = _mm256_unpacklo_epi64(ab_lo, cd_lo);
	r[1] = _mm256_unpackhi_epi64(ab_lo, cd_lo);
	r[2] = _mm256_unpacklo_epi64(ab_hi, cd_hi);
	r[3] = _mm256_unpackhi_epi64(ab_hi, cd_hi);
}

INLINE void swap_halves(vec *a, vec *b)
{
	vec low = _mm256_permute2x128_si256(*a, *b, 0x20);

	*b = _mm256_permute2x128_si256(*a, *b, 0x31);
	*a = low;
}

/* Afterwards word j of row i is what word i of row j was. */
INLINE void transpose(vec *r)
{
	turn_squares(r);
	turn_squares(r + 4);
	swap_halves(r, r + 4);
	swap_halves(r + 1, r + 5);
	swap_halves(r + 2, r + 6);
	swap_halves(r + 3, r + 7);
}

INLINE vec load_one(const void *block, size_t off)
{
	return swap_bytes(
		_mm256_loadu_si256((const vec *)((const char *)block + off)));
}

INLINE void load_eight(vec *w, const void *const *blocks, size_t off)
{
	w[0] = load_one(blocks[0], off);
	w[1] = load_one(blocks[1], off);
	w[2] = load_one(blocks[2], off);
	w[3] = load_one(blocks[3], off);
	w[4] = load_one(blocks[4], off);
	w[5] = load_one(blocks[5], off);
	w[6] = load_one(blocks[6], off);
	w[7] = load_one(blocks[7], off);
	transpose(w);
}

INLINE void load_words(vec *w, const void *const *blocks, size_t off)
{
	load_eight(w, blocks, off);
	load_eight(w + 8, blocks, off + 32);
}

INLINE void store_digests(vec *s, uint8_t *out)
{
	transpose(s);
	for (size_t i = 0; i < 8; i++)
		_mm256_storeu_si256((vec *)(out + 32 * i), swap_bytes(s[i]));
}

#include "merkle/lanes.h"

LANES_TARGET int verity_avx2_x8(const struct verity_hasher *h,
				const void *const *blocks, uint8_t *out)
{
	return hash_lanes(h, blocks, out);
}

#endif /* __x86_64__ */
