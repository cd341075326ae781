/*
 * The parts of performing: one function an action. Internal to perform*.c.
 */
#ifndef TRP_DRIVER_PERFORM_H
#define TRP_DRIVER_PERFORM_H

#include "driver/driver_state.h"

void trp_perform_out_of_memory(trp_driver *d);

/* perform_stages.c */
void trp_perform_job_started(trp_driver *d, trp_job_id id);
void trp_perform_job_ended(trp_driver *d, const struct trp_action *a);
void trp_perform_job_drains(trp_driver *d, trp_stage_id id);
void trp_perform_profile_added(trp_driver *d, trp_profile_id id);
void trp_perform_stage_ready(trp_driver *d, trp_stage_id id);
void trp_perform_stage_submitted(trp_driver *d, trp_stage_id id);
void trp_perform_stage_retried(trp_driver *d, const struct trp_action *a);
void trp_perform_stage_ended(trp_driver *d, const struct trp_action *a);
/* A record for a stage that the engine made for a job of datasets. */
struct trp_driver_stage *trp_perform_stage_of_dataset(struct trp_driver_job *j,
                                                      uint32_t id,
                                                      const struct trp_stage_view *v,
                                                      const trp_stage_id *parents,
                                                      uint32_t nparents);
/* The event log learns of a job and its stages, once. */
void trp_perform_log_job(trp_driver *d, struct trp_driver_job *j);
/* Forgets a stage that has ended and of which nothing runs any more. */
void trp_perform_settle(trp_driver *d, trp_stage_id id);

/* perform_attempts.c */
void trp_perform_launch(trp_driver *d, const struct trp_action *action);
void trp_perform_gang(trp_driver *d, const struct trp_action *a);
void trp_perform_synced(trp_driver *d, const struct trp_action *a);
void trp_perform_kill(trp_driver *d, const struct trp_action *a);
void trp_perform_task_end(trp_driver *d, const struct trp_action *action);
/* Has an executor forget a stage, some time. */
void trp_perform_over(trp_driver *d, struct trp_executor_record *x, trp_stage_id stage);
void trp_perform_excluded(trp_driver *d, const struct trp_action *a);
void trp_perform_task_given_up(trp_driver *d, const struct trp_action *a);

#endif
