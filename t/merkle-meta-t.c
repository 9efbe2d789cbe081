/* SPDX-License-Identifier: MIT */
/* A sidecar's head is read back as it was written, or refused for a named
 * field; its length is exactly what the head implies. */
#include "merkle/meta.h"
#include "t/complaint.h"
#include "t/data.h"
#include "t/odd_disk.h"
#include "t/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BIG (1ULL << 63)

/* The head for a file of @size bytes, 4 KiB blocks, and a signature. */
static void make(struct verity_meta *m, uint8_t *head, uint64_t size,
		 uint32_t sig_size)
{
	struct verity_desc d = { .params = { VERITY_SHA256, 4096, 2, { 8, 9 } },
				 .data_size = size,
				 .sig_size = sig_size };

	if (size)
		memset(d.root, 0xaa, 32);
	verity_desc_encode(&d, head);
	if (verity_meta_init(m, head))
		bail("no metadata for %llu bytes", (unsigned long long)size);
	verity_meta_sign(m, sig_size ? VERITY_SIG_PKCS7 : VERITY_SIG_NONE,
			 sig_size);
	memset(head, 0xff, VERITY_META_HEAD);
	verity_meta_encode(m, head);
}

static const struct {
	uint64_t data;
	uint32_t sig;
	uint64_t tree_pos, size;
} layout[] = { { 0, 0, 4096, 268 },
	       { 1, 0, 4096, 268 },
	       { 4096, 0, 4096, 268 },
	       { 4096, 70, 4096, 338 },
	       { 4097, 0, 4096, 8192 },
	       { 10000, 1, 4096, 8192 },
	       { 10000, 3828, 4096, 8192 },
	       { 10000, 3829, 8192, 12288 },
	       { 10000, 16128, 20480, 24576 },
	       { 1 << 20, 708, 4096, 16384 } };

static bool same_meta(const struct verity_meta *a, const struct verity_meta *b)
{
	return !memcmp(a->raw, b->raw, sizeof(a->raw)) &&
	       a->desc.data_size == b->desc.data_size &&
	       verity_digest_equal(&a->digest, &b->digest) &&
	       a->sig_type == b->sig_type && a->sig_size == b->sig_size &&
	       a->tree_pos == b->tree_pos && a->tree_size == b->tree_size;
}

static void test_layouts(void)
{
	for (size_t i = 0; i < LEN(layout); i++) {
		uint8_t head[VERITY_META_HEAD], again[VERITY_META_HEAD];
		unsigned long long data = layout[i].data;
		struct verity_meta m, got;
		bool read;

		make(&m, head, data, layout[i].sig);
		ok(m.tree_pos == layout[i].tree_pos &&
			   verity_meta_size(&m) == layout[i].size,
		   "%llu bytes with a signature of %u: a sidecar of %llu", data,
		   layout[i].sig, (unsigned long long)layout[i].size);
		read = !verity_meta_decode(head, layout[i].size, &got, NULL) &&
		       same_meta(&got, &m);
		ok(read, "what is written is read");
		memset(again, 0xee, sizeof(again));
		if (read)
			verity_meta_encode(&got, again);
		is_mem(again, head, sizeof(head),
		       "and written again to the same bytes");
	}
}

/* Offsets by hand, from Android's generator. */
static void test_offsets(void)
{
	static const uint8_t first[] = { 1, 0, 0, 0, 1, 1, 12, 2 };
	static const uint8_t last[] = { 1, 0, 0, 0, 0x34, 0x12, 0, 0 };
	uint8_t head[VERITY_META_HEAD];
	struct verity_meta m;

	make(&m, head, 10000, 0x1234);
	is_mem(head, first, sizeof(first), "version, then the descriptor");
	is_mem(head + 4 + 16, m.desc.root, 32, "with its root hash");
	is_mem(head + 260, last, sizeof(last), "then signature type and size");
}

/*
 * Each row spoils one thing in the head for 10000 bytes of data.
 */
