/*
 * Performing what the engine decided. Every event goes through trp_driver_step, which
 * takes all actions that follow at once, in order; actions may themselves lead to
 * events (a stage asked for its tasks), which are stepped when the actions before them
 * are done.
 *
 * Launches are gathered per executor and sent once a turn of the loop, or when a
 * message has grown to 16 KiB; a stage's description goes out before its first launch
 * there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "driver/driver_state.h"

enum { BATCH_BYTES = 16384 };

struct trp_driver_stage *trp_driver_stage_of(const trp_driver *d, trp_stage_id id)
{
    return id.n < d->nstages ? d->stages[id.n] : NULL;
}

static void out_of_memory(trp_driver *d)
{
    trp_driver_stop(d, TRP_ESYSTEM, true, "out of memory in the driver");
}

/* ---- jobs and stages ---- */

static void stage_free(struct trp_driver_stage *s)
{
    if (!s)
        return;
    trp_buf_free(&s->message);
    free(s->sent);
    free(s->name);
    free(s->parents);
    free(s);
}

void trp_driver_job_free(trp_driver *d, struct trp_driver_job *j)
{
    for (uint32_t i = 0; i < j->nstages; i++) {
        stage_free(d->stages[j->first + i]);
        d->stages[j->first + i] = NULL;
    }
    d->jobs[j->id.n] = NULL;
    free(j);
}

static struct trp_driver_stage *stage_new(struct trp_driver_job *j, uint32_t index,
                                          const struct trp_stage_spec *spec)
{
    struct trp_driver_stage *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->job = j;
    s->index = index;
    s->profile = spec->profile;
    s->gang = spec->kind == TRP_STAGE_GANG;
    s->ranks = s->gang ? spec->ranks : 0;
    s->ntasks = spec->tasks_known ? spec->ntasks : 0;
    s->name = strdup(spec->name);
    s->parents = calloc(spec->nparents ? spec->nparents : 1, sizeof(*s->parents));
    s->nparents = spec->nparents;
    for (uint32_t i = 0; s->parents && i < spec->nparents; i++)
        s->parents[i].n = j->first + spec->parents[i].stage;
    if (s->name && s->parents)
        return s;
    stage_free(s);
    return NULL;
}

static struct trp_event_stage event_stage(const trp_driver *d, uint32_t id)
{
    const struct trp_driver_stage *s = d->stages[id];
    return (struct trp_event_stage){.stage = {id},
                                    .attempt = d->config.stage_attempt,
                                    .name = s->name,
                                    .ntasks = s->ntasks,
                                    .profile = s->profile,
                                    .parents = s->parents,
                                    .nparents = s->nparents,
                                    .gang = s->gang};
}

static void log_job_start(trp_driver *d, const struct trp_driver_job *j)
{
    struct trp_event_stage *v = calloc(j->nstages ? j->nstages : 1, sizeof(*v));
    if (!v)
        return;
    for (uint32_t i = 0; i < j->nstages; i++)
        v[i] = event_stage(d, j->first + i);
    trp_event_job_start(d->log, j->id, trp_driver_wall(d, d->now), v, j->nstages);
    free(v);
}

/* The job that is being submitted in this step has got its id. */
static void on_job_started(trp_driver *d, trp_job_id id)
{
    const struct trp_job_spec *spec = d->submitting;
    struct trp_driver_job *j = calloc(1, sizeof(*j));
    if (!j ||
        !trp_array_room((void **)&d->jobs, &d->jobs_cap, (uint64_t)id.n + 1,
                        sizeof(struct trp_driver_job *)) ||
        !trp_array_room((void **)&d->stages, &d->stages_cap,
                        (uint64_t)d->nstages + spec->nstages,
                        sizeof(struct trp_driver_stage *))) {
        free(j);
        out_of_memory(d);
        return;
    }
    while (d->njobs <= id.n)
        d->jobs[d->njobs++] = NULL;
    j->id = id;
    j->work = *d->submitting_work;
    j->first = d->nstages;
    j->nstages = spec->nstages;
    j->outcome = TRP_OUTCOME_RUNNING;
    for (uint32_t i = 0; i < spec->nstages; i++) {
        struct trp_driver_stage *s = stage_new(j, i, &spec->stages[i]);
        if (!s)
            out_of_memory(d);
        d->stages[d->nstages++] = s;
        d->stages_known++;
    }
    d->jobs[id.n] = j;
    log_job_start(d, j);
}

