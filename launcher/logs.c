/*
 * `troupe logs`: what tasks printed, of either form (events/task_logs.h), each with its
 * address in front as tail has it. With --follow the folder is looked at again and again
 * and what is new is printed, until the run has ended.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>

#include "args.h"
#include "commands.h"
#include "conf/wording.h"
#include "core/base/array.h"
#include "core/base/ids.h"
#include "events/log_event.h"
#include "events/run_folder.h"
#include "events/task_logs.h"
#include "events/task_names.h"
#include "logs_none.h"

enum { LOOK_MS = 300, NAME_SIZE = 200 };

static struct {
    const char *run, *stage, *task, *runs;
    bool failed, follow;
} call;

/* How far one was printed, or that an attempt failed; by STAGE/NAME. */
struct noted {
    char name[NAME_SIZE];
    uint64_t end;
    UT_hash_handle hh;
};

struct stage_name { /* of the event log */
    uint32_t id;
    char *name;
};

struct showing {
    const char *folder;
    struct trp_task_log wanted; /* TRP_NONE: any */
    bool any_task;
    struct noted *printed, *failed;
    struct stage_name *names;
    uint32_t nnames, capacity;
    struct trp_task_names
        called;              /* by the first place of the stage's name in `names` */
    bool by_name;            /* the task is asked for by its name: */
    bool found, whole;       /* … and there is one; its name is all that was given */
    struct trp_nearest near; /* else one whose name is near */
    char nearest[TRP_TASK_WORD];
    struct trp_name_list some;
    bool headers;
    char last[NAME_SIZE]; /* whose header was printed last */
    uint32_t shown;
};

static struct noted *note_stage(struct noted **all, const char *name)
{
    struct noted *n = NULL;
    HASH_FIND_STR(*all, name, n);
    if (n)
        return n;
    n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    snprintf(n->name, sizeof n->name, "%s", name);
    HASH_ADD_STR(*all, name, n);
    return n;
}

static void forget_noted(struct noted **all)
{
    struct noted *n, *next;
    HASH_ITER(hh, *all, n, next) {
        HASH_DEL(*all, n);
        free(n);
    }
}

/* ---- which failed ----------------------------------------------------------------- */

static int take_stage(void *context, const struct trp_log_event *e)
{
    struct showing *s = context;
    if (!e->stage_name || !TRP_ARRAY_GROW(s->names, s->nnames, s->capacity))
        return e->stage_name ? TRP_ENOMEM : 0;
    char *copy = strdup(e->stage_name);
    s->names[s->nnames++] = (struct stage_name){e->stage, copy};
    return copy ? 0 : TRP_ENOMEM;
}

/* The first place of a stage's name; nnames: the log has not told of it. */
static uint32_t place_of(const struct showing *s, const char *stage)
{
    uint32_t i = 0;
    while (i < s->nnames && strcmp(s->names[i].name, stage) != 0)
        i++;
    return i;
}

/* The stage that an event is of: the first place of its name; TRP_NONE. */
static uint32_t stage_of(const struct showing *s, uint32_t id)
{
    uint32_t at = s->nnames;
    while (at > 0 && s->names[at - 1].id != id)
        at--;
    return at ? place_of(s, s->names[at - 1].name) : TRP_NONE;
}

static int take_names(void *context, const struct trp_log_event *e)
{
    struct showing *s = context;
    uint32_t stage = stage_of(s, e->stage);
    return stage == TRP_NONE ? 0 : trp_task_names_take(&s->called, stage, e);
}

static int take_end(void *context, const struct trp_log_event *e)
{
    struct showing *s = context;
    char name[NAME_SIZE];
    if (!e->end || strcmp(e->end, "Success") == 0)
        return 0;
    for (uint32_t i = s->nnames; i-- > 0;) {
        if (s->names[i].id != e->stage)
            continue;
        snprintf(name, sizeof name, "%s/%u.%u.%u", s->names[i].name, e->task,
                 trp_log_or_0(e->stage_attempt), e->attempt);
        return note_stage(&s->failed, name) ? 0 : TRP_ENOMEM;
    }
    return 0;
}

static void forget_names(struct showing *s)
{
    for (uint32_t i = 0; i < s->nnames; i++)
        free(s->names[i].name);
    s->nnames = 0;
    trp_task_names_free(&s->called);
}

/* The name of a task of the stage; NULL: it has none. */
static const char *name_of(const struct showing *s, const char *stage, uint32_t task)
{
    return trp_task_name(&s->called, place_of(s, stage), task);
}

