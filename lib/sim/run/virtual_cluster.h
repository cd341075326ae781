/*
 * A cluster in virtual time: nodes, what is free on them, who waits for room.
 *
 * A *share* is the room of one executor, or of all ranks of a gang. Shares of the same
 * profile wait in one *line*, first come first served; a share that waits longer in
 * another line is never overtaken on the nodes that it could use.
 *
 * *Inside* are nodes of the driver's own job, held whole from its start to the end of
 * the run; room there costs no wait. What finds none there asks for *jobs*: the shares
 * of a line that begin to wait together are one job, which waits in the queue and then
 * takes room outside, share by share as it becomes free. With `whole_jobs` a job starts
 * only when there is room for all of it, and keeps all its room until the last of its
 * shares is given back: a Slurm job as a user would submit it.
 *
 * What is requested *ahead*, before anybody needs it, waits in a line of its own: it
 * has room outside only, and after all others.
 *
 *     share = trp_virtual_ask(c, line, owner);
 *     trp_virtual_submit(c, now);      → job() for what finds no room inside
 *     trp_virtual_job_ready(c, line, n);
 *     trp_virtual_serve(c, now);       → granted() for each share that has room
 *     trp_virtual_leave(c, share, now);
 */
#ifndef TRP_SIM_RUN_VIRTUAL_CLUSTER_H
#define TRP_SIM_RUN_VIRTUAL_CLUSTER_H

#include "core/profile/profile.h"
#include "sim/run/cluster_file.h"

typedef struct trp_virtual_cluster trp_virtual_cluster;

/* Amounts of what a run holds or uses; of nodes the largest part of any resource. In
 * the end they are times seconds. */
struct trp_sim_amounts {
    double nodes, cores, devices[TRP_PROFILE_RESOURCES];
};
void trp_sim_amounts_add(struct trp_sim_amounts *to, const struct trp_sim_amounts *what,
                         double times);

struct trp_virtual_handler {
    void *context;
    /* A job of `shares` shares on about `nodes` nodes goes into the queue. */
    void (*job)(void *context, uint32_t line, uint32_t shares, uint32_t nodes);
    /* The share has room from now on. */
    void (*granted)(void *context, uint32_t share);
    /* A node is used by us that was not; `use` counts how often. */
    void (*node_used)(void *context, uint32_t node, uint32_t use);
};

struct trp_virtual_config {
    const trp_sim_cluster *model;
    const uint32_t *inside; /* nodes of each group */
    uint64_t seed;
    bool inside_only; /* there are no additional jobs */
    bool whole_jobs;
    struct trp_virtual_handler handler;
};

int trp_virtual_cluster_new(const struct trp_virtual_config *config,
                            trp_virtual_cluster **ret, trp_error *err);
void trp_virtual_cluster_free(trp_virtual_cluster *c);

/* How many executors of a profile (ranks 0), or gangs of `ranks` ranks, the cluster
 * holds at once when we have all of it but what others have; 0 with `err` filled
 * (TRP_ENEVER). With `ret_inside`: how many of them inside. */
uint32_t trp_virtual_fit(const trp_virtual_cluster *c,
                         const struct trp_resource_profile *p, uint32_t ranks,
                         uint32_t *ret_inside, trp_error *err);

/* The line of a profile (ranks 0) or of its gangs; made when new. `ahead`: the other
 * one was made before. `not_on`: hosts where its shares are not to be, "h1,h2", or "";
 * copied. TRP_NONE: out of memory. */
uint32_t trp_virtual_line(trp_virtual_cluster *c, const struct trp_resource_profile *p,
                          uint32_t ranks, bool ahead, const char *not_on);
/* About how many nodes outside so many executors take. */
uint32_t trp_virtual_nodes(trp_virtual_cluster *c, const struct trp_resource_profile *p,
                           uint32_t executors);

/* A new share that waits for room inside. TRP_NONE: out of memory. */
uint32_t trp_virtual_ask(trp_virtual_cluster *c, uint32_t line, uint32_t owner);
/* A job may be requested for one that waits. */
void trp_virtual_may_add(trp_virtual_cluster *c, uint32_t share);
/* Withdraws it, or gives its room back. */
void trp_virtual_leave(trp_virtual_cluster *c, uint32_t share, int64_t now);

/* After all that was requested at one time: what has no room inside goes into the
 * queue; and everybody is served. */
void trp_virtual_submit(trp_virtual_cluster *c, int64_t now);
void trp_virtual_job_ready(trp_virtual_cluster *c, uint32_t line, uint32_t shares);
void trp_virtual_serve(trp_virtual_cluster *c, int64_t now);

/* One that waits was requested ahead and is needed now: it keeps its place in the
 * queue, and may have room inside. */
void trp_virtual_share_needed(trp_virtual_cluster *c, uint32_t share);

/* The node fails: nothing is placed there until it is repaired. False: it is not in
 * use (any more, since `use`), nothing happened. The shares there, which still have to
 * leave, are in *ret; free it. */
bool trp_virtual_node_fails(trp_virtual_cluster *c, uint32_t node, uint32_t use,
                            uint32_t **ret, uint32_t *ret_n);
void trp_virtual_node_repaired(trp_virtual_cluster *c, uint32_t node);

/* About a share that has room. */
uint32_t trp_virtual_owner(const trp_virtual_cluster *c, uint32_t share);
uint32_t trp_virtual_node(const trp_virtual_cluster *c, uint32_t share);
trp_profile_id trp_virtual_profile(const trp_virtual_cluster *c, uint32_t share);
bool trp_virtual_is_outside(const trp_virtual_cluster *c, uint32_t share);
bool trp_virtual_is_gang(const trp_virtual_cluster *c, uint32_t share);
struct trp_sim_amounts trp_virtual_amounts(const trp_virtual_cluster *c,
                                           uint32_t share);
/* Names, into buf; returns buf. */
char *trp_virtual_host(const trp_virtual_cluster *c, uint32_t node, char *buf,
                       size_t size);
char *trp_virtual_rack(const trp_virtual_cluster *c, uint32_t node, char *buf,
                       size_t size);

uint32_t trp_virtual_inside_nodes(const trp_virtual_cluster *c);
/* An allocation failed somewhere: what was decided since is worth nothing. */
bool trp_virtual_failed(const trp_virtual_cluster *c);
/* What was held from `start` (of the driver's job) to `now`, in seconds. */
struct trp_sim_amounts trp_virtual_held(const trp_virtual_cluster *c, int64_t start,
                                        int64_t now);

#endif
