/* SPDX-License-Identifier: MIT */
/* tools/cmd_inspect.c - verityctl inspect: show what metadata says.
 * Layer: tools. */
#include "merkle/meta.h"
#include "tools/commands.h"
#include "tools/exits.h"
#include "tools/input.h"
#include "tools/inspect.h"

#include <unistd.h>

struct inspect_opts {
	bool json, cpu;
	uint64_t size;
};

#define FIELD(name) offsetof(struct inspect_opts, name)
static const struct opt options[] = {
	{ "json", NULL, "print one JSON object a line", opt_flag, FIELD(json) },
	{ "size", "BYTES",
	  "of the APK that an .idsig is for: show its fs-verity digest",
	  opt_size, FIELD(size) },
	{ "cpu", NULL, "show how this CPU hashes; without FILE", opt_flag,
	  FIELD(cpu) },
	{ NULL, NULL, NULL, NULL, 0 },
};

/* Their first bytes differ, so the order does not matter. */
static const struct format *const formats[] = {
	&inspect_meta, &inspect_desc,     &inspect_idsig,
	&inspect_dm,   &inspect_manifest,
};

int inspect_read(const struct subject *s, void *buf, size_t len, uint64_t pos)
{
	ssize_t n;

	if (pos > s->size || len > s->size - pos)
		return inspect_refuse(s, "file size", s->size,
				      "must be at least", pos + len);
	n = verity_pread_full(s->fd, buf, len, pos);
	if (n >= 0 && (size_t)n < len)
		n = -ENODATA;
	return n < 0 ? say_errno((int)n, "%s: cannot read", s->path) : 0;
}

static const struct format *recognise(const struct subject *s)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (formats[i]->is(s))
			return formats[i];
	say_error("%s: not recognised as %s, %s, %s, %s or %s", s->path,
		  formats[0]->name, formats[1]->name, formats[2]->name,
		  formats[3]->name, formats[4]->name);
	return NULL;
}

static int show(const struct subject *s, bool json)
{
	struct report r = { .json = json };
	const struct format *f = recognise(s);
	int err;

	if (!f)
		return EXIT_IO;
	if (s->apk_size && f != &inspect_idsig) {
		say_error("--size: is for an APK's .idsig, %s is %s", s->path,
			  f->name);
		return EXIT_USAGE;
	}
	report_begin(&r, s->path, f->id, f->name);
	err = f->show(s, &r);
	if (!err) {
		err = report_end(&r);
		if (err == -ENOMEM) /* others are said at the end */
			say_errno(err, "%s: cannot print", s->path);
	}
	report_drop(&r);
	return err ? EXIT_IO : EXIT_OK;
}

static int inspect(const struct inspect_opts *o, const char *path)
{
	struct subject s = { .path = path, .apk_size = o->size };
	struct stat st;
	ssize_t n;
	int status;

	s.fd = input_open(path, &st);
	if (s.fd < 0)
		return EXIT_IO;
	s.size = (uint64_t)st.st_size;
	n = verity_pread_full(s.fd, s.head, sizeof(s.head), 0);
	if (n < 0) {
		say_errno((int)n, "%s: cannot read", path);
		status = EXIT_IO;
	} else {
		s.head_len = (size_t)n;
		status = show(&s, o->json);
	}
	close(s.fd);
	return status;
}

static int show_cpu(const struct inspect_opts *o, int count)
{
	struct report r = { .json = o->json };
	int err;

	if (count || o->size) {
		say_error("--cpu: goes with no FILE and no --size");
		return EXIT_USAGE;
	}
	err = inspect_cpu(&r);
	if (err == -ENOMEM)
		say_errno(err, "cannot print");
	report_drop(&r);
	return err ? EXIT_IO : EXIT_OK;
}

static int run(const void *opts, char **operands, int count)
{
	const struct inspect_opts *o = opts;
	int status = EXIT_OK;

	say_init("inspect", false);
	if (o->cpu)
		return show_cpu(o, count);
	if (!count) {
		say_error("too few operands (usage: verityctl inspect "
			  "[OPTION...] FILE..., or --cpu)");
		return EXIT_USAGE;
	}
	if (o->size && count > 1) {
		say_error("--size: takes one FILE only, there are %d", count);
		return EXIT_USAGE;
	}
	for (int i = 0; i < count; i++) {
		int one = inspect(o, operands[i]);

		status = status == EXIT_OK ? one : status;
	}
	return status;
}

const struct command cmd_inspect = {
	.name = "inspect",
	.operands = "FILE...",
	.summary = "show what a file of metadata says; or, --cpu, how this "
		   "CPU hashes",
	.opts = options,
	.opts_size = sizeof(struct inspect_opts),
	.min_operands = 0,
	.max_operands = -1,
	.run = run,
};
