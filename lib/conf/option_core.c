/*
 * What core takes of the options: the default profile's values, the engine's
 * configuration; and the checks that need several options.
 */
#include <assert.h>
#include <string.h>

#include "conf/option_value.h"
#include "conf/values.h"
#include "core/base/amount.h"

#define EXCLUDE "excludeOnFailure.enabled"
#define OLD_EXCLUDE "scheduler.executorTaskExcludeOnFailureTime"

/* ---- checks over several options ---------------------------------------------------
 */

static int against(const trp_options *o, const char *key, const char *other,
                   const char *relation, const char *advice, trp_error *err)
{
    enum trp_origin a = trp_options_origin(o, key), b = trp_options_origin(o, other);
    const char *where = trp_options_where(o, a >= b ? key : other);
    return trp_error_set(err, TRP_EINVAL, "%s: %s %s is %s %s %s; %s", where, key,
                         trp_options_text(o, key), relation, other,
                         trp_options_text(o, other), advice);
}

bool trp_options_excludes(const trp_options *o)
{
    if (trp_options_is_set(o, EXCLUDE))
        return trp_options_bool(o, EXCLUDE);
    return *trp_options_text(o, OLD_EXCLUDE) && trp_options_time_ns(o, OLD_EXCLUDE) > 0;
}

bool trp_options_shuffle_safe(const trp_options *o)
{
    return trp_options_bool(o, "shuffle.service.enabled") ||
           trp_options_bool(o, "dynamicAllocation.shuffleTracking.enabled") ||
           (trp_options_bool(o, "decommission.enabled") &&
            trp_options_bool(o, "storage.decommission.shuffleBlocks.enabled"));
}

/* An executor that goes takes its map outputs along, unless they are its host's or it
 * stays while they are needed. A run hands nothing over when it decommissions. */
static int check_outputs(const trp_options *o, trp_error *err)
{
    static const char *const keepers[] = {"shuffle.host_files",
                                          "shuffle.service.enabled",
                                          "dynamicAllocation.shuffleTracking.enabled"};
    const char *last = keepers[0];
    bool kept = !trp_options_bool(o, "dynamicAllocation.enabled");
    for (size_t i = 0; i < 3; i++) {
        kept = kept || trp_options_bool(o, keepers[i]);
        if (trp_options_origin(o, keepers[i]) > trp_options_origin(o, last))
            last = keepers[i];
    }
    if (kept)
        return 0;
    return trp_error_set(err, TRP_EINVAL,
                         "%s: with %s, %s and %s all false an executor that goes takes "
                         "map outputs along that others read; set one of them to true",
                         trp_options_where(o, last), keepers[0], keepers[1],
                         keepers[2]);
}

int trp_options_check(const trp_options *o, trp_error *err)
{
    static const char beat[] = "executor.heartbeatInterval",
                      silence[] = "network.timeout";
    static const char least[] = "dynamicAllocation.minExecutors";
    static const char *const most[] = {"dynamicAllocation.maxExecutors",
                                       "alloc.max_executors"};
    static const char leave[] = "excludeOnFailure.task.maxTaskAttemptsPerNode",
                      limit[] = "task.maxFailures";
    if (trp_options_time_ns(o, beat) > trp_options_time_ns(o, silence))
        return against(o, beat, silence, "above", "make it smaller", err);
    for (size_t i = 0; i < 2; i++) {
        if (*trp_options_text(o, most[i]) &&
            trp_options_int(o, least) > trp_options_int(o, most[i]))
            return against(o, least, most[i], "above", "make it smaller", err);
    }
    if (trp_options_excludes(o) &&
        trp_options_int(o, leave) >= trp_options_int(o, limit))
        return against(o, leave, limit, "not below", "make it smaller", err);
    if (trp_options_bool(o, "memory.offHeap.enabled") &&
        trp_options_memory_mib(o, "memory.offHeap.size") == 0)
        return against(o, "memory.offHeap.enabled", "memory.offHeap.size", "set, but",
                       "set the size too", err);
    return check_outputs(o, err);
}

