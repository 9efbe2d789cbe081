/* SPDX-License-Identifier: MIT */
/*
 * wq/perfetto.h - private: packets of a Perfetto trace, into a file.
 *
 * A trace is a protobuf message: fields one after the other, each its number
 * and wire type as a varint, then a varint, eight bytes, or a length and bytes.
 * An inner message is built apart, as its length comes before it.
 */
#ifndef WQ_PERFETTO_H
#define WQ_PERFETTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* --- protobuf --- */

/** struct wq_pb - a message on its way; zero it first
 * @failed: memory ran out; what follows is not added */
struct wq_pb {
	uint8_t *data;
	size_t len;
	size_t room;
	bool failed;
};

void wq_pb_uint(struct wq_pb *pb, unsigned int field, uint64_t value);
void wq_pb_fixed64(struct wq_pb *pb, unsigned int field, uint64_t value);
void wq_pb_string(struct wq_pb *pb, unsigned int field, const char *text);
/** wq_pb_message() - add @inner as a field, and empty it for its next use */
void wq_pb_message(struct wq_pb *pb, unsigned int field, struct wq_pb *inner);
void wq_pb_free(struct wq_pb *pb);

/* --- packets --- */

/** struct wq_perfetto - a trace on its way into @fd
 * @error: the first that happened, negative; nothing is written after it
 * @bytes: written so far */
struct wq_perfetto {
	int fd;
	int error;
	uint64_t bytes;
	struct wq_pb file, packet, inner, leaf;
};

enum wq_perfetto_type {
	WQ_PERFETTO_BEGIN = 1,
	WQ_PERFETTO_END,
	WQ_PERFETTO_INSTANT,
};

/** wq_perfetto_begin() - with what our times mean: CLOCK_MONOTONIC, ns */
void wq_perfetto_begin(struct wq_perfetto *p, int fd);
/** wq_perfetto_finish() - Return: 0, or the first error */
int wq_perfetto_finish(struct wq_perfetto *p);

/** wq_perfetto_process() - the track @uuid is this process's */
void wq_perfetto_process(struct wq_perfetto *p, uint64_t uuid,
			 const char *name);
/** wq_perfetto_thread() - @uuid is a thread's, under the process's @parent */
void wq_perfetto_thread(struct wq_perfetto *p, uint64_t uuid, uint64_t parent,
			pid_t tid, const char *name);

/** wq_perfetto_event() - something on a track; what belongs to it follows, and
 * wq_perfetto_event_end().  @name: NULL for an end */
void wq_perfetto_event(struct wq_perfetto *p, uint64_t ns,
		       enum wq_perfetto_type type, uint64_t uuid,
		       const char *name);
/** wq_perfetto_flow() - an arrow begins here, or ends if @last */
void wq_perfetto_flow(struct wq_perfetto *p, uint64_t flow, bool last);
void wq_perfetto_uint(struct wq_perfetto *p, const char *name, uint64_t value);
void wq_perfetto_string(struct wq_perfetto *p, const char *name,
			const char *value);
void wq_perfetto_event_end(struct wq_perfetto *p);

/** wq_perfetto_state() - the thread @tid, @comm, is in @state from @ns on
 * @cpu: where it runs, or ran last */
void wq_perfetto_state(struct wq_perfetto *p, uint64_t ns, uint32_t cpu,
		       pid_t tid, const char *comm, unsigned int state);

#endif /* WQ_PERFETTO_H */
