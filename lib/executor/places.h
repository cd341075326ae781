/*
 * Queue ahead (semantics, difference 16): who takes the place of an attempt that ended.
 *
 * An attempt's *place* is what it was given: a slot, and the addresses of resources.
 * The driver may queue attempts of a stage behind its running ones. The head of that
 * queue takes the place of the attempt of its stage that ends next, here and, when it
 * hears of that end, in the engine: so both agree on who has which place, and
 * nothing is sent about it.
 *
 * When nothing is queued, the place is *vacant*, until the driver has heard of the end
 * and does with it what it likes. But it may have queued an attempt before it heard:
 * every launch says how many ends of this executor the driver had *seen*; a queued
 * attempt takes the first vacant place that is newer, as the engine will make it do.
 *
 * One struct a stage. Used by the executor for functions, by the spawner for commands.
 */
#ifndef TRP_EXECUTOR_PLACES_H
#define TRP_EXECUTOR_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/map_output.h"
#include "wire/message.h"

/* A copy of message bytes, shared by the tasks that have some of them. */
struct trp_bytes {
    uint32_t users;
    uint8_t data[];
};

struct trp_executor_stage;

struct trp_task_entry {
    trp_attempt_id attempt;
    struct trp_executor_stage *stage; /* NULL in the spawner */
    uint32_t task;
    uint16_t number;
    uint8_t has_item;
    uint32_t extra_size;
    const uint8_t *extra;
    struct trp_bytes *bytes;         /* NULL: no extra */
    struct trp_stage_inputs *inputs; /* of the stage when it began; NULL: none */
    char *resources;                 /* "gpu=0,1\n…", its own; NULL: none */
};

/* A queue of tasks: a ring that grows. */
struct trp_task_ring {
    struct trp_task_entry *items;
    uint32_t head, count, capacity;
};
bool trp_task_ring_push(struct trp_task_ring *r, const struct trp_task_entry *t);
bool trp_task_ring_pop(struct trp_task_ring *r, struct trp_task_entry *ret);
/* Takes one out wherever it is, looking from the end. */
bool trp_task_ring_take(struct trp_task_ring *r, trp_attempt_id attempt,
                        struct trp_task_entry *ret);
void trp_task_ring_free(struct trp_task_ring *r);
void trp_task_entry_free(struct trp_task_entry *t);

struct trp_places {
    struct trp_task_ring queued;
    struct trp_task_ring vacant; /* `task` is the number of the end that left it */
};
void trp_places_free(struct trp_places *p);

/* A launch came. 1: it runs now, with the resources in `t`; 0: it was queued (`t` is
 * taken); TRP_ENOMEM. */
int trp_places_launch(struct trp_places *p, uint32_t seen, bool queued,
                      struct trp_task_entry *t);

/* The `number`-th end of this executor was recorded; it had `*resources`, which are
 * taken. 1: `*ret_head` runs now in its place; 0: the place is vacant; TRP_ENOMEM. */
int trp_places_end(struct trp_places *p, uint32_t number, char **resources,
                   struct trp_task_entry *ret_head);

#endif
