/* SPDX-License-Identifier: MIT */
/*
 * What modes and scopes are called: each name reads back as what it names, and
 * what is no name is refused in words that tell the possible ones.
 */
#include "t/tap.h"
#include "wq/mode.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static struct wq_error why;

/* All of them, in the order of their numbers. */
static const struct {
	const char *name;
	struct wq_mode mode;
} modes[] = {
	{ "inline", { .binding = WQ_INLINE } },
	{ "bound", { .binding = WQ_BOUND } },
	{ "local-first", { .binding = WQ_LOCAL_FIRST } },
	{ "unbound:cpu", { WQ_UNBOUND, WQ_SCOPE_CPU, false } },
	{ "unbound:cpu,strict", { WQ_UNBOUND, WQ_SCOPE_CPU, true } },
	{ "unbound:smt", { WQ_UNBOUND, WQ_SCOPE_SMT, false } },
	{ "unbound:smt,strict", { WQ_UNBOUND, WQ_SCOPE_SMT, true } },
	{ "unbound:cache", { WQ_UNBOUND, WQ_SCOPE_CACHE, false } },
	{ "unbound:cache,strict", { WQ_UNBOUND, WQ_SCOPE_CACHE, true } },
	{ "unbound:cache_shard", { WQ_UNBOUND, WQ_SCOPE_CACHE_SHARD, false } },
	{ "unbound:cache_shard,strict",
	  { WQ_UNBOUND, WQ_SCOPE_CACHE_SHARD, true } },
	{ "unbound:numa", { WQ_UNBOUND, WQ_SCOPE_NUMA, false } },
	{ "unbound:numa,strict", { WQ_UNBOUND, WQ_SCOPE_NUMA, true } },
	{ "unbound:system", { WQ_UNBOUND, WQ_SCOPE_SYSTEM, false } },
	{ "unbound:system,strict", { WQ_UNBOUND, WQ_SCOPE_SYSTEM, true } },
};

static bool same(struct wq_mode a, struct wq_mode b)
{
	if (a.binding != b.binding)
		return false;
	return a.binding != WQ_UNBOUND ||
	       (a.scope == b.scope && a.strict == b.strict);
}

static void test_names(void)
{
	struct wq_mode mode;

	is_uint(LEN(modes), WQ_MODES, "these are all modes");
	for (unsigned int i = 0; i < LEN(modes); i++) {
		mode = (struct wq_mode){ .binding = WQ_INLINE };
		ok(wq_mode_parse(modes[i].name, &mode, &why) == 0 &&
			   same(mode, modes[i].mode),
		   "'%s' is read as what it says", modes[i].name);
		is_str(wq_mode_name(wq_mode_index(mode)), modes[i].name,
		       "and printed as that");
		ok(wq_mode_index(mode) == i && same(wq_mode_at(i), mode),
		   "its number is %u, there and back", i);
	}
	is_str(wq_mode_name(WQ_MODES), "?", "past the last there is no name");
}

static void test_short(void)
{
	struct wq_mode mode, full;

	wq_mode_parse("unbound:system", &full, &why);
	ok(wq_mode_parse("unbound", &mode, &why) == 0 && same(mode, full),
	   "unbound alone is scope system");
	wq_mode_parse("unbound:system,strict", &full, &why);
	ok(wq_mode_parse("unbound,strict", &mode, &why) == 0 &&
		   same(mode, full),
	   "with strict as well");
}

static void test_bad(void)
{
	static const char *const bad[] = {
		"",
		"Bound",
		"bound ",
		" bound",
		"bound,strict",
		"inline,strict",
		"local-first:cpu",
		"local_first",
		"unbound:",
		"unbound:,strict",
		"unbound:socket",
		"unbound:cpu,",
		"unbound:cpu,lax",
		"unbound:cpu,strict,strict",
		"unbound:cpu:strict",
		"unbound,cpu",
		"unboundcpu",
	};
	struct wq_mode was = { WQ_UNBOUND, WQ_SCOPE_NUMA, true }, mode = was;

	for (size_t i = 0; i < LEN(bad); i++) {
		char quoted[80];

		snprintf(quoted, sizeof(quoted), "'%s'", bad[i]);
		*why.text = '\0';
		ok(wq_mode_parse(bad[i], &mode, &why) == -EINVAL &&
			   strstr(why.text, quoted),
		   "%s is refused by its name", quoted);
	}
	ok(same(mode, was), "and no mode is given");
	is_int(wq_mode_parse("socket", &mode, NULL), -EINVAL,
	       "a caller need not ask why");
}

/* Of a long name too, which must not push the possible ones out. */
static void test_possible(void)
{
	char name[600];
	struct wq_mode mode;
	bool all = true;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	is_int(wq_mode_parse(name, &mode, &why), -EINVAL,
	       "a name of 599 bytes is refused");
	for (int s = 0; s < WQ_SCOPES; s++)
		all = all && strstr(why.text, wq_scope_name((enum wq_scope)s));
	ok(all && strstr(why.text, "inline") && strstr(why.text, "bound") &&
		   strstr(why.text, "local-first") &&
		   strstr(why.text, "unbound") && strstr(why.text, ",strict"),
	   "and every binding and scope is named as possible") ||
		(diag("said: %s", why.text), 0);
}

static void test_scopes(void)
{
	static const char *const bad[] = { "", "CPU", "cpu ", "cache-shard",
					   "node" };
	bool good = true;

	for (int s = 0; s < WQ_SCOPES; s++)
		good = good &&
		       wq_scope_parse(wq_scope_name((enum wq_scope)s)) == s;
	ok(good, "each scope's name is read as that scope");
	for (size_t i = 0; i < LEN(bad); i++)
		is_int(wq_scope_parse(bad[i]), -EINVAL, "'%s' is no scope",
		       bad[i]);
	is_str(wq_scope_name(WQ_SCOPES), "?", "past the last there is none");
}

int main(void)
{
	plan(3 * WQ_MODES + 32);
	test_names();
	test_short();
	test_bad();
	test_possible();
	test_scopes();
	return done();
}
