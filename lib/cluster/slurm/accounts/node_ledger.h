/*
 * The ledger of the jobs of a run: what each node has left, and the queue of those who
 * want some.
 *
 * Words. A *footprint* is what one executor, or one rank of a gang, takes. A *request*
 * wants `units` of them, all or none: an executor one, a gang its ranks. A *spot* is a
 * node with the number of units that were placed there.
 *
 * Placement is first fit: the driver's node first (it stays till the end of the job
 * anyway), then the others in Slurm's order, then the parts (additional jobs) in the
 * order in which they were added; a node is filled before the next is looked at. A
 * gang's spots are in one part, and, when it needs devices, *even*: each has the
 * devices of as many units, which is what a step over several nodes can ask for, as
 * many as do for all, and only the last may have fewer units.
 *
 * Requests of one *kind* (footprint and units) are served first come, first served.
 * Between kinds it is so within each part: who came later is placed in a part only when
 * nobody who waits since earlier has room there once it is empty. So what needs a job
 * that is not there yet holds up nobody, and neither does what is not to be on some
 * hosts: it waits for one that others have.
 *
 * Parts and nodes come and go: they are the inventory's, by index.
 *
 * The driver's share is off its node from the start (cores, memory), and so is the
 * memory of one srun for each request that is placed.
 *
 * A node's *standing* says whether it is to be used at all: not while its admin drains
 * it. One where an executor has vanished is used by a kind that is to make do with it
 * (`last_resort`), when nothing else has room, and so is a host on which a start of the
 * kind has failed, as long as that is the only one. A node that is *held*
 * gets nothing new: it is to be given back.
 *
 * Pure: no I/O, no clock.
 */
#ifndef TRP_CLUSTER_SLURM_ACCOUNTS_NODE_LEDGER_H
#define TRP_CLUSTER_SLURM_ACCOUNTS_NODE_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/slurm/accounts/inventory.h"
#include "cluster/topology.h"
#include "conf/site.h"
#include "core/profile/profile.h"

enum trp_slurm_kind { TRP_SLURM_GRES, TRP_SLURM_LICENCE, TRP_SLURM_FEATURE };

struct trp_slurm_want {
    char resource[TRP_RESOURCE_NAME_MAX]; /* of the profile */
    enum trp_slurm_kind kind;
    char name[TRP_SLURM_WORD], type[TRP_SLURM_WORD]; /* what it is in Slurm */
    uint32_t count;                                  /* of `each` units */
    uint32_t each;                                   /* units that share `count` */
};

struct trp_slurm_footprint {
    uint64_t cores;
    int64_t memory_mib;
    struct trp_slurm_want wants[TRP_PROFILE_RESOURCES];
    uint32_t nwants;
    uint32_t nscripted; /* behind them: what only a discovery script knows of, so that
                         * Slurm is not asked for it and the ledger does not count it */
};

/* Does it want any GRES? */
bool trp_slurm_wants_devices(const struct trp_slurm_footprint *footprint);
/* What an executor of a profile, or a rank of a gang, needs. A resource that the site
 * file does not map is a GRES of the same name, or an executor's by its discovery
 * script. TRP_EINVAL: a mapping that is none. */
int trp_slurm_footprint_executor(const struct trp_resource_profile *p,
                                 const trp_site *site, struct trp_slurm_footprint *ret,
                                 trp_error *err);
int trp_slurm_footprint_rank(const struct trp_resource_profile *p, const trp_site *site,
                             struct trp_slurm_footprint *ret, trp_error *err);

/* What a resource of a profile is in Slurm by its entry in the site file, NULL: it has
 * none. Counts are left alone. False: a name is too long. */
bool trp_slurm_want_map(struct trp_slurm_want *w, const struct trp_site_resource *r,
                        const char *resource);

/* Whether "a,b" has a name. */
bool trp_slurm_names_have(const char *names, const char *name);

/* `count` of pool `pool` of a spot's node, or of its job's licences. */
struct trp_slurm_take {
    uint32_t want, pool, count;
};

