/*
 * A pool's numbers are checked and kept as the text that they were written in, which is
 * what the engine takes. The pools of a run are few: names are looked for one by one.
 */
#include "conf/pool_section.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "conf/pipeline_load.h"
#include "conf/wording.h"

#define FILE_OPTION "scheduler.allocation.file"

/* ---- reading ---- */

static TRP_YAML_READER(read_weight)
{
    struct trp_pool_spec *pool = context;
    int64_t n;
    if (trp_yaml_whole(y, value, "weight", 1, INT32_MAX, &n))
        pool->weight = trp_yaml_word(y, value, "weight");
}

static TRP_YAML_READER(read_min_share)
{
    struct trp_pool_spec *pool = context;
    int64_t n;
    if (trp_yaml_whole(y, value, "min_share", 0, INT32_MAX, &n))
        pool->min_share = trp_yaml_word(y, value, "min_share");
}

static TRP_YAML_READER(read_mode)
{
    struct trp_pool_spec *pool = context;
    pool->mode = trp_yaml_word(y, value, "mode");
    if (pool->mode && strcasecmp(pool->mode, "FIFO") != 0 &&
        strcasecmp(pool->mode, "FAIR") != 0)
        trp_yaml_wrong(y, value->mark, "mode is \"%s\"; write FIFO or FAIR",
                       trp_show(pool->mode).text);
}

static void read_pool(trp_yaml *y, const struct trp_yaml_node *key,
                      struct trp_pool_spec *pool, struct trp_mark *mark)
{
    *mark = key->mark;
    pool->name = trp_yaml_word(y, key, "a pool's name");
    if (pool->name && !trp_is_name(pool->name))
        trp_yaml_wrong(y, key->mark,
                       "\"%s\" is not a pool's name; write at most 64 letters, digits, "
                       "'_', '.' and '-', no '.' or '-' first",
                       trp_show(pool->name).text);
    TRP_YAML_MAPPING(
        y, key->next, "a pool", pool, TRP_YAML_READ("min_share", read_min_share),
        TRP_YAML_READ("mode", read_mode), TRP_YAML_READ("weight", read_weight));
}

void trp_pool_section_read(trp_yaml *y, const struct trp_yaml_node *node,
                           struct trp_pool_section *ret)
{
    if (!trp_yaml_is_mapping(y, node, "pools") || node->count == 0)
        return;
    if (!trp_yaml_is_bounded(y, node, "pools", TRP_PIPELINE_POOLS))
        return;
    ret->specs = trp_yaml_alloc(y, node->count, sizeof(*ret->specs));
    ret->marks = trp_yaml_alloc(y, node->count, sizeof(*ret->marks));
    if (!ret->specs || !ret->marks)
        return;
    for (const struct trp_yaml_node *key = node->first; key; key = key->next->next) {
        if (key->kind != TRP_YAML_SCALAR)
            continue;
        read_pool(y, key, &ret->specs[ret->n], &ret->marks[ret->n]);
        ret->n++;
    }
}

/* ---- the file ---- */

static TRP_YAML_READER(read_pools)
{
    trp_pool_section_read(y, value, context);
}

static int read_file(const char *path, struct trp_conf_arena *arena,
                     struct trp_pool_section *ret, trp_error *err)
{
    trp_yaml *y;
    int rc = trp_yaml_load(path, arena, &y, err);
    if (rc < 0)
        return rc;
    TRP_YAML_MAPPING(y, trp_yaml_root(y), "a file of pools", ret,
                     TRP_YAML_READ("pools", read_pools, .required = true));
    rc = trp_yaml_verdict(y, err);
    trp_yaml_free(y);
    return rc;
}

/* Spark's own form, which its users have. */
static bool is_xml(const char *path)
{
    FILE *f = fopen(path, "re");
    char first = ' ';
    bool some = f && fscanf(f, " %c", &first) == 1;
    if (f)
        fclose(f);
    return some && first == '<';
}

static int load_file(const trp_options *o, const char *cwd,
                     struct trp_conf_arena *arena, struct trp_pool_section *ret,
                     trp_error *err)
{
    const char *file = trp_options_text(o, FILE_OPTION);
    trp_error why;
    char *path = NULL;
    if (!*file)
        return 0;
    if (asprintf(&path, "%s%s%s", cwd && *file != '/' ? cwd : "",
                 cwd && *file != '/' ? "/" : "", file) < 0)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for pools");
    int rc = read_file(path, arena, ret, &why);
    if (rc == TRP_EINVAL && is_xml(path))
        trp_error_set(&why, rc,
                      "%s: this is XML; write YAML, for each pool of it a line of "
                      "pools: {NAME: {weight: 1, min_share: 0, mode: FIFO}}",
                      path);
    free(path);
    return rc < 0 ? trp_error_set(err, rc, "%s: " FILE_OPTION ": %s",
                                  trp_options_where(o, FILE_OPTION), why.text)
                  : 0;
}

