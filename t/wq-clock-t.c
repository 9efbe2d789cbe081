/* SPDX-License-Identifier: MIT */
/*
 * Stamps: the counter is chosen as the header says and as the environment
 * asks, it goes with CLOCK_MONOTONIC, ticks and nanoseconds convert both ways,
 * and a difference is never negative.
 */
#include "wq/clock.h"

#include "t/tap.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <sched.h>
#include <sys/mount.h>
#endif

#define LEN(array) (sizeof(array) / sizeof((array)[0]))

#define SPAN_NS 200000000
#define LOOKS   50
#define FIRST   4 /* threads that begin together */

/* What a child saw, which chose its clock anew. */
struct seen {
	enum wq_clock_kind kind;
	uint64_t hz;
	uint64_t off; /* ns between a stamp and CLOCK_MONOTONIC */
	char name[64];
};

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* How far a stamp is from CLOCK_MONOTONIC, in ns; the least of some tries, as
 * each may be interrupted. */
static uint64_t off_now(void)
{
	uint64_t least = UINT64_MAX, off;

	for (int i = 0; i < LOOKS; i++) {
		uint64_t stamp = wq_stamp();

		off = apart(wq_stamp_to_mono(stamp), wq_mono_ns());
		least = off < least ? off : least;
	}
	return least;
}

/* Choose the clock in a child: here it is chosen once for all. */
static bool in_child(const char *value, void (*before)(void), struct seen *out)
{
	struct seen seen = { 0 };
	int ends[2], status;
	ssize_t n;
	pid_t pid;

	if (pipe(ends) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		if (value)
			setenv("WQ_CLOCK", value, 1);
		else
			unsetenv("WQ_CLOCK");
		if (before)
			before();
		wq_clock_init();
		seen.kind = wq_clock.kind;
		seen.hz = wq_clock.hz;
		seen.off = off_now();
		snprintf(seen.name, sizeof(seen.name), "%s", wq_clock_name());
		n = write(ends[1], &seen, sizeof(seen));
		_exit(n != sizeof(seen));
	}
	close(ends[1]);
	n = pid < 0 ? -1 : read(ends[0], out, sizeof(*out));
	close(ends[0]);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 &&
	       n == sizeof(*out);
}

static void test_environment(void)
{
	static const struct {
		const char *value, *name;
	} asked[] = {
		{ "monotonic", "monotonic (fallback)" },
		{ "tsc", "monotonic (fallback: WQ_CLOCK not understood)" },
		{ "Monotonic",
		  "monotonic (fallback: WQ_CLOCK not understood)" },
	};
	struct seen seen, unset;

	for (size_t i = 0; i < LEN(asked); i++) {
		memset(&seen, 0, sizeof(seen));
		ok(in_child(asked[i].value, NULL, &seen) &&
			   seen.kind == WQ_CLOCK_MONOTONIC &&
			   seen.hz == 1000000000,
		   "WQ_CLOCK=%s leads to CLOCK_MONOTONIC", asked[i].value);
		is_str(seen.name, asked[i].name, "and the name says so");
		ok(seen.off < 1000000, "whose stamps are its nanoseconds");
	}
	memset(&unset, 0, sizeof(unset));
	ok(in_child(NULL, NULL, &unset) && in_child("", NULL, &seen) &&
		   strcmp(seen.name, unset.name) == 0,
	   "an empty WQ_CLOCK is none");
}

#if defined(__x86_64__)
#define CLOCKS                                                                 \
	"/sys/devices/system/clocksource/clocksource0/available_clocksource"

static char list[64]; /* a file that takes the place of CLOCKS */

/* In the child, which has its own mounts: not undone. */
static bool replace(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount(list, CLOCKS, NULL, MS_BIND, NULL) == 0;
}

static void strike_off(void)
{
	if (!replace())
		_exit(1);
}

/* Return: whether a child may hide the kernel's list here. */
static bool can_replace(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(!replace());
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool write_list(const char *text)
{
	FILE *file = fopen(list, "w");

	return file && fputs(text, file) >= 0 && fclose(file) == 0;
}

/* What the kernel found in the same CPUID leaf. */
static bool kernel_says_invariant(void)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[4096];
	bool invariant = false;

	while (file && !invariant && fgets(line, sizeof(line), file))
		invariant = strncmp(line, "flags", 5) == 0 &&
			    strstr(line, " constant_tsc") &&
			    strstr(line, " nonstop_tsc");
	if (file)
		fclose(file);
	return invariant;
}