struct trp_slurm_spot {
    uint32_t node, units;
    uint32_t resized; /* the ledger's own: how often the part had been resized when it
                         was taken */
    struct trp_slurm_take takes[TRP_PROFILE_RESOURCES];
    uint32_t ntakes;
};

enum trp_slurm_request_state {
    TRP_SLURM_NONE,
    TRP_SLURM_QUEUED,
    TRP_SLURM_PLACED,
};

/* Requests of one footprint and number of units. */
struct trp_slurm_request_kind {
    struct trp_slurm_footprint footprint;
    uint32_t units;
    bool gang, ahead;
    char *not_on;     /* "h1,h2": hosts where it is not to be; NULL: anywhere */
    uint32_t waiting; /* how many are in the queue … */
    uint32_t may_add; /* … and for how many of these more room may be had */
    /* The caller's, zeros at first: */
    void *context;
    bool last_resort;               /* doubtful nodes are used as well */
    uint32_t tried;                 /* how many start on doubtful nodes */
    char failed_on[TRP_SLURM_WORD]; /* the only host where a start failed, or "" */
    bool failed_elsewhere;          /* starts failed on several hosts */
    /* The ledger's own: */
    struct trp_slurm_request *first;
};

struct trp_slurm_request {
    struct trp_slurm_footprint
        footprint; /* filled by the caller, as `units` and `gang` are */
    uint32_t units;
    bool gang;
    bool ahead; /* nobody needs it yet: placed after all others, in parts that were had
                 * for such requests */
    const char *not_on; /* as the kind's, for trp_slurm_ledger_ask; or "" */
    bool may_add;       /* at first as the caller has it; trp_slurm_ledger_may_add */
    /* The ledger's own; spots are valid while state is TRP_SLURM_PLACED. */
    enum trp_slurm_request_state state;
    struct trp_slurm_spot *spots;
    uint32_t nspots;
    struct trp_slurm_request_kind *kind;
    uint64_t turn;
    struct trp_slurm_request *before, *behind;
};

/* What is taken for the driver itself. */
struct trp_slurm_share {
    uint32_t node; /* the driver's; UINT32_MAX: it runs on none of them */
    uint32_t cores;
    int64_t memory_mib;
    int64_t srun_mib; /* what the srun of each request takes there besides */
};

typedef struct trp_slurm_ledger trp_slurm_ledger;

/* All parts of `inventory` are there. It is borrowed and must stay; it may grow.
 * TRP_ENEVER: the driver's share is more than its node has. */
int trp_slurm_ledger_new(const struct trp_slurm_inventory *inventory,
                         const struct trp_slurm_share *driver, trp_slurm_ledger **ret,
                         trp_error *err);
void trp_slurm_ledger_free(trp_slurm_ledger *b);

/* A part of the inventory is there from now on. TRP_ENOMEM. */
int trp_slurm_ledger_add_part(trp_slurm_ledger *b, uint32_t part);
/* Nodes of a part were removed from the inventory. */
void trp_slurm_ledger_removed(trp_slurm_ledger *b);
/* Nothing new is placed in a part. What is there stays until it leaves. */
void trp_slurm_ledger_close_part(trp_slurm_ledger *b, uint32_t part);
/* Spots that are taken there. */
uint32_t trp_slurm_ledger_placed(const trp_slurm_ledger *b, uint32_t part);
uint32_t trp_slurm_ledger_placed_on(const trp_slurm_ledger *b, uint32_t node);

enum trp_slurm_standing {
    TRP_SLURM_GOOD,
    TRP_SLURM_DOUBTFUL, /* an executor vanished there: used as the last resort */
    TRP_SLURM_SILENT, /* a start there got no answer: not used until Slurm was asked */
    TRP_SLURM_TAKEN,  /* Slurm has refused a step for want of room: not used until its
                       * steps were compared with ours (ghosts.h) */
    TRP_SLURM_CLOSED, /* gets nothing new */
    TRP_SLURM_GONE,   /* the job has lost it: it does not count for `fit` either */
};
/* What is there stays. A node that is gone stays so. */
void trp_slurm_ledger_set_standing(trp_slurm_ledger *b, uint32_t node,
                                   enum trp_slurm_standing standing);
