/* SPDX-License-Identifier: MIT */
/* Listing a tree, breadth first, one open directory at a time.
 * Layer: tools. */
#include "tools/walk.h"

#include "tools/beneath.h"
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
	struct tree *t;
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

/* Return: the path of @name in the directory being listed, or NULL */
static char *join(struct walk *w, const char *name)
{
	size_t up = strlen(w->up), n = strlen(name);
	char *path = arena_text(&w->t->arena, up + n + 2);
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

static int hand_on(struct tree *t)
{
	return t->ready && t->last ? t->ready(t->ready_arg, t->last) : 0;
}

static int append(struct tree *t, enum verity_kind kind, const char *path,
		  const char *target)
{
	struct item_block *b = t->last;

	if (!b || b->n == TREE_BLOCK) {
		b = calloc(1, sizeof(*b));
		if (!b)
			return -ENOMEM;
		if (t->last)
			t->last->next = b;
		else
			t->first = b;
		t->last = b;
	}
	b->item[b->n++].e = (struct verity_entry){ .kind = kind,
						   .path = path,
						   .target = target };
	t->n++;
	return b->n == TREE_BLOCK ? hand_on(t) : 0;
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
	target = arena_text(&w->t->arena, (size_t)n + 1);
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
	return append(w->t, VERITY_SYMLINK, path, target);
}

static int add_dir(struct walk *w, const char *name, const char *path)
{
	struct stat st;

	if (w->skip && fstatat(w->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_dev == w->skip->st_dev && st.st_ino == w->skip->st_ino) {
		w->t->metadata++;
		return 0;
	}
	return append(w->t, VERITY_DIR, path, NULL);
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
		return -ENOMEM;
	if (wrong) {
		say_error("%s: %s", path, wrong);
		return -ENAMETOOLONG;
	}
	if (type < 0)
		return say_errno(type, "%s: stat", path);
	switch (type) {
	case DT_REG:
		return append(w->t, VERITY_FILE, path, NULL);
	case DT_DIR:
		return add_dir(w, e->d_name, path);
	case DT_LNK:
		return add_symlink(w, e->d_name, path);
	default:
		w->t->special++;
		if (!w->t->one_special)
			w->t->one_special = path;
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
		if (!w->t->all && is_metadata(e->d_name))
			w->t->metadata++;
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
	w->dir = open_beneath(w->root, *path ? path : ".",
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
		close(w->dir);
		return -ENOMEM;
	}
	err = list_names(w, d);
	closedir(d);
	return err;
}

static int by_path(const void *a, const void *b)
{
	return strcmp((*(struct item *const *)a)->e.path,
		      (*(struct item *const *)b)->e.path);
}

/* The blocks are also the queue: directories found are listed in turn, and
 * what is in them goes behind. */
static int list_all(struct walk *w)
{
	struct tree *t = w->t;
	int err = list_dir(w, "", &t->root);

	for (struct item_block *b = t->first; b && !err; b = b->next)
		for (size_t i = 0; i < b->n && !err; i++) {
			struct item *it = &b->item[i];

			if (it->e.kind != VERITY_DIR)
				continue;
			it->st = arena_alloc(&t->arena, sizeof(*it->st));
			err = it->st ? list_dir(w, it->e.path, it->st)
				     : -ENOMEM;
		}
	return err;
}

static int sort_items(struct tree *t)
{
	size_t n = 0;

	t->v = malloc((t->n + 1) * sizeof(*t->v));
	if (!t->v) {
		t->n = 0;
		return -ENOMEM;
	}
	for (struct item_block *b = t->first; b; b = b->next)
		for (size_t i = 0; i < b->n; i++)
			t->v[n++] = &b->item[i];
	qsort(t->v, t->n, sizeof(struct item *), by_path);
	return 0;
}

int tree_walk(struct tree *t, int root, const struct stat *skip)
{
	struct walk w = { .t = t, .root = root, .skip = skip };
	int err = list_all(&w), sorted;

	if (!err && t->last && t->last->n < TREE_BLOCK)
		err = hand_on(t);
	sorted = sort_items(t);
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

int tree_check_dirs(const struct tree *t, int root)
{
	int err = check_dir(root, ".", &t->root);

	for (size_t i = 0; i < t->n; i++)
		if (t->v[i]->e.kind == VERITY_DIR &&
		    check_dir(root, t->v[i]->e.path, t->v[i]->st))
			err = -ESTALE;
	return err;
}

void tree_free(struct tree *t)
{
	struct item_block *next;

	for (struct item_block *b = t->first; b; b = next) {
		next = b->next;
		free(b);
	}
	free(t->v);
	arena_free(&t->arena);
	memset(t, 0, sizeof(*t));
}
