/*
 * The spawner with real commands: what they find, how their ends are told, and that
 * nothing of them is left, whatever they did.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor/spawner.h"

static char *folder; /* of this test; logs in it, scratch below it */
static const char *self_program;
static trp_spawner *spawner;
static uint32_t next_attempt;

/* ---- the world ------------------------------------------------------------------- */

static struct trp_spawner_config config_of(int64_t memory_mib, const char *cgroup)
{
    static char *scratch;
    g_free(scratch);
    scratch = g_build_filename(folder, "scratch", NULL);
    return (struct trp_spawner_config){
        .name = "7 test-run",
        .executor = 7,
        .run_name = "test-run",
        .run_dir = folder,
        .scratch = scratch,
        .memory_mib = memory_mib,
        .cgroup = cgroup,
        .last_words = {.fd = -1},
    };
}

static void open_world(int64_t memory_mib)
{
    trp_error err;
    folder = g_dir_make_tmp("troupe-spawner-XXXXXX", NULL);
    g_assert_nonnull(folder);
    struct trp_spawner_config config = config_of(memory_mib, "");
    g_assert_cmpint(trp_spawner_fork(&config, &spawner, &err), ==, TRP_OK);
}

/* What lies `depth` or more levels below `path`, one a line, sorted. */
static char *list_files(const char *path, int depth)
{
    char *out = NULL,
         *command =
             g_strdup_printf("cd '%s' && find . -mindepth %d | sort", path, depth);
    const char *argv[] = {"/bin/sh", "-c", command, NULL};
    g_spawn_sync(NULL, (char **)(uintptr_t)argv, NULL, 0, NULL, NULL, &out, NULL, NULL,
                 NULL);
    g_free(command);
    return out;
}

static void remove_folder(void)
{
    const char *argv[] = {"/bin/rm", "-rf", folder, NULL};
    g_spawn_sync(NULL, (char **)(uintptr_t)argv, NULL, 0, NULL, NULL, NULL, NULL, NULL,
                 NULL);
    g_free(folder);
}

static void close_world(void)
{
    pid_t pid = trp_spawner_pid(spawner);
    char *scratch = g_build_filename(folder, "scratch", NULL);
    trp_spawner_close(spawner);
    g_assert_cmpint(kill(pid, 0), ==, -1);
    g_assert_false(g_file_test(scratch, G_FILE_TEST_EXISTS));
    g_free(scratch);
    remove_folder();
}

struct wanted {
    const char *const *argv;
    const char *const *env, *cwd, *log_dir, *output;
    uint32_t nargv, nenv, stage, stage_attempt;
    int64_t timeout_ns, output_wait_ns;
};

static void tell_stage(const struct wanted *w)
{
    static const char *const resource_env[] = {"gpu", "CUDA_VISIBLE_DEVICES", "fpga",
                                               "FPGAS"};
    struct trp_command c = {
        .argv = w->argv,
        .nargv = w->nargv,
        .env = w->env,
        .nenv = w->nenv,
        .cwd = w->cwd ? w->cwd : folder,
        .base = folder,
        .log_dir = w->log_dir ? w->log_dir : folder,
        .resource_env = resource_env,
        .nresource_env = 4,
        .run = "test-run",
        .run_dir = folder,
        .outputs = &w->output,
        .noutputs = w->output != NULL,
        .outputs_wait_ns = w->output_wait_ns,
    };
    struct trp_buf body = {0}, message = {0};
    trp_command_put(&body, &c);
    struct trp_stage_message m = {
        .stage = {w->stage},
        .stage_attempt = w->stage_attempt,
        .work = TRP_WORK_COMMAND,
        .ntasks = 40,
        .task_cpus = 2,
        .timeout_ns = w->timeout_ns,
        .name = "solve it",
        .profile = "fat",
        .body = body.data,
        .body_size = body.size,
    };
    trp_stage_message_put(&message, &m);
    g_assert_cmpint(trp_spawner_stage(spawner, message.data, message.size), ==, TRP_OK);
    trp_buf_free(&message);
    trp_buf_free(&body);
}

static const char *const plain_env[] = {"PATH=/usr/bin:/bin", "TROUPE_RANK=rubbish",
                                        "TROUPE_RESOURCE_gpu=9",
                                        "CUDA_VISIBLE_DEVICES=9", "KEPT=yes"};

static void tell_shell(uint32_t stage, const char *text, int64_t timeout_ms)
{
    const char *argv[] = {"/bin/sh", "-c", text};
    struct wanted w = {
        .argv = argv,
        .nargv = 3,
        .env = plain_env,
        .nenv = G_N_ELEMENTS(plain_env),
        .stage = stage,
        .timeout_ns = timeout_ms * 1000000,
    };
    tell_stage(&w);
}

static trp_attempt_id start(uint32_t stage, uint32_t ranks)
{
    uint32_t n = next_attempt++;
    char number[16];
    const char *launcher[] = {"mpirun", "-np", number, "--oversubscribe", NULL};
    snprintf(number, sizeof number, "%u", ranks);
    struct trp_launch l = {
        .attempt = {(uint64_t)n << 32 | 5},
        .stage = {stage},
        .task = n,
        .number = 1,
    };
    struct trp_spawn s = {.launch = &l,
                          .ranks = ranks,
                          .gang_program = ranks ? self_program : NULL,
                          .launcher = launcher};
    g_assert_cmpint(trp_spawner_start(spawner, &s), ==, TRP_OK);
    return l.attempt;
}

static struct trp_end wait_end(void)
{
    struct trp_end end;
    for (;;) {
        struct pollfd p = {.fd = trp_spawner_fd(spawner), .events = POLLIN};
        int r = trp_spawner_next(spawner, &end);
        g_assert_cmpint(r, >=, 0);
        if (r == 1)
            return end;
        poll(&p, 1, 100);
    }
}

static struct trp_end run(const char *text)
{
    tell_shell(next_attempt, text, 0);
    trp_attempt_id id = start(next_attempt, 0);
    struct trp_end end = wait_end();
    g_assert_cmpuint(end.attempt.n, ==, id.n);
    trp_spawner_forget(spawner, (trp_stage_id){next_attempt - 1});
    return end;
}

/* Nothing has ended, and nothing does for a tenth of a second. */
static void assert_no_end(void)
{
    struct trp_end end;
    g_usleep(100000);
    g_assert_cmpint(trp_spawner_next(spawner, &end), ==, 0);
}

