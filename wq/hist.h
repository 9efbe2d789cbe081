/* SPDX-License-Identifier: MIT */
/*
 * wq/hist.h - log-linear histograms of nanoseconds.
 *
 * A value below 2^bits has a bin of its own; above, each octave has 2^bits
 * bins, so that with 7 bits the middle of a bin is off by at most 0.4 %.  The
 * last bin is open: it takes all from 2^WQ_HIST_TOP ns (68.7 s) up.  Count,
 * minimum, maximum, sum and sum of squares are exact and do not come from the
 * bins.  (HdrHistogram and fio's latency bins have this shape.)
 *
 * One thread writes a histogram; any may read it meanwhile, without stopping
 * it.  What a reader gets is some prefix of what was written for each field:
 * the sum of the bins and the count may differ by values being written just
 * then, and are equal once the writer rests.
 */
#ifndef WQ_HIST_H
#define WQ_HIST_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define WQ_HIST_TOP  36 /* octaves end here */
#define WQ_HIST_BITS 7  /* the usual precision; 5 when memory is short */

/**
 * struct wq_hist - one histogram, in memory of its own
 * @sum_lo, @sum_hi, @sq_lo, @sq_hi: 128 bits each
 */
struct wq_hist {
	unsigned int bits;
	unsigned int bins;
	_Atomic uint64_t count;
	_Atomic uint64_t min; /* UINT64_MAX while count is 0 */
	_Atomic uint64_t max;
	_Atomic uint64_t sum_lo, sum_hi;
	_Atomic uint64_t sq_lo, sq_hi;
	_Atomic uint32_t bin[];
};

/** wq_hist_bins(), wq_hist_bytes() - for @bits, which is 1 to 8 */
unsigned int wq_hist_bins(unsigned int bits);
size_t wq_hist_bytes(unsigned int bits);

/** wq_hist_init() - make @hist, of wq_hist_bytes(@bits) bytes, empty */
void wq_hist_init(struct wq_hist *hist, unsigned int bits);

/** wq_hist_bin() - Return: the bin of @ns */
unsigned int wq_hist_bin(unsigned int bits, uint64_t ns);

/** wq_hist_low(), wq_hist_high() - the least and the greatest value of a bin */
uint64_t wq_hist_low(unsigned int bits, unsigned int bin);
uint64_t wq_hist_high(unsigned int bits, unsigned int bin);

/** wq_hist_add() - the writer's */
void wq_hist_add(struct wq_hist *hist, uint64_t ns);

/**
 * struct wq_hist_sum - several histograms taken together, by a reader
 *
 * Zero it, but @bits, which says how fine; a histogram of other bits can be
 * merged when it is the finer.
 */
struct wq_hist_sum {
	unsigned int bits;
	uint64_t count;
	uint64_t min;
	uint64_t max;
	unsigned __int128 sum;
	unsigned __int128 sq;
	uint64_t *bin; /* wq_hist_bins(bits), from the first merge on */
};

/** wq_hist_merge() - Return: 0, -ENOMEM, or -EINVAL for coarser @hist */
int wq_hist_merge(struct wq_hist_sum *sum, const struct wq_hist *hist);
void wq_hist_sum_free(struct wq_hist_sum *sum);

/**
 * wq_hist_quantile() - the smallest value with at least @q of all at or below
 * @q: 0 to 1
 *
 * Return: the middle of the bin where it falls, held within min and max, which
 * are exact; 0 when empty.
 */
uint64_t wq_hist_quantile(const struct wq_hist_sum *sum, double q);
double wq_hist_mean(const struct wq_hist_sum *sum);
/** wq_hist_sd() - of a sample (n - 1); 0 below two values */
double wq_hist_sd(const struct wq_hist_sum *sum);

#endif /* WQ_HIST_H */
