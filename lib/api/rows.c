/*
 * Collected records: put together when all partitions are there, in partition order,
 * each freed as it is taken over, so at most one partition is held twice. A record of a
 * partition without keys has an empty one where others have keys.
 */
#include <stdlib.h>

#include "api/job.h"

/* The next batch of a part: 1, 0 behind the last one, TRP_EPROTO. `*at` begins as NULL. */
static int next_batch(const struct trp_part *p, const uint8_t **at, trp_batch *ret)
{
    const uint8_t *data = p->data, *end = data + p->size;
    size_t size = p->size;
    if (!data || *at == end)
        return 0;
    *at = *at ? *at : data;
    if (!p->in_file)
        *at = end;
    else if (!trp_piece_next(at, end, &data, &size))
        return TRP_EPROTO;
    return trp_batch_decode(data, size, ret) < 0 ? TRP_EPROTO : 1;
}

/* All parts in order into the rows' writer, each freed as it was taken. */
static int rows_fill(trp_rows *r, trp_job *a)
{
    uint32_t n = a->dataset->partitions;
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *at = NULL;
        trp_batch b;
        int rc = trp_part_load(a, i);
        if (rc < 0)
            return rc;
        while ((rc = next_batch(&a->parts[i], &at, &b)) > 0)
            if (b.keys)
                r->records.keyed = TRP_KEYED_YES;
        if (rc < 0)
            return trp_context_fail(a->context, TRP_EPROTO,
                                    "the records of partition %u cannot be read", i);
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *at = NULL;
        trp_batch b;
        while (next_batch(&a->parts[i], &at, &b) > 0)
            if (trp_writer_add_batch(&r->records, &b) < 0)
                return trp_context_fail(a->context, TRP_ENOMEM,
                                        "out of memory for the collected records");
        if (a->parts[i].data)
            trp_part_free(a, i);
    }
    r->batch = trp_writer_batch(&r->records);
    return 0;
}

int trp_rows_take(trp_job *j, trp_rows **ret_rows)
{
    trp_context *ctx = j->context;
    trp_rows *r = calloc(1, sizeof(*r));
    if (!r)
        return trp_context_fail(ctx, TRP_ENOMEM, "out of memory for the rows");
    trp_writer_init(&r->records);
    int rc = rows_fill(r, j);
    if (rc < 0) {
        trp_writer_free(&r->records);
        free(r);
        return rc;
    }
    r->context = ctx;
    r->next = ctx->rows;
    if (r->next)
        r->next->previous = r;
    ctx->rows = r;
    *ret_rows = r;
    return 0;
}

const trp_batch *trp_rows_batch(const trp_rows *r)
{
    return r ? &r->batch : NULL;
}

void trp_rows_free(trp_rows *r)
{
    if (!r)
        return;
    if (r->previous)
        r->previous->next = r->next;
    else
        r->context->rows = r->next;
    if (r->next)
        r->next->previous = r->previous;
    trp_writer_free(&r->records);
    free(r);
}