static char *read_log(uint32_t task, const char *suffix)
{
    char *text = NULL, *path = g_strdup_printf("%s/%u.1.%s", folder, task, suffix);
    g_file_get_contents(path, &text, NULL, NULL);
    g_free(path);
    return text;
}

static char *last_out(void)
{
    return read_log(next_attempt - 1, "out");
}

static void expect_gone(pid_t pid)
{
    while (kill(pid, 0) == 0 || errno != ESRCH)
        g_usleep(1000);
}

static pid_t wait_pid_file(const char *name)
{
    char *path = g_build_filename(folder, name, NULL), *text = NULL;
    pid_t pid = 0;
    while (pid == 0) {
        if (g_file_get_contents(path, &text, NULL, NULL) && strchr(text, '\n'))
            pid = atoi(text);
        g_free(text);
        text = NULL;
        g_usleep(1000);
    }
    g_free(path);
    return pid;
}

/* ---- ends ------------------------------------------------------------------------ */

static void test_ends(void)
{
    open_world(0);
    struct trp_end e = run("echo words; echo more >&2; cat");
    g_assert_cmpint(e.status, ==, TRP_END_SUCCESS);
    g_assert_cmpint(e.code, ==, 0);
    g_assert_cmpint(e.duration_ns, >, 0);
    g_assert_cmpint(e.peak_kib, >, 100);
    char *out = last_out(), *err = read_log(next_attempt - 1, "err");
    g_assert_cmpstr(out, ==, "words\n");
    g_assert_cmpstr(err, ==, "more\n");
    g_free(out);
    g_free(err);
    e = run("exit 37");
    g_assert_cmpint(e.status, ==, TRP_END_EXIT);
    g_assert_cmpint(e.code, ==, 37);
    e = run("/no/such/program");
    g_assert_cmpint(e.status, ==, TRP_END_EXIT);
    g_assert_cmpint(e.code, ==, 127);
    e = run("kill -SEGV $$");
    g_assert_cmpint(e.status, ==, TRP_END_SIGNAL);
    g_assert_cmpint(e.code, ==, SIGSEGV);
    e = run("kill -KILL $$");
    g_assert_cmpint(e.status, ==, TRP_END_SIGNAL);
    g_assert_cmpint(e.code, ==, SIGKILL);
    e = run("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done");
    g_assert_cmpint(e.status, ==, TRP_END_SUCCESS);
    g_assert_cmpint(e.cpu_ns, >, 1000000);
    close_world();
}

static void test_start_failures(void)
{
    open_world(0);
    const char *argv[] = {"no-such-program-of-troupe"};
    struct wanted w = {
        .argv = argv, .nargv = 1, .stage = 900, .env = plain_env, .nenv = 1};
    tell_stage(&w);
    start(900, 0);
    struct trp_end e = wait_end();
    g_assert_cmpint(e.status, ==, TRP_END_START);
    char *text = g_strndup((const char *)e.extra, e.extra_size);
    g_assert_cmpstr(text, ==,
                    "cannot run no-such-program-of-troupe: No such file or directory");
    g_free(text);
    argv[0] = "true";
    w.cwd = "/no/such/folder";
    tell_stage(&w);
    start(900, 0);
    e = wait_end();
    g_assert_cmpint(e.status, ==, TRP_END_START);
    text = g_strndup((const char *)e.extra, e.extra_size);
    g_assert_cmpstr(text, ==,
                    "cannot enter working folder /no/such/folder: No such file or "
                    "directory");
    g_free(text);
    w.cwd = NULL;
    w.log_dir = "/dev/null";
    tell_stage(&w);
    start(900, 0);
    e = wait_end();
    g_assert_cmpint(e.status, ==, TRP_END_START);
    text = g_strndup((const char *)e.extra, e.extra_size);
    g_assert_true(g_str_has_prefix(text, "cannot open log /dev/null/"));
    g_free(text);
    start(901, 0);
    e = wait_end();
    g_assert_cmpint(e.status, ==, TRP_END_START);
    w.log_dir = NULL;
    tell_stage(&w);
    start(900, 0);
    g_assert_cmpint(wait_end().status, ==, TRP_END_SUCCESS);
    close_world();
}

static void test_timeout(void)
{
    open_world(0);
    tell_shell(1, "trap '' TERM; sleep 100 & echo $! > child; sleep 100", 60);
    start(1, 0);
    struct trp_end e = wait_end();
    g_assert_cmpint(e.status, ==, TRP_END_TIMEOUT);
    g_assert_cmpint(e.duration_ns, >=, 60000000);
    g_assert_cmpint(e.duration_ns, <, INT64_C(5000000000));
    expect_gone(wait_pid_file("child"));
    close_world();
}

static void test_kill(void)
{
    open_world(0);
    tell_shell(1,
               "trap 'echo asked; exit 3' TERM; echo $$ > main; while :; do sleep "
               "0.01; done",
               0);
    trp_attempt_id id = start(1, 0);
    pid_t pid = wait_pid_file("main");
    trp_spawner_kill(spawner, id, true);
    struct trp_end e = wait_end();
    g_assert_cmpint(e.status, ==, TRP_END_KILLED);
    char *out = last_out();
    g_assert_cmpstr(out, ==, "asked\n");
    g_free(out);
    expect_gone(pid);
    tell_shell(2, "trap '' TERM; echo $$ > second; while :; do sleep 1; done", 0);
    id = start(2, 0);
    pid = wait_pid_file("second");
    trp_spawner_kill(spawner, id, false);
    e = wait_end();
    g_assert_cmpint(e.status, ==, TRP_END_KILLED);
    g_assert_cmpint(e.attempt.n, ==, id.n);
    expect_gone(pid);
    close_world();
}

/* ---- what a command finds -------------------------------------------------------- */

static void assert_has(const char *env, const char *line)
{
    char *all = g_strdup_printf("\n%s", env), *want = g_strdup_printf("\n%s\n", line);
    if (!strstr(all, want))
        g_error("wanted %s in:\n%s", line, env);
    g_free(all);
    g_free(want);
}

