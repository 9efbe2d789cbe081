/* SPDX-License-Identifier: MIT */
/* tools/say.c - messages for people, on standard error.  Layer: tools. */
#include "tools/say.h"

#include "tools/out.h"
#include "tools/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Set before threads start. */
static const char *say_command;
static bool say_quiet;

void say_init(const char *command, bool quiet)
{
	say_command = command;
	say_quiet = quiet;
}

/* The errors whose own words would not tell a user what is the matter. */
static const char *meaning(int err)
{
	switch (err) {
	case ENODATA:
		return "bytes are missing (did the file become shorter?)";
	case EBADMSG:
		return "failed verification";
	case EINTR:
		return "interrupted";
	case ENOTTY:
		return "this file system has no fs-verity";
	case EOPNOTSUPP:
		return "not supported by this file system, or switched off "
		       "there";
	case ENOPKG:
		return "libcrypto has no such algorithm";
	case EFBIG:
		return "too large";
	case ELOOP:
		return "a symbolic link where none is followed, or too many";
	default:
		return strerror(err);
	}
}

void text_visible(struct verity_text *out, const char *s)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '\n')
			verity_text_put(out, "\\n", 2);
		else if (c < 0x20 || c == 0x7f)
			verity_text_printf(out, "\\x%02x", c);
		else
			verity_text_put(out, s, 1);
	}
}

static void SAY_FMT(2, 0) emit(int err, const char *fmt, va_list ap)
{
	static const char none[] = "verityctl: out of memory\n";
	struct verity_text line = { 0 };
	char text[8192];

	vsnprintf(text, sizeof(text), fmt, ap);
	verity_text_printf(&line, "verityctl: ");
	if (say_command)
		verity_text_printf(&line, "%s: ", say_command);
	text_visible(&line, text);
	if (err)
		verity_text_printf(&line, ": %s", meaning(err));
	verity_text_put(&line, "\n", 1);
	progress_hide();
	/* There is nowhere left to tell that this failed. */
	(void)write_full(STDERR_FILENO, line.err ? none : line.s,
			 line.err ? sizeof(none) - 1 : line.len);
	verity_text_free(&line);
}

void say_error(const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	va_start(ap, fmt);
	emit(0, fmt, ap);
	va_end(ap);
	errno = saved;
}

int say_errno(int err, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	va_start(ap, fmt);
	emit(-err, fmt, ap);
	va_end(ap);
	errno = saved;
	return err;
}

void say_note(const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	if (say_quiet)
		return;
	va_start(ap, fmt);
	emit(0, fmt, ap);
	va_end(ap);
	errno = saved;
}

void say_complaint(const char *file, const struct verity_complaint *why)
{
	say_error("%s: %s is %" PRIu64 ", %s %" PRIu64, file, why->field,
		  why->value, why->rule, why->limit);
}
