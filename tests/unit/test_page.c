/*
 * The page of a run: what it gathers from a log, that it stays small, and that nothing of
 * a run becomes HTML. Logs are written here line by line, as any program might have.
 */
#include <glib.h>
#include <glib/gstdio.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events/page/page.h"
#include "events/page/page_json.h"
#include "events/page/page_rows.h"
#include "events/page/series.h"
#include "events/page/waits.h"
#include "unit.h"

#define T0 INT64_C(1800000000000)

struct world {
    char *dir, *file;
    FILE *log;
    uint32_t attempts;
    struct trp_run_records records;
    struct trp_page_facts facts;
    json_t *page;
    size_t size;
};

static struct world *new_world(void)
{
    struct world *w = g_new0(struct world, 1);
    w->dir = g_dir_make_tmp("troupe-page-XXXXXX", NULL);
    w->file = g_build_filename(w->dir, "events.jsonl", NULL);
    w->log = fopen(w->file, "w");
    g_assert_nonnull(w->log);
    return w;
}

static void free_world(struct world *w)
{
    json_decref(w->page);
    trp_page_facts_free(&w->facts);
    trp_run_records_free(&w->records);
    g_unlink(w->file);
    g_rmdir(w->dir);
    g_free(w->file);
    g_free(w->dir);
    g_free(w);
}

/* ---- writing a log; times are ms since T0 ---- */

#define SAY(w, ...) (fprintf((w)->log, __VA_ARGS__), fputc('\n', (w)->log))

static void begin(struct world *w, int64_t at, uint32_t slots)
{
    SAY(w, "{\"Event\":\"SparkListenerLogStart\"}");
    SAY(w,
        "{\"Event\":\"SparkListenerApplicationStart\",\"App Name\":\"a\",\"Troupe "
        "Resumed\":%" PRId64 ",\"Timestamp\":%" PRId64 "}",
        T0 + at, T0 + at);
    SAY(w,
        "{\"Event\":\"SparkListenerResourceProfileAdded\",\"Resource Profile "
        "Id\":0,\"Executor Resource Requests\":{\"cores\":{\"Amount\":%u},\"memory\":"
        "{\"Amount\":1000},\"gpu\":{\"Amount\":2}},\"Task Resource "
        "Requests\":{\"cpus\":{\"Amount\":1},\"gpu\":{\"Amount\":0.5}},\"Troupe "
        "Profile Name\":\"plain\",\"Troupe Slots\":%u}",
        slots, slots);
}

static void stage(struct world *w, uint32_t id, const char *name, uint32_t ntasks,
                  const char *parents, int64_t at)
{
    for (int i = 0; i < 2; i++) {
        fprintf(w->log,
                i == 0 ? "{\"Event\":\"SparkListenerJobStart\",\"Job "
                         "ID\":0,\"Submission Time\":%" PRId64 ",\"Stage Infos\":["
                       : "{\"Event\":\"SparkListenerStageSubmitted\",\"Timestamp\":"
                         "%" PRId64 ",\"Stage Info\":",
                T0 + at);
        fprintf(
            w->log,
            "{\"Stage ID\":%u,\"Stage Attempt ID\":0,\"Stage Name\":\"%s\","
            "\"Number of Tasks\":%u,\"Parent IDs\":[%s],\"Submission Time\":%" PRId64
            ",\"Resource Profile Id\":0}",
            id, name, ntasks, parents, T0 + at);
        SAY(w, i == 0 ? "]}" : "}");
    }
}

static void executor(struct world *w, uint32_t id, const char *host, uint32_t cores,
                     int64_t asked, int64_t came)
{
    SAY(w,
        "{\"Event\":\"SparkListenerExecutorAdded\",\"Timestamp\":%" PRId64
        ",\"Executor ID\":\"%u\",\"Executor Info\":{\"Host\":\"%s\",\"Total "
        "Cores\":%u,\"Resource Profile Id\":0,\"Request Time\":%" PRId64 "}}",
        T0 + came, id, host, cores, T0 + asked);
}

