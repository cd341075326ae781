/*
 * Jobs: submitted, called back by the driver, waited for.
 *
 * The driver makes the stages (lineage.c) and asks for the description of each when it
 * begins; a launch points into the source's inputs; a verdict of success brings a
 * partition's share, which counts once however often the partition ran. What is kept
 * for each partition: a number for count, a pointer and a size for collect and reduce,
 * nothing for foreach and save.
 *
 * An action that waits is one that does not, waited for at once (actions.c).
 */
#include "api/job.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/shared_file.h"

enum { REDONE_MAX = 3 };

/* ---- what the driver asks ---- */

static int stage_message(void *context, uint32_t stage, struct trp_stage_message *ret,
                         trp_error *err)
{
    const struct trp_job *j = context;
    trp_context *ctx = j->context;
    const struct trp_told *t = ctx->told[stage];
    trp_buf_clear(&ctx->body);
    if (trp_chain_walk(trp_told_last(t)) < 0 ||
        trp_chain_put(&ctx->body, ctx, stage == j->told ? &j->end : &t->end) < 0) {
        trp_buf_free(&ctx->body);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a stage");
    }
    ret->work = TRP_WORK_FUNCTION;
    ret->body = ctx->body.data;
    ret->body_size = ctx->body.size;
    return 0;
}

static void launch(void *context, uint32_t stage, uint32_t task, uint32_t number,
                   struct trp_launch *l)
{
    (void)number;
    const struct trp_job *j = context;
    trp_chain_input(trp_told_last(j->context->told[stage]), task, &l->extra,
                    &l->extra_size);
}

static int part_map(trp_job *j, uint32_t task, trp_error *err)
{
    struct trp_part *p = &j->parts[task];
    const uint8_t *data;
    if (!p->in_file || p->mapped)
        return 0;
    int rc = trp_shared_map(trp_context_shared(j->context), TRP_RESULTS_FOLDER,
                            p->attempt.n, p->size, p->hash, &data, err);
    if (rc == 0) {
        p->data = (uint8_t *)(uintptr_t)data;
        p->mapped = true;
    }
    return rc;
}

void trp_part_free(trp_job *j, uint32_t task)
{
    struct trp_part *p = &j->parts[task];
    if (p->mapped)
        trp_shared_unmap(p->data, p->size);
    else
        free(p->data);
    if (p->in_file && !j->context->ended)
        trp_shared_remove(trp_context_shared(j->context), TRP_RESULTS_FOLDER,
                          p->attempt.n);
    *p = (struct trp_part){.done = p->done, .any = p->any};
}

static void keep_part(struct trp_job *j, struct trp_part *p, uint32_t task,
                      const struct trp_end *end)
{
    if (p->in_file && end->in_file && p->attempt.n == end->attempt.n)
        return;
    trp_part_free(j, task); /* a stage that runs again as a whole did it before */
    p->done = true;
    p->any = end->records_out > 0;
    if (end->in_file) {
        p->in_file = true;
        p->attempt = end->attempt;
        p->size = (uint32_t)end->file.size;
        p->hash = end->file.hash;
        return;
    }
    if (end->extra_size == 0)
        return;
    p->data = malloc(end->extra_size);
    if (!p->data) {
        trp_error_set(&j->bad, TRP_ENOMEM,
                      "out of memory for the %u bytes of partition %u", end->extra_size,
                      task);
        return;
    }
    memcpy(p->data, end->extra, end->extra_size);
    p->size = end->extra_size;
}

static void task_ended(void *context, uint32_t stage, const struct trp_action *verdict,
                       const struct trp_end *end)
{
    struct trp_job *j = context;
    uint32_t task = verdict->task_end.task;
    if (verdict->task_end.status != TRP_END_SUCCESS || stage != j->told)
        return; /* a failure, which the driver tells, or a map output */
    if (j->parts) {
        keep_part(j, &j->parts[task], task, end);
    } else if (j->counts) { /* the newest is the one, as above */
        j->count += end->records_out - j->counts[task];
        j->counts[task] = end->records_out;
    }
}

/* ---- a job's life ---- */

static void forget_parts(trp_job *j)
{
    for (uint32_t i = 0; j->parts && i < j->dataset->partitions; i++)
        trp_part_free(j, i);
    free(j->parts);
    free(j->counts);
    j->parts = NULL;
    j->counts = NULL;
}

