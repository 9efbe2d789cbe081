/* SPDX-License-Identifier: MIT */
/* A descriptor that anyone could have written is read back as it was written
 * or refused for a named field, and digests are those of fsverity(1). */
#include "merkle/desc.h"
#include "t/complaint.h"
#include "t/data.h"
#include "t/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What fsverity 1.5 printed for files of @size bytes, byte i being i % 251
 * (or all zero), under a salt of the bytes 1, 2, ... */
static const struct {
	uint32_t alg, block_size, salt_size;
	size_t size;
	bool filled;
	const char *hex;
} vector[] = {
	{ 1, 1024, 0, 0, true,
	  "f2cca36b9b1b7f07814e4284b10121809133e7cb9c4528c8f6846e85fc624ffa" },
	{ 1, 1024, 0, 1, true,
	  "564b7eb7ffda106d78a6b4aa080769012ec9a79ad64e0bff064211de3640fd52" },
	{ 1, 1024, 0, 4096, true,
	  "721ccec5089314f4cc88e3444ca30f3e709fdbed34de408eb8fe5e5cc44daee1" },
	{ 1, 1024, 0, 65536, true,
	  "336f7b59dd4e2a5417007f2f2bed1aaee0a957c1f3d8ad7079860d295acde23c" },
	{ 1, 1024, 0, 65536, false,
	  "527496288d703686e31092f5cca7e1306b2467f00b247ad01056ee5ec35a4bb9" },
	{ 1, 1024, 5, 0, true,
	  "b21539140e4a5861a42a93f15c949c129501744bb70c0639e0a482b206787662" },
	{ 1, 1024, 5, 1, true,
	  "61d4606ddee321eb3fb622f11203965159ab7607415d0c5da208bdee0eda05f3" },
	{ 1, 1024, 5, 4096, true,
	  "b7ffb047e899b56372513637f5cfffd16de5104674eb2728b4eeea29518c7321" },
	{ 1, 1024, 5, 65536, true,
	  "0fa6900ead1cff514208f0593d5787bb39b31260ab32c93e7bd26e4900b6f543" },
	{ 1, 4096, 0, 0, true,
	  "3d248ca542a24fc62d1c43b916eae5016878e2533c88238480b26128a1f1af95" },
	{ 1, 4096, 0, 1, true,
	  "b803429503d95915829b29fdbc8bbad142f3abfd11b1cadf5526582e685c0551" },
	{ 1, 4096, 0, 4096, true,
	  "13e9b8848ae484a36acb3f3cac0ceb2f7601e96633d15c92f9bd3dd44e492157" },
	{ 1, 4096, 0, 65536, true,
	  "c6f25f33d20d3e6bcd188017a754ea5c8b64b5c3aebbe4b0c7bb0f57e92ba6d6" },
	{ 1, 4096, 0, 65536, false,
	  "011e3f2b1dc89b75d78cddcc2a1b85cd8a64b2883e5f20f277ae4c0617e0404f" },
	{ 1, 4096, 5, 0, true,
	  "685c4189d5fa62a343ce3532b41502ce3d4d22c5b09002615a25d5e7d8577353" },
	{ 1, 4096, 5, 1, true,
	  "68145ee58482e7172c90f9a817971b690b37933f0537660a6272b2a6007bc0cf" },
	{ 1, 4096, 5, 4096, true,
	  "be2fba8920e2798df691df10c75b7e6f062208903503ff354a40e5a91ce3bedd" },
	{ 1, 4096, 5, 65536, true,
	  "bd873d43a00509e18529abcbe59efb212e82b8889e21375547cc69dc42001ca6" },
	{ 2, 1024, 0, 0, true,
	  "8451664f25b2ad3f24391280e0c5681cb843389c180baa719f8fdfb063f5ddfa"
	  "2d1c4433e55e2b6fbb3ba6aa2df8a4f41bf56cb7e0a3b617b6919a42c80f034c" },
	{ 2, 1024, 0, 1, true,
	  "324609ccb1b57b63a39ff631d480d72657ca9815344bba5933845cd3f3c5f312"
	  "d0f5813f6a692fec9d8ede2254589f2fbd777604e353becd91dc491d859dd414" },
	{ 2, 1024, 0, 4096, true,
	  "e766ca46575c18b3071852397b59d6205ada240110dd74753efd8f4fc94ed3b1"
	  "0b07eee8559ef7b69d9d47d4905b866cec36e9bc8ca40c015439127e267a10a0" },
	{ 2, 1024, 0, 65536, true,
	  "003ee285b643256c3e94c57731dae7043e96c18cc8ce3bec3826df4463fe0eb0"
	  "ed19be95afdd235ee0756fbc353179aab605aec71201453b282f4cb0968cd76c" },
	{ 2, 1024, 0, 65536, false,
	  "e6a11353c24dd7b4603cb8ffa50a7041dbea7382d4698474ccbc2d8b34f3a83d"
	  "8bf16df25c64ed31ee27213a8a3cbd001fb1ccde46384c23b81305c2393c1046" },
	{ 2, 1024, 5, 0, true,
	  "185ca94f0bdbfd3ba3a84199d250503baece8f4152fd39dc1508ef744ecd94d1"
	  "c902f22a8729b6cbe5f7d13973c7200a242329f6336cc858d8da40268ca7e573" },
	{ 2, 1024, 5, 1, true,
	  "a14c5565dc9bc01e8f8d7f520d24667797a7ee66ac8b5b00fd082bb860ca9bf1"
	  "d83cdb1679dd850516ac5a167cf19308ad728b5412fe8f6cc311400778966957" },
	{ 2, 1024, 5, 4096, true,
	  "8448a5515812cfc220ea5fd6797eadab4c6c54a7906e4261771e6a44c0f73642"
	  "e143493d961048fb481f83d9af319d1578baa2c5a437a463f8c17855568ac231" },
	{ 2, 1024, 5, 65536, true,
	  "e00d9beeac6d47c963c9b7c83dcad1ebed317c55701c120b303f8ed734201167"
	  "a52790dd8bcbbe72dda83a6dd67bc97c252538df850eb272e7eba8f3998ac210" },
	{ 2, 4096, 0, 0, true,
	  "ccf9e5aea1c2a64efa2f2354a6024b90dffde6bbc017825045dce374474e13d1"
	  "0adb9dadcc6ca8e17a3c075fbd31336e8f266ae6fa93a6c3bed66f9e784e5abf" },
	{ 2, 4096, 0, 1, true,
	  "9fcf5172b085b1c8f9365eecb37a1869e193a4705654a5829f11939cd01d5c0f"
	  "d97276be8cd9d49f76cfc8dcfeb80f8128e3548a1de50b56912b9e3fc7bde27b" },
	{ 2, 4096, 0, 4096, true,
	  "7bf994782b368ecc4e20ce9144701b1a30524d5bbc90987625de22eebc8cf370"
	  "ec846c1b5e77f9099c6f6cfc0b590359b9ac8083a43e5f7fa5ec05a25dab6e03" },
	{ 2, 4096, 0, 65536, true,
	  "441c08eec044a4354ce53bb290220b5dbd2763d9bfc932fdf31a8315f6c44ad1"
	  "f30076f63d88e5f1885e4f56694eeace9dd32e10b678d4e253552d949800391a" },
	{ 2, 4096, 0, 65536, false,
	  "eab7224ce374a0a4babcb2db25e24836247f38b87806ad9be9e5ba4daac2f5b8"
	  "14fc0cbdfd9f1f8499b3c9a6c1b38fe08974cce49883ab4ccd04462fd2f9507f" },
	{ 2, 4096, 5, 0, true,
	  "ebc10cff5303dc3f631063a8b821375a87505116951150f7da8b22f2393e7889"
	  "a7b486ebd9322602e83416c4cf599efbf5af1f20d90e3f1d2ab61bb0a7a3ad8d" },
	{ 2, 4096, 5, 1, true,
	  "44403c8b02268c16cb023da49ac14ae0b824e8615236b98eb6325a11916a1d21"
	  "841aad8ceb0ecbffa618bb10a19a1aa5f76066a750f4d6c719f0679d6c43bfe6" },
	{ 2, 4096, 5, 4096, true,
	  "ea6d2f40759aa1785bb92680487ff59f0aaf5aeaa16d872dbbfbb58a2d171dfe"
	  "bd5971172da1e1c37ed3bf1b5f95f49e037f4a248f322c2fb195bed69c0484cb" },
	{ 2, 4096, 5, 65536, true,
	  "faabdf72a8d61345d509e79b9f284beffcf94ca247899473e1ed21bf4c58e3b2"
	  "193a4d16cd92435546a644438be46ba430e3a735da99f9472f40b750c3a2e9ad" },
	{ 1, 4096, 32, 65536, true,
	  "47615a34d8b5ecc88b6a660678ecdac0613d85ef2013b2986f911768341bf79b" },
	{ 2, 4096, 32, 65536, true,
	  "4ccae8e4183883299d2223b250944081ff60655b0db8bf9bf583e25fdcf20ac7"
	  "b593e727e8f41ed28413ee9f07abcf791f53dea25568b6b862ba7c1a3c6ebb86" }
};

