/* SPDX-License-Identifier: MIT */
#include "wq/error.h"

#include <stdarg.h>
#include <stdio.h>

int wq_fail(struct wq_error *err, int code, const char *fmt, ...)
{
	va_list args;

	if (err) {
		va_start(args, fmt);
		vsnprintf(err->text, sizeof(err->text), fmt, args);
		va_end(args);
	}
	return -code;
}
