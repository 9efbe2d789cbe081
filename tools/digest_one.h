/* SPDX-License-Identifier: MIT */
/* tools/digest_one.h - digest one operand of verityctl digest.
 * Layer: tools. */
#ifndef TOOLS_DIGEST_ONE_H
#define TOOLS_DIGEST_ONE_H

#include "merkle/verity.h"

struct digest_want {
	struct verity_params params;
	const char *out_tree, *out_desc; /* NULL: not wanted */
};

struct digest_got {
	struct verity_digest digest;
	uint64_t size; /* of the file */
};

/**
 * digest_one() - hash @path, or standard input where that is "-"
 *
 * Says what fails.  Any thread; with outputs, one at a time.
 *
 * Return: 0, or a negative errno.  Outputs are as they were then, unless all
 * was written and only the last step failed, that of taking their names: the
 * tree comes before the descriptor, and may be in place alone.
 */
int digest_one(const struct digest_want *want, const char *path,
	       unsigned int threads, struct digest_got *out);

#endif /* TOOLS_DIGEST_ONE_H */
