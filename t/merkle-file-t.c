/* SPDX-License-Identifier: MIT */
/* A sealed file gives its own bytes or an error, never others: from any
 * thread, at any range, whatever happens to the disk under it. */
#include "merkle/file.h"
#include "t/data.h"
#include "t/memseal.h"
#include "t/odd_disk.h"
#include "t/tap.h"
#include "t/tmpdir.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What one leaf hash block covers, of 1 KiB blocks and SHA-256. */
#define LEAF_BYTES 32768ULL

enum { MAX_SIZE = 1200000, THREADS = 8, READS = 60 };

/* A file and its sidecar, as they ought to be on disk. */
struct sealed {
	struct verity_params p;
	size_t size, meta_size;
	uint8_t data[MAX_SIZE];
	uint8_t meta[MAX_SIZE];
	struct verity_meta m;
	struct verity_digest digest;
};

static struct sealed s;
static uint8_t buf[MAX_SIZE + 10];
static char data_path[4200], meta_path[4200], other_path[4200];
static uint64_t seed = 2463534242;

static void make_dir(void)
{
	const char *dir = tmpdir();

	snprintf(data_path, sizeof(data_path), "%s/data", dir);
	snprintf(meta_path, sizeof(meta_path), "%s/data.fsv_meta", dir);
	snprintf(other_path, sizeof(other_path), "%s/other", dir);
}

static void put(const char *path, const void *bytes, size_t len, off_t pos)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || pwrite(fd, bytes, len, pos) != (ssize_t)len || close(fd))
		bail("cannot write %s", path);
}

/* All of both files, and no more, as sealed. */
static void restore(void)
{
	put(data_path, s.data, s.size, 0);
	put(meta_path, s.meta, s.meta_size, 0);
	if (truncate(data_path, (off_t)s.size) ||
	    truncate(meta_path, (off_t)s.meta_size))
		bail("cannot truncate");
}

static void seal(uint32_t alg, uint32_t bs, uint32_t salt_size, size_t size)
{
	struct memseal m = { .p = { alg, bs, salt_size, { 0 } },
			     .data = s.data,
			     .size = size,
			     .tree = s.meta + VERITY_META_ALIGN,
			     .room = sizeof(s.meta) - VERITY_META_ALIGN,
			     .stride = bs };

	memset(&s, 0, sizeof(s));
	memset(m.p.salt, 0x5c, salt_size);
	pattern(s.data, size);
	memseal(&m);
	if (verity_meta_init(&s.m, m.raw))
		bail("no sidecar for %zu bytes", size);
	s.p = m.p;
	s.size = size;
	s.digest = m.digest;
	verity_meta_encode(&s.m, s.meta);
	s.meta_size = verity_meta_size(&s.m);
	restore();
}

static struct verity_file *must_open(void)
{
	struct verity_file *f;

	if (verity_file_open(data_path, NULL, &s.digest, &f, NULL))
		bail("cannot open what was sealed");
	return f;
}

/* A read gives just what is in the file from @pos on, up to its end. */
static bool reads(struct verity_file *f, uint8_t *to, size_t len, uint64_t pos)
{
	size_t want = pos >= s.size        ? 0
		      : len < s.size - pos ? len
					   : (size_t)(s.size - pos);

	memset(to, 0xee, len);
	return verity_file_read(f, to, len, pos, NULL) == (ssize_t)want &&
	       (!want || !memcmp(to, s.data + pos, want));
}

static const struct {
	uint32_t alg, bs, salt_size;
	size_t size;
} shape[] = { { 1, 4096, 0, 0 },         { 1, 4096, 0, 1 },
	      { 1, 4096, 0, 4096 },      { 1, 4096, 0, 4097 },
	      { 1, 1024, 5, 70000 },     { 2, 512, 32, 300001 },
	      { 1, 4096, 0, 700000 },    { 1, 65536, 0, 300000 },
	      { 2, 65536, 1, MAX_SIZE }, { 2, 4096, 0, 524288 } };

static void test_bytes(struct verity_file *f, const char *name)
{
	unsigned int wrong = 0;

	ok(reads(f, buf, s.size + 1, 0), "%s: a whole read gives the file",
	   name);
	for (int i = 0; i < 200; i++) {
		uint64_t pos = rnd(&seed) % (s.size + 20);
		size_t len = rnd(&seed) % (i % 2 ? s.size + 5 : 5000);

		wrong += !reads(f, buf, len, pos);
	}
	is_uint(wrong, 0, "%s: so does a read of any range", name);
	ok(reads(f, buf, 10, s.size) && reads(f, buf, 10, UINT64_MAX) &&
		   reads(f, buf, 0, 0),
	   "%s: past the end there is nothing", name);
}

