/*
 * The last line of a start that ended in order holds the numbers, and then nothing else
 * is read: a log may have gigabytes. Otherwise all lines are, and what has begun and
 * not ended is kept in one table by its kind and number.
 *
 * Tasks that are only counted in a summary (events.tasks) stand nowhere by number, so
 * theirs may be given once more.
 */
#include "events/log_past.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <uthash.h>

#include "events/event_json.h"
#include "events/event_lines.h"
#include "events/json_text.h"
#include "os/held.h"

enum { LAST_LINE = 65536 };

static const char died[] = "the run ended without a word";

/* ---- the last line ---- */

void trp_log_past_put(struct trp_buf *b, const struct trp_log_past *past)
{
    TRP_JSON(b, ",\"Troupe Next\":{\"App ID\":");
    trp_json_text(b, past->app_id);
    TRP_JSON_INT(b, "Started", past->started / 1000000);
    TRP_JSON_INT(b, "Job", past->next.job);
    TRP_JSON_INT(b, "Executor", past->next.executor);
    TRP_JSON_INT(b, "Task", past->next.task);
    TRP_JSON_INT(b, "Stage Attempt", past->next.stage_attempt);
    TRP_JSON(b, "}");
}

static bool set_app_id(struct trp_log_past *past, const json_t *text)
{
    const char *id = json_string_value(text);
    if (!id || !*id || strlen(id) >= sizeof past->app_id || strchr(id, '/'))
        return false;
    strcpy(past->app_id, id);
    return true;
}

static bool take_number(const json_t *v, uint32_t *ret)
{
    json_int_t n = json_is_integer(v) ? json_integer_value(v) : -1;
    if (n < 0 || n >= UINT32_MAX)
        return false;
    *ret = (uint32_t)n;
    return true;
}

/* Is it the end of a start, with all numbers? */
static bool read_end(const char *line, size_t size, struct trp_log_past *ret)
{
    json_t *event = json_loadb(line, size, 0, NULL);
    const json_t *next = json_object_get(event, "Troupe Next");
    struct trp_log_past p = {.started = trp_event_ms(json_object_get(next, "Started"))};
    bool whole =
        set_app_id(&p, json_object_get(next, "App ID")) &&
        take_number(json_object_get(next, "Job"), &p.next.job) &&
        take_number(json_object_get(next, "Executor"), &p.next.executor) &&
        take_number(json_object_get(next, "Task"), &p.next.task) &&
        take_number(json_object_get(next, "Stage Attempt"), &p.next.stage_attempt);
    json_decref(event);
    if (whole)
        *ret = p;
    return whole;
}

static bool read_last_line(const char *file, off_t size, struct trp_log_past *ret)
{
    char *block = malloc(LAST_LINE);
    FILE *in = block ? trp_held_fopen(file, "r") : NULL;
    bool found = false;
    if (in) {
        fseeko(in, size > LAST_LINE ? size - LAST_LINE : 0, SEEK_SET);
        size_t n = fread(block, 1, LAST_LINE, in);
        if (n > 1 && block[n - 1] == '\n') {
            const char *lf = memrchr(block, '\n', n - 1);
            const char *line = lf ? lf + 1 : block;
            found = read_end(line, (size_t)(block + n - 1 - line), ret);
        }
    }
    if (in)
        fclose(in);
    free(block);
    return found;
}

/* ---- all lines ---- */

enum kind { TASK, STAGE, JOB, EXECUTOR, KINDS };

/* What has begun: jobs and executors by number, stages by number and attempt. */
struct begun {
    UT_hash_handle hh;
    struct key {
        uint32_t kind, id, attempt;
    } key;
    json_t *what; /* a stage's info, a task's start; NULL of the others */
};

struct past_reader {
    struct trp_log_past *past;
    struct begun *begun;
    int64_t last; /* time of the latest event */
};

static void used(uint32_t *next, uint32_t id)
{
    if (id >= *next)
        *next = id + 1;
}

static void happened(struct past_reader *r, const json_t *ms)
{
    int64_t at = trp_event_ms(ms);
    if (at > r->last)
        r->last = at;
}

static int note_begun(struct past_reader *r, struct key key, json_t *what)
{
    struct begun *b;
    HASH_FIND(hh, r->begun, &key, sizeof key, b);
    if (b)
        return 0;
    b = calloc(1, sizeof *b);
    if (!b)
        return TRP_ENOMEM;
    b->key = key;
    HASH_ADD(hh, r->begun, key, sizeof b->key, b);
    if (!b->hh.tbl) {
        free(b);
        return TRP_ENOMEM;
    }
    b->what = json_incref(what);
    return 0;
}

