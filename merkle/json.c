/* SPDX-License-Identifier: MIT */
/* merkle/json.c - write JSON.  Layer: merkle. */
#include "merkle/json.h"

#include "merkle/hex.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void put(struct verity_json *j, const char *s)
{
	verity_text_put(&j->out, s, strlen(s));
}

/*
 * Return: the length of the character at @s, or 0 where the bytes are not
 * UTF-8 (RFC 3629: no longer form than needed, no surrogates, up to 10FFFF).
 * Stops at the NUL, which continues nothing.
 */
static size_t utf8_len(const unsigned char *s)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	unsigned char low = 0x80, high = 0xbf; /* of the second byte */

	if (n == 1)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	if (s[0] == 0xe0)
		low = 0xa0;
	if (s[0] == 0xed)
		high = 0x9f;
	if (s[0] == 0xf0)
		low = 0x90;
	if (s[0] == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

static void put_char(struct verity_json *j, const char *s, size_t len)
{
	unsigned char c = (unsigned char)*s;

	if (!len)
		verity_text_printf(&j->out, "\\udc%02x", c);
	else if (c == '"' || c == '\\')
		verity_text_printf(&j->out, "\\%c", c);
	else if (c < 0x20 || c == 0x7f)
		verity_text_printf(&j->out, "\\u%04x", c);
	else
		verity_text_put(&j->out, s, len);
}

static void quote(struct verity_json *j, const char *s)
{
	put(j, "\"");
	while (*s) {
		size_t len = utf8_len((const unsigned char *)s);

		put_char(j, s, len);
		s += len ? len : 1;
	}
	put(j, "\"");
}

/* What goes before any value. */
static void begin(struct verity_json *j, const char *key)
{
	if (j->comma)
		put(j, ",");
	j->comma = true;
	if (!key)
		return;
	quote(j, key);
	put(j, ":");
}

void verity_json_object(struct verity_json *j, const char *key)
{
	begin(j, key);
	put(j, "{");
	j->comma = false;
}

void verity_json_array(struct verity_json *j, const char *key)
{
	begin(j, key);
	put(j, "[");
	j->comma = false;
}

void verity_json_end(struct verity_json *j, char bracket)
{
	verity_text_put(&j->out, &bracket, 1);
	j->comma = true;
}

void verity_json_string(struct verity_json *j, const char *key,
			const char *value)
{
	begin(j, key);
	quote(j, value);
}

void verity_json_hex(struct verity_json *j, const char *key,
		     const uint8_t *bytes, size_t n)
{
	char hex[3];

	begin(j, key);
	put(j, "\"");
	for (size_t i = 0; i < n; i++) {
		hex_encode(bytes + i, 1, hex);
		put(j, hex);
	}
	put(j, "\"");
}

void verity_json_digest(struct verity_json *j, const char *key,
			const struct verity_digest *d)
{
	char text[VERITY_DIGEST_TEXT];

	verity_digest_format(d, text);
	verity_json_string(j, key, text);
}

void verity_json_u64(struct verity_json *j, const char *key, uint64_t value)
{
	begin(j, key);
	verity_text_printf(&j->out, "%" PRIu64, value);
}

void verity_json_double(struct verity_json *j, const char *key, double value)
{
	if (!isfinite(value)) {
		verity_json_null(j, key); /* JSON has no other way to say it */
		return;
	}
	begin(j, key);
	verity_text_printf(&j->out, "%.6g", value);
}

void verity_json_bool(struct verity_json *j, const char *key, bool value)
{
	begin(j, key);
	put(j, value ? "true" : "false");
}

void verity_json_null(struct verity_json *j, const char *key)
{
	begin(j, key);
	put(j, "null");
}

void verity_json_free(struct verity_json *j)
{
	verity_text_free(&j->out);
	j->comma = false;
}
