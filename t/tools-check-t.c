/* SPDX-License-Identifier: MIT */
/*
 * A check rests on bytes that it hashed, not on what the storage said of them:
 * storage that shows another tree at the second look than at the first gets
 * nothing blessed.
 *
 * Before, a part whose stored hash blocks had been equal to the built ones was
 * stepped over, though the equal ones were another tree's.
 */
#include "t/tap.h"
#include "tools/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIZE = 3 << 20, TREE = 65536, SIDECAR = 4096 + TREE, LOOKS = 64 };

static uint8_t good[SIZE], evil[SIZE], good_tree[TREE], evil_tree[TREE];

/* The sidecar's descriptor, and at which positions it was looked at. */
static int two_faced = -1;
static off_t seen[LOOKS];
static size_t looks;

static bool looked_before(off_t pos)
{
	for (size_t i = 0; i < looks; i++)
		if (seen[i] == pos)
			return true;
	if (looks == LOOKS)
		bail("more looks than planned for");
	seen[looks++] = pos;
	return false;
}

/* In the C library's place, for everything that is linked here. */
ssize_t pread(int fd, void *buf, size_t len, off_t pos)
{
	if (fd != two_faced || pos < 4096)
		return syscall(SYS_pread64, fd, buf, len, pos);
	memcpy(buf, (looked_before(pos) ? good_tree : evil_tree) + pos - 4096,
	       len);
	return (ssize_t)len;
}

struct sink {
	uint8_t *tree;
	struct verity_params params;
};

static int put(void *arg, unsigned int level, uint64_t index, size_t count,
	       const void *blocks)
{
	const struct sink *s = arg;
	uint64_t at;

	if (verity_tree_offset(&s->params, SIZE, level, index, &at))
		return -1;
	memcpy(s->tree + at, blocks, count * s->params.block_size);
	return 0;
}

static void build(const uint8_t *data, uint8_t *tree, uint8_t *desc)
{
	struct sink s = { tree, VERITY_PARAMS_DEFAULT };
	struct verity_digest digest;
	struct verity_build *b;

	if (verity_build_new(&s.params, put, &s, &b) ||
	    verity_build_add(b, data, SIZE) ||
	    verity_build_end(b, &digest, desc))
		bail("no tree to test with");
	verity_build_free(b);
}

static int temporary(const void *bytes, size_t len)
{
	char name[] = "check.XXXXXX";
	int fd = mkstemp(name);

	if (fd < 0 || unlink(name) || write(fd, bytes, len) != (ssize_t)len)
		bail("no file to test with");
	return fd;
}

static void check(struct verdict *v, const uint8_t *data,
		  const struct verity_meta *meta, int meta_fd)
{
	struct check_file f = { .path = "file",
				.fd = temporary(data, SIZE),
				.meta_fd = meta_fd,
				.meta = meta,
				.threads = 1 };

	*v = (struct verdict){ 0 };
	check_file_run(&f, v);
	close(f.fd);
}

int main(void)
{
	static uint8_t sidecar[SIDECAR];
	uint8_t desc[VERITY_DESC_SIZE], other[VERITY_DESC_SIZE];
	struct verity_meta meta;
	struct verdict v;
	int fd;

	plan(5);
	for (size_t i = 0; i < SIZE; i++)
		good[i] = (uint8_t)(i % 251);
	memcpy(evil, good, SIZE);
	evil[SIZE / 2] ^= 1;
	build(good, good_tree, desc);
	build(evil, evil_tree, other);
	if (verity_meta_init(&meta, desc))
		bail("no sidecar to test with");
	memcpy(sidecar + 4096, good_tree, TREE);
	fd = temporary(sidecar, SIDECAR);

	check(&v, good, &meta, fd);
	is_int(v.status, 0, "good data under a good tree passes");
	verity_text_free(&v.lines);
	check(&v, evil, &meta, fd);
	is_int(v.status, 1, "evil data under a good tree does not");
	is_int((long long)v.bad, 1, "and its one block is found");
	verity_text_free(&v.lines);

	two_faced = fd;
	check(&v, evil, &meta, fd);
	ok(v.status != 0, "nor under one that is evil at the first look only");
	verity_text_free(&v.lines);
	looks = 0;
	check(&v, good, &meta, fd);
	ok(v.status != 0, "good data is not passed over such a tree either");
	verity_text_free(&v.lines);
	close(fd);
	return done();
}
