/* SPDX-License-Identifier: MIT */
#include "wq/perfetto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WIRE_VARINT, WIRE_64, WIRE_BYTES };

/* Numbers of fields, from protos/perfetto of Perfetto. */
enum { TRACE_PACKET = 1 };
enum {
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_CLOCK = 58,
	PACKET_TRACK_DESCRIPTOR = 60,
	PACKET_TASK_STATE = 117,
};
enum { SNAPSHOT_CLOCK = 1, SNAPSHOT_PRIMARY = 2 };
enum { CLOCK_ID = 1, CLOCK_TIME = 2 };
enum { TRACK_UUID = 1, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT = 5 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum {
	EVENT_NOTE = 4,
	EVENT_TYPE = 9,
	EVENT_TRACK = 11,
	EVENT_NAME = 23,
	EVENT_FLOW = 47,
	EVENT_LAST_FLOW = 48,
};
enum { NOTE_UINT = 3, NOTE_STRING = 6, NOTE_NAME = 10 };
enum { STATE_CPU = 1, STATE_COMM, STATE_TID, STATE_STATE };

/* And their values. */
enum { MONOTONIC = 3, BOOTTIME = 6 };
enum { STATE_CLEARED = 1 }; /* nothing before this packet matters */
enum { SEQUENCE = 1 };      /* all packets come from one writer */

#define FLUSH 65536 /* bytes gathered before they are written */

static void put(struct wq_pb *pb, const void *data, size_t len)
{
	size_t room = pb->room ? pb->room : 256;
	uint8_t *more;

	while (room < pb->len + len)
		room *= 2;
	if (room != pb->room && !pb->failed) {
		more = realloc(pb->data, room);
		if (!more) {
			pb->failed = true;
			return;
		}
		pb->data = more;
		pb->room = room;
	}
	if (pb->failed || !len)
		return;
	memcpy(pb->data + pb->len, data, len);
	pb->len += len;
}

static void varint(struct wq_pb *pb, uint64_t value)
{
	uint8_t byte[10];
	size_t n = 0;

	do {
		byte[n] = value & 0x7f;
		value >>= 7;
		if (value)
			byte[n] |= 0x80;
		n++;
	} while (value);
	put(pb, byte, n);
}

static void tag(struct wq_pb *pb, unsigned int field, unsigned int wire)
{
	varint(pb, (uint64_t)field << 3 | wire);
}

void wq_pb_uint(struct wq_pb *pb, unsigned int field, uint64_t value)
{
	tag(pb, field, WIRE_VARINT);
	varint(pb, value);
}

void wq_pb_fixed64(struct wq_pb *pb, unsigned int field, uint64_t value)
{
	uint8_t byte[8];

	for (int i = 0; i < 8; i++)
		byte[i] = (uint8_t)(value >> 8 * i);
	tag(pb, field, WIRE_64);
	put(pb, byte, sizeof(byte));
}

static void bytes(struct wq_pb *pb, unsigned int field, const void *data,
		  size_t len)
{
	tag(pb, field, WIRE_BYTES);
	varint(pb, len);
	put(pb, data, len);
}

void wq_pb_string(struct wq_pb *pb, unsigned int field, const char *text)
{
	bytes(pb, field, text, strlen(text));
}

void wq_pb_message(struct wq_pb *pb, unsigned int field, struct wq_pb *inner)
{
	pb->failed = pb->failed || inner->failed;
	bytes(pb, field, inner->data, inner->len);
	inner->len = 0;
}

void wq_pb_free(struct wq_pb *pb)
{
	free(pb->data);
	memset(pb, 0, sizeof(*pb));
}

/* --- packets --- */

static void flush(struct wq_perfetto *p)
{
	const uint8_t *data = p->file.data;
	size_t left = p->file.len;
	ssize_t n;

	p->file.len = 0;
	if (p->file.failed && !p->error)
		p->error = -ENOMEM;
	while (left && !p->error) {
		n = write(p->fd, data, left);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			p->error = -errno;
			break;
		}
		data += n;
		left -= (size_t)n;
		p->bytes += (uint64_t)n;
	}
}

static void end_packet(struct wq_perfetto *p)
{
	wq_pb_uint(&p->packet, PACKET_SEQUENCE, SEQUENCE);
	wq_pb_message(&p->file, TRACE_PACKET, &p->packet);
	if (p->file.len >= FLUSH || p->file.failed)
		flush(p);
}

static void add_time(struct wq_perfetto *p, uint64_t ns)
{
	wq_pb_uint(&p->packet, PACKET_TIMESTAMP, ns);
	wq_pb_uint(&p->packet, PACKET_CLOCK, MONOTONIC);
}

