/*
 * The list of steps: which action each has, when, and what is expected of it. Values of
 * actions are the layer's; everything else of the file is known to be sound before the
 * first step is performed.
 */
#include <string.h>

#include "conf/wording.h"
#include "sim/scenario/case.h"

#define STEP_KEYS "at expect error"
#define EXPECT_KEYS "in_order message"

/* `launch_count` for the word `launch`. */
static bool is_count(const struct trp_sim_layer *layer, const struct trp_yaml_node *key)
{
    static const char end[] = "_count";
    size_t n = sizeof(end) - 1;
    return key->size > n && !memcmp(key->text + key->size - n, end, n) &&
           trp_sim_is_word(layer->happened, key->text, key->size - n);
}

/* Lists that are compared as sets cost their length squared. */
static bool is_short(trp_sim_case *c, const struct trp_yaml_node *node)
{
    if (node->kind == TRP_YAML_LIST && node->count > TRP_SIM_EXPECTED) {
        trp_sim_wrong(c, node->mark,
                      "%u entries; write at most %d, or how many there are "
                      "(launch_count: n)",
                      node->count, TRP_SIM_EXPECTED);
        return false;
    }
    if (node->kind == TRP_YAML_LIST)
        trp_sim_work(c, (uint64_t)node->count * node->count);
    for (const struct trp_yaml_node *n = node->first; n; n = n->next) {
        if (!is_short(c, n))
            return false;
    }
    return true;
}

static void check_expect(trp_sim_case *c, const struct trp_yaml_node *node)
{
    const struct trp_sim_layer *layer = c->layer;
    char words[1024];
    if (!trp_yaml_is_mapping(c->yaml, node, "expect") || !is_short(c, node))
        return;
    for (const struct trp_yaml_node *k = node->first; k; k = k->next->next) {
        bool in_order;
        if (k->kind != TRP_YAML_SCALAR)
            return;
        if (trp_sim_is_word("in_order", k->text, k->size))
            trp_yaml_bool(c->yaml, k->next, "in_order", &in_order);
        else if (trp_sim_is_word("message", k->text, k->size))
            trp_yaml_text(c->yaml, k->next, "message");
        else if (!trp_sim_is_word(layer->happened, k->text, k->size) &&
                 !trp_sim_is_word(layer->states, k->text, k->size) &&
                 !is_count(layer, k)) {
            snprintf(words, sizeof(words), "%s %s", layer->happened, layer->states);
            trp_sim_unknown_key(c, k, "expect", EXPECT_KEYS, words);
        }
    }
}

static void read_action(trp_sim_case *c, const struct trp_yaml_node *key,
                        struct trp_sim_step *s)
{
    if (!trp_sim_is_word(c->layer->actions, key->text, key->size))
        trp_sim_unknown_key(c, key, "a step of this layer", STEP_KEYS,
                            c->layer->actions);
    else if (s->action)
        trp_sim_wrong(c, key->mark, "\"%s\" in a step that has \"%s\"; write two steps",
                      trp_show(key->text).text, s->action);
    s->action = key->text;
    s->value = key->next;
}

/* Reads one step; `at` is that of the step before. */
static void read_step(trp_sim_case *c, const struct trp_yaml_node *node, int64_t at,
                      struct trp_sim_step *s)
{
    *s = (struct trp_sim_step){.mark = node->mark, .at = at};
    if (!trp_yaml_is_mapping(c->yaml, node, "a step"))
        return;
    for (const struct trp_yaml_node *k = node->first; k; k = k->next->next) {
        if (k->kind != TRP_YAML_SCALAR)
            continue;
        if (trp_sim_is_word("at", k->text, k->size)) {
            if (trp_sim_time(c, k->next, "at", &s->at) && s->at < at)
                trp_sim_wrong(c, k->next->mark,
                              "at is %s, before the step before (%lld); time never "
                              "decreases",
                              k->next->text, (long long)(at / 1000000));
        } else if (trp_sim_is_word("expect", k->text, k->size)) {
            check_expect(c, k->next);
            s->expect = k->next;
        } else if (trp_sim_is_word("error", k->text, k->size)) {
            s->error = trp_yaml_word(c->yaml, k->next, "error");
        } else {
            read_action(c, k, s);
        }
    }
    if (!s->action)
        trp_sim_wrong(c, node->mark, "a step has no action; write one of %s",
                      c->layer->actions);
}

void trp_sim_read_steps(trp_sim_case *c, const struct trp_yaml_node *node)
{
    const struct trp_yaml_node *item;
    uint32_t count;
    int64_t at = 0;
    if (!trp_sim_list(c, node, "steps", UINT32_MAX, &item, &count))
        return;
    c->steps = trp_yaml_alloc(c->yaml, count, sizeof(*c->steps));
    if (!c->steps)
        return;
    for (; item; item = item->next) {
        struct trp_sim_step *s = &c->steps[c->nsteps++];
        read_step(c, item, at, s);
        at = s->at;
    }
}
