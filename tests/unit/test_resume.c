/* What --resume, --from, --until and --force run again, and what they do not. */
#include <fcntl.h>
#include <sys/stat.h>
#include <utime.h>

#include "driver_run.h"
#include "unit.h"

static const char three[] = "troupe: 1\n"
                            "params: {k: v}\n"
                            "profiles: {p: {executor: {cores: 2}, task: {cpus: 1}}}\n"
                            "stages:\n"
                            "  - name: a\n"
                            "    foreach: {items: [x, y, z]}\n"
                            "    run: cmd a\n"
                            "    outputs: [\"out/$TROUPE_ITEM.a\"]\n"
                            "  - name: b\n"
                            "    after: [a]\n"
                            "    tasks: 2\n"
                            "    profile: p\n"
                            "    env: {E: \"1\"}\n"
                            "    run: cmd b\n"
                            "    outputs: [\"out/*.b\"]\n"
                            "  - name: c\n"
                            "    after: [b]\n"
                            "    run: cmd c\n";

static void make_outputs(const char *dir)
{
    static const char *const files[] = {"x.a", "y.a", "z.a", "0.b", "1.b"};
    for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_strconcat("out/", files[i], NULL);
        files_put(dir, path, files[i]);
    }
}

/* Runs what there is to run; returns it as "a:0,1,2 b:0". Tasks from `fail` on do not
 * succeed and their stage fails, those below it are not reached. */
static char *run_all(struct run *r, const char *yaml, bool resume,
                     const char *fail_stage, uint32_t fail)
{
    GString *ran = g_string_new("");
    trp_error err = {0};
    bool failed = false;
    if (run_open(r, yaml, resume, &err) < 0)
        g_error("%s", err.text);
    const struct trp_job_spec *spec = trp_command_job_spec(r->job);
    const struct trp_work *w = trp_command_job_work(r->job);
    for (uint32_t i = 0; i < spec->nstages && !failed; i++) {
        struct trp_stage_tasks tasks = {.ntasks = spec->stages[i].ntasks};
        if (!spec->stages[i].tasks_known)
            g_assert_cmpint(w->stage_tasks(w->context, i, &tasks, &err), ==, 0);
        g_string_append_printf(ran, "%s%s:", i ? " " : "", spec->stages[i].name);
        for (uint32_t t = 0; t < tasks.ntasks && !failed; t++) {
            if (tasks.done && tasks.done[t])
                continue;
            failed = fail_stage && strcmp(spec->stages[i].name, fail_stage) == 0 &&
                     t >= fail;
            g_string_append_printf(ran, "%u%s,", t, failed ? "!" : "");
            if (!failed)
                run_task_ends(r, i, t, TRP_END_SUCCESS, 0, 0);
        }
        run_stage_ends(r, i, failed ? TRP_OUTCOME_FAILED : TRP_OUTCOME_SUCCEEDED,
                       failed ? TRP_EFAILED : 0, TRP_NONE, "");
    }
    run_close(r);
    return g_string_free(ran, FALSE);
}

static void expect(struct run *r, const char *yaml, bool resume, const char *fail_stage,
                   uint32_t fail, const char *wanted)
{
    g_autofree char *ran = run_all(r, yaml, resume, fail_stage, fail);
    g_assert_cmpstr(ran, ==, wanted);
}

#define ALL "a:0,1,2, b:0,1, c:0,"

/* A run of `three` that is done, in a folder of its own. */
static struct run done_run(void)
{
    struct run r = {.dir = files_new()};
    make_outputs(r.dir);
    expect(&r, three, false, NULL, 0, ALL);
    return r;
}

static char *changed(const char *yaml, const char *from, const char *to)
{
    char **parts = g_strsplit(yaml, from, 2);
    g_assert_nonnull(parts[1]);
    char *text = g_strjoinv(to, parts);
    g_strfreev(parts);
    return text;
}

TEST("what is done does not run")
{
    struct run r = done_run();
    expect(&r, three, true, NULL, 0, "");
    expect(&r, three, true, NULL, 0, "");
    files_free(r.dir);
}

