/* SPDX-License-Identifier: MIT */
/* There is one way to write a manifest: what is read is written again to the
 * same bytes, and anything else is refused at its line. */
#include "merkle/manifest.h"
#include "t/data.h"
#include "t/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define H32 "0123456789abcdef0f1e2d3c4b5a6978"
#define H64 H32 H32

static const char base[] = "verity-manifest 1\n"            /* line 1 */
			   "serial 3\n"                     /* 2 */
			   "created 2026-01-31T12:00:00Z\n" /* 3 */
			   "expires 2027-01-31T12:00:00Z\n" /* 4 */
			   "algorithm sha256\n"             /* 5 */
			   "block-size 4096\n"              /* 6 */
			   "salt 00ff\n"                    /* 7 */
			   "\n"                             /* 8 */
			   "dir bin\n"                      /* 9 */
			   "sha256:" H64 " bin/tool\n"      /* 10 */
			   "\tsize 70000\n"                 /* 11 */
			   "\texec\n"                       /* 12 */
			   "\tsha256 " H64 "\n"             /* 13 */
			   "\tmtime -5.000000009\n"         /* 14 */
			   "symlink tool\n"                 /* 15 */
			   "\ttarget ../bin\\\\tool\n";     /* 16 */

static const char *const magic = "is not a verity manifest",
			 *const version = "manifest version must be 1",
			 *const serial = "\"serial\" must be a number",
			 *const created = "\"created\" must be a UTC time",
			 *const expires = "\"expires\" must be a UTC time",
			 *const later = "\"expires\" must be after \"created\"",
			 *const epoch = "\"expires\" must be after 1970",
			 *const alg = "\"algorithm\" must be sha256 or sha512",
			 *const size_512 =
				 "\"block-size\" must be 512 to 65536",
			 *const power =
				 "\"block-size\" must be a power of two from "
				 "512 to 65536",
			 *const salt = "\"salt\" must be 1 to 32 bytes in hex",
			 *const head_end =
				 "the head must end with an empty line",
			 *const neither =
				 "entry is neither dir, symlink nor ALG:HEX",
			 *const digest =
				 "digest has the wrong length or digits",
			 *const file_size =
				 "a file needs a \"size\" below 2^63",
			 *const plain = "\"sha256\" must be 64 hex digits",
			 *const mtime = "\"mtime\" must be SECONDS.NNNNNNNNN",
			 *const target = "a symlink needs a \"target\"",
			 *const escape = "path is not escaped as it must be",
			 *const sorted = "paths must be sorted and unique",
			 *const parent = "path is not under a dir entry",
			 *const hole = "path has an empty component",
			 *const dots = "path has a component \".\" or \"..\"";

