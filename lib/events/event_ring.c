/*
 * A single-producer single-consumer ring. `head` counts what was published, `tail` what
 * was given back; both only grow, their difference is what is in the ring. Each side
 * keeps its own copy of the other's counter and looks at the real one only when that is
 * not enough, so that the two cores rarely share a cache line.
 *
 * Waiting. A side that is about to sleep says so in `napping` or `waiting` and then
 * looks at the counters once more; the other side moves its counter and then looks at
 * the flag. All four are sequentially consistent, so one of the two sees the other and
 * no wake-up is lost. The lock and the condition are only for the sleeping itself.
 */
#include "events/event_ring.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "os/clock.h"

/* The consumer is woken early enough to be at work long before the ring is crowded: a
 * burst of launches is then written, not summarised. */
enum { WAKE = TRP_EVENT_RING_RECORDS / 8, CROWDED = TRP_EVENT_RING_RECORDS / 4 * 3 };

struct trp_event_ring {
    struct trp_event_record *records;
    pthread_mutex_t lock;
    pthread_cond_t filled, drained;

    _Alignas(64) _Atomic uint64_t head; /* producer's line */
    uint64_t seen_tail;
    atomic_bool closed;
    atomic_bool waiting; /* the producer sleeps until it is not crowded */

    _Alignas(64) _Atomic uint64_t tail; /* consumer's line */
    uint64_t seen_head;
    atomic_bool napping;
};

trp_event_ring *trp_event_ring_new(void)
{
    trp_event_ring *r = aligned_alloc(64, sizeof *r);
    if (!r)
        return NULL;
    *r = (struct trp_event_ring){0};
    r->records = calloc(TRP_EVENT_RING_RECORDS, sizeof *r->records);
    if (!r->records) {
        free(r);
        return NULL;
    }
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->filled, &attr);
    pthread_cond_init(&r->drained, NULL);
    pthread_condattr_destroy(&attr);
    return r;
}

void trp_event_ring_free(trp_event_ring *r)
{
    if (!r)
        return;
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->filled);
    pthread_cond_destroy(&r->drained);
    free(r->records);
    free(r);
}

static uint64_t in_ring(trp_event_ring *r)
{
    return atomic_load(&r->head) - atomic_load(&r->tail);
}

/* The first that finds the consumer napping wakes it; the next need not. */
static void wake_consumer(trp_event_ring *r)
{
    if (!atomic_exchange(&r->napping, false))
        return;
    pthread_mutex_lock(&r->lock);
    pthread_cond_signal(&r->filled);
    pthread_mutex_unlock(&r->lock);
}

static void wait_for_room(trp_event_ring *r)
{
    atomic_store(&r->waiting, true);
    wake_consumer(r);
    pthread_mutex_lock(&r->lock);
    while (in_ring(r) > CROWDED)
        pthread_cond_wait(&r->drained, &r->lock);
    pthread_mutex_unlock(&r->lock);
    atomic_store(&r->waiting, false);
}

/* Whether more than `n` records are in the ring, by the last look if that will do. */
static bool holds_more_than(trp_event_ring *r, uint64_t n)
{
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    if (head - r->seen_tail > n)
        r->seen_tail = atomic_load(&r->tail);
    return head - r->seen_tail > n;
}

bool trp_event_ring_crowded(trp_event_ring *r)
{
    return holds_more_than(r, CROWDED);
}

struct trp_event_record *trp_event_ring_claim(trp_event_ring *r)
{
    if (holds_more_than(r, TRP_EVENT_RING_RECORDS - 1))
        wait_for_room(r);
    return &r->records[atomic_load_explicit(&r->head, memory_order_relaxed) %
                       TRP_EVENT_RING_RECORDS];
}

void trp_event_ring_publish(trp_event_ring *r)
{
    atomic_store(&r->head, atomic_load_explicit(&r->head, memory_order_relaxed) + 1);
    if (atomic_load(&r->napping) && holds_more_than(r, WAKE))
        wake_consumer(r);
}

void trp_event_ring_close(trp_event_ring *r)
{
    atomic_store(&r->closed, true);
    wake_consumer(r);
}

uint32_t trp_event_ring_take(trp_event_ring *r, struct trp_event_record **ret)
{
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    if (r->seen_head == tail)
        r->seen_head = atomic_load(&r->head);
    uint64_t n = r->seen_head - tail, at = tail % TRP_EVENT_RING_RECORDS;
    if (n > TRP_EVENT_RING_RECORDS - at)
        n = TRP_EVENT_RING_RECORDS - at;
    *ret = &r->records[at];
    return n > TRP_EVENT_RING_TAKE ? TRP_EVENT_RING_TAKE : (uint32_t)n;
}

void trp_event_ring_give_back(trp_event_ring *r, uint32_t n)
{
    atomic_store(&r->tail, atomic_load_explicit(&r->tail, memory_order_relaxed) + n);
    if (!atomic_load(&r->waiting) || in_ring(r) > CROWDED)
        return;
    pthread_mutex_lock(&r->lock);
    pthread_cond_signal(&r->drained);
    pthread_mutex_unlock(&r->lock);
}

bool trp_event_ring_closed(trp_event_ring *r)
{
    return atomic_load(&r->closed);
}

void trp_event_ring_nap(trp_event_ring *r, uint32_t ms)
{
    struct timespec until = trp_clock_after(ms * INT64_C(1000000));

    pthread_mutex_lock(&r->lock);
    atomic_store(&r->napping, true);
    while (atomic_load(&r->napping) && !atomic_load(&r->closed) && in_ring(r) <= WAKE)
        if (pthread_cond_timedwait(&r->filled, &r->lock, &until) != 0)
            break;
    atomic_store(&r->napping, false);
    pthread_mutex_unlock(&r->lock);
}
