/* SPDX-License-Identifier: MIT */
/*
 * t/complaint.h - what a refusal must say.
 */
#ifndef T_COMPLAINT_H
#define T_COMPLAINT_H

#include "merkle/verity.h"

#include <stdbool.h>

/* The rules there are. */
#define LEAST "must be at least"
#define MOST  "must be at most"
#define BE    "must be"
#define POW2  "must be a power of two of at most"
#define ZERO  "must be all zero; first other byte is at"

/** complaint_says() - just this?  What it says is printed if not. */
bool complaint_says(const struct verity_complaint *c, const char *field,
		    uint64_t value, const char *rule, uint64_t limit);

#endif /* T_COMPLAINT_H */
