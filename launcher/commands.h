/*
 * The subcommands of `troupe`, one file each. Each takes its own name as argv[0] and
 * returns the exit status of contract.md.
 */
#ifndef TRP_LAUNCHER_COMMANDS_H
#define TRP_LAUNCHER_COMMANDS_H

#include "core/base/error.h"

int trp_launcher_run(int argc, char **argv);
int trp_launcher_submit(int argc, char **argv);
int trp_launcher_plan(int argc, char **argv);
int trp_launcher_check(int argc, char **argv);
int trp_launcher_config(int argc, char **argv);
int trp_launcher_topo(int argc, char **argv);
int trp_launcher_site_shape(int argc, char **argv);
int trp_launcher_sim(int argc, char **argv);
int trp_launcher_report(int argc, char **argv);
int trp_launcher_ls(int argc, char **argv);
int trp_launcher_cancel(int argc, char **argv);
int trp_launcher_logs(int argc, char **argv);
int trp_launcher_explain(int argc, char **argv);
int trp_launcher_status(int argc, char **argv);
int trp_launcher_top(int argc, char **argv);
int trp_launcher_completion(int argc, char **argv);
int trp_launcher_init(int argc, char **argv);

struct trp_subcommand {
    const char *name, *usage, *summary;
    int (*run)(int argc, char **argv);
};
/* All of them, ended by a NULL name. */
extern const struct trp_subcommand trp_subcommands[];

/* troupe.c: "troupe: TEXT" on stderr; returns the exit status for err->code. */
int trp_launcher_fail(const trp_error *err);
/* The same for a wrong call: always 2. */
int trp_launcher_misuse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* After trp_args_read, other than 0: what it said, and the exit status. */
int trp_launcher_read(int code, const trp_error *err);
/* Flushes stdout: `status`, or 4 when what was printed could not be written. */
int trp_launcher_printed(int status);

#endif
