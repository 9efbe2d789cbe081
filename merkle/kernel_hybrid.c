/* SPDX-License-Identifier: MIT */
/*
 * merkle/kernel_hybrid.c - SHA-256 of 4 blocks: rounds by the SHA
 * instructions, message schedules by AVX-512VL.  Layer: merkle.
 *
 * A Zen 4 can begin one sha256rnds2 a cycle, which alone would give 3.7x of
 * libcrypto, but sha256msg1, sha256msg2, palignr and pshufd, 52 a block, want
 * the same ports.  Here a 256-bit vector takes two words of each of four
 * blocks through the schedule, with rotates and three-operand logic, and
 * leaves them in memory as sha256rnds2 wants them: a pair in the low half of
 * a register, one plain load each.
 *
 * Measured on the Zen 4, against libcrypto: 2.9x with gcc 12, 2.8x with clang
 * 14.  Tried and left out: 512-bit vectors, of 16 blocks a word each (2.4x) or
 * of 8 blocks a pair each (2.45x: sixteen states do not fit); the loop of
 * compress() unrolled (2.2x and 2.4x); rounds and schedule mixed finer in the
 * source, and the schedule's two halves in different steps (2.7x).
 */
#include "merkle/kernel.h"

#ifdef __x86_64__

#define HYBRID __attribute__((target("sha,avx512f,avx512bw,avx512vl")))
#define INLINE HYBRID static inline __attribute__((always_inline))

#include "merkle/shani.h"

/* gcc's scheduling after register allocation costs 3 %. */
#ifndef __clang__
#pragma GCC optimize("no-schedule-insns2")
#endif

/* Words t and t + 1 of block 0, the same of block 1, 2 and 3. */
typedef __m256i pair;

enum { PAIR_WORDS = 8, AHEAD = 8 * PAIR_WORDS };

/*
 * The odd words of one and the even words of another: each block's two come in
 * the wrong order.  The AVX2 blend would reach 16 registers only, 2 % slower.
 */
INLINE pair across(pair odd, pair even)
{
	return _mm256_mask_blend_epi32(0xaa, even, odd);
}

INLINE pair xor3(pair a, pair b, pair c)
{
	return _mm256_ternarylogic_epi32(a, b, c, 0x96);
}

INLINE pair sigma0(pair x)
{
	return xor3(_mm256_ror_epi32(x, 7), _mm256_ror_epi32(x, 18),
		    _mm256_srli_epi32(x, 3));
}

INLINE pair sigma1(pair x)
{
	return xor3(_mm256_ror_epi32(x, 17), _mm256_ror_epi32(x, 19),
		    _mm256_srli_epi32(x, 10));
}

/*
 * w[] holds eight pairs, 16 words; replace pair j by the one 16 words on.  The
 * words 15 and 7 back straddle pairs.  Their sum is taken in the wrong order
 * and put right once.
 */
INLINE void next_pair(pair *w, const size_t j)
{
	pair back15 = across(w[j], w[(j + 1) & 7]);
	pair back7 = across(w[(j + 4) & 7], w[(j + 5) & 7]);
	pair sum = _mm256_add_epi32(back7, sigma0(back15));

	sum = _mm256_add_epi32(w[j], _mm256_shuffle_epi32(sum, 0xb1));
	w[j] = _mm256_add_epi32(sum, sigma1(w[(j + 7) & 7]));
}

/* Add the constants of both rounds and leave it to be loaded by the rounds. */
INLINE void put_pair(uint32_t *wk, pair w, const uint32_t *k)
{
	uint64_t both = k[0] | (uint64_t)k[1] << 32;

	w = _mm256_add_epi32(w, _mm256_set1_epi64x((long long)both));
	_mm256_store_si256((pair *)wk, w);
}

/* 16 bytes from each of two blocks. */
INLINE pair load_two(const void *a, const void *b, size_t off)
{
	__m256i low = _mm256_castsi128_si256(load((const char *)a + off));
	__m128i high = load((const char *)b + off);
	__m256i order = _mm256_broadcastsi128_si256(
		_mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203));

	return _mm256_shuffle_epi8(_mm256_inserti128_si256(low, high, 1),
				   order);
}

