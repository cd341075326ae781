/*
 * Pipeline files: what the contract's example means, and each wrong file with the exact
 * place that its error names.
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/pipeline.h"
#include "conf/site.h"
#include "conf/yaml.h"
#include "core/base/amount.h"
#include "unit.h"

static trp_pipeline *parse(const char *text)
{
    trp_pipeline *p = NULL;
    trp_error err = {0};
    int code = trp_pipeline_parse("f.yaml", text, strlen(text), &p, &err);
    if (code < 0)
        g_test_message("%s", err.text);
    g_assert_cmpint(code, ==, 0);
    return p;
}

/* The text is refused at f.yaml:PLACE, in words that hold `words`. */
static void check_refused(const char *text, size_t size, const char *place,
                          const char *words)
{
    trp_pipeline *p = NULL;
    trp_error err = {0};
    int code = trp_pipeline_parse("f.yaml", text, size, &p, &err);
    g_autofree char *begin = g_strdup_printf("f.yaml:%s: ", place);
    if (code != TRP_EINVAL || !g_str_has_prefix(err.text, begin) ||
        !strstr(err.text, words)) {
        g_test_message("of\n%.500s\nwanted %s... %s ...\ngot    %s", text, begin, words,
                       code ? err.text : "no error");
        g_test_fail();
    }
    g_assert_null(strchr(err.text, '\n'));
    trp_pipeline_free(p);
}

#define HEAD "troupe: 1\n"
#define TAIL "stages: [{name: a, run: x}]\n"
/* A file of one stage, whose keys begin in line 4, column 5. */
#define STAGE "troupe: 1\nstages:\n  - name: a\n    "
#define RUN_STAGE "troupe: 1\nstages:\n  - name: a\n    run: x\n    " /* line 5 */

