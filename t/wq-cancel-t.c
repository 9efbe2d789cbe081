/* SPDX-License-Identifier: MIT */
/* time-limit: 120
 *
 * Taking items back while others queue, run and take them back too; and
 * waiting, inside of an item, for others.
 */
#define WQ_BENCH /* as what it is linked with */
#include "t/tap.h"
#include "t/wq_meas.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static const char *const modes[] = {
	"inline", "bound", "unbound", "unbound:cpu,strict", "local-first",
};
#define MODES (sizeof(modes) / sizeof(modes[0]))

static struct wq_pools *pools;
static struct wq *wq, *other; /* other: ordered */

struct item {
	struct wq_work work; /* first */
	_Atomic unsigned int runs;
};

static void run(struct wq_work *work)
{
	atomic_fetch_add(&((struct item *)work)->runs, 1);
}

static void init(struct item *item)
{
	wq_work_init(&item->work, run, 0);
	atomic_store(&item->runs, 0);
}

static void open_both(const char *mode, const struct wq_attrs *attrs)
{
	static const struct wq_attrs ordered = { .name = "other",
						 .ordered = true };
	/* What waits behind an item runs only when that item lets it. */
	struct wq_config config = { .ring = 4, .hog_ns = 60000000000ull };
	struct wq_error why;

	pools = wq_help_open(&config, mode, attrs, &wq);
	if (wq_new(pools, &ordered, &other, &why) < 0)
		bail("%s", why.text);
}

static void close_both(void)
{
	wq_meas_flush(wq);
	wq_meas_flush(other);
	wq_free(other);
	wq_help_close(pools, wq);
}

static uint64_t cancelled(struct wq *of)
{
	struct wq_stats stats;

	wq_stats(of, &stats);
	return stats.cancelled;
}

/* An item queues three others and the first of those takes the second back. */
static struct item sibling[3];
static int taken_back;

static void queue_siblings(struct wq_work *work)
{
	int cpu = wq_help_cpu(pools, 0);

	(void)work;
	for (size_t i = 0; i < 3; i++)
		wq_queue_on(cpu, wq, &sibling[i].work);
}

static void take_sibling(struct wq_work *work)
{
	run(work);
	taken_back = wq_cancel_work(&sibling[1].work);
}

static void test_siblings(const char *mode)
{
	static struct wq_work first;

	open_both(mode, NULL);
	for (size_t i = 0; i < 3; i++)
		init(&sibling[i]);
	sibling[0].work.fn = take_sibling;
	wq_work_init(&first, queue_siblings, 0);
	wq_queue_on(wq_help_cpu(pools, 0), wq, &first);
	wq_meas_flush(wq);
	is_uint(taken_back + atomic_load(&sibling[1].runs), 1,
		"%s: an item takes back one that waits behind it, or it runs",
		mode);
	is_uint(atomic_load(&sibling[2].runs), 1, "and the one behind it runs");
	close_both();
}

/* Inline, the items behind one that runs are another thread's to take. */
static struct wq_hold hold;

static void *queue_inline(void *arg)
{
	wq_queue(wq, arg);
	return NULL;
}

static void queue_hold(struct wq_work *work)
{
	(void)work;
	wq_queue(wq, &hold.work);
	wq_queue(wq, &sibling[1].work);
	wq_queue(wq, &sibling[2].work);
}

static void test_inline_elsewhere(void)
{
	static struct wq_work first;
	pthread_t thread;

	open_both("inline", NULL);
	wq_help_hold(&hold, false);
	for (size_t i = 0; i < 3; i++)
		init(&sibling[i]);
	wq_work_init(&first, queue_hold, 0);
	pthread_create(&thread, NULL, queue_inline, &first);
	wq_help_until(&hold.held, 1);
	ok(wq_cancel_work(&sibling[1].work),
	   "inline: another thread takes back what waits behind an item");
	wq_help_let_go(&hold);
	pthread_join(thread, NULL);
	wq_meas_flush(wq);
	is_uint(atomic_load(&sibling[1].runs), 0, "it does not run");
	is_uint(atomic_load(&sibling[2].runs), 1, "but the one behind it");
	close_both();
}

