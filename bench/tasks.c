/*
 * No-op function tasks through driver and executor, as a program of a user's would have
 * them; started by `troupe run -- tasks WHAT…` with one executor, or as two ranks. WHAT is
 *
 *     flood N          one action of N tasks (per_second), and what the driver's
 *                      process took at its most (driver_kib)
 *     single N         N actions of one task, one after the other (p50_us, p99_us)
 *     cold N           the same, each after 1 s of silence (p50_us)
 *     stages N TASKS   N actions of TASKS tasks each, one after the other (stage_us)
 *     crowd N          one action of N tasks that wait for each other: what the
 *                      driver's process took at its most, less what it took before
 *                      (driver_kib)
 *
 * But for a crowd, a first action that is not measured brings the executor up.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "troupe.h"

enum { MOST = 100000000, WARM = 200 };

TRP_FUNCTION(nothing);
int nothing(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    (void)in;
    (void)out;
    (void)arg;
    return 0;
}

/* Runs `ntasks` tasks; how long that took, in ns. */
static int64_t act(trp_context *ctx, uint32_t ntasks)
{
    int64_t begin = trp_bench_now();
    if (trp_foreach(trp_range(ctx, 0, ntasks, ntasks), nothing, NULL, 0) < 0) {
        fprintf(stderr, "tasks: %s\n", trp_error_text(ctx));
        exit(trp_finalize(ctx));
    }
    return trp_bench_now() - begin;
}

static void flood(trp_context *ctx, uint32_t n)
{
    trp_bench_print("per_second", n * 1e9 / (double)act(ctx, n));
    trp_bench_print("driver_kib", (double)trp_bench_peak_kib());
}

static double *act_often(trp_context *ctx, uint32_t n, uint32_t ntasks,
                         int64_t silence_ns)
{
    double *us = trp_bench_alloc(n, sizeof *us);
    for (uint32_t i = 0; i < n; i++) {
        if (silence_ns)
            trp_bench_sleep(silence_ns);
        us[i] = (double)act(ctx, ntasks) / 1e3;
    }
    return us;
}

static void single(trp_context *ctx, uint32_t n)
{
    double *us = act_often(ctx, n, 1, 0);
    trp_bench_print("p50_us", trp_bench_quantile(us, n, 0.5));
    trp_bench_print("p99_us", trp_bench_quantile(us, n, 0.99));
    free(us);
}

static void cold(trp_context *ctx, uint32_t n)
{
    double *us = act_often(ctx, n, 1, 1000000000);
    trp_bench_print("p50_us", trp_bench_quantile(us, n, 0.5));
    free(us);
}

static void stages(trp_context *ctx, uint32_t n, uint32_t ntasks)
{
    int64_t begin = trp_bench_now();
    for (uint32_t i = 0; i < n; i++)
        act(ctx, ntasks);
    trp_bench_print("stage_us", (double)(trp_bench_now() - begin) / 1e3 / n);
}

static int crowd(trp_context *ctx, uint32_t n)
{
    double before = (double)trp_bench_peak_kib();
    int rc = trp_foreach(trp_barrier(trp_range(ctx, 0, n, n)), nothing, NULL, 0);
    if (rc < 0)
        fprintf(stderr, "tasks: %s\n", trp_error_text(ctx));
    else
        trp_bench_print("driver_kib", (double)trp_bench_peak_kib() - before);
    return trp_finalize(ctx);
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    const char *what = argc > 2 ? argv[1] : "";
    if (argc == 3 && strcmp(what, "crowd") == 0)
        return crowd(ctx, trp_bench_number("N", argv[2], MOST));
    bool is_stages = argc == 4 && strcmp(what, "stages") == 0;
    if (!is_stages &&
        !(argc == 3 && (strcmp(what, "flood") == 0 || strcmp(what, "single") == 0 ||
                        strcmp(what, "cold") == 0))) {
        fprintf(stderr, "usage: troupe run -- tasks flood|single|cold|crowd N\n"
                        "       troupe run -- tasks stages N TASKS\n");
        trp_finalize(ctx);
        return 2;
    }
    uint32_t n = trp_bench_number("N", argv[2], MOST);
    uint32_t ntasks = is_stages ? trp_bench_number("TASKS", argv[3], MOST) : 1;
    for (uint32_t i = 0; i < WARM; i++)
        act(ctx, ntasks);
    if (is_stages)
        stages(ctx, n, ntasks);
    else if (strcmp(what, "flood") == 0)
        flood(ctx, n);
    else if (strcmp(what, "single") == 0)
        single(ctx, n);
    else
        cold(ctx, n);
    return trp_finalize(ctx);
}
