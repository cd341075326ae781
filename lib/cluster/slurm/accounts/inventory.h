/*
 * What the driver's own job, and additional jobs, were granted: nodes with their cores,
 * memory, generic resources, features and racks, as troupe-slurm found them. All nodes
 * are one set; each knows the part it is in: the component of a heterogeneous job, or
 * the additional job.
 */
#ifndef TRP_CLUSTER_SLURM_ACCOUNTS_INVENTORY_H
#define TRP_CLUSTER_SLURM_ACCOUNTS_INVENTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

enum {
    TRP_SLURM_WORD = 64,
    TRP_SLURM_POOLS = 8,
    TRP_SLURM_NAME = 128,
    TRP_SLURM_MPI_TYPES = 512,
};

/* Devices of one kind on a node, or licences of a job. */
struct trp_slurm_pool {
    char name[TRP_SLURM_WORD]; /* gpu */
    char type[TRP_SLURM_WORD]; /* a100; "": none */
    uint32_t count;
};

struct trp_slurm_node {
    char *name, *host; /* Slurm's name; the machine's own */
    char *rack;        /* "" none */
    char *features;    /* "a,b" */
    uint32_t part;     /* index of its trp_slurm_part */
    uint32_t cores;    /* Slurm's CPUs, granted */
    uint32_t threads;  /* handed out together; 1: one by one */
    uint32_t sockets;
    int64_t memory_mib;
    struct trp_slurm_pool pools[TRP_SLURM_POOLS];
    uint32_t npools;
};

/* A job, or a component of a heterogeneous one. */
struct trp_slurm_part {
    uint32_t job, leader;
    int component; /* -1: an ordinary job */
    bool ahead;    /* had for executors that nobody needs yet */
    struct trp_slurm_pool licences[TRP_SLURM_POOLS];
    uint32_t nlicences;
};

/* Where the driver's job is: additional jobs go there when the site says nothing. */
struct trp_slurm_place {
    char partition[TRP_SLURM_NAME], account[TRP_SLURM_NAME], qos[TRP_SLURM_NAME],
        reservation[TRP_SLURM_NAME]; /* "": none */
};

/* An entry of `parts` with job 0, or of `nodes` without a name, is free. */
struct trp_slurm_inventory {
    bool live; /* the job runs */
    uint32_t uid;
    int64_t started, ends; /* seconds since 1970 */
    bool memory_enforced;  /* Slurm hands memory out */
    char state[TRP_SLURM_WORD];
    struct trp_slurm_place place;
    char batch_host[TRP_SLURM_NAME]; /* where the batch step is, if there is one */
    struct trp_slurm_part *parts;
    uint32_t nparts, parts_cap;
    struct trp_slurm_node *nodes; /* in Slurm's order */
    uint32_t nnodes, nodes_cap;
    char mpi_types[TRP_SLURM_MPI_TYPES]; /* of srun --mpi, "none pmix"; "": not known */
    int64_t calls, call_ms; /* that Slurm lets a user make at once, and the time until
                             * there is another; 0: there is no limit */
};

void trp_slurm_inventory_free(struct trp_slurm_inventory *i);

/* Moves the first part of `from`, with its nodes, into `i`. TRP_ENOMEM. */
int trp_slurm_inventory_merge(struct trp_slurm_inventory *i,
                              struct trp_slurm_inventory *from, uint32_t *ret_part);
/* Forgets a part and its nodes, or one node; their entries are free. */
void trp_slurm_inventory_remove(struct trp_slurm_inventory *i, uint32_t part);
void trp_slurm_inventory_remove_node(struct trp_slurm_inventory *i, uint32_t node);

#endif
