/*
 * What the rest of the engine tells jobs and stages: what became of tasks, sets and
 * executors.
 */
#ifndef TRP_CORE_DAG_SEAM_H
#define TRP_CORE_DAG_SEAM_H

#include "core/engine_state.h"

/* ---- what task sets tell the stages; also for runs of the DAG alone ---- */

/* The first success of a task; of a zombie set too. executor: TRP_NONE for a gang;
 * `end`: what a map task left, and which attempt. */
void trp_stage_done(struct trp_engine *e, struct trp_stage *s, uint32_t attempt,
                    uint32_t task, uint32_t executor, const struct trp_task_end *end);
/* It failed for good: tells it. The stage goes on, or its end follows. True: when the
 * stage itself is judged, tasks that come after it are to be lost, too … */
bool trp_stage_given_up(struct trp_engine *e, struct trp_stage *s, uint32_t task);
/* … by this. */
void trp_stage_lose(struct trp_engine *e, struct trp_stage *s, uint32_t task);
/* Its set is a zombie now. */
void trp_stage_fetch_failed(struct trp_engine *e, struct trp_stage *s, uint32_t attempt,
                            const struct trp_fetch_source *from);
/* A task of a barrier set failed; the set is a zombie now. */
void trp_stage_barrier_failed(struct trp_engine *e, struct trp_stage *s,
                              uint32_t attempt, uint32_t task, const char *text);
/* A finished map task whose output went with its executor is pending again. */
void trp_stage_resubmitted(struct trp_engine *e, struct trp_stage *s, uint32_t attempt,
                           uint32_t task);
/* After everything above was told of a lost executor; it is still there. */
void trp_dag_executor_lost(struct trp_engine *e, const struct trp_executor *x,
                           enum trp_loss reason);

void trp_dag_executor_added(struct trp_engine *e, uint32_t executor, uint32_t host);
void trp_dag_executor_decommissioned(struct trp_engine *e, uint32_t executor,
                                     bool whole_host);
/* An attempt of a task was launched, has ended: a stage lives as long as these. */
void trp_dag_attempt_began(struct trp_engine *e, struct trp_stage *s);
void trp_dag_attempt_gone(struct trp_engine *e, struct trp_stage *s);
/* How many parents' tasks (after … each) task `task` still waits for. */
uint16_t trp_dag_held(const struct trp_stage *s, uint32_t task);

/* ---- seam.c: events that only the DAG cares for ---- */

/* Removes one: TRP_EINVAL: it is not there; TRP_EWAIT: datasets are made of it, or jobs or
 * stages are about it. */
int trp_dag_free_dataset(struct trp_engine *e, uint32_t dataset, trp_error *err);
int trp_dag_dataset(struct trp_engine *e, const struct trp_dataset_spec *spec,
                    trp_error *err);
/* False: it speaks of something that is not there. */
bool trp_dag_event(struct trp_engine *e, const struct trp_event *ev);

/* Timers of the DAG. */
int64_t trp_dag_next_timer(const struct trp_engine *e);
void trp_dag_time(struct trp_engine *e);

/* ---- losses.c ---- */

struct trp_dag_executor *trp_dag_executor(struct trp_engine *e, uint32_t executor);
struct trp_output_place trp_dag_place(const struct trp_engine *e, uint32_t executor);
/* Outputs and cached partitions of an executor are gone, as seen by a task of `epoch`:
 * once an epoch. */
void trp_dag_files_lost(struct trp_engine *e, uint32_t executor, bool files,
                        bool whole_host, uint64_t epoch, bool always);
bool trp_dag_loss_was_planned(const struct trp_engine *e, uint32_t executor);

/* ---- preferences.c: NULL when no task prefers a place; valid until the next call ---- */

const struct trp_preferences *trp_dag_prefer(struct trp_engine *e,
                                             const struct trp_stage *s,
                                             const uint8_t *done,
                                             struct trp_preferences *ret);

#endif
