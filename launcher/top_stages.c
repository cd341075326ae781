/*
 * The table of stages. Columns come in an order of importance; those for which there is
 * no room are left out, and what is left over goes to names, then to bars.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "asking.h"
#include "stage_rows.h"
#include "top_parts.h"

enum {
    NAME_LEAST = 12,
    NAME_FIRST = 32, /* names of so many columns come before what is not needed */
    NEEDED = 3,      /* columns that come before names that are longer */
    NAME_MOST = 48,
    BAR_LEAST = 8,
    BAR_MOST = 40,
    TASKS_LEAST = 5,
    PROFILE_MOST = 16,
};

enum column { STATE, BAR, TASKS, RUNNING, FAILED, RATE, LEFT, WALL, PROFILE, COLUMNS };

/* Columns that each takes, with the blank before it; 0: it is left out. */
struct widths {
    int name, of[COLUMNS];
};

/* ---- order ---- */

static int rank_of(const struct trp_stage_row *r)
{
    static const char *const states[] = {"running", "ready", "", "waiting",
                                         "succeeded"};
    for (int i = 0; i < 5; i++)
        if (strcmp(r->state, states[i]) == 0)
            return i;
    return 2; /* it ended, not well */
}

static int compare(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_place(const struct trp_stage_row *a, const struct trp_stage_row *b)
{
    return compare(a->place, b->place);
}

static int by_state(const struct trp_stage_row *a, const struct trp_stage_row *b)
{
    int rank = rank_of(a), other = rank_of(b);
    if (rank != other)
        return rank - other;
    if (a->ended != b->ended && !a->open && !b->open) /* the last first */
        return compare(b->ended, a->ended);
    return by_place(a, b);
}

static int by_name(const struct trp_stage_row *a, const struct trp_stage_row *b)
{
    int order = strcmp(a->name, b->name);
    return order ? order : by_place(a, b);
}

static int by_begin(const struct trp_stage_row *a, const struct trp_stage_row *b)
{
    return a->began != b->began ? compare(a->began, b->began) : by_place(a, b);
}

/* The longest first; those of which it is not known after those, what ended last. */
static int by_left(const struct trp_stage_row *a, const struct trp_stage_row *b)
{
    int64_t left = a->open ? a->left : -2, other = b->open ? b->left : -2;
    return left != other ? compare(other, left) : by_place(a, b);
}

static bool passes(const struct trp_stage_row *r, enum trp_top_filter filter)
{
    return filter == TRP_TOP_ANY || (filter == TRP_TOP_OPEN && r->open) ||
           (filter == TRP_TOP_FAILED && (r->failures || r->given_up || r->skipped));
}

/* ---- cells ---- */

static void name_of(const struct trp_stage_row *r, bool utf8, char *buf, size_t size)
{
    if (r->stages > 1)
        snprintf(buf, size, "%s %s%u", r->name, utf8 ? "×" : "x", r->stages);
    else
        snprintf(buf, size, "%s", r->name);
}

static void tasks_of(const struct trp_stage_row *r, char *buf, size_t size)
{
    snprintf(buf, size, "%" PRId64 "/%" PRId64, r->done, r->tasks);
}

static int number_width(int64_t n, int least)
{
    int width = snprintf(NULL, 0, "%" PRId64, n);
    return width > least ? width : least;
}

/* What is in the rows decides how wide columns want to be. */
static void natural(struct trp_stage_row *rows, bool utf8, struct widths *ret)
{
    char text[TRP_ROW_NAME + 16];
    int tasks = TASKS_LEAST, running = 3, failed = 4, profile = 7;
    *ret = (struct widths){.name = NAME_LEAST};
    for (const struct trp_stage_row *r = rows; r; r = r->hh.next) {
        name_of(r, utf8, text, sizeof text);
        int name = trp_top_columns(text, utf8);
        ret->name = name > ret->name ? name : ret->name;
        tasks_of(r, text, sizeof text);
        tasks = (int)strlen(text) > tasks ? (int)strlen(text) : tasks;
        running = number_width(r->running, running);
        failed = number_width(r->failures, failed);
        int p = trp_top_columns(r->profile, utf8);
        profile = p > profile ? p : profile;
    }
    const int of[COLUMNS] = {[STATE] = 10,
                             [BAR] = BAR_LEAST + 1,
                             [TASKS] = tasks + 1,
                             [RUNNING] = running + 1,
                             [FAILED] = failed + 1,
                             [RATE] = 8,
                             [LEFT] = 8,
                             [WALL] = 8,
                             [PROFILE] =
                                 (profile < PROFILE_MOST ? profile : PROFILE_MOST) + 1};
    memcpy(ret->of, of, sizeof of);
}

static void choose_widths(struct trp_stage_row *rows, const struct trp_top_view *v,
                          struct widths *ret)
{
    static const enum column order[] = {TASKS, LEFT, RUNNING, STATE,  FAILED,
                                        RATE,  BAR,  WALL,    PROFILE};
    struct widths want;
    natural(rows, v->utf8, &want);
    int room = v->columns - NAME_LEAST,
        name = want.name < NAME_MOST ? want.name : NAME_MOST;
    int more = (name < NAME_FIRST ? name : NAME_FIRST) - NAME_LEAST;
    *ret = (struct widths){.name = NAME_LEAST};
    for (int i = 0; i < COLUMNS; i++) {
        int width = want.of[order[i]];
        if (width + (i < NEEDED ? 0 : more) > room)
            break;
        ret->of[order[i]] = width;
        room -= width;
    }
    more = name - ret->name < room ? name - ret->name : room;
    ret->name += more > 0 ? more : 0;
    room -= more > 0 ? more : 0;
    if (ret->of[BAR])
        ret->of[BAR] += room < BAR_MOST - BAR_LEAST ? room : BAR_MOST - BAR_LEAST;
    else if (room > 0)
        ret->name += room;
}

static void put_cell(struct trp_top_line *l, const struct widths *w, enum column c,
                     const char *text, enum trp_align align)
{
    if (!w->of[c])
        return;
    trp_top_line_put(l, " ", 1, TRP_LEFT);
    trp_top_line_put(l, text, w->of[c] - 1, align);
}

static void put_number(struct trp_top_line *l, const struct widths *w, enum column c,
                       int64_t n)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, n);
    put_cell(l, w, c, n ? text : "", TRP_RIGHT);
}