static void release(trp_job *j)
{
    if (j->held || j->driven)
        return;
    forget_parts(j);
    free((void *)(uintptr_t)j->end.step.arg);
    free((void *)(uintptr_t)j->end.dir);
    free(j->pool);
    j->dataset->jobs--;
    j->context->unreached |= j->dataset->freed;
    free(j);
}

/* Called by the driver's loop: what is out of reach by now goes later. */
static void stops(trp_job *j)
{
    j->dataset->running--;
    j->context->told[j->told]->running--;
    j->context->unreached |= j->dataset->freed || j->dataset->result != j->told;
}

static void gone(void *context)
{
    trp_job *j = context;
    j->driven = false;
    stops(j);
    release(j);
}

static trp_job *job_new(trp_dataset *d, const struct trp_chain_end *end,
                        const char *pool)
{
    trp_job *j = calloc(1, sizeof(*j));
    if (!j)
        return NULL;
    j->context = d->context;
    j->dataset = d;
    j->end = *end;
    j->held = true;
    d->jobs++;
    j->end.step.arg = end->step.arg ? malloc(end->step.arg_size) : NULL;
    j->end.dir = end->dir ? strdup(end->dir) : NULL;
    j->pool = pool ? strdup(pool) : NULL;
    if (j->end.step.arg)
        memcpy((void *)(uintptr_t)j->end.step.arg, end->step.arg, end->step.arg_size);
    if (end->kind == TRP_DO_COUNT)
        j->counts = calloc(d->partitions, sizeof(*j->counts));
    else if (end->kind == TRP_DO_COLLECT || end->kind == TRP_DO_REDUCE ||
             end->kind == TRP_DO_SAMPLE)
        j->parts = calloc(d->partitions, sizeof(*j->parts));
    bool keeps = end->kind != TRP_DO_FOREACH && end->kind != TRP_DO_SAVE &&
                 end->kind != TRP_DO_CHECKPOINT;
    if ((j->end.step.arg || !end->step.arg) && (j->end.dir || !end->dir) &&
        (j->pool || !pool) && (j->counts || j->parts || !keeps))
        return j;
    j->held = false;
    release(j);
    return NULL;
}

static int submit(trp_job *j, const char *pool)
{
    trp_context *ctx = j->context;
    char name[TRP_JOB_NAME_SIZE];
    struct trp_work work = {.context = j,
                            .stage_message = stage_message,
                            .launch = launch,
                            .task_ended = task_ended,
                            .gone = gone};
    struct trp_job_spec spec = {
        .is_dataset = true, .redo = true, .name = name, .pool = pool};
    trp_error err = {0};
    if (!j->end.maker) /* else what it adds has been counted */
        j->end.maker = ++ctx->makers;
    int rc = trp_lineage_tell(j->dataset, &j->end, pool, &j->told);
    if (rc < 0)
        return rc;
    spec.dataset = j->told;
    trp_chain_job_name(j->dataset, &j->end, name, sizeof(name));
    if (ctx->in_line) { /* it is over, for better or worse */
        trp_inline_job(ctx->in_line, name, j->told, &work, &j->bad);
        return 0;
    }
    j->driven = true;
    j->dataset->running++;
    ctx->told[j->told]->running++;
    rc = trp_driver_submit(ctx->driver, &spec, &work, &j->id, &err);
    if (rc == 0)
        return 0;
    j->driven = false;
    stops(j);
    return trp_context_fail(ctx, rc, "%s: %s", name, err.text);
}

static int begin_job(trp_dataset *d, const struct trp_chain_end *end, const char *pool,
                     trp_job **ret_job)
{
    trp_context *ctx = d->context;
    bool busy = ctx->busy;
    trp_job *j = job_new(d, end, pool);
    if (!j)
        return trp_context_fail(ctx, TRP_ENOMEM, "out of memory for an action");
    ctx->busy = true;
    trp_context_enter(ctx); /* the driver's loop reads what is told */
    int rc = submit(j, pool);
    trp_context_leave(ctx);
    ctx->busy = busy;
    if (rc < 0) {
        j->held = false;
        release(j);
        return rc;
    }
    j->next = ctx->jobs;
    if (j->next)
        j->next->previous = j;
    ctx->jobs = j;
    *ret_job = j;
    return 0;
}

