/*
 * An event log read back: its summary is the one that was printed at the run's end, and
 * Slurm's steps have the figures of what ran in them.
 */
#include <glib.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events/run_parts.h"
#include "events/run_record.h"
#include "events/summary.h"
#include "unit.h"

#define MS INT64_C(1000000)
#define T0 (INT64_C(1800000000000) * MS)

struct world {
    char *dir, *file;
    trp_event_log *log;
    uint32_t attempts;
};

static const struct trp_resource_profile plain = {
    .id = {0}, .name = "default", .cores = 4, .task_cpus = 1, .slots = 4};
static const struct trp_resource_profile train = {
    .id = {1},
    .name = "train",
    .cores = 2,
    .task_cpus = 1,
    .slots = 2,
    .ncustom = 1,
    .custom = {{.name = "gpu", .executor = 2, .task = TRP_ONE / 2}}};

static void open_log(struct world *w, enum trp_events_tasks tasks)
{
    trp_error err;
    struct trp_event_log_config c = {.file = w->file,
                                     .app_id = "app-1",
                                     .app_name = "weather",
                                     .user = "ada",
                                     .tasks = tasks};
    if (trp_event_log_new(&c, &w->log, &err) != 0)
        g_error("%s", err.text);
    w->attempts = 0;
}

static struct world *new_world(enum trp_events_tasks tasks)
{
    struct world *w = g_new0(struct world, 1);
    w->dir = g_dir_make_tmp("troupe-record-XXXXXX", NULL);
    w->file = g_build_filename(w->dir, "events.jsonl", NULL);
    open_log(w, tasks);
    return w;
}

static void free_world(struct world *w)
{
    trp_event_log_free(w->log);
    g_unlink(w->file);
    g_rmdir(w->dir);
    g_free(w->file);
    g_free(w->dir);
    g_free(w);
}

static struct trp_event_stage stage_of(uint32_t n, const char *name, uint32_t ntasks,
                                       const struct trp_resource_profile *p, bool gang)
{
    return (struct trp_event_stage){
        .stage = {n}, .name = name, .ntasks = ntasks, .profile = p->id, .gang = gang};
}

/* A task, or a gang of `ranks`, from and to so many ms. */
static void task(struct world *w, uint32_t stage, uint32_t executor, int from, int to,
                 const struct trp_resource_profile *p, enum trp_end_status status,
                 uint32_t ranks)
{
    trp_attempt_id id = {(uint64_t)w->attempts << 32 | 1};
    struct trp_action launch = {
        .kind = TRP_ACTION_LAUNCH,
        .launch = {.stage = {stage}, .executor = {executor}, .attempt = id}
    };
    struct trp_action verdict = {
        .kind = TRP_ACTION_TASK_END,
        .task_end = {.stage = {stage},
                     .task = w->attempts,
                     .executor = {executor},
                     .attempt = id,
                     .status = status,
                     .counted = status == TRP_END_EXIT}
    };
    struct trp_end end = {.duration_ns = (to - from) * MS,
                          .cpu_ns = (to - from) * MS / 2,
                          .peak_kib = 1024 * (to - from)};
    struct trp_event_task t = {.verdict = &verdict,
                               .end = status == TRP_END_LOST ? NULL : &end,
                               .launched = T0 + from * MS,
                               .ended = T0 + to * MS,
                               .host = "n1",
                               .profile = p,
                               .ranks = ranks,
                               .reason = status ? "exit status 3" : ""};
    w->attempts++;
    if (ranks)
        launch = (struct trp_action){
            .kind = TRP_ACTION_GANG, .gang = {.stage = {stage}, .attempt = id}
        };
    trp_event_task_started(w->log, (trp_stage_id){stage}, &launch, "n1",
                           T0 + from * MS);
    trp_event_task_ended(w->log, &t);
}

