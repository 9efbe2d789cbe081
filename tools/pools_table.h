/* SPDX-License-Identifier: MIT */
/*
 * tools/pools_table.h - what bench-pools prints.  Layer: tools.
 */
#ifndef TOOLS_POOLS_TABLE_H
#define TOOLS_POOLS_TABLE_H

#include "tools/pools_load.h"

#define TABLE_SWITCHES 4096

/** struct table - costs of switches, in the order made; the rest is asked of
 * the pools */
struct table {
	struct wq_switch cost[TABLE_SWITCHES];
	size_t switches;
};

/** table_note_switch() - beyond TABLE_SWITCHES the first ones are overwritten */
void table_note_switch(struct table *table, const struct wq_switch *cost);

/** table_print() - modes, parts, CPUs, switches, and the @worst slowest jobs */
void table_print(const struct table *table, struct wq_pools *pools,
		 struct wq *wq, const struct load_result *load,
		 unsigned int worst);

/** table_hgrm() - Return: 0 or a negative errno */
int table_hgrm(struct wq_pools *pools, const char *path);

#endif /* TOOLS_POOLS_TABLE_H */
