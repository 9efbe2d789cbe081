/* SPDX-License-Identifier: MIT */
/*
 * Priorities: what was set is read back, what may not be had is refused with
 * what was asked and the limits in words, and nothing has changed then.
 */
#include "wq/sched.h"

#include "t/tap.h"

#include <errno.h>
#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEN(array) (sizeof(array) / sizeof((array)[0]))

#define NOBODY 65534

/* Raising a limit takes a privilege that containers lack even as root, so what
 * the C library tells is replaced: 0 for the truth. */
static rlim_t told_nice, told_rtprio;

int getrlimit(__rlimit_resource_t resource, struct rlimit *limit)
{
	rlim_t told = resource == RLIMIT_NICE     ? told_nice
		      : resource == RLIMIT_RTPRIO ? told_rtprio
						  : 0;
	int err = prlimit(0, resource, NULL, limit);

	if (!err && told)
		limit->rlim_cur = told;
	return err;
}

/* What a child says of itself; a child must not make checks. */
struct verdict {
	int code;
	bool same; /* nothing changed */
	struct wq_prio prio;
	struct wq_error err;
};

static bool in_child(void (*what)(struct verdict *), struct verdict *out)
{
	struct verdict verdict = { 0 };
	int ends[2], status;
	ssize_t n;
	pid_t pid;

	if (pipe(ends) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		what(&verdict);
		n = write(ends[1], &verdict, sizeof(verdict));
		_exit(n != sizeof(verdict));
	}
	close(ends[1]);
	n = pid < 0 ? -1 : read(ends[0], out, sizeof(*out));
	close(ends[0]);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 &&
	       n == sizeof(*out);
}

static void as_nobody(void)
{
	struct rlimit none = { 0, 0 };

	if (setrlimit(RLIMIT_NICE, &none) < 0 ||
	    setrlimit(RLIMIT_RTPRIO, &none) < 0)
		_exit(2);
	if (geteuid() == 0 &&
	    (setgroups(0, NULL) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0))
		_exit(2);
}

static bool prio_is(int fifo, int nice)
{
	struct wq_prio now;

	return wq_sched_prio_get(0, &now) == 0 && now.fifo == fifo &&
	       now.nice == nice;
}

static void ask(const struct wq_prio *prio, struct verdict *out)
{
	struct wq_prio before = { .fifo = -1 };

	wq_sched_prio_get(0, &before);
	out->code = wq_sched_prio(0, prio, &out->err);
	wq_sched_prio_get(0, &out->prio);
	out->same =
		before.fifo == out->prio.fifo && before.nice == out->prio.nice;
}

static void nobody_nice(struct verdict *out)
{
	struct wq_prio prio = { .nice = 7 };

	as_nobody();
	if (wq_sched_prio(0, &prio, &out->err) != 0)
		_exit(3);
	prio.nice = -5;
	ask(&prio, out);
}

static void nobody_fifo(struct verdict *out)
{
	struct wq_prio prio = { .fifo = 10 };

	as_nobody();
	ask(&prio, out);
}

static void nobody_some(struct verdict *out)
{
	struct wq_prio prio = { .nice = -15 };

	as_nobody();
	told_nice = 30;
	told_rtprio = 5;
	ask(&prio, out);
}

/* A FIFO thread that root made, whose rights then were dropped: to leave FIFO
 * it may, but not for a nice value that it may not have. */
static void nobody_leaves_fifo(struct verdict *out)
{
	struct wq_prio fifo = { .fifo = 3 }, nice = { .nice = -10 };

	if (wq_sched_prio(0, &fifo, &out->err) != 0)
		_exit(3);
	as_nobody();
	ask(&nice, out);
}

static void root_all(struct verdict *out)
{
	struct wq_prio low = { .nice = 9 }, high = { .nice = -20 };
	struct wq_prio fifo = { .fifo = 42, .nice = 5 };

	out->same = wq_sched_prio(0, &low, &out->err) == 0 && prio_is(0, 9) &&
		    getpriority(PRIO_PROCESS, 0) == 9 &&
		    wq_sched_prio(0, &fifo, &out->err) == 0 && prio_is(42, 9) &&
		    sched_getscheduler(0) == SCHED_FIFO &&
		    wq_sched_prio(0, &high, &out->err) == 0 &&
		    prio_is(0, -20) && sched_getscheduler(0) == SCHED_OTHER;
}

/* Needs a privilege to be cleared, so an unprivileged thread must keep it. */
static void keeps_reset(struct verdict *out)
{
	struct sched_param param = { 0 };
	struct wq_prio prio = { .nice = 3 };

	if (sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &param) <
	    0)
		_exit(4);
	as_nobody();
	out->code = wq_sched_prio(0, &prio, &out->err);
	out->same =
		prio_is(0, 3) &&
		sched_getscheduler(0) == (SCHED_OTHER | SCHED_RESET_ON_FORK);
}

