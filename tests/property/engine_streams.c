/*
 * The subject "engine": random streams of events against the engine's public API.
 *
 * A play ends by letting everything finish: executors come and go as asked, attempts
 * end, time passes, until every job has ended; then memory must be back.
 */
#include <stdlib.h>
#include <string.h>

#include "engine_streams.h"

enum kind {
    JOB,
    END,
    TASKS,
    COME,
    REFUSE,
    APPEAR,
    LOSE,
    GONE,
    NEVER_CAME,
    FIT,
    CANCEL,
    DRAIN,
    TIME,
    TIMER,
    NOBODY,
    DECOMMISSION,
    PROGRESS,
    CONTENDED,
    KINDS,
};
static const char *const kinds[] = {
    "job",    "end",          "tasks",    "come",      "refuse", "appear", "lose",
    "gone",   "never_came",   "fit",      "cancel",    "drain",  "time",   "timer",
    "nobody", "decommission", "progress", "contended", NULL};

/* ---- making ---- */

static enum kind random_kind(struct rng *r)
{
    static const uint8_t weights[KINDS] = {
        [JOB] = 8,        [END] = 100,     [TASKS] = 12, [COME] = 40,
        [REFUSE] = 3,     [APPEAR] = 2,    [LOSE] = 4,   [GONE] = 12,
        [NEVER_CAME] = 2, [FIT] = 2,       [CANCEL] = 1, [DRAIN] = 0,
        [TIME] = 12,      [TIMER] = 10,    [NOBODY] = 8, [DECOMMISSION] = 1,
        [PROGRESS] = 2,   [CONTENDED] = 4,
    };
    return (enum kind)rng_weighted(r, weights, KINDS);
}

static void make_step(struct step *s, struct rng *r)
{
    uint32_t *a = s->arg;
    s->kind = random_kind(r);
    for (int i = 0; i < STREAM_ARGS; i++)
        a[i] = rng_below(r, 1000);
    switch ((enum kind)s->kind) {
    case JOB:
        a[1] = rng_below(r, MAX_JOB_STAGES);
        a[2] = rng_one_in(r, 4) ? rng_below(r, MAX_TASKS) : rng_below(r, 10);
        a[3] = rng_below(r, 4096); /* features */
        break;
    case END:
        a[1] = rng_one_in(r, 3) ? rng_below(r, 8) : 0;    /* status */
        a[2] = rng_one_in(r, 2) ? 1 : rng_below(r, 2000); /* ms it took */
        a[3] = rng_below(r, 30) ? 0 : 1; /* a race: not what was asked for */
        break;
    case TASKS:
        a[2] = rng_one_in(r, 12) ? 1 : 0; /* refused */
        break;
    case REFUSE:
        a[1] = rng_one_in(r, 8);
        break;
    case COME:
        a[2] = rng_one_in(r, 3); /* with an address more than asked for */
        break;
    case LOSE:
        a[1] = rng_below(r, 7);
        a[2] = rng_below(r, 4); /* culprit: 0 none, 1 made up */
        break;
    case FIT:
        a[1] = rng_one_in(r, 6) ? 0 : 1 + rng_below(r, 5);
        break;
    case TIME:
        a[0] = rng_one_in(r, 4) ? rng_below(r, 100000) : rng_below(r, 2000);
        break;
    default:
        break;
    }
}

static void make(struct stream *s, struct rng *r)
{
    engine_make_knobs(s, r);
    s->nsteps = 20 + rng_below(r, 200);
    for (uint32_t i = 0; i < s->nsteps; i++)
        make_step(&s->steps[i], r);
    s->steps[0].kind = JOB;
    s->steps[0].arg[1] = rng_below(r, MAX_JOB_STAGES);
    s->steps[0].arg[2] = rng_below(r, 12);
    s->steps[0].arg[3] = rng_below(r, 2048);
    if (rng_one_in(r, 10))
        s->steps[s->nsteps - 1 - rng_below(r, 10)].kind = DRAIN;
}