TEST("a run that stopped goes on where it was")
{
    struct run r = {.dir = files_new()};
    make_outputs(r.dir);
    expect(&r, three, false, "a", 1, "a:0,1!,");
    expect(&r, three, true, "b", 1, "a:1,2, b:0,1!,");
    expect(&r, three, true, NULL, 0, "b:1, c:0,");
    expect(&r, three, true, NULL, 0, "");
    files_free(r.dir);
}

TEST("what changed runs again with all below it")
{
    static const struct {
        const char *from, *to, *ran;
    } cases[] = {
        {"cmd a",      "cmd A",                       ALL               },
        {"cmd b",      "cmd B",                       "b:0,1, c:0,"     },
        {"cmd c",      "cmd C",                       "c:0,"            },
        {"E: \"1\"",   "E: \"2\"",                    "b:0,1, c:0,"     },
        {"E: \"1\"",   "E: \"1\", F: x",              "b:0,1, c:0,"     },
        {"cores: 2",   "cores: 3",                    ""                },
        {"k: v",       "k: w",                        ""                },
        {"run: cmd c", "run: cmd c\n    shell: bash", "c:0,"            },
        {"run: cmd c", "run: cmd c\n    params: all", "c:0,"            },
        {"tasks: 2",   "tasks: 3",                    "b:2, c:0,"       },
        {"[x, y, z]",  "[w, x, y, z]",                "a:0, b:0,1, c:0,"},
        {"[x, y, z]",  "[z, x]",                      "b:0,1, c:0,"     },
        {"[x, y, z]",  "[z, y, x]",                   ""                },
        {"run: cmd b", "run: cmd b\n    cwd: out",    "b:0,1, c:0,"     },
        {"run: cmd b", "run: cmd b\n    timeout: 3s", ""                },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct run r = done_run();
        g_autofree char *yaml = changed(three, cases[i].from, cases[i].to);
        g_autofree char *ran = run_all(&r, yaml, true, NULL, 0);
        if (strcmp(ran, cases[i].ran) != 0)
            g_error("%s → %s: wanted \"%s\", got \"%s\"", cases[i].from, cases[i].to,
                    cases[i].ran, ran);
        files_free(r.dir);
    }
}

TEST("params count where a stage names them")
{
    static const char yaml[] = "troupe: 1\nparams: {k: v, kk: 1}\nstages:\n"
                               "  - {name: a, run: \"cmd $TROUPE_PARAM_k\"}\n"
                               "  - {name: b, run: cmd, env: {E: \"${k}\"}}\n"
                               "  - {name: c, run: cmd, params: [k]}\n"
                               "  - {name: d, run: cmd, params: all}\n"
                               "  - {name: e, run: \"cmd $TROUPE_PARAM_kk\"}\n"
                               "  - {name: f, run: cmd}\n";
    struct run r = {.dir = files_new()};
    expect(&r, yaml, false, NULL, 0, "a:0, b:0, c:0, d:0, e:0, f:0,");
    g_autofree char *k = changed(yaml, "k: v", "k: w");
    expect(&r, k, true, NULL, 0, "a:0, b:0, c:0, d:0,");
    expect(&r, k, true, NULL, 0, "");
    files_free(r.dir);
}

TEST("a param is named in a value, by its variable or in a stage's params")
{
    static const char yaml[] =
        "troupe: 1\nparams: {a: 1, b: \"${a}\", c: 1, d: 1, e: 1, f: 1, g: 1}\n"
        "profiles: {p: {executor: {cores: \"${c}\"}}}\nstages:\n"
        "  - {name: s, run: \"x $TROUPE_PARAM_d ${b}\", params: [e]}\n"
        "  - {name: t, run: x, when: \"${f}\", env: {G: \"$${g} TROUPE_PARAM_gg\"}}\n";
    trp_pipeline *p;
    trp_error err;
    g_assert_cmpint(trp_pipeline_parse("p", yaml, strlen(yaml), &p, &err), ==, 0);
    for (uint32_t i = 0; i < p->nparams; i++)
        g_assert_cmpint(trp_param_is_named(p, i), ==, !strchr("bg", *p->params[i].key));
    trp_pipeline_free(p);
}

