/* SPDX-License-Identifier: MIT */
/*
 * merkle/plan.c - time the kernels and plan every batch.  Layer: merkle.
 *
 * Which kernel is best can not be told from the CPU's features: against
 * libcrypto, 16 lanes of AVX-512 gave 2.2x on an Emerald Rapids and 2.1x on a
 * Zen 4, but four streams of SHA-NI 1.1x on the first and 2.4x on the second.
 * And a call that hashes 16 blocks is a poor way to hash two.  So everything
 * is measured, once a process, and each batch size gets the sequence of calls
 * that costs least.
 */
#include "merkle/plan.h"

#include "merkle/cpu.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* Fewest lanes first, as rows_worth_it() wants it. */
const struct verity_kernel verity_kernels[] = {
	{ "libcrypto", 0, 1, verity_evp_x1 },
#ifdef __x86_64__
	{ "shani-x1", VERITY_CPU_SHANI, 1, verity_shani_x1 },
	{ "shani-x2", VERITY_CPU_SHANI, 2, verity_shani_x2 },
	{ "shani-x3", VERITY_CPU_SHANI, 3, verity_shani_x3 },
	{ "shani-x4", VERITY_CPU_SHANI, 4, verity_shani_x4 },
	{ "hybrid-x4", VERITY_CPU_SHANI | VERITY_CPU_AVX512, 4,
	  verity_hybrid_x4 },
	{ "avx2-x8", VERITY_CPU_AVX2, 8, verity_avx2_x8 },
	{ "avx512-x16", VERITY_CPU_AVX512, 16, verity_avx512_x16 },
#endif
#ifdef __aarch64__
	{ "armv8-x1", VERITY_CPU_SHA2, 1, verity_armv8_x1 },
	{ "armv8-x2", VERITY_CPU_SHA2, 2, verity_armv8_x2 },
	{ "armv8-x4", VERITY_CPU_SHA2, 4, verity_armv8_x4 },
#endif
	{ NULL, 0, 0, NULL },
};

/*
 * A virtual machine steals time in bursts, so a mean says little: each kernel
 * runs REPS times, in turns, and its fastest run counts.  A run hashes at
 * least RUN_BLOCKS, long enough for a clock that ticks 40 ns apart.
 */
enum { REPS = 9, RUN_BLOCKS = 4, MAX_PROBE = 4096 };

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Return: 0 and nanoseconds for one call, never 0; or a negative errno. */
static int time_call(const struct verity_kernel *k,
		     const struct verity_hasher *h, const void *const *blocks,
		     double *ns)
{
	uint8_t out[32 * VERITY_MAX_LANES];
	unsigned int calls = (RUN_BLOCKS + k->lanes - 1) / k->lanes;
	double start = now_ns();
	int err = 0;

	for (unsigned int i = 0; !err && i < calls; i++)
		err = k->run(h, blocks, out);
	*ns = (now_ns() - start) / calls + 1e-3;
	return err;
}

static int time_kernels(struct verity_plan *plan, const struct verity_hasher *h,
			const void *const *blocks)
{
	const struct verity_kernel *k;
	double ns;
	int err = 0;

	for (size_t i = 0; !err && (k = &verity_kernels[i])->name; i++) {
		if (k->needs & ~plan->features)
			continue;
		err = time_call(k, h, blocks, &ns);
		if (plan->ns[i] <= 0 || ns < plan->ns[i])
			plan->ns[i] = ns;
	}
	return err;
}

/*
 * A row with more lanes costs more where a batch does not fill them, and the
 * measurement is worth no more than a few percent.  So it counts only when it
 * is clearly cheaper for a block than all rows before it.
 *
 * Return: a bit for each row that counts; the last of them serves long runs.
 */
static uint32_t rows_worth_it(struct verity_plan *plan)
{
	double best = 0, cost;
	uint32_t rows = 0;

	for (size_t i = 0; verity_kernels[i].name; i++) {
		cost = plan->ns[i] / verity_kernels[i].lanes;
		if (cost <= 0 || (rows && cost > 0.98 * best))
			continue;
		best = cost;
		rows |= 1U << i;
		plan->bulk = (uint8_t)i;
	}
	return rows;
}

