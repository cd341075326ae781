/*
 * Layers of scenario files: what the author of a layer writes, and the helpers there
 * are. A *layer* drives one part of the engine (task sets, jobs, executor targets, …)
 * with the steps of a case; its steps and words are those of the scenario format
 * (docs/scenarios.md). The framework reads the file, keeps the time, fires timers,
 * compares what was expected, and prints; a layer only translates.
 *
 * How to write one. Make `layer_NAME.c` with one `const struct trp_sim_layer
 * trp_sim_layer_NAME`, and add one line to layers.c. `open` builds the engine from the
 * case's options, profiles, executors and its own keys; `step` performs one action;
 * whatever the engine decides is told with trp_sim_tell, under the word that `expect`
 * and --trace know it by; `state` answers for the words that ask how things stand.
 *
 *     struct end { const char *set; int64_t task; int status; };
 *     static int end(struct sched *s, const struct trp_yaml_node *value, …)
 *     {
 *         struct end v = {0};
 *         if (!TRP_SIM_FIELDS(s->c, value, "end", &v, TRP_SIM_MUST(v, set, NAME),
 *                             TRP_SIM_MUST(v, task, WHOLE),
 *                             TRP_SIM_MUST_CHOICE(v, status, "success|failed")))
 *             return TRP_EINVAL;
 *         struct set *set = find_set(s, v.set);
 *         if (!set)
 *             return trp_sim_refuse(s->c, value->mark, "no task set \"%s\"", v.set);
 *         …
 *         trp_sim_tell(s->c, "aborted", json_string(v.set));
 *         return 0;
 *     }
 *
 * Three kinds of error.
 *   malformed   (unknown key, a list where a number stands): trp_sim_wrong, and every
 *               reader below. The file is no scenario: FILE:LINE:COL, exit status 2.
 *   unreadable  (a number that is too large, a name that nothing has): trp_sim_refuse.
 *               The same, unless the step says `error:` (the start: `refused:`), which
 *               is then compared with the text.
 *   refused     (the engine says no): return a negative code with the text in `err`.
 *               Compared with `error:`; without one the case fails.
 * A step that fails must change nothing.
 *
 * Nodes, texts and whatever readers return live as long as the case. Times are ns.
 */
#ifndef TRP_SIM_SCENARIO_LAYER_H
#define TRP_SIM_SCENARIO_LAYER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/options.h"
#include "conf/yaml.h"
#include "core/base/amount.h"
#include "core/base/error.h"
#include "core/profile/ledger.h"
#include "core/profile/manager.h"

typedef struct trp_sim_case trp_sim_case;

/* What a file may ask for at most, so that none hangs the simulator. */
enum {
    TRP_SIM_TASKS = 100000,  /* tasks of all task sets, partitions, … of a case */
    TRP_SIM_ENTRIES = 10000, /* executors, task sets, datasets, … of a case */
    TRP_SIM_EXPECTED = 1000, /* entries of a list in `expect` */
    TRP_SIM_TIMERS = 100000, /* timers that fire before one step */
    TRP_SIM_NAME_MAX = 64,
};
#define TRP_SIM_TIME_MAX (INT64_C(1000000000000) * 1000000) /* ns: 10^12 ms */

struct trp_sim_layer {
    /* Words with blanks between them. */
    const char *names;    /* what `layer:` may say for it */
    const char *keys;     /* keys at top level beside the common ones; `executors`,
                           * `racks` and `manual_start` are read for the layer when
                           * they are named here */
    const char *actions;  /* keys of a step */
    const char *happened; /* in `expect`: what was told since the step before; a list
                           * is compared with all that was told, anything else with
                           * the last; every WORD has a WORD_count too */
    const char *states;   /* in `expect`: answered by `state` */
    const char *ordered;  /* of these, anywhere in `expect`: lists are in order */
    const char *whole;    /* maps under these keys are compared whole */

