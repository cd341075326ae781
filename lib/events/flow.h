/*
 * What attempts of tasks have taken and moved: a number for each, here always in an
 * array by enum trp_flow. Bytes, but for RUN (ms), CPU (ns), records, and HITS and
 * MISSES (partitions that were kept). READ: map outputs that were read, local and
 * remote. REMOTE: those of them that came from other hosts. CACHED: kept partitions
 * that were read.
 */
#ifndef TRP_EVENTS_FLOW_H
#define TRP_EVENTS_FLOW_H

#include <stdint.h>

/* A line a number: the object of a TaskEnd that has it (log_event.c), its name there,
 * and that of its sum in a TroupeTaskSummary. */
#define TRP_LOG_FLOWS(X)                                                               \
    X(RUN, USE, "Executor Run Time", "Executor Run Time")                              \
    X(CPU, USE, "Executor CPU Time", "Executor CPU Time")                              \
    X(IN, IN, "Bytes Read", "Bytes Read")                                              \
    X(RECORDS_IN, IN, "Records Read", "Records Read")                                  \
    X(OUT, OUT, "Bytes Written", "Bytes Written")                                      \
    X(RECORDS_OUT, OUT, "Records Written", "Records Written")                          \
    X(READ, READ, "Local Bytes Read", "Shuffle Bytes Read")                            \
    X(REMOTE, READ, "Remote Bytes Read", "Shuffle Remote Bytes Read")                  \
    X(RECORDS_READ, READ, "Total Records Read", "Shuffle Records Read")                \
    X(WRITTEN, WRITE, "Shuffle Bytes Written", "Shuffle Bytes Written")                \
    X(RECORDS_WRITTEN, WRITE, "Shuffle Records Written", "Shuffle Records Written")    \
    X(SPILLED, USE, "Disk Bytes Spilled", "Disk Bytes Spilled")                        \
    X(HITS, CACHE, "Hits", "Cache Hits")                                               \
    X(MISSES, CACHE, "Misses", "Cache Misses")                                         \
    X(CACHED, CACHE, "Bytes Read", "Cache Bytes Read")                                 \
    X(KEPT_MEMORY, CACHE, "Memory Bytes Kept", "Memory Bytes Kept")                    \
    X(KEPT_DISK, CACHE, "Disk Bytes Kept", "Disk Bytes Kept")                          \
    X(PEAK, USE, "Peak Execution Memory", "Peak Execution Memory")

enum trp_flow {
#define TRP_LOG_FLOW(flow, ...) TRP_FLOW_##flow,
    TRP_LOG_FLOWS(TRP_LOG_FLOW)
#undef TRP_LOG_FLOW
        TRP_FLOWS
};

/* Sums; of PEAK the greater one. */
static inline void trp_flows_add(uint64_t to[TRP_FLOWS], const uint64_t more[TRP_FLOWS])
{
    for (int i = 0; i < TRP_FLOW_PEAK; i++)
        to[i] += more[i];
    if (more[TRP_FLOW_PEAK] > to[TRP_FLOW_PEAK])
        to[TRP_FLOW_PEAK] = more[TRP_FLOW_PEAK];
}

#endif
