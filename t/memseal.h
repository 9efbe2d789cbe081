/* SPDX-License-Identifier: MIT */
/*
 * t/memseal.h - seal bytes in memory, for tests of what reads them back.
 */
#ifndef T_MEMSEAL_H
#define T_MEMSEAL_H

#include "merkle/verify.h"

/** What is to be sealed, where its tree goes, and what came of it. */
struct memseal {
	struct verity_params p;
	const uint8_t *data;
	size_t size;
	uint8_t *tree; /* root level first */
	size_t room;   /* bytes there */
	size_t stride; /* from one hash block to the next; a block or more */

	struct verity_digest digest;
	uint8_t raw[VERITY_DESC_SIZE]; /* the descriptor */
};

/** memseal() - fill in tree, digest and raw; bails when it cannot */
void memseal(struct memseal *m);

/** memseal_tree() - what verity_verify() wants of it; to be given to
 * verity_tree_fini() */
void memseal_tree(const struct memseal *m, struct verity_tree *t);

#endif /* T_MEMSEAL_H */
