/* SPDX-License-Identifier: MIT */
/* time-limit: 120
 *
 * Items run once for each time they were queued, never twice at once, wherever
 * they come from.
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

static struct wq *wq;
static struct wq_pools *pools;

struct item {
	struct wq_work work; /* first */
	_Atomic unsigned int runs;
	_Atomic unsigned int inside;
	_Atomic unsigned int twice; /* at once */
	unsigned int plain;         /* handed over from queuer to item */
	unsigned int again;         /* times it queues itself */
};

static void run(struct wq_work *work)
{
	struct item *item = (struct item *)work;

	if (atomic_fetch_add(&item->inside, 1))
		atomic_fetch_add(&item->twice, 1);
	if (item->again) {
		item->again--;
		wq_queue(wq, work);
	}
	atomic_fetch_add(&item->runs, 1);
	atomic_fetch_sub(&item->inside, 1);
}

static void init(struct item *item)
{
	wq_work_init(&item->work, run, 0);
	item->again = 0;
	item->plain = 0;
	atomic_store(&item->runs, 0);
	atomic_store(&item->inside, 0);
	atomic_store(&item->twice, 0);
}

static void test_return_values(void)
{
	static struct wq_hold hold;
	static struct item item;

	pools = wq_help_open(NULL, "bound", NULL, &wq);
	wq_help_hold(&hold, false);
	init(&item);
	wq_queue_on(wq_help_cpu(pools, 0), wq, &hold.work);
	wq_help_until(&hold.held, 1);
	is_int(wq_queue_on(wq_help_cpu(pools, 0), wq, &item.work), 1,
	       "an item that rests is queued");
	is_int(wq_queue_on(wq_help_cpu(pools, 0), wq, &item.work), 0,
	       "one that waits already is not");
	is_int(wq_queue(wq, &item.work), 0, "on any CPU");
	is_uint(wq_work_busy(&item.work), WQ_BUSY_PENDING, "it is pending");
	is_uint(wq_work_busy(&hold.work), WQ_BUSY_RUNNING,
		"the other is running");
	is_int(wq_queue_on(-1, wq, &item.work), -EINVAL, "CPU -1 is none");
	is_int(wq_queue_on(1023, wq, &item.work), -EINVAL,
	       "a CPU that the pools do not have is refused");
	wq_help_let_go(&hold);
	wq_flush(wq);
	is_uint(atomic_load(&item.runs), 1, "it ran once");
	is_uint(wq_work_busy(&item.work), 0, "and rests");
	wq_help_close(pools, wq);
}

static _Atomic unsigned int freed;

static void free_itself(struct wq_work *work)
{
	atomic_fetch_add(&freed, 1);
	free(work);
}

static void test_free(const char *mode)
{
	unsigned int n = wq_help_scale(20000);

	pools = wq_help_open(NULL, mode, NULL, &wq);
	atomic_store(&freed, 0);
	for (unsigned int i = 0; i < n; i++) {
		struct wq_work *work = malloc(sizeof(*work));

		wq_work_init(work, free_itself, 0);
		wq_queue(wq, work);
	}
	wq_flush(wq);
	is_uint(atomic_load(&freed), n, "%s: an item may free itself", mode);
	wq_help_close(pools, wq);
}

static void test_self(const char *mode)
{
	static struct item item;

	pools = wq_help_open(NULL, mode, NULL, &wq);
	init(&item);
	item.again = 100;
	wq_queue(wq, &item.work);
	wq_drain(wq);
	is_uint(atomic_load(&item.runs), 101,
		"%s: an item may queue itself, again and again", mode);
	wq_help_close(pools, wq);
}

/* Threads that all queue the same few items. */
enum { THREADS = 4, SHARED = 3 };
static struct item shared[SHARED];
static _Atomic unsigned int accepted[SHARED];
static unsigned int rounds;

static void *queue_shared(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < rounds; i++)
		if (wq_queue(wq, &shared[i % SHARED].work) == 1)
			atomic_fetch_add(&accepted[i % SHARED], 1);
	return NULL;
}

static void test_shared(const char *mode)
{
	unsigned int twice = 0, lost = 0;
	pthread_t thread[THREADS];

	pools = wq_help_open(NULL, mode, NULL, &wq);
	rounds = wq_help_scale(60000);
	for (size_t i = 0; i < SHARED; i++) {
		init(&shared[i]);
		atomic_store(&accepted[i], 0);
	}
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, queue_shared, NULL);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	wq_drain(wq);
	for (size_t i = 0; i < SHARED; i++) {
		twice += atomic_load(&shared[i].twice);
		lost += atomic_load(&shared[i].runs) !=
			atomic_load(&accepted[i]);
	}
	is_uint(twice, 0, "%s: no item runs twice at once", mode);
	is_uint(lost, 0, "%s: each runs as often as it was accepted", mode);
	wq_help_close(pools, wq);
}

