/* SPDX-License-Identifier: MIT */
/*
 * tools/bench_dispatch.c - the program bench-dispatch: how soon thread pools
 * start jobs, ours beside GLib's, libuv's and oneTBB's.  Layer: tools.
 *
 * All pools take turns within each round, and another one begins every round.
 * A turn is a new pool and both loads.  Everything runs on at most two CPUs,
 * the last two allowed, since the peers' pools have two threads and ours has
 * one a CPU.
 */
#include "tools/dispatch_report.h"
#include "tools/dispatch_spin.h"
#include "wq/clock.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_ROUNDS = 7, MIN_JOBS = 10, SETTLE_MS = 20 };

/* Which of the two CPUs. */
enum where { FIRST, SECOND, BOTH };

static const struct setup {
	const char *name;
	const struct peer *ours;
	enum where issuer;
	enum where workers;
	const char *what;
} setups[] = {
	{ "pinned", &peer_wq_bound, FIRST, BOTH,
	  "issuer on the first CPU; our workers on one CPU each, the peers' on "
	  "both" },
	{ "free", &peer_wq_unbound, BOTH, BOTH, "all threads on both CPUs" },
	{ "other", &peer_wq_bound, FIRST, SECOND,
	  "issuer on the first CPU, all workers on the second" },
};

enum { SETUPS = sizeof(setups) / sizeof(*setups), PEERS = DISPATCH_POOLS - 1 };

static const struct peer *const peers[PEERS] = { &peer_glib, &peer_uv,
						 &peer_tbb };

struct options {
	unsigned int rounds;
	unsigned int idle_jobs;
	unsigned int bursts;
	const char *setup; /* or NULL: all */
	bool spin;         /* as well */
	const char *json;
};

struct bench {
	struct options opt;
	int cpu[2]; /* the second is -1 where there is only one */
	struct verity_json json;
	uint64_t backward; /* as in struct dispatch_sample */
};

static _Noreturn void die(int status, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void die(int status, const char *fmt, ...)
{
	va_list ap;

	fputs("bench-dispatch: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(status);
}

/* The first CPUs serve most interrupts. */
static void choose_cpus(struct bench *b)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		die(1, "sched_getaffinity: %s", strerror(errno));
	b->cpu[0] = b->cpu[1] = -1;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set)) {
			b->cpu[0] = b->cpu[1];
			b->cpu[1] = i;
		}
	if (b->cpu[0] < 0) {
		b->cpu[0] = b->cpu[1];
		b->cpu[1] = -1;
	}
}

static cpu_set_t cpus_of(const struct bench *b, enum where where)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (where != SECOND)
		CPU_SET(b->cpu[0], &set);
	if (where != FIRST && b->cpu[1] >= 0)
		CPU_SET(b->cpu[1], &set);
	return set;
}

/* Why it cannot be had here, or NULL. */
static const char *impossible(const struct bench *b, const struct setup *s)
{
	if (s->workers == SECOND && b->cpu[1] < 0)
		return "the workers need a second CPU, and only one is allowed";
	return NULL;
}

static void go_to(const cpu_set_t *cpus)
{
	if (sched_setaffinity(0, sizeof(*cpus), cpus))
		die(1, "sched_setaffinity: %s", strerror(errno));
}

static void one_turn(struct bench *b, const struct setup *s,
		     const struct peer *peer, struct dispatch_sample *out)
{
	struct timespec settle = { .tv_nsec = SETTLE_MS * 1000000L };
	struct peer_place place = { .workers = cpus_of(b, s->workers),
				    .issuer = s->issuer == FIRST ? b->cpu[0]
								 : -1 };
	cpu_set_t issuer = cpus_of(b, s->issuer);
	struct dispatch_pool pool;
	int err = dispatch_open(&pool, peer, &place);

	if (err)
		die(1, "%s: %s: cannot open the pool: %s", s->name, peer->name,
		    err == -ETIMEDOUT ? "its threads did not come"
				      : strerror(-err));
	go_to(&issuer);
	nanosleep(&settle, NULL);
	err = dispatch_idle(&pool, b->opt.idle_jobs, out);
	if (!err)
		err = dispatch_burst(&pool, b->opt.bursts, out);
	if (err)
		die(1, "%s: %s: %s", s->name, peer->name,
		    err == -EXDEV ? "a job ran on a CPU that is not the pool's"
				  : "jobs did not run");
	dispatch_close(&pool);
	b->backward += out->backward;
}

