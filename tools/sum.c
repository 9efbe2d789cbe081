/* SPDX-License-Identifier: MIT */
/* Plain SHA-256.  Layer: tools. */
#include "tools/sum.h"

#include "merkle/meta.h"
#include "tools/spread.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>

enum { CHUNK = 262144 };

struct sum {
	EVP_MD_CTX *ctx;
};

struct sum *sum_new(void)
{
	struct sum *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->ctx = EVP_MD_CTX_new();
	if (!s->ctx || !EVP_DigestInit_ex(s->ctx, EVP_sha256(), NULL)) {
		sum_free(s);
		return NULL;
	}
	return s;
}

int sum_add(struct sum *s, const void *data, size_t len)
{
	return EVP_DigestUpdate(s->ctx, data, len) ? 0 : -ENOMEM;
}

int sum_end(struct sum *s, uint8_t *out)
{
	return EVP_DigestFinal_ex(s->ctx, out, NULL) ? 0 : -ENOMEM;
}

void sum_free(struct sum *s)
{
	if (!s)
		return;
	EVP_MD_CTX_free(s->ctx);
	free(s);
}

static int add_file(struct sum *s, uint8_t *buf, int fd, uint64_t size)
{
	int err = 0;

	for (uint64_t pos = 0; pos < size && !err; pos += CHUNK) {
		size_t want = size - pos < CHUNK ? (size_t)(size - pos) : CHUNK;
		ssize_t n = verity_pread_full(fd, buf, want, pos);

		if (spread_stopped())
			return -EINTR;
		if (n < 0)
			return (int)n;
		if ((size_t)n < want)
			return -ENODATA;
		err = sum_add(s, buf, want);
	}
	return err;
}

int sum_file(int fd, uint64_t size, uint8_t *out)
{
	struct sum *s = sum_new();
	uint8_t *buf = malloc(CHUNK);
	int err = s && buf ? add_file(s, buf, fd, size) : -ENOMEM;

	if (!err)
		err = sum_end(s, out);
	sum_free(s);
	free(buf);
	return err;
}