/* Two may be active; they are held, and the others are behind the gate. */
static void test_gate(const char *mode)
{
	static const struct wq_attrs two = { .name = "two", .max_active = 2 };
	static struct wq_hold held[4];
	static struct item item[10];
	unsigned int back = 0, runs = 0;
	int cpu;

	open_both(mode, &two);
	cpu = wq_help_cpu(pools, 0);
	for (size_t i = 0; i < 4; i++)
		wq_help_hold(&held[i], true);
	for (size_t i = 0; i < 2; i++)
		wq_queue_on(cpu, wq, &held[i].work);
	for (size_t i = 0; i < 2; i++)
		wq_help_until(&held[i].held, 1);
	for (size_t i = 0; i < 10; i++) {
		init(&item[i]);
		wq_queue_on(cpu, wq, &item[i].work);
	}
	for (size_t i = 0; i < 10; i += 3) /* the first and the last, too */
		back += wq_cancel_work(&item[i].work);
	is_uint(back, 4, "%s: taken back from behind a gate", mode);
	/* Behind the gate, not handed over: two are active. */
	wq_queue_on(cpu, wq, &held[0].work);
	ok(wq_cancel_work(&held[0].work),
	   "and one that was queued again while it runs");
	for (size_t i = 0; i < 2; i++)
		wq_help_let_go(&held[i]);
	wq_meas_flush(wq);
	for (size_t i = 0; i < 10; i++)
		runs += atomic_load(&item[i].runs);
	is_uint(runs, 6, "the others run");
	for (size_t i = 2; i < 4; i++)
		wq_queue_on(cpu, wq, &held[i].work);
	ok(wq_help_until(&held[2].held, 1) && wq_help_until(&held[3].held, 1),
	   "two may still be active");
	init(&item[0]);
	wq_queue_on(cpu, wq, &item[0].work);
	wq_help_sleep(20);
	is_uint(atomic_load(&item[0].runs), 0, "and no third");
	for (size_t i = 2; i < 4; i++)
		wq_help_let_go(&held[i]);
	close_both();
}

/* Threads that queue and take back the same few items, on two workqueues. */
enum { THREADS = 4, SHARED = 3 };
static struct item shared[SHARED];
static _Atomic unsigned int accepted, taken;
static unsigned int rounds;

static void *fight(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;

	for (unsigned int i = 0; i < rounds; i++) {
		unsigned int dice = (unsigned int)rand_r(&seed) >> 4;
		struct wq_work *work = &shared[dice % SHARED].work;

		dice /= SHARED;
		if (dice % 5 < 2)
			atomic_fetch_add(&accepted, wq_queue(wq, work) == 1);
		else if (dice % 5 == 2)
			atomic_fetch_add(&accepted, wq_queue(other, work) == 1);
		else if (dice % 5 == 3)
			atomic_fetch_add(&taken, wq_cancel_work(work));
		else
			atomic_fetch_add(&taken,
					 wq_cancel_work_sync(work) == 1);
	}
	return NULL;
}

static void test_fight(const char *mode)
{
	pthread_t thread[THREADS];
	unsigned int runs = 0;

	open_both(mode, NULL);
	rounds = wq_help_scale(200000);
	atomic_store(&accepted, 0);
	atomic_store(&taken, 0);
	for (size_t i = 0; i < SHARED; i++)
		init(&shared[i]);
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, fight, (void *)(i + 1));
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	wq_meas_flush(wq);
	wq_meas_flush(other);
	for (size_t i = 0; i < SHARED; i++)
		runs += atomic_load(&shared[i].runs);
	is_uint(runs + atomic_load(&taken), atomic_load(&accepted),
		"%s: whatever was queued ran once or was taken back once",
		mode);
	is_uint(cancelled(wq) + cancelled(other), atomic_load(&taken),
		"and the workqueues count what was taken back");
	close_both();
}

