/* SPDX-License-Identifier: MIT */
/*
 * Verified reads of one file.  Layer: merkle.
 *
 * Hash blocks that were found good are kept in memory, each in a slot that is
 * written once: no lock, and no copy is ever replaced under a reader.  A
 * block that was not found good is never kept, so a repaired disk heals.
 */
#include "merkle/file.h"

#include "merkle/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of leaf hash blocks kept for one file, so the first 4 GiB of it at the
 * usual parameters.  Levels above the leaves are a 128th and always kept. */
#define LEAF_CACHE ((uint64_t)32 << 20)

/* Bytes read and checked in one go. */
#define CHUNK 262144U

/* A hash block in memory. */
struct kept {
	struct kept *next; /* in a reader's list of fresh ones */
	uint64_t slot;     /* its number in tree order */
	unsigned int level;
	_Atomic(uint8_t) good;
	uint8_t bytes[];
};

/*
 * I: set at open, then read-only.  A: atomic.
 */
struct verity_file {
	int fd;                   /* I: data; owned */
	int meta_fd;              /* I: sidecar; owned */
	struct verity_meta meta;  /* I */
	struct verity_tree tree;  /* I */
	_Atomic(uint64_t) leaves; /* A: bytes of leaf blocks kept; statistics
				   * only, so relaxed */
	_Atomic(struct kept *) *slot; /* A: by number in tree order; release
				       * on publish, acquire on use */
};

/* One call's fresh hash blocks: private until found good. */
struct reader {
	struct verity_file *f;
	struct kept *fresh;
};

static int open_meta(struct verity_file *f, const char *path,
		     const char *meta_path, const struct verity_digest *trusted,
		     struct verity_complaint *why)
{
	char *made = NULL;
	int err;

