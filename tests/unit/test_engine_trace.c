/*
 * An engine's trace: what goes in comes out, nothing that is broken is taken, and a
 * decision that differs is found at its event.
 */
#include <glib.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "conf/options.h"
#include "core/topo/hosts.h"
#include "events/engine_fields_table.h"
#include "events/engine_trace.h"
#include "events/engine_trace_form.h"
#include "sim/run/random.h"
#include "sim/run/replay.h"
#include "unit.h"

static const struct trp_parent_spec parents[] = {
    {.stage = 0, .each = true}
};
static const int32_t codes[] = {2, -7};
static const struct trp_stage_spec stages[] = {
    {.name = "a",     .tasks_known = true, .ntasks = 3},
    { .name = "b",
     .ranks = 0,
     .parents = parents,
     .nparents = 1,
     .tasks_known = true,
     .ntasks = 3,
     .not_on = codes,
     .nnot_on = 2,
     .max_executors = TRP_NONE},
};
static const struct trp_job_spec job = {.stages = stages, .nstages = 2};
static const uint32_t first[] = {0, 2, 2, 3};
static const struct trp_place places[] = {
    {"h1", TRP_NONE},
    {"h2", 4       },
    {"h1", 0       }
};
static const uint8_t done[] = {0, 1, 0};
static const uint32_t values[] = {0, 1, 1};
static const struct trp_by_task above[] = {
    {0, 1},
    {4, 0}
};
static const struct trp_by by[] = {
    {.nvalues = 2, .values = values, .ntasks = 3, .above = above, .nabove = 2},
    {.nvalues = 1}
};
static const char *const addresses[] = {"0", "10"};
static const struct trp_resource_addresses resources[] = {
    {"gpu", addresses, 2}
};

static const struct trp_host_rack racks[] = {
    {"h1", "r1"},
    {"h2", "r1"}
};

static const struct trp_dataset_place dataset_places[] = {
    {.partition = 1, .host = "h1"}
};
static const struct trp_dataset_spec dataset = {
    .name = "d", .partitions = 2, .prefer = dataset_places, .nprefer = 1};

static const struct trp_event events[] = {
    {.kind = TRP_EVENT_JOB,                                                         .job = {&job}},
    {.kind = TRP_EVENT_STAGE_TASKS,
     .tasks = {.stage = {7}, .ntasks = 3, .prefer = {first, places}, .done = done}},
    {.kind = TRP_EVENT_STAGE_TASKS, .tasks = {.stage = {7}, .ntasks = 3}},
    {.kind = TRP_EVENT_STAGE_TASKS,
     .tasks = {.stage = {7}, .ntasks = 3, .by = by, .nby = 2}},
    {.kind = TRP_EVENT_STAGE_REFUSED,                                                                             .refused_stage = {{1}, "no match"}},
    {.kind = TRP_EVENT_PROFILE_FIT,                      .fit = {.profile = {1}, .text = "cores wanted 8"}},
    {.kind = TRP_EVENT_CONTENDED,                                               .contended = {true}},
    {.kind = TRP_EVENT_EXECUTOR_GRANTED,                                                                             .granted = {{3}}},
    {.kind = TRP_EVENT_EXECUTOR_ADDED,       .added = {{3}, "h1", NULL, resources, 1, 0}},
    {.kind = TRP_EVENT_EXECUTOR_REFUSED,
     .refused = {{3}, TRP_REFUSED_LATER, true, NULL, "no luck"}},
    {.kind = TRP_EVENT_EXECUTOR_LOST,
     .lost = {.executor = {3},
              .reason = TRP_LOSS_CRASHED,
              .has_culprit = true,
              .culprit = {UINT64_C(0xfedcba9812345678)},
              .code = 11}},
    {.kind = TRP_EVENT_TASK_ENDED,
     .ended = {.attempt = {5},
               .status = TRP_END_EXIT,
               .code = -1,
               .duration_ns = INT64_MIN}},
    {.kind = TRP_EVENT_CANCEL_JOB,                                              .cancel = {{9}}},
    {.kind = TRP_EVENT_DATASET,                                                                             .dataset = {&dataset}},
    {.kind = TRP_EVENT_CACHED,                    .cached = {.dataset = 3, .partition = 1, .gone = true}},
    {.kind = TRP_EVENT_DATASET_FREED,                                               .freed = {3}},
    {.kind = TRP_EVENT_DRAIN                                                                            },
    {.kind = TRP_EVENT_TIME                                          },
};

TEST("events come out as they went in")
{
    for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
        struct trp_buf b = {0}, again = {0};
        struct trp_fields_memory m = {0};
        struct trp_event e;
        char text[1000];
        trp_fields_put_event(&b, &events[i]);
        struct trp_view v = trp_view_of(b.data, b.size);
        g_assert_true(trp_fields_get_event(&v, &m, &e));
        g_assert_cmpint(e.kind, ==, events[i].kind);
        trp_fields_put_event(&again, &e);
        g_assert_cmpmem(b.data, b.size, again.data, again.size);
        v = trp_view_of(b.data, b.size);
        g_assert_true(trp_fields_show_event(&v, text, sizeof text));
        g_test_message("%s", text);
        trp_fields_memory_free(&m);
        trp_buf_free(&b);
        trp_buf_free(&again);
    }
}