/* Executors, gangs, nodes, devices, failures, a stage that is skipped. */
static void play(struct world *w)
{
    trp_event_log *l = w->log;
    const struct trp_event_stage stages[] = {
        stage_of(0, "split", 4, &plain, false), stage_of(1, "solve", 1, &train, true),
        stage_of(2, "train", 3, &train, false), stage_of(3, "never", 1, &plain, false)};
    trp_event_application_start(l, T0);
    trp_event_profile(l, &plain);
    trp_event_profile(l, &train);
    trp_event_slurm_job(l, 7, false, 0, 0, T0 + 1 * MS);
    trp_event_nodes(l, 2, T0 + 10 * MS);
    trp_event_outputs_moved(l, "n2", 3, 5 << 20, 7 * MS, T0 + 15 * MS);
    trp_event_job_start(l, &(struct trp_event_job){.job = {0}}, T0 + 10 * MS, stages,
                        4);
    trp_event_stage_submitted(l, &stages[0], T0 + 20 * MS);
    trp_event_slurm_step(l, 7, "r:default.0", false, 0, T0 + 30 * MS);
    trp_event_executor_added(l, (trp_executor_id){0}, "n1", &plain, NULL, 0,
                             T0 + 20 * MS, T0 + 100 * MS);
    task(w, 0, 0, 120, 1120, &plain, TRP_END_SUCCESS, 0);
    task(w, 0, 0, 130, 930, &plain, TRP_END_EXIT, 0);
    task(w, 0, 0, 940, 2240, &plain, TRP_END_SUCCESS, 0);
    task(w, 0, 0, 940, 1040, &plain, TRP_END_KILLED, 0);
    trp_event_stage_ended(l, (trp_stage_id){0}, TRP_OUTCOME_SUCCEEDED, NULL,
                          T0 + 2300 * MS);
    trp_event_stage_submitted(l, &stages[1], T0 + 2300 * MS);
    trp_event_executor_removed(l, (trp_executor_id){0}, "released", T0 + 2350 * MS);
    trp_event_slurm_step(l, 7, "r:train:solve.0", true, 4, T0 + 2360 * MS);
    task(w, 1, TRP_NONE, 2400, 4400, &train, TRP_END_SUCCESS, 3);
    trp_event_stage_ended(l, (trp_stage_id){1}, TRP_OUTCOME_SUCCEEDED, NULL,
                          T0 + 4400 * MS);
    trp_event_stage_submitted(l, &stages[2], T0 + 4400 * MS);
    trp_event_slurm_queued(l, 8, (trp_profile_id){1}, T0 + 3000 * MS, T0 + 3010 * MS);
    trp_event_slurm_queued(l, 9, (trp_profile_id){1}, T0 + 3000 * MS, T0 + 3010 * MS);
    trp_event_slurm_ended(l, 9, T0 + 4000 * MS, T0 + 4000 * MS); /* never begun */
    trp_event_slurm_job(l, 8, true, T0 + 3000 * MS, T0 + 4400 * MS, T0 + 4410 * MS);
    trp_event_slurm_step(l, 8, "r:train.1", false, 1, T0 + 4420 * MS);
    trp_event_executor_added(l, (trp_executor_id){1}, "n2", &train, NULL, 0,
                             T0 + 4400 * MS, T0 + 4500 * MS);
    trp_event_slurm_step(l, 7, "r:train.2", false, 2, T0 + 4450 * MS);
    task(w, 2, 1, 4510, 5510, &train, TRP_END_SUCCESS, 0);
    task(w, 2, 1, 4520, 5720, &train, TRP_END_LOST, 0);
    trp_event_executor_removed(l, (trp_executor_id){1}, "killed for memory",
                               T0 + 5730 * MS);
    trp_event_stage_ended(l, (trp_stage_id){2}, TRP_OUTCOME_FAILED, "task 1 failed",
                          T0 + 5740 * MS);
    trp_event_stage_ended(l, (trp_stage_id){3}, TRP_OUTCOME_CANCELLED, NULL,
                          T0 + 5740 * MS);
    trp_event_job_end(l, (trp_job_id){0}, TRP_OUTCOME_FAILED, "x", T0 + 5740 * MS);
    trp_event_slurm_ended(l, 8, T0 + 5745 * MS, T0 + 5748 * MS);
    trp_event_slurm_costs(l, 10, 3, 9, T0 + 5750 * MS);
}

static void end_log(struct world *w, int status)
{
    trp_error err;
    if (trp_event_log_end(w->log, T0 + 9000 * MS, status, &err) != 0)
        g_error("%s", err.text);
}

/* As the run prints it, without where things lie. */
static char *printed(const struct world *w)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    trp_event_summary_print(w->log, f, "r", true);
    fclose(f);
    *strstr(text, "logs: ") = '\0';
    return text;
}

static char *printed_again(struct trp_run_record *r)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    trp_summary_print(&r->statistics, false, false, f);
    fclose(f);
    return text;
}

