/*
 * Pools: the order in which task sets are offered resources. A slow oracle, written
 * from semantics, section 19, with strings and floating point, agrees on random streams.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "core/sched/pools.h"
#include "unit.h"

struct set {
    struct trp_pool_child place;
    const char *name;
};

static trp_pools *make(enum trp_pool_mode mode, const struct trp_pool_spec *specs,
                       uint32_t n)
{
    trp_pools *p = NULL;
    trp_error err = {0};
    g_assert_cmpint(trp_pools_new(mode, specs, n, &p, &err), ==, 0);
    return p;
}

static void add(trp_pools *p, struct set *s, const char *pool, uint32_t job,
                uint32_t stage, uint32_t attempt)
{
    g_assert_cmpint(trp_pools_add(p, &s->place, s, pool, job, stage, attempt, NULL), ==,
                    0);
    trp_pools_list(p, &s->place);
}

/* The names of the listed sets in order, blanks between them. */
static const char *order(trp_pools *p)
{
    static char buf[256];
    buf[0] = '\0';
    for (struct set *s = trp_pools_first(p); s; s = trp_pools_next(p)) {
        if (buf[0])
            g_strlcat(buf, " ", sizeof buf);
        g_strlcat(buf, s->name, sizeof buf);
    }
    trp_error err = {0};
    g_assert_cmpint(trp_pools_check(p, &err), ==, 0);
    g_assert_null(trp_pools_next(p));
    return buf;
}

static void end(trp_pools *p, struct set *sets, int n)
{
    for (int i = 0; i < n; i++)
        trp_pools_remove(p, &sets[i].place);
    g_assert_cmpstr(order(p), ==, "");
    trp_pools_free(p);
}

TEST("FIFO is by job, stage and arrival, whatever the pool")
{
    trp_pools *p = make(TRP_POOL_FIFO, NULL, 0);
    struct set s[] = {
        {.name = "c"}, {.name = "a"}, {.name = "b"}, {.name = "d"}, {.name = "b2"}};
    g_assert_cmpstr(order(p), ==, "");
    add(p, &s[0], "x", 1, 2, 0);
    add(p, &s[1], "y", 0, 9, 0);
    add(p, &s[2], NULL, 1, 1, 0);
    add(p, &s[3], "x", 2, 0, 0);
    add(p, &s[4], "x", 1, 1, 1);
    g_assert_cmpstr(order(p), ==, "a b b2 c d");
    trp_pools_count(p, &s[1].place, 50);
    g_assert_cmpstr(order(p), ==, "a b b2 c d");
    trp_pools_unlist(p, &s[1].place);
    trp_pools_unlist(p, &s[2].place);
    trp_pools_unlist(p, &s[2].place);
    g_assert_cmpstr(order(p), ==, "b2 c d");
    trp_pools_list(p, &s[1].place);
    trp_pools_list(p, &s[1].place);
    g_assert_cmpstr(order(p), ==, "a b2 c d");
    struct trp_pool_view view;
    trp_pools_view(&s[3].place, &view);
    g_assert_cmpstr(view.name, ==, "");
    g_assert_cmpuint(view.running, ==, 50);
    end(p, s, 5);
}

TEST("the largest ids keep their order")
{
    trp_pools *p = make(TRP_POOL_FIFO, NULL, 0);
    struct set s[] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    add(p, &s[0], NULL, UINT32_MAX - 1, UINT32_MAX - 1, 0);
    add(p, &s[1], NULL, UINT32_MAX - 1, 0, 0);
    add(p, &s[2], NULL, 0, UINT32_MAX - 1, 0);
    g_assert_cmpstr(order(p), ==, "c b a");
    end(p, s, 3);
}

TEST("minimum shares come first")
{
    struct trp_pool_spec specs[] = {
        {"1", "fifo", "1", "2", NULL},
        {"2", "fifo", "1", "3", NULL},
    };
    trp_pools *p = make(TRP_POOL_FAIR, specs, 2);
    struct set s[] = {{.name = "S0"}, {.name = "S3"}, {.name = "S1"}};
    add(p, &s[0], "1", 0, 0, 0);
    add(p, &s[1], "2", 0, 3, 0);
    add(p, &s[2], "1", 0, 1, 0);
    g_assert_cmpstr(order(p), ==, "S0 S1 S3");
    trp_pools_count(p, &s[0].place, 1);
    g_assert_cmpstr(order(p), ==, "S3 S0 S1");
    trp_pools_count(p, &s[1].place, 1);
    g_assert_cmpstr(order(p), ==, "S3 S0 S1"); /* 1/3 before 1/2 */
    trp_pools_count(p, &s[1].place, 1);
    g_assert_cmpstr(order(p), ==, "S0 S1 S3");
    trp_pools_count(p, &s[2].place, 1);
    g_assert_cmpstr(order(p), ==, "S3 S0 S1"); /* only pool 2 is needy */
    trp_pools_count(p, &s[1].place, 1);
    g_assert_cmpstr(order(p), ==, "S0 S1 S3"); /* 2/1 before 3/1 */
    end(p, s, 3);
}

