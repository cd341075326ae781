/*
 * What all layers share of a scenario: options, profiles, racks, executors.
 *
 * The keys of the file are looked through first, each into its place; they are then
 * read in the order in which they need one another, whatever their order in the file.
 */
#include "sim/scenario/case.h"

#include <stdlib.h>
#include <string.h>

#include "conf/wording.h"

#define COMMON_KEYS "scenario source layer config profiles manager refused steps"

/* ---- what layers ask ---- */

const trp_options *trp_sim_options(const trp_sim_case *c)
{
    return c->options;
}

trp_profiles *trp_sim_profiles(trp_sim_case *c)
{
    return c->profiles;
}

bool trp_sim_dynamic(const trp_sim_case *c)
{
    return c->manager == TRP_MANAGER_ELASTIC &&
           trp_options_bool(c->options, "dynamicAllocation.enabled");
}

bool trp_sim_manual_start(const trp_sim_case *c)
{
    return c->manual_start;
}

const struct trp_sim_executor *trp_sim_executors(const trp_sim_case *c,
                                                 uint32_t *ret_count)
{
    *ret_count = c->nexecutors;
    return c->executors;
}

const struct trp_host_rack *trp_sim_racks(const trp_sim_case *c, uint32_t *ret_count)
{
    *ret_count = c->hosts.n;
    return c->racks;
}

const char *trp_sim_rack_of(const trp_sim_case *c, const char *host)
{
    int i = trp_sim_names_find(&c->hosts, host);
    return i < 0 ? NULL : c->racks[i].rack;
}

const struct trp_yaml_node *trp_sim_top(const trp_sim_case *c, const char *key)
{
    for (const struct trp_yaml_node *k = c->root->first; k; k = k->next->next) {
        if (k->kind == TRP_YAML_SCALAR && !strcmp(k->text, key))
            return k->next;
    }
    return NULL;
}

struct trp_conf_arena *trp_sim_keep(trp_sim_case *c)
{
    return &c->keep;
}

/* ---- keys at top level ---- */

static void list_names(struct trp_name_list *all, const char *names)
{
    char name[TRP_SIM_NAME_MAX];
    while (*names) {
        size_t n = strcspn(names, " ");
        snprintf(name, sizeof(name), "%.*s", (int)n, names);
        trp_name_list_add(all, name);
        names += n + (names[n] == ' ');
    }
}

static void read_layer(trp_sim_case *c)
{
    const struct trp_yaml_node *node = trp_sim_top(c, "layer");
    struct trp_name_list all = {0};
    if (!node) {
        trp_sim_wrong(c, c->root->mark, "the scenario has no \"layer\"; add the key");
        return;
    }
    if (!trp_sim_name(c, node, "layer"))
        return;
    for (size_t i = 0; trp_sim_layers[i] && !c->layer; i++) {
        list_names(&all, trp_sim_layers[i]->names);
        if (trp_sim_is_word(trp_sim_layers[i]->names, node->text, node->size))
            c->layer = trp_sim_layers[i];
    }
    if (!c->layer)
        trp_sim_wrong(c, node->mark, "layer is \"%s\"; the layers are %s",
                      trp_show(node->text).text, all.text);
}

static void check_keys(trp_sim_case *c)
{
    for (const struct trp_yaml_node *k = c->root->first; k; k = k->next->next) {
        if (k->kind == TRP_YAML_SCALAR &&
            !trp_sim_is_word(COMMON_KEYS, k->text, k->size) &&
            !trp_sim_is_word(c->layer->keys, k->text, k->size))
            trp_sim_unknown_key(c, k, "a scenario of this layer", COMMON_KEYS,
                                c->layer->keys);
        if (k->kind == TRP_YAML_SCALAR &&
            trp_sim_is_word(c->layer->keys, k->text, k->size))
            c->entries += k->next->count;
    }
}

static void read_words(trp_sim_case *c)
{
    static const struct trp_sim_field manager[] = {
        {"manager", TRP_SIM_CHOICE, 0, false, "elastic|static|local"},
    };
    const struct trp_yaml_node *node = trp_sim_top(c, "scenario");
    if (!node)
        trp_sim_wrong(c, c->root->mark,
                      "the scenario has no title; add the key \"scenario\"");
    else
        c->title = trp_yaml_word(c->yaml, node, "scenario");
    if ((node = trp_sim_top(c, "source")))
        trp_yaml_text(c->yaml, node, "source");
    if ((node = trp_sim_top(c, "refused")))
        c->refused = trp_yaml_word(c->yaml, node, "refused");
    if ((node = trp_sim_top(c, "manual_start")))
        trp_yaml_bool(c->yaml, node, "manual_start", &c->manual_start);
    if ((node = trp_sim_top(c, "manager")))
        trp_sim_field_read(c, node, manager, &c->manager);
}

/* ---- options and profiles ---- */

static void read_config(trp_sim_case *c, const struct trp_yaml_node *node)
{
    char where[TRP_SIM_NAME_MAX];
    trp_error why;
    const struct trp_yaml_node *key;
    uint32_t count;
    if (!trp_sim_map(c, node, "config", TRP_SIM_EXPECTED, &key, &count))
        return;
    for (; key; key = key->next->next) {
        const struct trp_yaml_node *value = key->next;
        const char *text = trp_yaml_text(c->yaml, value, key->text);
        snprintf(where, sizeof(where), "%u:%u", value->mark.line, value->mark.column);
        if (text && trp_options_set(c->options, key->text, text, TRP_ORIGIN_PIPELINE,
                                    where, &why) < 0) {
            const char *at = strchr(why.text, ' ');
            trp_sim_refuse(c, value->mark, "%s", at ? at + 1 : why.text);
        }
    }
    if (trp_options_check(c->options, &why) < 0) {
        const char *at = strchr(why.text, ' ');
        trp_sim_refuse(c, node->mark, "%s", at ? at + 1 : why.text);
    }
}

