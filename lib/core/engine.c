/*
 * The step: one event in, what follows from it, and the same closing work every time:
 * ready stages are started, wanted executors are compared with those there are, jobs
 * that are over are freed. Each event has its own function; what it may refer to is
 * looked up and, when it is not (any more) there, the event is counted as ignored.
 */
#include "core/engine.h"

#include <string.h>

#include "core/engine_state.h"

void trp_engine_config_init(struct trp_engine_config *c)
{
    const int64_t s = INT64_C(1000000000);
    *c = (struct trp_engine_config){
        .max_failures = 4,
        .idle_timeout_ns = 60 * s,
        .max_executors = UINT32_MAX,
        .alloc_max_executors = UINT32_MAX,
        .queue_ahead_ns = s / 100,
        .queue_ahead_max = 2048,
        .retry_first_ns = s,
        .retry_max_ns = 60 * s,
        .max_start_failures = 5,
    };
    c->locality_wait_ns[TRP_PROCESS_LOCAL] = 3 * s;
    c->locality_wait_ns[TRP_NODE_LOCAL] = 3 * s;
    c->locality_wait_ns[TRP_RACK_LOCAL] = 3 * s;
}

const char *trp_level_name(enum trp_level level)
{
    static const char *const names[] = {"PROCESS_LOCAL", "NODE_LOCAL", "NO_PREF",
                                        "RACK_LOCAL", "ANY"};
    return (unsigned)level < TRP_LEVELS ? names[level] : "?";
}

const char *trp_outcome_name(enum trp_outcome outcome)
{
    static const char *const names[] = {"running", "succeeded", "failed", "cancelled",
                                        "skipped"};
    return (unsigned)outcome < sizeof(names) / sizeof(*names) ? names[outcome] : "?";
}

const char *trp_end_status_name(enum trp_end_status status)
{
    static const char *const names[] = {"success", "exit",    "signal", "timeout",
                                        "memory",  "start",   "killed", "recalled",
                                        "lost",    "platform"};
    return (unsigned)status < sizeof(names) / sizeof(*names) ? names[status] : "?";
}

int trp_engine_new(const struct trp_engine_config *config, trp_profiles *profiles,
                   trp_engine **ret_engine, trp_error *err)
{
    struct trp_engine *e = calloc(1, sizeof(*e));
    if (!e)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the engine");
    e->config = *config;
    e->profiles = profiles;
    e->attempts.free = TRP_NONE;
    e->locality_due = e->idle_due = e->retry_due = INT64_MAX;
    *ret_engine = e;
    return 0;
}

void trp_engine_free(trp_engine *e)
{
    if (!e)
        return;
    trp_jobs_free(e);
    for (uint32_t i = 0; i < e->attempts.n; i++)
        free(e->attempts.v[i].grants);
    free(e->attempts.v);
    for (uint32_t i = 0; i < e->nexecutors; i++) {
        if (e->executors[i])
            trp_books_free(e->executors[i]->books);
        free(e->executors[i]);
    }
    free(e->executors);
    for (uint32_t i = 0; i < e->nclasses; i++) {
        if (!e->classes[i])
            continue;
        free(e->classes[i]->never);
        free(e->classes[i]->start_failure);
        free(e->classes[i]);
    }
    free(e->classes);
    trp_hosts_free(&e->hosts);
    trp_actions_free(&e->actions);
    free(e);
}

/* ---- events ---- */

static void on_stage_tasks(struct trp_engine *e, const struct trp_event *ev)
{
    struct trp_stage *s = trp_stage_find(e, ev->tasks.stage);
    trp_error err;
    if (!s || s->state != TRP_STAGE_ASKED) {
        e->ignored++;
        return;
    }
    if (trp_stage_submit(e, s, ev->tasks.ntasks, &ev->tasks.prefer, ev->tasks.done,
                         &err) < 0)
        trp_stage_end(e, s, TRP_OUTCOME_FAILED, err.code, TRP_NONE, err.text);
    trp_job_check_over(e, s->job);
}

static void on_stage_refused(struct trp_engine *e, const struct trp_event *ev)
{
    struct trp_stage *s = trp_stage_find(e, ev->refused_stage.stage);
    if (!s || s->state != TRP_STAGE_ASKED) {
        e->ignored++;
        return;
    }
    trp_stage_end(e, s, TRP_OUTCOME_FAILED, TRP_EFAILED, TRP_NONE,
                  ev->refused_stage.text);
    trp_job_check_over(e, s->job);
}

static void on_profile_fit(struct trp_engine *e, const struct trp_event *ev)
{
    struct trp_class *c = trp_profiles_get(e->profiles, ev->fit.profile)
                              ? trp_class_of(e, ev->fit.profile)
                              : NULL;
    if (!c) {
        e->ignored++;
        return;
    }
    c->fit = ev->fit.executors;
    e->any_dirty = true;
    if (!c->fit)
        trp_wanted_start_failed(e, c, true, ev->fit.text);
}

