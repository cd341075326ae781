/*
 * lib/wire: what is written is read back; nothing else is taken. Every truncation of
 * every message is refused, every random or flipped byte gives a verdict, not a crash
 * (run under the sanitizers for the reads).
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "wire/blocks.h"
#include "wire/map_output.h"
#include "wire/message.h"

TEST("a buffer and a view agree")
{
    struct trp_buf b = {0};
    trp_put_u8(&b, 0xfe);
    trp_put_u16(&b, 0xfedc);
    trp_put_u32(&b, 0xfedcba98u);
    trp_put_u64(&b, UINT64_C(0xfedcba9876543210));
    trp_put_s64(&b, INT64_MIN);
    trp_put_bytes(&b, "a\0b", 3);
    trp_put_text(&b, NULL);
    trp_put_text(&b, "täxt");
    trp_put_raw(&b, "xy", 2);
    const uint8_t first[] = {0xfe, 0xdc, 0xfe, 0x98, 0xba, 0xdc, 0xfe};
    g_assert_cmpmem(b.data, sizeof first, first, sizeof first);
    struct trp_view v = trp_view_of(b.data, b.size);
    g_assert_cmphex(trp_get_u8(&v), ==, 0xfe);
    g_assert_cmphex(trp_get_u16(&v), ==, 0xfedc);
    g_assert_cmphex(trp_get_u32(&v), ==, 0xfedcba98u);
    g_assert_cmphex(trp_get_u64(&v), ==, UINT64_C(0xfedcba9876543210));
    g_assert_cmpint(trp_get_s64(&v), ==, INT64_MIN);
    size_t n;
    const uint8_t *bytes = trp_get_bytes(&v, &n);
    g_assert_cmpmem(bytes, n, "a\0b", 3);
    char *empty = trp_get_text(&v), *text = trp_get_text(&v);
    g_assert_cmpstr(empty, ==, "");
    g_assert_cmpstr(text, ==, "täxt");
    g_assert_false(trp_view_end(&v));
    g_assert_cmpmem(trp_get_raw(&v, 2), 2, "xy", 2);
    g_assert_true(trp_view_end(&v));
    g_assert_null(trp_get_raw(&v, 1));
    g_assert_true(v.bad);
    g_assert_cmpuint(trp_get_u8(&v), ==, 0);
    g_assert_false(trp_view_end(&v));
    free(empty);
    free(text);
    trp_buf_free(&b);
}

TEST("a count that cannot fit is refused")
{
    struct trp_buf b = {0};
    trp_put_u32(&b, 3);
    trp_put_raw(&b, "12345678", 8);
    struct trp_view v = trp_view_of(b.data, b.size);
    g_assert_cmpuint(trp_get_count(&v, 2), ==, 3);
    g_assert_false(v.bad);
    v = trp_view_of(b.data, b.size);
    g_assert_cmpuint(trp_get_count(&v, 3), ==, 0);
    g_assert_true(v.bad);
    trp_buf_free(&b);
}

TEST("a text with a NUL inside is refused")
{
    struct trp_buf b = {0};
    trp_put_bytes(&b, "a\0b", 3);
    struct trp_view v = trp_view_of(b.data, b.size);
    g_assert_null(trp_get_text(&v));
    g_assert_true(v.bad);
    trp_buf_free(&b);
}

TEST("a buffer that cannot grow stays failed")
{
    struct trp_buf b = {0};
    trp_put_u8(&b, 1);
    g_assert_null(trp_buf_reserve(&b, SIZE_MAX / 2));
    g_assert_true(b.failed);
    trp_put_u8(&b, 2);
    g_assert_cmpuint(b.size, ==, 1);
    trp_buf_clear(&b);
    trp_put_u8(&b, 3);
    g_assert_cmpuint(b.data[0], ==, 3);
    trp_buf_free(&b);
}

/* ---- samples of all messages ----------------------------------------------------- */

