/*
 * One pass over the log. A stage is known by its name: each start of a run numbers
 * those that it runs from 0, so a number is another stage's there. What a program has
 * several of by one name is told together. What was given up or skipped is forgotten when
 * a later start takes the stage up again. What is told while a stage waits is what was
 * told between its submission and its first task, and what names it.
 *
 * Tries are those of tasks that did not succeed at once: of a task that failed before,
 * in this start or an earlier one, its number is kept until the end, so that the
 * attempt that made it good is told too. An attempt that was handed back before it
 * started is none. Of several stages of a name each has tasks of its own.
 */
#include "events/story.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "core/base/time.h"
#include "core/engine.h"
#include "events/log_event.h"
#include "events/task_names.h"

/* A stage's number in the log, in this start. */
struct known {
    uint32_t id, nth; /* nth: among those of its name in this start, from 0 */
    char *name;
    json_t *stage; /* borrowed; NULL: it was not asked for */
    UT_hash_handle hh;
};

/* A task that was tried before, a place of a stage, or what stages of a name have lost. */
struct again {
    json_t *place;       /* borrowed; NULL: none */
    uint32_t start;      /* in which they have lost that */
    uint32_t stages;     /* of that name, in that start */
    json_int_t left_out; /* of that */
    UT_hash_handle hh;
    char key[];
};

struct reader {
    const char *only;
    bool all;
    json_t *stages;
    struct known *known;
    struct again *again;
    uint32_t start;
    struct trp_task_names names; /* of stages of this start, by number */
};

