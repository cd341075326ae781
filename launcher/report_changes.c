/*
 * What changed from one run to the other, in words: which stages got slower or quicker,
 * held more or less, are in one of them only; and what does not compare.
 *
 * A difference is worth a word from one per cent on, and from 10 ms or 0.1 of a second
 * held: what is below that differs from run to run.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conf/table.h"
#include "events/summary.h"
#include "os/colour.h"
#include "report.h"

enum { CELL = 64, TOLD = 6 /* stages of a kind of change */ };
static const double WORTH_PART = 0.01, WORTH_WALL = 0.01, WORTH_HELD = 0.1;

/* A text that grows. */
struct text {
    char *v;
    size_t size;
    FILE *out; /* NULL: out of memory */
};

static bool begin(struct text *t)
{
    *t = (struct text){0};
    t->out = open_memstream(&t->v, &t->size);
    return t->out;
}

/* Prints it, and ends it. */
static void show(struct text *t, enum trp_colour colour)
{
    fclose(t->out);
    if (t->v) {
        fputs(trp_colour(1, colour), stdout);
        trp_text_wrap(t->v, "", 2, stdout);
        fputs(trp_colour(1, TRP_COLOUR_NONE), stdout);
    }
    free(t->v);
}

/* ---- differences ---- */

const char *trp_report_end_word(const struct trp_compared *r)
{
    if (r->nstages == 0)
        return "-";
    if (r->outcome == TRP_OUTCOME_RUNNING)
        return r->waited ? "not run" : "unfinished";
    return trp_outcome_name(r->outcome);
}

char *trp_report_part_text(double a, double b, char *buf, size_t size)
{
    double part = trp_comparison_part(a, b);
    if (!isfinite(part) || b <= 0)
        buf[0] = '\0';
    else if (part >= 2)
        snprintf(buf, size, "×%.*f", part < 9 ? 1 : 0, part + 1);
    else
        snprintf(buf, size, "%+.*f%%", fabs(part) < 0.0995 ? 1 : 0, 100 * part);
    return buf;
}

/* "+1.25s (+35%)": of seconds, and of core-seconds. */
static void put_change(FILE *out, double a, double b, bool held)
{
    char by[CELL], part[CELL];
    if (held)
        trp_seconds_text(fabs(b - a), by, sizeof by);
    else
        trp_time_text((int64_t)(fabs(b - a) * 1e9), by, sizeof by);
    trp_report_part_text(a, b, part, sizeof part);
    fprintf(out, "%c%s%s%s%s", b < a ? '-' : '+', by, *part ? " (" : "", part,
            *part ? ")" : "");
}

/* ---- stages that changed ---- */

struct change {
    const char *head;
    int sign; /* of what B has more */
    bool held;
    enum trp_colour colour;
};

struct changed {
    const struct trp_comparison_row *row;
    double more;
};

static double value(const struct trp_compared *r, bool held)
{
    return held ? r->held.cores : (double)r->wall_ns * 1e-9;
}

/* Both ran the stage, and it ended in one way: what never ran, or failed halfway, is
 * neither quicker nor slower. */
static bool compares(const struct trp_comparison_row *r)
{
    const struct trp_compared *a = &r->of[0], *b = &r->of[1];
    return a->submitted && b->submitted &&
           strcmp(trp_report_end_word(a), trp_report_end_word(b)) == 0;
}

/* By how much the row has changed that way; 0: not worth a word. */
static double by_how_much(const struct trp_comparison_row *r, const struct change *k)
{
    double a = value(&r->of[0], k->held), b = value(&r->of[1], k->held);
    double more = k->sign * (b - a);
    if (!compares(r) || more < (k->held ? WORTH_HELD : WORTH_WALL) ||
        more < WORTH_PART * fmax(a, b))
        return 0;
    return more;
}

static int most_first(const void *a, const void *b)
{
    const struct changed *x = a, *y = b;
    if (x->more != y->more)
        return x->more > y->more ? -1 : 1;
    return x->row->first < y->row->first ? -1 : x->row->first > y->row->first;
}