static enum trp_colour state_colour(const struct trp_stage_row *r)
{
    switch (rank_of(r)) {
    case 0:
        return TRP_COLOUR_GOOD;
    case 1:
        return TRP_COLOUR_WARN;
    case 2:
        return TRP_COLOUR_BAD;
    default:
        return TRP_COLOUR_NONE;
    }
}

static void put_row(const struct trp_stage_row *r, const struct widths *w, int64_t now,
                    const struct trp_top_view *v, struct trp_top_lines *to)
{
    struct trp_top_line l;
    char text[TRP_ROW_NAME + 16], rate[32] = "", left[32] = "", wall[32] = "";
    bool runs = r->open && r->began != INT64_MAX && r->running;
    trp_top_line_begin(&l, v->columns, v->utf8);
    name_of(r, v->utf8, text, sizeof text);
    trp_top_line_put(&l, text, w->name, TRP_LEFT);
    trp_top_line_look(&l, TRP_LOOK_PLAIN, state_colour(r));
    put_cell(&l, w, STATE, r->state, TRP_LEFT);
    trp_top_line_look(&l, TRP_LOOK_PLAIN, TRP_COLOUR_NONE);
    if (w->of[BAR]) {
        trp_top_line_put(&l, " ", 1, TRP_LEFT);
        trp_top_line_bar(&l, r->done, r->tasks, w->of[BAR] - 1);
    }
    tasks_of(r, text, sizeof text);
    put_cell(&l, w, TASKS, text, TRP_RIGHT);
    put_number(&l, w, RUNNING, r->running);
    if (r->failures)
        trp_top_line_look(&l, TRP_LOOK_PLAIN, TRP_COLOUR_BAD);
    put_number(&l, w, FAILED, r->failures);
    trp_top_line_look(&l, TRP_LOOK_PLAIN, TRP_COLOUR_NONE);
    if (runs) {
        trp_top_rate(r->rate, rate, sizeof rate);
        trp_top_time(r->left, left, sizeof left);
    }
    if (r->began != INT64_MAX)
        trp_top_time((r->open ? now : r->ended) - r->began, wall, sizeof wall);
    put_cell(&l, w, RATE, rate, TRP_RIGHT);
    put_cell(&l, w, LEFT, left, TRP_RIGHT);
    put_cell(&l, w, WALL, wall, TRP_RIGHT);
    put_cell(&l, w, PROFILE, r->profile, TRP_LEFT);
    trp_top_add(to, &l);
}

static void put_head(const struct widths *w, const struct trp_top_view *v,
                     struct trp_top_lines *to)
{
    static const struct {
        enum column c;
        const char *text;
        enum trp_align align;
    } heads[] = {
        {STATE,   "state",    TRP_LEFT },
        {BAR,     "progress", TRP_LEFT },
        {TASKS,   "done",     TRP_RIGHT},
        {RUNNING, "run",      TRP_RIGHT},
        {FAILED,  "fail",     TRP_RIGHT},
        {RATE,    "rate",     TRP_RIGHT},
        {LEFT,    "left",     TRP_RIGHT},
        {WALL,    "wall",     TRP_RIGHT},
        {PROFILE, "profile",  TRP_LEFT },
    };
    struct trp_top_line l;
    trp_top_head(&l, v);
    trp_top_line_put(&l, "stage", w->name, TRP_LEFT);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        put_cell(&l, w, heads[i].c, heads[i].text, heads[i].align);
    trp_top_add(to, &l);
}

/* Those that run are told one by one while they have room beside the others. */
static enum trp_stages_as how(const json_t *stages, const struct trp_top_view *v,
                              int room)
{
    const json_t *s;
    size_t i;
    int running = 0;
    if (v->each || json_array_size(stages) <= (size_t)(room > 0 ? room : 0))
        return TRP_STAGES_EACH;
    json_array_foreach(stages, i, s)
        running += strcmp(trp_asking_text(s, "state"), "running") == 0;
    return running <= room / 2 ? TRP_STAGES_RUNNING_EACH : TRP_STAGES_TOGETHER;
}

void trp_top_stages(const json_t *document, const struct trp_top_view *v, int room,
                    struct trp_top_lines *to)
{
    static int (*const orders[])(const struct trp_stage_row *,
                                 const struct trp_stage_row *) = {
        [TRP_TOP_BY_STATE] = by_state,
        [TRP_TOP_BY_NAME] = by_name,
        [TRP_TOP_BY_BEGIN] = by_begin,
        [TRP_TOP_BY_LEFT] = by_left};
    const json_t *stages = json_object_get(document, "stages");
    struct widths w;
    if (!json_array_size(stages))
        return;
    struct trp_stage_row *rows = trp_stage_rows_make(stages, how(stages, v, room));
    HASH_SORT(rows, orders[v->order]);
    choose_widths(rows, v, &w);
    put_head(&w, v, to);
    for (const struct trp_stage_row *r = rows; r; r = r->hh.next)
        if (passes(r, v->filter))
            put_row(r, &w, trp_asking_int(document, "now"), v, to);
    trp_stage_rows_free(rows);
}
