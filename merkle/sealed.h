/* SPDX-License-Identifier: MIT */
/*
 * merkle/sealed.h - the metadata of a sealed tree, where seal leaves it.
 *
 * Layer: merkle.  One folder holds it all:
 *
 *   manifest              what the tree holds, and its pin's bytes
 *   meta/PATH.fsv_meta    the sidecars
 *   next/PATH.fsv_meta    those of a seal that is about to be made
 */
#ifndef MERKLE_SEALED_H
#define MERKLE_SEALED_H

#include "merkle/manifest.h"
#include "merkle/meta.h"

#include <stdbool.h>

/** Where things lie below the folder of metadata. */
#define SEALED_MANIFEST "manifest"
#define SEALED_PARTIAL  "partial" /* what an interrupted seal had done */
#define SEALED_META     "meta"
/* New sidecars of a path whose old one may still be in use wait here until the
 * manifest that names them is in place, and are moved then. */
#define SEALED_NEXT "next"

/**
 * verity_sealed_read() - read a manifest whole
 * @dir: the folder of metadata; @name: SEALED_MANIFEST
 * @text: to be freed; exactly these bytes are what @pin is the plain SHA-256 of
 *
 * Return: 0; -ENOENT; -EINVAL: not a regular file; -EFBIG; or an errno.
 */
VERITY_MUST_CHECK int verity_sealed_read(int dir, const char *name, char **text,
					 size_t *len,
					 struct verity_digest *pin);

/**
 * verity_sealed_meta() - open the sidecar of a file
 * @dir: the folder of metadata
 * @digest: the trusted one
 * @cached: only if no disk is needed: else -EAGAIN
 *
 * That in SEALED_META, or, when it is not the entry's, the one in SEALED_NEXT.
 *
 * Return: a descriptor; -ENODATA when there is none, -EBADMSG when there are
 * only others', -EINVAL and the like with @why for one malformed, or an errno.
 */
VERITY_MUST_CHECK int verity_sealed_meta(int dir, const char *path,
					 const struct verity_digest *digest,
					 bool cached, struct verity_meta *meta,
					 struct verity_complaint *why);

#endif /* MERKLE_SEALED_H */
