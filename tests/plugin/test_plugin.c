/*
 * spank_troupe.so as Slurm loads it, in each of Slurm's processes, with right and wrong
 * settings, options and answers of SPANK. Loaded anew in each test.
 */
#include <dlfcn.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_spank.h"

#define INHERITED "SLURM_SPANK__SLURM_SPANK_OPTION_troupe_stage_profile"
#define PIPELINE "SLURM_SPANK__SLURM_SPANK_OPTION_troupe_stage_pipeline"

static char *folder, *site, *shapes, *command;
static char *arguments[3];
static void *object;

static const char shapes_text[] = "troupe-shapes 1\n"
                                  "# made\n"
                                  "limit time 60\n"
                                  "profile small\n"
                                  "option cpus-per-task 2\n"
                                  "profile train\n"
                                  "option gres gpu:2\n"
                                  "resource gpu gres 2 CUDA_VISIBLE_DEVICES\n"
                                  "resource seat license 2 -\n"
                                  "profile tpu\n"
                                  "never resource tpu is denied\n"
                                  "end\n";

static void write_file(const char *path, const char *text, int mode)
{
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    g_assert_cmpint(g_chmod(path, mode), ==, 0);
}

static int call(const char *name)
{
    spank_f *f = NULL;
    *(void **)&f = dlsym(object, name);
    g_assert_nonnull(f);
    return f(fake_handle(), 3, arguments);
}

static void load(spank_context_t context)
{
    char *path =
        g_build_filename(g_getenv("TROUPE_BUILD"), "lib/spank_troupe.so", NULL);
    if (object)
        dlclose(object);
    fake_reset(context);
    write_file(shapes, shapes_text, 0600);
    object = dlopen(path, RTLD_LAZY);
    if (!object)
        g_error("%s", dlerror());
    g_free(path);
}

static void begin(spank_context_t context)
{
    load(context);
    g_assert_cmpint(call("slurm_spank_init"), ==, 0);
    g_assert_cmpstr(fake.log, ==, "");
}

static void logged(const char *text)
{
    if (!strstr(fake.log, text))
        g_error("wanted in the log: %s\ngot: %s", text, fake.log);
}

static void test_variables(void)
{
    begin(S_CTX_LOCAL);
    g_assert_cmpstr(dlsym(object, "plugin_name"), ==, "troupe");
    g_assert_cmpstr(dlsym(object, "plugin_type"), ==, "spank");
    g_assert_cmpuint(*(unsigned *)dlsym(object, "plugin_version"), ==,
                     SLURM_VERSION_NUMBER);
    g_assert_null(dlsym(object, "trp_plugin_settings"));
    g_assert_null(dlsym(object, "trp_error_set"));
}

static void test_contexts(void)
{
    static const struct {
        spank_context_t context;
        int options;
    } all[] = {
        {S_CTX_LOCAL,      1},
        {S_CTX_ALLOCATOR,  2},
        {S_CTX_REMOTE,     1},
        {S_CTX_SLURMD,     0},
        {S_CTX_JOB_SCRIPT, 0},
        {S_CTX_ERROR,      0}
    };
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        begin(all[i].context);
        g_assert_cmpint(fake.noptions, ==, all[i].options);
        for (int k = 0; k < fake.noptions; k++) {
            g_assert_cmpint(fake.options[k].has_arg, ==, 1);
            g_assert_nonnull(strstr(fake.options[k].usage, "[Troupe]"));
        }
    }
}

static void test_unused(void)
{
    begin(S_CTX_REMOTE);
    g_remove(shapes); /* nobody looks */
    g_assert_cmpint(call("slurm_spank_task_init"), ==, 0);
    g_assert_cmpint(fake.nvariables, ==, 0);
    g_assert_cmpstr(fake.log, ==, "");
}

static void other_slurm(char *major, char *minor, const char *wanted)
{
    load(S_CTX_LOCAL);
    fake.major = major;
    fake.minor = minor;
    g_assert_cmpint(call("slurm_spank_init"), ==, 0);
    g_assert_cmpint(fake.noptions, ==, 0);
    logged(wanted);
    fake.context = S_CTX_REMOTE;
    g_assert_cmpint(call("slurm_spank_task_init"), ==, 0);
    g_assert_cmpint(fake.nvariables, ==, 0);
}

