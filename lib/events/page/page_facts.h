/*
 * What the page of a run shows beside the figures of its records (events/run_record.h):
 * each attempt of a task with where and when it ran, executors from when they were asked
 * for, Slurm jobs, failures with their reasons, and what was told. Gathered in the same
 * pass over the event log.
 *
 *     struct trp_page_facts f;
 *     if (trp_page_facts_read("RUN/events.jsonl", &records, &f, &err) == 0) {
 *         …
 *         trp_page_facts_free(&f);
 *         trp_run_records_free(&records);
 *     }
 *
 * Stages, executors and profiles have numbers of their own here (*places* in their
 * arrays): a log of several starts uses those of the run anew. Times are ms since 1970;
 * 0: not. An attempt takes 56 bytes; all else is bounded by stages, executors or the
 * limits below.
 */
#ifndef TRP_EVENTS_PAGE_PAGE_FACTS_H
#define TRP_EVENTS_PAGE_PAGE_FACTS_H

#include <uthash.h>

#include "events/run_record.h"

enum {
    TRP_PAGE_REASONS = 200, /* different failures that are told; the rest is counted */
    TRP_PAGE_EXAMPLES = 3,  /* attempts of each */
    TRP_PAGE_MESSAGES = 300,
};

enum trp_page_end {
    TRP_PAGE_RUNNING, /* no end in the log */
    TRP_PAGE_SUCCEEDED,
    TRP_PAGE_FAILED,
    TRP_PAGE_KILLED, /* by us: a copy was quicker, the run was cancelled */
    TRP_PAGE_LOST,   /* with its executor, or with the run */
};

struct trp_page_task {
    int64_t begun, ended; /* when it ran: what it was queued before is not in it */
    uint32_t stage;       /* place */
    uint32_t executor;    /* place; TRP_NONE: a gang */
    uint32_t number, attempt, stage_attempt;
    uint32_t peak_mib;
    uint32_t ranks; /* of a gang */
    uint32_t job;   /* of a gang, Slurm's; 0: none */
    uint8_t end;    /* enum trp_page_end */
    uint8_t level;
    bool copy; /* speculative */
};

/* Tasks of a stage that were told as a sum: on which executor, for how long. */
struct trp_page_sum {
    uint32_t stage, executor; /* places; TRP_NONE: gangs */
    uint32_t tasks;
    int64_t run_ms, from, to; /* within that time */
};

struct trp_page_executor {
    uint32_t id;      /* in the log */
    uint32_t start;   /* of the run */
    uint32_t host;    /* place of its name; TRP_NONE: it never came */
    uint32_t profile; /* place, that it was made for */
    uint32_t job;     /* Slurm's; 0: none */
    double cores;
    int64_t asked, began, came, gone; /* `began`: its step was started, in Slurm */
    uint32_t span;                    /* the last one of it; TRP_NONE: it never came */
    char *why;                        /* it went; NULL: in good order, or it has not */
};

/* An executor under one profile: it may be taken over by another one. */
struct trp_page_span {
    uint32_t executor, profile; /* places */
    int64_t from, to;           /* to 0: still */
};

struct trp_page_profile {
    char name[TRP_PROFILE_NAME_MAX + 1];
    uint32_t slots;
    double cores, memory_mib;               /* of an executor */
    double task_cpus;                       /* of a task */
    double devices[TRP_PROFILE_RESOURCES];  /* of an executor, by place of the name */
    double per_task[TRP_PROFILE_RESOURCES]; /* of a task */
};

struct trp_page_stage {
    uint32_t start;
    trp_stage_id id;  /* in the log */
    uint32_t profile; /* place; TRP_NONE: not known */
    int64_t submitted, first, ended;
    enum trp_wait waits; /* as told last */
    uint32_t ntasks;
    char *name;
    trp_stage_id *parents;
    uint32_t nparents;
    uint64_t levels[TRP_LEVELS]; /* attempts that succeeded */
    uint64_t failed, killed, copies, lost;
    uint64_t summarised; /* tasks without times */
    uint64_t skipped;    /* never to run, since others were given up */
};

