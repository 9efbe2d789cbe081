/* SPDX-License-Identifier: MIT */
/* Making a sealed state durable and valid.  Layer: tools. */
#include "tools/seal.h"

#include "merkle/beneath.h"
#include "tools/progress.h"
#include "tools/say.h"
#include "tools/store.h"
#include "tools/sum.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Text is written out in pieces of about this many bytes. */
#define PIECE ((size_t)1 << 20)

/* A manifest on its way to disk. */
struct output {
	struct store store;
	struct verity_text text;
	struct sum *sum;
	uint64_t pos;
};

static int put_piece(struct output *o, size_t least)
{
	int err = o->text.err;

	if (err || o->text.len < least)
		return err;
	err = store_write(o->store.fd, o->text.s, o->text.len, o->pos);
	if (!err)
		err = sum_add(o->sum, o->text.s, o->text.len);
	o->pos += o->text.len;
	verity_text_clear(&o->text);
	return err;
}

static int put_entries(struct output *o, const struct seal *s, bool partial)
{
	int err = 0;

	verity_manifest_put_head(&o->text, &s->head);
	for (size_t i = 0; i < s->list.n && !err; i++) {
		const struct item *it = s->list.v[i];

		if (partial && it->e.kind == VERITY_FILE &&
		    it->state != ITEM_DONE)
			continue;
		verity_manifest_put_entry(&o->text, &s->head, &it->e);
		err = put_piece(o, PIECE);
	}
	return err ? err : put_piece(o, 0);
}

static int write_manifest(const struct seal *s, const char *name, bool partial,
			  struct verity_digest *pin)
{
	struct verity_digest d = { .alg = VERITY_SHA256, .size = 32 };
	struct output o = { .store = STORE_INIT, .sum = sum_new() };
	int err = o.sum ? store_begin(&o.store, s->meta) : -ENOMEM;

	if (!err)
		err = put_entries(&o, s, partial);
	if (!err && o.pos > VERITY_MANIFEST_MAX)
		err = -EFBIG;
	if (!err)
		err = sum_end(o.sum, d.bytes);
	if (!err)
		err = store_commit(&o.store, name, true);
	if (!err)
		*pin = d;
	store_abort(&o.store);
	verity_text_free(&o.text);
	sum_free(o.sum);
	return err;
}

/* All sidecars at once, instead of an fsync each. */
static int sync_sidecars(const struct seal *s)
{
	progress_stage("syncing");
	return syncfs(s->meta) < 0 ? -errno : 0;
}

/* The manifests that sidecars may belong to: the one in place, and that of an
 * interrupted run which is gone on with.  NULL: none. */
struct claims {
	const struct verity_manifest *valid, *resumed;
};

/* Return: the length of the path that a file below next/ or meta/ is, by its
 * name, the sidecar of; or 0 */
static size_t path_len(const char *name)
{
	size_t n = strlen(name), end = strlen(VERITY_META_SUFFIX);

	return n > end && !strcmp(name + n - end, VERITY_META_SUFFIX) ? n - end
								      : 0;
}

/* The entry that it is the sidecar of, or NULL. */
static const struct verity_entry *entry_of(const struct verity_manifest *m,
					   const char *name)
{
	const struct verity_entry *e;
	char path[VERITY_PATH_MAX + 1];
	size_t n = path_len(name);

	if (!n || n > VERITY_PATH_MAX)
		return NULL;
	memcpy(path, name, n);
	path[n] = '\0';
	e = verity_manifest_find(m, path);
	return e && e->kind == VERITY_FILE ? e : NULL;
}

/* Of a file that could be read: is it, for good, no sidecar of the digest?
 * Any other error may pass, and the sidecar still be needed. */
static bool is_other(int err)
{
	return err == -EBADMSG || err == -EINVAL || err == -EMSGSIZE ||
	       err == -EFBIG;
}

/* Does @m list @path, with the digest of the sidecar @name in @up?
 * Return: 1, 0, or a negative errno when that can not be told. */
static int waits_for(int up, const char *name, const char *path,
		     const struct verity_manifest *m)
{
	const struct verity_entry *e = m ? entry_of(m, path) : NULL;
	struct verity_digest want = { 0 };
	struct verity_meta got;
	int fd, err;

	if (!e)
		return 0;
	want.alg = m->head.params.alg;
	want.size = verity_digest_size(want.alg);
	memcpy(want.bytes, e->digest, want.size);
	fd = verity_open_beneath(up, name, O_RDONLY);
	if (fd == -ELOOP)
		return 0; /* a symlink: no reader takes it for a sidecar */
	if (fd < 0)
		return fd;
	err = verity_meta_read(fd, &want, &got, NULL);
	close(fd);
	return !err ? 1 : is_other(err) ? 0 : err;
}

/* Rename @name in @up to the path @to below @meta. */
static int move_to(int up, const char *name, int meta, const char *to)
{
	const char *to_name;
	int to_up = store_open_parent(meta, to, &to_name), err = 0;

	if (to_up < 0)
		return to_up;
	if (renameat(up, name, to_up, to_name) < 0)
		err = -errno;
	close(to_up);
	return err;
}

static int move_into_place(int meta, int up, const char *name, const char *path)
{
	char *to;
	int err;

	if (asprintf(&to, SEALED_META "/%s", path) < 0)
		return -ENOMEM;
	err = store_parents(meta, to);
	if (!err)
		err = move_to(up, name, meta, to);
	free(to);
	return err;
}

