/*
 * The invariants: what may be launched, what the engine's counts must be, that no free
 * slot stays empty, that memory comes back.
 */
#include <string.h>

#include "cluster.h"
#include "memory.h"

#define BREAK(c, broken, ...) verdict_break((c)->verdict, broken, __VA_ARGS__)

bool cluster_is_shut(const struct cluster *c, const struct cl_executor *x)
{
    return x->state != CL_LIVE || x->decommissioned || x->excluded ||
           c->excluded_hosts[x->host];
}

uint32_t cluster_class_of(const struct cluster *c, const struct cl_stage *s)
{
    trp_profile_id any = {0};
    return trp_profiles_may_run(c->profiles, s->spec.profile, any) ? 0
                                                                   : s->spec.profile.n;
}

const struct trp_resource_profile *cluster_task_profile(const struct cluster *c,
                                                        const struct cl_stage *s,
                                                        const struct cl_executor *x)
{
    /* Another label than the stage's: an overflow set of it. */
    trp_profile_id id = s->spec.profile;
    if (x->label != cluster_class_of(c, s))
        id.n = x->label;
    return trp_profiles_get(c->profiles, id);
}

/* ---- launches ---- */

static void check_grants(struct cluster *c, const struct trp_action *a,
                         const struct cl_executor *x,
                         const struct trp_resource_profile *p)
{
    const trp_ledger *ledger = trp_engine_ledger(c->engine, a->launch.executor);
    trp_amount given[MAX_RESOURCES] = {0};
    for (uint32_t i = 0; i < a->launch.ngrants; i++) {
        const struct trp_grant *g = &a->launch.grants[i];
        if (g->resource >= MAX_RESOURCES || g->address >= x->naddresses[g->resource] ||
            g->amount <= 0 || x->taken[g->resource][g->address] + g->amount > TRP_ONE) {
            BREAK(c, "no resource is given twice",
                  "executor %u, resource %u address %u", a->launch.executor.n,
                  g->resource, g->address);
            return;
        }
        given[g->resource] += g->amount;
    }
    for (uint32_t r = 0; r < MAX_RESOURCES && x->naddresses[r]; r++) {
        const struct trp_custom *custom =
            trp_profile_custom(p, trp_ledger_resource_name(ledger, r));
        trp_amount wanted = custom ? custom->task : 0;
        if (given[r] != wanted)
            BREAK(c, "a task gets what its profile says",
                  "executor %u, resource %u: %lld instead of %lld",
                  a->launch.executor.n, r, (long long)given[r], (long long)wanted);
    }
}

static bool matches_level(const struct cl_task *t, const struct trp_action *a,
                          const struct cl_executor *x)
{
    bool on_executor = false, on_host = false, on_rack = false;
    const char *host = cluster_host(x->host), *rack = cluster_rack(x->host);
    for (uint32_t i = 0; i < t->nplaces; i++) {
        const struct trp_place *p = &t->places[i];
        const char *its = cluster_rack((uint32_t)(p->host[1] - '0'));
        on_executor |= p->executor == a->launch.executor.n;
        on_host |= strcmp(p->host, host) == 0;
        on_rack |= its && rack && strcmp(its, rack) == 0;
    }
    switch (a->launch.level) {
    case TRP_PROCESS_LOCAL:
        return on_executor || !t->nplaces;
    case TRP_NODE_LOCAL:
        return on_host;
    case TRP_NO_PREF:
        return !t->nplaces;
    case TRP_RACK_LOCAL:
        return on_rack;
    case TRP_ANY:
    default:
        return true;
    }
}

static void check_place(struct cluster *c, const struct trp_action *a,
                        const struct cl_stage *s)
{
    uint32_t n = a->launch.executor.n;
    if (n >= c->nexecutors || cluster_is_shut(c, &c->executors[n])) {
        BREAK(c, "nothing is launched on the dead, releasing or excluded",
              "executor %u", n);
        return;
    }
    const struct cl_executor *x = &c->executors[n];
    const struct cl_task *t = &s->tasks[a->launch.task];
    const struct trp_resource_profile *p = cluster_task_profile(c, s, x);
    if ((x->label != cluster_class_of(c, s)) != (t->grown > 0))
        BREAK(c, "a task runs on executors of its profile",
              "profile %u of the task, %u of executor %u", s->spec.profile.n, x->label,
              n);
    if (!t->grown && !matches_level(t, a, x))
        BREAK(c, "a task's level is what it says", "stage %u task %u on %s at %s",
              a->launch.stage.n, a->launch.task, cluster_host(x->host),
              trp_level_name(a->launch.level));
    if (a->launch.queued) {
        if (!x->running)
            BREAK(c, "nothing queues behind nothing", "executor %u", n);
        return;
    }
    if (x->used + p->task_cpus > x->cores)
        BREAK(c, "no resource is given twice", "executor %u: %lld + %lld of %lld cores",
              n, (long long)x->used, (long long)p->task_cpus, (long long)x->cores);
    check_grants(c, a, x, p);
}