/* Each row replaces one piece of the text above by another. */
static const struct {
	const char *old, *new;
	size_t line;
	const char *const *what;
} bad[] = { { "verity-manifest", "Verity-manifest", 1, &magic },
	    { "verity-manifest 1", "verity-manifest", 1, &magic },
	    { "verity-manifest 1\n", "\n", 1, &magic },
	    { "verity-manifest 1", "verity-manifest 2", 1, &version },
	    { "verity-manifest 1", "verity-manifest 01", 1, &version },
	    { "verity-manifest 1", "verity-manifest 1 ", 1, &version },
	    { "serial 3\n", "", 2, &serial },
	    { "serial 3", "serial 03", 2, &serial },
	    { "serial 3", "serial -3", 2, &serial },
	    { "serial 3", "serial +3", 2, &serial },
	    { "serial 3", "serial ", 2, &serial },
	    { "serial 3", "serial  3", 2, &serial },
	    { "serial 3", "serial 3 ", 2, &serial },
	    { "serial 3", "serial 18446744073709551616", 2, &serial },
	    { "serial 3", "serial 99999999999999999999999", 2, &serial },
	    { "created", "Created", 3, &created },
	    { "created 2026", "created  2026", 3, &created },
	    { "created 2026-01-31", "created 2026-02-30", 3, &created },
	    { "created 2026-01-31", "created 2026-1-31", 3, &created },
	    { "created 2026-01-31T", "created 2026-01-31 ", 3, &created },
	    { "created 2026-01-31T12:00:00Z", "created 2026-01-31T12:00:00", 3,
	      &created },
	    { "created 2026-01-31T12:00:00Z", "created 2026-01-31T12:00:00Z ",
	      3, &created },
	    { "created 2026-01-31T12:00:00Z", "created 2026-01-31T24:00:00Z", 3,
	      &created },
	    { "created 2026-01-31T12:00:00Z", "created 2026-01-31T12:00:60Z", 3,
	      &created },
	    { "created 2026-01-31T12:00:00Z", "created 0026-01-31T12:00:00Z", 3,
	      &created },
	    { "expires 2027-01-31T12:00:00Z", "expires never", 4, &expires },
	    { "expires 2027-01-31T12:00:00Z", "expires 2026-01-31T12:00:00Z", 4,
	      &later },
	    { "expires 2027-01-31T12:00:00Z", "expires 2026-01-31T11:59:59Z", 4,
	      &later },
	    { "created 2026-01-31T12:00:00Z\nexpires 2027-01-31T12:00:00Z",
	      "created 1969-12-31T12:00:00Z\nexpires 1970-01-01T00:00:00Z", 4,
	      &epoch },
	    { "expires", "expired", 4, &alg },
	    { "sha256\nb", "sha1\nb", 5, &alg },
	    { "sha256\nb", "SHA256\nb", 5, &alg },
	    { "algorithm sha256\n", "", 5, &alg },
	    { "block-size 4096\n", "", 6, &size_512 },
	    { "block-size 4096", "block-size 04096", 6, &size_512 },
	    { "block-size 4096", "block-size 131072", 6, &size_512 },
	    { "block-size 4096", "block-size 4294971392", 6, &size_512 },
	    { "block-size 4096", "block-size 4095", 6, &power },
	    { "block-size 4096", "block-size 256", 6, &power },
	    { "block-size 4096", "block-size 0", 6, &power },
	    { "salt 00ff", "salt ", 7, &salt },
	    { "salt 00ff", "salt 00f", 7, &salt },
	    { "salt 00ff", "salt 00FF", 7, &salt },
	    { "salt 00ff", "salt 00fg", 7, &salt },
	    { "salt 00ff", "salt " H64 "00", 7, &salt },
	    { "00ff\n\n", "00ff\n", 8, &head_end },
	    { "00ff\n\n", "00ff\nsalt 00ff\n\n", 8, &head_end },
	    { "00ff\n\n", "00ff\n\n\n", 9, &neither },
	    { "dir bin", "dir", 9, &neither },
	    { "dir bin", "Dir bin", 9, &neither },
	    { "dir bin\n", "dir bin\n\tsize 3\n", 10, &neither },
	    { "dir bin", "dir bin\\", 9, &escape },
	    { "dir bin", "dir bin\\x", 9, &escape },
	    { "dir bin", "dir b\tin", 9, &escape },
	    { "dir bin", "dir bin\r", 9, &escape },
	    { "dir bin", "dir /bin", 9, &hole },
	    { "dir bin", "dir bin/", 9, &hole },
	    { "dir bin", "dir bin//x", 9, &hole },
	    { "dir bin", "dir .", 9, &dots },
	    { "dir bin", "dir ..", 9, &dots },
	    { "dir bin", "dir ../bin", 9, &dots },
	    { "dir bin", "dir bin/./x", 9, &dots },
	    { "dir bin\n", "dir bin\ndir bin\n", 10, &sorted },
	    { "dir bin\n", "dir bin\ndir bim\n", 10, &sorted },
	    { "dir bin\n", "dir bin\ndir bin/z\n", 11, &sorted },
	    { "dir bin\n", "dir bin/z\n", 9, &parent },
	    { "dir bin\n", "", 9, &parent },
	    { "dir bin\n", "symlink bin\n\ttarget b\n", 11, &parent },
	    { "symlink tool", "symlink bin/tool/a", 15, &parent },
	    { "sha256:0", "sha512:0", 10, &neither },
	    { "sha256:0", "sha256 0", 10, &neither },
	    { "sha256:0123", "sha256:012", 10, &digest },
	    { "sha256:0123", "sha256:00123", 10, &digest },
	    { "sha256:01", "sha256:0g", 10, &digest },
	    { "abcdef", "ABCDEF", 10, &digest },
	    { H64 " bin", H64 "\tbin", 10, &digest },
	    { H64 " bin/tool", H64, 10, &digest },
	    { "bin/tool\n\t", "bin\\/tool\n\t", 10, &escape },
	    { "\tsize 70000\n", "", 11, &file_size },
	    { "\tsize 70000", "\tsize", 11, &file_size },
	    { "\tsize 70000", "\tsize 9223372036854775808", 11, &file_size },
	    { "\tsize 70000", "\tsize 070000", 11, &file_size },
	    { "\tsize 70000\n", "\tsize 70000\n\tsize 70000\n", 12, &neither },
	    { "\texec", "\texec ", 12, &neither },
	    { "\texec\n", "\texec\n\texec\n", 13, &neither },
	    { "\tsha256 " H64 "\n\tm", "\tsha256 " H32 "\n\tm", 13, &plain },
	    { "\tsha256 0123456789a", "\tsha256 0123456789A", 13, &plain },
	    { "\tsha256 0123456789a", "\tsha256 0123456789x", 13, &plain },
	    { "-5.000000009", "-5", 14, &mtime },
	    { "-5.000000009", "-5.00000009", 14, &mtime },
	    { "-5.000000009", "-5.0000000009", 14, &mtime },
	    { "-5.000000009", "-5.00000000x", 14, &mtime },
	    { "-5.000000009", "-0.000000009", 14, &mtime },
	    { "-5.000000009", "--5.000000009", 14, &mtime },
	    { "-5.000000009", "05.000000009", 14, &mtime },
	    { "-5.000000009", ".000000009", 14, &mtime },
	    { "-5.000000009", "9223372036854775808.000000009", 14, &mtime },
	    { "-5.000000009", "-9223372036854775809.000000009", 14, &mtime },
	    { "\tmtime", "\tatime", 14, &neither },
	    { "\ttarget ../bin\\\\tool\n", "", 16, &target },
	    { "\ttarget ../bin\\\\tool", "\ttarget ", 16, &target },
	    { "\ttarget ..", "target ..", 16, &target } };

