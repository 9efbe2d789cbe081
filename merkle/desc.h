/* SPDX-License-Identifier: MIT */
/*
 * merkle/desc.h - struct fsverity_descriptor: read, check, write, digest.
 *
 * Layer: merkle.  The layout is the kernel's (fs/verity/fsverity_private.h;
 * "File digest computation" in Documentation/filesystems/fsverity.rst).
 */
#ifndef MERKLE_DESC_H
#define MERKLE_DESC_H

#include "merkle/verity.h"

/** A descriptor's fields, decoded and checked. */
struct verity_desc {
	struct verity_params params;
	uint64_t data_size;
	uint32_t sig_size;               /* of a signature appended on disk */
	uint8_t root[VERITY_MAX_DIGEST]; /* zero beyond the digest's size */
};

/**
 * verity_desc_decode() - read a descriptor that nobody has vouched for
 * @raw: VERITY_DESC_SIZE bytes
 *
 * Every field is bounded here: version, algorithm, block size, salt, file
 * size, reserved bytes, the root's unused half, the tree's depth.
 *
 * Return: 0, -EINVAL, -EMSGSIZE (salt or signature too long), -EFBIG.
 */
VERITY_MUST_CHECK int verity_desc_decode(const uint8_t *raw,
					 struct verity_desc *out,
					 struct verity_complaint *why);

/** verity_desc_encode() - write a descriptor; sig_size as in @desc */
void verity_desc_encode(const struct verity_desc *desc, uint8_t *raw);

/**
 * verity_desc_digest() - the file digest: the hash of the descriptor with
 * sig_size taken as 0
 * @raw: VERITY_DESC_SIZE bytes; only the algorithm's number is looked at
 *
 * Return: 0, -EINVAL for an unknown algorithm, -ENOMEM or -ENOPKG.
 */
VERITY_MUST_CHECK int verity_desc_digest(const uint8_t *raw,
					 struct verity_digest *out);

/** verity_digest_equal() - Return: nonzero when both are the same digest */
int verity_digest_equal(const struct verity_digest *a,
			const struct verity_digest *b);

#endif /* MERKLE_DESC_H */
