/* SPDX-License-Identifier: MIT */
/*
 * tools/bench_run.c - the program bench-run: time whole commands against each
 * other.  Layer: tools.
 *
 * The commands are run in turn in every round, there and back in every other
 * one (A B, B A), since what else the machine does comes in waves.  A ratio is
 * taken within a round, and the median of the rounds' ratios is printed.
 */
#include "tools/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIN_ROUNDS = 7, MAX_ROUNDS = STATS_MAX, MAX_COMMANDS = 32 };

struct entry {
	const char *name;    /* NAME of NAME=COMMAND */
	const char *command; /* for sh -c */
	double s[MAX_ROUNDS];
	long rss_kib; /* the largest of all rounds */
};

struct bench {
	const char *group;  /* printed before every name */
	const char *before; /* run before each command, not timed; or NULL */
	const char *json;   /* path, or NULL */
	int rounds;
	struct entry entry[MAX_COMMANDS];
	int count;
};

_Noreturn static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench-run: %s: %s\n", what, why);
	exit(1);
}

/* Run one command without its output; it must succeed. */
static long run(const char *command)
{
	struct rusage used;
	int status;
	pid_t pid = fork();

	if (pid < 0)
		die("fork", strerror(errno));
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	if (wait4(pid, &status, 0, &used) != pid)
		die("wait4", strerror(errno));
	if (status != 0)
		die(command, "failed");
	return used.ru_maxrss;
}

static void time_one(const struct bench *b, struct entry *e, int round)
{
	double begin;
	long rss;

	if (b->before)
		(void)run(b->before);
	begin = stats_now();
	rss = run(e->command);
	e->s[round] = stats_now() - begin;
	if (rss > e->rss_kib)
		e->rss_kib = rss;
}

static void run_rounds(struct bench *b)
{
	/* One round to warm up, overwritten by the first that counts. */
	for (int i = 0; i < b->count; i++)
		time_one(b, &b->entry[i], 0);
	for (int r = 0; r < b->rounds; r++)
		for (int i = 0; i < b->count; i++)
			time_one(b, &b->entry[r % 2 ? b->count - 1 - i : i], r);
}

static struct stats seconds(const struct bench *b, const struct entry *e)
{
	return stats_of(e->s, (size_t)b->rounds);
}

/* How many times as fast as the first command, the base. */
static double ratio(const struct bench *b, const struct entry *e)
{
	double r[MAX_ROUNDS] = { 0 };

	for (int i = 0; i < b->rounds; i++)
		r[i] = b->entry[0].s[i] / e->s[i];
	return stats_of(r, (size_t)b->rounds).median;
}

static void print_lines(const struct bench *b)
{
	for (int i = 0; i < b->count; i++) {
		const struct entry *e = &b->entry[i];
		struct stats s = seconds(b, e);

		printf("%s.%s %.4f s\n", b->group, e->name, s.median);
		printf("%s.%s.min %.4f s\n", b->group, e->name, s.min);
		printf("%s.%s.max %.4f s\n", b->group, e->name, s.max);
		printf("%s.%s.rss %ld KiB\n", b->group, e->name, e->rss_kib);
		if (i)
			printf("%s.%s.ratio %.2f x\n", b->group, e->name,
			       ratio(b, e));
	}
}

static void json_entry(struct verity_json *j, const struct bench *b,
		       const struct entry *e)
{
	verity_json_object(j, NULL);
	verity_json_string(j, "name", e->name);
	verity_json_string(j, "command", e->command);
	verity_json_double(j, "median_s", seconds(b, e).median);
	verity_json_double(j, "ratio", ratio(b, e));
	verity_json_u64(j, "rss_kib", (uint64_t)e->rss_kib);
	stats_json(j, "samples_s", e->s, (size_t)b->rounds);
	verity_json_end(j, '}');
}

static void write_json(const struct bench *b)
{
	struct verity_json j = { 0 };
	int err;

	verity_json_object(&j, NULL);
	verity_json_string(&j, "group", b->group);
	verity_json_u64(&j, "rounds", (uint64_t)b->rounds);
	verity_json_string(&j, "base", b->entry[0].name);
	verity_json_array(&j, "entries");
	for (int i = 0; i < b->count; i++)
		json_entry(&j, b, &b->entry[i]);
	verity_json_end(&j, ']');
	verity_json_end(&j, '}');
	err = stats_save(&j, b->json);
	if (err)
		die(b->json, strerror(-err));
}

_Noreturn static void usage(FILE *to, int status)
{
	fprintf(to,
		"usage: bench-run [options] GROUP BASE=COMMAND NAME=COMMAND...\n"
		"\n"
		"Times shell commands in interleaved rounds; ratios are to BASE.\n"
		"\n"
		"  --rounds N       7 to 1001; default 7\n"
		"  --before COMMAND run before each, not timed\n"
		"  --json FILE      all samples\n"
		"  --help\n");
	exit(status);
}

static int parse_rounds(const char *s)
{
	char *end;
	long n = strtol(s, &end, 10);

	if (*end || n < MIN_ROUNDS || n > MAX_ROUNDS) {
		fprintf(stderr,
			"bench-run: --rounds is '%s', must be a number from "
			"%d to %d\n",
			s, MIN_ROUNDS, MAX_ROUNDS);
		exit(2);
	}
	return (int)n;
}

static void add_entry(struct bench *b, char *word)
{
	char *eq = strchr(word, '=');

	if (!eq || b->count == MAX_COMMANDS) {
		fprintf(stderr,
			"bench-run: '%s': must be NAME=COMMAND, at "
			"most %d of them\n",
			word, MAX_COMMANDS);
		exit(2);
	}
	*eq = '\0';
	b->entry[b->count].name = word;
	b->entry[b->count].command = eq + 1;
	b->count++;
}

static void parse(struct bench *b, int argc, char **argv)
{
	static const struct option options[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "before", required_argument, NULL, 'b' },
		{ "json", required_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'h')
			usage(stdout, 0);
		else if (c == 'r')
			b->rounds = parse_rounds(optarg);
		else if (c == 'b')
			b->before = optarg;
		else if (c == 'j')
			b->json = optarg;
		else
			usage(stderr, 2);
	}
	if (argc - optind < 3)
		usage(stderr, 2);
	b->group = argv[optind++];
	while (optind < argc)
		add_entry(b, argv[optind++]);
}

int main(int argc, char **argv)
{
	static struct bench b = { .rounds = 7 };

	parse(&b, argc, argv);
	run_rounds(&b);
	print_lines(&b);
	if (b.json)
		write_json(&b);
	if (fflush(stdout) || ferror(stdout))
		die("standard output", "cannot write");
	return 0;
}
