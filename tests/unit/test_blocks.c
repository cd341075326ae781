/* Block server and client: blocks come over connections as they come from files, or are
 * said to be missing, whoever else is on the line. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <xxhash.h>

#include "block_world.h"
#include "comm/frame.h"
#include "data/host_copy.h"
#include "unit.h"

/* ---- reading --------------------------------------------------------------------- */

TEST("of other hosts come as those of this one")
{
    for (int compress = 0; compress < 2; compress++) {
        struct world *w = world_make(9, 3, 5000, 500, compress);
        struct trp_shuffle_read read = read_of(w, 0);
        all_is_read(w, &read, 500);
        world_free(w);
    }
}

/* Blocks of many pieces, records of many parts, less memory than would do. */
TEST("may be larger than memory")
{
    struct world *w = world_make(12, 1, 600, 200000, 0);
    struct trp_shuffle_read read = read_of(w, 0);
    all_is_read(w, &read, 200000);
    read.memory = 1;
    all_is_read(w, &read, 200000);
    world_free(w);
}

TEST("may be empty")
{
    struct world *w = world_make(5, 300, 20, 500, 0);
    for (uint32_t p = 0; p < 300; p += 13) {
        struct trp_shuffle_read read = read_of(w, p);
        trp_error err = {0};
        g_assert_cmpint(read_numbers(w, &read, 500, NULL, NULL, &err), ==, 0);
    }
    world_free(w);
}

/* Some of the maps are on the reader's own host. */
TEST("of this host and of others are merged")
{
    struct world *w = world_make(8, 2, 3000, 500, 0);
    struct trp_shuffle_read read = read_of(w, 1);
    struct trp_shuffle_reader_counts counts;
    trp_error err = {0};
    w->hosts[1] = (struct trp_data_host){.name = "one", .here = true};
    read.folder = w->folders[1];
    g_assert_cmpint(read_numbers(w, &read, 500, &counts, NULL, &err), ==, 0);
    g_assert_cmpuint(counts.remote_blocks, ==, 4);
    g_assert_cmpuint(counts.local_blocks, ==, 4);
    g_assert_cmpuint(counts.records, ==, 1496);
    world_free(w);
}

struct task {
    const struct world *w;
    uint32_t partition;
    size_t most;
};

static void *read_task(void *arg)
{
    const struct task *t = arg;
    struct trp_shuffle_read read = read_of(t->w, t->partition);
    trp_error err = {0};
    int rc = read_numbers(t->w, &read, t->most, NULL, NULL, &err);
    g_assert_cmpstr(err.text, ==, "");
    g_assert_cmpint(rc, ==, 0);
    return NULL;
}

/* 200 maps and 16 tasks at a time: one connection to each host, and what is wanted at
 * the same time travels together. The servers are learnt of when all tasks wait. */
TEST("of many tasks share a connection to each host")
{
    enum { MAPS = 200, TASKS = 16, BLOCKS = MAPS * TASKS };
    struct world *w = world_make(MAPS, TASKS, 20000, 500, 0);
    struct trp_block_client_counts counts;
    struct task tasks[TASKS];
    GThread *threads[TASKS];
    forget_servers(w);
    for (uint32_t i = 0; i < TASKS; i++) {
        tasks[i] = (struct task){w, i, 500};
        threads[i] = g_thread_new("task", read_task, &tasks[i]);
    }
    learn_when_wanted(w, 0, BLOCKS);
    learn_when_wanted(w, 1, BLOCKS);
    for (uint32_t i = 0; i < TASKS; i++)
        g_thread_join(threads[i]);
    trp_block_client_counts(w->client, &counts);
    g_assert_cmpuint(counts.calls, ==, HOSTS);
    g_assert_cmpuint(counts.pieces, ==, BLOCKS);
    g_assert_cmpuint(counts.frames, ==, BLOCKS / TRP_WANTED_FRAME);
    world_free(w);
}

/* 1,000 maps of 1,000 blocks each: a file a map and a connection a host, however many
 * blocks there are. 16 of the partitions are read. */
