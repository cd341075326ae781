/*
 * Settings beside the table: one slot for each fixed option, at the option's index, and
 * a short list for each family (at most TRP_PROFILE_RESOURCES names each, as in a
 * profile). A value is checked when it is set and kept as its text, which `troupe
 * config` shows as it was written; readers parse it again, which cannot fail and is far
 * from any hot path.
 *
 * An environment variable is mapped back by writing each fixed key with `_` for its
 * dots (a test holds that no two become the same), then by the families' prefix and
 * end; a resource's name is taken as it stands between them, so a name that has
 * dots itself cannot be set from the environment.
 */
#include "conf/options.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/option_value.h"
#include "conf/wording.h"

#define ENVIRONMENT_PREFIX "TROUPE_OPT_"

enum { TABLE_MAX = 128, KEY_MAX = 128, FAMILIES = 4 };

struct setting {
    char *key; /* families only */
    char *value, *where;
    enum trp_origin origin; /* TRP_ORIGIN_DEFAULT: not set */
};

struct family {
    struct setting v[TRP_PROFILE_RESOURCES];
    uint32_t n;
};

struct trp_options {
    struct setting fixed[TABLE_MAX]; /* by index in the table */
    struct family families[FAMILIES];
};

/* A family's keys have a resource's name where its own has the star. */
enum { FAMILY_EXECUTOR, FAMILY_TASK, FAMILY_SCRIPT, FAMILY_CAP };
static const char *const families[FAMILIES] = {
    [FAMILY_EXECUTOR] = "executor.resource.*.amount",
    [FAMILY_TASK] = "task.resource.*.amount",
    [FAMILY_SCRIPT] = "executor.resource.*.discoveryScript",
    [FAMILY_CAP] = "alloc.max_*",
};

static size_t prefix_of(int f)
{
    return strcspn(families[f], "*");
}

static const char *end_of(int f)
{
    return families[f] + prefix_of(f) + 1;
}

const char *trp_origin_name(enum trp_origin o)
{
    static const char *const names[] = {"default",  "site",        "user",
                                        "pipeline", "environment", "command line"};
    return names[o];
}

/* ---- looking up ---- */

/* A key taken apart: which entry of the table, and which family it belongs to. */
struct place {
    const struct trp_option *option; /* NULL: no such key */
    int family;                      /* -1: a fixed option */
    char resource[TRP_RESOURCE_NAME_MAX];
};

static bool is_family(const struct trp_option *t)
{
    return strchr(t->key, '*') != NULL;
}

static int family_of(const struct trp_option *t)
{
    int f = 0;
    while (strcmp(families[f], t->key) != 0)
        f++;
    return f;
}

/* Is `key` one of the family for a custom resource? Fills its name. */
static bool resource_of(int f, const char *key, char *ret_resource)
{
    static const char *const builtins[] = {
        "cores", "memory", "memoryOverhead", "pyspark.memory", "offHeap", "cpus"};
    size_t prefix = prefix_of(f), end = strlen(end_of(f));
    size_t n = strlen(key);
    if (strncmp(key, families[f], prefix) != 0 || n <= prefix + end ||
        strcmp(key + n - end, end_of(f)) != 0 ||
        n - prefix - end >= TRP_RESOURCE_NAME_MAX)
        return false;
    memcpy(ret_resource, key + prefix, n - prefix - end);
    ret_resource[n - prefix - end] = '\0';
    for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++) {
        if (!strcmp(ret_resource, builtins[i]))
            return false;
    }
    return trp_is_resource_name(ret_resource);
}

static struct place find_key(const char *key)
{
    struct place p = {.family = -1};
    for (const struct trp_option *t = trp_option_table; t->key; t++) {
        if (!is_family(t) && !strcmp(t->key, key)) {
            return (struct place){.option = t, .family = -1};
        } else if (is_family(t) && resource_of(family_of(t), key, p.resource)) {
            p.option = t;
            p.family = family_of(t);
        }
    }
    return p;
}

static const struct setting *setting_of(const trp_options *o, const char *key,
                                        const struct trp_option **ret_option)
{
    static const struct setting none;
    struct place p = find_key(key);
    assert(p.option);
    *ret_option = p.option;
    if (p.family < 0)
        return &o->fixed[p.option - trp_option_table];
    const struct family *f = &o->families[p.family];
    for (uint32_t i = 0; i < f->n; i++) {
        if (!strcmp(f->v[i].key, key))
            return &f->v[i];
    }
    return &none;
}

const struct trp_option *trp_option_find(const char *key)
{
    return find_key(key).option;
}

/* ---- setting ---- */

int trp_options_new(trp_options **ret, trp_error *err)
{
    trp_options *o = calloc(1, sizeof(*o));
    if (!o)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the options");
    *ret = o;
    return 0;
}

static void setting_clear(struct setting *s)
{
    free(s->key);
    free(s->value);
    free(s->where);
    *s = (struct setting){0};
}

