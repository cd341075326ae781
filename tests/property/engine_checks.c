/*
 * The invariants of the subject "engine" beside those of every world: what may be
 * launched, what the engine's counts must be, that no free slot stays empty. What is
 * known of tasks is kept by the hooks.
 */
#include <string.h>

#include "engine_streams.h"

const char *cluster_host(uint32_t host)
{
    static const char *const names[MAX_HOSTS] = {"h0", "h1", "h2", "h3", "h4"};
    return names[host % MAX_HOSTS];
}

const char *cluster_rack(uint32_t host)
{
    static const char *const names[MAX_HOSTS] = {"r0", "r0", "r1", "r1", NULL};
    return names[host % MAX_HOSTS];
}

uint32_t cluster_class_of(const struct cluster *c, const struct cl_stage *s)
{
    trp_profile_id any = {0};
    return trp_profiles_may_run(c->play.world.profiles, s->spec.profile, any)
               ? 0
               : s->spec.profile.n;
}

/* What one more task of the stage takes there. */
static const struct trp_resource_profile *task_profile(const struct cluster *c,
                                                       const struct cl_stage *s,
                                                       const struct world_executor *x)
{
    /* Another label than the stage's: an overflow set of it. */
    trp_profile_id id = s->spec.profile;
    if (x->label != cluster_class_of(c, s))
        id.n = x->label;
    return trp_profiles_get(c->play.world.profiles, id);
}

/* ---- launches ---- */

static void check_grants(struct cluster *c, const struct trp_action *a,
                         const struct trp_resource_profile *p)
{
    struct world *w = &c->play.world;
    const trp_ledger *ledger = trp_engine_ledger(w->engine, a->launch.executor);
    trp_amount given[MAX_RESOURCES] = {0};
    for (uint32_t i = 0; i < a->launch.ngrants; i++) {
        const struct trp_grant *g = &a->launch.grants[i];
        if (g->resource < MAX_RESOURCES)
            given[g->resource] += g->amount;
    }
    for (uint32_t r = 0; r < MAX_RESOURCES && r < trp_ledger_resources(ledger); r++) {
        const struct trp_custom *custom =
            trp_profile_custom(p, trp_ledger_resource_name(ledger, r));
        trp_amount wanted = custom ? custom->task : 0;
        if (given[r] != wanted)
            world_break(w, "a task gets what its profile says",
                        "executor %u, resource %u: %lld instead of %lld",
                        a->launch.executor.n, r, (long long)given[r],
                        (long long)wanted);
    }
}

static bool matches_level(const struct cl_task *t, const struct trp_action *a,
                          const struct world_executor *x)
{
    bool on_executor = false, on_host = false, on_rack = false;
    const char *host = x->host, *rack = x->rack;
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
    struct world *w = &c->play.world;
    uint32_t n = a->launch.executor.n;
    const struct world_executor *x = &w->executors[n];
    const struct cl_task *t = &s->tasks[a->launch.task];
    const struct trp_resource_profile *p = task_profile(c, s, x);
    if ((x->label != cluster_class_of(c, s)) != (t->grown > 0))
        world_break(w, "a task runs on executors of its profile",
                    "profile %u of the task, %u of executor %u", s->spec.profile.n,
                    x->label, n);
    if (!t->grown && !matches_level(t, a, x))
        world_break(w, "a task's level is what it says", "stage %u task %u on %s at %s",
                    a->launch.stage.n, a->launch.task, x->host,
                    trp_level_name(a->launch.level));
    if (a->launch.queued) {
        if (!x->running)
            world_break(w, "nothing queues behind nothing", "executor %u", n);
        return;
    }
    check_grants(c, a, p);
}

