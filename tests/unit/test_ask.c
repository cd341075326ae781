/* What a run is asked, and the words in which it answers. */
#include <glib.h>
#include <jansson.h>

#include "conf/wording.h"
#include "core/profile/footprint.h"
#include "driver/ask.h"
#include "events/run_status.h"
#include "unit.h"

static int read_text(const char *text, struct trp_ask *ret, trp_error *err)
{
    return trp_ask_read(text, strlen(text), ret, err);
}

TEST("requests are read")
{
    struct trp_ask q;
    trp_error err;
    g_assert_cmpint(read_text("{\"ask\":\"status\"}\n", &q, &err), ==, 0);
    g_assert_cmpint(q.what, ==, TRP_ASK_STATUS);
    g_assert_cmpstr(q.stage, ==, "");
    g_assert_cmpint(
        read_text("{\"ask\":\"explain\",\"stage\":\"a\",\"later\":1}", &q, &err), ==,
        0);
    g_assert_cmpint(q.what, ==, TRP_ASK_EXPLAIN);
    g_assert_cmpstr(q.stage, ==, "a");
}

TEST("what is no request is refused")
{
    static const char *const texts[] = {
        "",
        "\n",
        "{",
        "[]",
        "7",
        "{}",
        "{\"ask\":1}",
        "{\"ask\":\"top\"}",
        "{\"ask\":\"status\",\"stage\":[]}",
        "{\"ask\":\"status\",\"ask\":\"explain\"}",
        "{\"ask\":\"status\"}{\"ask\":\"status\"}",
        "{\"ask\":\"explain\",\"stage\":\"a\\u0000b\"}",
    };
    struct trp_ask q;
    trp_error err;
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        g_assert_cmpint(read_text(texts[i], &q, &err), ==, TRP_EINVAL);
    g_autofree char *name = g_strnfill(TRP_ASK_STAGE + 1, 'x');
    g_autofree char *text =
        g_strdup_printf("{\"ask\":\"explain\",\"stage\":\"%s\"}", name);
    g_assert_cmpint(read_text(text, &q, &err), ==, TRP_EINVAL);
    g_autofree char *blanks = g_strnfill(TRP_ASK_MAX + 1, ' ');
    g_assert_cmpint(read_text(blanks, &q, &err), ==, TRP_EINVAL);
}

TEST("a document is json whatever names are")
{
    struct trp_buf b = {0};
    const struct trp_status head = {.run = "r\xff",
                                    .name = "\"\n",
                                    .status = "running",
                                    .from = "driver",
                                    .host = "",
                                    .now = 2000000000,
                                    .started = 1000000000};
    const struct trp_status_stage stage = {
        .name = "\\", .state = "ready", .tasks = 4, .failures = 7, .why = "\x01"};
    const struct trp_status_profile profile = {.name = "p", .up = 2, .needs = ""};
    trp_status_begin(&b, &head);
    trp_status_stage(&b, &stage);
    trp_status_stage(&b, &stage);
    trp_status_executors(&b);
    trp_status_profile(&b, &profile);
    trp_status_end(&b);
    json_t *j = json_loadb((const char *)b.data, b.size, 0, NULL);
    const json_t *s = json_array_get(json_object_get(j, "stages"), 1);
    g_assert_cmpint(json_integer_value(json_object_get(j, "now")), ==, 2000);
    g_assert_true(json_is_null(json_object_get(j, "ended")));
    g_assert_true(json_is_null(json_object_get(j, "exit")));
    g_assert_cmpstr(json_string_value(json_object_get(s, "name")), ==, "\\");
    g_assert_cmpstr(json_string_value(json_object_get(s, "profile")), ==, "");
    g_assert_cmpint(json_integer_value(json_object_get(s, "failures")), ==, 7);
    g_assert_cmpuint(json_array_size(json_object_get(j, "executors")), ==, 1);
    json_decref(j);
    trp_buf_free(&b);
}

TEST("names that differ in a number have one stem")
{
    char a[64];
    g_assert_cmpstr(trp_name_stem("align-017", a, sizeof a), ==, "align-*");
    g_assert_cmpstr(trp_name_stem("align", a, sizeof a), ==, "align");
    g_assert_cmpstr(trp_name_stem("7", a, sizeof a), ==, "*");
    g_assert_cmpstr(trp_name_stem("", a, sizeof a), ==, "");
    g_assert_cmpstr(trp_name_stem("a1b2", a, sizeof a), ==, "a1b*");
}

TEST("a profile is told in words")
{
    struct trp_resource_profile p = {
        .cores = 4,
        .task_cpus = 1,
        .total_mib = 2048,
        .slots = 4,
        .ncustom = 1,
        .custom = {{.name = "gpu", .executor = 2, .task = TRP_ONE / 2}}};
    char a[128];
    g_assert_cmpstr(trp_profile_text(&p, 0, a, sizeof a), ==, "4 cores, 2 GiB, gpu 2");
    g_assert_cmpstr(trp_profile_text(&p, 1, a, sizeof a), ==, "1 core, 512 MiB, gpu 1");
    g_assert_cmpstr(trp_profile_text_of_task(&p, a, sizeof a), ==,
                    "1 core, 512 MiB, gpu 0.5");
    g_assert_cmpstr(trp_profile_text(&p, 3, a, sizeof a), ==,
                    "3 cores, 1536 MiB, gpu 2");
    g_assert_cmpstr(trp_profile_text(&p, 0, a, 9), ==, "4 cores,");
}
