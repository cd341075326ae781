/*
 * Cluster and durations files: what they say, and that bad ones are told with their
 * place; drawing; event logs as a source of durations; first fit.
 */
#include <glib.h>
#include <math.h>
#include <string.h>

#include "sim/run/cluster_file.h"
#include "sim/run/durations_file.h"
#include "sim/run/node_tree.h"
#include "unit.h"

static const char pipeline[] =
    "troupe: 1\n"
    "stages: [{name: a, tasks: 2, run: x}, {name: b, run: x}]\n";

TEST("cluster")
{
    static const char text[] =
        "cluster: 1\n"
        "queue: {wait: {lognormal: {median: 5m, sigma: 0.5}}, per_node: 2s}\n"
        "start_up: {uniform: {min: 1s, max: 3s}}\n"
        "failures: {node: 30d, repair: 2h, executor: 10d, task: 0.25}\n"
        "whole_nodes: true\n"
        "nodes:\n"
        "  - {name: c, count: 10, cores: 64, memory: 256g, racks: 2}\n"
        "  - {name: g, cores: 8, memory: 1g, devices: {gpu: 4, fpga: 1}, busy: 0.5}\n";
    trp_sim_cluster *c;
    trp_error err;
    if (trp_sim_cluster_parse("c", text, strlen(text), &c, &err) < 0)
        g_error("%s", err.text);
    g_assert_cmpuint(c->ngroups, ==, 2);
    g_assert_cmpuint(c->groups[0].inside, ==, 1); /* where nothing is written */
    g_assert_cmpuint(c->groups[1].inside, ==, 0);
    g_assert_cmpint(c->groups[0].memory_mib, ==, 256 * 1024);
    g_assert_cmpuint(c->ndevices, ==, 2);
    g_assert_cmpstr(c->devices[0], ==, "gpu");
    g_assert_cmpuint(c->groups[1].devices[0], ==, 4);
    g_assert_cmpint(c->wait_per_node_ns, ==, 2000000000);
    g_assert_cmpint(c->node_repair_ns, ==, INT64_C(7200000000000));
    g_assert_cmpint(trp_distribution_mean(&c->start_up), ==, 2000000000);
    g_assert_true(c->whole_nodes);
    trp_sim_cluster_free(c);
}

static const struct {
    const char *text, *place;
} bad_clusters[] = {
    {"nodes: [{name: a, cores: 1, memory: 1g}]",                                     "c:1:1: " },
    {"{cluster: 1}",                                                                 "c:1:1: " },
    {"{cluster: 2, nodes: [{name: a, cores: 1, memory: 1g}]}",                       "c:1:11: "},
    {"{cluster: 1, nodes: []}",                                                      "c:1:21: "},
    {"{cluster: 1, nodes: [{name: a, cores: 0, memory: 1g}]}",                       "c:1:39: "},
    {"{cluster: 1, nodes: [{name: a, cores: -1, memory: 1g}]}",                      "c:1:39: "},
    {"{cluster: 1, nodes: [{name: a, cores: NaN, memory: 1g}]}",                     "c:1:39: "},
    {"{cluster: 1, nodes: [{name: a, cores: 1e30, memory: 1g}]}",                    "c:1:39: "},
    {"{cluster: 1, nodes: [{name: a, cores: 1, memory: -1g}]}",                      "c:1:50: "},
    {"{cluster: 1, nodes: [{name: a, cores: 1, memory: 0}]}",                        "c:1:50: "},
    {"{cluster: 1, nodes: [{name: a, cores: 1, memory: 1g, count: "
     "1000000000000000000000000000000}]}",                                      "c:1:61: "},
    {"{cluster: 1, nodes: [{name: a, cores: 1, memory: 1g, inside: 2}]}",            "c:1:22: "},
    {"{cluster: 1, nodes: [{name: a, cores: 1, memory: 1g, racks: 2}]}",             "c:1:22: "},
    {"{cluster: 1, nodes: [{name: a, cores: 1, memory: 1g, busy: 1.5}]}",            "c:1:60: "},
    {"{cluster: 1, nodes: [{name: a, cores: 1, memory: 1g, busy: nan}]}",            "c:1:60: "},
    {"{cluster: 1, nodes: [{name: 'a b', cores: 1, memory: 1g}]}",                   "c:1:29: "},
    {"{cluster: 1, nodes: [{name: a, cores: 1, memory: 1g}, {name: a, "
     "cores: 1, memory: 1g}]}",                                                 "c:1:55: "},
    {"{cluster: 1, start_up: 1000000000d, nodes: [{name: a, cores: 1, "
     "memory: 1g}]}",                                                           "c:1:24: "},
    {"{cluster: 1, start_up: -1s, nodes: []}",                                       "c:1:24: "},
    {"{cluster: 1, start_up: {uniform: {min: 2s, max: 1s}}, nodes: []}",             "c:1:34: "},
    {"{cluster: 1, start_up: {lognormal: {sigma: 1}}, nodes: []}",                   "c:1:36: "},
    {"{cluster: 1, start_up: {lognormal: {mean: 1s, sigma: -1}}, nodes: []}",
     "c:1:54: "                                                                                },
    {"{cluster: 1, start_up: {constant: 1s, uniform: {min: 1, max: 2}}, nodes: []}",
     "c:1:39: "                                                                                },
    {"{cluster: 1, start_up: {}, nodes: []}",                                        "c:1:24: "},
    {"{cluster: 1, failures: {task: 2}, nodes: []}",                                 "c:1:31: "},
    {"{cluster: 1, failures: {node: 0}, nodes: []}",                                 "c:1:31: "},
    {"{cluster: 1, quueue: {}, nodes: []}",                                          "c:1:14: "},
    {"[1, 2",                                                                        "c:1:"    },
    {"",                                                                             "c:1:"    },
};

