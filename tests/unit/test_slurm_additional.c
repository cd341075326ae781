/*
 * Additional jobs: when they are asked for, what the cluster could hold, what gangs are
 * asked for with, and a ledger whose parts come and go.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/slurm/accounts/acquire.h"
#include "cluster/slurm/helper/inventory_lines.h"
#include "cluster/slurm/helper/node_offers.h"
#include "cluster/slurm/jobs/additional.h"
#include "unit.h"

#define SECOND INT64_C(1000000000)

static struct trp_acquire_step next(struct trp_acquire *a, uint32_t waiting,
                                    uint32_t coming, uint32_t jobs_left, int64_t now)
{
    struct trp_acquire_need need = {
        .waiting = waiting, .coming = coming, .jobs_left = jobs_left};
    return trp_acquire_next(a, &need, now);
}

static void expect(struct trp_acquire_step s, enum trp_acquire_what what,
                   uint32_t count)
{
    g_assert_cmpint(s.what, ==, what);
    g_assert_cmpuint(s.count, ==, count);
}

TEST("all is asked for, then half")
{
    struct trp_acquire a = {.poll_ns = 10 * SECOND};
    expect(next(&a, 10, 0, 99, 0), TRP_ACQUIRE_NOW, 10);
    trp_acquire_asked(&a);
    expect(next(&a, 10, 0, 99, 0), TRP_ACQUIRE_NOTHING, 0);
    trp_acquire_busy(&a, 10);
    expect(next(&a, 10, 0, 99, 0), TRP_ACQUIRE_NOW, 5);
    trp_acquire_busy(&a, 5);
    expect(next(&a, 10, 0, 99, 0), TRP_ACQUIRE_NOW, 2);
    trp_acquire_had(&a); /* two have room now */
    expect(next(&a, 8, 0, 99, 0), TRP_ACQUIRE_NOW, 2);
    trp_acquire_busy(&a, 2);
    expect(next(&a, 8, 0, 99, 0), TRP_ACQUIRE_NOW, 1);
    trp_acquire_busy(&a, 1);
    expect(next(&a, 8, 0, 99, 0), TRP_ACQUIRE_QUEUE, 8);
}

/* Neither while Slurm is asked nor while room is about to be free. */
TEST("nothing more can be had now")
{
    struct trp_acquire a = {.poll_ns = 10 * SECOND};
    struct trp_acquire_need need = {.waiting = 1, .jobs_left = 9, .freeing = true};
    expect(trp_acquire_next(&a, &need, SECOND), TRP_ACQUIRE_NOTHING, 0);
    g_assert_false(trp_acquire_exhausted(&a, SECOND));
    need.freeing = false;
    expect(trp_acquire_next(&a, &need, 2 * SECOND), TRP_ACQUIRE_NOW, 1);
    trp_acquire_asked(&a);
    g_assert_false(trp_acquire_exhausted(&a, 2 * SECOND));
    trp_acquire_busy(&a, 1);
    expect(trp_acquire_next(&a, &need, 2 * SECOND), TRP_ACQUIRE_QUEUE, 1);
    trp_acquire_asked(&a);
    g_assert_false(trp_acquire_exhausted(&a, 2 * SECOND));
    trp_acquire_had(&a);
    need.coming = 1;
    expect(trp_acquire_next(&a, &need, 2 * SECOND), TRP_ACQUIRE_NOTHING, 0);
    g_assert_true(trp_acquire_exhausted(&a, 2 * SECOND));
}

/* One job for all, or where jobs cannot shrink of so many each, eight at most. */
static uint32_t queue_all(uint32_t want, uint32_t node)
{
    struct trp_acquire a = {.poll_ns = 10 * SECOND, .busy = true};
    struct trp_acquire_need need = {.waiting = want, .jobs_left = 99, .node = node};
    uint32_t jobs = 0;
    for (struct trp_acquire_step s;
         (s = trp_acquire_next(&a, &need, 0)).what == TRP_ACQUIRE_QUEUE; jobs++) {
        need.coming += s.count;
        trp_acquire_had(&a);
    }
    g_assert_cmpuint(need.coming, ==, want);
    return jobs;
}