static void *must(void *p, const char *what)
{
	if (!p)
		bail("no %s", what);
	return p;
}

/* @base with the first @old replaced by @new; the caller's to free. */
static char *spoil(const char *old, const char *new, size_t *len)
{
	const char *at = must(strstr(base, old), old);
	size_t before, old_len = strlen(old);
	char *text;

	before = (size_t)(at - base);
	*len = sizeof(base) - 1 - old_len + strlen(new);
	text = must(malloc(*len + 1), "memory");
	snprintf(text, *len + 1, "%.*s%s%s", (int)before, base, new,
		 at + old_len);
	return text;
}

/* One check: refused at this line, with these words, and nothing written. */
static void refused(const char *text, size_t len, size_t line, const char *what,
		    const char *name)
{
	struct verity_manifest m = { .count = 77 };
	struct verity_manifest_error why = { 0 };
	int err = verity_manifest_parse(text, len, &m, &why);
	bool right = err == -EINVAL && m.count == 77 && why.line == line &&
		     why.what && !strcmp(why.what, what) &&
		     verity_manifest_parse(text, len, &m, NULL) == -EINVAL;

	ok(right, "%s", name);
	if (!right)
		diag("got %d, line %zu: %s; want line %zu: %s", err, why.line,
		     why.what ? why.what : "(NULL)", line, what);
}

/* The name of a check in one line, without what TAP takes for its own. */
static void name_of(size_t i, char *out, size_t room)
{
	snprintf(out, room, "line %zu, row %zu: %s", bad[i].line, i + 1,
		 *bad[i].what);
}

static void test_bad(void)
{
	for (size_t i = 0; i < LEN(bad); i++) {
		char name[200];
		size_t len;
		char *text = spoil(bad[i].old, bad[i].new, &len);

		name_of(i, name, sizeof(name));
		refused(text, len, bad[i].line, *bad[i].what, name);
		free(text);
	}
}

static void test_whole(void)
{
	struct verity_manifest m = { .count = 77 };
	const size_t len = sizeof(base) - 1;
	char text[sizeof(base)];

	refused(base, len - 1, 16, "must end with a newline",
		"a text without a final newline is refused at its last line");
	refused("", 0, 1, "must end with a newline", "so is an empty one");
	memcpy(text, base, sizeof(text));
	text[200] = '\0';
	refused(text, len, 10, "has a NUL byte", "so is one with a NUL");
	refused(base, sizeof(base), 17, "has a NUL byte", "also at its end");
	refused("\n", 1, 1, magic, "an empty line is no manifest");
	refused(base, 27, 3, created, "nor is the start of one");
	is_int(verity_manifest_parse(base, VERITY_MANIFEST_MAX + 1, &m, NULL),
	       -EFBIG, "a text over 1 GiB is too big, and is not read");
	ok(m.count == 77, "and nothing is written");
}

