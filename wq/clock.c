/* SPDX-License-Identifier: MIT */
/* Choosing and calibrating the counter of clock.h, once a process. */
#include "wq/clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <fcntl.h>
#include <unistd.h>
#endif

#define CALIBRATE_NS 10000000
/* Looks at two clocks, of which the quickest counts: only an interruption of
 * every single one would spoil it. */
#define LOOKS 16

#define FALLBACK(why) "monotonic (fallback" why ")"

struct wq_clock wq_clock = {
	.kind = WQ_CLOCK_MONOTONIC,
	.name = FALLBACK(": not initialized"),
	.hz = 1000000000,
	.mult = UINT64_C(1) << 32,
};

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A stamp and the time in ns that belongs to it. */
struct pair {
	uint64_t tick;
	uint64_t ns;
};

static uint64_t ns_of(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static struct pair look(clockid_t id)
{
	struct pair best = { 0, 0 };
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < LOOKS; i++) {
		uint64_t before = ns_of(id);
		uint64_t tick = wq_stamp();
		uint64_t after = ns_of(id);

		if (after - before >= least)
			continue;
		least = after - before;
		best.tick = tick;
		best.ns = before + (after - before) / 2;
	}
	return best;
}

#if defined(__x86_64__)
#define COUNTER WQ_CLOCK_TSC
#define NAME    "tsc"

#define CLOCKS                                                                 \
	"/sys/devices/system/clocksource/clocksource0/available_clocksource"

/* The kernel holds the TSC against other clocks, and the CPUs' against each
 * other, and takes it off this list when it does not keep time.
 * Return: false also where there is no list to read. */
static bool struck_off(void)
{
	char list[256];
	ssize_t n = -1;
	int fd = open(CLOCKS, O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		n = read(fd, list, sizeof(list) - 1);
		close(fd);
	}
	if (n <= 0)
		return false;
	list[n] = '\0';
	for (char *at = list; (at = strstr(at, "tsc")) != NULL; at++)
		if ((at == list || at[-1] == ' ') && strchr(" \n", at[3]))
			return false;
	return true;
}

/* Return: why the counter cannot be used, or NULL. */
static const char *unusable(void)
{
	unsigned int a, b, c, d;

	/* Gives 0 for a leaf above the highest that the CPU has. */
	if (!__get_cpuid(0x80000007, &a, &b, &c, &d))
		return FALLBACK(": no CPUID leaf 80000007h");
	wq_clock.cpuid = d;
	if (!(d & 1u << 8))
		return FALLBACK(": no invariant TSC");
	if (struck_off())
		return FALLBACK(": the kernel calls the TSC unstable");
	return NULL;
}

/* Ticks a second; 0 when it does not count. */
static uint64_t rate(void)
{
	struct timespec wait = { .tv_nsec = CALIBRATE_NS };
	struct pair from = look(CLOCK_MONOTONIC_RAW), to;

	nanosleep(&wait, NULL);
	to = look(CLOCK_MONOTONIC_RAW);
	if (to.ns <= from.ns || to.tick <= from.tick)
		return 0;
	return (uint64_t)((unsigned __int128)(to.tick - from.tick) *
			  1000000000u / (to.ns - from.ns));
}
#elif defined(__aarch64__)
#define COUNTER WQ_CLOCK_CNTVCT
#define NAME    "cntvct"

static const char *unusable(void)
{
	return NULL; /* the generic timer is part of the architecture */
}

/* 0 where the firmware forgot to set it. */
static uint64_t rate(void)
{
	uint64_t hz;

	__asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
	return hz & UINT32_MAX;
}
#else
#define COUNTER WQ_CLOCK_MONOTONIC
#define NAME    FALLBACK("")

static const char *unusable(void)
{
	return FALLBACK(": no counter known for this CPU");
}

static uint64_t rate(void)
{
	return 0;
}
#endif

/* Return: why not to use the counter, or NULL. */
static const char *refusal(void)
{
	const char *want = getenv("WQ_CLOCK");

	if (!want || !*want)
		return unusable();
	if (strcmp(want, "monotonic") == 0)
		return FALLBACK("");
	return FALLBACK(": WQ_CLOCK not understood");
}

static void init(void)
{
	const char *why = refusal();
	uint64_t hz = 0;
	struct pair now;

	if (!why) {
		wq_clock.kind = COUNTER;
		hz = rate();
	}
	if (hz) {
		wq_clock.name = NAME;
		wq_clock.hz = hz;
		wq_clock.mult =
			(uint64_t)(((unsigned __int128)1000000000u << 32) / hz);
	} else {
		wq_clock.kind = WQ_CLOCK_MONOTONIC;
		wq_clock.name = why ? why : FALLBACK(": counter stands still");
	}
	now = look(CLOCK_MONOTONIC);
	wq_clock.tick0 = now.tick;
	wq_clock.mono0 = now.ns;
}

void wq_clock_init(void)
{
	pthread_once(&once, init);
}

const char *wq_clock_name(void)
{
	return wq_clock.name;
}

uint64_t wq_stamp_to_mono(uint64_t stamp)
{
	uint64_t before;

	if (stamp >= wq_clock.tick0)
		return wq_clock.mono0 + wq_ticks_to_ns(stamp - wq_clock.tick0);
	before = wq_ticks_to_ns(wq_clock.tick0 - stamp);
	return before < wq_clock.mono0 ? wq_clock.mono0 - before : 0;
}
