/*
 * Everything is drawn anew each time; what has not changed is not written (top_screen.h).
 */
#include "top_draw.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "asking.h"
#include "core/base/array.h"
#include "stage_rows.h"
#include "top_parts.h"
#include "top_screen.h"

enum {
    ROWS_FOR_COUNTS = 12, /* a terminal of so many has a third row about the run */
    STAGES_LEAST = 4,     /* rows of their part, with its head */
    BAR_MOST = 40,
    NOTE_MOST = 4, /* rows */
};

/* ---- about the run ---- */

static enum trp_colour status_colour(const char *status)
{
    if (strcmp(status, "running") == 0 || strcmp(status, "succeeded") == 0)
        return TRP_COLOUR_GOOD;
    return strcmp(status, "stopping") == 0 ? TRP_COLOUR_WARN : TRP_COLOUR_BAD;
}

static void put_run(const json_t *d, const struct trp_top_view *v,
                    struct trp_top_lines *to)
{
    struct trp_top_line l;
    char took[32];
    const char *status = trp_asking_text(d, "status"),
               *host = trp_asking_text(d, "host");
    int64_t ended = trp_asking_int(d, "ended"), now = trp_asking_int(d, "now");
    trp_top_line_begin(&l, v->columns, v->utf8);
    trp_top_line_look(&l, TRP_LOOK_BOLD, TRP_COLOUR_NONE);
    trp_top_line_put(&l, trp_asking_text(d, "run"), -1, TRP_LEFT);
    trp_top_line_look(&l, TRP_LOOK_BOLD, status_colour(status));
    trp_top_line_printf(&l, " %s", status);
    trp_top_line_look(&l, TRP_LOOK_PLAIN, TRP_COLOUR_NONE);
    if (ended)
        trp_top_line_printf(&l, ", exit status %" PRId64 ",",
                            trp_asking_int(d, "exit"));
    trp_top_time((ended ? ended : now) - trp_asking_int(d, "started"), took,
                 sizeof took);
    trp_top_line_printf(&l, " %s %s", ended ? "after" : "for", took);
    if (*host)
        trp_top_line_printf(&l, " on %s", host);
    trp_top_add(to, &l);
}

/* "3m20s left", "more than 3m20s left". */
static void left_text(const json_t *d, char *buf, size_t size)
{
    char time[32];
    const json_t *left = json_object_get(d, "left");
    int64_t least = trp_asking_int(d, "left_least");
    if (json_is_integer(left))
        snprintf(buf, size, ", %s left",
                 trp_top_time(json_integer_value(left), time, sizeof time));
    else if (least)
        snprintf(buf, size, ", more than %s left",
                 trp_top_time(least, time, sizeof time));
    else
        snprintf(buf, size, ", ? left");
}

static void put_tasks(const json_t *d, const struct trp_stage_sums *sums,
                      const struct trp_top_view *v, struct trp_top_lines *to)
{
    struct trp_top_line l;
    char left[64] = "", rate[32] = "", running[32] = "";
    const json_t *speed = json_object_get(d, "rate");
    bool live = strcmp(trp_asking_text(d, "status"), "running") == 0;
    int bar = v->columns / 3 < BAR_MOST ? v->columns / 3 : BAR_MOST;
    if (live)
        left_text(d, left, sizeof left);
    if (live && json_is_number(speed))
        trp_top_rate(json_number_value(speed), rate, sizeof rate);
    if (live)
        snprintf(running, sizeof running, ", %" PRId64 " running", sums->running);
    trp_top_line_begin(&l, v->columns, v->utf8);
    int64_t done = trp_asking_int(d, "done"), tasks = trp_asking_int(d, "tasks");
    trp_top_line_bar(&l, done, tasks, bar);
    trp_top_line_printf(&l, " %" PRId64 "/%" PRId64 " tasks%s%s%s%s", done, tasks, left,
                        running, *rate ? ", " : "", rate);
    trp_top_add(to, &l);
}

static int64_t sum_of(const json_t *array, const char *key)
{
    const json_t *x;
    size_t i;
    int64_t sum = 0;
    json_array_foreach(array, i, x)
        sum += trp_asking_int(x, key);
    return sum;
}

