/*
 * Actions about attempts: who runs what, and what that takes of an executor.
 */
#include <string.h>

#include "world_internal.h"

typedef unsigned long long llu;

/* What one more task of the stage takes of an executor with that label. */
static int64_t cpus_of(const struct world *w, trp_stage_id stage, uint32_t label)
{
    struct trp_stage_view v = {0};
    const struct world_stage *s = &w->stages[stage.n];
    trp_profile_id any = {0};
    if (s->told)
        v.profile = s->profile;
    else if (trp_engine_stage(w->engine, stage, &v) < 0)
        return 1;
    bool light = trp_profiles_may_run(w->profiles, v.profile, any);
    if (label != (light ? 0 : v.profile.n)) /* one with more memory */
        v.profile.n = label;
    const struct trp_resource_profile *p = trp_profiles_get(w->profiles, v.profile);
    return p ? p->task_cpus : 1;
}

/* Takes (sign 1) or gives back (sign -1) what an attempt holds. */
static void book(struct world *w, const struct world_attempt *a, int sign)
{
    if (a->gang)
        return;
    struct world_executor *x = &w->executors[a->executor];
    x->used += sign * a->cpus;
    x->running += (uint32_t)sign;
    for (uint32_t i = 0; i < a->ngrants; i++)
        x->taken[a->grants[i].resource][a->grants[i].address] +=
            sign * a->grants[i].amount;
    if (sign > 0 && x->used > x->cores && !w->unchecked)
        world_break(w, "no core is given twice", "executor %u: %lld of %lld cores",
                    a->executor, (long long)x->used, (long long)x->cores);
}

static void take_grants(struct world *w, const struct trp_action *act,
                        struct world_attempt *a)
{
    const trp_ledger *ledger = trp_engine_ledger(w->engine, act->launch.executor);
    const struct world_executor *x = &w->executors[a->executor];
    for (uint32_t i = 0; i < act->launch.ngrants; i++) {
        const struct trp_grant *g = &act->launch.grants[i];
        bool counted = g->resource < WORLD_RESOURCES && g->address < WORLD_ADDRESSES;
        if (g->amount <= 0 ||
            (ledger && !trp_ledger_address(ledger, g->resource, g->address)) ||
            (counted && x->taken[g->resource][g->address] + g->amount > TRP_ONE))
            world_break(w, "no resource is given twice",
                        "executor %u, resource %u address %u", a->executor, g->resource,
                        g->address);
        if (counted && a->ngrants < G_N_ELEMENTS(a->grants))
            a->grants[a->ngrants++] = *g;
    }
}

/* Copies of one attempt of a task: none, or one that is asked for as a copy. */
static void check_copies(struct world *w, const struct world_attempt *a)
{
    uint32_t copies = 0;
    for (uint32_t i = 0; i < w->nattempts; i++) {
        const struct world_attempt *o = &w->attempts[i];
        if (o->id.n == a->id.n)
            world_break(w, "an attempt is launched once", "attempt %llx", (llu)a->id.n);
        copies += o->stage.n == a->stage.n && o->task == a->task &&
                  o->stage_attempt == a->stage_attempt;
    }
    if (copies > a->copy)
        world_break(w, "no task runs more copies than allowed",
                    "stage %u task %u: %u more", a->stage.n, a->task, copies);
}

static void check_launch(struct world *w, const struct world_attempt *a)
{
    const struct world_stage *s = world_stage_at(w, a->stage.n);
    if (w->draining)
        world_break(w, "nothing is launched while draining", "stage %u", a->stage.n);
    if (!s->submitted || s->ended)
        world_break(w, "a task is launched while its stage runs", "stage %u task %u",
                    a->stage.n, a->task);
    if (s->attempt > a->stage_attempt)
        world_break(w, "an earlier attempt launches nothing", "stage %u.%u", a->stage.n,
                    a->stage_attempt);
    if (a->copy && !w->config.speculation.enabled)
        world_break(w, "no task runs more copies than allowed", "stage %u task %u",
                    a->stage.n, a->task);
    if (!w->unchecked)
        check_copies(w, a);
    if (a->gang)
        return;
    const struct world_executor *x = world_executor_at(w, a->executor);
    if (x->state != WORLD_LIVE || x->decommissioned || x->excluded ||
        world_excludes(w, x->host))
        world_break(w, "nothing is launched on the dead, leaving or excluded",
                    "stage %u task %u on executor %u", a->stage.n, a->task,
                    a->executor);
}