static void run_round(struct bench *b, const struct setup *s,
		      struct dispatch_case *c, unsigned int round)
{
	for (unsigned int i = 0; i < DISPATCH_POOLS; i++) {
		unsigned int p = (round + i) % DISPATCH_POOLS;
		struct dispatch_sample sample = { 0 };

		one_turn(b, s, c->pools[p], &sample);
		for (int f = 0; f < DISPATCH_FIGURES; f++)
			c->us[f][p][round] = sample.us[f];
	}
}

static void run_case(struct bench *b, const struct setup *s, bool spin)
{
	static struct dispatch_case c;
	cpu_set_t all = cpus_of(b, BOTH);
	int err = spin ? dispatch_spin(&all) : 0;

	if (err)
		die(1, "cannot start spinners: %s", strerror(-err));
	c.setup = s->name;
	c.spin = spin;
	c.limits = b->cpu[1] >= 0;
	c.rounds = b->opt.rounds;
	c.pools[0] = s->ours;
	memcpy(&c.pools[1], peers, sizeof(peers));
	for (unsigned int r = 0; r < c.rounds; r++)
		run_round(b, s, &c, r);
	dispatch_unspin();
	dispatch_print(&c);
	if (fflush(stdout))
		die(1, "standard output: %s", strerror(errno));
	dispatch_json(&b->json, &c);
}

static void run_setup(struct bench *b, const struct setup *s)
{
	const char *why = impossible(b, s);

	if (why && b->opt.setup)
		die(1, "cannot run %s: %s", s->name, why);
	if (why) {
		printf("# %s: not run: %s\n", s->name, why);
		return;
	}
	printf("# %s: %s; ours is %s\n", s->name, s->what, s->ours->version());
	run_case(b, s, false);
	if (b->opt.spin)
		run_case(b, s, true);
}

static void print_cpus(const struct bench *b)
{
	if (b->cpu[1] < 0)
		printf("# CPU %d alone, where no worker can run beside the "
		       "issuer",
		       b->cpu[0]);
	else
		printf("# CPUs %d and %d", b->cpu[0], b->cpu[1]);
	printf("; clock %s, %u rounds\n", wq_clock_name(), b->opt.rounds);
}

static void begin_json(struct bench *b)
{
	struct verity_json *j = &b->json;

	verity_json_object(j, NULL);
	verity_json_string(j, "benchmark", "dispatch");
	verity_json_u64(j, "rounds", b->opt.rounds);
	verity_json_u64(j, "idle_jobs", b->opt.idle_jobs);
	verity_json_u64(j, "bursts", b->opt.bursts);
	verity_json_string(j, "clock", wq_clock_name());
	verity_json_array(j, "cpus");
	for (int i = 0; i < 2 && b->cpu[i] >= 0; i++)
		verity_json_u64(j, NULL, (uint64_t)b->cpu[i]);
	verity_json_end(j, ']');
	verity_json_object(j, "peers");
	for (size_t i = 0; i < PEERS; i++) {
		printf("# %s: %s\n", peers[i]->name, peers[i]->version());
		verity_json_string(j, peers[i]->name, peers[i]->version());
	}
	verity_json_end(j, '}');
	verity_json_array(j, "results");
}

