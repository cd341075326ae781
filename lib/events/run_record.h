/*
 * What an event log says of a run afterwards: the statistics that its closing summary
 * was made of, and the Slurm jobs and steps that it had. A run that was resumed has a
 * log of several *starts*: a record each.
 *
 *     struct trp_run_records r;
 *     if (trp_run_records_read("troupe-runs/last/events.jsonl", &r, &err) == 0)
 *         trp_summary_print(&r.v[r.n - 1]->statistics, false, false, stdout);
 *     trp_run_records_free(&r);
 *
 * Exact but for what the log itself does not tell: its times are ms, and of tasks that
 * were summarised it has quantiles of times, and executors without when they had them.
 */
#ifndef TRP_EVENTS_RUN_RECORD_H
#define TRP_EVENTS_RUN_RECORD_H

#include "events/log_event.h"
#include "events/statistics.h"
#include "events/task_names.h"

/* A step of Slurm: an executor, or an attempt of a gang. Times are wall clock, ns. */
struct trp_run_step {
    uint32_t job;
    char *name;
    bool gang;
    uint32_t id; /* of the executor, or number of the attempt */
    trp_profile_id profile;
    double cores; /* of the executor, or of all ranks */
    int64_t told;
    int64_t began; /* the executor was there, the gang ran; 0: never */
    int64_t ended; /* 0: not told */
    double cpu;    /* seconds of its tasks */
    int64_t peak_kib;
    char *end;   /* why it ended, NULL: not told, or well */
    bool failed; /* that was no end in good order */
};

/* A task that was given up, as struct trp_event_given_up has it; strings NULL: none. */
struct trp_run_given_up {
    trp_stage_id stage, parent;
    uint32_t task, parent_task, failures;
    char *item, *reason, *log;
};

struct trp_run_record {
    char *app_name;
    int64_t started;
    bool complete;   /* it has an end, with */
    int exit_status; /* this */
    struct trp_statistics statistics;
    struct trp_run_job {
        uint32_t id;
        bool additional;
        int64_t asked, began, ended; /* wall clock, ns; 0: not told */
    } * jobs;                        /* Slurm's, in the order in which they were had */
    uint32_t njobs;
    struct trp_run_step *steps;
    uint32_t nsteps;
    struct trp_task_names names;       /* by stage */
    struct trp_run_given_up *given_up; /* in the order in which they were */
    uint32_t ngiven_up;
    uint32_t jobs_capacity, steps_capacity, given_up_capacity;
};

struct trp_run_records {
    struct trp_run_record **v;
    uint32_t n, capacity;
};

/* TRP_EINVAL with FILE:LINE: not an event log, or it has no start of a run. After a
 * failure there is nothing to free. */
int trp_run_records_read(const char *file, struct trp_run_records *ret, trp_error *err);
enum { TRP_RUN_READERS = 2 };
/* `also`, at most TRP_RUN_READERS, are handed what the record has taken. They want
 * nothing that it refuses. */
int trp_run_records_read_also(const char *file, const struct trp_log_reader *also,
                              size_t nalso, struct trp_run_records *ret,
                              trp_error *err);
void trp_run_records_free(struct trp_run_records *r);

/* The name of a step's profile; "?" when it is not known. */
const char *trp_run_step_profile(const struct trp_run_record *r,
                                 const struct trp_run_step *s);

#endif
