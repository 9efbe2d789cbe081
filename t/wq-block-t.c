/* SPDX-License-Identifier: MIT */
/* time-limit: 120
 *
 * Items that block, hog or stall, beyond one in mode bound; and limits a CPU.
 */
#define WQ_BENCH /* as what it is linked with */
#include "t/tap.h"
#include "t/wq_meas.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define LONG_NS 60000000000ull /* longer than any test */

static const char *const modes[] = { "bound", "unbound", "unbound:cpu,strict",
				     "local-first" };
#define MODES (sizeof(modes) / sizeof(modes[0]))

static struct wq_pools *pools;
static struct wq *wq;

static void open_long(const char *mode, const struct wq_attrs *attrs)
{
	struct wq_config config = { .hog_ns = LONG_NS };

	pools = wq_help_open(&config, mode, attrs, &wq);
}

static void close_all(void)
{
	wq_meas_flush(wq);
	wq_help_close(pools, wq);
}

static uint64_t replaced(void)
{
	struct wq_stats stats;

	wq_stats(wq, &stats);
	return stats.cm_wakeups;
}

static _Atomic unsigned int passed;

static void pass(struct wq_work *work)
{
	(void)work;
	atomic_fetch_add(&passed, 1);
}

static void block_thrice(struct wq_work *work)
{
	(void)work;
	wq_blocking_begin();
	wq_blocking_begin();
	wq_blocking_end();
	wq_help_sleep(1);
	wq_blocking_end();
	wq_blocking_end(); /* one too many */
	wq_blocking_begin();
	wq_blocking_end();
}

static void forget_end(struct wq_work *work)
{
	(void)work;
	wq_blocking_begin();
}

static void test_nested(void)
{
	static struct wq_work work;

	open_long("bound", NULL);
	wq_work_init(&work, block_thrice, 0);
	wq_queue(wq, &work);
	wq_meas_flush(wq);
	is_uint(replaced(), 1,
		"an item loses its CPU's queue once, however often it blocks");
	wq_blocking_begin();
	wq_queue_on(wq_help_cpu(pools, 0), wq, &work);
	wq_blocking_end();
	wq_meas_flush(wq);
	is_uint(replaced(), 2, "outside of an item nothing happens");
	wq_help_close(pools, wq);
}

/* The workers of one that forgets go round: each is a primary again later. */
static void test_forgotten(void)
{
	static struct wq_work work;

	open_long("bound", NULL);
	for (unsigned int i = 0; i < 20; i++) {
		wq_work_init(&work, forget_end, 0);
		wq_queue_on(wq_help_cpu(pools, 0), wq, &work);
		wq_meas_flush(wq);
	}
	is_uint(replaced(), 20,
		"one that forgets to say that it is over harms no other");
	close_all();
}

/* More than there are workers, and all at once. */
static void test_many(const char *mode)
{
	enum { MANY = 30 };
	static struct wq_hold hold[MANY];
	static struct wq_work work;
	unsigned int held = 0;

	open_long(mode, NULL);
	atomic_store(&passed, 0);
	for (size_t i = 0; i < MANY; i++) {
		wq_help_hold(&hold[i], true);
		wq_queue_on(wq_help_cpu(pools, i), wq, &hold[i].work);
	}
	for (size_t i = 0; i < MANY; i++)
		held += wq_help_until(&hold[i].held, 1);
	is_uint(held, MANY, "%s: %d items block at once", mode, MANY);
	wq_work_init(&work, pass, 0);
	wq_queue(wq, &work);
	ok(wq_help_until(&passed, 1), "and the next one runs at once");
	for (size_t i = 0; i < MANY; i++)
		wq_help_let_go(&hold[i]);
	close_all();
}

/* Inline, what an item has queued and waits for goes to the workers. */
static struct wq_work waiter, behind, before, after;

static void queue_two(struct wq_work *work)
{
	(void)work;
	wq_queue(wq, &waiter);
	wq_queue(wq, &behind);
}

static void wait_for_all(struct wq_work *work)
{
	(void)work;
	wq_queue(wq, &before);
	wq_blocking_begin();
	wq_queue(wq, &after);
	if (wq_help_until(&passed, 3))
		atomic_fetch_add(&passed, 10);
	wq_blocking_end();
}

static void test_inline(void)
{
	static struct wq_work work;

	open_long("inline", NULL);
	atomic_store(&passed, 0);
	wq_work_init(&before, pass, 0);
	wq_work_init(&after, pass, 0);
	wq_work_init(&behind, pass, 0);
	wq_work_init(&waiter, wait_for_all, 0);
	wq_work_init(&work, queue_two, 0);
	wq_queue(wq, &work);
	wq_meas_flush(wq);
	is_uint(atomic_load(&passed), 13,
		"inline: what waits behind one that blocks runs meanwhile");
	wq_work_init(&work, pass, 0);
	wq_queue(wq, &work);
	is_uint(atomic_load(&passed), 14, "afterwards jobs run inline again");
	close_all();
}

