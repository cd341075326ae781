/*
 * Statistics of a run. Stages, executors and profiles have dense ids, so each is an
 * array (of pointers, for stages: their addresses are handed out). What an attempt
 * costs is one or two array look-ups and some additions; only the few custom resources
 * of a run are looped over. Seconds are doubles: core-seconds in ns would overflow 64
 * bits in a large run, and 53 bits of precision are far beyond what clocks give.
 */
#include "events/statistics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "conf/wording.h"
#include "core/base/array.h"

static const double NS = 1e-9;

void trp_statistics_at(struct trp_statistics *s, int64_t at)
{
    if (s->first == 0)
        s->first = at;
    if (at > s->last)
        s->last = at;
}

struct trp_stage_statistics *trp_statistics_stage(struct trp_statistics *s,
                                                  trp_stage_id stage)
{
    if (stage.n < s->nstages && s->stages[stage.n])
        return s->stages[stage.n];
    if (!TRP_ARRAY_RESERVE_ZEROED(s->stages, s->nstages, (uint64_t)stage.n + 1))
        return NULL;
    struct trp_stage_statistics *new = calloc(1, sizeof *new);
    if (!new)
        return NULL;
    new->stage = stage;
    new->summarised_from = UINT32_MAX;
    s->stages[stage.n] = new;
    s->nkept++;
    return new;
}

const char *trp_statistics_stage_name(const struct trp_statistics *s, trp_stage_id id)
{
    return id.n < s->nstages && s->stages[id.n] ? s->stages[id.n]->name : NULL;
}

const char *trp_statistics_profile_name(const struct trp_statistics *s,
                                        trp_profile_id id)
{
    return id.n < s->nshapes && s->shapes[id.n].known ? s->shapes[id.n].name : NULL;
}

int trp_statistics_describe(struct trp_statistics *s,
                            const struct trp_event_stage *info)
{
    struct trp_stage_statistics *st = trp_statistics_stage(s, info->stage);
    if (!st)
        return TRP_ENOMEM;
    char *name = strdup(info->name ? info->name : "");
    trp_stage_id *parents = calloc(info->nparents + 1u, sizeof *parents);
    if (!name || !parents) {
        free(name);
        free(parents);
        return TRP_ENOMEM;
    }
    if (info->nparents > 0)
        memcpy(parents, info->parents, info->nparents * sizeof *parents);
    free(st->name);
    free(st->parents);
    st->name = name;
    st->parents = parents;
    st->nparents = info->nparents;
    st->attempt = info->attempt;
    st->retry = info->retry;
    st->ntasks = info->ntasks;
    st->map = info->map;
    st->profile = info->profile;
    return 0;
}

void trp_statistics_given_up(struct trp_stage_statistics *stage, bool skipped)
{
    stage->given_up += !skipped;
    stage->skipped += skipped;
}

/* A custom resource's place in every `devices`; TRP_NONE beyond the limit of a run. */
static uint32_t device(struct trp_statistics *s, const char *name)
{
    for (uint32_t i = 0; i < s->ndevices; i++)
        if (strcmp(s->device[i], name) == 0)
            return i;
    if (s->ndevices == TRP_PROFILE_RESOURCES)
        return TRP_NONE;
    strncpy(s->device[s->ndevices], name, TRP_RESOURCE_NAME_MAX - 1);
    return s->ndevices++;
}

const struct trp_shape *trp_statistics_shape(struct trp_statistics *s,
                                             const struct trp_resource_profile *p)
{
    if (p->id.n < s->nshapes && s->shapes[p->id.n].known)
        return &s->shapes[p->id.n];
    if (!TRP_ARRAY_RESERVE_ZEROED(s->shapes, s->nshapes, (uint64_t)p->id.n + 1))
        return NULL;
    struct trp_shape *shape = &s->shapes[p->id.n];
    shape->known = true;
    memcpy(shape->name, p->name, sizeof shape->name);
    shape->executor.cores = (double)p->cores;
    shape->task.cores = (double)p->task_cpus;
    for (uint32_t i = 0; i < p->ncustom; i++) {
        uint32_t d = device(s, p->custom[i].name);
        if (d == TRP_NONE)
            continue;
        shape->executor.devices[d] = (double)p->custom[i].executor;
        shape->task.devices[d] = (double)p->custom[i].task / (double)TRP_ONE;
    }
    return shape;
}