static void test_other_slurm(void)
{
    char major[] = "99", minor[] = "11", same[8];
    snprintf(same, sizeof same, "%d", SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER));
    other_slurm(major, minor, "this is 99.11: nothing is done; build Troupe with");
    other_slurm(same, major, ": nothing is done");
    other_slurm(NULL, minor, "does not tell its version");
}

static void test_settings(void)
{
    char unknown[] = "sight=/x", relative[] = "site=x/y.yaml";
    char *right = arguments[0];
    load(S_CTX_LOCAL);
    arguments[0] = unknown;
    g_assert_cmpint(call("slurm_spank_init"), ==, 0);
    logged("plugstack.conf: unknown argument \"sight=/x\"; there are: site=FILE, "
           "shapes=FILE, troupe=PROGRAM\n");
    g_assert_cmpint(fake.noptions, ==, 1);
    load(S_CTX_SLURMD);
    arguments[0] = relative;
    g_assert_cmpint(call("slurm_spank_init"), ==, 0);
    logged("\"site=x/y.yaml\": want an absolute path");
    arguments[0] = right;
}

static void test_no_options(void)
{
    load(S_CTX_LOCAL);
    fake.register_result = ESPANK_NOSPACE;
    g_assert_cmpint(call("slurm_spank_init"), ==, 0);
    logged("no option --stage-profile: error");
}

static void test_profile(void)
{
    char longer[100];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    begin(S_CTX_LOCAL);
    g_assert_cmpint(fake_option("stage-profile", "train", 0), ==, 0);
    g_assert_cmpstr(fake.log, ==, "");
    const struct {
        const char *name, *wanted;
    } wrong[] = {
        {"trian",   "unknown profile \"trian\"; did you mean \"train\"? there are: "
                  "small, train, tpu\n"                         },
        {"nothing", "unknown profile \"nothing\"; there are: small, train, tpu\n"},
        {"tpu",     "profile tpu: resource tpu is denied\n"                      },
        {"",        "\"\" is no name of a profile\n"                             },
        {"a/b",     "\"a/b\" is no name of a profile\n"                          },
        {"a\nb",    "\"a?b\" is no name of a profile\n"                          },
        {longer,    "is no name of a profile\n"                                  },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        *fake.log = '\0';
        g_assert_cmpint(fake_option("stage-profile", wrong[i].name, 0), <, 0);
        logged("spank_troupe: --stage-profile: ");
        logged(wrong[i].wanted);
    }
    *fake.log = '\0';
    g_assert_cmpint(fake_option("stage-profile", NULL, 0), <, 0);
    logged("\"\" is no name");
}

static void test_no_shapes(void)
{
    begin(S_CTX_ALLOCATOR);
    g_remove(shapes);
    g_assert_cmpint(fake_option("stage-profile", "small", 0), <, 0);
    logged("shapes: No such file or directory; the administrator makes it: troupe "
           "site-shape --all --output /");
    *fake.log = '\0';
    g_mkdir(shapes, 0700);
    g_assert_cmpint(fake_option("stage-profile", "small", 0), <, 0);
    logged("shapes: not a file; the administrator");
    g_rmdir(shapes);
}

static void test_no_filter(void)
{
    begin(S_CTX_LOCAL);
    fake_filters("syslog");
    g_assert_cmpint(fake_option("stage-profile", "small", 0), <, 0);
    logged("CliFilterPlugins=lua");
    fake_filters(NULL);
    g_assert_cmpint(fake_option("stage-profile", "small", 0), <, 0);
    fake_filters("syslog,cli_filter/lua");
    g_assert_cmpint(fake_option("stage-profile", "small", 0), ==, 0);
}

