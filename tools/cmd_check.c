/* SPDX-License-Identifier: MIT */
/* verityctl check.  Layer: tools. */
#include "merkle/json.h"
#include "tools/check.h"
#include "tools/commands.h"
#include "tools/exits.h"
#include "tools/out.h"
#include "tools/progress.h"
#include "tools/say.h"
#include "tools/spread.h"
#include "tools/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define AT(field) offsetof(struct check_opts, field)

static const struct opt check_options[] = {
	{ "pin", "sha256:HEX", "the file's digest, or the manifest's pin",
	  opt_digest, AT(at.pin) },
	{ "digest", "ALG:HEX", "the file's digest", opt_digest, AT(at.digest) },
	{ "meta", "DIR", "where the metadata is, as given to seal", opt_string,
	  AT(at.meta) },
	{ "root", "DIR", "the sealed tree that a FILE or MANIFEST is of",
	  opt_string, AT(at.root) },
	{ "jobs", "N", "threads; one for each CPU", opt_jobs, AT(jobs) },
	{ "json", NULL, "findings and a summary as JSON, an object a line",
	  opt_flag, AT(json) },
	{ "quiet", NULL, "no notes, no progress", opt_flag, AT(quiet) },
	{ NULL, NULL, NULL, NULL, 0 },
};

/* One file with a sidecar of its own. */
struct lone {
	const char *path, *meta_path;
	const struct check_opts *o;
	int fd, meta_fd; /* owned */
	struct verity_meta meta;
};

/* The digest the sidecar has and the one it should have had. */
static void say_untrusted(const struct lone *l)
{
	char is[VERITY_DIGEST_TEXT], want[VERITY_DIGEST_TEXT];
	struct verity_meta meta;

	verity_digest_format(locate_digest(&l->o->at), want);
	if (verity_meta_read(l->meta_fd, NULL, &meta, NULL)) {
		say_error("%s: is malformed, and not of the trusted digest %s",
			  l->meta_path, want);
		return;
	}
	verity_digest_format(&meta.digest, is);
	say_error("%s: its digest is %s, trusted is %s", l->meta_path, is,
		  want);
}

static int read_meta(struct lone *l)
{
	struct verity_complaint why = { 0 };
	int err = verity_meta_read(l->meta_fd, locate_digest(&l->o->at),
				   &l->meta, &why);

	if (!err)
		return EXIT_OK;
	if (err == -EBADMSG) {
		say_untrusted(l);
		return EXIT_TRUST;
	}
	if (why.field)
		say_complaint(l->meta_path, &why);
	else
		say_errno(err, "%s: read", l->meta_path);
	return EXIT_IO;
}

static int print_summary(const char *path, const struct verdict *v, bool pinned,
			 int status)
{
	struct verity_json j = { 0 };

	verity_json_object(&j, NULL);
	verity_json_string(&j, "path", path);
	verity_json_string(&j, "trust", pinned ? "pinned" : "self");
	verity_json_u64(&j, "files", 1);
	verity_json_u64(&j, "bytes", v->bytes);
	verity_json_u64(&j, "bad_files", status != EXIT_OK);
	verity_json_u64(&j, "bad_blocks", v->bad);
	verity_json_u64(&j, "status", (uint64_t)status);
	verity_json_end(&j, '}');
	return json_finish(&j) ? check_worse(status, EXIT_IO) : status;
}

static int report(const char *path, const struct check_opts *o,
		  const struct verdict *v, bool pinned)
{
	const char *trust = locate_trust(pinned);
	int status = v->status;
	char size[16];

	human_bytes(v->bytes, size);
	if (v->lines.len)
		(void)out_put(v->lines.s, v->lines.len);
	if (v->lines.err)
		status = check_worse(status, EXIT_IO);
	if (spread_stopped()) {
		say_error("%s: interrupted; not all was looked at", path);
		return 128 + spread_stopped();
	}
	if (status == EXIT_OK)
		say_note("%s: %s: all good; %s", path, size, trust);
	else
		say_note("%s: %s: not good, bad blocks: %" PRIu64 "; %s", path,
			 size, v->bad, trust);
	return o->json ? print_summary(path, v, pinned, status) : status;
}

static int check_lone(struct lone *l)
{
	struct check_file f = { .path = l->path,
				.fd = l->fd,
				.meta_fd = l->meta_fd,
				.meta = &l->meta,
				.threads = l->o->jobs,
				.json = l->o->json };
	struct verdict v = { .stream = true };
	int status = read_meta(l);

	if (status)
		return status;
	progress_begin(l->path, l->meta.desc.data_size, l->o->quiet);
	check_file_run(&f, &v);
	progress_end();
	status = report(l->path, l->o, &v, locate_digest(&l->o->at));
	verity_text_free(&v.lines);
	return status;
}