static void add_clock(struct wq_perfetto *p, unsigned int id, clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	wq_pb_uint(&p->leaf, CLOCK_ID, id);
	wq_pb_uint(&p->leaf, CLOCK_TIME,
		   (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec);
	wq_pb_message(&p->inner, SNAPSHOT_CLOCK, &p->leaf);
}

void wq_perfetto_begin(struct wq_perfetto *p, int fd)
{
	memset(p, 0, sizeof(*p));
	p->fd = fd;
	add_clock(p, MONOTONIC, CLOCK_MONOTONIC);
	add_clock(p, BOOTTIME, CLOCK_BOOTTIME);
	wq_pb_uint(&p->inner, SNAPSHOT_PRIMARY, MONOTONIC);
	wq_pb_message(&p->packet, PACKET_CLOCK_SNAPSHOT, &p->inner);
	wq_pb_uint(&p->packet, PACKET_SEQUENCE_FLAGS, STATE_CLEARED);
	end_packet(p);
}

int wq_perfetto_finish(struct wq_perfetto *p)
{
	flush(p);
	wq_pb_free(&p->file);
	wq_pb_free(&p->packet);
	wq_pb_free(&p->inner);
	wq_pb_free(&p->leaf);
	return p->error;
}

void wq_perfetto_process(struct wq_perfetto *p, uint64_t uuid, const char *name)
{
	wq_pb_uint(&p->leaf, PROCESS_PID, (uint64_t)getpid());
	wq_pb_string(&p->leaf, PROCESS_NAME, name);
	wq_pb_uint(&p->inner, TRACK_UUID, uuid);
	wq_pb_message(&p->inner, TRACK_PROCESS, &p->leaf);
	wq_pb_message(&p->packet, PACKET_TRACK_DESCRIPTOR, &p->inner);
	end_packet(p);
}

void wq_perfetto_thread(struct wq_perfetto *p, uint64_t uuid, uint64_t parent,
			pid_t tid, const char *name)
{
	wq_pb_uint(&p->leaf, THREAD_PID, (uint64_t)getpid());
	wq_pb_uint(&p->leaf, THREAD_TID, (uint64_t)tid);
	wq_pb_string(&p->leaf, THREAD_NAME, name);
	wq_pb_uint(&p->inner, TRACK_UUID, uuid);
	wq_pb_uint(&p->inner, TRACK_PARENT, parent);
	wq_pb_message(&p->inner, TRACK_THREAD, &p->leaf);
	wq_pb_message(&p->packet, PACKET_TRACK_DESCRIPTOR, &p->inner);
	end_packet(p);
}

void wq_perfetto_event(struct wq_perfetto *p, uint64_t ns,
		       enum wq_perfetto_type type, uint64_t uuid,
		       const char *name)
{
	add_time(p, ns);
	wq_pb_uint(&p->inner, EVENT_TYPE, type);
	wq_pb_uint(&p->inner, EVENT_TRACK, uuid);
	if (name)
		wq_pb_string(&p->inner, EVENT_NAME, name);
}

void wq_perfetto_flow(struct wq_perfetto *p, uint64_t flow, bool last)
{
	wq_pb_fixed64(&p->inner, last ? EVENT_LAST_FLOW : EVENT_FLOW, flow);
}

void wq_perfetto_uint(struct wq_perfetto *p, const char *name, uint64_t value)
{
	wq_pb_string(&p->leaf, NOTE_NAME, name);
	wq_pb_uint(&p->leaf, NOTE_UINT, value);
	wq_pb_message(&p->inner, EVENT_NOTE, &p->leaf);
}

void wq_perfetto_string(struct wq_perfetto *p, const char *name,
			const char *value)
{
	wq_pb_string(&p->leaf, NOTE_NAME, name);
	wq_pb_string(&p->leaf, NOTE_STRING, value);
	wq_pb_message(&p->inner, EVENT_NOTE, &p->leaf);
}

void wq_perfetto_event_end(struct wq_perfetto *p)
{
	wq_pb_message(&p->packet, PACKET_TRACK_EVENT, &p->inner);
	end_packet(p);
}

void wq_perfetto_state(struct wq_perfetto *p, uint64_t ns, uint32_t cpu,
		       pid_t tid, const char *comm, unsigned int state)
{
	add_time(p, ns);
	wq_pb_uint(&p->inner, STATE_CPU, cpu);
	wq_pb_string(&p->inner, STATE_COMM, comm);
	wq_pb_uint(&p->inner, STATE_TID, (uint64_t)tid);
	wq_pb_uint(&p->inner, STATE_STATE, state);
	wq_pb_message(&p->packet, PACKET_TASK_STATE, &p->inner);
	end_packet(p);
}