static const char *const argv_sample[] = {"/bin/sh", "-c", "echo \"$TROUPE_ITEM\"\n"};
static const char *const env_sample[] = {"PATH=/bin", "EMPTY="};
static const char *const resource_sample[] = {"gpu", "CUDA_VISIBLE_DEVICES"};
static const char *const output_sample[] = {"a/${task}", "b/${item}.*"};
static const struct trp_command command_sample = {
    .argv = argv_sample,
    .nargv = 3,
    .env = env_sample,
    .nenv = 2,
    .resource_env = resource_sample,
    .nresource_env = 2,
    .cwd = "/tmp/with space",
    .base = "/tmp",
    .log_dir = "/runs/1/logs",
    .run = "etl-1",
    .run_dir = "/runs/1",
    .one_log = true,
    .outputs = output_sample,
    .noutputs = 2,
    .outputs_wait_ns = 60,
};
static const struct trp_stage_message stage_sample = {
    .stage = {7},
    .stage_attempt = 1,
    .whole = true,
    .work = TRP_WORK_FUNCTION,
    .ntasks = 100000,
    .task_cpus = 2,
    .timeout_ns = INT64_C(5000000000),
    .records_ns = 100000000,
    .name = "wörter",
    .profile = "gpu",
    .body = (const uint8_t *)"\0body",
    .body_size = 5,
};
/* clang-format 14 crashes on aligning these. */
/* clang-format off */
static const struct trp_launch launch_samples[] = {
    {.attempt = {UINT64_MAX},
     .stage = {1},
     .task = UINT32_MAX,
     .number = 65535,
     .seen = UINT32_MAX,
     .queued = 1                                                                             },
    { .attempt = {2}, .stage = {3},              .task = 4, .number = 5, .has_item = 1},
    {                                                                               .attempt = {UINT64_C(0x123456789)},
     .stage = {9},
     .has_item = 1,
     .resources = (const uint8_t *)"gpu=0,1\n",
     .resources_size = 8,
     .extra = (const uint8_t *)"item\0\n",
     .extra_size = 6},
};
static const struct trp_end end_samples[] = {
    {.attempt = {UINT64_MAX},         .duration_ns = TRP_LONGEST_NS},
    {.attempt = {1},                  .duration_ns = 5,         .cpu_ns = UINT32_MAX},
    {.attempt = {2},                               .duration_ns = 5,                                          .cpu_ns = INT64_C(1) << 32},
    {.attempt = {3},
     .status = TRP_END_EXIT,
     .code = -77,
     .peak_kib = 123456,
     .extra = (const uint8_t *)"why",
     .extra_size = 3},
    {.attempt = {4},
     .status = TRP_END_MEMORY,
     .code = 9,
     .limit_mib = 512,
     .duration_ns = 1,
     .peak_kib = 600000},
    {.attempt = {5},
     .records_in = 1,
     .records_out = 2,
     .bytes_in = 3,
     .bytes_out = TRP_LARGEST - 1,
     .extra = (const uint8_t *)"\0r",
     .extra_size = 2},
    {.attempt = {6},                  .status = TRP_END_PLATFORM                                 },
};
/* clang-format on */

static void put_launches(struct trp_buf *b)
{
    trp_launch_begin(b);
    for (size_t i = 0; i < G_N_ELEMENTS(launch_samples); i++)
        trp_launch_put(b, &launch_samples[i]);
    trp_batch_finish(b);
}

static void put_ends(struct trp_buf *b)
{
    trp_ends_begin(b);
    for (size_t i = 0; i < G_N_ELEMENTS(end_samples); i++)
        trp_ends_put(b, &end_samples[i]);
    trp_batch_finish(b);
}

static void put_stage(struct trp_buf *b)
{
    trp_stage_message_put(b, &stage_sample);
}

static void put_command(struct trp_buf *b)
{
    trp_command_put(b, &command_sample);
}

static void put_kill(struct trp_buf *b)
{
    trp_kill_put(b, (trp_attempt_id){77}, TRP_KILL_SOFT);
}

