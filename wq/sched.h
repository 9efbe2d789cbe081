/* SPDX-License-Identifier: MIT */
/*
 * wq/sched.h - affinity, priority and scheduler figures of single threads.
 *
 * What is set is read back and compared: a call that the kernel accepted but
 * did not follow (a cpuset narrower than the mask, say) is an error here.
 */
#ifndef WQ_SCHED_H
#define WQ_SCHED_H

#include "wq/error.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct wq_prio - how a thread stands among others
 * @fifo: the SCHED_FIFO priority, 1 to 99, with @nice left alone; 0 is
 *	SCHED_OTHER
 * @nice: -20 to 19
 * @slice_ns: of SCHED_OTHER, the slice to ask for, 100 us to 100 ms (Linux 6.12;
 *	needs no privilege); 0 is the kernel's own.  A thread with a slice
 *	shorter than another's starts in its place when it is woken, instead of
 *	when the other sleeps (Documentation/scheduler/sched-eevdf.rst)
 */
struct wq_prio {
	int fifo;
	int nice;
	uint64_t slice_ns;
};

/**
 * wq_sched_affinity() - set and read back
 * @tid: a thread of this process, 0 for the calling one
 *
 * A mask that the thread has now is no bound: only its cpuset is.
 *
 * Return: 0; -EINVAL when @cpus has no CPU that the thread may use, or when
 * what was read back differs: @err names the mask asked for and the possible
 * one, which is found by trying, so that the thread may be on any of its CPUs
 * for a moment; -ESRCH when there is no such thread.  After an error the
 * thread's mask is as before, if the kernel lets it.
 */
int wq_sched_affinity(pid_t tid, const cpu_set_t *cpus, struct wq_error *err);

/** wq_sched_mask() - Return: 0 with the thread's mask, or a negative errno */
int wq_sched_mask(pid_t tid, cpu_set_t *cpus);

/**
 * wq_sched_prio() - set and read back
 *
 * Policy and nice change together or not at all (sched_setattr(2), Linux 3.14).
 *
 * Return: 0; -EPERM when not allowed: @err names what was asked and the limits
 * (RLIMIT_NICE, RLIMIT_RTPRIO, CAP_SYS_NICE); -EINVAL for values out of range;
 * -ESRCH when there is no such thread.
 */
int wq_sched_prio(pid_t tid, const struct wq_prio *prio, struct wq_error *err);

/** wq_sched_prio_get() - Return: 0 or a negative errno */
int wq_sched_prio_get(pid_t tid, struct wq_prio *prio);

/** wq_prio_format() - "nice 5", "nice 0, slice 100 us" or "fifo 10" */
void wq_prio_format(const struct wq_prio *prio, char *buf, size_t size);
/** wq_prio_parse() - "nice:-5", "fifo:10", "slice:100" in microseconds, or a bare
 * number, which is nice.
 * Return: 0, or -EINVAL with @prio as it was. */
int wq_prio_parse(const char *text, struct wq_prio *prio, struct wq_error *err);

/**
 * struct wq_schedstat - files of one thread, kept open
 * @fd: /proc/self/task/TID/schedstat, or -1
 */
struct wq_schedstat {
	pid_t tid;
	int fd;
};

/**
 * struct wq_thread_figures - since the thread began
 * @run_ns, @run_delay_ns, @slices: fields 1 to 3 of schedstat: on a CPU, ready
 *	but not on one, times put on one
 * @voluntary, @involuntary: context switches
 * @migrations: between CPUs, from /proc/self/task/TID/sched;
 * @has_migrations: false where the kernel does not tell
 */
struct wq_thread_figures {
	uint64_t run_ns;
	uint64_t run_delay_ns;
	uint64_t slices;
	uint64_t voluntary;
	uint64_t involuntary;
	uint64_t migrations;
	bool has_migrations;
};

/** wq_schedstat_open() - Return: 0 or a negative errno; closing is then legal
 * too.  The thread may be any of this process. */
int wq_schedstat_open(struct wq_schedstat *stat, pid_t tid);
void wq_schedstat_close(struct wq_schedstat *stat);

/** struct wq_schedfields - the three of schedstat, as above */
struct wq_schedfields {
	uint64_t run_ns;
	uint64_t run_delay_ns;
	uint64_t slices;
};

/** wq_schedstat_fields() - one pread, 0.9 us.  Return: 0, -ESRCH when the
 * thread has ended, -EBADF when not open, or another negative errno. */
int wq_schedstat_fields(const struct wq_schedstat *stat,
			struct wq_schedfields *out);

/** wq_schedstat_read() - everything; some 20 us, once an iteration.  Return: as
 * wq_schedstat_fields(), -ENOENT too, as for a thread that has ended. */
int wq_schedstat_read(const struct wq_schedstat *stat,
		      struct wq_thread_figures *out);

/** wq_cpu_now() - the CPU that the calling thread is on: rseq's cpu_id where
 * the C library registered it, else sched_getcpu(); -1 where neither tells */
int wq_cpu_now(void);

#endif /* WQ_SCHED_H */
