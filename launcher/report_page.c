/*
 * Reads what the page needs beside the log (the last lines of what failed tasks printed),
 * puts all together, and writes it whole.
 */
#include "report_page.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "events/json_print.h"
#include "events/json_text.h"
#include "events/page/page.h"
#include "events/page/page_json.h"
#include "events/task_logs.h"
#include "os/whole_file.h"
#include "report.h"

enum { TAIL_BYTES = 4096, TAIL_LINES = 20, TIME_IS_UP = 75 };

int trp_report_page_check(const char *file, trp_error *err)
{
    size_t n = strlen(file);
    if (strcmp(file, "-") == 0 || (n > 5 && strcmp(file + n - 5, ".html") == 0))
        return 0;
    return trp_error_set(err, TRP_EINVAL,
                         "report: -o %s: the page is HTML; name a file that ends in "
                         ".html, or - for stdout",
                         file);
}

/* ---- logs ---- */

struct logs {
    const struct trp_report_page *page;
    char base[PATH_MAX]; /* where links begin; "": they cannot be */
    uint32_t stage;      /* whose logs are in `found` */
    struct trp_task_log *found;
    uint32_t nfound;
};

/* The folder that the page will be in. */
static void find_base(struct logs *l)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(l->page->file, '/');
    if (strcmp(l->page->file, "-") == 0 || !slash)
        snprintf(folder, sizeof folder, ".");
    else
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - l->page->file + 1),
                 l->page->file);
    if (!realpath(folder, l->base))
        l->base[0] = '\0';
}

/* `path` as seen from there; NULL: it cannot be, or out of memory. */
static char *relative(const struct logs *l, const char *path)
{
    char whole[PATH_MAX];
    struct trp_buf b = {0};
    size_t same = 0;
    if (!l->base[0] || !realpath(path, whole))
        return NULL;
    for (size_t i = 0; l->base[i] == whole[i] && whole[i]; i++)
        if (l->base[i] == '/')
            same = i;
    if (strncmp(l->base, whole, strlen(l->base)) == 0 && whole[strlen(l->base)] == '/')
        same = strlen(l->base);
    for (const char *s = l->base + same; *s; s++)
        if (*s == '/' && s[1])
            trp_put_raw(&b, "../", 3);
    trp_put_raw(&b, whole + same + 1, strlen(whole + same + 1) + 1);
    if (b.failed)
        trp_buf_free(&b);
    return (char *)b.data;
}

/* The last lines of what there is, in at most TAIL_BYTES. */
static char *last_lines(char *text)
{
    size_t n = strlen(text), lines = 0, at;
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
        text[--n] = '\0';
    for (at = n; at > 0; at--)
        if (text[at - 1] == '\n' && ++lines == TAIL_LINES)
            break;
    memmove(text, text + at, n - at + 1);
    if (*text)
        return text;
    free(text);
    return NULL;
}

static char *read_tail(const struct trp_task_log *log)
{
    char *text = NULL;
    size_t size = 0;
    trp_error err;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    uint64_t from = log->size > TAIL_BYTES ? log->size - TAIL_BYTES : 0;
    int rc = trp_task_log_copy(log, from, out, NULL, &err);
    if (fclose(out) == 0 && rc == 0 && text) {
        for (size_t i = 0; i < size; i++) /* it may be anything */
            if (!text[i])
                text[i] = '?';
        return last_lines(text);
    }
    free(text);
    return NULL;
}

/* All logs of the stage, once for all that failed there. */
static void find_logs(struct logs *l, uint32_t stage, const char *name)
{
    char dir[PATH_MAX];
    trp_error err;
    if (l->stage == stage)
        return;
    trp_task_logs_free(l->found, l->nfound);
    l->found = NULL;
    l->nfound = 0;
    l->stage = stage;
    if (snprintf(dir, sizeof dir, "%s/logs/%s", l->page->folder, name) <
        (int)sizeof dir)
        trp_task_logs_find(dir, &l->found, &l->nfound, &err);
}

/* What it said on stderr, else on stdout; of a gang the first rank that said anything. */
static char *tail_of(void *context, const struct trp_page_facts *f,
                     const struct trp_page_task *t, char **ret_link)
{
    struct logs *l = context;
    const char *name = f->stages[t->stage].name;
    if (strchr(name, '/')) /* of a program; no command's */
        return NULL;
    find_logs(l, t->stage, name);
    for (int err = 1; err >= 0; err--)
        for (uint32_t i = 0; i < l->nfound; i++) {
            const struct trp_task_log *log = &l->found[i];
            if (log->task != t->number || log->stage_attempt != t->stage_attempt ||
                log->number != t->attempt || log->err != err || !log->size)
                continue;
            char *text = read_tail(log);
            if (text && !log->framed)
                *ret_link = relative(l, log->path);
            if (text)
                return text;
        }
    return NULL;
}

