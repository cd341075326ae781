/*
 * Site files: the contract's example, what is kept of it, wrong files with their
 * places.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/site.h"
#include "unit.h"

static const char example[] =
    "site: 1\n"
    "resources:                      # a profile's resource -> what Slurm is asked "
    "for\n"
    "  gpu:    {slurm: \"gres:gpu\", env: CUDA_VISIBLE_DEVICES}\n"
    "  a100:   {slurm: \"gres:gpu:a100\", env: CUDA_VISIBLE_DEVICES}\n"
    "  matlab: {slurm: \"license:matlab\"}\n"
    "  bigmem: {slurm: \"constraint:bigmem\", countable: false}\n"
    "memory:   {overhead_factor: 0.20, overhead_min: 500m}\n"
    "route:                          # first match wins\n"
    "  - {when: {gpu: \">0\"}, partition: gpu, qos: normal}\n"
    "  - {partition: cpu}\n"
    "limits:   {executors: 256, jobs: 32, time: 24h, deny: [matlab]}\n"
    "racks:    {from: slurm}\n"
    "scratch:  /var/tmp/troupe\n"
    "options:  {slurm.poll: 10s, executor.minMemoryOverhead: 300m}\n"
    "mpi:      pmix                # srun --mpi=... for gangs\n"
    "nodes:    shared              # or exclusive\n"
    "driver:   {cores: 1, memory: 1g, time: 24h}\n"
    "local:    {gpu: [\"0\", \"1\"]}\n"
    "profiles: {gpu-small: {executor: {cores: 4, memory: 16g, gpu: 1}, task: {cpus: 4, "
    "gpu: 1}}}\n";

static trp_site *parse(const char *text)
{
    trp_site *s = NULL;
    trp_error err = {0};
    int code = trp_site_parse("s.yaml", text, strlen(text), &s, &err);
    if (code < 0)
        g_test_message("%s", err.text);
    g_assert_cmpint(code, ==, 0);
    return s;
}

TEST("the example of the contract means what it says")
{
    trp_options *o;
    trp_error err;
    trp_site *s = parse(example);
    g_assert_cmpstr(s->file, ==, "s.yaml");
    g_assert_cmpuint(s->nresources, ==, 4);
    g_assert_cmpstr(s->resources[1].name, ==, "a100");
    g_assert_cmpint(s->resources[1].kind, ==, TRP_SITE_GRES);
    g_assert_cmpstr(s->resources[1].target, ==, "gpu:a100");
    g_assert_true(s->resources[1].countable);
    g_assert_cmpint(s->resources[2].kind, ==, TRP_SITE_LICENSE);
    g_assert_cmpstr(s->resources[2].target, ==, "matlab");
    g_assert_cmpint(s->resources[3].kind, ==, TRP_SITE_CONSTRAINT);
    g_assert_cmpstr(s->resources[3].target, ==, "bigmem");
    g_assert_false(s->resources[3].countable);
    g_assert_cmpuint(s->nroutes, ==, 2);
    g_assert_cmpuint(s->routes[0].nwhen, ==, 1);
    g_assert_cmpstr(s->routes[0].when[0].subject, ==, "gpu");
    g_assert_cmpint(s->routes[0].when[0].least, ==, 1);
    g_assert_cmpstr(s->routes[0].partition, ==, "gpu");
    g_assert_cmpstr(s->routes[0].qos, ==, "normal");
    g_assert_cmpuint(s->routes[1].nwhen, ==, 0);
    g_assert_cmpuint(s->limits.executors, ==, 256);
    g_assert_cmpuint(s->limits.jobs, ==, 32);
    g_assert_cmpint(s->limits.time_ns, ==, INT64_C(86400000000000));
    g_assert_cmpuint(s->limits.ndeny, ==, 1);
    g_assert_cmpstr(s->limits.deny[0], ==, "matlab");
    g_assert_cmpint(s->racks, ==, TRP_SITE_RACKS_SLURM);
    g_assert_cmpstr(s->mpi, ==, "pmix");
    g_assert_false(s->exclusive);
    g_assert_cmpuint(s->driver.cores, ==, 1);
    g_assert_cmpint(s->driver.memory_mib, ==, 1024);
    g_assert_cmpint(s->driver.time_ns, ==, INT64_C(86400000000000));
    g_assert_cmpuint(s->nwarnings, ==, 0);
    g_assert_cmpstr(s->scratch, ==, "/var/tmp/troupe");
    g_assert_cmpuint(s->nlocal, ==, 1);
    g_assert_cmpstr(s->local[0].name, ==, "gpu");
    g_assert_cmpuint(s->local[0].naddresses, ==, 2);
    g_assert_cmpstr(s->local[0].addresses[1], ==, "1");
    g_assert_cmpuint(s->nprofiles, ==, 1);
    g_assert_cmpstr(s->profiles[0].builder.name, ==, "gpu-small");
    g_assert_cmpint(s->profiles[0].builder.executor.memory_mib, ==, 16384);
    g_assert_cmpstr(trp_site_variable(s, "gpu"), ==, "CUDA_VISIBLE_DEVICES");
    g_assert_cmpstr(trp_site_variable(s, "a100"), ==, "CUDA_VISIBLE_DEVICES");
    g_assert_null(trp_site_variable(s, "matlab"));
    g_assert_null(trp_site_variable(s, "fpga"));
    g_assert_cmpstr(trp_site_variable(NULL, "gpu"), ==, "CUDA_VISIBLE_DEVICES");

    g_assert_cmpint(trp_options_new(&o, &err), ==, 0);
    g_assert_cmpint(trp_site_options(s, o, &err), ==, 0);
    g_assert_cmpfloat(trp_options_number(o, "executor.memoryOverheadFactor"), ==, 0.20);
    g_assert_cmpint(trp_options_memory_mib(o, "executor.minMemoryOverhead"), ==, 300);
    g_assert_cmpstr(trp_options_where(o, "executor.memoryOverheadFactor"), ==,
                    "s.yaml:7:29");
    g_assert_cmpint(trp_options_origin(o, "executor.memoryOverheadFactor"), ==,
                    TRP_ORIGIN_SITE);
    g_assert_cmpint(trp_options_int(o, "alloc.max_executors"), ==, 256);
    trp_options_free(o);
    trp_site_free(s);
}

TEST("gpu has its variable unless the file says otherwise")
{
    trp_site *s =
        parse("site: 1\nresources: {gpu: {slurm: \"gres:g\"}, fpga: {env: F}}\n");
    g_assert_cmpstr(trp_site_variable(s, "gpu"), ==, "CUDA_VISIBLE_DEVICES");
    g_assert_cmpstr(trp_site_variable(s, "fpga"), ==, "F");
    trp_site_free(s);
    s = parse("site: 1\nresources: {gpu: {env: \"\"}}\n");
    g_assert_null(trp_site_variable(s, "gpu"));
    trp_site_free(s);
}

/* Whole sites, and the lines of the routes that are never reached. */
static const struct {
    const char *routes;
    uint32_t line[4];
} shadows[] = {
    {"  - {partition: a}\n  - {partition: b}\n",                            {4}   },
    {"  - {when: {gpu: \">0\"}}\n  - {}\n",                                 {0}   },
    {"  - {when: {gpu: \">0\"}}\n  - {when: {gpu: \">=2\"}}\n  - {}\n",     {4}   },
    {"  - {when: {gpu: \">=2\"}}\n  - {when: {gpu: \">0\"}}\n  - {}\n",     {0}   },
    {"  - {when: {gpu: \">0\"}}\n  - {when: {gpu: 0}}\n  - {}\n",           {5}   },
    {"  - {when: {cores: \"<8\"}}\n  - {when: {memory: \"<=1g\"}}\n"
     "  - {when: {cores: \">=8\", memory: \">1024\"}}\n  - {}\n",      {6}   },
    {"  - {when: {cores: \"<8\"}}\n  - {when: {memory: \"<=1g\"}}\n"
     "  - {when: {cores: \">=9\", memory: \">1024\"}}\n  - {}\n",      {0}   },
    {"  - {when: {cores: \"<1\"}}\n  - {}\n",                               {3}   },
    {"  - {when: {lic: 1}}\n  - {when: {lic: \"<5\"}}\n  - {}\n",           {3, 5}},
    {"  - {when: {gpu: 0, cores: \">4\"}}\n  - {when: {cores: \">=5\"}}\n", {0}   },
};