    size_t size; /* of its state, of which the first member is trp_sim_case *c */
    int (*open)(void *state, trp_error *err); /* all but that is zeroed */
    void (*close)(void *state);               /* also of one that failed to open */
    /* A step begins, timers before it included. May be NULL. */
    void (*begin)(void *state);
    /* Performs `action: value` at `now`. */
    int (*step)(void *state, const char *action, const struct trp_yaml_node *value,
                int64_t now_ns, trp_error *err);
    /* When `fire` is due next, INT64_MAX: never. Both may be NULL. */
    int64_t (*next_timer)(void *state);
    int (*fire)(void *state, int64_t now_ns, trp_error *err);
    /* How `key` stands, as a new value; NULL: nothing (or no memory). `wanted` is what
     * the file wrote, for words that need to know what is asked (`hosts_for`); it is
     * NULL when the framework looks whether a refused step changed anything: words that
     * cannot be answered then give NULL. */
    json_t *(*state)(void *state, const char *key, const struct trp_yaml_node *wanted);
};

extern const struct trp_sim_layer *const trp_sim_layers[]; /* layers.c; ends in NULL */

/* ---- the case ---- */

/* An executor as `executors:` and `add:` write it. */
struct trp_sim_executor {
    const char *id, *host;
    trp_profile_id profile;
    int64_t cores; /* those of its profile where none are written */
    struct trp_resource_addresses *resources; /* as written */
    uint32_t nresources;
    struct trp_mark mark;
};

const trp_options *trp_sim_options(const trp_sim_case *c);
trp_profiles *trp_sim_profiles(trp_sim_case *c);
/* Dynamic allocation: `dynamicAllocation.enabled` and an elastic manager. */
bool trp_sim_dynamic(const trp_sim_case *c);
bool trp_sim_manual_start(const trp_sim_case *c);
const struct trp_sim_executor *trp_sim_executors(const trp_sim_case *c,
                                                 uint32_t *ret_count);
/* Where the hosts that the case names under `racks` stand. */
const struct trp_host_rack *trp_sim_racks(const trp_sim_case *c, uint32_t *ret_count);
/* NULL: the host is in no rack. */
const char *trp_sim_rack_of(const trp_sim_case *c, const char *host);
/* The value of a key at top level, NULL: not written. */
const struct trp_yaml_node *trp_sim_top(const trp_sim_case *c, const char *key);
/* Memory that lives as long as the case. */
struct trp_conf_arena *trp_sim_keep(trp_sim_case *c);

/* An action costs more than a look at each executor and each set, stage, … of the case:
 * so many looks (one is some ten nanoseconds). A case that does too much is refused. */
void trp_sim_work(trp_sim_case *c, uint64_t units);
/* A step made one more set, stage, …, which later steps may look at. */
void trp_sim_more(trp_sim_case *c);

/* What the engine decided, at the time of the step or timer. Takes `value` (NULL: out
 * of memory, which ends the case). "message" holds texts for `message:`. */
