/*
 * One stage, submitted and waited for.
 *
 * The driver makes the stages (lineage.c) and asks for the description of each when it
 * begins; a launch points into the source's inputs; a verdict of success brings a
 * partition's share, which counts once however often the partition ran. What is kept
 * for each partition: one bit for count, a pointer and a size for collect and reduce,
 * nothing for foreach and save.
 *
 * A failed action tells the failure that ended it: the text that the function gave when
 * it ended with a code, else the driver's words.
 */
#include "api/stage_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the driver asks ---- */

static int stage_message(void *context, uint32_t stage, struct trp_stage_message *ret,
                         trp_error *err)
{
    const struct trp_stage_run *a = context;
    trp_context *ctx = a->context;
    const struct trp_told *t = &ctx->told[stage];
    trp_dataset *last = trp_told_last(t);
    trp_buf_clear(&ctx->body);
    if (trp_chain_walk(last) < 0 || trp_chain_put(&ctx->body, ctx, &t->end) < 0) {
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
    const struct trp_stage_run *a = context;
    trp_chain_input(trp_told_last(&a->context->told[stage]), task, &l->extra,
                    &l->extra_size);
}

static void keep_part(struct trp_stage_run *a, struct trp_part *p, uint32_t task,
                      const struct trp_end *end)
{
    free(p->data); /* a barrier stage that failed did it before */
    p->data = NULL;
    p->size = 0;
    p->done = true;
    p->any = end->records_out > 0;
    if (end->extra_size == 0)
        return;
    p->data = malloc(end->extra_size);
    if (!p->data) {
        trp_error_set(&a->bad, TRP_ENOMEM,
                      "out of memory for the %u bytes of partition %u", end->extra_size,
                      task);
        return;
    }
    memcpy(p->data, end->extra, end->extra_size);
    p->size = end->extra_size;
}

static void keep_failure(struct trp_stage_run *a, uint32_t stage,
                         const struct trp_action *verdict, const struct trp_end *end)
{
    if (a->failure.there || verdict->task_end.retried || !verdict->task_end.counted ||
        (verdict->task_end.status != TRP_END_EXIT &&
         verdict->task_end.status != TRP_END_MISTAKE))
        return;
    a->failure.there = true;
    a->failure.stage = a->context->told[stage].name;
    a->failure.mistake = verdict->task_end.status == TRP_END_MISTAKE;
    a->failure.task = verdict->task_end.task;
    a->failure.times = verdict->task_end.failures;
    a->failure.code = verdict->task_end.code;
    snprintf(a->failure.text, sizeof(a->failure.text), "%.*s",
             end->extra ? (int)end->extra_size : 0,
             end->extra ? (const char *)end->extra : "");
}

static void task_ended(void *context, uint32_t stage, const struct trp_action *verdict,
                       const struct trp_end *end)
{
    struct trp_stage_run *a = context;
    uint32_t task = verdict->task_end.task;
    if (verdict->task_end.status != TRP_END_SUCCESS) {
        keep_failure(a, stage, verdict, end);
        return;
    }
    if (stage != a->told) /* a map output */
        return;
    if (a->parts) {
        keep_part(a, &a->parts[task], task, end);
    } else if (a->done) {
        uint64_t bit = UINT64_C(1) << (task % 64);
        if (!(a->done[task / 64] & bit))
            a->count += end->records_out;
        a->done[task / 64] |= bit;
    }
}

/* ---- running one ---- */

static int prepare(struct trp_stage_run *a)
{
    trp_context *ctx = a->context;
    int rc = trp_lineage_tell(a->dataset, &a->end, &a->told);
    if (rc < 0)
        return rc;
    uint32_t n = a->dataset->partitions;
    if (a->end.kind == TRP_DO_COUNT)
        a->done = calloc(((size_t)n + 63) / 64, sizeof(*a->done));
    else if (a->end.kind == TRP_DO_COLLECT || a->end.kind == TRP_DO_REDUCE ||
             a->end.kind == TRP_DO_SAMPLE)
        a->parts = calloc(n, sizeof(*a->parts));
    else
        return 0;
    if (a->done || a->parts)
        return 0;
    return trp_context_fail(ctx, TRP_ENOMEM, "out of memory for an action");
}

static int tell_failure(struct trp_stage_run *a, int rc, const trp_error *err)
{
    trp_context *ctx = a->context;
    char failed[48];
    trp_failed_text(a->failure.times, failed, sizeof(failed));
    if (rc == TRP_EFAILED && a->failure.there && a->failure.mistake)
        return trp_context_fail(
            ctx, rc, "stage %s: task %u %s a mistake in the program: %s",
            a->failure.stage, a->failure.task, failed, a->failure.text);
    if (rc == TRP_EFAILED && a->failure.there)
        return trp_context_fail(ctx, rc, "stage %s: task %u %s exit status %d%s%s",
                                a->failure.stage, a->failure.task, failed,
                                (int)a->failure.code, a->failure.text[0] ? ": " : "",
                                a->failure.text);
    return trp_context_fail(ctx, rc, "%s", err->text);
}

static int submit_and_wait(struct trp_stage_run *a)
{
    trp_context *ctx = a->context;
    struct trp_job_spec spec = {.is_dataset = true, .redo = true, .dataset = a->told};
    struct trp_work work = {.context = a,
                            .stage_message = stage_message,
                            .launch = launch,
                            .task_ended = task_ended};
    trp_job_id job;
    trp_error err = {0};
    ctx->busy = true;
    int rc;
    if (ctx->in_line) {
        rc =
            trp_inline_job(ctx->in_line, ctx->told[a->told].name, a->told, &work, &err);
    } else {
        rc = trp_driver_submit(ctx->driver, &spec, &work, &job, &err);
        if (rc == 0)
            rc = trp_driver_wait(ctx->driver, job, &err);
    }
    ctx->busy = false;
    if (rc < 0)
        return tell_failure(a, rc, &err);
    if (a->bad.code)
        return trp_context_fail_with(ctx, &a->bad);
    return 0;
}

void trp_stage_run_free(struct trp_stage_run *a)
{
    for (uint32_t i = 0; a->parts && i < a->dataset->partitions; i++)
        free(a->parts[i].data);
    free(a->parts);
    free(a->done);
}

int trp_action_note(trp_dataset *d, int rc)
{
    if (rc < 0)
        return trp_owe(d->context, &d->owed, rc);
    trp_make_good(&d->owed);
    return rc;
}

int trp_stage_run_end(struct trp_stage_run *a, trp_dataset *d,
                      const struct trp_chain_end *end)
{
    *a = (struct trp_stage_run){.context = d->context, .dataset = d, .end = *end};
    int rc = prepare(a);
    if (rc == 0)
        rc = submit_and_wait(a);
    if (rc < 0)
        trp_stage_run_free(a);
    return rc;
}

int trp_stage_run(struct trp_stage_run *a, trp_dataset *d, enum trp_end_kind kind,
                  const struct trp_step *step, const char *dir)
{
    struct trp_chain_end end = {.kind = kind, .dir = dir};
    if (step)
        end.step = *step;
    int rc = trp_stage_run_end(a, d, &end);
    return rc < 0 ? trp_action_note(d, rc) : rc;
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
