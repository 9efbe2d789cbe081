/* SPDX-License-Identifier: MIT */
/*
 * wq/pool.h - private: what the pools are made of.
 *
 *	wq_pools --+-- wq_home   one a CPU: its queue, and the place where its
 *	           |             worker sleeps
 *	           +-- wq_plan   one a mode: the homes, divided into pods
 *	           +-- wq_worker the threads; and, with no thread of their own,
 *	           |             those of others that queue jobs ("issuers")
 *	           +-- wq        the workqueues
 *
 * Each home has one worker that serves it, its primary.  When that one blocks
 * or hogs, a spare becomes primary in its place, and it becomes a spare itself
 * once its job is over.  Homes are numbered as the CPUs of the topology.
 *
 * How fields are protected:
 *
 * I: set before the pools run, then only read.
 * A: atomic; the comment says what it pairs with, or that it is a hint.
 * O: the owner's: the thread of the worker, or who holds what is named.
 * L: pools->lock: who is primary, spare, issuer, workqueue.
 * S: pools->switching: a switch, a change of priority.
 *
 * Order of locks: switching, lock.  Neither is taken on the way of a job, and
 * no function of a work item and no futex wake happens under lock.
 */
#ifndef WQ_POOL_H
#define WQ_POOL_H

#include "wq/list.h"
#include "wq/ring.h"

#include <pthread.h>

/*
 * work->state: whether it is queued or held back; how many
 * wq_cancel_work_sync() are under way, in steps of WQ_DISABLE; and, in steps of
 * WQ_BEGUN and going round, how often it has begun to run.
 */
#define WQ_PENDING 1u
#define WQ_DISABLE 0x10u
#define WQ_BEGUN   0x10000u

/**
 * struct wq_pod - homes whose workers serve each other's queues
 * @idle: a bit a home whose worker is idle; who clears it wakes that worker
 * @idle_at: when, in turns of @turns; the greatest was last
 * @waking: workers that were woken and have not looked for a job yet
 */
struct wq_pod {
	_Alignas(WQ_LINE) _Atomic uint32_t waking; /* A: see wake.c */
	_Atomic uint32_t turns;                    /* A: counter */
	_Atomic uint32_t spinners;                 /* A: at most one */
	_Alignas(WQ_LINE) _Atomic uint64_t idle[WQ_CPUS / 64];
	uint16_t *home;  /* I: its homes, of plan->homes */
	size_t nr_homes; /* I */
	cpu_set_t cpus;  /* I: their CPUs */
};

/** struct wq_plan - what one mode means; made when it is first used (S) */
struct wq_plan {
	struct wq_pod *pod;     /* I */
	size_t nr_pods;         /* I */
	struct wq_pod **of;     /* I: by home */
	uint16_t *homes;        /* I: all, pod after pod */
	_Atomic uint32_t *idle; /* A: by home: idle_at of its pod */
	bool steal;             /* I: local-first: other pods' jobs as well */
};

/** struct wq_home - one CPU's queue */
struct wq_home {
	struct wq_ring ring;
	struct wq_list overflow;
	int cpu;               /* I */
	uint16_t index;        /* I */
	unsigned int capacity; /* I: 1 to WQ_CAPACITY */
	_Atomic uint32_t
		capacity_now;    /* A: less what interrupts take, a hint */
	uint16_t *near;          /* I: all other homes, nearest first */
	_Atomic uint32_t *class; /* A: by class: usual run time, ns, a hint */

	_Alignas(WQ_LINE) _Atomic uint32_t park; /* A: 1: asleep; see wake.c */
	_Atomic uint32_t called;                 /* A: see unstack.c */
	_Atomic(struct wq_worker *) primary;     /* A, written under L */
	_Atomic bool lost;                       /* A: a hint */
	_Atomic uint64_t overflowed;             /* A: counter */
	_Atomic uint64_t wakes;                  /* A: counter */
	_Atomic uint32_t helpers;       /* A: woken to steal from here */
	_Atomic uint64_t called_to;     /* A: see book_wake() in wake.c */
	_Atomic uint64_t recalls;       /* A: counter */
	uint64_t stall_head;            /* O: the watch's */
	uint64_t stall_since;           /* O: the watch's, ns */
	uint64_t stall_said;            /* O: the watch's */
	uint64_t stat_lost, stat_total; /* O: the watch's, clock ticks */
};