/* to += amount * seconds */
static void add_seconds(const struct trp_statistics *s, struct trp_seconds *to,
                        const struct trp_seconds *amount, double seconds)
{
    to->cores += amount->cores * seconds;
    for (uint32_t i = 0; i < s->ndevices; i++)
        to->devices[i] += amount->devices[i] * seconds;
}

static struct trp_seconds *made(struct trp_seconds **of)
{
    if (!*of)
        *of = calloc(1, sizeof **of);
    return *of;
}

/* to += the part of amount * seconds that `use` is of `all`; of a device that nobody
 * used, as of the cores. */
static void add_part(const struct trp_statistics *s, struct trp_seconds *to,
                     const struct trp_seconds *amount, double seconds,
                     const struct trp_seconds *use, const struct trp_seconds *all)
{
    double part = use->cores / all->cores;
    to->cores += amount->cores * seconds * part;
    for (uint32_t i = 0; i < s->ndevices; i++)
        to->devices[i] +=
            amount->devices[i] * seconds *
            (all->devices[i] > 0 ? use->devices[i] / all->devices[i] : part);
}

/* Where a stage's part of what is held is added. What cannot be noted for want of
 * memory is told as idle: the totals stay right. */
static struct trp_seconds *held_by(struct trp_statistics *s, trp_stage_id id)
{
    struct trp_stage_statistics *st =
        id.n == TRP_NONE ? NULL : trp_statistics_stage(s, id);
    struct trp_seconds *to = st ? made(&st->held) : NULL;
    return to ? to : &s->idle;
}

/* Gives the executor's time up to `at` to the stages that used it since then, or to the
 * last one when none did. */
static void give(struct trp_statistics *s, struct trp_executor_statistics *x,
                 int64_t at)
{
    const struct trp_seconds *amount = &s->shapes[x->shape.n].executor;
    struct trp_seconds all = {0}, one = {.cores = 1};
    if (at <= x->since)
        return;
    double seconds = (double)(at - x->since) * NS;
    for (uint32_t i = 0; i < x->nuses; i++)
        add_seconds(s, &all, &x->uses[i].used, 1);
    if (all.cores > 0)
        for (uint32_t i = 0; i < x->nuses; i++)
            add_part(s, held_by(s, x->uses[i].stage), amount, seconds, &x->uses[i].used,
                     &all);
    else
        add_part(s, held_by(s, x->stage), amount, seconds, &one, &one);
    x->nuses = 0;
    x->since = at;
}

static struct trp_executor_statistics *executor(struct trp_statistics *s,
                                                trp_executor_id e)
{
    return e.n < s->nexecutors && s->executors[e.n].live ? &s->executors[e.n] : NULL;
}

int trp_statistics_executor_added(struct trp_statistics *s, trp_executor_id e,
                                  const struct trp_resource_profile *p,
                                  const char *host, int64_t at)
{
    if (!TRP_ARRAY_RESERVE_ZEROED(s->executors, s->nexecutors, (uint64_t)e.n + 1) ||
        !trp_statistics_shape(s, p))
        return TRP_ENOMEM;
    struct trp_executor_statistics *x = &s->executors[e.n];
    *x = (struct trp_executor_statistics){.live = true,
                                          .shape = p->id,
                                          .stage = {TRP_NONE},
                                          .since = at,
                                          .host = host,
                                          .uses = x->uses,
                                          .uses_capacity = x->uses_capacity};
    return 0;
}

void trp_statistics_executor_removed(struct trp_statistics *s, trp_executor_id e,
                                     int64_t at)
{
    struct trp_executor_statistics *x = executor(s, e);
    if (!x)
        return;
    give(s, x, at);
    x->live = false;
}

void trp_statistics_executor_relabelled(struct trp_statistics *s, trp_executor_id e,
                                        int64_t at)
{
    struct trp_executor_statistics *x = executor(s, e);
    if (!x)
        return;
    give(s, x, at);
    x->stage.n = TRP_NONE;
}

void trp_statistics_task_started(struct trp_statistics *s, trp_stage_id stage,
                                 trp_executor_id e, int64_t at)
{
    struct trp_executor_statistics *x = executor(s, e);
    struct trp_stage_statistics *st = trp_statistics_stage(s, stage);
    if (st)
        st->open++;
    if (!x)
        return;
    bool same = x->stage.n == stage.n && x->nuses <= 1;
    if (x->open == 0 && x->stage.n != TRP_NONE && !same)
        give(s, x, at);
    x->stage = stage;
    x->open++;
}

