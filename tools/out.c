/* SPDX-License-Identifier: MIT */
/* tools/out.c - standard output, none of it lost unnoticed.  Layer: tools. */
#include "tools/out.h"

#include "merkle/text.h"
#include "tools/exits.h"
#include "tools/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* The first error of standard output: stdio keeps the fact, not the reason. */
static int lost;

void out_guard(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* The wrong way round, so that each use gives EBADF. */
		int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;

		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags) != fd)
			_exit(EXIT_IO);
	}
}

/* Call with errno set to 0 before the call that may have failed. */
static int note(void)
{
	if (!lost && ferror(stdout))
		lost = errno ? -errno : -EIO;
	return lost;
}

int out_put(const char *bytes, size_t len)
{
	errno = 0;
	fwrite(bytes, 1, len, stdout);
	return note();
}

int out_printf(const char *fmt, ...)
{
	va_list ap;

	errno = 0;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	return note();
}

int out_path(const char *path)
{
	struct verity_text t = { 0 };
	int err;

	verity_text_path(&t, path);
	err = t.err ? t.err : out_put(t.s ? t.s : "", t.len);
	verity_text_free(&t);
	return err;
}

int out_flush(void)
{
	errno = 0;
	fflush(stdout);
	return note();
}

int finish_stdout(int status)
{
	int err = out_flush();

	if (err && err != -EPIPE)
		say_errno(err, "standard output: cannot write");
	return err && status == EXIT_OK ? EXIT_IO : status;
}

int write_full(int fd, const void *bytes, size_t len)
{
	const char *s = bytes;

	while (len) {
		ssize_t n = write(fd, s, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		s += n;
		len -= (size_t)n;
	}
	return 0;
}

int json_print(struct verity_json *j)
{
	int err;

	verity_text_put(&j->out, "\n", 1);
	err = j->out.err;
	if (!err)
		err = out_put(j->out.s, j->out.len);
	verity_text_clear(&j->out);
	j->comma = false;
	return err;
}

int json_finish(struct verity_json *j)
{
	int err = json_print(j);

	verity_json_free(j);
	return err;
}
