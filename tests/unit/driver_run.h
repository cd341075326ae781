/*
 * A run without a driver: a pipeline is chosen from and made into a job, its tasks are
 * "run" by telling the job how they ended. For the tests of lib/driver.
 */
#ifndef TESTS_UNIT_DRIVER_RUN_H
#define TESTS_UNIT_DRIVER_RUN_H

#include "driver/command_job.h"
#include "driver_files.h"
#include "events/run_folder.h"

struct run {
    char *dir; /* paths begin here; the run folder is DIR/troupe-runs/r */
    char *run_dir;
    trp_pipeline *p;
    trp_options *o;
    trp_profiles *profiles;
    trp_profile_id *ids;
    trp_done_log *log;
    struct trp_stage_choice *choice;
    struct trp_resume_request q;
    trp_command_job *job;
    const char *from, *until, *force, *param; /* param: value of the param `k` */
    char **environ;
    uint32_t nenviron;
    const trp_site *site;
    bool contents;   /* resume.check */
    char said[1024]; /* the last line for the user */
};

static inline void run_says(void *context, const char *line)
{
    struct run *r = context;
    g_strlcpy(r->said, line, sizeof r->said);
}

/* Everything up to the job; a failure's text is in *err. */
static inline int run_open(struct run *r, const char *yaml, bool resume, trp_error *err)
{
    char *force[] = {g_strdup(r->force)};
    char key[] = "k", *value = g_strdup(r->param);
    const struct trp_pair param = {.key = key, .value = value};
    const struct trp_pipeline_inputs in = {.params = &param,
                                           .nparams = r->param != NULL};
    g_assert_cmpint(trp_pipeline_read("p.yaml", yaml, strlen(yaml), &in, &r->p, NULL),
                    ==, 0);
    g_free(value);
    g_assert_cmpint(trp_options_new(&r->o, NULL), ==, 0);
    r->ids = g_new0(trp_profile_id, r->p->nstages + 1);
    g_assert_cmpint(trp_pipeline_profiles(r->p, r->o, NULL, &r->profiles, r->ids, NULL),
                    ==, 0);
    r->run_dir = g_build_filename(r->dir, "troupe-runs", "r", NULL);
    files_put(r->run_dir, "state/x", "");
    trp_run_read_in(r->dir);
    g_assert_cmpint(trp_done_log_open(r->run_dir, resume, &r->log, err), ==, 0);
    r->q = (struct trp_resume_request){
        .pipeline = r->p,
        .options = r->o,
        .cwd = r->dir,
        .from = r->from,
        .until = r->until,
        .force = force,
        .nforce = r->force ? 1 : 0,
        .log = resume ? r->log : NULL,
        .contents = r->contents,
    };
    int code = trp_resume_choose(&r->q, &r->choice, err);
    g_free(force[0]);
    if (!trp_resume_any_late(r->choice, r->p->nstages))
        trp_done_log_forget(r->log);
    if (code < 0)
        return code;
    struct trp_command_job_config c = {
        .pipeline = r->p,
        .profiles = r->profiles,
        .options = r->o,
        .ids = r->ids,
        .choice = r->choice,
        .request = &r->q,
        .site = r->site,
        .environ = r->environ,
        .nenviron = r->nenviron,
        .cwd = r->dir,
        .run_name = "r",
        .run_dir = r->run_dir,
        .log = r->log,
        .earlier_runs = resume ? 2 : 0,
        .contents = r->contents,
        .say = run_says,
        .say_context = r,
    };
    return trp_command_job_new(&c, &r->job, err);
}

static inline void run_close(struct run *r)
{
    while (r->job && trp_command_job_reads(r->job))
        g_usleep(1000);
    trp_command_job_free(r->job);
    if (r->choice)
        trp_stage_choices_free(r->choice, r->p->nstages);
    trp_error err = {0};
    trp_done_log_close(r->log, &err);
    g_assert_cmpstr(err.text, ==, "");
    trp_profiles_free(r->profiles);
    trp_options_free(r->o);
    trp_pipeline_free(r->p);
    g_free(r->ids);
    trp_run_read_in(".");
    g_free(r->run_dir);
    r->job = NULL;
    r->choice = NULL;
}

static inline void run_task_ends(struct run *r, uint32_t stage, uint32_t task,
                                 enum trp_end_status status, int32_t code,
                                 uint32_t failures)
{
    bool good = status == TRP_END_SUCCESS;
    struct trp_action verdict = {
        .kind = TRP_ACTION_TASK_END,
        .task_end = {.task = task,
                     .number = good ? 0 : failures - 1,
                     .status = status,
                     .code = code,
                     .counted = !good,
                     .failures = failures},
    };
    struct trp_end end = {.status = (uint8_t)status, .code = code};
    const struct trp_work *w = trp_command_job_work(r->job);
    w->task_ended(w->context, stage, &verdict, &end);
}

static inline void run_stage_ends(struct run *r, uint32_t stage, enum trp_outcome how,
                                  int code, uint32_t task, const char *text)
{
    struct trp_action verdict = {
        .kind = TRP_ACTION_STAGE_ENDED,
        .stage_ended = {.outcome = how, .code = code, .task = task, .text = text},
    };
    const struct trp_work *w = trp_command_job_work(r->job);
    w->stage_ended(w->context, stage, &verdict);
}

#endif
