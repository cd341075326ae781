/*
 * Running a task of a chain on an executor's thread: its paths, its buffers, its
 * result.
 *
 * When a source is at its end the writers are emptied in order. A task with several
 * members (chain.h) does so for each, one after the other, into one end.
 *
 * All buffers belong to the thread and are used again: a small task allocates nothing.
 * What grew above TRP_KEEP_BYTES is given back when the next one begins.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/flow.h"
#include "api/shared_file.h"

static _Thread_local struct trp_flow *thread_flow;
static pthread_key_t flow_key;
static pthread_once_t flow_once = PTHREAD_ONCE_INIT;

static void flow_free(void *p)
{
    struct trp_flow *f = p;
    for (uint32_t i = 0; i < f->nwriters; i++) {
        trp_writer_free(&f->writers[i].out);
        trp_writer_free(&f->writers[i].verdicts);
    }
    free(f->writers);
    trp_writer_free(&f->source);
    trp_writer_free(&f->kept);
    trp_writer_free(&f->gathered);
    trp_reducer_free(&f->reducer);
    for (uint32_t k = 0; k < TRP_SIDES_MAX; k++)
        trp_writer_free(&f->group[k]);
    for (uint32_t k = 0; k <= TRP_SIDES_MAX; k++)
        trp_combining_free(&f->combining[k]);
    trp_sample_free(&f->sample);
    trp_buf_free(&f->pack);
    trp_buf_free(&f->save.lines);
    free(f->added.v);
    free(f->broadcasts.places);
    free(f->states);
    free(f->resources);
    free(f);
}

static void flow_key_make(void)
{
    if (pthread_key_create(&flow_key, flow_free) != 0)
        abort(); /* only at the very first task, with no keys left in the process */
}

static struct trp_flow *flow_of_thread(void)
{
    if (thread_flow)
        return thread_flow;
    pthread_once(&flow_once, flow_key_make);
    struct trp_flow *f = malloc(sizeof(*f));
    if (f)
        memset(f, 0, offsetof(struct trp_flow, numbers));
    if (!f || pthread_setspecific(flow_key, f) != 0) {
        free(f);
        return NULL;
    }
    trp_writer_init(&f->source);
    trp_writer_init(&f->kept);
    trp_writer_init(&f->gathered);
    for (uint32_t k = 0; k < TRP_SIDES_MAX; k++)
        trp_writer_init(&f->group[k]);
    for (uint32_t k = 0; k <= TRP_SIDES_MAX; k++)
        trp_writer_init(&f->combining[k].out);
    trp_reducer_init(&f->reducer);
    thread_flow = f;
    return f;
}

/* ---- a task ---- */

static int flow_writers(struct trp_flow *f)
{
    if (f->nsteps > f->nwriters) {
        struct trp_step_writers *p = realloc(f->writers, f->nsteps * sizeof(*p));
        if (!p)
            return trp_flow_fail(f, TRP_ENOMEM, "out of memory for a chain");
        for (uint32_t i = f->nwriters; i < f->nsteps; i++) {
            trp_writer_init(&p[i].out);
            trp_writer_init(&p[i].verdicts);
        }
        f->writers = p;
        f->nwriters = f->nsteps;
    }
    const volatile int *flag = f->task.info->killed;
    for (uint32_t i = 0; i < f->nsteps; i++) {
        struct trp_step_writers *s = &f->writers[i];
        trp_writer_reset(&s->out);
        trp_writer_reset(&s->verdicts);
        s->position = i + 1;
        s->out.flush = trp_flow_writer_flush;
        s->out.context = f;
        s->out.killed = flag;
        s->verdicts.killed = flag;
    }
    bool drop = f->chain->kind == TRP_DO_COUNT || f->chain->kind == TRP_DO_FOREACH;
    if (f->nsteps > 0)
        f->writers[f->nsteps - 1].out.drop = drop;
    trp_writer_reset(&f->source);
    f->source.flush = trp_flow_source_flush;
    f->source.context = f;
    f->source.killed = flag;
    return 0;
}

/* What is left in the writers from one position on, in order, and in states. */
static int flow_empty(struct trp_flow *f, uint32_t from)
{
    for (uint32_t i = from; i < f->nsteps; i++) {
        trp_writer *w = &f->writers[i].out;
        if (trp_flow_state_end(f, i) < 0)
            return -1;
        if (w->count && trp_flow_writer_flush(w, f) < 0)
            return -1;
        if (w->drop)
            f->ret->records_out += w->emitted;
    }
    return 0;
}

/* Somebody has enough: what it emitted goes on, what is above it goes no further. */
static int flow_stop(struct trp_flow *f)
{
    const uint32_t at = f->enough - 1;
    f->enough = 0;
    f->stopped = true;
    trp_writer *w = &f->writers[at].out;
    if (w->count && trp_flow_writer_flush(w, f) < 0)
        return -1;
    w->count = 0;
    f->ret->records_out += w->drop ? w->emitted : 0;
    return flow_empty(f, at + 1);
}

