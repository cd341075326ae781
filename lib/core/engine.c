/*
 * The step: one event in, what follows from it, and the same closing work every time:
 * ready stages are started, wanted executors are compared with those there are, jobs
 * that are over are freed. Each event has its own function; what it may refer to is
 * looked up and, when it is not (any more) there, the event is counted as ignored.
 */
#include "core/engine.h"

#include <string.h>

#include "core/base/time.h"
#include "core/engine_state.h"

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
    static const char *const names[] = {
        "success",     "exit",       "signal", "timeout",  "memory", "start",
        "killed",      "recalled",   "lost",   "platform", "denied", "fetch_failed",
        "result_lost", "unwritable", "exists", "mistake",  "never",  "output"};
    return (unsigned)status < sizeof(names) / sizeof(*names) ? names[status] : "?";
}

int trp_engine_new(const struct trp_engine_config *config, trp_profiles *profiles,
                   trp_engine **ret_engine, trp_error *err)
{
    struct trp_engine *e = calloc(1, sizeof(*e));
    if (!e)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the engine");
    e->dag.outputs = trp_map_outputs_new();
    if (!e->dag.outputs) {
        free(e);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the engine");
    }
    e->config = *config;
    e->visited = &e->visits;
    e->profiles = profiles;
    e->attempts.free = TRP_NONE;
    e->locality_due = e->retry_due = e->slow_due = e->gate_due = e->ends_ns = INT64_MAX;
    e->ahead_due = e->keep_due = e->patience_due = INT64_MAX;
    e->gated = config->registered_ratio > 0;
    e->dynamic = !config->fixed;
    int rc = trp_hosts_know(&e->hosts, config->racks, config->nracks);
    if (rc < 0)
        trp_error_set(err, rc, "out of memory for the engine");
    if (rc == 0)
        rc = trp_wanted_init(e, err);
    if (rc == 0)
        rc = trp_exclusion_init(e, err);
    if (rc == 0 && config->fair)
        rc =
            trp_pools_new(TRP_POOL_FAIR, config->pools, config->npools, &e->pools, err);
    if (rc < 0) {
        trp_engine_free(e);
        return rc;
    }
    *ret_engine = e;
    return 0;
}

void trp_engine_free(trp_engine *e)
{
    if (!e)
        return;
    trp_sets_free(e);
    trp_jobs_free(e);
    trp_pools_free(e->pools);
    trp_health_tracker_free(e->tracker);
    for (uint32_t i = 0; i < e->attempts.n; i++)
        free(e->attempts.v[i].grants);
    free(e->attempts.v);
    for (uint32_t i = 0; i < e->nexecutors; i++) {
        if (!e->executors[i])
            continue;
        trp_ledger_free(e->executors[i]->ledger);
        trp_bits_free(&e->executors[i]->idle.shuffles);
        free(e->executors[i]);
    }
    free(e->outlived.v);
    free(e->executors);
    for (uint32_t i = 0; i < e->nclasses; i++) {
        if (!e->classes[i])
            continue;
        free(e->classes[i]->never);
        trp_starts_free(e->classes[i]);
        free(e->classes[i]->on_host);
        trp_bits_free(&e->classes[i]->requested);
        trp_bits_free(&e->classes[i]->idle);
        trp_bits_free(&e->classes[i]->inside);
        free(e->classes[i]);
    }
    free(e->classes);
    trp_wanted_free(e);
    trp_hosts_free(&e->hosts);
    trp_actions_free(&e->actions);
    trp_barrier_sync_free(e->sync);
    free(e);
}

/* ---- events ---- */

TRP_RARE static void on_stage_tasks(struct trp_engine *e, const struct trp_event *ev)
{
    struct trp_stage *s = trp_stage_find(e, ev->tasks.stage);
    trp_error err;
    if (!s || s->state != TRP_STAGE_ASKED) {
        e->ignored++;
        return;
    }
    if (trp_stage_begin(e, s, ev->tasks.ntasks, &ev->tasks.prefer, ev->tasks.done,
                        ev->tasks.by, ev->tasks.nby, &err) < 0)
        trp_stage_abort(e, s, err.code, TRP_NONE, err.text);
}

TRP_RARE static void on_stage_refused(struct trp_engine *e, const struct trp_event *ev)
{
    struct trp_stage *s = trp_stage_find(e, ev->refused_stage.stage);
    if (!s || s->state != TRP_STAGE_ASKED) {
        e->ignored++;
        return;
    }
    trp_stage_abort(e, s, TRP_EFAILED, TRP_NONE, ev->refused_stage.text);
}