static void test_environment(void)
{
    open_world(0);
    tell_shell(3,
               "env | grep -v ^PWD=; tr '\\n' '|' < /proc/self/stat >&2; pwd >&2; "
               "cat /proc/self/oom_score_adj >&2",
               0);
    static const char resources[] = "gpu=0,3\nlicence=x\n";
    struct trp_launch l = {
        .attempt = {77},
        .stage = {3},
        .task = 12,
        .number = 2,
        .has_item = 1,
        .extra = (const uint8_t *)"a b\n'\"ü",
        .extra_size = 8,
        .resources = (const uint8_t *)resources,
        .resources_size = sizeof resources - 1,
    };
    struct trp_spawn s = {.launch = &l};
    g_assert_cmpint(trp_spawner_start(spawner, &s), ==, TRP_OK);
    g_assert_cmpint(wait_end().status, ==, TRP_END_SUCCESS);
    char *path = g_build_filename(folder, "12.2.out", NULL), *env = NULL;
    g_assert_true(g_file_get_contents(path, &env, NULL, NULL));
    static const char *const lines[] = {"TROUPE_TASK=12",
                                        "TROUPE_ATTEMPT=2",
                                        "TROUPE_STAGE_ATTEMPT=0",
                                        "TROUPE_TASKS=40",
                                        "TROUPE_STAGE=solve it",
                                        "TROUPE_PROFILE=fat",
                                        "TROUPE_CPUS=2",
                                        "TROUPE_EXECUTOR=7",
                                        "TROUPE_RUN=test-run",
                                        "TROUPE_ITEM=a b\n'\"ü",
                                        "TROUPE_RESOURCE_gpu=0,3",
                                        "TROUPE_RESOURCE_licence=x",
                                        "CUDA_VISIBLE_DEVICES=0,3",
                                        "FPGAS=",
                                        "KEPT=yes",
                                        "PATH=/usr/bin:/bin"};
    for (size_t i = 0; i < G_N_ELEMENTS(lines); i++)
        assert_has(env, lines[i]);
    g_assert_null(strstr(env, "rubbish"));
    g_assert_null(strstr(env, "gpu=9")); /* not "=9": the token may begin so */
    g_assert_null(strstr(env, "DEVICES=9"));
    char *run_dir = g_strdup_printf("TROUPE_RUN_DIR=%s", folder);
    assert_has(env, run_dir);
    g_free(run_dir);
    g_free(path);
    path = g_build_filename(folder, "12.2.err", NULL);
    char *err = NULL;
    g_assert_true(g_file_get_contents(path, &err, NULL, NULL));
    g_assert_nonnull(strstr(err, folder));
    g_assert_nonnull(strstr(err, "\n1000\n"));
    g_free(path);
    g_free(env);
    g_free(err);
    /* nothing asked for: no device is seen */
    g_assert_cmpint(run("test -z \"$CUDA_VISIBLE_DEVICES\" && test "
                        "-z \"${TROUPE_RESOURCE_gpu+x}${TROUPE_ITEM+x}\"")
                        .status,
                    ==, TRP_END_SUCCESS);
    close_world();
}

static void test_log_names(void)
{
    open_world(0);
    const char *argv[] = {"/bin/echo", "x"};
    struct wanted w = {.argv = argv,
                       .nargv = 2,
                       .stage = 1,
                       .stage_attempt = 2,
                       .env = plain_env,
                       .nenv = 1};
    char *logs = g_build_filename(folder, "logs", NULL);
    w.log_dir = logs;
    tell_stage(&w);
    next_attempt = 5;
    start(1, 0);
    g_assert_cmpint(wait_end().status, ==, TRP_END_SUCCESS);
    char *files = list_files(logs, 1);
    g_assert_cmpstr(files, ==, "./5.s2.1.out\n");
    g_free(files);
    g_free(logs);
    close_world();
}

static void test_large_environment(void)
{
    enum { STRINGS = 16, EACH = 65536 };
    open_world(0);
    char *strings[STRINGS + 1];
    for (int i = 0; i < STRINGS; i++) {
        char *fill = g_strnfill(EACH, 'x');
        strings[i] = g_strdup_printf("BIG_%d=%s", i, fill);
        g_free(fill);
    }
    strings[STRINGS] = g_strdup("PATH=/usr/bin:/bin");
    const char *argv[] = {"/bin/sh", "-c", "env | wc -c"};
    struct wanted w = {.argv = argv,
                       .nargv = 3,
                       .stage = 1,
                       .env = (const char *const *)strings,
                       .nenv = STRINGS + 1};
    tell_stage(&w);
    for (int i = 0; i < 3; i++) {
        start(1, 0);
        g_assert_cmpint(wait_end().status, ==, TRP_END_SUCCESS);
        char *out = last_out();
        g_assert_cmpint(atoi(out), >, STRINGS * EACH);
        g_free(out);
    }
    for (int i = 0; i <= STRINGS; i++)
        g_free(strings[i]);
    close_world();
}

/* ---- scratch --------------------------------------------------------------------- */

#define CHECK_SCRATCH                                                                  \
    "cd \"$TROUPE_SCRATCH\" && test -z \"$(ls -A)\" && test \"$(stat -c %a .)\" = "    \
    "700 "                                                                             \
    "&& "

static void test_scratch(void)
{
    static const char *const leave[] = {
        "true",
        "touch a b c",
        "true",
        "mkdir -p x/y/z && touch x/y/z/f .hidden && ln -s / root && ln -s x link",
        "mkdir -p d/e && touch d/e/f && chmod 0 d/e d && chmod 0 .",
        "true",
        "cd .. && rmdir \"$TROUPE_SCRATCH\"",
        "cd .. && rmdir \"$TROUPE_SCRATCH\" && ln -s / \"$TROUPE_SCRATCH\"",
        "cd .. && rmdir \"$TROUPE_SCRATCH\" && echo f > \"$TROUPE_SCRATCH\"",
        "i=0; while [ $i -lt 300 ]; do mkdir d && cd d && touch f; i=$((i+1)); done",
        "for i in $(seq 60); do mkdir $i; (cd $i; touch $(seq 50)); done",
        "touch a; rm a; sleep 0.05",
        "sleep 0.05; touch a; rm a",
        "true",
    };
    open_world(0);
    for (size_t i = 0; i < G_N_ELEMENTS(leave); i++) {
        char *text = g_strconcat(CHECK_SCRATCH, leave[i], NULL);
        struct trp_end e = run(text);
        g_test_message("%s", leave[i]);
        g_assert_cmpint(e.status, ==, TRP_END_SUCCESS);
        g_free(text);
        /* scratch, the spawner's root, the attempt's folder, what was left in it */
        char *root = g_build_filename(folder, "scratch", NULL);
        char *files = list_files(root, 3);
        g_assert_cmpstr(files, ==, "");
        g_free(root);
        g_free(files);
    }
    close_world();
    g_assert_true(g_file_test("/etc", G_FILE_TEST_IS_DIR));
}

