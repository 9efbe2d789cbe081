/* SPDX-License-Identifier: MIT */
/*
 * tools/bench_hash.c - the program bench-hash: how fast each SHA-256 kernel
 * is on one CPU, beside libcrypto's plainest use.  Layer: tools.
 *
 * Includes merkle's private headers, since it calls kernels one by one.
 */
#include "merkle/cpu.h"
#include "merkle/kernel.h"
#include "tools/stats.h"

#include <errno.h>
#include <getopt.h>
#include <openssl/evp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BUFFER = 192 << 10, /* stays in a second-level cache */
	BLOCKS = 48,        /* a pass; every number of lanes divides it */
	SLICES = 4,         /* a round takes turns this many times */
	SLICE_US = 1000,
	WARM_US = 20000, /* clocks rise, and the AVX-512 unit wakes up */
	MIN_ROUNDS = 7,
	MAX_ROUNDS = 1000, /* at most STATS_MAX */
	MAX_VARIANTS = 16,
};

struct options {
	const char *prefix; /* before the name in each line printed */
	const char *json;
	unsigned int rounds;
	int cpu;
	size_t block;
};

/* What is timed: a kernel, or one of the two passes that are not kernels. */
struct variant {
	const char *name;
	const struct verity_kernel *kernel; /* or NULL */
	unsigned int passes;                /* a slice, about SLICE_US */
	double gbs[MAX_ROUNDS];
	double ratio[MAX_ROUNDS]; /* to libcrypto in the same round */
};

struct bench {
	struct options opt;
	struct verity_hasher hasher;
	const void *blocks[BLOCKS];
	EVP_MD *md;
	EVP_MD_CTX *ctx;
	struct variant *variants; /* libcrypto first, the chosen path last */
	size_t count;
};

/* Whole pages, as the page cache and our readers give them. */
static _Alignas(4096) uint8_t buffer[BUFFER];
static struct variant all_variants[MAX_VARIANTS];

