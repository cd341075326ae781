/*
 * What a pipeline comes to before it runs: `troupe plan` and `troupe run --dry-run`.
 *
 * The plan as JSON (contract.md, "--json"), one document and a newline; what is not in
 * the contract was added:
 *
 *     {"name": "weather",
 *      "profiles": [{"name": "prep", "id": 1,              null: impossible
 *                    "executor": {"cores": 4, "memory": 2048, "memoryOverhead": 256},
 *                    "task": {"cpus": 1}, "slots": 4, "limiting": "cpus",
 *                    "fits": 2,                            executors at once here
 *                    "never": null,                        or why not
 *                    "slurm": {"cpus-per-task": "4", …},   null: it cannot be had
 *                    "slurm_never": null}],                why not
 *      "stages": [{"name": "split", "profile": "prep",
 *                  "tasks": 12,                            null: not known yet
 *                  "ranks": 0,                             > 0: a gang
 *                  "pool": null,                           of a run with pools
 *                  "after": [], "waits": "12 tasks, 8 at once", "never": null,
 *                  "slurm": …, "slurm_never": …,           of a gang only
 *                  "runs": true, "run": 3, "done": 1,      with --resume; run null: not
 *                  "why": null}],                          known yet
 *      "pools": [{"name": "default", "weight": 1, "min_share": 0, "mode": "FIFO"}]}
 *
 * `pools` is empty unless scheduler.mode is FAIR. Memory in MiB. `waits`: what a stage
 * waits for that could start otherwise, or null.
 */
#ifndef TRP_DRIVER_PLAN_PRINT_H
#define TRP_DRIVER_PLAN_PRINT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "conf/options.h"
#include "conf/pipeline.h"
#include "conf/pool_section.h"
#include "conf/site.h"
#include "driver/backends.h"
#include "driver/resume.h"

enum trp_plan_form {
    TRP_PLAN_TEXT, /* of many stages, those whose names differ in a number are a row */
    TRP_PLAN_ALL,  /* text with a row a stage */
    TRP_PLAN_JSON,
};

/* Prints the whole plan in any case. Relative patterns are below the working folder and
 * evaluated for stages that wait for none. `o` has the pipeline's options; `site` may
 * be NULL; `carried` says how messages travel; `choices`, or NULL: what of a resumed
 * run is to run, for JSON. TRP_EINVAL: a profile is impossible;
 * TRP_ENEVER: a stage never fits here; both with FILE:LINE:COL of the first such. */
int trp_plan_print(const trp_pipeline *p, const trp_options *o,
                   const struct trp_site *site, const struct trp_pool_list *pools,
                   const char *carried, const struct trp_cluster_where *where,
                   const struct trp_stage_choice *choices, enum trp_plan_form form,
                   FILE *out, trp_error *err);

/* Prints what a run would do: each stage, parents first, its tasks, profile and
 * command. TRP_EINVAL as the run would tell it. */
int trp_dry_run_print(const trp_pipeline *p, const trp_options *o,
                      const struct trp_site *site, FILE *out, trp_error *err);

#endif
