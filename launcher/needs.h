/*
 * What a run needs of the machine it begins on, looked at before anything is made: what
 * is too little shows otherwise as a program of Open MPI's that dies without a word.
 */
#ifndef TRP_LAUNCHER_NEEDS_H
#define TRP_LAUNCHER_NEEDS_H

#include "core/base/error.h"

/* The limits of this process (ulimit) and the programs of Open MPI. TRP_ESYSTEM: which
 * of them will not do, and what is needed. */
int trp_needs_check(trp_error *err);

#endif