TEST("the rest is queued in one job")
{
    g_assert_cmpuint(queue_all(100, 0), ==, 1);
    g_assert_cmpuint(queue_all(100, 4), ==, 8);
    g_assert_cmpuint(queue_all(10, 4), ==, 3);
    struct trp_acquire a = (struct trp_acquire){.poll_ns = 10 * SECOND, .busy = true};
    expect(next(&a, 100, 0, 1, 0), TRP_ACQUIRE_QUEUE, 100);
    expect(next(&a, 100, 0, 0, 0), TRP_ACQUIRE_NOTHING, 0);
    /* All is coming: a later need is asked for now again. */
    expect(next(&a, 100, 100, 5, 0), TRP_ACQUIRE_NOTHING, 0);
    expect(next(&a, 103, 100, 5, SECOND), TRP_ACQUIRE_NOW, 3);
    expect(next(&a, 90, 100, 5, SECOND), TRP_ACQUIRE_CANCEL, 10);
}

/* Executors that fail to start, one by one, and find room again: a few jobs, not one each. */
TEST("what comes to wait after it is gathered")
{
    struct trp_acquire a = {.poll_ns = SECOND};
    uint32_t jobs = 0;
    int64_t last = 0;
    for (int64_t now = 0; now < 16 * SECOND; now += SECOND / 10) {
        uint32_t waiting = 1 + (uint32_t)(now / (SECOND / 10)) % 4;
        struct trp_acquire_step s = next(&a, waiting, 0, 9, now);
        if (s.what == TRP_ACQUIRE_NOW) {
            trp_acquire_busy(&a, 1);
            s = next(&a, waiting, 0, 9, now);
        }
        if (s.what == TRP_ACQUIRE_QUEUE) {
            last = now;
            jobs++;
            trp_acquire_had(&a);
            expect(next(&a, 0, waiting, 8, now), TRP_ACQUIRE_CANCEL, waiting);
            next(&a, 0, 0, 9, now);
        } else {
            expect(s, TRP_ACQUIRE_NOTHING, 0);
            g_assert_cmpint(s.due, >, now);
        }
    }
    g_assert_cmpuint(jobs, ==, 5); /* at 0, 1, 3, 7, 15 s */
    g_assert_cmpint(last, ==, 15 * SECOND);
    expect(next(&a, 1, 0, 9, 16 * SECOND), TRP_ACQUIRE_NOTHING, 0);
    trp_acquire_used(&a);
    expect(next(&a, 1, 0, 9, 16 * SECOND), TRP_ACQUIRE_NOW, 1);
    /* After a quiet time a second will do again. */
    a = (struct trp_acquire){.poll_ns = SECOND, .busy = true};
    for (int64_t now = 0; now < 9 * SECOND; now += 4 * SECOND) {
        expect(next(&a, 1, 0, 9, now), TRP_ACQUIRE_QUEUE, 1);
        g_assert_cmpint(next(&a, 1, 0, 9, now).due, ==, now + SECOND);
    }
}

TEST("a refusal is asked again later and later")
{
    struct trp_acquire a = {.poll_ns = 2 * SECOND};
    int64_t now = 0, pause = SECOND;
    for (int i = 0; i < 8; i++) {
        expect(next(&a, 1, 0, 9, now), TRP_ACQUIRE_NOW, 1);
        trp_acquire_refused(&a, now);
        struct trp_acquire_step s = next(&a, 1, 0, 9, now);
        expect(s, TRP_ACQUIRE_NOTHING, 0);
        g_assert_cmpint(s.due, ==, now + pause);
        now = s.due;
        pause = pause < 8 * SECOND ? 2 * pause : 16 * SECOND;
    }
}

/* What is granted and of no use is a refusal; what is used is none. */
TEST("what is granted and of no use")
{
    struct trp_acquire a = {.poll_ns = 2 * SECOND};
    for (int64_t now = 0, pause = SECOND; pause < 8 * SECOND; pause *= 2) {
        trp_acquire_asked(&a);
        trp_acquire_had(&a);
        trp_acquire_refused(&a, now);
        g_assert_cmpint(a.retry_at, ==, now + pause);
        now = a.retry_at;
    }
    trp_acquire_used(&a);
    trp_acquire_refused(&a, 0);
    g_assert_cmpint(a.retry_at, ==, SECOND);
}

