/*
 * Clocks: one that never jumps (CLOCK_MONOTONIC), whose moments are of one machine only,
 * and the time of day.
 */
#ifndef TRP_OS_CLOCK_H
#define TRP_OS_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t trp_clock_read(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static inline int64_t trp_clock_ns(void)
{
    return trp_clock_read(CLOCK_MONOTONIC);
}

static inline int64_t trp_clock_ms(void)
{
    return trp_clock_ns() / 1000000;
}

/* The time of day, since 1970. */
static inline int64_t trp_clock_wall_ns(void)
{
    return trp_clock_read(CLOCK_REALTIME);
}

/* `ns` from now, for pthread_cond_timedwait with CLOCK_MONOTONIC. */
static inline struct timespec trp_clock_after(int64_t ns)
{
    int64_t at = trp_clock_ns() + ns;
    return (struct timespec){.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000};
}

#endif
