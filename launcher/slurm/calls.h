/*
 * The calls that troupe-slurm makes to Slurm: one function a verb of the protocol
 * (cluster/slurm/helper/line.h). Each blocks for as long as libslurm does, prints what it
 * found as lines, and returns 0 or Slurm's error number.
 *
 * One thread makes all of them.
 */
#ifndef TRP_LAUNCHER_SLURM_CALLS_H
#define TRP_LAUNCHER_SLURM_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cluster/slurm/helper/libslurm.h"
#include "cluster/slurm/helper/line.h"

/* RPCs made so far. */
extern uint64_t trp_slurm_rpcs;

/* slurm.conf, which does not change under a run, and the nodes: what is told of them
 * hardly ever does, so that they are kept for a minute, and then what changed is asked
 * for. NULL: errno says why. */
struct trp_slurm_facts {
    slurm_conf_t *conf;
    node_info_msg_t *nodes;
};
const struct trp_slurm_facts *trp_slurm_facts_load(void);

/* `allocation` and `node` lines of a job and of its other components. */
int trp_slurm_call_job(FILE *to, uint32_t number, uint32_t job);
/* `host` lines: the leaf switch of each node; none without a topology plugin. Of a host
 * that is in several topologies the last one counts, which is that of `partition`. */
int trp_slurm_call_racks(FILE *to, uint32_t number, const char *partition);
/* An `mpi` line: what srun --mpi= can be; no RPC. */
int trp_slurm_call_mpi(FILE *to, uint32_t number);
/* `ends` and `state` lines: until when the job, or each of its components, and each
 * additional job may run, and what became of their nodes; `over`: an additional job is.
 */
int trp_slurm_call_states(FILE *to, uint32_t number, uint32_t job);
/* `step` lines: the steps that a job has, but for its batch script and the like. */
int trp_slurm_call_steps(FILE *to, uint32_t number, uint32_t job);
/* Kills the processes of a step. One that is over already is no error. */
int trp_slurm_call_end_step(uint32_t job, uint32_t step);
/* EBUSY: a job has steps whose name begins with `prefix`. */
int trp_slurm_call_find_steps(uint32_t job, const char *prefix);
/* Kills those. */
int trp_slurm_call_end_steps(uint32_t job, const char *prefix);
/* The same for the step of that name. */
int trp_slurm_call_end_named(uint32_t job, const char *name);
/* Sends SIGTERM to the tasks of the step of that name. */
int trp_slurm_call_term_step(uint32_t job, const char *name);

/* What a refusal means for who asked. */
enum trp_slurm_refusal {
    TRP_SLURM_BUSY,  /* not now, or not so many */
    TRP_SLURM_WAIT,  /* not now for another reason, which may pass */
    TRP_SLURM_NEVER, /* wrong as it is */
    TRP_SLURM_LOST,  /* slurmctld was not reached, or its answer is lost */
};
enum trp_slurm_refusal trp_slurm_refusal_of(int code);

/* ---- additional.c: additional jobs ---- */

/* Asks for a job that is granted at once: the lines of trp_slurm_call_job. */
int trp_slurm_call_allocate(FILE *to, const struct trp_slurm_line *line);
/* When would such a job start? `when start=`. */
int trp_slurm_call_when(FILE *to, const struct trp_slurm_line *line);
/* Queues a batch job: `queued job=`. */
int trp_slurm_call_queue(FILE *to, const struct trp_slurm_line *line);
/* `additional` lines: the state of all jobs of this run. One RPC. */
int trp_slurm_call_jobs(FILE *to, uint32_t number);
/* Cancels a job; one that is over is no error. */
int trp_slurm_call_end(uint32_t job);
/* Ends a job as completed. */
int trp_slurm_call_complete(uint32_t job);
/* Gives all nodes of a job back but `nodes`. EBUSY: a step runs on one of them; without
 * `live`: any step runs in the job. */
int trp_slurm_call_shrink(uint32_t job, const char *nodes, bool live);
/* A guard of its own is in a job, or not any more. */
int trp_slurm_call_guarded(uint32_t job, bool yes);
/* A job that another process has got, to be ended when the pipe closes. */
int trp_slurm_call_take(uint32_t job, bool guarded);
/* Remembers which jobs are this run's, and, with `now=1`, ends those that are left of
 * earlier drivers. */
int trp_slurm_call_sweep(const struct trp_slurm_line *line);
/* Nothing more will be asked for: what is left of this run's is looked for once more,
 * where any was asked for, or looked for in vain. */
void trp_slurm_sweep_at_end(void);
/* Whether it is one that was got and not given back. */
bool trp_slurm_additional_is_held(uint32_t job);
/* Whether there may be jobs that were not given back; ends them: 0 or Slurm's error
 * number. */
bool trp_slurm_additional_are_left(void);
/* … and all of those, as far as they are known, have guards of their own. */
bool trp_slurm_additional_are_guarded(void);
int trp_slurm_additional_end_all(void);

/* ---- nodes.c ---- */

/* `partition` and `shape` lines: which nodes there are, whoever has them now. */
int trp_slurm_call_nodes(FILE *to, uint32_t number);

/* ---- conf.c ---- */

/* `conf`, `cgroup` and `licence` lines: what slurmctld is set to. */
int trp_slurm_call_conf(FILE *to, uint32_t number);

/* ---- scontrol.c ---- */

/* What a command prints, malloc'ed; NULL: nothing. */
char *trp_slurm_printed(const char *command);
/* The same of `scontrol ARGUMENTS`, which need no quotes. */
char *trp_slurm_scontrol(const char *arguments);
/* The value behind " KEY=" in a line of that, up to a space; malloc'ed, NULL: not
 * there. */
char *trp_slurm_value(const char *line, const char *key);

/* ---- job_calls.c ---- */

/* A `additional` line: state, reason and expected start of a job. */
void trp_slurm_put_additional(FILE *to, uint32_t number, slurm_job_info_t *job);
const char *trp_slurm_state_word(uint32_t state);
/* Job `id`, or a component of it. The last job of an array has the array's number, for
 * which Slurm tells of the other jobs as well. */
bool trp_slurm_is_of(const slurm_job_info_t *job, uint32_t id);
/* CPUs are handed out a core at a time at least. */
bool trp_slurm_cores_are_whole(const slurm_conf_t *conf);

#endif