static void set_params(struct verity_params *p, uint32_t alg, uint32_t bs,
		       uint32_t salt_size)
{
	*p = (struct verity_params){ alg, bs, salt_size, { 0 } };
	for (uint32_t i = 0; i < salt_size; i++)
		p->salt[i] = (uint8_t)(i + 1);
}

static void make_vector(size_t i, struct verity_digest *digest, uint8_t *raw)
{
	uint8_t *data = calloc(1, vector[i].size + 1);
	struct verity_params p;
	struct verity_build *b;

	set_params(&p, vector[i].alg, vector[i].block_size,
		   vector[i].salt_size);
	if (vector[i].filled)
		pattern(data, vector[i].size);
	if (verity_build_new(&p, NULL, NULL, &b) ||
	    verity_build_add(b, data, vector[i].size) ||
	    verity_build_end(b, digest, raw))
		bail("cannot build vector %zu", i);
	verity_build_free(b);
	free(data);
}

static void test_vectors(void)
{
	for (size_t i = 0; i < LEN(vector); i++) {
		char want[VERITY_DIGEST_TEXT], got[VERITY_DIGEST_TEXT];
		struct verity_digest digest, again;
		uint8_t raw[VERITY_DESC_SIZE];

		make_vector(i, &digest, raw);
		verity_digest_format(&digest, got);
		snprintf(want, sizeof(want), "%s:%s",
			 verity_alg_name(vector[i].alg), vector[i].hex);
		is_str(got, want,
		       "%s/%u, salt of %u, %zu bytes of %s: as fsverity has it",
		       verity_alg_name(vector[i].alg), vector[i].block_size,
		       vector[i].salt_size, vector[i].size,
		       vector[i].filled ? "a pattern" : "zero");
		ok(!verity_desc_digest(raw, &again) &&
			   verity_digest_equal(&digest, &again),
		   "and so is the descriptor's");
	}
}

