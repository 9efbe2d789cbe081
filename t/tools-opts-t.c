/* SPDX-License-Identifier: MIT */
/* t/tools-opts-t.c - reading options: values, and how they are given. */
#include "t/tap.h"
#include "tools/exits.h"
#include "tools/opts.h"

#include <stdio.h>
#include <string.h>

#define CHECKS 97

static void check_block_sizes(void)
{
	static const char *const bad[] = {
		"",       "0",     "511",   "256",   "131072",
		"4095",   "4k",    "+4096", " 4096", "4096 ",
		"0x1000", "-4096", "4096.", "1e3",   "18446744073709555712"
	};
	uint32_t n = 0;

	is_str(opt_block_size("512", &n), NULL, "the smallest block");
	is_uint(n, 512, "is 512 bytes");
	is_str(opt_block_size("65536", &n), NULL, "the largest block");
	is_uint(n, 65536, "is 64 KiB");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(opt_block_size(bad[i], &n) != NULL, "'%s' is no block size",
		   bad[i]);
	is_uint(n, 65536, "a refused value changes nothing");
}

static void check_salts(void)
{
	char hex[67];
	struct salt_opt s = { 0 };

	is_str(opt_salt("00fFa5", &s), NULL, "a salt in either case");
	is_uint(s.size, 3, "has its length");
	is_mem(s.bytes, "\x00\xff\xa5", 3, "and its bytes");
	is_str(opt_salt("", &s), NULL, "an empty salt");
	is_uint(s.size, 0, "is none");
	memset(hex, 'a', sizeof(hex));
	hex[64] = '\0';
	is_str(opt_salt(hex, &s), NULL, "32 bytes of salt");
	is_uint(s.size, 32, "are taken");
	hex[64] = 'a';
	hex[66] = '\0';
	ok(opt_salt(hex, &s) != NULL, "33 are not");
	ok(opt_salt("abc", &s) != NULL, "half a byte is not");
	ok(opt_salt("0g", &s) != NULL, "nor what is no hex digit");
}

static void check_digests(void)
{
	static const char hex[] = "000102030405060708090a0b0c0d0e0f"
				  "101112131415161718191a1b1c1d1e1f";
	struct digest_opt d = { 0 };
	char text[160];

	ok(opt_digest("sha256:00", &d) && !d.set, "a short digest is refused");
	ok(opt_digest("md5:00", &d) && !d.set, "so is an unknown algorithm");
	snprintf(text, sizeof(text), "sha256:%s", hex);
	is_str(opt_digest(text, &d), NULL, "a digest with its algorithm");
	ok(d.set && d.digest.alg == VERITY_SHA256, "is set");
	is_uint(d.digest.bytes[31], 0x1f, "to its bytes");
	is_str(opt_digest(hex, &d), NULL, "bare hex digits are SHA-256");
	snprintf(text, sizeof(text), "sha512:%s%s", hex, hex);
	is_str(opt_digest(text, &d), NULL, "SHA-512 is known too");
	is_uint(d.digest.size, 64, "with its length");
}

static void check_range(const char *text, uint64_t first, uint64_t last,
			bool suffix)
{
	struct byte_range r = { 0 };

	is_str(opt_range(text, &r), NULL, "%s is a range", text);
	ok(r.set && r.first == first && r.last == last && r.suffix == suffix,
	   "and has its ends");
}

static void check_ranges(void)
{
	static const char *const bad[] = { "",
					   "-",
					   "5",
					   "5-4",
					   "-0",
					   "a-b",
					   "1-2-",
					   "1--2",
					   "--1",
					   "1- ",
					   " 1-",
					   "1-2,4-5",
					   "99999999999999999999-" };
	struct byte_range r = { 0 };

	check_range("0-0", 0, 0, false);
	check_range("5-9", 5, 9, false);
	check_range("7-", 7, UINT64_MAX, false);
	check_range("-3", 3, UINT64_MAX, true);
	check_range("9223372036854775807-9223372036854775807", INT64_MAX,
		    INT64_MAX, false);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(opt_range(bad[i], &r) && !r.set, "'%s' is no range", bad[i]);
}

static void check_numbers(void)
{
	unsigned int jobs = 0;
	uint32_t alg = 0;
	uint64_t size = 0;

	ok(!opt_jobs("256", &jobs) && jobs == 256, "256 jobs are allowed");
	ok(opt_jobs("257", &jobs) && opt_jobs("0", &jobs), "257 and 0 are not");
	ok(!opt_size("9223372036854775807", &size) && size == INT64_MAX,
	   "the largest size");
	ok(opt_size("9223372036854775808", &size) && opt_size("0", &size),
	   "one more is refused, so is 0");
	ok(!opt_alg("sha512", &alg) && alg == VERITY_SHA512, "sha512");
	ok(opt_alg("SHA512", &alg) && opt_alg("", &alg) && opt_alg("1", &alg),
	   "other spellings are refused");
}

