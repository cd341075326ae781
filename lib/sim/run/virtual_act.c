/* Performing what the engine of a virtual run decided, as the driver does. */
#include <stdlib.h>
#include <string.h>

#include "sim/run/virtual_run_state.h"

/* ---- stages ---- */

static void stage_ready(struct trp_virtual_run *r, uint32_t engine_stage)
{
    uint32_t i = r->specs.of[engine_stage];
    trp_error why;
    struct trp_stage_places *places = &r->plan[i].places;
    int rc = trp_stage_places_make(&r->c.pipeline->stages[i], r->c.ntasks[i], NULL,
                                   NULL, places, &why);
    if (rc < 0) {
        trp_virtual_fail(r, rc, why.text);
        return;
    }
    struct trp_event ev = {
        .kind = TRP_EVENT_STAGE_TASKS,
        .tasks = {.stage = {engine_stage},
                  .ntasks = r->c.ntasks[i],
                  .prefer = places->prefer}
    };
    const struct trp_stage_spec *s = &r->specs.stages[engine_stage];
    for (uint32_t a = 0; a < s->nparents; a++)
        ev.tasks.nby += s->parents[a].by;
    ev.tasks.by = ev.tasks.nby ? r->c.by[i] : NULL;
    trp_virtual_step(r, &ev);
    trp_stage_places_free(places);
}

static void stage_submitted(struct trp_virtual_run *r, uint32_t engine_stage)
{
    struct trp_virtual_stage *s = trp_virtual_stage_of(r, engine_stage);
    if (s->ready < 0) { /* its first attempt */
        s->ready = r->now;
        r->result->tasks += s->ntasks;
    }
    s->outcome = TRP_OUTCOME_RUNNING;
}

static void stage_ended(struct trp_virtual_run *r, const struct trp_action *a)
{
    struct trp_virtual_stage *s = trp_virtual_stage_of(r, a->stage_ended.stage.n);
    s->end = r->now;
    s->outcome = a->stage_ended.outcome;
    bool tell = s->outcome == TRP_OUTCOME_FAILED ||
                (s->ready >= 0 && s->outcome != TRP_OUTCOME_SUCCEEDED);
    if (tell && !s->why)
        s->why = strdup(a->stage_ended.text);
    if (tell && !s->why)
        trp_virtual_fail(r, TRP_ENOMEM, "out of memory for the simulation");
}

static void profile_added(struct trp_virtual_run *r, trp_profile_id id)
{
    trp_error why = {0};
    struct trp_event ev =
        trp_virtual_fit_of(r, trp_profiles_get(r->c.profiles, id), &why);
    trp_virtual_step(r, &ev);
}

/* ---- attempts ---- */

static uint32_t attempt_new(struct trp_virtual_run *r, trp_attempt_id id,
                            uint32_t engine_stage, uint32_t task, uint32_t number,
                            uint32_t executor)
{
    uint32_t slot = (uint32_t)id.n, i = r->specs.of[engine_stage];
    if (!TRP_ARRAY_GROW(r->attempts, slot, r->attempts_cap)) {
        trp_virtual_fail(r, TRP_ENOMEM, "out of memory for the simulation");
        return TRP_NONE;
    }
    while (r->nattempts <= slot)
        r->attempts[r->nattempts++].id = TRP_VIRTUAL_NOBODY;
    r->attempts[slot] = (struct trp_virtual_attempt){.id = id.n,
                                                     .stage = i,
                                                     .task = task,
                                                     .executor = executor,
                                                     .share = TRP_NONE,
                                                     .next = TRP_NONE,
                                                     .number = (uint16_t)number,
                                                     .started = -1};
    r->result->stages[i].attempts++;
    return slot;
}

static void launch(struct trp_virtual_run *r, const struct trp_action *a)
{
    uint32_t slot = attempt_new(r, a->launch.attempt, a->launch.stage.n, a->launch.task,
                                a->launch.number, a->launch.executor.n);
    if (slot == TRP_NONE)
        return;
    if (!a->launch.queued) {
        trp_virtual_begin(r, slot);
        return;
    }
    struct trp_virtual_executor *x = &r->executors[a->launch.executor.n];
    if (x->queue_first == TRP_NONE)
        x->queue_first = slot;
    else
        r->attempts[x->queue_last].next = slot;
    x->queue_last = slot;
}