TEST("a command that is changed back runs again")
{
    struct run r = done_run();
    g_autofree char *yaml = changed(three, "cmd b", "cmd B");
    expect(&r, yaml, true, "b", 1, "b:0,1!,");
    expect(&r, three, true, NULL, 0, "b:0,1, c:0,");
    files_free(r.dir);
}

TEST("outputs have to be there as they were")
{
    struct run r = done_run();
    g_autofree char *y = g_build_filename(r.dir, "out", "y.a", NULL);
    g_autofree char *b = g_build_filename(r.dir, "out", "1.b", NULL);
    files_put(r.dir, "out/y.a", "other size");
    expect(&r, three, true, NULL, 0, "a:1, b:0,1, c:0,");
    unlink(y);
    expect(&r, three, true, NULL, 0, "a:1, b:0,1, c:0,");
    expect(&r, three, true, NULL, 0, "a:1, b:0,1, c:0,"); /* it was not made */
    files_put(r.dir, "out/y.a", "y.a");
    struct utimbuf old = {1000000, 1000000};
    g_assert_cmpint(utime(b, &old), ==, 0);
    expect(&r, three, true, NULL, 0, "b:0,1, c:0,");
    files_put(r.dir, "out/new.b", "one more is no change");
    expect(&r, three, true, NULL, 0, "");
    files_free(r.dir);
}

TEST("of a folder what is in it counts, of a link what it leads to")
{
    static const char yaml[] =
        "troupe: 1\nstages:\n"
        "  - {name: a, foreach: {items: [x, y]}, run: cmd, inputs: [ref], "
        "outputs: [\"out/${item}\"]}\n"
        "  - {name: b, foreach: {files: \"in/*\"}, run: cmd, outputs: [\"b/*\"]}\n";
    struct run r = {.dir = files_new()};
    static const char *const files[] = {"ref/deep/f", "out/x/1", "out/y/1",
                                        "in/s/f",     "far/f",   "b/1"};
    for (size_t i = 0; i < G_N_ELEMENTS(files); i++)
        files_put(r.dir, files[i], files[i]);
    g_autofree char *link = g_build_filename(r.dir, "out", "y", "link", NULL);
    g_autofree char *gone = g_build_filename(r.dir, "out", "x", "1", NULL);
    g_autofree char *end = g_build_filename(r.dir, "far", "f", NULL);
    g_assert_cmpint(symlink("../../far/f", link), ==, 0);
    expect(&r, yaml, false, NULL, 0, "a:0,1, b:0,");
    expect(&r, yaml, true, NULL, 0, "");
    g_assert_cmpint(unlink(gone), ==, 0);
    expect(&r, yaml, true, NULL, 0, "a:0,");
    files_put(r.dir, "far/f", "longer than it was");
    expect(&r, yaml, true, NULL, 0, "a:1,");
    g_assert_cmpint(unlink(end), ==, 0); /* the link leads nowhere */
    expect(&r, yaml, true, NULL, 0, "a:1,");
    files_put(r.dir, "ref/deep/g", "");
    expect(&r, yaml, true, NULL, 0, "a:0,1,");
    files_put(r.dir, "in/s/f", "longer than it was");
    expect(&r, yaml, true, NULL, 0, "b:0,");
    expect(&r, yaml, true, NULL, 0, "");
    files_free(r.dir);
}

/* Writes other bytes, and gives the file the times that it had. */
static void rewrite(const char *dir, const char *path, const char *text)
{
    struct stat st;
    g_autofree char *full = g_build_filename(dir, path, NULL);
    g_assert_cmpint(stat(full, &st), ==, 0);
    files_put(dir, path, text);
    struct timespec times[2] = {st.st_atim, st.st_mtim};
    g_assert_cmpint(utimensat(AT_FDCWD, full, times, 0), ==, 0);
}

static void touch(const char *dir, const char *path)
{
    struct utimbuf old = {1000000, 1000000};
    g_autofree char *full = g_build_filename(dir, path, NULL);
    g_assert_cmpint(utime(full, &old), ==, 0);
}

