/*
 * What is kept of additional jobs, of nodes, and of what is left on them. Which file
 * looks after what is said where it begins.
 */
#ifndef TRP_CLUSTER_SLURM_SHARED_JOB_STATE_H
#define TRP_CLUSTER_SLURM_SHARED_JOB_STATE_H

#include <uv.h>

#include "cluster/slurm/accounts/acquire.h"
#include "cluster/slurm/helper/node_offers.h"

struct trp_slurm;
struct trp_outlook;
struct trp_slurm_debris;

/* ---- additional jobs: additional.h ---- */

enum { TRP_SLURM_TOLD = 960 };

enum trp_slurm_job_state {
    TRP_SLURM_JOB_ASKED,   /* Slurm has been asked for it, and has not answered */
    TRP_SLURM_JOB_PENDING, /* it is in Slurm's queue */
    TRP_SLURM_JOB_FOUND,   /* it has started; Slurm is asked for its nodes */
    TRP_SLURM_JOB_RUNS,    /* its nodes are in the ledger */
    TRP_SLURM_JOB_OVER, /* nothing new is placed there; freed when the last has left */
};

/* The shrinking of one job: shrink.h. */
struct trp_slurm_shrinking {
    struct trp_slurm *slurm;
    uint32_t part;
    uint32_t *nodes, n; /* being given back, while `asking` */
    bool asking;        /* the call to Slurm is under way */
    bool refused;       /* Slurm does not shrink this job: it is not asked again */
    bool live;          /* steps run in the job */
    int64_t at_ns;      /* the earliest time of the next call … */
    int64_t pause_ns;   /* … and the pause before it, which doubles */
};

struct trp_slurm_job {
    struct trp_slurm_job *next;
    struct trp_slurm *slurm;
    struct trp_slurm_kind_jobs *want; /* for which requests it was asked for */
    enum trp_slurm_job_state state;
    uint32_t job;                      /* Slurm's number; 0: not known yet */
    uint32_t units;                    /* how many requests it was asked for */
    uint32_t part;                     /* in the inventory, from RUNS on */
    uint32_t guard;                    /* the id by which its guard calls */
    struct trp_slurm_guard *step;      /* its guard, when that is a step; else NULL */
    struct trp_slurm_guard *last_step; /* the guard before, until `step` has called */
    int64_t guard_at;                  /* when the next guard is started … */
    int64_t guard_pause;               /* … and the pause after that one */
    bool queued;                       /* it was submitted as a batch job */
    bool unwanted;                     /* to be cancelled once its number is known */
    bool spares;                       /* some hosts were excluded from it */
    bool was_used;                     /* something was placed there */
    bool polled;      /* Slurm is asked for pending jobs, and has not told of it */
    bool gone;        /* Slurm says that the job is over … */
    char end[64];     /* … in this state */
    int64_t ended;    /* … since then; 0: not known */
    bool end_told;    /* the driver knows */
    bool watched;     /* it ran when Slurm was last asked for the states of nodes */
    int64_t began;    /* all times in seconds since 1970 */
    int64_t ends;     /* 0: no end is known */
    int64_t first;    /* when its first executor was granted; 0: none was */
    bool asking;      /* Slurm is asked whether the job is over */
    char reason[128]; /* why it is pending, as Slurm says */
    int64_t start;    /* when Slurm expects it to start; 0: unknown */
    int64_t asked_ns; /* when it was asked for */
    struct trp_slurm_inventory granted; /* its nodes, until they are in the ledger */
    struct trp_slurm_shrinking shrinking;
};

