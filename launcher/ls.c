/*
 * `troupe ls`: the runs of this folder, newest first.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "args.h"
#include "commands.h"
#include "conf/table.h"
#include "events/json_print.h"
#include "events/run_folder.h"

static bool is_live(const struct trp_run_view *v)
{
    return strcmp(v->status, "running") == 0;
}

static void print_json(const struct trp_run_view *v, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++) {
        bool ended = v[i].ended_ms > 0;
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:I, s:o, s:o, s:o}", "run", v[i].name,
                            "name", v[i].app, "status", v[i].status, "started",
                            (json_int_t)v[i].started_ms, "ended",
                            ended ? json_integer(v[i].ended_ms) : json_null(), "exit",
                            ended ? json_integer(v[i].exit_status) : json_null(), "pid",
                            is_live(&v[i]) ? json_integer(v[i].pid) : json_null()));
    }
    trp_json_print(list, 0, stdout);
    json_decref(list);
}

/* Does a run's name say that of its application? */
static bool names_tell(const struct trp_run_view *v, uint32_t n)
{
    char app[64]; /* longer than what a name takes of it */
    for (uint32_t i = 0; i < n; i++) {
        trp_run_name_clean(v[i].app, app, sizeof app);
        if (strncmp(v[i].name, app, strlen(app)) != 0)
            return false;
    }
    return true;
}

static int print_text(const struct trp_run_view *v, uint32_t n, trp_error *err)
{
    static const struct trp_table_column columns[] = {
        {"RUN",     NULL, false, false},
        {"STATUS",  NULL, false, false},
        {"EXIT",    NULL, true,  false},
        {"STARTED", NULL, false, false},
        {"SECONDS", NULL, true,  false},
        {"NAME",    NULL, false, false},
    };
    bool told = names_tell(v, n);
    if (!n)
        return 0;
    trp_table *t = trp_table_new(columns, told ? 5 : 6);
    for (uint32_t i = 0; i < n; i++) {
        char started[32] = "?", took[32] = "-", exit_text[16] = "-";
        time_t at = (time_t)(v[i].started_ms / 1000);
        struct tm tm;
        if (localtime_r(&at, &tm))
            strftime(started, sizeof started, "%Y-%m-%d %H:%M", &tm);
        int64_t end_ms = is_live(&v[i]) ? (int64_t)time(NULL) * 1000 : v[i].ended_ms;
        if (end_ms)
            snprintf(took, sizeof took, "%.1f",
                     (double)(end_ms - v[i].started_ms) / 1000);
        if (v[i].ended_ms)
            snprintf(exit_text, sizeof exit_text, "%d", v[i].exit_status);
        trp_table_cell(t, "%s", v[i].name);
        trp_table_cell(t, "%s", v[i].status);
        trp_table_cell(t, "%s", exit_text);
        trp_table_cell(t, "%s", started);
        trp_table_cell(t, "%s", took);
        if (!told)
            trp_table_cell(t, "%s", v[i].app);
    }
    return trp_table_print(t, stdout, err);
}

static struct {
    const char *runs;
    bool json;
} call;

const struct trp_line trp_line_ls = {
    "ls", "usage: troupe ls [options]\n\nLists runs, newest first.\n\n", "",
    .table = TRP_ARGS(TRP_ARGS_JSON(&call.json), TRP_ARGS_RUNS(&call.runs)),
    .words = {NULL}};

int trp_launcher_ls(void)
{
    trp_error err;
    char *dir;
    struct trp_run_view *v;
    uint32_t n;
    int code = trp_runs_dir(call.runs, &dir, &err);
    if (code < 0)
        return trp_launcher_fail(&err);
    code = trp_run_folder_list(dir, &v, &n, &err);
    free(dir);
    if (code < 0)
        return trp_launcher_fail(&err);
    if (call.json)
        print_json(v, n);
    else
        code = print_text(v, n, &err);
    trp_run_folder_list_free(v, n);
    return code < 0 ? trp_launcher_fail(&err) : trp_launcher_printed(0);
}
