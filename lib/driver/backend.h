/*
 * Which cluster a run uses: the one place that knows all backends (cluster/cluster.h).
 */
#ifndef TRP_DRIVER_BACKEND_H
#define TRP_DRIVER_BACKEND_H

#include "cluster/cluster.h"

/* Which of them a run uses. */
struct trp_cluster_where {
    uint32_t local_cores; /* --local=N; 0: what is there */
    uint32_t slurm_job;   /* 0: this machine */
    const char *helper, *rank_program;
    const char
        *slurm_answer; /* what Slurm has told of the job (slurm/helper/job_answer.h) */
};

/* Asks Slurm what `where`'s job was granted, for `ret_answer`, which is malloc'ed; that
 * takes as long as slurmctld does, a minute at most. TRP_ENOENT: there is no such job;
 * TRP_ESYSTEM: Slurm does not answer, or troupe-slurm cannot be started. */
int trp_cluster_slurm_ask(const struct trp_cluster_where *where, char **ret_answer,
                          trp_error *err);

/* The cluster of `where`, with what options and site (may be NULL) say of it. */
int trp_cluster_new(uv_loop_t *loop, const struct trp_cluster_where *where,
                    const trp_options *options, const trp_site *site,
                    const struct trp_executor_command *command,
                    const struct trp_cluster_handler *handler,
                    trp_cluster **ret_cluster, trp_error *err);

#endif
