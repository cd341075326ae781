/*
 * The event log: that its lines are Spark's, that nothing is lost when it cannot keep
 * up, and what is left after a crash and on a full disk. A writer that cannot keep up
 * is made by a pipe that nobody reads.
 */
#include "events/event_log.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver_files.h"
#include "events/task_names.h"
#include "spark_fields.h"
#include "unit.h"

#define MS INT64_C(1000000)
#define START (INT64_C(1800000000) * 1000 * MS)

struct world {
    char *dir, *file, *history;
    trp_event_log *log;
    struct trp_resource_profile profile;
    uint32_t attempt; /* of the stage that begin_run submits */
};

static void open_log(struct world *w, enum trp_events_tasks tasks)
{
    trp_error err = {0};
    struct trp_event_log_config c = {.file = w->file,
                                     .app_id = "app-20270115080000-42",
                                     .app_name = "weather",
                                     .user = "ada",
                                     .tasks = tasks,
                                     .history_dir = w->history};
    if (trp_event_log_new(&c, &w->log, &err) != 0)
        g_error("wanted a log, got %s", err.text);
}

static struct world *new_world(void)
{
    struct world *w = g_new0(struct world, 1);
    w->dir = g_dir_make_tmp("troupe-events-XXXXXX", NULL);
    g_autofree char *run = g_build_filename(w->dir, "RUN", NULL);
    g_mkdir(run, 0700);
    w->file = g_build_filename(run, "events.jsonl", NULL);
    w->history = g_build_filename(w->dir, ".history", NULL);
    w->profile = (struct trp_resource_profile){.id = {1},
                                               .name = "train",
                                               .cores = 2,
                                               .task_cpus = 1,
                                               .memory_mib = 512,
                                               .slots = 2,
                                               .ncustom = 1,
                                               .custom = {{.name = "gpu",
                                                           .executor = 2,
                                                           .task = TRP_ONE / 2,
                                                           .on_executor = true,
                                                           .on_task = true}},
                                               .executor.pyspark_mib = -1};
    return w;
}

static void end_log(struct world *w)
{
    trp_error err = {0};
    if (trp_event_log_end(w->log, START + 9000 * MS, 0, &err) != 0)
        g_error("wanted a good end, got %s", err.text);
}

static void free_world(struct world *w)
{
    trp_event_log_free(w->log);
    files_remove(w->dir);
    g_free(w->dir);
    g_free(w->file);
    g_free(w->history);
    g_free(w);
}

/* ---- telling ---- */

static trp_attempt_id attempt(uint32_t n)
{
    return (trp_attempt_id){(uint64_t)n << 32 | (n % 100)};
}

static void start(struct world *w, uint32_t stage, uint32_t task)
{
    struct trp_action a = {
        .kind = TRP_ACTION_LAUNCH,
        .launch = {.attempt = attempt(task),
                   .stage = {stage},
                   .task = task,
                   .executor = {0},
                   .level = TRP_PROCESS_LOCAL}
    };
    trp_event_task_started(w->log, (trp_stage_id){stage}, &a, "node1",
                           START + 3000 * MS);
}

static void end(struct world *w, uint32_t stage, uint32_t task,
                enum trp_end_status status, int32_t code, const char *reason)
{
    struct trp_action a = {
        .kind = TRP_ACTION_TASK_END,
        .task_end = {.attempt = attempt(task),
                     .stage = {stage},
                     .task = task,
                     .executor = {0},
                     .level = TRP_PROCESS_LOCAL,
                     .status = status,
                     .code = code,
                     .counted = status == TRP_END_EXIT}
    };
    struct trp_end e = {.attempt = attempt(task),
                        .status = (uint8_t)status,
                        .duration_ns = 700 * MS,
                        .cpu_ns = 600 * MS,
                        .peak_kib = 2048};
    struct trp_event_task t = {.verdict = &a,
                               .end = status == TRP_END_LOST ? NULL : &e,
                               .launched = START + 3000 * MS,
                               .ended = START + 3800 * MS,
                               .host = "node1",
                               .profile = &w->profile,
                               .reason = reason};
    trp_event_task_ended(w->log, &t);
}

static struct trp_event_stage stage(uint32_t id, const char *name, uint32_t ntasks)
{
    static const trp_stage_id parents[] = {{0}};
    return (struct trp_event_stage){.stage = {id},
                                    .name = name,
                                    .ntasks = ntasks,
                                    .profile = {1},
                                    .parents = parents,
                                    .nparents = id > 0};
}

/* One job of one stage, submitted; one executor. */
static void begin_run(struct world *w, const char *name, uint32_t ntasks)
{
    const char *keys[] = {"executor.cores", "alloc.reuse"};
    const char *values[] = {"2", "exact"};
    const char *devices[] = {"0", "1"};
    struct trp_resource_addresses gpu = {"gpu", devices, 2};
    struct trp_event_stage s = stage(0, name, ntasks);
    s.attempt = w->attempt;
    trp_event_environment(w->log, keys, values, 2);
    trp_event_application_start(w->log, START);
    trp_event_profile(w->log, &w->profile);
    trp_event_job_start(w->log, &(struct trp_event_job){.job = {0}}, START + 1000 * MS,
                        &s, 1);
    trp_event_executor_added(w->log, (trp_executor_id){0}, "node1", &w->profile, &gpu,
                             1, START + 1500 * MS, START + 2000 * MS);
    trp_event_stage_submitted(w->log, &s, START + 2500 * MS);
}

