/*
 * Layers `sched` and `health`: what the engine decided, in the words of a case.
 */
#include <string.h>

#include "sim/scenario/layer_sched.h"

/* The declared set that was last submitted as this attempt of a stage. */
static const char *set_name(const struct trp_sched *s, uint32_t stage, uint32_t attempt)
{
    const char *name = "?";
    for (uint32_t i = 0; i < s->nsets; i++)
        if (s->sets[i].stage == stage && s->sets[i].attempt == attempt &&
            s->sets[i].set && (!s->sets[i].set->zombie || !strcmp(name, "?")))
            name = s->sets[i].id;
    return name;
}

static json_t *launch(const struct trp_sched *s, const struct trp_action *a)
{
    uint32_t executor = a->launch.executor.n;
    const trp_ledger *ledger = trp_engine_ledger(s->engine, a->launch.executor);
    uint32_t host = s->engine->executors[executor]->host;
    return json_pack(
        "{s:s, s:i, s:i, s:s, s:s, s:s, s:b, s:o}", "set",
        set_name(s, a->launch.stage.n, a->launch.stage_attempt), "task",
        (int)a->launch.task, "attempt", (int)a->launch.number, "executor",
        s->executors.v[executor], "host", s->engine->hosts.hosts[host].name, "level",
        trp_level_name(a->launch.level), "speculative", (int)a->launch.speculative,
        "resources", trp_sim_json_grants(ledger, a->launch.grants, a->launch.ngrants));
}

static json_t *task(const struct trp_sched *s, uint32_t stage, uint32_t attempt,
                    uint32_t n)
{
    return json_pack("{s:s, s:i}", "set", set_name(s, stage, attempt), "task", (int)n);
}

static void tell_set(struct trp_sched *s, const struct trp_action *a)
{
    static const char *const words[] = {
        [TRP_SET_FINISHED] = "finished",
        [TRP_SET_ABORTED] = "aborted",
        [TRP_SET_ZOMBIE] = "zombie",
    };
    trp_sim_tell(s->c, words[a->set.how],
                 json_string(set_name(s, a->set.stage.n, a->set.stage_attempt)));
    if (*a->set.text)
        trp_sim_say(s->c, "%s", a->set.text);
}

static void tell_kill(struct trp_sched *s, const struct trp_action *a)
{
    json_t *kill = task(s, a->kill.stage.n, a->kill.stage_attempt, a->kill.task);
    json_object_set_new(kill, "attempt", json_integer(a->kill.number));
    trp_sim_tell(s->c, "kill", kill);
}

int trp_sched_lose(struct trp_sched *s, const struct trp_event *lost, int64_t now_ns,
                   trp_error *err)
{
    uint32_t at = 0;
    while (s->order[at] != lost->lost.executor.n)
        at++;
    memmove(&s->order[at], &s->order[at + 1], (s->norder - at - 1) * sizeof(*s->order));
    s->norder--;
    return trp_engine_step(s->engine, now_ns, lost, err);
}

/* A decommissioned executor whose time is over is gone at once; one that is killed to
 * make room stays until the case loses it. */
static void released(struct trp_sched *s, const struct trp_action *a)
{
    const struct trp_engine *e = s->engine;
    const struct trp_executor *x = trp_executor_find(e, a->executor.executor);
    const struct trp_event lost = {
        .kind = TRP_EVENT_EXECUTOR_LOST,
        .lost = {.executor = x->id, .reason = TRP_LOSS_DECOMMISSIONED}
    };
    int64_t force = e->config.decommission.force_kill_ns;
    trp_error err;
    if (force && x->decommissioned_ns != INT64_MAX &&
        e->now - x->decommissioned_ns >= force)
        trp_sched_lose(s, &lost, e->now, &err);
}

void trp_sched_tell(struct trp_sched *s)
{
    const struct trp_action *a;
    while ((a = trp_engine_next(s->engine))) {
        if (a->kind == TRP_ACTION_RELEASE_EXECUTOR)
            released(s, a);
        else if (a->kind == TRP_ACTION_LAUNCH)
            trp_sim_tell(s->c, "launch", launch(s, a));
        else if (a->kind == TRP_ACTION_SET_ENDED)
            tell_set(s, a);
        else if (a->kind == TRP_ACTION_KILL)
            tell_kill(s, a);
        else if (a->kind == TRP_ACTION_SPECULATABLE)
            trp_sim_tell(s->c, "speculatable",
                         task(s, a->task.stage.n, a->task.stage_attempt, a->task.task));
        else if (a->kind == TRP_ACTION_RESUBMITTED)
            trp_sim_tell(s->c, "requeued",
                         task(s, a->task.stage.n, a->task.stage_attempt, a->task.task));
        else if (a->kind == TRP_ACTION_TASK_END && a->task_end.retried)
            trp_sim_tell(s->c, "requeued",
                         task(s, a->task_end.stage.n, a->task_end.stage_attempt,
                              a->task_end.task));
    }
}
