/* SPDX-License-Identifier: MIT */
/* time-limit: 300
 * Flip any one bit of a sealed file or of its sidecar: just the blocks that
 * it vouches for are refused, and all others read byte for byte. */
#include "merkle/meta.h"
#include "merkle/verify.h"
#include "t/data.h"
#include "t/memseal.h"
#include "t/tap.h"
#include "t/tmpdir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Two levels over 1 KiB blocks: 32 data blocks under the first leaf, 8 under
 * the second; the last holds 500 bytes. */
enum {
	BS = 1024,
	BLOCKS = 40,
	SIZE = BLOCKS * BS - 524,
	TREE_BLOCKS = 3,
	SIG_SIZE = 70,
	META_ROOM = VERITY_META_ALIGN + TREE_BLOCKS * BS
};

static uint8_t data[BLOCKS * BS], tree[TREE_BLOCKS * BS], meta[META_ROOM];
static _Atomic(uint8_t) good[TREE_BLOCKS];
static struct verity_digest digest;
static struct verity_meta m;
static struct verity_tree t;

/* Under emulation most flips are checked on their own block alone, and one of
 * the eight in each byte on the whole file; elsewhere each is on both. */
static bool emulated;

static bool whole(size_t byte, int bit)
{
	return !emulated || (byte & 7) == (size_t)bit;
}

static void seal(void)
{
	struct memseal s = { .p = { VERITY_SHA256, BS, 4, { 1, 2, 3 } },
			     .data = data,
			     .size = SIZE,
			     .tree = tree,
			     .room = sizeof(tree),
			     .stride = BS };

	pattern(data, SIZE);
	memseal(&s);
	digest = s.digest;
	if (verity_meta_init(&m, s.raw) || verity_tree_init(&t, &m.desc))
		bail("cannot seal");
	if (m.tree_size != sizeof(tree) || t.geom.levels != 2)
		bail("not the shape that this test is about");
}

/*
 * In memory: data and tree.
 */
static int fetch(void *arg, unsigned int level, uint64_t index,
		 struct verity_hblock *out)
{
	uint64_t slot = t.geom.first[level] + index;

	(void)arg;
	*out = (struct verity_hblock){ tree + slot * BS, &good[slot] };
	return 0;
}

/* Check [from, to) as if the file had just been opened. */
static int check(size_t from, size_t to, struct verity_mismatch *why)
{
	const struct verity_source src = { fetch, NULL };

	for (size_t i = 0; i < TREE_BLOCKS; i++)
		atomic_store_explicit(&good[i], 0, memory_order_relaxed);
	return verity_verify(&t, &src, from * BS, data + from * BS,
			     (to - from) * BS, why);
}

/* Return: is just [from, to) refused, by the hash at this place? */
static bool refused(size_t from, size_t to, unsigned int level, uint64_t index)
{
	struct verity_mismatch why = { 0 };

	for (size_t i = from; i < to; i++)
		if (check(i, i + 1, &why) != -EBADMSG || why.pos != i * BS ||
		    why.level != level || why.index != index)
			return false;
	return !check(0, from, NULL) && !check(to, BLOCKS, NULL);
}

static bool refused_here(size_t block)
{
	struct verity_mismatch why = { 0 };

	return check(block, block + 1, &why) == -EBADMSG &&
	       why.pos == block * BS && why.level == 0 && why.index == block;
}

static void flip_data(void)
{
	unsigned long tried = 0, missed = 0;

	for (size_t i = 0; i < SIZE; i++)
		for (int bit = 0; bit < 8; bit++, tried++) {
			size_t block = i / BS;

			data[i] ^= (uint8_t)(1 << bit);
			missed += whole(i, bit)
					  ? !refused(block, block + 1, 0, block)
					  : !refused_here(block);
			data[i] ^= (uint8_t)(1 << bit);
		}
	diag("%lu bits of data flipped", tried);
	is_uint(missed, 0,
		"a flipped bit of data costs its own block, and that alone");
	is_uint(tried, 8UL * SIZE, "and there is no other bit");
}

/* The tree lies root first: the root block, then two leaves. */
static void flip_tree(void)
{
	static const struct {
		size_t from, to;
		unsigned int level;
		uint64_t index;
	} costs[TREE_BLOCKS] = { { 0, BLOCKS, 2, 0 },
				 { 0, 32, 1, 0 },
				 { 32, BLOCKS, 1, 1 } };
	unsigned long missed[TREE_BLOCKS] = { 0 };

	for (size_t i = 0; i < sizeof(tree); i++)
		for (int bit = 0; bit < 8; bit++) {
			size_t b = i / BS;

			if (emulated && !whole(i, bit))
				continue;
			tree[i] ^= (uint8_t)(1 << bit);
			missed[b] += !refused(costs[b].from, costs[b].to,
					      costs[b].level, costs[b].index);
			tree[i] ^= (uint8_t)(1 << bit);
		}
	diag("%zu bits of tree flipped",
	     emulated ? sizeof(tree) : 8 * sizeof(tree));
	is_uint(missed[0], 0, "one in the root block costs the whole file");
	is_uint(missed[1], 0, "one in a leaf costs what is under that leaf");
	is_uint(missed[2], 0,
		"padding within a hash block is as good as hashes");
}

/*
 * On disk: everything in the sidecar before the tree.
 */
static char data_path[4200], meta_path[4200];
static int meta_fd = -1;

