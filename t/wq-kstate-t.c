/* SPDX-License-Identifier: MIT */
/*
 * Scheduler states in traces: they follow each other as they may, a thread
 * that we wake is runnable before it runs, one that sleeps by itself is not,
 * and where the kernel does not tell there are none and the file says why.
 */
#include "t/pftrace.h"
#include "t/tap.h"
#include "wq/clock.h"
#include "wq/kstate.h"
#include "wq/trace.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 20, NAPS = 5 };

static char dir[4096], path[4128];
static struct wq_trace *trace;

static const struct {
	enum wq_state was;
	enum wq_switch_kind kind;
	enum wq_state want;
} switches[] = {
	{ WQ_STATE_NONE, WQ_SWITCH_IN, WQ_STATE_RUNNING },
	{ WQ_STATE_NONE, WQ_SWITCH_SLEEP, WQ_STATE_SLEEP },
	{ WQ_STATE_NONE, WQ_SWITCH_PREEMPT, WQ_STATE_RUNNABLE },
	{ WQ_STATE_RUNNING, WQ_SWITCH_IN, WQ_STATE_NONE },
	{ WQ_STATE_RUNNING, WQ_SWITCH_SLEEP, WQ_STATE_SLEEP },
	{ WQ_STATE_RUNNING, WQ_SWITCH_PREEMPT, WQ_STATE_RUNNABLE },
	{ WQ_STATE_RUNNING, WQ_SWITCH_EXIT, WQ_STATE_DEAD },
	{ WQ_STATE_SLEEP, WQ_SWITCH_IN, WQ_STATE_RUNNING },
	{ WQ_STATE_SLEEP, WQ_SWITCH_SLEEP, WQ_STATE_NONE },
	{ WQ_STATE_RUNNABLE, WQ_SWITCH_IN, WQ_STATE_RUNNING },
	{ WQ_STATE_DEAD, WQ_SWITCH_IN, WQ_STATE_NONE },
	{ WQ_STATE_DEAD, WQ_SWITCH_EXIT, WQ_STATE_NONE },
};

static void test_rules(void)
{
	bool good = true;

	for (size_t i = 0; i < LEN(switches); i++)
		good = good &&
		       wq_state_switched(switches[i].was, switches[i].kind) ==
			       switches[i].want;
	ok(good, "a switch begins a state, or none where it is that already");
	ok(wq_state_woken(WQ_STATE_SLEEP) == WQ_STATE_RUNNABLE,
	   "a wake makes a thread that sleeps runnable");
	ok(wq_state_woken(WQ_STATE_RUNNING) == WQ_STATE_NONE &&
		   wq_state_woken(WQ_STATE_RUNNABLE) == WQ_STATE_NONE &&
		   wq_state_woken(WQ_STATE_DEAD) == WQ_STATE_NONE &&
		   wq_state_woken(WQ_STATE_NONE) == WQ_STATE_NONE,
	   "and changes nothing of any other");
}

/* --- threads to look at --- */

static struct wq_trace_ring *new_ring(const char *name, bool states)
{
	struct wq_trace_ring *ring =
		wq_trace_ring(trace, gettid(), name, states);

	if (!ring)
		bail("no ring");
	return ring;
}

/* A line of /proc/self/task/TID/status, as a number. */
static long proc_status(pid_t tid, const char *key)
{
	char name[64], line[256];
	long value = -1;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/self/task/%d/status", (int)tid);
	file = fopen(name, "r");
	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, key, strlen(key)) == 0)
			value = strtol(line + strlen(key), NULL, 10);
	if (file)
		fclose(file);
	return value;
}

static void nap(void)
{
	struct timespec ms = { .tv_nsec = 1000000 };

	nanosleep(&ms, NULL);
}

static struct {
	sem_t go;
	_Atomic long slept; /* times off the CPU, when it was last on */
	_Atomic bool last;
	_Atomic pid_t tid;
} sleeper;

#define SLEPT "voluntary_ctxt_switches:"

/* Sleep until woken, ROUNDS times and one; then some naps without a wake. */
static void *sleep_and_wake(void *unused)
{
	struct wq_trace_ring *ring = new_ring("sleeper", true);

	(void)unused;
	atomic_store(&sleeper.tid, gettid());
	while (!atomic_load(&sleeper.last)) {
		atomic_store(&sleeper.slept, proc_status(gettid(), SLEPT));
		while (sem_wait(&sleeper.go) < 0)
			;
	}
	for (unsigned int i = 0; i < NAPS; i++)
		nap();
	wq_trace_ring_close(ring);
	return NULL;
}

/* Until it is off the CPU, on its way to sleep: the kernel counts that in the
 * switch itself, just before its record.  Return: false after 10 s. */
static bool wait_asleep(void)
{
	for (unsigned int i = 0; i < 10000; i++) {
		nap();
		if (atomic_load(&sleeper.slept) < 0 ||
		    proc_status(sleeper.tid, SLEPT) <=
			    atomic_load(&sleeper.slept))
			continue;
		nap();
		return true;
	}
	return false;
}

