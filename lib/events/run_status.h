/*
 * Where a run is now, as the JSON document of `troupe status --json`: made by the
 * driver of a run that goes on, else from an event log. Times are ms since 1970.
 *
 *     struct trp_buf b = {0};
 *     trp_status_begin(&b, &run);
 *     trp_status_stage(&b, &stage); …
 *     trp_status_executors(&b); trp_status_profile(&b, &profile); …
 *     trp_status_jobs(&b); trp_status_job(&b, &job); …
 *     trp_status_end(&b);
 *
 * The document: {"run","name","status","from","host","now","started","ended","exit",
 * "left_out","tasks","done","stages":[…],"executors":[…],"jobs":[…]}, their members as
 * in the structs below.
 */
#ifndef TRP_EVENTS_RUN_STATUS_H
#define TRP_EVENTS_RUN_STATUS_H

#include "core/base/bytes.h"
#include "events/run_record.h"

enum { TRP_STATUS_STAGES = 20000 }; /* told at most: those that were known last */

struct trp_status {
    const char *run, *name;
    const char *status;          /* as troupe ls has it */
    const char *from;            /* "driver", or "log": the event log */
    const char *host;            /* where the driver is, or was; "": not known */
    int64_t now, started, ended; /* wall, ns; ended 0: it has not */
    int exit_status;
    uint32_t left_out;    /* stages */
    uint64_t tasks, done; /* of all stages, as the progress line counts them */
};

struct trp_status_stage {
    const char *name;
    uint32_t id;
    const char *profile; /* NULL: not known */
    /* "waiting" for others, "ready" (nothing runs), "running", or how it ended */
    const char *state;
    uint32_t tasks, done, running, pending; /* pending: could run now, or is queued */
    uint32_t given_up, skipped;             /* tasks */
    uint64_t failures;                      /* attempts */
    uint64_t ran;         /* attempts that succeeded since this start of the run */
    int64_t began, ended; /* wall, ns; 0: not */
    const char *why;      /* nothing of it runs; "": not asked, or it does */
};

struct trp_status_profile {
    const char *name;
    uint32_t up, coming;    /* executors: there, and asked for */
    uint32_t busy, leaving; /* of those there: with tasks; told to go (not in `up`) */
    const char *needs;      /* "4 cores, 2 GiB, gpu 1"; "": not known */
};

/* A job of a batch system. */
struct trp_status_job {
    uint32_t job;        /* 0: its number is not known yet */
    bool additional;     /* not the one that the driver is in */
    const char *state;   /* "asked", "pending", "starting", "running", "ending" */
    const char *profile; /* for which it was asked; NULL: none */
    const char *reason;  /* why it is pending; "" */
    uint32_t nodes;
    int64_t start, ends; /* wall, ns: expected while it is pending; 0: not known */
};

void trp_status_begin(struct trp_buf *b, const struct trp_status *s);
void trp_status_stage(struct trp_buf *b, const struct trp_status_stage *s);
void trp_status_executors(struct trp_buf *b);
void trp_status_profile(struct trp_buf *b, const struct trp_status_profile *p);
void trp_status_jobs(struct trp_buf *b);
void trp_status_job(struct trp_buf *b, const struct trp_status_job *j);
void trp_status_end(struct trp_buf *b);

/* What statistics have of a stage: all of one that has ended. */
struct trp_status_stage trp_status_of(const struct trp_statistics *all,
                                      const struct trp_stage_statistics *s);
/* Which stage to begin with, so that at most TRP_STATUS_STAGES are told. */
uint32_t trp_status_first(uint32_t nstages, uint32_t *ret_left_out);

/* The whole document of the last start in a log. */
void trp_status_of_log(struct trp_buf *b, const struct trp_run_record *r,
                       const struct trp_status *s);

#endif
