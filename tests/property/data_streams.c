/*
 * The subject "data": random streams over datasets, shuffles and barrier stages, with
 * fetch failures, outputs that move, executors that are lost or decommissioned, and
 * messages that are late, twice or about nobody. What a stream is, and how a play ends;
 * the steps are in data_steps.c.
 */
#include <string.h>

#include "conf/options.h"
#include "data_streams.h"

enum knob {
    CORES,
    MAX_EXECUTORS, /* of a profile; 0: 8 */
    FIXED,
    HOST_FILES,
    WAIT, /* locality, ms */
    MANUAL,
    FAIR,
    SPECULATION,
    QUEUE_AHEAD, /* ms */
    FORCE_KILL,  /* s; 0: never */
    DECOMMISSION,
    RELEASE_IDLE,
    UNREGISTER_HOST,
    MAX_ATTEMPTS, /* of a stage, more than one */
    GROW,         /* ramp */
    RESERVE,      /* of barrier sets, ms */
    RUNS,         /* partitions read several of a narrow parent's, or none */
    TWICE,
};
static const char *const knobs[] = {"cores",
                                    "max_executors",
                                    "fixed",
                                    "host_files",
                                    "wait",
                                    "manual",
                                    "fair",
                                    "speculation",
                                    "queue_ahead",
                                    "force_kill",
                                    "decommission",
                                    "release_idle",
                                    "unregister_host",
                                    "max_attempts",
                                    "grow",
                                    "reserve",
                                    "runs",
                                    "twice",
                                    NULL};

static const char *const kinds[] = {
    "dataset", "job",          "stages", "end",   "fetch",  "sync",  "come",
    "appear",  "lose",         "gone",   "leave", "cached", "moved", "release",
    "cancel",  "cancel_stage", "time",   "timer", "nobody", "drain", NULL};

/* ---- making ---- */

static enum kind random_kind(struct rng *r)
{
    static const uint8_t weights[KINDS] = {
        [DATASET] = 8,      [JOB] = 10,   [STAGES] = 4, [END] = 100,   [FETCH] = 10,
        [SYNC] = 5,         [COME] = 40,  [APPEAR] = 2, [LOSE] = 5,    [GONE] = 12,
        [LEAVE] = 4,        [CACHED] = 4, [MOVED] = 5,  [RELEASE] = 2, [CANCEL] = 1,
        [CANCEL_STAGE] = 1, [TIME] = 10,  [TIMER] = 12, [NOBODY] = 8,
    };
    return (enum kind)rng_weighted(r, weights, KINDS);
}

static void make_step(struct step *s, struct rng *r, enum kind kind)
{
    s->kind = kind;
    for (int i = 0; i < STREAM_ARGS; i++)
        s->arg[i] = rng_below(r, 1000);
    switch (kind) {
    case END:
        s->arg[1] = rng_one_in(r, 6) ? rng_below(r, 8) : 0; /* how */
        s->arg[2] = rng_one_in(r, 2) ? 1 : rng_below(r, 2000);
        break;
    case TIME:
        s->arg[0] = rng_one_in(r, 4) ? rng_below(r, 100000) : rng_below(r, 2000);
        break;
    default:
        break;
    }
}

