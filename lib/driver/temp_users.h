/*
 * Which stages need the files of a stage that are temp: those that come after it directly, and
 * of those further below the ones whose `inputs` or `foreach` may name such a file.
 *
 *     struct trp_temp_users u;
 *     trp_temp_users_make(p, &u, &err);
 *     for (k = u.first[stage]; k < u.first[stage + 1]; k++) … u.v[k].stage …
 *     trp_temp_users_free(&u);
 */
#ifndef TRP_DRIVER_TEMP_USERS_H
#define TRP_DRIVER_TEMP_USERS_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/pipeline.h"

struct trp_temp_user {
    uint32_t maker, stage; /* in the pipeline */
    bool each;    /* its task needs what the same task of the maker has made … */
    bool by_task; /* … which may go when that task alone is done */
};

struct trp_temp_users {
    uint32_t *first; /* of each stage, and one more */
    struct trp_temp_user *v;
    uint32_t n, capacity;
};

/* TRP_ENOMEM. */
int trp_temp_users_make(const trp_pipeline *p, struct trp_temp_users *ret,
                        trp_error *err);
void trp_temp_users_free(struct trp_temp_users *u);

/* Whether the stage has an output that is temp and belongs to its tasks, or (`own` false) to
 * the stage. */
bool trp_stage_has_temp(const struct trp_pipeline_stage *s, bool own);

#endif
