/* SPDX-License-Identifier: MIT */
/* time-limit: 120
 *
 * Which CPUs workers run on: in each mode, when CPUs go and come, and with
 * which priority.
 *
 * With WQ_TEST_HOTPLUG=1 in the environment, and as root, the last CPU is
 * taken offline for some seconds; the whole machine notices.
 */
#define WQ_BENCH /* as what it is linked with */
#include "t/tap.h"
#include "t/wq_meas.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY  65534
#define SOON_MS 8000 /* the pools look once a second */
#define BEHIND  20   /* jobs that wait for a CPU while it goes */

static struct wq_pools *pools;
static struct wq *wq;

static bool said_soon(const char *words)
{
	for (unsigned int i = 0; i < SOON_MS / 10 && !wq_help_said(words); i++)
		wq_help_sleep(10);
	return wq_help_said(words);
}

/* The CPUs of the pod of entry @i. */
static cpu_set_t pod_of(enum wq_scope scope, size_t i)
{
	const struct wq_topo *topo = wq_pools_topo(pools);
	cpu_set_t set;

	CPU_ZERO(&set);
	for (size_t k = 0; k < topo->nr; k++)
		if (topo->pod[scope][k] == topo->pod[scope][i])
			CPU_SET(topo->cpu[k].cpu, &set);
	return set;
}

/* Is what a worker of entry @i may run on the pod of @i, by @scope? */
static bool mask_is(size_t i, enum wq_scope scope, bool tell)
{
	int cpu = wq_help_cpu(pools, i);
	cpu_set_t want = pod_of(scope, i);
	char is[80], should[80];
	struct wq_seen seen;

	/* With local-first another may take it from a worker slow to come. */
	for (int n = 0; n < 50 && (!n || atomic_load(&seen.home) != cpu); n++)
		wq_seen_on(wq, &seen, cpu, 0);
	if (CPU_EQUAL(&seen.mask, &want))
		return true;
	if (!tell)
		return false;
	wq_cpulist_format(&seen.mask, is, sizeof(is));
	wq_cpulist_format(&want, should, sizeof(should));
	diag("the worker of cpu %d may run on %s, not %s", cpu, is, should);
	return false;
}

static bool masks_are(const char *mode, enum wq_scope scope)
{
	struct wq_error why;
	bool right = true;

	if (wq_pools_switch(pools, wq_help_mode(mode), NULL, &why) < 0)
		bail("%s", why.text);
	for (size_t i = 0; i < pools->nr; i++)
		right &= mask_is(i, scope, true);
	return right;
}

static void test_masks(void)
{
	char mode[64];

	pools = wq_help_open(NULL, "bound", NULL, &wq);
	ok(masks_are("bound", WQ_SCOPE_CPU),
	   "bound: each worker is pinned to its CPU");
	for (int s = 0; s < WQ_SCOPES; s++) {
		enum wq_scope scope = (enum wq_scope)s;
		struct wq_error why;

		snprintf(mode, sizeof(mode), "unbound:%s,strict",
			 wq_scope_name(scope));
		if (wq_scope_known(pools->topo, scope, &why) < 0)
			skip(1, "%s", why.text);
		else
			ok(masks_are(mode, scope), "%s: by its pod", mode);
	}
	ok(masks_are("unbound:cpu", WQ_SCOPE_SYSTEM),
	   "unbound:cpu, not strict: it may be moved anywhere");
	ok(masks_are("local-first", WQ_SCOPE_CPU), "local-first: pinned again");
	wq_help_close(pools, wq);
}

/* Items that a thread queues run on the CPU it is on. */
static void test_issuer(const char *mode)
{
	unsigned int away = 0;
	struct wq_seen seen;
	cpu_set_t mine;

	sched_getaffinity(0, sizeof(mine), &mine);
	pools = wq_help_open(NULL, mode, NULL, &wq);
	for (size_t i = 0; i < 10 * pools->nr; i++) {
		int cpu = wq_help_cpu(pools, i);

		if (!wq_meas_pin(cpu))
			bail("cannot go to cpu %d", cpu);
		wq_seen_init(&seen, 0, 0);
		wq_queue(wq, &seen.work);
		wq_meas_flush(wq);
		away += atomic_load(&seen.cpu) != cpu;
	}
	sched_setaffinity(0, sizeof(mine), &mine);
	is_uint(away, 0, "%s: items run on the CPU that they are queued on",
		mode);
	wq_help_close(pools, wq);
}

/* As taskset -a does. */
static void mask_all_threads(const cpu_set_t *cpus)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;

	if (!dir)
		bail("no /proc/self/task");
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			sched_setaffinity(atoi(entry->d_name), sizeof(*cpus),
					  cpus);
	closedir(dir);
}

