/* SPDX-License-Identifier: MIT */
/*
 * verity.h - fs-verity digests, trees and verified reads, in user space.
 *
 * The formats are those of the Linux kernel's fs-verity
 * (Documentation/filesystems/fsverity.rst): every digest, descriptor and tree
 * made here is bit for bit what the kernel makes for the same file.
 *
 * Sizes and positions are in bytes unless a name says otherwise.  Functions
 * give 0 (or a count) on success and a negative errno on failure; out
 * parameters are written on success only.  Nothing here prints, starts a
 * thread or takes a lock, but libcrypto may lock where it does the hashing.
 * An object may be used by one thread at a time unless its comment says more.
 */
#ifndef VERITY_H
#define VERITY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VERITY_API        __attribute__((visibility("default")))
#define VERITY_MUST_CHECK __attribute__((warn_unused_result))

#define VERITY_SHA256 1 /* the number on disk, FS_VERITY_HASH_ALG_SHA256 */
#define VERITY_SHA512 2 /* FS_VERITY_HASH_ALG_SHA512 */

#define VERITY_MAX_DIGEST  64 /* SHA-512 */
#define VERITY_MAX_SALT    32
#define VERITY_MIN_BLOCK   512 /* fsverity-utils; the kernel begins at 1024 */
#define VERITY_MAX_BLOCK   65536
#define VERITY_MAX_LEVELS  8 /* of hash blocks, FS_VERITY_MAX_LEVELS */
#define VERITY_MAX_SIZE    ((uint64_t)INT64_MAX)
#define VERITY_DESC_SIZE   256   /* struct fsverity_descriptor */
#define VERITY_MAX_SIG     16128 /* a stored descriptor is 16 KiB at most */
#define VERITY_META_SUFFIX ".fsv_meta"

/** How a file is cut and hashed.  A trusted digest fixes all of it. */
struct verity_params {
	uint32_t alg;        /* VERITY_SHA256 or VERITY_SHA512 */
	uint32_t block_size; /* power of two, VERITY_MIN_BLOCK to _MAX_BLOCK */
	uint32_t salt_size;  /* 0 to VERITY_MAX_SALT */
	uint8_t salt[VERITY_MAX_SALT];
};

/** What fsverity(1) and the kernel take when nothing is said. */
#define VERITY_PARAMS_DEFAULT                                                  \
	{                                                                      \
		VERITY_SHA256, 4096, 0,                                        \
		{                                                              \
			0                                                      \
		}                                                              \
	}

/** A digest with its algorithm, as "sha256:HEX" names it. */
struct verity_digest {
	uint32_t alg;
	uint32_t size; /* 32 or 64; bytes beyond it are zero */
	uint8_t bytes[VERITY_MAX_DIGEST];
};

/**
 * Why metadata was refused: the field, what it holds and what is allowed.
 * Both strings are static.  "descriptor.version is 2, must be 1" is field,
 * value, rule and limit in that order.
 */
struct verity_complaint {
	const char *field;
	const char *rule;
	uint64_t value;
	uint64_t limit;
};

/** Where a check failed and how.  Filled in with -EBADMSG, else untouched. */
struct verity_mismatch {
	uint64_t pos;   /* in the file, of the data block that was wanted */
	uint64_t index; /* which block of its level, from 0 */
	uint32_t level; /* 0 the data block, 1 a leaf hash block, and so on */
	uint32_t size;  /* of the two digests; 0: bytes missing, no digest */
	uint8_t want[VERITY_MAX_DIGEST]; /* from the level above, or the root */
	uint8_t got[VERITY_MAX_DIGEST];  /* of what was read */
};

/** verity_version() - "MAJOR.MINOR.PATCH" of the library linked at run time */
VERITY_API const char *verity_version(void);

/** verity_alg_by_name() - Return: the number of "sha256" or "sha512", or 0 */
VERITY_API uint32_t verity_alg_by_name(const char *name);

/** verity_alg_name() - Return: a static name, or NULL for an unknown number */
VERITY_API const char *verity_alg_name(uint32_t alg);

/** verity_digest_size() - Return: 32, 64, or 0 for an unknown number */
VERITY_API uint32_t verity_digest_size(uint32_t alg);

/**
 * verity_digest_parse() - read "sha256:HEX" or, as SHA-256, 64 bare hex digits
 *
 * Return: 0, or -EINVAL.
 */
VERITY_API VERITY_MUST_CHECK int verity_digest_parse(const char *text,
						     struct verity_digest *out);

/**
 * verity_digest_format() - write "sha256:HEX" and a NUL; an unknown algorithm
 * is called "unknown"
 * @out: room for VERITY_DIGEST_TEXT bytes
 */
#define VERITY_DIGEST_TEXT (9 + 2 * VERITY_MAX_DIGEST)
VERITY_API void verity_digest_format(const struct verity_digest *d, char *out);

/*
 * Building
 */

struct verity_build;

/**
 * verity_emit_fn - take finished hash blocks of the tree
 * @level: 1 for the leaf hashes, going up
 * @index: which block of that level the first one is
 * @blocks: @count blocks back to back, valid during the call only
 *
 * A level's blocks come in order, levels mixed.  verity_tree_offset() says
 * where a block belongs once the file's size is known.
 *
 * Return: 0, or a negative errno, which ends the build with it.
 */