TEST("bad clusters")
{
    for (size_t i = 0; i < G_N_ELEMENTS(bad_clusters); i++) {
        trp_sim_cluster *c;
        trp_error err;
        const char *text = bad_clusters[i].text;
        int rc = trp_sim_cluster_parse("c", text, strlen(text), &c, &err);
        g_test_message("%s: %s", text, rc < 0 ? err.text : "taken");
        g_assert_cmpint(rc, ==, TRP_EINVAL);
        g_assert_true(g_str_has_prefix(err.text, bad_clusters[i].place));
    }
}

static int durations_of(const char *text, trp_sim_durations **ret, trp_error *err)
{
    trp_pipeline *p;
    if (trp_pipeline_parse("p", pipeline, strlen(pipeline), &p, err) < 0)
        g_error("%s", err->text);
    int rc = trp_sim_durations_parse("d", text, strlen(text), p, ret, err);
    trp_pipeline_free(p);
    return rc;
}

TEST("durations")
{
    trp_sim_durations *d;
    trp_error err;
    uint32_t n;
    if (durations_of("durations: 1\n"
                     "default: {constant: 10s, fail: 0.5}\n"
                     "stages: {a: {tasks: 7, scale: 2}, b: 3}\n",
                     &d, &err) < 0)
        g_error("%s", err.text);
    g_assert_cmpint(trp_distribution_mean(&d->stages[0].of.d), ==, 20000000000);
    g_assert_cmpint(trp_distribution_mean(&d->stages[1].of.d), ==, 3000000000);
    g_assert_cmpfloat(d->stages[0].fail, ==, 0.5);
    g_assert_true(trp_sim_durations_tasks(d, 0, &n));
    g_assert_cmpuint(n, ==, 7);
    g_assert_false(trp_sim_durations_tasks(d, 1, &n));
    trp_sim_durations_free(d);
}

static const struct {
    const char *text, *place;
} bad_durations[] = {
    {"{durations: 1}",                                                   "d:1:1: no duration"},
    {"{durations: 1, stages: {a: 1s}}",                                  "d:1:1: no duration"},
    {"{durations: 1, default: 1s, stages: {aa: 1s}}",                    "d:1:38: p has no"  },
    {"{durations: 1, default: -1s}",                                     "d:1:25: "          },
    {"{durations: 1, default: 1e30}",                                    "d:1:25: "          },
    {"{durations: 1, default: nan}",                                     "d:1:25: "          },
    {"{durations: 1, default: 1s, stages: {a: {tasks: -1}}}",            "d:1:49: "          },
    {"{durations: 1, default: 1s, stages: {a: {tasks: 1e30}}}",          "d:1:49: "          },
    {"{durations: 1, default: 1s, stages: {a: {fail: 1.1}}}",            "d:1:48: "          },
    {"{durations: 1, default: {constant: 1s, tasks: 3}}",                "d:1:25: tasks in"  },
    {"{durations: 1, default: {events: e}}",                             "d:1:25: events in" },
    {"{durations: 1, default: 1s, stages: {a: {stage: x}}}",             "d:1:41: a: stage"  },
    {"{durations: 1, default: 1s, stages: {a: {events: /no/such/log}}}",
     "d:1:50: /no/such/log"                                                                  },
};

TEST("bad durations")
{
    for (size_t i = 0; i < G_N_ELEMENTS(bad_durations); i++) {
        trp_sim_durations *d;
        trp_error err;
        int rc = durations_of(bad_durations[i].text, &d, &err);
        g_test_message("%s: %s", bad_durations[i].text, rc < 0 ? err.text : "taken");
        g_assert_cmpint(rc, ==, TRP_EINVAL);
        g_assert_true(g_str_has_prefix(err.text, bad_durations[i].place));
    }
}