/* A job that is too large for the queue is asked for in smaller ones. */
TEST("a job too large for the queue")
{
    struct trp_acquire a = {.poll_ns = SECOND, .busy = true};
    expect(next(&a, 80, 0, 99, 0), TRP_ACQUIRE_QUEUE, 80);
    trp_acquire_too_large(&a, 80);
    expect(next(&a, 80, 0, 99, 0), TRP_ACQUIRE_QUEUE, 40);
    expect(next(&a, 80, 0, 2, 0), TRP_ACQUIRE_QUEUE, 40);
    trp_acquire_too_large(&a, 40);
    expect(next(&a, 80, 0, 2, 0), TRP_ACQUIRE_QUEUE, 20);
}

TEST("room that is being freed is waited for")
{
    struct trp_acquire a = {.poll_ns = SECOND};
    struct trp_acquire_need need = {.waiting = 1, .jobs_left = 1, .freeing = true};
    struct trp_acquire_step s = trp_acquire_next(&a, &need, 5);
    expect(s, TRP_ACQUIRE_NOTHING, 0);
    g_assert_cmpint(s.due, ==, 5 + 3 * SECOND);
    expect(trp_acquire_next(&a, &need, s.due), TRP_ACQUIRE_NOW, 1);
    need.freeing = false;
    expect(trp_acquire_next(&a, &need, s.due), TRP_ACQUIRE_NOW, 1);
}

/* What cannot be had now may be when others have left: not queued before. */
TEST("what is refused waits for those that leave")
{
    struct trp_acquire a = {.poll_ns = SECOND};
    struct trp_acquire_need need = {.waiting = 4, .jobs_left = 9, .leaving = true};
    expect(trp_acquire_next(&a, &need, 5), TRP_ACQUIRE_NOW, 4);
    trp_acquire_busy(&a, 4);
    expect(trp_acquire_next(&a, &need, 6), TRP_ACQUIRE_NOTHING, 0);
    need.leaving = false;
    expect(trp_acquire_next(&a, &need, SECOND), TRP_ACQUIRE_NOW, 4);
    trp_acquire_busy(&a, 4);
    expect(trp_acquire_next(&a, &need, SECOND), TRP_ACQUIRE_NOW, 2);
    trp_acquire_busy(&a, 1);
    expect(trp_acquire_next(&a, &need, SECOND), TRP_ACQUIRE_QUEUE, 4);

    a = (struct trp_acquire){.poll_ns = SECOND, .busy = true};
    need.leaving = true;
    struct trp_acquire_step s = trp_acquire_next(&a, &need, 5);
    g_assert_cmpint(s.due, ==, 5 + 3 * SECOND); /* they do not leave */
    expect(trp_acquire_next(&a, &need, s.due), TRP_ACQUIRE_QUEUE, 4);
}

/* ---- what the cluster has ---- */

static void offer(struct trp_slurm_offers *o, const char *text)
{
    struct trp_slurm_line line;
    char copy[512];
    g_strlcpy(copy, text, sizeof copy);
    g_assert_cmpint(trp_slurm_line_parse(copy, &line, NULL), ==, 0);
    g_assert_cmpint(trp_slurm_offers_add(o, &line, NULL), ==, 0);
}