/* Whether `rest`, behind a name, says which attempt of the task. */
static bool takes_attempt(const char *rest, struct trp_task_log *ret)
{
    char address[64];
    return snprintf(address, sizeof address, "0%s", rest) < (int)sizeof address &&
           trp_task_log_address(address, false, ret);
}

/* Finds the task by its name, with an attempt behind it or not: a name that is all of what
 * was given comes before one that is a part of it. */
static void find_named(struct showing *s)
{
    const char *asked = strncmp(call.task, "key=", 4) == 0 ? call.task + 4 : call.task;
    const char *name;
    s->near = trp_nearest_of(asked);
    s->some = (struct trp_name_list){0};
    for (uint32_t task = 0; (name = name_of(s, call.stage, task)) && !s->whole;
         task++) {
        struct trp_task_log at;
        size_t n = strlen(name);
        const char *best = s->near.best;
        if (strncmp(asked, name, n) == 0 && takes_attempt(asked + n, &at)) {
            s->found = true;
            s->whole = !asked[n];
            s->wanted = at;
            s->wanted.task = task;
        }
        trp_name_list_add(&s->some, name);
        trp_nearest_try(&s->near, name);
        if (s->near.best != best)
            s->near.best = trp_task_word(task, name, s->nearest);
    }
}

/* What the event log says: names of tasks, and which attempts failed. */
static int read_log(struct showing *s, trp_error *err)
{
    static trp_log_take *const all[TRP_LOG_EVENTS] = {[TRP_LOG_STAGE] = take_stage,
                                                      [TRP_LOG_TASK_NAMES] = take_names,
                                                      [TRP_LOG_TASK_END] = take_end};
    static trp_log_take *const names[TRP_LOG_EVENTS] = {
        [TRP_LOG_STAGE] = take_stage, [TRP_LOG_TASK_NAMES] = take_names};
    const struct trp_log_reader reader = {.take = call.failed ? all : names,
                                          .context = s};
    char path[4400];
    snprintf(path, sizeof path, "%s/events.jsonl", s->folder);
    forget_names(s);
    int r = trp_log_events_read(path, &reader, 1, err);
    if (r == 0 && s->by_name && !s->found)
        find_named(s);
    return r;
}

static bool has_failed(const struct showing *s, const char *stage,
                       const struct trp_task_log *l)
{
    char name[NAME_SIZE];
    struct noted *n = NULL;
    snprintf(name, sizeof name, "%s/%u.%u.%u", stage, l->task, l->stage_attempt,
             l->number);
    HASH_FIND_STR(s->failed, name, n);
    return n != NULL;
}

/* ---- showing ---------------------------------------------------------------------- */

static bool is_wanted(const struct showing *s, const char *stage,
                      const struct trp_task_log *l)
{
    const struct trp_task_log *w = &s->wanted;
    bool asked =
        s->any_task ||
        ((!s->by_name || s->found) && l->task == w->task &&
         (w->stage_attempt == TRP_NONE || l->stage_attempt == w->stage_attempt) &&
         (w->number == TRP_NONE || l->number == w->number) &&
         (w->rank == TRP_NONE || l->rank == w->rank));
    return asked && l->size > 0 && (!call.failed || has_failed(s, stage, l));
}

static void print_header(struct showing *s, const char *stage, uint32_t task,
                         const char *file)
{
    char word[TRP_TASK_WORD];
    if (call.follow && place_of(s, stage) == s->nnames)
        read_log(s, NULL); /* it has begun since */
    const char *name = name_of(s, stage, task);
    printf("%s==> %s%s%s%s <==\n", s->shown ? "\n" : "", file, name ? " (" : "",
           name ? trp_task_word(task, name, word) : "", name ? ")" : "");
}

static int show_one(struct showing *s, const char *stage, const struct trp_task_log *l,
                    trp_error *err)
{
    char file[64], name[NAME_SIZE];
    trp_task_log_name(l, file, sizeof file);
    snprintf(name, sizeof name, "%s/%s", stage, file);
    struct noted *n = note_stage(&s->printed, name);
    if (!n)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    if (n->end >= l->size)
        return 0;
    if (s->headers && strcmp(s->last, name) != 0)
        print_header(s, stage, l->task, name);
    strcpy(s->last, name);
    s->shown++;
    return trp_task_log_copy(l, n->end, stdout, &n->end, err);
}

