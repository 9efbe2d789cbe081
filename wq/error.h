/* SPDX-License-Identifier: MIT */
/*
 * wq/error.h - why a call failed, in words.
 *
 * The negative errno is for the program; the text is for the person: what was
 * asked, and what is possible here.
 */
#ifndef WQ_ERROR_H
#define WQ_ERROR_H

/** struct wq_error - one line without a newline; "" when nothing was said */
struct wq_error {
	char text[256];
};

/**
 * wq_fail() - write the line and hand on the errno
 * @err: may be NULL
 * @code: a positive errno
 *
 * Return: -@code.
 */
int wq_fail(struct wq_error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* WQ_ERROR_H */
