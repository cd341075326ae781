/*
 * The command line of `troupe run`.
 */
#ifndef TRP_LAUNCHER_RUN_CALL_H
#define TRP_LAUNCHER_RUN_CALL_H

#include "settings.h"

/* Options that `troupe submit` hands on, for tables of options (args.h). */
#define TRP_RUN_NAME(what)                                                             \
    {                                                                                  \
        "run-name", TRP_ARG_VALUE, what, "NAME", "name of the run and its folder"      \
    }
#define TRP_RUN_QUIET(what)                                                            \
    {                                                                                  \
        "quiet", TRP_ARG_FLAG, what, NULL,                                             \
            "no progress and no closing summary, only errors"                          \
    }
#define TRP_RUN_KEEP_GOING(what)                                                       \
    {                                                                                  \
        "keep-going", TRP_ARG_FLAG, what, NULL,                                        \
            "after a failed stage, still run what does not depend on it"               \
    }
#define TRP_RUN_FROM(what)                                                             \
    {                                                                                  \
        "from", TRP_ARG_VALUE, what, "STAGE", "take the stages above STAGE as done"    \
    }
#define TRP_RUN_UNTIL(what)                                                            \
    {                                                                                  \
        "until", TRP_ARG_VALUE, what, "STAGE",                                         \
            "run STAGE and the stages above it only"                                   \
    }
#define TRP_RUN_FORCE(what)                                                            \
    {                                                                                  \
        "force", TRP_ARG_VALUE, what, "STAGE",                                         \
            "run STAGE and the stages below it again"                                  \
    }
#define TRP_RUN_RESUME(what)                                                           \
    {                                                                                  \
        "resume", TRP_ARG_VALUE, what, "RUN",                                          \
            "go on with an earlier run, in its folder"                                 \
    }

/* Strings are borrowed from argv. */
struct trp_run_call {
    struct trp_settings_request settings;
    const char *runs;                             /* --runs-dir; NULL: not given */
    const char *run_name, *from, *until, *resume; /* NULL: not given */
    const char *force[TRP_SETTINGS_WORDS];
    uint32_t nforce;
    bool dry_run, keep_going, quiet;
    char **app; /* program and arguments, NULL at the end; NULL: a pipeline */
};

/* 0; 1: help was printed; TRP_EINVAL. */
int trp_run_call_parse(int argc, char **argv, struct trp_run_call *ret, trp_error *err);

#endif