static int open_lone(struct lone *l)
{
	l->fd = open(l->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (l->fd < 0)
		return say_errno(-errno, "%s: open", l->path);
	l->meta_fd = open(l->meta_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (l->meta_fd < 0)
		return say_errno(-errno, "%s: open", l->meta_path);
	return 0;
}

static int check_beside(const char *path, const struct check_opts *o,
			const char *meta_path)
{
	struct lone l = { .path = path,
			  .meta_path = meta_path,
			  .o = o,
			  .fd = -1,
			  .meta_fd = -1 };
	int status = EXIT_IO;

	if (!open_lone(&l))
		status = check_lone(&l);
	if (l.meta_fd >= 0)
		close(l.meta_fd);
	if (l.fd >= 0)
		close(l.fd);
	return status;
}

/* A file of a sealed tree, named on its own. */
static int check_inside(const char *path, const struct check_opts *o,
			const struct located *at)
{
	struct check_entry c = { .s = &at->s,
				 .e = at->e,
				 .path = path,
				 .json = o->json,
				 .threads = o->jobs };
	struct verdict v = { 0 };
	int status;

	progress_begin(path, at->e->size, o->quiet);
	check_entry_run(&c, &v);
	progress_end();
	status = report(path, o, &v, at->pinned);
	verity_text_free(&v.lines);
	return status;
}

static int check_file(const char *path, const struct check_opts *o)
{
	struct located at;
	int status = locate(path, &o->at, &at);

	if (status == EXIT_OK)
		status = at.meta_path ? check_beside(path, o, at.meta_path)
				      : check_inside(path, o, &at);
	located_free(&at);
	return status;
}

/* Is this regular file a manifest; told by its name and its first bytes. */
static bool is_manifest(const char *path)
{
	static const char magic[] = "verity-manifest ";
	const char *base = strrchr(path, '/');
	char head[sizeof(magic) - 1];
	bool yes = false;
	int fd;

	if (strcmp(base ? base + 1 : path, SEALED_MANIFEST) != 0)
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	yes = verity_pread_full(fd, head, sizeof(head), 0) == sizeof(head) &&
	      !memcmp(head, magic, sizeof(head));
	close(fd);
	return yes;
}

/* A manifest's folder is that of the metadata; the tree is around it, or where
 * --root says. */
static int check_manifest(const char *path, const struct check_opts *o)
{
	char *meta = realpath(path, NULL), *cut, *root;
	int status;

	cut = meta ? strrchr(meta, '/') : NULL;
	if (!cut) {
		say_errno(-errno, "%s", path);
		free(meta);
		return EXIT_IO;
	}
	*cut = '\0';
	if (o->at.root) {
		status = check_tree(o->at.root, meta, o);
	} else {
		root = strdup(meta);
		cut = root ? strrchr(root, '/') : NULL;
		if (!cut || strcmp(cut + 1, VERITY_FOLDER) != 0) {
			say_error("%s: which tree is it of (--root DIR)", path);
			status = EXIT_USAGE;
		} else {
			*cut = '\0';
			status = check_tree(cut == root ? "/" : root, meta, o);
		}
		free(root);
	}
	free(meta);
	return status;
}

static int check_path(const char *path, const struct check_opts *o)
{
	struct stat st;

	if (stat(path, &st) < 0) {
		say_errno(-errno, "%s: stat", path);
		return EXIT_IO;
	}
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		say_error("%s: is not a regular file or directory", path);
		return EXIT_IO;
	}
	if (S_ISREG(st.st_mode) && !is_manifest(path))
		return check_file(path, o);
	/* What was asked for is never left out in silence. */
	if (o->at.digest.set || (S_ISDIR(st.st_mode) && o->at.root) ||
	    (S_ISREG(st.st_mode) && o->at.meta)) {
		say_error("%s: --digest goes with a file, --root with a file "
			  "or manifest, --meta with a file or directory",
			  path);
		return EXIT_USAGE;
	}
	return S_ISDIR(st.st_mode) ? check_tree(path, o->at.meta, o)
				   : check_manifest(path, o);
}

static int run(const void *opts, char **operands, int count)
{
	struct check_opts o = *(const struct check_opts *)opts;
	int status = EXIT_OK;

	say_init("check", o.quiet);
	if (count > 1 && (o.at.pin.set || o.at.digest.set)) {
		say_error("--pin and --digest go with one operand");
		return EXIT_USAGE;
	}
	if (!o.jobs)
		o.jobs = spread_cpus();
	spread_catch();
	for (int i = 0; i < count && !spread_stopped(); i++)
		status = check_worse(status, check_path(operands[i], &o));
	return spread_stopped() ? 128 + spread_stopped() : status;
}

const struct command cmd_check = {
	.name = "check",
	.operands = "FILE|DIR|MANIFEST...",
	.summary = "verify data and tree, list every bad block",
	.opts = check_options,
	.opts_size = sizeof(struct check_opts),
	.min_operands = 1,
	.max_operands = -1,
	.run = run,
};
