/*
 * What a bare pair passes there and back in place of tasks and their ends.
 */
#ifndef TRP_BENCH_BATCH_H
#define TRP_BENCH_BATCH_H

#include <stdbool.h>
#include <stdint.h>

enum { BATCH = 256, IN_FLIGHT = 8, PING = 16, WARM = 1000 };

struct descriptor {
    uint32_t task, attempt;
    uint64_t argument;
};

struct end {
    uint32_t task, attempt;
    int32_t status, code;
    int64_t duration_ns;
};

/* Of a task, as any scheduler must keep. */
struct state {
    uint32_t attempt;
    bool running, done;
};

#endif
