/* SPDX-License-Identifier: MIT */
/*
 * tools/progress.h - how far a long command is.  Layer: tools.
 *
 * One line on standard error, only when that is a terminal and --quiet was
 * not given: bytes done and in all, rate, time left; then named stages for
 * what comes after the last byte, so that nobody thinks it hangs at 100 %.
 * Counted in bytes, not files.  No colour; nothing on a dumb terminal.
 */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/** progress_begin() - @total bytes are to come; 0: not known */
void progress_begin(const char *what, uint64_t total, bool quiet);

/** progress_total() - more is known now; any thread */
void progress_total(uint64_t total);

/** progress_add() - @bytes more are done; any thread, cheap, no lock */
void progress_add(uint64_t bytes);

/** progress_stage() - show a named stage instead: "syncing" */
void progress_stage(const char *name);

/** progress_hide() - take the line away for a message; it comes back */
void progress_hide(void);

/** progress_end() - take the line away for good */
void progress_end(void);

/** human_bytes() - "1.5 MiB" into @buf of 16 bytes; Return: @buf */
char *human_bytes(uint64_t bytes, char *buf);

#endif /* TOOLS_PROGRESS_H */