static void check_launch(struct world *w, const struct trp_action *a)
{
    struct cluster *c = cluster_of(w);
    bool gang = a->kind == TRP_ACTION_GANG;
    uint32_t id = gang ? a->gang.stage.n : a->launch.stage.n;
    uint32_t task = gang ? 0 : a->launch.task;
    uint32_t number = gang ? a->gang.number : a->launch.number;
    if (id >= c->nstages || task >= c->stages[id].ntasks) {
        world_break(w, "a task is launched that is there", "stage %u task %u", id,
                    task);
        return;
    }
    const struct cl_stage *s = &c->stages[id];
    const struct cl_task *t = &s->tasks[task];
    bool copy = !gang && a->launch.speculative && t->speculatable && t->live == 1;
    if (t->live && !copy)
        world_break(w, "a task runs no more copies than allowed",
                    "stage %u task %u: %u", id, task, t->live + 1);
    if (t->done || t->failed)
        world_break(w, "a task that has ended is not launched", "stage %u task %u", id,
                    task);
    if (number != t->attempts)
        world_break(w, "attempts are numbered one by one",
                    "stage %u task %u: %u, not %u", id, task, number, t->attempts);
    if (s->spec.max_running && s->running + s->queued >= s->spec.max_running)
        world_break(w, "max_running bounds what runs", "stage %u: %u run", id,
                    s->running);
    if ((s->spec.kind == TRP_STAGE_GANG) != gang)
        world_break(w, "gangs are launched as gangs", "stage %u", id);
    if (!gang && !w->broken)
        check_place(c, a, s);
}

/* ---- what is kept ---- */

static void note_launched(struct world *w, struct world_attempt *a)
{
    struct cl_stage *s = &cluster_of(w)->stages[a->stage.n];
    struct cl_task *t = &s->tasks[a->task];
    t->speculatable &= !a->copy;
    t->live++;
    t->attempts++;
    s->running += !a->queued;
    s->queued += a->queued;
}

static void note_moved_up(struct world *w, struct world_attempt *a)
{
    struct cl_stage *s = &cluster_of(w)->stages[a->stage.n];
    s->running++;
    s->queued--;
}

static bool is_not_retried(const struct cl_stage *s, const struct trp_action *act)
{
    for (uint32_t i = 0; i < s->spec.nnot_on; i++)
        if (act->task_end.status == TRP_END_EXIT &&
            act->task_end.code == s->spec.not_on[i])
            return true;
    return false;
}

/* What a verdict makes of its task. */
static void note_end(struct world *w, const struct trp_action *act,
                     const struct world_attempt *was)
{
    struct cluster *c = cluster_of(w);
    uint32_t task = was->task;
    struct cl_stage *s = &c->stages[was->stage.n];
    struct cl_task *t = &s->tasks[task];
    bool ended = w->stages[was->stage.n].ended;
    t->live--;
    s->running -= !was->queued;
    s->queued -= was->queued;
    if (act->task_end.status == TRP_END_RECALLED)
        t->attempts--;
    bool was_over = t->done || t->failed;
    t->failures = act->task_end.counted ? t->failures + 1 : t->failures;
    s->excludes |= act->task_end.counted && w->config.exclusion.enabled;
    uint32_t max = s->spec.max_failures ? s->spec.max_failures : w->config.max_failures;
    if (act->task_end.status == TRP_END_SUCCESS && !ended && !t->done) {
        t->done = true;
        s->ndone++;
        t->failures = 0;
    } else if (act->task_end.counted && !t->done && !t->failed &&
               (t->failures >= max || is_not_retried(s, act))) {
        t->failed = true;
        s->nfailed++;
    }
    if (act->task_end.retried && act->task_end.status == TRP_END_MEMORY &&
        s->spec.memory_factor_ppm && !w->config.fixed && was->executor != TRP_NONE)
        t->grown++;
    bool success = act->task_end.status == TRP_END_SUCCESS;
    if (act->task_end.failures != t->failures && !ended && !success)
        world_break(w, "failures are counted right",
                    "stage %u task %u: %u failures, told %u", was->stage.n, task,
                    t->failures, act->task_end.failures);
    if ((t->failures > max && !was_over) ||
        (t->failures == max && act->task_end.retried))
        world_break(w, "a task has no more failures than allowed",
                    "stage %u task %u: %u failures of %u%s", was->stage.n, task,
                    t->failures, max, act->task_end.retried ? ", and is retried" : "");
    if (act->task_end.retried && ended)
        world_break(w, "nothing runs again after its stage ended", "stage %u task %u",
                    was->stage.n, task);
}

