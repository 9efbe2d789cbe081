/* SPDX-License-Identifier: MIT */
/*
 * merkle/kernel_armv8.c - SHA-256 with the ARMv8 SHA2 instructions, one, two
 * or four independent blocks interleaved.  Layer: merkle.
 *
 * Tested under emulation, never timed on hardware.  How many sha256h a core
 * overlaps is not known here, so the rows stand side by side and plan.c
 * measures.
 */
#include "merkle/kernel.h"

#ifdef __aarch64__

/*
 * gcc's header has the SHA2 intrinsics under "crypto", AES and all.
 * clang 14's hides them unless the whole file is built for them.
 */
#ifdef __clang__
#define ARMV8 __attribute__((target("sha2")))
#ifndef __ARM_FEATURE_SHA2
/* NOLINTNEXTLINE(bugprone-reserved-identifier) */
#define __ARM_FEATURE_SHA2 1
#endif
#else
#define ARMV8 __attribute__((target("+crypto")))
#endif
#define INLINE ARMV8 static inline __attribute__((always_inline))

#include <arm_neon.h>

struct stream {
	uint32x4_t abcd, efgh;
	uint32x4_t w[4]; /* the last 16 words of the message schedule */
};

INLINE uint32x4_t load_big_endian(const uint8_t *p)
{
	return vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(p)));
}

INLINE void store_big_endian(uint8_t *p, uint32x4_t x)
{
	vst1q_u8(p, vrev32q_u8(vreinterpretq_u8_u32(x)));
}

/* Four rounds, @x their words with the constants added. */
INLINE void rounds(struct stream *st, uint32x4_t x)
{
	uint32x4_t abcd = st->abcd;

	st->abcd = vsha256hq_u32(abcd, st->efgh, x);
	st->efgh = vsha256h2q_u32(st->efgh, abcd, x);
}

/* Words 4 * g on are used, then replaced by those 16 places on. */
INLINE void quad(struct stream *st, const size_t g, const uint8_t *in)
{
	uint32x4_t *w = st->w;

	if (g < 4)
		w[g] = load_big_endian(in + 16 * g);
	rounds(st, vaddq_u32(w[g & 3], vld1q_u32(verity_sha256_k + 4 * g)));
	if (g < 3 || g > 14)
		return;
	/* By quad 3 all of the first 16 words are there to begin from. */
	w[(g + 1) & 3] =
		vsha256su1q_u32(vsha256su0q_u32(w[(g + 1) & 3], w[(g + 2) & 3]),
				w[(g + 3) & 3], w[g & 3]);
}

/* Streams take turns quad by quad: the CPU reorders far enough to overlap. */
INLINE void quads(struct stream *st, const int n, const size_t g,
		  const void *const *in, size_t off)
{
	VERITY_EACH(n, i, quad(&st[i], g, (const uint8_t *)in[i] + off));
}

INLINE void add(struct stream *st, const struct stream *old)
{
	st->abcd = vaddq_u32(st->abcd, old->abcd);
	st->efgh = vaddq_u32(st->efgh, old->efgh);
}

INLINE void compress(struct stream *st, const int n, const void *const *in,
		     size_t off)
{
	struct stream old[4];

	VERITY_EACH(n, i, old[i] = st[i]);
	quads(st, n, 0, in, off);
	quads(st, n, 1, in, off);
	quads(st, n, 2, in, off);
	quads(st, n, 3, in, off);
	quads(st, n, 4, in, off);
	quads(st, n, 5, in, off);
	quads(st, n, 6, in, off);
	quads(st, n, 7, in, off);
	quads(st, n, 8, in, off);
	quads(st, n, 9, in, off);
	quads(st, n, 10, in, off);
	quads(st, n, 11, in, off);
	quads(st, n, 12, in, off);
	quads(st, n, 13, in, off);
	quads(st, n, 14, in, off);
	quads(st, n, 15, in, off);
	VERITY_EACH(n, i, add(&st[i], &old[i]));
}

INLINE void rounds_of_all(struct stream *st, const int n, uint32x4_t x)
{
	VERITY_EACH(n, i, rounds(&st[i], x));
}

/* The padding block, the same for all, its schedule in @tail. */
INLINE void pad(struct stream *st, const int n, const uint32_t *tail)
{
	struct stream old[4];

	VERITY_EACH(n, i, old[i] = st[i]);
	for (size_t g = 0; g < 16; g++)
		rounds_of_all(st, n, vld1q_u32(tail + 4 * g));
	VERITY_EACH(n, i, add(&st[i], &old[i]));
}

INLINE void start(struct stream *st, const uint32_t *h)
{
	st->abcd = vld1q_u32(h);
	st->efgh = vld1q_u32(h + 4);
}

INLINE void finish(const struct stream *st, uint8_t *out)
{
	store_big_endian(out, st->abcd);
	store_big_endian(out + 16, st->efgh);
}

INLINE int hash(const struct verity_hasher *h, const int n,
		const void *const *blocks, uint8_t *out)
{
	struct stream st[4];

	VERITY_EACH(n, i, start(&st[i], h->midstate));
	for (size_t off = 0; off < h->len; off += 64)
		compress(st, n, blocks, off);
	pad(st, n, h->tail);
	VERITY_EACH(n, i, finish(&st[i], out + 32 * i));
	return 0;
}

ARMV8 int verity_armv8_x1(const struct verity_hasher *h,
			  const void *const *blocks, uint8_t *out)
{
	return hash(h, 1, blocks, out);
}

ARMV8 int verity_armv8_x2(const struct verity_hasher *h,
			  const void *const *blocks, uint8_t *out)
{
	return hash(h, 2, blocks, out);
}

ARMV8 int verity_armv8_x4(const struct verity_hasher *h,
			  const void *const *blocks, uint8_t *out)
{
	return hash(h, 4, blocks, out);
}

#endif /* __aarch64__ */
