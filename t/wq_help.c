/* SPDX-License-Identifier: MIT */
#include "t/wq_help.h"

#include "t/tap.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *lines[4096];
static unsigned int count;

static void keep(void *arg, const char *line)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	if (count < sizeof(lines) / sizeof(lines[0]))
		lines[count++] = strdup(line);
	pthread_mutex_unlock(&lock);
}

unsigned int wq_help_lines(const char *words)
{
	unsigned int n = 0;

	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < count; i++)
		n += strstr(lines[i], words) != NULL;
	pthread_mutex_unlock(&lock);
	return n;
}

bool wq_help_said(const char *words)
{
	return wq_help_lines(words) > 0;
}

static void forget(void)
{
	pthread_mutex_lock(&lock);
	while (count)
		free(lines[--count]);
	pthread_mutex_unlock(&lock);
}

bool wq_help_emulated(void)
{
	const char *emulator = getenv("EMULATOR");

	return emulator && *emulator;
}

unsigned int wq_help_scale(unsigned int n)
{
	unsigned int part = 1;

#if defined(__SANITIZE_THREAD__)
	part = 10;
#elif defined(__SANITIZE_ADDRESS__)
	part = 2;
#endif
	if (wq_help_emulated())
		part = 20;
	n /= part;
	return n ? n : 1;
}

struct wq_mode wq_help_mode(const char *name)
{
	struct wq_error why;
	struct wq_mode mode;

	if (wq_mode_parse(name, &mode, &why) < 0)
		bail("%s", why.text);
	return mode;
}

struct wq_pools *wq_help_open(struct wq_config *config, const char *mode,
			      const struct wq_attrs *attrs, struct wq **wq)
{
	static const struct wq_attrs plain = { .name = "test" };
	struct wq_config none = { 0 };
	struct wq_pools *pools;
	struct wq_error why;

	forget();
	config = config ? config : &none;
	config->mode = wq_help_mode(mode);
	config->say = keep;
	if (!config->handoff_ns)
		config->handoff_ns = 20000;
	if (wq_pools_new(config, &pools, &why) < 0)
		bail("no pools: %s", why.text);
	if (wq && wq_new(pools, attrs ? attrs : &plain, wq, &why) < 0)
		bail("no workqueue: %s", why.text);
	return pools;
}

void wq_help_close(struct wq_pools *pools, struct wq *wq)
{
	wq_free(wq);
	wq_pools_free(pools);
	forget();
}

void wq_help_sleep(unsigned int ms)
{
	struct timespec ts = { .tv_sec = ms / 1000,
			       .tv_nsec = (long)(ms % 1000) * 1000000 };

	nanosleep(&ts, NULL);
}

bool wq_help_until(_Atomic unsigned int *counter, unsigned int n)
{
	for (unsigned int i = 0; i < 40000; i++) {
		if (atomic_load(counter) >= n)
			return true;
		if (i > 100)
			wq_help_sleep(1);
		else
			sched_yield();
	}
	diag("waited for %u, came to %u", n, atomic_load(counter));
	return false;
}

static void hold_on(struct wq_work *work)
{
	struct wq_hold *hold = (struct wq_hold *)work;

	if (hold->blocking)
		wq_blocking_begin();
	atomic_store(&hold->held, 1);
	while (!atomic_load(&hold->go))
		wq_help_sleep(1);
	if (hold->blocking)
		wq_blocking_end();
}

void wq_help_hold(struct wq_hold *hold, bool blocking)
{
	wq_work_init(&hold->work, hold_on, 0);
	atomic_store(&hold->held, 0);
	atomic_store(&hold->go, 0);
	hold->blocking = blocking;
}

void wq_help_let_go(struct wq_hold *hold)
{
	atomic_store(&hold->go, 1);
}

int wq_help_cpu(struct wq_pools *pools, size_t index)
{
	const struct wq_topo *topo = wq_pools_topo(pools);

	return topo->cpu[index % topo->nr].cpu;
}