static const struct {
    const char *text, *place, *words;
} bad[] = {
  /* not YAML at all */
    {"",                                                                                 "1:1",  "empty"                                        },
    {"# only this\n",                                                                    "1:1",  "empty"                                        },
    {"---\n",                                                                            "1:1",  "empty"                                        },
    {"hello",                                                                            "1:1",  "mapping"                                      },
    {"[1, 2]\n",                                                                         "1:1",  "mapping"                                      },
    {HEAD "name: \"abc\n",                                                               "2:8",  "not YAML"                                     },
    {HEAD "name: [a, b\n",                                                               "2:7",  "bracket is not closed"                        },
    {HEAD "profiles: {a: {task: [1}}\n",                                                 "2:24", "not YAML"                                     },
    {HEAD "\tname: x\n",                                                                 "1:9",  "not YAML"                                     },
    {HEAD "name: a: b\n",                                                                "2:8",  "not YAML"                                     },
    {"%YAML 3.0\n---\na: b\n",                                                           "1:1",  "not YAML"                                     },
    {HEAD TAIL "---\n" HEAD TAIL,                                                        "4:1",  "second document"                              },
    {HEAD "name: a\001b\n",                                                              "2:8",  "UTF-8"                                        },
    {HEAD "name: \xc3\xa9\xff\n",                                                        "2:8",  "UTF-8"                                        },
    {HEAD "name: \xe2\x82\n",                                                            "2:7",  "UTF-8"                                        },
    {HEAD "name: \xc0\x80\n",                                                            "2:7",  "UTF-8"                                        },
    {HEAD "name: \xed\xa0\x80\n",                                                        "2:7",  "UTF-8"                                        },
    {HEAD "name: \xf5\x80\x80\x80\n",                                                    "2:7",  "UTF-8"                                        },
    {"a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",                                       "1:35", "32 levels"                                    },
 /* what YAML has and we do not */
    {HEAD "name: *x\n" TAIL,                                                             "2:7",  "no anchor"                                    },
    {RUN_STAGE "foreach: {files: *.txt}\n",                                              "5:22", "quotes"                                       },
    {HEAD "name: !!str x\n" TAIL,                                                        "2:7",  "tags"                                         },
    {RUN_STAGE "env: {<<: *x}\n",                                                        "5:15", "no anchor"                                    },
    {HEAD "? [a, b]\n: c\n" TAIL,                                                        "2:3",  "a key is"                                     },
    {HEAD "{a: b}: c\n" TAIL,                                                            "2:1",  "a key is"                                     },
 /* the file */
    {"name: x\n" TAIL,                                                                   "1:1",  "no \"troupe\"; add the key, with the value 1" },
    {HEAD "name: x\n",                                                                   "1:1",  "no \"stages\""                                },
    {"troupe: 2\n" TAIL,                                                                 "1:9",  "write troupe: 1"                              },
    {"troupe: \"1\"\n" TAIL,                                                             "1:9",  "write troupe: 1"                              },
    {"troupe:\n" TAIL,                                                                   "1:1",  "write troupe: 1"                              },
    {"troupe: [1]\n" TAIL,                                                               "1:9",  "list"                                         },
    {HEAD "nam: x\n" TAIL,                                                               "2:1",  "did you mean \"name\"?"                       },
    {HEAD "stagse: []\n",                                                                "2:1",  "did you mean \"stages\"?"                     },
    {HEAD "xyzzy: x\n" TAIL,                                                             "2:1",  "the keys are troupe, name, profiles"          },
    {HEAD "name: x\nname: y\n" TAIL,                                                     "3:1",  "stands twice, first in line 2"                },
    {HEAD "\"name\": x\nname: y\n" TAIL,                                                 "3:1",  "twice"                                        },
    {HEAD "name: [x]\n" TAIL,                                                            "2:7",  "name is a list"                               },
    {HEAD "name:\n" TAIL,                                                                "2:1",  "empty"                                        },
    {HEAD "stages:\n",                                                                   "2:1",  "stages is empty; write a list"                },
    {HEAD "stages: []\n",                                                                "2:9",  "0 stages"                                     },
    {HEAD "stages: {a: b}\n",                                                            "2:9",  "write a list"                                 },
    {HEAD "stages:\n  - x\n",                                                            "3:5",  "a stage is a scalar"                          },
 /* the first by place, not by kind */
    {HEAD "nam: x\nname: [x]\n" TAIL,                                                    "2:1",  "nam"                                          },
    {HEAD "name: [x]\nnam: x\n" TAIL,                                                    "2:7",  "list"                                         },
    {RUN_STAGE "after: b\n  - name: c\n    runn: x\n",                                   "5:12", "unknown stage"                                },
    {RUN_STAGE "after: {stage: b, each: true}\n  - name: b\n    run: x\n    tasks: x\n",
     "8:12",                                                                                     "tasks"                                        },
    {HEAD "nam: x\nname: {a: 1, a: 2}\n" TAIL,                                           "2:1",  "nam"                                          },
    {HEAD "nam: x\nstages: [\n",                                                         "3:9",  "not YAML"                                     },
 /* params, options */
    {HEAD "params: [x]\n" TAIL,                                                          "2:9",  "mapping"                                      },
    {HEAD "params: {a-b: x}\n" TAIL,                                                     "2:10", "TROUPE_PARAM_NAME"                            },
    {HEAD "params: {a: x, b: [y]}\n" TAIL,                                               "2:19", "a value of params is a list"                  },
    {HEAD "params: {a: x, a: y}\n" TAIL,                                                 "2:16", "twice"                                        },
    {HEAD "params: {a: \"x\\0y\"}\n" TAIL,                                               "2:13", "NUL"                                          },
    {HEAD "options: {locality.wiat: 3s}\n" TAIL,                                         "2:11",
     "unknown option \"locality.wiat\"; did you mean \"locality.wait\"?"                                                                        },
    {HEAD "options: {locality.wait: 3 s}\n" TAIL,                                        "2:26", "locality.wait: \"3 s\""                       },
    {HEAD "options: {task.maxFailures: 0}\n" TAIL,                                       "2:29", "write at least 1"                             },
    {HEAD "options: {executor: {cores: 1}}\n" TAIL,                                      "2:11", "unknown option"                               },
    {HEAD "options:\n  alloc.reuse: maybe\n" TAIL,                                       "3:16", "exact|fit|never"                              },
    {HEAD "options: {executor.resource.gpu: 1}\n" TAIL,                                  "2:11",
     "executor.resource.R.amount"                                                                                                               },
 /* profiles */
    {HEAD "profiles: []\n" TAIL,                                                         "2:11", "mapping"                                      },
    {HEAD "profiles: {a: x}\n" TAIL,                                                     "2:15", "a profile is a scalar"                        },
    {HEAD "profiles: {-a: {}}\n" TAIL,                                                   "2:12", "not a profile's name"                         },
    {HEAD "profiles: {default: {}}\n" TAIL,                                              "2:12", "\"default:\""                                 },
    {HEAD "profiles:\n  a: {task: {cpus: 1}}\n  a: {task: {cpus: 2}}\n" TAIL,            "4:3",
     "twice"                                                                                                                                    },
    {HEAD "profiles: {a: {exec: {cores: 1}}}\n" TAIL,                                    "2:16", "unknown key \"exec\""                         },
    {HEAD "profiles: {a: {executor: 4}}\n" TAIL,                                         "2:26", "executor is a scalar"                         },
    {HEAD "profiles: {a: {executor: {cores: four}}}\n" TAIL,                             "2:34", "whole number"                                 },
    {HEAD "profiles: {a: {executor: {cores: 1.5}}}\n" TAIL,                              "2:34", "whole number"                                 },
    {HEAD "profiles: {a: {executor: {cores: -1}}}\n" TAIL,                               "2:34", "whole number"                                 },
    {HEAD "profiles: {a: {executor: {memory: 2q}}}\n" TAIL,                              "2:35", "2q"                                           },
    {HEAD "profiles: {a: {executor: {memory: -2g}}}\n" TAIL,                             "2:35", "-2g"                                          },
    {HEAD "profiles: {a: {executor: {Cores: 1}}}\n" TAIL,                                "2:27", "\"cores\"?"                                   },
    {HEAD "profiles: {a: {executor: {cpus: 1}}}\n" TAIL,                                 "2:27",
     "an executor has cores"                                                                                                                    },
    {HEAD "profiles: {a: {task: {memory: 1g}}}\n" TAIL,                                  "2:23", "cpus and custom"                              },
    {HEAD "profiles: {a: {executor: {g u: 1}}}\n" TAIL,                                  "2:27", "resource's name"                              },
    {HEAD "profiles: {a: {task: {cpus: 1.5}}}\n" TAIL,                                   "2:29", "cpus"                                         },
    {HEAD "profiles: {a: {task: {gpu: 1/0}}}\n" TAIL,                                    "2:28", "1/0"                                          },
    {HEAD "profiles: {a: {task: {gpu: 1.5}}}\n" TAIL,                                    "2:28", "1.5"                                          },
    {HEAD "default: {executer: {}}\n" TAIL,                                              "2:11", "did you mean \"executor\"?"                   },
 /* a stage */
    {HEAD "stages:\n  - run: x\n",                                                       "3:5",  "no \"name\""                                  },
    {HEAD "stages:\n  - name: a\n",                                                      "3:5",  "neither \"run\" nor \"argv\""                 },
    {HEAD "stages: [{}]\n",                                                              "2:10", "no \"name\""                                  },
    {RUN_STAGE "needs: [a]\n",                                                           "5:5",
     "unknown key \"needs\" in a stage; write after: [STAGE]"                                                                                   },
    {RUN_STAGE "cpus: 2\n",                                                              "5:5",
     "write profile: NAME, and task: {cpus: N} in profiles"                                                                                     },
    {STAGE "command: x\n",                                                               "4:5",  "write run: TEXT for a shell, or argv: [WORD]" },
    {STAGE "run: [echo, hi]\n",                                                          "4:10", "a list of words is argv"                      },
    {HEAD "profiles: {a: {executor: {core: 2}}}\n" TAIL,                                 "2:27",
     "did you mean \"cores\"?"                                                                                                                  },
    {HEAD "profiles: {a: {executor: {mem: 2}}}\n" TAIL,                                  "2:27",
     "did you mean \"memory\"?"                                                                                                                 },
    {HEAD "profiles: {a: {executor: {cpu: 2}}}\n" TAIL,                                  "2:27",
     "an executor has cores, a task takes cpus"                                                                                                 },
    {STAGE "rum: x\n",                                                                   "4:5",  "did you mean \"run\"?"                        },
    {STAGE "RUN: x\n",                                                                   "4:5",  "did you mean \"run\"?"                        },
    {RUN_STAGE "argv: [x]\n",                                                            "5:5",  "both run and argv"                            },
    {STAGE "argv: [x]\n    run: x\n",                                                    "5:5",  "both run and argv"                            },
    {STAGE "run:\n",                                                                     "4:5",  "run is empty"                                 },
    {STAGE "run: \"\"\n",                                                                "4:10", "run is empty"                                 },
    {STAGE "run: |\n    tasks: 1\n",                                                     "5:5",  "no deeper than its key"                       },
    {STAGE "run: >-\n\n   \n    tasks: 1\n",                                             "7:5",  "no deeper than its key"                       },
    {STAGE "run: |\n\n",                                                                 "4:10", "run is empty"                                 },
    {STAGE "run: | # |\n",                                                               "4:10", "run is empty"                                 },
    {STAGE "run: [a, b]\n",                                                              "4:10", "run is a list"                                },
    {STAGE "run: \"a\\0b\"\n",                                                           "4:10", "NUL"                                          },
    {STAGE "argv: ls\n",                                                                 "4:11", "argv is a scalar; write a list"               },
    {STAGE "argv: []\n",                                                                 "4:11", "argv is empty"                                },
    {STAGE "argv: [\"\", a]\n",                                                          "4:12", "no program"                                   },
    {STAGE "argv: [ls, [a]]\n",                                                          "4:16", "an item of argv is a list"                    },
    {STAGE "argv: [ls]\n    prelude: module load x\n",                                   "5:5",  "prelude"                                      },
    {RUN_STAGE "wrap: nice\n",                                                           "5:11", "list"                                         },
    {RUN_STAGE "profile: [a]\n",                                                         "5:14", "list"                                         },
    {RUN_STAGE "name: b\n",                                                              "5:5",  "twice"                                        },
    {RUN_STAGE "tasks: many\n",                                                          "5:12", "whole number from 0 to 10000000"              },
    {RUN_STAGE "tasks: \"4\"\n",                                                         "5:12", "whole number"                                 },
    {RUN_STAGE "tasks: -1\n",                                                            "5:12", "tasks is -1"                                  },
    {RUN_STAGE "tasks: 10000001\n",                                                      "5:12", "10000000"                                     },
    {RUN_STAGE "tasks: 99999999999999999999\n",                                          "5:12", "10000000"                                     },
    {RUN_STAGE "tasks: 1.5\n",                                                           "5:12", "whole number"                                 },
    {RUN_STAGE "tasks: 0x10\n",                                                          "5:12", "whole number"                                 },
    {RUN_STAGE "tasks:\n",                                                               "5:5",  "tasks is empty"                               },
    {RUN_STAGE "tasks: [4]\n",                                                           "5:12", "list"                                         },
    {RUN_STAGE "tasks: 4\n    foreach: {items: [a]}\n",                                  "6:5",
     "both tasks and foreach"                                                                                                                   },
    {RUN_STAGE "foreach: {items: [a]}\n    tasks: 4\n",                                  "6:5",
     "both tasks and foreach"                                                                                                                   },
    {RUN_STAGE "foreach: data/*.txt\n",                                                  "5:14", "foreach is a scalar"                          },
    {RUN_STAGE "foreach: {}\n",                                                          "5:14", "files, items, lines"                          },
    {RUN_STAGE "foreach: {file: x}\n",                                                   "5:15", "did you mean \"files\"?"                      },
    {RUN_STAGE "foreach: {files: x, key: y}\n",                                          "5:30",
     "key names a column of a table"                                                                                                            },
    {RUN_STAGE "foreach: {table: x, group: y, key: z}\n",                                "5:40", "leave key out"                                },
    {RUN_STAGE "foreach: {product: {a: {table: x, key: y}}}\n",                          "5:39", "unknown key"                                  },
    {RUN_STAGE "foreach: {files: x, lines: y}\n",                                        "5:25", "second source"                                },
    {RUN_STAGE "foreach: {files: [x]}\n",                                                "5:22", "list"                                         },
    {RUN_STAGE "foreach: {files: \"\"}\n",                                               "5:22", "empty"                                        },
    {RUN_STAGE "foreach: {items: x}\n",                                                  "5:22", "write a list"                                 },
    {RUN_STAGE "foreach: {items: [x, {y: z}]}\n",                                        "5:26", "mapping"                                      },
    {RUN_STAGE "allow_empty: yes\n",                                                     "5:18", "true or false"                                },
    {RUN_STAGE "allow_empty: \"true\"\n",                                                "5:18", "true or false"                                },
    {RUN_STAGE "mpi: 8\n",                                                               "5:10", "mpi is a scalar"                              },
    {RUN_STAGE "mpi: {}\n",                                                              "5:10", "ranks"                                        },
    {RUN_STAGE "mpi: {ranks: 0}\n",                                                      "5:18", "1 to 100000"                                  },
    {RUN_STAGE "mpi: {ranks: 100001}\n",                                                 "5:18", "1 to 100000"                                  },
    {RUN_STAGE "mpi: {ranks: 2}\n    tasks: 3\n",                                        "6:5",  "one task"                                     },
    {RUN_STAGE "tasks: 3\n    mpi: {ranks: 2}\n",                                        "6:5",  "one task"                                     },
    {RUN_STAGE "mpi: {ranks: 2}\n    foreach: {items: [a]}\n",                           "6:5",  "one task"                                     },
    {RUN_STAGE "barrier: 3\n",                                                           "5:14", "true"                                         },
    {RUN_STAGE "barrier: true\n    mpi: {ranks: 2}\n",                                   "6:5",  "leave barrier out"                            },
    {RUN_STAGE "max_running: 2\n    barrier: true\n",                                    "6:5",  "leave max_running out"                        },
    {RUN_STAGE "barrier: true\n    tolerate: 1\n",                                       "6:5",  "leave tolerate out"                           },
    {RUN_STAGE "env: [A=b]\n",                                                           "5:10", "mapping"                                      },
    {RUN_STAGE "env: {TROUPE_TASK: 1}\n",                                                "5:11", "set by troupe itself"                         },
    {RUN_STAGE "env: {\"\": 1}\n",                                                       "5:11", "name"                                         },
    {RUN_STAGE "env: {A=B: 1}\n",                                                        "5:11", "name"                                         },
    {RUN_STAGE "env: {A: {b: c}}\n",                                                     "5:14", "a value of env is a mapping"                  },
    {RUN_STAGE "env: {A: 1, A: 2}\n",                                                    "5:17", "twice"                                        },
    {RUN_STAGE "cwd: [x]\n",                                                             "5:10", "list"                                         },
    {RUN_STAGE "timeout: 2 hours\n",                                                     "5:14", "not a time"                                   },
    {RUN_STAGE "timeout: 3w\n",                                                          "5:14", "us, ms, s, m, h, d"                           },
    {RUN_STAGE "timeout: -3\n",                                                          "5:14", "not a time"                                   },
    {RUN_STAGE "timeout: 0\n",                                                           "5:14", "more than 0"                                  },
    {RUN_STAGE "timeout: 99999999999d\n",                                                "5:14", "too long"                                     },
    {RUN_STAGE "outputs: parts/*\n",                                                     "5:14", "write a list"                                 },
    {RUN_STAGE "outputs: [a, \"\"]\n",                                                   "5:18", "empty pattern"                                },
    {RUN_STAGE "prefer: [h1/x]\n",                                                       "5:14", "not a place"                                  },
    {RUN_STAGE "max_running: 0\n",                                                       "5:18", "1 to"                                         },
    {RUN_STAGE "tolerate: -3\n",                                                         "5:15", "0 to"                                         },
    {RUN_STAGE "tolerate: 1.5\n",                                                        "5:15", "whole number"                                 },
    {RUN_STAGE "tolerate: 101%\n",                                                       "5:15", "0% to 100%"                                   },
    {RUN_STAGE "tolerate: x%\n",                                                         "5:15", "0% to 100%"                                   },
    {RUN_STAGE "retries: 4\n",                                                           "5:14", "write {max_failures: 4}"                      },
    {RUN_STAGE "mpi: 4\n",                                                               "5:10", "mpi is a scalar; write {ranks: 4}"            },
    {RUN_STAGE "foreach: a/*.x\n",                                                       "5:14",
     "foreach is a scalar; write {files: \"a/*.x\"}"                                                                                            },
    {RUN_STAGE "foreach: [a]\n",                                                         "5:14", "foreach is a list; write {items: [a, b]}"     },
    {RUN_STAGE "env: [A=b]\n",                                                           "5:10", "env is a list; write a mapping, {NAME: VALUE}"},
    {RUN_STAGE "executors: 3\n",                                                         "5:16", "executors is a scalar; write {max: 3}"        },
    {RUN_STAGE "partition: x\n",                                                         "5:5",  "write a route in the site file"               },
    {RUN_STAGE "dependsOn: x\n",                                                         "5:5",  "write after: [STAGE]"                         },
    {HEAD "stages:\n  - {name: a, argv: echo hi}\n",                                     "3:21",
     "argv is a scalar; write a list, [PROGRAM, ARGUMENT]"                                                                                      },
    {HEAD "stages: {a: {run: x}}\n",                                                     "2:9",
     "stages is a mapping; write a list: - {name: NAME"                                                                                         },
    {HEAD "steps: [{name: a, run: x}]\n",                                                "2:1",
     "unknown key \"steps\" in a pipeline file; write stages:"                                                                                  },
    {HEAD "profiles: {a: {executor: {gpus: 1}}}\n"
          "stages: [{name: a, run: x}]\n",                                          "2:27", "did you mean \"gpu\"?"                        },
    {RUN_STAGE "retries: {max_failure: 4}\n",                                            "5:15", "did you mean \"max_failures\"?"               },
    {RUN_STAGE "retries: {max_failures: 0}\n",                                           "5:29", "1 to"                                         },
    {RUN_STAGE "retries: {memory_factor: 0.5}\n",                                        "5:30", "number from 1 to 100"                         },
    {RUN_STAGE "retries: {not_on: 2}\n",                                                 "5:23", "list"                                         },
    {RUN_STAGE "retries: {not_on: [2, 0]}\n",                                            "5:27", "1 to 255"                                     },
    {RUN_STAGE "retries: {not_on: [2, 256]}\n",                                          "5:27", "1 to 255"                                     },
    {RUN_STAGE "executors: {look_ahead: soon}\n",                                        "5:29",
     "look_ahead is \"soon\"; write auto, off, or a time"                                                                                       },
    {RUN_STAGE "executors: {min: 3, max: 2}\n",                                          "5:16", "min 3 is above max 2"                         },
    {RUN_STAGE "executors: {max: 0}\n",                                                  "5:22", "1 to"                                         },
    {RUN_STAGE "foreach: {items: [a]}\n    env: {A: \"x${col.s}\"}\n",                   "6:16",
     "${col.s}: its items have no columns"                                                                                                      },
    {RUN_STAGE "foreach: {product: {lr: [1]}}\n    cwd: \"${col.lrr}\"\n",               "6:10",
     "did you mean \"col.lr\""                                                                                                                  },
    {RUN_STAGE "foreach: {product: {lr: [1]}}\n    cwd: \"${zzzzzz}\"\n",                "6:10",
     "the names are task, item, dir, name, stem, ext, col.lr, and"                                                                              },
    {RUN_STAGE "foreach: {table: t}\n    cwd: \"${zzzzzz}\"\n",                          "6:10",
     "ext, col.NAME of a column of its table"                                                                                                   },
    {HEAD "stages:\n  - {name: \"a b\", run: x}\n",                                      "3:12", "not a stage's name"                           },
    {HEAD "stages:\n  - {name: .a, run: x}\n",                                           "3:12", "not a stage's name"                           },
    {HEAD "stages:\n  - {name: \xc3\xa9, run: x, tsks: 1}\n",                            "3:12", "stage's name"                                 },
    {HEAD "stages:\n  - {run: \"\xc3\xa9\xe2\x82\xac\", name: a, nam: 1}\n",             "3:26",
     "unknown key \"nam\""                                                                                                                      },
    {HEAD "stages:\r\n  - name: a\r\n    runn: x\r\n",                                   "4:5",  "runn"                                         },
    {"\xef\xbb\xbfnam: x\n",                                                             "1:1",  "nam"                                          },
 /* several stages */
    {HEAD "stages:\n  - {name: a, run: x}\n  - {name: a, run: y}\n",                     "4:12",
     "a second stage \"a\", the first is in line 3"                                                                                             },
    {RUN_STAGE "after: [b]\n",                                                           "5:13", "unknown stage \"b\"; the stages are a"        },
    {HEAD "stages:\n  - {name: split, run: x}\n  - {name: b, after: splt, run: y}\n",
     "4:22",                                                                                     "did you mean \"split\"?"                      },
    {RUN_STAGE "after:\n",                                                               "5:5",  "after is empty"                               },
    {RUN_STAGE "after: [{each: true}]\n",                                                "5:13", "no \"stage\""                                 },
    {RUN_STAGE "after: [{each: 1, stage: a}]\n",                                         "5:20", "true or false"                                },
    {RUN_STAGE "after: [{ech: true, stage: a}]\n",                                       "5:14", "did you mean \"each\"?"                       },
    {RUN_STAGE "after: [[a]]\n",                                                         "5:13", "list"                                         },
    {HEAD "stages:\n  - {name: a, run: x}\n  - {name: b, run: x, after: [a, a]}\n",
     "4:34",                                                                                     "twice"                                        },
    {RUN_STAGE "after: [a]\n",                                                           "5:13", "a → a"                                      },
    {HEAD "stages:\n  - {name: a, run: x, after: [b]}\n  - {name: b, run: x, after: "
          "[a]}\n",                                                                 "3:31", "a → b → a"                                },
    {HEAD "stages:\n  - {name: z, run: x, after: c}\n  - {name: a, run: x, after: c}\n"
          "  - {name: b, run: x, after: a}\n  - {name: c, run: x, after: b}\n",     "4:30", "a → c → b → a"                          },
    {HEAD "stages:\n  - {name: a, run: x, tasks: 4}\n"
          "  - {name: b, run: x, tasks: 5, after: [{stage: a, each: true}]}\n",     "4:49", "stage a has 4 tasks, b has 5"                 },
    {HEAD "stages:\n  - {name: a, run: x, foreach: {items: [1, 2]}}\n"
          "  - {name: b, run: x, after: [{stage: a, each: true}]}\n",               "4:39", "stage a has 2 tasks, b has 1"                 },
};

