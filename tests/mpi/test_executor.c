/*
 * A real executor without an engine: `mpirun -np 2` of this very program, whose rank 1
 * is an executor of a static run and whose rank 0 sends it messages and looks at what
 * comes back. The functions are a handful of words that the runner below knows. An
 * executor that is to die of one of them has a world, and a spawner to say its last
 * words, of its own.
 */
#include <glib.h>
#include <mpi.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor/executor.h"
#include "executor/executor_internal.h"

#define MS INT64_C(1000000)
enum { SLOTS = 2, ENDS_MAX = 70000 };

/* ---- the runner: rank 1 ---------------------------------------------------------- */

struct word {
    char kind[16];
    long number;
};

/* As an executor of an elastic run has it from the beginning. */
static int fork_spawner(trp_error *err)
{
    trp_executor *e = trp_the_executor;
    struct trp_spawner_config config = {
        .name = "0 r",
        .run_name = "r",
        .run_dir = e->shape.run_dir,
        .scratch = e->shape.scratch,
    };
    trp_channel_last_words_way(e->channel, &config.last_words);
    trp_spawner *spawner = NULL;
    int rc = trp_spawner_fork(&config, &spawner, err);
    e->spawner = spawner;
    return rc;
}

static void *word_open(const uint8_t *body, size_t size, trp_error *err)
{
    struct word *w = calloc(1, sizeof *w);
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)size, (const char *)body);
    bool known = sscanf(text, "%15[a-z] %ld", w->kind, &w->number) >= 1 &&
                 strcmp(w->kind, "unknown") != 0;
    if (known && (strcmp(w->kind, "deaf") != 0 || fork_spawner(err) == 0))
        return w;
    free(w);
    if (known)
        return NULL;
    trp_error_set(err, TRP_ENOENT, "no function \"%s\"", text);
    return NULL;
}

static uint64_t word_key(const void *stage)
{
    return g_str_hash(((const struct word *)stage)->kind);
}

static void spin(int64_t us)
{
    for (gint64 end = g_get_monotonic_time() + us; g_get_monotonic_time() < end;)
        ;
}

static void word_run(void *stage, const struct trp_task_info *info,
                     const uint8_t *input, uint32_t input_size,
                     struct trp_function_result *ret)
{
    const struct word *w = stage;
    if (strcmp(w->kind, "spin") == 0)
        spin(w->number);
    if (strcmp(w->kind, "mostly") == 0 && info->task == (uint32_t)w->number)
        g_usleep(300000); /* the others are so short that it begins on the loop */
    if (strcmp(w->kind, "patient") == 0)
        while (!__atomic_load_n(info->killed, __ATOMIC_RELAXED))
            g_usleep(1000);
    while (strcmp(w->kind, "deaf") == 0) /* told to end or not */
        g_usleep(1000);
    if (strcmp(w->kind, "fail") == 0) {
        ret->status = 7;
        snprintf(ret->error, sizeof ret->error, "task %u of %u will not", info->task,
                 info->ntasks);
    }
    if (strcmp(w->kind, "echo") == 0) {
        ret->result = malloc(input_size + 64);
        ret->result_size = (uint32_t)snprintf(
            (char *)ret->result, input_size + 64, "%.*s|%s|%u", (int)input_size,
            (const char *)input, info->resources, info->number);
        ret->records_out = 1;
    }
}

static const struct trp_function_runner runner = {
    .stage_open = word_open,
    .stage_close = free,
    .stage_key = word_key,
    .run = word_run,
};

/* ---- the driver's side: rank 0 --------------------------------------------------- */

static trp_channel *channel;
static uint32_t peer;
static bool up, down;
static struct trp_last_words last;
static struct trp_end ends[ENDS_MAX];
static uint32_t nends, taken;

static void on_up(void *context, uint32_t p, const struct trp_hello *hello)
{
    (void)context;
    (void)hello;
    peer = p;
    up = true;
}