/* ---- strays ---------------------------------------------------------------------- */

#define DAEMON(file, env)                                                              \
    "( setsid " env " sh -c '(setsid sh -c \"echo \\$\\$ > " file ".new; mv " file     \
    ".new " file "; while :; do sleep 1; done\" </dev/null >/dev/null "                \
    "2>&1 &)' & ); while ! test -s " file "; do sleep 0.01; done; "

static void test_daemons(void)
{
    open_world(0);
    g_assert_cmpint(run(DAEMON("one", "") "true").status, ==, TRP_END_SUCCESS);
    g_assert_cmpint(kill(wait_pid_file("one"), 0), ==, -1);
    g_assert_cmpint(run(DAEMON("two", "env -i PATH=$PATH") "exit 4").code, ==, 4);
    g_assert_cmpint(kill(wait_pid_file("two"), 0), ==, -1);
    g_assert_cmpint(run("sleep 100 & echo $! > three; kill -KILL $$").status, ==,
                    TRP_END_SIGNAL);
    g_assert_cmpint(kill(wait_pid_file("three"), 0), ==, -1);
    close_world();
}

static void test_neighbours(void)
{
    open_world(0);
    /* A daemon of an attempt that lives is left alone when another attempt ends. */
    tell_shell(500,
               DAEMON("mine", "") "while ! test -e go; do sleep 0.01; done; kill -0 "
                                  "$(cat mine)",
               0);
    trp_attempt_id first = start(500, 0);
    pid_t pid = wait_pid_file("mine");
    g_assert_cmpint(run(DAEMON("other", "") "true").status, ==, TRP_END_SUCCESS);
    g_assert_cmpint(kill(wait_pid_file("other"), 0), ==, -1);
    g_assert_cmpint(kill(pid, 0), ==, 0);
    char *go = g_build_filename(folder, "go", NULL);
    g_assert_true(g_file_set_contents(go, "", 0, NULL));
    g_free(go);
    struct trp_end e = wait_end();
    g_assert_cmpuint(e.attempt.n, ==, first.n);
    g_assert_cmpint(e.status, ==, TRP_END_SUCCESS);
    g_assert_cmpint(kill(pid, 0), ==, -1);
    close_world();
}

/* ---- the spawner's own end ------------------------------------------------------- */

/* Runs `body` in a process that has its own spawner, and waits for its end. */
static void in_parent(void (*body)(void), int words_fd, const char *cgroup,
                      int64_t memory_mib, bool watched)
{
    pid_t pid = fork();
    if (pid == 0) {
        trp_error err;
        struct trp_spawner_config config = config_of(memory_mib, cgroup);
        config.last_words.fd = words_fd;
        config.watched = watched ? getpid() : 0;
        if (trp_spawner_fork(&config, &spawner, &err) < 0)
            _exit(9);
        body();
        _exit(0);
    }
    g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
}

static void body_dies(void)
{
    tell_shell(1,
               DAEMON("daemon", "") "echo $$ > main; touch \"$TROUPE_SCRATCH/f\"; "
                                    "while :; do sleep 1; done",
               0);
    start(1, 0);
    wait_pid_file("main");
    kill(getpid(), SIGKILL);
}

static void test_parent_killed(void)
{
    folder = g_dir_make_tmp("troupe-spawner-XXXXXX", NULL);
    in_parent(body_dies, -1, "", 0, false);
    expect_gone(wait_pid_file("main"));
    expect_gone(wait_pid_file("daemon"));
    char *scratch = g_build_filename(folder, "scratch", NULL);
    while (g_file_test(scratch, G_FILE_TEST_EXISTS))
        g_usleep(1000);
    g_free(scratch);
    remove_folder();
}

/* A parent whose spawner is stopped: it neither waits for it for ever nor leaves what
 * it had started, although that left session, group and environment. */
static void body_buries(void)
{
    struct trp_spawner_fate fate;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    tell_shell(1,
               DAEMON("daemon", "") DAEMON(
                   "hidden",
                   "env -i PATH=$PATH") "echo $$ > main; touch \"$TROUPE_SCRATCH/f\"; "
                                        "while :; do sleep 1; done",
               0);
    start(1, 0);
    wait_pid_file("main");
    wait_pid_file("daemon");
    wait_pid_file("hidden");
    kill(trp_spawner_pid(spawner), SIGSTOP);
    char *many = g_malloc0(1 << 20);
    int r = trp_spawner_stage(spawner, many, 1 << 20);
    uint32_t left = trp_spawner_bury(spawner, true, &fate);
    char *told = g_strdup_printf("%d %u %d %s", r, left, fate.hangs, fate.text);
    char *file = g_build_filename(folder, "told", NULL);
    g_file_set_contents(file, told, -1, NULL);
}

static void test_buried(void)
{
    folder = g_dir_make_tmp("troupe-spawner-XXXXXX", NULL);
    int64_t begin = g_get_monotonic_time();
    in_parent(body_buries, -1, "", 0, false);
    int64_t took = g_get_monotonic_time() - begin;
    g_assert_cmpint(took, >, 2900000);
    char *told = NULL, *file = g_build_filename(folder, "told", NULL);
    char *want = g_strdup_printf("%d 0 1 was stopped", TRP_ESYSTEM);
    g_assert_true(g_file_get_contents(file, &told, NULL, NULL));
    g_assert_cmpstr(told, ==, want);
    g_free(told);
    g_free(want);
    g_free(file);
    expect_gone(wait_pid_file("main"));
    expect_gone(wait_pid_file("daemon"));
    expect_gone(wait_pid_file("hidden"));
    char *scratch = g_build_filename(folder, "scratch", NULL);
    g_assert_false(g_file_test(scratch, G_FILE_TEST_EXISTS));
    g_free(scratch);
    remove_folder();
}

