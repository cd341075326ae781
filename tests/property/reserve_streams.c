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
#include "play.h"

enum { MAX_STAGES = 64, MAX_DUE = 1024, MAX_TASKS = 12, PROFILES = 3 };

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

struct due_executor {
    uint32_t id;
    bool goes;
    int64_t at;
};

struct reserve {
    struct play play; /* stands first */
    const struct stream *stream;
    int64_t work, longest;
    uint32_t cores, most;
    struct {
        int64_t takes, first_since;
        bool barrier, begun;
    } stages[MAX_STAGES];
    struct due_executor due[MAX_DUE];
    uint32_t ndue;
};

static struct reserve *reserve_of(struct world *w)
{
    return (struct reserve *)w;
}

static void note_launched(struct world *w, struct world_attempt *a)
{
    struct reserve *r = reserve_of(w);
    r->stages[a->stage.n].begun = true;
    a->ends = a->queued ? INT64_MAX : w->now + r->stages[a->stage.n].takes;
}

static void note_moved_up(struct world *w, struct world_attempt *a)
{
    a->ends = w->now + reserve_of(w)->stages[a->stage.n].takes;
}

/* A queued one is handed back; others are not asked for. */
static void note_killed(struct world *w, struct world_attempt *a)
{
    (void)w;
    if (a->queued)
        a->ends = -1;
}

static void note_executor(struct world *w, const struct trp_action *a)
{
    struct reserve *r = reserve_of(w);
    uint32_t id = a->executor.executor.n;
    bool goes = a->kind == TRP_ACTION_RELEASE_EXECUTOR;
    if (!goes && a->kind != TRP_ACTION_START_EXECUTOR)
        return;
    for (uint32_t i = 0; i < r->ndue && goes;)
        if (r->due[i].id == id)
            r->due[i] = r->due[--r->ndue];
        else
            i++;
    if (r->ndue < MAX_DUE)
        r->due[r->ndue++] = (struct due_executor){
            id, goes, w->now + (goes ? 1 : r->stream->knob[COMING] + id % 7) * MS};
}

static const struct world_hooks hooks = {.broken = play_broken,
                                         .launched = note_launched,
                                         .moved_up = note_moved_up,
                                         .killed = note_killed,
                                         .executor = note_executor};

/* ---- what happens next ---- */

static void end_attempt(struct world *w, const struct world_attempt *a)
{
    bool recalled = a->ends < 0;
    world_end(w, a->id, recalled ? TRP_END_RECALLED : TRP_END_SUCCESS, 0,
              recalled ? 0 : reserve_of(w)->stages[a->stage.n].takes);
}

static void executor_due(struct world *w, uint32_t i)
{
    struct reserve *r = reserve_of(w);
    struct due_executor at = r->due[i];
    r->due[i] = r->due[--r->ndue];
    if (at.goes && w->executors[at.id].came)
        world_lose(w, at.id, TRP_LOSS_RELEASED);
    else if (at.goes)
        world_refuse(w, at.id, TRP_REFUSED_LATER, "withdrawn");
    else
        world_come_on(w, at.id, at.id % 2 ? "h1" : "h2", NULL);
}

/* The time of what happens next, not after `until`; plays it. False: nothing does. */
static bool play_next(struct world *w, int64_t until)
{
    const struct reserve *r = reserve_of(w);
    int64_t at = trp_engine_next_timer(w->engine);
    uint32_t attempt = TRP_NONE, executor = TRP_NONE;
    for (uint32_t i = 0; i < w->nattempts; i++)
        if (w->attempts[i].ends < at) {
            at = w->attempts[i].ends;
            attempt = i;
        }
    for (uint32_t i = 0; i < r->ndue; i++)
        if (r->due[i].at < at) {
            at = r->due[i].at;
            executor = i;
        }
    if (at > until || at == INT64_MAX)
        return false;
    w->now = at > w->now ? at : w->now;
    world_say(w, "  %lld ms\n", (long long)(w->now / MS));
    if (executor != TRP_NONE)
        executor_due(w, executor);
    else if (attempt != TRP_NONE)
        end_attempt(w, &w->attempts[attempt]);
    else
        world_step(w, &(struct trp_event){.kind = TRP_EVENT_TIME});
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
    struct reserve *r = reserve_of(w);
    for (uint32_t i = 0; i < w->njobs && !r->stream->knob[FAIR]; i++) {
        const struct trp_stage *s = trp_stage_find(w->engine, (trp_stage_id){i});
        if (!r->stages[i].barrier || r->stages[i].begun)
            continue;
        if (!s || !s->set || !s->set->listed || !has_its_turn(w, s->set)) {
            r->stages[i].first_since = INT64_MAX;
            continue;
        }
        if (r->stages[i].first_since == INT64_MAX)
            r->stages[i].first_since = w->now;
        /* Its time may have begun earlier, when executors were enough before: then
         * others get one task a slot meanwhile. */
        if (w->now - r->stages[i].first_since > 2 * r->longest + MS)
            world_break(w, "a barrier set begins when all that ran has ended",
                        "stage %u has its turn since %lld ms", i,
                        (long long)(r->stages[i].first_since / MS));
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
            world_break(w, "nothing waits while a slot is free",
                        "executor %u has one, executor %u a queue", i, c->queued->id.n);
    }
}

