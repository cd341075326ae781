/*
 * Each attempt adds to at most TRP_PAGE_BINS bins. Lines are made when something is
 * added to them. Which stages have one of their own is found out before: by core-seconds
 * used.
 */
#include "events/page/series.h"

#include <stdlib.h>
#include <string.h>

struct maker {
    const struct trp_page_facts *f;
    const struct trp_page_axis *axis;
    struct trp_page_series *s;
    uint32_t *line_of_stage; /* by place */
};

static void add(struct maker *m, struct trp_page_line *l, uint32_t quantity,
                int64_t from, int64_t to, double amount)
{
    if (amount <= 0 || to <= from)
        return;
    if (!l->v[quantity])
        l->v[quantity] = calloc(TRP_PAGE_BINS, sizeof *l->v[quantity]);
    m->s->failed |= !l->v[quantity];
    struct trp_page_bins bins = {l->v[quantity], TRP_PAGE_BINS, m->axis->length};
    if (bins.v)
        trp_page_bins_add(&bins, from, to, amount);
}

static struct trp_page_line *of_profile(const struct maker *m,
                                        enum trp_page_measure measure, uint32_t place)
{
    uint32_t last = m->s->nprofiles - 1;
    return &m->s->profiles[measure][place < last ? place : last];
}

/* ---- tasks ---- */

struct use {
    int64_t from, to;
    double tasks; /* at once */
    double mib;
};

static void add_use(struct maker *m, struct trp_page_line *l, uint32_t profile,
                    const struct use *u)
{
    const struct trp_page_profile *p = &m->f->profiles[profile];
    add(m, l, 0, u->from, u->to, u->tasks * p->task_cpus);
    add(m, l, 1, u->from, u->to, u->mib);
    for (uint32_t i = 0; i < m->f->ndevices; i++)
        add(m, l, 2 + i, u->from, u->to, u->tasks * p->per_task[i]);
}

/* `gang`: its ranks are held as long, and by nobody else. */
static void add_uses(struct maker *m, uint32_t stage, bool gang, const struct use *u)
{
    uint32_t profile = m->f->stages[stage].profile;
    if (profile == TRP_NONE)
        return;
    add_use(m, of_profile(m, TRP_PAGE_USED, profile), profile, u);
    add_use(m, &m->s->stages[m->line_of_stage[stage]], profile, u);
    if (gang)
        add_use(m, of_profile(m, TRP_PAGE_HELD, profile), profile, u);
}

static void add_tasks(struct maker *m)
{
    const struct trp_page_facts *f = m->f;
    for (uint32_t i = 0; i < f->ntasks; i++) {
        const struct trp_page_task *t = &f->tasks[i];
        struct use u = {.from = trp_page_axis_at(m->axis, t->begun),
                        .to = trp_page_axis_at(m->axis, trp_page_task_end(f, t)),
                        .tasks = t->ranks ? t->ranks : 1,
                        .mib = t->peak_mib};
        add_uses(m, t->stage, t->executor == TRP_NONE, &u);
    }
    for (uint32_t i = 0; i < f->nsums; i++) {
        const struct trp_page_sum *g = &f->sums[i];
        struct use u = {.from = trp_page_axis_at(m->axis, g->from),
                        .to = trp_page_axis_at(m->axis, g->to)};
        u.tasks = u.to > u.from ? (double)g->run_ms / (double)(u.to - u.from) : 0;
        add_uses(m, g->stage, g->executor == TRP_NONE, &u);
    }
}

/* ---- executors ---- */

static void add_executor(struct maker *m, enum trp_page_measure measure,
                         uint32_t profile, double cores, int64_t from, int64_t to)
{
    const struct trp_page_profile *p = &m->f->profiles[profile];
    struct trp_page_line *l = of_profile(m, measure, profile);
    from = trp_page_axis_at(m->axis, from);
    to = trp_page_axis_at(m->axis, to);
    add(m, l, 0, from, to, cores);
    add(m, l, 1, from, to, p->memory_mib);
    for (uint32_t i = 0; i < m->f->ndevices; i++)
        add(m, l, 2 + i, from, to, p->devices[i]);
}