static void executor_gone(struct world *w, uint32_t id, int64_t at)
{
    SAY(w,
        "{\"Event\":\"SparkListenerExecutorRemoved\",\"Timestamp\":%" PRId64
        ",\"Executor ID\":\"%u\",\"Removed Reason\":\"released\"}",
        T0 + at, id);
}

/* `reason` NULL: it succeeded; `to` 0: it has no end; `e` TRP_NONE: a gang. */
static void task(struct world *w, uint32_t stage_id, uint32_t index, uint32_t e,
                 int64_t from, int64_t to, const char *reason)
{
    char info[400], id[16] = "driver";
    if (e != TRP_NONE)
        snprintf(id, sizeof id, "%u", e);
    snprintf(
        info, sizeof info,
        "\"Stage ID\":%u,\"Stage Attempt ID\":0,\"Task Info\":{\"Task "
        "ID\":%u,\"Index\":%u,\"Attempt\":0,\"Launch Time\":%" PRId64
        ",\"Executor ID\":\"%s\",\"Locality\":\"NODE_LOCAL\",\"Speculative\":false,"
        "\"Finish Time\":%" PRId64 "}",
        stage_id, w->attempts++, index, T0 + from, id, to ? T0 + to : 0);
    SAY(w, "{\"Event\":\"SparkListenerTaskStart\",%s}", info);
    if (to && reason)
        SAY(w,
            "{\"Event\":\"SparkListenerTaskEnd\",%s,\"Task End "
            "Reason\":{\"Reason\":\"ExceptionFailure\",\"Troupe "
            "Status\":\"exit\",\"Troupe Reason\":\"%s\",\"Troupe Counted\":true}}",
            info, reason);
    else if (to)
        SAY(w,
            "{\"Event\":\"SparkListenerTaskEnd\",%s,\"Task End "
            "Reason\":{\"Reason\":\"Success\"},\"Task Metrics\":{\"Peak Execution "
            "Memory\":%u}}",
            info, 100u << 20);
}

static void stage_over(struct world *w, uint32_t id, const char *name, int64_t at)
{
    SAY(w,
        "{\"Event\":\"SparkListenerStageCompleted\",\"Stage Info\":{\"Stage "
        "ID\":%u,\"Stage Name\":\"%s\",\"Completion Time\":%" PRId64 "}}",
        id, name, T0 + at);
}

static void end(struct world *w, int64_t at)
{
    SAY(w,
        "{\"Event\":\"SparkListenerApplicationEnd\",\"Timestamp\":%" PRId64
        ",\"ExitCode\":0}",
        T0 + at);
}

/* ---- reading it ---- */

static void read_page(struct world *w)
{
    struct trp_buf b = {0};
    json_error_t why;
    trp_error err;
    fclose(w->log);
    if (trp_page_facts_read(w->file, &w->records, &w->facts, &err) < 0)
        g_error("%s", err.text);
    g_assert_cmpint(trp_page_json(&w->facts, &w->records, NULL, false, &b), ==, 0);
    w->page = json_loadb((char *)b.data, b.size, 0, &why);
    if (!w->page)
        g_error("%s at %d", why.text, why.position);
    w->size = b.size;
    trp_buf_free(&b);
}

/* The member that a path of names and places leads to: "stages/0/waits/4". */
static json_t *at(const json_t *from, const char *path)
{
    char **v = g_strsplit(path, "/", -1);
    const json_t *now = from;
    for (char **p = v; *p; p++)
        now = json_is_array(now) ? json_array_get(now, (size_t)atoi(*p))
                                 : json_object_get(now, *p);
    if (!now)
        g_error("no %s", path);
    g_strfreev(v);
    return (json_t *)(uintptr_t)now;
}

static int64_t number(const struct world *w, const char *path)
{
    return json_integer_value(at(w->page, path));
}