#define WQ_CALLS 256

/**
 * struct wq_calls - what a thread stamps of jobs that it no longer owns
 * @id, @t3: of its last wake calls
 */
struct wq_calls {
	_Atomic uint64_t id[WQ_CALLS]; /* A: written by the owner */
	_Atomic uint64_t t3[WQ_CALLS];
	uint32_t next; /* O */
};

/** enum wq_role - what a worker is now */
enum wq_role {
	WQ_ISSUER,   /* no thread of ours; it queues, and runs jobs inline */
	WQ_PRIMARY,  /* serves its home */
	WQ_DETACHED, /* another is primary; ends its job, then is a spare */
	WQ_SPARE,    /* sleeps on @spare_word; once called, is primary soon */
};

/* Bits of a worker's @current. */
#define WQ_AGAIN  ((uintptr_t)1) /* the item was queued again */
#define WQ_LEAVES ((uintptr_t)2) /* another takes this worker's place */

/* Of a spare's @spare_word: be a primary, or end. */
#define WQ_CALLED 1u
#define WQ_ENDED  2u

/** struct wq_worker - a thread that runs jobs */
struct wq_worker {
	_Alignas(WQ_LINE) struct wq_pools *pools; /* I */
	int index;                                /* I */
	/*
	 * A: the item that runs, with WQ_AGAIN and WQ_LEAVES; see run.c.
	 */
	_Atomic uintptr_t current;
	_Atomic(struct wq *) wq;      /* A: of @current; a hint but under L */
	_Atomic uint64_t started;     /* A: t6 of @current, or 0; a hint */
	_Atomic uint32_t class;       /* A: of @current; a hint */
	_Atomic int role;             /* A: enum wq_role, written under L */
	_Atomic uint64_t seen;        /* A: the mode word it lives by */
	_Atomic uint64_t pause;       /* A: ticks that took, last time */
	_Atomic uint32_t spare_word;  /* A: futex: 0, WQ_CALLED, WQ_ENDED */
	struct wq_home *home;         /* O, as long as it is primary */
	struct wq_pod *pod;           /* O: of @home in mode @seen */
	struct wq_plan *plan;         /* O */
	bool woken;                   /* O: it owes @pod->waking one */
	struct wq_home *_Atomic help; /* A: set by who woke it to steal there */
	unsigned int blocking;        /* O: depth of wq_blocking_begin() */
	uint64_t t4;   /* O: back from the futex, until a claim */
	bool sampling; /* O: @before_sleep is of this sleep */
	struct wq_schedfields before_sleep; /* O */
	uint64_t free;                      /* O: t7 of its previous job */
	uint32_t claims;                    /* O */
	uint32_t sleeps;                    /* O */
	uint64_t issued;                    /* O: ids of inline jobs */
	bool draining;                      /* O: issuer: in wq_run_inline() */
	bool ready;                /* O: issuer: can record inline jobs */
	struct wq_list deferred;   /* issuer: queued by its own inline job */
	struct wq_list chain;      /* issuer: before those, oldest first */
	struct wq_place_cpu *view; /* O: room for one picture of the homes */

