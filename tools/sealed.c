/* SPDX-License-Identifier: MIT */
/* Sealed trees and their manifests.  Layer: tools. */
#include "tools/sealed.h"

#include "merkle/beneath.h"
#include "merkle/hash.h"
#include "tools/exits.h"
#include "tools/say.h"
#include "tools/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int check_pin(const char *where, const struct verity_digest *pin,
		     const struct verity_digest *got)
{
	char is[VERITY_DIGEST_TEXT], want[VERITY_DIGEST_TEXT];

	if (!pin || (pin->alg == got->alg &&
		     !memcmp(pin->bytes, got->bytes, sizeof(pin->bytes))))
		return 0;
	verity_digest_format(got, is);
	verity_digest_format(pin, want);
	say_error("%s: is not the pinned manifest: its pin is %s, wanted %s",
		  where, is, want);
	return -EBADMSG;
}

static int parse(const char *where, const char *text, size_t len,
		 struct verity_manifest *m)
{
	struct verity_manifest_error why = { 0 };
	int err = verity_manifest_parse(text, len, m, &why);

	if (err == -EINVAL)
		say_error("%s:%zu: %s", where, why.line, why.what);
	else if (err)
		say_errno(err, "%s", where);
	return err;
}

int manifest_load(int dir, const char *name, const char *where,
		  const struct verity_digest *pin, struct verity_manifest *m,
		  struct verity_digest *got)
{
	struct verity_digest d;
	char *text = NULL;
	size_t len = 0;
	int err = verity_sealed_read(dir, name, &text, &len, &d);

	if (err == -ENOENT)
		return err;
	if (err == -EINVAL)
		say_error("%s: is not a regular file", where);
	else if (err)
		say_errno(err, "%s: %s", where,
			  err == -EFBIG || err == -EIO ? "read" : "open");
	if (err)
		return err;
	err = check_pin(where, pin, &d);
	if (!err)
		err = parse(where, text, len, m);
	if (!err)
		*got = d;
	free(text);
	return err;
}

int manifest_head(int dir, const char *name, struct verity_manifest_head *out)
{
	struct verity_manifest m;
	char text[1024];
	int fd = verity_open_beneath(dir, name, O_RDONLY), err;
	const char *end;
	ssize_t n;

	if (fd < 0)
		return fd;
	n = verity_pread_full(fd, text, sizeof(text) - 1, 0);
	close(fd);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	end = strstr(text, "\n\n");
	if (!end)
		return -EINVAL;
	/* A manifest that lists nothing ends with its head. */
	err = verity_manifest_parse(text, (size_t)(end - text) + 2, &m, NULL);
	if (err)
		return err;
	*out = m.head;
	verity_manifest_free(&m);
	return 0;
}

static int open_dirs(struct sealed *s, const char *root, const char *meta)
{
	const char *folder = meta ? meta : VERITY_FOLDER;
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

	if (asprintf(&s->where, "%s%s%s/" SEALED_MANIFEST, meta ? "" : root,
		     meta ? "" : "/", folder) < 0) {
		s->where = NULL;
		return say_errno(-ENOMEM, "%s", root);
	}
	s->root = open(root, flags);
	if (s->root < 0)
		return say_errno(-errno, "%s: open directory", root);
	s->meta = meta ? open(meta, flags)
		       : openat(s->root, folder, flags | O_NOFOLLOW);
	if (s->meta < 0 && errno == ENOENT && !meta) {
		say_error("%s: is not sealed: it has no %s (verityctl seal %s)",
			  root, s->where, root);
		return -ENOENT;
	}
	if (s->meta < 0)
		return say_errno(-errno, "%s: open directory",
				 meta ? meta : s->where);
	return 0;
}

int sealed_open(struct sealed *s, const char *root, const char *meta,
		const struct verity_digest *pin)
{
	int err;

	*s = (struct sealed)SEALED_INIT;
	err = open_dirs(s, root, meta);
	if (err)
		return EXIT_IO;
	err = manifest_load(s->meta, SEALED_MANIFEST, s->where, pin, &s->m,
			    &s->pin);
	if (err == -ENOENT)
		say_error("%s: there is no manifest (verityctl seal %s)",
			  s->where, root);
	s->pinned = pin && !err;
	return !err ? EXIT_OK : err == -EBADMSG ? EXIT_TRUST : EXIT_IO;
}

