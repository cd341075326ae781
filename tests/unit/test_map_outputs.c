/* The map-output registry: semantics 15. */
#include <glib.h>

#include "core/dag/outputs.h"
#include "unit.h"

static const struct trp_output_place A = {0, 0}, B = {1, 1}, B2 = {2, 1};

static trp_map_outputs *with_shuffle(uint32_t maps)
{
    trp_map_outputs *o = trp_map_outputs_new();
    g_assert_cmpint(trp_map_outputs_register(o, 0, maps, 0, NULL), ==, 0);
    return o;
}

static void add(trp_map_outputs *o, uint32_t map, struct trp_output_place at,
                uint64_t id, uint64_t size)
{
    g_assert_cmpint(trp_map_outputs_add(o, 0, map, at, id, &size, 1), ==, 0);
}

TEST("a shuffle is registered once")
{
    trp_map_outputs *o = with_shuffle(2);
    trp_error err;
    g_assert_cmpint(trp_map_outputs_register(o, 0, 2, 0, &err), ==, TRP_EEXIST);
    g_assert_cmpint(trp_map_outputs_register(o, 1, UINT32_MAX, 0, &err), ==,
                    TRP_ELIMIT);
    g_assert_false(trp_map_outputs_known(o, 1));
    trp_map_outputs_unregister(o, 0);
    g_assert_cmpint(trp_map_outputs_register(o, 0, 3, 0, &err), ==, 0);
    g_assert_cmpuint(trp_map_outputs_missing(o, 0), ==, 3);
    trp_map_outputs_free(o);
}

TEST("outputs go with their executor or host")
{
    trp_map_outputs *o = with_shuffle(3);
    add(o, 0, A, 1, 10);
    add(o, 1, B, 2, 10);
    add(o, 2, B2, 3, 10);
    g_assert_true(trp_map_outputs_complete(o, 0));
    uint64_t epoch = trp_map_outputs_epoch(o);
    trp_map_outputs_drop_executor(o, B.executor);
    g_assert_cmpuint(trp_map_outputs_epoch(o), >, epoch);
    g_assert_cmpuint(trp_map_outputs_missing(o, 0), ==, 1);
    trp_map_outputs_drop_host(o, B2.host);
    g_assert_cmpuint(trp_map_outputs_missing(o, 0), ==, 2);
    g_assert_true(trp_map_outputs_place(o, 0, 0, NULL));
    trp_map_outputs_drop_executor(o, 4711);
    trp_map_outputs_drop_host(o, 4711);
    trp_map_outputs_free(o);
}

TEST("a drop elsewhere only grows the epoch")
{
    trp_map_outputs *o = with_shuffle(1);
    add(o, 0, A, 1, 10);
    uint64_t epoch = trp_map_outputs_epoch(o);
    trp_map_outputs_drop(o, 0, 0, B);
    g_assert_cmpuint(trp_map_outputs_missing(o, 0), ==, 0);
    g_assert_cmpuint(trp_map_outputs_epoch(o), ==, epoch + 1);
    trp_map_outputs_free(o);
}

TEST("files of a host outlive its executors")
{
    trp_map_outputs *o = with_shuffle(1);
    add(o, 0, (struct trp_output_place){TRP_NONE, 3}, 1, 10);
    trp_map_outputs_drop_executor(o, 0);
    g_assert_true(trp_map_outputs_complete(o, 0));
    trp_map_outputs_drop_host(o, 3);
    g_assert_false(trp_map_outputs_complete(o, 0));
    trp_map_outputs_free(o);
}

TEST("a moved output is there again")
{
    trp_map_outputs *o = with_shuffle(1);
    struct trp_output_place at;
    g_assert_cmpint(trp_map_outputs_move(o, 0, 0, 1, B), ==, TRP_ENOENT);
    add(o, 0, A, 7, 10);
    g_assert_cmpint(trp_map_outputs_move(o, 0, 0, 6, B), ==, TRP_ENOENT);
    trp_map_outputs_drop_executor(o, A.executor);
    g_assert_cmpint(trp_map_outputs_move(o, 0, 0, 7, B), ==, 0);
    g_assert_true(trp_map_outputs_place(o, 0, 0, &at));
    g_assert_cmpuint(at.executor, ==, B.executor);
    g_assert_cmpuint(trp_map_outputs_size(o, 0, 0, 0), >=, 10);
    trp_map_outputs_free(o);
}

TEST("sizes are kept within a tenth")
{
    trp_map_outputs *o = with_shuffle(1);
    for (uint64_t size = 1; size < 1000000000; size = size * 3 + 1) {
        add(o, 0, A, size, size);
        uint64_t got = trp_map_outputs_size(o, 0, 0, 0);
        g_assert_cmpuint(got, >=, size);
        g_assert_cmpuint(got, <=, size + size / 10 + 1);
    }
    add(o, 0, A, 1, 0);
    g_assert_cmpuint(trp_map_outputs_size(o, 0, 0, 0), ==, 0);
    trp_map_outputs_free(o);
}

TEST("many reducers have an average")
{
    enum { N = TRP_MAP_OUTPUTS_EXACT + 1 };
    static uint64_t sizes[N];
    trp_map_outputs *o = with_shuffle(1);
    sizes[0] = 100;
    sizes[N - 1] = 300;
    g_assert_cmpint(trp_map_outputs_add(o, 0, 0, A, 1, sizes, N), ==, 0);
    g_assert_cmpuint(trp_map_outputs_size(o, 0, 0, 0), ==, 200);
    g_assert_cmpuint(trp_map_outputs_size(o, 0, 0, 1), ==, 0);
    g_assert_cmpuint(trp_map_outputs_size(o, 0, 0, N - 1), ==, 200);
    trp_map_outputs_free(o);
}

TEST("a reducer prefers large places")
{
    trp_map_outputs *o = with_shuffle(4);
    struct trp_output_place at[4];
    add(o, 0, B2, 1, 100);
    add(o, 1, A, 2, 100);
    add(o, 2, B, 3, 1);
    g_assert_cmpuint(trp_map_outputs_prefer(o, 0, 0, 0.2, at, 4), ==, 2);
    g_assert_cmpuint(at[0].executor, ==, A.executor);
    g_assert_cmpuint(at[1].executor, ==, B2.executor);
    g_assert_cmpuint(trp_map_outputs_prefer(o, 0, 0, 0.2, at, 1), ==, 1);
    g_assert_cmpuint(at[0].executor, ==, A.executor);
    g_assert_cmpuint(trp_map_outputs_prefer(o, 0, 1, 0.2, at, 4), ==, 0);
    trp_map_outputs_free(o);
    o = with_shuffle(TRP_MAP_OUTPUTS_PREFER_MAX);
    add(o, 0, A, 1, 100);
    g_assert_cmpuint(trp_map_outputs_prefer(o, 0, 0, 0.2, at, 4), ==, 0);
    trp_map_outputs_free(o);
}