void trp_options_free(trp_options *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < TABLE_MAX; i++)
        setting_clear(&o->fixed[i]);
    for (int f = 0; f < FAMILIES; f++) {
        for (uint32_t i = 0; i < o->families[f].n; i++)
            setting_clear(&o->families[f].v[i]);
    }
    free(o);
}

static int unknown_option(const char *key, trp_error *err)
{
    struct trp_nearest near = trp_nearest_of(key);
    for (const struct trp_option *t = trp_option_table; t->key; t++) {
        if (!is_family(t))
            trp_nearest_try(&near, t->key);
        else if (!strncmp(t->key, key, prefix_of(family_of(t))))
            return trp_error_set(err, TRP_EINVAL,
                                 "unknown option \"%s\"; write %.*sR%s with a "
                                 "resource's name for R",
                                 trp_show(key).text, (int)prefix_of(family_of(t)),
                                 t->key, end_of(family_of(t)));
    }
    return trp_error_set(err, TRP_EINVAL, "unknown option \"%s\"%s%s",
                         trp_show(key).text, trp_did_you_mean(&near).text,
                         near.best ? "" : "; see `troupe config` for those there are");
}

int trp_option_check(const char *key, const char *value, trp_error *err)
{
    trp_error why;
    struct place p = find_key(key);
    if (!p.option)
        return unknown_option(key, err);
    if (trp_option_value_check(p.option, value, &why) < 0)
        return trp_error_set(err, TRP_EINVAL, "%s: %s", key, why.text);
    return 0;
}

/* Resources that any family names, with one more. */
static uint32_t count_resources(const trp_options *o, const char *one_more)
{
    const struct family *a = &o->families[FAMILY_EXECUTOR];
    const struct family *b = &o->families[FAMILY_TASK];
    uint32_t n = a->n;
    bool is_new = true;
    for (uint32_t i = 0; i < a->n; i++)
        is_new = is_new && strcmp(find_key(a->v[i].key).resource, one_more) != 0;
    for (uint32_t j = 0; j < b->n; j++) {
        struct place p = find_key(b->v[j].key);
        bool both = false;
        for (uint32_t i = 0; i < a->n && !both; i++)
            both = !strcmp(find_key(a->v[i].key).resource, p.resource);
        n += !both;
        is_new = is_new && strcmp(p.resource, one_more) != 0;
    }
    return n + is_new;
}

/* The slot to fill, the next free one of its family when it is new; NULL when there are
 * too many resources. */
static struct setting *slot_of(trp_options *o, const struct place *p, const char *key)
{
    if (p->family < 0)
        return &o->fixed[p->option - trp_option_table];
    struct family *f = &o->families[p->family];
    for (uint32_t i = 0; i < f->n; i++) {
        if (!strcmp(f->v[i].key, key))
            return &f->v[i];
    }
    bool counts = p->family == FAMILY_EXECUTOR || p->family == FAMILY_TASK;
    uint32_t n = counts ? count_resources(o, p->resource) : f->n + 1;
    return n <= TRP_PROFILE_RESOURCES ? &f->v[f->n] : NULL;
}

int trp_options_set(trp_options *o, const char *key, const char *value,
                    enum trp_origin origin, const char *where, trp_error *err)
{
    trp_error why;
    assert(origin != TRP_ORIGIN_DEFAULT);
    if (trp_option_check(key, value, &why) < 0)
        return trp_error_set(err, TRP_EINVAL, "%s: %s", where, why.text);
    struct place p = find_key(key);
    struct setting *s = slot_of(o, &p, key);
    if (!s)
        return trp_error_set(err, TRP_EINVAL,
                             "%s: %s: more than %d resources; leave some out", where,
                             key, TRP_PROFILE_RESOURCES);
    if (origin < s->origin)
        return 0;
    struct setting fresh = {.key = p.family < 0 ? NULL : strdup(key),
                            .value = strdup(value),
                            .where = strdup(where),
                            .origin = origin};
    if (!fresh.value || !fresh.where || (p.family >= 0 && !fresh.key)) {
        setting_clear(&fresh);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the options");
    }
    bool added = p.family >= 0 && !s->key;
    setting_clear(s);
    *s = fresh;
    if (added)
        o->families[p.family].n++;
    return 0;
}

/* "a_b_c" is "a.b.c" with its dots written as `_`, up to `n` characters. */
static bool is_written_as(const char *key, const char *variable, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (variable[i] != (key[i] == '.' ? '_' : key[i]))
            return false;
    }
    return true;
}

