/* SPDX-License-Identifier: MIT */
#include "wq/mode.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* In the order of their numbers; unbound: lax and strict for each scope. */
static const char *const names[WQ_MODES] = {
	"inline",
	"bound",
	"local-first",
	"unbound:cpu",
	"unbound:cpu,strict",
	"unbound:smt",
	"unbound:smt,strict",
	"unbound:cache",
	"unbound:cache,strict",
	"unbound:cache_shard",
	"unbound:cache_shard,strict",
	"unbound:numa",
	"unbound:numa,strict",
	"unbound:system",
	"unbound:system,strict",
};

unsigned int wq_mode_index(struct wq_mode mode)
{
	if (mode.binding != WQ_UNBOUND)
		return mode.binding;
	return WQ_UNBOUND + 2 * (unsigned int)mode.scope + mode.strict;
}

struct wq_mode wq_mode_at(unsigned int index)
{
	struct wq_mode mode = { .binding = WQ_UNBOUND };

	if (index < WQ_UNBOUND) {
		mode.binding = (enum wq_binding)index;
		return mode;
	}
	mode.scope = (enum wq_scope)((index - WQ_UNBOUND) / 2);
	mode.strict = (index - WQ_UNBOUND) % 2;
	return mode;
}

const char *wq_mode_name(unsigned int index)
{
	return index < WQ_MODES ? names[index] : "?";
}

int wq_mode_parse(const char *text, struct wq_mode *out, struct wq_error *err)
{
	static const struct {
		const char *text;
		const char *full;
	} shorts[] = {
		{ "unbound", "unbound:system" },
		{ "unbound,strict", "unbound:system,strict" },
	};
	const char *full = text;

	for (size_t i = 0; i < sizeof(shorts) / sizeof(shorts[0]); i++)
		if (strcmp(text, shorts[i].text) == 0)
			full = shorts[i].full;
	for (unsigned int i = 0; i < WQ_MODES; i++)
		if (strcmp(full, names[i]) == 0) {
			*out = wq_mode_at(i);
			return 0;
		}
	return wq_fail(err, EINVAL,
		       "mode '%.60s' was asked for; possible are inline, "
		       "bound, local-first and unbound[:SCOPE][,strict] with "
		       "SCOPE cpu, smt, cache, cache_shard, numa or system",
		       text);
}
