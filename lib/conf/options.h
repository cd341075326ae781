/*
 * Options: one static table feeds files, environment, command line, man page and
 * `troupe config`.
 *
 * Where a value comes from, strongest first: command line (--set KEY=VALUE),
 * environment (TROUPE_OPT_<KEY, dots as _>), pipeline (`options:`), the user's file
 * (option_places.h), site (`options:`), default. Names are Spark's without `spark.`, or
 * our own (contract.md, "Options"). Times without a unit are ms; units us ms s m h d.
 * Memory without a unit is MiB. `executor.resource.R.amount`,
 * `executor.resource.R.discoveryScript`, `task.resource.R.amount` and `alloc.max_R` are
 * families: any custom resource R.
 *
 * Options of parts that no run has are in the table: trp_option_missing knows why they
 * do nothing.
 */
#ifndef TRP_CONF_OPTIONS_H
#define TRP_CONF_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/error.h"
#include "core/engine.h"
#include "core/profile/manager.h"

enum trp_option_type {
    TRP_OPTION_BOOL, /* true false */
    TRP_OPTION_INT,
    TRP_OPTION_NUMBER, /* decimal */
    TRP_OPTION_TIME,   /* int64 ns; or one of the words in `choices` */
    TRP_OPTION_MEMORY, /* MiB */
    TRP_OPTION_CHOICE, /* one of the words in `choices` */
    TRP_OPTION_AMOUNT, /* trp_amount */
    TRP_OPTION_TEXT,
};

/* In rising strength. */
enum trp_origin {
    TRP_ORIGIN_DEFAULT,
    TRP_ORIGIN_SITE,
    TRP_ORIGIN_USER,
    TRP_ORIGIN_PIPELINE,
    TRP_ORIGIN_ENVIRONMENT,
    TRP_ORIGIN_COMMAND_LINE,
};
const char *trp_origin_name(enum trp_origin o); /* "default", …, "command line" */

/* Who takes an option's value into a struct of its own. */
enum trp_option_taker {
    TRP_TAKER_OTHER,    /* none: it is read where it is used */
    TRP_TAKER_ENGINE,   /* struct trp_engine_config */
    TRP_TAKER_PROFILES, /* struct trp_profile_defaults */
};

/* A member: a bool for BOOL, a double for NUMBER, the index of the word (bool or enum)
 * for CHOICE, else a whole number of `size` bytes. */
struct trp_option_member {
    enum trp_option_taker taker;
    uint32_t offset, size;
    int64_t unset; /* its value when the option is not set, or is a word for a TIME */
};

struct trp_option {
    const char *key; /* a family has "*" for R: "executor.resource.*.amount" */
    enum trp_option_type type;
    const char *fallback;  /* default, as text; "" means not set; "=KEY": KEY's value */
    const char *min, *max; /* bounds as text, NULL: none */
    const char *choices;   /* "a|b|c" for CHOICE, and for TIME if not NULL */
    const char *help;      /* one line */
    struct trp_option_member member;
};
/* The table, ended by a NULL key, in alphabetic order. */
extern const struct trp_option trp_option_table[];
/* The entry of a key, that of its family included; NULL: there is no such option. */
const struct trp_option *trp_option_find(const char *key);
/* Why an option does nothing in a run: the part that it is about is not there. NULL: it
 * does something, or there is no such option. */
const char *trp_option_missing(const char *key);

typedef struct trp_options trp_options;
int trp_options_new(trp_options **ret, trp_error *err);
void trp_options_free(trp_options *o);

/* Sets a key; a weaker origin never replaces a stronger one. `where` ("FILE:LINE:COL",
 * "--set", a variable's name) is put in front of an error's text. TRP_EINVAL: unknown
 * key (a near one is suggested), a bad value, out of bounds. */
int trp_options_set(trp_options *o, const char *key, const char *value,
                    enum trp_origin origin, const char *where, trp_error *err);
/* Every TROUPE_OPT_* of `environ`. */
int trp_options_from_environment(trp_options *o, char *const *environ, trp_error *err);
/* Checks that need several options (bounds against each other: heartbeatInterval <=
 * network.timeout, minExecutors <= maxExecutors, …). The error begins with the `where`
 * of the stronger one. */
int trp_options_check(const trp_options *o, trp_error *err);

/* Values. A key that is not in the table is a programmer's error (assert). */
const char *trp_options_text(const trp_options *o,
                             const char *key); /* "" when not set */
int64_t trp_options_int(const trp_options *o, const char *key);
int64_t trp_options_time_ns(const trp_options *o, const char *key);
int64_t trp_options_memory_mib(const trp_options *o, const char *key); /* -1: not set */
double trp_options_number(const trp_options *o, const char *key);
bool trp_options_bool(const trp_options *o, const char *key);
bool trp_options_is_set(const trp_options *o, const char *key); /* not the default */
enum trp_origin trp_options_origin(const trp_options *o, const char *key);
/* Where it was set ("FILE:LINE:COL", "--set", …), "" for the default. */
const char *trp_options_where(const trp_options *o, const char *key);

/* Does Spark hold that map outputs survive executors that come and go (semantics, section
 * 16)? A shuffle service, shuffle tracking, or decommissioning that moves them. */
bool trp_options_shuffle_safe(const trp_options *o);

/* All keys with their values (families: each R that is set), in alphabetic order. */
struct trp_option_view {
    const char *key, *value;
    enum trp_origin origin;
    const struct trp_option *option;
};
/* Is it one of the family ("alloc.max_*")? Then of which resource. */
bool trp_option_resource(const struct trp_option_view *v, const char *family,
                         char ret_resource[TRP_RESOURCE_NAME_MAX]);
typedef int (*trp_option_visit)(void *context, const struct trp_option_view *v);
int trp_options_each(const trp_options *o, trp_option_visit visit, void *context);

/* What core takes of them; NULL: the defaults. */
void trp_options_profile_defaults(const trp_options *o,
                                  struct trp_profile_defaults *ret);
void trp_options_engine_config(const trp_options *o, struct trp_engine_config *ret);
/* Has the member a value that the option may have? */
bool trp_option_member_is_possible(const struct trp_option *t,
                                   const struct trp_engine_config *c);

/* A time as in options ("3s", "250", "2h", "1.5s"): ns. `bare_ns` is what a bare number
 * counts in (1000000: ms; 1000000000: seconds, as in a pipeline's `timeout`). */
int trp_time_parse(const char *text, int64_t bare_ns, int64_t *ret_ns, trp_error *err);

#endif
