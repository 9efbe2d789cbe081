/* SPDX-License-Identifier: MIT */
/* Reading a manifest, strictly.  Layer: merkle. */
#include "merkle/manifest.h"

#include "merkle/geom.h"
#include "merkle/hex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A walk over the lines of a text that was copied and may be cut up. */
struct lines {
	char *next;       /* the line that comes next; empty at the end */
	size_t number;    /* of the last line taken, from 1 */
	size_t at;        /* of the line that a refusal is about */
	const char *what; /* why the parse failed */
};

static int refuse(struct lines *l, const char *what)
{
	l->what = what;
	return -EINVAL;
}

/* Return: the line that would come next, or NULL; it stays there */
static const char *peek(const struct lines *l)
{
	return *l->next ? l->next : NULL;
}

/* Return: the next line without its newline, or NULL */
static char *take(struct lines *l)
{
	char *line = l->next, *end;

	if (!*line)
		return NULL;
	l->at = ++l->number;
	/* There is a newline: the parse began with making sure of the last. */
	end = line + strcspn(line, "\n");
	*end = '\0';
	l->next = end + 1;
	return line;
}

/* Return: what follows "KEY " when the next line begins so; it is taken */
static char *take_key(struct lines *l, const char *key)
{
	size_t n = strlen(key);

	if (!peek(l) || strncmp(l->next, key, n) != 0 || l->next[n] != ' ') {
		l->at = l->number + 1;
		return NULL;
	}
	return take(l) + n + 1;
}

/* Hex as we write it: the other case would be a second way to say the same. */
static int parse_hex(const char *hex, size_t bytes, uint8_t *out)
{
	return hex_is_canonical(hex, 2 * bytes) ? hex_decode(hex, bytes, out)
						: -EINVAL;
}

/* A decimal number as printf writes it: no sign, no leading zero. */
static int parse_u64(const char *s, uint64_t *out)
{
	uint64_t v = 0;

	if (!*s || (s[0] == '0' && s[1]))
		return -EINVAL;
	for (; *s; s++) {
		unsigned int digit = (unsigned int)(*s - '0');

		if (digit > 9 || v > (UINT64_MAX - digit) / 10)
			return -EINVAL;
		v = v * 10 + digit;
	}
	*out = v;
	return 0;
}

/* RFC 3339 in UTC, whole seconds, and only the spelling that we write. */
static int parse_time(const char *s, int64_t *out)
{
	struct tm tm = { 0 };
	char again[VERITY_TIME_TEXT];
	const char *end = strptime(s, "%Y-%m-%dT%H:%M:%SZ", &tm);
	time_t t;

	/* A short year would be read, and written, as it stands. */
	if (!end || *end || s[4] != '-')
		return -EINVAL;
	t = timegm(&tm);
	verity_time_format((int64_t)t, again);
	if (strcmp(again, s) != 0)
		return -EINVAL;
	*out = (int64_t)t;
	return 0;
}

static int parse_salt(const char *hex, struct verity_params *p)
{
	size_t n = strlen(hex);

	if (!n || n % 2 || n > 2 * (size_t)VERITY_MAX_SALT)
		return -EINVAL;
	p->salt_size = (uint32_t)(n / 2);
	return parse_hex(hex, n / 2, p->salt);
}

static int parse_params(struct lines *l, struct verity_params *p)
{
	const char *s = take_key(l, "algorithm");
	uint64_t n;

	p->alg = s ? verity_alg_by_name(s) : 0;
	if (!p->alg)
		return refuse(l, "\"algorithm\" must be sha256 or sha512");
	s = take_key(l, "block-size");
	if (!s || parse_u64(s, &n) || n > VERITY_MAX_BLOCK)
		return refuse(l, "\"block-size\" must be 512 to 65536");
	p->block_size = (uint32_t)n;
	if (verity_params_check(p, NULL))
		return refuse(l, "\"block-size\" must be a power of two from "
				 "512 to 65536");
	s = take_key(l, "salt");
	if (s && parse_salt(s, p))
		return refuse(l, "\"salt\" must be 1 to 32 bytes in hex");
	return 0;
}