/* What is seen of pools while one of their CPUs goes and comes back. */
struct change {
	bool missed;    /* they say that it is gone */
	bool lost;      /* so do its statistics */
	bool ran;       /* what waited for it has run */
	bool elsewhere; /* and what was queued afterwards, on another CPU */
	bool back;      /* they say that it is back */
	bool found;     /* so do its statistics */
	bool pinned;    /* all workers are where they belong */
	char problem[160];
};

enum { CHECKS_OF_CHANGE = 7 };

static void check_change(const struct change *c, const char *how)
{
	ok(c->missed, "%s: a CPU that goes is missed", how);
	ok(c->lost, "its statistics say so");
	ok(c->ran, "what waited for it runs all the same");
	ok(c->elsewhere, "as does what is queued for it later, elsewhere");
	ok(c->back, "a CPU that comes back is noticed");
	ok(c->found, "its statistics say so");
	ok(c->pinned, "all workers are pinned to their CPUs again");
	if (c->problem[0])
		diag("%s", c->problem);
}

static bool is_lost(size_t i)
{
	struct wq_cpu_stats stats;

	return wq_cpu_stats(pools, i, &stats) == 0 && stats.lost;
}

/* @move takes the last CPU away, and then gives it back. */
static void watch_change(void (*move)(bool away), struct change *c)
{
	struct wq_config config = { .hog_ns = 60000000000ull };
	static struct wq_seen seen[BEHIND];
	static struct wq_hold hold;
	size_t last;
	int gone;

	pools = wq_help_open(&config, "bound", NULL, &wq);
	last = pools->nr - 1;
	gone = wq_help_cpu(pools, last);
	wq_help_hold(&hold, false);
	wq_queue_on(gone, wq, &hold.work);
	wq_help_until(&hold.held, 1);
	for (size_t i = 0; i < BEHIND; i++) {
		wq_seen_init(&seen[i], 0, 0);
		wq_queue_on(gone, wq, &seen[i].work);
	}
	move(true);
	c->missed = said_soon("is offline or outside the cpuset: its pool is "
			      "now unbound");
	c->lost = is_lost(last);
	wq_help_let_go(&hold);
	wq_meas_flush(wq);
	c->ran = true;
	for (size_t i = 0; i < BEHIND; i++)
		c->ran &= atomic_load(&seen[i].ran) == 1;
	wq_seen_on(wq, &seen[0], gone, 0);
	c->elsewhere = atomic_load(&seen[0].cpu) != gone;
	move(false);
	c->back = said_soon("is back: its pool follows the mode again");
	c->found = !is_lost(last);
	/* It says so just before it does so, and does it once more. */
	for (int i = 0; i < SOON_MS / 20 && !c->pinned; i++) {
		c->pinned = true;
		for (size_t k = 0; k < pools->nr; k++)
			c->pinned &=
				mask_is(k, WQ_SCOPE_CPU, i + 1 == SOON_MS / 20);
		if (!c->pinned)
			wq_help_sleep(20);
	}
	wq_help_close(pools, wq);
}

static bool several_cpus(void)
{
	cpu_set_t mine;

	return sched_getaffinity(0, sizeof(mine), &mine) == 0 &&
	       CPU_COUNT(&mine) > 1;
}

static cpu_set_t whole;

static int last_cpu(void)
{
	int last = -1;

	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &whole))
			last = i;
	return last;
}

static void by_mask(bool away)
{
	cpu_set_t rest = whole;

	CPU_CLR(last_cpu(), &rest);
	mask_all_threads(away ? &rest : &whole);
}

static void test_taskset(void)
{
	struct change c = { 0 };

	if (!several_cpus()) {
		skip(CHECKS_OF_CHANGE, "two CPUs are needed");
		return;
	}
	watch_change(by_mask, &c);
	check_change(&c, "taskset -a");
}

/* Return: 0 or -errno. */
static int put(const char *dir, const char *name, const char *text)
{
	char path[256];
	int fd, code = 0;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		code = -errno;
	if (fd >= 0)
		close(fd);
	return code;
}

/* Run @what in a child, for two minutes at most.  Return: whether it ended by
 * itself.  Threads may be there only after the last call. */
static bool in_child(void (*what)(void *), void *shared)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		what(shared);
		_exit(0);
	}
	for (int i = 0; pid > 0 && i < 12000; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) && WEXITSTATUS(status) == 0;
		wq_help_sleep(10);
	}
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	return false;
}

static void *shared_memory(size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		bail("no memory");
	return mem;
}

static char cpuset[64]; /* the folder of our own group */

