/* SPDX-License-Identifier: MIT */
#define WQ_BENCH /* as what it is linked with */
#include "t/wq_meas.h"

#include "t/tap.h"

#include <unistd.h>

static void look(struct wq_work *work)
{
	struct wq_seen *seen = (struct wq_seen *)work;
	uint64_t end = wq_mono_ns() + seen->spin_ns;

	atomic_store(&seen->tid, (int)gettid());
	atomic_store(&seen->cpu, sched_getcpu());
	atomic_store(&seen->home,
		     wq_running->home ? wq_running->home->cpu : -1);
	sched_getaffinity(0, sizeof(seen->mask), &seen->mask);
	while (wq_mono_ns() < end)
		;
	atomic_fetch_add(&seen->ran, 1);
}

void wq_seen_init(struct wq_seen *seen, unsigned int class, uint64_t spin_ns)
{
	wq_work_init(&seen->work, look, class);
	seen->spin_ns = spin_ns;
	atomic_store(&seen->tid, 0);
	atomic_store(&seen->cpu, -1);
	atomic_store(&seen->home, -1);
	atomic_store(&seen->ran, 0);
	CPU_ZERO(&seen->mask);
}

void wq_seen_on(struct wq *wq, struct wq_seen *seen, int cpu, uint64_t spin_ns)
{
	wq_seen_init(seen, 0, spin_ns);
	if (wq_queue_on(cpu, wq, &seen->work) != 1)
		bail("cpu %d does not take an item", cpu);
	wq_meas_flush(wq);
}

void wq_meas_flush(struct wq *wq)
{
	struct wq_stats stats;

	/* Two minutes of milliseconds. */
	for (unsigned int i = 0; i < 120000; i++) {
		wq_stats(wq, &stats);
		if (!stats.infl) {
			wq_flush(wq);
			return;
		}
		if (i > 100)
			wq_help_sleep(1);
		else
			sched_yield();
	}
	bail("%llu items of %s never ended", (unsigned long long)stats.infl,
	     stats.name);
}

static struct wq_cpu_stats sum(struct wq_pools *pools)
{
	struct wq_cpu_stats all = { .wakes = 0 }, one;

	for (size_t i = 0; !wq_cpu_stats(pools, i, &one); i++) {
		all.recalls += one.recalls;
		all.wakes += one.wakes;
		all.queued += one.queued + one.overflowed;
	}
	return all;
}

uint64_t wq_meas_wakes(struct wq_pools *pools)
{
	struct wq_cpu_stats all = sum(pools);

	return all.wakes - all.recalls;
}

uint64_t wq_meas_recalls(struct wq_pools *pools)
{
	return sum(pools).recalls;
}

uint64_t wq_meas_queued(struct wq_pools *pools)
{
	return sum(pools).queued;
}

bool wq_meas_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0;
}
