/*
 * The least that an executor could be: an MPI program that says when it is up.
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    puts("up");
    fflush(stdout);
    return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
