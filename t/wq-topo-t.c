/* SPDX-License-Identifier: MIT */
/*
 * Topology: made-up files, made-up sysfs trees and this machine.
 */
#include "t/tap.h"
#include "wq/topo.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/wq-topo-XXXXXX";
static struct wq_error why;

/* Write a file below the directory, with the folders that it needs. */
static void put(const char *name, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void put(const char *name, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list args;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	for (char *p = path + strlen(dir) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(path, 0700);
		*p = '/';
	}
	f = fopen(path, "w");
	if (!f)
		bail("%s: %s", path, strerror(errno));
	va_start(args, fmt);
	vfprintf(f, fmt, args);
	va_end(args);
	fclose(f);
}

static void wipe(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s/*", dir);
	if (system(command) != 0)
		bail("cannot clean up");
}

static struct wq_topo *fake(const char *text)
{
	char path[64];
	struct wq_topo *topo = NULL;

	put("topo", "%s", text);
	snprintf(path, sizeof(path), "%s/topo", dir);
	*why.text = '\0';
	if (wq_topo_load(path, &topo, &why) < 0)
		return NULL;
	return topo;
}

/* Is @text refused, and does the message hold @words? */
static void refused(const char *text, const char *words)
{
	struct wq_topo *topo = fake(text);

	ok(!topo && strstr(why.text, words), "refused with '%s'", words) ||
		(diag("said: %s", why.text), 0);
	wq_topo_free(topo);
}

static void test_bad_files(void)
{
	refused("", "no CPU is in it");
	refused("# nothing\n", "no CPU is in it");
	refused("cpu 1\n", "line 1: CPUs count up from 0");
	refused("cpu 0\n\ncpu 2\n", "line 3: CPUs count up from 0");
	refused("core 0\n", "line 1: 'cpu' is wanted");
	refused("cpu 0 capacity=0\n", "line 1: capacity must be 1 to 1024");
	refused("cpu 0 capacity=1025\n", "line 1: capacity must be 1 to 1024");
	refused("cpu 0 node=-1\n", "line 1: a number from 0 is wanted");
	refused("cpu 0 colour=1\n", "line 1: package, core, cache");
	refused("cpu 0 core\n", "line 1: NAME=NUMBER is wanted");
	refused("cpu 0\ncpu\n", "line 2: CPUs count up from 0");
	refused("cpu 0 cache=\n", "line 1: a number from 0 is wanted");
	refused("cpu 0 core=1x\n", "line 1: a number from 0 is wanted");
	refused("cpu 0\n# a comment\ncpu 1 capacity=big # so\n",
		"line 3: capacity must be 1 to 1024: 'big'");
	is_int(wq_topo_load("/nonexistent", &(struct wq_topo *){ 0 }, &why),
	       -ENOENT, "a file that is not there");
}

/* 36 cores of two threads on one cache, threads numbered apart. */
static void test_shards(void)
{
	char text[8192] = "";
	int size[8] = { 0 };
	struct wq_topo *topo;
	bool whole = true;

	for (int i = 0; i < 72; i++)
		sprintf(text + strlen(text), "cpu %d core=%d\n", i, i % 36);
	topo = fake(text);
	if (!topo)
		bail("%s", why.text);
	is_uint(topo->pods[WQ_SCOPE_SMT], 36, "36 cores are 36 SMT pods");
	is_uint(topo->pods[WQ_SCOPE_CACHE_SHARD], 5, "and 5 cache shards");
	for (int i = 0; i < 36; i++) {
		size[topo->pod[WQ_SCOPE_CACHE_SHARD][i]]++;
		whole = whole &&
			topo->pod[WQ_SCOPE_CACHE_SHARD][i] ==
				topo->pod[WQ_SCOPE_CACHE_SHARD][i + 36];
	}
	ok(size[0] == 8 && size[1] == 7 && size[2] == 7 && size[3] == 7 &&
		   size[4] == 7,
	   "of 8, 7, 7, 7 and 7 cores");
	ok(whole, "no core is cut in two");
	is_uint(topo->pods[WQ_SCOPE_CACHE], 1, "one cache");
	is_uint(topo->pods[WQ_SCOPE_CPU], 72, "72 CPUs");
	is_int(wq_topo_distance(topo, 0, 1), 2, "near within a shard");
	is_int(wq_topo_distance(topo, 0, 8), 3, "less so within the cache");
	wq_topo_free(topo);
}

static void test_pods(void)
{
	static const struct {
		size_t pods;
		int pod[5];
	} want[WQ_SCOPES] = {
		[WQ_SCOPE_CPU] = { 5, { 0, 1, 2, 3, 4 } },
		[WQ_SCOPE_SMT] = { 4, { 0, 0, 1, 2, 3 } },
		[WQ_SCOPE_CACHE] = { 3, { 0, 0, 0, 1, 2 } },
		[WQ_SCOPE_CACHE_SHARD] = { 3, { 0, 0, 0, 1, 2 } },
		[WQ_SCOPE_NUMA] = { 2, { 0, 0, 0, 0, 1 } },
		[WQ_SCOPE_SYSTEM] = { 1, { 0, 0, 0, 0, 0 } },
	};
	struct wq_topo *topo = fake("cpu 0 core=0 cache=0 node=0 # the first\n"
				    "cpu 1 core=0 cache=0 node=0\n"
				    "cpu 2 core=1 cache=0 node=0\n"
				    "cpu 3 core=2 cache=1 node=0 capacity=512\n"
				    "cpu 4 core=0 cache=2 node=1 package=1\n");

	if (!topo)
		bail("%s", why.text);
	is_int(wq_topo_distance(topo, 0, 0), 0, "a CPU is near itself");
	is_int(wq_topo_distance(topo, 0, 1), 1, "then its SMT sibling");
	is_int(wq_topo_distance(topo, 0, 2), 2, "its cache shard");
	is_int(wq_topo_distance(topo, 0, 3), 4, "its node");
	is_int(wq_topo_distance(topo, 0, 4), 5, "the rest");
	is_int(wq_topo_distance(topo, 4, 0), 5, "from there as well");
	for (int s = 0; s < WQ_SCOPES; s++) {
		bool same = topo->pods[s] == want[s].pods;

		for (int i = 0; i < 5; i++)
			same = same && topo->pod[s][i] == want[s].pod[i];
		ok(same && wq_scope_known(topo, (enum wq_scope)s, NULL) == 0,
		   "scope %s has the pods that the file says",
		   wq_scope_name((enum wq_scope)s));
	}
	is_uint(topo->cpu[3].capacity, 512, "capacity is read");
	is_uint(topo->cpu[0].capacity, 1024, "and is 1024 when left out");
	is_int(wq_topo_index(topo, 4), 4, "a CPU is found");
	is_int(wq_topo_index(topo, 5), -1, "one that is not there is not");
	wq_topo_free(topo);
}

/* A tree of four CPUs in two cores, of which number 3 is offline. */
static void tree(bool smt, bool cache, bool node, bool capacity)
{
	char name[96];

	wipe();
	put("devices/system/cpu/online", "0-2\n");
	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof(name),
			 "devices/system/cpu/cpu%d/topology/"
			 "physical_package_id",
			 i);
		put(name, "0\n");
		snprintf(name, sizeof(name),
			 "devices/system/cpu/cpu%d/topology/"
			 "thread_siblings_list",
			 i);
		if (smt)
			put(name, i < 2 ? "0-1\n" : "2\n");
		snprintf(name, sizeof(name),
			 "devices/system/cpu/cpu%d/cpu_capacity", i);
		if (capacity)
			put(name, "%d\n", i < 2 ? 400 : 1024);
		for (int level = 1; cache && level < 4; level += 2) {
			snprintf(name, sizeof(name),
				 "devices/system/cpu/cpu%d/cache/index%d/level",
				 i, level);
			put(name, "%d\n", level);
			snprintf(name, sizeof(name),
				 "devices/system/cpu/cpu%d/cache/index%d/"
				 "shared_cpu_list",
				 i, level);
			put(name, level == 1 ? "%d\n" : "0-3\n", i);
		}
	}
	if (!node)
		return;
	put("devices/system/node/online", "0-1\n");
	put("devices/system/node/node0/cpulist", "0-1\n");
	put("devices/system/node/node1/cpulist", "2-3\n");
}