static int parse_head(struct lines *l, struct verity_manifest_head *h)
{
	const char *s = take(l);

	if (!s || strncmp(s, "verity-manifest ", 16) != 0)
		return refuse(l, "is not a verity manifest");
	if (strcmp(s + 16, "1") != 0)
		return refuse(l, "manifest version must be 1");
	s = take_key(l, "serial");
	if (!s || parse_u64(s, &h->serial))
		return refuse(l, "\"serial\" must be a number");
	s = take_key(l, "created");
	if (!s || parse_time(s, &h->created))
		return refuse(l, "\"created\" must be a UTC time");
	s = take_key(l, "expires");
	if (s && parse_time(s, &h->expires))
		return refuse(l, "\"expires\" must be a UTC time");
	if (s && h->expires <= h->created)
		return refuse(l, "\"expires\" must be after \"created\"");
	if (s && h->expires <= 0) /* 0 would mean never */
		return refuse(l, "\"expires\" must be after 1970");
	if (parse_params(l, &h->params))
		return -EINVAL;
	s = take(l);
	if (!s || *s)
		return refuse(l, "the head must end with an empty line");
	return 0;
}

const char *verity_path_ok(const char *path)
{
	size_t total = strlen(path);

	if (!total)
		return "path is empty";
	if (total > VERITY_PATH_MAX)
		return "path is longer than 4095 bytes";
	for (;;) {
		size_t n = strcspn(path, "/");

		if (!n)
			return "path has an empty component";
		if (n > VERITY_NAME_MAX)
			return "path has a component of over 255 bytes";
		if (path[0] == '.' && (n == 1 || (n == 2 && path[1] == '.')))
			return "path has a component \".\" or \"..\"";
		if (!path[n])
			return NULL;
		path += n + 1;
	}
}

/* SECONDS.NANOSECONDS, nine digits after the point. */
static int parse_mtime(char *s, struct verity_entry *e)
{
	char *dot = strchr(s, '.');
	bool negative = *s == '-';
	uint64_t secs, ns = 0;

	if (!dot || strlen(dot + 1) != 9 || strspn(dot + 1, "0123456789") != 9)
		return -EINVAL;
	*dot = '\0';
	for (const char *d = dot + 1; *d; d++)
		ns = ns * 10 + (uint64_t)(*d - '0');
	/* Below zero there is one more. */
	if (parse_u64(s + negative, &secs) ||
	    secs > (uint64_t)INT64_MAX + negative || (negative && !secs))
		return -EINVAL;
	e->mtime_s = (int64_t)(negative ? -secs : secs);
	e->mtime_ns = (uint32_t)ns;
	e->has_mtime = true;
	return 0;
}

/* The indented lines after a file's entry, in this order and no other. */
static int parse_attributes(struct lines *l, struct verity_entry *e)
{
	char *s = take_key(l, "\tsize");

	if (!s || parse_u64(s, &e->size) || e->size > VERITY_MAX_SIZE)
		return refuse(l, "a file needs a \"size\" below 2^63");
	if (peek(l) && !strncmp(l->next, "\texec\n", 6)) {
		(void)take(l);
		e->exec = true;
	}
	s = take_key(l, "\tsha256");
	if (s) {
		if (strlen(s) != 64 || parse_hex(s, 32, e->sha256))
			return refuse(l, "\"sha256\" must be 64 hex digits");
		e->has_sha256 = true;
	}
	s = take_key(l, "\tmtime");
	if (s && parse_mtime(s, e))
		return refuse(l, "\"mtime\" must be SECONDS.NNNNNNNNN");
	return 0;
}

static int parse_file(struct lines *l, char *line,
		      const struct verity_params *p, struct verity_entry *e)
{
	size_t name = strlen(verity_alg_name(p->alg));
	size_t hex = 2 * (size_t)verity_digest_size(p->alg);

	if (strncmp(line, verity_alg_name(p->alg), name) != 0 ||
	    line[name] != ':')
		return refuse(l, "entry is neither dir, symlink nor ALG:HEX");
	line += name + 1;
	if (strnlen(line, hex + 1) <= hex || line[hex] != ' ' ||
	    parse_hex(line, hex / 2, e->digest))
		return refuse(l, "digest has the wrong length or digits");
	e->kind = VERITY_FILE;
	e->path = line + hex + 1;
	if (verity_unescape(line + hex + 1))
		return refuse(l, "path is not escaped as it must be");
	return parse_attributes(l, e);
}

static int parse_symlink(struct lines *l, struct verity_entry *e)
{
	char *s = take_key(l, "\ttarget");

	if (!s || !*s)
		return refuse(l, "a symlink needs a \"target\"");
	if (verity_unescape(s))
		return refuse(l, "target is not escaped as it must be");
	if (strlen(s) > VERITY_PATH_MAX)
		return refuse(l, "target is longer than 4095 bytes");
	e->target = s;
	return 0;
}

