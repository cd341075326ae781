/*
 * Scenario files: what is no scenario and where, what is printed, what is refused.
 */
#include <glib.h>
#include <string.h>

#include "sim/scenario/scenario.h"
#include "unit.h"

struct result {
    int code;
    trp_error err;
    char *out; /* owned */
    struct trp_sim_totals t;
};

static struct result run(const char *text, size_t size, bool trace)
{
    struct result r = {0};
    size_t n = 0;
    FILE *out = open_memstream(&r.out, &n);
    g_assert_nonnull(out);
    r.code = trp_sim_scenario("f", text, size, trace, out, &r.t, &r.err);
    fclose(out);
    return r;
}

#define HEAD "scenario: x\nlayer: profile\n"

/* ---- no scenarios ---- */

static const struct {
    const char *text, *at, *says;
} bad[] = {
    {"",                                                                                "1:1",  "empty"                            },
    {"[]",                                                                              "1:1",  "a scenario is a list"             },
    {"x",                                                                               "1:1",  "a scenario is a scalar"           },
    {"scenario: x\nsteps: []\n",                                                        "1:1",  "no \"layer\""                     },
    {"scenario: x\nlayer: nosuch\nsteps: []\n",                                         "2:8",
     "layer is \"nosuch\"; the layers are"                                                                                         },
    {"scenario: x\nlayer: [profile]\nsteps: []\n",                                      "2:8",  "layer is a list"                  },
    {"layer: profile\nsteps: []\n",                                                     "1:1",  "no title"                         },
    {HEAD,                                                                              "1:1",  "no \"steps\""                     },
    {HEAD "stesp: []\n",                                                                "1:1",  "no \"steps\""                     },
    {HEAD "steps: []\nstep: 1\n",                                                       "4:1",  "did you mean \"steps\"?"          },
    {HEAD "addresses: {gpu: [a]}\nsteps: []\n",                                         "3:1",  "unknown key \"addresses\""        },
    {HEAD "executors: []\nsteps: []\n",                                                 "3:1",  "unknown key \"executors\""        },
    {HEAD "steps: {}\n",                                                                "3:8",  "steps is a mapping"               },
    {HEAD "steps: [1]\n",                                                               "3:9",  "a step is a scalar"               },
    {HEAD "steps: [{at: 1}]\n",                                                         "3:9",  "a step has no action"             },
    {HEAD "steps: [{sohw: default}]\n",                                                 "3:10", "did you mean \"show\"?"           },
    {HEAD "steps: [{round: full}]\n",                                                   "3:10", "unknown key \"round\""            },
    {HEAD "steps: [{show: default, slots_of: default}]\n",                              "3:25",
     "in a step that has \"show\""                                                                                                 },
    {HEAD "steps: [{show: default, show: default}]\n",                                  "3:25", "stands twice"                     },
    {HEAD "steps:\n- {at: 5, show: default}\n- {at: 4, show: default}\n",               "5:8",
     "time never decreases"                                                                                                        },
    {HEAD "steps: [{at: -1, show: default}]\n",                                         "3:14", "at is -1"                         },
    {HEAD "steps: [{at: 1e30, show: default}]\n",                                       "3:14", "at is \"1e30\""                   },
    {HEAD "steps: [{at: nan, show: default}]\n",                                        "3:14", "write a whole number"             },
    {HEAD "steps: [{at: 999999999999999999999, show: default}]\n",                      "3:14",
     "from 0 to 1000000000000"                                                                                                     },
    {HEAD "steps: [{at: [1], show: default}]\n",                                        "3:14", "at is a list"                     },
    {HEAD "steps: [{show: default, error: }]\n",                                        "3:25", "error is empty"                   },
    {HEAD "steps: [{show: default, expect: [1]}]\n",                                    "3:33", "expect is a list"                 },
    {HEAD "steps: [{show: default, expect: {slto: 1}}]\n",                              "3:34",
     "unknown key \"slto\" in expect"                                                                                              },
    {HEAD "steps: [{show: default, expect: {launch_count: 1}}]\n",                      "3:34",
     "unknown key \"launch_count\""                                                                                                },
    {HEAD "steps: [{show: default, expect: {in_order: 3}}]\n",                          "3:44", "true or false"                    },
    {HEAD "manager: elastci\nsteps: []\n",                                              "3:10", "write one of elastic|static|local"},
    {HEAD "config: [a]\nsteps: []\n",                                                   "3:9",  "config is a list"                 },
    {HEAD "config: {locality.wiat: 1}\nsteps: []\n",                                    "3:25",
     "did you mean \"locality.wait\"?"                                                                                             },
    {HEAD "config: {task.cpus: -1}\nsteps: []\n",                                       "3:21", "task.cpus: -1 is too small"       },
    {HEAD "config: {task.cpus: 1e30}\nsteps: []\n",                                     "3:21", "is not a whole number"            },
    {HEAD "config: {task.resource.gpu.amount: nan}\nsteps: []\n",                       "3:36",
     "is not an amount"                                                                                                            },
    {HEAD "config: {task.cpus: [1]}\nsteps: []\n",                                      "3:21", "task.cpus is a list"              },
    {HEAD "config: {task.cpus: 2}\nsteps: []\n",                                        "3:9",  "cpus"                             },
    {HEAD "config: {excludeOnFailure.enabled: true, task.maxFailures: 1}\nsteps: []\n",
     "3:9",                                                                                     "maxTaskAttemptsPerNode"           },
    {HEAD "profiles: {a: {executor: {cores: -1}}}\nsteps: []\n",                        "3:34", "cores"                            },
    {HEAD "profiles: {a: {executor: {cores: 0.5}}}\nsteps: []\n",                       "3:34",
     "whole number"                                                                                                                },
    {HEAD "profiles: {a: {task: {gpu: 1.5}}}\nsteps: []\n",                             "3:28", "gpu"                              },
    {HEAD "profiles: {a: {task: {gpu: 1e30}}}\nsteps: []\n",                            "3:28", "too large"                        },
    {HEAD "profiles: {a: {task: {gpu: 1/0}}}\nsteps: []\n",                             "3:28", "not an amount"                    },
    {HEAD "profiles: {a: {executor: {cores: 1}, task: {cpus: 9}}}\nsteps: []\n",        "3:12",
     "cpus"                                                                                                                        },
    {HEAD "profiles: {a: {cores: 9}}\nsteps: []\n",                                     "3:16", "unknown key \"cores\""            },
    {HEAD "profiles: {default: {task: {cpus: 1}}}\nsteps: []\n",                        "3:12",
     "cannot be a profile's name"                                                                                                  },
    {HEAD "profiles: {\"a b\": {task: {cpus: 1}}}\nsteps: []\n",                        "3:12",
     "cannot be a profile's name"                                                                                                  },
    {HEAD "steps:\n- build: {name: a, task: {cpus: 1}}\n- build: {name: a}\n",          "5:10",
     "new profile's name"                                                                                                          },
    {HEAD "steps:\n- show: default\n- show: nosuch\n",                                  "5:9",  "no profile \"nosuch\""            },
    {HEAD "steps:\n- equal: [default]\n",                                               "4:10", "write [p, q]"                     },
    {HEAD "steps:\n- may_run: {task: default}\n",                                       "4:12", "no \"executor\""                  },
    {HEAD "steps:\n- may_run: {task: default, executor: default, x: 1}\n",              "4:47",
     "unknown key \"x\" in may_run"                                                                                                },
    {"scenario: x\nlayer: resources\naddresses: {gpu: [a, a]}\nsteps: []\n",            "3:12",
     "twice"                                                                                                                       },
    {"scenario: x\nlayer: resources\naddresses: {\"g p\": [a]}\nsteps: []\n",           "3:13",
     "not a resource's name"                                                                                                       },
    {"scenario: x\nlayer: resources\nsteps: [{take: {gpu: -1}}]\n",                     "3:22",
     "not an amount"                                                                                                               },
    {"scenario: x\nlayer: resources\naddresses: {gpu: [a]}\n"
     "steps: [{give: {gpu: {b: 1}}}]\n",                                           "4:23", "no address \"b\""                 },
    {"scenario: x\nlayer: outputs\nsteps: [{register: {shuffle: s, maps: "
     "1000000000}}]\n",                                                            "3:20", "more than 100000 map tasks"       },
    {"scenario: x\nlayer: outputs\nsteps: [{drop: {shuffle: s, map: 0, executor: "
     "e}}]\n",                                                                     "3:26", "no shuffle \"s\""                 },
};

