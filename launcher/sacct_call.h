/* Calling sacct. */
#ifndef TRP_LAUNCHER_SACCT_CALL_H
#define TRP_LAUNCHER_SACCT_CALL_H

#include "events/run_record.h"
#include "events/sacct.h"

/* What Slurm's accounting has of the jobs of all records. TRP_ESYSTEM: there is no
 * sacct, or it failed, in its own words; or it printed what it should not. */
int trp_sacct_call(const struct trp_run_records *runs, struct trp_sacct *ret,
                   trp_error *err);

#endif
