/*
 * One pass over the log. A stage is known by its name: a resumed run has another id for
 * it in each start. What is told while a stage waits is what was told between its
 * submission and its first task, and what names it.
 *
 * Tries are those of tasks that did not succeed at once: of a task that failed before,
 * its number is kept until the end, so that the attempt that made it good is told too.
 */
#include "events/story.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "core/engine.h"
#include "events/event_lines.h"

/* A stage's number in the log, in one of its starts. */
struct known {
    int64_t id;
    char *name;
    json_t *stage; /* borrowed; NULL: it was not asked for */
    UT_hash_handle hh;
};

/* A task that was tried before; or a place of a stage. */
struct again {
    json_t *place; /* borrowed; NULL: a task */
    UT_hash_handle hh;
    char key[];
};

struct reader {
    const char *only;
    bool all;
    json_t *stages;
    struct known *known;
    struct again *again;
};

static const char *text_of(const json_t *of, const char *key)
{
    const char *text = json_string_value(json_object_get(of, key));
    return text ? text : "";
}

static int64_t int_of(const json_t *of, const char *key)
{
    return json_integer_value(json_object_get(of, key));
}

/* ---- stages ---- */

static json_t *stage_named(const struct reader *r, const char *name)
{
    json_t *s = json_object_get(r->stages, name);
    if (s || (r->only && strcmp(r->only, name) != 0))
        return s;
    s = json_pack("{s:i, s:s, s:n, s:n, s:n, s:n, s:[], s:[], s:[], s:[], s:[], s:i}",
                  "tasks", 0, "state", "waiting", "reason", "submitted", "first",
                  "ended", "places", "tries", "given_up", "skipped", "told", "left_out",
                  0);
    return s && json_object_set_new(r->stages, name, s) == 0 ? s : NULL;
}

/* A start counts its stages anew, in numbers that were not there before. */
static struct known *know(struct reader *r, const json_t *info)
{
    const char *name = json_string_value(json_object_get(info, "Stage Name"));
    int64_t id = int_of(info, "Stage ID");
    struct known *k = NULL;
    HASH_FIND(hh, r->known, &id, sizeof id, k);
    if (k || !name || !(k = calloc(1, sizeof *k)))
        return k;
    k->id = id;
    k->name = strdup(name);
    k->stage = k->name ? stage_named(r, name) : NULL;
    if (k->name)
        HASH_ADD(hh, r->known, id, sizeof k->id, k);
    if (k->name && k->hh.tbl)
        return k;
    free(k->name);
    free(k);
    return NULL;
}

static json_t *stage_of(const struct reader *r, const json_t *event)
{
    int64_t id = int_of(event, "Stage ID");
    struct known *k = NULL;
    HASH_FIND(hh, r->known, &id, sizeof id, k);
    return k ? k->stage : NULL;
}

static void set_int(json_t *s, const char *key, int64_t v)
{
    json_object_set_new(s, key, json_integer(v));
}

static int on_job_start(void *context, const json_t *event)
{
    struct reader *r = context;
    const json_t *infos = json_object_get(event, "Stage Infos"), *info;
    size_t i;
    json_array_foreach(infos, i, info) {
        const struct known *k = know(r, info);
        if (!k)
            return TRP_ENOMEM;
        if (k->stage) {
            set_int(k->stage, "tasks", int_of(info, "Number of Tasks"));
            json_object_set_new(k->stage, "state", json_string("waiting"));
        }
    }
    return 0;
}

static int on_stage_submitted(void *context, const json_t *event)
{
    struct reader *r = context;
    const json_t *info = json_object_get(event, "Stage Info");
    const struct known *k = know(r, info);
    if (!k)
        return TRP_EINVAL;
    if (!k->stage)
        return 0;
    set_int(k->stage, "tasks", int_of(info, "Number of Tasks"));
    set_int(k->stage, "submitted", int_of(info, "Submission Time"));
    json_object_set_new(k->stage, "state", json_string("running"));
    json_object_set_new(k->stage, "first", json_null());
    json_object_set_new(k->stage, "ended", json_null());
    json_object_set_new(k->stage, "reason", json_null());
    return 0;
}

/* The word of an outcome, else it is why the stage failed. */
static const char *state_of(const char *why)
{
    for (int i = TRP_OUTCOME_SUCCEEDED; why && i <= TRP_OUTCOME_SKIPPED; i++)
        if (strcmp(why, trp_outcome_name(i)) == 0)
            return trp_outcome_name(i);
    return why ? "failed" : "succeeded";
}

