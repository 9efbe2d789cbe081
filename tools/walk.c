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
static char *join(const char *up, const char *name)
{
	char *path;

	if (!*up)
		return strdup(name);
	return asprintf(&path, "%s/%s", up, name) < 0 ? NULL : path;
}

#if defined(__GNUC__) && !defined(__clang__)
/* gcc 12's analyzer loses track of what is kept in an array that moved. */
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif

/* Takes @path and @target over, also when it fails. */
static int append(struct tree *t, enum verity_kind kind, char *path,
		  char *target)
{
	struct item it = {
		.e = { .kind = kind, .path = path, .target = target }
	};

	if (t->n == t->room) {
		size_t room = t->room ? 2 * t->room : 256;
		void *v = realloc(t->v, room * sizeof(*t->v));

		if (!v) {
			free(path);
			free(target);
			return -ENOMEM;
		}
		t->v = v;
		t->room = room;
	}
	t->v[t->n++] = it;
	return 0;
}

/* Return: the symlink's target, owned by the caller; NULL with errno set */
static char *read_target(int dir, const char *name)
{
	char buf[VERITY_PATH_MAX + 1];
	ssize_t n = readlinkat(dir, name, buf, sizeof(buf));

	if (n < 0)
		return NULL;
	if ((size_t)n >= sizeof(buf)) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	return strndup(buf, (size_t)n);
}

static int add_symlink(struct walk *w, const char *name, char *path)
{
	char *target = read_target(w->dir, name);
	int err;

	if (!target) {
		err = say_errno(-errno, "%s: read link", path);
		free(path);
		return err;
	}
	return append(w->t, VERITY_SYMLINK, path, target);
}

static int add_dir(struct walk *w, const char *name, char *path)
{
	struct stat st;

	if (w->skip && fstatat(w->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_dev == w->skip->st_dev && st.st_ino == w->skip->st_ino) {
		w->t->metadata++;
		free(path);
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

static int add_special(struct walk *w, char *path)
{
	w->t->special++;
	if (w->t->one_special)
		free(path);
	else
		w->t->one_special = path;
	return 0;
}

static int add_name(struct walk *w, const struct dirent *e)
{
	int type = type_of(w->dir, e);
	char *path = join(w->up, e->d_name);
	const char *wrong = path ? verity_path_ok(path) : NULL;

	if (!path)
		return -ENOMEM;
	if (type < 0 || wrong) {
		if (wrong)
			say_error("%s: %s", path, wrong);
		else
			say_errno(type, "%s: stat", path);
		free(path);
		return wrong ? -ENAMETOOLONG : type;
	}
	switch (type) {
	case DT_REG:
		return append(w->t, VERITY_FILE, path, NULL);
	case DT_DIR:
		return add_dir(w, e->d_name, path);
	case DT_LNK:
		return add_symlink(w, e->d_name, path);
	default:
		return add_special(w, path);
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
	return strcmp(((const struct item *)a)->e.path,
		      ((const struct item *)b)->e.path);
}

int tree_walk(struct tree *t, int root, const struct stat *skip)
{
	struct walk w = { .t = t, .root = root, .skip = skip };
	int err = list_dir(&w, "", &t->root);

	/* The list is also the queue: directories found are listed in turn. */
	for (size_t i = 0; i < t->n && !err; i++) {
		struct stat *st;

		if (t->v[i].e.kind != VERITY_DIR)
			continue;
		st = malloc(sizeof(*st));
		if (!st)
			return -ENOMEM;
		t->v[i].st = st;
		err = list_dir(&w, t->v[i].e.path, st);
	}
	if (!err && t->n)
		qsort(t->v, t->n, sizeof(*t->v), by_path);
	return err;
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
		if (t->v[i].e.kind == VERITY_DIR &&
		    check_dir(root, t->v[i].e.path, t->v[i].st))
			err = -ESTALE;
	return err;
}

void tree_free(struct tree *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free((char *)t->v[i].e.path);
		free((char *)t->v[i].e.target);
		free(t->v[i].st);
	}
	free(t->v);
	free(t->one_special);
	memset(t, 0, sizeof(*t));
}
