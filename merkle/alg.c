/* SPDX-License-Identifier: MIT */
/* Algorithms by name and number, and digests as text.  Layer: merkle. */
#include "merkle/verity.h"

#include "merkle/hex.h"

#include <errno.h>
#include <string.h>

static const struct {
	const char *name;
	uint32_t digest_size;
} algs[] = {
	[VERITY_SHA256] = { "sha256", 32 },
	[VERITY_SHA512] = { "sha512", 64 },
};

enum { ALGS = sizeof(algs) / sizeof(algs[0]) };

uint32_t verity_alg_by_name(const char *name)
{
	for (uint32_t i = 1; i < ALGS; i++)
		if (!strcmp(algs[i].name, name))
			return i;
	return 0;
}

const char *verity_alg_name(uint32_t alg)
{
	return alg < ALGS ? algs[alg].name : NULL;
}

uint32_t verity_digest_size(uint32_t alg)
{
	return alg < ALGS ? algs[alg].digest_size : 0;
}

int verity_digest_parse(const char *text, struct verity_digest *out)
{
	struct verity_digest d = { .alg = VERITY_SHA256 };
	const char *hex = strchr(text, ':');
	char name[8] = "";

	if (hex) {
		if ((size_t)(hex - text) >= sizeof(name))
			return -EINVAL;
		memcpy(name, text, (size_t)(hex - text));
		d.alg = verity_alg_by_name(name);
		hex++;
	} else {
		hex = text;
	}
	d.size = verity_digest_size(d.alg);
	if (!d.size || strlen(hex) != 2 * (size_t)d.size ||
	    hex_decode(hex, d.size, d.bytes))
		return -EINVAL;
	*out = d;
	return 0;
}

void verity_digest_format(const struct verity_digest *d, char *out)
{
	const char *name = verity_alg_name(d->alg);
	size_t n, size = d->size;

	if (!name)
		name = "unknown";
	n = strlen(name);
	memcpy(out, name, n);
	out[n++] = ':';
	if (size > sizeof(d->bytes))
		size = sizeof(d->bytes);
	hex_encode(d->bytes, size, out + n);
}
