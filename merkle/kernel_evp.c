/* SPDX-License-Identifier: MIT */
/*
 * merkle/kernel_evp.c - libcrypto: SHA-512, and SHA-256 where no kernel of
 * ours is faster.  Layer: merkle; the only file in it that links libcrypto.
 */
#include "merkle/kernel.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdatomic.h>
#include <string.h>

/*
 * A fetch takes locks and walks the providers' tables, a fifth of the time to
 * hash 4 KiB, so there is one a process and it is never freed.  The exchange
 * in fetched() publishes the object that the acquire load hands out; of two
 * threads that race, the loser frees its own.
 */
static _Atomic(EVP_MD *) mds[VERITY_SHA512 + 1];

static EVP_MD *fetched(uint32_t alg)
{
	EVP_MD *md = atomic_load_explicit(&mds[alg], memory_order_acquire);
	EVP_MD *mine;

	if (md)
		return md;
	mine = EVP_MD_fetch(NULL, alg == VERITY_SHA512 ? "SHA512" : "SHA256",
			    NULL);
	if (!mine || atomic_compare_exchange_strong(&mds[alg], &md, mine))
		return mine;
	EVP_MD_free(mine);
	return md;
}

/* The salt, zero-padded to what the algorithm compresses at a time. */
static int absorb_salt(EVP_MD_CTX *ctx, const struct verity_params *params)
{
	uint8_t padded[128] = { 0 };
	size_t len = params->alg == VERITY_SHA512 ? 128 : 64;

	if (!params->salt_size)
		return 1;
	memcpy(padded, params->salt, params->salt_size);
	return EVP_DigestUpdate(ctx, padded, len);
}

int verity_evp_init(struct verity_hasher *h, const struct verity_params *params)
{
	EVP_MD *md = fetched(params->alg);
	EVP_MD_CTX *ctx;

	if (!md)
		return -ENOPKG;
	ctx = EVP_MD_CTX_new();
	if (!ctx || !EVP_DigestInit_ex2(ctx, md, NULL) ||
	    !absorb_salt(ctx, params)) {
		EVP_MD_CTX_free(ctx);
		return -ENOMEM;
	}
	h->evp = ctx;
	return 0;
}

void verity_evp_fini(struct verity_hasher *h)
{
	EVP_MD_CTX_free(h->evp);
	h->evp = NULL;
}

/* h->evp is only read, so that threads may share it. */
int verity_evp_blocks(const struct verity_hasher *h, const void *const *blocks,
		      size_t n, uint8_t *out)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	int err = ctx ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < n; i++)
		if (!EVP_MD_CTX_copy_ex(ctx, h->evp) ||
		    !EVP_DigestUpdate(ctx, blocks[i], h->len) ||
		    !EVP_DigestFinal_ex(ctx, out + i * h->digest_size, NULL))
			err = -ENOMEM;
	EVP_MD_CTX_free(ctx);
	return err;
}

int verity_evp_x1(const struct verity_hasher *h, const void *const *blocks,
		  uint8_t *out)
{
	return verity_evp_blocks(h, blocks, 1, out);
}

int verity_hash_bytes(uint32_t alg, const void *data, size_t len, uint8_t *out)
{
	EVP_MD *md;

	if (alg != VERITY_SHA256 && alg != VERITY_SHA512)
		return -EINVAL;
	md = fetched(alg);
	if (!md)
		return -ENOPKG;
	return EVP_Digest(data, len, out, NULL, md, NULL) ? 0 : -ENOMEM;
}
