/* SPDX-License-Identifier: MIT */
/*
 * merkle/manifest.h - the trusted map of a sealed tree.
 *
 * Layer: merkle.  A text file: what exists, under which digest, and every
 * attribute that is shown for it.  There is one way to write a given content,
 * and the reader refuses any other, so equal trees have equal manifests:
 *
 *   verity-manifest 1
 *   serial 3
 *   created 2026-01-31T12:00:00Z
 *   expires 2027-01-31T12:00:00Z        (may be left out)
 *   algorithm sha256
 *   block-size 4096
 *   salt 00ff                           (left out when there is none)
 *                                       (one empty line)
 *   dir bin
 *   sha256:HEX bin/tool                 (as `fsverity digest` prints it)
 *   <TAB>size 70000
 *   <TAB>exec                           (only for executables)
 *   <TAB>sha256 HEX                     (plain hash of the bytes; optional)
 *   <TAB>mtime 1769860800.000000000     (optional)
 *   symlink tool
 *   <TAB>target bin/tool
 *
 * Paths are relative, bytes with \n \r \t and \\ escaped, sorted as unescaped
 * bytes, unique, each under a dir entry of its own.  The file ends with a
 * newline.  Its pin is the plain SHA-256 of its bytes.
 */
#ifndef MERKLE_MANIFEST_H
#define MERKLE_MANIFEST_H

#include "merkle/text.h"

#include <stdbool.h>

#define VERITY_MANIFEST_MAX ((size_t)1 << 30) /* bytes */
#define VERITY_PATH_MAX     4095              /* bytes of a path in it */
#define VERITY_NAME_MAX     255               /* bytes of a component */

enum verity_kind { VERITY_FILE, VERITY_DIR, VERITY_SYMLINK };

struct verity_entry {
	enum verity_kind kind;
	const char *path;
	const char *target;                /* symlink only */
	uint8_t digest[VERITY_MAX_DIGEST]; /* file only, and all below */
	uint8_t sha256[32];
	uint64_t size;
	int64_t mtime_s; /* since the epoch; may be negative */
	uint32_t mtime_ns;
	bool exec, has_sha256, has_mtime;
};

struct verity_manifest_head {
	uint64_t serial;
	int64_t created; /* seconds since the epoch, UTC */
	int64_t expires; /* 0: never */
	struct verity_params params;
};

struct verity_manifest {
	struct verity_manifest_head head;
	struct verity_entry *entry; /* sorted by path */
	size_t count;
	char *text; /* owned; the strings of the entries point into it */
};

/** Which line of a manifest was refused, from 1, and why; static text. */
struct verity_manifest_error {
	size_t line;
	const char *what;
};

/**
 * verity_manifest_parse() - read a manifest
 * @text: @len bytes; copied
 * @out: the caller's, for verity_manifest_free()
 *
 * Parse exactly the bytes whose pin or signature was checked.
 *
 * Return: 0, -EINVAL with @why, -EFBIG beyond VERITY_MANIFEST_MAX, -ENOMEM.
 */
VERITY_MUST_CHECK int verity_manifest_parse(const char *text, size_t len,
					    struct verity_manifest *out,
					    struct verity_manifest_error *why);

/** verity_manifest_free() - a zeroed struct is allowed */
void verity_manifest_free(struct verity_manifest *m);

/** verity_manifest_find() - Return: the entry of @path, or NULL */
const struct verity_entry *verity_manifest_find(const struct verity_manifest *m,
						const char *path);

/** verity_manifest_put_head() - write the head and the empty line after it */
void verity_manifest_put_head(struct verity_text *t,
			      const struct verity_manifest_head *h);

/** verity_manifest_put_entry() - write one entry; call in path order */
void verity_manifest_put_entry(struct verity_text *t,
			       const struct verity_manifest_head *h,
			       const struct verity_entry *e);

/** verity_time_format() - write a time as the manifest spells it, in UTC;
 * @out has VERITY_TIME_TEXT bytes */
#define VERITY_TIME_TEXT 64
void verity_time_format(int64_t when, char *out);

/** verity_path_ok() - Return: NULL, or what is wrong with a relative path */
const char *verity_path_ok(const char *path);

#endif /* MERKLE_MANIFEST_H */
