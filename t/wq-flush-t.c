/* SPDX-License-Identifier: MIT */
/* time-limit: 120
 *
 * Waiting for items and taking them back: flush, drain, cancel.
 */
#include "t/tap.h"
#include "t/wq_help.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct wq_pools *pools;
static struct wq *wq;

struct item {
	struct wq_work work; /* first */
	_Atomic unsigned int runs;
	unsigned int again;
};

static void run(struct wq_work *work)
{
	struct item *item = (struct item *)work;

	atomic_fetch_add(&item->runs, 1);
	if (item->again) {
		item->again--;
		wq_queue(wq, work);
	}
}

static void init(struct item *item)
{
	wq_work_init(&item->work, run, 0);
	atomic_store(&item->runs, 0);
	item->again = 0;
}

static _Atomic unsigned int flushed;

static void *flush(void *arg)
{
	(void)arg;
	wq_flush(wq);
	atomic_fetch_add(&flushed, 1);
	return NULL;
}

/* The held item was queued before the flush, the other one after. */
static void test_flush_order(void)
{
	static struct wq_hold before, after;
	pthread_t thread;

	pools = wq_help_open(NULL, "unbound", NULL, &wq);
	wq_help_hold(&before, true);
	wq_help_hold(&after, true);
	wq_queue(wq, &before.work);
	wq_help_until(&before.held, 1);
	atomic_store(&flushed, 0);
	pthread_create(&thread, NULL, flush, NULL);
	wq_help_sleep(50);
	is_uint(atomic_load(&flushed), 0,
		"a flush waits for what was queued before it");
	wq_queue(wq, &after.work);
	wq_help_until(&after.held, 1);
	wq_help_let_go(&before);
	ok(wq_help_until(&flushed, 1), "and not for what was queued after");
	pthread_join(thread, NULL);
	wq_help_let_go(&after);
	wq_help_close(pools, wq);
}

static void test_flushers(void)
{
	static struct wq_hold hold;
	pthread_t thread[5];

	pools = wq_help_open(NULL, "bound", NULL, &wq);
	wq_help_hold(&hold, false);
	wq_queue(wq, &hold.work);
	wq_help_until(&hold.held, 1);
	atomic_store(&flushed, 0);
	for (size_t i = 0; i < 5; i++)
		pthread_create(&thread[i], NULL, flush, NULL);
	wq_help_sleep(30);
	is_uint(atomic_load(&flushed), 0, "five flushes wait at once");
	wq_help_let_go(&hold);
	for (size_t i = 0; i < 5; i++)
		pthread_join(thread[i], NULL);
	is_uint(atomic_load(&flushed), 5, "and all return");
	wq_help_close(pools, wq);
}

static _Atomic int own[5];

static void wait_for_self(struct wq_work *work)
{
	atomic_store(&own[0], wq_flush(wq));
	atomic_store(&own[1], wq_drain(wq));
	atomic_store(&own[2], wq_flush_work(work));
	atomic_store(&own[3], wq_cancel_work_sync(work));
}

static void test_own(const char *mode)
{
	static struct item item;

	pools = wq_help_open(NULL, mode, NULL, &wq);
	init(&item);
	item.work.fn = wait_for_self;
	wq_queue(wq, &item.work);
	wq_flush(wq);
	for (int i = 0; i < 4; i++)
		is_int(atomic_load(&own[i]), -EDEADLK,
		       "%s: an item that waits for itself is told so", mode);
	wq_help_close(pools, wq);
}

static void *drain(void *arg)
{
	(void)arg;
	wq_drain(wq);
	atomic_fetch_add(&flushed, 1);
	return NULL;
}

static void test_drain(void)
{
	static struct wq_hold hold;
	static struct item item;
	pthread_t thread;
	int refused = 1;

	pools = wq_help_open(NULL, "unbound", NULL, &wq);
	wq_help_hold(&hold, false);
	init(&item);
	item.again = 1000;
	atomic_store(&flushed, 0);
	wq_queue(wq, &item.work);
	wq_queue(wq, &hold.work);
	wq_help_until(&hold.held, 1);
	pthread_create(&thread, NULL, drain, NULL);
	for (int i = 0; i < 5000 && refused != -ESHUTDOWN; i++) {
		static struct item other;

		wq_help_sleep(1);
		init(&other);
		refused = wq_queue(wq, &other.work);
		if (refused == 1)
			wq_flush_work(&other.work);
	}
	is_int(refused, -ESHUTDOWN, "others may not queue while it drains");
	is_uint(atomic_load(&flushed), 0, "it waits");
	wq_help_let_go(&hold);
	pthread_join(thread, NULL);
	is_uint(atomic_load(&item.runs), 1001,
		"an item that queues itself goes on until it has had enough");
	is_int(wq_queue(wq, &item.work), 1, "afterwards all may queue again");
	wq_help_close(pools, wq);
}

static void test_flush_work(void)
{
	static struct wq_hold hold;
	static struct item item;

	pools = wq_help_open(NULL, "bound", NULL, &wq);
	init(&item);
	is_int(wq_flush_work(&item.work), 0, "nothing to wait for");
	wq_queue(wq, &item.work);
	wq_flush_work(&item.work);
	is_uint(atomic_load(&item.runs), 1, "flush_work waits for the run");
	wq_help_hold(&hold, true);
	wq_queue(wq, &hold.work);
	wq_queue(wq, &item.work);
	is_int(wq_flush_work(&item.work) >= 0, 1,
	       "and not for items that block beside it");
	wq_help_let_go(&hold);
	wq_help_close(pools, wq);
}

/* Take an item back from where the set-up has put it; it must not run. */
static void taken(struct item *item, const char *where)
{
	ok(wq_cancel_work(&item->work), "taken back from %s", where);
	ok(!wq_cancel_work(&item->work), "once");
}

