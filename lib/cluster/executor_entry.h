/*
 * How a backend tells an executor what it is: the command that it keeps of all
 * executors, and a shape as an entry of the environment.
 */
#ifndef TRP_CLUSTER_EXECUTOR_ENTRY_H
#define TRP_CLUSTER_EXECUTOR_ENTRY_H

#include "cluster/cluster.h"

struct trp_executor_shape;

/* A copy of a command. Its texts are in the list that is returned, for trp_argv_free;
 * NULL: out of memory. */
char **trp_executor_command_copy(const struct trp_executor_command *command,
                                 struct trp_executor_command *ret);

/* "TROUPE_EXECUTOR=…" for `shape`, of which id, cores, slots, memory, cpuset and cgroup
 * are set by the caller; the rest comes from the command that all executors share and
 * from `driver` (HOST:PORT). Malloc'ed; NULL with TRP_ELIMIT (a path is too long) or
 * TRP_ENOMEM in `err`. */
char *trp_executor_entry(const struct trp_executor_command *command, const char *driver,
                         struct trp_executor_shape *shape, trp_error *err);

#endif
