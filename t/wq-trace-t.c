/* SPDX-License-Identifier: MIT */
/* time-limit: 120
 *
 * The trace file: what protoc makes of it, that its states are legal, and that
 * none is made up.
 */
#include "t/tap.h"
#include "t/wq_help.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define JOBS 200

static struct wq_pools *pools;
static struct wq *wq;
static struct wq_trace *trace;
static char dir[] = "/tmp/wq-trace-XXXXXX", path[64];
static const char *const classes[] = { "small", "large" };
static const struct wq_trace_names names = { .classes = classes,
					     .nr_classes = 2,
					     .mode = wq_mode_name };
static struct wq_trace_written written;
static struct wq_error why;

static void nothing(struct wq_work *work)
{
	(void)work;
}

static void run_jobs(unsigned int n)
{
	static struct wq_work work;

	for (unsigned int i = 0; i < n; i++) {
		wq_work_init(&work, nothing, i % 2);
		wq_queue(wq, &work);
		wq_flush(wq);
		if (i % 8 == 0)
			wq_help_sleep(1); /* the workers sleep */
	}
}

/* A small reader of protobuf, for what we write. */
struct field {
	unsigned int number;
	uint64_t value;      /* of a varint or fixed64 */
	const uint8_t *data; /* of bytes */
	size_t len;
};

