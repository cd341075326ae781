/*
 * Racks put into a topology.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/topology.h"
#include "conf/racks.h"
#include "unit.h"

TEST("hosts are ordered by the racks that the site says")
{
    static const char text[] = "n[1-2],n10 r10\nn3 r2\n";
    const struct trp_host_view hosts[] = {
        {.name = "n10", .rack = "",     .model = ""},
        {.name = "n2",  .rack = "old",  .model = ""},
        {.name = "n3",  .rack = "",     .model = ""},
        {.name = "n4",  .rack = "kept", .model = ""},
        {.name = "n5",  .rack = "",     .model = ""},
    };
    static const char *const wanted[][2] = {
        {"n5",  ""    },
        {"n4",  "kept"},
        {"n3",  "r2"  },
        {"n2",  "r10" },
        {"n10", "r10" }
    };
    const struct trp_topology t = {.hosts = hosts, .nhosts = G_N_ELEMENTS(hosts)};
    trp_racks *racks;
    char *printed = NULL;
    size_t size;
    g_assert_cmpint(trp_racks_parse("racks", text, strlen(text), &racks, NULL), ==, 0);
    struct trp_topology *all = trp_topology_with_racks(&t, racks);
    trp_racks_close(racks);
    g_assert_nonnull(all);
    g_assert_cmpuint(all->nhosts, ==, G_N_ELEMENTS(hosts));
    for (uint32_t i = 0; i < all->nhosts; i++) {
        g_assert_cmpstr(all->hosts[i].name, ==, wanted[i][0]);
        g_assert_cmpstr(all->hosts[i].rack, ==, wanted[i][1]);
    }
    FILE *f = open_memstream(&printed, &size);
    trp_topology_print(all, f);
    fclose(f);
    g_assert_nonnull(strstr(printed, "rack r10\n  host n2"));
    g_assert_null(strstr(strstr(printed, "rack r10") + 1, "rack r10"));
    free(printed);
    trp_topology_free(all);
}