static void read_profile(trp_sim_case *c, const struct trp_yaml_node *key)
{
    struct {
        const struct trp_yaml_node *executor, *task;
    } v = {0};
    struct trp_profile_builder b;
    trp_profile_id id;
    trp_error why;
    trp_profile_builder_init(&b, key->text);
    if (!trp_is_name(key->text) || trp_profiles_by_name(c->profiles, key->text))
        trp_sim_refuse(c, key->mark, "\"%s\" cannot be a profile's name",
                       trp_show(key->text).text);
    else if (TRP_SIM_FIELDS(c, key->next, "a profile", &v,
                            TRP_SIM_MAY(v, executor, NODE),
                            TRP_SIM_MAY(v, task, NODE)) &&
             trp_sim_read_requests(c, v.executor, v.task, &b) &&
             trp_profiles_add(c->profiles, &b, &id, &why) < 0)
        trp_sim_refuse(c, key->mark, "%s", why.text);
}

static void read_profiles(trp_sim_case *c)
{
    const struct trp_yaml_node *config = trp_sim_top(c, "config"),
                               *profiles = trp_sim_top(c, "profiles"), *key;
    struct trp_profile_defaults d;
    trp_error why;
    uint32_t count;
    if (config)
        read_config(c, config);
    trp_options_profile_defaults(c->options, &d);
    d.kind = c->manager == TRP_MANAGER_ELASTIC && !trp_sim_dynamic(c)
                 ? TRP_MANAGER_STATIC
                 : (enum trp_manager_kind)c->manager;
    if (trp_profiles_new(&d, NULL, &c->profiles, &why) < 0)
        trp_sim_refuse(c, config ? config->mark : c->root->mark, "%s", why.text);
    else if (profiles &&
             trp_sim_map(c, profiles, "profiles", TRP_SIM_ENTRIES, &key, &count)) {
        for (; key; key = key->next->next)
            read_profile(c, key);
    }
}

/* ---- hosts and executors ---- */

static int add_host(trp_sim_case *c, uint32_t *cap, const char *rack,
                    const struct trp_yaml_node *node)
{
    const char *host = trp_sim_name(c, node, "a host");
    if (!host)
        return TRP_EINVAL;
    int i = trp_sim_names_add(&c->hosts, host);
    if (i == TRP_EEXIST)
        return trp_sim_wrong(c, node->mark, "host \"%s\" is in two racks; remove one",
                             trp_show(host).text);
    if (i < 0 || !TRP_ARRAY_RESERVE(c->racks, *cap, c->hosts.n)) {
        trp_yaml_no_memory(c->yaml);
        return TRP_ENOMEM;
    }
    c->racks[i] = (struct trp_host_rack){host, rack};
    return 0;
}

static void read_racks(trp_sim_case *c)
{
    const struct trp_yaml_node *node = trp_sim_top(c, "racks"), *key, *host;
    uint32_t count, cap = 0;
    if (!node || !trp_sim_map(c, node, "racks", TRP_SIM_ENTRIES, &key, &count))
        return;
    for (; key; key = key->next->next) {
        if (!trp_sim_list(c, key->next, "a rack", TRP_SIM_ENTRIES, &host, &count))
            return;
        for (; host; host = host->next) {
            if (add_host(c, &cap, key->text, host) < 0)
                return;
        }
    }
}

static void read_executors(trp_sim_case *c)
{
    const struct trp_yaml_node *node = trp_sim_top(c, "executors"), *item;
    struct trp_sim_names ids = {0};
    uint32_t count;
    if (!node || !trp_sim_list(c, node, "executors", TRP_SIM_ENTRIES, &item, &count))
        return;
    c->executors = trp_yaml_alloc(c->yaml, count, sizeof(*c->executors));
    for (; item && c->executors; item = item->next) {
        struct trp_sim_executor *e = &c->executors[c->nexecutors];
        if (!trp_sim_read_executor(c, item, e))
            break;
        if (trp_sim_names_add(&ids, e->id) == TRP_EEXIST) {
            trp_sim_wrong(c, item->mark, "executor \"%s\" is there twice; remove one",
                          trp_show(e->id).text);
            break;
        }
        c->nexecutors++;
    }
    trp_sim_names_free(&ids);
}

int trp_sim_case_read(trp_sim_case *c, trp_error *err)
{
    const struct trp_yaml_node *steps;
    c->root = trp_yaml_root(c->yaml);
    if (!trp_yaml_is_mapping(c->yaml, c->root, "a scenario"))
        return trp_yaml_verdict(c->yaml, err);
    read_layer(c);
    if (!c->layer)
        return trp_yaml_verdict(c->yaml, err);
    int code = trp_options_new(&c->options, err);
    if (code == 0) /* Spark's: its cases count memory for a JVM */
        code = trp_options_set(c->options, "executor.minMemoryOverhead", "384m",
                               TRP_ORIGIN_SITE, "scenarios", err);
    if (code == 0) /* nor does it keep slots */
        code = trp_options_set(c->options, "barrier.reserve", "0", TRP_ORIGIN_SITE,
                               "scenarios", err);
    if (code < 0)
        return code;
    check_keys(c);
    read_words(c);
    if ((steps = trp_sim_top(c, "steps")))
        trp_sim_read_steps(c, steps);
    else if (!c->refused)
        trp_sim_wrong(c, c->root->mark, "the scenario has no \"steps\"; add the key");
    c->may_refuse = c->refused != NULL;
    read_profiles(c);
    if (c->profiles) {
        read_racks(c);
        read_executors(c);
    }
    return trp_yaml_verdict(c->yaml, err);
}
