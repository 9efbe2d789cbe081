/* SPDX-License-Identifier: MIT */
/* tools/commands.h - the subcommands, each in a cmd_NAME.c.  Layer: tools. */
#ifndef TOOLS_COMMANDS_H
#define TOOLS_COMMANDS_H

#include "tools/opts.h"

extern const struct command cmd_digest, cmd_seal, cmd_check, cmd_cat,
	cmd_inspect;

#endif /* TOOLS_COMMANDS_H */
