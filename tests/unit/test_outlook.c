/*
 * What may still run at once: of stages in chains and branches, and of an engine's job.
 */
#include <glib.h>

#include "conf/options.h"
#include "core/alloc/outlook.h"
#include "unit.h"
#include "world/world.h"

static const struct trp_resource_profile a = {.name = "a"}, b = {.name = "b"};

/* Counts of a load in the order of the shapes: "3 0". */
static const char *load(const struct trp_outlook *o, uint32_t i)
{
    static char text[256];
    size_t n = 0;
    for (uint32_t k = 0; k < o->nkinds; k++)
        n += (size_t)g_snprintf(text + n, sizeof text - n, "%s%u", k ? " " : "",
                                o->counts[i * o->nkinds + k]);
    return text;
}

static struct trp_outlook_stage stage(const struct trp_resource_profile *p,
                                      uint32_t count,
                                      const struct trp_parent_spec *parents,
                                      uint32_t nparents)
{
    return (struct trp_outlook_stage){
        {p, 0},
        count, parents, nparents
    };
}

TEST("of a chain the most of each kind counts")
{
    const struct trp_parent_spec after[] = {{.stage = 0}, {.stage = 1}, {.stage = 2}};
    struct trp_outlook_stage v[] = {stage(&a, 3, NULL, 0), stage(&b, 1, &after[0], 1),
                                    stage(&a, 2, &after[1], 1),
                                    stage(&a, 4, &after[2], 1)};
    struct trp_outlook o;
    g_assert_cmpint(trp_outlook_make(v, 4, &o), ==, 0);
    g_assert_cmpuint(o.nloads, ==, 2);
    g_assert_cmpuint(o.nkinds, ==, 2);
    g_assert_cmpstr(load(&o, 0), ==, "0 1");
    g_assert_cmpstr(load(&o, 1), ==, "4 0");
    trp_outlook_free(&o);
}

TEST("branches run beside each other")
{
    /* 0 before 1 and 2, 3 after 1, 4 after all; 5 for itself. */
    const struct trp_parent_spec after0 = {.stage = 0}, after1 = {.stage = 1},
                                 all[] = {{.stage = 2}, {.stage = 3}};
    struct trp_outlook_stage v[] = {stage(&a, 9, NULL, 0), stage(&a, 2, &after0, 1),
                                    stage(&a, 3, &after0, 1), stage(&b, 5, &after1, 1),
                                    stage(&b, 7, all, 2)};
    struct trp_outlook o;
    g_assert_cmpint(trp_outlook_make(v, 5, &o), ==, 0);
    /* First 0 alone, then 2 beside 1 or 3, and at the end 4. */
    g_assert_cmpuint(o.nloads, ==, 3);
    g_assert_cmpstr(load(&o, 0), ==, "9 0");
    g_assert_cmpstr(load(&o, 1), ==, "5 5");
    g_assert_cmpstr(load(&o, 2), ==, "0 7");
    trp_outlook_free(&o);
}

TEST("with each a stage runs beside its parent")
{
    const struct trp_parent_spec each = {.stage = 1, .each = true},
                                 after = {.stage = 0};
    struct trp_outlook_stage v[] = {stage(&a, 1, NULL, 0), stage(&a, 2, &after, 1),
                                    stage(&b, 3, &each, 1)};
    struct trp_outlook o;
    g_assert_cmpint(trp_outlook_make(v, 3, &o), ==, 0);
    g_assert_cmpuint(o.nloads, ==, 1);
    g_assert_cmpstr(load(&o, 0), ==, "2 3"); /* beside its parent, after the first */
    trp_outlook_free(&o);
}

