/*
 * What may still run, and what of it at the same time: how much a run can use at most
 * from now on.
 *
 * Words. A *kind* is the executors of a profile, or the gangs of so many ranks of it.
 * A *load* says how many of each kind may be there at the same time. The outlook has
 * no load that another one covers; without loads nothing will run any more.
 *
 * Two stages run beside each other when neither has to wait for the end of the other.
 * Exact for a chain of stages; of branches, each counts with the most that any of its
 * stages takes, although these may never meet.
 *
 *     struct trp_outlook o;
 *     if (trp_engine_outlook(engine, &o) == 0)
 *         for (i = 0; i < o.nloads; i++)
 *             o.counts[i * o.nkinds + k] executors, or gangs, of o.kinds[k] …
 *     trp_outlook_free(&o);
 */
#ifndef TRP_CORE_ALLOC_OUTLOOK_H
#define TRP_CORE_ALLOC_OUTLOOK_H

#include "core/engine.h"

struct trp_outlook_kind {
    const struct trp_resource_profile *profile; /* the manager's */
    uint32_t ranks;                             /* of a gang; 0: executors */
};

struct trp_outlook {
    struct trp_outlook_kind *kinds;
    uint32_t nkinds;
    uint32_t *counts; /* nloads × nkinds; UINT32_MAX: as many as there is room for */
    uint32_t nloads;
};

/* A stage that may still run. `parents`: indices of stages before it in the array. */
struct trp_outlook_stage {
    struct trp_outlook_kind kind;
    uint32_t count; /* executors, or gangs, at most */
    const struct trp_parent_spec *parents;
    uint32_t nparents;
};

enum { TRP_OUTLOOK_STAGES = 1024 };

/* TRP_ELIMIT: more than TRP_OUTLOOK_STAGES stages; TRP_ENOMEM. Cost: O(stages²). */
int trp_outlook_make(const struct trp_outlook_stage *stages, uint32_t n,
                     struct trp_outlook *ret);
void trp_outlook_free(struct trp_outlook *o);

/* Of the jobs that an engine has; jobs to come are not known. Codes as above. */
int trp_engine_outlook(const trp_engine *e, struct trp_outlook *ret);

#endif
