/* SPDX-License-Identifier: MIT */
/* Checking the files of a sealed tree.  Layer: tools. */
#include "tools/check.h"

#include "merkle/beneath.h"
#include "merkle/json.h"
#include "tools/exits.h"
#include "tools/hashfile.h"
#include "tools/locate.h"
#include "tools/out.h"
#include "tools/progress.h"
#include "tools/say.h"
#include "tools/spread.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* From here on a file is checked in parts by all threads, after the others. */
#define LARGE ((uint64_t)8 << 20)

/* Files a worker takes at once. */
#define FEW 16

struct run {
	const struct sealed *s;
	const struct check_opts *o;
	const char *root;
	struct verdict *v; /* by entry; each written by one worker */
};

/* The digest of the data as it is now. */
static int digest_now(const struct check_entry *c, int fd,
		      struct verity_digest *got)
{
	struct hashfile h = { .params = c->s->m.head.params,
			      .fd = fd,
			      .size = c->e->size,
			      .blocks512 = UINT64_MAX,
			      .threads = c->threads };

	return hashfile_run(&h, got, NULL);
}

/* A file of at most one block: the manifest's digest is all there is. */
static void check_small(const struct check_entry *c, int fd, struct verdict *v)
{
	struct verity_finding f = { .len = c->e->size };
	struct verity_digest got, want;
	struct stat st;
	int err = digest_now(c, fd, &got);

	sealed_digest(c->s, c->e, &want);
	v->bytes += c->e->size;
	if (err == -ENODATA || err == -EIO) {
		check_line(v, c->json, c->path, &f,
			   err == -EIO ? "unreadable" : "missing");
	} else if (err && err != -EINTR) {
		say_errno(err, "%s: read", c->path);
		v->status = check_worse(v->status, EXIT_IO);
	} else if (!err && !verity_digest_equal(&got, &want)) {
		f.what.size = got.size;
		memcpy(f.what.want, want.bytes, want.size);
		memcpy(f.what.got, got.bytes, got.size);
		check_line(v, c->json, c->path, &f, NULL);
	}
	if (fstat(fd, &st) == 0 && (uint64_t)st.st_size > c->e->size) {
		f = (struct verity_finding){ .pos = c->e->size };
		f.len = (uint64_t)st.st_size - c->e->size;
		check_line(v, c->json, c->path, &f, "excess");
	}
}

/* The sidecar is gone or useless.  The manifest's digest still says whether
 * the data is good, and a person wants to know. */
static void check_bare(const struct check_entry *c, int fd, struct verdict *v)
{
	struct verity_digest got, want;
	int err = digest_now(c, fd, &got);

	sealed_digest(c->s, c->e, &want);
	v->bytes += c->e->size;
	v->status = EXIT_TRUST;
	if (err == -EINTR)
		return;
	if (!err && verity_digest_equal(&got, &want))
		say_error("%s: the data is good all the same (seal again)",
			  c->path);
	else
		say_error("%s: and the data is not what was sealed", c->path);
}

static void check_deep(const struct check_entry *c, int fd, struct verdict *v)
{
	struct verity_complaint why = { 0 };
	struct verity_meta meta;
	struct check_file f = { .path = c->path,
				.fd = fd,
				.meta = &meta,
				.threads = c->threads,
				.json = c->json };

	f.meta_fd = sealed_meta_open(c->s, c->e, &meta, &why);
	if (f.meta_fd < 0) {
		sealed_say_meta(c->path, f.meta_fd, &why);
		check_bare(c, fd, v);
		return;
	}
	if (meta.desc.data_size != c->e->size) {
		say_error("%s: the manifest gives its size as %" PRIu64
			  ", its digest as %" PRIu64,
			  c->path, c->e->size, meta.desc.data_size);
		v->status = EXIT_TRUST;
	} else {
		check_file_run(&f, v);
	}
	close(f.meta_fd);
}

void check_entry_run(const struct check_entry *c, struct verdict *v)
{
	struct verity_finding gone = { .len = c->e->size };
	int fd = verity_open_beneath(c->s->root, c->e->path, O_RDONLY);
	struct stat st;

	/* ENXIO: a socket, or a device that no driver has. */
	if (fd == -ENOENT || fd == -ELOOP || fd == -ENOTDIR || fd == -ENXIO) {
		check_line(v, c->json, c->path, &gone, "missing");
		return;
	}
	if (fd < 0 || fstat(fd, &st) < 0) {
		say_errno(fd < 0 ? fd : -errno, "%s: open", c->path);
		v->status = check_worse(v->status, EXIT_IO);
	} else if (!S_ISREG(st.st_mode)) {
		check_line(v, c->json, c->path, &gone, "missing");
	} else if (c->e->size <= c->s->m.head.params.block_size) {
		check_small(c, fd, v);
	} else {
		check_deep(c, fd, v);
	}
	if (fd >= 0)
		close(fd);
}