/* ---- picking somebody ---- */

static bool waits_for_answer(const struct cluster *c, uint32_t stage)
{
    const struct world_stage *s = &c->play.world.stages[stage];
    return s->ready && !s->answered;
}

static bool asks(const struct cluster *c, uint32_t stage)
{
    return waits_for_answer(c, stage) && !c->play.world.stages[stage].ended;
}

static uint32_t ready_stage(const struct cluster *c, uint32_t which)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->nstages; i++)
        n += asks(c, i);
    which = n ? which % n : 0;
    for (uint32_t i = 0; n && i < c->nstages; i++)
        if (asks(c, i) && which-- == 0)
            return i;
    return TRP_NONE;
}

/* ---- steps ---- */

static void come(struct cluster *c, uint32_t executor, uint32_t host, uint32_t more)
{
    struct world *w = &c->play.world;
    static const char *const names[] = {"gpu", "fpga"};
    static const char *const addresses[MAX_ADDRESSES] = {"0", "1", "2", "10"};
    struct trp_resource_addresses v[MAX_RESOURCES];
    const struct trp_resource_profile *p =
        trp_profiles_get(w->profiles, (trp_profile_id){w->executors[executor].shape});
    uint32_t n = 0;
    c->quiet_since = w->now;
    /* Resources stand in order of name in the ledger: fpga is 0, gpu is 1. */
    for (uint32_t r = MAX_RESOURCES; r-- > 0;) {
        const struct trp_custom *custom = trp_profile_custom(p, names[r]);
        uint32_t has = custom ? (uint32_t)custom->executor : 0;
        has += has && more ? 1 : 0;
        has = has < MAX_ADDRESSES ? has : MAX_ADDRESSES;
        if (!has)
            continue;
        v[n++] = (struct trp_resource_addresses){names[r], addresses, has};
    }
    w->resources = v;
    w->nresources = n;
    world_come_on(w, executor, cluster_host(host), cluster_rack(host));
}

static void play_end(struct cluster *c, const uint32_t *a)
{
    struct world *w = &c->play.world;
    static const enum trp_end_status how[] = {
        TRP_END_SUCCESS, TRP_END_EXIT,  TRP_END_EXIT,   TRP_END_SIGNAL,
        TRP_END_TIMEOUT, TRP_END_START, TRP_END_MEMORY, TRP_END_PLATFORM};
    if (!w->nattempts)
        return;
    uint32_t i = a[0] % w->nattempts;
    const struct world_attempt *at = &w->attempts[i];
    enum trp_end_status status = how[a[1] % 8];
    int64_t duration = a[2] * MS;
    if (at->queued) {
        if (at->kill || at->recall)
            world_end(w, at->id, TRP_END_RECALLED, 0, 0);
        return;
    }
    if (status == TRP_END_PLATFORM && at->executor != TRP_NONE)
        status = TRP_END_EXIT;
    if (at->kill && !a[3])
        status = TRP_END_KILLED;
    world_time(w, w->now + duration / 100);
    if (i < w->nattempts)
        world_end(w, w->attempts[i].id, status, a[1] % 8 == 2 ? 3 : 1, duration);
}

/* Answers a stage that asked for its tasks; those with `done` were done in an earlier
 * run. */
