/*
 * The option table, where values come from, and each wrong value.
 */
#include <glib.h>
#include <string.h>

#include "conf/options.h"
#include "core/base/amount.h"
#include "unit.h"

#define SECOND INT64_C(1000000000)

static trp_options *fresh(void)
{
    trp_options *o;
    trp_error err;
    g_assert_cmpint(trp_options_new(&o, &err), ==, 0);
    return o;
}

static void set(trp_options *o, const char *key, const char *value,
                enum trp_origin origin)
{
    trp_error err = {0};
    int code = trp_options_set(o, key, value, origin, "here", &err);
    if (code < 0)
        g_test_message("%s", err.text);
    g_assert_cmpint(code, ==, 0);
}

static void refused(const char *key, const char *value, const char *text)
{
    trp_options *o = fresh();
    trp_error err = {0};
    g_assert_cmpint(
        trp_options_set(o, key, value, TRP_ORIGIN_COMMAND_LINE, "--set", &err), ==,
        TRP_EINVAL);
    g_assert_cmpstr(err.text, ==, text);
    trp_options_free(o);
}

TEST("the table is sorted, unambiguous, and takes its defaults")
{
    const struct trp_option *t = trp_option_table;
    trp_options *o = fresh();
    for (; t->key; t++) {
        if (t[1].key)
            g_assert_cmpstr(t->key, <, t[1].key);
        g_assert_nonnull(t->help);
        g_assert_null(strchr(t->help, '\n'));
        bool family = strchr(t->key, '*') != NULL;
        if (!family && *trp_options_text(o, t->key))
            set(o, t->key, trp_options_text(o, t->key), TRP_ORIGIN_SITE);
        for (const struct trp_option *u = t + 1; u->key; u++) {
            g_autofree char *a = g_strdelimit(g_strdup(t->key), ".", '_');
            g_autofree char *b = g_strdelimit(g_strdup(u->key), ".", '_');
            g_assert_cmpstr(a, !=, b);
        }
    }
    g_assert_cmpint(trp_options_check(o, NULL), ==, 0);
    trp_options_free(o);
}

TEST("defaults are those of the contract")
{
    trp_options *o = fresh();
    g_assert_cmpint(trp_options_time_ns(o, "locality.wait.node"), ==, 3 * SECOND);
    g_assert_cmpint(trp_options_time_ns(o, "network.timeout"), ==, 120 * SECOND);
    g_assert_cmpint(trp_options_time_ns(o, "executor.heartbeatInterval"), ==,
                    10 * SECOND);
    g_assert_cmpint(trp_options_time_ns(o, "run.grace"), ==, 30 * SECOND);
    g_assert_cmpint(trp_options_int(o, "task.maxFailures"), ==, 4);
    g_assert_cmpint(trp_options_int(o, "task.cpus"), ==, 1);
    g_assert_cmpint(trp_options_memory_mib(o, "executor.memory"), ==, 1024);
    g_assert_cmpint(trp_options_memory_mib(o, "executor.memoryOverhead"), ==, -1);
    g_assert_cmpint(trp_options_memory_mib(o, "executor.minMemoryOverhead"), ==, 64);
    g_assert_cmpfloat(trp_options_number(o, "executor.memoryOverheadFactor"), ==, 0.10);
    g_assert_false(trp_options_bool(o, "scheduler.resource.profileMergeConflicts"));
    g_assert_cmpstr(trp_options_text(o, "alloc.reuse"), ==, "exact");
    g_assert_cmpstr(trp_options_text(o, "alloc.release"), ==, "stage-end");
    g_assert_cmpstr(trp_options_text(o, "events.tasks"), ==, "auto");
    g_assert_cmpstr(trp_options_text(o, "task.resource.placement"), ==, "first");
    g_assert_cmpstr(trp_options_text(o, "dynamicAllocation.maxExecutors"), ==, "");
    g_assert_cmpstr(trp_options_text(o, "executor.resource.gpu.amount"), ==, "");
    g_assert_false(trp_options_is_set(o, "executor.cores"));
    g_assert_cmpstr(trp_options_where(o, "executor.cores"), ==, "");
    set(o, "locality.wait", "250", TRP_ORIGIN_SITE);
    g_assert_cmpint(trp_options_time_ns(o, "locality.wait.rack"), ==, SECOND / 4);
    set(o, "locality.wait.rack", "0", TRP_ORIGIN_SITE);
    g_assert_cmpint(trp_options_time_ns(o, "locality.wait.rack"), ==, 0);
    trp_options_free(o);
}

