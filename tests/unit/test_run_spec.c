/* The run specification survives the way through its files, whatever bytes it holds. */
#include <sys/stat.h>

#include "driver/run_spec.h"
#include "driver_files.h"
#include "unit.h"

static void same(const struct trp_run_spec *a, const struct trp_run_spec *b)
{
    g_assert_cmpstr(a->run_name, ==, b->run_name);
    g_assert_cmpstr(a->run_dir, ==, b->run_dir);
    g_assert_cmpstr(a->cwd, ==, b->cwd);
    g_assert_cmpstr(a->app_name, ==, b->app_name);
    g_assert_cmpstr(a->pipeline, ==, b->pipeline);
    g_assert_cmpstr(a->site, ==, b->site);
    g_assert_cmpstr(a->from, ==, b->from);
    g_assert_cmpstr(a->until, ==, b->until);
    g_assert_cmpuint(a->napp, ==, b->napp);
    for (uint32_t i = 0; i < a->napp; i++)
        g_assert_cmpstr(a->app[i], ==, b->app[i]);
    g_assert_cmpuint(a->noptions, ==, b->noptions);
    for (uint32_t i = 0; i < a->noptions; i++) {
        g_assert_cmpstr(a->options[i].key, ==, b->options[i].key);
        g_assert_cmpstr(a->options[i].value, ==, b->options[i].value);
        g_assert_cmpstr(a->options[i].where, ==, b->options[i].where);
        g_assert_cmpint(a->options[i].origin, ==, b->options[i].origin);
    }
    g_assert_cmpuint(a->nparams, ==, b->nparams);
    for (uint32_t i = 0; i < a->nparams; i++) {
        g_assert_cmpstr(a->params[i].key, ==, b->params[i].key);
        g_assert_cmpstr(a->params[i].value, ==, b->params[i].value);
    }
    g_assert_cmpuint(a->local_cores, ==, b->local_cores);
    g_assert_cmpint(a->share_cores, ==, b->share_cores);
    g_assert_cmpuint(a->earlier_runs, ==, b->earlier_runs);
    g_assert_cmpint(a->quiet, ==, b->quiet);
    g_assert_cmpint(a->terminal, ==, b->terminal);
    g_assert_cmpuint(a->nforce, ==, b->nforce);
    g_assert_cmpuint(a->nenviron, ==, b->nenviron);
    for (uint32_t i = 0; i < a->nenviron; i++)
        g_assert_cmpstr(a->environ[i], ==, b->environ[i]);
}

TEST("all fields come back as they were")
{
    char *d = files_new();
    g_autofree char *big = g_strnfill(1 << 20, 'e');
    char app0[] = "./a b", app1[] = "q'\"q\n\303\244", app2[] = "\377\001", app3[] = "";
    char force0[] = "split", key[] = "task.cpus", value[] = "2", where[] = "--set";
    char param[] = "date", odd[] = "\200\n\"";
    char env0[] = "A=1", env1[] = "B=x\ny\377", env2[] = "EMPTY=";
    char name[] = "etl-1", cwd[] = "/tmp/odd \377", text[] = "free \"text\"";
    char yaml[] = "etl.yaml", empty[] = "";
    char *app[] = {app0, app1, app2, app3}, *force[] = {force0};
    char *list[] = {env0, env1, env2, big};
    struct trp_option_setting options[] = {
        {key, value, TRP_ORIGIN_COMMAND_LINE, where},
        {key, value, TRP_ORIGIN_SITE,         NULL },
    };
    struct trp_pair params[] = {
        {.key = param, .value = odd}
    };
    struct trp_run_spec s = {
        .run_name = name,
        .run_dir = d,
        .cwd = cwd,
        .app_name = text,
        .pipeline = yaml,
        .pipeline_copy = yaml,
        .site = empty,
        .app = app,
        .napp = 4,
        .options = options,
        .noptions = 2,
        .params = params,
        .nparams = 1,
        .local_cores = 8,
        .share_cores = true,
        .earlier_runs = 3,
        .from = force0,
        .force = force,
        .nforce = 1,
        .environ = list,
        .nenviron = 4,
    };
    struct trp_run_spec *loaded;
    struct stat st;
    trp_error err = {0};
    files_put(d, "state/x", "");
    g_assert_cmpint(trp_run_spec_save(&s, &err), ==, 0);
    g_assert_cmpint(trp_run_spec_load(d, &loaded, &err), ==, 0);
    same(loaded, &s);
    trp_run_spec_free(loaded);
    for (int i = 0; i < 2; i++) {
        char *path =
            g_build_filename(d, "state", i ? "environ" : "run_spec.json", NULL);
        g_assert_cmpint(stat(path, &st), ==, 0);
        g_assert_cmpint(st.st_mode & 0777, ==, 0600);
        g_free(path);
    }
    files_free(d);
}

static void bad(const char *json, const char *words)
{
    struct trp_run_spec *loaded;
    trp_error err = {0};
    char *d = files_new();
    files_put(d, "state/environ", "A=1");
    files_put(d, "state/run_spec.json", json);
    g_assert_cmpint(trp_run_spec_load(d, &loaded, &err), ==, TRP_EINVAL);
    if (!strstr(err.text, words))
        g_error("wanted \"%s\" in \"%s\"", words, err.text);
    files_free(d);
}

TEST("a broken file is told by what is wrong")
{
    struct trp_run_spec *loaded, s = {0};
    trp_error err = {0};
    char *d = files_new(), name[] = "x";
    g_assert_cmpint(trp_run_spec_load(d, &loaded, &err), ==, TRP_ESYSTEM);
    g_assert_nonnull(strstr(err.text, "run_spec.json"));
    bad("{", "run_spec.json:1:");
    bad("[]", "`version`");
    bad("{\"version\":2}", "`run_name`");
    bad("{\"version\":2,\"run_name\":3}", "`run_name`");
    bad("{\"version\":2,\"run_name\":{\"hex\":\"0\"}}", "`run_name`");
    s.run_name = s.cwd = s.app_name = name;
    s.run_dir = d; /* has no state/ */
    g_assert_cmpint(trp_run_spec_save(&s, &err), ==, TRP_ESYSTEM);
    files_free(d);
}
