/*
 * A pipeline's run, from specification to exit status.
 *
 * Order: settings; what is to run; whether it can ever fit (a run that cannot is
 * refused before its first executor, gangs too); the driver; the job; its end. Until
 * the driver exists, nobody but this process can tell `troupe` why, so a refusal makes
 * the control connection itself.
 *
 * The error line comes after everything else on stderr but before trp_driver_end tells
 * `troupe` the exit status: after that, `troupe` may be gone and its terminal with it.
 *
 * Teardown: driver (its work ends), job, choices, log of what is done, settings.
 *
 * What files contain is read while the run goes on; when that is over before, the driver
 * goes on until it is known, unless the run was stopped.
 */
#include "driver/pipeline_run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/yaml.h"
#include "driver/command_job.h"
#include "driver/control.h"
#include "driver/done_log.h"
#include "driver/driver_open.h"
#include "driver/driver_state.h"
#include "driver/fit.h"
#include "driver/kept_lists.h"
#include "driver/pipeline_settings.h"
#include "driver/resume.h"
#include "driver/run_spec.h"
#include "events/run_folder.h"
#include "os/clock.h"

enum { STAGES_TOLD = 40 };

/* Of waiting for contents of files. */
#define PASS_NS INT64_C(20000000)
#define TELL_NS INT64_C(3000000000)

struct pipeline_run {
    struct trp_run_spec *spec;
    struct trp_pipeline_settings s;
    struct trp_kept_lists lists;
    struct trp_pipeline_listener listener;
    trp_done_log *log;
    struct trp_temp_users temp_users;
    trp_temp_set *temp_set;
    struct trp_stage_choice *choice;
    struct trp_resume_request request; /* that it was chosen by */
    trp_command_job *job;
};

/* One line on stderr, where a progress bar may stand. */
static void say(const struct trp_run_spec *spec, const char *text)
{
    bool bar = spec && spec->terminal && !spec->quiet;
    fprintf(stderr, "%stroupe: %s\n", bar ? "\r\033[K" : "", text);
    fflush(stderr);
}

/* Refuses a run that has no driver yet. */
static int refuse(const struct trp_run_spec *spec, const trp_error *err)
{
    int fd = -1, status = trp_error_exit_status(err->code);
    const char *control = spec ? spec->control : getenv("TROUPE_CONTROL");
    if (control && *control && trp_control_connect(control, &fd, NULL) < 0)
        fd = -1;
    say(spec, err->text);
    if (fd >= 0) {
        trp_control_exit(fd, status);
        close(fd);
    }
    return status;
}

/* Of a run that goes on, a line for each stage; where there are more, or nobody wants to
 * hear of it, for those of which something that was done is done again. */
static void tell_choices(const struct pipeline_run *run)
{
    const trp_pipeline *p = run->s.pipeline;
    uint32_t others = 0;
    char line[512];
    bool all = !run->spec->quiet && p->nstages <= STAGES_TOLD;
    for (uint32_t k = 0; run->spec->earlier_runs && k < p->nstages; k++) {
        bool again =
            trp_stage_choice_text(p, run->choice, p->order[k], line, sizeof line);
        if (again || all)
            say(run->spec, line);
        else
            others++;
    }
    snprintf(line, sizeof line, "%u more stages go on as they were left", others);
    if (others && !run->spec->quiet)
        say(run->spec, line);
}

static int choose(struct pipeline_run *run, trp_error *err)
{
    const struct trp_run_spec *spec = run->spec;
    int r = trp_done_log_open(spec->run_dir, spec->earlier_runs > 0, &run->log, err);
    if (r == 0)
        trp_done_log_wait(run->log,
                          trp_options_time_ns(run->s.options, "outputs.wait"));
    if (r == 0)
        r = trp_temp_users_make(run->s.pipeline, &run->temp_users, err);
    if (r == 0)
        r = trp_temp_set_new(spec->cwd, run->log, &run->temp_set, err);
    if (r < 0)
        return r;
    struct trp_resume_request request = {
        .pipeline = run->s.pipeline,
        .options = run->s.options,
        .cwd = spec->cwd,
        .from = spec->from,
        .until = spec->until,
        .force = spec->force,
        .nforce = spec->nforce,
        .log = spec->earlier_runs ? run->log : NULL,
        .contents = trp_resume_checks_contents(run->s.options),
        .run_dir = spec->run_dir,
        .temp_users = &run->temp_users,
        .temp_set = run->temp_set,
    };
    run->request = request;
    return trp_resume_choose(&request, &run->choice, err);
}

static void say_line(void *context, const char *line)
{
    say(context, line);
}

