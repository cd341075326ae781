/*
 * A program without executors: its tasks run in its own process and thread, one after
 * the other, for gdb and valgrind (TROUPE_INLINE=1 ./app, troupe run --inline -- ./app).
 *
 * It stands where the driver stands otherwise (driver.h) and is told the same datasets
 * and jobs, but asks no engine: the stages that a job lacks are run in order of their
 * datasets, whose parents are told before them. Any shape fits. Nothing is tried again:
 * the first failure of a task is the job's. What trp_persist
 * keeps is computed anew. There is no run folder, event log or summary.
 *
 *     trp_inline_open(&runner, &in, &profiles, &err);
 *     trp_inline_dataset(in, &spec, &id, &err);
 *     trp_inline_job(in, "count", id, &work, &err);  // it is over when this returns
 *     trp_inline_end(in);
 */
#ifndef TRP_DRIVER_INLINE_H
#define TRP_DRIVER_INLINE_H

#include "driver/accumulators.h"
#include "driver/driver.h"
#include "executor/executor.h"

typedef struct trp_inline trp_inline;

/* Whether this process was asked to be one. */
bool trp_inline_wanted(void);
/* Reads options (site file, environment). Tasks are run by `runner`. *ret_profiles is
 * the caller's to free, after trp_inline_end. Codes are those of reading; TRP_ESYSTEM:
 * no folder for map outputs. */
int trp_inline_open(const struct trp_function_runner *runner, trp_inline **ret,
                    trp_profiles **ret_profiles, trp_error *err);
/* As trp_driver_dataset. TRP_EINVAL: a barrier of several tasks, which would wait for
 * each other for ever. */
int trp_inline_dataset(trp_inline *in, const struct trp_dataset_spec *spec,
                       uint32_t *ret_id, trp_error *err);
/* As trp_driver_dataset_free. */
void trp_inline_dataset_free(trp_inline *in, uint32_t dataset);
/* Computes a dataset, and the map outputs behind it that are not there yet. TRP_EFAILED
 * with what failed, by the job's name, stage and task. */
int trp_inline_job(trp_inline *in, const char *name, uint32_t dataset,
                   const struct trp_work *work, trp_error *err);
/* What its tasks add to: those that the caller makes. */
trp_accumulators *trp_inline_accumulators(trp_inline *in);
/* As trp_driver_shared. */
const char *trp_inline_shared(const trp_inline *in);
/* Removes map outputs; frees. NULL: nothing. */
void trp_inline_end(trp_inline *in);

#endif