static void put_forget(struct trp_buf *b)
{
    trp_number_put(b, TRP_MSG_FORGET, 5);
}

static void put_sync(struct trp_buf *b)
{
    struct trp_sync s = {.attempt = {88},
                         .epoch = 3,
                         .kind = TRP_SYNC_ALL_GATHER,
                         .message = (const uint8_t *)"mine",
                         .size = 4};
    trp_sync_put(b, &s);
}

static void put_synced(struct trp_buf *b)
{
    struct trp_synced s = {.attempt = {88}, .epoch = 3, .count = 3};
    trp_synced_put(b, &s);
    trp_put_bytes(b, "first", 5);
    trp_put_bytes(b, "", 0);
    trp_put_bytes(b, "third", 5);
}

/* Read by nobody, so that every byte is. */
static volatile unsigned touched;

/* Decodes all of it and touches every byte it is given. */
static unsigned touch(const uint8_t *p, size_t n)
{
    unsigned sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += p[i];
    return sum;
}

static int take_launches(const void *p, size_t n)
{
    struct trp_view v;
    struct trp_launch l;
    uint32_t count;
    int rc = trp_launch_open(p, n, &v, &count);
    if (rc < 0)
        return rc;
    while ((rc = trp_launch_next(&v, &l)) > 0)
        touched += touch(l.resources, l.resources_size) + touch(l.extra, l.extra_size);
    return rc;
}

static int take_ends(const void *p, size_t n)
{
    struct trp_view v;
    struct trp_end e;
    uint32_t count;
    int rc = trp_ends_open(p, n, &v, &count);
    if (rc < 0)
        return rc;
    while ((rc = trp_ends_next(&v, &e)) > 0)
        touched += touch(e.extra, e.extra_size);
    return rc;
}

static int take_stage(const void *p, size_t n)
{
    struct trp_stage_message m;
    int rc = trp_stage_message_get(p, n, &m);
    if (rc == 0)
        trp_stage_message_free(&m);
    return rc;
}

static int take_command(const void *p, size_t n)
{
    struct trp_command c;
    int rc = trp_command_get(p, n, &c);
    if (rc == 0)
        trp_command_free(&c);
    return rc;
}

static int take_kill(const void *p, size_t n)
{
    trp_attempt_id a;
    enum trp_kill_mode mode;
    return trp_kill_get(p, n, &a, &mode);
}

static int take_forget(const void *p, size_t n)
{
    uint32_t stage;
    return trp_number_get(p, n, TRP_MSG_FORGET, &stage);
}

static int take_sync(const void *p, size_t n)
{
    struct trp_sync s;
    int rc = trp_sync_get(p, n, &s);
    if (rc == 0)
        touched += touch(s.message, s.size);
    return rc;
}

static int take_synced(const void *p, size_t n)
{
    struct trp_synced s;
    int rc = trp_synced_get(p, n, &s);
    for (uint32_t i = 0; rc == 0 && i < s.count; i++) {
        size_t size;
        const uint8_t *m = trp_get_bytes(&s.counted, &size);
        touched += touch(m, size);
    }
    return rc;
}

static void put_blocks(struct trp_buf *b)
{
    trp_blocks_begin(b, 28, 2);
    trp_block_state_put(b, &(struct trp_block_state){.dataset = 3,
                                                     .partition = 70000,
                                                     .attempt = {UINT64_MAX},
                                                     .there = true,
                                                     .level = 3,
                                                     .memory = 5,
                                                     .disk = UINT64_C(1) << 40});
    trp_block_state_put(b, &(struct trp_block_state){.dataset = 4, .level = 1});
}

static int take_blocks(const void *p, size_t n)
{
    struct trp_view v;
    struct trp_block_state s;
    uint32_t problem, count, got = 0;
    int rc = trp_blocks_open(p, n, &v, &problem, &count);
    while (rc == 0 && (rc = trp_blocks_next(&v, &s)) > 0) {
        got++;
        rc = 0;
    }
    g_assert_cmpuint(rc == 0 ? got : count, ==, count);
    return rc;
}