TRP_RARE static void on_stage_checked(struct trp_engine *e, const struct trp_event *ev)
{
    struct trp_stage *s = trp_stage_find(e, ev->checked.stage);
    e->ignored += !s || !trp_stage_was_checked(e, s, ev->checked.text);
}

TRP_RARE static void on_profile_fit(struct trp_engine *e, const struct trp_event *ev)
{
    struct trp_class *c = trp_profiles_get(e->profiles, ev->fit.profile)
                              ? trp_class_of(e, ev->fit.profile)
                              : NULL;
    if (!c) {
        e->ignored++;
        return;
    }
    c->fit = ev->fit.executors;
    c->fit_hosts = ev->fit.hosts;
    c->additional = ev->fit.additional < c->fit ? ev->fit.additional : c->fit;
    c->more = ev->fit.more;
    trp_ahead_look_soon(e);
    e->any_dirty = true;
    if (!c->fit)
        trp_starts_never(e, c, ev->fit.text);
    else
        trp_sets_check_gangs(e, c);
}

TRP_RARE static int on_executor_added(struct trp_engine *e, const struct trp_event *ev,
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
    trp_dag_executor_added(e, x->id.n, x->host);
    struct trp_class *c = e->classes[x->class];
    trp_starts_came(e, c);
    if (!e->start_ns || e->now - x->asked_ns < e->start_ns)
        e->start_ns = e->now - x->asked_ns;
    trp_round_partial(e, x);
    e->any_dirty = true;
    return 0;
}

TRP_RARE static void on_executor_granted(struct trp_engine *e,
                                         const struct trp_event *ev)
{
    struct trp_executor *x = trp_executor_find(e, ev->granted.executor);
    if (!x || x->state != TRP_EXECUTOR_REQUESTED || x->granted) {
        e->ignored++;
        return;
    }
    x->granted = true;
    e->classes[x->class]->granted++;
    e->any_dirty = true; /* others may still have none */
}

TRP_RARE static void on_executor_refused(struct trp_engine *e,
                                         const struct trp_event *ev)
{
    struct trp_executor *x = trp_executor_find(e, ev->refused.executor);
    if (!x || x->came) {
        e->ignored++;
        return;
    }
    struct trp_class *c = e->classes[x->class];
    bool withdrawn = x->state == TRP_EXECUTOR_RELEASING, ahead = x->ahead;
    int64_t asked_ns = x->asked_ns;
    trp_executor_remove(e, x);
    c->lost += !ahead && !withdrawn;
    if (ahead)
        trp_ahead_refused(e, c);
    else if (!withdrawn)
        trp_starts_refused(e, c, asked_ns, ev);
}

TRP_RARE static void rounds_of_all(struct trp_engine *e)
{
    for (uint32_t i = 0; i < e->nclasses; i++) {
        struct trp_class *c = e->classes[i];
        if (c && c->free && (c->first || c->queued))
            trp_round_full(e, c);
    }
}

/* One of a stage with max_running has ended: another one of it, in its own set or in an
 * overflow set, may start. */
TRP_RARE static void revive_limited(struct trp_engine *e, const struct trp_stage *s)
{
    for (struct trp_task_set *set = s ? s->set : NULL; set; set = set->overflow)
        if (set->class && s->max_running)
            trp_round_full(e, set->class);
}

TRP_RARE static void on_executor_lost(struct trp_engine *e, const struct trp_event *ev)
{
    struct trp_executor *x = trp_executor_find(e, ev->lost.executor);
    if (!x) {
        e->ignored++;
        return;
    }
    struct trp_class *c = e->classes[x->class];
    bool start_failed = x->state == TRP_EXECUTOR_REQUESTED, ahead = x->ahead;
    int64_t asked_ns = x->asked_ns;
    c->lost += (start_failed && !ahead) || x->state == TRP_EXECUTOR_LIVE;
    trp_executor_lost(e, x, ev);
    if (e->tracker)
        trp_health_executor_gone(e->tracker, ev->lost.executor.n);
    if (start_failed && ahead)
        trp_ahead_refused(e, c);
    else if (start_failed)
        trp_starts_lost(e, c, asked_ns, ev->lost.reason);
    trp_round_full(e, c); /* its tasks, to those that have a slot */
    if (e->preferring)
        rounds_of_all(e); /* nobody waits for it any more */
    for (uint32_t i = 0; i < e->nclasses; i++)
        for (struct trp_task_set *s = e->classes[i] ? e->classes[i]->bounded : NULL; s;
             s = s->bounded_next)
            revive_limited(e, s->stage);
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
    bool revive = ev->ended.status != TRP_END_SUCCESS;
    trp_stage_id stage = e->attempts.v[slot].set->stage->id;
    bool limited = e->attempts.v[slot].set->stage->max_running > 0;
    bool uncounted =
        ev->ended.status == TRP_END_LOST &&
        ((e->attempts.v[slot].flags & TRP_ATTEMPT_LAUNCHING) ||
         (executor == TRP_NONE && trp_gang_blameless(e, slot, &ev->ended)));
    trp_attempt_ended(e, slot, &ev->ended, uncounted);
    if (executor == TRP_NONE) {
        e->any_dirty = true;
        return;
    }
    struct trp_executor *x = e->executors[executor];
    /* First to those that could start it: where it was it would be queued again. */
    if (recalled)
        trp_round_full(e, e->classes[x->class]);
    trp_round_partial(e, x);
    if (revive && !recalled)
        trp_round_full(e, e->classes[x->class]);
    if (limited)
        revive_limited(e, trp_stage_find(e, stage));
    if (x->nrunning)
        return;
    e->any_dirty |= trp_wanted_heeds_idle(e, e->classes[x->class]);
    trp_executor_drained(e, x);
}