/* The encoded STAGE message; made when first needed. NULL: could not be made. */
const struct trp_buf *trp_driver_message(trp_driver *d, struct trp_driver_stage *s,
                                         trp_error *err)
{
    const struct trp_resource_profile *p = trp_profiles_get(d->profiles, s->profile);
    struct trp_stage_message m = {0};
    if (s->message.size)
        return &s->message;
    trp_error_set(err, TRP_ENOMEM, "out of memory");
    if (s->job->work.stage_message(s->job->work.context, s->index, &m, err) < 0)
        return NULL;
    m.stage.n = s->job->first + s->index;
    m.ntasks = s->ntasks;
    m.task_cpus = (uint32_t)p->task_cpus;
    m.name = s->name;
    m.profile = p->name;
    s->timeout_ns = m.timeout_ns;
    s->function = m.work == TRP_WORK_FUNCTION;
    trp_stage_message_put(&s->message, &m);
    if (s->message.failed) {
        trp_buf_free(&s->message);
        return NULL;
    }
    return &s->message;
}

/* A profile that the engine derived: the cluster says whether it fits. */
static void on_profile_added(trp_driver *d, trp_profile_id id)
{
    trp_error why = {0};
    const struct trp_resource_profile *p = trp_profiles_get(d->profiles, id);
    trp_event_profile(d->log, p);
    uint32_t n = d->cluster->ops->fit(d->cluster, p, 0, &why);
    struct trp_event ev = {
        .kind = TRP_EVENT_PROFILE_FIT,
        .fit = {.profile = id, .executors = n, .text = why.text}
    };
    trp_driver_try_step(d, &ev, NULL);
}

static void on_stage_ready(trp_driver *d, trp_stage_id id)
{
    struct trp_driver_stage *s = trp_driver_stage_of(d, id);
    struct trp_stage_tasks tasks = {0};
    trp_error err = {.text = "its tasks are not known"};
    int rc = TRP_EINVAL;
    if (s->job->work.stage_tasks)
        rc = s->job->work.stage_tasks(s->job->work.context, s->index, &tasks, &err);
    struct trp_event ev = {
        .kind = TRP_EVENT_STAGE_REFUSED,
        .refused_stage = {.stage = id, .text = err.text}
    };
    if (rc == 0) {
        s->ntasks = tasks.ntasks;
        ev = (struct trp_event){
            .kind = TRP_EVENT_STAGE_TASKS,
            .tasks = {.stage = id,
                      .ntasks = tasks.ntasks,
                      .prefer = tasks.prefer,
                      .done = tasks.done}
        };
    }
    trp_driver_try_step(d, &ev, NULL);
}

static void on_stage_submitted(trp_driver *d, trp_stage_id id)
{
    struct trp_driver_stage *s = trp_driver_stage_of(d, id);
    struct trp_event_stage e = event_stage(d, id.n);
    s->submitted = true;
    s->idle_since = d->now;
    s->started = trp_driver_wall(d, d->now);
    d->tasks += s->ntasks;
    trp_driver_message(d, s, NULL); /* a failure is told by the first launch */
    trp_event_stage_submitted(d->log, &e, s->started);
}

/* Nobody needs the stage's description any more. */
static void forget_stage(trp_driver *d, trp_stage_id id, struct trp_driver_stage *s)
{
    struct trp_buf b = {0};
    trp_forget_put(&b, id);
    for (uint32_t i = 0; i < s->nsent && !b.failed; i++) {
        const struct trp_staff *x = s->sent[i] ? trp_staff_of(d, i) : NULL;
        if (x && x->up && !x->released)
            trp_channel_send(d->channel, i, b.data, b.size);
    }
    trp_buf_free(&b);
    free(s->sent);
    s->sent = NULL;
    s->nsent = 0;
    trp_buf_free(&s->message);
}

static void settle_stage(trp_driver *d, trp_stage_id id)
{
    struct trp_driver_stage *s = d->stages[id.n];
    if (!s->ended || s->live)
        return;
    forget_stage(d, id, s);
    if (s->job->told)
        trp_driver_settle(d, s->job);
}