/* Return: whether @dir/.verity/manifest is there */
static bool has_manifest(const char *dir)
{
	struct stat st;
	char *path;
	bool yes;

	if (asprintf(&path, "%s/" VERITY_FOLDER "/" SEALED_MANIFEST, dir) < 0)
		return false;
	yes = stat(path, &st) == 0 && S_ISREG(st.st_mode);
	free(path);
	return yes;
}

char *sealed_resolve(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *up =
		slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	char *real = up ? realpath(up, NULL) : NULL, *full = NULL;

	if (real && asprintf(&full, "%s/%s", strcmp(real, "/") ? real : "",
			     slash ? slash + 1 : path) < 0)
		full = NULL;
	free(real);
	free(up);
	return full;
}

/* What was cut off on the way up is whole again. */
static void restore(char *from, const char *end)
{
	for (char *p = from + strlen(from); p < end; p += strlen(p))
		*p = '/';
}

/* The last chance: the whole system is sealed.  Takes @full over. */
static bool find_at_top(char *full, const char *end, char **root, char **inside)
{
	size_t n = full ? (size_t)(end - full) : 0;
	char *both = full && has_manifest("") ? malloc(n + 2) : NULL;

	if (both) {
		restore(full + 1, end);
		both[0] = '/';
		both[1] = '\0';
		memcpy(both + 2, full + 1, n);
		*root = both;
		*inside = both + 2;
	}
	free(full);
	return both;
}

bool sealed_find_root(const char *path, char **root, char **inside)
{
	char *full = sealed_resolve(path), *cut;
	const char *end = full ? full + strlen(full) : NULL;

	for (cut = full ? strrchr(full, '/') : NULL; cut > full;
	     cut = strrchr(full, '/')) {
		*cut = '\0';
		if (!has_manifest(full))
			continue;
		*root = full;
		*inside = cut + 1;
		restore(*inside, end);
		return true;
	}
	return find_at_top(full, end, root, inside);
}

void sealed_digest(const struct sealed *s, const struct verity_entry *e,
		   struct verity_digest *out)
{
	memset(out, 0, sizeof(*out));
	out->alg = s->m.head.params.alg;
	out->size = verity_digest_size(out->alg);
	memcpy(out->bytes, e->digest, out->size);
}

int sealed_meta_open(const struct sealed *s, const struct verity_entry *e,
		     struct verity_meta *meta, struct verity_complaint *why)
{
	struct verity_digest want;

	sealed_digest(s, e, &want);
	return verity_sealed_meta(s->meta, e->path, &want, false, meta, why);
}

void sealed_say_meta(const char *path, int err,
		     const struct verity_complaint *why)
{
	char *name = NULL;

	if (err == -ENODATA) {
		say_error("%s: the manifest lists it, but its sidecar is "
			  "missing",
			  path);
	} else if (err == -EBADMSG) {
		say_error("%s: its sidecar is of another digest than the "
			  "manifest's",
			  path);
	} else if (why->field) {
		if (asprintf(&name, "%s: sidecar", path) >= 0)
			say_complaint(name, why);
		free(name);
	} else {
		say_errno(err, "%s: sidecar", path);
	}
}

bool sealed_expired(const struct sealed *s)
{
	time_t end = (time_t)s->m.head.expires;
	char text[VERITY_TIME_TEXT];

	if (!end || end > time(NULL))
		return false;
	verity_time_format(s->m.head.expires, text);
	say_error("%s: expired at %s", s->where, text);
	return true;
}

void sealed_close(struct sealed *s)
{
	verity_manifest_free(&s->m);
	free(s->where);
	if (s->meta >= 0)
		close(s->meta);
	if (s->root >= 0)
		close(s->root);
	*s = (struct sealed)SEALED_INIT;
}