static void take_launched(struct world *w, const struct trp_action *act,
                          struct world_attempt *a)
{
    world_mix(w, a->id.n);
    world_mix(w, (uint64_t)a->executor << 32 | a->task);
    world_say(w, "    launch %08llx: stage %u.%u task %u.%u on executor %d, %s%s%s\n",
              (llu)a->id.n, a->stage.n, a->stage_attempt, a->task, a->number,
              (int)a->executor, trp_level_name(a->level), a->queued ? ", queued" : "",
              a->copy ? ", a copy" : "");
    check_launch(w, a);
    if (w->hooks->launch && !w->broken)
        w->hooks->launch(w, act);
    if (w->broken)
        return;
    struct world_stage *s = &w->stages[a->stage.n];
    if (s->attempt != a->stage_attempt)
        s->launched = 0;
    s->attempt = a->stage_attempt;
    s->launched++;
    if (!a->queued)
        book(w, a, 1);
    GROW(w->attempts, w->nattempts);
    w->attempts[w->nattempts++] = *a;
    w->most_attempts = MAX(w->most_attempts, w->nattempts);
    if (w->hooks->launched)
        w->hooks->launched(w, &w->attempts[w->nattempts - 1]);
}

void world_take_launch(struct world *w, const struct trp_action *act)
{
    struct world_attempt a = {.id = act->launch.attempt,
                              .stage = act->launch.stage,
                              .stage_attempt = act->launch.stage_attempt,
                              .task = act->launch.task,
                              .number = act->launch.number,
                              .executor = act->launch.executor.n,
                              .level = act->launch.level,
                              .queued = act->launch.queued,
                              .copy = act->launch.speculative};
    world_stage_at(w, a.stage.n);
    a.cpus = cpus_of(w, a.stage, world_executor_at(w, a.executor)->label);
    if (!a.queued)
        take_grants(w, act, &a);
    take_launched(w, act, &a);
}

void world_take_gang(struct world *w, const struct trp_action *act)
{
    struct world_attempt a = {.id = act->gang.attempt,
                              .stage = act->gang.stage,
                              .number = act->gang.number,
                              .executor = TRP_NONE,
                              .level = TRP_ANY,
                              .gang = true};
    if (!act->gang.ranks)
        world_break(w, "a gang has ranks", "stage %u", a.stage.n);
    /* (The action does not say which attempt of the stage it is.) */
    struct trp_stage_view v = {.attempts = 0};
    trp_engine_stage(w->engine, a.stage, &v);
    a.stage_attempt =
        v.attempts ? v.attempts - 1 : world_stage_at(w, a.stage.n)->attempt;
    take_launched(w, act, &a);
}

void world_take_kill(struct world *w, const struct trp_action *act)
{
    struct world_attempt *a = world_find(w, act->kill.attempt);
    world_mix(w, act->kill.attempt.n + act->kill.recall);
    world_say(w, "    %s %08llx\n", act->kill.recall ? "recall" : "kill",
              (llu)act->kill.attempt.n);
    if (!a || a->executor != act->kill.executor.n || a->stage.n != act->kill.stage.n ||
        a->stage_attempt != act->kill.stage_attempt || a->task != act->kill.task ||
        a->number != act->kill.number) {
        world_break(w, "only what lives is killed", "attempt %llx on executor %d",
                    (llu)act->kill.attempt.n, (int)act->kill.executor.n);
        return;
    }
    a->kill |= !act->kill.recall;
    a->recall |= act->kill.recall;
    if (w->hooks->killed)
        w->hooks->killed(w, a);
}