/* The key that a variable's name (behind TROUPE_OPT_, `n` characters) stands for. */
static bool key_of_variable(const char *variable, size_t n, char ret_key[KEY_MAX])
{
    for (const struct trp_option *t = trp_option_table; t->key; t++) {
        if (!is_family(t) && strlen(t->key) == n &&
            is_written_as(t->key, variable, n)) {
            memcpy(ret_key, t->key, n + 1);
            return true;
        }
    }
    for (int f = 0; f < FAMILIES; f++) {
        const char *end = end_of(f);
        size_t prefix = prefix_of(f), tail = strlen(end);
        if (n <= prefix + tail || n >= KEY_MAX ||
            !is_written_as(families[f], variable, prefix) ||
            !is_written_as(end, variable + n - tail, tail))
            continue;
        snprintf(ret_key, KEY_MAX, "%.*s%.*s%s", (int)prefix, families[f],
                 (int)(n - prefix - tail), variable + prefix, end);
        return find_key(ret_key).option;
    }
    return false;
}

static int unknown_variable(const char *name, trp_error *err)
{
    struct trp_nearest near = trp_nearest_of(name);
    char forms[TABLE_MAX][KEY_MAX];
    size_t n = 0;
    for (const struct trp_option *t = trp_option_table; t->key; t++) {
        if (is_family(t))
            continue;
        char *form = forms[n++];
        snprintf(form, KEY_MAX, ENVIRONMENT_PREFIX "%s", t->key);
        for (char *p = form; *p; p++)
            *p = *p == '.' ? '_' : *p;
        trp_nearest_try(&near, form);
    }
    return trp_error_set(err, TRP_EINVAL, "%s: no option has this name%s%s",
                         trp_show(name).text, trp_did_you_mean(&near).text,
                         near.best ? ""
                                   : "; unset the variable, or see `troupe config` for "
                                     "the options there are");
}

int trp_options_from_environment(trp_options *o, char *const *environ, trp_error *err)
{
    size_t prefix = strlen(ENVIRONMENT_PREFIX);
    for (; *environ; environ++) {
        char key[KEY_MAX];
        const char *equals = strchr(*environ, '=');
        if (!equals || strncmp(*environ, ENVIRONMENT_PREFIX, prefix) != 0)
            continue;
        char *name = strndup(*environ, (size_t)(equals - *environ));
        if (!name)
            return trp_error_set(err, TRP_ENOMEM, "out of memory for the options");
        int code =
            key_of_variable(name + prefix, strlen(name + prefix), key)
                ? trp_options_set(o, key, equals + 1, TRP_ORIGIN_ENVIRONMENT, name, err)
                : unknown_variable(name, err);
        free(name);
        if (code < 0)
            return code;
    }
    return 0;
}

/* ---- reading ---- */

const char *trp_options_text(const trp_options *o, const char *key)
{
    const struct trp_option *t;
    const struct setting *s = setting_of(o, key, &t);
    if (s->origin != TRP_ORIGIN_DEFAULT)
        return s->value;
    if (t->fallback[0] == '=')
        return trp_options_text(o, t->fallback + 1);
    return is_family(t) ? "" : t->fallback;
}

bool trp_options_is_set(const trp_options *o, const char *key)
{
    return trp_options_origin(o, key) != TRP_ORIGIN_DEFAULT;
}

enum trp_origin trp_options_origin(const trp_options *o, const char *key)
{
    const struct trp_option *t;
    return setting_of(o, key, &t)->origin;
}

const char *trp_options_where(const trp_options *o, const char *key)
{
    const struct trp_option *t;
    const struct setting *s = setting_of(o, key, &t);
    return s->where ? s->where : "";
}

bool trp_option_resource(const struct trp_option_view *v, const char *family,
                         char ret_resource[TRP_RESOURCE_NAME_MAX])
{
    if (strcmp(v->option->key, family) != 0)
        return false;
    memcpy(ret_resource, find_key(v->key).resource, TRP_RESOURCE_NAME_MAX);
    return true;
}

static int by_key(const void *a, const void *b)
{
    const struct trp_option_view *x = a, *y = b;
    return strcmp(x->key, y->key);
}

int trp_options_each(const trp_options *o, trp_option_visit visit, void *context)
{
    struct trp_option_view views[TABLE_MAX + FAMILIES * TRP_PROFILE_RESOURCES];
    size_t n = 0;
    for (const struct trp_option *t = trp_option_table; t->key; t++) {
        if (is_family(t))
            continue;
        views[n++] = (struct trp_option_view){.key = t->key,
                                              .value = trp_options_text(o, t->key),
                                              .origin = trp_options_origin(o, t->key),
                                              .option = t};
    }
    for (int f = 0; f < FAMILIES; f++) {
        for (uint32_t i = 0; i < o->families[f].n; i++) {
            const struct setting *s = &o->families[f].v[i];
            views[n++] = (struct trp_option_view){.key = s->key,
                                                  .value = s->value,
                                                  .origin = s->origin,
                                                  .option = find_key(s->key).option};
        }
    }
    qsort(views, n, sizeof(views[0]), by_key);
    for (size_t i = 0; i < n; i++) {
        int code = visit(context, &views[i]);
        if (code != 0)
            return code;
    }
    return 0;
}
