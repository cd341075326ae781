/*
 * The racks of nodes, and the driver's job's nodes for `troupe topo`: what executors
 * may use of them, by rack and name.
 */
#include <stdlib.h>
#include <string.h>

#include "cluster/slurm/helper/job_answer.h"
#include "cluster/slurm/shared/slurm_state.h"
#include "conf/racks.h"

static int compare_hosts(const void *a, const void *b)
{
    const struct trp_host_view *x = a, *y = b;
    int racks = trp_natural_compare(x->rack, y->rack);
    return racks ? racks : trp_natural_compare(x->name, y->name);
}

/* Addresses are counted from 0: which device it is a step learns when it starts. */
static int add_devices(const struct trp_slurm_node *n,
                       struct trp_resource_addresses *ret, uint32_t *ret_n)
{
    for (uint32_t i = 0; i < n->npools; i++) {
        uint32_t count = n->pools[i].count;
        char **v = calloc(count + 1, sizeof *v);
        struct trp_resource_addresses *d = &ret[(*ret_n)++];
        *d = (struct trp_resource_addresses){
            .name = *n->pools[i].type ? n->pools[i].type : n->pools[i].name,
            .addresses = (const char *const *)v};
        while (v && d->naddresses < count &&
               asprintf(&v[d->naddresses], "%u", d->naddresses) >= 0)
            d->naddresses++;
        if (d->naddresses < count)
            return TRP_ENOMEM;
    }
    return 0;
}

int trp_slurm_view_make(struct trp_slurm *s, trp_error *err)
{
    uint32_t n = s->inventory.nnodes, k = 0;
    int code = 0;
    s->hosts = calloc((size_t)n + 1, sizeof *s->hosts);
    s->devices = calloc((size_t)n * TRP_SLURM_POOLS + 1, sizeof *s->devices);
    for (uint32_t i = 0; s->hosts && s->devices && i < n && code == 0; i++) {
        const struct trp_slurm_node *node = &s->inventory.nodes[i];
        struct trp_host_view *h = &s->hosts[k];
        struct trp_resource_addresses *devices =
            s->devices + (size_t)k * TRP_SLURM_POOLS;
        if (!node->name || trp_slurm_additional_of(s, node->part))
            continue;
        k++;
        *h = (struct trp_host_view){.name = node->name,
                                    .rack = node->rack,
                                    .cores = trp_slurm_ledger_cores(s->ledger, i),
                                    .sockets = node->sockets,
                                    .memory_mib = trp_slurm_ledger_memory(s->ledger, i),
                                    .model = "",
                                    .devices = devices};
        code = add_devices(node, devices, &h->ndevices);
    }
    if (s->hosts && s->devices)
        s->topology = (struct trp_topology){.hosts = s->hosts, .nhosts = k};
    if (!s->hosts || !s->devices || code < 0)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the topology");
    qsort(s->hosts, k, sizeof *s->hosts, compare_hosts);
    return 0;
}

void trp_slurm_view_free(struct trp_slurm *s)
{
    size_t n = (size_t)s->topology.nhosts * TRP_SLURM_POOLS;
    for (size_t i = 0; s->devices && i < n; i++) {
        struct trp_resource_addresses *d = &s->devices[i];
        for (uint32_t k = 0; k < d->naddresses; k++)
            free((void *)(uintptr_t)d->addresses[k]);
        free((void *)(uintptr_t)d->addresses);
    }
    free(s->devices);
    free(s->hosts);
    s->devices = NULL;
    s->hosts = NULL;
    s->topology = (struct trp_topology){0};
}

/* What the site file says of racks is stronger than Slurm's switches; a host of which
 * it says nothing keeps the rack it has. */
int trp_slurm_set_racks(const struct trp_slurm *s,
                        struct trp_slurm_inventory *inventory, trp_error *err)
{
    char name[TRP_RACKS_NAME_MAX + 1];
    trp_racks *racks = NULL;
    int code = trp_slurm_answer_racks(s->job_answer, inventory, err);
    if (code == 0)
        code = trp_racks_open(s->site, &racks, err);
    for (uint32_t i = 0; racks && i < inventory->nnodes && code == 0; i++) {
        struct trp_slurm_node *n = &inventory->nodes[i];
        char *rack = strdup(trp_racks_of(racks, n->name, name, sizeof name));
        if (!rack) {
            code = trp_error_set(err, TRP_ENOMEM, "out of memory");
        } else if (*rack) {
            free(n->rack);
            n->rack = rack;
        } else {
            free(rack);
        }
    }
    trp_racks_close(racks);
    return code;
}
