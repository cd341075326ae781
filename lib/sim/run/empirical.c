/* Event logs as a source of durations: line by line, only the lines that matter. */
#include "sim/run/empirical.h"

#include <stdlib.h>
#include <string.h>

#include "conf/scalars.h"
#include "core/base/array.h"
#include "events/event_lines.h"

enum { STAGES_MAX = 1000000 };

struct trp_task_log {
    char *file;
    struct trp_empirical **stages; /* by id; NULL: not heard of */
    uint32_t nstages, cap;
};

static const struct {
    const char *name;
    double at;
} quantile[TRP_EMPIRICAL_QUANTILES] = {
    {"min", 0   },
    {"p05", 0.05},
    {"p25", 0.25},
    {"p50", 0.5 },
    {"p75", 0.75},
    {"p95", 0.95},
    {"p99", 0.99},
    {"max", 1   },
};

/* ---- drawing ---- */

static double between(const struct trp_empirical *e, double unit)
{
    int i = 1;
    while (i < TRP_EMPIRICAL_QUANTILES - 1 && unit > quantile[i].at)
        i++;
    double low = (double)e->quantiles[i - 1], high = (double)e->quantiles[i];
    double part = (unit - quantile[i - 1].at) / (quantile[i].at - quantile[i - 1].at);
    return low + part * (high - low);
}

double trp_empirical_draw(const struct trp_empirical *e, double unit)
{
    double all = (double)e->n + (double)e->summarised, at = unit * all;
    if (at < (double)e->n)
        return (double)e->values[(uint32_t)at];
    return between(e, (at - e->n) / (double)e->summarised);
}

double trp_empirical_mean(const struct trp_empirical *e)
{
    double sum = 0, line = 0;
    for (uint32_t i = 0; i < e->n; i++)
        sum += (double)e->values[i];
    for (int i = 1; i < TRP_EMPIRICAL_QUANTILES; i++)
        line += (quantile[i].at - quantile[i - 1].at) *
                ((double)e->quantiles[i] + (double)e->quantiles[i - 1]) / 2;
    double all = (double)e->n + (double)e->summarised;
    return all > 0 ? (sum + line * (double)e->summarised) / all : 0;
}

/* ---- reading ---- */

static struct trp_empirical *stage_of(trp_task_log *l, const json_t *id)
{
    json_int_t n = json_integer_value(id);
    if (!json_is_integer(id) || n < 0 || n >= STAGES_MAX ||
        !TRP_ARRAY_GROW(l->stages, n, l->cap))
        return NULL;
    while (l->nstages <= n)
        l->stages[l->nstages++] = NULL;
    if (!l->stages[n])
        l->stages[n] = calloc(1, sizeof(struct trp_empirical));
    if (l->stages[n])
        l->stages[n]->stage = (uint32_t)n;
    return l->stages[n];
}

static int take_stage(void *log, const json_t *event)
{
    trp_task_log *l = log;
    const json_t *info = json_object_get(event, "Stage Info");
    const char *name = json_string_value(json_object_get(info, "Stage Name"));
    json_int_t tasks = json_integer_value(json_object_get(info, "Number of Tasks"));
    struct trp_empirical *e = stage_of(l, json_object_get(info, "Stage ID"));
    if (!e || !name)
        return TRP_EINVAL;
    free(e->name);
    e->name = strdup(name);
    e->ntasks = tasks > 0 && tasks < UINT32_MAX ? (uint32_t)tasks : 0;
    return e->name ? 0 : TRP_ENOMEM;
}

static int take_end(void *log, const json_t *event)
{
    trp_task_log *l = log;
    const json_t *info = json_object_get(event, "Task Info");
    const json_t *reason = json_object_get(event, "Task End Reason");
    const json_t *exact = json_object_get(event, "Troupe Run Time ns");
    const char *word = json_string_value(json_object_get(reason, "Reason"));
    if (!word)
        return TRP_EINVAL;
    if (strcmp(word, "Success") != 0)
        return 0;
    struct trp_empirical *e = stage_of(l, json_object_get(event, "Stage ID"));
    json_int_t from = json_integer_value(json_object_get(info, "Launch Time"));
    json_int_t to = json_integer_value(json_object_get(info, "Finish Time"));
    if (!e || from < 0 || to < from || to - from > INT64_MAX / 1000000)
        return TRP_EINVAL;
    int64_t ns = json_is_integer(exact) ? json_integer_value(exact)
                                        : (int64_t)(to - from) * 1000000;
    if (ns < 0)
        return TRP_EINVAL;
    if (!TRP_ARRAY_GROW(e->values, e->n, e->cap))
        return TRP_ENOMEM;
    e->values[e->n++] = ns;
    return 0;
}

static int take_summary(void *log, const json_t *event)
{
    trp_task_log *l = log;
    struct trp_empirical *e = stage_of(l, json_object_get(event, "Stage ID"));
    const json_t *of = json_object_get(event, "Run Time Quantiles ns");
    json_int_t n = json_integer_value(json_object_get(event, "Succeeded"));
    int64_t before = 0;
    if (!e || !json_is_object(of) || n < 0)
        return TRP_EINVAL;
    for (int i = 0; i < TRP_EMPIRICAL_QUANTILES; i++) {
        e->quantiles[i] = json_integer_value(json_object_get(of, quantile[i].name));
        if (e->quantiles[i] < before)
            return TRP_EINVAL;
        before = e->quantiles[i];
    }
    e->summarised = (uint64_t)n;
    return 0;
}

static const struct trp_event_line_kind kinds[] = {
    {"SparkListenerTaskEnd",        take_end    },
    {"TroupeTaskSummary",           take_summary},
    {"SparkListenerStageSubmitted", take_stage  },
    {"SparkListenerStageCompleted", take_stage  },
};

int trp_task_log_load(const char *file, trp_task_log **ret, trp_error *err)
{
    trp_task_log *l = calloc(1, sizeof *l);
    if (l)
        l->file = strdup(file);
    if (!l || !l->file) {
        trp_task_log_free(l);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for %s", file);
    }
    int rc = trp_event_lines_read(file, kinds, sizeof kinds / sizeof *kinds, l, err);
    if (rc < 0) {
        trp_task_log_free(l);
        return rc;
    }
    *ret = l;
    return 0;
}

void trp_task_log_free(trp_task_log *l)
{
    if (!l)
        return;
    for (uint32_t i = 0; i < l->nstages; i++) {
        if (!l->stages[i])
            continue;
        free(l->stages[i]->name);
        free(l->stages[i]->values);
        free(l->stages[i]);
    }
    free(l->stages);
    free(l->file);
    free(l);
}

const char *trp_task_log_file(const trp_task_log *l)
{
    return l->file;
}

const struct trp_empirical *trp_task_log_stage(const trp_task_log *l, const char *name)
{
    int64_t id;
    for (uint32_t i = l->nstages; i-- > 0;) {
        const struct trp_empirical *e = l->stages[i];
        if (e && e->name && strcmp(e->name, name) == 0 && e->n + e->summarised > 0)
            return e;
    }
    if (!trp_whole_parse(name, &id) || id < 0 || id >= l->nstages || !l->stages[id])
        return NULL;
    return l->stages[id]->n + l->stages[id]->summarised > 0 ? l->stages[id] : NULL;
}
