/* SPDX-License-Identifier: MIT */
#include "wq/topo_build.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_CACHES 10 /* folders cache/indexN */

struct source {
	const char *sysfs;
	struct wq_error *err;
};

/* Read the file into @buf, without its newline.  Return: 0 or -errno. */
static int slurp(char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int slurp(char *buf, size_t size, const char *fmt, ...)
{
	char path[512];
	va_list args;
	ssize_t n;
	int fd;

	va_start(args, fmt);
	vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n < 0)
		return -EIO;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return 0;
}

/* A number in a file of the CPU's folder; @absent where there is none. */
static int number(const struct source *src, int cpu, const char *name,
		  int absent, int *out)
{
	char buf[64], *end;
	long value;
	int code = slurp(buf, sizeof(buf), "%s/devices/system/cpu/cpu%d/%s",
			 src->sysfs, cpu, name);

	*out = absent;
	if (code == -ENOENT)
		return 0;
	if (code)
		return wq_fail(src->err, -code, "cpu%d/%s: %s", cpu, name,
			       strerror(-code));
	value = strtol(buf, &end, 10);
	if (end == buf || *end || value < -1 || value > INT_MAX)
		return wq_fail(src->err, EINVAL,
			       "cpu%d/%s: '%.40s' is no number", cpu, name,
			       buf);
	*out = (int)value;
	return 0;
}

/* The least CPU of a list in the CPU's folder, which stands for what its CPUs
 * share; -1 where there is no such file. */
static int least_of(const struct source *src, int cpu, const char *name,
		    int *out)
{
	char buf[4096];
	cpu_set_t shared;
	int code = slurp(buf, sizeof(buf), "%s/devices/system/cpu/cpu%d/%s",
			 src->sysfs, cpu, name);

	*out = -1;
	if (code == -ENOENT)
		return 0;
	if (code)
		return wq_fail(src->err, -code, "cpu%d/%s: %s", cpu, name,
			       strerror(-code));
	if (wq_cpulist_parse(buf, &shared) < 0)
		return wq_fail(src->err, EINVAL,
			       "cpu%d/%s: '%.40s' is no list of CPUs", cpu,
			       name, buf);
	for (*out = 0; !CPU_ISSET(*out, &shared); ++*out)
		;
	return 0;
}

/* Of the last-level cache. */
static int cache_of(const struct source *src, int cpu, int *out)
{
	int best = -1, level, index = -1, code;
	char name[64];

	*out = -1;
	for (int i = 0; i < MOST_CACHES; i++) {
		snprintf(name, sizeof(name), "cache/index%d/level", i);
		code = number(src, cpu, name, -1, &level);
		if (code < 0)
			return code;
		if (level > best) {
			best = level;
			index = i;
		}
	}
	if (index < 0)
		return 0;
	snprintf(name, sizeof(name), "cache/index%d/shared_cpu_list", index);
	return least_of(src, cpu, name, out);
}

static int read_cpu(const struct source *src, struct wq_topo *topo,
		    struct wq_topo_cpu *c)
{
	int capacity, code;

	code = number(src, c->cpu, "topology/physical_package_id", -1,
		      &c->package);
	if (!code)
		code = least_of(src, c->cpu, "topology/thread_siblings_list",
				&c->core);
	if (!code)
		code = number(src, c->cpu, "cpu_capacity", -1, &capacity);
	if (!code)
		code = cache_of(src, c->cpu, &c->cache);
	if (code)
		return code;
	topo->has_smt = topo->has_smt && c->core >= 0;
	topo->has_cache = topo->has_cache && c->cache >= 0;
	topo->has_capacity = topo->has_capacity && capacity >= 0;
	if (capacity == 0 || capacity > WQ_CAPACITY)
		return wq_fail(src->err, EINVAL,
			       "cpu%d/cpu_capacity: %d is not within 1 to %d",
			       c->cpu, capacity, WQ_CAPACITY);
	c->capacity = capacity < 0 ? WQ_CAPACITY : (unsigned int)capacity;
	return 0;
}

