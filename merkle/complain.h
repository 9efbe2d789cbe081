/* SPDX-License-Identifier: MIT */
/* merkle/complain.h - private: refuse a value, saying which and why. */
#ifndef MERKLE_COMPLAIN_H
#define MERKLE_COMPLAIN_H

#include "merkle/verity.h"

/* The rules that metadata breaks; what a complaint's .rule points to. */
#define RULE_EQUAL "must be"
#define RULE_MOST  "must be at most"
#define RULE_LEAST "must be at least"
#define RULE_POW2  "must be a power of two of at most"
#define RULE_ZERO  "must be all zero; first other byte is at"

/**
 * complain() - fill in a complaint and hand its error on
 * @why: may be NULL
 *
 * Return: @err.
 */
static inline int complain(struct verity_complaint *why, int err,
			   const char *field, uint64_t value, const char *rule,
			   uint64_t limit)
{
	if (why)
		*why = (struct verity_complaint){ field, rule, value, limit };
	return err;
}

#endif /* MERKLE_COMPLAIN_H */
