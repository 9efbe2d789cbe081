/* SPDX-License-Identifier: MIT */
/* tools/opts.c - read a subcommand's arguments by its table.  Layer: tools. */
#include "tools/opts.h"

#include "tools/exits.h"
#include "tools/say.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* What --help does is known to every command, and in no table. */
#define HELP "help"

/* One run over the arguments. */
struct parse {
	const struct command *cmd;
	int argc;
	char **argv;
	int at;        /* the next argument */
	uint64_t seen; /* bit i: cmd->opts[i] was given */
	char *opts;
};

/* "--salt" or "--salt=00" at @arg?  Return: the value after "=", or NULL. */
static const char *split(const char *arg, size_t *name_len)
{
	const char *eq = strchr(arg, '=');

	*name_len = eq ? (size_t)(eq - arg) : strlen(arg);
	return eq ? eq + 1 : NULL;
}

static const struct opt *find(const struct command *cmd, const char *name,
			      size_t len)
{
	for (const struct opt *o = cmd->opts; o->name; o++)
		if (strlen(o->name) == len && strncmp(o->name, name, len) == 0)
			return o;
	return NULL;
}

static int unknown(const struct command *cmd, const char *arg)
{
	char name[64];
	size_t len;

	split(arg, &len);
	snprintf(name, sizeof(name), "%.*s", len < 63 ? (int)len : 63, arg);
	for (const struct opt *o = cmd->opts; o->name; o++) {
		if (strncmp(name, "--", 2) != 0 ||
		    !opts_near(name + 2, o->name))
			continue;
		say_error("%s: no such option (did you mean --%s?)", name,
			  o->name);
		return EXIT_USAGE;
	}
	say_error("%s: no such option (see: verityctl %s --help)", name,
		  cmd->name);
	return EXIT_USAGE;
}

static int apply(struct parse *p, const struct opt *o, const char *value)
{
	uint64_t bit = (uint64_t)1 << (o - p->cmd->opts);
	const char *rule;

	if (p->seen & bit) {
		say_error("--%s: must be given only once", o->name);
		return EXIT_USAGE;
	}
	p->seen |= bit;
	rule = o->set(value, p->opts + o->offset);
	if (!rule)
		return EXIT_OK;
	say_error("--%s=%s: %s", o->name, value, rule);
	return EXIT_USAGE;
}

/* @arg begins with "--" and goes on. */
static int take_option(struct parse *p, const char *arg)
{
	const struct opt *o;
	const char *value;
	size_t len;

	value = split(arg, &len);
	o = find(p->cmd, arg + 2, len - 2);
	if (!o)
		return unknown(p->cmd, arg);
	if (!o->arg && value) {
		say_error("--%s: takes no value", o->name);
		return EXIT_USAGE;
	}
	if (o->arg && !value && p->at == p->argc) {
		say_error("--%s: needs a value: --%s=%s", o->name, o->name,
			  o->arg);
		return EXIT_USAGE;
	}
	if (o->arg && !value)
		value = p->argv[p->at++];
	return apply(p, o, value);
}

static int check_count(const struct command *cmd, char **operands, int count)
{
	if (count < cmd->min_operands) {
		say_error("too few operands (usage: verityctl %s [OPTION...] "
			  "%s)",
			  cmd->name, cmd->operands);
		return EXIT_USAGE;
	}
	if (cmd->max_operands >= 0 && count > cmd->max_operands) {
		say_error("%s: one operand too many (usage: verityctl %s "
			  "[OPTION...] %s)",
			  operands[cmd->max_operands], cmd->name,
			  cmd->operands);
		return EXIT_USAGE;
	}
	return EXIT_OK;
}

/* Operands move to the front, to argv[1] and on; "-" alone is one. */
int opts_parse(const struct command *cmd, int argc, char **argv, void *opts,
	       char ***operands, int *status)
{
	struct parse p = { cmd, argc, argv, 1, 0, opts };
	bool only_operands = false;
	int count = 0;

	*status = EXIT_OK;
	while (p.at < argc) {
		char *arg = argv[p.at++];

		if (only_operands || arg[0] != '-' || !arg[1]) {
			argv[1 + count++] = arg;
		} else if (strcmp(arg, "--") == 0) {
			only_operands = true;
		} else if (strcmp(arg, "--" HELP) == 0 ||
			   strcmp(arg, "-h") == 0) {
			opts_help(cmd);
			return -1;
		} else {
			*status = arg[1] == '-' ? take_option(&p, arg)
						: unknown(cmd, arg);
		}
		if (*status != EXIT_OK)
			return -1;
	}
	*operands = argv + 1;
	*status = check_count(cmd, *operands, count);
	return *status == EXIT_OK ? count : -1;
}

static int help_width(const struct opt *o)
{
	return (int)(strlen(o->name) + (o->arg ? 1 + strlen(o->arg) : 0));
}

static void help_line(int width, const struct opt *o)
{
	int pad = width - help_width(o);

	printf("  --%s%s%s%*s  %s\n", o->name, o->arg ? "=" : "",
	       o->arg ? o->arg : "", pad, "", o->help);
}

void opts_help(const struct command *cmd)
{
	static const struct opt help = { .name = HELP,
					 .help = "show this text" };
	int width = help_width(&help);

	for (const struct opt *o = cmd->opts; o->name; o++)
		if (help_width(o) > width)
			width = help_width(o);
	/* The summary is a phrase in the list of commands, a sentence here. */
	printf("Usage: verityctl %s [OPTION...] %s\n%c%s.\n\n", cmd->name,
	       cmd->operands, toupper((unsigned char)cmd->summary[0]),
	       cmd->summary + 1);
	for (const struct opt *o = cmd->opts; o->name; o++)
		help_line(width, o);
	help_line(width, &help);
}
