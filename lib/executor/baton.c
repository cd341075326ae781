/*
 * The baton: one 32-bit word, {epoch, state}, and a second word that takers sleep on.
 *
 * Every leave begins a new epoch, so a taker that finds the very word it saw 2 ms ago
 * knows that its holder has been away all the time, and takes the baton by changing the
 * word; the holder's return, a compare-and-swap from the word it left, then fails. A
 * leave and a return cost one atomic each.
 *
 * Takers never sleep on the state word itself: it changes a million times a second
 * while short tasks run. A taker that saw no leave for a whole look counts itself as
 * *deep* and sleeps without a timer; the next leave sees the count and wakes it (both
 * sides write first and read afterwards, so one of them sees the other).
 *
 * Rejected: a mutex with try-lock and a timed wait (two system calls a task), and
 * handing tasks to a second thread instead of the loop (two wake-ups a task).
 */
#include "executor/baton.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FREE = 0, HELD = 1, AWAY = 2, STATE = 3, EPOCH = 4 };
enum { LOOK_NS = 2000000 };

struct trp_baton {
    _Atomic uint32_t word;    /* epoch * EPOCH + state */
    _Atomic uint32_t bell;    /* takers sleep on it; changes when they are to look */
    _Atomic uint32_t waiting; /* takers that sleep or are about to */
    _Atomic uint32_t deep;    /* of them, those that sleep without a timer */
};

/* The word this thread left the baton with. A thread is away from one baton at most. */
static _Thread_local uint32_t left_word;

trp_baton *trp_baton_new(void)
{
    return calloc(1, sizeof(trp_baton));
}

void trp_baton_free(trp_baton *b)
{
    free(b);
}

static void ring(trp_baton *b, int takers)
{
    atomic_fetch_add(&b->bell, 1);
    syscall(SYS_futex, &b->bell, FUTEX_WAKE_PRIVATE, takers, NULL, NULL, 0);
}

/* Sleeps until the bell is no longer `bell`, at most one look when `timed`. */
static void sleep_on(trp_baton *b, uint32_t bell, bool timed)
{
    struct timespec look = {.tv_nsec = LOOK_NS};
    syscall(SYS_futex, &b->bell, FUTEX_WAIT_PRIVATE, bell, timed ? &look : NULL, NULL,
            0);
}

static bool change(trp_baton *b, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong(&b->word, &from, to);
}

/* Waits until `seen`, which is not FREE, may have become takeable. */
static void wait_for_change(trp_baton *b, uint32_t seen, bool timed)
{
    uint32_t bell = atomic_load(&b->bell);
    atomic_fetch_add(&b->waiting, 1);
    if (!timed)
        atomic_fetch_add(&b->deep, 1);
    uint32_t now = atomic_load(&b->word);
    if ((now & STATE) != FREE && (timed || now == seen))
        sleep_on(b, bell, timed);
    if (!timed)
        atomic_fetch_sub(&b->deep, 1);
    atomic_fetch_sub(&b->waiting, 1);
}

void trp_baton_take(trp_baton *b)
{
    uint32_t last = atomic_load(&b->word);
    bool looked = false; /* `last` was seen at least one look ago */
    for (;;) {
        uint32_t word = atomic_load(&b->word);
        uint32_t next = ((word & ~(uint32_t)STATE) + EPOCH) | HELD;
        if ((word & STATE) == FREE) {
            if (change(b, word, next))
                return;
            continue;
        }
        if ((word & STATE) == AWAY && looked && word == last) {
            if (change(b, word, next))
                return;
            continue;
        }
        bool quiet =
            looked && word == last; /* held, and no leave since the last look */
        struct timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        wait_for_change(b, word, !quiet);
        clock_gettime(CLOCK_MONOTONIC, &after);
        int64_t slept = (after.tv_sec - before.tv_sec) * INT64_C(1000000000) +
                        after.tv_nsec - before.tv_nsec;
        looked = slept >= LOOK_NS || (looked && word == last);
        last = word;
    }
}

bool trp_baton_try(trp_baton *b)
{
    uint32_t word = atomic_load(&b->word);
    return (word & STATE) == FREE &&
           change(b, word, ((word & ~(uint32_t)STATE) + EPOCH) | HELD);
}

void trp_baton_leave(trp_baton *b)
{
    uint32_t word = atomic_load_explicit(&b->word, memory_order_relaxed);
    left_word = ((word & ~(uint32_t)STATE) + EPOCH) | AWAY;
    atomic_store(&b->word, left_word);
    if (atomic_load(&b->deep))
        ring(b, INT_MAX);
}

bool trp_baton_return(trp_baton *b)
{
    return change(b, left_word, (left_word & ~(uint32_t)STATE) | HELD);
}

void trp_baton_give(trp_baton *b)
{
    uint32_t word = atomic_load_explicit(&b->word, memory_order_relaxed);
    atomic_store(&b->word, (word & ~(uint32_t)STATE) | FREE);
    if (atomic_load(&b->waiting))
        ring(b, 1);
}
