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

const char *trp_run_flow_name(enum trp_flow f)
{
    static const char *const names[TRP_RUN_FLOWS] = {
        "run_ms",          "cpu_ns", "in",     "records_in",   "out",
        "records_out",     "read",   "remote", "records_read", "written",
        "records_written", "spilled"};
    return names[f];
}

/* A copy in place of what was there; false: out of memory. */
static bool text(const char *v, char **ret)
{
    free(*ret);
    *ret = v ? strdup(v) : NULL;
    return !v || *ret;
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
    new->profiles = json_array();
    return new->profiles ? 0 : TRP_ENOMEM;
}

static int on_application_start(void *context, const struct trp_log_event *e)
{
    const struct reader *r = context;
    return text(e->app_id, &r->now->app_id) ? 0 : TRP_ENOMEM;
}

/* {NAME: amount} of requests. */
static json_t *amounts(json_t *requests)
{
    json_t *o = json_object(), *v;
    const char *name;
    json_object_foreach(requests, name, v) {
        json_t *ours = json_object_get(v, "Troupe Amount");
        json_object_set(o, name, ours ? ours : json_object_get(v, "Amount"));
    }
    return o;
}

static int on_profile(void *context, const struct trp_log_event *e)
{
    const struct reader *r = context;
    json_t *p = json_pack(
        "{s:I, s:s?, s:o?, s:o, s:o}", "id", (json_int_t)e->profile, "name",
        e->profile_name, "slots", e->slots ? json_integer(e->slots) : NULL, "executor",
        amounts(e->executor_requests), "task", amounts(e->task_requests));
    return json_array_append_new(r->now->profiles, p) == 0 ? 0 : TRP_ENOMEM;
}

/* ---- actions ---- */

static bool read_stages(struct trp_run_action *a, const json_t *list)
{
    size_t n = json_array_size(list);
    a->stages = calloc(n + 1, sizeof *a->stages);
    for (size_t i = 0; a->stages && i < n; i++)
        if ((a->stages[a->nstages] = trp_log_id(json_array_get(list, i))) != TRP_NONE)
            a->nstages++;
    return a->stages;
}

static int on_job_start(void *context, const struct trp_log_event *e)
{
    struct trp_run_part *now = ((struct reader *)context)->now;
    struct trp_run_action a = {.id = e->job, .submitted = trp_ms(e->at)};
    if (e->job == TRP_NONE)
        return 0;
    if (!TRP_ARRAY_GROW(now->actions, now->nactions, now->actions_capacity))
        return TRP_ENOMEM;
    bool good = text(e->description, &a.name) && text(e->pool, &a.pool) &&
                read_stages(&a, e->stages);
    now->actions[now->nactions++] = a;
    return good ? 0 : TRP_ENOMEM;
}

static int on_job_end(void *context, const struct trp_log_event *e)
{
    struct trp_run_part *now = ((struct reader *)context)->now;
    const char *word =
        e->result && strcmp(e->result, "JobSucceeded") == 0 ? "succeeded" : "failed";
    for (uint32_t i = now->nactions; i-- > 0;) {
        struct trp_run_action *a = &now->actions[i];
        if (a->id != e->job)
            continue;
        a->ended = trp_ms(e->at);
        return text(e->job_outcome ? e->job_outcome : word, &a->outcome) ? 0
                                                                         : TRP_ENOMEM;
    }
    return 0;
}

/* ---- attempts of stages ---- */

/* NULL: out of memory. */
static struct trp_run_try *try_of(const struct reader *r, struct trp_run_try_key key)
{
    struct trp_run_try *t = NULL;
    HASH_FIND(hh, r->now->tries, &key, sizeof key, t);
    if (t || !(t = calloc(1, sizeof *t)))
        return t;
    t->key = key;
    HASH_ADD(hh, r->now->tries, key, sizeof t->key, t);
    if (t->hh.tbl)
        return t;
    free(t);
    return NULL;
}

/* The try that an event is about. 0 with NULL: it names none; TRP_ENOMEM. */
static int find_try(const struct reader *r, const struct trp_log_event *e,
                    struct trp_run_try **ret)
{
    const struct trp_run_try_key key = {e->stage, e->stage_attempt};
    bool named = e->stage != TRP_NONE && e->stage_attempt != TRP_NONE;
    *ret = named ? try_of(r, key) : NULL;
    return named && !*ret ? TRP_ENOMEM : 0;
}

