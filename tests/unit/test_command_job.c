/* Pipelines as jobs: environment, command lines, outputs, what the engine is told, and
 * the words for what failed. */
#include <sys/stat.h>

#include "driver/command_env.h"
#include "driver/output_files.h"
#include "driver_run.h"
#include "unit.h"

/* Asserts that the lists are the same; `wanted` ends in NULL. */
static void same(const char *const *got, size_t n, const char *const *wanted)
{
    for (size_t i = 0; i < n || wanted[i]; i++)
        g_assert_cmpstr(i < n ? got[i] : NULL, ==, wanted[i]);
}

static void same_strings(struct trp_strings *s, const char *const *wanted)
{
    same((const char *const *)s->v, s->n, wanted);
    trp_strings_free(s);
}

/* ---- environment ---- */

TEST("tasks see troupe's environment without launchers'")
{
    const char *const from[] = {
        "PATH=/bin",
        "OMPI_COMM_WORLD_RANK=3",
        "OMPI_MCA_btl=tcp",
        "OMPI_ALLOW_RUN_AS_ROOT=1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
        "PMIX_RANK=0",
        "PMI_FD=4",
        "PMIXED=stays",
        "SLURM_JOB_ID=17",
        "SLURM_JOB_NAME=n",
        "SLURM_SUBMIT_DIR=/d",
        "SLURM_CONF=/c",
        "SLURM_JOB_IDX=1",
        "SLURM_NTASKS=4",
        "SLURM_OVERLAP=0",
        "SLURMD_NODENAME=stays",
        "TROUPE_TASK=outer",
        "TROUPE_RESOURCE_gpu=1",
        "TROUPE_PARAM_x=outer",
        "TROUPE_CONTROL=secret",
        "TROUPE_OPT_task_cpus=2",
        "TROUPE_SITE=/s.yaml",
        "CUDA_VISIBLE_DEVICES=0,1",
        "NL=a\nb",
        "EMPTY=",
        "no equals sign",
    };
    struct trp_strings s = {0};
    char *list[G_N_ELEMENTS(from)];
    for (size_t i = 0; i < G_N_ELEMENTS(from); i++)
        list[i] = g_strdup(from[i]);
    g_assert_cmpint(trp_environ_clean(list, G_N_ELEMENTS(from), &s), ==, 0);
    same_strings(&s,
                 (const char *const[]){
                     "PATH=/bin", "OMPI_ALLOW_RUN_AS_ROOT=1",
                     "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "PMIXED=stays",
                     "SLURM_JOB_ID=17", "SLURM_JOB_NAME=n", "SLURM_SUBMIT_DIR=/d",
                     "SLURM_CONF=/c", "SLURMD_NODENAME=stays", "TROUPE_OPT_task_cpus=2",
                     "TROUPE_SITE=/s.yaml", "CUDA_VISIBLE_DEVICES=0,1", "NL=a\nb",
                     "EMPTY=", "SLURM_OVERLAP=1", "PRTE_MCA_ras=^slurm", NULL});
    for (size_t i = 0; i < G_N_ELEMENTS(from); i++)
        g_free(list[i]);
}

TEST("outside Slurm nothing is said of overlap")
{
    char a[] = "SLURM_CONF=/c", b[] = "SLURM_OVERLAP=1", *list[] = {a, b};
    struct trp_strings s = {0};
    g_assert_cmpint(trp_environ_clean(list, 2, &s), ==, 0);
    same_strings(&s, (const char *const[]){"SLURM_CONF=/c", NULL});
}

TEST("an mpirun that was told of its nodes keeps that")
{
    char a[] = "SLURM_JOB_ID=7", b[] = "PRTE_MCA_ras=hosts", *list[] = {a, b};
    struct trp_strings s = {0};
    g_assert_cmpint(trp_environ_clean(list, 2, &s), ==, 0);
    same_strings(&s, (const char *const[]){"SLURM_JOB_ID=7", "PRTE_MCA_ras=hosts",
                                           "SLURM_OVERLAP=1", NULL});
}

