/*
 * One function an event. run_record.c has looked at each before: what has no number that
 * it should have, it has refused, so that here such an event is only left out.
 *
 * How attempts are counted is the History Server's way, so that its figures and these can
 * be compared: what the run itself ended, and what was not let name its output, is killed
 * there, all else that did not succeed has failed, whether it counts against its task's
 * limit or not.
 */
#include "events/run_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "core/base/time.h"

struct reader {
    struct trp_run_parts *all;
    struct trp_run_part *now; /* the last of them; NULL before the first */
};

/* ---- what is told ---- */

/* Sets these members of a document. */
static int tell(json_t *document, json_t *take_members)
{
    return json_object_update_new(document, take_members) == 0 ? 0 : TRP_ENOMEM;
}

static int tell_one_more(json_t *list, json_t *take_v)
{
    return json_array_append_new(list, take_v) == 0 ? 0 : TRP_ENOMEM;
}

static json_t *ms_or_null(int64_t ns)
{
    return trp_ms(ns) ? json_integer(trp_ms(ns)) : json_null();
}

static json_t *list_of(const struct reader *r, const char *what)
{
    return json_object_get(r->now->told, what);
}

/* {NAME: that member of what is there}. */
static json_t *each(json_t *object, const char *member, const char *else_member)
{
    json_t *o = json_object(), *v;
    const char *name;
    json_object_foreach(object, name, v) {
        json_t *found = json_object_get(v, member);
        json_object_set(o, name, found ? found : json_object_get(v, else_member));
    }
    return o;
}

/* ---- the run ---- */

static int on_log_start(void *context, const struct trp_log_event *e)
{
    struct reader *r = context;
    struct trp_run_part *new = calloc(1, sizeof *new);
    (void)e;
    if (!new || !TRP_ARRAY_GROW(r->all->v, r->all->n, r->all->capacity)) {
        free(new);
        return TRP_ENOMEM;
    }
    r->all->v[r->all->n++] = r->now = new;
    new->told = json_pack("{s:n, s:[], s:[], s:[]}", "app_id", "actions", "executors",
                          "profiles");
    return new->told ? 0 : TRP_ENOMEM;
}

static int on_application_start(void *context, const struct trp_log_event *e)
{
    const struct reader *r = context;
    return tell(r->now->told, json_pack("{s:s?}", "app_id", e->app_id));
}

static int on_profile(void *context, const struct trp_log_event *e)
{
    return tell_one_more(
        list_of(context, "profiles"),
        json_pack("{s:I, s:s?, s:o?, s:o, s:o}", "id", (json_int_t)e->profile, "name",
                  e->profile_name, "slots", e->slots ? json_integer(e->slots) : NULL,
                  "executor", each(e->executor_requests, "Troupe Amount", "Amount"),
                  "task", each(e->task_requests, "Troupe Amount", "Amount")));
}

/* ---- actions ---- */

static int on_job_start(void *context, const struct trp_log_event *e)
{
    json_t *stages = json_array(), *id;
    size_t i;
    if (e->job == TRP_NONE) {
        json_decref(stages);
        return 0;
    }
    json_array_foreach(e->stages, i, id) {
        if (trp_log_id(id) != TRP_NONE)
            json_array_append(stages, id);
    }
    return tell_one_more(list_of(context, "actions"),
                         json_pack("{s:I, s:s?, s:s?, s:o, s:n, s:n, s:o}", "id",
                                   (json_int_t)e->job, "name", e->description, "pool",
                                   e->pool, "submitted", ms_or_null(e->at), "ended",
                                   "outcome", "stages", stages));
}

static int on_job_end(void *context, const struct trp_log_event *e)
{
    const json_t *actions = list_of(context, "actions");
    const char *word =
        e->result && strcmp(e->result, "JobSucceeded") == 0 ? "succeeded" : "failed";
    for (size_t i = json_array_size(actions); i-- > 0;) {
        json_t *a = json_array_get(actions, i);
        if (json_integer_value(json_object_get(a, "id")) == e->job)
            return tell(a,
                        json_pack("{s:o, s:s}", "ended", ms_or_null(e->at), "outcome",
                                  e->job_outcome ? e->job_outcome : word));
    }
    return 0;
}

/* ---- attempts of stages, and executors ---- */

static struct trp_run_counted *find(struct trp_run_counted *table,
                                    struct trp_run_key key)
{
    struct trp_run_counted *c = NULL;
    HASH_FIND(hh, table, &key, sizeof key, c);
    return c;
}

static struct trp_run_counted *find_executor(const struct reader *r, uint32_t id)
{
    return find(r->now->executors, (struct trp_run_key){id, 0});
}

