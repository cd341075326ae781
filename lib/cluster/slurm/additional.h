/*
 * Additional jobs: got when executors find no room in the driver's own job, given back
 * when nothing runs there and nobody who waits has room there.
 *
 * What is asked for when is decided by acquire.h, once for each shape of the books'
 * queue. A job is asked for *now* by troupe-slurm, or *queued* as a batch job. Each has
 * a guard (executor/job_guard.h), which calls the admission socket and ends the job
 * when the driver is gone: the script of a batch job, else a step.
 *
 * Everything happens from the loop: trp_slurm_additional_look is called by the pump
 * when the queue was served.
 */
#ifndef TRP_CLUSTER_SLURM_ADDITIONAL_H
#define TRP_CLUSTER_SLURM_ADDITIONAL_H

#include "cluster/slurm/acquire.h"
#include "cluster/slurm/offers.h"
#include "cluster/slurm/shrink.h"

struct trp_slurm;

enum { TRP_SLURM_TOLD = 960 };

enum trp_slurm_job_state {
    TRP_SLURM_JOB_ASKED,   /* the call is under way */
    TRP_SLURM_JOB_PENDING, /* queued */
    TRP_SLURM_JOB_FOUND,   /* it has started; what it has is being asked */
    TRP_SLURM_JOB_RUNS,    /* its nodes are in the books */
    TRP_SLURM_JOB_OVER,    /* nothing new there; forgotten when the last has left */
};

struct trp_slurm_job {
    struct trp_slurm_job *next;
    struct trp_slurm *slurm;
    struct trp_slurm_shape_jobs *want;
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
    struct trp_slurm_inventory found;
    struct trp_slurm_shrinking shrinking;
};

