/*
 * Hosts with map outputs, their block servers, and a client that reads from them, for
 * tests of what goes between these.
 */
#ifndef TRP_TESTS_BLOCK_WORLD_H
#define TRP_TESTS_BLOCK_WORLD_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "data/block_client.h"
#include "data/block_server.h"
#include "data/block_wire.h"
#include "shuffle_data.h"

#define MIB ((size_t)1 << 20)
#define MS INT64_C(1000000)

static const uint8_t secret[32] = {1, 2, 3};

/* ---- hosts with map outputs ------------------------------------------------------ */

enum { HOSTS = 2 };

struct world {
    char *folders[HOSTS]; /* of the hosts */
    char *mine;           /* of the reader's */
    trp_block_server *servers[HOSTS];
    char *own[HOSTS]; /* endpoints of these */
    const char *endpoints[HOSTS][2];
    struct trp_data_host hosts[HOSTS];
    trp_block_client *client;
    struct trp_shuffle_source *sources;
    uint32_t maps, partitions, records;
};

static inline trp_block_server *start_server(const char *folder, bool mac,
                                             int64_t handshake_ms)
{
    trp_error err = {0};
    trp_block_server *s = NULL;
    const struct trp_block_server_config config = {.folder = folder,
                                                   .secret = secret,
                                                   .mac = mac,
                                                   .here_only = true,
                                                   .handshake_timeout_ns =
                                                       handshake_ms * MS};
    g_assert_cmpint(trp_block_server_start(&config, &s, &err), ==, 0);
    g_assert_cmpstr(err.text, ==, "");
    return s;
}

static inline trp_block_client *start_client(const uint8_t *of, bool mac,
                                             int64_t timeout_ms)
{
    trp_error err = {0};
    trp_block_client *c = NULL;
    const struct trp_block_client_config config = {.secret = of,
                                                   .mac = mac,
                                                   .timeout_ns = timeout_ms * MS,
                                                   .retry_ns = 10 * MS,
                                                   .tries = 3};
    g_assert_cmpint(trp_block_client_start(&config, &c, &err), ==, 0);
    return c;
}

static inline size_t value_size(uint32_t i, size_t most)
{
    return (size_t)(i * 2654435761u) % (most + 1);
}

/* Map m lies on host m % HOSTS and has the numbers i with i % maps == m; number i goes
 * to partition i / maps % partitions, with a value of up to `most` bytes. */
static inline void write_numbers(struct world *w, size_t most, int compress)
{
    g_autofree uint8_t *value = g_malloc0(most + 1);
    for (uint32_t map = 0; map < w->maps; map++) {
        const struct trp_shuffle_spec spec = {.folder = w->folders[map % HOSTS],
                                              .shuffle = 7,
                                              .map = map,
                                              .attempt = 1000 + map,
                                              .partitions = w->partitions,
                                              .memory = 64 * MIB,
                                              .compress = compress};
        trp_error err = {0};
        trp_shuffle_writer *writer = NULL;
        g_assert_cmpint(trp_shuffle_writer_open(&spec, &writer, &err), ==, 0);
        for (uint32_t i = map; i < w->records; i += w->maps) {
            uint32_t key = GUINT32_TO_BE(i);
            size_t n = value_size(i, most);
            memset(value, (int)i, n);
            g_assert_cmpint(trp_shuffle_add(writer, i / w->maps % w->partitions, &key,
                                            sizeof key, value, n, &err),
                            ==, 0);
        }
        g_assert_cmpint(trp_shuffle_commit(writer, NULL, NULL, &err), ==, 0);
        trp_shuffle_writer_free(writer);
    }
}

static inline struct world *world_make(uint32_t maps, uint32_t partitions,
                                       uint32_t records, size_t most, int compress)
{
    struct world *w = g_new0(struct world, 1);
    w->maps = maps;
    w->partitions = partitions;
    w->records = records;
    w->mine = shuffle_folder_make();
    w->sources = g_new0(struct trp_shuffle_source, maps);
    for (uint32_t h = 0; h < HOSTS; h++) {
        w->folders[h] = shuffle_folder_make();
        w->servers[h] = start_server(w->folders[h], true, 0);
        w->endpoints[h][0] = w->own[h] =
            g_strdup(trp_block_server_endpoint(w->servers[h]));
        w->hosts[h] = (struct trp_data_host){.name = h == 0 ? "zero" : "one",
                                             .endpoints = w->endpoints[h],
                                             .nendpoints = 1};
    }
    for (uint32_t m = 0; m < maps; m++)
        w->sources[m] = (struct trp_shuffle_source){m, 1000 + m, m % HOSTS};
    w->client = start_client(secret, true, 5000);
    write_numbers(w, most, compress);
    return w;
}

static inline void world_free(struct world *w)
{
    trp_block_client_stop(w->client);
    for (uint32_t h = 0; h < HOSTS; h++) {
        trp_block_server_stop(w->servers[h]);
        shuffle_folder_remove(w->folders[h]);
        g_free(w->own[h]);
    }
    shuffle_folder_remove(w->mine);
    g_free(w->sources);
    g_free(w);
}

/* No server is known any more. The client tries again after an hour, unless it has learnt
 * better. */
