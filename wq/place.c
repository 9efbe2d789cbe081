/* SPDX-License-Identifier: MIT */
#include "wq/place.h"

static const char *const switch_names[] = {
	"kick-misfit",   "orig-capacity", "least-loaded",
	"force-balance", "over-not-idle",
};

const char *wq_place_switch_name(unsigned int bit)
{
	for (unsigned int i = 0;
	     i < sizeof(switch_names) / sizeof(switch_names[0]); i++)
		if (bit == 1u << i)
			return switch_names[i];
	return NULL;
}

uint64_t wq_place_scale(uint64_t ns, unsigned int capacity)
{
	unsigned __int128 scaled = (unsigned __int128)ns * WQ_CAPACITY;

	/* A CPU that lost all its time is as slow as the slowest. */
	scaled /= capacity ? capacity : 1;
	return scaled > UINT64_MAX ? UINT64_MAX : (uint64_t)scaled;
}

/* What a CPU is taken to be able to do. */
static unsigned int capacity(const struct wq_place *place,
			     const struct wq_place_cpu *cpu)
{
	if (place->switches & WQ_PLACE_ORIG_CAPACITY)
		return cpu->capacity_orig;
	return cpu->capacity;
}

bool wq_place_fits(const struct wq_place *place,
		   const struct wq_place_view *view, size_t i, uint64_t ns)
{
	uint64_t there = wq_place_scale(ns, capacity(place, &view->cpu[i]));

	return !place->budget_ns ||
	       (unsigned __int128)there * 1280 <=
		       (unsigned __int128)place->budget_ns * 1024;
}

/* How long all that is there takes, on that CPU. */
static uint64_t load(const struct wq_place *place,
		     const struct wq_place_cpu *cpu)
{
	return wq_place_scale(cpu->backlog_ns + cpu->running_left_ns,
			      capacity(place, cpu));
}

bool wq_place_over(const struct wq_place *place,
		   const struct wq_place_view *view, size_t i)
{
	const struct wq_place_cpu *cpu = &view->cpu[i];

	if (place->switches & WQ_PLACE_OVER_NOT_IDLE && cpu->idle)
		return false;
	return load(place, cpu) > place->spread_ns;
}

static bool rests(const struct wq_place_cpu *cpu)
{
	return cpu->usable && cpu->idle && !cpu->queued;
}

/* Of the CPUs that rest and where @ns fits: the one nearest to @from whose
 * capacity is at least @least; @from itself when there is none. */
static size_t nearest_resting(const struct wq_place *place,
			      const struct wq_place_view *view, size_t from,
			      uint64_t ns, unsigned int least)
{
	int distance = WQ_SCOPES;
	size_t best = from;

	for (size_t i = 0; i < view->topo->nr; i++) {
		const struct wq_place_cpu *cpu = &view->cpu[i];
		int d = wq_topo_distance(view->topo, from, i);

		if (i == from || d >= distance || !rests(cpu) ||
		    capacity(place, cpu) < least ||
		    !wq_place_fits(place, view, i, ns))
			continue;
		distance = d;
		best = i;
	}
	return best;
}

/* The usable CPU that is done with all it has, and @ns more, first. */
static size_t least_loaded(const struct wq_place *place,
			   const struct wq_place_view *view, size_t from,
			   uint64_t ns)
{
	uint64_t least = UINT64_MAX;
	size_t best = from;

	for (size_t i = 0; i < view->topo->nr; i++) {
		const struct wq_place_cpu *cpu = &view->cpu[i];
		uint64_t all = load(place, cpu) +
			       wq_place_scale(ns, capacity(place, cpu));

		if (!cpu->usable || all > least || (all == least && i != from))
			continue;
		least = all;
		best = i;
	}
	return best;
}

/* The biggest usable CPU, nearest to @from. */
static size_t biggest(const struct wq_place *place,
		      const struct wq_place_view *view, size_t from)
{
	unsigned int most = 0;
	int distance = WQ_SCOPES;
	size_t best = from;

	for (size_t i = 0; i < view->topo->nr; i++) {
		unsigned int c = capacity(place, &view->cpu[i]);
		int d = wq_topo_distance(view->topo, from, i);

		if (!view->cpu[i].usable || c < most ||
		    (c == most && d >= distance))
			continue;
		most = c;
		distance = d;
		best = i;
	}
	return best;
}