static int on_executor_added(struct trp_engine *e, const struct trp_event *ev,
                             trp_error *err)
{
    struct trp_executor *x = trp_executor_find(e, ev->added.executor);
    if (!x || x->state != TRP_EXECUTOR_REQUESTED) {
        e->ignored++;
        return 0;
    }
    int rc = trp_executor_live(e, x, ev, err);
    if (rc < 0)
        return rc;
    struct trp_class *c = e->classes[x->class];
    c->backoff = e->config.retry_first_ns;
    c->retry_at = 0;
    c->start_failures = 0;
    trp_round_partial(e, x);
    e->any_dirty = true;
    return 0;
}

static void on_executor_refused(struct trp_engine *e, const struct trp_event *ev)
{
    struct trp_executor *x = trp_executor_find(e, ev->refused.executor);
    if (!x || x->came) {
        e->ignored++;
        return;
    }
    struct trp_class *c = e->classes[x->class];
    bool withdrawn = x->state == TRP_EXECUTOR_RELEASING;
    trp_executor_remove(e, x);
    if (!withdrawn)
        trp_wanted_start_failed(e, c, ev->refused.never, ev->refused.text);
}

static void on_executor_lost(struct trp_engine *e, const struct trp_event *ev)
{
    struct trp_executor *x = trp_executor_find(e, ev->lost.executor);
    if (!x) {
        e->ignored++;
        return;
    }
    struct trp_class *c = e->classes[x->class];
    bool start_failed = x->state == TRP_EXECUTOR_REQUESTED;
    trp_executor_lost(e, x, ev->lost.reason, ev->lost.culprit, ev->lost.code,
                      ev->lost.has_culprit);
    if (start_failed)
        trp_wanted_start_failed(e, c, false, "an executor ended before it was ready");
    trp_round_full(e, c); /* its tasks, to those that have a slot */
}

static void on_task_ended(struct trp_engine *e, const struct trp_event *ev)
{
    uint32_t slot = trp_attempt_find(e, ev->ended.attempt);
    if (slot == TRP_NONE) {
        e->ignored++;
        return;
    }
    uint32_t executor = e->attempts.v[slot].executor;
    bool recalled = ev->ended.status == TRP_END_RECALLED;
    if (recalled && e->attempts.v[slot].state != TRP_ATTEMPT_QUEUED) {
        e->ignored++;
        return;
    }
    /* What comes back, or stood behind a limit, may go to any executor. */
    bool revive = ev->ended.status != TRP_END_SUCCESS ||
                  e->attempts.v[slot].set->stage->max_running;
    trp_attempt_ended(e, slot, ev->ended.status, ev->ended.code, ev->ended.duration_ns,
                      true);
    if (executor == TRP_NONE) {
        e->any_dirty = true;
        return;
    }
    struct trp_executor *x = e->executors[executor];
    trp_round_partial(e, x);
    if (revive)
        trp_round_full(e, e->classes[x->class]);
    if (!x->nrunning)
        e->any_dirty = true;
}

static void on_drain(struct trp_engine *e)
{
    e->draining = true;
    for (uint32_t i = 0; i < e->nclasses; i++) {
        struct trp_executor *x = e->classes[i] ? e->classes[i]->queued : NULL;
        for (; x; x = x->queued_next == e->classes[i]->queued ? NULL : x->queued_next)
            for (uint32_t s = x->queue_first; s != TRP_NONE;
                 s = e->attempts.v[s].next) {
                struct trp_action *act = trp_action_add(e, TRP_ACTION_KILL);
                act->kill.attempt = trp_attempt_id_of(e, s);
                act->kill.executor = x->id;
                act->kill.recall = true;
            }
    }
}

static void on_time(struct trp_engine *e)
{
    trp_wanted_time(e);
    if (e->now < e->locality_due)
        return;
    e->locality_due = INT64_MAX;
    for (uint32_t i = 0; i < e->nclasses; i++)
        if (e->classes[i] && e->classes[i]->free && e->classes[i]->first)
            trp_round_full(e, e->classes[i]);
}

static void on_cancel(struct trp_engine *e, const struct trp_event *ev)
{
    struct trp_job *j = ev->cancel.job.n < e->njobs ? e->jobs[ev->cancel.job.n] : NULL;
    if (j)
        trp_job_cancel(e, j);
    else
        e->ignored++;
}