static void put_all(struct verity_text *t, const struct verity_manifest *m)
{
	verity_text_clear(t);
	verity_manifest_put_head(t, &m->head);
	for (size_t i = 0; i < m->count; i++)
		verity_manifest_put_entry(t, &m->head, &m->entry[i]);
	if (t->err)
		bail("out of memory");
}

static bool same_text(const struct verity_manifest *m, const char *text,
		      size_t len)
{
	struct verity_text t = { 0 };
	bool same;

	put_all(&t, m);
	same = t.len == len && !memcmp(t.s, text, len);
	verity_text_free(&t);
	return same;
}

static void test_fields(void)
{
	static const uint8_t hex[] = { 1,    0x23, 0x45, 0x67,
				       0x89, 0xab, 0xcd, 0xef };
	const struct verity_entry *e;
	struct verity_manifest m;

	if (verity_manifest_parse(base, sizeof(base) - 1, &m, NULL))
		bail("the sound manifest is refused");
	ok(m.head.serial == 3 && m.head.created == 1769860800 &&
		   m.head.expires == 1801396800 && m.head.params.alg == 1 &&
		   m.head.params.block_size == 4096 &&
		   m.head.params.salt_size == 2 &&
		   !memcmp(m.head.params.salt, "\0\xff", 2),
	   "the head is read");
	is_uint(m.count, 3, "and every entry");
	e = m.entry;
	ok(e[0].kind == VERITY_DIR && !strcmp(e[0].path, "bin"), "a dir");
	ok(e[1].kind == VERITY_FILE && !strcmp(e[1].path, "bin/tool") &&
		   e[1].size == 70000 && e[1].exec && e[1].has_sha256 &&
		   e[1].has_mtime && e[1].mtime_s == -5 && e[1].mtime_ns == 9 &&
		   !memcmp(e[1].digest, hex, 8) && !memcmp(e[1].sha256, hex, 8),
	   "a file with all attributes");
	ok(e[2].kind == VERITY_SYMLINK && !strcmp(e[2].path, "tool") &&
		   !strcmp(e[2].target, "../bin\\tool"),
	   "a symlink");
	ok(same_text(&m, base, sizeof(base) - 1),
	   "and all is written again to the same bytes");
	verity_manifest_free(&m);
	ok(!m.entry && !m.text && !m.count, "freeing leaves nothing");
	verity_manifest_free(&m);
}

/* Texts that leave out what may be left out, or hold the most there can be. */
static const char *const good[][2] = {
	{ "expires 2027-01-31T12:00:00Z\n", "" },
	{ "salt 00ff\n", "" },
	{ "salt 00ff", "salt " H64 },
	{ "serial 3", "serial 18446744073709551615" },
	{ "serial 3", "serial 0" },
	{ "created 2026", "created 1969" },
	{ "created 2026-01-31", "created 2024-02-29" },
	{ "block-size 4096", "block-size 512" },
	{ "block-size 4096", "block-size 65536" },
	{ "\texec\n", "" },
	{ "\tsha256 " H64 "\n", "" },
	{ "\tmtime -5.000000009\n", "" },
	{ "\tmtime -5.000000009", "\tmtime 0.999999999" },
	{ "\tmtime -5.000000009", "\tmtime 9223372036854775807.000000000" },
	{ "\tmtime -5.000000009", "\tmtime -9223372036854775808.000000000" },
	{ "\tsize 70000", "\tsize 0" },
	{ "\tsize 70000", "\tsize 9223372036854775807" },
	{ "dir bin\n", "dir bin\nsymlink bin.d\n\ttarget /\n" },
	{ "dir bin\n", "dir a\\n\\r\\t\\\\\ndir bin\n" },
	{ "dir bin\n", "dir  \ndir ...\ndir .bin\ndir bin\n" },
	{ "tool\n\ttarget", "\xff\xfe\n\ttarget" }
};

