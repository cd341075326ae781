/*
 * Random numbers of a simulation: the same seed, the same numbers, in any order.
 *
 * Each thing that is drawn (the duration of attempt 2 of task 17 of stage 3) has a
 * stream of its own, made from the seed and from what it is. So policies can be
 * compared on the very same durations, and a change of one thing leaves the others as
 * they were. The generator is xoshiro256**, seeded by splitmix64.
 *
 *     struct trp_random r = trp_random_of(seed, TRP_DRAW_TASK, stage, task << 16 | n);
 *     double u = trp_random_unit(&r);
 */
#ifndef TRP_SIM_RUN_RANDOM_H
#define TRP_SIM_RUN_RANDOM_H

#include <stdint.h>

/* What is drawn. Numbers stay as they are: results depend on them. */
enum trp_draw {
    TRP_DRAW_QUEUE = 1,    /* the wait of a job */
    TRP_DRAW_START = 2,    /* the start-up of an executor or gang */
    TRP_DRAW_TASK = 3,     /* the duration of an attempt, and whether it fails */
    TRP_DRAW_EXECUTOR = 4, /* when an executor dies */
    TRP_DRAW_NODE = 5,     /* when a node dies */
    TRP_DRAW_BUSY = 6,     /* which nodes others have */
};

struct trp_random {
    uint64_t s[4];
};

struct trp_random trp_random_of(uint64_t seed, enum trp_draw what, uint64_t a,
                                uint64_t b);
uint64_t trp_random_next(struct trp_random *r);
double trp_random_unit(struct trp_random *r);   /* in (0, 1) */
double trp_random_normal(struct trp_random *r); /* mean 0, deviation 1 */

#endif
