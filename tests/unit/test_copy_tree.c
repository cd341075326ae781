/* Copies of files that all hosts read: they double from step to step, and what is gone or
 * broken is asked no more. */
#include <glib.h>

#include "core/base/error.h"
#include "driver/copy_tree.h"
#include "unit.h"

static uint32_t ask(trp_copy_tree *t, uint32_t location, int64_t now)
{
    uint32_t from = 0;
    g_assert_cmpint(trp_copy_tree_ask(t, 1, location, now, &from), ==, 1);
    return from;
}
static void is_busy(trp_copy_tree *t, uint32_t location, int64_t now)
{
    uint32_t from;
    g_assert_cmpint(trp_copy_tree_ask(t, 1, location, now, &from), ==, 0);
}

/* All ask all the time; each step takes as long: the root is read twice in the first,
 * and once more now and then. */
TEST("copies double")
{
    enum { HOSTS = 1000 };
    trp_copy_tree *t = trp_copy_tree_new();
    g_autofree uint32_t *from = g_new(uint32_t, HOSTS);
    g_autofree gboolean *has = g_new0(gboolean, HOSTS);
    uint32_t have = 0, root = 0, steps = 0, most = 0;
    for (; have < HOSTS; steps++) {
        g_autofree uint32_t *readers = g_new0(uint32_t, HOSTS + 1);
        for (uint32_t i = 0; i < HOSTS; i++) {
            from[i] = HOSTS + 1;
            if (has[i] || trp_copy_tree_ask(t, 1, i, steps, &from[i]) == 0)
                continue;
            g_assert_true(from[i] == TRP_COPY_ROOT || has[from[i]]);
            root += from[i] == TRP_COPY_ROOT;
            uint32_t *n = &readers[from[i] == TRP_COPY_ROOT ? HOSTS : from[i]];
            (*n)++;
            most = MAX(most, *n);
        }
        for (uint32_t i = 0; i < HOSTS; i++)
            if (from[i] != HOSTS + 1) {
                trp_copy_tree_has(t, 1, i);
                has[i] = TRUE;
                have++;
            }
    }
    g_assert_cmpuint(most, ==, TRP_COPY_READERS);
    g_assert_cmpuint(steps, ==, 7); /* 2, 8, 26, … */
    g_assert_cmpuint(root, <=, (guint64)2 * steps);
    trp_copy_tree_free(t);
}

TEST("what fails is avoided")
{
    trp_copy_tree *t = trp_copy_tree_new();
    g_assert_cmpuint(ask(t, 7, 0), ==, TRP_COPY_ROOT);
    trp_copy_tree_has(t, 1, 7);
    g_assert_cmpuint(ask(t, 8, 0), ==, 7);
    trp_copy_tree_failed(t, 1, 8, 7);
    g_assert_cmpuint(ask(t, 8, 0), ==, TRP_COPY_ROOT); /* not from there again */
    g_assert_cmpuint(ask(t, 9, 0), ==, 7);
    trp_copy_tree_failed(t, 1, 9, 7);
    g_assert_cmpuint(ask(t, 9, 0), ==, TRP_COPY_ROOT);
    is_busy(t, 10, 0); /* nor from there for others, after two */
    trp_copy_tree_has(t, 1, 8);
    g_assert_cmpuint(ask(t, 10, 0), ==, 8);
    trp_copy_tree_gone(t, 8);
    trp_copy_tree_has(t, 1, 9);
    trp_copy_tree_gone(t, 9);
    g_assert_cmpuint(ask(t, 11, 0), ==, TRP_COPY_ROOT);
    trp_copy_tree_failed(t, 1, 11, TRP_COPY_ROOT); /* it cannot open it */
    is_busy(t, 11, 0);
    /* of another file nothing is known */
    uint32_t from;
    trp_copy_tree_failed(t, 2, 1, 1);
    trp_copy_tree_has(t, 2, 1);
    g_assert_cmpint(trp_copy_tree_ask(t, 2, 1, 0, &from), ==, 1);
    g_assert_cmpuint(from, ==, TRP_COPY_ROOT);
    trp_copy_tree_free(t);
}

TEST("who is not heard of is forgotten")
{
    trp_copy_tree *t = trp_copy_tree_new();
    g_assert_cmpuint(ask(t, 1, 0), ==, TRP_COPY_ROOT);
    g_assert_cmpuint(ask(t, 2, 0), ==, TRP_COPY_ROOT);
    g_assert_cmpuint(ask(t, 2, 1), ==, TRP_COPY_ROOT); /* once more: still one reader */
    is_busy(t, 3, 1);
    trp_copy_tree_gone(t, 1);
    g_assert_cmpuint(ask(t, 3, 1), ==, TRP_COPY_ROOT);
    is_busy(t, 4, 1);
    g_assert_cmpuint(ask(t, 4, 2 + TRP_COPY_FORGOTTEN_NS), ==, TRP_COPY_ROOT);
    trp_copy_tree_free(t);
}
