/*
 * The subject "reserve": barrier stages among others that go on taking slots. Nothing
 * fails and nobody is lost; tasks take no longer than slots are kept (semantics,
 * difference 25). Time is the world's own: executors come after a while, tasks end when
 * they have run.
 *
 * What must hold: a barrier set that is first in its class, with executors that would
 * be enough, has begun when all that ran before can have ended; and everything ends, in
 * a time that the work alone can explain, whatever limits and pools there are.
 */
#include <stdlib.h>
#include <string.h>

#include "conf/options.h"
#include "core/engine_state.h"
#include "memory.h"
#include "stream.h"

#define MS INT64_C(1000000)

enum { MAX_STAGES = 64, MAX_LIVE = 1024, MAX_TASKS = 12, PROFILES = 3 };

enum knob {
    CORES,   /* slots of an executor, but one */
    MOST,    /* executors of a profile, but two */
    IN_ALL,  /* over all profiles, but the most that a stage needs; 0: no limit */
    RESERVE, /* ms, but 500 */
    FAIR,
    QUEUE_AHEAD, /* ms */
    COMING,      /* ms until an executor is there */
    REUSE,
    IDLE, /* keep idle executors */
};
static const char *const knobs[] = {"cores", "most",        "in_all", "reserve",
                                    "fair",  "queue_ahead", "coming", "reuse",
                                    "idle",  NULL};

/* tasks: how many, ms each, ms to the step before, profile. barrier: the same. gang:
 * ranks, the rest the same. */
enum kind { TASKS, BARRIER, GANG, KINDS };
static const char *const kinds[] = {"tasks", "barrier", "gang", NULL};

static void make(struct stream *s, struct rng *r)
{
    s->knob[CORES] = rng_below(r, 2);
    s->knob[MOST] = rng_below(r, 4);
    s->knob[IN_ALL] = rng_one_in(r, 2) ? 1 + rng_below(r, 4) : 0;
    s->knob[RESERVE] = rng_below(r, 1000);
    s->knob[FAIR] = rng_one_in(r, 3);
    s->knob[QUEUE_AHEAD] = rng_one_in(r, 2) ? rng_below(r, 300) : 0;
    s->knob[COMING] = rng_below(r, 300);
    s->knob[REUSE] = rng_below(r, 3);
    s->knob[IDLE] = rng_one_in(r, 3);
    s->nsteps = 2 + rng_below(r, 14);
    for (uint32_t i = 0; i < s->nsteps; i++) {
        struct step *at = &s->steps[i];
        at->kind = rng_one_in(r, 2) ? TASKS : rng_one_in(r, 5) ? GANG : BARRIER;
        at->arg[0] = rng_below(r, 1000);
        at->arg[1] = rng_one_in(r, 2) ? rng_below(r, 20) : rng_below(r, 500);
        at->arg[2] = rng_one_in(r, 2) ? 0 : rng_below(r, 400);
        at->arg[3] = rng_one_in(r, 2) ? 0 : rng_below(r, PROFILES);
    }
}

/* ---- the world ---- */

struct live {
    trp_attempt_id id;
    uint32_t stage, task, executor;
    int64_t ends; /* INT64_MAX: queued */
};

struct due_executor {
    uint32_t id;
    bool goes;
    int64_t at;
};

struct world {
    trp_engine *engine;
    trp_profiles *profiles;
    const struct stream *stream;
    struct verdict *v;
    FILE *explain;
    int64_t now, work, longest;
    uint32_t cores, most, nstages, ended;
    struct {
        int64_t takes, first_since;
        bool barrier, begun;
    } stages[MAX_STAGES];
    struct live live[MAX_LIVE];
    uint32_t nlive;
    struct due_executor due[MAX_LIVE];
    uint32_t ndue;
};

static void note_executor(struct world *w, uint32_t id, bool goes)
{
    if (w->ndue < MAX_LIVE)
        w->due[w->ndue++] = (struct due_executor){
            id, goes, w->now + (goes ? 1 : w->stream->knob[COMING] + id % 7) * MS};
}

static struct live *find(struct world *w, trp_attempt_id id)
{
    for (uint32_t i = 0; i < w->nlive; i++)
        if (w->live[i].id.n == id.n)
            return &w->live[i];
    return NULL;
}

