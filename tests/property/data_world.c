/*
 * Takes the engine's actions and holds what it decides against its records.
 */
#include "data_world.h"

#include <stdarg.h>
#include <string.h>

#include "memory.h"

#define BREAK(w, broken, ...) verdict_break((w)->verdict, broken, __VA_ARGS__)

/* One attempt of a task may commit at a time. */
static void take_commit(struct data_world *w, struct dw_attempt *at, bool may)
{
    at->asks = false;
    for (uint32_t i = 0; may && i < w->nattempts; i++) {
        const struct dw_attempt *other = &w->attempts[i];
        if (other->commits && !other->kill && other->stage == at->stage &&
            other->task == at->task)
            BREAK(w, "one attempt of a task commits", "stage %u task %u", at->stage,
                  at->task);
    }
    at->commits |= may;
}

void data_say(struct data_world *w, const char *fmt, ...)
{
    va_list ap;
    if (!w->explain)
        return;
    va_start(ap, fmt);
    vfprintf(w->explain, fmt, ap);
    va_end(ap);
}

const char *data_host(uint32_t host)
{
    static const char *const names[DW_HOSTS] = {"h0", "h1", "h2", "h3"};
    return names[host % DW_HOSTS];
}

void data_open(struct data_world *w, const struct trp_engine_config *config,
               trp_profiles *profiles, struct verdict *v, FILE *explain)
{
    trp_error err;
    memset(w, 0, sizeof(*w));
    w->config = *config;
    w->profiles = profiles;
    w->verdict = v;
    w->explain = explain;
    w->memory_before = memory_held();
    w->hash = UINT64_C(14695981039346656037);
    if (trp_engine_new(config, profiles, &w->engine, &err) < 0)
        BREAK(w, "an engine can be made", "%s", err.text);
}

void data_close(struct data_world *w)
{
    trp_engine_free(w->engine);
    trp_profiles_free(w->profiles);
}

/* ---- attempts ---- */

static struct dw_attempt *find(struct data_world *w, trp_attempt_id id)
{
    for (uint32_t i = 0; i < w->nattempts; i++)
        if (w->attempts[i].id.n == id.n)
            return &w->attempts[i];
    return NULL;
}

static bool is_barrier(const struct data_world *w, uint32_t stage)
{
    const struct trp_stage *s = trp_stage_find(w->engine, (trp_stage_id){stage});
    return s && s->barrier;
}

static void check_place(struct data_world *w, const struct dw_attempt *a)
{
    const struct dw_executor *x = &w->executors[a->executor];
    if (x->state != DW_LIVE || x->decommissioned)
        BREAK(w, "nothing is launched on the dead or the leaving",
              "stage %u task %u on executor %u", a->stage, a->task, a->executor);
    if (!a->queued && x->used >= x->cores)
        BREAK(w, "no core is given twice", "executor %u: %lld cores", a->executor,
              (long long)x->cores);
}

static void take_launch(struct data_world *w, const struct trp_action *act)
{
    struct dw_attempt a = {.id = act->launch.attempt,
                           .stage = act->launch.stage.n,
                           .stage_attempt = act->launch.stage_attempt,
                           .task = act->launch.task,
                           .executor = act->launch.executor.n,
                           .queued = act->launch.queued};
    uint32_t copies = 0;
    data_say(w, "    launch %llx: stage %u.%u task %u.%u on executor %u%s\n",
             (unsigned long long)a.id.n, a.stage, a.stage_attempt, a.task,
             act->launch.number, a.executor, a.queued ? ", queued" : "");
    if (a.stage >= DW_STAGES || a.task >= DW_TASKS || a.executor >= w->nexecutors ||
        w->nattempts == DW_ATTEMPTS) {
        BREAK(w, "launches are of what there is", "stage %u task %u", a.stage, a.task);
        return;
    }
    struct dw_stage *s = &w->stages[a.stage];
    a.barrier = is_barrier(w, a.stage);
    check_place(w, &a);
    if (s->ended)
        BREAK(w, "nothing is launched of a stage that ended", "stage %u", a.stage);
    for (uint32_t i = 0; i < w->nattempts; i++)
        copies += w->attempts[i].stage == a.stage && w->attempts[i].task == a.task &&
                  w->attempts[i].stage_attempt == a.stage_attempt;
    if (copies > act->launch.speculative ||
        (copies && (a.barrier || !w->config.speculation.enabled)))
        BREAK(w, "no task runs more copies than allowed", "stage %u task %u: %u more",
              a.stage, a.task, copies);
    if (s->set != a.stage_attempt + 1) {
        if (s->set > a.stage_attempt + 1)
            BREAK(w, "an earlier attempt launches nothing", "stage %u.%u", a.stage,
                  a.stage_attempt);
        s->set = a.stage_attempt + 1;
        s->launched = 0;
    }
    s->launched++;
    if (!a.queued)
        w->executors[a.executor].used++;
    w->attempts[w->nattempts++] = a;
    if (w->nattempts > w->most_attempts)
        w->most_attempts = w->nattempts;
}