static _Noreturn void die(int status, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void die(int status, const char *fmt, ...)
{
	va_list ap;

	fputs("bench-hash: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(status);
}

/* The baseline: digest fetched once and context reused, all as its manual
 * advises. */
static int pass_evp(const struct bench *b, uint8_t *out)
{
	for (size_t i = 0; i < BLOCKS; i++)
		if (!EVP_DigestInit_ex2(b->ctx, b->md, NULL) ||
		    !EVP_DigestUpdate(b->ctx, b->blocks[i], b->opt.block) ||
		    !EVP_DigestFinal_ex(b->ctx, out + 32 * i, NULL))
			return -ENOMEM;
	return 0;
}

static int pass_kernel(const struct bench *b, const struct verity_kernel *k,
		       uint8_t *out)
{
	int err = 0;

	for (size_t i = 0; !err && i < BLOCKS; i += k->lanes)
		err = k->run(&b->hasher, b->blocks + i, out + 32 * i);
	return err;
}

/* Hash all blocks @passes times.  Return: seconds. */
static double run(const struct bench *b, const struct variant *v,
		  unsigned int passes, uint8_t *out)
{
	double start = stats_now();
	int err = 0;

	for (unsigned int i = 0; !err && i < passes; i++)
		if (v->kernel)
			err = pass_kernel(b, v->kernel, out);
		else if (v == b->variants)
			err = pass_evp(b, out);
		else
			err = verity_hash_blocks(&b->hasher, b->blocks, BLOCKS,
						 out);
	if (err)
		die(1, "%s: %s", v->name, strerror(-err));
	return stats_now() - start;
}

/* Check the digests, warm up, and find how many passes fill a slice. */
static void prepare(const struct bench *b, struct variant *v)
{
	uint8_t want[32 * BLOCKS], got[32 * BLOCKS];
	double end = stats_now() + WARM_US * 1e-6, best = 1, seconds;

	run(b, b->variants, 1, want);
	do {
		seconds = run(b, v, 1, got);
		best = seconds < best ? seconds : best;
	} while (stats_now() < end);
	if (memcmp(got, want, sizeof(got)) != 0)
		die(1, "%s gives wrong digests", v->name);
	v->passes = (unsigned int)(SLICE_US * 1e-6 / best) + 1;
}

static void run_round(const struct bench *b, unsigned int round)
{
	double seconds[MAX_VARIANTS] = { 0 }, bytes;
	uint8_t out[32 * BLOCKS];
	struct variant *v;

	for (int slice = 0; slice < SLICES; slice++)
		for (size_t i = 0; i < b->count; i++)
			seconds[i] += run(b, &b->variants[i],
					  b->variants[i].passes, out);
	for (size_t i = 0; i < b->count; i++) {
		v = &b->variants[i];
		bytes = (double)v->passes * SLICES * BLOCKS *
			(double)b->opt.block;
		v->gbs[round] = bytes / seconds[i] * 1e-9;
		v->ratio[round] = v->gbs[round] / b->variants[0].gbs[round];
	}
}

static void print_variant(const struct bench *b, const struct variant *v)
{
	struct stats gbs = stats_of(v->gbs, b->opt.rounds);
	struct stats ratio = stats_of(v->ratio, b->opt.rounds);
	const char *prefix = b->opt.prefix;

	printf("%s.%s %.3f GB/s\n", prefix, v->name, gbs.median);
	printf("%s.%s.min %.3f GB/s\n", prefix, v->name, gbs.min);
	printf("%s.%s.max %.3f GB/s\n", prefix, v->name, gbs.max);
	printf("%s.%s.ratio %.2f x\n", prefix, v->name, ratio.median);
}

static const char *bulk_kernel(void)
{
	struct verity_hash_row row;

	for (size_t i = 0; verity_hash_row(i, &row) == 0; i++)
		if (row.bulk)
			return row.name;
	return "none";
}

static void json_samples(struct verity_json *j, const char *key,
			 const double *samples, unsigned int n)
{
	struct stats all = stats_of(samples, n);

	verity_json_object(j, key);
	verity_json_double(j, "median", all.median);
	verity_json_double(j, "min", all.min);
	verity_json_double(j, "max", all.max);
	stats_json(j, "samples", samples, n);
	verity_json_end(j, '}');
}

static void write_json(const struct bench *b)
{
	const char *off = getenv("VERITY_CPU");
	struct verity_json j = { 0 };
	int err;

	verity_json_object(&j, NULL);
	verity_json_string(&j, "benchmark", b->opt.prefix);
	verity_json_u64(&j, "cpu", (uint64_t)b->opt.cpu);
	verity_json_u64(&j, "block", b->opt.block);
	verity_json_u64(&j, "buffer", BUFFER);
	verity_json_u64(&j, "rounds", b->opt.rounds);
	verity_json_string(&j, "verity_cpu", off ? off : "");
	verity_json_string(&j, "bulk", bulk_kernel());
	verity_json_array(&j, "results");
	for (size_t i = 0; i < b->count; i++) {
		verity_json_object(&j, NULL);
		verity_json_string(&j, "name", b->variants[i].name);
		json_samples(&j, "GB/s", b->variants[i].gbs, b->opt.rounds);
		json_samples(&j, "ratio", b->variants[i].ratio, b->opt.rounds);
		verity_json_end(&j, '}');
	}
	verity_json_end(&j, ']');
	verity_json_end(&j, '}');
	err = stats_save(&j, b->opt.json);
	if (err)
		die(1, "%s: %s", b->opt.json, strerror(-err));
}

static void add_variant(struct bench *b, const char *name,
			const struct verity_kernel *kernel)
{
	if (b->count == MAX_VARIANTS)
		die(1, "more than %d kernels", MAX_VARIANTS);
	b->variants[b->count].name = name;
	b->variants[b->count++].kernel = kernel;
}

static void list_variants(struct bench *b)
{
	const struct verity_kernel *k;
	uint32_t have;

	if (verity_cpu_features(getenv("VERITY_CPU"), &have, NULL))
		die(2, "bad VERITY_CPU");
	add_variant(b, "evp", NULL);
	for (size_t i = 0; (k = &verity_kernels[i])->name; i++)
		if (!(k->needs & ~have))
			add_variant(b, k->name, k);
	add_variant(b, "chosen", NULL);
}

static void setup(struct bench *b)
{
	struct verity_params params = VERITY_PARAMS_DEFAULT;
	const char *off = getenv("VERITY_CPU"), *bad = NULL;
	int err = verity_hash_setup(off, &bad);

	if (bad)
		die(2, "VERITY_CPU: unknown word '%.*s'",
		    (int)strcspn(bad, ","), bad);
	if (!err)
		err = verity_hasher_init(&b->hasher, &params, b->opt.block);
	b->md = EVP_MD_fetch(NULL, "SHA256", NULL);
	b->ctx = EVP_MD_CTX_new();
	if (err || !b->md || !b->ctx)
		die(1, "cannot set up: %s", strerror(err ? -err : ENOMEM));
	for (size_t i = 0; i < BUFFER; i++)
		buffer[i] = (uint8_t)(i % 251);
	for (size_t i = 0; i < BLOCKS; i++)
		b->blocks[i] = buffer + i * b->opt.block % BUFFER;
	b->variants = all_variants;
	list_variants(b);
}

/* The last CPU allowed by default: the first ones serve most interrupts. */
static void pin(int *cpu)
{
	cpu_set_t set;

	if (*cpu < 0) {
		if (sched_getaffinity(0, sizeof(set), &set))
			die(1, "sched_getaffinity: %s", strerror(errno));
		for (int i = 0; i < CPU_SETSIZE; i++)
			if (CPU_ISSET(i, &set))
				*cpu = i;
	}
	CPU_ZERO(&set);
	CPU_SET(*cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die(1, "cannot run on CPU %d: %s", *cpu, strerror(errno));
}

static unsigned long number(const char *option, const char *text,
			    unsigned long min, unsigned long max)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value < min ||
	    value > max)
		die(2, "--%s is '%s', must be a number from %lu to %lu", option,
		    text, min, max);
	return value;
}

static size_t block_size(const char *text)
{
	size_t size = number("block", text, 64, VERITY_MAX_BLOCK);

	if (size & (size - 1))
		die(2, "--block is %s, must be a power of two", text);
	return size;
}

static const char help[] =
	"usage: bench-hash [--json FILE] [--prefix NAME] [--rounds N] "
	"[--cpu N]\n"
	"                  [--block BYTES]\n"
	"\n"
	"Times each SHA-256 kernel that this CPU can run, and the path chosen\n"
	"from them, on one CPU against libcrypto's EVP_DigestInit_ex2 with a\n"
	"digest fetched once.  Prints lines of name, value and unit: the median\n"
	"of all rounds, .min, .max, and as .ratio the median of same-round\n"
	"ratios to libcrypto.\n"
	"\n"
	"  --json FILE    write the results with all samples to FILE as well\n"
	"  --prefix NAME  begin each line with NAME; hash by default\n"
	"  --rounds N     7 to 1000, 11 by default\n"
	"  --cpu N        run on this CPU; the last one allowed by default\n"
	"  --block BYTES  a power of two, 64 to 65536; 4096 by default\n"
	"  --help         this text\n"
	"\n"
	"VERITY_CPU=-avx512,-avx2,-shani,-sha2 in the environment switches CPU\n"
	"features off.\n";

static void parse(struct options *opt, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "json", required_argument, NULL, 'j' },
		{ "prefix", required_argument, NULL, 'p' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "cpu", required_argument, NULL, 'c' },
		{ "block", required_argument, NULL, 'b' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1)
		switch (c) {
		case 'j':
			opt->json = optarg;
			break;
		case 'p':
			opt->prefix = optarg;
			break;
		case 'r':
			opt->rounds = (unsigned int)number(
				"rounds", optarg, MIN_ROUNDS, MAX_ROUNDS);
			break;
		case 'c':
			opt->cpu =
				(int)number("cpu", optarg, 0, CPU_SETSIZE - 1);
			break;
		case 'b':
			opt->block = block_size(optarg);
			break;
		case 'h':
			exit(fputs(help, stdout) < 0 || fflush(stdout));
		default: /* getopt_long() has said what is wrong */
			exit(2);
		}
	if (optind < argc)
		die(2, "unexpected argument '%s'", argv[optind]);
}

int main(int argc, char **argv)
{
	static struct bench b = {
		.opt = { .prefix = "hash",
			 .rounds = 11,
			 .cpu = -1,
			 .block = 4096 },
	};

	parse(&b.opt, argc, argv);
	pin(&b.opt.cpu);
	setup(&b);
	for (size_t i = 0; i < b.count; i++)
		prepare(&b, &b.variants[i]);
	for (unsigned int i = 0; i < b.opt.rounds; i++)
		run_round(&b, i);
	for (size_t i = 0; i < b.count; i++)
		print_variant(&b, &b.variants[i]);
	printf("%s.chosen.bulk %s kernel\n", b.opt.prefix, bulk_kernel());
	if (b.opt.json)
		write_json(&b);
	EVP_MD_CTX_free(b.ctx);
	EVP_MD_free(b.md);
	verity_hasher_fini(&b.hasher);
	if (fflush(stdout))
		die(1, "standard output: %s", strerror(errno));
	return 0;
}