TEST("routes that no request reaches are told")
{
    static const char head[] = "site: 1\nroute:\n";
    static const char tail[] = "resources: {lic: {slurm: \"license:l\"}}\n"
                               "limits: {deny: [lic]}\n";
    for (size_t i = 0; i < G_N_ELEMENTS(shadows); i++) {
        g_autofree char *text = g_strconcat(head, shadows[i].routes, tail, NULL);
        trp_site *s = parse(text);
        uint32_t n = 0;
        while (n < 4 && shadows[i].line[n])
            n++;
        g_test_message("%s", text);
        g_assert_cmpuint(s->nwarnings, ==, n);
        for (uint32_t k = 0; k < n; k++) {
            g_assert_cmpuint(s->warnings[k].mark.line, ==, shadows[i].line[k]);
            g_assert_nonnull(strstr(s->warnings[k].text, "can never match"));
        }
        trp_site_free(s);
    }
}

TEST("the limit of executors holds for options")
{
    trp_options *o;
    trp_error err;
    trp_site *s = parse("site: 1\nlimits: {executors: 8}\n");
    g_assert_cmpint(trp_options_new(&o, &err), ==, 0);
    g_assert_cmpint(trp_site_options(s, o, &err), ==, 0);
    g_assert_cmpint(trp_site_options_check(s, o, &err), ==, 0);
    trp_options_set(o, "alloc.max_executors", "4", TRP_ORIGIN_PIPELINE, "p", NULL);
    g_assert_cmpint(trp_site_options_check(s, o, &err), ==, 0);
    trp_options_set(o, "alloc.max_executors", "9", TRP_ORIGIN_COMMAND_LINE, "--set",
                    NULL);
    g_assert_cmpint(trp_site_options_check(s, o, &err), ==, TRP_EINVAL);
    g_assert_nonnull(strstr(err.text, "--set: alloc.max_executors 9 is above the "
                                      "site's limit of 8 (s.yaml:2:21)"));
    trp_options_free(o);
    trp_site_free(s);
}