/*
 * The cheapest call to begin n blocks with, when every smaller batch is
 * planned already.  A kernel with more lanes than blocks costs a full call.
 * costs[n] becomes nanoseconds for all n blocks.
 */
static void plan_batch(struct verity_plan *plan, uint32_t rows, size_t n,
		       double *costs)
{
	double cost;
	size_t lanes;

	for (size_t i = 0; verity_kernels[i].name; i++) {
		if (!(rows & 1U << i))
			continue;
		lanes = verity_kernels[i].lanes;
		cost = plan->ns[i] + (n > lanes ? costs[n - lanes] : 0);
		/* Of equal sequences, the one that begins with most lanes. */
		if (costs[n] > 0 && cost > costs[n] * 1.000001)
			continue;
		costs[n] = cost;
		plan->first[n] = (uint8_t)i;
	}
}

int verity_plan_make(struct verity_plan *plan, uint32_t features,
		     const struct verity_hasher *probe)
{
	static const uint8_t zeros[MAX_PROBE];
	const void *blocks[VERITY_MAX_LANES];
	double costs[VERITY_HASH_BATCH + 1] = { 0 };
	uint32_t rows;
	int err = 0;

	memset(plan, 0, sizeof(*plan));
	plan->features = features;
	plan->probe_len = probe->len;
	for (size_t i = 0; i < VERITY_MAX_LANES; i++)
		blocks[i] = zeros;
	for (int i = 0; !err && i < REPS; i++)
		err = time_kernels(plan, probe, blocks);
	if (err)
		return err;
	rows = rows_worth_it(plan);
	for (size_t n = 1; n <= VERITY_HASH_BATCH; n++)
		plan_batch(plan, rows, n, costs);
	return 0;
}

/* Fewer blocks than lanes: the others hash the first block once more. */
static int run_padded(const struct verity_kernel *k,
		      const struct verity_hasher *h, const void *const *blocks,
		      size_t n, uint8_t *out)
{
	const void *padded[VERITY_MAX_LANES];
	uint8_t digests[32 * VERITY_MAX_LANES];
	int err;

	for (size_t i = 0; i < k->lanes; i++)
		padded[i] = blocks[i < n ? i : 0];
	err = k->run(h, padded, digests);
	if (!err)
		memcpy(out, digests, n * 32);
	return err;
}

int verity_plan_run(const struct verity_plan *plan,
		    const struct verity_hasher *h, const void *const *blocks,
		    size_t n, uint8_t *out)
{
	const struct verity_kernel *k;
	int err = 0;

	while (!err && n) {
		k = &verity_kernels[n > VERITY_HASH_BATCH ? plan->bulk
							  : plan->first[n]];
		if (n < k->lanes)
			return run_padded(k, h, blocks, n, out);
		err = k->run(h, blocks, out);
		n -= k->lanes;
		blocks += k->lanes;
		out += (size_t)32 * k->lanes;
	}
	return err;
}

/* Return: the name of one feature in @missing, or NULL when it is empty. */
static const char *feature_missing(uint32_t missing)
{
	const char *name;
	uint32_t bit;

	for (size_t i = 0; (name = verity_cpu_name(i, &bit)); i++)
		if (bit & missing)
			return name;
	return NULL;
}

int verity_plan_row(const struct verity_plan *plan, size_t i,
		    struct verity_hash_row *out)
{
	const struct verity_kernel *k = verity_kernels;

	while (k->name && i--)
		k++;
	if (!k->name)
		return -ENOENT;
	i = (size_t)(k - verity_kernels);
	out->name = k->name;
	out->lanes = k->lanes;
	out->lacks = feature_missing(k->needs & ~plan->features);
	out->ns_per_kib =
		plan->ns[i] * 1024 / ((double)plan->probe_len * k->lanes);
	out->batches = 0;
	for (size_t n = 1; n <= VERITY_HASH_BATCH; n++)
		out->batches += plan->first[n] == i;
	out->bulk = plan->bulk == i;
	return 0;
}
