/* SPDX-License-Identifier: MIT */
/* TAP for tests written in C. */
#include "t/tap.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The end of a line: the words of a variadic caller.  Flushed, so that a
 * crash cannot take the last results with it. */
#define SAY(start, fmt)                                                        \
	do {                                                                   \
		va_list ap_;                                                   \
		va_start(ap_, fmt);                                            \
		end_line(start, fmt, ap_);                                     \
		va_end(ap_);                                                   \
	} while (0)

static unsigned int planned, made, failed;

__attribute__((format(printf, 2, 0))) static void
end_line(const char *start, const char *fmt, va_list ap)
{
	fputs(start, stdout);
	vprintf(fmt, ap);
	putchar('\n');
	fflush(stdout);
}

/* Return: @holds.  The name is still to follow. */
static bool begin_check(bool holds)
{
	if (!holds)
		failed++;
	printf("%s %u - ", holds ? "ok" : "not ok", ++made);
	return holds;
}

void plan(unsigned int checks)
{
	planned = checks;
	printf("1..%u\n", checks);
	fflush(stdout);
}

bool ok(bool holds, const char *name, ...)
{
	begin_check(holds);
	SAY("", name);
	return holds;
}

bool is_int(long long got, long long want, const char *name, ...)
{
	bool same = begin_check(got == want);

	SAY("", name);
	if (!same)
		diag("got %lld, want %lld", got, want);
	return same;
}

bool is_uint(unsigned long long got, unsigned long long want, const char *name,
	     ...)
{
	bool same = begin_check(got == want);

	SAY("", name);
	if (!same)
		diag("got %llu (%#llx), want %llu (%#llx)", got, got, want,
		     want);
	return same;
}

bool is_str(const char *got, const char *want, const char *name, ...)
{
	bool same = got && want ? strcmp(got, want) == 0 : got == want;

	begin_check(same);
	SAY("", name);
	if (!same) {
		diag("got  %s", got ? got : "(NULL)");
		diag("want %s", want ? want : "(NULL)");
	}
	return same;
}

bool is_mem(const void *got, const void *want, size_t len, const char *name,
	    ...)
{
	const unsigned char *g = got, *w = want;
	size_t at = 0;

	while (at < len && g[at] == w[at])
		at++;
	begin_check(at == len);
	SAY("", name);
	if (at < len)
		diag("byte %zu of %zu: got %02x, want %02x", at, len, g[at],
		     w[at]);
	return at == len;
}

void skip(unsigned int checks, const char *why, ...)
{
	while (checks--) {
		printf("ok %u ", ++made);
		SAY("# SKIP ", why);
	}
}

void skip_all(const char *why, ...)
{
	SAY("1..0 # SKIP ", why);
	exit(EXIT_SUCCESS);
}

void bail(const char *why, ...)
{
	SAY("Bail out! ", why);
	exit(255);
}

void diag(const char *fmt, ...)
{
	SAY("# ", fmt);
}

int done(void)
{
	if (made != planned)
		diag("%u checks were planned, %u made", planned, made);
	return failed || made != planned;
}