static void on_down(void *context, uint32_t p, const struct trp_last_words *last_words)
{
    (void)context;
    (void)p;
    if (last_words)
        last = *last_words;
    down = true;
}

static void on_message(void *context, uint32_t p, const uint8_t *data, size_t size)
{
    (void)context;
    (void)p;
    struct trp_view v;
    uint32_t count;
    g_assert_cmpint(trp_ends_open(data, size, &v, &count), ==, 0);
    for (struct trp_end e; trp_ends_next(&v, &e) > 0; nends++) {
        g_assert_cmpuint(nends, <, ENDS_MAX);
        ends[nends] = e;
        ends[nends].extra = e.extra_size ? g_memdup2(e.extra, e.extra_size) : NULL;
    }
}

static void turn(void)
{
    int64_t now = g_get_monotonic_time() * 1000;
    if (trp_channel_progress(channel, now) > 0 || !trp_channel_sleep(channel))
        return;
    struct pollfd p = {.fd = trp_channel_fd(channel), .events = POLLIN};
    poll(&p, 1, 50);
}

static const struct trp_end *next_end(void)
{
    while (taken == nends) {
        turn();
        g_assert_false(down);
    }
    return &ends[taken++];
}

static void expect(uint64_t attempt, enum trp_end_status status)
{
    const struct trp_end *e = next_end();
    if (e->attempt.n != attempt || e->status != status)
        g_error("wanted end of %llu with %s, got %llu with %s",
                (unsigned long long)attempt, trp_end_status_name(status),
                (unsigned long long)e->attempt.n,
                trp_end_status_name((enum trp_end_status)e->status));
}

static void send_buf(struct trp_buf *b)
{
    g_assert_false(b->failed);
    g_assert_cmpint(trp_channel_send(channel, peer, b->data, b->size), ==, 0);
    trp_buf_free(b);
}

static void tell(uint32_t stage, const char *word, int64_t timeout_ms)
{
    struct trp_buf b = {0};
    struct trp_stage_message m = {
        .stage = {stage},
        .work = TRP_WORK_FUNCTION,
        .ntasks = 100,
        .task_cpus = 1,
        .timeout_ns = timeout_ms * MS,
        .name = "s",
        .profile = "p",
        .body = (const uint8_t *)word,
        .body_size = strlen(word),
    };
    trp_stage_message_put(&b, &m);
    send_buf(&b);
}

static void put(struct trp_buf *b, uint32_t stage, uint32_t task, bool queued,
                const char *input, const char *resources)
{
    struct trp_launch l = {
        .attempt = {(uint64_t)stage << 32 | task},
        .stage = {stage},
        .task = task,
        .number = 3,
        .queued = queued,
        .seen = taken,
        .extra = (const uint8_t *)input,
        .extra_size = input ? (uint32_t)strlen(input) : 0,
        .resources = (const uint8_t *)resources,
        .resources_size = resources ? (uint32_t)strlen(resources) : 0,
    };
    trp_launch_put(b, &l);
}

/* Launches tasks [from, to) of a stage, the first SLOTS at once, the others queued. */
static void launch(uint32_t stage, uint32_t from, uint32_t to)
{
    struct trp_buf b = {0};
    trp_launch_begin(&b);
    for (uint32_t i = from; i < to; i++)
        put(&b, stage, i, i - from >= SLOTS, NULL, NULL);
    trp_batch_finish(&b);
    send_buf(&b);
}

static void send_kill(uint64_t attempt, bool recall)
{
    struct trp_buf b = {0};
    trp_kill_put(&b, (trp_attempt_id){attempt},
                 recall ? TRP_KILL_RECALL : TRP_KILL_NOW);
    send_buf(&b);
}

static uint64_t id(uint32_t stage, uint32_t task)
{
    return (uint64_t)stage << 32 | task;
}