/* NULL: out of memory. */
static struct trp_run_counted *add_counted(struct trp_run_counted **table,
                                           struct trp_run_key key, json_t *take_told)
{
    struct trp_run_counted *c = calloc(1, sizeof *c);
    if (c && take_told) {
        c->key = key;
        c->told = take_told;
        HASH_ADD(hh, *table, key, sizeof c->key, c);
        if (c->hh.tbl)
            return c;
    }
    json_decref(take_told);
    free(c);
    return NULL;
}

/* The try that an event is about. 0 with NULL: it names none; TRP_ENOMEM. */
static int find_try(const struct reader *r, const struct trp_log_event *e,
                    struct trp_run_counted **ret)
{
    const struct trp_run_key key = {e->stage, e->stage_attempt};
    bool named = e->stage != TRP_NONE && e->stage_attempt != TRP_NONE;
    *ret = named ? find(r->now->tries, key) : NULL;
    if (*ret || !named)
        return 0;
    *ret = add_counted(&r->now->tries, key,
                       json_pack("{s:I, s:i, s:n, s:n, s:n, s:n, s:[]}", "attempt",
                                 (json_int_t)e->stage_attempt, "tasks", 0, "submitted",
                                 "ended", "reason", "pool", "accumulated"));
    return *ret ? 0 : TRP_ENOMEM;
}

static int on_stage_submitted(void *context, const struct trp_log_event *e)
{
    struct trp_run_counted *t;
    int rc = find_try(context, e, &t);
    return t ? tell(t->told,
                    json_pack("{s:o, s:I, s:s?}", "submitted", ms_or_null(e->at),
                              "tasks", (json_int_t)e->ntasks, "pool", e->pool))
             : rc;
}

/* What tasks have added up. */
static json_t *accumulated(const json_t *list)
{
    json_t *of = json_array(), *a;
    size_t i;
    json_array_foreach(list, i, a) {
        const char *value = json_string_value(json_object_get(a, "Value"));
        json_array_append_new(
            of, json_pack("{s:O?, s:O?, s:I}", "id", json_object_get(a, "ID"), "name",
                          json_object_get(a, "Name"), "value",
                          (json_int_t)strtoll(value ? value : "0", NULL, 10)));
    }
    return of;
}

static int on_stage_completed(void *context, const struct trp_log_event *e)
{
    struct trp_run_counted *t;
    int rc = find_try(context, e, &t);
    return t ? tell(t->told,
                    json_pack("{s:o, s:I, s:s?, s:o}", "ended", ms_or_null(e->at),
                              "tasks", (json_int_t)e->ntasks, "reason", e->failure,
                              "accumulated", accumulated(e->accumulables)))
             : rc;
}

static int on_executor_added(void *context, const struct trp_log_event *e)
{
    const struct reader *r = context;
    if (find_executor(r, e->executor))
        return 0;
    const struct trp_run_counted *x =
        add_counted(&r->now->executors, (struct trp_run_key){e->executor, 0},
                    json_pack("{s:I, s:s?, s:I, s:I, s:o, s:n, s:n, s:o}", "id",
                              (json_int_t)e->executor, "host", e->host, "profile",
                              (json_int_t)e->profile, "cores", (json_int_t)e->cores,
                              "added", ms_or_null(e->at), "removed", "reason",
                              "resources", each(e->resources, "addresses", "")));
    return x ? tell_one_more(list_of(context, "executors"), json_incref(x->told))
             : TRP_ENOMEM;
}

static int on_executor_removed(void *context, const struct trp_log_event *e)
{
    const struct trp_run_counted *x = find_executor(context, e->executor);
    return x ? tell(x->told, json_pack("{s:o, s:s?}", "removed", ms_or_null(e->at),
                                       "reason", e->removed))
             : 0;
}

/* ---- tasks ---- */

/* A log may have any numbers. */
static void add(int64_t *to, int64_t n)
{
    if (n > 0 && __builtin_add_overflow(*to, n, to))
        *to = INT64_MAX;
}

static void add_flows(struct trp_run_counts *c, const struct trp_log_event *e)
{
    for (int i = 0; i < TRP_RUN_FLOWS; i++)
        add(&c->flow[i], (int64_t)e->flow[i]);
}

static void count_end(struct trp_run_counts *c, const struct trp_log_event *e)
{
    const char *word = e->end ? e->end : "";
    if (strcmp(word, "Success") == 0)
        c->succeeded++;
    else if (strcmp(word, "TaskKilled") == 0 || strcmp(word, "TaskCommitDenied") == 0)
        c->killed++;
    else
        c->failed++;
    add(&c->task_ms, trp_ms(e->at) - trp_ms(e->launched));
    add_flows(c, e);
}

