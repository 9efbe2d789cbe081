/* SPDX-License-Identifier: MIT */
#include "wq/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Return: the pod that home @i belongs to in @mode. */
static size_t pod_of(const struct wq_pools *pools, struct wq_mode mode,
		     size_t i)
{
	switch (mode.binding) {
	case WQ_BOUND:
	case WQ_LOCAL_FIRST:
		return i;
	case WQ_UNBOUND:
		return (size_t)pools->topo->pod[mode.scope][i];
	default:
		return 0;
	}
}

static size_t nr_pods(const struct wq_pools *pools, struct wq_mode mode)
{
	switch (mode.binding) {
	case WQ_BOUND:
	case WQ_LOCAL_FIRST:
		return pools->nr;
	case WQ_UNBOUND:
		return pools->topo->pods[mode.scope];
	default:
		return 1;
	}
}

void wq_plan_free(struct wq_plan *plan)
{
	if (!plan)
		return;
	free(plan->pod);
	free(plan->of);
	free(plan->homes);
	free(plan->idle);
	free(plan);
}

/* Give each pod its share of plan->homes, and fill it. */
static void divide(struct wq_pools *pools, struct wq_plan *plan,
		   struct wq_mode mode)
{
	uint16_t *next = plan->homes;

	for (size_t i = 0; i < pools->nr; i++)
		plan->pod[pod_of(pools, mode, i)].nr_homes++;
	for (size_t p = 0; p < plan->nr_pods; p++) {
		plan->pod[p].home = next;
		next += plan->pod[p].nr_homes;
		plan->pod[p].nr_homes = 0;
	}
	for (size_t i = 0; i < pools->nr; i++) {
		struct wq_pod *pod = &plan->pod[pod_of(pools, mode, i)];

		pod->home[pod->nr_homes++] = (uint16_t)i;
		CPU_SET(pools->home[i].cpu, &pod->cpus);
		plan->of[i] = pod;
	}
}

static int fill(struct wq_pools *pools, struct wq_plan *plan,
		struct wq_mode mode)
{
	size_t bytes = plan->nr_pods * sizeof(*plan->pod);

	plan->pod = aligned_alloc(WQ_LINE, bytes);
	plan->of = calloc(pools->nr, sizeof(struct wq_pod *));
	plan->homes = calloc(pools->nr, sizeof(*plan->homes));
	plan->idle = calloc(pools->nr, sizeof(*plan->idle));
	if (!plan->pod || !plan->of || !plan->homes || !plan->idle)
		return -ENOMEM;
	memset(plan->pod, 0, bytes);
	divide(pools, plan, mode);
	return 0;
}

int wq_plan_need(struct wq_pools *pools, unsigned int index)
{
	struct wq_mode mode = wq_mode_at(index);
	struct wq_plan *plan;

	if (pools->plan[index])
		return 0;
	plan = calloc(1, sizeof(*plan));
	if (!plan)
		return -ENOMEM;
	plan->nr_pods = nr_pods(pools, mode);
	plan->steal = mode.binding == WQ_LOCAL_FIRST;
	if (fill(pools, plan, mode) < 0) {
		wq_plan_free(plan);
		return -ENOMEM;
	}
	pools->plan[index] = plan;
	return 0;
}

void wq_plan_mask(struct wq_pools *pools, unsigned int index,
		  const struct wq_home *home, cpu_set_t *mask)
{
	struct wq_mode mode = wq_mode_at(index);

	if (mode.binding == WQ_BOUND || mode.binding == WQ_LOCAL_FIRST ||
	    (mode.binding == WQ_UNBOUND && mode.strict))
		*mask = pools->plan[index]->of[home->index]->cpus;
	else
		*mask = pools->cpus;
}