static void contents(void)
{
    static const char yaml[] =
        "troupe: 1\nstages:\n"
        "  - {name: a, foreach: {files: \"in/*\"}, run: cmd, outputs: "
        "[\"${name}.o\"]}\n"
        "  - {name: s, run: cmd, inputs: [ref], outputs: [\"s/*\"]}\n";
    struct run r = {.dir = files_new(), .contents = true};
    static const char *const files[] = {"in/x", "in/y", "x.o", "y.o",
                                        "ref",  "s/1",  "s/2"};
    for (size_t i = 0; i < G_N_ELEMENTS(files); i++)
        files_put(r.dir, files[i], files[i]);
    expect(&r, yaml, false, NULL, 0, "a:0,1, s:0,");
    expect(&r, yaml, true, NULL, 0, "");
    for (size_t i = 0; i < G_N_ELEMENTS(files); i++)
        touch(r.dir, files[i]);
    expect(&r, yaml, true, NULL, 0, "");
    r.contents = false;
    expect(&r, yaml, true, NULL, 0, "a:0,1, s:0,"); /* which keeps no contents */
    rewrite(r.dir, "y.o", "Y.O");
    r.contents = true;
    expect(&r, yaml, true, NULL, 0, "");
    touch(r.dir, "in/x"); /* as they were: nothing is known but their time */
    touch(r.dir, "s/2");
    expect(&r, yaml, true, NULL, 0, "");
    r.force = "a";
    expect(&r, yaml, true, NULL, 0, "a:0,1,");
    r.force = "s";
    expect(&r, yaml, true, NULL, 0, "s:0,");
    r.force = NULL;
    rewrite(r.dir, "y.o", "y.o");
    expect(&r, yaml, true, NULL, 0, "a:1,");
    expect(&r, yaml, true, NULL, 0, "");
    rewrite(r.dir, "in/x", "IN/X");
    expect(&r, yaml, true, NULL, 0, "a:0,");
    rewrite(r.dir, "ref", "REF");
    expect(&r, yaml, true, NULL, 0, "s:0,");
    rewrite(r.dir, "s/1", "S/1");
    r.contents = false;
    expect(&r, yaml, true, NULL, 0, "");
    r.contents = true;
    expect(&r, yaml, true, NULL, 0, "s:0,");
    expect(&r, yaml, true, NULL, 0, "");
    files_free(r.dir);
}

/* What is written again before its contents are known has none: its time counts. */
TEST("contents that are written again meanwhile are not known")
{
    struct trp_output o = {.path = (char[]){"f"}};
    struct trp_outputs all = {.v = &o, .n = 1};
    struct trp_outputs found = {0};
    char *dir = files_new();
    files_put(dir, "f", "1");
    g_assert_cmpint(trp_outputs_add(&found, dir, "f", true), ==, 0);
    o.size = found.v[0].size;
    o.mtime_ns = found.v[0].mtime_ns;
    g_assert_true(trp_output_sum(&o, dir, true, NULL));
    g_assert_true(o.sum.high || o.sum.low);
    g_assert_null(trp_outputs_changed(&all, dir, true));
    touch(dir, "f");
    g_assert_null(trp_outputs_changed(&all, dir, true));
    g_assert_cmpstr(trp_outputs_changed(&all, dir, false), ==, "f");
    g_assert_false(trp_output_sum(&o, dir, true, NULL));
    g_assert_false(o.sum.high || o.sum.low);
    g_assert_cmpstr(trp_outputs_changed(&all, dir, true), ==, "f");
    atomic_bool stop = true;
    g_assert_false(trp_output_sum(&o, dir, false, &stop));
    trp_outputs_free(&found);
    files_free(dir);
}

/* A stage above was run again by a run that ended before the stages below. */
TEST("a stage above that ran again is remembered")
{
    struct run r = done_run();
    r.force = "a";
    expect(&r, three, true, "b", 0, "a:0,1,2, b:0!,");
    r.force = NULL;
    expect(&r, three, true, NULL, 0, "b:0,1, c:0,");
    files_free(r.dir);
}