static bool is_lost_above(const struct cluster *c, const struct cl_stage *s,
                          const struct trp_action *act)
{
    for (uint32_t i = 0; i < s->spec.nparents; i++) {
        uint32_t id = s->parents[i].stage;
        const struct cl_stage *p = &c->stages[id];
        const struct cl_task *t = &p->tasks[act->given_up.parent_task];
        if (id == act->given_up.parent.n &&
            cluster_comes_after(s, i, act->given_up.task, act->given_up.parent_task) &&
            (t->failed || (c->play.world.stages[id].ended && !t->done)))
            return true;
    }
    return false;
}

static void note_given_up(struct world *w, const struct trp_action *act)
{
    struct cluster *c = cluster_of(w);
    uint32_t id = act->given_up.stage.n, task = act->given_up.task;
    bool skipped = act->given_up.parent.n != TRP_NONE;
    struct cl_stage *s = id < c->nstages ? &c->stages[id] : NULL;
    struct cl_task *t = s && task < s->ntasks ? &s->tasks[task] : NULL;
    bool ended = s && w->stages[id].ended;
    if (t && !skipped && t->failed && !ended)
        return;
    if (!t || !skipped || ended || t->live || t->done || t->failed || t->attempts ||
        !is_lost_above(c, s, act)) {
        world_break(w, "what is given up has failed, or waits for what was",
                    "stage %u task %u", id, task);
        return;
    }
    t->failed = true;
    s->nfailed++;
    s->nskipped++;
}

static void note_stage_ended(struct world *w, const struct trp_action *act)
{
    struct cluster *c = cluster_of(w);
    uint32_t id = act->stage_ended.stage.n;
    if (id >= c->nstages)
        return;
    const struct cl_stage *s = &c->stages[id];
    bool ok = act->stage_ended.outcome == TRP_OUTCOME_SUCCEEDED;
    if (ok && s->ndone + s->nfailed != s->ntasks)
        world_break(w, "a stage succeeds when its tasks have",
                    "stage %u: %u of %u done", id, s->ndone, s->ntasks);
    uint32_t part = (uint32_t)((uint64_t)s->ntasks * s->spec.tolerate_ppm / 1000000);
    uint32_t tolerated = s->spec.tolerate > part ? s->spec.tolerate : part;
    if (ok && s->nfailed - s->nskipped > tolerated)
        world_break(w, "a stage succeeds when its tasks have",
                    "stage %u: %u tasks failed, %u are tolerated", id,
                    s->nfailed - s->nskipped, tolerated);
}

static void note_set_ended(struct world *w, const struct trp_action *act)
{
    if (act->set.stage.n < cluster_of(w)->nstages)
        cluster_of(w)->stages[act->set.stage.n].set_ended = true;
}

static void note_slow(struct world *w, const struct trp_action *act)
{
    struct cluster *c = cluster_of(w);
    uint32_t id = act->task.stage.n, task = act->task.task;
    struct cl_task *t = id < c->nstages && task < c->stages[id].ntasks
                            ? &c->stages[id].tasks[task]
                            : NULL;
    if (!t || t->live != 1 || t->done || t->speculatable)
        world_break(w, "a task is found slow once, while one attempt runs",
                    "stage %u task %u", id, task);
    else
        t->speculatable = true;
}

static void note_resubmitted(struct world *w, const struct trp_action *act)
{
    world_break(w, "nothing runs again without map outputs", "stage %u task %u",
                act->task.stage.n, act->task.task);
}

static void note_profile(struct world *w, trp_profile_id profile)
{
    struct cluster *c = cluster_of(w);
    c->new_profiles[c->nnew_profiles++ % MAX_PROFILES] = profile.n;
}

/* ---- executors ---- */