static void check_results(void)
{
    struct trp_buf b = {0};
    tell(1, "echo", 0);
    trp_launch_begin(&b);
    put(&b, 1, 0, false, "one", "gpu=0,1\n");
    put(&b, 1, 1, true, "two", NULL);
    trp_batch_finish(&b);
    send_buf(&b);
    static const char *const want[] = {"one|gpu=0,1\n|3", "two|gpu=0,1\n|3"};
    for (uint32_t i = 0; i < 2; i++) {
        const struct trp_end *e = next_end();
        g_assert_cmpuint(e->attempt.n, ==, id(1, i));
        g_assert_cmpint(e->status, ==, TRP_END_SUCCESS);
        g_assert_cmpmem(e->extra, e->extra_size, want[i], strlen(want[i]));
        g_assert_cmpuint(e->records_out, ==, 1);
    }
    tell(2, "fail", 0);
    launch(2, 5, 6);
    const struct trp_end *e = next_end();
    g_assert_cmpint(e->status, ==, TRP_END_EXIT);
    g_assert_cmpint(e->code, ==, 7);
    g_assert_cmpmem(e->extra, e->extra_size, "task 5 of 100 will not", 22);
    tell(3, "unknown", 0);
    launch(3, 0, 2);
    for (uint32_t i = 0; i < 2; i++) {
        e = next_end();
        g_assert_cmpint(e->status, ==, TRP_END_MISTAKE);
        g_assert_cmpmem(e->extra, e->extra_size, "no function \"unknown\"", 21);
    }
}

/* All ends of [0, n), each once; how long it took. */
static double all_end(uint32_t stage, uint32_t n)
{
    char *seen = g_new0(char, n);
    gint64 begin = g_get_monotonic_time();
    for (uint32_t i = 0; i < n; i++) {
        const struct trp_end *e = next_end();
        uint32_t task = (uint32_t)e->attempt.n;
        g_assert_cmpint(e->status, ==, TRP_END_SUCCESS);
        g_assert_cmpuint(e->attempt.n >> 32, ==, stage);
        g_assert_cmpuint(task, <, n);
        g_assert_cmpint(seen[task]++, ==, 0);
    }
    g_free(seen);
    return (double)(g_get_monotonic_time() - begin) * 1e-6;
}

static void check_many(void)
{
    tell(10, "noop", 0);
    launch(10, 0, 100); /* it learns how short they are */
    all_end(10, 100);
    launch(10, 0, 60000);
    double s = all_end(10, 60000);
    printf("# %.0f function tasks a second\n", 60000 / s);
    tell(11, "spin 20", 0);
    launch(11, 0, 2000);
    all_end(11, 2000);
    tell(12, "spin 200", 0);
    launch(12, 0, 200);
    all_end(12, 200);
}

static void check_robbed(void)
{
    tell(20, "mostly 50", 0);
    launch(20, 0, 50);
    all_end(20, 50);
    /* 50 sleeps on the loop's thread; the loop goes on elsewhere, with 51 and so on */
    launch(20, 50, 60);
    bool slow_last = false;
    for (uint32_t i = 0; i < 10; i++)
        slow_last = next_end()->attempt.n == id(20, 50);
    g_assert_true(slow_last);
    launch(20, 60, 100);
    for (uint32_t i = 60; i < 100; i++)
        g_assert_cmpint(next_end()->status, ==, TRP_END_SUCCESS);
}

static void check_kill(void)
{
    tell(30, "patient", 0);
    launch(30, 0, 4);
    send_kill(id(30, 0), true); /* runs: a recall means nothing */
    send_kill(id(30, 3), true);
    expect(id(30, 3), TRP_END_RECALLED);
    send_kill(id(30, 2), false);
    expect(id(30, 2), TRP_END_KILLED);
    send_kill(id(30, 1), false);
    expect(id(30, 1), TRP_END_KILLED);
    send_kill(id(30, 0), false);
    expect(id(30, 0), TRP_END_KILLED);
    tell(31, "patient", 50);
    launch(31, 0, 1);
    expect(id(31, 0), TRP_END_TIMEOUT);
}

