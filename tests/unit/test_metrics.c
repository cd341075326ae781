/* A run as metrics: the text, the file, and who is answered over HTTP. */
#include <arpa/inet.h>
#include <glib.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/metrics_file.h"
#include "driver/metrics_http.h"
#include "events/metrics.h"
#include "unit.h"

static char *text_of(const struct trp_metrics *m)
{
    struct trp_buf b = {0};
    trp_metrics_put(&b, m);
    g_assert_false(b.failed);
    char *text = g_strndup((const char *)b.data, b.size);
    trp_buf_free(&b);
    return text;
}

static void has_line(const char *text, const char *line)
{
    g_autofree char *whole = g_strdup_printf("\n%s\n", line);
    if (!strstr(text, whole))
        g_test_message("wanted %s in\n%s", line, text);
    g_assert_nonnull(strstr(text, whole));
}

TEST("counts are told with their labels")
{
    const struct trp_status_stage stages[] = {
        {.name = "a",
         .id = 0,
         .profile = "p",
         .state = "succeeded",
         .tasks = 4,
         .done = 4,
         .ran = 4,
         .began = 1500000000,
         .ended = 2000000000,
         .why = ""},
        { .name = "b",
         .id = 1,
         .profile = "p",
         .state = "running",
         .tasks = 9,
         .done = 2,
         .running = 3,
         .pending = 4,
         .failures = 5,
         .ran = 2,
         .began = 2000000000,
         .why = ""},
    };
    const struct trp_status_profile profile = {
        .name = "p", .up = 3, .busy = 2, .coming = 1, .needs = ""};
    const struct trp_status_job job = {.job = 7, .state = "pending", .reason = ""};
    const struct trp_metrics m = {.run = "r",
                                  .name = "n",
                                  .started = 1500000000,
                                  .stages = stages,
                                  .nstages = 2,
                                  .profiles = &profile,
                                  .nprofiles = 1,
                                  .jobs = &job,
                                  .njobs = 1};
    g_autofree char *text = text_of(&m);
    has_line(text, "troupe_run_start_time_seconds{run=\"r\"} 1.5");
    has_line(text, "troupe_run_stages{run=\"r\",state=\"running\"} 1");
    has_line(text, "troupe_run_stages{run=\"r\",state=\"succeeded\"} 1");
    has_line(text, "troupe_run_stages_left_out{run=\"r\"} 0");
    has_line(text, "troupe_run_tasks{run=\"r\",state=\"done\"} 6");
    has_line(text, "troupe_run_attempts_total{run=\"r\",result=\"failed\"} 5");
    has_line(text, "troupe_stage_tasks{run=\"r\",stage=\"b\",id=\"1\",profile=\"p\","
                   "state=\"pending\"} 4");
    has_line(text, "troupe_stage_attempts_total{run=\"r\",stage=\"a\",id=\"0\","
                   "profile=\"p\",result=\"succeeded\"} 4");
    has_line(text, "troupe_executors{run=\"r\",profile=\"p\",state=\"busy\"} 2");
    has_line(text, "troupe_slurm_jobs{run=\"r\",state=\"pending\"} 1");
    g_assert_null(strstr(text, "troupe_run_end_time_seconds"));
}

TEST("names cannot end a label")
{
    const struct trp_status_stage stage = {
        .name = "a\"b\\c\nd\xff", .state = "ready", .why = ""};
    const struct trp_metrics m = {
        .run = "r", .name = "", .ended = 1, .stages = &stage, .nstages = 1};
    g_autofree char *text = text_of(&m);
    has_line(text, "troupe_stage_tasks{run=\"r\",stage=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\","
                   "id=\"0\",profile=\"\",state=\"done\"} 0");
    g_assert_nonnull(strstr(text, "troupe_run_end_time_seconds{run=\"r\"} "));
}