static void small_run(struct world *w)
{
    begin(w, 0, 2);
    stage(w, 0, "first", 4, "", 0);
    executor(w, 0, "n1", 2, 0, 100);
    task(w, 0, 0, 0, 100, 200, NULL);
    task(w, 0, 1, 0, 150, 300, NULL);
    task(w, 0, 2, 0, 200, 400, NULL);
    task(w, 0, 3, 0, 300, 500, NULL);
    stage_over(w, 0, "first", 500);
    stage(w, 1, "second", 1, "0", 500);
    task(w, 1, 0, 0, 600, 900, NULL);
    stage_over(w, 1, "second", 900);
    executor_gone(w, 0, 1000);
    end(w, 1000);
    read_page(w);
}

TEST("waits count for what was to be seen")
{
    struct world *w = new_world();
    small_run(w);
    /* All four for the executor (400); the second for nothing, a slot was free (50); the
     * others 50 with a free slot, then 50 and 150 with none. */
    g_assert_cmpint(number(w, "stages/0/waits/0"), ==, 150);
    g_assert_cmpint(number(w, "stages/0/waits/1"), ==, 0);
    g_assert_cmpint(number(w, "stages/0/waits/3"), ==, 400);
    g_assert_cmpint(number(w, "stages/0/waits/4"), ==, 200);
    g_assert_cmpint(number(w, "stages/0/nothing_ran"), ==, 100);
    g_assert_cmpint(number(w, "stages/1/waits/0"), ==, 100);
    g_assert_cmpint(number(w, "stages/1/nothing_ran"), ==, 100);
    g_assert_cmpint(number(w, "stages/1/parents/0"), ==, 0);
    g_assert_cmpint(number(w, "stages/0/levels/1"), ==, 4);
    free_world(w);
}

static void reason(struct world *w, uint32_t stage_id, const char *what, int64_t at)
{
    SAY(w,
        "{\"Event\":\"TroupeStageWaits\",\"Stage ID\":%u,\"Stage Attempt ID\":0,"
        "\"Reason\":\"%s\",\"Timestamp\":%" PRId64 "}",
        stage_id, what, T0 + at);
}

static int64_t waited(const struct world *w, uint32_t stage_id, enum trp_page_wait what)
{
    char path[60];
    snprintf(path, sizeof path, "stages/%u/waits/%d", stage_id, (int)what);
    return number(w, path);
}

/* Of two tasks each: the second is the one that waits. */
TEST("what the scheduler gave as reason counts")
{
    struct world *w = new_world();
    begin(w, 0, 2);
    executor(w, 0, "n1", 2, 0, 10);
    stage(w, 0, "near", 2, "", 100);
    task(w, 0, 0, 0, 100, 500, NULL);
    reason(w, 0, "locality", 100);
    reason(w, 0, "slots", 300); /* what the log shows as a free slot was none */
    reason(w, 0, "nothing", 350);
    task(w, 0, 1, 0, 400, 500, NULL);
    stage_over(w, 0, "near", 500);
    stage(w, 1, "few", 2, "", 500);
    task(w, 1, 0, 0, 500, 800, NULL);
    reason(w, 1, "max_running", 510);
    task(w, 1, 1, 0, 800, 900, NULL);
    stage_over(w, 1, "few", 900);
    stage(w, 2, "again", 1, "", 900); /* reasons are of their attempt */
    reason(w, 2, "limits", 900);
    stage_over(w, 2, "again", 1000);
    stage(w, 2, "again", 1, "", 1000);
    task(w, 2, 0, 0, 1100, 1200, NULL);
    end(w, 1300);
    read_page(w);
    g_assert_cmpint(waited(w, 0, TRP_PAGE_WAIT_LOCALITY), ==, 200);
    g_assert_cmpint(waited(w, 0, TRP_PAGE_WAIT_ROOM), ==, 50);
    g_assert_cmpint(waited(w, 0, TRP_PAGE_WAIT_PLACE), ==, 50);
    g_assert_cmpint(waited(w, 1, TRP_PAGE_WAIT_PLACE), ==, 10);
    g_assert_cmpint(waited(w, 1, TRP_PAGE_WAIT_MAX_RUNNING), ==, 290);
    g_assert_cmpint(waited(w, 2, TRP_PAGE_WAIT_LIMITS), ==, 100);
    g_assert_cmpint(waited(w, 2, TRP_PAGE_WAIT_PLACE), ==, 100);
    free_world(w);
}

