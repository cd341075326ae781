/*
 * What the engine decided of jobs and stages: the driver's record of them, their
 * descriptions for executors, the event log and the progress line.
 */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "core/base/array.h"
#include "driver/freed_datasets.h"
#include "driver/kept_datasets.h"
#include "driver/map_outputs.h"
#include "driver/perform.h"
#include "events/task_names.h"

struct trp_driver_stage *trp_driver_stage_of(const trp_driver *d, trp_stage_id id)
{
    return id.n < d->nstages ? d->stages[id.n] : NULL;
}

static bool name_of(void *context, uint32_t task, struct trp_buf *b)
{
    const struct trp_driver_stage *s = context;
    return s->job->work.task_name(s->job->work.context, s->index, task, b);
}

const char *trp_driver_task_word(const struct trp_driver_stage *s, uint32_t task,
                                 char *buf)
{
    struct trp_buf b = {0};
    bool named = s->job->work.task_name && name_of((void *)(uintptr_t)s, task, &b);
    trp_put_u8(&b, 0);
    trp_task_word(task, named && !b.failed ? (const char *)b.data : NULL, buf);
    trp_buf_free(&b);
    return buf;
}

static void stage_free(struct trp_driver_stage *s)
{
    if (!s)
        return;
    trp_buf_free(&s->inputs);
    trp_buf_free(&s->message);
    free(s->sent);
    free(s->name);
    free(s->pool);
    free(s->parents);
    free(s);
}

void trp_driver_job_free(trp_driver *d, struct trp_driver_job *j)
{
    LL_DELETE(d->there, j);
    for (uint32_t i = 0; i < j->nstages; i++) {
        if (d->stages[j->first + i] && d->log)
            trp_event_stage_forgotten(d->log, (trp_stage_id){j->first + i});
        stage_free(d->stages[j->first + i]);
        d->stages[j->first + i] = NULL;
    }
    d->jobs[j->id.n] = NULL;
    if (j->work.gone)
        j->work.gone(j->work.context);
    free(j->name);
    free(j->pool);
    free(j);
}

static struct trp_driver_stage *stage_new(struct trp_driver_job *j, trp_stage_id id,
                                          uint32_t index,
                                          const struct trp_stage_spec *spec)
{
    struct trp_driver_stage *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->id = id;
    s->dataset = TRP_NONE;
    s->job = j;
    s->index = index;
    s->profile = spec->profile;
    s->gang = spec->kind == TRP_STAGE_GANG;
    s->whole = spec->barrier;
    s->ranks = s->gang ? spec->ranks : 0;
    s->ntasks = spec->tasks_known ? spec->ntasks : 0;
    s->name = strdup(spec->name);
    s->pool = spec->pool ? strdup(spec->pool) : NULL;
    s->parents = calloc(spec->nparents ? spec->nparents : 1, sizeof(*s->parents));
    s->nparents = spec->nparents;
    for (uint32_t i = 0; s->parents && i < spec->nparents; i++)
        s->parents[i].n = j->first + spec->parents[i].stage;
    if (s->name && s->parents && (s->pool || !spec->pool))
        return s;
    stage_free(s);
    return NULL;
}

struct trp_driver_stage *trp_perform_stage_of_dataset(struct trp_driver_job *j,
                                                      uint32_t id,
                                                      const struct trp_stage_view *v,
                                                      const trp_stage_id *parents,
                                                      uint32_t nparents)
{
    const struct trp_stage_spec spec = {.name = v->name,
                                        .profile = v->profile,
                                        .barrier = v->barrier,
                                        .tasks_known = true,
                                        .ntasks = v->ntasks};
    struct trp_driver_stage *s = stage_new(j, (trp_stage_id){id}, v->dataset, &spec);
    trp_stage_id *own = s ? calloc(nparents ? nparents : 1, sizeof(*own)) : NULL;
    if (!own) {
        stage_free(s);
        return NULL;
    }
    for (uint32_t i = 0; i < nparents; i++)
        own[i] = parents[i];
    free(s->parents);
    s->parents = own;
    s->nparents = nparents;
    s->dataset = v->dataset;
    s->map = v->map;
    return s;
}