static void body_crashes(void)
{
    struct trp_last_words w = {.said = true,
                               .reason = TRP_LOSS_CRASHED,
                               .has_culprit = true,
                               .culprit = {99},
                               .signal = SIGSEGV};
    trp_spawner_last_words(spawner, &w);
    w.signal = SIGABRT; /* the first words count */
    trp_spawner_last_words(spawner, &w);
    kill(getpid(), SIGKILL);
}

/* Whose key is zeros. */
static const struct trp_last_words_way way;

static void assert_words(int fd, const struct trp_last_words *want)
{
    uint8_t expected[256], got[256];
    size_t n = trp_last_words_frame(&way, want, expected, sizeof expected);
    ssize_t m = 0;
    for (ssize_t r = 1; r > 0 && m<(ssize_t)sizeof got; m += r> 0 ? r : 0)
        r = read(fd, got + m, sizeof got - (size_t)m);
    g_assert_cmpmem(got, (size_t)m, expected, n);
}

static void test_last_words(void)
{
    int pair[2];
    folder = g_dir_make_tmp("troupe-spawner-XXXXXX", NULL);
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), ==, 0);
    in_parent(body_crashes, pair[1], "", 0, false);
    close(pair[1]);
    struct trp_last_words want = {.said = true,
                                  .reason = TRP_LOSS_CRASHED,
                                  .has_culprit = true,
                                  .culprit = {99},
                                  .signal = SIGSEGV};
    assert_words(pair[0], &want);
    close(pair[0]);
    remove_folder();
}

/* ---- memory ---------------------------------------------------------------------- */

static const char eat[] = "x=$(head -c 300000000 /dev/zero | tr '\\0' x); sleep 1000";

static void test_memory_sampled(void)
{
    open_world(100);
    tell_shell(1, "echo $$ > bystander; sleep 1000", 0);
    trp_attempt_id other = start(1, 0);
    pid_t pid = wait_pid_file("bystander");
    struct trp_end e = run(eat);
    g_assert_cmpint(e.status, ==, TRP_END_MEMORY);
    g_assert_cmpint(e.limit_mib, ==, 100);
    g_assert_cmpint(e.peak_kib, >, 100 * 1024);
    g_assert_cmpint(kill(pid, 0), ==, 0);
    trp_spawner_kill(spawner, other, false);
    g_assert_cmpint(wait_end().status, ==, TRP_END_KILLED);
    close_world();
}

static void body_eats(void)
{
    enum { SIZE = 300 << 20 };
    trp_spawner_function(spawner, (trp_attempt_id){41}, 1, true); /* another thread's */
    trp_spawner_function(spawner, (trp_attempt_id){42}, gettid(), true);
    char *p =
        mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; p != MAP_FAILED && i < SIZE; i += 4096) {
        p[i] = 1;
        if (i % (1 << 20) == 0)
            g_usleep(2500); /* so that it is seen growing */
    }
    for (;;)
        pause();
}

static void test_function_memory(void)
{
    int pair[2];
    uint8_t got[256];
    folder = g_dir_make_tmp("troupe-spawner-XXXXXX", NULL);
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), ==, 0);
    in_parent(body_eats, pair[1], "", 150, true);
    close(pair[1]);
    ssize_t m = read(pair[0], got, sizeof got);
    g_assert_cmpint(m, >, 0);
    /* The peak is what it happened to be: the frame of some peak must match. */
    bool found = false;
    for (int64_t peak = 150; peak <= 400 && !found; peak++) {
        uint8_t want[256];
        struct trp_last_words w = {.said = true,
                                   .reason = TRP_LOSS_MEMORY,
                                   .has_culprit = true,
                                   .culprit = {42},
                                   .limit_mib = 150,
                                   .peak_mib = peak};
        size_t n = trp_last_words_frame(&way, &w, want, sizeof want);
        found = n == (size_t)m && memcmp(want, got, n) == 0;
    }
    g_assert_true(found);
    close(pair[0]);
    remove_folder();
}

static void body_maps(void)
{
    enum { SIZE = 300 << 20 };
    g_autofree char *file = g_build_filename(folder, "mapped", NULL);
    g_autofree char *lived = g_build_filename(folder, "lived", NULL);
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const volatile char *p = fd >= 0 && ftruncate(fd, SIZE) == 0
                                 ? mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0)
                                 : MAP_FAILED;
    trp_spawner_function(spawner, (trp_attempt_id){42}, gettid(), true);
    for (size_t i = 0; p != MAP_FAILED && i < SIZE; i += 4096)
        (void)p[i];
    g_usleep(1000000); /* it is looked at five times */
    if (p != MAP_FAILED)
        g_file_set_contents(lived, "", 0, NULL);
}

static void test_mapped_files_are_no_memory(void)
{
    folder = g_dir_make_tmp("troupe-spawner-XXXXXX", NULL);
    in_parent(body_maps, -1, "", 150, true);
    g_autofree char *lived = g_build_filename(folder, "lived", NULL);
    g_assert_true(g_file_test(lived, G_FILE_TEST_EXISTS));
    remove_folder();
}

static void write_number(const char *dir, const char *file, const char *text)
{
    char *path = g_build_filename(dir, file, NULL);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t n = write(fd, text, strlen(text));
        (void)n; /* the test sees what came of it */
        close(fd);
    }
    g_free(path);
}

static const char *cgroup_dir;

/* `own`: commands can have groups in it. */
static void body_in_cgroup(bool own)
{
    static const char hidden[] = /* by a pipe, which ends well */
        "head -c 300000000 /dev/zero | tr '\\0' x | sh -c 'x=$(cat)' | cat";
    tell_shell(1, "sleep 60", 0);
    trp_attempt_id other = start(1, 0);
    struct trp_end e = run(eat);
    if (e.status != TRP_END_MEMORY || e.limit_mib != 64 || e.peak_kib < 60000)
        _exit(1);
    e = run("sh -c \"x=\\$(head -c 300000000 /dev/zero | tr '\\\\0' x)\"; exit $?");
    if (e.status != TRP_END_MEMORY)
        _exit(2);
    e = run("kill -KILL $$");
    if (e.status != TRP_END_SIGNAL)
        _exit(3);
    e = run(hidden); /* unclear while another shares its counter */
    if (e.status != (own ? TRP_END_MEMORY : TRP_END_SUCCESS) || e.limit_mib != 64)
        _exit(5);
    e = run("true");
    if (e.status != TRP_END_SUCCESS || e.limit_mib != 0)
        _exit(6);
    trp_spawner_kill(spawner, other, false);
    e = wait_end();
    if (e.status != TRP_END_KILLED)
        _exit(4);
    if (run(hidden).status != TRP_END_MEMORY)
        _exit(7);
    trp_spawner_close(spawner);
}

