/*
 * What srun says of a step that was not started.
 */
#ifndef TRP_EXECUTOR_SRUN_REFUSAL_H
#define TRP_EXECUTOR_SRUN_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>

/* Of two that are known the greater one counts. */
enum trp_srun_refusal {
    TRP_SRUN_UNKNOWN,   /* what nobody knows, or none */
    TRP_SRUN_NOT_NOW,   /* there is no room, or slurmctld does not answer, or not yet */
    TRP_SRUN_TOO_OFTEN, /* Slurm was called too often */
    TRP_SRUN_NEVER,     /* nor the next time */
};

enum trp_srun_refusal trp_srun_refusal(const char *said);
/* Whether srun has not reached some of a step's nodes: "Task launch for StepId=7.0
 * failed on node n1,n2: Communication connection failure" into `text`, with the reason
 * of the first. Ranks on other nodes may have begun. */
bool trp_srun_unreached(const char *said, char *text, size_t size);
/* srun's first error without its name, or the first line of anything else. */
void trp_srun_complaint(const char *said, char *text, size_t size);

#endif