/* A sound descriptor: sha256, 4096, a salt of 5, no signature, 10000 bytes. */
static void sound(uint8_t *raw)
{
	struct verity_desc d = { .data_size = 10000 };

	set_params(&d.params, VERITY_SHA256, 4096, 5);
	memset(d.root, 0xaa, 32);
	verity_desc_encode(&d, raw);
}

static const struct {
	const char *name;
	unsigned int off, len;
	uint64_t put;
	int err;
	const char *field;
	uint64_t value;
	const char *rule;
	uint64_t limit;
} bad[] = {
	{ "version 0", 0, 1, 0, -EINVAL, "version", 0, "must be", 1 },
	{ "version 2", 0, 1, 2, -EINVAL, "version", 2, "must be", 1 },
	{ "algorithm 0", 1, 1, 0, -EINVAL, "hash_algorithm", 0, LEAST, 1 },
	{ "algorithm 3", 1, 1, 3, -EINVAL, "hash_algorithm", 3, MOST, 2 },
	{ "algorithm 255", 1, 1, 255, -EINVAL, "hash_algorithm", 255, MOST, 2 },
	{ "blocks of 1", 2, 1, 0, -EINVAL, "log_blocksize", 0, LEAST, 9 },
	{ "blocks of 256", 2, 1, 8, -EINVAL, "log_blocksize", 8, LEAST, 9 },
	{ "blocks of 128K", 2, 1, 17, -EINVAL, "log_blocksize", 17, MOST, 16 },
	{ "a shift past 64", 2, 1, 255, -EINVAL, "log_blocksize", 255, MOST,
	  16 },
	{ "a salt of 33", 3, 1, 33, -EMSGSIZE, "salt_size", 33, MOST, 32 },
	{ "a salt of 255", 3, 1, 255, -EMSGSIZE, "salt_size", 255, MOST, 32 },
	{ "a salt cut short", 3, 1, 4, -EINVAL, "salt padding", 5, ZERO, 84 },
	{ "a long signature", 4, 4, 16129, -EMSGSIZE, "sig_size", 16129, MOST,
	  16128 },
	{ "4 GiB of signature", 4, 4, UINT32_MAX, -EMSGSIZE, "sig_size",
	  UINT32_MAX, MOST, 16128 },
	{ "2^63 bytes", 8, 8, 1ULL << 63, -EFBIG, "data_size", 1ULL << 63, MOST,
	  INT64_MAX },
	{ "2^64-1 bytes", 8, 8, UINT64_MAX, -EFBIG, "data_size", UINT64_MAX,
	  MOST, INT64_MAX },
	{ "a root of no data", 8, 8, 0, -EINVAL, "root_hash of an empty file",
	  0xaa, ZERO, 0 }
};

