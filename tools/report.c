/* SPDX-License-Identifier: MIT */
/* tools/report.c - facts as text or JSON.  Layer: tools. */
#include "tools/report.h"

#include "merkle/hex.h"
#include "tools/out.h"
#include "tools/say.h"

#include <inttypes.h>
#include <stdio.h>

/* Text: the line's beginning, up to the value. */
static void label(struct report *r, const char *name)
{
	struct verity_text *t = &r->j.out;

	if (r->row && !r->first)
		verity_text_put(t, ", ", 2);
	r->first = false;
	for (unsigned int i = 0; !r->row && i < r->depth; i++)
		verity_text_put(t, "  ", 2);
	for (; *name; name++)
		verity_text_put(t, *name == '_' ? " " : name, 1);
	if (!r->row)
		verity_text_put(t, ":", 1);
}

static void end_line(struct report *r)
{
	if (!r->row)
		verity_text_put(&r->j.out, "\n", 1);
}

/* A value that is text in both forms. */
static void put(struct report *r, const char *name, const char *value)
{
	label(r, name);
	verity_text_put(&r->j.out, " ", 1);
	text_visible(&r->j.out, value);
	end_line(r);
}

void report_begin(struct report *r, const char *path, const char *id,
		  const char *title)
{
	if (r->json) {
		verity_json_object(&r->j, NULL);
		if (path)
			verity_json_string(&r->j, "path", path);
		verity_json_string(&r->j, "format", id);
		return;
	}
	if (path) {
		text_visible(&r->j.out, path);
		verity_text_put(&r->j.out, ": ", 2);
	}
	verity_text_printf(&r->j.out, "%s\n", title);
	r->depth = 1;
}

void report_string(struct report *r, const char *name, const char *value)
{
	if (r->json)
		verity_json_string(&r->j, name, value);
	else
		put(r, name, value);
}

void report_u64(struct report *r, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	if (r->json)
		verity_json_u64(&r->j, name, value);
	else
		put(r, name, text);
}

void report_double(struct report *r, const char *name, double value)
{
	char text[400];

	snprintf(text, sizeof(text), "%.2f", value);
	if (r->json)
		verity_json_double(&r->j, name, value);
	else
		put(r, name, text);
}

void report_bool(struct report *r, const char *name, bool value)
{
	if (r->json)
		verity_json_bool(&r->j, name, value);
	else
		put(r, name, value ? "yes" : "no");
}

void report_hex(struct report *r, const char *name, const uint8_t *bytes,
		size_t n)
{
	char hex[3];

	if (r->json) {
		verity_json_hex(&r->j, name, bytes, n);
		return;
	}
	label(r, name);
	verity_text_put(&r->j.out, " ", 1);
	for (size_t i = 0; i < n; i++) {
		hex_encode(bytes + i, 1, hex);
		verity_text_put(&r->j.out, hex, 2);
	}
	if (!n)
		verity_text_put(&r->j.out, "none", 4);
	end_line(r);
}

void report_digest(struct report *r, const char *name,
		   const struct verity_digest *d)
{
	char text[VERITY_DIGEST_TEXT];

	verity_digest_format(d, text);
	report_string(r, name, text);
}

static void open_part(struct report *r, const char *name)
{
	label(r, name);
	end_line(r);
	r->depth++;
}

void report_group(struct report *r, const char *name)
{
	if (r->json)
		verity_json_object(&r->j, name);
	else
		open_part(r, name);
}

void report_group_end(struct report *r)
{
	if (r->json)
		verity_json_end(&r->j, '}');
	else
		r->depth--;
}

void report_list(struct report *r, const char *name)
{
	if (r->json)
		verity_json_array(&r->j, name);
	else
		open_part(r, name);
}

void report_row(struct report *r)
{
	if (r->json) {
		verity_json_object(&r->j, NULL);
		return;
	}
	for (unsigned int i = 0; i < r->depth; i++)
		verity_text_put(&r->j.out, "  ", 2);
	r->row = true;
	r->first = true;
}

void report_row_end(struct report *r)
{
	r->row = false;
	if (r->json)
		verity_json_end(&r->j, '}');
	else
		end_line(r);
}

void report_list_end(struct report *r)
{
	if (r->json)
		verity_json_end(&r->j, ']');
	else
		r->depth--;
}

int report_end(struct report *r)
{
	int err = r->j.out.err;

	if (r->json) {
		verity_json_end(&r->j, '}');
		return json_print(&r->j);
	}
	if (!err)
		err = out_put(r->j.out.s, r->j.out.len);
	verity_text_clear(&r->j.out);
	return err;
}

void report_drop(struct report *r)
{
	bool json = r->json;

	verity_json_free(&r->j);
	*r = (struct report){ .json = json };
}
