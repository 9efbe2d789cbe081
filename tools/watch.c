/* SPDX-License-Identifier: MIT */
/* Leases and comparisons.  Layer: tools. */
#include "tools/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A broken lease sends SIGIO, whose default ends the process; the state of
 * the lease is asked for instead. */
static void ignore_sigio(void)
{
	signal(SIGIO, SIG_IGN);
}

/* Is this a file system on which every write goes through the open file? */
static bool is_local(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	switch ((unsigned long)fs.f_type) {
	case TMPFS_MAGIC:
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case EROFS_SUPER_MAGIC_V1:
	case SQUASHFS_MAGIC:
		return true;
	default:
		return false;
	}
}

/* The same for a file on device @dev, asked once for each change of device. */
static bool lease_binds(int fd, dev_t dev)
{
	static _Thread_local struct {
		bool asked, local;
		dev_t dev;
	} last;

	if (!last.asked || last.dev != dev) {
		last.local = is_local(fd);
		last.dev = dev;
		last.asked = true;
	}
	return last.local;
}

int watch_begin(struct watch *w, int fd)
{
	pthread_once(&once, ignore_sigio);
	clock_gettime(CLOCK_MONOTONIC_COARSE, &w->begin);
	w->lease = fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
	w->why = w->lease ? 0 : -errno;
	/* After the lease, so that nothing is missed in between. */
	if (fstat(fd, &w->st) < 0)
		return -errno;
	if (w->lease && !lease_binds(fd, w->st.st_dev)) {
		w->lease = false;
		w->why = -EOPNOTSUPP;
	}
	return 0;
}

const char *watch_why(int why)
{
	switch (why) {
	case -EAGAIN:
		return "someone has it open for writing";
	case -EACCES:
		return "it is another owner's";
	case -EOPNOTSUPP:
		return "on this file system a lease does not bind all writers";
	case -EINVAL:
		return "this file system has no leases";
	default:
		return strerror(-why);
	}
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