TEST("env and params come after it")
{
    trp_pipeline *p = pipeline_of("troupe: 1\nparams: {k: 007, m: \"a b\"}\nstages:\n"
                                  "  - name: s\n    run: x\n"
                                  "    env: {B: yes, OMPI_X: mine, N: \"q'\\n\"}\n");
    struct trp_strings base = {0}, s = {0};
    trp_strings_add(&base, "A=1");
    trp_strings_add(&base, "B=old");
    trp_strings_add(&base, "BB=2");
    g_assert_cmpint(trp_stage_environ(&base, p, &p->stages[0], &s), ==, 0);
    same_strings(&s, (const char *const[]){"A=1", "BB=2", "B=yes", "OMPI_X=mine",
                                           "N=q'\n", "TROUPE_PARAM_k=007",
                                           "TROUPE_PARAM_m=a b", NULL});
    trp_strings_free(&base);
    trp_pipeline_free(p);
}

/* The pairs for a stage whose tasks ask for `task` ("gpu: 1") under `site`. */
static void resources(const trp_site *site, const char *task, const char *const *wanted)
{
    g_autofree char *yaml = g_strdup_printf(
        "troupe: 1\nprofiles: {p: {executor: {cores: 1, gpu: 1, a100: 1}, task: "
        "{cpus: 1%s}}}\nstages: [{name: s, run: x, profile: p}]\n",
        task);
    trp_pipeline *p = pipeline_of(yaml);
    trp_options *o;
    trp_profiles *profiles;
    trp_profile_id id;
    struct trp_strings s = {0};
    g_assert_cmpint(trp_options_new(&o, NULL), ==, 0);
    g_assert_cmpint(trp_pipeline_profiles(p, o, NULL, &profiles, &id, NULL), ==, 0);
    g_assert_cmpint(trp_stage_resource_env(site, trp_profiles_get(profiles, id), &s),
                    ==, 0);
    same_strings(&s, wanted);
    trp_profiles_free(profiles);
    trp_options_free(o);
    trp_pipeline_free(p);
}

static void resource_env(void)
{
    char gpu[] = "gpu", a100[] = "a100", m[] = "matlab", var[] = "CUDA_VISIBLE_DEVICES";
    char file[] = "";
    struct trp_site_resource v[3] = {0};
    v[0].name = gpu;
    v[1].name = a100;
    v[0].env = v[1].env = var;
    v[2].name = m;
    trp_site site = {.file = file, .resources = v, .nresources = 3};
    resources(NULL, "", (const char *const[]){"gpu", var, NULL});
    resources(NULL, ", gpu: 0.5", (const char *const[]){"gpu", var, NULL});
    resources(&site, "", (const char *const[]){"a100", var, NULL});
    resources(&site, ", gpu: 1", (const char *const[]){"gpu", var, NULL});
    resources(&site, ", a100: 1", (const char *const[]){"a100", var, NULL});
    resources(&site, ", gpu: 1, a100: 1",
              (const char *const[]){"gpu", var, "a100", var, NULL});
}

/* ---- command lines ---- */

static void argv_of(const char *stage, const char *const *wanted)
{
    g_autofree char *yaml =
        g_strconcat("troupe: 1\nstages:\n  - name: s\n", stage, NULL);
    trp_pipeline *p = pipeline_of(yaml);
    struct trp_strings s = {0};
    trp_error err = {0};
    g_assert_cmpint(trp_stage_argv(p, &p->stages[0], NULL, &s, &err), ==, 0);
    same_strings(&s, wanted);
    trp_pipeline_free(p);
}

