/* SPDX-License-Identifier: MIT */
/* time-limit: 180
 *
 * Switching the mode of pools at work: nothing lost, doubled or reordered.
 */
#define WQ_BENCH /* as what it is linked with */
#include "t/tap.h"
#include "t/wq_meas.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ISSUERS = 4, OWN = 256 };

static struct wq_pools *pools;
static struct wq *plain, *ordered;
static _Atomic bool stop;

/* What the mode is in each epoch, and the last of these; set before the switch
 * that begins it. */
#define EPOCHS 40000
static _Atomic unsigned int mode_of[EPOCHS];
static unsigned int last_epoch;

struct item {
	struct wq_work work; /* first */
	struct issuer *issuer;
	uint64_t number;
	_Atomic unsigned int waiting; /* queued and not yet run */
};

struct issuer {
	struct item item[OWN];
	struct item strict[OWN]; /* on the ordered workqueue */
	uint64_t queued;
	uint64_t strictly;
	_Atomic uint64_t ran;
	_Atomic uint64_t doubled;
	uint64_t last; /* of the ordered ones */
	_Atomic uint64_t disorder;
	_Atomic uint64_t strictly_ran;
	uint64_t refused;         /* queueings of what was not waiting */
	_Atomic uint64_t early;   /* started two epochs before its own */
	_Atomic uint64_t between; /* or one */
	_Atomic uint64_t unknown; /* in a mode that its epoch does not have */
};

static struct issuer issuer[ISSUERS];

/* Before the item can be queued anew. */
static void check_epochs(const struct item *item)
{
	uint64_t word = atomic_load(&wq_running->seen);
	uint32_t queued = item->work.epoch, started = wq_word_epoch(word);
	unsigned int mode = wq_word_mode(word);

	/* While a switch is under way a worker may claim, in the mode it still
	 * lives by, what was queued in the next one. */
	atomic_fetch_add(&item->issuer->early, started + 1 < queued);
	atomic_fetch_add(&item->issuer->between, started + 1 == queued);
	if (queued >= EPOCHS || started >= EPOCHS ||
	    atomic_load(&mode_of[queued]) != item->work.mode ||
	    /* What began inline ends inline, whatever the mode is now. */
	    (atomic_load(&mode_of[started]) != mode &&
	     (mode != WQ_INLINE || item->work.mode != WQ_INLINE)))
		atomic_fetch_add(&item->issuer->unknown, 1);
}

static void run(struct wq_work *work)
{
	struct item *item = (struct item *)work;
	volatile unsigned int spin = 300;

	check_epochs(item);
	while (spin)
		spin--;
	if (atomic_exchange(&item->waiting, 0) != 1)
		atomic_fetch_add(&item->issuer->doubled, 1);
	atomic_fetch_add(&item->issuer->ran, 1);
}

static void run_strict(struct wq_work *work)
{
	struct item *item = (struct item *)work;
	struct issuer *own = item->issuer;

	check_epochs(item);
	if (item->number != own->last + 1)
		atomic_fetch_add(&own->disorder, 1);
	own->last = item->number;
	atomic_fetch_add(&own->strictly_ran, 1);
	atomic_store(&item->waiting, 0);
}

/* Return: how many still wait. */
static unsigned int issue_plain(struct issuer *own)
{
	unsigned int busy = 0;

	for (size_t i = 0; i < OWN; i++) {
		struct item *item = &own->item[i];

		if (atomic_load(&item->waiting)) {
			busy++;
			continue;
		}
		atomic_store(&item->waiting, 1);
		if (wq_queue(plain, &item->work) == 1)
			own->queued++;
		else
			own->refused++;
	}
	return busy;
}

static void issue_ordered(struct issuer *own)
{
	for (size_t i = 0; i < OWN; i += 16) {
		struct item *item = &own->strict[i];

		if (atomic_load(&item->waiting) || wq_work_busy(&item->work))
			continue;
		atomic_store(&item->waiting, 1);
		item->number = own->strictly + 1;
		if (wq_queue(ordered, &item->work) == 1)
			own->strictly++;
		else
			own->refused++;
	}
}