static void test_good(void)
{
	for (size_t i = 0; i < LEN(good); i++) {
		struct verity_manifest m;
		size_t len;
		char *text = spoil(good[i][0], good[i][1], &len);
		int err = verity_manifest_parse(text, len, &m, NULL);

		ok(!err && same_text(&m, text, len),
		   "a variant, row %zu, is read and written", i + 1);
		if (!err)
			verity_manifest_free(&m);
		free(text);
	}
}

/* Write entries and read them back. */
static int write_and_read(const struct verity_entry *e, size_t n,
			  struct verity_manifest *out,
			  struct verity_manifest_error *why)
{
	struct verity_manifest_head h = { 1, 0, 0, VERITY_PARAMS_DEFAULT };
	struct verity_text t = { 0 };
	int err;

	verity_manifest_put_head(&t, &h);
	for (size_t i = 0; i < n; i++)
		verity_manifest_put_entry(&t, &h, &e[i]);
	if (t.err)
		bail("out of memory");
	err = verity_manifest_parse(t.s, t.len, out, why);
	verity_text_free(&t);
	return err;
}

/* One symlink of this path, to this target; Return: what refused it, or "" */
static const char *one_link(const char *path, const char *to)
{
	struct verity_entry e = { .kind = VERITY_SYMLINK,
				  .path = path,
				  .target = to };
	struct verity_manifest_error why = { 0 };
	struct verity_manifest m;
	bool same;

	if (write_and_read(&e, 1, &m, &why))
		return why.what;
	same = m.count == 1 && !strcmp(m.entry[0].path, path) &&
	       !strcmp(m.entry[0].target, to);
	verity_manifest_free(&m);
	return same ? "" : "was changed";
}

static void test_escapes(void)
{
	char all[256], *out = all, lines[4097];
	struct verity_text t = { 0 };

	verity_text_path(&t, "\n\r\t\\");
	is_str(t.s, "\\n\\r\\t\\\\", "four characters are escaped, as in C");
	verity_text_free(&t);
	for (int c = 1; c < 256; c++)
		if (c != '/')
			*out++ = (char)c;
	*out = '\0';
	is_str(one_link(all, all), "",
	       "a name may have any byte but / and NUL");
	is_str(one_link("a", "/\n/\\n//.."), "", "so may a target, and a /");
	is_str(one_link(" dir x", "\\"), "", "a space may come first");
	memset(lines, '\n', 4096);
	lines[4096] = '\0';
	is_str(one_link("a", lines), "target is longer than 4095 bytes",
	       "a target of 4096 bytes is too long");
	lines[4095] = '\0';
	is_str(one_link("a", lines), "", "4095 may all be escaped");
	lines[256] = '\0';
	is_str(one_link(lines, "a"), "path has a component of over 255 bytes",
	       "a name of 256 bytes is too long");
	lines[255] = '\0';
	is_str(one_link(lines, "a"), "", "255 may all be escaped");
	is_str(one_link("", "a"), "path is empty", "an empty path is refused");
}

/* 16 components of 255 bytes, each under the one before: 4095 in all. */
static void test_longest_path(void)
{
	static char path[17][4400];
	struct verity_entry e[17] = { { .kind = VERITY_DIR } };
	struct verity_manifest_error why = { 0 };
	struct verity_manifest m;

	for (size_t i = 0; i < 17; i++) {
		size_t len = i * 256 + 255;

		e[i].kind = VERITY_DIR;
		e[i].path = path[i];
		memset(path[i], 'x', len);
		for (size_t slash = 255; slash < len; slash += 256)
			path[i][slash] = '/';
	}
	is_int(write_and_read(e, 16, &m, NULL), 0,
	       "a path of 4095 bytes is read");
	ok(verity_manifest_find(&m, path[15]) == &m.entry[15], "and found");
	verity_manifest_free(&m);
	path[16][4097] = '\0';
	is_int(write_and_read(e, 17, &m, &why), -EINVAL,
	       "one of 4097 is refused");
	is_str(why.what, "path is longer than 4095 bytes", "for its length");
	is_uint(why.line, 23, "at its line");
}

