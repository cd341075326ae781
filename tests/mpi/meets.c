/*
 * A plain MPI program, which drills build with the mpicc of their MPI. Each rank says
 * who it is, and the sum that all ranks came to together.
 *
 *     meets apart                        no rank talks to another
 *     meets exit STATUS | kill SIGNAL    the end of rank 1
 *     meets wait FILE                    all wait for a file
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("rank %d of %d", rank, size);
    if (argc != 2) {
        int mine = rank + 1;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        printf(", sum %d", sum);
    }
    putchar('\n');
    fflush(stdout);
    while (argc > 2 && strcmp(argv[1], "wait") == 0 && access(argv[2], F_OK) != 0)
        usleep(10000);
    if (argc > 2 && rank == 1 && strcmp(argv[1], "kill") == 0)
        kill(getpid(), atoi(argv[2]));
    if (argc > 2 && rank == 1 && strcmp(argv[1], "exit") == 0)
        _exit(atoi(argv[2]));
    return MPI_Finalize();
}