TEST("a weaker origin never wins")
{
    trp_options *o = fresh();
    set(o, "task.cpus", "3", TRP_ORIGIN_PIPELINE);
    set(o, "task.cpus", "2", TRP_ORIGIN_SITE);
    g_assert_cmpint(trp_options_int(o, "task.cpus"), ==, 3);
    set(o, "task.cpus", "4", TRP_ORIGIN_ENVIRONMENT);
    set(o, "task.cpus", "5", TRP_ORIGIN_COMMAND_LINE);
    set(o, "task.cpus", "6", TRP_ORIGIN_COMMAND_LINE);
    g_assert_cmpint(trp_options_int(o, "task.cpus"), ==, 6);
    g_assert_cmpint(trp_options_origin(o, "task.cpus"), ==, TRP_ORIGIN_COMMAND_LINE);
    g_assert_cmpstr(trp_origin_name(TRP_ORIGIN_COMMAND_LINE), ==, "command line");
    g_assert_cmpstr(trp_options_where(o, "task.cpus"), ==, "here");
    trp_options_free(o);
}

TEST("each wrong value is told")
{
    refused("locality.wiat", "1",
            "--set: unknown option \"locality.wiat\"; did you mean \"locality.wait\"?");
    refused(
        "nonsense", "1",
        "--set: unknown option \"nonsense\"; see `troupe config` for those there are");
    refused("executor.resource.gpu", "1",
            "--set: unknown option \"executor.resource.gpu\"; write "
            "executor.resource.R.amount with a resource's name for R");
    refused("executor.resource.cores.amount", "1",
            "--set: unknown option \"executor.resource.cores.amount\"; write "
            "executor.resource.R.amount with a resource's name for R");
    refused("alloc.max_offHeap", "1",
            "--set: unknown option \"alloc.max_offHeap\"; write alloc.max_R with a "
            "resource's name for R");
    refused(
        "dynamicAllocation.executorAllocationRatio", "0",
        "--set: dynamicAllocation.executorAllocationRatio: 0 is too small; write at "
        "least 1/1000000");
    refused("dynamicAllocation.maxExecutors", "0",
            "--set: dynamicAllocation.maxExecutors: 0 is too small; write at least 1");
    refused(
        "dynamicAllocation.schedulerBacklogTimeout", "0",
        "--set: dynamicAllocation.schedulerBacklogTimeout: 0 is too small; write at "
        "least 1ms");
    refused("task.resource..amount", "1",
            "--set: unknown option \"task.resource..amount\"; write "
            "task.resource.R.amount with a resource's name for R");
    refused("task.cpus", "0", "--set: task.cpus: 0 is too small; write at least 1");
    refused("task.cpus", "1.5",
            "--set: task.cpus: \"1.5\" is not a whole number; write a whole number");
    refused("task.cpus", "1 ",
            "--set: task.cpus: \"1 \" is not a whole number; write a whole number");
    refused("task.maxFailures", "99999999999999999999",
            "--set: task.maxFailures: 99999999999999999999 is too large; write at most "
            "1000000");
    refused("locality.wait", "3 s",
            "--set: locality.wait: \"3 s\" is not a time; write a number and a unit of "
            "us, ms, s, m, h, d, such as 30s");
    refused(
        "alloc.look_ahead", "soon",
        "--set: alloc.look_ahead: \"soon\" is neither auto|off nor a time; write one "
        "of them");
    refused("alloc.reuse", "fi",
            "--set: alloc.reuse: \"fi\" is none of its words; write exact|fit|never");
    refused("alloc.reuse", "",
            "--set: alloc.reuse: \"\" is none of its words; write exact|fit|never");
    refused(
        "memory.offHeap.enabled", "yes",
        "--set: memory.offHeap.enabled: \"yes\" is not true or false; write true or "
        "false");
    refused("executor.memoryOverheadFactor", "1e3",
            "--set: executor.memoryOverheadFactor: \"1e3\" is not a decimal number; "
            "write a decimal number");
    refused(
        "task.resource.gpu.amount", "1.5",
        "--set: task.resource.gpu.amount: 1.5 is neither a whole number nor at most "
        "1; write one of them");
    refused("executor.resource.gpu.amount", "0.5",
            "--set: executor.resource.gpu.amount: \"0.5\" is not a whole number; write "
            "a whole number");
}

