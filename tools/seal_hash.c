/* SPDX-License-Identifier: MIT */
/* Hashing the files of a tree.  Layer: tools. */
#include "tools/seal.h"

#include "merkle/beneath.h"
#include "merkle/desc.h"
#include "tools/progress.h"
#include "tools/say.h"
#include "tools/sidecar.h"
#include "tools/spread.h"
#include "tools/sum.h"
#include "tools/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Files a worker takes at once; their single blocks fill the hash lanes. */
#define BATCH LISTING_BLOCK

/* Failed files that get a line each. */
#define TOLD 20U

/* From here on a file is hashed in parts by all threads, after the others. */
#define LARGE ((uint64_t)8 << 20)

/* What one worker keeps: the directory that its last file was in, since the
 * next is most likely there too; and its files of at most one block, waiting
 * to be hashed together. */
struct batch {
	int dir;        /* owned; -1: none */
	const char *up; /* its path: the first up_len bytes of an item's */
	size_t up_len;
	size_t n;
	struct item *item[BATCH];
	uint8_t *block; /* BATCH data blocks */
	uint8_t desc[BATCH][VERITY_DESC_SIZE];
};

static void add(_Atomic(uint64_t) *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static struct batch *batch_of(struct seal *s, unsigned int worker)
{
	struct batch *b = s->batch[worker];

	if (b)
		return b;
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->dir = -1;
	s->batch[worker] = b;
	b->block = malloc(BATCH * (size_t)s->head.params.block_size);
	return b->block ? b : NULL;
}

/* The digests of files of one block: hash the blocks, then the descriptors,
 * many at once.  An empty file's root is all zero and needs no hash. */
static int hash_batch(struct seal *s, struct batch *b)
{
	uint32_t bs = s->head.params.block_size, ds = s->block.digest_size;
	uint8_t root[BATCH * VERITY_MAX_DIGEST], digest[sizeof(root)];
	const void *block[BATCH], *desc[BATCH];
	int err;

	for (size_t i = 0; i < b->n; i++)
		block[i] = b->block + i * bs;
	err = verity_hash_blocks(&s->block, block, b->n, root);
	for (size_t i = 0; i < b->n && !err; i++) {
		struct verity_desc d = { .params = s->head.params };

		d.data_size = b->item[i]->e.size;
		if (d.data_size)
			memcpy(d.root, root + i * ds, ds);
		verity_desc_encode(&d, b->desc[i]);
		desc[i] = b->desc[i];
	}
	if (!err)
		err = verity_hash_blocks(&s->desc, desc, b->n, digest);
	for (size_t i = 0; i < b->n && !err; i++) {
		memcpy(b->item[i]->e.digest, digest + i * ds, ds);
		b->item[i]->state = ITEM_DONE;
	}
	b->n = 0;
	return err;
}

/* Read a file of at most one block into the next place of the batch. */
static int read_small(struct seal *s, struct batch *b, struct item *it, int fd)
{
	uint32_t bs = s->head.params.block_size;
	uint8_t *to = b->block + b->n * bs;
	ssize_t n = verity_pread_full(fd, to, it->e.size, 0);

	if (n < 0)
		return (int)n;
	if ((uint64_t)n < it->e.size)
		return -ESTALE;
	memset(to + n, 0, bs - (size_t)n);
	if (s->o->sha256) {
		it->e.has_sha256 = true;
		return verity_hash_bytes(VERITY_SHA256, to, (size_t)n,
					 it->e.sha256);
	}
	return 0;
}

/* The sidecar's path: in place, unless one is there that the manifest now in
 * place may still need.  That goes for the same digest too: nothing is durable
 * yet, and the old one is. */
static int name_sidecar(const struct old_sidecar *old, const char *path,
			char **name)
{
	if (asprintf(name, "%s/%s" VERITY_META_SUFFIX,
		     old->sound ? SEALED_NEXT : SEALED_META, path) < 0)
		return -ENOMEM;
	return 0;
}

static int put_sidecar(struct seal *s, struct store *store,
		       const struct old_sidecar *old, const char *path)
{
	char *name;
	int err = name_sidecar(old, path, &name);

	if (!err) {
		err = store_parents(s->meta, name);
		if (!err)
			err = store_commit(store, name, false);
		free(name);
	}
	store_abort(store);
	return err;
}

/* Hash a file of several blocks and write its sidecar, in place once the file
 * is known not to have changed. */
static int hash_deep(struct seal *s, struct item *it, int fd,
		     const struct watch *w, unsigned int threads)
{
	struct hashfile h = { .params = s->head.params,
			      .fd = fd,
			      .size = it->e.size,
			      .blocks512 = (uint64_t)w->st.st_blocks,
			      .threads = threads };
	struct store store = STORE_INIT;
	struct old_sidecar old;
	struct verity_meta meta;
	char *name;
	int err;

	if (asprintf(&name, SEALED_META "/%s" VERITY_META_SUFFIX, it->e.path) <
	    0)
		return -ENOMEM;
	err = old_sidecar_load(&old, s->meta, name);
	free(name);
	if (!err)
		err = sidecar_write(&store, s->meta, &h, &old, &meta);
	if (!err && s->o->sha256) {
		it->e.has_sha256 = true;
		err = sum_file(fd, it->e.size, it->e.sha256);
	}
	if (!err)
		err = watch_end(w, fd);
	if (!err) {
		add(&s->n.sidecar_bytes, verity_meta_size(&meta));
		memcpy(it->e.digest, meta.digest.bytes, VERITY_MAX_DIGEST);
		err = put_sidecar(s, &store, &old, it->e.path);
	}
	if (!err && old.sig && !meta.sig_size)
		say_note("%s/%s: its signature is dropped: it was for another "
			 "digest",
			 s->root_path, it->e.path);
	store_abort(&store);
	old_sidecar_free(&old);
	if (!err)
		it->state = ITEM_DONE;
	return err;
}

/*
 * May the trusted old digest stand for this file?  Size and time must be the
 * same, and the time clearly older than the old seal: a write in the same
 * second would not show.  A wrong guess never blesses other bytes, the digest
 * is still the trusted one; it makes readers refuse the file.
 */
static bool can_reuse(const struct seal *s, const struct item *it,
		      const struct verity_entry *old)
{
	struct sealed view = { .meta = s->meta, .m = s->old };
	struct verity_complaint ignored;
	struct verity_meta meta;
	int fd;

	if (!old || old->kind != VERITY_FILE || !old->has_mtime ||
	    old->size != it->e.size || old->mtime_s != it->e.mtime_s ||
	    old->mtime_ns != it->e.mtime_ns ||
	    old->mtime_s >= s->old.head.created - 1 ||
	    old->has_sha256 != s->o->sha256)
		return false;
	if (old->size <= s->head.params.block_size)
		return true;
	fd = sealed_meta_open(&view, old, &meta, &ignored);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool reuse(struct seal *s, struct item *it)
{
	const struct verity_entry *old;

	if (!s->trusted)
		return false;
	old = verity_manifest_find(&s->old, it->e.path);
	if (!can_reuse(s, it, old))
		return false;
	memcpy(it->e.digest, old->digest, sizeof(it->e.digest));
	memcpy(it->e.sha256, old->sha256, sizeof(it->e.sha256));
	it->e.has_sha256 = old->has_sha256;
	it->state = ITEM_DONE;
	add(&s->n.reused, 1);
	return true;
}

static void note_stat_only(struct seal *s, const struct item *it, int why)
{
	const char *none = NULL;

	add(&s->n.stat_only, 1);
	if (atomic_compare_exchange_strong(&s->stat_only_path, &none,
					   it->e.path))
		atomic_store(&s->stat_only_why, why);
}

static void take_attributes(struct item *it, const struct stat *st)
{
	it->e.size = (uint64_t)st->st_size;
	it->e.exec = st->st_mode & 0111;
	it->e.mtime_s = st->st_mtim.tv_sec;
	it->e.mtime_ns = (uint32_t)st->st_mtim.tv_nsec;
	it->e.has_mtime = true;
}

/* Look at one open file and do what its size asks for.  That no other file
 * was put in its place meanwhile is asked of the directory, at the end. */
static int hash_open(struct seal *s, struct batch *b, struct item *it, int fd)
{
	struct watch w;
	int err = watch_begin(&w, fd);

	if (err)
		return err;
	if (!S_ISREG(w.st.st_mode))
		return -ESTALE;
	take_attributes(it, &w.st);
	if (reuse(s, it)) {
		progress_add(it->e.size);
		return 0;
	}
	if (b && it->e.size >= LARGE) {
		it->state = ITEM_LARGE;
		return 0;
	}
	if (!w.lease)
		note_stat_only(s, it, w.why);
	if (it->e.size > s->head.params.block_size)
		return hash_deep(s, it, fd, &w, b ? 1 : s->o->jobs);
	if (!b)
		return -ESTALE; /* it was large when its turn came first */
	err = read_small(s, b, it, fd);
	if (!err)
		err = watch_end(&w, fd);
	if (!err)
		b->item[b->n++] = it;
	progress_add(it->e.size);
	return err;
}

static void say_failed(const struct seal *s, const struct item *it, int err)
{
	if (err == -ESTALE || err == -ENODATA)
		say_error("%s/%s: changed while it was sealed", s->root_path,
			  it->e.path);
	else
		say_errno(err, "%s/%s", s->root_path, it->e.path);
}

/* A file that cannot be sealed is told and the rest goes on, so that one run
 * shows what is wrong, up to a number that a person reads; an interruption is
 * not told. */
static int failed(struct seal *s, struct item *it, int err)
{
	if (err == -EINTR)
		return err;
	it->state = ITEM_FAILED;
	if (atomic_fetch_add(&s->n.failed, 1) < TOLD)
		say_failed(s, it, err);
	/* A full or failing target will not get better file by file. */
	return err == -ENOSPC || err == -EDQUOT || err == -EROFS ||
			       err == -ENOMEM
		       ? err
		       : 0;
}

static void leave_dir(struct batch *b)
{
	if (b && b->dir >= 0)
		close(b->dir);
	if (b)
		b->dir = -1;
}

/* Have the directory at the first @len bytes of @path open. */
static int enter_dir(struct seal *s, struct batch *b, const char *path,
		     size_t len)
{
	char up[VERITY_PATH_MAX + 1];

	if (b->dir >= 0 && b->up_len == len && !memcmp(b->up, path, len))
		return 0;
	leave_dir(b);
	memcpy(up, path, len);
	up[len] = '\0';
	b->up = path;
	b->up_len = len;
	b->dir = verity_open_beneath(s->root, len ? up : ".",
				     O_RDONLY | O_DIRECTORY);
	return b->dir < 0 ? b->dir : 0;
}

/* One component below a directory that was opened beneath the root. */
static int open_item(struct seal *s, struct batch *b, const struct item *it)
{
	const char *slash = strrchr(it->e.path, '/');
	size_t len = slash ? (size_t)(slash - it->e.path) : 0;
	int err, fd;

	if (!b)
		return verity_open_beneath(s->root, it->e.path, O_RDONLY);
	err = enter_dir(s, b, it->e.path, len);
	if (err)
		return err;
	fd = openat(b->dir, slash ? slash + 1 : it->e.path,
		    O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

/* @b NULL: with all threads, for a large file. */
static int hash_item(struct seal *s, struct batch *b, struct item *it)
{
	int fd = open_item(s, b, it), err;

	if (fd < 0)
		return failed(s, it, fd);
	err = hash_open(s, b, it, fd);
	close(fd);
	return err ? failed(s, it, err) : 0;
}

static int hash_some(void *arg, unsigned int worker, void *job)
{
	struct seal *s = arg;
	struct item_block *items = job;
	struct batch *b = batch_of(s, worker);
	int err = 0;

	if (!items) {
		leave_dir(b);
		return 0;
	}
	if (!b)
		return say_errno(-ENOMEM, "%s: hash", s->root_path);
	for (size_t i = 0; i < items->n && !err; i++)
		if (items->item[i].e.kind == VERITY_FILE)
			err = hash_item(s, b, &items->item[i]);
	if (err)
		return err;
	err = hash_batch(s, b);
	return err ? say_errno(err, "%s: hash", s->root_path) : 0;
}

static int hash_large(struct seal *s)
{
	int err = 0;

	for (size_t i = 0; i < s->list.n && !err; i++) {
		struct item *it = s->list.v[i];

		if (it->state == ITEM_LARGE) {
			it->state = ITEM_TODO;
			err = hash_item(s, NULL, it);
		}
	}
	return err;
}

static int init_hashers(struct seal *s)
{
	struct verity_params plain = { .alg = s->head.params.alg };
	int err = verity_hasher_init(&s->block, &s->head.params,
				     s->head.params.block_size);

	if (!err)
		err = verity_hasher_init(&s->desc, &plain, VERITY_DESC_SIZE);
	return err ? say_errno(err, "%s: hash", s->root_path) : 0;
}

/* Where found files go. */
struct finder {
	const struct seal *s;
	struct feed *feed;
	uint64_t bytes; /* found so far, for whoever watches the progress */
	bool watched;
};

/* Sizes cost a call each, so they are asked for only when someone looks. */
static void count_bytes(struct finder *f, const struct item_block *b)
{
	struct stat st;

	for (size_t i = 0; i < b->n; i++)
		if (b->item[i].e.kind == VERITY_FILE &&
		    fstatat(f->s->root, b->item[i].e.path, &st,
			    AT_SYMLINK_NOFOLLOW) == 0)
			f->bytes += (uint64_t)st.st_size;
	progress_total(f->bytes);
}

static int feed_block(void *arg, struct item_block *b)
{
	struct finder *f = arg;
	int err;

	if (f->watched)
		count_bytes(f, b);
	err = feed_put(f->feed, b);
	/* A worker's own errors were told, but this may be the feed's. */
	return err == -ENOMEM ? say_errno(err, "%s", f->s->root_path) : err;
}

/* Files are hashed while the next ones are being found. */
static int list_and_feed(void *arg, struct feed *feed)
{
	struct seal *s = arg;
	struct finder f = { .s = s, .feed = feed };

	f.watched = !s->o->quiet && isatty(STDERR_FILENO);
	s->list.ready = feed_block;
	s->list.ready_arg = &f;
	return seal_list(s);
}

int seal_hash(struct seal *s)
{
	int err = init_hashers(s);

	if (!err)
		err = spread_feed(s->o->jobs, list_and_feed, hash_some, s);
	if (!err)
		err = hash_large(s);
	if (atomic_load(&s->n.failed) > TOLD)
		say_error("%s: and %" PRIu64 " more files", s->root_path,
			  atomic_load(&s->n.failed) - TOLD);
	if (!err && atomic_load(&s->n.failed))
		err = -EIO;
	return err;
}

void seal_hash_fini(struct seal *s)
{
	for (size_t i = 0; i < sizeof(s->batch) / sizeof(s->batch[0]); i++) {
		if (s->batch[i])
			free(s->batch[i]->block);
		free(s->batch[i]);
	}
	verity_hasher_fini(&s->block);
	verity_hasher_fini(&s->desc);
}
