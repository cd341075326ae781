/*
 * `resources:` and `local:`: what a profile's resource is to Slurm, and what stands for
 * it on one machine.
 *
 * A target's name becomes part of a command line (--gres=NAME:2), where a comma or a
 * colon would ask for something else; so only the characters that Slurm itself takes in
 * such names are let through.
 */
#include <stdlib.h>
#include <string.h>

#include "conf/site_load.h"
#include "conf/wording.h"

#define GPU "gpu"
#define GPU_VARIABLE "CUDA_VISIBLE_DEVICES"
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

enum { ADDRESSES = 4096 };

bool trp_site_is_resource(trp_yaml *y, const struct trp_yaml_node *key)
{
    bool sound = key->kind == TRP_YAML_SCALAR && strlen(key->text) == key->size &&
                 trp_is_resource_name(key->text);
    if (!sound && key->kind == TRP_YAML_SCALAR)
        trp_yaml_wrong(y, key->mark,
                       "\"%s\" is not a resource's name; write letters, digits, '_', "
                       "'.' and '-', a letter or '_' first",
                       trp_show(key->text).text);
    return sound;
}

char *trp_site_slurm_word(trp_yaml *y, const struct trp_yaml_node *node,
                          const char *what)
{
    char *word = trp_yaml_word(y, node, what);
    if (!word)
        return NULL;
    if (strlen(word) <= TRP_SITE_WORD_MAX &&
        word[strspn(word, NAME_CHARS "@:,=/+%&|*()[]")] == '\0')
        return word;
    trp_yaml_wrong(y, node->mark,
                   "%s is \"%s\"; write one word of at most %d letters, digits and "
                   "_.-@:,=/+%%&|*()[]",
                   what, trp_show(word).text, TRP_SITE_WORD_MAX);
    return NULL;
}

void trp_yaml_into_slurm_word(trp_yaml *y, const struct trp_yaml_key *key,
                              const struct trp_yaml_node *value, void *member)
{
    *(char **)member = trp_site_slurm_word(y, value, key->name);
}

/* ---- resources: ---- */

struct reading {
    struct trp_site_resource *it;
    const struct trp_yaml_node *countable; /* its value, where it is written */
};

static const struct {
    const char *prefix;
    enum trp_site_kind kind;
    const char *more; /* characters of a name beside NAME_CHARS */
} targets[] = {
    {"gres:",       TRP_SITE_GRES,       ":" },
    {"license:",    TRP_SITE_LICENSE,    "@" },
    {"constraint:", TRP_SITE_CONSTRAINT, ":="},
};

/* The name behind the prefix; NULL: Slurm would read something else from it. */
static const char *target_name(const char *text, size_t i)
{
    char chars[128];
    const char *name = text + strlen(targets[i].prefix);
    const char *type = targets[i].kind == TRP_SITE_GRES ? strchr(name, ':') : NULL;
    strcpy(chars, NAME_CHARS);
    strcat(chars, targets[i].more);
    bool sound =
        *name && strlen(name) <= TRP_SITE_WORD_MAX && name[strspn(name, chars)] == '\0';
    if (type) /* NAME:TYPE, not NAME:TYPE:2 */
        sound = sound && type > name && type[1] && !strchr(type + 1, ':');
    return sound ? name : NULL;
}

static TRP_YAML_READER(read_target)
{
    struct trp_site_resource *r = ((struct reading *)context)->it;
    const char *name = NULL;
    char *text = trp_yaml_word(y, value, key->text);
    for (size_t i = 0; text && i < TRP_YAML_COUNT(targets); i++) {
        if (strncmp(text, targets[i].prefix, strlen(targets[i].prefix)) != 0)
            continue;
        name = target_name(text, i);
        if (name)
            r->kind = targets[i].kind;
    }
    /* A wrong one is one, too, for conditions that name the resource. */
    r->target = name ? text + (name - text) : text ? text : (char *)(uintptr_t)GPU;
    if (text && !name)
        trp_yaml_wrong(
            y, value->mark,
            "\"%s\" is nothing that Slurm can be asked for; write gres:NAME, "
            "gres:NAME:TYPE, license:NAME or constraint:FEATURE",
            trp_show(text).text);
}

static TRP_YAML_READER(read_variable)
{
    struct trp_site_resource *r = ((struct reading *)context)->it;
    r->env = trp_yaml_text(y, value, "env");
    if (r->env && !trp_is_variable(r->env) && *r->env)
        trp_yaml_wrong(y, value->mark,
                       "\"%s\" is not a variable's name; write letters, digits and "
                       "'_', no digit first",
                       trp_show(r->env).text);
}

static TRP_YAML_READER(read_countable)
{
    struct reading *r = context;
    r->countable = value;
    trp_yaml_bool(y, value, key->text, &r->it->countable);
}