TEST("what the cluster could hold")
{
    struct trp_slurm_offers o = {0};
    struct trp_slurm_footprint footprint = {.cores = 3, .memory_mib = 1000};
    trp_error err;
    offer(&o, "1 partition name=main default=1 time=60 cpus=0");
    offer(&o, "1 partition name=gpu default=0 time=0 cpus=4");
    offer(&o, "1 shape nodes=10 cpus=8 threads=2 memory=3500 features=old,fast gres= "
              "partitions=main");
    offer(&o, "1 shape nodes=2 cpus=64 threads=1 memory=99000 features= "
              "gres=gpu:a100:4(S:0-1) partitions=main,gpu");
    /* Three cores are two whole ones, of two threads each. */
    g_assert_cmpuint(trp_slurm_offers_fit(&o, "", &footprint, 1, &err), ==,
                     10 * 2 + 2 * 21);
    g_assert_cmpuint(trp_slurm_offers_fit(&o, "gpu", &footprint, 1, &err), ==, 2);
    g_assert_cmpuint(trp_slurm_offers_on_node(&o, "gpu", &footprint), ==, 1);
    g_assert_cmpuint(trp_slurm_offers_on_node(&o, "main", &footprint), ==,
                     5); /* of 62 on 12 */
    g_assert_cmpuint(trp_slurm_offers_fit(&o, "main", &footprint, 60, &err), ==, 1);
    g_assert_cmpuint(trp_slurm_offers_threads(&o, "main"), ==, 2);
    g_assert_cmpuint(trp_slurm_offers_threads(&o, "gpu"), ==, 1);
    footprint.nwants = 1;
    footprint.wants[0] = (struct trp_slurm_want){.kind = TRP_SLURM_GRES,
                                                 .resource = "a100",
                                                 .name = "gpu",
                                                 .type = "a100",
                                                 .count = 3,
                                                 .each = 1};
    g_assert_cmpuint(trp_slurm_offers_fit(&o, "", &footprint, 1, &err), ==, 2);
    footprint.wants[0].count = 5;
    g_assert_cmpuint(trp_slurm_offers_fit(&o, "", &footprint, 1, &err), ==, 0);
    g_assert_cmpstr(err.text, ==,
                    "no node of partition main is so large: a100 wanted 5, at most 4");
    footprint.wants[0].count = 1;
    footprint.cores = 65;
    g_assert_cmpuint(trp_slurm_offers_fit(&o, "", &footprint, 1, &err), ==, 0);
    g_assert_cmpstr(err.text, ==,
                    "no node of partition main is so large: cores wanted 65, at most "
                    "64");
    footprint.cores = 9;
    footprint.memory_mib = 3500;
    g_assert_cmpuint(trp_slurm_offers_fit(&o, "gpu", &footprint, 1, &err), ==, 0);
    g_assert_cmpstr(err.text, ==,
                    "no node of partition gpu is so large: cores wanted 9, at most 4");
    footprint.cores = 3;
    footprint.memory_mib = 100000;
    g_assert_cmpuint(trp_slurm_offers_fit(&o, "", &footprint, 1, &err), ==, 0);
    g_assert_cmpstr(err.text, ==,
                    "no node of partition main is so large: memory wanted 100000 MiB, "
                    "at most 99000 MiB");
    footprint.memory_mib = 1000;
    g_assert_cmpuint(trp_slurm_offers_fit(&o, "gpu", &footprint, 9, &err), ==, 0);
    g_assert_cmpstr(err.text, ==, "partition gpu has room for 2 of 9 ranks");
    footprint.wants[0] = (struct trp_slurm_want){
        .kind = TRP_SLURM_FEATURE, .name = "fast", .count = 1, .each = 1};
    g_assert_cmpuint(trp_slurm_offers_fit(&o, "", &footprint, 1, &err), ==, 20);
    g_assert_cmpuint(trp_slurm_offers_fit(&o, "none", &footprint, 1, &err), ==, 0);
    g_assert_cmpstr(err.text, ==, "Slurm has no partition none");
    trp_slurm_offers_free(&o);
}

/* Nodes with one device, two, two and four, of which the last has few cores. */
TEST("how many ranks with devices nodes have")
{
    struct trp_slurm_offers o = {0};
    struct trp_slurm_footprint footprint = {.cores = 1, .nwants = 1};
    trp_error err;
    footprint.wants[0] = (struct trp_slurm_want){.kind = TRP_SLURM_GRES,
                                                 .resource = "gpu",
                                                 .name = "gpu",
                                                 .count = 1,
                                                 .each = 1};
    g_assert_cmpuint(trp_slurm_offers_even(&o, "", &footprint, 4, 4), ==, 0);
    offer(&o, "1 partition name=main default=1 time=60 cpus=0");
    offer(&o,
          "1 shape nodes=1 cpus=8 memory=3500 features= gres=gpu:1 partitions=main");
    offer(&o,
          "1 shape nodes=2 cpus=8 memory=3500 features= gres=gpu:2 partitions=main");
    offer(&o,
          "1 shape nodes=1 cpus=3 memory=3500 features= gres=gpu:4 partitions=main");
    g_assert_cmpuint(trp_slurm_offers_even(&o, "", &footprint, 1, 1), ==, 1);
    g_assert_cmpuint(trp_slurm_offers_even(&o, "", &footprint, 3, 3), ==, 3);
    g_assert_cmpuint(trp_slurm_offers_even(&o, "", &footprint, 4, 4), ==, 2);
    g_assert_cmpuint(trp_slurm_offers_even(&o, "", &footprint, 4, 1), ==, 1);
    g_assert_cmpuint(trp_slurm_offers_even(&o, "", &footprint, 3, 2), ==, 2);
    g_assert_cmpuint(trp_slurm_offers_even(&o, "", &footprint, 5, 1), ==, 0);
    g_assert_cmpuint(trp_slurm_offers_even(&o, "", &footprint, 5, 5), ==, 2);
    g_assert_cmpuint(trp_slurm_offers_even(&o, "", &footprint, 7, 7), ==, 0);
    g_assert_cmpuint(trp_slurm_offers_fit(&o, "", &footprint, 6, &err), ==, 1);
    g_assert_cmpuint(trp_slurm_offers_fit(&o, "", &footprint, 7, &err), ==, 0);
    g_assert_cmpstr(err.text, ==,
                    "partition main has no room for 7 ranks with as many devices on "
                    "each node");
    g_assert_cmpuint(trp_slurm_offers_even(&o, "none", &footprint, 1, 1), ==, 0);
    trp_slurm_offers_free(&o);
}