static void test_shape(size_t i)
{
	struct verity_digest digest;
	struct verity_params p;
	struct verity_file *f;
	char name[80];

	seal(shape[i].alg, shape[i].bs, shape[i].salt_size, shape[i].size);
	snprintf(name, sizeof(name), "%s/%u, salt of %u, %zu bytes",
		 verity_alg_name(s.p.alg), s.p.block_size, s.p.salt_size,
		 s.size);
	f = must_open();
	test_bytes(f, name);
	verity_file_digest(f, &digest);
	verity_file_params(f, &p);
	ok(verity_file_size(f) == s.size &&
		   !memcmp(&digest, &s.digest, sizeof(digest)) &&
		   !memcmp(&p, &s.p, sizeof(p)),
	   "%s: its size, digest and parameters are known", name);
	verity_file_close(f);
}

/* Refusals at open.  Return: as verity_file_open(), which must not succeed */
static int refused(const struct verity_digest *trusted,
		   struct verity_complaint *why)
{
	struct verity_file *f = (void *)&s, *before = f;
	int err = verity_file_open(data_path, NULL, trusted, &f, why);

	if (f != before) {
		verity_file_close(f);
		return 0;
	}
	return err;
}

static void test_trust(void)
{
	struct verity_digest other;
	struct verity_file *f;

	seal(VERITY_SHA256, 4096, 0, 70000);
	ok(!verity_file_open(data_path, meta_path, NULL, &f, NULL) &&
		   reads(f, buf, 70000, 0),
	   "without a trusted digest the sidecar is taken at its word");
	verity_file_close(f);
	other = s.digest;
	other.bytes[31] ^= 1;
	is_int(refused(&other, NULL), -EBADMSG, "another digest is refused");
	other = s.digest;
	other.alg = VERITY_SHA512;
	is_int(refused(&other, NULL), -EBADMSG,
	       "so is one of another algorithm");
	put(meta_path, "\x09", 1, 0);
	other = s.digest;
	other.bytes[0] ^= 1;
	is_int(refused(&other, NULL), -EBADMSG,
	       "and before anything else in the sidecar is looked at");
	put(meta_path, "\x09", 1, 5);
	is_int(refused(&s.digest, NULL), -EBADMSG,
	       "a descriptor of an unknown algorithm has no digest to trust");
	restore();
}

static void test_no_sidecar(void)
{
	struct verity_complaint why = { 0 };

	put(meta_path, "\x02", 1, 0);
	ok(refused(NULL, &why) == -EINVAL && why.field &&
		   !strcmp(why.field, "version") && why.value == 2,
	   "a malformed sidecar is refused and the field named");
	restore();
	if (truncate(meta_path, (off_t)s.meta_size - 1))
		bail("cannot truncate");
	ok(refused(&s.digest, &why) == -EINVAL &&
		   !strcmp(why.field, "sidecar size") &&
		   why.value == s.meta_size - 1 && why.limit == s.meta_size,
	   "so is one that is a byte short");
	unlink(meta_path);
	is_int(refused(NULL, NULL), -ENODATA, "no sidecar is -ENODATA");
	restore();
	unlink(data_path);
	is_int(refused(NULL, NULL), -ENOENT, "no file is -ENOENT");
	restore();
}

static int open_path(const char *data, const char *meta)
{
	struct verity_complaint why = { 0 };
	struct verity_file *f;
	int err = verity_file_open(data, meta, NULL, &f, &why);

	if (!err)
		verity_file_close(f);
	return err;
}

static void test_odd_files(void)
{
	if (mkfifo(other_path, 0600))
		bail("no FIFO");
	is_int(open_path(other_path, meta_path), -EINVAL,
	       "a FIFO is refused, not waited for");
	is_int(open_path(data_path, other_path), -EINVAL, "as a sidecar too");
	unlink(other_path);
	if (mkdir(other_path, 0700))
		bail("no directory");
	is_int(open_path(other_path, meta_path), -EISDIR,
	       "a directory is refused");
	is_int(open_path(data_path, other_path), -EINVAL, "as a sidecar too");
	rmdir(other_path);
}

static ssize_t read_at(struct verity_file *f, uint64_t pos, size_t len,
		       struct verity_mismatch *why)
{
	*why = (struct verity_mismatch){ .pos = 77, .level = 77 };
	return verity_file_read(f, buf, len, pos, why);
}

