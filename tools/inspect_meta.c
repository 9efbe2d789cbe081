/* SPDX-License-Identifier: MIT */
/* tools/inspect_meta.c - show a sidecar or a bare descriptor.
 * Layer: tools. */
#include "merkle/meta.h"

#include "merkle/le.h"
#include "tools/inspect.h"

void inspect_params(struct report *r, const struct verity_params *p)
{
	report_string(r, "algorithm", verity_alg_name(p->alg));
	report_u64(r, "block_size", p->block_size);
	report_hex(r, "salt", p->salt, p->salt_size);
}

void inspect_levels(struct report *r, const struct verity_geom *g, uint64_t pos)
{
	report_list(r, "levels");
	for (unsigned int i = g->levels; i; i--) {
		report_row(r);
		report_u64(r, "level", i);
		report_u64(r, "offset", pos + geom_offset(g, i, 0));
		report_u64(r, "blocks", g->blocks[i]);
		report_u64(r, "size", g->blocks[i] << g->block_lg);
		report_row_end(r);
	}
	report_list_end(r);
}

/* What both have in common. */
static void show_desc(struct report *r, const struct verity_desc *d,
		      const struct verity_digest *digest)
{
	report_digest(r, "digest", digest);
	report_u64(r, "data_size", d->data_size);
	inspect_params(r, &d->params);
	report_hex(r, "root_hash", d->root, digest->size);
}

static void show_signature(struct report *r, const char *type, uint64_t size)
{
	report_group(r, "signature");
	report_string(r, "type", type);
	report_u64(r, "size", size);
	report_group_end(r);
}

/* Decoding checked the descriptor's shape already. */
static void show_tree(struct report *r, const struct verity_desc *d,
		      uint64_t pos)
{
	struct verity_geom g;

	if (verity_geom_init(&g, &d->params, d->data_size, NULL))
		return;
	report_u64(r, "tree_size", g.tree_size);
	inspect_levels(r, &g, pos);
}

static bool is_meta(const struct subject *s)
{
	return s->head_len >= 4 && get_le32(s->head) == 1;
}

static int show_meta(const struct subject *s, struct report *r)
{
	static const char *const types[] = { "none", "PKCS#7", "raw" };
	struct verity_complaint why;
	struct verity_meta m;
	int err;

	if (s->head_len < VERITY_META_HEAD)
		return inspect_refuse(s, "sidecar size", s->size,
				      "must be at least", VERITY_META_HEAD);
	err = verity_meta_decode(s->head, s->size, &m, &why);
	if (err) {
		say_complaint(s->path, &why);
		return err;
	}
	show_desc(r, &m.desc, &m.digest);
	show_signature(r, types[m.sig_type], m.sig_size);
	report_u64(r, "tree_offset", m.tree_pos);
	show_tree(r, &m.desc, m.tree_pos);
	return 0;
}

/* Version 1 and an algorithm; a sidecar has zeros in the second place. */
static bool is_desc(const struct subject *s)
{
	return s->head_len >= 4 && s->head[0] == 1 && s->head[1] != 0;
}

static int show_bare(const struct subject *s, struct report *r)
{
	struct verity_complaint why;
	struct verity_digest digest;
	struct verity_desc d;
	int err;

	if (s->head_len < VERITY_DESC_SIZE)
		return inspect_refuse(s, "descriptor size", s->size,
				      "must be at least", VERITY_DESC_SIZE);
	err = verity_desc_decode(s->head, &d, &why);
	if (err) {
		say_complaint(s->path, &why);
		return err;
	}
	if (s->size != (uint64_t)VERITY_DESC_SIZE + d.sig_size)
		return inspect_refuse(s, "descriptor size", s->size, "must be",
				      (uint64_t)VERITY_DESC_SIZE + d.sig_size);
	err = verity_desc_digest(s->head, &digest);
	if (err)
		return say_errno(err, "%s: cannot hash", s->path);
	show_desc(r, &d, &digest);
	show_signature(r, d.sig_size ? "PKCS#7" : "none", d.sig_size);
	show_tree(r, &d, 0);
	return 0;
}

const struct format inspect_meta = { "sidecar", "fs-verity sidecar", is_meta,
				     show_meta };
const struct format inspect_desc = { "descriptor", "fs-verity descriptor",
				     is_desc, show_bare };
