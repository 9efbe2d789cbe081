/* SPDX-License-Identifier: MIT */
/*
 * t/tap.h - what a test written in C says to prove(1).
 *
 * plan() comes first with the number of checks to follow, so that a program
 * that leaves early fails; done() comes last and gives main()'s status.  A
 * check is named by the rule that holds, printf-style.  Checks may be made
 * from one thread at a time.
 */
#ifndef T_TAP_H
#define T_TAP_H

#include <stdbool.h>
#include <stddef.h>

#define TAP_NAME(fmt, args) __attribute__((format(printf, fmt, args)))

void plan(unsigned int checks);

/* Each gives the check's verdict, so that what builds on it can be left out,
 * and prints what it got and wanted when the two differ. */
bool ok(bool holds, const char *name, ...) TAP_NAME(2, 3);
bool is_int(long long got, long long want, const char *name, ...)
	TAP_NAME(3, 4);
bool is_uint(unsigned long long got, unsigned long long want, const char *name,
	     ...) TAP_NAME(3, 4);
/** is_str() - NULL is a value of its own and equals only NULL */
bool is_str(const char *got, const char *want, const char *name, ...)
	TAP_NAME(3, 4);
bool is_mem(const void *got, const void *want, size_t len, const char *name,
	    ...) TAP_NAME(4, 5);

/** skip() - @checks of the plan cannot be made here */
void skip(unsigned int checks, const char *why, ...) TAP_NAME(2, 3);
/** skip_all() - no check can be made here; instead of plan() */
void skip_all(const char *why, ...) TAP_NAME(1, 2) __attribute__((noreturn));
/** bail() - nothing that follows makes sense, in other tests neither */
void bail(const char *why, ...) TAP_NAME(1, 2) __attribute__((noreturn));
/** diag() - a line for the person who reads a failure */
void diag(const char *fmt, ...) TAP_NAME(1, 2);

/** done() - Return: 0 when as many checks as planned were made and all held */
int done(void);

#endif /* T_TAP_H */
