/* SPDX-License-Identifier: MIT */
/* The fs-verity descriptor.  Layer: merkle. */
#include "merkle/desc.h"

#include "merkle/complain.h"
#include "merkle/geom.h"
#include "merkle/hash.h"
#include "merkle/le.h"

#include <errno.h>
#include <string.h>

enum {
	OFF_VERSION = 0,
	OFF_ALG = 1,
	OFF_LOG_BLOCK = 2,
	OFF_SALT_SIZE = 3,
	OFF_SIG_SIZE = 4,
	OFF_DATA_SIZE = 8,
	OFF_ROOT = 16,
	OFF_SALT = 80,
	OFF_RESERVED = 112,
	VERSION = 1,
	LG_MIN = 9, /* log2 of VERITY_MIN_BLOCK and _MAX_BLOCK */
	LG_MAX = 16,
};

/* Return: the position of the first byte in [from, to) that is not 0, or to */
static size_t first_nonzero(const uint8_t *raw, size_t from, size_t to)
{
	while (from < to && !raw[from])
		from++;
	return from;
}

static int must_be_zero(const uint8_t *raw, size_t from, size_t to,
			const char *field, struct verity_complaint *why)
{
	size_t at = first_nonzero(raw, from, to);

	if (at == to)
		return 0;
	return complain(why, -EINVAL, field, raw[at], RULE_ZERO, at);
}

/* The four bytes that say what the rest means. */
static int check_head(const uint8_t *raw, struct verity_complaint *why)
{
	unsigned int lg = raw[OFF_LOG_BLOCK];

	if (raw[OFF_VERSION] != VERSION)
		return complain(why, -EINVAL, "descriptor.version",
				raw[OFF_VERSION], RULE_EQUAL, VERSION);
	if (raw[OFF_ALG] < VERITY_SHA256)
		return complain(why, -EINVAL, "descriptor.hash_algorithm",
				raw[OFF_ALG], RULE_LEAST, VERITY_SHA256);
	if (raw[OFF_ALG] > VERITY_SHA512)
		return complain(why, -EINVAL, "descriptor.hash_algorithm",
				raw[OFF_ALG], RULE_MOST, VERITY_SHA512);
	if (lg < LG_MIN)
		return complain(why, -EINVAL, "descriptor.log_blocksize", lg,
				RULE_LEAST, LG_MIN);
	if (lg > LG_MAX)
		return complain(why, -EINVAL, "descriptor.log_blocksize", lg,
				RULE_MOST, LG_MAX);
	if (raw[OFF_SALT_SIZE] > VERITY_MAX_SALT)
		return complain(why, -EMSGSIZE, "descriptor.salt_size",
				raw[OFF_SALT_SIZE], RULE_MOST, VERITY_MAX_SALT);
	return 0;
}

static int check_padding(const uint8_t *raw, struct verity_complaint *why)
{
	uint32_t digest_size = verity_digest_size(raw[OFF_ALG]);
	int err;

	err = must_be_zero(raw, OFF_ROOT + digest_size, OFF_SALT,
			   "descriptor.root_hash padding", why);
	if (!err)
		err = must_be_zero(raw, OFF_SALT + raw[OFF_SALT_SIZE],
				   OFF_RESERVED, "descriptor.salt padding",
				   why);
	if (!err)
		err = must_be_zero(raw, OFF_RESERVED, VERITY_DESC_SIZE,
				   "descriptor.reserved", why);
	return err;
}

/* An empty file's root is all zero; nothing else is what a builder makes. */
static int check_sizes(const struct verity_desc *d,
		       struct verity_complaint *why)
{
	struct verity_geom g;

	if (d->sig_size > VERITY_MAX_SIG)
		return complain(why, -EMSGSIZE, "descriptor.sig_size",
				d->sig_size, RULE_MOST, VERITY_MAX_SIG);
	if (d->data_size > VERITY_MAX_SIZE)
		return complain(why, -EFBIG, "descriptor.data_size",
				d->data_size, RULE_MOST, VERITY_MAX_SIZE);
	if (!d->data_size &&
	    first_nonzero(d->root, 0, sizeof(d->root)) < sizeof(d->root))
		return must_be_zero(d->root, 0, sizeof(d->root),
				    "descriptor.root_hash of an empty file",
				    why);
	return verity_geom_init(&g, &d->params, d->data_size, why);
}

int verity_desc_decode(const uint8_t *raw, struct verity_desc *out,
		       struct verity_complaint *why)
{
	struct verity_desc d = { 0 };
	int err = check_head(raw, why);

	if (!err)
		err = check_padding(raw, why);
	if (err)
		return err;
	d.params.alg = raw[OFF_ALG];
	d.params.block_size = 1U << raw[OFF_LOG_BLOCK];
	d.params.salt_size = raw[OFF_SALT_SIZE];
	memcpy(d.params.salt, raw + OFF_SALT, VERITY_MAX_SALT);
	d.sig_size = get_le32(raw + OFF_SIG_SIZE);
	d.data_size = get_le64(raw + OFF_DATA_SIZE);
	memcpy(d.root, raw + OFF_ROOT, VERITY_MAX_DIGEST);
	err = check_sizes(&d, why);
	if (!err)
		*out = d;
	return err;
}

void verity_desc_encode(const struct verity_desc *d, uint8_t *raw)
{
	memset(raw, 0, VERITY_DESC_SIZE);
	raw[OFF_VERSION] = VERSION;
	raw[OFF_ALG] = (uint8_t)d->params.alg;
	raw[OFF_LOG_BLOCK] = (uint8_t)__builtin_ctz(d->params.block_size);
	raw[OFF_SALT_SIZE] = (uint8_t)d->params.salt_size;
	put_le32(raw + OFF_SIG_SIZE, d->sig_size);
	put_le64(raw + OFF_DATA_SIZE, d->data_size);
	memcpy(raw + OFF_ROOT, d->root, verity_digest_size(d->params.alg));
	memcpy(raw + OFF_SALT, d->params.salt, d->params.salt_size);
}

int verity_desc_digest(const uint8_t *raw, struct verity_digest *out)
{
	struct verity_digest d = { .alg = raw[OFF_ALG] };
	uint8_t unsigned_copy[VERITY_DESC_SIZE];
	int err;

	d.size = verity_digest_size(d.alg);
	if (!d.size)
		return -EINVAL;
	memcpy(unsigned_copy, raw, VERITY_DESC_SIZE);
	put_le32(unsigned_copy + OFF_SIG_SIZE, 0);
	err = verity_hash_bytes(d.alg, unsigned_copy, VERITY_DESC_SIZE,
				d.bytes);
	if (!err)
		*out = d;
	return err;
}

int verity_digest_equal(const struct verity_digest *a,
			const struct verity_digest *b)
{
	return a->alg == b->alg && a->size == b->size &&
	       memcmp(a->bytes, b->bytes, a->size) == 0;
}