static void put_unpersist(struct trp_buf *b)
{
    trp_number_put(b, TRP_MSG_UNPERSIST, 4711);
}

static int take_unpersist(const void *p, size_t n)
{
    uint32_t dataset;
    return trp_number_get(p, n, TRP_MSG_UNPERSIST, &dataset);
}

static const uint32_t dropped[] = {4711, 3};

static void put_drop(struct trp_buf *b)
{
    trp_drop_put(b, dropped, 2);
}

static int take_drop(const void *p, size_t n)
{
    uint32_t *datasets, count;
    int rc = trp_drop_get(p, n, &datasets, &count);
    if (rc == 0)
        free(datasets);
    return rc;
}

static const struct {
    const char *name;
    void (*put)(struct trp_buf *b);
    int (*take)(const void *p, size_t n);
} kinds[] = {
    {"STAGE",     put_stage,     take_stage    },
    {"command",   put_command,   take_command  },
    {"LAUNCH",    put_launches,  take_launches },
    {"ENDS",      put_ends,      take_ends     },
    {"KILL",      put_kill,      take_kill     },
    {"FORGET",    put_forget,    take_forget   },
    {"SYNC",      put_sync,      take_sync     },
    {"SYNCED",    put_synced,    take_synced   },
    {"BLOCKS",    put_blocks,    take_blocks   },
    {"UNPERSIST", put_unpersist, take_unpersist},
    {"DROP",      put_drop,      take_drop     },
};

/* ---- round trips ---- */

TEST("a stage comes back as it was")
{
    struct trp_buf b = {0};
    put_stage(&b);
    struct trp_stage_message m;
    g_assert_cmpint(trp_stage_message_get(b.data, b.size, &m), ==, 0);
    memset(b.data, 0xff, b.size); /* nothing is borrowed */
    g_assert_cmpuint(m.stage.n, ==, 7);
    g_assert_cmpuint(m.stage_attempt, ==, 1);
    g_assert_true(m.whole);
    g_assert_cmpuint(trp_stage_attempt_of(&m, 2), ==, 3);
    g_assert_cmpint(m.work, ==, TRP_WORK_FUNCTION);
    g_assert_cmpuint(m.ntasks, ==, 100000);
    g_assert_cmpuint(m.task_cpus, ==, 2);
    g_assert_cmpint(m.timeout_ns, ==, stage_sample.timeout_ns);
    g_assert_cmpint(m.records_ns, ==, stage_sample.records_ns);
    g_assert_cmpstr(m.name, ==, "wörter");
    g_assert_cmpstr(m.profile, ==, "gpu");
    g_assert_cmpmem(m.body, m.body_size, "\0body", 5);
    trp_stage_message_free(&m);
    trp_buf_free(&b);
}

TEST("datasets to be dropped come back")
{
    struct trp_buf b = {0};
    uint32_t *datasets, count;
    put_drop(&b);
    g_assert_cmpint(trp_drop_get(b.data, b.size, &datasets, &count), ==, 0);
    g_assert_cmpmem(datasets, count * sizeof *datasets, dropped, sizeof dropped);
    free(datasets);
    trp_buf_free(&b);
}

