/*
 * The invariants of the subject "data" beside those of every world: of what is about to
 * be launched, and of the whole after every step.
 */
#include "data_streams.h"

const char *data_host(uint32_t host)
{
    static const char *const names[DATA_HOSTS] = {"h0", "h1", "h2", "h3"};
    return names[host % DATA_HOSTS];
}

bool data_is_barrier(const struct world *w, trp_stage_id stage)
{
    const struct trp_stage *s = trp_stage_find(w->engine, stage);
    return s && s->barrier;
}

/* ---- of actions ---- */

static void check_launched(struct world *w, struct world_attempt *a)
{
    if (a->copy && data_is_barrier(w, a->stage))
        world_break(w, "no task runs more copies than allowed",
                    "stage %u task %u, which waits for others", a->stage.n, a->task);
}

/* An attempt of a stage begins when all that it reads is there. */
static void check_submitted(struct world *w, trp_stage_id stage)
{
    const struct trp_stage *s = trp_stage_find(w->engine, stage);
    /* (Its job may have ended in this step.) */
    for (uint32_t i = 0; s && s->uses && i < s->nparents; i++) {
        const struct trp_stage *p = s->parents[i].parent;
        /* (What is cached on the way need not be read.) */
        if (s->parents[i].edge == TRP_EDGE_SHUFFLE && p->ntasks && !s->cache_in_chain &&
            !trp_map_outputs_complete(w->engine->dag.outputs, p->shuffle))
            world_break(w, "a stage begins when its input is there",
                        "stage %u reads stage %u, of which %u outputs are missing",
                        stage.n, p->id.n,
                        trp_map_outputs_missing(w->engine->dag.outputs, p->shuffle));
    }
}

/* ---- of the whole ---- */

/* Outputs lie where somebody can read them. */
static void check_outputs(struct world *w)
{
    for (uint32_t i = 0; i < trp_engine_stages(w->engine); i++) {
        const struct trp_stage *s = trp_stage_find(w->engine, (trp_stage_id){i});
        for (uint32_t k = 0; s && s->is_map && k < s->ntasks; k++) {
            trp_executor_id x;
            const char *host;
            if (trp_engine_output(w->engine, s->id, k, &x, &host) < 0)
                continue;
            if (x.n != TRP_NONE && w->executors[x.n].state == WORLD_GONE)
                world_break(w, "outputs lie on executors that live",
                            "stage %u map %u is on executor %u", i, k, x.n);
        }
    }
}

/* A barrier attempt is launched as a whole. */
static void check_barriers(struct world *w)
{
    for (uint32_t i = 0; i < trp_engine_stages(w->engine) && i < w->nstages; i++) {
        const struct trp_stage *s = trp_stage_find(w->engine, (trp_stage_id){i});
        const struct world_stage *d = &w->stages[i];
        if (!s || !s->barrier || !s->set || d->attempt != s->set->stage_attempt)
            continue;
        if (d->launched && d->launched != s->set->ntasks)
            world_break(w, "a barrier stage starts as a whole",
                        "stage %u.%u: %u of %u tasks", i, s->set->stage_attempt,
                        d->launched, s->set->ntasks);
    }
}

static void check_stage(struct world *w, const struct trp_stage *s)
{
    uint32_t running = 0, queued = 0;
    struct trp_stage_view v;
    trp_engine_stage(w->engine, s->id, &v);
    for (uint32_t i = 0; s->set && i < w->nattempts; i++) {
        const struct world_attempt *a = &w->attempts[i];
        bool is = a->stage.n == s->id.n && a->stage_attempt == s->set->stage_attempt;
        running += is && !a->queued;
        queued += is && a->queued;
    }
    if (v.running != running || v.queued != queued)
        world_break(w, "counts equal lists",
                    "stage %u: %u running (told %u), %u queued (%u)", s->id.n, running,
                    v.running, queued, v.queued);
    if (!s->set || s->set->zombie || s->barrier || s->set->prefer_first || !v.pending ||
        w->engine->draining || trp_keep_keeper(w->engine, s->set))
        return; /* what is kept for another: the engine's own check */
    for (uint32_t i = 0; i < w->nexecutors; i++) {
        const struct world_executor *x = &w->executors[i];
        if (x->state == WORLD_LIVE && !x->decommissioned && x->used < x->cores &&
            x->label == s->set->class->profile.n)
            world_break(w, "no slot stays empty while a task may run there",
                        "executor %u has room, stage %u has %u pending", i, s->id.n,
                        v.pending);
    }
}

/* What is written down of a stage agrees with what is there. */
static void check_notes(struct world *w, const struct trp_stage *s)
{
    uint32_t blockers = 0, bits = 0;
    bool good = s->uses != NULL && !s->queued &&
                (s->state != TRP_STAGE_RUNNING || s->set != NULL);
    for (uint32_t p = 0; p < s->nparents; p++) {
        good &= s->parents[p].parent->id.n < s->id.n;
        blockers += s->parents[p].waits;
    }
    good &=
        blockers == s->blockers && (blockers > 0) == (s->state == TRP_STAGE_WAITING);
    for (uint32_t t = 0; s->bits && t < s->ntasks; t++)
        bits += trp_bit(s->bits, t);
    good &= bits == (s->is_map ? s->awaited : s->succeeded + s->given_up + s->unasked);
    if (!good)
        world_break(w, "what is noted of a stage is so", "stage %u", s->id.n);
}

static void check_everything(struct world *w)
{
    for (uint32_t i = 0; i < trp_engine_stages(w->engine); i++) {
        const struct trp_stage *s = trp_stage_find(w->engine, (trp_stage_id){i});
        if (s)
            check_stage(w, s);
        if (s && s->state != TRP_STAGE_ENDED)
            check_notes(w, s);
    }
    check_outputs(w);
    check_barriers(w);
}

const struct world_hooks data_hooks = {.broken = play_broken,
                                       .executor = play_executor,
                                       .launched = check_launched,
                                       .submitted = check_submitted,
                                       .stepped = check_everything};
