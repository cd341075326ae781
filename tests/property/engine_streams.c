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
        a[3] = rng_below(r, 2048); /* features */
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

static uint32_t executor_in(const struct cluster *c, enum cl_executor_state state,
                            uint32_t which)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->nexecutors; i++)
        n += c->executors[i].state == state;
    which = n ? which % n : 0;
    for (uint32_t i = 0; n && i < c->nexecutors; i++)
        if (c->executors[i].state == state && which-- == 0)
            return i;
    return TRP_NONE;
}

static uint32_t ready_stage(const struct cluster *c, uint32_t which)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->nstages; i++)
        n += c->stages[i].ready && !c->stages[i].ended;
    which = n ? which % n : 0;
    for (uint32_t i = 0; n && i < c->nstages; i++)
        if (c->stages[i].ready && !c->stages[i].ended && which-- == 0)
            return i;
    return TRP_NONE;
}

/* ---- steps ---- */

static void play_end(struct cluster *c, const uint32_t *a)
{
    static const enum trp_end_status how[] = {
        TRP_END_SUCCESS, TRP_END_EXIT,  TRP_END_EXIT,   TRP_END_SIGNAL,
        TRP_END_TIMEOUT, TRP_END_START, TRP_END_MEMORY, TRP_END_PLATFORM};
    if (!c->nattempts)
        return;
    uint32_t i = a[0] % c->nattempts;
    const struct cl_attempt *at = &c->attempts[i];
    enum trp_end_status status = how[a[1] % 8];
    int64_t duration = a[2] * MS;
    if (at->queued) {
        if (at->kill || at->recall)
            cluster_end(c, i, TRP_END_RECALLED, 0, 0);
        return;
    }
    if (status == TRP_END_PLATFORM && at->executor != TRP_NONE)
        status = TRP_END_EXIT;
    if (at->kill && !a[3])
        status = TRP_END_KILLED;
    cluster_time(c, c->now + duration / 100);
    cluster_end(c, i, status, a[1] % 8 == 2 ? 3 : 1, duration);
}

static void play_tasks(struct cluster *c, const uint32_t *a)
{
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
        s->ready = false;
        cluster_step(c, &ev);
        return;
    }
    uint32_t n = rng_below(&r, a[3] % MAX_TASKS + 1);
    for (uint32_t k = 0; k < s->spec.nparents; k++)
        if (s->parents[k].each && !rng_one_in(&r, 20))
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
                rng_one_in(&r, 3) ? rng_below(&r, c->nexecutors + 2) : TRP_NONE;
            uint32_t h = rng_below(&r, MAX_HOSTS);
            if (x < c->nexecutors && c->executors[x].state == CL_LIVE)
                h = c->executors[x].host;
            t[i].places[k] = (struct trp_place){cluster_host(h), x};
            cluster_say(c, "    task %u prefers %s%s%d\n", i, cluster_host(h),
                        x == TRP_NONE ? ", no executor " : "/", (int)x);
        }
    }
    cluster_answer(c, id, n, t);
}

/* Messages that come late, twice, or from nowhere. */
static void play_nobody(struct cluster *c, const uint32_t *a)
{
    struct trp_event ev = {0};
    switch (a[0] % 7) {
    case 0:
        ev.kind = TRP_EVENT_TASK_ENDED;
        ev.ended.attempt.n = (uint64_t)a[1] << 40 | a[2];
        for (uint32_t i = 0; i < c->nattempts; i++)
            if (c->attempts[i].id.n == ev.ended.attempt.n)
                return;
        break;
    case 1:
        if (!c->npast)
            return;
        ev.kind = TRP_EVENT_TASK_ENDED;
        ev.ended.attempt = c->past[a[1] % (c->npast < MAX_PAST ? c->npast : MAX_PAST)];
        ev.ended.status = (enum trp_end_status)(a[2] % 8);
        break;
    case 2:
        ev.kind = TRP_EVENT_EXECUTOR_LOST;
        ev.lost.executor.n = executor_in(c, CL_GONE, a[1]);
        break;
    case 3:
        ev.kind = TRP_EVENT_EXECUTOR_ADDED;
        ev.added.executor.n = executor_in(c, a[2] % 2 ? CL_GONE : CL_LIVE, a[1]);
        ev.added.host = "h0";
        break;
    case 4:
        ev.kind = TRP_EVENT_EXECUTOR_REFUSED;
        ev.refused.executor.n = executor_in(c, a[2] % 2 ? CL_GONE : CL_LIVE, a[1]);
        ev.refused.text = "late";
        break;
    case 5:
        ev.kind = TRP_EVENT_CANCEL_JOB;
        ev.cancel.job.n = c->njobs + a[1];
        break;
    default:
        ev.kind = TRP_EVENT_STAGE_TASKS;
        ev.tasks.stage.n = a[1] % (c->nstages + 4);
        ev.tasks.ntasks = a[2];
        if (ev.tasks.stage.n < c->nstages && c->stages[ev.tasks.stage.n].ready)
            return;
    }
    cluster_step_ignored(c, &ev);
}

