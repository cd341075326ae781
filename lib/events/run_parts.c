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

struct reader {
    struct trp_run_parts *all;
    struct trp_run_part *now; /* the last of them; NULL before the first */
};

#define READ "Shuffle Read Metrics"
#define WRITE "Shuffle Write Metrics"

/* In the order of enum trp_run_flow. */
static const struct {
    const char *name;
    const char *of, *field; /* of "Task Metrics"; `of` NULL: of these themselves */
    const char *sum;        /* of a TroupeTaskSummary; NULL: as `field` */
} flows[TRP_RUN_FLOWS] = {
    {"run_ms",          NULL,             "Executor Run Time",       NULL                       },
    {"cpu_ns",          NULL,             "Executor CPU Time",       NULL                       },
    {"in",              "Input Metrics",  "Bytes Read",              NULL                       },
    {"records_in",      "Input Metrics",  "Records Read",            NULL                       },
    {"out",             "Output Metrics", "Bytes Written",           NULL                       },
    {"records_out",     "Output Metrics", "Records Written",         NULL                       },
    {"read",            READ,             "Local Bytes Read",        "Shuffle Bytes Read"       },
    {"remote",          READ,             "Remote Bytes Read",       "Shuffle Remote Bytes Read"},
    {"records_read",    READ,             "Total Records Read",      "Shuffle Records Read"     },
    {"written",         WRITE,            "Shuffle Bytes Written",   NULL                       },
    {"records_written", WRITE,            "Shuffle Records Written", NULL                       },
    {"spilled",         NULL,             "Disk Bytes Spilled",      NULL                       },
};

const char *trp_run_flow_name(enum trp_run_flow f)
{
    return flows[f].name;
}

/* ---- reading fields ---- */

static bool number(const json_t *v, uint32_t *ret)
{
    json_int_t n = json_is_integer(v) ? json_integer_value(v) : -1;
    *ret = (uint32_t)n;
    return n >= 0 && n < UINT32_MAX;
}

/* Executors' numbers are text; "driver" is none. */
static bool executor_number(const json_t *v, uint32_t *ret)
{
    const char *text = json_string_value(v);
    char *end = NULL;
    unsigned long n = text ? strtoul(text, &end, 10) : 0;
    *ret = (uint32_t)n;
    return text && *text && !*end && n < UINT32_MAX;
}

static int64_t ms(const json_t *of, const char *field)
{
    return trp_event_ms(json_object_get(of, field)) / 1000000;
}

/* A copy of a member that is text, in place of what was there; false: out of memory. */
static bool text(const json_t *of, const char *field, char **ret)
{
    const char *v = json_string_value(json_object_get(of, field));
    free(*ret);
    *ret = v ? strdup(v) : NULL;
    return !v || *ret;
}

/* ---- the run ---- */

static int on_log_start(void *context, const json_t *event)
{
    struct reader *r = context;
    struct trp_run_part *new = calloc(1, sizeof *new);
    (void)event;
    if (!new || !TRP_ARRAY_GROW(r->all->v, r->all->n, r->all->capacity)) {
        free(new);
        return TRP_ENOMEM;
    }
    r->all->v[r->all->n++] = r->now = new;
    new->profiles = json_array();
    return new->profiles ? 0 : TRP_ENOMEM;
}

static int on_application_start(void *context, const json_t *event)
{
    struct reader *r = context;
    return text(event, "App ID", &r->now->app_id) ? 0 : TRP_ENOMEM;
}

/* {NAME: amount} of requests. */
static json_t *amounts(const json_t *requests)
{
    json_t *o = json_object(), *v;
    const char *name;
    json_object_foreach((json_t *)(uintptr_t)requests, name, v) {
        const json_t *ours = json_object_get(v, "Troupe Amount");
        json_object_set(
            o, name, ours ? (json_t *)(uintptr_t)ours : json_object_get(v, "Amount"));
    }
    return o;
}

static int on_profile(void *context, const json_t *event)
{
    struct reader *r = context;
    json_t *name = json_object_get(event, "Troupe Profile Name");
    json_t *slots = json_object_get(event, "Troupe Slots");
    json_t *p = json_pack(
        "{s:O, s:O?, s:O?, s:o, s:o}", "id",
        json_object_get(event, "Resource Profile Id"), "name", name, "slots", slots,
        "executor", amounts(json_object_get(event, "Executor Resource Requests")),
        "task", amounts(json_object_get(event, "Task Resource Requests")));
    return json_array_append_new(r->now->profiles, p) == 0 ? 0 : TRP_ENOMEM;
}

/* ---- actions ---- */

static bool read_stages(struct trp_run_action *a, const json_t *list)
{
    size_t n = json_array_size(list);
    a->stages = calloc(n + 1, sizeof *a->stages);
    for (size_t i = 0; a->stages && i < n; i++)
        if (number(json_array_get(list, i), &a->stages[a->nstages]))
            a->nstages++;
    return a->stages;
}

