/* Progress, written to a pipe: what is drawn, how often, and what is left out. */
#include "events/progress.h"
#include "unit.h"

#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define EPOCH "1970-01-01T00:00:00 troupe: "

struct world {
    int out, in;
    trp_progress *p;
};

static struct world begin(gboolean terminal)
{
    int ends[2];
    g_assert_cmpint(pipe2(ends, O_CLOEXEC), ==, 0);
    g_assert_cmpint(fcntl(ends[0], F_SETFL, O_NONBLOCK), ==, 0);
    return (struct world){
        .in = ends[0], .out = ends[1], .p = trp_progress_new(ends[1], terminal, 0, 0)};
}

/* What was written since the last look. */
static const char *seen(struct world *w)
{
    static char text[1 << 17];
    size_t n = 0;
    for (ssize_t r; (r = read(w->in, text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)r;
    text[n] = '\0';
    return text;
}

static void finish(struct world *w)
{
    trp_progress_end(w->p);
    close(w->in);
    close(w->out);
}

static void stage_ended(trp_progress *p, int64_t now, const char *name,
                        const char *outcome, uint32_t tasks, uint32_t failures,
                        int64_t wall)
{
    trp_progress_stage_ended(p, now,
                             &(struct trp_progress_stage){.name = name,
                                                          .outcome = outcome,
                                                          .tasks = tasks,
                                                          .failures = failures,
                                                          .wall_ns = wall});
}

static struct trp_progress_view view(uint32_t done)
{
    return (struct trp_progress_view){.stages = 3,
                                      .stages_done = 1,
                                      .stage = "solve",
                                      .tasks = 100,
                                      .done = done,
                                      .running = 8,
                                      .failures = 1,
                                      .executors = 2,
                                      .waiting = ""};
}

static void update(struct world *w, int64_t now, uint32_t done)
{
    struct trp_progress_view v = view(done);
    trp_progress_update(w->p, now, &v);
}

static uint32_t count(const char *text, char c)
{
    uint32_t n = 0;
    for (; *text; text++)
        n += *text == c;
    return n;
}

TEST("a bar is drawn in place and erased at the end")
{
    g_setenv("LC_ALL", "C", TRUE);
    struct world w = begin(TRUE);
    update(&w, 0, 50);
    g_assert_cmpstr(
        seen(&w), ==,
        "\r[#############.............] 50/100 tasks, 8 running, 1 failed, 2 "
        "executors; st\033[K");
    update(&w, SECOND, 50); /* nothing new */
    g_assert_cmpstr(seen(&w), ==, "");
    trp_progress_end(w.p);
    g_assert_cmpstr(seen(&w), ==, "\r\033[K");
    close(w.in);
    close(w.out);
}

TEST("ends of stages stay above the bar")
{
    g_setenv("LC_ALL", "C", TRUE);
    struct world w = begin(TRUE);
    update(&w, 0, 50);
    seen(&w);
    stage_ended(w.p, 3 * SECOND, "s", "succeeded", 8, 0, SECOND);
    const char *text = seen(&w);
    g_assert_true(g_str_has_prefix(text, "\r\033[Ktroupe: stage s succeeded: 8 tasks, "
                                         "1.00 s, 3.0 s since the start\n["));
    finish(&w);
}

TEST("a UTF-8 bar is no wider than the terminal")
{
    g_setenv("LC_ALL", "de_DE.UTF-8", TRUE);
    struct world w = begin(TRUE);
    update(&w, 0, 51);
    const char *text = seen(&w);
    g_assert_true(g_utf8_validate(text, -1, NULL));
    g_assert_nonnull(strstr(text, "\xe2\x96\x88"));
    g_assert_cmpint(g_utf8_strlen(text, -1) - 4, <=, 80);
    finish(&w);
}

TEST("there are never more than ten updates a second")
{
    struct world w = begin(TRUE);
    for (uint32_t i = 0; i < 1000; i++)
        update(&w, i * MS, i / 10);
    g_assert_cmpuint(count(seen(&w), '\r'), ==, 10);
    finish(&w);
}

TEST("lines do not tear the bar")
{
    g_setenv("LC_ALL", "C", TRUE);
    struct world w = begin(TRUE);
    update(&w, 0, 50);
    seen(&w);
    trp_progress_line(w.p, 0, "task 3 failed\033[2J\nagain");
    const char *text = seen(&w);
    if (!g_str_has_prefix(text, "\r\033[Ktroupe: task 3 failed [2J again\n[####"))
        g_error("wanted the line, then the bar, got %s", text);
    finish(&w);
}

TEST("elsewhere lines come after 5 s and become rare")
{
    struct world w = begin(FALSE);
    uint32_t lines[8], n = 0;
    for (uint32_t s = 0; s <= 200; s++) {
        update(&w, s * SECOND, 50);
        if (seen(&w)[0])
            lines[n++] = s;
    }
    static const uint32_t wanted[] = {5, 15, 35, 75, 135, 195};
    g_assert_cmpuint(n, ==, G_N_ELEMENTS(wanted));
    for (uint32_t i = 0; i < n; i++)
        g_assert_cmpuint(lines[i], ==, wanted[i]);
    stage_ended(w.p, 200 * SECOND, "solve", "succeeded", 1, 2, 1500 * MS);
    g_assert_cmpstr(seen(&w), ==,
                    "1970-01-01T00:03:20 troupe: stage solve succeeded: 1 task, 2 "
                    "failed attempts, 1.50 s\n");
    finish(&w);
}

/* The time that a clock on the wall shows, not that of the call before. */
TEST("lines elsewhere tell the time")
{
    struct world w = begin(FALSE);
    trp_progress_end(w.p);
    w.p = trp_progress_new(w.out, false, 7 * SECOND, 1700000000 * SECOND);
    trp_progress_line(w.p, 10 * SECOND, "task 3 failed");
    g_assert_cmpstr(seen(&w), ==, "2023-11-14T22:13:30 troupe: task 3 failed\n");
    finish(&w);
}

TEST("what is waited for is told")
{
    struct world w = begin(FALSE);
    struct trp_progress_view v = view(0);
    v.running = 0;
    v.waiting = "2 gpu wanted, 1 free";
    trp_progress_update(w.p, 5 * SECOND, &v);
    g_assert_cmpstr(seen(&w), ==,
                    "1970-01-01T00:00:05 troupe: 0/100 tasks, 0 running, 1 failed, 2 "
                    "executors; stage 1/3; "
                    "solve; waiting: 2 gpu wanted, 1 free\n");
    v.waiting = "waiting for an executor of profile a";
    trp_progress_update(w.p, 100 * SECOND, &v);
    g_assert_nonnull(strstr(seen(&w), "solve; waiting for an executor of profile a\n"));
    finish(&w);
}

TEST("a flood of lines is cut and told")
{
    struct world w = begin(FALSE);
    for (uint32_t i = 0; i < 500; i++)
        trp_progress_line(w.p, 0, "task 1 failed");
    g_assert_cmpuint(count(seen(&w), '\n'), ==, 10);
    stage_ended(w.p, 2 * SECOND, "s", "succeeded", 8, 0, SECOND);
    g_assert_true(g_str_has_prefix(seen(&w),
                                   "1970-01-01T00:00:02 troupe: 490 lines left out; "
                                   "see the event log\n"
                                   "1970-01-01T00:00:02 troupe: stage s succeeded"));
    finish(&w);
}

TEST("ends of stages and runs are never left out")
{
    struct world w = begin(FALSE);
    for (uint32_t i = 0; i < 30; i++)
        trp_progress_line(w.p, 0, "task 1 failed");
    stage_ended(w.p, MS, "sig", "failed", 8, 30, SECOND);
    trp_progress_end_line(w.p, MS, "cancelled");
    const char *text = seen(&w);
    g_assert_nonnull(strstr(text,
                            EPOCH "20 lines left out; see the event log\n" EPOCH
                                  "stage sig failed: 8 tasks, 30 failed attempts, "
                                  "1.00 s\n" EPOCH "cancelled\n"));
    trp_progress_few_stages(w.p);
    for (uint32_t i = 0; i < 100; i++)
        stage_ended(w.p, MS, "s", "succeeded", 8, 0, MS);
    g_assert_cmpuint(count(seen(&w), '\n'), ==, 100);
    finish(&w);
}

TEST("ends wait for a pipe that takes nothing")
{
    struct world w = begin(FALSE);
    char line[1000];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    for (uint32_t i = 0; i < 200; i++) {
        update(&w, i * 2 * SECOND, 0);
        trp_progress_line(w.p, i * 2 * SECOND, line);
    }
    stage_ended(w.p, 400 * SECOND, "sig", "failed", 8, 1, SECOND);
    g_assert_null(strstr(seen(&w), "stage sig failed"));
    update(&w, 1000 * SECOND, 100);
    g_assert_nonnull(strstr(seen(&w), "stage sig failed: 8 tasks"));
    finish(&w);
}

TEST("tiny stages are told while they are few")
{
    struct world w = begin(FALSE);
    for (uint32_t i = 0; i < 100; i++)
        stage_ended(w.p, i * SECOND, "s", "succeeded", 8, 0, MS);
    g_assert_cmpuint(count(seen(&w), '\n'), ==, 21);
    stage_ended(w.p, 200 * SECOND, "s", "succeeded", 8, 0, 100 * MS);
    stage_ended(w.p, 200 * SECOND, "s", "succeeded", 8, 1, MS);
    stage_ended(w.p, 200 * SECOND, "s", "failed", 8, 0, MS);
    const char *text = seen(&w);
    g_assert_cmpuint(count(text, '\n'), ==, 3);
    g_assert_null(strstr(text, "left out"));
    finish(&w);
}

/* A pipe that nobody reads must not hold the run up. */
TEST("a pipe that nobody reads is not waited for")
{
    struct world w = begin(FALSE);
    char line[1000];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    for (uint32_t i = 0; i < 200; i++) {
        update(&w, i * 2 * SECOND, i / 2);
        trp_progress_line(w.p, i * 2 * SECOND, line);
    }
    seen(&w);
    update(&w, 1000 * SECOND, 100);
    g_assert_nonnull(strstr(seen(&w), "100/100 tasks"));
    finish(&w);
}

int main(int argc, char **argv)
{
    g_setenv("TZ", "UTC", TRUE);
    return unit_run(argc, argv);
}
