/* SPDX-License-Identifier: MIT */
/*
 * Rings of events and the file made of them: what was recorded is there, in
 * order, nested and closed, with an arrow to each job; and a file that cannot
 * be written whole is not left.
 */
#include "t/pftrace.h"
#include "t/tap.h"
#include "wq/clock.h"
#include "wq/perfetto.h"
#include "wq/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[4096], path[4128];

static const char *mode_name(unsigned int index)
{
	return index == 3 ? "three" : NULL;
}

static const char *const classes[] = { "small", "large" };
static const struct wq_trace_names names = { classes, LEN(classes), mode_name };

static struct wq_trace *new_trace(size_t events)
{
	struct wq_trace *trace = NULL;

	if (wq_trace_new(events, &trace))
		bail("no recorder");
	return trace;
}

static struct wq_trace_ring *new_ring(struct wq_trace *trace, pid_t tid,
				      const char *name, bool states)
{
	struct wq_trace_ring *ring = wq_trace_ring(trace, tid, name, states);

	if (!ring)
		bail("no ring");
	return ring;
}

/* Stop, write and read back.  Return: as wq_trace_write(). */
static int finish(struct wq_trace *trace, struct wq_trace_written *out)
{
	struct wq_error err = { "" };
	int code;

	memset(out, 0, sizeof(*out));
	wq_trace_stop(trace);
	code = wq_trace_write(trace, path, &names, out, &err);
	if (code)
		diag("%s", err.text);
	else if (!decode(path) || !in_order())
		code = -EBADMSG;
	return code;
}

static void test_encoder(void)
{
	static const uint8_t want[] = { 0x08, 0x96, 0x01, 0x12, 0x07, 't',
					'e',  's',  't',  'i',  'n',  'g' };
	static const uint8_t most[] = { 0xf8, 0x02, 0xff, 0xff, 0xff, 0xff,
					0xff, 0xff, 0xff, 0xff, 0xff, 0x01 };
	static const uint8_t fixed[] = { 0xf9, 0x02, 8, 7, 6, 5, 4, 3, 2, 1 };
	static const uint8_t inner[] = { 0x1a, 0x03, 0x08, 0x96, 0x01 };
	struct wq_pb pb = { 0 }, outer = { 0 };

	wq_pb_uint(&pb, 1, 150);
	wq_pb_string(&pb, 2, "testing");
	is_mem(pb.data, want, sizeof(want),
	       "the examples of protobuf's documents come out as there");
	pb.len = 0;
	wq_pb_uint(&pb, 47, UINT64_MAX);
	is_mem(pb.data, most, sizeof(most), "the largest number has ten bytes");
	pb.len = 0;
	wq_pb_fixed64(&pb, 47, UINT64_C(0x0102030405060708));
	is_mem(pb.data, fixed, sizeof(fixed),
	       "a fixed number has its low byte first");
	pb.len = 0;
	wq_pb_uint(&pb, 1, 150);
	wq_pb_message(&outer, 3, &pb);
	ok(outer.len == sizeof(inner) && pb.len == 0 &&
		   memcmp(outer.data, inner, sizeof(inner)) == 0,
	   "a message inside comes after its length, and is then empty");
	wq_pb_free(&pb);
	wq_pb_free(&outer);
}

static void test_off(void)
{
	struct wq_trace *trace = new_trace(64), *other = new_trace(64);
	struct wq_trace_ring *ring = new_ring(trace, gettid(), "me", false);
	struct wq_trace_written out;

	wq_trace_event(ring, WQ_EVENT_START, 0, 1, 0);
	wq_trace_event(NULL, WQ_EVENT_START, 0, 1, 0);
	ok(finish(trace, &out) == 0 && !out.jobs && !nr_events,
	   "what was never started has recorded nothing");
	is_uint(nr_tracks, 2, "its file names the process and the thread");
	is_int(wq_trace_start(trace, NULL), 0, "a recorder starts");
	wq_trace_event(ring, WQ_EVENT_START, 0, 2, 0);
	wq_trace_event(NULL, WQ_EVENT_START, 0, 2, 0);
	is_int(wq_trace_start(trace, NULL), -EBUSY, "but not twice");
	is_int(wq_trace_write(trace, path, &names, &out, NULL), -EBUSY,
	       "and is not written while it records");
	wq_trace_stop(trace);
	wq_trace_event(ring, WQ_EVENT_START, 0, 3, 0);
	wq_trace_start(other, NULL);
	wq_trace_event(ring, WQ_EVENT_START, 0, 4, 0);
	ok(finish(trace, &out) == 0 && out.jobs == 1 && find(BEGIN, 2),
	   "what comes after the stop is not recorded, though another records");
	wq_trace_ring_close(ring);
	ok(finish(trace, &out) == 0 && out.jobs == 1,
	   "a thread that ended stays in the trace, which may be written again");
	wq_trace_start(trace, NULL);
	ok(finish(trace, &out) == 0 && !out.jobs && nr_tracks == 1,
	   "the next start forgets all that");
	wq_trace_free(trace);
	wq_trace_free(other);
	wq_trace_free(NULL);
	is_int(wq_trace_new(63, &trace), -EINVAL, "63 events are refused");
}