TEST("a refused value changes nothing")
{
    trp_options *o = fresh();
    set(o, "task.cpus", "3", TRP_ORIGIN_SITE);
    g_assert_cmpint(
        trp_options_set(o, "task.cpus", "x", TRP_ORIGIN_COMMAND_LINE, "--set", NULL),
        ==, TRP_EINVAL);
    g_assert_cmpint(trp_options_int(o, "task.cpus"), ==, 3);
    g_assert_cmpint(trp_options_origin(o, "task.cpus"), ==, TRP_ORIGIN_SITE);
    trp_options_free(o);
}

static int environment(trp_options *o, const char *variable, trp_error *err)
{
    char *copy = g_strdup(variable);
    char *v[] = {g_strdup("TROUPE_SITE=x"), g_strdup("TROUPE_OPT_broken"), copy, NULL};
    int code = trp_options_from_environment(o, v, err);
    for (char **p = v; *p; p++)
        g_free(*p);
    return code;
}

TEST("variables map back to keys")
{
    static const char *const good[][2] = {
        {"alloc_max_executors=7",                   "alloc.max_executors"            },
        {"alloc_max_cores=7",                       "alloc.max_cores"                },
        {"alloc_max_gpu=7",                         "alloc.max_gpu"                  },
        {"locality_wait_node=7",                    "locality.wait.node"             },
        {"dynamicAllocation_minExecutors=7",        "dynamicAllocation.minExecutors" },
        {"executor_pyspark_memory=7",               "executor.pyspark.memory"        },
        {"executor_resource_gpu_amount=7",          "executor.resource.gpu.amount"   },
        {"executor_resource_my_gpu_amount=7",       "executor.resource.my_gpu.amount"},
        {"executor_resource_gpu_discoveryScript=7",
         "executor.resource.gpu.discoveryScript"                                     },
        {"task_resource_gpu_amount=7",              "task.resource.gpu.amount"       },
        {"task_resource_placement_amount=7",        "task.resource.placement.amount" },
    };
    trp_options *o = fresh();
    trp_error err = {0};
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++) {
        g_autofree char *variable = g_strconcat("TROUPE_OPT_", good[i][0], NULL);
        g_assert_cmpint(environment(o, variable, &err), ==, 0);
        g_assert_cmpstr(trp_options_text(o, good[i][1]), ==, "7");
        g_assert_cmpint(trp_options_origin(o, good[i][1]), ==, TRP_ORIGIN_ENVIRONMENT);
    }
    g_assert_cmpint(environment(o, "TROUPE_OPT_task_resource_placement=pack", &err), ==,
                    0);
    g_assert_cmpstr(trp_options_where(o, "task.resource.placement"), ==,
                    "TROUPE_OPT_task_resource_placement");

    g_assert_cmpint(environment(o, "TROUPE_OPT_locality_wiat=3", &err), ==, TRP_EINVAL);
    g_assert_cmpstr(err.text, ==,
                    "TROUPE_OPT_locality_wiat: no option has this name; did you mean "
                    "\"TROUPE_OPT_locality_wait\"?");
    g_assert_cmpint(environment(o, "TROUPE_OPT_=3", &err), ==, TRP_EINVAL);
    g_assert_cmpint(environment(o, "TROUPE_OPT_executor_resource__amount=3", &err), ==,
                    TRP_EINVAL);
    g_assert_cmpint(environment(o, "TROUPE_OPT_TASK_CPUS=3", &err), ==, TRP_EINVAL);
    g_assert_cmpint(environment(o, "TROUPE_OPT_task_cpus=x", &err), ==, TRP_EINVAL);
    g_assert_true(g_str_has_prefix(err.text, "TROUPE_OPT_task_cpus: task.cpus: \"x\""));
    trp_options_free(o);
}

