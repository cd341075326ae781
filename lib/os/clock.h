/*
 * The clock that never jumps (CLOCK_MONOTONIC). Moments of one machine only.
 */
#ifndef TRP_OS_CLOCK_H
#define TRP_OS_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t trp_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static inline int64_t trp_clock_ms(void)
{
    return trp_clock_ns() / 1000000;
}

#endif
