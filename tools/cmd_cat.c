/* SPDX-License-Identifier: MIT */
/* tools/cmd_cat.c - verityctl cat: print verified bytes, and no others.
 * Layer: tools. */
#include "merkle/beneath.h"
#include "merkle/file.h"
#include "merkle/hex.h"
#include "tools/commands.h"
#include "tools/exits.h"
#include "tools/input.h"
#include "tools/locate.h"
#include "tools/out.h"
#include "tools/say.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Bytes read, checked and written at once. */
#define CHUNK ((size_t)1 << 20)

struct cat_opts {
	struct byte_range range;
	struct locate_opts at;
	bool quiet;
};

#define FIELD(name) offsetof(struct cat_opts, name)
static const struct opt options[] = {
	{ "range", "A-B", "bytes A to B, counted from 0; A- or -N as in HTTP",
	  opt_range, FIELD(range) },
	{ "pin", "sha256:HEX", "the file's digest, or the manifest's pin",
	  opt_digest, FIELD(at.pin) },
	{ "digest", "ALG:HEX", "the file's digest", opt_digest,
	  FIELD(at.digest) },
	{ "meta", "DIR", "where the metadata is, as given to seal", opt_string,
	  FIELD(at.meta) },
	{ "root", "DIR", "the sealed tree that the file is of", opt_string,
	  FIELD(at.root) },
	{ "quiet", NULL, "leave out notes", opt_flag, FIELD(quiet) },
	{ NULL, NULL, NULL, NULL, 0 },
};

