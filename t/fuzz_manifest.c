/* SPDX-License-Identifier: MIT */
/* Any text is refused as a manifest, at one of its lines, or is the one way
 * to write what it says; and each of its entries is found. */
#include "merkle/manifest.h"
#include "t/replay.h"

#include <stdlib.h>
#include <string.h>

static size_t lines_of(const uint8_t *data, size_t len)
{
	size_t n = 1;

	for (size_t i = 0; i < len; i++)
		n += data[i] == '\n';
	return n;
}

static void write_again(const struct verity_manifest *m, const uint8_t *data,
			size_t len)
{
	struct verity_text t = { 0 };

	verity_manifest_put_head(&t, &m->head);
	for (size_t i = 0; i < m->count; i++) {
		verity_manifest_put_entry(&t, &m->head, &m->entry[i]);
		if (verity_manifest_find(m, m->entry[i].path) != &m->entry[i])
			abort();
	}
	if (t.err || t.len != len || memcmp(t.s, data, len) != 0)
		abort();
	verity_text_free(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct verity_manifest_error why = { 0 };
	struct verity_manifest m;

	if (verity_manifest_parse((const char *)data, len, &m, &why)) {
		if (!why.what || why.line > lines_of(data, len))
			abort();
		return 0;
	}
	write_again(&m, data, len);
	verity_manifest_free(&m);
	return 0;
}
