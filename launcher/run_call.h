/*
 * The command line of `troupe run`.
 */
#ifndef TRP_LAUNCHER_RUN_CALL_H
#define TRP_LAUNCHER_RUN_CALL_H

#include "driver/plan_print.h"
#include "settings.h"

/* Options that `troupe submit` hands on, for tables of options (args.h). */
/* clang-format off */
#define TRP_RUN_NAME(what, to) {"run-name", TRP_ARG_VALUE, what, "NAME", "name of the run and its folder", to}
#define TRP_RUN_RUNS(what, to) {"runs-dir", TRP_ARG_VALUE, what, "DIR", TRP_ARGS_RUNS_HELP, to}
#define TRP_RUN_QUIET(what, to) {"quiet", TRP_ARG_FLAG, what, NULL, "no progress and no closing summary, only errors", to}
#define TRP_RUN_KEEP_GOING(what, to) {"keep-going", TRP_ARG_FLAG, what, NULL, "after a failed task, still run what does not depend on it", to}
#define TRP_RUN_FAIL_FAST(what, to) {"fail-fast", TRP_ARG_FLAG, what, NULL, "when a stage gives up, kill the tasks that run", to}
#define TRP_RUN_FROM(what, to) {"from", TRP_ARG_VALUE, what, "STAGE", "take the stages above STAGE as done", to}
#define TRP_RUN_UNTIL(what, to) {"until", TRP_ARG_VALUE, what, "STAGE", "run STAGE and the stages above it only", to}
#define TRP_RUN_FORCE(what) {"force", TRP_ARG_VALUE, what, "STAGE", "run STAGE and the stages below it again", NULL}
#define TRP_RUN_RESUME(what, to) {"resume", TRP_ARG_VALUE, what, "RUN", "go on with an earlier run, in its folder", to}
#define TRP_RUN_AS_IT_WAS(what, to) {"as-it-was", TRP_ARG_FLAG, what, NULL, "with --resume: the pipeline as the run had it, not its file as it is now", to}
#define TRP_RUN_HERE(what, to) {"here", TRP_ARG_FLAG, what, NULL, "with --resume: relative paths start in this folder, not where the run was called", to}
/* clang-format on */

/* Strings are borrowed from argv. */
struct trp_run_call {
    struct trp_settings_request settings;
    const char *runs;                             /* --runs-dir; NULL: not given */
    const char *run_name, *from, *until, *resume; /* NULL: not given */
    const char *force[TRP_SETTINGS_WORDS];
    uint32_t nforce;
    bool dry_run, keep_going, fail_fast, quiet, in_line, as_it_was, here;
    char **app; /* program and arguments, NULL at the end; NULL: a pipeline */
};

/* run.c: `troupe plan --resume`; the exit status. */
int trp_run_plan(const struct trp_run_call *call, enum trp_plan_form form);
/* For `troupe explain`: prints what --resume would run again of a stage, or NULL of all
 * (`each`: in a line of its own), or why it cannot. */
void trp_run_again(const struct trp_run_call *call, const char *stage, bool each);

/* What was read of the command line. TRP_EINVAL: that does not go together. */
int trp_run_call_take(struct trp_run_call *ret, trp_error *err);

#endif
