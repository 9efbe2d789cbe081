/* SPDX-License-Identifier: MIT */
/*
 * merkle/lanes.h - private: SHA-256 of one block in each lane of a vector, the
 * template of kernel_avx2.c and kernel_avx512.c.  Layer: merkle.
 *
 * Before including it a kernel defines INLINE, with its target attribute; vec,
 * a vector of words; and, as such functions or macros: add, shr, ror, xor3,
 * choose (e ? f : g bitwise), majority, all (a word in every lane), load_words
 * (the next 16 words of every block, row i holding word i of each) and
 * store_digests.
 *
 * Arrays are indexed with what is constant once all is inlined, so that their
 * members live in registers.  Loops are therefore written out: clang unrolls
 * too late for that.
 */
#include "merkle/kernel.h"

/* s[] is a to h in round 0; each round every name moves on by one place. */
INLINE void one_round(vec *s, const int i, vec wk)
{
	vec a = s[-i & 7], b = s[(1 - i) & 7], c = s[(2 - i) & 7];
	vec e = s[(4 - i) & 7], f = s[(5 - i) & 7], g = s[(6 - i) & 7];
	vec t = add(add(s[(7 - i) & 7], wk), choose(e, f, g));

	t = add(t, xor3(ror(e, 6), ror(e, 11), ror(e, 25)));
	s[(3 - i) & 7] = add(s[(3 - i) & 7], t);
	t = add(t, majority(a, b, c));
	s[(7 - i) & 7] = add(t, xor3(ror(a, 2), ror(a, 13), ror(a, 22)));
}

/* w[] holds 16 words of the schedule; replace word i by word i + 16. */
INLINE void next_word(vec *w, const int i)
{
	vec w1 = w[(i + 1) & 15], w14 = w[(i + 14) & 15];
	vec s0 = xor3(ror(w1, 7), ror(w1, 18), shr(w1, 3));
	vec s1 = xor3(ror(w14, 17), ror(w14, 19), shr(w14, 10));

	w[i] = add(add(w[i], w[(i + 9) & 15]), add(s0, s1));
}

INLINE void four_rounds(vec *s, vec *w, const int i, const int fresh,
			const uint32_t *k)
{
	if (!fresh)
		next_word(w, i);
	one_round(s, i, add(w[i], all(k[i])));
	if (!fresh)
		next_word(w, i + 1);
	one_round(s, i + 1, add(w[i + 1], all(k[i + 1])));
	if (!fresh)
		next_word(w, i + 2);
	one_round(s, i + 2, add(w[i + 2], all(k[i + 2])));
	if (!fresh)
		next_word(w, i + 3);
	one_round(s, i + 3, add(w[i + 3], all(k[i + 3])));
}

INLINE void sixteen_rounds(vec *s, vec *w, const int fresh, const uint32_t *k)
{
	four_rounds(s, w, 0, fresh, k);
	four_rounds(s, w, 4, fresh, k);
	four_rounds(s, w, 8, fresh, k);
	four_rounds(s, w, 12, fresh, k);
}

INLINE void copy(vec *to, const vec *from)
{
	to[0] = from[0];
	to[1] = from[1];
	to[2] = from[2];
	to[3] = from[3];
	to[4] = from[4];
	to[5] = from[5];
	to[6] = from[6];
	to[7] = from[7];
}

INLINE void add_all(vec *s, const vec *t)
{
	s[0] = add(s[0], t[0]);
	s[1] = add(s[1], t[1]);
	s[2] = add(s[2], t[2]);
	s[3] = add(s[3], t[3]);
	s[4] = add(s[4], t[4]);
	s[5] = add(s[5], t[5]);
	s[6] = add(s[6], t[6]);
	s[7] = add(s[7], t[7]);
}

INLINE void compress(vec *s, const void *const *blocks, size_t off)
{
	vec w[16], saved[8];

	copy(saved, s);
	load_words(w, blocks, off);
	sixteen_rounds(s, w, 1, verity_sha256_k);
#pragma GCC unroll 1
	for (int i = 16; i < 64; i += 16)
		sixteen_rounds(s, w, 0, verity_sha256_k + i);
	add_all(s, saved);
}

/* The padding block is the same in every lane, its schedule made already. */
INLINE void pad(vec *s, const uint32_t *tail)
{
	vec saved[8];

	copy(saved, s);
	for (int i = 0; i < 64; i += 8) {
		one_round(s, 0, all(tail[i]));
		one_round(s, 1, all(tail[i + 1]));
		one_round(s, 2, all(tail[i + 2]));
		one_round(s, 3, all(tail[i + 3]));
		one_round(s, 4, all(tail[i + 4]));
		one_round(s, 5, all(tail[i + 5]));
		one_round(s, 6, all(tail[i + 6]));
		one_round(s, 7, all(tail[i + 7]));
	}
	add_all(s, saved);
}

INLINE int hash_lanes(const struct verity_hasher *h, const void *const *blocks,
		      uint8_t *out)
{
	vec s[8];

	s[0] = all(h->midstate[0]);
	s[1] = all(h->midstate[1]);
	s[2] = all(h->midstate[2]);
	s[3] = all(h->midstate[3]);
	s[4] = all(h->midstate[4]);
	s[5] = all(h->midstate[5]);
	s[6] = all(h->midstate[6]);
	s[7] = all(h->midstate[7]);
	for (size_t off = 0; off < h->len; off += 64)
		compress(s, blocks, off);
	pad(s, h->tail);
	store_digests(s, out);
	return 0;
}
