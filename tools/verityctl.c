/* SPDX-License-Identifier: MIT */
/* tools/verityctl.c - pick the subcommand and run it.  Layer: tools. */
#include "merkle/hash.h"
#include "tools/commands.h"
#include "tools/exits.h"
#include "tools/out.h"
#include "tools/say.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct command *const commands[] = {
	&cmd_digest, &cmd_seal, &cmd_check, &cmd_cat, &cmd_inspect,
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const char help_head[] =
	"Usage: verityctl COMMAND [OPTION...] [OPERAND...]\n"
	"Seal, check and read files by their fs-verity digests, on any file\n"
	"system.\n\n";

static const char help_tail[] =
	"\nverityctl COMMAND --help tells more; verityctl --version the "
	"version.\n"
	"VERITY_CPU=-avx512,-avx2,-shani,-sha2 in the environment switches\n"
	"CPU features off.\n\n"
	"Exit status: 0 success, 1 data failed verification, 2 usage,\n"
	"3 not what is trusted, 4 I/O error or malformed metadata, 6 busy,\n"
	"130 or 143 ended by SIGINT or SIGTERM.\n";

static int help(void)
{
	fputs(help_head, stdout);
	for (size_t i = 0; i < COMMANDS; i++)
		printf("  %-8s  %s\n", commands[i]->name, commands[i]->summary);
	fputs(help_tail, stdout);
	return EXIT_OK;
}

/* Return: the command called @name, or NULL and a line that says so. */
static const struct command *find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(name, commands[i]->name) == 0)
			return commands[i];
	for (size_t i = 0; i < COMMANDS; i++) {
		if (!opts_near(name, commands[i]->name))
			continue;
		say_error("%s: no such command (did you mean %s?)", name,
			  commands[i]->name);
		return NULL;
	}
	say_error("%s: no such command (see: verityctl --help)", name);
	return NULL;
}

static int help_on(const char *name)
{
	const struct command *cmd;

	if (!name)
		return help();
	cmd = find(name);
	if (!cmd)
		return EXIT_USAGE;
	opts_help(cmd);
	return EXIT_OK;
}

/* Not in the help: a test compares the names with the manual's. */
static int list_options(const char *name)
{
	const struct command *only = name ? find(name) : NULL;

	if (name && !only)
		return EXIT_USAGE;
	for (size_t i = 0; i < COMMANDS; i++) {
		if (only && commands[i] != only)
			continue;
		for (const struct opt *o = commands[i]->opts; o->name; o++)
			printf("--%s\n", o->name);
	}
	printf("--help\n");
	if (!only)
		printf("--version\n");
	return EXIT_OK;
}

/* "-avx512,-shani" from the environment, before anything is hashed. */
static int choose_kernels(void)
{
	const char *off = getenv("VERITY_CPU"), *bad = "";
	int err = verity_hash_setup(off, &bad);

	if (err == -EINVAL) {
		say_error("VERITY_CPU: '%.*s' is not a feature to switch off: "
			  "must be -avx512, -avx2, -shani or -sha2, joined by "
			  "commas",
			  (int)strcspn(bad, ","), bad);
		return EXIT_USAGE;
	}
	if (err) {
		say_errno(err, "cannot choose how to hash");
		return EXIT_IO;
	}
	return EXIT_OK;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	void *opts = calloc(1, cmd->opts_size);
	char **operands = NULL;
	int count, status;

	say_init(cmd->name, false);
	if (!opts) {
		say_errno(-ENOMEM, "cannot begin");
		return EXIT_IO;
	}
	count = opts_parse(cmd, argc, argv, opts, &operands, &status);
	if (count >= 0)
		status = choose_kernels();
	if (count >= 0 && status == EXIT_OK)
		status = cmd->run(opts, operands, count);
	free(opts);
	return status;
}

static int dispatch(int argc, char **argv)
{
	const struct command *cmd;
	const char *word = argc > 1 ? argv[1] : NULL;

	if (!word) {
		say_error("no command given (see: verityctl --help)");
		return EXIT_USAGE;
	}
	if (!strcmp(word, "--help") || !strcmp(word, "-h"))
		return help();
	if (!strcmp(word, "help"))
		return help_on(argv[2]);
	if (!strcmp(word, "--list-options"))
		return list_options(argv[2]);
	if (!strcmp(word, "--version")) {
		printf("verityctl %s\n", verity_version());
		return EXIT_OK;
	}
	cmd = find(word);
	return cmd ? run(cmd, argc - 1, argv + 1) : EXIT_USAGE;
}

int main(int argc, char **argv)
{
	out_guard();
	/* A reader that goes away, or a limit on file sizes, is a failed
	 * write, not a dead process. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return finish_stdout(dispatch(argc, argv));
}