typedef int (*verity_emit_fn)(void *arg, unsigned int level, uint64_t index,
			      size_t count, const void *blocks);

/**
 * verity_build_new() - begin the tree of one file
 * @emit: called for hash blocks, or NULL when only the digest is wanted
 * @out: the caller's, for verity_build_free()
 *
 * The first call in a process measures the hash code (0.2 ms), and reads
 * VERITY_CPU from the environment, which switches CPU features off.
 *
 * Return: 0; -EINVAL or -EMSGSIZE for parameters out of range; -EINVAL too for
 * a VERITY_CPU that names no feature; -ENOPKG when libcrypto has no such
 * algorithm; -ENOMEM.
 */
VERITY_API VERITY_MUST_CHECK int
verity_build_new(const struct verity_params *params, verity_emit_fn emit,
		 void *arg, struct verity_build **out);

/**
 * verity_build_add() - hash the next @len bytes of the file, any number
 *
 * Return: 0; -EFBIG when the file grows past what a tree can hold, which is
 * found out here or by verity_build_end(); -ENOMEM; or what the emit function
 * gave.  After a failure only freeing is allowed.
 */
VERITY_API VERITY_MUST_CHECK int verity_build_add(struct verity_build *b,
						  const void *data, size_t len);

/**
 * verity_build_end() - finish the file
 * @digest: the fs-verity file digest, what FS_IOC_MEASURE_VERITY gives
 * @desc: the descriptor it is the digest of, VERITY_DESC_SIZE bytes; or NULL
 *
 * Return: as verity_build_add().
 */
VERITY_API VERITY_MUST_CHECK int verity_build_end(struct verity_build *b,
						  struct verity_digest *digest,
						  uint8_t *desc);

/** verity_build_free() - NULL is allowed */
VERITY_API void verity_build_free(struct verity_build *b);

/**
 * verity_tree_offset() - where a hash block lies in a tree of a file
 * @size: of the file
 * @out: bytes from the tree's start, root level first
 *
 * Level 0 is not a hash block; level 1 with an @index past its end gives
 * -EINVAL like any block that does not exist.
 *
 * Return: 0, -EINVAL, -EMSGSIZE, or -EFBIG.
 */
VERITY_API VERITY_MUST_CHECK int
verity_tree_offset(const struct verity_params *params, uint64_t size,
		   unsigned int level, uint64_t index, uint64_t *out);

/*
 * Reading with verification
 */

struct verity_file;

/**
 * verity_file_open() - open a file and its sidecar for verified reads
 * @path: the data; must be a regular file
 * @meta_path: its sidecar, or NULL for @path with VERITY_META_SUFFIX
 * @trusted: the file digest that reads must lead to; or NULL to take the
 *   sidecar's word, which finds rot but not an attack
 * @out: the caller's, for verity_file_close()
 * @why: filled in with -EINVAL, -EMSGSIZE and -EFBIG where a field of the
 *   sidecar was refused; its field is NULL after any other failure; may be
 *   NULL itself
 *
 * The sidecar's descriptor is checked against @trusted before any field of
 * it is used.  The trusted root never changes while the file is open.
 *
 * Return: 0; -EBADMSG when the sidecar is not that of @trusted, whatever else
 * may be wrong with it; -EINVAL, -EMSGSIZE or -EFBIG when it is malformed;
 * -ENODATA when there is no sidecar; -EISDIR, or -EINVAL with why->field NULL,
 * when the data is no regular file; -ENOMEM or -ENOPKG; or what open(2),
 * fstat(2) and pread(2) gave for either file.
 */
VERITY_API VERITY_MUST_CHECK int
verity_file_open(const char *path, const char *meta_path,
		 const struct verity_digest *trusted, struct verity_file **out,
		 struct verity_complaint *why);

/**
 * verity_file_read() - pread(2), giving verified bytes only
 * @buf: on failure its contents are undefined and must not be used
 * @why: the first bad block, with -EBADMSG; may be NULL
 *
 * May be called from many threads at once.  Like the kernel's read of an
 * fs-verity file it gives the good bytes before a bad block, and -EBADMSG
 * when the block at @pos itself is bad.  A count below @len means the file's
 * end (verity_file_size()), or that the next byte can not be had and the next
 * call says why; a caller that reads on until 0 can not mistake one for the
 * other.
 *
 * Return: a count, 0 at the end of the file, -EBADMSG, -ENOMEM, or what
 * pread(2) gave.  A data file or tree that is too short is -EBADMSG.
 */
VERITY_API VERITY_MUST_CHECK ssize_t
verity_file_read(struct verity_file *f, void *buf, size_t len, uint64_t pos,
		 struct verity_mismatch *why);

/** verity_file_size() - Return: the size that the trusted digest fixes */
VERITY_API uint64_t verity_file_size(const struct verity_file *f);

/** verity_file_digest() - the digest that this file's reads lead to */
VERITY_API void verity_file_digest(const struct verity_file *f,
				   struct verity_digest *out);

/** verity_file_params() - how the file is cut and hashed */
VERITY_API void verity_file_params(const struct verity_file *f,
				   struct verity_params *out);

/** verity_file_close() - NULL is allowed; no read may still be running */
VERITY_API void verity_file_close(struct verity_file *f);

#ifdef __cplusplus
}
#endif

#endif /* VERITY_H */
