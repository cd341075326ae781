/*
 * How many executors each profile should have, and which are released. Semantics,
 * section 16, differences 4, 5, 8, 10 and 11.
 *
 * The demand of a class (demand.c), bounded by its share of the limits over all
 * profiles (yield.c), is compared with its executors, live and requested, whenever
 * either changes: too few   idle executors of another class, which that class does not
 * need and whose shape may serve (alloc.reuse), are relabelled; the rest is requested,
 * within the limits; too many  idle ones are released, and requests withdrawn, at the
 * end of a stage (none of the class runs while others do), when another class lacks
 * executors, or when they have expired (idle.h). Those that hold cached partitions go
 * after the others, and not at the end of a stage alone. Those of a stage whose tasks
 * wait for one task of a parent each stay while such a task is about to end. Between the jobs of a program nothing
 * runs and nobody waits: executors stay until they expire. A minimum holds while no
 * class lacks an executor that its tasks can use. If one does, nothing is requested to
 * keep a minimum, and what it keeps may expire; if a limit is short it is released at
 * once. Other runs that wait for room count as such a class, and are given what is idle
 * (give_back).
 *
 * Cost: O(profiles) a change; executors are looked through only when some are released.
 */
#include <stdio.h>
#include <string.h>

#include "core/alloc/outlook.h"
#include "core/base/time.h"
#include "core/engine_state.h"

/* Who has room is granted it much sooner. */
#define GRANT_NS INT64_C(50000000)

enum { LOOK = 64 }; /* so many sets of a class are looked at, the first ones */

int trp_wanted_init(struct trp_engine *e, trp_error *err)
{
    const struct trp_engine_config *c = &e->config;
    struct trp_idle_config idle = {.plain_ns = c->idle_timeout_ns,
                                   .cached_ns = c->cached_timeout_ns,
                                   .shuffle_ns = c->shuffle_timeout_ns,
                                   .tracking = c->shuffle_tracking && !c->host_files};
    struct trp_targets_config targets = {.min = c->min_executors,
                                         .max = c->max_executors,
                                         .initial = c->initial_executors,
                                         .ratio = c->allocation_ratio,
                                         .backlog_ns = c->backlog_timeout_ns,
                                         .sustained_ns = c->sustained_timeout_ns};
    trp_caps_init(&e->caps, &c->caps, c->alloc_max_executors);
    int rc = c->fixed ? 0 : trp_idle_new(&idle, &e->idle);
    if (rc == 0 && c->grow_ramp && !c->fixed)
        rc = trp_targets_new(&targets, &e->targets);
    return rc < 0 ? trp_error_set(err, rc, "out of memory for the engine") : 0;
}

void trp_wanted_free(struct trp_engine *e)
{
    trp_idle_free(e->idle);
    trp_targets_free(e->targets);
    free(e->shares);
}

void trp_wanted_copy(struct trp_engine *e, struct trp_task_set *s, uint32_t task,
                     int by)
{
    if (!s->class || s->zombie)
        return;
    s->class->copies += (uint32_t)by;
    trp_ramp_copy(e, s, task, by > 0);
}

/* ---- how many ---- */

uint32_t trp_wanted_executors(const struct trp_engine *e, const struct trp_class *c)
{
    uint32_t want = trp_demand_all(e, c);
    return want < c->share ? want : c->share;
}

void trp_wanted_release(struct trp_engine *e, struct trp_executor *x)
{
    if (e->config.decommission.enabled && x->state == TRP_EXECUTOR_LIVE)
        trp_executor_decommission(e, x);
    else
        trp_executor_release(e, x);
}

/* ---- too few ---- */

bool trp_wanted_may_serve(const struct trp_engine *e, trp_profile_id shape,
                          const struct trp_class *c)
{
    const struct trp_resource_profile *have = trp_profiles_get(e->profiles, shape);
    const struct trp_resource_profile *want = trp_profiles_get(e->profiles, c->profile);
    if (e->config.reuse == TRP_REUSE_EXACT)
        return trp_profile_same_executor(have, want);
    return e->config.reuse == TRP_REUSE_FIT && trp_profile_covers(have, want);
}

uint32_t trp_wanted_surplus(const struct trp_engine *e, const struct trp_class *c)
{
    uint32_t want = trp_wanted_executors(e, c), have = c->live + c->requested.n;
    return have > want ? have - want : 0;
}

/* Can an executor of the class serve the other one? Where it has to be exactly the same,
 * all of a class are. */
