/* SPDX-License-Identifier: MIT */
/*
 * max_active and ordered queues.
 *
 * Items go through the inbox into a private list, in the order in which they
 * were pushed, and from there into the pools while fewer than max are active.
 * Moving them is one thread's business at a time: whoever counts gate->pump up
 * from 0 does it, and goes on as long as others count it up; those others do
 * not wait.
 */
#include "wq/pool.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* More workers than this are never started in place of blocked ones, so a
 * max_active beyond it cannot matter. */
#define MOST_WORKERS 512

int wq_gates_init(struct wq *wq, size_t nr, uint32_t max)
{
	wq->gated = wq->ordered || max < MOST_WORKERS + nr;
	if (!wq->gated)
		return 0;
	nr = wq->ordered ? 1 : nr + 1;
	wq->gate = aligned_alloc(WQ_LINE, nr * sizeof(*wq->gate));
	if (!wq->gate)
		return -ENOMEM;
	memset(wq->gate, 0, nr * sizeof(*wq->gate));
	wq->nr_gates = nr;
	for (size_t i = 0; i < nr; i++) {
		wq->gate[i].max = max;
		wq->gate[i].tail = &wq->gate[i].head;
		wq->gate[i].inbox.gate = &wq->gate[i];
	}
	return 0;
}

int16_t wq_gate_for(struct wq *wq, size_t home)
{
	uint64_t word =
		atomic_load_explicit(&wq->pools->mode, memory_order_relaxed);
	enum wq_binding binding = wq_mode_at(wq_word_mode(word)).binding;

	if (!wq->ordered && (binding == WQ_BOUND || binding == WQ_LOCAL_FIRST))
		return (int16_t)(home + 1);
	return 0;
}

/* The pump's: the next item in order, or NULL. */
static struct wq_work *next_item(struct wq_gate *gate)
{
	struct wq_work *work;

	if (!gate->head) {
		gate->head = wq_list_take(&gate->inbox);
		gate->tail = &gate->head;
		while (*gate->tail)
			gate->tail = &(*gate->tail)->next;
	}
	work = gate->head;
	if (!work)
		return NULL;
	gate->head = work->next;
	if (!gate->head)
		gate->tail = &gate->head;
	return work;
}

/* The pump's: let through what may go, at the end of *@let. */
static struct wq_work **let_through(struct wq_gate *gate, struct wq_work **let)
{
	while (atomic_load(&gate->active) < gate->max) {
		struct wq_work *work = next_item(gate);

		if (!work)
			break;
		atomic_fetch_add(&gate->active, 1);
		work->eligible = work->t1 ? wq_stamp() : 0;
		work->next = NULL;
		*let = work;
		let = &work->next;
	}
	return let;
}

static void pump_on(struct wq_gate *gate, struct wq_work **let)
{
	uint64_t seen = 1;

	do {
		let = let_through(gate, let);
		/* Whoever counted up after @seen was read relies on us. */
	} while (!atomic_compare_exchange_strong(&gate->pump, &seen, 0));
}

static struct wq_work *pump(struct wq_gate *gate)
{
	struct wq_work *let = NULL;

	if (atomic_fetch_add(&gate->pump, 1) == 0)
		pump_on(gate, &let);
	return let;
}

struct wq_work *wq_gate_push(struct wq_gate *gate, struct wq_work *work,
			     bool stamp)
{
	if (stamp)
		work->t2 = wq_stamp();
	wq_list_push(&gate->inbox, work);
	return pump(gate);
}

struct wq_work *wq_gate_done(struct wq_gate *gate)
{
	atomic_fetch_sub(&gate->active, 1);
	return pump(gate);
}

/* The pump's: unlink @work if it is here. */
static bool unlink_item(struct wq_gate *gate, struct wq_work *work)
{
	struct wq_work **link = &gate->head;

	*gate->tail = wq_list_take(&gate->inbox);
	while (*gate->tail)
		gate->tail = &(*gate->tail)->next;
	while (*link && *link != work)
		link = &(*link)->next;
	if (!*link)
		return false;
	*link = work->next;
	if (!*link)
		gate->tail = link;
	return true;
}

bool wq_gate_take(struct wq_gate *gate, struct wq_work *work,
		  struct wq_work **let)
{
	uint64_t free = 0;
	bool found;

	/* Unlike a passer-by we must be the pump, so we wait for it. */
	while (!atomic_compare_exchange_weak(&gate->pump, &free, 1)) {
		free = 0;
		sched_yield();
	}
	found = unlink_item(gate, work);
	pump_on(gate, let);
	return found;
}
