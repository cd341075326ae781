/*
 * Where records go: through functions, and into the action's end.
 *
 * Records are pushed: a function gets a batch and emits into its writer; a writer that
 * is full hands its batch to the next function (from within trp_emit), and what leaves
 * the last one is counted, kept, folded, dropped or written. So memory is one batch a
 * function, whatever a function emits; a pulling design would need functions that can
 * be suspended.
 *
 * The first failure is the one that is told. A failed downstream function makes
 * trp_emit fail upstream; a function that does not look at it cannot hide it.
 */
#include "api/flow.h"

#include <stdarg.h>
#include <string.h>

static void keep_error(struct trp_flow *f, int32_t status, bool mistake,
                       const char *fmt, va_list ap)
{
    if (f->failed || f->enough)
        return;
    f->failed = true;
    f->ret->status = status;
    f->ret->mistake = mistake;
    if (!f->ret->error[0])
        vsnprintf(f->ret->error, sizeof(f->ret->error), fmt, ap);
}

int trp_flow_fail(struct trp_flow *f, int32_t status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    keep_error(f, status, false, fmt, ap);
    va_end(ap);
    return -1;
}

int trp_flow_mistake(struct trp_flow *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    keep_error(f, TRP_EINVAL, true, fmt, ap);
    va_end(ap);
    return -1;
}

bool trp_flow_killed(const struct trp_flow *f)
{
    return f->task.info->killed && *f->task.info->killed;
}

void trp_flow_read(struct trp_flow *f, uint64_t records)
{
    f->records += records;
    if (f->task.info->records)
        __atomic_store_n(f->task.info->records, f->records, __ATOMIC_RELAXED);
}

/* ---- the end of the chain ---- */

static int end_reduce(struct trp_flow *f, const trp_batch *in)
{
    for (size_t i = 0; i < in->count; i++) {
        size_t n;
        const void *value = trp_value(in, i, &n);
        int rc = trp_reducer_add(&f->reducer, value, n);
        if (f->reducer.mistake)
            return trp_flow_mistake(f, "%s %s", f->chain->last.name, f->reducer.failed);
        if (rc != 0)
            return trp_flow_fail(f, rc, "%s %s", f->chain->last.name,
                                 f->reducer.failed ? f->reducer.failed : "failed");
    }
    return 0;
}

static int end_sample(struct trp_flow *f, const trp_batch *in)
{
    for (size_t i = 0; i < in->count; i++) {
        size_t nk, nv;
        const void *key = trp_key(in, i, &nk);
        trp_value(in, i, &nv);
        if (trp_flow_check_record(f, &f->chain->plan, key, nk, nv) < 0)
            return -1;
        if (trp_sample_add(&f->sample, key, nk) < 0)
            return trp_flow_fail(f, TRP_ENOMEM, "out of memory for a sample of keys");
    }
    return 0;
}

/* To copy it would only be slow: the pages that it is read from have to make room for
 * the copy until that is killed for memory. */
static int refuse_copy(struct trp_flow *f, const trp_batch *in)
{
    return trp_flow_fail(f, TRP_ELIMIT,
                         "trp_group_by_key: the values of one key take %llu MiB, more "
                         "than a task has memory for, and cannot be copied as one "
                         "record; take them apart by a function right behind, use "
                         "trp_combine_by_key, or give the executor more memory",
                         (unsigned long long)(trp_batch_size(in) >> 20));
}

static int end_take(struct trp_flow *f, const trp_batch *in)
{
    const enum trp_end_kind kind = f->chain->kind;
    const bool copies = kind == TRP_DO_COLLECT || kind == TRP_DO_REDUCE ||
                        kind == TRP_DO_CHECKPOINT || kind == TRP_DO_SHUFFLE;
    if (f->mapped && in->values == f->mapped && copies)
        return refuse_copy(f, in);
    f->ret->records_out += in->count;
    switch (f->chain->kind) {
    case TRP_DO_COLLECT:
        return trp_flow_collect_batch(f, in);
    case TRP_DO_REDUCE:
        return end_reduce(f, in);
    case TRP_DO_SAVE:
        return trp_flow_save_batch(f, in);
    case TRP_DO_CHECKPOINT:
        return trp_flow_checkpoint_put(f, in);
    case TRP_DO_SAMPLE:
        return end_sample(f, in);
    case TRP_DO_SHUFFLE:
        return trp_flow_shuffle(f, in);
    default:
        return 0;
    }
}

/* ---- functions ---- */

