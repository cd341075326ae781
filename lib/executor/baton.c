/*
 * The baton: one 32-bit word, {epoch, state}, and a second word that takers sleep on.
 *
 * Every leave begins a new epoch, so a taker that finds the very word it saw 2 ms ago
 * knows that its holder has been away all the time, and takes the baton by changing the
 * word; the holder's return, a compare-and-swap from the word it left, then fails. A
 * leave and a return cost one atomic each.
 *
 * Takers never sleep on the state word itself: it changes a million times a second
 * while short tasks run. A taker that saw no leave for a whole look looks again after
 * twice as long, up to a second, and after ten seconds sleeps without a timer (*deep*).
 * A leave wakes those in a look longer than the first, a leave for a short time only
 * the deep ones: to be woken for nothing takes the others' time. (They count themselves
 * first and read the word afterwards, a leave the other way round, so one sees the
 * other.)
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

#include "os/clock.h"

enum { FREE = 0, HELD = 1, AWAY = 2, STATE = 3, EPOCH = 4 };
static const int64_t SECOND_NS = 1000000000;
static const int64_t LOOK_NS = 2000000, LONG_LOOK_NS = 1000000000;
static const int64_t DEEP_NS = 10000000000;

struct trp_baton {
    _Atomic uint32_t word;    /* epoch * EPOCH + state */
    _Atomic uint32_t bell;    /* takers sleep on it; changes when they are to look */
    _Atomic uint32_t waiting; /* takers that sleep or are about to */
    _Atomic uint32_t slow;    /* of them, those that do not look within LOOK_NS */
    _Atomic uint32_t deep;    /* of these, those that sleep without a timer */
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

/* Sleeps until the bell is no longer `bell`, at most `look_ns`; 0: without a timer. */
static void sleep_on(trp_baton *b, uint32_t bell, int64_t look_ns)
{
    const struct timespec look = {.tv_sec = look_ns / SECOND_NS,
                                  .tv_nsec = look_ns % SECOND_NS};
    syscall(SYS_futex, &b->bell, FUTEX_WAIT_PRIVATE, bell, look_ns ? &look : NULL, NULL,
            0);
}

static bool change(trp_baton *b, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong(&b->word, &from, to);
}

/* Waits until `seen`, which is not FREE, may have become takeable. */
static void wait_for_change(trp_baton *b, uint32_t seen, int64_t look_ns)
{
    uint32_t bell = atomic_load(&b->bell);
    bool deep = look_ns == 0, slow = deep || look_ns > LOOK_NS;
    atomic_fetch_add(&b->waiting, 1);
    atomic_fetch_add(&b->slow, slow);
    atomic_fetch_add(&b->deep, deep);
    uint32_t now = atomic_load(&b->word);
    if ((now & STATE) != FREE && (!slow || now == seen))
        sleep_on(b, bell, look_ns);
    atomic_fetch_sub(&b->deep, deep);
    atomic_fetch_sub(&b->slow, slow);
    atomic_fetch_sub(&b->waiting, 1);
}

void trp_baton_take(trp_baton *b)
{
    uint32_t last = atomic_load(&b->word);
    int64_t look = LOOK_NS, quiet = 0; /* `last` is what was seen so long */
    for (;;) {
        uint32_t word = atomic_load(&b->word);
        uint32_t next = ((word & ~(uint32_t)STATE) + EPOCH) | HELD;
        if (word != last) {
            last = word;
            look = LOOK_NS;
            quiet = 0;
        }
        if ((word & STATE) == FREE || ((word & STATE) == AWAY && quiet >= LOOK_NS)) {
            if (change(b, word, next))
                return;
            continue;
        }
        int64_t before = trp_clock_ns();
        wait_for_change(b, word, quiet < DEEP_NS ? look : 0);
        quiet += trp_clock_ns() - before;
        if (quiet >= look && look < LONG_LOOK_NS)
            look *= 2;
    }
}

bool trp_baton_try(trp_baton *b)
{
    uint32_t word = atomic_load(&b->word);
    return (word & STATE) == FREE &&
           change(b, word, ((word & ~(uint32_t)STATE) + EPOCH) | HELD);
}

static void leave_baton(trp_baton *b, _Atomic uint32_t *to_wake)
{
    uint32_t word = atomic_load_explicit(&b->word, memory_order_relaxed);
    left_word = ((word & ~(uint32_t)STATE) + EPOCH) | AWAY;
    atomic_store(&b->word, left_word);
    if (atomic_load(to_wake))
        ring(b, INT_MAX);
}

void trp_baton_leave(trp_baton *b)
{
    leave_baton(b, &b->slow);
}

void trp_baton_leave_shortly(trp_baton *b)
{
    leave_baton(b, &b->deep);
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
