/*
 * The ledger of a job's nodes: who is placed where, who waits, what never fits.
 */
#include <glib.h>
#include <string.h>

#include "cluster/slurm/accounts/node_ledger.h"
#include "cluster/slurm/helper/inventory_lines.h"
#include "unit.h"

enum { NODES = 4 };

/* Nodes n0..n3 of 4 cores and 4096 MiB; two GPUs each; n3 in a component of its own. */
static struct trp_slurm_node nodes[NODES];
static struct trp_slurm_part parts[2];
static struct trp_slurm_inventory inventory;
static char names[NODES][8], nothing[] = "", big[] = "fast,big";

static void make_inventory(void)
{
    memset(nodes, 0, sizeof nodes);
    memset(parts, 0, sizeof parts);
    for (uint32_t i = 0; i < NODES; i++) {
        g_snprintf(names[i], sizeof names[i], "n%u", i);
        nodes[i] = (struct trp_slurm_node){.name = names[i],
                                           .host = names[i],
                                           .rack = nothing,
                                           .features = i == 2 ? big : nothing,
                                           .part = i == 3,
                                           .cores = 4,
                                           .threads = 1,
                                           .memory_mib = 4096,
                                           .npools = 1};
        nodes[i].pools[0] = (struct trp_slurm_pool){"gpu", "a100", 2};
    }
    parts[0] = (struct trp_slurm_part){.job = 1, .leader = 1, .component = 0};
    parts[1] = (struct trp_slurm_part){.job = 2, .leader = 1, .component = 1};
    parts[0].licences[0] = (struct trp_slurm_pool){"matlab", "", 2};
    parts[0].nlicences = 1;
    inventory = (struct trp_slurm_inventory){
        .parts = parts, .nparts = 2, .nodes = nodes, .nnodes = NODES};
}

static trp_slurm_ledger *make_books(uint32_t driver)
{
    struct trp_slurm_share share = {
        .node = driver, .cores = 0, .memory_mib = 512, .srun_mib = 16};
    trp_slurm_ledger *b = NULL;
    make_inventory();
    g_assert_cmpint(trp_slurm_ledger_new(&inventory, &share, &b, NULL), ==, 0);
    return b;
}

static void want(struct trp_slurm_request *r, uint32_t units, uint64_t cores,
                 int64_t memory)
{
    memset(r, 0, sizeof *r);
    r->units = units;
    r->footprint.cores = cores;
    r->footprint.memory_mib = memory;
}

static void also(struct trp_slurm_request *r, enum trp_slurm_kind kind,
                 const char *name, uint32_t count, uint32_t each)
{
    struct trp_slurm_want *w = &r->footprint.wants[r->footprint.nwants++];
    w->kind = kind;
    w->count = count;
    w->each = each;
    g_strlcpy(w->resource, name, sizeof w->resource);
    g_strlcpy(w->name, name, sizeof w->name);
}

static void ask(trp_slurm_ledger *b, struct trp_slurm_request *r)
{
    g_assert_cmpint(trp_slurm_ledger_ask(b, r, NULL), ==, 0);
}

TEST("the driver's own share has room for an srun")
{
    trp_slurm_ledger *b = NULL;
    trp_error err;
    make_inventory();
    struct trp_slurm_share share = {.memory_mib = 512, .srun_mib = 16};
    nodes[0].memory_mib = 527;
    g_assert_cmpint(trp_slurm_ledger_new(&inventory, &share, &b, &err), ==, TRP_ENEVER);
    g_assert_nonnull(strstr(err.text,
                            "the driver takes 528 MiB (driver.memory 512 MiB, "
                            "and 16 MiB for an srun), "));
    nodes[0].memory_mib = 528;
    g_assert_cmpint(trp_slurm_ledger_new(&inventory, &share, &b, &err), ==, 0);
    trp_slurm_ledger_free(b);
}

TEST("nodes are filled in order, the driver's first")
{
    static const uint32_t order[] = {1, 0, 0, 2, 2, 3, 3};
    trp_slurm_ledger *b = make_books(1);
    struct trp_slurm_request r[8];
    for (size_t i = 0; i < G_N_ELEMENTS(r); i++) {
        want(&r[i], 1, i == 0 ? 3 : 2, 100);
        ask(b, &r[i]);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(order); i++) {
        g_assert_true(trp_slurm_ledger_next(b) == &r[i]);
        g_assert_cmpuint(r[i].nspots, ==, 1);
        g_assert_cmpuint(r[i].spots[0].node, ==, order[i]);
    }
    g_assert_null(trp_slurm_ledger_next(b));
    trp_slurm_ledger_leave(b, &r[2]);
    g_assert_true(trp_slurm_ledger_next(b) == &r[7]);
    g_assert_cmpuint(r[7].spots[0].node, ==, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(r); i++)
        trp_slurm_ledger_leave(b, &r[i]);
    trp_slurm_ledger_free(b);
}

