/* What counts of what tasks added, and how that travels. */
#include <glib.h>
#include <stdlib.h>

#include "driver/accumulators.h"
#include "unit.h"
#include "wire/message.h"

static struct trp_buf put(const struct trp_added *v, uint32_t n)
{
    struct trp_buf b = {0};
    for (uint32_t i = 0; i < n; i++)
        trp_added_put(&b, &v[i]);
    g_assert_false(b.failed);
    return b;
}

/* Takes one entry; how many accumulators it changed. */
static int take(trp_accumulators *a, struct trp_added e)
{
    const struct trp_event_update *u;
    struct trp_buf b = put(&e, 1);
    int n = trp_accumulators_take(a, b.data, 1, &u);
    trp_buf_free(&b);
    return n;
}

TEST("a partition of one maker counts once")
{
    trp_accumulators *a = trp_accumulators_new();
    g_assert_cmpuint(trp_accumulators_add(a, "x"), ==, 1);
    g_assert_cmpuint(trp_accumulators_add(a, "y"), ==, 2);
    g_assert_cmpint(take(a, (struct trp_added){1, 5, 0, 10}), ==, 1);
    g_assert_cmpint(take(a, (struct trp_added){1, 5, 0, 99}), ==, 0); /* again */
    g_assert_cmpint(take(a, (struct trp_added){1, 5, 1, 1}), ==, 1);
    g_assert_cmpint(take(a, (struct trp_added){1, 6, 0, 2}), ==, 1); /* of another */
    g_assert_cmpint(take(a, (struct trp_added){2, 5, 0, -4}), ==, 1);
    g_assert_cmpint(take(a, (struct trp_added){1, 5, 100000, 7}), ==, 1);
    g_assert_cmpint(take(a, (struct trp_added){1, 5, 100000, 7}), ==, 0);
    g_assert_cmpint(trp_accumulators_value(a, 1), ==, 20);
    g_assert_cmpint(trp_accumulators_value(a, 2), ==, -4);
    /* sums wrap around */
    g_assert_cmpint(take(a, (struct trp_added){2, 7, 0, INT64_MIN}), ==, 1);
    g_assert_cmpint(trp_accumulators_value(a, 2), ==, INT64_MAX - 3);
    trp_accumulators_free(a);
}

TEST("what there is not is passed over")
{
    trp_accumulators *a = trp_accumulators_new();
    trp_accumulators_add(a, "x");
    g_assert_cmpint(take(a, (struct trp_added){0, 5, 0, 1}), ==, 0);
    g_assert_cmpint(take(a, (struct trp_added){2, 5, 0, 1}), ==, 0);
    g_assert_cmpint(take(a, (struct trp_added){UINT32_MAX, 5, 0, 1}), ==, 0);
    g_assert_cmpint(take(a, (struct trp_added){1, 5, UINT32_MAX, 1}), ==, 0);
    g_assert_cmpint(trp_accumulators_value(a, 0), ==, 0);
    g_assert_cmpint(trp_accumulators_value(a, 1), ==, 0);
    g_assert_cmpint(trp_accumulators_value(a, 2), ==, 0);
    trp_accumulators_free(a);
}

TEST("an end's updates are told by accumulator")
{
    trp_accumulators *a = trp_accumulators_new();
    const struct trp_event_update *u;
    trp_accumulators_add(a, "x");
    trp_accumulators_add(a, "y");
    take(a, (struct trp_added){2, 5, 3, 100});
    const struct trp_added all[] = {
        {2, 5, 0, 1},
        {1, 5, 0, 2},
        {2, 5, 3, 4},
        {2, 6, 3, 8},
    };
    struct trp_buf b = put(all, 4);
    g_assert_cmpint(trp_accumulators_take(a, b.data, 4, &u), ==, 2);
    g_assert_cmpuint(u[0].id, ==, 2);
    g_assert_cmpstr(u[0].name, ==, "y");
    g_assert_cmpint(u[0].update, ==, 9);
    g_assert_cmpint(u[0].value, ==, 109);
    g_assert_cmpuint(u[1].id, ==, 1);
    g_assert_cmpint(u[1].update, ==, 2);
    g_assert_cmpint(u[1].value, ==, 2);
    trp_buf_free(&b);
    trp_accumulators_free(a);
}

TEST("they travel with an end, and where its result lies")
{
    const struct trp_added v[] = {
        {1, 2, 3, -4       },
        {5, 6, 7, INT64_MAX},
    };
    struct trp_buf added = put(v, 2), b = {0};
    const uint8_t text[] = "result";
    struct trp_end end =
                       {
                           .attempt = {9                },
                           .duration_ns = 5,
                           .added = added.data,
                           .nadded = 2,
                           .in_file = true,
                           .file = {UINT64_C(1) << 40, 77},
                           .has_data = true,
                           .data = {.read_records = 3                },
                           .extra = text,
                           .extra_size = sizeof(text)
    },
                   got = {0};
    struct trp_view view;
    uint32_t count;
    trp_ends_begin(&b);
    trp_ends_put(&b, &end);
    end.in_file = end.has_data = false;
    trp_ends_put(&b, &end);
    trp_batch_finish(&b);
    g_assert_cmpint(trp_ends_open(b.data, b.size, &view, &count), ==, 0);
    for (int i = 0; i < 2; i++) {
        g_assert_cmpint(trp_ends_next(&view, &got), ==, 1);
        g_assert_cmpuint(got.nadded, ==, 2);
        for (uint32_t k = 0; k < 2; k++) {
            struct trp_added e = trp_added_at(got.added, k);
            g_assert_cmpuint(e.accumulator, ==, v[k].accumulator);
            g_assert_cmpuint(e.maker, ==, v[k].maker);
            g_assert_cmpuint(e.partition, ==, v[k].partition);
            g_assert_cmpint(e.value, ==, v[k].value);
        }
        g_assert_cmpint(got.in_file, ==, i == 0);
        g_assert_cmpuint(got.file.size, ==, i == 0 ? UINT64_C(1) << 40 : 0);
        g_assert_cmpuint(got.file.hash, ==, i == 0 ? 77 : 0);
        g_assert_cmpmem(got.extra, got.extra_size, text, sizeof(text));
    }
    g_assert_cmpint(trp_ends_next(&view, &got), ==, 0);
    /* cut anywhere it is refused */
    for (size_t n = 0; n < b.size; n++)
        g_assert_cmpint(trp_ends_open(b.data, n, &view, &count), <, 0);
    trp_buf_free(&added);
    trp_buf_free(&b);
}
