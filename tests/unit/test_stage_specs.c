/*
 * Every key of a stage that matters to the engine arrives there, in a real run (as the
 * driver submits it) and in a virtual one (as its trace has it).
 */
#include <unistd.h>

#include "conf/pipeline_load.h"
#include "driver_run.h"
#include "events/engine_trace.h"
#include "sim/run/policies.h"
#include "unit.h"

/* Stage `s` with one more key, and what the engine is to know of it then. */
struct key {
    const char *yaml;
    bool (*arrived)(const struct trp_stage_spec *s);
};

#define KEY(name, condition)                                                           \
    static bool name(const struct trp_stage_spec *s)                                   \
    {                                                                                  \
        return condition;                                                              \
    }
KEY(plain, !strcmp(s->name, "s") && s->profile.n == 0 && s->kind == TRP_STAGE_TASKS &&
               s->nparents == 0 && s->tasks_known && s->ntasks == 1 && !s->barrier)
KEY(profile, s->profile.n == 1)
KEY(tasks, s->tasks_known && s->ntasks == 3)
KEY(items, s->tasks_known && s->ntasks == 2)
KEY(gang, s->kind == TRP_STAGE_GANG && s->ranks == 2)
KEY(barrier, s->barrier)
KEY(after, s->nparents == 1 && s->parents[0].stage == 0 && !s->parents[0].each)
KEY(each, s->nparents == 1 && s->parents[0].stage == 0 && s->parents[0].each)
KEY(prefer, !s->tasks_known)
KEY(max_running, s->max_running == 3)
KEY(tolerate, s->tolerate == 2)
KEY(tolerate_share, s->tolerate_ppm == 25000)
KEY(max_failures, s->max_failures == 7)
KEY(tries, s->max_failures == 1 && s->max_losses == 4 && s->max_repeats == 3)
KEY(more_tries, s->max_failures == 6 && s->max_losses == 4 && s->max_repeats == 5)
KEY(memory_factor, s->memory_factor_ppm == 1500000)
KEY(not_on, s->nnot_on == 2 && s->not_on[0] == 3 && s->not_on[1] == 4)
KEY(executors, s->min_executors == 1 && s->max_executors == 2)
KEY(look_ahead, s->look_ahead == TRP_LOOK_AHEAD_OFF)
KEY(pool, s->pool && !strcmp(s->pool, "q"))
KEY(look_ahead_time,
    s->look_ahead == TRP_LOOK_AHEAD_TIME && s->look_ahead_ns == 90000000000)

static const struct key keys[] = {
    {"",                                    plain          },
    {"profile: p",                          profile        },
    {"tasks: 3",                            tasks          },
    {"foreach: {items: [a, b]}",            items          },
    {"mpi: {ranks: 2}",                     gang           },
    {"barrier: true",                       barrier        },
    {"after: [above]",                      after          },
    {"after: [{stage: above, each: true}]", each           },
    {"prefer: [h1, h2/3]",                  prefer         },
    {"max_running: 3",                      max_running    },
    {"tolerate: 2",                         tolerate       },
    {"tolerate: 2.5%",                      tolerate_share },
    {"retries: {max_failures: 7}",          max_failures   },
    {"retries: {memory_factor: 1.5}",       memory_factor  },
    {"retries: {not_on: [3, 4]}",           not_on         },
    {"retries: {memory_factor: 2}",         tries          },
    {"retries: {max_failures: 6}",          more_tries     },
    {"executors: {min: 1, max: 2}",         executors      },
    {"executors: {look_ahead: \"off\"}",    look_ahead     },
    {"executors: {look_ahead: 90s}",        look_ahead_time},
    {"pool: q",                             pool           },
};

static char *yaml_of(const struct key *k)
{
    return g_strdup_printf("troupe: 1\n"
                           "profiles: {p: {executor: {cores: 2}, task: {cpus: 2}}}\n"
                           "stages:\n"
                           "  - {name: above, run: x}\n"
                           "  - {name: s, run: x%s%s}\n",
                           *k->yaml ? ", " : "", k->yaml);
}

static const struct trp_stage_spec *stage_s(const struct trp_job_spec *job)
{
    for (uint32_t i = 0; i < job->nstages; i++)
        if (strcmp(job->stages[i].name, "s") == 0)
            return &job->stages[i];
    g_error("the job has no stage s");
}