/* The first of its stage that waits behind one that ended takes its place. */
static void move_up(struct world *w, const struct world_attempt *ended)
{
    for (uint32_t i = 0; i < w->nattempts; i++) {
        struct world_attempt *b = &w->attempts[i];
        if (b->executor != ended->executor || !b->queued ||
            b->stage.n != ended->stage.n || b->stage_attempt != ended->stage_attempt)
            continue;
        b->queued = false;
        b->ngrants = ended->ngrants;
        memcpy(b->grants, ended->grants, sizeof(b->grants));
        book(w, b, 1);
        if (w->hooks->moved_up)
            w->hooks->moved_up(w, b);
        return;
    }
}

static void forget(struct world *w, uint32_t i)
{
    w->past[w->npast++ % WORLD_PAST] = w->attempts[i].id;
    w->nattempts--;
    memmove(&w->attempts[i], &w->attempts[i + 1],
            (w->nattempts - i) * sizeof(*w->attempts));
}

/* (A task that outlives one allocation after another is counted, though.) */
static void check_lost(struct world *w, const struct trp_action *act)
{
    if (act->task_end.counted && act->task_end.status == TRP_END_LOST &&
        act->task_end.code != TRP_LOSS_TIME_LIMIT &&
        act->task_end.executor.n < w->nexecutors &&
        w->executors[act->task_end.executor.n].decommissioned)
        world_break(w, "what goes with a leaving executor does not count",
                    "stage %u task %u", act->task_end.stage.n, act->task_end.task);
}

void world_take_task_end(struct world *w, const struct trp_action *act)
{
    struct world_attempt *a = world_find(w, act->task_end.attempt);
    world_mix(w, act->task_end.attempt.n + act->task_end.retried);
    world_mix(w, (uint64_t)act->task_end.status << 1 | act->task_end.counted);
    world_say(w, "    end %08llx: stage %u.%u task %u.%u %s%s%s, %u failures\n",
              (llu)act->task_end.attempt.n, act->task_end.stage.n,
              act->task_end.stage_attempt, act->task_end.task, act->task_end.number,
              trp_end_status_name(act->task_end.status),
              act->task_end.counted ? ", counted" : "",
              act->task_end.retried ? ", retried" : "", act->task_end.failures);
    GROW(w->verdicts, w->nverdicts);
    w->verdicts[w->nverdicts++] = *act;
    if (!a || a->stage.n != act->task_end.stage.n || a->task != act->task_end.task ||
        a->number != act->task_end.number || a->executor != act->task_end.executor.n) {
        world_break(w, "every attempt gets one verdict", "attempt %llx",
                    (llu)act->task_end.attempt.n);
        return;
    }
    struct world_attempt was = *a;
    forget(w, (uint32_t)(a - w->attempts));
    if (act->task_end.status == TRP_END_SUCCESS && was.task < 64)
        w->stages[was.stage.n].done |= UINT64_C(1) << was.task;
    if (!was.queued)
        book(w, &was, -1);
    check_lost(w, act);
    if (w->hooks->task_end)
        w->hooks->task_end(w, act, &was);
    if (!was.queued && !was.gang && w->executors[was.executor].state != WORLD_GONE)
        move_up(w, &was);
}

/* One attempt of a task may commit at a time. */
static void take_commit(struct world *w, struct world_attempt *a, bool may)
{
    a->asks = false;
    for (uint32_t i = 0; may && i < w->nattempts; i++) {
        const struct world_attempt *o = &w->attempts[i];
        if (o != a && o->commits && !o->kill && o->stage.n == a->stage.n &&
            o->task == a->task)
            world_break(w, "one attempt of a task commits", "stage %u task %u",
                        a->stage.n, a->task);
    }
    a->commits |= may;
}

void world_take_synced(struct world *w, const struct trp_action *act)
{
    struct world_attempt *a = world_find(w, act->synced.attempt);
    world_mix(w, act->synced.attempt.n);
    w->synced = *act;
    w->syncs++;
    if (!act->synced.text)
        world_break(w, "an answer to a sync has a text", "attempt %llx",
                    (llu)act->synced.attempt.n);
    if (!a || !a->waits) {
        world_break(w, "only who waits is answered", "attempt %llx",
                    (llu)act->synced.attempt.n);
        return;
    }
    a->waits = false;
    if (a->asks)
        take_commit(w, a, act->synced.code >= 0);
}
