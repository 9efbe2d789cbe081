/* SPDX-License-Identifier: MIT */
/* Any sidecar is refused, or its head is the one way to write what it says
 * and its tree lies within it. */
#include "merkle/le.h"
#include "merkle/meta.h"
#include "t/replay.h"

#include <stdlib.h>
#include <string.h>

static void try_head(const uint8_t *head, uint64_t file_size)
{
	struct verity_complaint why = { 0 };
	uint8_t again[VERITY_META_HEAD];
	struct verity_meta m;

	if (verity_meta_decode(head, file_size, &m, &why)) {
		if (!why.field || !why.rule)
			abort();
		return;
	}
	verity_meta_encode(&m, again);
	if (memcmp(again, head, sizeof(again)) != 0)
		abort();
	if (m.tree_pos < VERITY_META_HEAD + (uint64_t)m.sig_size ||
	    m.tree_pos % VERITY_META_ALIGN != 0)
		abort();
	if (m.tree_size &&
	    (m.tree_pos > file_size || m.tree_size != file_size - m.tree_pos))
		abort();
}

/* The last 8 bytes, or what the head itself implies, is the file's size. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t all[VERITY_META_HEAD + 8] = { 0 };
	struct verity_complaint why = { 0 };
	struct verity_meta m;

	if (len > sizeof(all))
		len = sizeof(all);
	memcpy(all, data, len);
	try_head(all, get_le64(all + VERITY_META_HEAD));
	if (verity_meta_decode(all, 0, &m, &why) &&
	    !strcmp(why.field, "sidecar size"))
		try_head(all, why.limit);
	return 0;
}