/* A job that is over, told, and of which nothing runs any more is freed. */
void trp_driver_settle(trp_driver *d, struct trp_driver_job *j)
{
    for (uint32_t i = 0; i < j->nstages; i++)
        if (d->stages[j->first + i]->live)
            return;
    trp_driver_job_free(d, j);
}

/* What failed, for trp_driver_wait: the first failure of the job. */
static void note_failure(struct trp_driver_stage *s, const struct trp_action *a)
{
    trp_error *err = &s->job->err;
    if (a->stage_ended.outcome != TRP_OUTCOME_FAILED || err->code)
        return;
    if (a->stage_ended.task == TRP_NONE)
        trp_error_set(err, a->stage_ended.code, "stage %s: %s", s->name,
                      a->stage_ended.text);
    else
        trp_error_set(err, a->stage_ended.code, "stage %s: %s, last with %s", s->name,
                      a->stage_ended.text, s->reason);
}

static void on_stage_ended(trp_driver *d, const struct trp_action *a)
{
    struct trp_driver_stage *s = trp_driver_stage_of(d, a->stage_ended.stage);
    int64_t at = trp_driver_wall(d, d->now);
    s->ended = true;
    d->stages_done++;
    note_failure(s, a);
    if (s->job->work.stage_ended && !s->job->over)
        s->job->work.stage_ended(s->job->work.context, s->index, a);
    if (s->submitted)
        trp_event_stage_ended(d->log, a->stage_ended.stage, a->stage_ended.outcome,
                              a->stage_ended.text, at);
    if (s->submitted || a->stage_ended.outcome == TRP_OUTCOME_FAILED)
        trp_progress_stage_ended(d->progress, d->now, s->name,
                                 trp_outcome_name(a->stage_ended.outcome), s->ntasks,
                                 s->failures, s->started ? at - s->started : 0);
    settle_stage(d, a->stage_ended.stage);
}

static void on_job_ended(trp_driver *d, const struct trp_action *a)
{
    struct trp_driver_job *j = d->jobs[a->job_ended.job.n];
    j->outcome = a->job_ended.outcome;
    if (j->outcome == TRP_OUTCOME_CANCELLED && !j->err.code)
        trp_error_set(&j->err, d->stop ? d->stop : TRP_ECANCELLED, "%s",
                      *d->stop_error.text ? d->stop_error.text
                                          : "the run was cancelled");
    trp_event_job_end(d->log, j->id, j->outcome, j->err.text,
                      trp_driver_wall(d, d->now));
    j->over = true; /* freed by trp_driver_wait; until then attempts may end */
}

/* ---- attempts ---- */

/* Sends the stage to an executor that has not got it yet. */
static bool stage_send(trp_driver *d, struct trp_driver_stage *s, uint32_t executor,
                       trp_error *err)
{
    if (executor < s->nsent && s->sent[executor])
        return true;
    const struct trp_buf *b = trp_driver_message(d, s, err);
    if (!b || trp_channel_send(d->channel, executor, b->data, b->size) < 0)
        return false;
    if (executor >= s->nsent) {
        uint32_t n = executor + 16;
        uint8_t *grown = realloc(s->sent, n);
        if (!grown)
            return false;
        memset(grown + s->nsent, 0, n - s->nsent);
        s->sent = grown;
        s->nsent = n;
    }
    s->sent[executor] = 1;
    return true;
}

/* "gpu=0,1\n" lines of what was granted. */
static void put_resources(struct trp_buf *b, const trp_books *books,
                          const struct trp_grant *grants, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        bool again = i && grants[i].resource == grants[i - 1].resource;
        const char *address =
            trp_books_address(books, grants[i].resource, grants[i].address);
        if (again) {
            b->data[b->size - 1] = ',';
        } else {
            const char *name = trp_books_resource_name(books, grants[i].resource);
            trp_put_raw(b, name, strlen(name));
            trp_put_raw(b, "=", 1);
        }
        trp_put_raw(b, address, strlen(address));
        trp_put_raw(b, "\n", 1);
        if (b->failed)
            return;
    }
}

