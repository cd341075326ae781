/* Event logs as a source of durations: line by line, only the lines that matter. */
#include "sim/run/empirical.h"

#include <stdlib.h>
#include <string.h>

#include "conf/scalars.h"
#include "core/base/array.h"
#include "events/log_event.h"

enum { STAGES_MAX = 1000000 };

struct trp_duration_log {
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

static struct trp_empirical *stage_of(trp_duration_log *l, uint32_t id)
{
    if (id >= STAGES_MAX || !TRP_ARRAY_GROW(l->stages, id, l->cap))
        return NULL;
    while (l->nstages <= id)
        l->stages[l->nstages++] = NULL;
    if (!l->stages[id])
        l->stages[id] = calloc(1, sizeof(struct trp_empirical));
    if (l->stages[id])
        l->stages[id]->stage = id;
    return l->stages[id];
}

static int take_stage(void *log, const struct trp_log_event *e)
{
    struct trp_empirical *s = stage_of(log, e->stage);
    if (!s || !e->stage_name)
        return TRP_EINVAL;
    free(s->name);
    s->name = strdup(e->stage_name);
    s->ntasks = e->ntasks;
    return s->name ? 0 : TRP_ENOMEM;
}

static int take_end(void *log, const struct trp_log_event *e)
{
    if (!e->end)
        return TRP_EINVAL;
    if (strcmp(e->end, "Success") != 0)
        return 0;
    struct trp_empirical *s = stage_of(log, e->stage);
    if (!s || e->at < e->launched || e->ran_ns < 0)
        return TRP_EINVAL;
    if (!TRP_ARRAY_GROW(s->values, s->n, s->cap))
        return TRP_ENOMEM;
    s->values[s->n++] = e->ran_ns;
    return 0;
}

static int take_summary(void *log, const struct trp_log_event *e)
{
    struct trp_empirical *s = stage_of(log, e->stage);
    int64_t before = 0;
    if (!s || !json_is_object(e->quantiles))
        return TRP_EINVAL;
    for (int i = 0; i < TRP_EMPIRICAL_QUANTILES; i++) {
        s->quantiles[i] =
            json_integer_value(json_object_get(e->quantiles, quantile[i].name));
        if (s->quantiles[i] < before)
            return TRP_EINVAL;
        before = s->quantiles[i];
    }
    s->summarised = e->succeeded;
    return 0;
}

int trp_duration_log_load(const char *file, trp_duration_log **ret, trp_error *err)
{
    static trp_log_take *const take[TRP_LOG_EVENTS] = {
        [TRP_LOG_TASK_END] = take_end,
        [TRP_LOG_SUMMARY] = take_summary,
        [TRP_LOG_STAGE] = take_stage,
        [TRP_LOG_STAGE_END] = take_stage,
    };
    trp_duration_log *l = calloc(1, sizeof *l);
    const struct trp_log_reader reader = {.take = take, .context = l};
    if (l)
        l->file = strdup(file);
    if (!l || !l->file) {
        trp_duration_log_free(l);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for %s", file);
    }
    int rc = trp_log_events_read(file, &reader, 1, err);
    if (rc < 0) {
        trp_duration_log_free(l);
        return rc;
    }
    *ret = l;
    return 0;
}

void trp_duration_log_free(trp_duration_log *l)
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

const char *trp_duration_log_file(const trp_duration_log *l)
{
    return l->file;
}

const struct trp_empirical *trp_duration_log_stage(const trp_duration_log *l,
                                                   const char *name)
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
