/* What run_record.c and run_record_task.c share. */
#ifndef TRP_EVENTS_RUN_RECORD_STATE_H
#define TRP_EVENTS_RUN_RECORD_STATE_H

#include "events/run_record.h"

struct trp_record_reader {
    struct trp_run_records *all;
    struct trp_run_record *now;            /* the last of them; NULL before the first */
    struct trp_resource_profile *profiles; /* of it, by id; slots 0: not heard of */
    uint32_t nprofiles, profiles_capacity;
    uint32_t *step_of; /* by executor: the number of its step, from 1; 0: none */
    uint32_t nstep_of, step_of_capacity;
};

/* The driver, too. */
bool trp_record_is_executor(const struct trp_log_event *e);
bool trp_record_is_stage(const struct trp_log_event *e);
/* NULL: not heard of. */
const struct trp_resource_profile *trp_record_profile(const struct trp_record_reader *r,
                                                      trp_profile_id id);
/* The step of an executor, or of a gang's attempt; NULL: not in Slurm. */
struct trp_run_step *trp_record_step(const struct trp_record_reader *r, bool gang,
                                     uint32_t id);

/* run_record_task.c */
int trp_record_task_start(void *reader, const struct trp_log_event *e);
int trp_record_task_end(void *reader, const struct trp_log_event *e);
int trp_record_summary(void *reader, const struct trp_log_event *e);

#endif