static void end_run(struct world *w)
{
    trp_event_stage_ended(w->log, (trp_stage_id){0}, TRP_OUTCOME_SUCCEEDED, "",
                          START + 4000 * MS);
    trp_event_job_end(w->log, (trp_job_id){0}, TRP_OUTCOME_SUCCEEDED, "",
                      START + 4000 * MS);
    trp_event_executor_removed(w->log, (trp_executor_id){0}, "released",
                               START + 5000 * MS);
    end_log(w);
}

/* ---- reading ---- */

/* All lines, parsed; each must be a JSON object whose first key is Event. */
static GPtrArray *parse(const char *text, gsize n)
{
    GPtrArray *v = g_ptr_array_new_with_free_func((GDestroyNotify)json_decref);
    g_assert_true(n > 0 && text[n - 1] == '\n');
    while (n > 0) {
        const char *lf = memchr(text, '\n', n);
        json_error_t e;
        json_t *j = json_loadb(text, (size_t)(lf - text), 0, &e);
        if (!j)
            g_error("wanted JSON, got %s: %.*s", e.text, (int)(lf - text), text);
        if (!g_str_has_prefix(text, "{\"Event\":\"SparkListener") &&
            !g_str_has_prefix(text, "{\"Event\":\"Troupe"))
            g_error("wanted Event in front, got %.40s", text);
        g_ptr_array_add(v, j);
        n -= (gsize)(lf - text) + 1;
        text = lf + 1;
    }
    return v;
}

static GPtrArray *lines_of(const struct world *w)
{
    char *text;
    gsize n;
    g_assert_true(g_file_get_contents(w->file, &text, &n, NULL));
    GPtrArray *v = parse(text, n);
    g_free(text);
    return v;
}

static const char *event_of(const json_t *j)
{
    return json_string_value(json_object_get(j, "Event"));
}

static uint32_t count(GPtrArray *v, const char *event)
{
    uint32_t n = 0;
    for (guint i = 0; i < v->len; i++)
        n += strcmp(event_of(v->pdata[i]), event) == 0;
    return n;
}

static json_t *nth(GPtrArray *v, const char *event, uint32_t n)
{
    for (guint i = 0; i < v->len; i++)
        if (strcmp(event_of(v->pdata[i]), event) == 0 && n-- == 0)
            return v->pdata[i];
    g_error("wanted one more %s", event);
}

/* "Task Info/Index" */
static json_t *at(json_t *j, const char *path)
{
    char **keys = g_strsplit(path, "/", -1);
    for (char **k = keys; j && *k; k++)
        j = json_is_array(j) ? json_array_get(j, (size_t)atoi(*k))
                             : json_object_get(j, *k);
    g_strfreev(keys);
    return j;
}

static const char *text_at(json_t *j, const char *path)
{
    const char *s = json_string_value(at(j, path));
    if (!s)
        g_error("wanted a text at %s of %s", path, event_of(j));
    return s;
}

/* ---- tests ---- */

TEST("events have the fields of Spark's")
{
    struct world *w = new_world();
    open_log(w, TRP_EVENTS_AUTO);
    begin_run(w, "solve", 2);
    start(w, 0, 0);
    start(w, 0, 1);
    end(w, 0, 0, TRP_END_SUCCESS, 0, "");
    end(w, 0, 1, TRP_END_EXIT, 37, "exit status 37");
    end_run(w);
    GPtrArray *v = lines_of(w);
    for (size_t i = 0; i < G_N_ELEMENTS(spark_fields); i++) {
        bool failed = g_str_has_suffix(spark_fields[i].event, " failed");
        json_t *j = failed ? nth(v, "SparkListenerTaskEnd", 1)
                           : nth(v, spark_fields[i].event, 0);
        for (const char *const *f = spark_fields[i].fields; *f; f++)
            if (!at(j, *f))
                g_error("wanted %s in %s", *f, spark_fields[i].event);
    }
    g_ptr_array_unref(v);
    free_world(w);
}

/* ---- as the History Server reads it ---- */

struct history {
    GHashTable *seen, *open; /* "job 3", "stage 0.1", … */
    char *app_id;
    guint starts;
};

static void history_begin(struct history *h, const char *what)
{
    if (!g_hash_table_add(h->seen, g_strdup(what)))
        g_error("%s is there twice", what);
    g_hash_table_add(h->open, g_strdup(what));
}

static void history_end(struct history *h, const char *what)
{
    if (!g_hash_table_remove(h->open, what))
        g_error("%s ends and does not run", what);
}

/* What ResourceProfile's constructor refuses, which is an HTTP 500 there. */
static void history_profile(json_t *j)
{
    const char *name;
    json_t *request;
    json_object_foreach(at(j, "Task Resource Requests"), name, request) {
        double amount = json_number_value(at(request, "Amount"));
        if (amount > 0.5 && amount != (double)(gint64)amount)
            g_error("wanted %s to be at most 0.5 or whole, got %g", name, amount);
    }
}

/* What BlockManagerId's constructor refuses, the same. */
static void history_block(json_t *j)
{
    json_t *from = at(j, "Block Updated Info/Block Manager ID");
    if (json_integer_value(at(from, "Port")) <= 0)
        g_error("wanted a port above 0, got %s", json_dumps(from, JSON_COMPACT));
}