static void launch(struct world *w, trp_attempt_id id, trp_stage_id stage,
                   uint32_t task, uint32_t executor, bool queued)
{
    if (w->nlive == MAX_LIVE || stage.n >= MAX_STAGES)
        return;
    w->stages[stage.n].begun = true;
    w->live[w->nlive++] =
        (struct live){id, stage.n, task, executor,
                      queued ? INT64_MAX : w->now + w->stages[stage.n].takes};
    if (w->explain)
        fprintf(w->explain, "  %lld ms: stage %u task %u on executor %d%s\n",
                (long long)(w->now / MS), stage.n, task, (int)executor,
                queued ? ", queued" : "");
}

static void take(struct world *w, const struct trp_action *a)
{
    struct live *at;
    switch (a->kind) {
    case TRP_ACTION_LAUNCH:
        launch(w, a->launch.attempt, a->launch.stage, a->launch.task,
               a->launch.executor.n, a->launch.queued);
        break;
    case TRP_ACTION_GANG:
        launch(w, a->gang.attempt, a->gang.stage, 0, TRP_NONE, false);
        break;
    case TRP_ACTION_KILL: /* a queued one is handed back; others are not asked for */
        at = find(w, a->kill.attempt);
        if (at && at->ends == INT64_MAX)
            at->ends = -1;
        break;
    case TRP_ACTION_START_EXECUTOR:
        note_executor(w, a->executor.executor.n, false);
        break;
    case TRP_ACTION_RELEASE_EXECUTOR:
        for (uint32_t i = 0; i < w->ndue; i++)
            if (w->due[i].id == a->executor.executor.n)
                w->due[i--] = w->due[--w->ndue];
        note_executor(w, a->executor.executor.n, true);
        break;
    case TRP_ACTION_JOB_ENDED:
        w->ended++;
        break;
    default:
        break;
    }
}

static void step(struct world *w, const struct trp_event *ev)
{
    const struct trp_action *a;
    trp_error err = {0};
    if (trp_engine_step(w->engine, w->now, ev, &err) < 0)
        verdict_break(w->v, "a step works", "%s", err.text);
    while ((a = trp_engine_next(w->engine)))
        take(w, a);
    if (trp_engine_sanity_check(w->engine, &err) < 0)
        verdict_break(w->v, "the engine's own check", "%s", err.text);
}

/* ---- what happens next ---- */

static void end_attempt(struct world *w, uint32_t i)
{
    struct live at = w->live[i];
    bool recalled = at.ends < 0;
    struct trp_event ev = {.kind = TRP_EVENT_TASK_ENDED};
    w->live[i] = w->live[--w->nlive];
    ev.ended.attempt = at.id;
    ev.ended.status = recalled ? TRP_END_RECALLED : TRP_END_SUCCESS;
    ev.ended.duration_ns = recalled ? 0 : w->stages[at.stage].takes;
    /* The first of its stage that was sent ahead there takes its place. */
    struct live *next = NULL;
    for (uint32_t k = 0; !recalled && k < w->nlive; k++) {
        struct live *o = &w->live[k];
        bool waits = o->ends == INT64_MAX || o->ends < 0;
        if (waits && o->executor == at.executor && o->stage == at.stage &&
            (!next || o->id.n >> 32 < next->id.n >> 32))
            next = o;
    }
    if (next)
        next->ends = w->now + w->stages[next->stage].takes;
    step(w, &ev);
}

static void executor_due(struct world *w, uint32_t i)
{
    struct due_executor at = w->due[i];
    struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_ADDED};
    const struct trp_executor *x = w->engine->executors[at.id];
    bool came = x && x->came;
    w->due[i] = w->due[--w->ndue];
    if (at.goes && came) {
        ev.kind = TRP_EVENT_EXECUTOR_LOST;
        ev.lost.executor.n = at.id;
        ev.lost.reason = TRP_LOSS_RELEASED;
    } else if (at.goes) {
        ev.kind = TRP_EVENT_EXECUTOR_REFUSED;
        ev.refused.executor.n = at.id;
        ev.refused.how = TRP_REFUSED_LATER;
        ev.refused.text = "withdrawn";
    } else {
        ev.added.executor.n = at.id;
        ev.added.host = at.id % 2 ? "h1" : "h2";
    }
    step(w, &ev);
}

