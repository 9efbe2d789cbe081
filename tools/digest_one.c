/* SPDX-License-Identifier: MIT */
/* tools/digest_one.c - digest one operand of verityctl digest.
 * Layer: tools. */
#include "tools/digest_one.h"

#include "merkle/desc.h"
#include "tools/digest_out.h"
#include "tools/hashfile.h"
#include "tools/input.h"
#include "tools/progress.h"
#include "tools/say.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* One operand on its way. */
struct work {
	const struct digest_want *want;
	const char *path;
	int fd;
	struct outfile tree_file, desc_file;
	struct tree_out tree;
	uint8_t raw[VERITY_DESC_SIZE]; /* the descriptor */
	struct digest_got got;
};

static int hash_failed(const struct work *w, int err)
{
	if (err == -EINTR) /* said once, at the end */
		return err;
	return say_errno(err, "%s: cannot hash", w->path);
}

static int hash_stream(struct work *w)
{
	struct verity_geom geom;
	struct verity_desc desc;
	bool tree = w->want->out_tree;
	int err;

	w->tree.geom.block_size = w->want->params.block_size;
	err = hashfile_stream(w->fd, &w->want->params,
			      tree ? tree_out_stream_emit : NULL, &w->tree,
			      &w->got.digest, w->raw);
	if (!err)
		err = verity_desc_decode(w->raw, &desc, NULL);
	if (!err)
		w->got.size = desc.data_size;
	if (!err && tree)
		err = verity_geom_init(&geom, &w->want->params, w->got.size,
				       NULL);
	if (!err && tree)
		err = tree_out_arrange(&w->tree, &geom);
	return err ? hash_failed(w, err) : 0;
}

static int hash_regular(struct work *w, const struct stat *st,
			unsigned int threads)
{
	struct hashfile h = {
		.params = w->want->params,
		.fd = w->fd,
		.size = (uint64_t)st->st_size,
		.blocks512 = (uint64_t)st->st_blocks,
		.threads = threads,
		.emit = w->want->out_tree ? tree_out_emit : NULL,
		.emit_arg = &w->tree,
	};
	struct verity_complaint why;
	int err = verity_geom_init(&w->tree.geom, &h.params, h.size, &why);

	if (err) {
		say_complaint(w->path, &why);
		return err;
	}
	w->got.size = h.size;
	err = hashfile_run(&h, &w->got.digest, w->raw);
	return err ? hash_failed(w, err) : 0;
}

static int open_outputs(struct work *w)
{
	int err = outfile_open(&w->tree_file, w->fd);

	return err ? err : outfile_open(&w->desc_file, w->fd);
}

static int commit_outputs(struct work *w)
{
	int err = 0;

	if (w->desc_file.path)
		err = store_write(w->desc_file.fd, w->raw, sizeof(w->raw), 0);
	if (err)
		return say_errno(err, "%s: cannot write", w->desc_file.path);
	if (w->tree_file.path || w->desc_file.path)
		progress_stage("writing");
	err = outfile_flush(&w->tree_file);
	if (!err)
		err = outfile_flush(&w->desc_file);
	if (!err)
		err = outfile_commit(&w->tree_file);
	return err ? err : outfile_commit(&w->desc_file);
}

int digest_one(const struct digest_want *want, const char *path,
	       unsigned int threads, struct digest_got *out)
{
	struct work w = { .want = want,
			  .path = path,
			  .fd = STDIN_FILENO,
			  .tree_file = OUTFILE_INIT(want->out_tree),
			  .desc_file = OUTFILE_INIT(want->out_desc) };
	bool is_stdin = strcmp(path, "-") == 0;
	struct stat st;
	int err;

	w.tree.file = &w.tree_file;
	if (!is_stdin)
		w.fd = input_open(path, &st);
	if (w.fd < 0)
		return w.fd;
	err = open_outputs(&w);
	if (!err)
		err = is_stdin ? hash_stream(&w)
			       : hash_regular(&w, &st, threads);
	if (!err)
		err = commit_outputs(&w);
	if (!err)
		*out = w.got;
	tree_out_close(&w.tree);
	outfile_close(&w.tree_file);
	outfile_close(&w.desc_file);
	if (!is_stdin)
		close(w.fd);
	return err;
}