static struct trp_event_stage event_stage(const trp_driver *d, uint32_t id)
{
    const struct trp_driver_stage *s = d->stages[id];
    return (struct trp_event_stage){.stage = {id},
                                    .attempt = s->job->work.first_attempt + s->attempt,
                                    .retry = s->attempt,
                                    .name = s->name,
                                    .ntasks = s->ntasks,
                                    .profile = s->profile,
                                    .parents = s->parents,
                                    .nparents = s->nparents,
                                    .map = s->map,
                                    .gang = s->gang,
                                    .pool = s->pool ? s->pool : s->job->pool};
}

void trp_perform_log_job(trp_driver *d, struct trp_driver_job *j)
{
    if (j->logged)
        return;
    j->logged = true;
    struct trp_event_stage *v = calloc(j->nstages ? j->nstages : 1, sizeof(*v));
    if (!v)
        return;
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->nstages; i++)
        if (d->stages[j->first + i])
            v[n++] = event_stage(d, j->first + i);
    const struct trp_event_job job = {.job = j->id, .name = j->name, .pool = j->pool};
    trp_event_job_start(d->log, &job, trp_driver_wall(d, d->now), v, n);
    free(v);
}

static struct trp_driver_job *job_new(const trp_driver *d, trp_job_id id,
                                      const struct trp_job_spec *spec)
{
    struct trp_driver_job *j = calloc(1, sizeof(*j));
    if (!j)
        return NULL;
    j->id = id;
    j->work = *d->submitting_work;
    j->first = d->nstages;
    j->nstages = spec->nstages;
    j->outcome = TRP_OUTCOME_RUNNING;
    j->failed.n = TRP_NONE;
    j->name = spec->name ? strdup(spec->name) : NULL;
    j->pool = spec->pool ? strdup(spec->pool) : NULL;
    if ((j->name || !spec->name) && (j->pool || !spec->pool))
        return j;
    free(j->name);
    free(j->pool);
    free(j);
    return NULL;
}

/* The job that is being submitted in this step has got its id. */
void trp_perform_job_started(trp_driver *d, trp_job_id id)
{
    const struct trp_job_spec *spec = d->submitting;
    bool room = TRP_ARRAY_GROW(d->jobs, id.n, d->jobs_cap) &&
                TRP_ARRAY_RESERVE(d->stages, d->stages_cap,
                                  (uint64_t)d->nstages + spec->nstages);
    struct trp_driver_job *j = room ? job_new(d, id, spec) : NULL;
    if (!j) {
        trp_perform_out_of_memory(d);
        return;
    }
    while (d->njobs <= id.n)
        d->jobs[d->njobs++] = NULL;
    LL_PREPEND(d->there, j);
    for (uint32_t i = 0; i < spec->nstages; i++) {
        struct trp_driver_stage *s =
            stage_new(j, (trp_stage_id){d->nstages}, i, &spec->stages[i]);
        if (!s)
            trp_perform_out_of_memory(d);
        d->stages[d->nstages++] = s;
        d->stages_known++;
        if (s)
            trp_driver_count_stage(d, s, true);
    }
    d->jobs[id.n] = j;
    if (spec->is_dataset) /* planned in this step, or later */
        trp_driver_learn_stages(d);
    else
        trp_perform_log_job(d, j);
}

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
    m.stage = s->id;
    m.stage_attempt = s->job->work.first_attempt;
    m.whole = s->whole;
    m.ntasks = s->ntasks;
    m.task_cpus = (uint32_t)p->task_cpus;
    m.name = s->name;
    m.profile = p->name;
    m.memory = trp_profile_task_memory(p, d->memory_fraction);
    m.records_ns = d->records_ns;
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
void trp_perform_profile_added(trp_driver *d, trp_profile_id id)
{
    trp_error why = {0};
    const struct trp_resource_profile *p = trp_profiles_get(d->profiles, id);
    trp_event_profile(d->log, p);
    struct trp_event ev = trp_driver_fit(d, p, &why);
    trp_driver_try_step(d, &ev, NULL);
}