TEST("nobody passes by the first who waits")
{
    trp_slurm_ledger *b = make_books(UINT32_MAX);
    struct trp_slurm_request all, large, small;
    want(&all, 12, 1, 10);
    want(&large, 1, 4, 10);
    want(&small, 1, 1, 10);
    ask(b, &all);
    g_assert_true(trp_slurm_ledger_next(b) == &all);
    g_assert_cmpuint(all.nspots, ==, 3);
    struct trp_slurm_request last = {0};
    want(&last, 1, 4, 10);
    ask(b, &last);
    g_assert_true(trp_slurm_ledger_next(b) == &last);
    ask(b, &large);
    ask(b, &small);
    g_assert_null(trp_slurm_ledger_next(b));
    trp_slurm_ledger_leave(b, &large); /* withdrawn */
    g_assert_null(trp_slurm_ledger_next(b));
    trp_slurm_ledger_leave(b, &all);
    g_assert_true(trp_slurm_ledger_next(b) == &small);
    trp_slurm_ledger_leave(b, &small);
    trp_slurm_ledger_leave(b, &last);
    trp_slurm_ledger_free(b);
}

TEST("what nobody needs yet has room of its own only")
{
    trp_slurm_ledger *b = make_books(UINT32_MAX);
    struct trp_slurm_request ahead[2];
    for (int i = 0; i < 2; i++) {
        want(&ahead[i], 1, 4, 10);
        ahead[i].ahead = true;
        ask(b, &ahead[i]);
    }
    g_assert_null(trp_slurm_ledger_next(b)); /* all four nodes are empty */
    g_assert_cmpuint(trp_slurm_ledger_held(b, &ahead[0].footprint, 1), ==, 4);
    parts[1].ahead = true;
    g_assert_true(trp_slurm_ledger_next(b) == &ahead[0]);
    g_assert_cmpuint(ahead[0].spots[0].node, ==, 3);
    g_assert_null(trp_slurm_ledger_next(b));
    struct trp_slurm_request_kind *before = ahead[1].kind;
    g_assert_cmpint(trp_slurm_ledger_need_now(b, &ahead[1]), ==, 0);
    g_assert_true(ahead[1].kind != before);
    g_assert_cmpuint(before->waiting, ==, 0);
    g_assert_true(trp_slurm_ledger_next(b) == &ahead[1]);
    g_assert_cmpuint(ahead[1].spots[0].node, ==, 0);
    trp_slurm_ledger_leave(b, &ahead[0]);
    trp_slurm_ledger_leave(b, &ahead[1]);
    trp_slurm_ledger_free(b);
}

/* Work comes first also where room was had for what is ahead. */
TEST("and after all others")
{
    trp_slurm_ledger *b = make_books(UINT32_MAX);
    struct trp_slurm_request ahead, full, needed;
    parts[1].ahead = true;
    want(&full, 12, 1, 10);
    ask(b, &full);
    g_assert_true(trp_slurm_ledger_next(b) == &full);
    want(&ahead, 1, 4, 10);
    ahead.ahead = true;
    ask(b, &ahead);
    want(&needed, 1, 2, 10);
    ask(b, &needed);
    g_assert_true(trp_slurm_ledger_next(b) == &needed);
    g_assert_null(trp_slurm_ledger_next(b));
    trp_slurm_ledger_leave(b, &needed);
    g_assert_true(trp_slurm_ledger_next(b) == &ahead);
    trp_slurm_ledger_leave(b, &ahead);
    trp_slurm_ledger_leave(b, &full);
    trp_slurm_ledger_free(b);
}

TEST("the driver has its share")
{
    trp_slurm_ledger *b = make_books(0);
    struct trp_slurm_request r;
    trp_error err;
    g_assert_cmpint(trp_slurm_ledger_memory(b, 0), ==, 3584);
    want(&r, 1, 1, 3584);
    /* On the driver's node there is its srun, too. */
    g_assert_cmpuint(trp_slurm_ledger_fit(b, &r.footprint, 1, &err), ==, 3);
    want(&r, 1, 1, 3584 - 4 * 16);
    g_assert_cmpuint(trp_slurm_ledger_fit(b, &r.footprint, 1, &err), ==, 4);
    struct trp_slurm_share share = {.node = 0, .memory_mib = 5000};
    trp_slurm_ledger *other;
    g_assert_cmpint(trp_slurm_ledger_new(&inventory, &share, &other, &err), ==,
                    TRP_ENEVER);
    g_assert_nonnull(strstr(err.text, "driver.memory"));
    trp_slurm_ledger_free(b);
}

