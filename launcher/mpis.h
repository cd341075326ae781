/*
 * Which MPIs are here, and what works with each: gangs need its mpirun, static runs the
 * module for it (comm/mpi.h), and messages of a run travel over it when it can join
 * separately started programs.
 */
#ifndef TRP_LAUNCHER_MPIS_H
#define TRP_LAUNCHER_MPIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

enum { TRP_MPIS_MAX = 8 };

struct trp_mpi_here {
    char name[64];       /* "Open MPI 4.1.4" */
    char launcher[1024]; /* its mpirun; "": it is not in PATH */
    bool module;         /* this Troupe has one for it */
    bool first;          /* `mpirun` in PATH is its own */
    bool joins;          /* it joins separately started programs here: it is the first,
                          * with its ompi-server, and there is a network */
};

/* Modules are loaded by other processes. Returns how many there are. */
uint32_t trp_mpis_find(struct trp_mpi_here ret[TRP_MPIS_MAX]);

/* What `program --version` says it is: "Open MPI 5.0.7", "MPICH 4.0.2"; "" when it says
 * neither. False: it cannot be started. */
bool trp_mpis_ask(const char *program, char *ret_name, size_t size);

/* Whether the first mpirun in PATH joins separately started programs here. TRP_ENEVER:
 * why not. */
int trp_mpis_join(trp_error *err);

/* What srun --mpi= can be, "none pmi2 pmix"; "" when there is no srun, or it does not
 * say. */
void trp_mpis_srun(char *ret_text, size_t size);

/* `troupe topo --mpi`, to stdout. */
void trp_mpis_print(bool json);

#endif
