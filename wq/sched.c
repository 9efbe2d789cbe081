/* SPDX-License-Identifier: MIT */
/* Affinity and priority of single threads, set and read back. */
#include "wq/sched.h"

#include "wq/topo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int wq_sched_mask(pid_t tid, cpu_set_t *cpus)
{
	cpu_set_t now;

	CPU_ZERO(&now);
	if (sched_getaffinity(tid, sizeof(now), &now) < 0)
		return -errno;
	*cpus = now;
	return 0;
}

/* The widest mask that the kernel gives a thread, found by trying: no file
 * tells the cpuset of a single thread.  The thread has it for a moment. */
static void possible(pid_t tid, const cpu_set_t *before, cpu_set_t *out)
{
	cpu_set_t all;

	memset(&all, 0xff, sizeof(all));
	*out = *before;
	if (sched_setaffinity(tid, sizeof(all), &all) == 0)
		wq_sched_mask(tid, out);
	sched_setaffinity(tid, sizeof(*before), before);
}

int wq_sched_affinity(pid_t tid, const cpu_set_t *cpus, struct wq_error *err)
{
	char asked[80], can[80];
	cpu_set_t before, after;
	int code = wq_sched_mask(tid, &before);

	if (code)
		return wq_fail(err, -code,
			       "thread %d: its CPUs cannot be read: %s",
			       (int)tid, strerror(-code));
	if (sched_setaffinity(tid, sizeof(*cpus), cpus) < 0)
		code = -errno;
	else
		code = wq_sched_mask(tid, &after);
	if (!code && CPU_EQUAL(&after, cpus))
		return 0;
	possible(tid, &before, &after);
	wq_cpulist_format(cpus, asked, sizeof(asked));
	wq_cpulist_format(&after, can, sizeof(can));
	return wq_fail(err, code ? -code : EINVAL,
		       "CPUs %s were asked for a thread; it may use %s",
		       *asked ? asked : "(none)", can);
}

/* What sched_setattr(2) takes, version 0: policy and nice in one step, so that
 * half a change cannot happen.  The C library has no name for it yet, or one
 * that clashes with the kernel's. */
struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime; /* of SCHED_OTHER: the slice */
	uint64_t deadline[2];
};

#define RESET_ON_FORK 1u /* needs a privilege to be cleared: kept */

static int get(pid_t tid, struct attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	if (syscall(SYS_sched_getattr, tid, attr, sizeof(*attr), 0) < 0)
		return -errno;
	return 0;
}

static int set(pid_t tid, struct attr *attr)
{
	attr->size = sizeof(*attr);
	if (syscall(SYS_sched_setattr, tid, attr, 0) < 0)
		return -errno;
	return 0;
}

int wq_sched_prio_get(pid_t tid, struct wq_prio *prio)
{
	struct attr attr;
	int nice, err = get(tid, &attr);

	if (err)
		return err;
	/* Not from @attr, which has none for a SCHED_FIFO thread.  -1 is a
	 * nice value too. */
	errno = 0;
	nice = getpriority(PRIO_PROCESS, (id_t)tid);
	if (nice == -1 && errno)
		return -errno;
	prio->fifo = attr.policy == SCHED_FIFO ? (int)attr.priority : 0;
	prio->nice = nice;
	prio->slice_ns = attr.policy == SCHED_OTHER ? attr.runtime : 0;
	return 0;
}

static int refuse_range(const struct wq_prio *prio, struct wq_error *err)
{
	if (prio->fifo < 0 || prio->fifo > 99)
		return wq_fail(err, EINVAL,
			       "priority fifo %d was asked for; 1 to 99 is "
			       "possible",
			       prio->fifo);
	if (!prio->fifo && (prio->nice < -20 || prio->nice > 19))
		return wq_fail(err, EINVAL,
			       "nice %d was asked for; -20 to 19 is possible",
			       prio->nice);
	if (prio->slice_ns && (prio->fifo || prio->slice_ns < 100000 ||
			       prio->slice_ns > 100000000))
		return wq_fail(
			err, EINVAL,
			"a slice of %llu us was asked for; 100 to 100000 "
			"us is possible, and not with fifo",
			(unsigned long long)prio->slice_ns / 1000);
	return 0;
}

