/*
 * Layer `outputs`: the registry of map outputs on its own (semantics, section 15).
 * Shuffles, hosts and executors that the case did not declare come to be when they are
 * first named.
 */
#include <stdlib.h>
#include <string.h>

#include "conf/wording.h"
#include "core/base/array.h"
#include "core/dag/outputs.h"
#include "sim/scenario/layer.h"

enum { PLACES_MAX = 1000 };

struct outputs {
    trp_sim_case *c;
    trp_map_outputs *registry;
    struct trp_sim_names shuffles, executors, hosts;
    uint32_t *host_of; /* by executor; TRP_NONE: not known yet */
    uint32_t host_cap;
    uint64_t maps;  /* of all shuffles that ever were */
    uint64_t next;  /* id of the next output */
    uint64_t epoch; /* when the step began */
};

static void close_layer(void *state)
{
    struct outputs *s = state;
    trp_map_outputs_free(s->registry);
    trp_sim_names_free(&s->shuffles);
    trp_sim_names_free(&s->executors);
    trp_sim_names_free(&s->hosts);
    free(s->host_of);
}

static void begin(void *state)
{
    struct outputs *s = state;
    s->epoch = trp_map_outputs_epoch(s->registry);
}

/* ---- names ---- */

static int number_of(struct trp_sim_names *names, const char *name)
{
    int n = trp_sim_names_find(names, name);
    return n >= 0 ? n : trp_sim_names_add(names, name);
}

/* The place of an executor; `host` NULL: where it was last. */
static int place_of(struct outputs *s, const char *executor, const char *host,
                    struct trp_output_place *ret)
{
    int x = number_of(&s->executors, executor);
    int h = host ? number_of(&s->hosts, host) : 0;
    uint32_t before = s->host_cap;
    if (x < 0 || h < 0 || !TRP_ARRAY_RESERVE(s->host_of, s->host_cap, s->executors.n))
        return TRP_ENOMEM;
    for (; before < s->host_cap; before++)
        s->host_of[before] = TRP_NONE;
    if (host)
        s->host_of[x] = (uint32_t)h;
    *ret = (struct trp_output_place){(uint32_t)x, s->host_of[x]};
    return 0;
}

/* ---- opening ---- */

static int open_layer(void *state, trp_error *err)
{
    struct outputs *s = state;
    struct trp_output_place place;
    uint32_t n;
    s->registry = trp_map_outputs_new();
    int code = s->registry ? 0 : TRP_ENOMEM;
    const struct trp_sim_executor *x = trp_sim_executors(s->c, &n);
    for (uint32_t i = 0; code == 0 && i < n; i++)
        code = place_of(s, x[i].id, x[i].host, &place);
    return code < 0 ? trp_error_set(err, code, "out of memory") : 0;
}

/* The number of a shuffle that is registered. */
static int find_shuffle(struct outputs *s, const struct trp_yaml_node *node)
{
    const char *name = trp_sim_name(s->c, node, "shuffle");
    if (!name)
        return TRP_EINVAL;
    int n = trp_sim_names_find(&s->shuffles, name);
    if (n >= 0 && trp_map_outputs_known(s->registry, (uint32_t)n))
        return n;
    return trp_sim_refuse(s->c, node->mark, "no shuffle \"%s\"", trp_show(name).text);
}

/* ---- steps ---- */

struct output {
    const struct trp_yaml_node *shuffle, *sizes;
    const char *executor, *host;
    int64_t map;
};

static int do_register(struct outputs *s, const struct trp_yaml_node *value,
                       trp_error *err)
{
    struct {
        const char *shuffle;
        int64_t maps;
    } v = {0};
    trp_error why;
    if (!TRP_SIM_FIELDS(s->c, value, "register", &v, TRP_SIM_MUST(v, shuffle, NAME),
                        TRP_SIM_MUST(v, maps, WHOLE)))
        return TRP_EINVAL;
    if (v.maps + (int64_t)s->maps > TRP_SIM_TASKS)
        return trp_sim_refuse(s->c, value->mark, "more than %d map tasks in a case",
                              TRP_SIM_TASKS);
    int n = number_of(&s->shuffles, v.shuffle);
    if (n < 0)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    int code =
        trp_map_outputs_register(s->registry, (uint32_t)n, (uint32_t)v.maps, 0, &why);
    if (code < 0)
        return trp_error_set(err, code, "shuffle \"%s\": %s", trp_show(v.shuffle).text,
                             why.text);
    s->maps += (uint64_t)v.maps;
    return 0;
}

