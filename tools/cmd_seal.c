/* SPDX-License-Identifier: MIT */
/* verityctl seal.  Layer: tools. */
#include "tools/commands.h"
#include "tools/exits.h"
#include "tools/opts.h"
#include "tools/say.h"
#include "tools/seal.h"
#include "tools/spread.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define AT(field) offsetof(struct seal_opts, field)

static const struct opt seal_options[] = {
	{ "hash-alg", "ALG", "sha256 (default) or sha512", opt_alg, AT(alg) },
	{ "block-size", "BYTES", "of data and hash blocks; 4096",
	  opt_block_size, AT(block_size) },
	{ "salt", "HEX", "1 to 32 bytes hashed before every block", opt_salt,
	  AT(salt) },
	{ "meta", "DIR", "put metadata there, not beside or in the data",
	  opt_string, AT(meta) },
	{ "pin", "sha256:HEX",
	  "the old manifest's pin: unchanged files are not read again",
	  opt_digest, AT(pin) },
	{ "resume", NULL, "go on after an interruption; with the --pin it told",
	  opt_flag, AT(resume) },
	{ "sha256", NULL, "record the plain SHA-256 of each file too", opt_flag,
	  AT(sha256) },
	{ "dry-run", NULL, "say what would be read and written", opt_flag,
	  AT(dry_run) },
	{ "jobs", "N", "threads; one for each CPU", opt_jobs, AT(jobs) },
	{ "json", NULL, "results as JSON, an object a line", opt_flag,
	  AT(json) },
	{ "quiet", NULL, "no notes, no progress", opt_flag, AT(quiet) },
	{ NULL, NULL, NULL, NULL, 0 },
};

/* Its listing would have the metadata in it, and change while it is made. */
static bool is_same_dir(const struct stat *st, const char *meta)
{
	struct stat other;

	return meta && stat(meta, &other) == 0 && other.st_dev == st->st_dev &&
	       other.st_ino == st->st_ino;
}

static int seal_path(const char *path, const struct seal_opts *o)
{
	struct stat st;

	if (stat(path, &st) < 0) {
		say_errno(-errno, "%s: stat", path);
		return EXIT_IO;
	}
	if (S_ISDIR(st.st_mode) && is_same_dir(&st, o->meta)) {
		say_error("%s: --meta must not be the tree itself", path);
		return EXIT_USAGE;
	}
	if (S_ISDIR(st.st_mode))
		return seal_tree(path, o);
	if (o->pin.set || o->resume || o->sha256) {
		say_error("%s: --pin, --resume and --sha256 go with a "
			  "directory",
			  path);
		return EXIT_USAGE;
	}
	return seal_file(path, o);
}

/* The last second that a manifest can spell, at the end of 9999. */
#define LAST_SECOND 253402300799

/* SOURCE_DATE_EPOCH, for those who want equal bytes again; or the clock. */
static int take_time(int64_t *out)
{
	const char *fixed = getenv("SOURCE_DATE_EPOCH");
	size_t n = fixed ? strlen(fixed) : 0;

	*out = time(NULL);
	if (!n)
		return EXIT_OK;
	if (n <= 12 && strspn(fixed, "0123456789") == n)
		*out = strtoll(fixed, NULL, 10);
	else
		*out = -1;
	if (*out >= 0 && *out <= LAST_SECOND)
		return EXIT_OK;
	say_error("SOURCE_DATE_EPOCH=%s: must be seconds since 1970, at most "
		  "%lld",
		  fixed, (long long)LAST_SECOND);
	return EXIT_USAGE;
}

/* All is tried; the worst news is kept: the first that was not good. */
static int run(const void *opts, char **operands, int count)
{
	struct seal_opts o = *(const struct seal_opts *)opts;
	int status = EXIT_OK, i;

	say_init("seal", o.quiet);
	if (o.resume && !o.pin.set) {
		say_error("--resume needs --pin: what an unknown hand left "
			  "there is not gone on from");
		return EXIT_USAGE;
	}
	if (count > 1 && (o.pin.set || o.meta)) {
		say_error("--pin and --meta go with one operand");
		return EXIT_USAGE;
	}
	if (take_time(&o.created))
		return EXIT_USAGE;
	if (!o.jobs)
		o.jobs = spread_cpus();
	spread_catch();
	for (i = 0; i < count && !spread_stopped(); i++) {
		int s = seal_path(operands[i], &o);

		if (!status)
			status = s;
	}
	/* A signal that came too late for one operand still counts if another
	 * was to follow. */
	if (i < count && status == EXIT_OK)
		status = seal_interrupted();
	return status;
}

const struct command cmd_seal = {
	.name = "seal",
	.operands = "FILE|DIR...",
	.summary = "write sidecars, and a manifest for a directory",
	.opts = seal_options,
	.opts_size = sizeof(struct seal_opts),
	.min_operands = 1,
	.max_operands = -1,
	.run = run,
};
