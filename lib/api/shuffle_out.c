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
#include "wire/map_output.h"

/* A failure of lib/data's, or of the program's function that it called. */
int trp_flow_data_failed(struct trp_flow *f, const struct trp_combining *c,
                         const trp_error *err)
{
    const char *what = c->plan->function;
    if (c->code)
        return trp_flow_fail(f, c->code, "function %s returned %d", what, c->code);
    if (c->failed && err->code == TRP_EINVAL)
        return trp_flow_mistake(f, "%s: %s", what, c->failed);
    if (c->plan->kind == TRP_WIDE_SORT && !c->plan->order && err->code == TRP_EINVAL)
        return trp_flow_mistake(f, "%s: %s", what, err->text);
    return trp_flow_fail(f, err->code, "%s", err->text);
}

int trp_flow_check_record(struct trp_flow *f, const struct trp_wide_plan *p,
                          const void *key, size_t nk, size_t nv)
{
    unsigned type = p->order & ~(unsigned)TRP_DESCENDING;
    if (!key)
        return trp_flow_mistake(f, "%s: a record has no key", trp_wide_name(p));
    if (p->sum && p->sum != TRP_COUNT && nv != trp_sum_width(p->sum))
        return trp_flow_mistake(f, "%s: a value has %zu bytes; there must be %u",
                                trp_wide_name(p), nv, trp_sum_width(p->sum));
    if ((type == TRP_I64 || type == TRP_F64) && nk != 8)
        return trp_flow_mistake(f, "%s: a key has %zu bytes; there must be 8",
                                trp_wide_name(p), nk);
    return 0;
}