/* Two threads' rings, filled by hand. */
static struct wq_trace_ring *issuer, *worker;
static uint64_t now, before, after;

static void add(struct wq_trace_ring *ring, enum wq_event event,
		unsigned int us, uint64_t id, uint64_t a)
{
	wq_trace_event(ring, event, now + wq_ns_to_ticks(us * 1000), id, a);
}

static void fill(void)
{
	add(worker, WQ_EVENT_END, 1, 99, 0);   /* began before */
	add(issuer, WQ_EVENT_QUEUE, 10, 1, 0); /* the usual */
	add(worker, WQ_EVENT_START, 20, 1, 0);
	add(worker, WQ_EVENT_END, 30, 1, 0);
	add(worker, WQ_EVENT_START, 40, 2, 1); /* stamped late, and nested */
	add(issuer, WQ_EVENT_QUEUE, 45, 2, 1);
	add(worker, WQ_EVENT_START, 50, 3, 7); /* not queued, no class */
	add(worker, WQ_EVENT_END, 50, 3, 0);
	add(worker, WQ_EVENT_END, 39, 2, 0);   /* another CPU's clock */
	add(issuer, WQ_EVENT_QUEUE, 60, 1, 0); /* the number again */
	add(worker, WQ_EVENT_START, 70, 1, 0);
	add(worker, WQ_EVENT_START, 71, 0, 0); /* never ends itself */
	add(worker, WQ_EVENT_END, 72, 1, 0);
	add(worker, WQ_EVENT_START, 73, 1, 0); /* again, not queued */
	add(worker, WQ_EVENT_END, 74, 1, 0);
	add(issuer, WQ_EVENT_QUEUE, 80, 4, 0); /* not started */
	add(issuer, WQ_EVENT_QUEUE, 81, 0, 0); /* no number, no arrow */
	add(issuer, WQ_EVENT_WAKE, 82, 4, 4242);
	add(issuer, WQ_EVENT_MODE, 83, 0, 3);
	add(issuer, WQ_EVENT_MODE, 84, 0, 4);
	add(worker, WQ_EVENT_START, 90, 5, 0); /* still runs */
}

static void test_arrows(void)
{
	const struct packet *start, *queue;
	unsigned int from = 0, to = 0, same = 0;

	for (size_t i = 0; i < nr_packets; i++) {
		from += packets[i].flow != 0;
		to += packets[i].last_flow != 0;
		for (size_t j = 0; j < i; j++)
			same += packets[j].flow &&
				packets[j].flow == packets[i].last_flow &&
				packets[j].id == packets[i].id;
	}
	ok(from == 3 && to == 3 && same == 3,
	   "each queued job that starts has an arrow of its own to its start");
	start = find(BEGIN, 2);
	queue = find(INSTANT, 2);
	ok(start && queue && queue < start && queue->ns == start->ns &&
		   queue->flow == start->last_flow,
	   "a queueing stamped after its start is shown at the start");
	start = find(BEGIN, 1);
	queue = find(INSTANT, 1);
	ok(start && start->issuer == 1001 && queue &&
		   queue->track != start->track,
	   "a slice says which thread queued it, on whose track that is");
	start = find(BEGIN, 3);
	ok(start && !start->issuer && !start->last_flow,
	   "and nothing where that is not known");
}

