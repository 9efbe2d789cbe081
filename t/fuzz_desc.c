/* SPDX-License-Identifier: MIT */
/* Any 256 bytes are refused as a descriptor, or are the one way to write what
 * they say; any text is refused as a digest, or is its name. */
#include "merkle/desc.h"
#include "t/replay.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void try_desc(const uint8_t *raw)
{
	struct verity_complaint why = { 0 };
	uint8_t again[VERITY_DESC_SIZE];
	struct verity_digest digest;
	struct verity_desc d;

	if (verity_desc_decode(raw, &d, &why)) {
		if (!why.field || !why.rule)
			abort();
		return;
	}
	verity_desc_encode(&d, again);
	if (memcmp(again, raw, sizeof(again)) != 0 ||
	    verity_desc_digest(raw, &digest))
		abort();
}

/* The algorithm may be left out, and the digits may be capitals. */
static void try_digest(const char *text)
{
	char again[VERITY_DIGEST_TEXT];
	struct verity_digest d;
	size_t skip = 0;

	if (verity_digest_parse(text, &d))
		return;
	verity_digest_format(&d, again);
	if (!strchr(text, ':'))
		skip = strlen("sha256:");
	if (strcasecmp(again + skip, text) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t raw[VERITY_DESC_SIZE] = { 0 };
	char text[VERITY_DESC_SIZE + 1];

	if (len > sizeof(raw))
		len = sizeof(raw);
	memcpy(raw, data, len);
	try_desc(raw);
	memcpy(text, data, len);
	text[len] = '\0';
	try_digest(text);
	return 0;
}
