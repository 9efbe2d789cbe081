/* SPDX-License-Identifier: MIT */
/*
 * t/data.h - what tests feed to the code under test: bytes and numbers that
 * are the same in each run.
 */
#ifndef T_DATA_H
#define T_DATA_H

#include <stddef.h>
#include <stdint.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

/** pattern() - a period that is prime to every block size, so that no block
 * passes for another */
static inline void pattern(uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(i % 251);
}

/** rnd() - the next number after *@seed, which is not 0; not thread-safe */
static inline uint64_t rnd(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

#endif /* T_DATA_H */