TEST("run, argv, prelude and wrap make the command line")
{
    argv_of("    run: echo \"$X\" 'y'\n",
            (const char *const[]){"/bin/sh", "-e", "-c", "echo \"$X\" 'y'", NULL});
    argv_of("    argv: [./a b, \"\", \"\\n\", 007]\n",
            (const char *const[]){"./a b", "", "\n", "007", NULL});
    argv_of("    run: x\n    prelude: module load y\n",
            (const char *const[]){"/bin/sh", "-e", "-c", "module load y\nx", NULL});
    argv_of("    argv: [a, b]\n    wrap: [c, exec]\n",
            (const char *const[]){"c", "exec", "a", "b", NULL});
    argv_of("    run: x\n    wrap: [apptainer, exec, i.sif]\n",
            (const char *const[]){"apptainer", "exec", "i.sif", "/bin/sh", "-e", "-c",
                                  "x", NULL});
}

TEST("a command that Linux would refuse is told")
{
    g_autofree char *big = g_strnfill(TRP_ARGUMENT_MAX + 1, 'x');
    char *yaml =
        g_strconcat("troupe: 1\nstages:\n  - name: s\n    run: ", big, "\n", NULL);
    struct run r = {.dir = files_new()};
    trp_error err = {0};
    g_assert_cmpint(run_open(&r, yaml, false, &err), ==, TRP_EINVAL);
    g_assert_nonnull(strstr(err.text, "p.yaml:3:11: stage s: its command has a text"));
    run_close(&r);
    g_free(yaml);
    files_free(r.dir);
}

/* ---- outputs ---- */

static void expands(const char *pattern, const char *item, const char *wanted)
{
    bool none;
    struct trp_task_values v = {7, item, item ? strlen(item) : 0};
    char *got = trp_output_expand(pattern, &v, &none);
    g_assert_cmpstr(got, ==, wanted);
    g_assert_cmpint(none, ==, wanted == NULL);
    free(got);
}

TEST("outputs are expanded as a shell would, literally")
{
    expands("p/${task}", NULL, "p/7");
    expands("p/${task}x", NULL, "p/7x");
    expands("${task}.${task}", NULL, "7.7");
    expands("p/$TROUPE_TASK", NULL, "p/$TROUPE_TASK");
    expands("p/${}{task}", NULL, "p/${task}");
    expands("${item}.out", "a b", "a b.out");
    expands("${item}/*", "a[1]*", "a\\[1\\]\\*/*");
    expands("${item}", "q'\"\n\303\244", "q'\"\n\303\244");
    expands("${item}", "${task}", "${task}");
    expands("${dir}/${stem}.bam", "in/a.fq.gz", "in/a.fq.bam");
    expands("${stem}.${ext}", "a", "a.");
    expands("out/${ext}", "a", NULL);
    expands("out/${ext}/x", "a", NULL);
    expands("out/${col.s}", "a", NULL);
    expands("out/${item}", NULL, NULL);
    expands("out/${item}", "", NULL);
    g_assert_true(trp_output_of_task("a/${task}"));
    g_assert_true(trp_output_of_task("a/${item}"));
    g_assert_false(trp_output_of_task("a/${}{task}"));
    g_assert_false(trp_output_of_task("a/*"));
}

TEST("leftovers go before the next attempt")
{
    static const char yaml[] =
        "troupe: 1\nstages:\n  - {name: s, run: x, foreach: {items: [a, b]}, "
        "outputs: [\"o/$TROUPE_ITEM.*\", \"t$TROUPE_TASK\", \"all/*\"]}\n";
    struct run r = {.dir = files_new()};
    struct trp_launch l = {0};
    trp_error err = {0};
    g_assert_cmpint(run_open(&r, yaml, false, &err), ==, 0);
    const struct trp_work *w = trp_command_job_work(r.job);
    w->launch(w->context, 0, 0, 0, &l);
    g_assert_cmpint(l.has_item, ==, 1);
    g_assert_cmpmem(l.extra, l.extra_size, "a", 1);
    w->launch(w->context, 0, 1, 0, &l);
    files_put(r.dir, "o/a.1", "");
    files_put(r.dir, "o/b.1", "");
    files_put(r.dir, "t1", "");
    files_put(r.dir, "all/x", "");
    run_task_ends(&r, 0, 1, TRP_END_EXIT, 1, 1);
    w->launch(w->context, 0, 1, 1, &l);
    g_assert_true(files_there(r.dir, "o/a.1"));
    g_assert_false(files_there(r.dir, "o/b.1"));
    g_assert_false(files_there(r.dir, "t1"));
    g_assert_true(files_there(r.dir, "all/x"));
    run_close(&r);
    files_free(r.dir);
}