/* What requests of one kind want of additional jobs. */
struct trp_slurm_kind_jobs {
    struct trp_acquire acquire;
    struct trp_resource_profile profile;
    uint32_t ranks;     /* of a gang, else 0 */
    uint32_t most;      /* of a gang with devices: most ranks on a node of the next
                         * job; 0: any */
    const char *not_on; /* as the kind's */
    char never[TRP_SLURM_TOLD]; /* why no additional job can have it; "": one can */
    char told[TRP_SLURM_TOLD];  /* the last thing that the user was told … */
    char trial[TRP_SLURM_TOLD]; /* … and the last about a doubtful node */
    /* Since one of the kind was admitted: */
    char refused[TRP_SLURM_TOLD]; /* what Slurm has answered to an srun */
    bool job_tried;               /* an additional job was asked for */
    bool local;          /* the driver's own job has room for it when it is empty */
    int64_t waits_since; /* since when a gang waits for that; 0: none does */
    int64_t never_until; /* when `never` is looked at again; 0: it is for good */
    struct trp_slurm_kind_jobs *needed; /* of a kind that is asked for ahead: the one to
                                         * which its jobs go when it is needed, or NULL */
};

struct trp_slurm_additional {
    bool allowed;
    bool helper_gone;
    uint32_t most;       /* jobs at once */
    int64_t poll_ns;     /* slurm.poll */
    int64_t time_ns;     /* the site's limit on the time of jobs; 0: none */
    int64_t patience_ns; /* how long gangs wait for room in the driver's own job */
    struct trp_slurm_job *jobs;   /* in the order in which they were asked for */
    struct trp_slurm_debt *debts; /* give_back.c */
    struct trp_slurm_offers offers;
    bool offers_asked;
    bool unsure; /* an answer was lost: there may be a job that nobody knows of */
    uint32_t guard_ids;             /* how many were given */
    struct trp_slurm_guard *guards; /* those that are steps */
    uint64_t had;                   /* jobs granted so far */
    int64_t poll_at, poll_step;     /* when pending jobs are asked about; the pause */
    bool polling;                   /* they are being asked about */
};

/* ---- nodes that are given back: shrink.h ---- */

struct trp_slurm_shrink {
    bool denied;         /* this Slurm shrinks no job */
    bool allowed;        /* the driver's own job may shrink, as far as we know */
    bool news;           /* other stages may run than when `needed` was found */
    bool *needed, *used; /* nodes of the driver's own job, by index: a stage to come
                          * needs it; something was placed there */
    struct trp_outlook *outlook; /* what may run; no loads: that is not known */
    int64_t settled_ns; /* until then nothing new is placed in the driver's own job, so
                         * that it becomes quiet; 0: it is not held */
    struct trp_slurm_shrinking own;
};

/* ---- what becomes of nodes: node_watch.h ---- */

struct trp_slurm_watch {
    uv_timer_t timer;
    uint64_t poll_ms, wait_ms; /* slurm.poll; the present pause */
    bool asked;                /* Slurm is being asked */
    bool again;                /* a node was doubted since: Slurm is asked again soon */
    bool news;                 /* the present answer has some */
    int64_t doubted;           /* when a node was last doubted, seconds since 1970 */
    uint32_t nodes;            /* how many the driver's own job had: they come first */
    bool *seen;                /* by node: the present answer has it; so many: */
    uint32_t capacity;
};

/* ---- what killed steps have left: tidy.h ---- */

struct trp_slurm_tidy {
    struct trp_slurm_debris *list; /* what is to be removed, by node */
    bool *files; /* by node: the run's executors there share a folder */
    uint32_t nfiles;
};

/* ---- what Slurm lists though it has ended: ghosts.h ---- */

enum { TRP_SLURM_STEPS_KEPT = 4096 };

struct trp_slurm_ghosts {
    uv_timer_t timer;
    uint64_t pause_ms; /* before Slurm is asked again */
    bool asked;        /* Slurm is asked for the steps of this part: */
    uint32_t part;
    bool *haunted; /* by node: the present answer has a ghost there; so many: */
    uint32_t capacity;
    uint32_t cancelled; /* the last step of the answer that was cancelled */
    struct {
        uint32_t job, step;
    } over[TRP_SLURM_STEPS_KEPT]; /* a ring: our last steps whose sruns are gone */
    uint64_t nover;               /* how many there ever were */
};

#endif