static int on_task_end(void *context, const struct trp_log_event *e)
{
    const struct reader *r = context;
    struct trp_run_counted *x = find_executor(r, e->executor), *t;
    int rc = find_try(r, e, &t);
    if (x)
        count_end(&x->counts, e);
    if (t)
        count_end(&t->counts, e);
    return rc;
}

/* Of an executor there is how many tasks it ran, and for how long. */
static int on_summary(void *context, const struct trp_log_event *e)
{
    const struct reader *r = context;
    const char *name;
    struct trp_run_counted *t;
    json_t *share;
    int rc = find_try(r, e, &t);
    if (!t)
        return rc;
    t->counts.succeeded += e->succeeded;
    t->counts.killed += (uint64_t)e->killed + e->recalled;
    t->counts.summarised += (uint64_t)e->succeeded + e->killed + e->recalled;
    add_flows(&t->counts, e);
    json_object_foreach(e->executors, name, share) {
        struct trp_run_counted *x = find_executor(r, trp_log_executor(name));
        uint32_t tasks = trp_log_id(json_object_get(share, "Tasks"));
        if (!x)
            continue;
        x->counts.summarised += tasks == TRP_NONE ? 0 : tasks;
        add(&x->counts.flow[TRP_FLOW_RUN],
            json_integer_value(json_object_get(share, "Run Time")));
    }
    return 0;
}

/* ---- the whole ---- */

static void tell_counts(json_t *o, const struct trp_run_counts *c)
{
    static const char *const names[TRP_RUN_FLOWS] = {
        "run_ms",          "cpu_ns", "in",     "records_in",   "out",
        "records_out",     "read",   "remote", "records_read", "written",
        "records_written", "spilled"};
    tell(o, json_pack("{s:I, s:I, s:I, s:I, s:I}", "succeeded",
                      (json_int_t)c->succeeded, "failed", (json_int_t)c->failed,
                      "killed", (json_int_t)c->killed, "summarised",
                      (json_int_t)c->summarised, "task_ms", (json_int_t)c->task_ms));
    for (int i = 0; i < TRP_RUN_FLOWS; i++)
        json_object_set_new(o, names[i], json_integer(c->flow[i]));
}

static void tell_all_counts(struct trp_run_counted *table)
{
    for (const struct trp_run_counted *c = table; c; c = c->hh.next)
        tell_counts(c->told, &c->counts);
}

int trp_run_parts_read(const char *file, const struct trp_log_reader *also,
                       struct trp_run_records *ret_records, struct trp_run_parts *ret,
                       trp_error *err)
{
    static trp_log_take *const take[TRP_LOG_EVENTS] = {
        [TRP_LOG_START] = on_log_start,
        [TRP_LOG_APPLICATION] = on_application_start,
        [TRP_LOG_PROFILE] = on_profile,
        [TRP_LOG_JOB] = on_job_start,
        [TRP_LOG_JOB_END] = on_job_end,
        [TRP_LOG_STAGE] = on_stage_submitted,
        [TRP_LOG_STAGE_END] = on_stage_completed,
        [TRP_LOG_EXECUTOR] = on_executor_added,
        [TRP_LOG_EXECUTOR_END] = on_executor_removed,
        [TRP_LOG_TASK_END] = on_task_end,
        [TRP_LOG_SUMMARY] = on_summary,
    };
    struct reader r = {.all = ret};
    struct trp_log_reader v[TRP_RUN_READERS] = {
        {.take = take, .context = &r}
    };
    *ret = (struct trp_run_parts){0};
    if (also)
        v[1] = *also;
    int rc = trp_run_records_read_also(file, v, also ? 2 : 1, ret_records, err);
    for (uint32_t i = 0; i < ret->n && rc == 0; i++) {
        tell_all_counts(ret->v[i]->tries);
        tell_all_counts(ret->v[i]->executors);
    }
    if (rc < 0)
        trp_run_parts_free(ret);
    return rc;
}

static void free_counted(struct trp_run_counted *table)
{
    struct trp_run_counted *c = table, *next;
    HASH_CLEAR(hh, table); /* the table; its elements are still chained */
    for (; c; c = next) {
        next = c->hh.next;
        json_decref(c->told);
        free(c);
    }
}

void trp_run_parts_free(struct trp_run_parts *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        free_counted(p->v[i]->tries);
        free_counted(p->v[i]->executors);
        json_decref(p->v[i]->told);
        free(p->v[i]);
    }
    free(p->v);
    *p = (struct trp_run_parts){0};
}