TEST("names break ties as strings")
{
    trp_pools *p = make(TRP_POOL_FAIR, NULL, 0);
    struct set s[] = {{.name = "2.0"},
                      {.name = "10.0"},
                      {.name = "1.1"},
                      {.name = "1.0"},
                      {.name = "1.10"}};
    add(p, &s[0], NULL, 0, 2, 0);
    add(p, &s[1], NULL, 1, 10, 0);
    add(p, &s[2], "default", 2, 1, 1);
    add(p, &s[3], " ", 3, 1, 0);
    add(p, &s[4], "", 3, 1, 10);
    /* Nothing is configured: "default" is FAIR itself, and names are strings. */
    g_assert_cmpstr(order(p), ==, "1.0 1.1 1.10 10.0 2.0");
    trp_pools_count(p, &s[3].place, 1);
    g_assert_cmpstr(order(p), ==, "1.1 1.10 10.0 2.0 1.0");
    end(p, s, 5);
}

TEST("a file makes the default pool FIFO")
{
    static const struct trp_pool_spec none;
    trp_pools *p = make(TRP_POOL_FAIR, &none, 0);
    struct set s[] = {{.name = "a"}, {.name = "b"}};
    add(p, &s[0], NULL, 0, 1, 0);
    add(p, &s[1], NULL, 1, 0, 0);
    trp_pools_count(p, &s[0].place, 7);
    g_assert_cmpstr(order(p), ==, "a b");
    end(p, s, 2);

    struct trp_pool_spec fair = {"default", "FAIR", "2", "1", NULL};
    p = make(TRP_POOL_FAIR, &fair, 1);
    struct set t[] = {{.name = "a"}, {.name = "b"}};
    add(p, &t[0], NULL, 0, 1, 0);
    add(p, &t[1], NULL, 1, 0, 0);
    trp_pools_count(p, &t[0].place, 7);
    g_assert_cmpstr(order(p), ==, "b a");
    struct trp_pool_view view;
    trp_pools_view(&t[0].place, &view);
    g_assert_cmpstr(view.name, ==, "default");
    g_assert_cmpuint(view.weight, ==, 2);
    g_assert_cmpuint(view.min_share, ==, 1);
    g_assert_cmpuint(view.running, ==, 7);
    end(p, t, 2);
}

TEST("pools in pools count for their parents")
{
    struct trp_pool_spec specs[] = {
        {"etl.big",   "FIFO", "1",  NULL, "etl"   },
        {"etl",       "FAIR", "2",  NULL, NULL    },
        {"etl.small", "FAIR", "1",  "1",  "etl"   },
        {"adhoc",     "FIFO", NULL, NULL, NULL    },
        {"lost",      "FIFO", NULL, NULL, "nobody"},
    };
    trp_pools *p = make(TRP_POOL_FAIR, specs, 5);
    struct set s[] = {
        {.name = "big"}, {.name = "small"}, {.name = "adhoc"}, {.name = "lost"}};
    add(p, &s[0], "etl.big", 0, 0, 0);
    add(p, &s[1], "etl.small", 1, 1, 0);
    add(p, &s[2], "adhoc", 2, 2, 0);
    add(p, &s[3], "lost", 3, 3, 0);
    g_assert_cmpstr(order(p), ==, "adhoc small big lost");
    trp_pools_count(p, &s[2].place, 1);
    trp_pools_count(p, &s[1].place, 1);
    /* adhoc 1, etl 1/2, nobody 0; inside etl: big 0, small 1 and not needy. */
    g_assert_cmpstr(order(p), ==, "lost big small adhoc");
    trp_pools_count(p, &s[0].place, 1);
    trp_pools_count(p, &s[3].place, 1);
    g_assert_cmpstr(order(p), ==, "adhoc big small lost");
    trp_pools_unlist(p, &s[0].place);
    trp_pools_unlist(p, &s[1].place);
    g_assert_cmpstr(order(p), ==, "adhoc lost");
    trp_pools_list(p, &s[1].place);
    g_assert_cmpstr(order(p), ==, "adhoc small lost");
    end(p, s, 4);
}

