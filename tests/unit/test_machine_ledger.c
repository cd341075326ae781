/*
 * The ledger of a machine's room: what fits, who is served when, what is given back.
 */
#include <glib.h>
#include <string.h>

#include "cluster/local/machine.h"
#include "cluster/local/machine_ledger.h"
#include "unit.h"

static const char *const gpus[] = {"10", "0", "2", "1"};
static const struct trp_resource_addresses devices[] = {
    {"gpu", gpus, 4}
};

static trp_machine_ledger *make_room(void)
{
    trp_machine_ledger *ledger = NULL;
    g_assert_cmpint(trp_machine_ledger_new(8, 4096, devices, 1, &ledger, NULL), ==, 0);
    return ledger;
}

static void want(struct trp_request *r, uint64_t cores, int64_t memory, uint32_t gpu)
{
    memset(r, 0, sizeof *r);
    r->footprint.cores = cores;
    r->footprint.memory_mib = memory;
    if (gpu) {
        g_strlcpy(r->footprint.devices[0].name, "gpu",
                  sizeof r->footprint.devices[0].name);
        r->footprint.devices[0].count = gpu;
        r->footprint.ndevices = 1;
    }
}

TEST("what never fits is named with wanted and available")
{
    trp_machine_ledger *ledger = make_room();
    struct trp_request r;
    trp_error err;
    want(&r, 3, 512, 0);
    g_assert_cmpuint(trp_machine_ledger_fit(ledger, &r.footprint, &err), ==, 2);
    want(&r, 1, 1024, 0);
    g_assert_cmpuint(trp_machine_ledger_fit(ledger, &r.footprint, &err), ==, 4);
    want(&r, 1, 128, 3);
    g_assert_cmpuint(trp_machine_ledger_fit(ledger, &r.footprint, &err), ==, 1);
    want(&r, 9, 128, 0);
    g_assert_cmpuint(trp_machine_ledger_fit(ledger, &r.footprint, &err), ==, 0);
    g_assert_cmpstr(err.text, ==, "cores wanted 9, available 8");
    want(&r, 1, 8192, 0);
    g_assert_cmpuint(trp_machine_ledger_fit(ledger, &r.footprint, &err), ==, 0);
    g_assert_cmpstr(err.text, ==, "memory wanted 8 GiB, available 4 GiB");
    want(&r, 1, 1, 5);
    g_assert_cmpuint(trp_machine_ledger_fit(ledger, &r.footprint, &err), ==, 0);
    g_assert_cmpstr(err.text, ==, "gpu wanted 5, available 4");
    g_strlcpy(r.footprint.devices[0].name, "fpga", sizeof r.footprint.devices[0].name);
    g_assert_cmpuint(trp_machine_ledger_fit(ledger, &r.footprint, &err), ==, 0);
    g_assert_cmpstr(err.text, ==,
                    "fpga wanted 5, available 0; a site file says what is here: "
                    "local: {fpga: [\"0\"]}");
    g_assert_cmpint(trp_machine_ledger_ask(ledger, &r, &err), ==, TRP_ENEVER);
    trp_machine_ledger_free(ledger);
}

TEST("a share is lowest cores and addresses in natural order")
{
    trp_machine_ledger *ledger = make_room();
    struct trp_request a, b;
    want(&a, 3, 1000, 2);
    want(&b, 2, 1000, 2);
    g_assert_cmpint(trp_machine_ledger_ask(ledger, &a, NULL), ==, 0);
    g_assert_cmpint(trp_machine_ledger_ask(ledger, &b, NULL), ==, 0);
    g_assert_true(trp_machine_ledger_next(ledger) == &a);
    g_assert_true(trp_machine_ledger_next(ledger) == &b);
    g_assert_null(trp_machine_ledger_next(ledger));
    g_assert_cmpuint(a.cores[0], ==, 0);
    g_assert_cmpuint(a.cores[2], ==, 2);
    g_assert_cmpuint(b.cores[0], ==, 3);
    g_assert_cmpstr(a.devices[0].addresses[0], ==, "0");
    g_assert_cmpstr(a.devices[0].addresses[1], ==, "1");
    g_assert_cmpstr(b.devices[0].addresses[0], ==, "2");
    g_assert_cmpstr(b.devices[0].addresses[1], ==, "10");
    trp_machine_ledger_leave(ledger, &a);
    g_assert_null(a.cores);
    want(&a, 1, 1, 1);
    g_assert_cmpint(trp_machine_ledger_ask(ledger, &a, NULL), ==, 0);
    g_assert_true(trp_machine_ledger_next(ledger) == &a);
    g_assert_cmpstr(a.devices[0].addresses[0], ==, "0");
    trp_machine_ledger_leave(ledger, &a);
    trp_machine_ledger_leave(ledger, &b);
    trp_machine_ledger_leave(ledger, &b);
    trp_machine_ledger_free(ledger);
}