static void say_warning(void *context, struct trp_mark at, const char *text)
{
    const struct pipeline_run *run = context;
    trp_error line;
    trp_error_at(&line, 0, run->s.pipeline->file, at, "warning: %s", text);
    say(run->spec, line.text);
}

/* `troupe` has told of what is there already. */
static int make_job(struct pipeline_run *run, trp_error *err)
{
    const struct trp_run_spec *spec = run->spec;
    struct trp_command_job_config config = {
        .pipeline = run->s.pipeline,
        .profiles = run->s.profiles,
        .options = run->s.options,
        .ids = run->s.ids,
        .choice = run->choice,
        .request = &run->request,
        .temp_users = &run->temp_users,
        .temp_set = run->temp_set,
        .site = run->s.site,
        .environ = spec->environ,
        .nenviron = spec->nenviron,
        .cwd = spec->cwd,
        .run_name = spec->run_name,
        .run_dir = spec->run_dir,
        .log = run->log,
        .keep_going = trp_options_bool(run->s.options, "run.keep_going"),
        .fail_fast = trp_options_bool(run->s.options, "run.fail_fast"),
        .outputs_wait_ns = trp_options_time_ns(run->s.options, "outputs.wait"),
        .earlier_runs = spec->earlier_runs,
        .contents = trp_resume_checks_contents(run->s.options),
        .say = say_line,
        .say_context = run->spec,
    };
    int r = trp_command_job_new(&config, &run->job, err);
    run->listener = (struct trp_pipeline_listener){say_warning, run};
    run->s.pipeline->listener = &run->listener;
    return r;
}

static int check_fit(struct pipeline_run *run, trp_error *err)
{
    const trp_pipeline *p = run->s.pipeline;
    trp_fit *fit;
    struct trp_cluster_where where = trp_run_spec_where(run->spec);
    int r = trp_fit_open(run->s.options, run->s.site, &where, &fit, err);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < p->nstages && r == 0; i++)
        if (run->choice[i].runs)
            r = trp_fit_stage(fit, p, run->s.site, &p->stages[i],
                              trp_profiles_get(run->s.profiles, run->s.ids[i]), err);
    trp_fit_close(fit);
    return r;
}

/* What the run works on is kept, or taken as it was. */
static void settle_lists(struct pipeline_run *run)
{
    run->lists = (struct trp_kept_lists){
        .run_dir = run->spec->run_dir,
        .keeps = true,
        .takes = run->spec->as_it_was,
        .say = say_line,
        .say_context = run->spec,
    };
    trp_kept_lists_since(&run->lists, "run_spec.json");
    run->s.pipeline->kept_lists = &run->lists;
}

static int prepare(struct pipeline_run *run, trp_error *err)
{
    int r = trp_pipeline_settings_load(run->spec, &run->s, err);
    if (r == 0)
        settle_lists(run);
    if (r == 0)
        r = choose(run, err);
    if (r == 0)
        r = check_fit(run, err);
    if (r == 0)
        r = make_job(run, err);
    if (run->log && !trp_resume_any_late(run->choice, run->s.pipeline->nstages))
        trp_done_log_forget(run->log);
    return r;
}

/* Tells the driver of the default profile and of each that a stage of the job uses. A
 * gang's profile need not fit an executor: check_fit has asked for the gang. */
