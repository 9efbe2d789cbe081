/* SPDX-License-Identifier: MIT */
/*
 * tools/inspect_dm.c - show a dm-verity superblock, as veritysetup(8) writes
 * it in front of the hash area.
 *
 * Layer: tools.  Little-endian, 512 bytes: magic "verity\0\0", 4 version, 4
 * hash type, 16 uuid, 32 algorithm, 4 data block size, 4 hash block size, 8
 * data blocks, 2 salt size, 6 padding, 256 salt, padding.  The hash area
 * begins at the next hash block, root level first.  The root hash is not in
 * there: it is what the user trusts.
 */
#include "merkle/le.h"
#include "tools/inspect.h"

#include <stdio.h>
#include <string.h>

#define SB_SIZE    512
#define MAX_SALT   256
#define MAX_BLOCK  524288 /* cryptsetup's */
#define MAX_LEVELS 63

enum {
	OFF_VERSION = 8,
	OFF_TYPE = 12,
	OFF_UUID = 16,
	OFF_ALG = 32,
	OFF_DATA_BLOCK = 64,
	OFF_HASH_BLOCK = 68,
	OFF_DATA_BLOCKS = 72,
	OFF_SALT_SIZE = 80,
	OFF_SALT = 88,
};

struct sb {
	uint32_t version, type, data_block, hash_block;
	uint64_t data_blocks;
	uint16_t salt_size;
	char alg[33];
	char uuid[37];
};

/* The shape of the hash area; no levels for one data block. */
struct area {
	unsigned int levels;
	uint64_t start;              /* bytes from the superblock */
	uint64_t size;               /* bytes */
	uint64_t blocks[MAX_LEVELS]; /* leaf level first */
};

/* Those that dm-verity is used with; others are shown without a shape. */
static uint32_t digest_size(const char *alg)
{
	static const struct {
		const char *name;
		uint32_t size;
	} algs[] = {
		{ "sha256", 32 },      { "sha512", 64 },
		{ "sha1", 20 },        { "sha224", 28 },
		{ "sha384", 48 },      { "sha3-256", 32 },
		{ "sha3-512", 64 },    { "blake2b-256", 32 },
		{ "blake2b-512", 64 }, { "blake2s-256", 32 },
		{ "sm3", 32 },         { "streebog256", 32 },
	};

	for (size_t i = 0; i < sizeof(algs) / sizeof(algs[0]); i++)
		if (strcmp(algs[i].name, alg) == 0)
			return algs[i].size;
	return 0;
}

static void format_uuid(const uint8_t *u, char *out)
{
	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*out++ = '-';
		snprintf(out, 3, "%02x", u[i]);
		out += 2;
	}
}

static int check_block(const struct subject *s, const char *field, uint32_t v)
{
	if (v >= 512 && v <= MAX_BLOCK && !(v & (v - 1)))
		return 0;
	return inspect_refuse(s, field, v, "must be a power of two from 512 to",
			      MAX_BLOCK);
}

static int check(const struct subject *s, const struct sb *sb)
{
	uint64_t most = VERITY_MAX_SIZE / (sb->data_block ? sb->data_block : 1);

	if (sb->version != 1)
		return inspect_refuse(s, "version", sb->version, "must be", 1);
	if (sb->type > 1)
		return inspect_refuse(s, "hash_type", sb->type,
				      "must be at most", 1);
	if (check_block(s, "data_block_size", sb->data_block) ||
	    check_block(s, "hash_block_size", sb->hash_block))
		return -EINVAL;
	if (!sb->data_blocks)
		return inspect_refuse(s, "data_blocks", 0, "must be at least",
				      1);
	if (sb->data_blocks > most)
		return inspect_refuse(s, "data_blocks", sb->data_blocks,
				      "must be at most", most);
	if (sb->salt_size > MAX_SALT)
		return inspect_refuse(s, "salt_size", sb->salt_size,
				      "must be at most", MAX_SALT);
	if (strlen(sb->alg) == 32 || !sb->alg[0])
		return inspect_refuse(s, "algorithm name's length",
				      strlen(sb->alg), "must be from 1 to", 31);
	return 0;
}

static int decode(const struct subject *s, struct sb *sb)
{
	const uint8_t *p = s->head;

	if (s->head_len < SB_SIZE)
		return inspect_refuse(s, "superblock size", s->size,
				      "must be at least", SB_SIZE);
	*sb = (struct sb){ .version = get_le32(p + OFF_VERSION),
			   .type = get_le32(p + OFF_TYPE),
			   .data_block = get_le32(p + OFF_DATA_BLOCK),
			   .hash_block = get_le32(p + OFF_HASH_BLOCK),
			   .data_blocks = get_le64(p + OFF_DATA_BLOCKS),
			   .salt_size = get_le16(p + OFF_SALT_SIZE) };
	memcpy(sb->alg, p + OFF_ALG, 32);
	format_uuid(p + OFF_UUID, sb->uuid);
	return check(s, sb);
}

/* cryptsetup's: a hash block holds a power of two of digests. */
static int measure(const struct subject *s, const struct sb *sb,
		   uint32_t digest, struct area *a)
{
	uint64_t n = sb->data_blocks, need;
	uint32_t per = 1;

	*a = (struct area){ .start = sb->hash_block };
	while (2 * per * digest <= sb->hash_block)
		per *= 2;
	/* At least 8 to a block, so 21 levels at most. */
	while (n > 1) {
		n = n / per + (n % per != 0);
		a->blocks[a->levels++] = n;
		a->size += n * sb->hash_block;
	}
	need = a->start + a->size;
	if (a->levels && s->size < need)
		return inspect_refuse(s, "file size", s->size,
				      "with that many data blocks it must be "
				      "at least",
				      need);
	return 0;
}

static void show_area(struct report *r, const struct sb *sb,
		      const struct area *a)
{
	uint64_t pos = a->start;

	report_u64(r, "hash_area_offset", a->start);
	report_u64(r, "hash_area_size", a->size);
	report_list(r, "levels");
	for (unsigned int i = a->levels; i; i--) {
		report_row(r);
		report_u64(r, "level", i);
		report_u64(r, "offset", pos);
		report_u64(r, "blocks", a->blocks[i - 1]);
		report_u64(r, "size", a->blocks[i - 1] * sb->hash_block);
		report_row_end(r);
		pos += a->blocks[i - 1] * sb->hash_block;
	}
	report_list_end(r);
}

static bool is_dm(const struct subject *s)
{
	return s->head_len >= 8 && memcmp(s->head, "verity\0\0", 8) == 0;
}

static int show(const struct subject *s, struct report *r)
{
	struct area a;
	struct sb sb;
	uint32_t digest;
	int err = decode(s, &sb);

	if (err)
		return err;
	report_string(r, "uuid", sb.uuid);
	report_u64(r, "hash_type", sb.type);
	report_string(r, "salt_goes", sb.type ? "first" : "last");
	report_string(r, "algorithm", sb.alg);
	report_u64(r, "data_block_size", sb.data_block);
	report_u64(r, "hash_block_size", sb.hash_block);
	report_u64(r, "data_blocks", sb.data_blocks);
	report_u64(r, "data_size", sb.data_blocks * sb.data_block);
	report_hex(r, "salt", s->head + OFF_SALT, sb.salt_size);
	digest = digest_size(sb.alg);
	if (!digest)
		return 0;
	err = measure(s, &sb, digest, &a);
	if (!err)
		show_area(r, &sb, &a);
	return err;
}

const struct format inspect_dm = { "dm-verity", "dm-verity superblock", is_dm,
				   show };
