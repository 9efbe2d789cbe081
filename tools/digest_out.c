/* SPDX-License-Identifier: MIT */
/* tools/digest_out.c - where digest puts a tree and a descriptor.
 * Layer: tools. */
#include "tools/digest_out.h"

#include "merkle/meta.h"
#include "tools/out.h"
#include "tools/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES 262144U

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* A file without a name in @dir, gone with its descriptor. */
static int nameless(int dir)
{
	struct store s;
	int err, fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	err = store_begin(&s, dir);
	if (err)
		return err;
	fd = fcntl(s.fd, F_DUPFD_CLOEXEC, 3);
	err = fd < 0 ? -errno : fd;
	store_abort(&s); /* takes its name away */
	return err;
}

/* The directory of what @path names, and the name in it. */
static int open_dir_of(const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char *dir;
	int fd, err;

	*name = slash ? slash + 1 : path;
	dir = !slash          ? strdup(".")
	      : slash == path ? strdup("/")
			      : strndup(path, (size_t)(slash - path));
	if (!dir)
		return -ENOMEM;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = fd < 0 ? -errno : fd;
	free(dir);
	return err;
}

static int open_replace(struct outfile *o, const struct stat *old)
{
	int err;

	o->dir = open_dir_of(o->path, &o->name);
	if (o->dir < 0)
		return o->dir;
	if (!*o->name)
		return -EISDIR;
	err = store_begin(&o->store, o->dir);
	if (err)
		return err;
	o->fd = o->store.fd;
	/* What replaces a file is as open to others as that was. */
	if (old && fchmod(o->fd, old->st_mode & 07777) < 0)
		return -errno;
	return 0;
}

static int open_direct(struct outfile *o)
{
	const char *tmp = getenv("TMPDIR");

	o->direct = true;
	o->dir = open(tmp && *tmp ? tmp : "/tmp",
		      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (o->dir < 0)
		return -errno;
	o->fd = nameless(o->dir);
	return o->fd < 0 ? o->fd : 0;
}

int outfile_open(struct outfile *o, int input)
{
	struct stat in, there;
	int err;

	if (!o->path)
		return 0;
	if (stat(o->path, &there) == 0 && fstat(input, &in) == 0 &&
	    S_ISREG(in.st_mode) && same_file(&in, &there)) {
		say_error("%s: is the input, and would be overwritten",
			  o->path);
		return -EEXIST;
	}
	if (lstat(o->path, &there) < 0)
		err = errno == ENOENT ? open_replace(o, NULL) : -errno;
	else if (S_ISREG(there.st_mode))
		err = open_replace(o, &there);
	else
		err = S_ISDIR(there.st_mode) ? -EISDIR : open_direct(o);
	return err ? say_errno(err, "%s: cannot write", o->path) : 0;
}

/* Copy all of @from to @pos of @to; at its end where @pos is UINT64_MAX. */
static int copy(int from, int to, uint64_t pos)
{
	uint8_t *buf = malloc(COPY_BYTES);
	uint64_t at = 0;
	ssize_t n = 1;
	int err = buf ? 0 : -ENOMEM;

	while (!err && n) {
		n = verity_pread_full(from, buf, COPY_BYTES, at);
		if (n < 0)
			err = (int)n;
		else if (pos == UINT64_MAX)
			err = write_full(to, buf, (size_t)n);
		else
			err = store_write(to, buf, (size_t)n, pos + at);
		at += n > 0 ? (uint64_t)n : 0;
	}
	free(buf);
	return err;
}

/*
 * Standard output under another name is written through our own descriptor:
 * one opened anew would begin at 0 again where it is a file, and overwrite.
 */
static int open_target(const char *path)
{
	struct stat out, there;
	int fd;

	if (stat(path, &there) == 0 && fstat(STDOUT_FILENO, &out) == 0 &&
	    same_file(&out, &there))
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	else
		fd = open(path,
			  O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY,
			  0666);
	return fd < 0 ? -errno : fd;
}

static int commit_direct(const struct outfile *o)
{
	int err, fd = open_target(o->path);

	if (fd < 0)
		return fd;
	err = copy(o->fd, fd, UINT64_MAX);
	if (close(fd) < 0 && !err)
		err = -errno;
	return err;
}

int outfile_flush(struct outfile *o)
{
	int err = o->path && !o->direct ? store_flush(&o->store, true) : 0;

	return err ? say_errno(err, "%s: cannot write", o->path) : 0;
}

int outfile_commit(struct outfile *o)
{
	int err;

	if (!o->path)
		return 0;
	err = o->direct ? commit_direct(o)
			: store_commit(&o->store, o->name, false);
	if (err)
		return say_errno(err, "%s: cannot write", o->path);
	err = o->direct ? 0 : store_sync_dir(o->dir, o->name);
	if (err)
		say_errno(err,
			  "%s: is in place, but may not outlive a power cut: "
			  "fsync of its directory",
			  o->path);
	return err;
}

void outfile_close(struct outfile *o)
{
	if (o->direct && o->fd >= 0)
		close(o->fd);
	store_abort(&o->store);
	if (o->dir >= 0)
		close(o->dir);
	*o = (struct outfile)OUTFILE_INIT(NULL);
}

int tree_out_emit(void *arg, unsigned int level, uint64_t index, size_t count,
		  const void *blocks)
{
	const struct tree_out *t = arg;

	return store_write(t->file->fd, blocks, count << t->geom.block_lg,
			   geom_offset(&t->geom, level, index));
}

int tree_out_stream_emit(void *arg, unsigned int level, uint64_t index,
			 size_t count, const void *blocks)
{
	struct tree_out *t = arg;

	if (!t->spool[level]) {
		int fd = nameless(t->file->dir);

		if (fd < 0)
			return fd;
		t->spool[level] = fd;
	}
	return store_write(t->spool[level], blocks, count * t->geom.block_size,
			   index * t->geom.block_size);
}

int tree_out_arrange(struct tree_out *t, const struct verity_geom *g)
{
	int err = 0;

	for (unsigned int level = g->levels; level && !err; level--)
		err = copy(t->spool[level], t->file->fd,
			   geom_offset(g, level, 0));
	return err;
}

void tree_out_close(struct tree_out *t)
{
	for (unsigned int i = 0; i <= VERITY_MAX_LEVELS; i++)
		if (t->spool[i])
			close(t->spool[i]);
	*t = (struct tree_out){ .file = NULL };
}
