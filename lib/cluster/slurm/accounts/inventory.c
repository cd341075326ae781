/*
 * Additional jobs come and go. Entries that are free are used again, so that an index
 * stays what it is while its job lives.
 */
#include <stdlib.h>
#include <string.h>

#include "cluster/slurm/accounts/inventory.h"
#include "core/base/array.h"

void trp_slurm_inventory_free(struct trp_slurm_inventory *i)
{
    for (uint32_t k = 0; k < i->nnodes; k++) {
        free(i->nodes[k].name);
        free(i->nodes[k].host);
        free(i->nodes[k].rack);
        free(i->nodes[k].features);
    }
    free(i->nodes);
    free(i->parts);
    memset(i, 0, sizeof *i);
}

/* A free entry for a part; its index, or UINT32_MAX. */
static uint32_t free_part(struct trp_slurm_inventory *i)
{
    for (uint32_t k = 0; k < i->nparts; k++) {
        if (!i->parts[k].job)
            return k;
    }
    if (!TRP_ARRAY_GROW(i->parts, i->nparts, i->parts_cap))
        return UINT32_MAX;
    i->parts[i->nparts] = (struct trp_slurm_part){0};
    return i->nparts++;
}

/* The first free entry for a node from `*at` on. */
static struct trp_slurm_node *free_node(struct trp_slurm_inventory *i, uint32_t *at)
{
    for (; *at < i->nnodes; ++*at) {
        if (!i->nodes[*at].name)
            return &i->nodes[*at];
    }
    if (!TRP_ARRAY_GROW(i->nodes, i->nnodes, i->nodes_cap))
        return NULL;
    i->nodes[i->nnodes] = (struct trp_slurm_node){0};
    return &i->nodes[i->nnodes++];
}

int trp_slurm_inventory_merge(struct trp_slurm_inventory *i,
                              struct trp_slurm_inventory *from, uint32_t *ret_part)
{
    uint32_t part = from->nparts ? free_part(i) : UINT32_MAX, at = 0;
    if (part == UINT32_MAX)
        return TRP_ENOMEM;
    i->parts[part] = from->parts[0];
    for (uint32_t k = 0; k < from->nnodes; k++) {
        struct trp_slurm_node *n = free_node(i, &at);
        if (!n) {
            trp_slurm_inventory_remove(i, part);
            return TRP_ENOMEM;
        }
        *n = from->nodes[k];
        n->part = part;
        from->nodes[k] = (struct trp_slurm_node){0};
    }
    *ret_part = part;
    return 0;
}

void trp_slurm_inventory_remove_node(struct trp_slurm_inventory *i, uint32_t node)
{
    struct trp_slurm_node *n = &i->nodes[node];
    free(n->name);
    free(n->host);
    free(n->rack);
    free(n->features);
    *n = (struct trp_slurm_node){0};
}

void trp_slurm_inventory_remove(struct trp_slurm_inventory *i, uint32_t part)
{
    for (uint32_t k = 0; k < i->nnodes; k++) {
        if (i->nodes[k].name && i->nodes[k].part == part)
            trp_slurm_inventory_remove_node(i, k);
    }
    i->parts[part] = (struct trp_slurm_part){0};
}
