/* A world whose breaking is the verdict on a stream. */
#include "play.h"

#include "memory.h"

void play_broken(struct world *w, const char *what, const char *text)
{
    verdict_break(((struct play *)w)->verdict, what, "%s", text);
}

/* Those that serve a profile, or with `all` every one that is there. One that was told
 * to go by others is replaced before it has gone. */
static uint32_t count_executors(const struct world *w, uint32_t label, bool all)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->nexecutors; i++) {
        const struct world_executor *x = &w->executors[i];
        bool there = x->state == WORLD_REQUESTED || x->state == WORLD_LIVE;
        n += (there && (all || (x->label == label && !x->decommissioned))) ||
             (all && x->state == WORLD_RELEASED && x->came);
    }
    return n;
}

void play_executor(struct world *w, const struct trp_action *a)
{
    uint32_t label = a->executor.profile.n;
    if (a->kind == TRP_ACTION_RELEASE_EXECUTOR && w->config.fixed)
        world_break(w, "a fixed executor stays", "executor %u", a->executor.executor.n);
    if (a->kind != TRP_ACTION_START_EXECUTOR || w->appeared)
        return;
    if (count_executors(w, label, false) >= w->config.max_executors)
        world_break(w, "targets are within bounds",
                    "profile %u: more than %u executors", label,
                    w->config.max_executors);
    if (count_executors(w, label, true) >= w->config.alloc_max_executors)
        world_break(w, "targets are within bounds", "more than %u executors",
                    w->config.alloc_max_executors);
}

void play_open(struct play *p, const struct trp_engine_config *config,
               trp_profiles *profiles, const struct world_hooks *hooks,
               struct verdict *verdict, FILE *explain)
{
    int64_t before = memory_held();
    world_init_with(&p->world, profiles);
    p->world.hooks = hooks;
    p->world.explain = explain;
    p->world.manual = true;
    p->verdict = verdict;
    p->memory_before = before;
    world_start(&p->world, config);
}

void play_check_memory(struct play *p, int64_t further)
{
    const struct world *w = &p->world;
    int64_t ids = trp_engine_stages(w->engine) + w->njobs + w->nexecutors;
    int64_t limit = p->memory_before + further + ids * 72 +
                    (int64_t)w->most_attempts * 160 + (int64_t)w->most_actions * 320;
    if (memory_held() > limit && !w->broken)
        world_break(&p->world, "memory comes back when jobs are done",
                    "%lld bytes more, %lld may stay",
                    (long long)(memory_held() - p->memory_before),
                    (long long)(limit - p->memory_before));
}

void play_appear(struct world *w, trp_profile_id profile, const char *host)
{
    uint32_t n = world_expect(w, profile);
    world_come_on(w, n, host, NULL);
}

void play_gone(struct world *w, uint32_t which)
{
    uint32_t n = world_executor_in(w, WORLD_RELEASED, which);
    if (n == TRP_NONE)
        return;
    if (w->executors[n].came)
        world_lose(w, n, TRP_LOSS_RELEASED);
    else
        world_refuse(w, n, TRP_REFUSED_FAILED, "the cluster says no");
}

void play_steps(struct play *p, const struct stream *s,
                void (*step)(struct play *p, const struct step *s),
                void (*each)(struct play *p))
{
    struct world *w = &p->world;
    for (uint32_t i = 0; i < s->nsteps && !w->broken; i++) {
        p->verdict->at = i;
        world_say(w, "%lld ms: ", (long long)(w->now / MS));
        if (w->explain)
            stream_write_step(s, i, w->explain);
        world_say(w, "\n");
        step(p, &s->steps[i]);
        if (each)
            each(p);
    }
    if (w->broken)
        return;
    p->verdict->at = s->nsteps;
    world_say(w, "to the end\n");
}

uint64_t play_close(struct play *p)
{
    uint64_t hash = p->world.hash;
    world_say(&p->world, "%s\n",
              p->world.broken ? p->verdict->text : "every invariant held");
    world_free(&p->world);
    return hash;
}