static void *issue(void *arg)
{
	struct issuer *own = arg;

	while (!atomic_load(&stop)) {
		unsigned int busy = issue_plain(own);

		issue_ordered(own);
		if (busy > OWN / 2)
			wq_help_sleep(1);
	}
	return NULL;
}

static void start(pthread_t *thread)
{
	static const struct wq_attrs order = { .name = "ordered",
					       .ordered = true };
	struct wq_error why;

	memset(issuer, 0, sizeof(issuer));
	atomic_store(&stop, false);
	/* To begin with the mode is set once. */
	last_epoch = 1;
	atomic_store(&mode_of[1], WQ_BOUND);
	pools = wq_help_open(NULL, "bound", NULL, &plain);
	if (wq_new(pools, &order, &ordered, &why) < 0)
		bail("%s", why.text);
	for (size_t i = 0; i < ISSUERS; i++) {
		for (size_t k = 0; k < OWN; k++) {
			issuer[i].item[k].issuer = &issuer[i];
			issuer[i].strict[k].issuer = &issuer[i];
			wq_work_init(&issuer[i].item[k].work, run, 0);
			wq_work_init(&issuer[i].strict[k].work, run_strict, 0);
		}
		pthread_create(&thread[i], NULL, issue, &issuer[i]);
	}
}

static void finish(pthread_t *thread, const char *what)
{
	uint64_t queued = 0, ran = 0, doubled = 0, disorder = 0;
	uint64_t strictly = 0, strictly_ran = 0;
	uint64_t refused = 0, early = 0, between = 0, unknown = 0;

	atomic_store(&stop, true);
	for (size_t i = 0; i < ISSUERS; i++)
		pthread_join(thread[i], NULL);
	wq_meas_flush(plain);
	wq_meas_flush(ordered);
	for (size_t i = 0; i < ISSUERS; i++) {
		queued += issuer[i].queued;
		ran += atomic_load(&issuer[i].ran);
		doubled += atomic_load(&issuer[i].doubled);
		disorder += atomic_load(&issuer[i].disorder);
		strictly += issuer[i].strictly;
		strictly_ran += atomic_load(&issuer[i].strictly_ran);
		refused += issuer[i].refused;
		early += atomic_load(&issuer[i].early);
		between += atomic_load(&issuer[i].between);
		unknown += atomic_load(&issuer[i].unknown);
	}
	ok(ran > 0 && strictly_ran > 0, "%s: jobs ran", what);
	is_uint(ran, queued, "none was lost");
	is_uint(doubled, 0, "none ran twice");
	is_uint(strictly_ran, strictly, "none of the ordered ones was lost");
	is_uint(disorder, 0, "and they ran in order");
	is_uint(refused, 0, "none was refused");
	is_uint(early, 0, "none started in an epoch that was over");
	diag("%llu of %llu were started by a worker that had yet to change",
	     (unsigned long long)between, (unsigned long long)ran);
	is_uint(unknown, 0, "and in the mode of that epoch, both times");
	wq_free(ordered);
}

/* The modes that this machine has. */
static unsigned int known_modes(unsigned int *list)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < WQ_MODES; i++) {
		struct wq_mode mode = wq_mode_at(i);

		if (mode.binding != WQ_UNBOUND ||
		    !wq_scope_known(wq_pools_topo(pools), mode.scope, NULL))
			list[n++] = i;
	}
	return n;
}

/* Return: whether the report is of this switch. */
static bool change(unsigned int mode, struct wq_switch *cost)
{
	unsigned int epoch = last_epoch + 1;
	unsigned int from = atomic_load(&mode_of[last_epoch]);
	struct wq_error why;

	if (epoch >= EPOCHS)
		bail("more than %d switches", EPOCHS);
	atomic_store(&mode_of[epoch], mode);
	if (wq_pools_switch(pools, wq_mode_at(mode), cost, &why) < 0)
		bail("%s", why.text);
	last_epoch = epoch;
	return cost->from == from && cost->to == mode && cost->epoch == epoch;
}