static int print_change(const struct trp_comparison *c, const struct change *k)
{
    struct changed *v = calloc(c->n + 1u, sizeof *v);
    struct text t;
    uint32_t n = 0;
    if (!v || !begin(&t)) {
        free(v);
        return TRP_ENOMEM;
    }
    for (uint32_t i = 0; i < c->n; i++) {
        double more = by_how_much(c->rows[i], k);
        if (more > 0)
            v[n++] = (struct changed){c->rows[i], more};
    }
    qsort(v, n, sizeof *v, most_first);
    fputs(k->head, t.out);
    for (uint32_t i = 0; i < n && i < TOLD; i++) {
        const struct trp_compared *of = v[i].row->of;
        fprintf(t.out, "%s%s ", i ? ", " : " ", v[i].row->name);
        put_change(t.out, value(&of[0], k->held), value(&of[1], k->held), k->held);
    }
    if (n > TOLD)
        fprintf(t.out, ", and %u more", n - TOLD);
    if (n == 0)
        fputs(" nothing", t.out);
    show(&t, n ? k->colour : TRP_COLOUR_NONE);
    free(v);
    return 0;
}

/* Stages that the other run does not have. */
static int print_only(const struct trp_comparison *c, int side)
{
    struct text t;
    uint32_t n = 0;
    if (!begin(&t))
        return TRP_ENOMEM;
    fprintf(t.out, "only in %c:", "AB"[side]);
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->rows[i]->of[!side].nstages)
            continue;
        if (n < TOLD)
            fprintf(t.out, "%s%s", n ? ", " : " ", c->rows[i]->name);
        n++;
    }
    if (n > TOLD)
        fprintf(t.out, ", and %u more", n - TOLD);
    if (n) {
        show(&t, TRP_COLOUR_NONE);
        return 0;
    }
    fclose(t.out);
    free(t.v);
    return 0;
}

/* ---- the whole of both ---- */

static void put_seconds(FILE *out, const char *what, double a, double b)
{
    if (a <= 0 && b <= 0)
        return;
    fprintf(out, ", %s ", what);
    put_change(out, a, b, true);
}

static int print_total(const struct trp_comparison *c)
{
    const struct trp_compared *a = &c->total.of[0], *b = &c->total.of[1];
    struct text t;
    if (!begin(&t))
        return TRP_ENOMEM;
    fputs("in all: wall ", t.out);
    put_change(t.out, (double)a->wall_ns * 1e-9, (double)b->wall_ns * 1e-9, false);
    put_seconds(t.out, "core-seconds held", a->held.cores, b->held.cores);
    put_seconds(t.out, "used", a->used.cores, b->used.cores);
    put_seconds(t.out, "CPU time", a->cpu, b->cpu);
    for (uint32_t i = 0; i < c->ndevices; i++) {
        char what[CELL];
        snprintf(what, sizeof what, "%.*s-seconds held", CELL - 16, c->device[i]);
        put_seconds(t.out, what, a->held.devices[i], b->held.devices[i]);
    }
    put_seconds(t.out, "node-seconds", a->nodes, b->nodes);
    if (a->failures != b->failures)
        fprintf(t.out, ", failed attempts %+lld",
                (long long)(b->failures - a->failures));
    show(&t, TRP_COLOUR_NONE);
    return 0;
}

int trp_report_changes_print(const struct trp_report_side side[2],
                             const struct trp_comparison *c)
{
    static const struct change kinds[] = {
        {"slower:",    1,  false, TRP_COLOUR_BAD },
        {"quicker:",   -1, false, TRP_COLOUR_GOOD},
        {"held more:", 1,  true,  TRP_COLOUR_BAD },
        {"held less:", -1, true,  TRP_COLOUR_GOOD},
    };
    int code = 0;
    putchar('\n');
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && code == 0; i++)
        code = print_change(c, &kinds[i]);
    for (int i = 0; i < 2 && code == 0; i++)
        code = print_only(c, i);
    if (code == 0)
        code = print_total(c);
    char *caveats = code == 0 ? trp_report_caveats(side, c) : NULL, *rest = caveats;
    for (const char *line; rest && (line = strsep(&rest, "\n")) && *line;) {
        fputs(trp_colour(1, TRP_COLOUR_WARN), stdout);
        trp_text_wrap(line, "note: ", 6, stdout);
        fputs(trp_colour(1, TRP_COLOUR_NONE), stdout);
    }
    code = code < 0 || caveats ? code : TRP_ENOMEM;
    free(caveats);
    return code;
}

