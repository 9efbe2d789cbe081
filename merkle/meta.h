/* SPDX-License-Identifier: MIT */
/*
 * merkle/meta.h - the sidecar: descriptor, signature and tree in one file.
 *
 * Layer: merkle.  The layout is that of Android's fsverity_metadata_generator
 * (NAME.fsv_meta), little-endian:
 *
 *   0      version, 4 bytes, 1
 *   4      struct fsverity_descriptor, 256 bytes
 *   260    signature type, 4 bytes: 0 none, 1 PKCS#7, 2 raw
 *   264    signature size, 4 bytes
 *   268    signature
 *   next multiple of 4096: the tree, root level first; absent for a file of
 *          at most one block, and the sidecar then ends with the signature
 */
#ifndef MERKLE_META_H
#define MERKLE_META_H

#include "merkle/desc.h"
#include "merkle/geom.h"

#define VERITY_META_HEAD  268  /* bytes before the signature */
#define VERITY_META_ALIGN 4096 /* the tree begins at a multiple of it */

#define VERITY_SIG_NONE  0
#define VERITY_SIG_PKCS7 1
#define VERITY_SIG_RAW   2

struct verity_meta {
	uint8_t raw[VERITY_DESC_SIZE]; /* the descriptor as stored */
	struct verity_desc desc;
	struct verity_digest digest; /* of the descriptor */
	uint32_t sig_type;
	uint32_t sig_size;
	uint64_t tree_pos;  /* bytes from the sidecar's start */
	uint64_t tree_size; /* bytes */
};

/** verity_meta_tree_pos() - where the tree begins after a signature */
static inline uint64_t verity_meta_tree_pos(uint32_t sig_size)
{
	uint64_t end = VERITY_META_HEAD + (uint64_t)sig_size;

	return (end + VERITY_META_ALIGN - 1) / VERITY_META_ALIGN *
	       VERITY_META_ALIGN;
}

/** verity_meta_size() - bytes of a whole sidecar */
static inline uint64_t verity_meta_size(const struct verity_meta *m)
{
	return m->tree_size ? m->tree_pos + m->tree_size
			    : (uint64_t)VERITY_META_HEAD + m->sig_size;
}

/**
 * verity_meta_decode() - read a sidecar's head that nobody has vouched for
 * @head: its first VERITY_META_HEAD bytes
 * @file_size: of the sidecar, which must be exactly what the head implies
 *
 * Return: 0, -EINVAL, -EMSGSIZE, -EFBIG, -ENOMEM.
 */
VERITY_MUST_CHECK int verity_meta_decode(const uint8_t *head,
					 uint64_t file_size,
					 struct verity_meta *out,
					 struct verity_complaint *why);

/**
 * verity_meta_read() - read and check the head of an open sidecar
 * @trusted: the digest it must have, compared before any field is used; or
 *   NULL
 *
 * Return: 0; -EBADMSG when it is another digest's; as verity_meta_decode();
 * or what fstat(2) and pread(2) gave.
 */
VERITY_MUST_CHECK int verity_meta_read(int fd,
				       const struct verity_digest *trusted,
				       struct verity_meta *out,
				       struct verity_complaint *why);

/**
 * verity_meta_init() - describe an unsigned sidecar for a sealed file
 * @raw: its descriptor, from verity_build_end()
 *
 * Return: 0, or as verity_desc_decode().
 */
VERITY_MUST_CHECK int verity_meta_init(struct verity_meta *m,
				       const uint8_t *raw);

/** verity_meta_sign() - make room for a signature of at most VERITY_MAX_SIG
 * bytes; the tree may move */
static inline void verity_meta_sign(struct verity_meta *m, uint32_t type,
				    uint32_t size)
{
	m->sig_type = type;
	m->sig_size = size;
	m->tree_pos = verity_meta_tree_pos(size);
}

/** verity_meta_encode() - write the head; @head has VERITY_META_HEAD bytes */
void verity_meta_encode(const struct verity_meta *m, uint8_t *head);

/** verity_pread_full() - pread(2) until @len bytes or the end of the file
 *
 * Return: the count, or a negative errno.
 */
VERITY_MUST_CHECK ssize_t verity_pread_full(int fd, void *buf, size_t len,
					    uint64_t pos);

#endif /* MERKLE_META_H */