TEST("a million of them are in a file a map, and one connection a host")
{
    enum { MAPS = 1000, PARTITIONS = 1000, TASKS = 16 };
    struct world *w = world_make(MAPS, PARTITIONS, MAPS * PARTITIONS, 8, 0);
    struct trp_block_client_counts counts;
    struct task tasks[TASKS];
    GThread *threads[TASKS];
    g_assert_cmpuint(files_in(w->folders[0]) + files_in(w->folders[1]), ==, MAPS);
    for (uint32_t i = 0; i < TASKS; i++) {
        tasks[i] = (struct task){w, i * 61, 8};
        threads[i] = g_thread_new("task", read_task, &tasks[i]);
    }
    for (uint32_t i = 0; i < TASKS; i++)
        g_thread_join(threads[i]);
    trp_block_client_counts(w->client, &counts);
    g_assert_cmpuint(counts.calls, ==, HOSTS);
    g_assert_cmpuint(counts.pieces, ==, (guint64)MAPS * TASKS);
    g_assert_cmpuint(files_in(w->mine), ==, 0);
    world_free(w);
}

TEST("come without tags where none are wanted")
{
    struct world *w = world_make(4, 2, 1000, 500, 0);
    struct trp_shuffle_read read = read_of(w, 0);
    trp_block_server *servers[HOSTS];
    for (uint32_t h = 0; h < HOSTS; h++) {
        servers[h] = start_server(w->folders[h], false, 0);
        w->endpoints[h][0] = trp_block_server_endpoint(servers[h]);
    }
    read.client = start_client(secret, false, 5000);
    all_is_read(w, &read, 500);
    trp_block_client_stop(read.client);
    for (uint32_t h = 0; h < HOSTS; h++)
        trp_block_server_stop(servers[h]);
    world_free(w);
}

/* ---- what is missing ------------------------------------------------------------- */

static char *file_of(const struct world *w, uint32_t map)
{
    g_autofree char *name = g_strdup_printf("7-%u-%u", map, 1000 + map);
    return g_build_filename(w->folders[map % HOSTS], name, NULL);
}

TEST("that are missing or damaged are named")
{
    struct world *w = world_make(6, 2, 3000, 500, 0);
    struct trp_shuffle_read read = read_of(w, 1);
    struct trp_block_client_counts counts;
    g_autofree char *path = file_of(w, 3);
    g_autofree char *good = NULL;
    gsize size;
    g_assert_true(g_file_get_contents(path, &good, &size, NULL));
    g_unlink(path);
    has_problem(w, &read, 3, "it is not there");
    put_bytes(path, good, size - 1);
    has_problem(w, &read, 3, "cut off");
    good[size / 2] ^= 1; /* in the block of partition 1 or that of 0 */
    put_bytes(path, good, size);
    read.partition = 0;
    if (read_numbers(w, &read, 500, NULL, NULL, NULL) == 0)
        read.partition = 1;
    has_problem(w, &read, 3, "part");
    trp_block_client_counts(w->client, &counts);
    g_assert_cmpuint(counts.retries, ==, 0); /* it would be so again */
    world_free(w);
}

/* A port at which nobody listens. */
static char *dead_endpoint(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(bind(fd, (struct sockaddr *)&a, sizeof a), ==, 0);
    g_assert_cmpint(getsockname(fd, (struct sockaddr *)&a, &n), ==, 0);
    close(fd);
    return g_strdup_printf("127.0.0.1:%u", ntohs(a.sin_port));
}

TEST("of a server that is gone are named after some tries")
{
    struct world *w = world_make(2, 1, 1000, 500, 0);
    struct trp_shuffle_read read = read_of(w, 0);
    struct trp_block_client_counts counts;
    g_autofree char *dead = dead_endpoint();
    w->endpoints[1][0] = dead;
    has_problem(w, &read, 1, g_strerror(ECONNREFUSED));
    trp_block_client_counts(w->client, &counts);
    g_assert_cmpuint(counts.retries, ==, 2); /* three tries */
    w->hosts[1].nendpoints = 0;
    has_problem(w, &read, 1, "no block server of this host is known");
    w->hosts[1].nendpoints = 1;
    w->endpoints[1][0] = "nonsense";
    has_problem(w, &read, 1, "HOST:PORT");
    world_free(w);
}

