/*
 * The idle monitor: which timeout holds, what is idle at all; against a plain list in
 * random streams.
 */
#include <glib.h>

#include "core/alloc/idle.h"
#include "unit.h"

#define SECOND INT64_C(1000000000)

static trp_idle *monitor(int64_t plain, int64_t cached, int64_t shuffle)
{
    struct trp_idle_config c = {plain, cached, shuffle, true};
    trp_idle *m;
    g_assert_cmpint(trp_idle_new(&c, &m), ==, 0);
    return m;
}

static uint32_t expired(trp_idle *m, int64_t now)
{
    struct trp_idle_item *const *list;
    return trp_idle_expired(m, now, &list);
}

TEST("tasks may start before it registered")
{
    trp_idle *m = monitor(60, INT64_MAX, INT64_MAX);
    struct trp_idle_item x = {.id = 1}, y = {.id = 2};
    trp_idle_started(m, &x, 0);
    trp_idle_ended(m, &x, 10);
    g_assert_cmpuint(expired(m, 1000), ==, 0);
    g_assert_cmpint(trp_idle_added(m, &x, 50), ==, 1);
    g_assert_cmpint(trp_idle_due(m), ==, 70);
    /* Of what nobody knows, an end says nothing. */
    trp_idle_ended(m, &y, 20);
    trp_idle_added(m, &y, 30);
    g_assert_cmpint(trp_idle_deadline(m, &y), ==, 90);
    trp_idle_gone(m, &x);
    trp_idle_gone(m, &y);
    trp_idle_free(m);
}

TEST("a deadline beyond time is never")
{
    trp_idle *m = monitor(INT64_MAX - 5, INT64_MAX, INT64_MAX);
    struct trp_idle_item x = {.id = 1};
    trp_idle_added(m, &x, 5);
    g_assert_cmpint(trp_idle_due(m), ==, INT64_MAX);
    trp_idle_started(m, &x, 6);
    trp_idle_ended(m, &x, 7);
    g_assert_cmpint(trp_idle_due(m), ==, INT64_MAX);
    g_assert_cmpuint(expired(m, INT64_MAX - 1), ==, 0);
    trp_idle_gone(m, &x);
    trp_idle_free(m);
}

TEST("those that expired are told by id")
{
    trp_idle *m = monitor(60, INT64_MAX, INT64_MAX);
    struct trp_idle_item v[9] = {0};
    struct trp_idle_item *const *list;
    for (uint32_t i = 0; i < 9; i++) {
        v[i].id = (i * 5 + 3) % 9;
        trp_idle_added(m, &v[i], i);
    }
    g_assert_cmpuint(trp_idle_expired(m, 100, &list), ==, 9);
    for (uint32_t i = 0; i < 9; i++)
        g_assert_cmpuint(list[i]->id, ==, i);
    for (uint32_t i = 0; i < 9; i++)
        trp_idle_gone(m, &v[i]);
    g_assert_cmpuint(expired(m, 100), ==, 0);
    trp_idle_free(m);
}

/* ---- random streams ---- */

enum { ITEMS = 12, SHUFFLES = 4 };

struct plain {
    struct trp_idle_item x;
    bool there, leaving, data[SHUFFLES];
    uint32_t running, cached;
    int64_t since;
};

struct streams {
    struct plain v[ITEMS];
    bool used[SHUFFLES];
};

static int64_t plain_deadline(const struct streams *s, const struct plain *p)
{
    int64_t timeout = 60;
    if (!p->there || p->leaving || p->running)
        return INT64_MAX;
    if (p->cached)
        timeout = 90;
    for (int i = 0; i < SHUFFLES; i++) {
        if (p->data[i] && s->used[i])
            return INT64_MAX;
        if (p->data[i])
            timeout = 200;
    }
    return p->since + timeout;
}

static void random_event(trp_idle *m, struct streams *s, GRand *r, int64_t now)
{
    struct plain *p = &s->v[g_rand_int_range(r, 0, ITEMS)];
    uint32_t shuffle = (uint32_t)g_rand_int_range(r, 0, SHUFFLES);
    if (!p->there) {
        *p = (struct plain){.x = p->x, .there = true, .since = now};
        g_assert_cmpint(trp_idle_added(m, &p->x, now), ==, 1);
        return;
    }
    switch (g_rand_int_range(r, 0, 9)) {
    case 0:
        trp_idle_gone(m, &p->x);
        p->there = false;
        break;
    case 1:
        p->leaving = g_rand_boolean(r);
        if (p->leaving)
            trp_idle_leaving(m, &p->x);
        p->leaving = p->x.leaving;
        break;
    case 2:
        p->cached = (uint32_t)g_rand_int_range(r, 0, 2);
        trp_idle_cached(m, &p->x, p->cached);
        break;
    case 3:
        p->data[shuffle] = true;
        trp_idle_shuffle_data(m, &p->x, shuffle);
        break;
    case 4:
        s->used[shuffle] = g_rand_boolean(r);
        trp_idle_shuffle_use(m, shuffle, s->used[shuffle]);
        break;
    case 5:
        s->used[shuffle] = false;
        for (int i = 0; i < ITEMS; i++)
            s->v[i].data[shuffle] = false;
        trp_idle_shuffle_gone(m, shuffle);
        break;
    case 6:
        trp_idle_started(m, &p->x, now);
        p->running++;
        break;
    default:
        if (!p->running)
            break;
        trp_idle_ended(m, &p->x, now);
        if (--p->running == 0)
            p->since = now;
    }
}

static void compare(trp_idle *m, const struct streams *s, int64_t now)
{
    struct trp_idle_item *const *list;
    uint32_t n = trp_idle_expired(m, now, &list), at = 0;
    int64_t due = INT64_MAX;
    for (uint32_t i = 0; i < ITEMS; i++) {
        int64_t deadline = plain_deadline(s, &s->v[i]);
        if (deadline > now) {
            due = MIN(due, deadline);
            continue;
        }
        g_assert_cmpuint(at, <, n);
        g_assert_cmpuint(list[at++]->id, ==, i);
    }
    g_assert_cmpuint(at, ==, n);
    g_assert_cmpint(trp_idle_due(m), ==, due);
}

TEST("deadlines equal a plain list in random streams")
{
    for (uint32_t seed = 0; seed < 200; seed++) {
        GRand *r = g_rand_new_with_seed(seed);
        trp_idle *m = monitor(60, 90, 200);
        struct streams s = {0};
        int64_t now = 0;
        for (uint32_t i = 0; i < ITEMS; i++)
            s.v[i].x.id = i;
        for (int i = 0; i < 300; i++) {
            now += g_rand_int_range(r, 0, 12);
            random_event(m, &s, r, now);
            g_test_message("seed %u, event %d", seed, i);
            if (g_rand_boolean(r))
                compare(m, &s, now);
        }
        for (uint32_t i = 0; i < ITEMS; i++)
            trp_idle_gone(m, &s.v[i].x);
        trp_idle_free(m);
        g_rand_free(r);
    }
}