static void make(struct stream *s, struct rng *r)
{
    uint32_t *k = s->knob;
    k[CORES] = rng_below(r, 3);
    k[MAX_EXECUTORS] = rng_one_in(r, 2) ? 0 : 1 + rng_below(r, 4);
    k[FIXED] = rng_one_in(r, 6);
    k[HOST_FILES] = rng_below(r, 2);
    k[WAIT] = rng_one_in(r, 3) ? rng_below(r, 3000) : 0;
    k[MANUAL] = rng_below(r, 2);
    k[FAIR] = rng_one_in(r, 4);
    k[SPECULATION] = rng_one_in(r, 4);
    k[QUEUE_AHEAD] = rng_one_in(r, 3) ? rng_below(r, 100) : 0;
    k[FORCE_KILL] = rng_one_in(r, 2) ? 1 + rng_below(r, 20) : 0;
    k[DECOMMISSION] = rng_one_in(r, 3);
    k[RELEASE_IDLE] = rng_one_in(r, 3);
    k[UNREGISTER_HOST] = rng_one_in(r, 4);
    k[MAX_ATTEMPTS] = rng_below(r, 5);
    k[GROW] = rng_one_in(r, 5);
    k[RESERVE] = rng_one_in(r, 2) ? rng_below(r, 5000) : 0;
    k[RUNS] = rng_below(r, 2);
    k[TWICE] = rng_one_in(r, 8);
    s->nsteps = 20 + rng_below(r, 200);
    for (uint32_t i = 0; i < s->nsteps; i++) {
        enum kind kind = i < 6 ? DATASET : i == 6 ? JOB : random_kind(r);
        make_step(&s->steps[i], r, kind);
    }
    if (rng_one_in(r, 12))
        s->steps[s->nsteps - 1 - rng_below(r, 10)].kind = DRAIN;
}

/* ---- the end ---- */

static void serve(struct world *w)
{
    for (uint32_t k = 0; !w->broken && k < 100; k++) {
        uint32_t n = world_executor_in(w, WORLD_REQUESTED, 0);
        if (n != TRP_NONE)
            world_come_on(w, n, data_host(n), NULL);
        else if (world_executor_in(w, WORLD_RELEASED, 0) != TRP_NONE)
            play_gone(w, 0);
        else
            return;
    }
}

/* Those that were announced to go, go; then everything succeeds. */
static void settle(struct world *w)
{
    static const uint32_t success[STREAM_ARGS] = {0, 0, 1, 0};
    for (uint32_t i = 0; i < w->nexecutors && !w->broken; i++)
        if (w->executors[i].state == WORLD_LIVE && w->executors[i].decommissioned)
            world_lose(w, i, TRP_LOSS_DECOMMISSIONED);
    for (uint32_t i = 0; i < 20000 && !w->broken && !world_all_over(w); i++) {
        serve(w);
        for (uint32_t k = 0; k < w->nattempts; k++)
            data_play_end(w, (uint32_t[STREAM_ARGS]){k, 0, 1, 0});
        data_play_end(w, success);
        world_time(w, w->now + 10 * SECOND);
        for (uint32_t p = 0; w->config.fixed && i % 16 == 15 && p < 8 * DATA_PROFILES;
             p++)
            if (world_executor_in(w, WORLD_LIVE, 24) == TRP_NONE || i < 64)
                data_play_appear(w, (uint32_t[STREAM_ARGS]){p, p, 0, 0});
    }
    char why[256] = "";
    for (uint32_t i = 0; i < trp_engine_stages(w->engine) && !*why; i++)
        trp_engine_why_waiting(w->engine, w->now, (trp_stage_id){i}, why, sizeof why);
    for (uint32_t i = 0; i < w->njobs; i++)
        if (!w->jobs[i].ended)
            world_break(w, "every job ends", "job %u: %s", i, why);
    if (w->nattempts)
        world_break(w, "every attempt ends", "%u are left", w->nattempts);
}

static void leave(struct world *w)
{
    struct trp_event ev = {.kind = TRP_EVENT_DATASET_FREED};
    for (uint32_t i = data_of(w)->ndatasets; i-- > 0;) { /* children before parents */
        ev.freed.dataset = i;
        world_try(w, &ev);
        if (w->engine->dag.graph.v[i])
            world_break(w, "datasets can be freed when all jobs are done", "dataset %u",
                        i);
    }
    for (uint32_t i = 0; i < 40 && !w->broken; i++) {
        serve(w);
        world_time(w, w->now + 100 * SECOND);
    }
    for (uint32_t i = 0; i < w->nexecutors && !w->broken; i++)
        if (w->executors[i].state == WORLD_LIVE && (w->config.fixed || w->appeared))
            world_lose(w, i, TRP_LOSS_RELEASED);
        else if (w->executors[i].state == WORLD_LIVE)
            world_break(w, "idle executors go when all jobs are done",
                        "executor %u is still there", i);
    for (uint32_t i = 0; i < trp_engine_stages(w->engine); i++)
        if (trp_stage_find(w->engine, (trp_stage_id){i}))
            world_break(w, "no stage is left when all jobs are done", "stage %u", i);
    play_check_memory(&data_of(w)->play, 16384 + data_of(w)->ndatasets * 1024);
}

