/* SPDX-License-Identifier: MIT */
/*
 * merkle/kernel_avx512.c - SHA-256 of 16 blocks, one in each lane of AVX-512.
 * Layer: merkle.
 *
 * For CPUs whose SHA instructions are missing or slow: bench-hash gives 2.1x of
 * libcrypto on a Zen 4, with gcc 12 and with clang 14.
 *
 * A Zen 4 spends 1020 cycles on 1024 bytes, where 672 rotates and shifts and
 * 80 shuffles need one each on the two ports that take them, and all
 * operations together 860.
 *
 * Tried on the Zen 4 and left out: all 64 rounds unrolled (no change), the
 * constants as embedded broadcasts (no change), and squares of words loaded by
 * vinserti32x4 or by masked broadcasts instead of turned (-6 %).
 */
#include "merkle/kernel.h"

#ifdef __x86_64__

#include <immintrin.h>

#define LANES_TARGET __attribute__((target("avx512f,avx512bw")))

#define INLINE LANES_TARGET static inline __attribute__((always_inline))

typedef __m512i vec;

#define add(a, b)         _mm512_add_epi32(a, b)
#define shr(a, n)         _mm512_srli_epi32(a, n)
#define ror(a, n)         _mm512_ror_epi32(a, n)
#define xor3(a, b, c)     _mm512_ternarylogic_epi32(a, b, c, 0x96)
#define choose(e, f, g)   _mm512_ternarylogic_epi32(e, f, g, 0xca)
#define majority(a, b, c) _mm512_ternarylogic_epi32(a, b, c, 0xe8)
#define all(x)            _mm512_set1_epi32((int)(x))

/* Four rows; turns their 4x4 squares of words, one in each 128-bit quarter. */
INLINE void turn_squares(vec *r)
{
	vec ab_lo = _mm512_unpacklo_epi32(r[0], r[1]);
	vec ab_hi = _mm512_unpackhi_epi32(r[0], r[1]);
	vec cd_lo = _mm512_unpacklo_epi32(r[2], r[3]);
	vec cd_hi = _mm512_unpackhi_epi32(r[2], r[3]);

	r[0] = _mm512_unpacklo_epi64(ab_lo, cd_lo);
	r[1] = _mm512_unpackhi_epi64(ab_lo, cd_lo);
	r[2] = _mm512_unpacklo_epi64(ab_hi, cd_hi);
	r[3] = _mm512_unpackhi_epi64(ab_hi, cd_hi);
}

/* Rows i, i + 4, i + 8, i + 12: turns the 4x4 square of their quarters. */
INLINE void turn_quarters(vec *r)
{
	vec ab_even = _mm512_shuffle_i32x4(r[0], r[4], 0x88);
	vec ab_odd = _mm512_shuffle_i32x4(r[0], r[4], 0xdd);
	vec cd_even = _mm512_shuffle_i32x4(r[8], r[12], 0x88);
	vec cd_odd = _mm512_shuffle_i32x4(r[8], r[12], 0xdd);

	r[0] = _mm512_shuffle_i32x4(ab_even, cd_even, 0x88);
	r[4] = _mm512_shuffle_i32x4(ab_odd, cd_odd, 0x88);
	r[8] = _mm512_shuffle_i32x4(ab_even, cd_even, 0xdd);
	r[12] = _mm512_shuffle_i32x4(ab_odd, cd_odd, 0xdd);
}

/* Afterwards word j of row i is what word i of row j was. */
INLINE void transpose(vec *r)
{
	turn_squares(r);
	turn_squares(r + 4);
	turn_squares(r + 8);
	turn_squares(r + 12);
	turn_quarters(r);
	turn_quarters(r + 1);
	turn_quarters(r + 2);
	turn_quarters(r + 3);
}

INLINE vec swap_bytes(vec x)
{
	return _mm512_shuffle_epi8(
		x, _mm512_broadcast_i32x4(_mm_set_epi64x(0x0c0d0e0f08090a0b,
							 0x0405060700010203)));
}

INLINE void load_four(vec *w, const void *const *blocks, size_t off)
{
	w[0] = swap_bytes(_mm512_loadu_si512((const char *)blocks[0] + off));
	w[1] = swap_bytes(_mm512_loadu_si512((const char *)blocks[1] + off));
	w[2] = swap_bytes(_mm512_loadu_si512((const char *)blocks[2] + off));
	w[3] = swap_bytes(_mm512_loadu_si512((const char *)blocks[3] + off));
}

INLINE void load_words(vec *w, const void *const *blocks, size_t off)
{
	load_four(w, blocks, off);
	load_four(w + 4, blocks + 4, off);
	load_four(w + 8, blocks + 8, off);
	load_four(w + 12, blocks + 12, off);
	transpose(w);
}

INLINE void store_digests(vec *s, uint8_t *out)
{
	vec r[16];

	for (size_t i = 0; i < 16; i++)
		r[i] = i < 8 ? s[i] : _mm512_setzero_si512();
	transpose(r);
	for (size_t i = 0; i < 16; i++)
		_mm256_storeu_si256((__m256i *)(out + 32 * i),
				    _mm512_castsi512_si256(swap_bytes(r[i])));
}

/*
 * gcc's scheduling after register allocation, and its reordering of sums, want
 * more than the 32 registers there are: 2.01x of libcrypto instead of 2.11x.
 */
#ifndef __clang__
#pragma GCC optimize("no-schedule-insns2", "no-tree-reassoc")
#endif

#include "merkle/lanes.h"

LANES_TARGET int verity_avx512_x16(const struct verity_hasher *h,
				   const void *const *blocks, uint8_t *out)
{
	return hash_lanes(h, blocks, out);
}

#endif /* __x86_64__ */
