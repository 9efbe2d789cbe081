/* SPDX-License-Identifier: MIT */
/* Writing a manifest.  Layer: merkle. */
#include "merkle/manifest.h"

#include "merkle/hex.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

void verity_time_format(int64_t when, char *out)
{
	time_t secs = (time_t)when;
	struct tm tm;

	out[0] = '\0';
	if (gmtime_r(&secs, &tm))
		strftime(out, VERITY_TIME_TEXT, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void put_time(struct verity_text *t, const char *key, int64_t when)
{
	char buf[VERITY_TIME_TEXT];

	verity_time_format(when, buf);
	verity_text_printf(t, "%s %s\n", key, buf);
}

void verity_manifest_put_head(struct verity_text *t,
			      const struct verity_manifest_head *h)
{
	char salt[2 * VERITY_MAX_SALT + 1];

	verity_text_printf(t, "verity-manifest 1\nserial %" PRIu64 "\n",
			   h->serial);
	put_time(t, "created", h->created);
	if (h->expires)
		put_time(t, "expires", h->expires);
	verity_text_printf(t, "algorithm %s\nblock-size %u\n",
			   verity_alg_name(h->params.alg),
			   h->params.block_size);
	if (h->params.salt_size) {
		hex_encode(h->params.salt, h->params.salt_size, salt);
		verity_text_printf(t, "salt %s\n", salt);
	}
	verity_text_put(t, "\n", 1);
}

/* What every entry needs is put without printf: a large tree's manifest is
 * written in half the time. */
static void put_text(struct verity_text *t, const char *s)
{
	verity_text_put(t, s, strlen(s));
}

static void put_hex(struct verity_text *t, const uint8_t *bytes, size_t n)
{
	char hex[2 * VERITY_MAX_DIGEST + 1];

	hex_encode(bytes, n, hex);
	verity_text_put(t, hex, 2 * n);
}

/* At least @digits of them. */
static void put_u64(struct verity_text *t, uint64_t v, int digits)
{
	char buf[20], *end = buf + sizeof(buf), *p = end;

	while (v || digits > 0) {
		*--p = (char)('0' + v % 10);
		v /= 10;
		digits--;
	}
	verity_text_put(t, p, (size_t)(end - p));
}

static void put_mtime(struct verity_text *t, const struct verity_entry *e)
{
	put_text(t, "\tmtime ");
	if (e->mtime_s < 0)
		put_text(t, "-");
	put_u64(t,
		e->mtime_s < 0 ? -(uint64_t)e->mtime_s : (uint64_t)e->mtime_s,
		1);
	put_text(t, ".");
	put_u64(t, e->mtime_ns, 9);
	put_text(t, "\n");
}

static void put_file(struct verity_text *t,
		     const struct verity_manifest_head *h,
		     const struct verity_entry *e)
{
	put_text(t, verity_alg_name(h->params.alg));
	put_text(t, ":");
	put_hex(t, e->digest, verity_digest_size(h->params.alg));
	put_text(t, " ");
	verity_text_path(t, e->path);
	put_text(t, "\n\tsize ");
	put_u64(t, e->size, 1);
	put_text(t, e->exec ? "\n\texec\n" : "\n");
	if (e->has_sha256) {
		put_text(t, "\tsha256 ");
		put_hex(t, e->sha256, sizeof(e->sha256));
		put_text(t, "\n");
	}
	if (e->has_mtime)
		put_mtime(t, e);
}

void verity_manifest_put_entry(struct verity_text *t,
			       const struct verity_manifest_head *h,
			       const struct verity_entry *e)
{
	if (e->kind == VERITY_FILE) {
		put_file(t, h, e);
		return;
	}
	verity_text_printf(t, e->kind == VERITY_DIR ? "dir " : "symlink ");
	verity_text_path(t, e->path);
	if (e->kind == VERITY_SYMLINK) {
		verity_text_printf(t, "\n\ttarget ");
		verity_text_path(t, e->target);
	}
	verity_text_put(t, "\n", 1);
}
