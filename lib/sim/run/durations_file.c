/* Durations files. Event logs are read after the tree, each once. */
#include "sim/run/durations_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/wording.h"
#include "core/base/array.h"

struct reading {
    trp_sim_durations *d;
    const trp_pipeline *p;
    struct trp_sim_stage fallback;
    const struct trp_pipeline_stage **by_name;
};

static TRP_YAML_READER(read_version)
{
    trp_yaml_version(y, value, "durations", "durations");
}

static TRP_YAML_READER(read_tasks)
{
    struct trp_sim_stage *s = context;
    s->tasks_written =
        trp_yaml_count(y, value, key->text, 0, TRP_PIPELINE_TASKS, &s->tasks);
}

static TRP_YAML_READER(read_fail)
{
    struct trp_sim_stage *s = context;
    s->fail_written = trp_yaml_number(y, value, key->text, 0, 1, &s->fail);
}

/* One stage's entry: a time, or a mapping. */
static void read_stage(trp_yaml *y, const struct trp_yaml_node *value, const char *what,
                       struct trp_sim_stage *ret)
{
    struct trp_sim_stage s = {.of = {.d = trp_distribution_constant(0)}};
    if (value->kind == TRP_YAML_SCALAR) {
        s.has_duration = true; /* or wrong, which is told */
        trp_sim_time_read(y, value, what, 0, &s.of.d.least);
    } else {
        bool sound = TRP_YAML_MAPPING(
            y, value, what, &s, TRP_DISTRIBUTION_KEYS,
            TRP_YAML_READ("events", trp_distribution_read_events),
            TRP_YAML_READ("stage", trp_distribution_read_stage),
            TRP_YAML_READ("tasks", read_tasks), TRP_YAML_READ("fail", read_fail));
        s.has_duration = s.of.kind || !sound;
        if (s.of.stage && !s.of.events)
            trp_yaml_wrong(y, value->mark, "%s: stage without events", what);
    }
    *ret = s;
}

static TRP_YAML_READER(read_default)
{
    struct reading *r = context;
    read_stage(y, value, key->text, &r->fallback);
    if (r->fallback.tasks_written)
        trp_yaml_wrong(y, value->mark, "tasks in default; write it at a stage");
    if (r->fallback.of.events && !r->fallback.of.stage)
        trp_yaml_wrong(y, value->mark, "events in default; say which stage");
}

static int compare_names(const void *a, const void *b)
{
    const struct trp_pipeline_stage *const *s = a, *const *t = b;
    return strcmp((*s)->name, (*t)->name);
}

static void unknown_stage(trp_yaml *y, const struct trp_yaml_node *key,
                          const trp_pipeline *p)
{
    struct trp_nearest near = trp_nearest_of(key->text);
    if (key->kind != TRP_YAML_SCALAR || !trp_yaml_would_tell(y, key->mark))
        return;
    for (uint32_t i = 0; i < p->nstages; i++)
        trp_nearest_try(&near, p->stages[i].name);
    trp_yaml_wrong(y, key->mark, "%s has no stage \"%s\"%s", p->file,
                   trp_show(key->text).text, trp_did_you_mean(&near).text);
}

static TRP_YAML_READER(read_stages)
{
    struct reading *r = context;
    if (!trp_yaml_is_mapping(y, value, key->text))
        return;
    for (key = value->first; key; key = key->next->next) {
        struct trp_pipeline_stage wanted = {.name = strdup(key->text)};
        const struct trp_pipeline_stage *w = &wanted, **found = NULL;
        if (wanted.name)
            found = bsearch(&w, r->by_name, r->p->nstages, sizeof(*r->by_name),
                            compare_names);
        if (found)
            read_stage(y, key->next, key->text, &r->d->stages[*found - r->p->stages]);
        else if (!wanted.name)
            trp_yaml_no_memory(y);
        else
            unknown_stage(y, key, r->p);
        free(wanted.name);
    }
}

/* What is not said of a stage is the default's; what neither says is missing. */
static void fill_in(trp_yaml *y, struct reading *r)
{
    for (uint32_t i = 0; i < r->d->nstages; i++) {
        struct trp_sim_stage *s = &r->d->stages[i];
        if (!s->fail_written && r->fallback.fail_written) {
            s->fail = r->fallback.fail;
            s->fail_written = true;
        }
        if (!s->has_duration && r->fallback.has_duration) {
            double scale = s->of.d.scale;
            s->of = r->fallback.of;
            s->of.d.scale *= scale;
            s->has_duration = true;
        }
        if (!s->has_duration)
            trp_yaml_wrong(y, trp_yaml_root(y)->mark,
                           "no duration of stage %s; write it below stages, or a "
                           "default",
                           r->p->stages[i].name);
    }
}

/* ---- event logs ---- */

/* The log's file: relative to the durations file's folder. NULL: out of memory. */
static char *path_of(const char *file, const char *events)
{
    const char *slash = strrchr(file, '/');
    char *path;
    if (*events == '/' || !slash)
        return strdup(events);
    return asprintf(&path, "%.*s/%s", (int)(slash - file), file, events) < 0 ? NULL
                                                                             : path;
}