trp_job *trp_job_begin(trp_dataset *d, const struct trp_chain_end *end,
                       const char *pool)
{
    trp_job *j = NULL;
    if (d->made)
        d->made = 2;
    trp_reach_sweep(d->context);
    int rc = begin_job(d, end, pool, &j);
    if (rc < 0)
        trp_action_note(d, rc);
    return j;
}

/* Removes what attempts left that died while they wrote. */
static void remove_unfinished(const char *dir)
{
    DIR *d = opendir(dir);
    if (!d)
        return;
    const struct dirent *e;
    while ((e = readdir(d)))
        if (strncmp(e->d_name, ".part-", 6) == 0)
            unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
}

/* Waits until the driver has no more to say of it. */
static int await(trp_job *j)
{
    trp_context *ctx = j->context;
    trp_error err = {0};
    bool busy = ctx->busy;
    ctx->busy = true;
    int rc = ctx->driver ? trp_driver_wait(ctx->driver, j->id, &err) : 0;
    ctx->busy = busy;
    if (rc == 0 && j->bad.code)
        rc = trp_context_fail_with(ctx, &j->bad);
    else if (rc < 0)
        trp_context_fail(ctx, rc, "%s", err.text);
    if (j->end.dir)
        remove_unfinished(j->end.dir);
    return rc;
}

/* The same job once more: its parts from `task` on take the place of those of `j`. */
static int redo(trp_job *j, uint32_t task)
{
    trp_job *k = NULL;
    int rc = begin_job(j->dataset, &j->end, j->pool, &k);
    if (rc < 0)
        return rc;
    rc = await(k);
    for (uint32_t i = task; rc == 0 && i < j->dataset->partitions; i++) {
        trp_part_free(j, i);
        j->parts[i] = k->parts[i];
        k->parts[i] = (struct trp_part){0};
    }
    k->taken = true;
    trp_job_free(k);
    return rc;
}

int trp_part_load(trp_job *j, uint32_t task)
{
    trp_error err;
    int rc;
    while ((rc = part_map(j, task, &err)) < 0 && j->context->driver &&
           j->redone++ < REDONE_MAX) {
        fprintf(stderr,
                "troupe: warning: the result of partition %u is made again: %s\n", task,
                err.text);
        if ((rc = redo(j, task)) < 0)
            return rc;
    }
    return rc == 0 ? 0
                   : trp_context_fail(j->context, err.code,
                                      "the result of partition %u: %s", task, err.text);
}

int trp_job_before(trp_dataset *d, const struct trp_chain_end *end, const char *pool,
                   trp_job **ret_job)
{
    trp_job *j = NULL;
    int rc = begin_job(d, end, pool, &j);
    if (rc < 0)
        return rc;
    rc = await(j);
    for (uint32_t i = 0; rc == 0 && j->parts && i < d->partitions; i++)
        rc = trp_part_load(j, i);
    j->taken = true;
    if (rc == 0)
        *ret_job = j;
    else
        trp_job_free(j);
    return rc;
}

/* What the program has cancelled itself it has not failed to do. */
static bool is_failure(const trp_job *j, int rc)
{
    return rc != TRP_ECANCELLED || trp_context_stopped(j->context);
}

static void take_results(trp_job *j)
{
    int rc = await(j);
    if (rc == 0 && j->end.kind == TRP_DO_COLLECT)
        rc = trp_rows_take(j, &j->rows);
    else if (rc == 0 && j->end.kind == TRP_DO_REDUCE)
        rc = trp_reduce_take(j);
    forget_parts(j);
    j->taken = true;
    if (rc < 0)
        j->error = j->context->error;
    if (rc == 0 || is_failure(j, rc))
        trp_action_note(j->dataset, rc);
}

int trp_job_wait(trp_job *j, const void **ret_result, size_t *ret_size)
{
    const void *result = NULL;
    size_t size = 0;
    if (!j) /* the action failed where it was begun, and the context has why */
        return trp_context_current() && trp_context_current()->error.code
                   ? trp_context_current()->error.code
                   : TRP_EINVAL;
    if (!j->taken) {
        take_results(j);
        trp_reach_sweep(j->context);
    }
    if (j->error.code)
        return trp_context_fail_with(j->context, &j->error);
    if (j->end.kind == TRP_DO_COUNT) {
        result = &j->count;
        size = sizeof(j->count);
    } else if (j->end.kind == TRP_DO_COLLECT) {
        result = trp_rows_batch(j->rows);
        size = j->rows ? trp_rows_batch(j->rows)->count : 0;
    } else {
        result = j->value;
        size = j->size;
    }
    if (ret_result)
        *ret_result = result;
    if (ret_size)
        *ret_size = size;
    return 0;
}