TEST("a gang waits until it has its room")
{
    struct world *w = new_world();
    begin(w, 0, 2);
    stage(w, 0, "solve", 1, "", 100);
    reason(w, 0, "room", 120);
    task(w, 0, 0, TRP_NONE, 700, 900, NULL);
    reason(w, 0, "nothing", 710);
    stage_over(w, 0, "solve", 900);
    end(w, 900);
    read_page(w);
    g_assert_cmpint(waited(w, 0, TRP_PAGE_WAIT_GANG), ==, 580);
    g_assert_cmpint(number(w, "timeline/rows/0/t/1"), ==, 200);
    free_world(w);
}

/* ---- series ---- */

static double area(const json_t *line)
{
    double sum = 0;
    size_t i;
    json_t *v;
    json_array_foreach(line, i, v)
        sum += json_integer_value(v) > 0 ? (double)json_integer_value(v) / 1000 : 0;
    return sum;
}

TEST("series add up to what was held and used")
{
    struct world *w = new_world();
    small_run(w);
    double bin = 1000.0 / TRP_PAGE_BINS;
    g_assert_cmpfloat_with_epsilon(area(at(w->page, "series/asked/0/v/0")) * bin,
                                   2 * 100, 1);
    g_assert_cmpfloat_with_epsilon(area(at(w->page, "series/held/0/v/0")) * bin,
                                   2 * 900, 1);
    g_assert_cmpfloat_with_epsilon(area(at(w->page, "series/held/0/v/1")) * bin,
                                   1000 * 900, 20);
    g_assert_cmpfloat_with_epsilon(area(at(w->page, "series/held/0/v/2")) * bin,
                                   2 * 900, 1);
    double used = 100 + 150 + 200 + 200 + 300;
    g_assert_cmpfloat_with_epsilon(area(at(w->page, "series/used/0/v/0")) * bin, used,
                                   1);
    g_assert_cmpfloat_with_epsilon(area(at(w->page, "series/used/0/v/1")) * bin,
                                   100 * used, 10);
    g_assert_cmpfloat_with_epsilon(area(at(w->page, "series/used/0/v/2")) * bin,
                                   used / 2, 1);
    g_assert_cmpfloat_with_epsilon(area(at(w->page, "series/stages/1/v/0")) * bin, 300,
                                   1);
    free_world(w);
}

/* What never came was asked for all the same, until it was dropped. */
TEST("what never came was asked for")
{
    struct world *w = new_world();
    begin(w, 0, 2);
    stage(w, 0, "s", 1, "", 0);
    SAY(w,
        "{\"Event\":\"TroupeExecutorAsked\",\"Executor ID\":\"4\",\"Resource Profile "
        "Id\":0,\"Timestamp\":%" PRId64 "}",
        T0 + 100);
    SAY(w,
        "{\"Event\":\"TroupeExecutorDropped\",\"Executor "
        "ID\":\"4\",\"Timestamp\":%" PRId64 "}",
        T0 + 600);
    end(w, 1000);
    read_page(w);
    g_assert_cmpfloat_with_epsilon(
        area(at(w->page, "series/asked/0/v/0")) * 1000.0 / TRP_PAGE_BINS, 2 * 500, 1);
    g_assert_cmpint(number(w, "stages/0/waits/3"), ==, 500);
    g_assert_cmpint(number(w, "stages/0/waits/4"), ==, 500);
    g_assert_cmpuint(json_array_size(at(w->page, "timeline/rows")), ==, 0);
    free_world(w);
}

/* ---- Slurm jobs ---- */

static void slurm_job(struct world *w, const char *what, uint32_t id,
                      const char *members, int64_t at)
{
    SAY(w,
        "{\"Event\":\"TroupeSlurmJob%s\",\"Job ID\":%u,\"Further\":true,%s"
        "\"Timestamp\":%" PRId64 "}",
        what, id, members, T0 + at);
}

