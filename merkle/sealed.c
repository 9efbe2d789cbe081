/* SPDX-License-Identifier: MIT */
/* Reading what seal left.  Layer: merkle. */
#include "merkle/sealed.h"

#include "merkle/beneath.h"
#include "merkle/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int read_all(int fd, char **text, size_t *len)
{
	struct stat st;
	char *buf;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((uint64_t)st.st_size > VERITY_MANIFEST_MAX)
		return -EFBIG;
	buf = malloc((size_t)st.st_size + 1);
	if (!buf)
		return -ENOMEM;
	n = verity_pread_full(fd, buf, (size_t)st.st_size, 0);
	if (n >= 0) {
		*text = buf;
		*len = (size_t)n;
		return 0;
	}
	free(buf);
	return (int)n;
}

int verity_sealed_read(int dir, const char *name, char **text, size_t *len,
		       struct verity_digest *pin)
{
	int fd = verity_open_beneath(dir, name, O_RDONLY), err;

	if (fd < 0)
		return fd;
	err = read_all(fd, text, len);
	close(fd);
	if (err)
		return err;
	memset(pin, 0, sizeof(*pin));
	pin->alg = VERITY_SHA256;
	pin->size = verity_digest_size(VERITY_SHA256);
	err = verity_hash_bytes(VERITY_SHA256, *text, *len, pin->bytes);
	if (err)
		free(*text);
	return err;
}

/* Return: whether the head can be read without a wait. */
static bool head_is_cached(int fd)
{
	char head[VERITY_META_HEAD];
	struct iovec v = { .iov_base = head, .iov_len = sizeof(head) };

	return preadv2(fd, &v, 1, 0, RWF_NOWAIT) >= 0;
}

static int open_in(int dir, const char *folder, const char *path, bool cached)
{
	char *name;
	int fd;

	if (asprintf(&name, "%s/%s" VERITY_META_SUFFIX, folder, path) < 0)
		return -ENOMEM;
	fd = cached ? verity_open_cached(dir, name, O_RDONLY)
		    : verity_open_beneath(dir, name, O_RDONLY);
	free(name);
	if (fd >= 0 && cached && !head_is_cached(fd)) {
		close(fd);
		return -EAGAIN;
	}
	return fd == -ENOENT || fd == -ENOTDIR ? -ENODATA : fd;
}

static int try_in(int fd, const struct verity_digest *digest,
		  struct verity_meta *meta, struct verity_complaint *why)
{
	int err = fd < 0 ? fd : verity_meta_read(fd, digest, meta, why);

	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

int verity_sealed_meta(int dir, const char *path,
		       const struct verity_digest *digest, bool cached,
		       struct verity_meta *meta, struct verity_complaint *why)
{
	static const char *const order[] = { SEALED_META, SEALED_NEXT,
					     /* A seal may have moved it from
					      * there to here in between. */
					     SEALED_META };
	int fd = -ENODATA;

	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
		memset(why, 0, sizeof(*why));
		fd = try_in(open_in(dir, order[i], path, cached), digest, meta,
			    why);
		if (fd >= 0 || fd == -EAGAIN)
			return fd;
	}
	return fd;
}
