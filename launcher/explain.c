/*
 * `troupe explain`: why a stage waits, and why its tasks ran where and when they did.
 * What is decided now is the driver's answer (asking.h), what has happened is in the
 * event log (events/story.h), and what would run again `--resume` says (run.c).
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uthash.h>

#include "args.h"
#include "asking.h"
#include "commands.h"
#include "conf/table.h"
#include "conf/wording.h"
#include "events/json_print.h"
#include "events/story.h"
#include "events/task_names.h"
#include "run_call.h"
#include "see_logs.h"

enum { ROWS = 40 }; /* of more stages, alike ones are told together */

static struct {
    const char *run, *stage, *runs;
    bool json, all;
} call;

/* ---- what is decided now ---- */

/* The driver's answer; without one it stays NULL. */
static int ask(struct trp_asking *a, json_t **ret, trp_error *err)
{
    struct trp_ask q = {.what = TRP_ASK_EXPLAIN};
    if (call.stage && strlen(call.stage) > TRP_ASK_STAGE)
        return 0;
    snprintf(q.stage, sizeof q.stage, "%s", call.stage ? call.stage : "");
    int code = trp_asking_driver(a, &q, ret, err);
    return code == TRP_ENOENT ? 0 : code;
}

static const json_t *now_of(const json_t *answer, const char *stage)
{
    const json_t *s;
    size_t i;
    json_array_foreach(json_object_get(answer, "stages"), i, s) {
        if (strcmp(trp_asking_text(s, "name"), stage) == 0 &&
            !json_is_true(json_object_get(s, "over")))
            return s;
    }
    return NULL;
}

/* The log is written up to a second late: what it does not have yet the driver knows. */
static void add_untold(json_t *stories, const json_t *answer)
{
    const json_t *s;
    size_t i;
    json_array_foreach(json_object_get(answer, "stages"), i, s) {
        const char *name = trp_asking_text(s, "name");
        if (!json_object_get(stories, name))
            trp_story_add(stories, name, trp_asking_text(s, "state"),
                          trp_asking_int(s, "tasks"));
    }
}

/* A line that may be long: its further lines begin under its words. */
static void tell(FILE *out, const char *first, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void tell(FILE *out, const char *first, const char *fmt, ...)
{
    char *line = NULL;
    va_list args;
    va_start(args, fmt);
    if (vasprintf(&line, fmt, args) >= 0)
        trp_text_wrap(line, first, 4, out);
    else
        fprintf(out, "%s\n", first);
    va_end(args);
    free(line);
}

static void print_executors(FILE *out, const json_t *s)
{
    char took[32];
    int64_t coming = trp_asking_int(s, "coming");
    tell(out, "  needs: ", "executors of profile %s (%s), of which a task takes %s",
         trp_asking_text(s, "profile"), trp_asking_text(s, "executor"),
         trp_asking_text(s, "task"));
    fprintf(out, "  has: %" PRId64 " of them", trp_asking_int(s, "up"));
    if (coming)
        fprintf(out, ", %" PRId64 " more, asked for %s ago", coming,
                trp_asking_time(trp_asking_int(s, "coming_for"), took, sizeof took));
    putc('\n', out);
}

static void print_now(FILE *out, const json_t *s, const char *room)
{
    const char *why = trp_asking_text(s, "why");
    char took[32];
    int64_t idle = trp_asking_int(s, "idle"), ranks = trp_asking_int(s, "ranks");
    if (*why)
        trp_text_wrap(why, "  why: ", 4, out);
    if (idle)
        fprintf(out, "  for: %s\n", trp_asking_time(idle, took, sizeof took));
    if (ranks)
        tell(out, "  needs: ", "%" PRId64 " rank%s of profile %s at once, together %s",
             ranks, ranks == 1 ? "" : "s", trp_asking_text(s, "profile"),
             trp_asking_text(s, "task"));
    else
        print_executors(out, s);
    if (*room && *why)
        trp_text_wrap(room, "  there is: ", 4, out);
}

/* ---- what has happened ---- */

static const char *level_words(const char *level)
{
    static const struct {
        const char *level, *words;
    } all[] = {
        {"PROCESS_LOCAL", "as near as can be"             },
        {"NODE_LOCAL",    "on a host that they prefer"    },
        {"NO_PREF",       "they prefer no place"          },
        {"RACK_LOCAL",    "in the rack of one they prefer"},
        {"ANY",           "elsewhere, after locality.wait"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].level, level) == 0)
            return all[i].words;
    return "";
}