int trp_flow_writer_flush(trp_writer *w, void *context)
{
    struct trp_flow *f = context;
    /* `out` is the first member of its step_writers. */
    struct trp_step_writers *s = (struct trp_step_writers *)(void *)w;
    trp_batch b = trp_writer_batch(w);
    return trp_flow_push(f, s->position, &b);
}

static int call(struct trp_flow *f, uint32_t position,
                const struct trp_chain_node *node, const trp_batch *in, trp_writer *w)
{
    /* A function that emits calls the next one from within. */
    const struct trp_maker outer = f->task.by;
    f->task.by = (struct trp_maker){node->maker, f->steps[position].partition};
    int rc = node->function(&f->task, in, w, node->arg);
    f->task.by = outer;
    return trp_flow_returned(f, node->name, rc, w);
}

int trp_flow_returned(struct trp_flow *f, const char *name, int rc, const trp_writer *w)
{
    if (f->failed || f->enough)
        return -1;
    if (w->mistake)
        return trp_flow_mistake(f, "%s: %s", name, w->failed);
    if (rc != 0)
        return trp_flow_fail(f, rc, "function %s returned %d%s%s", name, rc,
                             w->failed ? ": " : "", w->failed ? w->failed : "");
    if (w->failed)
        return trp_flow_fail(f, trp_flow_killed(f) ? TRP_ECANCELLED : TRP_EINVAL,
                             "%s: %s", name, w->failed);
    return 0;
}

void trp_flow_enough(trp_task *t)
{
    struct trp_flow *f = t->flow;
    if (!f->enough)
        f->enough = f->at + 1;
}

static bool is_kept(const struct trp_step_writers *s, size_t i)
{
    int32_t keep;
    memcpy(&keep, s->verdicts.values.data + i * sizeof(keep), sizeof(keep));
    return keep != 0;
}

/* A large record goes on alone, from where it lies. */
static int hand_on(struct trp_flow *f, struct trp_step_writers *s, const trp_batch *in)
{
    if (s->out.count && trp_flow_writer_flush(&s->out, f) < 0)
        return -1;
    trp_writer_clear(&s->out);
    if (!s->out.drop)
        return trp_flow_push(f, s->position, in);
    s->out.emitted++;
    return 0;
}

/* The records that the predicate kept go to the filter's own writer. */
static int filter(struct trp_flow *f, uint32_t position,
                  const struct trp_chain_node *node, struct trp_step_writers *s,
                  const trp_batch *in)
{
    trp_writer_clear(&s->verdicts);
    int rc = call(f, position, node, in, &s->verdicts);
    if (rc < 0)
        return rc;
    if (s->verdicts.count != in->count || s->verdicts.values.width != sizeof(int32_t))
        return trp_flow_mistake(
            f,
            "trp_filter: %s emitted %zu values of %zu bytes for %zu "
            "records; one int32 for each is needed",
            node->name, s->verdicts.count, s->verdicts.values.size, in->count);
    for (size_t i = 0; i < in->count; i++) {
        if (!is_kept(s, i))
            continue;
        size_t n, nk;
        const void *value = trp_value(in, i, &n), *key = trp_key(in, i, &nk);
        if (n >= TRP_BATCH_BYTES && in->count == 1)
            return hand_on(f, s, in);
        if (trp_emit(&s->out, key, nk, value, n) < 0)
            return trp_flow_fail(f, trp_flow_killed(f) ? TRP_ECANCELLED : TRP_ENOMEM,
                                 "trp_filter: %s", s->out.failed);
    }
    return 0;
}

int trp_flow_push(struct trp_flow *f, uint32_t position, const trp_batch *in)
{
    if (in->count == 0)
        return 0;
    if (position == f->nsteps)
        return end_take(f, in);
    struct trp_step_writers *s = &f->writers[position];
    uint32_t at = f->steps[position].node;
    const struct trp_chain_node *node =
        at == TRP_NONE ? &f->chain->last : &f->chain->nodes[at];
    if (node->kind == TRP_NODE_PERSIST)
        return trp_flow_keep(f, position, in);
    if (node->kind == TRP_NODE_PARTITIONS)
        return trp_flow_state_batch(f, position, in);
    if (node->kind == TRP_NODE_FILTER)
        return filter(f, position, node, s, in);
    uint64_t before = s->out.emitted;
    int rc = call(f, position, node, in, &s->out);
    if (rc < 0 || node->kind != TRP_NODE_MAP)
        return rc;
    if (s->out.emitted - before != in->count)
        return trp_flow_mistake(
            f,
            "trp_map: %s emitted %llu records for %zu; one for each is "
            "needed",
            node->name, (unsigned long long)(s->out.emitted - before), in->count);
    return 0;
}