/* ---- what core takes ---------------------------------------------------------------
 */

/* The entry of a resource, made when it is new; trp_options_set bounds their number. */
static struct trp_default_resource *resource_entry(struct trp_profile_defaults *d,
                                                   const char *name)
{
    for (uint32_t i = 0; i < d->nresources; i++) {
        if (!strcmp(d->resources[i].name, name))
            return &d->resources[i];
    }
    assert(d->nresources < TRP_PROFILE_RESOURCES);
    struct trp_default_resource *r = &d->resources[d->nresources++];
    memset(r, 0, sizeof(*r));
    memcpy(r->name, name, strlen(name) + 1);
    return r;
}

static int add_resource(void *context, const struct trp_option_view *v)
{
    struct trp_profile_defaults *d = context;
    char name[TRP_RESOURCE_NAME_MAX];
    if (trp_option_resource(v, "task.resource.*.amount", name))
        trp_amount_parse(v->value, &resource_entry(d, name)->task, NULL);
    else if (trp_option_resource(v, "executor.resource.*.amount", name))
        trp_whole_parse(v->value, &resource_entry(d, name)->executor);
    return 0;
}

void trp_options_profile_defaults(const trp_options *o,
                                  struct trp_profile_defaults *ret)
{
    trp_profile_defaults_init(ret);
    ret->executor_cores = trp_options_int(o, "executor.cores");
    ret->cores_configured = trp_options_is_set(o, "executor.cores");
    ret->task_cpus = trp_options_int(o, "task.cpus");
    ret->memory_mib = trp_options_memory_mib(o, "executor.memory");
    ret->overhead_mib = trp_options_memory_mib(o, "executor.memoryOverhead");
    ret->pyspark_mib = trp_options_memory_mib(o, "executor.pyspark.memory");
    ret->offheap_mib = trp_options_bool(o, "memory.offHeap.enabled")
                           ? trp_options_memory_mib(o, "memory.offHeap.size")
                           : 0;
    ret->overhead_factor = trp_options_number(o, "executor.memoryOverheadFactor");
    ret->overhead_min_mib = trp_options_memory_mib(o, "executor.minMemoryOverhead");
    ret->merge_conflicts =
        trp_options_bool(o, "scheduler.resource.profileMergeConflicts");
    trp_options_each(o, add_resource, ret);
}

/* A limit that may be unset; then the engine's own stays. */
static void take_limit(const trp_options *o, const char *key, uint32_t *ret)
{
    if (*trp_options_text(o, key))
        *ret = (uint32_t)trp_options_int(o, key);
}

static bool is_word(const trp_options *o, const char *key, const char *word)
{
    return !strcmp(trp_options_text(o, key), word);
}

/* A time that may be unset. */
static int64_t time_or(const trp_options *o, const char *key, int64_t unset)
{
    return *trp_options_text(o, key) ? trp_options_time_ns(o, key) : unset;
}

static uint32_t count(const trp_options *o, const char *key)
{
    return (uint32_t)trp_options_int(o, key);
}

static int add_cap(void *context, const struct trp_option_view *v)
{
    struct trp_alloc_caps *caps = context;
    if (!trp_option_resource(v, "alloc.max_*", caps->custom[caps->ncustom].name))
        return 0;
    trp_whole_parse(v->value, &caps->custom[caps->ncustom++].most);
    return 0;
}

