/* A stage that waits says so, and why: after 15 s, 30 s later, and then every minute.
 */
#include <glib.h>
#include <string.h>

#include "conf/options.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <jansson.h>
#include <unistd.h>

#include "driver/driver_state.h"
#include "unit.h"
#include "world/world.h"

/* The cluster's reason. */
static const char *reason;

static void say_why(trp_cluster *c, const struct trp_resource_profile *p, char *text,
                    size_t size)
{
    (void)c, (void)p;
    g_snprintf(text, (gulong)size, "%s", reason);
}

static const struct trp_cluster_ops ops = {.batch = {.why = say_why}};
static trp_cluster cluster = {&ops};

/* A driver with a stage whose executors do not come. */
struct waiting {
    struct world w;
    struct trp_driver_stage stage, *stages[1];
    trp_driver d;
    char *folder;
    int screen;
};

static char *file_of(const struct waiting *x, const char *name)
{
    return g_build_filename(x->folder, name, NULL);
}

static void begin(struct waiting *x)
{
    static char name[] = "s";
    struct trp_engine_config c;
    struct trp_stage_spec spec = {.name = "s", .tasks_known = true, .ntasks = 2};
    trp_error err;
    memset(x, 0, sizeof *x);
    trp_options_engine_config(NULL, &c);
    world_init(&x->w, NULL);
    world_start(&x->w, &c);
    x->w.manual = true;
    world_submit(&x->w, &spec, 1);
    x->folder = g_dir_make_tmp("troupe-waiting-XXXXXX", NULL);
    char *screen = file_of(x, "screen"), *events = file_of(x, "events.jsonl");
    x->screen = open(screen, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    g_assert_cmpint(x->screen, >=, 0);
    struct trp_event_log_config log = {
        .file = events, .app_id = "a", .app_name = "a", .user = "u"};
    x->stage = (struct trp_driver_stage){.name = name, .submitted = true};
    x->stages[0] = &x->stage;
    x->d = (trp_driver){.engine = x->w.engine,
                        .profiles = x->w.profiles,
                        .cluster = &cluster,
                        .stages = x->stages,
                        .nstages = 1,
                        .stages_known = 1,
                        .waiting_due = INT64_MAX,
                        .progress = trp_progress_new(x->screen, false, 0, 0)};
    if (trp_event_log_new(&log, &x->d.log, &err) < 0)
        g_error("%s", err.text);
    reason = "Slurm job 7 is pending: Resources";
    g_free(screen);
    g_free(events);
}

static void run_until(struct waiting *x, int from, int to)
{
    for (int s = from; s <= to; s++)
        trp_driver_tell_waiting(&x->d, s * SECOND);
}

/* Each line that was told, behind the second in which it was: "15: stage …". */
static char **end(struct waiting *x)
{
    GString *told = g_string_new(NULL);
    char *screen = file_of(x, "screen"), *events = file_of(x, "events.jsonl");
    char *text, *seen;
    trp_error err;
    trp_progress_end(x->d.progress);
    close(x->screen);
    g_assert_cmpint(trp_event_log_end(x->d.log, 0, 0, &err), ==, 0);
    trp_event_log_free(x->d.log);
    g_assert_true(g_file_get_contents(events, &text, NULL, NULL));
    g_assert_true(g_file_get_contents(screen, &seen, NULL, NULL));
    char **lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        json_t *e = json_loads(*line, 0, NULL);
        const char *what = json_string_value(json_object_get(e, "Text"));
        json_int_t ms = json_integer_value(json_object_get(e, "Timestamp"));
        if (what) {
            g_assert_nonnull(strstr(seen, what));
            g_string_append_printf(told, "%s%lld: %s", told->len ? "\n" : "", ms / 1000,
                                   what);
        }
        json_decref(e);
    }
    g_strfreev(lines);
    lines = g_strsplit(told->str, "\n", -1);
    g_string_free(told, TRUE);
    g_assert_cmpint(g_unlink(screen) + g_unlink(events) + g_rmdir(x->folder), ==, 0);
    g_free(screen);
    g_free(events);
    g_free(text);
    g_free(seen);
    g_free(x->folder);
    world_free(&x->w);
    return lines;
}

TEST("who waits is told every minute")
{
    static const int at[] = {15, 45, 105, 165, 225};
    struct waiting x;
    begin(&x);
    run_until(&x, 0, 240);
    char **lines = end(&x);
    g_assert_cmpuint(g_strv_length(lines), ==, G_N_ELEMENTS(at));
    for (size_t i = 0; i < G_N_ELEMENTS(at); i++) {
        char *wanted =
            g_strdup_printf("%d: stage s has run nothing for %d s: ", at[i], at[i]);
        g_assert_true(g_str_has_prefix(lines[i], wanted));
        g_assert_true(
            g_str_has_suffix(lines[i], "; Slurm job 7 is pending: Resources"));
        g_free(wanted);
    }
    g_strfreev(lines);
}