static const struct {
    const char *text, *place, *words;
} bad[] = {
    {"",                                                                      "1:1",  "empty"                      },
    {"scratch: /x\n",                                                         "1:1",  "no \"site\""                },
    {"site: 2\n",                                                             "1:7",  "write site: 1"              },
    {"site: 1\nresorces: {}\n",                                               "2:1",  "did you mean \"resources\"?"},
    {"site: 1\nsite: 1\n",                                                    "2:1",  "twice"                      },
    {"site: 1\nresources: {gpu: {slurn: x}}\n",                               "2:19", "did you mean \"slurm\"?"    },
    {"site: 1\nresources: {gpu: {env: A=B}}\n",                               "2:24", "variable's name"            },
    {"site: 1\nresources: {9: {}}\n",                                         "2:13", "resource's name"            },
    {"site: 1\nresources: {a: {countable: 0}}\n",                             "2:28", "true or false"              },
    {"site: 1\nmemory: {overhead_factor: x}\n",                               "2:27", "number from 0"              },
    {"site: 1\nmemory: {overhead_min: 3q}\n",                                 "2:24", "3q"                         },
    {"site: 1\nresources: {a: {slurm: gpu}}\n",                               "2:24", "gres:NAME"                  },
    {"site: 1\nresources: {a: {slurm: \"gres:\"}}\n",                         "2:24", "gres:NAME"                  },
    {"site: 1\nresources: {a: {slurm: \"gres:gpu:2:3\"}}\n",                  "2:24", "gres:NAME"                  },
    {"site: 1\nresources: {a: {slurm: \"gres:a,b\"}}\n",                      "2:24", "gres:NAME"                  },
    {"site: 1\nresources: {a: {slurm: \"constraint:a b\"}}\n",                "2:24",
     "constraint:FEATURE"                                                                                          },
    {"site: 1\nresources: {a: {slurm: \"constraint:b\", countable: true}}\n", "2:51",
     "countable: false"                                                                                            },
    {"site: 1\nroute: [{when: {gqu: 1}}]\n",                                  "2:22", "neither cores nor memory"   },
    {"site: 1\nroute: [{when: {cors: 1}}]\n",                                 "2:23", "did you mean \"cores\"?"    },
    {"site: 1\nroute: [{when: {gpu: \">x\"}}]\n",                             "2:22", "not a condition"            },
    {"site: 1\nroute: [{when: {cores: \">1g\"}}]\n",                          "2:24", "not a condition"            },
    {"site: 1\nroute: [{when: {memory: \"=>1g\"}}]\n",                        "2:25", ">=64g"                      },
    {"site: 1\nroute: [{partition: \"a b\"}]\n",                              "2:21", "one word"                   },
    {"site: 1\nroute: [{qos: \"$(x)\"}]\n",                                   "2:15", "one word"                   },
    {"site: 1\nlimits: {deny: [matlab]}\n",                                   "2:16", "not under resources:"       },
    {"site: 1\nlimits: {executors: 0}\n",                                     "2:21", "from 1"                     },
    {"site: 1\nracks: {pattern: \"r[0-9]+\"}\n",                              "2:18", "one group"                  },
    {"site: 1\nracks: {pattern: \"((a))\"}\n",                                "2:18", "one group"                  },
    {"site: 1\nracks: {pattern: \"(a\"}\n",                                   "2:18", "correct"                    },
    {"site: 1\nmpi: \"pmix;x\"\n",                                            "2:6",  "one word"                   },
    {"site: 1\ndriver: {cores: 0}\n",                                         "2:17", "from 1"                     },
    {"site: 1\ndriver: {memory: 0}\n",                                        "2:18", "is 0"                       },
    {"site: 1\nroute: {}\n",                                                  "2:8",  "list"                       },
    {"site: 1\nroute: [{when: {gpu: many}}]\n",                               "2:22", "not a condition"            },
    {"site: 1\nroute: [{whn: {gpu: 1}}]\n",                                   "2:10", "did you mean \"when\"?"     },
    {"site: 1\nlimits: {executors: -1}\n",                                    "2:21", "whole number"               },
    {"site: 1\nlimits: {time: 24x}\n",                                        "2:16", "not a time"                 },
    {"site: 1\nlimits: {deny: a}\n",                                          "2:16", "list"                       },
    {"site: 1\nracks: {from: x}\n",                                           "2:15", "write slurm"                },
    {"site: 1\nracks: {from: slurm, file: x}\n",                              "2:8",  "2 sources"                  },
    {"site: 1\nracks: {}\n",                                                  "2:8",  "0 sources"                  },
    {"site: 1\nscratch: []\n",                                                "2:10", "list"                       },
    {"site: 1\noptions: {task.cpu: 1}\n",                                     "2:11", "did you mean \"task.cpus\"?"},
    {"site: 1\noptions: {slurm.poll: [1]}\n",                                 "2:23", "list"                       },
    {"site: 1\nnodes: some\n",                                                "2:8",  "shared or exclusive"        },
    {"site: 1\ndriver: {core: 1}\n",                                          "2:10", "did you mean \"cores\"?"    },
    {"site: 1\nlocal: {gpu: 2}\n",                                            "2:14", "list"                       },
    {"site: 1\nlocal: {gpu: [\"0\", \"0\"]}\n",                               "2:20", "twice"                      },
    {"site: 1\nlocal: {gpu: [\"0,1\"]}\n",                                    "2:15", "without a comma"            },
    {"site: 1\nlocal: {gpu: [*x]}\n",                                         "2:15", "no anchor"                  },
    {"site: 1\nlocal: {gpu: [*x, a, \"\"]}\n",                                "2:15", "no anchor"                  },
};

