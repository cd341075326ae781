/*
 * How a program begins and ends.
 *
 * The environment says what this process is, in this order: TROUPE_EXECUTOR with a
 * shape in it ("id=3;…"; a task's own TROUPE_EXECUTOR is a plain number): an elastic
 * executor, which never leaves trp_init; TROUPE_DRIVER: the driver of a run that
 * `troupe run` prepared; one of several MPI ranks: a static run, whose rank 0 returns.
 * TROUPE_INLINE: no executors at all (driver/inline.h).
 *
 * End. trp_finalize ends the run first (executors, event log, summary) and then frees
 * jobs, rows, datasets, profiles and the context, in this order; nothing of the driver
 * borrows them any more. A program that exits without it is caught by on_exit, which
 * also knows the status; a forked child of the program, and an exit from within an
 * action (the loop is running below us, the process's end closes its sockets and that
 * ends the executors), are left alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "api/broadcast.h"
#include "api/job.h"

static void at_exit(int status, void *unused)
{
    (void)unused;
    trp_context *ctx = trp_context_current();
    if (!ctx)
        trp_driver_exits(status); /* what main returned after trp_finalize */
    if (!ctx || ctx->owner != getpid() || ctx->busy)
        return;
    trp_jobs_note(ctx);
    int owed = trp_context_status(ctx);
    trp_context_set_current(NULL);
    fflush(stdout);
    if (ctx->in_line)
        trp_inline_end(ctx->in_line);
    else
        trp_driver_end(ctx->driver, owed ? owed : status, false);
}

/* How many MPI ranks were started together with this process, as its starter says. */
static int ranks_started(void)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                        "SLURM_STEP_NUM_TASKS"};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        const char *text = getenv(sizes[i]);
        /* Every process of a Slurm step has the third; only ranks have PMIx. */
        if (!text || (i == 2 && !getenv("PMIX_RANK")))
            continue;
        return atoi(text);
    }
    return 0;
}

static int refuse(const trp_error *err)
{
    fprintf(stderr, "troupe: %s\n", err->text);
    return err->code;
}

/* Makes the driver that this process is to be. */
static int open_driver(int argc, char **argv, trp_context *ctx, trp_error *err)
{
    const char *run_dir = getenv("TROUPE_DRIVER");
    if (run_dir && *run_dir) {
        char *copy = strdup(run_dir);
        if (!copy)
            return trp_error_set(err, TRP_ENOMEM, "out of memory");
        unsetenv("TROUPE_DRIVER"); /* not for what the program starts */
        int rc = trp_driver_open(copy, &ctx->driver, &ctx->profiles, err);
        free(copy);
        return rc;
    }
    int started = ranks_started();
    if (started > 1)
        return trp_driver_open_static(argc > 0 ? argv[0] : "app", started, &trp_runner,
                                      &ctx->driver, &ctx->profiles, err);
    if (trp_inline_wanted())
        return trp_inline_open(&trp_runner, &ctx->in_line, &ctx->profiles, err);
    return trp_error_set(
        err, TRP_EINVAL,
        "%s needs executors; start it by `troupe run -- %s` or "
        "`mpirun -n N %s` (N at least 2), or without any by `TROUPE_INLINE=1 %s`",
        program_invocation_short_name, program_invocation_name, program_invocation_name,
        program_invocation_name);
}

int trp_init(int *argc, char ***argv, trp_context **ret_ctx)
{
    static char *no_arguments[] = {NULL};
    int n = argc && argv ? *argc : 0;
    char **words = argc && argv ? *argv : no_arguments;
    trp_error err;
    if (!ret_ctx || trp_context_current()) {
        trp_error_set(&err, ret_ctx ? TRP_ESTATE : TRP_EINVAL, "trp_init: %s",
                      ret_ctx ? "there is a context already"
                              : "nowhere to put the context");
        return refuse(&err);
    }
    *ret_ctx = NULL;
    if (trp_registry_problem()) {
        trp_error_set(&err, TRP_EINVAL, "%s", trp_registry_problem());
        return refuse(&err);
    }
    const char *shape = getenv("TROUPE_EXECUTOR");
    if (shape && strchr(shape, '='))
        exit(trp_executor_main(&n, &words, &trp_runner));

    trp_context *ctx = calloc(1, sizeof(*ctx));
    if (!ctx) {
        trp_error_set(&err, TRP_ENOMEM, "out of memory");
        return refuse(&err);
    }
    if (open_driver(n, words, ctx, &err) < 0) {
        free(ctx);
        return refuse(&err);
    }
    ctx->owner = getpid();
    trp_context_set_current(ctx);
    on_exit(at_exit, NULL);
    *ret_ctx = ctx;
    return 0;
}

int trp_finalize(trp_context *ctx)
{
    if (!ctx)
        return trp_error_exit_status(TRP_EINVAL);
    trp_context_set_current(NULL);
    fflush(stdout); /* what the program printed stands before the summary */
    trp_jobs_note(ctx);
    int status = trp_context_status(ctx);
    ctx->ended = true;
    if (ctx->driver)
        status = trp_driver_end(ctx->driver, status, false);
    ctx->driver = NULL;
    while (ctx->jobs)
        trp_job_free(ctx->jobs);
    trp_inline_end(ctx->in_line);
    while (ctx->rows)
        trp_rows_free(ctx->rows);
    trp_lineage_free(ctx);
    trp_datasets_free(ctx);
    while (ctx->profile_handles) {
        trp_profile *p = ctx->profile_handles;
        ctx->profile_handles = p->next;
        free(p);
    }
    trp_broadcasts_free(ctx);
    trp_profiles_free(ctx->profiles);
    trp_buf_free(&ctx->body);
    free(ctx->nodes);
    free(ctx);
    return status;
}
