/* SPDX-License-Identifier: MIT */
/*
 * t/replay.h - what each t/fuzz_X.c defines, for libFuzzer or t/replay.c.
 */
#ifndef T_REPLAY_H
#define T_REPLAY_H

#include <stddef.h>
#include <stdint.h>

/** LLVMFuzzerTestOneInput() - abort when these bytes break a rule; Return: 0 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#endif /* T_REPLAY_H */