static void check_executors(struct cluster *c)
{
    struct world *w = &c->play.world;
    struct trp_engine_counts counts;
    uint32_t live = 0, requested = 0;
    trp_engine_counts(w->engine, &counts);
    for (uint32_t i = 0; i < w->nexecutors; i++) {
        const struct world_executor *x = &w->executors[i];
        live += x->state == WORLD_LIVE || (x->state == WORLD_RELEASED && x->came);
        requested += x->state == WORLD_REQUESTED;
        if (x->state != WORLD_LIVE)
            continue;
        const trp_ledger *ledger = trp_engine_ledger(w->engine, (trp_executor_id){i});
        for (uint32_t r = 0; r < trp_ledger_resources(ledger); r++)
            for (uint32_t k = 0; k < trp_ledger_addresses(ledger, r); k++)
                if (trp_ledger_left(ledger, r, k) + x->taken[r][k] != TRP_ONE)
                    world_break(
                        w, "no resource is lost",
                        "executor %u resource %u address %u: %lld taken, %lld left", i,
                        r, k, (long long)x->taken[r][k],
                        (long long)trp_ledger_left(ledger, r, k));
    }
    if (live != counts.executors_live || requested != counts.executors_requested)
        world_break(w, "counts equal lists",
                    "%u executors live (told %u), %u requested (told %u)", live,
                    counts.executors_live, requested, counts.executors_requested);
}

/* ---- stages ---- */