	if (!meta_path) {
		size_t n = strlen(path);

		made = malloc(n + sizeof(VERITY_META_SUFFIX));
		if (!made)
			return -ENOMEM;
		memcpy(made, path, n);
		memcpy(made + n, VERITY_META_SUFFIX,
		       sizeof(VERITY_META_SUFFIX));
		meta_path = made;
	}
	f->meta_fd = open(meta_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	err = f->meta_fd < 0 ? -errno : 0;
	free(made);
	if (err)
		return err == -ENOENT ? -ENODATA : err;
	return verity_meta_read(f->meta_fd, trusted, &f->meta, why);
}

/* O_NONBLOCK: a FIFO must be refused below, not waited for here. */
static int open_data(struct verity_file *f, const char *path)
{
	struct stat st;

	f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (f->fd < 0 || fstat(f->fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return S_ISREG(st.st_mode) ? 0 : -EINVAL;
}

static struct verity_file *file_new(int fd, int meta_fd)
{
	struct verity_file *f = calloc(1, sizeof(*f));

	if (f) {
		f->fd = fd;
		f->meta_fd = meta_fd;
		return f;
	}
	if (fd >= 0)
		close(fd);
	if (meta_fd >= 0)
		close(meta_fd);
	return NULL;
}

/* With the sidecar's head read, make ready; @f is given away or closed. */
static int file_ready(struct verity_file *f, struct verity_file **out)
{
	int err = verity_tree_init(&f->tree, &f->meta.desc);

	if (!err && f->tree.geom.tree_blocks) {
		f->slot = calloc(f->tree.geom.tree_blocks, sizeof(*f->slot));
		err = f->slot ? 0 : -ENOMEM;
	}
	if (err)
		verity_file_close(f);
	else
		*out = f;
	return err;
}

int verity_file_open(const char *path, const char *meta_path,
		     const struct verity_digest *trusted,
		     struct verity_file **out, struct verity_complaint *why)
{
	struct verity_file *f = file_new(-1, -1);
	int err;

	if (why)
		memset(why, 0, sizeof(*why));
	if (!f)
		return -ENOMEM;
	err = open_data(f, path);
	if (!err)
		err = open_meta(f, path, meta_path, trusted, why);
	if (!err)
		return file_ready(f, out);
	verity_file_close(f);
	return err;
}

int verity_file_adopt(int fd, int meta_fd, const struct verity_meta *meta,
		      struct verity_file **out)
{
	struct verity_file *f = file_new(fd, meta_fd);

	if (!f)
		return -ENOMEM;
	f->meta = *meta;
	return file_ready(f, out);
}

/* The descriptor of a file that is in memory whole. */
static int describe(const struct verity_params *params, const void *data,
		    size_t size, struct verity_meta *out)
{
	uint8_t raw[VERITY_DESC_SIZE];
	struct verity_digest digest;
	struct verity_build *b;
	int err = verity_build_new(params, NULL, NULL, &b);

	if (err)
		return err;
	err = verity_build_add(b, data, size);
	if (!err)
		err = verity_build_end(b, &digest, raw);
	verity_build_free(b);
	return err ? err : verity_meta_init(out, raw);
}

int verity_file_adopt_block(int fd, const struct verity_params *params,
			    uint64_t size, const struct verity_digest *trusted,
			    struct verity_file **out)
{
	struct verity_file *f = file_new(fd, -1);
	uint8_t *data = malloc(size <= VERITY_MAX_BLOCK ? size + 1 : 1);
	ssize_t n = 0;
	int err = f && data ? 0 : -ENOMEM;

	if (!err && size > params->block_size)
		err = -EINVAL;
	if (!err)
		n = verity_pread_full(fd, data, size, 0);
	if (n < 0)
		err = (int)n;
	else if (!err && (uint64_t)n < size)
		err = -EBADMSG;
	if (!err)
		err = describe(params, data, size, &f->meta);
	if (!err && !verity_digest_equal(&f->meta.digest, trusted))
		err = -EBADMSG;
	free(data);
	if (!err)
		return file_ready(f, out);
	verity_file_close(f);
	return err;
}

void verity_file_close(struct verity_file *f)
{
	if (!f)
		return;
	for (uint64_t i = 0; f->slot && i < f->tree.geom.tree_blocks; i++)
		free(atomic_load_explicit(&f->slot[i], memory_order_relaxed));
	free(f->slot);
	verity_tree_fini(&f->tree);
	if (f->meta_fd >= 0)
		close(f->meta_fd);
	if (f->fd >= 0)
		close(f->fd);
	free(f);
}

/* Read a hash block that is not kept yet. */
static int fetch_fresh(struct reader *r, unsigned int level, uint64_t slot,
		       struct kept **out)
{
	const struct verity_geom *g = &r->f->tree.geom;
	struct kept *k = malloc(sizeof(*k) + g->block_size);
	ssize_t n;

	if (!k)
		return -ENOMEM;
	n = verity_pread_full(r->f->meta_fd, k->bytes, g->block_size,
			      r->f->meta.tree_pos + (slot << g->block_lg));
	if (n != (ssize_t)g->block_size) {
		free(k);
		return n < 0 ? (int)n : -ENODATA;
	}
	k->slot = slot;
	k->level = level;
	atomic_init(&k->good, 0);
	k->next = r->fresh;
	r->fresh = k;
	*out = k;
	return 0;
}

static int fetch(void *arg, unsigned int level, uint64_t index,
		 struct verity_hblock *out)
{
	struct reader *r = arg;
	uint64_t slot = r->f->tree.geom.first[level] + index;
	struct kept *k;
	int err = 0;

	k = atomic_load_explicit(&r->f->slot[slot], memory_order_acquire);
	for (struct kept *i = r->fresh; i && !k; i = i->next)
		if (i->slot == slot)
			k = i;
	if (!k)
		err = fetch_fresh(r, level, slot, &k);
	if (err)
		return err;
	out->bytes = k->bytes;
	out->good = &k->good;
	return 0;
}

/* Keep a good block, unless another thread was first or the room is gone. */
static void keep_or_free(struct verity_file *f, struct kept *k)
{
	uint32_t size = f->tree.geom.block_size;
	struct kept *none = NULL;
	int room =
		k->level > 1 ||
		atomic_load_explicit(&f->leaves, memory_order_relaxed) + size <=
			LEAF_CACHE;

	if (room && atomic_load_explicit(&k->good, memory_order_relaxed) &&
	    atomic_compare_exchange_strong_explicit(&f->slot[k->slot], &none, k,
						    memory_order_release,
						    memory_order_relaxed)) {
		if (k->level == 1)
			atomic_fetch_add_explicit(&f->leaves, size,
						  memory_order_relaxed);
		return;
	}
	free(k);
}

static void settle_fresh(struct reader *r)
{
	struct kept *next;

	for (struct kept *k = r->fresh; k; k = next) {
		next = k->next;
		k->next = NULL;
		keep_or_free(r->f, k);
	}
	r->fresh = NULL;
}

/* Read [pos, pos + len) of the file; Return: the count, or an error when not
 * even the first block could be read: one bad sector in a span must not cost
 * the blocks before it. */
static ssize_t read_most(struct verity_file *f, uint8_t *buf, uint64_t pos,
			 size_t len)
{
	size_t bs = f->tree.geom.block_size, done = 0;
	ssize_t n = verity_pread_full(f->fd, buf, len, pos);

	if (n >= 0 || len <= bs)
		return n;
	for (; done < len; done += bs) {
		size_t step = len - done < bs ? len - done : bs;

		n = verity_pread_full(f->fd, buf + done, step, pos + done);
		if (n != (ssize_t)step)
			break;
	}
	return done ? (ssize_t)(done < len ? done : len) : n;
}

/* Read whole blocks into @buf, the last zero-filled; Return: blocks whose
 * bytes are all there, or an error. */
static ssize_t read_blocks(struct verity_file *f, uint8_t *buf, uint64_t pos,
			   size_t len)
{
	const struct verity_geom *g = &f->tree.geom;
	uint64_t left = g->data_size - pos;
	size_t want = left < len ? (size_t)left : len;
	ssize_t n = read_most(f, buf, pos, want);

	if (n < 0)
		return n;
	memset(buf + n, 0, len - (size_t)n);
	return (size_t)n == want ? (ssize_t)(len >> g->block_lg)
				 : n >> g->block_lg;
}

/* Check what was read; Return: bytes from @pos that are good, or an error. */
static ssize_t check_blocks(struct verity_file *f, const uint8_t *buf,
			    uint64_t pos, size_t len,
			    struct verity_mismatch *why)
{
	struct reader r = { .f = f };
	struct verity_source src = { fetch, &r };
	struct verity_mismatch bad;
	int err = verity_verify(&f->tree, &src, pos, buf, len, &bad);

	settle_fresh(&r);
	if (err != -EBADMSG)
		return err ? err : (ssize_t)len;
	if (bad.pos > pos)
		return (ssize_t)(bad.pos - pos);
	if (why)
		*why = bad;
	return -EBADMSG;
}

/* Read and check the blocks around [pos, pos + len); Return: good bytes of the
 * span that begins at the block of @pos, or an error. */
static ssize_t read_span(struct verity_file *f, uint8_t *buf, uint64_t pos,
			 size_t len, struct verity_mismatch *why)
{
	const struct verity_geom *g = &f->tree.geom;
	ssize_t n = read_blocks(f, buf, pos, len);

	if (n == 0) {
		verity_mismatch_set(why, g, 0, pos >> g->block_lg, NULL, NULL);
		return -EBADMSG;
	}
	if (n < 0)
		return n;
	return check_blocks(f, buf, pos, (size_t)n << g->block_lg, why);
}

/* One step of a read; at most CHUNK bytes of file, block edges included. */
static ssize_t read_step(struct verity_file *f, uint8_t *scratch, uint8_t *out,
			 size_t len, uint64_t pos, struct verity_mismatch *why)
{
	const struct verity_geom *g = &f->tree.geom;
	uint64_t first = pos & ~(uint64_t)(g->block_size - 1);
	size_t skip = (size_t)(pos - first);
	size_t span =
		(skip + len + g->block_size - 1) & ~(size_t)(g->block_size - 1);
	ssize_t good;

	if (span > CHUNK)
		span = CHUNK;
	good = read_span(f, scratch, first, span, why);
	if (good < 0)
		return good;
	good -= (ssize_t)skip;
	if ((size_t)good > len)
		good = (ssize_t)len;
	memcpy(out, scratch + skip, (size_t)good);
	return good;
}

ssize_t verity_file_read(struct verity_file *f, void *buf, size_t len,
			 uint64_t pos, struct verity_mismatch *why)
{
	uint64_t size = f->tree.geom.data_size;
	struct verity_mismatch bad = { 0 };
	uint8_t *scratch;
	size_t done = 0;
	ssize_t n = 0;

	if (pos >= size || !len)
		return 0;
	if (len > size - pos)
		len = (size_t)(size - pos);
	scratch = malloc(CHUNK);
	if (!scratch)
		return -ENOMEM;
	while (done < len) {
		n = read_step(f, scratch, (uint8_t *)buf + done, len - done,
			      pos + done, &bad);
		if (n < 0)
			break;
		done += (size_t)n;
	}
	free(scratch);
	if (done)
		return (ssize_t)done;
	if (n == -EBADMSG && why)
		*why = bad;
	return n;
}

uint64_t verity_file_size(const struct verity_file *f)
{
	return f->tree.geom.data_size;
}

void verity_file_digest(const struct verity_file *f, struct verity_digest *out)
{
	*out = f->meta.digest;
}

void verity_file_params(const struct verity_file *f, struct verity_params *out)
{
	*out = f->meta.desc.params;
}
