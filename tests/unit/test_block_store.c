/* The block store: what it keeps it gives back as it was put, what it cannot keep is a
 * miss, and nothing takes more memory than the pool has. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/error.h"
#include "data/block_store.h"
#include "unit.h"

#define KIB ((size_t)1 << 10)

static int in_tmp(void *context)
{
    (void)context;
    return open(g_get_tmp_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int nowhere(void *context)
{
    (void)context;
    errno = EACCES;
    return -1;
}

static trp_block_store *store(uint64_t pool)
{
    trp_block_store *s = trp_block_store_new(in_tmp, NULL);
    g_assert_nonnull(s);
    trp_block_store_pool(s, pool);
    return s;
}

/* Another byte for each place of each chunk of each block. */
static uint8_t made(struct trp_block_key key, uint32_t chunk, size_t i)
{
    return (uint8_t)(key.dataset * 31 + key.partition * 7 + chunk * 3 + i);
}

/* Whether it was kept. */
static bool keep(trp_block_store *s, uint32_t dataset, uint32_t partition,
                 unsigned level, uint32_t chunks, size_t size)
{
    const struct trp_block_key key = {dataset, partition};
    trp_block_writer *w = trp_block_begin(s, key, level, 100 + partition);
    bool keeps = w != NULL;
    for (uint32_t c = 0; w && c < chunks; c++) {
        uint8_t *p = g_malloc(size);
        for (size_t i = 0; i < size; i++)
            p[i] = made(key, c, i);
        keeps = trp_block_put(w, p, size);
    }
    if (w)
        trp_block_end(w, true);
    return keeps;
}

/* Whether it is there, and as it was put. */
static bool has(trp_block_store *s, uint32_t dataset, uint32_t partition,
                uint32_t chunks, size_t size)
{
    const struct trp_block_key key = {dataset, partition};
    trp_block_reader *r = trp_block_open(s, key);
    const uint8_t *p;
    size_t n;
    if (!r)
        return false;
    g_assert_cmpuint(trp_block_size(r), ==, chunks * size);
    for (uint32_t c = 0; c < chunks; c++) {
        g_assert_cmpint(trp_block_next(r, &p, &n), ==, 1);
        g_assert_cmpuint(n, ==, size);
        g_assert_cmpuint((uintptr_t)p % 16, ==, 0);
        for (size_t i = 0; i < n; i++)
            g_assert_cmpuint(p[i], ==, made(key, c, i));
    }
    g_assert_cmpint(trp_block_next(r, &p, &n), ==, 0);
    trp_block_close(r);
    return true;
}

static void assert_used(trp_block_store *s, uint64_t memory, uint64_t disk)
{
    uint64_t m, d;
    trp_block_store_used(s, &m, &d);
    g_assert_cmpuint(m, ==, memory);
    g_assert_cmpuint(d, ==, disk);
}

/* "DATASET.PARTITION:MEMORY+DISK …" of the updates since the last call; nothing behind
 * the colon: gone. */
static char *updates(trp_block_store *s)
{
    uint32_t n;
    g_autofree struct trp_block_update *v = trp_block_store_updates(s, &n);
    GString *text = g_string_new("");
    for (uint32_t i = 0; i < n; i++) {
        g_string_append_printf(text, "%s%u.%u:", i ? " " : "", v[i].key.dataset,
                               v[i].key.partition);
        if (v[i].there)
            g_string_append_printf(text, "%d+%d", (int)v[i].memory, (int)v[i].disk);
    }
    return g_string_free(text, FALSE);
}

static void assert_updates(trp_block_store *s, const char *want)
{
    g_autofree char *got = updates(s);
    g_assert_cmpstr(got, ==, want);
}