TEST("each wrong file is told at its place")
{
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        trp_site *s = NULL;
        trp_error err = {0};
        int code = trp_site_parse("s.yaml", bad[i].text, strlen(bad[i].text), &s, &err);
        g_autofree char *begin = g_strdup_printf("s.yaml:%s: ", bad[i].place);
        if (code != TRP_EINVAL || !g_str_has_prefix(err.text, begin) ||
            !strstr(err.text, bad[i].words)) {
            g_test_message("of\n%s\nwanted %s... %s ...\ngot    %s", bad[i].text, begin,
                           bad[i].words, err.text);
            g_test_fail();
        }
        trp_site_free(s);
    }
}

TEST("the file is looked for in its places")
{
    trp_site *s;
    trp_error err;
    g_autofree char *dir = g_dir_make_tmp("troupe-test-XXXXXX", NULL);
    g_autofree char *file = g_build_filename(dir, "site.yaml", NULL);
    g_assert_cmpint(trp_site_load(file, &s, &err), ==, TRP_EINVAL);
    g_assert_nonnull(strstr(err.text, "site.yaml:1:1: cannot be opened"));
    g_assert_cmpint(setenv("TROUPE_SITE", file, 1), ==, 0);
    g_assert_cmpint(trp_site_load(NULL, &s, &err), ==, TRP_EINVAL);
    g_assert_true(g_file_set_contents(file, "site: 1\nscratch: /a\n", -1, NULL));
    g_assert_cmpint(trp_site_load(NULL, &s, &err), ==, 0);
    g_assert_cmpstr(s->file, ==, file);
    g_assert_cmpstr(s->scratch, ==, "/a");
    trp_site_free(s);
    g_assert_cmpint(trp_site_load(dir, &s, &err), ==, TRP_EINVAL);
    unsetenv("TROUPE_SITE");
    if (access("/etc/troupe/site.yaml", F_OK) != 0) {
        g_assert_cmpint(trp_site_load(NULL, &s, &err), ==, 0);
        g_assert_cmpstr(s->file, ==, "");
        g_assert_cmpuint(s->nlocal, ==, 0);
        g_assert_cmpstr(trp_site_variable(s, "gpu"), ==, "CUDA_VISIBLE_DEVICES");
        trp_site_free(s);
    }
    unlink(file);
    rmdir(dir);
}
