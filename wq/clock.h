/* SPDX-License-Identifier: MIT */
/*
 * wq/clock.h - the stamps of jobs: raw counter reads.
 *
 * A stamp is a tick of one counter for the whole process: the TSC where the
 * CPU says that it is invariant (CPUID 80000007h EDX bit 8: constant rate, not
 * stopped in any C-state) and the kernel did not strike it off its list of
 * clocks, CNTVCT_EL0 on arm64, and otherwise CLOCK_MONOTONIC, whose ticks are
 * nanoseconds.  wq_clock_name() tells which, and why.
 *
 * A stamp of one CPU may lie a little before an earlier one of another CPU.
 * Whoever subtracts two uses wq_ticks_since(), which never wraps, and counts.
 *
 * All functions may be called by any thread after wq_clock_init().
 */
#ifndef WQ_CLOCK_H
#define WQ_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum wq_clock_kind {
	WQ_CLOCK_MONOTONIC, /* the fallback: 1 tick is 1 ns */
	WQ_CLOCK_TSC,
	WQ_CLOCK_CNTVCT,
};

/**
 * struct wq_clock - the one counter, calibrated
 * @kind: which
 * @cpuid: EDX of CPUID leaf 80000007h as seen; 0 where there is none
 * @name: what wq_clock_name() gives
 * @hz: ticks a second
 * @mult: nanoseconds a tick, times 2^32
 * @tick0: a stamp, and
 * @mono0: what CLOCK_MONOTONIC showed then, in ns
 */
struct wq_clock {
	enum wq_clock_kind kind;
	uint32_t cpuid;
	const char *name;
	uint64_t hz;
	uint64_t mult;
	uint64_t tick0;
	uint64_t mono0;
};

/** wq_clock - written by wq_clock_init() alone */
extern struct wq_clock wq_clock;

/**
 * wq_clock_init() - choose and calibrate the counter; once a process
 *
 * Later calls return at once.  The TSC is held against CLOCK_MONOTONIC_RAW for
 * 10 ms; CNTFRQ_EL0 gives the rate on arm64.  WQ_CLOCK=monotonic in the
 * environment asks for the fallback.  Any other value but "" leads there too,
 * as it is slow but never wrong, and the name then says so; there is nobody
 * here to give an error to.  Any thread; callers wait for the first.
 */
void wq_clock_init(void);

/** wq_clock_name() - "tsc", "cntvct", "monotonic (fallback)" when asked for, or
 * with a reason: "monotonic (fallback: no invariant TSC)" */
const char *wq_clock_name(void);

/** wq_mono_ns() - CLOCK_MONOTONIC, for what need not be cheap */
static inline uint64_t wq_mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/** wq_stamp() - now, in ticks; never 0, which means "not stamped" */
static inline uint64_t wq_stamp(void)
{
#if defined(__x86_64__)
	if (wq_clock.kind == WQ_CLOCK_TSC)
		return __rdtsc();
#elif defined(__aarch64__)
	if (wq_clock.kind == WQ_CLOCK_CNTVCT) {
		uint64_t tick;

		__asm__ volatile("mrs %0, cntvct_el0" : "=r"(tick));
		return tick;
	}
#endif
	return wq_mono_ns();
}

/** wq_ticks_to_ns() - a span; rounded down */
static inline uint64_t wq_ticks_to_ns(uint64_t ticks)
{
	return (uint64_t)(((unsigned __int128)ticks * wq_clock.mult) >> 32);
}

/** wq_ns_to_ticks() - a span; rounded down */
static inline uint64_t wq_ns_to_ticks(uint64_t ns)
{
	return (uint64_t)((unsigned __int128)ns * wq_clock.hz / 1000000000u);
}

/** wq_stamp_to_mono() - the CLOCK_MONOTONIC time of a stamp, in ns; never less
 * than 0.  The rate is that of 10 ms, and NTP may bend CLOCK_MONOTONIC by up to
 * 500 ppm: an hour after wq_clock_init() it may be out by 1.8 s at worst. */
uint64_t wq_stamp_to_mono(uint64_t stamp);

/** wq_ticks_since() - @to - @from, or 0 with *@back counted up when negative */
static inline uint64_t wq_ticks_since(uint64_t from, uint64_t to,
				      uint64_t *back)
{
	if (to >= from)
		return to - from;
	(*back)++;
	return 0;
}

#endif /* WQ_CLOCK_H */
