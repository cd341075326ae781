/*
 * What the tasks of a dataset read: the map outputs of sides, and partitions of kept
 * datasets, of which nothing is looked at that lies below.
 *
 * A kept dataset may be read one to one, from some partition on (trp_union), or in runs
 * (trp_coalesce). What stands between is walked path by path: each path has partitions of
 * its own, so there are no more of them than partitions.
 */
#ifndef TRP_API_NARROW_H
#define TRP_API_NARROW_H

#include "api/api.h"

struct trp_narrow {
    struct trp_dataset_parent *parents;
    uint32_t nparents, capacity;
    uint32_t partitions; /* of the one that was asked about */
    bool one_to_one;     /* nothing kept is read in another way */
    bool prefers;        /* hosts are named above what is kept */
};

/* Of `d`; the kept ones are told. TRP_ENOMEM. */
int trp_narrow_find(trp_dataset *d, struct trp_narrow *ret);
/* One more. */
int trp_narrow_add(struct trp_narrow *n, struct trp_dataset_parent p);
void trp_narrow_free(struct trp_narrow *n);

#endif
