/* SPDX-License-Identifier: MIT */
/* The version, which merkle/rules.mk alone knows.  Layer: merkle. */
#include "merkle/verity.h"

const char *verity_version(void)
{
	return VERITY_VERSION;
}
