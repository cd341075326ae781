/* Who holds idle executors in vain, and waits behind somebody who may wait for their
 * room, gives way. The barrier stage `all` has two of the three executors that it
 * needs. Executors come, and are gone, when the test says so. */
#include <glib.h>

#include "conf/options.h"
#include "unit.h"
#include "world/world.h"

#define MINUTE (60 * SECOND)

static void open_world(struct world *w, bool exclusion)
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    c.exclusion.enabled = exclusion;
    world_begin(w, &c, 1);
    w->manual = true;
}

static void submit_barrier(struct world *w)
{
    struct trp_stage_spec all = world_stage("all", 3);
    all.barrier = true;
    world_submit(w, &all, 1);
}

static void submit_large(struct world *w)
{
    struct trp_stage_spec large = world_stage("large", 1);
    large.profile = world_profile(w, "large", 8, NULL, 0, 0);
    world_submit(w, &large, 1);
}

static void submit_gang(struct world *w)
{
    struct trp_stage_spec gang = {.name = "gang",
                                  .tasks_known = true,
                                  .ntasks = 1,
                                  .kind = TRP_STAGE_GANG,
                                  .ranks = 8};
    world_submit(w, &gang, 1);
}

static void end_first(struct world *w, enum trp_end_status status)
{
    world_end(w, world_attempt_at(w, 0)->id, status, status != TRP_END_SUCCESS, SECOND);
}

static void run_first_two(struct world *w)
{
    struct trp_stage_spec a = world_stage("a", 2);
    world_submit(w, &a, 1);
    world_come(w, 0);
    world_come(w, 1);
    g_assert_cmpuint(w->nattempts, ==, 2);
}

/* Those that were let go and withdrawn are gone. How many there were. */
static uint32_t gone(struct world *w)
{
    uint32_t n = 0;
    for (guint i = 0; i < w->nasked;) {
        uint32_t x = w->asked[i];
        if (!(x & WORLD_GOES)) {
            i++;
            continue;
        }
        world_unask(w, i);
        for (guint k = 0; k < w->nasked; k++)
            if (w->asked[k] == (x & ~WORLD_GOES))
                world_unask(w, k--);
        world_lose(w, x & ~WORLD_GOES, TRP_LOSS_RELEASED);
        i = 0;
        n++;
    }
    return n;
}

/* These wait, in this order. */
static void assert_waiting(struct world *w, const uint32_t *numbers, guint n)
{
    g_assert_cmpuint(w->nasked, ==, n);
    for (guint i = 0; i < n; i++)
        g_assert_cmpuint(w->asked[i], ==, numbers[i]);
}
#define ASSERT_WAITING(w, ...)                                                         \
    assert_waiting(w, (const uint32_t[]){__VA_ARGS__},                                 \
                   sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

TEST("a barrier stage gives way to another profile")
{
    WORLD w;
    open_world(&w, false);
    run_first_two(&w);
    submit_large(&w);   /* 2 */
    submit_barrier(&w); /* 3, and 4 and 5 as long as `a` runs */
    end_first(&w, TRP_END_SUCCESS);
    end_first(&w, TRP_END_SUCCESS);
    g_assert_cmpuint(gone(&w), ==, 2);
    ASSERT_WAITING(&w, 2, 3);
    world_time(&w, w.now + SECOND - 1);
    g_assert_cmpuint(gone(&w), ==, 0);
    world_time(&w, w.now + 1);
    g_assert_cmpuint(gone(&w), ==, 2);
    ASSERT_WAITING(&w, 2, 3, 6, 7); /* what waits behind the other already stays */
    world_come(&w, 2);
    end_first(&w, TRP_END_SUCCESS);
    gone(&w);
    for (uint32_t i = 0; i < 3; i++)
        world_come(&w, ((const uint32_t[]){3, 6, 7})[i]);
    g_assert_cmpuint(w.nattempts, ==, 3);
}

TEST("a barrier stage gives way to a gang")
{
    WORLD w;
    open_world(&w, false);
    run_first_two(&w);
    submit_gang(&w);
    submit_barrier(&w); /* 2, and 3 and 4 as long as `a` runs */
    end_first(&w, TRP_END_SUCCESS);
    end_first(&w, TRP_END_SUCCESS);
    g_assert_cmpuint(gone(&w), ==, 2);
    world_time(&w, w.now + SECOND);
    g_assert_cmpuint(gone(&w), ==, 2);
    ASSERT_WAITING(&w, 2, 5, 6);
    /* What comes now was asked for behind the gang. */
    world_come(&w, 2);
    world_come(&w, 5);
    world_time(&w, w.now + MINUTE - 1);
    g_assert_cmpuint(gone(&w), ==, 0);
    ASSERT_WAITING(&w, 6);
}

/* What it has the other could not have at first, and may have by now. All are asked for
 * in one moment: only numbers tell who was before whom. */
TEST("late it gives way time and again")
{
    void (*const others[])(struct world *) = {submit_large, submit_gang};
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
        WORLD w;
        open_world(&w, false);
        others[i](&w);
        uint32_t n = w.nasked; /* `all` asks for n and two more */
        submit_barrier(&w);
        world_come(&w, n);
        world_time(&w, 10 * SECOND);
        world_come(&w, n + 1);
        world_time(&w, MINUTE - 1);
        g_assert_cmpuint(w.releases, ==, 0);
        world_time(&w, MINUTE); /* with the one that has not been idle for so long */
        g_assert_cmpuint(gone(&w), ==, 2);
        world_come(&w, n + 2);
        world_come(&w, n + 3);
        world_time(&w, 3 * MINUTE - 1);
        g_assert_cmpuint(gone(&w), ==, 0);
        world_time(&w, 3 * MINUTE);
        g_assert_cmpuint(gone(&w), ==, 2);
        for (uint32_t k = n + 4; k < n + 7; k++)
            world_come(&w, k);
        g_assert_cmpuint(w.nattempts, ==, n ? 3 : 4); /* a gang's, too */
    }
}