static void flush_one(trp_driver *d, struct trp_staff *x)
{
    if (!x->launching)
        return;
    trp_launch_finish(&x->launches);
    if (x->up &&
        trp_channel_send(d->channel, x->id.n, x->launches.data, x->launches.size) < 0)
        out_of_memory(d);
    trp_buf_clear(&x->launches);
    x->launching = false;
}

void trp_driver_flush(trp_driver *d)
{
    for (uint32_t i = 0; i < d->nflush; i++) {
        struct trp_staff *x = trp_staff_of(d, d->to_flush[i]);
        if (x)
            flush_one(d, x);
    }
    d->nflush = 0;
}

static bool begin_batch(trp_driver *d, struct trp_staff *x)
{
    if (x->launching)
        return true;
    if (!trp_array_room((void **)&d->to_flush, &d->flush_cap, (uint64_t)d->nflush + 1,
                        sizeof(*d->to_flush)))
        return false;
    d->to_flush[d->nflush++] = x->id.n;
    trp_launch_begin(&x->launches);
    x->launching = true;
    return true;
}

/* The attempt cannot even be sent: it has ended. */
static void launch_failed(trp_driver *d, trp_attempt_id attempt, const char *text)
{
    struct trp_end end = {.attempt = attempt,
                          .status = TRP_END_START,
                          .extra = (const uint8_t *)text,
                          .extra_size = (uint32_t)strlen(text)};
    struct trp_event ev = {
        .kind = TRP_EVENT_TASK_ENDED,
        .ended = {.attempt = attempt, .status = TRP_END_START}
    };
    const struct trp_end *before = d->ended;
    d->ended = &end;
    trp_driver_try_step(d, &ev, NULL);
    d->ended = before;
}

/* Numbers of a task's attempts go on over the attempts of its stage: each has logs of
 * its own. (A task of a barrier stage, the only one that is run again as a whole here,
 * has one attempt in each.) */
static const struct trp_action *numbered(const struct trp_action *a,
                                         struct trp_action *own)
{
    bool launch = a->kind == TRP_ACTION_LAUNCH;
    uint32_t earlier = launch ? a->launch.stage_attempt : a->task_end.stage_attempt;
    if (!earlier)
        return a;
    *own = *a;
    if (launch)
        own->launch.number += earlier;
    else
        own->task_end.number += earlier;
    return own;
}

static void on_launch(trp_driver *d, const struct trp_action *a)
{
    struct trp_driver_stage *s = trp_driver_stage_of(d, a->launch.stage);
    struct trp_staff *x = trp_staff_of(d, a->launch.executor.n);
    trp_error err;
    err.text[0] = '\0';
    s->live++;
    d->attempts++;
    d->functions += s->function;
    if (!x || !x->up) /* it is being lost: the engine will hear of it */
        return;
    if (!stage_send(d, s, x->id.n, &err) || !begin_batch(d, x)) {
        launch_failed(d, a->launch.attempt, err.text);
        return;
    }
    struct trp_launch l = {.attempt = a->launch.attempt,
                           .stage = a->launch.stage,
                           .task = a->launch.task,
                           .number = (uint16_t)a->launch.number,
                           .queued = a->launch.queued,
                           .seen = x->ends};
    struct trp_buf resources = {0};
    if (a->launch.ngrants) {
        put_resources(&resources, trp_engine_books(d->engine, x->id), a->launch.grants,
                      a->launch.ngrants);
        l.resources = resources.data;
        l.resources_size = (uint32_t)resources.size;
    }
    if (s->job->work.launch && !s->job->over)
        s->job->work.launch(s->job->work.context, s->index, a->launch.task,
                            a->launch.number, &l);
    trp_launch_put(&x->launches, &l);
    if (resources.failed || x->launches.failed)
        out_of_memory(d);
    trp_buf_free(&resources);
    trp_event_task_started(d->log, a->launch.stage, a, x->host,
                           trp_driver_wall(d, d->now));
    if (x->launches.size > BATCH_BYTES)
        flush_one(d, x);
}