static trp_profiles *make_profiles(const struct stream *s, struct verdict *v)
{
    struct trp_profile_defaults d;
    struct trp_profile_builder b;
    trp_profile_id id;
    trp_profiles *p;
    trp_error err;
    trp_options_profile_defaults(NULL, &d);
    d.executor_cores = 1 + s->knob[CORES] % 4;
    d.cores_configured = true;
    if (trp_profiles_new(&d, NULL, &p, &err) < 0) {
        verdict_break(v, "profiles can be made", "%s", err.text);
        return NULL;
    }
    for (uint32_t i = 1; i < DATA_PROFILES; i++) {
        trp_profile_builder_init(&b, i == 1 ? "p" : "q");
        if (trp_profile_builder_executor(&b, "cores", i, &err) < 0 ||
            trp_profiles_add(p, &b, &id, &err) < 0)
            verdict_break(v, "profiles can be made", "%s", err.text);
    }
    return p;
}

static void open_world(struct data *d, const struct stream *s, struct verdict *v,
                       FILE *explain)
{
    const uint32_t *k = s->knob;
    struct trp_engine_config c;
    trp_options_engine_config(NULL, &c);
    c.max_executors = k[MAX_EXECUTORS] ? k[MAX_EXECUTORS] : 8;
    c.fixed = k[FIXED];
    c.host_files = k[HOST_FILES];
    for (int l = 0; l < TRP_LEVELS; l++)
        c.locality_wait_ns[l] = l == TRP_NO_PREF || l == TRP_ANY ? 0 : k[WAIT] * MS;
    c.fair = k[FAIR];
    c.barrier.reserve_ns = k[RESERVE] * MS;
    c.speculation.enabled = k[SPECULATION];
    c.speculation.interval_ns = SECOND;
    c.speculation.quantile = 0.5;
    c.speculation.multiplier = 1.5;
    c.queue_ahead_ns = k[QUEUE_AHEAD] * MS;
    c.decommission.force_kill_ns = k[FORCE_KILL] * SECOND;
    c.decommission.enabled = k[DECOMMISSION];
    c.decommission.retained = k[DECOMMISSION] * 2;
    c.release_idle = k[RELEASE_IDLE];
    c.unregister_host = k[UNREGISTER_HOST];
    c.max_stage_attempts = 1 + k[MAX_ATTEMPTS];
    c.grow_ramp = k[GROW];
    *d = (struct data){.runs = k[RUNS]};
    play_open(&d->play, &c, make_profiles(s, v), &data_hooks, v, explain);
}

static void serve_unasked(struct play *p)
{
    serve(&p->world);
}

static uint64_t play_once(const struct stream *s, FILE *explain, struct verdict *v)
{
    struct data d;
    open_world(&d, s, v, explain);
    play_steps(&d.play, s, data_play_step, s->knob[MANUAL] ? NULL : serve_unasked);
    settle(&d.play.world);
    leave(&d.play.world);
    return play_close(&d.play);
}

static void play(const struct stream *s, FILE *explain, struct verdict *ret)
{
    stream_play(s, play_once, s->knob[TWICE], explain, ret);
}

const struct subject data_subject = {
    .name = "data", .knobs = knobs, .kinds = kinds, .make = make, .play = play};