static void take_kill(struct data_world *w, const struct trp_action *act)
{
    struct dw_attempt *a = find(w, act->kill.attempt);
    data_say(w, "    %s %llx\n", act->kill.recall ? "recall" : "kill",
             (unsigned long long)act->kill.attempt.n);
    if (!a || a->executor != act->kill.executor.n) {
        BREAK(w, "only what lives is killed", "attempt %llx",
              (unsigned long long)act->kill.attempt.n);
        return;
    }
    a->kill |= !act->kill.recall;
    a->recall |= act->kill.recall;
}

/* What waited there for the place of the one that ended takes it. */
static void hand_on(struct data_world *w, const struct dw_attempt *ended)
{
    for (uint32_t i = 0; i < w->nattempts; i++) {
        struct dw_attempt *b = &w->attempts[i];
        if (b->executor != ended->executor || !b->queued)
            continue;
        if (b->stage != ended->stage || b->stage_attempt != ended->stage_attempt)
            return;
        b->queued = false;
        w->executors[b->executor].used++;
        return;
    }
}

static void take_end(struct data_world *w, const struct trp_action *act)
{
    struct dw_attempt *a = find(w, act->task_end.attempt);
    data_say(w, "    end %llx: stage %u.%u task %u %s%s%s\n",
             (unsigned long long)act->task_end.attempt.n, act->task_end.stage.n,
             act->task_end.stage_attempt, act->task_end.task,
             trp_end_status_name(act->task_end.status),
             act->task_end.counted ? ", counted" : "",
             act->task_end.retried ? ", retried" : "");
    if (!a || a->stage != act->task_end.stage.n || a->task != act->task_end.task ||
        a->executor != act->task_end.executor.n) {
        BREAK(w, "every attempt gets one verdict", "attempt %llx",
              (unsigned long long)act->task_end.attempt.n);
        return;
    }
    struct dw_attempt was = *a;
    struct dw_executor *x = &w->executors[was.executor];
    w->past[w->npast++ % DW_PAST] = was.id;
    memmove(a, a + 1,
            (w->nattempts - (size_t)(a - w->attempts) - 1) * sizeof(*w->attempts));
    w->nattempts--;
    if (!was.queued) {
        x->used--;
        if (x->state != DW_GONE)
            hand_on(w, &was);
    }
    if (act->task_end.status == TRP_END_SUCCESS)
        w->stages[was.stage].done |= UINT64_C(1) << was.task;
    if (act->task_end.counted && act->task_end.status == TRP_END_LOST &&
        x->decommissioned)
        BREAK(w, "what goes with a leaving executor does not count", "stage %u task %u",
              was.stage, was.task);
}

/* ---- stages and jobs ---- */

/* An attempt of a stage begins when all that it reads is there. */
static void take_submitted(struct data_world *w, uint32_t stage)
{
    const struct trp_stage *s = trp_stage_find(w->engine, (trp_stage_id){stage});
    data_say(w, "    stage %u submitted%s\n", stage,
             s && s->barrier ? ", barrier" : "");
    if (s && s->is_map && stage < DW_STAGES)
        w->stages[stage].ended = !(w->stages[stage].map = true);
    /* (Its job may have ended in this step.) */
    for (uint32_t i = 0; s && s->uses && i < s->nparents; i++) {
        const struct trp_stage *p = s->parents[i].parent;
        /* (What is cached on the way need not be read.) */
        if (s->parents[i].edge == TRP_EDGE_SHUFFLE && p->ntasks && !s->cache_in_chain &&
            !trp_map_outputs_complete(w->engine->dag.outputs, p->shuffle))
            BREAK(w, "a stage begins when its input is there",
                  "stage %u reads stage %u, of which %u outputs are missing", stage,
                  p->id.n, trp_map_outputs_missing(w->engine->dag.outputs, p->shuffle));
    }
}

static void take_stage_ended(struct data_world *w, const struct trp_action *act)
{
    uint32_t id = act->stage_ended.stage.n;
    data_say(w, "    stage %u %s: %s\n", id, trp_outcome_name(act->stage_ended.outcome),
             act->stage_ended.text);
    /* (A map stage ends as often as its outputs are wanted.) */
    const struct trp_stage *s = trp_stage_find(w->engine, act->stage_ended.stage);
    if (id < DW_STAGES)
        w->stages[id].map |= s && s->is_map;
    if (id >= DW_STAGES || (w->stages[id].ended && !w->stages[id].map)) {
        BREAK(w, "every stage ends once", "stage %u", id);
        return;
    }
    w->stages[id].ended = true;
}

