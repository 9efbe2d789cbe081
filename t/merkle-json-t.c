/* SPDX-License-Identifier: MIT */
/* t/merkle-json-t.c - the JSON writer: commas, escapes, numbers. */
#include "merkle/json.h"
#include "t/tap.h"

#include <math.h>
#include <string.h>

#define CHECKS 24

/* What a string's value looks like; a static buffer. */
static const char *quoted(const char *value)
{
	static char text[256];
	struct verity_json j = { 0 };

	verity_json_string(&j, NULL, value);
	strncpy(text, j.out.s ? j.out.s : "", sizeof(text) - 1);
	verity_json_free(&j);
	return text;
}

static void check_strings(void)
{
	is_str(quoted(""), "\"\"", "an empty string");
	is_str(quoted("a/b c"), "\"a/b c\"", "plain text stays as it is");
	is_str(quoted("\"\\"), "\"\\\"\\\\\"", "quotes and backslashes");
	is_str(quoted("\t\n\x01\x7f"), "\"\\u0009\\u000a\\u0001\\u007f\"",
	       "control characters are escaped");
	is_str(quoted("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
	       "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"",
	       "UTF-8 of two to four bytes stays as it is");
	is_str(quoted("\xf4\x8f\xbf\xbf\xee\x80\x80"),
	       "\"\xf4\x8f\xbf\xbf\xee\x80\x80\"", "its last characters, too");
}

static void check_bytes(void)
{
	is_str(quoted("a\xff"), "\"a\\udcff\"", "a byte that is not UTF-8");
	is_str(quoted("\xc3"), "\"\\udcc3\"", "a character cut short");
	is_str(quoted("\xe2\x82"), "\"\\udce2\\udc82\"", "and a longer one");
	is_str(quoted("\xe2\x82z"), "\"\\udce2\\udc82z\"",
	       "what follows it is not swallowed");
	is_str(quoted("\xc0\xaf"), "\"\\udcc0\\udcaf\"", "an overlong form");
	is_str(quoted("\xe0\x9f\xbf"), "\"\\udce0\\udc9f\\udcbf\"",
	       "one of three bytes");
	is_str(quoted("\xf0\x8f\xbf\xbf"), "\"\\udcf0\\udc8f\\udcbf\\udcbf\"",
	       "one of four");
	is_str(quoted("\xed\xa0\x80"), "\"\\udced\\udca0\\udc80\"",
	       "a surrogate in UTF-8");
	is_str(quoted("\xf4\x90\x80\x80"), "\"\\udcf4\\udc90\\udc80\\udc80\"",
	       "a character past the last");
	is_str(quoted("\x80"), "\"\\udc80\"", "a lone continuation");
}

static void check_structure(void)
{
	struct verity_json j = { 0 };

	verity_json_object(&j, NULL);
	verity_json_u64(&j, "n", UINT64_MAX);
	verity_json_array(&j, "list");
	verity_json_object(&j, NULL);
	verity_json_end(&j, '}');
	verity_json_bool(&j, NULL, true);
	verity_json_array(&j, NULL);
	verity_json_end(&j, ']');
	verity_json_null(&j, NULL);
	verity_json_end(&j, ']');
	verity_json_bool(&j, "f", false);
	verity_json_end(&j, '}');
	is_str(j.out.s,
	       "{\"n\":18446744073709551615,\"list\":[{},true,[],null],"
	       "\"f\":false}",
	       "commas go between values and nowhere else");
	verity_json_free(&j);
	ok(!j.out.s && !j.comma, "freeing leaves it as at the beginning");
}

static void check_double(double value, const char *want, const char *name)
{
	struct verity_json j = { 0 };

	verity_json_double(&j, NULL, value);
	is_str(j.out.s, want, "%s", name);
	verity_json_free(&j);
}

static void check_values(void)
{
	static const uint8_t bytes[] = { 0x00, 0xab, 0x10 };
	struct verity_digest d = { .alg = VERITY_SHA256, .size = 32 };
	struct verity_json j = { 0 };

	verity_json_object(&j, NULL);
	verity_json_hex(&j, "hex", bytes, sizeof(bytes));
	verity_json_hex(&j, "none", bytes, 0);
	verity_json_digest(&j, "d", &d);
	is_str(j.out.s,
	       "{\"hex\":\"00ab10\",\"none\":\"\",\"d\":\"sha256:"
	       "0000000000000000000000000000000000000000000000000000000000000000"
	       "\"",
	       "bytes are hex digits, digests name their algorithm");
	verity_json_free(&j);
	check_double(0.5, "0.5", "a fraction");
	check_double(3, "3", "a whole number");
	check_double(1e300, "1e+300", "a large number");
	check_double(NAN, "null", "what is no number is null");
	check_double(-INFINITY, "null", "so is infinity");
}

int main(void)
{
	plan(CHECKS);
	check_strings();
	check_bytes();
	check_structure();
	check_values();
	return done();
}
