/*
 * `troupe topo`: the tree that locality uses: of the Slurm job that we are in, else
 * this machine; with --mpi the MPIs that are here.
 */
#include <stdio.h>

#include "args.h"
#include "cluster/cluster.h"
#include "commands.h"
#include "conf/racks.h"
#include "mpis.h"
#include "settings.h"

static struct {
    struct trp_settings_request q;
    bool json, mpi;
} call;

static int on_argument(struct trp_args *a, int what, const char *value, trp_error *err)
{
    (void)a;
    return trp_settings_take(&call.q, what, value, err);
}

const struct trp_line trp_line_topo = {
    "topo", "usage: troupe topo [options]\n\n", "",
    .table = TRP_ARGS(
        TRP_ARGS_JSON(&call.json), TRP_SETTINGS_SITE, TRP_SETTINGS_LOCAL,
        TRP_ARGS_FLAG("mpi", &call.mpi,
                      "the MPIs that are here instead, and what works with each")),
    .take = on_argument};

/* With the racks of the site file. */
static int print_tree(const struct trp_topology *t, const trp_site *site, bool json,
                      trp_error *err)
{
    trp_racks *racks = NULL;
    int code = trp_racks_open(site, &racks, err);
    struct trp_topology *all = code == 0 ? trp_topology_with_racks(t, racks) : NULL;
    if (all && json)
        trp_topology_print_json(all, stdout);
    else if (all)
        trp_topology_print(all, stdout);
    else if (code == 0)
        code = trp_error_set(err, TRP_ENOMEM, "out of memory for the topology");
    trp_topology_free(all);
    trp_racks_close(racks);
    return code;
}

static int print_topology(const struct trp_settings_request *q, bool json)
{
    struct trp_settings s;
    struct trp_cluster_where where = {0};
    trp_cluster *c = NULL;
    trp_error err;
    int code = trp_settings_load(q, &s, &err);
    if (code == 0)
        code = trp_settings_where(q, &s, &where, &err);
    if (code == 0)
        code = trp_cluster_new(NULL, &where, s.options, s.site, NULL, NULL, &c, &err);
    if (code == 0) {
        code = print_tree(c->ops->topology(c), s.site, json, &err);
        c->ops->close(c, NULL);
    }
    trp_settings_where_free(&where);
    trp_settings_free(&s);
    return code < 0 ? trp_launcher_fail(&err) : trp_launcher_printed(0);
}

int trp_launcher_topo(void)
{
    if (!call.mpi)
        return print_topology(&call.q, call.json);
    trp_mpis_print(call.json);
    return trp_launcher_printed(0);
}
