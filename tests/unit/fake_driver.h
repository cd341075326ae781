/*
 * A driver without MPI for tests of lib/api: it runs every task of a job in this
 * process, through the same runner that executors use, and tells verdicts as the real
 * one does. A task that fails is tried again, three times. Each success is told twice,
 * since results must count once; inputs are moved to odd addresses, where messages may
 * have them.
 */
#ifndef TRP_TESTS_FAKE_DRIVER_H
#define TRP_TESTS_FAKE_DRIVER_H

#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "api/chain.h"
#include "conf/options.h"

enum { FAKE_TRIES = 4 };

struct trp_driver {
    struct trp_work work;
    uint32_t ntasks;
    trp_profile_id profile;
    char name[256];
    uint32_t jobs, attempts, ends, profiles; /* how often what happened */
    size_t body_size;
    const char *resources;
    int end_status, stopped;
    gboolean tasks_known;
    char places[256]; /* preferred hosts of the last job: "a b|c|": by task */
};

static struct trp_driver fake;

int trp_driver_open(const char *run_dir, trp_driver **ret_driver,
                    trp_profiles **ret_profiles, trp_error *err)
{
    (void)run_dir;
    struct trp_profile_defaults defaults;
    trp_options_profile_defaults(NULL, &defaults);
    fake = (struct trp_driver){0};
    *ret_driver = &fake;
    return trp_profiles_new(&defaults, NULL, ret_profiles, err);
}

int trp_driver_open_static(const char *program, int started,
                           const struct trp_function_runner *runner,
                           trp_driver **ret_driver, trp_profiles **ret_profiles,
                           trp_error *err)
{
    (void)program;
    (void)started;
    (void)runner;
    return trp_driver_open("", ret_driver, ret_profiles, err);
}

int trp_executor_main(int *argc, char ***argv, const struct trp_function_runner *runner)
{
    (void)argc;
    (void)argv;
    (void)runner;
    return 0;
}

int trp_driver_profile_added(trp_driver *d, trp_profile_id id, trp_error *err)
{
    (void)id;
    (void)err;
    d->profiles++;
    return 0;
}

int trp_driver_submit(trp_driver *d, const struct trp_job_spec *spec,
                      const struct trp_work *work, trp_job_id *ret_job, trp_error *err)
{
    (void)err;
    d->work = *work;
    d->ntasks = spec->stages[0].ntasks;
    d->tasks_known = spec->stages[0].tasks_known;
    d->places[0] = 0;
    d->profile = spec->stages[0].profile;
    g_strlcpy(d->name, spec->stages[0].name, sizeof(d->name));
    ret_job->n = d->jobs++;
    return 0;
}

/* Runs one attempt and tells its verdict; true when it succeeded. */
static gboolean fake_attempt(trp_driver *d, void *stage, uint32_t task, uint32_t number)
{
    struct trp_launch l = {.task = task};
    d->work.launch(d->work.context, 0, task, number, &l);
    uint8_t *input = g_malloc(l.extra_size + 1);
    if (l.extra_size)
        memcpy(input + 1, l.extra, l.extra_size);
    volatile int killed = 0;
    struct trp_task_info info = {.attempt.n = (uint64_t)d->attempts++ << 32,
                                 .task = task,
                                 .ntasks = d->ntasks,
                                 .number = number,
                                 .cpus = 1,
                                 .host = "here",
                                 .resources = d->resources,
                                 .killed = &killed};
    struct trp_function_result r;
    trp_runner.run(stage, &info, input + 1, l.extra_size, &r);
    g_free(input);
    struct trp_action verdict = {.kind = TRP_ACTION_TASK_END};
    verdict.task_end.task = task;
    verdict.task_end.number = number;
    verdict.task_end.status = r.status ? TRP_END_EXIT : TRP_END_SUCCESS;
    verdict.task_end.code = r.status;
    verdict.task_end.counted = r.status != 0;
    verdict.task_end.retried = r.status != 0 && number + 1 < FAKE_TRIES;
    verdict.task_end.failures = r.status ? number + 1 : number;
    struct trp_end end = {.code = r.status,
                          .records_in = r.records_in,
                          .records_out = r.records_out,
                          .extra = r.status ? (uint8_t *)r.error : r.result,
                          .extra_size =
                              r.status ? (uint32_t)strlen(r.error) : r.result_size};
    d->work.task_ended(d->work.context, 0, &verdict, &end);
    if (r.status == 0)
        d->work.task_ended(d->work.context, 0, &verdict, &end);
    free(r.result);
    return r.status == 0;
}

/* As the real one when a stage becomes ready. */
static int fake_stage_ready(trp_driver *d, trp_error *err)
{
    struct trp_stage_tasks tasks = {0};
    if (d->tasks_known)
        return 0;
    if (d->work.stage_tasks(d->work.context, 0, &tasks, err) < 0)
        return err->code;
    g_assert_cmpuint(tasks.ntasks, ==, d->ntasks);
    for (uint32_t t = 0; t < tasks.ntasks; t++) {
        for (uint32_t i = tasks.prefer.first[t]; i < tasks.prefer.first[t + 1]; i++) {
            if (i > tasks.prefer.first[t])
                g_strlcat(d->places, " ", sizeof(d->places));
            g_strlcat(d->places, tasks.prefer.places[i].host, sizeof(d->places));
        }
        g_strlcat(d->places, "|", sizeof(d->places));
    }
    return 0;
}

int trp_driver_wait(trp_driver *d, trp_job_id job, trp_error *err)
{
    (void)job;
    struct trp_stage_message m = {0};
    if (fake_stage_ready(d, err) < 0)
        return err->code;
    if (d->work.stage_message(d->work.context, 0, &m, err) < 0)
        return err->code;
    d->body_size = m.body_size;
    void *stage = trp_runner.stage_open(m.body, m.body_size, err);
    if (!stage)
        return TRP_EFAILED;
    int rc = 0;
    for (uint32_t task = 0; rc == 0 && task < d->ntasks; task++) {
        uint32_t number = 0;
        while (!fake_attempt(d, stage, task, number) && ++number < FAKE_TRIES)
            ;
        if (number == FAKE_TRIES)
            rc = trp_error_set(err, TRP_EFAILED, "stage %s: task %u", d->name, task);
    }
    trp_runner.stage_close(stage);
    return rc;
}

int trp_driver_stopped(const trp_driver *d)
{
    return d->stopped;
}

int trp_driver_end(trp_driver *d, int status, bool quiet)
{
    (void)quiet;
    d->ends++;
    d->end_status = status;
    return status;
}

void trp_driver_exits(int status)
{
    (void)status;
}

/* A context as `troupe run` would make it. */
static trp_context *fake_init(void)
{
    trp_context *ctx;
    g_setenv("TROUPE_DRIVER", "/nowhere", TRUE);
    int argc = 0;
    char *none[] = {NULL}, **argv = none;
    g_assert_cmpint(trp_init(&argc, &argv, &ctx), ==, 0);
    return ctx;
}

#endif
