/*
 * The engine has the registry of kept partitions; here is what comes from executors, and
 * goes to them.
 *
 * An executor may keep a partition of a dataset that was unpersisted meanwhile: it had
 * its task, or even its stage's description, before. It is told when it says so.
 */
#include "driver/kept_datasets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "driver/perform.h"
#include "wire/blocks.h"

static bool is_unpersisted(const trp_driver *d, uint32_t dataset)
{
    return !d->kept[dataset] || d->kept[dataset]->gone;
}

void trp_driver_tell_unpersist(trp_driver *d, const struct trp_executor_record *x,
                               uint32_t dataset)
{
    struct trp_buf b = {0};
    trp_number_put(&b, TRP_MSG_UNPERSIST, dataset);
    if (trp_driver_send(d, x->id, &b) == TRP_ENOMEM)
        trp_perform_out_of_memory(d);
}

/* It is told again with the end of the attempt that caused it. */
static void log_state(trp_driver *d, struct trp_executor_record *x,
                      const struct trp_block_state *s)
{
    const struct trp_event_block b = {.executor = x->id,
                                      .host = x->host ? x->host : "",
                                      .dataset = s->dataset,
                                      .partition = s->partition,
                                      .attempt = s->attempt,
                                      .level = s->level,
                                      .there = s->there,
                                      .memory = s->memory,
                                      .disk = s->disk};
    trp_event_block(d->log, &b, trp_driver_wall(d, d->now));
    if (s->attempt.n == UINT64_MAX)
        return;
    if (TRP_ARRAY_GROW(x->blocks, x->nblocks, x->blocks_cap))
        x->blocks[x->nblocks++] = b;
    else
        trp_perform_out_of_memory(d);
}

const struct trp_event_block *trp_driver_blocks_of(struct trp_executor_record *x,
                                                   trp_attempt_id attempt,
                                                   uint32_t *ret_n)
{
    const uint32_t n = x->nblocks;
    uint32_t others = 0;
    for (uint32_t i = 0; i < n; i++)
        if (x->blocks[i].attempt.n != attempt.n) {
            struct trp_event_block other = x->blocks[i];
            memmove(&x->blocks[others + 1], &x->blocks[others],
                    (i - others) * sizeof other);
            x->blocks[others++] = other;
        }
    x->nblocks = others;
    *ret_n = n - others;
    return x->blocks + others;
}

static void take_state(trp_driver *d, struct trp_executor_record *x,
                       const struct trp_block_state *s)
{
    struct trp_event ev = {
        .kind = TRP_EVENT_CACHED,
        .cached = {s->dataset, s->partition, x->id, !s->there}
    };
    log_state(d, x, s);
    if (!is_unpersisted(d, s->dataset))
        trp_driver_step(d, &ev);
    else if (s->there)
        trp_driver_tell_unpersist(d, x, s->dataset);
}

static void kept_release(struct trp_driver_kept *k)
{
    if (!k)
        return;
    free(k->name);
    free(k->below);
    free(k);
}

int trp_driver_note_kept(trp_driver *d, const struct trp_dataset_spec *spec,
                         trp_error *err)
{
    struct trp_driver_kept *k = calloc(1, sizeof(*k));
    if (!k || !TRP_ARRAY_GROW(d->kept, d->ndatasets, d->kept_cap) ||
        (spec->cached && !(k->name = strdup(spec->name))) ||
        (spec->nparents && !(k->below = malloc(spec->nparents * sizeof(*k->below))))) {
        kept_release(k);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a dataset");
    }
    k->partitions = spec->partitions;
    for (uint32_t i = 0; i < spec->nparents; i++)
        if (!spec->parents[i].shuffle)
            k->below[k->nbelow++] = spec->parents[i].dataset;
    d->kept[d->ndatasets] = k;
    return 0;
}

void trp_driver_forget_kept(trp_driver *d, uint32_t dataset)
{
    kept_release(d->kept[dataset]);
    d->kept[dataset] = NULL;
}

void trp_driver_keeps(trp_driver *d, uint32_t dataset, unsigned level)
{
    trp_driver_enter(d);
    d->kept[dataset]->level = (uint8_t)level;
    trp_driver_leave(d);
}

/* To the list, if it has room and has it not. */
static void list_once(uint32_t list[TRP_KEPT_SHOWN], uint32_t *n, uint32_t dataset)
{
    for (uint32_t i = 0; i < *n; i++)
        if (list[i] == dataset)
            return;
    if (*n < TRP_KEPT_SHOWN)
        list[(*n)++] = dataset;
}

uint32_t trp_driver_kept_of(const trp_driver *d, uint32_t dataset,
                            struct trp_event_kept *ret)
{
    uint32_t list[TRP_KEPT_SHOWN] = {dataset}, n = 0;
    for (uint32_t i = 0, listed = dataset != TRP_NONE; i < listed; i++) {
        const struct trp_driver_kept *k = d->kept[list[i]];
        for (uint32_t b = 0; b < k->nbelow; b++)
            list_once(list, &listed, k->below[b]);
        if (k->name && !k->gone)
            ret[n++] =
                (struct trp_event_kept){.dataset = list[i],
                                        .partitions = k->partitions,
                                        .cached = trp_engine_cached(d->engine, list[i]),
                                        .level = k->level,
                                        .name = k->name};
    }
    return n;
}

void trp_driver_kept_free(trp_driver *d)
{
    for (uint32_t i = 0; i < d->ndatasets; i++)
        kept_release(d->kept[i]);
    free(d->kept);
}

/* Nothing is wrong but that it takes longer. */
static void tell_problem(trp_driver *d, const struct trp_executor_record *x,
                         uint32_t problem)
{
    char line[TRP_ERROR_TEXT];
    snprintf(line, sizeof line,
             "executor %u%s%s: the disk takes no more kept partitions: %s; those that "
             "memory has no room for are computed again",
             x->id.n, x->host ? " on " : "", x->host ? x->host : "",
             strerror((int)problem));
    trp_driver_log(d, "warning", "%s", line);
    if (!d->disk_full_told)
        trp_progress_line(d->progress, d->now, line);
    d->disk_full_told = true;
}

int trp_driver_on_blocks(trp_driver *d, struct trp_executor_record *x,
                         const uint8_t *data, size_t size)
{
    struct trp_view v;
    struct trp_block_state s;
    uint32_t problem, count;
    int rc = trp_blocks_open(data, size, &v, &problem, &count);
    if (rc == 0 && problem)
        tell_problem(d, x, problem);
    while (rc == 0 && (rc = trp_blocks_next(&v, &s)) > 0) {
        if (s.dataset >= d->ndatasets)
            return TRP_EPROTO;
        take_state(d, x, &s);
        rc = 0;
    }
    return rc;
}

void trp_driver_unpersist(trp_driver *d, uint32_t dataset)
{
    struct trp_event ev = {.kind = TRP_EVENT_DATASET_RELEASED,
                           .released = {.dataset = dataset}};
    trp_driver_enter(d);
    if (!is_unpersisted(d, dataset)) {
        d->kept[dataset]->gone = true;
        for (uint32_t i = 0; i < d->nrecords; i++) {
            const struct trp_executor_record *x = d->records[i];
            if (x && x->state & TRP_RECORD_JOINED)
                trp_driver_tell_unpersist(d, x, dataset);
        }
        trp_driver_step(d, &ev);
    }
    trp_driver_leave(d);
}