/* An ordered workqueue stays in order when its item blocks. */
static void test_ordered(const char *mode)
{
	static const struct wq_attrs ordered = { .name = "one",
						 .ordered = true };
	static struct wq_hold hold;
	static struct wq_work work;

	open_long(mode, &ordered);
	atomic_store(&passed, 0);
	wq_help_hold(&hold, true);
	wq_work_init(&work, pass, 0);
	wq_queue(wq, &hold.work);
	wq_help_until(&hold.held, 1);
	wq_queue(wq, &work);
	wq_help_sleep(20);
	is_uint(atomic_load(&passed), 0,
		"%s, ordered: the next waits for one that blocks", mode);
	wq_help_let_go(&hold);
	ok(wq_help_until(&passed, 1), "and runs then");
	close_all();
}

/* A switch does not wait for what blocks, nor for what is known to hog. */
static void test_switch(bool says)
{
	struct wq_config config = { .hog_ns = says ? LONG_NS : 2000000 };
	static struct wq_hold hold;
	static struct wq_work work;
	struct wq_error why;
	bool all = true;

	pools = wq_help_open(&config, "bound", NULL, &wq);
	wq_help_hold(&hold, says);
	wq_queue_on(wq_help_cpu(pools, 0), wq, &hold.work);
	wq_help_until(&hold.held, 1);
	for (size_t i = 0; i < MODES; i++) {
		all &= !wq_pools_switch(pools, wq_help_mode(modes[i]), NULL,
					&why);
		atomic_store(&passed, 0);
		wq_work_init(&work, pass, 0);
		wq_queue_on(wq_help_cpu(pools, 0), wq, &work);
		all &= wq_help_until(&passed, 1);
	}
	ok(all && !atomic_load(&hold.go),
	   "the mode is switched while an item %s, and others run",
	   says ? "blocks" : "hogs");
	wq_help_let_go(&hold);
	close_all();
}

static void *switch_back(void *arg)
{
	struct wq_error why;

	(void)arg;
	if (!wq_pools_switch(pools, wq_help_mode("unbound"), NULL, &why))
		atomic_fetch_add(&passed, 1);
	return NULL;
}

static void test_switch_waits(void)
{
	static struct wq_hold hold;
	pthread_t thread;

	open_long("bound", NULL);
	atomic_store(&passed, 0);
	wq_help_hold(&hold, false);
	wq_queue_on(wq_help_cpu(pools, 0), wq, &hold.work);
	wq_help_until(&hold.held, 1);
	pthread_create(&thread, NULL, switch_back, NULL);
	wq_help_sleep(30);
	is_uint(atomic_load(&passed), 0, "it waits for any other item");
	wq_help_let_go(&hold);
	ok(wq_help_until(&passed, 1), "until that ends");
	pthread_join(thread, NULL);
	close_all();
}

/* Computes until told, or for 20 s. */
static _Atomic unsigned int enough, spins;

static void spin(struct wq_work *work)
{
	uint64_t end = wq_mono_ns() + 20000000000ull;

	(void)work;
	atomic_fetch_add(&spins, 1);
	while (!atomic_load(&enough) && wq_mono_ns() < end)
		;
}

/* Hogs on all CPUs; what is behind them runs while they still do. */
static void test_hogs(const char *mode)
{
	struct wq_config config = { .hog_ns = 10000000 };
	static struct wq_work hog[2], work[2];
	struct wq_stats stats;
	bool early;

	pools = wq_help_open(&config, mode, NULL, &wq);
	atomic_store(&passed, 0);
	atomic_store(&enough, 0);
	atomic_store(&spins, 0);
	for (size_t i = 0; i < 2; i++) {
		wq_work_init(&hog[i], spin, 0);
		wq_queue_on(wq_help_cpu(pools, i), wq, &hog[i]);
	}
	wq_help_until(&spins, 2);
	for (size_t i = 0; i < 2; i++) {
		wq_work_init(&work[i], pass, 0);
		wq_queue_on(wq_help_cpu(pools, i), wq, &work[i]);
	}
	early = wq_help_until(&passed, 2);
	wq_stats(wq, &stats);
	ok(early && stats.infl >= 2,
	   "%s: items behind hogs run while those still do", mode);
	for (int i = 0; i < 15000 && stats.hogs < 2; i++) {
		wq_help_sleep(1);
		wq_stats(wq, &stats);
	}
	atomic_store(&enough, 1);
	wq_meas_flush(wq);
	wq_stats(wq, &stats);
	ok(stats.hogs >= 2 && stats.cm_wakeups == stats.hogs,
	   "hogs are counted, and a worker for each") ||
		(diag("%llu hogs, %llu workers", (unsigned long long)stats.hogs,
		      (unsigned long long)stats.cm_wakeups),
		 0);
	wq_help_close(pools, wq);
}

