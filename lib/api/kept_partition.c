/*
 * Kept datasets on an executor: what a task finds of them, and what it leaves.
 *
 * The path of a member (run_task.c) is looked through from its end: the first kept
 * partition that is there becomes the source, and nothing below it is computed. Those
 * that are not there are *open* from then on: each batch that passes is added to them.
 * A partition of a kept dataset may be made of several members, when a coalesced node
 * is below it, so it stays open until a coalesced node above it goes on.
 *
 * What is open is a stack: the path of the next member begins with the same kept
 * datasets, as far as they are still open.
 */
#include "api/flow.h"
#include "data/block_store.h"

/* The members below a kept partition that need not be computed: what they get from the
 * launch is passed over. */
static int skip_members(struct trp_flow *f, uint32_t above, int64_t source,
                        struct trp_view *inputs)
{
    struct trp_keeps keeps;
    struct trp_path_step steps[TRP_STEPS_MAX];
    uint32_t nsteps, partition;
    size_t size;
    for (;;) {
        if (source < 0)
            return trp_flow_fail(f, TRP_EPROTO, "task %u is not in its chain",
                                 f->task.info->task);
        if (trp_chain_has_inputs(f->chain->nodes[source].kind))
            trp_get_bytes(inputs, &size);
        if (!trp_members_next(&f->members, above))
            return 0;
        source = trp_chain_path(f->chain, f->task.info->task, &f->members, steps,
                                &nsteps, &partition, &keeps);
    }
}

/* The path begins behind its i-th kept step. */
static void cut_path(struct trp_flow *f, uint32_t i)
{
    uint32_t gone = f->keeps.v[i].step + 1;
    f->nsteps -= gone;
    memmove(f->steps, f->steps + gone, f->nsteps * sizeof(f->steps[0]));
    f->keeps.n = i;
    for (uint32_t k = 0; k < i; k++)
        f->keeps.v[k].step -= gone;
}

static trp_block_reader *hit(struct trp_flow *f, uint32_t i, trp_block_reader *r,
                             int64_t source, struct trp_view *inputs)
{
    uint32_t above = f->keeps.v[i].above;
    f->ret->data.cache_hits++;
    f->ret->data.cache_bytes += trp_block_size(r);
    cut_path(f, i);
    if (above > 0 && skip_members(f, above, source, inputs) < 0) {
        trp_block_close(r);
        return NULL;
    }
    f->members.n = above;
    return r;
}

trp_block_reader *trp_flow_kept(struct trp_flow *f, int64_t source,
                                struct trp_view *inputs)
{
    const struct trp_task_info *info = f->task.info;
    if (!info->blocks)
        return NULL;
    for (uint32_t i = f->nopen; i < f->keeps.n; i++) {
        const struct trp_keep *k = &f->keeps.v[i];
        const struct trp_chain_node *node = &f->chain->nodes[k->node];
        const struct trp_block_key key = {node->dataset, k->partition};
        trp_block_reader *r = trp_block_open(info->blocks, key);
        f->ret->has_data = true;
        if (r)
            return hit(f, i, r, source, inputs);
        f->ret->data.cache_misses++;
        f->open[f->nopen].above = k->above;
        f->open[f->nopen++].writer =
            trp_block_begin(info->blocks, key, node->level, info->attempt.n);
    }
    return NULL;
}

int trp_flow_kept_source(struct trp_flow *f, trp_block_reader *r)
{
    const uint8_t *data;
    size_t size;
    int rc;
    while ((rc = trp_block_next(r, &data, &size)) > 0) {
        trp_batch b;
        if (trp_batch_decode(data, size, &b) < 0)
            return trp_flow_fail(f, TRP_EPROTO, "a kept partition that is none");
        f->ret->bytes_in += size;
        if (trp_flow_source_batch(f, &b) < 0)
            return -1;
    }
    if (rc < 0)
        return trp_flow_fail(f, TRP_ESYSTEM,
                             "a kept partition cannot be read any more");
    return 0;
}

/* It is copied to be kept: a record that memory has no room for is not. */
static bool has_room(const struct trp_flow *f, const trp_batch *in)
{
    const uint64_t size = trp_batch_size(in);
    return size <= 2 * (uint64_t)TRP_BATCH_BYTES || size <= f->task.info->memory;
}

int trp_flow_keep(struct trp_flow *f, uint32_t position, const trp_batch *in)
{
    uint8_t *data;
    uint32_t i = 0, size;
    while (i < f->nopen && f->keeps.v[i].step != position)
        i++;
    if (i < f->nopen && f->open[i].writer) {
        bool kept = has_room(f, in) && trp_batch_encode(in, &data, &size) == 0 &&
                    trp_block_put(f->open[i].writer, data, size);
        if (!kept) {
            trp_block_end(f->open[i].writer, false);
            f->open[i].writer = NULL;
        }
    }
    return trp_flow_push(f, position + 1, in);
}

void trp_flow_keep_end(struct trp_flow *f, uint32_t coalesced, bool whole)
{
    while (f->nopen > 0 && f->open[f->nopen - 1].above >= coalesced) {
        trp_block_writer *w = f->open[--f->nopen].writer;
        uint64_t memory, disk;
        if (!w)
            continue;
        trp_block_written(w, &memory, &disk);
        f->ret->data.kept_memory += whole ? memory : 0;
        f->ret->data.kept_disk += whole ? disk : 0;
        trp_block_end(w, whole);
    }
}

/* Where something is to be kept half of it is left for that. */
uint64_t trp_flow_memory(struct trp_flow *f)
{
    const struct trp_task_info *info = f->task.info;
    if (!info->blocks)
        return info->memory;
    if (!f->borrowed) {
        uint64_t half = info->memory / 2;
        f->borrowed = trp_block_store_borrow(
            info->blocks, f->chain->keeps ? half : info->memory, half);
    }
    return f->borrowed;
}

void trp_flow_memory_repay(struct trp_flow *f)
{
    if (f->borrowed)
        trp_block_store_repay(f->task.info->blocks, f->borrowed);
    f->borrowed = 0;
}
