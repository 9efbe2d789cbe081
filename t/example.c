/* SPDX-License-Identifier: MIT */
/* What a user of libverity writes: the verified bytes of a sealed file. */
#include <stdio.h>
#include <string.h>
#include <verity.h>

int main(int argc, char **argv)
{
	static char buf[65536];
	struct verity_file *f;
	uint64_t pos = 0;
	ssize_t len;
	int err;

	if (argc != 2)
		return 2;
	err = verity_file_open(argv[1], NULL, NULL, &f, NULL);
	if (err) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-err));
		return 1;
	}
	while ((len = verity_file_read(f, buf, sizeof(buf), pos, NULL)) > 0 &&
	       fwrite(buf, (size_t)len, 1, stdout) == 1)
		pos += (uint64_t)len;
	if (len < 0)
		fprintf(stderr, "%s: %s\n", argv[1], strerror((int)-len));
	verity_file_close(f);
	return len != 0 || fflush(stdout) != 0;
}