static void write_all(int fd, const void *bytes, size_t len, off_t pos)
{
	if (pwrite(fd, bytes, len, pos) != (ssize_t)len)
		bail("cannot write");
}

static void make_files(void)
{
	const char *dir = tmpdir();
	int fd;

	snprintf(data_path, sizeof(data_path), "%s/data", dir);
	snprintf(meta_path, sizeof(meta_path), "%s/data.fsv_meta", dir);
	fd = open(data_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	meta_fd = open(meta_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	write_all(fd, data, SIZE, 0);
	close(fd);
}

/* A head with a signature of @sig_size bytes; the descriptor may know it. */
static void make_sidecar(uint32_t type, uint32_t sig_size, uint32_t in_desc)
{
	m.sig_type = type;
	m.sig_size = sig_size;
	m.desc.sig_size = in_desc;
	verity_desc_encode(&m.desc, m.raw);
	memset(meta, 0, sizeof(meta));
	verity_meta_encode(&m, meta);
	memset(meta + VERITY_META_HEAD, 0x51, sig_size);
	memcpy(meta + VERITY_META_ALIGN, tree, sizeof(tree));
	write_all(meta_fd, meta, sizeof(meta), 0);
}

/* Open with the trusted digest and read it all; Return: 0 or an error */
static int read_all(void)
{
	static uint8_t got[SIZE];
	struct verity_file *f;
	ssize_t n;
	int err = verity_file_open(data_path, NULL, &digest, &f, NULL);

	if (err)
		return err;
	n = verity_file_read(f, got, SIZE, 0, NULL);
	verity_file_close(f);
	return n == SIZE && !memcmp(got, data, SIZE) ? 0 : -ECANCELED;
}

static int flip_and_read(size_t byte, int bit)
{
	uint8_t flipped = meta[byte] ^ (uint8_t)(1 << bit);
	int err;

	write_all(meta_fd, &flipped, 1, (off_t)byte);
	err = read_all();
	write_all(meta_fd, &meta[byte], 1, (off_t)byte);
	return err;
}

/* The descriptor's digest covers all of it but its sig_size; that and the rest
 * of the head must agree with each other. */
static int due_error(size_t byte, int bit, uint32_t sig_size)
{
	size_t field = byte >= 264 ? 264 : byte >= 8 && byte < 12 ? 8 : 0;

	if (!field)
		return byte < 4 || byte >= 260 ? -EINVAL : -EBADMSG;
	sig_size ^= 1U << (8 * (byte - field) + (unsigned int)bit);
	return sig_size > VERITY_MAX_SIG ? -EMSGSIZE : -EINVAL;
}

static void flip_head(uint32_t type, uint32_t sig_size)
{
	unsigned long wrong = 0, tried = 0;

	make_sidecar(type, sig_size, sig_size);
	is_int(read_all(), 0, "signature type %u, %u bytes: it reads", type,
	       sig_size);
	for (size_t i = 0; i < VERITY_META_HEAD; i++)
		for (int bit = 0; bit < 8; bit++, tried++)
			wrong += flip_and_read(i, bit) !=
				 due_error(i, bit, sig_size);
	diag("%lu bits of head flipped", tried);
	is_uint(wrong, 0, "with a bit of the head flipped it does not open");
}

/* Where the descriptor does not know the signature's size, nothing vouches
 * for that: up to the next multiple of 4096 it may be any. */
static void flip_sig_size(void)
{
	unsigned long wrong = 0;

	make_sidecar(VERITY_SIG_PKCS7, SIG_SIZE, 0);
	for (unsigned int bit = 0; bit < 32; bit++) {
		uint64_t end = VERITY_META_HEAD + (SIG_SIZE ^ 1ULL << bit);
		int due = end > VERITY_META_HEAD + VERITY_MAX_SIG ? -EMSGSIZE
			  : end > VERITY_META_ALIGN               ? -EINVAL
								  : 0;

		wrong += flip_and_read(264 + bit / 8, (int)(bit % 8)) != due;
	}
	is_uint(wrong, 0,
		"a signature size that moves the tree is refused, and"
		" another changes no byte that is read");
}

/* Signature and padding are no part of what is trusted. */
static void flip_uncovered(void)
{
	unsigned long wrong = 0, tried = 0;

	make_sidecar(VERITY_SIG_RAW, SIG_SIZE, SIG_SIZE);
	for (size_t i = VERITY_META_HEAD; i < VERITY_META_ALIGN; i++)
		for (int bit = 0; bit < 8; bit++) {
			if (emulated && !whole(i, bit))
				continue;
			wrong += flip_and_read(i, bit) != 0;
			tried++;
		}
	diag("%lu bits of signature and padding flipped", tried);
	is_uint(wrong, 0,
		"a flipped bit of signature or padding changes "
		"nothing");
}

int main(void)
{
	const char *emulator = getenv("EMULATOR");

	plan(2 + 3 + 4 * 2 + 1 + 1);
	emulated = emulator && *emulator;
	seal();
	flip_data();
	flip_tree();
	make_files();
	flip_head(VERITY_SIG_NONE, 0);
	flip_head(VERITY_SIG_PKCS7, SIG_SIZE);
	flip_head(VERITY_SIG_RAW, SIG_SIZE);
	flip_head(VERITY_SIG_RAW, VERITY_META_ALIGN - VERITY_META_HEAD);
	flip_sig_size();
	flip_uncovered();
	close(meta_fd);
	verity_tree_fini(&t);
	return done();
}
