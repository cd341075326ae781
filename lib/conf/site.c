/*
 * The site file, read as a pipeline file is: tree, readers, verdict. Keys of which
 * nothing is kept have readers that check the form only, so that a file which is good
 * for a cluster is good here, and a misspelt one is told here too.
 *
 * The site and everything it points to live in one arena behind it.
 */
#include "conf/site.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/pipeline_load.h"
#include "conf/profile_section.h"
#include "conf/values.h"
#include "conf/wording.h"

#define SITE_FILE "/etc/troupe/site.yaml"
#define GPU_VARIABLE "CUDA_VISIBLE_DEVICES"

enum { MEMORY_OPTIONS = 2, COUNT_MAX = 1000000, ADDRESSES = 4096 };

struct owned_site {
    trp_site site; /* first: trp_site_free casts back */
    struct trp_conf_arena arena;
    struct trp_pair memory[MEMORY_OPTIONS]; /* while reading: `memory:` as options */
    uint32_t nmemory;
};

#define READER(name)                                                                   \
    static void name(trp_yaml *y, const struct trp_yaml_node *key,                     \
                     const struct trp_yaml_node *value, void *context)

#define COUNT(keys) (sizeof(keys) / sizeof((keys)[0]))

/* ---- readers that keep nothing -----------------------------------------------------
 */

READER(check_word)
{
    (void)context;
    trp_yaml_word(y, value, key->text);
}

READER(check_count)
{
    int64_t n;
    (void)context;
    trp_yaml_whole(y, value, key->text, 0, COUNT_MAX, &n);
}

READER(check_time)
{
    int64_t ns;
    (void)context;
    trp_yaml_time(y, value, key->text, &ns);
}

READER(check_memory)
{
    int64_t mib;
    (void)context;
    trp_yaml_memory(y, value, key->text, &mib);
}

READER(check_bool)
{
    bool truth;
    (void)context;
    trp_yaml_bool(y, value, key->text, &truth);
}

READER(check_words)
{
    uint32_t n;
    (void)context;
    trp_yaml_texts(y, value, key->text, &n);
}

static bool check_resource(trp_yaml *y, const struct trp_yaml_node *key)
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

/* `when: {gpu: ">0"}`: a comparison with a number. */
READER(check_when)
{
    (void)context;
    if (!trp_yaml_is_mapping(y, value, "when"))
        return;
    for (key = value->first; key; key = key->next->next) {
        int64_t n;
        const char *text =
            check_resource(y, key) ? trp_yaml_word(y, key->next, "a condition") : NULL;
        if (!text)
            continue;
        text += strspn(text, "<>=");
        text += strspn(text, " ");
        if (!trp_whole_parse(text, &n))
            trp_yaml_wrong(
                y, key->next->mark,
                "\"%s\" is not a condition; write a comparison with a number "
                "such as \">0\"",
                trp_show(key->next->text).text);
    }
}

READER(check_route)
{
    static const struct trp_yaml_key keys[] = {
        {"when",       check_when, false},
        {"partition",  check_word, false},
        {"qos",        check_word, false},
        {"account",    check_word, false},
        {"constraint", check_word, false},
    };
    (void)key;
    if (!trp_yaml_is_list(y, value, "route"))
        return;
    for (const struct trp_yaml_node *item = value->first; item; item = item->next)
        trp_yaml_mapping(y, item, "a route", keys, COUNT(keys), context);
}

READER(check_limits)
{
    static const struct trp_yaml_key keys[] = {
        {"executors", check_count, false},
        {"jobs",      check_count, false},
        {"time",      check_time,  false},
        {"deny",      check_words, false},
    };
    (void)key;
    trp_yaml_mapping(y, value, "limits", keys, COUNT(keys), context);
}

READER(check_racks_from)
{
    (void)key;
    (void)context;
    const char *from = trp_yaml_word(y, value, "from");
    if (from && strcmp(from, "slurm") != 0)
        trp_yaml_wrong(y, value->mark, "racks come from \"%s\"; write slurm",
                       trp_show(from).text);
}

READER(check_racks)
{
    static const struct trp_yaml_key keys[] = {
        {"from",    check_racks_from, false},
        {"file",    check_word,       false},
        {"pattern", check_word,       false},
    };
    (void)key;
    bool sound = trp_yaml_mapping(y, value, "racks", keys, COUNT(keys), context);
    if (sound && value->count != 1)
        trp_yaml_wrong(y, value->mark,
                       "racks has %u sources; write one of from, file, pattern",
                       value->count);
}

