/*
 * Site files: the contract's example, what is kept of it, wrong files with their
 * places.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/site.h"

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

static void test_example(void)
{
    trp_options *o;
    trp_error err;
    trp_site *s = parse(example);
    g_assert_cmpstr(s->file, ==, "s.yaml");
    g_assert_cmpuint(s->nresources, ==, 4);
    g_assert_cmpstr(s->resources[1].name, ==, "a100");
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

    g_assert_cmpint(trp_options_new(&o, &err), ==, 0);
    g_assert_cmpint(trp_site_options(s, o, &err), ==, 0);
    g_assert_cmpfloat(trp_options_number(o, "executor.memoryOverheadFactor"), ==, 0.20);
    g_assert_cmpint(trp_options_memory_mib(o, "executor.minMemoryOverhead"), ==, 300);
    g_assert_cmpstr(trp_options_where(o, "executor.memoryOverheadFactor"), ==,
                    "s.yaml:7:29");
    g_assert_cmpint(trp_options_origin(o, "executor.memoryOverheadFactor"), ==,
                    TRP_ORIGIN_SITE);
    trp_options_free(o);
    trp_site_free(s);
}

static void test_variables(void)
{
    trp_site *s = parse("site: 1\nresources: {gpu: {slurm: g}, fpga: {env: F}}\n");
    g_assert_cmpstr(trp_site_variable(s, "gpu"), ==, "CUDA_VISIBLE_DEVICES");
    g_assert_cmpstr(trp_site_variable(s, "fpga"), ==, "F");
    trp_site_free(s);
    s = parse("site: 1\nresources: {gpu: {env: \"\"}}\n");
    g_assert_null(trp_site_variable(s, "gpu"));
    trp_site_free(s);
}

static const struct {
    const char *text, *place, *words;
} bad[] = {
    {"",                                          "1:1",  "empty"                      },
    {"scratch: /x\n",                             "1:1",  "no \"site\""                },
    {"site: 2\n",                                 "1:7",  "write site: 1"              },
    {"site: 1\nresorces: {}\n",                   "2:1",  "did you mean \"resources\"?"},
    {"site: 1\nsite: 1\n",                        "2:1",  "twice"                      },
    {"site: 1\nresources: {gpu: {slurn: x}}\n",   "2:19", "did you mean \"slurm\"?"    },
    {"site: 1\nresources: {gpu: {env: A=B}}\n",   "2:24", "'='"                        },
    {"site: 1\nresources: {9: {}}\n",             "2:13", "resource's name"            },
    {"site: 1\nresources: {a: {countable: 0}}\n", "2:28", "true or false"              },
    {"site: 1\nmemory: {overhead_factor: x}\n",   "2:27", "number from 0"              },
    {"site: 1\nmemory: {overhead_min: 3q}\n",     "2:24", "3q"                         },
    {"site: 1\nroute: {}\n",                      "2:8",  "list"                       },
    {"site: 1\nroute: [{when: {gpu: many}}]\n",   "2:22", "not a condition"            },
    {"site: 1\nroute: [{whn: {gpu: 1}}]\n",       "2:10", "did you mean \"when\"?"     },
    {"site: 1\nlimits: {executors: -1}\n",        "2:21", "whole number"               },
    {"site: 1\nlimits: {time: 24x}\n",            "2:16", "not a time"                 },
    {"site: 1\nlimits: {deny: a}\n",              "2:16", "list"                       },
    {"site: 1\nracks: {from: x}\n",               "2:15", "write slurm"                },
    {"site: 1\nracks: {from: slurm, file: x}\n",  "2:8",  "2 sources"                  },
    {"site: 1\nracks: {}\n",                      "2:8",  "0 sources"                  },
    {"site: 1\nscratch: []\n",                    "2:10", "list"                       },
    {"site: 1\noptions: {task.cpu: 1}\n",         "2:11", "did you mean \"task.cpus\"?"},
    {"site: 1\noptions: {slurm.poll: [1]}\n",     "2:23", "list"                       },
    {"site: 1\nnodes: some\n",                    "2:8",  "shared or exclusive"        },
    {"site: 1\ndriver: {core: 1}\n",              "2:10", "did you mean \"cores\"?"    },
    {"site: 1\nlocal: {gpu: 2}\n",                "2:14", "list"                       },
    {"site: 1\nlocal: {gpu: [\"0\", \"0\"]}\n",   "2:20", "twice"                      },
    {"site: 1\nlocal: {gpu: [\"0,1\"]}\n",        "2:15", "without a comma"            },
    {"site: 1\nlocal: {gpu: [*x]}\n",             "2:15", "aliases"                    },
    {"site: 1\nlocal: {gpu: [*x, a, \"\"]}\n",    "2:15", "aliases"                    },
};

static void test_bad_files(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        trp_site *s = NULL;
        trp_error err = {0};
        int code = trp_site_parse("s.yaml", bad[i].text, strlen(bad[i].text), &s, &err);
        char *begin = g_strdup_printf("s.yaml:%s: ", bad[i].place);
        if (code != TRP_EINVAL || !g_str_has_prefix(err.text, begin) ||
            !strstr(err.text, bad[i].words)) {
            g_test_message("of\n%s\nwanted %s... %s ...\ngot    %s", bad[i].text, begin,
                           bad[i].words, err.text);
            g_test_fail();
        }
        g_free(begin);
        trp_site_free(s);
    }
}

static void test_where(void)
{
    trp_site *s;
    trp_error err;
    char *dir = g_dir_make_tmp("troupe-test-XXXXXX", NULL);
    char *file = g_build_filename(dir, "site.yaml", NULL);
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
    g_free(file);
    g_free(dir);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/site/the example of the contract means what it says",
                    test_example);
    g_test_add_func("/site/gpu has its variable unless the file says otherwise",
                    test_variables);
    g_test_add_func("/site/each wrong file is told at its place", test_bad_files);
    g_test_add_func("/site/the file is looked for in its places", test_where);
    return g_test_run();
}
