/* SPDX-License-Identifier: MIT */
/*
 * wq/list.h - private: a list that any thread pushes to and that is taken
 * whole.
 *
 * Since nothing is ever taken from the middle, an item that is back on the
 * list cannot be mistaken for its former self.
 */
#ifndef WQ_LIST_H
#define WQ_LIST_H

#include "wq/wq.h"

struct wq_gate;

/** struct wq_list - @gate: set before it is used: whose inbox it is, or NULL */
struct wq_list {
	_Atomic(struct wq_work *) newest;
	struct wq_gate *gate;
};

/**
 * wq_list_push() - publish @work
 *
 * Sequentially consistent, as the store that makes a ring's slot visible: a
 * worker shows itself idle, then looks here; we push, then look for idle ones.
 */
static inline void wq_list_push(struct wq_list *list, struct wq_work *work)
{
	struct wq_work *newest = atomic_load(&list->newest);

	atomic_store_explicit(&work->slot, NULL, memory_order_relaxed);
	atomic_store_explicit(&work->list, list, memory_order_relaxed);
	do {
		work->next = newest;
	} while (!atomic_compare_exchange_weak(&list->newest, &newest, work));
}

static inline bool wq_list_empty(struct wq_list *list)
{
	return !atomic_load(&list->newest);
}

/** wq_list_take() - Return: all, oldest first, linked by next; the caller's */
static inline struct wq_work *wq_list_take(struct wq_list *list)
{
	struct wq_work *work = atomic_exchange(&list->newest, NULL);
	struct wq_work *oldest = NULL;

	while (work) {
		struct wq_work *next = work->next;

		work->next = oldest;
		oldest = work;
		work = next;
	}
	return oldest;
}

#endif /* WQ_LIST_H */