static void test_cancel(void)
{
	struct wq_config config = { .ring = 2 };
	static struct wq_hold hold;
	static struct item item[6];
	struct wq_stats stats;
	int cpu;

	pools = wq_help_open(&config, "bound", NULL, &wq);
	cpu = wq_help_cpu(pools, 1);
	wq_help_hold(&hold, false);
	wq_queue_on(cpu, wq, &hold.work);
	wq_help_until(&hold.held, 1);
	for (size_t i = 0; i < 6; i++) {
		init(&item[i]);
		wq_queue_on(cpu, wq, &item[i].work);
	}
	taken(&item[1], "a ring");
	taken(&item[3], "the middle of an overflow list");
	wq_queue_on(cpu, wq, &hold.work);
	ok(wq_cancel_work(&hold.work),
	   "taken back from the worker that was to run it again");
	is_int(wq_cancel_work_sync(&item[4].work), 1,
	       "cancel_sync says so too");
	wq_help_let_go(&hold);
	wq_flush(wq);
	for (size_t i = 0; i < 6; i++)
		is_uint(atomic_load(&item[i].runs),
			i % 2 == 0 && i != 4 ? 1
			: i == 5             ? 1
					     : 0,
			"item %zu ran if it was not taken back", i);
	wq_stats(wq, &stats);
	is_uint(stats.cancelled, 4, "four are counted as cancelled");
	is_uint(stats.infl, 0, "nothing is in flight");
	is_uint(stats.total, 8, "all that was queued is done with");
	wq_help_close(pools, wq);
}

static unsigned int order[64], ordered;

static void note(struct wq_work *work)
{
	order[ordered++] = ((struct item *)work)->again;
}

static void test_cancel_ordered(void)
{
	struct wq_attrs attrs = { .name = "ordered", .ordered = true };
	static struct item item[20];
	static struct wq_hold hold;
	unsigned int wrong = 0;

	pools = wq_help_open(NULL, "unbound", &attrs, &wq);
	wq_help_hold(&hold, false);
	wq_queue(wq, &hold.work);
	wq_help_until(&hold.held, 1);
	ordered = 0;
	for (unsigned int i = 0; i < 20; i++) {
		wq_work_init(&item[i].work, note, 0);
		item[i].again = i;
		wq_queue(wq, &item[i].work);
	}
	for (unsigned int i = 0; i < 20; i += 3)
		wrong += !wq_cancel_work(&item[i].work);
	is_uint(wrong, 0, "items are taken back from an ordered queue");
	wq_help_let_go(&hold);
	wq_flush(wq);
	is_uint(ordered, 13, "the others run");
	for (unsigned int i = 1; i < ordered; i++)
		wrong += order[i] <= order[i - 1];
	is_uint(wrong, 0, "in order");
	wq_help_close(pools, wq);
}

static _Atomic unsigned int ended;

static void slow(struct wq_work *work)
{
	wq_queue(wq, work); /* refused while it is being cancelled */
	wq_help_sleep(30);
	atomic_store(&ended, 1);
}

static void test_cancel_sync(void)
{
	static struct item item;

	pools = wq_help_open(NULL, "unbound", NULL, &wq);
	init(&item);
	item.work.fn = slow;
	atomic_store(&ended, 0);
	wq_queue(wq, &item.work);
	while (!(wq_work_busy(&item.work) & WQ_BUSY_RUNNING))
		wq_help_sleep(1);
	wq_cancel_work_sync(&item.work);
	is_uint(atomic_load(&ended), 1, "cancel_sync waits for the run to end");
	is_uint(wq_work_busy(&item.work), 0,
		"and an item that queues itself rests then");
	is_int(wq_queue(wq, &item.work), 1, "afterwards it can be queued");
	wq_cancel_work_sync(&item.work);
	wq_help_close(pools, wq);
}

/* Threads that queue, cancel and free. */
static unsigned int rounds;

static void *churn(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;

	for (unsigned int i = 0; i < rounds; i++) {
		struct item *item = malloc(sizeof(*item));

		init(item);
		item->again = rand_r(&seed) % 3;
		wq_queue(wq, &item->work);
		if (rand_r(&seed) % 2)
			wq_queue(wq, &item->work);
		if (rand_r(&seed) % 3 == 0)
			sched_yield();
		wq_cancel_work_sync(&item->work);
		memset(item, 0xa5, sizeof(*item));
		free(item);
	}
	return NULL;
}

static void test_churn(const char *mode, struct wq_attrs *attrs)
{
	struct wq_config config = { .ring = 4 };
	pthread_t thread[4];
	struct wq_stats stats;

	pools = wq_help_open(&config, mode, attrs, &wq);
	rounds = wq_help_scale(5000);
	for (size_t i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, churn, (void *)(i + 1));
	for (size_t i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	wq_flush(wq);
	wq_stats(wq, &stats);
	is_uint(stats.infl, 0,
		"%s, %s: queue, cancel and free at once, nothing is left", mode,
		attrs->name);
	wq_help_close(pools, wq);
}

int main(void)
{
	static struct wq_attrs kinds[] = {
		{ .name = "plain" },
		{ .name = "two", .max_active = 2 },
		{ .name = "ordered", .ordered = true },
	};
	static const char *const modes[] = { "bound", "unbound", "local-first",
					     "inline" };

	plan(52);
	test_flush_order();
	test_flushers();
	test_own("bound");
	test_own("inline");
	test_drain();
	test_flush_work();
	test_cancel();
	test_cancel_ordered();
	test_cancel_sync();
	for (size_t i = 0; i < 4; i++)
		for (size_t k = 0; k < 3; k++)
			test_churn(modes[i], &kinds[k]);
	return done();
}