static void take_job_ended(struct data_world *w, const struct trp_action *act)
{
    uint32_t id = act->job_ended.job.n;
    data_say(w, "    job %u %s: %s\n", id, trp_outcome_name(act->job_ended.outcome),
             act->job_ended.text);
    if (id >= w->njobs || w->job_ended[id])
        BREAK(w, "every job ends once", "job %u", id);
    else
        w->job_ended[id] = true;
}

static void take_resubmitted(struct data_world *w, const struct trp_action *act)
{
    data_say(w, "    stage %u.%u task %u: its output is gone\n", act->task.stage.n,
             act->task.stage_attempt, act->task.task);
    if (!(w->stages[act->task.stage.n].done >> act->task.task & 1))
        BREAK(w, "only what was done is done again", "stage %u task %u",
              act->task.stage.n, act->task.task);
}

/* ---- executors ---- */

static uint32_t count(const struct data_world *w, uint32_t label)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->nexecutors; i++) {
        const struct dw_executor *x = &w->executors[i];
        n += x->label == label && !x->decommissioned &&
             (x->state == DW_REQUESTED || x->state == DW_LIVE);
    }
    return n;
}

static void check_release(struct data_world *w, uint32_t n)
{
    const struct dw_executor *x = &w->executors[n];
    int64_t force = w->config.decommission.force_kill_ns;
    bool forced = x->decommissioned && force && w->now - x->decommissioned_at >= force;
    if (x->state != DW_LIVE && x->state != DW_REQUESTED)
        BREAK(w, "only what is there is released", "executor %u", n);
    if (w->config.fixed)
        BREAK(w, "a fixed executor stays", "executor %u", n);
    for (uint32_t i = 0; i < w->nattempts && !forced; i++)
        if (w->attempts[i].executor == n)
            BREAK(w, "only idle executors are released, before their time",
                  "executor %u runs stage %u task %u", n, w->attempts[i].stage,
                  w->attempts[i].task);
}

static void take_executor(struct data_world *w, const struct trp_action *act)
{
    uint32_t n = act->executor.executor.n, label = act->executor.profile.n;
    struct dw_executor *x = &w->executors[n];
    bool start = act->kind == TRP_ACTION_START_EXECUTOR;
    data_say(w, "    %s executor %u\n",
             start                                      ? "start"
             : act->kind == TRP_ACTION_RELEASE_EXECUTOR ? "release"
                                                        : "relabel",
             n);
    if (n >= DW_EXECUTORS || (start && x->state != DW_NONE)) {
        BREAK(w, "an executor is asked for once", "executor %u", n);
        return;
    }
    if (start) {
        if (w->config.fixed ||
            (!w->appeared && count(w, label) >= w->config.max_executors))
            BREAK(w, "targets are within bounds", "profile %u: executor %u", label, n);
        *x = (struct dw_executor){.state = DW_REQUESTED, .label = label};
        w->nexecutors = n + 1;
    } else if (act->kind == TRP_ACTION_RELEASE_EXECUTOR) {
        check_release(w, n);
        x->came = x->state == DW_LIVE;
        x->state = DW_RELEASING;
    } else {
        x->label = label;
    }
}

/* ---- all ---- */

static void mix(struct data_world *w, uint64_t v)
{
    w->hash = (w->hash ^ v) * UINT64_C(1099511628211);
}

