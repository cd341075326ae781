/*
 * How MPI's programs are started here: their arguments and their environment.
 *
 * Every process of ours is an MPI universe of its own (`mpirun -np 1`), unbound (two
 * mpiruns on a host would bind to the same core), blind to Slurm, with its session
 * files in a private folder whose path is short (they hold sockets). What another MPI
 * or Slurm has left in the environment would confuse it and goes.
 */
#ifndef TRP_CLUSTER_MPIRUN_H
#define TRP_CLUSTER_MPIRUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/error.h"
#include "os/argv.h"
#include "os/linked_mpi.h"

/* How long an mpirun may take to start its program, and what the program's log is told
 * when it has not: somebody holds it up. */
enum { TRP_MPIRUN_START_MS = 20000 };
#define TRP_MPIRUN_LATE "troupe: mpirun did not start the executor within 20 s\n"

/* Variable in which `troupe` tells the driver that folder. */
#define TRP_MPI_FOLDER "TROUPE_MPI_TMP"

/* `mpirun -np 1 … PROGRAM…` for execvp: strings and array malloc'ed, NULL when out of
 * memory; free with trp_argv_free. `ompi_server` is the URI of the server, or the
 * absolute path of the file with it; "" in a run over sockets: the program itself,
 * without mpirun. */
char **trp_mpirun_argv(const char *ompi_server, const char *const *program);

/* Names that an mpirun may have: Debian's for both MPIs, and MPICH's own; NULL at the
 * end. */
extern const char *const trp_mpirun_programs[];

/* The arguments that start `ranks` ranks of a gang, put before their program: those of the
 * mpirun of `mpi`, which their program is linked with, or of the first one in PATH when
 * that is not known. Malloc'ed like the above. TRP_ENEVER: there is none of that MPI,
 * with what there is. */
int trp_mpirun_gang_argv(enum trp_linked_mpi mpi, uint32_t ranks, char ***ret_argv,
                         trp_error *err);

/* Kills the program that process `pid` was started for by such arguments: the child of an
 * mpirun, or itself. */
void trp_mpirun_kill_program(pid_t pid, bool by_mpirun);

/* `environ` without OMPI_*, PMIX_*, PMI_*, SLURM_* but SLURM_CONF, and our own
 * TROUPE_CONTROL, TROUPE_DRIVER, TROUPE_RUN_ID, TROUPE_EXECUTOR and TROUPE_MPI_TMP,
 * plus `more`
 * ("K=V", a NULL at the end), plus what Open MPI needs: its folder (`folder`, may be
 * NULL), with which comes a quick hwloc (os/quick_hwloc.h), and, for root, the permission
 * to run. Freed like the above. */
char **trp_mpirun_environ(char *const *environ, const char *folder,
                          const char *const *more);

#endif
