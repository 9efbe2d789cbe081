/* SPDX-License-Identifier: MIT */
/* Complaints compared with what they must say, for tests written in C. */
#include "t/complaint.h"

#include "t/tap.h"

#include <string.h>

bool complaint_says(const struct verity_complaint *c, const char *field,
		    uint64_t value, const char *rule, uint64_t limit)
{
	bool same = c->field && c->rule && !strcmp(c->field, field) &&
		    !strcmp(c->rule, rule) && c->value == value &&
		    c->limit == limit;

	if (!same)
		diag("got: %s is %llu, %s %llu", c->field ? c->field : "?",
		     (unsigned long long)c->value, c->rule ? c->rule : "?",
		     (unsigned long long)c->limit);
	return same;
}