static struct trp_run_records read_log(const struct world *w)
{
    struct trp_run_records r;
    trp_error err;
    if (trp_run_records_read(w->file, &r, &err) < 0)
        g_error("%s", err.text);
    return r;
}

TEST("the summary is that of the run")
{
    struct world *w = new_world(TRP_EVENTS_ALL);
    play(w);
    end_log(w, 1);
    char *then = printed(w);
    struct trp_run_records r = read_log(w);
    g_assert_cmpuint(r.n, ==, 1);
    char *now = printed_again(r.v[0]);
    g_assert_cmpstr(now, ==, then);
    g_assert_nonnull(strstr(now, "gpu-seconds"));
    g_assert_nonnull(strstr(now, "failed"));
    g_assert_nonnull(strstr(now, " moved\n"));
    g_assert_cmpstr(r.v[0]->app_name, ==, "weather");
    g_assert_cmpint(r.v[0]->started, ==, T0);
    g_assert_true(r.v[0]->complete);
    g_assert_cmpint(r.v[0]->exit_status, ==, 1);
    free(then);
    free(now);
    trp_run_records_free(&r);
    free_world(w);
}

static void assert_step(const struct trp_run_record *r, uint32_t i, const char *name,
                        uint32_t job, double cores, int began_ms, int ended_ms,
                        double cpu, int64_t peak_mib, const char *end)
{
    const struct trp_run_step *s = &r->steps[i];
    g_assert_cmpstr(s->name, ==, name);
    g_assert_cmpuint(s->job, ==, job);
    g_assert_cmpfloat_with_epsilon(s->cores, cores, 1e-9);
    g_assert_cmpint(s->began, ==, began_ms ? T0 + began_ms * MS : 0);
    g_assert_cmpint(s->ended, ==, ended_ms ? T0 + ended_ms * MS : 0);
    g_assert_cmpfloat_with_epsilon(s->cpu, cpu, 1e-9);
    g_assert_cmpint(s->peak_kib, ==, peak_mib * 1024);
    g_assert_cmpstr(s->end, ==, end);
    g_assert_true(s->failed == (end != NULL));
}

TEST("steps have what ran in them")
{
    struct world *w = new_world(TRP_EVENTS_ALL);
    play(w);
    end_log(w, 1);
    struct trp_run_records all = read_log(w);
    const struct trp_run_record *r = all.v[0];
    g_assert_cmpuint(r->njobs, ==, 2);
    g_assert_true(r->jobs[0].id == 7 && !r->jobs[0].additional);
    g_assert_true(r->jobs[1].id == 8 && r->jobs[1].additional);
    g_assert_cmpuint(r->njobs, ==, 2);
    g_assert_cmpint(r->jobs[0].asked + r->jobs[0].began + r->jobs[0].ended, ==, 0);
    g_assert_cmpint(r->jobs[1].asked, ==, T0 + 3000 * MS);
    g_assert_cmpint(r->jobs[1].began, ==, T0 + 4400 * MS);
    g_assert_cmpint(r->jobs[1].ended, ==, T0 + 5745 * MS);
    g_assert_cmpuint(r->nsteps, ==, 4);
    assert_step(r, 0, "r:default.0", 7, 4, 100, 2350, (1 + 0.8 + 1.3 + 0.1) / 2, 1300,
                NULL);
    assert_step(r, 1, "r:train:solve.0", 7, 3, 2400, 4400, 1, 2000, NULL);
    assert_step(r, 2, "r:train.1", 8, 2, 4500, 5730, 0.5, 1000, "killed for memory");
    assert_step(r, 3, "r:train.2", 7, 0, 0, 0, 0, 0, NULL); /* never came */
    g_assert_cmpstr(trp_run_step_profile(r, &r->steps[1]), ==, "train");
    g_assert_cmpstr(trp_run_step_profile(r, &r->steps[3]), ==, "?");
    trp_run_records_free(&all);
    free_world(w);
}