TEST("that a process was killed for memory, perhaps of a task that ended well, is told")
{
    struct run r = {.dir = files_new()};
    trp_error err = {0};
    const struct trp_action verdict = {
        .task_end = {.task = 3, .number = 1}
    };
    const struct trp_end end = {.limit_mib = 64};
    g_assert_cmpint(
        run_open(&r, "troupe: 1\nstages: [{name: s, run: x, tasks: 4}]\n", false, &err),
        ==, 0);
    const struct trp_work *w = trp_command_job_work(r.job);
    w->task_ended(w->context, 0, &verdict, &end);
    g_assert_true(g_str_has_prefix(
        r.said, "warning: stage s: task 3, attempt 1 ended well while a process"));
    run_close(&r);
    files_free(r.dir);
}

/* ---- the job ---- */

/* It wants a list file. */
static const char graph[] = "troupe: 1\n"
                            "params: {k: v}\n"
                            "profiles: {p: {executor: {cores: 2}, task: {cpus: 2}}}\n"
                            "stages:\n"
                            "  - name: late\n"
                            "    after: [early, {stage: list, each: true}]\n"
                            "    tasks: 2\n"
                            "    run: x\n"
                            "    retries: {max_failures: 2, not_on: [3, 4]}\n"
                            "    tolerate: 1%\n"
                            "    max_running: 5\n"
                            "    executors: {min: 1, max: 3}\n"
                            "  - name: early\n"
                            "    profile: p\n"
                            "    mpi: {ranks: 4}\n"
                            "    run: y\n"
                            "    timeout: 90\n"
                            "    cwd: sub\n"
                            "  - name: list\n"
                            "    foreach: {lines: l}\n"
                            "    prefer: [h1, h2/3]\n"
                            "    argv: [z]\n";

TEST("the engine is told what the file says")
{
    struct run r = {.dir = files_new()};
    trp_error err = {0};
    files_put(r.dir, "l", "a\nb\n");
    g_assert_cmpint(run_open(&r, graph, false, &err), ==, 0);
    const struct trp_job_spec *s = trp_command_job_spec(r.job);
    g_assert_cmpuint(s->nstages, ==, 3);
    g_assert_cmpstr(s->stages[0].name, ==, "early");
    g_assert_cmpint(s->stages[0].kind, ==, TRP_STAGE_GANG);
    g_assert_cmpuint(s->stages[0].ranks, ==, 4);
    g_assert_true(s->stages[0].tasks_known);
    g_assert_cmpuint(s->stages[0].ntasks, ==, 1);
    g_assert_cmpuint(s->stages[0].profile.n, ==, 1);
    g_assert_cmpstr(s->stages[1].name, ==, "list");
    g_assert_false(s->stages[1].tasks_known);
    const struct trp_stage_spec *late = &s->stages[2];
    g_assert_cmpstr(late->name, ==, "late");
    g_assert_cmpuint(late->nparents, ==, 2);
    g_assert_cmpuint(late->parents[0].stage, ==, 0);
    g_assert_false(late->parents[0].each);
    g_assert_cmpuint(late->parents[1].stage, ==, 1);
    g_assert_true(late->parents[1].each);
    g_assert_cmpuint(late->max_failures, ==, 2);
    g_assert_cmpuint(late->nnot_on, ==, 2);
    g_assert_cmpint(late->not_on[1], ==, 4);
    g_assert_cmpuint(late->tolerate_ppm, ==, 10000);
    g_assert_cmpuint(late->max_running, ==, 5);
    g_assert_cmpuint(late->min_executors, ==, 1);
    g_assert_cmpuint(late->max_executors, ==, 3);
    g_assert_cmpuint(late->ntasks, ==, 2);
    run_close(&r);
    files_free(r.dir);
}

