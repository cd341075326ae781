/*
 * A batch system as a backend: how `troupe` finds out that it is in a job of it, and
 * how the cluster of that job is made. driver/backends.c lists them.
 */
#ifndef TRP_CLUSTER_BACKEND_H
#define TRP_CLUSTER_BACKEND_H

#include "cluster/cluster.h"

struct trp_backend;

/* Which cluster a run uses. */
struct trp_cluster_where {
    uint32_t local_cores; /* --local=N; 0: what is there … */
    bool share_cores;     /* … and other runs of the user have some of it */
    const struct trp_backend *batch; /* NULL: this machine */
    uint32_t job; /* of the batch system, that this process is in; 0: in none, what
                            * its jobs could have is looked at */
    const char *partition;    /* … of a job that will be submitted; NULL: not said */
    const char *helper;       /* absolute path of the backend's own program … */
    const char *rank_program; /* … and of troupe-rank */
    bool gangs; /* the run has some, and no site file says by what they are started */
    const char *answer; /* what the batch system has told of the job, for `make` */
};

struct trp_backend {
    const char *name;         /* "Slurm" */
    const char *job_variable; /* SLURM_JOB_ID: a job's number, in its environment … */
    const char *step_variable; /* … a step's, and how many tasks that has: */
    const char *step_tasks_variable;
    uint32_t steps;     /* numbers above are no steps that a user has started */
    const char *helper; /* troupe-slurm, the program that speaks with it … */
    const char *built;  /* … which is built "where libslurm-dev is installed" */
    /* Whether it seems to be used on this host, which is looked for in files. */
    bool (*is_here)(void);
    /* Asks what `where`'s job was granted, or without one what all jobs could have, for
     * `where->answer`, which is malloc'ed;
     * that takes as long as the batch system does, a minute at most. TRP_ENOENT: there
     * is no such job; TRP_ESYSTEM: it does not answer, or the helper cannot be started.
     */
    int (*ask)(const struct trp_cluster_where *where, char **ret_answer,
               trp_error *err);
    /* As trp_cluster_new of driver/backends.h. */
    int (*make)(uv_loop_t *loop, const struct trp_cluster_where *where,
                const trp_options *options, const trp_site *site,
                const struct trp_executor_command *command,
                const struct trp_cluster_handler *handler, trp_cluster **ret_cluster,
                trp_error *err);
};

#endif