/* One that is dead costs a try; another of its host has the same files. */
TEST("are had from another server of the host")
{
    struct world *w = world_make(4, 1, 1000, 500, 0);
    struct trp_shuffle_read read = read_of(w, 0);
    g_autofree char *dead = dead_endpoint();
    for (uint32_t first = 0; first < 2; first++) {
        for (uint32_t h = 0; h < HOSTS; h++) {
            w->endpoints[h][first] = dead;
            w->endpoints[h][!first] = trp_block_server_endpoint(w->servers[h]);
            w->hosts[h].nendpoints = 2;
        }
        all_is_read(w, &read, 500);
    }
    world_free(w);
}

/* A thread that learns who serves host 1, when a reader waits for that. */
static void *learn_late(void *arg)
{
    learn_when_wanted((struct world *)arg, 1, 1);
    return NULL;
}

/* Servers of locations change while readers read. */
TEST("are had from servers that are learnt of meanwhile")
{
    struct world *w = world_make(4, 1, 1000, 500, 0);
    struct trp_shuffle_read read = read_of(w, 0);
    const char *zero[] = {w->own[0]};
    g_autofree char *dead = dead_endpoint();
    const char *gone = dead;
    forget_servers(w);
    read.client = w->client;
    g_assert_cmpint(trp_block_client_learn(w->client, 0, zero, 1), ==, 0);
    GThread *late = g_thread_new("late", learn_late, w);
    all_is_read(w, &read, 500);
    g_thread_join(late);
    trp_block_client_stop(w->client);
    w->client = read.client = start_client(secret, true, 5000);
    g_assert_cmpint(trp_block_client_learn(w->client, 0, zero, 1), ==, 0);
    g_assert_cmpint(trp_block_client_learn(w->client, 1, &gone, 1), ==, 0);
    has_problem(w, &read, 1, g_strerror(ECONNREFUSED));
    g_assert_cmpint(trp_block_client_learn(w->client, 1, NULL, 0), ==, 0);
    has_problem(w, &read, 1, "no block server of this host is known");
    world_free(w);
}

/* The kernel takes the connection, and nobody says anything. */
TEST("of a server that is silent are given up")
{
    struct world *w = world_make(2, 1, 1000, 500, 0);
    struct trp_shuffle_read read = read_of(w, 0);
    g_autofree char *endpoint = NULL;
    int fd = listen_here(&endpoint);
    w->endpoints[0][0] = endpoint;
    read.client = start_client(secret, true, 50);
    has_problem(w, &read, 0, "it does not answer");
    trp_block_client_stop(read.client);
    close(fd);
    world_free(w);
}

struct killer {
    int listens, killed; /* killed: atomic */
};

/* Once somebody asks. */
static void *kill_it(void *arg)
{
    struct killer *k = arg;
    struct pollfd p = {.fd = k->listens, .events = POLLIN};
    poll(&p, 1, -1);
    __atomic_store_n(&k->killed, 1, __ATOMIC_RELAXED);
    return NULL;
}

TEST("are not waited for by who was killed")
{
    struct world *w = world_make(2, 1, 1000, 500, 0);
    struct trp_shuffle_read read = read_of(w, 0);
    g_autofree char *endpoint = NULL;
    struct killer k = {.listens = listen_here(&endpoint)};
    trp_shuffle_reader *r = NULL;
    trp_error err;
    w->endpoints[0][0] = endpoint;
    read.killed = &k.killed;
    GThread *thread = g_thread_new("killer", kill_it, &k);
    g_assert_cmpint(trp_shuffle_reader_open(&read, &r, NULL, &err), ==, TRP_ECANCELLED);
    g_thread_join(thread);
    close(k.listens);
    world_free(w);
}