static void forget_begun(struct past_reader *r, struct begun *b)
{
    HASH_DEL(r->begun, b);
    json_decref(b->what);
    free(b);
}

static void end(struct past_reader *r, struct key key)
{
    struct begun *b;
    HASH_FIND(hh, r->begun, &key, sizeof key, b);
    if (b)
        forget_begun(r, b);
}

static int on_start(void *context, const json_t *event)
{
    struct past_reader *r = context;
    int64_t at = trp_event_ms(json_object_get(event, "Timestamp"));
    happened(r, json_object_get(event, "Timestamp"));
    if (!r->past->started)
        r->past->started = at;
    return set_app_id(r->past, json_object_get(event, "App ID")) ? 0 : TRP_EINVAL;
}

static int on_job(void *context, const json_t *event)
{
    struct past_reader *r = context;
    struct key key = {.kind = JOB};
    if (!take_number(json_object_get(event, "Job ID"), &key.id))
        return TRP_EINVAL;
    happened(r, json_object_get(event, "Submission Time"));
    used(&r->past->next.job, key.id);
    return note_begun(r, key, NULL);
}

static int on_job_end(void *context, const json_t *event)
{
    struct past_reader *r = context;
    struct key key = {.kind = JOB};
    if (!take_number(json_object_get(event, "Job ID"), &key.id))
        return TRP_EINVAL;
    happened(r, json_object_get(event, "Completion Time"));
    end(r, key);
    return 0;
}

static bool stage_key(const json_t *info, struct key *ret)
{
    *ret = (struct key){.kind = STAGE};
    return take_number(json_object_get(info, "Stage ID"), &ret->id) &&
           take_number(json_object_get(info, "Stage Attempt ID"), &ret->attempt);
}

static int on_stage(void *context, const json_t *event)
{
    struct past_reader *r = context;
    json_t *info = json_object_get(event, "Stage Info");
    struct key key;
    if (!stage_key(info, &key))
        return TRP_EINVAL;
    happened(r, json_object_get(info, "Submission Time"));
    used(&r->past->next.stage_attempt, key.attempt);
    return note_begun(r, key, info);
}

static int on_stage_end(void *context, const json_t *event)
{
    struct past_reader *r = context;
    const json_t *info = json_object_get(event, "Stage Info");
    struct key key;
    if (!stage_key(info, &key))
        return TRP_EINVAL;
    happened(r, json_object_get(info, "Completion Time"));
    end(r, key);
    return 0;
}

static bool executor_key(const json_t *text, struct key *ret)
{
    const char *id = json_string_value(text);
    char *rest = NULL;
    unsigned long n = id ? strtoul(id, &rest, 10) : 0;
    *ret = (struct key){.kind = EXECUTOR, .id = (uint32_t)n};
    return id && *id && !*rest && n < UINT32_MAX;
}

static int on_executor(void *context, const json_t *event)
{
    struct past_reader *r = context;
    struct key key;
    if (!executor_key(json_object_get(event, "Executor ID"), &key))
        return TRP_EINVAL;
    happened(r, json_object_get(event, "Timestamp"));
    used(&r->past->next.executor, key.id);
    return note_begun(r, key, NULL);
}

static int on_executor_end(void *context, const json_t *event)
{
    struct past_reader *r = context;
    struct key key;
    if (!executor_key(json_object_get(event, "Executor ID"), &key))
        return TRP_EINVAL;
    happened(r, json_object_get(event, "Timestamp"));
    end(r, key);
    return 0;
}

static int on_task(void *context, const json_t *event)
{
    struct past_reader *r = context;
    const json_t *info = json_object_get(event, "Task Info");
    struct key key = {.kind = TASK};
    if (!take_number(json_object_get(info, "Task ID"), &key.id))
        return TRP_EINVAL;
    happened(r, json_object_get(info, "Launch Time"));
    used(&r->past->next.task, key.id);
    return note_begun(r, key, (json_t *)(uintptr_t)event);
}

static int on_task_end(void *context, const json_t *event)
{
    struct past_reader *r = context;
    const json_t *info = json_object_get(event, "Task Info");
    struct key key = {.kind = TASK};
    if (!take_number(json_object_get(info, "Task ID"), &key.id))
        return TRP_EINVAL;
    happened(r, json_object_get(info, "Finish Time"));
    end(r, key);
    return 0;
}