TEST("each wrong file is told at its place")
{
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        check_refused(bad[i].text, strlen(bad[i].text), bad[i].place, bad[i].words);
}

/* A file of two stages: b comes after a. */
static void check_many_to_one(const char *above, const char *foreach, const char *after,
                              const char *place, const char *words)
{
    g_autofree char *text = g_strdup_printf(HEAD "stages:\n- {name: a, run: x%s}\n"
                                                 "- {name: b, run: x%s, after: [%s]}\n",
                                            above, foreach, after);
    check_refused(text, strlen(text), place, words);
}

TEST("what group and by ask of a stage is told at its place")
{
    const char *table = ", foreach: {table: t}";
    check_many_to_one(table, table, "{each: true, stage: a, by: x}", "4:77",
                      "both each and by");
    check_many_to_one(table, "", "{stage: a, by: x}", "4:44",
                      "by: stage b has no table");
    check_many_to_one(", tasks: 3", table, "{stage: a, by: x}", "4:65",
                      "by: stage a has no table");
    check_many_to_one(table, ", foreach: {lines: x, group: y}", "a", "4:48",
                      "group names a column of a table");
    check_many_to_one(table, ", foreach: {table: x}, barrier: true",
                      "{stage: a, by: x}", "4:73", "leave by out");
}

