/* SPDX-License-Identifier: MIT */
/*
 * What the rings hold, as one list in the order of time: jobs nest and are
 * closed, and each start knows where it was queued.
 */
#include "wq/clock.h"
#include "wq/trace_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct event {
	uint64_t stamp, id, a;
	unsigned int kind;
};

/* One ring as it is gone through. */
struct reader {
	const struct wq_trace *trace;
	struct wq_trace_items *items;
	size_t thread;
	uint32_t *stack; /* items: the starts of the jobs that run */
	size_t depth;
	uint64_t ns; /* of the last start or end */
};

uint64_t wq_trace_ns(const struct wq_trace *trace, uint64_t stamp)
{
	const struct wq_moment *begun = &trace->begun, *ended = &trace->ended;
	__int128 ns;

	if (wq_clock.kind == WQ_CLOCK_MONOTONIC)
		return stamp;
	if (ended->stamp <= begun->stamp || ended->mono <= begun->mono)
		return wq_stamp_to_mono(stamp);
	ns = (__int128)stamp - begun->stamp;
	ns *= ended->mono - begun->mono;
	ns /= ended->stamp - begun->stamp;
	return (uint64_t)(begun->mono + ns);
}

/* There is room, see look(). */
static struct wq_trace_item *add(struct reader *r, uint64_t ns,
				 unsigned int kind)
{
	struct wq_trace_item *item = &r->items->item[r->items->nr];

	item->ns = ns;
	item->thread = (uint32_t)r->thread;
	item->kind = (uint8_t)kind;
	item->order = (uint32_t)r->items->nr++;
	return item;
}

/* Event @i of a ring.  A thread that has not seen the stop may still put a new
 * one in its place.  Return: false when it does. */
static bool read_event(const struct wq_trace_ring *ring, uint64_t i,
		       struct event *to)
{
	const _Atomic uint64_t *word =
		&ring->word[(i & (ring->trace->events - 1)) * WQ_EV_WORDS];
	uint64_t tag;

	/* Acquire, but for the last: the loads stay in this order. */
	tag = atomic_load_explicit(&word[WQ_EV_KIND], memory_order_acquire);
	to->stamp =
		atomic_load_explicit(&word[WQ_EV_STAMP], memory_order_acquire);
	to->id = atomic_load_explicit(&word[WQ_EV_ID], memory_order_acquire);
	to->a = atomic_load_explicit(&word[WQ_EV_A], memory_order_acquire);
	to->kind = (unsigned int)(tag & 0xff);
	return tag - to->kind == WQ_EV_TAG(i) &&
	       tag == atomic_load_explicit(&word[WQ_EV_KIND],
					   memory_order_relaxed);
}

/* Stamps of two CPUs may be a little out of order; slices may not. */
static uint64_t in_order(struct reader *r, uint64_t ns)
{
	if (r->ns < ns)
		r->ns = ns;
	return r->ns;
}

/* End the innermost job.  @open: nothing says that it ended. */
static void end_job(struct reader *r, uint64_t ns, bool open)
{
	struct wq_trace_item *item = add(r, in_order(r, ns), WQ_EVENT_END);

	item->id = r->items->item[r->stack[--r->depth]].id;
	item->open = open;
}

/* End job @id and what still runs inside it; nothing if its start is lost. */
static void end_jobs(struct reader *r, uint64_t id, uint64_t ns)
{
	size_t to = r->depth;

	while (to && r->items->item[r->stack[to - 1]].id != id)
		to--;
	while (to && r->depth >= to)
		end_job(r, ns, r->depth > to);
}

static void take_event(struct reader *r, const struct event *event)
{
	uint64_t ns = wq_trace_ns(r->trace, event->stamp);
	struct wq_trace_item *item;

	if (event->kind == WQ_EVENT_END) {
		end_jobs(r, event->id, ns);
		return;
	}
	if (event->kind == WQ_EVENT_START)
		ns = in_order(r, ns);
	item = add(r, ns, event->kind);
	item->id = event->id;
	item->a = event->a;
	if (event->kind == WQ_EVENT_START)
		r->stack[r->depth++] = item->order;
}

static void take_events(struct reader *r, const struct wq_trace_thread *thread)
{
	size_t events = r->trace->events;
	uint64_t first = thread->end > events ? thread->end - events : 0;
	struct event event;

	r->depth = 0;
	r->ns = 0;
	r->items->overwritten += first;
	for (uint64_t i = first; i < thread->end; i++) {
		if (read_event(thread->ring, i, &event))
			take_event(r, &event);
		else
			r->items->overwritten++;
	}
	while (r->depth)
		end_job(r, r->trace->ended.mono, true);
}

static void take_states(struct reader *r, const struct wq_trace_thread *thread)
{
	for (long i = 0; i < thread->nr_switched; i++) {
		const struct wq_switched *from = &thread->switched[i];
		struct wq_trace_item *item = add(r, from->ns, from->kind);

		item->kernel = true;
		item->a = from->cpu;
	}
}

/* --- arrows --- */

/* A queueing or a start. */
struct knot {
	uint64_t id, ns;
	struct wq_trace_item *item;
};

static int by_id(const void *a, const void *b)
{
	const struct knot *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return (x->item > y->item) - (x->item < y->item);
}

