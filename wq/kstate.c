/* SPDX-License-Identifier: MIT */
/*
 * Scheduler states of our own threads: perf_event_open(2) with context_switch
 * set, which needs no privilege where perf_event_paranoid is 2 or less.
 */
#include "wq/trace_private.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGES 64 /* of data; a power of two: 8192 records */

/* PERF_RECORD_SWITCH with the sample id that we ask for. */
struct record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
};

int wq_kstate_open(struct wq_kstate *k, pid_t tid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type =
			PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
		.sample_id_all = 1,
		.context_switch = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	const char *test = getenv("WQ_TRACE_PERF");
	int err;

	k->fd = -1;
	if (test && strcmp(test, "off") == 0)
		return -EACCES;
	k->fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1,
			     PERF_FLAG_FD_CLOEXEC);
	if (k->fd < 0) {
		k->fd = -1;
		return -errno;
	}
	k->size = (size_t)(PAGES + 1) * (size_t)sysconf(_SC_PAGESIZE);
	k->map = mmap(NULL, k->size, PROT_READ | PROT_WRITE, MAP_SHARED, k->fd,
		      0);
	if (k->map == MAP_FAILED) {
		err = -errno;
		close(k->fd);
		k->fd = -1;
		return err;
	}
	return 0;
}

void wq_kstate_close(struct wq_kstate *k)
{
	if (k->fd < 0)
		return;
	munmap(k->map, k->size);
	close(k->fd);
	k->fd = -1;
}

/* Copy out of the data part, which wraps. */
static void copy(const struct wq_kstate *k, uint64_t at, void *to, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const uint8_t *data = (const uint8_t *)k->map + page;
	size_t size = k->size - page;
	uint8_t *out = to;

	for (size_t i = 0; i < len; i++)
		out[i] = data[(at + i) % size];
}

static bool is_switch(const struct record *r)
{
	return r->header.type == PERF_RECORD_SWITCH &&
	       r->header.size >= sizeof(*r);
}

static void take(const struct record *r, struct wq_switched *out)
{
	out->ns = r->time;
	out->cpu = r->cpu;
	out->in = !(r->header.misc & PERF_RECORD_MISC_SWITCH_OUT);
	out->preempted = r->header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
}

long wq_kstate_read(struct wq_kstate *k, struct wq_switched **out, bool *lost)
{
	struct perf_event_mmap_page *meta = k->map;
	struct wq_switched *list;
	uint64_t head, at;
	size_t most;
	long n = 0;

	*out = NULL;
	*lost = false;
	if (k->fd < 0)
		return 0;
	ioctl(k->fd, PERF_EVENT_IOC_DISABLE, 0);
	/* Acquire: the kernel wrote the records before the head. */
	head = __atomic_load_n(&meta->data_head, __ATOMIC_ACQUIRE);
	at = meta->data_tail;
	most = (size_t)((head - at) / sizeof(struct perf_event_header)) + 1;
	list = calloc(most, sizeof(*list));
	if (!list)
		return -ENOMEM;
	while (at < head) {
		struct record r = { 0 };

		copy(k, at, &r.header, sizeof(r.header));
		if (!r.header.size)
			break;
		copy(k, at, &r,
		     r.header.size < sizeof(r) ? r.header.size : sizeof(r));
		at += r.header.size;
		if (is_switch(&r))
			take(&r, &list[n++]);
		*lost = *lost || r.header.type == PERF_RECORD_LOST;
	}
	/* A full ring loses the newest, and says so only in the next record. */
	if (k->size - (head - meta->data_tail) <
	    2 * sizeof(struct record) + (size_t)sysconf(_SC_PAGESIZE))
		*lost = true;
	*out = list;
	return n;
}
