/* What goes before a task is tried again, and what stays. */
#include "core/base/ids.h"
#include "driver/task_files.h"
#include "driver_files.h"
#include "unit.h"

static const char yaml[] = "troupe: 1\nstages:\n"
                           "  - {name: a, run: x, tasks: 20}\n"
                           "  - {name: b, run: x}\n";

struct place {
    char *top, *dir, *run_dir;
    trp_pipeline *p;
    trp_task_files *f;
    struct trp_leftovers l; /* what the last attempt was told */
};

static void place_open(struct place *p)
{
    *p = (struct place){.top = files_new(), .p = pipeline_of(yaml)};
    p->dir = g_build_filename(p->top, "work", NULL);
    p->run_dir = g_build_filename(p->dir, "troupe-runs", "r", NULL);
    files_put(p->run_dir, "state/x", "");
    p->f = trp_task_files_new(p->p, p->dir, p->run_dir);
    g_assert_nonnull(p->f);
}

static void place_close(struct place *p)
{
    trp_task_files_free(p->f);
    trp_pipeline_free(p->p);
    g_free(p->run_dir);
    g_free(p->dir);
    files_free(p->top);
}

/* An attempt of a task of stage a begins. */
static void begin(struct place *p, uint32_t task, const char *pattern, bool again)
{
    struct trp_strings patterns = {0};
    trp_strings_add(&patterns, pattern);
    p->l = (struct trp_leftovers){0};
    trp_task_files_begin(p->f, 0, task, &patterns, NULL, again, &p->l);
}

static uint32_t fails(struct place *p, uint32_t task)
{
    const struct trp_outputs *left =
        trp_task_files_end(p->f, 0, task, TRP_ATTEMPT_FAILED);
    return left ? left->n : 0;
}

static void is_recorded(struct place *p, const char *stage, uint32_t task,
                        const char *path)
{
    struct trp_outputs o = {0};
    g_assert_cmpint(trp_outputs_add(&o, p->dir, path, true), ==, 0);
    trp_task_files_record(p->f, stage, task, &o);
    trp_outputs_free(&o);
}

static void link_to(const struct place *p, const char *name, const char *to)
{
    g_autofree char *path = g_build_filename(p->dir, name, NULL);
    g_assert_cmpint(symlink(to, path), ==, 0);
}

TEST("what an attempt has made goes, folders and links too")
{
    struct place p;
    place_open(&p);
    files_put(p.dir, "keep/a", "");
    begin(&p, 7, "out/7", false);
    files_put(p.dir, "out/7/a/b", "");
    files_put(p.dir, "out/8/a", "");
    link_to(&p, "out/7/link", "../../keep");
    g_assert_cmpuint(fails(&p, 7), ==, 4);
    begin(&p, 7, "out/7", true);
    g_assert_false(files_there(p.dir, "out/7"));
    g_assert_true(files_there(p.dir, "out/8/a"));
    g_assert_true(files_there(p.dir, "keep/a"));
    g_assert_cmpuint(p.l.stay, ==, 0);
    place_close(&p);
}

TEST("what was there, came meanwhile, or has changed stays")
{
    struct place p;
    place_open(&p);
    files_put(p.dir, "o/there", "");
    begin(&p, 0, "o", false);
    files_put(p.dir, "o/there", "changed");
    files_put(p.dir, "o/sub/part", "");
    files_put(p.dir, "o/grows", "");
    g_assert_cmpuint(fails(&p, 0), ==, 3);
    files_put(p.dir, "o/sub/mine", "");
    files_put(p.dir, "o/grows", "more");
    begin(&p, 0, "o", true);
    g_assert_true(files_there(p.dir, "o/there"));
    g_assert_true(files_there(p.dir, "o/sub/mine"));
    g_assert_true(files_there(p.dir, "o/grows"));
    g_assert_false(files_there(p.dir, "o/sub/part"));
    g_assert_cmpstr(p.l.first, ==, "o/grows");
    g_assert_cmpstr(p.l.why, ==, "it has changed since");
    g_assert_cmpuint(p.l.stay, ==, 2); /* and the folder */
    g_assert_cmpuint(fails(&p, 0), ==, 0);
    place_close(&p);
}

TEST("what others have made, or may be making, stays")
{
    struct place p;
    place_open(&p);
    begin(&p, 1, "o.1*", false);
    begin(&p, 10, "o.10*", false);
    begin(&p, 11, "./o.11*", false);
    files_put(p.dir, "o.1.part", "");
    files_put(p.dir, "o.10", "");
    files_put(p.dir, "o.11.part", "");
    files_put(p.dir, "o.1.b", "");
    is_recorded(&p, "a", 10, "o.10");
    is_recorded(&p, "b", TRP_NONE, "./o.1.b");
    trp_task_files_end(p.f, 0, 10, TRP_ATTEMPT_SUCCEEDED);
    g_assert_cmpuint(fails(&p, 1), ==, 1);
    begin(&p, 1, "o.1*", true);
    g_assert_false(files_there(p.dir, "o.1.part"));
    g_assert_cmpuint(p.l.stay, ==, 3);
    g_assert_cmpstr(p.l.first, ==, "o.1.b");
    g_assert_cmpstr(p.l.why, ==, "stage b has made it");
    place_close(&p);
}

TEST("nothing goes while another attempt of the task runs")
{
    struct place p;
    place_open(&p);
    begin(&p, 0, "o", false);
    begin(&p, 0, "o", true); /* a copy */
    files_put(p.dir, "o", "");
    g_assert_cmpuint(fails(&p, 0), ==, 0);
    begin(&p, 0, "o", true);
    g_assert_true(files_there(p.dir, "o"));
    place_close(&p);
}

TEST("what lies elsewhere stays, and what is the run's")
{
    struct place p;
    place_open(&p);
    g_assert_cmpint(g_mkdir_with_parents(p.top, 0700), ==, 0);
    files_put(p.top, "victim/x", "");
    link_to(&p, "to", "../victim");
    static const char *const patterns[] = {"out/../../victim/f", "to/f",
                                           "troupe-runs/r/f"};
    files_put(p.dir, "out/x", "");
    for (uint32_t i = 0; i < G_N_ELEMENTS(patterns); i++) {
        begin(&p, i, patterns[i], false);
        files_put(p.dir, patterns[i], "");
        g_assert_cmpuint(fails(&p, i), ==, 1);
        begin(&p, i, patterns[i], true);
        g_assert_true(files_there(p.dir, patterns[i]));
        g_assert_cmpuint(p.l.stay, ==, 1);
        g_assert_cmpstr(p.l.why, ==,
                        i < 2 ? "it lies outside the working folder"
                              : "it is in the run's folder");
        trp_task_files_close(p.f, 0, i);
        g_autofree char *path = g_build_filename(p.dir, patterns[i], NULL);
        unlink(path);
    }
    place_close(&p);
}