TRP_RARE void trp_engine_drain(struct trp_engine *e)
{
    e->draining = true;
    e->any_dirty = true; /* requests are withdrawn */
    trp_ahead_look_soon(e);
    for (uint32_t i = 0; i < e->nclasses; i++) {
        struct trp_executor *x = e->classes[i] ? e->classes[i]->queued : NULL;
        for (; x; x = x->queued_next == e->classes[i]->queued ? NULL : x->queued_next)
            trp_attempts_recall(e, x);
    }
}

TRP_RARE static void on_time(struct trp_engine *e)
{
    trp_dag_time(e);
    if (e->now >= e->ahead_due)
        trp_ahead_look_soon(e);
    e->unsettled |= e->now >= e->patience_due;
    trp_wanted_time(e);
    trp_exclusion_time(e);
    trp_copies_time(e);
    trp_sync_time(e);
    trp_decommission_time(e);
    trp_keep_time(e);
    if (e->now < e->locality_due)
        return;
    e->locality_due = INT64_MAX;
    trp_sets_liven(e);
    rounds_of_all(e);
}

TRP_RARE static void on_cancel(struct trp_engine *e, const struct trp_event *ev)
{
    struct trp_job *j = trp_job_find(e, ev->cancel.job);
    if (j)
        trp_job_stop(e, j, "");
    else
        e->ignored++;
}

TRP_RARE static void on_decommissioned(struct trp_engine *e, const struct trp_event *ev)
{
    struct trp_executor *x = trp_executor_find(e, ev->decommissioned.executor);
    if (!x) {
        e->ignored++;
        return;
    }
    e->classes[x->class]->lost += x->state == TRP_EXECUTOR_LIVE;
    trp_dag_executor_decommissioned(e, x->id.n, ev->decommissioned.whole_host);
    trp_executor_decommission(e, x);
    e->any_dirty = true;
}

TRP_RARE static void on_progress(struct trp_engine *e, const struct trp_event *ev)
{
    uint32_t slot = trp_attempt_find(e, ev->progress.attempt);
    if (slot == TRP_NONE) {
        e->ignored++;
        return;
    }
    struct trp_attempt *a = &e->attempts.v[slot];
    a->rate = trp_speculation_rate(ev->progress.records, e->now - a->launched_ns);
}

