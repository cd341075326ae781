/*
 * The engine has the last word: it keeps a dataset that something is made of, or that a job
 * or a stage is about, and then it is asked again when jobs have gone.
 *
 * Kept partitions go on every executor (UNPERSIST). Map outputs belong to a host, so one
 * executor of each location removes them (DROP); where there is none, the next one that
 * comes does. What attempts have left that counted nowhere goes with the rest, since files
 * are looked for by their dataset.
 */
#include "driver/freed_datasets.h"

#include <stdlib.h>

#include "driver/kept_datasets.h"
#include "driver/locations.h"
#include "driver/perform.h"

/* ---- outputs ---- */

/* What was moved to the run's folder can be removed by any. */
static const struct trp_executor_record *anyone_at(const trp_driver *d,
                                                   uint32_t location)
{
    const struct trp_executor_record *other = NULL;
    for (uint32_t i = d->nrecords; i-- > 0;) {
        const struct trp_executor_record *x = d->records[i];
        if (!x || x->state != TRP_RECORD_UP || x->released || x->location == TRP_NONE)
            continue;
        if (x->location == location)
            return x;
        other = x;
    }
    return d->locations[location].moved ? other : NULL;
}

void trp_driver_drop_outputs(trp_driver *d)
{
    for (uint32_t i = 0; i < d->nlocations; i++) {
        struct trp_stack *all = &d->locations[i].dropped;
        const struct trp_executor_record *x = all->n ? anyone_at(d, i) : NULL;
        struct trp_buf b = {0};
        if (!x)
            continue;
        trp_drop_put(&b, all->v, all->n);
        if (trp_driver_send(d, x->id, &b) == TRP_ENOMEM)
            trp_perform_out_of_memory(d);
        all->n = 0;
    }
}

static void forget_outputs(trp_driver *d, uint32_t dataset)
{
    if (dataset >= d->noutputs)
        return;
    struct trp_driver_outputs *o = &d->outputs[dataset];
    for (uint32_t i = 0; i < o->places.n; i++)
        if (!trp_stack_push(&d->locations[o->places.v[i]].dropped, dataset))
            trp_perform_out_of_memory(d);
    free(o->places.v);
    free(o->v);
    *o = (struct trp_driver_outputs){0};
}

/* ---- datasets ---- */

static bool free_one(trp_driver *d, uint32_t dataset)
{
    const struct trp_event ev = {.kind = TRP_EVENT_DATASET_FREED, .freed = {dataset}};
    if (trp_driver_try_step(d, &ev, NULL) < 0)
        return false;
    trp_driver_perform(d);
    const struct trp_driver_kept *k = d->kept[dataset];
    for (uint32_t i = 0; k->name && !k->gone && i < d->nrecords; i++) {
        const struct trp_executor_record *x = d->records[i];
        if (x && x->state & TRP_RECORD_JOINED)
            trp_driver_tell_unpersist(d, x, dataset);
    }
    trp_driver_forget_kept(d, dataset);
    forget_outputs(d, dataset);
    return true;
}

void trp_driver_free_datasets(trp_driver *d)
{
    struct trp_stack todo = d->freeing;
    d->freeing = (struct trp_stack){0};   /* a step may bring us here again */
    for (uint32_t i = 0; i < todo.n; i++) /* children before parents, as they came */
        if (!free_one(d, todo.v[i]) && !trp_stack_push(&d->freeing, todo.v[i]))
            trp_perform_out_of_memory(d);
    if (todo.n)
        trp_driver_drop_outputs(d);
    free(todo.v);
}

void trp_driver_dataset_free(trp_driver *d, uint32_t dataset)
{
    trp_driver_enter(d);
    if (trp_stack_push(&d->freeing, dataset))
        trp_driver_free_datasets(d);
    else
        trp_perform_out_of_memory(d);
    trp_driver_leave(d);
}
