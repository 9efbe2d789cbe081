/* SPDX-License-Identifier: MIT */
/*
 * tools/check.h - private to verityctl check: what is asked and what is found.
 *
 * Layer: tools.  A file is first built again and its hash blocks compared
 * with the stored ones, at the speed of a build.  Only where that shows a
 * difference does an audit from the root down say which blocks are bad.
 */
#ifndef TOOLS_CHECK_H
#define TOOLS_CHECK_H

#include "merkle/audit.h"
#include "merkle/meta.h"
#include "tools/locate.h"
#include "tools/opts.h"
#include "tools/sealed.h"

struct check_opts {
	struct locate_opts at;
	bool json, quiet;
	unsigned int jobs;
};

/** What one file's check came to.  Begin with a zeroed struct. */
struct verdict {
	bool stream; /* findings may be printed from check_line() */
	struct verity_text lines; /* one finding a line, as it is printed */
	uint64_t bad;             /* findings */
	uint64_t bytes;           /* looked at */
	int status;               /* an exit status */
};

/** One file with its sidecar. */
struct check_file {
	const char *path; /* for messages and lines */
	int fd, meta_fd;  /* the caller's */
	const struct verity_meta *meta;
	unsigned int threads;
	bool json;
};

/** check_file_run() - check data and tree; adds to @v */
void check_file_run(const struct check_file *f, struct verdict *v);

/** check_line() - add one finding; @kind: its name, or NULL for that of
 * f->kind */
void check_line(struct verdict *v, bool json, const char *path,
		const struct verity_finding *f, const char *kind);

/** check_worse() - Return: the exit status that counts of two: trust before
 * bad blocks before I/O */
int check_worse(int a, int b);

/** check_tree() - all files of a sealed tree; Return: an exit status */
int check_tree(const char *root, const char *meta, const struct check_opts *o);

/** One file of an open sealed tree. */
struct check_entry {
	const struct sealed *s;
	const struct verity_entry *e;
	const char *path; /* for messages and lines */
	bool json;
	unsigned int threads;
};

/** check_entry_run() - check data and tree; adds to @v */
void check_entry_run(const struct check_entry *c, struct verdict *v);

#endif /* TOOLS_CHECK_H */
