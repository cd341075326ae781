/*
 * Which MPI a program is linked with, as its file says (ELF, DT_NEEDED). What starts
 * the ranks of a program must be of the same MPI, or each finds itself alone.
 */
#ifndef TRP_OS_LINKED_MPI_H
#define TRP_OS_LINKED_MPI_H

enum trp_linked_mpi {
    TRP_LINKED_NONE, /* none, none that is known, a script, or it cannot be read */
    TRP_LINKED_OPENMPI,
    TRP_LINKED_MPICH, /* or one with its binary interface */
};

enum trp_linked_mpi trp_linked_mpi(const char *path);

#endif
