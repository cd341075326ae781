/*
 * Since when each executor is idle, and which have been so for too long (semantics,
 * section 17).
 *
 * An executor is *idle* while none of its tasks runs. Its *timeout* is the largest that
 * applies: the plain one; that of cached blocks, when it holds some; that of shuffle
 * data, when it holds some that no active job uses. With shuffle data in use it does
 * not time out at all. The deadline counts from when it became idle, so it may have
 * passed by the time the data is dropped. Executors that timed out stay *expired* until
 * they work again, leave, or are given something to hold.
 *
 * The caller owns a struct trp_idle_item for each executor, all zero before the first
 * call, and tells what happens. `id` orders executors that expired. Cost: O(1) for a
 * task that starts or ends, O(log executors) now and then.
 *
 *     trp_idle_new(&config, &m);
 *     trp_idle_added(m, &x->idle, now);
 *     trp_idle_started(m, &x->idle, now);  trp_idle_ended(m, &x->idle, now);
 *     n = trp_idle_expired(m, now, &list);   // at trp_idle_due(m)
 *
 * Errors: TRP_ENOMEM alone. Threads: one at a time.
 */
#ifndef TRP_CORE_ALLOC_IDLE_H
#define TRP_CORE_ALLOC_IDLE_H

#include "core/base/bits.h"
#include "core/base/error.h"

typedef struct trp_idle trp_idle;

/* Times in ns; INT64_MAX: never. */
struct trp_idle_config {
    int64_t plain_ns;   /* dynamicAllocation.executorIdleTimeout */
    int64_t cached_ns;  /* dynamicAllocation.cachedExecutorIdleTimeout */
    int64_t shuffle_ns; /* dynamicAllocation.shuffleTracking.timeout */
    bool tracking;      /* executors hold shuffle data, not their hosts */
};

/* One executor. All but `id` belongs to idle.c. */
struct trp_idle_item {
    uint32_t id;
    uint32_t running, cached;
    bool known;      /* anything was told of it */
    bool registered; /* before that it never times out */
    bool leaving, in_use;
    uint8_t place; /* in the heap, among the expired, or nowhere … */
    uint32_t at;   /* … and where there */
    int64_t since; /* idle since, while none of its tasks runs */
    int64_t key;   /* in the heap: no later than its deadline */
    struct trp_bits shuffles;
    struct trp_idle_item *next, *prev; /* holders of shuffle data */
};

int trp_idle_new(const struct trp_idle_config *config, trp_idle **ret_idle);
void trp_idle_free(trp_idle *m); /* not its items */

/* It registered. A task may have started there before; a second time changes nothing:
 * 1 the first time, then 0. */
int trp_idle_added(trp_idle *m, struct trp_idle_item *x, int64_t now_ns);
/* It is on its way out. */
void trp_idle_leaving(trp_idle *m, struct trp_idle_item *x);
/* It is gone; the item is all zero again, but for its id. */
void trp_idle_gone(trp_idle *m, struct trp_idle_item *x);

int trp_idle_started(trp_idle *m, struct trp_idle_item *x, int64_t now_ns);
int trp_idle_ended(trp_idle *m, struct trp_idle_item *x, int64_t now_ns);
/* How many cached blocks it holds now. */
int trp_idle_cached(trp_idle *m, struct trp_idle_item *x, uint32_t blocks);

/* A successful task left data of shuffle number `shuffle` there. Nothing without
 * tracking. */
int trp_idle_shuffle_data(trp_idle *m, struct trp_idle_item *x, uint32_t shuffle);
/* An active job uses the shuffle (from when the job is submitted: before there is
 * data), or none does any more. O(executors that hold data). */
int trp_idle_shuffle_use(trp_idle *m, uint32_t shuffle, bool in_use);
/* It was cleaned up. O(executors that hold data). */
int trp_idle_shuffle_gone(trp_idle *m, uint32_t shuffle);

/* When the next one expires, INT64_MAX: never. */
int64_t trp_idle_due(trp_idle *m);
/* Those that have expired by now, by id; valid until the next call. */
uint32_t trp_idle_expired(trp_idle *m, int64_t now_ns,
                          struct trp_idle_item *const **ret_list);
/* When it will have been idle for too long; INT64_MAX: never, or it is not idle. */
int64_t trp_idle_deadline(const trp_idle *m, const struct trp_idle_item *x);

#endif
