/* SPDX-License-Identifier: MIT */
/* Sealing a directory tree.  Layer: tools. */
#include "tools/seal.h"

#include "merkle/hex.h"
#include "merkle/json.h"
#include "tools/exits.h"
#include "tools/out.h"
#include "tools/progress.h"
#include "tools/say.h"
#include "tools/spread.h"
#include "tools/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int seal_interrupted(void)
{
	return 128 + spread_stopped();
}

/* The folder of metadata: made if need be, and held by one run at a time. */
static int open_meta(struct seal *s)
{
	const char *dir = s->o->meta ? s->o->meta : VERITY_FOLDER;
	int at = s->o->meta ? AT_FDCWD : s->root;
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

	if (!s->o->dry_run && mkdirat(at, dir, 0755) < 0 && errno != EEXIST)
		return say_errno(-errno, "%s: make directory", s->where);
	s->meta = openat(at, dir, s->o->meta ? flags : flags | O_NOFOLLOW);
	if (s->meta < 0 && s->o->dry_run && errno == ENOENT)
		return 0;
	if (s->meta < 0)
		return say_errno(-errno, "%s: open directory", s->where);
	if (flock(s->meta, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EWOULDBLOCK)
			say_error("%s: another seal is at work", s->root_path);
		else
			say_errno(-errno, "%s: lock", s->where);
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	}
	return 0;
}

static int open_all(struct seal *s)
{
	const char *dir = s->o->meta ? s->o->meta : VERITY_FOLDER;

	s->root = open(s->root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->root < 0)
		return say_errno(-errno, "%s: open directory", s->root_path);
	if (asprintf(&s->where, "%s%s%s/" SEALED_MANIFEST,
		     s->o->meta ? "" : s->root_path, s->o->meta ? "" : "/",
		     dir) < 0) {
		s->where = NULL;
		return say_errno(-ENOMEM, "%s", s->root_path);
	}
	return open_meta(s);
}

/* A manifest the user vouched for: its digests may stand for files that did
 * not change.  A partial one is what --resume is for. */
static int load_trusted(struct seal *s, struct verity_manifest *m)
{
	const char *name = s->o->resume ? SEALED_PARTIAL : SEALED_MANIFEST;
	struct verity_digest got;
	char *where;
	int err;

	if (asprintf(&where, "%.*s%s",
		     (int)(strlen(s->where) - strlen(SEALED_MANIFEST)),
		     s->where, name) < 0)
		return say_errno(-ENOMEM, "%s", s->root_path);
	/* A folder that --dry-run did not make has nothing in it. */
	err = s->meta < 0 ? -ENOENT
			  : manifest_load(s->meta, name, where,
					  &s->o->pin.digest, m, &got);
	if (err == -ENOENT)
		say_error(s->o->resume ? "%s: there is nothing to resume"
				       : "%s: there is no manifest to compare "
					 "with --pin",
			  where);
	free(where);
	return err;
}

static bool same_params(const struct verity_params *a,
			const struct verity_params *b)
{
	return a->alg == b->alg && a->block_size == b->block_size &&
	       a->salt_size == b->salt_size &&
	       !memcmp(a->salt, b->salt, a->salt_size);
}

/* Is there, for good, no manifest that a reader would take?  One that only
 * can not be read now may be the valid one, and need all that is there. */
static bool is_none(int err)
{
	return err == -ENOENT || err == -EINVAL || err == -EFBIG;
}

/* A killed run left sidecars waiting: the manifest in place decides which of
 * them were meant for it. */
static int settle_waiting(struct seal *s)
{
	struct verity_manifest present = { 0 };
	struct verity_digest got;
	int err;

	if (faccessat(s->meta, SEALED_NEXT, F_OK, 0) < 0 && errno == ENOENT)
		return seal_settle(s->meta, NULL, NULL);
	err = manifest_load(s->meta, SEALED_MANIFEST, s->where, NULL, &present,
			    &got);
	if (err && !is_none(err))
		return err;
	err = seal_settle(s->meta, err ? NULL : &present,
			  s->o->resume ? &s->old : NULL);
	verity_manifest_free(&present);
	return err;
}