TEST("what is kept in memory comes back as it was put")
{
    trp_block_store *s = store(100 * KIB);
    g_assert_false(has(s, 1, 0, 3, KIB));
    g_assert_true(keep(s, 1, 0, TRP_BLOCK_MEMORY, 3, KIB));
    g_assert_true(keep(s, 1, 1, TRP_BLOCK_MEMORY, 0, KIB)); /* without records */
    g_assert_true(has(s, 1, 0, 3, KIB));
    g_assert_true(has(s, 1, 1, 0, KIB));
    g_assert_false(has(s, 2, 0, 3, KIB));
    assert_used(s, 3 * KIB, 0);
    assert_updates(s, "1.0:3072+0 1.1:0+0");
    g_assert_false(keep(s, 1, 0, TRP_BLOCK_MEMORY, 1, KIB)); /* it is there */
    g_assert_true(has(s, 1, 0, 3, KIB));
    trp_block_store_free(s);
}

TEST("what is for the disk takes no memory")
{
    trp_block_store *s = store(0);
    g_assert_true(keep(s, 1, 0, TRP_BLOCK_DISK, 5, 10 * KIB));
    g_assert_true(has(s, 1, 0, 5, 10 * KIB));
    assert_used(s, 0, 50 * KIB);
    assert_updates(s, "1.0:0+51200");
    trp_block_store_free(s);
}

TEST("a partition without room in memory is not kept")
{
    trp_block_store *s = store(10 * KIB);
    g_assert_false(keep(s, 1, 0, TRP_BLOCK_MEMORY, 11, KIB));
    g_assert_false(has(s, 1, 0, 11, KIB));
    assert_used(s, 0, 0);
    assert_updates(s, "");
    trp_block_store_free(s);
}

TEST("a partition without room in memory goes to the disk")
{
    trp_block_store *s = store(10 * KIB);
    g_assert_true(keep(s, 1, 0, TRP_BLOCK_MEMORY | TRP_BLOCK_DISK, 25, KIB));
    g_assert_true(has(s, 1, 0, 25, KIB));
    assert_used(s, 0, 25 * KIB);
    trp_block_store_free(s);
}

TEST("the one used last stays")
{
    const unsigned both = TRP_BLOCK_MEMORY | TRP_BLOCK_DISK;
    trp_block_store *s = store(10 * KIB);
    g_assert_true(keep(s, 1, 0, TRP_BLOCK_MEMORY, 4, KIB));
    g_assert_true(keep(s, 2, 0, both, 4, KIB));
    g_assert_true(has(s, 1, 0, 4, KIB));
    g_free(updates(s));
    g_assert_true(keep(s, 3, 0, TRP_BLOCK_MEMORY, 4, KIB));
    assert_updates(s, "2.0:0+4096 3.0:4096+0"); /* moved */
    g_assert_true(keep(s, 4, 0, TRP_BLOCK_MEMORY, 4, KIB));
    assert_updates(s, "1.0: 4.0:4096+0"); /* dropped */
    g_assert_true(has(s, 2, 0, 4, KIB));
    g_assert_false(has(s, 1, 0, 4, KIB));
    assert_used(s, 8 * KIB, 4 * KIB);
    trp_block_store_free(s);
}

/* Else each partition of a dataset above the pool would push out the one that is read
 * next. */
TEST("partitions make no room for others of their dataset")
{
    trp_block_store *s = store(10 * KIB);
    for (uint32_t i = 0; i < 5; i++)
        g_assert_cmpint(keep(s, 1, i, TRP_BLOCK_MEMORY, 4, KIB), ==, i < 2);
    g_assert_true(has(s, 1, 0, 4, KIB));
    g_assert_true(has(s, 1, 1, 4, KIB));
    trp_block_store_free(s);
}

TEST("nothing is moved where it would not suffice")
{
    trp_block_store *s = store(10 * KIB);
    g_assert_true(keep(s, 1, 0, TRP_BLOCK_MEMORY, 4, KIB));
    g_assert_false(keep(s, 2, 0, TRP_BLOCK_MEMORY, 1, 11 * KIB));
    g_assert_true(has(s, 1, 0, 4, KIB));
    trp_block_store_free(s);
}