/* A feature is there or not: it is never counted. */
static void settle_resource(trp_yaml *y, struct reading *r)
{
    struct trp_site_resource *it = r->it;
    if (it->kind == TRP_SITE_CONSTRAINT && it->countable && r->countable)
        trp_yaml_wrong(y, r->countable->mark,
                       "a constraint cannot be counted; write countable: false");
    if (it->kind == TRP_SITE_CONSTRAINT)
        it->countable = false;
    if (!it->target && strcmp(it->name, GPU) == 0) {
        it->kind = TRP_SITE_GRES;
        it->target = (char *)(uintptr_t)GPU;
    }
}

static void read_resource(trp_yaml *y, const struct trp_yaml_node *node,
                          struct trp_site_resource *it)
{
    struct reading r = {.it = it};
    it->countable = true;
    bool sound =
        TRP_YAML_MAPPING(y, node, "a resource", &r, TRP_YAML_READ("slurm", read_target),
                         TRP_YAML_READ("env", read_variable),
                         TRP_YAML_READ("countable", read_countable));
    if (!sound && !it->target)
        it->target = (char *)(uintptr_t)GPU; /* a key may be `slurm`, misspelt */
    settle_resource(y, &r);
}

TRP_YAML_READER(trp_site_read_resources)
{
    struct trp_site_loading *l = context;
    trp_site *s = &l->site;
    l->lacks_resources = !trp_yaml_is_mapping(y, value, "resources");
    if (l->lacks_resources || value->count == 0)
        return;
    l->lacks_resources = true;
    if (!trp_yaml_is_bounded(y, value, "resources", TRP_SITE_RESOURCES))
        return;
    s->resources = trp_yaml_alloc(y, value->count, sizeof(*s->resources));
    if (!s->resources)
        return;
    for (key = value->first; key; key = key->next->next) {
        struct trp_site_resource *r = &s->resources[s->nresources];
        if (!trp_site_is_resource(y, key))
            continue;
        *r = (struct trp_site_resource){.name = trp_yaml_text(y, key, "a resource"),
                                        .mark = key->mark};
        if (!r->name)
            continue;
        s->nresources++;
        read_resource(y, key->next, r);
    }
    l->lacks_resources = s->nresources < value->count;
}

/* ---- local: ---- */

static void check_addresses(trp_yaml *y, const struct trp_yaml_node *list)
{
    for (const struct trp_yaml_node *a = list->first; a; a = a->next) {
        const struct trp_yaml_node *b = list->first;
        if (a->kind != TRP_YAML_SCALAR)
            continue;
        if (!a->size || strpbrk(a->text, ", \t\n"))
            trp_yaml_wrong(y, a->mark,
                           "\"%s\" is not an address; write one word without a comma",
                           trp_show(a->text).text);
        while (b != a && strcmp(a->text, b->text) != 0)
            b = b->next;
        if (b != a)
            trp_yaml_wrong(y, a->mark, "address \"%s\" stands twice; remove one",
                           trp_show(a->text).text);
    }
}

TRP_YAML_READER(trp_site_read_local)
{
    trp_site *s = context;
    if (!trp_yaml_is_mapping(y, value, "local") || value->count == 0)
        return;
    s->local = trp_yaml_alloc(y, value->count, sizeof(*s->local));
    if (!s->local)
        return;
    for (key = value->first; key; key = key->next->next) {
        const struct trp_yaml_node *list = key->next;
        uint32_t n = 0;
        if (!trp_site_is_resource(y, key) || !trp_yaml_is_list(y, list, key->text))
            continue;
        if (!trp_yaml_is_bounded(y, list, "addresses", ADDRESSES))
            continue;
        char *name = trp_yaml_text(y, key, "a resource");
        char **addresses = trp_yaml_texts(y, list, key->text, &n);
        check_addresses(y, list);
        if (name && addresses)
            s->local[s->nlocal++] = (struct trp_resource_addresses){
                .name = name,
                .addresses = (const char *const *)addresses,
                .naddresses = n};
    }
}

/* ---- using them ---- */

const struct trp_site_resource *trp_site_resource(const trp_site *s, const char *name)
{
    static const struct trp_site_resource gpu = {.name = (char *)(uintptr_t)GPU,
                                                 .env = (char *)(uintptr_t)GPU_VARIABLE,
                                                 .kind = TRP_SITE_GRES,
                                                 .target = (char *)(uintptr_t)GPU,
                                                 .countable = true};
    for (uint32_t i = 0; s && i < s->nresources; i++) {
        if (!strcmp(s->resources[i].name, name))
            return &s->resources[i];
    }
    return strcmp(name, GPU) ? NULL : &gpu;
}

const char *trp_site_variable(const trp_site *s, const char *resource)
{
    const struct trp_site_resource *r = s ? trp_site_resource(s, resource) : NULL;
    if (r && r->env)
        return *r->env ? r->env : NULL;
    return strcmp(resource, GPU) ? NULL : GPU_VARIABLE;
}