void trp_sim_tell(trp_sim_case *c, const char *word, json_t *take_value);
void trp_sim_say(trp_sim_case *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- errors: both return TRP_EINVAL ---- */

int trp_sim_wrong(trp_sim_case *c, struct trp_mark at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int trp_sim_refuse(trp_sim_case *c, struct trp_mark at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- readers: `what` names the value in errors. False or NULL: an error is told. ---- */

enum trp_sim_kind {
    TRP_SIM_NAME,   /* const char *: an id, at most TRP_SIM_NAME_MAX bytes */
    TRP_SIM_TEXT,   /* const char *: any scalar */
    TRP_SIM_WHOLE,  /* int64_t, 0 to 10^9 */
    TRP_SIM_TIME,   /* int64_t ns; milliseconds in the file */
    TRP_SIM_BOOL,   /* bool */
    TRP_SIM_AMOUNT, /* trp_amount */
    TRP_SIM_CHOICE, /* int: the index in "a|b|c" */
    TRP_SIM_NODE,   /* const struct trp_yaml_node *: anything, read by the caller */
};

struct trp_sim_field {
    const char *name;
    enum trp_sim_kind kind;
    size_t at; /* where it goes in the caller's struct */
    bool required;
    const char *choices; /* CHOICE */
};
/* clang-format off */
/* A member of the struct `v` that has to be written, or may be. */
#define TRP_SIM_MUST(v, member, kind)                                                  \
    {#member, TRP_SIM_##kind, offsetof(__typeof__(v), member), true, NULL}
#define TRP_SIM_MAY(v, member, kind)                                                   \
    {#member, TRP_SIM_##kind, offsetof(__typeof__(v), member), false, NULL}
#define TRP_SIM_MUST_CHOICE(v, member, choices)                                        \
    {#member, TRP_SIM_CHOICE, offsetof(__typeof__(v), member), true, choices}
#define TRP_SIM_MAY_CHOICE(v, member, choices)                                         \
    {#member, TRP_SIM_CHOICE, offsetof(__typeof__(v), member), false, choices}
/* clang-format on */

/* trp_sim_fields with these fields. */
#define TRP_SIM_FIELDS(c, node, what, ret, ...)                                        \
    trp_sim_fields(c, node, what, (const struct trp_sim_field[]){__VA_ARGS__},         \
                   sizeof((const struct trp_sim_field[]){__VA_ARGS__}) /               \
                       sizeof(struct trp_sim_field),                                   \
                   ret)

/* Reads a mapping into a struct; what is not written stays as it was. */
bool trp_sim_fields(trp_sim_case *c, const struct trp_yaml_node *node, const char *what,
                    const struct trp_sim_field *fields, size_t n, void *ret);

const char *trp_sim_name(trp_sim_case *c, const struct trp_yaml_node *node,
                         const char *what);
bool trp_sim_whole(trp_sim_case *c, const struct trp_yaml_node *node, const char *what,
                   int64_t min, int64_t max, int64_t *ret);
bool trp_sim_amount(trp_sim_case *c, const struct trp_yaml_node *node, const char *what,
                    trp_amount *ret);
bool trp_sim_time(trp_sim_case *c, const struct trp_yaml_node *node, const char *what,
                  int64_t *ret_ns);

/* The first item of a list (go on with ->next), of a mapping (its key; the value is
 * key->next, the next key key->next->next). *ret: how many; 0 after an error. Keys of a
 * mapping are names. False: an error is told. */
bool trp_sim_list(trp_sim_case *c, const struct trp_yaml_node *node, const char *what,
                  uint32_t max, const struct trp_yaml_node **ret_first,
                  uint32_t *ret_count);
bool trp_sim_map(trp_sim_case *c, const struct trp_yaml_node *node, const char *what,
                 uint32_t max, const struct trp_yaml_node **ret_first,
                 uint32_t *ret_count);

/* Sizes in bytes, in memory that lives as long as the case. 0, or a negative code. */
int trp_sim_sizes(trp_sim_case *c, const struct trp_yaml_node *node, uint64_t **ret,
                  uint32_t *ret_count);

/* An executor; not yet whether its id is new. */
bool trp_sim_read_executor(trp_sim_case *c, const struct trp_yaml_node *node,
                           struct trp_sim_executor *ret);
/* `{gpu: ["0", "1"], …}`: names and addresses, none twice. */
bool trp_sim_read_resources(trp_sim_case *c, const struct trp_yaml_node *node,
                            struct trp_resource_addresses **ret, uint32_t *ret_count);
/* The name of a profile that there is; NULL `node`: the default. */
bool trp_sim_read_profile(trp_sim_case *c, const struct trp_yaml_node *node,
                          trp_profile_id *ret);
/* `{executor: {…}, task: {…}}` of a profile; NULL: not written. A request that cannot
 * be is refused, with the text of the profile module. */
bool trp_sim_read_requests(trp_sim_case *c, const struct trp_yaml_node *executor,
                           const struct trp_yaml_node *task,
                           struct trp_profile_builder *b);

/* ---- values for tell and state ---- */

/* A whole number, or a real that compares equal to any spelling of it. */
json_t *trp_sim_json_amount(trp_amount amount);
/* {gpu: ["0", "1"]} */
json_t *trp_sim_json_grants(const trp_ledger *b, const struct trp_grant *v, uint32_t n);
/* Milliseconds; "never" for INT64_MAX. */
json_t *trp_sim_json_time(int64_t ns);

/* ---- names ---- */

/* Names as dense numbers from 0, in the order of adding. All zero is empty. */
struct trp_sim_names {
    struct trp_sim_name *table;
    const char **v; /* by number; borrowed: they live as long as the case */
    uint32_t n, cap;
};

/* The new number; TRP_EEXIST, TRP_ENOMEM. */
int trp_sim_names_add(struct trp_sim_names *names, const char *name);
/* The number, TRP_ENOENT. */
int trp_sim_names_find(const struct trp_sim_names *names, const char *name);
void trp_sim_names_free(struct trp_sim_names *names);

#endif