/* The range that a key is in: how many begin at it or before. */
static uint32_t range_of(const struct trp_flow *f, const struct trp_wide_plan *p,
                         const void *key, size_t nk)
{
    const uint64_t prefix = trp_shuffle_prefix(&f->order, key, nk);
    uint32_t low = 0, high = p->nranges;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        const struct trp_wide_key *first = &p->ranges[mid];
        bool here = first->prefix != prefix
                        ? first->prefix < prefix
                        : trp_shuffle_compare_keys(&f->order, first->data, first->size,
                                                   key, nk) <= 0;
        if (here)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* What lib/data takes as key: whether there is one, and the key; of trp_distinct its
 * size before it and the value behind, so that the record is all in it. There is room
 * for it (make_room). */
static int pack(struct trp_flow *f, bool whole, struct trp_shuffle_record *r)
{
    struct trp_buf *b = &f->pack;
    const size_t at = b->size;
    trp_put_u8(b, r->key != NULL);
    if (whole)
        trp_put_bytes(b, r->key, r->key ? r->nk : 0);
    else if (r->key)
        trp_put_raw(b, r->key, r->nk);
    if (whole)
        trp_put_raw(b, r->value, r->nv);
    if (b->failed)
        return trp_flow_fail(f, TRP_ENOMEM, "out of memory for a record");
    r->key = b->data + at;
    r->nk = b->size - at;
    if (whole)
        r->nv = 0;
    return 0;
}

enum { TOGETHER = 32, PACKED_MORE = 5 };

/* Records that are added at once. */
struct placed {
    size_t n;
    struct trp_shuffle_record records[TOGETHER];
    uint32_t partitions[TOGETHER]; /* unless their keys say it */
};

static bool is_packed(const struct trp_wide_plan *p)
{
    return p->kind == TRP_WIDE_DISTINCT || p->kind == TRP_WIDE_REPARTITION;
}

/* For the keys of all records, so that they stay where they are put. */
static int make_room(struct trp_flow *f, const struct placed *all)
{
    size_t need = 0;
    for (size_t i = 0; i < all->n; i++)
        need += PACKED_MORE + all->records[i].nk + all->records[i].nv;
    trp_buf_clear(&f->pack);
    return trp_buf_grow(&f->pack, need)
               ? 0
               : trp_flow_fail(f, TRP_ENOMEM, "out of memory for records");
}

/* Where a record goes, and as what. */
static int place(struct trp_flow *f, const struct trp_wide_plan *p,
                 struct trp_shuffle_record *r, uint32_t *ret_partition)
{
    static const int64_t one = 1;
    if (is_packed(p) ? pack(f, p->kind == TRP_WIDE_DISTINCT, r) < 0
                     : trp_flow_check_record(f, p, r->key, r->nk, r->nv) < 0)
        return -1;
    switch (p->kind) {
    case TRP_WIDE_REPARTITION: /* in turn, each task from another one on */
        *ret_partition = (uint32_t)(f->dealt++ % p->partitions);
        break;
    case TRP_WIDE_SORT:
        *ret_partition = range_of(f, p, r->key, r->nk);
        break;
    case TRP_WIDE_PARTITION:
        *ret_partition =
            p->tasked ? ((trp_task_partition)p->code)(&f->task, r->key, r->nk,
                                                      p->partitions, p->arg)
                      : ((trp_partition)p->code)(r->key, r->nk, p->partitions, p->arg);
        if (p->tasked && trp_task_has_failed(&f->task))
            return trp_flow_fail(f, TRP_EFAILED, "%s failed", p->function);
        if (*ret_partition >= p->partitions)
            return trp_flow_mistake(
                f, "trp_partition_by: %s returned %u; there are %u partitions",
                p->function, *ret_partition, p->partitions);
        break;
    default:
        break;
    }
    if (p->sum == TRP_COUNT) {
        r->value = &one;
        r->nv = sizeof(one);
    }
    return 0;
}

int trp_flow_shuffle(struct trp_flow *f, const trp_batch *in)
{
    const struct trp_wide_plan *p = &f->chain->plan;
    const bool by_place = p->kind == TRP_WIDE_REPARTITION || p->kind == TRP_WIDE_SORT ||
                          p->kind == TRP_WIDE_PARTITION;
    struct placed all;
    trp_error err;
    for (size_t at = 0; at < in->count; at += all.n) {
        all.n = in->count - at < TOGETHER ? in->count - at : TOGETHER;
        for (size_t i = 0; i < all.n; i++) {
            struct trp_shuffle_record *r = &all.records[i];
            r->value = trp_value(in, at + i, &r->nv);
            r->key = trp_key(in, at + i, &r->nk);
        }
        if (is_packed(p) && make_room(f, &all) < 0)
            return -1;
        for (size_t i = 0; i < all.n; i++)
            if (place(f, p, &all.records[i], &all.partitions[i]) < 0)
                return -1;
        if (trp_shuffle_add_all(f->out, by_place ? all.partitions : NULL, all.records,
                                all.n, &err) < 0)
            return trp_flow_data_failed(f, &f->combining[0], &err);
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
        return rc < 0 ? trp_flow_data_failed(f, &f->combining[0], &err)
                      : trp_flow_fail(f, TRP_ENOMEM, "out of memory for a map output");
    }
    f->ret->records_out = 0; /* they are no output of the program's */
    f->ret->has_data = true;
    f->ret->data.written_records = counts.written;
    f->ret->data.written_bytes = counts.bytes;
    f->ret->data.write_ns = (uint64_t)counts.write_ns;
    f->ret->data.spilled_bytes += counts.spilled_bytes;
    f->ret->result = b.data;
    f->ret->result_size = (uint32_t)b.size;
    return 0;
}

int trp_flow_map_output(struct trp_flow *f, const uint8_t *input, size_t size)
{
    const struct trp_wide_plan *p = &f->chain->plan;
    const struct trp_task_info *info = f->task.info;
    trp_error err;
    if (!info->map_outputs)
        return trp_flow_fail(f, TRP_ESYSTEM, "there is no folder for map outputs here");
    if (trp_folder_make(info->map_outputs, &err) < 0)
        return trp_flow_fail(f, err.code, "%s", err.text);
    f->order = trp_wide_order(p, &f->combining[0]);
    f->combining[0].task = &f->task;
    const struct trp_shuffle_spec spec = {
        .folder = info->map_outputs,
        .shuffle = p->dataset[f->chain->side],
        .map = info->task,
        .attempt = info->attempt.n,
        .partitions = p->partitions,
        .memory = trp_flow_memory(f),
        .compress = info->compress,
        .order = f->order,
        .killed = info->killed,
    };
    f->dealt = XXH3_64bits(&info->task, sizeof(info->task)) >> 32;
    if (trp_shuffle_writer_open(&spec, &f->out, &err) < 0)
        return trp_flow_fail(f, err.code, "%s", err.text);
    int rc = trp_flow_records(f, input, size);
    if (rc == 0)
        rc = commit(f);
    trp_shuffle_writer_free(f->out);
    f->out = NULL;
    return rc;
}