static const struct {
	const char *name;
	uint32_t sig; /* of the sound head */
	unsigned int off, len;
	uint64_t put;
	uint64_t file_size; /* 0: what the sound head implies */
	int err;
	const char *field;
	uint64_t value;
	const char *rule;
	uint64_t limit;
} bad[] = { { "version 0", 0, 0, 4, 0, 0, -EINVAL, "version", 0, BE, 1 },
	    { "version 2", 0, 0, 4, 2, 0, -EINVAL, "version", 2, BE, 1 },
	    { "version 1, big-endian", 0, 0, 4, 1 << 24, 0, -EINVAL, "version",
	      1 << 24, BE, 1 },
	    { "version 257", 0, 1, 1, 1, 0, -EINVAL, "version", 257, BE, 1 },
	    { "descriptor version 0", 0, 4, 1, 0, 0, -EINVAL,
	      "descriptor.version", 0, BE, 1 },
	    { "descriptor version 2", 0, 4, 1, 2, 0, -EINVAL,
	      "descriptor.version", 2, BE, 1 },
	    { "no algorithm", 0, 5, 1, 0, 0, -EINVAL,
	      "descriptor.hash_algorithm", 0, LEAST, 1 },
	    { "algorithm 3", 0, 5, 1, 3, 0, -EINVAL,
	      "descriptor.hash_algorithm", 3, MOST, 2 },
	    { "small blocks", 0, 6, 1, 8, 0, -EINVAL,
	      "descriptor.log_blocksize", 8, LEAST, 9 },
	    { "large blocks", 0, 6, 1, 17, 0, -EINVAL,
	      "descriptor.log_blocksize", 17, MOST, 16 },
	    { "a long salt", 0, 7, 1, 33, 0, -EMSGSIZE, "descriptor.salt_size",
	      33, MOST, 32 },
	    { "a salt past its size", 0, 4 + 82, 1, 7, 0, -EINVAL,
	      "descriptor.salt padding", 7, ZERO, 82 },
	    { "a root past its size", 0, 4 + 48, 1, 7, 0, -EINVAL,
	      "descriptor.root_hash padding", 7, ZERO, 48 },
	    { "reserved bytes", 0, 4 + 255, 1, 7, 0, -EINVAL,
	      "descriptor.reserved", 7, ZERO, 255 },
	    { "2^63 bytes of data", 0, 12, 8, BIG, 0, -EFBIG,
	      "descriptor.data_size", BIG, MOST, INT64_MAX },
	    { "no data, but a root", 0, 12, 8, 0, 0, -EINVAL,
	      "descriptor.root_hash of an empty file", 0xaa, ZERO, 0 },
	    { "a descriptor's long signature", 0, 8, 4, 16129, 0, -EMSGSIZE,
	      "descriptor.sig_size", 16129, MOST, 16128 },
	    { "a signature only it knows", 0, 8, 4, 1, 0, -EINVAL,
	      "descriptor.sig_size", 1, BE, 0 },
	    { "one of another size", 70, 8, 4, 71, 0, -EINVAL,
	      "descriptor.sig_size", 71, BE, 70 },
	    { "signature type 3", 70, 260, 4, 3, 0, -EINVAL, "signature type",
	      3, MOST, 2 },
	    { "signature type 2^31", 70, 260, 4, 1ULL << 31, 0, -EINVAL,
	      "signature type", 1ULL << 31, MOST, 2 },
	    { "a long signature", 70, 264, 4, 16129, 0, -EMSGSIZE,
	      "signature size", 16129, MOST, 16128 },
	    { "4 GiB of signature", 70, 264, 4, UINT32_MAX, 0, -EMSGSIZE,
	      "signature size", UINT32_MAX, MOST, 16128 },
	    { "a signature of no type", 70, 260, 4, 0, 0, -EINVAL,
	      "signature size without a type", 70, BE, 0 },
	    { "a type of no signature", 0, 260, 4, 2, 0, -EINVAL,
	      "signature size", 0, LEAST, 1 },
	    { "a sidecar of nothing", 0, 0, 0, 0, 1, -EINVAL, "sidecar size", 1,
	      BE, 8192 },
	    { "one without its tree", 0, 0, 0, 0, 268, -EINVAL, "sidecar size",
	      268, BE, 8192 },
	    { "one byte of tree missing", 0, 0, 0, 0, 8191, -EINVAL,
	      "sidecar size", 8191, BE, 8192 },
	    { "one byte too many", 0, 0, 0, 0, 8193, -EINVAL, "sidecar size",
	      8193, BE, 8192 },
	    { "2^64-1 bytes", 0, 0, 0, 0, UINT64_MAX, -EINVAL, "sidecar size",
	      UINT64_MAX, BE, 8192 },
	    { "data that needs a larger tree", 0, 12, 8, 1 << 20, 0, -EINVAL,
	      "sidecar size", 8192, BE, 16384 },
	    { "data that needs none", 0, 12, 8, 4096, 0, -EINVAL,
	      "sidecar size", 8192, BE, 268 },
	    { "2^63-1 bytes of data", 0, 12, 8, INT64_MAX, 0, -EINVAL,
	      "sidecar size", 8192, BE, 72624976668155904 } };

static void test_bad_heads(void)
{
	for (size_t i = 0; i < LEN(bad); i++) {
		struct verity_complaint why = { 0 };
		uint8_t head[VERITY_META_HEAD];
		struct verity_meta m;
		uint64_t size;

		make(&m, head, 10000, bad[i].sig);
		size = bad[i].file_size ? bad[i].file_size
					: verity_meta_size(&m);
		for (unsigned int j = 0; j < bad[i].len; j++)
			head[bad[i].off + j] = (uint8_t)(bad[i].put >> (8 * j));
		m.tree_pos = 77;
		is_int(verity_meta_decode(head, size, &m, &why), bad[i].err,
		       "%s: refused", bad[i].name);
		ok(complaint_says(&why, bad[i].field, bad[i].value, bad[i].rule,
				  bad[i].limit),
		   "%s: the complaint says so", bad[i].name);
		ok(verity_meta_decode(head, size, &m, NULL) == bad[i].err &&
			   m.tree_pos == 77,
		   "%s: nothing is written, and no complaint needed",
		   bad[i].name);
	}
}

