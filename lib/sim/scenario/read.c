/*
 * Readers of values in scenario files. What has the wrong form is told at its place and
 * makes the file invalid; a number out of bounds or a name that nothing has is refused,
 * which a case may expect.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/scalars.h"
#include "conf/wording.h"
#include "core/profile/ledger.h"
#include "sim/scenario/case.h"

#define SIZE_MOST INT64_C(1000000000000000) /* bytes */

/* ---- errors ---- */

int trp_sim_wrong(trp_sim_case *c, struct trp_mark at, const char *fmt, ...)
{
    char text[TRP_ERROR_TEXT];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    trp_yaml_wrong(c->yaml, at, "%s", text);
    return TRP_EINVAL;
}

int trp_sim_refuse(trp_sim_case *c, struct trp_mark at, const char *fmt, ...)
{
    char text[TRP_ERROR_TEXT];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (!c->may_refuse)
        trp_yaml_wrong(c->yaml, at, "%s", text);
    else if (!c->is_refused)
        trp_error_at(&c->refusal, TRP_EINVAL, c->file, at, "%s", text);
    c->is_refused = c->may_refuse;
    return TRP_EINVAL;
}

bool trp_sim_is_word(const char *words, const char *word, size_t size)
{
    while (size > 0 && *words) {
        size_t n = strcspn(words, " ");
        if (n == size && !memcmp(words, word, n))
            return true;
        words += n + (words[n] == ' ');
    }
    return false;
}

static void list_words(const char *words, struct trp_nearest *near,
                       struct trp_name_list *all, char (*room)[TRP_SIM_NAME_MAX],
                       size_t *used, size_t cap)
{
    while (words && *words && *used < cap) {
        size_t n = strcspn(words, " ");
        snprintf(room[*used], sizeof(room[0]), "%.*s", (int)n, words);
        trp_nearest_try(near, room[*used]);
        trp_name_list_add(all, room[(*used)++]);
        words += n + (words[n] == ' ');
    }
}

void trp_sim_unknown_key(trp_sim_case *c, const struct trp_yaml_node *key,
                         const char *what, const char *words, const char *more_words)
{
    char room[64][TRP_SIM_NAME_MAX] = {{0}};
    size_t used = 0;
    struct trp_nearest near = trp_nearest_of(key->text);
    struct trp_name_list all = {0};
    list_words(words, &near, &all, room, &used, 64);
    list_words(more_words, &near, &all, room, &used, 64);
    if (near.best)
        trp_sim_wrong(c, key->mark, "unknown key \"%s\" in %s%s",
                      trp_show(key->text).text, what, trp_did_you_mean(&near).text);
    else
        trp_sim_wrong(c, key->mark, "unknown key \"%s\" in %s; the keys are %s",
                      trp_show(key->text).text, what, all.text);
}

/* ---- single values ---- */

/* A scalar without NUL bytes, which could hide what follows them. */
static bool is_text(trp_sim_case *c, const struct trp_yaml_node *node, const char *what)
{
    if (!trp_yaml_is_scalar(c->yaml, node, what))
        return false;
    if (strlen(node->text) == node->size)
        return true;
    trp_sim_wrong(c, node->mark, "%s holds a NUL character; remove it", what);
    return false;
}

const char *trp_sim_name(trp_sim_case *c, const struct trp_yaml_node *node,
                         const char *what)
{
    if (!is_text(c, node, what))
        return NULL;
    if (node->size == 0 || node->size > TRP_SIM_NAME_MAX) {
        trp_sim_wrong(c, node->mark, "%s is %s; write a name of 1 to %d bytes", what,
                      node->size ? "too long" : "empty", TRP_SIM_NAME_MAX);
        return NULL;
    }
    return node->text;
}

bool trp_sim_whole(trp_sim_case *c, const struct trp_yaml_node *node, const char *what,
                   int64_t min, int64_t max, int64_t *ret)
{
    int64_t v;
    if (!is_text(c, node, what))
        return false;
    if (!trp_whole_parse(node->text, &v)) {
        trp_sim_refuse(c, node->mark, "%s is \"%s\"; write a whole number", what,
                       trp_show(node->text).text);
        return false;
    }
    if (v < min || v > max) {
        trp_sim_refuse(c, node->mark,
                       "%s is %s; write a whole number from %lld to %lld", what,
                       trp_show(node->text).text, (long long)min, (long long)max);
        return false;
    }
    *ret = v;
    return true;
}