int trp_statistics_ran_on(struct trp_statistics *s, trp_stage_id stage,
                          trp_executor_id e, const struct trp_resource_profile *p,
                          double seconds)
{
    struct trp_executor_statistics *x = executor(s, e);
    const struct trp_shape *shape = x && p ? trp_statistics_shape(s, p) : NULL;
    uint32_t i = 0;
    if (!shape)
        return x && p ? TRP_ENOMEM : 0;
    while (i < x->nuses && x->uses[i].stage.n != stage.n)
        i++;
    if (!TRP_ARRAY_GROW(x->uses, i, x->uses_capacity))
        return TRP_ENOMEM;
    if (i == x->nuses)
        x->uses[x->nuses++] = (struct trp_executor_use){.stage = stage};
    add_seconds(s, &x->uses[i].used, &shape->task, seconds);
    if (x->stage.n == TRP_NONE)
        x->stage = stage;
    return 0;
}

static void give_nodes(struct trp_statistics *s, int64_t at)
{
    if (s->nodes_at == 0 || at <= s->nodes_at)
        return;
    double seconds = (double)(at - s->nodes_at) * NS * s->nodes;
    if (s->running)
        s->node_share += seconds / s->running;
    else
        s->idle_nodes += seconds;
    s->nodes_at = at;
}

void trp_statistics_nodes(struct trp_statistics *s, uint32_t nodes, int64_t at)
{
    give_nodes(s, at);
    s->nodes = nodes;
    s->nodes_at = at > s->nodes_at ? at : s->nodes_at;
}

void trp_statistics_stage_runs(struct trp_statistics *s,
                               struct trp_stage_statistics *stage, bool runs,
                               int64_t at)
{
    if (stage->runs == runs)
        return;
    give_nodes(s, at);
    stage->node_seconds = trp_statistics_node_seconds(s, stage);
    stage->nodes_before = s->node_share;
    stage->runs = runs;
    if (runs)
        s->running++;
    else
        s->running--;
}

void trp_statistics_stage_submitted(struct trp_statistics *s,
                                    struct trp_stage_statistics *stage, int64_t at)
{
    if (stage->submitted == 0)
        stage->submitted = at;
    stage->began = at;
    stage->attempt_over = false;
    stage->ended = 0;
    trp_statistics_stage_runs(s, stage, true, at);
}

void trp_statistics_stage_ended(struct trp_statistics *s,
                                struct trp_stage_statistics *stage,
                                enum trp_outcome outcome, int64_t at)
{
    stage->ended = at;
    stage->outcome = outcome;
    trp_statistics_stage_runs(s, stage, false, at);
}

double trp_statistics_node_seconds(const struct trp_statistics *s,
                                   const struct trp_stage_statistics *stage)
{
    return stage->node_seconds +
           (stage->runs ? s->node_share - stage->nodes_before : 0);
}

int64_t trp_task_ran_ns(const struct trp_event_task *t)
{
    return t->end && t->end->duration_ns > 0 &&
                   t->verdict->task_end.status != TRP_END_RECALLED
               ? t->end->duration_ns
               : 0;
}

bool trp_end_is_failure(enum trp_end_status status)
{
    return status != TRP_END_SUCCESS && status != TRP_END_KILLED &&
           status != TRP_END_RECALLED;
}

int trp_statistics_used(struct trp_statistics *s, struct trp_stage_statistics *stage,
                        const struct trp_resource_profile *p, double seconds)
{
    const struct trp_shape *shape = p ? trp_statistics_shape(s, p) : NULL;
    struct trp_seconds *used = made(&stage->used);
    if (!used || (p && !shape))
        return TRP_ENOMEM;
    if (shape)
        add_seconds(s, used, &shape->task, seconds);
    return 0;
}

static void add_flows(uint64_t *flow, const struct trp_end *end)
{
    const struct trp_end_data *d = &end->data;
    const uint64_t peak = (uint64_t)end->peak_kib * 1024;
    flow[TRP_FLOW_CPU] += (uint64_t)end->cpu_ns;
    if (peak > flow[TRP_FLOW_PEAK])
        flow[TRP_FLOW_PEAK] = peak;
    flow[TRP_FLOW_IN] += end->bytes_in;
    flow[TRP_FLOW_RECORDS_IN] += end->records_in;
    flow[TRP_FLOW_OUT] += end->bytes_out;
    flow[TRP_FLOW_RECORDS_OUT] += end->records_out;
    if (!end->has_data)
        return;
    flow[TRP_FLOW_READ] += d->local_bytes + d->remote_bytes;
    flow[TRP_FLOW_REMOTE] += d->remote_bytes;
    flow[TRP_FLOW_RECORDS_READ] += d->read_records;
    flow[TRP_FLOW_WRITTEN] += d->written_bytes;
    flow[TRP_FLOW_RECORDS_WRITTEN] += d->written_records;
    flow[TRP_FLOW_SPILLED] += d->spilled_bytes;
    flow[TRP_FLOW_HITS] += d->cache_hits;
    flow[TRP_FLOW_MISSES] += d->cache_misses;
    flow[TRP_FLOW_CACHED] += d->cache_bytes;
    flow[TRP_FLOW_KEPT_MEMORY] += d->kept_memory;
    flow[TRP_FLOW_KEPT_DISK] += d->kept_disk;
}

