/*
 * Fewer partitions without a shuffle.
 *
 * Partition i of a coalesced node consists of neighbouring partitions of its parent,
 * its members; each has the same number of them, or one more. What a launch sends for
 * its members is copied here once, side by side, as for other sources, so that a launch
 * only points to it; these bytes are in memory twice. A task computes its members one
 * after the other (run_task.c).
 */
#include <stdlib.h>

#include "api/chain.h"

/* Adds what the members of partition `i` of `d` get. TRP_ELIMIT: too much. */
static int put_inputs(struct trp_buf *b, const trp_dataset *d, uint32_t i)
{
    const size_t before = b->size;
    int64_t first;
    uint64_t count;
    trp_range_part(0, d->a->partitions, d->partitions, i, &first, &count);
    for (uint64_t k = 0; k < count; k++) {
        const uint8_t *data;
        uint32_t size;
        if (trp_chain_input(d->a, (uint32_t)((uint64_t)first + k), &data, &size))
            trp_put_bytes(b, data, size);
        else if (size)
            trp_put_raw(b, data, size); /* of a coalesced node: counted already */
        if (b->failed)
            return TRP_ENOMEM;
        if (b->size - before > TRP_INPUT_MAX)
            return trp_dataset_fail(d->context, TRP_ELIMIT,
                                    "trp_coalesce: partition %u would have more than "
                                    "%u MiB of input; use more partitions",
                                    i, TRP_INPUT_MAX >> 20);
    }
    return 0;
}

/* No offsets where no member has inputs. */
static int layout(trp_dataset *d)
{
    struct trp_buf b = {0};
    uint64_t *offsets = malloc(((size_t)d->partitions + 1) * sizeof(*offsets));
    int rc = offsets ? 0 : TRP_ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < d->partitions; i++) {
        offsets[i] = b.size;
        rc = put_inputs(&b, d, i);
    }
    if (rc < 0 || b.size == 0) {
        trp_buf_free(&b);
        free(offsets);
        return rc == TRP_ENOMEM
                   ? trp_dataset_fail(d->context, rc, "trp_coalesce: out of memory")
                   : rc;
    }
    offsets[d->partitions] = b.size;
    d->inputs = (struct trp_inputs){.data = b.data, .offsets = offsets};
    return 0;
}

trp_dataset *trp_coalesce(trp_dataset *d, uint32_t partitions)
{
    if (!d)
        return NULL;
    trp_dataset *n = trp_dataset_coalesced(d, partitions);
    if (n && layout(n) == 0)
        return trp_dataset_made_of(n, d);
    trp_dataset_inner(n);
    return NULL;
}
