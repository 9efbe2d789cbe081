/* SPDX-License-Identifier: MIT */
#include "wq/futex.h"
#include "wq/pool.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What only some configurations need. */
static int furnish(struct wq_worker *worker)
{
	struct wq_pools *pools = worker->pools;

	worker->view = calloc(pools->nr, sizeof(*worker->view));
	if (!worker->view)
		return -ENOMEM;
	if (!pools->lat)
		return 0;
	worker->call_hist = malloc(wq_hist_bytes(WQ_HIST_BITS));
	if (!worker->call_hist)
		return -ENOMEM;
	wq_hist_init(worker->call_hist, WQ_HIST_BITS);
	return 0;
}

struct wq_worker *wq_worker_alloc(struct wq_pools *pools)
{
	struct wq_worker *worker = aligned_alloc(WQ_LINE, sizeof(*worker));

	if (!worker)
		return NULL;
	memset(worker, 0, sizeof(*worker));
	worker->pools = pools;
	worker->index = pools->nr_workers++;
	worker->stat.fd = -1;
	worker->left = true;
	atomic_store(&worker->seen, UINT64_MAX);
	if (furnish(worker) < 0) {
		wq_worker_free(worker);
		return NULL;
	}
	worker->next = atomic_load(&pools->all);
	/* Release: who walks the list finds the fields above. */
	atomic_store(&pools->all, worker);
	return worker;
}

void wq_worker_free(struct wq_worker *worker)
{
	wq_schedstat_close(&worker->stat);
	free(worker->view);
	free(worker->call_hist);
	free(worker);
}

/* All that the thread itself must set up.  Return: 0 or a negative errno. */
static int be_born(struct wq_worker *worker)
{
	struct wq_pools *pools = worker->pools;
	struct wq_prio prio;
	char name[16];

	snprintf(name, sizeof(name), "wq/%d", worker->index);
	pthread_setname_np(pthread_self(), name);
	wq_self_set(worker);
	/* Without schedstat the sampled parts stay empty; that shows. */
	wq_schedstat_open(&worker->stat, gettid());
	worker->stat.tid = gettid();
	worker->trace = wq_trace_ring(pools->trace, gettid(), name, true);
	pthread_mutex_lock(&pools->lock);
	prio = pools->prio;
	pthread_mutex_unlock(&pools->lock);
	if (prio.fifo || prio.nice || prio.slice_ns)
		return wq_sched_prio(0, &prio, worker->born_why);
	return 0;
}

/* Others were called that have not come: see unstack.c. */
static void help_others(struct wq_worker *worker)
{
	if (worker->pod->nr_homes > 1 &&
	    atomic_load_explicit(&worker->pod->waking, memory_order_relaxed))
		wq_unstack(worker);
}

/* A job was found. */
static void work_on(struct wq_worker *worker, struct wq_work *work, uint64_t id,
		    uint32_t depth)
{
	struct wq_pools *pools = worker->pools;

	if (worker->t4)
		wq_repatriate(worker);
	wq_wake_done(worker);
	if (atomic_load_explicit(&worker->home->called, memory_order_relaxed))
		wq_arrive(worker);
	if (atomic_load_explicit(&pools->watch, memory_order_relaxed))
		wq_watch_poke(pools);
	help_others(worker);
	wq_run(worker, work, id, depth);
}

/* One round of a primary.  Return: false when it is to end. */
static bool serve(struct wq_worker *worker)
{
	struct wq_pools *pools = worker->pools;
	struct wq_work *work;
	uint32_t depth = 0;
	uint64_t id = 0;

	if (atomic_load(&pools->mode) != atomic_load(&worker->seen))
		wq_adopt(worker);
	work = wq_find(worker, &id, &depth);
	if (work) {
		work_on(worker, work, id, depth);
		return true;
	}
	if (worker->woken)
		wq_count(&worker->nr_idle_wakes);
	wq_wake_done(worker);
	worker->t4 = 0;
	if (atomic_load(&pools->stop))
		return false;
	wq_park(worker);
	return true;
}

static void *run(void *arg)
{
	struct wq_worker *worker = arg;
	bool on = true;

	worker->born_error = be_born(worker);
	on = !worker->born_error;
	/* Release: what was just written is for who started us. */
	atomic_store(&worker->born, 1);
	wq_futex_wake(&worker->born, 1);
	while (on) {
		int role = atomic_load_explicit(&worker->role,
						memory_order_relaxed);

		if (role == WQ_PRIMARY)
			on = serve(worker);
		else if (role == WQ_DETACHED)
			wq_retire(worker);
		else
			on = wq_spare_wait(worker);
	}
	return NULL;
}

int wq_worker_start(struct wq_worker *worker, struct wq_error *err)
{
	struct wq_pools *pools = worker->pools;
	sigset_t all, old;
	int code;

	if (pools->lat && !worker->lat)
		worker->lat = wq_lat_writer_new(pools->lat, worker->index);
	if (pools->lat && !worker->lat)
		return wq_fail(err, ENOMEM, "no memory for a worker");
	worker->born_why = err;
	/* Signals are for the threads of the program. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	code = pthread_create(&worker->thread, NULL, run, worker);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (code)
		return wq_fail(err, code, "cannot start a worker: %s",
			       strerror(code));
	worker->has_thread = true;
	while (!atomic_load(&worker->born))
		wq_futex_wait(&worker->born, 0, UINT64_MAX);
	return worker->born_error;
}

void wq_worker_join(struct wq_worker *worker)
{
	if (!worker->has_thread)
		return;
	atomic_store(&worker->spare_word, WQ_ENDED);
	wq_futex_wake(&worker->spare_word, 1);
	if (worker->home)
		wq_kick(worker->home);
	pthread_join(worker->thread, NULL);
	worker->has_thread = false;
}

int wq_worker_prepare(struct wq_worker *worker, unsigned int mode)
{
	cpu_set_t mask;

	if (!worker->lat || !worker->home)
		return 0;
	wq_plan_mask(worker->pools, mode, worker->home, &mask);
	return wq_lat_prepare(worker->lat, mode, &mask);
}
