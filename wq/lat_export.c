/* SPDX-License-Identifier: MIT */
#include "wq/lat_export.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>

#define BAR        50 /* columns of the longest bar */
#define HALF_LINES 5  /* lines of .hgrm text a halving */

static uint64_t total(const struct wq_hist_sum *sum)
{
	uint64_t n = 0;

	for (unsigned int i = 0; sum->bin && i < wq_hist_bins(sum->bits); i++)
		n += sum->bin[i];
	return n;
}

static uint64_t up_to(const struct wq_hist_sum *sum, uint64_t value)
{
	unsigned int last = wq_hist_bin(sum->bits, value);
	uint64_t n = 0;

	for (unsigned int i = 0; i <= last; i++)
		n += sum->bin[i];
	return n;
}

int wq_hist_write_hgrm(FILE *file, const struct wq_hist_sum *sum,
		       const char *title)
{
	uint64_t n = total(sum);
	double rest = 1;

	if (!n)
		return -EINVAL;
	fprintf(file, "#[%s]\n%12s %14s %10s %14s\n\n", title, "Value",
		"Percentile", "TotalCount", "1/(1-Percentile)");
	for (bool last = false; !last;) {
		for (int i = 0; !last && i < HALF_LINES; i++) {
			double q = 1 - rest + rest / 2 * i / HALF_LINES;
			uint64_t value = wq_hist_quantile(sum, q);

			last = up_to(sum, value) == n;
			fprintf(file,
				"%12" PRIu64 " %2.12f %10" PRIu64 " %14.2f\n",
				value, last ? 1.0 : q, up_to(sum, value),
				last ? (double)n : 1 / (1 - q));
		}
		rest /= 2;
	}
	fprintf(file,
		"#[Mean    = %12.3f, StdDeviation   = %12.3f]\n"
		"#[Max     = %12" PRIu64 ", Total count    = %12" PRIu64 "]\n"
		"#[Buckets = %12d, SubBuckets     = %12u]\n",
		wq_hist_mean(sum), wq_hist_sd(sum), sum->max, n,
		WQ_HIST_TOP - (int)sum->bits + 1, 1u << sum->bits);
	return ferror(file) ? -EIO : 0;
}

int wq_hist_write_log2(FILE *file, const struct wq_hist_sum *sum,
		       const char *title)
{
	uint64_t octave[65] = { 0 }, most = 0;
	int first = 64, last = 0;

	if (!total(sum))
		return -EINVAL;
	for (unsigned int i = 0; i < wq_hist_bins(sum->bits); i++) {
		uint64_t low = wq_hist_low(sum->bits, i);
		int o = low ? 64 - __builtin_clzll(low) : 0;

		octave[o] += sum->bin[i];
	}
	for (int o = 0; o < 65; o++) {
		if (!octave[o])
			continue;
		most = octave[o] > most ? octave[o] : most;
		first = o < first ? o : first;
		last = o;
	}
	fprintf(file, "%s\n", title);
	for (int o = first; o <= last; o++) {
		int bar = (int)((octave[o] * BAR + most - 1) / most);

		fprintf(file,
			"%12" PRIu64 " .. %12" PRIu64 " : %-10" PRIu64
			"|%.*s\n",
			o ? UINT64_C(1) << (o - 1) : 0,
			o ? (UINT64_C(1) << (o - 1)) * 2 - 1 : 0, octave[o],
			bar,
			"**************************************************");
	}
	return ferror(file) ? -EIO : 0;
}

int wq_hist_write_json(FILE *file, const struct wq_hist_sum *sum)
{
	const char *comma = "";

	if (!total(sum))
		return -EINVAL;
	fprintf(file,
		"{\"count\":%" PRIu64 ",\"min\":%" PRIu64 ",\"max\":%" PRIu64
		",\"mean\":%.3f,\"sd\":%.3f,\"bins\":[",
		sum->count, sum->min, sum->max, wq_hist_mean(sum),
		wq_hist_sd(sum));
	for (unsigned int i = 0; i < wq_hist_bins(sum->bits); i++) {
		uint64_t high = wq_hist_high(sum->bits, i);

		if (!sum->bin[i])
			continue;
		fprintf(file, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", comma,
			wq_hist_low(sum->bits, i),
			high > sum->max ? sum->max : high, sum->bin[i]);
		comma = ",";
	}
	fputs("]}\n", file);
	return ferror(file) ? -EIO : 0;
}
