#include "top_parts.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "asking.h"
#include "core/base/array.h"
#include "stage_rows.h"

/* ---- lines ---- */

void trp_top_add(struct trp_top_lines *to, struct trp_top_line *l)
{
    char *copy = strdup(trp_top_line_end(l));
    if (copy && TRP_ARRAY_GROW(to->v, to->n, to->cap))
        to->v[to->n++] = copy;
    else
        free(copy);
}

void trp_top_head(struct trp_top_line *l, const struct trp_top_view *v)
{
    trp_top_line_begin(l, v->columns, v->utf8);
    trp_top_line_look(l, TRP_LOOK_REVERSE, TRP_COLOUR_NONE);
}

void trp_top_lines_free(struct trp_top_lines *l)
{
    for (uint32_t i = 0; i < l->n; i++)
        free(l->v[i]);
    free(l->v);
    *l = (struct trp_top_lines){0};
}

void trp_top_text(const char *text, const struct trp_top_view *v,
                  enum trp_colour colour, int most, struct trp_top_lines *to)
{
    enum { INDENT = 4 };
    struct trp_top_line l;
    for (int row = 0; *text && row < most; row++) {
        int indent = row ? INDENT : 0;
        size_t n = trp_top_wrap(text, v->columns - indent, v->utf8);
        trp_top_line_begin(&l, v->columns, v->utf8);
        trp_top_line_look(&l, TRP_LOOK_PLAIN, colour);
        trp_top_line_put(&l, "", indent, TRP_LEFT);
        if (row + 1 == most) /* cut where that is not all */
            trp_top_line_put(&l, text, v->columns - indent, TRP_LEFT);
        else
            trp_top_line_printf(&l, "%.*s", (int)n, text);
        trp_top_add(to, &l);
        text += n ? n : 1;
        text += strspn(text, " ");
    }
}

/* ---- figures ---- */

char *trp_top_time(int64_t ms, char *buf, size_t size)
{
    long long s = ms / 1000;
    if (ms < 0)
        snprintf(buf, size, "?");
    else if (s < 60)
        snprintf(buf, size, "%llds", s);
    else if (s < 3600)
        snprintf(buf, size, "%lldm%02llds", s / 60, s % 60);
    else if (s < 360000) /* 100 h */
        snprintf(buf, size, "%lldh%02lldm", s / 3600, s / 60 % 60);
    else
        snprintf(buf, size, "%lldd%02lldh", s / 86400, s / 3600 % 24);
    return buf;
}

char *trp_top_rate(double rate, char *buf, size_t size)
{
    const char *unit = "/s";
    if (rate < 0) {
        snprintf(buf, size, "?");
        return buf;
    }
    if (rate > 0 && rate < 0.1) {
        rate *= 60;
        unit = "/m";
    }
    if (rate > 0 && rate < 0.1) {
        rate *= 60;
        unit = "/h";
    }
    snprintf(buf, size, rate < 9.95 ? "%.1f%s" : "%.0f%s", rate, unit);
    return buf;
}

static char *number(int64_t n, char buf[24])
{
    snprintf(buf, 24, "%" PRId64, n);
    return buf;
}

/* The widest of a member's texts, from `least` to `most`. */
static int widest(const json_t *array, const char *key, int least, int most, bool utf8)
{
    const json_t *x;
    size_t i;
    json_array_foreach(array, i, x) {
        int n = trp_top_columns(trp_asking_text(x, key), utf8);
        least = n > least ? n : least;
    }
    return least < most ? least : most;
}

/* ---- executors ---- */

void trp_top_executors(const json_t *document, const struct trp_top_view *v,
                       struct trp_top_lines *to)
{
    static const char *const keys[] = {"up", "busy", "coming", "leaving"};
    static const char *const heads[] = {"up", "busy", "coming", "going"};
    const json_t *executors = json_object_get(document, "executors"), *p;
    struct trp_top_line l;
    size_t i;
    char text[24];
    if (!json_array_size(executors))
        return;
    int name = widest(executors, "profile", 12, v->columns < 60 ? 12 : 30, v->utf8);
    trp_top_head(&l, v);
    trp_top_line_put(&l, "executors of", name, TRP_LEFT);
    for (int k = 0; k < 4; k++)
        trp_top_line_put(&l, heads[k], 7, TRP_RIGHT);
    trp_top_line_put(&l, "  each has", -1, TRP_LEFT);
    trp_top_add(to, &l);
    json_array_foreach(executors, i, p) {
        trp_top_line_begin(&l, v->columns, v->utf8);
        trp_top_line_put(&l, trp_asking_text(p, "profile"), name, TRP_LEFT);
        for (int k = 0; k < 4; k++) {
            int64_t n = trp_asking_int(p, keys[k]);
            trp_top_line_put(&l, n || k < 2 ? number(n, text) : "", 7, TRP_RIGHT);
        }
        trp_top_line_put(&l, "  ", 2, TRP_LEFT);
        trp_top_line_put(&l, trp_asking_text(p, "needs"), l.columns - l.used, TRP_LEFT);
        trp_top_add(to, &l);
    }
}

