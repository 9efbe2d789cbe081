/* SPDX-License-Identifier: MIT */
/*
 * merkle/shani.h - private: the state of SHA-256 as the x86 SHA instructions
 * want it, for kernel_shani.c and kernel_hybrid.c.  Layer: merkle.
 *
 * A kernel defines INLINE, with its target attribute, before including it.
 */
#include "merkle/kernel.h"

#include <immintrin.h>

struct state {
	__m128i abef, cdgh;
};

INLINE __m128i load(const void *p)
{
	return _mm_loadu_si128(p);
}

INLINE __m128i swap_bytes(__m128i x)
{
	return _mm_shuffle_epi8(
		x, _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203));
}

INLINE void state_start(struct state *s, const uint32_t *h)
{
	__m128i badc = _mm_shuffle_epi32(load(h), 0xb1);
	__m128i hgfe = _mm_shuffle_epi32(load(h + 4), 0x1b);

	s->abef = _mm_alignr_epi8(badc, hgfe, 8);
	s->cdgh = _mm_blend_epi16(hgfe, badc, 0xf0);
}

INLINE void state_add(struct state *s, const struct state *old)
{
	s->abef = _mm_add_epi32(s->abef, old->abef);
	s->cdgh = _mm_add_epi32(s->cdgh, old->cdgh);
}

/* @out: 32 bytes, the digest */
INLINE void state_finish(const struct state *s, uint8_t *out)
{
	__m128i feba = _mm_shuffle_epi32(s->abef, 0x1b);
	__m128i dchg = _mm_shuffle_epi32(s->cdgh, 0xb1);
	__m128i abcd = _mm_blend_epi16(feba, dchg, 0xf0);
	__m128i efgh = _mm_alignr_epi8(dchg, feba, 8);

	_mm_storeu_si128((__m128i *)out, swap_bytes(abcd));
	_mm_storeu_si128((__m128i *)out + 1, swap_bytes(efgh));
}

/* Two rounds: @x has their words, constants added, in its low half. */
INLINE void rounds_even(struct state *s, __m128i x)
{
	s->cdgh = _mm_sha256rnds2_epu32(s->cdgh, s->abef, x);
}

/* The next two.  What was abef has become cdgh, and the names are back. */
INLINE void rounds_odd(struct state *s, __m128i x)
{
	s->abef = _mm_sha256rnds2_epu32(s->abef, s->cdgh, x);
}

/* Four rounds, one word in each quarter of @x. */
INLINE void rounds(struct state *s, __m128i x)
{
	rounds_even(s, x);
	rounds_odd(s, _mm_shuffle_epi32(x, 0x0e));
}

INLINE void rounds_of_all(struct state *s, const int n, __m128i x)
{
	VERITY_EACH(n, i, rounds(&s[i], x));
}

/* The padding block, the same for all, its schedule in @tail. */
INLINE void state_pad(struct state *s, const int n, const uint32_t *tail)
{
	struct state old[4];

	VERITY_EACH(n, i, old[i] = s[i]);
	for (size_t g = 0; g < 16; g++)
		rounds_of_all(s, n, load(tail + 4 * g));
	VERITY_EACH(n, i, state_add(&s[i], &old[i]));
}
