/* SPDX-License-Identifier: MIT */
/*
 * merkle/json.h - write JSON.  Layer: merkle.
 *
 * Commas and colons are put by the writer.  Bytes of a string that are not
 * UTF-8 (a file name may hold any) come out as lone surrogates \udc80 to
 * \udcff, as Python's surrogateescape reads them back.
 */
#ifndef MERKLE_JSON_H
#define MERKLE_JSON_H

#include "merkle/text.h"

#include <stdbool.h>

/** Begin with a zeroed struct; the text so far is in out. */
struct verity_json {
	struct verity_text out;
	bool comma; /* the next value needs one before it */
};

/* @key is NULL inside an array and for the outermost value. */
void verity_json_object(struct verity_json *j, const char *key);
void verity_json_array(struct verity_json *j, const char *key);
void verity_json_end(struct verity_json *j, char bracket); /* '}' or ']' */
void verity_json_string(struct verity_json *j, const char *key,
			const char *value);
void verity_json_hex(struct verity_json *j, const char *key,
		     const uint8_t *bytes, size_t n);
void verity_json_digest(struct verity_json *j, const char *key,
			const struct verity_digest *d);
void verity_json_u64(struct verity_json *j, const char *key, uint64_t value);
void verity_json_double(struct verity_json *j, const char *key, double value);
void verity_json_bool(struct verity_json *j, const char *key, bool value);
void verity_json_null(struct verity_json *j, const char *key);

void verity_json_free(struct verity_json *j);

#endif /* MERKLE_JSON_H */