static void test_sysfs(void)
{
	struct wq_topo *topo;
	cpu_set_t only;

	tree(true, true, true, true);
	if (wq_topo_read(dir, NULL, &topo, &why) < 0)
		bail("%s", why.text);
	is_uint(topo->nr, 3, "CPUs that are offline are left out");
	is_uint(topo->pods[WQ_SCOPE_SMT], 2, "cores are told apart");
	is_uint(topo->pods[WQ_SCOPE_CACHE], 1, "the last cache level counts");
	is_uint(topo->pods[WQ_SCOPE_NUMA], 2, "nodes are told apart");
	is_uint(topo->cpu[0].capacity, 400, "cpu_capacity is read");
	for (int s = 0; s < WQ_SCOPES; s++)
		if (wq_scope_known(topo, (enum wq_scope)s, &why) < 0)
			bail("%s", why.text);
	wq_topo_free(topo);

	CPU_ZERO(&only);
	CPU_SET(2, &only);
	CPU_SET(3, &only);
	if (wq_topo_read(dir, &only, &topo, &why) < 0)
		bail("%s", why.text);
	ok(topo->nr == 1 && topo->cpu[0].cpu == 2, "only those asked for");
	wq_topo_free(topo);
	CPU_CLR(2, &only);
	is_int(wq_topo_read(dir, &only, &topo, &why), -ENOENT,
	       "none of them online is an error");
	ok(strstr(why.text, "0-2"), "that says which are");

	put("devices/system/cpu/cpu1/cpu_capacity", "many\n");
	is_int(wq_topo_read(dir, NULL, &topo, &why), -EINVAL,
	       "a malformed file is an error");
	ok(strstr(why.text, "cpu1/cpu_capacity"), "that names it");
	is_int(wq_topo_read("/nonexistent", NULL, &topo, &why), -ENOENT,
	       "without sysfs nothing can be said");
}