static int on_stage_completed(void *context, const json_t *event)
{
    const struct reader *r = context;
    const json_t *info = json_object_get(event, "Stage Info");
    json_t *s = stage_of(r, info);
    json_t *why = json_object_get(info, "Failure Reason");
    if (!s)
        return 0;
    set_int(s, "ended", int_of(info, "Completion Time"));
    json_object_set_new(s, "state", json_string(state_of(json_string_value(why))));
    if (why)
        json_object_set(s, "reason", why);
    return 0;
}

static int on_stage_skipped(void *context, const json_t *event)
{
    json_t *s = stage_of(context, event);
    if (!s)
        return 0;
    json_object_set_new(s, "state", json_string(text_of(event, "Outcome")));
    json_object_set_new(s, "reason", json_string(text_of(event, "Reason")));
    set_int(s, "ended", int_of(event, "Timestamp"));
    return 0;
}

/* ---- lists ---- */

static int add(const struct reader *r, json_t *s, const char *list, json_t *take_one)
{
    json_t *to = json_object_get(s, list);
    if (!take_one)
        return TRP_ENOMEM;
    if (!r->all && json_array_size(to) >= TRP_STORY_MAX) {
        json_decref(take_one);
        set_int(s, "left_out", int_of(s, "left_out") + 1);
        return 0;
    }
    return json_array_append_new(to, take_one) == 0 ? 0 : TRP_ENOMEM;
}

static struct again *find(struct reader *r, const char *key, bool make)
{
    struct again *a = NULL;
    HASH_FIND_STR(r->again, key, a);
    if (a || !make || !(a = calloc(1, sizeof *a + strlen(key) + 1)))
        return a;
    strcpy(a->key, key);
    HASH_ADD_STR(r->again, key, a);
    return a;
}

/* One more task ran there. */
static int count_place(struct reader *r, json_t *s, const json_t *info)
{
    const char *host = text_of(info, "Host"), *id = text_of(info, "Executor ID"),
               *level = text_of(info, "Locality");
    struct again *a;
    char key[700];
    snprintf(key, sizeof key, "%p %.300s %.20s %.20s", (void *)s, host, id, level);
    if (!(a = find(r, key, true)))
        return TRP_ENOMEM;
    if (a->place) {
        set_int(a->place, "tasks", int_of(a->place, "tasks") + 1);
        return 0;
    }
    a->place = json_pack("{s:s, s:s, s:s, s:i}", "host", host, "executor", id, "level",
                         level, "tasks", 1);
    return a->place &&
                   json_array_append_new(json_object_get(s, "places"), a->place) == 0
               ? 0
               : TRP_ENOMEM;
}

static int on_task_start(void *context, const json_t *event)
{
    json_t *s = stage_of(context, event);
    const json_t *info = json_object_get(event, "Task Info");
    if (s && json_is_null(json_object_get(s, "first")))
        set_int(s, "first", int_of(info, "Launch Time"));
    return 0;
}

/* Whether the task was tried before; from now on it was, when `note`. */
static bool tried_before(struct reader *r, const json_t *event, bool note)
{
    char key[64];
    snprintf(key, sizeof key, "%lld/%lld", (long long)int_of(event, "Stage ID"),
             (long long)int_of(json_object_get(event, "Task Info"), "Index"));
    if (find(r, key, false))
        return true;
    return note && !find(r, key, true);
}

/* What our own status says; an end that only Spark's word tells. */
static json_t *end_text(const json_t *reason)
{
    const char *ours = json_string_value(json_object_get(reason, "Troupe Reason"));
    const char *word = text_of(reason, "Reason");
    if (strcmp(word, "Success") == 0)
        return json_null();
    return json_string(ours ? ours : word);
}