READER(check_nodes)
{
    (void)key;
    (void)context;
    const char *how = trp_yaml_word(y, value, "nodes");
    if (how && strcmp(how, "shared") != 0 && strcmp(how, "exclusive") != 0)
        trp_yaml_wrong(y, value->mark, "nodes are \"%s\"; write shared or exclusive",
                       trp_show(how).text);
}

READER(check_driver)
{
    static const struct trp_yaml_key keys[] = {
        {"cores",     check_count,  false},
        {"memory",    check_memory, false},
        {"time",      check_time,   false},
        {"account",   check_word,   false},
        {"partition", check_word,   false},
    };
    (void)key;
    trp_yaml_mapping(y, value, "driver", keys, COUNT(keys), context);
}

/* ---- readers that keep what they read ----------------------------------------------
 */

READER(read_version)
{
    (void)key;
    (void)context;
    bool one = value->kind == TRP_YAML_SCALAR && value->plain && value->size == 1 &&
               value->text[0] == '1';
    if (trp_yaml_is_scalar(y, value, "site") && !one)
        trp_yaml_wrong(y, value->mark,
                       "\"%s\" is not a version of site files; write site: 1",
                       trp_show(value->text).text);
}

READER(read_variable)
{
    struct trp_site_resource *r = context;
    (void)key;
    r->env = trp_yaml_text(y, value, "env");
    if (r->env && strchr(r->env, '='))
        trp_yaml_wrong(y, value->mark,
                       "\"%s\" cannot be a variable's name; write one without '='",
                       trp_show(r->env).text);
}

READER(read_resources)
{
    static const struct trp_yaml_key keys[] = {
        {"slurm",     check_word,    false},
        {"env",       read_variable, false},
        {"countable", check_bool,    false},
    };
    trp_site *s = context;
    (void)key;
    if (!trp_yaml_is_mapping(y, value, "resources") || value->count == 0)
        return;
    s->resources =
        trp_conf_arena_alloc(trp_yaml_keep(y), value->count, sizeof(*s->resources));
    if (!s->resources) {
        trp_yaml_no_memory(y);
        return;
    }
    for (key = value->first; key; key = key->next->next) {
        struct trp_site_resource *r = &s->resources[s->nresources];
        if (!check_resource(y, key))
            continue;
        r->name = trp_yaml_text(y, key, "a resource");
        s->nresources += r->name != NULL;
        trp_yaml_mapping(y, key->next, "a resource", keys, COUNT(keys), r);
    }
}

static void keep_memory(trp_yaml *y, struct owned_site *o, const char *option,
                        const struct trp_yaml_node *value)
{
    char *key = trp_conf_arena_text(&o->arena, option, strlen(option));
    char *text = trp_yaml_text(y, value, option);
    if (!key)
        trp_yaml_no_memory(y);
    else if (text && o->nmemory < MEMORY_OPTIONS)
        o->memory[o->nmemory++] = (struct trp_pair){key, text, value->mark};
}

READER(read_overhead_factor)
{
    double factor;
    (void)key;
    if (trp_yaml_number(y, value, "overhead_factor", 0, 1000, &factor))
        keep_memory(y, context, "executor.memoryOverheadFactor", value);
}

READER(read_overhead_min)
{
    int64_t mib;
    (void)key;
    if (trp_yaml_memory(y, value, "overhead_min", &mib))
        keep_memory(y, context, "executor.minMemoryOverhead", value);
}

READER(read_memory)
{
    static const struct trp_yaml_key keys[] = {
        {"overhead_factor", read_overhead_factor, false},
        {"overhead_min",    read_overhead_min,    false},
    };
    (void)key;
    trp_yaml_mapping(y, value, "memory", keys, COUNT(keys), context);
}

READER(read_scratch)
{
    trp_site *s = context;
    (void)key;
    s->scratch = trp_yaml_word(y, value, "scratch");
}

READER(read_options)
{
    trp_site *s = context;
    (void)key;
    s->options = trp_options_read(y, value, "slurm.", &s->noptions);
}

READER(read_profiles)
{
    trp_site *s = context;
    (void)key;
    s->profiles = trp_profile_sections_read(y, value, &s->nprofiles);
}

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