TEST("jobs are drawn from their own beginning to their own end")
{
    struct world *w = new_world();
    char members[120];
    begin(w, 0, 2);
    stage(w, 0, "s", 2, "", 0);
    SAY(w,
        "{\"Event\":\"TroupeExecutorAsked\",\"Executor ID\":\"4\",\"Resource Profile "
        "Id\":0,\"Timestamp\":%" PRId64 "}",
        T0);
    for (uint32_t id = 8; id <= 10; id++) {
        snprintf(members, sizeof members,
                 "\"Resource Profile Id\":0,\"Submission Time\":%" PRId64 ",",
                 T0 + 100);
        slurm_job(w, "Queued", id, members, 110);
    }
    snprintf(members, sizeof members, "\"End Time\":%" PRId64 ",", T0 + 300);
    slurm_job(w, "Ended", 9, members, 310); /* never begun */
    snprintf(members, sizeof members,
             "\"Submission Time\":%" PRId64 ",\"Start Time\":%" PRId64 ",", T0 + 100,
             T0 + 500);
    slurm_job(w, "", 8, members, 520);
    SAY(w,
        "{\"Event\":\"TroupeSlurmStep\",\"Job ID\":8,\"Step Name\":\"x\",\"Executor "
        "ID\":\"4\",\"Timestamp\":%" PRId64 "}",
        T0 + 530);
    executor(w, 4, "n1", 2, 0, 600);
    executor_gone(w, 4, 700);
    snprintf(members, sizeof members, "\"End Time\":%" PRId64 ",", T0 + 800);
    slurm_job(w, "Ended", 8, members, 820);
    slurm_job(w, "Ended", 8, members, 900);
    end(w, 1000);
    read_page(w);
    static const struct {
        const char *path;
        int64_t ms;
    } wanted[] = {
        {"jobs/0/asked", 100 },
        {"jobs/0/at",    500 },
        {"jobs/0/end",   800 },
        {"jobs/1/asked", 100 },
        {"jobs/1/end",   300 },
        {"jobs/2/end",   1000}, /* it is still in the queue */
    };
    for (size_t i = 0; i < G_N_ELEMENTS(wanted); i++)
        g_assert_cmpint(number(w, wanted[i].path), ==, wanted[i].ms);
    g_assert_true(json_is_null(at(w->page, "jobs/1/at")));
    /* Of two tasks: until the executor's step began. */
    g_assert_cmpint(waited(w, 0, TRP_PAGE_WAIT_ASKED), ==, 2 * 110);
    g_assert_cmpint(waited(w, 0, TRP_PAGE_WAIT_QUEUE), ==, 2 * 420);
    free_world(w);
}

/* An executor that has not come waits in the queue as long as a job of its profile does. */
TEST("who never came has waited in the queue")
{
    struct world *w = new_world();
    char members[120];
    begin(w, 0, 2);
    stage(w, 0, "s", 1, "", 0);
    SAY(w,
        "{\"Event\":\"TroupeExecutorAsked\",\"Executor ID\":\"4\",\"Resource Profile "
        "Id\":0,\"Timestamp\":%" PRId64 "}",
        T0);
    snprintf(members, sizeof members,
             "\"Resource Profile Id\":0,\"Submission Time\":%" PRId64 ",", T0 + 190);
    slurm_job(w, "Queued", 8, members, 200);
    end(w, 1000);
    read_page(w);
    g_assert_cmpint(waited(w, 0, TRP_PAGE_WAIT_ASKED), ==, 200);
    g_assert_cmpint(waited(w, 0, TRP_PAGE_WAIT_QUEUE), ==, 800);
    free_world(w);
}

/* ---- size ---- */

