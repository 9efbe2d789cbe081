/* SPDX-License-Identifier: MIT */
/* Checking one file and its stored tree.  Layer: tools. */
#include "tools/check.h"

#include "merkle/json.h"
#include "tools/exits.h"
#include "tools/hashfile.h"
#include "tools/out.h"
#include "tools/progress.h"
#include "tools/say.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Bytes of findings that are held back where they may go out at once. */
#define STREAM 65536U

/* Bytes of the stored tree compared at once. */
#define COMPARE 65536U

/* I: set before threads start.  A: atomic; a part's flag is set by whoever
 * finds a difference and read after the threads are joined. */
struct check {
	const struct check_file *f; /* I */
	struct verity_tree tree;    /* I */
	struct verity_split split;  /* I */
	uint8_t *digests;           /* of each part, as built */
	atomic_uchar *differs;      /* A: by part */
	atomic_uchar above;         /* A: the levels above the parts differ */
	struct verdict *v;
};

int check_worse(int a, int b)
{
	static const int order[] = { EXIT_TRUST, EXIT_BAD, EXIT_IO };

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		if (a == order[i] || b == order[i])
			return order[i];
	return a ? a : b;
}

static const char *kind_name(enum verity_damage kind)
{
	static const char *const name[] = {
		[VERITY_BAD_DATA] = "data",
		[VERITY_BAD_TREE] = "tree",
		[VERITY_UNPROVEN] = "unproven",
		[VERITY_MISSING] = "missing",
		[VERITY_UNREADABLE] = "unreadable",
	};

	return name[kind];
}

static void json_finding(struct verdict *v, const char *path,
			 const struct verity_finding *f, const char *kind)
{
	struct verity_json j = { 0 };

	verity_json_object(&j, NULL);
	verity_json_string(&j, "path", path);
	verity_json_u64(&j, "offset", f->pos);
	verity_json_u64(&j, "length", f->len);
	verity_json_u64(&j, "level", f->level);
	verity_json_string(&j, "kind", kind);
	if (f->what.size) {
		verity_json_hex(&j, "want", f->what.want, f->what.size);
		verity_json_hex(&j, "got", f->what.got, f->what.size);
	}
	verity_json_end(&j, '}');
	if (j.out.err)
		v->lines.err = j.out.err;
	else
		verity_text_put(&v->lines, j.out.s, j.out.len);
	verity_json_free(&j);
}

void check_line(struct verdict *v, bool json, const char *path,
		const struct verity_finding *f, const char *kind)
{
	kind = kind ? kind : kind_name(f->kind);
	v->bad++;
	v->status = check_worse(v->status, EXIT_BAD);
	if (json) {
		json_finding(v, path, f, kind);
	} else {
		verity_text_path(&v->lines, path);
		verity_text_printf(&v->lines, " %" PRIu64 " %" PRIu64 " %u %s",
				   f->pos, f->len, f->level, kind);
	}
	verity_text_put(&v->lines, "\n", 1);
	if (v->stream && v->lines.len >= STREAM && !v->lines.err) {
		(void)out_put(v->lines.s, v->lines.len); /* kept by out.c */
		verity_text_clear(&v->lines);
	}
}

static void mark(struct check *c, unsigned int level, uint64_t index)
{
	unsigned int up = c->split.level - level;

	if (level > c->split.level)
		atomic_store(&c->above, 1);
	else
		atomic_store(&c->differs[index >> (up * c->tree.geom.arity_lg)],
			     1);
}

/* Compare built hash blocks with the stored ones, a few at a time. */
static int compare_blocks(void *arg, unsigned int level, uint64_t index,
			  size_t count, const void *blocks)
{
	struct check *c = arg;
	const struct verity_geom *g = &c->tree.geom;
	const uint8_t *built = blocks;
	uint8_t stored[COMPARE];
	size_t run;

	for (; count; count -= run, index += run) {
		size_t len;
		ssize_t n;

		run = COMPARE >> g->block_lg < count ? COMPARE >> g->block_lg
						     : count;
		len = run << g->block_lg;
		n = verity_pread_full(c->f->meta_fd, stored, len,
				      c->f->meta->tree_pos +
					      geom_offset(g, level, index));
		if (n != (ssize_t)len || memcmp(stored, built, len) != 0)
			for (size_t i = 0; i < run; i++)
				mark(c, level, index + i);
		built += len;
	}
	return 0;
}

static int read_data(void *arg, uint64_t index, size_t n, uint8_t *buf)
{
	const struct check *c = arg;
	const struct verity_geom *g = &c->tree.geom;
	uint64_t pos = index << g->block_lg, left = g->data_size - pos;
	size_t len = n << g->block_lg;
	size_t want = left < len ? (size_t)left : len;
	ssize_t got = verity_pread_full(c->f->fd, buf, want, pos);

	if (got < 0)
		return (int)got;
	memset(buf + got, 0, len - (size_t)got);
	return (size_t)got < want ? -ENODATA : 0;
}