static int add_profiles(struct pipeline_run *run, trp_driver *driver, trp_error *err)
{
    const struct trp_job_spec *spec = trp_command_job_spec(run->job);
    uint32_t n = trp_profiles_count(run->s.profiles);
    bool *used = calloc((size_t)n + 1, sizeof *used);
    bool *gang = calloc((size_t)n + 1, sizeof *gang);
    if (!used || !gang) {
        free(used);
        free(gang);
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    int r = 0;
    for (uint32_t i = 0; i < spec->nstages && r == 0; i++) {
        const struct trp_stage_spec *s = &spec->stages[i];
        *(s->kind == TRP_STAGE_GANG ? &gang[s->profile.n] : &used[s->profile.n]) = true;
    }
    for (uint32_t i = 0; i < n && r == 0; i++) {
        if (i == 0 || used[i] || gang[i]) /* the default's is in every log */
            r = trp_driver_profile_added(driver, (trp_profile_id){i}, err);
        if (r == TRP_ENEVER && !used[i])
            r = 0;
    }
    free(used);
    free(gang);
    return r;
}

static int run_job(struct pipeline_run *run, trp_driver *driver, trp_error *err)
{
    trp_job_id id;
    int r = add_profiles(run, driver, err);
    run->lists.began = true;
    if (r < 0 || trp_command_job_spec(run->job)->nstages == 0)
        return r;
    r = trp_driver_submit(driver, trp_command_job_spec(run->job),
                          trp_command_job_work(run->job), &id, err);
    if (r < 0)
        return r;
    trp_driver_last_job(driver);
    return trp_driver_wait(driver, id, err);
}

/* Waits until it is known what files contain, and those that are temp have gone. */
static void wait_for_files(const struct pipeline_run *run, trp_driver *driver)
{
    int64_t told = trp_clock_ns() + TELL_NS;
    while (!trp_driver_stopped(driver)) {
        bool reads = trp_command_job_reads(run->job);
        if (!reads && !trp_command_job_removes(run->job))
            break;
        trp_driver_pass(driver, PASS_NS);
        if (trp_clock_ns() < told)
            continue;
        say(run->spec,
            reads ? "all tasks have ended; the contents of their files are "
                    "still being read (resume.check)"
                  : "all tasks have ended; temp files are still being removed");
        told = INT64_MAX;
    }
}

static void tell_removed(struct pipeline_run *run, trp_driver *driver)
{
    char line[1600];
    trp_command_job_stop_removing(run->job);
    if (!trp_command_job_removed(run->job, line, sizeof line))
        return;
    for (uint32_t i = 0; i < run->s.pipeline->nstages; i++) {
        uint32_t n = trp_command_job_removed_of(run->job, i);
        if (n)
            trp_driver_log(driver, "info", "stage %s: %u temp file%s removed",
                           run->s.pipeline->stages[i].name, n,
                           n == 1 ? " was" : "s were");
    }
    if (!run->spec->quiet)
        say(run->spec, line);
}

/* What was given up or failed; when no stage failed, what else ended the run. */
static void tell_end(const struct pipeline_run *run, bool failed, const trp_error *err)
{
    const char *line;
    for (uint32_t i = 0; (line = trp_command_job_line(run->job, i)); i++)
        say(run->spec, line);
    if (failed && !trp_command_job_failed(run->job) && *err->text)
        say(run->spec, err->text);
}

static void say_nothing_left(const struct pipeline_run *run)
{
    char line[160] = "nothing is left to do: every stage is done";
    if (run->spec->until)
        snprintf(line, sizeof line,
                 "nothing is left to do: every stage up to %.64s is done",
                 run->spec->until);
    else if (!run->s.pipeline->nstages)
        snprintf(line, sizeof line,
                 "nothing is to do: every stage is left out by its when");
    say(run->spec, line);
}

static int drive(struct pipeline_run *run)
{
    trp_error err = {0}, log_err = {0};
    trp_driver *driver;
    int r = trp_driver_open_spec(run->spec, run->s.options, run->s.site,
                                 run->s.profiles, &run->s.pools, &driver, &err);
    if (r < 0) {
        fprintf(stderr, "troupe: %s\n", err.text);
        return trp_error_exit_status(r);
    }
    tell_choices(run);
    if (trp_command_job_spec(run->job)->nstages == 0)
        say_nothing_left(run);
    r = run_job(run, driver, &err);
    trp_driver_end_attempts(driver); /* one may have succeeded before it was killed */
    trp_command_job_ended(run->job);
    wait_for_files(run, driver);
    tell_removed(run, driver);
    tell_end(run, r < 0, &err);
    trp_command_job_stop_reading(run->job);
    int written = trp_done_log_close(run->log, &log_err);
    run->log = NULL;
    if (written < 0) {        /* what the next --resume needs is not all there */
        if (r != TRP_ESYSTEM) /* else that the disk is full has been told */
            say(run->spec, log_err.text);
        r = r == 0 || r == TRP_EFAILED ? written : r;
    }
    return trp_driver_end(driver, trp_error_exit_status(r), run->spec->quiet);
}

int trp_pipeline_driver_main(const char *run_dir)
{
    struct pipeline_run run = {0};
    trp_error err = {0};
    signal(SIGPIPE, SIG_IGN); /* stdout and stderr may be closed while it runs */
    int status, r = trp_driver_hold(run_dir, &err);
    if (r == 0)
        r = trp_run_spec_load(run_dir, &run.spec, &err);
    if (r == 0 && run.spec->called_in)
        trp_run_read_in(run.spec->called_in);
    if (r == 0)
        r = prepare(&run, &err);
    status = r < 0 ? refuse(run.spec, &err) : drive(&run);
    trp_command_job_free(run.job);
    if (run.choice)
        trp_stage_choices_free(run.choice, run.s.pipeline->nstages);
    trp_done_log_close(run.log, NULL);
    trp_temp_users_free(&run.temp_users);
    trp_temp_set_free(run.temp_set);
    trp_pipeline_settings_free(&run.s);
    trp_run_spec_free(run.spec);
    return status;
}