TEST("many stages, counts without end, none")
{
    struct trp_outlook_stage *v =
        g_new0(struct trp_outlook_stage, TRP_OUTLOOK_STAGES + 1);
    struct trp_outlook o;
    for (uint32_t i = 0; i <= TRP_OUTLOOK_STAGES; i++)
        v[i] = stage(i % 2 ? &a : &b, i < 4 ? UINT32_MAX : 1, NULL, 0);
    g_assert_cmpint(trp_outlook_make(v, TRP_OUTLOOK_STAGES + 1, &o), ==, TRP_ELIMIT);
    g_assert_cmpuint(o.nloads, ==, 0);
    g_assert_cmpint(trp_outlook_make(v, TRP_OUTLOOK_STAGES, &o), ==, 0);
    g_assert_cmpuint(o.nloads, ==, 1);
    g_assert_cmpuint(o.counts[0], ==, UINT32_MAX);
    trp_outlook_free(&o);
    g_assert_cmpint(trp_outlook_make(v, 0, &o), ==, 0);
    g_assert_cmpuint(o.nloads, ==, 0);
    v[0] = stage(&a, 0, NULL, 0);
    g_assert_cmpint(trp_outlook_make(v, 1, &o), ==, 0);
    g_assert_cmpuint(o.nloads, ==, 0);
    trp_outlook_free(&o);
    g_free(v);
}

/* ---- of an engine ---- */

static void expect(const struct world *w, const char *want)
{
    struct trp_outlook o;
    GString *got = g_string_new("");
    g_assert_cmpint(trp_engine_outlook(w->engine, &o), ==, 0);
    for (uint32_t i = 0; i < o.nloads; i++)
        g_string_append_printf(got, "%s%s", i ? ", " : "", load(&o, i));
    g_assert_cmpstr(got->str, ==, want);
    g_string_free(got, TRUE);
    trp_outlook_free(&o);
}

TEST("a job's stages, as they end")
{
    const struct trp_parent_spec after[] = {{.stage = 0}, {.stage = 1}, {.stage = 2}};
    struct trp_engine_config c;
    struct trp_profile_defaults d;
    WORLD w;
    trp_options_engine_config(NULL, &c);
    trp_options_profile_defaults(NULL, &d);
    d.executor_cores = 2;
    c.queue_ahead_ns = 0;
    world_init(&w, &d);
    world_start(&w, &c);
    expect(&w, "");
    struct trp_stage_spec v[] = {
        {.name = "wide",       .tasks_known = true, .ntasks = 7},
        {              .name = "gang",
         .kind = TRP_STAGE_GANG,
         .ranks = 5,
         .tasks_known = true,
         .ntasks = 1,
         .parents = &after[0],
         .nparents = 1},
        {                                                         .name = "asks",                                                                       .parents = &after[1], .nparents = 1,            .max_executors = 9},
        { .name = "last",
         .tasks_known = true,
         .ntasks = 100,
         .max_running = 3,
         .parents = &after[2],
         .nparents = 1},
    };
    world_submit(&w, v, 4);
    expect(&w, "0 1, 9 0"); /* what has to ask for its tasks may have any number */
    for (int i = 0; i < 4; i++)
        world_end(&w, w.attempts[0].id, TRP_END_SUCCESS, 0, SECOND);
    expect(&w, "0 1, 9 0");
    world_run_out(&w, SECOND);
    world_tasks(&w, 2, 2, NULL, NULL);
    expect(&w, "2"); /* of the last one, of which three tasks may run at once */
    world_run_out(&w, SECOND);
    expect(&w, "");
}

TEST("tasks that are left, within the limits")
{
    struct trp_engine_config c;
    WORLD w;
    struct trp_stage_spec s = {.name = "s", .tasks_known = true, .ntasks = 9};
    trp_options_engine_config(NULL, &c);
    c.queue_ahead_ns = 0;
    c.alloc_max_executors = 5;
    world_begin(&w, &c, 1);
    world_submit(&w, &s, 1);
    expect(&w, "5");
    for (int i = 0; i < 7; i++)
        world_end(&w, w.attempts[0].id, TRP_END_SUCCESS, 0, SECOND);
    expect(&w, "2");
    world_run_out(&w, SECOND);
}
