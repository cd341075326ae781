/*
 * What the Slurm backend is told when it is made.
 */
#ifndef TRP_CLUSTER_SLURM_SHARED_SLURM_CONFIG_H
#define TRP_CLUSTER_SLURM_SHARED_SLURM_CONFIG_H

#include "cluster/cluster.h"

/* Where executors of a run in a Slurm job may be: alloc.placement. */
enum trp_placement {
    TRP_PLACEMENT_INSIDE_FIRST,
    TRP_PLACEMENT_INSIDE, /* no additional jobs */
    TRP_PLACEMENT_JOBS,   /* in additional jobs only */
};

/* The Slurm job that this process is in. */
struct trp_slurm_config {
    uint32_t job;             /* 0: none, to look at what additional jobs could have */
    const char *partition;    /* … of one that will be submitted; NULL: not said */
    const char *helper;       /* absolute path of troupe-slurm */
    const char *rank_program; /* … of troupe-rank */
    const char *job_answer;   /* what Slurm has told of the job, or of all nodes */
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

#endif
