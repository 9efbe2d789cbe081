/* SPDX-License-Identifier: MIT */
/* tools/walk.h - list a directory tree as a manifest will hold it.
 * Layer: tools. */
#ifndef TOOLS_WALK_H
#define TOOLS_WALK_H

#include "merkle/manifest.h"

#include <stdbool.h>
#include <sys/stat.h>

/** The folder that holds a sealed tree's metadata; never content itself. */
#define VERITY_FOLDER ".verity"

enum item_state { ITEM_TODO, ITEM_LARGE, ITEM_DONE, ITEM_FAILED };

struct item {
	struct verity_entry e; /* path and target owned by the tree */
	enum item_state state; /* of a file; one worker at a time */
	struct stat *st;       /* of a directory, before it was listed; owned by
			  * the tree */
};

struct tree {
	bool all;       /* set before the walk: metadata is listed too */
	struct item *v; /* sorted by path */
	size_t n;
	size_t room;
	struct stat root;  /* the root itself, before it was listed */
	size_t metadata;   /* names left out as metadata: *.fsv_meta, .verity */
	size_t special;    /* FIFOs, sockets, devices: left out */
	char *one_special; /* the path of one of these, owned; or NULL */
};

/**
 * tree_walk() - list everything below @root
 * @skip: a directory to leave out wherever it is met (the metadata's own);
 *   may be NULL
 *
 * Names that end in .fsv_meta or begin with the prefix of temporary files,
 * and folders named .verity, are metadata and are left out, counted.
 *
 * Return: 0, or a negative errno after a message that names the path.
 */
int tree_walk(struct tree *t, int root, const struct stat *skip);

/** tree_check_dirs() - was a directory changed since it was listed
 *
 * Return: 0, or -ESTALE after a message for each that was. */
int tree_check_dirs(const struct tree *t, int root);

void tree_free(struct tree *t);

#endif /* TOOLS_WALK_H */
