/* SPDX-License-Identifier: MIT */
/*
 * bench-run: time whole commands against each other.  Layer: tools.
 *
 * The commands are run in turn in every round, there and back in every other
 * one (A B, B A), since what else the machine does comes in waves.  A ratio is
 * taken within a round, and the median of the rounds' ratios is printed.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ROUNDS = 1001, MAX_COMMANDS = 32 };

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

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
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
	begin = now();
	rss = run(e->command);
	e->s[round] = now() - begin;
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

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *v, int n)
{
	double sorted[MAX_ROUNDS];

	memcpy(sorted, v, (size_t)n * sizeof(*v));
	qsort(sorted, (size_t)n, sizeof(*sorted), by_value);
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static double extreme(const double *v, int n, bool largest)
{
	double x = v[0];

	for (int i = 1; i < n; i++)
		if (largest ? v[i] > x : v[i] < x)
			x = v[i];
	return x;
}

/* How many times as fast as the first command, the base. */
static double ratio(const struct bench *b, const struct entry *e)
{
	double r[MAX_ROUNDS] = { 0 };

	for (int i = 0; i < b->rounds; i++)
		r[i] = b->entry[0].s[i] / e->s[i];
	return median(r, b->rounds);
}

static void print_lines(const struct bench *b)
{
	for (int i = 0; i < b->count; i++) {
		const struct entry *e = &b->entry[i];

		printf("%s.%s %.4f s\n", b->group, e->name,
		       median(e->s, b->rounds));
		printf("%s.%s.min %.4f s\n", b->group, e->name,
		       extreme(e->s, b->rounds, false));
		printf("%s.%s.max %.4f s\n", b->group, e->name,
		       extreme(e->s, b->rounds, true));
		printf("%s.%s.rss %ld KiB\n", b->group, e->name, e->rss_kib);
		if (i)
			printf("%s.%s.ratio %.2f x\n", b->group, e->name,
			       ratio(b, e));
	}
}

static void print_json_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', f);
		fputc(*s, f);
	}
	fputc('"', f);
}

static void print_json_entry(FILE *f, const struct bench *b,
			     const struct entry *e)
{
	fprintf(f, "    {\"name\": \"%s\", \"command\": ", e->name);
	print_json_string(f, e->command);
	fprintf(f, ",\n     \"median_s\": %.6f, \"ratio\": %.4f, ",
		median(e->s, b->rounds), ratio(b, e));
	fprintf(f, "\"rss_kib\": %ld,\n     \"samples_s\": [", e->rss_kib);
	for (int i = 0; i < b->rounds; i++)
		fprintf(f, "%s%.6f", i ? ", " : "", e->s[i]);
	fprintf(f, "]}");
}

static void write_json(const struct bench *b)
{
	FILE *f = fopen(b->json, "w");

	if (!f)
		die(b->json, strerror(errno));
	fprintf(f, "{\"group\": \"%s\", \"rounds\": %d, \"base\": \"%s\",\n",
		b->group, b->rounds, b->entry[0].name);
	fprintf(f, " \"entries\": [\n");
	for (int i = 0; i < b->count; i++) {
		print_json_entry(f, b, &b->entry[i]);
		fprintf(f, i + 1 < b->count ? ",\n" : "\n");
	}
	fprintf(f, " ]}\n");
	if (ferror(f) || fclose(f))
		die(b->json, strerror(errno));
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

	if (*end || n < 7 || n > MAX_ROUNDS) {
		fprintf(stderr,
			"bench-run: --rounds is '%s', must be 7 to "
			"%d\n",
			s, MAX_ROUNDS);
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
	return 0;
}