static void print_places(FILE *out, const json_t *places)
{
    const json_t *p;
    size_t i;
    json_array_foreach(places, i, p) {
        int64_t n = trp_asking_int(p, "tasks");
        bool gang = strcmp(trp_asking_text(p, "executor"), "driver") == 0;
        const char *level = trp_asking_text(p, "level");
        if (i == TRP_STORY_MAX && !call.all) {
            fprintf(out, "  and %zu more places (--all)\n",
                    json_array_size(places) - i);
            return;
        }
        if (gang)
            tell(out, "  ran: ", "%" PRId64 " task%s as a gang, outside executors", n,
                 n == 1 ? "" : "s");
        else
            tell(out, "  ran: ", "%" PRId64 " task%s on executor %s on %s, %s (%s)", n,
                 n == 1 ? "" : "s", trp_asking_text(p, "executor"),
                 trp_asking_text(p, "host"), level, level_words(level));
    }
}

/* What a task of a list is called, which has its number and its name under these keys. */
static const char *word_of(const json_t *t, const char *number, const char *name,
                           char buf[TRP_TASK_WORD])
{
    return trp_task_word((uint32_t)trp_asking_int(t, number),
                         json_string_value(json_object_get(t, name)), buf);
}

static void print_tries(FILE *out, const json_t *tries)
{
    const json_t *t;
    size_t i;
    json_array_foreach(tries, i, t) {
        char first[64 + TRP_TASK_WORD], of_stage[32] = "", line[1400], took[32];
        char word[TRP_TASK_WORD];
        int64_t again = trp_asking_int(t, "stage_attempt");
        const char *end = trp_asking_text(t, "end");
        bool gang = strcmp(trp_asking_text(t, "executor"), "driver") == 0;
        if (again)
            snprintf(of_stage, sizeof of_stage, "s%" PRId64 ".", again);
        snprintf(first, sizeof first, "  task %s, attempt %s%" PRId64 ": ",
                 word_of(t, "task", "name", word), of_stage,
                 trp_asking_int(t, "attempt"));
        snprintf(
            line, sizeof line, "%.1000s, after %s %s%.200s%s", *end ? end : "succeeded",
            trp_asking_time(trp_asking_int(t, "ran"), took, sizeof took),
            gang ? "as a gang" : "on ", gang ? "" : trp_asking_text(t, "host"),
            json_is_true(json_object_get(t, "copy")) ? ", as a copy of a slow attempt"
                                                     : "");
        trp_text_wrap(line, first, 4, out);
    }
}

/* Of a stage with one log for all (task_logs: stage) the event log names none. */
static void print_given_up(FILE *out, const json_t *lost)
{
    const json_t *t;
    size_t i;
    json_array_foreach(lost, i, t) {
        char word[TRP_TASK_WORD];
        int64_t times = trp_asking_int(t, "failures");
        const char *log = trp_asking_text(t, "log"), *see = trp_asking_text(t, "see");
        tell(out, "  ", "task %s was given up after %" PRId64 " failure%s; %s%s",
             word_of(t, "task", "name", word), times, times == 1 ? "" : "s",
             *log || !*see ? "" : "see: ",
             *log   ? log
             : *see ? see
                    : "it has printed nothing");
    }
}

static void print_lost(FILE *out, const json_t *story)
{
    const json_t *t;
    size_t i;
    print_given_up(out, json_object_get(story, "given_up"));
    json_array_foreach(json_object_get(story, "skipped"), i, t) {
        char word[TRP_TASK_WORD], above[TRP_TASK_WORD];
        tell(out, "  ", "task %s was skipped: task %s of stage %s was given up",
             word_of(t, "task", "name", word),
             word_of(t, "after_task", "after_name", above),
             trp_asking_text(t, "after"));
    }
}

static void print_told(FILE *out, const json_t *told)
{
    const json_t *t;
    size_t i;
    json_array_foreach(told, i, t) {
        char first[32] = "  told: ";
        time_t at = (time_t)(trp_asking_int(t, "at") / 1000);
        struct tm tm;
        if (localtime_r(&at, &tm))
            strftime(first, sizeof first, "  told at %H:%M:%S: ", &tm);
        trp_text_wrap(trp_asking_text(t, "text"), first, 4, out);
    }
}

static void print_happened(FILE *out, const json_t *s, const char *state)
{
    int64_t submitted = trp_asking_int(s, "submitted"),
            first = trp_asking_int(s, "first"), ended = trp_asking_int(s, "ended"),
            left = trp_asking_int(s, "left_out");
    char wait[32], took[32];
    if (submitted && first)
        fprintf(out, "  its first task began %s after it was ready\n",
                trp_asking_time(first - submitted, wait, sizeof wait));
    if (submitted && ended)
        fprintf(out, "  it took %s\n",
                trp_asking_time(ended - submitted, took, sizeof took));
    if (strcmp(state, "not run") == 0)
        fputs("  because: the run ended before it began\n", out);
    if (*trp_asking_text(s, "reason"))
        trp_text_wrap(trp_asking_text(s, "reason"), "  because: ", 4, out);
    print_told(out, json_object_get(s, "told"));
    print_places(out, json_object_get(s, "places"));
    print_tries(out, json_object_get(s, "tries"));
    print_lost(out, s);
    if (left)
        fprintf(out, "  and %" PRId64 " more (--all)\n", left);
}

