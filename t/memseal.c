/* SPDX-License-Identifier: MIT */
/* Seals bytes in memory, for tests written in C. */
#include "t/memseal.h"

#include "t/tap.h"

#include <errno.h>
#include <string.h>

static int keep(void *arg, unsigned int level, uint64_t index, size_t count,
		const void *blocks)
{
	const struct memseal *m = arg;
	const uint8_t *from = blocks;
	uint32_t bs = m->p.block_size;
	uint64_t at;
	int err = verity_tree_offset(&m->p, m->size, level, index, &at);

	if (err)
		return err;
	at = at / bs * m->stride;
	for (; count; count--, from += bs, at += m->stride) {
		if (at + bs > m->room)
			return -ENOSPC;
		memcpy(m->tree + at, from, bs);
	}
	return 0;
}

void memseal(struct memseal *m)
{
	struct verity_build *b;

	if (verity_build_new(&m->p, keep, m, &b) ||
	    verity_build_add(b, m->data, m->size) ||
	    verity_build_end(b, &m->digest, m->raw))
		bail("cannot seal %zu bytes", m->size);
	verity_build_free(b);
}

void memseal_tree(const struct memseal *m, struct verity_tree *t)
{
	struct verity_desc d;

	if (verity_desc_decode(m->raw, &d, NULL) || verity_tree_init(t, &d))
		bail("no tree over %zu bytes", m->size);
}
