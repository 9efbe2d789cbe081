/* SPDX-License-Identifier: MIT */
/* tools/walk.h - list a directory tree as a manifest will hold it.
 * Layer: tools. */
#ifndef TOOLS_WALK_H
#define TOOLS_WALK_H

#include "merkle/manifest.h"
#include "tools/arena.h"

#include <stdbool.h>
#include <sys/stat.h>

/** The folder that holds a sealed tree's metadata; never content itself. */
#define VERITY_FOLDER ".verity"

enum item_state { ITEM_TODO, ITEM_LARGE, ITEM_DONE, ITEM_FAILED };

struct item {
	struct verity_entry e; /* path and target in the listing's arena */
	enum item_state state; /* of a file; one worker at a time */
	struct stat *st;       /* of a directory, before it was listed; in the
				* listing's arena */
};

/** Items are found and handed on in blocks, which never move. */
#define LISTING_BLOCK 16

struct item_block {
	struct item_block *next;
	size_t n;
	struct item item[LISTING_BLOCK];
};

struct listing {
	bool all; /* set before the walk: metadata is listed too */
	/** @ready: set before the walk, or NULL: called with each block as
	 * soon as no more is put into it, from the thread that walks.
	 * Return: 0, or an error that ends the walk. */
	int (*ready)(void *arg, struct item_block *b);
	void *ready_arg;

	struct item **v; /* after the walk: sorted by path */
	size_t n;
	struct item_block *first, *last; /* in the arena */
	struct arena arena;
	struct stat root; /* the root itself, before it was listed */
	size_t metadata;  /* names left out as such; not the root's .verity */
	const char *one_metadata; /* the path of one of these; or NULL */
	size_t special;           /* FIFOs, sockets, devices: left out */
	const char *one_special;  /* the path of one of these; or NULL */
};

/**
 * listing_walk() - list everything below @root
 * @skip: a directory to leave out wherever it is met (the metadata's own);
 *   may be NULL
 *
 * Names that end in .fsv_meta or begin with the prefix of temporary files, and
 * whatever is named .verity, are metadata and are left out, counted.
 *
 * Return: 0, or a negative errno after a message that names the path, or what
 * ready() gave.  What was found is in the listing either way.
 */
int listing_walk(struct listing *l, int root, const struct stat *skip);

/** listing_check_dirs() - was a directory changed since it was listed
 *
 * Return: 0, or -ESTALE after a message for each that was. */
int listing_check_dirs(const struct listing *l, int root);

void listing_free(struct listing *l);

#endif /* TOOLS_WALK_H */