	bool left;                       /* L: issuer: its thread ended */
	struct wq_lat_writer *lat;       /* I; issuer: O */
	struct wq_hist *call_hist;       /* I: written by the owner */
	struct wq_trace_ring *trace;     /* I */
	struct wq_calls calls;           /* O */
	struct wq_schedstat stat;        /* I after its thread has begun */
	struct wq_worker *next_spare;    /* L */
	struct wq_worker *next;          /* I: list of all */
	uint64_t watch_job;              /* O: the watch's: @nr_started then */
	uint64_t watch_since;            /* O: the watch's, ns */
	bool watch_hog;                  /* O: the watch's */
	pthread_t thread;                /* I */
	bool has_thread;                 /* I */
	_Atomic uint32_t born;           /* A: futex: 1: runs, 2: cannot */
	int born_error;                  /* O until born */
	struct wq_error *born_why;       /* O until born */
	_Atomic uint64_t nr_started;     /* A: counters, single writer */
	_Atomic uint64_t nr_elsewhere;   /* A */
	_Atomic uint64_t nr_idle_wakes;  /* A */
	_Atomic uint64_t nr_stolen;      /* A */
	_Atomic uint64_t nr_repatriated; /* A */
	_Atomic uint64_t nr_moved;       /* A */
};

/** struct wq_shard - a workqueue's counts on one home; sums matter */
struct wq_shard {
	_Alignas(WQ_LINE) _Atomic uint64_t queued[2]; /* A: by colour */
	_Atomic uint64_t done[2];                     /* A: by colour */
	_Atomic uint64_t cancelled;                   /* A: counter */
	_Atomic uint64_t ticks;                       /* A: counter */
};

/**
 * struct wq_gate - lets at most @max items into the pools
 * @pump: who counts it up from 0 moves items until nobody came meanwhile
 */
struct wq_gate {
	_Alignas(WQ_LINE) struct wq_list inbox;
	_Atomic uint64_t pump;   /* A: see gate.c */
	_Atomic uint32_t active; /* A: counted up by the pump alone */
	uint32_t max;            /* I */
	struct wq_work *head;    /* O: the pump's */
	struct wq_work **tail;   /* O: the pump's */
};

/** struct wq - a workqueue */
struct wq {
	struct wq_pools *pools;    /* I */
	char name[32];             /* I */
	bool ordered;              /* I */
	bool gated;                /* I: max_active can matter here */
	_Atomic uint32_t colour;   /* A: of what is queued now */
	_Atomic uint32_t draining; /* A: 1 while wq_drain() */
	_Atomic uint64_t hogs;     /* A: counters */
	_Atomic uint64_t cm_wakeups;
	_Atomic uint64_t mayday;
	pthread_mutex_t flushing; /* one flush at a time */
	struct wq *next;          /* L */
	struct wq_gate *gate;     /* I: one, or one a home after the first */
	size_t nr_gates;          /* I */
	struct wq_shard *shard;   /* I: one a home */
};

/** struct wq_pools - all of it */
struct wq_pools {
	struct wq_config config;    /* I */
	const struct wq_topo *topo; /* I */
	struct wq_topo *own_topo;   /* I: to free */
	size_t nr;                  /* I: homes */
	struct wq_home *home;       /* I */
	int16_t *home_of;           /* I: by CPU number */
	uint16_t *near;             /* I: of all homes, one after the other */
	_Atomic uint32_t *usual;    /* I: the same, of their classes */
	cpu_set_t cpus;             /* I: all homes' */
	struct wq_plan *plan[WQ_MODES]; /* S; then reached by the mode word */
	struct wq_lat *lat;             /* I */
	struct wq_trace *trace;         /* I */
	uint64_t id;                    /* I: no two pools have the same */
	bool unequal;                   /* I: capacities differ */
	bool exclusive;                 /* I: config.exclusive_lock */
	uint64_t spread_ticks;          /* I */
	uint64_t spin_ticks;            /* I */

