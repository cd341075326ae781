/*
 * Further moves of the engine's fuzz target.
 */
#include "engine_moves.h"

#include "core/sched/pools.h"

enum { PARTITIONS = 6, PARENTS = 3 };

uint32_t choose_executor(const struct fuzz_world *w, struct fuzz_bytes *b)
{
    return fuzz_below(b, w->world.nexecutors < 255 ? w->world.nexecutors + 1 : 255);
}

trp_attempt_id choose_attempt(const struct fuzz_world *w, struct fuzz_bytes *b)
{
    uint8_t n = fuzz_byte(b);
    if (w->world.nattempts && n < 240)
        return w->world.attempts[n % w->world.nattempts].id;
    uint64_t slot = fuzz_byte(b), serial = fuzz_byte(b);
    return (trp_attempt_id){n == 255 ? UINT64_MAX - slot : serial << 32 | slot};
}

/* ---- configuration ---- */

void choose_features(struct fuzz_bytes *b, struct trp_engine_config *c)
{
    static const struct trp_pool_spec pools[] = {
        {"default", "FAIR", "2", "1",  NULL     },
        {"other",   "FIFO", "1", NULL, "default"},
    };
    static const trp_amount ratios[] = {TRP_ONE, TRP_ONE / 2, TRP_ONE / 3,
                                        TRP_ONE / 99};
    uint8_t on = fuzz_byte(b), how = fuzz_byte(b), seed = fuzz_byte(b);
    uint8_t sizes = fuzz_byte(b);
    c->speculation.enabled = on & 1;
    c->exclusion.enabled = on & 2;
    c->decommission.enabled = on & 4;
    c->grow_ramp = on & 8;
    c->fair = on & 0x10;
    c->locality_legacy_reset = on & 0x20;
    c->host_files = !(on & 0x40);
    c->shuffle_service = on & 0x80;
    c->keep_going = how & 1;
    c->reduce_locality = !(how & 2);
    c->unregister_host = how & 4;
    c->ignore_decommission_failures = !(how & 8);
    c->exclusion.kill = how & 0x10;
    c->exclusion.kill_decommission = how & 0x20;
    c->exclusion.fetch_failure = how & 0x40;
    c->exclusion.timeout_ns = 60 * SECOND; /* a gang may wait for so long */
    c->shuffle_tracking = !(how & 0x80);
    c->seed = seed & 0x3f;
    c->speculation.efficiency = seed & 0x40;
    c->decommission.force_kill_ns = seed & 0x80 ? SECOND : 0;
    c->pools = c->fair ? pools : NULL;
    c->npools = c->fair ? 2 : 0;
    c->max_stage_attempts = 1 + (sizes & 3u);
    c->initial_executors = sizes >> 2 & 3;
    c->allocation_ratio = ratios[sizes >> 4 & 3];
    c->caps.cores = sizes & 0x40 ? 8 : 0;
    c->max_result_bytes = sizes & 0x80 ? 100 : 0;
    /* Else executors that go to make room take outputs with them that are made again,
     * for which others go, … */
    if (c->caps.cores || c->alloc_max_executors != UINT32_MAX ||
        (!c->shuffle_tracking && !c->shuffle_service))
        c->host_files = true;
}

void choose_end(struct fuzz_world *w, struct fuzz_bytes *b, struct trp_event *ev)
{
    static const uint64_t sizes[] = {1, 0, 1 << 20, UINT64_MAX};
    uint8_t more = fuzz_byte(b);
    ev->ended.records = more & 0x70;
    ev->ended.result_bytes = more & 0xf;
    if (more & 0x80) {
        ev->ended.sizes = sizes;
        ev->ended.nsizes = more & 3;
    }
    if (ev->ended.status != TRP_END_FETCH)
        return;
    ev->ended.from.stage.n = fuzz_below(b, w->world.nstages + 1);
    ev->ended.from.map = more & 4 ? TRP_NONE : fuzz_below(b, 16);
    ev->ended.from.executor.n = more & 8 ? TRP_NONE : choose_executor(w, b);
}

/* ---- executors and attempts ---- */

void move_decommission(struct fuzz_world *w, struct fuzz_bytes *b)
{
    uint32_t x = choose_executor(w, b);
    const struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_DECOMMISSIONED,
        .decommissioned = {{x}, fuzz_byte(b) >= 0xc0}
    };
    if (w->features)
        fuzz_step(w, &ev);
}

