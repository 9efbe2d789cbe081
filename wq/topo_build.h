/* SPDX-License-Identifier: MIT */
/*
 * wq/topo_build.h - private: a topology on its way, of whatever source.
 */
#ifndef WQ_TOPO_BUILD_H
#define WQ_TOPO_BUILD_H

#include "wq/topo.h"

/** wq_topo_alloc() - room for @nr CPUs; NULL when memory is out */
struct wq_topo *wq_topo_alloc(size_t nr);

/** wq_topo_finish() - divide the CPUs, all filled in, into pods */
void wq_topo_finish(struct wq_topo *topo);

#endif /* WQ_TOPO_BUILD_H */