static int step_add(struct outputs *s, const struct trp_yaml_node *value,
                    trp_error *err)
{
    struct output v = {0};
    struct trp_output_place place;
    uint64_t *sizes = NULL;
    uint32_t nsizes = 0;
    if (!TRP_SIM_FIELDS(s->c, value, "output", &v, TRP_SIM_MUST(v, shuffle, NODE),
                        TRP_SIM_MUST(v, map, WHOLE), TRP_SIM_MUST(v, executor, NAME),
                        TRP_SIM_MAY(v, host, NAME), TRP_SIM_MAY(v, sizes, NODE)))
        return TRP_EINVAL;
    int shuffle = find_shuffle(s, v.shuffle);
    int code = shuffle < 0 ? shuffle : place_of(s, v.executor, v.host, &place);
    if (code == 0 && place.host == TRP_NONE)
        code = trp_sim_refuse(s->c, value->mark,
                              "executor \"%s\" has no host yet; "
                              "write \"host\"",
                              trp_show(v.executor).text);
    if (code == 0 && v.sizes)
        code = trp_sim_sizes(s->c, v.sizes, &sizes, &nsizes);
    if (code == 0) {
        code = trp_map_outputs_add(s->registry, (uint32_t)shuffle, (uint32_t)v.map,
                                   place, s->next++, sizes, nsizes);
        if (code == TRP_ENOENT)
            trp_error_set(err, code, "the shuffle has no map task %lld",
                          (long long)v.map);
    }
    if (code == TRP_ENOMEM)
        trp_error_set(err, code, "out of memory");
    return code;
}

static int step_drop(struct outputs *s, const struct trp_yaml_node *value,
                     trp_error *err)
{
    struct output v = {0};
    struct trp_output_place place;
    if (!TRP_SIM_FIELDS(s->c, value, "drop", &v, TRP_SIM_MUST(v, shuffle, NODE),
                        TRP_SIM_MUST(v, map, WHOLE), TRP_SIM_MUST(v, executor, NAME)))
        return TRP_EINVAL;
    int shuffle = find_shuffle(s, v.shuffle);
    if (shuffle < 0)
        return shuffle;
    if (v.map >= trp_map_outputs_maps(s->registry, (uint32_t)shuffle))
        return trp_sim_refuse(s->c, value->mark, "the shuffle has no map task %lld",
                              (long long)v.map);
    if (place_of(s, v.executor, NULL, &place) < 0)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    trp_map_outputs_drop(s->registry, (uint32_t)shuffle, (uint32_t)v.map, place);
    return 0;
}

/* All outputs of an executor, of a host. */
static int drop_place(struct outputs *s, const struct trp_yaml_node *value,
                      struct trp_sim_names *names, const char *what,
                      void (*drop_all)(trp_map_outputs *o, uint32_t place),
                      trp_error *err)
{
    const char *name = trp_sim_name(s->c, value, what);
    if (!name)
        return TRP_EINVAL;
    int n = number_of(names, name);
    if (n < 0)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    drop_all(s->registry, (uint32_t)n);
    return 0;
}

/* Nothing when it is not registered. */
static int step_unregister(struct outputs *s, const struct trp_yaml_node *value)
{
    const char *name = trp_sim_name(s->c, value, "unregister");
    if (!name)
        return TRP_EINVAL;
    int n = trp_sim_names_find(&s->shuffles, name);
    if (n >= 0)
        trp_map_outputs_unregister(s->registry, (uint32_t)n);
    return 0;
}

static int step_fetch(struct outputs *s, const struct trp_yaml_node *value)
{
    struct {
        const char *shuffle;
        int64_t reduce;
    } v = {0};
    if (!TRP_SIM_FIELDS(s->c, value, "fetch", &v, TRP_SIM_MUST(v, shuffle, NAME),
                        TRP_SIM_MUST(v, reduce, WHOLE)))
        return TRP_EINVAL;
    int n = trp_sim_names_find(&s->shuffles, v.shuffle);
    bool found = n >= 0 && trp_map_outputs_complete(s->registry, (uint32_t)n);
    trp_sim_tell(s->c, "fetch", json_string(found ? "ok" : "failed"));
    return 0;
}

