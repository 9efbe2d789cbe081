/* SPDX-License-Identifier: MIT */
/*
 * wq/topo.h - which CPUs there are, and what they share.
 *
 * Read from sysfs (Documentation/ABI/stable/sysfs-devices-system-cpu, and
 * Documentation/admin-guide/cputopology.rst), or from a file that makes one up
 * so that placement can be tested on any machine.  A topology never changes
 * once it is read; CPUs that come and go are the business of the pools.
 *
 * The scopes are those of the kernel's unbound workqueues (Documentation/
 * core-api/workqueue.rst, "Affinity Scopes"): each partitions the CPUs into
 * pods.  WQ_SCOPE_CACHE_SHARD cuts each last-level cache into groups of at
 * most WQ_SHARD_CORES cores, on core boundaries, as evenly as can be: 36 cores
 * make 8+7+7+7+7.
 *
 * The fake file is text, a line a CPU; '#' begins a comment:
 *
 *	cpu N [package=P] [core=C] [cache=L] [node=M] [capacity=K]
 *
 * N counts up from 0 without a gap.  What is left out is 0, but core, which is
 * N, and capacity, which is 1024.  Two CPUs with one package and core are SMT
 * siblings; cache names the last-level cache.
 */
#ifndef WQ_TOPO_H
#define WQ_TOPO_H

#include "wq/error.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/** WQ_CPUS - as many as a cpu_set_t holds */
#define WQ_CPUS        CPU_SETSIZE
#define WQ_SHARD_CORES 8
#define WQ_CAPACITY    1024 /* of the biggest core; cpu_capacity's scale */

enum wq_scope {
	WQ_SCOPE_CPU,
	WQ_SCOPE_SMT,
	WQ_SCOPE_CACHE,
	WQ_SCOPE_CACHE_SHARD,
	WQ_SCOPE_NUMA,
	WQ_SCOPE_SYSTEM,
	WQ_SCOPES,
};

/**
 * struct wq_topo_cpu - one CPU that is there
 * @cpu: its number
 * @package: physical_package_id
 * @core: with @package equal, equal means SMT siblings.  From sysfs it is the
 *	least CPU of thread_siblings_list: core_id begins anew in each cluster
 *	where an arm64 device tree describes the machine
 * @cache: a number for its last-level cache; equal means shared
 * @node: NUMA node
 * @capacity: 1 to WQ_CAPACITY; WQ_CAPACITY where sysfs has no cpu_capacity
 */
struct wq_topo_cpu {
	int cpu;
	int package;
	int core;
	int cache;
	int node;
	unsigned int capacity;
};

/**
 * struct wq_topo - what is known of the machine
 * @nr: CPUs that are online, in @cpu, by number
 * @fake: it came from a file
 * @has_smt, @has_capacity, @has_cache, @has_numa: sysfs told; otherwise CPUs are
 *	taken to be alike
 * @pods: how many pods each scope has
 * @pod: for each scope and each entry of @cpu, the pod it belongs to, from 0
 */
struct wq_topo {
	size_t nr;
	bool fake;
	bool has_smt;
	bool has_capacity;
	bool has_cache;
	bool has_numa;
	size_t pods[WQ_SCOPES];
	struct wq_topo_cpu *cpu;
	int *pod[WQ_SCOPES];
};

/**
 * wq_topo_read() - from sysfs
 * @sysfs: "/sys", or where a copy of it is mounted
 * @only: CPUs to keep, or NULL for all that are online
 * @out: set on success, the caller's to free with wq_topo_free()
 *
 * Return: 0; -ENOENT when sysfs is not there or no CPU is left, -ENOMEM,
 * -EINVAL for a malformed file.
 */
int wq_topo_read(const char *sysfs, const cpu_set_t *only, struct wq_topo **out,
		 struct wq_error *err);

/** wq_topo_load() - the same from a fake topology file; -EINVAL names the line */
int wq_topo_load(const char *path, struct wq_topo **out, struct wq_error *err);

void wq_topo_free(struct wq_topo *topo);

/** wq_topo_index() - Return: where @cpu is in topo->cpu, or -1 */
int wq_topo_index(const struct wq_topo *topo, int cpu);

/**
 * wq_topo_distance() - how far two CPUs are, by the smallest scope they share
 * @a, @b: indices into topo->cpu
 *
 * Return: 0 the same CPU, 1 SMT, 2 cache shard, 3 cache, 4 node, 5 system.
 */
int wq_topo_distance(const struct wq_topo *topo, size_t a, size_t b);

/** wq_scope_name() - "cpu", "smt", "cache", "cache_shard", "numa", "system" */
const char *wq_scope_name(enum wq_scope scope);

/** wq_scope_parse() - Return: the scope, or -EINVAL */
int wq_scope_parse(const char *name);

/**
 * wq_scope_known() - does the machine tell what @scope needs?
 *
 * A scope whose source is missing (no cache folder, no node folder, no
 * thread_siblings) is refused rather than taken to be one of the others.
 *
 * Return: 0, or -ENODEV with what is possible in @err; -EINVAL for no scope.
 */
int wq_scope_known(const struct wq_topo *topo, enum wq_scope scope,
		   struct wq_error *err);

/** wq_cpulist_format() - "0-3,8" into @buf; cut short with "..." if too long */
void wq_cpulist_format(const cpu_set_t *set, char *buf, size_t size);

/** wq_cpulist_parse() - Return: 0, or -EINVAL for anything but "0-3,8", and @set
 * is as it was */
int wq_cpulist_parse(const char *text, cpu_set_t *set);

#endif /* WQ_TOPO_H */