static void check_fails(const char *a, const char *va, const char *b, const char *vb,
                        const char *text)
{
    trp_options *o = fresh();
    trp_error err = {0};
    set(o, a, va, TRP_ORIGIN_SITE);
    if (b)
        g_assert_cmpint(
            trp_options_set(o, b, vb, TRP_ORIGIN_PIPELINE, "f.yaml:3:4", &err), ==, 0);
    g_assert_cmpint(trp_options_check(o, &err), ==, TRP_EINVAL);
    g_assert_cmpstr(err.text, ==, text);
    trp_options_free(o);
}

TEST("bounds against each other are checked")
{
    check_fails("executor.heartbeatInterval", "20s", "network.timeout", "15s",
                "f.yaml:3:4: executor.heartbeatInterval 20s is above network.timeout "
                "15s; make it smaller");
    check_fails(
        "network.timeout", "9s", NULL, NULL,
        "here: executor.heartbeatInterval 10s is above network.timeout 9s; make "
        "it smaller");
    check_fails("dynamicAllocation.minExecutors", "3", "dynamicAllocation.maxExecutors",
                "2",
                "f.yaml:3:4: dynamicAllocation.minExecutors 3 is above "
                "dynamicAllocation.maxExecutors 2; make it smaller");
    check_fails("alloc.max_executors", "2", "dynamicAllocation.minExecutors", "3",
                "f.yaml:3:4: dynamicAllocation.minExecutors 3 is above "
                "alloc.max_executors 2; make it smaller");
    check_fails(
        "excludeOnFailure.enabled", "true", "task.maxFailures", "2",
        "f.yaml:3:4: excludeOnFailure.task.maxTaskAttemptsPerNode 2 is not below "
        "task.maxFailures 2; make it smaller");
    check_fails(
        "dynamicAllocation.shuffleTracking.enabled", "false", "shuffle.host_files",
        "false",
        "f.yaml:3:4: with shuffle.host_files, shuffle.service.enabled and "
        "dynamicAllocation.shuffleTracking.enabled all false an executor that goes "
        "takes map outputs along that others read; set one of them to true");
    check_fails(
        "memory.offHeap.enabled", "true", NULL, NULL,
        "here: memory.offHeap.enabled true is set, but memory.offHeap.size 0; set "
        "the size too");
}

TEST("resources are bounded")
{
    trp_options *o = fresh();
    trp_error err;
    char key[64];
    for (int i = 0; i < TRP_PROFILE_RESOURCES; i++) {
        g_snprintf(key, sizeof(key), "%s.resource.r%d.amount",
                   i % 2 ? "task" : "executor", i);
        set(o, key, "1", TRP_ORIGIN_SITE);
    }
    set(o, "task.resource.r0.amount", "1/2", TRP_ORIGIN_SITE);
    g_assert_cmpint(trp_options_set(o, "task.resource.x.amount", "1", TRP_ORIGIN_SITE,
                                    "here", &err),
                    ==, TRP_EINVAL);
    struct trp_profile_defaults d;
    trp_options_profile_defaults(o, &d);
    g_assert_cmpuint(d.nresources, ==, TRP_PROFILE_RESOURCES);
    trp_options_free(o);
}

struct walk {
    const char *previous;
    uint32_t n, families;
};

static int visit(void *context, const struct trp_option_view *v)
{
    struct walk *w = context;
    if (w->previous)
        g_assert_cmpstr(w->previous, <, v->key);
    w->previous = v->key;
    w->n++;
    w->families += g_str_has_suffix(v->key, ".amount");
    g_assert_nonnull(v->option);
    return 0;
}