bool trp_sim_amount(trp_sim_case *c, const struct trp_yaml_node *node, const char *what,
                    trp_amount *ret)
{
    trp_error why;
    if (!is_text(c, node, what))
        return false;
    if (trp_amount_parse(node->text, ret, &why) == 0)
        return true;
    trp_sim_refuse(c, node->mark, "%s: %s", what, why.text);
    return false;
}

bool trp_sim_time(trp_sim_case *c, const struct trp_yaml_node *node, const char *what,
                  int64_t *ret_ns)
{
    int64_t ms;
    if (!trp_sim_whole(c, node, what, 0, TRP_SIM_TIME_MAX / 1000000, &ms))
        return false;
    *ret_ns = ms * 1000000;
    return true;
}

static bool read_choice(trp_sim_case *c, const struct trp_yaml_node *node,
                        const char *what, const char *choices, int *ret)
{
    if (!is_text(c, node, what))
        return false;
    int index = 0;
    for (const char *p = choices; *p; index++) {
        size_t n = strcspn(p, "|");
        if (n == node->size && !memcmp(p, node->text, n)) {
            *ret = index;
            return true;
        }
        p += n + (p[n] == '|');
    }
    trp_sim_wrong(c, node->mark, "%s is \"%s\"; write one of %s", what,
                  trp_show(node->text).text, choices);
    return false;
}

/* ---- lists and mappings ---- */

static bool is_bounded(trp_sim_case *c, const struct trp_yaml_node *node,
                       const char *what, uint32_t max)
{
    if (node->count <= max)
        return true;
    trp_sim_refuse(c, node->mark, "%s has %u entries; write at most %u", what,
                   node->count, max);
    return false;
}

bool trp_sim_list(trp_sim_case *c, const struct trp_yaml_node *node, const char *what,
                  uint32_t max, const struct trp_yaml_node **ret_first,
                  uint32_t *ret_count)
{
    *ret_first = NULL;
    *ret_count = 0;
    if (!trp_yaml_is_list(c->yaml, node, what) || !is_bounded(c, node, what, max))
        return false;
    *ret_first = node->first;
    *ret_count = node->count;
    return true;
}

bool trp_sim_map(trp_sim_case *c, const struct trp_yaml_node *node, const char *what,
                 uint32_t max, const struct trp_yaml_node **ret_first,
                 uint32_t *ret_count)
{
    *ret_first = NULL;
    *ret_count = 0;
    if (!trp_yaml_is_mapping(c->yaml, node, what) || !is_bounded(c, node, what, max))
        return false;
    for (const struct trp_yaml_node *key = node->first; key; key = key->next->next) {
        if (!trp_sim_name(c, key, "a key"))
            return false;
    }
    *ret_first = node->first;
    *ret_count = node->count;
    return true;
}

bool trp_sim_field_read(trp_sim_case *c, const struct trp_yaml_node *node,
                        const struct trp_sim_field *f, void *ret)
{
    void *at = (char *)ret + f->at;
    switch (f->kind) {
    case TRP_SIM_NAME:
        return (*(const char **)at = trp_sim_name(c, node, f->name)) != NULL;
    case TRP_SIM_TEXT:
        if (!is_text(c, node, f->name))
            return false;
        *(const char **)at = node->text;
        return true;
    case TRP_SIM_WHOLE:
        return trp_sim_whole(c, node, f->name, 0, 1000000000, at);
    case TRP_SIM_TIME:
        return trp_sim_time(c, node, f->name, at);
    case TRP_SIM_BOOL:
        return trp_yaml_bool(c->yaml, node, f->name, at);
    case TRP_SIM_AMOUNT:
        return trp_sim_amount(c, node, f->name, at);
    case TRP_SIM_CHOICE:
        return read_choice(c, node, f->name, f->choices, at);
    case TRP_SIM_NODE:
        *(const struct trp_yaml_node **)at = node;
        return true;
    }
    return false;
}

static void unknown_field(trp_sim_case *c, const struct trp_yaml_node *key,
                          const char *what, const struct trp_sim_field *fields,
                          size_t n)
{
    char words[1024] = "";
    size_t used = 0;
    for (size_t i = 0; i < n && used < sizeof(words); i++)
        used += (size_t)snprintf(words + used, sizeof(words) - used, "%s%s",
                                 i ? " " : "", fields[i].name);
    trp_sim_unknown_key(c, key, what, words, NULL);
}