TEST("what never fits is said in words")
{
    trp_slurm_ledger *b = make_books(0);
    struct trp_slurm_request r;
    trp_error err;
    want(&r, 1, 5, 10);
    g_assert_cmpuint(trp_slurm_ledger_fit(b, &r.footprint, 1, &err), ==, 0);
    g_assert_cmpint(err.code, ==, TRP_ENEVER);
    g_assert_cmpstr(err.text, ==, "cores wanted 5, at most 4 on a node");
    want(&r, 1, 1, 8192);
    g_assert_cmpuint(trp_slurm_ledger_fit(b, &r.footprint, 1, &err), ==, 0);
    g_assert_cmpstr(err.text, ==, "memory wanted 8 GiB, at most 4 GiB on a node");
    want(&r, 1, 1, 10);
    also(&r, TRP_SLURM_GRES, "gpu", 3, 1);
    g_assert_cmpuint(trp_slurm_ledger_fit(b, &r.footprint, 1, &err), ==, 0);
    g_assert_cmpstr(err.text, ==, "gpu wanted 3, at most 2 on a node");
    want(&r, 1, 1, 10);
    also(&r, TRP_SLURM_FEATURE, "huge", 1, 1);
    g_assert_cmpuint(trp_slurm_ledger_fit(b, &r.footprint, 1, &err), ==, 0);
    /* More than one component has: a gang is one step. */
    want(&r, 13, 1, 10);
    g_assert_cmpuint(trp_slurm_ledger_fit(b, &r.footprint, 13, &err), ==, 0);
    g_assert_cmpuint(trp_slurm_ledger_fit(b, &r.footprint, 12, &err), ==, 1);
    trp_slurm_ledger_free(b);
}

TEST("devices, features and licences are counted")
{
    trp_slurm_ledger *b = make_books(UINT32_MAX);
    struct trp_slurm_request r[5], fast, licensed[3];
    for (size_t i = 0; i < G_N_ELEMENTS(r); i++) {
        want(&r[i], 1, 1, 10);
        also(&r[i], TRP_SLURM_GRES, "gpu", 2, 1);
        ask(b, &r[i]);
    }
    for (uint32_t i = 0; i < 4; i++) {
        g_assert_true(trp_slurm_ledger_next(b) == &r[i]);
        g_assert_cmpuint(r[i].spots[0].node, ==, i);
        g_assert_cmpuint(r[i].spots[0].takes[0].count, ==, 2);
    }
    g_assert_null(trp_slurm_ledger_next(b));
    trp_slurm_ledger_leave(b, &r[4]);
    want(&fast, 1, 1, 10);
    also(&fast, TRP_SLURM_FEATURE, "big", 1, 1);
    ask(b, &fast);
    g_assert_true(trp_slurm_ledger_next(b) == &fast);
    g_assert_cmpuint(fast.spots[0].node, ==, 2);
    for (size_t i = 0; i < G_N_ELEMENTS(licensed); i++) {
        want(&licensed[i], 1, 1, 10);
        also(&licensed[i], TRP_SLURM_LICENCE, "matlab", 1, 1);
        ask(b, &licensed[i]);
    }
    g_assert_cmpuint(trp_slurm_ledger_fit(b, &licensed[0].footprint, 1, NULL), ==, 2);
    g_assert_nonnull(trp_slurm_ledger_next(b));
    g_assert_nonnull(trp_slurm_ledger_next(b));
    g_assert_null(trp_slurm_ledger_next(b));
    for (size_t i = 0; i < G_N_ELEMENTS(licensed); i++)
        trp_slurm_ledger_leave(b, &licensed[i]);
    for (size_t i = 0; i < 4; i++)
        trp_slurm_ledger_leave(b, &r[i]);
    trp_slurm_ledger_leave(b, &fast);
    trp_slurm_ledger_free(b);
}

/* A step over several nodes has the same number of devices on each. */
TEST("a gang has as many devices on each node")
{
    trp_slurm_ledger *b = make_books(UINT32_MAX);
    struct trp_slurm_request r, half;
    want(&r, 5, 1, 10);
    also(&r, TRP_SLURM_GRES, "gpu", 1, 1);
    ask(b, &r);
    g_assert_true(trp_slurm_ledger_next(b) == &r);
    g_assert_cmpuint(r.nspots, ==, 3);
    g_assert_cmpuint(r.spots[0].units, ==, 2);
    g_assert_cmpuint(r.spots[2].units, ==, 1);
    for (uint32_t i = 0; i < 3; i++)
        g_assert_cmpuint(r.spots[i].takes[0].count, ==, 2);
    trp_slurm_ledger_leave(b, &r);
    /* Two ranks share a device. */
    want(&half, 8, 1, 10);
    also(&half, TRP_SLURM_GRES, "gpu", 1, 2);
    ask(b, &half);
    g_assert_true(trp_slurm_ledger_next(b) == &half);
    g_assert_cmpuint(half.nspots, ==, 2);
    g_assert_cmpuint(half.spots[1].takes[0].count, ==, 2);
    trp_slurm_ledger_leave(b, &half);
    trp_slurm_ledger_free(b);
}

/* Nodes with one GPU, two and two, in one component. */
static trp_slurm_ledger *make_uneven(void)
{
    static const struct trp_slurm_share none = {.node = UINT32_MAX};
    trp_slurm_ledger *b = NULL;
    make_inventory();
    nodes[0].pools[0].count = 1;
    g_assert_cmpint(trp_slurm_ledger_new(&inventory, &none, &b, NULL), ==, 0);
    return b;
}

