/* SPDX-License-Identifier: MIT */
/* time-limit: 120
 *
 * A delay planted in one part of a job's way shows in that part, by about as
 * much as was planted, and in no other.
 *
 * All is judged by medians of lone jobs, against those of the same jobs with
 * nothing planted.  Others are at work on the machine, so a case is tried up
 * to three times; what is wrong in the program is wrong each time.
 */
#define WQ_BENCH /* as what it is linked with */
#include "t/tap.h"
#include "t/wq_meas.h"

#include <stdio.h>
#include <string.h>

#define DELAY_NS 3000000u /* far above what else happens */
#define LITTLE   (DELAY_NS / 4)
#define JOBS     31
#define TRIES    3

enum { WATCHED, LONG }; /* classes */

/* Where a delay can be but at a point of wq/pool.h. */
enum { BEHIND = -1, INSIDE = -2 };

struct plant {
	const char *mode;
	enum wq_part part;
	int at; /* enum wq_point, or one of the above */
};

static const struct plant plants[] = {
	{ "bound", WQ_PART_ENQUEUE, WQ_POINT_ENQUEUE },
	{ "bound", WQ_PART_QUEUE, BEHIND },
	{ "bound", WQ_PART_WAKE, WQ_POINT_WAKE },
	{ "bound", WQ_PART_DISPATCH, WQ_POINT_DISPATCH },
	{ "bound", WQ_PART_RUN, INSIDE },
	{ "unbound:system", WQ_PART_ENQUEUE, WQ_POINT_ENQUEUE },
	{ "unbound:system", WQ_PART_QUEUE, BEHIND },
	{ "unbound:system", WQ_PART_WAKE, WQ_POINT_WAKE },
	{ "unbound:system", WQ_PART_DISPATCH, WQ_POINT_DISPATCH },
	{ "unbound:system", WQ_PART_RUN, INSIDE },
	{ "inline", WQ_PART_ENQUEUE, WQ_POINT_ENQUEUE },
	{ "inline", WQ_PART_DISPATCH, WQ_POINT_DISPATCH },
	{ "inline", WQ_PART_RUN, INSIDE },
};

#define PLANTS (sizeof(plants) / sizeof(plants[0]))

/* What one try came to. */
struct verdict {
	int64_t moved[WQ_PART_RUN + 1]; /* of each part's median, ns */
	unsigned int named;             /* worst jobs that name the part */
	char why[320];                  /* of the last of them */
};

static struct wq_pools *pools;
static struct wq *wq;
static int planted_at;
static _Atomic unsigned int begun;

static void delay(void)
{
	uint64_t end = wq_mono_ns() + DELAY_NS;

	while (wq_mono_ns() < end)
		wq_help_sleep(1);
}

static void at_point(enum wq_point point)
{
	if ((int)point == planted_at)
		delay();
}

static void watched(struct wq_work *work)
{
	(void)work;
	if (planted_at == INSIDE)
		delay();
}

static void long_job(struct wq_work *work)
{
	(void)work;
	atomic_fetch_add(&begun, 1);
	delay();
}

/* Something long on every CPU, so that who comes now must wait. */
static void occupy(struct wq_work *work)
{
	unsigned int nr = (unsigned int)wq_pools_topo(pools)->nr;

	atomic_store(&begun, 0);
	for (unsigned int i = 0; i < nr; i++) {
		wq_work_init(&work[i], long_job, LONG);
		wq_queue_on(wq_help_cpu(pools, i), wq, &work[i]);
	}
	wq_help_until(&begun, nr);
}

/* One job at a time, for workers that sleep or are all busy. */
static void lone_jobs(void)
{
	static struct wq_work lone, other[WQ_CPUS];

	for (int i = 0; i < JOBS; i++) {
		wq_help_sleep(2);
		if (planted_at == BEHIND)
			occupy(other);
		wq_work_init(&lone, watched, WATCHED);
		wq_queue_on(wq_help_cpu(pools, 1), wq, &lone);
		wq_meas_flush(wq);
	}
}