bool trp_sim_fields(trp_sim_case *c, const struct trp_yaml_node *node, const char *what,
                    const struct trp_sim_field *fields, size_t n, void *ret)
{
    uint64_t seen = 0;
    bool sound = trp_yaml_is_mapping(c->yaml, node, what);
    if (!sound)
        return false;
    for (const struct trp_yaml_node *key = node->first; key; key = key->next->next) {
        size_t i = 0;
        while (i < n &&
               (key->kind != TRP_YAML_SCALAR || strlen(fields[i].name) != key->size ||
                memcmp(fields[i].name, key->text, key->size) != 0))
            i++;
        if (i == n) {
            unknown_field(c, key, what, fields, n);
            return false;
        }
        sound = trp_sim_field_read(c, key->next, &fields[i], ret) && sound;
        seen |= UINT64_C(1) << i;
    }
    for (size_t i = 0; sound && i < n; i++) {
        if (!fields[i].required || (seen & UINT64_C(1) << i))
            continue;
        trp_sim_wrong(c, node->mark, "%s has no \"%s\"; add the key", what,
                      fields[i].name);
        return false;
    }
    return sound;
}

/* ---- profiles and executors ---- */

bool trp_sim_read_profile(trp_sim_case *c, const struct trp_yaml_node *node,
                          trp_profile_id *ret)
{
    *ret = (trp_profile_id){0};
    if (!node)
        return true;
    const char *name = trp_sim_name(c, node, "profile");
    if (!name)
        return false;
    const struct trp_resource_profile *p = trp_profiles_by_name(c->profiles, name);
    if (!p) {
        trp_sim_refuse(c, node->mark, "no profile \"%s\"", trp_show(name).text);
        return false;
    }
    *ret = p->id;
    return true;
}

static int executor_request(trp_sim_case *c, const char *name,
                            const struct trp_yaml_node *value,
                            struct trp_profile_builder *b, trp_error *err)
{
    static const char memory[] = "memory memoryOverhead pyspark.memory offHeap";
    int64_t amount;
    int code = 0;
    if (!is_text(c, value, name))
        return TRP_EINVAL;
    if (trp_sim_is_word(memory, name, strlen(name)))
        code = trp_memory_parse(value->text, &amount, err);
    else if (!trp_whole_parse(value->text, &amount))
        code = trp_error_set(err, TRP_EINVAL,
                             "executor resource %s is \"%s\"; write a whole number",
                             name, trp_show(value->text).text);
    return code < 0 ? code : trp_profile_builder_executor(b, name, amount, err);
}

static int task_request(trp_sim_case *c, const char *name,
                        const struct trp_yaml_node *value,
                        struct trp_profile_builder *b, trp_error *err)
{
    trp_amount amount;
    if (!is_text(c, value, name))
        return TRP_EINVAL;
    int code = trp_amount_parse(value->text, &amount, err);
    return code < 0 ? code : trp_profile_builder_task(b, name, amount, err);
}

static bool read_side(trp_sim_case *c, const struct trp_yaml_node *node,
                      const char *side, struct trp_profile_builder *b,
                      int (*request)(trp_sim_case *, const char *,
                                     const struct trp_yaml_node *,
                                     struct trp_profile_builder *, trp_error *))
{
    const struct trp_yaml_node *key;
    uint32_t count;
    if (!trp_sim_map(c, node, side, TRP_SIM_EXPECTED, &key, &count))
        return false;
    for (; key; key = key->next->next) {
        trp_error why = {.text = "it cannot be"};
        if (request(c, key->text, key->next, b, &why) < 0) {
            trp_sim_refuse(c, key->next->mark, "%s: %s", key->text, why.text);
            return false;
        }
    }
    return true;
}

bool trp_sim_read_requests(trp_sim_case *c, const struct trp_yaml_node *executor,
                           const struct trp_yaml_node *task,
                           struct trp_profile_builder *b)
{
    if (executor && !read_side(c, executor, "executor", b, executor_request))
        return false;
    return !task || read_side(c, task, "task", b, task_request);
}

