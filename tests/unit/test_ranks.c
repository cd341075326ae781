/*
 * The rack of a rank, from what Slurm tells a task.
 */
#include <glib.h>

#include "driver/ranks.h"

static void expect(const char *path, const char *node, const char *rack)
{
    char buf[16];
    g_test_message("%s for %s", path ? path : "no path", node ? node : "no node");
    trp_rank_rack(path, node, buf, sizeof buf);
    g_assert_cmpstr(buf, ==, rack);
}

static void leaf_switch(void)
{
    expect("spine.rack2.node7", "node7", "rack2");
    expect("rack2.node7", "node7", "rack2");
    expect("s[0-1].s2.node7", "node7", "s2");
}

static void no_rack(void)
{
    expect(NULL, "node7", "");
    expect("spine.rack2.node7", NULL, "");
    expect("node7", "node7", "");             /* no topology */
    expect("spine.rack2.node8", "node7", ""); /* from another node */
    expect("", "", "");
    expect(".node7", "node7", "");
    expect("a-switch-of-16-bytes.node7", "node7", "");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ranks/the rack is the leaf switch of the node", leaf_switch);
    g_test_add_func("/ranks/anything else is no rack", no_rack);
    return g_test_run();
}