static void medians(uint64_t *ns)
{
	struct wq_hist_sum sum;

	for (int p = 0; p <= WQ_PART_RUN; p++) {
		if (wq_lat_read(wq_pools_lat(pools), WQ_ANY, WATCHED, WQ_ANY,
				(enum wq_part)p, &sum) < 0)
			bail("no memory");
		if (sum.count != JOBS)
			bail("%llu jobs were recorded, not %d",
			     (unsigned long long)sum.count, JOBS);
		ns[p] = wq_hist_quantile(&sum, 0.5);
		wq_hist_sum_free(&sum);
	}
}

static void explain(enum wq_part part, struct verdict *out)
{
	struct wq_job worst[WQ_WORST];
	size_t n = wq_lat_worst(wq_pools_lat(pools), worst, WQ_WORST);
	char words[32], why[sizeof(out->why)];

	snprintf(words, sizeof(words), " of it %s:", wq_part_name(part));
	for (size_t i = 0; i < n; i++) {
		if (worst[i].class != WATCHED)
			continue;
		wq_job_why(&worst[i], why, sizeof(why));
		out->named += strstr(why, words) != NULL;
		memcpy(out->why, why, sizeof(why));
	}
}

static void try(const struct plant *plant, struct verdict *out)
{
	static const char *const names[] = { "watched", "long" };
	struct wq_config config = { .classes = 2,
				    .class_names = names,
				    .hog_ns = 1000000000 };
	uint64_t before[WQ_PART_RUN + 1], after[WQ_PART_RUN + 1];
	static const int nowhere = -3;

	memset(out, 0, sizeof(*out));
	pools = wq_help_open(&config, plant->mode, NULL, &wq);
	planted_at = nowhere;
	lone_jobs();
	medians(before);
	wq_lat_reset(wq_pools_lat(pools));
	planted_at = plant->at;
	wq_point = at_point;
	lone_jobs();
	wq_point = NULL;
	medians(after);
	for (int p = 0; p <= WQ_PART_RUN; p++)
		out->moved[p] = (int64_t)(after[p] - before[p]);
	explain(plant->part, out);
	wq_help_close(pools, wq);
}

/* Time goes by between the long job's beginning and what waits behind it, and
 * a sleep may take longer than was asked for. */
static bool in_its_part(const struct plant *plant, const struct verdict *v)
{
	int64_t least = plant->at == BEHIND ? DELAY_NS / 2 : DELAY_NS;
	int64_t moved = v->moved[plant->part];

	return moved >= least - LITTLE && moved <= 3 * (int64_t)DELAY_NS;
}

static bool in_no_other(const struct plant *plant, const struct verdict *v)
{
	for (int p = 0; p <= WQ_PART_RUN; p++)
		if (p != (int)plant->part && p != WQ_PART_READY &&
		    (v->moved[p] > LITTLE || v->moved[p] < -(int64_t)LITTLE))
			return false;
	return true;
}

static bool in_the_words(const struct plant *plant, const struct verdict *v)
{
	if (plant->part == WQ_PART_RUN)
		return v->moved[WQ_PART_READY] < LITTLE;
	return v->named > JOBS / 2;
}

static void tell(const struct verdict *v)
{
	for (int p = 0; p <= WQ_PART_RUN; p++)
		diag("%s: %+lld ns", wq_part_name((enum wq_part)p),
		     (long long)v->moved[p]);
	diag("%u of %d: %s", v->named, JOBS, v->why);
}

static void test(const struct plant *plant)
{
	const char *part = wq_part_name(plant->part);
	bool there = false, only = false, words = false;
	struct verdict v;

	for (int i = 0; i < TRIES && !(there && only && words); i++) {
		try(plant, &v);
		there = in_its_part(plant, &v);
		only = in_no_other(plant, &v);
		words = in_the_words(plant, &v);
		if (!there || !only || !words)
			tell(&v);
	}
	ok(there, "%s: a delay planted in %s shows there", plant->mode, part);
	ok(only, "and in no other part");
	ok(words, "and %s",
	   plant->part == WQ_PART_RUN ? "jobs are ready as soon as without it"
				      : "most jobs are explained by that part");
}

int main(void)
{
	plan(3 * PLANTS);
	for (size_t i = 0; i < PLANTS; i++)
		test(&plants[i]);
	return done();
}