static void on_gang(trp_driver *d, const struct trp_action *a)
{
    struct trp_driver_stage *s = trp_driver_stage_of(d, a->gang.stage);
    trp_error err = {.text = "a static run has no place for the ranks of a gang"};
    struct trp_launch l = {.attempt = a->gang.attempt, .stage = a->gang.stage};
    s->live++;
    d->attempts++;
    d->functions += s->function;
    const struct trp_buf *b = d->cluster ? trp_driver_message(d, s, &err) : NULL;
    if (b && s->job->work.launch)
        s->job->work.launch(s->job->work.context, s->index, 0, a->gang.number, &l);
    struct trp_gang g = {.attempt = a->gang.attempt,
                         .profile = trp_profiles_get(d->profiles, a->gang.profile),
                         .ranks = a->gang.ranks,
                         .number = a->gang.number,
                         .stage = s->name,
                         .stage_message = b ? b->data : NULL,
                         .stage_message_size = b ? b->size : 0,
                         .timeout_ns = s->timeout_ns,
                         .item = l.extra,
                         .item_size = l.extra_size,
                         .has_item = l.has_item};
    if (!b || d->cluster->ops->gang_start(d->cluster, &g, &err) < 0) {
        launch_failed(d, a->gang.attempt, err.text);
        return;
    }
    trp_event_task_started(d->log, a->gang.stage, a, "", trp_driver_wall(d, d->now));
}

static void on_synced(trp_driver *d, const struct trp_action *a)
{
    struct trp_buf b = {0};
    struct trp_synced s = {.attempt = a->synced.attempt,
                           .epoch = a->synced.epoch,
                           .status = a->synced.code,
                           .count = a->synced.nmessages,
                           .text = (const uint8_t *)a->synced.text,
                           .text_size = (uint32_t)strlen(a->synced.text)};
    trp_synced_put(&b, &s);
    for (uint32_t i = 0; i < a->synced.nmessages; i++)
        trp_put_bytes(&b, a->synced.messages[i].data, a->synced.messages[i].size);
    if (b.failed)
        out_of_memory(d);
    else /* a peer that is gone is told of otherwise */
        trp_channel_send(d->channel, a->synced.executor.n, b.data, b.size);
    trp_buf_free(&b);
}

static void on_kill(trp_driver *d, const struct trp_action *a)
{
    if (a->kill.executor.n == TRP_NONE) {
        if (d->cluster)
            d->cluster->ops->gang_kill(d->cluster, a->kill.attempt, d->soft);
        return;
    }
    struct trp_staff *x = trp_staff_of(d, a->kill.executor.n);
    if (!x || !x->up)
        return;
    flush_one(d, x); /* the launch goes first */
    struct trp_buf b = {0};
    enum trp_kill_mode mode = d->soft ? TRP_KILL_SOFT : TRP_KILL_NOW;
    trp_kill_put(&b, a->kill.attempt, a->kill.recall ? TRP_KILL_RECALL : mode);
    if (b.failed || trp_channel_send(d->channel, x->id.n, b.data, b.size) < 0)
        out_of_memory(d);
    trp_buf_free(&b);
}

static void note_task_failure(trp_driver *d, struct trp_driver_stage *s,
                              const struct trp_action *v, const char *reason)
{
    char line[1100];
    s->failures++;
    d->failures++;
    snprintf(s->reason, sizeof(s->reason), "%s", reason);
    snprintf(line, sizeof(line), "troupe: stage %s: task %u, attempt %u: %s%s", s->name,
             v->task_end.task, v->task_end.number, reason,
             v->task_end.retried ? "; it is run again" : "");
    if (d->failures <= 100)
        trp_progress_line(d->progress, line);
}

static void on_task_end(trp_driver *d, const struct trp_action *v)
{
    struct trp_driver_stage *s = trp_driver_stage_of(d, v->task_end.stage);
    const struct trp_staff *x = trp_staff_of(d, v->task_end.executor.n);
    const struct trp_end *end = d->ended;
    char reason[sizeof(s->reason)];
    if (end && end->attempt.n != v->task_end.attempt.n)
        end = NULL;
    if (--s->live == 0)
        s->idle_since = d->now;
    d->attempts--;
    d->functions -= s->function;
    int64_t launched = trp_driver_wall(d, v->task_end.launched_ns);
    int64_t now = trp_driver_wall(d, d->now);
    struct trp_event_task t = {
        .verdict = v,
        .end = end,
        .launched = launched,
        .ended = now,
        .host = x && x->host ? x->host : "",
        .profile = trp_profiles_get(d->profiles, s->profile),
        .ranks = s->ranks,
        .reason = trp_end_reason(v, end, s->timeout_ns, reason, sizeof(reason)),
    };
    trp_event_task_ended(d->log, &t);
    if (v->task_end.status == TRP_END_SUCCESS)
        d->tasks_done++;
    else if (v->task_end.counted)
        note_task_failure(d, s, v, reason);
    if (s->job->work.task_ended && !s->job->over)
        s->job->work.task_ended(s->job->work.context, s->index, v, end);
    settle_stage(d, v->task_end.stage);
}