int trp_statistics_accumulated(struct trp_statistics *s,
                               struct trp_stage_statistics *stage, uint32_t id,
                               const char *name, int64_t value)
{
    uint32_t at = 0, k = 0;
    while (at < s->naccumulated && s->accumulated[at].id != id)
        at++;
    if (at == s->naccumulated) {
        char *copy = strdup(name);
        if (!copy || !TRP_ARRAY_GROW(s->accumulated, at, s->accumulated_capacity)) {
            free(copy);
            return TRP_ENOMEM;
        }
        s->accumulated[s->naccumulated++] =
            (struct trp_accumulated){.id = id, .name = copy};
    }
    s->accumulated[at].value = value;
    while (k < stage->naccumulated && stage->accumulated[k] != at)
        k++;
    if (k < stage->naccumulated)
        return 0;
    if (!TRP_ARRAY_GROW(stage->accumulated, k, stage->accumulated_capacity))
        return TRP_ENOMEM;
    stage->accumulated[stage->naccumulated++] = at;
    return 0;
}

int trp_statistics_task_ended(struct trp_statistics *s,
                              struct trp_stage_statistics *stage,
                              const struct trp_event_task *t)
{
    enum trp_end_status status = t->verdict->task_end.status;
    struct trp_executor_statistics *x = executor(s, t->verdict->task_end.executor);
    if (x && x->open)
        x->open--;
    if (stage->open)
        stage->open--;
    if (status == TRP_END_RECALLED)
        return 0;
    int64_t ran = trp_task_ran_ns(t);
    if (trp_statistics_ran_on(s, stage->stage, t->verdict->task_end.executor,
                              t->profile, (double)ran * NS) < 0)
        return TRP_ENOMEM;
    double ranks = t->ranks > 0 ? t->ranks : 1;
    if (trp_statistics_used(s, stage, t->profile, (double)ran * NS * ranks) < 0)
        return TRP_ENOMEM;
    if (t->profile && t->ranks > 0) {
        const struct trp_shape *shape = trp_statistics_shape(s, t->profile);
        if (!made(&stage->held))
            return TRP_ENOMEM;
        int64_t held = t->ended - t->launched;
        add_seconds(s, stage->held, &shape->task,
                    (double)(held > ran ? held : ran) * NS * ranks);
    }
    for (uint32_t i = 0; i < t->nupdates; i++)
        if (trp_statistics_accumulated(s, stage, t->updates[i].id, t->updates[i].name,
                                       t->updates[i].value) < 0)
            return TRP_ENOMEM;
    if (t->end) {
        stage->cpu += (double)t->end->cpu_ns * NS;
        add_flows(stage->flow, t->end);
    }
    stage->attempts++;
    stage->failures += t->verdict->task_end.counted;
    return status == TRP_END_SUCCESS ? trp_durations_add(&stage->durations, ran) : 0;
}

static int share(struct trp_summarised *s, trp_executor_id e, int64_t ran)
{
    if (e.n == TRP_NONE) {
        s->gangs++;
        return 0;
    }
    if (!TRP_ARRAY_RESERVE_ZEROED(s->by_executor, s->nexecutors, (uint64_t)e.n + 1))
        return TRP_ENOMEM;
    s->by_executor[e.n].tasks++;
    s->by_executor[e.n].run_ns += ran;
    return 0;
}

int trp_statistics_summarise(struct trp_stage_statistics *stage,
                             const struct trp_event_task *t)
{
    struct trp_summarised *s = stage->summarised;
    enum trp_end_status status = t->verdict->task_end.status;
    int64_t ran = trp_task_ran_ns(t);
    if (share(s, t->verdict->task_end.executor, ran) < 0 ||
        (status == TRP_END_SUCCESS && trp_durations_add(&s->durations, ran) < 0))
        return TRP_ENOMEM;
    s->succeeded += status == TRP_END_SUCCESS;
    s->killed += status == TRP_END_KILLED;
    s->recalled += status == TRP_END_RECALLED;
    s->run_ns += ran;
    if ((unsigned)t->verdict->task_end.level < TRP_LEVELS)
        s->levels[t->verdict->task_end.level]++;
    if (t->end)
        add_flows(s->flow, t->end);
    return 0;
}

