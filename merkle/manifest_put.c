/* SPDX-License-Identifier: MIT */
/* Writing a manifest.  Layer: merkle. */
#include "merkle/manifest.h"

#include "merkle/hex.h"

#include <inttypes.h>
#include <time.h>

static void put_time(struct verity_text *t, const char *key, int64_t when)
{
	time_t secs = (time_t)when;
	struct tm tm;
	char buf[40];

	gmtime_r(&secs, &tm);
	strftime(buf, sizeof(buf), "%Y-%m-%dT%H:%M:%SZ", &tm);
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

static void put_file(struct verity_text *t,
		     const struct verity_manifest_head *h,
		     const struct verity_entry *e)
{
	char hex[2 * VERITY_MAX_DIGEST + 1];

	hex_encode(e->digest, verity_digest_size(h->params.alg), hex);
	verity_text_printf(t, "%s:%s ", verity_alg_name(h->params.alg), hex);
	verity_text_path(t, e->path);
	verity_text_printf(t, "\n\tsize %" PRIu64 "\n", e->size);
	if (e->exec)
		verity_text_printf(t, "\texec\n");
	if (e->has_sha256) {
		hex_encode(e->sha256, sizeof(e->sha256), hex);
		verity_text_printf(t, "\tsha256 %s\n", hex);
	}
	if (e->has_mtime)
		verity_text_printf(t, "\tmtime %" PRId64 ".%09u\n", e->mtime_s,
				   e->mtime_ns);
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