static void answer(struct cluster *c, uint32_t stage, uint32_t ntasks,
                   const struct cl_task *t)
{
    uint32_t first[MAX_TASKS + 1] = {0};
    struct trp_place places[MAX_TASKS * MAX_PREFERENCES];
    uint8_t done[MAX_TASKS + 1] = {0};
    struct cl_stage *s = &c->stages[stage];
    s->ntasks = ntasks;
    for (uint32_t i = 0; i < ntasks; i++) {
        s->tasks[i] = t[i];
        s->ndone += t[i].done;
        done[i] = t[i].done;
        first[i + 1] = first[i] + t[i].nplaces;
        for (uint32_t k = 0; k < t[i].nplaces; k++) {
            places[first[i] + k] = t[i].places[k];
            s->prefers = true;
            s->prefers_executors |= t[i].places[k].executor != TRP_NONE;
        }
    }
    struct trp_event ev = {.kind = TRP_EVENT_STAGE_TASKS};
    ev.tasks.stage.n = stage;
    ev.tasks.ntasks = ntasks;
    ev.tasks.done = done;
    struct trp_by by[2];
    uint32_t values[MAX_TASKS];
    struct trp_by_task above[2][MAX_TASKS * 2];
    for (uint32_t i = 0; i < ntasks; i++)
        values[i] = cluster_value(s, i);
    for (uint32_t k = 0; k < s->spec.nparents; k++) {
        struct trp_by *b = &by[ev.tasks.nby];
        if (!s->parents[k].by)
            continue;
        *b = (struct trp_by){cluster_values(s), values, ntasks, above[k], 0};
        for (uint32_t i = 0; i < c->stages[s->parents[k].stage].ntasks; i++)
            for (uint32_t v = 0; v < b->nvalues; v++)
                if (cluster_has_value(s, i, v))
                    above[k][b->nabove++] = (struct trp_by_task){i, v};
        ev.tasks.nby++;
    }
    ev.tasks.by = by;
    if (s->prefers) {
        ev.tasks.prefer.first = first;
        ev.tasks.prefer.places = places;
    }
    world_step(&c->play.world, &ev);
}

static void play_tasks(struct cluster *c, const uint32_t *a)
{
    struct world *w = &c->play.world;
    static struct cl_task t[MAX_TASKS];
    struct rng r = {a[1]};
    uint32_t id = ready_stage(c, a[0]);
    if (id == TRP_NONE)
        return;
    struct cl_stage *s = &c->stages[id];
    struct trp_event ev = {.kind = TRP_EVENT_STAGE_REFUSED};
    ev.refused_stage.stage.n = id;
    ev.refused_stage.text = "no file matches";
    if (a[2]) {
        world_step(w, &ev);
        return;
    }
    uint32_t n = rng_below(&r, a[3] % MAX_TASKS + 1);
    for (uint32_t k = 0; k < s->spec.nparents; k++)
        if (s->parents[k].each && !s->parents[k].by && !rng_one_in(&r, 20))
            n = c->stages[s->parents[k].stage].ntasks;
    if (s->spec.kind == TRP_STAGE_GANG)
        n = 1;
    memset(t, 0, sizeof(t));
    bool prefer = rng_one_in(&r, 2), done = rng_one_in(&r, 3);
    for (uint32_t i = 0; i < n; i++) {
        t[i].done = done && rng_one_in(&r, 3);
        t[i].nplaces = prefer && s->spec.kind == TRP_STAGE_TASKS ? rng_below(&r, 3) : 0;
        for (uint32_t k = 0; k < t[i].nplaces; k++) {
            uint32_t x =
                rng_one_in(&r, 3) ? rng_below(&r, w->nexecutors + 2) : TRP_NONE;
            uint32_t h = rng_below(&r, MAX_HOSTS);
            if (x < w->nexecutors && w->executors[x].state == WORLD_LIVE)
                h = (uint32_t)(w->executors[x].host[1] - '0');
            t[i].places[k] = (struct trp_place){cluster_host(h), x};
            world_say(w, "    task %u prefers %s%s%d\n", i, cluster_host(h),
                      x == TRP_NONE ? ", no executor " : "/", (int)x);
        }
    }
    answer(c, id, n, t);
}

