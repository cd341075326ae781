/*
 * A pipeline file in three steps: the tree (yaml.c), each part by its reader (stages in
 * pipeline_stage.c, profiles in profile_section.c), then what concerns several stages
 * (pipeline_check.c). All go on after an error; the verdict tells the first ones by place.
 *
 * The pipeline and everything it points to live in one arena behind it: teardown is one
 * call, and a failed load frees the same.
 */
#include "conf/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/option_value.h"
#include "conf/pipeline_load.h"
#include "conf/pool_section.h"
#include "conf/profile_section.h"
#include "conf/wording.h"

struct owned_pipeline {
    trp_pipeline pipeline; /* first: trp_pipeline_free casts back */
    struct trp_conf_arena arena;
};

/* ---- options ---- */

static void check_option(trp_yaml *y, const struct trp_yaml_node *key, const char *name,
                         const char *value)
{
    trp_error why;
    if (trp_option_check(name, value, &why) < 0)
        trp_yaml_wrong(y, trp_option_find(name) ? key->next->mark : key->mark, "%s",
                       why.text);
}

struct trp_pair *trp_options_read(trp_yaml *y, const struct trp_yaml_node *node,
                                  const char *skip, uint32_t *ret_count)
{
    uint32_t n = 0;
    if (!trp_yaml_is_mapping(y, node, "options") || node->count == 0)
        return NULL;
    struct trp_pair *pairs = trp_yaml_alloc(y, node->count, sizeof(*pairs));
    if (!pairs)
        return NULL;
    for (const struct trp_yaml_node *key = node->first; key; key = key->next->next) {
        char *name =
            key->kind == TRP_YAML_SCALAR ? trp_yaml_word(y, key, "a key") : NULL;
        if (name && !trp_option_find(name) && key->next->kind == TRP_YAML_MAPPING)
            check_option(y, key, name, ""); /* told at the key, not at its value */
        char *value = trp_yaml_text(y, key->next, name ? name : "an option");
        if (!name || !value || (skip && !strncmp(name, skip, strlen(skip))))
            continue;
        check_option(y, key, name, value);
        pairs[n++] = (struct trp_pair){name, value, key->next->mark};
    }
    *ret_count = n;
    return pairs;
}

int trp_options_set_pairs(trp_options *o, const struct trp_pair *v, uint32_t n,
                          enum trp_origin origin, const char *file, trp_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        char *where;
        if (asprintf(&where, "%s:%u:%u", file, v[i].mark.line, v[i].mark.column) < 0)
            return trp_error_set(err, TRP_ENOMEM, "%s: out of memory", file);
        int code = trp_options_set(o, v[i].key, v[i].value, origin, where, err);
        free(where);
        if (code < 0)
            return code;
    }
    return 0;
}

/* ---- top-level keys ---- */

static TRP_YAML_READER(read_version)
{
    trp_yaml_version(y, value, "pipeline", "troupe");
}

static TRP_YAML_READER(read_profiles)
{
    trp_pipeline *p = context;
    p->profiles = trp_profile_sections_read(y, value, &p->nprofiles);
}

static TRP_YAML_READER(read_default)
{
    trp_pipeline *p = context;
    p->fallback = trp_yaml_alloc(y, 1, sizeof(*p->fallback));
    if (p->fallback)
        trp_profile_section_read(y, "default", key->mark, value, p->fallback);
}

static TRP_YAML_READER(read_include) /* done before: pipeline_include.c */
{
    (void)y;
    (void)value;
}

static TRP_YAML_READER(read_pools)
{
    trp_pipeline *p = context;
    trp_pool_section_read(y, value, &p->pools);
}

static TRP_YAML_READER(read_params)
{
    trp_pipeline *p = context;
    p->params = trp_yaml_pairs(y, value, "params", &p->nparams);
}

static TRP_YAML_READER(read_options)
{
    trp_pipeline *p = context;
    p->options = trp_options_read(y, value, NULL, &p->noptions);
}

static TRP_YAML_READER(read_stages)
{
    trp_pipeline *p = context;
    if (!trp_yaml_is_list(y, value, "stages"))
        return;
    if (value->count == 0 || value->count > TRP_PIPELINE_STAGES) {
        trp_yaml_wrong(y, value->mark, "%u stages; write 1 to %d", value->count,
                       TRP_PIPELINE_STAGES);
        return;
    }
    p->stages = trp_yaml_alloc(y, value->count, sizeof(*p->stages));
    if (!p->stages)
        return;
    for (const struct trp_yaml_node *item = value->first; item; item = item->next)
        trp_pipeline_stage_read(y, item, &p->stages[p->nstages++]);
    for (uint32_t i = 0; p->uses && i < p->nstages; i++)
        p->stages[i].columns = p->uses[i];
}

