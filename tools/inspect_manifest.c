/* SPDX-License-Identifier: MIT */
/* tools/inspect_manifest.c - show a manifest's head and what it counts.
 * Layer: tools. */
#include "merkle/manifest.h"

#include "merkle/hash.h"
#include "tools/inspect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "verity-manifest "

static bool is_manifest(const struct subject *s)
{
	return s->head_len >= strlen(MAGIC) &&
	       memcmp(s->head, MAGIC, strlen(MAGIC)) == 0;
}

static void show_time(struct report *r, const char *name, int64_t t)
{
	char text[VERITY_TIME_TEXT];

	verity_time_format(t, text);
	report_string(r, name, text);
}

static void show_entries(struct report *r, const struct verity_manifest *m)
{
	uint64_t count[3] = { 0 }, bytes = 0;

	for (size_t i = 0; i < m->count; i++) {
		count[m->entry[i].kind]++;
		if (m->entry[i].kind == VERITY_FILE)
			bytes += m->entry[i].size;
	}
	report_u64(r, "files", count[VERITY_FILE]);
	report_u64(r, "directories", count[VERITY_DIR]);
	report_u64(r, "symlinks", count[VERITY_SYMLINK]);
	report_u64(r, "bytes", bytes);
}

static void show_parsed(struct report *r, const struct verity_manifest *m)
{
	report_u64(r, "serial", m->head.serial);
	show_time(r, "created", m->head.created);
	if (m->head.expires)
		show_time(r, "expires", m->head.expires);
	inspect_params(r, &m->head.params);
	show_entries(r, m);
}

static int parse(const struct subject *s, const char *text, struct report *r)
{
	struct verity_digest pin = { .alg = VERITY_SHA256, .size = 32 };
	struct verity_manifest_error why = { 0 };
	struct verity_manifest m;
	int err = verity_hash_bytes(VERITY_SHA256, text, (size_t)s->size,
				    pin.bytes);

	if (!err)
		err = verity_manifest_parse(text, (size_t)s->size, &m, &why);
	if (err == -EINVAL) {
		say_error("%s:%zu: %s", s->path, why.line, why.what);
		return err;
	}
	if (err)
		return say_errno(err, "%s: cannot read", s->path);
	report_digest(r, "pin", &pin);
	show_parsed(r, &m);
	verity_manifest_free(&m);
	return 0;
}

static int show(const struct subject *s, struct report *r)
{
	char *text;
	int err;

	if (s->size > VERITY_MANIFEST_MAX)
		return inspect_refuse(s, "manifest size", s->size,
				      "must be at most", VERITY_MANIFEST_MAX);
	text = malloc((size_t)s->size + 1);
	if (!text)
		return say_errno(-ENOMEM, "%s: cannot read", s->path);
	err = inspect_read(s, text, (size_t)s->size, 0);
	if (!err)
		err = parse(s, text, r);
	free(text);
	return err;
}

const struct format inspect_manifest = { "manifest", "verity manifest",
					 is_manifest, show };