/* The time of what happens next, not after `until`; plays it. False: nothing does. */
static bool play_next(struct world *w, int64_t until)
{
    int64_t at = trp_engine_next_timer(w->engine);
    uint32_t attempt = TRP_NONE, executor = TRP_NONE;
    for (uint32_t i = 0; i < w->nlive; i++)
        if (w->live[i].ends < at) {
            at = w->live[i].ends;
            attempt = i;
        }
    for (uint32_t i = 0; i < w->ndue; i++)
        if (w->due[i].at < at) {
            at = w->due[i].at;
            executor = i;
        }
    if (at > until || at == INT64_MAX)
        return false;
    w->now = at > w->now ? at : w->now;
    struct trp_event ev = {.kind = TRP_EVENT_TIME};
    if (executor != TRP_NONE)
        executor_due(w, executor);
    else if (attempt != TRP_NONE)
        end_attempt(w, attempt);
    else
        step(w, &ev);
    return true;
}

/* ---- what must hold ---- */

/* First in its class's order, with slots for all of it on executors that are there.
 * What an earlier set has sent ahead counts as pending. */
static bool has_its_turn(const struct world *w, const struct trp_task_set *s)
{
    uint64_t slots = 0;
    for (const struct trp_task_set *o = w->engine->sets; o; o = o->all_next)
        if (o->class == s->class && trp_task_set_before(o, s) &&
            o->pending + o->queued > 0)
            return false;
    for (uint32_t i = 0; i < w->engine->nexecutors; i++) {
        const struct trp_executor *x = w->engine->executors[i];
        slots += x && x->class == s->class->profile.n && trp_executor_may_get(x)
                     ? (uint64_t)x->cores
                     : 0;
    }
    return slots >= s->ntasks;
}

static void check_turns(struct world *w)
{
    for (uint32_t i = 0; i < w->nstages && !w->stream->knob[FAIR]; i++) {
        const struct trp_stage *s = trp_stage_find(w->engine, (trp_stage_id){i});
        if (!w->stages[i].barrier || w->stages[i].begun)
            continue;
        if (!s || !s->set || !s->set->listed || !has_its_turn(w, s->set)) {
            w->stages[i].first_since = INT64_MAX;
            continue;
        }
        if (w->stages[i].first_since == INT64_MAX)
            w->stages[i].first_since = w->now;
        /* Its time may have begun earlier, when executors were enough before: then
         * others get one task a slot meanwhile. */
        if (w->now - w->stages[i].first_since > 2 * w->longest + MS)
            verdict_break(w->v, "a barrier set begins when all that ran has ended",
                          "stage %u has its turn since %lld ms", i,
                          (long long)(w->stages[i].first_since / MS));
    }
}

/* What waits on an executor is recalled for a slot that nothing else can use. */
static void check_queues(struct world *w)
{
    for (uint32_t i = 0; i < w->engine->nexecutors; i++) {
        const struct trp_executor *x = w->engine->executors[i];
        const struct trp_class *c = x ? w->engine->classes[x->class] : NULL;
        if (c && c->queued && !c->recalls && x->cores_free > 0 &&
            trp_executor_may_get(x))
            verdict_break(w->v, "nothing waits while a slot is free",
                          "executor %u has one, executor %u a queue", i,
                          c->queued->id.n);
    }
}

/* What the work alone can explain: all of it one after the other, a wait for each
 * barrier set, and executors that come and go for each stage. */
static int64_t longest_run(const struct world *w)
{
    int64_t wait = w->engine->config.barrier.reserve_ns;
    int64_t coming = (w->stream->knob[COMING] + 10) * MS;
    return w->work + w->nstages * (wait + 4 * coming + 1000 * MS);
}

static void run_until(struct world *w, int64_t until)
{
    while (!w->v->broken[0] && play_next(w, until)) {
        check_turns(w);
        check_queues(w);
    }
}

/* ---- playing ---- */

