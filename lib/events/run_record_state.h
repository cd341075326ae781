/* What run_record.c and run_record_task.c share. */
#ifndef TRP_EVENTS_RUN_RECORD_STATE_H
#define TRP_EVENTS_RUN_RECORD_STATE_H

#include "events/event_lines.h"
#include "events/run_record.h"

struct trp_record_reader {
    struct trp_run_records *all;
    struct trp_run_record *now;            /* the last of them; NULL before the first */
    struct trp_resource_profile *profiles; /* of it, by id; slots 0: not heard of */
    uint32_t nprofiles, profiles_capacity;
    uint32_t *step_of; /* by executor: the number of its step, from 1; 0: none */
    uint32_t nstep_of, step_of_capacity;
    const struct trp_run_listener *also;
    size_t nalso;
};

/* A whole number from 0, less than `below`. */
bool trp_record_id(const json_t *number, uint32_t below, uint32_t *ret);
bool trp_record_stage_id(const json_t *number, trp_stage_id *ret);
/* An executor's id, which is text; TRP_NONE: the driver. */
bool trp_record_executor(const json_t *text, uint32_t *ret);
/* The time in a field of the event, which is noted; 0: it has none. */
int64_t trp_record_at(struct trp_record_reader *r, const json_t *event,
                      const char *field);
/* NULL: not heard of. */
const struct trp_resource_profile *trp_record_profile(const struct trp_record_reader *r,
                                                      trp_profile_id id);
/* The step of an executor, or of a gang's attempt; NULL: not in Slurm. */
struct trp_run_step *trp_record_step(const struct trp_record_reader *r, bool gang,
                                     uint32_t id);

/* run_record_task.c */
int trp_record_task_start(struct trp_record_reader *r, const json_t *event);
int trp_record_task_end(struct trp_record_reader *r, const json_t *event);
int trp_record_summary(struct trp_record_reader *r, const json_t *event);

#endif
