/* SPDX-License-Identifier: MIT */
/*
 * One thread that looks on: jobs that hog a CPU, queues that stall, CPUs that
 * go and come, and, in local-first, backlogs that turn out long.
 *
 * It looks every few milliseconds while jobs run, and sleeps when it saw none
 * for a while; the next worker that takes a job wakes it.  That it may miss
 * for a moment, so it looks once a second in any case.
 */
#include "wq/futex.h"
#include "wq/pool.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SECOND    UINT64_C(1000000000)
#define MILLI     UINT64_C(1000000)
#define IDLE_LOOK 20 /* looks without a job before it sleeps */

void wq_watch_poke(struct wq_pools *pools)
{
	if (atomic_exchange(&pools->watch, 0))
		wq_futex_wake(&pools->watch, 1);
}

/* Leave the worker's queue to another; see block.c. */
static void leave_management(struct wq_worker *worker, uint64_t ns)
{
	struct wq_pools *pools = worker->pools;
	struct wq *wq, *q;
	bool replaced;

	worker->watch_hog = true;
	replaced = wq_replace(worker);
	/* The workqueue lives while it is on the list and its job runs. */
	pthread_mutex_lock(&pools->lock);
	wq = atomic_load(&worker->wq);
	for (q = pools->queues; q && q != wq; q = q->next)
		;
	if (q) {
		uint64_t n = atomic_fetch_add(&q->hogs, 1) + 1;

		atomic_fetch_add(replaced ? &q->cm_wakeups : &q->mayday, 1);
		/* As the kernel: from the fourth on, at powers of two. */
		if (n >= 4 && !(n & (n - 1)))
			wq_say(pools,
			       "workqueue %s: an item ran for %.1f ms on cpu "
			       "%d, %llu times so far; mode unbound would suit "
			       "it better",
			       q->name, (double)ns / 1e6, worker->home->cpu,
			       (unsigned long long)n);
	}
	pthread_mutex_unlock(&pools->lock);
}

/* Return: whether the worker runs an item. */
static bool look_at_worker(struct wq_worker *worker, uint64_t now)
{
	uint64_t job = atomic_load(&worker->nr_started);

	if (!atomic_load(&worker->current)) {
		worker->watch_since = 0;
		return false;
	}
	if (!worker->watch_since || worker->watch_job != job) {
		worker->watch_job = job;
		worker->watch_since = now;
		worker->watch_hog = false;
		return true;
	}
	if (!worker->watch_hog && atomic_load(&worker->role) == WQ_PRIMARY &&
	    now - worker->watch_since >= worker->pools->config.hog_ns)
		leave_management(worker, now - worker->watch_since);
	return true;
}

static void report_stall(struct wq_pools *pools, struct wq_home *home,
			 uint64_t now)
{
	struct wq_worker *worker;
	uint64_t oldest = wq_ring_oldest(&home->ring), back = 0;
	struct wq *wq, *q;
	char job[96] = "no item runs there";

	if (oldest)
		oldest = wq_ticks_to_ns(
			wq_ticks_since(oldest, wq_stamp(), &back));
	pthread_mutex_lock(&pools->lock);
	worker = atomic_load(&home->primary);
	wq = atomic_load(&worker->wq);
	for (q = pools->queues; q && q != wq; q = q->next)
		;
	if (q)
		snprintf(job, sizeof(job),
			 "worker %d has run an item of workqueue %s, class %u, "
			 "for %.1f s",
			 worker->index, q->name, atomic_load(&worker->class),
			 (double)(now - worker->watch_since) / 1e9);
	pthread_mutex_unlock(&pools->lock);
	wq_say(pools,
	       "pool of cpu %d, mode %s: no progress for %.1f s; %llu jobs "
	       "wait, the oldest for %.1f s; %s",
	       home->cpu, wq_mode_name(wq_word_mode(atomic_load(&pools->mode))),
	       (double)(now - home->stall_since) / 1e9,
	       (unsigned long long)wq_home_depth(home), (double)oldest / 1e9,
	       job);
}

static void look_for_stall(struct wq_pools *pools, struct wq_home *home,
			   uint64_t now)
{
	uint64_t head = atomic_load(&home->ring.head);

	if (!wq_home_depth(home) || head != home->stall_head ||
	    !home->stall_since) {
		home->stall_head = head;
		home->stall_since = now;
		home->stall_said = now;
		return;
	}
	if (now - home->stall_said < pools->config.stall_ns)
		return;
	home->stall_said = now;
	report_stall(pools, home, now);
}

/* Give a home's worker the mask that it should have now. */
static void set_mask(struct wq_pools *pools, struct wq_home *home,
		     const cpu_set_t *usable)
{
	unsigned int mode = wq_word_mode(atomic_load(&pools->mode));
	cpu_set_t mask, both;

	wq_plan_mask(pools, mode, home, &mask);
	CPU_AND(&both, &mask, usable);
	if (!CPU_COUNT(&both) || atomic_load(&home->lost))
		both = *usable;
	pthread_mutex_lock(&pools->lock);
	wq_sched_affinity(atomic_load(&home->primary)->stat.tid, &both, NULL);
	pthread_mutex_unlock(&pools->lock);
}