static void write_log(const char *file, const char *text)
{
    g_assert_true(g_file_set_contents(file, text, -1, NULL));
}

TEST("event logs")
{
    g_autofree char *dir = g_dir_make_tmp("troupe-sim-XXXXXX", NULL);
    g_autofree char *file = g_build_filename(dir, "events.jsonl", NULL);
    trp_duration_log *l;
    trp_error err;
    write_log(file,
              "{\"Event\":\"SparkListenerLogStart\",\"Spark Version\":\"4\"}\n"
              "{\"Event\":\"SparkListenerStageSubmitted\",\"Stage Info\":{\"Stage "
              "ID\":3,\"Stage Name\":\"map\",\"Number of Tasks\":12}}\n"
              "{\"Event\":\"SparkListenerTaskEnd\",\"Stage ID\":3,\"Task End "
              "Reason\":{\"Reason\":\"Success\"},\"Task Info\":{\"Launch "
              "Time\":1000,\"Finish Time\":1500}}\n"
              "{\"Event\":\"SparkListenerTaskEnd\",\"Stage ID\":3,\"Task End "
              "Reason\":{\"Reason\":\"ExceptionFailure\"},\"Task Info\":{\"Launch "
              "Time\":1000,\"Finish Time\":9000}}\n"
              "{\"Event\":\"SparkListenerTaskEnd\",\"Stage ID\":3,\"Task End "
              "Reason\":{\"Reason\":\"Success\"},\"Task Info\":{\"Launch "
              "Time\":1000,\"Finish Time\":1001},\"Troupe Run Time ns\":1234}\n"
              "{\"Event\":\"SparkListenerTaskEnd\",\"Sta");
    if (trp_duration_log_load(file, &l, &err) < 0)
        g_error("%s", err.text);
    const struct trp_empirical *e = trp_duration_log_stage(l, "map");
    g_assert_nonnull(e);
    g_assert_true(e == trp_duration_log_stage(l, "3"));
    g_assert_null(trp_duration_log_stage(l, "reduce"));
    g_assert_cmpuint(e->ntasks, ==, 12);
    g_assert_cmpuint(e->n, ==, 2);
    g_assert_cmpfloat(trp_empirical_draw(e, 0.1), ==, 500000000);
    g_assert_cmpfloat(trp_empirical_draw(e, 0.9), ==, 1234);
    trp_duration_log_free(l);
    write_log(file, "{\"Event\":\"SparkListenerLogStart\"}\nnonsense\n");
    g_assert_cmpint(trp_duration_log_load(file, &l, &err), ==, TRP_EINVAL);
    g_assert_nonnull(strstr(err.text, "events.jsonl:2: "));
    remove(file);
    remove(dir);
}

TEST("drawing")
{
    struct trp_distribution d = {
        .kind = TRP_LOGNORMAL, .least = 1000000000, .sigma = 0.5, .scale = 2};
    double sum = 0;
    int64_t first = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        struct trp_random r = trp_random_of(7, TRP_DRAW_TASK, 1, i);
        int64_t ns = trp_distribution_draw(&d, &r);
        g_assert_cmpint(ns, >, 0);
        g_assert_cmpint(ns % 1000, ==, 0);
        first = i ? first : ns;
        sum += (double)ns;
    }
    struct trp_random again = trp_random_of(7, TRP_DRAW_TASK, 1, 0);
    g_assert_cmpint(trp_distribution_draw(&d, &again), ==, first);
    double mean = (double)trp_distribution_mean(&d);
    g_assert_cmpfloat_with_epsilon(mean, 2e9 * exp(0.125), 1e3);
    g_assert_cmpfloat_with_epsilon(sum / 20000 / mean, 1, 0.02);
}

TEST("first fit")
{
    const int64_t room[2] = {4, 100}, small[2] = {1, 60}, thin[2] = {4, 10};
    trp_node_tree *t = trp_node_tree_new(5, 2);
    for (uint32_t i = 0; i < 5; i++)
        trp_node_tree_add(t, i, room, 1);
    g_assert_cmpuint(trp_node_tree_find(t, 0, 5, small), ==, 0);
    trp_node_tree_add(t, 0, small, -1);
    g_assert_cmpuint(trp_node_tree_find(t, 0, 5, small), ==, 1);
    g_assert_cmpuint(trp_node_tree_find(t, 0, 1, small), ==, TRP_NONE);
    g_assert_cmpuint(trp_node_tree_find(t, 0, 5, thin), ==, 1);
    trp_node_tree_close(t, 1, true);
    g_assert_cmpuint(trp_node_tree_find(t, 0, 5, thin), ==, 2);
    trp_node_tree_close(t, 1, false);
    g_assert_cmpuint(trp_node_tree_find(t, 1, 5, thin), ==, 1);
    trp_node_tree_free(t);
}
