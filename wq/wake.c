/* SPDX-License-Identifier: MIT */
/*
 * Who sleeps and who is woken.
 *
 * A worker shows its bit in pod->idle, looks for jobs once more, and sleeps.
 * Whoever queues makes the job visible, then looks at the idle bits.  Both
 * steps of both are sequentially consistent, so that one sees the other.
 *
 * A waker counts pod->waking up before it chooses; if it chooses none it counts
 * down again, and if that brought the count to 0 it looks again: another waker
 * may have held back because of ours.  A woken worker counts down once it has
 * looked for a job, and then does as a waker does.  So whenever the count is 0,
 * no worker sleeps while a job waits that it could run.
 */
#include "wq/futex.h"
#include "wq/pool.h"

#include <sched.h>

static size_t words(const struct wq_pools *pools)
{
	return (pools->nr + 63) / 64;
}

static bool any_idle(struct wq_pools *pools, struct wq_pod *pod)
{
	for (size_t i = 0; i < words(pools); i++)
		if (atomic_load(&pod->idle[i]))
			return true;
	return false;
}

/* Clear the bit.  Return: whether it was there: that worker is ours to wake. */
static bool clear_idle(struct wq_pod *pod, size_t home)
{
	uint64_t bit = UINT64_C(1) << (home % 64);

	return atomic_fetch_and(&pod->idle[home / 64], ~bit) & bit;
}

/* Of one word of idle bits: the home that went idle last, -1 for none. */
static int last_idle(struct wq_plan *plan, uint64_t bits, size_t base,
		     uint32_t *when)
{
	int best = -1;

	for (; bits; bits &= bits - 1) {
		size_t home = base + (size_t)__builtin_ctzll(bits);
		/* Relaxed: stored before the bit was set. */
		uint32_t at = atomic_load_explicit(&plan->idle[home],
						   memory_order_relaxed);

		if (best >= 0 && (int32_t)(at - *when) <= 0)
			continue;
		best = (int)home;
		*when = at;
	}
	return best;
}

/* Choose the worker that went idle last.  Return: its home, or NULL. */
static struct wq_home *choose(struct wq_pools *pools, struct wq_plan *plan,
			      struct wq_pod *pod)
{
	for (;;) {
		uint32_t when = 0, at;
		int best = -1;

		for (size_t i = 0; i < words(pools); i++) {
			int home = last_idle(plan, atomic_load(&pod->idle[i]),
					     i * 64, &at);

			if (home < 0 ||
			    (best >= 0 && (int32_t)(at - when) <= 0))
				continue;
			best = home;
			when = at;
		}
		if (best < 0)
			return NULL;
		if (clear_idle(pod, (size_t)best))
			return &pools->home[best];
	}
}

/* Jobs that wait in the pod, not counting beyond @enough. */
static uint64_t depth(struct wq_pools *pools, struct wq_pod *pod,
		      uint64_t enough)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < pod->nr_homes && sum <= enough; i++)
		sum += wq_home_depth(&pools->home[pod->home[i]]);
	return sum;
}

/*
 * Local-first: somebody is woken for a job that waits at @home.  Which one is
 * not settled, so the wakes are booked on the tickets from the oldest on, one
 * each.  When all have theirs, this is a second call for one of them: a helper
 * came and was not allowed to take it yet, or took another.
 */
static void book_wake(struct wq_home *home)
{
	uint64_t to = atomic_load(&home->called_to), next;

	do {
		uint64_t head = atomic_load(&home->ring.head);

		next = to > head ? to : head;
		if (next >= atomic_load(&home->ring.tail)) {
			atomic_fetch_add(&home->recalls, 1);
			return;
		}
	} while (
		!atomic_compare_exchange_weak(&home->called_to, &to, next + 1));
}

/*
 * @id: of the job that this is for, 0 for none in particular
 * @due: where it waits, if the wake is to be booked there, or NULL
 */
static void rouse(struct wq_pools *pools, struct wq_home *home, uint64_t id,
		  struct wq_home *due)
{
	struct wq_worker *self;

