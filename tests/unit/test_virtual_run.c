/*
 * Whole runs in virtual time, with times and hours worked out by hand.
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/run/policies.h"
#include "sim/run/replay.h"
#include "sim/run/virtual_report.h"
#include "unit.h"

/* Two nodes of 4 cores, one of them inside; 100 s in the queue, 10 s to start. */
#define TWO_NODES                                                                      \
    "cluster: 1\n"                                                                     \
    "queue: {wait: 100s}\n"                                                            \
    "start_up: 10s\n"                                                                  \
    "nodes: [{name: n, count: 2, cores: 4, memory: 16g, inside: 1}]\n"
#define EIGHT_TASKS                                                                    \
    "troupe: 1\n"                                                                      \
    "profiles: {four: {executor: {cores: 4, memory: 1g}, task: {cpus: 1}}}\n"          \
    "stages: [{name: a, tasks: 8, profile: four, run: x}]\n"

struct play {
    trp_pipeline *p;
    trp_options *o;
    trp_sim_cluster *c;
    trp_sim_durations *d;
    uint32_t ntasks[16];
    struct trp_policy_run run;
    struct trp_virtual_result r;
    int rc;
    trp_error err;
};

static void load(struct play *v, const char *cluster, const char *durations,
                 const char *pipeline)
{
    trp_error err;
    memset(v, 0, sizeof *v);
    if (trp_pipeline_parse("p.yaml", pipeline, strlen(pipeline), &v->p, &err) < 0 ||
        trp_options_new(&v->o, &err) < 0 ||
        trp_pipeline_options(v->p, v->o, &err) < 0 ||
        trp_sim_cluster_parse("c.yaml", cluster, strlen(cluster), &v->c, &err) < 0 ||
        trp_sim_durations_parse("d.yaml", durations, strlen(durations), v->p, &v->d,
                                &err) < 0)
        g_error("%s", err.text);
    g_assert_cmpuint(v->p->nstages, <=, 16);
    for (uint32_t i = 0; i < v->p->nstages; i++)
        if (!trp_sim_durations_tasks(v->d, i, &v->ntasks[i]))
            v->ntasks[i] = v->p->stages[i].spec.ranks ? 1 : v->p->stages[i].tasks;
}

static void play(struct play *v, const char *policy, uint64_t seed, const char *record)
{
    const struct trp_policy *p = policy ? trp_policy_find(policy) : &trp_policy_options;
    struct trp_virtual_run_config c = {.pipeline = v->p,
                                       .ntasks = v->ntasks,
                                       .cluster = v->c,
                                       .durations = v->d,
                                       .seed = seed,
                                       .record = record};
    g_assert_nonnull(p);
    trp_options_engine_config(v->o, &c.engine);
    if (trp_policy_apply(p, v->o, NULL, &c, &v->run, &v->err) < 0)
        g_error("%s", v->err.text);
    c.inside = v->run.inside;
    v->rc = trp_virtual_run(&c, &v->r, &v->err);
}

static void forget(struct play *v)
{
    trp_virtual_result_free(&v->r);
    trp_policy_run_free(&v->run);
}

static void end(struct play *v)
{
    forget(v);
    trp_sim_durations_free(v->d);
    trp_sim_cluster_free(v->c);
    trp_options_free(v->o);
    trp_pipeline_free(v->p);
}

