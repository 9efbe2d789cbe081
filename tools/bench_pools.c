/* SPDX-License-Identifier: MIT */
/*
 * tools/bench_pools.c - the program bench-pools: load on worker pools whose
 * mode is flipped meanwhile, and where the time of the jobs went.
 * Layer: tools.
 *
 * One set of pools runs all the time; the modes are set in turn, each for a
 * while, so that what disturbs the machine disturbs all of them.
 */
#include "tools/pools_load.h"
#include "tools/pools_table.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MODES 16

struct options {
	struct load load;
	bool pin;
	struct wq_mode mode[MAX_MODES];
	unsigned int modes;
	double seconds; /* of each mode in a round */
	unsigned int rounds;
	unsigned int worst;
	const char *trace;
	const char *topo;
	const char *hgrm;
	struct wq_config config;
};

static _Noreturn void die(int status, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void die(int status, const char *fmt, ...)
{
	va_list ap;

	fputs("bench-pools: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(status);
}

static void say(void *arg, const char *line)
{
	(void)arg;
	fprintf(stderr, "bench-pools: %s\n", line);
}

static const char usage[] =
	"usage: bench-pools [OPTION...]\n"
	"\n"
	"Queue jobs on worker pools, flip their mode, show where the time went.\n"
	"\n"
	"  --mode MODE     a mode to visit; may be given again; bound and\n"
	"                  unbound when not given.  MODE is inline, bound,\n"
	"                  unbound[:SCOPE][,strict] or local-first; SCOPE is cpu,\n"
	"                  smt, cache, cache_shard, numa or system\n"
	"  --seconds S     how long a mode stays set (1)\n"
	"  --rounds N      how often all modes are visited (3)\n"
	"  --job-us N      length of a job in microseconds (10)\n"
	"  --gap-us N      from one burst of an issuer to the next (1000)\n"
	"  --burst N       jobs in a burst (1)\n"
	"  --issuers N     threads that queue (1)\n"
	"  --pin           issuer i on CPU i\n"
	"  --cpus LIST     CPUs of the pools, as 0-3,8\n"
	"  --topology FILE a made-up topology; see wq/topo.h\n"
	"  --prio PRIO     of the workers: nice:N, fifo:N or slice:US\n"
	"  --spin-us N     idle workers spin so long (0: they sleep at once)\n"
	"  --handoff-us N  local-first spreads beyond this (0: measured)\n"
	"  --hist-mb N     bound of all histograms in MiB (64)\n"
	"  --worst N       show the N slowest jobs (5, at most 64)\n"
	"  --trace FILE    write a Perfetto trace of the last round\n"
	"  --hgrm FILE     write ready latencies of all modes as .hgrm text\n"
	"  --help          this text\n"
	"\n"
	"Exit status: 0 done, 1 jobs were lost, 2 usage or what was asked is not\n"
	"possible here, 4 a file cannot be written.\n";

/* Return: the number that @text is, from @min to @max. */
static double number(const char *name, const char *text, double min, double max)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= min && value <= max))
		die(2, "--%s must be a number from %.15g to %.15g, not '%s'",
		    name, min, max, text);
	return value;
}

static uint64_t micros(const char *name, const char *text, double min)
{
	return (uint64_t)(number(name, text, min, 1e7) * 1000);
}

static void add_mode(struct options *opt, const char *text)
{
	struct wq_error why;

	if (opt->modes == MAX_MODES)
		die(2, "--mode can be given %d times", MAX_MODES);
	if (wq_mode_parse(text, &opt->mode[opt->modes], &why) < 0)
		die(2, "--mode: %s", why.text);
	opt->modes++;
}

static void set_cpus(struct options *opt, const char *text)
{
	static cpu_set_t cpus;

	if (wq_cpulist_parse(text, &cpus) < 0)
		die(2, "--cpus must be a list as 0-3,8, not '%s'", text);
	opt->config.cpus = &cpus;
}

static void set_prio(struct options *opt, const char *text)
{
	struct wq_error why;

	if (wq_prio_parse(text, &opt->config.prio, &why) < 0)
		die(2, "--prio: %s", why.text);
}

