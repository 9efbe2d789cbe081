/* SPDX-License-Identifier: MIT */
/* tools/cmd_digest.c - verityctl digest: what fsverity digest prints.
 * Layer: tools. */
#include "merkle/geom.h"
#include "merkle/hex.h"
#include "merkle/json.h"
#include "merkle/le.h"
#include "tools/commands.h"
#include "tools/digest_one.h"
#include "tools/exits.h"
#include "tools/out.h"
#include "tools/progress.h"
#include "tools/say.h"
#include "tools/spread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Files up to this size are hashed side by side, one core each; larger ones
 * one after the other, on all cores. */
#define SMALL ((uint64_t)4 << 20)

struct digest_opts {
	uint32_t alg, block_size;
	struct salt_opt salt;
	bool compact, builtin_sig, json, quiet;
	const char *out_tree, *out_desc;
	unsigned int jobs;
};

#define FIELD(name) offsetof(struct digest_opts, name)
static const struct opt options[] = {
	{ "hash-alg", "ALG", "sha256 (default) or sha512", opt_alg,
	  FIELD(alg) },
	{ "block-size", "BYTES", "of the tree's blocks; default 4096",
	  opt_block_size, FIELD(block_size) },
	{ "salt", "HEX", "up to 32 bytes, hashed before every block", opt_salt,
	  FIELD(salt) },
	{ "compact", NULL, "print only the hex digits", opt_flag,
	  FIELD(compact) },
	{ "for-builtin-sig", NULL, "print what a built-in signature signs",
	  opt_flag, FIELD(builtin_sig) },
	{ "out-merkle-tree", "FILE", "write the tree, root level first",
	  opt_string, FIELD(out_tree) },
	{ "out-descriptor", "FILE", "write the 256 bytes that are digested",
	  opt_string, FIELD(out_desc) },
	{ "json", NULL, "print one JSON object a line", opt_flag, FIELD(json) },
	{ "jobs", "N", "use at most N threads; default: all CPUs", opt_jobs,
	  FIELD(jobs) },
	{ "quiet", NULL, "show no progress", opt_flag, FIELD(quiet) },
	{ NULL, NULL, NULL, NULL, 0 },
};

/* One operand. */
struct item {
	const char *path;
	bool large;
	bool settled; /* hashed or given up */
	bool failed;
	struct digest_got got;
};

/* I: set before threads start.  L: under lock.  An item is its worker's own
 * until it is settled, L. */
struct task {
	const struct digest_opts *o; /* I */
	struct digest_want want;     /* I */
	struct item *item;           /* I */
	uint64_t count;              /* I: of items */
	uint64_t first;              /* I: of the batch at hand */
	uint64_t next;               /* L: the first item not printed */
	int err;                     /* L: of standard output */
	unsigned int threads;        /* I */
	bool tty;                    /* I: so is standard output */
	bool failed;                 /* L */
	struct verity_json json;     /* L */
	pthread_mutex_t lock;
};

static void print_json(struct task *t, const struct item *it)
{
	const struct verity_params *p = &t->want.params;

	verity_json_object(&t->json, NULL);
	verity_json_string(&t->json, "path", it->path);
	verity_json_digest(&t->json, "digest", &it->got.digest);
	verity_json_string(&t->json, "algorithm", verity_alg_name(p->alg));
	verity_json_u64(&t->json, "block_size", p->block_size);
	verity_json_hex(&t->json, "salt", p->salt, p->salt_size);
	verity_json_u64(&t->json, "size", it->got.size);
	verity_json_end(&t->json, '}');
	t->err = json_print(&t->json);
}

/* struct fsverity_formatted_digest, in hex; its magic has no NUL. */
static void print_signed_head(const struct verity_digest *d)
{
	uint8_t head[12] = "FSVerity";
	char hex[2 * sizeof(head) + 1];

	put_le16(head + 8, (uint16_t)d->alg);
	put_le16(head + 10, (uint16_t)d->size);
	hex_encode(head, sizeof(head), hex);
	out_printf("%s", hex);
}

static void print_text(struct task *t, const struct item *it)
{
	const struct verity_digest *d = &it->got.digest;
	char hex[2 * VERITY_MAX_DIGEST + 1];

	hex_encode(d->bytes, d->size, hex);
	if (t->o->builtin_sig)
		print_signed_head(d);
	else if (!t->o->compact)
		out_printf("%s:", verity_alg_name(d->alg));
	t->err = t->o->compact ? out_printf("%s\n", hex)
			       : out_printf("%s %s\n", hex, it->path);
}

/* Print what is ready, in the order of the operands.
 * Return: 0, or an error after which there is no use in going on. */
