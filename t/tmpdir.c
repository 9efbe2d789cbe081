/* SPDX-License-Identifier: MIT */
/* A temporary directory for tests written in C. */
#include "t/tmpdir.h"

#include "t/tap.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

static char dir[4096];

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void remove_all(void)
{
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *tmpdir(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%s/verity-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		bail("no temporary directory");
	if (atexit(remove_all))
		bail("no way to clean up");
	return dir;
}