static void test_find(void)
{
	enum { N = 2000 };
	static char path[N][32];
	static struct verity_entry e[N];
	struct verity_manifest m;
	size_t missed = 0;

	for (size_t i = 0; i < N; i++) {
		snprintf(path[i], sizeof(path[i]),
			 i % 100 ? "d%02zu/f%02zu" : "d%02zu", i / 100,
			 i % 100);
		e[i].kind = i % 100 ? VERITY_FILE : VERITY_DIR;
		e[i].path = path[i];
		e[i].size = i;
	}
	if (write_and_read(e, N, &m, NULL))
		bail("a manifest of %d entries is refused", N);
	for (size_t i = 0; i < N; i++)
		missed += verity_manifest_find(&m, path[i]) != &m.entry[i] ||
			  (i % 100 && m.entry[i].size != i);
	is_uint(missed, 0, "every entry is found by its path");
	ok(!verity_manifest_find(&m, "d00/f") &&
		   !verity_manifest_find(&m, "d00/f011") &&
		   !verity_manifest_find(&m, "") &&
		   !verity_manifest_find(&m, "d00/") &&
		   !verity_manifest_find(&m, "zzz"),
	   "and no other path");
	verity_manifest_free(&m);
	is_int(write_and_read(NULL, 0, &m, NULL), 0,
	       "a manifest may have no entry");
	ok(!verity_manifest_find(&m, "d00"), "and then nothing is found in it");
	verity_manifest_free(&m);
}

/* A line of 4 MiB, wherever one can be. */
static void test_long_lines(void)
{
	static const char file[] = "sha256:" H64 " ";
	static const char *const before[] = { "",         "serial ", "created ",
					      "salt ",    "dir ",    file,
					      "\ttarget " };
	static const char fill[] = "0\t/\\x";
	const size_t len = 4 << 20;
	char *line = must(malloc(len + 1), "memory");
	unsigned int wrong = 0, tried = 0;

	line[len] = '\0';
	for (size_t i = 0; i < LEN(before); i++)
		for (const char *f = fill; *f; f++, tried++) {
			struct verity_manifest m;
			size_t n = strlen(before[i]), total;
			char *text;

			memset(line, *f, len);
			memcpy(line, before[i], n);
			text = spoil("dir bin", line, &total);
			wrong += verity_manifest_parse(text, total, &m, NULL) !=
				 -EINVAL;
			free(text);
		}
	free(line);
	is_uint(wrong, 0, "a line of 4 MiB is refused, %u kinds", tried);
}

static uint64_t seed = 362436069;

/* Change 1 to 3 places: a bit, a byte, one byte more, a piece doubled, moved
 * or cut out.  Return: the new length, at most room */
static size_t mutate(char *text, size_t len, size_t room)
{
	static const char special[] = "\n\t\r\\ /.:-019afFZ";

	for (uint64_t n = 1 + rnd(&seed) % 3; n; n--) {
		size_t at = rnd(&seed) % len, piece = 1 + rnd(&seed) % 40;

		if (piece > len - at)
			piece = len - at;
		if (rnd(&seed) % 3 == 0) {
			text[at] = (char)(text[at] ^ 1 << rnd(&seed) % 7);
		} else if (rnd(&seed) % 2) {
			text[at] = special[rnd(&seed) % (sizeof(special) - 1)];
		} else if (rnd(&seed) % 2 && len + piece <= room) {
			memmove(text + at + piece, text + at, len - at);
			len += piece;
		} else if (len > piece) {
			memmove(text + at, text + at + piece, len - at - piece);
			len -= piece;
		}
	}
	return len;
}

static void test_mutations(void)
{
	enum { TRIES = 40000 };
	unsigned int read = 0, changed = 0;

	for (int i = 0; i < TRIES; i++) {
		struct verity_manifest m;
		char text[sizeof(base) + 200], *exact;
		size_t len;

		memcpy(text, base, sizeof(base));
		len = mutate(text, sizeof(base) - 1, sizeof(text));
		/* of just this length, so that a byte too far shows */
		exact = must(malloc(len), "memory");
		memcpy(exact, text, len);
		if (!verity_manifest_parse(exact, len, &m, NULL)) {
			read++;
			changed += !same_text(&m, exact, len);
			verity_manifest_free(&m);
		}
		free(exact);
	}
	diag("of %d mutated manifests %u were read", TRIES, read);
	ok(read > 100, "some mutated manifests are still manifests");
	is_uint(changed, 0, "and these are written again to the same bytes");
}

int main(void)
{
	plan(LEN(bad) + 8 + 7 + LEN(good) + 9 + 5 + 4 + 1 + 2);
	test_bad();
	test_whole();
	test_fields();
	test_good();
	test_escapes();
	test_longest_path();
	test_find();
	test_long_lines();
	test_mutations();
	return done();
}
