/* SPDX-License-Identifier: MIT */
/*
 * Time goes from event to event: a job arrives, reaches the end of a block,
 * ends, a worker wakes, or a CPU's time has come to look for the work of others.
 */
#include "wq/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE  SIZE_MAX
#define NEVER UINT64_MAX

struct cpu {
	unsigned int capacity; /* what interrupts leave */
	size_t running;        /* a job, or NONE */
	uint64_t since;        /* its progress is counted up to here */
	uint64_t awake;        /* when the worker that is being woken is */
	size_t head, nr;       /* of the queue, a ring of all jobs' size */
	uint64_t balanced;
};

struct world {
	const struct wq_sim *sim;
	struct wq_sim_job *job;
	uint64_t *left; /* by job: work at capacity 1024 */
	uint64_t *came; /* by job: when it was queued where it is */
	bool *started;  /* by job */
	size_t nr, arrived, done;
	uint64_t now;
	struct cpu *cpu;
	size_t *queues; /* one after the other */
	struct wq_place_cpu *view;
	struct wq_sim_result result;
};

static size_t nr_cpus(const struct world *w)
{
	return w->sim->topo->nr;
}

/* The place of the @k-th job that waits at @c. */
static size_t *place_in(const struct world *w, const struct cpu *c, size_t k)
{
	size_t first = (size_t)(c - w->cpu) * w->nr;

	return &w->queues[first + (c->head + k) % w->nr];
}

/* How long is @job thought to take on a CPU of capacity 1024? */
static uint64_t thought(const struct world *w, size_t job)
{
	return w->job[job].known ? w->left[job] : 0;
}

/* What CPU @c has done of its job and is not counted yet. */
static uint64_t did(const struct world *w, const struct cpu *c)
{
	uint64_t work = (w->now - c->since) * c->capacity / WQ_CAPACITY;

	return work < w->left[c->running] ? work : w->left[c->running];
}

/* Of a running job whose length is not known, as much as it ran is thought to
 * be left. */
static uint64_t thought_left(const struct world *w, const struct cpu *c)
{
	size_t job = c->running;
	uint64_t left;

	if (job == NONE)
		return 0;
	left = w->left[job] - did(w, c);
	return w->job[job].known ? left : w->job[job].work_ns - left;
}

static void look(const struct world *w, struct wq_place_view *view)
{
	for (size_t i = 0; i < nr_cpus(w); i++) {
		const struct cpu *c = &w->cpu[i];
		struct wq_place_cpu *v = &w->view[i];

		memset(v, 0, sizeof(*v));
		v->capacity_orig = w->sim->topo->cpu[i].capacity;
		v->capacity = c->capacity;
		v->usable = true;
		v->idle = c->running == NONE;
		v->queued = (unsigned int)c->nr;
		v->running_left_ns = thought_left(w, c);
		v->balanced_ns = c->balanced;
		if (c->nr)
			v->head_wait_ns = w->now - w->came[*place_in(w, c, 0)];
		for (size_t k = 0; k < c->nr; k++)
			v->backlog_ns += thought(w, *place_in(w, c, k));
	}
	view->topo = w->sim->topo;
	view->cpu = w->view;
	view->now_ns = w->now;
}

static size_t pop(struct world *w, struct cpu *c)
{
	size_t job = *place_in(w, c, 0);

	c->head = (c->head + 1) % w->nr;
	c->nr--;
	return job;
}

static void start(struct world *w, size_t i, size_t job)
{
	w->cpu[i].running = job;
	w->cpu[i].since = w->now;
	w->job[job].last_cpu = i;
	if (w->started[job])
		return;
	w->started[job] = true;
	w->job[job].first_cpu = i;
	w->job[job].start_ns = w->now;
	w->result.ready_ns += w->now - w->job[job].arrive_ns;
}

