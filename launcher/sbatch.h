/*
 * Running sbatch with a script of ours.
 */
#ifndef TRP_LAUNCHER_SBATCH_H
#define TRP_LAUNCHER_SBATCH_H

#include <stddef.h>

#include "core/base/error.h"

/* Called with the job's id ("12") as soon as sbatch told it. */
typedef void (*trp_sbatch_submitted)(void *context, const char *job);

/* Runs `sbatch ARGUMENTS…` with `script` on its stdin; what it prints is passed on, on
 * stdout and stderr, but not the reasons of a refusal: those are in `err`, in Slurm's
 * words. Returns sbatch's exit status when the job was taken (with --wait, the job's);
 * TRP_EINVAL: sbatch does not know such an option; TRP_ENEVER: Slurm will never take
 * such a job; TRP_ESYSTEM: no sbatch, no answer. */
int trp_sbatch(char *const *arguments, size_t narguments, const char *script,
               size_t size, trp_sbatch_submitted submitted, void *context,
               trp_error *err);

#endif
