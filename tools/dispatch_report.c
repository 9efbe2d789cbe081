/* SPDX-License-Identifier: MIT */
#include "tools/dispatch_report.h"

#include <stdio.h>
#include <string.h>

/* What a ratio should be at most.  @stretch: what it had better be; or 0 */
static const struct limit {
	const char *setup;
	bool spin;
	enum dispatch_figure figure;
	double most;
	double stretch;
} limits[] = {
	{ "pinned", false, DISPATCH_IDLE_P50, 0.60, 0 },
	{ "pinned", false, DISPATCH_IDLE_P99, 0.65, 0 },
	{ "pinned", true, DISPATCH_IDLE_P50, 0.50, 0 },
	{ "pinned", true, DISPATCH_IDLE_P99, 0.65, 0 },
	{ "free", false, DISPATCH_BURST_P50, 0.95, 0.80 },
	{ "free", false, DISPATCH_BURST_MAKESPAN, 0.95, 0.80 },
};

struct ratio {
	double of_rounds[DISPATCH_MAX_ROUNDS];
	double median;     /* of those */
	double of_medians; /* ours to the least of the peers' */
};

static const struct limit *find_limit(const struct dispatch_case *c,
				      enum dispatch_figure figure)
{
	for (size_t i = 0; c->limits && i < sizeof(limits) / sizeof(*limits);
	     i++)
		if (limits[i].figure == figure && limits[i].spin == c->spin &&
		    strcmp(limits[i].setup, c->setup) == 0)
			return &limits[i];
	return NULL;
}

/* "dispatch-pinned-spin-idle-p50", in memory that the next call takes. */
static const char *name_of(const struct dispatch_case *c,
			   enum dispatch_figure figure)
{
	static char name[64];

	snprintf(name, sizeof(name), "dispatch-%s%s-%s", c->setup,
		 c->spin ? "-spin" : "", dispatch_figure_name(figure));
	return name;
}

static double median_of(const struct dispatch_case *c,
			enum dispatch_figure figure, size_t pool)
{
	return stats_of(c->us[figure][pool], c->rounds).median;
}

/* A figure can be 0, where a span is shorter than the clock shows. */
static double divide(double ours, double best)
{
	return best > 0 ? ours / best : ours > 0 ? 1e9 : 1;
}

static void ratio_of(const struct dispatch_case *c, enum dispatch_figure figure,
		     struct ratio *out)
{
	const double(*us)[DISPATCH_MAX_ROUNDS] = c->us[figure];
	double best = median_of(c, figure, 1);

	for (size_t p = 2; p < DISPATCH_POOLS; p++)
		if (median_of(c, figure, p) < best)
			best = median_of(c, figure, p);
	out->of_medians = divide(median_of(c, figure, 0), best);
	for (unsigned int r = 0; r < c->rounds; r++) {
		best = us[1][r];
		for (size_t p = 2; p < DISPATCH_POOLS; p++)
			best = us[p][r] < best ? us[p][r] : best;
		out->of_rounds[r] = divide(us[0][r], best);
	}
	out->median = stats_of(out->of_rounds, c->rounds).median;
}

static const char *verdict(double ratio, double most)
{
	return ratio <= most ? "ok" : "missed";
}

static void print_figure(const struct dispatch_case *c,
			 enum dispatch_figure figure)
{
	const struct limit *limit = find_limit(c, figure);
	const char *name = name_of(c, figure);
	static struct ratio ratio;

	for (size_t p = 0; p < DISPATCH_POOLS; p++)
		printf("%s-%s %.2f us\n", name, c->pools[p]->name,
		       median_of(c, figure, p));
	ratio_of(c, figure, &ratio);
	printf("%s-ratio %.2f x", name, ratio.median);
	if (limit)
		printf(" limit %.2f %s", limit->most,
		       verdict(ratio.median, limit->most));
	if (limit && limit->stretch > 0)
		printf(" stretch %.2f %s", limit->stretch,
		       verdict(ratio.median, limit->stretch));
	printf("\n%s-ratio-of-medians %.2f x\n", name, ratio.of_medians);
}

void dispatch_print(const struct dispatch_case *c)
{
	for (int f = 0; f < DISPATCH_FIGURES; f++)
		print_figure(c, (enum dispatch_figure)f);
}

static void json_figure(struct verity_json *j, const struct dispatch_case *c,
			enum dispatch_figure figure)
{
	const struct limit *limit = find_limit(c, figure);
	static struct ratio ratio;

	ratio_of(c, figure, &ratio);
	verity_json_object(j, NULL);
	verity_json_string(j, "name", name_of(c, figure));
	verity_json_object(j, "samples_us");
	for (size_t p = 0; p < DISPATCH_POOLS; p++)
		stats_json(j, c->pools[p]->name, c->us[figure][p], c->rounds);
	verity_json_end(j, '}');
	verity_json_double(j, "ratio", ratio.median);
	verity_json_double(j, "ratio_of_medians", ratio.of_medians);
	stats_json(j, "ratios", ratio.of_rounds, c->rounds);
	if (limit)
		verity_json_double(j, "limit", limit->most);
	verity_json_end(j, '}');
}

void dispatch_json(struct verity_json *j, const struct dispatch_case *c)
{
	for (int f = 0; f < DISPATCH_FIGURES; f++)
		json_figure(j, c, (enum dispatch_figure)f);
}
