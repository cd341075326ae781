/*
 * What failed, and what of it still counts when the program ends.
 *
 * The text is that of the last failed call. The exit status is that of the first
 * failure which was not made good: each subject (a profile, a dataset whose action
 * failed, all other calls together) keeps its first one, with its number in the order
 * of all. So nothing is allocated to keep an error, and a program that tries the same
 * thing for ever keeps one.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"

static trp_context *current;

trp_context *trp_context_current(void)
{
    return current;
}

void trp_context_set_current(trp_context *ctx)
{
    current = ctx;
}

/* ---- the text ---- */

static int keep_error(trp_context *ctx, int code, const char *fmt, va_list ap)
{
    trp_error e = {.code = code};
    vsnprintf(e.text, sizeof(e.text), fmt, ap);
    return trp_context_fail_with(ctx, &e);
}

int trp_context_fail(trp_context *ctx, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    keep_error(ctx, code, fmt, ap);
    va_end(ap);
    return code;
}

int trp_context_fail_with(trp_context *ctx, const trp_error *err)
{
    if (ctx)
        ctx->error = *err;
    return err->code;
}

int trp_dataset_fail(trp_context *ctx, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    keep_error(ctx, code, fmt, ap);
    va_end(ap);
    return trp_owe(ctx, NULL, code);
}

trp_dataset *trp_dataset_refuse(trp_context *ctx, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    keep_error(ctx, code, fmt, ap);
    va_end(ap);
    trp_owe(ctx, NULL, code);
    return NULL;
}

const char *trp_error_text(const trp_context *ctx)
{
    return ctx ? ctx->error.text : "";
}

/* ---- what counts ---- */

int trp_owe(trp_context *ctx, struct trp_owed *owed, int rc)
{
    if (!ctx)
        return rc;
    if (!owed)
        owed = &ctx->owed;
    if (!owed->status) {
        owed->status = trp_error_exit_status(rc);
        owed->since = ++ctx->failures;
    }
    return rc;
}

void trp_make_good(struct trp_owed *owed)
{
    *owed = (struct trp_owed){0};
}

void trp_error_clear(trp_context *ctx)
{
    if (!ctx)
        return;
    ctx->error = (trp_error){0};
    trp_make_good(&ctx->owed);
    for (trp_profile *p = ctx->profile_handles; p; p = p->next)
        trp_make_good(&p->owed);
    for (trp_dataset *d = ctx->datasets; d; d = d->next)
        trp_make_good(&d->owed);
}

static void take_earlier(const struct trp_owed **first, const struct trp_owed *owed)
{
    if (owed->status && (!(*first)->status || owed->since < (*first)->since))
        *first = owed;
}

int trp_context_stopped(const trp_context *ctx)
{
    return ctx->driver ? trp_driver_stopped(ctx->driver) : 0;
}

void trp_context_enter(trp_context *ctx)
{
    if (ctx->driver)
        trp_driver_enter(ctx->driver);
}

void trp_context_leave(trp_context *ctx)
{
    if (ctx->driver)
        trp_driver_leave(ctx->driver);
}

const char *trp_context_shared(const trp_context *ctx)
{
    return ctx->driver ? trp_driver_shared(ctx->driver)
                       : trp_inline_shared(ctx->in_line);
}

int trp_context_status(const trp_context *ctx)
{
    int stopped = trp_context_stopped(ctx);
    if (stopped)
        return trp_error_exit_status(stopped);
    const struct trp_owed *first = &ctx->owed;
    for (const trp_profile *p = ctx->profile_handles; p; p = p->next)
        take_earlier(&first, &p->owed);
    for (const trp_dataset *d = ctx->datasets; d; d = d->next)
        take_earlier(&first, &d->owed);
    return first->status;
}