/* ---- what does not compare ---- */

static bool in_both(const struct trp_comparison_row *r)
{
    return r->of[0].nstages && r->of[1].nstages;
}

static void put_runs(FILE *out, const struct trp_report_side side[2])
{
    const char *name[2];
    for (int i = 0; i < 2; i++) {
        const struct trp_report_side *s = &side[i];
        name[i] = s->runs->v[0]->app_name ? s->runs->v[0]->app_name : "?";
        if (s->live)
            fprintf(out, "%c goes on: its figures are those up to now\n", "AB"[i]);
        else if (!s->runs->v[s->runs->n - 1]->complete)
            fprintf(out, "%c has not ended (%s): its figures are those up to there\n",
                    "AB"[i], s -> state);
    }
    if (strcmp(name[0], name[1]) != 0)
        fprintf(out, "these are runs of two applications: A of %s, B of %s\n", name[0],
                name[1]);
}

/* Of those stages that both have and of which this cannot be compared: the first. */
static void put_stages(FILE *out, const struct trp_comparison *c)
{
    const struct trp_comparison_row *tasks = NULL, *shape = NULL, *end = NULL;
    uint32_t ntasks = 0, nshape = 0, nend = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct trp_comparison_row *r = c->rows[i];
        const struct trp_compared *a = &r->of[0], *b = &r->of[1];
        if (!in_both(r))
            continue;
        if (a->tasks != b->tasks && ntasks++ == 0)
            tasks = r;
        if (a->profile && b->profile &&
            (strcmp(a->profile, b->profile) != 0 || a->cores != b->cores) &&
            nshape++ == 0)
            shape = r;
        if (strcmp(trp_report_end_word(a), trp_report_end_word(b)) != 0 && nend++ == 0)
            end = r;
    }
    if (tasks)
        fprintf(out, "%s has %llu task%s in A, %llu in B%s: times of tasks compare\n",
                tasks->name, (unsigned long long)tasks->of[0].tasks,
                tasks->of[0].tasks == 1 ? "" : "s",
                (unsigned long long)tasks->of[1].tasks,
                ntasks > 1 ? ", and others differ so, too" : "");
    if (shape)
        fprintf(
            out, "%s ran in executors of %s (%.0f cores) in A, of %s (%.0f) in B%s\n",
            shape->name, shape->of[0].profile, shape->of[0].cores, shape->of[1].profile,
            shape->of[1].cores, nshape > 1 ? ", and others differ so, too" : "");
    if (end)
        fprintf(out, "%s ended otherwise in A (%s) than in B (%s)%s\n", end->name,
                trp_report_end_word(&end->of[0]), trp_report_end_word(&end->of[1]),
                nend > 1 ? ", and others did, too" : "");
}

char *trp_report_caveats(const struct trp_report_side side[2],
                         const struct trp_comparison *c)
{
    struct text t;
    bool nodes[2] = {c->total.of[0].nodes > 0, c->total.of[1].nodes > 0};
    if (!begin(&t))
        return NULL;
    put_runs(t.out, side);
    if (c->in_both == 0)
        fputs("they have no stage in common: nothing compares but the totals\n", t.out);
    else
        put_stages(t.out, c);
    if (nodes[0] != nodes[1])
        fprintf(t.out, "only %c held nodes of Slurm's\n", nodes[0] ? 'A' : 'B');
    fclose(t.out);
    return t.v;
}
