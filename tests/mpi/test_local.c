/*
 * The local cluster with real mpiruns, whose program is a shell script instead of an
 * executor: coming, ending, being killed with all it started, waiting for room.
 */
#include <glib.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/local/local.h"
#include "cluster/mpirun.h"
#include "conf/options.h"
#include "os/processes.h"

static char *folder;      /* of this test */
static char *server_file; /* URI of ompi-server; "" where there is none */
static GPid server;

struct told {
    uint32_t granted, gone, order[16];
    int status[16];
    char text[16][256];
};

struct world {
    uv_loop_t loop;
    trp_cluster *cluster;
    struct told told;
    struct trp_resource_profile profile;
};

static void on_granted(void *context, trp_executor_id e, const struct trp_granted *g)
{
    struct told *t = context;
    g_assert_nonnull(g->host);
    t->order[t->granted++] = e.n;
}

static void on_gone(void *context, trp_executor_id e, const struct trp_gone *g)
{
    struct told *t = context;
    t->gone++;
    t->status[e.n] = g->status;
    g_strlcpy(t->text[e.n], g->text, sizeof t->text[e.n]);
}

static void open_world(struct world *w, const char *script)
{
    memset(w, 0, sizeof *w);
    struct trp_cluster_handler handler = {
        .context = &w->told, .granted = on_granted, .gone = on_gone};
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    struct trp_executor_command command = {.argv = argv,
                                           .secret_file = "/dev/null",
                                           .run_name = "test",
                                           .run_dir = folder,
                                           .scratch = folder,
                                           .ompi_server = server_file,
                                           .network_timeout_ns = 1,
                                           .heartbeat_ns = 1};
    trp_error err;
    g_unlink("up"); /* of an executor of the test before */
    uv_loop_init(&w->loop);
    if (trp_cluster_local_new(&w->loop, 2, false, NULL, &command, &handler, &w->cluster,
                              &err) < 0 ||
        w->cluster->ops->open(w->cluster, "localhost:1", &err) < 0)
        g_error("%s", err.text);
    w->profile = (struct trp_resource_profile){
        .name = "p", .cores = 2, .task_cpus = 1, .total_mib = 512, .slots = 2};
}

static void close_world(struct world *w)
{
    w->cluster->ops->close(w->cluster, NULL);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    g_assert_cmpint(uv_loop_close(&w->loop), ==, 0);
    g_assert_cmpuint(trp_children_signal(getpid(), 0), ==, server ? 1 : 0);
}

static void start(struct world *w, uint32_t id)
{
    trp_error err;
    if (w->cluster->ops->start(w->cluster, (trp_executor_id){id}, &w->profile, false,
                               "", &err) < 0)
        g_error("%s", err.text);
}

/* Runs the loop until a count is reached. */
static void run_until(struct world *w, const uint32_t *count, uint32_t n)
{
    while (*count < n) {
        uv_run(&w->loop, UV_RUN_NOWAIT);
        g_usleep(2000);
    }
    g_assert_cmpuint(*count, ==, n);
}

static void run_until_file(struct world *w, const char *name)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    while (!g_file_test(path, G_FILE_TEST_EXISTS)) {
        uv_run(&w->loop, UV_RUN_NOWAIT);
        g_usleep(2000);
    }
    g_unlink(path);
}

static void test_dies(void)
{
    struct world w;
    open_world(&w, "case $TROUPE_EXECUTOR in id=0*) echo no licence; exit 3;; "
                   "id=2*) exit 0;; esac; kill -SEGV $$");
    start(&w, 0);
    g_assert_cmpuint(w.told.granted, ==, 0); /* never from inside a call */
    run_until(&w, &w.told.gone, 1);
    g_assert_cmpint(w.told.status[0], ==, TRP_ESYSTEM);
    g_assert_nonnull(strstr(w.told.text[0],
                            "executor 0 ended with exit status 3: no licence; see "
                            "troupe-runs/"));
    start(&w, 1);
    run_until(&w, &w.told.gone, 2);
    g_assert_nonnull(
        strstr(w.told.text[1], "executor 1 was killed by SIGSEGV (11); see"));
    start(&w, 2);
    run_until(&w, &w.told.gone, 3);
    g_assert_cmpint(w.told.status[2], ==, 0);
    g_assert_nonnull(
        strstr(w.told.text[2], "executor 2 ended with exit status 0; see"));
    close_world(&w);
}

static void test_waits(void)
{
    struct world w;
    open_world(&w, "touch $PWD/up; exec sleep 100");
    start(&w, 0);
    start(&w, 1);
    start(&w, 2);
    run_until(&w, &w.told.granted, 1);
    run_until_file(&w, "up");
    w.cluster->ops->release(w.cluster, (trp_executor_id){1}, false);
    g_assert_cmpuint(w.told.gone, ==, 0);
    run_until(&w, &w.told.gone, 1);
    g_assert_cmpint(w.told.status[1], ==, 0);
    g_assert_cmpuint(w.told.granted, ==, 1);
    w.cluster->ops->kill(w.cluster, (trp_executor_id){0});
    run_until(&w, &w.told.granted, 2);
    g_assert_cmpuint(w.told.order[1], ==, 2);
    g_assert_cmpint(w.told.status[0], ==, 0);
    close_world(&w);
}