TEST("an attempt that fails leaves nothing")
{
    const struct trp_block_key key = {1, 0};
    trp_block_store *s = store(10 * KIB);
    trp_block_writer *w = trp_block_begin(s, key, TRP_BLOCK_MEMORY, 1);
    g_assert_true(trp_block_put(w, g_malloc0(KIB), KIB));
    g_assert_false(has(s, 1, 0, 1, KIB));
    trp_block_end(w, false);
    g_assert_false(has(s, 1, 0, 1, KIB));
    assert_used(s, 0, 0);
    trp_block_store_free(s);
}

TEST("of two attempts one is kept")
{
    const struct trp_block_key key = {1, 0};
    trp_block_store *s = store(10 * KIB);
    trp_block_writer *w = trp_block_begin(s, key, TRP_BLOCK_MEMORY, 1);
    g_assert_true(trp_block_put(w, g_malloc0(KIB), KIB));
    g_assert_true(keep(s, 1, 0, TRP_BLOCK_MEMORY, 2, KIB));
    trp_block_end(w, true);
    g_assert_true(has(s, 1, 0, 2, KIB));
    assert_used(s, 2 * KIB, 0);
    trp_block_store_free(s);
}

TEST("who reads a dropped block goes on")
{
    const struct trp_block_key key = {1, 0};
    const uint8_t *p;
    size_t n;
    trp_block_store *s = store(10 * KIB);
    g_assert_true(keep(s, 1, 0, TRP_BLOCK_MEMORY, 2, KIB));
    g_assert_true(keep(s, 1, 1, TRP_BLOCK_DISK, 2, KIB));
    g_assert_true(keep(s, 2, 0, TRP_BLOCK_MEMORY, 1, KIB));
    trp_block_reader *r = trp_block_open(s, key);
    trp_block_writer *w =
        trp_block_begin(s, (struct trp_block_key){1, 7}, TRP_BLOCK_MEMORY, 1);
    g_free(updates(s));
    trp_block_drop(s, 1);
    trp_block_end(w, true); /* it came too late */
    g_assert_false(has(s, 1, 0, 2, KIB));
    g_assert_false(has(s, 1, 7, 0, KIB));
    assert_updates(s, "1.1: 1.0:");
    for (uint32_t c = 0; c < 2; c++) {
        g_assert_cmpint(trp_block_next(r, &p, &n), ==, 1);
        g_assert_cmpuint(p[5], ==, made(key, c, 5));
    }
    assert_used(s, 3 * KIB, 0);
    trp_block_close(r);
    assert_used(s, KIB, 0);
    g_assert_false(keep(s, 1, 0, TRP_BLOCK_MEMORY, 1, KIB)); /* for good */
    g_assert_true(has(s, 2, 0, 1, KIB));
    trp_block_store_free(s);
}

/* The file has no name: it is found among this process's. */
static int find_file(void)
{
    g_autofree char *tmp = g_canonicalize_filename(g_get_tmp_dir(), NULL);
    for (int fd = 3; fd < 1000; fd++) {
        g_autofree char *link = g_strdup_printf("/proc/self/fd/%d", fd);
        g_autofree char *to = g_file_read_link(link, NULL);
        if (to && g_str_has_prefix(to, tmp) && strstr(to, "(deleted)"))
            return fd;
    }
    g_assert_not_reached();
}

TEST("a damaged block is a miss")
{
    trp_block_store *s = store(0);
    for (uint32_t i = 0; i < 3; i++)
        g_assert_true(keep(s, 1, i, TRP_BLOCK_DISK, 4, KIB));
    uint8_t wrong = (uint8_t)(made((struct trp_block_key){1, 1}, 3, 700) + 1);
    g_assert_cmpint(pwrite(find_file(), &wrong, 1, 4 * KIB + 3 * KIB + 700), ==, 1);
    g_free(updates(s));
    g_assert_true(has(s, 1, 0, 4, KIB));
    g_assert_false(has(s, 1, 1, 4, KIB));
    assert_updates(s, "1.1:");
    g_assert_true(has(s, 1, 2, 4, KIB));
    g_assert_cmpint(ftruncate(find_file(), 100), ==, 0);
    g_assert_false(has(s, 1, 2, 4, KIB));
    g_assert_true(keep(s, 1, 1, TRP_BLOCK_DISK, 4, KIB));
    g_assert_true(has(s, 1, 1, 4, KIB));
    trp_block_store_free(s);
}