void move_progress(struct fuzz_world *w, struct fuzz_bytes *b)
{
    const struct trp_event ev = {
        .kind = TRP_EVENT_TASK_PROGRESS,
        .progress = {.attempt = choose_attempt(w, b),
                     .records = UINT64_C(1) << fuzz_below(b, 64)}
    };
    if (w->features)
        fuzz_step(w, &ev);
}

/* ---- datasets ---- */

void move_dataset(struct fuzz_world *w, struct fuzz_bytes *b)
{
    static const struct trp_dataset_place prefer[] = {
        {0, "h0"},
        {0, "h1"},
        {2, "h1"},
        {3, "h2"},
        {9, "h0"}
    };
    static const uint32_t runs[] = {0, 1, 1, 2, 3, 5, 4};
    struct trp_dataset_parent parents[PARENTS];
    uint8_t what = fuzz_byte(b), kind = fuzz_byte(b);
    struct trp_dataset_spec spec = {.name = "d",
                                    .partitions = 1 + what % PARTITIONS,
                                    .parents = parents,
                                    .nparents = what >> 6,
                                    .has_profile = kind & 1,
                                    .profile = w->profile[kind >> 1 & 3],
                                    .cached = kind & 8,
                                    .barrier = (kind & 0x30) == 0x30,
                                    .indeterminate = kind & 0x40};
    const struct trp_event ev = {.kind = TRP_EVENT_DATASET, .dataset = {&spec}};
    if (kind & 0x80) {
        spec.prefer = prefer;
        spec.nprefer = kind & 1 ? 5 : 2 + 2 * (spec.partitions > 3);
    }
    for (uint32_t i = 0; i < spec.nparents; i++) {
        uint8_t p = fuzz_byte(b);
        parents[i] = (struct trp_dataset_parent){
            .dataset = (p >> 1) % (w->ndatasets + 1), .shuffle = p & 1};
        if (p & 1)
            continue;
        p = fuzz_byte(b);
        parents[i].begin = p & 1 ? p >> 1 & 7 : 0;
        parents[i].nfirst = p >> 4 & 7;
        parents[i].first = runs;
    }
    if (w->features && w->ndatasets < 32)
        w->ndatasets += fuzz_step(w, &ev) == 0;
}

void move_dataset_job(struct fuzz_world *w, struct fuzz_bytes *b)
{
    uint32_t partitions[PARTITIONS], n = 0;
    uint8_t which = fuzz_byte(b), how = fuzz_byte(b);
    struct trp_job_spec spec = {.is_dataset = true,
                                .map_only = (how & 0xc0) == 0xc0,
                                .dataset = which % (w->ndatasets + 1)};
    const struct trp_event ev = {.kind = TRP_EVENT_JOB, .job = {&spec}};
    for (uint32_t i = 0; i < PARTITIONS; i++)
        if (how >> i & 1)
            partitions[n++] = i;
    spec.pool = which & 0x40 ? "other" : NULL;
    if (which & 0x80) {
        spec.some = true;
        spec.partitions = partitions;
        spec.npartitions = n;
    }
    if (w->features)
        fuzz_step(w, &ev);
}

void move_cached(struct fuzz_world *w, struct fuzz_bytes *b)
{
    uint8_t n = fuzz_byte(b);
    const struct trp_event ev = {
        .kind = TRP_EVENT_CACHED,
        .cached = {n % (w->ndatasets + 1), n >> 5, {choose_executor(w, b)}, n & 16}
    };
    if (w->features)
        fuzz_step(w, &ev);
}

void move_moved(struct fuzz_world *w, struct fuzz_bytes *b)
{
    const struct trp_event ev = {
        .kind = TRP_EVENT_OUTPUT_MOVED,
        .moved = {.stage = {fuzz_below(b, w->world.nstages + 1)},
                  .map = fuzz_below(b, 8),
                  .attempt = choose_attempt(w, b),
                  .executor = {choose_executor(w, b)}}
    };
    if (w->features)
        fuzz_step(w, &ev);
}

void move_released(struct fuzz_world *w, struct fuzz_bytes *b)
{
    const struct trp_event ev = {.kind = TRP_EVENT_DATASET_RELEASED,
                                 .released = {fuzz_below(b, w->ndatasets + 1)}};
    if (w->features)
        fuzz_step(w, &ev);
}

void move_cancel_stage(struct fuzz_world *w, struct fuzz_bytes *b)
{
    const struct trp_event ev = {
        .kind = TRP_EVENT_CANCEL_STAGE,
        .cancel_stage = {{fuzz_below(b, w->world.nstages + 1)}}};
    if (w->features)
        fuzz_step(w, &ev);
}