TEST("cores of a share are neighbours when there is such a run")
{
    trp_machine_ledger *ledger = make_room();
    struct trp_request v[4], wide;
    for (int i = 0; i < 4; i++) {
        want(&v[i], 2, 1, 0);
        g_assert_cmpint(trp_machine_ledger_ask(ledger, &v[i], NULL), ==, 0);
        g_assert_true(trp_machine_ledger_next(ledger) == &v[i]);
    }
    trp_machine_ledger_leave(ledger, &v[0]);
    trp_machine_ledger_leave(ledger, &v[2]);
    trp_machine_ledger_leave(ledger, &v[3]);
    want(&wide, 3, 1, 0);
    g_assert_cmpint(trp_machine_ledger_ask(ledger, &wide, NULL), ==, 0);
    g_assert_true(trp_machine_ledger_next(ledger) == &wide);
    g_assert_cmpuint(wide.cores[0], ==, 4);
    g_assert_cmpuint(wide.cores[2], ==, 6);
    want(&v[0], 3, 1, 0);
    g_assert_cmpint(trp_machine_ledger_ask(ledger, &v[0], NULL), ==, 0);
    g_assert_true(trp_machine_ledger_next(ledger) == &v[0]);
    g_assert_cmpuint(v[0].cores[0], ==, 0);
    g_assert_cmpuint(v[0].cores[2], ==, 7);
    trp_machine_ledger_leave(ledger, &v[0]);
    trp_machine_ledger_leave(ledger, &v[1]);
    trp_machine_ledger_leave(ledger, &wide);
    trp_machine_ledger_free(ledger);
}

TEST("a small request never overtakes a waiting gang")
{
    trp_machine_ledger *ledger = make_room();
    struct trp_request first, gang, small;
    want(&first, 5, 1, 0);
    want(&gang, 6, 1, 0);
    want(&small, 1, 1, 0);
    g_assert_cmpint(trp_machine_ledger_ask(ledger, &first, NULL), ==, 0);
    g_assert_cmpint(trp_machine_ledger_ask(ledger, &gang, NULL), ==, 0);
    g_assert_cmpint(trp_machine_ledger_ask(ledger, &small, NULL), ==, 0);
    g_assert_true(trp_machine_ledger_next(ledger) == &first);
    g_assert_null(trp_machine_ledger_next(ledger));
    trp_machine_ledger_leave(ledger, &first);
    g_assert_true(trp_machine_ledger_next(ledger) == &gang);
    g_assert_true(trp_machine_ledger_next(ledger) == &small);
    g_assert_null(trp_machine_ledger_next(ledger));
    trp_machine_ledger_leave(ledger, &gang);
    trp_machine_ledger_leave(ledger, &small);
    trp_machine_ledger_free(ledger);
}

TEST("a withdrawn gang lets the next one in")
{
    trp_machine_ledger *ledger = make_room();
    struct trp_request first, gang, small;
    want(&first, 5, 1, 0);
    want(&gang, 6, 1, 0);
    want(&small, 1, 1, 0);
    g_assert_cmpint(trp_machine_ledger_ask(ledger, &first, NULL), ==, 0);
    g_assert_true(trp_machine_ledger_next(ledger) == &first);
    g_assert_cmpint(trp_machine_ledger_ask(ledger, &gang, NULL), ==, 0);
    g_assert_cmpint(trp_machine_ledger_ask(ledger, &small, NULL), ==, 0);
    trp_machine_ledger_leave(ledger, &gang);
    g_assert_true(trp_machine_ledger_next(ledger) == &small);
    trp_machine_ledger_leave(ledger, &small);
    trp_machine_ledger_leave(ledger, &first);
    trp_machine_ledger_free(ledger);
}

