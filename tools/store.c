/* SPDX-License-Identifier: MIT */
/* Whole files or none.  Layer: tools. */
#include "tools/store.h"

#include "merkle/beneath.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Names tried before giving up. */
#define TRIES 1000

/* A name that no other thread uses; another process may have it, where
 * process numbers are used again or come from another namespace. */
static void pick_name(struct store *s)
{
	static _Atomic(unsigned int) count;

	snprintf(s->tmp, sizeof(s->tmp), STORE_TMP_PREFIX "%ld.%u",
		 (long)getpid(), atomic_fetch_add(&count, 1));
}

/* Locked as long as it is open: what store_sweep_dead() goes by.  Where there
 * are no locks it takes nothing away. */
static int hold(const struct store *s)
{
	return flock(s->fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
}

/* Return: false when a sweep came between the making of the file and its lock:
 * then its name is gone, or will be */
static bool hold_named(const struct store *s)
{
	struct stat st;

	return hold(s) != -EWOULDBLOCK && fstat(s->fd, &st) == 0 &&
	       st.st_nlink > 0;
}

/* linkat() of a nameless file goes through /proc; a thread may have a table of
 * descriptors of its own, so self would be the wrong one. */
static int open_nameless(int dir)
{
	if (access("/proc/thread-self/fd", X_OK) < 0)
		return -1;
	return openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
}

static int open_named(struct store *s)
{
	for (unsigned int i = 0; i < TRIES; i++) {
		pick_name(s);
		s->fd = openat(s->dir, s->tmp,
			       O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC |
				       O_NOFOLLOW,
			       0644);
		if (s->fd < 0 && errno != EEXIST)
			return -errno;
		if (s->fd >= 0 && hold_named(s))
			return 0;
		if (s->fd >= 0)
			close(s->fd);
	}
	s->fd = -1;
	return -EEXIST;
}

int store_begin(struct store *s, int dir)
{
	int err;

	*s = (struct store)STORE_INIT;
	s->dir = dir;
	s->fd = open_nameless(dir);
	if (s->fd >= 0)
		return 0;
	err = open_named(s);
	if (err)
		*s = (struct store)STORE_INIT; /* the name is another's */
	return err;
}

int store_open_parent(int dir, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char *up = slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
	int fd;

	if (!up)
		return -ENOMEM;
	*name = slash ? slash + 1 : path;
	fd = verity_open_beneath(dir, up, O_RDONLY | O_DIRECTORY);
	free(up);
	return fd;
}

static int link_as(const struct store *s, int dir, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", s->fd);
	if (linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	return 0;
}

/* Locked before it can be seen, so no sweep is faster. */
static int link_named(struct store *s)
{
	int err = -EEXIST;

	(void)hold(s);
	for (unsigned int i = 0; i < TRIES && err == -EEXIST; i++) {
		pick_name(s);
		err = link_as(s, s->dir, s->tmp);
	}
	if (err)
		s->tmp[0] = '\0'; /* it is another's */
	return err;
}

/* A nameless file can not replace another: then it gets a name first. */
static int name_in(struct store *s, int dir, const char *name)
{
	int err;

	if (!s->tmp[0]) {
		err = link_as(s, dir, name);
		if (err != -EEXIST)
			return err;
		err = link_named(s);
		if (err)
			return err;
	}
	if (renameat(s->dir, s->tmp, dir, name) < 0)
		return -errno;
	s->tmp[0] = '\0';
	return 0;
}

static int name_it(struct store *s, const char *path)
{
	const char *name;
	int up = store_open_parent(s->dir, path, &name), err;

	if (up < 0)
		return up;
	err = name_in(s, up, name);
	close(up);
	return err;
}

/* What NFS and quotas find out late is told by close(); that of another
 * descriptor of the file will do, and leaves this one for naming it. */
int store_flush(struct store *s, bool durable)
{
	int fd;

	if (durable && fsync(s->fd) < 0)
		return -errno;
	fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 || close(fd) < 0 ? -errno : 0;
}

int store_commit(struct store *s, const char *name, bool durable)
{
	int err = store_flush(s, durable);

	if (!err)
		err = name_it(s, name);
	/* All was flushed: its close() has nothing to tell any more. */
	store_abort(s);
	return err;
}

void store_abort(struct store *s)
{
	if (s->fd >= 0)
		close(s->fd);
	if (s->tmp[0])
		unlinkat(s->dir, s->tmp, 0);
	*s = (struct store)STORE_INIT;
}

int store_write(int fd, const void *buf, size_t len, uint64_t pos)
{
	const char *p = buf;

	while (len) {
		ssize_t n = pwrite(fd, p, len, (off_t)pos);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		pos += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static int make_dir(int dir, const char *path)
{
	const char *name;
	int up = store_open_parent(dir, path, &name), err = 0;

	if (up < 0)
		return up;
	if (mkdirat(up, name, 0755) < 0 && errno != EEXIST)
		err = -errno;
	close(up);
	return err;
}

int store_parents(int dir, const char *path)
{
	const char *name;
	int up = store_open_parent(dir, path, &name), err = up;
	char *copy;

	/* Most are there already. */
	if (up >= 0) {
		close(up);
		return 0;
	}
	copy = err == -ENOENT ? strdup(path) : NULL;
	if (err == -ENOENT)
		err = copy ? 0 : -ENOMEM;
	for (char *p = copy; p && !err;) {
		p = strchr(p, '/');
		if (!p)
			break;
		*p = '\0';
		err = make_dir(dir, copy);
		*p++ = '/';
	}
	free(copy);
	return err;
}

int store_sync_dir(int dir, const char *path)
{
	const char *name;
	int fd = store_open_parent(dir, path, &name), err = 0;

	if (fd < 0)
		return fd;
	/* EINVAL: this file system has nothing to sync for a directory. */
	if (fsync(fd) < 0 && errno != EINVAL)
		err = -errno;
	close(fd);
	return err;
}

/* Return: what follows a number, or NULL where there is none */
static const char *skip_number(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return n ? s + n : NULL;
}

/* Could pick_name() have given it?  Others may use the prefix as well. */
static bool is_ours(const char *name)
{
	size_t n = strlen(STORE_TMP_PREFIX);

	if (strncmp(name, STORE_TMP_PREFIX, n) != 0)
		return false;
	name = skip_number(name + n);
	if (!name || *name != '.')
		return false;
	name = skip_number(name + 1);
	return name && !*name;
}

static bool is_file(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode);
}

/* Is the file still the one of that name?  Under its lock that stays so. */
static bool has_name(int fd, int dir, const char *name)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 &&
	       fstatat(dir, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Locked until it is gone: whoever just made it must not take it for his. */
static void remove_dead(int dir, const char *name)
{
	int fd = openat(dir, name,
			O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && has_name(fd, dir, name))
		unlinkat(dir, name, 0);
	close(fd);
}

static void sweep(int dir, bool all)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d))) {
		if (!is_ours(e->d_name) || !is_file(dir, e->d_name))
			continue;
		if (all)
			unlinkat(dir, e->d_name, 0);
		else
			remove_dead(dir, e->d_name);
	}
	closedir(d);
}

void store_sweep(int dir)
{
	sweep(dir, true);
}

void store_sweep_dead(int dir)
{
	static dev_t dev; /* of the last directory: once is enough for many */
	static ino_t ino; /* files of one; called by one thread */
	struct stat st;

	if (fstat(dir, &st) < 0 || (st.st_dev == dev && st.st_ino == ino))
		return;
	dev = st.st_dev;
	ino = st.st_ino;
	sweep(dir, false);
}
