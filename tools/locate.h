/* SPDX-License-Identifier: MIT */
/*
 * tools/locate.h - where the trust in one named file comes from.
 *
 * Layer: tools.  Either a sidecar of its own, beside it or under --meta; or
 * the manifest of the sealed tree around it, or of the one --root names.
 */
#ifndef TOOLS_LOCATE_H
#define TOOLS_LOCATE_H

#include "tools/opts.h"
#include "tools/sealed.h"

/** What the user said of it; NULL and not set where nothing. */
struct locate_opts {
	const char *meta; /* a directory */
	const char *root;
	struct digest_opt pin, digest;
};

struct located {
	char *meta_path; /* the sidecar's, when it has one of its own; owned */
	struct sealed s; /* else the tree; owned */
	const struct verity_entry *e; /* and the file's entry in it */
	bool pinned;                  /* by --pin or --digest */
};

/**
 * locate() - find the sidecar or the manifest
 *
 * A manifest is read, its pin and its lifetime checked, and --digest compared
 * with the entry's.  A sidecar is only named: whoever opens it checks it.
 *
 * Return: an exit status; other than EXIT_OK after a message.
 */
int locate(const char *path, const struct locate_opts *o, struct located *out);

/** locate_digest() - Return: the digest a sidecar must have, or NULL */
const struct verity_digest *locate_digest(const struct locate_opts *o);

/** locate_trust() - Return: "pinned", or the warning that goes with "self" */
const char *locate_trust(bool pinned);

/** located_free() - also after a failure */
void located_free(struct located *l);

#endif /* TOOLS_LOCATE_H */