/* In a job of a profile: srun's own is told from the job's, which is taken as it is. */
static void test_inherited(void)
{
    load(S_CTX_LOCAL);
    g_setenv(INHERITED, "gone", 1);
    call("slurm_spank_init");
    g_assert_cmpint(fake_option("stage-profile", "gone", 0), ==, 0);
    g_assert_nonnull(g_getenv(INHERITED));
    g_assert_cmpint(fake_option("stage-profile", "small", 0), ==, 0);
    g_assert_null(g_getenv(INHERITED));
    g_assert_cmpint(fake_option("stage-profile", "gone", 0), <, 0);
}

static void test_additional_job(void)
{
    load(S_CTX_ALLOCATOR);
    g_setenv(INHERITED, "small", 1);
    g_setenv(PIPELINE, "p.yaml", 1);
    g_setenv("TROUPE_PROFILE", "small", 1);
    g_setenv("TROUPE_RESOURCE_gpu", "0", 1);
    g_setenv("TROUPE_RESOURCE_seat", "0", 1);
    g_setenv("TROUPE_OTHER", "stays", 1);
    call("slurm_spank_init");
    g_assert_null(g_getenv(INHERITED));
    g_assert_null(g_getenv(PIPELINE));
    g_assert_null(g_getenv("TROUPE_PROFILE"));
    g_assert_null(g_getenv("TROUPE_RESOURCE_gpu"));
    g_assert_null(g_getenv("TROUPE_RESOURCE_seat"));
    g_assert_cmpstr(g_getenv("TROUPE_OTHER"), ==, "stays");
    /* What the user set where there is no such job is his. */
    load(S_CTX_ALLOCATOR);
    g_setenv("TROUPE_PROFILE", "mine", 1);
    call("slurm_spank_init");
    g_assert_cmpstr(g_getenv("TROUPE_PROFILE"), ==, "mine");
    g_unsetenv("TROUPE_PROFILE");
    g_unsetenv("TROUPE_OTHER");
}

static void test_pipeline(void)
{
    char *said = g_build_filename(folder, "said", NULL), *text = NULL;
    char *script = g_strdup_printf("#!/bin/sh\necho \"$@\" >%s\necho no >&2\n"
                                   "read x && exit 9\ncase $4 in *good) exit 0;; *odd) "
                                   "exit 3;; *dead) kill -9 $$;; esac\nexit 2\n",
                                   said);
    write_file(command, script, 0700);
    begin(S_CTX_ALLOCATOR);
    g_assert_cmpint(fake_option("stage-pipeline", "a good", 0), ==, 0);
    g_file_get_contents(said, &text, NULL, NULL);
    char *wanted = g_strdup_printf("submit --print --site=%s ./a good\n", site);
    g_assert_cmpstr(text, ==, wanted);
    g_assert_cmpstr(fake.log, ==, "");
    signal(SIGCHLD, SIG_IGN); /* as whoever called sbatch may have it */
    g_assert_cmpint(fake_option("stage-pipeline", "good", 0), ==, 0);
    g_assert_true(signal(SIGCHLD, SIG_DFL) == SIG_IGN);
    g_assert_cmpint(fake_option("stage-pipeline", "/odd", 0), <, 0);
    logged("--stage-pipeline: /odd is not submitted: it cannot run on this site");
    g_assert_cmpint(fake_option("stage-pipeline", "bad", 0), <, 0);
    g_assert_cmpint(fake_option("stage-pipeline", "dead", 0), <, 0);
    logged("was killed by signal 9");
    g_assert_cmpint(fake_option("stage-pipeline", "", 0), <, 0);
    logged("--stage-pipeline: no file");
    g_assert_cmpint(fake_option("stage-pipeline", NULL, 0), <, 0);
    g_remove(command);
    g_assert_cmpint(fake_option("stage-pipeline", "good", 0), <, 0);
    logged("cannot be started: No such file or directory; the administrator says");
    g_free(text);
    g_free(wanted);
    g_free(script);
    g_free(said);
}

