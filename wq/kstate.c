/* SPDX-License-Identifier: MIT */
#include "wq/kstate.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Of data, powers of two: 8192 records, and as few as 512 where the user may
 * not lock more memory. */
enum { MOST_PAGES = 64, LEAST_PAGES = 4 };

/* What sample_type asks for; every record ends with it. */
struct trailer {
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
};

/* PERF_RECORD_EXIT and PERF_RECORD_FORK begin with it. */
struct task {
	struct perf_event_header header;
	uint32_t pid, ppid;
	uint32_t tid, ptid;
};

enum {
	LEAST_RECORD = sizeof(struct perf_event_header) + sizeof(struct trailer)
};

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Readable only, so the kernel overwrites; and it writes backward, so that the
 * newest record is where the head is and older ones follow. */
static int map_ring(struct wq_kstate *k)
{
	int err = -EINVAL;

	for (size_t pages = MOST_PAGES; pages >= LEAST_PAGES; pages /= 2) {
		k->size = (pages + 1) * page_size();
		k->map = mmap(NULL, k->size, PROT_READ, MAP_SHARED, k->fd, 0);
		if (k->map != MAP_FAILED)
			return 0;
		err = -errno;
		k->map = NULL;
		if (err != -EPERM && err != -ENOMEM)
			break;
	}
	return err;
}

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
		.task = 1, /* for PERF_RECORD_EXIT */
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.write_backward = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	const char *test = getenv("WQ_TRACE_PERF");
	int err;

	k->fd = -1;
	k->tid = tid;
	k->map = NULL;
	if (test && strcmp(test, "off") == 0)
		return -EACCES;
	k->fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1,
			     PERF_FLAG_FD_CLOEXEC);
	if (k->fd < 0) {
		err = -errno;
		k->fd = -1;
		return err;
	}
	err = map_ring(k);
	if (err) {
		close(k->fd);
		k->fd = -1;
	}
	return err;
}

void wq_kstate_stop(struct wq_kstate *k)
{
	if (k->fd < 0)
		return;
	ioctl(k->fd, PERF_EVENT_IOC_DISABLE, 0);
	close(k->fd); /* the mapping keeps the ring */
	k->fd = -1;
}

void wq_kstate_close(struct wq_kstate *k)
{
	wq_kstate_stop(k);
	if (k->map)
		munmap(k->map, k->size);
	k->map = NULL;
}

/* Copy out of the data part, which wraps. */
static void copy(const struct wq_kstate *k, uint64_t at, void *to, size_t len)
{
	size_t page = page_size();
	const uint8_t *data = (const uint8_t *)k->map + page;
	size_t size = k->size - page;
	uint8_t *out = to;

	for (size_t i = 0; i < len; i++)
		out[i] = data[(at + i) % size];
}

/* The record at @at.  Return: whether it says something about the thread. */
static bool take(const struct wq_kstate *k, uint64_t at,
		 const struct perf_event_header *header,
		 struct wq_switched *out)
{
	struct trailer end;
	struct task task;

	copy(k, at + header->size - sizeof(end), &end, sizeof(end));
	out->ns = end.time;
	out->cpu = end.cpu;
	if (header->type == PERF_RECORD_EXIT &&
	    header->size >= sizeof(task) + sizeof(end)) {
		copy(k, at, &task, sizeof(task));
		out->kind = WQ_SWITCH_EXIT;
		return task.tid == (uint32_t)k->tid;
	}
	if (!(header->misc & PERF_RECORD_MISC_SWITCH_OUT))
		out->kind = WQ_SWITCH_IN;
	else if (header->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT)
		out->kind = WQ_SWITCH_PREEMPT;
	else
		out->kind = WQ_SWITCH_SLEEP;
	return header->type == PERF_RECORD_SWITCH;
}

long wq_kstate_read(const struct wq_kstate *k, struct wq_switched **out,
		    uint64_t *lost)
{
	const struct perf_event_mmap_page *meta = k->map;
	uint64_t head, ever, there, pos = 0;
	struct perf_event_header header;
	struct wq_switched *list;
	size_t n = 0;

	*out = NULL;
	if (!meta)
		return 0;
	/* Acquire: the kernel wrote the records before the head. */
	head = __atomic_load_n(&meta->data_head, __ATOMIC_ACQUIRE);
	ever = 0 - head; /* it counts down from 0 */
	there = k->size - page_size();
	there = ever < there ? ever : there;
	list = calloc(there / LEAST_RECORD + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	while (pos + sizeof(header) <= there) {
		copy(k, head + pos, &header, sizeof(header));
		/* The oldest may be half overwritten. */
		if (header.size < LEAST_RECORD || pos + header.size > there)
			break;
		n += take(k, head + pos, &header, &list[n]);
		pos += header.size;
	}
	*lost += (ever - pos) / LEAST_RECORD;
	*out = list;
	return (long)n;
}

enum wq_state wq_state_switched(enum wq_state was, enum wq_switch_kind kind)
{
	static const enum wq_state to[] = {
		[WQ_SWITCH_IN] = WQ_STATE_RUNNING,
		[WQ_SWITCH_SLEEP] = WQ_STATE_SLEEP,
		[WQ_SWITCH_PREEMPT] = WQ_STATE_RUNNABLE,
		[WQ_SWITCH_EXIT] = WQ_STATE_DEAD,
	};

	if (was == WQ_STATE_DEAD || was == to[kind])
		return WQ_STATE_NONE;
	return to[kind];
}

enum wq_state wq_state_woken(enum wq_state was)
{
	return was == WQ_STATE_SLEEP ? WQ_STATE_RUNNABLE : WQ_STATE_NONE;
}