TEST("what is none is told with its place")
{
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        struct result r = run(bad[i].text, strlen(bad[i].text), false);
        g_autofree char *place = g_strdup_printf("f:%s: ", bad[i].at);
        if (r.code != TRP_EINVAL || !g_str_has_prefix(r.err.text, place) ||
            !strstr(r.err.text, bad[i].says))
            g_test_message("%s\nwanted %s…%s, got %s", bad[i].text, place, bad[i].says,
                           r.code ? r.err.text : r.out);
        g_assert_cmpint(r.code, ==, TRP_EINVAL);
        g_assert_true(g_str_has_prefix(r.err.text, place));
        g_assert_nonnull(strstr(r.err.text, bad[i].says));
        g_assert_cmpstr(r.out, ==, "");
        g_assert_cmpuint(r.t.points, ==, 0);
        free(r.out);
    }
}

/* Whatever stands at the end of a file, cut anywhere or with a byte changed: it ends.
 */
TEST("no text hangs or crashes")
{
    static const char text[] = HEAD
        "config: {executor.cores: 4, executor.resource.gpu.amount: 2}\n"
        "profiles: {p: {executor: {gpu: 1}, task: {gpu: 1/3}}}\n"
        "steps:\n- build: {name: a, executor: {cores: 1, gpu: 2}, task: {gpu: 1}}\n"
        "  expect: {id: 2, executor: {cores: 1, gpu: 2}}\n"
        "- {at: 10, stage_profile: [a, p], error: profile}\n";
    char copy[sizeof(text)];
    for (size_t i = 0; i < sizeof(text); i++) {
        struct result r = run(text, i, false);
        free(r.out);
        for (const char *p = "-9[{:\n \t'\"#\xff"; *p; p++) {
            memcpy(copy, text, sizeof(text));
            copy[i] = *p;
            r = run(copy, sizeof(text) - 1, i % 2);
            free(r.out);
        }
    }
}

