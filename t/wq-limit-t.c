/* SPDX-License-Identifier: MIT */
/* time-limit: 120
 *
 * max_active, ordered workqueues, and items that block, hog or stall.
 */
#define WQ_BENCH /* as what it is linked with */
#include "t/tap.h"
#include "t/wq_help.h"
#include "wq/pool.h" /* wq_point */

#include <errno.h>
#include <pthread.h>
#include <string.h>

static struct wq_pools *pools;
static struct wq *wq;

struct item {
	struct wq_work work; /* first */
	unsigned int number;
};

static _Atomic unsigned int inside, most, runs;

/* Blocks, so that nothing but max_active limits how many do so at once. */
static void count_inside(struct wq_work *work)
{
	unsigned int now = atomic_fetch_add(&inside, 1) + 1;
	unsigned int seen = atomic_load(&most);

	(void)work;
	while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
		;
	wq_blocking_begin();
	wq_help_sleep(2);
	wq_blocking_end();
	atomic_fetch_sub(&inside, 1);
	atomic_fetch_add(&runs, 1);
}

static void test_max(const char *mode, unsigned int max, bool exact)
{
	struct wq_attrs attrs = { .name = "max", .max_active = max };
	static struct item item[60];

	pools = wq_help_open(NULL, mode, &attrs, &wq);
	atomic_store(&most, 0);
	atomic_store(&runs, 0);
	for (size_t i = 0; i < 60; i++) {
		wq_work_init(&item[i].work, count_inside, 0);
		/* On one CPU, whose limit it is in bound. */
		wq_queue_on(wq_help_cpu(pools, 0), wq, &item[i].work);
	}
	wq_flush(wq);
	is_uint(atomic_load(&runs), 60, "%s, max_active %u: all run", mode,
		max);
	ok(atomic_load(&most) <= max, "never more than %u at once", max) ||
		(diag("%u at once", atomic_load(&most)), 0);
	if (exact)
		is_uint(atomic_load(&most), max, "but as many as that");
	wq_help_close(pools, wq);
}

static unsigned int last;
static _Atomic unsigned int disorder;

static void in_order(struct wq_work *work)
{
	struct item *item = (struct item *)work;

	if (atomic_fetch_add(&inside, 1))
		atomic_fetch_add(&disorder, 1);
	if (item->number != last + 1)
		atomic_fetch_add(&disorder, 1);
	last = item->number;
	atomic_fetch_sub(&inside, 1);
	atomic_fetch_add(&runs, 1);
}

/* One thread queues in order; the mode is switched all the while. */
static void test_ordered(void)
{
	static const char *const modes[] = { "bound", "unbound", "inline",
					     "local-first",
					     "unbound:cpu,strict" };
	struct wq_attrs attrs = { .name = "ordered", .ordered = true };
	static struct item item[20000];
	unsigned int n = wq_help_scale(20000);
	struct wq_error why;

	pools = wq_help_open(NULL, "bound", &attrs, &wq);
	last = 0;
	atomic_store(&runs, 0);
	atomic_store(&disorder, 0);
	for (unsigned int i = 0; i < n; i++) {
		wq_work_init(&item[i].work, in_order, 0);
		item[i].number = i + 1;
		wq_queue(wq, &item[i].work);
		if (i % 500 == 0)
			wq_pools_switch(pools, wq_help_mode(modes[i / 500 % 5]),
					NULL, &why);
	}
	wq_flush(wq);
	is_uint(atomic_load(&runs), n, "ordered, through switches: all run");
	is_uint(atomic_load(&disorder), 0, "one at a time and in order");
	wq_help_close(pools, wq);
}

static void refused(const struct wq_attrs *attrs, const char *words)
{
	struct wq_error why = { "" };
	struct wq *none;

	ok(wq_new(pools, attrs, &none, &why) == -EINVAL &&
		   strstr(why.text, words),
	   "refused with '%s'", words) ||
		(diag("said: %s", why.text), 0);
}

