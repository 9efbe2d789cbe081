/* SPDX-License-Identifier: MIT */
/*
 * wq/wq.h - workqueues on worker pools that are bound to CPUs or not, switched
 * while they run, with the latency of every job.
 *
 * In the manner of the kernel's concurrency managed workqueues (Documentation/
 * core-api/workqueue.rst), whose words are used here:
 *
 *	a work item  is a function and its data, in the caller's own struct
 *	a workqueue  orders and limits the items of one purpose
 *	the pools    are the threads that run them, common to all workqueues
 *
 * The pools have one mode at a time (wq/mode.h).  There is one queue a CPU; a
 * mode says which workers serve it: with "bound" the worker pinned to that
 * CPU, with "unbound:cache" every worker of the CPUs that share its cache, and
 * so on.  A switch therefore moves no job: it changes who looks where.
 *
 *	wq_queue() --> [gate: max_active, ordered] --> queue of the issuing CPU
 *	                                                  | ring, overflow list
 *	          idle worker, last idle first <-- wake --+
 *	                     |
 *	                     +--> fn(work)
 *
 * The job path takes no lock: a bounded ring with a sequence number a slot
 * (D. Vyukov's), and lists that are taken whole.  A worker that finds nothing
 * shows itself idle, looks once more, and sleeps on its own futex; whoever
 * queues makes the job visible, looks for idle workers, and wakes the one that
 * went idle last.  At most one wake an enqueue, and none while as many workers
 * are on their way as jobs wait; the woken worker wakes the next while a
 * backlog remains.  Local-first may call a helper again for a job that one came
 * for in vain, and counts that.
 *
 * Functions may be called by any thread, also from a work item, unless they
 * say otherwise.  Errors are negative errno.
 */
#ifndef WQ_WQ_H
#define WQ_WQ_H

#include "wq/clock.h"
#include "wq/error.h"
#include "wq/lat.h"
#include "wq/mode.h"
#include "wq/place.h"
#include "wq/sched.h"
#include "wq/topo.h"
#include "wq/trace.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wq_pools;
struct wq;
struct wq_worker;
struct wq_list;
struct wq_slot;

/**
 * struct wq_work - one work item, in the caller's own struct
 *
 * Set up with wq_work_init().  From then on all fields but @t0 are the queue's.
 * It may go from one workqueue to another when it rests, but can be flushed and
 * cancelled only while the pools that it was queued on last are there.
 * Once fn has begun the queue does not touch the item again unless it was
 * queued anew, so fn may free it.
 */
struct wq_work {
	void (*fn)(struct wq_work *work);
	_Atomic(struct wq *) wq;
	struct wq_work *next;
	_Atomic uint32_t state;
	uint8_t class;
	uint8_t mode;
	uint8_t colour;
	int16_t home;
	_Atomic(struct wq_worker *) last;
	_Atomic(struct wq_slot *) slot;
	_Atomic(struct wq_list *) list;
	/** @t0: the caller may stamp when the input was complete; 0 if not */
	uint64_t t0;
	uint64_t t1, t2, eligible;
	uint64_t pools; /* which it was queued on last */
	uint32_t epoch;
	int16_t cpu;
	int16_t gate;
};

/** wq_work_init() - @class: below wq_config's @classes; by which latency is
 * told apart, a size class for instance */
void wq_work_init(struct wq_work *work, void (*fn)(struct wq_work *work),
		  unsigned int class);

/**
 * struct wq_config - zero it, then set what should not have its default
 * @topo: NULL: sysfs.  Kept, not owned.  All its CPUs must be usable
 * @cpus: CPUs to use; NULL: all that the calling thread may; not with @topo
 * @mode: to begin with; zero is inline
 * @prio: of the workers
 * @no_stamps: record no latencies; wq_pools_lat() is then NULL
 * @classes, @class_names: 0 is one class, "job"; @class_names has as many
 *	entries and is kept
 * @hist_bytes: bound of all histograms; 0 is 64 MiB
 * @ring: jobs a CPU's ring holds before it overflows into a list; a power of
 *	two from 2 on; 0 is 1024
 * @hog_ns: a job that runs so long leaves concurrency management; 0 is 10 ms
 * @stall_ns: no progress for so long is reported; 0 is 30 s
 * @spin_ns: an idle worker looks around so long before it sleeps, one worker a
 *	pod; 0 is not at all
 * @handoff_ns: cost of a hand-off to another CPU, beyond which local-first
 *	spreads; 0: measured by wq_pools_new()
 * @place: for local-first: the switches; migration_cost_ns, of which 0 is
 *	@handoff_ns and 1 is next to none; budget_ns, of which 0 is the same.
 *	spread_ns is @handoff_ns.  balance_ns and busy_factor do nothing here, as
 *	a worker looks at others' queues whenever its own is empty, and never
 *	before: they are for wq/sim.h
 * @trace_events: a thread's trace ring; 0 is 4096
 * @exclusive_lock: one mutex around queueing and claiming, to measure what it
 *	costs; -ENOTSUP but in wq-bench.a
 * @say: told one line when something happens that weakens a result: a CPU
 *	lost, a worker that cannot be started, a stall, a hog
 */
