/* SPDX-License-Identifier: MIT */
#include "wq/topo_build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANK " \t\n"

/* A topology file on its way in. */
struct reader {
	const char *path;
	unsigned int line;
	size_t nr;
	struct wq_topo_cpu cpu[WQ_CPUS];
	struct wq_error *err;
};

static int fail(const struct reader *r, const char *what, const char *word)
{
	return wq_fail(r->err, EINVAL, "%.100s, line %u: %s: '%.40s'", r->path,
		       r->line, what, word);
}

/* Return: a number from @min to @max, or -1. */
static int number(const char *text, long min, long max)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (end == text || *end || errno || value < min || value > max)
		return -1;
	return (int)value;
}

static int attribute(struct reader *r, struct wq_topo_cpu *c, char *word)
{
	const struct {
		const char *name;
		int *field;
	} known[] = {
		{ "package", &c->package },
		{ "core", &c->core },
		{ "cache", &c->cache },
		{ "node", &c->node },
	};
	char *value = strchr(word, '=');
	int n;

	if (!value)
		return fail(r, "NAME=NUMBER is wanted", word);
	*value++ = '\0';
	if (strcmp(word, "capacity") == 0) {
		n = number(value, 1, WQ_CAPACITY);
		if (n < 0)
			return fail(r, "capacity must be 1 to 1024", value);
		c->capacity = (unsigned int)n;
		return 0;
	}
	n = number(value, 0, 1 << 20);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(word, known[i].name) != 0)
			continue;
		if (n < 0)
			return fail(r, "a number from 0 is wanted", value);
		*known[i].field = n;
		return 0;
	}
	return fail(r, "package, core, cache, node or capacity is wanted",
		    word);
}

static int read_line(struct reader *r, char *line)
{
	struct wq_topo_cpu *c = &r->cpu[r->nr];
	char *word, *rest;

	line[strcspn(line, "#")] = '\0';
	word = strtok_r(line, BLANK, &rest);
	if (!word)
		return 0;
	if (strcmp(word, "cpu") != 0)
		return fail(r, "'cpu' is wanted", word);
	if (r->nr == WQ_CPUS)
		return fail(r, "more CPUs than 1024", word);
	word = strtok_r(NULL, BLANK, &rest);
	if (!word || number(word, 0, WQ_CPUS) != (int)r->nr)
		return fail(r, "CPUs count up from 0", word ? word : "");
	c->cpu = (int)r->nr;
	c->core = c->cpu;
	c->capacity = WQ_CAPACITY;
	while ((word = strtok_r(NULL, BLANK, &rest)) != NULL)
		if (attribute(r, c, word) < 0)
			return -EINVAL;
	r->nr++;
	return 0;
}

static int read_all(struct reader *r, FILE *file)
{
	char *line = NULL;
	size_t size = 0;
	int code = 0;

	while (!code && getline(&line, &size, file) >= 0) {
		r->line++;
		code = read_line(r, line);
	}
	if (!code && ferror(file))
		code = wq_fail(r->err, EIO, "%.100s: cannot be read", r->path);
	if (!code && !r->nr)
		code = wq_fail(r->err, EINVAL, "%.100s: no CPU is in it",
			       r->path);
	free(line);
	return code;
}

static struct wq_topo *build(const struct reader *r)
{
	struct wq_topo *topo = wq_topo_alloc(r->nr);

	if (!topo)
		return NULL;
	memcpy(topo->cpu, r->cpu, r->nr * sizeof(r->cpu[0]));
	topo->fake = true;
	topo->has_smt = topo->has_cache = true;
	topo->has_numa = topo->has_capacity = true;
	wq_topo_finish(topo);
	return topo;
}

int wq_topo_load(const char *path, struct wq_topo **out, struct wq_error *err)
{
	struct reader *r = calloc(1, sizeof(*r));
	struct wq_topo *topo = NULL;
	FILE *file;
	int code;

	if (!r)
		return wq_fail(err, ENOMEM, "no memory for the topology");
	r->path = path;
	r->err = err;
	file = fopen(path, "re");
	if (file) {
		code = read_all(r, file);
		fclose(file);
	} else {
		code = -errno;
		wq_fail(err, -code, "%.100s: %s", path, strerror(-code));
	}
	if (!code) {
		topo = build(r);
		if (!topo)
			code = wq_fail(err, ENOMEM,
				       "no memory for the topology");
	}
	free(r);
	if (!code)
		*out = topo;
	return code;
}
