/*
 * The command line of a subcommand: `--option`, `--option VALUE`, `--option=VALUE`, of
 * one letter `-o VALUE` and `-oVALUE`, in any order with words, up to `--`. A table has
 * its options and what --help says of them.
 *
 *     const struct trp_line trp_line_plan = {
 *         "plan", "usage: …", "", .table = TRP_ARGS(TRP_ARGS_JSON(&json)), .take = take};
 *     int code = trp_args_read(&trp_line_plan, argc, argv, &err);
 */
#ifndef TRP_LAUNCHER_ARGS_H
#define TRP_LAUNCHER_ARGS_H

#include <stddef.h>

#include "core/base/error.h"

enum trp_arg_kind {
    TRP_ARG_FLAG,     /* --json */
    TRP_ARG_VALUE,    /* --site FILE, --site=FILE */
    TRP_ARG_OPTIONAL, /* --local, --local=4; a number behind it is refused */
};

struct trp_arg {
    const char *name; /* without the dashes: two, or one where it is a single letter;
                       * NULL: lines between options, or the end */
    enum trp_arg_kind kind;
    int what;          /* returned for it; > 0 */
    const char *value; /* what --help calls its value; NULL with a flag */
    const char *help;  /* lines after the first are indented; NULL: the end */
    void *to; /* a bool that a flag sets, or a const char * that a value is put into;
               * NULL: `take` has it */
};
/* clang-format off */
#define TRP_ARGS_FLAG(name, to, help) {name, TRP_ARG_FLAG, TRP_ARG_TAKEN, NULL, help, to}
#define TRP_ARGS_TEXT(name, to, value, help) {name, TRP_ARG_VALUE, TRP_ARG_TAKEN, value, help, to}
#define TRP_ARGS_LINES(text) {NULL, TRP_ARG_FLAG, 0, NULL, text, NULL}
#define TRP_ARGS_END {NULL, TRP_ARG_FLAG, 0, NULL, NULL, NULL}
/* A table of them, with its end. */
#define TRP_ARGS(...) (const struct trp_arg[]){__VA_ARGS__, TRP_ARGS_END}
#define TRP_ARGS_NONE (const struct trp_arg[]){TRP_ARGS_END}
/* Options that several have. */
#define TRP_ARGS_JSON(to) TRP_ARGS_FLAG("json", to, "one JSON document")
#define TRP_ARGS_RUNS_HELP "where runs' folders are (TROUPE_RUNS; default: troupe-runs)"
#define TRP_ARGS_RUNS(to) TRP_ARGS_TEXT("runs-dir", to, "DIR", TRP_ARGS_RUNS_HELP)
/* clang-format on */

/* Returned besides an option's own number. */
enum {
    TRP_ARG_END = 0,
    TRP_ARG_HELP = 10000, /* --help, -h: any command */
    TRP_ARG_WORD,         /* not an option: *ret_value */
    TRP_ARG_REST,         /* `--`: what follows is argv + at, and the end */
    TRP_ARG_TAKEN,        /* an option that was put where it belongs */
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
/* "-" for a name of one letter, else "--". */
const char *trp_args_dashes(const struct trp_arg *o);
/* The option of that name, `length` bytes; NULL: there is none. */
const struct trp_arg *trp_args_find(const struct trp_arg *table, const char *name,
                                    size_t length);

struct trp_line {
    const char *command;
    const char *synopsis, *closing; /* of --help, around the options */
    const struct trp_arg *table;
    /* Takes another option, a word, or TRP_ARG_REST. 0; an error; or `what`: it is
     * nothing that this command takes. NULL: it takes … */
    int (*take)(struct trp_args *a, int what, const char *value, trp_error *err);
    const char **words[3]; /* … these, from the first on, and says … */
    const char *please;    /* … this when there is more; NULL: it takes none */
    /* Reads all of the line itself, and returns what trp_args_read does; NULL: the
     * table is enough. */
    int (*read)(int argc, char **argv, trp_error *err);
};

/* Reads all of it. 0; 1: --help, which was printed; an error. */
int trp_args_read(const struct trp_line *l, int argc, char **argv, trp_error *err);

#endif
