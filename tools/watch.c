/* SPDX-License-Identifier: MIT */
/* Leases and comparisons.  Layer: tools. */
#include "tools/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A broken lease sends SIGIO, whose default ends the process; the state of
 * the lease is asked for instead. */
static void ignore_sigio(void)
{
	signal(SIGIO, SIG_IGN);
}

int watch_begin(struct watch *w, int fd)
{
	pthread_once(&once, ignore_sigio);
	clock_gettime(CLOCK_MONOTONIC_COARSE, &w->begin);
	w->lease = fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
	w->why = w->lease ? 0 : -errno;
	/* After the lease, so that nothing is missed in between. */
	return fstat(fd, &w->st) < 0 ? -errno : 0;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool watch_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       a->st_size == b->st_size &&
	       same_time(&a->st_mtim, &b->st_mtim) &&
	       same_time(&a->st_ctim, &b->st_ctim);
}

/* The kernel waits at least a second before it breaks a lease by force. */
static bool still_young(const struct watch *w)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec - w->begin.tv_sec < 1;
}

int watch_end(const struct watch *w, int fd)
{
	struct stat now;

	if (w->lease && still_young(w))
		return 0;
	if (w->lease && fcntl(fd, F_GETLEASE) != F_RDLCK)
		return -ESTALE;
	if (fstat(fd, &now) < 0)
		return -errno;
	return watch_same(&w->st, &now) ? 0 : -ESTALE;
}

int watch_path(const struct watch *w, int dir, const char *path)
{
	struct stat now;

	if (fstatat(dir, path, &now, 0) < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	return now.st_dev == w->st.st_dev && now.st_ino == w->st.st_ino
		       ? 0
		       : -ESTALE;
}