	WQ_POINT(WQ_POINT_WAKE);
	atomic_fetch_add_explicit(&home->wakes, 1, memory_order_relaxed);
	if (atomic_load_explicit(&wq_trace_recording, memory_order_relaxed)) {
		struct wq_worker *worker = atomic_load(&home->primary);

		self = wq_issuer(pools);
		if (self)
			wq_trace_event(self->trace, WQ_EVENT_WAKE, wq_stamp(),
				       id, (uint64_t)worker->stat.tid);
	}
	if (due)
		book_wake(due);
	wq_call(home);
	/* Release: what the sleeper was told with it, such as ->help. */
	atomic_store(&home->park, 0);
	wq_futex_wake(&home->park, 1);
}

/* Return: whether a worker was woken. */
static bool wake_pod(struct wq_pools *pools, struct wq_plan *plan,
		     struct wq_pod *pod, uint64_t id)
{
	for (;;) {
		struct wq_home *home = NULL;
		uint32_t waking;

		if (!any_idle(pools, pod))
			return false;
		waking = atomic_fetch_add(&pod->waking, 1);
		if (depth(pools, pod, waking) > waking)
			home = choose(pools, plan, pod);
		if (home) {
			/* Local-first: a pod is one home. */
			rouse(pools, home, id, plan->steal ? home : NULL);
			return true;
		}
		if (atomic_fetch_sub(&pod->waking, 1) > 1 ||
		    !depth(pools, pod, 0))
			return false;
	}
}

/* Choose the worker of @other, telling it to help at @home first, so that it
 * knows however soon it wakes.  Return: whether it is ours to wake. */
static bool call_help(struct wq_pod *pod, struct wq_home *other,
		      struct wq_home *home)
{
	struct wq_worker *worker = atomic_load(&other->primary);
	struct wq_home *word;

	/* Whoever takes the word away counts down. */
	atomic_fetch_add(&home->helpers, 1);
	word = atomic_exchange(&worker->help, home);
	if (word)
		atomic_fetch_sub(&word->helpers, 1);
	if (clear_idle(pod, other->index))
		return true;
	word = atomic_exchange(&worker->help, NULL);
	if (word)
		atomic_fetch_sub(&word->helpers, 1);
	return false;
}

/*
 * Local-first: the CPU's own worker, or, when what waits there takes longer
 * than a hand-off, one of another CPU to help, nearest first.
 */
static bool wake_local(struct wq_pools *pools, struct wq_plan *plan,
		       struct wq_home *home, uint64_t id)
{
	if (wake_pod(pools, plan, plan->of[home->index], id))
		return true;
	if (wq_home_backlog(pools, home) <= pools->spread_ticks)
		return false;
	if (atomic_load(&home->helpers) >= wq_home_depth(home))
		return false;
	for (size_t i = 0; i + 1 < pools->nr; i++) {
		struct wq_home *other = &pools->home[home->near[i]];
		struct wq_pod *pod = plan->of[other->index];

		if (!any_idle(pools, pod))
			continue;
		atomic_fetch_add(&pod->waking, 1);
		if (call_help(pod, other, home)) {
			rouse(pools, other, id, home);
			return true;
		}
		atomic_fetch_sub(&pod->waking, 1);
		wake_pod(pools, plan, pod, 0);
	}
	return false;
}

static struct wq_plan *plan_now(struct wq_pools *pools)
{
	/* Sequentially consistent: after the job was made visible, so that a
	 * switch that we do not see finds the job.  See switch.c. */
	return pools->plan[wq_word_mode(atomic_load(&pools->mode))];
}

/* What t3 is: the job is not ours any more, so it goes into our own record. */
static void note_call(struct wq_pools *pools, uint64_t id, uint64_t t1)
{
	struct wq_worker *self = wq_issuer(pools);
	struct wq_calls *calls;
	uint64_t t3, back = 0;
	uint32_t i;

	if (!self)
		return;
	t3 = wq_stamp();
	calls = &self->calls;
	i = calls->next++ % WQ_CALLS;
	/* A reader that meets us half-way may join an id with the t3 of its
	 * predecessor; 0 in between keeps that from happening. */
	atomic_store_explicit(&calls->id[i], 0, memory_order_relaxed);
	atomic_store_explicit(&calls->t3[i], t3, memory_order_release);
	atomic_store_explicit(&calls->id[i], id, memory_order_release);
	wq_hist_add(self->call_hist,
		    wq_ticks_to_ns(wq_ticks_since(t1, t3, &back)));
}