/* Messages that come late, twice, or from nowhere. */
static void play_nobody(struct cluster *c, const uint32_t *a)
{
    struct world *w = &c->play.world;
    struct trp_event ev = {0};
    switch (a[0] % 7) {
    case 0:
        ev.kind = TRP_EVENT_TASK_ENDED;
        ev.ended.attempt.n = (uint64_t)a[1] << 40 | a[2];
        for (uint32_t i = 0; i < w->nattempts; i++)
            if (w->attempts[i].id.n == ev.ended.attempt.n)
                return;
        break;
    case 1:
        if (!w->npast)
            return;
        ev.kind = TRP_EVENT_TASK_ENDED;
        ev.ended.attempt =
            w->past[a[1] % (w->npast < WORLD_PAST ? w->npast : WORLD_PAST)];
        ev.ended.status = (enum trp_end_status)(a[2] % 8);
        break;
    case 2:
        ev.kind = TRP_EVENT_EXECUTOR_LOST;
        ev.lost.executor.n = world_executor_in(w, WORLD_GONE, a[1]);
        break;
    case 3:
        ev.kind = TRP_EVENT_EXECUTOR_ADDED;
        ev.added.executor.n =
            world_executor_in(w, a[2] % 2 ? WORLD_GONE : WORLD_LIVE, a[1]);
        ev.added.host = "h0";
        break;
    case 4:
        ev.kind = TRP_EVENT_EXECUTOR_REFUSED;
        ev.refused.executor.n =
            world_executor_in(w, a[2] % 2 ? WORLD_GONE : WORLD_LIVE, a[1]);
        ev.refused.text = "late";
        break;
    case 5:
        ev.kind = TRP_EVENT_CANCEL_JOB;
        ev.cancel.job.n = w->njobs + a[1];
        break;
    default:
        ev.kind = TRP_EVENT_STAGE_TASKS;
        ev.tasks.stage.n = a[1] % (c->nstages + 4);
        ev.tasks.ntasks = a[2];
        if (ev.tasks.stage.n < c->nstages && waits_for_answer(c, ev.tasks.stage.n))
            return;
    }
    world_step_ignored(w, &ev);
}

static void play_lose(struct cluster *c, const uint32_t *a)
{
    struct world *w = &c->play.world;
    uint32_t x = world_executor_in(w, WORLD_LIVE, a[0]);
    trp_attempt_id culprit = {UINT64_C(77) << 32};
    if (x == TRP_NONE)
        return;
    for (uint32_t i = 0; i < w->nattempts && a[2] > 1; i++)
        if (w->attempts[i].executor == x && !w->attempts[i].queued)
            culprit = w->attempts[i].id;
    world_lose_with(w, x, (enum trp_loss)(a[1] % 7), a[2], culprit);
}

static void appear(struct cluster *c, const uint32_t *a)
{
    struct world *w = &c->play.world;
    trp_profile_id p = {a[0] % NPROFILES};
    if (trp_profiles_may_run(w->profiles, p, (trp_profile_id){0}))
        p.n = 0;
    come(c, world_expect(w, p), a[1], a[2] % 2);
}

/* It has its room, every other time; then it may be wanted no more. */
static bool grant(struct cluster *c, uint32_t executor)
{
    struct world *w = &c->play.world;
    struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_GRANTED};
    ev.granted.executor.n = executor;
    if (executor % 2)
        world_step(w, &ev);
    return w->executors[executor].state == WORLD_REQUESTED;
}

/* On that host, or on the next that is not excluded. */
static void come_somewhere(struct cluster *c, uint32_t executor, uint32_t host,
                           uint32_t more)
{
    struct world *w = &c->play.world;
    if (!grant(c, executor))
        return;
    for (uint32_t i = 0; i < MAX_HOSTS; i++)
        if (!world_excludes(w, cluster_host(host + i))) {
            come(c, executor, host + i, more);
            return;
        }
    world_refuse(w, executor, TRP_REFUSED_FAILED, "the cluster says no");
}

static void play_fit(struct cluster *c, const uint32_t *a)
{
    struct trp_event ev = {.kind = TRP_EVENT_PROFILE_FIT};
    ev.fit.profile.n = a[0] % NPROFILES;
    ev.fit.executors = a[1];
    ev.fit.additional = a[1] / 2;
    ev.fit.text = "no node has that much";
    ev.fit.more = c->patient;
    c->inside[ev.fit.profile.n] = a[1] - a[1] / 2;
    world_step(&c->play.world, &ev);
}