static void start_next(struct world *w, size_t i)
{
	struct cpu *c = &w->cpu[i];

	c->running = NONE;
	if (c->nr)
		start(w, i, pop(w, c));
}

static void enqueue(struct world *w, size_t i, size_t job)
{
	struct cpu *c = &w->cpu[i];

	w->came[job] = w->now;
	*place_in(w, c, c->nr++) = job;
	if (c->running == NONE && c->awake == NEVER)
		c->awake = w->now + w->sim->wake_ns;
}

static void arrive(struct world *w)
{
	struct wq_place_view view;
	size_t job = w->arrived++;

	look(w, &view);
	enqueue(w,
		wq_place_select(&w->sim->place, &view, w->job[job].cpu,
				thought(w, job)),
		job);
}

/* Count what CPU @c has done up to now. */
static void progress(struct world *w, struct cpu *c)
{
	uint64_t work = did(w, c);

	w->left[c->running] -= work;
	w->result.work_ns += work;
	c->since = w->now;
}

/* Work until the next border of a block, or to the end. */
static uint64_t until_border(const struct world *w, size_t job)
{
	uint64_t block = w->job[job].block_ns, left = w->left[job], ran;

	if (!block)
		return left;
	ran = w->job[job].work_ns - left;
	ran = block - ran % block;
	return ran < left ? ran : left;
}

static uint64_t event_of(const struct world *w, const struct cpu *c)
{
	if (c->running == NONE)
		return c->awake;
	/* Rounded down time would never bring the work to an end. */
	return c->since + 1 +
	       wq_place_scale(until_border(w, c->running), c->capacity);
}

/* At a border: should the rest go to a bigger CPU? */
static void cut(struct world *w, size_t i)
{
	struct cpu *c = &w->cpu[i];
	struct wq_place_view view;
	size_t job = c->running, to;

	look(w, &view);
	to = wq_place_misfit(&w->sim->place, &view, i, thought_left(w, c));
	if (to == i)
		return;
	w->job[job].splits++;
	w->result.splits++;
	enqueue(w, to, job);
	start_next(w, i);
}

static void end(struct world *w, size_t i)
{
	w->job[w->cpu[i].running].end_ns = w->now;
	w->result.makespan_ns = w->now;
	w->done++;
	start_next(w, i);
}

static void advance(struct world *w, size_t i)
{
	struct cpu *c = &w->cpu[i];

	if (event_of(w, c) > w->now)
		return;
	if (c->running == NONE) {
		/* What it was woken for may have been taken by another. */
		c->awake = NEVER;
		start_next(w, i);
		return;
	}
	progress(w, c);
	if (!w->left[c->running])
		end(w, i);
	else
		cut(w, i);
}

static uint64_t period(const struct world *w, const struct cpu *c)
{
	const struct wq_place *place = &w->sim->place;

	return place->balance_ns *
	       (c->running == NONE ? 1 : place->busy_factor);
}

/* While nothing waited all CPUs looked in vain, up to now. */
static void tick_in_vain(struct world *w)
{
	for (size_t i = 0; i < nr_cpus(w); i++) {
		struct cpu *c = &w->cpu[i];

		if (w->now > c->balanced)
			c->balanced += (w->now - c->balanced - 1) /
				       period(w, c) * period(w, c);
	}
}

/* Look for the work of others, if it is time. */
static void balance(struct world *w, size_t i)
{
	struct cpu *c = &w->cpu[i];
	struct wq_place_view view;
	size_t from, job;

	look(w, &view);
	/* A worker that is being woken has work of its own. */
	if ((c->running == NONE && c->nr) ||
	    !wq_place_due(&w->sim->place, &view, i))
		return;
	c->balanced = w->now;
	w->result.scans++;
	from = wq_place_victim(&w->sim->place, &view, i);
	if (from == i)
		return;
	job = pop(w, &w->cpu[from]);
	w->job[job].stolen++;
	w->result.steals++;
	/* Who looks is awake. */
	if (c->running == NONE)
		start(w, i, job);
	else
		enqueue(w, i, job);
}