TEST("executors are told the command")
{
    char path[] = "PATH=/bin", junk[] = "OMPI_X=1", *list[] = {path, junk};
    struct run r = {.dir = files_new(), .environ = list, .nenviron = 2};
    struct trp_stage_message m;
    struct trp_command c;
    struct stat st;
    trp_error err = {0};
    files_put(r.dir, "l", "a\nb\n");
    g_assert_cmpint(run_open(&r, graph, false, &err), ==, 0);
    const struct trp_work *w = trp_command_job_work(r.job);
    g_assert_cmpint(w->stage_message(w->context, 0, &m, &err), ==, 0);
    g_assert_cmpint(m.work, ==, TRP_WORK_COMMAND);
    g_assert_cmpstr(m.name, ==, "early");
    g_assert_cmpstr(m.profile, ==, "p");
    g_assert_cmpuint(m.ntasks, ==, 1);
    g_assert_cmpuint(m.task_cpus, ==, 2);
    g_assert_cmpint(m.timeout_ns, ==, INT64_C(90000000000));
    g_assert_cmpint(trp_command_get(m.body, m.body_size, &c), ==, 0);
    same(c.argv, c.nargv, (const char *const[]){"/bin/sh", "-e", "-c", "y", NULL});
    same(c.env, c.nenv, (const char *const[]){"PATH=/bin", "TROUPE_PARAM_k=v", NULL});
    same(c.resource_env, c.nresource_env,
         (const char *const[]){"gpu", "CUDA_VISIBLE_DEVICES", NULL});
    g_autofree char *cwd = g_build_filename(r.dir, "sub", NULL);
    g_autofree char *logs = g_build_filename(r.run_dir, "logs", "early", NULL);
    g_assert_cmpstr(c.cwd, ==, cwd);
    g_assert_cmpstr(c.log_dir, ==, logs);
    g_assert_cmpint(stat(logs, &st), ==, 0);
    g_assert_cmpint(st.st_mode & 0777, ==, 0700);
    g_assert_cmpstr(c.run, ==, "r");
    g_assert_cmpstr(c.run_dir, ==, r.run_dir);
    trp_command_free(&c);
    run_close(&r);
    files_free(r.dir);
}

TEST("items and places go with the tasks")
{
    struct run r = {.dir = files_new()};
    struct trp_stage_tasks t;
    struct trp_launch l = {0};
    trp_error err = {0};
    files_put(r.dir, "l", "a\nb c\n");
    g_assert_cmpint(run_open(&r, graph, false, &err), ==, 0);
    const struct trp_work *w = trp_command_job_work(r.job);
    g_assert_cmpint(w->stage_tasks(w->context, 1, &t, &err), ==, 0);
    g_assert_cmpuint(t.ntasks, ==, 2);
    g_assert_null(t.done);
    for (uint32_t i = 0; i < 2; i++) {
        g_assert_cmpuint(t.prefer.first[i], ==, 2 * i);
        g_assert_cmpstr(t.prefer.places[2 * i].host, ==, "h1");
        g_assert_cmpuint(t.prefer.places[2 * i].executor, ==, TRP_NONE);
        g_assert_cmpstr(t.prefer.places[2 * i + 1].host, ==, "h2");
        g_assert_cmpuint(t.prefer.places[2 * i + 1].executor, ==, 3);
    }
    g_assert_cmpuint(t.prefer.first[2], ==, 4);
    w->launch(w->context, 1, 1, 0, &l);
    g_assert_cmpmem(l.extra, l.extra_size, "b c", 3);
    run_close(&r);
    files_free(r.dir);
}

