/*
 * The steps of the subject "data". A step that is not possible now does nothing.
 */
#include <string.h>

#include "data_streams.h"

/* ---- jobs ---- */

/* From some partition on, one to one or several at once. */
static void random_runs(struct world *w, struct rng *r, uint32_t partitions,
                        struct trp_dataset_parent *p, uint32_t *first)
{
    uint32_t n = data_of(w)->partitions[p->dataset], how = rng_below(r, 3);
    if (p->shuffle || how == 0)
        return;
    p->begin = rng_below(r, partitions + 1);
    if (how == 1)
        return;
    p->first = first;
    p->nfirst = 1 + rng_below(r, partitions - p->begin + 1);
    for (uint32_t k = 0; k < p->nfirst; k++)
        first[k] = n * k / p->nfirst;
}

static void play_dataset(struct world *w, const uint32_t *a)
{
    uint32_t first[2][6];
    struct trp_dataset_parent parents[2];
    struct trp_dataset_place place;
    struct rng r = {a[0]};
    uint32_t id = data_of(w)->ndatasets;
    struct trp_dataset_spec spec = {
        .name = "d", .partitions = a[1] % 6, .parents = parents, .prefer = &place};
    if (id == DATA_DATASETS)
        return;
    for (uint32_t k = 0; id && k < 2 && !rng_one_in(&r, 3); k++)
        parents[spec.nparents++] = (struct trp_dataset_parent){
            .dataset = rng_below(&r, id), .shuffle = !rng_one_in(&r, 3)};
    spec.barrier = rng_one_in(&r, 5);
    spec.indeterminate = rng_one_in(&r, 6);
    spec.cached = rng_one_in(&r, 4);
    spec.has_profile = rng_one_in(&r, 4);
    spec.profile.n = rng_below(&r, DATA_PROFILES);
    spec.nprefer = spec.partitions && rng_one_in(&r, 3);
    place = (struct trp_dataset_place){0, data_host(rng_below(&r, DATA_HOSTS))};
    for (uint32_t k = 0; data_of(w)->runs && k < spec.nparents; k++)
        random_runs(w, &r, spec.partitions, &parents[k], first[k]);
    struct trp_event ev = {.kind = TRP_EVENT_DATASET, .dataset = {&spec}};
    world_say(w, "  dataset %u: %u partitions%s%s%s", id, spec.partitions,
              spec.barrier ? ", barrier" : "",
              spec.indeterminate ? ", indeterminate" : "",
              spec.cached ? ", cached" : "");
    for (uint32_t k = 0; k < spec.nparents; k++)
        world_say(w, ", %s %u", parents[k].shuffle ? "shuffle of" : "of",
                  parents[k].dataset);
    world_say(w, "\n");
    world_try(w, &ev);
    if (w->engine->dag.graph.n > id)
        data_of(w)->partitions[data_of(w)->ndatasets++] = spec.partitions;
}

static void submit(struct world *w, const struct trp_job_spec *spec)
{
    struct trp_event ev = {.kind = TRP_EVENT_JOB, .job = {spec}};
    if (w->njobs == DATA_JOBS || trp_engine_stages(w->engine) + 32 > DATA_STAGES)
        return;
    world_try(w, &ev);
}

static void play_job(struct world *w, const uint32_t *a)
{
    uint32_t id = data_of(w)->ndatasets ? a[0] % data_of(w)->ndatasets : 0;
    uint32_t n = data_of(w)->partitions[id], one = n ? a[2] % n : 0;
    struct trp_job_spec spec = {.is_dataset = true,
                                .dataset = id,
                                .map_only = a[1] % 4 == 1,
                                .some = n && a[1] % 3 == 1,
                                .partitions = &one,
                                .npartitions = 1,
                                .pool = a[3] % 2 ? "b" : NULL};
    if (!data_of(w)->ndatasets)
        return;
    world_say(w, "  of dataset %u%s%s\n", id, spec.map_only ? ", its outputs only" : "",
              spec.some ? ", one partition" : "");
    submit(w, &spec);
}