/* "descriptor." and this field, value, rule and limit? */
static bool says(const struct verity_complaint *c, const char *field,
		 uint64_t value, const char *rule, uint64_t limit)
{
	char full[80];

	snprintf(full, sizeof(full), "descriptor.%s", field);
	return complaint_says(c, full, value, rule, limit);
}

static void test_bad_fields(void)
{
	for (size_t i = 0; i < LEN(bad); i++) {
		struct verity_desc d = { .sig_size = 77 };
		struct verity_complaint why = { 0 };
		uint8_t raw[VERITY_DESC_SIZE];

		sound(raw);
		for (unsigned int j = 0; j < bad[i].len; j++)
			raw[bad[i].off + j] = (uint8_t)(bad[i].put >> (8 * j));
		is_int(verity_desc_decode(raw, &d, &why), bad[i].err,
		       "%s: refused", bad[i].name);
		ok(says(&why, bad[i].field, bad[i].value, bad[i].rule,
			bad[i].limit),
		   "%s: the complaint says so", bad[i].name);
		ok(verity_desc_decode(raw, &d, NULL) == bad[i].err &&
			   d.sig_size == 77,
		   "%s: nothing is written, and no complaint needed",
		   bad[i].name);
	}
}

/* Every byte that must be zero, one at a time. */
static void test_padding(const char *field, size_t from, size_t to)
{
	size_t accepted = 0, misreported = 0;

	for (size_t at = from; at < to; at++) {
		struct verity_complaint why = { 0 };
		uint8_t raw[VERITY_DESC_SIZE];
		struct verity_desc d;

		sound(raw);
		raw[at] = 0x40;
		accepted += verity_desc_decode(raw, &d, &why) != -EINVAL;
		misreported += !says(&why, field, 0x40, ZERO, at);
	}
	is_uint(accepted, 0, "each byte of %s must be zero", field);
	is_uint(misreported, 0, "and its place is told");
}