TEST("what is freed of the file is given back")
{
    struct stat st;
    trp_block_store *s = store(0);
    g_assert_true(keep(s, 1, 0, TRP_BLOCK_DISK, 4, 64 * KIB));
    g_assert_true(keep(s, 2, 0, TRP_BLOCK_DISK, 4, 64 * KIB));
    trp_block_drop(s, 1);
    assert_used(s, 0, 256 * KIB);
    g_assert_true(has(s, 2, 0, 4, 64 * KIB));
    trp_block_drop(s, 2);
    g_assert_cmpint(fstat(find_file(), &st), ==, 0);
    g_assert_cmpint(st.st_size, ==, 0);
    g_assert_true(keep(s, 3, 0, TRP_BLOCK_DISK, 4, 64 * KIB));
    g_assert_true(has(s, 3, 0, 4, 64 * KIB));
    trp_block_store_free(s);
}

TEST("what a full disk has no room for is not kept")
{
    const unsigned both = TRP_BLOCK_MEMORY | TRP_BLOCK_DISK;
    struct rlimit before, small = {20 * KIB, RLIM_INFINITY};
    trp_block_store *s = store(10 * KIB);
    g_assert_cmpint(getrlimit(RLIMIT_FSIZE, &before), ==, 0);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &small), ==, 0);
    g_assert_true(keep(s, 1, 0, TRP_BLOCK_DISK, 4, 4 * KIB));
    g_assert_false(keep(s, 1, 1, TRP_BLOCK_DISK, 4, 4 * KIB));
    g_assert_cmpint(trp_block_store_problem(s), ==, EFBIG);
    g_assert_cmpint(trp_block_store_problem(s), ==, 0);
    /* in memory, and what has to make room for another is dropped */
    g_assert_true(keep(s, 2, 0, both, 9, KIB));
    g_assert_true(keep(s, 3, 0, both, 9, KIB));
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &before), ==, 0);
    g_assert_cmpint(trp_block_store_problem(s), ==, EFBIG);
    g_assert_true(has(s, 1, 0, 4, 4 * KIB));
    g_assert_false(has(s, 1, 1, 4, 4 * KIB));
    g_assert_false(has(s, 2, 0, 9, KIB));
    g_assert_true(has(s, 3, 0, 9, KIB));
    trp_block_store_free(s);
}

TEST("without a folder what memory holds is kept")
{
    const unsigned both = TRP_BLOCK_MEMORY | TRP_BLOCK_DISK;
    trp_block_store *s = trp_block_store_new(nowhere, NULL);
    trp_block_store_pool(s, 10 * KIB);
    g_assert_true(keep(s, 1, 0, both, 4, KIB));
    g_assert_false(keep(s, 1, 1, both, 8, KIB));
    g_assert_false(keep(s, 1, 2, TRP_BLOCK_DISK, 1, KIB));
    g_assert_cmpint(trp_block_store_problem(s), ==, EACCES);
    g_assert_true(has(s, 1, 0, 4, KIB));
    trp_block_store_free(s);
}