static void in_cgroup(bool own)
{
    char *dir = g_strdup_printf("/sys/fs/cgroup/memory/troupe-test-%d", getpid());
    if (g_mkdir(dir, 0700) != 0) {
        g_test_skip("no memory cgroup (v1) can be made here");
        g_free(dir);
        return;
    }
    cgroup_dir = dir;
    write_number(dir, "memory.limit_in_bytes", "67108864");
    write_number(dir, "memory.memsw.limit_in_bytes", "67108864");
    folder = g_dir_make_tmp("troupe-spawner-XXXXXX", NULL);
    pid_t pid = fork();
    if (pid == 0) {
        trp_error err;
        struct trp_spawner_config config = config_of(64, cgroup_dir);
        config.own_cgroup = own;
        write_number(cgroup_dir, "cgroup.procs", "0");
        if (trp_spawner_fork(&config, &spawner, &err) < 0)
            _exit(9);
        body_in_cgroup(own);
        _exit(0);
    }
    int status = 0;
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_cmpint(WEXITSTATUS(status), ==, 0);
    for (int i = 0; i < 1000 && g_rmdir(dir) != 0; i++)
        g_usleep(2000);
    g_assert_false(g_file_test(dir, G_FILE_TEST_EXISTS));
    g_free(dir);
    remove_folder();
}

static void test_memory_cgroup(void)
{
    in_cgroup(false);
    in_cgroup(true);
}

/* ---- queue ahead ----------------------------------------------------------------- */

static void queue_up(uint64_t attempt, uint32_t seen, bool queued,
                     const char *resources)
{
    struct trp_launch l = {
        .attempt = {attempt},
        .stage = {1},
        .task = (uint32_t)attempt,
        .number = 1,
        .queued = queued,
        .seen = seen,
        .has_item = 1,
        .extra = (const uint8_t *)"item",
        .extra_size = 4,
        .resources = (const uint8_t *)resources,
        .resources_size = resources ? (uint32_t)strlen(resources) : 0,
    };
    struct trp_spawn s = {.launch = &l};
    g_assert_cmpint(trp_spawner_start(spawner, &s), ==, TRP_OK);
}

static void expect_end(uint64_t attempt, enum trp_end_status status)
{
    struct trp_end e = wait_end();
    g_assert_cmpuint(e.attempt.n, ==, attempt);
    g_assert_cmpint(e.status, ==, status);
}

static void test_queue(void)
{
    open_world(0);
    tell_shell(1,
               "test $TROUPE_TASK != 1 || while ! test -e go; do sleep 0.01; done; "
               "echo $TROUPE_ITEM $TROUPE_RESOURCE_gpu",
               0);
    queue_up(1, 0, false, "gpu=4\n");
    for (uint64_t i = 2; i <= 6; i++)
        queue_up(i, 0, true, NULL);
    trp_spawner_recall(spawner, (trp_attempt_id){1}); /* runs: not given back */
    trp_spawner_recall(spawner, (trp_attempt_id){3});
    expect_end(3, TRP_END_RECALLED);
    trp_spawner_kill(spawner, (trp_attempt_id){5}, false);
    expect_end(5, TRP_END_KILLED);
    char *go = g_build_filename(folder, "go", NULL);
    g_assert_true(g_file_set_contents(go, "", 0, NULL));
    g_free(go);
    expect_end(1, TRP_END_SUCCESS);
    expect_end(2, TRP_END_SUCCESS);
    expect_end(4, TRP_END_SUCCESS);
    expect_end(6, TRP_END_SUCCESS);
    for (uint32_t i = 2; i <= 6; i += 2) {
        char *out = read_log(i, "out");
        g_assert_cmpstr(out, ==, "item 4\n");
        g_free(out);
    }
    /* Queued when only 5 of the 6 ends had been seen: the last place is free. */
    queue_up(7, 5, true, NULL);
    expect_end(7, TRP_END_SUCCESS);
    char *out = read_log(7, "out");
    g_assert_cmpstr(out, ==, "item 4\n");
    g_free(out);
    close_world();
}

/* ---- idle ------------------------------------------------------------------------ */

static long switches(pid_t pid)
{
    char *text = NULL, *path = g_strdup_printf("/proc/%d/status", pid);
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    const char *at = strstr(text, "\nvoluntary_ctxt_switches:");
    g_assert_nonnull(at);
    long n = strtol(at + strlen("\nvoluntary_ctxt_switches:"), NULL, 10);
    g_free(text);
    g_free(path);
    return n;
}

static void test_idle(void)
{
    open_world(100);
    g_assert_cmpint(run("true").status, ==, TRP_END_SUCCESS);
    long before;
    do { /* a last look at memory may be due */
        before = switches(trp_spawner_pid(spawner));
        g_usleep(500000);
    } while (switches(trp_spawner_pid(spawner)) != before);
    close_world();
}

/* One that has ended well, and whose output may only be late. */
static void test_killed_for_its_output(void)
{
    const char *argv[] = {"/bin/sh", "-c", "echo $$ > pid"};
    open_world(0);
    tell_stage(&(struct wanted){.argv = argv,
                                .nargv = 3,
                                .env = plain_env,
                                .nenv = G_N_ELEMENTS(plain_env),
                                .stage = 1,
                                .cwd = folder,
                                .output = "late",
                                .output_wait_ns = INT64_C(3600000000000)});
    trp_attempt_id id = start(1, 0);
    expect_gone(wait_pid_file("pid"));
    assert_no_end();
    trp_spawner_kill(spawner, id, true);
    struct trp_end e = wait_end();
    g_assert_cmpuint(e.attempt.n, ==, id.n);
    g_assert_cmpint(e.status, ==, TRP_END_KILLED);
    close_world();
}

/* ---- gangs ----------------------------------------------------------------------- */

static void tell_gang(uint32_t stage, const char *text, int64_t timeout_ms)
{
    const char *argv[] = {"/bin/sh", "-c", text};
    const char *env[] = {g_strdup_printf("PATH=%s", g_getenv("PATH")), "KEPT=yes"};
    struct wanted w = {.argv = argv,
                       .nargv = 3,
                       .env = env,
                       .nenv = 2,
                       .stage = stage,
                       .timeout_ns = timeout_ms * 1000000};
    tell_stage(&w);
    g_free((char *)(uintptr_t)env[0]);
}