TEST("where nodes have different numbers of them, too")
{
    trp_slurm_ledger *b = make_uneven();
    struct trp_slurm_request r, three, late;
    trp_error err;
    want(&r, 4, 1, 10);
    also(&r, TRP_SLURM_GRES, "gpu", 1, 1);
    ask(b, &r);
    g_assert_true(trp_slurm_ledger_next(b) == &r);
    g_assert_cmpuint(r.nspots, ==, 2);
    g_assert_cmpuint(r.spots[0].node, ==, 1);
    g_assert_cmpuint(r.spots[1].node, ==, 2);
    trp_slurm_ledger_leave(b, &r);
    /* Three have room with one on each node. */
    want(&late, 1, 1, 10);
    also(&late, TRP_SLURM_GRES, "gpu", 1, 1);
    want(&three, 3, 3, 10);
    also(&three, TRP_SLURM_GRES, "gpu", 1, 1);
    ask(b, &three);
    g_assert_true(trp_slurm_ledger_next(b) == &three);
    g_assert_cmpuint(three.nspots, ==, 3);
    g_assert_cmpuint(three.spots[2].takes[0].count, ==, 1);
    trp_slurm_ledger_leave(b, &three);
    /* Five devices, of which a step can have four at most: it holds up nobody. */
    want(&r, 5, 1, 10);
    also(&r, TRP_SLURM_GRES, "gpu", 1, 1);
    g_assert_cmpuint(trp_slurm_ledger_fit(b, &r.footprint, 5, &err), ==, 0);
    g_assert_cmpstr(err.text, ==,
                    "5 ranks wanted at once, and the job's nodes have not so many");
    ask(b, &r);
    ask(b, &late);
    g_assert_true(trp_slurm_ledger_next(b) == &late);
    g_assert_cmpuint(late.spots[0].node, ==, 0);
    trp_slurm_ledger_leave(b, &late);
    trp_slurm_ledger_leave(b, &r);
    trp_slurm_ledger_free(b);
}

/* The job's licences are on no node: their number there may be any. */
TEST("a gang's licences are the job's, not its nodes'")
{
    trp_slurm_ledger *b = make_books(UINT32_MAX);
    struct trp_slurm_request r;
    parts[0].licences[0].count = 5;
    trp_slurm_ledger_free(b);
    static const struct trp_slurm_share none = {.node = UINT32_MAX};
    g_assert_cmpint(trp_slurm_ledger_new(&inventory, &none, &b, NULL), ==, 0);
    want(&r, 5, 1, 10);
    also(&r, TRP_SLURM_LICENCE, "matlab", 1, 1);
    ask(b, &r);
    g_assert_true(trp_slurm_ledger_next(b) == &r);
    g_assert_cmpuint(r.nspots, ==, 2);
    g_assert_cmpuint(r.spots[0].units, ==, 4);
    g_assert_cmpuint(r.spots[1].units, ==, 1);
    g_assert_cmpuint(r.spots[1].takes[0].count, ==, 1);
    trp_slurm_ledger_leave(b, &r);
    trp_slurm_ledger_free(b);
}

TEST("cores are given whole")
{
    trp_slurm_ledger *b = make_books(UINT32_MAX);
    struct trp_slurm_request r;
    for (uint32_t i = 0; i < NODES; i++)
        nodes[i].threads = 2;
    want(&r, 1, 1, 10);
    g_assert_cmpuint(trp_slurm_ledger_fit(b, &r.footprint, 1, NULL), ==, 8);
    want(&r, 1, 3, 10);
    g_assert_cmpuint(trp_slurm_ledger_fit(b, &r.footprint, 1, NULL), ==, 4);
    trp_slurm_ledger_free(b);
}

