/*
 * The invariants of the subject "data" that concern the whole, after every step and at
 * the end.
 */
#include "data_world.h"
#include "memory.h"

#define BREAK(w, broken, ...) verdict_break((w)->verdict, broken, __VA_ARGS__)

/* Outputs lie where somebody can read them. */
static void check_outputs(struct data_world *w)
{
    for (uint32_t i = 0; i < trp_engine_stages(w->engine); i++) {
        const struct trp_stage *s = trp_stage_find(w->engine, (trp_stage_id){i});
        for (uint32_t k = 0; s && s->is_map && k < s->ntasks; k++) {
            trp_executor_id x;
            const char *host;
            if (trp_engine_output(w->engine, s->id, k, &x, &host) < 0)
                continue;
            if (x.n != TRP_NONE && w->executors[x.n].state == DW_GONE)
                BREAK(w, "outputs lie on executors that live",
                      "stage %u map %u is on executor %u", i, k, x.n);
        }
    }
}

/* A barrier attempt is launched as a whole. */
static void check_barriers(struct data_world *w)
{
    for (uint32_t i = 0; i < trp_engine_stages(w->engine) && i < DW_STAGES; i++) {
        const struct trp_stage *s = trp_stage_find(w->engine, (trp_stage_id){i});
        const struct dw_stage *d = &w->stages[i];
        if (!s || !s->barrier || !s->set || d->set != s->set->stage_attempt + 1)
            continue;
        if (d->launched && d->launched != s->set->ntasks)
            BREAK(w, "a barrier stage starts as a whole", "stage %u.%u: %u of %u tasks",
                  i, s->set->stage_attempt, d->launched, s->set->ntasks);
    }
}

static void check_stage(struct data_world *w, const struct trp_stage *s)
{
    uint32_t running = 0, queued = 0;
    struct trp_stage_view v;
    trp_engine_stage(w->engine, s->id, &v);
    for (uint32_t i = 0; s->set && i < w->nattempts; i++) {
        const struct dw_attempt *a = &w->attempts[i];
        bool is = a->stage == s->id.n && a->stage_attempt == s->set->stage_attempt;
        running += is && !a->queued;
        queued += is && a->queued;
    }
    if (v.running != running || v.queued != queued)
        BREAK(w, "counts equal lists", "stage %u: %u running (told %u), %u queued (%u)",
              s->id.n, running, v.running, queued, v.queued);
    if (!s->set || s->set->zombie || s->barrier || s->set->prefer_first || !v.pending ||
        w->engine->draining || trp_keep_keeper(w->engine, s->set))
        return; /* what is kept for another: the engine's own check */
    for (uint32_t i = 0; i < w->nexecutors; i++) {
        const struct dw_executor *x = &w->executors[i];
        if (x->state == DW_LIVE && !x->decommissioned && x->used < x->cores &&
            x->label == s->set->class->profile.n)
            BREAK(w, "no slot stays empty while a task may run there",
                  "executor %u has room, stage %u has %u pending", i, s->id.n,
                  v.pending);
    }
}

void data_check_everything(struct data_world *w)
{
    trp_error err;
    for (uint32_t i = 0; i < trp_engine_stages(w->engine); i++) {
        const struct trp_stage *s = trp_stage_find(w->engine, (trp_stage_id){i});
        if (s)
            check_stage(w, s);
    }
    check_outputs(w);
    check_barriers(w);
    if (trp_engine_sanity_check(w->engine, &err) < 0)
        BREAK(w, "the engine's own check", "%s", err.text);
}

void data_check_memory(struct data_world *w)
{
    int64_t ids = trp_engine_stages(w->engine) + w->njobs + w->nexecutors;
    int64_t limit = w->memory_before + 16384 + ids * 64 + w->ndatasets * 1024 +
                    (int64_t)w->most_attempts * 160 + (int64_t)w->most_actions * 320;
    for (uint32_t i = 0; i < trp_engine_stages(w->engine); i++)
        if (trp_stage_find(w->engine, (trp_stage_id){i}))
            BREAK(w, "no stage is left when all jobs are done", "stage %u", i);
    if (memory_held() > limit)
        BREAK(w, "memory comes back when jobs are done",
              "%lld bytes more, %lld may stay",
              (long long)(memory_held() - w->memory_before),
              (long long)(limit - w->memory_before));
}