static void test_depth(void)
{
	struct verity_desc d = { .data_size = (8ULL << 30) + 1 };
	struct verity_complaint why = { 0 };
	uint8_t raw[VERITY_DESC_SIZE];

	set_params(&d.params, VERITY_SHA512, 512, 0);
	verity_desc_encode(&d, raw);
	is_int(verity_desc_decode(raw, &d, &why), -EFBIG,
	       "a file whose tree has 9 levels is refused");
	is_str(why.field, "tree levels", "and the levels are named");
	is_uint(why.value, 9, "as many as it would need");
}

static bool same_desc(const struct verity_desc *a, const struct verity_desc *b)
{
	return a->params.alg == b->params.alg &&
	       a->params.block_size == b->params.block_size &&
	       a->params.salt_size == b->params.salt_size &&
	       !memcmp(a->params.salt, b->params.salt, VERITY_MAX_SALT) &&
	       a->data_size == b->data_size && a->sig_size == b->sig_size &&
	       !memcmp(a->root, b->root, sizeof(a->root));
}

/* Lowest and highest of everything. */
static void test_round_trip(uint32_t alg, uint32_t bs, uint32_t salt_size)
{
	struct verity_desc d = { .data_size = bs, .sig_size = 16128 }, got;
	uint8_t raw[VERITY_DESC_SIZE], again[VERITY_DESC_SIZE];

	set_params(&d.params, alg, bs, salt_size);
	memset(d.root, 0x5a, verity_digest_size(alg));
	verity_desc_encode(&d, raw);
	ok(!verity_desc_decode(raw, &got, NULL) && same_desc(&got, &d),
	   "%s/%u, salt of %u: what is written is read", verity_alg_name(alg),
	   bs, salt_size);
	verity_desc_encode(&got, again);
	is_mem(again, raw, sizeof(raw), "and written again to the same bytes");
}

/* Offsets by hand, from the kernel's struct fsverity_descriptor. */
static void test_layout(void)
{
	uint8_t want[VERITY_DESC_SIZE] = { 1,    2,    10,   3,    0x44, 0x33,
					   0,    0,    0x88, 0x77, 0x66, 0x55,
					   0x44, 0x33, 0x22, 0x11 };
	struct verity_desc d = { .data_size = 0x1122334455667788,
				 .sig_size = 0x3344 };
	uint8_t raw[VERITY_DESC_SIZE];

	set_params(&d.params, VERITY_SHA512, 1024, 3);
	memset(d.root, 0x5a, 64);
	memset(want + 16, 0x5a, 64);
	memcpy(want + 80, d.params.salt, 3);
	memset(raw, 0xff, sizeof(raw));
	verity_desc_encode(&d, raw);
	is_mem(raw, want, sizeof(raw),
	       "every field lies where the kernel has it");
}

static void test_digest(void)
{
	struct verity_digest plain, got;
	uint8_t raw[VERITY_DESC_SIZE];
	size_t blind = 0;

	sound(raw);
	if (verity_desc_digest(raw, &plain))
		bail("no digest");
	memcpy(raw + 4, "\x12\x34\x56\x78", 4);
	ok(!verity_desc_digest(raw, &got) && verity_digest_equal(&got, &plain),
	   "the digest does not see sig_size");
	for (size_t at = 0; at < VERITY_DESC_SIZE; at++) {
		if (at >= 4 && at < 8)
			continue;
		sound(raw);
		raw[at] ^= 0x80;
		blind += !verity_desc_digest(raw, &got) &&
			 verity_digest_equal(&got, &plain);
	}
	is_uint(blind, 0, "it sees every other byte");
	got = plain;
	raw[1] = 0;
	is_int(verity_desc_digest(raw, &got), -EINVAL,
	       "an unknown algorithm has no digest");
	raw[1] = 3;
	is_int(verity_desc_digest(raw, &got), -EINVAL, "nor has the next one");
	ok(verity_digest_equal(&got, &plain), "nothing is written then");
}

