/* SPDX-License-Identifier: MIT */
/* Listing a tree, breadth first, one open directory at a time.
 * Layer: tools. */
#include "tools/walk.h"

#include "merkle/beneath.h"
#include "tools/say.h"
#include "tools/store.h"
#include "tools/watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct walk {
	struct listing *l;
	int root;
	const struct stat *skip;
	const char *up; /* path of the directory being listed; "" the root */
	int dir;        /* it */
};

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

static bool is_metadata(const char *name)
{
	return !strcmp(name, VERITY_FOLDER) ||
	       ends_with(name, VERITY_META_SUFFIX) ||
	       !strncmp(name, STORE_TMP_PREFIX, strlen(STORE_TMP_PREFIX));
}

static int no_memory(const char *path)
{
	return say_errno(-ENOMEM, "%s", *path ? path : ".");
}

/* Is it the directory that the caller wants left out? */
static bool is_skipped(const struct walk *w, const char *name)
{
	struct stat st;

	return w->skip &&
	       fstatat(w->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_dev == w->skip->st_dev && st.st_ino == w->skip->st_ino;
}

/* Return: the path of @name in the directory being listed, or NULL */
static char *join(struct walk *w, const char *name)
{
	size_t up = strlen(w->up), n = strlen(name);
	char *path = arena_text(&w->l->arena, up + n + 2);
	char *to = path;

	if (!path)
		return NULL;
	if (up) {
		memcpy(path, w->up, up);
		path[up] = '/';
		to = path + up + 1;
	}
	memcpy(to, name, n + 1);
	return path;
}

static int hand_on(struct listing *l)
{
	return l->ready && l->last ? l->ready(l->ready_arg, l->last) : 0;
}

static int leave_out(struct walk *w, const char *name)
{
	/* Of the folder in its usual place nobody needs to be told. */
	if (!*w->up && !strcmp(name, VERITY_FOLDER))
		return 0;
	w->l->metadata++;
	if (!w->l->one_metadata)
		w->l->one_metadata = join(w, name);
	return w->l->one_metadata ? 0 : no_memory(name);
}

/* Return: the new block, which is the last one then, or NULL */
static struct item_block *add_block(struct listing *l)
{
	struct item_block *b = arena_alloc(&l->arena, sizeof(*b));

	if (!b)
		return NULL;
	memset(b, 0, sizeof(*b));
	if (l->last)
		l->last->next = b;
	else
		l->first = b;
	l->last = b;
	return b;
}

static int append(struct listing *l, enum verity_kind kind, const char *path,
		  const char *target)
{
	struct item_block *b = l->last;

	if (!b || b->n == LISTING_BLOCK) {
		b = add_block(l);
		if (!b)
			return no_memory(path);
	}
	b->item[b->n++].e = (struct verity_entry){ .kind = kind,
						   .path = path,
						   .target = target };
	l->n++;
	return b->n == LISTING_BLOCK ? hand_on(l) : 0;
}

/* Return: the symlink's target, in the arena; NULL with errno set */
static char *read_target(struct walk *w, const char *name)
{
	char buf[VERITY_PATH_MAX + 1], *target;
	ssize_t n = readlinkat(w->dir, name, buf, sizeof(buf));

	if (n < 0)
		return NULL;
	if ((size_t)n >= sizeof(buf)) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	target = arena_text(&w->l->arena, (size_t)n + 1);
	if (target) {
		memcpy(target, buf, (size_t)n);
		target[n] = '\0';
	}
	return target;
}

static int add_symlink(struct walk *w, const char *name, const char *path)
{
	const char *target = read_target(w, name);

	if (!target)
		return say_errno(-errno, "%s: read link", path);
	return append(w->l, VERITY_SYMLINK, path, target);
}

static int add_dir(struct walk *w, const char *name, const char *path)
{
	if (is_skipped(w, name))
		return leave_out(w, name);
	return append(w->l, VERITY_DIR, path, NULL);
}

static int type_of(int dir, const struct dirent *e)
{
	struct stat st;

	if (e->d_type != DT_UNKNOWN)
		return e->d_type;
	if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return IFTODT(st.st_mode);
}

static int add_name(struct walk *w, const struct dirent *e)
{
	int type = type_of(w->dir, e);
	const char *path = join(w, e->d_name);
	const char *wrong = path ? verity_path_ok(path) : NULL;

	if (!path)
		return no_memory(e->d_name);
	if (wrong) {
		say_error("%s: %s", path, wrong);
		return -ENAMETOOLONG;
	}
	if (type < 0)
		return say_errno(type, "%s: stat", path);
	switch (type) {
	case DT_REG:
		return append(w->l, VERITY_FILE, path, NULL);
	case DT_DIR:
		return add_dir(w, e->d_name, path);
	case DT_LNK:
		return add_symlink(w, e->d_name, path);
	default:
		w->l->special++;
		if (!w->l->one_special)
			w->l->one_special = path;
		return 0;
	}
}

static int list_names(struct walk *w, DIR *d)
{
	const struct dirent *e;
	int err = 0;

	while (!err) {
		errno = 0;
		e = readdir(d);
		if (!e)
			return errno ? say_errno(-errno, "%s: read directory",
						 *w->up ? w->up : ".")
				     : 0;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (!w->l->all && is_metadata(e->d_name))
			err = leave_out(w, e->d_name);
		else
			err = add_name(w, e);
	}
	return err;
}

static int list_dir(struct walk *w, const char *path, struct stat *st)
{
	DIR *d;
	int err;

	w->up = path;
	w->dir = verity_open_beneath(w->root, *path ? path : ".",
				     O_RDONLY | O_DIRECTORY);
	if (w->dir < 0)
		return say_errno(w->dir, "%s: open directory",
				 *path ? path : ".");
	if (fstat(w->dir, st) < 0) {
		err = say_errno(-errno, "%s: stat", path);
		close(w->dir);
		return err;
	}
	d = fdopendir(w->dir);
	if (!d) {
		err = say_errno(-errno, "%s: read directory",
				*path ? path : ".");
		close(w->dir);
		return err;
	}
	err = list_names(w, d);
	closedir(d);
	return err;
}

/* l->v is an array of pointers: NOLINTNEXTLINE(bugprone-sizeof-expression) */
static const size_t slot = sizeof(struct item *);

static int by_path(const void *a, const void *b)
{
	return strcmp((*(struct item *const *)a)->e.path,
		      (*(struct item *const *)b)->e.path);
}

/* The blocks are also the queue: directories found are listed in turn, and
 * what is in them goes behind. */
static int list_all(struct walk *w)
{
	struct listing *l = w->l;
	int err = list_dir(w, "", &l->root);

	for (struct item_block *b = l->first; b && !err; b = b->next)
		for (size_t i = 0; i < b->n && !err; i++) {
			struct item *it = &b->item[i];

			if (it->e.kind != VERITY_DIR)
				continue;
			it->st = arena_alloc(&l->arena, sizeof(*it->st));
			err = it->st ? list_dir(w, it->e.path, it->st)
				     : no_memory(it->e.path);
		}
	return err;
}

static int sort_items(struct listing *l)
{
	size_t n = 0;

	l->v = malloc((l->n + 1) * slot);
	if (!l->v) {
		l->n = 0;
		return no_memory("");
	}
	for (struct item_block *b = l->first; b; b = b->next)
		for (size_t i = 0; i < b->n; i++)
			l->v[n++] = &b->item[i];
	qsort(l->v, l->n, slot, by_path);
	return 0;
}

int listing_walk(struct listing *l, int root, const struct stat *skip)
{
	struct walk w = { .l = l, .root = root, .skip = skip };
	int err = list_all(&w), sorted;

	if (!err && l->last && l->last->n < LISTING_BLOCK)
		err = hand_on(l);
	sorted = sort_items(l);
	return err ? err : sorted;
}

static int check_dir(int root, const char *path, const struct stat *was)
{
	struct stat st;

	if (fstatat(root, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    watch_same(was, &st))
		return 0;
	say_error("%s: directory changed while it was sealed", path);
	return -ESTALE;
}

int listing_check_dirs(const struct listing *l, int root)
{
	int err = check_dir(root, ".", &l->root);

	for (size_t i = 0; i < l->n; i++)
		if (l->v[i]->e.kind == VERITY_DIR &&
		    check_dir(root, l->v[i]->e.path, l->v[i]->st))
			err = -ESTALE;
	return err;
}

void listing_free(struct listing *l)
{
	free(l->v);
	arena_free(&l->arena);
	memset(l, 0, sizeof(*l));
}
