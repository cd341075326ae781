/*
 * Where executors come from: one interface, a backend per kind of cluster. What a
 * backend has to have is here; what those of a batch system may have besides, where
 * room is handed out by somebody else, is batch_system.h.
 *
 * A backend has the ledger of the cluster (cores, memory, devices), brings
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

#include "cluster/batch_system.h"
#include "cluster/topology.h"
#include "conf/options.h"
#include "conf/site.h"
#include "core/base/error.h"
#include "core/base/ids.h"
#include "core/profile/ledger.h"
#include "core/profile/profile.h"

/* What an executor was given. Borrowed; valid until it is gone. */
struct trp_granted {
    const char *host;
    const char *rack; /* NULL: none */
    const struct trp_resource_addresses *resources;
    uint32_t nresources;
};

/* What was asked of the batch system for a run; zeros on this machine. */
struct trp_cluster_costs {
    uint64_t rpcs;      /* our own calls */
    uint64_t sruns;     /* started */
    uint64_t srun_rpcs; /* an estimate: calls of those sruns and of their steps */
};

/* How an executor ended, or why it did not come. Borrowed. */
struct trp_gone {
    /* 0: ended as told. TRP_EWAIT: no room now, or ended from outside. TRP_ENEVER:
     * refused for good. TRP_ESYSTEM: died. Its job ended: TRP_ECANCELLED by someone,
     * TRP_ETIME at its time limit, TRP_ENOENT because its nodes failed (`text` says
     * which job, and how). */
    int status;
    bool memory;  /* the kernel killed a process in it for memory */
    bool untried; /* it had not come, and there is another host, or an additional job,
                   * that was not tried since one of its profile came */
    const char *text;
    const char *cause; /* `text` without the executor's number; NULL: `text` */
};

/* How a gang ended: as a struct trp_end of lib/wire, plus the rank's words. */
struct trp_end;

struct trp_cluster_handler {
    void *context;
    /* The executor's process was started: it will call the admission socket. */
    void (*granted)(void *context, trp_executor_id executor,
                    const struct trp_granted *g);
    /* It will never come, or its process ended. Its room is free again. */
    void (*gone)(void *context, trp_executor_id executor, const struct trp_gone *g);
    /* The gang of a stage has its room and is started; or not `has`: it could not be
     * started there and waits again. */
    void (*gang_room)(void *context, trp_stage_id stage, bool has);
    /* A gang ended. `end` is borrowed. */
    void (*gang_ended)(void *context, trp_attempt_id attempt,
                       const struct trp_end *end);
    /* News for the user, one line: why something is missing. May be NULL. */
    void (*notice)(void *context, const char *text);
    /* The room that the run holds changed: batch.held now answers differently. */
    void (*held)(void *context);
    /* Other runs wait for room that this run holds, or no longer. May be NULL. */
    void (*contended)(void *context, bool is);
    struct trp_batch_handler batch; /* with this context */
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
    bool munge;              /* they prove their user by MUNGE as well */
    const char *run_name;
    const char *run_dir;     /* absolute */
    const char *scratch;     /* folder for scratch folders, absolute; "": a private one
                              * of each node (Slurm) */
    const char *ompi_server; /* file with the URI of ompi-server; "": over sockets */
    bool mac;                /* sockets: with comm.mac */
    int64_t network_timeout_ns, heartbeat_ns;
};

struct trp_cluster_ops {
    /* How many executors of a profile, or gangs of `ranks` > 0 ranks, the empty cluster
     * can hold at once; 0 with `err` filled (TRP_ENEVER: resource, wanted, available).
     */
    uint32_t (*fit)(trp_cluster *c, const struct trp_resource_profile *p,
                    uint32_t ranks, trp_error *err);
    /* The admission socket is open at `driver_address` (HOST:PORT): executors may be
     * started from now on. */
    int (*open)(trp_cluster *c, const char *driver_address, trp_error *err);
    /* Asks for an executor; answered by `granted` or `gone`. It gets room that the run
     * holds, or comes to hold. `ahead`: not needed yet; it may use only room obtained
     * for executors that were asked for ahead. `not_on`: "h1,h2", hosts to avoid, "":
     * none; while it waits for another host, later requests may pass it. */
    int (*start)(trp_cluster *c, trp_executor_id executor,
                 const struct trp_resource_profile *p, bool ahead, const char *not_on,
                 trp_error *err);
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
    /* The same as one sum, and what of it is free now. */
    void (*room)(trp_cluster *c, struct trp_room *ret);
    /* Ends everything that still lives and frees. Blocks at most 4 s, and 10 s more
     * where a killed executor has left something on another host. `ret_costs` may be
     * NULL. */
    void (*close)(trp_cluster *c, struct trp_cluster_costs *ret_costs);
    struct trp_batch_ops batch;
};

struct trp_cluster {
    const struct trp_cluster_ops *ops;
};

#endif