/* A stage's attempts that failed in the same words. */
struct trp_page_failure {
    uint32_t stage;
    uint32_t count;
    char *reason, *kind;                  /* the contract's words; Troupe's status */
    uint32_t examples[TRP_PAGE_EXAMPLES]; /* places of tasks */
    uint32_t nexamples;
    int64_t first, last;
};

struct trp_page_job {
    uint32_t id, start;
    bool additional;
    uint32_t profile; /* place, for which it was queued; TRP_NONE: it was not */
    int64_t asked, queued, at, end; /* at: it has begun */
};

/* What a stage waits for from then on. */
struct trp_page_reason {
    uint32_t stage; /* place */
    enum trp_wait what;
    int64_t at;
};

struct trp_page_message {
    int64_t at;
    char *level, *text;
};

struct trp_page_start {
    int64_t at, last;
    uint32_t first_stage;
};

struct trp_page_id; /* what the log calls something, and its place */

struct trp_page_facts {
    struct trp_page_start *starts;
    uint32_t nstarts, starts_capacity;
    struct trp_page_task *tasks;
    uint32_t ntasks, tasks_capacity;
    struct trp_page_sum *sums;
    uint32_t nsums, sums_capacity;
    struct trp_page_executor *executors;
    uint32_t nexecutors, executors_capacity;
    struct trp_page_span *spans; /* in the order of their beginnings */
    uint32_t nspans, spans_capacity;
    struct trp_page_profile *profiles;
    uint32_t nprofiles, profiles_capacity;
    struct trp_page_stage *stages;
    uint32_t nstages, stages_capacity;
    struct trp_page_failure *failures;
    uint32_t nfailures, failures_capacity;
    uint32_t failures_left_out; /* attempts */
    struct trp_page_job *jobs;
    uint32_t njobs, jobs_capacity;
    struct trp_page_reason *reasons;
    uint32_t nreasons, reasons_capacity;
    struct trp_page_message *messages;
    uint32_t nmessages, messages_capacity, messages_left_out;
    char **hosts;
    uint32_t nhosts, hosts_capacity;
    char device[TRP_PROFILE_RESOURCES][TRP_RESOURCE_NAME_MAX];
    uint32_t ndevices;
    /* While it is read: */
    struct trp_page_id *open, *stage_of, *executor_of, *profile_of, *job_of_gang;
    struct trp_page_host *host_of;
};

/* TRP_EINVAL as trp_run_records_read. After a failure there is nothing to free. */
int trp_page_facts_read(const char *file, struct trp_run_records *ret_records,
                        struct trp_page_facts *ret, trp_error *err);
/* Fills them in another reader's pass; after a failure, too, they are to be freed. */
struct trp_log_reader trp_page_facts_reader(struct trp_page_facts *ret);
void trp_page_facts_free(struct trp_page_facts *f);

/* The place of the stage of a start with that id; TRP_NONE: not heard of. */
uint32_t trp_page_stage_place(const struct trp_page_facts *f, uint32_t start,
                              trp_stage_id id);
/* Up to when an executor was there, or a task ran, that has no end: the last time that
 * its start has told. */
int64_t trp_page_executor_end(const struct trp_page_facts *f,
                              const struct trp_page_executor *x);
/* Up to when a job is in the queue, or runs. */
int64_t trp_page_job_queued_to(const struct trp_page_facts *f,
                               const struct trp_page_job *j);
int64_t trp_page_job_end(const struct trp_page_facts *f, const struct trp_page_job *j);
/* Up to when it was waited for: it came, or was given up. */
int64_t trp_page_executor_came(const struct trp_page_facts *f,
                               const struct trp_page_executor *x);
int64_t trp_page_span_end(const struct trp_page_facts *f,
                          const struct trp_page_span *s);
int64_t trp_page_task_end(const struct trp_page_facts *f,
                          const struct trp_page_task *t);

#endif
