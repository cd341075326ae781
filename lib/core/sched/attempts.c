/*
 * The pool of live attempts: an array of slots with a free list, so that an attempt is
 * named by its slot and found in O(1) when a message about it comes back. The serial
 * number in the id's high half tells a late message about an earlier user of the slot.
 */
#include "core/engine_state.h"

uint32_t trp_attempt_new(struct trp_engine *e)
{
    struct trp_attempts *p = &e->attempts;
    uint32_t slot = p->free;
    if (slot != TRP_NONE) {
        p->free = p->v[slot].next;
    } else {
        if (!TRP_ARRAY_GROW(p->v, p->n, p->cap)) {
            e->out_of_memory = true;
            return TRP_NONE;
        }
        slot = p->n++;
        p->v[slot].state = TRP_ATTEMPT_FREE;
    }
    struct trp_attempt *a = &p->v[slot];
    a->serial = p->serial++;
    a->state = TRP_ATTEMPT_FREE; /* until it has its place */
    a->grants = NULL;
    a->ngrants = 0;
    a->kill_sent = a->recall_sent = false;
    a->flags = 0;
    a->twin = TRP_NONE;
    a->rate = 0;
    return slot;
}

void trp_attempt_free(struct trp_engine *e, uint32_t slot)
{
    struct trp_attempt *a = &e->attempts.v[slot];
    if (a->grants) {
        free(a->grants);
        a->grants = NULL;
    }
    a->state = TRP_ATTEMPT_FREE;
    a->next = e->attempts.free;
    e->attempts.free = slot;
}