/* While one is in cancel_sync, the item cannot be queued. */
static _Atomic unsigned int cancels;

static void *cancel_hold(void *arg)
{
	(void)arg;
	wq_cancel_work_sync(&hold.work);
	atomic_fetch_add(&cancels, 1);
	return NULL;
}

static void test_disabled(void)
{
	pthread_t thread[3];
	int queued = 1;

	open_both("bound", NULL);
	wq_help_hold(&hold, false);
	atomic_store(&cancels, 0);
	wq_queue(wq, &hold.work);
	wq_help_until(&hold.held, 1);
	for (size_t i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, cancel_hold, NULL);
	for (int i = 0; i < 5000 && queued; i++) {
		wq_help_sleep(1);
		/* It does not wait already, which would be another reason. */
		if (!(wq_work_busy(&hold.work) & WQ_BUSY_PENDING))
			queued = wq_queue(wq, &hold.work);
	}
	is_int(queued, 0, "an item that is being cancelled cannot be queued");
	is_uint(atomic_load(&cancels), 0, "three who cancel it wait for it");
	wq_help_let_go(&hold);
	ok(wq_help_until(&cancels, 3), "until it has ended");
	for (size_t i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	wq_help_let_go(&hold);
	is_int(wq_queue(wq, &hold.work), 1, "then it can be queued again");
	close_both();
}

/* An item that waits for one that stands behind it. */
static struct item behind;
static _Atomic int waited;
static bool (*waits)(void);

static bool wait_flush(void)
{
	return wq_flush(other) == 0;
}

static bool wait_work(void)
{
	return wq_flush_work(&behind.work) >= 0;
}

static bool wait_drain(void)
{
	return wq_drain(other) == 0;
}

static void wait_behind(struct wq_work *work)
{
	bool all = true;

	(void)work;
	for (unsigned int i = 1; i <= 3; i++) {
		wq_queue_on(wq_help_cpu(pools, 0), other, &behind.work);
		all &= waits();
		all &= atomic_load(&behind.runs) == i;
	}
	atomic_store(&waited, all);
}

static void test_behind(const char *mode, bool (*how)(void), const char *name)
{
	static struct wq_work work;

	open_both(mode, NULL);
	init(&behind);
	waits = how;
	atomic_store(&waited, 0);
	wq_work_init(&work, wait_behind, 0);
	wq_queue_on(wq_help_cpu(pools, 0), wq, &work);
	wq_meas_flush(wq);
	is_int(atomic_load(&waited), 1,
	       "%s: %s, in an item, for one that stands behind it", mode, name);
	close_both();
}

/* One that queues itself for as long as it may. */
static _Atomic unsigned int enough;

static void go_on(struct wq_work *work)
{
	run(work);
	if (!atomic_load(&enough))
		wq_queue(wq, work);
	wq_help_sleep(1);
}

static void test_flush_endless(const char *mode)
{
	static struct item item;

	open_both(mode, NULL);
	init(&item);
	item.work.fn = go_on;
	atomic_store(&enough, 0);
	wq_queue(wq, &item.work);
	is_int(wq_flush_work(&item.work), 1,
	       "%s: flush_work waits for an item that goes on and on", mode);
	ok(atomic_load(&item.runs) >= 1, "and not longer than it must");
	atomic_store(&enough, 1);
	close_both();
}

int main(void)
{
	plan(7 * MODES + 3 + 10 + 4 + 6);
	for (size_t i = 0; i < MODES; i++) {
		test_siblings(modes[i]);
		test_fight(modes[i]);
		test_behind(modes[i], wait_flush, "flush");
		test_behind(modes[i], wait_work, "flush_work");
		test_behind(modes[i], wait_drain, "drain");
	}
	test_inline_elsewhere();
	test_gate("bound");
	test_gate("unbound");
	test_disabled();
	for (size_t i = 1; i < 4; i++)
		test_flush_endless(modes[i]);
	return done();
}
