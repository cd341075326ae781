/*
 * Reading inventories from the lines of troupe-slurm's answers.
 */
#ifndef TRP_CLUSTER_SLURM_HELPER_INVENTORY_LINES_H
#define TRP_CLUSTER_SLURM_HELPER_INVENTORY_LINES_H

#include "cluster/slurm/accounts/inventory.h"
#include "cluster/slurm/helper/line.h"

/* One line of the answer: allocation, node or host. */
int trp_slurm_inventory_add(void *inventory, const struct trp_slurm_line *line,
                            trp_error *err);

/* "gpu:a100:2(IDX:0-1),nic:1" or "matlab:2,spss": fills at most TRP_SLURM_POOLS. */
uint32_t trp_slurm_pools_parse(const char *text, struct trp_slurm_pool *ret);

/* The node that this machine is, or UINT32_MAX. */
uint32_t trp_slurm_inventory_here(const struct trp_slurm_inventory *i);

#endif