static void end_json(struct bench *b)
{
	int err = 0;

	verity_json_end(&b->json, ']');
	verity_json_u64(&b->json, "stamps_backward", b->backward);
	verity_json_end(&b->json, '}');
	if (b->opt.json)
		err = stats_save(&b->json, b->opt.json);
	else
		verity_json_free(&b->json);
	if (err)
		die(1, "%s: %s", b->opt.json, strerror(-err));
}

static const char help[] =
	"usage: bench-dispatch [--rounds N] [--idle-jobs N] [--bursts N]\n"
	"                      [--setup NAME] [--no-spin] [--json FILE]\n"
	"\n"
	"How soon thread pools of two threads start jobs: wq beside GLib, libuv\n"
	"and oneTBB, on the last two CPUs allowed.  Prints lines of name, value\n"
	"and unit: the median of all rounds.  Of each figure, -ratio is the median\n"
	"of each round's ratio, wq to the best peer in that round, and goes with\n"
	"its limit, if it has one; -ratio-of-medians is wq's median to the best\n"
	"median of a peer.  The exit status does not depend on speed.\n"
	"\n"
	"  --rounds N     7 to 1000, 7 by default; all pools take turns in each\n"
	"  --idle-jobs N  10 to 10000, 400 by default: a turn's empty jobs, one a\n"
	"                 millisecond\n"
	"  --bursts N     10 to 2000, 150 by default: a turn's bursts of 32 jobs of\n"
	"                 10 us\n"
	"  --setup NAME   pinned, free or other; all by default\n"
	"  --no-spin      not again with SCHED_IDLE threads that keep the CPUs from\n"
	"                 halting\n"
	"  --json FILE    write the results with all samples to FILE as well\n"
	"  --help         this text\n";

static unsigned int number(const char *option, const char *text,
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
	return (unsigned int)value;
}

static const char *known_setup(const char *name)
{
	for (size_t i = 0; i < SETUPS; i++)
		if (strcmp(setups[i].name, name) == 0)
			return name;
	die(2, "--setup is '%s', must be pinned, free or other", name);
}

static void parse(struct options *opt, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "idle-jobs", required_argument, NULL, 'i' },
		{ "bursts", required_argument, NULL, 'b' },
		{ "setup", required_argument, NULL, 's' },
		{ "no-spin", no_argument, NULL, 'n' },
		{ "json", required_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1)
		if (c == 'r')
			opt->rounds = number("rounds", optarg, MIN_ROUNDS,
					     DISPATCH_MAX_ROUNDS);
		else if (c == 'i')
			opt->idle_jobs = number("idle-jobs", optarg, MIN_JOBS,
						DISPATCH_MAX_JOBS);
		else if (c == 'b')
			opt->bursts = number("bursts", optarg, MIN_JOBS,
					     DISPATCH_MAX_BURSTS);
		else if (c == 's')
			opt->setup = known_setup(optarg);
		else if (c == 'n')
			opt->spin = false;
		else if (c == 'j')
			opt->json = optarg;
		else if (c == 'h')
			exit(fputs(help, stdout) < 0 || fflush(stdout));
		else /* getopt_long() has said what is wrong */
			exit(2);
	if (optind < argc)
		die(2, "unexpected argument '%s'", argv[optind]);
}

int main(int argc, char **argv)
{
	static struct bench b = {
		.opt = { .rounds = 7,
			 .idle_jobs = 400,
			 .bursts = 150,
			 .spin = true },
	};

	parse(&b.opt, argc, argv);
	choose_cpus(&b);
	dispatch_calibrate();
	print_cpus(&b);
	begin_json(&b);
	for (size_t i = 0; i < SETUPS; i++)
		if (!b.opt.setup || strcmp(b.opt.setup, setups[i].name) == 0)
			run_setup(&b, &setups[i]);
	end_json(&b);
	if (b.backward)
		printf("# %llu spans came out negative and count as 0\n",
		       (unsigned long long)b.backward);
	if (fflush(stdout))
		die(1, "standard output: %s", strerror(errno));
	return 0;
}
