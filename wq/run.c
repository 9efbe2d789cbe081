/* SPDX-License-Identifier: MIT */
/*
 * One job: its stamps, its function, what follows.
 *
 * worker->current is the item that runs.  It is set before the item's pending
 * bit is cleared, so whoever sets that bit anew finds it there if the item
 * still runs, and sets bit 0 instead of publishing it: the item is handed to
 * the worker that runs it.  When the function is over, one exchange tells the
 * worker whether that happened; if it did not, the item may be gone, and is
 * not touched.  Bit 1, WQ_LEAVES, is set by the watch that puts another worker
 * in this one's place while the item still runs; see block.c.
 */
#include "wq/pool.h"

/* What must be known before the item can be queued anew. */
static void claim(struct wq_worker *worker, struct wq_work *work,
		  struct wq_job *job)
{
	uint64_t word =
		atomic_load_explicit(&worker->seen, memory_order_relaxed);

	job->t0 = work->t0;
	job->t1 = work->t1;
	job->t2 = work->t2;
	job->eligible = work->eligible;
	job->free = worker->free;
	job->t4 = worker->t4;
	worker->t4 = 0;
	job->run_delay = WQ_UNSAMPLED;
	job->preempt = WQ_UNSAMPLED;
	job->queued_epoch = work->epoch;
	job->queued_mode = work->mode;
	job->started_epoch = wq_word_epoch(word);
	job->started_mode = (uint8_t)wq_word_mode(word);
	job->class = work->class;
	job->issue_cpu = work->cpu;
	job->worker = (int16_t)worker->index;
}

/* Before the function.  Order: see the top. */
static void own(struct wq_worker *worker, struct wq_work *work, struct wq *wq)
{
	atomic_store_explicit(&worker->wq, wq, memory_order_relaxed);
	atomic_store_explicit(&worker->class, work->class,
			      memory_order_relaxed);
	atomic_store(&worker->current, (uintptr_t)work);
	atomic_store_explicit(&work->last, worker, memory_order_relaxed);
	/* It is pending, so this takes that away and counts. */
	atomic_fetch_add(&work->state, WQ_BEGUN - WQ_PENDING);
}

/* The item was queued again while it ran: now it may go on. */
static void again(struct wq_worker *worker, struct wq_work *work, uint64_t now)
{
	work->eligible = now;
	if (atomic_load_explicit(&worker->role, memory_order_relaxed) ==
	    WQ_ISSUER)
		wq_list_push(&worker->deferred, work);
	else
		wq_publish(worker->pools, work);
}

static void tell(struct wq_worker *worker, const struct wq_job *job)
{
	struct wq_pools *pools = worker->pools;

	wq_count(&worker->nr_started);
	if (job->start_cpu != job->issue_cpu)
		wq_count(&worker->nr_elsewhere);
	if (job->started_epoch != job->queued_epoch)
		wq_count(&worker->nr_moved);
	if (pools->lat)
		wq_lat_record(worker->lat, job);
	if (worker->plan && worker->plan->steal && job->t7 > job->t6)
		wq_usual_note(worker->home, job->class,
			      wq_ticks_to_ns(job->t7 - job->t6));
}

/* After the function.  The job is recorded before it is counted out, so that a
 * flush finds all; the workqueue may be gone as soon as it is. */
static void finish(struct wq_worker *worker, struct wq_work *work,
		   struct wq *wq, const struct wq_work *was,
		   const struct wq_job *job)
{
	struct wq_pools *pools = worker->pools;
	uintptr_t end = atomic_exchange(&worker->current, 0);

	atomic_store_explicit(&worker->started, 0, memory_order_relaxed);
	atomic_store_explicit(&worker->wq, NULL, memory_order_relaxed);
	if (end & WQ_LEAVES) {
		/* Who set it is about to change our role. */
		pthread_mutex_lock(&pools->lock);
		pthread_mutex_unlock(&pools->lock);
	}
	if (end & WQ_AGAIN)
		again(worker, work, wq_stamp());
	if (wq->gated)
		wq_let(worker->pools, wq_gate_done(&wq->gate[was->gate]));
	if (job->t7 > job->t6)
		atomic_fetch_add_explicit(&wq->shard[was->home].ticks,
					  job->t7 - job->t6,
					  memory_order_relaxed);
	tell(worker, job);
	wq_count_out(pools, wq, (size_t)was->home, was->colour);
}

/*
 * What the scheduler says of one job in 64.  A read takes a microsecond, so
 * none is made between a sleep and the job that ends it: figures from before
 * the sleep and from after the job tell how long the worker stood on a run
 * queue when it was woken, if it was put on a CPU just once.
 */