/* ---- the page ---- */

static void put_head(struct trp_buf *b, const struct trp_report_page *p)
{
    const char *slash = p->folder ? strrchr(p->folder, '/') : NULL;
    TRP_JSON(b, "{\"version\":");
    trp_json_text(b, TROUPE_VERSION);
    TRP_JSON_INT(b, "made", (int64_t)time(NULL) * 1000);
    TRP_JSON_TEXT(b, "state", p->state);
    if (slash)
        TRP_JSON_TEXT(b, "run", slash + 1);
    TRP_JSON(b, "}");
}

static int make(const struct trp_report_page *p, struct trp_buf *ret)
{
    struct trp_buf head = {0}, page = {0}, alternatives = {0};
    struct logs logs = {.page = p, .stage = TRP_NONE};
    const struct trp_page_logs tails = {tail_of, &logs};
    const struct trp_run_record *last = p->records->v[p->records->n - 1];
    char *report = json_dumps(p->report, JSON_COMPACT | TRP_JSON_NUMBERS), title[300];
    find_base(&logs);
    put_head(&head, p);
    int rc =
        trp_page_json(p->facts, p->records, p->folder ? &tails : NULL, p->live, &page);
    trp_report_alternatives(p, &alternatives);
    snprintf(title, sizeof title, "%.200s – %.60s – Troupe",
             last->app_name ? last->app_name : "?", p->state);
    const struct trp_page_parts parts = {.title = title,
                                         .head = (const char *)head.data,
                                         .head_size = head.size,
                                         .report = report,
                                         .report_size = report ? strlen(report) : 0,
                                         .page = (const char *)page.data,
                                         .page_size = page.size,
                                         .alternatives =
                                             (const char *)alternatives.data,
                                         .alternatives_size = alternatives.size};
    if (rc == 0 && report && !head.failed && !alternatives.failed)
        trp_page_put(ret, &parts);
    else
        ret->failed = true;
    trp_task_logs_free(logs.found, logs.nfound);
    trp_buf_free(&head);
    trp_buf_free(&page);
    trp_buf_free(&alternatives);
    free(report);
    return ret->failed ? TRP_ENOMEM : 0;
}

int trp_report_page_write(const struct trp_report_page *p, trp_error *err)
{
    struct trp_buf b = {0};
    int code = make(p, &b);
    if (code < 0)
        trp_error_set(err, code, "report: out of memory");
    else if (strcmp(p->file, "-") == 0)
        code = fwrite(b.data, 1, b.size, stdout) == b.size
                   ? 0
                   : trp_error_set(err, TRP_ESYSTEM, "cannot write to stdout: %s",
                                   strerror(errno));
    else if (trp_held_write(p->file, b.data, b.size, false) < 0)
        code = trp_error_set(err, TRP_ESYSTEM, "report: %s: cannot be written: %s",
                             p->file, strerror(errno));
    trp_buf_free(&b);
    return code;
}

/* ---- at a run's end ---- */

static int page_of_run(const char *folder, int status, trp_error *err)
{
    char events[PATH_MAX], file[PATH_MAX], state[40];
    struct trp_run_records records;
    struct trp_page_facts facts;
    if (snprintf(events, sizeof events, "%s/events.jsonl", folder) >=
            (int)sizeof events ||
        snprintf(file, sizeof file, "%s/report.html", folder) >= (int)sizeof file)
        return trp_error_set(err, TRP_ELIMIT, "%s: too long", folder);
    int code = trp_page_facts_read(events, &records, &facts, err);
    if (code < 0)
        return code;
    json_t *document = trp_report_document(events, folder, &records, &facts);
    snprintf(state, sizeof state, "exit status %d", status);
    const struct trp_report_page p = {.file = file,
                                      .folder = folder,
                                      .state = state,
                                      .in_a_hurry = status == TIME_IS_UP,
                                      .report = document,
                                      .facts = &facts,
                                      .records = &records};
    code = document ? trp_report_page_write(&p, err)
                    : trp_error_set(err, TRP_ENOMEM, "out of memory");
    json_decref(document);
    trp_page_facts_free(&facts);
    trp_run_records_free(&records);
    return code;
}

void trp_report_page_of_run(const char *folder, int status)
{
    trp_error err;
    if (page_of_run(folder, status, &err) < 0)
        fprintf(stderr, "troupe: warning: report.html was not made: %s\n", err.text);
}