static void many(struct world *w, uint32_t executors, uint32_t each, int64_t *ret_ran)
{
    char name[40];
    int64_t last = 0, ran = 0;
    uint32_t half = each / 2;
    begin(w, 0, 4);
    stage(w, 0, "one", executors * half, "", 0);
    stage(w, 1, "two", executors * (each - half), "0", 0);
    for (uint32_t e = 0; e < executors; e++) {
        snprintf(name, sizeof name, "node%u.cluster.example.org", e / 4);
        executor(w, e, name, 4, 0, 10 + e % 7);
    }
    for (uint32_t i = 0; i < each; i++)
        for (uint32_t e = 0; e < executors; e++) {
            int64_t from = 20 + 25 * i + e % 11, took = 40 + (i * 7 + e) % 60;
            task(w, i >= half, (i % half) * executors + e, e, from, from + took,
                 i == 3 && e % 10 == 0 ? "exit status 3" : NULL);
            ran += took;
            last = from + took > last ? from + took : last;
        }
    end(w, last);
    read_page(w);
    *ret_ran = ran;
}

/* Attempts one by one, and how long they ran; of bins, slot-ms. */
static void count(const struct world *w, uint32_t *ret_one_by_one, double *ret_ms)
{
    json_t *rows = at(w->page, "timeline/rows"), *row;
    double bin = (double)number(w, "length") / (double)number(w, "timeline/bins");
    uint32_t n = 0;
    double ms = 0;
    size_t i;
    json_array_foreach(rows, i, row) {
        const json_t *t = json_object_get(row, "t"), *b = json_object_get(row, "b");
        double slots = (double)json_integer_value(json_object_get(row, "k"));
        n += (uint32_t)json_array_size(t) / 7;
        for (size_t k = 0; !b && k < json_array_size(t); k += 7)
            ms += (double)json_integer_value(json_array_get(t, k + 1));
        for (size_t k = 0; k < json_array_size(b); k += 3)
            ms += (double)json_integer_value(json_array_get(b, k + 2)) / 1000 * bin *
                  slots;
    }
    *ret_one_by_one = n;
    *ret_ms = ms;
}

TEST("a hundred thousand tasks are less than five megabytes")
{
    struct world *w = new_world();
    int64_t ran;
    uint32_t one_by_one;
    double ms;
    many(w, 200, 500, &ran);
    count(w, &one_by_one, &ms);
    g_test_message("%zu bytes, %u tasks one by one", w->size, one_by_one);
    g_assert_cmpuint(w->size, <, 5000000);
    /* Rows with bins have their failures one by one. */
    g_assert_cmpuint(one_by_one, >=, 20);
    g_assert_cmpuint(one_by_one, <=, TRP_PAGE_TASKS + TRP_PAGE_FAILED_TASKS);
    g_assert_cmpfloat(ms, >, (double)ran * 0.97);
    g_assert_cmpfloat(ms, <, (double)ran * 1.03);
    g_assert_cmpint(number(w, "stages/0/failed"), ==, 20);
    g_assert_cmpint(number(w, "tasks"), ==, 100000);
    free_world(w);
}

TEST("few tasks are there one by one")
{
    struct world *w = new_world();
    int64_t ran;
    uint32_t one_by_one;
    double ms;
    many(w, 30, 40, &ran);
    count(w, &one_by_one, &ms);
    g_assert_cmpuint(one_by_one, ==, 1200);
    g_assert_cmpfloat_with_epsilon(ms, (double)ran, 0.5);
    g_assert_null(json_object_get(at(w->page, "timeline/rows/0"), "b"));
    free_world(w);
}

TEST("too many executors are one row a host")
{
    struct world *w = new_world();
    int64_t ran;
    uint32_t one_by_one;
    double ms;
    many(w, TRP_PAGE_ROWS + 100, 4, &ran);
    count(w, &one_by_one, &ms);
    g_assert_cmpstr(json_string_value(at(w->page, "timeline/by")), ==, "host");
    g_assert_cmpuint(json_array_size(at(w->page, "timeline/rows")), ==,
                     (TRP_PAGE_ROWS + 100) / 4);
    g_assert_cmpuint(w->size, <, 5000000);
    g_assert_cmpfloat(ms, >, (double)ran * 0.9);
    g_assert_cmpfloat(ms, <, (double)ran * 1.1);
    free_world(w);
}

/* ---- what is not as it should be ---- */