	/* A: epoch << 8 | index of the mode; see switch.c */
	_Alignas(WQ_LINE) _Atomic uint64_t mode;
	_Atomic uint32_t adopted; /* A: futex: workers that changed over */
	_Atomic uint32_t waiters; /* A: threads that flush; see flush.c */
	_Atomic uint32_t events;  /* A: futex of those */
	_Atomic bool stop;        /* A: no more jobs will come */
	_Atomic uint32_t watch;   /* A: futex: see watch.c */
	pthread_t watcher;        /* I */
	bool has_watcher;         /* I */
	pthread_mutex_t switching;
	pthread_mutex_t lock;
	pthread_mutex_t exclusive_lock;
	struct wq_prio prio;             /* L; changed under S as well */
	struct wq_worker *spares;        /* L */
	_Atomic(struct wq_worker *) all; /* A: only grows, under L */
	int nr_workers;                  /* L */
	unsigned int nr_spares;          /* L */
	struct wq *queues;               /* L */
};

/*
 * Points where a test may hold a job up; compiled away but with WQ_BENCH.
 */
enum wq_point {
	WQ_POINT_ENQUEUE,  /* after t1, before t2 */
	WQ_POINT_WAKE,     /* a worker is chosen and not yet woken */
	WQ_POINT_DISPATCH, /* after the claim, before t6 */
	WQ_POINT_REPLACE,  /* a worker is about to lose its place */
};
#ifdef WQ_BENCH
extern void (*_Atomic wq_point)(enum wq_point point);
static inline void wq_at(enum wq_point point)
{
	void (*fn)(enum wq_point point) = atomic_load(&wq_point);

	if (fn)
		fn(point);
}
#define WQ_POINT(point) wq_at(point)
#else
#define WQ_POINT(point)                                                        \
	do {                                                                   \
	} while (0)
#endif

/* The lock that the job path does without; see wq_config.exclusive_lock. */
static inline void wq_exclude(struct wq_pools *pools)
{
#ifdef WQ_BENCH
	if (pools->exclusive)
		pthread_mutex_lock(&pools->exclusive_lock);
#else
	(void)pools;
#endif
}

static inline void wq_include(struct wq_pools *pools)
{
#ifdef WQ_BENCH
	if (pools->exclusive)
		pthread_mutex_unlock(&pools->exclusive_lock);
#else
	(void)pools;
#endif
}

static inline unsigned int wq_word_mode(uint64_t word)
{
	return (unsigned int)(word & 0xff);
}

static inline uint32_t wq_word_epoch(uint64_t word)
{
	return (uint32_t)(word >> 8);
}