static int settle(struct task *t, struct item *it, int err)
{
	pthread_mutex_lock(&t->lock);
	it->settled = true;
	it->failed = err != 0;
	t->failed |= it->failed;
	for (; t->next < t->count && t->item[t->next].settled; t->next++) {
		it = &t->item[t->next];
		if (it->failed || t->err)
			continue;
		if (t->tty)
			progress_hide();
		if (t->o->json)
			print_json(t, it);
		else
			print_text(t, it);
	}
	if (err != -EINTR)
		err = t->err;
	pthread_mutex_unlock(&t->lock);
	return err;
}

static int hash_small(void *arg, unsigned int worker, uint64_t job)
{
	struct task *t = arg;
	struct item *it = &t->item[t->first + job];
	int err = digest_one(&t->want, it->path, 1, &it->got);

	(void)worker;
	return settle(t, it, err);
}

static int hash_large(struct task *t, struct item *it)
{
	int err = digest_one(&t->want, it->path, t->threads, &it->got);

	return settle(t, it, err);
}

/* Look at every operand: how much there is to do, and how to share it. */
static uint64_t survey(struct task *t, char **operands)
{
	uint64_t sum = 0;
	struct stat st;

	for (uint64_t i = 0; i < t->count; i++) {
		struct item *it = &t->item[i];

		it->path = operands[i];
		it->large = strcmp(it->path, "-") == 0;
		if (it->large || stat(it->path, &st) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		it->large = t->count == 1 || (uint64_t)st.st_size > SMALL;
		sum += (uint64_t)st.st_size;
	}
	return sum;
}

/* Small ones in a row side by side, each large one by itself. */
static int hash_all(struct task *t)
{
	int err = 0;

	while (t->first < t->count && !err) {
		uint64_t end = t->first;

		while (end < t->count && !t->item[end].large)
			end++;
		if (end == t->first)
			err = hash_large(t, &t->item[end++]);
		else
			err = spread_run(t->threads, end - t->first, hash_small,
					 t);
		/* Whoever waits for this part need not wait for all. */
		if (!err)
			err = out_flush();
		t->first = end;
	}
	return err;
}

static int check_options(const struct digest_opts *o, int count,
			 const struct verity_params *p)
{
	struct verity_complaint why;

	if (verity_params_check(p, &why)) {
		say_complaint("options", &why);
		return EXIT_USAGE;
	}
	if (o->json && (o->compact || o->builtin_sig)) {
		say_error("--json: does not go with --compact or "
			  "--for-builtin-sig");
		return EXIT_USAGE;
	}
	if (count > 1 && (o->out_tree || o->out_desc)) {
		say_error("--out-%s: takes one FILE only, there are %d",
			  o->out_tree ? "merkle-tree" : "descriptor", count);
		return EXIT_USAGE;
	}
	if (o->out_tree && o->out_desc && !strcmp(o->out_tree, o->out_desc)) {
		say_error("--out-descriptor=%s: is also the tree's file",
			  o->out_desc);
		return EXIT_USAGE;
	}
	return EXIT_OK;
}

static int run_task(struct task *t, char **operands)
{
	int err;

	spread_catch();
	progress_begin("digest", survey(t, operands), t->o->quiet);
	err = hash_all(t);
	progress_end();
	if (spread_stopped()) {
		say_error("interrupted");
		return 128 + spread_stopped();
	}
	if (t->err == -ENOMEM) /* others are said by finish_stdout() */
		say_errno(t->err, "cannot print");
	return err || t->err || t->failed ? EXIT_IO : EXIT_OK;
}

static int run(const void *opts, char **operands, int count)
{
	const struct digest_opts *o = opts;
	struct task t = { .o = o,
			  .count = (uint64_t)count,
			  .threads = o->jobs ? o->jobs : spread_cpus(),
			  .tty = isatty(STDOUT_FILENO) };
	int status;

	say_init("digest", o->quiet);
	opts_params(o->alg, o->block_size, &o->salt, &t.want.params);
	t.want.out_tree = o->out_tree;
	t.want.out_desc = o->out_desc;
	status = check_options(o, count, &t.want.params);
	if (status != EXIT_OK)
		return status;
	t.item = calloc((size_t)count, sizeof(*t.item));
	if (!t.item) {
		say_errno(-ENOMEM, "cannot begin");
		return EXIT_IO;
	}
	pthread_mutex_init(&t.lock, NULL);
	status = run_task(&t, operands);
	pthread_mutex_destroy(&t.lock);
	verity_json_free(&t.json);
	free(t.item);
	return status;
}

const struct command cmd_digest = {
	.name = "digest",
	.operands = "FILE...",
	.summary = "print fs-verity digests as fsverity(1) does; - is stdin",
	.opts = options,
	.opts_size = sizeof(struct digest_opts),
	.min_operands = 1,
	.max_operands = -1,
	.run = run,
};