/* Give every worker its mask anew: who takes CPUs away, or gives them back, may
 * have set those of all threads.  Return: whether no switch was in the way,
 * which gives out masks itself. */
static bool set_masks(struct wq_pools *pools, const cpu_set_t *usable)
{
	/* A switch may wait for a hog that we are to find, so not for it. */
	if (pthread_mutex_trylock(&pools->switching))
		return false;
	for (size_t i = 0; i < pools->nr; i++)
		set_mask(pools, &pools->home[i], usable);
	pthread_mutex_unlock(&pools->switching);
	return true;
}

/*
 * CPUs that went offline or out of the cpuset, and those that are back.  The
 * watch never narrows its own mask, so that mask is what may be used.
 *
 * @again: masks are to be set also if nothing has changed
 *
 * Return: whether to do it again at the next look: others may be setting masks
 * of one thread after the other, ours before those of workers.
 */
static bool look_at_cpus(struct wq_pools *pools, bool again)
{
	cpu_set_t usable;
	bool changed = false;

	if (wq_sched_mask(0, &usable) < 0)
		return again;
	for (size_t i = 0; i < pools->nr; i++) {
		struct wq_home *home = &pools->home[i];
		bool lost = !CPU_ISSET(home->cpu, &usable);

		if (atomic_exchange(&home->lost, lost) == lost)
			continue;
		changed = true;
		wq_say(pools,
		       lost ? "cpu %d is offline or outside the cpuset: its "
			      "pool is now unbound"
			    : "cpu %d is back: its pool follows the mode again",
		       home->cpu);
	}
	if (changed || again)
		return !set_masks(pools, &usable) || changed;
	return false;
}

/* Local-first: whoever waits behind a job that turned out long. */
static void look_for_backlog(struct wq_pools *pools)
{
	uint64_t word = atomic_load(&pools->mode);

	if (!pools->plan[wq_word_mode(word)]->steal)
		return;
	for (size_t i = 0; i < pools->nr; i++)
		if (wq_home_depth(&pools->home[i]))
			wq_wake(pools, &pools->home[i], 0, 0);
}

/* Return: whether anything runs or waits. */
static bool look(struct wq_pools *pools, uint64_t now)
{
	struct wq_worker *worker;
	bool busy = false;

	for (size_t i = 0; i < pools->nr; i++) {
		worker = atomic_load(&pools->home[i].primary);
		busy |= look_at_worker(worker, now);
		busy |= wq_home_depth(&pools->home[i]) != 0;
		look_for_stall(pools, &pools->home[i], now);
	}
	look_for_backlog(pools);
	return busy;
}

static uint64_t period(struct wq_pools *pools)
{
	uint64_t word = atomic_load(&pools->mode);
	uint64_t ns = pools->config.hog_ns / 2;

	if (pools->config.stall_ns / 4 < ns)
		ns = pools->config.stall_ns / 4;
	if (ns > SECOND)
		ns = SECOND; /* CPUs come and go all the same */
	if (pools->plan[wq_word_mode(word)]->steal && ns > MILLI)
		ns = MILLI;
	return ns < MILLI ? MILLI : ns;
}

static void *run(void *arg)
{
	struct wq_pools *pools = arg;
	uint64_t cpus_at = 0;
	unsigned int idle = 0;
	bool again = false;

	pthread_setname_np(pthread_self(), "wq/watch");
	while (!atomic_load(&pools->stop)) {
		uint64_t now = wq_mono_ns();

		if (now - cpus_at >= SECOND) {
			again = look_at_cpus(pools, again);
			if (pools->unequal)
				wq_look_at_lost(pools);
			cpus_at = now;
		}
		idle = look(pools, now) ? 0 : idle + 1;
		if (idle < IDLE_LOOK) {
			wq_futex_wait(&pools->watch, 0, period(pools));
			continue;
		}
		atomic_store(&pools->watch, 1);
		if (!look(pools, now) && !atomic_load(&pools->stop))
			wq_futex_wait(&pools->watch, 1, SECOND);
		atomic_store(&pools->watch, 0);
		idle = IDLE_LOOK / 2;
	}
	return NULL;
}

int wq_watch_start(struct wq_pools *pools, struct wq_error *err)
{
	sigset_t all, old;
	int code;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	code = pthread_create(&pools->watcher, NULL, run, pools);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (code)
		return wq_fail(err, code, "cannot start the watch: %s",
			       strerror(code));
	pools->has_watcher = true;
	return 0;
}

void wq_watch_stop(struct wq_pools *pools)
{
	if (!pools->has_watcher)
		return;
	atomic_store(&pools->watch, 2);
	wq_futex_wake(&pools->watch, 1);
	pthread_join(pools->watcher, NULL);
	pools->has_watcher = false;
}
