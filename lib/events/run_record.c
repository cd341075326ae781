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

enum { PROFILES_MAX = 16384, EXECUTORS_MAX = 1 << 20, STAGES_MAX = 1000000 };

/* ---- reading fields ---- */

bool trp_record_is_executor(const struct trp_log_event *e)
{
    return e->executor == TRP_LOG_DRIVER || e->executor < EXECUTORS_MAX;
}

bool trp_record_is_stage(const struct trp_log_event *e)
{
    return e->stage < STAGES_MAX;
}

/* Another time than its own. */
static int64_t note(struct trp_record_reader *r, int64_t at)
{
    if (at)
        trp_statistics_at(&r->now->statistics, at);
    return at;
}

/* Nothing is before the line that begins a log. */
static int before(void *context, const struct trp_log_event *e)
{
    struct trp_record_reader *r = context;
    if (!r->now)
        return e->kind == TRP_LOG_START ? 0 : TRP_EINVAL;
    note(r, e->at);
    return 0;
}

const struct trp_resource_profile *trp_record_profile(const struct trp_record_reader *r,
                                                      trp_profile_id id)
{
    return id.n < r->nprofiles && r->profiles[id.n].slots ? &r->profiles[id.n] : NULL;
}

/* ---- the run ---- */

static int on_log_start(void *context, const struct trp_log_event *e)
{
    struct trp_record_reader *r = context;
    struct trp_run_record *new = calloc(1, sizeof *new);
    (void)e;
    if (!new || !TRP_ARRAY_GROW(r->all->v, r->all->n, r->all->capacity)) {
        free(new);
        return TRP_ENOMEM;
    }
    r->all->v[r->all->n++] = r->now = new;
    r->nprofiles = r->nstep_of = 0;
    return 0;
}

static int on_application_start(void *context, const struct trp_log_event *e)
{
    struct trp_run_record *now = ((struct trp_record_reader *)context)->now;
    now->started = e->at;
    if (!e->app_name || now->app_name)
        return TRP_EINVAL;
    now->app_name = strdup(e->app_name);
    return now->app_name ? 0 : TRP_ENOMEM;
}

