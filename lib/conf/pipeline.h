/*
 * Pipeline files (contract.md, "Pipeline file"): YAML by libfyaml into one plain
 * struct.
 *
 * Every error says FILE:LINE:COL of the wrong key or value, from 1, in characters, and
 * what to do; the first 20 are told, by place. Scalars stay as written (`007`, `yes`). Nothing is
 * looked up in the file system: patterns are kept as patterns. Params have their values
 * by then; `argv env cwd outputs prefer` are templates (core/base/template.h).
 *
 *     trp_pipeline *p;
 *     if (trp_pipeline_read("etl.yaml", text, size, &inputs, &p, &err) < 0) …
 *     trp_pipeline_free(p);
 */
#ifndef TRP_CONF_PIPELINE_H
#define TRP_CONF_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/options.h"
#include "core/base/error.h"
#include "core/engine.h"
#include "core/profile/profile.h"
#include "core/sched/pools.h"

enum {
    TRP_PIPELINE_FILE_MAX = 16 << 20, /* a larger file is refused */
    TRP_PIPELINE_STAGES = 100000,     /* stages, profiles at most */
    TRP_PIPELINE_PROFILES = 1000,
    TRP_PIPELINE_POOLS = 1000,
    TRP_PIPELINE_WARNINGS = 20,    /* told at most */
    TRP_PIPELINE_TASKS = 10000000, /* tasks of a stage at most */
    TRP_PIPELINE_RANKS = 100000,
};

struct trp_mark {
    uint32_t line, column; /* from 1; 0: nowhere */
    const char *file;      /* the included one it is in; NULL: the file itself */
};
static inline const char *trp_mark_file(const char *file, struct trp_mark at)
{
    return at.file ? at.file : file;
}

/* Bytes as written; may hold NUL-free UTF-8 or anything else YAML can say. */
struct trp_text {
    char *data; /* NUL-terminated */
    size_t size;
};

struct trp_pair { /* env, params, options */
    char *key, *value;
    struct trp_mark mark;
};

struct trp_profile_section {
    struct trp_profile_builder builder;
    struct trp_mark mark; /* of its name */
};

struct trp_pool_section { /* pools: */
    struct trp_pool_spec *specs;
    struct trp_mark *marks; /* of their names */
    uint32_t n;
};

enum trp_foreach_kind {
    TRP_FOREACH_NONE,    /* `tasks` says how many */
    TRP_FOREACH_FILES,   /* `pattern` */
    TRP_FOREACH_ITEMS,   /* `items` */
    TRP_FOREACH_LINES,   /* `pattern` is the list file */
    TRP_FOREACH_TABLE,   /* … the table; .csv or tab-separated */
    TRP_FOREACH_PRODUCT, /* every combination of `parts` */
};

struct trp_foreach_part { /* of a product */
    char *name;
    enum trp_foreach_kind kind;
    char *pattern;
    struct trp_text *items;
    uint32_t nitems;
    struct trp_mark mark;
};

struct trp_after {
    char *stage;    /* name */
    uint32_t index; /* of the stage in `stages` */
    bool each;      /* a task waits for tasks of it: for its own counterpart, or … */
    char *by; /* … for those that have its value in this column; NULL: the former */
    struct trp_mark mark, by_mark;
};

/* A column that a value of a stage's tasks names, ${col.NAME}, or `run` by its variable,
 * where only its table can say whether there is one. */
struct trp_column_use {
    const char *name;
    bool in_run; /* a wrong one is most likely not meant; else it is an error */
    bool rows;   /* ${rows.NAME}: of all rows of a group */
    struct trp_mark mark;
    struct trp_column_use *next;
};

/* `shell:`, for `run` of a stage, or of all. */
enum trp_shell_kind {
    TRP_SHELL_UNSET,
    TRP_SHELL_SH,    /* /bin/sh -e -c */
    TRP_SHELL_BASH,  /* bash -euo pipefail -c */
    TRP_SHELL_WORDS, /* as they are written */
};
struct trp_shell {
    enum trp_shell_kind kind;
    char **words;
    uint32_t nwords;
};