static void play_lose(struct cluster *c, const uint32_t *a)
{
    uint32_t x = executor_in(c, CL_LIVE, a[0]);
    trp_attempt_id culprit = {UINT64_C(77) << 32};
    if (x == TRP_NONE)
        return;
    for (uint32_t i = 0; i < c->nattempts && a[2] > 1; i++)
        if (c->attempts[i].executor == x && !c->attempts[i].queued)
            culprit = c->attempts[i].id;
    cluster_lose(c, x, (enum trp_loss)(a[1] % 7), a[2] ? &culprit : NULL);
}

static void play_appear(struct cluster *c, const uint32_t *a)
{
    trp_profile_id p = {a[0] % NPROFILES};
    if (trp_profiles_may_run(c->profiles, p, (trp_profile_id){0}))
        p.n = 0;
    trp_executor_id x = trp_engine_expect_executor(c->engine, p);
    if (x.n >= MAX_EXECUTORS)
        return;
    c->appeared = true;
    c->executors[x.n] =
        (struct cl_executor){.state = CL_REQUESTED, .label = p.n, .shape = p.n};
    c->nexecutors = x.n + 1 > c->nexecutors ? x.n + 1 : c->nexecutors;
    cluster_come(c, x.n, a[1], a[2] % 2);
}

static void play_gone(struct cluster *c, uint32_t which)
{
    uint32_t x = executor_in(c, CL_RELEASING, which);
    if (x == TRP_NONE)
        return;
    if (c->executors[x].came)
        cluster_lose(c, x, TRP_LOSS_RELEASED, NULL);
    else
        cluster_refuse(c, x, false);
}

/* It has its room, every other time; then it may be wanted no more. */
static bool grant(struct cluster *c, uint32_t executor)
{
    struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_GRANTED};
    ev.granted.executor.n = executor;
    if (executor % 2)
        cluster_step(c, &ev);
    return c->executors[executor].state == CL_REQUESTED;
}

/* On that host, or on the next that is not excluded. */
static void come_somewhere(struct cluster *c, uint32_t executor, uint32_t host,
                           uint32_t more)
{
    if (!grant(c, executor))
        return;
    for (uint32_t i = 0; i < MAX_HOSTS; i++)
        if (!c->excluded_hosts[(host + i) % MAX_HOSTS]) {
            cluster_come(c, executor, host + i, more);
            return;
        }
    cluster_refuse(c, executor, false);
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
    cluster_step(c, &ev);
}

static void play_step(struct cluster *c, const struct step *s)
{
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
        x = executor_in(c, CL_REQUESTED, a[0]);
        if (x != TRP_NONE)
            come_somewhere(c, x, a[1], a[2] % 2);
        return;
    case REFUSE:
        x = executor_in(c, CL_REQUESTED, a[0]);
        if (x != TRP_NONE)
            cluster_refuse(c, x, a[1] % 2);
        return;
    case APPEAR:
        play_appear(c, a);
        return;
    case LOSE:
        play_lose(c, a);
        return;
    case GONE:
        play_gone(c, a[0]);
        return;
    case NEVER_CAME:
        x = executor_in(c, CL_REQUESTED, a[0]);
        if (x != TRP_NONE)
            cluster_lose(c, x, TRP_LOSS_NEVER_CAME, NULL);
        return;
    case FIT:
        play_fit(c, a);
        return;
    case CANCEL:
        ev.kind = TRP_EVENT_CANCEL_JOB;
        ev.cancel.job.n = c->njobs ? a[0] % c->njobs : 0;
        if (c->njobs && !c->jobs[ev.cancel.job.n].ended)
            cluster_step(c, &ev);
        return;
    case DRAIN:
        ev.kind = TRP_EVENT_DRAIN;
        c->draining = true;
        cluster_step(c, &ev);
        return;
    case TIME:
        cluster_time(c, c->now + a[0] * MS);
        return;
    case TIMER:
        if (trp_engine_next_timer(c->engine) < INT64_MAX)
            cluster_time(c, trp_engine_next_timer(c->engine));
        return;
    case NOBODY:
        play_nobody(c, a);
        return;
    case DECOMMISSION:
        x = executor_in(c, CL_LIVE, a[0]);
        if (x != TRP_NONE && !c->executors[x].decommissioned)
            cluster_decommission(c, x);
        return;
    case CONTENDED:
        ev.kind = TRP_EVENT_CONTENDED;
        ev.contended.is = a[0] % 2;
        cluster_step(c, &ev);
        return;
    case PROGRESS:
        ev.kind = TRP_EVENT_TASK_PROGRESS;
        if (!c->nattempts)
            return;
        ev.progress.attempt = c->attempts[a[0] % c->nattempts].id;
        ev.progress.records = a[1];
        cluster_step(c, &ev);
        return;
    case KINDS:
        return;
    }
}

