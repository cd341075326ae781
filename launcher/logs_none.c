/*
 * What has run is in the event log. Where a stage's tasks were summarised there, only
 * their number is known; what is asked for is taken to have run then.
 */
#include "logs_none.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/wording.h"
#include "core/base/array.h"
#include "core/base/ids.h"
#include "driver/pipeline_settings.h"
#include "driver/run_spec.h"
#include "events/log_event.h"

enum { LISTED = 200 }; /* bytes of a list of attempts */

struct seen {
    const char *stage;
    struct trp_task_log want;      /* TRP_NONE: any */
    uint32_t *ids, nids, capacity; /* that the stage has had, in one start or several */
    bool began, summarised;
    uint32_t ntasks, ranks;
    bool ran, attempt, ended;   /* the task, the attempt that is asked for */
    char attempts[LISTED + 48]; /* that the task has had */
    bool more;
};

/* Its index; nids: it is of another stage. */
static uint32_t place_of(const struct seen *s, uint32_t id)
{
    uint32_t i = 0;
    while (i < s->nids && s->ids[i] != id)
        i++;
    return i;
}

/* The stages of another start may have other ids. */
static int take_stage(void *context, const struct trp_log_event *e)
{
    struct seen *s = context;
    uint32_t i = place_of(s, e->stage);
    if (!e->stage_name)
        return 0;
    if (strcmp(e->stage_name, s->stage) != 0) {
        if (i < s->nids)
            s->ids[i] = s->ids[--s->nids];
        return 0;
    }
    s->began = true;
    if (e->ntasks > s->ntasks)
        s->ntasks = e->ntasks;
    if (i < s->nids)
        return 0;
    if (!TRP_ARRAY_GROW(s->ids, s->nids, s->capacity))
        return TRP_ENOMEM;
    s->ids[s->nids++] = e->stage;
    return 0;
}

static void list_attempt(struct seen *s, const struct trp_log_event *e)
{
    size_t n = strlen(s->attempts);
    char *to = s->attempts + n, of_stage[16] = "";
    uint32_t again = trp_log_or_0(e->stage_attempt);
    if (again)
        snprintf(of_stage, sizeof of_stage, ".s%" PRIu32, again);
    if (n < LISTED)
        snprintf(to, sizeof s->attempts - n, "%s%" PRIu32 "%s.%" PRIu32, n ? ", " : "",
                 e->task, of_stage, e->attempt);
    else if (!s->more)
        strcpy(to, ", …");
    s->more = n >= LISTED;
}

static bool is_wanted(const struct trp_task_log *w, const struct trp_log_event *e)
{
    return (w->stage_attempt == TRP_NONE ||
            w->stage_attempt == trp_log_or_0(e->stage_attempt)) &&
           (w->number == TRP_NONE || w->number == e->attempt);
}

static int take_task(void *context, const struct trp_log_event *e)
{
    struct seen *s = context;
    if (e->task != s->want.task || place_of(s, e->stage) == s->nids)
        return 0;
    if (e->kind == TRP_LOG_TASK) {
        s->ran = true;
        s->attempt |= is_wanted(&s->want, e);
        list_attempt(s, e);
    } else if (is_wanted(&s->want, e)) {
        s->ended = true;
        s->ranks = e->ranks;
    }
    return 0;
}

static int take_summary(void *context, const struct trp_log_event *e)
{
    struct seen *s = context;
    s->summarised |= place_of(s, e->stage) < s->nids;
    return 0;
}

/* Whether the pipeline of the run has such a stage. */
static bool has_stage(const char *folder, const char *stage)
{
    struct trp_run_spec *spec = NULL;
    trp_pipeline *p = NULL;
    bool has = false;
    if (trp_run_spec_load(folder, &spec, NULL) == 0 &&
        trp_pipeline_stored(spec, &p, NULL) == 0)
        for (uint32_t i = 0; i < p->nstages && !has; i++)
            has = strcmp(p->stages[i].name, stage) == 0;
    trp_pipeline_free(p);
    trp_run_spec_free(spec);
    return has;
}

static int not_there(const struct seen *s, const char *run, trp_error *err)
{
    uint32_t task = s->want.task;
    if (s->ntasks == 0)
        return trp_error_set(err, TRP_EINVAL, "logs: stage %s of run %s has no tasks",
                             s->stage, run);
    if (s->ntasks == 1)
        return trp_error_set(err, TRP_EINVAL,
                             "logs: stage %s of run %s has no task %" PRIu32
                             "; its only one is 0",
                             s->stage, run, task);
    return trp_error_set(err, TRP_EINVAL,
                         "logs: stage %s of run %s has no task %" PRIu32
                         "; they are 0 to %" PRIu32,
                         s->stage, run, task, s->ntasks - 1);
}

static int judge_task(const struct seen *s, const char *run, trp_error *err)
{
    const struct trp_task_log *w = &s->want;
    if (w->task >= s->ntasks)
        return not_there(s, run, err);
    if (s->summarised && !s->attempt)
        return 0;
    if (!s->ran)
        return trp_error_set(err, TRP_EINVAL,
                             "logs: task %" PRIu32
                             " of stage %s has not run in run %s; troupe explain %s %s "
                             "may say why",
                             w->task, s->stage, run, run, s->stage);
    if (!s->attempt)
        return trp_error_set(err, TRP_EINVAL,
                             "logs: task %" PRIu32
                             " of stage %s has had no such attempt in run %s; what it "
                             "has had is %s",
                             w->task, s->stage, run, s->attempts);
    if (s->ended && w->rank != TRP_NONE && w->rank >= s->ranks)
        return trp_error_set(
            err, TRP_EINVAL,
            s->ranks ? "logs: task %" PRIu32 " of stage %s has no rank %" PRIu32
                       "; they are 0 to %" PRIu32
                     : "logs: task %" PRIu32
                       " of stage %s is no gang: it has no rank %" PRIu32,
            w->task, s->stage, w->rank, s->ranks - 1);
    return 0;
}

static int judge(const struct seen *s, const char *folder, bool one, trp_error *err)
{
    const char *run = strrchr(folder, '/') + 1;
    if (s->began)
        return one ? judge_task(s, run, err) : 0;
    if (has_stage(folder, s->stage))
        return trp_error_set(err, TRP_EINVAL,
                             "logs: no task of stage %s has run in run %s; troupe "
                             "explain %s %s says why",
                             s->stage, run, run, s->stage);
    return trp_error_set(err, TRP_EINVAL, "logs: there is no stage %s in run %s",
                         trp_show(s->stage).text, run);
}

int trp_logs_none(const char *folder, const char *stage,
                  const struct trp_task_log *task, trp_error *err)
{
    static trp_log_take *const take[TRP_LOG_EVENTS] = {
        [TRP_LOG_STAGE] = take_stage,
        [TRP_LOG_TASK] = take_task,
        [TRP_LOG_TASK_END] = take_task,
        [TRP_LOG_SUMMARY] = take_summary,
    };
    struct seen s = {.stage = stage, .want = {.task = TRP_NONE}};
    const struct trp_log_reader reader = {.take = take, .context = &s};
    char path[4400];
    if (task)
        s.want = *task;
    snprintf(path, sizeof path, "%s/events.jsonl", folder);
    int r = trp_log_events_read(path, &reader, 1, err);
    if (r == 0)
        r = judge(&s, folder, task != NULL, err);
    free(s.ids);
    return r;
}
