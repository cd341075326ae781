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

/* What was asked of Slurm for a run; zeros on this machine. */
struct trp_cluster_costs {
    uint64_t rpcs;  /* our own calls */
    uint64_t sruns; /* started */
    uint64_t
        srun_rpcs; /* an estimate: of those and of their steps, which we do not see */
};

/* How an executor ended, or why it was not had. Borrowed. */
struct trp_gone {
    /* 0 as told to; TRP_EWAIT not now, or ended from outside; TRP_ENEVER refused;
     * TRP_ESYSTEM died; TRP_ECANCELLED its Slurm job was ended, TRP_ETIME at its time
     * limit, TRP_ENOENT since its nodes failed (`text` says which job, and how). */
    int status;
    bool memory;  /* the kernel killed in it for memory */
    bool untried; /* of one that had not come: there is another host, or an additional
                   * job, that was not tried since one of its profile came */
    const char *text;
    const char *cause; /* the part of it that has no number; NULL: all */
};

struct trp_outlook; /* core/alloc/outlook.h */

/* How a gang ended: as a struct trp_end of lib/wire, plus the rank's words. */
struct trp_end;

/* Guards of additional Slurm jobs call the admission socket with these ids. */
enum { TRP_CLUSTER_GUARD_IDS = 4096, TRP_CLUSTER_GUARDS = (1 << 20) - 4096 };

/* A step of a Slurm job that runs an executor or an attempt of a gang. */
struct trp_cluster_step {
    uint32_t job;
    const char *name;
    bool gang;
    trp_executor_id executor;
    trp_attempt_id attempt;
};