static void test_attrs(void)
{
	struct wq_attrs much = { .name = "a", .max_active = 2049 };
	struct wq_attrs both = { .name = "a",
				 .max_active = 2,
				 .ordered = true };
	struct wq_attrs nameless = { .max_active = 1 };
	struct wq_attrs name = { .name = "12345678901234567890123456789012" };

	pools = wq_help_open(NULL, "bound", NULL, NULL);
	refused(&much, "max_active 2049 was asked for; 1 to 2048 is possible");
	refused(&both, "an ordered one has 1");
	refused(&nameless, "a name");
	refused(&name, "1 to 31 bytes");
	wq_help_close(pools, NULL);
}

static _Atomic unsigned int passed;

static void pass(struct wq_work *work)
{
	(void)work;
	atomic_fetch_add(&passed, 1);
}

/* An item that blocks holds its CPU's queue up unless it says so. */
static void test_blocking(const char *mode, bool says)
{
	struct wq_config config = { .hog_ns = 60000000000ull };
	static struct wq_hold hold;
	static struct item item;
	struct wq_stats stats;

	pools = wq_help_open(&config, mode, NULL, &wq);
	wq_help_hold(&hold, says);
	atomic_store(&passed, 0);
	wq_work_init(&item.work, pass, 0);
	wq_queue_on(wq_help_cpu(pools, 0), wq, &hold.work);
	wq_help_until(&hold.held, 1);
	wq_queue_on(wq_help_cpu(pools, 0), wq, &item.work);
	if (says) {
		ok(wq_help_until(&passed, 1),
		   "%s: with blocking_begin the next items run", mode);
	} else {
		wq_help_sleep(50);
		is_uint(atomic_load(&passed), 0,
			"%s: without it they wait for the one that blocks",
			mode);
	}
	wq_help_let_go(&hold);
	wq_flush(wq);
	is_uint(atomic_load(&passed), 1, "in the end all have run");
	wq_stats(wq, &stats);
	is_uint(stats.cm_wakeups, says, "another worker took over %s",
		says ? "once" : "never");
	wq_help_close(pools, wq);
}

static void test_many_blocked(void)
{
	static struct wq_hold hold[20];
	struct wq_cpu_stats stats;
	unsigned int held = 0, workers;

	pools = wq_help_open(NULL, "bound", NULL, &wq);
	for (int pass_no = 0; pass_no < 2; pass_no++) {
		for (size_t i = 0; i < 20; i++) {
			wq_help_hold(&hold[i], true);
			wq_queue_on(wq_help_cpu(pools, 0), wq, &hold[i].work);
		}
		for (size_t i = 0; i < 20; i++)
			held += wq_help_until(&hold[i].held, 1);
		for (size_t i = 0; i < 20; i++)
			wq_help_let_go(&hold[i]);
		wq_flush(wq);
	}
	is_uint(held, 40, "twenty items block at once, twice");
	wq_cpu_stats(pools, 0, &stats);
	workers = stats.workers;
	ok(workers >= 21 && workers <= 23,
	   "and the second time the same workers do it (%u)", workers);
	wq_help_close(pools, wq);
}

static void hog(struct wq_work *work)
{
	uint64_t end = wq_mono_ns() + 200000000;

	(void)work;
	while (wq_mono_ns() < end && !atomic_load(&passed))
		;
	while (wq_mono_ns() < end)
		;
}

/* Time for the item to end, and for its worker to go to sleep. */
static void linger(enum wq_point point)
{
	if (point == WQ_POINT_REPLACE)
		wq_help_sleep(3);
}

static void nearly_hog(struct wq_work *work)
{
	unsigned int number = ((struct item *)work)->number;
	uint64_t end = wq_mono_ns() + 700000 + number * 7919ull % 1600 * 1000;

	while (wq_mono_ns() < end)
		;
}