/* Blocks of 1 KiB, bytes 0 to 300000: two reads of 256 KiB.  @bad is damaged
 * before the file is first read. */
static void test_bad_block(uint64_t bad)
{
	const size_t bs = 1024;
	struct verity_mismatch why;
	struct verity_file *f;
	uint64_t pos = bad * bs;
	uint8_t byte;

	seal(VERITY_SHA256, (uint32_t)bs, 0, 300000);
	byte = s.data[pos + 13] ^ 0x20;
	put(data_path, &byte, 1, (off_t)pos + 13);
	f = must_open();
	is_int(read_at(f, 5, s.size, &why), pos ? (ssize_t)pos - 5 : -EBADMSG,
	       "block %llu bad: a read gives the good bytes before it",
	       (unsigned long long)bad);
	ok(!pos || (!memcmp(buf, s.data + 5, pos - 5) && why.pos == 77),
	   "the right ones, and no report with them");
	ok(read_at(f, pos, 1, &why) == -EBADMSG && why.pos == pos &&
		   why.level == 0 && why.index == bad && why.size == 32 &&
		   memcmp(why.want, why.got, 32) != 0,
	   "a read of its first byte is refused, and says so");
	is_int(read_at(f, pos + 14, 5000, &why), -EBADMSG,
	       "so is one of its good bytes");
	ok(reads(f, buf, s.size, pos + bs), "all after it can be read");
	put(data_path, s.data + pos, bs, (off_t)pos);
	ok(reads(f, buf, s.size, 0), "repaired on disk, it is whole again");
	verity_file_close(f);
}

/* A bad block of the tree, at a level and index. */
static void test_bad_tree(unsigned int level, uint64_t index, uint64_t from)
{
	struct verity_mismatch why;
	struct verity_file *f;
	uint8_t byte;
	uint64_t at;

	seal(VERITY_SHA256, 1024, 0, 300000);
	if (verity_tree_offset(&s.p, s.size, level, index, &at))
		bail("no such block");
	at += s.m.tree_pos;
	byte = s.meta[at] ^ 1;
	put(meta_path, &byte, 1, (off_t)at);
	f = must_open();
	ok(!from || (reads(f, buf, from, 0) &&
		     read_at(f, 0, s.size, &why) == (ssize_t)from),
	   "hash block %llu of level %u bad: what lies before it is read",
	   (unsigned long long)index, level);
	ok(read_at(f, from, 1, &why) == -EBADMSG && why.pos == from &&
		   why.level == level && why.index == index && why.size == 32,
	   "what lies under it is refused, and the block is told");
	put(meta_path, s.meta + at, 1, (off_t)at);
	ok(reads(f, buf, s.size, 0), "repaired on disk, it is whole again");
	verity_file_close(f);
}

static void test_short(void)
{
	struct verity_mismatch why;
	struct verity_file *f;

	seal(VERITY_SHA256, 4096, 0, 70000);
	f = must_open();
	if (truncate(data_path, 12288 + 1))
		bail("cannot truncate");
	is_int(read_at(f, 100, 70000, &why), 12288 - 100,
	       "a file cut short gives its whole blocks");
	ok(read_at(f, 12288, 1, &why) == -EBADMSG && why.pos == 12288 &&
		   why.index == 3 && why.level == 0 && why.size == 0,
	   "the block that was cut is reported missing");
	is_int(read_at(f, 60000, 1, &why), -EBADMSG, "so is one past the cut");
	restore();
	ok(reads(f, buf, 70000, 0), "with the bytes back, it is whole again");
	put(data_path, "more", 4, 70000);
	ok(reads(f, buf, 70100, 0), "bytes past the sealed size are not shown");
	verity_file_close(f);
	restore();
	f = must_open();
	if (truncate(meta_path, (off_t)s.m.tree_pos + 4095))
		bail("cannot truncate");
	ok(read_at(f, 5000, 1, &why) == -EBADMSG && why.level == 1 &&
		   why.pos == 4096 && why.size == 0,
	   "a tree cut short is reported missing");
	restore();
	ok(reads(f, buf, 70000, 0), "with the tree back, it is whole again");
	verity_file_close(f);
}

