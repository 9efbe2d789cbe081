/* SPDX-License-Identifier: MIT */
#include "wq/perfetto.h"

#include <stdlib.h>
#include <string.h>

enum { WIRE_VARINT, WIRE_64, WIRE_BYTES };

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