TEST("a command comes back ready for execve")
{
    struct trp_buf b = {0};
    put_command(&b);
    struct trp_command c;
    g_assert_cmpint(trp_command_get(b.data, b.size, &c), ==, 0);
    memset(b.data, 0xff, b.size);
    g_assert_cmpuint(c.nargv, ==, 3);
    g_assert_cmpuint(c.nenv, ==, 2);
    g_assert_cmpuint(c.nresource_env, ==, 2);
    for (int i = 0; i < 3; i++)
        g_assert_cmpstr(c.argv[i], ==, argv_sample[i]);
    g_assert_null(c.argv[3]);
    g_assert_cmpstr(c.env[1], ==, "EMPTY=");
    g_assert_null(c.env[2]);
    g_assert_cmpstr(c.resource_env[1], ==, "CUDA_VISIBLE_DEVICES");
    g_assert_cmpstr(c.cwd, ==, command_sample.cwd);
    g_assert_cmpstr(c.base, ==, command_sample.base);
    g_assert_true(c.one_log);
    g_assert_cmpuint(c.noutputs, ==, 2);
    g_assert_cmpstr(c.outputs[1], ==, output_sample[1]);
    g_assert_null(c.outputs[2]);
    g_assert_cmpint(c.outputs_wait_ns, ==, 60);
    g_assert_cmpstr(c.log_dir, ==, command_sample.log_dir);
    g_assert_cmpstr(c.run, ==, command_sample.run);
    g_assert_cmpstr(c.run_dir, ==, command_sample.run_dir);
    trp_command_free(&c);
    trp_buf_free(&b);
}

TEST("a command without argv or with odd pairs is refused")
{
    struct trp_buf b = {0};
    struct trp_command c = command_sample;
    c.nargv = 0;
    trp_command_put(&b, &c);
    g_assert_cmpint(take_command(b.data, b.size), ==, TRP_EPROTO);
    trp_buf_clear(&b);
    c = command_sample;
    c.nresource_env = 1;
    trp_command_put(&b, &c);
    g_assert_cmpint(take_command(b.data, b.size), ==, TRP_EPROTO);
    trp_buf_free(&b);
}

TEST("launches come back in order")
{
    struct trp_buf b = {0};
    put_launches(&b);
    g_assert_cmpuint(b.size, ==, 8 + 3 * 32 + 8 + 6);
    g_assert_cmpint(trp_message_kind_of(b.data, b.size), ==, TRP_MSG_LAUNCH);
    struct trp_view v;
    struct trp_launch l = {0};
    uint32_t count;
    g_assert_cmpint(trp_launch_open(b.data, b.size, &v, &count), ==, 0);
    g_assert_cmpuint(count, ==, G_N_ELEMENTS(launch_samples));
    for (size_t i = 0; i < count; i++) {
        const struct trp_launch *want = &launch_samples[i];
        g_assert_cmpint(trp_launch_next(&v, &l), ==, 1);
        g_assert_cmpuint(l.attempt.n, ==, want->attempt.n);
        g_assert_cmpuint(l.stage.n, ==, want->stage.n);
        g_assert_cmpuint(l.task, ==, want->task);
        g_assert_cmpuint(l.number, ==, want->number);
        g_assert_cmpuint(l.queued, ==, want->queued);
        g_assert_cmpuint(l.seen, ==, want->seen);
        g_assert_cmpuint(l.has_item, ==, want->has_item);
        g_assert_cmpmem(l.resources, l.resources_size, want->resources,
                        want->resources_size);
        g_assert_cmpmem(l.extra, l.extra_size, want->extra, want->extra_size);
    }
    g_assert_cmpint(trp_launch_next(&v, &l), ==, 0);
    trp_buf_free(&b);
}

TEST("ends come back in order")
{
    struct trp_buf b = {0};
    put_ends(&b);
    g_assert_cmpuint(b.size, ==, 8 + 2 * 24 + 5 * 80 + 3 + 2);
    struct trp_view v;
    struct trp_end e = {0};
    uint32_t count;
    g_assert_cmpint(trp_ends_open(b.data, b.size, &v, &count), ==, 0);
    g_assert_cmpuint(count, ==, G_N_ELEMENTS(end_samples));
    for (size_t i = 0; i < count; i++) {
        const struct trp_end *want = &end_samples[i];
        g_assert_cmpint(trp_ends_next(&v, &e), ==, 1);
        g_assert_cmpuint(e.attempt.n, ==, want->attempt.n);
        g_assert_cmpuint(e.status, ==, want->status);
        g_assert_cmpint(e.code, ==, want->code);
        g_assert_cmpint(e.duration_ns, ==, want->duration_ns);
        g_assert_cmpint(e.cpu_ns, ==, want->cpu_ns);
        g_assert_cmpint(e.peak_kib, ==, want->peak_kib);
        g_assert_cmpint(e.limit_mib, ==, want->limit_mib);
        g_assert_cmpuint(e.records_in, ==, want->records_in);
        g_assert_cmpuint(e.records_out, ==, want->records_out);
        g_assert_cmpuint(e.bytes_in, ==, want->bytes_in);
        g_assert_cmpuint(e.bytes_out, ==, want->bytes_out);
        g_assert_cmpmem(e.extra, e.extra_size, want->extra, want->extra_size);
    }
    g_assert_cmpint(trp_ends_next(&v, &e), ==, 0);
    trp_buf_free(&b);
}

