/* SPDX-License-Identifier: MIT */
/* Growing text and escaped paths.  Layer: merkle. */
#include "merkle/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The characters a line-based format can not hold, and how each is spelt. */
static const char raw[] = "\n\r\t\\", spelt[] = "nrt\\";

static int reserve(struct verity_text *t, size_t more)
{
	size_t want = t->len + more + 1, room = t->room ? t->room : 256;
	char *s;

	if (t->err)
		return t->err;
	if (want <= t->room)
		return 0;
	while (room < want)
		room *= 2;
	s = realloc(t->s, room);
	if (!s)
		return t->err = -ENOMEM;
	t->s = s;
	t->room = room;
	return 0;
}

void verity_text_put(struct verity_text *t, const char *bytes, size_t n)
{
	if (reserve(t, n))
		return;
	memcpy(t->s + t->len, bytes, n);
	t->len += n;
	t->s[t->len] = '\0';
}

/* Most of what is written fits; then it is formatted once. */
void verity_text_printf(struct verity_text *t, const char *fmt, ...)
{
	va_list ap;
	size_t left;
	int n;

	if (reserve(t, 128))
		return;
	left = t->room - t->len;
	va_start(ap, fmt);
	n = vsnprintf(t->s + t->len, left, fmt, ap);
	va_end(ap);
	if (n > 0 && (size_t)n >= left) {
		if (reserve(t, (size_t)n))
			return;
		va_start(ap, fmt);
		vsnprintf(t->s + t->len, (size_t)n + 1, fmt, ap);
		va_end(ap);
	}
	t->len += n > 0 ? (size_t)n : 0;
}

void verity_text_path(struct verity_text *t, const char *path)
{
	while (*path) {
		size_t plain = strcspn(path, raw);
		const char *at;
		char esc[2] = { '\\' };

		verity_text_put(t, path, plain);
		path += plain;
		if (!*path)
			break;
		at = strchr(raw, *path++);
		esc[1] = spelt[at - raw];
		verity_text_put(t, esc, sizeof(esc));
	}
}

void verity_text_clear(struct verity_text *t)
{
	t->len = 0;
	if (t->s)
		t->s[0] = '\0';
}

void verity_text_free(struct verity_text *t)
{
	free(t->s);
	memset(t, 0, sizeof(*t));
}

int verity_unescape(char *s)
{
	char *out = s;

	for (; *s; s++) {
		const char *at;

		if (*s != '\\') {
			if (strchr(raw, *s))
				return -EINVAL;
			*out++ = *s;
			continue;
		}
		at = s[1] ? strchr(spelt, s[1]) : NULL;
		if (!at)
			return -EINVAL;
		*out++ = raw[at - spelt];
		s++;
	}
	*out = '\0';
	return 0;
}
