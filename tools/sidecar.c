/* SPDX-License-Identifier: MIT */
/* Sidecars, written as the tree is built.  Layer: tools. */
#include "tools/sidecar.h"

#include "merkle/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where hash blocks go; shared by all threads that build, read-only. */
struct sink {
	int fd;
	uint64_t tree_pos;
	struct verity_geom geom;
};

static int load_signature(struct old_sidecar *o, int fd)
{
	uint32_t n = o->meta.sig_size;

	o->sig = malloc(n);
	if (!o->sig)
		return -ENOMEM;
	if (verity_pread_full(fd, o->sig, n, VERITY_META_HEAD) != (ssize_t)n)
		o->sound = false;
	return 0;
}

int old_sidecar_load(struct old_sidecar *o, int dir, const char *path)
{
	int fd = verity_open_beneath(dir, path, O_RDONLY), err = 0;

	memset(o, 0, sizeof(*o));
	if (fd < 0)
		return 0;
	o->sound = verity_meta_read(fd, NULL, &o->meta, NULL) == 0;
	if (o->sound && o->meta.sig_size)
		err = load_signature(o, fd);
	close(fd);
	return err;
}

void old_sidecar_free(struct old_sidecar *o)
{
	free(o->sig);
	memset(o, 0, sizeof(*o));
}

bool old_sidecar_is(const struct old_sidecar *o,
		    const struct verity_digest *digest)
{
	return o->sound && verity_digest_equal(&o->meta.digest, digest);
}

static int put_blocks(void *arg, unsigned int level, uint64_t index,
		      size_t count, const void *blocks)
{
	const struct sink *k = arg;

	return store_write(k->fd, blocks, count << k->geom.block_lg,
			   k->tree_pos + geom_offset(&k->geom, level, index));
}

static int put_head(int fd, const struct verity_meta *m, const uint8_t *sig)
{
	uint8_t head[VERITY_META_HEAD];
	int err;

	verity_meta_encode(m, head);
	err = store_write(fd, head, sizeof(head), 0);
	if (!err && m->sig_size)
		err = store_write(fd, sig, m->sig_size, sizeof(head));
	return err;
}

/* Hash into an open store, with room for @old's signature; NULL: none. */
static int write_into(struct store *s, const struct hashfile *what,
		      const struct old_sidecar *old, struct verity_meta *meta)
{
	struct hashfile h = *what;
	uint32_t sig_size = old ? old->meta.sig_size : 0;
	struct sink k = { .fd = s->fd,
			  .tree_pos = verity_meta_tree_pos(sig_size) };
	uint8_t raw[VERITY_DESC_SIZE];
	struct verity_digest digest;
	int err = verity_geom_init(&k.geom, &h.params, h.size, NULL);

	if (err)
		return err;
	h.emit = put_blocks;
	h.emit_arg = &k;
	err = hashfile_run(&h, &digest, raw);
	if (!err)
		err = verity_meta_init(meta, raw);
	if (err)
		return err;
	if (old && !old_sidecar_is(old, &digest))
		return -EAGAIN;
	if (old)
		verity_meta_sign(meta, old->meta.sig_type, sig_size);
	return put_head(s->fd, meta, old ? old->sig : NULL);
}

/* A signed sidecar is tried with room for its signature first.  If the file
 * is another by now the signature is void, and the tree may belong elsewhere:
 * that rare case hashes twice. */
int sidecar_write(struct store *s, int dir, const struct hashfile *h,
		  const struct old_sidecar *old, struct verity_meta *meta)
{
	bool keep = old && old->sound && old->sig;
	int err = store_begin(s, dir);

	if (err)
		return err;
	err = write_into(s, h, keep ? old : NULL, meta);
	if (err == -EAGAIN && keep) {
		err = ftruncate(s->fd, 0) < 0 ? -errno : 0;
		if (!err)
			err = write_into(s, h, NULL, meta);
	}
	if (err)
		store_abort(s);
	return err;
}