/* The site file says what a resource is in Slurm. */
TEST("a profile becomes what the site says")
{
    static const char text[] = "site: 1\n"
                               "resources:\n"
                               "  a100: {slurm: \"gres:gpu:a100\"}\n"
                               "  matlab: {slurm: \"license:matlab\"}\n"
                               "  bigmem: {slurm: \"constraint:big\"}\n";
    trp_site *site = NULL;
    struct trp_slurm_footprint footprint;
    trp_error err;
    struct trp_resource_profile p = {
        .cores = 2, .task_cpus = 3, .total_mib = 1000, .slots = 3, .ncustom = 4};
    static const char *const resources[] = {"a100", "bigmem", "gpu", "matlab"};
    for (size_t i = 0; i < 4; i++) {
        g_strlcpy(p.custom[i].name, resources[i], sizeof p.custom[i].name);
        p.custom[i].executor = (int64_t)i + 1;
    }
    p.custom[0].task = TRP_ONE / 2;
    p.custom[2].task = 2 * TRP_ONE;
    g_assert_cmpint(trp_site_parse("s.yaml", text, strlen(text), &site, &err), ==, 0);
    g_assert_cmpint(trp_slurm_footprint_executor(&p, site, &footprint, &err), ==, 0);
    g_assert_cmpuint(footprint.nwants, ==, 4);
    g_assert_cmpstr(footprint.wants[0].name, ==, "gpu");
    g_assert_cmpstr(footprint.wants[0].type, ==, "a100");
    g_assert_cmpint(footprint.wants[1].kind, ==, TRP_SLURM_FEATURE);
    g_assert_cmpstr(footprint.wants[1].name, ==, "big");
    g_assert_cmpstr(footprint.wants[2].name, ==, "gpu");
    g_assert_cmpstr(footprint.wants[2].type, ==, "");
    g_assert_cmpint(footprint.wants[3].kind, ==, TRP_SLURM_LICENCE);
    g_assert_cmpuint(footprint.wants[3].count, ==, 4);
    /* A rank: its task's side, its part of the memory in whole MiB a CPU. */
    g_assert_cmpint(trp_slurm_footprint_rank(&p, site, &footprint, &err), ==, 0);
    g_assert_cmpuint(footprint.cores, ==, 3);
    g_assert_cmpint(footprint.memory_mib, ==, 336);
    g_assert_cmpuint(footprint.nwants, ==, 2);
    g_assert_cmpuint(footprint.wants[0].each, ==, 2);
    g_assert_cmpuint(footprint.wants[1].count, ==, 2);
    trp_site_free(site);
}

/* What only a discovery script knows of is not Slurm's to count. */
TEST("what a discovery script tells is not counted")
{
    trp_site *site = NULL;
    trp_options *o;
    struct trp_slurm_footprint footprint;
    trp_error err;
    struct trp_resource_profile p = {.cores = 1, .slots = 1, .ncustom = 3};
    static const char *const resources[] = {"fpga", "gpu", "nic"};
    for (size_t i = 0; i < 3; i++) {
        g_strlcpy(p.custom[i].name, resources[i], sizeof p.custom[i].name);
        p.custom[i].executor = (int64_t)i + 1;
    }
    g_assert_cmpint(trp_site_parse("", "site: 1\n", 8, &site, &err), ==, 0);
    g_assert_cmpint(trp_options_new(&o, &err), ==, 0);
    for (size_t i = 0; i < 2; i++) {
        char *key =
            g_strdup_printf("executor.resource.%s.discoveryScript", resources[i]);
        g_assert_cmpint(
            trp_options_set(o, key, "find", TRP_ORIGIN_COMMAND_LINE, "--set", &err), ==,
            0);
        g_free(key);
    }
    g_assert_cmpint(trp_site_take_scripts(site, o, "/w", &err), ==, 0);
    g_assert_cmpstr(trp_site_script(site, "gpu"), ==, "/w/find");
    g_assert_null(trp_site_script(site, "nic"));
    g_assert_cmpint(trp_slurm_footprint_executor(&p, site, &footprint, &err), ==, 0);
    g_assert_cmpuint(footprint.nwants, ==, 2);
    g_assert_cmpstr(footprint.wants[0].resource, ==, "gpu");
    g_assert_cmpstr(footprint.wants[1].resource, ==, "nic");
    g_assert_cmpuint(footprint.nscripted, ==, 1);
    g_assert_cmpstr(footprint.wants[2].resource, ==, "fpga");
    g_assert_cmpuint(footprint.wants[2].count, ==, 1);
    trp_options_free(o);
    trp_site_free(site);
}

TEST("nodes that are doubtful, closed or gone")
{
    trp_slurm_ledger *b = make_books(0);
    struct trp_slurm_request r;
    trp_error err;
    want(&r, 1, 4, 100);
    trp_slurm_ledger_set_standing(b, 0, TRP_SLURM_DOUBTFUL);
    trp_slurm_ledger_set_standing(b, 1, TRP_SLURM_CLOSED);
    /* A doubtful node is the last, even the driver's, and only for who makes do. */
    static const uint32_t order[] = {2, 3, 0};
    struct trp_slurm_request v[4];
    for (uint32_t i = 0; i < 4; i++) {
        want(&v[i], 1, 4, 100);
        g_assert_cmpint(trp_slurm_ledger_ask(b, &v[i], &err), ==, 0);
        if (i == 2) {
            g_assert_null(trp_slurm_ledger_next(b));
            v[i].kind->last_resort = true;
        }
        g_assert_true(trp_slurm_ledger_next(b) == (i < 3 ? &v[i] : NULL));
        if (i < 3)
            g_assert_cmpuint(v[i].spots[0].node, ==, order[i]);
    }
    g_assert_cmpuint(trp_slurm_ledger_fit(b, &r.footprint, 1, &err), ==, 4);
    /* One that is gone is gone, whoever is still there. */
    trp_slurm_ledger_set_standing(b, 2, TRP_SLURM_GONE);
    trp_slurm_ledger_set_standing(b, 2, TRP_SLURM_GOOD);
    g_assert_cmpint(trp_slurm_ledger_standing(b, 2), ==, TRP_SLURM_GONE);
    g_assert_cmpuint(trp_slurm_ledger_fit(b, &r.footprint, 1, &err), ==, 3);
    trp_slurm_ledger_leave(b, &v[0]);
    g_assert_null(trp_slurm_ledger_next(b));
    trp_slurm_ledger_set_standing(b, 1, TRP_SLURM_GOOD);
    g_assert_true(trp_slurm_ledger_next(b) == &v[3]);
    for (uint32_t i = 0; i < 4; i++)
        trp_slurm_ledger_leave(b, &v[i]);
    trp_slurm_ledger_free(b);
}

