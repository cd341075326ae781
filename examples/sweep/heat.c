/*
 * heat K GRID: how a square plate of GRID by GRID points cools whose upper edge is kept at
 * 100 degrees and whose other edges are kept at 0. In each step a point takes the part K of
 * the difference to the mean of its four neighbours. The ranks have a strip of rows each,
 * and exchange the rows at their edges. Prints K, GRID, the steps until no point changed
 * by more than 0.001 degrees, and the temperature in the middle.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRID_MAX = 4096, STEPS_MAX = 100000 };

struct plate {
    int n, rank, ranks;
    int first, rows; /* of this rank */
    double *now,
        *next; /* rows + 2 of n points: the first and the last are neighbours' */
};

static void exchange(const struct plate *p)
{
    int above = p->rank > 0 ? p->rank - 1 : MPI_PROC_NULL;
    int below = p->rank + 1 < p->ranks ? p->rank + 1 : MPI_PROC_NULL;
    double *last = p->now + (size_t)p->rows * (size_t)p->n;
    MPI_Sendrecv(p->now + p->n, p->n, MPI_DOUBLE, above, 0, last + p->n, p->n,
                 MPI_DOUBLE, below, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(last, p->n, MPI_DOUBLE, below, 1, p->now, p->n, MPI_DOUBLE, above, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The largest change of a point of this rank. */
static double step(struct plate *p, double k)
{
    double most = 0;
    for (int y = 1; y <= p->rows; y++) {
        int row = p->first + y - 1;
        for (int x = 1; x + 1 < p->n && row > 0 && row + 1 < p->n; x++) {
            size_t at = (size_t)y * (size_t)p->n + (size_t)x;
            double mean = (p->now[at - 1] + p->now[at + 1] + p->now[at - (size_t)p->n] +
                           p->now[at + (size_t)p->n]) /
                          4;
            double change = k * (mean - p->now[at]);
            p->next[at] = p->now[at] + change;
            most = fmax(most, fabs(change));
        }
    }
    double *swap = p->now;
    p->now = p->next;
    p->next = swap;
    return most;
}

static int cool(struct plate *p, double k)
{
    for (int steps = 1; steps < STEPS_MAX; steps++) {
        exchange(p);
        double mine = step(p, k), most;
        MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (most < 0.001)
            return steps;
    }
    return STEPS_MAX;
}

int main(int argc, char **argv)
{
    struct plate p = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &p.ranks);
    double k = argc == 3 ? strtod(argv[1], NULL) : 0;
    p.n = argc == 3 ? atoi(argv[2]) : 0;
    if (!(k > 0 && k <= 1) || p.n < 3 || p.n > GRID_MAX || p.ranks > p.n) {
        if (p.rank == 0)
            fprintf(stderr,
                    "usage: heat K GRID; K above 0 and at most 1, GRID from 3 to "
                    "4096 and no less than there are ranks\n");
        MPI_Finalize();
        return 2;
    }
    p.first = p.rank * p.n / p.ranks;
    p.rows = (p.rank + 1) * p.n / p.ranks - p.first;
    size_t points = (size_t)(p.rows + 2) * (size_t)p.n;
    p.now = calloc(points, sizeof *p.now);
    p.next = calloc(points, sizeof *p.next);
    if (!p.now || !p.next)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int x = 0; x < p.n && p.rank == 0; x++)
        p.now[p.n + x] = p.next[p.n + x] = 100;
    int steps = cool(&p, k), middle = p.n / 2 - p.first;
    double here = middle >= 0 && middle < p.rows
                      ? p.now[(size_t)(middle + 1) * (size_t)p.n + (size_t)(p.n / 2)]
                      : 0;
    double degrees;
    MPI_Reduce(&here, &degrees, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (p.rank == 0)
        printf("%s %d %d %.2f\n", argv[1], p.n, steps, degrees);
    free(p.now);
    free(p.next);
    MPI_Finalize();
    return 0;
}
