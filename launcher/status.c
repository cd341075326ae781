/*
 * `troupe status`: where a run is. The document comes from its driver or its log
 * (asking.h); here it becomes a table.
 *
 * With many stages, those whose names differ in the number at their end and that are in
 * the same state are one row. Where that is still too much, those that ended well and
 * began first are left out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "args.h"
#include "asking.h"
#include "commands.h"
#include "conf/table.h"
#include "conf/wording.h"

enum { ROWS = 40, WAITS = 12, KEY = 700 };

static struct {
    const char *run, *runs;
    bool json, all;
} call;

/* Stages that are told together. */
struct row {
    char key[KEY];
    const char *state, *profile;
    char name[300];
    uint32_t stages;
    int64_t tasks, done, running, pending, given_up, skipped, failures;
    int64_t began, ended; /* ms: the first, the last; began INT64_MAX: none has */
    bool open;            /* one has not ended */
    uint32_t place;       /* of its first stage */
    bool shown;
    UT_hash_handle hh;
};

/* ---- rows ---- */

static void add(struct row *r, const json_t *s)
{
    int64_t began = trp_asking_int(s, "began"), ended = trp_asking_int(s, "ended");
    r->stages++;
    r->tasks += trp_asking_int(s, "tasks");
    r->done += trp_asking_int(s, "done");
    r->running += trp_asking_int(s, "running");
    r->pending += trp_asking_int(s, "pending");
    r->given_up += trp_asking_int(s, "given_up");
    r->skipped += trp_asking_int(s, "skipped");
    r->failures += trp_asking_int(s, "failures");
    if (began && began < r->began)
        r->began = began;
    if (ended > r->ended)
        r->ended = ended;
    r->open |= !ended;
}

static struct row *row_of(struct row **table, const json_t *s, uint32_t place,
                          bool together)
{
    struct row *r = NULL;
    char key[KEY], stem[300];
    const char *state = trp_asking_text(s, "state"), *name = trp_asking_text(s, "name");
    snprintf(stem, sizeof stem, "%s", name);
    if (together)
        trp_name_stem(name, stem, sizeof stem);
    snprintf(key, sizeof key, "%s/%s", state, stem);
    if (!together)
        snprintf(key, sizeof key, "%u", place);
    HASH_FIND_STR(*table, key, r);
    if (r || !(r = calloc(1, sizeof *r)))
        return r;
    strcpy(r->key, key);
    snprintf(r->name, sizeof r->name, "%s", stem);
    r->state = state;
    r->profile = trp_asking_text(s, "profile");
    r->began = INT64_MAX;
    r->place = place;
    HASH_ADD_STR(*table, key, r);
    return r;
}

static struct row *make_rows(const json_t *stages)
{
    struct row *table = NULL;
    const json_t *s;
    size_t i;
    bool together = !call.all && json_array_size(stages) > ROWS;
    json_array_foreach(stages, i, s) {
        struct row *r = row_of(&table, s, (uint32_t)i, together);
        if (r)
            add(r, s);
    }
    return table;
}

static bool ended_well(const struct row *r)
{
    return strcmp(r->state, "succeeded") == 0;
}