/* One job has run it twice: executor 0 of the second is not that of the first. */
TEST("each start has a record")
{
    struct world *w = new_world(TRP_EVENTS_ALL);
    play(w);
    end_log(w, 75);
    trp_event_log_free(w->log);
    open_log(w, TRP_EVENTS_ALL);
    play(w);
    char *then = printed(w);
    trp_event_log_free(w->log); /* no end: it was killed */
    w->log = NULL;
    struct trp_run_records r = read_log(w);
    g_assert_cmpuint(r.n, ==, 2);
    g_assert_true(r.v[0]->complete);
    g_assert_cmpint(r.v[0]->exit_status, ==, 75);
    g_assert_false(r.v[1]->complete);
    g_assert_cmpuint(r.v[0]->nsteps, ==, 4);
    g_assert_cmpuint(r.v[1]->nsteps, ==, 4);
    g_assert_cmpfloat_with_epsilon(r.v[1]->steps[0].cpu, r.v[0]->steps[0].cpu, 1e-9);
    char *now = printed_again(r.v[1]);
    g_assert_cmpstr(now, ==, then);
    free(then);
    free(now);
    trp_run_records_free(&r);
    free_world(w);
}

TEST("what was summarised counts too")
{
    struct world *w = new_world(TRP_EVENTS_SUMMARY);
    play(w);
    end_log(w, 1);
    char *then = printed(w);
    struct trp_run_records r = read_log(w);
    char *now = printed_again(r.v[0]);
    g_assert_cmpstr(now, ==, then);
    g_assert_cmpfloat_with_epsilon(r.v[0]->steps[0].cpu, 1.6, 0.01);
    free(then);
    free(now);
    trp_run_records_free(&r);
    free_world(w);
}

static void write_file(const struct world *w, const char *text)
{
    g_assert_true(g_file_set_contents(w->file, text, -1, NULL));
}

#define BEGIN "{\"Event\":\"SparkListenerLogStart\"}\n"

TEST("what is no event log is refused")
{
    static const struct {
        const char *text, *words;
    } wrong[] = {
        {"",                                                                     ": no event log"  },
        {"root:x:0:0\n",                                                         ":1: not JSON"    },
        {"[]\n",                                                                 ":1: not an event"},
        {"{\"Event\":\"TroupeNodes\",\"Nodes\":1}\n",                            ":1: not an event"},
        {BEGIN "{\"Event\":\"TroupeNodes\",\"Nodes\":-1}\n",                     ":2: not an event"},
        {BEGIN "{\"Event\":\"TroupeOutputsMoved\",\"Bytes\":-1}\n",              ":2: not an event"},
        {BEGIN "{\"Event\":\"TroupeSlurmJob\",\"Job ID\":0}\n",                  ":2: not an event"},
        {BEGIN "{\"Event\":\"TroupeSlurmStep\",\"Job ID\":1,"
               "\"Step Name\":\"x\",\"Executor ID\":\"driver\"}\n",     ":2: not an event"},
        {BEGIN "{\"Event\":\"TroupeSlurmStep\",\"Job ID\":1,"
               "\"Step Name\":\"x\",\"Executor ID\":\"4294967295\"}\n", ":2: not an event"},
        {BEGIN "{\"Event\":\"SparkListenerExecutorRemoved\","
               "\"Executor ID\":7}\n",                                  ":2: not an event"},
        {BEGIN "{\"Event\":\"SparkListenerStageSubmitted\",\"Stage Info\":"
               "{\"Stage ID\":4000000000,\"Stage Name\":\"x\"}}\n",     ":2: not an event"},
        {BEGIN BEGIN "{\"Event\":\"SparkListenerTaskEnd\"}\n",                   ":3: not an event"},
    };
    struct world *w = new_world(TRP_EVENTS_ALL);
    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        struct trp_run_records r;
        trp_error err = {0};
        write_file(w, wrong[i].text);
        g_assert_cmpint(trp_run_records_read(w->file, &r, &err), ==, TRP_EINVAL);
        if (!strstr(err.text, wrong[i].words))
            g_error("%zu: wanted \"%s\", got \"%s\"", i, wrong[i].words, err.text);
    }
    free_world(w);
}

static const char *text_of(const json_t *o, const char *name)
{
    return json_string_value(json_object_get(o, name));
}

static int64_t between(const json_t *o, const char *from, const char *to)
{
    return json_integer_value(json_object_get(o, to)) -
           json_integer_value(json_object_get(o, from));
}