static void take_allocation(const trp_options *o, struct trp_engine_config *ret)
{
    ret->reuse = is_word(o, "alloc.reuse", "fit")     ? TRP_REUSE_FIT
                 : is_word(o, "alloc.reuse", "never") ? TRP_REUSE_NEVER
                                                      : TRP_REUSE_EXACT;
    ret->release_idle = is_word(o, "alloc.release", "idle");
    if (is_word(o, "alloc.look_ahead", "auto")) {
        ret->look_ahead = TRP_LOOK_AHEAD_AUTO;
    } else if (is_word(o, "alloc.look_ahead", "off")) {
        ret->look_ahead = TRP_LOOK_AHEAD_OFF;
    } else {
        ret->look_ahead = TRP_LOOK_AHEAD_TIME;
        ret->look_ahead_ns = trp_options_time_ns(o, "alloc.look_ahead");
    }
    ret->idle_timeout_ns =
        trp_options_time_ns(o, "dynamicAllocation.executorIdleTimeout");
    take_limit(o, "dynamicAllocation.minExecutors", &ret->min_executors);
    take_limit(o, "dynamicAllocation.maxExecutors", &ret->max_executors);
    take_limit(o, "alloc.max_executors", &ret->alloc_max_executors);
    if (*trp_options_text(o, "alloc.max_cores"))
        ret->caps.cores = trp_options_int(o, "alloc.max_cores");
    if (*trp_options_text(o, "alloc.max_memory"))
        ret->caps.memory_mib = trp_options_memory_mib(o, "alloc.max_memory");
    trp_options_each(o, add_cap, &ret->caps);
    ret->grow_ramp = is_word(o, "alloc.grow", "ramp");
    ret->initial_executors = count(o, "dynamicAllocation.initialExecutors");
    if (count(o, "executor.instances") > ret->initial_executors)
        ret->initial_executors = count(o, "executor.instances");
    trp_amount_parse(trp_options_text(o, "dynamicAllocation.executorAllocationRatio"),
                     &ret->allocation_ratio, NULL);
    ret->backlog_timeout_ns =
        trp_options_time_ns(o, "dynamicAllocation.schedulerBacklogTimeout");
    ret->sustained_timeout_ns =
        trp_options_time_ns(o, "dynamicAllocation.sustainedSchedulerBacklogTimeout");
    ret->cached_timeout_ns =
        time_or(o, "dynamicAllocation.cachedExecutorIdleTimeout", INT64_MAX);
    ret->shuffle_tracking =
        trp_options_bool(o, "dynamicAllocation.shuffleTracking.enabled");
    ret->shuffle_timeout_ns =
        time_or(o, "dynamicAllocation.shuffleTracking.timeout", INT64_MAX);
}

static void take_failures(const trp_options *o, struct trp_engine_config *ret)
{
    ret->max_failures = count(o, "task.maxFailures");
    ret->max_stage_attempts = count(o, "stage.maxConsecutiveAttempts");
    ret->shuffle_service = trp_options_bool(o, "shuffle.service.enabled");
    ret->host_files = trp_options_bool(o, "shuffle.host_files") || ret->shuffle_service;
    ret->unregister_host =
        trp_options_bool(o, "files.fetchFailure.unRegisterOutputOnHost");
    ret->ignore_decommission_failures =
        trp_options_bool(o, "stage.ignoreDecommissionFetchFailure");
    ret->decommission.enabled = trp_options_bool(o, "decommission.enabled");
    ret->decommission.kill_interval_ns =
        time_or(o, "executor.decommission.killInterval", 0);
    ret->decommission.force_kill_ns =
        time_or(o, "executor.decommission.forceKillTimeout", 0);
    ret->decommission.retained =
        count(o, "scheduler.maxRetainedRemovedDecommissionExecutors");
    ret->barrier.reserve_ns = trp_options_time_ns(o, "barrier.reserve");
    ret->barrier.sync_timeout_ns = trp_options_time_ns(o, "barrier.sync.timeout");
    ret->barrier.check_interval_ns =
        trp_options_time_ns(o, "scheduler.barrier.maxConcurrentTasksCheck.interval");
    ret->barrier.check_max_failures =
        count(o, "scheduler.barrier.maxConcurrentTasksCheck.maxFailures");
}

