/* SPDX-License-Identifier: MIT */
/* Opening below a directory.  Layer: merkle. */
#include "merkle/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* One directory after the other; the last component with the real flags. */
static int open_steps(int dir, char *path, int flags)
{
	int at = dir, next;
	char *slash;

	for (;;) {
		slash = strchr(path, '/');
		if (slash)
			*slash = '\0';
		if (!strcmp(path, ".."))
			next = -EXDEV;
		else
			next = openat(at, path,
				      (slash ? O_PATH | O_DIRECTORY : flags) |
					      O_CLOEXEC | O_NOFOLLOW |
					      O_NONBLOCK);
		if (next == -1)
			next = -errno;
		if (at != dir)
			close(at);
		if (next < 0 || !slash)
			return next;
		at = next;
		path = slash + 1;
	}
}

static int open_walk(int dir, const char *path, int flags)
{
	char *copy;
	int fd;

	if (path[0] == '/')
		return -EXDEV;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	fd = open_steps(dir, copy, flags);
	free(copy);
	return fd;
}

static long open_how(int dir, const char *path, int flags, unsigned int more)
{
	struct open_how how = {
		.flags = (unsigned int)(flags | O_CLOEXEC | O_NONBLOCK),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
			   RESOLVE_NO_MAGICLINKS | more,
	};

	return syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

int verity_open_beneath(int dir, const char *path, int flags)
{
	long fd = open_how(dir, path, flags, 0);

	if (fd >= 0)
		return (int)fd;
	return errno == ENOSYS ? open_walk(dir, path, flags) : -errno;
}

/* A kernel before Linux 5.12 does not know the flag. */
int verity_open_cached(int dir, const char *path, int flags)
{
	long fd = open_how(dir, path, flags, RESOLVE_CACHED);

	if (fd >= 0)
		return (int)fd;
	return errno == EINVAL || errno == ENOSYS ? -EAGAIN : -errno;
}
