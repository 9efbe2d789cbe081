/* SPDX-License-Identifier: MIT */
/* time-limit: 120
 *
 * Histograms, the parts of a job's latency, and how they are kept.
 */
#include "t/tap.h"
#include "t/wq_help.h"
#include "wq/lat_export.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct wq_topo *topo;
static struct wq_lat *lat;
static unsigned int said;
static char last_line[200];

static void say(void *arg, const char *line)
{
	(void)arg;
	said++;
	snprintf(last_line, sizeof(last_line), "%s", line);
}

/* The same numbers each time. */
static uint64_t state = 88172645463325252ull;

static uint64_t any(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void test_bins(void)
{
	unsigned int wrong = 0, off = 0;

	for (unsigned int i = 0; i + 1 < wq_hist_bins(7); i++) {
		uint64_t low = wq_hist_low(7, i), high = wq_hist_high(7, i);

		wrong += wq_hist_bin(7, low) != i || wq_hist_bin(7, high) != i;
		wrong += wq_hist_low(7, i + 1) != high + 1;
		off += (double)(high - low) / 2 > 0.004 * (double)low;
	}
	is_uint(wrong, 0, "each value has one bin, and bins leave no gap");
	is_uint(off, 0, "the middle of a bin is off by at most 0.4 %%");
	is_uint(wq_hist_bin(7, UINT64_MAX), wq_hist_bins(7) - 1,
		"the last bin is open");
	is_uint(wq_hist_bin(7, (1ull << 36) - 1), wq_hist_bins(7) - 2,
		"from 68.7 s on");
	ok(wq_hist_bytes(7) < 17000, "a histogram takes about 16 KB");
}

static struct wq_hist *make(unsigned int bits)
{
	struct wq_hist *hist = malloc(wq_hist_bytes(bits));

	wq_hist_init(hist, bits);
	return hist;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

enum { SAMPLES = 20000 };

static void test_quantiles(void)
{
	static uint64_t value[SAMPLES];
	struct wq_hist_sum sum = { .bits = 7 };
	struct wq_hist *hist = make(7);
	unsigned __int128 total = 0, squares = 0;
	unsigned int off = 0;

	for (size_t i = 0; i < SAMPLES; i++) {
		value[i] = any() >> (28 + any() % 36);
		total += value[i];
		squares += (unsigned __int128)value[i] * value[i];
		wq_hist_add(hist, value[i]);
	}
	qsort(value, SAMPLES, sizeof(value[0]), by_size);
	is_int(wq_hist_merge(&sum, hist), 0, "a histogram is read");
	for (int q = 1; q < 1000; q++) {
		uint64_t want = value[(SAMPLES * q + 999) / 1000 - 1];
		uint64_t got = wq_hist_quantile(&sum, q / 1000.0);
		uint64_t diff = got > want ? got - want : want - got;

		off += (double)diff > 0.005 * (double)want + 1;
	}
	is_uint(off, 0, "quantiles are those of the sorted values");
	is_uint(wq_hist_quantile(&sum, 1), value[SAMPLES - 1],
		"the greatest is exact");
	ok(sum.count == SAMPLES && sum.min == value[0] &&
		   sum.max == value[SAMPLES - 1] && sum.sum == total &&
		   sum.sq == squares,
	   "count, min, max, sum and sum of squares are exact");
	is_int(wq_hist_merge(&sum, hist), 0, "merged twice");
	ok(sum.sum == 2 * total && sum.count == 2 * SAMPLES, "all is double");
	wq_hist_sum_free(&sum);
	free(hist);
}

static void test_wide(void)
{
	struct wq_hist_sum sum = { .bits = 7 };
	struct wq_hist *hist = make(7), *coarse = make(5);

	for (int i = 0; i < 5; i++)
		wq_hist_add(hist, 1ull << 40);
	wq_hist_merge(&sum, hist);
	ok(sum.sq == (unsigned __int128)5 << 80, "squares go beyond 64 bits");
	is_int((long long)wq_hist_mean(&sum), 1ll << 40, "the mean is exact");
	is_int((long long)wq_hist_sd(&sum), 0, "and the sd of equal values 0");
	is_int(wq_hist_merge(&sum, coarse), -EINVAL,
	       "a coarser histogram is not merged into a finer sum");
	wq_hist_sum_free(&sum);
	memset(&sum, 0, sizeof(sum));
	sum.bits = 5;
	wq_hist_add(coarse, 3);
	is_int(wq_hist_merge(&sum, hist) + wq_hist_merge(&sum, coarse), 0,
	       "but a finer one into a coarser sum");
	is_uint(sum.count, 6, "nothing gets lost");
	wq_hist_sum_free(&sum);
	free(hist);
	free(coarse);
}

static struct wq_hist *live;
static _Atomic bool stop;

static void *write_on(void *arg)
{
	(void)arg;
	for (uint64_t i = 0; !atomic_load(&stop); i++)
		wq_hist_add(live, i % 100000);
	return NULL;
}

static void test_reader(void)
{
	uint64_t before = 0;
	unsigned int wrong = 0;
	pthread_t thread;

	live = make(7);
	atomic_store(&stop, false);
	pthread_create(&thread, NULL, write_on, NULL);
	for (int i = 0; i < 50; i++) {
		struct wq_hist_sum sum = { .bits = 7 };

		wq_hist_merge(&sum, live);
		wrong += sum.count < before || sum.max >= 100000;
		before = sum.count;
		wq_hist_sum_free(&sum);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	is_uint(wrong, 0, "a histogram is read while it is written");
	free(live);
}

static struct wq_job job_at(uint64_t t1, uint64_t t2, uint64_t eligible,
			    uint64_t free_at, uint64_t t4, uint64_t t6)
{
	struct wq_job job = {
		.t1 = t1,
		.t2 = t2,
		.eligible = eligible,
		.free = free_at,
		.t4 = t4,
		.t5 = t6,
		.t6 = t6,
		.t7 = t6 + 1000,
		.run_delay = WQ_UNSAMPLED,
		.preempt = WQ_UNSAMPLED,
	};

	return job;
}

/* The four parts, as text. */
static const char *parts_of(const struct wq_job *job)
{
	static char text[100];
	struct wq_parts p;
	uint64_t back = 0;

	wq_job_parts(job, &p, &back);
	snprintf(text, sizeof(text), "%llu %llu %llu %llu, %llu back",
		 (unsigned long long)p.tick[0], (unsigned long long)p.tick[1],
		 (unsigned long long)p.tick[2], (unsigned long long)p.tick[3],
		 (unsigned long long)back);
	return text;
}

static void test_parts(void)
{
	struct wq_job job = job_at(100, 110, 0, 50, 150, 160);

	is_str(parts_of(&job), "10 0 40 10, 0 back", "a worker that slept");
	job = job_at(100, 110, 0, 140, 0, 160);
	is_str(parts_of(&job), "10 30 0 20, 0 back", "one that was busy");
	job = job_at(100, 110, 0, 140, 120, 160);
	is_str(parts_of(&job), "10 30 0 20, 0 back",
	       "a wake before it was free again does not count");
	job = job_at(100, 110, 130, 50, 150, 160);
	is_str(parts_of(&job), "10 20 20 10, 0 back",
	       "held back by its workqueue counts as queued");
	job = job_at(100, 110, 0, 50, 105, 160);
	is_str(parts_of(&job), "10 0 0 50, 0 back",
	       "a worker that woke before the job came was awake");
	job = job_at(100, 90, 0, 0, 0, 160);
	is_str(parts_of(&job), "0 0 0 60, 1 back", "a clock that goes back");
	job = job_at(100, 110, 0, 50, 150, 95);
	is_str(parts_of(&job), "0 0 0 0, 2 back",
	       "never makes a span negative");
}

static void test_identity(void)
{
	unsigned int wrong = 0, n = wq_help_scale(1000000);

	for (unsigned int i = 0; i < n; i++) {
		struct wq_job job =
			job_at(any() % 1000 + 1, any() % 1000 + 1,
			       any() % 2 * (any() % 1000), any() % 1000,
			       any() % 1000, any() % 1000 + 1);
		struct wq_parts p;
		uint64_t back = 0, four = 0;

		wq_job_parts(&job, &p, &back);
		for (int k = 0; k < WQ_PART_READY; k++)
			four += p.tick[k];
		wrong += four != p.tick[WQ_PART_READY];
		if (job.t6 >= job.t1)
			wrong += p.tick[WQ_PART_READY] != job.t6 - job.t1;
		else
			wrong += back == 0;
	}
	is_uint(wrong, 0, "the four parts are ready, whatever the stamps: %u",
		n);
}

static void open_lat(size_t bytes, unsigned int classes)
{
	struct wq_lat_config config = {
		.bytes = bytes, .classes = classes, .topo = topo, .say = say
	};

	said = 0;
	if (wq_lat_new(&config, &lat) < 0)
		bail("no memory");
}

static uint64_t jobs_of(int mode, int class, int cpu)
{
	struct wq_hist_sum sum;
	uint64_t n;

	wq_lat_read(lat, mode, class, cpu, WQ_PART_READY, &sum);
	n = sum.count;
	wq_hist_sum_free(&sum);
	return n;
}

static void record(struct wq_lat_writer *w, unsigned int mode,
		   unsigned int class, int cpu)
{
	struct wq_job job = job_at(1000, 1100, 0, 0, 2000, 2000 + any() % 9000);

	job.started_mode = (uint8_t)mode;
	job.class = (uint8_t) class;
	job.start_cpu = (int16_t)cpu;
	wq_lat_record(w, &job);
}

static void test_apart(void)
{
	struct wq_lat_writer *w, *v;
	struct wq_lat_stats stats;
	cpu_set_t cpus;
	size_t bytes;

	open_lat(0, 2);
	w = wq_lat_writer_new(lat, 0);
	v = wq_lat_writer_new(lat, 1);
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	CPU_SET(1, &cpus);
	record(w, 1, 0, 0);
	wq_lat_stats(lat, &stats);
	is_uint(stats.lost, 1, "a mode that was not prepared loses its jobs");
	wq_lat_prepare(w, 1, &cpus);
	wq_lat_prepare(v, 2, &cpus);
	wq_lat_stats(lat, &stats);
	bytes = stats.bytes;
	is_int(wq_lat_prepare(w, 1, &cpus), 0, "to prepare again");
	wq_lat_stats(lat, &stats);
	is_uint(stats.bytes, bytes, "takes no more memory");
	for (int i = 0; i < 100; i++) {
		record(w, 1, i % 2, i % 4 == 3);
		record(v, 2, 0, 0);
	}
	record(w, 1, 0, 7);
	is_uint(jobs_of(1, WQ_ANY, WQ_ANY), 101, "modes are apart");
	is_uint(jobs_of(2, WQ_ANY, WQ_ANY), 100, "in both writers");
	is_uint(jobs_of(1, 1, WQ_ANY), 50, "classes are apart");
	is_uint(jobs_of(1, 1, 1), 25, "CPUs are apart");
	is_uint(jobs_of(1, WQ_ANY, WQ_ELSEWHERE), 1,
		"a CPU that was not prepared is elsewhere");
	is_uint(jobs_of(WQ_ANY, WQ_ANY, WQ_ANY), 201, "all together");
	wq_lat_reset(lat);
	is_uint(jobs_of(WQ_ANY, WQ_ANY, WQ_ANY), 0, "forgotten after a reset");
	record(w, 1, 0, 0);
	is_uint(jobs_of(WQ_ANY, WQ_ANY, WQ_ANY), 1, "and counted anew");
	wq_lat_free(lat);
}

static void test_bound(void)
{
	struct wq_lat_writer *w;
	struct wq_lat_stats stats;
	unsigned int mode = 0;
	cpu_set_t cpus;

	open_lat(1060000, 1);
	w = wq_lat_writer_new(lat, 0);
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	CPU_SET(1, &cpus);
	while (mode < WQ_MODES && !wq_lat_prepare(w, mode, &cpus) && !said)
		mode++;
	is_uint(said, 1, "when memory gets short, one line is said");
	ok(strstr(last_line, "1060000 bytes") &&
		   strstr(last_line, "5 bits an octave"),
	   "that names the bound and the coarser form");
	wq_lat_stats(lat, &stats);
	is_uint(stats.bits, 5, "which is 5 bits");
	while (++mode < WQ_MODES && !wq_lat_prepare(w, mode, &cpus))
		;
	ok(stats.bytes <= stats.limit, "the bound holds");
	record(w, mode - 1, 0, 0);
	is_uint(jobs_of((int)mode - 1, WQ_ANY, WQ_ANY), 1,
		"jobs are recorded all the same");
	wq_lat_free(lat);

	open_lat(1000, 1);
	w = wq_lat_writer_new(lat, 0);
	is_int(wq_lat_prepare(w, 0, &cpus), -ENOMEM,
	       "where nothing fits, that is an error");
	is_uint(said, 2, "after both coarser forms");
	wq_lat_free(lat);
}

static struct wq_lat_writer *writer[3];

static void *record_on(void *arg)
{
	for (unsigned int i = 0; i < 20000; i++) {
		struct wq_job job = job_at(1000, 1100, 0, 0, 0, 0);

		job.id = (uint64_t)(uintptr_t)arg << 32 | i;
		job.t6 = 2000 + (i * 7919ull) % 20000 * 3 + (uintptr_t)arg;
		job.t7 = job.t6 + job.id; /* so that a torn copy shows */
		wq_lat_record(writer[(uintptr_t)arg], &job);
	}
	return NULL;
}

static void test_worst(void)
{
	struct wq_job job[WQ_WORST];
	unsigned int torn = 0, order = 0;
	pthread_t thread[3];
	cpu_set_t cpus;
	size_t n = 0;

	open_lat(0, 1);
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	for (uintptr_t i = 0; i < 3; i++) {
		writer[i] = wq_lat_writer_new(lat, (int)i);
		wq_lat_prepare(writer[i], 0, &cpus);
		pthread_create(&thread[i], NULL, record_on, (void *)i);
	}
	for (int i = 0; i < 30; i++) {
		n = wq_lat_worst(lat, job, WQ_WORST);
		for (size_t k = 0; k < n; k++)
			torn += job[k].t7 - job[k].t6 != job[k].id;
		for (size_t k = 1; k < n; k++)
			order += job[k].t6 > job[k - 1].t6;
	}
	for (size_t i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	is_uint(torn, 0, "the worst jobs are read while they change");
	is_uint(order, 0, "worst first");
	n = wq_lat_worst(lat, job, WQ_WORST);
	is_uint(n, WQ_WORST, "in the end there are 64");
	for (size_t k = 0; k < n; k++)
		torn += job[k].t6 != 2000 + (19999 - k / 3) * 3 + 2 - k % 3;
	is_uint(torn, 0, "the 64 worst of all writers");
	wq_lat_free(lat);
}

static void why(struct wq_job job, const char *words)
{
	char text[300];

	wq_job_why(&job, text, sizeof(text));
	ok(strstr(text, words), "why: %s", words) || (diag("%s", text), 0);
}

static void test_why(void)
{
	struct wq_job job = job_at(1000, 90000, 0, 0, 0, 91000);

	why(job, "slow to be queued");
	job = job_at(1000, 1100, 0, 90000, 0, 91000);
	why(job, "behind a job that ran");
	job = job_at(1000, 1100, 90000, 0, 0, 91000);
	why(job, "held back by its workqueue");
	job = job_at(1000, 1100, 0, 0, 90000, 91000);
	why(job, "its worker woke late");
	job.run_delay = 1000000;
	why(job, "its worker stood on a run queue");
	job.run_delay = 0;
	why(job, "CPU was slow to wake");
	job = job_at(1000, 1100, 0, 0, 0, 91000);
	why(job, "claimed, then its worker was slow or preempted");
	job.queued_epoch = 1;
	job.queued_mode = 1;
	why(job, "queued in mode bound");
}

static void test_export(void)
{
	struct wq_hist_sum sum = { .bits = 7 };
	struct wq_hist *hist = make(7);
	char text[20000] = "";
	FILE *f;

	is_int(wq_hist_write_json(stdout, &sum), -EINVAL,
	       "nothing to export is an error");
	for (uint64_t i = 1; i <= 1000; i++)
		wq_hist_add(hist, i * 1000);
	wq_hist_merge(&sum, hist);
	f = fmemopen(text, sizeof(text), "w");
	wq_hist_write_hgrm(f, &sum, "test");
	fclose(f);
	ok(strstr(text, "     1000000 1.000000000000       1000") &&
		   strstr(text, "Total count    =         1000]"),
	   ".hgrm ends with the greatest value and the count");
	memset(text, 0, sizeof(text));
	f = fmemopen(text, sizeof(text), "w");
	wq_hist_write_log2(f, &sum, "test");
	fclose(f);
	ok(strstr(text, "524288 ..      1048575 : ") && strstr(text, "|****"),
	   "log2: a line an octave, with a bar");
	memset(text, 0, sizeof(text));
	f = fmemopen(text, sizeof(text), "w");
	wq_hist_write_json(f, &sum);
	fclose(f);
	ok(strstr(text, "{\"count\":1000,\"min\":1000,\"max\":1000000,"
			"\"mean\":500500.000,") == text,
	   "JSON begins with what is exact");
	ok(strstr(text, ",1000000,"), "and ends with the last bin");
	wq_hist_sum_free(&sum);
	free(hist);
}

int main(void)
{
	static const char two[] = "cpu 0\ncpu 1\ncpu 2\n";
	char path[] = "/tmp/wq-lat-XXXXXX";
	struct wq_error err;
	FILE *f = fdopen(mkstemp(path), "w");

	plan(61);
	wq_clock_init();
	if (!f || fputs(two, f) < 0 || fclose(f) ||
	    wq_topo_load(path, &topo, &err) < 0)
		bail("no topology");
	remove(path);
	test_bins();
	test_quantiles();
	test_wide();
	test_reader();
	test_parts();
	test_identity();
	test_apart();
	test_bound();
	test_worst();
	test_why();
	test_export();
	wq_topo_free(topo);
	return done();
}
