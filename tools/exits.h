/* SPDX-License-Identifier: MIT */
/* tools/exits.h - exit statuses of verityctl; verityctl(1) explains them. */
#ifndef TOOLS_EXITS_H
#define TOOLS_EXITS_H

enum {
	EXIT_OK = 0,
	EXIT_BAD = 1, /* data or tree failed verification */
	EXIT_USAGE = 2,
	EXIT_TRUST = 3,        /* not the trusted descriptor or manifest */
	EXIT_IO = 4,           /* I/O, malformed or missing metadata */
	EXIT_BUSY = 6,         /* someone else is at it */
	EXIT_INTERRUPTED = 130 /* SIGINT; SIGTERM gives 143 */
};

#endif /* TOOLS_EXITS_H */
