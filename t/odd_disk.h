/* SPDX-License-Identifier: MIT */
/*
 * t/odd_disk.h - merkle/meta.c over a disk that does not always do as it is
 * asked.
 *
 * For one file of a program: meta.c is compiled into it, in place of the one
 * in the archive, and reads through odd_pread().
 */
#ifndef T_ODD_DISK_H
#define T_ODD_DISK_H

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

static struct {
	size_t most;      /* bytes a call; 0: as many as asked */
	int interrupts;   /* calls still to fail with EINTR */
	off_t bad_sector; /* reading this byte gives EIO; 0: none */
} disk;

static ssize_t odd_pread(int fd, void *buf, size_t len, off_t pos)
{
	if (disk.interrupts && disk.interrupts--) {
		errno = EINTR;
		return -1;
	}
	if (disk.most && len > disk.most)
		len = disk.most;
	if (disk.bad_sector && pos <= disk.bad_sector &&
	    disk.bad_sector < pos + (off_t)len) {
		errno = EIO;
		return -1;
	}
	return pread(fd, buf, len, pos);
}

#define pread odd_pread
#include "merkle/meta.c" /* NOLINT(bugprone-suspicious-include) */
#undef pread

#endif /* T_ODD_DISK_H */