TRP_RARE static void on_queue_wait(struct trp_engine *e, const struct trp_event *ev)
{
    struct trp_class *c = trp_profiles_get(e->profiles, ev->queue_wait.profile)
                              ? trp_class_of(e, ev->queue_wait.profile)
                              : NULL;
    if (!c || ev->queue_wait.wait_ns < 0) {
        e->ignored++;
        return;
    }
    c->wait_ns = ev->queue_wait.wait_ns;
    trp_ahead_look_soon(e);
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
    case TRP_EVENT_EXECUTOR_GRANTED:
        on_executor_granted(e, ev);
        return 0;
    case TRP_EVENT_EXECUTOR_REFUSED:
        on_executor_refused(e, ev);
        return 0;
    case TRP_EVENT_EXECUTOR_LOST:
        on_executor_lost(e, ev);
        return 0;
    case TRP_EVENT_TASK_ENDED:
        on_task_ended(e, ev);
        return 0;
    case TRP_EVENT_SYNC:
        trp_sync_called(e, ev);
        return 0;
    case TRP_EVENT_CANCEL_JOB:
        on_cancel(e, ev);
        return 0;
    case TRP_EVENT_DRAIN:
        trp_engine_drain(e);
        return 0;
    case TRP_EVENT_TIME:
        on_time(e);
        return 0;
    case TRP_EVENT_DATASET:
        return trp_dag_dataset(e, ev->dataset.spec, err);
    case TRP_EVENT_DATASET_FREED:
        return trp_dag_free_dataset(e, ev->freed.dataset, err);
    case TRP_EVENT_DATASET_RELEASED:
    case TRP_EVENT_CACHED:
    case TRP_EVENT_OUTPUT_MOVED:
    case TRP_EVENT_CANCEL_STAGE:
        e->ignored += !trp_dag_event(e, ev);
        return 0;
    case TRP_EVENT_ENDS:
        trp_ends_event(e, ev);
        return 0;
    case TRP_EVENT_QUEUE_WAIT:
        on_queue_wait(e, ev);
        return 0;
    case TRP_EVENT_STAGE_CHECKED:
        on_stage_checked(e, ev);
        return 0;
    case TRP_EVENT_CONTENDED:
        e->contended = ev->contended.is;
        e->any_dirty = true;
        return 0;
    case TRP_EVENT_EXECUTOR_DECOMMISSIONED:
        on_decommissioned(e, ev);
        return 0;
    case TRP_EVENT_TASK_PROGRESS:
        on_progress(e, ev);
        return 0;
    }
    return trp_error_set(err, TRP_EINVAL, "no such event: %d", (int)ev->kind);
}

TRP_RARE static void settle(struct trp_engine *e)
{
    bool changed = e->now >= e->patience_due;
    e->unsettled = false;
    do {
        trp_stages_run_ready(e);
        trp_jobs_check_drained(e);
        trp_ahead_look_at_news(e);
        if (e->now >= e->ahead_due)
            trp_ahead_look(e);
        if (e->any_dirty && !e->dag.alone) {
            changed = true;
            trp_wanted_reconcile(e);
        }
        if (e->offer_all) {
            e->offer_all = false;
            rounds_of_all(e);
        }
        if (e->keep_due != INT64_MAX)
            trp_keep_check(e);
        if (e->refused_by_end)
            trp_ends_settle(e);
        trp_sets_free_dead(e);
        trp_jobs_free_dead(e); /* whose outputs kept executors, perhaps */
    } while (e->dag.ready_first || (e->any_dirty && !e->dag.alone)); /* gave one up */
    if (changed)
        trp_patience_look(e);
}

void trp_engine_settle(struct trp_engine *e)
{
    if (e->unsettled || e->any_dirty || e->draining || e->offer_all ||
        e->refused_by_end || e->keep_due != INT64_MAX)
        settle(e);
}

int trp_engine_step(trp_engine *e, int64_t now_ns, const struct trp_event *event,
                    trp_error *err)
{
    if (now_ns > e->now)
        e->now = now_ns;
    if (e->dag.told_stages)
        trp_stages_free_told(e);
    uint64_t ignored = e->ignored;
    int rc = take_event(e, event, err);
    if (e->nyielding && e->ignored == ignored) /* it may be for nobody any more */
        e->any_dirty = true;
    if (e->gated)
        trp_start_gate_look(e);
    trp_engine_settle(e);
    if (e->out_of_memory && rc == 0)
        return trp_error_set(err, TRP_ENOMEM, "out of memory in the engine");
    return rc;
}

int64_t trp_engine_next_timer(const trp_engine *e)
{
    int64_t due = trp_wanted_due(e), dag = trp_dag_next_timer(e);
    due = trp_earlier(due, dag);
    due = trp_earlier(due, e->locality_due);
    due = trp_earlier(due, e->ahead_due);
    due = trp_earlier(due, e->keep_due);
    due = trp_earlier(due, e->patience_due);
    due = trp_earlier(due, e->slow_due);
    if (e->njobs && e->gate_due < due)
        due = e->gate_due;
    if (e->tracker && trp_exclusion_due(e) < due)
        due = trp_exclusion_due(e);
    due = trp_earlier(due, trp_sync_due(e));
    due = trp_earlier(due, trp_decommission_due(e));
    return due;
}

trp_executor_id trp_engine_expect_executor(trp_engine *e, trp_profile_id profile)
{
    struct trp_class *c = trp_class_of(e, profile);
    struct trp_executor *x = c ? trp_executor_new(e, c) : NULL;
    return x ? x->id : (trp_executor_id){TRP_NONE};
}
