/* Settings of a whole run in virtual time, as `troupe run` would settle them. */
#include "sim_whole.h"

#include <stdio.h>

#include "commands.h"
#include "conf/scalars.h"
#include "conf/wording.h"
#include "driver/by.h"
#include "driver/foreach.h"
#include "sim/run/whole.h"

static int count_tasks(void *context, const struct trp_pipeline_stage *s,
                       uint32_t *ret_tasks, trp_error *err)
{
    struct trp_items items = {0};
    int rc = trp_foreach_evaluate(context, s, NULL, &items, err);
    if (rc == 0)
        *ret_tasks = items.ntasks;
    trp_items_free(&items);
    return rc;
}

static int find_by(void *context, const struct trp_pipeline_stage *s,
                   const struct trp_after *a, struct trp_by *ret)
{
    const trp_pipeline *p = context;
    struct trp_items own = {0}, above = {0};
    struct trp_by_tasks by = {0};
    trp_error why;
    int rc = trp_foreach_evaluate(p, s, NULL, &own, &why);
    if (rc == 0)
        rc = trp_foreach_evaluate(p, &p->stages[a->index], NULL, &above, &why);
    if (rc == 0)
        rc = trp_by_make(p, s, a, &own, &above, &by, &why);
    if (rc == 0) {
        *ret = by.by;
        by.values = NULL; /* they are the caller's now */
        by.above = NULL;
        trp_by_free(&by);
    }
    trp_items_free(&own);
    trp_items_free(&above);
    return rc;
}

static int check_by(const trp_pipeline *p, trp_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < p->nstages && rc == 0; i++)
        rc = trp_by_check(p, &p->stages[i], NULL, err);
    return rc;
}

static int read_seed(const struct trp_sim_call *c, const trp_options *o,
                     uint64_t *ret_seed, trp_error *err)
{
    int64_t seed;
    if (!c->seed) {
        *ret_seed = (uint64_t)trp_options_int(o, "scheduler.seed");
        return 0;
    }
    if (!trp_whole_parse(c->seed, &seed) || seed < 0 || seed == INT64_MAX)
        return trp_error_set(err, TRP_EINVAL,
                             "--seed %s: not a whole number from 0 to 2^63 - 2",
                             trp_show(c->seed).text);
    *ret_seed = (uint64_t)seed;
    return 0;
}

int trp_launcher_sim_whole(const struct trp_sim_call *c)
{
    struct trp_settings s;
    trp_error err;
    int code = trp_settings_load(&c->q, &s, &err);
    if (code == 0)
        code = trp_settings_pools(&s, &err);
    struct trp_whole_request w = {.cluster = c->cluster,
                                  .durations = c->durations,
                                  .pipeline = s.pipeline,
                                  .options = s.options,
                                  .site = s.site,
                                  .pools = &s.pools,
                                  .policy = c->policy,
                                  .compare = c->compare,
                                  .json = c->json,
                                  .record = c->record,
                                  .count = count_tasks,
                                  .by = find_by,
                                  .context = s.pipeline};
    if (code == 0)
        code = read_seed(c, s.options, &w.seed, &err);
    if (code == 0)
        code = check_by(s.pipeline, &err);
    if (code == 0)
        code = trp_whole_play(&w, stdout, &err);
    trp_settings_free(&s);
    int status = trp_launcher_printed(0);
    return code < 0 ? trp_launcher_fail(&err) : status;
}
