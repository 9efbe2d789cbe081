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
	for (size_t i = 0; plan->pod && i < plan->nr_pods; i++)
		free(plan->pod[i].home);
	free(plan->pod);
	free(plan->of);
	free(plan->idle);
	free(plan);
}

static int fill(struct wq_pools *pools, struct wq_plan *plan,
		struct wq_mode mode)
{
	size_t bytes = plan->nr_pods * sizeof(*plan->pod);

	plan->pod = aligned_alloc(WQ_LINE, bytes);
	plan->of = calloc(pools->nr, sizeof(struct wq_pod *));
	plan->idle = calloc(pools->nr, sizeof(*plan->idle));
	if (plan->pod)
		memset(plan->pod, 0, bytes);
	if (!plan->pod || !plan->of || !plan->idle)
		return -ENOMEM;
	for (size_t i = 0; i < pools->nr; i++) {
		struct wq_pod *pod = &plan->pod[pod_of(pools, mode, i)];

		if (!pod->home)
			pod->home = calloc(pools->nr, sizeof(*pod->home));
		if (!pod->home)
			return -ENOMEM;
		pod->home[pod->nr_homes++] = (uint16_t)i;
		CPU_SET(pools->home[i].cpu, &pod->cpus);
		plan->of[i] = pod;
	}
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