static inline void forget_servers(struct world *w)
{
    trp_error err;
    const struct trp_block_client_config config = {
        .secret = secret, .mac = true, .retry_ns = 3600000 * MS};
    trp_block_client_stop(w->client);
    g_assert_cmpint(trp_block_client_start(&config, &w->client, &err), ==, 0);
    for (uint32_t h = 0; h < HOSTS; h++)
        w->hosts[h] =
            (struct trp_data_host){.name = h == 0 ? "zero" : "one", .location = h};
}

/* The client learns who serves the host, once so many pieces wait for a server. */
static inline void learn_when_wanted(struct world *w, uint32_t host, uint64_t pieces)
{
    const char *own = w->own[host];
    struct trp_block_client_counts counts;
    do {
        g_usleep(1000);
        trp_block_client_counts(w->client, &counts);
    } while (counts.retries < pieces);
    g_assert_cmpint(trp_block_client_learn(w->client, host, &own, 1), ==, 0);
}

static inline struct trp_shuffle_read read_of(const struct world *w, uint32_t partition)
{
    return (struct trp_shuffle_read){.folder = w->mine,
                                     .shuffle = 7,
                                     .partition = partition,
                                     .partitions = w->partitions,
                                     .sources = w->sources,
                                     .nsources = w->maps,
                                     .hosts = w->hosts,
                                     .nhosts = HOSTS,
                                     .memory = 64 * MIB,
                                     .client = w->client};
}

/* Reads a partition: numbers come in order, as they were written. 0 when all came, or
 * the failure. */
static inline int read_numbers(const struct world *w,
                               const struct trp_shuffle_read *read, size_t most,
                               struct trp_shuffle_reader_counts *ret_counts,
                               struct trp_fetch_problem *problem, trp_error *err)
{
    trp_shuffle_reader *r = NULL;
    struct trp_shuffle_record got;
    uint32_t i = read->partition * w->maps;
    int rc = trp_shuffle_reader_open(read, &r, problem, err);
    if (rc < 0)
        return rc;
    while ((rc = trp_shuffle_next(r, &got, problem, err)) > 0) {
        uint32_t key;
        g_assert_cmpuint(got.nk, ==, sizeof key);
        memcpy(&key, got.key, sizeof key);
        g_assert_cmpuint(GUINT32_FROM_BE(key), ==, i);
        g_assert_cmpuint(got.nv, ==, value_size(i, most));
        for (size_t k = 0; k < got.nv; k++)
            if (((const uint8_t *)got.value)[k] != (uint8_t)i)
                g_assert_not_reached();
        i++;
        if (i % w->maps == 0)
            i += (w->partitions - 1) * w->maps;
    }
    if (rc == 0)
        g_assert_cmpuint(i, >=, w->records);
    if (ret_counts)
        trp_shuffle_reader_counts(r, ret_counts);
    trp_shuffle_reader_free(r);
    return rc;
}

static inline void all_is_read(const struct world *w,
                               const struct trp_shuffle_read *like, size_t most)
{
    for (uint32_t p = 0; p < w->partitions; p++) {
        struct trp_shuffle_read read = *like;
        struct trp_shuffle_reader_counts counts;
        trp_error err = {0};
        read.partition = p;
        int rc = read_numbers(w, &read, most, &counts, NULL, &err);
        g_assert_cmpstr(err.text, ==, "");
        g_assert_cmpint(rc, ==, 0);
        g_assert_cmpuint(counts.remote_blocks, >, 0);
        g_assert_cmpuint(counts.local_blocks, ==, 0);
    }
}

static inline void has_problem(const struct world *w,
                               const struct trp_shuffle_read *read, uint32_t map,
                               const char *words)
{
    struct trp_fetch_problem problem = {0};
    trp_error err = {0};
    g_assert_cmpint(read_numbers(w, read, 500, NULL, &problem, &err), ==, TRP_ENOENT);
    g_test_message("%s", err.text);
    g_assert_true(problem.is);
    g_assert_cmpuint(problem.shuffle, ==, 7);
    g_assert_cmpuint(problem.map, ==, map);
    g_assert_cmpuint(problem.attempt, ==, 1000 + map);
    g_assert_cmpuint(problem.host, ==, map % HOSTS);
    g_assert_nonnull(strstr(err.text, map % HOSTS ? " on one: " : " on zero: "));
    g_assert_nonnull(strstr(err.text, words));
}

/* ---- sockets ------------------------------------------------------------------- */

static inline int listen_here(char **ret_endpoint)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(bind(fd, (struct sockaddr *)&a, sizeof a), ==, 0);
    g_assert_cmpint(listen(fd, 16), ==, 0);
    g_assert_cmpint(getsockname(fd, (struct sockaddr *)&a, &n), ==, 0);
    *ret_endpoint = g_strdup_printf("127.0.0.1:%u", ntohs(a.sin_port));
    return fd;
}

static inline int connect_to(const char *endpoint)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port =
                                htons((uint16_t)atoi(strrchr(endpoint, ':') + 1))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(connect(fd, (struct sockaddr *)&a, sizeof a), ==, 0);
    return fd;
}

#endif