static void put_counts(const json_t *d, const struct trp_stage_sums *sums,
                       const struct trp_top_view *v, struct trp_top_lines *to)
{
    struct trp_top_line l;
    const json_t *x = json_object_get(d, "executors");
    int64_t left_out = trp_asking_int(d, "left_out"), up = sum_of(x, "up");
    size_t jobs = json_array_size(json_object_get(d, "jobs"));
    trp_top_line_begin(&l, v->columns, v->utf8);
    trp_top_line_printf(&l, "%" PRId64 "/%" PRId64 " stages ended",
                        sums->ended + left_out, sums->stages + left_out);
    if (up)
        trp_top_line_printf(&l, ", %" PRId64 " of %" PRId64 " executors busy",
                            sum_of(x, "busy"), up);
    if (jobs)
        trp_top_line_printf(&l, ", %zu Slurm job%s", jobs, jobs == 1 ? "" : "s");
    if (sums->failures) {
        trp_top_line_look(&l, TRP_LOOK_PLAIN, TRP_COLOUR_BAD);
        trp_top_line_printf(&l, ", %" PRId64 " failed attempt%s", sums->failures,
                            sums->failures == 1 ? "" : "s");
    }
    if (sums->lost) {
        trp_top_line_look(&l, TRP_LOOK_PLAIN, TRP_COLOUR_BAD);
        trp_top_line_printf(&l, ", %" PRId64 " given up or skipped", sums->lost);
    }
    trp_top_add(to, &l);
}

static void put_top(const json_t *d, const struct trp_top_view *v,
                    struct trp_top_lines *to)
{
    struct trp_stage_sums sums = trp_stage_sums_of(json_object_get(d, "stages"));
    bool large = v->rows >= ROWS_FOR_COUNTS;
    put_run(d, v, to);
    put_tasks(d, &sums, v, to);
    if (large)
        put_counts(d, &sums, v, to);
    trp_top_text(trp_asking_text(d, "note"), v, TRP_COLOUR_WARN, large ? NOTE_MOST : 1,
                 to);
}

/* ---- the parts ---- */

static void make_part(enum trp_top_part p, const json_t *d,
                      const struct trp_top_view *v, int room, struct trp_top_lines *to)
{
    switch (p) {
    case TRP_TOP_STAGES:
        trp_top_stages(d, v, room - 1, to);
        break;
    case TRP_TOP_EXECUTORS:
        trp_top_executors(d, v, to);
        break;
    case TRP_TOP_JOBS:
        trp_top_jobs(d, v, to);
        break;
    case TRP_TOP_WAITS:
        trp_top_waits(d, v, to);
        break;
    default:
        break;
    }
}

/* How many rows each of the other parts gets, with its head, of `room`: a head and a row
 * each, as far as that goes, then a row each in turn. Returns what is left. */
static int share_out(const struct trp_top_lines parts[TRP_TOP_PARTS], int room,
                     int ret_rows[TRP_TOP_PARTS])
{
    static const enum trp_top_part order[] = {TRP_TOP_WAITS, TRP_TOP_EXECUTORS,
                                              TRP_TOP_JOBS};
    for (int i = 0; i < 3; i++) {
        enum trp_top_part p = order[i];
        ret_rows[p] = parts[p].n && room >= 2 ? 2 : 0;
        room -= ret_rows[p];
    }
    for (bool more = true; more && room > 0;) {
        more = false;
        for (int i = 0; i < 3 && room > 0; i++) {
            enum trp_top_part p = order[i];
            if (!ret_rows[p] || ret_rows[p] >= (int)parts[p].n)
                continue;
            ret_rows[p]++;
            room--;
            more = true;
        }
    }
    return room;
}

static void put_blank(const struct trp_top_view *v, struct trp_top_lines *to)
{
    struct trp_top_line l;
    trp_top_line_begin(&l, v->columns, v->utf8);
    trp_top_add(to, &l);
}

static void put_more(const struct trp_top_view *v, uint32_t n, struct trp_top_lines *to)
{
    struct trp_top_line l;
    trp_top_line_begin(&l, v->columns, v->utf8);
    trp_top_line_printf(&l, "  and %u more (Tab)", n);
    trp_top_add(to, &l);
}

static void move(struct trp_top_lines *to, struct trp_top_lines *from, uint32_t i)
{
    if (!TRP_ARRAY_GROW(to->v, to->n, to->cap))
        return;
    to->v[to->n++] = from->v[i];
    from->v[i] = NULL;
}

/* A part in so many rows, from its top on. */
static void put_cut(struct trp_top_lines *part, int rows, const struct trp_top_view *v,
                    struct trp_top_lines *to)
{
    bool whole = (int)part->n <= rows;
    uint32_t n = whole ? part->n : (uint32_t)rows - (rows > 2);
    for (uint32_t i = 0; i < n; i++)
        move(to, part, i);
    if (!whole && rows > 2)
        put_more(v, part->n - n, to);
}

