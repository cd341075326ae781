/*
 * The driver process of a pipeline: `troupe-rank driver RUN_DIR`, started by mpirun.
 */
#ifndef TRP_DRIVER_PIPELINE_RUN_H
#define TRP_DRIVER_PIPELINE_RUN_H

/* Runs the pipeline that RUN_DIR/state/run_spec.json describes to its end: errors on
 * stderr, the exit status told to `troupe`. Returns that status. */
int trp_pipeline_driver_main(const char *run_dir);

#endif