TEST("failures in the same words are one")
{
    struct world *w = new_world();
    char reason[60];
    begin(w, 0, 2);
    stage(w, 0, "s", 600, "", 0);
    executor(w, 0, "n1", 2, 0, 10);
    SAY(w, "{\"Event\":\"TroupeTaskNames\",\"Stage ID\":0,\"First Task "
           "Index\":0,\"Names\":[\"s0\",\"s1\"]}");
    for (uint32_t i = 0; i < 300; i++) {
        snprintf(reason, sizeof reason, "output res/%u.bam was not made", i);
        task(w, 0, i, 0, 20 + i, 30 + i, reason);
    }
    for (uint32_t i = 0; i < 300; i++) {
        snprintf(reason, sizeof reason, "reason %c%c", 'a' + (int)(i / 20),
                 'a' + (int)(i % 20));
        task(w, 0, 300 + i, 0, 400 + i, 500 + i, reason);
    }
    end(w, 900);
    read_page(w);
    g_assert_cmpuint(json_array_size(at(w->page, "failures")), ==, TRP_PAGE_REASONS);
    g_assert_cmpint(number(w, "failures/0/count"), ==, 300);
    g_assert_cmpuint(json_array_size(at(w->page, "failures/0/examples")), ==,
                     TRP_PAGE_EXAMPLES);
    g_assert_cmpstr(json_string_value(at(w->page, "failures/0/examples/1/name")), ==,
                    "s1");
    g_assert_cmpstr(json_string_value(at(w->page, "stages/0/names/0")), ==, "s0");
    g_assert_cmpint(number(w, "failures_left_out"), ==, 300 - (TRP_PAGE_REASONS - 1));
    free_world(w);
}

/* It died on Friday, and went on three days later. */
TEST("what lies between starts is cut short")
{
    const int64_t days = INT64_C(3) * 24 * 3600 * 1000;
    struct world *w = new_world();
    begin(w, 0, 2);
    stage(w, 0, "s", 2, "", 0);
    executor(w, 0, "n1", 2, 0, 100);
    task(w, 0, 0, 0, 100, 5000, NULL);
    task(w, 0, 1, 0, 100, 0, NULL); /* it ran when the log ends */
    begin(w, days, 2);
    stage(w, 0, "s", 1, "", days);
    executor(w, 1, "n1", 2, days, days + 100);
    task(w, 0, 1, 1, days + 200, days + 5000, NULL);
    end(w, days + 5000);
    read_page(w);
    g_assert_cmpint(number(w, "length"), ==, 10000 + 10000 / 50);
    g_assert_cmpint(number(w, "axis/1/2"), ==, 5200);
    g_assert_cmpint(number(w, "timeline/rows/0/g"), ==, 5000);
    g_assert_true(json_is_true(at(w->page, "timeline/rows/0/o")));
    g_assert_cmpint(number(w, "timeline/rows/0/t/8"), ==, 4900); /* up to there */
    g_assert_cmpint(number(w, "timeline/rows/0/t/12"), ==, TRP_PAGE_RUNNING);
    g_assert_cmpint(number(w, "timeline/rows/1/t/0"), ==, 5400);
    g_assert_cmpint(number(w, "stages/1/start"), ==, 1);
    free_world(w);
}

static uint32_t times(const char *text, size_t size, const char *what)
{
    uint32_t n = 0;
    for (const char *p = text;
         (p = memmem(p, (size_t)(text + size - p), what, strlen(what))); p++)
        n++;
    return n;
}