TEST("tasks that sort and blocks share the pool")
{
    trp_block_store *s = store(16 * KIB);
    g_assert_cmpuint(trp_block_store_borrow(s, 8 * KIB, 4 * KIB), ==, 8 * KIB);
    g_assert_cmpuint(trp_block_store_borrow(s, 8 * KIB, 4 * KIB), ==, 8 * KIB);
    g_assert_false(keep(s, 1, 0, TRP_BLOCK_MEMORY, 1, KIB)); /* all is borrowed */
    trp_block_store_repay(s, 8 * KIB);
    for (uint32_t i = 0; i < 8; i++)
        g_assert_true(keep(s, 1, i, TRP_BLOCK_MEMORY, 1, KIB));
    g_assert_false(keep(s, 1, 8, TRP_BLOCK_MEMORY, 1, KIB));
    /* half of the pool is left to blocks: the next one gets half of what it wants */
    g_assert_cmpuint(trp_block_store_borrow(s, 8 * KIB, 4 * KIB), ==, 4 * KIB);
    assert_used(s, 8 * KIB, 0);
    trp_block_store_repay(s, 12 * KIB);
    for (uint32_t i = 8; i < 16; i++)
        g_assert_true(keep(s, 1, i, TRP_BLOCK_MEMORY, 1, KIB));
    /* what they have above that goes, the oldest first */
    g_assert_cmpuint(trp_block_store_borrow(s, 8 * KIB, 4 * KIB), ==, 8 * KIB);
    g_assert_false(has(s, 1, 7, 1, KIB));
    g_assert_true(has(s, 1, 8, 1, KIB));
    assert_used(s, 8 * KIB, 0);
    trp_block_store_repay(s, 8 * KIB);
    trp_block_store_free(s);
}

TEST("a block that is read stays in memory")
{
    trp_block_store *s = store(16 * KIB);
    g_assert_true(keep(s, 1, 0, TRP_BLOCK_MEMORY, 16, KIB));
    trp_block_reader *r = trp_block_open(s, (struct trp_block_key){1, 0});
    g_assert_false(keep(s, 2, 0, TRP_BLOCK_MEMORY, 1, KIB));
    g_assert_cmpuint(trp_block_store_borrow(s, 8 * KIB, 4 * KIB), ==, 4 * KIB);
    trp_block_store_repay(s, 4 * KIB);
    trp_block_close(r);
    g_assert_true(keep(s, 2, 0, TRP_BLOCK_MEMORY, 1, KIB));
    g_assert_false(has(s, 1, 0, 16, KIB));
    trp_block_store_free(s);
}

/* ---- many threads ---------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 400, DATASETS = 6, PARTITIONS = 8 };

struct worker {
    trp_block_store *store;
    pthread_t thread;
    uint32_t seed;
    uint32_t hits;
};

static uint32_t next(uint32_t *seed)
{
    return *seed = *seed * 1664525 + 1013904223;
}

static void *work(void *context)
{
    struct worker *w = context;
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t dataset = (next(&w->seed) >> 16) % DATASETS;
        uint32_t partition = (next(&w->seed) >> 16) % PARTITIONS;
        uint32_t what = (next(&w->seed) >> 16) % 16;
        if (what == 0) {
            uint64_t got = trp_block_store_borrow(w->store, 8 * KIB, 4 * KIB);
            g_assert_cmpuint(got, >=, 4 * KIB);
            trp_block_store_repay(w->store, got);
        } else if (what == 1 && i > ROUNDS / 2) {
            trp_block_drop(w->store, dataset % 2);
        } else if (has(w->store, dataset, partition, 3, KIB)) {
            w->hits++;
        } else {
            keep(w->store, dataset, partition, 1 + dataset % 3, 3, KIB);
        }
    }
    return NULL;
}

TEST("threads see whole blocks only")
{
    struct worker w[THREADS] = {0};
    trp_block_store *s = store(32 * KIB);
    uint32_t hits = 0;
    uint64_t memory, disk;
    for (int i = 0; i < THREADS; i++) {
        w[i].store = s;
        w[i].seed = (uint32_t)i + 1;
        g_assert_cmpint(pthread_create(&w[i].thread, NULL, work, &w[i]), ==, 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(w[i].thread, NULL);
        hits += w[i].hits;
    }
    g_assert_cmpuint(hits, >, THREADS * ROUNDS / 8);
    trp_block_store_used(s, &memory, &disk);
    g_assert_cmpuint(memory, <=, 32 * KIB);
    for (uint32_t d = 0; d < DATASETS; d++)
        trp_block_drop(s, d);
    assert_used(s, 0, 0);
    trp_block_store_free(s);
}
