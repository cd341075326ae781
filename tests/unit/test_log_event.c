/* Lines of an event log, as their readers get them. */
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "events/log_event.h"
#include "unit.h"

static struct trp_log_event decoded(const char *text)
{
    struct trp_log_event e;
    json_t *json = json_loads(text, 0, NULL);
    g_assert_cmpint(trp_log_event_decode(json, &e), ==, 0);
    return e; /* its texts stay: the document is not freed before the end of a test */
}

TEST("fields are found where spark has them")
{
    struct trp_log_event e =
        decoded("{\"Event\":\"SparkListenerTaskEnd\",\"Stage ID\":3,"
                "\"Task End Reason\":{\"Reason\":\"Success\"},"
                "\"Task Info\":{\"Task ID\":7,\"Executor ID\":\"driver\","
                "\"Launch Time\":1000,\"Finish Time\":1500},"
                "\"Task Metrics\":{\"Shuffle Read Metrics\":{\"Local Bytes Read\":5,"
                "\"Remote Bytes Read\":6}}}");
    g_assert_cmpint(e.kind, ==, TRP_LOG_TASK_END);
    g_assert_cmpuint(e.stage, ==, 3);
    g_assert_cmpuint(e.task_id, ==, 7);
    g_assert_cmpuint(e.executor, ==, TRP_LOG_DRIVER);
    g_assert_cmpint(e.at, ==, INT64_C(1500000000));
    g_assert_cmpint(e.ran_ns, ==, INT64_C(500000000));
    g_assert_cmpstr(e.end, ==, "Success");
    g_assert_cmpuint(e.flow[TRP_FLOW_READ], ==, 11);
    g_assert_cmpuint(e.flow[TRP_FLOW_REMOTE], ==, 6);
    json_decref(e.json);
}

TEST("what is not there is nothing")
{
    struct trp_log_event e = decoded("{\"Event\":\"SparkListenerTaskStart\","
                                     "\"Stage ID\":-1,\"Task Info\":\"x\"}");
    g_assert_cmpuint(e.stage, ==, TRP_NONE);
    g_assert_cmpuint(e.task_id, ==, TRP_NONE);
    g_assert_cmpuint(e.task, ==, 0);
    g_assert_cmpuint(e.executor, ==, TRP_LOG_NOBODY);
    g_assert_cmpint(e.at, ==, 0);
    g_assert_null(e.host);
    json_decref(e.json);
}

TEST("a start that goes on has its own time")
{
    struct trp_log_event e = decoded("{\"Event\":\"SparkListenerApplicationStart\","
                                     "\"Timestamp\":1,\"Troupe Resumed\":2}");
    g_assert_cmpint(e.first, ==, 1000000);
    g_assert_cmpint(e.at, ==, 2000000);
    json_decref(e.json);
}

static int count(void *n, const struct trp_log_event *e)
{
    g_assert_cmpuint(e->nodes, ==, 4);
    ++*(int *)n;
    return 0;
}

/* Also one whose word is not where ours have it; and what is not wanted is not even
 * parsed. */
TEST("lines that are wanted are read")
{
    static const char lines[] = "{\"Event\":\"TroupeNodes\",\"Nodes\":4}\n"
                                "{\"Nodes\":4, \"Event\": \"TroupeNodes\"}\n"
                                "{\"Event\":\"TroupeNodes\0\0\0\0\n"
                                "{\"Event\":\"TroupeMessage\",\"Text\":\n"
                                "{\"Event\":\"Later\",\"Nodes\":4}\n"
                                "{\"Event\":\"TroupeNodes\",\"Nod";
    static trp_log_take *const take[TRP_LOG_EVENTS] = {[TRP_LOG_NODES] = count};
    int n = 0;
    const struct trp_log_reader reader = {.take = take, .context = &n};
    trp_error err = {0};
    g_autofree char *file = NULL;
    g_close(g_file_open_tmp("troupe-events-XXXXXX", &file, NULL), NULL);
    g_assert_true(g_file_set_contents(file, lines, sizeof lines - 1, NULL));
    if (trp_log_events_read(file, &reader, 1, &err) < 0)
        g_error("%s", err.text);
    g_assert_cmpint(n, ==, 2);
    g_unlink(file);
}

static int keep_text(void *text, const struct trp_log_event *e)
{
    g_string_append(text, e->text);
    return 0;
}

/* What is read of a file of that text, and a line of so many bytes more. */
static char *texts_of(const char *lines, size_t more, trp_error *err)
{
    static trp_log_take *const take[TRP_LOG_EVENTS] = {[TRP_LOG_MESSAGE] = keep_text};
    g_autofree char *file = NULL;
    GString *text = g_string_new("");
    const struct trp_log_reader reader = {.take = take, .context = text};
    int fd = g_file_open_tmp("troupe-events-XXXXXX", &file, NULL);
    g_assert_cmpint(write(fd, lines, strlen(lines)), ==, (ssize_t)strlen(lines));
    g_assert_cmpint(ftruncate(fd, (off_t)(strlen(lines) + more)), ==, 0);
    g_close(fd, NULL);
    err->code = trp_log_events_read(file, &reader, 1, err);
    g_unlink(file);
    return g_string_free(text, FALSE);
}

TEST("what moves a terminal's cursor is no part of a text")
{
    trp_error err = {0};
    g_autofree char *text = texts_of(
        "{\"Event\":\"TroupeMessage\",\"Text\":\"a\\u001b[31mb\\u009Bc\302\2332J\\b"
        "\177d\\\\u001b\\te\"}\n",
        0, &err);
    g_assert_cmpint(err.code, ==, 0);
    g_assert_cmpstr(text, ==, "a?[31mb?c??2J???d\\u001b\te");
}

TEST("a line of 100 MB is no event")
{
    trp_error err = {0};
    g_autofree char *text =
        texts_of("{\"Event\":\"TroupeMessage\",\"Text\":\"a\"}\n", 100 << 20, &err);
    g_assert_cmpstr(text, ==, "a");
    g_assert_cmpint(err.code, ==, TRP_EINVAL);
    g_assert_nonnull(strstr(err.text, ":2: a line of more than 64 MiB"));
}
