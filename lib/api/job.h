/*
 * A job: what an action asks of the driver, until its result is taken.
 *
 *     trp_job *j = trp_job_begin(dataset, &end, pool);   // NULL: told and noted
 *     … the driver's loop computes it, in this thread or another …
 *     trp_job_wait(j, &result, &size);                   // troupe.h
 *     trp_job_free(j);
 *
 * Two hold it: the program, until trp_job_free or trp_finalize, and the driver, which
 * calls back as long as one of the job's stages is used, if by another job. Who lets go
 * last frees it. The driver writes into it from its loop (trp_driver_enter); the program
 * reads what that wrote when the job is over.
 */
#ifndef TRP_API_JOB_H
#define TRP_API_JOB_H

#include "api/lineage.h"

/* What came back for one partition. */
struct trp_part {
    uint8_t *data;
    uint32_t size;
    bool done;
    bool any;     /* reduce: there is a value */
    bool in_file; /* it lies in the file of … */
    bool mapped;  /* … (`data` is that) */
    trp_attempt_id attempt;
    uint64_t hash;
};

struct trp_job {
    trp_context *context;
    trp_job *next, *previous; /* of those that the program holds */
    trp_dataset *dataset;
    struct trp_chain_end end; /* bytes and strings are its own */
    uint32_t told;            /* the dataset of its last stage */
    trp_job_id id;
    char *pool;        /* NULL: the default one */
    uint32_t redone;   /* how often it was done again for a result that was damaged */
    bool held, driven; /* by the program, by the driver */
    bool taken;        /* it is over, and what follows is its outcome */
    trp_error error;   /* code 0: it succeeded */
    uint64_t count;
    void *value; /* reduce; malloc'ed, NULL: there is none */
    size_t size;
    trp_rows *rows; /* collect */
    /* While it runs: */
    uint64_t *counts;       /* count: of each partition */
    struct trp_part *parts; /* collect, reduce, sample */
    trp_error bad;          /* a result that could not be taken */
};

/* Submits a job. What `end` points to is copied, but for plans. NULL with the failure
 * noted, as of an action on `d`. */
trp_job *trp_job_begin(trp_dataset *d, const struct trp_chain_end *end,
                       const char *pool);
/* Computes what another action needs before its own job; that notes the failure, too.
 * *ret_job: with its parts; to be freed with trp_job_free. */
int trp_job_before(trp_dataset *d, const struct trp_chain_end *end, const char *pool,
                   trp_job **ret_job);

/* Has the bytes of a part that lies in a file. Where they are not those that the task wrote,
 * the parts from this one on are made again, by a job of their own. TRP_ESYSTEM with the text
 * in the context. */
int trp_part_load(trp_job *j, uint32_t task);
/* Its bytes are of no use any more. */
void trp_part_free(trp_job *j, uint32_t task);

/* For jobs of which nobody asked how they ended: the failures of those that are over
 * are noted. */
void trp_jobs_note(trp_context *ctx);

/* An action on `d` ended with `rc`, which is returned: a failure counts until an action
 * on `d` succeeds. */
int trp_action_note(trp_dataset *d, int rc);
/* An action on NULL: the chain failed where it was made, and the context has why. */
int trp_action_no_dataset(const char *what);

/* rows.c: the records of all parts, which are freed. TRP_ENOMEM, TRP_EPROTO with the
 * text in the context. */
int trp_rows_take(trp_job *j, trp_rows **ret_rows);
/* actions.c: the value of all parts. The same. */
int trp_reduce_take(trp_job *j);
/* checkpoint.c: runs the job that writes a TRP_NODE_CHECKPOINT. */
int trp_checkpoint_write(trp_dataset *d, const char *pool);

#endif