/* In a loop that waits for another CPU. */
static inline void wq_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static inline void wq_count(_Atomic uint64_t *counter)
{
	/* One writer; readers want no more than some recent value. */
	atomic_store_explicit(
		counter,
		atomic_load_explicit(counter, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

/* self.c: who the calling thread is */
struct wq_worker *wq_self(struct wq_pools *pools); /* never allocates */
extern __thread struct wq_worker *wq_running;      /* whose item runs here */
void wq_self_set(struct wq_worker *worker);
struct wq_worker *wq_issuer(struct wq_pools *pools); /* NULL: no memory */
int wq_self_init(struct wq_pools *pools);
void wq_self_exit(const struct wq_pools *pools);

/* worker.c */
struct wq_worker *wq_worker_alloc(struct wq_pools *pools);
void wq_worker_free(struct wq_worker *worker);
int wq_worker_start(struct wq_worker *worker, struct wq_error *err);
int wq_worker_prepare(struct wq_worker *worker, unsigned int mode);
void wq_worker_join(struct wq_worker *worker);

/* plan.c */
int wq_plan_need(struct wq_pools *pools, unsigned int mode);
void wq_plan_free(struct wq_plan *plan);
/* Where the primary of @home may run in @mode. */
void wq_plan_mask(struct wq_pools *pools, unsigned int mode,
		  const struct wq_home *home, cpu_set_t *mask);

/* wake.c */
void wq_wake(struct wq_pools *pools, struct wq_home *home, uint64_t id,
	     uint64_t t1);
void wq_wake_more(struct wq_worker *worker);
void wq_wake_done(struct wq_worker *worker);
void wq_kick(struct wq_home *home);
void wq_park(struct wq_worker *worker);

/* unstack.c */
void wq_call(struct wq_home *home);
/* Return: false: ask again, before sleeping at the latest. */
bool wq_arrive(struct wq_worker *worker);
void wq_unstack(struct wq_worker *worker);

/* find.c */
struct wq_work *wq_find(struct wq_worker *worker, uint64_t *id,
			uint32_t *depth);
bool wq_find_any(struct wq_worker *worker);
bool wq_others_wait(struct wq_worker *worker);
uint64_t wq_home_depth(struct wq_home *home);

/* live.c */
uint64_t wq_usual_ns(struct wq_home *home, unsigned int class);
void wq_usual_note(struct wq_home *home, unsigned int class, uint64_t ns);
uint64_t wq_home_backlog(struct wq_pools *pools, struct wq_home *home);
void wq_place_look(struct wq_pools *pools, struct wq_place_cpu *cpu,
		   struct wq_place_view *view);
size_t wq_place_new(struct wq_pools *pools, struct wq_worker *self, size_t home,
		    unsigned int class);

/* queue.c */
void wq_publish(struct wq_pools *pools, struct wq_work *work);
/* Publish a list that a gate let through; NULL is allowed. */
void wq_let(struct wq_pools *pools, struct wq_work *work);

/* run.c */
void wq_run(struct wq_worker *worker, struct wq_work *work, uint64_t id,
	    uint32_t depth);
/* Leave what waits behind an inline job to the workers. */
void wq_run_elsewhere(struct wq_worker *issuer);
void wq_run_inline(struct wq_worker *issuer, struct wq_work *work);

/* adopt.c */
void wq_adopt(struct wq_worker *worker);
void wq_repatriate(struct wq_worker *worker);

/* gate.c */
int wq_gates_init(struct wq *wq, size_t nr, uint32_t max);
int16_t wq_gate_for(struct wq *wq, size_t home);
struct wq_work *wq_gate_push(struct wq_gate *gate, struct wq_work *work,
			     bool stamp);
struct wq_work *wq_gate_done(struct wq_gate *gate);
bool wq_gate_take(struct wq_gate *gate, struct wq_work *work,
		  struct wq_work **let);

/* flush.c */
uint8_t wq_count_in(struct wq_pools *pools, struct wq *wq, size_t home);
/* The last thing that is done with @wq: it may be freed then. */
void wq_count_out(struct wq_pools *pools, struct wq *wq, size_t home,
		  unsigned int colour);
bool wq_wait(struct wq_pools *pools, bool (*over)(void *arg), void *arg);

/* cancel.c */
/* Empty a list into the homes' queues, all but @work.  Return: whether that was
 * there. */
bool wq_spill(struct wq_pools *pools, struct wq_list *list,
	      const struct wq_work *work);

/* block.c */
bool wq_replace(struct wq_worker *worker);
void wq_retire(struct wq_worker *worker);
bool wq_spare_wait(struct wq_worker *worker);

/* watch.c */
int wq_watch_start(struct wq_pools *pools, struct wq_error *err);
void wq_watch_stop(struct wq_pools *pools);
void wq_watch_poke(struct wq_pools *pools);

/* lost.c */
void wq_look_at_lost(struct wq_pools *pools);
unsigned int wq_capacity_left(unsigned int capacity, uint64_t lost,
			      uint64_t total);

/* calibrate.c */
int wq_calibrate(const cpu_set_t *cpus, uint64_t *ns, struct wq_error *err);

void wq_say(struct wq_pools *pools, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static inline uint64_t wq_job_id(const struct wq_home *home, uint64_t pos)
{
	return (uint64_t)(home->index + 1) << 48 | pos;
}

static inline uint64_t wq_inline_id(struct wq_worker *issuer)
{
	return UINT64_C(1) << 63 | (uint64_t)issuer->index << 40 |
	       issuer->issued++;
}

#endif /* WQ_POOL_H */
