/* SPDX-License-Identifier: MIT */
/* tools/out.h - standard output, none of it lost unnoticed.  Layer: tools. */
#ifndef TOOLS_OUT_H
#define TOOLS_OUT_H

#include "merkle/json.h"

#include <stddef.h>

/**
 * out_guard() - make use of a standard stream that was closed an error
 *
 * Otherwise the next file opened would get its number, and a message or a
 * digest would be written into it.  Call first of all.
 */
void out_guard(void);

/* Buffered output; printf(3) in its place forgets why it failed.  One thread
 * at a time.  Each Return: 0, or the first error so far, a negative errno. */
int out_put(const char *bytes, size_t len);
int out_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int out_path(const char *path); /* spelt as in a manifest: on one line */
int out_flush(void);

/**
 * json_print() - write the text and a newline to standard output in one
 * piece, and begin anew
 *
 * Return: 0, -ENOMEM, or what the write gave.
 */
VERITY_MUST_CHECK int json_print(struct verity_json *j);

/** json_finish() - print it and free its memory; Return: as json_print() */
VERITY_MUST_CHECK int json_finish(struct verity_json *j);

/**
 * finish_stdout() - flush, and say what was lost; the last thing a command does
 *
 * A reader that went away is nobody's fault and told by the status only.
 *
 * Return: @status, but EXIT_IO instead of EXIT_OK when any output was lost.
 */
int finish_stdout(int status);

/** write_full() - write(2) until all is written; Return: 0, or an errno */
int write_full(int fd, const void *bytes, size_t len);

#endif /* TOOLS_OUT_H */