/* "0.2": the nodes that are kept. */
static const char *kept(const trp_slurm_ledger *b, const struct trp_slurm_load *loads,
                        uint32_t n)
{
    static char text[32];
    bool keep[NODES] = {false};
    size_t at = 0;
    text[0] = '\0';
    g_assert_cmpint(trp_slurm_ledger_keep(b, loads, n, keep), ==, 0);
    for (uint32_t i = 0; i < NODES; i++) {
        if (keep[i])
            at += (size_t)g_snprintf(text + at, sizeof text - at, "%s%u", at ? "." : "",
                                     i);
    }
    return text;
}

static struct trp_slurm_load load(uint32_t count, uint32_t units, uint64_t cores,
                                  int64_t memory)
{
    struct trp_slurm_request r;
    want(&r, units, cores, memory);
    return (struct trp_slurm_load){
        .footprint = r.footprint, .units = units, .count = count};
}

TEST("nodes that a load takes are kept")
{
    trp_slurm_ledger *b = make_books(1);
    struct trp_slurm_load v[2] = {load(1, 1, 2, 100), load(1, 1, 2, 100)};
    g_assert_cmpstr(kept(b, v, 0), ==, "");
    g_assert_cmpstr(kept(b, v, 2), ==, "1"); /* both on the driver's */
    v[1].count = 2;
    g_assert_cmpstr(kept(b, v, 2), ==, "0.1");
    v[1].count = UINT32_MAX;
    g_assert_cmpstr(kept(b, v, 2), ==, "0.1.2.3");
    v[0] = load(1, 6, 1, 10); /* a gang on two nodes of the first component */
    g_assert_cmpstr(kept(b, v, 1), ==, "0.1");
    v[0] = load(1, 1, 4, 4000); /* more than the driver's node has */
    g_assert_cmpstr(kept(b, v, 1), ==, "0");
    struct trp_slurm_request r;
    want(&r, 1, 1, 10);
    also(&r, TRP_SLURM_FEATURE, "big", 1, 1);
    v[0] = (struct trp_slurm_load){.footprint = r.footprint, .units = 1, .count = 1};
    g_assert_cmpstr(kept(b, v, 1), ==, "2");
    v[0].footprint.cores = 5; /* more than any: nothing can be kept for it */
    g_assert_cmpstr(kept(b, v, 1), ==, "");
    trp_slurm_ledger_free(b);
}

/* What a load takes does not depend on who waits now. */
TEST("nodes are kept whoever waits")
{
    trp_slurm_ledger *b = make_books(0);
    struct trp_slurm_load v = load(4, 1, 4, 100);
    struct trp_slurm_request r[9];
    char before[32];
    g_strlcpy(before, kept(b, &v, 1), sizeof before);
    g_assert_cmpuint(strlen(before), >, 1); /* several nodes */
    for (int i = 0; i < 9; i++) {
        want(&r[i], 1, 4, 100);
        ask(b, &r[i]);
    }
    while (trp_slurm_ledger_next(b))
        ;
    g_assert_cmpstr(kept(b, &v, 1), ==, before);
    for (int i = 0; i < 9; i++)
        trp_slurm_ledger_leave(b, &r[i]);
    trp_slurm_ledger_free(b);
}

TEST("those are kept that are well")
{
    trp_slurm_ledger *b = make_books(0);
    struct trp_slurm_load v = load(1, 1, 2, 100);
    struct trp_slurm_request r;
    want(&r, 1, 4, 100);
    ask(b, &r);
    g_assert_true(trp_slurm_ledger_next(b) == &r);
    g_assert_cmpstr(kept(b, &v, 1), ==, "0"); /* whoever is there now */
    trp_slurm_ledger_set_standing(b, 0, TRP_SLURM_DOUBTFUL);
    g_assert_cmpstr(kept(b, &v, 1), ==, "1");
    trp_slurm_ledger_set_standing(b, 1, TRP_SLURM_CLOSED);
    trp_slurm_ledger_set_standing(b, 2, TRP_SLURM_GONE);
    g_assert_cmpstr(kept(b, &v, 1), ==, "3");
    v.count = 3;
    g_assert_cmpstr(kept(b, &v, 1), ==, "0.3"); /* in doubt rather than nowhere */
    /* In a job that nothing runs in, as with alloc.placement=jobs. */
    trp_slurm_ledger_close_part(b, 0);
    trp_slurm_ledger_close_part(b, 1);
    g_assert_cmpstr(kept(b, &v, 1), ==, "");
    trp_slurm_ledger_leave(b, &r);
    trp_slurm_ledger_free(b);
}

