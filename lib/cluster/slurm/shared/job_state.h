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
    TRP_SLURM_JOB_ASKED,   /* the call is under way */
    TRP_SLURM_JOB_PENDING, /* queued */
    TRP_SLURM_JOB_FOUND,   /* it has started; what it has is being asked */
    TRP_SLURM_JOB_RUNS,    /* its nodes are in the ledger */
    TRP_SLURM_JOB_OVER,    /* nothing new there; forgotten when the last has left */
};

/* The shrinking of one job: shrink.h. */
struct trp_slurm_shrinking {
    struct trp_slurm *slurm;
    uint32_t part;
    uint32_t *nodes, n; /* that are being given back: while `asking` */
    bool asking, refused;
    bool live;               /* steps run in it */
    int64_t at_ns, pause_ns; /* not before then */
};

struct trp_slurm_job {
    struct trp_slurm_job *next;
    struct trp_slurm *slurm;
    struct trp_slurm_kind_jobs *want;
    enum trp_slurm_job_state state;
    uint32_t job;                      /* Slurm's number; 0: not known yet */
    uint32_t units;                    /* requests that it was asked for */
    uint32_t part;                     /* from RUNS on */
    uint32_t guard;                    /* the id by which its guard calls */
    struct trp_slurm_guard *step;      /* which that is, of a job that was not queued */
    struct trp_slurm_guard *last_step; /* the one before, until that has called */
    int64_t guard_at, guard_pause;     /* when it is started */
    bool queued;                       /* as a batch job */
    bool unwanted;                     /* cancelled before its number was known */
    bool spares;                       /* some hosts were excluded from it */
    bool was_used;
    bool polled;         /* Slurm was asked of it as pending, and has not told */
    bool gone;           /* Slurm says that it is over: */
    char end[64];        /* its state */
    bool watched;        /* it ran when Slurm was asked what became of its nodes */
    int64_t began, ends; /* seconds since 1970; 0: no end is known */
    int64_t first;       /* … when the first executor was there */
    bool asking;         /* of its end */
    char reason[128];
    int64_t start; /* expected, seconds since 1970; 0: unknown */
    int64_t asked_ns;
    struct trp_slurm_inventory granted;
    struct trp_slurm_shrinking shrinking;
};

/* What one kind wants of additional jobs. */
struct trp_slurm_kind_jobs {
    struct trp_acquire acquire;
    struct trp_resource_profile profile;
    uint32_t ranks; /* of a gang, else 0 */
    uint32_t
        most; /* ranks a node of one with devices, that is asked for next; 0: any */
    const char *not_on;         /* the kind's */
    char never[TRP_SLURM_TOLD]; /* why it can never be had so, "" */
    char told[TRP_SLURM_TOLD];  /* what the user was told last; … of a node: */
    char trial[TRP_SLURM_TOLD];
    char refused[TRP_SLURM_TOLD]; /* what Slurm has said to a step, since one came */
    bool job_tried;               /* an additional job was asked for since one came */
    bool local;                   /* there is room for it inside, some time */
    int64_t waits_since; /* of gangs that may not be had elsewhere yet; 0: none is */
    int64_t never_until; /* … but for this stage: looked at again then; or 0 */
    struct trp_slurm_kind_jobs *needed; /* of what is asked for ahead: to whom its jobs
                                         * go when it is needed; NULL: nobody yet */
};

struct trp_slurm_additional {
    bool allowed;
    bool helper_gone;
    uint32_t most; /* jobs at once */
    int64_t poll_ns, time_ns;
    int64_t patience_ns;          /* of gangs that have room inside, some time */
    struct trp_slurm_job *jobs;   /* in the order in which they were asked for */
    struct trp_slurm_debt *debts; /* give_back.c */
    struct trp_slurm_offers offers;
    bool offers_asked;
    bool unsure; /* an answer was lost: a job that nobody knows may have been had */
    uint32_t guard_ids;             /* given so far */
    struct trp_slurm_guard *guards; /* steps */
    uint64_t had;                   /* jobs granted so far */
    int64_t poll_at, poll_step;
    bool polling;
};

/* ---- nodes that are given back: shrink.h ---- */

struct trp_slurm_shrink {
    bool denied;                 /* no job may shrink here */
    bool allowed;                /* the driver's own job may, as far as we know */
    bool news;                   /* other stages may run than before */
    bool *needed, *used;         /* nodes of the driver's own job, by index */
    struct trp_outlook *outlook; /* the last one; without loads: not known */
    int64_t settled_ns;          /* it is quiet, or about to be; held until then */
    struct trp_slurm_shrinking own;
};

/* ---- what becomes of nodes: node_watch.h ---- */

struct trp_slurm_watch {
    uv_timer_t timer;
    uint64_t poll_ms, wait_ms; /* at first; at present */
    bool asked, again;         /* an answer is awaited; there was a doubt since */
    bool news;                 /* in the present answer */
    int64_t doubted;           /* the last time, in seconds since 1970 */
    uint32_t nodes;            /* of the driver's job: the first ones */
    bool *seen;                /* by node, in the present answer; room for so many: */
    uint32_t room;
};

/* ---- what killed steps have left: tidy.h ---- */

struct trp_slurm_tidy {
    struct trp_slurm_debris *list; /* one a node */
};

/* ---- what Slurm lists though it has ended: ghosts.h ---- */

enum { TRP_SLURM_STEPS_KEPT = 4096 };

struct trp_slurm_ghosts {
    uv_timer_t timer;
    uint64_t pause_ms; /* before the next comparison */
    bool asked;        /* an answer is awaited, of this part: */
    uint32_t part;
    bool *haunted; /* by node, in the present answer; room for so many: */
    uint32_t room;
    uint32_t cancelled; /* the last step of it that was */
    struct {
        uint32_t job, step;
    } over[TRP_SLURM_STEPS_KEPT]; /* a ring: the last steps whose sruns are gone */
    uint64_t nover;
};

#endif
