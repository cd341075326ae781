/*
 * What bare MPI does between two ranks: `mpirun -np 2 pair WHAT N`. Rank 0 measures, rank 1
 * answers. WHAT is
 *
 *     tasks N      N tasks: batches of 256 descriptors of 16 bytes out, an end of 24
 *                  bytes a task back, 8 batches in flight; the server keeps a state a
 *                  task, as any scheduler must (prints per_second)
 *     pings N      a round trip of 16 bytes, N times (p50_us, p99_us)
 *
 * Both sides spin in MPI, which is the fastest that they can do.
 */
#include <inttypes.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "bench.h"

enum { TAG_TASKS = 1, TAG_ENDS, TAG_PING, TAG_END };

/* ---- the server ------------------------------------------------------------------ */

static void send_batch(MPI_Comm peer, struct state *states, uint32_t from, uint32_t n,
                       struct descriptor *buf, MPI_Request *request)
{
    for (uint32_t i = 0; i < n; i++) {
        states[from + i].running = true;
        buf[i] = (struct descriptor){.task = from + i,
                                     .attempt = states[from + i].attempt,
                                     .argument = from + i};
    }
    MPI_Isend(buf, (int)(n * sizeof *buf), MPI_BYTE, 1, TAG_TASKS, peer, request);
}

static uint32_t take_ends(MPI_Comm peer, struct state *states, struct end *ends)
{
    MPI_Status status;
    int size;
    MPI_Recv(ends, (int)(BATCH * sizeof *ends), MPI_BYTE, 1, TAG_ENDS, peer, &status);
    MPI_Get_count(&status, MPI_BYTE, &size);
    uint32_t n = (uint32_t)size / (uint32_t)sizeof *ends;
    for (uint32_t i = 0; i < n; i++) {
        struct state *s = &states[ends[i].task];
        if (!s->running || s->attempt != ends[i].attempt) {
            fprintf(stderr, "pair: an end of a task that does not run\n");
            exit(4);
        }
        s->running = false;
        s->done = ends[i].status == 0;
    }
    return n;
}

static void run_tasks(MPI_Comm peer, struct state *states, uint32_t ntasks)
{
    static struct descriptor out[IN_FLIGHT][BATCH];
    static struct end in[BATCH];
    MPI_Request sent[IN_FLIGHT];
    uint32_t next = 0, ended = 0, batch = 0;
    for (uint32_t i = 0; i < IN_FLIGHT; i++)
        sent[i] = MPI_REQUEST_NULL;
    while (ended < ntasks) {
        while (next < ntasks && next - ended <= (IN_FLIGHT - 1) * BATCH) {
            uint32_t n = ntasks - next < BATCH ? ntasks - next : BATCH;
            uint32_t at = batch++ % IN_FLIGHT;
            MPI_Wait(&sent[at], MPI_STATUS_IGNORE);
            send_batch(peer, states, next, n, out[at], &sent[at]);
            next += n;
        }
        ended += take_ends(peer, states, in);
    }
    MPI_Waitall(IN_FLIGHT, sent, MPI_STATUSES_IGNORE);
}

static void serve_tasks(MPI_Comm peer, uint32_t ntasks)
{
    struct state *states = trp_bench_alloc(ntasks, sizeof *states);
    run_tasks(peer, states, ntasks < 10 * BATCH ? ntasks : 10 * BATCH); /* warm */
    memset(states, 0, ntasks * sizeof *states);
    int64_t begin = trp_bench_now();
    run_tasks(peer, states, ntasks);
    double seconds = (double)(trp_bench_now() - begin) / 1e9;
    trp_bench_print("per_second", ntasks / seconds);
    free(states);
}

static void serve_pings(MPI_Comm peer, uint32_t n)
{
    double *us = trp_bench_alloc(n, sizeof *us);
    char buf[PING] = {0};
    for (uint32_t i = 0; i < n + WARM; i++) {
        int64_t begin = trp_bench_now();
        MPI_Send(buf, PING, MPI_BYTE, 1, TAG_PING, peer);
        MPI_Recv(buf, PING, MPI_BYTE, 1, TAG_PING, peer, MPI_STATUS_IGNORE);
        if (i >= WARM)
            us[i - WARM] = (double)(trp_bench_now() - begin) / 1e3;
    }
    trp_bench_print("p50_us", trp_bench_quantile(us, n, 0.5));
    trp_bench_print("p99_us", trp_bench_quantile(us, n, 0.99));
    free(us);
}

/* ---- the other side -------------------------------------------------------------- */

static void answer_tasks(MPI_Comm peer, int size)
{
    static struct descriptor in[BATCH];
    static struct end out[BATCH];
    MPI_Recv(in, size, MPI_BYTE, 0, TAG_TASKS, peer, MPI_STATUS_IGNORE);
    uint32_t n = (uint32_t)size / (uint32_t)sizeof *in;
    for (uint32_t i = 0; i < n; i++)
        out[i] = (struct end){.task = in[i].task, .attempt = in[i].attempt};
    MPI_Send(out, (int)(n * sizeof *out), MPI_BYTE, 0, TAG_ENDS, peer);
}

static void answer(MPI_Comm peer)
{
    char ping[PING];
    MPI_Status status;
    int size;
    for (;;) {
        MPI_Probe(0, MPI_ANY_TAG, peer, &status);
        MPI_Get_count(&status, MPI_BYTE, &size);
        if (status.MPI_TAG == TAG_TASKS) {
            answer_tasks(peer, size);
        } else if (status.MPI_TAG == TAG_PING) {
            MPI_Recv(ping, PING, MPI_BYTE, 0, TAG_PING, peer, MPI_STATUS_IGNORE);
            MPI_Send(ping, PING, MPI_BYTE, 0, TAG_PING, peer);
        } else {
            MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG_END, peer, MPI_STATUS_IGNORE);
            return;
        }
    }
}

int main(int argc, char **argv)
{
    int rank, size;
    bool tasks = argc == 3 && strcmp(argv[1], "tasks") == 0;
    if (!tasks && !(argc == 3 && strcmp(argv[1], "pings") == 0)) {
        fprintf(stderr, "usage: mpirun -np 2 pair tasks|pings N\n");
        return 2;
    }
    uint32_t n = trp_bench_number("N", argv[2], 100000000);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) {
        fprintf(stderr, "pair: %d ranks in place of 2\n", size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (rank == 1) {
        answer(MPI_COMM_WORLD);
    } else {
        (tasks ? serve_tasks : serve_pings)(MPI_COMM_WORLD, n);
        MPI_Send(NULL, 0, MPI_BYTE, 1, TAG_END, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
