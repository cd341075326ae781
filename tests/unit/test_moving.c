/* Map outputs that leave their host: when that pays, what is copied and what is not, who
 * serves it then, and how long readers wait for it. */
#include <errno.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <time.h>

#include "core/alloc/move_worth.h"
#include "data/block_client.h"
#include "data/block_server.h"
#include "data/fetch.h"
#include "data/output_copy.h"
#include "executor/move_files.h"
#include "os/held.h"
#include "os/private_folder.h"
#include "shuffle_data.h"
#include "unit.h"
#include "wire/message.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)

/* ---- whether --------------------------------------------------------------------- */

TEST("what is made faster than copied is left")
{
    const uint64_t gib = UINT64_C(1) << 30;
    g_assert_true(trp_moving_pays(gib, 60 * SECOND, 100 << 20));
    g_assert_false(trp_moving_pays(gib, 5 * SECOND, 100 << 20));
    g_assert_true(trp_moving_pays(gib, 5 * SECOND, 1000 << 20));
    /* Before anything was measured: as a network of 1 Gbit/s. */
    g_assert_true(trp_moving_pays(gib, 12 * SECOND, 0));
    g_assert_false(trp_moving_pays(gib, 8 * SECOND, 0));
    /* To find out that it is missing takes a while, too. */
    g_assert_true(trp_moving_pays(1000, 0, 0));
    g_assert_true(trp_moving_pays(0, 0, 1));
    g_assert_false(trp_moving_pays(UINT64_MAX, INT64_MAX / 4, 1));
}

TEST("the rate follows what is measured")
{
    uint64_t rate = trp_moving_rate(0, 200 << 20, 2 * SECOND);
    g_assert_cmpuint(rate, ==, 100 << 20);
    g_assert_cmpuint(trp_moving_rate(rate, 300 << 20, SECOND), ==, 200 << 20);
    g_assert_cmpuint(trp_moving_rate(rate, 1000, SECOND), ==, rate); /* says nothing */
    g_assert_cmpuint(trp_moving_rate(rate, 2000000, 0), ==, rate);
    g_assert_cmpuint(trp_moving_rate(0, UINT64_MAX, 1), >, 0);
    g_assert_cmpuint(trp_moving_rate(1, 1000000, INT64_MAX), >, 0);
}

/* ---- words ----------------------------------------------------------------------- */

TEST("outputs are words")
{
    const struct trp_move_output m = {1, 2, UINT64_C(9000000000000000000)};
    struct trp_move_output got;
    char word[TRP_MOVE_WORD];
    trp_move_word(&m, word);
    g_assert_true(trp_move_read_word(word, &got));
    g_assert_cmpmem(&got, sizeof got, &m, sizeof m);
    static const char *const wrong[] = {"",       "1-2",    "1-2-3 ", "1-2-3x",
                                        " 1-2-3", "-1-2-3", "01-2-3", "4294967296-2-3",
                                        "1-2--3"};
    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++)
        g_assert_false(trp_move_read_word(wrong[i], &got));
}

TEST("lines say what was moved")
{
    struct trp_moved_output m;
    const char *text = NULL;
    g_assert_cmpint(trp_moved_read_line("1-2-3 4096 700", &m, &text), ==, 1);
    g_assert_cmpuint(m.is.attempt, ==, 3);
    g_assert_cmpuint(m.bytes, ==, 4096);
    g_assert_cmpint(m.took_ns, ==, 700);
    g_assert_cmpint(trp_moved_read_line("! the disk is full", &m, &text), ==, 0);
    g_assert_cmpstr(text, ==, "the disk is full");
    static const char *const wrong[] = {"", "srun: error", "1-2-3", "1-2-3 4",
                                        "1-2-3 4 -5"};
    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++)
        g_assert_cmpint(trp_moved_read_line(wrong[i], &m, &text), ==, TRP_EPROTO);
}

/* ---- copying --------------------------------------------------------------------- */

enum { SHUFFLE = 3, ATTEMPT = 1000, PARTITIONS = 4, RECORDS = 2000 };