/* Return: whether this process may have any priority. */
static bool privileged(void)
{
	struct sched_param param = { .sched_priority = 42 };
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(geteuid() != 0 || setpriority(PRIO_PROCESS, 0, -20) < 0 ||
		      sched_setscheduler(0, SCHED_FIFO, &param) < 0);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void test_prio(void)
{
	struct verdict v = { 0 };

	if (!privileged()) {
		skip(5, "not privileged to raise priorities");
		return;
	}
	ok(in_child(root_all, &v) && v.same,
	   "root sets nice and fifo, and reads them back");
	memset(&v, 0, sizeof(v));
	ok(in_child(nobody_leaves_fifo, &v) && v.code == -EPERM,
	   "a fifo thread does not get a nice value that it may not have");
	ok(v.same && v.prio.fifo == 3, "and stays fifo: no half of a change");
	memset(&v, 0, sizeof(v));
	ok(in_child(keeps_reset, &v) && v.code == 0,
	   "reset-on-fork does not stand in the way");
	ok(v.same, "and is kept");
}

static void test_prio_refused(void)
{
	struct verdict v = { 0 };

	ok(in_child(nobody_nice, &v) && v.code == -EPERM,
	   "a lower nice is not for everyone");
	ok(strstr(v.err.text, "nice -5") &&
		   strstr(v.err.text, "RLIMIT_NICE allows no lower nice") &&
		   strstr(v.err.text, "CAP_SYS_NICE"),
	   "what was asked and the limit are named");
	ok(v.same && v.prio.nice == 7, "and nothing changed");
	memset(&v, 0, sizeof(v));
	ok(in_child(nobody_fifo, &v) && v.code == -EPERM,
	   "nor is fifo for everyone");
	ok(strstr(v.err.text, "fifo 10") &&
		   strstr(v.err.text, "RLIMIT_RTPRIO no fifo"),
	   "what was asked and the limit are named");
	ok(v.same && v.prio.fifo == 0, "and nothing changed");
	memset(&v, 0, sizeof(v));
	ok(in_child(nobody_some, &v) && v.code == -EPERM && v.same,
	   "a limit above 0 is no different");
	ok(strstr(v.err.text, "nice down to -10") &&
		   strstr(v.err.text, "fifo up to 5"),
	   "and are told as priorities");
}

static void test_prio_range(void)
{
	static const struct wq_prio bad[] = {
		{ .fifo = 100 }, { .fifo = -1 }, { .nice = 20 }, { .nice = -21 }
	};
	struct wq_prio before = { .fifo = -1 }, after = { 0 };
	struct wq_error err;

	wq_sched_prio_get(0, &before);
	for (size_t i = 0; i < LEN(bad); i++) {
		err.text[0] = '\0';
		ok(wq_sched_prio(0, &bad[i], &err) == -EINVAL &&
			   strstr(err.text, "possible"),
		   "fifo %d nice %d is out of range", bad[i].fifo, bad[i].nice);
	}
	ok(wq_sched_prio_get(0, &after) == 0 && before.fifo == after.fifo &&
		   before.nice == after.nice,
	   "and nothing changed");
	is_int(wq_sched_prio(INT32_MAX, &after, NULL), -ESRCH,
	       "a thread that does not exist has no priority");
	is_int(wq_sched_prio_get(INT32_MAX, &after), -ESRCH, "nor gets one");
}

static void test_parse(void)
{
	static const struct {
		const char *text;
		int fifo, nice;
		const char *shown; /* NULL: refused */
	} words[] = {
		{ "5", 0, 5, "nice 5" },
		{ "-20", 0, -20, "nice -20" },
		{ "nice:19", 0, 19, "nice 19" },
		{ "nice:-5", 0, -5, "nice -5" },
		{ "fifo:1", 1, 0, "fifo 1" },
		{ "fifo:99", 99, 0, "fifo 99" },
		{ "0", 0, 0, "nice 0" },
		{ "20", 0, 0, NULL },
		{ "-21", 0, 0, NULL },
		{ "fifo:0", 0, 0, NULL },
		{ "fifo:-3", 0, 0, NULL },
		{ "fifo:100", 0, 0, NULL },
		{ "fifo:", 0, 0, NULL },
		{ "nice:", 0, 0, NULL },
		{ "", 0, 0, NULL },
		{ "-", 0, 0, NULL },
		{ " 5", 0, 0, NULL },
		{ "+5", 0, 0, NULL },
		{ "5x", 0, 0, NULL },
		{ "rr:5", 0, 0, NULL },
		{ "4294967297", 0, 0, NULL },
	};
	struct wq_prio prio;
	struct wq_error err;
	char shown[32];
	int code;

	for (size_t i = 0; i < LEN(words); i++) {
		prio = (struct wq_prio){ .fifo = 77, .nice = 88 };
		err.text[0] = '\0';
		code = wq_prio_parse(words[i].text, &prio, &err);
		if (!words[i].shown) {
			ok(code == -EINVAL && prio.fifo == 77 &&
				   prio.nice == 88 && err.text[0],
			   "'%s' is no priority", words[i].text);
			continue;
		}
		wq_prio_format(&prio, shown, sizeof(shown));
		ok(code == 0 && prio.fifo == words[i].fifo &&
			   prio.nice == words[i].nice &&
			   strcmp(shown, words[i].shown) == 0,
		   "'%s' is %s", words[i].text, words[i].shown);
	}
}

/* A slice needs no privilege, but Linux 6.12. */
static void test_slice(void)
{
	struct wq_prio slice = { .slice_ns = 100000 }, now;
	struct wq_error err;
	char text[64];
	int code = wq_sched_prio(0, &slice, &err);

	if (code) {
		skip(2, "%s", err.text);
	} else {
		wq_sched_prio_get(0, &now);
		is_uint(now.slice_ns, 100000, "a slice is read back");
		slice.slice_ns = 0;
		wq_sched_prio(0, &slice, &err);
		wq_sched_prio_get(0, &now);
		ok(now.slice_ns != 100000, "0 gives the kernel's own back");
	}
	is_int(wq_prio_parse("slice:250", &slice, &err), 0, "slice:250");
	wq_prio_format(&slice, text, sizeof(text));
	is_str(text, "nice 0, slice 250 us", "is so many microseconds");
	is_int(wq_prio_parse("slice:99", &slice, &err), -EINVAL,
	       "99 us are too few");
	ok(strstr(err.text, "100 to 100000"), "in words that say the range");
}

int main(void)
{
	plan(5 + 8 + 7 + 21 + 6);
	test_slice();
	test_prio();
	test_prio_refused();
	test_prio_range();
	test_parse();
	return done();
}
