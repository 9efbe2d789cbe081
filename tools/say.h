/* SPDX-License-Identifier: MIT */
/*
 * tools/say.h - messages for people, on standard error.  Layer: tools.
 *
 * One line a message, "verityctl: COMMAND: TEXT", written in one piece so
 * that threads do not mix theirs, above the progress line where there is one.
 * Every function keeps errno.
 */
#ifndef TOOLS_SAY_H
#define TOOLS_SAY_H

#include "merkle/text.h"

#include <stdbool.h>

#define SAY_FMT(f, a) __attribute__((format(printf, f, a)))

/** say_init() - the command's name, and whether notes are left out */
void say_init(const char *command, bool quiet);

/** say_error() - what failed, on what, why, and a hint where there is one */
void say_error(const char *fmt, ...) SAY_FMT(1, 2);

/**
 * say_errno() - a failed call: TEXT, a colon, and the error's meaning
 * @err: a negative errno
 *
 * Return: @err, so that a caller may write: return say_errno(err, "...");
 */
int say_errno(int err, const char *fmt, ...) SAY_FMT(2, 3);

/** say_note() - something worth knowing; left out with --quiet */
void say_note(const char *fmt, ...) SAY_FMT(1, 2);

/**
 * say_complaint() - "FILE: FIELD is VALUE, RULE LIMIT", for a value refused
 */
void say_complaint(const char *file, const struct verity_complaint *why);

/** text_visible() - add @s with control characters escaped: a file's name may
 * hold anything, but not end the line or speak to the terminal */
void text_visible(struct verity_text *out, const char *s);

#endif /* TOOLS_SAY_H */