static int take_event(struct trp_engine *e, const struct trp_event *ev, trp_error *err)
{
    switch (ev->kind) {
    case TRP_EVENT_JOB:
        return trp_job_submit(e, ev->job.spec, err);
    case TRP_EVENT_STAGE_TASKS:
        on_stage_tasks(e, ev);
        return 0;
    case TRP_EVENT_STAGE_REFUSED:
        on_stage_refused(e, ev);
        return 0;
    case TRP_EVENT_PROFILE_FIT:
        on_profile_fit(e, ev);
        return 0;
    case TRP_EVENT_EXECUTOR_ADDED:
        return on_executor_added(e, ev, err);
    case TRP_EVENT_EXECUTOR_REFUSED:
        on_executor_refused(e, ev);
        return 0;
    case TRP_EVENT_EXECUTOR_LOST:
        on_executor_lost(e, ev);
        return 0;
    case TRP_EVENT_TASK_ENDED:
        on_task_ended(e, ev);
        return 0;
    case TRP_EVENT_CANCEL_JOB:
        on_cancel(e, ev);
        return 0;
    case TRP_EVENT_DRAIN:
        on_drain(e);
        return 0;
    case TRP_EVENT_TIME:
        on_time(e);
        return 0;
    }
    return trp_error_set(err, TRP_EINVAL, "no such event: %d", (int)ev->kind);
}

int trp_engine_step(trp_engine *e, int64_t now_ns, const struct trp_event *event,
                    trp_error *err)
{
    if (now_ns > e->now)
        e->now = now_ns;
    int rc = take_event(e, event, err);
    if (e->ready_first)
        trp_jobs_run_ready(e);
    if (e->any_dirty)
        trp_wanted_reconcile(e);
    if (e->draining)
        trp_jobs_check_drained(e);
    if (e->dead_jobs)
        trp_jobs_free_dead(e);
    if (rc == 0 && e->out_of_memory)
        return trp_error_set(err, TRP_ENOMEM, "out of memory in the engine");
    return rc;
}

/* ---- views ---- */

int64_t trp_engine_next_timer(const trp_engine *e)
{
    int64_t due = e->locality_due;
    if (e->idle_due < due)
        due = e->idle_due;
    return e->retry_due < due ? e->retry_due : due;
}

trp_executor_id trp_engine_expect_executor(trp_engine *e, trp_profile_id profile)
{
    struct trp_class *c = trp_class_of(e, profile);
    struct trp_executor *x = c ? trp_executor_new(e, c) : NULL;
    return x ? x->id : (trp_executor_id){TRP_NONE};
}

uint32_t trp_engine_stages(const trp_engine *e)
{
    return e->nstages;
}

int trp_engine_stage(const trp_engine *e, trp_stage_id stage,
                     struct trp_stage_view *ret)
{
    const struct trp_stage *s = trp_stage_find(e, stage);
    if (!s)
        return TRP_ENOENT;
    *ret = (struct trp_stage_view){
        .name = s->name,
        .job = s->job->id,
        .profile = s->profile,
        .kind = s->kind,
        .submitted = s->state >= TRP_STAGE_RUNNING,
        .outcome = s->outcome,
        .ntasks = s->ntasks,
    };
    if (!s->set)
        return 0;
    for (const struct trp_task_set *set = s->set; set; set = set->overflow) {
        ret->pending += set->pending;
        ret->running += set->running;
        ret->queued += set->queued;
    }
    ret->succeeded = s->set->done;
    ret->failed = s->set->failed;
    return 0;
}

static size_t set_bytes(const struct trp_task_set *s)
{
    size_t n = sizeof(*s) + s->ntasks * sizeof(*s->tasks);
    n += ((size_t)s->all.cap + s->no_pref.cap) * sizeof(uint32_t);
    for (uint32_t i = 0; i < s->nhosts; i++)
        n += sizeof(*s->hosts) + s->hosts[i].cap * sizeof(uint32_t);
    for (uint32_t i = 0; i < s->nracks; i++)
        n += sizeof(*s->racks) + s->racks[i].cap * sizeof(uint32_t);
    if (s->prefer_first)
        n += ((size_t)s->ntasks + 1) * sizeof(uint32_t) +
             s->prefer_first[s->ntasks] * sizeof(*s->places);
    return n;
}

void trp_engine_counts(const trp_engine *e, struct trp_engine_counts *ret)
{
    size_t bytes = e->attempts.cap * sizeof(*e->attempts.v);
    uint64_t tasks = 0;
    for (uint32_t i = 0; i < e->nstages; i++)
        if (e->stages[i] && e->stages[i]->set) {
            bytes += set_bytes(e->stages[i]->set);
            tasks += e->stages[i]->set->ntasks;
        }
    *ret = (struct trp_engine_counts){
        .launches = e->launches,
        .ends = e->ends,
        .ignored_events = e->ignored,
        .executors_live = e->live,
        .executors_requested = e->requested,
        .bytes_per_task = tasks ? bytes / tasks : 0,
    };
}

const trp_books *trp_engine_books(const trp_engine *e, trp_executor_id executor)
{
    const struct trp_executor *x = trp_executor_find(e, executor);
    return x ? x->books : NULL;
}