void wq_wake(struct wq_pools *pools, struct wq_home *home, uint64_t id,
	     uint64_t t1)
{
	struct wq_plan *plan = plan_now(pools);
	bool woken;

	if (plan->steal)
		woken = wake_local(pools, plan, home, id);
	else
		woken = wake_pod(pools, plan, plan->of[home->index], id);
	if (woken && t1)
		note_call(pools, id, t1);
}

void wq_wake_more(struct wq_worker *worker)
{
	struct wq_pools *pools = worker->pools;

	if (worker->plan->steal)
		wake_local(pools, worker->plan, worker->home, 0);
	else
		wake_pod(pools, worker->plan, worker->pod, 0);
}

void wq_wake_done(struct wq_worker *worker)
{
	struct wq_pools *pools = worker->pools;
	struct wq_home *help;

	if (!worker->woken)
		return;
	worker->woken = false;
	atomic_fetch_sub(&worker->pod->waking, 1);
	wq_wake_more(worker);
	help = atomic_exchange(&worker->help, NULL);
	if (!help)
		return;
	atomic_fetch_sub(&help->helpers, 1);
	if (worker->plan->steal)
		wake_local(pools, worker->plan, help, 0);
}

void wq_kick(struct wq_home *home)
{
	atomic_store(&home->park, 0);
	wq_futex_wake(&home->park, 1);
}

/* Is there a reason not to sleep?  It counts after the idle bit was set. */
static bool called(struct wq_worker *worker)
{
	struct wq_pools *pools = worker->pools;

	return wq_find_any(worker) ||
	       atomic_load(&pools->mode) != atomic_load(&worker->seen) ||
	       atomic_load(&pools->stop);
}

/* Look around for a while before sleeping.  Return: whether there is a reason
 * not to. */
static bool spin(struct wq_worker *worker)
{
	struct wq_pools *pools = worker->pools;
	struct wq_pod *pod = worker->pod;
	uint64_t end;
	bool found = false;

	if (!pools->spin_ticks || atomic_exchange(&pod->spinners, 1))
		return false;
	end = wq_stamp() + pools->spin_ticks;
	do {
		for (int i = 0; i < 16; i++)
			wq_relax();
		found = called(worker);
	} while (!found && wq_stamp() < end);
	atomic_store(&pod->spinners, 0);
	return found;
}

/* Sleep; one time in 64, first note what sample_after() in run.c needs. */
static void doze(struct wq_worker *worker, uint64_t ns)
{
	struct wq_home *home = worker->home;

	worker->sampling =
		worker->pools->lat && worker->sleeps++ % 64 == 0 &&
		!wq_schedstat_fields(&worker->stat, &worker->before_sleep);
	if (atomic_load(&home->park))
		wq_futex_wait(&home->park, 1, ns);
	worker->t4 = wq_stamp();
}

void wq_park(struct wq_worker *worker)
{
	struct wq_home *home = worker->home;
	struct wq_pod *pod = worker->pod;
	uint64_t bit = UINT64_C(1) << (home->index % 64);
	uint64_t ns = UINT64_MAX;

	while (!wq_arrive(worker))
		sched_yield();
	if (spin(worker))
		return;
	atomic_store(&home->park, 1);
	atomic_store_explicit(&worker->plan->idle[home->index],
			      atomic_fetch_add(&pod->turns, 1),
			      memory_order_relaxed);
	atomic_fetch_or(&pod->idle[home->index / 64], bit);
	if (worker->plan->steal && wq_others_wait(worker))
		ns = wq_ticks_to_ns(worker->pools->spread_ticks) + 1000;
	if (!called(worker))
		doze(worker, ns);
	if (!clear_idle(pod, home->index))
		worker->woken = true;
}
