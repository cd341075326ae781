/* The virtual cluster by itself: where shares are placed. Whole runs are in
 * test_virtual_run.c. */
#include <glib.h>
#include <string.h>

#include "conf/options.h"
#include "core/profile/manager.h"
#include "sim/run/virtual_cluster.h"
#include "unit.h"

static uint32_t granted[8], ngranted;

static void on_granted(void *context, uint32_t share)
{
    (void)context;
    granted[ngranted++] = share;
}

static void on_job(void *context, uint32_t line, uint32_t shares, uint32_t nodes)
{
    (void)context, (void)line, (void)shares, (void)nodes;
}

/* What is not to be on some hosts waits for another, and holds up nobody meanwhile. */
TEST("hosts where one is not to be")
{
    static const char file[] =
        "cluster: 1\nnodes: [{name: n, count: 2, cores: 2, memory: 16g, inside: 2}]\n";
    const uint32_t inside[] = {2};
    struct trp_virtual_config config = {
        .inside = inside, .handler = {.job = on_job, .granted = on_granted}
    };
    struct trp_profile_defaults d;
    trp_virtual_cluster *c;
    trp_sim_cluster *model;
    trp_profiles *profiles;
    trp_error err;
    trp_options_profile_defaults(NULL, &d);
    g_assert_cmpint(trp_sim_cluster_parse("c.yaml", file, strlen(file), &model, &err),
                    ==, 0);
    config.model = model;
    g_assert_cmpint(trp_profiles_new(&d, NULL, &profiles, &err), ==, 0);
    g_assert_cmpint(trp_virtual_cluster_new(&config, &c, &err), ==, 0);
    const struct trp_resource_profile *p =
        trp_profiles_get(profiles, (trp_profile_id){0});
    uint32_t apart = trp_virtual_line(c, p, 0, false, "n1,x");
    uint32_t any = trp_virtual_line(c, p, 0, false, "");
    g_assert_cmpuint(apart, !=, any);
    g_assert_cmpuint(trp_virtual_line(c, p, 0, false, "n1,x"), ==, apart);
    for (uint32_t i = 0; i < 3; i++)
        trp_virtual_ask(c, apart, i);
    for (uint32_t i = 3; i < 5; i++)
        trp_virtual_ask(c, any, i);
    trp_virtual_submit(c, 0);
    trp_virtual_serve(c, 0);
    g_assert_cmpuint(ngranted, ==, 4);
    static const uint32_t owner[] = {0, 1, 3, 4}, node[] = {1, 1, 0, 0};
    for (uint32_t i = 0; i < 4; i++) {
        g_assert_cmpuint(trp_virtual_owner(c, granted[i]), ==, owner[i]);
        g_assert_cmpuint(trp_virtual_node(c, granted[i]), ==, node[i]);
    }
    trp_virtual_leave(c, granted[3], 1);
    trp_virtual_serve(c, 1);
    g_assert_cmpuint(ngranted, ==, 4);
    trp_virtual_leave(c, granted[0], 1);
    trp_virtual_serve(c, 1);
    g_assert_cmpuint(ngranted, ==, 5);
    g_assert_cmpuint(trp_virtual_owner(c, granted[4]), ==, 2);
    g_assert_cmpuint(trp_virtual_node(c, granted[4]), ==, 1);
    trp_virtual_cluster_free(c);
    trp_profiles_free(profiles);
    trp_sim_cluster_free(model);
}
