/*
 * The file of a clock that a test moves: what clock.c and advance.c share. All moments are
 * nanoseconds.
 */
#ifndef TRP_TESTS_CLOCK_PAGE_H
#define TRP_TESTS_CLOCK_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

enum { TRP_CLOCK_SLOTS = 4096 };

enum trp_clock_state {
    TRP_CLOCK_AWAKE,  /* it runs, or it waits for something that has no deadline */
    TRP_CLOCK_ASLEEP, /* until a deadline; a SIGURG has it look at the clock */
    TRP_CLOCK_DOZING /* until a deadline; it looks at the clock by itself all the while */
};

/* A thread of a process with this clock. */
struct trp_clock_slot {
    _Atomic int32_t tid; /* 0: the slot is free; -1: it is being taken */
    _Atomic int32_t pid;
    _Atomic uint64_t
        program; /* its inode: another one has taken the process over by exec */
    _Atomic int32_t state;    /* an enum trp_clock_state */
    _Atomic uint32_t turns;   /* how often it has woken */
    _Atomic uint32_t seen;    /* the move of the clock by which it sleeps */
    _Atomic int64_t deadline; /* on the moved CLOCK_MONOTONIC */
};

/* The moved clock is the clock of the system, or the moment at which it was held, and the
 * offset; and what it has crept. */
struct trp_clock_setting {
    _Atomic int32_t held;
    _Atomic int64_t offset, held_monotonic, held_real;
};

struct trp_clock_page {
    _Atomic uint32_t moves;               /* how often it was set */
    struct trp_clock_setting settings[2]; /* the one of moves % 2 holds */
    _Atomic int64_t crept;
    struct trp_clock_slot slots[TRP_CLOCK_SLOTS];
};

#endif