/* Pairs j and j + 1 of the message block at @off. */
INLINE void load_pairs(pair *w, const size_t j, const void *const *in,
		       size_t off, uint32_t *wk)
{
	pair a = load_two(in[0], in[2], off + 8 * j);
	pair b = load_two(in[1], in[3], off + 8 * j);

	w[j] = _mm256_unpacklo_epi64(a, b);
	w[j + 1] = _mm256_unpackhi_epi64(a, b);
	put_pair(wk + PAIR_WORDS * j, w[j], verity_sha256_k + 2 * j);
	put_pair(wk + PAIR_WORDS * (j + 1), w[j + 1],
		 verity_sha256_k + 2 * (j + 1));
}

INLINE __m128i words_of(const uint32_t *wk, const size_t stream)
{
	return _mm_loadl_epi64((const __m128i *)(wk + 2 * stream));
}

/* Two rounds of every block, and the pair that is wanted eight pairs on. */
INLINE void step_even(struct state *s, pair *w, const size_t j, uint32_t *wk,
		      const uint32_t *k)
{
	wk += PAIR_WORDS * j;
	VERITY_EACH(4, i, rounds_even(&s[i], words_of(wk, i)));
	next_pair(w, j);
	put_pair(wk + AHEAD, w[j], k + 2 * (j + 8));
}

INLINE void step_odd(struct state *s, pair *w, const size_t j, uint32_t *wk,
		     const uint32_t *k)
{
	wk += PAIR_WORDS * j;
	VERITY_EACH(4, i, rounds_odd(&s[i], words_of(wk, i)));
	next_pair(w, j);
	put_pair(wk + AHEAD, w[j], k + 2 * (j + 8));
}

INLINE void eight_steps(struct state *s, pair *w, uint32_t *wk,
			const uint32_t *k)
{
	step_even(s, w, 0, wk, k);
	step_odd(s, w, 1, wk, k);
	step_even(s, w, 2, wk, k);
	step_odd(s, w, 3, wk, k);
	step_even(s, w, 4, wk, k);
	step_odd(s, w, 5, wk, k);
	step_even(s, w, 6, wk, k);
	step_odd(s, w, 7, wk, k);
}

/* Four rounds near the end of a message block, and pairs of the next one. */
INLINE void step_load(struct state *s, pair *w, const size_t j,
		      const void *const *in, size_t next, uint32_t *wk)
{
	const uint32_t *last = wk + PAIR_WORDS * (24 + j);

	VERITY_EACH(4, i, rounds_even(&s[i], words_of(last, i)));
	load_pairs(w, j, in, next, wk);
	last += PAIR_WORDS;
	VERITY_EACH(4, i, rounds_odd(&s[i], words_of(last, i)));
}

/*
 * @next: where the next message block is, or any that may be read
 *
 * The barrier keeps loads from being hoisted out of the loop, where they push
 * states into memory: without it clang 14 gives 2.2x.
 */
INLINE void compress(struct state *s, pair *w, const void *const *in,
		     size_t next, uint32_t *wk)
{
	struct state old[4];

	VERITY_EACH(4, i, old[i] = s[i]);
	__asm__ volatile("" ::: "memory");
#pragma GCC unroll 1
	for (size_t j = 0; j < 24; j += 8)
		eight_steps(s, w, wk + PAIR_WORDS * j, verity_sha256_k + 2 * j);
	step_load(s, w, 0, in, next, wk);
	step_load(s, w, 2, in, next, wk);
	step_load(s, w, 4, in, next, wk);
	step_load(s, w, 6, in, next, wk);
	VERITY_EACH(4, i, state_add(&s[i], &old[i]));
}

HYBRID int verity_hybrid_x4(const struct verity_hasher *h,
			    const void *const *blocks, uint8_t *out)
{
	_Alignas(32) uint32_t wk[32 * PAIR_WORDS];
	struct state s[4];
	pair w[8];
	size_t next;

	VERITY_EACH(4, i, state_start(&s[i], h->midstate));
	VERITY_EACH(4, i, load_pairs(w, 2 * i, blocks, 0, wk));
	for (size_t off = 0; off < h->len; off = next) {
		next = off + 64;
		compress(s, w, blocks, next < h->len ? next : 0, wk);
	}
	state_pad(s, 4, h->tail);
	VERITY_EACH(4, i, state_finish(&s[i], out + 32 * i));
	return 0;
}

#endif /* __x86_64__ */
