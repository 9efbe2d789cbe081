/* SPDX-License-Identifier: MIT */
/* Replays files in place of libFuzzer: main() of a fuzz target as make check
 * builds it. */
#include "t/replay.h"

#include <stdio.h>

/* Return: 0 once each file went through */
int main(int argc, char **argv)
{
	static uint8_t buf[1 << 20];

	for (int i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "rb");
		size_t len;

		if (!f) {
			perror(argv[i]);
			return 1;
		}
		len = fread(buf, 1, sizeof(buf), f);
		fclose(f);
		LLVMFuzzerTestOneInput(buf, len);
	}
	return argc < 2;
}
