/*
 * The command line of a subcommand: `--option`, `--option VALUE`, `--option=VALUE`, in
 * any order with words, up to `--`.
 *
 *     struct trp_args a = trp_args_of("plan", table, argc, argv);
 *     for (int what; (what = trp_args_next(&a, &value, &err)) != TRP_ARG_END; )
 *         switch (what) { case OPTION_JSON: …; case TRP_ARG_WORD: …; }
 */
#ifndef TRP_LAUNCHER_ARGS_H
#define TRP_LAUNCHER_ARGS_H

#include "core/base/error.h"

enum trp_arg_kind {
    TRP_ARG_FLAG,     /* --json */
    TRP_ARG_VALUE,    /* --site FILE, --site=FILE */
    TRP_ARG_OPTIONAL, /* --local, --local=4; a number behind it is refused */
};

struct trp_arg {
    const char *name; /* without the dashes; NULL ends a table */
    enum trp_arg_kind kind;
    int what; /* returned for it; > 0 */
};

/* Returned besides an option's own number. */
enum {
    TRP_ARG_END = 0,
    TRP_ARG_HELP = 10000, /* --help, -h: any command */
    TRP_ARG_WORD,         /* not an option: *ret_value */
    TRP_ARG_REST,         /* `--`: what follows is argv + at, and the end */
};

struct trp_args {
    const char *command;
    const struct trp_arg *table;
    int argc;
    char **argv;
    int at; /* next to look at */
};

/* argv[0] is the command's name and is skipped. */
struct trp_args trp_args_of(const char *command, const struct trp_arg *table, int argc,
                            char **argv);
/* The next one. `*ret_value` is borrowed from argv; NULL when there is none.
 * TRP_EINVAL: unknown option (a near one is suggested), a value missing or too many. */
int trp_args_next(struct trp_args *a, const char **ret_value, trp_error *err);

#endif