void trp_perform_stage_ready(trp_driver *d, trp_stage_id id)
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
        d->tasks += s->counted ? tasks.ntasks - s->ntasks : 0;
        s->ntasks = tasks.ntasks;
        ev = (struct trp_event){
            .kind = TRP_EVENT_STAGE_TASKS,
            .tasks = {.stage = id,
                      .ntasks = tasks.ntasks,
                      .prefer = tasks.prefer,
                      .done = tasks.done,
                      .by = tasks.by,
                      .nby = tasks.nby}
        };
    }
    trp_driver_try_step(d, &ev, NULL);
    trp_driver_stages_changed(d);
}

void trp_driver_count_stage(trp_driver *d, struct trp_driver_stage *s, bool counts)
{
    if (s->counted == counts)
        return;
    s->counted = counts;
    d->tasks += counts ? s->ntasks : -s->ntasks;
}

void trp_driver_count_done(trp_driver *d, struct trp_driver_stage *s, uint32_t done)
{
    done = done < s->ntasks ? done : s->ntasks; /* some may have ended twice */
    d->tasks_done += done - s->done;
    s->done = done;
}

void trp_perform_stage_submitted(trp_driver *d, trp_stage_id id)
{
    trp_driver_learn_stages(d);
    struct trp_driver_stage *s = trp_driver_stage_of(d, id);
    struct trp_stage_view view = {0};
    if (trp_engine_stage(d->engine, id, &view) == 0 && view.attempts)
        s->attempt = view.attempts - 1;
    d->stages_done -= s->ended; /* a map stage whose outputs were lost */
    s->ended = false;
    trp_driver_count_stage(d, s, true);
    trp_driver_count_done(d, s, view.succeeded);
    struct trp_event_kept kept[TRP_KEPT_SHOWN];
    struct trp_event_stage e = event_stage(d, id.n);
    e.kept = kept;
    e.nkept = trp_driver_kept_of(d, s->dataset, kept);
    if (s->job->work.stage_attempt && s->attempt)
        s->job->work.stage_attempt(s->job->work.context, s->index, e.attempt);
    s->submitted = true;
    s->waits_for = TRP_WAIT_NOTHING;
    s->waits_due = 0;
    s->idle_since = d->now;
    s->started = trp_driver_wall(d, d->now);
    trp_driver_message(d, s, NULL); /* a failure is told by the first launch */
    trp_event_stage_submitted(d->log, &e, s->started);
    if (s->job->work.task_name && !s->attempt)
        trp_event_task_names(d->log, id, s->ntasks, name_of, s, s->started);
}

/* Nobody needs the stage's description any more. */
static void forget_stage(trp_driver *d, trp_stage_id id, struct trp_driver_stage *s)
{
    for (uint32_t i = 0; i < s->nsent; i++) {
        struct trp_executor_record *x = s->sent[i] ? trp_record_of(d, i) : NULL;
        if (x && x->state & TRP_RECORD_JOINED && !x->released)
            trp_perform_over(d, x, id);
    }
    free(s->sent);
    s->sent = NULL;
    s->nsent = 0;
    trp_buf_free(&s->message);
}

void trp_perform_settle(trp_driver *d, trp_stage_id id)
{
    struct trp_driver_stage *s = d->stages[id.n];
    if (!s->ended || s->live)
        return;
    forget_stage(d, id, s);
    d->unsettled |= s->job->told;
}

/* Another job may need its stages when it is over. */
static bool is_of_use(const trp_driver *d, const struct trp_driver_job *j)
{
    struct trp_stage_view v;
    if (!j->over || !j->told)
        return true;
    for (uint32_t i = j->first; i < j->first + j->nstages; i++)
        if (d->stages[i] &&
            (d->stages[i]->live ||
             (trp_engine_stage(d->engine, (trp_stage_id){i}, &v) == 0 && v.used)))
            return true;
    return false;
}