TEST("from and until choose stages")
{
    struct run r = {.dir = files_new(), .from = "b"};
    make_outputs(r.dir);
    expect(&r, three, false, NULL, 0, "b:0,1, c:0,");
    r.until = "b";
    expect(&r, three, false, NULL, 0, "b:0,1,");
    r.from = NULL;
    expect(&r, three, false, NULL, 0, "a:0,1,2, b:0,1,");
    files_free(r.dir);
}

TEST("until forgets what is below")
{
    struct run r = done_run();
    g_autofree char *yaml = changed(three, "cmd a", "cmd A");
    r.until = "a";
    expect(&r, yaml, true, NULL, 0, "a:0,1,2,");
    r.until = NULL;
    expect(&r, yaml, true, NULL, 0, "b:0,1, c:0,");
    files_free(r.dir);
}

static void force(void)
{
    struct run r = done_run();
    r.force = "b";
    expect(&r, three, true, NULL, 0, "b:0,1, c:0,");
    r.force = "a";
    r.from = "c";
    expect(&r, three, true, NULL, 0, ALL);
    files_free(r.dir);
}

TEST("stages that do not exist are told")
{
    struct run r = {.dir = files_new(), .from = "x"};
    trp_error err = {0};
    g_assert_cmpint(run_open(&r, three, false, &err), ==, TRP_EINVAL);
    g_assert_nonnull(strstr(err.text, "--from: p.yaml has no stage x"));
    run_close(&r);
    r.from = "c";
    r.until = "a";
    g_assert_cmpint(run_open(&r, three, false, &err), ==, TRP_EINVAL);
    g_assert_nonnull(strstr(err.text, "leaves no stage"));
    run_close(&r);
    files_free(r.dir);
}

/* The number of a task counts only where the command can see it in its text. */
TEST("a task is known by its item, by number where it is used")
{
    static const char yaml[] = "troupe: 1\nstages:\n"
                               "  - {name: a, foreach: {items: [x, y]}, run: cmd}\n"
                               "  - {name: n, foreach: {items: [x, y]}, "
                               "run: \"cmd $TROUPE_TASK\"}\n"
                               "  - {name: t, foreach: {items: [x, y]}, "
                               "run: \"cmd $TROUPE_TASKS\"}\n"
                               "  - {name: d, foreach: {items: [x, x, x]}, run: cmd}\n";
    struct run r = {.dir = files_new()};
    expect(&r, yaml, false, "d", 1, "a:0,1, n:0,1, t:0,1, d:0,1!,");
    char **parts = g_strsplit(yaml, "[x, y]", -1);
    g_autofree char *longer = g_strjoinv("[w, x, y]", parts);
    expect(&r, longer, true, NULL, 0, "a:0, n:0,1,2, t:0,1,2, d:1,2,");
    g_strfreev(parts);
    files_free(r.dir);
}

TEST("each asks for its own counterpart")
{
    static const char yaml[] = "troupe: 1\nstages:\n"
                               "  - {name: a, tasks: 3, run: cmd, "
                               "outputs: [\"$TROUPE_TASK.a\"]}\n"
                               "  - {name: b, tasks: 3, run: cmd, "
                               "after: [{stage: a, each: true}]}\n"
                               "  - {name: c, run: cmd, after: [b]}\n";
    struct run r = {.dir = files_new()};
    files_put(r.dir, "0.a", "0");
    files_put(r.dir, "1.a", "1");
    files_put(r.dir, "2.a", "2");
    expect(&r, yaml, false, NULL, 0, "a:0,1,2, b:0,1,2, c:0,");
    files_put(r.dir, "1.a", "another");
    expect(&r, yaml, true, NULL, 0, "a:1, b:1, c:0,");
    expect(&r, yaml, true, NULL, 0, "");
    files_put(r.dir, "2.a", "another");
    r.until = "a";
    expect(&r, yaml, true, NULL, 0, "a:2,");
    r.until = NULL;
    expect(&r, yaml, true, NULL, 0, "b:2, c:0,");
    expect(&r, yaml, true, NULL, 0, "");
    r.until = r.force = "a";
    expect(&r, yaml, true, NULL, 0, "a:0,1,2,");
    r.until = r.force = NULL;
    expect(&r, yaml, true, NULL, 0, "b:0,1,2, c:0,");
    files_free(r.dir);
}