static bool hog_lines(unsigned int n, unsigned int lines)
{
	static struct wq_work work;
	struct wq_stats stats;

	do {
		atomic_store(&enough, 0);
		wq_work_init(&work, spin, 0);
		wq_queue(wq, &work);
		do {
			wq_help_sleep(1);
			wq_stats(wq, &stats);
		} while (stats.hogs < n && stats.infl);
		atomic_store(&enough, 1);
		wq_meas_flush(wq);
	} while (stats.hogs < n);
	return stats.hogs == n && wq_help_lines("an item ran for") == lines;
}

static void test_said(void)
{
	struct wq_config config = { .hog_ns = 2000000 };
	unsigned int lines = 0;
	bool right = true;

	pools = wq_help_open(&config, "bound", NULL, &wq);
	for (unsigned int n = 1; n <= 17; n++) {
		lines += n == 4 || n == 8 || n == 16;
		right &= hog_lines(n, lines);
	}
	ok(right, "hogs are said the 4th, 8th and 16th time, and no other");
	wq_help_close(pools, wq);
}

/* All workers of a mode are stuck with what is not long enough for a hog. */
static void test_stall(const char *mode)
{
	struct wq_config config = { .hog_ns = LONG_NS, .stall_ns = 200000000 };
	static struct wq_hold hold[64];
	static struct wq_work work;
	unsigned int lines;
	uint64_t began, most;
	size_t nr;

	pools = wq_help_open(&config, mode, NULL, &wq);
	nr = wq_pools_topo(pools)->nr;
	nr = nr > 64 ? 64 : nr;
	atomic_store(&passed, 0);
	for (size_t i = 0; i < nr; i++) {
		wq_help_hold(&hold[i], false);
		wq_queue_on(wq_help_cpu(pools, i), wq, &hold[i].work);
		wq_help_until(&hold[i].held, 1);
	}
	wq_work_init(&work, pass, 0);
	began = wq_mono_ns();
	wq_queue_on(wq_help_cpu(pools, 0), wq, &work);
	for (int i = 0; i < 4000 && wq_help_lines("no progress") < 3; i++)
		wq_help_sleep(5);
	lines = wq_help_lines("no progress");
	/* The look before it was queued may have been the first. */
	most = 1 + (wq_mono_ns() - began) / config.stall_ns;
	ok(lines >= 3 && lines <= most &&
		   wq_help_said("pool of cpu 0, mode ") && wq_help_said(mode),
	   "%s: a stall is said again as long as it lasts", mode);
	ok(wq_help_said("worker") && wq_help_said("workqueue test, class 0"),
	   "with what its worker runs");
	is_uint(atomic_load(&passed), 0, "and nothing ran meanwhile");
	for (size_t i = 0; i < nr; i++)
		wq_help_let_go(&hold[i]);
	ok(wq_help_until(&passed, 1), "what waited runs when one ends");
	close_all();
}

static unsigned int count_held(struct wq_hold *hold)
{
	unsigned int held = 0;

	for (size_t i = 0; i < 8; i++)
		held += atomic_load(&hold[i].held);
	return held;
}

/* max_active is for each CPU in bound, for all of them elsewhere. */
static void test_per_cpu(const char *mode, bool per_cpu)
{
	static const struct wq_attrs two = { .name = "two", .max_active = 2 };
	static struct wq_hold hold[8];
	unsigned int want;

	open_long(mode, &two);
	want = per_cpu && wq_pools_topo(pools)->nr > 1 ? 4 : 2;
	for (size_t i = 0; i < 8; i++)
		wq_help_hold(&hold[i], true);
	for (size_t i = 0; i < 8; i++)
		wq_queue_on(wq_help_cpu(pools, i % 2), wq, &hold[i].work);
	for (int i = 0; i < 20000 && count_held(hold) < want; i++)
		wq_help_sleep(1);
	/* Time for one too many. */
	wq_help_sleep(30);
	is_uint(count_held(hold), want,
		"%s: max_active 2 lets %u items of two CPUs run", mode, want);
	for (size_t i = 0; i < 8; i++)
		wq_help_let_go(&hold[i]);
	close_all();
}

int main(void)
{
	plan(2 + 1 + 2 * MODES + 2 + 4 + 2 + 2 + 2 * MODES + 1 + 12 + 3);
	test_nested();
	test_forgotten();
	for (size_t i = 0; i < MODES; i++)
		test_many(modes[i]);
	test_inline();
	test_ordered("bound");
	test_ordered("unbound");
	test_switch(true);
	test_switch(false);
	test_switch_waits();
	for (size_t i = 0; i < MODES; i++)
		test_hogs(modes[i]);
	test_said();
	test_stall("bound");
	test_stall("unbound:system");
	test_stall("unbound:cpu,strict");
	test_per_cpu("bound", true);
	test_per_cpu("local-first", true);
	test_per_cpu("unbound", false);
	return done();
}
