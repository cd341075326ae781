/* What a run gives back while other runs wait for room that it has. */
#include <glib.h>

#include "conf/options.h"
#include "unit.h"
#include "world/world.h"

static struct trp_engine_config plain(void)
{
    struct trp_engine_config c;
    trp_options_engine_config(NULL, &c);
    c.queue_ahead_ns = 0;
    c.backlog_timeout_ns = SECOND;
    return c;
}

static void start(struct world *w, const struct trp_engine_config *c)
{
    struct trp_profile_defaults d;
    trp_options_profile_defaults(NULL, &d);
    d.executor_cores = 1;
    world_init(w, &d);
    world_start(w, c);
}

static void contend(struct world *w, bool is)
{
    world_tell(w, TRP_EVENT_CONTENDED, .contended = {is});
}

static void grant(struct world *w, uint32_t executor)
{
    world_tell(w, TRP_EVENT_EXECUTOR_GRANTED, .granted = {{executor}});
}

static void end_one(struct world *w)
{
    world_end(w, w->attempts[0].id, TRP_END_SUCCESS, 0, SECOND);
}

TEST("idle executors go soon")
{
    struct trp_engine_config c = plain();
    struct trp_stage_spec s = world_stage("a", 4);
    WORLD w;
    start(&w, &c);
    world_submit(&w, &s, 1);
    g_assert_cmpuint(w.nlive, ==, 4);
    while (w.nattempts)
        end_one(&w);
    world_time(&w, w.now + 5 * SECOND);
    g_assert_cmpuint(w.nlive, ==, 4);
    contend(&w, true);
    g_assert_cmpuint(w.nlive, ==, 0);
}

TEST("busy ones stay")
{
    struct trp_engine_config c = plain();
    struct trp_stage_spec s = world_stage("a", 10);
    WORLD w;
    c.max_executors = 2;
    start(&w, &c);
    contend(&w, true);
    world_submit(&w, &s, 1);
    for (int i = 0; i < 8; i++) {
        world_time(&w, w.now + 2 * SECOND);
        end_one(&w);
    }
    g_assert_cmpuint(w.nlive, ==, 2);
    g_assert_cmpuint(w.releases, ==, 0);
}

TEST("a minimum is not kept")
{
    struct trp_engine_config c = plain();
    struct trp_stage_spec s = world_stage("a", 4);
    WORLD w;
    c.min_executors = 4;
    start(&w, &c);
    world_submit(&w, &s, 1);
    for (int i = 0; i < 3; i++)
        end_one(&w);
    contend(&w, true);
    g_assert_cmpuint(w.nlive, ==, 4);
    world_time(&w, w.now + SECOND);
    g_assert_cmpuint(w.nlive, ==, 1);
    contend(&w, false);
    g_assert_cmpuint(w.nlive, ==, 4);
}

/* A barrier stage of two, of whose executors the first has its room. */
static void start_barrier(struct world *w)
{
    struct trp_engine_config c = plain();
    struct trp_stage_spec s = world_stage("a", 2);
    s.barrier = true;
    start(w, &c);
    w->manual = true;
    world_submit(w, &s, 1);
    grant(w, 0);
}

/* One of two came: it goes, and both are asked for again. */
TEST("a barrier stage gives back what is too little")
{
    WORLD w;
    start_barrier(&w);
    world_come(&w, 0);
    world_time(&w, w.now + 5 * SECOND);
    g_assert_cmpuint(w.releases, ==, 0);
    contend(&w, true);
    g_assert_cmpuint(w.releases, ==, 2);
    w.manual = false;
    world_drain(&w);
    g_assert_cmpuint(w.nlive, ==, 2);
    g_assert_cmpuint(w.nattempts, ==, 2);
    world_time(&w, w.now + 5 * SECOND);
    g_assert_cmpuint(w.releases, ==, 2);
}

TEST("not while the others are coming")
{
    WORLD w;
    start_barrier(&w);
    grant(&w, 1);
    world_come(&w, 0);
    contend(&w, true);
    world_time(&w, w.now + 5 * SECOND);
    g_assert_cmpuint(w.releases, ==, 0);
}

TEST("cached partitions keep an executor for its idle timeout")
{
    const struct trp_dataset_spec spec = {.name = "d", .partitions = 1, .cached = true};
    const struct trp_job_spec job = {.is_dataset = true};
    struct trp_event ev = {.kind = TRP_EVENT_DATASET, .dataset = {&spec}};
    struct trp_event submit = {.kind = TRP_EVENT_JOB, .job = {.spec = &job}};
    struct trp_event cached = {.kind = TRP_EVENT_CACHED};
    struct trp_engine_config c = plain();
    WORLD w;
    c.idle_timeout_ns = 60 * SECOND;
    start(&w, &c);
    world_step(&w, &ev);
    world_step(&w, &submit);
    world_step(&w, &cached);
    end_one(&w);
    contend(&w, true);
    world_time(&w, w.now + 59 * SECOND);
    g_assert_cmpuint(w.nlive, ==, 1);
    world_time(&w, w.now + SECOND);
    g_assert_cmpuint(w.nlive, ==, 0);
}
