/*
 * Cluster files: a cluster that nobody here has (docs/simulator.md).
 *
 *     cluster: 1
 *     queue: {wait: {exponential: {mean: 10m}}, per_node: 2s}
 *     start_up: 3s
 *     failures: {node: 1000d, repair: 2h, executor: 300d, task: 0.0001}
 *     whole_nodes: false
 *     nodes:
 *       - {name: cpu, count: 200, cores: 64, memory: 256g, racks: 10, inside: 4}
 *       - {name: gpu, count: 20, cores: 32, memory: 512g, devices: {gpu: 4}, busy: 0.5}
 *
 * `inside` nodes are those of the driver's own job; without it, the first node of the
 * first group is. `busy` is the part of the others that other users have all the time.
 * Every error says FILE:LINE:COL.
 */
#ifndef TRP_SIM_RUN_CLUSTER_FILE_H
#define TRP_SIM_RUN_CLUSTER_FILE_H

#include "sim/run/distribution.h"

enum {
    TRP_SIM_GROUPS = 16,
    TRP_SIM_NODES = 1000000,     /* of a cluster */
    TRP_SIM_NODE_CORES = 65536,  /* of a node */
    TRP_SIM_NODE_DEVICES = 4096, /* of one kind, of a node */
};

struct trp_sim_group {
    char *name;
    uint32_t count, racks, inside;
    int64_t cores, memory_mib;
    uint32_t devices[TRP_PROFILE_RESOURCES]; /* by index of `devices` of the cluster */
    double busy;
    bool inside_written;
};

typedef struct trp_sim_cluster {
    struct trp_conf_arena arena;
    char *file;
    struct trp_sim_group groups[TRP_SIM_GROUPS];
    uint32_t ngroups;
    char *devices[TRP_PROFILE_RESOURCES]; /* names, in order of the file */
    uint32_t ndevices;
    struct trp_distribution wait;
    int64_t wait_per_node_ns;
    struct trp_distribution start_up;
    int64_t node_mtbf_ns, node_repair_ns; /* mtbf 0: never */
    int64_t executor_mtbf_ns;
    double task_failure; /* probability, an attempt */
    bool whole_nodes;
} trp_sim_cluster;

/* `text` NULL: that of the file. TRP_EINVAL with FILE:LINE:COL. Free with
 * trp_sim_cluster_free. */
int trp_sim_cluster_parse(const char *file, const char *text, size_t size,
                          trp_sim_cluster **ret, trp_error *err);
void trp_sim_cluster_free(trp_sim_cluster *c);

#endif