static void test_jobs(void)
{
	struct wq_trace *trace = new_trace(64);
	struct timespec ms20 = { .tv_nsec = 20000000 };
	uint64_t mono0 = wq_clock.mono0;
	struct wq_trace_written out;
	unsigned int open = 0;
	const struct packet *p;

	issuer = new_ring(trace, 1001, "issuer", false);
	worker = new_ring(trace, 1002, "worker", false);
	wq_clock.mono0 += 7000000; /* as if the two had drifted apart */
	wq_trace_start(trace, NULL);
	before = wq_mono_ns();
	now = wq_stamp();
	after = wq_mono_ns();
	fill();
	nanosleep(&ms20, NULL);
	is_int(finish(trace, &out), 0,
	       "a trace is in order, nested and closed");
	wq_clock.mono0 = mono0;
	p = find(BEGIN, 1);
	/* It is at 20 us; and 20 us for the looks at two clocks. */
	ok(p && p->ns >= before && p->ns <= after + 40000,
	   "times are CLOCK_MONOTONIC, however old the first look at it is");
	ok(out.jobs == 7 && out.flows == 3 && !out.overwritten &&
		   count(BEGIN, NULL) == 7 && count(END, NULL) == 7,
	   "it counts what it has");
	ok(!find(END, 99) && count(BEGIN, "small") == 5 &&
		   count(BEGIN, "large") == 1 && count(BEGIN, "job") == 1,
	   "slices are called by class; an end without its start is left out");
	test_arrows();
	p = &packets[nr_packets - 1];
	ok(p->type == END && p->open && p->ns + 1000 >= before + 20000000,
	   "a job that still runs is ended at the stop, and marked open");
	for (size_t i = 0; i < nr_packets; i++)
		open += packets[i].open != 0;
	is_uint(open, 2, "as is one whose end is missing in another job");
	ok(count(INSTANT, "wake") == 1 && count(INSTANT, "three") == 1 &&
		   count(INSTANT, "mode") == 1,
	   "wakes and changes of mode are there");
	wq_trace_free(trace);
}

static void test_overwrite(void)
{
	struct wq_trace *trace = new_trace(64);
	struct wq_trace_written out;
	struct wq_trace_ring *ring;
	bool newest = true;

	ring = new_ring(trace, 1001, "worker", false);
	wq_trace_start(trace, NULL);
	for (unsigned int i = 0; i < 1000; i++) {
		wq_trace_event(ring, WQ_EVENT_START, 0, i + 1, 0);
		wq_trace_event(ring, WQ_EVENT_END, 0, i + 1, 0);
	}
	ok(finish(trace, &out) == 0 && out.overwritten == 2000 - 64 &&
		   out.jobs == 32,
	   "a full ring forgets the oldest, and says how many");
	for (unsigned int i = 1000; i > 1000 - 32; i--)
		newest = newest && find(BEGIN, i);
	ok(newest, "the newest are there");
	wq_trace_free(trace);
}

/* --- the file --- */

static void fails(struct wq_trace *trace, const char *where, int want,
		  const char *name)
{
	struct wq_trace_written out = { .jobs = 77 };
	struct wq_error err = { "" };
	int code = wq_trace_write(trace, where, &names, &out, &err);

	ok(code == want && out.jobs == 77 && *err.text, "%s", name);
	if (code != want)
		diag("got %d", code);
}

static void test_full(struct wq_trace *trace)
{
	struct wq_trace_written out;
	struct rlimit was, small;
	struct stat st;
	int code;

	getrlimit(RLIMIT_FSIZE, &was);
	small = was;
	small.rlim_cur = 1000;
	signal(SIGXFSZ, SIG_IGN);
	/* What we print may go into a file as well. */
	setrlimit(RLIMIT_FSIZE, &small);
	code = wq_trace_write(trace, path, &names, &out, NULL);
	setrlimit(RLIMIT_FSIZE, &was);
	is_int(code, -EFBIG, "a file that cannot be finished is an error");
	ok(stat(path, &st) < 0 && errno == ENOENT, "and is not left behind");
}

static void test_file(void)
{
	struct wq_trace *trace = new_trace(64);
	struct wq_trace_ring *ring = new_ring(trace, 1001, "worker", false);
	struct wq_trace_written out;
	struct stat st;

	wq_trace_start(trace, NULL);
	for (unsigned int i = 0; i < 100; i++)
		wq_trace_event(ring, WQ_EVENT_QUEUE, 0, i + 1, 0);
	chmod(path, 0644);
	ok(finish(trace, &out) == 0 && stat(path, &st) == 0 &&
		   (st.st_mode & 07777) == 0600,
	   "the file is its owner's alone, though it was there before");
	is_uint(out.bytes, (unsigned long long)st.st_size,
		"it is as long as we are told");
	test_full(trace);
	fails(trace, dir, -EISDIR, "a directory is not written");
	fails(trace, "/dev/full", -ENOSPC, "a full disk is an error");
	ok(stat("/dev/full", &st) == 0, "a device is not removed");
	ok(wq_trace_write(trace, path, NULL, &out, NULL) == 0 &&
		   stat(path, &st) == 0 && (st.st_mode & 07777) == 0600 &&
		   decode(path),
	   "a new file is its owner's alone, and names are optional");
	wq_trace_free(trace);
}