static int log_of(trp_sim_durations *d, const char *events,
                  const trp_duration_log **ret, trp_error *err)
{
    char *path = path_of(d->file, events);
    int rc = TRP_ENOMEM;
    for (uint32_t i = 0; path && i < d->nlogs; i++) {
        if (strcmp(trp_duration_log_file(d->logs[i]), path) != 0)
            continue;
        free(path);
        *ret = d->logs[i];
        return 0;
    }
    if (path && TRP_ARRAY_GROW(d->logs, d->nlogs, d->logs_cap))
        rc = trp_duration_log_load(path, &d->logs[d->nlogs], err);
    else
        trp_error_set(err, rc, "out of memory for event logs");
    if (rc == 0)
        *ret = d->logs[d->nlogs++];
    free(path);
    return rc;
}

static int find_events(trp_sim_durations *d, const trp_pipeline *p, uint32_t i,
                       trp_error *err)
{
    struct trp_distribution_reader *r = &d->stages[i].of;
    const char *stage = r->stage ? r->stage : p->stages[i].name;
    const trp_duration_log *l = NULL;
    trp_error why;
    int rc = log_of(d, r->events, &l, &why);
    if (rc < 0)
        return trp_error_at(err, rc, d->file, r->events_mark, "%s", why.text);
    r->d.empirical = trp_duration_log_stage(l, stage);
    if (r->d.empirical)
        return 0;
    return trp_error_at(err, TRP_EINVAL, d->file, r->events_mark,
                        "%s has no durations of a stage \"%s\"",
                        trp_duration_log_file(l), trp_show(stage).text);
}

/* ---- loading ---- */

static trp_sim_durations *new_durations(const char *file, const trp_pipeline *p,
                                        trp_error *err)
{
    trp_sim_durations *d = calloc(1, sizeof(*d));
    if (d) {
        d->file = trp_conf_arena_text(&d->arena, file, strlen(file));
        d->stages = trp_conf_arena_alloc(&d->arena, p->nstages, sizeof(*d->stages));
        d->nstages = p->nstages;
    }
    for (uint32_t i = 0; d && d->stages && i < d->nstages; i++)
        d->stages[i].of.d = trp_distribution_constant(0);
    if (d && d->file && d->stages)
        return d;
    trp_sim_durations_free(d);
    trp_error_set(err, TRP_ENOMEM, "%s: out of memory", file);
    return NULL;
}

/* Frees the tree. */
static int read_durations(trp_sim_durations *d, const trp_pipeline *p, trp_yaml *y,
                          trp_error *err)
{
    struct reading r = {.d = d, .p = p};
    r.by_name = trp_conf_arena_alloc(&d->arena, p->nstages,
                                     sizeof(const struct trp_pipeline_stage *));
    if (!r.by_name)
        trp_yaml_no_memory(y);
    for (uint32_t i = 0; r.by_name && i < p->nstages; i++)
        r.by_name[i] = &p->stages[i];
    if (r.by_name)
        qsort(r.by_name, p->nstages, sizeof(*r.by_name), compare_names);
    if (r.by_name &&
        TRP_YAML_MAPPING(y, trp_yaml_root(y), "a durations file", &r,
                         TRP_YAML_READ("durations", read_version, .required = true),
                         TRP_YAML_READ("default", read_default),
                         TRP_YAML_READ("stages", read_stages)))
        fill_in(y, &r);
    int code = trp_yaml_verdict(y, err);
    trp_yaml_free(y);
    for (uint32_t i = 0; i < d->nstages && code == 0; i++)
        if (d->stages[i].of.d.kind == TRP_EMPIRICAL)
            code = find_events(d, p, i, err);
    return code;
}

int trp_sim_durations_parse(const char *file, const char *text, size_t size,
                            const trp_pipeline *p, trp_sim_durations **ret,
                            trp_error *err)
{
    trp_yaml *y;
    trp_sim_durations *d = new_durations(file, p, err);
    int code = d ? trp_yaml_open(d->file, text, size, &d->arena, &y, err) : TRP_ENOMEM;
    if (code == 0)
        code = read_durations(d, p, y, err);
    if (code < 0)
        trp_sim_durations_free(d);
    else
        *ret = d;
    return code;
}

void trp_sim_durations_free(trp_sim_durations *d)
{
    if (!d)
        return;
    for (uint32_t i = 0; i < d->nlogs; i++)
        trp_duration_log_free(d->logs[i]);
    free(d->logs);
    trp_conf_arena_free(&d->arena);
    free(d);
}

bool trp_sim_durations_tasks(const trp_sim_durations *d, uint32_t stage,
                             uint32_t *ret_tasks)
{
    if (d->stages[stage].tasks_written)
        *ret_tasks = d->stages[stage].tasks;
    return d->stages[stage].tasks_written;
}

uint32_t trp_sim_durations_recorded(const trp_sim_durations *d, uint32_t stage)
{
    const struct trp_empirical *e = d->stages[stage].of.d.empirical;
    return e ? e->ntasks : 0;
}