static bool is_held(const struct cluster *c, const struct cl_stage *s, uint32_t task)
{
    for (uint32_t i = 0; i < s->spec.nparents; i++) {
        const struct cl_stage *p = &c->stages[s->parents[i].stage];
        for (uint32_t t = 0; t < p->ntasks; t++)
            if (cluster_comes_after(s, i, task, t) && !p->tasks[t].done &&
                !p->tasks[t].failed)
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
    struct world *w = &c->play.world;
    const struct cl_stage *s = &c->stages[id];
    const struct world_stage *known = &w->stages[id];
    struct trp_stage_view v;
    uint32_t pending = 0;
    if (trp_engine_stage(w->engine, (trp_stage_id){id}, &v) < 0) {
        if (!w->jobs[s->job].ended || s->running + s->queued)
            world_break(w, "counts equal lists", "stage %u is not there", id);
        return;
    }
    if (v.running != s->running || v.queued != s->queued)
        world_break(w, "counts equal lists",
                    "stage %u: %u running (told %u), %u queued (%u)", id, s->running,
                    v.running, s->queued, v.queued);
    if ((v.outcome != TRP_OUTCOME_RUNNING) != known->ended)
        world_break(w, "counts equal lists", "stage %u: outcome %s", id,
                    trp_outcome_name(v.outcome));
    if (known->ended || !known->submitted || (s->set_ended && w->drains))
        return; /* a zombie's attempts may finish, and come back to nobody */
    for (uint32_t i = 0; i < s->ntasks; i++)
        pending += is_pending(c, s, i);
    if (v.pending != pending || v.succeeded != s->ndone || v.failed != s->nfailed)
        world_break(w, "counts equal lists",
                    "stage %u: %u pending (told %u), %u succeeded (%u), %u failed (%u)",
                    id, pending, v.pending, s->ndone, v.succeeded, s->nfailed,
                    v.failed);
    /* What was skipped is judged when the stages above by a value have ended. */
    bool judged = true;
    for (uint32_t i = 0; i < s->spec.nparents && s->nskipped; i++)
        judged = judged && (!s->parents[i].by || w->stages[s->parents[i].stage].ended);
    if (judged && !pending && !s->running && !s->queued &&
        s->ndone + s->nfailed == s->ntasks)
        world_break(w, "a stage ends when its tasks have", "stage %u", id);
}

/* ---- no slot stays empty ---- */

static bool has_room(const struct cluster *c, const struct world_executor *x,
                     uint32_t n, const struct trp_resource_profile *p)
{
    const trp_ledger *ledger =
        trp_engine_ledger(c->play.world.engine, (trp_executor_id){n});
    if (x->used + p->task_cpus > x->cores)
        return false;
    for (uint32_t i = 0; i < p->ncustom; i++) {
        trp_amount take = p->custom[i].task, parts = 0;
        uint32_t whole = 0, found = 0;
        for (uint32_t r = 0; take && r < trp_ledger_resources(ledger); r++) {
            const char *name = trp_ledger_resource_name(ledger, r);
            if (strcmp(name, p->custom[i].name) != 0)
                continue;
            for (uint32_t k = 0; k < trp_ledger_addresses(ledger, r); k++) {
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
                          const struct cl_task *t, const struct world_executor *x)
{
    const struct world *w = &c->play.world;
    int64_t waits = 0;
    if (!s->prefers)
        return true;
    for (int l = 0; l < TRP_LEVELS; l++)
        waits += w->config.locality_wait_ns[l];
    if (w->now - c->quiet_since > 3 * waits + 1)
        return true;
    for (uint32_t i = 0; i < t->nplaces && !s->prefers_executors; i++)
        if (strcmp(t->places[i].host, x->host) == 0)
            return true;
    return false;
}

/* Under a limit over all profiles a busy executor may be making room for tasks of
 * another profile, and starts nothing more. */
static bool may_make_room(const struct cluster *c, const struct world_executor *x)
{
    const struct world *w = &c->play.world;
    if (w->config.alloc_max_executors == UINT32_MAX || !x->running)
        return false;
    for (uint32_t id = 0; id < c->nstages; id++) {
        const struct cl_stage *s = &c->stages[id];
        const struct world_stage *known = &w->stages[id];
        bool other = cluster_class_of(c, s) != x->label;
        bool runs = known->submitted && !known->ended;
        for (uint32_t i = 0; runs && i < s->ntasks; i++) {
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
    struct world *w = &c->play.world;
    const struct cl_stage *s = &c->stages[id];
    uint32_t class = cluster_class_of(c, s);
    const struct world_stage *known = &w->stages[id];
    if (!known->submitted || s->set_ended || known->ended || s->excludes ||
        s->spec.kind == TRP_STAGE_GANG)
        return;
    if (s->spec.max_running && s->running + s->queued >= s->spec.max_running)
        return;
    for (uint32_t n = 0; n < w->nexecutors; n++) {
        const struct world_executor *x = &w->executors[n];
        const struct trp_resource_profile *p = task_profile(c, s, x);
        if (x->state != WORLD_LIVE || x->decommissioned || x->excluded ||
            world_excludes(w, x->host) || x->label != class || !has_room(c, x, n, p) ||
            may_make_room(c, x))
            continue;
        for (uint32_t i = 0; i < s->ntasks; i++)
            if (is_pending(c, s, i) && !s->tasks[i].grown &&
                need_not_wait(c, s, &s->tasks[i], x))
                world_break(w, "no slot stays empty while a task may run there",
                            "executor %u on %s has room, stage %u task %u is pending",
                            n, x->host, id, i);
    }
}

static void check_everything(struct world *w)
{
    struct cluster *c = cluster_of(w);
    struct trp_event fit = {.kind = TRP_EVENT_PROFILE_FIT};
    if (w->actions != c->actions)
        c->quiet_since = w->now;
    c->actions = w->actions;
    check_executors(c);
    for (uint32_t i = 0; i < c->nstages; i++) {
        check_stage(c, i);
        if (!w->draining)
            check_no_idle_slot(c, i);
    }
    /* Derived profiles: the cluster has room for a few of their executors. */
    while (c->nnew_profiles && !w->broken) {
        fit.fit.profile.n = c->new_profiles[--c->nnew_profiles % MAX_PROFILES];
        fit.fit.executors = 4;
        fit.fit.additional = 2;
        world_step(w, &fit);
    }
}

const struct world_hooks engine_hooks = {.broken = play_broken,
                                         .executor = play_executor,
                                         .launch = check_launch,
                                         .launched = note_launched,
                                         .moved_up = note_moved_up,
                                         .task_end = note_end,
                                         .stage_ended = note_stage_ended,
                                         .set_ended = note_set_ended,
                                         .resubmitted = note_resubmitted,
                                         .slow = note_slow,
                                         .given_up = note_given_up,
                                         .profile_added = note_profile,
                                         .stepped = check_everything};
