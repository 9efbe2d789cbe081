/* SPDX-License-Identifier: MIT */
/* tools/sidecar.h - write a file's sidecar while the file is hashed.
 * Layer: tools. */
#ifndef TOOLS_SIDECAR_H
#define TOOLS_SIDECAR_H

#include "merkle/meta.h"
#include "tools/hashfile.h"
#include "tools/store.h"

#include <stdbool.h>

/** The sidecar that is there already.  Begin with a zeroed struct. */
struct old_sidecar {
	bool sound;              /* there, and well-formed */
	struct verity_meta meta; /* when sound */
	uint8_t *sig;            /* its signature, owned; or NULL */
};

/** old_sidecar_load() - look at it; one that is missing or malformed leaves
 * @o not sound.  Return: 0 or -ENOMEM. */
int old_sidecar_load(struct old_sidecar *o, int dir, const char *path);

void old_sidecar_free(struct old_sidecar *o);

/** old_sidecar_is() - Return: whether it is sound and of that digest */
bool old_sidecar_is(const struct old_sidecar *o,
		    const struct verity_digest *digest);

/**
 * sidecar_write() - hash a file and write its sidecar, not yet named
 * @dir: for store_begin(); commit or abort @s afterwards
 * @h: what to hash; its emit function is not used
 * @old: its signature is taken over when the digest is still the same
 *
 * Return: 0, or what hashfile_run() and the file system gave; then there is
 * nothing to abort.
 */
int sidecar_write(struct store *s, int dir, const struct hashfile *h,
		  const struct old_sidecar *old, struct verity_meta *meta);

#endif /* TOOLS_SIDECAR_H */