/* A server that ends in the midst of a block: no wrong data, no hang. */
TEST("of a server that ends meanwhile are named")
{
    struct world *w = world_make(2, 1, 400, 200000, 0);
    struct trp_shuffle_read read = read_of(w, 0);
    struct trp_fetch_problem problem = {0};
    struct trp_shuffle_record got;
    trp_shuffle_reader *r = NULL;
    trp_error err = {0};
    int rc;
    g_assert_cmpint(trp_shuffle_reader_open(&read, &r, &problem, &err), ==, 0);
    g_assert_cmpint(trp_shuffle_next(r, &got, &problem, &err), ==, 1);
    trp_block_server_stop(w->servers[1]);
    w->servers[1] = NULL;
    while ((rc = trp_shuffle_next(r, &got, &problem, &err)) > 0) {
    }
    g_assert_cmpint(rc, ==, TRP_ENOENT);
    g_assert_cmpuint(problem.map, ==, 1);
    trp_shuffle_reader_free(r);
    world_free(w);
}

/* ---- strangers ------------------------------------------------------------------- */

/* Waits until the other side has closed. */
static void is_closed(int fd)
{
    char bytes[256];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (poll(&p, 1, 5000) == 1)
        if (read(fd, bytes, sizeof bytes) <= 0)
            return;
    g_assert_not_reached();
}

TEST("are not given without the secret")
{
    static const uint8_t another_secret[32] = {4};
    struct world *w = world_make(2, 1, 1000, 500, 0);
    struct trp_shuffle_read read = read_of(w, 0);
    struct trp_block_server_counts counts;
    read.client = start_client(another_secret, true, 5000);
    has_problem(w, &read, 0, "closed the connection");
    trp_block_server_counts(w->servers[0], &counts);
    g_assert_cmpuint(counts.refused, ==, 3);
    g_assert_cmpuint(counts.answers, ==, 0);
    trp_block_client_stop(read.client);
    world_free(w);
}

TEST("junk closes its own connection only")
{
    struct world *w = world_make(2, 1, 1000, 500, 0);
    struct trp_shuffle_read read = read_of(w, 0);
    const char *endpoint = trp_block_server_endpoint(w->servers[0]);
    /* what is no frame, one that is too long, one before its time */
    const uint8_t junk[][9] = {
        "GET / HT",
        {0xff, 0xff, 2,                TRP_FRAME_MARK},
        {0,    0,    TRP_FRAME_WANTED, TRP_FRAME_MARK}
    };
    for (guint i = 0; i < G_N_ELEMENTS(junk); i++) {
        int fd = connect_to(endpoint);
        g_assert_cmpint(write(fd, junk[i], sizeof junk[i]), ==, sizeof junk[i]);
        is_closed(fd);
        close(fd);
    }
    all_is_read(w, &read, 500);
    world_free(w);
}

/* More connections that say nothing than are kept, before and while blocks are read:
 * readers come through, and strangers are hung up on in the end. */
TEST("a flood of strangers changes nothing")
{
    enum { FLOOD = 300 };
    struct world *w = world_make(2, 1, 1000, 500, 0);
    struct trp_shuffle_read read = read_of(w, 0);
    struct trp_block_server_counts counts;
    int fds[FLOOD];
    trp_block_server *s = start_server(w->folders[0], true, 300);
    w->endpoints[0][0] = trp_block_server_endpoint(s);
    for (int i = 0; i < FLOOD; i++)
        fds[i] = connect_to(w->endpoints[0][0]);
    all_is_read(w, &read, 500);
    for (int i = 0; i < FLOOD; i++)
        is_closed(fds[i]);
    all_is_read(w, &read, 500);
    for (int i = 0; i < FLOOD; i++)
        close(fds[i]);
    trp_block_server_counts(s, &counts);
    g_assert_cmpuint(counts.refused, ==, FLOOD);
    trp_block_client_stop(w->client);
    w->client = NULL;
    trp_block_server_stop(s);
    world_free(w);
}

/* Executors that come later have other endpoints: the client forgets those it does not
 * use any more, and uses them again when it is to. */
