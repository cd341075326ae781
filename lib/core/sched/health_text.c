/*
 * Options of exclusion and what people are told about it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "core/base/ids.h"
#include "core/sched/health_record.h"

#define SECOND INT64_C(1000000000)

void trp_health_config_init(struct trp_health_config *c)
{
    *c = (struct trp_health_config){
        .enabled = TRP_HEALTH_UNSET,
        .timeout_ns = TRP_HEALTH_UNSET,
        .legacy_timeout_ns = TRP_HEALTH_UNSET,
        .task_attempts_per_executor = 1,
        .task_attempts_per_node = 2,
        .stage_tasks_per_executor = 2,
        .stage_executors_per_node = 2,
        .app_tasks_per_executor = 2,
        .app_executors_per_node = 2,
        .unschedulable_ns = 120 * SECOND,
    };
}

static int check_counts(const struct trp_health_config *c, trp_error *err)
{
    const struct {
        const char *name;
        int64_t value;
    } counts[] = {
        {"task.maxTaskAttemptsPerExecutor",       c->task_attempts_per_executor},
        {"task.maxTaskAttemptsPerNode",           c->task_attempts_per_node    },
        {"stage.maxFailedTasksPerExecutor",       c->stage_tasks_per_executor  },
        {"stage.maxFailedExecutorsPerNode",       c->stage_executors_per_node  },
        {"application.maxFailedTasksPerExecutor", c->app_tasks_per_executor    },
        {"application.maxFailedExecutorsPerNode", c->app_executors_per_node    },
    };
    for (unsigned i = 0; i < sizeof(counts) / sizeof(*counts); i++)
        if (counts[i].value <= 0)
            return trp_error_set(err, TRP_EINVAL,
                                 "excludeOnFailure.%s is %" PRId64 ", but must be > 0",
                                 counts[i].name, counts[i].value);
    return 0;
}

int trp_health_config_resolve(struct trp_health_config *c, uint32_t max_failures,
                              trp_error *err)
{
    bool has_legacy = c->legacy_timeout_ns != TRP_HEALTH_UNSET;
    int64_t enabled = c->enabled, timeout = c->timeout_ns;
    const char *from = "excludeOnFailure.timeout";
    if (enabled == TRP_HEALTH_UNSET)
        enabled = has_legacy && c->legacy_timeout_ns != 0;
    if (timeout == TRP_HEALTH_UNSET && has_legacy) {
        timeout = c->legacy_timeout_ns;
        from = "scheduler.executorTaskExcludeOnFailureTime";
    } else if (timeout == TRP_HEALTH_UNSET) {
        timeout = 3600 * SECOND;
    }
    if (enabled) {
        int rc = check_counts(c, err);
        if (rc < 0)
            return rc;
        if (timeout <= 0)
            return trp_error_set(err, TRP_EINVAL,
                                 "%s is %" PRId64 " ms, but must be > 0", from,
                                 timeout / 1000000);
        if (c->unschedulable_ns < 0)
            return trp_error_set(err, TRP_EINVAL,
                                 "scheduler.excludeOnFailure.unschedulableTaskSet"
                                 "Timeout is %" PRId64 " ms, but must be >= 0",
                                 c->unschedulable_ns / 1000000);
        if (c->task_attempts_per_node >= max_failures)
            return trp_error_set(
                err, TRP_EINVAL,
                "excludeOnFailure.task.maxTaskAttemptsPerNode (%" PRId64
                ") must be below task.maxFailures (%u), or one bad node is enough to "
                "fail a stage: lower the first, raise the second, or set "
                "excludeOnFailure.enabled to false",
                c->task_attempts_per_node, max_failures);
    }
    c->enabled = enabled != 0;
    c->timeout_ns = timeout > 0 ? timeout : 3600 * SECOND;
    return 0;
}

char *trp_health_why(const struct trp_health_config *c, const trp_health_tracker *t,
                     const struct trp_health *record, uint32_t task, uint32_t executor,
                     uint32_t node, const char *executor_name, const char *node_name,
                     char *buf, size_t size)
{
    if (size)
        buf[0] = '\0';
    if (trp_health_node_excluded(t, node))
        snprintf(buf, size,
                 "node %s is excluded for the application: %" PRId64
                 " of its executors, or a fetch of an output, failed "
                 "(excludeOnFailure.application.maxFailedExecutorsPerNode)",
                 node_name, c->app_executors_per_node);
    else if (trp_health_executor_excluded(t, executor))
        snprintf(buf, size,
                 "executor %s is excluded for the application: %" PRId64
                 " tasks, or a fetch of an output, failed there "
                 "(excludeOnFailure.application.maxFailedTasksPerExecutor)",
                 executor_name, c->app_tasks_per_executor);
    else if (!record)
        return buf;
    else if (trp_health_stage_node_out(record, node))
        snprintf(buf, size,
                 "node %s is excluded for the stage: %" PRId64
                 " of its executors failed "
                 "(excludeOnFailure.stage.maxFailedExecutorsPerNode)",
                 node_name, c->stage_executors_per_node);
    else if (trp_health_look(record, executor, node) == TRP_HEALTH_OUT)
        snprintf(buf, size,
                 "executor %s is excluded for the stage: %" PRId64
                 " tasks failed there "
                 "(excludeOnFailure.stage.maxFailedTasksPerExecutor)",
                 executor_name, c->stage_tasks_per_executor);
    else if (trp_health_look_task(record, task, TRP_NONE, node))
        snprintf(buf, size,
                 "task %u is excluded from node %s: it failed there %" PRId64 " times "
                 "(excludeOnFailure.task.maxTaskAttemptsPerNode)",
                 task, node_name, c->task_attempts_per_node);
    else if (trp_health_look_task(record, task, executor, node))
        snprintf(buf, size,
                 "task %u is excluded from executor %s: it failed there %" PRId64
                 " times (excludeOnFailure.task.maxTaskAttemptsPerExecutor)",
                 task, executor_name, c->task_attempts_per_executor);
    return buf;
}

char *trp_health_nowhere(const struct trp_health *record, uint32_t task, uint32_t stage,
                         uint32_t attempt, char *buf, size_t size)
{
    const char *latest = trp_health_latest(record);
    snprintf(buf, size,
             "Aborting TaskSet %u.%u because task %u cannot run anywhere due to node "
             "and executor excludeOnFailure. Most recent failure: %s. "
             "ExcludeOnFailure behavior can be configured via excludeOnFailure.*",
             stage, attempt, task, *latest ? latest : "not known");
    return buf;
}
