/*
 * Readers of single values. Each checks the kind of its node, tells what is wrong at
 * the node's place, and says what may stand there.
 */
#include <stdio.h>
#include <string.h>

#include "conf/options.h"
#include "conf/scalars.h"
#include "conf/wording.h"
#include "conf/yaml.h"
#include "core/profile/profile.h"

static const char *kind_of(const struct trp_yaml_node *node)
{
    switch (node->kind) {
    case TRP_YAML_LIST:
        return "a list";
    case TRP_YAML_MAPPING:
        return "a mapping";
    default:
        return node->plain && node->size == 0 ? "empty" : "a scalar";
    }
}

static bool is_kind(trp_yaml *y, const struct trp_yaml_node *node,
                    enum trp_yaml_kind kind, const char *what, const char *wanted)
{
    if (node->kind == kind)
        return true;
    if (node->kind != TRP_YAML_REFUSED)
        trp_yaml_wrong(y, node->mark, "%s is %s; write %s", what, kind_of(node),
                       wanted);
    return false;
}

bool trp_yaml_is_key(const struct trp_yaml_node *key, const char *name)
{
    return key->kind == TRP_YAML_SCALAR && !strcmp(key->text, name);
}

bool trp_yaml_is_mapping(trp_yaml *y, const struct trp_yaml_node *node,
                         const char *what)
{
    return is_kind(y, node, TRP_YAML_MAPPING, what, "a mapping, {key: value}");
}

bool trp_yaml_is_list(trp_yaml *y, const struct trp_yaml_node *node, const char *what)
{
    return is_kind(y, node, TRP_YAML_LIST, what, "a list, [a, b]");
}

bool trp_yaml_is_scalar(trp_yaml *y, const struct trp_yaml_node *node, const char *what)
{
    return is_kind(y, node, TRP_YAML_SCALAR, what, "one value");
}

static const struct trp_yaml_key *find_key(const struct trp_yaml_key *keys,
                                           size_t nkeys, const char *name)
{
    for (size_t i = 0; i < nkeys; i++) {
        if (!strcmp(keys[i].name, name))
            return &keys[i];
    }
    return NULL;
}

/* Of the kind of file; each has the version 1 so far. */
static bool is_version(const char *name)
{
    return !strcmp(name, "troupe") || !strcmp(name, "site");
}

static void unknown_key(trp_yaml *y, const struct trp_yaml_node *key, const char *what,
                        const struct trp_yaml_key *keys, size_t nkeys)
{
    struct trp_nearest near = trp_nearest_of(key->text);
    struct trp_name_list all = {0};
    if (!trp_yaml_would_tell(y, key->mark))
        return;
    for (size_t i = 0; i < nkeys; i++) {
        trp_nearest_try(&near, keys[i].name);
        trp_name_list_add(&all, keys[i].name);
    }
    if (near.best)
        trp_yaml_wrong(y, key->mark, "unknown key \"%s\" in %s%s",
                       trp_show(key->text).text, what, trp_did_you_mean(&near).text);
    else
        trp_yaml_wrong(y, key->mark, "unknown key \"%s\" in %s; the keys are %s",
                       trp_show(key->text).text, what, all.text);
}

static void read_key(trp_yaml *y, const struct trp_yaml_key *known,
                     const struct trp_yaml_node *key, char *context)
{
    if (known->key_mark)
        *(struct trp_mark *)(void *)(context + known->key_mark) = key->mark;
    if (known->value_mark)
        *(struct trp_mark *)(void *)(context + known->value_mark) = key->next->mark;
    if (known->into)
        known->into(y, known, key->next, context + known->at);
    else
        known->read(y, key, key->next, context);
}

