/* SPDX-License-Identifier: MIT */
/*
 * wq/futex.h - private: sleep on a word, futex(2).
 */
#ifndef WQ_FUTEX_H
#define WQ_FUTEX_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/** wq_futex_wait() - while *@word is @value; may return for no reason
 * @ns: at most so long; UINT64_MAX is for ever */
static inline void wq_futex_wait(_Atomic uint32_t *word, uint32_t value,
				 uint64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000u),
			       .tv_nsec = (long)(ns % 1000000000u) };

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value,
		ns == UINT64_MAX ? NULL : &ts, NULL, 0);
}

static inline void wq_futex_wake(_Atomic uint32_t *word, int threads)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

#endif /* WQ_FUTEX_H */