/* ---- the end ---- */

/* Has it room in what is held, or may it be had elsewhere? */
static bool may_come(const struct cluster *c, const struct cl_executor *x)
{
    uint32_t there = 0;
    for (uint32_t i = 0; i < c->nexecutors; i++)
        there += c->executors[i].state == CL_LIVE && c->executors[i].label == x->label;
    return !c->patient || x->may_add || x->label >= NPROFILES ||
           there < c->inside[x->label];
}

static uint32_t first_that_comes(const struct cluster *c)
{
    for (uint32_t i = 0; i < c->nexecutors; i++)
        if (c->executors[i].state == CL_REQUESTED && may_come(c, &c->executors[i]))
            return i;
    return TRP_NONE;
}

/* Executors come and go as they were asked to, in turn on all hosts. */
static void serve(struct cluster *c)
{
    for (uint32_t n = 0; !c->verdict->broken[0] && n < 100; n++) {
        uint32_t x = first_that_comes(c);
        if (x != TRP_NONE)
            come_somewhere(c, x, x, 0);
        else if (executor_in(c, CL_RELEASING, 0) != TRP_NONE)
            play_gone(c, 0);
        else
            return;
    }
}

static bool all_over(const struct cluster *c)
{
    for (uint32_t i = 0; i < c->njobs; i++)
        if (!c->jobs[i].ended)
            return false;
    return c->nattempts == 0;
}

static void settle(struct cluster *c)
{
    static const uint32_t success[STREAM_ARGS] = {0, 0, 1, 0};
    uint32_t any[STREAM_ARGS] = {0};
    for (uint32_t i = 0; i < c->nexecutors; i++)
        if (c->executors[i].state == CL_LIVE && c->executors[i].decommissioned)
            cluster_lose(c, i, TRP_LOSS_DECOMMISSIONED, NULL);
    for (uint32_t i = 0; i < 20000 && !c->verdict->broken[0] && !all_over(c); i++) {
        serve(c);
        for (any[0] = 0; ready_stage(c, 0) != TRP_NONE && !c->verdict->broken[0];)
            play_tasks(c, any);
        for (uint32_t k = 0; k < c->nattempts && c->nattempts; k++) {
            uint32_t a[STREAM_ARGS] = {k, 0, 1, 0};
            play_end(c, a);
        }
        play_end(c, success);
        cluster_time(c, c->now + 10 * SECOND);
        if (c->config.fixed && i % 16 == 15) /* somebody has to come */
            for (uint32_t p = 0; p < NPROFILES; p++)
                play_appear(c, (uint32_t[STREAM_ARGS]){p, p, 0, 0});
    }
    char why[256];
    for (uint32_t i = 0; i < c->njobs; i++)
        if (!c->jobs[i].ended && !c->verdict->broken[0])
            for (uint32_t k = 0; k < c->jobs[i].nstages; k++) {
                trp_stage_id id = {c->jobs[i].first + k};
                if (!c->stages[id.n].ended)
                    verdict_break(
                        c->verdict, "every job ends", "job %u, stage %u: %s", i, id.n,
                        trp_engine_why_waiting(c->engine, c->now, id, why, 256));
            }
    if (c->nattempts)
        verdict_break(c->verdict, "every attempt ends", "%u are left", c->nattempts);
}

static void leave(struct cluster *c)
{
    for (uint32_t i = 0; i < 40 && !c->verdict->broken[0]; i++) {
        serve(c);
        cluster_time(c, c->now + 100 * SECOND);
    }
    for (uint32_t i = 0; i < c->nexecutors && !c->verdict->broken[0]; i++)
        if (c->executors[i].state == CL_LIVE &&
            (c->config.fixed || c->appeared || c->excluded_any))
            cluster_lose(c, i, TRP_LOSS_RELEASED, NULL);
        else if (c->executors[i].state == CL_LIVE)
            verdict_break(c->verdict, "idle executors go when all jobs are done",
                          "executor %u is still there", i);
    if (!c->verdict->broken[0])
        check_memory(c);
}

static uint64_t play_once(const struct stream *s, FILE *explain, struct verdict *v)
{
    static struct cluster c;
    engine_open(&c, s, v, explain);
    for (uint32_t i = 0; i < s->nsteps && !v->broken[0]; i++) {
        v->at = i;
        cluster_say(&c, "%lld ms: ", (long long)(c.now / MS));
        if (explain)
            stream_write_step(s, i, explain);
        cluster_say(&c, "\n");
        play_step(&c, &s->steps[i]);
        if (!s->knob[MANUAL])
            serve(&c);
    }
    if (!v->broken[0]) {
        v->at = s->nsteps;
        cluster_say(&c, "to the end\n");
        settle(&c);
        leave(&c);
    }
    cluster_say(&c, "%s\n", v->broken[0] ? v->text : "every invariant held");
    uint64_t hash = c.hash;
    cluster_close(&c);
    return hash;
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