/* ---- the whole ---- */

/* Of a run that has ended a stage that never began did not run. */
static const char *state_of(const struct trp_asking *a, const json_t *s,
                            const json_t *now)
{
    const char *state = trp_asking_text(now ? now : s, "state");
    bool goes_on = strcmp(a->view.status, "running") == 0;
    if (!goes_on && strcmp(state, "running") == 0)
        return "unfinished";
    return !goes_on && strcmp(state, "waiting") == 0 ? "not run" : state;
}

/* Nothing that would have to be explained: not told unless it was asked for. */
static bool is_plain(const json_t *s, const json_t *now)
{
    return !now && strcmp(trp_asking_text(s, "state"), "succeeded") == 0 &&
           !json_array_size(json_object_get(s, "tries")) &&
           !json_array_size(json_object_get(s, "skipped")) &&
           !json_array_size(json_object_get(s, "told"));
}

/* Of `s`, what stands below its name. Malloc'ed; NULL: out of memory. */
static char *block_of(const struct trp_asking *a, const json_t *s, const json_t *now,
                      const char *room)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    if (now)
        print_now(out, now, room);
    print_happened(out, s, state_of(a, s, now));
    return fclose(out) == 0 ? text : NULL;
}

/* The same but for numbers, and where lines are cut: what stages are told together by. */
static char *key_of(const char *name, const char *state, const char *block, bool each)
{
    char stem[300], *key = NULL;
    if (each)
        snprintf(stem, sizeof stem, "%s", name);
    else
        trp_name_stem(name, stem, sizeof stem);
    if (asprintf(&key, "%s %s\n%s", stem, state, block) < 0)
        return NULL;
    char *to = key + strlen(stem);
    for (const char *from = to; *from; from++)
        if (!strchr("0123456789 \n", *from))
            *to++ = *from;
    *to = '\0';
    return key;
}

/* Stages that are told together. */
struct told {
    const char *name, *state; /* of the first … */
    char *key, *block;
    uint32_t stages;
    int64_t tasks; /* … and of all */
    UT_hash_handle hh;
};

/* What there is no memory for is left out. */
static void add_told(struct told **all, const struct trp_asking *a, const char *name,
                     const json_t *s, const json_t *answer, bool each)
{
    const json_t *now = now_of(answer, name);
    const char *state = state_of(a, s, now);
    char *block = block_of(a, s, now, trp_asking_text(answer, "room"));
    char *key = block ? key_of(name, state, block, each) : NULL;
    struct told *t = NULL;
    if (key)
        HASH_FIND_STR(*all, key, t);
    bool found = t != NULL;
    if (!found && key && (t = calloc(1, sizeof *t))) {
        *t = (struct told){.name = name, .state = state, .key = key, .block = block};
        HASH_ADD_KEYPTR(hh, *all, t->key, strlen(t->key), t);
    }
    if (t) {
        t->stages++;
        t->tasks += trp_asking_int(s, "tasks");
    }
    if (found || !t) {
        free(key);
        free(block);
    }
}

static void print_told_stages(struct told *all)
{
    struct told *t, *next;
    char stem[300];
    HASH_ITER(hh, all, t, next) {
        fputs(t == all ? "" : "\n", stdout);
        if (t->stages > 1)
            printf("%s ×%u: %s, %" PRId64 " tasks; of the first, %s:\n%s",
                   trp_name_stem(t->name, stem, sizeof stem), t->stages, t->state,
                   t->tasks, t->name, t->block);
        else
            printf("%s: %s, %" PRId64 " task%s\n%s", t->name, t->state, t->tasks,
                   t->tasks == 1 ? "" : "s", t->block);
    }
    HASH_ITER(hh, all, t, next) {
        HASH_DEL(all, t);
        free(t->key);
        free(t->block);
        free(t);
    }
}

/* One that waits, and the driver has told only of others why. */
static bool is_left_out(const json_t *s, const json_t *answer)
{
    return trp_asking_int(answer, "left_out") && !trp_asking_int(s, "first") &&
           !trp_asking_int(s, "ended") && !*trp_asking_text(s, "reason");
}

