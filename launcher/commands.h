/*
 * The subcommands of `troupe`, one file each.
 */
#ifndef TRP_LAUNCHER_COMMANDS_H
#define TRP_LAUNCHER_COMMANDS_H

#include "args.h"

/* What it reads of the command line, and what it does then: the exit status of
 * contract.md. */
#define TRP_SUBCOMMAND(name)                                                           \
    extern const struct trp_line trp_line_##name;                                      \
    int trp_launcher_##name(void)
TRP_SUBCOMMAND(run);
TRP_SUBCOMMAND(submit);
TRP_SUBCOMMAND(plan);
TRP_SUBCOMMAND(check);
TRP_SUBCOMMAND(config);
TRP_SUBCOMMAND(topo);
TRP_SUBCOMMAND(site_shape);
TRP_SUBCOMMAND(sim);
TRP_SUBCOMMAND(report);
TRP_SUBCOMMAND(ls);
TRP_SUBCOMMAND(cancel);
TRP_SUBCOMMAND(logs);
TRP_SUBCOMMAND(explain);
TRP_SUBCOMMAND(status);
TRP_SUBCOMMAND(top);
TRP_SUBCOMMAND(completion);
TRP_SUBCOMMAND(init);
#undef TRP_SUBCOMMAND

struct trp_subcommand {
    const char *name, *usage, *summary;
    const struct trp_line *line;
    int (*run)(void);
};
/* All of them, ended by a NULL name. */
extern const struct trp_subcommand trp_subcommands[];

/* troupe.c: "troupe: TEXT" on stderr; returns the exit status for err->code. */
int trp_launcher_fail(const trp_error *err);
/* The same for a wrong call: always 2. */
int trp_launcher_misuse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Flushes stdout: `status`, or 4 when what was printed could not be written. */
int trp_launcher_printed(int status);

#endif