/* Counted as the History Server counts. */
TEST("a run is made of parts")
{
    struct world *w = new_world(TRP_EVENTS_ALL);
    struct trp_run_records r;
    struct trp_run_parts parts;
    trp_error err;
    play(w);
    end_log(w, 1);
    if (trp_run_parts_read(w->file, NULL, &r, &parts, &err) < 0)
        g_error("%s", err.text);
    g_assert_cmpuint(parts.n, ==, 1);
    const struct trp_run_part *p = parts.v[0];
    g_assert_cmpstr(text_of(p->told, "app_id"), ==, "app-1");
    g_assert_cmpuint(json_array_size(json_object_get(p->told, "profiles")), ==, 2);
    const json_t *actions = json_object_get(p->told, "actions"),
                 *action = json_array_get(actions, 0);
    g_assert_cmpuint(json_array_size(actions), ==, 1);
    g_assert_cmpstr(text_of(action, "outcome"), ==, "failed");
    g_assert_cmpuint(json_array_size(json_object_get(action, "stages")), ==, 4);
    const struct trp_run_counted *split = p->tries, *solve = split->hh.next,
                                 *of_train = solve->hh.next;
    g_assert_cmpuint(HASH_COUNT(p->tries), ==, 3); /* one was never submitted */
    g_assert_cmpuint(split->counts.succeeded, ==, 2);
    g_assert_cmpuint(split->counts.failed, ==, 1);
    g_assert_cmpuint(split->counts.killed, ==, 1);
    g_assert_null(text_of(split->told, "reason"));
    g_assert_cmpint(split->counts.task_ms, ==, 1000 + 800 + 1300 + 100);
    g_assert_cmpint(between(split->told, "submitted", "ended"), ==, 2280);
    g_assert_cmpuint(solve->counts.succeeded, ==, 1);
    g_assert_cmpstr(text_of(of_train->told, "reason"), ==, "task 1 failed");
    const struct trp_run_counted *x = p->executors, *y = x->hh.next;
    g_assert_cmpuint(HASH_COUNT(p->executors), ==, 2);
    g_assert_cmpuint(json_array_size(json_object_get(p->told, "executors")), ==, 2);
    g_assert_cmpstr(text_of(x->told, "host"), ==, "n1");
    g_assert_cmpstr(text_of(x->told, "reason"), ==, "released");
    g_assert_cmpint(between(x->told, "added", "removed"), ==, 2250);
    g_assert_cmpuint(x->counts.succeeded, ==, 2);
    g_assert_cmpint(x->counts.task_ms, ==, split->counts.task_ms);
    g_assert_cmpint(json_integer_value(json_object_get(y->told, "profile")), ==, 1);
    g_assert_cmpuint(y->counts.failed, ==, 1); /* it was lost */
    trp_run_parts_free(&parts);
    trp_run_records_free(&r);
    free_world(w);
}

/* The lines of a start are in its part, and no others. */
TEST("each start has its parts")
{
    struct world *w = new_world(TRP_EVENTS_SUMMARY);
    struct trp_run_records r;
    struct trp_run_parts parts;
    trp_error err;
    for (int i = 0; i < 2; i++) {
        if (i)
            open_log(w, TRP_EVENTS_SUMMARY);
        play(w);
        end_log(w, 1);
        trp_event_log_free(w->log);
        w->log = NULL;
    }
    if (trp_run_parts_read(w->file, NULL, &r, &parts, &err) < 0)
        g_error("%s", err.text);
    g_assert_cmpuint(parts.n, ==, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct trp_run_counts *split = &parts.v[i]->tries->counts;
        g_assert_cmpuint(HASH_COUNT(parts.v[i]->tries), ==, 3);
        g_assert_cmpuint(parts.v[i]->executors->key.id, ==, 3 * i);
        g_assert_cmpuint(split->succeeded, ==, 2);
        g_assert_cmpuint(split->failed, ==, 1);
        g_assert_cmpuint(split->summarised, ==, 3); /* all but the failure */
        g_assert_cmpint(split->flow[TRP_FLOW_RUN], ==, 1000 + 800 + 1300 + 100);
    }
    trp_run_parts_free(&parts);
    trp_run_records_free(&r);
    free_world(w);
}

/* Events of later versions, and a last line that a crash has left. */
TEST("what is not known is skipped")
{
    struct world *w = new_world(TRP_EVENTS_ALL);
    write_file(w, BEGIN "{\"Event\":\"SparkListenerBlockManagerAdded\",\"x\":1}\n"
                        "{\"Event\":\"SparkListenerExecutorRemoved\",\"Exec");
    struct trp_run_records r = read_log(w);
    g_assert_cmpuint(r.n, ==, 1);
    char *text = printed_again(r.v[0]);
    g_assert_nonnull(strstr(text, "total"));
    free(text);
    trp_run_records_free(&r);
    free_world(w);
}