/* Every cut, and many changed bytes: refused, or read as something else. */
TEST("broken events do no harm")
{
    for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
        struct trp_buf b = {0};
        struct trp_event e;
        char text[100];
        trp_fields_put_event(&b, &events[i]);
        for (uint32_t round = 0; round < 3000; round++) {
            struct trp_random r = trp_random_of(round, TRP_DRAW_TASK, i, 0);
            struct trp_fields_memory m = {0};
            g_autofree uint8_t *copy = g_memdup2(b.data, b.size);
            size_t n = round < b.size ? round : b.size;
            for (uint64_t k = trp_random_next(&r) % 4; k > 0; k--)
                copy[trp_random_next(&r) % b.size] = (uint8_t)trp_random_next(&r);
            struct trp_view v = trp_view_of(copy, n);
            trp_fields_get_event(&v, &m, &e);
            v = trp_view_of(copy, n);
            trp_fields_show_event(&v, text, sizeof text);
            trp_fields_memory_free(&m);
        }
        trp_buf_free(&b);
    }
}

/* Written and read again; false: refused. */
static bool comes_out(const struct trp_engine_config *c, struct trp_engine_config *ret)
{
    struct trp_buf b = {0};
    struct trp_fields_memory m = {0};
    trp_fields_put_config(&b, c);
    struct trp_view v = trp_view_of(b.data, b.size);
    bool good = trp_fields_get_config(&v, &m, ret) && trp_view_end(&v);
    trp_fields_memory_free(&m);
    trp_buf_free(&b);
    return good;
}

TEST("each option comes out as it went in")
{
    static const uint8_t on = 1, off = 0;
    static const uint32_t small = 7;
    static const int64_t large = 700000000;
    static const double one = 1;
    struct trp_engine_config plain, c, got;
    memset(&plain, 0, sizeof plain);
    trp_options_engine_config(NULL, &plain);
    for (const struct trp_option *t = trp_option_table; t->key; t++) {
        if (t->member.taker != TRP_TAKER_ENGINE)
            continue;
        c = plain;
        char *at = (char *)&c + t->member.offset;
        const void *other = t->type == TRP_OPTION_NUMBER   ? (const void *)&one
                            : t->type == TRP_OPTION_BOOL   ? (*at ? &off : &on)
                            : t->type == TRP_OPTION_CHOICE ? &on
                            : t->member.size == 4          ? (const void *)&small
                                                           : &large;
        memcpy(at, other, t->type == TRP_OPTION_CHOICE ? 1 : t->member.size);
        g_test_message("%s", t->key);
        g_assert_true(comes_out(&c, &got));
        g_assert_cmpmem(&c, sizeof c, &got, sizeof got);
    }
}

TEST("options out of bounds are refused")
{
    struct trp_engine_config plain, c, got;
    trp_options_engine_config(NULL, &plain);
    g_assert_true(comes_out(&plain, &got));
#define REFUSED(m, value)                                                              \
    do {                                                                               \
        c = plain;                                                                     \
        c.m = (value);                                                                 \
        g_assert_false(comes_out(&c, &got));                                           \
    } while (0)
    REFUSED(speculation.quantile, (double)NAN);
    REFUSED(speculation.quantile, 1.5);
    REFUSED(speculation.interval_ns, 0);
    REFUSED(exclusion.timeout_ns, -1);
    REFUSED(exclusion.app_tasks_per_executor, 0);
    REFUSED(min_executors, 1000001);
    REFUSED(max_executors, 1000001);
    REFUSED(reuse, (enum trp_reuse)3);
    REFUSED(queue_ahead_ns, -1);
    REFUSED(idle_timeout_ns, -1);
    REFUSED(initial_executors, 1000000000);
}

/* A little run into `file`; decision `wrong` is written down as another one. */
static void record(const char *file, uint64_t wrong)
{
    struct trp_profile_defaults d;
    struct trp_engine_config c;
    trp_profiles *profiles;
    trp_engine *e;
    trp_engine_trace *t;
    trp_error err;
    uint64_t n = 0;
    trp_options_profile_defaults(NULL, &d);
    trp_options_engine_config(NULL, &c);
    c.fixed = true;
    c.racks = racks;
    c.nracks = G_N_ELEMENTS(racks);
    struct trp_event ev[] = {
        {.kind = TRP_EVENT_EXECUTOR_ADDED, .added = {.host = "h1"}},
        {.kind = TRP_EVENT_JOB,            .job = {&job}          },
    };
    if (trp_profiles_new(&d, NULL, &profiles, &err) < 0 ||
        trp_engine_new(&c, profiles, &e, &err) < 0 ||
        trp_engine_trace_new(file, &c, profiles, true, &t, &err) < 0)
        g_error("%s", err.text);
    ev[0].added.executor = trp_engine_trace_expect(t, e, (trp_profile_id){0});
    GQueue ends = G_QUEUE_INIT;
    for (size_t i = 0; i < 2 || !g_queue_is_empty(&ends); i++) {
        struct trp_event end = {.kind = TRP_EVENT_TASK_ENDED};
        if (i >= 2)
            end.ended.attempt.n = GPOINTER_TO_SIZE(g_queue_pop_head(&ends));
        if (trp_engine_trace_step(t, e, (int64_t)i * 1000 + 77, i < 2 ? &ev[i] : &end,
                                  &err) < 0)
            g_error("%s", err.text);
        for (const struct trp_action *a; (a = trp_engine_next(e));) {
            struct trp_action copy = *a;
            if (a->kind == TRP_ACTION_LAUNCH) {
                g_queue_push_tail(&ends, GSIZE_TO_POINTER(a->launch.attempt.n));
                copy.launch.task += ++n == wrong;
            }
            trp_engine_trace_action(t, &copy);
        }
    }
    g_assert_cmpuint(n, ==, 6);
    if (trp_engine_trace_close(t, &err) < 0)
        g_error("%s", err.text);
    trp_engine_free(e);
    trp_profiles_free(profiles);
}

