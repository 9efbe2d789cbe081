/* SPDX-License-Identifier: MIT */
/*
 * tools/inspect_idsig.c - show an APK Signature Scheme v4 file, .idsig.
 *
 * Layer: tools.  Little-endian, no padding; "sized" is a 4-byte length and
 * that many bytes:
 *
 *   version 2
 *   sized hashing info:  4 algorithm, 1 log2 of the block size, sized salt,
 *                        sized root hash
 *   sized signing info:  sized APK digest, certificate, additional data,
 *                        public key; 4 signature algorithm; sized signature.
 *                        Later versions add to its end
 *   sized tree           may be left out, with its length
 *
 * The root hash is not the fs-verity digest, which also covers the size.
 */
#include "merkle/le.h"
#include "tools/inspect.h"

#include <string.h>

/* The bound of both infos: an X.509 chain does not come near, and it keeps a
 * damaged length from being taken for a buffer's. */
#define MAX_INFO   ((size_t)64 << 10)
#define MAX_DIGEST 64

/* A part of the file in memory. */
struct cursor {
	const struct subject *s;
	const uint8_t *at;
	size_t left;
};

struct sized {
	const uint8_t *bytes;
	uint32_t len;
};

static int take(struct cursor *c, const char *field, size_t len,
		const uint8_t **out)
{
	if (len > c->left)
		return inspect_refuse(c->s, field, len, "must be at most",
				      c->left);
	*out = c->at;
	c->at += len;
	c->left -= len;
	return 0;
}

static int take_u32(struct cursor *c, const char *field, uint32_t *out)
{
	const uint8_t *p = NULL;

	if (c->left < 4) {
		say_error("%s: %s: %zu bytes are left, must be at least 4",
			  c->s->path, field, c->left);
		return -EINVAL;
	}
	if (take(c, field, 4, &p))
		return -EINVAL;
	*out = get_le32(p);
	return 0;
}

/* @max: what this field may be, apart from what there is. */
static int take_sized(struct cursor *c, const char *field, uint32_t max,
		      struct sized *out)
{
	int err = take_u32(c, field, &out->len);

	if (!err && out->len > max)
		err = inspect_refuse(c->s, field, out->len, "must be at most",
				     max);
	return err ? err : take(c, field, out->len, &out->bytes);
}

/* The sized part at *pos; *pos moves to what follows it. */
static int read_info(const struct subject *s, const char *field, uint64_t *pos,
		     uint8_t *buf, struct cursor *c)
{
	uint8_t raw[4];
	uint32_t len;
	int err = inspect_read(s, raw, sizeof(raw), *pos);

	if (err)
		return err;
	len = get_le32(raw);
	*pos += sizeof(raw);
	if (len > MAX_INFO)
		return inspect_refuse(s, field, len, "must be at most",
				      MAX_INFO);
	if (len > s->size - *pos)
		return inspect_refuse(s, field, len, "must be at most",
				      s->size - *pos);
	err = inspect_read(s, buf, len, *pos);
	*pos += len;
	*c = (struct cursor){ s, buf, len };
	return err;
}

static const char *signature_name(uint32_t id)
{
	static const struct {
		uint32_t id;
		const char *name;
	} names[] = {
		{ 0x101, "RSASSA-PSS with SHA-256" },
		{ 0x102, "RSASSA-PSS with SHA-512" },
		{ 0x103, "RSASSA-PKCS1-v1_5 with SHA-256" },
		{ 0x104, "RSASSA-PKCS1-v1_5 with SHA-512" },
		{ 0x201, "ECDSA with SHA-256" },
		{ 0x202, "ECDSA with SHA-512" },
		{ 0x301, "DSA with SHA-256" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].id == id)
			return names[i].name;
	return NULL;
}

static int parse_hashing(struct cursor *c, struct verity_desc *d)
{
	const uint8_t *lg = NULL;
	struct sized salt = { 0 }, root = { 0 };
	uint32_t alg;
	int err = take_u32(c, "hashing_info.hash_algorithm", &alg);

	if (!err && alg != VERITY_SHA256)
		err = inspect_refuse(c->s, "hashing_info.hash_algorithm", alg,
				     "must be", VERITY_SHA256);
	if (!err)
		err = take(c, "hashing_info.log2_blocksize", 1, &lg);
	if (!err && *lg != 12)
		err = inspect_refuse(c->s, "hashing_info.log2_blocksize", *lg,
				     "must be", 12);
	if (!err)
		err = take_sized(c, "hashing_info.salt length", VERITY_MAX_SALT,
				 &salt);
	if (!err)
		err = take_sized(c, "hashing_info.root hash length", 32, &root);
	if (!err && root.len != 32)
		err = inspect_refuse(c->s, "hashing_info.root hash length",
				     root.len, "must be", 32);
	if (!err && c->left)
		err = inspect_refuse(c->s, "hashing_info bytes left over",
				     c->left, "must be", 0);
	if (err)
		return err;
	*d = (struct verity_desc){ .params = { alg, 4096, salt.len, { 0 } } };
	memcpy(d->params.salt, salt.bytes, salt.len);
	memcpy(d->root, root.bytes, root.len);
	return 0;
}