/* ---- the run's ---- */

static const struct trp_pool_spec *find_pool(const struct trp_pool_list *l,
                                             const char *name)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (strcmp(l->specs[i].name, name) == 0)
            return &l->specs[i];
    return NULL;
}

static int join(const struct trp_pool_section *own, const struct trp_pool_section *file,
                struct trp_pool_list *l, trp_error *err)
{
    l->specs = trp_conf_arena_alloc(&l->arena, (size_t)own->n + file->n + 1,
                                    sizeof(*l->specs));
    if (!l->specs)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for pools");
    for (uint32_t i = 0; i < own->n; i++)
        l->specs[l->n++] = own->specs[i];
    for (uint32_t i = 0; i < file->n; i++)
        if (!find_pool(l, file->specs[i].name))
            l->specs[l->n++] = file->specs[i];
    const char *mode = l->n ? "FIFO" : "FAIR"; /* of a default that nobody wrote */
    if (!find_pool(l, TRP_POOL_DEFAULT))
        l->specs[l->n++] =
            (struct trp_pool_spec){.name = TRP_POOL_DEFAULT, .mode = mode};
    return 0;
}

static int unknown_pool(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                        const struct trp_pool_list *l, trp_error *err)
{
    struct trp_nearest near = trp_nearest_of(s->spec.pool);
    struct trp_name_list all = {0};
    for (uint32_t i = 0; i < l->n; i++) {
        trp_nearest_try(&near, l->specs[i].name);
        trp_name_list_add(&all, l->specs[i].name);
    }
    if (near.best)
        return trp_error_at(err, TRP_EINVAL, p->file, s->pool_mark,
                            "unknown pool \"%s\"%s", trp_show(s->spec.pool).text,
                            trp_did_you_mean(&near).text);
    if (l->n > 1)
        return trp_error_at(err, TRP_EINVAL, p->file, s->pool_mark,
                            "unknown pool \"%s\"; the pools are %s",
                            trp_show(s->spec.pool).text, all.text);
    return trp_error_at(err, TRP_EINVAL, p->file, s->pool_mark,
                        "unknown pool \"%s\"; write pools: {%s: {weight: 1}} at the "
                        "top of the file",
                        trp_show(s->spec.pool).text, trp_show(s->spec.pool).text);
}

/* FIFO: who writes pools expects something of them. */
static int check_none(const trp_pipeline *p, trp_error *err)
{
    struct trp_mark at = {0};
    for (uint32_t i = 0; i < p->nstages; i++)
        if (p->stages[i].spec.pool &&
            (!at.line || trp_mark_before(p->stages[i].pool_mark, at)))
            at = p->stages[i].pool_mark;
    if (p->pools.n && (!at.line || trp_mark_before(p->pools.marks[0], at)))
        at = p->pools.marks[0];
    if (!at.line)
        return 0;
    return trp_error_at(err, TRP_EINVAL, p->file, at,
                        "pools share slots with scheduler.mode FAIR only, and it is "
                        "FIFO; write options: {scheduler.mode: FAIR}");
}

static int make_pools(const trp_pipeline *p, const trp_options *o, const char *cwd,
                      struct trp_pool_list *l, trp_error *err)
{
    static const struct trp_pool_section none;
    struct trp_pool_section file = {0};
    if (strcmp(trp_options_text(o, "scheduler.mode"), "FAIR") != 0)
        return p ? check_none(p, err) : 0;
    int rc = load_file(o, cwd, &l->arena, &file, err);
    if (rc == 0)
        rc = join(p ? &p->pools : &none, &file, l, err);
    for (uint32_t i = 0; rc == 0 && p && i < p->nstages; i++) {
        const struct trp_pipeline_stage *s = &p->stages[i];
        if (s->spec.pool && !find_pool(l, s->spec.pool))
            rc = unknown_pool(p, s, l, err);
    }
    return rc;
}

int trp_pool_list_make(const trp_pipeline *p, const trp_options *o, const char *cwd,
                       struct trp_pool_list *ret, trp_error *err)
{
    struct trp_pool_list l = {0};
    int rc = make_pools(p, o, cwd, &l, err);
    if (rc < 0)
        trp_pool_list_free(&l);
    else
        *ret = l;
    return rc;
}

void trp_pool_list_free(struct trp_pool_list *l)
{
    trp_conf_arena_free(&l->arena);
    *l = (struct trp_pool_list){0};
}