TEST("all are visited in order")
{
    struct walk w = {0};
    trp_options *o = fresh();
    set(o, "task.resource.zeta.amount", "1/3", TRP_ORIGIN_SITE);
    set(o, "executor.resource.gpu.amount", "2", TRP_ORIGIN_SITE);
    set(o, "executor.resource.fpga.amount", "2", TRP_ORIGIN_SITE);
    set(o, "alloc.max_fpga", "2", TRP_ORIGIN_SITE);
    set(o, "executor.resource.gpu.discoveryScript", "/x", TRP_ORIGIN_SITE);
    g_assert_cmpint(trp_options_each(o, visit, &w), ==, 0);
    g_assert_cmpuint(w.families, ==, 3);
    uint32_t table = 0;
    while (trp_option_table[table].key)
        table++;
    g_assert_cmpuint(w.n, ==, table - 4 + 5);
    trp_options_free(o);
}

TEST("core gets its values")
{
    struct trp_profile_defaults d, plain;
    struct trp_engine_config c;
    trp_options *o = fresh();
    trp_options_profile_defaults(o, &d);
    trp_options_profile_defaults(NULL, &plain);
    g_assert_cmpmem(&d, sizeof(d), &plain, sizeof(plain));
    set(o, "executor.cores", "3", TRP_ORIGIN_SITE);
    set(o, "executor.memoryOverhead", "0", TRP_ORIGIN_SITE);
    set(o, "memory.offHeap.size", "1g", TRP_ORIGIN_SITE);
    set(o, "executor.resource.gpu.amount", "2", TRP_ORIGIN_SITE);
    set(o, "task.resource.gpu.amount", "1/3", TRP_ORIGIN_SITE);
    trp_options_profile_defaults(o, &d);
    g_assert_cmpint(d.executor_cores, ==, 3);
    g_assert_true(d.cores_configured);
    g_assert_cmpint(d.overhead_mib, ==, 0);
    g_assert_cmpint(d.offheap_mib, ==, 0);
    g_assert_cmpuint(d.nresources, ==, 1);
    g_assert_cmpstr(d.resources[0].name, ==, "gpu");
    g_assert_cmpint(d.resources[0].executor, ==, 2);
    g_assert_cmpint(d.resources[0].task, ==, TRP_ONE / 3);
    set(o, "memory.offHeap.enabled", "true", TRP_ORIGIN_SITE);
    trp_options_profile_defaults(o, &d);
    g_assert_cmpint(d.offheap_mib, ==, 1024);

    set(o, "alloc.reuse", "never", TRP_ORIGIN_SITE);
    set(o, "alloc.release", "idle", TRP_ORIGIN_SITE);
    set(o, "task.resource.placement", "pack", TRP_ORIGIN_SITE);
    set(o, "locality.wait.node", "1s", TRP_ORIGIN_SITE);
    set(o, "dynamicAllocation.maxExecutors", "5", TRP_ORIGIN_SITE);
    trp_options_engine_config(o, &c);
    g_assert_cmpint(c.reuse, ==, TRP_REUSE_NEVER);
    g_assert_true(c.release_idle);
    g_assert_true(c.pack);
    g_assert_cmpint(c.locality_wait_ns[TRP_PROCESS_LOCAL], ==, 3 * SECOND);
    g_assert_cmpint(c.locality_wait_ns[TRP_NODE_LOCAL], ==, SECOND);
    g_assert_cmpint(c.locality_wait_ns[TRP_ANY], ==, 0);
    g_assert_cmpuint(c.max_executors, ==, 5);
    g_assert_cmpuint(c.alloc_max_executors, ==, UINT32_MAX);
    g_assert_cmpuint(c.max_failures, ==, 4);
    trp_options_free(o);
}

