/* SPDX-License-Identifier: MIT */
/*
 * merkle/kernel_shani.c - SHA-256 with the x86 SHA instructions, one to four
 * independent blocks interleaved.  Layer: merkle.
 *
 * One block alone waits for sha256rnds2's latency; libcrypto does no better.
 * A Zen 4 (4 cycles, one begun each cycle) gives, against libcrypto, 1.04x,
 * 1.97x, 2.30x and 2.38x for one to four streams with gcc 12, and 1.03x,
 * 2.04x, 2.12x and 1.49x with clang 14 (bench-hash).  A fifth and a sixth
 * stream lose 5 and 9 %: the schedule's instructions have filled the ports by
 * then.  Elsewhere the ports are others; plan.c measures.
 *
 * Tried on the Zen 4 and left out: AVX encoding (+3 % with gcc, -5 % with
 * clang, and not on every CPU with SHA-NI), 32 registers by AVX-512VL (+10 %,
 * but kernel_hybrid.c gives twice that), and fetching the second half of a
 * quad from memory to save the shuffle (-5 %).
 */
#include "merkle/kernel.h"

#ifdef __x86_64__

#define SHANI  __attribute__((target("sha,sse4.1")))
#define INLINE SHANI static inline __attribute__((always_inline))

#include "merkle/shani.h"

/*
 * Four rounds with what they need of the schedule.  w[] holds the last 16 of
 * its words: words 4 * g on are used, the four after them finished, and those
 * 12 places on begun.
 */
INLINE void quad(struct state *s, __m128i *w, const size_t g, const uint8_t *in)
{
	__m128i *prev = &w[(g + 3) & 3], *next = &w[(g + 1) & 3];
	__m128i now = g < 4 ? swap_bytes(load(in + 16 * g)) : w[g & 3], t;

	w[g & 3] = now;
	rounds(s, _mm_add_epi32(now, load(verity_sha256_k + 4 * g)));
	if (g >= 3 && g < 15) {
		t = _mm_add_epi32(*next, _mm_alignr_epi8(now, *prev, 4));
		*next = _mm_sha256msg2_epu32(t, now);
	}
	if (g >= 1 && g < 13)
		*prev = _mm_sha256msg1_epu32(*prev, now);
}

/*
 * Streams take turns quad by quad.  The CPU reorders far enough to overlap
 * them, and one temporary a quad leaves the states in registers; turns of one
 * instruction cost 20 % in spills, turns of four quads 10 % (Zen 4, gcc 12).
 */
INLINE void quads(struct state *s, __m128i w[][4], const int n, const size_t g,
		  const void *const *in, size_t off)
{
	VERITY_EACH(n, i, quad(&s[i], w[i], g, (const uint8_t *)in[i] + off));
}

INLINE void compress(struct state *s, const int n, const void *const *in,
		     size_t off)
{
	__m128i w[4][4];
	struct state old[4];

	VERITY_EACH(n, i, old[i] = s[i]);
	quads(s, w, n, 0, in, off);
	quads(s, w, n, 1, in, off);
	quads(s, w, n, 2, in, off);
	quads(s, w, n, 3, in, off);
	quads(s, w, n, 4, in, off);
	quads(s, w, n, 5, in, off);
	quads(s, w, n, 6, in, off);
	quads(s, w, n, 7, in, off);
	quads(s, w, n, 8, in, off);
	quads(s, w, n, 9, in, off);
	quads(s, w, n, 10, in, off);
	quads(s, w, n, 11, in, off);
	quads(s, w, n, 12, in, off);
	quads(s, w, n, 13, in, off);
	quads(s, w, n, 14, in, off);
	quads(s, w, n, 15, in, off);
	VERITY_EACH(n, i, state_add(&s[i], &old[i]));
}

INLINE int hash(const struct verity_hasher *h, const int n,
		const void *const *blocks, uint8_t *out)
{
	struct state s[4];

	VERITY_EACH(n, i, state_start(&s[i], h->midstate));
	for (size_t off = 0; off < h->len; off += 64)
		compress(s, n, blocks, off);
	state_pad(s, n, h->tail);
	VERITY_EACH(n, i, state_finish(&s[i], out + 32 * i));
	return 0;
}

SHANI int verity_shani_x1(const struct verity_hasher *h,
			  const void *const *blocks, uint8_t *out)
{
	return hash(h, 1, blocks, out);
}

SHANI int verity_shani_x2(const struct verity_hasher *h,
			  const void *const *blocks, uint8_t *out)
{
	return hash(h, 2, blocks, out);
}

SHANI int verity_shani_x3(const struct verity_hasher *h,
			  const void *const *blocks, uint8_t *out)
{
	return hash(h, 3, blocks, out);
}

SHANI int verity_shani_x4(const struct verity_hasher *h,
			  const void *const *blocks, uint8_t *out)
{
	return hash(h, 4, blocks, out);
}

#endif /* __x86_64__ */