static int replay(const char *file, char **ret_text, trp_error *err)
{
    size_t n;
    FILE *out = open_memstream(ret_text, &n);
    int rc = trp_sim_replay(file, out, err);
    fclose(out);
    return rc;
}

TEST("a decision that differs is found")
{
    char file[] = "/tmp/troupe-trace-XXXXXX", *text;
    trp_error err;
    close(mkstemp(file));
    record(file, 0);
    if (replay(file, &text, &err) < 0)
        g_error("%s", err.text);
    g_assert_nonnull(strstr(text, "the same again"));
    free(text);
    record(file, 2);
    g_assert_cmpint(replay(file, &text, &err), ==, TRP_EFAILED);
    g_test_message("%s", text);
    g_assert_nonnull(strstr(text, "event 3 decides otherwise"));
    g_assert_nonnull(strstr(text, "event: task_ended attempt=0.0 status=success"));
    g_assert_nonnull(strstr(text, "then: launch "));
    g_assert_nonnull(strstr(text, "now:  launch "));
    free(text);
    unlink(file);
}

TEST("the racks of hosts come along")
{
    char file[] = "/tmp/troupe-trace-XXXXXX";
    trp_trace_reader *r;
    trp_error err;
    close(mkstemp(file));
    record(file, 0);
    if (trp_trace_reader_open(file, &r, &err) < 0)
        g_error("%s", err.text);
    const struct trp_engine_config *c = trp_trace_reader_config(r);
    g_assert_cmpuint(c->nracks, ==, 2);
    g_assert_cmpstr(c->racks[1].host, ==, "h2");
    g_assert_cmpstr(c->racks[1].rack, ==, "r1");
    trp_trace_reader_close(r);
    unlink(file);
}

TEST("a broken file is told")
{
    char file[] = "/tmp/troupe-trace-XXXXXX", *text, *bytes;
    gsize size;
    trp_error err;
    close(mkstemp(file));
    record(file, 0);
    g_assert_true(g_file_get_contents(file, &bytes, &size, NULL));
    for (gsize n = 0; n < size; n++) {
        g_assert_true(g_file_set_contents(file, bytes, (gssize)n, NULL));
        g_assert_cmpint(replay(file, &text, &err), ==, TRP_EINVAL);
        free(text);
        char was = bytes[n];
        bytes[n] ^= 0x40;
        g_assert_true(g_file_set_contents(file, bytes, (gssize)size, NULL));
        replay(file, &text, &err); /* anything but harm */
        free(text);
        bytes[n] = was;
    }
    g_free(bytes);
    unlink(file);
}

static void describe(GString *text, const struct trp_fields *fields)
{
    g_string_append_printf(text, "%s(", fields->name);
    for (uint32_t i = 0; i < fields->n; i++) {
        const struct trp_field *f = &fields->fields[i];
        g_string_append_printf(text, "%s:%d:%u:%u ", f->name, (int)f->type, f->size,
                               f->most);
        if (f->of)
            describe(text, f->of);
    }
    g_string_append(text, ")");
}

/* All that a trace is made of, by name, type and size, in a number. */
TEST("a trace with other fields has another version")
{
    GString *text = g_string_new(NULL);
    for (uint32_t i = 0; i < trp_fields_events; i++)
        describe(text, &trp_fields_of_event[i]);
    for (uint32_t i = 0; i < trp_fields_actions; i++)
        describe(text, &trp_fields_of_action[i]);
    describe(text, &trp_fields_of_config);
    describe(text, &trp_fields_of_defaults);
    describe(text, &trp_fields_of_builder);
    for (const struct trp_option *t = trp_option_table; t->key; t++)
        if (t->member.taker != TRP_TAKER_OTHER)
            g_string_append_printf(text, "%s:%d:%u ", t->key, (int)t->type,
                                   (unsigned)t->member.size);
    if (TRP_TRACE_VERSION != 22 || g_str_hash(text->str) != 1879773004u)
        g_error("raise TRP_TRACE_VERSION and note here that it is %d of %u",
                TRP_TRACE_VERSION, g_str_hash(text->str));
    g_string_free(text, TRUE);
}