/* The one that scrolls: its head, and of its rows those that are to be seen. */
static void put_scrolled(struct trp_top_lines *part, int rows, struct trp_top_view *v,
                         struct trp_top_lines *to)
{
    int all = part->n ? (int)part->n - 1 : 0, page = rows > 1 ? rows - 1 : 0;
    v->scroll_page = page > 0 ? page : 1;
    v->scroll_most = all > page ? all - page : 0;
    if (v->scroll > v->scroll_most)
        v->scroll = v->scroll_most;
    if (v->scroll < 0)
        v->scroll = 0;
    if (part->n && rows > 0)
        move(to, part, 0);
    for (int i = v->scroll; i < all && i < v->scroll + page; i++)
        move(to, part, (uint32_t)i + 1);
}

static void put_all(const json_t *d, struct trp_top_view *v, int room,
                    struct trp_top_lines *to)
{
    struct trp_top_lines parts[TRP_TOP_PARTS] = {0};
    int rows[TRP_TOP_PARTS] = {0}, others = 0;
    for (enum trp_top_part p = TRP_TOP_EXECUTORS; p < TRP_TOP_PARTS; p++) {
        make_part(p, d, v, 0, &parts[p]);
        others += (int)parts[p].n;
    }
    /* Stages have what the others leave, and half of it at least. */
    int stages = room - others, least = room / 2;
    least = least > STAGES_LEAST ? least : STAGES_LEAST;
    make_part(TRP_TOP_STAGES, d, v, stages > least ? stages : least,
              &parts[TRP_TOP_STAGES]);
    least = least < (int)parts[TRP_TOP_STAGES].n ? least : (int)parts[TRP_TOP_STAGES].n;
    least = least < room ? least : room;
    int spare = share_out(parts, room - least, rows);
    int free_rows = least + spare - (int)parts[TRP_TOP_STAGES].n;
    put_scrolled(&parts[TRP_TOP_STAGES], least + spare, v, to);
    for (enum trp_top_part p = TRP_TOP_EXECUTORS; p < TRP_TOP_PARTS; p++) {
        if (rows[p] && free_rows-- > 0)
            put_blank(v, to);
        put_cut(&parts[p], rows[p], v, to);
    }
    for (int p = 0; p < TRP_TOP_PARTS; p++)
        trp_top_lines_free(&parts[p]);
}

static void put_one(const json_t *d, struct trp_top_view *v, int room,
                    struct trp_top_lines *to)
{
    static const char *const nothing[] = {[TRP_TOP_STAGES] = "no stages",
                                          [TRP_TOP_EXECUTORS] = "no executors",
                                          [TRP_TOP_JOBS] = "no Slurm jobs",
                                          [TRP_TOP_WAITS] = "nothing waits"};
    struct trp_top_lines part = {0};
    struct trp_top_line l;
    make_part(v->part, d, v, room, &part);
    if (!part.n) {
        trp_top_head(&l, v);
        trp_top_line_put(&l, nothing[v->part], -1, TRP_LEFT);
        trp_top_add(&part, &l);
    }
    put_scrolled(&part, room, v, to);
    trp_top_lines_free(&part);
}

static void put_help(const struct trp_top_view *v, struct trp_top_lines *to)
{
    static const char *const keys[][2] = {
        {"q",             "quit"                                                 },
        {"up down k j",   "scroll by a row; PgUp PgDn b Space: by a page"        },
        {"Home End",      "to the first row, to the last one"                    },
        {"Tab 0 1 2 3 4", "all parts; stages, executors, jobs, waits alone"      },
        {"s",             "order: by state, name, begin, time left"              },
        {"f",             "stages: all, those that have not ended, with failures"},
        {"g",             "each stage in a row of its own, or alike ones in one" },
        {"r",             "look again now"                                       },
        {"? h",           "this; any key leaves it"                              },
        {"rate, left",    "of the last minute; ? where it is not known"          },
    };
    struct trp_top_line l;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        trp_top_line_begin(&l, v->columns, v->utf8);
        trp_top_line_look(&l, TRP_LOOK_BOLD, TRP_COLOUR_NONE);
        trp_top_line_put(&l, keys[i][0], 15, TRP_LEFT);
        trp_top_line_look(&l, TRP_LOOK_PLAIN, TRP_COLOUR_NONE);
        trp_top_line_put(&l, keys[i][1], v->columns - 15, TRP_LEFT);
        trp_top_add(to, &l);
    }
}

/* ---- the last row ---- */