/* Nothing set: Spark's defaults, and ours. */
TEST("nothing set is Spark's defaults and ours")
{
    struct trp_engine_config c, plain;
    trp_options *o = fresh();
    memset(&c, 0, sizeof(c));
    memset(&plain, 0, sizeof(plain));
    trp_options_engine_config(NULL, &plain);
    trp_options_engine_config(o, &c);
    g_assert_cmpmem(&c, sizeof(c), &plain, sizeof(plain));
    trp_options_free(o);
    g_assert_cmpuint(c.max_failures, ==, 4);
    g_assert_cmpint(c.max_result_bytes, ==, INT64_C(1) << 30);
    g_assert_cmpint(c.locality_wait_ns[TRP_RACK_LOCAL], ==, 3 * SECOND);
    g_assert_cmpint(c.reuse, ==, TRP_REUSE_EXACT);
    g_assert_cmpint(c.look_ahead, ==, TRP_LOOK_AHEAD_AUTO);
    g_assert_cmpint(c.allocation_ratio, ==, TRP_ONE);
    g_assert_cmpint(c.caps.cores, ==, 0);
    g_assert_cmpint(c.decommission.force_kill_ns, ==, 0);
    g_assert_true(c.host_files && c.shuffle_tracking && c.reduce_locality);
    g_assert_false(c.speculation.enabled);
    g_assert_cmpint(c.speculation.interval_ns, ==, SECOND / 10);
    g_assert_cmpfloat(c.speculation.quantile, ==, 0.9);
    g_assert_cmpfloat(c.speculation.multiplier, ==, 3);
    g_assert_cmpint(c.speculation.min_runtime_ns, ==, SECOND / 10);
    g_assert_cmpint(c.speculation.duration_threshold_ns, ==, 0);
    g_assert_true(c.speculation.efficiency);
    g_assert_cmpfloat(c.speculation.rate_multiplier, ==, 0.75);
    g_assert_cmpfloat(c.speculation.long_run_factor, ==, 2);
    g_assert_cmpint(c.speculation.kill_interval_ns, ==, 0);
    g_assert_false(c.exclusion.enabled);
    g_assert_cmpint(c.exclusion.timeout_ns, ==, 3600 * SECOND);
    g_assert_cmpuint(c.exclusion.task_attempts_per_executor, ==, 1);
    g_assert_cmpuint(c.exclusion.task_attempts_per_node, ==, 2);
    g_assert_cmpuint(c.exclusion.stage_tasks_per_executor, ==, 2);
    g_assert_cmpuint(c.exclusion.stage_executors_per_node, ==, 2);
    g_assert_cmpuint(c.exclusion.app_tasks_per_executor, ==, 2);
    g_assert_cmpuint(c.exclusion.app_executors_per_node, ==, 2);
    g_assert_false(c.exclusion.fetch_failure || c.exclusion.kill ||
                   c.exclusion.kill_decommission);
    g_assert_cmpint(c.exclusion.unschedulable_ns, ==, 120 * SECOND);
}

/* A value that is not the default; to be freed. */
static char *other_value(const struct trp_option *t)
{
    switch (t->type) {
    case TRP_OPTION_BOOL:
        return g_strdup(strcmp(t->fallback, "true") == 0 ? "false" : "true");
    case TRP_OPTION_CHOICE: { /* the next word, or the first */
        char **words = g_strsplit(t->choices, "|", -1), *value;
        value = g_strdup(words[strcmp(words[0], t->fallback) == 0]);
        g_strfreev(words);
        return value;
    }
    case TRP_OPTION_TIME:
        return g_strdup("7s");
    case TRP_OPTION_MEMORY:
        return g_strdup("7m");
    case TRP_OPTION_AMOUNT:
        return g_strdup("1/2");
    case TRP_OPTION_NUMBER: /* within the bounds of all of them */
        return g_strdup(t->max && atof(t->max) <= 1 ? "0.5" : "7");
    default:
        return g_strdup("7");
    }
}

