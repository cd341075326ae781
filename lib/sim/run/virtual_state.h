/*
 * What the parts of a virtual cluster share; virtual_cluster.h is the contract.
 *
 *     virtual_cluster.c   making, placing, giving back, accounts
 *     virtual_lines.c     who waits: lines, jobs, serving
 *     virtual_footprint.c what shares need, what nodes hold
 */
#ifndef TRP_SIM_RUN_VIRTUAL_STATE_H
#define TRP_SIM_RUN_VIRTUAL_STATE_H

#include "core/base/array.h"
#include "sim/run/node_tree.h"
#include "sim/run/virtual_cluster.h"

enum { TRP_SIM_DIMS = 2 + TRP_PROFILE_RESOURCES }; /* cores, memory, devices */

/* What so many shares or ranks need: amount(k) = ceil(k × of / per). */
struct trp_virtual_footprint {
    int64_t of[TRP_SIM_DIMS], per[TRP_SIM_DIMS];
    bool never; /* wants a device that the cluster does not know */
};
int64_t trp_virtual_footprint_of(const struct trp_virtual_footprint *n, uint32_t dim,
                                 uint64_t k);
void trp_virtual_footprint_make(const trp_sim_cluster *model,
                                const struct trp_resource_profile *p, uint32_t ranks,
                                struct trp_virtual_footprint *ret);
/* How many the room holds. */
uint64_t trp_virtual_footprint_fits(const struct trp_virtual_footprint *n,
                                    const int64_t *room, uint32_t dims);
void trp_virtual_group_capacity(const trp_sim_cluster *model, uint32_t group,
                                int64_t *ret_room);

/* Nodes from … to - 1: those of a group inside, or outside. */
struct trp_virtual_zone {
    uint32_t group, from, to;
    uint32_t busy; /* nodes that others have */
    bool inside;
};

struct trp_virtual_place { /* of a gang */
    uint32_t node, ranks;
};

enum trp_share_state { TRP_SHARE_FREE, TRP_SHARE_WAITS, TRP_SHARE_HAS, TRP_SHARE_LEFT };

struct trp_virtual_share {
    uint32_t line, owner; /* TRP_NONE: left */
    uint32_t node;        /* a gang: its first */
    uint32_t next, prev;  /* in its line's list; next free */
    uint32_t node_next, node_prev;
    uint8_t state;
    bool may_add;
    uint64_t asked; /* the order in which shares began to wait */
    int64_t since;
    uint32_t nplaces, places_capacity; /* gang */
    struct trp_virtual_place *places;
};

struct trp_virtual_list {
    uint32_t first, last, n;
};

struct trp_virtual_line {
    trp_profile_id profile;
    uint32_t ranks;
    struct trp_virtual_footprint need;
    int64_t one[TRP_SIM_DIMS];      /* need of one share, or of one rank */
    uint32_t inside_mask, out_mask; /* zones that can ever hold one */
    struct trp_virtual_list waits, has, left;
    uint32_t may_add; /* of those that wait: for which jobs may be requested */
    uint32_t asked;   /* of those that wait: covered by jobs */
    uint32_t credit;  /* of those: by jobs whose wait is over */
    uint32_t needed;  /* of one ahead: the line of the same without */
    bool ahead;
    char *not_on; /* hosts where its shares are not to be, NULL: anywhere */
};

struct trp_virtual_node {
    uint32_t first; /* share there */
    uint32_t used;  /* shares and gangs there */
    uint32_t use;   /* how often it came into use */
    bool down;
    int64_t since; /* held, with whole nodes */
};

struct trp_virtual_cluster {
    struct trp_virtual_config config;
    const trp_sim_cluster *model;
    uint32_t dims;
    struct trp_virtual_zone zones[2 * TRP_SIM_GROUPS];
    uint32_t nzones;
    uint32_t nnodes, ninside;
    struct trp_virtual_node *nodes;
    trp_node_tree *tree;
    struct trp_virtual_line *lines;
    uint32_t nlines, lines_cap;
    struct trp_virtual_share *shares;
    uint32_t nshares, shares_cap, free_share;
    uint64_t serial;
    struct trp_sim_amounts held; /* by what was given back, outside */
    bool failed;                 /* out of memory */
};

/* virtual_cluster.c */
/* Places a share in one of the zones; false: no room now. */
bool trp_virtual_place(trp_virtual_cluster *c, uint32_t share, uint32_t zones,
                       int64_t now);
/* Its room is free again. */
void trp_virtual_unplace(trp_virtual_cluster *c, uint32_t share, int64_t now,
                         bool counts);
void trp_virtual_share_free(trp_virtual_cluster *c, uint32_t share);

#endif