static void open_world(struct world *w, const struct stream *s)
{
    const uint32_t *k = s->knob;
    struct trp_profile_defaults d;
    struct trp_engine_config c;
    trp_error err;
    trp_options_profile_defaults(NULL, &d);
    w->cores = d.executor_cores = 1 + k[CORES] % 2;
    d.cores_configured = true;
    w->most = 2 + k[MOST] % 4;
    trp_options_engine_config(NULL, &c);
    c.max_executors = w->most;
    if (k[IN_ALL])
        c.alloc_max_executors = w->most + k[IN_ALL] - 1;
    c.barrier.reserve_ns = (500 + k[RESERVE] % 1000) * MS;
    c.fair = k[FAIR];
    c.queue_ahead_ns = k[QUEUE_AHEAD] * MS;
    c.reuse = (enum trp_reuse)(k[REUSE] % 3);
    c.release_idle = k[IDLE];
    c.idle_timeout_ns = 300 * MS;
    if (trp_profiles_new(&d, NULL, &w->profiles, &err) < 0)
        abort();
    for (uint32_t i = 1; i < PROFILES; i++) {
        struct trp_profile_builder b;
        trp_profile_id id;
        trp_profile_builder_init(&b, i == 1 ? "p" : "q");
        if (trp_profile_builder_executor(&b, "cores", w->cores, &err) < 0 ||
            trp_profile_builder_executor(&b, "memory", 100 + i, &err) < 0 ||
            trp_profiles_add(w->profiles, &b, &id, &err) < 0)
            abort();
    }
    if (trp_engine_new(&c, w->profiles, &w->engine, &err) < 0)
        abort();
}

static void submit(struct world *w, const struct step *s)
{
    static const char *const pools[] = {"a", "b", "c"};
    uint32_t id = w->nstages++, room = w->most * w->cores;
    struct trp_stage_spec spec = {.name = "s", .tasks_known = true, .ntasks = 1};
    struct trp_job_spec job = {.stages = &spec, .nstages = 1};
    struct trp_event ev = {.kind = TRP_EVENT_JOB, .job = {.spec = &job}};
    job.pool = pools[s->arg[0] % 3];
    spec.profile.n = s->arg[3] % PROFILES;
    if (s->kind == TASKS)
        spec.ntasks = 1 + s->arg[0] % (8 * MAX_TASKS);
    else if (s->kind == BARRIER)
        spec.ntasks = 1 + s->arg[0] % room;
    else
        spec.kind = TRP_STAGE_GANG, spec.ranks = 1 + s->arg[0] % w->most;
    spec.barrier = s->kind == BARRIER;
    w->stages[id].barrier = spec.barrier;
    w->stages[id].first_since = INT64_MAX;
    w->stages[id].takes = (1 + s->arg[1] % 500) * MS;
    if (w->stages[id].takes > w->longest)
        w->longest = w->stages[id].takes;
    w->work += w->stages[id].takes * spec.ntasks;
    if (w->explain)
        fprintf(w->explain, "  stage %u: %u %s of %lld ms, profile %u\n", id,
                spec.ntasks, kinds[s->kind], (long long)(w->stages[id].takes / MS),
                spec.profile.n);
    step(w, &ev);
    check_turns(w);
}

static void play(const struct stream *s, FILE *explain, struct verdict *ret)
{
    static struct world w;
    memset(ret, 0, sizeof(*ret));
    memset(&w, 0, sizeof(w));
    w.stream = s;
    w.v = ret;
    w.explain = explain;
    open_world(&w, s);
    for (uint32_t i = 0; i < s->nsteps && i < MAX_STAGES && !ret->broken[0]; i++) {
        ret->at = i;
        int64_t until = w.now + s->steps[i].arg[2] * MS;
        run_until(&w, until);
        w.now = until;
        submit(&w, &s->steps[i]);
    }
    int64_t until = w.now + longest_run(&w);
    run_until(&w, until);
    if (!ret->broken[0] && w.ended < w.nstages)
        verdict_break(ret, "everything ends in bounded time",
                      "%u of %u stages by %lld ms", w.ended, w.nstages,
                      (long long)(until / MS));
    if (explain)
        fprintf(explain, "%s\n", ret->broken[0] ? ret->text : "every invariant held");
    trp_engine_free(w.engine);
    trp_profiles_free(w.profiles);
}

const struct subject reserve_subject = {
    .name = "reserve", .knobs = knobs, .kinds = kinds, .make = make, .play = play};