static void test_struck_off(void)
{
	const char *tmp = getenv("TMPDIR");
	struct seen with = { 0 }, without = { 0 };
	int fd;

	snprintf(list, sizeof(list), "%.32s/wq-clock-XXXXXX",
		 tmp ? tmp : "/tmp");
	fd = mkstemp(list);
	if (fd < 0)
		bail("no temporary file");
	close(fd);
	if (!write_list("") || !can_replace()) {
		skip(2, "the list of clocks cannot be hidden (no root?)");
		unlink(list);
		return;
	}
	ok(write_list("hyperv_clocksource_tsc_page kvm-clock tsc-early\n") &&
		   in_child(NULL, strike_off, &without) &&
		   without.kind == WQ_CLOCK_MONOTONIC &&
		   strncmp(without.name, "monotonic (fallback:", 20) == 0,
	   "a TSC that the kernel calls unstable is not used");
	ok(write_list("kvm-clock tsc hpet \n") &&
		   in_child(NULL, strike_off, &with) &&
		   with.kind == (kernel_says_invariant() ? WQ_CLOCK_TSC
							 : WQ_CLOCK_MONOTONIC),
	   "one among others on its list is, if it is invariant");
	unlink(list);
}

static void test_kind(void)
{
	bool invariant = kernel_says_invariant();

	if (invariant && strstr(wq_clock_name(), "unstable")) {
		skip(2, "the kernel calls the TSC unstable");
		return;
	}
	is_int(wq_clock.kind, invariant ? WQ_CLOCK_TSC : WQ_CLOCK_MONOTONIC,
	       "the TSC is the counter where the kernel calls it constant");
	ok(!(wq_clock.cpuid & 1u << 8) == !invariant,
	   "as bit 8 of the CPUID leaf says");
}
#else
static void test_struck_off(void)
{
	skip(2, "only x86 has a counter that may be no good");
}

static void test_kind(void)
{
#if defined(__aarch64__)
	is_int(wq_clock.kind, WQ_CLOCK_CNTVCT, "CNTVCT_EL0 is the counter");
#else
	is_int(wq_clock.kind, WQ_CLOCK_MONOTONIC, "there is no counter");
#endif
	is_uint(wq_clock.cpuid, 0, "no CPUID leaf was seen");
}
#endif

/* A stamp with the time at which it was taken, to within @ns. */
static uint64_t stamp_at(uint64_t *mono)
{
	uint64_t least = UINT64_MAX, stamp = 0;

	for (int i = 0; i < LOOKS; i++) {
		uint64_t before = wq_mono_ns(), now = wq_stamp();
		uint64_t took = wq_mono_ns() - before;

		if (took >= least)
			continue;
		least = took;
		stamp = now;
		*mono = before + took / 2;
	}
	return stamp;
}

/* 1 %: a rate wrong by less shows nowhere; emulators and NTP stay below. */
static void test_rate(void)
{
	struct timespec wait = { .tv_nsec = SPAN_NS };
	uint64_t mono[2] = { 0, 0 }, stamp[2], ns, want;

	stamp[0] = stamp_at(&mono[0]);
	nanosleep(&wait, NULL);
	stamp[1] = stamp_at(&mono[1]);
	ns = wq_ticks_to_ns(stamp[1] - stamp[0]);
	want = mono[1] - mono[0];
	if (!ok(want >= SPAN_NS && apart(ns, want) < want / 100,
		"200 ms in ticks are 200 ms on CLOCK_MONOTONIC to 1 %%"))
		diag("%llu ns for %llu", (unsigned long long)ns,
		     (unsigned long long)want);
	ok(apart(wq_stamp_to_mono(stamp[1]), mono[1]) < want / 100,
	   "a stamp tells its time on CLOCK_MONOTONIC");
	ok(wq_stamp_to_mono(stamp[0]) < wq_stamp_to_mono(stamp[1]),
	   "an earlier stamp has an earlier time");
	ok(wq_stamp_to_mono(wq_clock.tick0 - wq_ns_to_ticks(1000000)) <
			   wq_clock.mono0 &&
		   apart(wq_stamp_to_mono(wq_clock.tick0 -
					  wq_ns_to_ticks(1000000)),
			 wq_clock.mono0 - 1000000) < 1000,
	   "also before the calibration");
}

