/* SPDX-License-Identifier: MIT */
/* tools/arena.h - many small pieces of memory that are freed together.
 * Layer: tools. */
#ifndef TOOLS_ARENA_H
#define TOOLS_ARENA_H

#include <stddef.h>

/** Begin with a zeroed struct. */
struct arena {
	struct arena_block *blocks; /* owned, newest first */
	char *at;                   /* free room in the newest */
	size_t left;                /* bytes of it */
};

/** arena_alloc() - Return: @n bytes, aligned for anything, or NULL */
void *arena_alloc(struct arena *a, size_t n);

/** arena_text() - Return: @n bytes without alignment, or NULL */
char *arena_text(struct arena *a, size_t n);

/** arena_free() - all of it; the struct is zeroed */
void arena_free(struct arena *a);

#endif /* TOOLS_ARENA_H */