static const char *or_empty(const char *text)
{
    return text ? text : "";
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

static void set_int(json_t *s, const char *key, int64_t v)
{
    json_object_set_new(s, key, json_integer(v));
}

static void count(json_t *s, const char *key, json_int_t n)
{
    set_int(s, key, json_integer_value(json_object_get(s, key)) + n);
}

/* ---- stages ---- */

static json_t *stage_named(const struct reader *r, const char *name)
{
    json_t *s = json_object_get(r->stages, name);
    return s || (r->only && strcmp(r->only, name) != 0)
               ? s
               : trp_story_add(r->stages, name, "waiting", 0);
}

static struct known *find_known(const struct reader *r, uint32_t id)
{
    struct known *k = NULL;
    HASH_FIND(hh, r->known, &id, sizeof id, k);
    return k;
}

/* What it has lost in this start; of an earlier one it is forgotten. */
static struct again *lost_of(struct reader *r, json_t *s)
{
    char key[32];
    snprintf(key, sizeof key, "%p", (void *)s);
    struct again *lost = find(r, key, true);
    if (lost && lost->start != r->start) {
        lost->start = r->start;
        lost->stages = 0;
        count(s, "left_out", -lost->left_out);
        lost->left_out = 0;
        json_array_clear(json_object_get(s, "given_up"));
        json_array_clear(json_object_get(s, "skipped"));
    }
    return lost;
}

static struct known *know(struct reader *r, const struct trp_log_event *e)
{
    struct known *k = find_known(r, e->stage);
    if (k || !e->stage_name || !(k = calloc(1, sizeof *k)))
        return k;
    k->id = e->stage;
    k->name = strdup(e->stage_name);
    k->stage = k->name ? stage_named(r, e->stage_name) : NULL;
    struct again *lost = k->stage ? lost_of(r, k->stage) : NULL;
    bool ready = k->name && (!k->stage || lost);
    if (lost)
        k->nth = lost->stages++;
    if (ready)
        HASH_ADD(hh, r->known, id, sizeof k->id, k);
    if (ready && k->hh.tbl)
        return k;
    free(k->name);
    free(k);
    return NULL;
}

static void forget_known(struct reader *r)
{
    struct known *k, *next;
    HASH_ITER(hh, r->known, k, next) {
        HASH_DEL(r->known, k);
        free(k->name);
        free(k);
    }
}

static int on_application(void *context, const struct trp_log_event *e)
{
    struct reader *r = context;
    (void)e;
    forget_known(r);
    trp_task_names_free(&r->names);
    r->start++;
    return 0;
}

static json_t *stage_of(const struct reader *r, const struct trp_log_event *e)
{
    const struct known *k = find_known(r, e->stage);
    return k ? k->stage : NULL;
}

static int on_job_start(void *context, const struct trp_log_event *e)
{
    struct trp_log_event stage;
    for (size_t i = 0; i < json_array_size(e->stage_infos); i++) {
        trp_log_stage_of(json_array_get(e->stage_infos, i), &stage);
        const struct known *k = know(context, &stage);
        if (!k)
            return TRP_ENOMEM;
        if (k->stage) {
            set_int(k->stage, "tasks", stage.ntasks);
            json_object_set_new(k->stage, "state", json_string("waiting"));
        }
    }
    return 0;
}

static int on_stage_submitted(void *context, const struct trp_log_event *e)
{
    const struct known *k = know(context, e);
    if (!k)
        return TRP_EINVAL;
    if (!k->stage)
        return 0;
    set_int(k->stage, "tasks", e->ntasks);
    set_int(k->stage, "submitted", trp_ms(e->at));
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

static int on_stage_completed(void *context, const struct trp_log_event *e)
{
    json_t *s = stage_of(context, e);
    if (!s)
        return 0;
    set_int(s, "ended", trp_ms(e->at));
    json_object_set_new(s, "state", json_string(state_of(e->failure)));
    if (e->failure)
        json_object_set_new(s, "reason", json_string(e->failure));
    return 0;
}

static int on_stage_skipped(void *context, const struct trp_log_event *e)
{
    json_t *s = stage_of(context, e);
    if (!s)
        return 0;
    json_object_set_new(s, "state", json_string(or_empty(e->outcome)));
    json_object_set_new(s, "reason", json_string(or_empty(e->reason)));
    set_int(s, "ended", trp_ms(e->at));
    return 0;
}

static int on_names(void *context, const struct trp_log_event *e)
{
    struct reader *r = context;
    return trp_task_names_take(&r->names, e->stage, e);
}

/* A task that was skipped may be of a stage that has told no names. */
static json_t *name_of(const struct reader *r, uint32_t stage, uint32_t task)
{
    const char *name = trp_task_name(&r->names, stage, task);
    return name ? json_string(name) : json_null();
}

/* ---- lists ---- */

static int add(const struct reader *r, json_t *s, const char *list, json_t *take_one)
{
    json_t *to = json_object_get(s, list);
    if (!take_one)
        return TRP_ENOMEM;
    if (!r->all && json_array_size(to) >= TRP_STORY_MAX) {
        json_decref(take_one);
        count(s, "left_out", 1);
        return 0;
    }
    return json_array_append_new(to, take_one) == 0 ? 0 : TRP_ENOMEM;
}

static int add_lost(struct reader *r, json_t *s, const char *list, json_t *take_one)
{
    struct again *lost = lost_of(r, s);
    json_int_t before = json_integer_value(json_object_get(s, "left_out"));
    int code = add(r, s, list, take_one);
    if (lost)
        lost->left_out += json_integer_value(json_object_get(s, "left_out")) - before;
    return lost ? code : TRP_ENOMEM;
}

/* One more task ran there. */
static int count_place(struct reader *r, json_t *s, const struct trp_log_event *e)
{
    const char *host = or_empty(e->host), *id = or_empty(e->executor_name),
               *level = or_empty(e->level_name);
    struct again *a;
    char key[700];
    snprintf(key, sizeof key, "%p %.300s %.20s %.20s", (void *)s, host, id, level);
    if (!(a = find(r, key, true)))
        return TRP_ENOMEM;
    if (a->place) {
        count(a->place, "tasks", 1);
        return 0;
    }
    a->place = json_pack("{s:s, s:s, s:s, s:i}", "host", host, "executor", id, "level",
                         level, "tasks", 1);
    return a->place &&
                   json_array_append_new(json_object_get(s, "places"), a->place) == 0
               ? 0
               : TRP_ENOMEM;
}

static int on_task_start(void *context, const struct trp_log_event *e)
{
    json_t *s = stage_of(context, e);
    if (s && json_is_null(json_object_get(s, "first")))
        set_int(s, "first", trp_ms(e->at));
    return 0;
}

/* Whether the task was tried before; from now on it was, when `note`. */
static bool tried_before(struct reader *r, const struct known *k,
                         const struct trp_log_event *e, bool note)
{
    char key[64];
    snprintf(key, sizeof key, "%p/%u/%u", (void *)k->stage, k->nth, e->task);
    if (find(r, key, false))
        return true;
    return note && !find(r, key, true);
}

static int on_task_end(void *context, const struct trp_log_event *e)
{
    struct reader *r = context;
    const struct known *k = find_known(r, e->stage);
    json_t *s = k ? k->stage : NULL;
    const char *word = or_empty(e->end);
    bool well = strcmp(word, "Success") == 0;
    if (!s || strcmp(or_empty(e->status), trp_end_status_name(TRP_END_RECALLED)) == 0)
        return 0;
    if (well && count_place(r, s, e) < 0)
        return TRP_ENOMEM;
    if (!tried_before(r, k, e, !well) && well && !e->copy && !e->attempt)
        return 0;
    /* What our own status says; of an end that only Spark's word tells that. */
    return add(r, s, "tries",
               json_pack("{s:I, s:o, s:I, s:I, s:s, s:s, s:s, s:b, s:I, s:s?}", "task",
                         (json_int_t)e->task, "name", name_of(r, e->stage, e->task),
                         "attempt", (json_int_t)e->attempt, "stage_attempt",
                         (json_int_t)trp_log_or_0(e->stage_attempt), "host",
                         or_empty(e->host), "executor", or_empty(e->executor_name),
                         "level", or_empty(e->level_name), "copy", e->copy, "ran",
                         trp_ms(e->at) - trp_ms(e->launched), "end",
                         well            ? NULL
                         : e->end_reason ? e->end_reason
                                         : word));
}

static int on_given_up(void *context, const struct trp_log_event *e)
{
    json_t *s = stage_of(context, e);
    if (!s)
        return 0;
    return add_lost(context, s, "given_up",
                    json_pack("{s:I, s:o, s:I, s:s, s:s}", "task",
                              (json_int_t)trp_log_or_0(e->lost_task), "name",
                              name_of(context, e->stage, e->lost_task), "failures",
                              (json_int_t)e->failures, "reason", or_empty(e->reason),
                              "log", or_empty(e->log)));
}

static int on_skipped(void *context, const struct trp_log_event *e)
{
    json_t *s = stage_of(context, e);
    const struct known *k = find_known(context, e->parent);
    if (!s)
        return 0;
    uint32_t above = e->parent_task != TRP_NONE ? e->parent_task : e->lost_task;
    return add_lost(context, s, "skipped",
                    json_pack("{s:I, s:o, s:s, s:I, s:o}", "task",
                              (json_int_t)trp_log_or_0(e->lost_task), "name",
                              name_of(context, e->stage, e->lost_task), "after",
                              k ? k->name : "", "after_task",
                              (json_int_t)trp_log_or_0(above), "after_name",
                              name_of(context, e->parent, above)));
}

/* ---- what was told ---- */

/* "stage NAME …" */
static bool names(const char *text, const char *stage)
{
    size_t n = strlen(stage);
    return strncmp(text, "stage ", 6) == 0 && strncmp(text + 6, stage, n) == 0 &&
           (text[6 + n] == ' ' || text[6 + n] == ':');
}

static int on_message(void *context, const struct trp_log_event *e)
{
    const struct reader *r = context;
    const char *text = or_empty(e->text), *name;
    bool warns = strcmp(or_empty(e->message_level), "info") != 0;
    json_t *s;
    json_object_foreach(r->stages, name, s) {
        bool waits = json_is_integer(json_object_get(s, "submitted")) &&
                     json_is_null(json_object_get(s, "first")) &&
                     json_is_null(json_object_get(s, "ended")) &&
                     strncmp(text, "stage ", 6) != 0;
        if ((names(text, name) || (waits && warns)) &&
            add(r, s, "told",
                json_pack("{s:I, s:s}", "at", trp_ms(e->at), "text", text)) < 0)
            return TRP_ENOMEM;
    }
    return 0;
}

/* ---- the whole ---- */

static void forget(struct reader *r)
{
    struct again *a, *after;
    forget_known(r);
    trp_task_names_free(&r->names);
    HASH_ITER(hh, r->again, a, after) {
        HASH_DEL(r->again, a);
        free(a);
    }
}

json_t *trp_story_add(json_t *stories, const char *name, const char *state,
                      int64_t tasks)
{
    json_t *s = json_pack(
        "{s:I, s:s, s:n, s:n, s:n, s:n, s:[], s:[], s:[], s:[], s:[], s:i}", "tasks",
        (json_int_t)tasks, "state", state, "reason", "submitted", "first", "ended",
        "places", "tries", "given_up", "skipped", "told", "left_out", 0);
    return s && json_object_set_new(stories, name, s) == 0 ? s : NULL;
}

int trp_story_read(const char *file, const char *stage, bool all, json_t **ret,
                   trp_error *err)
{
    static trp_log_take *const take[TRP_LOG_EVENTS] = {
        [TRP_LOG_APPLICATION] = on_application,
        [TRP_LOG_JOB] = on_job_start,
        [TRP_LOG_STAGE] = on_stage_submitted,
        [TRP_LOG_STAGE_END] = on_stage_completed,
        [TRP_LOG_STAGE_SKIPPED] = on_stage_skipped,
        [TRP_LOG_TASK] = on_task_start,
        [TRP_LOG_TASK_END] = on_task_end,
        [TRP_LOG_TASK_GIVEN_UP] = on_given_up,
        [TRP_LOG_TASK_SKIPPED] = on_skipped,
        [TRP_LOG_TASK_NAMES] = on_names,
        [TRP_LOG_MESSAGE] = on_message,
    };
    struct reader r = {.only = stage, .all = all, .stages = json_object()};
    const struct trp_log_reader reader = {.take = take, .context = &r};
    int code = r.stages ? trp_log_events_read(file, &reader, 1, err)
                        : trp_error_set(err, TRP_ENOMEM, "out of memory");
    forget(&r);
    if (code < 0)
        json_decref(r.stages);
    else
        *ret = r.stages;
    return code;
}