static void join(struct wq_trace_items *items, struct wq_trace_item *queue,
		 struct wq_trace_item *start)
{
	queue->flow = start->flow = ++items->flows;
	start->issuer = queue->thread;
	if (queue->ns > start->ns)
		queue->ns = start->ns;
}

/* Of the queueings and starts of one id, in the order of time, a start belongs
 * to the last queueing before it.  What has none there takes the next one: the
 * publisher was late with its stamp. */
static void join_all(struct wq_trace_items *items, const struct knot *knot,
		     size_t n)
{
	struct wq_trace_item *queue = NULL, *start = NULL;

	for (size_t i = 0; i < n; i++) {
		if (i && knot[i].id != knot[i - 1].id)
			queue = start = NULL;
		if (knot[i].item->kind == WQ_EVENT_QUEUE)
			queue = knot[i].item;
		else
			start = knot[i].item;
		if (!queue || !start)
			continue;
		join(items, queue, start);
		queue = start = NULL;
	}
}

static int find_arrows(struct wq_trace_items *items)
{
	struct knot *knot = calloc(items->nr + 1, sizeof(*knot));
	size_t n = 0;

	if (!knot)
		return -ENOMEM;
	for (size_t i = 0; i < items->nr; i++) {
		struct wq_trace_item *item = &items->item[i];

		if (item->kernel || !item->id ||
		    (item->kind != WQ_EVENT_QUEUE &&
		     item->kind != WQ_EVENT_START))
			continue;
		knot[n].id = item->id;
		knot[n].ns = item->ns;
		knot[n++].item = item;
	}
	qsort(knot, n, sizeof(*knot), by_id);
	join_all(items, knot, n);
	free(knot);
	return 0;
}

/* Of what has the same time: off a CPU before onto it, and queued before
 * started; and a wake after the sleep that it ends, before the run. */
static int rank(const struct wq_trace_item *item)
{
	if (item->kernel)
		return item->kind == WQ_SWITCH_IN ? 3 : 0;
	return item->kind == WQ_EVENT_QUEUE ? 1 : 2;
}

static int by_time(const void *a, const void *b)
{
	const struct wq_trace_item *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	if (rank(x) != rank(y))
		return rank(x) - rank(y);
	return (x->order > y->order) - (x->order < y->order);
}

/* Nothing but the writer reads the list of rings now, see trace->writing. */
static int list_threads(struct wq_trace *trace, struct wq_trace_items *items)
{
	const struct wq_trace_ring *ring, *first;
	size_t n = 0;

	pthread_mutex_lock(&trace->lock);
	first = trace->rings;
	pthread_mutex_unlock(&trace->lock);
	for (ring = first; ring; ring = ring->next)
		n++;
	items->thread = calloc(n + 1, sizeof(*items->thread));
	if (!items->thread)
		return -ENOMEM;
	/* Oldest first. */
	items->nr_threads = n;
	for (ring = first; ring; ring = ring->next)
		items->thread[--n].ring = ring;
	return 0;
}

/* How much there is of each thread, and room for all of it. */
static int look(const struct wq_trace *trace, struct wq_trace_items *items)
{
	uint64_t gen = atomic_load(&trace->gen) - 1; /* the stop counted it */
	size_t room = 0;

	for (size_t i = 0; i < items->nr_threads; i++) {
		struct wq_trace_thread *thread = &items->thread[i];
		const struct wq_trace_ring *ring = thread->ring;

		/* Acquire, both: pairs with the releases in wq_trace_add(). */
		if (atomic_load_explicit(&ring->gen, memory_order_acquire) ==
		    gen)
			thread->end = atomic_load_explicit(
				&ring->head, memory_order_acquire);
		thread->nr_switched =
			wq_kstate_read(&ring->kstate, &thread->switched,
				       &items->states_overwritten);
		if (thread->nr_switched < 0)
			return -ENOMEM;
		/* Each event can be a start that is to be ended. */
		room += (size_t)thread->nr_switched +
			2 * (thread->end < trace->events ? thread->end
							 : trace->events);
	}
	if (room > UINT32_MAX)
		return -ENOMEM; /* the numbers of items end there */
	items->item = calloc(room + 1, sizeof(*items->item));
	return items->item ? 0 : -ENOMEM;
}

int wq_trace_items(struct wq_trace *trace, struct wq_trace_items *items)
{
	struct reader r = { .trace = trace, .items = items };
	int err;

	memset(items, 0, sizeof(*items));
	err = list_threads(trace, items);
	if (!err)
		err = look(trace, items);
	r.stack = calloc(trace->events, sizeof(*r.stack));
	if (!r.stack)
		err = -ENOMEM;
	for (r.thread = 0; r.thread < items->nr_threads && !err; r.thread++) {
		take_events(&r, &items->thread[r.thread]);
		take_states(&r, &items->thread[r.thread]);
	}
	free(r.stack);
	if (!err)
		err = find_arrows(items);
	if (!err)
		qsort(items->item, items->nr, sizeof(*items->item), by_time);
	return err;
}

void wq_trace_items_free(struct wq_trace_items *items)
{
	for (size_t i = 0; i < items->nr_threads; i++)
		free(items->thread[i].switched);
	free(items->thread);
	free(items->item);
	memset(items, 0, sizeof(*items));
}
