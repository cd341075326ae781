/*
 * The locality levels of a set and the clock by which it moves from one to the next
 * (delay scheduling; semantics, section 7).
 *
 * A level is valid while some place that has a list has a live executor. That is
 * counted when executors come and go, at O(sets with preferences) each, never per
 * launch. A set that passes a level which no pending task needs any more drops the
 * level's lists, so that it is not valid when levels are computed next; at O(places),
 * and once until another task comes onto them.
 */
#include <string.h>

#include "core/engine_state.h"

static bool needs_level(const struct trp_task_set *s, enum trp_level level)
{
    switch (level) {
    case TRP_PROCESS_LOCAL:
        return s->pending_executor > 0;
    case TRP_NODE_LOCAL:
        return s->pending_host > 0;
    case TRP_NO_PREF:
        return s->lists.no_pref.n > 0;
    case TRP_RACK_LOCAL:
        return s->pending_rack > 0;
    default:
        return true;
    }
}

/* With the old rule the waits of a barrier set are 0: all its tasks have to start in
 * one round. */
static int64_t wait_of(const struct trp_engine *e, const struct trp_task_set *s,
                       enum trp_level level)
{
    if (s->barrier && e->config.locality_legacy_reset)
        return 0;
    return e->config.locality_wait_ns[level];
}

enum trp_level trp_task_set_allowed(struct trp_engine *e, struct trp_task_set *s,
                                    enum trp_level max)
{
    if (max == TRP_NO_PREF)
        return TRP_NO_PREF;
    while (s->current + 1 < s->nlevels) {
        enum trp_level level = s->levels[s->current];
        int64_t wait = wait_of(e, s, level);
        if (!needs_level(s, level)) {
            trp_pending_drop(s, level);
            s->locality_clock_ns = e->now;
        } else if (e->now - s->locality_clock_ns >= wait) {
            s->locality_clock_ns += wait;
        } else {
            break;
        }
        s->current++;
    }
    enum trp_level allowed = s->levels[s->current];
    return allowed < max ? allowed : max;
}

static uint32_t compute_levels(const struct trp_task_set *s, uint8_t *levels)
{
    uint32_t n = 0;
    if (s->alive_executors)
        levels[n++] = TRP_PROCESS_LOCAL;
    if (s->alive_hosts)
        levels[n++] = TRP_NODE_LOCAL;
    if (s->lists.no_pref.n)
        levels[n++] = TRP_NO_PREF;
    if (s->alive_racks)
        levels[n++] = TRP_RACK_LOCAL;
    levels[n++] = TRP_ANY;
    return n;
}

static uint8_t index_of(const uint8_t *levels, uint8_t level)
{
    uint8_t i = 0;
    while (levels[i] < level)
        i++;
    return i;
}

void trp_task_set_recompute(struct trp_task_set *s)
{
    uint8_t old[TRP_LEVELS], nold = s->nlevels, was = s->current;
    uint8_t level = s->levels[s->current];
    memcpy(old, s->levels, sizeof(old));
    trp_set_liven(s);
    s->nlevels = (uint8_t)compute_levels(s, s->levels);
    s->current = index_of(s->levels, level);
    if (s->current <= was)
        return;
    /* More local levels appeared in front: go to the most local new one. */
    for (uint8_t i = 0; i < s->nlevels; i++)
        if (!memchr(old, s->levels[i], nold)) {
            s->current = i;
            return;
        }
}

void trp_task_sets_executor_changed(struct trp_engine *e, const struct trp_executor *x,
                                    bool host_changed, bool rack_changed, int by)
{
    uint32_t rack = e->hosts.hosts[x->host].rack.n;
    for (struct trp_task_set *s = e->preferring; s; s = s->preferring_next) {
        if (trp_pending_has_executor(s, x->id.n))
            s->alive_executors += (uint32_t)by;
        if (host_changed && x->host < s->nhosts && s->lists.hosts[x->host].cap)
            s->alive_hosts += (uint32_t)by;
        if (rack_changed && rack < s->nracks && s->lists.racks[rack].cap)
            s->alive_racks += (uint32_t)by;
        if (s->zombie)
            continue;
        uint8_t was = s->levels[s->current];
        trp_task_set_recompute(s);
        if (s->levels[s->current] > was && s->pending)
            e->offer_all = true; /* tasks that waited for that place need not */
    }
}

void trp_task_set_levels(struct trp_engine *e, struct trp_task_set *s)
{
    if (s->prefer_first) {
        s->alive_executors = trp_pending_executors_alive(e, s);
        for (uint32_t i = 0; i < s->nhosts; i++)
            s->alive_hosts += s->lists.hosts[i].cap && e->hosts.hosts[i].executors;
        for (uint32_t i = 0; i < s->nracks; i++)
            s->alive_racks += s->lists.racks[i].cap && e->hosts.racks[i].executors;
    }
    s->nlevels = (uint8_t)compute_levels(s, s->levels);
}