static void test_deep(void)
{
	struct verity_complaint why = { 0 };
	uint8_t head[VERITY_META_HEAD];
	struct verity_meta m;

	make(&m, head, 10000, 0);
	head[5] = VERITY_SHA512;
	head[6] = 9;
	put_le64(head + 12, (8ULL << 30) + 1);
	is_int(verity_meta_decode(head, 8192, &m, &why), -EFBIG,
	       "data that needs 9 levels is refused");
	is_str(why.field, "tree levels", "and the levels named");
}

/* A file with these bytes, of any length; gone when it is closed. */
static FILE *file_of(const uint8_t *bytes, size_t len, off_t size)
{
	FILE *f = tmpfile();

	if (!f || pwrite(fileno(f), bytes, len, 0) != (ssize_t)len ||
	    ftruncate(fileno(f), size))
		bail("no temporary file");
	return f;
}

static int read_fd(const uint8_t *head, size_t len, off_t size,
		   const struct verity_digest *trusted,
		   struct verity_complaint *why)
{
	struct verity_meta m;
	FILE *f = file_of(head, len, size);
	int err = verity_meta_read(fileno(f), trusted, &m, why);

	fclose(f);
	return err;
}

static void test_short_files(const uint8_t *head)
{
	static const size_t len[] = { 0, 1, 4, 260, 267 };

	for (size_t i = 0; i < LEN(len); i++) {
		struct verity_complaint why = { 0 };

		ok(read_fd(head, len[i], (off_t)len[i], NULL, &why) ==
				   -EINVAL &&
			   complaint_says(&why, "sidecar size", len[i], LEAST,
					  268),
		   "a file of %zu bytes is too short, and says so", len[i]);
	}
}

static void test_trusted(const struct verity_meta *m, uint8_t *head)
{
	struct verity_digest other = m->digest;

	is_int(read_fd(head, 268, 8192, NULL, NULL), 0,
	       "a sound head is read from a file");
	is_int(read_fd(head, 268, 8192, &m->digest, NULL), 0,
	       "and has the digest that is trusted");
	other.bytes[0] ^= 1;
	is_int(read_fd(head, 268, 8192, &other, NULL), -EBADMSG,
	       "another digest is refused");
	head[0] = 2;
	is_int(read_fd(head, 268, 8192, &other, NULL), -EBADMSG,
	       "before any field is looked at");
	is_int(read_fd(head, 268, 8192, &m->digest, NULL), -EINVAL,
	       "and the fields are looked at all the same");
	head[0] = 1;
	head[5] = 9;
	is_int(read_fd(head, 268, 8192, &other, NULL), -EBADMSG,
	       "an unknown algorithm leads to no digest");
	head[5] = 1;
}

static void test_odd_files(void)
{
	struct verity_complaint why = { 0 };
	int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct verity_meta m;

	ok(verity_meta_read(fd, NULL, &m, &why) == -EINVAL &&
		   complaint_says(&why, "file type", 4, BE, 8),
	   "a directory is no sidecar");
	close(fd);
	is_int(verity_meta_read(-1, NULL, &m, NULL), -EBADF,
	       "an error of fstat is handed on");
}

static void test_disk(uint8_t *head)
{
	FILE *f = file_of(head, 268, 8192);
	uint8_t got[300];

	disk.most = 7;
	disk.interrupts = 2;
	ok(verity_pread_full(fileno(f), got, 268, 0) == 268 &&
		   !memcmp(got, head, 268) && !disk.interrupts,
	   "short and interrupted reads are gone on with");
	is_int(verity_pread_full(fileno(f), got, 300, 8000), 192,
	       "the file's end gives a count");
	is_int(verity_pread_full(fileno(f), got, 300, 8192), 0,
	       "which may be 0");
	fclose(f);
	disk.most = 0;
	disk.bad_sector = 100;
	is_int(read_fd(head, 268, 8192, NULL, NULL), -EIO,
	       "an error of pread is handed on");
	disk.bad_sector = 0;
}

int main(void)
{
	uint8_t head[VERITY_META_HEAD];
	struct verity_meta m;

	plan(3 * LEN(layout) + 3 + 3 * LEN(bad) + 2 + 5 + 6 + 2 + 4);
	test_layouts();
	test_offsets();
	test_bad_heads();
	test_deep();
	make(&m, head, 10000, 0);
	test_short_files(head);
	test_trusted(&m, head);
	test_odd_files();
	test_disk(head);
	return done();
}
