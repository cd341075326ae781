/*
 * Moved they are read once and written once, by one process. Made again they take their
 * tasks once more, and before that who reads them has to find that they are missing: its
 * stage ends and begins again (ANEW_NS). So small ones are always moved.
 *
 * The first rate is that of a network of 1 Gbit/s. Of what is measured the newest counts
 * half: the disks are shared with others, whose load changes. Too few bytes say nothing
 * of it.
 */
#include "core/alloc/move_worth.h"

#include "core/base/time.h"

#define ANEW_NS TRP_SECOND
#define FIRST_RATE UINT64_C(100000000)
#define LEAST_BYTES UINT64_C(1000000)

int64_t trp_moving_takes(uint64_t bytes, uint64_t rate)
{
    double ns = (double)bytes / (double)(rate ? rate : FIRST_RATE) * (double)TRP_SECOND;
    return ns < (double)(INT64_MAX / 2) ? (int64_t)ns : INT64_MAX / 2;
}

bool trp_moving_pays(uint64_t bytes, int64_t made_ns, uint64_t rate)
{
    return trp_moving_takes(bytes, rate) - ANEW_NS <= made_ns;
}

uint64_t trp_moving_rate(uint64_t rate, uint64_t bytes, int64_t took_ns)
{
    if (bytes < LEAST_BYTES || took_ns <= 0)
        return rate;
    double now = (double)bytes / (double)took_ns * (double)TRP_SECOND;
    uint64_t found = now < 1                      ? 1
                     : now < (double)(1ULL << 50) ? (uint64_t)now
                                                  : 1ULL << 50;
    return rate ? rate / 2 + found / 2 + (rate & found & 1) : found;
}