static int by_time(const struct row *a, const struct row *b)
{
    if (a->began != b->began)
        return a->began < b->began ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* All that have not ended well, then the latest of the others. */
static void choose(struct row *table)
{
    uint32_t room = call.all ? UINT32_MAX : ROWS;
    for (struct row *r = table; r; r = r->hh.next)
        if (room && !ended_well(r)) {
            r->shown = true;
            room--;
        }
    struct row *last = table;
    while (last && last->hh.next)
        last = last->hh.next;
    for (struct row *r = last; r && room; r = r->hh.prev)
        if (!r->shown && ended_well(r)) {
            r->shown = true;
            room--;
        }
}

static void free_rows(struct row *table)
{
    struct row *r, *next;
    HASH_ITER(hh, table, r, next) {
        HASH_DEL(table, r);
        free(r);
    }
}

/* ---- the table ---- */

static void print_row(trp_table *t, const struct row *r, int64_t now)
{
    char wall[32] = "";
    if (r->began != INT64_MAX)
        trp_asking_time((r->open ? now : r->ended) - r->began, wall, sizeof wall);
    if (r->stages > 1)
        trp_table_cell(t, "%s ×%u", r->name, r->stages);
    else
        trp_table_cell(t, "%s", r->name);
    trp_table_cell(t, "%s", r->state);
    trp_table_cell(t, "%s", r->profile);
    trp_table_cell(t, "%" PRId64, r->tasks);
    trp_table_cell(t, "%" PRId64, r->done);
    trp_table_cell(t, "%" PRId64, r->running);
    trp_table_cell(t, "%" PRId64, r->failures);
    trp_table_cell(t, "%" PRId64, r->given_up + r->skipped);
    trp_table_cell(t, "%s", wall);
}

static int print_stages(const json_t *document, trp_error *err)
{
    static const struct trp_table_column columns[] = {
        {"stage",    NULL, false, false},
        {"state",    NULL, false, false},
        {"profile",  NULL, false, false},
        {"tasks",    NULL, true,  false},
        {"done",     NULL, true,  false},
        {"running",  NULL, true,  false},
        {"failed",   NULL, true,  false},
        {"given up", NULL, true,  false},
        {"wall",     NULL, true,  false},
    };
    const json_t *stages = json_object_get(document, "stages");
    int64_t now = trp_asking_int(document, "now");
    if (!json_array_size(stages))
        return 0;
    struct row *table = make_rows(stages);
    uint32_t left = (uint32_t)trp_asking_int(document, "left_out");
    HASH_SORT(table, by_time);
    choose(table);
    trp_table *t = trp_table_new(columns, sizeof columns / sizeof *columns);
    for (const struct row *r = table; r; r = r->hh.next) {
        if (r->shown)
            print_row(t, r, now);
        else
            left += r->stages;
    }
    free_rows(table);
    putchar('\n');
    int code = trp_table_print(t, stdout, err);
    if (left)
        printf("and %u more stage%s that ended%s\n", left, left == 1 ? "" : "s",
               call.all ? "" : " (--all)");
    return code;
}

/* ---- what is waited for ---- */

static int print_waits(const json_t *stages)
{
    struct row *table = NULL;
    const json_t *s;
    size_t i;
    uint32_t lines = 0, left = 0;
    json_array_foreach(stages, i, s) {
        char why[KEY], name[300];
        struct row *r = NULL;
        const char *text = trp_asking_text(s, "why");
        if (!*text)
            continue;
        if (call.all) {
            snprintf(name, sizeof name, "%s", trp_asking_text(s, "name"));
            snprintf(why, sizeof why, "%.690s", text);
        } else {
            trp_name_stem(trp_asking_text(s, "name"), name, sizeof name);
            trp_name_stem(text, why, sizeof why - 1);
        }
        char key[KEY];
        snprintf(key, sizeof key, "%.200s: %.490s", name, why);
        HASH_FIND_STR(table, key, r);
        if (!r && (r = calloc(1, sizeof *r))) {
            strcpy(r->key, key);
            snprintf(r->name, sizeof r->name, "%s", trp_asking_text(s, "name"));
            r->state = text;
            HASH_ADD_STR(table, key, r);
        }
        if (r && r->stages++ == 1)
            snprintf(r->name, sizeof r->name, "%s", name);
    }
    for (const struct row *r = table; r; r = r->hh.next) {
        char first[400];
        if (lines++ >= WAITS && !call.all) {
            left += r->stages;
            continue;
        }
        snprintf(first, sizeof first, r->stages > 1 ? "%s ×%u: " : "%s: ", r->name,
                 r->stages);
        if (lines == 1)
            putchar('\n');
        trp_text_wrap(r->stages > 1 ? r->key + strlen(r->name) + 2 : r->state, first, 4,
                      stdout);
    }
    free_rows(table);
    if (left)
        printf("and %u more stages wait (--all)\n", left);
    return 0;
}

static void print_executors(const json_t *document)
{
    const json_t *p;
    size_t i;
    json_array_foreach(json_object_get(document, "executors"), i, p) {
        int64_t up = trp_asking_int(p, "up"), coming = trp_asking_int(p, "coming");
        const char *needs = trp_asking_text(p, "needs");
        printf("%s%" PRId64 " executor%s of profile %s", i ? "" : "\n", up,
               up == 1 ? "" : "s", trp_asking_text(p, "profile"));
        if (*needs)
            printf(" (%s)", needs);
        if (coming)
            printf(", %" PRId64 " asked for", coming);
        putchar('\n');
    }
}

static void print_head(const json_t *document)
{
    const json_t *s;
    size_t i;
    int64_t tasks = 0, done = 0, running = 0, lost = 0;
    char took[32];
    json_array_foreach(json_object_get(document, "stages"), i, s) {
        tasks += trp_asking_int(s, "tasks");
        done += trp_asking_int(s, "done");
        running += trp_asking_int(s, "running");
        lost += trp_asking_int(s, "given_up") + trp_asking_int(s, "skipped");
    }
    int64_t ended = trp_asking_int(document, "ended");
    trp_asking_time((ended ? ended : trp_asking_int(document, "now")) -
                        trp_asking_int(document, "started"),
                    took, sizeof took);
    printf("%s: %s", trp_asking_text(document, "run"),
           trp_asking_text(document, "status"));
    if (*trp_asking_text(document, "host"))
        printf(" on %s", trp_asking_text(document, "host"));
    printf(", %s%s", ended ? "" : "for ", took);
    if (ended)
        printf(", exit status %" PRId64, trp_asking_int(document, "exit"));
    printf("; %" PRId64 " of %" PRId64 " tasks done, %" PRId64 " running", done, tasks,
           running);
    if (lost)
        printf(", %" PRId64 " given up or skipped", lost);
    putchar('\n');
}

static int print(const json_t *document, trp_error *err)
{
    if (call.json) {
        json_dumpf(document, stdout, JSON_COMPACT);
        putchar('\n');
        return 0;
    }
    print_head(document);
    int code = print_stages(document, err);
    print_executors(document);
    print_waits(json_object_get(document, "stages"));
    return code;
}

/* ---- the call ---- */

static const struct trp_arg table[] = {
    TRP_ARGS_FLAG("all", &call.all, "each stage in a line of its own"),
    TRP_ARGS_JSON(&call.json),
    TRP_ARGS_RUNS(&call.runs),
    TRP_ARGS_END,
};

static int on_argument(struct trp_args *a, int what, const char *value, trp_error *err)
{
    (void)a;
    if (what != TRP_ARG_WORD || call.run)
        return trp_error_set(err, TRP_EINVAL, "status: one RUN, please");
    call.run = value;
    return 0;
}

int trp_launcher_status(int argc, char **argv)
{
    static const struct trp_line line = {
        "status",
        "usage: troupe status [options] [RUN]\n\n"
        "Shows where a run is: its stages, its executors, and what stages wait for. "
        "RUN\n"
        "is a name that troupe ls shows or a path of a run's folder; without it, it "
        "is\n"
        "the newest run of this folder. A run on this host answers itself; of another "
        "one\n"
        "its event log is read.\n\n",
        "", table, on_argument};
    struct trp_asking a;
    json_t *document = NULL;
    trp_error err;
    int code = trp_args_read(&line, argc, argv, &err);
    if (code != 0)
        return trp_launcher_read(code, &err);
    code = trp_asking_find(call.runs, call.run, &a, &err);
    if (code < 0)
        return trp_launcher_fail(&err);
    code = trp_asking_status(&a, &document, &err);
    if (code == 0)
        trp_asking_tell(&a);
    if (code == 0)
        code = print(document, &err);
    json_decref(document);
    trp_asking_free(&a);
    return code < 0 ? trp_launcher_fail(&err) : trp_launcher_printed(0);
}