/* A sidecar of something else: say of what. */
static int not_trusted(const char *path, const char *meta,
		       const struct verity_digest *want)
{
	char wanted[VERITY_DIGEST_TEXT], has[VERITY_DIGEST_TEXT];
	struct verity_complaint why;
	struct verity_meta m;
	int fd = open(meta, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int err = fd < 0 ? -errno : verity_meta_read(fd, NULL, &m, &why);

	if (fd >= 0)
		close(fd);
	verity_digest_format(want, wanted);
	snprintf(has, sizeof(has), "nothing well-formed");
	if (!err)
		verity_digest_format(&m.digest, has);
	say_error("%s: not the trusted file: wanted %s, %s is of %s", path,
		  wanted, meta, has);
	return EXIT_TRUST;
}

static int open_failed(int err, const char *path, const char *meta,
		       const struct verity_digest *want,
		       const struct verity_complaint *why)
{
	if (err == -EBADMSG)
		return not_trusted(path, meta, want);
	if (why->field)
		say_complaint(meta, why);
	else
		say_errno(err, "%s: cannot open it or %s", path, meta);
	return EXIT_IO;
}

/* A file with a sidecar of its own. */
static int open_beside(const struct cat_opts *o, const char *path,
		       const char *meta, struct verity_file **out)
{
	const struct verity_digest *want = locate_digest(&o->at);
	struct verity_complaint why = { 0 };
	int err;

	err = verity_file_open(path, meta, want, out, &why);
	return err ? open_failed(err, path, meta, want, &why) : EXIT_OK;
}

/* A file of at most one block is its own metadata. */
static int adopt_block(const struct located *at, const char *path, int fd,
		       struct verity_file **out)
{
	struct verity_digest want;
	int err;

	sealed_digest(&at->s, at->e, &want);
	err = verity_file_adopt_block(fd, &at->s.m.head.params, at->e->size,
				      &want, out);
	if (!err)
		return EXIT_OK;
	if (err == -EBADMSG) {
		say_error("%s: offset 0, length %" PRIu64 ": failed "
			  "verification: its one block is not of the "
			  "manifest's digest",
			  path, at->e->size);
		return EXIT_BAD;
	}
	say_errno(err, "%s: cannot read", path);
	return EXIT_IO;
}

static int adopt_deep(const struct located *at, const char *path, int fd,
		      struct verity_file **out)
{
	struct verity_complaint why = { 0 };
	struct verity_meta meta;
	int meta_fd = sealed_meta_open(&at->s, at->e, &meta, &why), err;

	if (meta_fd < 0) {
		sealed_say_meta(path, meta_fd, &why);
		close(fd);
		return EXIT_TRUST;
	}
	if (meta.desc.data_size != at->e->size) {
		say_error("%s: the manifest gives its size as %" PRIu64
			  ", its digest as %" PRIu64,
			  path, at->e->size, meta.desc.data_size);
		close(meta_fd);
		close(fd);
		return EXIT_TRUST;
	}
	err = verity_file_adopt(fd, meta_fd, &meta, out);
	if (err)
		say_errno(err, "%s: cannot open", path);
	return err ? EXIT_IO : EXIT_OK;
}

/* A file of a sealed tree. */
static int open_inside(const struct located *at, const char *path,
		       struct verity_file **out)
{
	int fd = verity_open_beneath(at->s.root, at->e->path, O_RDONLY);

	if (fd < 0) {
		say_errno(fd, "%s: cannot open", path);
		return EXIT_IO;
	}
	if (at->e->size <= at->s.m.head.params.block_size)
		return adopt_block(at, path, fd, out);
	return adopt_deep(at, path, fd, out);
}

/* All that decides what is trusted is in here.  Return: an exit status. */
static int open_trusted(const struct cat_opts *o, const char *path,
			struct verity_file **out)
{
	struct located at;
	struct stat st;
	int fd, status;

	/* The library's one error number would not tell a directory from a
	 * FIFO. */
	fd = input_open(path, &st);
	if (fd < 0)
		return EXIT_IO;
	close(fd);
	status = locate(path, &o->at, &at);
	if (status == EXIT_OK)
		status = at.meta_path ? open_beside(o, path, at.meta_path, out)
				      : open_inside(&at, path, out);
	if (status == EXIT_OK && !at.pinned)
		say_note("%s: %s", path, locate_trust(false));
	located_free(&at);
	return status;
}

/* Return: an exit status; [*first, *end) is what to print. */
static int resolve_range(const struct byte_range *r, const char *path,
			 uint64_t size, uint64_t *first, uint64_t *end)
{
	*first = 0;
	*end = size;
	if (!r->set)
		return EXIT_OK;
	if (r->suffix)
		*first = r->first < size ? size - r->first : 0;
	else
		*first = r->first;
	if (*first >= size) {
		say_error("%s: --range begins at or after the end, the size "
			  "is %" PRIu64,
			  path, size);
		return EXIT_USAGE;
	}
	if (!r->suffix && r->last < size - 1)
		*end = r->last + 1;
	return EXIT_OK;
}

/* The first bad block: what the file and the tree say of it. */
static int say_bad(const char *path, const struct verity_file *f,
		   const struct verity_mismatch *bad)
{
	char want[2 * VERITY_MAX_DIGEST + 1], got[2 * VERITY_MAX_DIGEST + 1];
	struct verity_params p;
	uint64_t len, left = verity_file_size(f) - bad->pos;

	verity_file_params(f, &p);
	len = left < p.block_size ? left : p.block_size;
	if (!bad->size) {
		say_error("%s: offset %" PRIu64 ", length %" PRIu64
			  ": bytes are missing at level %u",
			  path, bad->pos, len, bad->level);
		return EXIT_BAD;
	}
	hex_encode(bad->want, bad->size, want);
	hex_encode(bad->got, bad->size, got);
	say_error("%s: offset %" PRIu64 ", length %" PRIu64
		  ": failed verification at level %u (%s block %" PRIu64
		  "): wanted %s, got %s",
		  path, bad->pos, len, bad->level, bad->level ? "hash" : "data",
		  bad->index, want, got);
	return EXIT_BAD;
}

static int print(struct verity_file *f, const char *path, uint64_t pos,
		 uint64_t end)
{
	char *buf = malloc(CHUNK);
	struct verity_mismatch bad;
	ssize_t n = buf ? 0 : -ENOMEM;

	while (pos < end && n >= 0) {
		size_t len = end - pos < CHUNK ? (size_t)(end - pos) : CHUNK;

		n = verity_file_read(f, buf, len, pos, &bad);
		if (n == 0) /* before the end of a size that is fixed */
			n = -EIO;
		if (n > 0 && out_put(buf, (size_t)n)) {
			free(buf);
			return EXIT_IO; /* finish_stdout() says it */
		}
		pos += n > 0 ? (uint64_t)n : 0;
	}
	free(buf);
	if (n == -EBADMSG)
		return say_bad(path, f, &bad);
	if (n < 0)
		say_errno((int)n, "%s: cannot read", path);
	return n < 0 ? EXIT_IO : EXIT_OK;
}

static int run(const void *opts, char **operands, int count)
{
	const struct cat_opts *o = opts;
	const char *path = operands[0];
	struct verity_file *f = NULL;
	uint64_t first, end;
	int status;

	(void)count; /* one */
	say_init("cat", o->quiet);
	status = open_trusted(o, path, &f);
	if (status == EXIT_OK)
		status = resolve_range(&o->range, path, verity_file_size(f),
				       &first, &end);
	if (status == EXIT_OK)
		status = print(f, path, first, end);
	verity_file_close(f);
	return status;
}

const struct command cmd_cat = {
	.name = "cat",
	.operands = "FILE",
	.summary = "print a file, verified bytes only",
	.opts = options,
	.opts_size = sizeof(struct cat_opts),
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
