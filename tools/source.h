/* SPDX-License-Identifier: MIT */
/*
 * tools/source.h - read a file in windows, mapped where that is possible.
 *
 * Layer: tools.  Mapping saves the copy, a third of the time of a tree build
 * from memory.  A file that is truncated under a mapping, or that gives an
 * I/O error, would end the process with SIGBUS: the handler puts zero pages
 * there instead and marks the window, whose owner gets an error.  What is
 * read here is hashed only, never handed out: the bytes can change.
 */
#ifndef TOOLS_SOURCE_H
#define TOOLS_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct source {
	int fd;             /* the caller's */
	uint64_t size;      /* bytes of the file that are read */
	bool holes;         /* the file has fewer blocks than bytes */
	uint64_t map_bytes; /* of each thread's mapping, when more is there */
};

/** One thread's view of a source; begin with a zeroed struct. */
struct window {
	struct guard *guard; /* what the SIGBUS handler marks, while mapped */
	uint8_t *map;        /* or NULL */
	uint64_t map_pos;    /* bytes from the file's start */
	size_t map_len;
	uint8_t *buf; /* for pread; owned, kept between windows */
	size_t buf_len;
};

/**
 * source_init() - take an open regular file
 * @size: bytes of it that are read
 * @blocks512: its st_blocks
 * @threads: that will read it; what they map together is bounded
 *
 * Installs the SIGBUS handler on first use.
 */
void source_init(struct source *s, int fd, uint64_t size, uint64_t blocks512,
		 unsigned int threads);

/**
 * source_read() - make [pos, pos + len) of the file readable
 * @len: not beyond the file's end
 * @out: valid until the next call for this window
 *
 * Return: 0; -ENODATA when the file is shorter than it was; or an errno.
 */
int source_read(const struct source *s, struct window *w, uint64_t pos,
		size_t len, const uint8_t **out);

/**
 * source_check() - were the bytes that source_read() gave really the file's
 *
 * Ask after they were used.
 *
 * Return: 0, or -ENODATA or -EIO when bytes were lost meanwhile: then nothing
 * computed from them counts.
 */
int source_check(const struct source *s, const struct window *w);

/**
 * source_extent() - is there data or a hole at @pos
 * @end: of the file or of what is asked for
 * @len: set to the bytes up to the next change, at most to @end
 *
 * Return: true for data; a file system that does not say has only data.
 */
bool source_extent(const struct source *s, uint64_t pos, uint64_t end,
		   uint64_t *len);

/** window_free() - unmap, and free the buffer */
void window_free(struct window *w);

#endif /* TOOLS_SOURCE_H */