TEST("pools stand before sets in a FIFO pool")
{
    struct trp_pool_spec specs[] = {
        {"top", "FIFO", NULL, NULL, NULL },
        {"z",   "FIFO", NULL, NULL, "top"},
        {"y",   "FIFO", NULL, NULL, "top"},
    };
    trp_pools *p = make(TRP_POOL_FAIR, specs, 3);
    struct set s[] = {{.name = "set"}, {.name = "y"}, {.name = "z"}};
    add(p, &s[0], "top", 0, 0, 0);
    add(p, &s[1], "y", 5, 5, 0);
    add(p, &s[2], "z", 9, 9, 0);
    g_assert_cmpstr(order(p), ==, "z y set");
    end(p, s, 3);
}

TEST("odd values are the defaults")
{
    struct trp_pool_spec specs[] = {
        {"good",   "\t FaIr ", " 3 ", " 2\n",                NULL},
        {"blank",  "",         "",    " ",                   " " },
        {"words",  "fairest",  "x",   "2.5",                 ""  },
        {"less",   "NONE",     "-1",  "-1",                  NULL},
        {"zero",   "fai",      "0",   "0",                   NULL},
        {"much",   NULL,       "1e9", "9999999999999999999", NULL},
        {"signed", "fifo",     "+7",  "+1",                  NULL},
    };
    static const struct {
        enum trp_pool_mode mode;
        uint32_t weight, min_share;
    } want[] = {
        {TRP_POOL_FAIR, 3, 2},
        {TRP_POOL_FIFO, 1, 0},
        {TRP_POOL_FIFO, 1, 0},
        {TRP_POOL_FIFO, 1, 0},
        {TRP_POOL_FIFO, 1, 0},
        {TRP_POOL_FIFO, 1, 0},
        {TRP_POOL_FIFO, 7, 1},
    };
    trp_pools *p = make(TRP_POOL_FAIR, specs, 7);
    for (int i = 0; i < 7; i++) {
        struct set s = {.name = "s"};
        add(p, &s, specs[i].name, 0, 0, 0);
        struct trp_pool_view view;
        trp_pools_view(&s.place, &view);
        g_assert_cmpstr(view.name, ==, specs[i].name);
        g_assert_cmpint(view.mode, ==, want[i].mode);
        g_assert_cmpuint(view.weight, ==, want[i].weight);
        g_assert_cmpuint(view.min_share, ==, want[i].min_share);
        trp_pools_remove(p, &s.place);
        trp_pools_remove(p, &s.place);
    }
    trp_pools_free(p);
    trp_pools_free(NULL);
}

static void refused(const struct trp_pool_spec *specs, uint32_t n, int code,
                    const char *text)
{
    trp_pools *p = NULL;
    trp_error err = {0};
    g_assert_cmpint(trp_pools_new(TRP_POOL_FAIR, specs, n, &p, &err), ==, code);
    g_assert_null(p);
    g_assert_nonnull(strstr(err.text, text));
    g_assert_cmpint(trp_pools_new(TRP_POOL_FIFO, specs, n, &p, NULL), ==, 0);
    trp_pools_free(p);
}

TEST("impossible trees are refused")
{
    refused((struct trp_pool_spec[]){{.name = " "}}, 1, TRP_EINVAL, "no name");
    refused((struct trp_pool_spec[]){{.name = NULL}}, 1, TRP_EINVAL, "no name");
    refused((struct trp_pool_spec[]){{.name = "a"}, {.name = "a"}}, 2, TRP_EEXIST,
            "pool a is declared twice");
    refused(
        (struct trp_pool_spec[]){
            {.name = "a", .parent = "a"}
    },
        1, TRP_EINVAL, "pool a lies inside itself");
    refused(
        (struct trp_pool_spec[]){
            {.name = "a", .parent = "b"},
            {.name = "b", .parent = "c"},
            {.name = "c", .parent = "a"}
    },
        3, TRP_EINVAL, "inside itself: its parent is b");
    static struct trp_pool_spec deep[TRP_POOLS_DEPTH + 1];
    static char names[TRP_POOLS_DEPTH + 1][8];
    for (int i = 0; i <= TRP_POOLS_DEPTH; i++) {
        g_snprintf(names[i], sizeof names[i], "p%d", i);
        deep[i] =
            (struct trp_pool_spec){.name = names[i], .parent = i ? names[i - 1] : NULL};
    }
    trp_pools_free(make(TRP_POOL_FAIR, deep, TRP_POOLS_DEPTH));
    refused(deep, TRP_POOLS_DEPTH + 1, TRP_ELIMIT, "64 levels");
}