/* Each option is the engine's, a profile's, or one of those listed here. */
TEST("each has an effect, or is somebody else's")
{
    static const char *const elsewhere[] = {
        "admission.munge",
        "alloc.placement",
        "alloc.shrink",
        "comm.mac",
        "comm.transport",
        "driver.cores",
        "driver.memory",
        "dynamicAllocation.enabled",
        "events.engine",
        "events.tasks",
        "executor.heartbeatInterval",
        "executor.resource.*.discoveryScript",
        "memory.fraction",
        "metrics.file",
        "metrics.listen",
        "network.timeout",
        "outputs.wait",
        "report.html",
        "resume.check",
        "run.fail_fast",
        "run.grace",
        "run.shell",
        "scheduler.allocation.file",
        "shuffle.compress",
        "shuffle.readHostLocalDisk",
        "slurm.max_rpcs_per_minute",
        "slurm.poll",
        "storage.decommission.enabled",
        "storage.decommission.shuffleBlocks.enabled",
        NULL,
    };
    for (const struct trp_option *t = trp_option_table; t->key; t++) {
        struct trp_engine_config c, plain;
        struct trp_profile_defaults d, plain_d;
        g_autofree char *value = other_value(t);
        GString *key = g_string_new(t->key);
        g_string_replace(key, "*", "gpu", 0);
        trp_options *o = fresh();
        memset(&c, 0, sizeof(c));
        memset(&plain, 0, sizeof(plain));
        memset(&d, 0, sizeof(d));
        memset(&plain_d, 0, sizeof(plain_d));
        if (strcmp(t->key, "memory.offHeap.size") == 0)
            set(o, "memory.offHeap.enabled", "true", TRP_ORIGIN_SITE);
        if (strcmp(t->key, "memory.offHeap.enabled") == 0)
            set(o, "memory.offHeap.size", "7m", TRP_ORIGIN_SITE);
        trp_options_engine_config(o, &plain);
        trp_options_profile_defaults(o, &plain_d);
        set(o, key->str, value, TRP_ORIGIN_COMMAND_LINE);
        trp_options_engine_config(o, &c);
        trp_options_profile_defaults(o, &d);
        bool effect =
            memcmp(&c, &plain, sizeof(c)) != 0 || memcmp(&d, &plain_d, sizeof(d)) != 0;
        bool listed = g_strv_contains(elsewhere, t->key);
        if (effect == listed)
            g_error("%s = %s: %s", key->str, value,
                    effect ? "is listed as of no effect here" : "has no effect");
        trp_options_free(o);
        g_string_free(key, TRUE);
    }
}

TEST("the engine gets the limits of its executors")
{
    struct trp_engine_config c;
    trp_options *o = fresh();
    set(o, "alloc.grow", "ramp", TRP_ORIGIN_SITE);
    set(o, "alloc.max_gpu", "8", TRP_ORIGIN_SITE);
    set(o, "alloc.max_memory", "1g", TRP_ORIGIN_SITE);
    set(o, "dynamicAllocation.minExecutors", "2", TRP_ORIGIN_SITE);
    set(o, "executor.instances", "3", TRP_ORIGIN_SITE);
    set(o, "dynamicAllocation.executorAllocationRatio", "1/3", TRP_ORIGIN_SITE);
    set(o, "dynamicAllocation.schedulerBacklogTimeout", "2s", TRP_ORIGIN_SITE);
    set(o, "dynamicAllocation.shuffleTracking.timeout", "5s", TRP_ORIGIN_SITE);
    trp_options_engine_config(o, &c);
    g_assert_true(c.grow_ramp);
    g_assert_cmpint(c.look_ahead, ==, TRP_LOOK_AHEAD_AUTO);
    g_assert_cmpuint(c.caps.ncustom, ==, 1);
    g_assert_cmpstr(c.caps.custom[0].name, ==, "gpu");
    g_assert_cmpint(c.caps.custom[0].most, ==, 8);
    g_assert_cmpint(c.caps.memory_mib, ==, 1024);
    g_assert_cmpuint(c.initial_executors, ==, 3);
    g_assert_cmpint(c.allocation_ratio, ==, TRP_ONE / 3);
    g_assert_cmpint(c.sustained_timeout_ns, ==, 2 * SECOND);
    g_assert_cmpint(c.shuffle_timeout_ns, ==, 5 * SECOND);
    g_assert_cmpint(c.cached_timeout_ns, ==, INT64_MAX);
    set(o, "alloc.look_ahead", "off", TRP_ORIGIN_SITE);
    trp_options_engine_config(o, &c);
    g_assert_cmpint(c.look_ahead, ==, TRP_LOOK_AHEAD_OFF);
    set(o, "alloc.look_ahead", "90s", TRP_ORIGIN_SITE);
    trp_options_engine_config(o, &c);
    g_assert_cmpint(c.look_ahead, ==, TRP_LOOK_AHEAD_TIME);
    g_assert_cmpint(c.look_ahead_ns, ==, 90 * SECOND);
    trp_options_free(o);
}

