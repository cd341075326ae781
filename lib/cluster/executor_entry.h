/*
 * How a backend tells an executor its shape: an entry of its environment.
 */
#ifndef TRP_CLUSTER_EXECUTOR_ENTRY_H
#define TRP_CLUSTER_EXECUTOR_ENTRY_H

#include "cluster/cluster.h"

struct trp_executor_shape;

/* "TROUPE_EXECUTOR=…" for `shape`, of which id, cores, slots, memory, cpuset and cgroup
 * are set by the caller; the rest comes from the command that all executors share and
 * from `driver` (HOST:PORT). Malloc'ed; NULL with TRP_ELIMIT (a path is too long) or
 * TRP_ENOMEM in `err`. */
char *trp_executor_entry(const struct trp_executor_command *command, const char *driver,
                         struct trp_executor_shape *shape, trp_error *err);

#endif