/* Two gangs that want half of the machine: others have some of it. */
TEST("nobody is served with cores of others")
{
    trp_machine_ledger *ledger = make_room();
    bool has[8] = {true, false, false, true, true, true, false, true};
    struct trp_request a, b;
    want(&a, 4, 1, 0);
    want(&b, 2, 1, 0);
    g_assert_false(trp_machine_ledger_has_room(ledger));
    g_assert_cmpint(trp_machine_ledger_ask(ledger, &a, NULL), ==, 0);
    g_assert_cmpint(trp_machine_ledger_ask(ledger, &b, NULL), ==, 0);
    trp_machine_ledger_others(ledger, has);
    g_assert_null(trp_machine_ledger_next(ledger));
    g_assert_true(trp_machine_ledger_has_room(ledger));
    has[4] = false;
    trp_machine_ledger_others(ledger, has);
    g_assert_true(trp_machine_ledger_next(ledger) == &a);
    g_assert_cmpuint(a.cores[0], ==, 1);
    g_assert_cmpuint(a.cores[1], ==, 2);
    g_assert_cmpuint(a.cores[2], ==, 4);
    g_assert_cmpuint(a.cores[3], ==, 6);
    trp_machine_ledger_put_back(ledger, &a);
    g_assert_true(trp_machine_ledger_next(ledger) == &a);
    g_assert_null(trp_machine_ledger_next(ledger));
    memset(has, 0, sizeof has);
    trp_machine_ledger_others(ledger, has);
    g_assert_true(trp_machine_ledger_next(ledger) == &b);
    g_assert_cmpuint(b.cores[0], ==, 0);
    g_assert_cmpuint(b.cores[1], ==, 3);
    trp_machine_ledger_leave(ledger, &a);
    trp_machine_ledger_leave(ledger, &b);
    trp_machine_ledger_free(ledger);
}

/* 20,000 random steps; what is held never exceeds what there is, and an empty room is
 * whole again. */
TEST("random requests never hold more than there is")
{
    enum { N = 24 };
    trp_machine_ledger *ledger = make_room();
    struct trp_request v[N] = {{.state = TRP_REQUEST_NONE}};
    for (int step = 0; step < 20000; step++) {
        struct trp_request *r = &v[g_test_rand_int_range(0, N)];
        if (r->state == TRP_REQUEST_NONE) {
            want(r, (uint64_t)g_test_rand_int_range(0, 9),
                 g_test_rand_int_range(0, 4097), (uint32_t)g_test_rand_int_range(0, 5));
            g_assert_cmpint(trp_machine_ledger_ask(ledger, r, NULL), ==, 0);
        } else {
            trp_machine_ledger_leave(ledger, r);
        }
        while (trp_machine_ledger_next(ledger))
            ;
        uint64_t cores = 0, memory = 0, gpu = 0, seen = 0;
        for (int i = 0; i < N; i++) {
            if (v[i].state != TRP_REQUEST_HAS)
                continue;
            cores += v[i].footprint.cores;
            memory += (uint64_t)v[i].footprint.memory_mib;
            gpu += v[i].footprint.ndevices ? v[i].footprint.devices[0].count : 0;
            for (uint64_t k = 0; k < v[i].footprint.cores; k++) {
                g_assert_false(seen & (1u << v[i].cores[k]));
                seen |= 1u << v[i].cores[k];
            }
        }
        g_assert_cmpuint(cores, <=, 8);
        g_assert_cmpuint(memory, <=, 4096);
        g_assert_cmpuint(gpu, <=, 4);
    }
    for (int i = 0; i < N; i++)
        trp_machine_ledger_leave(ledger, &v[i]);
    struct trp_request all;
    want(&all, 8, 4096, 4);
    g_assert_cmpint(trp_machine_ledger_ask(ledger, &all, NULL), ==, 0);
    g_assert_true(trp_machine_ledger_next(ledger) == &all);
    trp_machine_ledger_leave(ledger, &all);
    trp_machine_ledger_free(ledger);
}

