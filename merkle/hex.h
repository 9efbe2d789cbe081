/* SPDX-License-Identifier: MIT */
/* merkle/hex.h - bytes to hex digits and back.  Layer: merkle. */
#ifndef MERKLE_HEX_H
#define MERKLE_HEX_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

static inline int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/** hex_decode() - @n bytes from 2 * @n digits; Return: 0 or -EINVAL */
static inline int hex_decode(const char *hex, size_t n, uint8_t *out)
{
	for (size_t i = 0; i < n; i++) {
		int hi = hex_digit(hex[2 * i]);
		int lo = hi < 0 ? -1 : hex_digit(hex[2 * i + 1]);

		if (lo < 0)
			return -EINVAL;
		out[i] = (uint8_t)(hi << 4 | lo);
	}
	return 0;
}

/** hex_is_canonical() - Return: nonzero when none of the digits is a capital */
static inline int hex_is_canonical(const char *hex, size_t digits)
{
	for (size_t i = 0; i < digits; i++)
		if (hex[i] >= 'A' && hex[i] <= 'F')
			return 0;
	return 1;
}

/** hex_encode() - 2 * @n lower-case digits and a NUL */
static inline void hex_encode(const uint8_t *bytes, size_t n, char *out)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		*out++ = digits[bytes[i] >> 4];
		*out++ = digits[bytes[i] & 15];
	}
	*out = '\0';
}

#endif /* MERKLE_HEX_H */
