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

#include "args.h"
#include "asking.h"
#include "commands.h"
#include "conf/table.h"
#include "events/json_print.h"
#include "stage_rows.h"

enum { ROWS = 40, WAITS = 12 };

static struct {
    const char *run, *runs;
    bool json, all;
} call;

static int by_time(const struct trp_stage_row *a, const struct trp_stage_row *b)
{
    if (a->began != b->began)
        return a->began < b->began ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* All that have not ended well, then the latest of the others. */
static void choose(struct trp_stage_row *table)
{
    uint32_t room = call.all ? UINT32_MAX : ROWS;
    for (struct trp_stage_row *r = table; r; r = r->hh.next)
        if (room && !trp_stage_row_ended_well(r)) {
            r->shown = true;
            room--;
        }
    struct trp_stage_row *last = table;
    while (last && last->hh.next)
        last = last->hh.next;
    for (struct trp_stage_row *r = last; r && room; r = r->hh.prev)
        if (!r->shown && trp_stage_row_ended_well(r)) {
            r->shown = true;
            room--;
        }
}

/* ---- the table ---- */

static void print_row(trp_table *t, const struct trp_stage_row *r, int64_t now)
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
    bool together = !call.all && json_array_size(stages) > ROWS;
    struct trp_stage_row *table =
        trp_stage_rows_make(stages, together ? TRP_STAGES_TOGETHER : TRP_STAGES_EACH);
    uint32_t left = (uint32_t)trp_asking_int(document, "left_out");
    HASH_SORT(table, by_time);
    choose(table);
    trp_table *t = trp_table_new(columns, sizeof columns / sizeof *columns);
    for (const struct trp_stage_row *r = table; r; r = r->hh.next) {
        if (r->shown)
            print_row(t, r, now);
        else
            left += r->stages;
    }
    trp_stage_rows_free(table);
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
    struct trp_stage_row *table = trp_wait_rows_make(stages, call.all);
    uint32_t lines = 0, left = 0;
    for (const struct trp_stage_row *r = table; r; r = r->hh.next) {
        char first[400];
        if (lines++ >= WAITS && !call.all) {
            left += r->stages;
            continue;
        }
        snprintf(first, sizeof first, r->stages > 1 ? "%s ×%u: " : "%s: ", r->name,
                 r->stages);
        if (lines == 1)
            putchar('\n');
        trp_text_wrap(trp_wait_row_why(r), first, 4, stdout);
    }
    trp_stage_rows_free(table);
    if (left)
        printf("and %u more stages wait (--all)\n", left);
    return 0;
}

static void print_executors(const json_t *document)
{
    const json_t *p;
    size_t i;
    json_array_foreach(json_object_get(document, "executors"), i, p) {
        int64_t up = trp_asking_int(p, "up"), coming = trp_asking_int(p, "coming"),
                busy = trp_asking_int(p, "busy"),
                leaving = trp_asking_int(p, "leaving");
        const char *needs = trp_asking_text(p, "needs");
        printf("%s%" PRId64 " executor%s of profile %s", i ? "" : "\n", up,
               up == 1 ? "" : "s", trp_asking_text(p, "profile"));
        if (*needs)
            printf(" (%s)", needs);
        if (busy)
            printf(", %" PRId64 " with tasks", busy);
        if (coming)
            printf(", %" PRId64 " asked for", coming);
        if (leaving)
            printf(", %" PRId64 " going", leaving);
        putchar('\n');
    }
}

/* "32m05s" from now. */
static char *from_now(int64_t ms, const json_t *document, char *buf, size_t size)
{
    return trp_asking_time(ms - trp_asking_int(document, "now"), buf, size);
}

static void print_jobs(const json_t *document)
{
    const json_t *j;
    size_t i;
    char when[32];
    json_array_foreach(json_object_get(document, "jobs"), i, j) {
        const char *profile = trp_asking_text(j, "profile"),
                   *reason = trp_asking_text(j, "reason");
        int64_t job = trp_asking_int(j, "job"), nodes = trp_asking_int(j, "nodes"),
                start = trp_asking_int(j, "start"), ends = trp_asking_int(j, "ends");
        if (job)
            printf("Slurm job %" PRId64, job);
        else
            fputs("a Slurm job", stdout);
        printf("%s%s: %s", *profile ? " for profile " : "", profile,
               trp_asking_text(j, "state"));
        if (*reason)
            printf(", %s", reason);
        if (nodes)
            printf(", %" PRId64 " node%s", nodes, nodes == 1 ? "" : "s");
        if (start)
            printf(", expected in %s", from_now(start, document, when, sizeof when));
        if (ends)
            printf(", %s left", from_now(ends, document, when, sizeof when));
        putchar('\n');
    }
}

static int print(const json_t *document, trp_error *err)
{
    if (call.json) {
        trp_json_print(document, 0, stdout);
        return 0;
    }
    char head[1024];
    puts(trp_run_line(document, head, sizeof head));
    int code = print_stages(document, err);
    print_executors(document);
    print_jobs(document);
    print_waits(json_object_get(document, "stages"));
    return code;
}

/* ---- the call ---- */

const struct trp_line trp_line_status = {
    "status",
    "usage: troupe status [options] [RUN]\n\n"
    "Shows where a run is: its stages, its executors, and what stages wait for. RUN\n"
    "is a name that troupe ls shows or a path of a run's folder; without it, it is\n"
    "the newest run of this folder. A run on this host answers itself; of another\n"
    "one its event log is read. troupe top shows it live.\n\n",
    "",
    .table =
        TRP_ARGS(TRP_ARGS_FLAG("all", &call.all, "each stage in a line of its own"),
                 TRP_ARGS_JSON(&call.json), TRP_ARGS_RUNS(&call.runs)),
    .words = {&call.run},
    .please = "one RUN, please"};

int trp_launcher_status(void)
{
    struct trp_asking a;
    json_t *document = NULL;
    trp_error err;
    int code = trp_asking_find(call.runs, call.run, &a, &err);
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
