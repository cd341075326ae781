/*
 * Options of exclusion and what people are told about it.
 */
#include <stdio.h>

#include "core/base/ids.h"
#include "core/sched/health_record.h"

char *trp_health_why(const struct trp_health_config *c, const trp_health_tracker *t,
                     const struct trp_health *record, uint32_t task, uint32_t executor,
                     uint32_t node, const char *executor_name, const char *node_name,
                     char *buf, size_t size)
{
    if (size)
        buf[0] = '\0';
    if (trp_health_node_excluded(t, node))
        snprintf(buf, size,
                 "node %s is excluded for the application: %u"
                 " of its executors, or a fetch of an output, failed "
                 "(excludeOnFailure.application.maxFailedExecutorsPerNode)",
                 node_name, c->app_executors_per_node);
    else if (trp_health_executor_excluded(t, executor))
        snprintf(buf, size,
                 "executor %s is excluded for the application: %u"
                 " task%s, or a fetch of an output, failed there "
                 "(excludeOnFailure.application.maxFailedTasksPerExecutor)",
                 executor_name, c->app_tasks_per_executor,
                 c->app_tasks_per_executor == 1 ? "" : "s");
    else if (!record)
        return buf;
    else if (trp_health_stage_node_out(record, node))
        snprintf(buf, size,
                 "node %s is excluded for the stage: %u"
                 " of its executors failed "
                 "(excludeOnFailure.stage.maxFailedExecutorsPerNode)",
                 node_name, c->stage_executors_per_node);
    else if (trp_health_look(record, executor, node) == TRP_HEALTH_OUT)
        snprintf(buf, size,
                 "executor %s is excluded for the stage: %u"
                 " task%s failed there "
                 "(excludeOnFailure.stage.maxFailedTasksPerExecutor)",
                 executor_name, c->stage_tasks_per_executor,
                 c->stage_tasks_per_executor == 1 ? "" : "s");
    else if (trp_health_look_task(record, task, TRP_NONE, node))
        snprintf(buf, size,
                 "task %u is excluded from node %s: it failed there %u times "
                 "(excludeOnFailure.task.maxTaskAttemptsPerNode)",
                 task, node_name, c->task_attempts_per_node);
    else if (trp_health_look_task(record, task, executor, node))
        snprintf(buf, size,
                 "task %u is excluded from executor %s: it failed there %u"
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