struct wq_config {
	const struct wq_topo *topo;
	const cpu_set_t *cpus;
	struct wq_mode mode;
	struct wq_prio prio;
	bool no_stamps;
	unsigned int classes;
	const char *const *class_names;
	size_t hist_bytes;
	unsigned int ring;
	uint64_t hog_ns;
	uint64_t stall_ns;
	uint64_t spin_ns;
	uint64_t handoff_ns;
	struct wq_place place;
	size_t trace_events;
	bool exclusive_lock;
	void (*say)(void *arg, const char *line);
	void *arg;
};

/**
 * wq_pools_new() - start the workers, one a CPU
 *
 * Return: 0; -EINVAL, -ENODEV (a scope the machine does not have), -EPERM (a
 * priority), -ENOMEM, -EAGAIN (no thread to be had), -ENOTSUP.  @err says what
 * was asked and what is possible; nothing is left behind.
 */
int wq_pools_new(const struct wq_config *config, struct wq_pools **out,
		 struct wq_error *err);

/** wq_pools_free() - all workqueues must be free; stops the workers.  Not from
 * a work item.  NULL is allowed. */
void wq_pools_free(struct wq_pools *pools);

/**
 * struct wq_switch - what a switch cost
 * @from, @to: indices of modes; @epoch: of the new one, from 1 on
 * @drain_ns: from the change until the last worker had left the old mode, that
 *	is until the last job begun under it had ended
 * @pause_ns: the longest that a worker started nothing because it was changing
 * @moved: jobs that were waiting then, which start under the new mode
 */
struct wq_switch {
	unsigned int from;
	unsigned int to;
	uint32_t epoch;
	uint64_t drain_ns;
	uint64_t pause_ns;
	uint64_t moved;
};

/**
 * wq_pools_switch() - change the mode of running pools
 *
 * Waits until no worker starts jobs in the old mode any more; jobs can be
 * queued and run meanwhile.  A worker in wq_blocking_begin() or marked as a hog
 * is not waited for.  Not from a work item (-EDEADLK).  Switching to the mode
 * that is set is a switch like any other.
 *
 * Return: 0; -ENODEV, -ENOMEM, with the mode unchanged.
 */
int wq_pools_switch(struct wq_pools *pools, struct wq_mode mode,
		    struct wq_switch *out, struct wq_error *err);

struct wq_mode wq_pools_mode(const struct wq_pools *pools);

/** wq_pools_prio() - change the priority of all workers, or of none
 * Return: 0; -EPERM or -EINVAL with the old priority restored. */
int wq_pools_prio(struct wq_pools *pools, const struct wq_prio *prio,
		  struct wq_error *err);

/** wq_pools_lat() - the latencies; NULL with @no_stamps.  Lives as the pools. */
struct wq_lat *wq_pools_lat(struct wq_pools *pools);
struct wq_trace *wq_pools_trace(struct wq_pools *pools);
const struct wq_topo *wq_pools_topo(const struct wq_pools *pools);

/** wq_pools_handoff_ns() - as measured or as set */
uint64_t wq_pools_handoff_ns(const struct wq_pools *pools);

#define WQ_DFL_ACTIVE 1024
#define WQ_MAX_ACTIVE 2048

/**
 * struct wq_attrs
 * @name: copied, at most 31 bytes
 * @max_active: how many items may be in the pools' queues or running at once:
 *	a CPU in modes bound and local-first, in all in the others; the rest
 *	waits in the workqueue.  0 is WQ_DFL_ACTIVE, at most WQ_MAX_ACTIVE
 * @ordered: one at a time, in the order queued, in every mode and across
 *	switches; @max_active must be 0 or 1
 */
struct wq_attrs {
	const char *name;
	unsigned int max_active;
	bool ordered;
};

/** wq_new() - Return: 0, -EINVAL or -ENOMEM */
int wq_new(struct wq_pools *pools, const struct wq_attrs *attrs,
	   struct wq **out, struct wq_error *err);

/** wq_free() - drains, then frees.  Not from an item of it.  NULL is allowed. */
void wq_free(struct wq *wq);

/**
 * wq_queue() - run the item, in the pool of the CPU that this is called on
 *
 * An item that is running is queued for the worker that runs it, so that it
 * never runs twice at once.  What the caller wrote before is seen by fn.
 *
 * Return: 1; 0 when it was waiting already, or is being cancelled;
 * -ESHUTDOWN while the workqueue drains, but not from its own items.
 */
int wq_queue(struct wq *wq, struct wq_work *work);