/* A chain over files, as over samples of a table: one that is done again costs its own
 * counterparts. */
TEST("each over files, tables and lists")
{
    static const char yaml[] = "troupe: 1\nstages:\n"
                               "  - {name: a, foreach: {files: \"in/*\"}, run: cmd, "
                               "outputs: [\"${task}.a\"]}\n"
                               "  - {name: b, foreach: {table: t.tsv}, "
                               "run: \"cmd $TROUPE_COL_v\", "
                               "after: [{stage: a, each: true}]}\n"
                               "  - {name: c, foreach: {lines: l}, run: cmd, after: "
                               "[{stage: b, each: true}]}\n"
                               "  - {name: d, run: cmd, after: [c]}\n";
    struct run r = {.dir = files_new()};
    for (int i = 0; i < 3; i++) {
        char *in = g_strdup_printf("in/%d", i), *out = g_strdup_printf("%d.a", i);
        files_put(r.dir, in, "x");
        files_put(r.dir, out, "x");
        g_free(in);
        g_free(out);
    }
    files_put(r.dir, "t.tsv", "n\tv\nx\t1\ny\t2\nz\t3\n");
    files_put(r.dir, "l", "u\nv\nw\n");
    expect(&r, yaml, false, NULL, 0, "a:0,1,2, b:0,1,2, c:0,1,2, d:0,");
    expect(&r, yaml, true, NULL, 0, "");
    files_put(r.dir, "1.a", "changed");
    expect(&r, yaml, true, NULL, 0, "a:1, b:1, c:1, d:0,");
    files_put(r.dir, "t.tsv", "n\tv\nx\t1\ny\t2\nz\t4\n"); /* a row */
    expect(&r, yaml, true, NULL, 0, "b:2, c:2, d:0,");
    files_put(r.dir, "t.tsv", "n\tw\tv\nz\ta\t4\nx\tb\t1\ny\tc\t2\n"); /* a column */
    expect(&r, yaml, true, NULL, 0, "");
    static const char keyed[] = "troupe: 1\nstages:\n"
                                "  - {name: k, foreach: {table: t.tsv, key: n}, "
                                "run: \"cmd $TROUPE_COL_v\"}\n";
    expect(&r, keyed, false, NULL, 0, "k:0,1,2,");
    files_put(r.dir, "t.tsv", "w\tn\tv\na\tx\t1\na\tz\t4\na\ty\t3\n");
    expect(&r, keyed, true, NULL, 0, "k:2,");
    files_put(r.dir, "in/3", "x");
    files_put(r.dir, "3.a", "x");
    expect(&r, yaml, true, "b", 0, "a:3, b:0!,"); /* no longer as many */
    files_free(r.dir);
}

/* An item that is gone is in what was made of all. */
TEST("what waits for all runs again when an item is gone")
{
    static const char yaml[] = "troupe: 1\nstages:\n"
                               "  - {name: a, foreach: {lines: l}, run: cmd}\n"
                               "  - {name: b, foreach: {lines: l}, run: cmd, after: "
                               "[{stage: a, each: true}]}\n"
                               "  - {name: c, run: cmd, after: [b]}\n"
                               "  - {name: d, run: cmd, after: [c]}\n"
                               "  - {name: e, run: cmd}\n";
    struct run r = {.dir = files_new()};
    files_put(r.dir, "l", "x\ny\nx\nz\n");
    expect(&r, yaml, false, NULL, 0, "a:0,1,2,3, b:0,1,2,3, c:0, d:0, e:0,");
    expect(&r, yaml, true, NULL, 0, "");
    files_put(r.dir, "l", "x\nx\nz\n");
    expect(&r, yaml, true, "c", 0, "c:0!,");
    expect(&r, yaml, true, NULL, 0, "c:0, d:0,"); /* it is not forgotten */
    expect(&r, yaml, true, NULL, 0, "");
    files_put(r.dir, "l", "x\nx\nw\n"); /* one for another */
    expect(&r, yaml, true, NULL, 0, "a:2, b:2, c:0, d:0,");
    expect(&r, yaml, true, NULL, 0, "");
    files_put(r.dir, "l", "");
    expect(&r, yaml, true, NULL, 0, "c:0, d:0,");
    r.until = "b";
    files_put(r.dir, "l", "v\nw\n");
    expect(&r, yaml, true, NULL, 0, "a:0,1, b:0,1,");
    files_put(r.dir, "l", "v\n");
    expect(&r, yaml, true, NULL, 0, "");
    r.until = NULL;
    expect(&r, yaml, true, NULL, 0, "c:0, d:0,");
    files_free(r.dir);
}