TEST("failures are told with place and log")
{
    struct run r = {.dir = files_new()};
    struct trp_stage_tasks t;
    trp_error err = {0};
    files_put(r.dir, "l", "a\nb\n");
    g_assert_cmpint(run_open(&r, graph, false, &err), ==, 0);
    const struct trp_work *w = trp_command_job_work(r.job);
    g_assert_null(trp_command_job_line(r.job, 0));
    files_put(r.run_dir, "logs/early/0.3.1.err", "first\nwhat went wrong\n\n");
    run_task_ends(&r, 0, 0, TRP_END_EXIT, 37, 4);
    run_stage_ends(&r, 0, TRP_OUTCOME_FAILED, TRP_EFAILED, 0, "engine's words");
    g_autofree char *list = g_build_filename(r.dir, "l", NULL);
    g_assert_cmpint(g_unlink(list), ==, 0);
    g_assert_cmpint(w->stage_tasks(w->context, 1, &t, &err), ==, TRP_EINVAL);
    run_stage_ends(&r, 1, TRP_OUTCOME_FAILED, TRP_EFAILED, TRP_NONE, err.text);
    run_stage_ends(&r, 2, TRP_OUTCOME_FAILED, TRP_ENEVER, TRP_NONE, "no room");
    g_assert_cmpstr(trp_command_job_line(r.job, 0), ==,
                    "p.yaml:13:11: stage early: task 0 failed 4 times, last with exit "
                    "status 37; see troupe-runs/r/logs/early/0.3.*.err: what went "
                    "wrong");
    g_assert_nonnull(
        strstr(trp_command_job_line(r.job, 1),
               "p.yaml:20:22: stage list: the list file l cannot be read"));
    g_assert_cmpstr(trp_command_job_line(r.job, 2), ==,
                    "p.yaml:5:11: stage late: no room");
    g_assert_null(trp_command_job_line(r.job, 3));
    run_close(&r);
    files_free(r.dir);
}

/* driver_run.h resumes for the second time. */
TEST("a resumed run's stages are later attempts, with logs so named")
{
    struct run r = {.dir = files_new()};
    struct trp_stage_message m = {0};
    trp_error err = {0};
    files_put(r.dir, "l", "a\nb\n");
    g_assert_cmpint(run_open(&r, graph, true, &err), ==, 0);
    const struct trp_work *w = trp_command_job_work(r.job);
    g_assert_cmpint(w->stage_message(w->context, 0, &m, &err), ==, 0);
    g_assert_cmpuint(w->first_attempt, ==, 2);
    files_put(r.run_dir, "logs/early/0.s2.3.1.out", "x"); /* nothing on stderr */
    run_task_ends(&r, 0, 0, TRP_END_EXIT, 37, 4);
    run_stage_ends(&r, 0, TRP_OUTCOME_FAILED, TRP_EFAILED, 0, "engine's words");
    g_assert_nonnull(strstr(trp_command_job_line(r.job, 0),
                            "see troupe-runs/r/logs/early/0.s2.3.*.out"));
    run_close(&r);
    files_free(r.dir);
}

TEST("a chain of ten thousand stages is a job")
{
    GString *yaml = g_string_new("troupe: 1\nstages:\n");
    struct run r = {.dir = files_new()};
    trp_error err = {0};
    for (int i = 0; i < 10000; i++) {
        g_string_append_printf(yaml, "  - {name: s%d, run: x", i);
        if (i)
            g_string_append_printf(yaml, ", after: [s%d]", i - 1);
        g_string_append(yaml, "}\n");
    }
    g_assert_cmpint(run_open(&r, yaml->str, true, &err), ==, 0);
    const struct trp_job_spec *s = trp_command_job_spec(r.job);
    g_assert_cmpuint(s->nstages, ==, 10000);
    g_assert_cmpuint(s->stages[9999].parents[0].stage, ==, 9998);
    run_close(&r);
    g_string_free(yaml, TRUE);
    files_free(r.dir);
}

TEST("site variables are named once, for what is asked")
{
    resource_env();
}
