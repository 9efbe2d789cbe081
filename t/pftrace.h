/* SPDX-License-Identifier: MIT */
/*
 * t/pftrace.h - read back a Perfetto trace, for the tests of wq/trace.h; each
 * includes it once.
 */
#ifndef T_PFTRACE_H
#define T_PFTRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LEN(array) (sizeof(array) / sizeof((array)[0]))

enum kind { OTHER, EVENT, STATE };
enum { BEGIN = 1, END, INSTANT };

/* A packet, as far as it has these. */
struct packet {
	enum kind kind;
	uint64_t ns, clock, type, track, id, issuer, open, thread;
	uint64_t flow, last_flow;
	uint64_t cpu, tid, state;
	char name[256];
};

struct field {
	uint64_t number, value;
	const uint8_t *data;
	size_t len; /* of @data; or no data but a value */
	bool is_data;
};

static struct packet packets[40000];
static size_t nr_packets, nr_events, nr_states, nr_tracks;

static inline bool varint(const uint8_t **at, const uint8_t *end,
			  uint64_t *value)
{
	unsigned int shift = 0;

	for (*value = 0; *at < end && shift < 64; shift += 7) {
		uint8_t byte = *(*at)++;

		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* The field at *at.  Return: false for what is no field. */
static inline bool take(const uint8_t **at, const uint8_t *end, struct field *f)
{
	uint64_t tag;

	memset(f, 0, sizeof(*f));
	if (!varint(at, end, &tag))
		return false;
	f->number = tag >> 3;
	if ((tag & 7) == 0)
		return varint(at, end, &f->value);
	if ((tag & 7) == 1 && end - *at >= 8) {
		for (unsigned int i = 0; i < 8; i++)
			f->value |= (uint64_t) * (*at)++ << 8 * i;
		return true;
	}
	f->is_data = (tag & 7) == 2 && varint(at, end, &f->value) &&
		     f->value <= (uint64_t)(end - *at);
	f->len = (size_t)f->value;
	f->data = *at;
	*at += f->is_data ? f->len : 0;
	return f->is_data;
}

static inline void text(const struct field *f, char *to, size_t room)
{
	snprintf(to, room, "%.*s", (int)f->len, (const char *)f->data);
}

static inline bool take_note(const struct field *note, struct packet *p)
{
	const uint8_t *at = note->data, *end = at + note->len;
	char name[32] = "";
	uint64_t value = 0;
	struct field f;

	while (at < end) {
		if (!take(&at, end, &f))
			return false;
		if (f.number == 10)
			text(&f, name, sizeof(name));
		if (f.number == 3)
			value = f.value;
	}
	if (strcmp(name, "id") == 0)
		p->id = value;
	if (strcmp(name, "issue thread") == 0)
		p->issuer = value;
	if (strcmp(name, "open") == 0)
		p->open = value;
	if (strcmp(name, "thread") == 0)
		p->thread = value;
	return true;
}

static inline bool take_event(const struct field *event, struct packet *p)
{
	const uint8_t *at = event->data, *end = at + event->len;
	struct field f;

	while (at < end) {
		if (!take(&at, end, &f) || (f.number == 4 && !take_note(&f, p)))
			return false;
		if (f.number == 23)
			text(&f, p->name, sizeof(p->name));
		*(f.number == 9    ? &p->type
		  : f.number == 11 ? &p->track
		  : f.number == 47 ? &p->flow
		  : f.number == 48 ? &p->last_flow
				   : &(uint64_t){ 0 }) = f.value;
	}
	return true;
}

static inline bool take_state(const struct field *state, struct packet *p)
{
	const uint8_t *at = state->data, *end = at + state->len;
	struct field f;

	while (at < end) {
		if (!take(&at, end, &f))
			return false;
		*(f.number == 1   ? &p->cpu
		  : f.number == 3 ? &p->tid
		  : f.number == 4 ? &p->state
				  : &(uint64_t){ 0 }) = f.value;
	}
	return true;
}

static inline bool take_packet(const struct field *packet, struct packet *p)
{
	const uint8_t *at = packet->data, *end = at + packet->len;
	bool good = true;
	struct field f;

	memset(p, 0, sizeof(*p));
	while (at < end && good) {
		good = take(&at, end, &f);
		if (f.number == 8)
			p->ns = f.value;
		if (f.number == 58)
			p->clock = f.value;
		nr_tracks += f.number == 60;
		if (f.number == 11 || f.number == 117)
			p->kind = f.number == 11 ? EVENT : STATE;
		if (good && f.number == 11)
			good = take_event(&f, p);
		if (good && f.number == 117)
			good = take_state(&f, p);
	}
	nr_events += p->kind == EVENT;
	nr_states += p->kind == STATE;
	return good;
}

/* Read the file into @packets.  Return: whether it is a trace. */
static inline bool decode(const char *path)
{
	static uint8_t data[4 << 20];
	const uint8_t *at = data, *end;
	FILE *file = fopen(path, "rb");
	struct field f;
	bool good = true;

	nr_packets = nr_events = nr_states = nr_tracks = 0;
	if (!file)
		return false;
	end = data + fread(data, 1, sizeof(data), file);
	fclose(file);
	while (at < end && good && nr_packets < LEN(packets))
		good = take(&at, end, &f) && f.number == 1 && f.is_data &&
		       take_packet(&f, &packets[nr_packets++]);
	return good && at == end && end < data + sizeof(data);
}

static inline const struct packet *find(uint64_t type, uint64_t id)
{
	for (size_t i = 0; i < nr_packets; i++)
		if (packets[i].kind == EVENT && packets[i].type == type &&
		    packets[i].id == id)
			return &packets[i];
	return NULL;
}

static inline unsigned int count(uint64_t type, const char *name)
{
	unsigned int n = 0;

	for (size_t i = 0; i < nr_packets; i++)
		n += packets[i].kind == EVENT && packets[i].type == type &&
		     (!name || strcmp(packets[i].name, name) == 0);
	return n;
}

/* Times go up; all are CLOCK_MONOTONIC; on each track slices nest and end. */
static inline bool in_order(void)
{
	static struct {
		uint64_t track;
		unsigned int depth;
	} track[64];
	uint64_t ns = 0;
	size_t t;

	memset(track, 0, sizeof(track));
	for (size_t i = 0; i < nr_packets; i++) {
		const struct packet *p = &packets[i];

		if (p->kind == OTHER)
			continue;
		if (p->ns < ns || p->clock != 3)
			return false;
		ns = p->ns;
		for (t = 0; track[t].track && track[t].track != p->track;)
			t++;
		track[t].track = p->track;
		track[t].depth += p->kind == EVENT && p->type == BEGIN;
		if (p->kind == EVENT && p->type == END && !track[t].depth--)
			return false;
	}
	for (t = 0; t < LEN(track); t++)
		if (track[t].depth)
			return false;
	return true;
}

#endif /* T_PFTRACE_H */