TEST("the old name of exclusion holds below its own")
{
    static const struct {
        const char *enabled, *timeout, *legacy; /* NULL: not set */
        bool want_enabled;
        int64_t want_timeout;
    } cases[] = {
        {NULL,    NULL, "0",  false, 0   },
        {NULL,    NULL, "5s", true,  5   },
        {NULL,    "7s", "5s", true,  7   },
        {NULL,    "7s", "0",  false, 7   },
        {NULL,    "7s", NULL, false, 7   },
        {"false", NULL, "5s", false, 5   },
        {"true",  NULL, NULL, true,  3600},
        {"true",  "7s", "0",  true,  7   },
    };
    struct trp_engine_config c;
    trp_error err;
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        trp_options *o = fresh();
        if (cases[i].enabled)
            set(o, "excludeOnFailure.enabled", cases[i].enabled, TRP_ORIGIN_SITE);
        if (cases[i].timeout)
            set(o, "excludeOnFailure.timeout", cases[i].timeout, TRP_ORIGIN_SITE);
        if (cases[i].legacy)
            set(o, "scheduler.executorTaskExcludeOnFailureTime", cases[i].legacy,
                TRP_ORIGIN_SITE);
        g_assert_cmpint(trp_options_check(o, NULL), ==, 0);
        trp_options_engine_config(o, &c);
        g_assert_cmpint(c.exclusion.enabled, ==, cases[i].want_enabled);
        g_assert_cmpint(c.exclusion.timeout_ns, ==, cases[i].want_timeout * SECOND);
        trp_options_free(o);
    }
    trp_options *o = fresh();
    set(o, "excludeOnFailure.enabled", "true", TRP_ORIGIN_SITE);
    set(o, "scheduler.executorTaskExcludeOnFailureTime", "0", TRP_ORIGIN_SITE);
    g_assert_cmpint(trp_options_check(o, &err), ==, TRP_EINVAL);
    g_assert_nonnull(strstr(err.text, "excludeOnFailure.timeout"));
    trp_options_free(o);
}

TEST("times are exact")
{
    static const struct {
        const char *text;
        int64_t bare, ns;
    } good[] = {
        {"250",          1000000, 250000000                   },
        {"250",          SECOND,  250 * SECOND                },
        {"0",            1,       0                           },
        {"1.5s",         1,       SECOND + SECOND / 2         },
        {".5h",          1,       1800 * SECOND               },
        {"7us",          1,       7000                        },
        {"7ms",          1,       7000000                     },
        {"2m",           1,       120 * SECOND                },
        {"2d",           1,       172800 * SECOND             },
        {"0.000000001s", 1,       1                           },
        {"36500d",       1,       INT64_C(3153600000) * SECOND},
    };
    static const char *const wrong[] = {
        "",     "s",    ".",      ".s",   "-1s",
        "+1",   "1S",   "1 s",    " 1",   "1s ",
        "1e3",  "1min", "36501d", "1..5", "9999999999999999999",
        "0x10", "inf"};
    int64_t ns;
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++) {
        g_assert_cmpint(trp_time_parse(good[i].text, good[i].bare, &ns, NULL), ==, 0);
        g_assert_cmpint(ns, ==, good[i].ns);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_test_message("'%s'", wrong[i]);
        g_assert_cmpint(trp_time_parse(wrong[i], 1, &ns, NULL), ==, TRP_EINVAL);
    }
}