struct trp_cluster_handler {
    void *context;
    /* The executor's process was started: it will call the admission socket. */
    void (*granted)(void *context, trp_executor_id executor,
                    const struct trp_granted *g);
    /* It will never come, or its process ended. Its room is free again. */
    void (*gone)(void *context, trp_executor_id executor, const struct trp_gone *g);
    /* A gang ended. `end` is borrowed. */
    void (*gang_ended)(void *context, trp_attempt_id attempt,
                       const struct trp_end *end);
    /* Its Slurm job is being ended: nothing new goes there. May be NULL. */
    void (*ending)(void *context, trp_executor_id executor);
    /* News for the user, one line: why something is not had. May be NULL. */
    void (*notice)(void *context, const char *text);
    /* So many nodes of Slurm's are held from now on. May be NULL. */
    void (*nodes)(void *context, uint32_t nodes);
    /* A Slurm job is this run's: its own, or an additional one. May be NULL. */
    void (*job)(void *context, uint32_t job, bool additional);
    /* A step begins; told again when it has to begin anew. May be NULL. */
    void (*step)(void *context, const struct trp_cluster_step *step);
    /* Where it runs nothing new is to begin, and it is to go. May be told again. */
    void (*leaving)(void *context, trp_executor_id executor);
    /* There is less room than before, `planned` or not: `fit` has other answers. `text`
     * says why, for the log. */
    void (*shrunk)(void *context, bool planned, const char *text);
    /* What may still run, to be freed; false: that is not known. May be NULL. */
    bool (*outlook)(void *context, struct trp_outlook *ret);
    /* Room was had, or given back: `held` has other answers. */
    void (*held)(void *context);
    /* How long executors of the profile wait in the cluster's queue: the answer to
     * `ask_wait`, or what some have waited. */
    void (*queue_wait)(void *context, trp_profile_id profile, int64_t wait_ns);
    /* The driver's own allocation ends then (seconds since 1970; 0: not known). */
    void (*ends)(void *context, int64_t when);
    /* The same of an executor's, which is another one; told before `granted` or later.
     */
    void (*executor_ends)(void *context, trp_executor_id executor, int64_t when);
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

typedef struct trp_cluster trp_cluster;

struct trp_cluster_ops {
    /* How many executors of a profile, or gangs of `ranks` > 0 ranks, the empty cluster
     * can hold at once; 0 with `err` filled (TRP_ENEVER: resource, wanted, available).
     */
    uint32_t (*fit)(trp_cluster *c, const struct trp_resource_profile *p,
                    uint32_t ranks, trp_error *err);
    /* How many of the executors that `fit` tells the room that is held now has, when it
     * is empty. NULL: all. */
    uint32_t (*held)(trp_cluster *c, const struct trp_resource_profile *p);
    /* The admission socket is open at `driver_address` (HOST:PORT): executors may be
     * started from now on. */
    int (*open)(trp_cluster *c, const char *driver_address, trp_error *err);
    /* Asks for an executor; answered by `granted` or `gone`. It has room of what is
     * held, or comes to be held. `ahead`: nobody needs it yet, and it takes no room but
     * what is had for such ones. `not_on`: "h1,h2", hosts where it is not to be, "":
     * anywhere; it holds up nobody while it waits for another one. */
    int (*start)(trp_cluster *c, trp_executor_id executor,
                 const struct trp_resource_profile *p, bool ahead, const char *not_on,
                 trp_error *err);
    /* It was admitted. NULL: that says nothing new. */
    void (*came)(trp_cluster *c, trp_executor_id executor);
    /* More room may be had for it. NULL: all there is is held. */
    void (*may_add)(trp_cluster *c, trp_executor_id executor);
    /* One that was asked for ahead is needed now. NULL: there are none. */
    void (*need)(trp_cluster *c, trp_executor_id executor);
    /* How long would so many wait for room that is not held? Answered by `queue_wait`,
     * or not at all. NULL: nobody knows. */
    void (*ask_wait)(trp_cluster *c, const struct trp_resource_profile *p,
                     uint32_t executors);
    /* Withdraws a request, or makes sure an executor ends: it was told SHUTDOWN when
     * `told`; when it has not gone after 2 s it is killed. Answered by `gone`. */
    void (*release)(trp_cluster *c, trp_executor_id executor, bool told);
    /* Kills an executor's processes at once. Answered by `gone`. */
    void (*kill)(trp_cluster *c, trp_executor_id executor);
    /* Nothing is heard of one that was admitted, or it is again. NULL: that says
     * nothing new. */
    void (*silent)(trp_cluster *c, trp_executor_id executor, bool silent);
    int (*gang_start)(trp_cluster *c, const struct trp_gang *g, trp_error *err);
    /* With `soft` SIGTERM first and SIGKILL after 5 s. */
    void (*gang_kill)(trp_cluster *c, trp_attempt_id attempt, bool soft);
    /* A guard calls, or something that says so: is it one of ours? NULL: there are
     * none. */
    bool (*guard)(trp_cluster *c, uint32_t id);
    /* Why executors of a profile are not there, "" when nothing is known. May be NULL.
     */
    void (*why)(trp_cluster *c, const struct trp_resource_profile *p, char *text,
                size_t size);
    /* An executor is about to be released because tasks, which take so long, would
     * outlive its allocation: another one is not to come from there. May be NULL. */
    void (*outlived)(trp_cluster *c, trp_executor_id executor, int64_t takes_ns);
    /* The handler's `outlook` has another answer. NULL: nobody asks for it. */
    void (*stages_changed)(trp_cluster *c);
    /* Executors that are started from now on carry their messages on their sockets:
     * they need neither mpirun nor ompi-server. */
    void (*over_sockets)(trp_cluster *c);
    /* The room that is there, for `troupe topo` and messages. */
    const struct trp_topology *(*topology)(trp_cluster *c);
    /* Ends everything that still lives and frees. Blocks at most 4 s, and 10 s more
     * where a killed executor has left something on another host. `ret_costs` may be
     * NULL. */
    void (*close)(trp_cluster *c, struct trp_cluster_costs *ret_costs);
};

struct trp_cluster {
    const struct trp_cluster_ops *ops;
};

/* This machine (lib/cluster/local). Cores: `cores` when > 0 (may be more than there
 * are), else what hwloc and the cgroup limits allow. Memory: what the machine and
 * cgroups allow. Devices: the site's `local:`, and what its discovery scripts say, each
 * run once an executor; `site` may be NULL. Copies what it needs;
 * `command` may be NULL when only `fit` and `topology` are wanted (plan, topo). */
int trp_cluster_local_new(uv_loop_t *loop, uint32_t cores, const trp_site *site,
                          const struct trp_executor_command *command,
                          const struct trp_cluster_handler *handler,
                          trp_cluster **ret_cluster, trp_error *err);

/* Where executors of a run in a Slurm job may be: alloc.placement. */
enum trp_placement {
    TRP_PLACEMENT_INSIDE_FIRST,
    TRP_PLACEMENT_INSIDE, /* no additional jobs */
    TRP_PLACEMENT_JOBS,   /* in additional jobs only */
};

/* The Slurm job that this process is in (lib/cluster/slurm). */
struct trp_slurm_config {
    uint32_t job;
    const char *helper;       /* absolute path of troupe-slurm */
    const char *rank_program; /* … of troupe-rank */
    const char *job_answer;   /* what Slurm has told of the job */
    const trp_site *site;     /* borrowed; NULL: none */
    uint32_t driver_cores;    /* the driver's own share of its node */
    int64_t driver_memory_mib;
    enum trp_placement placement;
    bool shrink;             /* alloc.shrink */
    int64_t rpcs_per_minute; /* most calls to Slurm; 0: no limit */
    uint64_t poll_ms;        /* slurm.poll */
    int64_t patience_ns;     /* dynamicAllocation.schedulerBacklogTimeout */
    int log;                 /* descriptor for the helper's stderr, -1: ours */
};

/* Copies what it needs but `site`; `loop`, `command` and `handler` as above. Asks Slurm
 * nothing. TRP_ENOENT: it is no running job of this user; TRP_ESYSTEM: troupe-slurm
 * cannot be started. */
int trp_cluster_slurm_new(uv_loop_t *loop, const struct trp_slurm_config *config,
                          const struct trp_executor_command *command,
                          const struct trp_cluster_handler *handler,
                          trp_cluster **ret_cluster, trp_error *err);

#endif