bool trp_yaml_mapping(trp_yaml *y, const struct trp_yaml_node *node, const char *what,
                      const struct trp_yaml_key *keys, size_t nkeys, void *context)
{
    uint64_t seen = 0;
    bool sound = true;
    if (!trp_yaml_is_mapping(y, node, what))
        return false;
    for (const struct trp_yaml_node *key = node->first; key; key = key->next->next) {
        const struct trp_yaml_key *known = NULL;
        if (key->kind == TRP_YAML_SCALAR && strlen(key->text) == key->size)
            known = find_key(keys, nkeys, key->text);
        if (!known) {
            sound = false;
            if (key->kind == TRP_YAML_SCALAR)
                unknown_key(y, key, what, keys, nkeys);
            continue;
        }
        uint64_t bit = UINT64_C(1) << (known - keys);
        if (!(seen & bit)) /* a key twice is told by the tree */
            read_key(y, known, key, context);
        seen |= bit;
    }
    for (size_t i = 0; sound && i < nkeys; i++) {
        if (keys[i].required && !(seen & UINT64_C(1) << i))
            trp_yaml_wrong(y, node->mark, "%s has no \"%s\"; add the key%s", what,
                           keys[i].name,
                           is_version(keys[i].name) ? ", with the value 1" : "");
    }
    return sound;
}

/* Scalars that reach a task or a system call: none can hold a NUL byte. */
static bool without_nul(trp_yaml *y, const struct trp_yaml_node *node, const char *what)
{
    if (!memchr(node->text, '\0', node->size))
        return true;
    trp_yaml_wrong(y, node->mark, "%s holds a NUL character; remove it", what);
    return false;
}

bool trp_yaml_is_bounded(trp_yaml *y, const struct trp_yaml_node *node,
                         const char *what, uint32_t most)
{
    if (node->count > most)
        trp_yaml_wrong(y, node->mark, "%u %s; write at most %u", node->count, what,
                       most);
    return node->count <= most;
}

void trp_yaml_version(trp_yaml *y, const struct trp_yaml_node *node, const char *kind,
                      const char *key)
{
    bool one = node->kind == TRP_YAML_SCALAR && node->plain && node->size == 1 &&
               node->text[0] == '1';
    if (trp_yaml_is_scalar(y, node, key) && !one)
        trp_yaml_wrong(y, node->mark,
                       "\"%s\" is not a version of %s files; write %s: 1",
                       trp_show(node->text).text, kind, key);
}

char *trp_yaml_text(trp_yaml *y, const struct trp_yaml_node *node, const char *what)
{
    if (!trp_yaml_is_scalar(y, node, what) || !without_nul(y, node, what))
        return NULL;
    char *text = trp_conf_arena_text(trp_yaml_keep(y), node->text, node->size);
    if (!text)
        trp_yaml_no_memory(y);
    return text;
}

char *trp_yaml_word(trp_yaml *y, const struct trp_yaml_node *node, const char *what)
{
    if (node->kind != TRP_YAML_SCALAR || node->size > 0)
        return trp_yaml_text(y, node, what);
    trp_yaml_wrong(y, node->mark, "%s is empty; write a value, or leave the key out",
                   what);
    return NULL;
}

char **trp_yaml_texts(trp_yaml *y, const struct trp_yaml_node *node, const char *what,
                      uint32_t *ret_count)
{
    char item_of[64];
    if (!trp_yaml_is_list(y, node, what) || node->count == 0)
        return NULL;
    char **texts = trp_yaml_alloc(y, node->count, sizeof(*texts));
    if (!texts)
        return NULL;
    snprintf(item_of, sizeof(item_of), "an item of %s", what);
    uint32_t n = 0;
    for (const struct trp_yaml_node *item = node->first; item; item = item->next) {
        texts[n] = trp_yaml_text(y, item, item_of);
        if (texts[n])
            n++;
    }
    *ret_count = n;
    return texts;
}

struct trp_pair *trp_yaml_pairs(trp_yaml *y, const struct trp_yaml_node *node,
                                const char *what, uint32_t *ret_count)
{
    char value_of[64];
    if (!trp_yaml_is_mapping(y, node, what) || node->count == 0)
        return NULL;
    struct trp_pair *pairs = trp_yaml_alloc(y, node->count, sizeof(*pairs));
    if (!pairs)
        return NULL;
    snprintf(value_of, sizeof(value_of), "a value of %s", what);
    uint32_t n = 0;
    for (const struct trp_yaml_node *key = node->first; key; key = key->next->next) {
        if (key->kind != TRP_YAML_SCALAR)
            continue; /* told by the tree */
        struct trp_pair *p = &pairs[n];
        p->key = trp_yaml_text(y, key, "a key");
        p->value = trp_yaml_text(y, key->next, value_of);
        p->mark = key->next->mark;
        n += p->key && p->value;
    }
    *ret_count = n;
    return pairs;
}