static int read_tree(void *arg, unsigned int level, uint64_t index,
		     uint8_t *buf)
{
	const struct check *c = arg;
	const struct verity_geom *g = &c->tree.geom;
	ssize_t got = verity_pread_full(c->f->meta_fd, buf, g->block_size,
					c->f->meta->tree_pos +
						geom_offset(g, level, index));

	if (got < 0)
		return (int)got;
	return (size_t)got < g->block_size ? -ENODATA : 0;
}

/* A part is stepped over when what was built from its data is the trusted
 * digest itself, and no stored block below it was another.  That the stored
 * blocks were equal would not do: who answers the reads may answer otherwise
 * the second time. */
static int is_known(void *arg, unsigned int level, uint64_t index,
		    const uint8_t *want)
{
	const struct check *c = arg;
	size_t ds = c->tree.geom.digest_size;

	return level == c->split.level && !atomic_load(&c->differs[index]) &&
	       memcmp(c->digests + index * ds, want, ds) == 0;
}

/* A hash block is reported where it lies in the sidecar. */
static int found(void *arg, const struct verity_finding *f)
{
	struct check *c = arg;
	struct verity_finding moved = *f;

	if (f->level)
		moved.pos += c->f->meta->tree_pos;
	check_line(c->v, c->f->json, c->f->path, &moved, NULL);
	return c->v->lines.err;
}

static int audit(struct check *c, bool compared)
{
	struct verity_audit a = { .data = read_data,
				  .tree = read_tree,
				  .known = compared ? is_known : NULL,
				  .found = found,
				  .arg = c };

	return verity_audit_run(&c->tree, &a);
}

static int any_difference(const struct check *c)
{
	for (uint64_t i = 0; i < c->split.parts; i++)
		if (atomic_load(&c->differs[i]))
			return 1;
	return atomic_load(&c->above);
}

static int build_again(struct check *c, struct verity_digest *digest)
{
	struct hashfile h = { .params = c->f->meta->desc.params,
			      .fd = c->f->fd,
			      .size = c->tree.geom.data_size,
			      .threads = c->f->threads,
			      .emit = compare_blocks,
			      .emit_arg = c,
			      .digests = c->digests };
	struct stat st;

	if (fstat(c->f->fd, &st) < 0)
		return -errno;
	h.blocks512 = (uint64_t)st.st_blocks;
	return hashfile_run(&h, digest, NULL);
}

/* Bytes beyond what was sealed: no reader gets them, but they are news. */
static int check_growth(struct check *c)
{
	struct verity_finding f = { .pos = c->tree.geom.data_size };
	struct stat st;

	if (fstat(c->f->fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size > f.pos) {
		f.len = (uint64_t)st.st_size - f.pos;
		check_line(c->v, c->f->json, c->f->path, &f, "excess");
	}
	return 0;
}

static int check_parts(struct check *c)
{
	struct verity_digest digest;
	uint64_t before = c->v->bad;
	int err = build_again(c, &digest);
	bool compared = !err;

	if (err == -EINTR || err == -ENOMEM)
		return err;
	if (compared && !any_difference(c) &&
	    verity_digest_equal(&digest, &c->f->meta->digest))
		return check_growth(c);
	progress_stage("looking for the bad blocks");
	err = audit(c, compared);
	/* What was read first was not good, and now nothing is wrong: someone
	 * writes here, or the storage says this and that. */
	if (!err && c->v->bad == before)
		err = -ESTALE;
	return err ? err : check_growth(c);
}

static void say_stopped(const struct check_file *f, int err)
{
	if (err == -ESTALE)
		say_error("%s: changed while it was checked", f->path);
	else
		say_errno(err, "%s: check", f->path);
}

void check_file_run(const struct check_file *f, struct verdict *v)
{
	struct check c = { .f = f, .v = v };
	int err = verity_tree_init(&c.tree, &f->meta->desc);

	if (!err) {
		hashfile_split(&c.split, &c.tree.geom);
		c.differs = calloc(c.split.parts + 1, sizeof(*c.differs));
		c.digests = malloc(c.split.parts * c.tree.geom.digest_size + 1);
		err = c.differs && c.digests ? check_parts(&c) : -ENOMEM;
	}
	v->bytes += f->meta->desc.data_size;
	if (err && err != -EINTR) {
		say_stopped(f, err);
		v->status = check_worse(v->status, EXIT_IO);
	}
	free(c.digests);
	free(c.differs);
	verity_tree_fini(&c.tree);
}
