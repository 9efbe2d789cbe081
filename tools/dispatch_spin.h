/* SPDX-License-Identifier: MIT */
/*
 * tools/dispatch_spin.h - threads of the lowest policy, SCHED_IDLE, that keep
 * CPUs from halting, and the CPU time of the others.  Layer: tools.
 *
 * A virtual CPU that halts is woken by its host, which takes longer than most
 * of what is measured.
 */
#ifndef TOOLS_DISPATCH_SPIN_H
#define TOOLS_DISPATCH_SPIN_H

#include <sched.h>
#include <stdint.h>

/**
 * dispatch_spin() - start one spinner on each of @cpus
 *
 * Return: 0, when all spin; a negative errno, when none does.
 */
int dispatch_spin(const cpu_set_t *cpus);

/** dispatch_unspin() - end them, if there are any */
void dispatch_unspin(void);

/** dispatch_cpu_ns() - CPU time of the process so far, without the calling
 * thread's and without the spinners' */
uint64_t dispatch_cpu_ns(void);

#endif /* TOOLS_DISPATCH_SPIN_H */