/* What is no sidecar by its name is not ours to remove: --meta may name a
 * folder that has other things in it. */
static int drop(int up, const char *name)
{
	if (!path_len(name))
		return 0;
	return unlinkat(up, name, 0) < 0 ? -errno : 0;
}

/* Move, keep or remove what was found in next/. */
static int settle_next(int meta, int dir, const char *path,
		       const struct claims *c)
{
	const char *name;
	int up = store_open_parent(dir, path, &name), is, err = 0;

	if (up < 0)
		return up;
	is = waits_for(up, name, path, c->valid);
	if (is > 0)
		err = move_into_place(meta, up, name, path);
	else if (!is)
		is = waits_for(up, name, path, c->resumed);
	if (!is)
		err = drop(up, name);
	close(up);
	return is < 0 ? is : err;
}

/* Sidecars of paths that are gone, or that need none any more. */
static int prune_meta(int meta, int dir, const char *path,
		      const struct claims *c)
{
	const struct verity_entry *e = entry_of(c->valid, path);
	const char *name;
	int up, err;

	(void)meta;
	if (e && e->size > c->valid->head.params.block_size)
		return 0;
	up = store_open_parent(dir, path, &name);
	if (up < 0)
		return up;
	err = drop(up, name);
	close(up);
	return err;
}

/* What is not empty stays. */
static void remove_dir(int dir, const char *path)
{
	const char *name;
	int up = store_open_parent(dir, path, &name);

	if (up < 0)
		return;
	unlinkat(up, name, AT_REMOVEDIR);
	close(up);
}

/* Do @each to every file below @folder, then remove directories left empty.
 * Reverse order: what is in a directory comes before it.  Says what fails. */
static int sweep(int meta, const char *folder, const struct claims *c,
		 int (*each)(int meta, int dir, const char *path,
			     const struct claims *c))
{
	int dir = verity_open_beneath(meta, folder, O_RDONLY | O_DIRECTORY);
	struct listing l = { .all = true };
	int err;

	if (dir == -ENOENT)
		return 0;
	if (dir < 0)
		return say_errno(dir, "%s: open directory", folder);
	err = listing_walk(&l, dir, NULL);
	for (size_t i = l.n; i-- > 0 && !err;) {
		const char *path = l.v[i]->e.path;

		if (l.v[i]->e.kind == VERITY_DIR)
			remove_dir(dir, path);
		else
			err = each(meta, dir, path, c);
		if (err)
			say_errno(err, "%s/%s: tidy", folder, path);
	}
	listing_free(&l);
	close(dir);
	unlinkat(meta, folder, AT_REMOVEDIR);
	return err;
}

int seal_settle(int meta, const struct verity_manifest *valid,
		const struct verity_manifest *resumed)
{
	struct claims c = { valid, resumed };

	store_sweep(meta);
	return sweep(meta, SEALED_NEXT, &c, settle_next);
}

/* The manifest just written, as the entries in memory have it. */
static int view_entries(const struct seal *s, struct verity_manifest *m)
{
	*m = (struct verity_manifest){ .head = s->head, .count = s->list.n };
	m->entry = malloc((s->list.n + 1) * sizeof(*m->entry));
	if (!m->entry)
		return -ENOMEM;
	for (size_t i = 0; i < s->list.n; i++)
		m->entry[i] = s->list.v[i]->e;
	return 0;
}

static bool is_there(const struct seal *s, const char *folder)
{
	return faccessat(s->meta, folder, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The new state is valid already: what fails here is done by the next run. */
static void tidy(const struct seal *s)
{
	struct verity_manifest m;
	struct claims c = { &m, NULL };
	int err;

	progress_stage("tidying");
	unlinkat(s->meta, SEALED_PARTIAL, 0);
	if (!is_there(s, SEALED_NEXT) && !is_there(s, SEALED_META))
		return;
	err = view_entries(s, &m);
	if (err)
		say_errno(err, "%s", s->root_path);
	if (!err)
		err = seal_settle(s->meta, &m, NULL);
	if (!err)
		err = sweep(s->meta, SEALED_META, &c, prune_meta);
	if (err)
		say_error("%s: sealed, but old sidecars are left over",
			  s->root_path);
	verity_manifest_free(&m);
}

int seal_commit(struct seal *s, struct verity_digest *pin)
{
	int err = sync_sidecars(s);

	if (err)
		return say_errno(err, "%s: sync sidecars", s->where);
	progress_stage("renaming");
	err = write_manifest(s, SEALED_MANIFEST, false, pin);
	return err ? say_errno(err, "%s: write", s->where) : 0;
}

/* Nothing old is removed while the old manifest may come back. */
int seal_finish(struct seal *s)
{
	int err = store_sync_dir(s->meta, SEALED_MANIFEST);

	if (err)
		return say_errno(err,
				 "%s: is in place, but may not outlive a power "
				 "cut (seal again): fsync of its directory",
				 s->where);
	tidy(s);
	return 0;
}

int seal_save_partial(struct seal *s, struct verity_digest *pin)
{
	int err = sync_sidecars(s);

	if (!err)
		err = write_manifest(s, SEALED_PARTIAL, true, pin);
	if (err)
		return err;
	err = store_sync_dir(s->meta, SEALED_PARTIAL);
	if (err)
		say_errno(err,
			  "%s: what was done is kept, but may not outlive a "
			  "power cut: fsync of the directory",
			  s->where);
	return 0;
}