TEST("what is told is the reason of the moment")
{
    struct waiting x;
    begin(&x);
    run_until(&x, 0, 50);
    reason = "slurmctld does not answer";
    run_until(&x, 51, 110);
    char **lines = end(&x);
    g_assert_cmpuint(g_strv_length(lines), ==, 3);
    g_assert_true(g_str_has_suffix(lines[2], "; slurmctld does not answer"));
    g_strfreev(lines);
}

TEST("a stage that runs is not told of")
{
    struct waiting x;
    begin(&x);
    x.stage.live = 1;
    run_until(&x, 0, 100);
    x.stage.live = 0;
    x.stage.idle_since = 100 * SECOND;
    run_until(&x, 101, 130);
    x.d.stages_done = 1;
    run_until(&x, 131, 400);
    char **lines = end(&x);
    g_assert_cmpuint(g_strv_length(lines), ==, 1);
    g_assert_true(g_str_has_prefix(lines[0], "120: stage s has run nothing for 20 s"));
    g_strfreev(lines);
}

/* ---- as words, in the event log ---- */

/* What was noted, and when in ms: "0 executor, 1000 slots". */
static void assert_noted(struct waiting *x, const char *wanted)
{
    GString *got = g_string_new(NULL);
    char *events = file_of(x, "events.jsonl"), *text;
    trp_error err;
    g_assert_cmpint(trp_event_log_end(x->d.log, 0, 0, &err), ==, 0);
    g_assert_true(g_file_get_contents(events, &text, NULL, NULL));
    char **lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        json_t *e = json_loads(*line, 0, NULL);
        if (g_strcmp0(json_string_value(json_object_get(e, "Event")),
                      "TroupeStageWaits") == 0)
            g_string_append_printf(
                got, "%s%lld %s", got->len ? ", " : "",
                (long long)json_integer_value(json_object_get(e, "Timestamp")),
                json_string_value(json_object_get(e, "Reason")));
        json_decref(e);
    }
    g_assert_cmpstr(got->str, ==, wanted);
    g_strfreev(lines);
    g_string_free(got, TRUE);
    g_free(text);
    g_free(events);
}

/* The engine takes a step, and the driver looks, every 10 ms until `to`. */
static void look_until(struct waiting *x, int from_ms, int to_ms)
{
    for (int ms = from_ms; ms <= to_ms; ms += 10) {
        x->d.steps++;
        trp_driver_log_waits(&x->d, ms * SECOND / 1000);
    }
}

static struct trp_driver_job *job_of(struct waiting *x)
{
    static struct trp_driver_job job;
    job = (struct trp_driver_job){.nstages = 1};
    x->d.there = &job;
    return &job;
}

TEST("a reason is noted when it is another one")
{
    struct waiting x;
    begin(&x);
    job_of(&x);
    look_until(&x, 0, 300);
    world_come(&x.w, 0);
    world_come(&x.w, 1);
    x.w.now = SECOND;
    look_until(&x, 510, 990);
    world_tell(&x.w, TRP_EVENT_DRAIN);
    look_until(&x, 1000, 2000);
    assert_noted(&x, "0 executor, 510 nothing");
    g_strfreev(end(&x));
}

/* In an old stage a line needs a thousandth of its age; what was left out is told then.
 */
TEST("a reason that changes all the time is noted seldom")
{
    struct waiting x;
    begin(&x);
    job_of(&x);
    x.stage.live = x.stage.gang = true;
    x.stage.started = -1000 * SECOND;
    for (int ms = 0; ms <= 5000; ms += 10) {
        x.stage.has_room = ms / 100 % 2;
        look_until(&x, ms, ms);
    }
    x.stage.has_room = true;
    look_until(&x, 5100, 5100);
    int64_t due = trp_driver_log_waits_due(&x.d);
    trp_driver_log_waits(&x.d, due);
    assert_noted(&x, "0 room, 1100 nothing, 2200 room, 3300 nothing, 4400 room, "
                     "5404 nothing");
    g_strfreev(end(&x));
}

TEST("nothing is looked at when nothing has happened")
{
    struct waiting x;
    begin(&x);
    job_of(&x);
    look_until(&x, 0, 0);
    g_assert_cmpint(trp_driver_log_waits_due(&x.d), ==, INT64_MAX);
    x.d.steps++;
    g_assert_cmpint(trp_driver_log_waits_due(&x.d), ==, SECOND / 10);
    trp_driver_log_waits(&x.d, SECOND / 10);
    g_assert_cmpint(trp_driver_log_waits_due(&x.d), ==, INT64_MAX);
    g_strfreev(end(&x));
}