static int on_job_start(void *context, const json_t *event)
{
    struct reader *r = context;
    struct trp_run_part *now = r->now;
    const json_t *properties = json_object_get(event, "Properties");
    struct trp_run_action a = {.submitted = ms(event, "Submission Time")};
    if (!number(json_object_get(event, "Job ID"), &a.id))
        return 0;
    if (!TRP_ARRAY_GROW(now->actions, now->nactions, now->actions_capacity))
        return TRP_ENOMEM;
    bool good = text(properties, "spark.job.description", &a.name) &&
                text(properties, "spark.scheduler.pool", &a.pool) &&
                read_stages(&a, json_object_get(event, "Stage IDs"));
    now->actions[now->nactions++] = a;
    return good ? 0 : TRP_ENOMEM;
}

static int on_job_end(void *context, const json_t *event)
{
    struct reader *r = context;
    const json_t *result = json_object_get(event, "Job Result");
    const char *word = json_string_value(json_object_get(result, "Result"));
    uint32_t id;
    if (!number(json_object_get(event, "Job ID"), &id))
        return 0;
    for (uint32_t i = r->now->nactions; i-- > 0;) {
        struct trp_run_action *a = &r->now->actions[i];
        if (a->id != id)
            continue;
        a->ended = ms(event, "Completion Time");
        if (!text(event, "Troupe Outcome", &a->outcome))
            return TRP_ENOMEM;
        if (a->outcome)
            return 0;
        a->outcome =
            strdup(word && strcmp(word, "JobSucceeded") == 0 ? "succeeded" : "failed");
        return a->outcome ? 0 : TRP_ENOMEM;
    }
    return 0;
}

/* ---- attempts of stages ---- */

/* NULL: out of memory. */
static struct trp_run_try *try_of(struct reader *r, struct trp_run_try_key key)
{
    struct trp_run_try *t;
    HASH_FIND(hh, r->now->tries, &key, sizeof key, t);
    if (t)
        return t;
    t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->key = key;
    HASH_ADD(hh, r->now->tries, key, sizeof t->key, t);
    if (t->hh.tbl)
        return t;
    free(t);
    return NULL;
}

static bool key_in(const json_t *of, struct trp_run_try_key *ret)
{
    return number(json_object_get(of, "Stage ID"), &ret->stage) &&
           number(json_object_get(of, "Stage Attempt ID"), &ret->attempt);
}