static bool may_lend(const struct trp_engine *e, const struct trp_class *from,
                     const struct trp_class *c)
{
    return e->config.reuse == TRP_REUSE_FIT ||
           trp_wanted_may_serve(e, from->profile, c);
}

/* Takes over idle executors that other classes do not need, the oldest first: the
 * others go (release_idle). Returns how many. */
static uint32_t take_over(struct trp_engine *e, struct trp_class *c, uint32_t need)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < e->nclasses && taken < need; i++) {
        struct trp_class *from = e->classes[i];
        if (!from || from == c || !from->idle.n || !may_lend(e, from, c))
            continue;
        uint32_t surplus = trp_wanted_surplus(e, from);
        struct trp_executor *x;
        for (uint32_t k = 0;
             surplus && taken < need && (x = trp_executor_next(e, &from->idle, &k));) {
            if (!x->free_next || !trp_wanted_may_serve(e, x->shape, c))
                continue;
            trp_executor_relabel(e, x, c);
            struct trp_action *act = trp_action_add(e, TRP_ACTION_RELABEL_EXECUTOR);
            act->executor.executor = x->id;
            act->executor.profile = c->profile;
            surplus--;
            taken++;
        }
    }
    return taken;
}

/* Where the limits can never hold an executor of the class its stages are given up. */
static void check_limits(struct trp_engine *e, struct trp_class *c)
{
    const int64_t none[TRP_CAPS] = {0};
    char text[160];
    uint32_t at = 0;
    if (trp_caps_left(&e->caps, none, c->cost, &at) > 0)
        return;
    snprintf(text, sizeof(text), "an executor takes %s %lld, and alloc.max_%s is %lld",
             e->caps.name[at], (long long)c->cost[at], e->caps.name[at],
             (long long)e->caps.most[at]);
    trp_starts_never(e, c, text);
}

/* Of `need` more executors those that no stage needs yet. */
static uint32_t missing_ahead(const struct trp_engine *e, const struct trp_class *c,
                              uint32_t need)
{
    uint32_t now = trp_demand_now(e, c), have = c->live + c->requested.n - c->nahead;
    now = now < c->share ? now : c->share;
    now = now > have ? now - have : 0;
    return need > now ? need - now : 0;
}

/* Where no copy that waits could run: "h1,h2". */
static const char *copies_not_on(struct trp_engine *e, const struct trp_class *c)
{
    uint32_t hosts[TRP_COPY_HOSTS], n = trp_copies_useless_hosts(e, c, hosts);
    const char *text = "";
    for (uint32_t i = 0; i < n; i++)
        text = trp_action_text(e, "%s%s%s", text, i ? "," : "",
                               e->hosts.hosts[hosts[i]].name);
    return text;
}

/* For copies that none of the live executors can run. */
static void ask_apart(struct trp_engine *e, struct trp_class *c)
{
    uint32_t have = c->live + c->requested.n;
    if (have >= c->fit || have >= e->config.max_executors || e->now < c->retry_at ||
        trp_caps_left(&e->caps, e->caps_used, c->cost, NULL) == 0)
        return;
    struct trp_executor *x = trp_executor_new(e, c);
    if (!x)
        return;
    const char *not_on = copies_not_on(e, c);
    struct trp_action *act = trp_action_add(e, TRP_ACTION_START_EXECUTOR);
    act->executor.executor = x->id;
    act->executor.profile = c->profile;
    act->executor.ahead = false; /* members of actions begin with any value */
    act->executor.not_on = not_on;
    trp_patience_over(e, x); /* what is held has no such host */
    c->copying.asked = true;
    c->copying.apart = x->id;
}

/* The last ones are those that nobody needs yet. */
static void ask_for(struct trp_engine *e, struct trp_class *c, uint32_t need)
{
    uint32_t ahead = missing_ahead(e, c, need);
    uint32_t room = trp_caps_left(&e->caps, e->caps_used, c->cost, NULL);
    for (; need > 0 && room > 0; need--, room--) {
        struct trp_executor *x = trp_executor_new(e, c);
        if (!x)
            return;
        struct trp_action *act = trp_action_add(e, TRP_ACTION_START_EXECUTOR);
        x->ahead = need <= ahead;
        c->nahead += x->ahead;
        act->executor.executor = x->id;
        act->executor.profile = c->profile;
        act->executor.ahead = x->ahead;
        act->executor.not_on = "";
        if (x->ahead)
            trp_patience_over(e, x);
    }
}