enum {
	OPT_MODE = 256,
	OPT_SECONDS,
	OPT_ROUNDS,
	OPT_JOB,
	OPT_GAP,
	OPT_BURST,
	OPT_ISSUERS,
	OPT_PIN,
	OPT_CPUS,
	OPT_TOPO,
	OPT_PRIO,
	OPT_SPIN,
	OPT_HANDOFF,
	OPT_HIST,
	OPT_WORST,
	OPT_TRACE,
	OPT_HGRM,
	OPT_HELP,
};

static const struct option longs[] = {
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "seconds", required_argument, NULL, OPT_SECONDS },
	{ "rounds", required_argument, NULL, OPT_ROUNDS },
	{ "job-us", required_argument, NULL, OPT_JOB },
	{ "gap-us", required_argument, NULL, OPT_GAP },
	{ "burst", required_argument, NULL, OPT_BURST },
	{ "issuers", required_argument, NULL, OPT_ISSUERS },
	{ "pin", no_argument, NULL, OPT_PIN },
	{ "cpus", required_argument, NULL, OPT_CPUS },
	{ "topology", required_argument, NULL, OPT_TOPO },
	{ "prio", required_argument, NULL, OPT_PRIO },
	{ "spin-us", required_argument, NULL, OPT_SPIN },
	{ "handoff-us", required_argument, NULL, OPT_HANDOFF },
	{ "hist-mb", required_argument, NULL, OPT_HIST },
	{ "worst", required_argument, NULL, OPT_WORST },
	{ "trace", required_argument, NULL, OPT_TRACE },
	{ "hgrm", required_argument, NULL, OPT_HGRM },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

/* The options that are plain numbers.  Return: false for others. */
static bool set_number(struct options *opt, int c, const char *name)
{
	switch (c) {
	case OPT_SECONDS:
		opt->seconds = number(name, optarg, 0.001, 3600);
		return true;
	case OPT_ROUNDS:
		opt->rounds = (unsigned int)number(name, optarg, 1, 1000);
		return true;
	case OPT_JOB:
		opt->load.job_ns = micros(name, optarg, 0);
		return true;
	case OPT_GAP:
		opt->load.gap_ns = micros(name, optarg, 1);
		return true;
	case OPT_BURST:
		opt->load.burst = (unsigned int)number(name, optarg, 1, 4096);
		return true;
	case OPT_ISSUERS:
		opt->load.issuers = (unsigned int)number(name, optarg, 1, 64);
		return true;
	case OPT_SPIN:
		opt->config.spin_ns = micros(name, optarg, 0);
		return true;
	case OPT_HANDOFF:
		opt->config.handoff_ns = micros(name, optarg, 0);
		return true;
	case OPT_HIST:
		opt->config.hist_bytes =
			(size_t)(number(name, optarg, 0.001, 1e6) * 1048576);
		return true;
	case OPT_WORST:
		opt->worst = (unsigned int)number(name, optarg, 0, WQ_WORST);
		return true;
	default:
		return false;
	}
}

static void set(struct options *opt, int c)
{
	switch (c) {
	case OPT_MODE:
		add_mode(opt, optarg);
		break;
	case OPT_PIN:
		opt->pin = true;
		break;
	case OPT_CPUS:
		set_cpus(opt, optarg);
		break;
	case OPT_TOPO:
		opt->topo = optarg;
		break;
	case OPT_PRIO:
		set_prio(opt, optarg);
		break;
	case OPT_TRACE:
		opt->trace = optarg;
		break;
	case OPT_HGRM:
		opt->hgrm = optarg;
		break;
	case OPT_HELP:
		fputs(usage, stdout);
		exit(0);
	default:
		exit(2); /* getopt has said why */
	}
}

