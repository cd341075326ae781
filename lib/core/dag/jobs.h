/*
 * Jobs: their stages, and the gate of those with barrier stages.
 */
#ifndef TRP_CORE_DAG_JOBS_H
#define TRP_CORE_DAG_JOBS_H

#include "core/engine_state.h"

/* ---- jobs.c ---- */

int trp_job_submit(struct trp_engine *e, const struct trp_job_spec *spec,
                   trp_error *err);
struct trp_job *trp_job_find(const struct trp_engine *e, trp_job_id id);
/* Makes the stages of a dataset job and starts it; again, after it was gated. */
void trp_job_start(struct trp_engine *e, struct trp_job *j);
void trp_job_stop(struct trp_engine *e, struct trp_job *j, const char *why);
/* Ends a job that cannot succeed. `s` (may be NULL) is the stage to blame. */
void trp_job_fail(struct trp_engine *e, struct trp_job *j, int code,
                  struct trp_stage *s, uint32_t task, const char *text);
/* It has failed, and what runs of it may finish: nothing is launched any more. */
static inline bool trp_job_drains(const struct trp_job *j)
{
    return j->drains && j->failed.n != TRP_NONE;
}
/* A stage that the job uses has ended: perhaps the job has, too. */
void trp_job_stage_over(struct trp_engine *e, struct trp_use *use);
void trp_jobs_check_drained(struct trp_engine *e);
void trp_jobs_free_dead(struct trp_engine *e); /* at the end of every step */
void trp_jobs_free(struct trp_engine *e);
/* The job uses the stage: `u` is one of j->uses. */
void trp_use_add(struct trp_engine *e, struct trp_use *u, struct trp_job *j,
                 struct trp_stage *s);

/* ---- dataset_stages.c ---- */

/* Makes the stages of a dataset job that are not there yet, the last one j->final, and
 * the uses of all it needs. TRP_EWAIT: a barrier stage has too few slots now;
 * TRP_EINVAL: the datasets make no stages (profiles, barrier); TRP_ENOMEM. On failure
 * no stage is left that was not there before. */
int trp_plan_job(struct trp_engine *e, struct trp_job *j, trp_error *err);

/* ---- gate.c ---- */

int trp_gate_check(const struct trp_engine *e, const char *name, trp_profile_id profile,
                   uint32_t ntasks, trp_error *err);
void trp_gate_add(struct trp_engine *e, struct trp_job *j);
void trp_gate_remove(struct trp_engine *e, struct trp_job *j);
/* The same for a stage that was given as one and has been submitted: it is given up
 * when the slots do not come. */
void trp_gate_watch(struct trp_engine *e, struct trp_stage *s);
void trp_gate_unwatch(struct trp_engine *e, struct trp_stage *s);

#endif