/* Stages told as such: map stages, shuffles, barriers. */
static void play_stages(struct world *w, const uint32_t *a)
{
    struct trp_stage_spec v[4];
    struct trp_parent_spec p[4];
    struct rng r = {a[0]};
    uint32_t n = 1 + a[1] % 4;
    memset(v, 0, sizeof v);
    for (uint32_t i = 0; i < n; i++) {
        v[i] = (struct trp_stage_spec){.name = "s",
                                       .tasks_known = true,
                                       .ntasks = rng_below(&r, 1 + a[2] % 8),
                                       .barrier = rng_one_in(&r, 3),
                                       .map = i + 1 < n && rng_one_in(&r, 2),
                                       .profile = {rng_below(&r, DATA_PROFILES)},
                                       .parents = &p[i]};
        p[i] = (struct trp_parent_spec){.stage = i ? rng_below(&r, i) : 0};
        v[i].nparents = i && !rng_one_in(&r, 4);
        p[i].shuffle = v[i].nparents && v[p[i].stage].map;
        world_say(w, "  stage: %u tasks%s%s", v[i].ntasks,
                  v[i].barrier ? ", barrier" : "", v[i].map ? ", map" : "");
        world_say(w, v[i].nparents ? ", %s %u\n" : "\n",
                  p[i].shuffle ? "reads" : "after", p[i].stage);
    }
    struct trp_job_spec spec = {.stages = v, .nstages = n};
    submit(w, &spec);
}

/* ---- attempts ---- */

static void end_attempt(struct world *w, uint32_t attempt, struct trp_event *ev)
{
    ev->kind = TRP_EVENT_TASK_ENDED;
    ev->ended.attempt = w->attempts[attempt].id;
    world_try(w, ev);
}

void data_play_end(struct world *w, const uint32_t *a)
{
    static const enum trp_end_status how[] = {
        TRP_END_SUCCESS, TRP_END_EXIT,   TRP_END_SIGNAL,      TRP_END_MEMORY,
        TRP_END_KILLED,  TRP_END_DENIED, TRP_END_RESULT_LOST, TRP_END_SUCCESS};
    static const uint64_t sizes[] = {1, 0, 4711, 100};
    struct trp_event ev = {0};
    if (!w->nattempts)
        return;
    uint32_t i = a[0] % w->nattempts;
    const struct world_attempt *at = &w->attempts[i];
    if (at->queued) {
        ev.ended.status = TRP_END_RECALLED;
        if (at->kill || at->recall)
            end_attempt(w, i, &ev);
        return;
    }
    world_time(w, w->now + a[2] * MS / 100);
    if (w->nattempts <= i || w->broken)
        return;
    ev.ended.status = w->attempts[i].kill && a[1] != 7 ? TRP_END_KILLED : how[a[1] % 8];
    ev.ended.code = 1;
    ev.ended.duration_ns = a[2] * MS;
    ev.ended.sizes = sizes;
    ev.ended.nsizes = a[3] % 5;
    ev.ended.from =
        (struct trp_fetch_source){{TRP_NONE}, TRP_NONE, {TRP_NONE}, NULL, NULL, 0};
    if (w->attempts[i].queued) /* it moved up meanwhile: another one stands here */
        return;
    end_attempt(w, i, &ev);
}

/* An attempt cannot read some output that its stage reads, or says so. */
static void play_fetch(struct world *w, const uint32_t *a)
{
    struct trp_event ev = {.ended.status = TRP_END_FETCH};
    if (!w->nattempts)
        return;
    uint32_t i = a[0] % w->nattempts;
    const struct world_attempt *at = &w->attempts[i];
    const struct trp_stage *s = trp_stage_find(w->engine, at->stage);
    if (at->queued || !s || !s->nparents)
        return;
    /* Nobody needs the stage any more: its parents may be gone. */
    const struct trp_stage *p = s->uses ? s->parents[a[1] % s->nparents].parent : s;
    const char *host;
    trp_executor_id x = {TRP_NONE};
    ev.ended.from = (struct trp_fetch_source){p->id, TRP_NONE, x, NULL, NULL, 0};
    if (s->uses && (!p->is_map || !p->ntasks))
        return;
    ev.ended.from.map = a[2] % 8 == 7 || !p->ntasks ? TRP_NONE : a[2] % p->ntasks;
    if (a[3] % 4 == 3)
        x.n = w->nexecutors ? a[3] % w->nexecutors : TRP_NONE; /* an old place */
    else if (ev.ended.from.map != TRP_NONE)
        trp_engine_output(w->engine, p->id, ev.ended.from.map, &x, &host);
    ev.ended.from.executor = x;
    world_say(w, "  of stage %u map %d on executor %d\n", p->id.n,
              (int)ev.ended.from.map, (int)x.n);
    end_attempt(w, i, &ev);
}