static void play_step(struct play *p, const struct step *s)
{
    struct cluster *c = (struct cluster *)p;
    struct world *w = &c->play.world;
    const uint32_t *a = s->arg;
    struct trp_event ev = {0};
    uint32_t x;
    switch ((enum kind)s->kind) {
    case JOB:
        engine_job(c, a);
        return;
    case END:
        play_end(c, a);
        return;
    case TASKS:
        play_tasks(c, a);
        return;
    case COME:
        x = world_executor_in(w, WORLD_REQUESTED, a[0]);
        if (x != TRP_NONE)
            come_somewhere(c, x, a[1], a[2] % 2);
        return;
    case REFUSE:
        x = world_executor_in(w, WORLD_REQUESTED, a[0]);
        if (x != TRP_NONE)
            world_refuse(w, x, a[1] % 2 ? TRP_REFUSED_NEVER : TRP_REFUSED_FAILED,
                         "the cluster says no");
        return;
    case APPEAR:
        appear(c, a);
        return;
    case LOSE:
        play_lose(c, a);
        return;
    case GONE:
        play_gone(w, a[0]);
        return;
    case NEVER_CAME:
        x = world_executor_in(w, WORLD_REQUESTED, a[0]);
        if (x != TRP_NONE)
            world_lose(w, x, TRP_LOSS_NEVER_CAME);
        return;
    case FIT:
        play_fit(c, a);
        return;
    case CANCEL:
        ev.kind = TRP_EVENT_CANCEL_JOB;
        ev.cancel.job.n = w->njobs ? a[0] % w->njobs : 0;
        if (w->njobs && !w->jobs[ev.cancel.job.n].ended)
            world_step(w, &ev);
        return;
    case DRAIN:
        ev.kind = TRP_EVENT_DRAIN;
        world_step(w, &ev);
        return;
    case TIME:
        world_time(w, w->now + a[0] * MS);
        return;
    case TIMER:
        if (trp_engine_next_timer(w->engine) < INT64_MAX)
            world_time(w, trp_engine_next_timer(w->engine));
        return;
    case NOBODY:
        play_nobody(c, a);
        return;
    case DECOMMISSION:
        ev.kind = TRP_EVENT_EXECUTOR_DECOMMISSIONED;
        x = world_executor_in(w, WORLD_LIVE, a[0]);
        ev.decommissioned.executor.n = x;
        if (x != TRP_NONE && !w->executors[x].decommissioned)
            world_step(w, &ev);
        return;
    case CONTENDED:
        ev.kind = TRP_EVENT_CONTENDED;
        ev.contended.is = a[0] % 2;
        world_step(w, &ev);
        return;
    case PROGRESS:
        ev.kind = TRP_EVENT_TASK_PROGRESS;
        if (!w->nattempts)
            return;
        ev.progress.attempt = w->attempts[a[0] % w->nattempts].id;
        ev.progress.records = a[1];
        world_step(w, &ev);
        return;
    case KINDS:
        return;
    }
}

/* ---- the end ---- */

/* Has it room in what is held, or may it be had elsewhere? */
static bool may_come(const struct cluster *c, const struct world_executor *x)
{
    const struct world *w = &c->play.world;
    uint32_t there = 0;
    for (uint32_t i = 0; i < w->nexecutors; i++)
        there +=
            w->executors[i].state == WORLD_LIVE && w->executors[i].label == x->label;
    return !c->patient || x->may_add || x->label >= NPROFILES ||
           there < c->inside[x->label];
}

static uint32_t first_that_comes(const struct cluster *c)
{
    const struct world *w = &c->play.world;
    for (uint32_t i = 0; i < w->nexecutors; i++)
        if (w->executors[i].state == WORLD_REQUESTED && may_come(c, &w->executors[i]))
            return i;
    return TRP_NONE;
}