void trp_driver_settle(trp_driver *d)
{
    d->unsettled = false;
    for (struct trp_driver_job *j = d->there, *next; j; j = next) {
        next = j->next;
        if (!is_of_use(d, j))
            trp_driver_job_free(d, j);
    }
    trp_driver_free_datasets(d);
}

/* What trp_driver_wait says: the stage's words, and whose it was where they do not say
 * that already. */
static void blame(struct trp_driver_job *j, const char *stage, const trp_error *why)
{
    bool named = j->name && !(stage && strcmp(j->name, stage) == 0);
    if (j->err.code)
        return; /* what failed first */
    trp_error_set(&j->err, why->code, "%s%s%s%s", named ? "job " : "",
                  named ? j->name : "", named ? ": " : "", why->text);
}

/* A stage told as one has one job. One of datasets may have several, which are told
 * before it or after it. */
static void note_failure(trp_driver *d, const struct trp_driver_stage *s,
                         const struct trp_action *a)
{
    trp_error why;
    char failed[48], task[TRP_TASK_WORD];
    if (a->stage_ended.outcome != TRP_OUTCOME_FAILED)
        return;
    if (a->stage_ended.task == TRP_NONE || a->stage_ended.task != s->failed.task)
        trp_error_set(&why, a->stage_ended.code, "stage %s: %s", s->name,
                      a->stage_ended.text);
    else
        trp_error_set(
            &why, a->stage_ended.code, "stage %s: task %s %s %s", s->name,
            trp_driver_task_word(s, s->failed.task, task),
            trp_failed_text(s->failed.times, s->failed.reason, failed, sizeof(failed)),
            s->failed.reason);
    if (s->dataset == TRP_NONE) {
        blame(s->job, s->name, &why);
        return;
    }
    d->failure.stage = s->id;
    d->failure.err = why;
    for (struct trp_driver_job *j = d->there; j; j = j->next)
        if (j->failed.n == s->id.n)
            blame(j, s->name, &why);
}

static void note_job_failure(trp_driver *d, struct trp_driver_job *j,
                             const struct trp_action *a)
{
    trp_stage_id id = a->job_ended.stage;
    trp_error why;
    if (id.n == TRP_NONE) {
        trp_error_set(&why, a->job_ended.code, "%s", a->job_ended.text);
        blame(j, NULL, &why);
    } else if (d->failure.err.code && d->failure.stage.n == id.n) {
        blame(j, d->stages[id.n]->name, &d->failure.err);
    } else {
        j->failed = id;
    }
}

static void show_end(trp_driver *d, const struct trp_driver_stage *s,
                     enum trp_outcome outcome, int64_t at)
{
    struct trp_progress_stage end = {
        .name = s->name,
        .outcome = trp_outcome_name(outcome),
        .tasks = s->ntasks,
        .failures = s->failures,
        .given_up = s->given_up,
        .skipped = s->skipped,
        .wall_ns = s->started ? at - s->started : 0,
    };
    trp_progress_stage_ended(d->progress, d->now, &end);
}

/* The engine knows tasks by their numbers: "task 1 failed once" is told with its name. */
static struct trp_action with_name(const struct trp_driver_stage *s,
                                   const struct trp_action *a, char *buf, size_t size)
{
    struct trp_action own = *a;
    char number[24], word[TRP_TASK_WORD];
    size_t n = (size_t)snprintf(number, sizeof number, "task %u ", a->stage_ended.task);
    if (!a->stage_ended.text || strncmp(a->stage_ended.text, number, n) != 0)
        return own;
    snprintf(buf, size, "task %s %s",
             trp_driver_task_word(s, a->stage_ended.task, word),
             a->stage_ended.text + n);
    own.stage_ended.text = buf;
    return own;
}

