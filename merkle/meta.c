/* SPDX-License-Identifier: MIT */
/* The .fsv_meta sidecar.  Layer: merkle. */
#include "merkle/meta.h"

#include "merkle/complain.h"
#include "merkle/le.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	OFF_VERSION = 0,
	OFF_DESC = 4,
	OFF_SIG_TYPE = 260,
	OFF_SIG_SIZE = 264,
	VERSION = 1,
};

static int check_signature(const struct verity_meta *m,
			   struct verity_complaint *why)
{
	if (m->sig_type > VERITY_SIG_RAW)
		return complain(why, -EINVAL, "signature type", m->sig_type,
				RULE_MOST, VERITY_SIG_RAW);
	if (m->sig_size > VERITY_MAX_SIG)
		return complain(why, -EMSGSIZE, "signature size", m->sig_size,
				RULE_MOST, VERITY_MAX_SIG);
	if (m->sig_type == VERITY_SIG_NONE && m->sig_size)
		return complain(why, -EINVAL, "signature size without a type",
				m->sig_size, RULE_EQUAL, 0);
	if (m->sig_type != VERITY_SIG_NONE && !m->sig_size)
		return complain(why, -EINVAL, "signature size", 0, RULE_LEAST,
				1);
	if (m->desc.sig_size && m->desc.sig_size != m->sig_size)
		return complain(why, -EINVAL, "descriptor.sig_size",
				m->desc.sig_size, RULE_EQUAL, m->sig_size);
	return 0;
}

/* Where the tree begins and ends follows from the descriptor alone. */
static int place_tree(struct verity_meta *m, struct verity_complaint *why)
{
	struct verity_geom g;
	int err = verity_geom_init(&g, &m->desc.params, m->desc.data_size, why);

	if (err)
		return err;
	m->tree_pos = verity_meta_tree_pos(m->sig_size);
	m->tree_size = g.tree_size;
	if (g.tree_size > VERITY_MAX_SIZE - m->tree_pos)
		return complain(why, -EFBIG, "tree size", g.tree_size,
				RULE_MOST, VERITY_MAX_SIZE - m->tree_pos);
	return 0;
}

int verity_meta_decode(const uint8_t *head, uint64_t file_size,
		       struct verity_meta *out, struct verity_complaint *why)
{
	struct verity_meta m = { 0 };
	uint32_t version = get_le32(head + OFF_VERSION);
	int err;

	if (version != VERSION)
		return complain(why, -EINVAL, "version", version, RULE_EQUAL,
				VERSION);
	memcpy(m.raw, head + OFF_DESC, VERITY_DESC_SIZE);
	m.sig_type = get_le32(head + OFF_SIG_TYPE);
	m.sig_size = get_le32(head + OFF_SIG_SIZE);
	err = verity_desc_decode(m.raw, &m.desc, why);
	if (!err)
		err = check_signature(&m, why);
	if (!err)
		err = place_tree(&m, why);
	if (!err && file_size != verity_meta_size(&m))
		err = complain(why, -EINVAL, "sidecar size", file_size,
			       RULE_EQUAL, verity_meta_size(&m));
	if (!err)
		err = verity_desc_digest(m.raw, &m.digest);
	if (!err)
		*out = m;
	return err;
}

ssize_t verity_pread_full(int fd, void *buf, size_t len, uint64_t pos)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = pread(fd, (char *)buf + got, len - got,
				  (off_t)(pos + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

/* Is this the descriptor that was asked for?  Asked of the raw bytes. */
static int check_trusted(const uint8_t *head,
			 const struct verity_digest *trusted)
{
	struct verity_digest d;
	int err = verity_desc_digest(head + OFF_DESC, &d);

	if (err == -EINVAL || (!err && !verity_digest_equal(&d, trusted)))
		return -EBADMSG;
	return err;
}

int verity_meta_read(int fd, const struct verity_digest *trusted,
		     struct verity_meta *out, struct verity_complaint *why)
{
	uint8_t head[VERITY_META_HEAD];
	struct stat st;
	ssize_t n;
	int err;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return complain(why, -EINVAL, "file type",
				(st.st_mode & S_IFMT) >> 12, RULE_EQUAL,
				S_IFREG >> 12);
	n = verity_pread_full(fd, head, sizeof(head), 0);
	if (n < 0)
		return (int)n;
	if (n < (ssize_t)sizeof(head))
		return complain(why, -EINVAL, "sidecar size", (uint64_t)n,
				RULE_LEAST, VERITY_META_HEAD);
	if (trusted) {
		err = check_trusted(head, trusted);
		if (err)
			return err;
	}
	return verity_meta_decode(head, (uint64_t)st.st_size, out, why);
}

int verity_meta_init(struct verity_meta *m, const uint8_t *raw)
{
	struct verity_meta n = { 0 };
	int err;

	memcpy(n.raw, raw, VERITY_DESC_SIZE);
	err = verity_desc_decode(raw, &n.desc, NULL);
	if (!err)
		err = verity_desc_digest(raw, &n.digest);
	if (!err)
		err = place_tree(&n, NULL);
	if (!err)
		*m = n;
	return err;
}

void verity_meta_encode(const struct verity_meta *m, uint8_t *head)
{
	put_le32(head + OFF_VERSION, VERSION);
	memcpy(head + OFF_DESC, m->raw, VERITY_DESC_SIZE);
	put_le32(head + OFF_SIG_TYPE, m->sig_type);
	put_le32(head + OFF_SIG_SIZE, m->sig_size);
}