static int on_application_end(void *context, const struct trp_log_event *e)
{
    struct trp_run_record *now = ((struct trp_record_reader *)context)->now;
    now->complete = true;
    now->exit_status = (int)e->exit_status;
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

static int64_t amount(const json_t *request)
{
    return json_integer_value(json_object_get(request, "Amount"));
}

static bool read_resources(struct trp_resource_profile *p,
                           const struct trp_log_event *e)
{
    json_t *executor = e->executor_requests, *task = e->task_requests, *v;
    const char *name;
    struct trp_custom *c;
    if (!json_is_object(executor) || !json_is_object(task))
        return false;
    double cpus = trp_log_amount(json_object_get(task, "cpus"));
    p->cores = amount(json_object_get(executor, "cores"));
    p->task_cpus = cpus >= 1 && cpus <= 1e6 ? (int64_t)cpus : 0;
    json_object_foreach(executor, name, v) {
        if (trp_log_is_device(name) && (c = custom(p, name)))
            c->executor = amount(v);
    }
    json_object_foreach(task, name, v) {
        if (trp_log_is_device(name) && (c = custom(p, name)))
            trp_amount_from_double(trp_log_amount(v), &c->task, NULL);
    }
    return p->cores >= 0 && p->task_cpus > 0;
}

static int on_profile(void *context, const struct trp_log_event *e)
{
    struct trp_record_reader *r = context;
    struct trp_resource_profile p = {.id = {e->profile}, .slots = 1};
    if (e->profile >= PROFILES_MAX || !read_resources(&p, e))
        return TRP_EINVAL;
    trp_log_profile_name(e, p.name, sizeof p.name);
    uint32_t n = p.id.n + 1;
    if (!TRP_ARRAY_RESERVE(r->profiles, r->profiles_capacity, n))
        return TRP_ENOMEM;
    while (r->nprofiles < n)
        r->profiles[r->nprofiles++] = (struct trp_resource_profile){.slots = 0};
    r->profiles[p.id.n] = p;
    return trp_statistics_shape(&r->now->statistics, &p) ? 0 : TRP_ENOMEM;
}

static int describe(struct trp_record_reader *r, const struct trp_log_event *e)
{
    const struct trp_event_stage s = {
        .stage = {e->stage},
        .name = e->stage_name,
        .attempt = trp_log_or_0(e->stage_attempt),
        .ntasks = e->ntasks,
        .profile = {e->profile < PROFILES_MAX ? e->profile : 0}};
    if (!trp_record_is_stage(e) || !s.name)
        return TRP_EINVAL;
    return trp_statistics_describe(&r->now->statistics, &s);
}

static int on_job_start(void *context, const struct trp_log_event *e)
{
    struct trp_log_event stage;
    int rc = 0;
    for (size_t i = 0; i < json_array_size(e->stage_infos) && rc == 0; i++) {
        trp_log_stage_of(json_array_get(e->stage_infos, i), &stage);
        rc = describe(context, &stage);
    }
    return rc;
}

static int on_stage_submitted(void *context, const struct trp_log_event *e)
{
    struct trp_record_reader *r = context;
    struct trp_statistics *s = &r->now->statistics;
    int rc = describe(r, e);
    if (rc == 0)
        trp_statistics_stage_submitted(
            s, trp_statistics_stage(s, (trp_stage_id){e->stage}), e->at);
    return rc;
}

static enum trp_outcome outcome_of(const char *name)
{
    for (int i = TRP_OUTCOME_SUCCEEDED; i <= TRP_OUTCOME_SKIPPED; i++)
        if (name && strcmp(name, trp_outcome_name(i)) == 0)
            return i;
    return TRP_OUTCOME_FAILED;
}

static int end_stage(struct trp_record_reader *r, const struct trp_log_event *e,
                     enum trp_outcome outcome)
{
    if (!trp_record_is_stage(e))
        return TRP_EINVAL;
    struct trp_stage_statistics *s =
        trp_statistics_stage(&r->now->statistics, (trp_stage_id){e->stage});
    if (!s)
        return TRP_ENOMEM;
    trp_statistics_stage_ended(&r->now->statistics, s, outcome, e->at);
    return 0;
}

/* What its tasks added to accumulators. */
static int take_accumulables(struct trp_record_reader *r, const struct trp_log_event *e)
{
    struct trp_statistics *all = &r->now->statistics;
    const json_t *a;
    struct trp_stage_statistics *s = NULL;
    if (json_array_size(e->accumulables) && trp_record_is_stage(e))
        s = trp_statistics_stage(all, (trp_stage_id){e->stage});
    size_t i;
    json_array_foreach(e->accumulables, i, a) {
        const char *name = json_string_value(json_object_get(a, "Name")),
                   *value = json_string_value(json_object_get(a, "Value"));
        uint32_t id = trp_log_id(json_object_get(a, "ID"));
        if (s && name && value && id > 0 && id != TRP_NONE &&
            trp_statistics_accumulated(all, s, id, name, strtoll(value, NULL, 10)) < 0)
            return TRP_ENOMEM;
    }
    return 0;
}

static int on_stage_completed(void *context, const struct trp_log_event *e)
{
    int rc = take_accumulables(context, e);
    return rc < 0
               ? rc
               : end_stage(context, e,
                           e->failure ? outcome_of(e->failure) : TRP_OUTCOME_SUCCEEDED);
}

static int on_stage_skipped(void *context, const struct trp_log_event *e)
{
    return end_stage(context, e, outcome_of(e->outcome));
}

static int on_names(void *context, const struct trp_log_event *e)
{
    struct trp_run_record *now = ((struct trp_record_reader *)context)->now;
    return trp_record_is_stage(e) ? trp_task_names_take(&now->names, e->stage, e)
                                  : TRP_EINVAL;
}

/* ---- tasks that were given up ---- */

static bool copy_text(const char *text, char **ret)
{
    *ret = text ? strdup(text) : NULL;
    return !text || *ret;
}

static int on_task_given_up(void *context, const struct trp_log_event *e)
{
    struct trp_run_record *now = ((struct trp_record_reader *)context)->now;
    struct trp_run_given_up t = {.stage = {e->stage},
                                 .parent = {e->parent},
                                 .task = e->lost_task,
                                 .parent_task = e->parent_task != TRP_NONE
                                                    ? e->parent_task
                                                    : e->lost_task, /* an old log's */
                                 .failures = e->failures};
    bool skipped = e->parent != TRP_NONE;
    if (!trp_record_is_stage(e) || e->lost_task == TRP_NONE ||
        (skipped && e->parent >= STAGES_MAX))
        return TRP_EINVAL;
    struct trp_stage_statistics *s = trp_statistics_stage(&now->statistics, t.stage);
    if (!s || !TRP_ARRAY_GROW(now->given_up, now->ngiven_up, now->given_up_capacity))
        return TRP_ENOMEM;
    trp_statistics_given_up(s, skipped);
    bool good = copy_text(e->item, &t.item) && copy_text(e->reason, &t.reason) &&
                copy_text(e->log, &t.log);
    now->given_up[now->ngiven_up++] = t;
    return good ? 0 : TRP_ENOMEM;
}

/* ---- executors ---- */

static int on_executor_added(void *context, const struct trp_log_event *e)
{
    struct trp_record_reader *r = context;
    if (e->executor >= EXECUTORS_MAX || e->profile >= PROFILES_MAX || e->cores < 0)
        return TRP_EINVAL;
    const trp_profile_id id = {e->profile};
    const struct trp_resource_profile *known = trp_record_profile(r, id);
    struct trp_resource_profile p =
        known ? *known : (struct trp_resource_profile){.id = id, .task_cpus = 1};
    p.cores = e->cores;
    if (trp_statistics_executor_added(
            &r->now->statistics, (trp_executor_id){e->executor}, &p, NULL, e->at) < 0)
        return TRP_ENOMEM;
    /* That of a profile without an executor side is the default's. */
    r->now->statistics.shapes[id.n].executor.cores = (double)e->cores;
    struct trp_run_step *s = trp_record_step(r, false, e->executor);
    if (!s)
        return 0;
    s->profile = id;
    s->cores = (double)e->cores;
    s->began = e->at;
    return 0;
}

/* It is not there, so that it is not in the record. */
static int on_executor_wanted(void *context, const struct trp_log_event *e)
{
    (void)context;
    return e->executor < EXECUTORS_MAX ? 0 : TRP_EINVAL;
}

/* A decommissioned one is told with its reason, too. */
static int on_executor_removed(void *context, const struct trp_log_event *e)
{
    struct trp_record_reader *r = context;
    if (!trp_record_is_executor(e))
        return TRP_EINVAL;
    trp_statistics_executor_removed(&r->now->statistics, (trp_executor_id){e->executor},
                                    e->at);
    struct trp_run_step *s = trp_record_step(r, false, e->executor);
    if (!s)
        return 0;
    s->ended = e->at;
    s->failed = !e->removed || strcmp(e->removed, "released") != 0;
    free(s->end);
    s->end = s->failed ? strdup(e->removed ? e->removed : "?") : NULL;
    return s->failed && !s->end ? TRP_ENOMEM : 0;
}

static int on_executor_relabelled(void *context, const struct trp_log_event *e)
{
    struct trp_record_reader *r = context;
    if (!trp_record_is_executor(e))
        return TRP_EINVAL;
    trp_statistics_executor_relabelled(&r->now->statistics,
                                       (trp_executor_id){e->executor}, e->at);
    return 0;
}

/* ---- Slurm ---- */

static int on_nodes(void *context, const struct trp_log_event *e)
{
    struct trp_record_reader *r = context;
    if (e->nodes == TRP_NONE)
        return TRP_EINVAL;
    trp_statistics_nodes(&r->now->statistics, e->nodes, e->at);
    return 0;
}

static int on_moved(void *context, const struct trp_log_event *e)
{
    struct trp_record_reader *r = context;
    if (e->bytes < 0)
        return TRP_EINVAL;
    r->now->statistics.moved += (uint64_t)e->bytes;
    return 0;
}

static int on_costs(void *context, const struct trp_log_event *e)
{
    struct trp_statistics *s = &((struct trp_record_reader *)context)->now->statistics;
    s->rpcs = (uint64_t)e->rpcs;
    s->sruns = (uint64_t)e->sruns;
    s->srun_rpcs = (uint64_t)e->srun_rpcs;
    return 0;
}

static bool is_job(const struct trp_log_event *e)
{
    return e->job > 0 && e->job != TRP_NONE;
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

static int on_slurm_job(void *context, const struct trp_log_event *e)
{
    struct trp_record_reader *r = context;
    if (!is_job(e))
        return TRP_EINVAL;
    const struct trp_run_job one = {
        .id = e->job,
        .additional = e->additional,
        .asked = note(r, e->submitted),
        .began = note(r, e->started) || !e->additional ? e->started : e->at};
    return add_job(r->now, &one);
}

/* One that has never begun is not in the record. */
static int on_slurm_queued(void *context, const struct trp_log_event *e)
{
    (void)context;
    return is_job(e) ? 0 : TRP_EINVAL;
}

static int on_slurm_ended(void *context, const struct trp_log_event *e)
{
    struct trp_record_reader *r = context;
    if (!is_job(e))
        return TRP_EINVAL;
    struct trp_run_job *j = find_job(r->now, e->job);
    note(r, e->ended);
    if (j && !j->ended)
        j->ended = e->ended;
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
static int on_slurm_step(void *context, const struct trp_log_event *e)
{
    struct trp_record_reader *r = context;
    struct trp_run_record *now = r->now;
    bool gang = e->task_id != TRP_NONE;
    uint32_t id = gang ? e->task_id : e->executor;
    if (e->job == TRP_NONE || !e->step_name || (!gang && id >= EXECUTORS_MAX))
        return TRP_EINVAL;
    const struct trp_run_job one = {.id = e->job};
    if (add_job(now, &one) < 0)
        return TRP_ENOMEM;
    struct trp_run_step *s = trp_record_step(r, gang, id);
    if (s) {
        s->job = e->job;
        s->told = e->at;
        return 0;
    }
    if (!TRP_ARRAY_GROW(now->steps, now->nsteps, now->steps_capacity))
        return TRP_ENOMEM;
    char *copy = strdup(e->step_name);
    if (!copy || (!gang && !note_step(r, id, now->nsteps + 1))) {
        free(copy);
        return TRP_ENOMEM;
    }
    now->steps[now->nsteps++] = (struct trp_run_step){.job = e->job,
                                                      .name = copy,
                                                      .gang = gang,
                                                      .id = id,
                                                      .profile = {TRP_NONE},
                                                      .told = e->at};
    return 0;
}

/* ---- the whole ---- */

int trp_run_records_read_also(const char *file, const struct trp_log_reader *also,
                              size_t nalso, struct trp_run_records *ret, trp_error *err)
{
    static trp_log_take *const take[TRP_LOG_EVENTS] = {
        [TRP_LOG_START] = on_log_start,
        [TRP_LOG_APPLICATION] = on_application_start,
        [TRP_LOG_APPLICATION_END] = on_application_end,
        [TRP_LOG_PROFILE] = on_profile,
        [TRP_LOG_JOB] = on_job_start,
        [TRP_LOG_JOB_END] = trp_log_nothing,
        [TRP_LOG_STAGE] = on_stage_submitted,
        [TRP_LOG_STAGE_END] = on_stage_completed,
        [TRP_LOG_STAGE_SKIPPED] = on_stage_skipped,
        [TRP_LOG_STAGE_WAITS] = trp_log_nothing,
        [TRP_LOG_EXECUTOR] = on_executor_added,
        [TRP_LOG_EXECUTOR_END] = on_executor_removed,
        [TRP_LOG_EXECUTOR_ASKED] = on_executor_wanted,
        [TRP_LOG_EXECUTOR_DROPPED] = on_executor_wanted,
        [TRP_LOG_EXECUTOR_RELABELLED] = on_executor_relabelled,
        [TRP_LOG_TASK] = trp_record_task_start,
        [TRP_LOG_TASK_END] = trp_record_task_end,
        [TRP_LOG_TASK_GIVEN_UP] = on_task_given_up,
        [TRP_LOG_TASK_SKIPPED] = on_task_given_up,
        [TRP_LOG_TASK_NAMES] = on_names,
        [TRP_LOG_SUMMARY_BEGIN] = trp_log_nothing,
        [TRP_LOG_SUMMARY] = trp_record_summary,
        [TRP_LOG_NODES] = on_nodes,
        [TRP_LOG_MOVED] = on_moved,
        [TRP_LOG_COSTS] = on_costs,
        [TRP_LOG_SLURM_JOB] = on_slurm_job,
        [TRP_LOG_SLURM_QUEUED] = on_slurm_queued,
        [TRP_LOG_SLURM_ENDED] = on_slurm_ended,
        [TRP_LOG_SLURM_STEP] = on_slurm_step,
        [TRP_LOG_MESSAGE] = trp_log_nothing,
    };
    struct trp_record_reader r = {.all = ret};
    struct trp_log_reader readers[1 + TRP_RUN_READERS] = {
        {take, before, &r}
    };
    for (size_t i = 0; i < nalso; i++)
        readers[1 + i] = also[i];
    *ret = (struct trp_run_records){0};
    int rc = trp_log_events_read(file, readers, 1 + nalso, err);
    if (rc == 0 && ret->n == 0)
        rc = trp_error_set(err, TRP_EINVAL, "%s: no event log: no run begins in it",
                           file);
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
        trp_task_names_free(&now->names);
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