void trp_perform_stage_ended(trp_driver *d, const struct trp_action *action)
{
    struct trp_driver_stage *s = trp_driver_stage_of(d, action->stage_ended.stage);
    char text[TRP_ERROR_TEXT];
    const struct trp_action own = with_name(s, action, text, sizeof text), *a = &own;
    int64_t at = trp_driver_wall(d, d->now);
    s->ended = true;
    d->stages_done++;
    d->checking -= s->check_since != 0; /* it was cancelled */
    s->check_since = 0;
    trp_driver_stages_changed(d);
    note_failure(d, s, a);
    if (s->job->work.stage_ended && !s->job->over)
        s->job->work.stage_ended(s->job->work.context, s->index, a);
    bool shown = s->submitted || a->stage_ended.outcome == TRP_OUTCOME_FAILED;
    if (shown ||
        (a->stage_ended.outcome == TRP_OUTCOME_SKIPPED && *a->stage_ended.text))
        trp_event_stage_ended(d->log, a->stage_ended.stage, a->stage_ended.outcome,
                              a->stage_ended.text, at);
    if (shown)
        show_end(d, s, a->stage_ended.outcome, at);
    else if (a->stage_ended.outcome == TRP_OUTCOME_SKIPPED && !*a->stage_ended.text)
        trp_driver_count_stage(d, s, false); /* nothing of it was missing */
    trp_perform_settle(d, a->stage_ended.stage);
}

void trp_perform_job_ended(trp_driver *d, const struct trp_action *a)
{
    struct trp_driver_job *j = d->jobs[a->job_ended.job.n];
    j->outcome = a->job_ended.outcome;
    trp_perform_log_job(d, j);
    for (uint32_t i = 0; i < j->nstages; i++) {
        struct trp_driver_stage *s = d->stages[j->first + i];
        if (s && !s->submitted && !s->ended) { /* nothing of it was missing */
            s->ended = true;
            d->stages_done++;
            trp_driver_count_stage(d, s, j->outcome != TRP_OUTCOME_SUCCEEDED);
        }
    }
    if (j->outcome == TRP_OUTCOME_FAILED)
        note_job_failure(d, j, a);
    if (j->outcome == TRP_OUTCOME_CANCELLED && !j->err.code)
        trp_error_set(&j->err, d->stop ? d->stop : TRP_ECANCELLED, "%s",
                      *d->stop_error.text ? d->stop_error.text : a->job_ended.text);
    trp_event_job_end(d->log, j->id, j->outcome,
                      *j->err.text ? j->err.text : a->job_ended.text,
                      trp_driver_wall(d, d->now));
    j->over = true;
    d->unsettled = true;
}

/* Gangs that wait for their room do so no longer. */
static uint32_t end_waiting_gangs(const trp_driver *d)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->nstages; i++) {
        const struct trp_driver_stage *s = d->stages[i];
        if (!s || !s->gang || !s->live || s->has_room)
            continue;
        d->cluster->ops->gang_kill(d->cluster, s->launch.gang.attempt, false);
        n++;
    }
    return n;
}

/* A stage gave up, and what runs may finish: attempts that wait behind others of their
 * executor are recalled. */
void trp_perform_job_drains(trp_driver *d, trp_stage_id id)
{
    uint32_t waiting = d->cluster ? end_waiting_gangs(d) : 0, runs = 0;
    for (uint32_t i = 0; i < d->nstages; i++) {
        struct trp_stage_view v;
        if (d->stages[i] && trp_engine_stage(d->engine, (trp_stage_id){i}, &v) == 0)
            runs += v.running;
    }
    runs -= waiting;
    d->drains = true;
    if (!runs)
        return;
    char text[256];
    snprintf(text, sizeof text,
             "stage %.64s gave up: nothing new is started, and %u task%s still run%s; "
             "Ctrl-C kills %s",
             trp_driver_stage_of(d, id)->name, runs, runs == 1 ? "" : "s",
             runs == 1 ? "s" : "", runs == 1 ? "it" : "them");
    trp_progress_end_line(d->progress, d->now, text);
    trp_driver_log(d, "warning", "%s", text);
}

void trp_perform_stage_retried(trp_driver *d, const struct trp_action *a)
{
    trp_driver_warn(d, "stage %s is run again: %s",
                    trp_driver_stage_of(d, a->stage_retried.stage)->name,
                    a->stage_retried.text);
    trp_event_stage_retried(d->log, a->stage_retried.stage, a->stage_retried.text,
                            trp_driver_wall(d, d->now));
}
