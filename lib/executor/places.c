/*
 * Places: rings of small entries that own at most two things (a share in the bytes of a
 * message, a text of resources), moved from one ring to the next by copying. All steps
 * are O(1) but taking one out of the middle, which looks from the end, where a recall
 * finds what it wants.
 *
 * Numbers of ends are compared as differences: they go round after 2^32.
 */
#include "executor/places.h"

#include <stdlib.h>

bool trp_task_ring_push(struct trp_task_ring *r, const struct trp_task_entry *t)
{
    if (r->count == r->capacity) {
        uint32_t capacity = r->capacity ? 2 * r->capacity : 16;
        struct trp_task_entry *items = calloc(capacity, sizeof *items);
        if (!items)
            return false;
        for (uint32_t i = 0; i < r->count; i++)
            items[i] = r->items[(r->head + i) & (r->capacity - 1)];
        free(r->items);
        *r = (struct trp_task_ring){
            .items = items, .count = r->count, .capacity = capacity};
    }
    r->items[(r->head + r->count++) & (r->capacity - 1)] = *t;
    return true;
}

bool trp_task_ring_pop(struct trp_task_ring *r, struct trp_task_entry *ret)
{
    if (r->count == 0)
        return false;
    *ret = r->items[r->head];
    r->head = (r->head + 1) & (r->capacity - 1);
    r->count--;
    return true;
}

bool trp_task_ring_take(struct trp_task_ring *r, trp_attempt_id attempt,
                        struct trp_task_entry *ret)
{
    uint32_t mask = r->capacity - 1, i = r->count;
    while (i > 0 && r->items[(r->head + i - 1) & mask].attempt.n != attempt.n)
        i--;
    if (i == 0)
        return false;
    *ret = r->items[(r->head + i - 1) & mask];
    for (; i < r->count; i++)
        r->items[(r->head + i - 1) & mask] = r->items[(r->head + i) & mask];
    r->count--;
    return true;
}

void trp_task_ring_free(struct trp_task_ring *r)
{
    struct trp_task_entry t;
    while (trp_task_ring_pop(r, &t))
        trp_task_entry_free(&t);
    free(r->items);
    *r = (struct trp_task_ring){0};
}

void trp_task_entry_free(struct trp_task_entry *t)
{
    if (t->bytes && --t->bytes->users == 0)
        free(t->bytes);
    trp_stage_inputs_leave(t->inputs);
    t->inputs = NULL;
    free(t->resources);
    t->bytes = NULL;
    t->resources = NULL;
}

void trp_places_free(struct trp_places *p)
{
    trp_task_ring_free(&p->queued);
    trp_task_ring_free(&p->vacant);
}

/* Finds a queued attempt's place that became free on the way. Those the driver had
 * heard of (`seen`) it has given away itself. */
static bool find_vacant(struct trp_places *p, uint32_t seen, bool wanted,
                        struct trp_task_entry *t)
{
    struct trp_task_entry place;
    while (p->vacant.count > 0) {
        uint32_t number = p->vacant.items[p->vacant.head].task;
        bool known = (int32_t)(number - seen) <= 0;
        if (!known && !wanted)
            return false;
        trp_task_ring_pop(&p->vacant, &place);
        if (!known) {
            free(t->resources);
            t->resources = place.resources;
            return true;
        }
        free(place.resources);
    }
    return false;
}

int trp_places_launch(struct trp_places *p, uint32_t seen, bool queued,
                      struct trp_task_entry *t)
{
    bool placed = find_vacant(p, seen, queued, t);
    if (!queued || placed)
        return 1;
    return trp_task_ring_push(&p->queued, t) ? 0 : TRP_ENOMEM;
}

int trp_places_end(struct trp_places *p, uint32_t number, char **resources,
                   struct trp_task_entry *ret_head)
{
    char *had = *resources;
    *resources = NULL;
    if (trp_task_ring_pop(&p->queued, ret_head)) {
        free(ret_head->resources);
        ret_head->resources = had;
        return 1;
    }
    struct trp_task_entry place = {.task = number, .resources = had};
    if (trp_task_ring_push(&p->vacant, &place))
        return 0;
    free(had);
    return TRP_ENOMEM;
}
