/*
 * Ids. Each is a struct of one field, so that the compiler refuses a stage where an
 * executor is meant. All are dense numbers from 0, given by the engine (profiles: by
 * the profile manager) and never used again within a run.
 */
#ifndef TRP_CORE_BASE_IDS_H
#define TRP_CORE_BASE_IDS_H

#include <stdint.h>

typedef struct {
    uint32_t n;
} trp_job_id;
typedef struct {
    uint32_t n;
} trp_stage_id;
typedef struct {
    uint32_t n;
} trp_profile_id; /* 0 is always the default profile */
typedef struct {
    uint32_t n;
} trp_executor_id; /* shown to people as this number */
typedef struct {
    uint32_t n;
} trp_host_id;
typedef struct {
    uint32_t n;
} trp_rack_id;

/* One attempt of one task: unique in a run. The low 32 bits are a slot of the engine's
 * attempt pool, the high 32 bits the number of the attempt since the run began (Spark's
 * "Task ID"), by which a late message about an old user of the slot is known as such.
 */
typedef struct {
    uint64_t n;
} trp_attempt_id;

#define TRP_NONE UINT32_MAX /* "no such" for every 32-bit id's n */

static inline uint32_t trp_attempt_number(trp_attempt_id id)
{
    return (uint32_t)(id.n >> 32);
}

#endif