TEST("held nodes get nothing new")
{
    trp_slurm_ledger *b = make_books(UINT32_MAX);
    struct trp_slurm_request first, second;
    want(&first, 1, 4, 100);
    want(&second, 1, 1, 100);
    g_assert_cmpuint(trp_slurm_ledger_driver(b), ==, UINT32_MAX);
    for (uint32_t i = 0; i < 3; i++)
        trp_slurm_ledger_hold(b, i, true);
    ask(b, &first);
    g_assert_true(trp_slurm_ledger_next(b) == &first);
    g_assert_cmpuint(first.spots[0].node, ==, 3);
    g_assert_cmpuint(trp_slurm_ledger_fit(b, &first.footprint, 1, NULL), ==, 4);
    ask(b, &second);
    g_assert_null(trp_slurm_ledger_next(b));
    trp_slurm_ledger_hold(b, 1, false);
    g_assert_false(trp_slurm_ledger_is_held(b, 1));
    g_assert_true(trp_slurm_ledger_next(b) == &second);
    g_assert_cmpuint(second.spots[0].node, ==, 1);
    /* What is there stays, and leaves. */
    trp_slurm_ledger_hold(b, 1, true);
    g_assert_cmpuint(trp_slurm_ledger_placed_on(b, 1), ==, 1);
    trp_slurm_ledger_leave(b, &second);
    trp_slurm_ledger_leave(b, &first);
    g_assert_cmpuint(trp_slurm_ledger_placed_on(b, 1), ==, 0);
    trp_slurm_ledger_free(b);
}

/* Who makes do uses a node that is doubtful, and none that has been tried in vain or
 * that Slurm says is taken; who does not is passed by, and passes by nobody. */
TEST("what is used when there is nothing else")
{
    trp_slurm_ledger *b = make_books(UINT32_MAX);
    struct trp_slurm_request v[4], other;
    trp_error err;
    trp_slurm_ledger_set_standing(b, 0, TRP_SLURM_SILENT);
    trp_slurm_ledger_set_standing(b, 1, TRP_SLURM_TAKEN);
    trp_slurm_ledger_set_standing(b, 2, TRP_SLURM_DOUBTFUL);
    for (uint32_t i = 0; i < 4; i++) {
        want(&v[i], 1, 4, 100);
        g_assert_cmpint(trp_slurm_ledger_ask(b, &v[i], &err), ==, 0);
    }
    want(&other, 1, 1, 100);
    g_assert_cmpint(trp_slurm_ledger_ask(b, &other, &err), ==, 0);
    g_assert_true(trp_slurm_ledger_next(b) == &v[0]);
    g_assert_cmpuint(v[0].spots[0].node, ==, 3);
    g_assert_null(trp_slurm_ledger_next(b));
    other.kind->last_resort = true;
    g_assert_true(trp_slurm_ledger_next(b) == &other);
    g_assert_cmpuint(other.spots[0].node, ==, 2);
    v[0].kind->last_resort = true;
    g_assert_null(trp_slurm_ledger_next(b));
    /* Its steps were compared: once more. */
    trp_slurm_ledger_set_standing(b, 1, TRP_SLURM_GOOD);
    g_assert_true(trp_slurm_ledger_next(b) == &v[1]);
    g_assert_cmpuint(v[1].spots[0].node, ==, 1);
    g_assert_null(trp_slurm_ledger_next(b));
    /* Slurm was asked: once more. */
    trp_slurm_ledger_set_standing(b, 0, TRP_SLURM_DOUBTFUL);
    g_assert_true(trp_slurm_ledger_next(b) == &v[2]);
    g_assert_cmpuint(v[2].spots[0].node, ==, 0);
    /* A good node that comes is used at once. */
    trp_slurm_ledger_leave(b, &v[0]);
    g_assert_true(trp_slurm_ledger_next(b) == &v[3]);
    g_assert_cmpuint(v[3].spots[0].node, ==, 3);
    for (uint32_t i = 0; i < 4; i++)
        trp_slurm_ledger_leave(b, &v[i]);
    trp_slurm_ledger_leave(b, &other);
    trp_slurm_ledger_free(b);
}

/* Where a start of a kind has failed others come first for it, as long as that is the
 * only host; who makes do uses it all the same. */