/* ---- ends that are missing ---- */

static uint8_t level_of(const json_t *name)
{
    const char *word = json_string_value(name);
    for (int i = 0; word && i < TRP_LEVELS; i++)
        if (strcmp(trp_level_name(i), word) == 0)
            return (uint8_t)i;
    return TRP_ANY;
}

static void end_task(struct trp_buf *b, const json_t *event, int64_t at)
{
    const json_t *info = json_object_get(event, "Task Info");
    char *host = json_dumps(json_object_get(info, "Host"), JSON_ENCODE_ANY);
    struct key executor;
    struct trp_task_record t = {
        .status = TRP_END_KILLED,
        .level = level_of(json_object_get(info, "Locality")),
        .executor = executor_key(json_object_get(info, "Executor ID"), &executor)
                        ? executor.id
                        : TRP_NONE,
        .launched_ms = json_integer_value(json_object_get(info, "Launch Time")),
        .ended_ms = at / 1000000,
        .host = host ? host : "\"\"",
        .reason = (char *)(uintptr_t)died,
    };
    take_number(json_object_get(event, "Stage ID"), &t.stage);
    take_number(json_object_get(event, "Stage Attempt ID"), &t.stage_attempt);
    take_number(json_object_get(info, "Index"), &t.task);
    take_number(json_object_get(info, "Attempt"), &t.number);
    take_number(json_object_get(info, "Task ID"), &t.task_id);
    trp_line_task_end(b, &t);
    free(host);
}

static void end_stage(struct trp_buf *b, json_t *info, int64_t at)
{
    json_object_set_new(info, "Completion Time", json_integer(at / 1000000));
    json_object_set_new(info, "Failure Reason", json_string(died));
    char *text = json_dumps(info, JSON_COMPACT);
    if (text) {
        TRP_JSON(b, "{\"Event\":\"SparkListenerStageCompleted\",\"Stage Info\":");
        trp_put_raw(b, text, strlen(text));
        TRP_JSON(b, "}\n");
    }
    free(text);
}

static void put_end(struct trp_buf *b, const struct begun *of, int64_t at)
{
    switch ((enum kind)of->key.kind) {
    case TASK:
        end_task(b, of->what, at);
        break;
    case STAGE:
        end_stage(b, of->what, at);
        break;
    case JOB:
        trp_line_job_end(b, (trp_job_id){of->key.id}, TRP_OUTCOME_CANCELLED, died, at);
        break;
    case EXECUTOR:
        trp_line_executor_removed(b, (trp_executor_id){of->key.id}, died, at);
        break;
    case KINDS:
        break;
    }
}

/* Tasks first, then what they are part of. */
static void put_ends(struct past_reader *r, struct trp_buf *b)
{
    struct begun *of, *next;
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        HASH_ITER(hh, r->begun, of, next) {
            if (b && of->key.kind == kind)
                put_end(b, of, r->last);
        }
    }
    HASH_ITER(hh, r->begun, of, next) {
        forget_begun(r, of);
    }
}

int trp_log_past_read(const char *file, struct trp_log_past *ret,
                      struct trp_buf *ret_ends)
{
    static const struct trp_event_line_kind kinds[] = {
        {"SparkListenerApplicationStart", on_start       },
        {"SparkListenerJobStart",         on_job         },
        {"SparkListenerJobEnd",           on_job_end     },
        {"SparkListenerStageSubmitted",   on_stage       },
        {"SparkListenerStageCompleted",   on_stage_end   },
        {"SparkListenerExecutorAdded",    on_executor    },
        {"SparkListenerExecutorRemoved",  on_executor_end},
        {"SparkListenerTaskStart",        on_task        },
        {"SparkListenerTaskEnd",          on_task_end    },
    };
    struct stat st;
    *ret = (struct trp_log_past){0};
    if (stat(file, &st) < 0 || !S_ISREG(st.st_mode) ||
        read_last_line(file, st.st_size, ret))
        return 0;
    struct past_reader r = {.past = ret};
    int rc = trp_event_lines_read(file, kinds, sizeof kinds / sizeof *kinds, &r, NULL);
    put_ends(&r, ret_ends);
    return rc == TRP_ENOMEM || (ret_ends && ret_ends->failed) ? TRP_ENOMEM : 0;
}
