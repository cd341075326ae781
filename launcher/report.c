/*
 * `troupe report [RUN|EVENTS [RUN|EVENTS]]`: the closing summary of a run once more, from its event
 * log alone, and with --sacct what Slurm's accounting has of it.
 *
 * Two runs are compared (report_compare.c).
 *
 * Everything is printed that is known before it is told that sacct failed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "args.h"
#include "commands.h"
#include "events/json_print.h"
#include "events/run_folder.h"
#include "events/summary.h"
#include "events/task_logs.h"
#include "report.h"
#include "report_page.h"
#include "sacct_call.h"

struct report {
    const char *run; /* as it was called */
    const char *dir; /* --runs-dir */
    char *folder;    /* NULL: it was an event log */
    char *events;
    const char *page; /* -o; NULL: none */
    bool json, sacct, all;
    struct trp_run_records runs;
    struct trp_page_facts facts; /* for the page, and with --json */
    struct trp_run_parts parts;  /* with --json */
    struct trp_sacct rows;
};

/* A file is an event log; all else has to be a run. */
static int find_log(struct report *r, trp_error *err)
{
    struct stat st;
    const char *run = r->run ? r->run : "last";
    if (r->run && stat(r->run, &st) == 0 && !S_ISDIR(st.st_mode)) {
        r->events = strdup(r->run);
        return r->events ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    char *runs;
    int code = trp_runs_dir(r->dir, &runs, err);
    if (code < 0)
        return code;
    code = trp_run_folder_find(runs, run, &r->folder, err);
    free(runs);
    if (code == TRP_EINVAL && !r->run)
        trp_error_set(
            err, code,
            "report: there are no runs in this folder; name a RUN or an event "
            "log");
    if (code == 0 && asprintf(&r->events, "%s/events.jsonl", r->folder) < 0) {
        r->events = NULL;
        code = trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    return code;
}

/* What became of a start whose log has no end: of the last as `troupe ls` has it. */
static const char *state_word(const struct report *r, uint32_t start)
{
    struct trp_run_view *v = NULL;
    uint32_t n = 0;
    const char *word = "not ended";
    char *base = r->folder ? strdup(r->folder) : NULL;
    char *name = base ? strrchr(base, '/') : NULL;
    if (name)
        *name++ = '\0'; /* …/troupe-runs */
    if (name && start + 1 == r->runs.n && trp_run_folder_list(base, &v, &n, NULL) == 0)
        for (uint32_t i = 0; i < n; i++)
            if (strcmp(v[i].name, name) == 0)
                word = strcmp(v[i].status, "died") == 0      ? "died"
                       : strcmp(v[i].status, "running") == 0 ? "running"
                                                             : word;
    trp_run_folder_list_free(v, n);
    free(base);
    return word;
}

static bool had_jobs(const struct trp_run_records *runs)
{
    for (uint32_t i = 0; i < runs->n; i++)
        if (runs->v[i]->njobs)
            return true;
    return false;
}

static void print_head(const struct report *r, uint32_t i)
{
    const struct trp_run_record *now = r->runs.v[i];
    char started[32] = "?";
    time_t at = (time_t)(now->started / 1000000000);
    struct tm tm;
    if (now->started && localtime_r(&at, &tm))
        strftime(started, sizeof started, "%Y-%m-%d %H:%M:%S", &tm);
    if (i)
        putchar('\n');
    printf("%s, started %s", now->app_name ? now->app_name : "?", started);
    if (r->runs.n > 1)
        printf(" (%u of %u)", i + 1, r->runs.n);
    if (now->complete)
        printf(", exit status %d\n", now->exit_status);
    else
        printf(", %s\n", state_word(r, i));
}

/* One start of the run; adds what sacct lacks to `err`. */
static int print_one(const struct report *r, uint32_t i, bool compare, json_t *starts,
                     trp_error *err)
{
    struct trp_run_record *now = r->runs.v[i];
    struct trp_account a = {0};
    int code = 0;
    if (compare && trp_account_make(now, &r->rows, &a) < 0)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    if (r->json || r->page) {
        json_array_append_new(starts,
                              trp_report_json(now, i, &r->facts, compare ? &a : NULL,
                                              r->parts.n ? r->parts.v[i] : NULL));
    } else {
        print_head(r, i);
        bool live = !now->complete && strcmp(state_word(r, i), "running") == 0;
        trp_summary_print(&now->statistics, live, r->all, stdout);
        if (compare && now->njobs) {
            putchar('\n');
            code = trp_report_account_print(now, &a, stdout, err);
        }
    }
    if (compare && code == 0)
        code = trp_report_account_lacks(&a, err);
    trp_account_free(&a);
    return code;
}

static int write_page(const struct report *r, const json_t *document, trp_error *err)
{
    const struct trp_run_record *last = r->runs.v[r->runs.n - 1];
    const char *word = state_word(r, r->runs.n - 1);
    char state[40];
    if (last->complete)
        snprintf(state, sizeof state, "exit status %d", last->exit_status);
    else
        snprintf(state, sizeof state, "%s", word);
    const struct trp_report_page p = {
        .file = r->page,
        .folder = r->folder,
        .state = state,
        .live = !last->complete && strcmp(word, "running") == 0,
        .report = document,
        .facts = &r->facts,
        .records = (struct trp_run_records *)(uintptr_t)&r->runs};
    return trp_report_page_write(&p, err);
}

static int print(const struct report *r, bool compare, trp_error *err)
{
    json_t *starts = json_array();
    int code = 0;
    for (uint32_t i = 0; i < r->runs.n; i++) {
        trp_error why;
        int rc = print_one(r, i, compare, starts, &why);
        if (rc < 0 && code == 0)
            code = trp_error_set(err, rc, "%s", why.text);
    }
    if (r->json || r->page) {
        trp_report_put_logs(starts, r->folder);
        json_t *document =
            json_pack("{s:s, s:O}", "events", r->events, "starts", starts);
        if (r->page) {
            trp_error why;
            int rc = write_page(r, document, &why);
            if (rc < 0 && code == 0)
                code = trp_error_set(err, rc, "%s", why.text);
        } else {
            trp_json_print(document, 0, stdout);
        }
        json_decref(document);
    } else if (r->folder) {
        char logs[4300];
        snprintf(logs, sizeof logs, "%s/logs", r->folder);
        putchar('\n');
        if (trp_logs_any(logs))
            printf("logs: %s\n", logs);
        printf("events: %s\n", r->events);
    }
    json_decref(starts);
    return code;
}

/* Another program's log, or a part of one, need not say all. */
static void tell_lacks(const struct report *r)
{
    if (!r->runs.v[0]->started)
        fprintf(stderr,
                "troupe: warning: %s has no SparkListenerApplicationStart: the "
                "application's name and start are not known\n",
                r->events);
}

static int report(struct report *r, trp_error *err)
{
    trp_error why;
    int code = find_log(r, err), asked = 0;
    const struct trp_log_reader facts = trp_page_facts_reader(&r->facts);
    if (code == 0)
        code = r->page ? trp_page_facts_read(r->events, &r->runs, &r->facts, err)
               : r->json
                   ? trp_run_parts_read(r->events, &facts, &r->runs, &r->parts, err)
                   : trp_run_records_read(r->events, &r->runs, err);
    if (code < 0)
        return code;
    tell_lacks(r);
    if (r->sacct && !had_jobs(&r->runs))
        return trp_error_set(err, TRP_EINVAL,
                             "report: %s tells of no Slurm job: there is nothing to "
                             "ask sacct for",
                             r->events);
    if (r->sacct)
        asked = trp_sacct_call(&r->runs, &r->rows, &why);
    code = print(r, r->sacct && asked == 0, err);
    return asked < 0 ? trp_error_set(err, asked, "%s", why.text) : code;
}

/* ---- two of them ---- */

enum { STATE = 40 };

static int read_side(struct report *r, char state[STATE], struct trp_report_side *ret,
                     trp_error *err)
{
    int code = find_log(r, err);
    if (code == 0)
        code = trp_run_records_read(r->events, &r->runs, err);
    if (code < 0)
        return code;
    const struct trp_run_record *last = r->runs.v[r->runs.n - 1];
    const char *word = state_word(r, r->runs.n - 1);
    if (last->complete)
        snprintf(state, STATE, "exit status %d", last->exit_status);
    else
        snprintf(state, STATE, "%s", word);
    *ret = (struct trp_report_side){
        .called = r->folder ? strrchr(r->folder, '/') + 1 : r->events,
        .events = r->events,
        .state = state,
        .live = !last->complete && strcmp(word, "running") == 0,
        .runs = &r->runs};
    return 0;
}

static int compare(struct report *a, struct report *b, trp_error *err)
{
    struct trp_report_side side[2];
    char state[2][STATE];
    if (a->sacct || a->page)
        return trp_error_set(err, TRP_EINVAL,
                             "report: %s is of one run; name one, please",
                             a->sacct ? "--sacct" : "-o");
    b->dir = a->dir;
    int code = read_side(a, state[0], &side[0], err);
    if (code == 0)
        code = read_side(b, state[1], &side[1], err);
    if (code < 0)
        return code;
    return a->json ? trp_report_compare_json(side, err)
                   : trp_report_compare(side, a->all, err);
}

static void release(struct report *r)
{
    free(r->folder);
    free(r->events);
    trp_run_records_free(&r->runs);
    trp_run_parts_free(&r->parts);
    trp_page_facts_free(&r->facts);
    trp_sacct_free(&r->rows);
}

static struct report called;
static struct report other; /* `run` NULL: there is one only */

const struct trp_line trp_line_report = {
    "report",
    "usage: troupe report [options] [RUN|EVENTS [RUN|EVENTS]]\n\n"
    "Prints the summary of a run from its event log, or writes a page. RUN is a name\n"
    "that troupe ls shows or a path of a run's folder, EVENTS an event log; without\n"
    "either it is the newest run of this folder. Two are compared, stage by stage.\n\n",
    "\nExit status: 0; 2 wrong call, no event log, or --sacct of a run without Slurm;\n"
    "4 Slurm has no accounting, sacct failed, or it does not have all steps (yet).\n",
    .table = TRP_ARGS(
        TRP_ARGS_FLAG("sacct", &called.sacct,
                      "what Slurm's accounting has of its steps beside our figures"),
        TRP_ARGS_FLAG("all", &called.all, "a row a stage, however many there are"),
        TRP_ARGS_JSON(&called.json),
        TRP_ARGS_TEXT("o", &called.page, "FILE",
                      "write a page for a browser; FILE ends in .html, - is stdout"),
        TRP_ARGS_RUNS(&called.dir)),
    .words = {&called.run, &other.run},
    .please = "one RUN or EVENTS, or two to compare, please"
};

int trp_launcher_report(void)
{
    struct report *r = &called;
    trp_error err;
    int code = r->page ? trp_report_page_check(r->page, &err) : 0;
    if (code == 0 && r->page && r->json)
        code = trp_error_set(&err, TRP_EINVAL,
                             "report: -o and --json are two documents: one at a time");
    if (code == 0)
        code = other.run ? compare(r, &other, &err) : report(r, &err);
    release(r);
    release(&other);
    return code < 0 ? trp_launcher_fail(&err) : trp_launcher_printed(0);
}