int trp_job_test(trp_job *j)
{
    return !j || j->taken || !j->context->driver ||
           trp_driver_over(j->context->driver, j->id);
}

int trp_job_wait_any_for(trp_job *const *jobs, size_t n, double seconds)
{
    trp_context *ctx = trp_context_current();
    const int64_t limit = !(seconds >= 0)                     ? 0
                          : seconds < (double)INT64_MAX / 1e9 ? (int64_t)(seconds * 1e9)
                                                              : INT64_MAX;
    trp_job_id *ids = n <= UINT32_MAX ? malloc((n + 1) * sizeof(*ids)) : NULL;
    size_t there = 0;
    int first = -1;
    if (!ctx) {
        free(ids);
        return TRP_EINVAL;
    }
    for (size_t i = 0; jobs && ids && i < n && first < 0; i++) {
        ids[i].n = jobs[i] ? jobs[i]->id.n : TRP_NONE;
        there += jobs[i] != NULL;
        if (jobs[i] && trp_job_test(jobs[i]))
            first = (int)i;
    }
    if (first < 0 && !ids)
        first = trp_context_fail(ctx, TRP_ENOMEM, "trp_job_wait_any: out of memory");
    else if (first < 0 && !there)
        first = trp_context_fail(ctx, TRP_EINVAL, "trp_job_wait_any: there is no job");
    else if (first < 0) {
        bool busy = ctx->busy;
        ctx->busy = true;
        first = trp_driver_wait_any(ctx->driver, ids, (uint32_t)n, limit);
        ctx->busy = busy;
    }
    free(ids);
    return first;
}

int trp_job_wait_any(trp_job *const *jobs, size_t n)
{
    return trp_job_wait_any_for(jobs, n, 1e18);
}

int trp_job_wait_for(trp_job *j, double seconds, const void **ret_result,
                     size_t *ret_size)
{
    if (j && trp_job_wait_any_for(&j, 1, seconds) == TRP_ETIME)
        return TRP_ETIME;
    return trp_job_wait(j, ret_result, ret_size);
}

int trp_job_cancel(trp_job *j)
{
    if (!j)
        return TRP_EINVAL;
    if (!j->taken && j->driven)
        trp_driver_cancel(j->context->driver, j->id);
    return 0;
}

int trp_cancel_stage(trp_context *ctx, const char *name)
{
    if (!ctx || !name)
        return TRP_EINVAL;
    if (ctx->driver && trp_driver_cancel_stage(ctx->driver, name) == 0)
        return 0;
    return trp_context_fail(ctx, TRP_ENOENT,
                            "trp_cancel_stage: no job needs a stage %.*s any more",
                            TRP_STAGE_NAME_MAX, name);
}

void trp_job_free(trp_job *j)
{
    if (!j)
        return;
    trp_context *ctx = j->context;
    if (ctx->driver && !j->taken)
        trp_driver_drop(ctx->driver, j->id);
    trp_rows_free(j->rows);
    free(j->value);
    if (j->previous)
        j->previous->next = j->next;
    else
        j->context->jobs = j->next;
    if (j->next)
        j->next->previous = j->previous;
    trp_context_enter(ctx); /* the driver's loop may let go of it at this time */
    j->held = false;
    release(j);
    trp_context_leave(ctx);
}

void trp_jobs_note(trp_context *ctx)
{
    for (trp_job *j = ctx->jobs; j; j = j->next)
        if (!j->taken && (!ctx->driver || trp_driver_over(ctx->driver, j->id)))
            take_results(j);
}

int trp_action_note(trp_dataset *d, int rc)
{
    if (rc < 0)
        return trp_owe(d->context, &d->owed, rc);
    trp_make_good(&d->owed);
    return rc;
}

int trp_action_no_dataset(const char *what)
{
    trp_context *ctx = trp_context_current();
    if (!ctx)
        return TRP_EINVAL;
    if (ctx->error.code == 0)
        trp_context_fail(ctx, TRP_EINVAL, "%s: no dataset given", what);
    return trp_owe(ctx, NULL, ctx->error.code);
}
