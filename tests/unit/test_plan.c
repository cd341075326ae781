/* Plans: what is known before a run, and what will never run. */
#include <jansson.h>

#include "driver/plan_print.h"
#include "driver_files.h"
#include "unit.h"

/* Prints the plan for a machine of two cores; *ret_text is to be freed. */
static int plan_text(const char *yaml, bool json, char **ret_text, trp_error *err)
{
    trp_pipeline *p = pipeline_of(yaml);
    trp_options *o;
    size_t size;
    g_assert_cmpint(trp_options_new(&o, NULL), ==, 0);
    g_assert_cmpint(trp_pipeline_options(p, o, NULL), ==, 0);
    FILE *out = open_memstream(ret_text, &size);
    err->text[0] = '\0';
    int r = trp_plan_print(p, o, NULL, &(struct trp_pool_list){0}, "over nothing",
                           &(struct trp_cluster_where){.local_cores = 2}, NULL,
                           json ? TRP_PLAN_JSON : TRP_PLAN_TEXT, out, err);
    fclose(out);
    trp_options_free(o);
    trp_pipeline_free(p);
    return r;
}

/* Asserts that the value at "stages.0.never", written compactly, is `wanted`. */
static void at(const json_t *root, const char *path, const char *wanted)
{
    char **words = g_strsplit(path, ".", -1);
    const json_t *j = root;
    for (char **w = words; *w; w++)
        j = g_ascii_isdigit(**w) ? json_array_get(j, (size_t)atoi(*w))
                                 : json_object_get(j, *w);
    char *got =
        j ? json_dumps(j, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    if (g_strcmp0(got, wanted) != 0)
        g_error("%s: wanted %s, got %s", path, wanted, got);
    free(got);
    g_strfreev(words);
}

static json_t *plan_json(const char *yaml, int code, const char *words)
{
    trp_error err;
    char *text;
    g_assert_cmpint(plan_text(yaml, true, &text, &err), ==, code);
    if (!strstr(err.text, words))
        g_error("wanted \"%s\" in \"%s\"", words, err.text);
    json_t *root = json_loads(text, 0, NULL);
    g_assert_nonnull(root);
    free(text);
    return root;
}

static const char good[] =
    "troupe: 1\n"
    "name: weather\n"
    "profiles:\n"
    "  p: {executor: {cores: 2, memory: 64m, memoryOverhead: 0}, task: {cpus: 1}}\n"
    "  light: {task: {cpus: 1}}\n"
    "stages:\n"
    "  - {name: a, tasks: 5, profile: p, run: x}\n"
    "  - {name: b, after: [{stage: a, each: true}], foreach: {files: \"*.x\"}, run: "
    "x}\n"
    "  - {name: c, after: [a, b], mpi: {ranks: 2}, profile: light, run: x}\n";

TEST("what is known is told, what is not is open")
{
    json_t *j = plan_json(good, 0, "");
    at(j, "name", "\"weather\"");
    at(j, "profiles.0.name", "\"default\"");
    at(j, "profiles.0.id", "0");
    at(j, "profiles.1.name", "\"p\"");
    at(j, "profiles.1.id", "1");
    at(j, "profiles.1.executor", "{\"cores\":2,\"memory\":64,\"memoryOverhead\":0}");
    at(j, "profiles.1.task", "{\"cpus\":1}");
    at(j, "profiles.1.slots", "2");
    at(j, "profiles.1.limiting", "\"cpus\"");
    at(j, "profiles.1.fits", "1");
    at(j, "stages.0.tasks", "5");
    at(j, "stages.0.after", "[]");
    at(j, "stages.0.waits", "\"5 tasks, 2 at once\"");
    at(j, "stages.0.never", "null");
    at(j, "stages.1.tasks", "null");
    at(j, "stages.1.after", "[\"a\"]");
    at(j, "stages.1.profile", "\"default\"");
    at(j, "stages.2.ranks", "2");
    at(j, "stages.2.tasks", "1");
    at(j, "stages.2.waits", "null");
    json_decref(j);
}

TEST("as text, in columns")
{
    trp_error err;
    char *text;
    g_assert_cmpint(plan_text(good, false, &text, &err), ==, 0);
    g_assert_nonnull(strstr(text, "\na      p        5        -"));
    g_assert_nonnull(strstr(text, "\nb      default  ?        a (each)"));
    g_assert_nonnull(strstr(text, "\nc      light    2 ranks  a, b"));
    g_assert_nonnull(strstr(text, "cores 2, memory 64 MiB"));
    free(text);
}

TEST("a used profile without room is told, an unused one not")
{
    json_t *j = plan_json("troupe: 1\nprofiles:\n"
                          "  big: {executor: {cores: 64}, task: {cpus: 1}}\n"
                          "  odd: {executor: {cores: 99}, task: {cpus: 1}}\n"
                          "stages:\n  - {name: a, run: x}\n"
                          "  - {name: b, profile: big, run: x}\n"
                          "  - {name: c, run: x}\n",
                          TRP_ENEVER, "p.yaml:3:3: profile big never fits here: ");
    at(j, "stages.0.never", "null");
    at(j, "stages.1.never", "\"cores wanted 64, available 2\"");
    at(j, "stages.2.never", "null");
    at(j, "profiles.1.never", "\"cores wanted 64, available 2\"");
    at(j, "profiles.2.never", "\"cores wanted 99, available 2\"");
    json_decref(j);
    j = plan_json("troupe: 1\nprofiles:\n"
                  "  odd: {executor: {cores: 99}, task: {cpus: 1}}\n"
                  "stages:\n  - {name: a, run: x}\n",
                  0, "");
    json_decref(j);
}

TEST("a gang without room is told")
{
    json_t *j = plan_json("troupe: 1\nstages:\n"
                          "  - name: a\n    run: x\n    mpi: {ranks: 3}\n",
                          TRP_ENEVER,
                          "p.yaml:3:11: stage a: 3 ranks of profile default never fit");
    json_decref(j);
}

TEST("an impossible profile goes first, the plan is whole")
{
    json_t *j = plan_json("troupe: 1\nprofiles:\n"
                          "  big: {executor: {cores: 64}, task: {cpus: 1}}\n"
                          "  bad: {task: {gpu: 1}}\n"
                          "stages:\n  - {name: a, profile: big, run: x}\n"
                          "  - {name: b, profile: bad, run: x}\n"
                          "  - {name: c, tasks: 2, run: x}\n",
                          TRP_EINVAL, "p.yaml:4:3: ");
    at(j, "profiles.2.id", "null");
    at(j, "stages.2.tasks", "2");
    at(j, "stages.2.never", "null");
    g_assert_true(json_is_string(
        json_object_get(json_array_get(json_object_get(j, "stages"), 1), "never")));
    json_decref(j);
}

TEST("a dry run shows commands as a shell would take them")
{
    trp_pipeline *p = pipeline_of("troupe: 1\nstages:\n"
                                  "  - {name: b, after: [a], foreach: {files: \"*\"}, "
                                  "argv: [cp, \"a b\"]}\n"
                                  "  - {name: a, run: \"echo 'x'\"}\n");
    trp_options *o;
    trp_error err = {0};
    char *text;
    size_t size;
    g_assert_cmpint(trp_options_new(&o, NULL), ==, 0);
    FILE *out = open_memstream(&text, &size);
    g_assert_cmpint(trp_dry_run_print(p, o, NULL, out, &err), ==, 0);
    fclose(out);
    g_assert_cmpstr(text, ==,
                    "a: 1 task, profile default\n"
                    "    /bin/sh -e -c 'echo '\\''x'\\'''\n"
                    "b: ? tasks, profile default\n"
                    "    cp 'a b'\n");
    free(text);
    trp_options_free(o);
    trp_pipeline_free(p);
}