static void play_commit(struct world *w, const struct world_attempt *at)
{
    struct trp_event ev = {
        .kind = TRP_EVENT_SYNC, .sync = {.attempt = at->id, .kind = TRP_SYNC_COMMIT}
    };
    if (at->waits || at->commits)
        return;
    world_try(w, &ev);
}

static void play_sync(struct world *w, const uint32_t *a)
{
    static const uint8_t word[] = "hello";
    struct trp_event ev = {.kind = TRP_EVENT_SYNC};
    if (w->nattempts && a[1] % 8 >= 5) {
        play_commit(w, &w->attempts[a[0] % w->nattempts]);
        return;
    }
    for (uint32_t k = 0; k < w->nattempts; k++) {
        struct world_attempt *at = &w->attempts[(a[0] + k) % w->nattempts];
        const struct trp_stage *s = trp_stage_find(w->engine, at->stage);
        if (!data_is_barrier(w, at->stage) || at->queued || at->kill || at->waits ||
            !s || !s->set || s->set->zombie ||
            s->set->stage_attempt != at->stage_attempt)
            continue;
        ev.sync.attempt = at->id;
        ev.sync.epoch = at->epoch++;
        ev.sync.kind = a[1] % 2 ? TRP_SYNC_ALL_GATHER : TRP_SYNC_BARRIER;
        ev.sync.data = word;
        ev.sync.size = a[2] % sizeof(word);
        world_try(w, &ev);
        return;
    }
}

/* ---- executors ---- */

void data_play_appear(struct world *w, const uint32_t *a)
{
    play_appear(w, (trp_profile_id){a[0] % DATA_PROFILES}, data_host(a[1]));
}

static void play_lose(struct world *w, const uint32_t *a)
{
    static const enum trp_loss reasons[] = {TRP_LOSS_EXITED, TRP_LOSS_HEARTBEAT,
                                            TRP_LOSS_HOST, TRP_LOSS_CRASHED,
                                            TRP_LOSS_DECOMMISSIONED};
    uint32_t n = world_executor_in(w, WORLD_LIVE, a[0]);
    if (n == TRP_NONE)
        return;
    world_lose(w, n, reasons[a[1] % 5]);
    for (uint32_t i = 0; i < w->nexecutors && reasons[a[1] % 5] == TRP_LOSS_HOST; i++)
        if (w->executors[i].host == w->executors[n].host &&
            w->executors[i].state == WORLD_LIVE)
            world_lose(w, i, TRP_LOSS_HOST);
}

static void play_leave(struct world *w, const uint32_t *a)
{
    struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_DECOMMISSIONED};
    uint32_t n = world_executor_in(w, WORLD_LIVE, a[0]);
    if (n == TRP_NONE)
        return;
    ev.decommissioned.executor.n = n;
    ev.decommissioned.whole_host = a[1] % 2;
    world_try(w, &ev);
}

/* ---- outputs ---- */

/* An output is handed over to another executor or to all, also while it is used, or too
 * late. */
static void play_moved(struct world *w, const uint32_t *a)
{
    struct trp_event ev = {.kind = TRP_EVENT_OUTPUT_MOVED};
    uint32_t n = trp_engine_stages(w->engine);
    if (!n || !w->nexecutors)
        return;
    for (uint32_t k = 0; k < n; k++) {
        const struct trp_stage *s =
            trp_stage_find(w->engine, (trp_stage_id){(a[0] + k) % n});
        if (!s || !s->is_map || !s->ntasks)
            continue;
        ev.moved.stage = s->id;
        ev.moved.map = a[1] % s->ntasks;
        break;
    }
    ev.moved.attempt =
        w->past[w->npast ? a[2] % (w->npast < WORLD_PAST ? w->npast : WORLD_PAST) : 0];
    ev.moved.executor.n = a[3] % (w->nexecutors + 1);
    if (ev.moved.executor.n == w->nexecutors)
        ev.moved.executor.n = TRP_NONE; /* where all hosts see it */
    world_try(w, &ev);
}

