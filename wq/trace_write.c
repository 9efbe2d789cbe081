/* SPDX-License-Identifier: MIT */
/*
 * What the rings hold, as a Perfetto file.
 */
#include "wq/perfetto.h"
#include "wq/trace_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct writer {
	struct wq_trace *trace;
	const struct wq_trace_names *names;
	struct wq_trace_written out;
	struct wq_trace_items items;
	struct wq_perfetto file;
};

/* Numbers of tracks and flows are the whole trace's, and traces may be put
 * together. */
static uint64_t number(uint64_t n)
{
	return (uint64_t)getpid() << 32 | n;
}

static uint64_t process_track(void)
{
	return number(1);
}

static uint64_t thread_track(size_t thread)
{
	return number(2 + thread);
}

static const char *class_name(const struct writer *w, uint64_t class)
{
	const struct wq_trace_names *names = w->names;

	return names && class < names->nr_classes && names->classes[class]
		       ? names->classes[class]
		       : "job";
}

static const char *mode_name(const struct writer *w, uint64_t mode)
{
	const char *name = NULL;

	if (w->names && w->names->mode)
		name = w->names->mode((unsigned int)mode);
	return name ? name : "mode";
}

static void write_start(struct writer *w, const struct wq_trace_item *item)
{
	struct wq_perfetto *p = &w->file;

	wq_perfetto_event(p, item->ns, WQ_PERFETTO_BEGIN,
			  thread_track(item->thread), class_name(w, item->a));
	wq_perfetto_uint(p, "id", item->id);
	if (item->flow) {
		wq_perfetto_flow(p, number(item->flow), true);
		wq_perfetto_uint(
			p, "issue thread",
			(uint64_t)w->items.thread[item->issuer].ring->tid);
	}
	w->out.jobs++;
}

static void write_queue(struct writer *w, const struct wq_trace_item *item)
{
	struct wq_perfetto *p = &w->file;

	wq_perfetto_event(p, item->ns, WQ_PERFETTO_INSTANT,
			  thread_track(item->thread), "queue");
	if (item->flow)
		wq_perfetto_flow(p, number(item->flow), false);
	wq_perfetto_uint(p, "id", item->id);
	wq_perfetto_string(p, "class", class_name(w, item->a));
}

static void write_event(struct writer *w, const struct wq_trace_item *item)
{
	struct wq_perfetto *p = &w->file;
	uint64_t track = thread_track(item->thread);

	switch (item->kind) {
	case WQ_EVENT_QUEUE:
		write_queue(w, item);
		break;
	case WQ_EVENT_START:
		write_start(w, item);
		break;
	case WQ_EVENT_END:
		wq_perfetto_event(p, item->ns, WQ_PERFETTO_END, track, NULL);
		if (item->open)
			wq_perfetto_uint(p, "open", 1);
		break;
	case WQ_EVENT_WAKE:
		wq_perfetto_event(p, item->ns, WQ_PERFETTO_INSTANT, track,
				  "wake");
		wq_perfetto_uint(p, "thread", item->a);
		break;
	default:
		wq_perfetto_event(p, item->ns, WQ_PERFETTO_INSTANT, track,
				  mode_name(w, item->a));
	}
	wq_perfetto_event_end(p);
}

/* The one that has the states of thread @tid, or NULL.  Of two that had the
 * number one after the other only the first: nothing may follow its death. */
static struct wq_trace_thread *thread_of(const struct writer *w, uint64_t tid)
{
	for (size_t i = 0; i < w->items.nr_threads; i++) {
		struct wq_trace_thread *thread = &w->items.thread[i];

		if (thread->ring->states && (uint64_t)thread->ring->tid == tid)
			return thread;
	}
	return NULL;
}