TEST("group and by are kept")
{
    trp_pipeline *p = parse(HEAD "stages:\n- {name: a, run: x, foreach: {table: t}}\n"
                                 "- {name: b, run: x, foreach: {table: u, group: s}, "
                                 "after: [{stage: a, by: s}]}\n");
    const struct trp_pipeline_stage *s = &p->stages[1];
    g_assert_cmpint(s->foreach, ==, TRP_FOREACH_TABLE);
    g_assert_cmpstr(s->group, ==, "s");
    g_assert_cmpuint(s->group_mark.column, ==, 48);
    g_assert_true(s->after[0].each);
    g_assert_cmpstr(s->after[0].by, ==, "s");
    g_assert_cmpuint(s->after[0].by_mark.column, ==, 75);
    trp_pipeline_free(p);
}

/* ---- good files ---- */

static const char example[] =
    "troupe: 1\n"
    "name: weather\n"
    "profiles:\n"
    "  prep:  {executor: {cores: 4, memory: 2g, memoryOverhead: 256m}, task: {cpus: "
    "1}}\n"
    "  train: {executor: {cores: 2, memory: 8g, gpu: 2}, task: {cpus: 1, gpu: 1}}\n"
    "  light: {task: {cpus: 2}}                  # task-only\n"
    "stages:\n"
    "  - name: split                             # [A-Za-z0-9_][A-Za-z0-9._-]{0,63}\n"
    "    foreach: {files: \"data/*.txt\"}          # or {items: [...]}\n"
    "    profile: prep\n"
    "    run: ./split \"$TROUPE_ITEM\" > parts/$TROUPE_TASK\n"
    "    outputs: [\"parts/*\"]\n"
    "  - name: solve\n"
    "    after: [split]\n"
    "    profile: prep\n"
    "    mpi: {ranks: 8}                         # a gang\n"
    "    run: ./solver parts/\n"
    "    timeout: 2h\n"
    "  - name: train\n"
    "    after: [solve]\n"
    "    profile: train\n"
    "    tasks: 4\n"
    "    run: ./train --device $TROUPE_RESOURCE_gpu\n"
    "    retries: {max_failures: 4, memory_factor: 1.5}   # more memory\n";

TEST("the example of the contract means what it says")
{
    trp_pipeline *p = parse(example);
    g_assert_cmpstr(p->file, ==, "f.yaml");
    g_assert_cmpstr(p->name, ==, "weather");
    g_assert_cmpuint(p->nprofiles, ==, 3);
    const struct trp_profile_builder *b = &p->profiles[0].builder;
    g_assert_cmpstr(b->name, ==, "prep");
    g_assert_cmpint(b->executor.cores, ==, 4);
    g_assert_cmpint(b->executor.memory_mib, ==, 2048);
    g_assert_cmpint(b->executor.overhead_mib, ==, 256);
    g_assert_cmpint(b->executor.offheap_mib, ==, -1);
    g_assert_cmpint(b->cpus, ==, 1);
    b = &p->profiles[1].builder;
    g_assert_cmpuint(b->ncustom, ==, 1);
    g_assert_cmpstr(b->custom[0].name, ==, "gpu");
    g_assert_cmpint(b->custom[0].executor, ==, 2);
    g_assert_cmpint(b->custom[0].task, ==, TRP_ONE);
    b = &p->profiles[2].builder;
    g_assert_false(b->has_executor);
    g_assert_cmpint(b->cpus, ==, 2);
    g_assert_cmpuint(p->profiles[2].mark.line, ==, 6);
    g_assert_cmpuint(p->profiles[2].mark.column, ==, 3);
    g_assert_null(p->fallback);

    g_assert_cmpuint(p->nstages, ==, 3);
    const struct trp_pipeline_stage *s = &p->stages[0];
    g_assert_cmpstr(s->name, ==, "split");
    g_assert_cmpuint(s->mark.line, ==, 8);
    g_assert_cmpuint(s->mark.column, ==, 11);
    g_assert_cmpint(s->foreach, ==, TRP_FOREACH_FILES);
    g_assert_cmpstr(s->pattern, ==, "data/*.txt");
    g_assert_cmpuint(s->foreach_mark.line, ==, 9);
    g_assert_cmpuint(s->foreach_mark.column, ==, 22);
    g_assert_cmpstr(s->profile, ==, "prep");
    g_assert_cmpstr(s->run, ==, "./split \"$TROUPE_ITEM\" > parts/$TROUPE_TASK");
    g_assert_cmpuint(s->noutputs, ==, 1);
    g_assert_cmpstr(s->outputs[0], ==, "parts/*");
    g_assert_false(s->tasks_written);
    g_assert_cmpuint(s->nafter, ==, 0);
    s = &p->stages[1];
    g_assert_cmpuint(s->spec.ranks, ==, 8);
    g_assert_cmpuint(s->tasks, ==, 1);
    g_assert_cmpint(s->timeout_ns, ==, INT64_C(7200000000000));
    g_assert_cmpuint(s->nafter, ==, 1);
    g_assert_cmpuint(s->after[0].index, ==, 0);
    g_assert_false(s->after[0].each);
    s = &p->stages[2];
    g_assert_cmpuint(s->tasks, ==, 4);
    g_assert_true(s->tasks_written);
    g_assert_cmpuint(s->spec.max_failures, ==, 4);
    g_assert_cmpuint(s->spec.memory_factor_ppm, ==, 1500000);
    for (uint32_t i = 0; i < 3; i++)
        g_assert_cmpuint(p->order[i], ==, i);
    trp_pipeline_free(p);
}

