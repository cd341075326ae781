/*
 * What the files of additional jobs share: additional.c (the list, a job begins),
 * additional_ask.c, additional_end.c.
 */
#ifndef TRP_CLUSTER_SLURM_JOBS_ADDITIONAL_PARTS_H
#define TRP_CLUSTER_SLURM_JOBS_ADDITIONAL_PARTS_H

#include "cluster/slurm/jobs/additional.h"
#include "cluster/slurm/jobs/node_watch.h"
#include "cluster/slurm/jobs/shrink.h"
#include "cluster/slurm/jobs/tidy.h"

#define TRP_ADDITIONAL_FIRST_POLL_NS INT64_C(1000000000)

static inline int64_t trp_additional_now(void)
{
    return (int64_t)uv_hrtime();
}

/* additional.c. NULL: out of memory. */
struct trp_slurm_job *trp_additional_add(struct trp_slurm *s,
                                         struct trp_slurm_kind_jobs *w, uint32_t units,
                                         bool queued);
void trp_additional_forget(struct trp_slurm_job *j);
/* Takes a line of what a job was granted; `context` is the job. */
int trp_additional_on_granted(void *context, const struct trp_slurm_line *line,
                              trp_error *err);
/* The id for one guard more. */
uint32_t trp_additional_guard_id(struct trp_slurm *s);
/* What it was granted is in j->granted: into the ledger. */
void trp_additional_take_in(struct trp_slurm_job *j);
/* A queued job runs: asks what it has got. */
void trp_additional_find_out(struct trp_slurm_job *j);

/* What has become of it, for the driver; `at` in seconds since 1970, 0: now. */
void trp_additional_tell_news(const struct trp_slurm_job *j, int what, int64_t at);
/* give_back.c: "end", or "cancel", a job, until Slurm has done it, which is its end. */
void trp_additional_give_back(const struct trp_slurm_job *j, const char *verb);
/* The end of a job that was given back, at close. */
void trp_additional_tell_debts(const struct trp_slurm *s);
/* Tells again what was not taken, when it is time; when it is next, INT64_MAX: never.
 */
int64_t trp_additional_tell_again(struct trp_slurm *s);
/* The jobs that are not over yet, `most` at most; how many. */
uint32_t trp_additional_owed(const struct trp_slurm *s, uint32_t *ret, uint32_t most);
void trp_additional_forget_debts(struct trp_slurm *s);

/* additional_ask.c: what is to be asked for, or cancelled, for a kind; when to look
 * again, INT64_MAX: when something happens. */
int64_t trp_additional_ask(struct trp_slurm *s, struct trp_slurm_request_kind *kind);
/* Whether those who wait make do with doubtful nodes. */
void trp_additional_make_do(struct trp_slurm *s, struct trp_slurm_request_kind *kind,
                            bool they);
/* False: what the cluster has is not known yet, and is being asked. */
bool trp_additional_ask_offers(struct trp_slurm *s);
void trp_additional_tell_refusal(struct trp_slurm *s, struct trp_slurm_kind_jobs *w,
                                 uint32_t count, const char *refusal);
/* troupe-slurm is gone: those for whom there is room neither inside nor in a job that
 * runs. */
void trp_additional_refuse_hopeless(struct trp_slurm *s);
void trp_additional_tell_pending(struct trp_slurm *s, const struct trp_slurm_job *j);

/* additional_guard.c: starts guards where they are missing; when the next one is due,
 * INT64_MAX: none. */
int64_t trp_additional_guard(struct trp_slurm *s);
void trp_additional_guard_called(struct trp_slurm_job *j);
/* A guard runs in the job of that number. */
bool trp_additional_has_guard(const struct trp_slurm *s, uint32_t job);
/* The job is forgotten: its guard ends with it. */
void trp_additional_guard_leave(struct trp_slurm_job *j);

/* additional_end.c: true: a job was given back; the list is another one. */
bool trp_additional_release_one(struct trp_slurm *s);
/* Polls pending jobs when it is time; when the next poll is due, INT64_MAX: none. */
int64_t trp_additional_poll(struct trp_slurm *s);

#endif