static int step(void *state, const char *action, const struct trp_yaml_node *value,
                int64_t now_ns, trp_error *err)
{
    struct outputs *s = state;
    int code = 0;
    (void)now_ns;
    if (!strcmp(action, "register"))
        code = do_register(s, value, err);
    else if (!strcmp(action, "output"))
        code = step_add(s, value, err);
    else if (!strcmp(action, "drop"))
        code = step_drop(s, value, err);
    else if (!strcmp(action, "drop_executor"))
        code = drop_place(s, value, &s->executors, "drop_executor",
                          trp_map_outputs_drop_executor, err);
    else if (!strcmp(action, "drop_host"))
        code = drop_place(s, value, &s->hosts, "drop_host", trp_map_outputs_drop_host,
                          err);
    else if (!strcmp(action, "unregister"))
        code = step_unregister(s, value);
    else
        code = step_fetch(s, value);
    if (code == 0 && trp_map_outputs_epoch(s->registry) > s->epoch)
        trp_sim_tell(s->c, "epoch_grew", json_true());
    return code;
}

/* ---- how things stand ---- */

static json_t *missing(struct outputs *s)
{
    json_t *all = json_object();
    for (uint32_t i = 0; i < s->shuffles.n; i++) {
        json_t *list = json_array();
        for (uint32_t m = 0; m < trp_map_outputs_maps(s->registry, i); m++) {
            if (!trp_map_outputs_place(s->registry, i, m, NULL))
                json_array_append_new(list, json_integer(m));
        }
        json_object_set_new(all, s->shuffles.v[i], list);
    }
    return all;
}

struct hosts_for {
    const char *shuffle;
    const struct trp_yaml_node *hosts;
    int64_t reduce;
    trp_amount threshold;
};

static json_t *hosts_for(struct outputs *s, const struct trp_yaml_node *wanted)
{
    struct hosts_for v = {.threshold = TRP_ONE / 5};
    struct trp_output_place places[PLACES_MAX];
    uint32_t n = 0;
    if (!TRP_SIM_FIELDS(s->c, wanted, "hosts_for", &v, TRP_SIM_MUST(v, shuffle, NAME),
                        TRP_SIM_MUST(v, reduce, WHOLE),
                        TRP_SIM_MAY(v, threshold, AMOUNT),
                        TRP_SIM_MUST(v, hosts, NODE)))
        return NULL;
    int shuffle = trp_sim_names_find(&s->shuffles, v.shuffle);
    if (shuffle >= 0 && trp_map_outputs_known(s->registry, (uint32_t)shuffle))
        n = trp_map_outputs_prefer(s->registry, (uint32_t)shuffle, (uint32_t)v.reduce,
                                   trp_amount_to_double(v.threshold), places,
                                   PLACES_MAX);
    json_t *hosts = json_array();
    for (uint32_t i = 0; i < n; i++) { /* in order of host */
        if (i == 0 || places[i].host != places[i - 1].host)
            json_array_append_new(hosts, json_string(s->hosts.v[places[i].host]));
    }
    return json_pack("{s:s, s:I, s:o, s:o}", "shuffle", v.shuffle, "reduce",
                     (json_int_t)v.reduce, "threshold",
                     trp_sim_json_amount(v.threshold), "hosts", hosts);
}

static json_t *state(void *layer, const char *key, const struct trp_yaml_node *wanted)
{
    struct outputs *s = layer;
    if (!strcmp(key, "missing"))
        return missing(s);
    return wanted ? hosts_for(s, wanted) : NULL;
}

const struct trp_sim_layer trp_sim_layer_outputs = {
    .names = "outputs",
    .keys = "executors racks",
    .actions = "register output drop drop_executor drop_host unregister fetch",
    .happened = "epoch_grew fetch",
    .states = "missing hosts_for",
    .ordered = "",
    .whole = "",
    .size = sizeof(struct outputs),
    .open = open_layer,
    .close = close_layer,
    .begin = begin,
    .step = step,
    .state = state,
};