/* True: executors have changed hands. */
static bool ask_for_more(struct trp_engine *e, struct trp_class *c)
{
    uint32_t want = trp_wanted_executors(e, c), have = c->live + c->requested.n;
    if (c->never || e->draining)
        return false;
    if (e->now < c->retry_at && c->retry_at < e->retry_due &&
        trp_demand_all(e, c) > have)
        e->retry_due = c->retry_at;
    if (trp_demand_apart(c) && want <= have)
        ask_apart(e, c);
    if (want <= have) {
        c->lost = 0;
        if (!c->share && trp_demand_work(e, c))
            check_limits(e, c);
        return false;
    }
    uint32_t ahead = missing_ahead(e, c, want - have), taken = 0;
    if (want - have > ahead) /* what is held is not had ahead */
        taken = take_over(e, c, want - have - ahead);
    if (taken)
        trp_round_full(e, c);
    want = trp_wanted_executors(e, c);
    have = c->live + c->requested.n;
    if (want > have && e->now >= c->retry_at)
        ask_for(e, c, want - have);
    return taken > 0;
}

/* ---- too many ---- */

/* Requests that have not been granted go first, the latest first. */
static uint32_t withdraw(struct trp_engine *e, struct trp_class *c, uint32_t surplus)
{
    struct trp_executor *x;
    for (uint32_t i = TRP_NONE;
         surplus && (x = trp_executor_last(e, &c->requested, &i));) {
        if (x->id.n == c->copying.apart.n && !e->draining)
            continue;
        trp_wanted_release(e, x);
        surplus--;
    }
    return surplus;
}

/* May it go, being one of those that hold cached partitions, or of the others? The first
 * ones when they have been idle for a while, or from `due` on. */
static bool may_release(struct trp_engine *e, const struct trp_class *c,
                        const struct trp_executor *x, bool cached, int64_t due)
{
    if (x->idle.in_use || (x->id.n == c->copying.apart.n && !x->yields) ||
        (x->idle.cached > 0) != cached)
        return false; /* in use: it holds what an active job reads */
    if (due > x->idle.since + e->config.backlog_timeout_ns)
        due = x->idle.since + e->config.backlog_timeout_ns;
    if (!cached || e->now >= due)
        return true;
    e->retry_due = trp_earlier(e->retry_due, due);
    return false;
}

/* The youngest first: the oldest are where room is found first, on the nodes that are
 * kept the longest. */
static uint32_t release_idle(struct trp_engine *e, struct trp_class *c,
                             uint32_t surplus, bool cached, int64_t due)
{
    struct trp_executor *x;
    for (uint32_t i = TRP_NONE; surplus && (x = trp_executor_last(e, &c->idle, &i));) {
        if (!may_release(e, c, x, cached, due))
            continue;
        trp_wanted_release(e, x);
        surplus--;
    }
    return surplus;
}

/* May one of the class go that has expired? */
static bool may_expire(const struct trp_engine *e, const struct trp_class *c)
{
    uint32_t keep = trp_wanted_executors(e, c), work = trp_demand_work(e, c);
    return c->live + c->requested.n >
           (trp_demand_others_short(e, c) && work < keep ? work : keep);
}

/* Those that were idle for too long, the first ones first, as far as nobody needs them.
 */
