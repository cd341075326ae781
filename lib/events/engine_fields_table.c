/*
 * Every member of the engine's events and actions and of a profile, and those of its
 * options and of the profiles' that conf/options_table.c does not have. To be changed
 * with them, and TRP_TRACE_VERSION raised, as with every change there; an enum's new
 * value raises the bound beside it.
 */
#include "events/engine_fields_table.h"
#include "core/sched/pools.h"
#include "core/topo/hosts.h"

/* clang-format off */
#define SIZE_OF(s, m) sizeof(((struct s *)0)->m)
#define AT(s, m) (uint32_t)offsetof(struct s, m), SIZE_OF(s, m)
#define FIELD(type, s, m) {#m, TRP_FIELD_##type, AT(s, m), 0, 0, NULL}
#define WORD(s, m, most) {#m, TRP_FIELD_CHOICE, AT(s, m), 0, most, NULL}
#define YES_NO(s, m) WORD(s, m, 2)
#define LIST(type, s, m, n, table)                                                     \
    {#m, TRP_FIELD_##type, AT(s, m), offsetof(struct s, n), 0, (table)}
#define INLINE_LIST(s, m, n, table)                                                    \
    {#m, TRP_FIELD_INLINE, AT(s, m), offsetof(struct s, n),                            \
     SIZE_OF(s, m) / sizeof(*((struct s *)0)->m), (table)}
/* Those of a row, and how many. */
#define FIELDS(...)                                                                    \
    (const struct trp_field[]){__VA_ARGS__},                                           \
        sizeof((const struct trp_field[]){__VA_ARGS__}) / sizeof(struct trp_field)
#define PUBLIC(name, s, ...)                                                           \
    const struct trp_fields name = {#name, sizeof(struct s), FIELDS(__VA_ARGS__)}
#define TABLE(name, s, ...) static PUBLIC(name, s, __VA_ARGS__)

TABLE(parent, trp_parent_spec,
    FIELD(UNSIGNED, trp_parent_spec, stage),
    YES_NO(trp_parent_spec, each),
    YES_NO(trp_parent_spec, by),
    YES_NO(trp_parent_spec, shuffle));

struct status { int32_t status; };
TABLE(status, status, FIELD(SIGNED, status, status));

TABLE(stage, trp_stage_spec,
    FIELD(MAYBE, trp_stage_spec, name),
    FIELD(UNSIGNED, trp_stage_spec, profile.n),
    WORD(trp_stage_spec, kind, TRP_STAGE_GANG + 1),
    FIELD(UNSIGNED, trp_stage_spec, ranks),
    YES_NO(trp_stage_spec, barrier),
    LIST(ARRAY, trp_stage_spec, parents, nparents, &parent),
    YES_NO(trp_stage_spec, tasks_known),
    FIELD(UNSIGNED, trp_stage_spec, ntasks),
    FIELD(UNSIGNED, trp_stage_spec, max_failures),
    FIELD(UNSIGNED, trp_stage_spec, max_losses),
    FIELD(UNSIGNED, trp_stage_spec, max_repeats),
    FIELD(UNSIGNED, trp_stage_spec, max_running),
    FIELD(UNSIGNED, trp_stage_spec, tolerate),
    FIELD(UNSIGNED, trp_stage_spec, tolerate_ppm),
    LIST(ARRAY, trp_stage_spec, not_on, nnot_on, &status),
    FIELD(UNSIGNED, trp_stage_spec, memory_factor_ppm),
    FIELD(UNSIGNED, trp_stage_spec, min_executors),
    FIELD(UNSIGNED, trp_stage_spec, max_executors),
    WORD(trp_stage_spec, look_ahead, TRP_LOOK_AHEAD_TIME + 1),
    FIELD(SIGNED, trp_stage_spec, look_ahead_ns),
    FIELD(MAYBE, trp_stage_spec, pool),
    YES_NO(trp_stage_spec, map),
    YES_NO(trp_stage_spec, indeterminate),
    YES_NO(trp_stage_spec, checked));

struct partition { uint32_t partition; };
TABLE(partition, partition, FIELD(UNSIGNED, partition, partition));

TABLE(job, trp_job_spec,
    LIST(ARRAY, trp_job_spec, stages, nstages, &stage),
    FIELD(MAYBE, trp_job_spec, pool),
    FIELD(MAYBE, trp_job_spec, name),
    YES_NO(trp_job_spec, drains),
    YES_NO(trp_job_spec, is_dataset),
    YES_NO(trp_job_spec, map_only),
    YES_NO(trp_job_spec, some),
    YES_NO(trp_job_spec, redo),
    FIELD(UNSIGNED, trp_job_spec, dataset),
    LIST(ARRAY, trp_job_spec, partitions, npartitions, &partition));

TABLE(dataset_parent, trp_dataset_parent,
    FIELD(UNSIGNED, trp_dataset_parent, dataset),
    YES_NO(trp_dataset_parent, shuffle),
    FIELD(UNSIGNED, trp_dataset_parent, begin),
    LIST(ARRAY, trp_dataset_parent, first, nfirst, &partition));

TABLE(dataset_place, trp_dataset_place,
    FIELD(UNSIGNED, trp_dataset_place, partition),
    FIELD(TEXT, trp_dataset_place, host));

TABLE(dataset, trp_dataset_spec,
    FIELD(MAYBE, trp_dataset_spec, name),
    FIELD(UNSIGNED, trp_dataset_spec, partitions),
    LIST(ARRAY, trp_dataset_spec, parents, nparents, &dataset_parent),
    YES_NO(trp_dataset_spec, has_profile),
    FIELD(UNSIGNED, trp_dataset_spec, profile.n),
    YES_NO(trp_dataset_spec, cached),
    YES_NO(trp_dataset_spec, barrier),
    YES_NO(trp_dataset_spec, indeterminate),
    LIST(ARRAY, trp_dataset_spec, prefer, nprefer, &dataset_place));

struct size { uint64_t bytes; };
TABLE(map_size, size, FIELD(UNSIGNED, size, bytes));

TABLE(resource, trp_resource_addresses,
    FIELD(TEXT, trp_resource_addresses, name),
    LIST(TEXTS, trp_resource_addresses, addresses, naddresses, NULL));

TABLE(grant, trp_grant,
    FIELD(UNSIGNED, trp_grant, resource),
    FIELD(UNSIGNED, trp_grant, address),
    FIELD(SIGNED, trp_grant, amount));

TABLE(by_task, trp_by_task,
    FIELD(UNSIGNED, trp_by_task, task),
    FIELD(UNSIGNED, trp_by_task, value));

TABLE(by, trp_by,
    FIELD(UNSIGNED, trp_by, nvalues),
    LIST(ARRAY, trp_by, values, ntasks, &partition),
    LIST(ARRAY, trp_by, above, nabove, &by_task));

/* ---- events ---- */

#define EVENT(type, m) FIELD(type, trp_event, m)
struct byte {
    uint8_t byte;
};
TABLE(byte, byte, FIELD(UNSIGNED, byte, byte));

#define ROW(name, ...) {name, 0, FIELDS(__VA_ARGS__)}
const struct trp_fields trp_fields_of_event[] = {
    [TRP_EVENT_JOB] = ROW("job",
        {"job", TRP_FIELD_POINTER, AT(trp_event, job.spec), 0, 0, &job}),
    [TRP_EVENT_STAGE_TASKS] = ROW("stage_tasks",
        EVENT(UNSIGNED, tasks.stage.n),
        EVENT(UNSIGNED, tasks.ntasks),
        LIST(PREFER, trp_event, tasks.prefer, tasks.ntasks, NULL),
        LIST(DONE, trp_event, tasks.done, tasks.ntasks, NULL),
        LIST(ARRAY, trp_event, tasks.by, tasks.nby, &by)),
    [TRP_EVENT_STAGE_REFUSED] = ROW("stage_refused",
        EVENT(UNSIGNED, refused_stage.stage.n),
        EVENT(TEXT, refused_stage.text)),
    [TRP_EVENT_PROFILE_FIT] = ROW("profile_fit",
        EVENT(UNSIGNED, fit.profile.n),
        EVENT(UNSIGNED, fit.executors),
        EVENT(UNSIGNED, fit.additional),
        EVENT(MAYBE, fit.text),
        EVENT(UNSIGNED, fit.hosts),
        YES_NO(trp_event, fit.more)),
    [TRP_EVENT_EXECUTOR_GRANTED] = ROW("executor_granted",
        EVENT(UNSIGNED, granted.executor.n)),
    [TRP_EVENT_EXECUTOR_ADDED] = ROW("executor_added",
        EVENT(UNSIGNED, added.executor.n),
        EVENT(TEXT, added.host),
        EVENT(MAYBE, added.rack),
        LIST(ARRAY, trp_event, added.resources, added.nresources, &resource),
        EVENT(SIGNED, added.cores)),
    [TRP_EVENT_EXECUTOR_REFUSED] = ROW("executor_refused",
        EVENT(UNSIGNED, refused.executor.n),
        WORD(trp_event, refused.how, TRP_REFUSED_LATER + 1),
        YES_NO(trp_event, refused.untried),
        EVENT(MAYBE, refused.text),
        EVENT(MAYBE, refused.cause)),
    [TRP_EVENT_EXECUTOR_LOST] = ROW("executor_lost",
        EVENT(UNSIGNED, lost.executor.n),
        WORD(trp_event, lost.reason, TRP_LOSS_CALLED_EXIT + 1),
        YES_NO(trp_event, lost.has_culprit),
        EVENT(ATTEMPT, lost.culprit),
        EVENT(SIGNED, lost.code),
        YES_NO(trp_event, lost.not_by_app)),
    [TRP_EVENT_TASK_ENDED] = ROW("task_ended",
        EVENT(ATTEMPT, ended.attempt),
        WORD(trp_event, ended.status, TRP_END_OUTPUT + 1),
        EVENT(SIGNED, ended.code),
        EVENT(SIGNED, ended.duration_ns),
        EVENT(UNSIGNED, ended.records),
        EVENT(UNSIGNED, ended.result_bytes),
        LIST(ARRAY, trp_event, ended.sizes, ended.nsizes, &map_size),
        EVENT(UNSIGNED, ended.from.stage.n),
        EVENT(UNSIGNED, ended.from.map),
        EVENT(UNSIGNED, ended.from.executor.n),
        EVENT(MAYBE, ended.from.text),
        LIST(ARRAY, trp_event, ended.from.more, ended.from.nmore, &partition)),
    [TRP_EVENT_CANCEL_JOB] = ROW("cancel_job", EVENT(UNSIGNED, cancel.job.n)),
    [TRP_EVENT_DRAIN] = {"drain", 0, NULL, 0},
    [TRP_EVENT_TIME] = {"time", 0, NULL, 0},
    [TRP_EVENT_EXECUTOR_DECOMMISSIONED] = ROW("decommissioned",
        EVENT(UNSIGNED, decommissioned.executor.n),
        YES_NO(trp_event, decommissioned.whole_host)),
    [TRP_EVENT_TASK_PROGRESS] = ROW("task_progress",
        EVENT(ATTEMPT, progress.attempt),
        EVENT(UNSIGNED, progress.records)),
    [TRP_EVENT_DATASET] = ROW("dataset",
        {"dataset", TRP_FIELD_POINTER, AT(trp_event, dataset.spec), 0, 0, &dataset}),
    [TRP_EVENT_DATASET_RELEASED] = ROW("dataset_released",
        EVENT(UNSIGNED, released.dataset)),
    [TRP_EVENT_DATASET_FREED] = ROW("dataset_freed", EVENT(UNSIGNED, freed.dataset)),
    [TRP_EVENT_CACHED] = ROW("cached",
        EVENT(UNSIGNED, cached.dataset),
        EVENT(UNSIGNED, cached.partition),
        EVENT(UNSIGNED, cached.executor.n),
        YES_NO(trp_event, cached.gone)),
    [TRP_EVENT_OUTPUT_MOVED] = ROW("output_moved",
        EVENT(UNSIGNED, moved.stage.n),
        EVENT(UNSIGNED, moved.map),
        EVENT(ATTEMPT, moved.attempt),
        EVENT(UNSIGNED, moved.executor.n)),
    [TRP_EVENT_SYNC] = ROW("sync",
        EVENT(ATTEMPT, sync.attempt),
        EVENT(UNSIGNED, sync.epoch),
        WORD(trp_event, sync.kind, TRP_SYNC_COMMIT + 1),
        LIST(ARRAY, trp_event, sync.data, sync.size, &byte)),
    [TRP_EVENT_CANCEL_STAGE] = ROW("cancel_stage",
        EVENT(UNSIGNED, cancel_stage.stage.n)),
    [TRP_EVENT_ENDS] = ROW("ends",
        EVENT(UNSIGNED, ends.executor.n),
        EVENT(SIGNED, ends.at_ns)),
    [TRP_EVENT_QUEUE_WAIT] = ROW("queue_wait",
        EVENT(UNSIGNED, queue_wait.profile.n),
        EVENT(SIGNED, queue_wait.wait_ns)),
    [TRP_EVENT_STAGE_CHECKED] = ROW("stage_checked",
        EVENT(UNSIGNED, checked.stage.n),
        EVENT(MAYBE, checked.text)),
    [TRP_EVENT_CONTENDED] = ROW("contended", YES_NO(trp_event, contended.is)),
};

/* ---- actions ---- */

#define ACTION(type, m) FIELD(type, trp_action, m)
/* Which task, which executor. */
#define TASK                                                                           \
    ACTION(UNSIGNED, task.stage.n), ACTION(UNSIGNED, task.stage_attempt),              \
        ACTION(UNSIGNED, task.task)
#define EXECUTOR                                                                       \
    ACTION(UNSIGNED, executor.executor.n), ACTION(UNSIGNED, executor.profile.n)

const struct trp_fields trp_fields_of_action[] = {
    [TRP_ACTION_JOB_STARTED] = ROW("job_started", ACTION(UNSIGNED, job.n)),
    [TRP_ACTION_PROFILE_ADDED] = ROW("profile_added", ACTION(UNSIGNED, profile.n)),
    [TRP_ACTION_STAGE_READY] = ROW("stage_ready", ACTION(UNSIGNED, stage.n)),
    [TRP_ACTION_STAGE_SUBMITTED] = ROW("stage_submitted", ACTION(UNSIGNED, stage.n)),
    [TRP_ACTION_LAUNCH] = ROW("launch",
        ACTION(ATTEMPT, launch.attempt),
        ACTION(UNSIGNED, launch.stage.n),
        ACTION(UNSIGNED, launch.task),
        ACTION(UNSIGNED, launch.number),
        ACTION(UNSIGNED, launch.executor.n),
        WORD(trp_action, launch.level, TRP_LEVELS),
        YES_NO(trp_action, launch.queued),
        YES_NO(trp_action, launch.speculative),
        ACTION(UNSIGNED, launch.stage_attempt),
        LIST(ARRAY, trp_action, launch.grants, launch.ngrants, &grant)),
    [TRP_ACTION_GANG] = ROW("gang",
        ACTION(ATTEMPT, gang.attempt),
        ACTION(UNSIGNED, gang.stage.n),
        ACTION(UNSIGNED, gang.number),
        ACTION(UNSIGNED, gang.ranks),
        ACTION(UNSIGNED, gang.profile.n)),
    [TRP_ACTION_KILL] = ROW("kill",
        ACTION(ATTEMPT, kill.attempt),
        ACTION(UNSIGNED, kill.executor.n),
        YES_NO(trp_action, kill.recall),
        ACTION(UNSIGNED, kill.stage.n),
        ACTION(UNSIGNED, kill.stage_attempt),
        ACTION(UNSIGNED, kill.task),
        ACTION(UNSIGNED, kill.number)),
    [TRP_ACTION_TASK_END] = ROW("task_end",
        ACTION(ATTEMPT, task_end.attempt),
        ACTION(UNSIGNED, task_end.stage.n),
        ACTION(UNSIGNED, task_end.task),
        ACTION(UNSIGNED, task_end.number),
        ACTION(UNSIGNED, task_end.executor.n),
        WORD(trp_action, task_end.level, TRP_LEVELS),
        WORD(trp_action, task_end.status, TRP_END_OUTPUT + 1),
        ACTION(SIGNED, task_end.code),
        YES_NO(trp_action, task_end.counted),
        YES_NO(trp_action, task_end.retried),
        ACTION(UNSIGNED, task_end.failures),
        YES_NO(trp_action, task_end.speculative),
        ACTION(UNSIGNED, task_end.stage_attempt)),
    [TRP_ACTION_STAGE_ENDED] = ROW("stage_ended",
        ACTION(UNSIGNED, stage_ended.stage.n),
        WORD(trp_action, stage_ended.outcome, TRP_OUTCOME_SKIPPED + 1),
        ACTION(SIGNED, stage_ended.code),
        ACTION(UNSIGNED, stage_ended.task),
        YES_NO(trp_action, stage_ended.lost),
        ACTION(MAYBE, stage_ended.text)),
    [TRP_ACTION_JOB_ENDED] = ROW("job_ended",
        ACTION(UNSIGNED, job_ended.job.n),
        WORD(trp_action, job_ended.outcome, TRP_OUTCOME_SKIPPED + 1),
        ACTION(SIGNED, job_ended.code),
        ACTION(UNSIGNED, job_ended.stage.n),
        ACTION(MAYBE, job_ended.text)),
    [TRP_ACTION_START_EXECUTOR] = ROW("start_executor", EXECUTOR,
        YES_NO(trp_action, executor.ahead),
        ACTION(TEXT, executor.not_on)),
    [TRP_ACTION_RELEASE_EXECUTOR] = ROW("release_executor",
        ACTION(UNSIGNED, executor.executor.n)),
    [TRP_ACTION_RELABEL_EXECUTOR] = ROW("relabel_executor", EXECUTOR),
    [TRP_ACTION_SET_ENDED] = ROW("set_ended",
        ACTION(UNSIGNED, set.stage.n),
        ACTION(UNSIGNED, set.stage_attempt),
        WORD(trp_action, set.how, TRP_SET_ZOMBIE + 1),
        ACTION(UNSIGNED, set.task),
        ACTION(MAYBE, set.text)),
    [TRP_ACTION_RESUBMITTED] = ROW("resubmitted", TASK),
    [TRP_ACTION_SPECULATABLE] = ROW("speculatable", TASK),
    [TRP_ACTION_EXCLUDED] = ROW("excluded",
        ACTION(UNSIGNED, excluded.executor.n),
        ACTION(MAYBE, excluded.host),
        YES_NO(trp_action, excluded.excluded)),
    [TRP_ACTION_SYNCED] = ROW("synced",
        ACTION(ATTEMPT, synced.attempt),
        ACTION(UNSIGNED, synced.executor.n),
        ACTION(UNSIGNED, synced.epoch),
        ACTION(SIGNED, synced.code),
        ACTION(TEXT, synced.text),
        ACTION(UNSIGNED, synced.nmessages)),
    [TRP_ACTION_STAGE_RETRIED] = ROW("stage_retried",
        ACTION(UNSIGNED, stage_retried.stage.n),
        ACTION(UNSIGNED, stage_retried.attempt),
        ACTION(MAYBE, stage_retried.text)),
    [TRP_ACTION_OUT_OF_TIME] = ROW("out_of_time",
        ACTION(UNSIGNED, out_of_time.stage.n),
        ACTION(SIGNED, out_of_time.takes_ns),
        ACTION(SIGNED, out_of_time.left_ns)),
    [TRP_ACTION_OUTLIVED] = ROW("outlived",
        ACTION(UNSIGNED, outlived.executor.n),
        ACTION(SIGNED, outlived.takes_ns)),
    [TRP_ACTION_NEED_EXECUTOR] = ROW("need_executor", EXECUTOR),
    [TRP_ACTION_MAY_ADD] = ROW("may_add", EXECUTOR),
    [TRP_ACTION_TASK_GIVEN_UP] = ROW("task_given_up",
        ACTION(UNSIGNED, given_up.stage.n),
        ACTION(UNSIGNED, given_up.stage_attempt),
        ACTION(UNSIGNED, given_up.task),
        ACTION(UNSIGNED, given_up.parent.n),
        ACTION(UNSIGNED, given_up.parent_task)),
    [TRP_ACTION_ASK_WAIT] = ROW("ask_wait",
        ACTION(UNSIGNED, wait.profile.n),
        ACTION(UNSIGNED, wait.executors)),
    [TRP_ACTION_STAGE_CHECK] = ROW("stage_check", ACTION(UNSIGNED, stage.n)),
    [TRP_ACTION_JOB_DRAINS] = ROW("job_drains", ACTION(UNSIGNED, stage.n)),
};

/* ---- options and profiles ---- */

TABLE(pool, trp_pool_spec,
    FIELD(MAYBE, trp_pool_spec, name),
    FIELD(MAYBE, trp_pool_spec, mode),
    FIELD(MAYBE, trp_pool_spec, weight),
    FIELD(MAYBE, trp_pool_spec, min_share),
    FIELD(MAYBE, trp_pool_spec, parent));

TABLE(host_rack, trp_host_rack,
    FIELD(TEXT, trp_host_rack, host),
    FIELD(TEXT, trp_host_rack, rack));

#define CAP(type, m)                                                                   \
    {#m, TRP_FIELD_##type, offsetof(struct trp_alloc_caps, custom[0].m) -                          \
               offsetof(struct trp_alloc_caps, custom[0]),                             \
     SIZE_OF(trp_alloc_caps, custom[0].m), 0, 0, NULL}
static const struct trp_fields caps = {"caps", SIZE_OF(trp_alloc_caps, custom[0]),
                                       FIELDS(CAP(CHARS, name), CAP(SIGNED, most))};

/* What no option says alone; the rest are members of the option table. */
#define CONFIG(type, m) FIELD(type, trp_engine_config, m)
PUBLIC(trp_fields_of_config, trp_engine_config,
    LIST(ARRAY, trp_engine_config, pools, npools, &pool),
    LIST(ARRAY, trp_engine_config, racks, nracks, &host_rack),
    CONFIG(SIGNED, max_result_bytes),
    INLINE_LIST(trp_engine_config, caps.custom, caps.ncustom, &caps),
    WORD(trp_engine_config, look_ahead, TRP_LOOK_AHEAD_TIME + 1),
    CONFIG(SIGNED, queue_ahead_ns),
    CONFIG(UNSIGNED, queue_ahead_max),
    CONFIG(SIGNED, retry_first_ns),
    CONFIG(SIGNED, retry_max_ns),
    YES_NO(trp_engine_config, keep_going),
    YES_NO(trp_engine_config, fixed),
    CONFIG(UNSIGNED, max_start_failures),
    CONFIG(SIGNED, start_patience_ns));

TABLE(default_resource, trp_default_resource,
    FIELD(CHARS, trp_default_resource, name),
    FIELD(SIGNED, trp_default_resource, executor),
    FIELD(SIGNED, trp_default_resource, task));

PUBLIC(trp_fields_of_defaults, trp_profile_defaults,
    WORD(trp_profile_defaults, kind, TRP_MANAGER_LOCAL + 1),
    YES_NO(trp_profile_defaults, cores_configured),
    INLINE_LIST(trp_profile_defaults, resources, nresources, &default_resource));

struct trp_field trp_field_of_option(const struct trp_option *t)
{
    struct trp_field f = {
        t->key, TRP_FIELD_SIGNED, t->member.offset, t->member.size, 0, 0, NULL};
    if (t->type == TRP_OPTION_NUMBER) {
        f.type = TRP_FIELD_NUMBER;
    } else if (t->type == TRP_OPTION_BOOL || t->type == TRP_OPTION_CHOICE) {
        f.type = TRP_FIELD_CHOICE;
        f.most = t->choices ? 0 : 2;
        for (const char *p = t->choices; p; p = strchr(p + 1, '|'))
            f.most++;
    } else if (t->member.size == 4) {
        f.type = TRP_FIELD_UNSIGNED;
    }
    return f;
}

TABLE(custom, trp_custom,
    FIELD(CHARS, trp_custom, name),
    FIELD(SIGNED, trp_custom, executor),
    FIELD(SIGNED, trp_custom, task),
    YES_NO(trp_custom, on_executor),
    YES_NO(trp_custom, on_task));

#define BUILDER(type, m) FIELD(type, trp_profile_builder, m)
PUBLIC(trp_fields_of_builder, trp_profile_builder,
    BUILDER(CHARS, name),
    BUILDER(SIGNED, executor.cores),
    BUILDER(SIGNED, executor.memory_mib),
    BUILDER(SIGNED, executor.overhead_mib),
    BUILDER(SIGNED, executor.pyspark_mib),
    BUILDER(SIGNED, executor.offheap_mib),
    BUILDER(SIGNED, cpus),
    INLINE_LIST(trp_profile_builder, custom, ncustom, &custom),
    YES_NO(trp_profile_builder, has_executor),
    YES_NO(trp_profile_builder, has_task));

/* clang-format on */

const uint32_t trp_fields_events =
    sizeof trp_fields_of_event / sizeof trp_fields_of_event[0];
const uint32_t trp_fields_actions =
    sizeof trp_fields_of_action / sizeof trp_fields_of_action[0];
