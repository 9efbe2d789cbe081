/* SPDX-License-Identifier: MIT */
/*
 * tools/seal.h - private to verityctl seal: one file, or a tree.
 *
 * Layer: tools.  The order in which a tree is sealed:
 *
 *   list        the names; directories are looked at again at the end
 *   hash        meanwhile, every file: small ones in batches over files,
 *               large ones in parts; sidecars are written, each whole or not
 *               at all.  One that would take the place of a sound one, be it
 *               of the same digest, goes to next/, so that the old manifest
 *               stays right whatever happens
 *   sync        one syncfs, its error checked
 *   manifest    fsync, rename, fsync of the directory: from here on the new
 *               state is valid, before it the old one was
 *   settle      next/ is moved into meta/, sidecars that no entry has are
 *               removed; the next run does it if this one is killed here
 */
#ifndef TOOLS_SEAL_H
#define TOOLS_SEAL_H

#include "merkle/hash.h"
#include "tools/opts.h"
#include "tools/sealed.h"
#include "tools/spread.h"
#include "tools/walk.h"

#include <stdatomic.h>

/** What the user said. */
struct seal_opts {
	uint32_t alg, block_size;
	struct salt_opt salt;
	const char *meta;
	struct digest_opt pin;
	bool dry_run, resume, sha256, json, quiet;
	unsigned int jobs;
	int64_t created; /* the time that manifests get */
};

/** Counts of one run; any thread adds, relaxed: they order nothing. */
struct seal_counts {
	_Atomic(uint64_t) reused, sidecar_bytes, stat_only, failed;
};

/* I: set before hashing, then read-only.  A: atomic.  W: by the one worker
 * that has the item. */
struct seal {
	const struct seal_opts *o;        /* I */
	const char *root_path;            /* I */
	int root, meta;                   /* I: owned */
	char *where;                      /* I: the manifest's path; owned */
	struct listing list;              /* W: each item */
	struct verity_manifest_head head; /* I */
	struct verity_manifest old;       /* I: entries that may be reused */
	bool trusted;                     /* I: old was pinned by the user */
	struct verity_hasher block;       /* I: of data blocks */
	struct verity_hasher desc;        /* I: of descriptors */
	struct batch *batch[SPREAD_MAX];  /* W: by worker */
	struct seal_counts n;             /* A */
	_Atomic(const char *) stat_only_path; /* A: one that had no lease */
	atomic_int stat_only_why;             /* A */
};

/** seal_list() - list the tree; Return: 0 or a negative errno after a message
 */
int seal_list(struct seal *s);

/** seal_hash() - list the tree and hash all files meanwhile; Return: 0,
 * -EINTR, or a negative errno after messages, one for each file that failed */
int seal_hash(struct seal *s);

/** seal_hash_fini() - free what hashing kept */
void seal_hash_fini(struct seal *s);

/** seal_commit() - make the new state the valid one; Return: as above, and
 * then the old one is */
int seal_commit(struct seal *s, struct verity_digest *pin);

/** seal_finish() - after it: make that durable, and remove what is old;
 * Return: as above, but the new state stays the valid one */
int seal_finish(struct seal *s);

/**
 * seal_settle() - move or remove what a killed run left in next/
 * @valid: the manifest in place; NULL: there is none, and none of its sidecars
 *   is needed
 * @resumed: that of the run that is gone on with, whose sidecars stay; or NULL
 *
 * Return: 0 or a negative errno, after a message; then what could not be
 * looked at is still there.
 */
int seal_settle(int meta, const struct verity_manifest *valid,
		const struct verity_manifest *resumed);

/** seal_save_partial() - keep what an interrupted run has done, for --resume;
 * Return: 0 or a negative errno, and there is nothing to resume */
int seal_save_partial(struct seal *s, struct verity_digest *pin);

/** seal_tree(), seal_file() - Return: an exit status */
int seal_tree(const char *path, const struct seal_opts *o);
int seal_file(const char *path, const struct seal_opts *o);

/** seal_interrupted() - Return: the exit status after a signal */
int seal_interrupted(void);

#endif /* TOOLS_SEAL_H */
