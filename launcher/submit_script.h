/*
 * The job script of `troupe submit`. It execs `troupe run`, so that signals of Slurm
 * reach troupe alone.
 */
#ifndef TRP_LAUNCHER_SUBMIT_SCRIPT_H
#define TRP_LAUNCHER_SUBMIT_SCRIPT_H

#include <stdio.h>

#include "submit_call.h"

struct trp_submit_script {
    const struct trp_submit_call *call;
    const trp_site *site;
    const char *troupe;   /* absolute path of this program */
    const char *job_name; /* the application's */
    const char *run;      /* name of the run; NULL: APP-JOBID */
    const char *resume;   /* run to go on with, or NULL */
    const char *output;   /* of the job, absolute; NULL: Slurm's default */
};

/* TRP_EINVAL: a name, a path or a value cannot be written into a script. */
int trp_submit_script_print(const struct trp_submit_script *s, FILE *out,
                            trp_error *err);

#endif