enum trp_slurm_standing trp_slurm_ledger_standing(const trp_slurm_ledger *b,
                                                  uint32_t node);

/* Slurm has taken nodes from a part while something ran there: cores that are taken
 * there now do not come back (22.05: "unable to update job's core use information due
 * to job resizing"), only memory and devices. They still count for what the part has
 * when it is empty. Those of a gang that was on a lost node do: Slurm has ended it. */
void trp_slurm_ledger_resized(trp_slurm_ledger *b, uint32_t part);

void trp_slurm_ledger_hold(trp_slurm_ledger *b, uint32_t node, bool held);
/* The driver's node, or UINT32_MAX. */
uint32_t trp_slurm_ledger_driver(const trp_slurm_ledger *b);
bool trp_slurm_ledger_is_held(const trp_slurm_ledger *b, uint32_t node);

/* What executors may use of a node when it is empty. */
uint32_t trp_slurm_ledger_cores(const trp_slurm_ledger *b, uint32_t node);
int64_t trp_slurm_ledger_memory(const trp_slurm_ledger *b, uint32_t node);

/* What executors may use of the nodes of open parts, and what of it is free; licences are
 * left out. Names are the inventory's. */
void trp_slurm_ledger_room(const trp_slurm_ledger *b, struct trp_room *ret);

/* How many requests of `units` units the driver's own job holds at once when it is
 * empty; 0 with TRP_ENEVER and "cores wanted 8, at most 4 on a node" in `err`. */
uint32_t trp_slurm_ledger_fit(const trp_slurm_ledger *b,
                              const struct trp_slurm_footprint *footprint,
                              uint32_t units, trp_error *err);
/* The same of all parts that are open. */
uint32_t trp_slurm_ledger_held(const trp_slurm_ledger *b,
                               const struct trp_slurm_footprint *footprint,
                               uint32_t units);

/* Whether a host other than this one, that may be used, has room for one of the kind
 * once it is empty. */
bool trp_slurm_ledger_another(const trp_slurm_ledger *b,
                              const struct trp_slurm_request_kind *kind,
                              const char *host);

/* Executors of one kind, or gangs of `units` ranks. */
struct trp_slurm_load {
    struct trp_slurm_footprint footprint;
    uint32_t units;
    uint32_t count; /* as far as there is room */
};
/* Marks the nodes of the driver's own job that a load takes, all at once, when nothing
 * else is placed: keep[node] becomes true. TRP_ENOMEM: nothing was marked. */
int trp_slurm_ledger_keep(const trp_slurm_ledger *b, const struct trp_slurm_load *loads,
                          uint32_t n, bool *keep);

/* Puts a request, which fits, at the end of the queue. TRP_ENOMEM. */
int trp_slurm_ledger_ask(trp_slurm_ledger *b, struct trp_slurm_request *r,
                         trp_error *err);
/* More room may be had for it, as long as it is in the queue. */
void trp_slurm_ledger_may_add(struct trp_slurm_request *r);
/* One in the queue that was asked for ahead is needed now. TRP_ENOMEM. */
int trp_slurm_ledger_need_now(trp_slurm_ledger *b, struct trp_slurm_request *r);
/* The first that has room, now placed, or NULL. */
struct trp_slurm_request *trp_slurm_ledger_next(trp_slurm_ledger *b);
/* All kinds that were ever asked for, by the first time. */
uint32_t trp_slurm_ledger_kinds(const trp_slurm_ledger *b);
struct trp_slurm_request_kind *trp_slurm_ledger_kind(const trp_slurm_ledger *b,
                                                     uint32_t index);
/* Whether a driver's node has the memory for one more srun. */
bool trp_slurm_ledger_srun_room(const trp_slurm_ledger *b);
/* Takes a request out of the queue, or its room back. */
void trp_slurm_ledger_leave(trp_slurm_ledger *b, struct trp_slurm_request *r);

#endif