TEST("of many stages those that go on are told")
{
    enum { N = 1000 };
    struct trp_status_stage *stages = g_new0(struct trp_status_stage, N);
    for (uint32_t i = 0; i < N; i++)
        stages[i] =
            (struct trp_status_stage){.name = "s",
                                      .id = i,
                                      .state = i < 990 ? "succeeded" : "running",
                                      .done = 1,
                                      .ended = i < 990 ? 1 : 0,
                                      .why = ""};
    const struct trp_metrics m = {
        .run = "r", .name = "", .stages = stages, .nstages = N};
    g_autofree char *text = text_of(&m);
    has_line(text, "troupe_run_stages_left_out{run=\"r\"} 800");
    has_line(text, "troupe_run_tasks{run=\"r\",state=\"done\"} 1000");
    g_assert_nonnull(strstr(text, "stage=\"s\",id=\"999\""));
    g_assert_nonnull(strstr(text, "stage=\"s\",id=\"800\""));
    g_assert_null(strstr(text, "stage=\"s\",id=\"799\""));
    g_free(stages);
}

TEST("only addresses of this host are served")
{
    static const char *const bad[] = {"",
                                      "9100",
                                      "0.0.0.0:9100",
                                      "[::]:9100",
                                      "10.1.2.3:9100",
                                      "example.org:9100",
                                      "127.0.0.1",
                                      "127.0.0.1:",
                                      "127.0.0.1:x",
                                      "127.0.0.1:65536",
                                      "127.0.0.1:-1",
                                      "127.0.0.1.example.org:80",
                                      "::1:9100",
                                      "unix:"};
    struct sockaddr_storage a;
    socklen_t size;
    trp_error err;
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_cmpint(trp_metrics_http_address(bad[i], &a, &size, &err), ==,
                        TRP_EINVAL);
    g_assert_cmpint(trp_metrics_http_address("127.0.0.2:80", &a, &size, &err), ==, 0);
    g_assert_cmpint(a.ss_family, ==, AF_INET);
    g_assert_cmpint(trp_metrics_http_address("localhost:0", &a, &size, &err), ==, 0);
    g_assert_cmpint(trp_metrics_http_address("[::1]:80", &a, &size, &err), ==, 0);
    g_assert_cmpint(a.ss_family, ==, AF_INET6);
    g_assert_cmpint(trp_metrics_http_address("unix:/tmp/m", &a, &size, &err), ==, 0);
    char *path = g_strnfill(200, 'x'), *where = g_strconcat("unix:", path, NULL);
    g_assert_cmpint(trp_metrics_http_address(where, &a, &size, &err), ==, TRP_EINVAL);
    g_free(where);
    g_free(path);
}

static int judge(const char *request, const char *token)
{
    return trp_metrics_http_judge(request, strlen(request), token);
}