static void gang(struct trp_virtual_run *r, const struct trp_action *a)
{
    const struct trp_resource_profile *p =
        trp_profiles_get(r->c.profiles, a->gang.profile);
    uint32_t slot =
        attempt_new(r, a->gang.attempt, a->gang.stage.n, 0, a->gang.number, TRP_NONE);
    uint32_t line = trp_virtual_line(r->cluster, p, a->gang.ranks, false, "");
    if (slot == TRP_NONE || line == TRP_NONE) {
        trp_virtual_fail(r, TRP_ENOMEM, "out of memory for the simulation");
        return;
    }
    r->attempts[slot].share = trp_virtual_ask(r->cluster, line, slot);
    trp_virtual_may_add(r->cluster, r->attempts[slot].share);
    r->asked = true;
}

/* A message there and one back. It takes time, or what is recalled and sent again would
 * stand still in it. */
static const int64_t KILL_NS = 1000000;

static void kill_attempt(struct trp_virtual_run *r, const struct trp_action *a)
{
    struct trp_virtual_attempt *t = trp_virtual_attempt(r, a->kill.attempt.n);
    if (!t || (a->kill.recall && t->started >= 0))
        return;
    trp_virtual_later(r, KILL_NS, TRP_DUE_KILLED,
                      a->kill.recall ? TRP_END_RECALLED : TRP_END_KILLED, t->id);
}

/* Gangs that wait for their room do so no longer. */
static void end_waiting_gangs(struct trp_virtual_run *r)
{
    for (uint32_t i = 0; i < r->nattempts; i++)
        if (r->attempts[i].id != TRP_VIRTUAL_NOBODY &&
            r->attempts[i].executor == TRP_NONE && r->attempts[i].started < 0)
            trp_virtual_later(r, KILL_NS, TRP_DUE_KILLED, TRP_END_KILLED,
                              r->attempts[i].id);
}

/* The verdict: the attempt is over. */
static void task_end(struct trp_virtual_run *r, const struct trp_action *a)
{
    struct trp_virtual_attempt *t = trp_virtual_attempt(r, a->task_end.attempt.n);
    if (!t)
        return;
    struct trp_virtual_stage *s = &r->result->stages[t->stage];
    int64_t ran = t->started < 0 ? 0 : r->now - t->started;
    struct trp_sim_amounts amounts = r->plan[t->stage].task;
    if (t->executor == TRP_NONE) {
        amounts = trp_virtual_amounts(r->cluster, t->share);
        trp_sim_amounts_add(&s->held, &amounts, (double)(r->now - t->granted) / 1e9);
        trp_virtual_leave(r->cluster, t->share, r->now);
        r->freed = true;
    } else {
        const struct trp_resource_profile *p =
            trp_profiles_get(r->c.profiles, r->c.ids[t->stage]);
        amounts.nodes = r->executors[t->executor].part / p->slots;
    }
    trp_sim_amounts_add(&s->used, &amounts, (double)ran / 1e9);
    s->failures += a->task_end.counted;
    t->id = TRP_VIRTUAL_NOBODY;
    if (a->task_end.status != TRP_END_RECALLED)
        r->last_end = r->steps;
    if (a->task_end.status != TRP_END_SUCCESS)
        return;
    if (trp_durations_add(&s->ran, ran) < 0)
        trp_virtual_fail(r, TRP_ENOMEM, "out of memory for the simulation");
}

static void given_up(struct trp_virtual_run *r, const struct trp_action *a)
{
    struct trp_virtual_stage *s = &r->result->stages[a->given_up.stage.n];
    bool skipped = a->given_up.parent.n != TRP_NONE;
    s->given_up += !skipped;
    s->skipped += skipped;
}

/* ---- executors ---- */

static void start_executor(struct trp_virtual_run *r, uint32_t n, trp_profile_id id,
                           bool ahead, const char *not_on)
{
    const struct trp_resource_profile *p = trp_profiles_get(r->c.profiles, id);
    uint32_t line = trp_virtual_line(r->cluster, p, 0, false, not_on);
    if (ahead && line != TRP_NONE)
        line = trp_virtual_line(r->cluster, p, 0, true, "");
    if (line == TRP_NONE || !TRP_ARRAY_GROW(r->executors, n, r->executors_cap)) {
        trp_virtual_fail(r, TRP_ENOMEM, "out of memory for the simulation");
        return;
    }
    while (r->nexecutors <= n)
        r->executors[r->nexecutors++] =
            (struct trp_virtual_executor){.state = TRP_VIRTUAL_GONE};
    r->executors[n] = (struct trp_virtual_executor){.state = TRP_VIRTUAL_ASKED,
                                                    .stage = TRP_NONE,
                                                    .asked = r->now,
                                                    .queue_first = TRP_NONE,
                                                    .queue_last = TRP_NONE};
    r->executors[n].share = trp_virtual_ask(r->cluster, line, n);
    if (ahead || !r->patient)
        trp_virtual_may_add(r->cluster, r->executors[n].share);
    r->asked = true;
}