/* In words: what the limits of this process allow. */
static void limits(char *buf, size_t size)
{
	struct rlimit nice = { 0, 0 }, rt = { 0, 0 };
	char low[40] = "no lower nice", high[24] = "no fifo";

	getrlimit(RLIMIT_NICE, &nice);
	getrlimit(RLIMIT_RTPRIO, &rt);
	/* setrlimit(2): 1 to 40 stand for nice 19 to -20. */
	if (nice.rlim_cur)
		snprintf(low, sizeof(low), "nice down to %d",
			 nice.rlim_cur > 40 ? -20 : 20 - (int)nice.rlim_cur);
	if (rt.rlim_cur)
		snprintf(high, sizeof(high), "fifo up to %d",
			 rt.rlim_cur > 99 ? 99 : (int)rt.rlim_cur);
	snprintf(buf, size,
		 "; without CAP_SYS_NICE, RLIMIT_NICE allows %s and "
		 "RLIMIT_RTPRIO %s",
		 low, high);
}

static int refuse(const struct wq_prio *prio, int code, struct wq_error *err)
{
	char asked[64], can[120] = "";

	wq_prio_format(prio, asked, sizeof(asked));
	if (code == -EPERM)
		limits(can, sizeof(can));
	else if (prio->slice_ns)
		strcpy(can, "; slices need Linux 6.12");
	return wq_fail(err, -code, "priority %s was asked for: %s%s", asked,
		       strerror(-code), can);
}

int wq_sched_prio(pid_t tid, const struct wq_prio *prio, struct wq_error *err)
{
	struct attr before, attr = { 0 };
	struct wq_prio now = { 0 };
	int code = refuse_range(prio, err);

	if (code)
		return code;
	code = get(tid, &before);
	if (code)
		return refuse(prio, code, err);
	attr.flags = before.flags & RESET_ON_FORK;
	attr.policy = prio->fifo ? SCHED_FIFO : SCHED_OTHER;
	attr.priority = (uint32_t)prio->fifo;
	attr.nice = prio->fifo ? 0 : prio->nice;
	attr.runtime = prio->slice_ns; /* 0 is the kernel's own */
	code = set(tid, &attr);
	if (code)
		return refuse(prio, code, err);
	code = wq_sched_prio_get(tid, &now);
	if (!code && now.fifo == prio->fifo &&
	    (prio->fifo || now.nice == prio->nice) &&
	    (!prio->slice_ns || now.slice_ns == prio->slice_ns))
		return 0;
	set(tid, &before);
	return refuse(prio, code ? code : -EINVAL, err);
}

void wq_prio_format(const struct wq_prio *prio, char *buf, size_t size)
{
	if (prio->fifo)
		snprintf(buf, size, "fifo %d", prio->fifo);
	else if (prio->slice_ns)
		snprintf(buf, size, "nice %d, slice %llu us", prio->nice,
			 (unsigned long long)prio->slice_ns / 1000);
	else
		snprintf(buf, size, "nice %d", prio->nice);
}

/* Return: whether @text is a number, a minus before it at most. */
static bool number(const char *text, int *out)
{
	size_t sign = *text == '-';
	size_t len = strspn(text + sign, "0123456789");

	if (!len || len > 6 || text[sign + len])
		return false;
	*out = (int)strtol(text, NULL, 10);
	return true;
}

int wq_prio_parse(const char *text, struct wq_prio *prio, struct wq_error *err)
{
	bool fifo = strncmp(text, "fifo:", 5) == 0;
	bool nice = strncmp(text, "nice:", 5) == 0;
	bool slice = strncmp(text, "slice:", 6) == 0;
	struct wq_prio got = { 0 };
	size_t skip = slice ? 6 : fifo || nice ? 5 : 0;
	int value, code;

	if (!number(text + skip, &value) || ((fifo || slice) && value < 1))
		return wq_fail(err, EINVAL,
			       "'%.60s' was asked for; nice:-20 to nice:19, "
			       "fifo:1 to fifo:99 and slice:100 to "
			       "slice:100000 are possible",
			       text);
	if (slice)
		got.slice_ns = (uint64_t)value * 1000;
	else if (fifo)
		got.fifo = value;
	else
		got.nice = value;
	code = refuse_range(&got, err);
	if (!code)
		*prio = got;
	return code;
}
