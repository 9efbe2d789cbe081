/* SPDX-License-Identifier: MIT */
/* A file's digest and tree, its parts spread over cores.  Layer: tools. */
#include "tools/hashfile.h"

#include "merkle/desc.h"
#include "tools/progress.h"
#include "tools/source.h"
#include "tools/spread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Parts small enough that cores finish together, large enough that a part's
 * cost is its bytes; at most so many that their digests stay small. */
#define PART_LEAST ((uint64_t)512 << 10)
#define PARTS_MOST 65536U

/* Bytes hashed, and counted as progress, at once. */
#define WINDOW ((size_t)1 << 20)

/* Bytes read at once from a pipe. */
#define STREAM_BYTES 262144U

struct work {
	const struct hashfile *h;
	struct verity_geom geom;
	struct verity_split split;
	struct source src;
	uint8_t *digests;                       /* of all parts, in order */
	struct verity_build *build[SPREAD_MAX]; /* each worker's own */
	struct window window[SPREAD_MAX];
};

void hashfile_split(struct verity_split *s, const struct verity_geom *g)
{
	verity_split_init(s, g, PART_LEAST, PARTS_MOST);
}

/* Hash [pos, pos + len), which is data. */
static int add_data(struct work *w, unsigned int worker, uint64_t pos,
		    uint64_t len)
{
	struct window *win = &w->window[worker];
	int err = 0, lost;

	while (len && !err) {
		size_t n = len < WINDOW ? (size_t)len : WINDOW;
		const uint8_t *data;

		if (spread_stopped())
			return -EINTR;
		err = source_read(&w->src, win, pos, n, &data);
		if (err)
			break;
		err = verity_build_add(w->build[worker], data, n);
		lost = source_check(&w->src, win);
		if (!err)
			err = lost;
		progress_add(n);
		pos += n;
		len -= n;
	}
	return err;
}

/* Hash one part, its holes without reading them. */
static int hash_range(struct work *w, unsigned int worker, uint64_t pos,
		      uint64_t end)
{
	int err = 0;

	while (pos < end && !err) {
		uint64_t len;

		if (source_extent(&w->src, pos, end, &len)) {
			err = add_data(w, worker, pos, len);
		} else {
			err = verity_build_zero(w->build[worker], len);
			progress_add(len);
		}
		pos += len;
	}
	return err;
}

static int worker_init(struct work *w, unsigned int worker)
{
	const struct hashfile *h = w->h;

	if (w->build[worker])
		return 0;
	return verity_build_new(&h->params, h->emit, h->emit_arg,
				&w->build[worker]);
}

static int hash_part(void *arg, unsigned int worker, uint64_t part)
{
	struct work *w = arg;
	uint64_t block = part * w->split.part_blocks;
	uint64_t pos = block << w->geom.block_lg;
	uint64_t end = w->h->size,
		 step = w->split.part_blocks << w->geom.block_lg;
	int err = worker_init(w, worker);

	if (err)
		return err;
	if (end - pos > step)
		end = pos + step;
	verity_build_seek(w->build[worker], block);
	err = hash_range(w, worker, pos, end);
	if (!err)
		err = verity_build_part_end(w->build[worker], w->split.level,
					    w->digests +
						    part * w->geom.digest_size);
	return err;
}

static int join(struct work *w, struct verity_digest *digest, uint8_t *desc)
{
	struct verity_desc d = { .params = w->h->params,
				 .data_size = w->h->size };
	uint8_t raw[VERITY_DESC_SIZE];
	int err = worker_init(w, 0);

	if (!err)
		err = verity_build_join(w->build[0], &w->geom, &w->split,
					w->digests, d.root);
	if (err)
		return err;
	verity_desc_encode(&d, raw);
	if (desc)
		memcpy(desc, raw, sizeof(raw));
	return verity_desc_digest(raw, digest);
}

/* A file cut in the middle of a page gives zeros there and no signal, so the
 * size is looked at once more. */
static int still_whole(const struct hashfile *h)
{
	struct stat st;

	if (fstat(h->fd, &st) < 0)
		return -errno;
	return (uint64_t)st.st_size < h->size ? -ENODATA : 0;
}

int hashfile_run(const struct hashfile *h, struct verity_digest *digest,
		 uint8_t *desc)
{
	struct work *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	w->h = h;
	err = verity_geom_init(&w->geom, &h->params, h->size, NULL);
	if (err)
		goto out;
	hashfile_split(&w->split, &w->geom);
	source_init(&w->src, h->fd, h->size, h->blocks512, h->threads);
	w->digests = h->digests;
	if (!w->digests)
		w->digests = malloc(w->split.parts * w->geom.digest_size + 1);
	err = w->digests ? 0 : -ENOMEM;
	if (!err)
		err = spread_run(h->threads, w->split.parts, hash_part, w);
	if (!err)
		err = still_whole(h);
	if (!err)
		err = join(w, digest, desc);
out:
	for (unsigned int i = 0; i < SPREAD_MAX; i++) {
		verity_build_free(w->build[i]);
		window_free(&w->window[i]);
	}
	if (w->digests != h->digests)
		free(w->digests);
	free(w);
	return err;
}

int hashfile_stream(int fd, const struct verity_params *params,
		    verity_emit_fn emit, void *emit_arg,
		    struct verity_digest *digest, uint8_t *desc)
{
	struct verity_build *b = NULL;
	uint8_t *buf = malloc(STREAM_BYTES);
	int err = buf ? verity_build_new(params, emit, emit_arg, &b) : -ENOMEM;

	while (!err) {
		ssize_t n = read(fd, buf, STREAM_BYTES);

		if (spread_stopped())
			err = -EINTR;
		else if (n < 0 && errno != EINTR)
			err = -errno;
		if (n == 0 || err)
			break;
		if (n < 0)
			continue;
		err = verity_build_add(b, buf, (size_t)n);
		progress_add((uint64_t)n);
	}
	if (!err)
		err = verity_build_end(b, digest, desc);
	verity_build_free(b);
	free(buf);
	return err;
}