/* One end with that change; what a decoder makes of it. */
static int opens(const struct trp_end *e)
{
    struct trp_buf b = {0};
    struct trp_view v;
    uint32_t count;
    trp_ends_begin(&b);
    trp_ends_put(&b, e);
    trp_batch_finish(&b);
    int rc = trp_ends_open(b.data, b.size, &v, &count);
    trp_buf_free(&b);
    return rc;
}

TEST("numbers that nothing can have are refused")
{
    const int64_t second = 1000000000, year = INT64_C(31536000) * second;
    struct trp_end e = {
        .duration_ns = second, .cpu_ns = 64 * second, .peak_kib = 1 << 30};
    g_assert_cmpint(opens(&e), ==, 0);
    e.cpu_ns = year;
    g_assert_cmpint(opens(&e), ==, TRP_EPROTO);
    e = (struct trp_end){.duration_ns = 2 * year};
    g_assert_cmpint(opens(&e), ==, TRP_EPROTO);
    e = (struct trp_end){.duration_ns = -1};
    g_assert_cmpint(opens(&e), ==, TRP_EPROTO);
    e = (struct trp_end){.peak_kib = INT64_MAX / 512};
    g_assert_cmpint(opens(&e), ==, TRP_EPROTO);
    e = (struct trp_end){.bytes_in = UINT64_MAX};
    g_assert_cmpint(opens(&e), ==, TRP_EPROTO);
    e = (struct trp_end){.has_data = true, .data.wait_ns = UINT64_MAX};
    g_assert_cmpint(opens(&e), ==, TRP_EPROTO);
}

TEST("records come back in order")
{
    struct trp_buf b = {0};
    struct trp_view v;
    trp_attempt_id a;
    uint64_t records;
    trp_records_put(&b, (trp_attempt_id){7}, 1);
    trp_records_put(&b, (trp_attempt_id){UINT64_MAX}, UINT64_MAX - 1);
    g_assert_cmpint(trp_message_kind_of(b.data, b.size), ==, TRP_MSG_RECORDS);
    g_assert_cmpint(trp_records_open(b.data, b.size, &v), ==, 0);
    g_assert_true(trp_records_next(&v, &a, &records));
    g_assert_cmpuint(a.n, ==, 7);
    g_assert_cmpuint(records, ==, 1);
    g_assert_true(trp_records_next(&v, &a, &records));
    g_assert_cmpuint(a.n, ==, UINT64_MAX);
    g_assert_cmpuint(records, ==, UINT64_MAX - 1);
    g_assert_false(trp_records_next(&v, &a, &records));
    for (size_t n = 0; n < b.size; n++) { /* cut: whole entries or none */
        g_autofree uint8_t *cut = g_memdup2(b.data, n ? n : 1);
        g_assert_cmpint(trp_records_open(cut, n, &v), ==,
                        n == 1 || n == 17 ? 0 : TRP_EPROTO);
    }
    b.data[0] = TRP_MSG_SYNC;
    g_assert_cmpint(trp_records_open(b.data, b.size, &v), ==, TRP_EPROTO);
    trp_buf_free(&b);
}

