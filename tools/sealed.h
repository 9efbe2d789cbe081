/* SPDX-License-Identifier: MIT */
/*
 * tools/sealed.h - a sealed tree: its manifest, and how far it is trusted.
 *
 * Layer: tools.  The manifest is read once into memory; its pin is that of
 * exactly the bytes that are parsed.
 */
#ifndef TOOLS_SEALED_H
#define TOOLS_SEALED_H

#include "merkle/sealed.h"

#include <stdbool.h>

struct sealed {
	int root; /* descriptors of the tree and of the metadata; owned */
	int meta;
	char *where; /* the manifest's path, for messages; owned */
	struct verity_manifest m;
	struct verity_digest pin; /* plain SHA-256 of the manifest's bytes */
	bool pinned;              /* it is the one the user gave */
};
#define SEALED_INIT                                                            \
	{                                                                      \
		.root = -1, .meta = -1                                         \
	}

/**
 * manifest_load() - read and parse a manifest below @dir
 * @name: SEALED_MANIFEST or SEALED_PARTIAL
 * @where: for messages
 * @pin: to compare with before anything is parsed; NULL: take any
 *
 * Return: 0; -ENOENT without a message when there is none; or, after a
 * message, -EBADMSG for another pin, -EINVAL for one malformed, or an errno.
 */
int manifest_load(int dir, const char *name, const char *where,
		  const struct verity_digest *pin, struct verity_manifest *m,
		  struct verity_digest *got);

/**
 * manifest_head() - the head alone of the manifest below @dir
 *
 * Return: 0, or an errno without a message.
 */
int manifest_head(int dir, const char *name, struct verity_manifest_head *out);

/**
 * sealed_open() - open a sealed tree
 * @root: its directory
 * @meta: the directory of its metadata, or NULL for VERITY_FOLDER in it
 * @pin: or NULL
 *
 * Return: an exit status; other than EXIT_OK after a message.
 */
int sealed_open(struct sealed *s, const char *root, const char *meta,
		const struct verity_digest *pin);

/**
 * sealed_find_root() - is @path in a sealed tree
 * @root: set to the nearest directory above with a manifest; to be freed
 * @inside: set to the path below it; points into @path's resolved form,
 *   freed with @root
 *
 * Return: true when it is.
 */
bool sealed_find_root(const char *path, char **root, char **inside);

/** sealed_resolve() - Return: the absolute path, to be freed, or NULL; its
 * directory resolved, its last component not: that may be a symlink, which
 * the manifest knows */
char *sealed_resolve(const char *path);

/** sealed_expired() - has the manifest run out; a message says so */
bool sealed_expired(const struct sealed *s);

/** sealed_digest() - the trusted digest of a file's entry */
void sealed_digest(const struct sealed *s, const struct verity_entry *e,
		   struct verity_digest *out);

/**
 * sealed_meta_open() - open the sidecar of an entry that has one
 *
 * That in SEALED_META, or, when it is not the entry's, the one in SEALED_NEXT.
 *
 * Return: a descriptor; -ENODATA when there is none, -EBADMSG when there are
 * only others', -EINVAL and the like with @why for one malformed, or an errno.
 */
int sealed_meta_open(const struct sealed *s, const struct verity_entry *e,
		     struct verity_meta *meta, struct verity_complaint *why);

/** sealed_say_meta() - why sealed_meta_open() failed for the file @path */
void sealed_say_meta(const char *path, int err,
		     const struct verity_complaint *why);

/** sealed_close() - also of a struct that was only initialised */
void sealed_close(struct sealed *s);

#endif /* TOOLS_SEALED_H */
