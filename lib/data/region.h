/*
 * Memory that grows and keeps what is in it. Internal to lib/data.
 *
 * It is mapped, in huge pages where there are some, and grown without a copy. To clear
 * pages takes as long as to sort what is in them, so what one writer gives back is
 * kept for the next where trp_shuffle_keep_memory says so.
 *
 * Threads: any, one at a time for each region.
 */
#ifndef TRP_DATA_REGION_H
#define TRP_DATA_REGION_H

#include <stdbool.h>
#include <stddef.h>

/* What it is for: memory is kept for the same, since it has the right size. */
enum trp_region_kind { TRP_REGION_RECORDS, TRP_REGION_ENTRIES };

struct trp_region {
    void *p;
    size_t size;
    enum trp_region_kind kind;
};

/* At least `need` bytes. False: out of memory; it is as before. */
bool trp_region_grow(struct trp_region *r, size_t need);
void trp_region_free(struct trp_region *r);
/* The same, and it is not kept: one large record made it larger than others need. */
void trp_region_unmap(struct trp_region *r);

#endif