static void test_step(void)
{
    begin(S_CTX_REMOTE);
    fake_put("CUDA_VISIBLE_DEVICES", "4,5,6");
    fake_put("TROUPE_PROFILE", "forged");
    g_assert_cmpint(fake_option("stage-profile", "train", 1), ==, 0);
    g_assert_cmpint(call("slurm_spank_task_init"), ==, 0);
    g_assert_cmpstr(fake_get("TROUPE_PROFILE"), ==, "train");
    g_assert_cmpstr(fake_get("TROUPE_RESOURCE_gpu"), ==, "4,5,6");
    g_assert_cmpstr(fake_get("TROUPE_RESOURCE_seat"), ==, "0,1");
    g_assert_cmpstr(fake.log, ==, "");
}

/* The task runs whatever is wrong. */
static void test_step_errors(void)
{
    begin(S_CTX_REMOTE);
    g_assert_cmpint(fake_option("stage-profile", "$(x)", 1), <, 0);
    logged("is no name of a profile");
    g_assert_cmpint(call("slurm_spank_task_init"), ==, 0);
    g_assert_cmpint(fake.nvariables, ==, 0);

    begin(S_CTX_REMOTE);
    g_assert_cmpint(fake_option("stage-profile", "gone", 1), ==, 0);
    g_assert_cmpint(call("slurm_spank_task_init"), ==, 0);
    g_assert_cmpstr(fake_get("TROUPE_PROFILE"), ==, "gone");
    logged("unknown profile \"gone\"");

    begin(S_CTX_REMOTE);
    fake.setenv_result = ESPANK_ERROR;
    fake_option("stage-profile", "train", 1);
    g_assert_cmpint(call("slurm_spank_task_init"), ==, 0);
    logged("the task's environment: error");

    begin(S_CTX_REMOTE);
    write_file(shapes, "troupe-shapes 2\n", 0600);
    fake_option("stage-profile", "train", 1);
    g_assert_cmpint(call("slurm_spank_task_init"), ==, 0);
    g_assert_cmpstr(fake_get("TROUPE_PROFILE"), ==, "train");
    logged("shapes:1: not shapes of this version of Troupe");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*test)(void);
    } all[] = {
        {"it shows what the loader needs and nothing of its own",  test_variables     },
        {"each process of Slurm gets the options it is to have",   test_contexts      },
        {"unused, a step reads nothing and tells nothing",         test_unused        },
        {"another Slurm is told, and nothing is done",             test_other_slurm   },
        {"wrong arguments are told, the others count",             test_settings      },
        {"an option that cannot be had is told",                   test_no_options    },
        {"a profile is one of the site's, or refused",             test_profile       },
        {"without shapes a profile is refused",                    test_no_shapes     },
        {"without a cli_filter in Lua a profile is refused",       test_no_filter     },
        {"a job's profile is taken as it is, a step's is checked", test_inherited     },
        {"a job made in a job has nothing of its profile",         test_additional_job},
        {"a pipeline is checked by troupe, as it is called",       test_pipeline      },
        {"a task finds its profile and resources",                 test_step          },
        {"a task runs whatever is wrong, which is told",           test_step_errors   },
    };
    g_test_init(&argc, &argv, NULL);
    folder = g_dir_make_tmp("troupe-plugin.XXXXXX", NULL);
    site = g_build_filename(folder, "site.yaml", NULL);
    shapes = g_build_filename(folder, "shapes", NULL);
    command = g_build_filename(folder, "troupe", NULL);
    arguments[0] = g_strdup_printf("site=%s", site);
    arguments[1] = g_strdup_printf("troupe=%s", command);
    arguments[2] = g_strdup_printf("shapes=%s", shapes);
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        char *path = g_strdup_printf("/plugin/%s", all[i].name);
        g_test_add_func(path, all[i].test);
        g_free(path);
    }
    int status = g_test_run();
    dlclose(object);
    fake_reset(S_CTX_ERROR);
    fake_filters(NULL);
    char *tidy = g_strdup_printf("rm -rf '%s'", folder);
    status |= system(tidy);
    g_free(tidy);
    for (int i = 0; i < 3; i++)
        g_free(arguments[i]);
    g_free(site);
    g_free(shapes);
    g_free(command);
    g_free(folder);
    return status;
}