static void test_every_millisecond(void)
{
	unsigned int list[WQ_MODES], n, i = 0, bad = 0;
	uint64_t end = wq_mono_ns() + 10000000000ull;
	pthread_t thread[ISSUERS];
	struct wq_switch cost;

	start(thread);
	n = known_modes(list);
	for (; wq_mono_ns() < end; i++) {
		bad += !change(list[i % n], &cost);
		wq_help_sleep(1);
	}
	is_uint(bad, 0, "each switch reports its modes and the next epoch");
	ok(i > 0, "%u modes in turn", n);
	diag("%u switches in 10 s", i);
	finish(thread, "a switch every millisecond for 10 s");
	wq_help_close(pools, plain);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void tell(const char *what, uint64_t *ns, size_t n)
{
	qsort(ns, n, sizeof(*ns), by_size);
	diag("%zu switches: %s p50 %llu ns, p99 %llu ns", n, what,
	     (unsigned long long)ns[n / 2],
	     (unsigned long long)ns[n * 99 / 100]);
}

static void test_ten_thousand(void)
{
	static uint64_t drain[10000], pause[10000];
	unsigned int n = wq_help_scale(10000), epochs_ok = 0;
	pthread_t thread[ISSUERS];
	struct wq_job worst[WQ_WORST];
	unsigned int unbound = wq_mode_index(wq_help_mode("unbound"));
	struct wq_switch cost = { .epoch = 0 };
	size_t jobs;

	start(thread);
	for (unsigned int i = 0; i < n; i++) {
		change(i % 2 ? unbound : WQ_BOUND, &cost);
		drain[i] = cost.drain_ns;
		pause[i] = cost.pause_ns;
	}
	jobs = wq_lat_worst(wq_pools_lat(pools), worst, WQ_WORST);
	for (size_t i = 0; i < jobs; i++)
		epochs_ok +=
			worst[i].started_epoch + 1 >= worst[i].queued_epoch &&
			worst[i].started_epoch <= cost.epoch;
	is_uint(epochs_ok, jobs,
		"no record is of an epoch that was over, or of none yet");
	tell("drain", drain, n);
	tell("pause", pause, n);
	finish(thread, "ten thousand switches in a row");
	wq_help_close(pools, plain);
}

/* Jobs that wait while the mode changes start under the new one, and know. */
static void test_modes_of_a_job(void)
{
	static struct wq_hold hold;
	struct item *item = &issuer[0].item[0];
	struct wq_switch cost;
	struct wq_error why;
	struct wq_job worst[2];
	struct wq_cpu_stats stats;
	char text[256];

	memset(issuer, 0, sizeof(issuer));
	pools = wq_help_open(NULL, "bound", NULL, &plain);
	wq_help_hold(&hold, true);
	for (size_t i = 0; i < 10; i++) {
		item[i].issuer = &issuer[0];
		wq_work_init(&item[i].work, run, 0);
	}
	wq_queue_on(wq_help_cpu(pools, 0), plain, &hold.work);
	wq_help_until(&hold.held, 1);
	is_int(wq_pools_switch(pools, wq_help_mode("unbound"), &cost, &why), 0,
	       "a worker that blocks does not hold a switch up");
	is_str(wq_mode_name(cost.from), "bound", "it tells from where");
	is_str(wq_mode_name(wq_mode_index(wq_pools_mode(pools))),
	       "unbound:system", "and the pools say where they are");
	wq_help_let_go(&hold);
	wq_flush(plain);
	wq_cpu_stats(pools, 0, &stats);
	is_uint(stats.moved, 0, "no job has moved so far");
	wq_lat_reset(wq_pools_lat(pools));
	wq_help_hold(&hold, false);
	wq_pools_switch(pools, wq_help_mode("bound"), &cost, &why);
	wq_queue_on(wq_help_cpu(pools, 0), plain, &hold.work);
	wq_help_until(&hold.held, 1);
	for (size_t i = 0; i < 10; i++)
		wq_queue_on(wq_help_cpu(pools, 0), plain, &item[i].work);
	/* hog_ns, 10 ms, bounds how long the switch waits for the holder. */
	wq_pools_switch(pools, wq_help_mode("unbound:cpu"), &cost, &why);
	is_uint(cost.moved, 10, "ten jobs were waiting when the mode changed");
	wq_help_let_go(&hold);
	wq_flush(plain);
	ok(wq_lat_worst(wq_pools_lat(pools), worst, 1) == 1 &&
		   worst[0].queued_epoch + 1 == worst[0].started_epoch &&
		   !strcmp(wq_mode_name(worst[0].queued_mode), "bound") &&
		   !strcmp(wq_mode_name(worst[0].started_mode), "unbound:cpu"),
	   "a job knows the modes it was queued and started under");
	wq_job_why(&worst[0], text, sizeof(text));
	ok(strstr(text, "queued in mode bound"), "and so does its explanation");
	wq_help_close(pools, plain);
}

static _Atomic int code;

static void switch_inside(struct wq_work *work)
{
	struct wq_error why;

	(void)work;
	atomic_store(&code,
		     wq_pools_switch(pools, wq_help_mode("bound"), NULL, &why));
}

static void test_refused(void)
{
	struct wq_config config = { .hist_bytes = 700000 };
	unsigned int refused, had = WQ_MODES;
	struct wq_switch cost;
	uint32_t epoch = 1;
	struct wq_error why;
	struct wq_work work;

	pools = wq_help_open(NULL, "unbound", NULL, &plain);
	wq_work_init(&work, switch_inside, 0);
	wq_queue(plain, &work);
	wq_flush(plain);
	is_int(atomic_load(&code), -EDEADLK, "not from a work item");
	is_str(wq_mode_name(wq_mode_index(wq_pools_mode(pools))),
	       "unbound:system", "and nothing has changed");
	wq_help_close(pools, plain);

	pools = wq_help_open(&config, "bound", NULL, &plain);
	for (refused = 0; refused < WQ_MODES; refused++) {
		had = wq_mode_index(wq_pools_mode(pools));
		atomic_store(&code, wq_pools_switch(pools, wq_mode_at(refused),
						    &cost, &why));
		if (atomic_load(&code))
			break;
		epoch = cost.epoch;
	}
	is_int(atomic_load(&code), -ENOMEM,
	       "a mode whose histograms have no room is refused");
	ok(strstr(why.text, "700000 bytes"), "in words that name the bound");
	ok(wq_help_said("5 bits an octave") &&
		   wq_help_said("CPUs are taken together"),
	   "after coarser forms were taken, with a line each");
	wq_queue(plain, &work);
	wq_meas_flush(plain);
	ok(had == wq_mode_index(wq_pools_mode(pools)) && had != refused,
	   "the mode is as it was, and the pools go on in it");
	is_int(wq_pools_switch(pools, wq_mode_at(had), &cost, &why), 0,
	       "another switch is possible");
	is_uint(cost.epoch, epoch + 1, "and the next epoch");
	wq_help_close(pools, plain);
}

/* A tree of sysfs without NUMA nodes, as a made-up topology cannot be. */
static void test_scope_lacking(void)
{
	char command[512], dir[] = "/tmp/wq-switch-XXXXXX";
	struct wq_config config = { 0 };
	struct wq_error why;
	struct wq_topo *topo;
	cpu_set_t mine;

	if (!mkdtemp(dir))
		bail("no directory");
	snprintf(command, sizeof(command),
		 "mkdir -p %s/devices/system/cpu/cpu0 && "
		 "cp /sys/devices/system/cpu/online %s/devices/system/cpu/",
		 dir, dir);
	sched_getaffinity(0, sizeof(mine), &mine);
	if (system(command) != 0 || wq_topo_read(dir, &mine, &topo, &why) < 0)
		bail("%s", why.text);
	config.topo = topo;
	pools = wq_help_open(&config, "bound", NULL, &plain);
	is_int(wq_pools_switch(pools, wq_help_mode("unbound:numa"), NULL, &why),
	       -ENODEV, "a scope that the machine lacks is refused");
	ok(strstr(why.text, "scope numa was asked for") &&
		   strstr(why.text, "possible are cpu, system"),
	   "in words that name what was asked and what is possible");
	is_int(wq_mode_index(wq_pools_mode(pools)), WQ_BOUND,
	       "and the mode is as it was");
	wq_help_close(pools, plain);
	wq_topo_free(topo);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (system(command) != 0)
		diag("cannot remove %s", dir);
}

int main(void)
{
	plan(2 + 8 + 1 + 8 + 7 + 8 + 3);
	test_every_millisecond();
	test_ten_thousand();
	test_modes_of_a_job();
	test_refused();
	test_scope_lacking();
	return done();
}