static void print_text(const struct trp_asking *a, json_t *stories,
                       const json_t *answer)
{
    const char *name;
    json_t *s;
    struct told *all = NULL;
    uint32_t plain = 0, left = 0;
    bool each = call.all || json_object_size(stories) <= ROWS;
    json_object_foreach(stories, name, s) {
        const json_t *now = now_of(answer, name);
        if (!call.stage && !call.all && is_plain(s, now))
            plain++;
        else if (!now && is_left_out(s, answer))
            left++;
        else
            add_told(&all, a, name, s, answer, each);
    }
    bool shown = all != NULL;
    print_told_stages(all);
    if (left)
        printf("\n%u more stage%s; troupe explain %s STAGE says for what\n", left,
               left == 1 ? " waits" : "s wait", a->view.name);
    if (plain)
        printf("%s%u stage%s ran with nothing to explain (--all)\n",
               shown && !left ? "\n" : "", plain, plain == 1 ? "" : "s");
}

static void print_json(const struct trp_asking *a, json_t *stories, json_t *answer)
{
    const char *name;
    json_t *s;
    json_t *list = json_array();
    json_object_foreach(stories, name, s) {
        const json_t *now = now_of(answer, name);
        json_object_set_new(s, "name", json_string(name));
        json_object_set_new(s, "state", json_string(state_of(a, s, now)));
        json_object_set(s, "now", now ? (json_t *)(uintptr_t)now : json_null());
        json_array_append(list, s);
    }
    json_t *document =
        json_pack("{s:s, s:s, s:s, s:s, s:o}", "run", a->view.name, "status",
                  a->view.status, "from", answer ? "driver" : "log", "room",
                  trp_asking_text(answer, "room"), "stages", list);
    trp_json_print(document, 0, stdout);
    json_decref(document);
}

static int no_such_stage(const struct trp_asking *a, const char *events, trp_error *err)
{
    json_t *all = NULL;
    const char *name;
    json_t *s;
    struct trp_nearest near = trp_nearest_of(call.stage);
    if (trp_story_read(events, NULL, false, &all, err) < 0)
        return TRP_EINVAL;
    json_object_foreach(all, name, s)
        trp_nearest_try(&near, name);
    int code = trp_error_set(err, TRP_EINVAL, "explain: run %s has no stage %s%s",
                             a->view.name, trp_show(call.stage).text,
                             trp_did_you_mean(&near).text);
    json_decref(all);
    return code;
}

static int explain(struct trp_asking *a, trp_error *err)
{
    char events[4400];
    json_t *answer = NULL, *stories = NULL, *s;
    const char *name;
    snprintf(events, sizeof events, "%s/events.jsonl", a->folder);
    int code = ask(a, &answer, err);
    if (code == 0)
        code = trp_story_read(events, call.stage, call.all, &stories, err);
    if (code == 0)
        add_untold(stories, answer);
    if (code == 0 && call.stage && !json_object_size(stories))
        code = no_such_stage(a, events, err);
    if (code == 0)
        trp_asking_tell(a);
    json_object_foreach(stories, name, s)
        trp_see_logs(a->folder, name, json_object_get(s, "given_up"));
    if (code == 0 && call.json)
        print_json(a, stories, answer);
    else if (code == 0)
        print_text(a, stories, answer);
    json_decref(stories);
    json_decref(answer);
    return code;
}

/* What --resume would run again; nothing is said of a program, or where the pipeline
 * cannot be read any more. */
static void explain_resume(const struct trp_asking *a)
{
    const struct trp_run_call resume = {.runs = call.runs, .resume = a->view.name};
    if (strcmp(a->view.status, "running") != 0 &&
        strcmp(a->view.status, "succeeded") != 0 && !call.json)
        trp_run_again(&resume, call.stage, call.all);
}

const struct trp_line trp_line_explain = {
    "explain",
    "usage: troupe explain [options] RUN [STAGE]\n\n"
    "Says why a stage waits: what it needs, what there is, what was refused, and\n"
    "for how long. Of stages that have run: why there, and why tasks were tried\n"
    "again or skipped. Of a run that has failed: what --resume would run again,\n"
    "but for --json. Without STAGE all stages with something to explain.\n\n",
    "",
    .table = TRP_ARGS(TRP_ARGS_FLAG("all", &call.all, "all stages, all attempts"),
                      TRP_ARGS_JSON(&call.json), TRP_ARGS_RUNS(&call.runs)),
    .words = {&call.run, &call.stage},
    .please = "RUN and at most one STAGE, please"
};

int trp_launcher_explain(void)
{
    struct trp_asking a;
    trp_error err;
    if (!call.run || !*call.run)
        return trp_launcher_misuse("explain: no RUN given (see troupe ls)");
    int code = trp_asking_find(call.runs, call.run, &a, &err);
    if (code < 0)
        return trp_launcher_fail(&err);
    code = explain(&a, &err);
    if (code == 0)
        explain_resume(&a);
    trp_asking_free(&a);
    return code < 0 ? trp_launcher_fail(&err) : trp_launcher_printed(0);
}
