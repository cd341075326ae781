/*
 * The comparison with Slurm's accounting as text: a row a profile, each figure of ours
 * beside Slurm's; then each step that ended otherwise than Slurm says.
 */
#include <string.h>

#include "conf/table.h"
#include "events/summary.h"
#include "report.h"

enum { CELL = 32, TOLD = 20 /* steps; --json has all */ };

/* How much more Slurm has: "+0.4 %". */
static void differ_text(double ours, double slurm, char *buf)
{
    if (slurm > 0)
        snprintf(buf, CELL, "%+.1f %%", 100 * (slurm - ours) / ours);
    else
        snprintf(buf, CELL, "-");
    if (ours <= 0)
        snprintf(buf, CELL, "-");
}

static void pair_cells(trp_table *t, double ours, double slurm)
{
    char o[CELL], s[CELL], d[CELL];
    trp_seconds_text(ours, o, sizeof o);
    trp_seconds_text(slurm, s, sizeof s);
    differ_text(ours, slurm, d);
    trp_table_cell(t, "%s", o);
    trp_table_cell(t, "%s", s);
    trp_table_cell(t, "%s", d);
}

static void sum_row(trp_table *t, const struct trp_account_sum *s)
{
    trp_table_cell(t, "%s", s->profile ? s->profile : "total");
    trp_table_cell(t, "%u", s->steps);
    trp_table_cell(t, "%u", s->completed);
    pair_cells(t, s->held, s->slurm_held);
    pair_cells(t, s->cpu, s->slurm_cpu);
    trp_table_cell(t, "%.1f", (double)s->peak_kib / 1024);
    trp_table_cell(t, "%.1f", (double)s->slurm_peak_kib / 1024);
}

static int print_sums(const struct trp_account *a, FILE *out, trp_error *err)
{
    static const struct trp_table_column columns[] = {
        {"profile",   NULL,           false, false},
        {"steps",     NULL,           true,  false},
        {"COMPLETED", NULL,           true,  false},
        {"ours",      "core-seconds", true,  false},
        {"Slurm",     NULL,           true,  false},
        {"differ",    NULL,           true,  false},
        {"ours",      "CPU seconds",  true,  true },
        {"Slurm",     NULL,           true,  false},
        {"differ",    NULL,           true,  false},
        {"ours",      "peak MiB",     true,  false},
        {"Slurm",     NULL,           true,  false},
    };
    trp_table *t = trp_table_new(columns, sizeof columns / sizeof *columns);
    for (uint32_t i = 0; i < a->nprofiles; i++)
        sum_row(t, &a->profiles[i]);
    sum_row(t, &a->total);
    return trp_table_print(t, out, err);
}

static void print_jobs(const struct trp_run_record *r, FILE *out)
{
    fprintf(out, "Slurm's accounting of job%s ", r->njobs == 1 ? "" : "s");
    for (uint32_t i = 0; i < r->njobs; i++)
        fprintf(out, "%s%u%s", i ? ", " : "", r->jobs[i].id,
                r->jobs[i].additional ? " (additional)" : "");
    fputs(":\n\n", out);
}

static void print_disagreement(const struct trp_account_step *s, FILE *out)
{
    const struct trp_sacct_row *row = s->slurm;
    fprintf(out, "step %u.%lld, %s: %s here; %s, exit %d:%d, in Slurm\n", row->job,
            (long long)row->step, s->ours->name,
            s->ours->failed ? s->ours->end : "ended well", row->state, row->exit_status,
            row->signal);
}

static void print_disagreements(const struct trp_account *a, FILE *out)
{
    uint32_t told = 0;
    for (uint32_t i = 0; i < a->nsteps && told < TOLD; i++) {
        if (!a->steps[i].slurm || a->steps[i].agree)
            continue;
        print_disagreement(&a->steps[i], out);
        told++;
    }
    if (told < a->total.disagree)
        fprintf(out, "and %u more such steps\n", a->total.disagree - told);
}

int trp_report_account_print(const struct trp_run_record *r,
                             const struct trp_account *a, FILE *out, trp_error *err)
{
    char held[CELL], jobs[CELL];
    print_jobs(r, out);
    if (print_sums(a, out, err) < 0)
        return err->code;
    trp_seconds_text(a->total.slurm_held, held, sizeof held);
    trp_seconds_text(a->job_held, jobs, sizeof jobs);
    fprintf(out, "\ncore-seconds of the jobs: %s, of these steps: %s\n", jobs, held);
    print_disagreements(a, out);
    if (a->never)
        fprintf(out, "left out: steps that ended before they ran anything: %u\n",
                a->never);
    if (a->open)
        fprintf(out, "left out: steps whose end the event log does not tell: %u\n",
                a->open);
    return 0;
}

int trp_report_account_lacks(const struct trp_account *a, trp_error *err)
{
    for (uint32_t i = 0; i < a->nsteps; i++)
        if (!a->steps[i].slurm)
            return trp_error_set(
                err, TRP_ESYSTEM,
                "sacct has no row, or none that is over, of %u of %u steps; the first: "
                "%s in job %u; Slurm may not have written them yet: try again in a "
                "while",
                a->lacking, a->nsteps, a->steps[i].ours->name, a->steps[i].ours->job);
    return 0;
}