static uint64_t varint(const uint8_t **p, const uint8_t *end)
{
	uint64_t value = 0;

	for (int shift = 0; *p < end && shift < 64; shift += 7) {
		uint8_t byte = *(*p)++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	bail("a varint that does not end");
}

static bool next(const uint8_t **p, const uint8_t *end, struct field *f)
{
	uint64_t tag;

	if (*p >= end)
		return false;
	tag = varint(p, end);
	memset(f, 0, sizeof(*f));
	f->number = (unsigned int)(tag >> 3);
	switch (tag & 7) {
	case 0:
		f->value = varint(p, end);
		return true;
	case 1:
		if (end - *p < 8)
			bail("a fixed64 that does not end");
		memcpy(&f->value, *p, 8);
		*p += 8;
		return true;
	case 2:
		f->len = varint(p, end);
		f->data = *p;
		if ((size_t)(end - *p) < f->len)
			bail("bytes that do not end");
		*p += f->len;
		return true;
	default:
		bail("wire type %u", (unsigned int)(tag & 7));
	}
}

/* Of the message, the field of the number; 0 or empty when it is not there. */
static struct field find(const struct field *in, unsigned int number)
{
	const uint8_t *p = in->data, *end = in->data + in->len;
	struct field f;

	while (next(&p, end, &f))
		if (f.number == number)
			return f;
	memset(&f, 0, sizeof(f));
	return f;
}

/* What the file holds. */
static struct {
	unsigned int packets, begins, ends, queues, wakes, modes, states;
	unsigned int joined;   /* starts whose flow was begun before */
	unsigned int twice;    /* RUNNING after RUNNING of one thread */
	unsigned int backward; /* packets out of order */
	unsigned int woken;    /* RUNNABLE between SLEEP and RUNNING */
	unsigned int names;    /* slices called by their class */
	unsigned int notes;    /* that there are no states */
} seen;

static uint64_t flow[20000];
static size_t flows;

static void see_event(const struct field *event)
{
	struct field type = find(event, 9), name = find(event, 23);
	struct field out = find(event, 47), in = find(event, 48);

	seen.begins += type.value == 1;
	seen.ends += type.value == 2;
	if (out.number && flows < 20000) {
		flow[flows++] = out.value;
		seen.queues++;
	}
	for (size_t i = 0; in.number && i < flows; i++)
		if (flow[i] == in.value) {
			seen.joined++;
			break;
		}
	if (type.value == 1)
		seen.names +=
			name.len == 5 && (!memcmp(name.data, "small", 5) ||
					  !memcmp(name.data, "large", 5));
	if (type.value == 3 && name.len == 4 && !memcmp(name.data, "wake", 4))
		seen.wakes++;
	if (type.value == 3 && name.len > 7 && !memcmp(name.data, "unbound", 7))
		seen.modes++;
	if (name.len > 20 && !memcmp(name.data, "no scheduler states:", 20))
		seen.notes++;
}

static void see_state(const struct field *state)
{
	static struct {
		uint64_t tid, state, before;
	} thread[64];
	uint64_t tid = find(state, 3).value, now = find(state, 4).value;
	size_t i = 0;

	while (i < 63 && thread[i].tid && thread[i].tid != tid)
		i++;
	thread[i].tid = tid;
	seen.states++;
	seen.twice += now == 3 && thread[i].state == 3;
	seen.woken += now == 3 && thread[i].state == 2 && thread[i].before == 4;
	thread[i].before = thread[i].state;
	thread[i].state = now;
}

static void see_file(void)
{
	static uint8_t data[4 << 20];
	FILE *f = fopen(path, "r");
	struct field file = { .data = data }, packet;
	const uint8_t *p = data;
	uint64_t last = 0;

	memset(&seen, 0, sizeof(seen));
	flows = 0;
	if (!f)
		bail("%s is not there", path);
	file.len = fread(data, 1, sizeof(data), f);
	fclose(f);
	while (next(&p, data + file.len, &packet)) {
		struct field at = find(&packet, 8);
		struct field event = find(&packet, 11);
		struct field state = find(&packet, 117);

		seen.packets++;
		if (at.number) {
			seen.backward += at.value < last;
			last = at.value;
		}
		if (event.number)
			see_event(&event);
		if (state.number)
			see_state(&state);
	}
}

static void test_off(void)
{
	run_jobs(10);
	is_int(wq_trace_write(trace, path, &names, &written, &why), 0,
	       "a trace of nothing is written");
	is_uint(written.jobs, 0, "while it is off nothing is recorded");
}

static void test_trace(void)
{
	int code = wq_trace_start(trace, &why);
	struct stat st;

	ok(code >= 0, "recording starts");
	is_int(wq_trace_start(trace, NULL), -EBUSY, "once");
	is_int(wq_trace_write(trace, path, &names, &written, NULL), -EBUSY,
	       "and must stop before it is written");
	run_jobs(JOBS);
	wq_pools_switch(pools, wq_help_mode("unbound"), NULL, &why);
	wq_trace_stop(trace);
	is_int(wq_trace_write(trace, path, &names, &written, &why), 0,
	       "then it is");
	ok(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600,
	   "for its owner only");
	is_uint((unsigned long long)st.st_size, written.bytes,
		"as large as it says");
	see_file();
	is_uint(seen.begins, JOBS, "a slice for each job");
	is_uint(seen.ends, JOBS, "that ends");
	is_uint(seen.names, JOBS, "called by its class");
	is_uint(seen.queues, JOBS, "an instant for each time it was queued");
	is_uint(seen.joined, JOBS, "and a flow from there to its start");
	ok(seen.wakes > 0, "wakes are there");
	is_uint(seen.modes, 1, "and the switch of the mode");
	is_uint(seen.backward, 0, "all in the order of time");
	is_uint(seen.states, written.states, "as many states as it says");
	is_uint(seen.twice, 0, "no thread starts to run while it runs");
	if (code > 0) {
		skip(1, "%s", why.text);
		is_uint(seen.notes, 1, "a note says that there are no states");
		return;
	}
	ok(seen.woken > 0,
	   "between sleep and run a worker is runnable, from "
	   "our wake on (%u times)",
	   seen.woken);
	is_uint(seen.notes, 0, "no note is needed");
}

static void test_protoc(void)
{
	char command[128], line[256];
	unsigned int packets = 0;
	FILE *p;

	snprintf(command, sizeof(command),
		 "protoc --decode_raw <%s 2>/dev/null", path);
	p = popen(command, "r");
	while (p && fgets(line, sizeof(line), p))
		packets += strcmp(line, "1 {\n") == 0;
	if (!p || pclose(p) != 0)
		skip(1, "protoc is not installed");
	else
		is_uint(packets, seen.packets, "protoc reads the same packets");
}

/* Without perf the states are left out, and that is said. */
static void test_no_states(void)
{
	setenv("WQ_TRACE_PERF", "off", 1);
	ok(wq_trace_start(trace, &why) > 0 &&
		   strstr(why.text, "without scheduler states"),
	   "without perf it records, and says what is missing");
	run_jobs(10);
	wq_trace_stop(trace);
	wq_trace_write(trace, path, &names, &written, &why);
	unsetenv("WQ_TRACE_PERF");
	see_file();
	is_uint(seen.states, 0, "no state is made up");
	is_uint(seen.begins, 10, "the jobs are there");
	is_uint(seen.notes, 1, "and a note in the file says why");
	ok(written.no_states != NULL, "as does the caller's copy");
}

static void test_overwrite(void)
{
	struct wq_trace *small;
	struct wq_trace_ring *ring;

	if (wq_trace_new(64, &small) < 0)
		bail("no memory");
	is_int(wq_trace_new(63, &(struct wq_trace *){ 0 }), -EINVAL,
	       "a ring's size is a power of two");
	ring = wq_trace_ring(small, gettid(), "me", false);
	wq_trace_start(small, &why);
	for (uint64_t i = 0; i < 1001; i++) {
		wq_trace_event(ring, WQ_EVENT_START, wq_stamp(), i, 0);
		if (i < 1000)
			wq_trace_event(ring, WQ_EVENT_END, wq_stamp(), i, 0);
	}
	wq_trace_stop(small);
	wq_trace_event(ring, WQ_EVENT_START, wq_stamp(), 5000, 0);
	wq_trace_write(small, path, &names, &written, &why);
	see_file();
	is_uint(written.overwritten, 2001 - 64, "the oldest are overwritten");
	is_uint(seen.begins, 32, "the newest are kept");
	is_uint(seen.ends, seen.begins,
		"an end without its start is left out, a job that still runs "
		"ends with the trace");
	wq_trace_free(small);
}

static void test_bad_path(void)
{
	char bad[100];

	is_int(wq_trace_write(trace, "/dev/full", &names, &written, &why),
	       -ENOSPC, "a full disk is an error");
	ok(access("/dev/full", F_OK) == 0, "a device is not removed");
	is_int(wq_trace_write(trace, dir, &names, &written, &why), -EISDIR,
	       "so is a folder");
	snprintf(bad, sizeof(bad), "%s/none/file", dir);
	is_int(wq_trace_write(trace, bad, &names, &written, &why), -ENOENT,
	       "and one that is not there");
}

int main(void)
{
	struct wq_config config = { .classes = 2, .class_names = classes };

	plan(34);
	if (!mkdtemp(dir))
		bail("no directory");
	snprintf(path, sizeof(path), "%s/trace", dir);
	pools = wq_help_open(&config, "bound", NULL, &wq);
	trace = wq_pools_trace(pools);
	test_off();
	test_trace();
	test_protoc();
	test_no_states();
	test_overwrite();
	test_bad_path();
	wq_help_close(pools, wq);
	unlink(path);
	rmdir(dir);
	return done();
}
