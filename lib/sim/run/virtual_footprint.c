/*
 * What executors and ranks of gangs need of a node (core/profile/footprint.h), by
 * dimensions: cores, memory, and each device that the cluster knows.
 */
#include <string.h>

#include "core/profile/footprint.h"
#include "sim/run/virtual_state.h"

int64_t trp_virtual_footprint_of(const struct trp_virtual_footprint *n, uint32_t dim,
                                 uint64_t k)
{
    return ((int64_t)k * n->of[dim] + n->per[dim] - 1) / n->per[dim];
}

static uint32_t device_of(const trp_sim_cluster *model, const char *name)
{
    for (uint32_t i = 0; i < model->ndevices; i++)
        if (strcmp(model->devices[i], name) == 0)
            return i;
    return TRP_NONE;
}

static void need_device(const trp_sim_cluster *model, const char *name,
                        struct trp_profile_amount amount,
                        struct trp_virtual_footprint *n)
{
    uint32_t i = device_of(model, name);
    if (amount.n <= 0)
        return;
    if (i == TRP_NONE) {
        n->never = true;
        return;
    }
    n->of[2 + i] = amount.n;
    n->per[2 + i] = amount.share;
}

void trp_virtual_footprint_make(const trp_sim_cluster *model,
                                const struct trp_resource_profile *p, uint32_t ranks,
                                struct trp_virtual_footprint *ret)
{
    memset(ret, 0, sizeof *ret);
    for (uint32_t d = 0; d < TRP_SIM_DIMS; d++)
        ret->per[d] = 1;
    struct trp_profile_footprint need = trp_profile_footprint(p, ranks > 0);
    ret->of[0] = need.cores;
    ret->of[1] = need.memory_mib.n;
    ret->per[1] = need.memory_mib.share;
    for (uint32_t i = 0; i < p->ncustom; i++)
        need_device(model, p->custom[i].name, need.custom[i], ret);
}

uint64_t trp_virtual_footprint_fits(const struct trp_virtual_footprint *n,
                                    const int64_t *room, uint32_t dims)
{
    uint64_t most = UINT32_MAX;
    for (uint32_t d = 0; d < dims; d++) {
        if (n->of[d] <= 0)
            continue;
        if (room[d] <= 0)
            return 0;
        /* The greatest k with ceil(k of / per) <= room. */
        uint64_t k = (uint64_t)((__int128)room[d] * n->per[d] / n->of[d]);
        most = k < most ? k : most;
    }
    return n->never ? 0 : most;
}

void trp_virtual_group_capacity(const trp_sim_cluster *model, uint32_t group,
                                int64_t *ret_room)
{
    const struct trp_sim_group *g = &model->groups[group];
    ret_room[0] = g->cores;
    ret_room[1] = g->memory_mib;
    for (uint32_t i = 0; i < model->ndevices; i++)
        ret_room[2 + i] = g->devices[i];
}

/* What the nodes have too little of, in the words of the local cluster. */
static void why_never(const trp_virtual_cluster *c,
                      const struct trp_virtual_footprint *n,
                      const struct trp_resource_profile *p, uint32_t ranks,
                      trp_error *err)
{
    int64_t most[TRP_SIM_DIMS] = {0}, room[TRP_SIM_DIMS] = {0};
    for (uint32_t i = 0; i < p->ncustom; i++)
        if (n->never && p->custom[i].executor + p->custom[i].task > 0 &&
            device_of(c->model, p->custom[i].name) == TRP_NONE) {
            trp_error_set(err, TRP_ENEVER, "%s wanted, no node has any",
                          p->custom[i].name);
            return;
        }
    for (uint32_t g = 0; g < c->model->ngroups; g++) {
        trp_virtual_group_capacity(c->model, g, room);
        for (uint32_t d = 0; d < c->dims; d++)
            most[d] = room[d] > most[d] ? room[d] : most[d];
    }
    for (uint32_t d = 0; d < c->dims; d++) {
        int64_t want = trp_virtual_footprint_of(n, d, 1);
        struct trp_memory_pair m = trp_memory_pair(want, most[d]);
        if (want <= most[d])
            continue;
        if (d == 1)
            trp_error_set(err, TRP_ENEVER, "memory wanted %s, available %s", m.a, m.b);
        else
            trp_error_set(err, TRP_ENEVER, "%s wanted %lld, available %lld",
                          d ? c->model->devices[d - 2] : "cores", (long long)want,
                          (long long)most[d]);
        return;
    }
    if (ranks > 1)
        trp_error_set(err, TRP_ENEVER, "%u ranks do not fit at once", ranks);
    else
        trp_error_set(err, TRP_ENEVER, "no free node has all that it needs");
}

uint32_t trp_virtual_fit(const trp_virtual_cluster *c,
                         const struct trp_resource_profile *p, uint32_t ranks,
                         uint32_t *ret_inside, trp_error *err)
{
    struct trp_virtual_footprint n;
    int64_t room[TRP_SIM_DIMS] = {0};
    uint64_t in = 0, out = 0;
    trp_virtual_footprint_make(c->model, p, ranks, &n);
    for (uint32_t i = 0; i < c->nzones; i++) {
        const struct trp_virtual_zone *z = &c->zones[i];
        trp_virtual_group_capacity(c->model, z->group, room);
        uint64_t fits = trp_virtual_footprint_fits(&n, room, c->dims);
        *(z->inside ? &in : &out) += fits * (z->to - z->from - z->busy);
    }
    if (ranks) { /* a gang is inside, or outside */
        in /= ranks;
        out /= ranks;
    }
    if (ret_inside)
        *ret_inside = in < UINT32_MAX ? (uint32_t)in : UINT32_MAX;
    uint64_t all = in + out;
    if (all == 0)
        why_never(c, &n, p, ranks, err);
    return all < UINT32_MAX ? (uint32_t)all : UINT32_MAX;
}
