/*
 * What the files of the local cluster share: the cluster, one executor, one gang.
 */
#ifndef TRP_CLUSTER_LOCAL_STATE_H
#define TRP_CLUSTER_LOCAL_STATE_H

#include <uthash.h>
#include <uv.h>

#include "cluster/cluster.h"
#include "cluster/gangs.h"
#include "cluster/local/machine.h"
#include "cluster/local/machine_ledger.h"
#include "os/cgroup.h"
#include "os/core_locks.h"
#include "os/processes.h"

/* Who stands in the ledger's queue: the first member of executors and gangs. */
struct trp_ticket {
    struct trp_request request;
    bool is_gang;
};

enum trp_local_state {
    TRP_LOCAL_DISCOVERS, /* its discovery scripts run */
    TRP_LOCAL_WAITS,     /* in the ledger's queue */
    TRP_LOCAL_WITHDRAWN, /* left the queue; to be told */
    TRP_LOCAL_RUNS,      /* its mpirun lives */
    TRP_LOCAL_ENDS,      /* its mpirun is gone; its session may have others */
};

struct trp_local_executor {
    struct trp_ticket ticket;
    struct trp_local *local;
    uint32_t id;
    uint32_t slots;
    int64_t memory_mib;
    enum trp_local_state state;
    struct trp_local_discovery *discovery; /* while it runs */
    pid_t pid;
    uv_timer_t timer; /* next look at what is left, or the kill after a release */
    bool has_timer;
    bool taken;     /* the program has waited for it */
    bool dismissed; /* was told to end, or killed by us */
    bool hard;      /* the session was killed as a whole */
    bool by_mpirun; /* else the process is the executor itself */
    bool memory;    /* the kernel has killed in it for memory */
    int exit_status, signal;
    uint64_t since_ms; /* when it was killed; then, when mpirun had ended */
    uint64_t
        looked_ns; /* when the last pass that was looked at began; its end, before */
    char cgroup[TRP_CGROUP_PATH];
    UT_hash_handle hh;
};

struct trp_local_gang {
    struct trp_ticket ticket;
    trp_attempt_id attempt;
    char **launcher; /* the arguments of its mpirun */
};

struct trp_local {
    trp_cluster base;
    uv_loop_t *loop;
    struct trp_cluster_handler handler;
    struct trp_machine machine;
    trp_machine_ledger *ledger;
    struct trp_site_script *scripts; /* of what the site file does not name here */
    uint32_t nscripts;
    bool binds;  /* cores are real ones */
    bool shares; /* … and other runs may have them */
    struct trp_host_view host;
    struct trp_topology topology;

    bool runs_things; /* has a command, a loop */
    struct trp_executor_command command;
    char **texts;         /* of `command` */
    char *driver_address; /* once it is known */
    const char *mpi_folder;
    char mark[64]; /* of the names of memory groups */
    struct trp_cgroup_memory cgroups;
    struct trp_local_executor *executors; /* hash by id */

    trp_gangs *gangs;

    trp_processes *processes; /* of the last pass over all */
    uint64_t passed_ns;       /* when that began */
    uint64_t pass_ns;         /* when there may be another */

    struct trp_core_locks locks; /* of cores that are shared with other runs … */
    uv_timer_t share;            /* … looked at while any are had or waited for */
    uint32_t sharing;            /* requests that have some */
    bool held_up;                /* others have, or are to have first, what is wanted */
    bool contended;              /* others want what is had */
    bool told_held_up;

    uv_timer_t pump;      /* due at once: serve the queue, tell what is to be told */
    uv_signal_t children; /* some child has ended */
    unsigned handles;     /* open handles: these, share, those of gangs and executors */
    bool closed;
};

/* local.c: serves the queue and tells withdrawn ones from the loop, soon. */
void trp_local_pump_soon(struct trp_local *l);
/* local.c: the ledger has other devices than before. */
void trp_local_look_again(struct trp_local *l);
/* local.c: one handle less; frees the cluster when it was closed and this the last. */
void trp_local_handle_closed(struct trp_local *l);
/* The same for uv_close, of a handle that has the cluster as its data. */
void trp_local_own_closed(uv_handle_t *handle);

/* sharing.c: cores are shared with other runs of the user, where there is a file for it.
 * Once the spawner of gangs has been started, which is not to inherit the locks. */
void trp_local_share_open(struct trp_local *l);
/* Nothing more is taken; what is had is given up with its requests. */
void trp_local_share_close(struct trp_local *l);
/* The next of the queue that has its room, NULL: none. */
struct trp_request *trp_local_next(struct trp_local *l);
/* A request leaves the queue, or its room. */
void trp_local_leave(struct trp_local *l, struct trp_request *r);
/* What other runs have of the cores that are waited for; "": nothing. */
void trp_local_why(struct trp_local *l, char *text, size_t size);
/* What is free: neither this run's nor others'. */
void trp_local_room(struct trp_local *l, struct trp_room *ret);

/* executor_process.c */
int trp_local_executor_ask(struct trp_local *l, trp_executor_id id,
                           const struct trp_resource_profile *p, trp_error *err);
/* It has its share: starts it and tells `granted`, or `gone` when that fails. */
void trp_local_executor_serve(struct trp_local_executor *e);
void trp_local_executor_release(struct trp_local_executor *e, bool told);
void trp_local_executor_kill(struct trp_local_executor *e);
/* Tells a withdrawn one. */
void trp_local_executor_tell(struct trp_local_executor *e);
/* At close: kills what is there; true when nothing is left and it is given up. */
bool trp_local_executor_close(struct trp_local_executor *e, bool hard);
/* Takes the ends of those whose process has ended. */
void trp_local_executors_reap(struct trp_local *l);
/* Gives up one that even a kill does not end. */
void trp_local_executor_forget(struct trp_local_executor *e);

/* It was not started: tells so. */
void trp_local_executor_failed(struct trp_local_executor *e, int code,
                               const char *text);

/* discovery.c. False: out of memory. */
bool trp_local_takes_scripts(struct trp_local *l, const struct trp_site *site);
void trp_local_free_scripts(struct trp_local *l);
/* Takes out what nobody knows the amount of before a script has run. */
void trp_local_without_unknown(const struct trp_local *l,
                               struct trp_machine_footprint *footprint);
bool trp_local_has_scripted(const struct trp_local *l,
                            const struct trp_machine_footprint *footprint);
/* Runs the scripts for an executor, which then waits for room, or has failed. */
int trp_local_discover(struct trp_local_executor *e, trp_error *err);
/* The executor goes: ends its scripts. */
void trp_local_discovery_stop(struct trp_local_executor *e);

/* local_gang.c */
int trp_local_gangs_open(struct trp_local *l, trp_error *err);
int trp_local_gang_ask(struct trp_local *l, const struct trp_gang *g, trp_error *err);

#endif
