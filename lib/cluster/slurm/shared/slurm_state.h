/*
 * What the files of the Slurm cluster share.
 */
#ifndef TRP_CLUSTER_SLURM_SHARED_SLURM_STATE_H
#define TRP_CLUSTER_SLURM_SHARED_SLURM_STATE_H

#include <uv.h>

#include "cluster/cluster.h"
#include "cluster/gangs.h"
#include "cluster/slurm/accounts/budget.h"
#include "cluster/slurm/helper/helper.h"
#include "cluster/slurm/shared/job_state.h"

struct trp_slurm;
struct trp_slurm_executor;
struct trp_slurm_gang;

/* What those who use nodes, executors and gangs, are told and asked: users.c. */
struct trp_slurm_users {
    /* Requests of this kind can never be had, as w->never says. */
    void (*never)(struct trp_slurm *s, const struct trp_slurm_kind_jobs *w);
    /* Slurm has said whether a job is over: ends that waited for that may be told. */
    void (*judged)(struct trp_slurm *s, uint32_t part);
    /* A node is gone, or is drained; or a host has become doubtful. */
    void (*lost)(struct trp_slurm *s, uint32_t node);
    void (*drained)(struct trp_slurm *s, uint32_t node);
    void (*doubted)(struct trp_slurm *s, const char *host);
    /* An additional job ends then (seconds since 1970). */
    void (*ends)(struct trp_slurm *s, uint32_t part, int64_t when);
    /* Is there one of which the driver hears nothing? */
    bool (*any_unheard)(const struct trp_slurm *s);
    /* How many are in the part and have not been told to go: executors of a profile;
     * NULL: of all, and gangs. */
    uint32_t (*staying)(const struct trp_slurm *s, uint32_t part, const char *profile);
};

enum {
    TRP_SLURM_STEP_NAME = 256,
    /* What one srun causes in slurmctld, by sdiag: it looks the job up and makes the
     * step, and slurmstepd tells its end. */
    TRP_SLURM_SRUN_RPCS = 3,
};

struct trp_slurm {
    trp_cluster base;
    uv_loop_t *loop;
    struct trp_cluster_handler handler;
    const trp_site *site;
    trp_site *own_site; /* when there is no site file */
    trp_slurm_helper *helper;
    struct trp_slurm_inventory inventory;
    trp_slurm_ledger *ledger;
    struct trp_host_view *hosts;
    struct trp_resource_addresses *devices; /* of all hosts, TRP_SLURM_POOLS each */
    struct trp_topology topology;

    bool runs_things; /* false: it was made for `plan` and `topo`, to look at */
    struct trp_executor_command command;
    char **texts; /* of `command` */
    char *rank_program, *helper_program;
    char *job_answer;     /* what Slurm told `troupe` before the run */
    char *uri;            /* ompi-server's; "": over sockets */
    char *driver_address; /* once it is known */
    const struct trp_slurm_users *users;
    struct trp_slurm_executor *executors; /* hash by id */
    uint64_t sruns;                       /* started so far */
    uint64_t answer_rpcs;                 /* RPCs that `troupe` made for job_answer */
    uint64_t rpcs_taken; /* RPCs of the helper that were taken from the budget */
    struct trp_slurm_budget budget;
    bool told_limit;     /* the user knows that Slurm is called more slowly */
    uint32_t nodes_told; /* how many nodes the driver was told of */
    bool held_changed;   /* the driver is to be told */

    trp_gangs *gangs;
    struct trp_slurm_gang *gang_list;
    struct trp_slurm_additional additional;
    uint32_t leaving;   /* executors that were told to go, and are there yet */
    uint32_t misplaced; /* events that were not in the table of an executor's life */
    char misplaced_text[200]; /* the first of them, until the user is told; "" */
    struct trp_slurm_watch watch;
    struct trp_slurm_ghosts ghosts;
    struct trp_slurm_shrink shrink;
    struct trp_slurm_tidy tidy;

    uv_poll_t helper_poll;
    uv_timer_t wake; /* due when there is something to look at again */
    uv_timer_t pump; /* due at once: serve the queue, tell what is to be told */
    uv_timer_cb on_pump;
    void (*free)(struct trp_slurm *s); /* once it is closed, with the last handle */
    unsigned handles;
    bool closed;
};

/* state.c: serves the queue and tells withdrawn ones from the loop, soon. */
void trp_slurm_pump_soon(struct trp_slurm *s);
/* What is held has changed; told from the loop, soon. */
void trp_slurm_held_changed(struct trp_slurm *s);
/* An srun is being started. */
void trp_slurm_srun_started(struct trp_slurm *s);
/* Slurm has refused one because there were too many calls. */
void trp_slurm_srun_refused(struct trp_slurm *s);
/* The user is told, once, that Slurm is called too often. */
void trp_slurm_tell_limit(struct trp_slurm *s);
/* One handle less; frees the cluster when it was closed and this the last. */
void trp_slurm_handle_closed(struct trp_slurm *s);
/* The same for uv_close, of a handle that has the cluster as its data. */
void trp_slurm_own_closed(uv_handle_t *handle);

/* The additional job that a part is, or NULL: it is the driver's own. */
struct trp_slurm_job *trp_slurm_additional_of(const struct trp_slurm *s, uint32_t part);
/* Of a request that has its place: the first of its nodes, all of which are of one part,
 * … */
const struct trp_slurm_node *trp_slurm_node_of(const struct trp_slurm *s,
                                               const struct trp_slurm_request *r);
/* … that, … */
const struct trp_slurm_part *trp_slurm_part_of(const struct trp_slurm *s,
                                               const struct trp_slurm_request *r);
/* … and the additional job that it is. */
struct trp_slurm_job *trp_slurm_job_of(const struct trp_slurm *s,
                                       const struct trp_slurm_request *r);
/* node_view.c: fills in the racks of nodes. */
int trp_slurm_set_racks(const struct trp_slurm *s,
                        struct trp_slurm_inventory *inventory, trp_error *err);

/* node_view.c: what `topology` shows; freed with the cluster. */
int trp_slurm_view_make(struct trp_slurm *s, trp_error *err);
void trp_slurm_view_free(struct trp_slurm *s);

/* srun_arguments.c: arguments for execvp, malloc'ed, NULL when out of memory. An
 * executor's step of that name, with what it runs behind. */
char **trp_slurm_step_argv(const struct trp_slurm *s, const struct trp_slurm_request *r,
                           const char *name);
/* The guard of the additional job that the node is of. */
char **trp_slurm_guard_argv(const struct trp_slurm *s, uint32_t node);
/* What tidies the node up after these executors. */
char **trp_slurm_tidy_argv(const struct trp_slurm *s, uint32_t node,
                           const uint32_t *executors, uint32_t n);
/* What moves these outputs away from the node, and prints what it has moved. */
char **trp_slurm_move_argv(const struct trp_slurm *s, uint32_t node,
                           char *const *outputs);
/* A gang's step, without the program; `hosts`: file with a line a rank. */
char **trp_slurm_gang_argv(const struct trp_slurm *s, const struct trp_slurm_request *r,
                           const char *name, const char *mpi, const char *hosts);

#endif