static int flow_source(struct trp_flow *f, const struct trp_chain_node *node,
                       struct trp_view *inputs)
{
    const uint8_t *input = inputs->at;
    size_t size = (size_t)(inputs->end - inputs->at);
    if (f->members.n > 0 && trp_chain_has_inputs(node->kind))
        input = trp_get_bytes(inputs, &size);
    if (inputs->bad)
        return trp_flow_fail(f, TRP_EPROTO, "inputs that cannot be read");
    return trp_flow_source(f, node, input, size);
}

/* One partition of a source through its path. Of several members each that has an input
 * takes it from `inputs`, else it is all of them. */
static int flow_member(struct trp_flow *f, struct trp_view *inputs)
{
    const struct trp_chain *c = f->chain;
    int64_t source = trp_chain_path(c, f->task.info->task, &f->members, f->steps,
                                    &f->nsteps, &f->partition, &f->keeps);
    if (source < 0 || f->nsteps == TRP_STEPS_MAX)
        return trp_flow_fail(f, TRP_EPROTO, "task %u is not in its chain",
                             f->task.info->task);
    trp_block_reader *kept = trp_flow_kept(f, source, inputs);
    if (f->failed)
        return -1;
    if (c->kind == TRP_DO_FOREACH)
        f->steps[f->nsteps++] =
            (struct trp_path_step){TRP_NONE, f->task.info->task, 0}; /* c->last */
    f->task.by = (struct trp_maker){c->nodes[source].maker, f->partition};
    f->added.from = f->added.n;
    int rc = flow_writers(f);
    if (rc == 0)
        rc = trp_flow_states_begin(f);
    if (rc == 0)
        rc = kept ? trp_flow_kept_source(f, kept)
                  : flow_source(f, &c->nodes[source], inputs);
    trp_block_close(kept);
    if (rc == 0)
        rc = flow_empty(f, 0);
    return rc < 0 && f->enough && !f->failed ? flow_stop(f) : rc;
}

/* What it has read of broadcasts was what they are; else it fails. */
static int flow_whole(struct trp_flow *f)
{
    char *damaged = NULL;
    int rc = 0;
    if (!trp_broadcasts_are_whole(&f->broadcasts, &damaged))
        rc = trp_flow_fail(f, TRP_ESYSTEM, "%s is damaged",
                           damaged ? damaged : "a broadcast");
    free(damaged);
    return rc;
}

int trp_flow_records(struct trp_flow *f, const uint8_t *input, size_t size)
{
    struct trp_view inputs = trp_view_of(input, size);
    f->members.n = 0;
    int rc;
    f->nopen = 0;
    f->stopped = false;
    while ((rc = flow_member(f, &inputs)) == 0 && (rc = flow_whole(f)) == 0 &&
           !f->stopped && trp_members_next(&f->members, 0))
        trp_flow_keep_end(f, f->members.n, true);
    trp_flow_keep_end(f, 0, rc == 0 && !f->stopped);
    return rc;
}

/* A large result would keep others waiting on the control channel. */
static int result_to_file(struct trp_flow *f)
{
    struct trp_function_result *ret = f->ret;
    trp_error err;
    if (trp_shared_write(f->chain->shared, TRP_RESULTS_FOLDER, f->task.info->attempt.n,
                         ret->result, ret->result_size, &ret->file.hash, &err) < 0)
        return trp_flow_fail(f, err.code, "%s", err.text);
    ret->file.size = ret->result_size;
    ret->in_file = true;
    free(ret->result);
    ret->result = NULL;
    ret->result_size = 0;
    return 0;
}

/* What the driver gets. */
static int flow_result(struct trp_flow *f)
{
    struct trp_function_result *ret = f->ret;
    if (f->chain->kind == TRP_DO_COLLECT)
        return trp_flow_collect_end(f);
    if (f->chain->kind == TRP_DO_SAMPLE) {
        struct trp_buf b = {0};
        trp_sample_put(&b, &f->sample);
        if (b.failed || b.size > TRP_RESULT_MAX) {
            trp_buf_free(&b);
            return trp_flow_fail(f, TRP_ENOMEM, "out of memory for a sample of keys");
        }
        ret->result = b.data;
        ret->result_size = (uint32_t)b.size;
    } else if (f->chain->kind == TRP_DO_REDUCE) {
        size_t n;
        const void *value = trp_reducer_value(&f->reducer, &n);
        ret->records_out = value != NULL;
        if (n > TRP_RESULT_MAX || (n && !(ret->result = malloc(n))))
            return trp_flow_fail(f, TRP_ELIMIT,
                                 "a reduced value of %zu bytes is too large", n);
        if (value && n)
            memcpy(ret->result, value, n);
        ret->result_size = (uint32_t)n;
    }
    ret->bytes_out = ret->result_size;
    return ret->result_size > TRP_RESULT_INLINE ? result_to_file(f) : 0;
}

static void flow_sample(struct trp_flow *f, const uint8_t *input, size_t size)
{
    const uint32_t task = f->task.info->task;
    trp_sample_begin(&f->sample, task, f->chain->want);
    int rc = trp_flow_records(f, input, size);
    if (rc == 0 && trp_sample_again(&f->sample, task))
        rc = trp_flow_records(f, input, size);
    if (rc == 0)
        flow_result(f);
}