static void need_executor(struct trp_virtual_run *r, uint32_t n)
{
    if (r->executors[n].state != TRP_VIRTUAL_ASKED)
        return;
    trp_virtual_share_needed(r->cluster, r->executors[n].share);
    r->asked = true;
}

static void may_add(struct trp_virtual_run *r, uint32_t n)
{
    if (r->executors[n].state != TRP_VIRTUAL_ASKED)
        return;
    trp_virtual_may_add(r->cluster, r->executors[n].share);
    r->asked = true;
}

/* What the cluster file says, as Slurm would give an estimate. */
static void tell_wait(struct trp_virtual_run *r, const struct trp_action *a)
{
    const trp_sim_cluster *c = r->c.cluster;
    const struct trp_resource_profile *p =
        trp_profiles_get(r->c.profiles, a->wait.profile);
    double ns = (double)trp_distribution_mean(&c->wait) +
                (double)c->wait_per_node_ns *
                    trp_virtual_nodes(r->cluster, p, a->wait.executors);
    struct trp_event ev = {
        .kind = TRP_EVENT_QUEUE_WAIT,
        .queue_wait = {.profile = p->id,
                       .wait_ns = ns < (double)TRP_SIM_TIME_MAX ? (int64_t)ns
                                                                : TRP_SIM_TIME_MAX}
    };
    trp_virtual_step(r, &ev);
}

static void release_executor(struct trp_virtual_run *r, uint32_t n)
{
    struct trp_virtual_executor *x = &r->executors[n];
    if (x->state == TRP_VIRTUAL_GONE)
        return;
    if (x->state == TRP_VIRTUAL_ASKED) { /* the request is withdrawn */
        trp_virtual_leave(r->cluster, x->share, r->now);
        x->state = TRP_VIRTUAL_WITHDRAWN;
        r->freed = true;
    }
    trp_virtual_later(r, 0, TRP_DUE_GONE, n, 0);
}

void trp_virtual_act(struct trp_virtual_run *r, const struct trp_action *a)
{
    switch (a->kind) {
    case TRP_ACTION_JOB_STARTED: /* told only */
    case TRP_ACTION_SET_ENDED:
    case TRP_ACTION_RESUBMITTED:
    case TRP_ACTION_SPECULATABLE:
    case TRP_ACTION_EXCLUDED:
    case TRP_ACTION_STAGE_RETRIED:
    case TRP_ACTION_SYNCED:
    case TRP_ACTION_OUT_OF_TIME: /* virtual runs have no end */
    case TRP_ACTION_OUTLIVED:
        return;
    case TRP_ACTION_TASK_GIVEN_UP:
        given_up(r, a);
        return;
    case TRP_ACTION_PROFILE_ADDED:
        profile_added(r, a->profile);
        return;
    case TRP_ACTION_STAGE_READY:
        stage_ready(r, a->stage.n);
        return;
    case TRP_ACTION_STAGE_SUBMITTED:
        stage_submitted(r, a->stage.n);
        return;
    case TRP_ACTION_LAUNCH:
        launch(r, a);
        return;
    case TRP_ACTION_GANG:
        gang(r, a);
        return;
    case TRP_ACTION_KILL:
        kill_attempt(r, a);
        return;
    case TRP_ACTION_TASK_END:
        task_end(r, a);
        return;
    case TRP_ACTION_STAGE_ENDED:
        stage_ended(r, a);
        return;
    case TRP_ACTION_JOB_ENDED:
        r->result->outcome = a->job_ended.outcome;
        r->result->never = a->job_ended.code == TRP_ENEVER;
        r->over = true;
        return;
    case TRP_ACTION_START_EXECUTOR:
        start_executor(r, a->executor.executor.n, a->executor.profile,
                       a->executor.ahead, a->executor.not_on);
        return;
    case TRP_ACTION_NEED_EXECUTOR:
        need_executor(r, a->executor.executor.n);
        return;
    case TRP_ACTION_MAY_ADD:
        may_add(r, a->executor.executor.n);
        return;
    case TRP_ACTION_ASK_WAIT:
        tell_wait(r, a);
        return;
    case TRP_ACTION_STAGE_CHECK: /* virtual stages have no files */
        return;
    case TRP_ACTION_JOB_DRAINS:
        end_waiting_gangs(r);
        return;
    case TRP_ACTION_RELEASE_EXECUTOR:
        release_executor(r, a->executor.executor.n);
        return;
    case TRP_ACTION_RELABEL_EXECUTOR:
        trp_virtual_settle(r, a->executor.executor.n, TRP_NONE);
        r->executors[a->executor.executor.n].stage = TRP_NONE;
        return;
    }
}