TEST("executors and gangs need what their profile says")
{
    struct trp_resource_profile p = {
        .cores = 4, .task_cpus = 2, .total_mib = 1000, .slots = 2};
    struct trp_machine_footprint footprint;
    g_strlcpy(p.custom[0].name, "gpu", sizeof p.custom[0].name);
    p.custom[0].executor = 3;
    p.custom[0].task = TRP_ONE / 2;
    p.ncustom = 1;
    trp_machine_footprint_make(&p, 0, &footprint);
    g_assert_cmpuint(footprint.cores, ==, 4);
    g_assert_cmpint(footprint.memory_mib, ==, 1000);
    g_assert_cmpuint(footprint.devices[0].count, ==, 3);
    trp_machine_footprint_make(&p, 5, &footprint);
    g_assert_cmpuint(footprint.cores, ==, 10);
    g_assert_cmpint(footprint.memory_mib, ==, 2500);
    g_assert_cmpuint(footprint.devices[0].count, ==, 3);
    p.custom[0].task = 2 * TRP_ONE;
    trp_machine_footprint_make(&p, 5, &footprint);
    g_assert_cmpuint(footprint.devices[0].count, ==, 10);
    p.custom[0].task = 0;
    trp_machine_footprint_make(&p, 1, &footprint);
    g_assert_cmpuint(footprint.ndevices, ==, 0);
}

TEST("a cpu quota is rounded to the nearest core")
{
    g_assert_cmpuint(trp_machine_cores(8, 0), ==, 8);
    g_assert_cmpuint(trp_machine_cores(8, 0.2), ==, 1);
    g_assert_cmpuint(trp_machine_cores(8, 1.5), ==, 2);
    g_assert_cmpuint(trp_machine_cores(8, 2.4), ==, 2);
    g_assert_cmpuint(trp_machine_cores(8, 7.6), ==, 8);
    g_assert_cmpuint(trp_machine_cores(8, 64), ==, 8);
}

/* What a discovery script says more: shares that are out stay what they are. */
TEST("addresses are learnt while others are out")
{
    trp_machine_ledger *ledger = make_room();
    struct trp_request r, s;
    uint32_t n;
    want(&r, 1, 1, 3);
    g_assert_cmpint(trp_machine_ledger_ask(ledger, &r, NULL), ==, 0);
    g_assert_true(trp_machine_ledger_next(ledger) == &r);
    g_assert_cmpint(trp_machine_ledger_learn(ledger, "gpu", "0,1,1.5,9", NULL), ==, 0);
    g_assert_cmpint(trp_machine_ledger_learn(ledger, "fpga", "b,a", NULL), ==, 0);
    g_assert_cmpint(trp_machine_ledger_learn(ledger, "fpga", "a", NULL), ==, 0);
    const struct trp_resource_addresses *all = trp_machine_ledger_devices(ledger, &n);
    g_assert_cmpuint(n, ==, 2);
    g_assert_cmpuint(all[0].naddresses, ==, 6);
    g_assert_cmpuint(all[1].naddresses, ==, 2);
    g_assert_cmpstr(all[1].addresses[0], ==, "a");
    want(&s, 1, 1, 3);
    g_assert_cmpint(trp_machine_ledger_ask(ledger, &s, NULL), ==, 0);
    g_assert_true(trp_machine_ledger_next(ledger) == &s);
    g_assert_cmpstr(s.devices[0].addresses[0], ==, "1.5");
    g_assert_cmpstr(s.devices[0].addresses[1], ==, "9");
    g_assert_cmpstr(s.devices[0].addresses[2], ==, "10");
    trp_machine_ledger_leave(ledger, &r);
    trp_machine_ledger_leave(ledger, &s);
    want(&r, 1, 1, 6);
    g_assert_cmpint(trp_machine_ledger_ask(ledger, &r, NULL), ==, 0);
    g_assert_true(trp_machine_ledger_next(ledger) == &r);
    trp_machine_ledger_leave(ledger, &r);
    trp_machine_ledger_free(ledger);
}