TEST("every key of a stage is kept")
{
    trp_pipeline *p = parse(
        "troupe: 1\n"
        "params: {date: 2024-01-01, n: 007}\n"
        "options: {locality.wait: 0, executor.resource.gpu.amount: 2}\n"
        "default: {executor: {cores: 3}, task: {cpus: 2, gpu: 1/3}}\n"
        "stages:\n"
        "- {name: a, argv: [ls, -l, \"a b\"], tasks: 0, wrap: [nice, -n, 5]}\n"
        "- name: b\n"
        "  after: [{stage: a, each: true}, c]\n"
        "  foreach: {items: []}\n"
        "  allow_empty: true\n"
        "  run: |\n"
        "    one\n"
        "    two\n"
        "  prelude: module load x\n"
        "  env: {A: 007, B: 2.50, C: yes, D: \"x\\ny\", E: , F: ~}\n"
        "  cwd: /tmp\n"
        "  timeout: 1.5\n"
        "  prefer: [h1, h2/3]\n"
        "  max_running: 7\n"
        "  tolerate: 0.5%\n"
        "  retries: {not_on: [2, 255], max_failures: 1}\n"
        "  executors: {min: 1, max: 2, look_ahead: 90}\n"
        "- {name: c, run: x, foreach: {lines: l.txt}, tolerate: 3, timeout: 250ms}\n");
    g_assert_cmpstr(p->name, ==, "f");
    g_assert_cmpuint(p->nparams, ==, 2);
    g_assert_cmpstr(p->params[1].key, ==, "n");
    g_assert_cmpstr(p->params[1].value, ==, "007");
    g_assert_cmpuint(p->noptions, ==, 2);
    g_assert_cmpuint(p->options[0].mark.column, ==, 26);
    g_assert_cmpint(p->fallback->builder.executor.cores, ==, 3);
    g_assert_cmpint(p->fallback->builder.custom[0].task, ==, TRP_ONE / 3);
    g_assert_cmpuint(p->fallback->mark.line, ==, 4);

    const struct trp_pipeline_stage *s = &p->stages[0];
    g_assert_cmpuint(s->nargv, ==, 3);
    g_assert_cmpstr(s->argv[1], ==, "-l");
    g_assert_cmpstr(s->argv[2], ==, "a b");
    g_assert_cmpuint(s->nwrap, ==, 3);
    g_assert_cmpstr(s->wrap[2], ==, "5");
    g_assert_cmpuint(s->tasks, ==, 0);
    g_assert_true(s->tasks_written);
    g_assert_null(s->run);
    s = &p->stages[1];
    g_assert_cmpstr(s->run, ==, "one\ntwo\n");
    g_assert_cmpstr(s->prelude, ==, "module load x");
    g_assert_true(s->after[0].each);
    g_assert_cmpuint(s->after[1].index, ==, 2);
    g_assert_cmpint(s->foreach, ==, TRP_FOREACH_ITEMS);
    g_assert_cmpuint(s->nitems, ==, 0);
    g_assert_true(s->allow_empty);
    static const char *const env[] = {"007", "2.50", "yes", "x\ny", "", "~"};
    g_assert_cmpuint(s->nenv, ==, 6);
    for (uint32_t i = 0; i < 6; i++)
        g_assert_cmpstr(s->env[i].value, ==, env[i]);
    g_assert_cmpstr(s->env[4].key, ==, "E");
    g_assert_cmpstr(s->cwd, ==, "/tmp");
    g_assert_cmpint(s->timeout_ns, ==, 1500000000);
    g_assert_cmpuint(s->nprefer, ==, 2);
    g_assert_cmpstr(s->prefer[1], ==, "h2/3");
    g_assert_cmpuint(s->spec.max_running, ==, 7);
    g_assert_cmpuint(s->spec.tolerate, ==, 0);
    g_assert_cmpuint(s->spec.tolerate_ppm, ==, 5000);
    g_assert_cmpuint(s->spec.nnot_on, ==, 2);
    g_assert_cmpint(s->spec.not_on[1], ==, 255);
    g_assert_cmpuint(s->spec.min_executors, ==, 1);
    g_assert_cmpuint(s->spec.max_executors, ==, 2);
    g_assert_cmpint(s->spec.look_ahead, ==, TRP_LOOK_AHEAD_TIME);
    g_assert_cmpint(s->spec.look_ahead_ns, ==, INT64_C(90000000000));
    s = &p->stages[2];
    g_assert_cmpint(s->foreach, ==, TRP_FOREACH_LINES);
    g_assert_cmpuint(s->spec.tolerate, ==, 3);
    g_assert_cmpint(s->timeout_ns, ==, 250000000);
    /* a and c before b, ties in file order */
    g_assert_cmpuint(p->order[0], ==, 0);
    g_assert_cmpuint(p->order[1], ==, 2);
    g_assert_cmpuint(p->order[2], ==, 1);
    trp_pipeline_free(p);
}

TEST("scalars reach a task as written")
{
    static const char *const wanted[] = {
        "007",   "2.50", "yes",        "null",     "~",  "0x1f",   "1e3",
        "a b",   "",     "\xc3\xa9\n", "'",        "\"", "-x # y", "a\tb",
        "1_000", "+1",   ".5",         "\xc2\x85", "*x"};
    trp_pipeline *p =
        parse(HEAD "stages:\n- name: a\n  run: x\n  foreach:\n    items: [007, "
                   "2.50, yes, null, ~, 0x1f, 1e3, a b, \"\", \"\xc3\xa9\\n\", "
                   "'''', '\"', \"-x # y\", \"a\\tb\", 1_000, +1, .5, "
                   "\"\\N\", '*x']\n");
    const struct trp_pipeline_stage *s = &p->stages[0];
    g_assert_cmpuint(s->nitems, ==, G_N_ELEMENTS(wanted));
    for (uint32_t i = 0; i < s->nitems; i++) {
        g_assert_cmpstr(s->items[i].data, ==, wanted[i]);
        g_assert_cmpuint(s->items[i].size, ==, strlen(wanted[i]));
    }
    trp_pipeline_free(p);
}

TEST("block scalars and CRLF are read")
{
    trp_pipeline *p =
        parse(HEAD "stages:\r\n- name: a\r\n  run: x\r\n  foreach:\r\n"
                   "    items:\r\n    - |\r\n      l 1\r\n      l 2\r\n"
                   "    - >-\r\n      folded\r\n      text\r\n    - \xe2\x82\xac\r\n");
    const struct trp_pipeline_stage *s = &p->stages[0];
    g_assert_cmpuint(s->nitems, ==, 3);
    g_assert_cmpstr(s->items[0].data, ==, "l 1\nl 2\n");
    g_assert_cmpstr(s->items[1].data, ==, "folded text");
    g_assert_cmpstr(s->items[2].data, ==, "\xe2\x82\xac");
    trp_pipeline_free(p);
}

TEST("large files cost no more than their size")
{
    GString *g = g_string_new(HEAD "stages:\n- {name: s0, run: x}\n");
    for (int i = 1; i < 10000; i++)
        g_string_append_printf(g, "- {name: s%d, after: [s%d], run: x}\n", i, i - 1);
    trp_pipeline *p = parse(g->str);
    g_assert_cmpuint(p->nstages, ==, 10000);
    g_assert_cmpuint(p->order[9999], ==, 9999);
    trp_pipeline_free(p);

    /* the same chain, children first */
    g_string_assign(g, HEAD "stages:\n");
    for (int i = 9999; i > 0; i--)
        g_string_append_printf(g, "- {name: s%d, after: [s%d], run: x}\n", i, i - 1);
    g_string_append(g, "- {name: s0, run: x}\n");
    p = parse(g->str);
    g_assert_cmpuint(p->order[0], ==, 9999);
    g_assert_cmpuint(p->order[9999], ==, 0);
    trp_pipeline_free(p);

    /* a ring of them: every stage on one cycle */
    g_string_truncate(g, g->len - strlen("- {name: s0, run: x}\n"));
    g_string_append(g, "- {name: s0, after: s9999, run: x}\n");
    check_refused(g->str, g->len, "3:25", "s9999 → s9998 → ");

    g_string_assign(g, HEAD "stages: [{name: a, run: x, foreach: {items: [i0");
    for (int i = 1; i < 100000; i++)
        g_string_append_printf(g, ", i%d", i);
    g_string_append(g, "]}}]\n");
    p = parse(g->str);
    g_assert_cmpuint(p->stages[0].nitems, ==, 100000);
    g_assert_cmpstr(p->stages[0].items[99999].data, ==, "i99999");
    trp_pipeline_free(p);

    /* 200,000 double keys, brackets without end, expanding aliases: one clear error */
    g_string_assign(g, "{");
    for (int i = 0; i < 200000; i++)
        g_string_append(g, "a: 1,");
    g_string_append(g, "}");
    check_refused(g->str, g->len, "1:2", "unknown key");
    g_string_assign(g, "");
    for (int i = 0; i < 100000; i++)
        g_string_append_c(g, '[');
    check_refused(g->str, g->len, "1:33", "32 levels");
    for (int i = 0; i < 900001; i++)
        g_string_append_c(g, '{');
    check_refused(g->str, g->len, "1:1000001", "brackets, commas and colons");
    g_string_assign(g, "a: &a [x, x]\n");
    for (char c = 'b'; c < 'z'; c++)
        g_string_append_printf(g, "%c: &%c [*%c, *%c, *%c]\n", c, c, c - 1, c - 1,
                               c - 1);
    check_refused(g->str, g->len, "13:12", "aliases make more");
    g_string_free(g, TRUE);
}

/* ---- files on disk ---- */

static void check_load(const char *file, const char *words)
{
    struct trp_conf_arena arena = {0};
    trp_yaml *y;
    trp_error err = {0};
    int code = trp_yaml_load(file, &arena, &y, &err);
    if (code == 0) {
        code = trp_yaml_verdict(y, &err);
        trp_yaml_free(y);
    }
    trp_conf_arena_free(&arena);
    g_autofree char *begin = g_strdup_printf("%s:1:", file);
    if (code != TRP_EINVAL || !g_str_has_prefix(err.text, begin) ||
        !strstr(err.text, words))
        g_error("wanted %s… %s …, got %d %s", begin, words, code, err.text);
}

TEST("files that cannot be read are told")
{
    g_autofree char *dir = g_dir_make_tmp("troupe-test-XXXXXX", NULL);
    g_autofree char *file = g_build_filename(dir, "my.etl.yaml", NULL);
    check_load(dir, "directory");
    check_load(file, "No such file or directory");
    g_assert_true(g_file_set_contents(file, "", 0, NULL));
    check_load(file, "empty");
    g_assert_true(g_file_set_contents(file,
                                      "\x7f"
                                      "ELF\x02\x01\x01\0\0\0",
                                      10, NULL));
    check_load(file, "not UTF-8 text");
    g_assert_cmpint(truncate(file, 50 << 20), ==, 0);
    check_load(file, "larger than 16 MiB");
    unlink(file);
    rmdir(dir);
}