static int parse_entry(struct lines *l, const struct verity_params *p,
		       struct verity_entry *e)
{
	char *s = take_key(l, "dir");

	if (!s) {
		s = take_key(l, "symlink");
		if (!s)
			return parse_file(l, take(l), p, e);
		e->kind = VERITY_SYMLINK;
	} else {
		e->kind = VERITY_DIR;
	}
	if (verity_unescape(s))
		return refuse(l, "path is not escaped as it must be");
	e->path = s;
	return e->kind == VERITY_SYMLINK ? parse_symlink(l, e) : 0;
}

static int by_path(const void *a, const void *b)
{
	const struct verity_entry *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* Return: the entry of the first @len bytes of @path, or NULL */
static const struct verity_entry *find_prefix(const struct verity_manifest *m,
					      const char *path, size_t len)
{
	char buf[VERITY_PATH_MAX + 1];

	memcpy(buf, path, len);
	buf[len] = '\0';
	return verity_manifest_find(m, buf);
}

/* Order, form, and a parent that is a directory.  Parents sort before their
 * children, so the entries read so far are enough. */
static int check_path(struct lines *l, const struct verity_manifest *m,
		      const struct verity_entry *e)
{
	const char *wrong = verity_path_ok(e->path), *slash;
	const struct verity_entry *up;

	if (wrong)
		return refuse(l, wrong);
	if (m->count && strcmp(m->entry[m->count - 1].path, e->path) >= 0)
		return refuse(l, "paths must be sorted and unique");
	slash = strrchr(e->path, '/');
	if (!slash)
		return 0;
	up = find_prefix(m, e->path, (size_t)(slash - e->path));
	if (!up || up->kind != VERITY_DIR)
		return refuse(l, "path is not under a dir entry");
	return 0;
}

static int parse_entries(struct lines *l, struct verity_manifest *m)
{
	size_t room = 0;

	while (peek(l)) {
		struct verity_entry e = { 0 };
		size_t begin = l->number + 1;

		if (m->count == room) {
			void *more;

			room = room ? 2 * room : 64;
			more = realloc(m->entry, room * sizeof(*m->entry));
			if (!more)
				return -ENOMEM;
			m->entry = more;
		}
		if (parse_entry(l, &m->head.params, &e))
			return -EINVAL;
		l->at = begin;
		if (check_path(l, m, &e))
			return -EINVAL;
		m->entry[m->count++] = e;
	}
	return 0;
}

static int copy_text(const char *text, size_t len, char **out)
{
	if (len > VERITY_MANIFEST_MAX)
		return -EFBIG;
	*out = malloc(len + 1);
	if (!*out)
		return -ENOMEM;
	memcpy(*out, text, len);
	(*out)[len] = '\0';
	return 0;
}

/* Where a NUL byte is, or the text's end: the last line, or the one after. */
static size_t line_of_end(const char *text)
{
	size_t n = 1;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static int parse_lines(struct lines *l, size_t len, struct verity_manifest *m)
{
	int err;

	l->at = line_of_end(m->text);
	if (strlen(m->text) < len)
		return refuse(l, "has a NUL byte");
	if (!len || m->text[len - 1] != '\n')
		return refuse(l, "must end with a newline");
	err = parse_head(l, &m->head);
	return err ? err : parse_entries(l, m);
}

/* @m->text is @len bytes and a NUL. */
static int parse_text(struct verity_manifest *m, size_t len,
		      struct verity_manifest_error *why)
{
	struct lines l = { .next = m->text };
	int err = parse_lines(&l, len, m);

	if (err && why)
		*why = (struct verity_manifest_error){ l.at, l.what };
	return err;
}

int verity_manifest_parse(const char *text, size_t len,
			  struct verity_manifest *out,
			  struct verity_manifest_error *why)
{
	struct verity_manifest m = { 0 };
	int err = copy_text(text, len, &m.text);

	if (!err)
		err = parse_text(&m, len, why);
	if (err)
		verity_manifest_free(&m);
	else
		*out = m;
	return err;
}

void verity_manifest_free(struct verity_manifest *m)
{
	free(m->entry);
	free(m->text);
	memset(m, 0, sizeof(*m));
}

const struct verity_entry *verity_manifest_find(const struct verity_manifest *m,
						const char *path)
{
	struct verity_entry key = { .path = path };

	return m->count
		       ? bsearch(&key, m->entry, m->count, sizeof(key), by_path)
		       : NULL;
}