TEST("small messages come back as they were")
{
    struct trp_buf b = {0};
    trp_attempt_id a;
    uint32_t n;
    enum trp_kill_mode mode;
    put_kill(&b);
    g_assert_cmpint(trp_kill_get(b.data, b.size, &a, &mode), ==, 0);
    g_assert_cmpuint(a.n, ==, 77);
    g_assert_cmpint(mode, ==, TRP_KILL_SOFT);
    trp_buf_clear(&b);
    put_forget(&b);
    g_assert_cmpint(trp_number_get(b.data, b.size, TRP_MSG_FORGET, &n), ==, 0);
    g_assert_cmpuint(n, ==, 5);
    trp_buf_clear(&b);
    trp_shutdown_put(&b, false);
    g_assert_cmpint(trp_message_kind_of(b.data, b.size), ==, TRP_MSG_SHUTDOWN);
    g_assert_cmpint(trp_message_kind_of(b.data, 0), ==, 0);
    b.data[0] = TRP_MSG_DROP + 1;
    g_assert_cmpint(trp_message_kind_of(b.data, b.size), ==, 0);
    trp_buf_free(&b);
}

TEST("what executors keep comes back")
{
    struct trp_buf b = {0};
    struct trp_view v;
    struct trp_block_state s;
    uint32_t n, problem;
    put_blocks(&b);
    g_assert_cmpint(trp_blocks_open(b.data, b.size, &v, &problem, &n), ==, 0);
    g_assert_cmpuint(problem, ==, 28);
    g_assert_cmpuint(n, ==, 2);
    g_assert_cmpint(trp_blocks_next(&v, &s), ==, 1);
    g_assert_cmpuint(s.dataset, ==, 3);
    g_assert_cmpuint(s.partition, ==, 70000);
    g_assert_cmpuint(s.attempt.n, ==, UINT64_MAX);
    g_assert_true(s.there);
    g_assert_cmpuint(s.level, ==, 3);
    g_assert_cmpuint(s.memory, ==, 5);
    g_assert_cmpuint(s.disk, ==, UINT64_C(1) << 40);
    g_assert_cmpint(trp_blocks_next(&v, &s), ==, 1);
    g_assert_false(s.there);
    g_assert_cmpint(trp_blocks_next(&v, &s), ==, 0);
    trp_buf_clear(&b);
    put_unpersist(&b);
    g_assert_cmpint(trp_number_get(b.data, b.size, TRP_MSG_UNPERSIST, &n), ==, 0);
    g_assert_cmpuint(n, ==, 4711);
    trp_buf_free(&b);
}

TEST("a sync and its answer come back")
{
    struct trp_buf b = {0};
    struct trp_sync s;
    struct trp_synced a;
    size_t size;
    put_sync(&b);
    g_assert_cmpint(trp_sync_get(b.data, b.size, &s), ==, 0);
    g_assert_cmpuint(s.attempt.n, ==, 88);
    g_assert_cmpuint(s.epoch, ==, 3);
    g_assert_cmpint(s.kind, ==, TRP_SYNC_ALL_GATHER);
    g_assert_cmpmem(s.message, s.size, "mine", 4);
    b.data[1] = 0; /* a barrier brings no message */
    g_assert_cmpint(trp_sync_get(b.data, b.size, &s), ==, TRP_EPROTO);
    trp_buf_clear(&b);
    put_synced(&b);
    g_assert_cmpint(trp_synced_get(b.data, b.size, &a), ==, 0);
    g_assert_cmpuint(a.count, ==, 3);
    g_assert_cmpmem(trp_get_bytes(&a.counted, &size), size, "first", 5);
    trp_get_bytes(&a.counted, &size);
    g_assert_cmpuint(size, ==, 0);
    g_assert_cmpmem(trp_get_bytes(&a.counted, &size), size, "third", 5);
    trp_buf_clear(&b);
    struct trp_synced refused = {
        .status = TRP_ETIME, .text = (const uint8_t *)"too late", .text_size = 8};
    trp_synced_put(&b, &refused);
    g_assert_cmpint(trp_synced_get(b.data, b.size, &a), ==, 0);
    g_assert_cmpint(a.status, ==, TRP_ETIME);
    g_assert_cmpmem(a.text, a.text_size, "too late", 8);
    trp_buf_free(&b);
}