static void test_sysfs_bare(void)
{
	static const enum wq_scope gone[] = {
		WQ_SCOPE_SMT,
		WQ_SCOPE_CACHE,
		WQ_SCOPE_CACHE_SHARD,
		WQ_SCOPE_NUMA,
	};
	struct wq_topo *topo;

	tree(false, false, false, false);
	if (wq_topo_read(dir, NULL, &topo, &why) < 0)
		bail("%s", why.text);
	is_uint(topo->cpu[1].capacity, 1024, "no cpu_capacity is 1024");
	for (size_t i = 0; i < 4; i++) {
		is_int(wq_scope_known(topo, gone[i], &why), -ENODEV,
		       "scope %s is refused where sysfs does not tell",
		       wq_scope_name(gone[i]));
		ok(strstr(why.text, wq_scope_name(gone[i])) &&
			   strstr(why.text, "possible are cpu, system"),
		   "in words that name what was asked and what is possible");
	}
	is_int(wq_scope_known(topo, WQ_SCOPE_SYSTEM, &why), 0,
	       "system is always known");
	wq_topo_free(topo);
}

/* With each part alone missing. */
static void test_sysfs_lacking(void)
{
	static const struct {
		bool smt, cache, node, capacity;
		unsigned int lacking;
		const char *possible;
	} trees[] = {
		{ false, true, true, true, 1u << WQ_SCOPE_SMT,
		  "are cpu, cache, cache_shard, numa, system" },
		{ true, false, true, true,
		  1u << WQ_SCOPE_CACHE | 1u << WQ_SCOPE_CACHE_SHARD,
		  "are cpu, smt, numa, system" },
		{ true, true, false, true, 1u << WQ_SCOPE_NUMA,
		  "are cpu, smt, cache, cache_shard, system" },
		{ true, true, true, false, 0, "" },
	};

	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++) {
		unsigned int lacking = 0;
		struct wq_topo *topo;

		tree(trees[i].smt, trees[i].cache, trees[i].node,
		     trees[i].capacity);
		if (wq_topo_read(dir, NULL, &topo, &why) < 0)
			bail("%s", why.text);
		*why.text = '\0';
		for (int s = 0; s < WQ_SCOPES; s++)
			if (wq_scope_known(topo, (enum wq_scope)s, &why) < 0)
				lacking |= 1u << s;
		is_uint(lacking, trees[i].lacking,
			"what sysfs does not tell, and only that, is refused");
		ok(strstr(why.text, trees[i].possible),
		   "with the rest named as possible");
		is_uint(topo->has_capacity, trees[i].capacity,
			"capacities are known where sysfs has them");
		wq_topo_free(topo);
	}
}

/*
 * Two clusters of an arm64 device tree: one package, and core_id begins anew in
 * each.  Before, a little and a big CPU were taken for siblings.
 */
static void test_clusters(void)
{
	static const int core_id[] = { 0, 1, 2, 3, 0, 1 };
	char name[96];
	struct wq_topo *topo;

	wipe();
	put("devices/system/cpu/online", "0-5\n");
	for (int i = 0; i < 6; i++) {
#define CPU_FILE(file)                                                         \
	snprintf(name, sizeof(name),                                           \
		 "devices/system/cpu/cpu%d/topology/" file, i)
		CPU_FILE("physical_package_id");
		put(name, "0\n");
		CPU_FILE("core_id");
		put(name, "%d\n", core_id[i]);
		CPU_FILE("thread_siblings_list");
		put(name, "%d\n", i);
#undef CPU_FILE
	}
	if (wq_topo_read(dir, NULL, &topo, &why) < 0)
		bail("%s", why.text);
	is_uint(topo->pods[WQ_SCOPE_SMT], 6,
		"CPUs with one core_id in two clusters are two cores");
	ok(wq_topo_distance(topo, 0, 4) > 1, "and no siblings");
	wq_topo_free(topo);
}