static void release_expired(struct trp_engine *e)
{
    struct trp_idle_item *const *list;
    uint32_t n = trp_idle_expired(e->idle, e->now, &list);
    struct trp_executor **v = n ? malloc(n * sizeof(struct trp_executor *)) : NULL;
    if (!n)
        return;
    if (!v) {
        e->out_of_memory = true;
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        v[i] = e->executors[list[i]->id];
    for (uint32_t i = 0; i < n; i++)
        if (trp_executor_is_idle(v[i]) && may_expire(e, e->classes[v[i]->class]))
            trp_wanted_release(e, v[i]);
    if (e->targets)
        trp_targets_initialized(e->targets);
    free(v);
}

/* How many executors other classes lack that they need by now; for a gang all may go. */
static uint32_t others_lack(const struct trp_engine *e, const struct trp_class *c)
{
    uint32_t lack = 0;
    for (uint32_t i = 0; i < e->nclasses; i++) {
        const struct trp_class *o = e->classes[i];
        if (!o || o == c || o->never)
            continue;
        uint32_t want = trp_demand_now(e, o);
        want = want < o->share ? want : o->share;
        lack += want > o->live ? want - o->live : 0;
    }
    return e->gangs > 0 ? UINT32_MAX : lack;
}

/* What a class has above all that its stages, running or to come, may use. */
static uint32_t never_needed(const struct trp_engine *e, const struct trp_class *c)
{
    struct trp_outlook o;
    uint32_t most = trp_demand_all(e, c), have = c->live + c->requested.n;
    if (have <= most || trp_engine_outlook(e, &o) < 0)
        return 0;
    for (uint32_t i = 0; i < o.nloads * o.nkinds; i++) {
        const struct trp_outlook_kind *s = &o.kinds[i % o.nkinds];
        if (!s->ranks && s->profile->id.n == c->profile.n && o.counts[i] > most)
            most = o.counts[i];
    }
    trp_outlook_free(&o);
    return have > most ? have - most : 0;
}

void trp_wanted_narrow(struct trp_engine *e, struct trp_class *c)
{
    if (!e->config.fixed && !e->config.release_idle && e->jobs_active && c->idle.n)
        release_idle(e, c, never_needed(e, c), false, e->now);
}

/* ---- those that hold cached partitions ---- */

/* So many of the class would make room for those that others need and that have none,
 * as far as cores tell. */
static uint32_t lack_of_room(const struct trp_engine *e, const struct trp_class *c)
{
    const int64_t cores = trp_profiles_get(e->profiles, c->profile)->cores;
    int64_t lack = 0;
    if (e->gangs > 0)
        return UINT32_MAX;
    for (uint32_t i = 0; i < e->nclasses; i++) {
        const struct trp_class *o = e->classes[i];
        if (!o || o == c || o->never)
            continue;
        const int64_t want = trp_demand_now(e, o), have = o->live + o->granted;
        const int64_t more = (want < o->share ? want : o->share) - have;
        if (more > 0)
            lack += more * trp_profiles_get(e->profiles, o->profile)->cores;
    }
    lack = (lack + cores - 1) / cores;
    return lack < UINT32_MAX ? (uint32_t)lack : UINT32_MAX;
}

/* When the first request of another class has waited for so long that there is no room
 * for it; INT64_MAX: none has to, or it may yet have an additional job. */
static int64_t no_room_due(const struct trp_engine *e, const struct trp_class *c)
{
    int64_t due = INT64_MAX;
    for (uint32_t i = 0; i < e->nclasses; i++) {
        const struct trp_class *o = e->classes[i];
        const struct trp_executor *x =
            o && o != c && !o->more ? trp_executor_first_waiting(e, o) : NULL;
        if (x)
            due = trp_earlier(due, x->asked_ns + GRANT_NS);
    }
    return due;
}

/* What they hold is lost with them. So they go when others have no room, as many as are
 * needed for that, and not while others go. */
static void make_room(struct trp_engine *e, struct trp_class *c, uint32_t surplus)
{
    const uint32_t lack = c->idle.n && !e->leaving ? lack_of_room(e, c) : 0;
    if (lack)
        release_idle(e, c, surplus < lack ? surplus : lack, true, no_room_due(e, c));
}

/* ---- other runs wait ---- */

/* Tasks have not got all the executors, or ranks, that they can use. */
static bool waits_itself(const struct trp_engine *e)
{
    for (uint32_t i = 0; i < e->nclasses; i++) {
        const struct trp_class *c = e->classes[i];
        if (c && c->first && !c->never && c->live + c->granted < trp_demand_work(e, c))
            return true;
    }
    return e->gangs > 0;
}

/* When an idle one goes. What it holds keeps it a while, or as long as it is in use, but
 * not where this run waits, too: then each would wait for the other. */
static int64_t give_back_at(const struct trp_engine *e, const struct trp_executor *x,
                            bool waits)
{
    int64_t wait = e->config.backlog_timeout_ns;
    if (!waits && x->idle.in_use)
        return INT64_MAX;
    if (!waits && x->idle.cached && e->config.idle_timeout_ns > wait)
        wait = e->config.idle_timeout_ns;
    return trp_time_after(x->idle.since, wait);
}

static void withdraw_waiting(struct trp_engine *e, const struct trp_class *c)
{
    struct trp_executor *x;
    for (uint32_t i = TRP_NONE; (x = trp_executor_last(e, &c->requested, &i));)
        if (!x->granted)
            trp_wanted_release(e, x);
}

/* Idle executors that no task can use go; and where this run waits, too, also those that
 * a barrier stage has of the ones that it needs: with the requests for the others, so
 * that all are asked for anew in one go. */
static void give_back(struct trp_engine *e, const struct trp_class *c, bool waits)
{
    struct trp_executor *x;
    for (uint32_t i = TRP_NONE;
         (waits || may_expire(e, c)) && (x = trp_executor_last(e, &c->idle, &i));) {
        int64_t at = give_back_at(e, x, waits);
        if (e->now < at) {
            e->retry_due = trp_earlier(e->retry_due, at);
            continue;
        }
        if (!may_expire(e, c))
            withdraw_waiting(e, c);
        trp_wanted_release(e, x);
        e->any_dirty = true;
    }
}

/* ---- both ---- */

/* Executors for tasks that wait for one task of a parent each (after … each), which is
 * expected to end sooner than a new executor would come. Where that is not known they
 * stay as well, until they expire. */
static uint32_t needed_soon(const struct trp_engine *e, const struct trp_class *c)
{
    uint32_t slots = trp_profiles_get(e->profiles, c->profile)->slots;
    int64_t lead = trp_time_after(e->start_ns, c->wait_ns);
    uint32_t n = 0, seen = 0;
    for (const struct trp_task_set *s = c->all; s && n < c->idle.n && seen < LOOK;
         s = s->class_next, seen++) {
        uint32_t tasks = 0;
        for (uint32_t i = 0; i < s->stage->nparents; i++) {
            const struct trp_stage_link *l = &s->stage->parents[i];
            const struct trp_task_set *of =
                l->edge == TRP_EDGE_EACH ? l->parent->set : NULL;
            for (; of; of = of->overflow)
                tasks += of->class ? trp_left_end_within(e, of, lead) : 0;
        }
        n += tasks / slots + (tasks % slots != 0);
    }
    *e->visited += seen;
    return n;
}

static void shrink(struct trp_engine *e, struct trp_class *c)
{
    uint32_t surplus = trp_wanted_surplus(e, c);
    c->set_ended &= surplus > 0;
    if (e->draining) {
        withdraw(e, c, c->requested.n);
        release_idle(e, c, c->idle.n, false, e->now);
    }
    if (!surplus || !(c->idle.n || c->requested.n))
        return;
    bool stage_end =
        !e->config.release_idle && (c->set_ended || !c->sets) && e->jobs_active;
    uint32_t lack = others_lack(e, c);
    if (!stage_end && !lack)
        return;
    surplus = withdraw(e, c, surplus);
    /* Where limits over all profiles are set, yield.c says who makes room. */
    uint32_t soon = surplus && c->idle.n && !e->caps.n ? needed_soon(e, c) : 0;
    surplus = surplus > soon ? surplus - soon : 0;
    surplus = release_idle(e, c, surplus, false, e->now);
    if (lack && surplus)
        make_room(e, c, surplus);
}

void trp_wanted_reconcile(struct trp_engine *e)
{
    uint64_t launches = e->launches;
    bool moved = false;
    e->any_dirty = false;
    if (e->config.fixed)
        return;
    e->retry_due = INT64_MAX;
    trp_demand_find_short(e);
    for (uint32_t i = 0; i < e->nclasses; i++)
        if (e->classes[i])
            trp_demand_copies(e, e->classes[i]);
    if (!trp_yield_shares(e))
        return;
    for (uint32_t i = 0; i < e->nshares; i++)
        moved |= ask_for_more(e, e->classes[e->shares[i].profile]);
    for (uint32_t i = 0; i < e->nclasses; i++)
        if (e->classes[i])
            shrink(e, e->classes[i]);
    release_expired(e);
    if (e->contended) {
        bool waits = waits_itself(e);
        for (uint32_t i = 0; i < e->nclasses; i++)
            if (e->classes[i])
                give_back(e, e->classes[i], waits);
    }
    trp_give_way(e);
    trp_yield_ask(e);
    /* Then fewer may have to make room. */
    e->any_dirty |= e->nyielding && (moved || e->launches != launches);
}

bool trp_wanted_heeds_idle(const struct trp_engine *e, const struct trp_class *c)
{
    return trp_demand_others_short(e, c) || e->targets || e->caps.n || e->draining ||
           c->set_ended || !c->sets || c->first || c->copies || e->stuck ||
           e->dag.failed.n;
}

/* ---- time ---- */

int64_t trp_wanted_due(const struct trp_engine *e)
{
    int64_t due = e->retry_due;
    if (e->config.fixed)
        return INT64_MAX;
    due = trp_earlier(due, trp_idle_due(e->idle));
    if (e->targets && trp_targets_due(e->targets) < due)
        due = trp_targets_due(e->targets);
    return due;
}

void trp_wanted_time(struct trp_engine *e)
{
    if (e->config.fixed || e->now < trp_wanted_due(e))
        return;
    if (e->targets && e->now >= trp_targets_due(e->targets)) {
        trp_targets_tick(e->targets, e->now);
        trp_targets_answer(e->targets, true, e->now);
    }
    e->retry_due = INT64_MAX;
    e->any_dirty = true;
}