void check_launch(struct cluster *c, const struct trp_action *a, bool gang)
{
    uint32_t id = gang ? a->gang.stage.n : a->launch.stage.n;
    uint32_t task = gang ? 0 : a->launch.task;
    uint32_t number = gang ? a->gang.number : a->launch.number;
    if (c->nattempts == MAX_ATTEMPTS || id >= c->nstages ||
        task >= c->stages[id].ntasks) {
        BREAK(c, "a task is launched that is there", "stage %u task %u", id, task);
        return;
    }
    const struct cl_stage *s = &c->stages[id];
    const struct cl_task *t = &s->tasks[task];
    if (c->draining)
        BREAK(c, "nothing is launched while draining", "stage %u task %u", id, task);
    if (!s->submitted || s->ended)
        BREAK(c, "a task is launched while its stage runs", "stage %u task %u", id,
              task);
    bool copy = !gang && a->launch.speculative && t->speculatable && t->live == 1;
    if (t->live && !copy)
        BREAK(c, "a task runs no more copies than allowed", "stage %u task %u: %u", id,
              task, t->live + 1);
    if (t->done || t->failed)
        BREAK(c, "a task that has ended is not launched", "stage %u task %u", id, task);
    if (number != t->attempts)
        BREAK(c, "attempts are numbered one by one", "stage %u task %u: %u, not %u", id,
              task, number, t->attempts);
    if (s->spec.max_running && s->running + s->queued >= s->spec.max_running)
        BREAK(c, "max_running bounds what runs", "stage %u: %u run", id, s->running);
    if ((s->spec.kind == TRP_STAGE_GANG) != gang)
        BREAK(c, "gangs are launched as gangs", "stage %u", id);
    if (!gang && !c->verdict->broken[0])
        check_place(c, a, s);
}

/* ---- executors ---- */

static uint32_t count_executors(const struct cluster *c, uint32_t label, bool all)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->nexecutors; i++) {
        const struct cl_executor *x = &c->executors[i];
        bool there = x->state == CL_REQUESTED || x->state == CL_LIVE;
        /* One that was told to go by others is replaced before it has gone. */
        n += (there && (all || (x->label == label && !x->decommissioned))) ||
             (all && x->state == CL_RELEASING && x->came);
    }
    return n;
}

void check_executor_action(struct cluster *c, const struct trp_action *a)
{
    uint32_t n = a->executor.executor.n, label = a->executor.profile.n;
    if (n >= MAX_EXECUTORS) {
        BREAK(c, "executors are not asked for without end", "executor %u", n);
        return;
    }
    const struct cl_executor *x = &c->executors[n];
    if (a->kind == TRP_ACTION_START_EXECUTOR) {
        if (x->state != CL_NOT_THERE)
            BREAK(c, "an executor is asked for once", "executor %u", n);
        if (c->config.fixed || c->draining)
            BREAK(c, "executors are asked for only when they may be", "executor %u", n);
        if (!c->appeared && count_executors(c, label, false) >= c->config.max_executors)
            BREAK(c, "targets are within bounds", "profile %u: more than %u executors",
                  label, c->config.max_executors);
        if (!c->appeared &&
            count_executors(c, label, true) >= c->config.alloc_max_executors)
            BREAK(c, "targets are within bounds", "more than %u executors",
                  c->config.alloc_max_executors);
        return;
    }
    if (x->state != CL_LIVE &&
        !(x->state == CL_REQUESTED && a->kind == TRP_ACTION_RELEASE_EXECUTOR)) {
        BREAK(c, "executors change only while they are there", "executor %u", n);
        return;
    }
    for (uint32_t i = 0; i < c->nattempts; i++)
        if (c->attempts[i].executor == n)
            BREAK(c, "only idle executors are released or relabelled",
                  "executor %u runs stage %u task %u", n, c->attempts[i].stage,
                  c->attempts[i].task);
    if (c->config.fixed && a->kind == TRP_ACTION_RELEASE_EXECUTOR)
        BREAK(c, "a fixed executor stays", "executor %u", n);
    if (a->kind == TRP_ACTION_RELABEL_EXECUTOR && c->config.reuse == TRP_REUSE_NEVER)
        BREAK(c, "executors are not reused when they may not be", "executor %u", n);
}