TEST("unknown pools are made and go")
{
    struct trp_pool_spec known = {.name = "known"};
    trp_pools *p = make(TRP_POOL_FAIR, &known, 1);
    struct set s[] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    add(p, &s[0], "new", 0, 0, 0);
    add(p, &s[1], "new", 0, 1, 0);
    add(p, &s[2], "known", 0, 2, 0);
    g_assert_cmpstr(order(p), ==, "c a b");
    trp_pools_count(p, &s[0].place, 2);
    trp_pools_remove(p, &s[0].place);
    struct trp_pool_view view;
    trp_pools_view(&s[1].place, &view);
    g_assert_cmpuint(view.running, ==, 0);
    trp_pools_remove(p, &s[1].place);
    g_assert_cmpstr(order(p), ==, "c");
    add(p, &s[1], "new", 0, 1, 0);
    g_assert_cmpstr(order(p), ==, "c b");
    end(p, s, 3);
}

TEST("a walk survives changes")
{
    struct trp_pool_spec specs[] = {{.name = "b"}, {.name = "c"}, {.name = "d"}};
    trp_pools *p = make(TRP_POOL_FAIR, specs, 3);
    struct set s[] = {{.name = "a0"}, {.name = "b0"}, {.name = "b1"}, {.name = "b2"},
                      {.name = "c0"}, {.name = "d0"}, {.name = "new"}};
    add(p, &s[0], "a", 0, 0, 0); /* a pool that goes with it */
    for (uint32_t i = 1; i < 6; i++)
        add(p, &s[i], i < 4 ? "b" : i < 5 ? "c" : "d", 0, i, 0);
    g_assert_true(trp_pools_first(p) == &s[0]);
    trp_pools_remove(p, &s[0].place); /* with the pool the walk is in */
    g_assert_true(trp_pools_next(p) == &s[1]);
    trp_pools_count(p, &s[1].place, 9); /* order stays in this round */
    trp_pools_remove(p, &s[1].place);   /* in front of the walk */
    g_assert_true(trp_pools_next(p) == &s[2]);
    trp_pools_unlist(p, &s[2].place);
    trp_pools_unlist(p, &s[3].place); /* not reached yet */
    add(p, &s[6], "a", 0, 0, 0);
    g_assert_true(trp_pools_next(p) == &s[4]);
    trp_pools_count(p, &s[4].place, 1);
    g_assert_true(trp_pools_next(p) == &s[5]);
    g_assert_null(trp_pools_next(p));
    g_assert_cmpstr(order(p), ==, "new d0 c0");
    end(p, s, 7);
}

/* ---- the oracle ---- */

enum { POOLS = 7, SETS = 40 };

struct model_pool {
    const char *name;
    bool fair;
    int weight, min_share, parent; /* -1: root */
};
/* What `specs` of the random test say, in words of the oracle; 0 is the root. */
static const struct model_pool model[POOLS] = {
    {"",        true,  1, 0, -1},
    {"default", false, 1, 0, 0 },
    {"u",       true,  2, 3, 0 },
    {"v",       false, 3, 0, 0 },
    {"w",       true,  1, 1, 2 },
    {"x",       false, 5, 2, 2 },
    {"y",       true,  1, 0, 3 },
};

struct model_set {
    struct set set;
    bool there, listed;
    int pool, running;
    uint32_t job, stage, attempt;
    int arrival;
};

/* A pool or a set, as the comparators see it. */
struct model_child {
    char name[32];
    double running, weight, min_share;
    int64_t job, stage;
    int arrival, pool, set; /* one of the last two is -1 */
};

static struct model_set *model_sets;

static int model_running(int pool)
{
    int n = 0;
    for (int i = 0; i < SETS; i++)
        if (model_sets[i].there && model_sets[i].pool == pool)
            n += model_sets[i].running;
    for (int i = 1; i < POOLS; i++)
        if (model[i].parent == pool)
            n += model_running(i);
    return n;
}

static int compare_fifo(const void *va, const void *vb)
{
    const struct model_child *a = va, *b = vb;
    if (a->job != b->job)
        return a->job < b->job ? -1 : 1;
    if (a->stage != b->stage)
        return a->stage < b->stage ? -1 : 1;
    return a->arrival - b->arrival;
}

static int compare_fair(const void *va, const void *vb)
{
    const struct model_child *a = va, *b = vb;
    bool a_needy = a->running < a->min_share, b_needy = b->running < b->min_share;
    if (a_needy != b_needy)
        return a_needy ? -1 : 1;
    double x = a_needy ? a->running / MAX(a->min_share, 1) : a->running / a->weight;
    double y = a_needy ? b->running / MAX(b->min_share, 1) : b->running / b->weight;
    if (x != y)
        return x < y ? -1 : 1;
    int by_name = strcmp(a->name, b->name);
    return by_name ? by_name : a->arrival - b->arrival;
}

