/* SPDX-License-Identifier: MIT */
/* The scheduler's figures of single threads, and the CPU that one is on. */
#include "wq/sched.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h> /* glibc 2.35 */
#define HAVE_RSEQ 1
#else
#define HAVE_RSEQ 0
#endif

int wq_schedstat_open(struct wq_schedstat *stat, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", (int)tid);
	stat->tid = tid;
	stat->fd = open(path, O_RDONLY | O_CLOEXEC);
	return stat->fd < 0 ? -errno : 0;
}

void wq_schedstat_close(struct wq_schedstat *stat)
{
	if (stat->fd >= 0)
		close(stat->fd);
	stat->fd = -1;
}

/* Return: whether @text begins with a number; @text then is behind it. */
static bool next_number(const char **text, uint64_t *out)
{
	const char *digits = *text + strspn(*text, " \t:");
	char *end;

	if (*digits < '0' || *digits > '9')
		return false;
	*out = strtoull(digits, &end, 10);
	*text = end;
	return true;
}

int wq_schedstat_fields(const struct wq_schedstat *stat,
			struct wq_schedfields *out)
{
	struct wq_schedfields got;
	const char *at;
	char buf[80];
	ssize_t n;

	if (stat->fd < 0)
		return -EBADF;
	n = pread(stat->fd, buf, sizeof(buf) - 1, 0);
	if (n < 0)
		return -errno; /* ESRCH: the thread has ended */
	buf[n] = '\0';
	at = buf;
	if (!next_number(&at, &got.run_ns) ||
	    !next_number(&at, &got.run_delay_ns) ||
	    !next_number(&at, &got.slices))
		return -EIO;
	*out = got;
	return 0;
}

/* Read a small file of the thread whole.  Return: 0 or a negative errno. */
static int slurp(pid_t tid, const char *name, char *buf, size_t size)
{
	size_t len = 0;
	char path[64];
	ssize_t n;
	int fd, err;

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", (int)tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	do {
		n = read(fd, buf + len, size - 1 - len);
		err = n < 0 ? -errno : 0;
		len += n > 0 ? (size_t)n : 0;
	} while (n > 0 && len < size - 1);
	close(fd);
	buf[len] = '\0';
	return err;
}

/* Return: whether the line that begins with @key has a number after it. */
static bool value_of(const char *text, const char *key, uint64_t *out)
{
	const char *line = text;
	size_t len = strlen(key);

	while (line && strncmp(line, key, len) != 0) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	if (!line)
		return false;
	line += len;
	return next_number(&line, out);
}

int wq_schedstat_read(const struct wq_schedstat *stat,
		      struct wq_thread_figures *out)
{
	struct wq_thread_figures got = { 0 };
	struct wq_schedfields field = { 0 };
	char buf[8192]; /* either file is under 4 KiB on all kernels seen */
	int err = wq_schedstat_fields(stat, &field);

	if (!err)
		err = slurp(stat->tid, "status", buf, sizeof(buf));
	if (err)
		return err;
	got.run_ns = field.run_ns;
	got.run_delay_ns = field.run_delay_ns;
	got.slices = field.slices;
	if (!value_of(buf, "voluntary_ctxt_switches", &got.voluntary) ||
	    !value_of(buf, "nonvoluntary_ctxt_switches", &got.involuntary))
		return -EIO;
	/* Only with CONFIG_SCHED_DEBUG, before 6.15. */
	if (slurp(stat->tid, "sched", buf, sizeof(buf)) == 0)
		got.has_migrations =
			value_of(buf, "se.nr_migrations", &got.migrations);
	*out = got;
	return 0;
}

#if HAVE_RSEQ
/* What the kernel keeps up to date for this thread; negative where nothing was
 * registered: before the start, under an old kernel, or with the tunable
 * glibc.pthread.rseq=0. */
static int rseq_cpu(void)
{
	const char *self;

	if (__rseq_size < offsetof(struct rseq, cpu_id) + sizeof(uint32_t))
		return -1;
#if defined(__x86_64__)
	/* clang 14 has no __builtin_thread_pointer() here. */
	__asm__("mov %%fs:0, %0" : "=r"(self));
#else
	self = __builtin_thread_pointer();
#endif
	/* Volatile: the kernel writes it, on this CPU and behind our back. */
	return *(const volatile int32_t *)(self + __rseq_offset +
					   offsetof(struct rseq, cpu_id));
}
#else
static int rseq_cpu(void)
{
	return -1;
}
#endif

int wq_cpu_now(void)
{
	int cpu = rseq_cpu();

	return cpu >= 0 ? cpu : sched_getcpu();
}
