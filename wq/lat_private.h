/* SPDX-License-Identifier: MIT */
/*
 * wq/lat_private.h - private: where latencies are kept.
 *
 * A writer has cells: one for each mode and CPU that it was prepared for, and
 * one a mode for jobs started elsewhere.  A cell holds a histogram for every
 * class and part.  How fields are protected:
 *
 * I: set before others can see it.
 * A: atomic.
 * W: the writer's; others may read what is atomic.
 * L: lat->lock.
 */
#ifndef WQ_LAT_PRIVATE_H
#define WQ_LAT_PRIVATE_H

#include "wq/lat.h"

#include <pthread.h>

/* struct wq_job as atomic words, so that it can be read while it is written. */
#define WQ_JOB_WORDS ((sizeof(struct wq_job) + 7) / 8)

/** struct wq_worst - one of the worst jobs; @seq is odd while it is written */
struct wq_worst {
	_Atomic uint64_t seq;
	_Atomic uint64_t gen; /* of lat->gen; 0 is empty */
	_Atomic uint64_t word[WQ_JOB_WORDS];
};

/** struct wq_cell - histograms of one writer, mode and CPU */
struct wq_cell {
	_Atomic uint64_t gen; /* W: of lat->gen that the contents belong to */
	size_t stride;        /* I: bytes of a class */
	size_t offset[WQ_PARTS]; /* I: within a class */
	_Alignas(64) unsigned char hist[];
};

struct wq_lat_writer {
	struct wq_lat *lat;
	int worker;                      /* L */
	bool rests;                      /* L */
	uint64_t worst_gen;              /* W */
	size_t least;                    /* W: the entry to give way next */
	uint64_t ready[WQ_WORST];        /* W: of the entries; 0 is empty */
	_Atomic uint64_t jobs;           /* W */
	_Atomic uint64_t lost;           /* W */
	_Atomic uint64_t backwards;      /* W */
	struct wq_lat_writer *next;      /* I */
	struct wq_worst worst[WQ_WORST]; /* W */
	/* A: [mode][slot]; slot lat->slots - 1 is elsewhere; set under L */
	_Atomic(struct wq_cell *) cell[];
};

struct wq_lat {
	struct wq_lat_config config;             /* I */
	size_t slots;                            /* I: CPUs and one more */
	int16_t slot_of[WQ_CPUS];                /* I */
	_Atomic uint64_t gen;                    /* A: counts resets, from 1 */
	_Atomic(struct wq_lat_writer *) writers; /* A: only grows, under L */
	pthread_mutex_t lock;
	size_t bytes;      /* L */
	unsigned int bits; /* L */
	bool per_cpu;      /* L */
};

static inline struct wq_hist *
wq_cell_hist(struct wq_cell *cell, unsigned int class, enum wq_part part)
{
	return (struct wq_hist *)(cell->hist + class * cell->stride +
				  cell->offset[part]);
}

void wq_worst_note(struct wq_lat_writer *writer, const struct wq_job *job,
		   uint64_t ready);

#endif /* WQ_LAT_PRIVATE_H */
