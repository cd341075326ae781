/*
 * What people write who know another tool, and what it is here: keys by other names,
 * and values in a shape that is shorter there. Only words: whatever is not in these
 * tables is told by the readers as any wrong key or value.
 */
#include <string.h>

#include "conf/pipeline_load.h"
#include "conf/wording.h"

struct foreign {
    const char *theirs, *ours;
};

static const struct foreign stage_keys[] = {
    {"needs",             "after: [STAGE]"                                              },
    {"depends_on",        "after: [STAGE]"                                              },
    {"dependsOn",         "after: [STAGE]"                                              },
    {"dependencies",      "after: [STAGE]"                                              },
    {"dependency",        "after: [STAGE]"                                              },
    {"requires",          "after: [STAGE]"                                              },
    {"command",           "run: TEXT for a shell, or argv: [WORD]"                      },
    {"cmd",               "run: TEXT for a shell, or argv: [WORD]"                      },
    {"exec",              "run: TEXT for a shell, or argv: [WORD]"                      },
    {"script",            "run: TEXT for a shell, or argv: [WORD]"                      },
    {"cpus",              "profile: NAME, and task: {cpus: N} in profiles"              },
    {"threads",           "profile: NAME, and task: {cpus: N} in profiles"              },
    {"cores",             "profile: NAME, and executor: {cores: N} in profiles"         },
    {"memory",            "profile: NAME, and executor: {memory: 2g} in profiles"       },
    {"mem",               "profile: NAME, and executor: {memory: 2g} in profiles"       },
    {"gpu",               "profile: NAME, and task: {gpu: N} in profiles"               },
    {"gpus",              "profile: NAME, and task: {gpu: N} in profiles"               },
    {"resources",         "profile: NAME, and the resources in profiles"                },
    {"array",             "tasks: N, or foreach"                                        },
    {"matrix",            "tasks: N, or foreach"                                        },
    {"replicas",          "tasks: N"                                                    },
    {"time",              "timeout: 2h"                                                 },
    {"walltime",          "timeout: 2h"                                                 },
    {"time_limit",        "timeout: 2h"                                                 },
    {"workdir",           "cwd: FOLDER"                                                 },
    {"working_directory", "cwd: FOLDER"                                                 },
    {"chdir",             "cwd: FOLDER"                                                 },
    {"environment",       "env: {NAME: VALUE}"                                          },
    {"container",         "wrap: [WORD], words before the command"                      },
    {"image",             "wrap: [WORD], words before the command"                      },
    {"partition",         "a route in the site file: where a request goes is the site's"},
    {"queue",             "a route in the site file: where a request goes is the site's"},
    {"ntasks",            "mpi: {ranks: N}, or tasks: N for tasks on their own"         },
};

static const struct foreign file_keys[] = {
    {"steps",     "stages: a list, each with name and run"           },
    {"jobs",      "stages: a list, each with name and run"           },
    {"tasks",     "stages: a list, each with name and run"           },
    {"rules",     "stages: a list, each with name and run"           },
    {"pipeline",  "stages: a list, each with name and run"           },
    {"version",   "troupe: 1"                                        },
    {"env",       "env: {NAME: VALUE} in each stage"                 },
    {"variables", "params: {NAME: VALUE}, in tasks TROUPE_PARAM_NAME"},
    {"vars",      "params: {NAME: VALUE}, in tasks TROUPE_PARAM_NAME"},
};

/* %s in `ours`: what stands there. */
static const struct foreign_value {
    const char *key;
    enum trp_yaml_kind kind;
    const char *is, *ours;
} foreign_values[] = {
    {"retries",   TRP_YAML_SCALAR,  "a scalar",  "{max_failures: %s}"               },
    {"mpi",       TRP_YAML_SCALAR,  "a scalar",  "{ranks: %s}"                      },
    {"executors", TRP_YAML_SCALAR,  "a scalar",  "{max: %s}"                        },
    {"foreach",   TRP_YAML_SCALAR,  "a scalar",  "{files: \"%s\"}"                  },
    {"foreach",   TRP_YAML_LIST,    "a list",    "{items: [a, b]}"                  },
    {"outputs",   TRP_YAML_SCALAR,  "a scalar",  "a list: [\"%s\"]"                 },
    {"env",       TRP_YAML_LIST,    "a list",    "a mapping, {NAME: VALUE}"         },
    {"env",       TRP_YAML_SCALAR,  "a scalar",  "a mapping, {NAME: VALUE}"         },
    {"argv",      TRP_YAML_SCALAR,  "a scalar",
     "a list, [PROGRAM, ARGUMENT], or run for a shell"                              },
    {"run",       TRP_YAML_LIST,    "a list",
     "argv in place of run: run takes a shell's text, a list of words is argv"      },
    {"stages",    TRP_YAML_MAPPING, "a mapping", "a list: - {name: NAME, run: TEXT}"},
};

static void tell_key(trp_yaml *y, const struct trp_yaml_node *key, bool stage)
{
    const struct foreign *v = stage ? stage_keys : file_keys;
    size_t n = stage ? sizeof(stage_keys) / sizeof(*stage_keys)
                     : sizeof(file_keys) / sizeof(*file_keys);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(key->text, v[i].theirs))
            trp_yaml_wrong(y, key->mark, "unknown key \"%s\" in %s; write %s",
                           key->text, stage ? "a stage" : "a pipeline file", v[i].ours);
}

static void tell_shape(trp_yaml *y, const struct trp_yaml_node *key)
{
    const struct trp_yaml_node *value = key->next;
    for (size_t i = 0; i < sizeof(foreign_values) / sizeof(*foreign_values); i++) {
        const struct foreign_value *s = &foreign_values[i];
        const char *gap = strstr(s->ours, "%s");
        bool empty = value->kind == TRP_YAML_SCALAR && !*value->text;
        if (strcmp(key->text, s->key) != 0 || value->kind != s->kind || empty)
            continue;
        if (gap)
            trp_yaml_wrong(y, value->mark, "%s is %s; write %.*s%s%s", s->key, s->is,
                           (int)(gap - s->ours), s->ours, trp_show(value->text).text,
                           gap + 2);
        else
            trp_yaml_wrong(y, value->mark, "%s is %s; write %s", s->key, s->is,
                           s->ours);
    }
}

void trp_pipeline_foreign(trp_yaml *y, const struct trp_yaml_node *node, bool stage)
{
    if (!node || node->kind != TRP_YAML_MAPPING)
        return;
    for (const struct trp_yaml_node *key = node->first; key; key = key->next->next) {
        if (key->kind != TRP_YAML_SCALAR)
            continue;
        tell_key(y, key, stage);
        tell_shape(y, key);
    }
}