/* ---- what is not a message ---- */

TEST("every truncation of every message is refused")
{
    for (size_t k = 0; k < G_N_ELEMENTS(kinds); k++) {
        struct trp_buf b = {0};
        kinds[k].put(&b);
        g_assert_cmpint(kinds[k].take(b.data, b.size), ==, 0);
        for (size_t n = 0; n < b.size; n++) {
            g_autofree uint8_t *cut =
                g_memdup2(b.data, n); /* of n bytes, for the sanitizer */
            if (kinds[k].take(cut, n) != TRP_EPROTO)
                g_error("%s cut to %zu of %zu bytes was taken", kinds[k].name, n,
                        b.size);
        }
        trp_put_u8(&b, 0);
        if (kinds[k].take(b.data, b.size) != TRP_EPROTO)
            g_error("%s with a byte too many was taken", kinds[k].name);
        trp_buf_free(&b);
    }
}

TEST("another kind is refused")
{
    for (size_t k = 0; k < G_N_ELEMENTS(kinds); k++)
        for (size_t other = 0; other < G_N_ELEMENTS(kinds); other++) {
            struct trp_buf b = {0};
            kinds[other].put(&b);
            if (k != other)
                g_assert_cmpint(kinds[k].take(b.data, b.size), ==, TRP_EPROTO);
            trp_buf_free(&b);
        }
}

TEST("random bytes get a verdict")
{
    uint8_t bytes[300];
    for (int round = 0; round < 20000; round++) {
        size_t k = (size_t)g_test_rand_int_range(0, G_N_ELEMENTS(kinds));
        size_t n = (size_t)g_test_rand_int_range(0, sizeof bytes);
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)g_test_rand_int_range(0, 256);
        if (n > 0)
            bytes[0] = (uint8_t)g_test_rand_int_range(1, 7);
        int rc = kinds[k].take(bytes, n);
        g_assert_true(rc == 0 || rc == TRP_EPROTO);
    }
}

TEST("flipped bytes get a verdict")
{
    for (size_t k = 0; k < G_N_ELEMENTS(kinds); k++) {
        struct trp_buf b = {0};
        kinds[k].put(&b);
        for (int round = 0; round < 5000; round++) {
            g_autofree uint8_t *copy = g_memdup2(b.data, b.size);
            for (int flips = g_test_rand_int_range(1, 4); flips > 0; flips--)
                copy[g_test_rand_int_range(0, (int)b.size)] =
                    (uint8_t)g_test_rand_int_range(0, 256);
            int rc = kinds[k].take(copy, b.size);
            g_assert_true(rc == 0 || rc == TRP_EPROTO);
        }
        trp_buf_free(&b);
    }
}

TEST("a million launches take a few nanoseconds each")
{
    struct trp_buf b = {0};
    struct trp_view v;
    struct trp_launch l = {.task = 1};
    uint32_t count;
    uint64_t sum = 0;
    gint64 begin = g_get_monotonic_time();
    for (int batch = 0; batch < 4000; batch++) {
        trp_launch_begin(&b);
        for (uint32_t i = 0; i < 256; i++) {
            l.attempt.n = i;
            trp_launch_put(&b, &l);
        }
        trp_batch_finish(&b);
        g_assert_cmpint(trp_launch_open(b.data, b.size, &v, &count), ==, 0);
        while (trp_launch_next(&v, &l) > 0)
            sum += l.attempt.n;
    }
    double each = (double)(g_get_monotonic_time() - begin) * 1e3 / (4000 * 256);
    g_test_message("put, checked and taken in %.1f ns each", each);
    g_assert_cmpuint(sum, ==, UINT64_C(4000) * (255 * 256 / 2));
    trp_buf_free(&b);
}
