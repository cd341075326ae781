/*
 * Which nodes a load takes: played on an empty ledger, in the order in which executors
 * and gangs are placed; O(nodes + executors) for each kind of executors. A node that
 * its admin drains holds nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "cluster/slurm/accounts/ledger_state.h"

/* Executors, node by node: each is placed as if there were that node alone. */
static void play_executors(trp_slurm_ledger *own, struct trp_slurm_request *r,
                           uint32_t count, bool *keep)
{
    uint32_t nspans = own->nspans;
    struct trp_slurm_span first = own->spans[0], last = own->spans[nspans - 1];
    own->nspans = 1;
    own->spans[0].n = 1;
    for (int standing = TRP_SLURM_GOOD; standing <= TRP_SLURM_TAKEN; standing++) {
        for (uint32_t i = 0; i < last.begin + last.n && count; i++) {
            uint32_t node = own->order[i];
            if ((int)own->standing[node] != standing)
                continue;
            own->spans[0].begin = i;
            for (; count && trp_slurm_ledger_place(own, r, TRP_SLURM_TAKEN); count--) {
                keep[node] = true;
                r->nspots = 0;
            }
        }
    }
    own->nspans = nspans;
    own->spans[0] = first;
}

static void play_gangs(trp_slurm_ledger *own, struct trp_slurm_request *r,
                       uint32_t count, bool *keep)
{
    for (; count && trp_slurm_ledger_place(own, r, TRP_SLURM_TAKEN); count--) {
        for (uint32_t i = 0; i < r->nspots; i++)
            keep[r->spots[i].node] = true;
        r->nspots = 0;
    }
}

int trp_slurm_ledger_keep(const trp_slurm_ledger *b, const struct trp_slurm_load *loads,
                          uint32_t n, bool *keep)
{
    trp_slurm_ledger *own = trp_slurm_ledger_own(b, b->nown, NULL);
    struct trp_slurm_request r = {
        .spots = calloc((size_t)b->inventory->nnodes + 1, sizeof *r.spots)};
    int code = own && r.spots ? 0 : TRP_ENOMEM;
    if (code == 0)
        memcpy(own->standing, b->standing,
               b->inventory->nnodes * sizeof *own->standing);
    for (uint32_t i = 0; code == 0 && i < n && own->nspans; i++) {
        r.footprint = loads[i].footprint;
        r.units = loads[i].units;
        if (r.units == 1)
            play_executors(own, &r, loads[i].count, keep);
        else
            play_gangs(own, &r, loads[i].count, keep);
    }
    trp_slurm_ledger_free(own);
    free(r.spots);
    return code;
}