/* Which node each CPU is in; has_numa only when all nodes tell. */
static int read_nodes(const struct source *src, struct wq_topo *topo)
{
	char buf[4096];
	cpu_set_t nodes, cpus;

	if (slurp(buf, sizeof(buf), "%s/devices/system/node/online",
		  src->sysfs) < 0)
		return 0;
	if (wq_cpulist_parse(buf, &nodes) < 0)
		return wq_fail(src->err, EINVAL,
			       "node/online: '%.40s' is no list", buf);
	for (int node = 0; node < WQ_CPUS; node++) {
		if (!CPU_ISSET(node, &nodes))
			continue;
		if (slurp(buf, sizeof(buf),
			  "%s/devices/system/node/node%d/cpulist", src->sysfs,
			  node) < 0)
			return 0;
		if (!*buf)
			continue; /* memory without CPUs */
		if (wq_cpulist_parse(buf, &cpus) < 0)
			return wq_fail(src->err, EINVAL,
				       "node%d/cpulist: '%.40s' is no list",
				       node, buf);
		for (size_t i = 0; i < topo->nr; i++)
			if (CPU_ISSET(topo->cpu[i].cpu, &cpus))
				topo->cpu[i].node = node;
	}
	topo->has_numa = true;
	return 0;
}

/* Without a part of the tree all CPUs are alike in that respect. */
static void level_out(struct wq_topo *topo)
{
	for (size_t i = 0; i < topo->nr; i++) {
		if (!topo->has_smt)
			topo->cpu[i].core = topo->cpu[i].cpu;
		if (!topo->has_cache)
			topo->cpu[i].cache = 0;
		if (!topo->has_numa)
			topo->cpu[i].node = 0;
		if (!topo->has_capacity)
			topo->cpu[i].capacity = WQ_CAPACITY;
	}
}

static int online(const struct source *src, const cpu_set_t *only,
		  cpu_set_t *out)
{
	char buf[4096];
	int code = slurp(buf, sizeof(buf), "%s/devices/system/cpu/online",
			 src->sysfs);

	if (code)
		return wq_fail(src->err, ENOENT,
			       "%s/devices/system/cpu/online: %s", src->sysfs,
			       strerror(-code));
	if (wq_cpulist_parse(buf, out) < 0)
		return wq_fail(src->err, EINVAL,
			       "cpu/online: '%.40s' is no list", buf);
	if (only)
		CPU_AND(out, out, only);
	if (!CPU_COUNT(out))
		return wq_fail(src->err, ENOENT,
			       "none of the CPUs asked for is online; %.80s "
			       "are",
			       buf);
	return 0;
}

int wq_topo_read(const char *sysfs, const cpu_set_t *only, struct wq_topo **out,
		 struct wq_error *err)
{
	struct source src = { .sysfs = sysfs, .err = err };
	struct wq_topo *topo;
	cpu_set_t cpus;
	size_t n = 0;
	int code;

	CPU_ZERO(&cpus);
	code = online(&src, only, &cpus);
	if (code)
		return code;
	topo = wq_topo_alloc((size_t)CPU_COUNT(&cpus));
	if (!topo)
		return wq_fail(err, ENOMEM, "no memory for the topology");
	topo->has_smt = topo->has_cache = topo->has_capacity = true;
	for (int cpu = 0; !code && cpu < WQ_CPUS; cpu++) {
		if (!CPU_ISSET(cpu, &cpus))
			continue;
		topo->cpu[n].cpu = cpu;
		code = read_cpu(&src, topo, &topo->cpu[n++]);
	}
	if (!code)
		code = read_nodes(&src, topo);
	if (code) {
		wq_topo_free(topo);
		return code;
	}
	level_out(topo);
	wq_topo_finish(topo);
	*out = topo;
	return 0;
}
