/*
 * Additional jobs: got when executors find no room in the driver's own job, given back
 * when nothing runs there and nobody who waits has room there.
 *
 * What is asked for when is decided by acquire.h, once for each kind of the ledger's
 * queue. A job is asked for *now* by troupe-slurm, or *queued* as a batch job. Each has
 * a guard (executor/job_guard.h), which calls the admission socket and ends the job
 * when the driver is gone: the script of a batch job, else a step.
 *
 * Everything happens from the loop: trp_slurm_additional_look is called by the pump
 * when the queue was served.
 */
#ifndef TRP_CLUSTER_SLURM_JOBS_ADDITIONAL_H
#define TRP_CLUSTER_SLURM_JOBS_ADDITIONAL_H

#include "cluster/slurm/shared/slurm_state.h"

/* Something may have changed: asks, cancels, gives back. When to look again: INT64_MAX:
 * when something happens. */
int64_t trp_slurm_additional_look(struct trp_slurm *s);
/* The driver's own job has less room than before. */
void trp_slurm_additional_less_room(struct trp_slurm *s);
/* How many requests additional jobs may hold in all; 0 with TRP_ENEVER. */
uint32_t trp_slurm_additional_fit(struct trp_slurm *s,
                                  const struct trp_resource_profile *p, uint32_t ranks,
                                  const struct trp_slurm_footprint *footprint,
                                  trp_error *err);
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
/* A request of that kind is in the queue again. */
void trp_slurm_additional_again(struct trp_slurm *s,
                                struct trp_slurm_request_kind *kind);
/* One of that kind is started on a doubtful node: there is nothing else. */
void trp_slurm_additional_tell_trial(struct trp_slurm *s,
                                     const struct trp_slurm_request_kind *kind,
                                     uint32_t node);
/* A job seems to end: nothing new there; asks Slurm why. */
void trp_slurm_additional_doubt(struct trp_slurm *s, struct trp_slurm_job *j);
/* A job is over since `ended` (seconds since 1970), in Slurm's word for how: nothing new
 * there, gangs are killed. */
void trp_slurm_additional_over(struct trp_slurm *s, struct trp_slurm_job *j,
                               const char *state, int64_t ended);
/* "its Slurm job 7 reached its time limit": of a job that is gone. */
void trp_slurm_additional_cause(const struct trp_slurm_job *j, char *text, size_t size);
/* What a lost executor of a job that is gone is told as: TRP_ETIME at its time limit,
 * TRP_ENOENT when its nodes failed, else TRP_ECANCELLED. */
int trp_slurm_additional_status(const struct trp_slurm_job *j);
/* Tasks of executors of `w` take so long that they would outlive it: nothing new there.
 * When they would outlive any job that is asked for them none is for a while, and who
 * has no room inside is refused. */
void trp_slurm_additional_outlived(struct trp_slurm *s, struct trp_slurm_job *j,
                                   struct trp_slurm_kind_jobs *w, int64_t takes_ns);
/* troupe-slurm is gone: no more are taken, and at the end another one ends those that
 * are there. */
void trp_slurm_additional_lost(struct trp_slurm *s);
/* Is this the id of a guard of ours? Its job has started. */
bool trp_slurm_additional_guard(struct trp_slurm *s, uint32_t id);
/* Why executors of a profile wait, "" when there is nothing to say. */
void trp_slurm_additional_why(const struct trp_slurm *s,
                              const struct trp_resource_profile *p, char *text,
                              size_t size);
/* job_list.c: the jobs of the run, as the backend's `jobs` tells them. */
void trp_slurm_jobs_tell(const struct trp_slurm *s,
                         void (*tell)(void *context, const struct trp_cluster_job *job),
                         void *context);
/* At close: all are given back. */
void trp_slurm_additional_close(struct trp_slurm *s);
/* When they are: their ends are told. */
void trp_slurm_additional_tell_ends(struct trp_slurm *s);
/* Leaves the guards of jobs that Slurm has not ended alone with that. */
void trp_slurm_additional_close_guards(struct trp_slurm *s);
void trp_slurm_additional_free(struct trp_slurm *s);

/* sweep.c: notes in the run's folder which job its driver is in; tells troupe-slurm
 * which ones they have been, so that what is left of their additional jobs is ended: at
 * once where there were others, and at the end. */
void trp_slurm_sweep(struct trp_slurm *s);

/* job_arguments.c: a call to troupe-slurm that asks for `count` executors
 * (or one gang), malloc'ed. `verb`: "allocate", "queue" with `queued`, "when".
 * *ret_spares, unless NULL: hosts that do not answer are excluded. */
char *trp_slurm_request_call(const struct trp_slurm *s, const char *verb,
                             const struct trp_slurm_kind_jobs *want, uint32_t count,
                             const struct trp_slurm_job *queued, bool *ret_spares,
                             trp_error *err);
/* A gang with devices cannot be had now: it is asked for on more nodes the next time.
 * False: it was on as many as can be, and is on the fewest then. */
bool trp_slurm_request_spread(const struct trp_slurm *s,
                              struct trp_slurm_kind_jobs *want);
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
