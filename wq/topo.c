/* SPDX-License-Identifier: MIT */
#include "wq/topo_build.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const scope_names[WQ_SCOPES] = {
	"cpu", "smt", "cache", "cache_shard", "numa", "system",
};

const char *wq_scope_name(enum wq_scope scope)
{
	return (unsigned int)scope < WQ_SCOPES ? scope_names[scope] : "?";
}

int wq_scope_parse(const char *name)
{
	for (int i = 0; i < WQ_SCOPES; i++)
		if (strcmp(name, scope_names[i]) == 0)
			return i;
	return -EINVAL;
}

struct wq_topo *wq_topo_alloc(size_t nr)
{
	struct wq_topo *topo = calloc(1, sizeof(*topo));

	if (!topo)
		return NULL;
	topo->nr = nr;
	topo->cpu = calloc(nr, sizeof(*topo->cpu));
	for (int s = 0; s < WQ_SCOPES; s++)
		topo->pod[s] = calloc(nr, sizeof(*topo->pod[s]));
	for (int s = 0; s < WQ_SCOPES; s++)
		if (!topo->cpu || !topo->pod[s]) {
			wq_topo_free(topo);
			return NULL;
		}
	return topo;
}

void wq_topo_free(struct wq_topo *topo)
{
	if (!topo)
		return;
	for (int s = 0; s < WQ_SCOPES; s++)
		free(topo->pod[s]);
	free(topo->cpu);
	free(topo);
}

static bool same_core(const struct wq_topo_cpu *a, const struct wq_topo_cpu *b)
{
	return a->package == b->package && a->core == b->core;
}

/* Are two CPUs in one pod of the scope?  Not for cache shards. */
static bool together(enum wq_scope scope, const struct wq_topo_cpu *a,
		     const struct wq_topo_cpu *b)
{
	switch (scope) {
	case WQ_SCOPE_SMT:
		return same_core(a, b);
	case WQ_SCOPE_CACHE:
		return a->cache == b->cache;
	case WQ_SCOPE_NUMA:
		return a->node == b->node;
	case WQ_SCOPE_SYSTEM:
		return true;
	default:
		return a->cpu == b->cpu;
	}
}

/* Number the pods of a scope in the order of their first CPU. */
static void divide(struct wq_topo *topo, enum wq_scope scope)
{
	for (size_t i = 0; i < topo->nr; i++) {
		size_t k = 0;

		while (k < i && !together(scope, &topo->cpu[k], &topo->cpu[i]))
			k++;
		topo->pod[scope][i] =
			k < i ? topo->pod[scope][k] : (int)topo->pods[scope]++;
	}
}

/* The number of the core of CPU @i among those of its cache, by first CPU.
 * SMT pods are numbered by their first CPU, so a greater number is a new one. */
static int core_rank(const struct wq_topo *topo, size_t i)
{
	const int *smt = topo->pod[WQ_SCOPE_SMT];
	int seen = -1, rank = 0;

	for (size_t k = 0; k < topo->nr; k++) {
		bool first = smt[k] > seen;

		seen = first ? smt[k] : seen;
		rank += first && topo->cpu[k].cache == topo->cpu[i].cache &&
			smt[k] < smt[i];
	}
	return rank;
}

/* Which of @shards groups core number @rank of @cores is in, when the first
 * groups are larger by one where it does not come out even. */
static int shard_of(int rank, int cores, int shards)
{
	int small = cores / shards, more = cores % shards;

	if (rank < more * (small + 1))
		return rank / (small + 1);
	return more + (rank - more * (small + 1)) / small;
}

/* @rank of each CPU becomes the number of its shard within its cache. */
static void shard_cache(const struct wq_topo *topo, int cache, int *rank)
{
	int cores = 1, shards;

	for (size_t i = 0; i < topo->nr; i++)
		if (topo->cpu[i].cache == cache && rank[i] >= cores)
			cores = rank[i] + 1;
	shards = (cores + WQ_SHARD_CORES - 1) / WQ_SHARD_CORES;
	for (size_t i = 0; i < topo->nr; i++)
		if (topo->cpu[i].cache == cache)
			rank[i] = shard_of(rank[i], cores, shards);
}