static void check_executors(struct cluster *c)
{
    struct trp_engine_counts counts;
    uint32_t live = 0, requested = 0;
    trp_engine_counts(c->engine, &counts);
    for (uint32_t i = 0; i < c->nexecutors; i++) {
        const struct cl_executor *x = &c->executors[i];
        live += x->state == CL_LIVE || (x->state == CL_RELEASING && x->came);
        requested += x->state == CL_REQUESTED;
        if (x->state != CL_LIVE)
            continue;
        const trp_ledger *ledger = trp_engine_ledger(c->engine, (trp_executor_id){i});
        for (uint32_t r = 0; r < MAX_RESOURCES; r++)
            for (uint32_t k = 0; k < x->naddresses[r]; k++)
                if (trp_ledger_left(ledger, r, k) + x->taken[r][k] != TRP_ONE)
                    BREAK(c, "no resource is lost",
                          "executor %u resource %u address %u: %lld taken, %lld left",
                          i, r, k, (long long)x->taken[r][k],
                          (long long)trp_ledger_left(ledger, r, k));
    }
    if (live != counts.executors_live || requested != counts.executors_requested)
        BREAK(c, "counts equal lists",
              "%u executors live (told %u), %u requested (told %u)", live,
              counts.executors_live, requested, counts.executors_requested);
}

/* ---- stages ---- */

static bool is_held(const struct cluster *c, const struct cl_stage *s, uint32_t task)
{
    for (uint32_t i = 0; i < s->spec.nparents; i++) {
        const struct cl_stage *p = &c->stages[s->parents[i].stage];
        if (s->parents[i].each && !p->tasks[task].done && !p->tasks[task].failed)
            return true;
    }
    return false;
}

static bool is_pending(const struct cluster *c, const struct cl_stage *s, uint32_t task)
{
    const struct cl_task *t = &s->tasks[task];
    return !t->live && !t->done && !t->failed && !is_held(c, s, task);
}

static void check_stage(struct cluster *c, uint32_t id)
{
    const struct cl_stage *s = &c->stages[id];
    struct trp_stage_view v;
    uint32_t pending = 0;
    if (trp_engine_stage(c->engine, (trp_stage_id){id}, &v) < 0) {
        if (!c->jobs[s->job].ended || s->running + s->queued)
            BREAK(c, "counts equal lists", "stage %u is not there", id);
        return;
    }
    if (v.running != s->running || v.queued != s->queued)
        BREAK(c, "counts equal lists", "stage %u: %u running (told %u), %u queued (%u)",
              id, s->running, v.running, s->queued, v.queued);
    if ((v.outcome != TRP_OUTCOME_RUNNING) != s->ended)
        BREAK(c, "counts equal lists", "stage %u: outcome %s", id,
              trp_outcome_name(v.outcome));
    if (s->ended || !s->submitted)
        return;
    for (uint32_t i = 0; i < s->ntasks; i++)
        pending += is_pending(c, s, i);
    if (v.pending != pending || v.succeeded != s->ndone || v.failed != s->nfailed)
        BREAK(c, "counts equal lists",
              "stage %u: %u pending (told %u), %u succeeded (%u), %u failed (%u)", id,
              pending, v.pending, s->ndone, v.succeeded, s->nfailed, v.failed);
    if (!pending && !s->running && !s->queued && s->ndone + s->nfailed == s->ntasks)
        BREAK(c, "a stage ends when its tasks have", "stage %u", id);
}

/* ---- no slot stays empty ---- */

static bool has_room(const struct cluster *c, const struct cl_executor *x, uint32_t n,
                     const struct trp_resource_profile *p)
{
    const trp_ledger *ledger = trp_engine_ledger(c->engine, (trp_executor_id){n});
    if (x->used + p->task_cpus > x->cores)
        return false;
    for (uint32_t i = 0; i < p->ncustom; i++) {
        trp_amount take = p->custom[i].task, parts = 0;
        uint32_t whole = 0, found = 0;
        for (uint32_t r = 0; take && r < MAX_RESOURCES; r++) {
            const char *name = trp_ledger_resource_name(ledger, r);
            if (!name || strcmp(name, p->custom[i].name) != 0)
                continue;
            for (uint32_t k = 0; k < x->naddresses[r]; k++) {
                whole += x->taken[r][k] == 0;
                parts += x->taken[r][k] + take <= TRP_ONE;
            }
            found = take >= TRP_ONE ? whole >= (uint32_t)(take / TRP_ONE) : parts > 0;
        }
        if (take && !found)
            return false;
    }
    return true;
}