static TRP_YAML_READER(read_shell)
{
    trp_pipeline *p = context;
    trp_pipeline_shell_read(y, value, &p->shell);
}

static const struct trp_yaml_key pipeline_keys[] = {
    TRP_YAML_READ("troupe", read_version, .required = true),
    TRP_YAML_INTO("name", word, trp_pipeline, name),
    TRP_YAML_READ("profiles", read_profiles),
    TRP_YAML_READ("default", read_default),
    TRP_YAML_READ("include", read_include),
    TRP_YAML_READ("pools", read_pools),
    TRP_YAML_READ("params", read_params),
    TRP_YAML_READ("options", read_options),
    TRP_YAML_READ("shell", read_shell),
    TRP_YAML_INTO("notify", text, trp_pipeline, notify),
    TRP_YAML_READ("stages", read_stages, .required = true),
};

/* ---- loading ---- */

/* "etl" for "dir/etl.yaml". */
static char *name_of_file(struct trp_conf_arena *arena, const char *file)
{
    const char *slash = strrchr(file, '/');
    const char *base = slash ? slash + 1 : file;
    const char *dot = strrchr(base, '.');
    bool yaml = dot && dot != base && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml"));
    return trp_conf_arena_text(arena, base, yaml ? (size_t)(dot - base) : strlen(base));
}

static struct owned_pipeline *new_pipeline(const char *file, trp_error *err)
{
    struct owned_pipeline *o = calloc(1, sizeof(*o));
    if (o) {
        o->pipeline.file = trp_conf_arena_text(&o->arena, file, strlen(file));
        o->pipeline.name = name_of_file(&o->arena, file);
    }
    if (o && o->pipeline.file && o->pipeline.name)
        return o;
    trp_pipeline_free(o ? &o->pipeline : NULL);
    trp_error_set(err, TRP_ENOMEM, "%s: out of memory", file);
    return NULL;
}

/* Each param that was given is one of the file's. */
static int check_given(const trp_pipeline *p, const struct trp_pipeline_inputs *in,
                       trp_error *err)
{
    for (uint32_t i = 0; i < in->nparams; i++) {
        struct trp_name_list all = {0};
        bool known = false;
        for (uint32_t k = 0; k < p->nparams && !known; k++) {
            known = !strcmp(p->params[k].key, in->params[i].key);
            trp_name_list_add(&all, p->params[k].key);
        }
        if (!known)
            return trp_error_set(
                err, TRP_EINVAL, "--param %s: %s has no such parameter; %s%s",
                trp_show(in->params[i].key).text, p->file,
                p->nparams ? "its parameters are " : "it has no params at all",
                all.text);
    }
    return 0;
}

int trp_pipeline_read(const char *file, const char *text, size_t size,
                      const struct trp_pipeline_inputs *in, trp_pipeline **ret,
                      trp_error *err)
{
    static const struct trp_pipeline_inputs nothing;
    trp_yaml *y;
    struct owned_pipeline *o = new_pipeline(file, err);
    if (!o)
        return TRP_ENOMEM;
    trp_pipeline *p = &o->pipeline;
    char *name = p->name;
    int code = trp_yaml_parse(p->file, text, size, &o->arena, &y, err);
    if (code < 0) {
        trp_pipeline_free(p);
        return code;
    }
    trp_pipeline_include(y, p->file, in ? in : &nothing);
    trp_pipeline_values(y, in ? in : &nothing, p);
    trp_pipeline_foreign(y, trp_yaml_root(y), false);
    trp_yaml_mapping(y, trp_yaml_root(y), "a pipeline file", pipeline_keys,
                     sizeof(pipeline_keys) / sizeof(pipeline_keys[0]), p);
    if (!p->name)
        p->name = name;
    if (p->nstages > 0)
        trp_pipeline_check(y, p);
    trp_pipeline_check_names(y, p);
    code = trp_yaml_verdict_told(y, in ? in->tell : NULL, in ? in->context : NULL, err);
    if (code == 0 && in)
        code = check_given(p, in, err);
    trp_yaml_free(y);
    if (code < 0) {
        trp_pipeline_free(p);
        return code;
    }
    trp_pipeline_leave_out(p);
    *ret = p;
    return 0;
}

int trp_pipeline_parse(const char *file, const char *text, size_t size,
                       trp_pipeline **ret, trp_error *err)
{
    return trp_pipeline_read(file, text, size, NULL, ret, err);
}

void trp_pipeline_free(trp_pipeline *p)
{
    struct owned_pipeline *o = (struct owned_pipeline *)p;
    if (!o)
        return;
    trp_conf_arena_free(&o->arena);
    free(o);
}

/* ---- using it ---- */

int trp_pipeline_options(const trp_pipeline *p, trp_options *o, trp_error *err)
{
    return trp_options_set_pairs(o, p->options, p->noptions, TRP_ORIGIN_PIPELINE,
                                 p->file, err);
}