static void add_executors(struct maker *m)
{
    const struct trp_page_facts *f = m->f;
    for (uint32_t i = 0; i < f->nexecutors; i++) {
        const struct trp_page_executor *x = &f->executors[i];
        if (x->profile != TRP_NONE && x->asked)
            add_executor(m, TRP_PAGE_ASKED, x->profile,
                         x->cores > 0 ? x->cores : f->profiles[x->profile].cores,
                         x->asked, trp_page_executor_came(f, x));
    }
    for (uint32_t i = 0; i < f->nspans; i++) {
        const struct trp_page_span *s = &f->spans[i];
        if (s->profile != TRP_NONE)
            add_executor(m, TRP_PAGE_HELD, s->profile, f->executors[s->executor].cores,
                         s->from, trp_page_span_end(f, s));
    }
}

/* ---- lines ---- */

struct weight {
    double used;
    uint32_t stage;
};

static int by_weight(const void *a, const void *b)
{
    const struct weight *x = a, *y = b;
    if (x->used != y->used)
        return x->used > y->used ? -1 : 1;
    return x->stage < y->stage ? -1 : x->stage > y->stage;
}

static int by_stage(const void *a, const void *b)
{
    const struct weight *x = a, *y = b;
    return x->stage < y->stage ? -1 : x->stage > y->stage;
}

static void weigh(const struct trp_page_facts *f, struct weight *w)
{
    for (uint32_t i = 0; i < f->nstages; i++)
        w[i].stage = i;
    for (uint32_t i = 0; i < f->ntasks; i++) {
        const struct trp_page_task *t = &f->tasks[i];
        w[t->stage].used += (double)(trp_page_task_end(f, t) - t->begun);
    }
    for (uint32_t i = 0; i < f->nsums; i++)
        w[f->sums[i].stage].used += (double)f->sums[i].run_ms;
}

/* The stages that used most have lines, in their own order; then comes the rest. */
static bool choose(struct maker *m)
{
    const struct trp_page_facts *f = m->f;
    uint32_t most =
        f->nstages < TRP_PAGE_SERIES_STAGES ? f->nstages : TRP_PAGE_SERIES_STAGES;
    struct weight *w = calloc((size_t)f->nstages + 1, sizeof *w);
    m->line_of_stage = calloc((size_t)f->nstages + 1, sizeof *m->line_of_stage);
    m->s->stages = calloc((size_t)most + 1, sizeof *m->s->stages);
    if (w && m->line_of_stage && m->s->stages) {
        weigh(f, w);
        qsort(w, f->nstages, sizeof *w, by_weight);
        qsort(w, most, sizeof *w, by_stage);
        for (uint32_t i = 0; i < f->nstages; i++)
            m->line_of_stage[w[i].stage] = i < most ? i : most;
        for (uint32_t i = 0; i < most; i++)
            m->s->stages[i].which = w[i].stage;
        m->s->stages[most].which = TRP_NONE;
        m->s->nstages = most + 1;
    }
    free(w);
    return m->s->nstages > 0;
}

static bool make_profiles(struct maker *m)
{
    uint32_t n = m->f->nprofiles < TRP_PAGE_SERIES_PROFILES ? m->f->nprofiles
                                                            : TRP_PAGE_SERIES_PROFILES;
    m->s->nprofiles = n + 1;
    for (int i = 0; i < TRP_PAGE_MEASURES; i++) {
        m->s->profiles[i] = calloc((size_t)n + 1, sizeof *m->s->profiles[i]);
        if (!m->s->profiles[i])
            return false;
        for (uint32_t k = 0; k <= n; k++)
            m->s->profiles[i][k].which = k < n ? k : TRP_NONE;
    }
    return true;
}

int trp_page_series_make(const struct trp_page_facts *f, const struct trp_page_axis *a,
                         struct trp_page_series *ret)
{
    *ret = (struct trp_page_series){0};
    struct maker m = {.f = f, .axis = a, .s = ret};
    ret->failed = !make_profiles(&m) || !choose(&m);
    if (!ret->failed) {
        add_tasks(&m);
        add_executors(&m);
    }
    free(m.line_of_stage);
    if (!ret->failed)
        return 0;
    trp_page_series_free(ret);
    return TRP_ENOMEM;
}

static void free_lines(struct trp_page_line *v, uint32_t n)
{
    for (uint32_t i = 0; v && i < n; i++)
        for (uint32_t k = 0; k < TRP_PAGE_QUANTITIES; k++)
            free(v[i].v[k]);
    free(v);
}

void trp_page_series_free(struct trp_page_series *s)
{
    for (int i = 0; i < TRP_PAGE_MEASURES; i++)
        free_lines(s->profiles[i], s->nprofiles);
    free_lines(s->stages, s->nstages);
    *s = (struct trp_page_series){0};
}
