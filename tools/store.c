/* SPDX-License-Identifier: MIT */
/* Whole files or none.  Layer: tools. */
#include "tools/store.h"

#include "tools/beneath.h"

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

/* A name that no other thread or process of this boot uses. */
static void pick_name(struct store *s)
{
	static _Atomic(unsigned int) count;

	snprintf(s->tmp, sizeof(s->tmp), STORE_TMP_PREFIX "%ld.%u",
		 (long)getpid(), atomic_fetch_add(&count, 1));
}

/* Locked as long as it is open: what store_sweep_dead() goes by.  Where there
 * are no locks it takes nothing away. */
static void hold(const struct store *s)
{
	(void)flock(s->fd, LOCK_EX | LOCK_NB);
}

/* linkat() of a nameless file goes through /proc; a thread may have a table of
 * descriptors of its own, so self would be the wrong one. */
static int open_nameless(int dir)
{
	if (access("/proc/thread-self/fd", X_OK) < 0)
		return -1;
	return openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
}

int store_begin(struct store *s, int dir)
{
	*s = (struct store)STORE_INIT;
	s->dir = dir;
	s->fd = open_nameless(dir);
	if (s->fd < 0) {
		pick_name(s);
		s->fd = openat(dir, s->tmp,
			       O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC |
				       O_NOFOLLOW,
			       0644);
	}
	if (s->fd < 0) {
		int err = -errno;

		s->tmp[0] = '\0';
		store_abort(s);
		return err;
	}
	if (s->tmp[0])
		hold(s);
	return 0;
}

/* Open the directory that holds @path, below @dir.  A symlink on the way is
 * not followed: one that was planted would lead out of @dir. */
static int open_parent(int dir, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *up = slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
	int fd;

	if (!up)
		return -ENOMEM;
	fd = open_beneath(dir, up, O_RDONLY | O_DIRECTORY);
	free(up);
	return fd;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int link_as(const struct store *s, int dir, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", s->fd);
	if (linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	return 0;
}

/* A nameless file can not replace another: then it gets a name first. */
static int name_in(struct store *s, int dir, const char *name)
{
	int err;

	if (!s->tmp[0]) {
		err = link_as(s, dir, name);
		if (err != -EEXIST)
			return err;
		pick_name(s);
		hold(s);
		err = link_as(s, s->dir, s->tmp);
		if (err) {
			s->tmp[0] = '\0';
			return err;
		}
	}
	if (renameat(s->dir, s->tmp, dir, name) < 0)
		return -errno;
	s->tmp[0] = '\0';
	return 0;
}

static int name_it(struct store *s, const char *path)
{
	int up = open_parent(s->dir, path), err;

	if (up < 0)
		return up;
	err = name_in(s, up, base_name(path));
	close(up);
	return err;
}

int store_commit(struct store *s, const char *name, bool durable)
{
	int err = 0;

	if (durable && fsync(s->fd) < 0)
		err = -errno;
	if (!err)
		err = name_it(s, name);
	if (!err && durable)
		err = store_sync_dir(s->dir, name);
	/* close() reports what NFS and quotas found out late. */
	if (close(s->fd) < 0 && !err)
		err = -errno;
	s->fd = -1;
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
	int up = open_parent(dir, path), err = 0;

	if (up < 0)
		return up;
	if (mkdirat(up, base_name(path), 0755) < 0 && errno != EEXIST)
		err = -errno;
	close(up);
	return err;
}

int store_parents(int dir, const char *path)
{
	int up = open_parent(dir, path), err = up;
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
	int fd = open_parent(dir, path), err = 0;

	if (fd < 0)
		return fd;
	/* EINVAL: this file system has nothing to sync for a directory. */
	if (fsync(fd) < 0 && errno != EINVAL)
		err = -errno;
	close(fd);
	return err;
}

/* Is no process at work on it? */
static bool is_dead(int dir, const char *name)
{
	int fd = openat(dir, name,
			O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool dead = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;

	if (fd >= 0)
		close(fd);
	return dead;
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
	while ((e = readdir(d)))
		if (!strncmp(e->d_name, STORE_TMP_PREFIX,
			     strlen(STORE_TMP_PREFIX)) &&
		    (all || is_dead(dir, e->d_name)))
			unlinkat(dir, e->d_name, 0);
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