/* What one shape wants of additional jobs. */
struct trp_slurm_shape_jobs {
    struct trp_acquire acquire;
    struct trp_resource_profile profile;
    uint32_t ranks; /* of a gang, else 0 */
    uint32_t
        most; /* ranks a node of one with devices, that is asked for next; 0: any */
    const char *not_on;         /* the shape's */
    char never[TRP_SLURM_TOLD]; /* why it can never be had so, "" */
    char told[TRP_SLURM_TOLD];  /* what the user was told last; … of a node: */
    char trial[TRP_SLURM_TOLD];
    char refused[TRP_SLURM_TOLD]; /* what Slurm has said to a step, since one came */
    bool job_tried;               /* an additional job was asked for since one came */
    bool local;                   /* there is room for it inside, some time */
    int64_t waits_since; /* of gangs that may not be had elsewhere yet; 0: none is */
    int64_t never_until; /* … but for this stage: looked at again then; or 0 */
    struct trp_slurm_shape_jobs *needed; /* of what is asked for ahead: to whom its jobs
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

/* Something may have changed: asks, cancels, gives back. When to look again: INT64_MAX:
 * when something happens. */
int64_t trp_slurm_additional_look(struct trp_slurm *s);
/* The driver's own job has less room than before. */
void trp_slurm_additional_less_room(struct trp_slurm *s);
/* How many requests additional jobs may hold in all; 0 with TRP_ENEVER. */
uint32_t trp_slurm_additional_fit(struct trp_slurm *s,
                                  const struct trp_resource_profile *p, uint32_t ranks,
                                  const struct trp_slurm_need *need, trp_error *err);
/* After a request of `p` was put into the queue. TRP_ENEVER: it can never be had. */
int trp_slurm_additional_wanted(struct trp_slurm *s, struct trp_slurm_request *r,
                                const struct trp_resource_profile *p, uint32_t ranks,
                                trp_error *err);
/* One that waits was asked for ahead and is needed now. */
int trp_slurm_additional_needed(struct trp_slurm *s, struct trp_slurm_request *r);
/* Asks Slurm when so many executors would start; tells it. One RPC. */
void trp_slurm_additional_ask_wait(struct trp_slurm *s,
                                   const struct trp_resource_profile *p,
                                   uint32_t executors);
/* A request of that shape is in the queue again. */
void trp_slurm_additional_again(struct trp_slurm *s, struct trp_slurm_shape *shape);
/* One of that shape is started on a doubtful node: there is nothing else. */
void trp_slurm_additional_tell_trial(struct trp_slurm *s,
                                     const struct trp_slurm_shape *shape,
                                     uint32_t node);
/* The additional job that a part is, or NULL: it is the driver's own. */
struct trp_slurm_job *trp_slurm_additional_of(const struct trp_slurm *s, uint32_t part);
/* A job seems to end: nothing new there; asks Slurm why. */
void trp_slurm_additional_doubt(struct trp_slurm *s, struct trp_slurm_job *j);
/* A job is over, in Slurm's word for how: nothing new there, gangs are killed. */
void trp_slurm_additional_over(struct trp_slurm *s, struct trp_slurm_job *j,
                               const char *state);
/* "its Slurm job 7 reached its time limit": of a job that is gone. */
void trp_slurm_additional_cause(const struct trp_slurm_job *j, char *text, size_t size);
/* What a lost executor of a job that is gone is told as: TRP_ETIME at its time limit,
 * TRP_ENOENT when its nodes failed, else TRP_ECANCELLED. */
int trp_slurm_additional_status(const struct trp_slurm_job *j);
/* Tasks of executors of `w` take so long that they would outlive it: nothing new there.
 * When they would outlive any job that is asked for them none is for a while, and who
 * has no room inside is refused. */
void trp_slurm_additional_outlived(struct trp_slurm *s, struct trp_slurm_job *j,
                                   struct trp_slurm_shape_jobs *w, int64_t takes_ns);
/* troupe-slurm is gone: no more are taken, and at the end another one ends those that
 * are there. */
void trp_slurm_additional_lost(struct trp_slurm *s);
/* Is this the id of a guard of ours? Its job has started. */
bool trp_slurm_additional_guard(struct trp_slurm *s, uint32_t id);
/* Why executors of a profile wait, "" when there is nothing to say. */
void trp_slurm_additional_why(const struct trp_slurm *s,
                              const struct trp_resource_profile *p, char *text,
                              size_t size);
/* At close: all are given back. */
void trp_slurm_additional_close(struct trp_slurm *s);
/* Leaves the guards of jobs that Slurm has not ended alone with that. */
void trp_slurm_additional_close_guards(struct trp_slurm *s);
void trp_slurm_additional_free(struct trp_slurm *s);

/* sweep.c: notes in the run's folder which job its driver is in; tells troupe-slurm
 * which ones they have been, so that what is left of their additional jobs is ended: at
 * once where there were others, and at the end. */
void trp_slurm_sweep(struct trp_slurm *s);

/* request_words.c: the words of a call to troupe-slurm that asks for `count` executors
 * (or one gang), malloc'ed. `verb`: "allocate", "queue" with `queued`, "when".
 * *ret_spares, unless NULL: hosts that do not answer are excluded. */
char *trp_slurm_request_call(const struct trp_slurm *s, const char *verb,
                             const struct trp_slurm_shape_jobs *want, uint32_t count,
                             const struct trp_slurm_job *queued, bool *ret_spares,
                             trp_error *err);
/* A gang with devices cannot be had now: it is asked for on more nodes the next time.
 * False: it was on as many as can be, and is on the fewest then. */
bool trp_slurm_request_spread(const struct trp_slurm *s,
                              struct trp_slurm_shape_jobs *want);
/* Where such a job goes: a partition, "" the default one. TRP_ENEVER by the site. */
int trp_slurm_request_place(const struct trp_slurm *s,
                            const struct trp_resource_profile *p, uint32_t ranks,
                            char partition[TRP_SLURM_NAME], trp_error *err);
/* What the site's rule says of it beside the partition, and where that rule is:
 * ", account a, QOS q, by site.yaml:3:5". "": there is no rule. */
void trp_slurm_request_rule(const struct trp_slurm *s,
                            const struct trp_resource_profile *p, uint32_t ranks,
                            char *text, size_t size);

#endif