/* ---- what a gang is asked for with ---- */

static void expect_number(const struct trp_slurm_line *l, const char *key, int64_t n)
{
    if (trp_slurm_line_number(l, key) != n)
        g_error("%s is %s, %lld wanted", key, trp_slurm_line_text(l, key),
                (long long)n);
}

static void check_call(struct trp_slurm *s, struct trp_slurm_kind_jobs *w,
                       int64_t tasks, int64_t nodes, int64_t on_each, const char *gres,
                       const char *on_node)
{
    struct trp_slurm_line line;
    trp_error err;
    char *call = trp_slurm_request_call(s, "1 allocate", w, 1, NULL, NULL, &err);
    g_assert_nonnull(call);
    g_assert_cmpint(trp_slurm_line_parse(call, &line, NULL), ==, 0);
    expect_number(&line, "tasks", tasks);
    expect_number(&line, "nodes", nodes);
    expect_number(&line, "node_tasks", on_each);
    g_assert_cmpstr(trp_slurm_line_text(&line, "gres"), ==, gres);
    g_assert_cmpstr(trp_slurm_line_text(&line, "node_gres"), ==, on_node);
    free(call);
}

TEST("a gang with devices is asked for evenly")
{
    static const char text[] = "site: 1\n"
                               "resources:\n"
                               "  gpu: {slurm: \"gres:gpu\"}\n"
                               "  nic: {slurm: \"gres:nic\"}\n";
    static struct trp_slurm s;
    static struct trp_slurm_part part = {.leader = 1};
    static struct trp_slurm_kind_jobs w;
    static char run[] = "r", folder[] = "/r";
    trp_site *site = NULL;
    g_assert_cmpint(trp_site_parse("s.yaml", text, strlen(text), &site, NULL), ==, 0);
    s.site = site;
    s.inventory.parts = &part;
    s.command.run_name = run;
    s.command.run_dir = folder;
    w.ranks = 7;
    w.profile = (struct trp_resource_profile){
        .cores = 1, .task_cpus = 1, .total_mib = 100, .slots = 1, .ncustom = 1};
    g_strlcpy(w.profile.custom[0].name, "gpu", sizeof w.profile.custom[0].name);
    w.profile.custom[0].executor = 1;
    w.profile.custom[0].task = TRP_ONE;
    /* Nobody knows what nodes there are. */
    check_call(&s, &w, 7, 0, 0, "gres:gpu:1", "");
    struct trp_slurm_offers *o = &s.additional.offers;
    offer(o, "1 partition name=main default=1 time=60 cpus=0");
    offer(o, "1 shape nodes=9 cpus=8 memory=3500 features= gres=gpu:4,nic:9 "
             "partitions=main");
    check_call(&s, &w, 8, 2, 4, "", "gres:gpu:4");
    /* Not to be had: on more nodes, in the end with one on each. */
    g_assert_true(trp_slurm_request_spread(&s, &w));
    check_call(&s, &w, 8, 4, 2, "", "gres:gpu:2");
    g_assert_true(trp_slurm_request_spread(&s, &w));
    check_call(&s, &w, 7, 7, 1, "", "gres:gpu:1");
    g_assert_false(trp_slurm_request_spread(&s, &w));
    check_call(&s, &w, 8, 2, 4, "", "gres:gpu:4");
    /* Two ranks share one. */
    w.profile.custom[0].task = TRP_ONE / 2;
    check_call(&s, &w, 7, 1, 7, "", "gres:gpu:4");
    /* The site's options can ask for other devices on one node only. */
    g_strlcpy(w.profile.custom[0].name, "nic", sizeof w.profile.custom[0].name);
    w.profile.custom[0].task = TRP_ONE;
    check_call(&s, &w, 7, 1, 7, "", "gres:nic:7");
    g_assert_false(trp_slurm_request_spread(&s, &w));
    /* Without devices any nodes suit. */
    w.profile.ncustom = 0;
    check_call(&s, &w, 7, 0, 0, "", "");
    g_assert_false(trp_slurm_request_spread(&s, &w));
    trp_slurm_offers_free(o);
    trp_site_free(site);
}

