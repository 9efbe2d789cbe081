/* SPDX-License-Identifier: MIT */
/*
 * Who the calling thread is.  A thread of ours knows; any other gets a record
 * when it first needs one, and gives it back when it ends.
 */
#include "wq/pool.h"

#include <errno.h>
#include <unistd.h>

__thread struct wq_worker *wq_running;
static __thread struct wq_worker *self_now;
static __thread uint64_t self_id; /* of the pools that @self_now belongs to */

/* All pools that live, for the threads that end. */
static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wq_pools *live[64];
static uint64_t last_id;

static pthread_key_t leave_key;
static pthread_once_t leave_once = PTHREAD_ONCE_INIT;

/* Give back the records of a thread that ends. */
static void leave(struct wq_pools *pools)
{
	struct wq_worker *w;

	for (w = atomic_load(&pools->all); w; w = w->next) {
		if (atomic_load(&w->role) != WQ_ISSUER || w->left ||
		    !pthread_equal(w->thread, pthread_self()))
			continue;
		w->left = true;
		if (w->lat)
			wq_lat_writer_rest(w->lat);
		w->lat = NULL;
		w->ready = false;
		wq_trace_ring_close(w->trace);
		w->trace = NULL;
		wq_schedstat_close(&w->stat);
	}
}

static void leave_all(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&live_lock);
	for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++) {
		if (!live[i])
			continue;
		pthread_mutex_lock(&live[i]->lock);
		leave(live[i]);
		pthread_mutex_unlock(&live[i]->lock);
	}
	pthread_mutex_unlock(&live_lock);
}

static void make_key(void)
{
	pthread_key_create(&leave_key, leave_all);
}

int wq_self_init(struct wq_pools *pools)
{
	int err = -EAGAIN;

	pthread_once(&leave_once, make_key);
	pthread_mutex_lock(&live_lock);
	pools->id = ++last_id;
	for (size_t i = 0; err && i < sizeof(live) / sizeof(live[0]); i++) {
		if (live[i])
			continue;
		live[i] = pools;
		err = 0;
	}
	pthread_mutex_unlock(&live_lock);
	return err;
}

void wq_self_exit(const struct wq_pools *pools)
{
	pthread_mutex_lock(&live_lock);
	for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++)
		if (live[i] == pools)
			live[i] = NULL;
	pthread_mutex_unlock(&live_lock);
}

void wq_self_set(struct wq_worker *worker)
{
	self_now = worker;
	self_id = worker->pools->id;
}

struct wq_worker *wq_self(struct wq_pools *pools)
{
	return self_now && self_id == pools->id ? self_now : NULL;
}

/* Take over a record that its thread left, or this thread's from before. */
static struct wq_worker *reuse(struct wq_pools *pools)
{
	struct wq_worker *w, *found = NULL;

	for (w = atomic_load(&pools->all); w; w = w->next) {
		if (atomic_load(&w->role) != WQ_ISSUER)
			continue;
		if (!w->left && pthread_equal(w->thread, pthread_self()))
			return w;
		if (w->left)
			found = w;
	}
	return found;
}

/* Make a record this thread's.  Return: false when memory is out. */
static bool settle(struct wq_worker *self)
{
	struct wq_pools *pools = self->pools;

	if (!self->left)
		return true;
	if (pools->lat && !self->lat)
		self->lat = wq_lat_writer_new(pools->lat, -1);
	if (pools->lat && !self->lat)
		return false;
	self->left = false;
	self->thread = pthread_self();
	wq_schedstat_open(&self->stat, gettid());
	self->trace = wq_trace_ring(pools->trace, gettid(), "issuer", false);
	return true;
}

struct wq_worker *wq_issuer(struct wq_pools *pools)
{
	struct wq_worker *self = wq_self(pools);

	if (self)
		return self;
	pthread_mutex_lock(&pools->lock);
	self = reuse(pools);
	if (!self)
		self = wq_worker_alloc(pools);
	if (self && !settle(self))
		self = NULL;
	pthread_mutex_unlock(&pools->lock);
	if (self) {
		pthread_setspecific(leave_key, pools);
		wq_self_set(self);
	}
	return self;
}
