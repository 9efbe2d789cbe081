/* SPDX-License-Identifier: MIT */
/*
 * merkle/file.h - verified files from descriptors that are open already.
 *
 * Layer: merkle.  verity.h has the reader itself; here are its other doors,
 * for files whose metadata is not a sidecar beside them.
 */
#ifndef MERKLE_FILE_H
#define MERKLE_FILE_H

#include "merkle/meta.h"

/**
 * verity_file_adopt() - read through a sidecar that is open and checked
 * @fd, @meta_fd: the data's and the sidecar's; closed by verity_file_close(),
 *   and also when this fails
 * @meta: from verity_meta_read() of @meta_fd
 *
 * Return: 0 or -ENOMEM.
 */
VERITY_MUST_CHECK int verity_file_adopt(int fd, int meta_fd,
					const struct verity_meta *meta,
					struct verity_file **out);

/**
 * verity_file_adopt_block() - a file of at most one block needs no sidecar:
 * its descriptor follows from its data, and must be the trusted one
 * @fd: as above
 * @size: of the file, at most the block size
 *
 * Return: 0; -EBADMSG when the data is not that of @trusted; -EINVAL for a
 * larger @size; -ENOMEM; or what pread(2) gave.
 */
VERITY_MUST_CHECK int
verity_file_adopt_block(int fd, const struct verity_params *params,
			uint64_t size, const struct verity_digest *trusted,
			struct verity_file **out);

#endif /* MERKLE_FILE_H */