static void write_output(const char *folder, uint32_t map)
{
    const struct trp_shuffle_spec spec = {.folder = folder,
                                          .shuffle = SHUFFLE,
                                          .map = map,
                                          .attempt = ATTEMPT + map,
                                          .partitions = PARTITIONS,
                                          .memory = 64 << 20};
    trp_error err = {0};
    trp_shuffle_writer *w = NULL;
    g_assert_cmpint(trp_shuffle_writer_open(&spec, &w, &err), ==, 0);
    for (uint32_t i = 0; i < RECORDS; i++) {
        uint32_t key = GUINT32_TO_BE(i);
        g_assert_cmpint(trp_shuffle_add(w, i % PARTITIONS, &key, sizeof key, &map,
                                        sizeof map, &err),
                        ==, 0);
    }
    g_assert_cmpint(trp_shuffle_commit(w, NULL, NULL, &err), ==, 0);
    trp_shuffle_writer_free(w);
}

static char *path_of(const char *folder, uint32_t map)
{
    const struct trp_output_id id = {SHUFFLE, map, ATTEMPT + map};
    char name[TRP_BLOCK_NAME];
    trp_block_file_name(&id, name);
    return g_build_filename(folder, name, NULL);
}

static int copy(const char *from, const char *to, uint32_t map,
                const volatile int *killed, uint64_t *ret_bytes, trp_error *err)
{
    const struct trp_output_id id = {SHUFFLE, map, ATTEMPT + map};
    struct trp_output_copy c = {.from = open(from, O_RDONLY | O_DIRECTORY),
                                .to = open(to, O_RDONLY | O_DIRECTORY),
                                .killed = killed};
    int rc = trp_output_copy(&c, &id, ret_bytes, err);
    close(c.from);
    close(c.to);
    return rc;
}

TEST("an output is copied whole or not at all")
{
    char *from = shuffle_folder_make(), *to = shuffle_folder_make();
    g_autofree char *old = path_of(from, 0), *new = path_of(to, 0);
    g_autofree char *was = NULL, *is = NULL;
    const volatile int killed = 1;
    uint64_t bytes = 0;
    trp_error err = {0};
    gsize n, m;
    write_output(from, 0);
    g_assert_cmpint(copy(from, to, 0, &killed, &bytes, &err), ==, TRP_ECANCELLED);
    g_assert_cmpint(access(new, F_OK), <, 0);
    g_assert_cmpint(copy(from, to, 0, NULL, &bytes, &err), ==, 0);
    g_assert_true(g_file_get_contents(old, &was, &n, NULL));
    g_assert_true(g_file_get_contents(new, &is, &m, NULL));
    g_assert_cmpmem(is, m, was, n);
    g_assert_cmpuint(bytes, ==, n);
    /* What is there stays, though the other one is gone by now. */
    g_unlink(old);
    bytes = 0;
    g_assert_cmpint(copy(from, to, 0, NULL, &bytes, &err), ==, 0);
    g_assert_cmpuint(bytes, ==, n);
    g_assert_cmpint(copy(from, to, 1, NULL, &bytes, &err), ==, TRP_ENOENT);
    /* One that is cut off is not worth a copy; nor does one in the way hinder it. */
    write_output(from, 1);
    g_autofree char *cut = path_of(from, 1), *in_the_way = path_of(to, 1);
    g_assert_cmpint(truncate(cut, 1000), ==, 0);
    g_assert_cmpint(copy(from, to, 1, NULL, &bytes, &err), ==, TRP_EPROTO);
    g_assert_cmpint(access(in_the_way, F_OK), <, 0);
    write_output(from, 1);
    put_bytes(in_the_way, "junk", 4);
    g_assert_cmpint(copy(from, to, 1, NULL, &bytes, &err), ==, 0);
    g_assert_cmpuint(bytes, >, 4);
    shuffle_folder_remove(from);
    shuffle_folder_remove(to); /* nothing hidden is left in it */
}

