/*
 * The run specification: what `troupe run` has settled and the driver (another process,
 * below mpirun) works from. RUN/state/run_spec.json, 0600, plus RUN/state/environ, the
 * environment of `troupe` (NUL-terminated strings), from which tasks' environments are
 * made, since the driver's own has been through mpirun.
 */
#ifndef TRP_DRIVER_RUN_SPEC_H
#define TRP_DRIVER_RUN_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/options.h"
#include "conf/pipeline.h"
#include "driver/backends.h"

struct trp_option_setting {
    char *key, *value;
    enum trp_origin origin;
    char *where;
};

struct trp_run_spec {
    char *run_name;      /* the run folder's name */
    char *run_dir;       /* absolute */
    char *called_in;     /* where this troupe run was called, absolute … */
    char *cwd;           /* … and the run's first one, where relative paths begin */
    char *app_name;      /* pipeline's name, or the program's */
    char *pipeline;      /* as given on the command line; NULL: a program */
    char *pipeline_copy; /* RUN/state/pipeline.yaml; NULL: a program */
    char *site;          /* site file in force, "" none */
    char *ompi_server;   /* URI file of ompi-server; NULL: over sockets */
    char *carried;       /* how messages travel, and why */
    char *control;       /* name of the control socket (control.h) */
    char *rank_program;  /* absolute path of troupe-rank */
    char *batch_system;  /* whose job this is (cluster/backend.h); NULL: none */
    char *batch_helper;  /* path of its program; NULL: not used */
    char *batch_answer;  /* what that was told of the job; NULL: not used */
    char **app;          /* ends with a NULL */
    uint32_t napp;       /* program and arguments; 0: a pipeline */
    struct trp_option_setting *options;
    uint32_t noptions; /* site, environment, --set */
    struct trp_pair *params;
    uint32_t nparams;      /* --param */
    uint32_t local_cores;  /* --local=N; 0: what is there … */
    bool share_cores;      /* … shared with other runs of this user */
    uint32_t batch_job;    /* executors are steps of it; 0: this machine */
    uint32_t earlier_runs; /* in this folder; above 0: this one goes on */
    bool quiet, terminal;  /* terminal: stderr is one */
    bool as_it_was;        /* pipeline and lists are those that were kept */
    char *from, *until;    /* NULL: not given */
    char **force;
    uint32_t nforce;
    char **environ;
    uint32_t nenviron; /* of `troupe`; kept in state/environ */
};

int trp_run_spec_save(const struct trp_run_spec *s, trp_error *err);
/* Reads RUN_DIR/state/run_spec.json and environ. Free with trp_run_spec_free. */
int trp_run_spec_load(const char *run_dir, struct trp_run_spec **ret, trp_error *err);
void trp_run_spec_free(struct trp_run_spec *s);
/* Where its executors come from; borrows from `s`. */
struct trp_cluster_where trp_run_spec_where(const struct trp_run_spec *s);

#endif