static void test_hog(void)
{
	struct wq_config config = { .hog_ns = 10000000 };
	static struct item heavy, item;
	struct wq_stats stats;
	unsigned int early = 0;

	pools = wq_help_open(&config, "bound", NULL, &wq);
	wq_work_init(&heavy.work, hog, 0);
	wq_work_init(&item.work, pass, 0);
	for (int i = 0; i < 8; i++) {
		int cpu = wq_help_cpu(pools, 0);

		atomic_store(&passed, 0);
		wq_queue_on(cpu, wq, &heavy.work);
		while (!(wq_work_busy(&heavy.work) & WQ_BUSY_RUNNING))
			wq_help_sleep(1);
		wq_queue_on(cpu, wq, &item.work);
		wq_flush_work(&item.work);
		early += wq_work_busy(&heavy.work) != 0;
		wq_flush(wq);
	}
	ok(early >= 6, "items behind a hog run before it ends (%u of 8)",
	   early);
	wq_stats(wq, &stats);
	is_uint(stats.hogs, 8, "each hog is counted");
	is_uint(wq_help_lines("an item ran for"), 2,
		"and said the 4th and the 8th time");
	ok(wq_help_said("workqueue test"), "with the workqueue's name");
	wq_help_close(pools, wq);
}

/* Items about as long as hog_ns: they end just when the watch puts another
 * worker in the place of theirs.  That one and theirs once slept on one word,
 * and a wake for the one went to the other. */
static void test_nearly_hogs(void)
{
	struct wq_config config = { .hog_ns = 1000000 };
	static struct item item;
	unsigned int n = wq_help_scale(600);
	struct wq_stats stats;

	pools = wq_help_open(&config, "bound", NULL, &wq);
	wq_point = linger;
	for (unsigned int i = 0; i < n; i++) {
		wq_work_init(&item.work, nearly_hog, 0);
		item.number = i;
		wq_queue_on(wq_help_cpu(pools, 0), wq, &item.work);
		wq_flush(wq);
	}
	wq_point = NULL;
	wq_stats(wq, &stats);
	is_uint(stats.total, n,
		"%u items as long as hog_ns: none waits for "
		"ever",
		n);
	diag("%llu of them were hogs", (unsigned long long)stats.hogs);
	wq_help_close(pools, wq);
}

static void test_stall(void)
{
	struct wq_config config = { .hog_ns = 60000000000ull,
				    .stall_ns = 200000000 };
	static struct wq_hold hold;
	static struct item item;

	pools = wq_help_open(&config, "bound", NULL, &wq);
	wq_help_hold(&hold, false);
	wq_work_init(&item.work, pass, 0);
	wq_queue_on(wq_help_cpu(pools, 0), wq, &hold.work);
	wq_help_until(&hold.held, 1);
	wq_help_sleep(300);
	ok(!wq_help_said("no progress"), "a long item alone is no stall");
	wq_queue_on(wq_help_cpu(pools, 0), wq, &item.work);
	for (int i = 0; i < 2000 && !wq_help_said("no progress"); i++)
		wq_help_sleep(5);
	ok(wq_help_said("pool of cpu 0, mode bound: no progress for 0."),
	   "a queue that stands still is reported, with its pool and how long");
	ok(wq_help_said("1 jobs wait") &&
		   wq_help_said("an item of workqueue test, class 0"),
	   "with what waits and what runs");
	wq_help_let_go(&hold);
	wq_help_close(pools, wq);
}

int main(void)
{
	plan(39);
	test_max("bound", 3, true);
	test_max("unbound", 5, true);
	test_max("local-first", 2, true);
	test_max("unbound:cpu,strict", 1, true);
	test_max("inline", 2, false);
	test_ordered();
	test_attrs();
	test_blocking("bound", true);
	test_blocking("bound", false);
	test_blocking("unbound:cpu,strict", true);
	test_many_blocked();
	test_hog();
	test_nearly_hogs();
	test_stall();
	return done();
}