/* Each step is cheap, but there are too many of them over too much. */
TEST("a case that does too much is refused")
{
    GString *text = g_string_new("scenario: x\nlayer: sched\nexecutors:\n");
    for (int i = 0; i < 10000; i++)
        g_string_append_printf(text, "- {id: e%d, host: h}\n", i);
    g_string_append(text, "steps:\n");
    for (int i = 0; i < 100000; i++)
        g_string_append(text, "- wait:\n");
    struct result r = run(text->str, text->len, false);
    g_assert_cmpint(r.code, ==, TRP_EINVAL);
    g_assert_nonnull(strstr(r.err.text, ":3: the case does too much"));
    free(r.out);
    g_string_free(text, TRUE);
}

/* ---- what is printed ---- */

static void prints(const char *text, bool trace, uint32_t failed, const char *wanted)
{
    struct result r = run(text, strlen(text), trace);
    if (r.code < 0)
        g_test_message("%s", r.err.text);
    g_assert_cmpint(r.code, ==, 0);
    g_assert_cmpstr(r.out, ==, wanted);
    g_assert_cmpuint(r.t.failed, ==, failed);
    free(r.out);
}

TEST("a point for each expect and one for the file")
{
    prints(HEAD "steps: []\n", false, 0, "ok 1 - f: no unexpected error\n");
    prints(HEAD "steps:\n- show: default\n  expect: {id: 0}\n", false, 0,
           "ok 1 - f: step 1, show\nok 2 - f: no unexpected error\n");
    prints(HEAD "steps:\n- show: default\n- slots_of: default\n"
                "  expect: {slots: 2, limited_by: cpus}\n",
           false, 1,
           "not ok 1 - f: step 2, slots_of\n  ---\n  wanted: {\"slots\":2}\n"
           "  got: {\"slots\":1}\n  step: 2\n  line: 5\n  ...\n"
           "ok 2 - f: no unexpected error\n");
}

TEST("errors are those that are expected")
{
    prints(HEAD "steps:\n- show: nosuch\n  error: NOSUCH\n", false, 0,
           "ok 1 - f: no unexpected error\n");
    prints(HEAD "steps:\n- show: nosuch\n  error: other\n", false, 1,
           "not ok 1 - f: no unexpected error\n  ---\n  wanted: \"other\"\n"
           "  got: \"f:4:9: no profile \\\"nosuch\\\"\"\n  step: 1\n  line: 4\n"
           "  ...\n");
    prints(HEAD "steps:\n- show: default\n  error: x\n", false, 1,
           "not ok 1 - f: no unexpected error\n  ---\n  wanted: \"x\"\n"
           "  got: \"the step was not refused\"\n  step: 1\n  line: 4\n  ...\n");
    prints(HEAD "manager: local\nprofiles: {p: {task: {cpus: 1}}}\nsteps:\n"
                "- supported: p\n",
           false, 1,
           "not ok 1 - f: no unexpected error\n  ---\n  wanted: \"no error\"\n"
           "  got: \"profile p: only the default profile can run in one process; use "
           "executors\"\n  step: 1\n  line: 6\n  ...\n");
}

TEST("a case may be refused as a whole")
{
    prints(HEAD "refused: cpus\nconfig: {task.cpus: 2}\nsteps: [{show: nosuch}]\n",
           false, 0, "ok 1 - f: refused\n");
    prints(HEAD "refused: gpu\nprofiles: {p: {task: {gpu: 2.5}}}\n", false, 0,
           "ok 1 - f: refused\n");
    prints(HEAD "refused: small\nconfig: {task.cpus: 0}\n", false, 0,
           "ok 1 - f: refused\n");
    prints(HEAD "refused: cpus\nsteps: []\n", false, 1,
           "not ok 1 - f: refused\n  ---\n  wanted: \"cpus\"\n"
           "  got: \"the case was not refused\"\n  step: 0\n  line: 1\n  ...\n");
}

TEST("decisions are traced")
{
    prints("scenario: x\nlayer: resources\naddresses: {gpu: [a]}\nsteps:\n"
           "- {at: 7, take: {gpu: 1/3}, expect: {assigned: none}}\n- take: {gpu: 1}\n",
           true, 1,
           "{\"at\":7,\"assigned\":{\"gpu\":[\"a\"]}}\n"
           "{\"at\":7,\"assigned\":\"none\"}\n");
}