TEST("a long file name leaves room for the error")
{
    trp_pipeline *p;
    trp_error err;
    g_autofree char *file = g_strnfill(4000, 'd');
    const char *text = HEAD TAIL;
    g_assert_cmpint(trp_pipeline_parse("in/my.etl.yaml", text, strlen(text), &p, &err),
                    ==, 0);
    g_assert_cmpstr(p->name, ==, "my.etl");
    trp_pipeline_free(p);
    g_assert_cmpint(trp_pipeline_parse(file, "nam: x", 6, &p, &err), ==, TRP_EINVAL);
    g_assert_nonnull(strstr(err.text, "ddd:1:1: unknown key \"nam\""));
}

/* ---- profiles, options, params ---- */

static trp_options *options_of(const trp_pipeline *p)
{
    trp_options *o;
    trp_error err;
    g_assert_cmpint(trp_options_new(&o, &err), ==, 0);
    g_assert_cmpint(trp_pipeline_options(p, o, &err), ==, 0);
    return o;
}

static void check_profiles_refused(const char *text, const char *site_text,
                                   const char *begin)
{
    trp_pipeline *p = parse(text);
    trp_options *o = options_of(p);
    trp_site *site = NULL;
    trp_profiles *m;
    trp_profile_id ids[8];
    trp_error err = {0};
    if (site_text) {
        int rc = trp_site_parse("s.yaml", site_text, strlen(site_text), &site, &err);
        g_assert_cmpint(rc, ==, 0);
        g_assert_cmpint(trp_site_options(site, o, &err), ==, 0);
    }
    int code = trp_pipeline_profiles(p, o, site, &m, ids, &err);
    if (code != TRP_EINVAL || !g_str_has_prefix(err.text, begin))
        g_error("wanted %s…, got %d %s", begin, code, err.text);
    trp_site_free(site);
    trp_options_free(o);
    trp_pipeline_free(p);
}

TEST("profiles come from options, file and site")
{
    static const char site_text[] = "site: 1\nprofiles: {small: {executor: {cores: "
                                    "2}}, b: {executor: {cores: 9}}}\n";
    trp_pipeline *p = parse(
        HEAD "options: {executor.memory: 3g}\n"
             "profiles: {b: {executor: {cores: 4}}, a: {task: {cpus: 1}}}\n"
             "stages:\n- {name: x, run: x, profile: small}\n- {name: y, run: x}\n"
             "- {name: z, run: x, profile: b}\n- {name: w, run: x, profile: small}\n"
             "- {name: v, run: x, profile: default}\n");
    trp_options *o = options_of(p);
    trp_site *site;
    trp_profiles *m;
    trp_profile_id ids[5];
    trp_error err;
    g_assert_cmpint(trp_site_parse("s.yaml", site_text, strlen(site_text), &site, &err),
                    ==, 0);
    g_assert_cmpint(trp_pipeline_profiles(p, o, site, &m, ids, &err), ==, 0);
    g_assert_cmpuint(trp_profiles_count(m), ==, 4);
    g_assert_cmpuint(ids[0].n, ==, 3);
    g_assert_cmpuint(ids[1].n, ==, 0);
    g_assert_cmpuint(ids[2].n, ==, 1);
    g_assert_cmpuint(ids[3].n, ==, 3);
    g_assert_cmpuint(ids[4].n, ==, 0);
    g_assert_cmpint(trp_profiles_get(m, ids[0])->cores, ==, 2);
    g_assert_cmpint(trp_profiles_get(m, ids[2])->cores, ==, 4);
    g_assert_cmpint(trp_profiles_get(m, ids[2])->memory_mib, ==, 3072);
    trp_profiles_free(m);
    trp_site_free(site);
    trp_options_free(o);
    trp_pipeline_free(p);

    check_profiles_refused(HEAD "stages: [{name: a, run: x, profile: trian}]\n"
                                "profiles: {train: {task: {cpus: 1}}}\n",
                           NULL,
                           "f.yaml:2:37: unknown profile \"trian\"; did you mean "
                           "\"train\"? there are: default, train");
    check_profiles_refused(
        HEAD "stages: [{name: a, run: x, profile: b}]\n",
        "site: 1\nprofiles: {small: {task: {cpus: 1}}}\n",
        "f.yaml:2:37: unknown profile \"b\"; there are: default, small");
    check_profiles_refused(HEAD "stages: [{name: a, run: x, profile: b}]\n",
                           "site: 1\noptions: {executor.cores: 1}\n"
                           "profiles: {b: {task: {cpus: 2}}}\n",
                           "s.yaml:3:12: ");
    check_profiles_refused(HEAD "profiles: {b: {task: {cpus: 2}}}\n"
                                "options: {executor.cores: 1}\n"
                                "stages: [{name: a, run: x, profile: b}]\n",
                           NULL, "f.yaml:2:12: ");
    check_profiles_refused(HEAD "default: {task: {cpus: 2}}\n" TAIL, NULL,
                           "f.yaml:2:1: ");
    check_profiles_refused(HEAD "options: {task.cpus: 2}\n" TAIL, NULL,
                           "f.yaml:2:22: ");
}

/* Read all the same: `troupe plan` shows them. */
TEST("impossible profiles are refused with their place, but read")
{
    static const char *const texts[][2] = {
        {"a: {executor: {cores: 0}}",                           "task cpus 1 above executor cores 0"},
        {"a: {executor: {cores: 4}, task: {cpus: 8}}",
         "task cpus 8 above executor cores 4"                                                       },
        {"a: {executor: {cores: 4, gpu: 1}, task: {gpu: 0.7}}", "task gpu 0.7"                      },
        {"a: {executor: {cores: 4}, task: {gpu: 1}}",
         "no executor resource for task resource gpu 1"                                             },
        {"a: {executor: {gpu: 1}, task: {gpu: 2}}",             "task gpu 2 above executor gpu 1"   },
        {"a: {task: {gpu: 1}}",                                 ""                                  },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autofree char *text =
            g_strdup_printf(HEAD "profiles:\n  %s\n" TAIL, texts[i][0]);
        g_autofree char *begin =
            g_strdup_printf("f.yaml:3:3: profile a: %s", texts[i][1]);
        g_autofree char *site =
            g_strdup_printf("site: 1\nprofiles:\n  %s\n", texts[i][0]);
        char *in_site = g_strdup_printf("s.yaml:3:3: profile a: %s", texts[i][1]);
        check_profiles_refused(text, NULL, begin);
        check_profiles_refused(HEAD "stages: [{name: s, run: x, profile: a}]\n", site,
                               in_site);
        g_free(in_site);
    }
}

TEST("the profiles of the example are possible")
{
    trp_pipeline *p = parse(example);
    trp_options *o = options_of(p);
    trp_profiles *m;
    trp_profile_id ids[3];
    trp_error err = {0};
    int code = trp_pipeline_profiles(p, o, NULL, &m, ids, &err);
    g_assert_cmpstr(err.text, ==, "");
    g_assert_cmpint(code, ==, 0);
    g_assert_cmpstr(trp_profiles_get(m, ids[0])->name, ==, "prep");
    g_assert_cmpstr(trp_profiles_get(m, ids[2])->name, ==, "train");
    g_assert_cmpuint(trp_profiles_get(m, ids[2])->slots, ==, 2);
    trp_profiles_free(m);
    trp_options_free(o);
    trp_pipeline_free(p);
}

/* ---- values from outside ---- */

static trp_pipeline *read_with(const char *text, const struct trp_pair *params,
                               uint32_t n, int wanted, trp_error *err)
{
    const struct trp_pipeline_inputs in = {.params = params, .nparams = n};
    trp_pipeline *p = NULL;
    int code = trp_pipeline_read("f.yaml", text, strlen(text), &in, &p, err);
    if (code != wanted)
        g_test_message("%s", code ? err->text : "no error");
    g_assert_cmpint(code, ==, wanted);
    return p;
}

TEST("a param that is not in the file is refused")
{
    static char b[] = "b", c[] = "c", x_y[] = "x y";
    static const struct trp_pair given[] = {
        {.key = b, .value = x_y}
    };
    static const struct trp_pair other[] = {
        {.key = c, .value = x_y}
    };
    trp_error err;
    trp_pipeline *p = read_with(HEAD "params: {a: 1, b: 2}\n" TAIL, given, 1, 0, &err);
    g_assert_cmpstr(p->params[1].value, ==, "x y");
    trp_pipeline_free(p);
    read_with(HEAD "params: {a: 1, b: 2}\n" TAIL, other, 1, TRP_EINVAL, &err);
    g_assert_cmpstr(err.text, ==,
                    "--param c: f.yaml has no such parameter; its parameters are a, b");
}

/* Params stand for numbers, words and parts of words; what was given is above what is
 * written, also where other params are made of it. */
