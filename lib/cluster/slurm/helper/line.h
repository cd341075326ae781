/*
 * The protocol between the driver and troupe-slurm: lines of text.
 *
 *     driver → helper, a call: NUMBER VERB KEY=VALUE…
 *         7 job job=1234
 *     helper → driver, as many lines as there are; the last one is done or failed:
 *         7 allocation job=1234 uid=1000 live=1 …
 *         7 node job=1234 name=node1 cpus=4 …
 *         7 done rpcs=3
 *         7 failed code=2017 text=Invalid%20job%20id rpcs=1
 *
 * Calls are answered in the order in which they came, one at a time. Values have %XX
 * for what is not printable, for a space and for %. `rpcs` counts all RPCs so far.
 * Unknown keys are skipped, so that both sides may add some.
 *
 *     job job=N            `allocation` for the job, or for each component of a
 *                          heterogeneous one, `node` for each of their nodes
 *     states job=N         `ends job= ends=` for the job, or for each component, and
 *                          for each additional job; `state job= name= state=` (up,
 *                          mute, drain, down) for each node that they still have;
 *                          `over job= state= ended=` for an additional job that has ended
 *     mpi                  `mpi types=`: what srun --mpi= can be, "none pmi2 pmix"
 *     steps job=N          `step job= step= host=` for each node of each step that
 *                          Slurm lists
 *     racks                `host name= rack=` for each node that has a leaf switch
 *     end-step job= step=  kills a step's processes everywhere; or name=
 *     term-step job= name= sends SIGTERM to the tasks of the step of that name
 *     guard job= name=     from now on the steps of a job whose name begins so are
 *                          ended when the pipe closes without `bye`
 *     bye                  everything was given back
 *
 * Additional jobs; those that are got and not given back are ended when the pipe
 * closes:
 *
 *     when …               `when start=`: when a job of that kind would start
 *     allocate …           asks for a job now: the answer of `job`, or `failed`. Keys:
 *                          name comment folder tasks cpus memory (MiB of a CPU) gres
 *                          (of a task) node_gres licences constraint partition
 *                          account qos reservation time (minutes) exclusive exclude
 *                          (hosts), nodes and node_tasks (on each of them)
 *     queue … script= entry=
 *                          submits a batch job of that kind, whose environment has the
 *                          entry: `queued job=`
 *     end job=             the job is over, as completed
 *     cancel job=          the job is over, as cancelled
 *     shrink job= nodes= live=
 *                          the job keeps these nodes only; refused as long as a step
 *                          runs on another one, or, with live=0, anywhere in it
 *     take job= guarded=   an additional job that another troupe-slurm has got
 *     guarded job= yes=    a guard runs in the job, or not any more
 *     sweep run= folder= drivers= now=
 *                          additional jobs of a run in that folder whose comment names
 *                          one of these drivers' jobs, and that are not known, are
 *                          ended: at the end, and with now=1 at once
 *     jobs                 `additional job= state= reason= why= start=` for each of
 *                          them
 *     nodes                `partition name= time= …`, `shape cpus= … nodes=
 *                          partitions= oldest= since=`: what there is in the cluster,
 *                          whoever has it now; the node whose slurmd is the oldest
 *     conf                 `conf version= built= …`, `cgroup key= value=`, `licence
 *                          name= total=`: how slurmctld is configured
 *
 * A `failed` has `refusal`: 0 busy, 1 not now, 2 never, 3 slurmctld was not reached.
 */
#ifndef TRP_CLUSTER_SLURM_HELPER_LINE_H
#define TRP_CLUSTER_SLURM_HELPER_LINE_H

#include <stdint.h>
#include <stdio.h>

#include "core/base/error.h"

enum { TRP_SLURM_FIELDS = 24, TRP_SLURM_LINE_MAX = 1 << 20 };

struct trp_slurm_line {
    uint32_t number;
    const char *word;
    uint32_t nfields;
    struct {
        const char *key, *value;
    } fields[TRP_SLURM_FIELDS];
};

/* Takes a line without its LF apart, in place: the result points into `text`.
 * TRP_EPROTO: it is none of ours. */
int trp_slurm_line_parse(char *text, struct trp_slurm_line *ret, trp_error *err);
/* "" when there is no such key. */
const char *trp_slurm_line_text(const struct trp_slurm_line *line, const char *key);
/* 0 when there is no such key, or no number behind it. */
int64_t trp_slurm_line_number(const struct trp_slurm_line *line, const char *key);

/* A line is written piece by piece: begin, put…, end. */
void trp_slurm_line_begin(FILE *to, uint32_t number, const char *word);
void trp_slurm_line_put(FILE *to, const char *key, const char *value);
void trp_slurm_line_put_number(FILE *to, const char *key, int64_t value);
void trp_slurm_line_end(FILE *to);

#endif