/* Return: false when the thread did not come to rest. */
static bool wake_rounds(struct wq_trace_ring *ring)
{
	bool good = true;

	for (unsigned int i = 0; i <= ROUNDS && good; i++) {
		good = wait_asleep();
		atomic_store(&sleeper.slept, -1);
		atomic_store(&sleeper.last, i == ROUNDS);
		/* The first is without a stamp. */
		if (i)
			wq_trace_event(ring, WQ_EVENT_WAKE, 0, 0,
				       (uint64_t)sleeper.tid);
		sem_post(&sleeper.go);
	}
	return good;
}

static _Atomic pid_t spinners[2];
static _Atomic bool spun;

/* On one CPU, so that each is preempted by the other. */
static void *spin(void *arg)
{
	_Atomic pid_t *tid = arg;
	struct wq_trace_ring *ring = new_ring("spinner", true);
	cpu_set_t all, one;
	int cpu = 0;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof(all), &all) == 0) {
		while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &all))
			cpu++;
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
	}
	atomic_store(tid, gettid());
	while (!atomic_load(&spun))
		;
	wq_trace_ring_close(ring);
	return NULL;
}

/* Return: whether both were preempted within 20 s. */
static bool spin_both(void)
{
	pthread_t thread[2];
	bool good = false;

	for (size_t i = 0; i < 2; i++)
		if (pthread_create(&thread[i], NULL, spin, &spinners[i]))
			bail("no thread");
	for (unsigned int n = 0; n < 20000 && !good; n++) {
		nap();
		good = true;
		for (size_t i = 0; i < 2; i++)
			good = good && spinners[i] &&
			       proc_status(spinners[i],
					   "nonvoluntary_ctxt_switches:") > 2;
	}
	atomic_store(&spun, true);
	for (size_t i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	return good;
}

/* --- what is in the file --- */

/* How often states follow each other so in thread @tid; 0 is any, or none. */
static unsigned int follow(pid_t tid, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t was[2] = { 0, 0 };
	unsigned int n = 0;

	for (size_t i = 0; i < nr_packets; i++) {
		const struct packet *p = &packets[i];

		if (p->kind != STATE || p->tid != (uint64_t)tid)
			continue;
		n += (!a || was[0] == a) && was[1] == b && p->state == c;
		was[0] = was[1];
		was[1] = p->state;
	}
	return n;
}

static bool same_twice(pid_t tid)
{
	return follow(tid, 0, WQ_STATE_RUNNING, WQ_STATE_RUNNING) ||
	       follow(tid, 0, WQ_STATE_RUNNABLE, WQ_STATE_RUNNABLE) ||
	       follow(tid, 0, WQ_STATE_SLEEP, WQ_STATE_SLEEP) ||
	       follow(tid, 0, WQ_STATE_RUNNABLE, WQ_STATE_SLEEP) ||
	       follow(tid, 0, WQ_STATE_DEAD, WQ_STATE_RUNNING) ||
	       follow(tid, 0, WQ_STATE_DEAD, WQ_STATE_SLEEP) ||
	       follow(tid, 0, WQ_STATE_DEAD, WQ_STATE_DEAD);
}

/* Return: whether a CPU runs one of our threads at a time. */
static bool one_each(void)
{
	uint64_t on[1024] = { 0 };

	for (size_t i = 0; i < nr_packets; i++) {
		const struct packet *p = &packets[i];

		if (p->kind != STATE || p->cpu >= LEN(on))
			continue;
		if (p->state != WQ_STATE_RUNNING && on[p->cpu] == p->tid)
			on[p->cpu] = 0;
		if (p->state != WQ_STATE_RUNNING)
			continue;
		if (on[p->cpu])
			return false;
		on[p->cpu] = p->tid;
	}
	return true;
}

static bool named(const char *begins)
{
	for (size_t i = 0; i < nr_packets; i++)
		if (packets[i].type == INSTANT &&
		    strncmp(packets[i].name, begins, strlen(begins)) == 0)
			return true;
	return false;
}

static int finish(struct wq_trace_written *out)
{
	struct wq_error err = { "" };
	uint64_t stopped;
	int code;

	memset(out, 0, sizeof(*out));
	wq_trace_stop(trace);
	stopped = wq_mono_ns();
	nap();
	code = wq_trace_write(trace, path, NULL, out, &err);
	if (code)
		diag("%s", err.text);
	else if (!decode(path) || !in_order())
		code = -EBADMSG;
	/* The nap is not recorded. */
	for (size_t i = 0; i < nr_packets && !code; i++)
		if (packets[i].kind == STATE && packets[i].ns > stopped)
			code = -ERANGE;
	return code;
}

static void test_states(void)
{
	struct wq_trace_written out;
	pid_t tid = sleeper.tid;

	ok(finish(&out) == 0 && out.states == nr_states && nr_states &&
		   !out.no_states && !out.states_overwritten,
	   "states are in the file, and counted");
	ok(!same_twice(tid) && !same_twice(spinners[0]) &&
		   !same_twice(spinners[1]),
	   "no state follows itself, and none follows death");
	ok(one_each(), "a CPU runs one thread at a time");
	is_uint(follow(tid, WQ_STATE_SLEEP, WQ_STATE_RUNNABLE,
		       WQ_STATE_RUNNING),
		ROUNDS, "a thread that we wake is runnable before it runs");
	is_uint(follow(tid, 0, WQ_STATE_SLEEP, WQ_STATE_RUNNABLE), ROUNDS,
		"and runnable out of sleep only then");
	ok(follow(tid, 0, WQ_STATE_SLEEP, WQ_STATE_RUNNING) >= NAPS,
	   "one that wakes by itself has no such time");
	for (size_t i = 0; i < 2; i++)
		ok(follow(spinners[i], WQ_STATE_RUNNING, WQ_STATE_RUNNABLE,
			  WQ_STATE_RUNNING) > 0,
		   "a thread that is preempted is runnable");
	is_uint(follow(tid, 0, WQ_STATE_RUNNING, WQ_STATE_DEAD), 1,
		"a thread that ends is dead");
}

/* A small ring is full after 8192 records. */
static void test_overwritten(void)
{
	struct wq_trace_ring *ring;
	struct wq_trace_written out;

	if (wq_trace_start(trace, NULL) < 0)
		bail("not started");
	ring = new_ring("many", true);
	for (unsigned int i = 0; i < 6000; i++) {
		struct timespec ns = { .tv_nsec = 1 };

		nanosleep(&ns, NULL);
	}
	ok(finish(&out) == 0 && out.states_overwritten > 0,
	   "more switches than there is room for are counted");
	ok(nr_states > 500 && !same_twice(gettid()) &&
		   packets[nr_packets - 1].state == WQ_STATE_RUNNING,
	   "the newest are there, and nothing is made up for the others");
	wq_trace_ring_close(ring);
}

static void test_real(void)
{
	struct wq_error err = { "" };
	struct wq_trace_ring *ring;
	pthread_t thread;

	ring = new_ring("waker", false);
	sem_init(&sleeper.go, 0, 0);
	atomic_store(&sleeper.slept, -1);
	if (pthread_create(&thread, NULL, sleep_and_wake, NULL))
		bail("no thread");
	while (!atomic_load(&sleeper.tid))
		nap();
	if (wq_trace_start(trace, &err) == 1) {
		skip(11, "%s", err.text);
		wake_rounds(ring);
		pthread_join(thread, NULL);
		wq_trace_stop(trace);
		return;
	}
	if (!wake_rounds(ring))
		bail("a thread did not come to sleep");
	pthread_join(thread, NULL);
	if (!spin_both())
		bail("a thread was not preempted");
	test_states();
	wq_trace_ring_close(ring);
	test_overwritten();
}

/* --- no perf --- */

enum { NOTED = 0, WRONG = 1, CANNOT = 2 };

/* Record where perf is refused.  Return: whether all is as it should be. */
static int record_refused(const char *why)
{
	struct wq_trace_written out;
	struct wq_error err = { "" };
	char note[200];

	if (wq_trace_start(trace, &err) != 1 || !strstr(err.text, why))
		return WRONG;
	snprintf(note, sizeof(note), "no scheduler states: %s", why);
	if (finish(&out) || !out.no_states || out.states || nr_states)
		return WRONG;
	return strstr(out.no_states, why) && named(note) ? NOTED : WRONG;
}

/* In a process of its own, as the filter stays. */
static int record_filtered(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { LEN(code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
		return CANNOT;
	return record_refused("perf_event_open: Operation not permitted");
}

static void test_filtered(void)
{
	int status = -1;
	pid_t child = fork();

	if (child < 0)
		bail("no process");
	if (!child)
		_exit(record_filtered());
	waitpid(child, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT)
		skip(1, "seccomp is not to be had");
	else
		ok(WIFEXITED(status) && WEXITSTATUS(status) == NOTED,
		   "a kernel that refuses is in the file and in what is said");
}

static void test_refused(void)
{
	struct wq_trace_ring *ring = new_ring("refused", true);

	setenv("WQ_TRACE_PERF", "off", 1);
	ok(record_refused("perf_event_open: Permission denied") == NOTED,
	   "WQ_TRACE_PERF=off is as if the kernel refused");
	unsetenv("WQ_TRACE_PERF");
	test_filtered();
	wq_trace_ring_close(ring);
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");

	plan(16);
	snprintf(dir, sizeof(dir), "%s/wq-kstate.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		bail("no directory");
	snprintf(path, sizeof(path), "%s/trace", dir);
	if (wq_trace_new(64, &trace))
		bail("no recorder");
	test_rules();
	test_real();
	test_refused();
	wq_trace_free(trace);
	unlink(path);
	rmdir(dir);
	return done();
}