/* Return: as manifest_head(); -EINVAL, too, for what is no file */
static int read_head(const struct seal *s, struct verity_manifest_head *head)
{
	struct stat st;

	if (fstatat(s->meta, SEALED_MANIFEST, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return S_ISREG(st.st_mode)
		       ? manifest_head(s->meta, SEALED_MANIFEST, head)
		       : -EINVAL;
}

/* The serial to go on from, and what a killed run left behind.  Nothing here
 * is trusted: a manifest that no one would take counts as none. */
static int take_present(struct seal *s)
{
	struct verity_manifest_head head = { 0 };
	int err = read_head(s, &head);

	if (err && !is_none(err))
		return say_errno(err, "%s: read", s->where);
	if (!err && head.serial == UINT64_MAX) {
		say_error("%s: its serial is %" PRIu64 ", must be less: none "
			  "can come after it",
			  s->where, head.serial);
		return -EOVERFLOW;
	}
	if (!err)
		s->head.serial = head.serial + 1;
	else if (err != -ENOENT)
		say_note("%s: can not be read as a manifest; the serial "
			 "starts at 1",
			 s->where);
	return s->o->dry_run ? 0 : settle_waiting(s);
}

static int take_old(struct seal *s)
{
	int err = 0;

	s->head.created = s->o->created;
	s->head.serial = 1;
	opts_params(s->o->alg, s->o->block_size, &s->o->salt, &s->head.params);
	if (s->o->pin.set)
		err = load_trusted(s, &s->old);
	if (err)
		return err;
	s->trusted = s->o->pin.set &&
		     same_params(&s->old.head.params, &s->head.params);
	if (s->o->pin.set && !s->trusted)
		say_note("%s: other parameters than before: all files are "
			 "hashed again",
			 s->root_path);
	/* Whatever fails from here on says nothing about trust. */
	return s->meta < 0 || !take_present(s) ? 0 : -EIO;
}

int seal_list(struct seal *s)
{
	struct stat st;
	bool skip = s->meta >= 0 && fstat(s->meta, &st) == 0;
	int err = listing_walk(&s->list, s->root, skip ? &st : NULL);

	if (err)
		return err == -EINTR ? err : -EIO;
	if (s->list.special)
		say_note("%s: %zu FIFOs, sockets or devices left out (first: "
			 "%s)",
			 s->root_path, s->list.special, s->list.one_special);
	if (s->list.metadata)
		say_note("%s: %zu names left out as metadata (first: %s)",
			 s->root_path, s->list.metadata, s->list.one_metadata);
	return 0;
}

static void add_up(struct seal *s, uint64_t *bytes, uint64_t *sidecars)
{
	*bytes = 0;
	*sidecars = 0;
	for (size_t i = 0; i < s->list.n; i++) {
		const struct item *it = s->list.v[i];
		struct verity_geom g;
		struct stat st;

		if (it->e.kind != VERITY_FILE ||
		    fstatat(s->root, it->e.path, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		*bytes += (uint64_t)st.st_size;
		if (st.st_size > (off_t)s->head.params.block_size &&
		    !verity_geom_init(&g, &s->head.params, (uint64_t)st.st_size,
				      NULL))
			*sidecars += VERITY_META_ALIGN + g.tree_size;
	}
}

/* Files and their bytes; @done: only those that are sealed. */
static uint64_t count_files(const struct seal *s, bool done, uint64_t *bytes)
{
	uint64_t n = 0, sum = 0;

	for (size_t i = 0; i < s->list.n; i++) {
		const struct item *it = s->list.v[i];

		if (it->e.kind != VERITY_FILE ||
		    (done && it->state != ITEM_DONE))
			continue;
		n++;
		sum += it->e.size;
	}
	if (bytes)
		*bytes = sum;
	return n;
}

static int print_plan(struct seal *s)
{
	uint64_t bytes, sidecars;
	struct verity_json j = { 0 };
	char a[16], b[16];

	add_up(s, &bytes, &sidecars);
	if (!s->o->json) {
		out_path(s->root_path);
		out_printf(": would read %" PRIu64 " files, %s, and write %s "
			   "of sidecars\n",
			   count_files(s, false, NULL), human_bytes(bytes, a),
			   human_bytes(sidecars, b));
		return EXIT_OK;
	}
	verity_json_object(&j, NULL);
	verity_json_string(&j, "path", s->root_path);
	verity_json_bool(&j, "dry_run", true);
	verity_json_u64(&j, "files", count_files(s, false, NULL));
	verity_json_u64(&j, "bytes", bytes);
	verity_json_u64(&j, "sidecar_bytes", sidecars);
	verity_json_end(&j, '}');
	return json_finish(&j) ? EXIT_IO : EXIT_OK;
}

static void print_notes(const struct seal *s)
{
	uint64_t weak = atomic_load(&s->n.stat_only), bytes;
	uint64_t files = count_files(s, true, &bytes);
	char a[16], b[16];

	if (weak)
		say_note("%s: change detection: stat only for %" PRIu64
			 " files (first: %s: %s)",
			 s->root_path, weak, atomic_load(&s->stat_only_path),
			 watch_why(atomic_load(&s->stat_only_why)));
	say_note("%s: %" PRIu64 " files, %s, of them %" PRIu64
		 " unchanged; %s of new sidecars; serial %" PRIu64,
		 s->root_path, files, human_bytes(bytes, a),
		 atomic_load(&s->n.reused),
		 human_bytes(atomic_load(&s->n.sidecar_bytes), b),
		 s->head.serial);
	if (faccessat(s->meta, "manifest.sig", F_OK, 0) == 0)
		say_note("%s.sig: is the signature of an older manifest now: "
			 "sign again",
			 s->where);
}

static int print_result(const struct seal *s, const struct verity_digest *pin)
{
	char text[VERITY_DIGEST_TEXT];
	struct verity_json j = { 0 };
	uint64_t bytes;

	print_notes(s);
	verity_digest_format(pin, text);
	if (!s->o->json) {
		out_printf("%s ", text);
		out_path(s->where);
		out_printf("\n");
		return EXIT_OK;
	}
	verity_json_object(&j, NULL);
	verity_json_string(&j, "path", s->root_path);
	verity_json_string(&j, "manifest", s->where);
	verity_json_string(&j, "pin", text);
	verity_json_u64(&j, "serial", s->head.serial);
	verity_json_u64(&j, "files", count_files(s, true, &bytes));
	verity_json_u64(&j, "bytes", bytes);
	verity_json_u64(&j, "reused", atomic_load(&s->n.reused));
	verity_json_u64(&j, "sidecar_bytes", atomic_load(&s->n.sidecar_bytes));
	verity_json_u64(&j, "stat_only", atomic_load(&s->n.stat_only));
	verity_json_end(&j, '}');
	return json_finish(&j) ? EXIT_IO : EXIT_OK;
}

/* @arg as a word that sh takes for just that. */
static void put_word(struct verity_text *t, const char *arg)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_./:=@%+,-";

	if (*arg && !arg[strspn(arg, plain)]) {
		verity_text_printf(t, "%s", arg);
		return;
	}
	verity_text_put(t, "'", 1);
	for (; *arg; arg++)
		if (*arg == '\'')
			verity_text_put(t, "'\\''", 4);
		else
			verity_text_put(t, arg, 1);
	verity_text_put(t, "'", 1);
}

/* The options without which other bytes would come out. */
static void put_options(struct verity_text *t, const struct seal_opts *o)
{
	char salt[2 * VERITY_MAX_SALT + 1];

	if (o->alg)
		verity_text_printf(t, " --hash-alg=%s",
				   verity_alg_name(o->alg));
	if (o->block_size)
		verity_text_printf(t, " --block-size=%u", o->block_size);
	hex_encode(o->salt.bytes, o->salt.size, salt);
	if (o->salt.size)
		verity_text_printf(t, " --salt=%s", salt);
	if (o->sha256)
		verity_text_printf(t, " --sha256");
	if (o->meta) {
		verity_text_printf(t, " --meta=");
		put_word(t, o->meta);
	}
}

static int stop_early(struct seal *s)
{
	struct verity_text again = { 0 };
	char text[VERITY_DIGEST_TEXT];
	struct verity_digest pin;
	int err = seal_save_partial(s, &pin);

	progress_end();
	if (err) {
		say_errno(err, "%s: interrupted; nothing to resume from",
			  s->root_path);
		return seal_interrupted();
	}
	verity_digest_format(&pin, text);
	verity_text_printf(&again, "verityctl seal --resume --pin=%s", text);
	put_options(&again, s->o);
	verity_text_printf(&again, *s->root_path == '-' ? " -- " : " ");
	put_word(&again, s->root_path);
	say_error("%s: interrupted after %" PRIu64 " of %" PRIu64
		  " files; what was "
		  "sealed before stays valid; to go on: %s",
		  s->root_path, count_files(s, true, NULL),
		  count_files(s, false, NULL),
		  again.err ? "verityctl seal --resume" : again.s);
	verity_text_free(&again);
	return seal_interrupted();
}

static int hash_and_commit(struct seal *s)
{
	struct verity_digest pin;
	int err;

	progress_begin(s->root_path, 0, s->o->quiet);
	err = seal_hash(s);
	if (err == -EINTR)
		return stop_early(s);
	if (!err)
		err = listing_check_dirs(&s->list, s->root);
	if (!err)
		err = seal_commit(s, &pin);
	if (err) {
		progress_end();
		say_error("%s: not sealed; what was sealed before stays valid",
			  s->root_path);
		return EXIT_IO;
	}
	err = seal_finish(s);
	progress_end();
	return err ? EXIT_IO : print_result(s, &pin);
}

static void seal_fini(struct seal *s)
{
	seal_hash_fini(s);
	verity_manifest_free(&s->old);
	listing_free(&s->list);
	free(s->where);
	if (s->meta >= 0)
		close(s->meta);
	if (s->root >= 0)
		close(s->root);
}

int seal_tree(const char *path, const struct seal_opts *o)
{
	struct seal s = { .o = o, .root_path = path, .root = -1, .meta = -1 };
	int err = open_all(&s), status = EXIT_IO;

	if (!err)
		err = take_old(&s);
	if (!err && o->dry_run)
		err = seal_list(&s);
	if (err == -EBUSY)
		status = EXIT_BUSY;
	else if (err == -EBADMSG)
		status = EXIT_TRUST;
	else if (!err)
		status = o->dry_run ? print_plan(&s) : hash_and_commit(&s);
	seal_fini(&s);
	return status;
}