static void parse(struct options *opt, int argc, char **argv)
{
	int c, which = 0;

	while ((c = getopt_long(argc, argv, "", longs, &which)) != -1)
		if (!set_number(opt, c, longs[which].name))
			set(opt, c);
	if (optind < argc)
		die(2, "there are no operands: '%s'", argv[optind]);
	if (!opt->modes) {
		add_mode(opt, "bound");
		add_mode(opt, "unbound");
	}
}

static struct wq_pools *open_pools(struct options *opt)
{
	struct wq_topo *topo = NULL;
	struct wq_pools *pools;
	struct wq_error why;

	if (opt->topo && wq_topo_load(opt->topo, &topo, &why) < 0)
		die(2, "%s", why.text);
	opt->config.topo = topo;
	opt->config.mode = opt->mode[0];
	opt->config.say = say;
	if (wq_pools_new(&opt->config, &pools, &why) < 0)
		die(2, "%s", why.text);
	return pools;
}

/* Let the load run while all modes are visited. */
static void flip(struct options *opt, struct wq_pools *pools,
		 struct table *table)
{
	struct timespec stay = {
		.tv_sec = (time_t)opt->seconds,
		.tv_nsec =
			(long)((opt->seconds - (double)(time_t)opt->seconds) *
			       1e9),
	};
	struct wq_switch cost;
	struct wq_error why;

	for (unsigned int r = 0; r < opt->rounds; r++) {
		if (opt->trace && r == opt->rounds - 1 &&
		    wq_trace_start(wq_pools_trace(pools), &why) != 0)
			say(NULL, why.text);
		for (unsigned int m = 0; m < opt->modes; m++) {
			if (wq_pools_switch(pools, opt->mode[m], &cost, &why) <
			    0)
				die(2, "%s", why.text);
			table_note_switch(table, &cost);
			nanosleep(&stay, NULL);
		}
	}
	wq_trace_stop(wq_pools_trace(pools));
}

static void write_trace(const struct options *opt, struct wq_pools *pools)
{
	static const char *const job = "job";
	struct wq_trace_names names = { .classes = &job,
					.nr_classes = 1,
					.mode = wq_mode_name };
	struct wq_trace_written written;
	struct wq_error why;

	if (wq_trace_write(wq_pools_trace(pools), opt->trace, &names, &written,
			   &why) < 0)
		die(4, "%s: %s", opt->trace, why.text);
	printf("# trace %s: %llu bytes, %llu jobs, %llu flows, %llu states%s%s\n",
	       opt->trace, (unsigned long long)written.bytes,
	       (unsigned long long)written.jobs,
	       (unsigned long long)written.flows,
	       (unsigned long long)written.states,
	       written.no_states ? "; no scheduler states: " : "",
	       written.no_states ? written.no_states : "");
}

int main(int argc, char **argv)
{
	static struct options opt = {
		.load = { .job_ns = 10000,
			  .gap_ns = 1000000,
			  .burst = 1,
			  .issuers = 1 },
		.seconds = 1,
		.rounds = 3,
		.worst = 5,
	};
	static struct table table;
	struct wq_attrs attrs = { .name = "bench" };
	struct load_result result;
	struct load_run *run;
	struct wq_pools *pools;
	struct wq_error why;
	struct wq *wq;
	int err;

	parse(&opt, argc, argv);
	load_calibrate();
	pools = open_pools(&opt);
	if (wq_new(pools, &attrs, &wq, &why) < 0)
		die(2, "%s", why.text);
	opt.load.topo = opt.pin ? wq_pools_topo(pools) : NULL;
	err = load_start(&opt.load, wq, &run);
	if (err)
		die(2, "cannot start the issuers: %s", strerror(-err));
	flip(&opt, pools, &table);
	load_stop(run, &result);
	table_print(&table, pools, wq, &result, opt.worst);
	if (opt.trace)
		write_trace(&opt, pools);
	if (opt.hgrm)
		err = table_hgrm(pools, opt.hgrm);
	wq_free(wq);
	wq_pools_free(pools);
	wq_topo_free((struct wq_topo *)opt.config.topo);
	if (err)
		die(4, "%s: %s", opt.hgrm, strerror(-err));
	return result.done == result.queued ? 0 : 1;
}
