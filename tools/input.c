/* SPDX-License-Identifier: MIT */
/* tools/input.c - open a regular file to read.  Layer: tools. */
#include "tools/input.h"

#include "tools/say.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

const char *input_kind(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "a regular file";
	case S_IFDIR:
		return "a directory";
	case S_IFIFO:
		return "a FIFO";
	case S_IFSOCK:
		return "a socket";
	default:
		return "a device";
	}
}

static int refuse(const char *path, mode_t mode)
{
	say_error("%s: is %s, must be a regular file", path, input_kind(mode));
	return S_ISDIR(mode) ? -EISDIR : -EINVAL;
}

int input_open(const char *path, struct stat *st)
{
	struct stat found;
	int err, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0) {
		err = -errno;
		/* A socket, or a device without a driver: ENXIO says less. */
		if (err == -ENXIO && stat(path, &found) == 0)
			return refuse(path, found.st_mode);
		return say_errno(err, "%s: cannot open", path);
	}
	err = fstat(fd, &found) < 0 ? -errno : 0;
	if (err)
		say_errno(err, "%s: cannot look at", path);
	else if (!S_ISREG(found.st_mode))
		err = refuse(path, found.st_mode);
	if (err) {
		close(fd);
		return err;
	}
	*st = found;
	return fd;
}
