/*
 * Layer `alloc`: targets within the limits over all profiles. The division is the
 * engine's own (core/alloc/shares.h); in a run its claims come from task sets
 * (core/alloc/yield.c), here from the stages of the case, in the order in which
 * they were submitted.
 */
#include "sim/scenario/alloc_state.h"

int alloc_shares_open(struct alloc *s)
{
    uint32_t n = trp_profiles_count(trp_sim_profiles(s->c));
    s->profiles = calloc(n + 1, sizeof(*s->profiles));
    s->claims = calloc(n + 1, sizeof(*s->claims));
    if (!s->profiles || !s->claims)
        return TRP_ENOMEM;
    for (uint32_t p = 0; p < n; p++) {
        const struct trp_resource_profile *profile =
            trp_profiles_get(trp_sim_profiles(s->c), (trp_profile_id){p});
        trp_caps_cost(&s->caps, profile, s->profiles[p].cost);
        s->profiles[p].slots = profile->slots;
    }
    s->nprofiles = n;
    return 0;
}

void alloc_shares_close(struct alloc *s)
{
    free(s->profiles);
    free(s->claims);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The first stage of each profile that waits. */
static void order_claims(struct alloc *s)
{
    for (uint32_t i = s->stage_names.n; i-- > 0;) {
        const struct stage *stage = &s->stages[i];
        struct trp_share *claim = &s->claims[stage->profile.n];
        uint32_t slots = s->profiles[stage->profile.n].slots;
        if (!stage->live || stage->done ||
            !trp_targets_waits(s->targets, stage->handle))
            continue;
        claim->order = i;
        claim->least = stage->barrier ? (stage->ntasks + slots - 1) / slots : 0;
    }
}

void alloc_shares_find(struct alloc *s)
{
    for (uint32_t p = 0; p < s->nprofiles; p++) {
        uint32_t target = trp_targets_of(s->targets, p);
        s->claims[p] = (struct trp_share){
            .profile = p,
            .cost = s->profiles[p].cost,
            .order = UINT64_MAX,
            .work = smaller(target, trp_targets_demand(s->targets, p)),
            .all = target};
    }
    order_claims(s);
    trp_sim_work(s->c, s->stage_names.n + s->nprofiles * 10);
    trp_shares_divide(&s->caps, s->claims, s->nprofiles);
    for (uint32_t i = 0; i < s->nprofiles; i++) {
        struct alloc_profile *p = &s->profiles[s->claims[i].profile];
        p->grew = (int64_t)s->claims[i].share - p->target;
        p->target = s->claims[i].share;
    }
}