static void real_run(const struct key *k)
{
    struct run r = {.dir = files_new()};
    g_autofree char *yaml = yaml_of(k);
    trp_error err = {0};
    if (run_open(&r, yaml, false, &err) < 0)
        g_error("%s: %s", k->yaml, err.text);
    if (!k->arrived(stage_s(trp_command_job_spec(r.job))))
        g_error("`%s` does not arrive in a real run", k->yaml);
    run_close(&r);
    files_free(r.dir);
}

/* Plays the pipeline with its engine's trace in `record`. */
static void play(const char *yaml, const char *record)
{
    static const char cluster[] =
        "cluster: 1\nnodes: [{name: n, count: 2, cores: 4, memory: 16g, inside: 2}]\n";
    static const char durations[] = "durations: 1\ndefault: 1s\n";
    struct trp_virtual_result result;
    struct trp_policy_run policy;
    trp_pipeline *p = pipeline_of(yaml);
    trp_options *o;
    trp_sim_cluster *c;
    trp_sim_durations *d;
    trp_error err;
    uint32_t ntasks[2];
    if (trp_options_new(&o, &err) < 0 ||
        trp_sim_cluster_parse("c", cluster, strlen(cluster), &c, &err) < 0 ||
        trp_sim_durations_parse("d", durations, strlen(durations), p, &d, &err) < 0)
        g_error("%s", err.text);
    for (uint32_t i = 0; i < 2; i++)
        ntasks[i] = p->stages[i].nitems ? p->stages[i].nitems : p->stages[i].tasks;
    struct trp_virtual_run_config config = {.pipeline = p,
                                            .ntasks = ntasks,
                                            .cluster = c,
                                            .durations = d,
                                            .record = record};
    trp_options_engine_config(o, &config.engine);
    if (trp_policy_apply(&trp_policy_options, o, NULL, &config, &policy, &err) < 0)
        g_error("%s", err.text);
    config.inside = policy.inside;
    if (trp_virtual_run(&config, &result, &err) < 0)
        g_error("%s", err.text);
    trp_virtual_result_free(&result);
    trp_policy_run_free(&policy);
    trp_sim_durations_free(d);
    trp_sim_cluster_free(c);
    trp_options_free(o);
    trp_pipeline_free(p);
}

static void virtual_run(const struct key *k)
{
    char *dir = files_new(), *record = g_build_filename(dir, "trace", NULL);
    g_autofree char *yaml = yaml_of(k);
    struct trp_trace_record t;
    trp_trace_reader *reader;
    trp_error err;
    play(yaml, record);
    if (trp_trace_reader_open(record, &reader, &err) < 0)
        g_error("%s", err.text);
    do
        g_assert_cmpint(trp_trace_reader_next(reader, &t, &err), ==, 1);
    while (t.kind != TRP_TRACE_EVENT || t.event.kind != TRP_EVENT_JOB);
    if (!k->arrived(stage_s(t.event.job.spec)))
        g_error("`%s` does not arrive in a virtual run", k->yaml);
    trp_trace_reader_close(reader);
    unlink(record);
    g_free(record);
    files_free(dir);
}

/* Keys of a stage that the engine does not know of: they are the driver's. */
static const char *const drivers[] = {
    "name",    "run",     "argv",  "env",       "allow_empty", "cwd",
    "timeout", "outputs", "when",  "task_logs", "prelude",     "wrap",
    "inputs",  "always",  "shell", "params",    NULL};

/* A new key is tried above, or named as the driver's. */
TEST("each key of a stage is tried")
{
    for (uint32_t i = 0; i < trp_pipeline_nstage_keys; i++) {
        const char *name = trp_pipeline_stage_keys[i].name;
        bool tried = false;
        for (size_t k = 0; k < G_N_ELEMENTS(keys); k++)
            tried = tried || (g_str_has_prefix(keys[k].yaml, name) &&
                              keys[k].yaml[strlen(name)] == ':');
        if (tried == g_strv_contains(drivers, name))
            g_error("%s: %s", name,
                    tried ? "tried, but named as the driver's"
                          : "nobody tries whether it arrives in the engine");
    }
}

TEST("a real run has every key of a stage")
{
    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++)
        real_run(&keys[i]);
}

TEST("a virtual run has every key of a stage")
{
    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++)
        virtual_run(&keys[i]);
}
