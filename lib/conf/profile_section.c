/*
 * Each request goes to a profile builder (core/profile), which knows what may be asked
 * for; here it gets its place in the file. A resource's name is wrong at the key,
 * anything else at the value.
 *
 * Whether a profile is possible is not asked here but by trp_pipeline_profiles: it
 * hangs on options, and `troupe plan` shows the whole plan of a file with impossible
 * ones.
 */
#include "conf/profile_section.h"

#include <string.h>

#include "conf/wording.h"
#include "core/base/amount.h"
#include "core/profile/resource_names.h"

/* A key of one side: the side's own reader handles any name. */
static bool resource_key(trp_yaml *y, const struct trp_yaml_node *key, bool executor)
{
    if (key->kind != TRP_YAML_SCALAR)
        return false;
    if (strlen(key->text) != key->size || !trp_is_resource_name(key->text))
        return trp_yaml_wrong(
            y, key->mark,
            "\"%s\" is not a resource's name; write letters, digits, '_', "
            "'.' and '-', a letter or '_' first, at most %d",
            trp_show(key->text).text, TRP_RESOURCE_NAME_MAX - 1);
    trp_error why;
    return trp_resource_name_check(key->text, executor, &why) == 0 ||
           trp_yaml_wrong(y, key->mark, "%s", why.text);
}

static void refuse(trp_yaml *y, const struct trp_yaml_node *key, int code,
                   const char *why)
{
    trp_yaml_wrong(y, code == TRP_ELIMIT ? key->mark : key->next->mark, "%s", why);
}

static void read_executor(trp_yaml *y, const struct trp_yaml_node *side,
                          const struct trp_yaml_node *value, void *context)
{
    struct trp_profile_builder *b = context;
    (void)side;
    if (!trp_yaml_is_mapping(y, value, "executor"))
        return;
    for (const struct trp_yaml_node *key = value->first; key; key = key->next->next) {
        int64_t amount = 0;
        trp_error why;
        if (!resource_key(y, key, true))
            continue;
        bool sound = trp_resource_is_memory(key->text)
                         ? trp_yaml_memory(y, key->next, key->text, &amount)
                         : trp_yaml_whole(y, key->next, key->text, 0,
                                          TRP_EXECUTOR_AMOUNT_MAX, &amount);
        int code = sound ? trp_profile_builder_executor(b, key->text, amount, &why) : 0;
        if (code < 0)
            refuse(y, key, code, why.text);
    }
}

static void read_task(trp_yaml *y, const struct trp_yaml_node *side,
                      const struct trp_yaml_node *value, void *context)
{
    struct trp_profile_builder *b = context;
    (void)side;
    if (!trp_yaml_is_mapping(y, value, "task"))
        return;
    for (const struct trp_yaml_node *key = value->first; key; key = key->next->next) {
        trp_amount amount = 0;
        trp_error why;
        if (!resource_key(y, key, false))
            continue;
        const char *text = trp_yaml_word(y, key->next, key->text);
        int code = text ? trp_amount_parse(text, &amount, &why) : 0;
        if (text && code == 0)
            code = trp_profile_builder_task(b, key->text, amount, &why);
        if (code < 0)
            refuse(y, key, code, why.text);
    }
}

void trp_profile_section_read(trp_yaml *y, const char *name, struct trp_mark mark,
                              const struct trp_yaml_node *node,
                              struct trp_profile_section *ret)
{
    trp_profile_builder_init(&ret->builder, name);
    ret->mark = mark;
    TRP_YAML_MAPPING(y, node, "a profile", &ret->builder,
                     TRP_YAML_READ("executor", read_executor),
                     TRP_YAML_READ("task", read_task));
}

struct trp_profile_section *trp_profile_sections_read(trp_yaml *y,
                                                      const struct trp_yaml_node *node,
                                                      uint32_t *ret_count)
{
    if (!trp_yaml_is_mapping(y, node, "profiles") || node->count == 0)
        return NULL;
    if (!trp_yaml_is_bounded(y, node, "profiles", TRP_PIPELINE_PROFILES))
        return NULL;
    struct trp_profile_section *v = trp_yaml_alloc(y, node->count, sizeof(*v));
    if (!v)
        return NULL;
    uint32_t n = 0;
    for (const struct trp_yaml_node *key = node->first; key; key = key->next->next) {
        if (key->kind != TRP_YAML_SCALAR)
            continue;
        if (strlen(key->text) != key->size || !trp_is_name(key->text))
            trp_yaml_wrong(y, key->mark,
                           "\"%s\" is not a profile's name; write at most 64 letters, "
                           "digits, '_', '.' and '-', no '.' or '-' first",
                           trp_show(key->text).text);
        else if (!strcmp(key->text, "default"))
            trp_yaml_wrong(y, key->mark,
                           "\"default\" is the default profile's name; write it as "
                           "\"default:\" beside \"profiles:\"");
        trp_profile_section_read(y, key->text, key->mark, key->next, &v[n++]);
    }
    *ret_count = n;
    return v;
}

const struct trp_profile_section *
trp_profile_section_find(const struct trp_profile_section *v, uint32_t n,
                         const char *name)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!strcmp(v[i].builder.name, name))
            return &v[i];
    }
    return NULL;
}