static void test_gang(void)
{
    open_world(0);
    tell_gang(1, "echo $TROUPE_RANK of $TROUPE_RANKS $KEPT $TROUPE_ATTEMPT; pwd >&2",
              0);
    start(1, 2);
    uint32_t task = next_attempt - 1;
    struct trp_end e = wait_end();
    g_assert_cmpint(e.status, ==, TRP_END_SUCCESS);
    for (int rank = 0; rank < 2; rank++) {
        char *suffix = g_strdup_printf("%d.out", rank), *out = read_log(task, suffix);
        char *want = g_strdup_printf("%d of 2 yes 1\n", rank);
        g_assert_cmpstr(out, ==, want);
        g_free(suffix);
        g_free(out);
        g_free(want);
    }
    tell_gang(2, "test $TROUPE_RANK = 0 || exit 37", 0);
    start(2, 2);
    e = wait_end();
    g_assert_cmpint(e.status, ==, TRP_END_EXIT);
    g_assert_cmpint(e.code, ==, 37);
    tell_gang(3, "test $TROUPE_RANK = 0 || kill -SEGV $$", 0);
    start(3, 2);
    e = wait_end();
    g_assert_cmpint(e.status, ==, TRP_END_SIGNAL);
    g_assert_cmpint(e.code, ==, SIGSEGV);
    tell_gang(4, "echo $$ > rank$TROUPE_RANK; sleep 100", 3000);
    start(4, 2);
    pid_t first = wait_pid_file("rank0"), second = wait_pid_file("rank1");
    e = wait_end();
    g_assert_cmpint(e.status, ==, TRP_END_TIMEOUT);
    expect_gone(first);
    expect_gone(second);
    close_world();
}

/* As Open MPI 6's mpirun ends now and then. */
static void test_gang_status(void)
{
    static const char *const wrong[] = {
        "sh", "-c", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 \"$@\"; exit 255",
        "sh", NULL};
    open_world(0);
    tell_gang(1, "exit 37", 0);
    struct trp_launch l = {.attempt = {1}, .stage = {1}, .task = 1};
    struct trp_spawn s = {
        .launch = &l, .ranks = 1, .gang_program = self_program, .launcher = wrong};
    g_assert_cmpint(trp_spawner_start(spawner, &s), ==, TRP_OK);
    struct trp_end e = wait_end();
    g_assert_cmpint(e.status, ==, TRP_END_EXIT);
    g_assert_cmpint(e.code, ==, 37);
    close_world();
}

/* Open MPI sends a signal to the group of what it has started. */
static void test_gang_signal(void)
{
    open_world(0);
    tell_gang(1,
              "trap 'echo got' USR1; read -r a b c d group rest </proc/$PPID/stat\n"
              "kill -s USR1 -- -$group; for i in 1 2 3 4 5; do sleep 0.1; done; :",
              0);
    start(1, 2);
    uint32_t task = next_attempt - 1;
    struct trp_end e = wait_end();
    g_assert_cmpint(e.status, ==, TRP_END_SUCCESS);
    char *out = read_log(task, "0.out");
    g_assert_cmpstr(out, ==, "got\n");
    g_free(out);
    close_world();
}

static void test_gang_failures(void)
{
    open_world(0);
    const char *argv[] = {"no-such-program-of-troupe"};
    char *path = g_strdup_printf("PATH=%s", g_getenv("PATH"));
    const char *env[] = {path};
    struct wanted w = {.argv = argv, .nargv = 1, .env = env, .nenv = 1, .stage = 1};
    tell_stage(&w);
    start(1, 2);
    struct trp_end e = wait_end();
    g_assert_cmpint(e.status, ==, TRP_END_START);
    char *text = g_strndup((const char *)e.extra, e.extra_size);
    g_assert_cmpstr(text, ==,
                    "cannot run no-such-program-of-troupe: No such file or directory");
    g_free(text);
    g_free(path);
    struct trp_launch l = {.attempt = {1}, .stage = {1}, .task = 1};
    static const char *const mpirun[] = {"mpirun", "-np", "2", "--oversubscribe", NULL};
    struct trp_spawn s = {
        .launch = &l, .ranks = 2, .gang_program = "/no/such/rank", .launcher = mpirun};
    g_assert_cmpint(trp_spawner_start(spawner, &s), ==, TRP_OK);
    e = wait_end();
    g_assert_cmpint(e.status, ==, TRP_END_PLATFORM);
    close_world();
}

/* A launcher that does not get to a rank, as srun on a node that does not answer. */
static void test_gang_start_limit(void)
{
    static const char *const hangs[] = {"sh", "-c", "exec sleep 100", NULL};
    static const char *const runs[] = {"env", "OMPI_COMM_WORLD_RANK=0",
                                       "OMPI_COMM_WORLD_SIZE=1", NULL};
    open_world(0);
    tell_gang(1, "sleep 2.5", 0);
    struct trp_launch l = {.attempt = {1}, .stage = {1}, .task = 1};
    struct trp_spawn s = {.launch = &l,
                          .ranks = 1,
                          .gang_program = self_program,
                          .launcher = hangs,
                          .start_limit_ns = 300000000};
    g_assert_cmpint(trp_spawner_start(spawner, &s), ==, TRP_OK);
    struct trp_end e = wait_end();
    g_assert_cmpint(e.status, ==, TRP_END_RECALLED);
    g_assert_cmpint(e.extra_size, ==, 0);
    s.launcher = runs;
    s.start_limit_ns = 2000000000;
    l.attempt.n = 2;
    g_assert_cmpint(trp_spawner_start(spawner, &s), ==, TRP_OK);
    e = wait_end();
    g_assert_cmpint(e.status, ==, TRP_END_SUCCESS);
    close_world();
}