TEST("endpoints that are not used are forgotten")
{
    struct world *w = world_make(2, 1, 1000, 500, 0);
    struct trp_shuffle_read read = read_of(w, 0);
    struct trp_block_client_counts counts;
    const struct trp_block_client_config config = {
        .secret = secret, .mac = true, .idle_ns = 1 * MS};
    trp_error err;
    trp_block_client_stop(w->client);
    g_assert_cmpint(trp_block_client_start(&config, &w->client, &err), ==, 0);
    read.client = w->client;
    for (guint64 times = 1; times <= 2; times++) {
        all_is_read(w, &read, 500);
        do {
            g_usleep(1000);
            trp_block_client_counts(w->client, &counts);
        } while (counts.endpoints > 0);
        g_assert_cmpuint(counts.calls, >=, HOSTS * times);
    }
    world_free(w);
}

/* That this process has open. */
static guint sockets(void)
{
    guint n = 0;
    GDir *d = g_dir_open("/proc/self/fd", 0, NULL);
    for (const char *name; (name = g_dir_read_name(d));) {
        g_autofree char *path = g_strdup_printf("/proc/self/fd/%s", name);
        g_autofree char *to = g_file_read_link(path, NULL);
        n += to && g_str_has_prefix(to, "socket:");
    }
    g_dir_close(d);
    return n;
}

/* Else who has died without a word would keep its connection. */
TEST("a server hangs up on who wants nothing")
{
    struct world *w = world_make(2, 1, 1000, 500, 0);
    struct trp_shuffle_read read = read_of(w, 0);
    struct trp_block_client_counts before, after;
    const struct trp_block_server_config config = {.folder = w->folders[0],
                                                   .secret = secret,
                                                   .mac = true,
                                                   .here_only = true,
                                                   .timeout_ns = 200 * MS};
    trp_block_server *s = NULL;
    trp_error err;
    g_assert_cmpint(trp_block_server_start(&config, &s, &err), ==, 0);
    w->endpoints[0][0] = trp_block_server_endpoint(s);
    guint others = sockets();
    all_is_read(w, &read, 500);
    trp_block_client_counts(w->client, &before);
    while (sockets() > others + 2) /* both ends of one connection */
        g_usleep(1000);
    all_is_read(w, &read, 500);
    trp_block_client_counts(w->client, &after);
    g_assert_cmpuint(after.calls, ==, before.calls + 1); /* the other server's stays */
    trp_block_client_stop(w->client);
    w->client = NULL;
    trp_block_server_stop(s);
    world_free(w);
}

/* ---- copies of files that all hosts read ------------------------------------------ */

static struct trp_host_copy_id write_file(const char *path, size_t size)
{
    g_autofree uint8_t *bytes = g_malloc(size);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    g_assert_true(g_file_set_contents(path, (char *)bytes, (gssize)size, NULL));
    return (struct trp_host_copy_id){5, size, XXH3_64bits(bytes, size)};
}

static char *copy_path(const char *folder, const struct trp_host_copy_id *id)
{
    char name[TRP_HOST_COPY_NAME];
    trp_host_copy_name(id, name);
    return g_build_filename(folder, name, NULL);
}

static void begin_copy(const char *folder, const struct trp_host_copy_id *id,
                       struct trp_host_copy *c)
{
    trp_error err = {0};
    g_assert_cmpint(trp_host_copy_begin(folder, id, NULL, c, &err), ==, 0);
}

static void end_copy(const char *folder, const struct trp_host_copy_id *id,
                     struct trp_host_copy *c, gboolean good)
{
    trp_error err = {0};
    g_autofree char *path = copy_path(folder, id);
    g_assert_true(c->good == good);
    g_assert_cmpint(trp_host_copy_end(c, &err), ==, 0);
    g_assert_true(g_file_test(path, G_FILE_TEST_EXISTS) == good);
}

/* The first host reads the file, the second gets it from there; a third that is given
 * damaged bytes, or none, has nothing until it asks elsewhere. */