/* May this task start there whatever its set's clock says? In a set without preferences
 * it may; on a host it prefers it may when nobody in the set waits for an executor;
 * when nothing has changed for longer than all waits it may run anywhere. (A task
 * without a preference may have to wait: levels are valid or not as of the last time
 * that an executor came or went.) */
static bool need_not_wait(const struct cluster *c, const struct cl_stage *s,
                          const struct cl_task *t, const struct cl_executor *x)
{
    int64_t waits = 0;
    if (!s->prefers)
        return true;
    for (int l = 0; l < TRP_LEVELS; l++)
        waits += c->config.locality_wait_ns[l];
    if (c->now - c->quiet_since > 3 * waits + 1)
        return true;
    for (uint32_t i = 0; i < t->nplaces && !s->prefers_executors; i++)
        if (strcmp(t->places[i].host, cluster_host(x->host)) == 0)
            return true;
    return false;
}

/* Under a limit over all profiles a busy executor may be making room for tasks of
 * another profile, and starts nothing more. */
static bool may_make_room(const struct cluster *c, const struct cl_executor *x)
{
    if (c->config.alloc_max_executors == UINT32_MAX || !x->running)
        return false;
    for (uint32_t id = 0; id < c->nstages; id++) {
        const struct cl_stage *s = &c->stages[id];
        bool other = cluster_class_of(c, s) != x->label;
        for (uint32_t i = 0; s->submitted && !s->ended && i < s->ntasks; i++) {
            const struct cl_task *t = &s->tasks[i];
            bool copy = t->speculatable && t->live == 1;
            if ((copy || is_pending(c, s, i)) && (other || t->grown))
                return true;
        }
    }
    return false;
}

static void check_no_idle_slot(struct cluster *c, uint32_t id)
{
    const struct cl_stage *s = &c->stages[id];
    uint32_t class = cluster_class_of(c, s);
    if (!s->submitted || s->sets_ended || s->ended || s->excludes ||
        s->spec.kind == TRP_STAGE_GANG)
        return;
    if (s->spec.max_running && s->running + s->queued >= s->spec.max_running)
        return;
    for (uint32_t n = 0; n < c->nexecutors; n++) {
        const struct cl_executor *x = &c->executors[n];
        const struct trp_resource_profile *p = cluster_task_profile(c, s, x);
        if (cluster_is_shut(c, x) || x->label != class || !has_room(c, x, n, p) ||
            may_make_room(c, x))
            continue;
        for (uint32_t i = 0; i < s->ntasks; i++)
            if (is_pending(c, s, i) && !s->tasks[i].grown &&
                need_not_wait(c, s, &s->tasks[i], x))
                BREAK(c, "no slot stays empty while a task may run there",
                      "executor %u on %s has room, stage %u task %u is pending", n,
                      cluster_host(x->host), id, i);
    }
}

void check_everything(struct cluster *c)
{
    trp_error err;
    check_executors(c);
    for (uint32_t i = 0; i < c->nstages; i++) {
        check_stage(c, i);
        if (!c->draining)
            check_no_idle_slot(c, i);
    }
    if (trp_engine_sanity_check(c->engine, &err) < 0)
        BREAK(c, "the engine's own check", "%s", err.text);
}

/* Everything is over. What may stay: names and numbers, the highest marks of queues. */
void check_memory(struct cluster *c)
{
    int64_t ids = c->nstages + c->njobs + c->nexecutors;
    int64_t profiles = trp_profiles_count(c->profiles);
    int64_t limit = c->memory_before + 8192 + ids * 72 + profiles * 4096 +
                    (int64_t)c->most_attempts * 160 + (int64_t)c->most_actions * 320;
    if (memory_held() > limit)
        BREAK(c, "memory comes back when jobs are done",
              "%lld bytes more, %lld may stay",
              (long long)(memory_held() - c->memory_before),
              (long long)(limit - c->memory_before));
}