static int check_nth(struct run *r, size_t i, unsigned int threads)
{
	const struct verity_entry *e = &r->s->m.entry[i];
	struct check_entry c = {
		.s = r->s, .e = e, .json = r->o->json, .threads = threads
	};
	char *path;

	if (asprintf(&path, "%s/%s", r->root, e->path) < 0)
		return -ENOMEM;
	c.path = path;
	check_entry_run(&c, &r->v[i]);
	free(path);
	if (e->size <= r->s->m.head.params.block_size)
		progress_add(e->size);
	return spread_stopped() ? -EINTR : 0;
}

static bool is_large(const struct verity_entry *e)
{
	return e->kind == VERITY_FILE && e->size >= LARGE;
}

static int check_few(void *arg, unsigned int worker, uint64_t job)
{
	struct run *r = arg;
	int err = 0;

	(void)worker;
	for (size_t i = job * FEW, n = 0; n < FEW && i < r->s->m.count && !err;
	     i++, n++)
		if (r->s->m.entry[i].kind == VERITY_FILE &&
		    !is_large(&r->s->m.entry[i]))
			err = check_nth(r, i, 1);
	return err;
}

static int check_all(struct run *r)
{
	int err = spread_run(r->o->jobs, (r->s->m.count + FEW - 1) / FEW,
			     check_few, r);

	for (size_t i = 0; i < r->s->m.count && !err; i++)
		if (is_large(&r->s->m.entry[i]))
			err = check_nth(r, i, r->o->jobs);
	return err;
}

struct totals {
	uint64_t files, bytes, bad, bad_files;
	int status;
};

/* Print the findings in the manifest's order, and add up. */
static void gather(struct run *r, struct totals *t)
{
	for (size_t i = 0; i < r->s->m.count; i++) {
		struct verdict *v = &r->v[i];

		t->files += r->s->m.entry[i].kind == VERITY_FILE;
		t->bytes += v->bytes;
		t->bad += v->bad;
		t->bad_files += v->status != EXIT_OK;
		t->status = check_worse(t->status, v->status);
		if (v->lines.len)
			(void)out_put(v->lines.s, v->lines.len);
		if (v->lines.err)
			t->status = check_worse(t->status, EXIT_IO);
		verity_text_free(&v->lines);
	}
}

static int summary(const struct run *r, const struct totals *t)
{
	const char *trust = locate_trust(r->s->pinned);
	struct verity_json j = { 0 };
	char size[16];

	human_bytes(t->bytes, size);
	if (t->status == EXIT_OK)
		say_note("%s: %" PRIu64 " files, %s: all good; %s", r->root,
			 t->files, size, trust);
	else
		say_note("%s: %" PRIu64 " files, %s: %" PRIu64
			 " of them not good, bad blocks: %" PRIu64 "; %s",
			 r->root, t->files, size, t->bad_files, t->bad, trust);
	if (!r->o->json)
		return t->status;
	verity_json_object(&j, NULL);
	verity_json_string(&j, "path", r->root);
	verity_json_string(&j, "trust", r->s->pinned ? "pinned" : "self");
	verity_json_u64(&j, "files", t->files);
	verity_json_u64(&j, "bytes", t->bytes);
	verity_json_u64(&j, "bad_files", t->bad_files);
	verity_json_u64(&j, "bad_blocks", t->bad);
	verity_json_u64(&j, "status", (uint64_t)t->status);
	verity_json_end(&j, '}');
	return json_finish(&j) ? check_worse(t->status, EXIT_IO) : t->status;
}

static uint64_t bytes_listed(const struct sealed *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->m.count; i++)
		sum += s->m.entry[i].size;
	return sum;
}

static int run_all(struct run *r)
{
	struct totals t = { 0 };
	int err;

	r->v = calloc(r->s->m.count + 1, sizeof(*r->v));
	if (!r->v) {
		say_errno(-ENOMEM, "%s", r->root);
		return EXIT_IO;
	}
	progress_begin(r->root, bytes_listed(r->s), r->o->quiet);
	err = check_all(r);
	progress_end();
	if (sealed_expired(r->s))
		t.status = EXIT_TRUST;
	gather(r, &t);
	free(r->v);
	if (err == -EINTR) {
		say_error("%s: interrupted; not all was looked at", r->root);
		return 128 + spread_stopped();
	}
	if (err) {
		say_errno(err, "%s: check", r->root);
		t.status = check_worse(t.status, EXIT_IO);
	}
	return summary(r, &t);
}

int check_tree(const char *root, const char *meta, const struct check_opts *o)
{
	struct sealed s;
	struct run r = { .s = &s, .o = o, .root = root };
	int status = sealed_open(&s, root, meta,
				 o->at.pin.set ? &o->at.pin.digest : NULL);

	if (status == EXIT_OK)
		status = run_all(&r);
	sealed_close(&s);
	return status;
}