static int on_stage_submitted(void *context, const json_t *event)
{
    struct reader *r = context;
    const json_t *info = json_object_get(event, "Stage Info");
    const json_t *properties = json_object_get(event, "Properties");
    struct trp_run_try_key key;
    if (!key_in(info, &key))
        return 0;
    struct trp_run_try *t = try_of(r, key);
    if (!t)
        return TRP_ENOMEM;
    t->submitted = ms(info, "Submission Time");
    number(json_object_get(info, "Number of Tasks"), &t->ntasks);
    return text(properties, "spark.scheduler.pool", &t->pool) ? 0 : TRP_ENOMEM;
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

static int on_stage_completed(void *context, const json_t *event)
{
    struct reader *r = context;
    const json_t *info = json_object_get(event, "Stage Info");
    const json_t *list = json_object_get(info, "Accumulables");
    struct trp_run_try_key key;
    if (!key_in(info, &key))
        return 0;
    struct trp_run_try *t = try_of(r, key);
    if (!t)
        return TRP_ENOMEM;
    t->ended = ms(info, "Completion Time");
    number(json_object_get(info, "Number of Tasks"), &t->ntasks);
    json_decref(t->accumulated);
    t->accumulated = json_array_size(list) ? accumulated(list) : NULL;
    return text(info, "Failure Reason", &t->reason) ? 0 : TRP_ENOMEM;
}

/* ---- executors ---- */

static struct trp_run_executor *executor(const struct reader *r, const json_t *id)
{
    struct trp_run_executor *x = NULL;
    uint32_t n;
    if (executor_number(id, &n))
        HASH_FIND(hh, r->now->executors, &n, sizeof n, x);
    return x;
}

static json_t *addresses(const json_t *resources)
{
    json_t *o = json_object(), *v;
    const char *name;
    json_object_foreach((json_t *)(uintptr_t)resources, name, v) {
        json_object_set(o, name, json_object_get(v, "addresses"));
    }
    return o;
}

static int on_executor_added(void *context, const json_t *event)
{
    struct reader *r = context;
    const json_t *info = json_object_get(event, "Executor Info");
    uint32_t id;
    if (!executor_number(json_object_get(event, "Executor ID"), &id) ||
        executor(r, json_object_get(event, "Executor ID")))
        return 0;
    struct trp_run_executor *x = calloc(1, sizeof *x);
    if (!x)
        return TRP_ENOMEM;
    x->id = id;
    HASH_ADD(hh, r->now->executors, id, sizeof x->id, x);
    if (!x->hh.tbl) {
        free(x);
        return TRP_ENOMEM;
    }
    x->added = ms(event, "Timestamp");
    x->cores = json_integer_value(json_object_get(info, "Total Cores"));
    number(json_object_get(info, "Resource Profile Id"), &x->profile);
    x->resources = addresses(json_object_get(info, "Resources"));
    return text(info, "Host", &x->host) ? 0 : TRP_ENOMEM;
}

static int on_executor_removed(void *context, const json_t *event)
{
    const struct reader *r = context;
    struct trp_run_executor *x = executor(r, json_object_get(event, "Executor ID"));
    if (!x)
        return 0;
    x->removed = ms(event, "Timestamp");
    return text(event, "Removed Reason", &x->reason) ? 0 : TRP_ENOMEM;
}

/* ---- tasks ---- */

/* A log may have any numbers. */
static void add(int64_t *to, int64_t n)
{
    if (n > 0 && __builtin_add_overflow(*to, n, to))
        *to = INT64_MAX;
}

static void count_end(struct trp_run_counts *c, const json_t *event)
{
    const json_t *info = json_object_get(event, "Task Info");
    const json_t *use = json_object_get(event, "Task Metrics");
    const char *word = json_string_value(
        json_object_get(json_object_get(event, "Task End Reason"), "Reason"));
    if (word && strcmp(word, "Success") == 0)
        c->succeeded++;
    else if (word &&
             (strcmp(word, "TaskKilled") == 0 || strcmp(word, "TaskCommitDenied") == 0))
        c->killed++;
    else
        c->failed++;
    add(&c->task_ms, ms(info, "Finish Time") - ms(info, "Launch Time"));
    for (size_t i = 0; i < TRP_RUN_FLOWS; i++) {
        const json_t *of = flows[i].of ? json_object_get(use, flows[i].of) : use;
        int64_t v = json_integer_value(json_object_get(of, flows[i].field));
        add(&c->flow[i], v);
        if (i == TRP_FLOW_REMOTE)
            add(&c->flow[TRP_FLOW_READ], v);
    }
}

static int on_task_end(void *context, const json_t *event)
{
    struct reader *r = context;
    const json_t *info = json_object_get(event, "Task Info");
    struct trp_run_executor *x = executor(r, json_object_get(info, "Executor ID"));
    struct trp_run_try_key key;
    if (x)
        count_end(&x->counts, event);
    if (!key_in(event, &key))
        return 0;
    struct trp_run_try *t = try_of(r, key);
    if (!t)
        return TRP_ENOMEM;
    count_end(&t->counts, event);
    return 0;
}

static uint64_t count(const json_t *of, const char *field)
{
    json_int_t n = json_integer_value(json_object_get(of, field));
    return n > 0 ? (uint64_t)n : 0;
}

/* Of an executor there is how many tasks it ran, and for how long. */
static int on_summary(void *context, const json_t *event)
{
    struct reader *r = context;
    json_t *shares = json_object_get(event, "Executors"), *share;
    struct trp_run_try_key key;
    const char *id;
    if (!key_in(event, &key))
        return 0;
    struct trp_run_try *t = try_of(r, key);
    if (!t)
        return TRP_ENOMEM;
    struct trp_run_counts *c = &t->counts;
    uint64_t succeeded = count(event, "Succeeded");
    uint64_t killed = count(event, "Killed") + count(event, "Recalled");
    c->succeeded += succeeded;
    c->killed += killed;
    c->summarised += succeeded + killed;
    for (size_t i = 0; i < TRP_RUN_FLOWS; i++)
        add(&c->flow[i], json_integer_value(json_object_get(
                             event, flows[i].sum ? flows[i].sum : flows[i].field)));
    json_object_foreach(shares, id, share) {
        json_t *name = json_string(id);
        struct trp_run_executor *x = executor(r, name);
        json_decref(name);
        if (!x)
            continue;
        x->counts.summarised += count(share, "Tasks");
        add(&x->counts.flow[TRP_FLOW_RUN],
            json_integer_value(json_object_get(share, "Run Time")));
    }
    return 0;
}

/* ---- the whole ---- */

int trp_run_parts_read(const char *file, const struct trp_run_listener *also,
                       struct trp_run_records *ret_records, struct trp_run_parts *ret,
                       trp_error *err)
{
    static const struct trp_event_line_kind kinds[] = {
        {"SparkListenerLogStart",             on_log_start        },
        {"SparkListenerApplicationStart",     on_application_start},
        {"SparkListenerResourceProfileAdded", on_profile          },
        {"SparkListenerJobStart",             on_job_start        },
        {"SparkListenerJobEnd",               on_job_end          },
        {"SparkListenerStageSubmitted",       on_stage_submitted  },
        {"SparkListenerStageCompleted",       on_stage_completed  },
        {"SparkListenerExecutorAdded",        on_executor_added   },
        {"SparkListenerExecutorRemoved",      on_executor_removed },
        {"SparkListenerTaskEnd",              on_task_end         },
        {"TroupeTaskSummary",                 on_summary          },
    };
    struct reader r = {.all = ret};
    *ret = (struct trp_run_parts){0};
    struct trp_run_listener v[2] = {
        {kinds, sizeof kinds / sizeof *kinds, &r}
    };
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