static int on_task_end(void *context, const json_t *event)
{
    struct reader *r = context;
    json_t *s = stage_of(r, event);
    const json_t *info = json_object_get(event, "Task Info");
    const json_t *reason = json_object_get(event, "Task End Reason");
    bool well = strcmp(text_of(reason, "Reason"), "Success") == 0;
    bool copy = json_is_true(json_object_get(info, "Speculative"));
    if (!s)
        return 0;
    if (well && count_place(r, s, info) < 0)
        return TRP_ENOMEM;
    if (!tried_before(r, event, !well) && well && !copy && !int_of(info, "Attempt"))
        return 0;
    return add(r, s, "tries",
               json_pack("{s:I, s:I, s:I, s:s, s:s, s:s, s:b, s:I, s:o}", "task",
                         int_of(info, "Index"), "attempt", int_of(info, "Attempt"),
                         "stage_attempt", int_of(event, "Stage Attempt ID"), "host",
                         text_of(info, "Host"), "executor",
                         text_of(info, "Executor ID"), "level",
                         text_of(info, "Locality"), "copy", copy, "ran",
                         int_of(info, "Finish Time") - int_of(info, "Launch Time"),
                         "end", end_text(reason)));
}

static int on_given_up(void *context, const json_t *event)
{
    const struct reader *r = context;
    json_t *s = stage_of(r, event);
    if (!s)
        return 0;
    return add(r, s, "given_up",
               json_pack("{s:I, s:I, s:s, s:s}", "task", int_of(event, "Task Index"),
                         "failures", int_of(event, "Failures"), "reason",
                         text_of(event, "Reason"), "log", text_of(event, "Log")));
}

static int on_skipped(void *context, const json_t *event)
{
    const struct reader *r = context;
    json_t *s = stage_of(r, event);
    int64_t parent = int_of(event, "Parent Stage ID");
    struct known *k = NULL;
    HASH_FIND(hh, r->known, &parent, sizeof parent, k);
    if (!s)
        return 0;
    return add(r, s, "skipped",
               json_pack("{s:I, s:s}", "task", int_of(event, "Task Index"), "after",
                         k ? k->name : ""));
}

/* ---- what was told ---- */

/* "stage NAME …" */
static bool names(const char *text, const char *stage)
{
    size_t n = strlen(stage);
    return strncmp(text, "stage ", 6) == 0 && strncmp(text + 6, stage, n) == 0 &&
           (text[6 + n] == ' ' || text[6 + n] == ':');
}

static int on_message(void *context, const json_t *event)
{
    const struct reader *r = context;
    const char *text = text_of(event, "Text"), *name;
    bool warns = strcmp(text_of(event, "Level"), "info") != 0;
    json_t *s;
    json_object_foreach(r->stages, name, s) {
        bool waits = json_is_integer(json_object_get(s, "submitted")) &&
                     json_is_null(json_object_get(s, "first")) &&
                     json_is_null(json_object_get(s, "ended")) &&
                     strncmp(text, "stage ", 6) != 0;
        if ((names(text, name) || (waits && warns)) &&
            add(r, s, "told",
                json_pack("{s:I, s:s}", "at", int_of(event, "Timestamp"), "text",
                          text)) < 0)
            return TRP_ENOMEM;
    }
    return 0;
}

/* ---- the whole ---- */

static void forget(struct reader *r)
{
    struct known *k, *next;
    struct again *a, *after;
    HASH_ITER(hh, r->known, k, next) {
        HASH_DEL(r->known, k);
        free(k->name);
        free(k);
    }
    HASH_ITER(hh, r->again, a, after) {
        HASH_DEL(r->again, a);
        free(a);
    }
}

int trp_story_read(const char *file, const char *stage, bool all, json_t **ret,
                   trp_error *err)
{
    static const struct trp_event_line_kind kinds[] = {
        {"SparkListenerJobStart",       on_job_start      },
        {"SparkListenerStageSubmitted", on_stage_submitted},
        {"SparkListenerStageCompleted", on_stage_completed},
        {"TroupeStageSkipped",          on_stage_skipped  },
        {"SparkListenerTaskStart",      on_task_start     },
        {"SparkListenerTaskEnd",        on_task_end       },
        {"TroupeTaskGivenUp",           on_given_up       },
        {"TroupeTaskSkipped",           on_skipped        },
        {"TroupeMessage",               on_message        },
    };
    struct reader r = {.only = stage, .all = all, .stages = json_object()};
    int code = r.stages ? trp_event_lines_read(file, kinds,
                                               sizeof kinds / sizeof *kinds, &r, err)
                        : trp_error_set(err, TRP_ENOMEM, "out of memory");
    forget(&r);
    if (code < 0)
        json_decref(r.stages);
    else
        *ret = r.stages;
    return code;
}