static void take_speculation(const trp_options *o, struct trp_engine_config *ret)
{
    ret->speculation.enabled = trp_options_bool(o, "speculation");
    ret->speculation.interval_ns = trp_options_time_ns(o, "speculation.interval");
    ret->speculation.quantile = trp_options_number(o, "speculation.quantile");
    ret->speculation.multiplier = trp_options_number(o, "speculation.multiplier");
    ret->speculation.min_runtime_ns =
        trp_options_time_ns(o, "speculation.minTaskRuntime");
    ret->speculation.duration_threshold_ns =
        time_or(o, "speculation.task.duration.threshold", 0);
    ret->speculation.efficiency = trp_options_bool(o, "speculation.efficiency.enabled");
    ret->speculation.rate_multiplier =
        trp_options_number(o, "speculation.efficiency.processRateMultiplier");
    ret->speculation.long_run_factor =
        trp_options_number(o, "speculation.efficiency.longRunTaskFactor");
}

static void take_exclusion(const trp_options *o, struct trp_engine_config *ret)
{
    ret->exclusion.enabled = trp_options_excludes(o);
    ret->exclusion.task_per_executor =
        count(o, "excludeOnFailure.task.maxTaskAttemptsPerExecutor");
    ret->exclusion.task_per_node =
        count(o, "excludeOnFailure.task.maxTaskAttemptsPerNode");
    ret->exclusion.stage_per_executor =
        count(o, "excludeOnFailure.stage.maxFailedTasksPerExecutor");
    ret->exclusion.stage_per_node =
        count(o, "excludeOnFailure.stage.maxFailedExecutorsPerNode");
    ret->exclusion.app_per_executor =
        count(o, "excludeOnFailure.application.maxFailedTasksPerExecutor");
    ret->exclusion.app_per_node =
        count(o, "excludeOnFailure.application.maxFailedExecutorsPerNode");
    ret->exclusion.timeout_ns = trp_options_time_ns(o, "excludeOnFailure.timeout");
    if (!trp_options_is_set(o, "excludeOnFailure.timeout"))
        ret->exclusion.timeout_ns = time_or(o, OLD_EXCLUDE, ret->exclusion.timeout_ns);
    ret->exclusion.fetch_failure =
        trp_options_bool(o, "excludeOnFailure.application.fetchFailure.enabled");
    ret->exclusion.kill = trp_options_bool(o, "excludeOnFailure.killExcludedExecutors");
    ret->exclusion.decommission =
        trp_options_bool(o, "excludeOnFailure.killExcludedExecutors.decommission");
    ret->exclusion.unschedulable_ns = trp_options_time_ns(
        o, "scheduler.excludeOnFailure.unschedulableTaskSetTimeout");
}

void trp_options_engine_config(const trp_options *o, struct trp_engine_config *ret)
{
    trp_engine_config_init(ret);
    ret->locality_wait_ns[TRP_PROCESS_LOCAL] =
        trp_options_time_ns(o, "locality.wait.process");
    ret->locality_wait_ns[TRP_NODE_LOCAL] =
        trp_options_time_ns(o, "locality.wait.node");
    ret->locality_wait_ns[TRP_RACK_LOCAL] =
        trp_options_time_ns(o, "locality.wait.rack");
    ret->locality_legacy_reset =
        trp_options_bool(o, "locality.wait.legacyResetOnTaskLaunch");
    ret->reduce_locality = trp_options_bool(o, "shuffle.reduceLocality.enabled");
    ret->pack = is_word(o, "task.resource.placement", "pack");
    ret->seed = (uint64_t)trp_options_int(o, "scheduler.seed");
    ret->fair = is_word(o, "scheduler.mode", "FAIR");
    ret->registered_ratio =
        trp_options_number(o, "scheduler.minRegisteredResourcesRatio");
    ret->registered_wait_ns =
        trp_options_time_ns(o, "scheduler.maxRegisteredResourcesWaitingTime");
    ret->max_result_bytes = trp_options_memory_mib(o, "driver.maxResultSize") << 20;
    take_allocation(o, ret);
    take_failures(o, ret);
    take_speculation(o, ret);
    take_exclusion(o, ret);
}
