/* SPDX-License-Identifier: MIT */
/*
 * merkle/audit.h - find every bad block of a file and of its stored tree.
 *
 * Layer: merkle.  A reader stops at the first block that does not lead to the
 * root; an audit goes on and tells damage to data from damage to the tree.  A
 * hash block that fails is rebuilt from the blocks stored below it, and when
 * that does not lead to the root either, from the data alone: if one of them
 * does, only stored hash blocks were damaged.
 */
#ifndef MERKLE_AUDIT_H
#define MERKLE_AUDIT_H

#include "merkle/verify.h"

enum verity_damage {
	VERITY_BAD_DATA,   /* a data block with another hash */
	VERITY_BAD_TREE,   /* a stored hash block with another hash */
	VERITY_UNPROVEN,   /* data whose hash blocks are beyond repair */
	VERITY_MISSING,    /* a data block whose bytes are not there */
	VERITY_UNREADABLE, /* a data block that gives an I/O error */
};

struct verity_finding {
	enum verity_damage kind;
	unsigned int level;          /* 0 data; else of the hash block */
	uint64_t pos;                /* in the file, or from the tree's start */
	uint64_t len;                /* bytes */
	struct verity_mismatch what; /* digests; see its size */
};

/** Where an audit reads and reports.  Called from the audit's thread only. */
struct verity_audit {
	/** @data: @n blocks into @buf, the last zero-filled.
	 * Return: 0; -ENODATA when bytes are missing, -EIO; both are then
	 * asked for block by block; others end the audit. */
	int (*data)(void *arg, uint64_t index, size_t n, uint8_t *buf);

	/** @tree: one stored hash block.  Return: 0, or -ENODATA or -EIO, which
	 * count as damage; others end the audit. */
	int (*tree)(void *arg, unsigned int level, uint64_t index,
		    uint8_t *buf);

	/** @known: is all below this hash block known already to lead to
	 * @want, the trusted digest of the block?  The answer must rest on
	 * bytes that were hashed, not on what the storage said of them.  May
	 * be NULL.  Return: nonzero to step over it. */
	int (*known)(void *arg, unsigned int level, uint64_t index,
		     const uint8_t *want);

	/** @found: Return: 0 to go on, or an error that ends the audit. */
	int (*found)(void *arg, const struct verity_finding *f);
	void *arg;
};

/**
 * verity_audit_run() - check a file from the root down
 *
 * Return: 0 when the whole file was looked at, whatever was found; or a
 * negative errno.
 */
VERITY_MUST_CHECK int verity_audit_run(const struct verity_tree *t,
				       const struct verity_audit *a);

#endif /* MERKLE_AUDIT_H */
