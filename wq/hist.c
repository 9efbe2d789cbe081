/* SPDX-License-Identifier: MIT */
#include "wq/hist.h"

#include <errno.h>
#include <stdlib.h>

unsigned int wq_hist_bins(unsigned int bits)
{
	/* 2^bits of their own, 2^bits for each octave above, the open one. */
	return (1u << bits) * (WQ_HIST_TOP - bits + 1) + 1;
}

size_t wq_hist_bytes(unsigned int bits)
{
	return sizeof(struct wq_hist) + wq_hist_bins(bits) * sizeof(uint32_t);
}

void wq_hist_init(struct wq_hist *hist, unsigned int bits)
{
	hist->bits = bits;
	hist->bins = wq_hist_bins(bits);
	atomic_init(&hist->count, 0);
	atomic_init(&hist->min, UINT64_MAX);
	atomic_init(&hist->max, 0);
	atomic_init(&hist->sum_lo, 0);
	atomic_init(&hist->sum_hi, 0);
	atomic_init(&hist->sq_lo, 0);
	atomic_init(&hist->sq_hi, 0);
	for (unsigned int i = 0; i < hist->bins; i++)
		atomic_init(&hist->bin[i], 0);
}

unsigned int wq_hist_bin(unsigned int bits, uint64_t ns)
{
	unsigned int shift;

	if (ns >> bits == 0)
		return (unsigned int)ns;
	if (ns >> WQ_HIST_TOP)
		return wq_hist_bins(bits) - 1;
	shift = 63 - (unsigned int)__builtin_clzll(ns) - bits;
	/* The top bit of ns >> shift is always set: it counts one octave. */
	return (shift << bits) + (unsigned int)(ns >> shift);
}

uint64_t wq_hist_low(unsigned int bits, unsigned int bin)
{
	unsigned int shift;

	if (bin >> bits == 0)
		return bin;
	shift = (bin >> bits) - 1;
	return (uint64_t)(bin - (shift << bits)) << shift;
}

uint64_t wq_hist_high(unsigned int bits, unsigned int bin)
{
	if (bin + 1 >= wq_hist_bins(bits))
		return UINT64_MAX;
	return wq_hist_low(bits, bin + 1) - 1;
}

/* One writer: load and store are enough.  Readers take what they find. */
static uint64_t get(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void put(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_relaxed);
}

static void add128(_Atomic uint64_t *lo, _Atomic uint64_t *hi,
		   unsigned __int128 value)
{
	unsigned __int128 sum =
		((unsigned __int128)get(hi) << 64 | get(lo)) + value;

	put(lo, (uint64_t)sum);
	if ((uint64_t)(sum >> 64) != get(hi))
		put(hi, (uint64_t)(sum >> 64));
}

void wq_hist_add(struct wq_hist *hist, uint64_t ns)
{
	_Atomic uint32_t *bin = &hist->bin[wq_hist_bin(hist->bits, ns)];

	atomic_store_explicit(
		bin, atomic_load_explicit(bin, memory_order_relaxed) + 1,
		memory_order_relaxed);
	put(&hist->count, get(&hist->count) + 1);
	if (ns < get(&hist->min))
		put(&hist->min, ns);
	if (ns > get(&hist->max))
		put(&hist->max, ns);
	add128(&hist->sum_lo, &hist->sum_hi, ns);
	add128(&hist->sq_lo, &hist->sq_hi, (unsigned __int128)ns * ns);
}

int wq_hist_merge(struct wq_hist_sum *sum, const struct wq_hist *hist)
{
	uint64_t min = get(&hist->min), max = get(&hist->max);

	if (hist->bits < sum->bits)
		return -EINVAL;
	if (!sum->bin) {
		sum->bin = calloc(wq_hist_bins(sum->bits), sizeof(*sum->bin));
		if (!sum->bin)
			return -ENOMEM;
		sum->min = UINT64_MAX;
	}
	for (unsigned int i = 0; i < hist->bins; i++) {
		uint32_t n = atomic_load_explicit(&hist->bin[i],
						  memory_order_relaxed);

		if (n)
			sum->bin[wq_hist_bin(sum->bits,
					     wq_hist_low(hist->bits, i))] += n;
	}
	sum->count += get(&hist->count);
	sum->min = min < sum->min ? min : sum->min;
	sum->max = max > sum->max ? max : sum->max;
	sum->sum += (unsigned __int128)get(&hist->sum_hi) << 64 |
		    get(&hist->sum_lo);
	sum->sq +=
		(unsigned __int128)get(&hist->sq_hi) << 64 | get(&hist->sq_lo);
	return 0;
}

void wq_hist_sum_free(struct wq_hist_sum *sum)
{
	free(sum->bin);
	sum->bin = NULL;
}

static uint64_t middle(const struct wq_hist_sum *sum, unsigned int bin)
{
	uint64_t low = wq_hist_low(sum->bits, bin);
	uint64_t high = wq_hist_high(sum->bits, bin);
	uint64_t value = low + (high - low) / 2;

	value = value > sum->max ? sum->max : value;
	return value < sum->min ? sum->min : value;
}

uint64_t wq_hist_quantile(const struct wq_hist_sum *sum, double q)
{
	unsigned int bins = wq_hist_bins(sum->bits);
	uint64_t total = 0, want, seen = 0;

	if (!sum->bin)
		return 0;
	for (unsigned int i = 0; i < bins; i++)
		total += sum->bin[i];
	if (!total)
		return 0;
	/* Rounded up, but not for what q * total is off by: 0.07 * 100 > 7. */
	want = (uint64_t)(q * (double)total);
	want += q * (double)total - (double)want > 1e-6;
	want = want < 1 ? 1 : want > total ? total : want;
	if (want == total)
		return sum->max;
	for (unsigned int i = 0; i < bins; i++) {
		seen += sum->bin[i];
		if (seen >= want)
			return middle(sum, i);
	}
	return sum->max;
}

double wq_hist_mean(const struct wq_hist_sum *sum)
{
	return sum->count ? (double)sum->sum / (double)sum->count : 0;
}

/* Newton's; not worth a library that nothing else here needs. */
static double root(double x)
{
	double r = x > 1 ? x : 1;

	while ((r + x / r) / 2 < r)
		r = (r + x / r) / 2;
	return r;
}

double wq_hist_sd(const struct wq_hist_sum *sum)
{
	long double n = (long double)sum->count, mean, var;

	if (sum->count < 2)
		return 0;
	mean = (long double)sum->sum / n;
	var = ((long double)sum->sq - n * mean * mean) / (n - 1);
	return var > 0 ? root((double)var) : 0;
}