static void on_stage_retried(trp_driver *d, const struct trp_action *a)
{
    char line[512];
    snprintf(line, sizeof(line), "troupe: stage %s is run again: %s",
             trp_driver_stage_of(d, a->stage_retried.stage)->name,
             a->stage_retried.text);
    trp_progress_line(d->progress, line);
    trp_event_message(d->log, "warning", line + sizeof("troupe: ") - 1,
                      trp_driver_wall(d, d->now));
}

/* ---- the step ---- */

static void perform(trp_driver *d, const struct trp_action *a)
{
    struct trp_action own;
    switch (a->kind) {
    case TRP_ACTION_JOB_STARTED:
        on_job_started(d, a->job);
        break;
    case TRP_ACTION_PROFILE_ADDED:
        on_profile_added(d, a->profile);
        break;
    case TRP_ACTION_STAGE_READY:
        on_stage_ready(d, a->stage);
        break;
    case TRP_ACTION_STAGE_SUBMITTED:
        on_stage_submitted(d, a->stage);
        break;
    case TRP_ACTION_LAUNCH:
        on_launch(d, numbered(a, &own));
        break;
    case TRP_ACTION_GANG:
        on_gang(d, a);
        break;
    case TRP_ACTION_SYNCED:
        on_synced(d, a);
        break;
    case TRP_ACTION_KILL:
        on_kill(d, a);
        break;
    case TRP_ACTION_TASK_END:
        on_task_end(d, numbered(a, &own));
        break;
    case TRP_ACTION_STAGE_ENDED:
        on_stage_ended(d, a);
        break;
    case TRP_ACTION_JOB_ENDED:
        on_job_ended(d, a);
        break;
    case TRP_ACTION_START_EXECUTOR:
        trp_staff_start(d, a->executor.executor, a->executor.profile);
        break;
    case TRP_ACTION_RELEASE_EXECUTOR:
        trp_staff_release(d, a->executor.executor);
        break;
    case TRP_ACTION_RELABEL_EXECUTOR:
        trp_staff_relabel(d, a->executor.executor, a->executor.profile);
        break;
    case TRP_ACTION_STAGE_RETRIED:
        on_stage_retried(d, a);
        break;
    case TRP_ACTION_SET_ENDED: /* what follows is told by itself */
    case TRP_ACTION_RESUBMITTED:
    case TRP_ACTION_SPECULATABLE:
    case TRP_ACTION_EXCLUDED:
        break;
    }
}

/* Steps without performing: for use while an action is being performed, when the
 * actions that follow are taken by the loop of the step further out. */
int trp_driver_try_step(trp_driver *d, const struct trp_event *ev, trp_error *err)
{
    d->steps++;
    trp_error own; /* not cleared: this is called a million times a second */
    int rc = d->trace ? trp_engine_trace_step(d->trace, d->engine, d->now, ev,
                                              err ? err : &own)
                      : trp_engine_step(d->engine, d->now, ev, err ? err : &own);
    if (rc == TRP_ENOMEM)
        out_of_memory(d);
    return rc;
}

void trp_driver_step(trp_driver *d, const struct trp_event *ev)
{
    if (trp_driver_try_step(d, ev, NULL) == 0)
        trp_driver_perform(d);
}

void trp_driver_perform(trp_driver *d)
{
    if (d->performing)
        return;
    d->performing = true;
    const struct trp_action *a;
    while ((a = trp_engine_next(d->engine))) {
        if (d->trace)
            trp_engine_trace_action(d->trace, a);
        perform(d, a);
    }
    d->performing = false;
}