/** wq_queue_on() - the same for the pool of @cpu; -EINVAL for one that the
 * pools do not have.  In mode inline @cpu does not matter. */
int wq_queue_on(int cpu, struct wq *wq, struct wq_work *work);

/** wq_flush() - until all items queued before have run
 * Return: 0; -EDEADLK from an item of this workqueue. */
int wq_flush(struct wq *wq);

/** wq_drain() - until the workqueue is empty; items may still queue items */
int wq_drain(struct wq *wq);

/** wq_flush_work() - until the last queueing of the item before this has run
 * Return: 1 if there was something to wait for, 0 if not, -EDEADLK from it. */
int wq_flush_work(struct wq_work *work);

/** wq_cancel_work() - take it back if it waits; does not wait for it if it runs
 * Return: whether it waited. */
bool wq_cancel_work(struct wq_work *work);

/** wq_cancel_work_sync() - the same, and until it does not run any more;
 * meanwhile it cannot be queued.  The caller may then free it.
 * Return: 1 if it waited, 0 if not, -EDEADLK from the item itself. */
int wq_cancel_work_sync(struct wq_work *work);

#define WQ_BUSY_PENDING 1u
#define WQ_BUSY_RUNNING 2u
/** wq_work_busy() - Return: WQ_BUSY_* or'ed; a hint, as it may change */
unsigned int wq_work_busy(struct wq_work *work);

/**
 * wq_blocking_begin(), wq_blocking_end() - around what blocks inside an item
 *
 * Another worker takes the CPU's queue over for the rest of the item.  In mode
 * inline the workers take over what the item has queued and queues in between.
 * Nothing happens outside of an item, or when nested.  wq_flush() and all that
 * wait do this by themselves.
 */
void wq_blocking_begin(void);
void wq_blocking_end(void);

/**
 * wq_misfit() - should the rest of this item be queued for another CPU?
 * @left_ns: what is left, were it done on a CPU of capacity 1024
 *
 * For a long item to ask at each block border.  Only mode local-first on CPUs
 * of unequal capacity ever says yes.
 *
 * Return: a CPU for wq_queue_on(), or -1: go on here.
 */
int wq_misfit(uint64_t left_ns);

/**
 * struct wq_stats - of one workqueue, as tools/workqueue/wq_monitor.py has them
 * @total: items that ended; @infl: queued and not ended
 * @cancelled: of @total, those that never ran
 * @cpu_ns: time between start and end of all items
 * @hogs: items found running longer than hog_ns
 * @cm_wakeups: workers started or woken in place of one that blocks or hogs
 * @mayday: times that such a worker could not be had
 */
struct wq_stats {
	char name[32];
	uint64_t total;
	uint64_t infl;
	uint64_t cancelled;
	uint64_t cpu_ns;
	uint64_t hogs;
	uint64_t cm_wakeups;
	uint64_t mayday;
};

void wq_stats(struct wq *wq, struct wq_stats *out);

/**
 * struct wq_cpu_stats - of one CPU's queue and the workers at home there
 * @depth: jobs that wait now
 * @queued, @overflowed: jobs put in, and those for which the ring was full
 * @started: jobs started by its workers; @elsewhere: of those, on another CPU
 *	than the issuer's
 * @wakes: times that a worker was woken for a job; @idle_wakes: it found none
 * @recalls: wakes for jobs of this queue that each had a wake before; local-first
 * @stolen: jobs its workers took from other CPUs' queues
 * @repatriated: times that a worker was brought back into its pod
 * @moved: jobs started under another mode than they were queued under
 * @workers: threads that are at home here, with those that wait in reserve
 * @lost: the CPU is offline or outside the cpuset: its pool is unbound
 */
struct wq_cpu_stats {
	int cpu;
	uint64_t depth;
	uint64_t queued;
	uint64_t overflowed;
	uint64_t started;
	uint64_t elsewhere;
	uint64_t wakes;
	uint64_t idle_wakes;
	uint64_t recalls;
	uint64_t stolen;
	uint64_t repatriated;
	uint64_t moved;
	unsigned int workers;
	bool lost;
	struct wq_thread_figures threads; /* the sum over @workers */
};

/** wq_cpu_stats() - @index: of the topology's CPUs.  Return: 0 or -EINVAL. */
int wq_cpu_stats(struct wq_pools *pools, size_t index,
		 struct wq_cpu_stats *out);

/**
 * wq_pools_calls() - how long wq_queue() took where it woke a worker (t3 - t1)
 * @sum: as for wq_lat_read()
 */
int wq_pools_calls(struct wq_pools *pools, struct wq_hist_sum *sum);

/** wq_pools_t3() - when the wake call for job @id was over, or 0: none was made,
 * or it is too long ago (each thread keeps its last 256) */
uint64_t wq_pools_t3(struct wq_pools *pools, uint64_t id);

#endif /* WQ_WQ_H */