static void good(struct play *v)
{
    if (v->rc < 0)
        g_error("%s", v->err.text);
    g_assert_cmpint(v->r.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

#define SECONDS(ns, s) g_assert_cmpint((ns), ==, (int64_t)((s)*1e9))
#define CORE_SECONDS(a, s) g_assert_cmpfloat_with_epsilon((a).cores, s, 1e-6)

TEST("inside serves both waves")
{
    struct play v;
    load(&v, TWO_NODES, "durations: 1\ndefault: 60s\n", EIGHT_TASKS);
    play(&v, NULL, 0, NULL);
    good(&v);
    /* Driver at 100, executor at 110, waves of 4 until 170 and 230; the second
     * executor's job starts at 200, when nothing is left for it. */
    SECONDS(v.r.start, 100);
    SECONDS(v.r.makespan, 230);
    SECONDS(v.r.stages[0].ready, 100);
    SECONDS(v.r.stages[0].first, 110);
    g_assert_cmpuint(v.r.jobs, ==, 2);
    CORE_SECONDS(v.r.used, 8 * 60);
    CORE_SECONDS(v.r.stages[0].held, 130 * 4);
    g_assert_cmpfloat_with_epsilon(v.r.stages[0].wait, 4 * 10 + 4 * 70, 1e-6);
    end(&v);
}

TEST("an additional job")
{
    struct play v;
    load(&v, TWO_NODES, "durations: 1\nstages: {a: 300s}\n", EIGHT_TASKS);
    play(&v, "inside-first", 0, NULL);
    good(&v);
    /* 110 … 410 inside; tasks that have run for a second are long: the job is asked for
     * at 111 and starts at 211, its executor works 221 … 521. */
    SECONDS(v.r.makespan, 521);
    g_assert_cmpuint(v.r.jobs, ==, 2);
    g_assert_cmpuint(v.r.most_executors, ==, 2);
    CORE_SECONDS(v.r.held, (421 + 310) * 4);
    CORE_SECONDS(v.r.used, 8 * 300);
    g_assert_cmpfloat_with_epsilon(v.r.held.nodes, 421 + 310, 1e-6);
    g_assert_cmpfloat_with_epsilon(v.r.used.nodes, 8 * 300 / 4, 1e-3);
    forget(&v);
    /* Both nodes for the whole run. */
    play(&v, "monolithic", 0, NULL);
    good(&v);
    SECONDS(v.r.makespan, 410);
    g_assert_cmpuint(v.r.jobs, ==, 1);
    CORE_SECONDS(v.r.held, 310 * 8);
    forget(&v);
    /* Both as one job, nothing before it. */
    play(&v, "job-per-stage", 0, NULL);
    good(&v);
    SECONDS(v.r.start, 0);
    SECONDS(v.r.makespan, 410);
    g_assert_cmpuint(v.r.jobs, ==, 1);
    CORE_SECONDS(v.r.held, 310 * 8);
    end(&v);
}

/* A CPU node inside, a GPU node outside. */
#define GPU_OUTSIDE                                                                    \
    "cluster: 1\n"                                                                     \
    "queue: {wait: 100s}\n"                                                            \
    "start_up: 10s\n"                                                                  \
    "nodes:\n"                                                                         \
    "  - {name: c, count: 1, cores: 4, memory: 16g, inside: 1}\n"                      \
    "  - {name: g, count: 1, cores: 8, memory: 16g, devices: {gpu: 2}}\n"
#define THEN_GPU(more)                                                                 \
    "troupe: 1\n"                                                                      \
    "profiles:\n"                                                                      \
    "  four: {executor: {cores: 4, memory: 1g}, task: {cpus: 1}}\n"                    \
    "  card: {executor: {cores: 2, memory: 1g, gpu: 1}, task: {cpus: 2, gpu: 1}}\n"    \
    "stages:\n"                                                                        \
    "  - {name: a, tasks: 8, profile: four, executors: {max: 1}, run: x}\n"            \
    "  - {name: b, tasks: 1, after: [a], profile: card, run: x" more "}\n"

TEST("look ahead")
{
    struct play v;
    load(&v, GPU_OUTSIDE, "durations: 1\nstages: {a: 100s, b: 50s}\n", THEN_GPU(""));
    play(&v, "inside-first", 0, NULL);
    good(&v);
    /* a: 110 … 310; b's job 310 … 410, executor 420, done 470. */
    SECONDS(v.r.stages[1].ready, 310);
    SECONDS(v.r.makespan, 470);
    g_assert_cmpfloat_with_epsilon(v.r.held.devices[0], 60, 1e-6);
    g_assert_cmpfloat_with_epsilon(v.r.used.devices[0], 50, 1e-6);
    forget(&v);
    play(&v, "look-ahead", 0, NULL);
    good(&v);
    /* Asked for when a's first wave is done and 100 s are left: 210; b has its room
     * when a ends, its executor 10 s later. */
    SECONDS(v.r.stages[1].first, 320);
    SECONDS(v.r.makespan, 370);
    g_assert_cmpuint(v.r.jobs, ==, 2);
    g_assert_cmpfloat_with_epsilon(v.r.held.devices[0], 60, 1e-6);
    end(&v);
}

TEST("look-ahead as a stage says")
{
    static const char durations[] = "durations: 1\nstages: {a: 100s, b: 50s}\n";
    struct play v;
    load(&v, GPU_OUTSIDE, durations, THEN_GPU(", executors: {look_ahead: off}"));
    play(&v, "look-ahead", 0, NULL);
    good(&v);
    SECONDS(v.r.makespan, 470);
    end(&v);
    load(&v, GPU_OUTSIDE, durations, THEN_GPU(", executors: {look_ahead: 30s}"));
    play(&v, NULL, 0, NULL);
    good(&v);
    /* Asked for at 280, within a look or two: there at 390. */
    g_assert_cmpint(v.r.stages[1].first, >=, 380 * INT64_C(1000000000));
    g_assert_cmpint(v.r.stages[1].first, <=, 391 * INT64_C(1000000000));
    end(&v);
}

TEST("a job a stage holds all to its end")
{
    struct play v;
    load(&v, TWO_NODES,
         "durations: 1\nstages: {a: {constant: 100s, tasks: 8}, b: {constant: 10s, "
         "tasks: 8}}\n",
         "troupe: 1\n"
         "profiles: {four: {executor: {cores: 4, memory: 1g}, task: {cpus: 1}}}\n"
         "stages:\n"
         "  - {name: a, tasks: 1, profile: four, run: x}\n"
         "  - {name: b, tasks: 1, after: [a], profile: four, run: x}\n");
    play(&v, "job-per-stage", 0, NULL);
    good(&v);
    /* a: job 0 … 100, runs 110 … 210; b: job 210 … 310, runs 320 … 330. */
    SECONDS(v.r.makespan, 330);
    g_assert_cmpuint(v.r.jobs, ==, 2);
    CORE_SECONDS(v.r.held, (110 + 20) * 8);
    CORE_SECONDS(v.r.stages[0].held, 110 * 8);
    CORE_SECONDS(v.r.stages[1].held, 20 * 8);
    end(&v);
}

TEST("gang over nodes")
{
    struct play v;
    load(&v,
         "cluster: 1\nstart_up: 1s\n"
         "nodes: [{name: n, count: 3, cores: 4, memory: 4g, inside: 3}]\n",
         "durations: 1\ndefault: 20s\n",
         "troupe: 1\n"
         "profiles: {r: {executor: {cores: 2, memory: 512m, memoryOverhead: 0}, task: "
         "{cpus: 2}}}\n"
         "stages: [{name: g, mpi: {ranks: 5}, profile: r, run: x}]\n");
    play(&v, NULL, 0, NULL);
    good(&v);
    SECONDS(v.r.makespan, 21);
    CORE_SECONDS(v.r.used, 5 * 2 * 20);
    CORE_SECONDS(v.r.stages[0].held, 5 * 2 * 21);
    CORE_SECONDS(v.r.held, 3 * 4 * 21);
    end(&v);
}

TEST("whole nodes")
{
    struct play v;
    load(&v,
         "cluster: 1\nwhole_nodes: true\nqueue: {wait: 5s}\nstart_up: 1s\n"
         "nodes: [{name: n, count: 2, cores: 8, memory: 16g, inside: 0}]\n",
         "durations: 1\ndefault: 10s\n", EIGHT_TASKS);
    play(&v, NULL, 0, NULL);
    good(&v);
    /* Two executors of 4 cores share one node, which is held as a whole. */
    SECONDS(v.r.makespan, 16);
    CORE_SECONDS(v.r.held, 8 * 11);
    CORE_SECONDS(v.r.stages[0].held, 8 * 11);
    g_assert_cmpfloat_with_epsilon(v.r.held.nodes, 11, 1e-6);
    end(&v);
}

TEST("what fails fails")
{
    struct play v;
    load(&v, TWO_NODES, "durations: 1\ndefault: {constant: 10s, fail: 1}\n",
         EIGHT_TASKS);
    play(&v, NULL, 0, NULL);
    g_assert_cmpint(v.rc, ==, 0);
    g_assert_cmpint(v.r.outcome, ==, TRP_OUTCOME_FAILED);
    g_assert_nonnull(v.r.stages[0].why);
    g_assert_cmpuint(v.r.stages[0].failures, >=, 4);
    end(&v);
    load(&v, TWO_NODES, "durations: 1\ndefault: 60s\n",
         "troupe: 1\n"
         "stages: [{name: a, tasks: 2, timeout: 20s, run: x}]\n");
    play(&v, NULL, 0, NULL);
    g_assert_cmpint(v.r.outcome, ==, TRP_OUTCOME_FAILED);
    end(&v);
}

TEST("what never fits is told")
{
    struct play v;
    load(&v, TWO_NODES, "durations: 1\ndefault: 60s\n",
         "troupe: 1\n"
         "profiles: {wide: {executor: {cores: 5}}}\n"
         "stages: [{name: a, profile: wide, run: x}]\n");
    play(&v, NULL, 0, NULL);
    g_assert_cmpint(v.rc, ==, TRP_ENEVER);
    g_assert_nonnull(strstr(v.err.text, "p.yaml:3:"));
    g_assert_nonnull(strstr(v.err.text, "cores wanted 5, available 4"));
    end(&v);
}

/* Nodes that fail now and then, shared by three stages and a gang. */
#define ROUGH                                                                          \
    "cluster: 1\n"                                                                     \
    "queue: {wait: {exponential: {mean: 60s}}, per_node: 1s}\n"                        \
    "start_up: {uniform: {min: 1s, max: 5s}}\n"                                        \
    "failures: {node: 2h, repair: 10m, executor: 5h, task: 0.01}\n"                    \
    "nodes:\n"                                                                         \
    "  - {name: c, count: 30, cores: 16, memory: 64g, racks: 3, inside: 2, busy: 0.2}" \
    "\n"                                                                               \
    "  - {name: g, count: 4, cores: 16, memory: 64g, devices: {gpu: 4}}\n"
#define AGAIN "retries: {max_failures: 4}"
#define MIXED                                                                          \
    "troupe: 1\n"                                                                      \
    "profiles:\n"                                                                      \
    "  four: {executor: {cores: 4, memory: 4g}, task: {cpus: 1}}\n"                    \
    "  card: {executor: {cores: 2, memory: 4g, gpu: 1}, task: {cpus: 1, gpu: 1/2}}\n"  \
    "stages:\n"                                                                        \
    "  - {name: a, tasks: 1, profile: four, run: x, " AGAIN "}\n"                      \
    "  - {name: b, tasks: 60, after: [a], profile: card, run: x, " AGAIN "}\n"         \
    "  - {name: g, after: [a], mpi: {ranks: 40}, profile: four, run: x, " AGAIN "}\n"  \
    "  - {name: c, tasks: 200, after: [b, g], prefer: [c1, c3], run: x, " AGAIN "}\n"
#define MIXED_TIMES                                                                    \
    "durations: 1\n"                                                                   \
    "stages:\n"                                                                        \
    "  a: {lognormal: {median: 60s, sigma: 0.8}, tasks: 2000}\n"                       \
    "  b: {uniform: {min: 60s, max: 120s}}\n"                                          \
    "  g: 5m\n"                                                                        \
    "  c: {exponential: {mean: 3ms}}\n"

static char *json_of(struct play *v, const char *policy)
{
    char *text = NULL;
    size_t n = 0;
    trp_error err;
    FILE *out = open_memstream(&text, &n);
    struct trp_virtual_play p = {.policy = policy, .seed = 1, .result = v->r};
    if (trp_virtual_report(&p, true, out, &err) < 0)
        g_error("%s", err.text);
    fclose(out);
    return text;
}

TEST("the same seed gives the same bytes")
{
    for (const struct trp_policy *p = trp_policies; p->name; p++) {
        struct play v;
        load(&v, ROUGH, MIXED_TIMES, MIXED);
        play(&v, p->name, 1, NULL);
        good(&v);
        g_assert_cmpuint(v.r.tasks, ==, 2261);
        g_assert_cmpfloat(v.r.held.cores, >=, v.r.used.cores);
        char *one = json_of(&v, p->name);
        forget(&v);
        play(&v, p->name, 1, NULL);
        char *two = json_of(&v, p->name);
        g_assert_cmpstr(one, ==, two);
        free(two);
        forget(&v);
        play(&v, p->name, 2, NULL);
        two = json_of(&v, p->name);
        g_assert_cmpstr(one, !=, two);
        free(one);
        free(two);
        end(&v);
    }
}

TEST("a recorded run is decided again")
{
    struct play v;
    char file[] = "/tmp/troupe-trace-XXXXXX";
    trp_error err;
    FILE *null = fopen("/dev/null", "w");
    close(mkstemp(file));
    load(&v, ROUGH, MIXED_TIMES, MIXED);
    play(&v, "inside-first", 3, file);
    good(&v);
    g_assert_cmpuint(v.r.lost, >, 0);
    if (trp_sim_replay(file, null, &err) < 0)
        g_error("%s", err.text);
    g_assert_cmpint(truncate(file, 5000), ==, 0);
    g_assert_cmpint(trp_sim_replay(file, null, &err), ==, TRP_EINVAL);
    g_assert_nonnull(strstr(err.text, "cut off"));
    fclose(null);
    unlink(file);
    end(&v);
}

TEST("the tasks of a barrier stage start at once")
{
    struct play v;
    load(&v,
         "cluster: 1\nnodes: [{name: n, count: 1, cores: 2, memory: 16g, inside: 1}]\n",
         "durations: 1\nstages: {long: 60s, g: 10s}\n",
         "troupe: 1\n"
         "profiles: {p: {executor: {cores: 2, memory: 1g}, task: {cpus: 1}}}\n"
         "stages:\n"
         "  - {name: long, profile: p, run: x}\n"
         "  - {name: g, profile: p, barrier: true, tasks: 2, run: x}\n");
    play(&v, NULL, 0, NULL);
    good(&v);
    /* One slot is free at once, both only when `long` is over. */
    SECONDS(v.r.stages[1].first - v.r.stages[0].end, 0);
    SECONDS(v.r.makespan - v.r.stages[0].first, 70);
    forget(&v);
    play(&v, "idle-timeout", 0, NULL);
    good(&v);
    SECONDS(v.r.stages[1].first - v.r.stages[0].end, 0);
    end(&v);
}

/* Whoever holds idle executors that it cannot use without another one, behind somebody
 * who waits for the room of these, gives way. */
TEST("nobody waits for each other")
{
    static const struct {
        const char *cluster, *stages, *options;
        uint64_t seed;
    } runs[] = {
        {"count: 1, cores: 8",
         "{name: a, run: x}, {name: b, run: x},"
         "{name: gang, after: [a], mpi: {ranks: 8}, run: x},"
         "{name: all, after: [b], tasks: 2, barrier: true, run: x}",               "{}",                               1    },
        {"count: 1, cores: 8",
         "{name: a, run: x}, {name: b, tasks: 2, run: x},"
         "{name: large, after: [a], profile: large, run: x},"
         "{name: all, after: [b], tasks: 4, barrier: true, run: x}",               "{}",                               1    },
        {"count: 1, cores: 8",
         "{name: bad, tasks: 2, profile: half, run: x},"
         "{name: large, profile: large, run: x}",                                  "{excludeOnFailure.enabled: true}", 1    },
 /* The barrier stage has what the others were not to have at first. */
        {"count: 3, cores: 1",
         "{name: a, profile: one, executors: {min: 2}, run: x}, {name: b, run: x},"
         "{name: all, profile: one, tasks: 3, barrier: true, run: x},"
         "{name: bad, tasks: 2, run: x}",                                          "{excludeOnFailure.enabled: true}", 55117},
 /* The same of a gang's job that comes late. */
        {"count: 3, cores: 1",
         "{name: a, profile: one, tasks: 2, barrier: true, run: x},"
         "{name: job, profile: one, mpi: {ranks: 2}, run: x},"
         "{name: all, after: [a], profile: one, tasks: 3, barrier: true, run: x}", "{}",                               14   },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(runs); i++) {
        struct play v;
        g_autofree char *cluster = g_strdup_printf(
            "{cluster: 1, nodes: [{name: n, memory: 20g, %s}]%s}", runs[i].cluster,
            strstr(runs[i].stages, "job")
                ? ", queue: {wait: {uniform: {min: 0, max: 30}}}"
                : "");
        g_autofree char *durations = g_strdup_printf(
            "{durations: 1, default: 5s%s}",
            strstr(runs[i].stages, "bad") ? ", stages: {bad: {constant: 3s, fail: 0.5}}"
                                          : "");
        char *pipeline =
            g_strdup_printf("troupe: 1\n"
                            "profiles:\n"
                            "  one: {executor: {cores: 1, memory: 200m}}\n"
                            "  half: {executor: {cores: 3, memory: 200m}}\n"
                            "  large: {executor: {cores: 8, memory: 200m}}\n"
                            "stages: [%s]\noptions: %s\n",
                            runs[i].stages, runs[i].options);
        load(&v, cluster, durations, pipeline);
        play(&v, NULL, runs[i].seed, NULL);
        if (v.rc < 0)
            g_error("run %zu: %s", i, v.err.text);
        g_assert_cmpint(v.r.makespan, <, INT64_C(1000000000000));
        end(&v);
        g_free(pipeline);
    }
}