/* Addresses of one custom resource: `gpu: ["0", "1"]`. */
static bool read_addresses(trp_sim_case *c, const struct trp_yaml_node *key,
                           struct trp_resource_addresses *ret)
{
    const struct trp_yaml_node *item;
    uint32_t n = 0;
    if (!trp_sim_list(c, key->next, key->text, TRP_LEDGER_ADDRESSES_MAX, &item,
                      &ret->naddresses))
        return false;
    const char **v = trp_yaml_alloc(c->yaml, ret->naddresses, sizeof(*v));
    if (!v)
        return false;
    for (; item; item = item->next) {
        if (!(v[n++] = trp_sim_name(c, item, "an address")))
            return false;
    }
    ret->name = key->text;
    ret->addresses = v;
    return true;
}

bool trp_sim_read_resources(trp_sim_case *c, const struct trp_yaml_node *node,
                            struct trp_resource_addresses **ret, uint32_t *ret_count)
{
    const struct trp_yaml_node *key;
    trp_ledger *ledger = NULL;
    trp_error why;
    uint32_t n = 0;
    if (!trp_sim_map(c, node, "resources", TRP_PROFILE_RESOURCES, &key, ret_count))
        return false;
    struct trp_resource_addresses *v = trp_yaml_alloc(c->yaml, *ret_count, sizeof(*v));
    if (!v)
        return false;
    for (; key; key = key->next->next) {
        if (!trp_is_resource_name(key->text)) {
            trp_sim_refuse(c, key->mark, "\"%s\" is not a resource's name",
                           trp_show(key->text).text);
            return false;
        }
        if (!read_addresses(c, key, &v[n++]))
            return false;
    }
    if (trp_ledger_new(v, n, &ledger, &why) < 0) {
        trp_sim_refuse(c, node->mark, "%s", why.text);
        return false;
    }
    trp_ledger_free(ledger);
    *ret = v;
    return true;
}

bool trp_sim_read_executor(trp_sim_case *c, const struct trp_yaml_node *node,
                           struct trp_sim_executor *ret)
{
    struct {
        const char *id, *host;
        const struct trp_yaml_node *profile, *resources;
        int64_t cores;
    } v = {.cores = -1};
    *ret = (struct trp_sim_executor){.mark = node->mark};
    trp_sim_more(c);
    if (!TRP_SIM_FIELDS(c, node, "an executor", &v, TRP_SIM_MUST(v, id, NAME),
                        TRP_SIM_MUST(v, host, NAME), TRP_SIM_MAY(v, cores, WHOLE),
                        TRP_SIM_MAY(v, profile, NODE),
                        TRP_SIM_MAY(v, resources, NODE)) ||
        !trp_sim_read_profile(c, v.profile, &ret->profile))
        return false;
    ret->id = v.id;
    ret->host = v.host;
    ret->cores =
        v.cores >= 0 ? v.cores : trp_profiles_get(c->profiles, ret->profile)->cores;
    return !v.resources ||
           trp_sim_read_resources(c, v.resources, &ret->resources, &ret->nresources);
}

int trp_sim_sizes(trp_sim_case *c, const struct trp_yaml_node *node, uint64_t **ret,
                  uint32_t *ret_count)
{
    const struct trp_yaml_node *item;
    if (!trp_sim_list(c, node, "sizes", TRP_SIM_TASKS, &item, ret_count))
        return TRP_EINVAL;
    *ret = trp_conf_arena_alloc(trp_sim_keep(c), *ret_count, sizeof(**ret));
    if (!*ret)
        return TRP_ENOMEM;
    for (uint32_t i = 0; item; item = item->next) {
        int64_t size;
        if (!trp_sim_whole(c, item, "a size", 0, SIZE_MOST, &size))
            return TRP_EINVAL;
        (*ret)[i++] = (uint64_t)size;
    }
    return 0;
}

json_t *trp_sim_json_grants(const trp_ledger *b, const struct trp_grant *v, uint32_t n)
{
    json_t *all = json_object();
    for (uint32_t i = 0; i < n; i++) {
        const char *name = trp_ledger_resource_name(b, v[i].resource);
        json_t *list = json_object_get(all, name);
        if (!list)
            json_object_set_new(all, name, list = json_array());
        json_array_append_new(
            list, json_string(trp_ledger_address(b, v[i].resource, v[i].address)));
    }
    return all;
}