static void history_event(struct history *h, json_t *j)
{
    static const struct {
        const char *event, *what, *id, *attempt;
        bool begins;
    } kinds[] = {
        {"SparkListenerJobStart",        "job",      "Job ID",              NULL, true },
        {"SparkListenerJobEnd",          "job",      "Job ID",              NULL, false},
        {"SparkListenerStageSubmitted",  "stage",    "Stage Info/Stage ID",
         "Stage Info/Stage Attempt ID",                                           true },
        {"SparkListenerStageCompleted",  "stage",    "Stage Info/Stage ID",
         "Stage Info/Stage Attempt ID",                                           false},
        {"SparkListenerTaskStart",       "task",     "Task Info/Task ID",   NULL, true },
        {"SparkListenerTaskEnd",         "task",     "Task Info/Task ID",   NULL, false},
        {"SparkListenerExecutorAdded",   "executor", "Executor ID",         NULL, true },
        {"SparkListenerExecutorRemoved", "executor", "Executor ID",         NULL, false},
    };
    const char *event = event_of(j);
    if (g_str_equal(event, "SparkListenerResourceProfileAdded"))
        history_profile(j);
    if (g_str_equal(event, "SparkListenerBlockUpdated"))
        history_block(j);
    if (g_str_equal(event, "SparkListenerApplicationStart")) {
        h->starts++;
        if (h->app_id)
            g_assert_cmpstr(text_at(j, "App ID"), ==, h->app_id);
        else
            h->app_id = g_strdup(text_at(j, "App ID"));
    }
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (!g_str_equal(event, kinds[i].event))
            continue;
        char *id = json_dumps(at(j, kinds[i].id), JSON_ENCODE_ANY);
        char *attempt = kinds[i].attempt
                            ? json_dumps(at(j, kinds[i].attempt), JSON_ENCODE_ANY)
                            : NULL;
        char *what =
            g_strdup_printf("%s %s.%s", kinds[i].what, id, attempt ? attempt : "");
        (kinds[i].begins ? history_begin : history_end)(h, what);
        g_free(what);
        free(attempt);
        free(id);
    }
}

/* One application, nothing twice, and when it is over nothing runs but executors, which
 * Spark's need not be told to go. */
