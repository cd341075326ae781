/*
 * What a run's folder gets before the driver starts: the run's secret, the pipeline as
 * it was given, the run specification.
 */
#ifndef TRP_LAUNCHER_RUN_MAKE_H
#define TRP_LAUNCHER_RUN_MAKE_H

#include "driver/run_spec.h"
#include "events/run_folder.h"
#include "run_call.h"
#include "supervise.h"

struct trp_run_make {
    const struct trp_run_call *call;
    const struct trp_settings *settings;
    const struct trp_supervisor *supervisor;
    const char *carried; /* how messages travel, and why */
    const trp_run_folder *folder;
    const struct trp_cluster_where *where;
    uint32_t earlier_runs; /* in this folder */
    const char *called_in; /* where this call was made, absolute */
    const char *cwd;       /* where the run's relative paths begin */
    const char *site;      /* absolute, "" for none */
    const char *app_name;  /* pipeline's name, or the program's */
    const char *rank;      /* troupe-rank */
    char **app;            /* as the call's, with an absolute program; or NULL */
};

/* Writes all of it. TRP_ESYSTEM. */
int trp_run_make(const struct trp_run_make *m, trp_error *err);

#endif
