/* SPDX-License-Identifier: MIT */
/* Windows on a file, safe against truncation.  Layer: tools. */
#include "tools/source.h"

#include "merkle/meta.h"
#include "tools/spread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes mapped at once, by all threads and by one.  Only what is touched costs
 * anything, so the next parts come along, whoever reads them. */
#define MAP_ALL  ((uint64_t)16 << 20)
#define MAP_MOST ((uint64_t)4 << 20)

/* Below this a copy costs less than a mapping. */
#define MAP_LEAST 65536U

/*
 * What the SIGBUS handler knows of one mapped window.  The thread that took
 * the guard writes begin and end, and is the one that faults, so the handler
 * runs on the thread that wrote them; lost is set by the handler and read by
 * the same thread.  Atomic so that another thread's handler, which looks at
 * all guards, reads whole values.
 */
struct guard {
	_Atomic(uintptr_t) begin, end;
	atomic_int taken; /* by one window; an exchange takes it */
	atomic_int lost;
};

static struct guard guards[SPREAD_MAX];
static pthread_once_t installed = PTHREAD_ONCE_INIT;

/* Put zero pages from the fault to the window's end: one fault a window. */
static int patch(struct guard *g, uintptr_t at)
{
	uintptr_t end = atomic_load(&g->end), page = (uintptr_t)getpagesize();

	at &= ~(page - 1);
	atomic_store(&g->lost, 1);
	return mmap((void *)at, end - at, PROT_READ, /* NOLINT: an address */
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0) == MAP_FAILED
		       ? -1
		       : 0;
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr;
	int saved = errno;

	(void)context;
	for (unsigned int i = 0; i < SPREAD_MAX; i++) {
		struct guard *g = &guards[i];

		if (at < atomic_load(&g->begin) || at >= atomic_load(&g->end))
			continue;
		if (patch(g, at) == 0) {
			errno = saved;
			return;
		}
	}
	/* Not ours: let it be what it would have been. */
	signal(sig, SIG_DFL);
	errno = saved;
}

static void install(void)
{
	struct sigaction sa = { .sa_sigaction = on_sigbus,
				.sa_flags = SA_SIGINFO };

	sigaction(SIGBUS, &sa, NULL);
}

void source_init(struct source *s, int fd, uint64_t size, uint64_t blocks512,
		 unsigned int threads)
{
	uint64_t each = MAP_ALL / (threads ? threads : 1);

	pthread_once(&installed, install);
	s->fd = fd;
	s->size = size;
	s->map_bytes = each < MAP_MOST ? each : MAP_MOST;
	s->holes = blocks512 < size / 512;
}

/* Read into the thread's own buffer; for small pieces, and for files that can
 * not be mapped. */
static int read_copy(const struct source *s, struct window *w, uint64_t pos,
		     size_t len, const uint8_t **out)
{
	ssize_t n;

	if (w->buf_len < len) {
		free(w->buf);
		w->buf_len = 0;
		w->buf = malloc(len);
		if (!w->buf)
			return -ENOMEM;
		w->buf_len = len;
	}
	n = verity_pread_full(s->fd, w->buf, len, pos);
	if (n < 0)
		return (int)n;
	if ((size_t)n < len)
		return -ENODATA;
	*out = w->buf;
	return 0;
}

/* Return: a guard for a new mapping, or NULL when there are too many */
static struct guard *take_guard(uint8_t *map, size_t len)
{
	for (unsigned int i = 0; i < SPREAD_MAX; i++) {
		struct guard *g = &guards[i];

		if (atomic_exchange(&g->taken, 1))
			continue;
		atomic_store(&g->lost, 0);
		atomic_store(&g->begin, (uintptr_t)map);
		atomic_store(&g->end, (uintptr_t)map + len);
		return g;
	}
	return NULL;
}

static void unmap(struct window *w)
{
	if (!w->map)
		return;
	/* The end first: [0, end) would be everyone's in between. */
	atomic_store(&w->guard->end, 0);
	atomic_store(&w->guard->begin, 0);
	munmap(w->map, w->map_len);
	atomic_store(&w->guard->taken, 0);
	w->map = NULL;
}

/*
 * Map what is asked for and some more.  Pages come in by faults, sixteen at a
 * time; MADV_POPULATE_READ and a copy were both slower (1 GiB in tmpfs on one
 * core of a Zen 4: 0.444 s by faults, 0.479 s populated, 0.473 s copied).
 * MADV_SEQUENTIAL makes the kernel read ahead from a disk, and spares it the
 * bookkeeping of which pages were used.
 */
static int map_window(const struct source *s, struct window *w, uint64_t pos,
		      size_t len)
{
	uint64_t page = (uint64_t)getpagesize(), first = pos & ~(page - 1);
	uint64_t end = pos + len, most = first + s->map_bytes;
	size_t span;
	void *map;

	if (most > s->size)
		most = s->size;
	span = (size_t)((most > end ? most : end) - first);
	map = mmap(NULL, span, PROT_READ, MAP_SHARED, s->fd, (off_t)first);
	if (map == MAP_FAILED)
		return -errno;
	w->guard = take_guard(map, (span + page - 1) & ~(page - 1));
	if (!w->guard) {
		munmap(map, span);
		return -EAGAIN;
	}
	(void)madvise(map, span, MADV_SEQUENTIAL); /* advice */
	w->map = map;
	w->map_pos = first;
	w->map_len = span;
	return 0;
}

static bool is_mapped(const struct window *w, uint64_t pos, size_t len)
{
	return w->map && pos >= w->map_pos &&
	       pos + len <= w->map_pos + w->map_len;
}

int source_read(const struct source *s, struct window *w, uint64_t pos,
		size_t len, const uint8_t **out)
{
	if (!is_mapped(w, pos, len)) {
		unmap(w);
		if (len < MAP_LEAST || map_window(s, w, pos, len))
			return read_copy(s, w, pos, len, out);
	}
	*out = w->map + (pos - w->map_pos);
	return 0;
}

int source_check(const struct source *s, const struct window *w)
{
	struct stat st;

	if (!w->map || !atomic_load(&w->guard->lost))
		return 0;
	if (fstat(s->fd, &st) < 0)
		return -errno;
	return (uint64_t)st.st_size < s->size ? -ENODATA : -EIO;
}

bool source_extent(const struct source *s, uint64_t pos, uint64_t end,
		   uint64_t *len)
{
	off_t at = (off_t)pos, next;
	bool data = true;

	*len = end - pos;
	if (!s->holes)
		return true;
	next = lseek(s->fd, at, SEEK_DATA);
	if (next < 0 && errno != ENXIO)
		return true;
	if (next != at) {
		data = false;
		/* ENXIO: nothing but a hole to the end of the file */
		next = next < 0 ? (off_t)end : next;
	} else {
		next = lseek(s->fd, at, SEEK_HOLE);
		if (next < 0)
			return true;
	}
	if ((uint64_t)next < end)
		*len = (uint64_t)next - pos;
	return data;
}

void window_free(struct window *w)
{
	unmap(w);
	free(w->buf);
	w->buf = NULL;
	w->buf_len = 0;
}
