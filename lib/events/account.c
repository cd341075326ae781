/*
 * Rows are found in a table of those that belong to steps, sorted by job, name, start:
 * O((steps + rows) log rows).
 */
#include "events/account.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"

static int by_name(const void *a, const void *b)
{
    const struct trp_sacct_row *x = *(const struct trp_sacct_row *const *)a;
    const struct trp_sacct_row *y = *(const struct trp_sacct_row *const *)b;
    if (x->job != y->job)
        return x->job < y->job ? -1 : 1;
    int order = strcmp(x->name, y->name);
    if (order)
        return order;
    return (x->start_s > y->start_s) - (x->start_s < y->start_s);
}

struct table {
    const struct trp_sacct_row **rows;
    uint32_t n;
};

/* Slurm has whole seconds: a step that began in the second in which ours ended has. */
static const struct trp_sacct_row *find(const struct table *t,
                                        const struct trp_run_step *s)
{
    const struct trp_sacct_row key = {
        .job = s->job, .name = s->name, .start_s = s->ended / 1000000000 + 1};
    uint32_t low = 0, high = t->n;
    while (low < high) { /* the first that comes after the key */
        uint32_t middle = low + (high - low) / 2;
        const struct trp_sacct_row *k = &key;
        if (by_name(&t->rows[middle], &k) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    const struct trp_sacct_row *r = low ? t->rows[low - 1] : NULL;
    return r && r->job == s->job && strcmp(r->name, s->name) == 0 ? r : NULL;
}

static void add_step(struct trp_account_sum *sum, const struct trp_account_step *s)
{
    sum->steps++;
    sum->held += s->held;
    sum->slurm_held += (double)s->slurm->elapsed_s * (double)s->slurm->cpus;
    sum->cpu += s->ours->cpu;
    sum->slurm_cpu += s->slurm->cpu_s;
    if (s->ours->peak_kib > sum->peak_kib)
        sum->peak_kib = s->ours->peak_kib;
    if (s->slurm->rss_kib > sum->slurm_peak_kib)
        sum->slurm_peak_kib = s->slurm->rss_kib;
    sum->completed += strcmp(s->slurm->state, "COMPLETED") == 0;
    sum->disagree += !s->agree;
}

static struct trp_account_sum *sum_of(struct trp_account *a, const char *profile)
{
    for (uint32_t i = 0; i < a->nprofiles; i++)
        if (strcmp(a->profiles[i].profile, profile) == 0)
            return &a->profiles[i];
    if (!TRP_ARRAY_GROW(a->profiles, a->nprofiles, a->profiles_capacity))
        return NULL;
    a->profiles[a->nprofiles] = (struct trp_account_sum){.profile = profile};
    return &a->profiles[a->nprofiles++];
}

static int compare_step(struct trp_account *a, const struct trp_run_record *ours,
                        const struct trp_run_step *s, const struct table *t)
{
    if (!s->began || !s->ended) {
        a->never += !s->began && (s->ended || ours->complete);
        a->open += !s->ended && !(ours->complete && !s->began);
        return 0;
    }
    struct trp_account_step step = {.ours = s,
                                    .slurm = find(t, s),
                                    .held = s->cores * (double)(s->ended - s->began) *
                                            1e-9};
    if (step.slurm && !trp_sacct_is_over(step.slurm))
        step.slurm = NULL;
    if (!TRP_ARRAY_GROW(a->steps, a->nsteps, a->capacity))
        return TRP_ENOMEM;
    if (step.slurm) {
        struct trp_account_sum *sum = sum_of(a, trp_run_step_profile(ours, s));
        if (!sum)
            return TRP_ENOMEM;
        step.agree = s->failed == (strcmp(step.slurm->state, "COMPLETED") != 0);
        add_step(sum, &step);
        add_step(&a->total, &step);
    } else {
        a->lacking++;
    }
    a->steps[a->nsteps++] = step;
    return 0;
}

static bool is_of(const struct trp_run_record *ours, uint32_t job)
{
    for (uint32_t i = 0; i < ours->njobs; i++)
        if (ours->jobs[i].id == job)
            return true;
    return false;
}

int trp_account_make(const struct trp_run_record *ours, const struct trp_sacct *slurm,
                     struct trp_account *ret)
{
    struct table t = {.rows = calloc(slurm->n + 1u, sizeof *t.rows)};
    int code = t.rows ? 0 : TRP_ENOMEM;
    *ret = (struct trp_account){0};
    for (uint32_t i = 0; i < slurm->n && code == 0; i++) {
        const struct trp_sacct_row *r = &slurm->rows[i];
        if (r->step >= 0)
            t.rows[t.n++] = r;
        else if (r->is_job && is_of(ours, r->job))
            ret->job_held += (double)r->elapsed_s * (double)r->cpus;
    }
    if (t.n > 0)
        qsort(t.rows, t.n, sizeof *t.rows, by_name);
    for (uint32_t i = 0; i < ours->nsteps && code == 0; i++)
        code = compare_step(ret, ours, &ours->steps[i], &t);
    free(t.rows);
    if (code < 0)
        trp_account_free(ret);
    return code;
}

void trp_account_free(struct trp_account *a)
{
    free(a->steps);
    free(a->profiles);
    *a = (struct trp_account){0};
}