/* As many of the keys as there is room for beside what was chosen. */
static void put_keys(const struct trp_top_view *v, const char *chosen,
                     struct trp_top_line *l)
{
    static const char *const keys[] = {"q quit",  "? help",   "Tab parts",
                                       "s order", "f filter", "g group"};
    int room = v->columns - trp_top_columns(chosen, v->utf8);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int width = (int)strlen(keys[i]) + 2;
        if (i && l->used + width > room)
            break;
        trp_top_line_put(l, keys[i], width, TRP_LEFT);
    }
    trp_top_line_put(l, chosen, v->columns - l->used, TRP_RIGHT);
}

static void put_foot(const struct trp_top_view *v, struct trp_top_lines *to)
{
    static const char *const orders[] = {[TRP_TOP_BY_STATE] = "state",
                                         [TRP_TOP_BY_NAME] = "name",
                                         [TRP_TOP_BY_BEGIN] = "begin",
                                         [TRP_TOP_BY_LEFT] = "time left"};
    static const char *const filters[] = {[TRP_TOP_ANY] = "all",
                                          [TRP_TOP_OPEN] = "not ended",
                                          [TRP_TOP_FAILED] = "with failures"};
    struct trp_top_line l;
    char where[64] = "", chosen[128];
    if (v->scroll_most)
        snprintf(where, sizeof where, "%d-%d of %d  ", v->scroll + 1,
                 v->scroll + v->scroll_page, v->scroll_most + v->scroll_page);
    snprintf(chosen, sizeof chosen, "%sby %s, %s", where, orders[v->order],
             filters[v->filter]);
    trp_top_line_begin(&l, v->columns, v->utf8);
    trp_top_line_look(&l, TRP_LOOK_REVERSE, TRP_COLOUR_NONE);
    if (v->news)
        trp_top_line_put(&l, v->news, v->columns, TRP_LEFT);
    else
        put_keys(v, chosen, &l);
    trp_top_add(to, &l);
}

void trp_top_draw(const json_t *document, struct trp_top_view *v,
                  struct trp_top_frame *ret)
{
    struct trp_top_lines all = {0};
    if (document)
        put_top(document, v, &all);
    int room = v->rows - 1 - (int)all.n;
    if (v->help)
        put_help(v, &all);
    else if (document && v->part == TRP_TOP_ALL)
        put_all(document, v, room > 0 ? room : 0, &all);
    else if (document)
        put_one(document, v, room > 0 ? room : 0, &all);
    while ((int)all.n > v->rows - 1)
        free(all.v[--all.n]);
    for (int i = (int)all.n; i < v->rows - 1; i++)
        put_blank(v, &all);
    put_foot(v, &all);
    *ret = (struct trp_top_frame){.lines = all.v, .n = (int)all.n};
}

void trp_top_frame_free(struct trp_top_frame *f)
{
    for (int i = 0; i < f->n; i++)
        free(f->lines[i]);
    free(f->lines);
    *f = (struct trp_top_frame){0};
}

/* ---- choosing ---- */

static void show_part(struct trp_top_view *v, int part)
{
    v->part = (enum trp_top_part)part;
    v->scroll = 0;
}

static bool scroll(struct trp_top_view *v, int key)
{
    switch (key) {
    case TRP_KEY_UP:
    case 'k':
        v->scroll--;
        break;
    case TRP_KEY_DOWN:
    case 'j':
        v->scroll++;
        break;
    case TRP_KEY_PAGE_UP:
    case 'b':
        v->scroll -= v->scroll_page;
        break;
    case TRP_KEY_PAGE_DOWN:
    case ' ':
        v->scroll += v->scroll_page;
        break;
    case TRP_KEY_HOME:
        v->scroll = 0;
        break;
    case TRP_KEY_END:
        v->scroll = v->scroll_most;
        break;
    default:
        return false;
    }
    return true;
}

bool trp_top_choose(struct trp_top_view *v, int key)
{
    if (v->help) {
        v->help = false;
        return true;
    }
    if (scroll(v, key))
        return true;
    if (key >= '0' && key < '0' + TRP_TOP_PARTS)
        show_part(v, key - '0');
    else if (key == '\t')
        show_part(v, (v->part + 1) % TRP_TOP_PARTS);
    else if (key == '?' || key == 'h')
        v->help = true;
    else if (key == 's')
        v->order = (v->order + 1) % TRP_TOP_ORDERS;
    else if (key == 'f')
        v->filter = (v->filter + 1) % TRP_TOP_FILTERS;
    else if (key == 'g')
        v->each = !v->each;
    else
        return false;
    return true;
}
