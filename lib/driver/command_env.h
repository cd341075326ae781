/*
 * What the commands of a stage find around them: environment, argument list, site
 * variables (contract.md, "Environment of a task").
 *
 * A task's environment is that of `troupe`, less what launchers leave in one, then
 * `env:`, then TROUPE_PARAM_<k>. What varies by attempt is added where it runs
 * (executor.h).
 */
#ifndef TRP_DRIVER_COMMAND_ENV_H
#define TRP_DRIVER_COMMAND_ENV_H

#include "conf/pipeline.h"
#include "conf/site.h"
#include "os/strings.h"

enum { TRP_ARGUMENT_MAX = (128 << 10) - 1 }; /* Linux: bytes of one argument */

/* What tasks may see of the environment of `troupe`: without OMPI_* PMIX_* PMI_* (but
 * OMPI_ALLOW_RUN_AS_ROOT*), of SLURM_* SLURM_JOB_ID SLURM_JOB_NAME SLURM_SUBMIT_DIR
 * SLURM_CONF, and inside a Slurm job SLURM_OVERLAP=1 and, unless it is set,
 * PRTE_MCA_ras=^slurm, so that srun and mpirun work; without what an outer run of ours has
 * set for its own task. */
int trp_environ_clean(char *const *environ, uint32_t n, struct trp_strings *ret);

/* The environment of a stage: `clean` with its `env:` and the params. */
int trp_stage_environ(const struct trp_strings *clean, const trp_pipeline *p,
                      const struct trp_pipeline_stage *s, struct trp_strings *ret);

/* What is executed: wrap words, then argv, or a shell with prelude and run. TRP_EINVAL
 * with FILE:LINE:COL when a text is longer than the kernel takes. `o` NULL: the
 * defaults. */
int trp_stage_argv(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                   const trp_options *o, struct trp_strings *ret, trp_error *err);
/* The shell of `run`: of the stage, else of the file, else what run.shell says. */
struct trp_shell trp_stage_shell(const trp_pipeline *p,
                                 const struct trp_pipeline_stage *s,
                                 const trp_options *o);

/* Pairs resource, variable: for each variable of the site the resources that tasks of
 * the profile ask for, or any one when they ask for none, so that the variable is made
 * empty and no device is seen. `site` may be NULL. */
int trp_stage_resource_env(const trp_site *site, const struct trp_resource_profile *r,
                           struct trp_strings *ret);

#endif