READER(read_local)
{
    trp_site *s = context;
    (void)key;
    if (!trp_yaml_is_mapping(y, value, "local") || value->count == 0)
        return;
    s->local = trp_conf_arena_alloc(trp_yaml_keep(y), value->count, sizeof(*s->local));
    if (!s->local) {
        trp_yaml_no_memory(y);
        return;
    }
    for (key = value->first; key; key = key->next->next) {
        const struct trp_yaml_node *list = key->next;
        uint32_t n = 0;
        if (!check_resource(y, key) || !trp_yaml_is_list(y, list, key->text))
            continue;
        if (list->count > ADDRESSES) {
            trp_yaml_wrong(y, list->mark, "%u addresses; write at most %d", list->count,
                           ADDRESSES);
            continue;
        }
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

static const struct trp_yaml_key site_keys[] = {
    {"site",      read_version,   true },
    {"resources", read_resources, false},
    {"memory",    read_memory,    false},
    {"route",     check_route,    false},
    {"limits",    check_limits,   false},
    {"racks",     check_racks,    false},
    {"scratch",   read_scratch,   false},
    {"options",   read_options,   false},
    {"mpi",       check_word,     false},
    {"nodes",     check_nodes,    false},
    {"driver",    check_driver,   false},
    {"local",     read_local,     false},
    {"profiles",  read_profiles,  false},
};

/* ---- loading -----------------------------------------------------------------------
 */

static struct owned_site *new_site(const char *file, trp_error *err)
{
    struct owned_site *o = calloc(1, sizeof(*o));
    if (o)
        o->site.file = trp_conf_arena_text(&o->arena, file, strlen(file));
    if (o && o->site.file)
        return o;
    trp_site_free(o ? &o->site : NULL);
    trp_error_set(err, TRP_ENOMEM, "%s: out of memory", file);
    return NULL;
}

/* Puts what `memory:` stands for in front of `options:`, which are set later and win.
 */
static void join_options(trp_yaml *y, struct owned_site *o)
{
    trp_site *s = &o->site;
    uint32_t n = o->nmemory + s->noptions;
    struct trp_pair *all = trp_conf_arena_alloc(&o->arena, n, sizeof(*all));
    if (!all) {
        trp_yaml_no_memory(y);
        return;
    }
    memcpy(all, o->memory, o->nmemory * sizeof(*all));
    if (s->noptions > 0)
        memcpy(all + o->nmemory, s->options, s->noptions * sizeof(*all));
    s->options = all;
    s->noptions = n;
}

static int finish(struct owned_site *o, trp_yaml *y, trp_site **ret, trp_error *err)
{
    trp_yaml_mapping(y, trp_yaml_root(y), "a site file", site_keys, COUNT(site_keys),
                     o);
    join_options(y, o);
    int code = trp_yaml_verdict(y, err);
    trp_yaml_free(y);
    if (code < 0)
        trp_site_free(&o->site);
    else
        *ret = &o->site;
    return code;
}

int trp_site_parse(const char *file, const char *text, size_t size, trp_site **ret,
                   trp_error *err)
{
    trp_yaml *y;
    struct owned_site *o = new_site(file, err);
    if (!o)
        return TRP_ENOMEM;
    int code = trp_yaml_parse(o->site.file, text, size, &o->arena, &y, err);
    if (code < 0) {
        trp_site_free(&o->site);
        return code;
    }
    return finish(o, y, ret, err);
}

int trp_site_load(const char *path, trp_site **ret, trp_error *err)
{
    trp_yaml *y;
    const char *variable = getenv("TROUPE_SITE");
    if (!path && variable && *variable)
        path = variable;
    if (!path && access(SITE_FILE, F_OK) == 0)
        path = SITE_FILE;
    struct owned_site *o = new_site(path ? path : "", err);
    if (!o)
        return TRP_ENOMEM;
    if (!path) {
        *ret = &o->site;
        return 0;
    }
    int code = trp_yaml_load(o->site.file, &o->arena, &y, err);
    if (code < 0) {
        trp_site_free(&o->site);
        return code;
    }
    return finish(o, y, ret, err);
}

void trp_site_free(trp_site *s)
{
    struct owned_site *o = (struct owned_site *)s;
    if (!o)
        return;
    trp_conf_arena_free(&o->arena);
    free(o);
}

/* ---- using it ----------------------------------------------------------------------
 */

int trp_site_options(const trp_site *s, trp_options *o, trp_error *err)
{
    return trp_options_set_pairs(o, s->options, s->noptions, TRP_ORIGIN_SITE, s->file,
                                 err);
}

const char *trp_site_variable(const trp_site *s, const char *resource)
{
    for (uint32_t i = 0; i < s->nresources; i++) {
        const struct trp_site_resource *r = &s->resources[i];
        if (!strcmp(r->name, resource) && r->env)
            return *r->env ? r->env : NULL;
    }
    return strcmp(resource, "gpu") ? NULL : GPU_VARIABLE;
}