static void check_commands(const char *folder)
{
    static const char *const argv[] = {"/bin/sh", "-c", "exit $TROUPE_TASK"};
    struct trp_command c = {.argv = argv,
                            .nargv = 3,
                            .cwd = "/",
                            .base = "/",
                            .log_dir = folder,
                            .run = "r",
                            .run_dir = folder};
    struct trp_buf body = {0}, b = {0};
    trp_command_put(&body, &c);
    struct trp_stage_message m = {.stage = {40},
                                  .work = TRP_WORK_COMMAND,
                                  .ntasks = 9,
                                  .name = "c",
                                  .profile = "p",
                                  .body = body.data,
                                  .body_size = body.size};
    trp_stage_message_put(&b, &m);
    send_buf(&b);
    trp_buf_free(&body);
    launch(40, 0, 3);
    uint32_t codes = 0;
    for (int i = 0; i < 3; i++)
        codes |= 1u << next_end()->code;
    g_assert_cmphex(codes, ==, 7);
    /* queued when none of those three ends was known: a place is free */
    struct trp_buf late = {0};
    uint32_t known = taken;
    taken -= 2;
    trp_launch_begin(&late);
    put(&late, 40, 4, true, NULL, NULL);
    trp_batch_finish(&late);
    taken = known;
    send_buf(&late);
    g_assert_cmpint(next_end()->code, ==, 4);
}

static void wait_up(void)
{
    while (!up) {
        turn();
        g_assert_false(down);
    }
}

static void wait_down(void)
{
    while (!down)
        turn();
}

/* A function that is over its timeout and does not return, beside one that does no
 * harm. What this rank hears of it is left in a file. */
static void drive_deaf(const char *folder)
{
    char *file = g_build_filename(folder, "words", NULL), *text;
    wait_up();
    tell(50, "patient", 50);
    tell(51, "deaf", 50);
    tell(52, "patient", 0);
    /* The first on a thread that is only being made: its time is up all the same, not
     * at the next heartbeat. */
    launch(50, 0, 1);
    expect(id(50, 0), TRP_END_TIMEOUT);
    launch(52, 0, 1);
    launch(51, 7, 8);
    wait_down();
    text = g_strdup_printf("%d %d %d %" G_GUINT64_FORMAT, last.said, last.reason,
                           last.has_culprit, last.culprit.n);
    g_assert_true(g_file_set_contents(file, text, -1, NULL));
    _exit(0);
}

/* A stage that the executor has already: it ends. Then there is a file. */
static void drive_twice(const char *folder)
{
    char *file = g_build_filename(folder, "ended", NULL);
    wait_up();
    tell(1, "echo", 0);
    tell(1, "echo", 0);
    wait_down();
    g_assert_true(g_file_set_contents(file, "", 0, NULL));
    _exit(0);
}

static int drive(const char *folder)
{
    wait_up();
    check_results();
    check_many();
    check_robbed();
    check_kill();
    check_commands(folder);
    struct trp_buf b = {0};
    trp_shutdown_put(&b, false);
    send_buf(&b);
    wait_down();
    for (uint32_t i = 0; i < nends; i++)
        g_free((void *)(uintptr_t)ends[i].extra);
    return 0;
}

static bool expected(void *context, uint32_t executor)
{
    (void)context;
    return executor == 0;
}