TEST("params stand wherever a value can")
{
    static const char text[] =
        "troupe: 1\n"
        "name: of ${n}\n"
        "params: {n: 3, root: /data, reads: \"${root}/fq\", t: 5, odd: \"${}\"}\n"
        "profiles: {big: {executor: {cores: \"${n}\", memory: \"${n}g\"}}}\n"
        "options: {task.maxFailures: \"${n}\"}\n"
        "stages:\n"
        "  - {name: a, tasks: \"${n}\", timeout: \"${t}s\", run: \"${n} $${n}\"}\n"
        "  - name: b\n"
        "    foreach: {files: \"${reads}/*.fq\"}\n"
        "    argv: [x, \"${item}\", \"$${n}\", $HOME, \"${n}${task}\", \"$${}\", "
        "\"$$${n}\"]\n"
        "    env: {OUT: \"${dir}/${stem}\"}\n"
        "    cwd: ${root}\n"
        "    retries: {max_failures: \"${n}\"}\n"
        "    outputs: [$TROUPE_TASK, \"${TROUPE_ITEM}.x\", $TROUPE_TASKS,\n"
        "              \"\\\\$TROUPE_TASK\", \"${root}/${name}\"]\n"
        "    prefer: [\"${stem}\"]\n";
    static char root[] = "root", at[] = "/${n}", odd[] = "odd", literal[] = "literal";
    static const struct trp_pair given[] = {
        {.key = root, .value = at     },
        {.key = odd,  .value = literal},
    };
    trp_error err;
    trp_pipeline *p = read_with(text, given, 2, 0, &err);
    const struct trp_pipeline_stage *a = &p->stages[0], *b = &p->stages[1];
    g_assert_cmpstr(p->name, ==, "of 3");
    g_assert_cmpint(p->profiles[0].builder.executor.cores, ==, 3);
    g_assert_cmpint(p->profiles[0].builder.executor.memory_mib, ==, 3 << 10);
    g_assert_cmpstr(p->options[0].value, ==, "3");
    g_assert_cmpuint(a->tasks, ==, 3);
    g_assert_cmpint(a->timeout_ns, ==, INT64_C(5000000000));
    g_assert_cmpstr(a->run, ==, "${n} $${n}"); /* a shell's own */
    g_assert_cmpstr(b->pattern, ==, "/${n}/fq/*.fq");
    g_assert_cmpstr(b->argv[1], ==, "${item}");
    g_assert_cmpstr(b->argv[2], ==, "${}{n}");
    g_assert_cmpstr(b->argv[3], ==, "$HOME");
    g_assert_cmpstr(b->argv[4], ==, "3${task}");
    g_assert_cmpstr(b->argv[5], ==, "${}{}");
    g_assert_cmpstr(b->argv[6], ==, "$${}{n}");
    g_assert_cmpstr(b->env[0].value, ==, "${dir}/${stem}");
    g_assert_cmpstr(b->cwd, ==, "/${}{n}");
    g_assert_cmpuint(b->spec.max_failures, ==, 3);
    g_assert_cmpstr(b->outputs[0], ==, "${task}");
    g_assert_cmpstr(b->outputs[1], ==, "${item}.x");
    g_assert_cmpstr(b->outputs[2], ==, "$TROUPE_TASKS");
    g_assert_cmpstr(b->outputs[3], ==, "\\$TROUPE_TASK");
    g_assert_cmpstr(b->outputs[4], ==, "/${}{n}/${name}");
    trp_pipeline_free(p);
}

/* Aliases are copies, with params of their own place; `<<` brings what is not there. */
TEST("aliases are copies and << brings keys")
{
    static const char text[] =
        "troupe: 1\n"
        "params: {n: 3}\n"
        "profiles:\n"
        "  a: &a {executor: &e {cores: \"${n}\", memory: 1g}}\n"
        "  b: {<<: *a, task: {cpus: 2}}\n"
        "  c: {executor: {<<: [{gpu: 1}, *e], cores: 5}}\n"
        "stages:\n"
        "  - &s {name: x, run: &r echo, env: {X: &v \"1\", Y: *v}}\n"
        "  - {<<: *s, name: y, after: [x]}\n"
        "  - {<<: [*s, {cwd: z, run: other}], name: z, \"after\": [y]}\n";
    trp_pipeline *p = parse(text);
    g_assert_cmpint(p->profiles[1].builder.executor.cores, ==, 3);
    g_assert_cmpint(p->profiles[2].builder.executor.cores, ==, 5);
    g_assert_cmpint(p->profiles[2].builder.executor.memory_mib, ==, 1024);
    g_assert_cmpuint(p->nstages, ==, 3);
    g_assert_cmpstr(p->stages[1].name, ==, "y");
    g_assert_cmpstr(p->stages[2].run, ==, "echo");
    g_assert_cmpstr(p->stages[2].cwd, ==, "z");
    g_assert_cmpstr(p->stages[2].env[1].value, ==, "1");
    trp_pipeline_free(p);
}

/* What a stage leaves out is absent for those after it. */
TEST("when leaves a stage out")
{
    static const char text[] =
        "troupe: 1\n"
        "params: {qc: no, go: 1, list: \"\"}\n"
        "stages:\n"
        "  - {name: a, run: x, when: \"${go}\"}\n"
        "  - {name: b, run: x, after: [a], when: \"${qc}\"}\n"
        "  - {name: c, run: x, after: [{stage: b, each: true}, a]}\n"
        "  - {name: d, run: x, after: [c], when: \"${list}\"}\n"
        "  - {name: e, run: x, after: [d]}\n";
    static char qc[] = "qc", yes[] = "yes";
    static const struct trp_pair given[] = {
        {.key = qc, .value = yes}
    };
    trp_error err;
    trp_pipeline *p = parse(text);
    g_assert_cmpuint(p->nstages, ==, 3);
    g_assert_cmpstr(p->stages[1].name, ==, "c");
    g_assert_cmpuint(p->stages[1].nafter, ==, 1);
    g_assert_cmpuint(p->stages[1].after[0].index, ==, 0);
    g_assert_cmpstr(p->stages[2].name, ==, "e");
    g_assert_cmpuint(p->stages[2].nafter, ==, 0);
    g_assert_cmpuint(p->order[2], ==, 2);
    trp_pipeline_free(p);
    p = read_with(text, given, 1, 0, &err);
    g_assert_cmpuint(p->nstages, ==, 4);
    g_assert_cmpuint(p->stages[2].nafter, ==, 2);
    trp_pipeline_free(p);
}

TEST("when takes for no what people write for it")
{
    static const char *const no[] = {
        "false", "False", "no", "NO",  "off", "Off",   "n",   "f",   "none", "null",
        "Null",  "~",     "0",  "0.0", "-0",  "+0.00", "0e5", "0x0", ""};
    static const char *const yes[] = {"true", "yes", "on", "1", "0.1",  "none of them",
                                      "nono", ".",   "-",  "x", "0x10", "0e"};
    for (size_t i = 0; i < G_N_ELEMENTS(no) + G_N_ELEMENTS(yes); i++) {
        bool off = i < G_N_ELEMENTS(no);
        const char *value = off ? no[i] : yes[i - G_N_ELEMENTS(no)];
        g_autofree char *text =
            g_strdup_printf("troupe: 1\nstages:\n  - {name: a, run: x, when: \"%s\"}\n"
                            "  - {name: b, run: x}\n",
                            value);
        trp_pipeline *p = parse(text);
        if (p->nabsent != off)
            g_error("when: \"%s\" leaves out %u", value, p->nabsent);
        trp_pipeline_free(p);
    }
}

/* The warnings, a line each: "LINE:COLUMN text". */
static void warns(const char *text, const char *wanted)
{
    trp_pipeline *p = parse(text);
    GString *got = g_string_new("");
    for (const struct trp_pipeline_warning *w = p->warnings; w; w = w->next)
        g_string_append_printf(got, "%u:%u %s\n", w->mark.line, w->mark.column,
                               w->text);
    g_assert_cmpstr(got->str, ==, wanted);
    g_string_free(got, TRUE);
    trp_pipeline_free(p);
}

TEST("what only a shell would expand is told where none reads it")
{
    warns(
        "troupe: 1\n"
        "params: {n: 1}\n"
        "stages:\n"
        "  - name: a\n"
        "    foreach: {items: [$TROUPE_TASK]}\n"
        "    argv: [x$TROUPE_ITEM, -c, $TROUPE_ITEM, $TROUPE_CPUS, $HOME, \"$${n}\"]\n"
        "    wrap: [bash, -lc, $TROUPE_ITEM]\n"
        "    env: {A: \"$TROUPE_PARAM_n $TROUPE_ITEM\"}\n"
        "    inputs: [in, b/$TROUPE_ITEM_STEM.bam]\n"
        "    outputs: [$TROUPE_TASK, '\\$TROUPE_COL_x', '$TROUPE_COL_x']\n"
        "  - {name: b, run: echo $TROUPE_ITEM $TROUPE_TSAK $TROUPE_TSAK}\n",
        "6:13 stage a: $TROUPE_ITEM in argv stays as it is, for no shell reads it; "
        "write "
        "${item}\n"
        "6:45 stage a: $TROUPE_CPUS in argv stays as it is, for no shell reads it; run "
        "has one\n"
        "8:15 stage a: $TROUPE_PARAM_n in env stays as it is, for no shell reads it; "
        "write ${n}\n"
        "9:20 stage a: $TROUPE_ITEM_STEM in inputs stays as it is, for no shell reads "
        "it; write ${stem}\n"
        "10:48 stage a: $TROUPE_COL_x in outputs stays as it is, for no shell reads "
        "it; "
        "write ${col.x}\n"
        "11:20 stage b: no run sets TROUPE_TSAK; did you mean \"TROUPE_TASK\"?\n");
    warns("troupe: 1\nstages:\n  - {name: b, run: echo $TROUPE_PARAM_k}\n",
          "3:20 stage b: no run sets TROUPE_PARAM_k\n");
    static const char braces[] =
        "troupe: 1\nstages:\n  - {name: a, argv: [\"${TROUPE_TASK}\"]}\n";
    check_refused(braces, sizeof braces - 1, "3:22",
                  "${TROUPE_TASK} stands for nothing; write ${task}");
}