/* ---- jobs ---- */

static void put_job(const json_t *j, int64_t now, int profile,
                    const struct trp_top_view *v, struct trp_top_lines *to)
{
    struct trp_top_line l;
    char text[24], time[32], when[48] = "";
    int64_t job = trp_asking_int(j, "job"), nodes = trp_asking_int(j, "nodes"),
            start = trp_asking_int(j, "start"), ends = trp_asking_int(j, "ends");
    const char *state = trp_asking_text(j, "state");
    if (ends)
        trp_top_time(ends > now ? ends - now : 0, when, sizeof when);
    else if (start > now)
        snprintf(when, sizeof when, "in %s",
                 trp_top_time(start - now, time, sizeof time));
    trp_top_line_begin(&l, v->columns, v->utf8);
    trp_top_line_put(&l, job ? number(job, text) : "?", 10, TRP_LEFT);
    trp_top_line_look(&l, TRP_LOOK_PLAIN,
                      strcmp(state, "running") == 0 ? TRP_COLOUR_GOOD
                                                    : TRP_COLOUR_WARN);
    trp_top_line_put(&l, " ", 1, TRP_LEFT);
    trp_top_line_put(&l, state, 9, TRP_LEFT);
    trp_top_line_look(&l, TRP_LOOK_PLAIN, TRP_COLOUR_NONE);
    trp_top_line_put(&l, nodes ? number(nodes, text) : "", 6, TRP_RIGHT);
    trp_top_line_put(&l, when, 9, TRP_RIGHT);
    trp_top_line_put(&l, "  ", 2, TRP_LEFT);
    trp_top_line_put(&l,
                     json_is_true(json_object_get(j, "additional"))
                         ? trp_asking_text(j, "profile")
                         : "the run's own",
                     profile, TRP_LEFT);
    trp_top_line_put(&l, " ", 1, TRP_LEFT);
    trp_top_line_put(&l, trp_asking_text(j, "reason"), l.columns - l.used, TRP_LEFT);
    trp_top_add(to, &l);
}

void trp_top_jobs(const json_t *document, const struct trp_top_view *v,
                  struct trp_top_lines *to)
{
    const json_t *jobs = json_object_get(document, "jobs"), *j;
    struct trp_top_line l;
    size_t i;
    if (!json_array_size(jobs))
        return;
    int profile = widest(jobs, "profile", 13, 20, v->utf8);
    trp_top_head(&l, v);
    trp_top_line_put(&l, "Slurm job", 11, TRP_LEFT);
    trp_top_line_put(&l, "state", 9, TRP_LEFT);
    trp_top_line_put(&l, "nodes", 6, TRP_RIGHT);
    trp_top_line_put(&l, "left", 9, TRP_RIGHT);
    trp_top_line_put(&l, "  ", 2, TRP_LEFT);
    trp_top_line_put(&l, "for", profile + 1, TRP_LEFT);
    trp_top_line_put(&l, "reason", -1, TRP_LEFT);
    trp_top_add(to, &l);
    json_array_foreach(jobs, i, j)
        put_job(j, trp_asking_int(document, "now"), profile, v, to);
}

/* ---- what is waited for ---- */

static void put_wait(const struct trp_stage_row *r, const struct trp_top_view *v,
                     struct trp_top_lines *to)
{
    char text[TRP_ROW_NAME + TRP_ROW_KEY + 32];
    if (r->stages > 1)
        snprintf(text, sizeof text, "%s %s%u: %s", r->name, v->utf8 ? "×" : "x",
                 r->stages, trp_wait_row_why(r));
    else
        snprintf(text, sizeof text, "%s: %s", r->name, trp_wait_row_why(r));
    trp_top_text(text, v, TRP_COLOUR_NONE, INT_MAX, to);
}

void trp_top_waits(const json_t *document, const struct trp_top_view *v,
                   struct trp_top_lines *to)
{
    struct trp_top_line l;
    struct trp_stage_row *rows =
        trp_wait_rows_make(json_object_get(document, "stages"), v->each);
    if (!rows)
        return;
    trp_top_head(&l, v);
    trp_top_line_put(&l, "what is waited for", -1, TRP_LEFT);
    trp_top_add(to, &l);
    for (const struct trp_stage_row *r = rows; r; r = r->hh.next)
        put_wait(r, v, to);
    trp_stage_rows_free(rows);
}
