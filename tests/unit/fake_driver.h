/*
 * A driver without MPI for tests of lib/api: it computes a job's dataset, and the map
 * outputs behind it, in this process through the same runner that executors use, and
 * tells verdicts as the real one does. A task that fails is tried again, three times,
 * unless by a mistake in the program; one whose input cannot be read makes that map task
 * run again. Each success is told twice, since results must count once; inputs are moved
 * to odd addresses, where messages may have them. Map tasks run last first: results must
 * not depend on it.
 */
#ifndef TRP_TESTS_FAKE_DRIVER_H
#define TRP_TESTS_FAKE_DRIVER_H

#include <glib.h>

#include "api/chain.h"
#include "conf/options.h"
#include "driver/accumulators.h"

enum { FAKE_DATASETS = 4096 };

struct fake_dataset {
    char *name, *places; /* preferred hosts, "a b|c|": by task; "": none */
    char *reads;         /* of kept ones: "DATASET from BEGIN[: FIRST …]; " each */
    uint32_t partitions, nparents, *parents;
    trp_profile_id profile;
    gboolean barrier, kept, freed;
    uint64_t *outputs; /* by task: the attempt that made it; NULL: not computed yet */
};

struct fake_job {
    struct trp_work work;
    uint32_t dataset;
    char *name, *pool;
    gboolean cancelled, gone;
};

struct trp_driver {
    struct fake_job *all; /* jobs */
    struct trp_work work; /* of the job that is computed */
    char failed[600];     /* how the last attempt that failed did */
    uint32_t entered;
    trp_accumulators *accumulators;
    struct fake_dataset datasets[FAKE_DATASETS];
    uint32_t ndatasets, dataset; /* told; of the last job */
    trp_profile_id profile;
    uint32_t jobs, attempts, ends, profiles; /* how often what happened */
    uint32_t maps_again;                     /* map tasks run again */
    uint64_t records_in;                     /* of tasks that succeeded, from outside */
    size_t body_size;
    size_t memory; /* of a task for map outputs */
    const char *resources;
    int end_status, stopped;
    const char *places;      /* of the last job */
    char *folder;            /* map outputs */
    trp_block_store *blocks; /* what tasks keep */
    uint32_t unpersisted;    /* calls */
    uint32_t freed;          /* the same */
    uint64_t hits, misses, spilled;
};

extern struct trp_driver fake;

/* Another store, with so little memory. */
void fake_pool(uint64_t bytes);
/* A context as `troupe run` would make it. */
trp_context *fake_init(void);
const trp_batch *collected(trp_dataset *d);
void assert_error(trp_context *ctx, const char *part);

#endif
