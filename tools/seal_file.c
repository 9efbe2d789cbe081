/* SPDX-License-Identifier: MIT */
/* Sealing one file: a sidecar beside it.  Layer: tools. */
#include "tools/seal.h"

#include "merkle/json.h"
#include "tools/exits.h"
#include "tools/out.h"
#include "tools/progress.h"
#include "tools/say.h"
#include "tools/sidecar.h"
#include "tools/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One file on its way to being sealed. */
struct one {
	const struct seal_opts *o;
	const char *path;
	int fd;     /* the data; owned */
	int dir;    /* where the sidecar goes; owned */
	char *name; /* the sidecar's in it; owned */
	struct watch w;
	struct verity_meta meta;
};

static int open_dir(struct one *f)
{
	char *copy = strdup(f->path);
	const char *dir = copy ? dirname(copy) : NULL;
	const char *base = strrchr(f->path, '/');
	int err = 0;

	if (!copy || asprintf(&f->name, "%s" VERITY_META_SUFFIX,
			      base ? base + 1 : f->path) < 0) {
		f->name = NULL;
		err = -ENOMEM;
	} else {
		f->dir = open(f->o->meta ? f->o->meta : dir,
			      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		err = f->dir < 0 ? -errno : 0;
	}
	if (err)
		say_errno(err, "%s: open directory",
			  f->o->meta ? f->o->meta
			  : dir      ? dir
				     : f->path);
	free(copy);
	return err;
}

static int open_data(struct one *f)
{
	int err;

	f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (f->fd < 0)
		return say_errno(-errno, "%s: open", f->path);
	err = watch_begin(&f->w, f->fd);
	if (err)
		return say_errno(err, "%s: stat", f->path);
	if (!S_ISREG(f->w.st.st_mode)) {
		say_error("%s: is not a regular file", f->path);
		return -EINVAL;
	}
	if (!f->w.lease)
		say_note("%s: change detection: stat only (%s)", f->path,
			 watch_why(f->w.why));
	return 0;
}

static int write_sidecar(struct one *f)
{
	struct hashfile h = { .fd = f->fd,
			      .size = (uint64_t)f->w.st.st_size,
			      .blocks512 = (uint64_t)f->w.st.st_blocks,
			      .threads = f->o->jobs };
	struct store store = STORE_INIT;
	struct old_sidecar old;
	int err = old_sidecar_load(&old, f->dir, f->name);

	store_sweep_dead(f->dir);
	opts_params(f->o->alg, f->o->block_size, &f->o->salt, &h.params);
	if (!err)
		err = sidecar_write(&store, f->dir, &h, &old, &f->meta);
	if (!err)
		err = watch_end(&f->w, f->fd);
	if (!err)
		err = watch_path(&f->w, AT_FDCWD, f->path);
	if (!err && old.sig && !f->meta.sig_size)
		say_note("%s: its signature is dropped: it was for another "
			 "digest",
			 f->name);
	if (!err) {
		progress_stage("syncing");
		err = store_commit(&store, f->name, true);
	}
	store_abort(&store);
	old_sidecar_free(&old);
	return err;
}

static int print_plan(const struct one *f)
{
	uint64_t size = (uint64_t)f->w.st.st_size, sidecar;
	struct verity_params params;
	struct verity_geom g;
	struct verity_json j = { 0 };
	char a[16], b[16];

	opts_params(f->o->alg, f->o->block_size, &f->o->salt, &params);
	if (verity_geom_init(&g, &params, size, NULL)) {
		say_errno(-EFBIG, "%s", f->path);
		return EXIT_IO;
	}
	sidecar = g.tree_size ? VERITY_META_ALIGN + g.tree_size
			      : VERITY_META_HEAD;
	if (!f->o->json) {
		out_path(f->path);
		out_printf(": would read %s and write %s\n",
			   human_bytes(size, a), human_bytes(sidecar, b));
		return EXIT_OK;
	}
	verity_json_object(&j, NULL);
	verity_json_string(&j, "path", f->path);
	verity_json_bool(&j, "dry_run", true);
	verity_json_u64(&j, "bytes", size);
	verity_json_u64(&j, "sidecar_bytes", sidecar);
	verity_json_end(&j, '}');
	return json_finish(&j) ? EXIT_IO : EXIT_OK;
}

static int print_result(const struct one *f)
{
	char text[VERITY_DIGEST_TEXT];
	struct verity_json j = { 0 };

	verity_digest_format(&f->meta.digest, text);
	if (!f->o->json) {
		out_printf("%s ", text);
		out_path(f->path);
		out_printf("\n");
		return EXIT_OK;
	}
	verity_json_object(&j, NULL);
	verity_json_string(&j, "path", f->path);
	verity_json_string(&j, "digest", text);
	verity_json_u64(&j, "bytes", f->meta.desc.data_size);
	verity_json_u64(&j, "sidecar_bytes", verity_meta_size(&f->meta));
	verity_json_bool(&j, "lease", f->w.lease);
	verity_json_end(&j, '}');
	return json_finish(&j) ? EXIT_IO : EXIT_OK;
}

static int say_failed(const struct one *f, int err)
{
	if (err == -EINTR) {
		say_error("%s: interrupted; nothing was changed", f->path);
		return seal_interrupted();
	}
	if (err == -ESTALE || err == -ENODATA)
		say_error("%s: changed while it was sealed; not sealed",
			  f->path);
	else
		say_errno(err, "%s: seal", f->path);
	return EXIT_IO;
}

static int hash_one(struct one *f)
{
	int err, weak = 0;

	progress_begin(f->path, (uint64_t)f->w.st.st_size, f->o->quiet);
	err = write_sidecar(f);
	if (!err)
		weak = store_sync_dir(f->dir, f->name);
	progress_end();
	if (err)
		return say_failed(f, err);
	if (!weak)
		return print_result(f);
	say_errno(weak,
		  "%s: its new sidecar is in place, but may not outlive a "
		  "power cut (seal again): fsync of its directory",
		  f->path);
	return EXIT_IO;
}

int seal_file(const char *path, const struct seal_opts *o)
{
	struct one f = { .o = o, .path = path, .fd = -1, .dir = -1 };
	int status = EXIT_IO;

	if (!open_dir(&f) && !open_data(&f))
		status = o->dry_run ? print_plan(&f) : hash_one(&f);
	free(f.name);
	if (f.fd >= 0)
		close(f.fd);
	if (f.dir >= 0)
		close(f.dir);
	return status;
}
