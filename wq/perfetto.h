/* SPDX-License-Identifier: MIT */
/*
 * wq/perfetto.h - private: protobuf's wire format, as far as traces need it.
 *
 * (https://protobuf.dev/programming-guides/encoding: a field is its number and
 * wire type as a varint, then a varint, eight bytes, or a length and bytes.)
 */
#ifndef WQ_PERFETTO_H
#define WQ_PERFETTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif /* WQ_PERFETTO_H */