static bool any_queued(const struct world *w)
{
	for (size_t i = 0; i < nr_cpus(w); i++)
		if (w->cpu[i].nr)
			return true;
	return false;
}

static uint64_t next_event(const struct world *w)
{
	uint64_t next = NEVER;
	bool queued = any_queued(w);

	if (w->arrived < w->nr)
		next = w->job[w->arrived].arrive_ns;
	for (size_t i = 0; i < nr_cpus(w); i++) {
		const struct cpu *c = &w->cpu[i];
		uint64_t scan = c->balanced + period(w, c);
		uint64_t at = event_of(w, c);

		next = at < next ? at : next;
		if (queued && scan > w->now && scan < next)
			next = scan;
	}
	return next;
}

static void run(struct world *w)
{
	while (w->done < w->nr) {
		bool waited = any_queued(w);

		w->now = next_event(w);
		if (!waited)
			tick_in_vain(w);
		for (size_t i = 0; i < nr_cpus(w); i++)
			advance(w, i);
		while (w->arrived < w->nr &&
		       w->job[w->arrived].arrive_ns <= w->now)
			arrive(w);
		/* Those whose wake takes no time. */
		for (size_t i = 0; i < nr_cpus(w); i++)
			advance(w, i);
		for (size_t i = 0; any_queued(w) && i < nr_cpus(w); i++)
			balance(w, i);
	}
}

static int build(struct world *w)
{
	const struct wq_sim *sim = w->sim;

	w->left = calloc(w->nr, sizeof(*w->left));
	w->came = calloc(w->nr, sizeof(*w->came));
	w->started = calloc(w->nr, sizeof(*w->started));
	w->cpu = calloc(sim->topo->nr, sizeof(*w->cpu));
	w->view = calloc(sim->topo->nr, sizeof(*w->view));
	w->queues = calloc(sim->topo->nr * w->nr, sizeof(*w->queues));
	if (!w->left || !w->came || !w->started || !w->cpu || !w->view ||
	    !w->queues)
		return -ENOMEM;
	for (size_t i = 0; i < sim->topo->nr; i++) {
		unsigned int lost =
			sim->lost_permille ? sim->lost_permille[i] : 0;

		w->cpu[i].capacity =
			sim->topo->cpu[i].capacity * (1000 - lost) / 1000;
		w->cpu[i].capacity += !w->cpu[i].capacity;
		w->cpu[i].running = NONE;
		w->cpu[i].awake = NEVER;
	}
	for (size_t k = 0; k < w->nr; k++) {
		w->left[k] = w->job[k].work_ns;
		w->job[k].splits = w->job[k].stolen = 0;
	}
	return 0;
}

static int check(const struct wq_sim *sim, const struct wq_sim_job *jobs,
		 size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (jobs[i].cpu >= sim->topo->nr || !jobs[i].work_ns ||
		    (i && jobs[i].arrive_ns < jobs[i - 1].arrive_ns))
			return -EINVAL;
	for (size_t i = 0; sim->lost_permille && i < sim->topo->nr; i++)
		if (sim->lost_permille[i] > 1000)
			return -EINVAL;
	return sim->place.balance_ns && sim->place.busy_factor ? 0 : -EINVAL;
}

int wq_sim_run(const struct wq_sim *sim, struct wq_sim_job *jobs, size_t nr,
	       struct wq_sim_result *out)
{
	struct world w = { .sim = sim, .job = jobs, .nr = nr };
	int err = check(sim, jobs, nr);

	if (err)
		return err;
	if (nr) {
		err = build(&w);
		if (!err)
			run(&w);
	}
	free(w.queues);
	free(w.left);
	free(w.came);
	free(w.started);
	free(w.cpu);
	free(w.view);
	if (!err)
		*out = w.result;
	return err;
}
