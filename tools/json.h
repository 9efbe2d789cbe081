/* SPDX-License-Identifier: MIT */
/*
 * tools/json.h - write JSON.  Layer: tools.
 *
 * Commas and colons are put by the writer.  Bytes of a string that are not
 * UTF-8 (a file name may hold any) come out as lone surrogates \udc80 to
 * \udcff, as Python's surrogateescape reads them back.
 */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include "merkle/text.h"

#include <stdbool.h>

/** Begin with a zeroed struct; the text so far is in out. */
struct json {
	struct verity_text out;
	bool comma; /* the next value needs one before it */
};

/* @key is NULL inside an array and for the outermost value. */
void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
void json_end(struct json *j, char bracket); /* '}' or ']' */
void json_string(struct json *j, const char *key, const char *value);
void json_hex(struct json *j, const char *key, const uint8_t *bytes, size_t n);
void json_digest(struct json *j, const char *key,
		 const struct verity_digest *d);
void json_u64(struct json *j, const char *key, uint64_t value);
void json_double(struct json *j, const char *key, double value);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

/**
 * json_print() - write the text and a newline to standard output in one
 * piece, and begin anew
 *
 * Return: 0, -ENOMEM, or what the write gave.
 */
VERITY_MUST_CHECK int json_print(struct json *j);

/** json_finish() - print it and free its memory; Return: as json_print() */
VERITY_MUST_CHECK int json_finish(struct json *j);

void json_free(struct json *j);

#endif /* TOOLS_JSON_H */