TEST("new files are new tasks")
{
    static const char yaml[] = "troupe: 1\nstages:\n"
                               "  - {name: a, run: cmd}\n"
                               "  - {name: b, run: cmd, after: [a], "
                               "foreach: {files: \"*.b\"}}\n";
    struct run r = {.dir = files_new()};
    files_put(r.dir, "1.b", "");
    expect(&r, yaml, false, NULL, 0, "a:0, b:0,");
    files_put(r.dir, "0.b", "");
    expect(&r, yaml, true, NULL, 0, "b:0,");
    expect(&r, yaml, true, NULL, 0, "");
    files_free(r.dir);
}

TEST("a torn last line costs one task")
{
    struct run r = done_run();
    g_autofree char *path =
        g_build_filename(r.dir, "troupe-runs/r/state/done.jsonl", NULL);
    struct stat st;
    g_assert_cmpint(stat(path, &st), ==, 0);
    g_assert_cmpint(truncate(path, st.st_size - 5), ==, 0);
    expect(&r, three, true, NULL, 0, "c:0,");
    expect(&r, three, true, NULL, 0, "");
    files_free(r.dir);
}

TEST("outputs may have any name")
{
    static const char yaml[] = "troupe: 1\nstages:\n"
                               "  - {name: a, run: cmd, foreach: {lines: l}, "
                               "outputs: [\"${TROUPE_ITEM}.o\"]}\n";
    static const char *const names[] = {"a b",  "q'\"",     "p%41",
                                        "[x]*", "\303\244", "\377"};
    struct run r = {.dir = files_new()};
    GString *list = g_string_new("");
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *file = g_strconcat(names[i], ".o", NULL);
        files_put(r.dir, file, "x");
        g_string_append_printf(list, "%s\n", names[i]);
    }
    files_put(r.dir, "l", list->str);
    expect(&r, yaml, false, NULL, 0, "a:0,1,2,3,4,5,");
    expect(&r, yaml, true, NULL, 0, "");
    files_put(r.dir, "[x]*.o", "changed");
    files_put(r.dir, "\377.o", "changed");
    expect(&r, yaml, true, NULL, 0, "a:3,5,");
    g_string_free(list, TRUE);
    files_free(r.dir);
}

TEST("a hundred thousand tasks are read quickly")
{
    static const char yaml[] = "troupe: 1\nstages:\n"
                               "  - {name: a, run: cmd, tasks: 100000}\n";
    struct run r = {.dir = files_new()};
    trp_error err = {0};
    g_assert_cmpint(run_open(&r, yaml, false, &err), ==, 0);
    for (uint32_t t = 0; t < 100000; t++)
        if (t != 777)
            run_task_ends(&r, 0, t, TRP_END_SUCCESS, 0, 0);
    run_close(&r);
    gint64 begin = g_get_monotonic_time();
    expect(&r, yaml, true, NULL, 0, "a:777,");
    gint64 ms = (g_get_monotonic_time() - begin) / 1000;
    g_test_message("100,000 records read in %" G_GINT64_FORMAT " ms", ms);
    files_free(r.dir);
}

TEST("contents count when they are asked for and known")
{
    contents();
}

TEST("force runs a stage and all below it again")
{
    force();
}
