/*
 * Every option, once. Alphabetic by key (a test holds it), so that the man page and
 * `troupe config` list them as they stand here. What the engine and the profiles take
 * of them, its defaults and its fields in a trace follow from it. Defaults are Spark's
 * but where a reason to differ is written in docs/decisions.
 */
#include "conf/options.h"

#include <stddef.h>
#include <string.h>

/* The member that has the option's value; when that is not set 0, or what _OR says. */
#define AT(taker, s, m, unset)                                                         \
    {                                                                                  \
        taker, (uint32_t)offsetof(struct s, m), (uint32_t)sizeof(((struct s *)0)->m),  \
            unset                                                                      \
    }
#define ENGINE_OR(m, unset) AT(TRP_TAKER_ENGINE, trp_engine_config, m, unset)
#define ENGINE(m) ENGINE_OR(m, 0)
#define PROFILE_OR(m, unset) AT(TRP_TAKER_PROFILES, trp_profile_defaults, m, unset)
#define PROFILE(m) PROFILE_OR(m, 0)
#define OTHER                                                                          \
    {                                                                                  \
        TRP_TAKER_OTHER, 0, 0, 0                                                       \
    } /* read where it is used */

#define OFF TRP_OPTION_BOOL, "false", NULL, NULL, NULL
#define ON TRP_OPTION_BOOL, "true", NULL, NULL, NULL