/* ---- include ---- */

static int read_part(void *context, const char *file, char **ret_text, size_t *ret_size,
                     trp_error *err)
{
    const char *const(*files)[2] = context;
    for (size_t i = 0; files[i][0]; i++) {
        if (strcmp(files[i][0], file) != 0)
            continue;
        *ret_text = strdup(files[i][1]);
        *ret_size = strlen(*ret_text);
        return 0;
    }
    return trp_error_set(err, TRP_EINVAL, "%s: cannot be read: No such file", file);
}

static trp_pipeline *read_including(const char *text, const char *const (*files)[2],
                                    trp_error *err)
{
    const struct trp_pipeline_inputs in = {.read = read_part,
                                           .context = (void *)(uintptr_t)files};
    trp_pipeline *p = NULL;
    err->text[0] = '\0';
    trp_pipeline_read("dir/f.yaml", text, strlen(text), &in, &p, err);
    return p;
}

TEST("other files are included")
{
    static const char *const files[][2] = {
        {"dir/a.yaml",     "troupe: 1\ninclude: [sub/b.yaml]\nparams: {x: 1}\n"
                       "profiles: {p: {executor: {cores: \"${n}\"}}}\n"
                       "stages: [{name: two, run: y, after: [one], cwd: \"${x}\"}]\n"},
        {"dir/sub/b.yaml", "troupe: 1\nparams: {z: 2}\n"                                                   },
        {NULL,             NULL                                                                            }
    };
    static const char *const wrong[][3] = {
        {"troupe: 1\nx: 1\n",                                         "dir/a.yaml:2:1: ",  "in an included"                       },
        {"stages: [{name: b, run: x}]\n",                             "dir/a.yaml:1:1: ",  "no \"troupe\""                        },
        {"troupe: 1\ninclude: [f.yaml]\n",                            "dir/a.yaml:2:11: ",
         "dir/f.yaml includes itself: dir/f.yaml, dir/a.yaml, dir/f.yaml"                                                         },
        {"troupe: 1\ninclude: [x/../../dir/f.yaml]\n",
         "dir/a.yaml:2:11: ",                                                              "/dir/f.yaml includes itself"          },
        {"troupe: 1\ninclude: [no.yaml]\n",
         "dir/a.yaml:2:11: ",                                                              "included: dir/no.yaml: cannot be read"},
        {"troupe: 1\nstages: [{name: one, run: x}]\n",
         "dir/a.yaml:2:17: ",                                                              "a second stage \"one\""               },
        {"troupe: 1\nparams: {n: 2}\n",                               "dir/a.yaml:2:10: ", "stands twice"                         },
        {"troupe: 1\nstages: [{name: b, run: x, cwd: \"a/${m}\"}]\n",
         "dir/a.yaml:2:36: ",                                                              "${m} stands for nothing"              },
        {"troupe: 1\nstages: [{name: b, run: x, after: [c]}]\n",
         "dir/a.yaml:2:36: ",                                                              "unknown stage"                        },
        {"troupe: 1\nname: \"x\n",                                    "dir/a.yaml:2:8: ",  "not YAML"                             },
        {"",                                                          "dir/a.yaml:1:1: ",  "empty"                                },
    };
    static const char text[] = "troupe: 1\ninclude: [a.yaml]\nparams: {n: 3}\n"
                               "stages: [{name: one, run: x}]\n";
    trp_error err;
    trp_pipeline *p = read_including(text, files, &err);
    g_assert_cmpstr(err.text, ==, "");
    g_assert_cmpuint(p->nstages, ==, 2);
    g_assert_cmpuint(p->nparams, ==, 3);
    g_assert_cmpint(p->profiles[0].builder.executor.cores, ==, 3);
    g_assert_cmpstr(p->stages[1].cwd, ==, "1");
    g_assert_cmpstr(trp_mark_file(p->file, p->stages[1].mark), ==, "dir/a.yaml");
    trp_pipeline_free(p);
    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        const char *const one[][2] = {
            {"dir/a.yaml", wrong[i][0]},
            {NULL,         NULL       }
        };
        if (read_including(text, one, &err))
            g_error("read: %s", wrong[i][0]);
        if (!g_str_has_prefix(err.text, wrong[i][1]) || !strstr(err.text, wrong[i][2]))
            g_error("wanted %s… %s, got %s", wrong[i][1], wrong[i][2], err.text);
    }
    g_assert_null(
        read_including("troupe: 1\ninclude: [a.yaml]\nstages: {}\n", files, &err));
    g_assert_nonnull(strstr(err.text, "stages is a mapping; write a list"));
    check_refused("troupe: 1\ninclude: [a.yaml]\n" TAIL,
                  strlen("troupe: 1\ninclude: [a.yaml]\n" TAIL), "2:11",
                  "cannot be read here");
}

TEST("variables that no run sets are warned of")
{
    trp_pipeline *p = parse(
        "troupe: 1\nparams: {buckets: 1}\nstages:\n"
        "  - {name: a, run: \"$TROUPE_TASK ${TROUPE_ITEM:-} $TROUPE_RESOURCE_gpu\"}\n"
        "  - {name: b, run: \"$TROUPE_PARAM_buckts\"}\n"
        "  - {name: c, run: \"${TROUPE_TSK} TROUPE_NONE\"}\n"
        "  - {name: d, run: \"TROUPE_X=1; echo $TROUPE_X $$TROUPE\"}\n"
        "  - {name: e, foreach: {product: {lr: [1]}}, run: \"$TROUPE_COL_lr "
        "$TROUPE_COL_l\"}\n");
    const struct trp_pipeline_warning *w = p->warnings;
    g_assert_cmpuint(p->nwarnings, ==, 3);
    g_assert_cmpstr(w->text, ==,
                    "stage b: no run sets TROUPE_PARAM_buckts; did you mean "
                    "\"TROUPE_PARAM_buckets\"?");
    g_assert_cmpuint(w->mark.line, ==, 5);
    w = w->next;
    g_assert_cmpstr(w->text, ==,
                    "stage c: no run sets TROUPE_TSK; did you mean \"TROUPE_TASK\"?");
    g_assert_cmpstr(
        w->next->text, ==,
        "stage e: no run sets TROUPE_COL_l; did you mean \"TROUPE_COL_lr\"?");
    trp_pipeline_free(p);
}

TEST("names in braces are warned of where the shell has them")
{
    static const struct {
        const char *text, *wanted; /* NULL: no warning */
    } cases[] = {
        {"sort ${item}",
         "in run ${item} is a variable of the shell; write $TROUPE_ITEM"     },
        {"sort \"${stem}.x\"",
         "in run ${stem} is a variable of the shell; write $TROUPE_ITEM_STEM"},
        {"x ${col.a}",
         "in run ${col.a} is a variable of the shell; write $TROUPE_COL_a"   },
        {"x ${n} ${m}",
         "in run ${n} is a variable of the shell; write $TROUPE_PARAM_n"     },
        {"for item in a b; do echo ${item}; done",            NULL           },
        {"n=3; echo ${n}",                                    NULL           },
        {"echo ${item:-x} $item $${item} \\${task} ${items}", NULL           },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf("troupe: 1\nparams: {n: 1}\nstages:\n"
                                                "  - name: a\n    run: |\n      %s\n",
                                                cases[i].text);
        trp_pipeline *p = parse(text);
        if (p->nwarnings != (cases[i].wanted != NULL))
            g_error("%s: %u warnings", cases[i].text, p->nwarnings);
        if (cases[i].wanted)
            g_assert_nonnull(strstr(p->warnings->text, cases[i].wanted));
        trp_pipeline_free(p);
    }
    trp_pipeline *p = parse("troupe: 1\nstages:\n"
                            "  - {name: a, env: {item: x}, run: \"${item}\"}\n"
                            "  - {name: b, prelude: \". x\", run: \"${item}\"}\n");
    g_assert_cmpuint(p->nwarnings, ==, 0);
    trp_pipeline_free(p);
}