size_t wq_place_select(const struct wq_place *place,
		       const struct wq_place_view *view, size_t issuer,
		       uint64_t ns)
{
	bool usable = view->cpu[issuer].usable;
	bool fits = wq_place_fits(place, view, issuer, ns);
	bool over = wq_place_over(place, view, issuer);
	size_t to;

	if (usable && fits && !over)
		return issuer;
	to = nearest_resting(place, view, issuer, ns, 0);
	if (to != issuer)
		return to;
	if (!usable || (over && place->switches & WQ_PLACE_LEAST_LOADED))
		return least_loaded(place, view, issuer, ns);
	return fits ? issuer : biggest(place, view, issuer);
}

size_t wq_place_misfit(const struct wq_place *place,
		       const struct wq_place_view *view, size_t i,
		       uint64_t left_ns)
{
	unsigned int mine = capacity(place, &view->cpu[i]);
	uint64_t least = UINT64_MAX;
	size_t best = i;

	if (wq_place_fits(place, view, i, left_ns))
		return i;
	/* A CPU that rests must be woken for it; one that is at work comes by
	 * itself, but has other things to do first. */
	if (place->switches & WQ_PLACE_KICK_MISFIT) {
		best = nearest_resting(place, view, i, left_ns, mine + 1);
		/* Bigger is better, also where it does not fit either. */
		if (best == i)
			best = nearest_resting(place, view, i, 0, mine + 1);
		if (best != i)
			return best;
	}
	for (size_t k = 0; k < view->topo->nr; k++) {
		const struct wq_place_cpu *cpu = &view->cpu[k];
		uint64_t there = load(place, cpu);

		if (!cpu->usable || rests(cpu) ||
		    capacity(place, cpu) <= mine ||
		    wq_place_over(place, view, k) || there >= least)
			continue;
		least = there;
		best = k;
	}
	return best;
}

static bool any_over(const struct wq_place *place,
		     const struct wq_place_view *view)
{
	for (size_t i = 0; i < view->topo->nr; i++)
		if (view->cpu[i].queued && wq_place_over(place, view, i))
			return true;
	return false;
}

bool wq_place_due(const struct wq_place *place,
		  const struct wq_place_view *view, size_t thief)
{
	const struct wq_place_cpu *cpu = &view->cpu[thief];
	uint64_t factor = cpu->idle ? 1 : place->busy_factor;

	if (view->now_ns - cpu->balanced_ns >= place->balance_ns * factor)
		return true;
	return place->switches & WQ_PLACE_FORCE_BALANCE &&
	       any_over(place, view);
}

static bool may_rob(const struct wq_place *place,
		    const struct wq_place_view *view, size_t i)
{
	const struct wq_place_cpu *cpu = &view->cpu[i];

	if (!cpu->queued)
		return false;
	/* Nobody works there: what waits is anybody's. */
	if (!cpu->usable || cpu->head_wait_ns >= place->migration_cost_ns)
		return true;
	return place->switches & WQ_PLACE_FORCE_BALANCE &&
	       wq_place_over(place, view, i);
}

/* What CPU @i is in for; of a length that is not known, a job counts a little. */
static uint64_t burden(const struct wq_place *place,
		       const struct wq_place_view *view, size_t i)
{
	return load(place, &view->cpu[i]) + view->cpu[i].queued;
}

/* Above what burden of CPU @i its oldest job is worth taking.  A thief that is
 * at work must be better off even then, or the job would come back. */
static uint64_t worth(const struct wq_place *place,
		      const struct wq_place_view *view, size_t thief, size_t i)
{
	const struct wq_place_cpu *to = &view->cpu[thief];
	const struct wq_place_cpu *from = &view->cpu[i];
	uint64_t own = burden(place, view, thief);

	if (to->idle || !from->queued)
		return own;
	return own + 1 +
	       wq_place_scale(from->backlog_ns / from->queued,
			      capacity(place, to));
}

size_t wq_place_victim(const struct wq_place *place,
		       const struct wq_place_view *view, size_t thief)
{
	uint64_t most = 0;
	size_t best = thief;

	for (size_t i = 0; i < view->topo->nr; i++) {
		uint64_t there = burden(place, view, i);

		if (i == thief || there <= most || !may_rob(place, view, i) ||
		    there <= worth(place, view, thief, i))
			continue;
		most = there;
		best = i;
	}
	return best;
}
