/*
 * Where executors come from: one interface, a backend per kind of cluster.
 *
 * A backend holds the books of the cluster's room (cores, memory, devices), brings
 * executors and gangs up when there is room, in the order in which they were asked for,
 * and tells when they are gone. A request that has no room now waits in the backend and
 * can be withdrawn. It never decides how many: that is lib/core/alloc.
 *
 * Every callback comes from the loop thread, never from inside a call into the backend.
 */
#ifndef TRP_CLUSTER_CLUSTER_H
#define TRP_CLUSTER_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "cluster/topology.h"
#include "core/base/error.h"
#include "core/base/ids.h"
#include "core/profile/books.h"
#include "core/profile/profile.h"

/* What an executor was given. Borrowed; valid until it is gone. */
struct trp_granted {
    const char *host;
    const char *rack; /* NULL: none */
    const struct trp_resource_addresses *resources;
    uint32_t nresources;
};

/* How a gang ended: as a struct trp_end of lib/wire, plus the rank's words. */
struct trp_end;

struct trp_cluster_handler {
    void *context;
    /* The executor's process was started: it will call the admission socket. */
    void (*granted)(void *context, trp_executor_id executor,
                    const struct trp_granted *g);
    /* It will never come, or its process ended. `status`: 0 ended as told to, TRP_EWAIT
     * / TRP_ENEVER refused, TRP_ESYSTEM died; `memory` true: the kernel killed in it
     * for memory. Its room is free again. */
    void (*gone)(void *context, trp_executor_id executor, int status, bool memory,
                 const char *text);
    /* A gang ended. `end` is borrowed. */
    void (*gang_ended)(void *context, trp_attempt_id attempt,
                       const struct trp_end *end);
};

/* What a gang runs: made by the driver from the stage's command. */
struct trp_gang {
    trp_attempt_id attempt;
    const struct trp_resource_profile *profile;
    uint32_t ranks;
    uint32_t number;              /* of the attempt */
    const char *stage;            /* stage name */
    const uint8_t *stage_message; /* the STAGE message of lib/wire, kind command */
    size_t stage_message_size;
    int64_t timeout_ns;
    const uint8_t *item;
    uint32_t item_size;
    bool has_item;
};

/* What all executors are told when they are started. */
struct trp_executor_command {
    const char *const *argv; /* program and arguments, NULL-terminated */
    const char *secret_file; /* 0600 */
    const char *run_name;
    const char *run_dir;     /* absolute */
    const char *scratch;     /* folder for scratch folders, absolute */
    const char *ompi_server; /* file with the URI of ompi-server */
    int64_t network_timeout_ns, heartbeat_ns;
};

typedef struct trp_cluster trp_cluster;

struct trp_cluster_ops {
    /* How many executors of a profile, or gangs of `ranks` > 0 ranks, the empty cluster
     * can hold at once; 0 with `err` filled (TRP_ENEVER: resource, wanted, available).
     */
    uint32_t (*fit)(trp_cluster *c, const struct trp_resource_profile *p,
                    uint32_t ranks, trp_error *err);
    /* The admission socket is open at `driver_address` (HOST:PORT): executors may be
     * started from now on. */
    int (*open)(trp_cluster *c, const char *driver_address, trp_error *err);
    /* Asks for an executor; answered by `granted` or `gone`. */
    int (*start)(trp_cluster *c, trp_executor_id executor,
                 const struct trp_resource_profile *p, trp_error *err);
    /* Withdraws a request, or makes sure an executor ends: it was told SHUTDOWN when
     * `told`; when it has not gone after 2 s it is killed. Answered by `gone`. */
    void (*release)(trp_cluster *c, trp_executor_id executor, bool told);
    /* Kills an executor's processes at once. Answered by `gone`. */
    void (*kill)(trp_cluster *c, trp_executor_id executor);
    int (*gang_start)(trp_cluster *c, const struct trp_gang *g, trp_error *err);
    /* With `soft` SIGTERM first and SIGKILL after 5 s. */
    void (*gang_kill)(trp_cluster *c, trp_attempt_id attempt, bool soft);
    /* The room that is there, for `troupe topo` and messages. */
    const struct trp_topology *(*topology)(trp_cluster *c);
    /* Ends everything that still lives and frees. Blocks at most 3 s. */
    void (*close)(trp_cluster *c);
};

struct trp_cluster {
    const struct trp_cluster_ops *ops;
};

/* This machine (lib/cluster/local). Cores: `cores` when > 0 (may be more than there
 * are), else what hwloc and the cgroup limits allow. Memory: what the machine and
 * cgroups allow. Devices: `devices` (the site file's `local:`). Copies what it needs;
 * `command` may be NULL when only `fit` and `topology` are wanted (plan, topo). */
int trp_cluster_local_new(uv_loop_t *loop, uint32_t cores,
                          const struct trp_resource_addresses *devices,
                          uint32_t ndevices, const struct trp_executor_command *command,
                          const struct trp_cluster_handler *handler,
                          trp_cluster **ret_cluster, trp_error *err);

#endif
