/*
 * Which tasks of a stage above the tasks of a stage wait for (`after: [{stage: S, by: COLUMN}]`):
 * those that have a row with its value in the column.
 */
#ifndef TRP_DRIVER_BY_H
#define TRP_DRIVER_BY_H

#include "driver/done_log.h"
#include "driver/foreach.h"

struct trp_by_tasks {
    struct trp_by by; /* as the engine is told; points to: */
    uint32_t *values;
    struct trp_by_task *above;
    uint32_t *first, *tasks; /* of each value the stage's tasks that have it */
    struct trp_print *set;   /* of each value, of who those above are */
    uint8_t *stale; /* of each value: 1: one of those above runs again; 2: one has
                              * succeeded, and the records of these are dropped */
};

/* `own` and `above` are the tasks of `s` and of the stage that `a` names. TRP_EINVAL with
 * "FILE:LINE:COL: stage S: …" when a table has no such column, the rows of a group of `s`
 * differ in it, or nothing above has a value; TRP_ENOMEM. */
int trp_by_make(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                const struct trp_after *a, const struct trp_items *own,
                const struct trp_items *above, struct trp_by_tasks *ret,
                trp_error *err);
void trp_by_free(struct trp_by_tasks *b);
/* Before anything runs: the same of every stage that a stage comes after so, where both
 * tables are known. */
int trp_by_check(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                 const char *base, trp_error *err);
/* The pairs of a task above, [*ret, the end). */
const struct trp_by_task *trp_by_of(const struct trp_by_tasks *b, uint32_t task,
                                    const struct trp_by_task **ret_end);

#endif