void trp_summarised_free(struct trp_summarised *s)
{
    if (!s)
        return;
    trp_durations_free(&s->durations);
    free(s->by_executor);
    free(s);
}

void trp_statistics_settle(struct trp_statistics *s)
{
    for (uint32_t i = 0; i < s->nexecutors; i++)
        if (s->executors[i].live)
            give(s, &s->executors[i], s->last);
    give_nodes(s, s->last);
}

static void stage_free(struct trp_stage_statistics *st)
{
    trp_durations_free(&st->durations);
    trp_summarised_free(st->summarised);
    free(st->accumulated);
    free(st->held);
    free(st->used);
    free(st->name);
    free(st->parents);
    free(st);
}

/* ---- many stages of one name ---- */

struct trp_stage_fold {
    struct trp_stage_statistics *into;
    UT_hash_handle hh;
    char key[];
};

static void fold_seconds(struct trp_seconds **to, struct trp_seconds **from)
{
    if (!*to) {
        *to = *from;
        *from = NULL;
        return;
    }
    for (uint32_t i = 0; *from && i < TRP_PROFILE_RESOURCES; i++)
        (*to)->devices[i] += (*from)->devices[i];
    (*to)->cores += *from ? (*from)->cores : 0;
}

static void fold_time(struct trp_stage_statistics *to,
                      const struct trp_stage_statistics *from)
{
    int64_t begin = from->submitted > 0 ? from->submitted : from->ended;
    if (to->folded == 0)
        to->folded_until = to->ended;
    begin = begin > to->folded_until ? begin : to->folded_until;
    if (from->ended <= begin)
        return;
    to->folded_ns += from->ended - begin;
    to->folded_until = from->ended;
}

static void fold(struct trp_stage_statistics *to, struct trp_stage_statistics *from)
{
    fold_time(to, from);
    to->folded += 1 + from->folded;
    to->ntasks += from->ntasks;
    to->attempts += from->attempts;
    to->failures += from->failures;
    to->given_up += from->given_up;
    to->skipped += from->skipped;
    to->cpu += from->cpu;
    to->node_seconds += from->node_seconds;
    trp_durations_merge(&to->durations, &from->durations);
    trp_flows_add(to->flow, from->flow);
    fold_seconds(&to->held, &from->held);
    fold_seconds(&to->used, &from->used);
}

void trp_statistics_fold(struct trp_statistics *s, trp_stage_id stage)
{
    struct trp_stage_statistics *st = trp_statistics_own(s, stage.n);
    struct trp_stage_fold *f;
    char stem[300], key[400];
    if (!st || !st->name || st->open || st->runs || st->summarised ||
        s->nkept <= TRP_STATISTICS_STAGES)
        return;
    snprintf(key, sizeof key, "%u %d %d %s", st->profile.n, (int)st->outcome,
             st->submitted > 0, trp_name_stem(st->name, stem, sizeof stem));
    HASH_FIND_STR(s->folds, key, f);
    if (f) {
        fold(f->into, st);
        s->stages[stage.n] = f->into;
        s->nkept--;
        stage_free(st);
        return;
    }
    f = calloc(1, sizeof *f + strlen(key) + 1);
    if (!f)
        return;
    strcpy(f->key, key);
    f->into = st;
    HASH_ADD_STR(s->folds, key, f);
    if (!f->hh.tbl)
        free(f);
}

void trp_statistics_free(struct trp_statistics *s)
{
    struct trp_stage_fold *f, *next;
    HASH_ITER(hh, s->folds, f, next) {
        HASH_DEL(s->folds, f);
        free(f);
    }
    for (uint32_t i = 0; i < s->nstages; i++)
        if (s->stages[i] && s->stages[i]->stage.n != i)
            s->stages[i] = NULL;
    for (uint32_t i = 0; i < s->nstages; i++)
        if (s->stages[i])
            stage_free(s->stages[i]);
    for (uint32_t i = 0; i < s->nexecutors; i++)
        free(s->executors[i].uses);
    for (uint32_t i = 0; i < s->naccumulated; i++)
        free(s->accumulated[i].name);
    free(s->accumulated);
    free(s->stages);
    free(s->executors);
    free(s->shapes);
}
