/* SPDX-License-Identifier: MIT */
/* Memory that is freed together.  Layer: tools. */
#include "tools/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 65536, ALIGN = _Alignof(max_align_t) };

struct arena_block {
	struct arena_block *next;
	_Alignas(ALIGN) char bytes[];
};

/* A new block; what is left of the last one is not used any more. */
static int more(struct arena *a, size_t least)
{
	size_t room = least > BLOCK_BYTES ? least : BLOCK_BYTES;
	struct arena_block *b = malloc(sizeof(*b) + room);

	if (!b)
		return -1;
	b->next = a->blocks;
	a->blocks = b;
	a->at = b->bytes;
	a->left = room;
	return 0;
}

char *arena_text(struct arena *a, size_t n)
{
	char *p;

	if (n > a->left && more(a, n))
		return NULL;
	p = a->at;
	a->at += n;
	a->left -= n;
	return p;
}

void *arena_alloc(struct arena *a, size_t n)
{
	size_t skip = -(uintptr_t)a->at % ALIGN;

	if (skip + n <= a->left) {
		a->at += skip;
		a->left -= skip;
	} else if (more(a, n)) {
		return NULL;
	}
	return arena_text(a, n);
}

void arena_free(struct arena *a)
{
	struct arena_block *next;

	for (struct arena_block *b = a->blocks; b; b = next) {
		next = b->next;
		free(b);
	}
	memset(a, 0, sizeof(*a));
}