static void flow_run(struct trp_flow *f, const uint8_t *input, size_t size)
{
    const struct trp_chain *c = f->chain;
    trp_shuffle_keep_memory(c->kind == TRP_DO_SHUFFLE);
    trp_writer_reset(&f->kept);
    for (uint32_t k = 0; k < TRP_SIDES_MAX; k++)
        trp_writer_reset(&f->group[k]);
    if (f->pack.capacity > TRP_KEEP_BYTES)
        trp_buf_free(&f->pack);
    trp_reducer_reset(&f->reducer, c->combine, c->last.arg);
    f->reducer.tasked = c->tasked;
    f->reducer.task = &f->task;
    for (uint32_t k = 0; k <= TRP_SIDES_MAX; k++)
        f->combining[k].raised = false;
    if (c->kind == TRP_DO_SAMPLE)
        flow_sample(f, input, size);
    else if (c->kind == TRP_DO_SAVE)
        trp_flow_save(f, input, size);
    else if (c->kind == TRP_DO_CHECKPOINT)
        trp_flow_checkpoint(f, input, size);
    else if (c->kind == TRP_DO_SHUFFLE)
        trp_flow_map_output(f, input, size);
    else if (trp_flow_records(f, input, size) == 0)
        flow_result(f);
}

static int by_key(const void *a, const void *b)
{
    const struct trp_added *x = a, *y = b;
    if (x->accumulator != y->accumulator)
        return x->accumulator < y->accumulator ? -1 : 1;
    if (x->maker != y->maker)
        return x->maker < y->maker ? -1 : 1;
    return (x->partition > y->partition) - (x->partition < y->partition);
}

/* Of a task that succeeded. Members that share a partition (above a coalesced node) have
 * an entry each: they are one. */
static void tell_added(struct trp_flow *f)
{
    struct trp_buf b = {0};
    struct trp_added *v = f->added.v;
    uint32_t n = 0;
    qsort(v, f->added.n, sizeof(*v), by_key);
    for (uint32_t i = 0; i < f->added.n; i++) {
        if (n > 0 && by_key(&v[n - 1], &v[i]) == 0)
            v[n - 1].value = (int64_t)((uint64_t)v[n - 1].value + (uint64_t)v[i].value);
        else
            v[n++] = v[i];
    }
    f->added.n = n;
    for (uint32_t i = 0; i < n; i++)
        trp_added_put(&b, &v[i]);
    if (b.failed) {
        trp_flow_fail(f, TRP_ENOMEM, "out of memory for accumulators");
        trp_buf_free(&b);
        return;
    }
    f->ret->added = b.data;
    f->ret->nadded = f->added.n;
}

static void runner_run(void *stage, const struct trp_task_info *info,
                       const uint8_t *input, uint32_t input_size,
                       struct trp_function_result *ret)
{
    struct trp_flow *f = flow_of_thread();
    if (!f) {
        ret->status = TRP_ENOMEM;
        snprintf(ret->error, sizeof(ret->error), "out of memory for a task");
        return;
    }
    f->chain = stage;
    f->ret = ret;
    f->failed = false;
    f->enough = 0;
    f->task = (struct trp_task){.info = info,
                                .ret = ret,
                                .added = &f->added,
                                .flow = f,
                                .resources = &f->resources,
                                .gathered = &f->gathered};
    f->added.n = f->added.from = f->added.last = 0;
    flow_run(f, input, input_size);
    for (uint32_t k = 0; k <= TRP_SIDES_MAX && !f->failed; k++)
        if (f->combining[k].raised)
            trp_flow_fail(f, TRP_EFAILED, "%s failed", f->combining[k].plan->function);
    trp_flow_states_drop(f);
    if (!f->failed)
        flow_whole(f); /* functions that combine may have read some since */
    if (f->result)     /* it failed */
        trp_shared_end(f->result, false, NULL, NULL);
    f->result = NULL;
    if (!f->failed && f->added.n && f->chain->kind != TRP_DO_SAMPLE)
        tell_added(f); /* a sample may read its partition in part, or twice */
    trp_broadcasts_let_go(&f->broadcasts);
    trp_flow_memory_repay(f);
    trp_task_forget(&f->task);
    trp_sample_free(&f->sample);
    if (!f->failed)
        ret->error[0] = '\0';
}

static void *runner_stage_open(const uint8_t *body, size_t size, trp_error *err)
{
    struct trp_chain *c = NULL;
    return trp_chain_get(body, size, &c, err) < 0 ? NULL : c;
}

static void runner_stage_close(void *stage)
{
    trp_chain_free(stage);
}

static uint64_t runner_stage_key(const void *stage)
{
    return ((const struct trp_chain *)stage)->key;
}

const struct trp_function_runner trp_runner = {
    .stage_open = runner_stage_open,
    .stage_close = runner_stage_close,
    .stage_key = runner_stage_key,
    .run = runner_run,
};