static void test_convert(void)
{
	uint64_t tick = 1000000000 / wq_clock.hz + 1, ns, back;
	bool there = true, monotonous = true;

	/* Up to 5 hours; each conversion loses less than one of its units,
	 * and the multiplier 2^-31 of the whole. */
	for (ns = 1; ns < 20000000000000; ns = ns * 3 + 1) {
		back = wq_ticks_to_ns(wq_ns_to_ticks(ns));
		there = there && back <= ns && ns - back <= tick + (ns >> 30);
		monotonous = monotonous &&
			     wq_ns_to_ticks(ns) <= wq_ns_to_ticks(ns + 1);
	}
	ok(there, "ns to ticks and back loses a tick at most, and gains none");
	ok(monotonous, "more ns are not fewer ticks");
	is_uint(wq_ns_to_ticks(1000000000), wq_clock.hz,
		"a second has hz ticks");
	ns = wq_ticks_to_ns(wq_clock.hz);
	ok(ns <= 1000000000 && ns >= 999999998, "hz ticks are a second");
	ok(wq_ticks_to_ns(0) == 0 && wq_ns_to_ticks(0) == 0, "0 stays 0");
	/* 100 days; in 64 bits the product would wrap. */
	ns = UINT64_C(8640000) * 1000000000;
	ok(apart(wq_ticks_to_ns(wq_ns_to_ticks(ns)), ns) < ns >> 20,
	   "100 days do not wrap");
}

static void test_since(void)
{
	uint64_t back = 0;

	ok(wq_ticks_since(10, 15, &back) == 5 && back == 0,
	   "a later stamp gives the difference");
	ok(wq_ticks_since(10, 10, &back) == 0 && back == 0,
	   "the same stamp gives 0 and is not counted");
	ok(wq_ticks_since(15, 10, &back) == 0 && back == 1,
	   "an earlier stamp gives 0 and is counted");
	ok(wq_ticks_since(UINT64_MAX, 0, &back) == 0 && back == 2,
	   "however much earlier");
}

static void test_stamps(void)
{
	uint64_t last = wq_stamp(), back = 0, zero = 0, now;
	struct timespec wait = { .tv_nsec = 1000000 };

	for (int i = 0; i < 100000; i++) {
		now = wq_stamp();
		zero += !now;
		last = now;
	}
	nanosleep(&wait, NULL);
	now = wq_stamp();
	is_uint(zero, 0, "no stamp is 0");
	ok(wq_ticks_to_ns(wq_ticks_since(last, now, &back)) >= 900000 && !back,
	   "1 ms of sleep is seen");
}

static pthread_barrier_t barrier;

static void *first(void *got)
{
	pthread_barrier_wait(&barrier);
	wq_clock_init();
	*(struct wq_clock *)got = wq_clock;
	return NULL;
}

static void test_once(void)
{
	struct wq_clock got[FIRST], after;
	pthread_t thread[FIRST];
	bool same = true;

	pthread_barrier_init(&barrier, NULL, FIRST);
	for (int i = 0; i < FIRST; i++)
		if (pthread_create(&thread[i], NULL, first, &got[i]))
			bail("no thread");
	for (int i = 0; i < FIRST; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&barrier);
	wq_clock_init();
	after = wq_clock;
	for (int i = 0; i < FIRST; i++)
		same = same && got[i].hz == after.hz && got[i].tick0 &&
		       got[i].tick0 == after.tick0 && got[i].kind == after.kind;
	ok(same, "threads that begin together get one calibration");
}

int main(void)
{
	plan(32);
	/* Before the clock was chosen, so that a child may do it. */
	is_str(wq_clock_name(), "monotonic (fallback: not initialized)",
	       "a clock that was not chosen yet says so");
	test_environment();
	test_struck_off();
	unsetenv("WQ_CLOCK");
	test_once();
	test_kind();
	test_rate();
	test_convert();
	test_since();
	test_stamps();
	return done();
}