static void test_release(void)
{
    struct world w;
    open_world(&w, "touch $PWD/up; exec sleep 100");
    start(&w, 0);
    run_until_file(&w, "up");
    gint64 begin = g_get_monotonic_time();
    w.cluster->ops->release(w.cluster, (trp_executor_id){0}, true);
    run_until(&w, &w.told.gone, 1);
    g_assert_cmpint(g_get_monotonic_time() - begin, >=, 1900000);
    g_assert_cmpint(w.told.status[0], ==, 0);
    close_world(&w);
}

/* The executor's children stay in its session and ignore everything. */
static void test_kills_session(void)
{
    struct world w;
    open_world(&w, "trap '' TERM HUP; (sh -c 'echo $PPID >$PWD/pid'; touch $PWD/up; "
                   "while :; do sleep 1; done) & wait; sleep 100");
    start(&w, 0);
    run_until_file(&w, "up");
    g_autofree char *path = g_build_filename(folder, "pid", NULL), *pid = NULL,
                    *words = NULL, *line = NULL;
    g_assert_true(g_file_get_contents(path, &pid, NULL, NULL));
    w.cluster->ops->kill(w.cluster, (trp_executor_id){0});
    run_until(&w, &w.told.gone, 1);
    words = g_strdup_printf("/proc/%d/cmdline", atoi(pid));
    g_file_get_contents(words, &line, NULL, NULL); /* empty for a zombie */
    g_assert_true(!line || !*line);
    close_world(&w);
}

static void test_close(void)
{
    struct world w;
    open_world(&w, "trap '' TERM; (while :; do sleep 1; done) & touch $PWD/up; wait");
    start(&w, 0);
    start(&w, 1);
    run_until_file(&w, "up");
    close_world(&w);
    g_assert_cmpuint(w.told.gone, ==, 0);
}

static void test_never(void)
{
    struct world w;
    trp_error err;
    open_world(&w, "exit 0");
    w.profile.cores = 3;
    g_assert_cmpint(w.cluster->ops->start(w.cluster, (trp_executor_id){0}, &w.profile,
                                          false, "", &err),
                    ==, TRP_ENEVER);
    g_assert_cmpstr(err.text, ==, "cores wanted 3, available 2");
    g_assert_cmpuint(w.cluster->ops->fit(w.cluster, &w.profile, 2, &err), ==, 1);
    close_world(&w);
}

static void die_with_the_test(gpointer data)
{
    (void)data;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void start_server(void)
{
    folder = g_dir_make_tmp("troupe-XXXXXX", NULL);
    g_assert_nonnull(folder);
    g_assert_cmpint(g_chdir(folder), ==, 0);
    g_assert_cmpint(g_mkdir("state", 0700), ==, 0);
    server_file = g_build_filename(folder, "uri", NULL);
    g_setenv(TRP_MPI_FOLDER, folder, TRUE);
    char *argv[] = {g_strdup("ompi-server"), g_strdup("--no-daemonize"), g_strdup("-r"),
                    server_file, NULL};
    GError *error = NULL;
    g_spawn_async(NULL, argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD,
                  die_with_the_test, NULL, &server, &error);
    if (g_error_matches(error, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT)) {
        *server_file = '\0';
        g_clear_error(&error);
    }
    g_assert_no_error(error);
    for (int i = 0; server && i < 1000 && !g_file_test(server_file, G_FILE_TEST_EXISTS);
         i++)
        g_usleep(10000);
    g_free(argv[0]);
    g_free(argv[1]);
    g_free(argv[2]);
}

static void end_server(void)
{
    if (server) {
        kill(server, SIGTERM);
        waitpid(server, NULL, 0);
    }
    char *argv[] = {g_strdup("rm"), g_strdup("-rf"), folder, NULL};
    g_chdir("/");
    g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL,
                 NULL);
    g_free(argv[0]);
    g_free(argv[1]);
    g_free(folder);
    g_free(server_file);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/local/an executor that dies is told gone with how", test_dies);
    g_test_add_func("/local/who has no room waits and may be withdrawn", test_waits);
    g_test_add_func("/local/one that does not end when told is killed after 2 s",
                    test_release);
    g_test_add_func("/local/a kill reaches all that is left in the session",
                    test_kills_session);
    g_test_add_func("/local/close leaves nothing within 3 s", test_close);
    g_test_add_func("/local/what never fits is refused at once", test_never);
    start_server();
    int status = g_test_run();
    end_server();
    return status;
}