TEST("who is answered")
{
#define OWN "Authorization: Bearer abc\r\n"
    g_assert_cmpint(judge("GET /metrics HTTP/1.1\r\n" OWN "\r\n", "abc"), ==, 200);
    g_assert_cmpint(
        judge("GET /metrics?a=b HTTP/1.0\r\nauthorization:  bearer abc \r\n\r\n",
              "abc"),
        ==, 200);
    g_assert_cmpint(judge("GET /metrics HTTP/1.1\r\n\r\n", ""), ==, 200);
    g_assert_cmpint(judge("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "abc"), ==, 401);
    g_assert_cmpint(
        judge("GET /metrics HTTP/1.1\r\nAuthorization: Bearer abcd\r\n\r\n", "abc"), ==,
        401);
    g_assert_cmpint(
        judge("GET /metrics HTTP/1.1\r\nAuthorization: Bearer ab\r\n\r\n", "abc"), ==,
        401);
    g_assert_cmpint(
        judge("GET /metrics HTTP/1.1\r\nAuthorization: Basic abc\r\n\r\n", "abc"), ==,
        401);
    g_assert_cmpint(judge("GET /metrics HTTP/1.1\r\nAuthorization:\r\n\r\n", "abc"), ==,
                    401);
    /* Nobody without the token is told which paths there are. */
    g_assert_cmpint(judge("GET /secret HTTP/1.1\r\n\r\n", "abc"), ==, 401);
    g_assert_cmpint(judge("GET /metricsx HTTP/1.1\r\n\r\n", ""), ==, 404);
    g_assert_cmpint(judge("GET / HTTP/1.1\r\n\r\n", ""), ==, 404);
    g_assert_cmpint(judge("POST /metrics HTTP/1.1\r\n\r\n", ""), ==, 405);
    g_assert_cmpint(judge("GET /metrics\r\n\r\n", ""), ==, 400);
    g_assert_cmpint(judge("\r\n\r\n", ""), ==, 400);
    g_assert_cmpint(judge("{\"ask\":\"status\"}\r\n\r\n", ""), ==, 400);
    g_assert_cmpint(judge("GET /metrics HTTP/1.1\r\n", ""), ==, 431);
    g_assert_cmpint(trp_metrics_http_judge("GET \0 HTTP/1.1\r\n\r\n", 19, ""), ==, 400);
}

/* Any bytes, of which many are nearly a request. */
TEST("no bytes are taken for more than they are")
{
    static const char *const parts[] = {
        "GET ",    "/metrics", " HTTP/1.1", "\r\n", "\r\n\r\n", "Authorization:",
        "Bearer ", "abc",      " ",         "\n",   "x"};
    for (int i = 0; i < 20000; i++) {
        GString *request = g_string_new(NULL);
        for (int k = g_test_rand_int_range(0, 12); k > 0; k--) {
            if (g_test_rand_int_range(0, 8) == 0)
                g_string_append_c(request, (char)g_test_rand_int_range(0, 256));
            else
                g_string_append(
                    request,
                    parts[g_test_rand_int_range(0, (gint32)G_N_ELEMENTS(parts))]);
        }
        /* An exact copy: a byte too far is found by the sanitizers. */
        char *copy = g_malloc(request->len + 1);
        memcpy(copy, request->str, request->len);
        copy = g_realloc(copy, request->len ? request->len : 1);
        int status = trp_metrics_http_judge(copy, request->len, "abc");
        bool first = g_str_has_prefix(request->str, "GET /metrics");
        bool token = memmem(request->str, request->len, "abc", 3) != NULL;
        g_assert_true(status != 200 || (first && token));
        g_free(copy);
        g_string_free(request, TRUE);
    }
}

TEST("a file is whole and its folder may be named")
{
    trp_error err;
    char *folder = g_dir_make_tmp(NULL, NULL), *read = NULL;
    g_autofree char *path = g_build_filename(folder, "troupe-r.prom", NULL);
    struct stat st;
    trp_metrics_file *f = trp_metrics_file_new(folder, "r", &err);
    g_assert_nonnull(f);
    for (int i = 0; i < 100; i++) {
        struct trp_buf b = {0};
        g_autofree char *text = g_strdup_printf("%d\n", i);
        trp_put_raw(&b, text, strlen(text));
        trp_metrics_file_give(f, &b);
    }
    trp_metrics_file_close(f);
    g_assert_true(g_file_get_contents(path, &read, NULL, NULL));
    g_assert_cmpstr(read, ==, "99\n");
    g_assert_cmpint(stat(path, &st), ==, 0);
    g_assert_cmpint(st.st_mode & 0777, ==, 0644);
    g_free(read);
    GDir *left = g_dir_open(folder, 0, NULL);
    g_assert_cmpstr(g_dir_read_name(left), ==, "troupe-r.prom");
    g_assert_null(g_dir_read_name(left));
    g_dir_close(left);
    unlink(path);
    rmdir(folder);
    /* One that cannot be written is told. */
    char why[400], *nowhere = g_build_filename(folder, "m.prom", NULL);
    struct trp_buf b = {0};
    f = trp_metrics_file_new(nowhere, "r", &err);
    trp_put_raw(&b, "x", 1);
    trp_metrics_file_give(f, &b);
    while (!trp_metrics_file_failed(f, why, sizeof why))
        g_usleep(1000);
    g_assert_nonnull(strstr(why, "cannot be written: No such file"));
    trp_metrics_file_close(f);
    g_free(nowhere);
    g_free(folder);
}
