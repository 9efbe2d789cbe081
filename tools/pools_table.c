/* SPDX-License-Identifier: MIT */
#include "tools/pools_table.h"

#include "wq/lat_export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void table_note_switch(struct table *table, const struct wq_switch *cost)
{
	table->cost[table->switches++ % TABLE_SWITCHES] = *cost;
}

static double us(uint64_t ns)
{
	return (double)ns / 1000;
}

/* A row: what one part took in one mode. */
static void print_part(struct wq_lat *lat, int mode, enum wq_part part)
{
	struct wq_hist_sum sum;

	if (wq_lat_read(lat, mode, WQ_ANY, WQ_ANY, part, &sum) == 0 &&
	    sum.count)
		printf("%-24s %-9s %9llu %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f\n",
		       wq_mode_name((unsigned int)mode), wq_part_name(part),
		       (unsigned long long)sum.count, wq_hist_mean(&sum) / 1000,
		       us(sum.min), us(wq_hist_quantile(&sum, 0.5)),
		       us(wq_hist_quantile(&sum, 0.9)),
		       us(wq_hist_quantile(&sum, 0.99)), us(sum.max));
	wq_hist_sum_free(&sum);
}

static void print_parts(struct wq_pools *pools)
{
	struct wq_lat *lat = wq_pools_lat(pools);

	printf("# microseconds; ready = enqueue + queue + wake + dispatch; "
	       "clock %s\n",
	       wq_clock_name());
	printf("%-24s %-9s %9s %9s %9s %9s %9s %9s %9s\n", "mode", "part",
	       "jobs", "mean", "min", "p50", "p90", "p99", "max");
	for (int mode = 0; mode < (int)WQ_MODES; mode++)
		for (int part = 0; part < WQ_PARTS; part++)
			print_part(lat, mode, (enum wq_part)part);
}

static void print_cpus(struct wq_pools *pools)
{
	const struct wq_topo *topo = wq_pools_topo(pools);
	struct wq_cpu_stats s;

	printf("\n%-4s %8s %8s %9s %8s %9s %7s %7s %7s %7s %12s %11s\n", "cpu",
	       "queued", "started", "elsewhere", "wakes", "idlewakes", "stolen",
	       "reptrd", "moved", "workers", "run_delay_us", "migrations");
	for (size_t i = 0; i < topo->nr; i++) {
		if (wq_cpu_stats(pools, i, &s) < 0)
			continue;
		printf("%-4d %8llu %8llu %9llu %8llu %9llu %7llu %7llu %7llu "
		       "%7u %12.0f %11llu%s\n",
		       s.cpu, (unsigned long long)s.queued,
		       (unsigned long long)s.started,
		       (unsigned long long)s.elsewhere,
		       (unsigned long long)s.wakes,
		       (unsigned long long)s.idle_wakes,
		       (unsigned long long)s.stolen,
		       (unsigned long long)s.repatriated,
		       (unsigned long long)s.moved, s.workers,
		       us(s.threads.run_delay_ns),
		       (unsigned long long)s.threads.migrations,
		       s.lost ? " lost" : "");
	}
}

static int by_drain(const void *a, const void *b)
{
	const struct wq_switch *x = a, *y = b;

	return (x->drain_ns > y->drain_ns) - (x->drain_ns < y->drain_ns);
}

static void print_switches(const struct table *table)
{
	static struct wq_switch sorted[TABLE_SWITCHES];
	size_t n = table->switches < TABLE_SWITCHES ? table->switches
						    : TABLE_SWITCHES;
	uint64_t moved = 0, pause = 0;

	if (!n)
		return;
	memcpy(sorted, table->cost, n * sizeof(sorted[0]));
	qsort(sorted, n, sizeof(sorted[0]), by_drain);
	for (size_t i = 0; i < n; i++) {
		moved += sorted[i].moved;
		pause = sorted[i].pause_ns > pause ? sorted[i].pause_ns : pause;
	}
	printf("\nswitches %zu: drain p50 %.1f us, max %.1f us; a worker "
	       "paused at most %.1f us; %llu jobs were waiting\n",
	       table->switches, us(sorted[n / 2].drain_ns),
	       us(sorted[n - 1].drain_ns), us(pause),
	       (unsigned long long)moved);
}

static void print_worst(struct wq_pools *pools, unsigned int max)
{
	struct wq_job job[WQ_WORST];
	size_t n = wq_lat_worst(wq_pools_lat(pools), job, max);
	char why[256];

	if (n)
		printf("\nslowest jobs\n");
	for (size_t i = 0; i < n; i++) {
		uint64_t t3 = wq_pools_t3(pools, job[i].id);

		wq_job_why(&job[i], why, sizeof(why));
		printf("  %s", why);
		if (t3 > job[i].t1)
			printf("; the wake call took until %.1f us after t1",
			       us(wq_ticks_to_ns(t3 - job[i].t1)));
		putchar('\n');
	}
}

void table_print(const struct table *table, struct wq_pools *pools,
		 struct wq *wq, const struct load_result *load,
		 unsigned int worst)
{
	struct wq_lat_stats lat;
	struct wq_stats stats;

	print_parts(pools);
	print_cpus(pools);
	wq_stats(wq, &stats);
	printf("\n%-12s %9s %5s %9s %7s %11s %7s\n", "workqueue", "total",
	       "infl", "CPUtime", "CPUhog", "CMwakeup", "mayday");
	printf("%-12s %9llu %5llu %8.2fs %7llu %11llu %7llu\n", stats.name,
	       (unsigned long long)stats.total, (unsigned long long)stats.infl,
	       (double)stats.cpu_ns * 1e-9, (unsigned long long)stats.hogs,
	       (unsigned long long)stats.cm_wakeups,
	       (unsigned long long)stats.mayday);
	print_switches(table);
	print_worst(pools, worst);
	wq_lat_stats(wq_pools_lat(pools), &lat);
	printf("\njobs queued %llu, done %llu, not queued as still waiting "
	       "%llu, in %.2f s\n",
	       (unsigned long long)load->queued, (unsigned long long)load->done,
	       (unsigned long long)load->busy, load->seconds);
	printf("histograms %.1f MiB of %.0f, %u bits an octave%s; not recorded "
	       "%llu; clock went back %llu times; hand-off %.1f us\n",
	       (double)lat.bytes / 1048576, (double)lat.limit / 1048576,
	       lat.bits, lat.per_cpu ? "" : ", CPUs taken together",
	       (unsigned long long)lat.lost, (unsigned long long)lat.backwards,
	       us(wq_pools_handoff_ns(pools)));
}

int table_hgrm(struct wq_pools *pools, const char *path)
{
	FILE *file = fopen(path, "we");
	struct wq_hist_sum sum;
	int err;

	if (!file)
		return -errno;
	err = wq_lat_read(wq_pools_lat(pools), WQ_ANY, WQ_ANY, WQ_ANY,
			  WQ_PART_READY, &sum);
	if (!err)
		err = wq_hist_write_hgrm(file, &sum, "ready latency, ns");
	wq_hist_sum_free(&sum);
	if (ferror(file) && !err)
		err = -EIO;
	if (fclose(file) && !err)
		err = -errno;
	return err;
}