static void grant(struct world *w, uint32_t executor)
{
    world_tell(w, TRP_EVENT_EXECUTOR_GRANTED, .granted = {{executor}});
}

TEST("it gives way to nobody who has room or waits behind")
{
    WORLD w;
    open_world(&w, false);
    submit_large(&w); /* 0 */
    grant(&w, 0);
    submit_barrier(&w); /* 1 to 3 */
    world_come(&w, 1);
    world_come(&w, 2);
    submit_large(&w); /* 4 */
    submit_gang(&w);
    world_time(&w, 10 * MINUTE);
    g_assert_cmpuint(w.releases, ==, 0);
    ASSERT_WAITING(&w, 0, 3, 4);
}

TEST("a stage excluded on all that it has gives way")
{
    WORLD w;
    open_world(&w, true);
    run_first_two(&w);
    submit_large(&w); /* 2 */
    /* Both tasks fail on both executors, of which one goes to be replaced by 3. */
    for (int i = 0; i < 4; i++)
        end_first(&w, TRP_END_EXIT);
    g_assert_cmpuint(gone(&w), ==, 1);
    ASSERT_WAITING(&w, 2, 3);
    g_assert_cmpuint(w.nlive, ==, 1);
    world_time(&w, w.now + SECOND);
    g_assert_cmpuint(gone(&w), ==, 1);
    g_assert_cmpuint(w.nlive, ==, 0);
    world_come(&w, 2);
    end_first(&w, TRP_END_SUCCESS);
    world_come(&w, 3);
    g_assert_cmpuint(w.nattempts, ==, 1);
}

TEST("requests that may have an additional job stay")
{
    struct trp_event fit = {
        .kind = TRP_EVENT_PROFILE_FIT,
        .fit = {.executors = 3, .additional = 1, .more = true}
    };
    WORLD w;
    open_world(&w, false);
    world_step(&w, &fit);
    run_first_two(&w);
    submit_gang(&w);
    submit_barrier(&w); /* 2 */
    end_first(&w, TRP_END_SUCCESS);
    end_first(&w, TRP_END_SUCCESS);
    g_assert_cmpuint(gone(&w), ==, 0);
    uint32_t may_add = w.may_add;
    world_time(&w, w.now + SECOND);
    g_assert_cmpuint(gone(&w), ==, 2);
    ASSERT_WAITING(&w, 2, 3, 4); /* for 2 a job may be in the queue already */
    g_assert_cmpuint(w.may_add, ==, may_add + 2);
}
