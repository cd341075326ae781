/*
 * A pipeline as a job: what the engine has to know of its stages (struct trp_job_spec)
 * and what their tasks are (struct trp_work), which is commands.
 *
 *     trp_command_job_new(&config, &job, &err);
 *     trp_driver_submit(driver, trp_command_job_spec(job), trp_command_job_work(job), …);
 *     … trp_driver_wait …
 *     for (i = 0; (line = trp_command_job_line(job, i)); i++) …
 *     trp_command_job_free(job);
 *
 * Threads: the loop's, as struct trp_work says.
 */
#ifndef TRP_DRIVER_COMMAND_JOB_H
#define TRP_DRIVER_COMMAND_JOB_H

#include "conf/pipeline.h"
#include "conf/site.h"
#include "driver/done_log.h"
#include "driver/driver.h"
#include "driver/resume.h"

typedef struct trp_command_job trp_command_job;

/* All borrowed and alive until the job is freed, but for what is said. */
struct trp_command_job_config {
    const trp_pipeline *pipeline;
    const trp_profiles *profiles;
    const trp_options *options;      /* NULL: the defaults */
    const trp_profile_id *ids;       /* of each stage; copied */
    struct trp_stage_choice *choice; /* of each stage; items and done are taken over
                                      * as stages start */
    const struct trp_resume_request *request; /* of late stages; NULL: there are none */
    const struct trp_temp_users *temp_users;
    trp_temp_set *temp_set; /* what is made here is added */
    const trp_site *site;   /* NULL: none */
    char *const *environ;   /* of `troupe` */
    uint32_t nenviron;
    const char *cwd; /* where relative paths begin, absolute */
    const char *run_name, *run_dir;
    trp_done_log
        *log;        /* what is done is written here; what it had is looked at while the
                        * job is made */
    bool keep_going; /* run.keep_going */
    bool fail_fast;  /* run.fail_fast */
    int64_t outputs_wait_ns;
    uint32_t earlier_runs; /* in this folder; attempts of stages are numbered on, so
                            * that logs of earlier runs stay; they may have left outputs
                            * of tasks that run now */
    bool contents;         /* what files contain is kept (resume.check) */
    /* Takes a line for the user, without "troupe: "; NULL: none. */
    void (*say)(void *context, const char *line);
    void *say_context;
};

/* TRP_EINVAL with FILE:LINE:COL for what is wrong with items or commands. */
int trp_command_job_new(const struct trp_command_job_config *config,
                        trp_command_job **ret, trp_error *err);
void trp_command_job_free(trp_command_job *j);

/* The stages that run, parents first: may be none. */
const struct trp_job_spec *trp_command_job_spec(const trp_command_job *j);
const struct trp_work *trp_command_job_work(const trp_command_job *j);

/* All attempts have ended, also those that did so after their stage: what these wrote
 * is among the stage's outputs that are recorded. */
void trp_command_job_ended(trp_command_job *j);
/* Whether temp files are still being removed; no more, and what is left stays. */
bool trp_command_job_removes(const trp_command_job *j);
void trp_command_job_stop_removing(trp_command_job *j);
/* After that: how many files of a stage of the pipeline were removed; of all, and what stays
 * that was to go (false: nothing). */
uint32_t trp_command_job_removed_of(const trp_command_job *j, uint32_t stage);
bool trp_command_job_removed(const trp_command_job *j, char *buf, size_t size);
/* Whether contents of files are still being read; no more, and what was not read is not
 * kept. The latter before the log is closed. */
bool trp_command_job_reads(const trp_command_job *j);
void trp_command_job_stop_reading(trp_command_job *j);

/* What is said at the end (end_lines.h); NULL behind the last. "FILE:LINE:COL: stage S:
 * task T failed N times, last with …; see …" */
const char *trp_command_job_line(const trp_command_job *j, uint32_t i);
/* Has a stage failed? */
bool trp_command_job_failed(const trp_command_job *j);

#endif
