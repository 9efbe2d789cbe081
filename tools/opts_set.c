/* SPDX-License-Identifier: MIT */
/* tools/opts_set.c - values of options, and the rules for them.
 * Layer: tools. */
#include "tools/opts.h"

#include "merkle/hex.h"
#include "tools/spread.h"

#include <string.h>

const char *opt_flag(const char *value, void *dst)
{
	bool *flag = dst;

	(void)value; /* a flag has none */
	*flag = true;
	return NULL;
}

const char *opt_string(const char *value, void *dst)
{
	const char **s = dst;

	if (!*value)
		return "must not be empty";
	*s = value;
	return NULL;
}

const char *opt_alg(const char *value, void *dst)
{
	uint32_t alg = verity_alg_by_name(value);

	if (!alg)
		return "must be sha256 or sha512";
	*(uint32_t *)dst = alg;
	return NULL;
}

/* Digits only: strtoul() would take a sign, blanks and 2^64 + 1.
 * Return: what follows the number, or NULL when there is none. */
static const char *number(const char *s, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;

	if (*s < '0' || *s > '9')
		return NULL;
	for (; *s >= '0' && *s <= '9'; s++) {
		unsigned int digit = (unsigned int)(*s - '0');

		if (v > (max - digit) / 10)
			return NULL;
		v = v * 10 + digit;
	}
	*out = v;
	return s;
}

const char *opt_block_size(const char *value, void *dst)
{
	const char *end;
	uint64_t n = 0;

	end = number(value, VERITY_MAX_BLOCK, &n);
	if (!end || *end || n < VERITY_MIN_BLOCK || (n & (n - 1)))
		return "must be a power of two from 512 to 65536";
	*(uint32_t *)dst = (uint32_t)n;
	return NULL;
}

/* The empty salt is none, as fsverity(1) has it. */
const char *opt_salt(const char *value, void *dst)
{
	struct salt_opt *salt = dst;
	size_t n = strlen(value);

	if (n % 2 || n > 2 * (size_t)VERITY_MAX_SALT ||
	    hex_decode(value, n / 2, salt->bytes))
		return "must be at most 32 bytes in hex, two digits each";
	salt->size = (uint32_t)(n / 2);
	return NULL;
}

const char *opt_digest(const char *value, void *dst)
{
	struct digest_opt *d = dst;

	if (verity_digest_parse(value, &d->digest))
		return "must be sha256:HEX or sha512:HEX of full length";
	d->set = true;
	return NULL;
}

#define RANGE_RULE "must be A-B with A at most B, A-, or -N with N at least 1"

const char *opt_range(const char *value, void *dst)
{
	struct byte_range r = { .set = true, .last = UINT64_MAX };
	const char *s = value;

	r.suffix = *s == '-';
	s = number(s + r.suffix, VERITY_MAX_SIZE, &r.first);
	if (!s)
		return RANGE_RULE;
	if (!r.suffix) {
		if (*s++ != '-')
			return RANGE_RULE;
		if (*s)
			s = number(s, VERITY_MAX_SIZE, &r.last);
	}
	if (!s || *s || r.last < r.first || (r.suffix && !r.first))
		return RANGE_RULE;
	*(struct byte_range *)dst = r;
	return NULL;
}

const char *opt_size(const char *value, void *dst)
{
	uint64_t n = 0;
	const char *end = number(value, VERITY_MAX_SIZE, &n);

	if (!end || *end || !n)
		return "must be a number of bytes from 1 to 2^63 - 1";
	*(uint64_t *)dst = n;
	return NULL;
}

const char *opt_jobs(const char *value, void *dst)
{
	uint64_t n = 0;
	const char *end = number(value, SPREAD_MAX, &n);

	if (!end || *end || !n)
		return "must be a number from 1 to 256";
	*(unsigned int *)dst = (unsigned int)n;
	return NULL;
}

void opts_params(uint32_t alg, uint32_t block_size, const struct salt_opt *salt,
		 struct verity_params *out)
{
	struct verity_params p = VERITY_PARAMS_DEFAULT;

	if (alg)
		p.alg = alg;
	if (block_size)
		p.block_size = block_size;
	p.salt_size = salt->size;
	memcpy(p.salt, salt->bytes, salt->size);
	*out = p;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Edit distance, one row of the table at a time. */
static size_t distance(const char *a, const char *b, size_t len_b)
{
	size_t row[64];

	for (size_t i = 0; i <= len_b; i++)
		row[i] = i;
	for (; *a; a++) {
		size_t corner = row[0]++;

		for (size_t i = 1; i <= len_b; i++) {
			size_t change = corner + (*a != b[i - 1]);

			corner = row[i];
			row[i] = least(change, least(row[i], row[i - 1]) + 1);
		}
	}
	return row[len_b];
}

bool opts_near(const char *word, const char *name)
{
	size_t w = strlen(word), n = strlen(name);

	if (w < 2 || n > 60)
		return false;
	if (w >= 3 && strncmp(word, name, w) == 0)
		return true;
	return distance(word, name, n) <= (n < 4 ? 1 : 2);
}
