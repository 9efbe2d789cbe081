/* SPDX-License-Identifier: MIT */
/* Sidecar or manifest.  Layer: tools. */
#include "tools/locate.h"

#include "tools/exits.h"
#include "tools/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct verity_digest *locate_digest(const struct locate_opts *o)
{
	if (o->digest.set)
		return &o->digest.digest;
	return o->pin.set ? &o->pin.digest : NULL;
}

const char *locate_trust(bool pinned)
{
	return pinned ? "pinned" : "self: finds rot, not attack";
}

static char *sidecar_path(const char *path, const char *meta)
{
	const char *base = strrchr(path, '/');
	char *out;
	int n;

	base = base ? base + 1 : path;
	n = meta ? asprintf(&out, "%s/%s" VERITY_META_SUFFIX, meta, base)
		 : asprintf(&out, "%s" VERITY_META_SUFFIX, path);
	return n < 0 ? NULL : out;
}

static int check_entry_digest(const char *path, const struct locate_opts *o,
			      const struct located *l)
{
	char is[VERITY_DIGEST_TEXT], want[VERITY_DIGEST_TEXT];
	struct verity_digest d;

	sealed_digest(&l->s, l->e, &d);
	if (!o->digest.set || verity_digest_equal(&d, &o->digest.digest))
		return EXIT_OK;
	verity_digest_format(&d, is);
	verity_digest_format(&o->digest.digest, want);
	say_error("%s: %s gives its digest as %s, trusted is %s", path,
		  l->s.where, is, want);
	return EXIT_TRUST;
}

static int find_entry(const char *path, const struct locate_opts *o,
		      const char *root, const char *inside, struct located *l)
{
	int status = sealed_open(&l->s, root, o->meta,
				 o->pin.set ? &o->pin.digest : NULL);

	if (status)
		return status;
	if (sealed_expired(&l->s))
		return EXIT_TRUST;
	l->e = verity_manifest_find(&l->s.m, inside);
	if (l->e && l->e->kind == VERITY_SYMLINK) {
		say_error("%s: is a symlink in %s, to %s: name that", path,
			  l->s.where, l->e->target);
		return EXIT_TRUST;
	}
	if (!l->e || l->e->kind != VERITY_FILE) {
		say_error("%s: %s lists no such file", path, l->s.where);
		return EXIT_TRUST;
	}
	return check_entry_digest(path, o, l);
}

/* The path of @path below --root, both resolved but for the last component,
 * which may be a symlink that the manifest knows.  To be freed. */
static char *below_root(const char *path, const char *root)
{
	char *real = realpath(root, NULL), *full = sealed_resolve(path);
	/* "/" itself ends with the slash that others have after them. */
	size_t n = real && strcmp(real, "/") != 0 ? strlen(real) : 0;
	char *inside = NULL;

	if (real && full && !strncmp(full, real, n) && full[n] == '/')
		inside = strdup(full + n + 1);
	free(real);
	free(full);
	return inside;
}

static int locate_below(const char *path, const struct locate_opts *o,
			struct located *l)
{
	char *inside = below_root(path, o->root);
	int status;

	if (!inside) {
		say_error("%s: is not below --root %s", path, o->root);
		return EXIT_USAGE;
	}
	status = find_entry(path, o, o->root, inside, l);
	free(inside);
	return status;
}

static bool has_manifest(const char *meta)
{
	struct verity_manifest_head head;
	int dir = open(meta, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;

	if (dir < 0)
		return false;
	err = manifest_head(dir, SEALED_MANIFEST, &head);
	close(dir);
	return !err;
}

static int locate_around(const char *path, const struct locate_opts *o,
			 const char *sidecar, struct located *l)
{
	char *root, *inside;
	int status;

	if (o->meta && has_manifest(o->meta)) {
		say_error("%s: there is no %s; %s has the metadata of a tree "
			  "(name it with --root)",
			  path, sidecar, o->meta);
		return EXIT_IO;
	}
	if (o->meta || !sealed_find_root(path, &root, &inside)) {
		say_error("%s: is not sealed: there is no %s (verityctl seal "
			  "%s)",
			  path, sidecar, path);
		return EXIT_IO;
	}
	status = find_entry(path, o, root, inside, l);
	free(root);
	return status;
}

/* With a sidecar both options mean the same. */
static int check_options(const struct locate_opts *o)
{
	if (!o->pin.set || !o->digest.set ||
	    verity_digest_equal(&o->pin.digest, &o->digest.digest))
		return EXIT_OK;
	say_error("--pin and --digest: differ, must be the same for a file "
		  "with a sidecar");
	return EXIT_USAGE;
}

int locate(const char *path, const struct locate_opts *o, struct located *l)
{
	char *sidecar;
	int status;

	*l = (struct located){ .s = SEALED_INIT };
	l->pinned = o->pin.set || o->digest.set;
	if (o->root)
		return locate_below(path, o, l);
	sidecar = sidecar_path(path, o->meta);
	if (!sidecar) {
		say_errno(-ENOMEM, "%s", path);
		return EXIT_IO;
	}
	if (access(sidecar, F_OK) == 0) {
		l->meta_path = sidecar;
		return check_options(o);
	}
	status = locate_around(path, o, sidecar, l);
	free(sidecar);
	return status;
}

void located_free(struct located *l)
{
	free(l->meta_path);
	l->meta_path = NULL;
	sealed_close(&l->s);
}
