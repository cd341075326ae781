/*
 * Times are nanoseconds (`_ns`); these say others in them.
 */
#ifndef TRP_CORE_BASE_TIME_H
#define TRP_CORE_BASE_TIME_H

#include <stdint.h>

#define TRP_MS INT64_C(1000000)
#define TRP_SECOND INT64_C(1000000000)

/* Whole milliseconds. */
static inline int64_t trp_ms(int64_t ns)
{
    return ns / TRP_MS;
}

/* Of two times, as of timers that are due. */
static inline int64_t trp_earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* So long after that, which is from 0; INT64_MAX: never. */
static inline int64_t trp_time_after(int64_t at, int64_t by)
{
    return by > INT64_MAX - at ? INT64_MAX : at + by;
}

#endif