static void test_equal(void)
{
	struct verity_digest a = { VERITY_SHA256, 32, { 1 } }, b = a;

	ok(verity_digest_equal(&a, &b), "a digest equals itself");
	b.bytes[31] ^= 1;
	ok(!verity_digest_equal(&a, &b), "but not one of another last bit");
	b = a;
	b.alg = VERITY_SHA512;
	ok(!verity_digest_equal(&a, &b), "nor one of another algorithm");
	b = a;
	b.size = 31;
	ok(!verity_digest_equal(&a, &b), "nor one of another length");
}

#define HEX32 "0123456789abcdef0f1e2d3c4b5a6978"
#define HEX64 HEX32 HEX32

static const char *const good_text[][2] = {
	{ "sha256:" HEX64, "sha256:" HEX64 },
	{ HEX64, "sha256:" HEX64 },
	{ "sha512:" HEX64 HEX64, "sha512:" HEX64 HEX64 },
	{ "sha256:" HEX32 "0123456789ABCDEF0F1E2D3C4B5A6978", "sha256:" HEX64 },
};

static const char *const bad_text[] = {
	"",
	":",
	"sha256:",
	"sha256",
	"sha256:" HEX32,
	"sha256:" HEX64 "0",
	HEX64 HEX64,
	"sha512:" HEX64,
	"SHA256:" HEX64,
	"sha1:" HEX32 "00112233",
	":" HEX64,
	" sha256:" HEX64,
	"sha256: " HEX64,
	"sha256:" HEX64 "\n",
	"sha256::" HEX64,
	"sha256-too-long-a-name:" HEX64,
	HEX32 "0123456789abcdefgf1e2d3c4b5a6978",
	HEX32 "0123456789abcdef-f1e2d3c4b5a6978",
	HEX32 "0123456789abcdef0f1e2d3c4b5a697"
};

static void test_text(void)
{
	char out[VERITY_DIGEST_TEXT];
	struct verity_digest d = { .size = 77 };

	for (size_t i = 0; i < LEN(bad_text); i++)
		ok(verity_digest_parse(bad_text[i], &d) == -EINVAL &&
			   d.size == 77,
		   "no digest, case %zu", i + 1);
	for (size_t i = 0; i < LEN(good_text); i++) {
		if (verity_digest_parse(good_text[i][0], &d))
			strcpy(out, "refused");
		else
			verity_digest_format(&d, out);
		is_str(out, good_text[i][1], "a digest as text, case %zu",
		       i + 1);
	}
}

static void test_names(void)
{
	ok(verity_alg_by_name("sha256") == 1 &&
		   verity_alg_by_name("sha512") == 2,
	   "the algorithms have their numbers on disk");
	ok(!verity_alg_by_name("sha1") && !verity_alg_by_name("") &&
		   !verity_alg_by_name("SHA256"),
	   "no other name is known");
	ok(!verity_alg_name(0) && !verity_alg_name(3) && !verity_alg_name(-1U),
	   "no other number has a name");
	ok(!verity_digest_size(0) && !verity_digest_size(3) &&
		   !verity_digest_size(-1U),
	   "or a digest");
}

int main(void)
{
	enum { FIXED = 3 * 2 + 3 + 4 * 2 + 1 + 5 + 4 + 4 };

	plan(FIXED + 2 * LEN(vector) + 3 * LEN(bad) + LEN(bad_text) +
	     LEN(good_text));
	test_vectors();
	test_bad_fields();
	test_padding("root_hash padding", 48, 80);
	test_padding("salt padding", 85, 112);
	test_padding("reserved", 112, 256);
	test_depth();
	test_round_trip(VERITY_SHA256, 512, 0);
	test_round_trip(VERITY_SHA256, 65536, 32);
	test_round_trip(VERITY_SHA512, 512, 32);
	test_round_trip(VERITY_SHA512, 65536, 1);
	test_layout();
	test_digest();
	test_equal();
	test_text();
	test_names();
	return done();
}
