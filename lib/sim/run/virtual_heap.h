/*
 * What will happen in a virtual run, by time; what is due at the same time in the order
 * in which it was put in.
 */
#ifndef TRP_SIM_RUN_VIRTUAL_HEAP_H
#define TRP_SIM_RUN_VIRTUAL_HEAP_H

#include <stdbool.h>
#include <stdint.h>

enum trp_virtual_due_kind {
    TRP_DUE_BEGIN,    /* the driver's own job starts */
    TRP_DUE_JOB,      /* the wait of a job is over: line `a`, shares `b` */
    TRP_DUE_UP,       /* the executor `a` is ready, number of its life `b` */
    TRP_DUE_GANG,     /* the ranks of attempt `b` run */
    TRP_DUE_END,      /* attempt `b` ends by itself */
    TRP_DUE_KILLED,   /* attempt `b` was killed, with status `a` */
    TRP_DUE_GONE,     /* the released executor `a` is gone */
    TRP_DUE_DEATH,    /* the executor `a` dies */
    TRP_DUE_NODE,     /* the node `a` fails, if still in use `b` */
    TRP_DUE_REPAIRED, /* the node `a` is back */
};

struct trp_virtual_due {
    int64_t at;
    uint64_t order, b;
    uint32_t kind, a;
};

struct trp_virtual_heap {
    struct trp_virtual_due *v;
    uint32_t n, cap;
    uint64_t order;
};

/* False: out of memory. */
bool trp_virtual_heap_put(struct trp_virtual_heap *h, int64_t at,
                          enum trp_virtual_due_kind kind, uint32_t a, uint64_t b);
struct trp_virtual_due trp_virtual_heap_take(struct trp_virtual_heap *h);

#endif
