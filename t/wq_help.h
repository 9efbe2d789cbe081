/* SPDX-License-Identifier: MIT */
/*
 * t/wq_help.h - what tests of wq share.
 */
#ifndef T_WQ_HELP_H
#define T_WQ_HELP_H

#include "wq/wq.h"

/** wq_help_scale() - @n, or less where a sanitizer or an emulator is slow */
unsigned int wq_help_scale(unsigned int n);

/** wq_help_emulated() - Return: true under an emulator: no timing, no perf */
bool wq_help_emulated(void);

/**
 * wq_help_open() - pools and one workqueue, or bail()
 * @config: changed to the defaults of tests: lines said are kept for
 *	wq_help_said(), the hand-off is not measured; NULL for all defaults
 */
struct wq_pools *wq_help_open(struct wq_config *config, const char *mode,
			      const struct wq_attrs *attrs, struct wq **wq);
void wq_help_close(struct wq_pools *pools, struct wq *wq);

/** wq_help_said() - has a line with @words been said since wq_help_open()? */
bool wq_help_said(const char *words);
/** wq_help_lines() - how many lines with @words */
unsigned int wq_help_lines(const char *words);

/** wq_help_mode() - or bail() */
struct wq_mode wq_help_mode(const char *name);

/** wq_help_sleep() - milliseconds */
void wq_help_sleep(unsigned int ms);

/** wq_help_until() - wait until *@counter is at least @n; false after 20 s
 * (longer where all is slow) */
bool wq_help_until(_Atomic unsigned int *counter, unsigned int n);

/** struct wq_hold - an item that holds its worker until it is let go */
struct wq_hold {
	struct wq_work work; /* first */
	_Atomic unsigned int held;
	_Atomic unsigned int go;
	bool blocking; /* says so with wq_blocking_begin() */
};

void wq_help_hold(struct wq_hold *hold, bool blocking);
void wq_help_let_go(struct wq_hold *hold);

/** wq_help_cpu() - the number of the pools' last CPU, of 2 or more */
int wq_help_cpu(struct wq_pools *pools, size_t index);

#endif /* T_WQ_HELP_H */
