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
#include "events/json_text.h"
#include "events/log_event.h"
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

static bool set_app_id(struct trp_log_past *past, const char *id)
{
    if (!id || !*id || strlen(id) >= sizeof past->app_id || strchr(id, '/'))
        return false;
    strcpy(past->app_id, id);
    return true;
}

/* Is it the end of a start, with all numbers? */
static bool read_end(const char *line, size_t size, struct trp_log_past *ret)
{
    json_t *json = json_loadb(line, size, 0, NULL);
    struct trp_log_event e;
    struct trp_log_past p;
    bool whole = false;
    if (trp_log_event_decode(json, &e) == 0) {
        p = (struct trp_log_past){
            .started = e.past_started,
            .next = {e.next_job, e.next_executor, e.next_task, e.next_stage_attempt}
        };
        whole = e.kind == TRP_LOG_APPLICATION_END && set_app_id(&p, e.past_app_id) &&
                p.next.job != TRP_NONE && p.next.executor != TRP_NONE &&
                p.next.task != TRP_NONE && p.next.stage_attempt != TRP_NONE;
    }
    json_decref(json);
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

/* What has begun, by number; stages also by attempt. */
struct begun {
    UT_hash_handle hh;
    struct key {
        uint32_t kind, id, attempt;
    } key;
    json_t *event;
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

static void happened(struct past_reader *r, int64_t at)
{
    if (at > r->last)
        r->last = at;
}

static int on_application(void *context, const struct trp_log_event *e)
{
    struct past_reader *r = context;
    happened(r, e->first);
    if (!r->past->started)
        r->past->started = e->first;
    return set_app_id(r->past, e->app_id) ? 0 : TRP_EINVAL;
}

/* What the event begins or ends; false: that has no number. */
static bool find(const struct past_reader *r, const struct trp_log_event *e,
                 struct key *ret_key, struct begun **ret)
{
    switch (e->kind) {
    case TRP_LOG_TASK:
    case TRP_LOG_TASK_END:
        *ret_key = (struct key){TASK, e->task_id, 0};
        break;
    case TRP_LOG_STAGE:
    case TRP_LOG_STAGE_END:
        *ret_key = (struct key){STAGE, e->stage, e->stage_attempt};
        break;
    case TRP_LOG_JOB:
    case TRP_LOG_JOB_END:
        *ret_key = (struct key){JOB, e->job, 0};
        break;
    default:
        *ret_key = (struct key){EXECUTOR, e->executor, 0};
    }
    HASH_FIND(hh, r->begun, ret_key, sizeof *ret_key, *ret);
    return ret_key->id < TRP_LOG_NOBODY && ret_key->attempt != TRP_NONE;
}

static int on_begin(void *context, const struct trp_log_event *e)
{
    struct past_reader *r = context;
    struct trp_log_next *n = &r->past->next;
    uint32_t *const next[KINDS] = {&n->task, &n->stage_attempt, &n->job, &n->executor};
    struct begun *b;
    struct key key;
    if (!find(r, e, &key, &b))
        return TRP_EINVAL;
    happened(r, e->at);
    used(next[key.kind], key.kind == STAGE ? key.attempt : key.id);
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
    b->event = json_incref(e->json);
    return 0;
}

static void forget_begun(struct past_reader *r, struct begun *b)
{
    HASH_DEL(r->begun, b);
    json_decref(b->event);
    free(b);
}

static int on_end(void *context, const struct trp_log_event *e)
{
    struct past_reader *r = context;
    struct begun *b;
    struct key key;
    if (!find(r, e, &key, &b))
        return TRP_EINVAL;
    happened(r, e->at);
    if (b)
        forget_begun(r, b);
    return 0;
}

/* ---- ends that are missing ---- */

static void end_task(struct trp_buf *b, const struct trp_log_event *e, int64_t at)
{
    char *host = json_dumps(json_object_get(e->info, "Host"), JSON_ENCODE_ANY);
    const struct trp_task_record t = {
        .status = TRP_END_KILLED,
        .level = e->level,
        .stage = trp_log_or_0(e->stage),
        .stage_attempt = trp_log_or_0(e->stage_attempt),
        .task = e->task,
        .number = e->attempt,
        .task_id = e->task_id,
        .executor = e->executor < TRP_LOG_NOBODY ? e->executor : TRP_NONE,
        .launched_ms = e->launched / 1000000,
        .ended_ms = at / 1000000,
        .host = host ? host : "\"\"",
        .reason = (char *)(uintptr_t)died,
    };
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
    struct trp_log_event e;
    trp_log_event_decode(of->event, &e);
    switch ((enum kind)of->key.kind) {
    case TASK:
        end_task(b, &e, at);
        break;
    case STAGE:
        end_stage(b, e.info, at);
        break;
    case JOB:
        trp_line_job_end(b, (trp_job_id){e.job}, TRP_OUTCOME_CANCELLED, died, at);
        break;
    case EXECUTOR:
        trp_line_executor_removed(b, (trp_executor_id){e.executor}, died, at);
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
    static trp_log_take *const take[TRP_LOG_EVENTS] = {
        [TRP_LOG_APPLICATION] = on_application,
        [TRP_LOG_JOB] = on_begin,
        [TRP_LOG_JOB_END] = on_end,
        [TRP_LOG_STAGE] = on_begin,
        [TRP_LOG_STAGE_END] = on_end,
        [TRP_LOG_EXECUTOR] = on_begin,
        [TRP_LOG_EXECUTOR_END] = on_end,
        [TRP_LOG_TASK] = on_begin,
        [TRP_LOG_TASK_END] = on_end,
    };
    struct stat st;
    *ret = (struct trp_log_past){0};
    if (stat(file, &st) < 0 || !S_ISREG(st.st_mode) ||
        read_last_line(file, st.st_size, ret))
        return 0;
    struct past_reader r = {.past = ret};
    const struct trp_log_reader reader = {.take = take, .context = &r};
    int rc = trp_log_events_read(file, &reader, 1, NULL);
    put_ends(&r, ret_ends);
    return rc == TRP_ENOMEM || (ret_ends && ret_ends->failed) ? TRP_ENOMEM : 0;
}
