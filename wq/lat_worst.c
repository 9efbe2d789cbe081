/* SPDX-License-Identifier: MIT */
/*
 * The worst jobs.  Each writer keeps its own; a reader merges them.
 *
 * An entry is written under a sequence count that is odd meanwhile.  Every
 * word is stored with release and loaded with acquire, so that who reads a new
 * word also sees that the count has moved.
 */
#include "wq/lat_private.h"

#include <stdlib.h>
#include <string.h>

static void find_least(struct wq_lat_writer *w)
{
	for (size_t i = 0; i < WQ_WORST; i++)
		if (w->ready[i] < w->ready[w->least])
			w->least = i;
}

void wq_worst_note(struct wq_lat_writer *w, const struct wq_job *job,
		   uint64_t ready)
{
	uint64_t gen = atomic_load_explicit(&w->lat->gen, memory_order_relaxed);
	uint64_t word[WQ_JOB_WORDS] = { 0 };
	struct wq_worst *entry;
	uint64_t seq;

	if (w->worst_gen != gen) {
		memset(w->ready, 0, sizeof(w->ready));
		w->worst_gen = gen;
		w->least = 0;
	}
	if (ready <= w->ready[w->least])
		return;
	entry = &w->worst[w->least];
	w->ready[w->least] = ready;
	memcpy(word, job, sizeof(*job));
	seq = atomic_load_explicit(&entry->seq, memory_order_relaxed);
	atomic_store_explicit(&entry->seq, seq + 1, memory_order_relaxed);
	for (size_t i = 0; i < WQ_JOB_WORDS; i++)
		atomic_store_explicit(&entry->word[i], word[i],
				      memory_order_release);
	atomic_store_explicit(&entry->gen, gen, memory_order_release);
	atomic_store_explicit(&entry->seq, seq + 2, memory_order_release);
	find_least(w);
}

/* Return: whether the entry holds a job of this generation. */
static bool read_entry(struct wq_worst *entry, uint64_t gen, struct wq_job *job)
{
	uint64_t word[WQ_JOB_WORDS] = { 0 }, seq, has;

	do {
		seq = atomic_load_explicit(&entry->seq, memory_order_acquire);
		for (size_t i = 0; i < WQ_JOB_WORDS; i++)
			word[i] = atomic_load_explicit(&entry->word[i],
						       memory_order_acquire);
		has = atomic_load_explicit(&entry->gen, memory_order_acquire);
	} while (seq & 1 || seq != atomic_load_explicit(&entry->seq,
							memory_order_relaxed));
	memcpy(job, word, sizeof(*job));
	return has == gen;
}

static uint64_t ready_of(const struct wq_job *job)
{
	struct wq_parts parts;
	uint64_t back = 0;

	wq_job_parts(job, &parts, &back);
	return parts.tick[WQ_PART_READY];
}

/* Put @job in its place among the @n that are in @out, worst first. */
static size_t insert(struct wq_job *out, size_t n, size_t max,
		     const struct wq_job *job)
{
	size_t at = n;

	while (at > 0 && ready_of(&out[at - 1]) < ready_of(job))
		at--;
	if (at == max)
		return n;
	if (n == max)
		n--;
	memmove(&out[at + 1], &out[at], (n - at) * sizeof(*out));
	out[at] = *job;
	return n + 1;
}

size_t wq_lat_worst(struct wq_lat *lat, struct wq_job *out, size_t max)
{
	uint64_t gen = atomic_load(&lat->gen);
	struct wq_lat_writer *w;
	struct wq_job job;
	size_t n = 0;

	max = max < WQ_WORST ? max : WQ_WORST;
	if (!max)
		return 0;
	for (w = atomic_load(&lat->writers); w; w = w->next)
		for (size_t i = 0; i < WQ_WORST; i++)
			if (read_entry(&w->worst[i], gen, &job))
				n = insert(out, n, max, &job);
	return n;
}
