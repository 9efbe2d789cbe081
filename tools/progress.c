/* SPDX-License-Identifier: MIT */
/* tools/progress.c - how far a long command is.  Layer: tools. */
#include "tools/progress.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS ((uint64_t)200 * 1000 * 1000) /* between two drawings */
#define LULL_NS ((uint64_t)50 * 1000 * 1000)  /* for a message to be written */
#define SECOND  ((uint64_t)1000 * 1000 * 1000)
#define SMOOTH  0.1 /* a tick's share in the rate, so about 2 s back */

/*
 * S: set in progress_begin(), before threads.  A: atomic; the numbers are for
 * the eye only, so relaxed.  L: under lock, which is never held over work.
 */
static bool active;             /* S */
static const char *what;        /* S */
static _Atomic(uint64_t) total; /* A */
static _Atomic(uint64_t) done;  /* A */
static _Atomic(uint64_t) due;   /* A: when to draw next, ns */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *stage;           /* L */
static uint64_t last_ns, last_done; /* L: of the last drawing */
static double rate;                 /* L: bytes/s */
static bool shown;                  /* L */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

char *human_bytes(uint64_t bytes, char *buf)
{
	static const char unit[] = "KMGTPE";
	double v = (double)bytes / 1024;
	int i = 0;

	if (bytes < 1024) {
		snprintf(buf, 16, "%" PRIu64 " B", bytes);
		return buf;
	}
	/* 1023.95 and more would be shown as 1024.0. */
	while (v >= 1023.95) {
		v /= 1024;
		i++;
	}
	snprintf(buf, 16, "%.1f %ciB", v, unit[i]);
	return buf;
}

/* A line that wraps could not be taken away again. */
static size_t columns(void)
{
	struct winsize w;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_col < 20)
		return 79;
	return w.ws_col - 1U;
}

static void put(const char *s, size_t len)
{
	ssize_t n = write(STDERR_FILENO, s, len);

	(void)n; /* nothing is lost but a picture */
}

static void erase(void)
{
	if (shown)
		put("\r\033[K", 4);
	shown = false;
}

static void measure(uint64_t now, uint64_t bytes)
{
	double s = (double)(now - last_ns) / (double)SECOND;
	double r = s > 0 ? ((double)bytes - (double)last_done) / s : 0;

	rate = rate > 0 ? rate + (r - rate) * SMOOTH : r;
	last_ns = now;
	last_done = bytes;
}

/* "1.2 GiB of 4.0 GiB (30 %), 1.1 GiB/s, 0:03 left" */
static void describe(char *out, size_t room, uint64_t bytes, uint64_t all)
{
	char a[16], b[16], r[16];
	uint64_t left;
	int n;

	human_bytes(bytes, a);
	human_bytes(rate > 0 ? (uint64_t)rate : 0, r);
	if (!all) {
		snprintf(out, room, "%s, %s/s", a, r);
		return;
	}
	if (bytes > all)
		bytes = all;
	n = snprintf(out, room, "%s of %s (%d %%), %s/s", a,
		     human_bytes(all, b),
		     (int)((double)bytes / (double)all * 100), r);
	left = rate >= 1 ? (uint64_t)((double)(all - bytes) / rate) + 1 : 0;
	if (rate >= 1 && n > 0 && (size_t)n < room)
		snprintf(out + n, room - (size_t)n,
			 ", %" PRIu64 ":%02" PRIu64 " left", left / 60,
			 left % 60);
}

static void draw_locked(void)
{
	char text[160], line[240];
	size_t len, width = columns();
	int n;

	if (stage)
		snprintf(text, sizeof(text), "%s", stage);
	else
		describe(text, sizeof(text),
			 atomic_load_explicit(&done, memory_order_relaxed),
			 atomic_load_explicit(&total, memory_order_relaxed));
	n = snprintf(line, sizeof(line), "\r\033[K%s: %s", what, text);
	len = n < 0 ? 0 : (size_t)n;
	if (len > width + 4) /* what takes the old line away has no width */
		len = width + 4;
	put(line, len < sizeof(line) ? len : sizeof(line) - 1);
	shown = true;
}

static void put_off(uint64_t now, uint64_t ns)
{
	atomic_store_explicit(&due, now + ns, memory_order_relaxed);
}

void progress_begin(const char *name, uint64_t bytes, bool quiet)
{
	const char *term = getenv("TERM");

	active = !quiet && isatty(STDERR_FILENO) && term &&
		 strcmp(term, "dumb") != 0;
	what = name;
	stage = NULL;
	rate = 0;
	atomic_store_explicit(&total, bytes, memory_order_relaxed);
	atomic_store_explicit(&done, 0, memory_order_relaxed);
	last_ns = now_ns();
	last_done = 0;
	put_off(last_ns, TICK_NS); /* what is done at once shows nothing */
}

void progress_total(uint64_t bytes)
{
	atomic_store_explicit(&total, bytes, memory_order_relaxed);
}

void progress_add(uint64_t bytes)
{
	uint64_t sum, now, at;

	if (!active)
		return;
	sum = atomic_fetch_add_explicit(&done, bytes, memory_order_relaxed);
	at = atomic_load_explicit(&due, memory_order_relaxed);
	now = now_ns();
	/* Who moves the time draws; the others go on. */
	if (now < at || !atomic_compare_exchange_strong_explicit(
				&due, &at, now + TICK_NS, memory_order_relaxed,
				memory_order_relaxed))
		return;
	if (pthread_mutex_trylock(&lock) != 0)
		return;
	measure(now, sum + bytes);
	draw_locked();
	pthread_mutex_unlock(&lock);
}

void progress_stage(const char *name)
{
	if (!active)
		return;
	pthread_mutex_lock(&lock);
	stage = name;
	draw_locked();
	pthread_mutex_unlock(&lock);
}

/* The next drawing is put off, so that what is written after this is not
 * written behind a new line. */
void progress_hide(void)
{
	if (!active)
		return;
	pthread_mutex_lock(&lock);
	put_off(now_ns(), LULL_NS);
	erase();
	pthread_mutex_unlock(&lock);
}

void progress_end(void)
{
	progress_hide();
	active = false;
}
