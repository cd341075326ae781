/*
 * Shuffle files by themselves: records of 100 bytes, of which 10 are the key, from
 * memory through map outputs to a reader in another process, which reads all partitions
 * (lib/data/shuffle.h); and the same bytes written to one file and read again.
 *
 *     shuffle bare FOLDER MIB             the baseline
 *     shuffle copy FOLDER MIB             such records are copied one by one in memory
 *     shuffle local FOLDER MIB BUDGET     the reader opens the files
 *     shuffle remote FOLDER MIB BUDGET    it fetches them over TCP
 *     shuffle words FOLDER MIB BUDGET     records of 10,000 words are counted
 *     shuffle lines FILE MIB SEED         writes lines of 100 bytes: key, tab, value
 *
 * BUDGET: MiB of memory that writer and reader may use. Times are from the first record
 * to the last; making them up is before.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "data/block_client.h"
#include "data/block_file.h"
#include "data/block_server.h"

enum { RECORD = 100, KEY = 10, PARTITIONS = 8, MAP_MIB = 128, WORDS = 10000 };
#define MIB ((size_t)1 << 20)

static const uint8_t secret[32] = {1};

struct work {
    const char *folder;
    size_t size, budget;
    uint8_t *records;
    uint32_t maps;
    bool remote, words;
};

static void die(const char *what)
{
    fprintf(stderr, "shuffle: %s\n", what);
    exit(1);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void make_records(struct work *w)
{
    uint64_t state = 88172645463325252u;
    w->records = trp_bench_alloc(w->size, 1);
    for (size_t at = 0; at + RECORD <= w->size; at += RECORD) {
        uint8_t *r = w->records + at;
        uint64_t a = next_random(&state), b = next_random(&state);
        if (w->words)
            a = a % WORDS * 0x9e3779b97f4a7c15u, b = 0;
        memcpy(r, &a, sizeof a);
        memcpy(r + 8, &b, 2);
        memset(r + KEY, (int)at, RECORD - KEY);
    }
}

/* Runs `f` in a process of its own, to its end. */
static void apart(void (*f)(const struct work *), const struct work *w)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        f(w);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
        die("the reader failed");
}

/* ---- the baseline ---------------------------------------------------------------- */

static void read_bytes(const struct work *w)
{
    enum { PIECE = 256 << 10 };
    char path[4096], *buffer = trp_bench_alloc(PIECE, 1);
    uint64_t sum = 0;
    ssize_t n;
    snprintf(path, sizeof path, "%s/bytes", w->folder);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        die(path);
    while ((n = read(fd, buffer, PIECE)) > 0)
        sum += (uint64_t)n;
    if (sum != w->size)
        die("not all was read");
    close(fd);
    unlink(path);
}

static void write_bytes(const struct work *w)
{
    enum { PIECE = 256 << 10 };
    char path[4096];
    snprintf(path, sizeof path, "%s/bytes", w->folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        die(path);
    for (size_t at = 0; at < w->size;) {
        size_t left = w->size - at;
        ssize_t n = write(fd, w->records + at, left < PIECE ? left : PIECE);
        if (n <= 0)
            die("write");
        at += (size_t)n;
    }
    close(fd);
}

/* ---- the shuffle ----------------------------------------------------------------- */

static int add_numbers(void *context, const void *a, size_t na, const void *b,
                       size_t nb, const void **ret, size_t *ret_size)
{
    uint64_t x, y, *sum = context;
    if (na != sizeof x || nb != sizeof y)
        return TRP_EINVAL;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    *sum = x + y;
    *ret = sum;
    *ret_size = sizeof *sum;
    return 0;
}

static struct trp_shuffle_order order_of(const struct work *w, uint64_t *sum)
{
    return w->words ? (struct trp_shuffle_order){.combine = add_numbers, .context = sum}
                    : (struct trp_shuffle_order){0};
}

static void write_map(const struct work *w, uint32_t map)
{
    const size_t each = MAP_MIB * MIB / RECORD * RECORD;
    size_t at = map * each, end = at + each < w->size ? at + each : w->size;
    uint64_t sum;
    const uint64_t one = 1;
    const struct trp_shuffle_spec spec = {.folder = w->folder,
                                          .map = map,
                                          .partitions = PARTITIONS,
                                          .memory = w->budget,
                                          .order = order_of(w, &sum)};
    trp_error err;
    trp_shuffle_writer *writer = NULL;
    if (trp_shuffle_writer_open(&spec, &writer, &err) < 0)
        die(err.text);
    for (; at + RECORD <= end; at += RECORD) {
        const uint8_t *r = w->records + at;
        if (trp_shuffle_add(writer, r[0] % PARTITIONS, r, KEY,
                            w->words ? (const void *)&one : r + KEY,
                            w->words ? sizeof one : RECORD - KEY, &err) < 0)
            die(err.text);
    }
    if (trp_shuffle_commit(writer, NULL, NULL, &err) < 0)
        die(err.text);
    trp_shuffle_writer_free(writer);
}

static trp_block_client *start_client(void)
{
    trp_block_client *c = NULL;
    trp_error err;
    const struct trp_block_client_config config = {.secret = secret, .mac = true};
    if (trp_block_client_start(&config, &c, &err) < 0)
        die(err.text);
    return c;
}

static const char *endpoint; /* of the block server */

static void read_partitions(const struct work *w)
{
    struct trp_shuffle_source *sources =
        trp_bench_alloc(w->maps, sizeof(struct trp_shuffle_source));
    const struct trp_data_host host = {
        .name = "here", .here = !w->remote, .endpoints = &endpoint, .nendpoints = 1};
    trp_block_client *client = w->remote ? start_client() : NULL;
    uint64_t records = 0, sum;
    for (uint32_t i = 0; i < w->maps; i++)
        sources[i] = (struct trp_shuffle_source){i, 0, 0};
    for (uint32_t p = 0; p < PARTITIONS; p++) {
        const struct trp_shuffle_read read = {.folder = w->folder,
                                              .partition = p,
                                              .partitions = PARTITIONS,
                                              .sources = sources,
                                              .nsources = w->maps,
                                              .hosts = &host,
                                              .nhosts = 1,
                                              .memory = w->budget,
                                              .order = order_of(w, &sum),
                                              .client = client};
        struct trp_shuffle_record r;
        trp_shuffle_reader *reader = NULL;
        trp_error err;
        int rc = trp_shuffle_reader_open(&read, &reader, NULL, &err);
        while (rc >= 0 && (rc = trp_shuffle_next(reader, &r, NULL, &err)) > 0) {
            uint64_t n = 1;
            if (w->words)
                memcpy(&n, r.value, sizeof n);
            records += n;
        }
        if (rc < 0)
            die(err.text);
        trp_shuffle_reader_free(reader);
    }
    trp_block_client_stop(client);
    if (records != w->size / RECORD)
        die("not all records were read");
}

static void write_lines(const char *path, size_t size, uint32_t seed)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
    char line[RECORD + 1];
    uint64_t state = 88172645463325252u + seed;
    FILE *f = fopen(path, "we");
    if (!f)
        die(path);
    memset(line, 'x', RECORD);
    line[KEY] = '\t';
    line[RECORD - 1] = '\n';
    for (size_t at = 0; at + RECORD <= size; at += RECORD) {
        uint64_t bits = next_random(&state);
        for (int i = 0; i < KEY; i++, bits >>= 5)
            line[i] = letters[bits & 31];
        if (fwrite(line, RECORD, 1, f) != 1)
            die(path);
    }
    if (fclose(f) != 0)
        die(path);
}