static void test_bad_sector(void)
{
	struct verity_mismatch why;
	struct verity_file *f;

	seal(VERITY_SHA256, 1024, 0, 300000);
	f = must_open();
	disk.bad_sector = 204800 + 700;
	is_int(read_at(f, 10, s.size, &why), 204800 - 10,
	       "a bad sector does not cost the blocks before it");
	ok(read_at(f, 204800, 1, &why) == -EIO && why.pos == 77,
	   "its block is unreadable, which is no mismatch");
	ok(reads(f, buf, s.size, 205824), "all after it can be read");
	disk.bad_sector = (off_t)s.m.tree_pos + 4096;
	is_int(read_at(f, 3 * LEAF_BYTES, 1, &why), 1,
	       "what is in memory of the tree is not read again");
	verity_file_close(f);
	f = must_open();
	is_int(read_at(f, 3 * LEAF_BYTES, 1, &why), -EIO,
	       "a bad sector in the tree is an error of what is under it");
	disk.bad_sector = 0;
	ok(reads(f, buf, s.size, 0), "and of nothing, once it can be read");
	verity_file_close(f);
}

/* A file of at most one block, without its sidecar.  Return: 0 when it opens
 * and gives its own bytes, else the error */
static int adopt(uint64_t size, const struct verity_digest *trusted)
{
	int fd = open(data_path, O_RDONLY | O_CLOEXEC);
	struct verity_file *f;
	int err = verity_file_adopt_block(fd, &s.p, size, trusted, &f);

	if (err)
		return err;
	err = reads(f, buf, s.size + 1, 0) ? 0 : -ECANCELED;
	verity_file_close(f);
	return err;
}

static void test_one_block(void)
{
	static const size_t size[] = { 0, 1, 4095, 4096 };
	struct verity_digest other;

	for (size_t i = 0; i < LEN(size); i++) {
		seal(VERITY_SHA512, 4096, 3, size[i]);
		unlink(meta_path);
		is_int(adopt(size[i], &s.digest), 0,
		       "%zu bytes in one block are read without a sidecar",
		       size[i]);
	}
	other = s.digest;
	other.bytes[0] ^= 1;
	is_int(adopt(4096, &other), -EBADMSG, "not under another digest");
	is_int(adopt(4095, &s.digest), -EBADMSG, "nor as another size");
	is_int(adopt(4097, &s.digest), -EINVAL, "nor with a second block");
	put(data_path, "x", 1, 7);
	is_int(adopt(4096, &s.digest), -EBADMSG, "nor once it is changed");
	if (truncate(data_path, 4000))
		bail("cannot truncate");
	is_int(adopt(4096, &s.digest), -EBADMSG, "or cut short");
}

struct job {
	struct verity_file *f;
	uint64_t seed;
	uint8_t *buf;
	unsigned int wrong;
};

static void *work(void *arg)
{
	struct job *j = arg;

	for (int i = 0; i < READS; i++) {
		uint64_t pos;

		j->seed = j->seed * 6364136223846793005 + 1442695040888963407;
		pos = (j->seed >> 32) % s.size;
		j->wrong += !reads(j->f, j->buf, (j->seed >> 20) % 40000, pos);
	}
	return NULL;
}

static void test_threads(void)
{
	pthread_t thread[THREADS];
	struct job job[THREADS];
	struct verity_file *f;
	unsigned int wrong = 0;

	seal(VERITY_SHA512, 512, 0, 300000);
	f = must_open();
	for (unsigned int i = 0; i < THREADS; i++) {
		job[i] = (struct job){ f, i, malloc(40000), 0 };
		if (!job[i].buf ||
		    pthread_create(&thread[i], NULL, work, &job[i]))
			bail("no thread");
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		free(job[i].buf);
		wrong += job[i].wrong;
	}
	verity_file_close(f);
	is_uint(wrong, 0, "%d threads read one file at once", THREADS);
}

int main(void)
{
	enum { FIXED = 5 + 4 + 4 + 4 * 6 + 5 * 3 + 7 + 6 + 9 + 1 };

	plan(FIXED + LEN(shape) * 4);
	make_dir();
	for (size_t i = 0; i < LEN(shape); i++)
		test_shape(i);
	test_trust();
	test_no_sidecar();
	test_odd_files();
	test_bad_block(0);
	test_bad_block(100);
	test_bad_block(256); /* the first of the second 256 KiB */
	test_bad_block(292); /* the last, which is short */
	test_bad_tree(1, 0, 0);
	test_bad_tree(1, 4, 4 * LEAF_BYTES);
	test_bad_tree(1, 8, 8 * LEAF_BYTES); /* the second 256 KiB's first */
	test_bad_tree(1, 9, 9 * LEAF_BYTES);
	test_bad_tree(2, 0, 0);
	test_short();
	test_bad_sector();
	test_one_block();
	test_threads();
	verity_file_close(NULL);
	return done();
}