/* A ring of two, and many more jobs. */
static struct item many[10000];

static void *queue_many(void *arg)
{
	struct item *first = arg;

	for (size_t i = 0; i < 2500; i++) {
		first[i].plain = (unsigned int)i + 1;
		wq_queue(wq, &first[i].work);
	}
	return NULL;
}

static void test_overflow(const char *mode)
{
	struct wq_config config = { .ring = 2 };
	struct wq_cpu_stats stats;
	uint64_t overflowed = 0;
	pthread_t thread[4];
	unsigned int bad = 0;

	pools = wq_help_open(&config, mode, NULL, &wq);
	for (size_t i = 0; i < 10000; i++)
		init(&many[i]);
	for (size_t i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, queue_many, &many[2500 * i]);
	for (size_t i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	wq_flush(wq);
	for (size_t i = 0; i < 10000; i++)
		bad += atomic_load(&many[i].runs) != 1 || !many[i].plain;
	is_uint(bad, 0, "%s: a ring of 2 loses none of 10000 jobs", mode);
	for (size_t i = 0; !wq_cpu_stats(pools, i, &stats); i++)
		overflowed += stats.overflowed;
	ok(overflowed > 0, "%s: most of them overflowed", mode);
	wq_help_close(pools, wq);
}

static void *one_item(void *arg)
{
	wq_queue(wq, arg);
	return NULL;
}

static unsigned int count_issuers(void)
{
	struct wq_worker *worker = atomic_load(&pools->all);
	unsigned int n = 0;

	for (; worker; worker = worker->next)
		n += atomic_load(&worker->role) == WQ_ISSUER;
	return n;
}

static void test_foreign(const char *mode)
{
	static struct item item[200];
	unsigned int bad = 0;
	pthread_t thread;

	pools = wq_help_open(NULL, mode, NULL, &wq);
	for (size_t i = 0; i < 200; i++) {
		init(&item[i]);
		pthread_create(&thread, NULL, one_item, &item[i].work);
		pthread_join(thread, NULL);
	}
	wq_flush(wq);
	for (size_t i = 0; i < 200; i++)
		bad += atomic_load(&item[i].runs) != 1;
	is_uint(bad, 0, "%s: threads may come, queue and go", mode);
	/* At most the record of the threads above and that of this one. */
	ok(count_issuers() <= 2, "and leave their records to the next");
	wq_help_close(pools, wq);
}

static struct item *next_of;
static void chain(struct wq_work *work)
{
	struct item *item = (struct item *)work;

	atomic_fetch_add(&item->runs, 1);
	if (item > next_of)
		wq_queue(wq, &(item - 1)->work);
}

static void test_nested(const char *mode)
{
	static struct item item[1000];
	unsigned int bad = 0;

	pools = wq_help_open(NULL, mode, NULL, &wq);
	next_of = item;
	for (size_t i = 0; i < 1000; i++) {
		init(&item[i]);
		item[i].work.fn = chain;
	}
	wq_queue(wq, &item[999].work);
	wq_drain(wq);
	for (size_t i = 0; i < 1000; i++)
		bad += atomic_load(&item[i].runs) != 1;
	is_uint(bad, 0, "%s: items queue items, a thousand deep", mode);
	wq_help_close(pools, wq);
}

/* Two sets of pools, and one that comes after: records of threads must not be
 * mixed up. */
static void test_two_pools(void)
{
	struct wq_pools *other;
	struct wq *other_wq;
	static struct item a, b;

	pools = wq_help_open(NULL, "inline", NULL, &wq);
	other = wq_help_open(NULL, "inline", NULL, &other_wq);
	init(&a);
	init(&b);
	wq_queue(wq, &a.work);
	wq_queue(other_wq, &b.work);
	wq_queue(wq, &a.work);
	wq_help_close(pools, wq);
	pools = wq_help_open(NULL, "inline", NULL, &wq);
	wq_queue(wq, &a.work);
	wq_queue(other_wq, &b.work);
	is_uint(atomic_load(&a.runs) + atomic_load(&b.runs), 5,
		"several pools live side by side and after each other");
	wq_help_close(pools, wq);
	wq_help_close(other, other_wq);
}

int main(void)
{
	plan(10 + 9 * MODES);
	test_return_values();
	for (size_t i = 0; i < MODES; i++) {
		test_free(modes[i]);
		test_self(modes[i]);
		test_shared(modes[i]);
		test_foreign(modes[i]);
		test_nested(modes[i]);
		if (i == 0) /* inline uses no ring */
			skip(2, "inline uses no ring");
		else
			test_overflow(modes[i]);
	}
	test_two_pools();
	return done();
}