static void write_state(struct writer *w, const struct wq_trace_item *item)
{
	uint64_t tid =
		item->kernel ? (uint64_t)w->items.thread[item->thread].ring->tid
			     : item->a;
	struct wq_trace_thread *thread = thread_of(w, tid);
	enum wq_state to;

	if (!thread)
		return;
	if (item->kernel) {
		thread->cpu = (uint32_t)item->a;
		to = wq_state_switched(thread->state, item->kind);
	} else {
		to = wq_state_woken(thread->state);
	}
	if (to == WQ_STATE_NONE)
		return;
	thread->state = to;
	wq_perfetto_state(&w->file, item->ns, thread->cpu, thread->ring->tid,
			  thread->ring->name, to);
	w->out.states++;
}

static void write_items(struct writer *w)
{
	for (size_t i = 0; i < w->items.nr; i++) {
		const struct wq_trace_item *item = &w->items.item[i];

		if (!item->kernel)
			write_event(w, item);
		if (item->kernel || item->kind == WQ_EVENT_WAKE)
			write_state(w, item);
	}
}

static void write_no_states(struct writer *w)
{
	const char *why = w->trace->no_states;
	uint64_t ns = w->trace->ended.mono;
	char text[sizeof(w->trace->no_states) + 32];

	if (!*why)
		return;
	w->out.no_states = why;
	if (w->items.nr && ns < w->items.item[w->items.nr - 1].ns)
		ns = w->items.item[w->items.nr - 1].ns;
	snprintf(text, sizeof(text), "%s scheduler states: %s",
		 w->out.states ? "not all" : "no", why);
	wq_perfetto_event(&w->file, ns, WQ_PERFETTO_INSTANT, process_track(),
			  text);
	wq_perfetto_event_end(&w->file);
}

static int write_all(struct writer *w, int fd)
{
	wq_perfetto_begin(&w->file, fd);
	wq_perfetto_process(&w->file, process_track(),
			    program_invocation_short_name);
	for (size_t i = 0; i < w->items.nr_threads; i++)
		wq_perfetto_thread(&w->file, thread_track(i), process_track(),
				   w->items.thread[i].ring->tid,
				   w->items.thread[i].ring->name);
	write_items(w);
	write_no_states(w);
	w->out.flows = w->items.flows;
	w->out.overwritten = w->items.overwritten;
	w->out.states_overwritten = w->items.states_overwritten;
	return wq_perfetto_finish(&w->file);
}

static int save(struct writer *w, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct stat st;
	int err;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	/* One that was there may have been for others to read. */
	err = S_ISREG(st.st_mode) && fchmod(fd, 0600) < 0 ? -errno : 0;
	if (!err)
		err = write_all(w, fd);
	if (close(fd) < 0 && !err)
		err = -errno;
	/* Half a trace is none; but a device stays where it is. */
	if (err && S_ISREG(st.st_mode))
		unlink(path);
	w->out.bytes = w->file.bytes;
	return err;
}

/* Return: false while it is recording, or being written already. */
static bool lend(struct wq_trace *trace)
{
	bool free;

	pthread_mutex_lock(&trace->lock);
	free = !(atomic_load(&trace->gen) & 1) && !trace->writing;
	if (free)
		trace->writing = true;
	pthread_mutex_unlock(&trace->lock);
	return free;
}

static void give_back(struct wq_trace *trace)
{
	pthread_mutex_lock(&trace->lock);
	trace->writing = false;
	pthread_mutex_unlock(&trace->lock);
}

int wq_trace_write(struct wq_trace *trace, const char *path,
		   const struct wq_trace_names *names,
		   struct wq_trace_written *out, struct wq_error *err)
{
	struct writer w = { .trace = trace, .names = names };
	int code;

	if (!lend(trace))
		return wq_fail(err, EBUSY,
			       "the trace is still being recorded or written");
	code = wq_trace_items(trace, &w.items);
	if (!code)
		code = save(&w, path);
	give_back(trace);
	if (!code)
		*out = w.out;
	wq_trace_items_free(&w.items);
	return code ? wq_fail(err, -code, "cannot write the trace: %s",
			      strerror(-code))
		    : 0;
}