static void check_near(void)
{
	ok(opts_near("digst", "digest"), "a letter left out is near");
	ok(opts_near("chekc", "check"), "two letters changed over are near");
	ok(opts_near("insp", "inspect"), "a beginning is near");
	ok(opts_near("blocksize", "block-size"), "a dash left out is near");
	ok(!opts_near("seal", "digest"), "another word is not");
	ok(!opts_near("c", "cat"), "one letter is not");
	ok(!opts_near("--------------------------------------------------"
		      "--------------------------------------------------",
		      "cat"),
	   "nor is a long one");
}

struct values {
	bool flag;
	const char *text;
	uint32_t block_size;
};

static int run_nothing(const void *opts, char **operands, int count)
{
	(void)opts;
	(void)operands;
	return count;
}

static const struct opt options[] = {
	{ "flag", NULL, "a flag", opt_flag, offsetof(struct values, flag) },
	{ "text", "TEXT", "text", opt_string, offsetof(struct values, text) },
	{ "block-size", "N", "number", opt_block_size,
	  offsetof(struct values, block_size) },
	{ NULL, NULL, NULL, NULL, 0 },
};
static const struct command command = {
	"test", "FILE...", "Test",      options, sizeof(struct values),
	1,      2,         run_nothing,
};

/* Parse words up to a NULL. */
static int parse(const char *const *words, struct values *v, char ***operands,
		 int *status)
{
	static char *argv[16];
	int argc = 0;

	memset(v, 0, sizeof(*v));
	argv[argc++] = (char *)"test";
	while (*words)
		argv[argc++] = (char *)*words++;
	argv[argc] = NULL;
	return opts_parse(&command, argc, argv, v, operands, status);
}
#define WORDS(...)                                                             \
	(const char *const[])                                                  \
	{                                                                      \
		__VA_ARGS__, NULL                                              \
	}

static void check_parsing(void)
{
	struct values v;
	char **operand;
	int status = -1;

	is_int(parse(WORDS("a", "--flag", "--text", "x y", "b",
			   "--block-size=1024"),
		     &v, &operand, &status),
	       2, "options and operands go in any order");
	is_int(status, EXIT_OK, "that is fine");
	is_str(operand[0], "a", "the first operand");
	is_str(operand[1], "b", "the second operand");
	is_str(v.text, "x y", "a value in a word of its own");
	is_uint(v.block_size, 1024, "a value behind an equals sign");
	ok(v.flag, "a flag");
	is_int(parse(WORDS("--", "--flag"), &v, &operand, &status), 1,
	       "what follows -- is an operand");
	is_str(operand[0], "--flag", "as it stands");
	is_int(parse(WORDS("-"), &v, &operand, &status), 1,
	       "a lone dash is an operand");
	is_int(parse(WORDS("--text=a=b", "x"), &v, &operand, &status), 1,
	       "a value may hold an equals sign");
	is_str(v.text, "a=b", "which is part of it");
}

static void check_refused(const char *const *words, const char *why)
{
	struct values v;
	char **operand;
	int status = -1;

	ok(parse(words, &v, &operand, &status) == -1 && status == EXIT_USAGE,
	   "refused: %s", why);
}

/* The messages are looked at in t/cli.t. */
static void check_refusals(void)
{
	ok(freopen("/dev/null", "w", stderr) != NULL, "messages go nowhere");
	check_refused(WORDS("--flag"), "too few operands");
	check_refused(WORDS("a", "b", "c"), "too many operands");
	check_refused(WORDS("a", "--nosuch"), "an unknown option");
	check_refused(WORDS("a", "--fla"), "a beginning of an option");
	check_refused(WORDS("a", "-f"), "a short option");
	check_refused(WORDS("a", "--flag", "--flag"), "an option twice");
	check_refused(WORDS("a", "--flag=yes"), "a flag with a value");
	check_refused(WORDS("a", "--text"), "a value that is missing");
	check_refused(WORDS("a", "--text="), "an empty value");
	check_refused(WORDS("a", "--block-size", "7"), "a value against its "
						       "rule");
}

int main(void)
{
	plan(CHECKS);
	check_block_sizes();
	check_salts();
	check_digests();
	check_ranges();
	check_numbers();
	check_near();
	check_parsing();
	check_refusals();
	return done();
}