/* Executors come and go as they were asked to, in turn on all hosts. */
static void serve(struct cluster *c)
{
    struct world *w = &c->play.world;
    for (uint32_t n = 0; !w->broken && n < 100; n++) {
        uint32_t x = first_that_comes(c);
        if (x != TRP_NONE)
            come_somewhere(c, x, x, 0);
        else if (world_executor_in(w, WORLD_RELEASED, 0) != TRP_NONE)
            play_gone(w, 0);
        else
            return;
    }
}

static void settle(struct cluster *c)
{
    struct world *w = &c->play.world;
    static const uint32_t success[STREAM_ARGS] = {0, 0, 1, 0};
    uint32_t any[STREAM_ARGS] = {0};
    for (uint32_t i = 0; i < w->nexecutors; i++)
        if (w->executors[i].state == WORLD_LIVE && w->executors[i].decommissioned)
            world_lose(w, i, TRP_LOSS_DECOMMISSIONED);
    for (uint32_t i = 0; i < 20000 && !w->broken && !world_all_over(w); i++) {
        serve(c);
        for (any[0] = 0; ready_stage(c, 0) != TRP_NONE && !w->broken;)
            play_tasks(c, any);
        for (uint32_t k = 0; k < w->nattempts && w->nattempts; k++) {
            uint32_t a[STREAM_ARGS] = {k, 0, 1, 0};
            play_end(c, a);
        }
        play_end(c, success);
        world_time(w, w->now + 10 * SECOND);
        if (w->config.fixed && i % 16 == 15) /* somebody has to come */
            for (uint32_t p = 0; p < NPROFILES; p++)
                appear(c, (uint32_t[STREAM_ARGS]){p, p, 0, 0});
    }
    char why[256];
    for (uint32_t i = 0; i < w->njobs; i++)
        if (!w->jobs[i].ended && !w->broken)
            for (uint32_t k = 0; k < w->jobs[i].nstages; k++) {
                trp_stage_id id = {w->jobs[i].first + k};
                if (!w->stages[id.n].ended)
                    world_break(
                        w, "every job ends", "job %u, stage %u: %s", i, id.n,
                        trp_engine_why_waiting(w->engine, w->now, id, why, 256));
            }
    if (w->nattempts)
        world_break(w, "every attempt ends", "%u are left", w->nattempts);
}

static void leave(struct cluster *c)
{
    struct world *w = &c->play.world;
    for (uint32_t i = 0; i < 40 && !w->broken; i++) {
        serve(c);
        world_time(w, w->now + 100 * SECOND);
    }
    for (uint32_t i = 0; i < w->nexecutors && !w->broken; i++)
        if (w->executors[i].state == WORLD_LIVE &&
            (w->config.fixed || w->appeared || w->excluded_any))
            world_lose(w, i, TRP_LOSS_RELEASED);
        else if (w->executors[i].state == WORLD_LIVE)
            world_break(w, "idle executors go when all jobs are done",
                        "executor %u is still there", i);
    play_check_memory(&c->play, 8192 + 4096 * (int64_t)trp_profiles_count(w->profiles));
}

static void serve_unasked(struct play *p)
{
    serve((struct cluster *)p);
}

static uint64_t play_once(const struct stream *s, FILE *explain, struct verdict *v)
{
    struct cluster c;
    engine_open(&c, s, v, explain);
    play_steps(&c.play, s, play_step, s->knob[MANUAL] ? NULL : serve_unasked);
    settle(&c);
    leave(&c);
    return play_close(&c.play);
}

static void play(const struct stream *s, FILE *explain, struct verdict *ret)
{
    stream_play(s, play_once, s->knob[TWICE], explain, ret);
}

const struct subject engine_subject = {.name = "engine",
                                       .knobs = engine_knobs,
                                       .kinds = kinds,
                                       .make = make,
                                       .play = play};
