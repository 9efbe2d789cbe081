/* SPDX-License-Identifier: MIT */
/*
 * wq/place.h - where a job should run when CPUs are not alike or not equally
 * loaded: pure decisions, on a picture of the CPUs that the caller draws.
 *
 * The terms are those of the kernel's energy aware scheduling (Documentation/
 * scheduler/sched-energy.rst, sched-capacity.rst), carried over to pools.  A
 * job that runs cannot be moved, so "misfit" means: cut at the next block
 * border, the rest is queued for a bigger CPU.
 *
 * The five switches are those of the series that Linaro posted in 2016 for
 * big.LITTLE; each can be set alone, so that its effect can be measured alone.
 *
 * Nothing here reads a clock, takes a lock or keeps state: tests drive it with
 * a made-up topology and a simulated clock (wq/sim.h).
 */
#ifndef WQ_PLACE_H
#define WQ_PLACE_H

#include "wq/topo.h"

#include <stdint.h>

/** WQ_PLACE_* - the switches, or'ed together */
#define WQ_PLACE_KICK_MISFIT 0x01u /* wake an idle bigger CPU for a misfit */
#define WQ_PLACE_ORIG_CAPACITY                                                 \
	0x02u /* compare original, not current capacity */
#define WQ_PLACE_LEAST_LOADED  0x04u /* overloaded: plain least-loaded choice */
#define WQ_PLACE_FORCE_BALANCE 0x08u /* balance as soon as one CPU is over */
#define WQ_PLACE_OVER_NOT_IDLE 0x10u /* a CPU that runs nothing is not over */
#define WQ_PLACE_ALL           0x1fu

/** wq_place_switch_name() - of one bit: "kick-misfit", "orig-capacity",
 * "least-loaded", "force-balance", "over-not-idle"; NULL for others */
const char *wq_place_switch_name(unsigned int bit);

/**
 * struct wq_place - the knobs
 * @switches: WQ_PLACE_*
 * @migration_cost_ns: a job that has waited less is not stolen; the kernel's
 *	default is 500,000
 * @balance_ns: an idle CPU looks for work of others so often
 * @busy_factor: a busy CPU does so as many times less often; the kernel's is 16
 * @spread_ns: a CPU whose backlog takes longer than this is over: the hand-off
 *	cost
 * @budget_ns: a job that needs longer than this on its CPU does not fit there,
 *	with 20 % to spare (the kernel's margin of 1280/1024); 0: all fit
 */
struct wq_place {
	unsigned int switches;
	uint64_t migration_cost_ns;
	uint64_t balance_ns;
	uint64_t busy_factor;
	uint64_t spread_ns;
	uint64_t budget_ns;
};

/**
 * struct wq_place_cpu - one CPU as the caller sees it now
 * @capacity_orig: what it can do at most, 1 to 1024
 * @capacity: what is left after interrupts and steal, at most @capacity_orig
 * @usable: false: offline, or outside the cpuset
 * @idle: its worker runs nothing; something may wait all the same
 * @queued: jobs that wait there
 * @head_wait_ns: how long the oldest of them has
 * @backlog_ns: time those jobs would take on a CPU of capacity 1024
 * @running_left_ns: the same for what is left of the running job; 0 when idle
 * @balanced_ns: when it last looked for the work of others
 */
struct wq_place_cpu {
	unsigned int capacity_orig;
	unsigned int capacity;
	bool usable;
	bool idle;
	unsigned int queued;
	uint64_t head_wait_ns;
	uint64_t backlog_ns;
	uint64_t running_left_ns;
	uint64_t balanced_ns;
};

/** struct wq_place_view - @cpu has topo->nr entries; the caller's */
struct wq_place_view {
	const struct wq_topo *topo;
	const struct wq_place_cpu *cpu;
	uint64_t now_ns;
};

/** wq_place_scale() - how long @ns at capacity 1024 takes at @capacity */
uint64_t wq_place_scale(uint64_t ns, unsigned int capacity);

/** wq_place_fits() - would a job of @ns (at capacity 1024) fit on CPU @i? */
bool wq_place_fits(const struct wq_place *place,
		   const struct wq_place_view *view, size_t i, uint64_t ns);

/** wq_place_over() - is CPU @i overutilized? */
bool wq_place_over(const struct wq_place *place,
		   const struct wq_place_view *view, size_t i);

/**
 * wq_place_select() - the CPU for a new job
 * @issuer: where it was queued, an index into topo->cpu
 * @ns: what it is expected to take at capacity 1024; 0 is unknown
 *
 * The issuing CPU, unless the job does not fit there or that CPU is over; then
 * the nearest idle one that fits, then as the switches say.
 *
 * Return: an index that is usable; @issuer when none is.
 */
size_t wq_place_select(const struct wq_place *place,
		       const struct wq_place_view *view, size_t issuer,
		       uint64_t ns);

/**
 * wq_place_misfit() - where the rest of a running job should go
 * @i: the CPU it runs on; @left_ns: what is left, at capacity 1024
 *
 * Return: an index of a bigger CPU, or @i: let it run on.
 */
size_t wq_place_misfit(const struct wq_place *place,
		       const struct wq_place_view *view, size_t i,
		       uint64_t left_ns);

/** wq_place_due() - may CPU @thief look for work of others now? */
bool wq_place_due(const struct wq_place *place,
		  const struct wq_place_view *view, size_t thief);

/**
 * wq_place_victim() - whose oldest waiting job should CPU @thief take?
 *
 * Of those that are in for more than @thief the one with most.  If @thief is at
 * work, it must be so even after the job has moved.
 *
 * Return: an index, or @thief: none.
 */
size_t wq_place_victim(const struct wq_place *place,
		       const struct wq_place_view *view, size_t thief);

#endif /* WQ_PLACE_H */