static void opens_in_history(GPtrArray *lines, guint starts)
{
    struct history h = {
        .seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
        .open = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
    for (guint i = 0; i < lines->len; i++)
        history_event(&h, lines->pdata[i]);
    GHashTableIter open;
    gpointer what;
    g_hash_table_iter_init(&open, h.open);
    while (g_hash_table_iter_next(&open, &what, NULL))
        if (!g_str_has_prefix(what, "executor"))
            g_error("%s still runs at the end", (char *)what);
    g_assert_cmpuint(h.starts, ==, starts);
    g_hash_table_unref(h.seen);
    g_hash_table_unref(h.open);
    g_free(h.app_id);
}

static void one_start(struct world *w)
{
    open_log(w, TRP_EVENTS_AUTO);
    begin_run(w, "solve", 2);
    start(w, 0, 0);
    start(w, 0, 1);
    end(w, 0, 0, TRP_END_SUCCESS, 0, "");
    end(w, 0, 1, TRP_END_EXIT, 37, "exit status 37");
}

static bool name_of(void *context, uint32_t task, struct trp_buf *b)
{
    char name[40];
    (void)context;
    trp_put_raw(b, name, (size_t)snprintf(name, sizeof name, "sample-%030u", task));
    return true;
}

static bool no_name(void *context, uint32_t task, struct trp_buf *b)
{
    (void)context;
    (void)b;
    return task < 1;
}

TEST("names of tasks are told once, in lines that are not too long, and read again")
{
    struct world *w = new_world();
    struct trp_task_names names = {0};
    open_log(w, TRP_EVENTS_AUTO);
    begin_run(w, "s", 3000);
    trp_event_task_names(w->log, (trp_stage_id){0}, 3000, name_of, NULL, 0);
    trp_event_task_names(w->log, (trp_stage_id){1}, 3000, no_name, NULL, 0);
    end_run(w);
    GPtrArray *v = lines_of(w);
    g_assert_cmpuint(count(v, "TroupeTaskNames"), ==, 5);
    for (uint32_t i = 0; i < 5; i++) {
        struct trp_log_event e;
        g_assert_cmpint(trp_log_event_decode(nth(v, "TroupeTaskNames", i), &e), ==, 0);
        g_assert_cmpint(trp_task_names_take(&names, e.stage, &e), ==, 0);
    }
    g_ptr_array_unref(v);
    g_assert_cmpuint(trp_task_names_count(&names, 0), ==, 3000);
    g_assert_cmpuint(trp_task_names_count(&names, 1), ==, 1);
    g_assert_cmpstr(trp_task_name(&names, 0, 2999), ==,
                    "sample-000000000000000000000000002999");
    g_assert_cmpstr(trp_task_name(&names, 1, 0), ==, "");
    g_assert_null(trp_task_name(&names, 0, 3000));
    g_assert_null(trp_task_name(&names, 2, 0));
    trp_task_names_free(&names);
    free_world(w);
}

TEST("a task is called by its name, in a form that is no number and stays in its line")
{
    static const struct {
        const char *name, *word;
    } v[] = {
        {NULL,                      "7"         },
        {"s07",                     "s07"       },
        {"2b",                      "2b"        },
        {"7",                       "key=7"     },
        {"7.1",                     "key=7.1"   },
        {"key=7",                   "key=key=7" },
        {"a\033[1m\nb\302\233\377", "a.[1m.b..."},
        {"\303\244",                "\303\244"  },
    };
    char word[TRP_TASK_WORD], name[400], shown[TRP_TASK_WORD];
    for (size_t i = 0; i < G_N_ELEMENTS(v); i++)
        g_assert_cmpstr(trp_task_word(7, v[i].name, word), ==, v[i].word);
    memset(name, 'x', sizeof name - 1);
    name[199] = '\303'; /* a character that would be cut */
    name[200] = '\244';
    name[sizeof name - 1] = '\0';
    snprintf(shown, sizeof shown, "%.199s…", name);
    g_assert_cmpstr(trp_task_word(7, name, word), ==, shown);
}

TEST("the starts of a resumed run are one application")
{
    struct world *w = new_world();
    one_start(w);
    end_run(w);
    trp_event_log_free(w->log);
    w->attempt = 1;
    one_start(w);
    end_run(w);
    trp_event_log_free(w->log);
    w->attempt = 2;
    one_start(w);
    end_run(w);
    GPtrArray *v = lines_of(w);
    opens_in_history(v, 3);
    g_assert_cmpint(
        json_integer_value(at(nth(v, "SparkListenerJobStart", 2), "Job ID")), ==, 2);
    g_assert_cmpstr(text_at(nth(v, "SparkListenerExecutorAdded", 1), "Executor ID"), ==,
                    "1");
    json_t *task = nth(v, "SparkListenerTaskEnd", 3);
    g_assert_cmpstr(text_at(task, "Task Info/Executor ID"), ==, "1");
    g_assert_cmpint(json_integer_value(at(task, "Task Info/Task ID")), ==, 3);
    g_ptr_array_unref(v);
    GDir *d = g_dir_open(w->history, 0, NULL);
    g_assert_cmpstr(g_dir_read_name(d), ==, "app-20270115080000-42");
    g_assert_null(g_dir_read_name(d));
    g_dir_close(d);
    free_world(w);
}

/* What a start that was killed has left open is ended, at its last event. */
TEST("what a start that died has left open is ended")
{
    struct world *w = new_world();
    open_log(w, TRP_EVENTS_AUTO);
    begin_run(w, "solve", 2);
    start(w, 0, 0);
    start(w, 0, 1);
    end(w, 0, 0, TRP_END_SUCCESS, 0, "");
    trp_event_log_free(w->log); /* without an end */
    w->attempt = 1;
    one_start(w);
    end_run(w);
    GPtrArray *v = lines_of(w);
    opens_in_history(v, 2);
    json_t *stage = nth(v, "SparkListenerStageCompleted", 0);
    g_assert_cmpstr(text_at(stage, "Stage Info/Failure Reason"), ==,
                    "the run ended without a word");
    json_t *killed = nth(v, "SparkListenerTaskEnd", 1);
    g_assert_cmpstr(text_at(killed, "Task End Reason/Kill Reason"), ==,
                    "the run ended without a word");
    g_assert_cmpint(json_integer_value(at(killed, "Task Info/Finish Time")), <,
                    (START + 9000 * MS) / MS);
    g_assert_cmpuint(count(v, "SparkListenerExecutorRemoved"), ==, 2);
    g_ptr_array_unref(v);
    free_world(w);
}

TEST("the History Server reads blocks that are kept")
{
    struct world *w = new_world();
    const struct trp_event_block block = {.executor = {0},
                                          .host = "n1",
                                          .dataset = 3,
                                          .partition = 7,
                                          .attempt = {UINT64_MAX},
                                          .level = 1,
                                          .there = true,
                                          .memory = 100};
    open_log(w, TRP_EVENTS_AUTO);
    begin_run(w, "solve", 0);
    trp_event_block(w->log, &block, START + 3 * MS);
    end_run(w);
    GPtrArray *v = lines_of(w);
    opens_in_history(v, 1);
    json_t *j = nth(v, "SparkListenerBlockUpdated", 0);
    g_assert_cmpstr(text_at(j, "Block Updated Info/Block Manager ID/Executor ID"), ==,
                    "0");
    g_assert_cmpstr(text_at(j, "Block Updated Info/Block ID"), ==, "rdd_3_7");
    g_ptr_array_unref(v);
    free_world(w);
}

TEST("the History Server reads all amounts of tasks")
{
    struct world *w = new_world();
    open_log(w, TRP_EVENTS_AUTO);
    w->profile.task_only = true;
    w->profile.custom[0].task = TRP_ONE / 10 * 7;
    begin_run(w, "solve", 1);
    start(w, 0, 0);
    end(w, 0, 0, TRP_END_SUCCESS, 0, "");
    end_run(w);
    GPtrArray *v = lines_of(w);
    opens_in_history(v, 1);
    json_t *p = nth(v, "SparkListenerResourceProfileAdded", 0);
    g_assert_cmpfloat(
        json_number_value(at(p, "Task Resource Requests/gpu/Troupe Amount")), ==, 0.7);
    g_ptr_array_unref(v);
    free_world(w);
}

TEST("values are those of the run")
{
    struct world *w = new_world();
    open_log(w, TRP_EVENTS_AUTO);
    begin_run(w, "solve", 1);
    start(w, 0, 0);
    end(w, 0, 0, TRP_END_SUCCESS, 0, "");
    end_run(w);
    GPtrArray *v = lines_of(w);
    json_t *p = nth(v, "SparkListenerResourceProfileAdded", 0);
    g_assert_cmpfloat(json_real_value(at(p, "Task Resource Requests/gpu/Amount")), ==,
                      0.5);
    g_assert_cmpint(json_integer_value(at(p, "Executor Resource Requests/gpu/Amount")),
                    ==, 2);
    json_t *env = nth(v, "SparkListenerEnvironmentUpdate", 0);
    g_assert_cmpstr(text_at(env, "Spark Properties/spark.executor.cores"), ==, "2");
    g_assert_cmpstr(text_at(env, "Spark Properties/troupe.alloc.reuse"), ==, "exact");
    json_t *t = nth(v, "SparkListenerTaskEnd", 0);
    g_assert_cmpint(json_integer_value(at(t, "Task Metrics/Executor Run Time")), ==,
                    700);
    g_assert_cmpint(json_integer_value(at(t, "Task Metrics/Executor CPU Time")), ==,
                    600 * MS);
    g_assert_cmpint(json_integer_value(at(t, "Task Metrics/Peak Execution Memory")), ==,
                    2048 * 1024);
    g_assert_cmpint(json_integer_value(at(t, "Task Info/Finish Time")), ==,
                    (START + 3800 * MS) / MS);
    json_t *s = nth(v, "SparkListenerStageCompleted", 0);
    g_assert_cmpint(json_integer_value(at(s, "Stage Info/Submission Time")), ==,
                    (START + 2500 * MS) / MS);
    g_ptr_array_unref(v);
    free_world(w);
}

TEST("a TaskEnd says how the attempt ended")
{
    static const struct {
        enum trp_end_status status;
        int code;
        const char *reason, *spark, *field;
        bool failed, killed;
    } ends[] = {
        {TRP_END_EXIT,    37, "exit status 37",                                  "ExceptionFailure",    "Description", 1, 0},
        {TRP_END_SIGNAL,  11, "killed by SIGSEGV (11)",                          "ExceptionFailure",
         "Full Stack Trace",                                                                                           1, 0},
        {TRP_END_TIMEOUT, 0,  "timed out after 1s",                              "ExceptionFailure",    "Description", 1,
         0                                                                                                                 },
        {TRP_END_MEMORY,  9,  "killed for memory (limit 512 MiB, peak 530 MiB)",
         "ExceptionFailure",                                                                            "Description", 1, 0},
        {TRP_END_START,   2,  "could not be started: no such file",              "ExceptionFailure",
         "Description",                                                                                                1, 0},
        {TRP_END_LOST,    0,  "lost its executor",                               "ExecutorLostFailure", "Loss Reason", 1,
         0                                                                                                                 },
        {TRP_END_DENIED,  0,  "another attempt commits the output",              "TaskCommitDenied",
         "Troupe Reason",                                                                                              1, 0},
        {TRP_END_KILLED,  0,  "killed",                                          "TaskKilled",          "Kill Reason", 0, 1},
    };
    struct world *w = new_world();
    open_log(w, TRP_EVENTS_AUTO);
    begin_run(w, "solve", G_N_ELEMENTS(ends));
    for (uint32_t i = 0; i < G_N_ELEMENTS(ends); i++) {
        start(w, 0, i);
        end(w, 0, i, ends[i].status, ends[i].code, ends[i].reason);
    }
    end_run(w);
    GPtrArray *v = lines_of(w);
    for (uint32_t i = 0; i < G_N_ELEMENTS(ends); i++) {
        json_t *t = nth(v, "SparkListenerTaskEnd", i);
        g_autofree char *path = g_strconcat("Task End Reason/", ends[i].field, NULL);
        g_assert_cmpstr(text_at(t, "Task End Reason/Reason"), ==, ends[i].spark);
        g_assert_cmpstr(text_at(t, path), ==, ends[i].reason);
        g_assert_cmpstr(text_at(t, "Task End Reason/Troupe Reason"), ==,
                        ends[i].reason);
        g_assert_cmpstr(text_at(t, "Task End Reason/Troupe Status"), ==,
                        trp_end_status_name(ends[i].status));
        g_assert_cmpint(json_is_true(at(t, "Task Info/Failed")), ==, ends[i].failed);
        g_assert_cmpint(json_is_true(at(t, "Task Info/Killed")), ==, ends[i].killed);
    }
    g_ptr_array_unref(v);
    free_world(w);
}

TEST("reasons are in the contract's words")
{
    static const struct {
        struct trp_end end;
        int64_t timeout;
        const char *words;
    } cases[] = {
        {{.status = TRP_END_SUCCESS},                                                0,                ""                                                       },
        {{.status = TRP_END_EXIT, .code = 37},                                       0,                "exit status 37"                                         },
        {{.status = TRP_END_SIGNAL, .code = 11},                                     0,                "killed by SIGSEGV (11)"                                 },
        {{.status = TRP_END_TIMEOUT},                                                1000 * MS,        "timed out after 1s"                                     },
        {{.status = TRP_END_TIMEOUT},                                                1500 * MS,        "timed out after 1500ms"                                 },
        {{.status = TRP_END_TIMEOUT},                                                7200 * 1000 * MS, "timed out after 2h"                                     },
        {{.status = TRP_END_MEMORY, .limit_mib = 512, .peak_kib = 530 * 1024},
         0,                                                                                            "killed for memory (limit 512 MiB, peak 530 MiB)"        },
        {{.status = TRP_END_MEMORY},                                                 0,                "killed for memory"                                      },
        {{.status = TRP_END_START,
          .extra = (const uint8_t *)"no\nsuch file",
          .extra_size = 12},
         0,                                                                                            "could not be started: no such file"                     },
        {{.status = TRP_END_LOST},                                                   0,                "lost its executor"                                      },
        {{.status = TRP_END_LOST, .code = TRP_LOSS_TIME_LIMIT},
         0,                                                                                            "lost its executor: its Slurm job reached its time limit"},
        {{.status = TRP_END_NEVER, .extra = (const uint8_t *)"no", .extra_size = 2},
         0,                                                                                            "can never be had: no"                                   },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct trp_action a = {
            .kind = TRP_ACTION_TASK_END,
            .task_end = {.status = cases[i].end.status, .code = cases[i].end.code}
        };
        char buf[256];
        g_assert_cmpstr(
            trp_end_reason(&a, &cases[i].end, cases[i].timeout, buf, sizeof buf), ==,
            cases[i].words);
    }
}

TEST("a reason is led in as its words allow")
{
    char buf[48];
    g_assert_cmpstr(trp_failed_text(1, "exit status 37", buf, sizeof buf), ==,
                    "failed once, with");
    g_assert_cmpstr(trp_failed_text(4, "exit status 37", buf, sizeof buf), ==,
                    "failed 4 times, last with");
    g_assert_cmpstr(trp_failed_text(1, "timed out after 1s", buf, sizeof buf), ==,
                    "failed once:");
    g_assert_cmpstr(trp_failed_text(4, "timed out after 1s", buf, sizeof buf), ==,
                    "failed 4 times, last:");
}

TEST("names and reasons may be any bytes")
{
    static const char name[] = "a \"b\"\\\n\t\x01 \xc3\xa9 \xff \xed\xa0\x80 \xf0\x9f";
    static const char wanted[] = "a \"b\"\\\n\t\x01 \xc3\xa9 \xef\xbf\xbd "
                                 "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd "
                                 "\xef\xbf\xbd\xef\xbf\xbd";
    struct world *w = new_world();
    open_log(w, TRP_EVENTS_AUTO);
    begin_run(w, name, 1);
    trp_event_message(w->log, "warning", name, START);
    start(w, 0, 0);
    end(w, 0, 0, TRP_END_EXIT, 1, name);
    end_run(w);
    GPtrArray *v = lines_of(w);
    g_assert_cmpstr(
        text_at(nth(v, "SparkListenerStageSubmitted", 0), "Stage Info/Stage Name"), ==,
        wanted);
    g_assert_cmpstr(text_at(nth(v, "TroupeMessage", 0), "Text"), ==, wanted);
    g_assert_cmpstr(
        text_at(nth(v, "SparkListenerTaskEnd", 0), "Task End Reason/Description"), ==,
        wanted);
    g_ptr_array_unref(v);
    free_world(w);
}

static gpointer read_all(gpointer fd)
{
    GString *s = g_string_new(NULL);
    static char block[1 << 20];
    for (ssize_t n; (n = read(GPOINTER_TO_INT(fd), block, sizeof block)) > 0;)
        g_string_append_len(s, block, n);
    close(GPOINTER_TO_INT(fd));
    return s;
}

/* What became of attempts: lines of their own, or a place in a summary. */
struct tally {
    uint32_t starts, ends, failed, begins;
    GPtrArray *summaries;
};

/* Not by g_str_has_prefix, which since GLib 2.80 looks for the end of the text. */
static bool is_event(const char *line, const char *name)
{
    static const char begin[] = "{\"Event\":\"";
    const size_t n = strlen(name);
    return strncmp(line, begin, sizeof begin - 1) == 0 &&
           strncmp(line + sizeof begin - 1, name, n) == 0 &&
           line[sizeof begin - 1 + n] == '"';
}

/* Lines of tasks are not parsed: there are very many. */
static struct tally tally_of(const char *text, gsize n)
{
    struct tally t = {.summaries =
                          g_ptr_array_new_with_free_func((GDestroyNotify)json_decref)};
    for (const char *lf; n > 0 && (lf = memchr(text, '\n', n));
         n -= (gsize)(lf - text) + 1, text = lf + 1) {
        size_t len = (size_t)(lf - text);
        if (is_event(text, "SparkListenerTaskStart")) {
            t.starts++;
        } else if (is_event(text, "SparkListenerTaskEnd")) {
            t.ends++;
            t.failed += memmem(text, len, "\"Failed\":true", 13) != NULL;
        } else if (is_event(text, "TroupeTaskSummaryBegin")) {
            t.begins++;
        } else if (is_event(text, "TroupeTaskSummary")) {
            g_ptr_array_add(t.summaries, json_loadb(text, len, 0, NULL));
        }
    }
    g_assert_cmpuint(n, ==, 0);
    return t;
}

static void check_nothing_lost(const struct tally *t, uint32_t attempts,
                               uint32_t failures)
{
    uint32_t in_summaries = 0;
    for (guint i = 0; i < t->summaries->len; i++)
        in_summaries +=
            (uint32_t)json_integer_value(at(t->summaries->pdata[i], "Tasks"));
    g_assert_cmpuint(t->starts, ==, t->ends);
    g_assert_cmpuint(t->ends + in_summaries, ==, attempts);
    g_assert_cmpuint(t->failed, ==, failures);
}

/* Nobody reads until 100,000 tasks and 3 failures have passed. */
TEST("a flood is summarised and nothing is lost")
{
    enum { TASKS = 100000, LATE = 100 };
    struct world *w = new_world();
    g_assert_cmpint(mkfifo(w->file, 0600), ==, 0);
    int fd = open(w->file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    open_log(w, TRP_EVENTS_AUTO);
    begin_run(w, "flood", TASKS);
    for (uint32_t i = 0; i < LATE; i++) /* started before the flood, ended after */
        start(w, 0, i);
    for (uint32_t i = LATE; i < TASKS; i++) {
        bool fails = i == 60000 || i == 70000 || i == TASKS - 1;
        start(w, 0, i);
        end(w, 0, i, fails ? TRP_END_EXIT : TRP_END_SUCCESS, 1, "exit status 1");
    }
    for (uint32_t i = 0; i < LATE; i++)
        end(w, 0, i, TRP_END_SUCCESS, 0, "");
    g_assert_cmpint(fcntl(fd, F_SETFL, 0), ==, 0);
    GThread *reader = g_thread_new("reader", read_all, GINT_TO_POINTER(fd));
    end_run(w);
    GString *s = g_thread_join(reader);
    struct tally t = tally_of(s->str, s->len);
    check_nothing_lost(&t, TASKS, 3);
    g_assert_cmpuint(t.begins, ==, 1);
    g_assert_cmpuint(t.summaries->len, ==, 1);
    json_t *sum = t.summaries->pdata[0];
    g_assert_cmpint(json_integer_value(at(sum, "Tasks")), >, TASKS / 2);
    g_assert_cmpint(json_integer_value(at(sum, "Executors/0/Tasks")), ==,
                    json_integer_value(at(sum, "Tasks")));
    g_assert_cmpint(json_integer_value(at(sum, "Run Time Quantiles ns/p50")), ==,
                    700 * MS);
    g_ptr_array_unref(t.summaries);
    g_string_free(s, TRUE);
    free_world(w);
}

TEST("with all the caller waits and every task is written")
{
    enum { TASKS = 34000 }; /* 68,000 records: more than the ring holds */
    struct world *w = new_world();
    g_assert_cmpint(mkfifo(w->file, 0600), ==, 0);
    int fd = open(w->file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    open_log(w, TRP_EVENTS_ALL);
    g_assert_cmpint(fcntl(fd, F_SETFL, 0), ==, 0);
    GThread *reader = g_thread_new("reader", read_all, GINT_TO_POINTER(fd));
    begin_run(w, "all", TASKS);
    for (uint32_t i = 0; i < TASKS; i++) {
        start(w, 0, i);
        end(w, 0, i, TRP_END_SUCCESS, 0, "");
    }
    end_run(w);
    GString *s = g_thread_join(reader);
    struct tally t = tally_of(s->str, s->len);
    check_nothing_lost(&t, TASKS, 0);
    g_assert_cmpuint(t.begins, ==, 0);
    g_assert_cmpuint(t.summaries->len, ==, 0);
    g_ptr_array_unref(t.summaries);
    g_string_free(s, TRUE);
    free_world(w);
}

TEST("with summary failures are still written in full")
{
    struct world *w = new_world();
    open_log(w, TRP_EVENTS_SUMMARY);
    begin_run(w, "short", 10);
    for (uint32_t i = 0; i < 10; i++) {
        start(w, 0, i);
        end(w, 0, i,
            i == 4   ? TRP_END_SIGNAL
            : i == 5 ? TRP_END_KILLED
                     : TRP_END_SUCCESS,
            9, "killed by SIGKILL (9)");
    }
    end_run(w);
    char *text;
    gsize n;
    g_assert_true(g_file_get_contents(w->file, &text, &n, NULL));
    struct tally t = tally_of(text, n);
    check_nothing_lost(&t, 10, 1);
    g_assert_cmpuint(t.begins, ==, 1);
    g_assert_cmpuint(t.summaries->len, ==, 1);
    json_t *sum = t.summaries->pdata[0];
    g_assert_cmpint(json_integer_value(at(sum, "Succeeded")), ==, 8);
    g_assert_cmpint(json_integer_value(at(sum, "Killed")), ==, 1);
    g_assert_cmpint(json_integer_value(at(sum, "Failed In Full")), ==, 1);
    g_ptr_array_unref(t.summaries);
    g_free(text);
    free_world(w);
}

TEST("the torn line of a crash is cut off")
{
    struct world *w = new_world();
    static const char before[] = "{\"Event\":\"TroupeMessage\"}\n{\"Event\":\"Spark";
    g_assert_true(g_file_set_contents(w->file, before, -1, NULL));
    open_log(w, TRP_EVENTS_AUTO);
    end_log(w);
    GPtrArray *v = lines_of(w);
    g_assert_cmpuint(v->len, ==, 3);
    g_assert_cmpstr(event_of(v->pdata[0]), ==, "TroupeMessage");
    g_assert_cmpstr(event_of(v->pdata[1]), ==, "SparkListenerLogStart");
    g_assert_cmpstr(event_of(v->pdata[2]), ==, "SparkListenerApplicationEnd");
    g_ptr_array_unref(v);
    free_world(w);
}

TEST("a full disk is told")
{
    struct world *w = new_world();
    g_free(w->file);
    w->file = g_strdup("/dev/full");
    open_log(w, TRP_EVENTS_AUTO);
    begin_run(w, "solve", 1);
    trp_error err = {0};
    g_assert_cmpint(trp_event_log_end(w->log, START, 4, &err), ==, TRP_ESYSTEM);
    g_assert_cmpstr(err.text, ==, "cannot write /dev/full: No space left on device");
    err = (trp_error){0};
    g_assert_true(trp_event_log_failed(w->log, &err));
    g_assert_cmpint(err.code, ==, TRP_ESYSTEM);
    free_world(w);
}

TEST("a disk that fills leaves whole lines")
{
    struct world *w = new_world();
    struct rlimit before, little;
    g_assert_cmpint(getrlimit(RLIMIT_FSIZE, &before), ==, 0);
    little = before;
    little.rlim_cur = 100001;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &little), ==, 0);
    open_log(w, TRP_EVENTS_AUTO);
    begin_run(w, "solve", 1000);
    for (uint32_t i = 0; i < 1000; i++) {
        start(w, 0, i);
        end(w, 0, i, TRP_END_SUCCESS, 0, "");
    }
    trp_error err = {0};
    int code = trp_event_log_end(w->log, START, 0, &err);
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &before), ==, 0);
    signal(SIGXFSZ, handler);
    g_assert_cmpint(code, ==, TRP_ESYSTEM);
    GPtrArray *v = lines_of(w); /* parses, ends with LF */
    g_assert_cmpuint(v->len, >, 20);
    g_ptr_array_unref(v);
    free_world(w);
}