static void run_shuffle(const struct work *w)
{
    const struct trp_block_server_config config = {
        .folder = w->folder, .secret = secret, .mac = true, .here_only = true};
    trp_block_server *server = NULL;
    trp_error err;
    if (w->remote && trp_block_server_start(&config, &server, &err) < 0)
        die(err.text);
    trp_shuffle_keep_memory(true);
    endpoint = server ? trp_block_server_endpoint(server) : NULL;
    int64_t begin = trp_bench_now();
    for (uint32_t map = 0; map < w->maps; map++)
        write_map(w, map);
    int64_t written = trp_bench_now();
    apart(read_partitions, w);
    trp_bench_print("write_s", (double)(written - begin) / 1e9);
    trp_bench_print("read_s", (double)(trp_bench_now() - written) / 1e9);
    trp_bench_print("mib_per_second", (double)w->size / (double)MIB * 1e9 /
                                          (double)(trp_bench_now() - begin));
    trp_block_server_stop(server);
    for (uint32_t map = 0; map < w->maps; map++) {
        char name[TRP_BLOCK_NAME], path[4096];
        trp_block_file_name(&(struct trp_output_id){0, map, 0}, name);
        snprintf(path, sizeof path, "%s/%s", w->folder, name);
        unlink(path);
    }
}

/* Key and value of each, to somewhere that stays in the processor's cache. */
static void copy_records(const struct work *w)
{
    static char to[RECORD * 64];
    int64_t begin = trp_bench_now();
    for (size_t at = 0, i = 0; at < w->size; at += RECORD, i++) {
        char *here = to + i % 64 * RECORD;
        memcpy(here, w->records + at, KEY);
        memcpy(here + KEY, w->records + at + KEY, RECORD - KEY);
    }
    trp_bench_print("mib_per_second", (double)w->size / (double)MIB * 1e9 /
                                          (double)(trp_bench_now() - begin));
    trp_bench_print("last", to[0]); /* or nobody would need them */
}

int main(int argc, char **argv)
{
    if (argc < 4)
        die("what FOLDER MIB [BUDGET]?");
    if (strcmp(argv[1], "lines") == 0 && argc > 4) {
        write_lines(argv[2], trp_bench_number("MIB", argv[3], 65536) * MIB,
                    trp_bench_number("SEED", argv[4], 1000));
        return 0;
    }
    struct work w = {
        .folder = argv[2],
        .size = trp_bench_number("MIB", argv[3], 65536) * MIB / RECORD * RECORD,
        .budget = MIB * (argc > 4 ? trp_bench_number("BUDGET", argv[4], 65536) : 256),
        .remote = strcmp(argv[1], "remote") == 0,
        .words = strcmp(argv[1], "words") == 0};
    const size_t each = MAP_MIB * MIB / RECORD * RECORD;
    w.maps = (uint32_t)((w.size + each - 1) / each);
    make_records(&w);
    if (strcmp(argv[1], "copy") == 0) {
        copy_records(&w);
        return 0;
    }
    if (strcmp(argv[1], "bare") != 0) {
        run_shuffle(&w);
        return 0;
    }
    int64_t begin = trp_bench_now();
    write_bytes(&w);
    apart(read_bytes, &w);
    trp_bench_print("mib_per_second", (double)w.size / (double)MIB * 1e9 /
                                          (double)(trp_bench_now() - begin));
    return 0;
}
