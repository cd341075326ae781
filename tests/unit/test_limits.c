/* What the limits of a run allow of a profile at most, and that what they never allow
 * fails its stage at once. */
#include <glib.h>

#include "conf/options.h"
#include "core/limits.h"
#include "unit.h"
#include "world/world.h"

static struct trp_stage_spec gang(uint32_t ranks)
{
    struct trp_stage_spec s = world_stage("gang", 1);
    s.kind = TRP_STAGE_GANG;
    s.ranks = ranks;
    return s;
}

static void limit_gpu(struct trp_engine_config *c, int64_t most)
{
    c->caps.ncustom = 1;
    strcpy(c->caps.custom[0].name, "gpu");
    c->caps.custom[0].most = most;
}

TEST("executors are counted against each limit")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    const struct trp_resource_profile *p;
    trp_error err;
    WORLD w;
    world_init(&w, NULL);
    p = trp_profiles_get(w.profiles,
                         world_profile(&w, "train", 4, "gpu", 2, TRP_ONE / 2));
    g_assert_cmpuint(trp_limits_most(&c, p, 0, &err), ==, UINT32_MAX);
    c.caps.cores = 23;
    g_assert_cmpuint(trp_limits_most(&c, p, 0, &err), ==, 5);
    limit_gpu(&c, 7);
    g_assert_cmpuint(trp_limits_most(&c, p, 0, &err), ==, 3);
    c.max_executors = 2; /* of a profile */
    g_assert_cmpuint(trp_limits_most(&c, p, 0, &err), ==, 2);
    c.alloc_max_executors = 1;
    g_assert_cmpuint(trp_limits_most(&c, p, 0, &err), ==, 1);
    c.caps.memory_mib = p->total_mib - 1;
    g_assert_cmpuint(trp_limits_most(&c, p, 0, &err), ==, 0);
    g_assert_cmpint(err.code, ==, TRP_ENEVER);
}

TEST("ranks take the task side and share devices")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    const struct trp_resource_profile *p;
    trp_error err;
    WORLD w;
    world_init(&w, NULL);
    p = trp_profiles_get(w.profiles,
                         world_profile(&w, "train", 4, "gpu", 2, TRP_ONE / 2));
    c.alloc_max_executors = c.max_executors = 1; /* a gang has none */
    limit_gpu(&c, 2);
    g_assert_cmpuint(trp_limits_most(&c, p, 4, &err), ==, 1);
    g_assert_cmpuint(trp_limits_most(&c, p, 5, &err), ==, 0);
    g_assert_cmpstr(err.text, ==,
                    "5 ranks take gpu 3, and alloc.max_gpu is 2; raise it or ask for "
                    "less");
    c.caps.memory_mib = p->total_mib - 1; /* four of them share an executor's */
    g_assert_cmpuint(trp_limits_most(&c, p, 3, &err), ==, 1);
    g_assert_cmpuint(trp_limits_most(&c, p, 4, &err), ==, 0);
    g_assert_cmpuint(trp_limits_most(&c, p, UINT32_MAX, &err), ==, 0);
}

/* Submits one stage; its job has to end at once with these words, or go on. */
static void run_one(const struct trp_engine_config *c, const struct trp_stage_spec *s,
                    const char *words)
{
    WORLD w;
    world_init(&w, NULL);
    world_start(&w, c);
    world_submit(&w, s, 1);
    g_assert_cmpuint(w.job_ends, ==, words != NULL);
    if (words) {
        g_assert_cmpint(w.job_end.job_ended.code, ==, TRP_ENEVER);
        g_assert_cmpstr(w.texts[0], ==, words);
    } else {
        world_run_out(&w, SECOND);
        g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
    }
}

TEST("a gang beyond a limit fails at once")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = gang(4);
    c.caps.cores = 4;
    run_one(&c, &s, NULL);
    s.ranks = 5;
    run_one(&c, &s,
            "5 ranks take cores 5, and alloc.max_cores is 4; raise it or ask for less");
}

TEST("a barrier stage beyond a limit fails at once")
{
    static const char never[] = "a barrier stage of 5 tasks needs as many slots at "
                                "once; at most 4 of profile default can be had";
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("a", 4);
    s.barrier = true;
    c.caps.cores = 4;
    run_one(&c, &s, NULL);
    s.ntasks = 5;
    run_one(&c, &s, never);
    c.caps.cores = 0;
    run_one(&c, &s, NULL);
    s.max_executors = 4;
    run_one(&c, &s, never);
    s.max_executors = 0;
    s.max_running = 4;
    run_one(&c, &s, never);
}