TEST("where a start has failed others come first")
{
    trp_slurm_ledger *b = make_books(UINT32_MAX);
    struct trp_slurm_request v[5];
    trp_error err;
    for (uint32_t i = 0; i < 5; i++) {
        want(&v[i], 1, 4, 100);
        g_assert_cmpint(trp_slurm_ledger_ask(b, &v[i], &err), ==, 0);
    }
    struct trp_slurm_request_kind *kind = v[0].kind;
    const char *first = inventory.nodes[0].name;
    g_strlcpy(kind->failed_on, first, sizeof kind->failed_on);
    g_assert_true(trp_slurm_ledger_another(b, kind, first));
    for (uint32_t i = 0; i < 3; i++) {
        g_assert_true(trp_slurm_ledger_next(b) == &v[i]);
        g_assert_cmpuint(v[i].spots[0].node, ==, i + 1);
    }
    g_assert_null(trp_slurm_ledger_next(b));
    kind->last_resort = true;
    g_assert_true(trp_slurm_ledger_next(b) == &v[3]);
    g_assert_cmpuint(v[3].spots[0].node, ==, 0);
    for (uint32_t i = 1; i < 4; i++)
        trp_slurm_ledger_set_standing(b, i, TRP_SLURM_CLOSED);
    g_assert_false(trp_slurm_ledger_another(b, kind, first));
    for (uint32_t i = 0; i < 5; i++)
        trp_slurm_ledger_leave(b, &v[i]);
    trp_slurm_ledger_free(b);
}

/* What is not to be on some hosts waits for another, and holds up nobody meanwhile. */
TEST("hosts where one is not to be")
{
    trp_slurm_ledger *b = make_books(UINT32_MAX);
    struct trp_slurm_request v[6];
    static const uint32_t on[] = {2, 3, 0, 1};
    for (uint32_t i = 0; i < 6; i++) {
        want(&v[i], 1, 4, 100);
        v[i].not_on = i < 2 || i > 3 ? "n0,n1" : "";
    }
    for (uint32_t i = 0; i < 2; i++)
        ask(b, &v[i]);
    for (uint32_t i = 0; i < 2; i++) {
        g_assert_true(trp_slurm_ledger_next(b) == &v[i]);
        g_assert_cmpuint(v[i].spots[0].node, ==, on[i]);
    }
    ask(b, &v[4]);
    ask(b, &v[5]);
    g_assert_null(trp_slurm_ledger_next(b));
    for (uint32_t i = 2; i < 4; i++) {
        ask(b, &v[i]);
        g_assert_true(trp_slurm_ledger_next(b) == &v[i]);
        g_assert_cmpuint(v[i].spots[0].node, ==, on[i]);
    }
    trp_slurm_ledger_leave(b, &v[2]);
    g_assert_null(trp_slurm_ledger_next(b));
    trp_slurm_ledger_leave(b, &v[1]);
    g_assert_true(trp_slurm_ledger_next(b) == &v[4]);
    g_assert_cmpuint(v[4].spots[0].node, ==, 3);
    for (uint32_t i = 0; i < 6; i++)
        trp_slurm_ledger_leave(b, &v[i]);
    trp_slurm_ledger_free(b);
}

/* Part 0 loses node 0 while one of 3 cores runs on node 1 and nothing on node 2. */
TEST("cores of what runs when a part loses a node are lost")
{
    trp_slurm_ledger *b = make_books(UINT32_MAX);
    struct trp_slurm_request v[6];
    for (uint32_t i = 0; i < 6; i++)
        want(&v[i], 1, i < 2 ? 3 : 2, i < 2 ? 3000 : 2000);
    trp_slurm_ledger_set_standing(b, 3, TRP_SLURM_CLOSED);
    ask(b, &v[0]);
    ask(b, &v[1]);
    for (uint32_t i = 0; i < 2; i++)
        g_assert_true(trp_slurm_ledger_next(b) == &v[i]);
    g_assert_cmpuint(v[1].spots[0].node, ==, 1);
    trp_slurm_ledger_set_standing(b, 0, TRP_SLURM_GONE);
    trp_slurm_ledger_resized(b, 0);
    trp_slurm_ledger_leave(b, &v[1]); /* its cores stay taken, its memory does not */
    for (uint32_t i = 2; i < 5; i++)
        ask(b, &v[i]);
    for (uint32_t i = 2; i < 4; i++) {
        g_assert_true(trp_slurm_ledger_next(b) == &v[i]);
        g_assert_cmpuint(v[i].spots[0].node, ==, 2);
    }
    g_assert_null(trp_slurm_ledger_next(b));
    want(&v[5], 1, 1, 4000);
    ask(b, &v[5]);
    trp_slurm_ledger_leave(b, &v[4]);
    g_assert_true(trp_slurm_ledger_next(b) == &v[5]);
    g_assert_cmpuint(v[5].spots[0].node, ==, 1);
    trp_slurm_ledger_leave(b, &v[5]); /* one that came later gives back what it took */
    ask(b, &v[5]);
    g_assert_true(trp_slurm_ledger_next(b) == &v[5]);
    for (uint32_t i = 0; i < 6; i++)
        trp_slurm_ledger_leave(b, &v[i]);
    trp_slurm_ledger_free(b);
}