static void by_cpuset(bool away)
{
	cpu_set_t rest = whole;
	char list[80];

	if (away)
		CPU_CLR(last_cpu(), &rest);
	wq_cpulist_format(&rest, list, sizeof(list));
	if (put(cpuset, "cpuset.cpus", list) < 0)
		_exit(3);
}

static void in_cpuset(void *arg)
{
	struct change *c = arg;
	int code = put(cpuset, "cgroup.procs", "0");

	if (code)
		snprintf(c->problem, sizeof(c->problem),
			 "cannot enter the cpuset: %s", strerror(-code));
	else
		watch_change(by_cpuset, c);
}

/* Return: 0 or -errno. */
static int make_cpuset(void)
{
	char list[80] = "", mems[80] = "";
	const char *root = "/sys/fs/cgroup/cpuset";
	char path[80];
	FILE *f;
	int code;

	snprintf(path, sizeof(path), "%s/cpuset.effective_mems", root);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	if (!fgets(mems, sizeof(mems), f))
		mems[0] = '\0';
	fclose(f);
	snprintf(cpuset, sizeof(cpuset), "%s/wq-affinity-%d", root,
		 (int)getpid());
	if (mkdir(cpuset, 0755) < 0)
		return -errno;
	wq_cpulist_format(&whole, list, sizeof(list));
	code = put(cpuset, "cpuset.mems", mems);
	if (!code)
		code = put(cpuset, "cpuset.cpus", list);
	if (code)
		rmdir(cpuset);
	return code;
}

/* A child in a cpuset of ours, which shrinks. */
static void test_cpuset(void)
{
	struct change *c;
	int code;

	code = several_cpus() ? make_cpuset() : -ENODEV;
	if (code) {
		skip(CHECKS_OF_CHANGE, "no cpuset of our own: %s",
		     strerror(-code));
		return;
	}
	c = shared_memory(sizeof(*c));
	if (!in_child(in_cpuset, c))
		diag("the child in the cpuset did not end well");
	check_change(c, "a cpuset that shrinks");
	/* It may be busy until the child is wholly gone. */
	for (int i = 0; rmdir(cpuset) < 0 && errno == EBUSY && i < 500; i++)
		wq_help_sleep(10);
	munmap(c, sizeof(*c));
}

static void by_unplugging(bool away)
{
	char dir[64];
	int code;

	snprintf(dir, sizeof(dir), "/sys/devices/system/cpu/cpu%d", last_cpu());
	code = put(dir, "online", away ? "0" : "1");
	if (code)
		diag("%s/online: %s", dir, strerror(-code));
}

static void test_hotplug(void)
{
	const char *wanted = getenv("WQ_TEST_HOTPLUG");
	struct change c = { 0 };
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online",
		 last_cpu());
	if (!wanted || strcmp(wanted, "1") != 0) {
		skip(CHECKS_OF_CHANGE, "only with WQ_TEST_HOTPLUG=1, as all "
				       "of the machine notices");
	} else if (!several_cpus() || access(path, W_OK) < 0) {
		skip(CHECKS_OF_CHANGE, "no CPU that can be taken offline");
	} else {
		watch_change(by_unplugging, &c);
		check_change(&c, "unplugging");
	}
}

/* Return: how many workers of @p have another priority. */
static unsigned int others_than(struct wq_pools *p, int nice, int fifo)
{
	struct wq_worker *w;
	struct wq_prio now;
	unsigned int n = 0;

	for (w = atomic_load(&p->all); w; w = w->next)
		n += w->has_thread && (wq_sched_prio_get(w->stat.tid, &now) ||
				       now.nice != nice || now.fifo != fifo);
	return n;
}

/* Have two more workers started. */
static unsigned int bring_spares(void)
{
	static struct wq_hold hold[2];
	int before = pools->nr_workers;

	for (int i = 0; i < 2; i++) {
		wq_help_hold(&hold[i], true);
		wq_queue_on(wq_help_cpu(pools, 0), wq, &hold[i].work);
	}
	for (int i = 0; i < 2; i++)
		wq_help_until(&hold[i].held, 1);
	for (int i = 0; i < 2; i++)
		wq_help_let_go(&hold[i]);
	wq_meas_flush(wq);
	return (unsigned int)(pools->nr_workers - before);
}

static bool may_have_fifo(void)
{
	struct rlimit limit;

	/* Real or effective root has the privilege, in most containers. */
	return wq_sched_prio_get(0, &(struct wq_prio){ 0 }) == 0 &&
	       (geteuid() == 0 || (getrlimit(RLIMIT_RTPRIO, &limit) == 0 &&
				   limit.rlim_cur >= 10));
}