/* ---- parts that come and go ---- */

/* A job of `nodes` nodes of four cores, as the helper tells of it. */
static void tell_job(struct trp_slurm_inventory *i, uint32_t job, uint32_t nodes)
{
    trp_error err;
    memset(i, 0, sizeof *i);
    for (uint32_t k = 0; k <= nodes; k++) {
        struct trp_slurm_line line;
        g_autofree char *text =
            k == 0 ? g_strdup_printf(
                         "0 allocation job=%u leader=%u component=-1 live=1", job, job)
                   : g_strdup_printf("0 node job=%u name=n%u-%u host=h cpus=4 "
                                     "memory=4096 threads=1",
                                     job, job, k);
        g_assert_cmpint(trp_slurm_line_parse(text, &line, &err), ==, 0);
        g_assert_cmpint(trp_slurm_inventory_add(i, &line, &err), ==, 0);
    }
}

static uint32_t add(trp_slurm_ledger *b, struct trp_slurm_inventory *all, uint32_t job,
                    uint32_t nodes)
{
    struct trp_slurm_inventory more;
    uint32_t part;
    tell_job(&more, job, nodes);
    g_assert_cmpint(trp_slurm_inventory_merge(all, &more, &part), ==, 0);
    g_assert_cmpint(trp_slurm_ledger_add_part(b, part), ==, 0);
    trp_slurm_inventory_free(&more);
    return part;
}

static void ask(trp_slurm_ledger *b, struct trp_slurm_request *r, uint32_t units,
                uint64_t cores)
{
    memset(r, 0, sizeof *r);
    r->units = units;
    r->footprint.cores = cores;
    r->footprint.memory_mib = 100;
    g_assert_cmpint(trp_slurm_ledger_ask(b, r, NULL), ==, 0);
}

static const char *node_of(const struct trp_slurm_inventory *i,
                           const struct trp_slurm_request *r)
{
    return i->nodes[r->spots[0].node].name;
}

TEST("jobs come and go in the ledger")
{
    const struct trp_slurm_share share = {.node = 0, .srun_mib = 16};
    struct trp_slurm_inventory all;
    struct trp_slurm_request r[4], gang;
    trp_slurm_ledger *b;
    tell_job(&all, 1, 1);
    g_assert_cmpint(trp_slurm_ledger_new(&all, &share, &b, NULL), ==, 0);
    for (int i = 0; i < 4; i++)
        ask(b, &r[i], 1, 3);
    g_assert_true(trp_slurm_ledger_next(b) == &r[0]);
    g_assert_null(trp_slurm_ledger_next(b));
    g_assert_cmpuint(trp_slurm_ledger_kinds(b), ==, 1);
    g_assert_cmpuint(trp_slurm_ledger_kind(b, 0)->waiting, ==, 3);
    /* Inside first, then jobs in the order in which they came. */
    uint32_t first = add(b, &all, 2, 1), second = add(b, &all, 3, 2);
    g_assert_true(trp_slurm_ledger_next(b) == &r[1]);
    g_assert_true(trp_slurm_ledger_next(b) == &r[2]);
    g_assert_cmpstr(node_of(&all, &r[1]), ==, "n2-1");
    g_assert_cmpstr(node_of(&all, &r[2]), ==, "n3-1");
    g_assert_cmpuint(trp_slurm_ledger_placed(b, second), ==, 1);
    /* A closed job takes nobody in; its entries are used again. */
    trp_slurm_ledger_close_part(b, second);
    g_assert_null(trp_slurm_ledger_next(b));
    trp_slurm_ledger_leave(b, &r[2]);
    g_assert_cmpuint(trp_slurm_ledger_placed(b, second), ==, 0);
    trp_slurm_inventory_remove(&all, second);
    g_assert_cmpuint(add(b, &all, 4, 3), ==, second);
    g_assert_true(trp_slurm_ledger_next(b) == &r[3]);
    g_assert_cmpstr(node_of(&all, &r[3]), ==, "n4-1");
    /* A gang is in one job; what is inside fits what the driver's job holds. */
    ask(b, &gang, 8, 1);
    g_assert_true(trp_slurm_ledger_next(b) == &gang);
    g_assert_cmpstr(node_of(&all, &gang), ==, "n4-1");
    g_assert_cmpuint(trp_slurm_ledger_fit(b, &r[0].footprint, 1, NULL), ==, 1);
    trp_slurm_ledger_leave(b, &gang);
    for (int i = 0; i < 4; i++)
        trp_slurm_ledger_leave(b, &r[i]);
    g_assert_cmpuint(trp_slurm_ledger_placed(b, first), ==, 0);
    trp_slurm_ledger_free(b);
    trp_slurm_inventory_free(&all);
}