TEST("nothing of a run becomes html")
{
    static const char evil[] =
        "{\"name\":\"</script><script>alert(1)</script><!--\xe2\x80"
        "\xa8&{{SCRIPT}}\xe2\x80\xa9\"}";
    const struct trp_page_parts parts = {.title = "</title><b onclick=\"x\">{{DATA}}",
                                         .head = evil,
                                         .head_size = sizeof evil - 1,
                                         .report = evil,
                                         .report_size = sizeof evil - 1,
                                         .page = "null",
                                         .page_size = 4,
                                         .alternatives = "null",
                                         .alternatives_size = 4};
    struct trp_buf b = {0};
    trp_page_put(&b, &parts);
    g_assert_false(b.failed);
    const char *text = (const char *)b.data;
    g_assert_cmpuint(times(text, b.size, "</script>"), ==, 2);
    g_assert_cmpuint(times(text, b.size, "</title>"), ==, 1);
    g_assert_cmpuint(times(text, b.size, "<!--"), ==, 0);
    g_assert_cmpuint(times(text, b.size, "\xe2\x80\xa8"), ==, 0);
    g_assert_cmpuint(times(text, b.size, "\xe2\x80\xa9"), ==, 0);
    g_assert_cmpuint(times(text, b.size, "'sha256-"), ==, 2);
    const char *data = memmem(text, b.size, "id=\"data\">", 10);
    g_assert_nonnull(data);
    data += 10;
    const char *close = strstr(data, "</script>");
    json_error_t why;
    json_t *back = json_loadb(data, (size_t)(close - data), 0, &why);
    if (!back)
        g_error("%s", why.text);
    g_assert_cmpstr(
        json_string_value(at(back, "head/name")), ==,
        "</script><script>alert(1)</script><!--\xe2\x80\xa8&{{SCRIPT}}\xe2\x80"
        "\xa9");
    json_decref(back);
    trp_buf_free(&b);
}

/* Lines of the right kind with nothing right in them are refused, or do no harm. */
TEST("any log is read or refused")
{
    static const char *const lines[] = {
        "{\"Event\":\"SparkListenerTaskEnd\"}",
        "{\"Event\":\"SparkListenerTaskStart\",\"Stage ID\":7,\"Task "
        "Info\":{\"Executor ID\":\"9\"}}",
        "{\"Event\":\"SparkListenerExecutorRemoved\",\"Executor ID\":\"12\"}",
        "{\"Event\":\"TroupeExecutorRelabelled\",\"Executor "
        "ID\":\"12\",\"Timestamp\":5}",
        "{\"Event\":\"TroupeTaskSummary\",\"Stage ID\":3,\"Executors\":{\"x\":1}}",
        "{\"Event\":\"TroupeTaskSummary\",\"Stage ID\":0,\"Executors\":{\"44\":{}}}",
        "{\"Event\":\"TroupeMessage\"}",
        "{\"Event\":\"TroupeExecutorAsked\",\"Executor ID\":\"13\"}",
        "{\"Event\":\"TroupeExecutorAsked\"}",
        "{\"Event\":\"TroupeExecutorDropped\",\"Executor ID\":\"driver\"}",
        "{\"Event\":\"TroupeStageWaits\"}",
        "{\"Event\":\"TroupeStageWaits\",\"Stage ID\":0,\"Reason\":\"boredom\"}",
        "{\"Event\":\"TroupeStageWaits\",\"Stage ID\":0,\"Reason\":\"limits\","
        "\"Timestamp\":9000000000000}",
        "{\"Event\":\"TroupeSlurmJobQueued\"}",
        "{\"Event\":\"TroupeSlurmJobEnded\",\"Job ID\":0}",
        "{\"Event\":\"TroupeSlurmJobEnded\",\"Job ID\":5}",
        "{\"Event\":\"TroupeSlurmStep\",\"Job ID\":1,\"Step Name\":\"x\",\"Executor "
        "ID\":\"driver\"}",
        "{\"Event\":\"SparkListenerStageCompleted\",\"Stage Info\":{\"Stage ID\":99}}"};
    for (size_t i = 0; i < G_N_ELEMENTS(lines); i++) {
        struct world *w = new_world();
        struct trp_buf b = {0};
        trp_error err;
        begin(w, 0, 2);
        stage(w, 0, "s", UINT32_MAX - 1, "7,0", 0);
        SAY(w, "%s", lines[i]);
        end(w, 100);
        fclose(w->log);
        int rc = trp_page_facts_read(w->file, &w->records, &w->facts, &err);
        if (rc == 0)
            g_assert_cmpint(trp_page_json(&w->facts, &w->records, NULL, true, &b), ==,
                            0);
        else
            g_assert_cmpint(rc, ==, TRP_EINVAL);
        trp_buf_free(&b);
        free_world(w);
    }
}
