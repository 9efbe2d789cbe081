/* SPDX-License-Identifier: MIT */
/*
 * wq/lat_export.h - histograms in the forms that other tools read.
 */
#ifndef WQ_LAT_EXPORT_H
#define WQ_LAT_EXPORT_H

#include "wq/hist.h"

#include <stdio.h>

/*
 * All write to @file and Return: 0, -EINVAL for an empty @sum, or -EIO.
 */

/** wq_hist_write_hgrm() - HdrHistogram's percentile text: value, percentile,
 * count up to there, 1/(1-percentile); five lines each time the rest halves */
int wq_hist_write_hgrm(FILE *file, const struct wq_hist_sum *sum,
		       const char *title);

/** wq_hist_write_log2() - a line an octave, with a bar */
int wq_hist_write_log2(FILE *file, const struct wq_hist_sum *sum,
		       const char *title);

/** wq_hist_write_json() - one object: count, min, max, mean, sd, and every bin
 * that is not empty as [low, high, count] */
int wq_hist_write_json(FILE *file, const struct wq_hist_sum *sum);

#endif /* WQ_LAT_EXPORT_H */