/* What the work alone can explain: all of it one after the other, a wait for each
 * barrier set, and executors that come and go for each stage. */
static int64_t longest_run(struct world *w)
{
    const struct reserve *r = reserve_of(w);
    int64_t wait = w->engine->config.barrier.reserve_ns;
    int64_t coming = (r->stream->knob[COMING] + 10) * MS;
    return r->work + w->njobs * (wait + 4 * coming + 1000 * MS);
}

static void run_until(struct world *w, int64_t until)
{
    while (!w->broken && play_next(w, until)) {
        check_turns(w);
        check_queues(w);
    }
}

/* ---- playing ---- */

static void open_world(struct reserve *r, const struct stream *s, struct verdict *v,
                       FILE *explain)
{
    const uint32_t *k = s->knob;
    struct trp_profile_defaults d;
    struct trp_engine_config c;
    trp_profiles *profiles;
    trp_error err;
    *r = (struct reserve){.stream = s};
    trp_options_profile_defaults(NULL, &d);
    r->cores = d.executor_cores = 1 + k[CORES] % 2;
    d.cores_configured = true;
    r->most = 2 + k[MOST] % 4;
    trp_options_engine_config(NULL, &c);
    c.max_executors = r->most;
    if (k[IN_ALL])
        c.alloc_max_executors = r->most + k[IN_ALL] - 1;
    c.barrier.reserve_ns = (500 + k[RESERVE] % 1000) * MS;
    c.fair = k[FAIR];
    c.queue_ahead_ns = k[QUEUE_AHEAD] * MS;
    c.reuse = (enum trp_reuse)(k[REUSE] % 3);
    c.release_idle = k[IDLE];
    c.idle_timeout_ns = 300 * MS;
    if (trp_profiles_new(&d, NULL, &profiles, &err) < 0)
        abort();
    for (uint32_t i = 1; i < PROFILES; i++) {
        struct trp_profile_builder b;
        trp_profile_id id;
        trp_profile_builder_init(&b, i == 1 ? "p" : "q");
        if (trp_profile_builder_executor(&b, "cores", r->cores, &err) < 0 ||
            trp_profile_builder_executor(&b, "memory", 100 + i, &err) < 0 ||
            trp_profiles_add(profiles, &b, &id, &err) < 0)
            abort();
    }
    play_open(&r->play, &c, profiles, &hooks, v, explain);
}

static void submit(struct world *w, const struct step *s)
{
    struct reserve *r = reserve_of(w);
    static const char *const pools[] = {"a", "b", "c"};
    uint32_t id = w->njobs, room = r->most * r->cores;
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
        spec.kind = TRP_STAGE_GANG, spec.ranks = 1 + s->arg[0] % r->most;
    spec.barrier = s->kind == BARRIER;
    r->stages[id].barrier = spec.barrier;
    r->stages[id].first_since = INT64_MAX;
    r->stages[id].takes = (1 + s->arg[1] % 500) * MS;
    if (r->stages[id].takes > r->longest)
        r->longest = r->stages[id].takes;
    r->work += r->stages[id].takes * spec.ntasks;
    world_say(w, "  stage %u: %u %s of %lld ms, profile %u\n", id, spec.ntasks,
              kinds[s->kind], (long long)(r->stages[id].takes / MS), spec.profile.n);
    world_step(w, &ev);
    check_turns(w);
}

static uint64_t play_once(const struct stream *s, FILE *explain, struct verdict *v)
{
    struct reserve r;
    struct world *w = &r.play.world;
    open_world(&r, s, v, explain);
    for (uint32_t i = 0; i < s->nsteps && i < MAX_STAGES && !w->broken; i++) {
        v->at = i;
        int64_t until = w->now + s->steps[i].arg[2] * MS;
        run_until(w, until);
        w->now = until;
        submit(w, &s->steps[i]);
    }
    int64_t until = w->now + longest_run(w);
    run_until(w, until);
    if (w->job_ends < w->njobs)
        world_break(w, "everything ends in bounded time", "%u of %u stages by %lld ms",
                    w->job_ends, w->njobs, (long long)(until / MS));
    return play_close(&r.play);
}

static void play(const struct stream *s, FILE *explain, struct verdict *ret)
{
    stream_play(s, play_once, false, explain, ret);
}

const struct subject reserve_subject = {
    .name = "reserve", .knobs = knobs, .kinds = kinds, .make = make, .play = play};
