/* SPDX-License-Identifier: MIT */
/* tools/inspect_cpu.c - show how this CPU hashes, measured.  Layer: tools. */
#include "merkle/cpu.h"
#include "merkle/hash.h"
#include "tools/inspect.h"

#include <stdio.h>
#include <stdlib.h>

/* VERITY_CPU was found to be well-formed before the command began. */
static uint32_t features(const char *off)
{
	uint32_t bits = 0;

	if (verity_cpu_features(off, &bits, NULL))
		return 0;
	return bits;
}

static void show_features(struct report *r)
{
	uint32_t found = features(NULL), used = features(getenv("VERITY_CPU"));
	const char *name;
	uint32_t bit;

	report_group(r, "features");
	for (size_t i = 0; (name = verity_cpu_name(i, &bit)); i++)
		report_string(r, name,
			      used & bit    ? "yes"
			      : found & bit ? "switched off by VERITY_CPU"
					    : "no");
	report_group_end(r);
}

static uint32_t bit_of(const char *feature)
{
	const char *name;
	uint32_t bit;

	for (size_t i = 0; (name = verity_cpu_name(i, &bit)); i++)
		if (name == feature)
			return bit;
	return 0;
}

/* Return: why no batch begins with it, or NULL where one does. */
static const char *why_not(const struct verity_hash_row *row, char *buf,
			   size_t room)
{
	if (!row->lacks)
		return row->bulk || row->batches ? NULL : "slower";
	if (bit_of(row->lacks) & features(NULL))
		snprintf(buf, room, "%s is switched off", row->lacks);
	else
		snprintf(buf, room, "this CPU lacks %s", row->lacks);
	return buf;
}

static void json_row(struct report *r, const struct verity_hash_row *row,
		     const char *why)
{
	report_row(r);
	report_string(r, "name", row->name);
	report_u64(r, "lanes", row->lanes);
	if (row->ns_per_kib > 0) {
		report_double(r, "ns_per_kib", row->ns_per_kib);
		report_double(r, "gb_per_s", 1024 / row->ns_per_kib);
	}
	report_bool(r, "bulk", row->bulk);
	report_u64(r, "batches", row->batches);
	if (why)
		report_string(r, "why_not", why);
	report_row_end(r);
}

/* Bytes in a nanosecond are gigabytes in a second. */
static void text_row(struct report *r, const struct verity_hash_row *row,
		     const char *why)
{
	struct verity_text *t = &r->j.out;

	verity_text_printf(t, "    %-12s %5u", row->name, row->lanes);
	if (row->ns_per_kib > 0)
		verity_text_printf(t, "  %6.1f  %5.2f  ", row->ns_per_kib,
				   1024 / row->ns_per_kib);
	else
		verity_text_printf(t, "  %6s  %5s  ", "-", "-");
	if (why)
		verity_text_printf(t, "no: %s\n", why);
	else
		verity_text_printf(t, "%sfirst for %u of %d batch sizes\n",
				   row->bulk ? "long runs, " : "", row->batches,
				   VERITY_HASH_BATCH);
}

static void show_kernels(struct report *r)
{
	struct verity_hash_row row;
	char buf[64];

	report_list(r, "kernels");
	if (!r->json)
		verity_text_printf(&r->j.out, "    %-12s %5s  %6s  %5s  %s\n",
				   "name", "lanes", "ns/KiB", "GB/s", "used");
	for (size_t i = 0; verity_hash_row(i, &row) == 0; i++) {
		const char *why = why_not(&row, buf, sizeof(buf));

		if (r->json)
			json_row(r, &row, why);
		else
			text_row(r, &row, why);
	}
	report_list_end(r);
}

int inspect_cpu(struct report *r)
{
	report_begin(r, NULL, "cpu", "SHA-256 on this CPU, one core");
	show_features(r);
	show_kernels(r);
	return report_end(r);
}