/* srun, of which one node does not answer: the rank on the other one has run. */
static void test_gang_unreached(void)
{
    static const char words[] = "Task launch for StepId=7.0 failed on node n2: "
                                "Communication connection failure";
    static const char script[] =
        "\"$@\"; echo \"srun: error: Task launch for StepId=7.0 failed on node n2: "
        "Communication connection failure\" >&2; exit 233";
    static const char *const half[] = {"env",
                                       "OMPI_COMM_WORLD_RANK=0",
                                       "OMPI_COMM_WORLD_SIZE=2",
                                       "sh",
                                       "-c",
                                       script,
                                       "sh",
                                       NULL};
    open_world(0);
    tell_gang(1, "exit 1", 0);
    struct trp_launch l = {.attempt = {1}, .stage = {1}, .task = 1};
    struct trp_spawn s = {.launch = &l,
                          .ranks = 2,
                          .gang_program = self_program,
                          .launcher = half,
                          .by_srun = true};
    g_assert_cmpint(trp_spawner_start(spawner, &s), ==, TRP_OK);
    struct trp_end e = wait_end();
    g_assert_cmpint(e.status, ==, TRP_END_RECALLED);
    char *text = g_strndup((const char *)e.extra, e.extra_size);
    g_assert_cmpstr(text, ==, words);
    g_free(text);
    close_world();
}

static void test_hold(void)
{
    open_world(0);
    tell_shell(7, "true", 0);
    trp_spawner_hold(spawner);
    trp_attempt_id first = start(7, 0), second = start(7, 0);
    assert_no_end();
    g_assert_cmpint(trp_spawner_release(spawner), ==, TRP_OK);
    uint64_t ends = wait_end().attempt.n ^ wait_end().attempt.n;
    g_assert_cmpuint(ends, ==, first.n ^ second.n);
    close_world();
}

static void test_log_folder_removed(void)
{
    open_world(0);
    char *logs = g_build_filename(folder, "logs", NULL), *text = NULL;
    const char *argv[] = {"/bin/echo", "said"};
    struct wanted w = {.argv = argv, .nargv = 2, .stage = 7, .log_dir = logs};
    tell_stage(&w);
    for (int i = 0; i < 3; i++) {
        start(7, 0);
        g_assert_cmpint(wait_end().status, ==, TRP_END_SUCCESS);
        char *out = g_strdup_printf("%s/%u.1.out", logs, next_attempt - 1);
        g_assert_true(g_file_get_contents(out, &text, NULL, NULL));
        g_assert_cmpstr(text, ==, "said\n");
        g_assert_cmpint(remove(out), ==, 0);
        g_assert_cmpint(rmdir(logs), ==, 0);
        if (i == 1)
            g_assert_cmpint(mkdir(logs, 0700), ==, 0);
        g_free(out);
        g_free(text);
    }
    g_free(logs);
    close_world();
}

static void test_many_log_folders(void)
{
    enum { STAGES = 100, MOST = 40 };
    open_world(0);
    const char *argv[] = {"/bin/true"}, *missing[] = {"/nonexistent"};
    for (uint32_t i = 0; i < STAGES; i++) {
        char *logs = g_strdup_printf("%s/logs-%u", folder, i);
        struct wanted w = {.argv = i % 2 ? missing : argv,
                           .nargv = 1,
                           .stage = 10 + i,
                           .log_dir = logs};
        tell_stage(&w);
        start(10 + i, 0);
        wait_end();
        g_free(logs);
    }
    char *path = g_strdup_printf("/proc/%d/fd", (int)trp_spawner_pid(spawner));
    GDir *open = g_dir_open(path, 0, NULL);
    uint32_t n = 0;
    while (g_dir_read_name(open))
        n++;
    g_assert_cmpuint(n, <, MOST);
    g_dir_close(open);
    g_free(path);
    close_world();
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "gang") == 0)
        return trp_gang_keep_mpirun_rank(argc, argv);
    self_program = g_file_read_link("/proc/self/exe", NULL);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/spawner/an end tells status, signal, time and memory", test_ends);
    g_test_add_func("/spawner/what cannot be started says why", test_start_failures);
    g_test_add_func("/spawner/a command over its timeout is killed with its children",
                    test_timeout);
    g_test_add_func("/spawner/a kill is soft or hard", test_kill);
    g_test_add_func("/spawner/a command finds its environment and nothing else",
                    test_environment);
    g_test_add_func("/spawner/a later stage attempt has its own logs", test_log_names);
    g_test_add_func("/spawner/a megabyte of environment arrives",
                    test_large_environment);
    g_test_add_func("/spawner/scratch is empty each time and removed whatever is in it",
                    test_scratch);
    g_test_add_func("/spawner/daemons are killed when their attempt ends",
                    test_daemons);
    g_test_add_func("/spawner/daemons of a live attempt are left alone",
                    test_neighbours);
    g_test_add_func("/spawner/a killed parent leaves nothing", test_parent_killed);
    g_test_add_func("/spawner/a stopped spawner is buried with all it started",
                    test_buried);
    g_test_add_func("/spawner/the first last words reach the socket", test_last_words);
    g_test_add_func("/spawner/without a cgroup the largest attempt is killed",
                    test_memory_sampled);
    g_test_add_func("/spawner/a parent over the limit is killed and a function blamed",
                    test_function_memory);
    g_test_add_func("/spawner/pages of mapped files are not counted as memory",
                    test_mapped_files_are_no_memory);
    g_test_add_func("/spawner/in a cgroup a kill for memory is told as such",
                    test_memory_cgroup);
    g_test_add_func("/spawner/queued attempts take the place of those that end",
                    test_queue);
    g_test_add_func("/spawner/what is held is told at once when it is released",
                    test_hold);
    g_test_add_func("/spawner/a folder of logs that is removed is made again",
                    test_log_folder_removed);
    g_test_add_func("/spawner/folders of logs of many stages are not all kept open",
                    test_many_log_folders);
    g_test_add_func("/spawner/it never wakes while nothing runs", test_idle);
    g_test_add_func("/spawner/an attempt whose output is waited for can be killed",
                    test_killed_for_its_output);
    g_test_add_func("/spawner/a gang's ranks have logs, numbers and one status",
                    test_gang);
    g_test_add_func("/spawner/how a gang's rank ended is told, whatever mpirun says",
                    test_gang_status);
    g_test_add_func("/spawner/a gang's rank gets a signal once", test_gang_signal);
    g_test_add_func("/spawner/a gang that cannot start says whose fault it is",
                    test_gang_failures);
    g_test_add_func("/spawner/a gang of which no rank begins in time is given back",
                    test_gang_start_limit);
    g_test_add_func("/spawner/so is one of which srun does not reach a node",
                    test_gang_unreached);
    return g_test_run();
}
