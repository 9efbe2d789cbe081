/* SPDX-License-Identifier: MIT */
/*
 * tools/opts.h - options of a subcommand: one table parses, helps and is
 * compared with the manual.  Layer: tools.
 */
#ifndef TOOLS_OPTS_H
#define TOOLS_OPTS_H

#include "merkle/verity.h"

#include <stdbool.h>

/** One long option.  All setters write into the command's options struct. */
struct opt {
	const char *name; /* without the dashes */
	const char *arg;  /* what --help calls its value; NULL: a flag */
	const char *help; /* one line */
	/** @set: read @value into *@dst.  Return: NULL, or the rule that
	 * @value breaks: "must be a power of two from 512 to 65536". */
	const char *(*set)(const char *value, void *dst);
	size_t offset; /* of the field in the options struct */
};

/** A subcommand: its row in the table of verityctl.c. */
struct command {
	const char *name;
	const char *operands;   /* for the usage line: "FILE..." */
	const char *summary;    /* one line */
	const struct opt *opts; /* ended by a NULL name */
	size_t opts_size;       /* of the options struct, which begins zeroed */
	int min_operands, max_operands; /* max -1: any number */
	/** @run: Return: the exit status */
	int (*run)(const void *opts, char **operands, int count);
};

/** A range of bytes as HTTP writes it: "A-B" inclusive, "A-", "-N". */
struct byte_range {
	bool set;
	bool suffix; /* the last @first bytes */
	uint64_t first;
	uint64_t last; /* inclusive; UINT64_MAX: to the end */
};

/** A digest given by the user; set says that one was. */
struct digest_opt {
	bool set;
	struct verity_digest digest;
};

/** A salt given by the user. */
struct salt_opt {
	uint32_t size;
	uint8_t bytes[VERITY_MAX_SALT];
};

const char *opt_flag(const char *value, void *dst);       /* bool */
const char *opt_string(const char *value, void *dst);     /* const char * */
const char *opt_alg(const char *value, void *dst);        /* uint32_t */
const char *opt_block_size(const char *value, void *dst); /* uint32_t */
const char *opt_salt(const char *value, void *dst);       /* salt_opt */
const char *opt_digest(const char *value, void *dst);     /* digest_opt */
const char *opt_range(const char *value, void *dst);      /* byte_range */
const char *opt_size(const char *value, void *dst);       /* uint64_t, not 0 */
const char *opt_jobs(const char *value, void *dst);       /* unsigned, 1..256 */

/**
 * opts_parse() - read a subcommand's arguments
 * @argv: argv[0] is the subcommand
 * @opts: opts_size zeroed bytes
 * @operands: set to the first operand
 *
 * An option twice, an unknown one, a value that breaks a rule, too few or too
 * many operands: one line that names it, and what is allowed.  --help prints
 * the help and leaves *status EXIT_OK.
 *
 * Return: the number of operands, or -1 with *status the exit status.
 */
int opts_parse(const struct command *cmd, int argc, char **argv, void *opts,
	       char ***operands, int *status);

/** opts_help() - print a subcommand's help to standard output */
void opts_help(const struct command *cmd);

/** opts_near() - Return: true when @word may be a typing mistake for @name */
bool opts_near(const char *word, const char *name);

/** opts_params() - parameters from --hash-alg, --block-size and --salt, with
 * the defaults of fsverity(1) where a field is 0 */
void opts_params(uint32_t alg, uint32_t block_size, const struct salt_opt *salt,
		 struct verity_params *out);

#endif /* TOOLS_OPTS_H */
