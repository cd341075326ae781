/*
 * How attempts end and executors are lost: what engine, messages and event log tell
 * each other.
 */
#ifndef TRP_CORE_BASE_ENDS_H
#define TRP_CORE_BASE_ENDS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/ids.h"

/* How an attempt ended, as the executor (or the driver for a gang) saw it. */
enum trp_end_status {
    TRP_END_SUCCESS,
    TRP_END_EXIT,        /* exit status other than 0; a function's error code */
    TRP_END_SIGNAL,      /* killed by a signal that we did not send */
    TRP_END_TIMEOUT,     /* over the stage's timeout, killed by us */
    TRP_END_MEMORY,      /* killed for memory */
    TRP_END_START,       /* could not be started: no such cwd, no such program, disk */
    TRP_END_KILLED,      /* killed because the driver said so */
    TRP_END_RECALLED,    /* was queued and handed back unstarted */
    TRP_END_LOST,        /* its executor was lost (the engine's own; told of gangs) */
    TRP_END_PLATFORM,    /* a gang whose platform could not be used: ends the run */
    TRP_END_DENIED,      /* another attempt may commit the output; counts nothing */
    TRP_END_FETCH,       /* a map output could not be read: `from` */
    TRP_END_RESULT_LOST, /* it ended well, but its result is gone */
    TRP_END_UNWRITABLE,  /* its result cannot be written down: ends the stage */
    TRP_END_EXISTS,      /* its output is already there: ends the stage */
    TRP_END_MISTAKE,     /* the program is wrong, and would be again: ends the stage */
    TRP_END_NEVER,       /* a gang whose room can never be obtained: ends the stage */
    TRP_END_OUTPUT,      /* it ended well, and did not make an output of it */
};
const char *trp_end_status_name(enum trp_end_status status);

/* How an executor was lost, and whether that counts against it. */
enum trp_loss {
    TRP_LOSS_EXITED,     /* died by itself or by a stranger's hand: counts */
    TRP_LOSS_CRASHED,    /* a function crashed it: counts against `culprit` only */
    TRP_LOSS_MEMORY,     /* killed for memory in a function: against `culprit` only */
    TRP_LOSS_TIMEOUT,    /* a function over its timeout: against `culprit` only */
    TRP_LOSS_HEARTBEAT,  /* silent for network.timeout: counts */
    TRP_LOSS_RELEASED,   /* we released it: counts nothing */
    TRP_LOSS_NEVER_CAME, /* did not come up; counts nothing, requested again later */
    TRP_LOSS_HOST,       /* its whole host is gone: counts, as do the outputs there */
    TRP_LOSS_DECOMMISSIONED, /* as was announced: counts nothing */
    TRP_LOSS_TIME_LIMIT,     /* its allocation ended when it was to: a task's first such
                              * loss counts nothing, the next ones do */
    TRP_LOSS_SPAWNER_DIED,   /* what starts its commands was killed, or ended: counts */
    TRP_LOSS_SPAWNER_HUNG,   /* … was stopped, or hung: counts */
    TRP_LOSS_CALLED_EXIT,    /* a function ended it by exit(): against `culprit` only,
                              * which is not tried again */
};

/* What a task read of map outputs, and wrote as one, and what it found kept. Bytes are those of files. */
struct trp_end_data {
    uint64_t read_records, local_blocks, remote_blocks, local_bytes, remote_bytes;
    uint64_t wait_ns; /* for remote blocks */
    uint64_t written_records, written_bytes, write_ns;
    uint64_t spilled_bytes;
    /* Partitions of kept datasets that it found, and did not find; bytes of the former, and
     * of what it kept. */
    uint64_t cache_hits, cache_misses, cache_bytes, kept_memory, kept_disk;
};

/* What an attempt added to an accumulator in one partition of what one function makes. */
struct trp_added {
    uint32_t accumulator;
    uint32_t maker; /* the dataset or action whose function it was */
    uint32_t partition;
    int64_t value;
};

/* What is told of attempts is no more than any can have: a year, 32 PiB. Sums of
 * hundreds stay within 64 bits. */
#define TRP_LONGEST_NS (INT64_C(1) << 55)
#define TRP_LARGEST (UINT64_C(1) << 55)
/* Cores that one attempt may use. */
#define TRP_CORES_MOST INT64_C(16384)

/* The end of an attempt with what it has used. */
struct trp_end {
    trp_attempt_id attempt;
    uint8_t status;      /* enum trp_end_status */
    int32_t code;        /* exit status or signal */
    int64_t duration_ns; /* wall, where it ran */
    int64_t cpu_ns;      /* user + system */
    int64_t peak_kib;    /* peak memory; 0: not known */
    int64_t limit_mib; /* with TRP_END_MEMORY, or SUCCESS that may be that: the limit */
    uint64_t records_in, records_out, bytes_in, bytes_out; /* functions; else 0 */
    bool has_data;                                         /* `data` is there */
    struct trp_end_data data;
    const uint8_t *extra; /* function: result, or its error text; command: text of
                           * a start failure */
    uint32_t extra_size;
    const uint8_t *added; /* function, with TRP_END_SUCCESS: as they travel, each … */
    uint32_t nadded;      /* … to be taken with trp_added_at (wire/launches.h) */
    bool in_file;         /* the result lies in a file: … */
    struct trp_result_file {
        uint64_t size, hash; /* bytes; their XXH3 */
    } file;
};

/* Bytes of its result, wherever they are. */
static inline uint64_t trp_end_result_size(const struct trp_end *e)
{
    if (e->status != TRP_END_SUCCESS)
        return 0;
    return e->in_file ? e->file.size : e->extra_size;
}

#endif