bool trp_yaml_whole(trp_yaml *y, const struct trp_yaml_node *node, const char *what,
                    int64_t min, int64_t max, int64_t *ret)
{
    char wanted[80];
    int64_t v;
    snprintf(wanted, sizeof(wanted), "a whole number from %lld to %lld", (long long)min,
             (long long)max);
    if (!is_kind(y, node, TRP_YAML_SCALAR, what, wanted))
        return false;
    if (!node->plain || strlen(node->text) != node->size ||
        !trp_whole_parse(node->text, &v)) {
        const char *quote = node->plain ? "" : "\"";
        trp_yaml_wrong(y, node->mark, "%s is %s%s%s; write %s", what, quote,
                       *node->text || !node->plain ? trp_show(node->text).text
                                                   : "empty",
                       quote, wanted);
        return false;
    }
    if (v < min || v > max)
        return trp_yaml_wrong(y, node->mark, "%s is %s; write %s", what,
                              trp_show(node->text).text, wanted);
    *ret = v;
    return true;
}

bool trp_yaml_count(trp_yaml *y, const struct trp_yaml_node *node, const char *what,
                    uint32_t min, uint32_t max, uint32_t *ret)
{
    int64_t n = 0;
    if (!trp_yaml_whole(y, node, what, min, max, &n))
        return false;
    *ret = (uint32_t)n;
    return true;
}

bool trp_yaml_number(trp_yaml *y, const struct trp_yaml_node *node, const char *what,
                     double min, double max, double *ret)
{
    double v;
    if (!trp_yaml_is_scalar(y, node, what))
        return false;
    if (!node->plain || strlen(node->text) != node->size ||
        !trp_number_parse(node->text, &v) || v < min || v > max)
        return trp_yaml_wrong(y, node->mark,
                              "%s is \"%s\"; write a number from %g to %g", what,
                              trp_show(node->text).text, min, max);
    *ret = v;
    return true;
}

bool trp_yaml_bool(trp_yaml *y, const struct trp_yaml_node *node, const char *what,
                   bool *ret)
{
    if (!is_kind(y, node, TRP_YAML_SCALAR, what, "true or false"))
        return false;
    if (!node->plain || strlen(node->text) != node->size ||
        !trp_bool_parse(node->text, ret))
        return trp_yaml_wrong(y, node->mark, "%s is \"%s\"; write true or false", what,
                              trp_show(node->text).text);
    return true;
}

/* More than 0; a bare number counts in seconds. */
static bool read_time(trp_yaml *y, const struct trp_yaml_node *node, const char *what,
                      int64_t *ret_ns)
{
    trp_error why;
    int64_t ns = 0;
    if (!trp_yaml_is_scalar(y, node, what) || !without_nul(y, node, what))
        return false;
    if (trp_time_parse(node->text, INT64_C(1000000000), &ns, &why) < 0)
        return trp_yaml_wrong(y, node->mark, "%s: %s", what, why.text);
    if (ns == 0)
        return trp_yaml_wrong(y, node->mark,
                              "%s is 0; write more than 0, or leave the key out", what);
    *ret_ns = ns;
    return true;
}

bool trp_yaml_memory(trp_yaml *y, const struct trp_yaml_node *node, const char *what,
                     int64_t *ret_mib)
{
    trp_error why;
    if (!trp_yaml_is_scalar(y, node, what) || !without_nul(y, node, what))
        return false;
    if (trp_memory_parse(node->text, ret_mib, &why) < 0)
        return trp_yaml_wrong(y, node->mark, "%s: %s", what, why.text);
    return true;
}

/* ---- into a member ---- */

#define INTO(kind)                                                                     \
    void trp_yaml_into_##kind(trp_yaml *y, const struct trp_yaml_key *key,             \
                              const struct trp_yaml_node *value, void *member)

INTO(word)
{
    *(char **)member = trp_yaml_word(y, value, key->name);
}

INTO(text)
{
    *(char **)member = trp_yaml_text(y, value, key->name);
}

INTO(count)
{
    trp_yaml_count(y, value, key->name, key->min, key->max, member);
}

INTO(number)
{
    trp_yaml_number(y, value, key->name, key->min, key->max, member);
}

INTO(flag)
{
    trp_yaml_bool(y, value, key->name, member);
}

INTO(time)
{
    read_time(y, value, key->name, member);
}
