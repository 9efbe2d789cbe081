/* SPDX-License-Identifier: MIT */
/* merkle/text.h - a growing byte buffer, and escaped paths in it.
 * Layer: merkle. */
#ifndef MERKLE_TEXT_H
#define MERKLE_TEXT_H

#include "merkle/verity.h"

/** Begin with a zeroed struct.  After a failed call err stays set, and later
 * calls do nothing: check it once, at the end. */
struct verity_text {
	char *s; /* owned; len bytes, then a NUL */
	size_t len;
	size_t room;
	int err; /* 0 or -ENOMEM */
};

void verity_text_put(struct verity_text *t, const char *bytes, size_t n);
void verity_text_printf(struct verity_text *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/** verity_text_path() - add a path with \n, \r, \t and \\ escaped */
void verity_text_path(struct verity_text *t, const char *path);

/** verity_text_clear() - forget the contents, keep the room */
void verity_text_clear(struct verity_text *t);

/** verity_text_free() - free and zero; NULL contents are allowed */
void verity_text_free(struct verity_text *t);

/**
 * verity_unescape() - undo verity_text_path() in place
 *
 * Return: 0, or -EINVAL for a backslash that begins none of the four, or a
 * raw character that should have been escaped: there is one way to write a
 * path, and only that one is read.
 */
VERITY_MUST_CHECK int verity_unescape(char *s);

#endif /* MERKLE_TEXT_H */