/* As far as a test can tell: the file cannot be made. */
TEST("what cannot be written is told")
{
    char *from = shuffle_folder_make(), *to = shuffle_folder_make();
    uint64_t bytes;
    trp_error err = {0};
    char name[TRP_BLOCK_NAME + 32];
    write_output(from, 0);
    g_autofree char *plain = path_of(to, 0);
    snprintf(name, sizeof name, "%s/.%s.moved.%d", to, strrchr(plain, '/') + 1,
             (int)getpid());
    g_assert_cmpint(mkdir(name, 0700), ==, 0);
    g_assert_cmpint(copy(from, to, 0, NULL, &bytes, &err), ==, TRP_ESYSTEM);
    g_assert_nonnull(strstr(err.text, "cannot be copied: "));
    g_assert_cmpint(rmdir(name), ==, 0);
    shuffle_folder_remove(from);
    shuffle_folder_remove(to);
}

/* ---- an executor's thread -------------------------------------------------------- */

static void wake(void *context)
{
    sem_t *news = context;
    sem_post(news);
}

/* (What GLib has for this the thread sanitizer does not understand.) */
static void await_news(sem_t *news)
{
    g_assert_cmpint(sem_wait(news), ==, 0);
}

/* Of those that are told to be moved, what is there comes to the run's folder. */
TEST("a mover tells what it has moved")
{
    char *from = shuffle_folder_make(), *run = shuffle_folder_make();
    g_autofree char *state = g_build_filename(run, "state", NULL);
    g_autofree char *scratch = g_build_filename(state, "scratch", NULL);
    char *to = g_build_filename(scratch, "shuffle", NULL);
    const struct trp_move_output all[] = {
        {SHUFFLE, 0, ATTEMPT    },
        {SHUFFLE, 1, ATTEMPT + 1},
        {SHUFFLE, 2, ATTEMPT + 2}
    };
    sem_t news;
    const struct trp_mover_config config = {.from = from,
                                            .run_dir = run,
                                            .outputs = all,
                                            .n = 3,
                                            .news = wake,
                                            .context = &news};
    struct trp_moved_output m;
    trp_error err = {0};
    trp_mover *mover = NULL;
    uint32_t maps = 0;
    bool last = false;
    sem_init(&news, 0, 0);
    write_output(from, 0);
    write_output(from, 2);
    g_assert_cmpint(trp_mover_start(&config, &mover, &err), ==, 0);
    while (!last) {
        struct trp_buf b = {0};
        struct trp_view v;
        char *text = NULL;
        await_news(&news);
        last = trp_mover_take(mover, &b) == 1;
        if (!b.size)
            continue;
        v = trp_message_view(b.data, b.size, TRP_MSG_MOVED);
        bool said;
        while (trp_moved_next(&v, &m, &said, &text) > 0) {
            g_assert_cmpuint(m.bytes, >, 0);
            maps |= 1u << m.is.map;
        }
        g_assert_true(said == last);
        g_assert_cmpstr(text, ==, "");
        free(text);
        trp_buf_free(&b);
    }
    trp_mover_stop(mover);
    g_assert_cmpuint(maps, ==, 5);
    sem_destroy(&news);
    shuffle_folder_remove(from);
    shuffle_folder_remove(to);
    rmdir(scratch);
    rmdir(state);
    shuffle_folder_remove(run);
}

/* ---- a host's folder ------------------------------------------------------------- */

TEST("the folder of a run is found by its owner")
{
    char *parent = shuffle_folder_make();
    const uint8_t key[TRP_RUN_FILES_KEY] = {1, 2, 3, 4, 5, 6};
    struct trp_run_files mine, found;
    trp_error err = {0};
    g_assert_cmpint(trp_run_files_enter(parent, key, "run-1", "/nowhere", &mine, &err),
                    ==, 0);
    g_assert_cmpint(trp_run_files_find(parent, "run-1", &found, &err), ==, 0);
    g_assert_cmpstr(found.path, ==, mine.path);
    /* It is used, so nobody removes it. */
    g_assert_false(trp_run_files_leave(&mine, true));
    g_assert_true(trp_run_files_leave(&found, true));
    g_assert_cmpint(trp_run_files_find(parent, "run-1", &found, &err), ==, TRP_ENOENT);
    g_assert_cmpint(trp_run_files_find(parent, "run-2", &found, &err), ==, TRP_ENOENT);
    shuffle_folder_remove(parent);
}

