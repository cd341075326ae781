/*
 * Whole families of processes, found in /proc: those of a session, those below a
 * process. Ending a family is a loop: signal all that are found until none is left,
 * since they may start others meanwhile.
 */
#ifndef TRP_OS_PROCESSES_H
#define TRP_OS_PROCESSES_H

#include <stdint.h>
#include <sys/types.h>

/* Sends `signal` (0: only counts) to every process of the session that is no zombie;
 * returns how many. */
uint32_t trp_session_signal(pid_t session, int signal);

/* All processes as they were at one moment. A pass over /proc takes some microseconds a
 * process: who asks for many sessions asks one of these. */
typedef struct trp_processes trp_processes;
trp_processes *trp_processes_take(void); /* NULL: out of memory */
void trp_processes_free(trp_processes *s);
/* How many of the session there were, zombies left out. */
uint32_t trp_processes_of_session(const trp_processes *s, pid_t session);

/* As trp_session_signal, for the children of a process … */
uint32_t trp_children_signal(pid_t parent, int signal);

/* … and for all that descends from it, but what descends from one of `spare`. */
uint32_t trp_descendants_signal(pid_t ancestor, const pid_t *spare, uint32_t nspare,
                                int signal);

/* One that descends from a process and runs `program` (absolute path); 0: there is
 * none.
 */
pid_t trp_descendants_find(pid_t ancestor, const char *program);

/* The same for what was started by the commands of an executor of the run
 * in `run_dir`, or is one of them, as far as its environment still says so. */
uint32_t trp_commands_signal(const char *run_dir, uint32_t executor, int signal);

/* The children of this process. Returns how many there are; fills at most `cap`. */
uint32_t trp_children_list(pid_t *ret, uint32_t cap);

#endif