static void play_cached(struct world *w, const uint32_t *a)
{
    struct trp_event ev = {.kind = TRP_EVENT_CACHED};
    ev.cached.dataset = a[0] % (data_of(w)->ndatasets + 1);
    ev.cached.partition = a[1] % 6;
    ev.cached.executor.n = w->nexecutors ? a[2] % w->nexecutors : 0;
    ev.cached.gone = a[3] % 4 == 0;
    world_try(w, &ev);
}

/* ---- about nobody ---- */

static void play_nobody(struct world *w, const uint32_t *a)
{
    struct trp_event ev = {0};
    uint32_t gone = world_executor_in(w, WORLD_GONE, a[1]);
    uint32_t n = w->npast < WORLD_PAST ? w->npast : WORLD_PAST;
    switch (a[0] % 4) {
    case 0:
        ev.kind = TRP_EVENT_TASK_ENDED; /* twice, or late */
        if (!n)
            return;
        ev.ended.attempt = w->past[a[1] % n];
        break;
    case 1:
        ev.kind = TRP_EVENT_EXECUTOR_LOST;
        ev.lost.executor.n = gone;
        break;
    case 2:
        ev.kind = TRP_EVENT_EXECUTOR_DECOMMISSIONED;
        ev.decommissioned.executor.n = gone;
        break;
    default:
        ev.kind = TRP_EVENT_CANCEL_STAGE;
        ev.cancel_stage.stage.n = trp_engine_stages(w->engine) + a[1];
        break;
    }
    if (a[0] % 4 == 3 || a[0] % 4 == 0 || gone != TRP_NONE)
        world_step_ignored(w, &ev);
}

/* ---- all steps ---- */

static void play_simple(struct world *w, enum kind kind, const uint32_t *a)
{
    struct trp_event ev = {0};
    switch (kind) {
    case RELEASE:
        ev.kind = TRP_EVENT_DATASET_RELEASED;
        ev.released.dataset = a[0] % (data_of(w)->ndatasets + 1);
        if (a[2] % 2) { /* at times it is in use, and stays */
            ev.kind = TRP_EVENT_DATASET_FREED;
            ev.freed.dataset = a[0] % (data_of(w)->ndatasets + 1);
        }
        break;
    case CANCEL:
        ev.kind = TRP_EVENT_CANCEL_JOB;
        ev.cancel.job.n = a[0] % (w->njobs + 1);
        break;
    case CANCEL_STAGE:
        ev.kind = TRP_EVENT_CANCEL_STAGE;
        ev.cancel_stage.stage.n = a[0] % (trp_engine_stages(w->engine) + 1);
        break;
    case DRAIN:
        ev.kind = TRP_EVENT_DRAIN;
        break;
    default:
        return;
    }
    world_try(w, &ev);
}

void data_play_step(struct play *p, const struct step *s)
{
    struct world *w = &p->world;
    const uint32_t *a = s->arg;
    uint32_t n;
    switch ((enum kind)s->kind) {
    case DATASET:
        play_dataset(w, a);
        return;
    case JOB:
        play_job(w, a);
        return;
    case STAGES:
        play_stages(w, a);
        return;
    case END:
        data_play_end(w, a);
        return;
    case FETCH:
        play_fetch(w, a);
        return;
    case SYNC:
        play_sync(w, a);
        return;
    case COME:
        n = world_executor_in(w, WORLD_REQUESTED, a[0]);
        if (n != TRP_NONE)
            world_come_on(w, n, data_host(a[1]), NULL);
        return;
    case APPEAR:
        data_play_appear(w, a);
        return;
    case LOSE:
        play_lose(w, a);
        return;
    case GONE:
        play_gone(w, a[0]);
        return;
    case LEAVE:
        play_leave(w, a);
        return;
    case CACHED:
        play_cached(w, a);
        return;
    case MOVED:
        play_moved(w, a);
        return;
    case TIME:
        world_time(w, w->now + a[0] * MS);
        return;
    case TIMER:
        if (trp_engine_next_timer(w->engine) < INT64_MAX)
            world_time(w, trp_engine_next_timer(w->engine));
        return;
    case NOBODY:
        play_nobody(w, a);
        return;
    default:
        play_simple(w, (enum kind)s->kind, a);
    }
}