static void divide_shards(struct wq_topo *topo)
{
	const int *cache = topo->pod[WQ_SCOPE_CACHE];
	int *pod = topo->pod[WQ_SCOPE_CACHE_SHARD];
	int local[WQ_CPUS] = { 0 };
	int seen = -1;

	for (size_t i = 0; i < topo->nr; i++)
		local[i] = core_rank(topo, i);
	for (size_t i = 0; i < topo->nr; i++) {
		if (cache[i] > seen)
			shard_cache(topo, topo->cpu[i].cache, local);
		seen = cache[i] > seen ? cache[i] : seen;
	}
	for (size_t i = 0; i < topo->nr; i++) {
		size_t k = 0;

		while (k < i && (cache[k] != cache[i] || local[k] != local[i]))
			k++;
		pod[i] = k < i ? pod[k]
			       : (int)topo->pods[WQ_SCOPE_CACHE_SHARD]++;
	}
}

void wq_topo_finish(struct wq_topo *topo)
{
	for (int s = 0; s < WQ_SCOPES; s++)
		if (s != WQ_SCOPE_CACHE_SHARD)
			divide(topo, (enum wq_scope)s);
	divide_shards(topo); /* needs SMT and cache */
}

int wq_topo_index(const struct wq_topo *topo, int cpu)
{
	for (size_t i = 0; i < topo->nr; i++)
		if (topo->cpu[i].cpu == cpu)
			return (int)i;
	return -1;
}

int wq_topo_distance(const struct wq_topo *topo, size_t a, size_t b)
{
	for (int s = 0; s < WQ_SCOPES; s++) {
		/* A shard is part of its cache: nearer than the whole of it. */
		static const int nearest[WQ_SCOPES] = {
			WQ_SCOPE_CPU,   WQ_SCOPE_SMT,  WQ_SCOPE_CACHE_SHARD,
			WQ_SCOPE_CACHE, WQ_SCOPE_NUMA, WQ_SCOPE_SYSTEM,
		};
		const int *pod = topo->pod[nearest[s]];

		if (pod[a] == pod[b])
			return s;
	}
	return WQ_SCOPE_SYSTEM;
}

int wq_scope_known(const struct wq_topo *topo, enum wq_scope scope,
		   struct wq_error *err)
{
	bool have[WQ_SCOPES] = {
		true,           topo->has_smt, topo->has_cache, topo->has_cache,
		topo->has_numa, true
	};
	char can[80] = "";
	size_t used = 0;

	if ((unsigned int)scope >= WQ_SCOPES)
		return wq_fail(err, EINVAL, "scope %d does not exist",
			       (int)scope);
	if (have[scope])
		return 0;
	for (int s = 0; s < WQ_SCOPES; s++)
		if (have[s])
			used += (size_t)snprintf(can + used, sizeof(can) - used,
						 used ? ", %s" : "%s",
						 scope_names[s]);
	return wq_fail(err, ENODEV,
		       "scope %s was asked for; this machine does not tell "
		       "which CPUs that is; possible are %s",
		       wq_scope_name(scope), can);
}

void wq_cpulist_format(const cpu_set_t *set, char *buf, size_t size)
{
	size_t used = 0;

	if (size)
		*buf = '\0';
	for (int i = 0; i < WQ_CPUS; i++) {
		int last = i, n;

		if (!CPU_ISSET(i, set))
			continue;
		while (last + 1 < WQ_CPUS && CPU_ISSET(last + 1, set))
			last++;
		n = snprintf(buf + used, size - used,
			     last > i ? "%s%d-%d" : "%s%d", used ? "," : "", i,
			     last);
		used += (size_t)n;
		if (used >= size) {
			if (size > 3)
				memcpy(buf + size - 4, "...", 4);
			return;
		}
		i = last;
	}
}

/* A number at *@text, which moves on.  Return: -1 when there is none. */
static int number(const char **text)
{
	int value = 0;

	if (!isdigit((unsigned char)**text))
		return -1;
	for (; isdigit((unsigned char)**text); ++*text) {
		value = value * 10 + (**text - '0');
		if (value >= WQ_CPUS)
			return -1;
	}
	return value;
}

int wq_cpulist_parse(const char *text, cpu_set_t *set)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	for (;;) {
		int first = number(&text), last = first;

		if (first >= 0 && *text == '-') {
			text++;
			last = number(&text);
		}
		if (first < 0 || last < first)
			return -EINVAL;
		for (int i = first; i <= last; i++)
			CPU_SET(i, &cpus);
		if (*text != ',')
			break;
		text++;
	}
	if (*text && strcmp(text, "\n") != 0)
		return -EINVAL;
	*set = cpus;
	return 0;
}