/* A node that is said to be online, but not which CPUs it has. */
static void test_half_a_node(void)
{
	struct wq_topo *topo;

	tree(true, true, true, true);
	put("devices/system/node/node0/cpulist", "\n");
	if (wq_topo_read(dir, NULL, &topo, &why) < 0)
		bail("%s", why.text);
	ok(topo->has_numa && topo->cpu[2].node == 1, "a node may have no CPUs");
	wq_topo_free(topo);
	put("devices/system/node/online", "1-2\n");
	if (wq_topo_read(dir, NULL, &topo, &why) < 0)
		bail("%s", why.text);
	ok(!topo->has_numa && topo->cpu[2].node == 0 &&
		   topo->pods[WQ_SCOPE_NUMA] == 1,
	   "where one node does not tell, none is believed");
	wq_topo_free(topo);
}

/* Each with what the message names. */
static void test_malformed(void)
{
	static const struct {
		const char *file, *text, *name;
	} bad[] = {
		{ "cpu/online", "0-\n", "cpu/online" },
		{ "cpu/cpu1/topology/physical_package_id", "one\n",
		  "cpu1/topology/physical_package_id" },
		{ "cpu/cpu1/topology/thread_siblings_list", "1-0\n",
		  "cpu1/topology/thread_siblings_list" },
		{ "cpu/cpu1/cache/index3/level", "\n",
		  "cpu1/cache/index3/level" },
		{ "cpu/cpu1/cache/index3/shared_cpu_list", "all\n",
		  "cpu1/cache/index3/shared_cpu_list" },
		{ "cpu/cpu1/cpu_capacity", "1025\n", "cpu1/cpu_capacity" },
		{ "cpu/cpu1/cpu_capacity", "0\n", "cpu1/cpu_capacity" },
		{ "node/online", "none\n", "node/online" },
		{ "node/node1/cpulist", "2,\n", "node1/cpulist" },
	};
	struct wq_topo *topo = NULL;
	char name[96];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		tree(true, true, true, true);
		snprintf(name, sizeof(name), "devices/system/%s", bad[i].file);
		put(name, "%s", bad[i].text);
		*why.text = '\0';
		ok(wq_topo_read(dir, NULL, &topo, &why) == -EINVAL && !topo &&
			   strstr(why.text, bad[i].name),
		   "a malformed %s is refused by its name", bad[i].file) ||
			(diag("said: %s", why.text), 0);
	}
}

static void test_here(void)
{
	struct wq_topo *topo;
	cpu_set_t mine;

	sched_getaffinity(0, sizeof(mine), &mine);
	if (wq_topo_read("/sys", &mine, &topo, &why) < 0) {
		skip(1, "%s", why.text);
		return;
	}
	ok(topo->nr >= 1 && topo->nr <= (size_t)CPU_COUNT(&mine),
	   "this machine has CPUs");
	wq_topo_free(topo);
}

static void test_lists(void)
{
	cpu_set_t set;
	char buf[32];

	is_int(wq_cpulist_parse("0-2,8\n", &set), 0, "a list as sysfs has it");
	wq_cpulist_format(&set, buf, sizeof(buf));
	is_str(buf, "0-2,8", "comes out as it went in");
	wq_cpulist_format(&set, buf, 5);
	is_str(buf, "0...", "and is cut where there is no room");
	is_int(wq_cpulist_parse("0-1,x", &set), -EINVAL, "a word is refused");
	ok(CPU_COUNT(&set) == 4 && CPU_ISSET(8, &set), "and nothing set");
	is_int(wq_cpulist_parse("3-1", &set), -EINVAL, "backwards is refused");
	is_int(wq_cpulist_parse("", &set), -EINVAL, "so is nothing");
	is_int(wq_cpulist_parse("0,", &set), -EINVAL, "so is half a list");
	is_int(wq_cpulist_parse("1024", &set), -EINVAL, "so is CPU 1024");
}

int main(void)
{
	plan(95);
	if (!mkdtemp(dir))
		bail("no directory");
	test_bad_files();
	test_shards();
	test_pods();
	test_sysfs();
	test_sysfs_bare();
	test_sysfs_lacking();
	test_clusters();
	test_half_a_node();
	test_malformed();
	test_here();
	test_lists();
	wipe();
	rmdir(dir);
	return done();
}