/* clang-format off */
const struct trp_option trp_option_table[] = {
    {"admission.munge", TRP_OPTION_CHOICE, "auto", NULL, NULL, "auto|on|off",
     "driver and executors prove to each other by MUNGE that they are the same user's, "
     "besides knowing the run's secret: where MUNGE answers the driver, always, never",
     OTHER},
    {"alloc.grow", TRP_OPTION_CHOICE, "need", NULL, NULL, "need|ramp",
     "executors are asked for at once as needed, or by 1, 2, 4 and so on while tasks "
     "wait", ENGINE(grow_ramp)},
    {"alloc.look_ahead", TRP_OPTION_TIME, "auto", "0", NULL, "auto|off",
     "further executors of a stage are asked for before it is ready: as long before as "
     "they are expected to wait for, never, or so long before", ENGINE(look_ahead_ns)},
    {"alloc.max_*", TRP_OPTION_INT, "", "1", "1000000", NULL,
     "alloc.max_R: units of the resource R in all executors together; not set: no "
     "limit", OTHER},
    {"alloc.max_cores", TRP_OPTION_INT, "", "1", "1000000000", NULL,
     "most cores in all executors together; not set: no limit", ENGINE(caps.cores)},
    {"alloc.max_executors", TRP_OPTION_INT, "", "1", "1000000", NULL,
     "most executors at once, over all profiles; not set: no limit",
     ENGINE_OR(alloc_max_executors, UINT32_MAX)},
    {"alloc.max_memory", TRP_OPTION_MEMORY, "", "1m", NULL, NULL,
     "most memory of all executors together; not set: no limit",
     ENGINE(caps.memory_mib)},
    {"alloc.placement", TRP_OPTION_CHOICE, "inside-first", NULL, NULL,
     "inside-first|inside|jobs",
     "in a Slurm job: executors are placed in it first and then in additional jobs, in it "
     "alone, or in additional jobs alone", OTHER},
    {"alloc.release", TRP_OPTION_CHOICE, "stage-end", NULL, NULL, "stage-end|idle",
     "give executors back when no stage needs them, or when idle for "
     "dynamicAllocation.executorIdleTimeout", ENGINE(release_idle)},
    {"alloc.reuse", TRP_OPTION_CHOICE, "exact", NULL, NULL, "exact|fit|never",
     "whether a stage may use idle executors of another profile: of the same shape, "
     "of any shape that covers it, never", ENGINE(reuse)},
    {"alloc.shrink", ON,
     "in a Slurm job: give back nodes that stages have used and none to come needs, where "
     "Slurm allows it and additional jobs may be had", OTHER},
    {"barrier.reserve", TRP_OPTION_TIME, "30s", "0", NULL, NULL,
     "how long slots are kept for a barrier stage whose turn it is, before later stages "
     "get them once; 0: they are not kept", ENGINE(barrier.reserve_ns)},
    {"barrier.sync.timeout", TRP_OPTION_TIME, "365d", "1ms", NULL, NULL,
     "how long a task waits in a barrier for the others of its stage",
     ENGINE(barrier.sync_timeout_ns)},
    {"comm.mac", ON,
     "control messages over sockets carry a code that only driver and executor can make",
     OTHER},
    {"comm.transport", TRP_OPTION_CHOICE, "auto", NULL, NULL, "auto|mpi|socket",
     "how messages travel: over the MPI of a static run (`mpirun -n N APP`), else over "
     "sockets; over MPI, which takes Open MPI 4.1; over sockets, not in a static run",
     OTHER},
    {"decommission.enabled", OFF,
     "executors that are not needed any more are decommissioned, not killed: they get "
     "nothing new and go when nothing runs there", ENGINE(decommission.enabled)},
    {"driver.cores", TRP_OPTION_INT, "0", "0", "1000000", NULL,
     "cores of its node in a Slurm job that are the driver's own", OTHER},
    {"driver.maxResultSize", TRP_OPTION_MEMORY, "1g", "0", "1000000g", NULL,
     "results of one stage, in all; more fails it; 0: no limit", OTHER},
    {"driver.memory", TRP_OPTION_MEMORY, "512m", "0", "1000000g", NULL,
     "memory of its node in a Slurm job that is the driver's own; 16 MiB more for each "
     "executor", OTHER},
    {"dynamicAllocation.cachedExecutorIdleTimeout",
     TRP_OPTION_TIME, "", "0", NULL, NULL,
     "the idle timeout of an executor that holds cached data; not set: it stays",
     ENGINE_OR(cached_timeout_ns, INT64_MAX)},
    {"dynamicAllocation.enabled", ON,
     "executors come and go by need; runs under mpirun or srun have theirs from the "
     "start", OTHER},
    {"dynamicAllocation.executorAllocationRatio",
     TRP_OPTION_AMOUNT, "1", "1/1000000", "1", NULL,
     "executors asked for, as a part of those that would run all tasks at once",
     ENGINE(allocation_ratio)},
    {"dynamicAllocation.executorIdleTimeout", TRP_OPTION_TIME, "60s", "0", NULL, NULL,
     "how long an executor stays idle with alloc.release=idle",
     ENGINE(idle_timeout_ns)},
    {"dynamicAllocation.initialExecutors",
     TRP_OPTION_INT, "=dynamicAllocation.minExecutors", "0", "1000000", NULL,
     "executors of a profile when it is first used, with alloc.grow=ramp",
     ENGINE(initial_executors)},
    {"dynamicAllocation.maxExecutors", TRP_OPTION_INT, "", "1", "1000000", NULL,
     "most executors of one profile; not set: no limit",
     ENGINE_OR(max_executors, UINT32_MAX)},
    {"dynamicAllocation.minExecutors", TRP_OPTION_INT, "0", "0", "1000000", NULL,
     "executors of one profile that are kept while it is in use",
     ENGINE(min_executors)},
    {"dynamicAllocation.schedulerBacklogTimeout",
     TRP_OPTION_TIME, "1s", "1ms", NULL, NULL,
     "how long executors wait for room until an additional Slurm job is thought of; with "
     "alloc.grow=ramp how long tasks wait until more executors are asked for",
     ENGINE(backlog_timeout_ns)},
    {"dynamicAllocation.shuffleTracking.enabled", ON,
     "keep executors that hold shuffle data which a job uses; only with "
     "shuffle.host_files=false", ENGINE(shuffle_tracking)},
    {"dynamicAllocation.shuffleTracking.timeout", TRP_OPTION_TIME, "", "0", NULL, NULL,
     "the idle timeout of an executor whose shuffle data no job uses; not set: it "
     "stays", ENGINE_OR(shuffle_timeout_ns, INT64_MAX)},
    {"dynamicAllocation.sustainedSchedulerBacklogTimeout",
     TRP_OPTION_TIME, "=dynamicAllocation.schedulerBacklogTimeout", "1ms", NULL, NULL,
     "the same, between further requests", ENGINE(sustained_timeout_ns)},
    {"events.engine", OFF,
     "keep what the engine is told and decides in state/engine.trace, for troupe sim "
     "--replay", OTHER},
    {"events.tasks", TRP_OPTION_CHOICE, "auto", NULL, NULL, "auto|all|summary",
     "task events in the event log: each while the log keeps up, each, or a summary",
     OTHER},
    {"excludeOnFailure.application.fetchFailure.enabled", OFF,
     "exclude where map outputs could not be fetched from, at once",
     ENGINE(exclusion.fetch_failure)},
    {"excludeOnFailure.application.maxFailedExecutorsPerNode",
     TRP_OPTION_INT, "2", "1", "1000000", NULL,
     "excluded executors of a host until the whole host is excluded",
     ENGINE(exclusion.app_executors_per_node)},
    {"excludeOnFailure.application.maxFailedTasksPerExecutor",
     TRP_OPTION_INT, "2", "1", "1000000", NULL,
     "failed tasks of stages that succeeded until an executor is excluded",
     ENGINE(exclusion.app_tasks_per_executor)},
    {"excludeOnFailure.enabled", OFF,
     "give tasks no place where they, or too many others, failed",
     ENGINE(exclusion.enabled)},
    {"excludeOnFailure.killExcludedExecutors", OFF,
     "end executors that are excluded", ENGINE(exclusion.kill)},
    {"excludeOnFailure.killExcludedExecutors.decommission", OFF,
     "let their tasks finish first", ENGINE(exclusion.kill_decommission)},
    {"excludeOnFailure.stage.maxFailedExecutorsPerNode",
     TRP_OPTION_INT, "2", "1", "1000000", NULL,
     "executors of a host excluded for a stage until the host is",
     ENGINE(exclusion.stage_executors_per_node)},
    {"excludeOnFailure.stage.maxFailedTasksPerExecutor",
     TRP_OPTION_INT, "2", "1", "1000000", NULL,
     "tasks of a stage that failed on an executor until it is excluded for the stage",
     ENGINE(exclusion.stage_tasks_per_executor)},
    {"excludeOnFailure.task.maxTaskAttemptsPerExecutor",
     TRP_OPTION_INT, "1", "1", "1000000", NULL,
     "failures of a task on an executor until it is not sent there again",
     ENGINE(exclusion.task_attempts_per_executor)},
    {"excludeOnFailure.task.maxTaskAttemptsPerNode",
     TRP_OPTION_INT, "2", "1", "1000000", NULL,
     "failures of a task on a host until it is not sent there again; below "
     "task.maxFailures", ENGINE(exclusion.task_attempts_per_node)},
    {"excludeOnFailure.timeout", TRP_OPTION_TIME, "1h", "1ms", NULL, NULL,
     "how long an executor or host is excluded for the run, and a failure counts",
     ENGINE(exclusion.timeout_ns)},
    {"executor.cores", TRP_OPTION_INT, "1", "1", "1000000", NULL,
     "cores of an executor of the default profile", PROFILE(executor_cores)},
    {"executor.decommission.forceKillTimeout", TRP_OPTION_TIME, "", "1ms", NULL, NULL,
     "how long tasks of an executor that is to go may run on; not set: to their end",
     ENGINE(decommission.force_kill_ns)},
    {"executor.decommission.killInterval", TRP_OPTION_TIME, "", "1ms", NULL, NULL,
     "speculate on tasks that would outlive their executor's end, this long after "
     "its notice", ENGINE(speculation.kill_interval_ns)},
    {"executor.heartbeatInterval", TRP_OPTION_TIME, "10s", "10ms", NULL, NULL,
     "how often an executor says that it lives; at most network.timeout", OTHER},
    {"executor.instances", TRP_OPTION_INT, "0", "0", "1000000", NULL,
     "executors of a profile when it is first used, at least, with alloc.grow=ramp",
     OTHER},
    {"executor.memory", TRP_OPTION_MEMORY, "1g", "1m", NULL, NULL,
     "memory of an executor of the default profile", PROFILE(memory_mib)},
    {"executor.memoryOverhead", TRP_OPTION_MEMORY, "", "0", NULL, NULL,
     "memory on top of executor.memory; not set: by the factor and the minimum below",
     PROFILE_OR(overhead_mib, -1)},
    {"executor.memoryOverheadFactor", TRP_OPTION_NUMBER, "0.10", "0", "1000", NULL,
     "overhead as a fraction of the memory, where it is not written",
     PROFILE(overhead_factor)},
    {"executor.minMemoryOverhead", TRP_OPTION_MEMORY, "64m", "0", NULL, NULL,
     "the least overhead, where it is not written", PROFILE(overhead_min_mib)},
    {"executor.pyspark.memory", TRP_OPTION_MEMORY, "", "0", NULL, NULL,
     "memory for Python beside executor.memory; not set: none of its own",
     PROFILE_OR(pyspark_mib, -1)},
    {"executor.resource.*.amount", TRP_OPTION_INT, "0", "0", "1000000", NULL,
     "executor.resource.R.amount: units of R of an executor of the default profile",
     OTHER},
    {"executor.resource.*.discoveryScript", TRP_OPTION_TEXT, "", NULL, NULL, NULL,
     "executor.resource.R.discoveryScript: a program that tells an executor's addresses "
     "of R, where neither Slurm nor the site file does", OTHER},
    {"files.fetchFailure.unRegisterOutputOnHost", OFF,
     "after a fetch failure drop all map outputs of the host, not only the executor's",
     ENGINE(unregister_host)},
    {"locality.wait", TRP_OPTION_TIME, "3s", "0", NULL, NULL,
     "how long a task waits for a place nearer to its data before the next level",
     OTHER},
    {"locality.wait.legacyResetOnTaskLaunch", OFF,
     "each launch starts the wait anew, as Spark 3.0 did",
     ENGINE(locality_legacy_reset)},
    {"locality.wait.node", TRP_OPTION_TIME, "=locality.wait", "0", NULL, NULL,
     "the same, for its host", ENGINE(locality_wait_ns[TRP_NODE_LOCAL])},
    {"locality.wait.process", TRP_OPTION_TIME, "=locality.wait", "0", NULL, NULL,
     "the same, for its executor", ENGINE(locality_wait_ns[TRP_PROCESS_LOCAL])},
    {"locality.wait.rack", TRP_OPTION_TIME, "=locality.wait", "0", NULL, NULL,
     "the same, for its rack", ENGINE(locality_wait_ns[TRP_RACK_LOCAL])},
    {"memory.fraction", TRP_OPTION_NUMBER, "0.6", "0", "1", NULL,
     "share of an executor's memory for map outputs that are written and read, when it "
     "has no offHeap", OTHER},
    {"memory.offHeap.enabled", OFF,
     "give executors of the default profile memory.offHeap.size", OTHER},
    {"memory.offHeap.size", TRP_OPTION_MEMORY, "0", "0", NULL, NULL,
     "memory outside of executor.memory, when memory.offHeap.enabled",
     PROFILE(offheap_mib)},
    {"metrics.file", TRP_OPTION_TEXT, "", NULL, NULL, NULL,
     "a file that the run's metrics are written to every 15 s and at the end, in "
     "Prometheus' format; a folder: troupe-RUN.prom in it", OTHER},
    {"metrics.listen", TRP_OPTION_TEXT, "", NULL, NULL, NULL,
     "where the run's metrics are answered over HTTP: unix:PATH, or a port of this host "
     "alone, 127.0.0.1:PORT or [::1]:PORT (0: any), with the token in "
     "RUN/state/metrics.token", OTHER},
    {"network.timeout", TRP_OPTION_TIME, "120s", "100ms", NULL, NULL,
     "how long an executor or a driver may be silent before it is taken for lost",
     OTHER},
    {"outputs.wait", TRP_OPTION_TIME, "60s", "0", NULL, NULL,
     "how long outputs of a stage that are not there at its end may only be late, as shared "
     "file systems are, and the disk of the run's folder may be full", OTHER},
    {"report.html", OFF,
     "at a run's end write its report as a page, RUN/report.html (troupe report -o)", OTHER},
    {"resume.check", TRP_OPTION_CHOICE, "time", NULL, NULL, "contents|time",
     "by what --resume knows that files are as they were: by size and contents, which are "
     "read when a task has ended and by --resume again, or by size and time", OTHER},
    {"run.fail_fast", OFF,
     "when a stage of a pipeline gives up, kill the tasks that run; else they go on to their "
     "end, and nothing new is started (run --fail-fast)", OTHER},
    {"run.grace", TRP_OPTION_TIME, "30s", "0", NULL, NULL,
     "how long running tasks may go on after the first SIGINT or SIGTERM", OTHER},
    {"run.keep_going", OFF,
     "after a task that was given up, run the other tasks of its stage, and what does not "
     "depend on it (run --keep-going)", OTHER},
    {"run.shell", TRP_OPTION_CHOICE, "sh", NULL, NULL, "bash|sh",
     "what `run` is a text for where the pipeline does not say: bash -euo pipefail, or "
     "/bin/sh -e", OTHER},
    {"scheduler.allocation.file", TRP_OPTION_TEXT, "", NULL, NULL, NULL,
     "a file with `pools:` as a pipeline has them, for scheduler.mode=FAIR", OTHER},
    {"scheduler.barrier.maxConcurrentTasksCheck.interval",
     TRP_OPTION_TIME, "15s", "1ms", NULL, NULL,
     "how often a job whose barrier stage has too few slots is tried again",
     ENGINE(barrier.check_interval_ns)},
    {"scheduler.barrier.maxConcurrentTasksCheck.maxFailures",
     TRP_OPTION_INT, "40", "1", "1000000", NULL,
     "how many such tries may fail", ENGINE(barrier.check_max_failures)},
    {"scheduler.excludeOnFailure.unschedulableTaskSetTimeout",
     TRP_OPTION_TIME, "120s", "0", NULL, NULL,
     "how long a stage waits when one of its tasks is excluded everywhere",
     ENGINE(exclusion.unschedulable_ns)},
    {"scheduler.executorTaskExcludeOnFailureTime", TRP_OPTION_TIME, "", "0", NULL, NULL,
     "the old name of excludeOnFailure.timeout; above 0 it also enables it", OTHER},
    {"scheduler.maxRegisteredResourcesWaitingTime", TRP_OPTION_TIME, "30s", "0", NULL,
     NULL, "how long the start waits for scheduler.minRegisteredResourcesRatio",
     ENGINE(registered_wait_ns)},
    {"scheduler.maxRetainedRemovedDecommissionExecutors",
     TRP_OPTION_INT, "0", "0", "1000000", NULL,
     "executors that were decommissioned and are gone that are still known as such",
     ENGINE(decommission.retained)},
    {"scheduler.minRegisteredResourcesRatio", TRP_OPTION_NUMBER, "0", "0", "1", NULL,
     "start no task until this part of the first executors (of a static run's ranks) "
     "has come", ENGINE(registered_ratio)},
    {"scheduler.mode", TRP_OPTION_CHOICE, "FIFO", NULL, NULL, "FIFO|FAIR",
     "stages share slots: the earlier one first, or by pools", ENGINE(fair)},
    {"scheduler.resource.profileMergeConflicts", OFF,
     "merge several profiles of one stage by the larger amount, instead of an error",
     PROFILE(merge_conflicts)},
    {"scheduler.seed", TRP_OPTION_INT, "0", "0", "1000000000000", NULL,
     "shuffles the order of executors in each round; 0: they take turns", ENGINE(seed)},
    {"shuffle.compress", OFF, "compress map outputs (zstd)", OTHER},
    {"shuffle.host_files", ON,
     "map outputs are files of their host and outlive their executor",
     ENGINE(host_files)},
    {"shuffle.readHostLocalDisk", ON,
     "open map outputs of one's own host; off: fetch them as those of others", OTHER},
    {"shuffle.reduceLocality.enabled", ON,
     "send tasks to where most of their input is", ENGINE(reduce_locality)},
    {"shuffle.service.enabled", OFF,
     "as shuffle.host_files: map outputs outlive their executor",
     ENGINE(shuffle_service)},
    {"slurm.max_rpcs_per_minute", TRP_OPTION_INT, "", "1", "1000000", NULL,
     "most calls to Slurm that a run causes in a minute; not set: what the site allows",
     OTHER},
    {"slurm.poll", TRP_OPTION_TIME, "10s", "100ms", NULL, NULL,
     "how often Slurm is asked what became of the job's nodes, of its end, and of queued "
     "jobs; up to six times that while there is no news", OTHER},
    {"speculation", OFF,
     "start copies of tasks that are much slower than others of their stage",
     ENGINE(speculation.enabled)},
    {"speculation.efficiency.enabled", ON,
     "only when they also process less data a second, or are far too slow",
     ENGINE(speculation.efficiency)},
    {"speculation.efficiency.longRunTaskFactor",
     TRP_OPTION_NUMBER, "2", "1", "1000000", NULL,
     "how often the threshold a task may run until its rate no longer matters",
     ENGINE(speculation.long_run_factor)},
    {"speculation.efficiency.processRateMultiplier",
     TRP_OPTION_NUMBER, "0.75", "0.000001", "1", NULL,
     "a task is inefficient below this part of the mean rate",
     ENGINE(speculation.rate_multiplier)},
    {"speculation.interval", TRP_OPTION_TIME, "100ms", "1ms", NULL, NULL,
     "how often slow tasks are looked for", ENGINE(speculation.interval_ns)},
    {"speculation.minTaskRuntime", TRP_OPTION_TIME, "100ms", "0", NULL, NULL,
     "tasks that run shorter are never slow", ENGINE(speculation.min_runtime_ns)},
    {"speculation.multiplier", TRP_OPTION_NUMBER, "3", "0", "1000000", NULL,
     "how many times the median a task is slow at", ENGINE(speculation.multiplier)},
    {"speculation.quantile", TRP_OPTION_NUMBER, "0.9", "0", "1", NULL,
     "the part of a stage's tasks that must be done first",
     ENGINE(speculation.quantile)},
    {"speculation.task.duration.threshold", TRP_OPTION_TIME, "", "0", NULL, NULL,
     "in stages of a few tasks, a task that runs longer is slow; not set: none is",
     ENGINE(speculation.duration_threshold_ns)},
    {"stage.ignoreDecommissionFetchFailure", ON,
     "fetch failures by a planned end of an executor do not count for the stage",
     ENGINE(ignore_decommission_failures)},
    {"stage.maxConsecutiveAttempts", TRP_OPTION_INT, "4", "1", "1000000", NULL,
     "attempts of a stage in a row that may fail by fetch failures",
     ENGINE(max_stage_attempts)},
    {"storage.decommission.enabled", OFF,
     "what a decommissioned executor keeps is moved to others", OTHER},
    {"storage.decommission.shuffleBlocks.enabled", ON,
     "scenarios: map outputs are, which with decommission.enabled makes executors "
     "that come and go safe for them", OTHER},
    {"task.cpus", TRP_OPTION_INT, "1", "1", "1000000", NULL,
     "cores that a task takes where its profile does not say", PROFILE(task_cpus)},
    {"task.maxFailures", TRP_OPTION_INT, "4", "1", "1000000", NULL,
     "failures of one task until its stage gives up; functions are tried four times, and "
     "commands once, where neither this nor `retries` of their stage says more",
     ENGINE(max_failures)},
    {"task.resource.*.amount", TRP_OPTION_AMOUNT, "0", NULL, NULL, NULL,
     "task.resource.R.amount: units of R that a task of the default profile takes",
     OTHER},
    {"task.resource.placement", TRP_OPTION_CHOICE, "first", NULL, NULL, "first|pack",
     "which address a fraction is taken from: the first that fits, or the fullest",
     ENGINE(pack)},
    {.key = NULL},
};
/* clang-format on */

static const char no_copies[] = "no run moves what executors keep yet";
static const char no_moves[] = "no run moves map outputs yet";

static const struct {
    const char *key, *why;
} missing[] = {
    {"storage.decommission.enabled",               no_copies},
    {"storage.decommission.shuffleBlocks.enabled", no_moves },
};

const char *trp_option_missing(const char *key)
{
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        if (strcmp(missing[i].key, key) == 0)
            return missing[i].why;
    return NULL;
}