/* Packets and states as protoc sees them, or false if it sees no message. */
static bool protoc(unsigned int *seen, unsigned int *events)
{
	char command[4200], line[512];
	FILE *pipe;

	*seen = *events = 0;
	snprintf(command, sizeof(command), "protoc --decode_raw <'%s'", path);
	pipe = popen(command, "r");
	if (!pipe)
		return false;
	while (fgets(line, sizeof(line), pipe)) {
		*seen += strcmp(line, "1 {\n") == 0;
		*events += strcmp(line, "  11 {\n") == 0;
	}
	return pclose(pipe) == 0;
}

static void test_protoc(void)
{
	struct wq_trace *trace = new_trace(128);
	struct wq_trace_written out;
	unsigned int seen, events;

	if (system("protoc --version >/dev/null 2>&1") != 0) {
		skip(1, "no protoc here");
		wq_trace_free(trace);
		return;
	}
	issuer = new_ring(trace, 1001, "issuer", false);
	worker = new_ring(trace, 1002, "worker", false);
	wq_trace_start(trace, NULL);
	now = wq_stamp();
	fill();
	ok(finish(trace, &out) == 0 && protoc(&seen, &events) &&
		   seen == nr_packets && events == nr_events && events == 22,
	   "protoc reads the file as we do");
	wq_trace_free(trace);
}

/* --- all at once --- */

static struct wq_trace *shared;
static _Atomic unsigned int turn; /* 0: the end */

/* Threads come and go as well: a new ring each turn. */
static void *record(void *arg)
{
	struct wq_trace_ring *ring = NULL;
	unsigned int was = 0, is;
	uint64_t *id = arg;

	while ((is = atomic_load(&turn))) {
		if (is != was) {
			wq_trace_ring_close(ring);
			ring = new_ring(shared, gettid(), "some", is % 2);
			was = is;
		}
		wq_trace_event(ring, WQ_EVENT_QUEUE, 0, ++*id, 0);
		wq_trace_event(ring, WQ_EVENT_START, wq_stamp(), *id, 1);
		wq_trace_event(ring, WQ_EVENT_WAKE, 0, *id, 1);
		wq_trace_event(ring, WQ_EVENT_END, 0, *id, 0);
		if (*id % 64 == 0)
			sched_yield();
	}
	wq_trace_ring_close(ring);
	return NULL;
}

static bool one_turn(uint64_t *flows)
{
	struct timespec ms = { .tv_nsec = 1000000 };
	struct wq_trace_written out;

	if (wq_trace_start(shared, NULL) < 0)
		return false;
	nanosleep(&ms, NULL);
	atomic_fetch_add(&turn, 1);
	nanosleep(&ms, NULL);
	if (finish(shared, &out))
		return false;
	*flows += out.flows;
	return out.jobs == count(BEGIN, "large") &&
	       out.jobs == count(END, NULL) && out.flows <= out.jobs;
}

static void test_threads(void)
{
	uint64_t id[3] = { UINT64_C(1) << 40, UINT64_C(2) << 40,
			   UINT64_C(3) << 40 };
	uint64_t flows = 0;
	pthread_t thread[3];
	bool good = true;

	shared = new_trace(64);
	atomic_store(&turn, 1);
	for (size_t i = 0; i < LEN(thread); i++)
		if (pthread_create(&thread[i], NULL, record, &id[i]))
			bail("no thread");
	for (unsigned int i = 0; i < 40 && good; i++)
		good = one_turn(&flows);
	atomic_store(&turn, 0);
	for (size_t i = 0; i < LEN(thread); i++)
		pthread_join(thread[i], NULL);
	ok(good && flows, "threads may record, come and go as a trace is made");
	wq_trace_free(shared);
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");

	plan(36);
	snprintf(dir, sizeof(dir), "%s/wq-rings.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		bail("no directory");
	snprintf(path, sizeof(path), "%s/trace", dir);
	test_encoder();
	test_off();
	test_jobs();
	test_overwrite();
	test_file();
	test_protoc();
	test_threads();
	unlink(path);
	rmdir(dir);
	return done();
}