/* Only those for whom more room may be had are asked for. */
TEST("those for whom more may be had")
{
    const struct trp_slurm_share share = {.node = 0, .srun_mib = 16};
    struct trp_slurm_inventory all;
    struct trp_slurm_request r[4];
    trp_slurm_ledger *b;
    tell_job(&all, 1, 1);
    g_assert_cmpint(trp_slurm_ledger_new(&all, &share, &b, NULL), ==, 0);
    for (int i = 0; i < 4; i++)
        ask(b, &r[i], 1, 3);
    const struct trp_slurm_request_kind *kind = trp_slurm_ledger_kind(b, 0);
    trp_slurm_ledger_may_add(&r[1]);
    trp_slurm_ledger_may_add(&r[1]);
    trp_slurm_ledger_may_add(&r[3]);
    g_assert_cmpuint(kind->may_add, ==, 2);
    g_assert_true(trp_slurm_ledger_next(b) == &r[0]);
    g_assert_cmpuint(kind->waiting, ==, 3);
    trp_slurm_ledger_leave(b, &r[0]);
    g_assert_true(trp_slurm_ledger_next(b) == &r[1]);
    g_assert_cmpuint(kind->may_add, ==, 1);
    trp_slurm_ledger_may_add(&r[1]); /* it has room */
    g_assert_cmpuint(kind->may_add, ==, 1);
    trp_slurm_ledger_leave(b, &r[3]);
    g_assert_cmpuint(kind->may_add, ==, 0);
    g_assert_cmpuint(kind->waiting, ==, 1);
    trp_slurm_ledger_leave(b, &r[1]);
    trp_slurm_ledger_leave(b, &r[2]);
    trp_slurm_ledger_free(b);
    trp_slurm_inventory_free(&all);
}

TEST("what needs another job holds up nobody")
{
    const struct trp_slurm_share share = {.node = 0, .srun_mib = 16};
    struct trp_slurm_inventory all;
    struct trp_slurm_request huge, large, small[2];
    trp_slurm_ledger *b;
    tell_job(&all, 1, 1);
    g_assert_cmpint(trp_slurm_ledger_new(&all, &share, &b, NULL), ==, 0);
    /* What needs another job holds up nobody; what waits for room inside does. */
    ask(b, &huge, 1, 64);
    ask(b, &small[0], 1, 1);
    g_assert_true(trp_slurm_ledger_next(b) == &small[0]);
    ask(b, &large, 1, 4);
    ask(b, &small[1], 1, 1);
    g_assert_null(trp_slurm_ledger_next(b));
    trp_slurm_ledger_leave(b, &large);
    g_assert_true(trp_slurm_ledger_next(b) == &small[1]);
    trp_slurm_ledger_leave(b, &huge);
    trp_slurm_ledger_leave(b, &small[0]);
    trp_slurm_ledger_leave(b, &small[1]);
    trp_slurm_ledger_free(b);
    trp_slurm_inventory_free(&all);
}