static void test_prio(void)
{
	struct wq_prio prio = { .nice = 5 };
	struct wq_config config = { .prio = prio };
	struct wq_error why;

	pools = wq_help_open(&config, "bound", NULL, &wq);
	is_uint(others_than(pools, 5, 0), 0, "workers begin with nice 5");
	prio.nice = 7;
	is_int(wq_pools_prio(pools, &prio, &why), 0, "nice may be raised");
	is_uint(others_than(pools, 7, 0), 0, "for all workers");
	ok(bring_spares() > 0 && others_than(pools, 7, 0) == 0,
	   "and for those that come later");
	prio = (struct wq_prio){ .nice = 20 };
	is_int(wq_pools_prio(pools, &prio, &why), -EINVAL, "20 is refused");
	ok(strstr(why.text, "nice 20 was asked for; -20 to 19"),
	   "in words that say what is possible");
	is_uint(others_than(pools, 7, 0), 0, "and changes nothing");
	prio = (struct wq_prio){ .fifo = 10 };
	if (!may_have_fifo() || wq_pools_prio(pools, &prio, &why) == -EPERM) {
		skip(2, "fifo is not for us: %s",
		     may_have_fifo() ? why.text : "not privileged");
	} else {
		struct wq *second = wq;

		is_uint(others_than(pools, 7, 10), 0,
			"fifo 10 is read back from all, idle spares too");
		wq_help_close(pools, second);
		config.prio = prio;
		pools = wq_help_open(&config, "bound", NULL, &wq);
		ok(bring_spares() > 0 && others_than(pools, 0, 10) == 0,
		   "and from those that come later");
	}
	wq_help_close(pools, wq);
}

struct refusal {
	int raised;     /* code of what is allowed */
	int nice, fifo; /* codes of what is not */
	int start;      /* code of pools that want to begin with it */
	unsigned int changed[2];
	char nice_words[256], fifo_words[256], start_words[256];
};

/* In a child without privilege. */
static void ask_in_vain(void *arg)
{
	struct rlimit none = { 0, 0 };
	struct refusal *r = arg;
	struct wq_prio prio = { .nice = 5 };
	struct wq_config config = { .handoff_ns = 1 };
	struct wq_pools *more;
	struct wq_error why;

	if (setrlimit(RLIMIT_NICE, &none) < 0 ||
	    setrlimit(RLIMIT_RTPRIO, &none) < 0 ||
	    (geteuid() == 0 &&
	     (setgroups(0, NULL) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)))
		_exit(2);
	pools = wq_help_open(NULL, "bound", NULL, &wq);
	r->raised = wq_pools_prio(pools, &prio, &why);
	prio.nice = -5;
	r->nice = wq_pools_prio(pools, &prio, &why);
	memcpy(r->nice_words, why.text, sizeof(why.text));
	r->changed[0] = others_than(pools, 5, 0);
	prio = (struct wq_prio){ .fifo = 10 };
	r->fifo = wq_pools_prio(pools, &prio, &why);
	memcpy(r->fifo_words, why.text, sizeof(why.text));
	r->changed[1] = others_than(pools, 5, 0);
	wq_help_close(pools, wq);
	config.prio = prio;
	r->start = wq_pools_new(&config, &more, &why);
	memcpy(r->start_words, why.text, sizeof(why.text));
}

static void test_prio_refused(void)
{
	struct refusal *r = shared_memory(sizeof(*r));

	_Static_assert(sizeof(((struct wq_error *)0)->text) <=
			       sizeof(r->nice_words),
		       "words fit");
	ok(in_child(ask_in_vain, r) && r->raised == 0,
	   "without privilege nice may be raised");
	is_int(r->nice, -EPERM, "but not lowered");
	ok(strstr(r->nice_words, "nice -5") &&
		   strstr(r->nice_words, "RLIMIT_NICE allows no lower nice"),
	   "what was asked and what is possible are named");
	is_uint(r->changed[0], 0, "and all workers are as they were");
	is_int(r->fifo, -EPERM, "fifo is not to be had");
	ok(strstr(r->fifo_words, "fifo 10") &&
		   strstr(r->fifo_words, "RLIMIT_RTPRIO no fifo"),
	   "what was asked and what is possible are named");
	is_uint(r->changed[1], 0, "and all workers are as they were");
	is_int(r->start, -EPERM, "nor do pools start with it");
	ok(strstr(r->start_words, "fifo 10"), "in the same words");
	munmap(r, sizeof(*r));
}

int main(void)
{
	sched_getaffinity(0, sizeof(whole), &whole);
	plan(9 + 7 + 9 + 2 + 2 * CHECKS_OF_CHANGE + 9);
	/* Those with children first, while there are no threads. */
	test_prio_refused();
	test_cpuset();
	test_masks();
	test_issuer("bound");
	test_issuer("unbound:cpu,strict");
	test_taskset();
	test_hotplug();
	test_prio();
	return done();
}