/* ---- who serves them ------------------------------------------------------------- */

static const uint8_t secret[32] = {7};

static uint64_t read_all(trp_block_client *client, const char *mine, uint32_t location,
                         struct trp_fetch_problem *problem)
{
    const struct trp_shuffle_source sources[] = {
        {0, ATTEMPT,     0},
        {1, ATTEMPT + 1, 0}
    };
    const struct trp_data_host host = {.name = "gone", .location = location};
    const struct trp_shuffle_read read = {.folder = mine,
                                          .shuffle = SHUFFLE,
                                          .partition = 1,
                                          .partitions = PARTITIONS,
                                          .sources = sources,
                                          .nsources = 2,
                                          .hosts = &host,
                                          .nhosts = 1,
                                          .memory = 64 << 20,
                                          .client = client};
    struct trp_shuffle_record record;
    trp_shuffle_reader *r = NULL;
    trp_error err = {0};
    uint64_t n = 0;
    int rc = trp_shuffle_reader_open(&read, &r, problem, &err);
    while (rc >= 0 && (rc = trp_shuffle_next(r, &record, problem, &err)) > 0)
        n++;
    trp_shuffle_reader_free(r);
    return n;
}

struct late {
    trp_block_client *client;
    const char *endpoint;
};

static void *learn_late(void *arg)
{
    const struct late *l = arg;
    g_usleep(300000); /* longer than all tries, unless the machine is busy */
    trp_block_client_learn(l->client, 5, &l->endpoint, 1);
    return NULL;
}

/* Another host's executor serves, out of the run's folder, what its own has not. While
 * it is being moved readers wait, and lose no try by that. */
TEST("what was moved is served by others")
{
    static const char *const moving[] = {""};
    char *own = shuffle_folder_make(), *run = shuffle_folder_make();
    char *mine = shuffle_folder_make();
    const struct trp_block_server_config server = {
        .folder = own, .shared = run, .secret = secret, .mac = true, .here_only = true};
    const struct trp_block_client_config client = {.secret = secret,
                                                   .mac = true,
                                                   .timeout_ns = 5 * SECOND,
                                                   .retry_ns = 10 * MS,
                                                   .tries = 3};
    struct trp_fetch_problem problem = {0};
    trp_block_server *s = NULL;
    struct late late = {NULL, NULL};
    trp_error err = {0};
    write_output(run, 0);
    write_output(run, 1);
    g_assert_cmpint(trp_block_server_start(&server, &s, &err), ==, 0);
    g_assert_cmpint(trp_block_client_start(&client, &late.client, &err), ==, 0);
    late.endpoint = trp_block_server_endpoint(s);
    g_assert_cmpint(trp_block_client_learn(late.client, 5, moving, 1), ==, 0);
    GThread *thread = g_thread_new("late", learn_late, &late);
    g_assert_cmpuint(read_all(late.client, mine, 5, &problem), ==,
                     2 * RECORDS / PARTITIONS);
    g_assert_false(problem.is);
    g_thread_join(thread);
    /* What has not come there is missing. */
    g_autofree char *other = path_of(run, 1);
    trp_block_client_stop(late.client);
    trp_block_server_stop(s);
    g_unlink(other);
    g_assert_cmpint(trp_block_server_start(&server, &s, &err), ==, 0);
    g_assert_cmpint(trp_block_client_start(&client, &late.client, &err), ==, 0);
    late.endpoint = trp_block_server_endpoint(s);
    trp_block_client_learn(late.client, 5, &late.endpoint, 1);
    read_all(late.client, mine, 5, &problem);
    g_assert_true(problem.is);
    g_assert_cmpuint(problem.map, ==, 1);
    trp_block_client_stop(late.client);
    trp_block_server_stop(s);
    shuffle_folder_remove(own);
    shuffle_folder_remove(run);
    shuffle_folder_remove(mine);
}
