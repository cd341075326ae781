/*
 * The end of a side: records into a map output.
 *
 * Which partition a record belongs to depends on its key alone, or on its place among
 * the records of its task, never on when or where the task runs: a task that runs again
 * leaves the same output.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "api/flow.h"
#include "executor/scratch.h"
#include "wire/shuffle.h"

/* A failure of lib/data's. */
static int failed(struct trp_flow *f, const trp_error *err)
{
    return trp_flow_fail(f, err->code, "%s", err->text);
}

static int check(struct trp_flow *f, const struct trp_wide_plan *p, const void *key,
                 size_t nv)
{
    if (!key)
        return trp_flow_mistake(f, "%s: a record has no key", trp_wide_name(p));
    if (p->sum && p->sum != TRP_COUNT && nv != trp_sum_width(p->sum))
        return trp_flow_mistake(f, "%s: a value has %zu bytes; there must be %u",
                                trp_wide_name(p), nv, trp_sum_width(p->sum));
    return 0;
}

int trp_flow_shuffle(struct trp_flow *f, const trp_batch *in)
{
    static const int64_t one = 1;
    const struct trp_wide_plan *p = &f->chain->plan;
    trp_error err;
    for (size_t i = 0; i < in->count; i++) {
        size_t nk, nv;
        const void *value = trp_value(in, i, &nv), *key = trp_key(in, i, &nk);
        if (check(f, p, key, nv) < 0)
            return -1;
        uint32_t partition = (uint32_t)(XXH3_64bits(key, nk) % p->partitions);
        if (p->sum == TRP_COUNT) {
            value = &one;
            nv = sizeof(one);
        }
        if (trp_shuffle_add(f->out, partition, key, nk, value, nv, &err) < 0)
            return failed(f, &err);
    }
    return 0;
}

static int commit(struct trp_flow *f)
{
    const uint32_t n = f->chain->plan.partitions;
    struct trp_shuffle_counts counts;
    struct trp_buf b = {0};
    trp_error err;
    uint64_t *sizes = malloc(n * sizeof(*sizes));
    if (!sizes)
        return trp_flow_fail(f, TRP_ENOMEM, "out of memory for a map output");
    int rc = trp_shuffle_commit(f->out, sizes, &counts, &err);
    if (rc == 0)
        trp_sizes_put(&b, sizes, n);
    free(sizes);
    if (rc < 0 || b.failed || b.size > UINT32_MAX) {
        trp_buf_free(&b);
        return rc < 0 ? failed(f, &err)
                      : trp_flow_fail(f, TRP_ENOMEM, "out of memory for a map output");
    }
    f->ret->records_out = counts.written;
    f->ret->bytes_out = counts.bytes;
    f->ret->result = b.data;
    f->ret->result_size = (uint32_t)b.size;
    return 0;
}

int trp_flow_map_output(struct trp_flow *f, const struct trp_chain_node *source,
                        const uint8_t *input, size_t size)
{
    const struct trp_wide_plan *p = &f->chain->plan;
    const struct trp_task_info *info = f->task.info;
    trp_error err;
    if (!info->map_outputs)
        return trp_flow_fail(f, TRP_ESYSTEM, "there is no folder for map outputs here");
    if (trp_folder_make(info->map_outputs, &err) < 0)
        return failed(f, &err);
    const struct trp_shuffle_spec spec = {
        .folder = info->map_outputs,
        .shuffle = p->dataset[f->chain->side],
        .map = info->task,
        .attempt = info->attempt.n,
        .partitions = p->partitions,
        .memory = info->memory,
        .order = trp_flow_order(p, &f->out_sum),
        .killed = info->killed,
    };
    if (trp_shuffle_writer_open(&spec, &f->out, &err) < 0)
        return failed(f, &err);
    int rc = trp_flow_records(f, source, input, size);
    if (rc == 0)
        rc = commit(f);
    trp_shuffle_writer_free(f->out);
    f->out = NULL;
    return rc;
}

struct trp_shuffle_order trp_flow_order(const struct trp_wide_plan *p,
                                        struct trp_summing *sum)
{
    struct trp_shuffle_order order = {0};
    if (p->kind == TRP_WIDE_REDUCE) {
        sum->sum = p->sum;
        order.combine = trp_sum_combine;
        order.context = sum;
    }
    return order;
}
