/* SPDX-License-Identifier: MIT */
/*
 * What interrupts and the hypervisor take from each CPU: of the time since the
 * last look, the share in the irq, softirq and steal columns of /proc/stat.
 * What is left of its capacity is the current one; see wq/place.h.
 */
#include "wq/pool.h"

#include <inttypes.h>
#include <stdio.h>

enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COLUMNS };

/* Of a line "cpuN ...".  Return: false for others, also for that of all. */
static bool read_line(const char *line, int *cpu, uint64_t column[COLUMNS])
{
	return sscanf(line,
		      "cpu%d %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		      " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
		      cpu, &column[USER], &column[NICE], &column[SYSTEM],
		      &column[IDLE], &column[IOWAIT], &column[IRQ],
		      &column[SOFTIRQ], &column[STEAL]) == COLUMNS + 1;
}

unsigned int wq_capacity_left(unsigned int capacity, uint64_t lost,
			      uint64_t total)
{
	uint64_t left = capacity;

	if (total && lost <= total)
		left = capacity * (total - lost) / total;
	return left ? (unsigned int)left : 1;
}

static void update(struct wq_home *home, const uint64_t column[COLUMNS])
{
	uint64_t lost = column[IRQ] + column[SOFTIRQ] + column[STEAL];
	uint64_t total = 0;

	for (int i = 0; i < COLUMNS; i++)
		total += column[i];
	/* The first look has nothing to compare with. */
	if (home->stat_total && total > home->stat_total &&
	    lost >= home->stat_lost)
		atomic_store_explicit(
			&home->capacity_now,
			wq_capacity_left(home->capacity, lost - home->stat_lost,
					 total - home->stat_total),
			memory_order_relaxed);
	home->stat_lost = lost;
	home->stat_total = total;
}

void wq_look_at_lost(struct wq_pools *pools)
{
	uint64_t column[COLUMNS];
	FILE *file = fopen("/proc/stat", "re");
	char line[512];
	int cpu;

	if (!file)
		return; /* then capacities stay what they are at most */
	while (fgets(line, sizeof(line), file)) {
		int index = -1;

		if (read_line(line, &cpu, column))
			index = wq_topo_index(pools->topo, cpu);
		if (index >= 0)
			update(&pools->home[index], column);
	}
	fclose(file);
}