static int rank_main(const char *folder, const char *what)
{
    int level, rank;
    uint8_t secret[TRP_SECRET_SIZE] = {1, 2, 3};
    trp_error err;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    struct trp_listen_config config = {
        .transport = TRP_TRANSPORT_WORLD,
        .secret = secret,
        .network_timeout_ns = 120000 * MS,
        .heartbeat_ns = 10000 * MS,
        .handshake_timeout_ns = 10000 * MS,
        .expected = expected,
    };
    struct trp_channel_handler handler = {
        .up = on_up, .message = on_message, .down = on_down};
    if (rank > 0)
        trp_executor_handler(&handler);
    if (trp_channel_world(&config, &handler, &channel, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    int status = 0;
    if (rank == 0 && strcmp(what, "deaf") == 0)
        drive_deaf(folder);
    if (rank == 0 && strcmp(what, "twice") == 0)
        drive_twice(folder);
    if (rank == 0) {
        status = drive(folder);
        trp_channel_close(channel);
    } else {
        struct trp_executor_shape *shape = g_new0(struct trp_executor_shape, 1);
        shape->cores = shape->slots = SLOTS;
        snprintf(shape->scratch, sizeof shape->scratch, "%s/scratch", folder);
        status = trp_executor_work(channel, shape, &runner);
        g_free(shape);
    }
    if (strcmp(what, "rank") != 0)
        _exit(status); /* one is lost: MPI_Finalize would wait for it */
    MPI_Finalize();
    return status;
}

/* ---- the test -------------------------------------------------------------------- */

/* Runs the world of `what`; its exit status. No rank ends because another one died. */
static int run_world(const char *what, const char *folder)
{
    char *self = g_file_read_link("/proc/self/exe", NULL), *out = NULL, *err = NULL;
    const char *argv[] = {"mpirun",    "-np",
                          "2",         "--oversubscribe",
                          "--bind-to", "none",
                          "--mca",     "ras",
                          "^slurm",    "--mca",
                          "plm",       "isolated",
                          "--mca",     "orte_enable_recovery",
                          "1",         self,
                          what,        folder,
                          NULL};
    int status = -1;
    g_setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", TRUE);
    g_setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", TRUE);
    g_assert_true(g_spawn_sync(NULL, (char **)(uintptr_t)argv, NULL,
                               G_SPAWN_SEARCH_PATH, NULL, NULL, &out, &err, &status,
                               NULL));
    g_test_message("%s%s", out, err);
    g_free(self);
    g_free(out);
    g_free(err);
    return status;
}

static void remove_folder(char *folder)
{
    const char *clear[] = {"/bin/rm", "-rf", folder, NULL};
    g_spawn_sync(NULL, (char **)(uintptr_t)clear, NULL, 0, NULL, NULL, NULL, NULL, NULL,
                 NULL);
    g_free(folder);
}

static void test_world(void)
{
    char *folder = g_dir_make_tmp("troupe-executor-XXXXXX", NULL);
    int status = run_world("rank", folder);
    char *scratch = g_build_filename(folder, "scratch", NULL);
    bool left = g_file_test(scratch, G_FILE_TEST_EXISTS);
    remove_folder(folder);
    g_assert_cmpint(status, ==, 0);
    g_assert_false(left);
    g_free(scratch);
}

static void test_deaf(void)
{
    char *folder = g_dir_make_tmp("troupe-executor-XXXXXX", NULL), *text = NULL;
    char *file = g_build_filename(folder, "words", NULL);
    char *want = g_strdup_printf("1 %d 1 %" G_GUINT64_FORMAT, TRP_LOSS_TIMEOUT,
                                 (guint64)id(51, 7));
    run_world("deaf", folder);
    g_file_get_contents(file, &text, NULL, NULL);
    remove_folder(folder);
    g_assert_cmpstr(text, ==, want);
    g_free(file);
    g_free(text);
    g_free(want);
}

static void test_stage_twice(void)
{
    char *folder = g_dir_make_tmp("troupe-executor-XXXXXX", NULL);
    char *file = g_build_filename(folder, "ended", NULL);
    run_world("twice", folder);
    bool ended = g_file_test(file, G_FILE_TEST_EXISTS);
    remove_folder(folder);
    g_assert_true(ended);
    g_free(file);
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return rank_main(argv[2], argv[1]);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/executor/it runs functions and commands, and ends when told",
                    test_world);
    g_test_add_func("/executor/a function that does not return is named as it dies",
                    test_deaf);
    g_test_add_func("/executor/a stage that it has already is an error",
                    test_stage_twice);
    return g_test_run();
}
