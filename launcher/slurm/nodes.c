/*
 * What nodes the cluster has, whoever uses them now: to tell what can never be had from
 * what cannot be had at this moment. Neighbours that are alike are one line.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

static void put_partition(FILE *to, uint32_t number, const partition_info_t *p)
{
    trp_slurm_line_begin(to, number, "partition");
    trp_slurm_line_put(to, "name", p->name);
    trp_slurm_line_put_number(to, "default", (p->flags & PART_FLAG_DEFAULT) != 0);
    trp_slurm_line_put_number(to, "up", p->state_up == PARTITION_UP);
    trp_slurm_line_put_number(to, "time", p->max_time == INFINITE ? 0 : p->max_time);
    trp_slurm_line_put_number(
        to, "cpus", p->max_cpus_per_node == INFINITE ? 0 : p->max_cpus_per_node);
    trp_slurm_line_end(to);
}

static bool is_same(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool are_alike(const node_info_t *a, const node_info_t *b)
{
    return a->cpus_efctv == b->cpus_efctv && a->real_memory == b->real_memory &&
           a->mem_spec_limit == b->mem_spec_limit && a->threads == b->threads &&
           is_same(a->features_act, b->features_act) &&
           is_same(a->features, b->features) && is_same(a->gres, b->gres) &&
           is_same(a->partitions, b->partitions) && is_same(a->version, b->version);
}

static void put_shape(FILE *to, uint32_t number, const slurm_conf_t *conf,
                      const node_info_t *n, uint32_t nodes, const node_info_t *oldest)
{
    bool whole = trp_slurm_cores_are_whole(conf);
    trp_slurm_line_begin(to, number, "shape");
    trp_slurm_line_put_number(to, "nodes", nodes);
    trp_slurm_line_put_number(to, "cpus", n->cpus_efctv ? n->cpus_efctv : n->cpus);
    trp_slurm_line_put_number(to, "threads", whole && n->threads ? n->threads : 1);
    trp_slurm_line_put_number(to, "memory",
                              (int64_t)(n->real_memory - n->mem_spec_limit));
    trp_slurm_line_put(to, "features", n->features_act);
    trp_slurm_line_put(to, "available", n->features);
    trp_slurm_line_put(to, "gres", n->gres);
    trp_slurm_line_put(to, "partitions", n->partitions);
    trp_slurm_line_put(to, "version", n->version);
    trp_slurm_line_put(to, "oldest", oldest->name);
    trp_slurm_line_put_number(to, "since", (int64_t)oldest->slurmd_start_time);
    trp_slurm_line_end(to);
}

int trp_slurm_call_nodes(FILE *to, uint32_t number)
{
    const struct trp_slurm_facts *f = trp_slurm_facts_load();
    partition_info_msg_t *parts = NULL;
    if (!f)
        return errno;
    trp_slurm_rpcs++;
    if (slurm_load_partitions(0, &parts, SHOW_ALL | SHOW_LOCAL) != SLURM_SUCCESS)
        return errno;
    for (uint32_t i = 0; i < parts->record_count; i++)
        put_partition(to, number, &parts->partition_array[i]);
    slurm_populate_node_partitions(f->nodes, parts);
    const node_info_t *oldest = NULL;
    for (uint32_t i = 0, n = 1; i < f->nodes->record_count; i++, n++) {
        const node_info_t *a = &f->nodes->node_array[i];
        if (!oldest || a->slurmd_start_time < oldest->slurmd_start_time)
            oldest = a;
        if (i + 1 < f->nodes->record_count && are_alike(a, a + 1))
            continue;
        if (a->name)
            put_shape(to, number, f->conf, a, n, oldest);
        n = 0;
        oldest = NULL;
    }
    slurm_free_partition_info_msg(parts);
    return 0;
}
