/* SPDX-License-Identifier: MIT */
#include "tools/pools_load.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define TRIALS 20
#define STEPS  100000u /* of one trial */

static double steps_per_ns = 1;

/* Steps that wait for each other, so that no compiler or CPU skips any. */
static uint64_t steps(uint64_t n)
{
	uint64_t x = 1;

	for (uint64_t i = 0; i < n; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

void load_calibrate(void)
{
	uint64_t best = UINT64_MAX;

	wq_clock_init();
	for (int i = 0; i < TRIALS; i++) {
		uint64_t began = wq_stamp(), took;

		steps(STEPS);
		took = wq_ticks_to_ns(wq_stamp() - began);
		best = took < best ? took : best;
	}
	steps_per_ns = (double)STEPS / (double)(best ? best : 1);
}

void load_compute(uint64_t ns)
{
	steps((uint64_t)((double)ns * steps_per_ns));
}

struct job {
	struct wq_work work; /* first: the function gets the job back */
	struct issuer *issuer;
};

struct issuer {
	struct load_run *run;
	pthread_t thread;
	unsigned int index;
	struct job *jobs; /* load->burst of them */
	uint64_t queued;
	uint64_t busy;
	_Atomic uint64_t done;
};

struct load_run {
	const struct load *load;
	struct wq *wq;
	uint64_t began;
	_Atomic bool stop;
	unsigned int started;
	struct issuer issuer[];
};

static void compute(struct wq_work *work)
{
	struct job *job = (struct job *)work;

	load_compute(job->issuer->run->load->job_ns);
	/* Relaxed: it is read after the workqueue was drained. */
	atomic_fetch_add_explicit(&job->issuer->done, 1, memory_order_relaxed);
}

static void burst(struct issuer *issuer)
{
	const struct load *load = issuer->run->load;

	for (unsigned int i = 0; i < load->burst; i++)
		if (wq_queue(issuer->run->wq, &issuer->jobs[i].work) == 1)
			issuer->queued++;
		else
			issuer->busy++;
}

static void pin(const struct issuer *issuer)
{
	const struct wq_topo *topo = issuer->run->load->topo;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(topo->cpu[issuer->index % topo->nr].cpu, &cpus);
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
}

static void *issue(void *arg)
{
	struct issuer *issuer = arg;
	const struct load *load = issuer->run->load;
	uint64_t next = wq_mono_ns();

	if (load->topo)
		pin(issuer);
	while (!atomic_load(&issuer->run->stop)) {
		struct timespec at;

		burst(issuer);
		next += load->gap_ns;
		at.tv_sec = (time_t)(next / 1000000000u);
		at.tv_nsec = (long)(next % 1000000000u);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	}
	return NULL;
}

static int start_one(struct load_run *run, unsigned int index)
{
	struct issuer *issuer = &run->issuer[index];

	issuer->run = run;
	issuer->index = index;
	issuer->jobs = calloc(run->load->burst, sizeof(*issuer->jobs));
	if (!issuer->jobs)
		return -ENOMEM;
	for (unsigned int i = 0; i < run->load->burst; i++) {
		issuer->jobs[i].issuer = issuer;
		wq_work_init(&issuer->jobs[i].work, compute, 0);
	}
	return -pthread_create(&issuer->thread, NULL, issue, issuer);
}

int load_start(const struct load *load, struct wq *wq, struct load_run **out)
{
	struct load_run *run;
	int err = 0;

	run = calloc(1, sizeof(*run) + load->issuers * sizeof(run->issuer[0]));
	if (!run)
		return -ENOMEM;
	run->load = load;
	run->wq = wq;
	run->began = wq_mono_ns();
	while (!err && run->started < load->issuers) {
		err = start_one(run, run->started);
		run->started += err == 0;
	}
	if (err) {
		struct load_result none;

		free(run->issuer[run->started].jobs);
		load_stop(run, &none);
		return err;
	}
	*out = run;
	return 0;
}

void load_stop(struct load_run *run, struct load_result *out)
{
	memset(out, 0, sizeof(*out));
	atomic_store(&run->stop, true);
	for (unsigned int i = 0; i < run->started; i++)
		pthread_join(run->issuer[i].thread, NULL);
	wq_flush(run->wq);
	out->seconds = (double)(wq_mono_ns() - run->began) * 1e-9;
	for (unsigned int i = 0; i < run->started; i++) {
		out->queued += run->issuer[i].queued;
		out->busy += run->issuer[i].busy;
		out->done += atomic_load(&run->issuer[i].done);
		free(run->issuer[i].jobs);
	}
	free(run);
}