TEST("a log that cannot be made names its path")
{
    trp_event_log *l = NULL;
    trp_error err = {0};
    struct trp_event_log_config c = {
        .file = "/nonexistent/events.jsonl", .app_id = "a", .app_name = "a"};
    g_assert_cmpint(trp_event_log_new(&c, &l, &err), ==, TRP_ESYSTEM);
    g_assert_cmpstr(
        err.text, ==,
        "cannot write /nonexistent/events.jsonl: No such file or directory");
    g_assert_null(l);
}

TEST("the History Server's link follows the run")
{
    struct world *w = new_world();
    char *running =
        g_build_filename(w->history, "app-20270115080000-42.inprogress", NULL);
    g_autofree char *done = g_build_filename(w->history, "app-20270115080000-42", NULL);
    g_autofree char *old = g_build_filename(w->history, "app-20270114080000-7", NULL);
    g_mkdir(w->history, 0700);
    g_assert_cmpint(symlink("../RUN/events.jsonl", old), ==, 0);
    open_log(w, TRP_EVENTS_AUTO);
    g_autofree char *to = g_file_read_link(running, NULL);
    g_assert_cmpstr(to, ==, "../RUN/events.jsonl");
    g_assert_true(g_file_test(running, G_FILE_TEST_IS_REGULAR));
    g_assert_null(g_file_read_link(old, NULL)); /* the same file has a new name */
    end_log(w);
    g_assert_false(g_file_test(running, G_FILE_TEST_EXISTS));
    g_assert_true(g_file_test(done, G_FILE_TEST_IS_REGULAR));
    g_free(running);
    free_world(w);
}

