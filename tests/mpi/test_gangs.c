/*
 * Gangs with a launcher that gets to no rank in time, as srun where a node does not
 * answer; no ranks, no Slurm.
 */
#include <glib.h>
#include <string.h>

#include "cluster/gangs.h"
#include "os/argv.h"
#include "wire/message.h"

static const trp_attempt_id attempt = {5};

struct world {
    char *folder;
    uv_loop_t loop;
    trp_gangs *gangs;
    const char *script; /* the launcher: $0 is the folder */
    uint32_t started, again, ended;
    uint8_t status;
};

static void ignore(void *context, void *ticket)
{
    (void)context, (void)ticket;
}

static void no_devices(void *context, void *ticket, FILE *to)
{
    (void)context, (void)ticket, (void)to;
}

static char **launcher(void *context, void *ticket)
{
    const struct world *w = context;
    struct trp_argv argv = {0};
    (void)ticket;
    trp_argv_add(&argv, "/bin/sh");
    trp_argv_add(&argv, "-c");
    trp_argv_add(&argv, "%s", w->script);
    trp_argv_add(&argv, "%s", w->folder);
    return trp_argv_done(&argv);
}

static int64_t start_limit(void *context, void *ticket)
{
    (void)context, (void)ticket;
    return 300000000;
}

static bool again(void *context, void *ticket, const char *refusal)
{
    struct world *w = context;
    (void)ticket;
    g_assert_cmpstr(refusal, ==, "");
    w->again++;
    return true;
}

static void count_handle(void *context, bool opened)
{
    (void)context, (void)opened;
}

static void on_room(void *context, trp_stage_id stage, bool has)
{
    struct world *w = context;
    g_assert_cmpuint(stage.n, ==, 1);
    w->started += has;
}

static void on_ended(void *context, trp_attempt_id a, const struct trp_end *end)
{
    struct world *w = context;
    g_assert_cmpuint(a.n, ==, attempt.n);
    w->ended++;
    w->status = end->status;
}

static void add_gang(struct world *w)
{
    const char *argv[] = {"true"};
    const struct trp_command c = {.argv = argv,
                                  .nargv = 1,
                                  .cwd = w->folder,
                                  .base = w->folder,
                                  .log_dir = w->folder,
                                  .run = "test",
                                  .run_dir = w->folder};
    struct trp_buf body = {0}, message = {0};
    trp_error err;
    trp_command_put(&body, &c);
    const struct trp_stage_message m = {.stage = {1},
                                        .work = TRP_WORK_COMMAND,
                                        .ntasks = 1,
                                        .task_cpus = 1,
                                        .name = "solve",
                                        .profile = "p",
                                        .body = body.data,
                                        .body_size = body.size};
    trp_stage_message_put(&message, &m);
    const struct trp_gang g = {.attempt = attempt,
                               .ranks = 1,
                               .stage = "solve",
                               .stage_message = message.data,
                               .stage_message_size = message.size};
    if (trp_gangs_add(w->gangs, &g, NULL, &err) < 0)
        g_error("%s", err.text);
    trp_buf_free(&message);
    trp_buf_free(&body);
}

static void open_world(struct world *w, const char *script)
{
    static const char *const argv[] = {"true", NULL};
    const struct trp_gangs_backend backend = {.context = w,
                                              .leave = ignore,
                                              .forget = ignore,
                                              .devices = no_devices,
                                              .launcher = launcher,
                                              .start_limit = start_limit,
                                              .again = again,
                                              .handle = count_handle};
    const struct trp_cluster_handler handler = {
        .context = w, .gang_room = on_room, .gang_ended = on_ended};
    trp_error err;
    *w = (struct world){.folder = g_dir_make_tmp("troupe-gangs-XXXXXX", NULL),
                        .script = script};
    const struct trp_executor_command command = {
        .argv = argv, .run_name = "test", .run_dir = w->folder};
    uv_loop_init(&w->loop);
    if (trp_gangs_open(&w->loop, &command, w->folder, &backend, &handler, &w->gangs,
                       &err) < 0)
        g_error("%s", err.text);
    add_gang(w);
    trp_gangs_serve(w->gangs, attempt);
    g_assert_cmpuint(w->started, ==, 1);
}

static void close_world(struct world *w)
{
    const char *argv[] = {"rm", "-rf", w->folder, NULL};
    trp_gangs_close(w->gangs);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    g_assert_cmpint(uv_loop_close(&w->loop), ==, 0);
    g_spawn_sync(NULL, (char **)(uintptr_t)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL,
                 NULL, NULL, NULL, NULL);
    g_free(w->folder);
}

static bool has_again(const struct world *w)
{
    return w->again;
}

static bool has_ended(const struct world *w)
{
    return w->ended;
}

/* The launcher has been asked to end. */
static bool is_told(const struct world *w)
{
    g_autofree char *path = g_build_filename(w->folder, "told", NULL);
    return g_file_test(path, G_FILE_TEST_EXISTS);
}

static void run_until(struct world *w, bool (*is)(const struct world *w))
{
    while (!is(w)) {
        uv_run(&w->loop, UV_RUN_NOWAIT);
        g_usleep(2000);
    }
}

static void test_again(void)
{
    struct world w;
    open_world(&w, "exec /bin/sleep 100");
    run_until(&w, has_again);
    g_assert_cmpuint(w.ended, ==, 0);
    trp_gangs_kill(w.gangs, attempt, true);
    trp_gangs_tell(w.gangs);
    g_assert_cmpuint(w.ended, ==, 1);
    g_assert_cmpuint(w.status, ==, TRP_END_KILLED);
    close_world(&w);
}

/* It takes 2 s to end such a launcher. */
static void test_killed(void)
{
    struct world w;
    open_world(&w, "trap ': > \"$0/told\"' TERM; while :; do /bin/sleep 0.05; done");
    run_until(&w, is_told);
    trp_gangs_kill(w.gangs, attempt, true);
    run_until(&w, has_ended);
    g_assert_cmpuint(w.again, ==, 0);
    g_assert_cmpuint(w.status, ==, TRP_END_KILLED);
    close_world(&w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/gangs/one that does not begin in time waits again", test_again);
    g_test_add_func("/gangs/one that is killed while it is given back ends",
                    test_killed);
    return g_test_run();
}