/* One stage; *ret_n counts those that are wanted. Prints when `print`. */
static int visit_stage(struct showing *s, const char *stage, bool print,
                       uint32_t *ret_n, trp_error *err)
{
    char dir[4400];
    struct trp_task_log *v = NULL;
    uint32_t n = 0;
    snprintf(dir, sizeof dir, "%s/logs/%s", s->folder, stage);
    int r = trp_task_logs_find(dir, &v, &n, err);
    for (uint32_t i = 0; i < n && r == 0; i++) {
        if (!is_wanted(s, stage, &v[i]))
            continue;
        ++*ret_n;
        if (print)
            r = show_one(s, stage, &v[i], err);
        if (r < 0 && access(v[i].path, F_OK) != 0 && errno == ENOENT)
            r = 0; /* it has become a frame: the next look finds it */
    }
    trp_task_logs_free(v, n);
    return r;
}

static int not_hidden(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static int visit_logs(struct showing *s, bool print, uint32_t *ret_n, trp_error *err)
{
    char dir[4400];
    struct dirent **v = NULL;
    int r = 0;
    if (call.stage)
        return visit_stage(s, call.stage, print, ret_n, err);
    snprintf(dir, sizeof dir, "%s/logs", s->folder);
    int n = scandir(dir, &v, not_hidden, alphasort);
    for (int i = 0; i < n; i++) {
        if (r == 0)
            r = visit_stage(s, v[i]->d_name, print, ret_n, err);
        free(v[i]);
    }
    free(v);
    return r;
}

static bool is_running(const char *folder)
{
    struct trp_run_view v;
    if (!trp_run_folder_view(folder, &v))
        return false;
    bool running = strcmp(v.status, "running") == 0;
    trp_run_view_clear(&v);
    return running;
}

static int show(struct showing *s, trp_error *err)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    uint32_t n = 0;
    bool needed = call.failed || s->by_name;
    int r = needed || s->any_task ? read_log(s, err) : 0;
    if (r == 0 || !needed)
        r = visit_logs(s, false, &n, err);
    s->headers = n > 1 || call.follow;
    for (bool more = true; r == 0 && more;) {
        more = call.follow && is_running(s->folder);
        r = visit_logs(s, true, &n, err);
        fflush(stdout);
        if (more && r == 0)
            nanosleep(&pause, NULL);
        if (more && r == 0 && (call.failed || (s->by_name && !s->found)))
            r = read_log(s, err);
    }
    return r;
}

static int no_such_name(const struct showing *s, trp_error *err)
{
    if (!name_of(s, call.stage, 0))
        return trp_error_set(err, TRP_EINVAL,
                             "logs: %s is no task: those of stage %s have no names; "
                             "write TASK[.sN][.ATTEMPT[.RANK]], TASK a number",
                             trp_show(call.task).text, call.stage);
    return trp_error_set(
        err, TRP_EINVAL, "logs: stage %s has no task %s%s; they are %s", call.stage,
        trp_show(call.task).text, trp_did_you_mean(&s->near).text, s->some.text);
}

const struct trp_line trp_line_logs = {
    "logs",
    "usage: troupe logs [options] RUN [STAGE [TASK[.ATTEMPT]]]\n\n"
    "Prints what tasks printed. TASK is a number, or the key of a row of a table, also "
    "as\n"
    "key=VALUE; .sN behind it is an attempt of the stage, .ATTEMPT one of the task, "
    ".RANK\n"
    "behind that a rank of a gang.\n\n",
    "",
    .table =
        TRP_ARGS(TRP_ARGS_FLAG("failed", &call.failed, "only of attempts that failed"),
                 TRP_ARGS_FLAG("follow", &call.follow,
                               "go on with what comes, until the run has ended"),
                 TRP_ARGS_RUNS(&call.runs)),
    .words = {&call.run, &call.stage, &call.task},
    .please = "RUN, STAGE and TASK, please, no more"
};

int trp_launcher_logs(void)
{
    trp_error err;
    char *runs = NULL, *folder = NULL;
    if (!call.run || !*call.run)
        return trp_launcher_misuse("logs: no RUN given (see troupe ls)");
    struct showing s = {.any_task = !call.task};
    s.by_name = call.task && !trp_task_log_address(call.task, false, &s.wanted);
    int code = trp_runs_dir(call.runs, &runs, &err);
    if (code == 0)
        code = trp_run_folder_find(runs, call.run, &folder, &err);
    s.folder = folder;
    if (code == 0 && !(call.stage && strchr(call.stage, '/')))
        code = show(&s, &err);
    if (code == 0 && call.stage && s.shown == 0)
        code = trp_logs_none(folder, call.stage,
                             call.task && (!s.by_name || s.found) ? &s.wanted : NULL,
                             &err);
    if (code == 0 && s.by_name && !s.found)
        code = no_such_name(&s, &err);
    forget_noted(&s.printed);
    forget_noted(&s.failed);
    forget_names(&s);
    free(s.names);
    free(folder);
    free(runs);
    return code < 0 ? trp_launcher_fail(&err) : trp_launcher_printed(0);
}
