/*
 * One scenario while it runs; private to sim/scenario. Layers see it through layer.h.
 */
#ifndef TRP_SIM_SCENARIO_CASE_H
#define TRP_SIM_SCENARIO_CASE_H

#include <stdio.h>

#include "core/base/array.h"
#include "core/topo/hosts.h"
#include "sim/scenario/layer.h"

/* Something the engine decided. */
struct trp_sim_told {
    const char *word; /* the layer's: a constant */
    json_t *value;
};

struct trp_sim_step {
    struct trp_mark mark;
    int64_t at; /* ns */
    const char *action;
    const struct trp_yaml_node *value;
    const struct trp_yaml_node *expect; /* NULL: nothing is expected */
    const char *error;                  /* NULL: it must not be refused */
};

struct trp_sim_case {
    const char *file;
    struct trp_conf_arena keep;
    trp_yaml *yaml;
    const struct trp_yaml_node *root;

    /* From the file. */
    const char *title, *refused;
    const struct trp_sim_layer *layer;
    int manager; /* enum trp_manager_kind */
    bool manual_start;
    trp_options *options;
    trp_profiles *profiles;
    struct trp_sim_names hosts; /* hosts in a rack, and the rack of each */
    struct trp_host_rack *racks;
    struct trp_sim_executor *executors;
    uint32_t nexecutors;
    struct trp_sim_step *steps;
    uint32_t nsteps;

    /* While it runs. */
    void *state; /* the layer's */
    int64_t now;
    FILE *trace;               /* NULL: decisions are not printed */
    struct trp_sim_told *told; /* since the step before */
    uint32_t ntold, told_cap;
    bool may_refuse; /* a refusal is expected */
    bool is_refused;
    trp_error refusal; /* the first */
    bool no_memory;
    uint64_t entries; /* executors, task sets, … at top level */
    uint64_t work;    /* done so far */
};

/* case.c. Reads what all layers share; the steps' values are left to the layer. After
 * TRP_EINVAL it may be `is_refused`, or the yaml's verdict tells. */
int trp_sim_case_read(trp_sim_case *c, trp_error *err);

/* work.c: a state that was built; has the case had its share? */
void trp_sim_work_json(trp_sim_case *c, json_t *value);
bool trp_sim_is_too_much(const trp_sim_case *c);

/* steps.c: the list of steps, without the values of actions. */
void trp_sim_read_steps(trp_sim_case *c, const struct trp_yaml_node *node);

/* One value, as trp_sim_fields reads it. */
bool trp_sim_field_read(trp_sim_case *c, const struct trp_yaml_node *node,
                        const struct trp_sim_field *field, void *ret);
/* Is `word` one of the blank-separated `words`? */
bool trp_sim_is_word(const char *words, const char *word, size_t size);
/* "unknown key …; did you mean …" or with all that there are. */
void trp_sim_unknown_key(trp_sim_case *c, const struct trp_yaml_node *key,
                         const char *what, const char *words, const char *more_words);

#endif