TEST("copies")
{
    struct world *w = world_make(1, 1, 1, 1, 0);
    struct trp_host_copy c;
    trp_error err = {0};
    g_autofree char *file = g_build_filename(w->mine, "file", NULL);
    const struct trp_host_copy_id id = write_file(file, 20 * MIB + 12345);
    begin_copy(w->folders[0], &id, &c);
    g_assert_cmpint(trp_host_copy_fetch(&c, w->client, w->own[1], NULL, &err), ==,
                    TRP_ENOENT);
    g_assert_nonnull(strstr(err.text, "it is not there"));
    g_assert_cmpint(trp_host_copy_read(&c, "/nowhere", &err), ==, TRP_ESYSTEM);
    g_assert_cmpint(trp_host_copy_read(&c, file, &err), ==, 0);
    end_copy(w->folders[0], &id, &c, TRUE);
    g_assert_cmpint(trp_host_copy_begin(w->folders[0], &id, NULL, &c, &err), ==, 1);

    begin_copy(w->folders[1], &id, &c);
    g_assert_cmpint(trp_host_copy_fetch(&c, w->client, w->own[0], NULL, &err), ==, 0);
    end_copy(w->folders[1], &id, &c, TRUE);
    g_autofree char *of_one = copy_path(w->folders[1], &id), *first = NULL,
                    *second = NULL;
    gsize n, m;
    g_assert_true(g_file_get_contents(file, &first, &n, NULL));
    g_assert_true(g_file_get_contents(of_one, &second, &m, NULL));
    g_assert_cmpmem(second, m, first, n);

    second[10 * MIB] ^= 1;
    g_assert_true(g_file_set_contents(of_one, second, (gssize)m, NULL));
    trp_block_server_stop(w->servers[1]); /* it has the file before open */
    w->servers[1] = start_server(w->folders[1], true, 0);
    const char *damaged = trp_block_server_endpoint(w->servers[1]);
    begin_copy(w->mine, &id, &c);
    g_assert_cmpint(trp_host_copy_fetch(&c, w->client, damaged, NULL, &err), ==,
                    TRP_EPROTO);
    g_assert_nonnull(strstr(err.text, "it is damaged"));
    end_copy(w->mine, &id, &c, FALSE);
    g_assert_cmpint(truncate(of_one, 10 * MIB), ==, 0);
    trp_block_server_stop(w->servers[1]);
    w->servers[1] = start_server(w->folders[1], true, 0);
    begin_copy(w->mine, &id, &c);
    g_assert_cmpint(trp_host_copy_fetch(&c, w->client,
                                        trp_block_server_endpoint(w->servers[1]), NULL,
                                        &err),
                    ==, TRP_EPROTO);
    g_assert_cmpint(trp_host_copy_fetch(&c, w->client, "localhost:1", NULL, &err), ==,
                    TRP_ENOENT);
    g_assert_cmpint(trp_host_copy_fetch(&c, w->client, w->own[0], NULL, &err), ==, 0);
    end_copy(w->mine, &id, &c, TRUE);
    world_free(w);
}

struct copy_task {
    struct world *w;
    const struct trp_host_copy_id *id;
    const char *file;
    int made;
};

static void *copy_task(void *arg)
{
    struct copy_task *t = arg;
    struct trp_host_copy c;
    trp_error err = {0};
    int rc = trp_host_copy_begin(t->w->mine, t->id, NULL, &c, &err);
    g_assert_cmpint(rc, >=, 0);
    if (rc == 0) {
        g_assert_cmpint(trp_host_copy_read(&c, t->file, &err), ==, 0);
        g_usleep(50000);
        g_assert_cmpint(trp_host_copy_end(&c, &err), ==, 0);
        g_atomic_int_inc(&t->made);
    }
    return NULL;
}

TEST("one copy a host")
{
    struct world *w = world_make(1, 1, 1, 1, 0);
    g_autofree char *file = g_build_filename(w->folders[0], "file", NULL);
    const struct trp_host_copy_id id = write_file(file, MIB);
    struct copy_task t = {w, &id, file, 0};
    GThread *threads[8];
    for (int i = 0; i < 8; i++)
        threads[i] = g_thread_new("copy", copy_task, &t);
    for (int i = 0; i < 8; i++)
        g_thread_join(threads[i]);
    g_assert_cmpint(t.made, ==, 1);
    world_free(w);
}