struct trp_pipeline_stage {
    char *name;
    struct trp_mark mark; /* of the name's value */
    char *profile;        /* NULL: "default" */
    struct trp_mark profile_mark;
    struct trp_after *after;
    uint32_t nafter;
    char *run; /* shell text, or NULL */
    struct trp_mark run_mark;
    char **argv;
    uint32_t nargv;
    char **wrap;
    uint32_t nwrap;
    char *prelude; /* NULL: none */
    struct trp_shell shell;
    enum trp_foreach_kind foreach;
    char *pattern;
    struct trp_text *items;
    uint32_t nitems;
    struct trp_foreach_part *parts;
    uint32_t nparts;
    struct trp_mark foreach_mark; /* of the pattern, list or items */
    char *
        group; /* the column of the table for each of whose values there is a task; NULL:
                  * there is one for each row */
    struct trp_mark group_mark;
    char *key; /* the column whose values name its tasks; NULL: the first if it can */
    struct trp_mark key_mark;
    struct trp_column_use *columns;
    bool allow_empty;
    bool one_log; /* `task_logs: stage`: one stream for what its tasks print */
    bool absent;  /* `when`, which is here, says so: */
    struct trp_mark when;
    uint32_t place; /* among all, once those are behind the others */
    uint32_t tasks; /* 1 when neither tasks nor foreach is written */
    bool tasks_written;
    struct trp_pair *env;
    uint32_t nenv;
    char *cwd;          /* NULL: where troupe run was called */
    int64_t timeout_ns; /* 0: none */
    char **outputs;
    uint32_t noutputs;
    bool *optional; /* of each of them: it need not be made */
    bool *temp;     /* it goes when the stages that come after have succeeded */
    bool *guarded;  /* `protected`: it is made read-only */
    struct trp_mark temp_mark; /* of the first that goes; line 0: there is none */
    char **inputs;             /* of files that tasks read */
    uint32_t ninputs;
    struct trp_mark inputs_mark;
    char **params; /* that its tasks read, besides those that it names … */
    uint32_t nparams;
    bool all_params; /* … or all of them */
    bool always;     /* it runs again at every --resume */
    char **prefer;
    uint32_t nprefer;           /* host or host/executor, for each task of the stage */
    struct trp_stage_spec spec; /* what the engine is told; its profile, parents and
                                 * tasks: stage_specs.h */
    struct trp_mark pool_mark;
};

struct trp_pipeline_warning {
    struct trp_mark mark;
    const char *text;
    struct trp_pipeline_warning *next;
};

/* Who is told what lists, tables and inputs most likely do not mean. */
struct trp_pipeline_listener {
    void (*warn)(void *context, struct trp_mark at, const char *text);
    void *context;
};

typedef struct trp_pipeline {
    char *file; /* as given */
    char *name; /* free text; the file's name without .yaml when missing */
    struct trp_profile_section *profiles;
    uint32_t nprofiles;
    struct trp_profile_section *fallback; /* `default:`, NULL when missing */
    struct trp_pool_section pools;
    struct trp_pair *params;
    uint32_t nparams;
    struct trp_pair *options;
    uint32_t noptions;
    struct trp_shell shell;
    char *notify; /* a command for the run's end; NULL: none */
    struct trp_pipeline_stage *stages;
    uint32_t nstages; /* file order, acyclic, NOT
                       * necessarily parents first: use `order` */
    uint32_t nabsent; /* behind them in `stages` */
    uint32_t *order;  /* nstages indices, parents before children, ties in file
                       * order */
    struct trp_pipeline_warning *warnings; /* what is most likely not meant */
    uint32_t nwarnings;
    struct trp_column_use **uses; /* by stage, while it is read */
    /* Borrowed: lists and tables as they were (driver/kept_lists.h); NULL: as they are. */
    const struct trp_kept_lists *kept_lists;
    const struct trp_pipeline_listener *listener; /* borrowed; NULL: nobody is told */
    bool *in_values; /* of each param: ${NAME} stands in a value */
} trp_pipeline;

/* What the file takes from outside. */
struct trp_pipeline_inputs {
    const struct trp_pair *params; /* --param */
    uint32_t nparams;
    /* Reads a file that is included, malloc'ed; NULL: none can be. An error's text begins
     * with the file. */
    int (*read)(void *context, const char *file, char **ret_text, size_t *ret_size,
                trp_error *err);
    /* Is told all errors but the last, which is returned; NULL: the first is returned. */
    void (*tell)(void *context, const char *text);
    void *context;
};

/* Reads the text of a pipeline; `file` is for messages, `in` may be NULL: nothing.
 * TRP_EINVAL with FILE:LINE:COL for all that is wrong in itself: no text, syntax, unknown
 * or double keys, wrong types, bad units, unknown stages or cycles in `after`, a stage
 * without run and argv, bad names, options that are not in the table or out of bounds,
 * `after … each` with known and differing task counts; also for a param that the file
 * does not have (named with those it has). Impossible profiles: trp_pipeline_profiles. */
int trp_pipeline_read(const char *file, const char *text, size_t size,
                      const struct trp_pipeline_inputs *in, trp_pipeline **ret,
                      trp_error *err);
/* The same without anything from outside. */
int trp_pipeline_parse(const char *file, const char *text, size_t size,
                       trp_pipeline **ret, trp_error *err);
void trp_pipeline_free(trp_pipeline *p);

/* Puts the file's options into `o` (origin pipeline). */
int trp_pipeline_options(const trp_pipeline *p, trp_options *o, trp_error *err);

/* Makes the manager: default profile from options and `default:`, then the file's
 * profiles in file order (ids 1, 2, …), then the site's that stages name (may be NULL).
 * `ret_ids` (nstages entries) gets each stage's profile. Errors carry the profile's
 * FILE:LINE:COL. */
struct trp_site;
int trp_pipeline_profiles(const trp_pipeline *p, const trp_options *o,
                          const struct trp_site *site, trp_profiles **ret,
                          trp_profile_id *ret_ids, trp_error *err);

#endif