TEST("lines arrive without the log being ended")
{
    struct world *w = new_world();
    open_log(w, TRP_EVENTS_AUTO);
    begin_run(w, "solve", 1);
    for (struct stat st = {0}; stat(w->file, &st) < 0 || st.st_size < 2000;)
        g_usleep(5000);
    GPtrArray *v = lines_of(w);
    g_assert_cmpuint(count(v, "SparkListenerStageSubmitted"), ==, 1);
    g_ptr_array_unref(v);
    end_log(w);
    free_world(w);
}

TEST("a gang runs on the driver, a skipped stage never began")
{
    struct world *w = new_world();
    open_log(w, TRP_EVENTS_AUTO);
    struct trp_event_stage s[] = {stage(0, "gang", 1), stage(1, "after", 3)};
    trp_event_job_start(w->log, &(struct trp_event_job){.job = {0}}, START, s, 2);
    trp_event_stage_submitted(w->log, &s[0], START);
    struct trp_action g = {
        .kind = TRP_ACTION_GANG,
        .gang = {.attempt = attempt(0), .stage = {0}, .ranks = 4}
    };
    trp_event_task_started(w->log, (trp_stage_id){0}, &g, "node1", START + MS);
    struct trp_action v = {
        .kind = TRP_ACTION_TASK_END,
        .task_end = {.attempt = attempt(0),
                     .executor = {TRP_NONE},
                     .status = TRP_END_EXIT,
                     .level = TRP_ANY,
                     .code = 2}
    };
    struct trp_event_task t = {.verdict = &v,
                               .launched = START + MS,
                               .ended = START + 2 * MS,
                               .host = "node1",
                               .profile = &w->profile,
                               .ranks = 4,
                               .reason = "exit status 2"};
    trp_event_task_ended(w->log, &t);
    trp_event_stage_ended(w->log, (trp_stage_id){0}, TRP_OUTCOME_FAILED, "it failed",
                          START + 3 * MS);
    trp_event_stage_ended(w->log, (trp_stage_id){1}, TRP_OUTCOME_SKIPPED,
                          "stage a did not succeed", START + 3 * MS);
    trp_event_job_end(w->log, (trp_job_id){0}, TRP_OUTCOME_FAILED, "gang failed",
                      START + 3 * MS);
    end_log(w);
    GPtrArray *l = lines_of(w);
    json_t *e = nth(l, "SparkListenerTaskEnd", 0);
    g_assert_cmpstr(text_at(e, "Task Info/Executor ID"), ==, "driver");
    g_assert_cmpint(json_integer_value(at(e, "Troupe Ranks")), ==, 4);
    g_assert_cmpstr(
        text_at(nth(l, "SparkListenerStageCompleted", 0), "Stage Info/Failure Reason"),
        ==, "it failed");
    g_assert_cmpuint(count(l, "SparkListenerStageCompleted"), ==, 1);
    e = nth(l, "TroupeStageSkipped", 0);
    g_assert_cmpstr(text_at(e, "Outcome"), ==, "skipped");
    g_assert_cmpstr(text_at(e, "Reason"), ==, "stage a did not succeed");
    g_assert_cmpstr(
        text_at(nth(l, "SparkListenerJobEnd", 0), "Job Result/Exception/Message"), ==,
        "gang failed");
    g_ptr_array_unref(l);
    free_world(w);
}
