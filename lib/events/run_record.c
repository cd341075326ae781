/*
 * One function an event, told to the same statistics as when the run was under way
 * (event_calls.c), so that its summary is the same. Events about tasks are in
 * run_record_task.c.
 *
 * What is read is bounded before it becomes an index: a log may be anything.
 */
#include "events/run_record.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "events/run_record_state.h"

#define LOG_START "SparkListenerLogStart"
enum { PROFILES_MAX = 16384, EXECUTORS_MAX = 1 << 20, STAGES_MAX = 1000000 };

/* ---- reading fields ---- */

bool trp_record_id(const json_t *number, uint32_t below, uint32_t *ret)
{
    json_int_t n = json_integer_value(number);
    if (!json_is_integer(number) || n < 0 || n >= below)
        return false;
    *ret = (uint32_t)n;
    return true;
}

bool trp_record_executor(const json_t *text, uint32_t *ret)
{
    const char *id = json_string_value(text);
    char *end = NULL;
    if (!id || !*id)
        return false;
    *ret = TRP_NONE;
    if (strcmp(id, "driver") == 0)
        return true;
    unsigned long n = strtoul(id, &end, 10);
    *ret = (uint32_t)n;
    return !*end && n < EXECUTORS_MAX;
}

bool trp_record_stage_id(const json_t *number, trp_stage_id *ret)
{
    return trp_record_id(number, STAGES_MAX, &ret->n);
}

int64_t trp_record_at(struct trp_record_reader *r, const json_t *event,
                      const char *field)
{
    int64_t at = trp_event_ms(json_object_get(event, field));
    if (at)
        trp_statistics_at(&r->now->statistics, at);
    return at;
}

const struct trp_resource_profile *trp_record_profile(const struct trp_record_reader *r,
                                                      trp_profile_id id)
{
    return id.n < r->nprofiles && r->profiles[id.n].slots ? &r->profiles[id.n] : NULL;
}

/* ---- the run ---- */

static int on_log_start(struct trp_record_reader *r)
{
    struct trp_run_record *new = calloc(1, sizeof *new);
    if (!new || !TRP_ARRAY_GROW(r->all->v, r->all->n, r->all->capacity)) {
        free(new);
        return TRP_ENOMEM;
    }
    r->all->v[r->all->n++] = r->now = new;
    r->nprofiles = r->nstep_of = 0;
    return 0;
}

static int on_application_start(struct trp_record_reader *r, const json_t *event)
{
    const char *name = json_string_value(json_object_get(event, "App Name"));
    bool later = json_object_get(event, "Troupe Resumed");
    r->now->started = trp_record_at(r, event, later ? "Troupe Resumed" : "Timestamp");
    if (!name || r->now->app_name)
        return TRP_EINVAL;
    r->now->app_name = strdup(name);
    return r->now->app_name ? 0 : TRP_ENOMEM;
}

static int on_application_end(struct trp_record_reader *r, const json_t *event)
{
    trp_record_at(r, event, "Timestamp");
    r->now->complete = true;
    r->now->exit_status = (int)json_integer_value(json_object_get(event, "ExitCode"));
    return 0;
}

static int on_time(struct trp_record_reader *r, const json_t *event)
{
    trp_record_at(r, event, "Timestamp");
    return 0;
}

static int on_job_end(struct trp_record_reader *r, const json_t *event)
{
    trp_record_at(r, event, "Completion Time");
    return 0;
}

/* ---- profiles and stages ---- */

static struct trp_custom *custom(struct trp_resource_profile *p, const char *name)
{
    for (uint32_t i = 0; i < p->ncustom; i++)
        if (strcmp(p->custom[i].name, name) == 0)
            return &p->custom[i];
    if (p->ncustom == TRP_PROFILE_RESOURCES || strlen(name) >= TRP_RESOURCE_NAME_MAX)
        return NULL;
    strcpy(p->custom[p->ncustom].name, name);
    return &p->custom[p->ncustom++];
}

