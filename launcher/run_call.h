/*
 * The command line of `troupe run`.
 */
#ifndef TRP_LAUNCHER_RUN_CALL_H
#define TRP_LAUNCHER_RUN_CALL_H

#include "settings.h"

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