static int on_stage_submitted(void *context, const struct trp_log_event *e)
{
    struct trp_run_try *t;
    int rc = find_try(context, e, &t);
    if (!t)
        return rc;
    t->submitted = trp_ms(e->at);
    t->ntasks = e->ntasks;
    return text(e->pool, &t->pool) ? 0 : TRP_ENOMEM;
}

/* What tasks have added up, once more as a document of ours. */
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
    struct trp_run_try *t;
    int rc = find_try(context, e, &t);
    if (!t)
        return rc;
    t->ended = trp_ms(e->at);
    t->ntasks = e->ntasks;
    json_decref(t->accumulated);
    t->accumulated =
        json_array_size(e->accumulables) ? accumulated(e->accumulables) : NULL;
    return text(e->failure, &t->reason) ? 0 : TRP_ENOMEM;
}

/* ---- executors ---- */

static struct trp_run_executor *executor(const struct reader *r, uint32_t id)
{
    struct trp_run_executor *x = NULL;
    HASH_FIND(hh, r->now->executors, &id, sizeof id, x);
    return x;
}

static json_t *addresses(json_t *resources)
{
    json_t *o = json_object(), *v;
    const char *name;
    json_object_foreach(resources, name, v) {
        json_object_set(o, name, json_object_get(v, "addresses"));
    }
    return o;
}

static int on_executor_added(void *context, const struct trp_log_event *e)
{
    struct reader *r = context;
    if (executor(r, e->executor))
        return 0;
    struct trp_run_executor *x = calloc(1, sizeof *x);
    if (!x)
        return TRP_ENOMEM;
    x->id = e->executor;
    HASH_ADD(hh, r->now->executors, id, sizeof x->id, x);
    if (!x->hh.tbl) {
        free(x);
        return TRP_ENOMEM;
    }
    x->added = trp_ms(e->at);
    x->cores = e->cores;
    x->profile = e->profile;
    x->resources = addresses(e->resources);
    return text(e->host, &x->host) ? 0 : TRP_ENOMEM;
}

static int on_executor_removed(void *context, const struct trp_log_event *e)
{
    struct trp_run_executor *x = executor(context, e->executor);
    if (!x)
        return 0;
    x->removed = trp_ms(e->at);
    return text(e->removed, &x->reason) ? 0 : TRP_ENOMEM;
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
    struct trp_run_executor *x = executor(context, e->executor);
    struct trp_run_try *t;
    int rc = find_try(context, e, &t);
    if (x)
        count_end(&x->counts, e);
    if (t)
        count_end(&t->counts, e);
    return rc;
}

/* Of an executor there is how many tasks it ran, and for how long. */
static int on_summary(void *context, const struct trp_log_event *e)
{
    const char *name;
    struct trp_run_try *t;
    json_t *share;
    int rc = find_try(context, e, &t);
    if (!t)
        return rc;
    t->counts.succeeded += e->succeeded;
    t->counts.killed += (uint64_t)e->killed + e->recalled;
    t->counts.summarised += (uint64_t)e->succeeded + e->killed + e->recalled;
    add_flows(&t->counts, e);
    json_object_foreach(e->executors, name, share) {
        struct trp_run_executor *x = executor(context, trp_log_executor(name));
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
    if (rc < 0)
        trp_run_parts_free(ret);
    return rc;
}

static void free_counted(struct trp_run_part *p)
{
    struct trp_run_try *t = p->tries, *t_next;
    struct trp_run_executor *x = p->executors, *x_next;
    HASH_CLEAR(hh, p->tries); /* the tables; their elements are still chained */
    HASH_CLEAR(hh, p->executors);
    for (; t; t = t_next) {
        t_next = t->hh.next;
        json_decref(t->accumulated);
        free(t->reason);
        free(t->pool);
        free(t);
    }
    for (; x; x = x_next) {
        x_next = x->hh.next;
        json_decref(x->resources);
        free(x->reason);
        free(x->host);
        free(x);
    }
}

void trp_run_parts_free(struct trp_run_parts *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        struct trp_run_part *now = p->v[i];
        free_counted(now);
        for (uint32_t k = 0; k < now->nactions; k++) {
            free(now->actions[k].name);
            free(now->actions[k].pool);
            free(now->actions[k].outcome);
            free(now->actions[k].stages);
        }
        free(now->actions);
        json_decref(now->profiles);
        free(now->app_id);
        free(now);
    }
    free(p->v);
    *p = (struct trp_run_parts){0};
}