static bool sample_before(struct wq_worker *worker, const struct wq_job *job,
			  struct wq_schedfields *before)
{
	return worker->pools->lat && !job->t4 && worker->claims % 64 == 1 &&
	       !wq_schedstat_fields(&worker->stat, before);
}

static void sample_after(struct wq_worker *worker, struct wq_job *job,
			 const struct wq_schedfields *before)
{
	struct wq_schedfields after, *slept = &worker->before_sleep;

	if (wq_schedstat_fields(&worker->stat, &after) < 0)
		return;
	if (before)
		job->preempt = after.run_delay_ns - before->run_delay_ns;
	else if (after.slices == slept->slices + 1)
		job->run_delay = after.run_delay_ns - slept->run_delay_ns;
}

/* The function, between its two stamps. */
static void call(struct wq_worker *worker, struct wq_work *work,
		 struct wq_job *job, bool stamp)
{
	void (*fn)(struct wq_work * work) = work->fn;
	struct wq_worker *outer = wq_running;

	wq_running = worker;
	WQ_POINT(WQ_POINT_DISPATCH);
	job->start_cpu = (int16_t)wq_cpu_now();
	if (stamp)
		job->t6 = wq_stamp();
	atomic_store_explicit(&worker->started, job->t6, memory_order_relaxed);
	wq_trace_event(worker->trace, WQ_EVENT_START, job->t6, job->id,
		       job->class);
	fn(work);
	if (stamp)
		job->t7 = wq_stamp();
	wq_trace_event(worker->trace, WQ_EVENT_END, job->t7, job->id, 0);
	job->end_cpu = (int16_t)wq_cpu_now();
	worker->free = job->t7;
	worker->blocking = 0;
	wq_running = outer;
}

void wq_run(struct wq_worker *worker, struct wq_work *work, uint64_t id,
	    uint32_t depth)
{
	struct wq *wq = atomic_load_explicit(&work->wq, memory_order_relaxed);
	struct wq_work was = { .gate = work->gate,
			       .home = work->home,
			       .colour = work->colour };
	struct wq_job job = { .id = id, .depth = depth };
	struct wq_schedfields before;
	bool sample, stamp;

	stamp = worker->pools->lat || (worker->plan && worker->plan->steal);
	if (stamp)
		job.t5 = wq_stamp();
	claim(worker, work, &job);
	own(worker, work, wq);
	sample = sample_before(worker, &job, &before);
	call(worker, work, &job, stamp);
	if (sample || (worker->sampling && job.t4))
		sample_after(worker, &job, sample ? &before : NULL);
	worker->sampling = false;
	finish(worker, work, wq, &was, &job);
}

/* An issuer follows the mode by itself, job by job. */
static void look_at_mode(struct wq_worker *issuer)
{
	uint64_t word = atomic_load(&issuer->pools->mode);
	struct wq_mode inlined = { .binding = WQ_INLINE };

	/* What runs here runs inline, also when the mode has just changed. */
	word = (word & ~UINT64_C(0xff)) | wq_mode_index(inlined);
	atomic_store_explicit(&issuer->seen, word, memory_order_relaxed);
	issuer->free = 0;
}

/* The next of those that inline jobs left for later.  The rest stays where
 * others find it: the next job may take it back, or wait for it. */
static struct wq_work *next_deferred(struct wq_worker *issuer)
{
	/* Acquire: a job of ours wrote it, but others may have linked it. */
	struct wq_work *work = atomic_exchange(&issuer->chain.newest, NULL);
	struct wq_work *item;

	if (!work) {
		work = wq_list_take(&issuer->deferred);
		for (item = work; item; item = item->next)
			atomic_store_explicit(&item->list, &issuer->chain,
					      memory_order_relaxed);
	}
	/* Nobody else fills it, so it is empty still.  Release: the links. */
	if (work)
		atomic_store(&issuer->chain.newest, work->next);
	return work;
}

void wq_run_elsewhere(struct wq_worker *issuer)
{
	wq_spill(issuer->pools, &issuer->chain, NULL);
	wq_spill(issuer->pools, &issuer->deferred, NULL);
}

void wq_run_inline(struct wq_worker *issuer, struct wq_work *work)
{
	bool nested = atomic_load_explicit(&issuer->current,
					   memory_order_relaxed) != 0;

	if (nested || issuer->draining) {
		wq_list_push(&issuer->deferred, work);
		return;
	}
	issuer->draining = true;
	for (; work; work = next_deferred(issuer)) {
		look_at_mode(issuer);
		wq_run(issuer, work, wq_inline_id(issuer), 0);
	}
	issuer->draining = false;
}
