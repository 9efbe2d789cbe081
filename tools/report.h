/* SPDX-License-Identifier: MIT */
/*
 * tools/report.h - the same facts as indented text or as one JSON object.
 *
 * Layer: tools.  A fact has one name, "block_size"; text shows it as "block
 * size".  Nothing is printed before report_end(), so what turns out malformed
 * half-way prints nothing.
 */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

#include "merkle/json.h"

/** Begin with a zeroed struct, but for json. */
struct report {
	bool json;
	struct verity_json j; /* its text is also that of a text report */
	unsigned int depth;   /* of groups */
	bool row;             /* in a row: facts share the line */
	bool first;           /* of the row's facts */
};

/** report_begin() - about @path, or no file where that is NULL; @id says of
 * what kind it is in JSON, @title in text */
void report_begin(struct report *r, const char *path, const char *id,
		  const char *title);

void report_string(struct report *r, const char *name, const char *value);
void report_u64(struct report *r, const char *name, uint64_t value);
void report_double(struct report *r, const char *name, double value);
void report_bool(struct report *r, const char *name, bool value);
void report_hex(struct report *r, const char *name, const uint8_t *bytes,
		size_t n);
void report_digest(struct report *r, const char *name,
		   const struct verity_digest *d);

/** report_group() - facts that belong together, up to report_group_end() */
void report_group(struct report *r, const char *name);
void report_group_end(struct report *r);

/** report_list() - rows, up to report_list_end(); each row's facts are given
 * between report_row() and report_row_end() */
void report_list(struct report *r, const char *name);
void report_row(struct report *r);
void report_row_end(struct report *r);
void report_list_end(struct report *r);

/** report_end() - print it; Return: 0, -ENOMEM or what the write gave */
VERITY_MUST_CHECK int report_end(struct report *r);

/** report_drop() - forget it; also what frees the struct's memory */
void report_drop(struct report *r);

#endif /* TOOLS_REPORT_H */
