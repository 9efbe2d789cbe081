/* SPDX-License-Identifier: MIT */
/*
 * tools/inspect.h - private to verityctl inspect: one reader a format.
 *
 * Layer: tools.  Files are untrusted: a reader bounds every field before it
 * uses it, and refuses with the field, its value and the limit.
 */
#ifndef TOOLS_INSPECT_H
#define TOOLS_INSPECT_H

#include "merkle/desc.h"
#include "merkle/geom.h"
#include "tools/report.h"
#include "tools/say.h"

#include <errno.h>

#define INSPECT_HEAD 512

/** The file that is looked at. */
struct subject {
	const char *path;
	int fd;
	uint64_t size;              /* of it */
	uint64_t apk_size;          /* --size, or 0 */
	uint8_t head[INSPECT_HEAD]; /* its first bytes */
	size_t head_len;            /* fewer when it is shorter */
};

/** One format.  show() - Return: 0, or a negative errno after a message. */
struct format {
	const char *id;   /* in JSON */
	const char *name; /* in text */
	bool (*is)(const struct subject *s);
	int (*show)(const struct subject *s, struct report *r);
};

extern const struct format inspect_meta, inspect_desc, inspect_idsig,
	inspect_dm, inspect_manifest;

/** inspect_refuse() - say that a field is malformed; Return: -EINVAL */
static inline int inspect_refuse(const struct subject *s, const char *field,
				 uint64_t value, const char *rule,
				 uint64_t limit)
{
	struct verity_complaint why = { field, rule, value, limit };

	say_complaint(s->path, &why);
	return -EINVAL; /* inline, so that checkers see: never 0 */
}

/** inspect_read() - @len bytes at @pos, all of them; says what fails */
int inspect_read(const struct subject *s, void *buf, size_t len, uint64_t pos);

/** inspect_params() - report how a file is cut and hashed */
void inspect_params(struct report *r, const struct verity_params *p);

/** inspect_levels() - report a tree's levels, root first, as they lie in a
 * file where the tree begins at @pos */
void inspect_levels(struct report *r, const struct verity_geom *g,
		    uint64_t pos);

/** inspect_cpu() - report CPU features and hash kernels; Return: 0 or an
 * errno of the output */
int inspect_cpu(struct report *r);

#endif /* TOOLS_INSPECT_H */