static void take(struct data_world *w, const struct trp_action *a)
{
    struct dw_attempt *at;
    mix(w, (uint64_t)a->kind);
    switch (a->kind) {
    case TRP_ACTION_JOB_STARTED:
        if (a->job.n != w->njobs - 1)
            BREAK(w, "jobs are numbered one by one", "job %u", a->job.n);
        return;
    case TRP_ACTION_STAGE_SUBMITTED:
        mix(w, a->stage.n);
        take_submitted(w, a->stage.n);
        return;
    case TRP_ACTION_LAUNCH:
        mix(w, a->launch.attempt.n);
        take_launch(w, a);
        return;
    case TRP_ACTION_KILL:
        mix(w, a->kill.attempt.n);
        take_kill(w, a);
        return;
    case TRP_ACTION_TASK_END:
        mix(w, a->task_end.attempt.n);
        take_end(w, a);
        return;
    case TRP_ACTION_STAGE_ENDED:
        mix(w, a->stage_ended.stage.n);
        take_stage_ended(w, a);
        return;
    case TRP_ACTION_JOB_ENDED:
        mix(w, a->job_ended.job.n);
        take_job_ended(w, a);
        return;
    case TRP_ACTION_START_EXECUTOR:
    case TRP_ACTION_RELEASE_EXECUTOR:
    case TRP_ACTION_RELABEL_EXECUTOR:
        mix(w, a->executor.executor.n);
        take_executor(w, a);
        return;
    case TRP_ACTION_RESUBMITTED:
        take_resubmitted(w, a);
        return;
    case TRP_ACTION_SYNCED:
        at = find(w, a->synced.attempt);
        if (!at || !at->waits)
            BREAK(w, "only who waits is answered", "attempt %llx",
                  (unsigned long long)a->synced.attempt.n);
        else
            at->waits = false;
        if (at && at->asks)
            take_commit(w, at, a->synced.code >= 0);
        return;
    case TRP_ACTION_STAGE_RETRIED:
        data_say(w, "    stage %u.%u came to nothing: %s\n", a->stage_retried.stage.n,
                 a->stage_retried.attempt, a->stage_retried.text);
        return;
    case TRP_ACTION_NEED_EXECUTOR:
    case TRP_ACTION_MAY_ADD:
    case TRP_ACTION_ASK_WAIT:
    case TRP_ACTION_STAGE_CHECK:
    case TRP_ACTION_SET_ENDED:
    case TRP_ACTION_SPECULATABLE:
    case TRP_ACTION_TASK_GIVEN_UP:
    case TRP_ACTION_OUT_OF_TIME:
    case TRP_ACTION_EXCLUDED:
        return;
    default:
        BREAK(w, "actions are known", "kind %d", (int)a->kind);
    }
}

/* ---- events ---- */

static uint32_t step(struct data_world *w, const struct trp_event *ev)
{
    const struct trp_action *a;
    uint32_t n = 0;
    trp_error err = {0};
    if (trp_engine_step(w->engine, w->now, ev, &err) < 0 && err.code != TRP_EINVAL)
        BREAK(w, "a good event is taken", "event %d: %s", (int)ev->kind, err.text);
    while (!w->verdict->broken[0] && (a = trp_engine_next(w->engine))) {
        take(w, a);
        n++;
    }
    if (n > w->most_actions)
        w->most_actions = n;
    if (!w->verdict->broken[0])
        data_check_everything(w);
    return n;
}

void data_step(struct data_world *w, const struct trp_event *ev)
{
    if (w->verdict->broken[0])
        return;
    step(w, ev);
    /* What a timer brought about may be due at once, too: a few times. */
    bool again = ev->kind == TRP_EVENT_TIME && w->now == w->fired_at;
    w->fired = again ? w->fired + 1 : 0;
    w->fired_at = w->now;
    if (w->fired > 4 && trp_engine_next_timer(w->engine) <= w->now)
        BREAK(w, "a timer that has fired is due later", "due %lld, now %lld",
              (long long)trp_engine_next_timer(w->engine), (long long)w->now);
}

void data_step_ignored(struct data_world *w, const struct trp_event *ev)
{
    struct trp_engine_counts before, after;
    data_time(w, w->now); /* what is due now happens before */
    if (w->verdict->broken[0])
        return;
    trp_engine_counts(w->engine, &before);
    uint32_t n = step(w, ev);
    trp_engine_counts(w->engine, &after);
    if (n || after.ignored_events != before.ignored_events + 1)
        BREAK(w, "an event about nobody is ignored and counted",
              "event %d: %u actions, %d ignored", (int)ev->kind, n,
              (int)(after.ignored_events - before.ignored_events));
}

void data_time(struct data_world *w, int64_t to)
{
    struct trp_event ev = {.kind = TRP_EVENT_TIME};
    while (!w->verdict->broken[0] && trp_engine_next_timer(w->engine) <= to) {
        int64_t due = trp_engine_next_timer(w->engine);
        w->now = due > w->now ? due : w->now;
        data_step(w, &ev);
    }
    w->now = to > w->now ? to : w->now;
}

void data_come(struct data_world *w, uint32_t executor, uint32_t host)
{
    struct dw_executor *x = &w->executors[executor];
    struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_ADDED};
    x->state = DW_LIVE;
    x->host = host % DW_HOSTS;
    x->cores = trp_profiles_get(w->profiles, (trp_profile_id){x->label})->cores;
    ev.added.executor.n = executor;
    ev.added.host = data_host(host);
    data_step(w, &ev);
}

void data_lose(struct data_world *w, uint32_t executor, enum trp_loss reason)
{
    struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_LOST};
    ev.lost.executor.n = executor;
    ev.lost.reason = reason;
    w->executors[executor].state = DW_GONE;
    data_step(w, &ev);
}

void data_end(struct data_world *w, uint32_t attempt, struct trp_event *ev)
{
    ev->kind = TRP_EVENT_TASK_ENDED;
    ev->ended.attempt = w->attempts[attempt].id;
    data_step(w, ev);
}