static int show_signing(struct cursor *c, struct report *r)
{
	struct sized apk, cert, data, key, sig;
	const char *name;
	uint32_t id;
	int err = take_sized(c, "signing_info.apk digest length", MAX_DIGEST,
			     &apk);

	if (!err)
		err = take_sized(c, "signing_info.certificate length", MAX_INFO,
				 &cert);
	if (!err)
		err = take_sized(c, "signing_info.additional data length",
				 MAX_INFO, &data);
	if (!err)
		err = take_sized(c, "signing_info.public key length", MAX_INFO,
				 &key);
	if (!err)
		err = take_u32(c, "signing_info.signature algorithm", &id);
	if (!err)
		err = take_sized(c, "signing_info.signature length", MAX_INFO,
				 &sig);
	if (err)
		return err;
	name = signature_name(id);
	report_hex(r, "apk_digest", apk.bytes, apk.len);
	report_u64(r, "certificate_size", cert.len);
	report_u64(r, "additional_data_size", data.len);
	report_u64(r, "public_key_size", key.len);
	report_group(r, "signature");
	report_string(r, "type", name ? name : "unknown");
	report_u64(r, "id", id);
	report_u64(r, "size", sig.len);
	report_group_end(r);
	return 0;
}

/* Return: 0 with the tree's place, or no size where it is left out. */
static int find_tree(const struct subject *s, uint64_t *pos, uint64_t *size)
{
	uint8_t raw[4];
	int err;

	*size = 0;
	if (*pos == s->size)
		return 0;
	err = inspect_read(s, raw, sizeof(raw), *pos);
	if (err)
		return err;
	*pos += sizeof(raw);
	*size = get_le32(raw);
	if (*size != s->size - *pos)
		return inspect_refuse(s, "tree length", *size, "must be",
				      s->size - *pos);
	return 0;
}

/* Now that the size is known, so is the descriptor. */
static int show_digest(const struct subject *s, struct report *r,
		       struct verity_desc *d, uint64_t pos, uint64_t tree_size)
{
	uint8_t raw[VERITY_DESC_SIZE];
	struct verity_complaint why;
	struct verity_digest digest;
	struct verity_geom g;
	int err;

	d->data_size = s->apk_size;
	err = verity_geom_init(&g, &d->params, d->data_size, &why);
	if (err) {
		say_complaint(s->path, &why);
		return err;
	}
	if (tree_size && tree_size != g.tree_size)
		return inspect_refuse(s, "tree length", tree_size,
				      "for that --size must be", g.tree_size);
	verity_desc_encode(d, raw);
	err = verity_desc_digest(raw, &digest);
	if (err)
		return say_errno(err, "%s: cannot hash", s->path);
	report_u64(r, "data_size", d->data_size);
	report_digest(r, "digest", &digest);
	if (tree_size)
		inspect_levels(r, &g, pos);
	return 0;
}

static bool is_idsig(const struct subject *s)
{
	return s->head_len >= 4 && get_le32(s->head) == 2;
}

static int show(const struct subject *s, struct report *r)
{
	uint8_t buf[MAX_INFO];
	uint64_t pos = 4, tree_size;
	struct verity_desc d;
	struct cursor c;
	int err = read_info(s, "hashing_info length", &pos, buf, &c);

	if (!err)
		err = parse_hashing(&c, &d);
	if (err)
		return err;
	inspect_params(r, &d.params);
	report_hex(r, "root_hash", d.root, 32);
	err = read_info(s, "signing_info length", &pos, buf, &c);
	if (!err)
		err = show_signing(&c, r);
	if (!err)
		err = find_tree(s, &pos, &tree_size);
	if (err)
		return err;
	report_u64(r, "tree_offset", tree_size ? pos : 0);
	report_u64(r, "tree_size", tree_size);
	return s->apk_size ? show_digest(s, r, &d, pos, tree_size) : 0;
}

const struct format inspect_idsig = { "idsig",
				      "APK Signature Scheme v4 (.idsig)",
				      is_idsig, show };