/* As it was asked for, where Spark's readers cannot be told that. */
static double task_amount(const json_t *request)
{
    const json_t *ours = json_object_get(request, "Troupe Amount");
    return json_number_value(ours ? ours : json_object_get(request, "Amount"));
}

static bool is_built_in(const char *name)
{
    static const char *const names[] = {"memory",         "memoryOverhead", "offHeap",
                                        "pyspark.memory", "cores",          "cpus"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static int64_t amount(const json_t *request)
{
    return json_integer_value(json_object_get(request, "Amount"));
}

static bool read_resources(struct trp_resource_profile *p, const json_t *event)
{
    json_t *executor = json_object_get(event, "Executor Resource Requests");
    json_t *task = json_object_get(event, "Task Resource Requests"), *v;
    const char *name;
    struct trp_custom *c;
    if (!json_is_object(executor) || !json_is_object(task))
        return false;
    double cpus =
        json_number_value(json_object_get(json_object_get(task, "cpus"), "Amount"));
    p->cores = amount(json_object_get(executor, "cores"));
    p->task_cpus = cpus >= 1 && cpus <= 1e6 ? (int64_t)cpus : 0;
    json_object_foreach(executor, name, v) {
        if (!is_built_in(name) && (c = custom(p, name)))
            c->executor = amount(v);
    }
    json_object_foreach(task, name, v) {
        if (!is_built_in(name) && (c = custom(p, name)))
            trp_amount_from_double(task_amount(v), &c->task, NULL);
    }
    return p->cores >= 0 && p->task_cpus > 0;
}

static int on_profile(struct trp_record_reader *r, const json_t *event)
{
    const char *name = json_string_value(json_object_get(event, "Troupe Profile Name"));
    struct trp_resource_profile p = {.slots = 1};
    if (!trp_record_id(json_object_get(event, "Resource Profile Id"), PROFILES_MAX,
                       &p.id.n) ||
        !read_resources(&p, event))
        return TRP_EINVAL;
    if (name)
        snprintf(p.name, sizeof p.name, "%s", name);
    else /* Spark's have none */
        snprintf(p.name, sizeof p.name, "%u", p.id.n);
    uint32_t n = p.id.n + 1;
    if (!TRP_ARRAY_RESERVE(r->profiles, r->profiles_capacity, n))
        return TRP_ENOMEM;
    while (r->nprofiles < n)
        r->profiles[r->nprofiles++] = (struct trp_resource_profile){.slots = 0};
    r->profiles[p.id.n] = p;
    return trp_statistics_shape(&r->now->statistics, &p) ? 0 : TRP_ENOMEM;
}

static int describe(struct trp_record_reader *r, const json_t *info, trp_stage_id *ret)
{
    struct trp_event_stage s = {
        .name = json_string_value(json_object_get(info, "Stage Name"))};
    if (!trp_record_stage_id(json_object_get(info, "Stage ID"), &s.stage) || !s.name)
        return TRP_EINVAL;
    trp_record_id(json_object_get(info, "Stage Attempt ID"), TRP_NONE, &s.attempt);
    trp_record_id(json_object_get(info, "Number of Tasks"), TRP_NONE, &s.ntasks);
    trp_record_id(json_object_get(info, "Resource Profile Id"), PROFILES_MAX,
                  &s.profile.n);
    *ret = s.stage;
    return trp_statistics_describe(&r->now->statistics, &s);
}

static int on_job_start(struct trp_record_reader *r, const json_t *event)
{
    const json_t *infos = json_object_get(event, "Stage Infos");
    trp_stage_id id;
    int rc = 0;
    trp_record_at(r, event, "Submission Time");
    for (size_t i = 0; i < json_array_size(infos) && rc == 0; i++)
        rc = describe(r, json_array_get(infos, i), &id);
    return rc;
}

static int on_stage_submitted(struct trp_record_reader *r, const json_t *event)
{
    const json_t *info = json_object_get(event, "Stage Info");
    trp_stage_id id;
    int rc = describe(r, info, &id);
    if (rc < 0)
        return rc;
    int64_t at = trp_record_at(r, info, "Submission Time");
    trp_statistics_stage_submitted(&r->now->statistics,
                                   trp_statistics_stage(&r->now->statistics, id), at);
    return 0;
}

static enum trp_outcome outcome_of(const char *name)
{
    for (int i = TRP_OUTCOME_SUCCEEDED; i <= TRP_OUTCOME_SKIPPED; i++)
        if (name && strcmp(name, trp_outcome_name(i)) == 0)
            return i;
    return TRP_OUTCOME_FAILED;
}

static int end_stage(struct trp_record_reader *r, const json_t *id,
                     enum trp_outcome outcome, int64_t at)
{
    trp_stage_id stage;
    if (!trp_record_stage_id(id, &stage))
        return TRP_EINVAL;
    struct trp_stage_statistics *s = trp_statistics_stage(&r->now->statistics, stage);
    if (!s)
        return TRP_ENOMEM;
    trp_statistics_stage_ended(&r->now->statistics, s, outcome, at);
    return 0;
}

/* What its tasks added to accumulators. */
static int take_accumulables(struct trp_record_reader *r, const json_t *info)
{
    const json_t *list = json_object_get(info, "Accumulables"), *a;
    trp_stage_id id = {(uint32_t)json_integer_value(json_object_get(info, "Stage ID"))};
    struct trp_stage_statistics *s =
        json_array_size(list) ? trp_statistics_stage(&r->now->statistics, id) : NULL;
    size_t i;
    json_array_foreach(list, i, a) {
        const char *name = json_string_value(json_object_get(a, "Name")),
                   *value = json_string_value(json_object_get(a, "Value"));
        int64_t number = json_integer_value(json_object_get(a, "ID"));
        if (s && name && value && number > 0 && number < UINT32_MAX &&
            trp_statistics_accumulated(&r->now->statistics, s, (uint32_t)number, name,
                                       strtoll(value, NULL, 10)) < 0)
            return TRP_ENOMEM;
    }
    return 0;
}

static int on_stage_completed(struct trp_record_reader *r, const json_t *event)
{
    const json_t *info = json_object_get(event, "Stage Info");
    const char *why = json_string_value(json_object_get(info, "Failure Reason"));
    int rc = take_accumulables(r, info);
    if (rc < 0)
        return rc;
    return end_stage(r, json_object_get(info, "Stage ID"),
                     why ? outcome_of(why) : TRP_OUTCOME_SUCCEEDED,
                     trp_record_at(r, info, "Completion Time"));
}

static int on_stage_skipped(struct trp_record_reader *r, const json_t *event)
{
    const char *outcome = json_string_value(json_object_get(event, "Outcome"));
    return end_stage(r, json_object_get(event, "Stage ID"), outcome_of(outcome),
                     trp_record_at(r, event, "Timestamp"));
}

/* ---- tasks that were given up ---- */

static bool copy_text(const json_t *event, const char *key, char **ret)
{
    const char *text = json_string_value(json_object_get(event, key));
    *ret = text ? strdup(text) : NULL;
    return !text || *ret;
}

static int on_task_given_up(struct trp_record_reader *r, const json_t *event)
{
    const json_t *parent = json_object_get(event, "Parent Stage ID");
    struct trp_run_record *now = r->now;
    struct trp_run_given_up t = {.parent = {TRP_NONE}};
    trp_record_at(r, event, "Timestamp");
    if (!trp_record_stage_id(json_object_get(event, "Stage ID"), &t.stage) ||
        !trp_record_id(json_object_get(event, "Task Index"), TRP_NONE, &t.task) ||
        (parent && !trp_record_stage_id(parent, &t.parent)))
        return TRP_EINVAL;
    trp_record_id(json_object_get(event, "Failures"), TRP_NONE, &t.failures);
    struct trp_stage_statistics *s = trp_statistics_stage(&now->statistics, t.stage);
    if (!s || !TRP_ARRAY_GROW(now->given_up, now->ngiven_up, now->given_up_capacity))
        return TRP_ENOMEM;
    trp_statistics_given_up(s, parent != NULL);
    bool good = copy_text(event, "Item", &t.item) &&
                copy_text(event, "Reason", &t.reason) &&
                copy_text(event, "Log", &t.log);
    now->given_up[now->ngiven_up++] = t;
    return good ? 0 : TRP_ENOMEM;
}

/* ---- executors ---- */

static int on_executor_added(struct trp_record_reader *r, const json_t *event)
{
    const json_t *info = json_object_get(event, "Executor Info");
    json_int_t cores = json_integer_value(json_object_get(info, "Total Cores"));
    trp_executor_id e;
    trp_profile_id id;
    if (!trp_record_executor(json_object_get(event, "Executor ID"), &e.n) ||
        e.n == TRP_NONE ||
        !trp_record_id(json_object_get(info, "Resource Profile Id"), PROFILES_MAX,
                       &id.n) ||
        cores < 0)
        return TRP_EINVAL;
    const struct trp_resource_profile *known = trp_record_profile(r, id);
    struct trp_resource_profile p =
        known ? *known : (struct trp_resource_profile){.id = id, .task_cpus = 1};
    int64_t at = trp_record_at(r, event, "Timestamp");
    p.cores = cores;
    if (trp_statistics_executor_added(&r->now->statistics, e, &p, NULL, at) < 0)
        return TRP_ENOMEM;
    /* That of a profile without an executor side is the default's. */
    r->now->statistics.shapes[id.n].executor.cores = (double)cores;
    struct trp_run_step *s = trp_record_step(r, false, e.n);
    if (!s)
        return 0;
    s->profile = id;
    s->cores = (double)cores;
    s->began = at;
    return 0;
}

/* A decommissioned one is told with its reason, too. */
/* It is not there, so that it is not in the record. */
static int on_executor_wanted(struct trp_record_reader *r, const json_t *event)
{
    uint32_t id;
    trp_record_at(r, event, "Timestamp");
    return trp_record_executor(json_object_get(event, "Executor ID"), &id) &&
                   id != TRP_NONE
               ? 0
               : TRP_EINVAL;
}

static int on_executor_removed(struct trp_record_reader *r, const json_t *event)
{
    const char *why = json_string_value(json_object_get(event, "Removed Reason"));
    trp_executor_id e;
    if (!trp_record_executor(json_object_get(event, "Executor ID"), &e.n))
        return TRP_EINVAL;
    int64_t at = trp_record_at(r, event, "Timestamp");
    trp_statistics_executor_removed(&r->now->statistics, e, at);
    struct trp_run_step *s = trp_record_step(r, false, e.n);
    if (!s)
        return 0;
    s->ended = at;
    s->failed = !why || strcmp(why, "released") != 0;
    free(s->end);
    s->end = s->failed ? strdup(why ? why : "?") : NULL;
    return s->failed && !s->end ? TRP_ENOMEM : 0;
}

static int on_executor_relabelled(struct trp_record_reader *r, const json_t *event)
{
    trp_executor_id e;
    if (!trp_record_executor(json_object_get(event, "Executor ID"), &e.n))
        return TRP_EINVAL;
    trp_statistics_executor_relabelled(&r->now->statistics, e,
                                       trp_record_at(r, event, "Timestamp"));
    return 0;
}

/* ---- Slurm ---- */

static int on_nodes(struct trp_record_reader *r, const json_t *event)
{
    uint32_t n;
    if (!trp_record_id(json_object_get(event, "Nodes"), TRP_NONE, &n))
        return TRP_EINVAL;
    trp_statistics_nodes(&r->now->statistics, n, trp_record_at(r, event, "Timestamp"));
    return 0;
}

static int on_moved(struct trp_record_reader *r, const json_t *event)
{
    json_int_t bytes = json_integer_value(json_object_get(event, "Bytes"));
    trp_record_at(r, event, "Timestamp");
    if (bytes < 0)
        return TRP_EINVAL;
    r->now->statistics.moved += (uint64_t)bytes;
    return 0;
}

static int on_costs(struct trp_record_reader *r, const json_t *event)
{
    struct trp_statistics *s = &r->now->statistics;
    trp_record_at(r, event, "Timestamp");
    s->rpcs = (uint64_t)json_integer_value(json_object_get(event, "RPCs"));
    s->sruns = (uint64_t)json_integer_value(json_object_get(event, "Sruns"));
    s->srun_rpcs = (uint64_t)json_integer_value(json_object_get(event, "Srun RPCs"));
    return 0;
}

/* NULL: not heard of. */
static struct trp_run_job *find_job(const struct trp_run_record *now, uint32_t job)
{
    for (uint32_t i = 0; i < now->njobs; i++)
        if (now->jobs[i].id == job)
            return &now->jobs[i];
    return NULL;
}

static int add_job(struct trp_run_record *now, const struct trp_run_job *job)
{
    if (find_job(now, job->id))
        return 0;
    if (!TRP_ARRAY_GROW(now->jobs, now->njobs, now->jobs_capacity))
        return TRP_ENOMEM;
    now->jobs[now->njobs++] = *job;
    return 0;
}

static int on_slurm_job(struct trp_record_reader *r, const json_t *event)
{
    uint32_t job;
    int64_t told = trp_record_at(r, event, "Timestamp");
    if (!trp_record_id(json_object_get(event, "Job ID"), TRP_NONE, &job) || !job)
        return TRP_EINVAL;
    bool additional = json_is_true(json_object_get(event, "Further"));
    int64_t began = trp_record_at(r, event, "Start Time");
    const struct trp_run_job one = {.id = job,
                                    .additional = additional,
                                    .asked = trp_record_at(r, event, "Submission Time"),
                                    .began = began || !additional ? began : told};
    return add_job(r->now, &one);
}

/* One that has never begun is not in the record. */
static int on_slurm_queued(struct trp_record_reader *r, const json_t *event)
{
    uint32_t job;
    trp_record_at(r, event, "Timestamp");
    return trp_record_id(json_object_get(event, "Job ID"), TRP_NONE, &job) && job
               ? 0
               : TRP_EINVAL;
}

static int on_slurm_ended(struct trp_record_reader *r, const json_t *event)
{
    uint32_t job;
    trp_record_at(r, event, "Timestamp");
    if (!trp_record_id(json_object_get(event, "Job ID"), TRP_NONE, &job) || !job)
        return TRP_EINVAL;
    struct trp_run_job *j = find_job(r->now, job);
    int64_t ended = trp_record_at(r, event, "End Time");
    if (j && !j->ended)
        j->ended = ended;
    return 0;
}

struct trp_run_step *trp_record_step(const struct trp_record_reader *r, bool gang,
                                     uint32_t id)
{
    if (!gang)
        return id < r->nstep_of && r->step_of[id] ? &r->now->steps[r->step_of[id] - 1]
                                                  : NULL;
    for (uint32_t i = r->now->nsteps; i-- > 0;) {
        struct trp_run_step *s = &r->now->steps[i];
        if (s->gang && s->id == id)
            return s;
    }
    return NULL;
}

static bool note_step(struct trp_record_reader *r, uint32_t executor, uint32_t step)
{
    if (!TRP_ARRAY_GROW(r->step_of, executor, r->step_of_capacity))
        return false;
    while (r->nstep_of <= executor)
        r->step_of[r->nstep_of++] = 0;
    r->step_of[executor] = step;
    return true;
}

/* Of a step that had to begin anew the last is the one that ran. A component of a
 * heterogeneous job is a job of its own here. */
static int on_slurm_step(struct trp_record_reader *r, const json_t *event)
{
    const char *name = json_string_value(json_object_get(event, "Step Name"));
    const json_t *task = json_object_get(event, "Task ID");
    struct trp_run_record *now = r->now;
    uint32_t job, id = TRP_NONE;
    int64_t at = trp_record_at(r, event, "Timestamp");
    if (!trp_record_id(json_object_get(event, "Job ID"), TRP_NONE, &job) || !name ||
        !(task ? trp_record_id(task, TRP_NONE, &id)
               : trp_record_executor(json_object_get(event, "Executor ID"), &id)) ||
        id == TRP_NONE)
        return TRP_EINVAL;
    const struct trp_run_job one = {.id = job};
    if (add_job(now, &one) < 0)
        return TRP_ENOMEM;
    struct trp_run_step *s = trp_record_step(r, task, id);
    if (s) {
        s->job = job;
        s->told = at;
        return 0;
    }
    if (!TRP_ARRAY_GROW(now->steps, now->nsteps, now->steps_capacity))
        return TRP_ENOMEM;
    char *copy = strdup(name);
    if (!copy || (!task && !note_step(r, id, now->nsteps + 1))) {
        free(copy);
        return TRP_ENOMEM;
    }
    now->steps[now->nsteps++] = (struct trp_run_step){.job = job,
                                                      .name = copy,
                                                      .gang = task != NULL,
                                                      .id = id,
                                                      .profile = {TRP_NONE},
                                                      .told = at};
    return 0;
}

/* ---- the whole ---- */

static const struct {
    const char *word;
    int (*take)(struct trp_record_reader *r, const json_t *event);
} kinds[] = {
    {"SparkListenerApplicationStart",     on_application_start  },
    {"SparkListenerApplicationEnd",       on_application_end    },
    {"SparkListenerResourceProfileAdded", on_profile            },
    {"SparkListenerJobStart",             on_job_start          },
    {"SparkListenerJobEnd",               on_job_end            },
    {"SparkListenerStageSubmitted",       on_stage_submitted    },
    {"SparkListenerStageCompleted",       on_stage_completed    },
    {"TroupeStageSkipped",                on_stage_skipped      },
    {"SparkListenerExecutorAdded",        on_executor_added     },
    {"SparkListenerExecutorRemoved",      on_executor_removed   },
    {"TroupeExecutorRelabelled",          on_executor_relabelled},
    {"SparkListenerTaskStart",            trp_record_task_start },
    {"SparkListenerTaskEnd",              trp_record_task_end   },
    {"TroupeTaskGivenUp",                 on_task_given_up      },
    {"TroupeTaskSkipped",                 on_task_given_up      },
    {"TroupeTaskSummaryBegin",            on_time               },
    {"TroupeTaskSummary",                 trp_record_summary    },
    {"TroupeNodes",                       on_nodes              },
    {"TroupeOutputsMoved",                on_moved              },
    {"TroupeSlurmCosts",                  on_costs              },
    {"TroupeSlurmJob",                    on_slurm_job          },
    {"TroupeSlurmJobQueued",              on_slurm_queued       },
    {"TroupeSlurmJobEnded",               on_slurm_ended        },
    {"TroupeSlurmStep",                   on_slurm_step         },
    {"TroupeExecutorAsked",               on_executor_wanted    },
    {"TroupeStageWaits",                  on_time               },
    {"TroupeExecutorDropped",             on_executor_wanted    },
    {"TroupeMessage",                     on_time               },
};

static int hand_on(const struct trp_record_reader *r, const char *word,
                   const json_t *event)
{
    int rc = 0;
    for (size_t k = 0; k < r->nalso; k++) {
        const struct trp_run_listener *l = &r->also[k];
        for (size_t i = 0; i < l->nkinds && rc == 0; i++)
            if (strcmp(word, l->kinds[i].word) == 0)
                rc = l->kinds[i].take(l->context, event);
    }
    return rc;
}

/* Nothing is before the line that begins a log. */
static int take_any(void *context, const json_t *event)
{
    struct trp_record_reader *r = context;
    const char *word = json_string_value(json_object_get(event, "Event"));
    int rc = 0;
    if (strcmp(word, LOG_START) == 0)
        rc = on_log_start(r);
    else if (!r->now)
        return TRP_EINVAL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && rc == 0; i++)
        if (strcmp(word, kinds[i].word) == 0)
            rc = kinds[i].take(r, event);
    return rc == 0 ? hand_on(r, word, event) : rc;
}

static void want(const char *word, struct trp_event_line_kind *v, size_t *n)
{
    for (size_t i = 0; i < *n; i++)
        if (strcmp(v[i].word, word) == 0)
            return;
    v[(*n)++] = (struct trp_event_line_kind){word, take_any};
}

/* The words of events that are wanted, each once; `ret` has room for all. */
static size_t wanted(const struct trp_record_reader *r, struct trp_event_line_kind *ret)
{
    size_t n = 0;
    ret[n++] = (struct trp_event_line_kind){LOG_START, take_any};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        ret[n++] = (struct trp_event_line_kind){kinds[i].word, take_any};
    for (size_t i = 0; i < r->nalso; i++)
        for (size_t k = 0; k < r->also[i].nkinds; k++)
            want(r->also[i].kinds[k].word, ret, &n);
    return n;
}

int trp_run_records_read_also(const char *file, const struct trp_run_listener *also,
                              size_t nalso, struct trp_run_records *ret, trp_error *err)
{
    struct trp_record_reader r = {.all = ret, .also = also, .nalso = nalso};
    size_t most = 1 + sizeof kinds / sizeof *kinds;
    for (size_t i = 0; i < nalso; i++)
        most += also[i].nkinds;
    struct trp_event_line_kind *of = calloc(most, sizeof *of);
    *ret = (struct trp_run_records){0};
    if (!of)
        return trp_error_set(err, TRP_ENOMEM, "%s: out of memory", file);
    int rc = trp_event_lines_read(file, of, wanted(&r, of), &r, err);
    if (rc == 0 && ret->n == 0)
        rc = trp_error_set(err, TRP_EINVAL, "%s: no event log: nothing is in it", file);
    free(of);
    free(r.profiles);
    free(r.step_of);
    if (rc < 0)
        trp_run_records_free(ret);
    return rc;
}

int trp_run_records_read(const char *file, struct trp_run_records *ret, trp_error *err)
{
    return trp_run_records_read_also(file, NULL, 0, ret, err);
}

void trp_run_records_free(struct trp_run_records *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        struct trp_run_record *now = r->v[i];
        for (uint32_t k = 0; k < now->nsteps; k++) {
            free(now->steps[k].name);
            free(now->steps[k].end);
        }
        for (uint32_t k = 0; k < now->ngiven_up; k++) {
            free(now->given_up[k].item);
            free(now->given_up[k].reason);
            free(now->given_up[k].log);
        }
        trp_statistics_free(&now->statistics);
        free(now->given_up);
        free(now->steps);
        free(now->jobs);
        free(now->app_name);
        free(now);
    }
    free(r->v);
    *r = (struct trp_run_records){0};
}

const char *trp_run_step_profile(const struct trp_run_record *r,
                                 const struct trp_run_step *s)
{
    const struct trp_statistics *st = &r->statistics;
    return s->profile.n < st->nshapes && st->shapes[s->profile.n].known
               ? st->shapes[s->profile.n].name
               : "?";
}