static int model_order(int pool, int *ret)
{
    struct model_child c[POOLS + SETS];
    int n = 0, found = 0;
    for (int i = 1; i < POOLS; i++) {
        if (model[i].parent != pool)
            continue;
        c[n] = (struct model_child){.running = model_running(i),
                                    .weight = model[i].weight,
                                    .min_share = model[i].min_share,
                                    .stage = -1,
                                    .arrival = i - POOLS,
                                    .pool = i,
                                    .set = -1};
        g_strlcpy(c[n++].name, model[i].name, sizeof c->name);
    }
    for (int i = 0; i < SETS; i++) {
        const struct model_set *s = &model_sets[i];
        if (!s->there || s->pool != pool)
            continue;
        c[n] = (struct model_child){.running = s->running,
                                    .weight = 1,
                                    .job = s->job,
                                    .stage = s->stage,
                                    .arrival = s->arrival,
                                    .pool = -1,
                                    .set = i};
        g_snprintf(c[n++].name, sizeof c->name, "TaskSet_%u.%u", s->stage, s->attempt);
    }
    qsort(c, n, sizeof *c, model[pool].fair ? compare_fair : compare_fifo);
    for (int i = 0; i < n; i++) {
        if (c[i].pool >= 0)
            found += model_order(c[i].pool, ret + found);
        else if (model_sets[c[i].set].listed)
            ret[found++] = c[i].set;
    }
    return found;
}

static void random_step(trp_pools *p, GRand *rand, struct model_set *s, int arrival)
{
    if (!s->there) {
        *s = (struct model_set){.there = true,
                                .pool = g_rand_int_range(rand, 1, POOLS),
                                .job = g_rand_int_range(rand, 0, 4),
                                .stage = g_rand_int_range(rand, 0, 30),
                                .attempt = g_rand_int_range(rand, 0, 12),
                                .arrival = arrival};
        g_assert_cmpint(trp_pools_add(p, &s->set.place, s, model[s->pool].name, s->job,
                                      s->stage, s->attempt, NULL),
                        ==, 0);
        return;
    }
    int what = g_rand_int_range(rand, 0, 12);
    if (what < 4) {
        s->running++;
        trp_pools_count(p, &s->set.place, 1);
    } else if (what < 7 && s->running) {
        s->running--;
        trp_pools_count(p, &s->set.place, -1);
    } else if (what < 10) {
        s->listed = true;
        trp_pools_list(p, &s->set.place);
    } else if (what < 11) {
        s->listed = false;
        trp_pools_unlist(p, &s->set.place);
    } else {
        s->there = s->listed = false;
        trp_pools_remove(p, &s->set.place);
    }
}

static void random_stream(uint32_t seed)
{
    static const struct trp_pool_spec specs[] = {
        {"default", "FIFO", "1", "0", NULL},
        {"u",       "FAIR", "2", "3", NULL},
        {"v",       "FIFO", "3", "0", NULL},
        {"w",       "FAIR", "1", "1", "u" },
        {"x",       "FIFO", "5", "2", "u" },
        {"y",       "FAIR", "1", "0", "v" },
    };
    struct model_set sets[SETS] = {0};
    model_sets = sets;
    GRand *rand = g_rand_new_with_seed(seed);
    trp_pools *p = make(TRP_POOL_FAIR, specs, POOLS - 1);
    trp_error err = {0};
    for (int step = 0; step < 300; step++) {
        random_step(p, rand, &sets[g_rand_int_range(rand, 0, SETS)], step);
        g_assert_cmpint(trp_pools_check(p, &err), ==, 0);
        if (g_rand_int_range(rand, 0, 3))
            continue;
        int want[SETS], n = model_order(0, want), i = 0;
        for (struct model_set *s = trp_pools_first(p); s; s = trp_pools_next(p), i++)
            if (i >= n || s != &sets[want[i]])
                g_error("seed %u, step %d: place %d of %d is another", seed, step, i,
                        n);
        g_assert_cmpint(i, ==, n);
    }
    for (int i = 0; i < SETS; i++)
        trp_pools_remove(p, &sets[i].set.place);
    trp_pools_free(p);
    g_rand_free(rand);
}

TEST("random streams agree with an oracle")
{
    for (uint32_t seed = 1; seed <= 100; seed++)
        random_stream(seed);
}
